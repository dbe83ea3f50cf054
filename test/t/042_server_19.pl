# What newer servers do to relations and plans that we look at: relcache entries rebuilt without end, which from 19 on share
# one routine of ours; and 19's REPACK (CONCURRENTLY), its replication of sequences, and auto_explain with our option.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Torture;

my $seed = $ENV{LBT_SEED} || 20261122;
my $seconds = $ENV{LBT_NAME_SECONDS} || 6;
my $keys = 6000;

sub configured
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%params);
	torture_conf($node);
	learned_settings($node, shared => 1);
	$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = 'kept_pkey, served_*'\n");
	return $node;
}

my $node = configured('publisher', allows_streaming => 'logical');
$node->start;
torture_settings($node);
# Release candidates count as less than their version.
my $is_19 = $node->pg_version->major >= 19;

# bk: a mirror with a btree index.  In mine the replica identity is our access method's.
my $tables = <<'SQL';
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE kept (k int8 PRIMARY KEY, v int NOT NULL DEFAULT 0, bk int8);
CREATE INDEX kept_bk ON kept (bk);
CREATE INDEX kept_l ON kept USING learnedbtree ((k + 0));
CREATE TABLE mine (k int8 NOT NULL, v int NOT NULL DEFAULT 0, bk int8);
CREATE UNIQUE INDEX mine_k ON mine USING learnedbtree (k);
CREATE INDEX mine_bk ON mine (bk);
ALTER TABLE mine REPLICA IDENTITY USING INDEX mine_k;
CREATE SEQUENCE next START 100000;
SQL
$node->safe_psql('postgres', <<"SQL");
$tables
INSERT INTO kept SELECT g, 0, g FROM generate_series(1, $keys) g;
INSERT INTO mine SELECT g, 0, g FROM generate_series(1, $keys) g;
VACUUM ANALYZE kept, mine;
SQL
my %key = (kept_pkey => 'k', kept_l => 'k + 0', mine_k => 'k');
my @ours = sort keys %key;

my @scripts = map { my $table = $_;
	my $n = "\\set n random(1, $keys)\n";
	my $answers = sub { "(SELECT concat_ws(chr(32), count(*), sum(v)) FROM $table WHERE $_[0] = :n)" };
	my $range = sub { "(SELECT string_agg(k::text, chr(32)) FROM (SELECT $_[0] AS k FROM $table WHERE $_[0] >= :n ORDER BY $_[0] LIMIT 20) q)" };
	( [ "read.$table", 4, "${n}SELECT 1 / (" . $answers->('k') . ' = ' . $answers->('bk') . ")::int;\n"
			  . 'SELECT 1 / (' . $range->('k') . ' IS NOT DISTINCT FROM ' . $range->('bk') . ')::int;' ],
		[ "insert.$table", 1, "SELECT nextval('next') AS n \\gset\nINSERT INTO $table VALUES (:n, 0, :n);" ],
		[ "update.$table", 2, "${n}UPDATE $table SET v = v + 1 WHERE k = :n;" ],
		[ "replace.$table", 2, "${n}WITH gone AS (DELETE FROM $table WHERE k = :n RETURNING k) SELECT count(*) FROM gone;\n"
			  . "INSERT INTO $table SELECT :n, 0, :n WHERE NOT EXISTS (SELECT FROM $table WHERE bk = :n)"
			  . ($table eq 'kept' || $node->pg_version >= 18 ? ' ON CONFLICT DO NOTHING;' : ';') ]) } qw(kept mine);
# Below 18 ON CONFLICT fails on a table with a unique index of ours.
@scripts = grep { $_->[0] ne 'replace.mine' } @scripts if $node->pg_version < 18;

my $number = 0;
sub loop { my ($scripts, $clients) = @_; return start_load($node, clients => $clients, jobs => 1, seconds => $seconds, seed => $seed + $number++, scripts => $scripts); }

sub indexes_good
{
	my ($server, $when) = @_;
	foreach my $index (@ours)
	{
		my ($table) = $index =~ /^([a-z]+)_/;
		is($server->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; '
				  . "SELECT count(*) > $keys - 100 AND count(*) = count(k = bk OR NULL) AND sum((SELECT count(*) FROM $table WHERE $key{$index} = t.k)) = count(*) FROM $table t"),
			't', "$when: lookups find all by $index");
		is($server->psql('postgres', check_sql($index)), 0, "$when: $index is good");
	}
	return;
}

sub all_served
{
	my ($when) = @_;
	is(predicted_in($node, 'postgres', sub {
				$node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT v FROM kept WHERE k = 50; SELECT v FROM mine WHERE k = 50;'
					  . 'SELECT v FROM kept WHERE k + 0 = 50')
			}, @ours), "@ours", "$when: all are looked up by models");
	return;
}

