# How trainings stay out of the way: large first uses are the worker's, workers are few and visit databases in turn,
# memory is bounded, and indexes without a model are not asked about again at every scan.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('training');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
learnedbtree.naptime = 50ms
max_logical_replication_workers = 0
max_worker_processes = 6
max_parallel_workers = 0
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]); }

# A table of so many rows, and a btree index on it of about a leaf for each 30.
my $table = <<'SQL';
CREATE TABLE %s (k int8 NOT NULL);
INSERT INTO %1$s SELECT i * 7 FROM generate_series(1, %2$s) i;
CREATE UNIQUE INDEX %1$s_k ON %1$s (k) WITH (fillfactor = 10);
VACUUM ANALYZE %1$s;
SQL
my $look = <<'SQL';
LOAD 'learnedbtree';
SET learnedbtree.btree_indexes = 'all';
SET enable_seqscan = off;
SQL

# ---- the first use of a large index ----

sql(sprintf($table, 'large', 400000) . sprintf($table, 'small', 40000));
my $session = $node->background_psql('postgres');
$session->query_safe($look . 'SELECT count(*) FROM small WHERE k = 7;');
is($session->query_safe("SELECT state FROM learnedbtree_model('small_k')"), 'ready', 'a small index is trained by its first use');
my ($leaves, $blocks) = split /\|/, sql("SELECT leaves, pg_relation_size('large_k') / 8192 FROM learnedbtree_indexes WHERE indexrelid = 'large_k'::regclass");
cmp_ok($blocks, '>', 8192, 'the other index is large');
is($session->query_safe('SELECT count(*) FROM large WHERE k = 7 * 4711;'), 1, 'the first lookup finds its row');
ok($node->poll_query_until('postgres', "SELECT state = 'ready' FROM learnedbtree_model('large_k')"), 'the worker trains the large one');
ok(eventually($node, "SELECT trainings = 1 FROM learnedbtree_stat WHERE indexrelname = 'large_k'"), 'once');
is($session->query_safe('SELECT sum(k) FROM large WHERE k IN (7, 70, 700, 7000);'), 7777, 'answers are right with it');
cmp_ok($session->query_safe("SELECT lookups FROM learnedbtree_stat WHERE indexrelname = 'large_k'"), '>', 0, 'and come by the model');

