# Served and not served while changes flow: logical replication, whose apply worker is served on named indexes, with the
# replica identity on such an index, on the publisher and on the subscriber; a standby that serves an index as soon as its
# name is replayed, answers queries meanwhile, and takes over; crashes before and after a name is committed, and at any time:
# a model is trained again at the first use, and the file holds nothing but what btree puts there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Time::HiRes qw(usleep);
use Torture;

my $seed = $ENV{LBT_SEED} || 20241106;
my $seconds = $ENV{LBT_NAME_SECONDS} || 6;
my $keys = 6000;
my @indexes = qw(by_key_pkey by_unique_k by_whole_k by_part_pkey);

sub configured
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%params);
	torture_conf($node);
	# Background workers load no session_preload_libraries.
	learned_settings($node, shared => 1);
	$node->append_conf('postgresql.conf', "max_prepared_transactions = 5\nlearnedbtree.btree_indexes = 'served_*'\n");
	return $node;
}

# by_key, by_part: replica identity is the primary key; by_unique: an index; by_whole: the row.  bk: a mirror with a btree index.
my $tables = <<'SQL';
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE by_key (k int8 PRIMARY KEY, v int NOT NULL DEFAULT 0, bk int8);
CREATE INDEX by_key_bk ON by_key (bk);
CREATE TABLE by_unique (k int8 NOT NULL, v int NOT NULL DEFAULT 0, bk int8);
CREATE UNIQUE INDEX by_unique_k ON by_unique (k);
CREATE INDEX by_unique_bk ON by_unique (bk);
CREATE TABLE by_whole (k int8, v int NOT NULL DEFAULT 0, bk int8);
CREATE INDEX by_whole_k ON by_whole (k);
CREATE INDEX by_whole_bk ON by_whole (bk);
CREATE TABLE by_part (k int8 PRIMARY KEY, v int NOT NULL DEFAULT 0, bk int8) PARTITION BY RANGE (k);
CREATE TABLE by_part1 PARTITION OF by_part FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE by_part2 PARTITION OF by_part FOR VALUES FROM (1000) TO (MAXVALUE);
CREATE INDEX by_part_bk ON by_part (bk);
ALTER TABLE by_unique REPLICA IDENTITY USING INDEX by_unique_k;
ALTER TABLE by_whole REPLICA IDENTITY FULL;
SQL

my $publisher = configured('publisher', allows_streaming => 'logical');
$publisher->start;
my $subscriber = configured('subscriber');
$subscriber->start;
torture_settings($_) foreach $publisher, $subscriber;
$_->safe_psql('postgres', $tables) foreach $publisher, $subscriber;
$publisher->safe_psql('postgres', <<"SQL");
CREATE SEQUENCE next START 100000;
INSERT INTO by_key SELECT g, 0, g FROM generate_series(1, $keys) g;
INSERT INTO by_unique SELECT g, 0, g FROM generate_series(1, $keys) g;
INSERT INTO by_whole SELECT g / 2, 0, g / 2 FROM generate_series(1, 400) g;
INSERT INTO by_part SELECT g, 0, g FROM generate_series(1, $keys) g;
VACUUM ANALYZE;
CREATE UNLOGGED TABLE not_there (k int8 CONSTRAINT served_not_there PRIMARY KEY);
CREATE PUBLICATION p FOR TABLE by_key, by_unique, by_whole, by_part WITH (publish_via_partition_root);
SQL
my $backup = 'base';
$publisher->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('standby', true)");
$publisher->backup($backup);
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION p WITH (two_phase)");
$subscriber->wait_for_subscription_sync($publisher, 's');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($publisher, $backup, has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\nhot_standby_feedback = on\n"
	  . "max_standby_streaming_delay = -1\n");
$standby->start;

# ---- what must be the same everywhere ----

my $contents = join(' UNION ALL ', map { "SELECT '$_', count(*), sum(v), md5(string_agg(concat_ws(',', k, v, bk), ' ' ORDER BY k, v)) FROM $_" }
	  qw(by_key by_unique by_whole by_part)) . ' ORDER BY 1';

