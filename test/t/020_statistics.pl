# Counts: what restarts and crashes leave of them, resets, what is gone, many writers, standbys.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('statistics', allows_streaming => 1);

sub sql { return $node->safe_psql('postgres', $_[0]); }

# Look so many keys up by an index.
sub lookup_query { return "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum((SELECT count(*) FROM $_[0] WHERE k = g)) FROM generate_series(1, $_[1]) g;"; }
sub look_up { return sql(lookup_query(@_)); }

# Columns of learnedbtree_stat when all sessions have ended, which add what they have counted, and forget what they
# have dropped, at the latest then.
sub stat_now
{
	my ($index, $columns) = @_;
	settle($node);
	return stat_of($node, $index, $columns);
}
sub lookups { return stat_now("$_[0]_k", 'lookups'); }

sql(<<'SQL');
CREATE TABLE t (k int8);
INSERT INTO t SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING learnedbtree (k);
CREATE TABLE u (k int8);
INSERT INTO u SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX u_k ON u USING learnedbtree (k);
SQL

# ---- resets ----

look_up('t', 300);
look_up('u', 20);
is(stat_now('t_k', 'lookups, verified, trainings, stats_reset'), '300|300|1|', 'what is counted');
sql("SELECT learnedbtree_stat_reset('t_k')");
is(stat_now('t_k', "lookups, trainings, last_trained, stats_reset BETWEEN now() - interval '5 minutes' AND now()"), '0|0||t', 'a reset');
is(lookups('u'), '20', 'the other index keeps its counts');
my $reset = stat_now('t_k', 'stats_reset');
sql("SELECT learnedbtree_stat_reset('t'), learnedbtree_stat_reset(0)");
is(lookups('u'), '20', 'what is not an index of ours is not reset');
look_up('t', 5);
is(lookups('t'), '5', 'counting begins anew');
sql('SELECT learnedbtree_stat_reset()');
sql('CREATE INDEX t_new ON t USING learnedbtree (k, k)');
is(sql('SELECT count(*), count(DISTINCT stats_reset), sum(lookups) FROM learnedbtree_stat'), '3|1|0', 'the whole database is reset');
is(stat_now('t_k', "stats_reset > '$reset'"), 't', 'later than the index before');
sql('DROP INDEX t_new');

# ---- the server's own counts ----

