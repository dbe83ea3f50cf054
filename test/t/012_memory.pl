# The memory of models, with hundreds of idle sessions that have used them: what is superseded is freed at
# once, shared memory segments do not pile up, and the cap holds: the least recently used model goes first,
# its index still answers, and gets a model again when there is room.  And a session keeps nothing of relations that were
# dropped while it missed invalidations.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $idle = 200;
my $indexes = 12;

# Segments that are files below the data folder are this server's and no other's.
my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', "max_connections = 250\nmax_prepared_transactions = 2\ndynamic_shared_memory_type = mmap\n");
# Sessions with the library see drops.
$node->append_conf('postgresql.conf', "session_preload_libraries = 'learnedbtree'\n");
$node->start;
my $columns = join(', ', map { "c$_ int4" } 1 .. $indexes);
my $values = join(', ', map { "g * $_" } 1 .. $indexes);
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION learnedbtree;
CREATE TABLE t (k int8, j int8);
INSERT INTO t SELECT g * 10, g FROM generate_series(1, 60000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
CREATE INDEX t_j ON t USING learnedbtree (j) WITH (fillfactor = 10);
CREATE TABLE many ($columns);
INSERT INTO many SELECT $values FROM generate_series(1, 20000) g;
VACUUM ANALYZE t, many;
SQL

sub segments
{
	my @sizes = map { -s $_ // 0 } glob($node->data_dir . '/pg_dynshmem/*');
	my $total = 0;
	$total += $_ foreach @sizes;
	return (scalar(@sizes), $total);
}

# In one statement: a training elsewhere is not to come between.
my $balance =
  'SELECT learnedbtree_model_memory() - sum((learnedbtree_model(indexrelid)).bytes) FROM learnedbtree_stat';
my $uses = 'SELECT (SELECT count(*) FROM t WHERE k = 777 * 10), (SELECT sum(k) FROM t WHERE j BETWEEN 500 AND 520)';

# ---- sessions that have used the models, and then do nothing ----

my $folder = PostgreSQL::Test::Utils::tempdir;
append_to_file("$folder/idle", "SET application_name = 'idle';\n$uses;\n\\sleep 600 s\n");
my ($out, $err) = ('', '');
local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off';
my $sleepers;

END
{
	local $?;
	$sleepers->kill_kill if $sleepers;
}
$sleepers = IPC::Run::start([ $node->installed_command('pgbench'), '--no-vacuum', "--client=$idle", '--jobs=2',
		'--transactions=1', '-f', "$folder/idle", '-h', $node->host, '-p', $node->port, 'postgres' ],
	'<', \'', '>', \$out, '2>', \$err, IPC::Run::timeout(600));
my $count_idle = "SELECT count(*) = $idle FROM pg_stat_activity WHERE application_name = 'idle' AND state = 'idle' "
  . 'AND query = ' . "\$q\$$uses;\$q\$";
wait_until($node, $count_idle);
my @awake = map { $node->background_psql('postgres') } 1 .. 5;
my $answer = $awake[0]->query_safe($uses);
is($_->query_safe($uses), $answer, 'a session uses the models') foreach @awake[ 1 .. 4 ];
is($node->safe_psql('postgres', $balance), '0', "$idle idle sessions: memory holds one model an index");

sub train_many
{
	my ($times) = @_;
	return $node->safe_psql('postgres', <<"SQL");
DO \$\$ BEGIN FOR i IN 1 .. $times LOOP
	PERFORM learnedbtree_train('t_k'), learnedbtree_train('t_j');
	COMMIT;
	IF ($balance) <> 0 THEN RAISE EXCEPTION 'superseded models have not been freed'; END IF;
END LOOP; END \$\$;
SQL
}

train_many(50);
my ($segments, $total) = segments();
note("$segments segments, $total bytes");
cmp_ok($total, '>', 0, 'segments are seen');
train_many(400);
foreach my $i (1 .. 12)
{
	$node->safe_psql('postgres', 'REINDEX INDEX t_k');
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_j') if $i % 4 == 0;
	$node->safe_psql('postgres', 'CREATE INDEX extra ON t USING learnedbtree (j) WITH (fillfactor = 10)');
	$node->safe_psql('postgres', 'DROP INDEX extra');
	my $difference = $node->safe_psql('postgres', $balance);
	is($difference, '0', "rebuilt and dropped, time $i: memory holds one model an index")
	  if $i % 4 == 0 || $difference ne '0';
}
my ($segments_later, $total_later) = segments();
note("$segments_later segments, $total_later bytes");
cmp_ok($segments_later, '<=', $segments + 1, 'segments have not piled up');
cmp_ok($total_later, '<=', $total + 2 * 1024 * 1024, 'nor grown by more than the next segment');
is($node->safe_psql('postgres', $count_idle), 't', 'all the idle sessions have been there throughout');
is($_->query_safe($uses), $answer, 'a session goes on with the new models') foreach @awake;
$_->quit foreach @awake;
$sleepers->kill_kill;
undef $sleepers;
wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'idle'");
is($node->safe_psql('postgres', $balance), '0', 'when they have gone, too');

# ---- a session that drops and replaces indexes, and then does nothing ----

$node->safe_psql('postgres', 'CREATE INDEX t_drop ON t USING learnedbtree (k); CREATE INDEX t_again ON t USING learnedbtree (j)');
my $dba = $node->background_psql('postgres');
$dba->query_safe('BEGIN; DROP INDEX t_drop; REINDEX INDEX t_again; COMMIT');
is($node->safe_psql('postgres', $balance), '0', 'models of dropped and replaced indexes are gone after the commit');
$dba->query_safe("BEGIN; DROP INDEX t_again; PREPARE TRANSACTION 'p'");
$dba->query_safe("ROLLBACK PREPARED 'p'");
my $again = q{SELECT state FROM learnedbtree_model('t_again')};
is($dba->query_safe($again), 'untrained', 'a drop that is prepared and rolled back has taken the model');
is($dba->query_safe("INSERT INTO t VALUES (-1, -1); $again"), 'ready', 'which comes back with the next use');
$dba->query_safe('BEGIN; SAVEPOINT s; DROP INDEX t_again; ROLLBACK TO s; INSERT INTO t VALUES (-2, -2); COMMIT');
is($dba->query_safe($again), 'ready', 'in the same transaction, too');
ok(eventually($node, "SELECT ($balance) = 0"), 'and nothing else is left');
$dba->query_safe('DROP INDEX t_again');
$dba->quit;

# ---- the cap ----

sub memory
{
	return $node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()');
}

sub set_cap
{
	my ($value) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.max_model_memory = '$value'");
	$node->reload;
	wait_until($node, "SELECT current_setting('learnedbtree.max_model_memory') = '$value'");
}

my $cap = 65536;
$node->safe_psql('postgres', 'DROP TABLE t');
is(memory(), '0', 'dropped indexes leave nothing behind');
set_cap('64kB');
foreach my $i (1 .. $indexes)
{
	$node->safe_psql('postgres', "CREATE INDEX many_$i ON many USING learnedbtree (c$i) WITH (fillfactor = 10)");
	cmp_ok(memory(), '<=', $cap, "$i indexes: within the cap") if $i > 5;
}

sub lookup
{
	my ($i, $key) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM many WHERE c$i = $key * $i");
}

sub states
{
	return split / /, $node->safe_psql('postgres', "SELECT string_agg((learnedbtree_model('many_' || i)).state, ' ' "
		  . "ORDER BY i) FROM generate_series(1, $indexes) i");
}

my @states = states();
my $fit = grep { $_ eq 'ready' } @states;
cmp_ok($fit, '>=', 4, "models of $fit of $indexes indexes fit");
is("@states", join(' ', (('evicted') x ($indexes - $fit)), ('ready') x $fit),
	'the least recently trained were evicted');
like($node->safe_psql('postgres', "SELECT reason FROM learnedbtree_model('many_1')"),
	qr/dropped to make room.*max_model_memory/, 'it is said why');

# Used just now, the oldest of them stays, and the second oldest goes.
my ($oldest, $second) = ($indexes - $fit + 1, $indexes - $fit + 2);
is(lookup($oldest, 5), '1', 'the oldest is used');
$node->safe_psql('postgres', "SELECT learnedbtree_train('many_1')");
@states = states();
is("@states[0, $oldest - 1, $second - 1]", 'ready ready evicted', 'the least recently used goes first');

is(lookup($second, $_), '1', 'an evicted index answers') foreach 1, 10000, 20000;
is(lookup($second, 20001), '0', 'and finds nothing where there is nothing');
is((states())[ $second - 1 ], 'evicted', 'its lookups throw no other model out');
cmp_ok(memory(), '<=', $cap, 'still within the cap');

# A session that wants models of the smallest indexes, too, gets them while there is room, and takes none from others.
$node->safe_psql('postgres', "SELECT learnedbtree_train('many_$_')") foreach 1 .. $indexes;
$node->safe_psql('postgres', <<'SQL');
DO $$ BEGIN FOR i IN 1 .. 200 LOOP
	EXECUTE format('CREATE TABLE tiny_%s (k int8 PRIMARY KEY)', i);
	EXECUTE format('INSERT INTO tiny_%s SELECT generate_series(1, 2000)', i);
END LOOP; END $$;
SQL
my $ready = join ' ', states();
my $serving = "LOAD 'learnedbtree'; SET learnedbtree.btree_indexes = 'all'; SET learnedbtree.min_leaves = 0; SET enable_seqscan = off; SET enable_bitmapscan = off;";
my $tiny = "$serving SELECT count(*) FROM pg_class c, learnedbtree_model(oid) m WHERE relname ~ '^tiny_.*_pkey\$' AND m.state";
$node->safe_psql('postgres', "$serving\n"
	  . join("\n", map { "SELECT k FROM tiny_$_ WHERE k = 77;" } 1 .. 200));
is(join(' ', states()), $ready, 'models of small indexes that a session wants have evicted no other');
cmp_ok($node->safe_psql('postgres', "$tiny = 'evicted'"), '>', 100, '... but do not fit themselves');
cmp_ok(memory(), '<=', $cap, '... within the cap');
$node->safe_psql('postgres', "DROP TABLE tiny_$_") foreach 1 .. 200;

# Trainings and lookups of all indexes by several sessions at once, each of which looks at the total.
my $cap_checks = <<"SQL";
DO \$\$ BEGIN
	IF learnedbtree_model_memory() > $cap THEN RAISE EXCEPTION 'over the cap: %', learnedbtree_model_memory(); END IF;
END \$\$;
SQL
my $random = "\\set i random(1, $indexes)\n\\set k random(1, 20000)\n";
my %files = map {
	("012_lookup_$_\@1" => "${random}SELECT 1 / count(*) FROM many WHERE c$_ = :k * $_;\n$cap_checks")
} 1 .. $indexes;
$files{'012_train@3'} = "${random}SELECT learnedbtree_train(('many_' || :i)::regclass);\n$cap_checks";
$node->pgbench('--no-vacuum --client=8 --jobs=2 --time=4 --random-seed=12', 0, [qr/actually processed/],
	[qr/^(?!.*ERROR)/s], 'within the cap while many train at once', \%files);
cmp_ok(memory(), '<=', $cap, 'and afterwards');
is($node->safe_psql('postgres', $balance), '0', 'afterwards memory holds one model an index');

# There is room again when other indexes are dropped, or the cap is raised.
$node->safe_psql('postgres', "SELECT learnedbtree_train('many_$_')") foreach 1 .. $indexes;
is((states())[0], 'evicted', 'the first is evicted');
$node->safe_psql('postgres', "DROP INDEX many_$_") foreach $indexes - 2 .. $indexes;
$indexes -= 3;
is(lookup(1, 7), '1', 'it answers when there is room');
ok(wait_for_state(1), 'and has a model again');
set_cap('256MB');
foreach my $i (2 .. $indexes)
{
	ok(wait_for_state($i), "index $i has a model again after the cap was raised");
}
is($node->safe_psql('postgres', $balance), '0', 'memory holds one model an index');

# A model that is too large now does not take the place of the one that is there.
$node->safe_psql('postgres', 'CREATE TABLE wide (k int8); INSERT INTO wide SELECT generate_series(1, 200000); '
	  . 'CREATE INDEX wide_k ON wide USING learnedbtree (k) WITH (fillfactor = 10)');
my ($leaves, $bytes) = split /\|/, $node->safe_psql('postgres', "SELECT leaves, bytes FROM learnedbtree_model('wide_k')");
my $too_small = int($leaves * 16 / 1024) + 1;
cmp_ok($too_small * 1024, '<', $bytes, "the leaves would fit into $too_small kB");
set_cap("${too_small}kB");
$node->safe_psql('postgres', "SELECT learnedbtree_train('wide_k')");
is($node->safe_psql('postgres', "SELECT state FROM learnedbtree_model('wide_k')"), 'ready', 'but all of it does not: the old model stays');
set_cap('256MB');
$node->safe_psql('postgres', 'DROP TABLE wide');

# ---- scans of a temporary index, one for each row: none leaves anything behind ----

my ($own) = $node->safe_psql('postgres', <<'SQL') =~ /(\d+)$/;
CREATE TEMP TABLE alone (a int, EXCLUDE USING learnedbtree (a WITH =));
CREATE FUNCTION pg_temp.own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	PERFORM set_config('my.bytes', sum(used_bytes)::text, false) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState';
	RETURN NULL;
END $$;
CREATE TRIGGER own AFTER INSERT ON alone FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.own();
INSERT INTO alone SELECT generate_series(1, 30000);
SELECT current_setting('my.bytes');
SQL
cmp_ok($own, '<', 4 * 1024 * 1024, "30,000 rows are checked in $own bytes");

# ---- relations that are gone, of a session that was not told of each ----

my $partitions = 200;
my $slow = $node->background_psql('postgres');
my $pid = $slow->query_safe("LOAD 'learnedbtree'; SET learnedbtree.btree_indexes = 'all'; SELECT pg_backend_pid()");
my @bytes;
$node->safe_psql('postgres', 'CREATE TABLE parts (k int8 PRIMARY KEY) PARTITION BY LIST (k)');
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', join(';', map { "CREATE TABLE part_$_ PARTITION OF parts FOR VALUES IN ($_)" } 1 .. $partitions));
	$slow->query_safe('SELECT count(*) FROM parts');
	push @bytes, $slow->query_safe('SELECT sum(used_bytes) FROM pg_backend_memory_contexts '
		  . "WHERE name = 'relations that learnedbtree has looked at'");
	# More invalidations than the server keeps (4096), before it can read any.
	kill('STOP', $pid);
	$node->safe_psql('postgres', join(';', map { "DROP TABLE part_$_" } 1 .. $partitions));
	$node->safe_psql('postgres', join(';', map { "CREATE TABLE gone_$_ (k int8 PRIMARY KEY); DROP TABLE gone_$_" } 1 .. 300));
	kill('CONT', $pid);
}
cmp_ok($bytes[0], '>', $partitions * 16, 'a session remembers the partitions that it has looked at');
cmp_ok($bytes[2], '<', $bytes[0] * 1.5, "but not those that are gone ($bytes[0] bytes, then $bytes[2])");
$slow->quit;

# ---- rows that go to many partitions: what is known of those to come is not kept for each ----

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE routed (p int, k int8) PARTITION BY LIST (p);
CREATE INDEX routed_k ON routed (k);
CREATE INDEX routed_pk ON routed (p, k);
DO $$ BEGIN FOR i IN 1 .. 100 LOOP EXECUTE format('CREATE TABLE routed_%s PARTITION OF routed FOR VALUES IN (%s)', i, i); END LOOP; END $$;
CREATE TABLE to_route AS SELECT 1 + i % 100 AS p, hashint8extended(i, 1) AS k FROM generate_series(1, 30000) i;
INSERT INTO routed SELECT * FROM to_route;
CREATE FUNCTION tell_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	RAISE WARNING 'bytes: %', (SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name IN ('ExecutorState', 'PortalContext'));
	RETURN NULL;
END $$;
CREATE TRIGGER tell_memory AFTER INSERT ON routed FOR EACH STATEMENT EXECUTE FUNCTION tell_memory();
SQL
my $rows = PostgreSQL::Test::Utils::tempdir . '/rows';
$node->safe_psql('postgres', "COPY to_route TO '$rows'");
foreach my $statement ("COPY routed FROM '$rows'", 'INSERT INTO routed SELECT * FROM to_route')
{
	my (%used, %inserts);
	foreach my $serve ('none', 'all')
	{
		my ($rc, $out, $err) = $node->psql('postgres', "LOAD 'learnedbtree'; SET learnedbtree.min_leaves = 0; "
			  . "SET learnedbtree.btree_indexes = '$serve'; BEGIN; DELETE FROM routed WHERE k % 2 = 0; $statement; "
			  . "SELECT 'inserts', sum(inserts) FROM learnedbtree_stat WHERE relname ~ '^routed'; ROLLBACK");
		is($rc, 0, "$statement: $serve served, without errors") or diag($err);
		($used{$serve}) = $err =~ /bytes: (\d+)/;
		($inserts{$serve}) = $out =~ /^inserts\|(\d+)$/m;
		ok(defined $used{$serve}, '... and says how much memory it uses');
	}
	cmp_ok($inserts{all}, '>=', ($inserts{none} // 0) + 30000, "$statement: by served indexes");
	cmp_ok($used{all} - $used{none}, '<', 128 * 64 * 1024, "$statement: served, in $used{all} bytes, without $used{none}");
}

# ... nor by each of many nodes below an Append, when the rows of its partition have come.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE spread (p int, q int, k int8) PARTITION BY LIST (p);
CREATE TABLE far (p int, k int8) PARTITION BY LIST (p);
CREATE INDEX far_pk ON far (p, k) WITH (fillfactor = 10);
DO $$ BEGIN
	FOR i IN 1 .. 100 LOOP EXECUTE format('CREATE TABLE far_%s PARTITION OF far FOR VALUES IN (%s)', i, i); END LOOP;
	FOR i IN 1 .. 50 LOOP EXECUTE format('CREATE TABLE spread_%s PARTITION OF spread FOR VALUES IN (%s)', i, i); END LOOP;
END $$;
INSERT INTO far SELECT 1 + i % 100, hashint8extended(i, 1) FROM generate_series(1, 50000) i;
INSERT INTO spread SELECT 1 + i % 50, 1 + (i / 50) % 100, hashint8extended(i, 1) FROM generate_series(1, 50000) i;
VACUUM ANALYZE spread, far;
SQL
my %bytes;
foreach my $serve ('none', 'all')
{
	my $query = <<'SQL';
SELECT 'bytes', (SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'), n
  FROM (SELECT count(x) AS n FROM (SELECT (SELECT f.k FROM far f WHERE f.p = s.q AND f.k = s.k) AS x FROM spread s OFFSET 0) q OFFSET 0) c;
SQL
	my $out = $node->safe_psql('postgres', <<"SQL");
SET learnedbtree.min_leaves = 0;
SET learnedbtree.btree_indexes = '$serve';
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) $query
$query
SQL
	my $nodes = () = $out =~ /Learned Look-Ahead/g;
	is($nodes, $serve eq 'all' ? 50 : 0, "$serve: the plan has the nodes");
	like($out, qr/^bytes\|\d+\|500$/m, "$serve: the answer");
	($bytes{$serve}) = $out =~ /^bytes\|(\d+)\|/m;
}
cmp_ok($bytes{all} - $bytes{none}, '<', 50 * 1024 * 1024, "50 nodes: served, in $bytes{all} bytes, without $bytes{none}");

sub wait_for_state
{
	my ($i) = @_;
	return eventually($node, "SELECT state = 'ready' FROM learnedbtree_model('many_$i')", again => sub { lookup($i, 9) });
}

$node->stop;
done_testing();