sub same_on
{
	my ($node, $when) = @_;
	my ($here, $there) = map { $_->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; $contents") }
	  $node, $publisher;
	is($here, $there, "$when: the tables are the publisher's");
	indexes_good($node, $when);
}

# Each index has what its table has, by its file and by lookups.
sub indexes_good
{
	my ($node, $when) = @_;
	foreach my $index (@indexes)
	{
		my ($table) = $index =~ /^(by_[a-z]+)_/;
		is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; '
				  . "SELECT count(*) = count(k = bk OR NULL) AND md5(string_agg(k::text, ' ')) = (SELECT md5(string_agg(bk::text, ' ')) "
				  . "FROM (SELECT bk FROM $table ORDER BY bk) q) AND sum((SELECT count(*) FROM $table i WHERE i.k = t.k)) = "
				  . "sum((SELECT count(*) FROM $table i WHERE i.bk = t.k)) FROM (SELECT k, bk FROM $table ORDER BY k) t"),
			't', "$when: $index answers as btree");
	}
	is(amcheck_all($node, 'postgres'), '', "$when: amcheck is content") if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f';
	return;
}

same_on($subscriber, 'first copy');

# ---- logical replication, one side after the other ----

# Each kind of change in a transaction of its own: with the first the apply worker learns of names, the others are served.
my @changes = map { my $change = $_; [ map { $change =~ s/\@/$_/gr } qw(by_key by_unique by_whole by_part) ] } (
	'UPDATE @ SET v = v + 1 WHERE k % 3 = 1 AND (k < 300 OR k BETWEEN 5000 AND 5300)', 'UPDATE @ SET v = v + 1 WHERE k % 50 = 1', 'DELETE FROM @ WHERE k BETWEEN 1000 AND 1020 OR k = 30',
	"INSERT INTO @ SELECT n, 0, n FROM (SELECT nextval('next') AS n FROM generate_series(1, 50)) q",
	"UPDATE @ SET k = n, bk = n FROM (SELECT DISTINCT ON (k) k AS old, nextval('next') AS n FROM @ WHERE k BETWEEN 100 AND 110 ORDER BY k) q WHERE k = old");

our $prepare = 0;

sub change
{
	my (@which) = @_;
	foreach my $change (@changes[@which])
	{
		$publisher->safe_psql('postgres', $prepare ? "BEGIN; $_; PREPARE TRANSACTION 'c'; COMMIT PREPARED 'c'" : $_) foreach @$change;
	}
	$publisher->wait_for_catchup('s');
	return;
}

# Lookups and inserts through models, for each index.
sub counts
{
	return map { [ split /\|/, $subscriber->safe_psql('postgres', "SELECT coalesce(sum(lookups), 0), coalesce(sum(inserts), 0) FROM learnedbtree_stat "
			  . "WHERE indexrelid = to_regclass('$_') OR indexrelid = to_regclass('served_$_') OR indexrelid IN (SELECT relid FROM pg_partition_tree(to_regclass('served_$_')))") ] } @indexes;
}

# Before 16 rows of tables without a replica identity are looked for without an index.
sub looked_up { return grep { $_ ne 'by_whole_k' || $subscriber->pg_version >= 16 } @_; }
# The apply worker's counts come before its next commits.
sub applied { my ($code) = @_; return sub { $code->(); usleep(12_000); change(3) }; }

