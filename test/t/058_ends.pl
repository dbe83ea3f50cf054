# Scans by the snapshot of the planner's look for a column's end see all rows that are not dead to all, where many are; so do
# those on a standby, where nobody marks entries of dead rows.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir;
system("make -s -C '$FindBin::RealBin/../snapshot' PG_CONFIG=pg_config TO='$folder' >'$folder/build.log' 2>&1") == 0
  or die 'the module does not build: ' . slurp_file("$folder/build.log");
chmod 0755, $folder;

my $node = PostgreSQL::Test::Cluster->new('ends');
$node->init(allows_streaming => 1);
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
session_preload_libraries = 'learnedbtree'
learnedbtree.btree_indexes = 'e_b'
learnedbtree.min_leaves = 0
CONF
$node->start;
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION learnedbtree;
CREATE FUNCTION rows_not_vacuumable(index regclass, backward bool, key bool, tuples bool) RETURNS int8 LANGUAGE C AS '$folder/snapshot';
CREATE TABLE e (a int8, b int8 NOT NULL);
INSERT INTO e SELECT i, i FROM generate_series(1, 100000) i;
CREATE INDEX e_a ON e USING learnedbtree (a);
CREATE INDEX e_b ON e (b);
SELECT learnedbtree_train('e_b');
SQL
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

# What the scans see, from each side.  (A statement that uses the table has a btree index served.)  The second time, entries
# of dead rows have been marked.
sub seen
{
	my ($on, $index) = @_;
	return join(' ', map {
		$on->safe_psql('postgres', 'DO $$ BEGIN PERFORM FROM e LIMIT 0; END $$;'
			  . "SELECT string_agg(rows_not_vacuumable('$index', b, k, t)::text, ',' ORDER BY b, k, t) "
			  . "FROM unnest('{f,t}'::bool[]) b, unnest('{f,t}'::bool[]) k, unnest('{f,t}'::bool[]) t");
	} 1 .. 2);
}

my @steps = (
	[ 'dead in the middle', 'DELETE FROM e WHERE a > 1000 AND a <= 99000', 2000 ],
	[ 'one row at each end', 'DELETE FROM e WHERE a > 1 AND a < 100000', 2 ],
	[ 'dead at both ends', 'UPDATE e SET a = 50000, b = 50000 WHERE a = 1; DELETE FROM e WHERE a > 50000', 1 ]);
foreach my $step (@steps)
{
	my ($name, $sql, $rows) = @$step;
	$node->safe_psql('postgres', $sql);
	is(seen($node, $_), join(' ', (join(',', ($rows) x 8)) x 2), "$name, $_") foreach 'e_a', 'e_b';
}
$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
is(seen($standby, $_), join(' ', (join(',', (1) x 8)) x 2), "$_ on a standby") foreach 'e_a', 'e_b';
cmp_ok($node->safe_psql('postgres', "SELECT sum(lookups) FROM learnedbtree_stat WHERE indexrelname ~ '^e_[ab]\$'"), '>=', 96, 'our engine has served the scans');
$standby->stop;

# ---- keys beyond what the model knows ----

# They are looked for right of its last leaf once, not each time.
$node->safe_psql('postgres', <<'SQL');
ALTER SYSTEM SET learnedbtree.autotrain = off;
SELECT pg_reload_conf();
CREATE TABLE grows (k int8 PRIMARY KEY);
INSERT INTO grows SELECT generate_series(1, 100000);
SELECT learnedbtree_train('grows_pkey');
INSERT INTO grows SELECT generate_series(100001, 200000);
SQL
my %hits;
foreach my $way (qw(none all))
{
	my $plan = $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = '$way'; SET learnedbtree.lookahead_rows = 0; SET enable_seqscan = off; SET enable_bitmapscan = off; "
		  . 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum((SELECT k FROM grows WHERE k = g)) FROM generate_series(150001, 199000, 490) g');
	($hits{$way}) = $plan =~ /Buffers: shared hit=(\d+)/;
}
cmp_ok($hits{all}, '<=', $hits{none} + 8, 'a failure is remembered');
$node->stop;
done_testing();
