# Right after a restart: a scan that begins before there is a model, as the worker is about to make one, takes it up when
# it is there, at its next leaf or probe: ranges in both directions, lists, and joins.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('model_comes');
$node->init;
configure_loops($node);
$node->append_conf('postgresql.conf', "shared_buffers = 8MB\n");
$node->start;
# 64 MB: the first training is left to a worker.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE t AS SELECT (g * 7919) % 330000 AS k, g AS v FROM generate_series(1::int8, 330000) g;
CREATE UNIQUE INDEX t_k ON t (k) WITH (fillfactor = 10);
CREATE TABLE probe AS SELECT g AS n, (g * 104729::int8) % 330000 AS k FROM generate_series(1, 6000) g;
VACUUM ANALYZE t, probe;
SQL
cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('t_k') / 8192"), '>', 8192, 'the index is a large one');

my %queries = (
	'a range' => 'SELECT k, v FROM t WHERE k > 5000 ORDER BY k',
	'a range backward' => 'SELECT k FROM t WHERE k < 300000 ORDER BY k DESC',
	'a list' => 'SELECT k, v FROM t WHERE k = ANY (ARRAY(SELECT k FROM probe)) ORDER BY k',
	'a join' => 'SELECT p.n, t.v FROM (SELECT * FROM probe ORDER BY n OFFSET 0) p JOIN t ON t.k = p.k');
my $counts = 'SELECT fallback_no_model, verified, prefetched, delegated FROM learnedbtree_stat WHERE indexrelname = $$t_k$$';

foreach my $what (sort keys %queries)
{
	my $answer = $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = none; BEGIN; DECLARE c CURSOR FOR $queries{$what}; FETCH 4000 FROM c");
	my ($got, $without, $verified, $prefetched, $delegated);
	# On a busy machine the worker may be the first; then once more, and so on.
	for (my $tries = 0; $tries < 30 && !$without; $tries++)
	{
		$node->restart;
		my $session = $node->background_psql('postgres', on_error_stop => 1);
		my $first = $session->query_safe("BEGIN; DECLARE c CURSOR FOR $queries{$what}; FETCH 3 FROM c");
		$node->poll_query_until('postgres', "SELECT state = 'ready' FROM learnedbtree_model('t_k')") or die "$what: no model comes";
		$got = "$first\n" . $session->query_safe('FETCH 3997 FROM c; COMMIT');
		$session->quit;
		($without, $verified, $prefetched, $delegated) = split /\|/, $node->safe_psql('postgres', $counts);
	}
	is($got, $answer, "$what: the answer");
	cmp_ok($without, '>', 0, "$what: it began without one");
	is($delegated, '0', "$what: and was not left to btree");
	cmp_ok($prefetched, '>', 0, "$what: leaves are read ahead from then on");
	cmp_ok($verified, '>', 500, "$what: and lookups are predicted") if $what =~ /list|join/;
	is($node->safe_psql('postgres', "SELECT visits_saved >= 0 FROM learnedbtree_indexes WHERE indexname = 't_k'"), 't', "$what: nothing was lost by descents");
}

# A session begins with a comparison that runs a query, under nbtree's lock of a page: it does without shared memory
# there, and has it in the next statement.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION compare_odd(a int8, b int8) RETURNS int4 LANGUAGE plpgsql AS $$
BEGIN
    PERFORM v FROM public.t WHERE k = a;
    RETURN btint8cmp(a, b);
END $$;
CREATE OPERATOR CLASS odd_ops FOR TYPE int8 USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 compare_odd(int8, int8);
CREATE TABLE odd (k int8);
CREATE INDEX odd_k ON odd (k odd_ops);
SELECT learnedbtree_train('t_k');
SQL
$node->safe_psql('postgres', 'SELECT learnedbtree_stat_reset()');
$node->safe_psql('postgres', "INSERT INTO odd SELECT generate_series(1, 50);\n" . "SELECT v FROM t WHERE k = 77;\n" x 100);
# A session reports its last counts when it exits, which may be after psql has.
ok($node->poll_query_until('postgres', 'SELECT verified >= 100 FROM learnedbtree_stat WHERE indexrelname = $$t_k$$'), 'after a comparison under a lock, lookups are predicted');
$node->stop;
done_testing();
