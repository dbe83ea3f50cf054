# Adopted and released while changes flow: logical replication with the replica identity on such an index, on the publisher
# and on the subscriber; a standby that answers queries meanwhile, and takes over; crashes before and after the commit.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Adoption;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Torture;

my $seed = $ENV{LBT_SEED} || 20241106;
my $seconds = $ENV{LBT_ADOPT_SECONDS} || 8;
my $keys = 6000;
my @indexes = qw(by_key_pkey by_unique_k by_whole_k);

sub configured
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%params);
	torture_conf($node);
	return $node;
}

# by_key: replica identity is the primary key; by_unique: an index; by_whole: the row.  bk: a mirror with a btree index.
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
VACUUM ANALYZE;
CREATE PUBLICATION p FOR TABLE by_key, by_unique, by_whole;
SQL
# A subscriber of 16 or 17 that is built with assertions (no package is) ends itself when it looks up a row by a replica
# identity that is no btree index: an assertion looks for the replica identity of the index, not of its table.
my $asserts = $subscriber->pg_version >= 16 && $subscriber->pg_version < 18
  && $subscriber->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';
my @on_subscriber = $asserts ? 'by_whole_k' : @indexes;
sub indexes_of { my ($node) = @_; return $node == $subscriber ? @on_subscriber : @indexes; }
adopt($_, 'postgres', indexes_of($_)) foreach $publisher, $subscriber;
my $backup = 'base';
$publisher->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('standby', true)");
$publisher->backup($backup);
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($publisher, $backup, has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\nhot_standby_feedback = on\n"
	  . "max_standby_streaming_delay = -1\n");
$standby->start;

# ---- what must be the same everywhere ----

my $contents = join(' UNION ALL ', map { "SELECT '$_', count(*), sum(v), md5(string_agg(concat_ws(',', k, v, bk), ' ' ORDER BY k, v)) FROM $_" }
	  qw(by_key by_unique by_whole)) . ' ORDER BY 1';

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
	is(dangling($node, 'postgres'), '', "$when: the catalogs fit together");
	foreach my $index (@indexes)
	{
		my ($table) = $index =~ /^(by_[a-z]+)_/;
		is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; '
				  . "SELECT count(*) = count(k = bk OR NULL) AND md5(string_agg(k::text, ' ')) = (SELECT md5(string_agg(bk::text, ' ')) "
				  . "FROM (SELECT bk FROM $table ORDER BY bk) q) AND sum((SELECT count(*) FROM $table i WHERE i.k = t.k)) = "
				  . "sum((SELECT count(*) FROM $table i WHERE i.bk = t.k)) FROM (SELECT k, bk FROM $table ORDER BY k) t"),
			't', "$when: $index answers as btree");
		next if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
		is(amcheck($node, 'postgres', $index), 1, "$when: amcheck is content with $index");
	}
	return;
}

same_on($subscriber, 'first copy, all adopted');

# ---- logical replication, one side after the other ----

my $changes = join(';', map { my $table = $_; map { s/\@/$table/gr } (
	'UPDATE @ SET v = v + 1 WHERE k % 3 = 1 AND k < 300', 'DELETE FROM @ WHERE k BETWEEN 20 AND 40',
	"INSERT INTO @ SELECT n, 0, n FROM (SELECT nextval('next') AS n FROM generate_series(1, 50)) q",
	"UPDATE @ SET k = n, bk = n FROM (SELECT DISTINCT ON (k) k AS old, nextval('next') AS n FROM @ WHERE k BETWEEN 100 AND 110) q WHERE k = old") }
	  qw(by_key by_unique by_whole));
my %sides = ('both adopted' => [], 'publisher released' => [$publisher], 'both released' => [ $publisher, $subscriber ],
	'subscriber released' => [$subscriber]);
foreach my $side (sort keys %sides)
{
	release($_, 'postgres', indexes_of($_)) foreach @{ $sides{$side} };
	$publisher->safe_psql('postgres', $changes);
	$publisher->wait_for_catchup('s');
	wait_until($subscriber, "SELECT lookups > 100 FROM learnedbtree_stat WHERE indexrelname = 'by_unique_k'")
	  if $side eq 'both adopted' && !$asserts;
	same_on($subscriber, $side);
	adopt($_, 'postgres', indexes_of($_)) foreach @{ $sides{$side} };
}

# An index that is adopted already can become the replica identity.
$publisher->safe_psql('postgres', 'ALTER TABLE by_unique REPLICA IDENTITY DEFAULT');
$publisher->safe_psql('postgres', 'ALTER TABLE by_unique REPLICA IDENTITY USING INDEX by_unique_k');
is($publisher->safe_psql('postgres', q{SELECT relreplident FROM pg_class WHERE relname = 'by_unique'}), 'i',
	'an adopted index can become the replica identity');

# ---- all at once ----

my @write = map { my ($table, $weight, $range) = @$_;
	my $n = "\\set n random(1, $range)\n";
	my $new = "SELECT nextval('next') AS n \\gset\n";
	( [ "insert.$table", 3 * $weight, "${new}INSERT INTO $table VALUES (:n, 0, :n);" ],
		[ "update.$table", 6 * $weight, "${n}UPDATE $table SET v = v + 1 WHERE k = :n;" ],
		[ "delete.$table", 2 * $weight, "${n}DELETE FROM $table WHERE k = :n;" ],
		[ "move.$table", 2 * $weight, "${n}SELECT nextval('next') AS m \\gset\nUPDATE $table SET k = :m, bk = :m "
			  . "WHERE ctid = (SELECT ctid FROM $table WHERE k = :n LIMIT 1 FOR UPDATE);" ]) }
  ([ by_key => 5, $keys ], [ by_unique => 5, $keys ], [ by_whole => 1, 200 ]);
