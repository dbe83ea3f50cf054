# Lookups, ranges and inserts go on while models are trained, indexes rebuilt and dropped, and training
# queries cancelled.  No errors, no wrong answers; the memory of superseded models is given back, with many
# idle sessions about that have used them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = 6;
my $node = new_node('train');
$node->append_conf('postgresql.conf', "session_preload_libraries = 'learnedbtree'\n");	# sessions with the library see drops
$node->reload;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (k int8 NOT NULL, bk int8 NOT NULL);
INSERT INTO t SELECT g * 10, g * 10 FROM generate_series(1, 40000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
CREATE INDEX t_bk ON t USING btree (bk);
CREATE TABLE other (k int4);
INSERT INTO other SELECT g FROM generate_series(1, 30000) g;
CREATE INDEX other_k ON other USING learnedbtree (k) WITH (fillfactor = 10);
VACUUM ANALYZE t, other;

-- One snapshot: lookups, a range either way and a count, by one index and by the other.
CREATE FUNCTION compare(n int8) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	answers text[] := '{}';
	answer text;
	key text;
BEGIN
	FOREACH key IN ARRAY ARRAY['k', 'bk'] LOOP
		EXECUTE replace('SELECT concat_ws('' '', (SELECT count(*) FROM t WHERE @ = $1),
			(SELECT string_agg(@::text, '','') FROM (SELECT @ FROM t WHERE @ > $1 ORDER BY @ LIMIT 30) q),
			(SELECT string_agg(@::text, '','') FROM (SELECT @ FROM t WHERE @ <= $1 ORDER BY @ DESC LIMIT 30) q))', '@', key)
			INTO answer USING n;
		answers := answers || answer;
	END LOOP;
	IF answers[1] <> answers[2] THEN
		RAISE EXCEPTION 'wrong answer for %', n USING DETAIL = answers[1] || ' -- ' || answers[2];
	END IF;
END $$;
CREATE FUNCTION lookup_other(n int) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF (SELECT count(*) FROM other WHERE k = n) <> 1 THEN RAISE EXCEPTION 'wrong answer for %', n; END IF;
END $$;
SQL

# Sessions that have seen models, and then do nothing.
my @idle = map { $node->background_psql('postgres') } 1 .. 12;
$_->query_safe('SET enable_seqscan = off; SELECT compare(777), lookup_other(777);') foreach @idle;

sub in_a_loop
{
	my ($sql, $on_error_stop) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => $on_error_stop);
	$session->query_until(qr/started/, "\\echo started\n$sql\n");
	return $session;
}

my $train = in_a_loop("DO \$\$ DECLARE stop timestamptz := clock_timestamp() + interval '$seconds s'; BEGIN "
	  . "WHILE clock_timestamp() < stop LOOP BEGIN EXECUTE \$e\$SELECT learnedbtree_train('t_k')\$e\$; "
	  . "EXCEPTION WHEN undefined_object OR object_not_in_prerequisite_state THEN NULL; END; COMMIT; END LOOP; END \$\$;", 1);
# (REINDEX CONCURRENTLY may replace the index between the name's look-up and the lock: then training is refused.)
# Training under a short timeout, over and over: cancelled at any point, it must leave everything in order.  (The server takes
# a timeout that ends with a statement for a request, when the next one begins.)
my $briefly = "SELECT set_config('statement_timeout', 1 + floor(random() * 4) || 'ms', false) \\; "
  . "SELECT count(learnedbtree_train('t_k')) FROM generate_series(1, 100)\n\\g /dev/null\n";
my $cancelled = in_a_loop($briefly x 200, 0);
my $reindex = in_a_loop(join('', map { "REINDEX INDEX CONCURRENTLY t_k;\nSELECT pg_sleep(0.2) \\g /dev/null\n" } 1 .. 10), 1);
my $rebuild = in_a_loop(join('', map { "DROP INDEX other_k;\nCREATE INDEX other_k ON other USING learnedbtree (k) WITH (fillfactor = 10);\n"
	  . "SELECT pg_sleep(0.1) \\g /dev/null\n" } 1 .. 40), 1);

my %files = (
	'007_compare@5' => "\\set n random(0, 400000)\nSELECT compare(:n);",
	'007_other@3' => "\\set n random(1, 30000)\nSELECT lookup_other(:n);",
	'007_insert@2' => "\\set n random(0, 400000)\nINSERT INTO t SELECT :n + g, :n + g FROM generate_series(1, 3) g;",
	'007_delete@1' => "\\set n random(0, 400000)\nDELETE FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t WHERE k BETWEEN :n AND :n + 30 FOR UPDATE SKIP LOCKED));");
{
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off';
	$node->pgbench("--no-vacuum --client=4 --jobs=2 --time=$seconds --random-seed=7", 0, [qr/actually processed/],
		[qr/^(?!.*(ERROR|wrong answer))/s], 'no errors and no wrong answers', \%files);
}
foreach my $session ($train, $reindex, $rebuild)
{
	my ($output, $error) = $session->query('SELECT 1');
	is($session->{stderr}, '', 'a session that trained or rebuilt had no errors');
	$session->quit;
}
$cancelled->query('SELECT 1');
like($cancelled->{stderr}, qr/statement timeout/, 'training was cancelled');
my $complaints = join("\n", grep { !/statement timeout|user request|is not valid|does not exist|^HINT|^\s*$/ } split(/\n/, $cancelled->{stderr}));
is($complaints, '', '... without further errors');
$cancelled->quit;

is($node->psql('postgres', check_sql('t_k', 'other_k')), 0,
	'amcheck is content with both indexes');
$node->safe_psql('postgres', "SELECT learnedbtree_train('t_k'), learnedbtree_train('other_k')");
my $memory = 'SELECT learnedbtree_model_memory() = sum((learnedbtree_model(indexrelid)).bytes) FROM learnedbtree_stat';
# (What was trained between the drop by REINDEX and its commit goes with the end of a worker, which this insert brings.)
$node->safe_psql('postgres', 'SET learnedbtree.retrain_visits = 0; INSERT INTO t SELECT n, n FROM generate_series(1, 2500) g, mod(g, 999) n');
ok(eventually($node, $memory), 'superseded models are freed, with idle sessions about')
  or diag($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory(), (learnedbtree_model(indexrelid)).* FROM learnedbtree_stat'));
# (On a slow machine the last REINDEX ends after pgbench: its index needs lookups, too.)
$node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SELECT compare(g * 1999) FROM generate_series(1, 200) g');
is(stat_of($node, 't_k', 'verified > lookups * 0.8 AND lookups >= 600 AND trainings > 1'), 't',
	'predictions were in use') or diag(stat_of($node, 't_k', '*'));

$_->query_safe('SELECT compare(777), lookup_other(777);') foreach @idle;
pass('the idle sessions go on with the new models');
$_->quit foreach @idle;

$node->safe_psql('postgres', 'DROP TABLE t, other');
is($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()'), '0', 'dropped indexes leave nothing behind');

$node->stop;
done_testing();