# A transaction's own file is nobody else's to train.
is(sql(<<"SQL") =~ s/^\n+//r, 'ready', 'a large index made by this transaction is trained here');
BEGIN;
CREATE TABLE own (k int8 NOT NULL);
CREATE UNIQUE INDEX own_k ON own (k) WITH (fillfactor = 10);
INSERT INTO own SELECT i * 7 FROM generate_series(1, 400000) i;
REINDEX INDEX own_k;
${look}SELECT FROM own WHERE k = 7;
SELECT state FROM learnedbtree_model('own_k');
ROLLBACK;
SQL

# Without a worker the query does it.
sql('ALTER SYSTEM SET learnedbtree.autotrain = off');
sql('SELECT pg_reload_conf()');
sql('REINDEX INDEX large_k');
ok($node->poll_query_until('postgres', "SELECT current_setting('learnedbtree.autotrain') = 'off'"), 'no training in the background');
is(sql("${look}SELECT count(*) FROM large WHERE k = 7 * 4711; SELECT state FROM learnedbtree_model('large_k')"), "1\nready", 'where there is no worker the first use trains');
sql('ALTER SYSTEM RESET learnedbtree.autotrain');
sql('SELECT pg_reload_conf()');

# ---- a worker for each database ----

my @databases = map { "d$_" } 1 .. 4;
foreach my $database (@databases)
{
	sql("CREATE DATABASE $database");
	sql("CREATE EXTENSION learnedbtree;\n" . sprintf($table, 'small', 40000) . "SELECT learnedbtree_train('small_k')", $database);
}

# Raise a demand in a database, where there is a model: its last leaf splits over and over.
my %before;

sub split_last { return sql($look . 'SET learnedbtree.retrain_visits = 1; INSERT INTO small SELECT max + i FROM generate_series(1, 2000) i, (SELECT max(k) FROM small) q', $_[0]); }

sub want
{
	my ($database) = @_;
	sql("SELECT learnedbtree_train('small_k')", $database);
	$before{$database} = trainings($database);
	return split_last($database);
}

sub trainings { return sql("SELECT trainings FROM learnedbtree_stat_get('small_k'::regclass)", $_[0]); }

sub is_trained { return $node->poll_query_until($_[0], "SELECT trainings > $before{$_[0]} FROM learnedbtree_stat_get('small_k'::regclass)"); }

# The worker of a database, by pid; undef where there is none, or none of which the condition holds.
sub worker_of
{
	my ($database, $condition) = (@_, 'true');
	return sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker' AND datname = '$database' AND $condition") || undef;
}

# One that does not go on (it is stopped, as it waits, so that it has no lock that others need) keeps no other database from
# its own.
my $stopped;
for (my $end = time + patience(); time < $end && !$stopped;)
{
	want('d1');
	my $pid = worker_of('d1', "wait_event_type = 'Extension'") or next;
	next unless kill('STOP', $pid);
	if ((worker_of('d1', "wait_event_type = 'Extension'") // 0) == $pid) { $stopped = $pid; }
	else { kill('CONT', $pid); }
}
ok($stopped, 'a worker for one database');
want($_) foreach @databases[ 1 .. 3 ];
ok(is_trained($_), "and one for $_") foreach @databases[ 1 .. 3 ];
is(worker_of('d1'), $stopped, 'while that one stands still');
want('d1');
is(kill('CONT', $stopped), 1, 'it goes on');
ok(is_trained('d1'), 'and serves its own database');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker'"), 'all end when there is nothing to do');

# ---- memory ----

sql(<<'SQL');
CREATE TABLE words (w text COLLATE "C", n int);
INSERT INTO words SELECT 'group ' || i / 1000 || repeat('=', 40) || md5(i::text), i FROM generate_series(1, 120000) i;
CREATE INDEX words_w ON words USING learnedbtree (w, n) WITH (fillfactor = 10);
VACUUM ANALYZE words;
SQL

# A training in a session whose maintenance_work_mem is this: what it leaves, and what the session took at most, in kB; undef
# where the kernel does not tell.
sub train_within
{
	my ($memory) = @_;
	my $s = $node->background_psql('postgres');
	my $pid = $s->query_safe('SELECT pg_backend_pid()');
	$s->query_safe("SET maintenance_work_mem = '$memory'; SELECT count(*) FROM words WHERE w = 'a' AND n = 1; " . check_sql('words_w'));
	my $before = forget_peak($pid) ? memory_of($pid, 'VmRSS') : undef;
	my $state = $s->query_safe("SELECT learnedbtree_train('words_w')");
	my $took = defined $before ? memory_of($pid, 'VmHWM') - $before : undef;
	my $model = $s->query_safe("SELECT state, leaves > 5000, separator_bytes > 0 FROM learnedbtree_model('words_w')");
	my $right = $s->query_safe('SET enable_seqscan = off; SELECT count(*) FROM generate_series(1, 120000, 100) i, LATERAL (SELECT FROM words WHERE '
		. "w = 'group ' || i / 1000 || repeat('=', 40) || md5(i::text) AND n = i) q");
	$s->quit;
	return ($model, $right, $took);
}

# The most resident memory that a process has had is from now on counted anew.  (The shared buffers that it has seen count, too;
# a check has seen all that a training will.)
sub forget_peak
{
	my ($pid) = @_;
	open(my $fh, '>', "/proc/$pid/clear_refs") or return 0;
	print $fh "5\n";
	return close($fh);
}

sub memory_of
{
	my ($pid, $what) = @_;
	return (slurp_file("/proc/$pid/status") =~ /^$what:\s+(\d+)/m)[0];
}

my ($model, $right, $took) = train_within('64MB');
is($model, 'ready|t|t', 'with memory separators are kept');
is($right, 1200, 'and the answers are right');
my $much = $took;
($model, $right, $took) = train_within('1MB');
is($model, 'ready|t|f', 'with little there are none, but a model nevertheless');
is($right, 1200, 'and the answers are right');
SKIP:
{
	skip 'the kernel does not tell the most memory of a process', 3 unless defined $took && defined $much;
	note("training took $much kB at most, and $took kB");
	cmp_ok($took, '>', 0, 'memory that is taken for a while is seen');
	cmp_ok($took, '<', 2048, 'it was within what it was given, or nearly');
	cmp_ok($much, '>', $took, 'which was less than with much');
}
sql(check_sql('words_w'));
sql('VACUUM words');

# ---- during a statement ----

# All leaves split, and nobody of us learns of it.  A long insert, in no order, moves right at every other row, and splits
# none: it says so before its end, which waits for us.
sql(<<'SQL');
CREATE TABLE halves (k int8);
INSERT INTO halves SELECT i * 100 FROM generate_series(1, 200000) i;
CREATE INDEX halves_k ON halves (k);
VACUUM ANALYZE halves;
SELECT learnedbtree_train('halves_k');
SET learnedbtree.btree_indexes = 'none';
INSERT INTO halves SELECT i * 100 + 1 FROM generate_series(1, 200000, 5) i;
SQL
my $before = sql("SELECT trained_at FROM learnedbtree_model('halves_k')");
my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');
$session->query_until(qr/started/, <<'SQL');
SELECT learnedbtree_stat_reset('halves_k'::regclass);
\echo started
INSERT INTO halves SELECT i * 7919 % 200000 * 100 + 2 FROM generate_series(1, 22000) i
	UNION ALL SELECT 1 FROM pg_advisory_lock(1);
SQL
wait_until($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'");
ok($node->poll_query_until('postgres', "SELECT trained_at > '$before' FROM learnedbtree_model('halves_k')"), 'a long insert has its index trained before it ends');
$holder->quit;
$session->query_safe('SELECT pg_stat_force_next_flush()');
is(sql("SELECT inserts_moved > 1000, splits FROM learnedbtree_stat WHERE indexrelname = 'halves_k'"), 't|0', 'because it moves right, not because leaves split');

# ---- pauses ----

# A key between a leaf's separator and its first item is not proven, and a training finds the same leaves: it waits, longer each
# time.
sql(<<'SQL');
ALTER SYSTEM SET learnedbtree.retrain_visits = 1;
SELECT pg_reload_conf();
CREATE TABLE gaps (k int8);
INSERT INTO gaps SELECT i * 10 FROM generate_series(1, 20000) i;
CREATE INDEX gaps_k ON gaps USING learnedbtree (k) WITH (fillfactor = 10);
CREATE INDEX gaps_b ON gaps (k) WITH (fillfactor = 10); -- with the same leaves
CREATE EXTENSION pageinspect;
CREATE TABLE firsts AS SELECT DISTINCT ('x' || (SELECT string_agg(b, '' ORDER BY n DESC) FROM string_to_table(i.data, ' ') WITH ORDINALITY s (b, n)))::bit(64)::int8 AS k
	FROM generate_series(1, pg_relation_size('gaps_b') / current_setting('block_size')::int - 1) b, bt_page_items('gaps_b', b) i
	WHERE i.data <> '' AND (SELECT btpo_level FROM bt_page_stats('gaps_b', b)) = 1;
DROP INDEX gaps_b;
DELETE FROM gaps WHERE k IN (SELECT k FROM firsts);
SQL
sql('VACUUM ANALYZE gaps');
my $misses = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum((SELECT count(*) FROM gaps WHERE k = f.k + 5)) FROM firsts f; '
  . 'SELECT count((SELECT k FROM gaps WHERE k = i * 10)) FROM generate_series(1, 20000) i';
my $begun = time;
my $trainings = 0;
for (my $end = $begun + patience(); $trainings < 3 && time < $end; sleep(0.1))
{
	sql($misses);
	$trainings = sql("SELECT trainings - 1 FROM learnedbtree_stat WHERE indexrelname = 'gaps_k'");
}
cmp_ok(sql("SELECT fallback_low FROM learnedbtree_stat WHERE indexrelname = 'gaps_k'"), '>', 1000, 'predictions fail');
cmp_ok($trainings, '>=', 3, 'and have the index trained');
cmp_ok(time - $begun, '>', 3, 'a second after the first time, and two after the second');
sql('ALTER SYSTEM RESET learnedbtree.retrain_visits');
sql('SELECT pg_reload_conf()');

# ---- fewer slots than databases ----

# A worker that ends looks for demands once more after it has given up its place, and the next one may not get its slot yet:
# then the demand waits for the index's next use.
$session->quit;
$node->append_conf('postgresql.conf', "max_worker_processes = 1\nmax_logical_replication_workers = 0\n");
$node->restart;
my $log = -s $node->logfile;

# One that waits for a lock has the slot: a large index stays without a model until then, and works.
$session = $node->background_psql('d1');
$session->query_safe($look . "SET learnedbtree.retrain_visits = 1; BEGIN; LOCK small; SELECT learnedbtree_train('small_k')");
for (my $end = time + patience(); time < $end && !worker_of('d1', "wait_event_type = 'Extension'"); sleep 0.1)
{
	$session->query_safe('INSERT INTO small SELECT max + i FROM generate_series(1, 2000) i, (SELECT max(k) FROM small) q');
}
my $use = "${look}SELECT count(*) FROM large WHERE k = 7 * 4711";
foreach my $second (1 .. 3)
{
	is(sql($use), 1, "no slot: an answer, $second");
	sleep 1;
}
is(sql("SELECT state FROM learnedbtree_model('large_k')"), 'untrained', 'no slot: a large index is not trained by a statement');
$session->quit;
ok(eventually($node, "SELECT state = 'ready' FROM learnedbtree_model('large_k')", again => sub { sql($use) }), 'but by the worker, when it can come');

my $served = 0;
foreach my $round (1 .. 5)
{
	foreach my $database (@databases)
	{
		want($database);
		for (my $end = time + patience(); time < $end && trainings($database) <= $before{$database}; sleep 0.1)
		{
			split_last($database);
		}
		$served++ if trainings($database) > $before{$database};
	}
}
is($served, 5 * @databases, 'with one slot all databases are served');
my @told = slurp_file($node->logfile, $log) =~ /out of background worker slots/g;
cmp_ok(scalar(@told), '<=', 1, 'and the log says at most once that it was taken');

$node->stop;
done_testing();