my @read = map {
	my $answers = "\\set n random(1, $keys)\nSELECT 1 / ((SELECT concat_ws(chr(32), count(*), sum(v)) FROM $_ WHERE k = :n) = "
	  . "(SELECT concat_ws(chr(32), count(*), sum(v)) FROM $_ WHERE bk = :n))::int;\n"
	  . "SELECT 1 / ((SELECT string_agg(k::text, chr(32)) FROM (SELECT k FROM $_ WHERE k >= :n ORDER BY k LIMIT 20) q) IS NOT DISTINCT FROM "
	  . "(SELECT string_agg(k::text, chr(32)) FROM (SELECT bk AS k FROM $_ WHERE bk >= :n ORDER BY bk LIMIT 20) q))::int;";
	[ "read.$_", 1, $answers ]
} qw(by_key by_unique by_whole);
sub loop { return [ map { ( [ "adopt.$_", 1, "SELECT learnedbtree_adopt('$_', true);\n\\sleep 10 ms" ],
			[ "release.$_", 1, "SELECT learnedbtree_release('$_');\n\\sleep 10 ms" ] ) } @_ ]; }

my $number = 0;
sub start { my ($node, $clients, $scripts) = @_; return start_load($node, clients => $clients, jobs => $clients,
		seconds => $seconds, seed => $seed + $number++, scripts => $scripts); }
my %load = (
	'adopting and releasing on the publisher' => start($publisher, 1, loop(@indexes)),
	'adopting and releasing on the subscriber' => start($subscriber, 1, loop(@on_subscriber)),
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

# ---- crashes ----

sub method { my ($node, $index) = @_; return (access_methods($node, 'postgres') =~ /\b$index (\w+)/)[0]; }

foreach my $turn ([ adopt => 'btree', 'learnedbtree' ], [ release => 'learnedbtree', 'btree' ])
{
	my ($function, $from, $to) = @$turn;
	$function eq 'adopt' ? release($publisher, 'postgres', @indexes) : adopt($publisher, 'postgres', @indexes);
	my $session = $publisher->background_psql('postgres');
	$session->query_safe("SET client_min_messages = error; BEGIN; SELECT learnedbtree_$function('by_key_pkey'"
		  . ($function eq 'adopt' ? ', true' : '') . '); INSERT INTO by_key VALUES (-1, 0, -1); SELECT pg_switch_wal(); CHECKPOINT');
	$publisher->stop('immediate');
	eval { $session->quit };
	$publisher->start;
	is(method($publisher, 'by_key_pkey'), $from, "crash before the commit of $function: it is $from");
	indexes_good($publisher, "crash before the commit of $function");
	is($publisher->safe_psql('postgres', 'SELECT count(*) FROM by_key WHERE k = -1'), '0', 'and the row is not there');

	$publisher->safe_psql('postgres', "SET client_min_messages = error; BEGIN; SELECT learnedbtree_$function('by_key_pkey'"
		  . ($function eq 'adopt' ? ', true' : '') . '); INSERT INTO by_key VALUES (-2, 0, -2); COMMIT');
	$publisher->stop('immediate');
	$publisher->start;
	is(method($publisher, 'by_key_pkey'), $to, "crash after the commit of $function: it is $to");
	indexes_good($publisher, "crash after the commit of $function");
	is($publisher->safe_psql('postgres', 'SET enable_seqscan = off; DELETE FROM by_key WHERE k = -2 RETURNING k'), '-2', 'and the row is there');
}

# ---- the standby takes over, with whatever is adopted ----

adopt($publisher, 'postgres', 'by_key_pkey', 'by_unique_k');
release($publisher, 'postgres', 'by_whole_k');
$publisher->wait_for_catchup($standby, 'replay', $publisher->lsn('insert'));
my $methods = access_methods($publisher, 'postgres');
is(access_methods($standby, 'postgres'), $methods, 'the standby has the same indexes adopted');
same_on($standby, 'before the promotion');
$publisher->stop;
$standby->promote;
wait_until($standby, 'SELECT NOT pg_is_in_recovery()');
is(access_methods($standby, 'postgres'), $methods, 'and keeps them when it is promoted');
$standby->safe_psql('postgres', 'INSERT INTO by_key SELECT g, 0, g FROM generate_series(900001, 903000) g; DELETE FROM by_unique WHERE k < 500');
indexes_good($standby, 'promoted');
release($standby, 'postgres', 'by_key_pkey', 'by_unique_k');
adopt($standby, 'postgres', 'by_whole_k');
indexes_good($standby, 'promoted, and turned');

my $catcheck = $standby->config_data('--bindir') . '/pg_catcheck';
if (-x $catcheck)
{
	$standby->command_ok([ $catcheck, '-q', 'postgres' ], 'pg_catcheck finds nothing wrong');
}

$_->stop foreach $standby, $subscriber;
done_testing();