SKIP:
{
	skip 'the server has no pg_stat_io', 1 if $node->pg_version < 16;
	my $hits = q{SELECT hits FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation' AND context = 'normal'};
	settle($node);
	my $before = sql($hits);
	# Each in another block of the table than the one before, which may be pinned.
	sql('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT sum((SELECT count(*) FROM t WHERE k = 1 + g * 7919 % 20000)) FROM generate_series(1, 5000) g');
	settle($node);
	cmp_ok(sql($hits) - $before, '>=', 10000, 'hits of leaves and rows that a model or a hint has found');
}

# ---- sessions that commit nothing ----

sql('SELECT learnedbtree_stat_reset()');
my $reader = $node->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
$reader->query_safe('BEGIN');
$reader->query_safe('SELECT count(*) FROM t WHERE k = 77');
is(stat_of($node, 't_k', 'lookups'), '1', 'a statement counts at its end, though its transaction goes on');
$reader->query_safe('ROLLBACK');
$reader->quit;

# ---- what is gone ----

isnt($node->psql('postgres', "LOAD 'learnedbtree';\nDROP DATABASE postgres"), 0, 'the database at hand cannot be dropped');
is(lookups('t') . sql(" SELECT (learnedbtree_model('t_k')).state"), '1ready', '... and keeps counts and models');
sql('SELECT learnedbtree_stat_reset()');

sql('CREATE TABLE gone (k int8); INSERT INTO gone SELECT g FROM generate_series(1, 1000) g; CREATE INDEX gone_k ON gone USING learnedbtree (k)');
look_up('gone', 1);
sql('REINDEX INDEX gone_k');
is(stat_now('gone_k', 'lookups, trainings'), '1|2', 'REINDEX keeps counts');
my $oid = sql("SELECT 'gone_k'::regclass::oid");
is(sql("SELECT lookups FROM learnedbtree_stat_get($oid)"), '1', 'it is so by OID, too');
sql("LOAD 'learnedbtree'; DROP TABLE gone");	# only sessions with the library see drops
settle($node);
is(sql("SELECT lookups, trainings FROM learnedbtree_stat_get($oid)"), '0|0', 'none when the index was dropped');

# ---- a database again ----

# Under the same OID, as a copy of the same files: a model of the first must not be taken for one of the second, which may
# have been before it.
my $copy = q{CREATE DATABASE copy TEMPLATE original OID = 50000 STRATEGY file_copy};
my $state = q{SELECT state FROM learnedbtree_model('o_k')};
sql('CREATE DATABASE original');
$node->safe_psql('original', 'CREATE EXTENSION learnedbtree; CREATE TABLE o AS SELECT g AS k FROM generate_series(1, 1000) g; CREATE INDEX o_k ON o (k)');
sql($copy);
is($node->safe_psql('copy', "SET learnedbtree.btree_indexes = 'o_k'; SELECT learnedbtree_train('o_k'); $state"), "\nready", 'a copy of a database has its models');
sql('DROP DATABASE copy');    # from 17 on these sessions have no library
sql($copy);
is($node->safe_psql('copy', "SET learnedbtree.btree_indexes = 'o_k'; $state"), 'untrained', 'another one of this OID has none of these');
sql('DROP DATABASE copy');

# ---- many writers ----

my $script = $node->basedir . '/lookup.sql';
append_to_file($script, "SET enable_seqscan = off;\nSELECT count(*) FROM t WHERE k = 77;\n");
$node->command_ok([ 'pgbench', '-n', '-C', '-c', '8', '-j', '2', '-t', '25', '-f', $script, $node->connstr('postgres') ],
	'eight clients that connect for each lookup');
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '25', '-f', $script, $node->connstr('postgres') ],
	'eight clients that stay');
is(lookups('t'), '400', 'each has been counted once');

# ---- a standby counts for itself ----

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
is(stat_of($standby, 't_k', 'lookups'), '0', 'a standby starts from zero');
is($standby->safe_psql('postgres', lookup_query('t', 30)), '30', 'it looks up');
settle($standby);
is(stat_of($standby, 't_k', 'lookups'), '30', 'and counts');
is(lookups('t'), '400', 'for itself');
sql($copy);
$node->wait_for_catchup($standby);
my $train = "SET learnedbtree.btree_indexes = 'o_k'; SELECT learnedbtree_train('o_k'); ";
is($standby->safe_psql('copy', "$train $state"), "\nready", 'it has models of a copy of a database');
sql('DROP DATABASE copy');
sql($copy);
$node->wait_for_catchup($standby);
is($standby->safe_psql('copy', "SET learnedbtree.btree_indexes = 'o_k'; $state"), 'untrained', 'none of these for another one of its OID, though it sees no command');
$standby->stop;

# ---- restarts and crashes ----

foreach my $mode ('fast', 'immediate')
{
	look_up('t', 10);
	my $session = $node->background_psql('postgres');
	$session->query_safe('BEGIN;' . lookup_query('t', 40));
	$node->stop($mode);
	$node->start;
	eval { $session->quit };
	is(lookups('t'), '0', "$mode: counting begins anew");
	is(look_up('t', 7), '7', "$mode: lookups go on");
	is(lookups('t'), '7', "$mode: and are counted");
}

# ---- the view ----

is(sql('SELECT count(*), bool_and(s.relid = a.relid AND s.relname = a.relname AND s.indexrelname = a.indexrelname AND s.schemaname = a.schemaname) FROM learnedbtree_stat s JOIN pg_stat_all_indexes a USING (indexrelid)'),
	'2|t', 'learnedbtree_stat joins with pg_stat_all_indexes');

$node->stop;
done_testing();