# ---- relcache entries that are rebuilt all the time ----

my @ddl = map { [ "ddl$_->[0]", 1, $_->[1] ] } (
	[ 1, 'ALTER INDEX kept_pkey SET (fillfactor = 80);' ], [ 2, 'ALTER INDEX kept_l SET (fillfactor = 70);' ], [ 3, 'ALTER INDEX mine_k SET (fillfactor = 75);' ],
	[ 4, 'CREATE TABLE made (k int8 PRIMARY KEY); CREATE INDEX made_l ON made USING learnedbtree (k); DROP TABLE made;' ],
	[ 5, 'REINDEX INDEX CONCURRENTLY kept_l;' ], [ 6, 'REINDEX INDEX kept_pkey;' ], [ 7, 'ANALYZE kept, mine;' ],
	[ 8, 'ALTER TABLE kept ADD COLUMN w int; ALTER TABLE kept DROP COLUMN w;' ],
	[ 9, naming('in', 'mine_bk') . ";\n" . naming('out', 'mine_bk') . ';' ]);
my %load = ('lookups and changes' => loop(\@scripts, 4), 'DDL' => loop(\@ddl, 1));
foreach my $name (sort keys %load)
{
	ok(end_load($load{$name}), "$name at the same time: no errors and no wrong answers") or diag(substr($load{$name}{err}, 0, 2000));
	note($name, ': ', $load{$name}{out} =~ /actually processed: (\d+)/);
}
indexes_good($node, 'after DDL without end');
all_served('after DDL without end');

# One session sees thousands of rebuilds of entries with our routines, its own and that of served indexes.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION rebuilds(n int) RETURNS int8 LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	total int8 := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('ALTER INDEX %I SET (fillfactor = %s)', (ARRAY['kept_pkey', 'kept_l', 'mine_k'])[i % 3 + 1], 60 + i % 30);
		total := total + (SELECT count(*) FROM kept WHERE k = i) + (SELECT count(*) FROM mine WHERE k = i) + (SELECT count(*) FROM kept WHERE k + 0 = i);
	END LOOP;
	RETURN total;
END $$;
INSERT INTO kept SELECT g, 0, g FROM generate_series(1, 2000) g ON CONFLICT DO NOTHING;
INSERT INTO mine SELECT g, 0, g FROM generate_series(1, 2000) g WHERE g NOT IN (SELECT k FROM mine);
SQL
is($node->safe_psql('postgres', 'SELECT rebuilds(2000)'), '6000', 'a session whose entries are rebuilt at each step');

