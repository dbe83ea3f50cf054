# A restart or crash loses the models; the first lookup makes a new one, and answers are right throughout.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Sums over lookups, a range and a backward range by the index, to compare with the same by sequential scan.
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $by_table = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;';
my $question = <<'SQL';
SELECT (SELECT sum((SELECT count(*) FROM t WHERE k = g * 3)) FROM generate_series(1, 200) g),
	(SELECT concat_ws(' ', count(*), min(k), max(k), sum(k)) FROM t WHERE k BETWEEN 500 AND 9000),
	(SELECT string_agg(k::text, ',') FROM (SELECT k FROM t WHERE k < 7000 ORDER BY k DESC LIMIT 100) q)
SQL

my $node = new_node('restart', allows_streaming => 1);
$node->append_conf('postgresql.conf', "fsync = on\n");
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (k int8);
INSERT INTO t SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
CREATE UNLOGGED TABLE u (k int4);
INSERT INTO u SELECT g FROM generate_series(1, 5000) g;
CREATE INDEX u_k ON u USING learnedbtree (k);
VACUUM ANALYZE t;
CHECKPOINT;
SQL

sub same_answers
{
	my ($what) = @_;
	$node->safe_psql('postgres', "SELECT learnedbtree_stat_reset('t_k')");
	is($node->safe_psql('postgres', "$by_index $question"), $node->safe_psql('postgres', "$by_table $question"),
		"$what: the answers are right");
	is(model_state($node, 't_k'), 'ready', "$what: the lookups trained a model");
	is(stat_of($node, 't_k', 'verified > 0 AND verified >= lookups * 0.9'), 't', "$what: by prediction");
	is($node->psql('postgres', check_sql('t_k')), 0, "$what: amcheck is content");
}

is(model_state($node, 't_k'), 'ready', 'the build trained a model');
same_answers('after the build');

$node->restart;
is(model_state($node, 't_k'), 'untrained', 'after a restart there is no model');
is($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()'), '0', 'and no memory is taken');
same_answers('after a restart');

# Crash in the middle of inserts that split leaves everywhere.
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_until(qr/started/, <<'SQL');
\echo started
DO $$ BEGIN FOR i IN 1..100000 LOOP
	INSERT INTO t SELECT (g * 7919 + i) % 20000 FROM generate_series(1, 500) g;
	COMMIT;
END LOOP; END $$;
SQL
wait_until($node, 'SELECT count(*) > 45000 FROM t');
$node->stop('immediate');
eval { $writer->quit; };
$node->start;
is(model_state($node, 't_k'), 'untrained', 'after a crash there is no model');
same_answers('after a crash');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '>', 45000, 'what was committed is there');

# The unlogged index starts empty, and learns again when there is something to learn.
is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM u WHERE k = 5"), '0', 'the unlogged index was reset');
$node->safe_psql('postgres', 'INSERT INTO u SELECT g FROM generate_series(1, 50000) g');
is($node->safe_psql('postgres', "$by_index SELECT sum((SELECT count(*) FROM u WHERE k = g)) FROM generate_series(1, 2000) g"),
	'2000', 'the unlogged index answers');
is(model_state($node, 'u_k'), 'ready', 'the unlogged index has a model again');
is($node->psql('postgres', check_sql('u_k')), 0, 'amcheck is content with the unlogged index');

$node->stop;
done_testing();