is(predicted_in($subscriber, 'postgres', sub { change(0 .. $#changes) }, @indexes), '', 'without names the apply worker serves nothing');
name_in($publisher, 'postgres', @indexes);
name_in($subscriber, 'postgres', @indexes);
my @before = counts();
change(0);
applied(sub { change(1, 2, 3) })->();
my @after = counts();
foreach my $i (0 .. $#indexes)
{
	my ($lookups, $inserts) = map { $after[$i][$_] - $before[$i][$_] } 0, 1;
	cmp_ok($lookups, '>=', 5, "named, the apply worker looks up by the model of $indexes[$i]") if looked_up($indexes[$i]);
	cmp_ok($inserts, '>=', 10, "and inserts: $indexes[$i]");
}
same_on($subscriber, 'both named');

# Invalidations of the index's entry do not end it.
$subscriber->safe_psql('postgres', 'ANALYZE; VACUUM; ALTER INDEX served_by_key_pkey SET (fillfactor = 70)');
change(0);
is(predicted_in($subscriber, 'postgres', applied(sub { change(1, 2, 3) }), @indexes), "@indexes", 'served again after VACUUM and ANALYZE');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE');
wait_until($subscriber, 'SELECT count(*) = 0 FROM pg_stat_subscription WHERE pid IS NOT NULL');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s ENABLE');
{
	local $prepare = 1;
	change(0);
	is(predicted_in($subscriber, 'postgres', applied(sub { change(1, 2, 3) }), @indexes), "@indexes", 'a new apply worker serves them, too, after prepared transactions');
}
same_on($subscriber, 'after a new apply worker has begun');

name_out($subscriber, 'postgres', @indexes);
change(0);
is(predicted_in($subscriber, 'postgres', applied(sub { change(0 .. $#changes) }), @indexes), '', 'not named any more, it serves none');
same_on($subscriber, 'not named on the subscriber');
name_out($publisher, 'postgres', @indexes);
name_in($subscriber, 'postgres', @indexes);
change(0 .. $#changes);
same_on($subscriber, 'not named on the publisher');
name_in($publisher, 'postgres', @indexes);

# An index that is served already can become the replica identity.
$publisher->safe_psql('postgres', 'ALTER TABLE by_unique REPLICA IDENTITY DEFAULT');
$publisher->safe_psql('postgres', 'ALTER TABLE by_unique REPLICA IDENTITY USING INDEX served_by_unique_k');
is($publisher->safe_psql('postgres', q{SELECT relreplident FROM pg_class WHERE relname = 'by_unique'}), 'i',
	'a served index can become the replica identity');

# ---- all at once ----

my @write = map { my ($table, $weight, $range) = @$_;
	my $n = "\\set n random(1, $range)\n";
	my $new = "SELECT nextval('next') AS n \\gset\n";
	( [ "insert.$table", 3 * $weight, "${new}INSERT INTO $table VALUES (:n, 0, :n);" ],
		[ "update.$table", 6 * $weight, "${n}UPDATE $table SET v = v + 1 WHERE k = :n;" ],
		[ "delete.$table", 2 * $weight, "${n}DELETE FROM $table WHERE k = :n;" ],
		[ "move.$table", 2 * $weight, "${n}SELECT nextval('next') AS m \\gset\nUPDATE $table SET k = :m, bk = :m "
			  . "WHERE (tableoid, ctid) = (SELECT tableoid, ctid FROM $table WHERE k = :n LIMIT 1 FOR UPDATE);" ]) }
  ([ by_key => 5, $keys ], [ by_unique => 5, $keys ], [ by_whole => 1, 200 ], [ by_part => 3, $keys ]);
my @read = map {
	my $answers = "\\set n random(1, $keys)\nSELECT 1 / ((SELECT concat_ws(chr(32), count(*), sum(v)) FROM $_ WHERE k = :n) = "
	  . "(SELECT concat_ws(chr(32), count(*), sum(v)) FROM $_ WHERE bk = :n))::int;\n"
	  . "SELECT 1 / ((SELECT string_agg(k::text, chr(32)) FROM (SELECT k FROM $_ WHERE k >= :n ORDER BY k LIMIT 20) q) IS NOT DISTINCT FROM "
	  . "(SELECT string_agg(k::text, chr(32)) FROM (SELECT bk AS k FROM $_ WHERE bk >= :n ORDER BY bk LIMIT 20) q))::int;";
	[ "read.$_", 1, $answers ]
} qw(by_key by_unique by_whole by_part);
sub loop { return [ map { my $index = $_; map { [ "$_.$index", 1, naming($_, $index) . ";\n\\sleep 10 ms" ] } 'in', 'out' } @_ ]; }

my $number = 0;
sub start { my ($node, $clients, $scripts) = @_; return start_load($node, clients => $clients, jobs => $clients,
		seconds => $seconds, seed => $seed + $number++, scripts => $scripts); }
my %load = (
	'names on the publisher' => start($publisher, 1, loop(@indexes)),
	'names on the subscriber' => start($subscriber, 1, loop(@indexes)),
	'changes on the publisher' => start($publisher, 3, \@write),
	'answers on the subscriber' => start($subscriber, 2, \@read),
	'answers on the standby' => start($standby, 2, \@read));
foreach my $name (sort keys %load)
{
	ok(end_load($load{$name}), "$name: no errors and no wrong answers") or diag(substr($load{$name}{err}, 0, 2000));
	note($name, ': ', $load{$name}{out} =~ /actually processed: (\d+)/);
}
$publisher->wait_for_catchup('s');
$publisher->wait_for_catchup($standby, 'replay', $publisher->lsn('insert'));
same_on($subscriber, 'after the loops, subscriber');
same_on($standby, 'after the loops, standby');
indexes_good($publisher, 'after the loops, publisher');
is(unexpected_in_log($_, 0, qr/terminating (?:walsender|logical replication)|conflict with recovery/), '', 'no errors in the log of the ' . $_->name)
  foreach $publisher, $subscriber, $standby;

# ---- an index is served on the standby as soon as its name is replayed ----

my $answers = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT (SELECT v >= 0 FROM by_key WHERE k = 5000), '
  . '(SELECT v >= 0 FROM by_unique WHERE k = 5001), (SELECT count(*) > 0 FROM by_whole WHERE k = 150), (SELECT v >= 0 FROM by_part WHERE k = 5002)';
$publisher->safe_psql('postgres', "DELETE FROM $_ WHERE k BETWEEN 5000 AND 5002; INSERT INTO $_ SELECT g, 0, g FROM generate_series(5000, 5002) g") foreach qw(by_key by_unique by_part);
$publisher->safe_psql('postgres', 'INSERT INTO by_whole VALUES (150, 0, 150)');
my $reader = $standby->background_psql('postgres');
sub replayed { $publisher->wait_for_catchup($standby, 'replay', $publisher->lsn('insert')); return; }
foreach my $round (1, 2)
{
	name_out($publisher, 'postgres', @indexes);
	replayed();
	is(predicted_in($standby, 'postgres', sub { is(asked($reader, $answers), 't|t|t|t', 'the answers of the standby') }, @indexes), '', "round $round: not named, a session there serves none");
	name_in($publisher, 'postgres', @indexes);
	replayed();
	is(predicted_in($standby, 'postgres', sub { is(asked($reader, $answers), 't|t|t|t', 'the answers of the standby') }, @indexes), "@indexes", "round $round: named, it serves all");
	is(predicted_in($standby, 'postgres', sub { $standby->safe_psql('postgres', $answers) }, @indexes), "@indexes", "round $round: and so does a new one");
}
is($standby->safe_psql('postgres', "SELECT count(*) FROM learnedbtree_indexes WHERE pattern = 'served_*' AND served"), 5, 'the view says so there');
is($standby->safe_psql('postgres', "SELECT count(*), count(reason) FROM learnedbtree_indexes WHERE indexname = 'served_not_there'"), '1|1', 'and of the index of an unlogged table, which has no file there, why not');
$reader->quit;

# ---- crashes ----

# The metapage of an index, without what changes as it is written (LSN, checksum), and without the end of the page.
sub metapage
{
	my ($node, $index) = @_;
	my $path = $node->data_dir . '/' . $node->safe_psql('postgres', "CHECKPOINT; SELECT pg_relation_filepath('$index')");
	open(my $file, '<:raw', $path) or die "$path: $!";
	read($file, my $page, 8192) == 8192 or die;
	return substr($page, 24, 8192 - 24 - 16);
}

foreach my $turn ([ in => '', 'by_key_pkey' ], [ out => 'by_key_pkey', '' ])
{
	my ($to, $before, $after) = @$turn;
	my $lookup = sub { $publisher->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT v FROM by_key WHERE k = 5000') };
	my $rename = naming($to, 'by_key_pkey');
	$to eq 'in' ? name_out($publisher, 'postgres', @indexes) : name_in($publisher, 'postgres', @indexes);
	my $session = $publisher->background_psql('postgres');
	$session->query_safe("BEGIN; $rename; INSERT INTO by_key VALUES (-1, 0, -1); SELECT pg_switch_wal(); CHECKPOINT");
	$publisher->stop('immediate');
	eval { $session->quit };
	$publisher->start;
	is(predicted_in($publisher, 'postgres', $lookup, 'by_key_pkey'), $before, "crash before the commit of a name ($to): serving is as before");
	indexes_good($publisher, "crash before the commit of a name ($to)");
	is($publisher->safe_psql('postgres', 'SELECT count(*) FROM by_key WHERE k = -1'), '0', 'and the row is not there');

	$publisher->safe_psql('postgres', "BEGIN; $rename; INSERT INTO by_key VALUES (-2, 0, -2); COMMIT");
	$publisher->stop('immediate');
	$publisher->start;
	is(predicted_in($publisher, 'postgres', $lookup, 'by_key_pkey'), $after, "crash after the commit of a name ($to): serving is as committed");
	indexes_good($publisher, "crash after the commit of a name ($to)");
	is($publisher->safe_psql('postgres', 'SET enable_seqscan = off; DELETE FROM by_key WHERE k = -2 RETURNING k'), '-2', 'and the row is there');
}

# In a prepared transaction.
name_out($publisher, 'postgres', 'by_unique_k');
my $by_unique = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT v FROM by_unique WHERE k = 5001';
$publisher->safe_psql('postgres', 'BEGIN; ' . naming('in', 'by_unique_k') . "; INSERT INTO by_unique VALUES (-3, 0, -3); $by_unique; PREPARE TRANSACTION 'named'");
$publisher->stop('immediate');
$publisher->start;
is(predicted_in($publisher, 'postgres', sub { $publisher->safe_psql('postgres', $by_unique) }, 'by_unique_k'), '', 'a name of a prepared transaction means nothing yet');
my $ready = $publisher->background_psql('postgres');
$ready->query_safe($by_unique);
$publisher->safe_psql('postgres', "COMMIT PREPARED 'named'");
is(predicted_in($publisher, 'postgres', sub { asked($ready, $by_unique) }, 'by_unique_k'), 'by_unique_k', 'from its commit on it does');
$ready->quit;
indexes_good($publisher, 'a prepared transaction');

# A model is trained again at first use, after a crash and after an orderly restart; the metapage is btree's.
name_in($publisher, 'postgres', @indexes);
foreach my $mode ('immediate', 'fast')
{
	$publisher->safe_psql('postgres', "SELECT learnedbtree_train('served_by_key_pkey'); INSERT INTO by_key SELECT n, 0, n FROM (SELECT nextval('next') AS n FROM generate_series(1, 300)) q; "
		  . "SELECT learnedbtree_train('served_by_key_pkey')");
	is(model_state($publisher, 'served_by_key_pkey'), 'ready', "before: $mode: there is a model");
	my $before = metapage($publisher, 'served_by_key_pkey');
	like($before, qr/^.{48}\0*$/s, "$mode: behind what btree has in the metapage there is nothing");
	$publisher->stop($mode);
	$publisher->start;
	is(model_state($publisher, 'served_by_key_pkey'), 'untrained', "$mode: no model is left of the one before");
	is(predicted_in($publisher, 'postgres', sub { $publisher->safe_psql('postgres', $answers) }, @indexes), "@indexes", "$mode: all are served at first use");
	is(model_state($publisher, 'served_by_key_pkey'), 'ready', "$mode: with a model");
	is($publisher->safe_psql('postgres', "SELECT source FROM learnedbtree_model('served_by_key_pkey')"), 'training', "$mode: by a training");
	ok(metapage($publisher, 'served_by_key_pkey') eq $before, "$mode: which has not written to the metapage");
}

# ---- the standby takes over, with whatever is named ----

name_out($publisher, 'postgres', 'by_whole_k');
replayed();
my $items = q{SELECT string_agg(concat_ws(' ', item, pattern, indexes), ', ' ORDER BY item) FROM learnedbtree_patterns};
is($standby->safe_psql('postgres', $items), $publisher->safe_psql('postgres', $items), 'the standby has the same names');
same_on($standby, 'before the promotion');
$publisher->stop;
$standby->promote;
wait_until($standby, 'SELECT NOT pg_is_in_recovery()');
is(predicted_in($standby, 'postgres', sub {
			$standby->safe_psql('postgres', 'INSERT INTO by_key SELECT g, 0, g FROM generate_series(900001, 903000) g; SET enable_seqscan = off; SET enable_bitmapscan = off; DELETE FROM by_unique WHERE k = 500');
		}, qw(by_key_pkey by_unique_k)), 'by_key_pkey by_unique_k', 'it serves them');
indexes_good($standby, 'promoted');
name_out($standby, 'postgres', 'by_key_pkey', 'by_unique_k');
name_in($standby, 'postgres', 'by_whole_k');
indexes_good($standby, 'promoted, with other names');

my $catcheck = $standby->config_data('--bindir') . '/pg_catcheck';
if (-x $catcheck)
{
	$standby->command_ok([ $catcheck, '-q', 'postgres' ], 'pg_catcheck finds nothing wrong');
}

$_->stop foreach $standby, $subscriber;
done_testing();