if ($is_19)
{
	# ---- REPACK (CONCURRENTLY) ----

	# It registers what is to be called at the backend's exit, and wants that back as the last one.  Within it indexes are
	# built, by sessions that have not met ours before.
	foreach my $libraries ('learnedbtree', '')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
		$node->restart;
		is(($node->psql('postgres', "REPACK (CONCURRENTLY) $_"))[0], 0, "the first statement of a session repacks $_" . ($libraries ? '' : ', without the library'))
		  foreach qw(mine kept);
		is(($node->psql('postgres', "LOAD 'learnedbtree'; REPACK (CONCURRENTLY) mine; SELECT count(*) FROM mine WHERE k = 50"))[0], 0, 'or the second') if !$libraries;
	}
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\n");
	$node->restart;

	my $file = q{SELECT string_agg(pg_relation_filenode(oid)::text, ' ' ORDER BY relname) FROM pg_class WHERE relname IN ('kept_pkey', 'kept_l', 'mine_k')};
	my $before = $node->safe_psql('postgres', $file);
	%load = ('lookups and changes' => loop(\@scripts, 4), 'REPACK (CONCURRENTLY)' => loop(
			[ [ 'kept', 1, "REPACK (CONCURRENTLY) kept;\n\\sleep 50 ms" ], [ 'mine', 1, "REPACK (CONCURRENTLY) mine;\n\\sleep 50 ms" ] ], 1));
	foreach my $name (sort keys %load)
	{
		ok(end_load($load{$name}), "$name at the same time: no errors and no wrong answers") or diag(substr($load{$name}{err}, 0, 2000));
		note($name, ': ', $load{$name}{out} =~ /actually processed: (\d+)/);
	}
	isnt($node->safe_psql('postgres', $file), $before, 'the indexes have other files');
	indexes_good($node, 'repacked');
	all_served('repacked');
	foreach my $command ('REPACK (CONCURRENTLY) kept USING INDEX kept_l', 'REPACK (CONCURRENTLY) mine USING INDEX mine_k', 'REPACK kept', 'REPACK kept USING INDEX kept_pkey')
	{
		is(($node->psql('postgres', $command))[0], 0, $command);
	}
	indexes_good($node, 'repacked by indexes');
	is($node->safe_psql('postgres', "SELECT pattern, served FROM learnedbtree_indexes WHERE indexname = 'kept_pkey'"), 'kept_pkey|t', 'it is served as before');

	# ---- logical replication, with sequences ----

	my $subscriber = configured('subscriber');
	$subscriber->start;
	torture_settings($subscriber);
	$subscriber->safe_psql('postgres', $tables);
	$node->safe_psql('postgres', 'CREATE PUBLICATION changes FOR TABLE kept, mine; CREATE PUBLICATION numbers FOR ALL SEQUENCES');
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $node->connstr . " dbname=postgres' PUBLICATION changes, numbers");
	$subscriber->wait_for_subscription_sync($node, 's');
	my $reached = sub { return $_[0]->safe_psql('postgres', 'SELECT last_value FROM next') };
	wait_until($subscriber, 'SELECT last_value >= ' . $reached->($node) . ' FROM next');
	pass('sequences are copied');
	my $change = sub {
		my $n = 0;
		foreach my $sql ('UPDATE kept SET v = v + 1 WHERE k % 50 = 1', 'UPDATE mine SET v = v + 1 WHERE k % 50 = 1', 'DELETE FROM kept WHERE k BETWEEN 1000 AND 1010',
			'DELETE FROM mine WHERE k BETWEEN 1000 AND 1010', map({ "INSERT INTO $_ SELECT n, 0, n FROM (SELECT nextval('next') AS n FROM generate_series(1, 50)) q" } qw(kept mine kept mine)))
		{
			$node->safe_psql('postgres', $sql);
		}
		$node->wait_for_catchup('s');
	};
	$change->();
	is(predicted_in($subscriber, 'postgres', $change, qw(kept_pkey mine_k)), 'kept_pkey mine_k', 'the apply worker goes by models');
	my $sums = q{SELECT count(*), sum(k), sum(v), (SELECT concat_ws(' ', count(*), sum(k), sum(v)) FROM mine) FROM kept};
	is($subscriber->safe_psql('postgres', $sums), $node->safe_psql('postgres', $sums), 'the tables are the same');
	cmp_ok($reached->($subscriber), '<', $reached->($node), 'sequences go on unseen');
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s REFRESH SEQUENCES');
	wait_until($subscriber, 'SELECT last_value >= ' . $reached->($node) . ' FROM next');
	wait_until($subscriber, q{SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel});
	is($subscriber->psql('postgres', "INSERT INTO kept SELECT n, 0, n FROM (SELECT nextval('next') AS n FROM generate_series(1, 100)) q"), 0,
		'copied again, they give keys that are new there');
	indexes_good($subscriber, 'subscriber');
	is(unexpected_in_log($subscriber, 0, qr/terminating (?:walsender|logical replication)/), '', 'no errors in its log');
	$subscriber->stop;

	# ---- auto_explain.log_extension_options ----

	my $explained = sub {
		my ($options, $format, $analyze) = @_;
		my (undef, undef, $err) = $node->psql('postgres', <<"SQL");
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_level = notice;
SET auto_explain.log_analyze = $analyze;
SET auto_explain.log_timing = off;
SET auto_explain.log_format = $format;
SET client_min_messages = notice;
SET auto_explain.log_extension_options = '$options';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT v FROM kept WHERE k = 50;
SQL
		return $err;
	};
	like($explained->('learnedbtree', 'text', 'on'), qr/Index Scan using kept_pkey.*\n.*Index Cond.*\n(?:.*\n)?.*Learned B-Tree: lookups=1 verified=1$/m, 'auto_explain has our line');
	like($explained->('learnedbtree', 'json', 'on'), qr/"Learned B-Tree": \{\s*"Lookups": 1,/, 'and our group');
	unlike($explained->($_, 'text', 'on'), qr/Learned B-Tree|ERROR/, "not with '$_'") foreach '', 'learnedbtree off';
	unlike($explained->('learnedbtree', 'text', 'off'), qr/ERROR/, 'nothing is wrong without log_analyze');
	like($explained->('learnedbtree 7', 'text', 'on'), qr/ERROR: .*"learnedbtree" requires a Boolean value/, 'a bad value is refused');
}

is(unexpected_in_log($node, 0, qr/requires a Boolean value|terminating (?:walsender|logical replication)/), '', 'no errors in the log');
$node->stop;
done_testing();
