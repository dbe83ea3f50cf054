# Plans that were made before an index was adopted or released are not used after it: prepared statements, cached plans of
# PL/pgSQL functions, in this session and in others.  What holds the index open keeps it as it is.  What becomes of an
# adopted index when its column's type changes, and when the extension goes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Adoption;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('plans');
# Below 18 row comparisons and ON CONFLICT want btree.
my $all_kept = $node->pg_version >= 18;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (id int8 PRIMARY KEY, a int4, b int4, x text COLLATE "C");
INSERT INTO t SELECT g, g / 50, g % 50, 'x' || g FROM generate_series(1, 20000) g;
CREATE INDEX t_ab ON t (a, b);
CREATE UNIQUE INDEX t_x ON t (x);
VACUUM ANALYZE t;
CREATE FUNCTION by_key(int8) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT concat(a, ' ', b) FROM t WHERE id = $1); END $$;
CREATE FUNCTION by_page(int4, int4) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
	RETURN (SELECT string_agg(id::text, ' ') FROM (SELECT id FROM t WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 5) q); END $$;
CREATE FUNCTION put(int8) RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN
	INSERT INTO t VALUES ($1, 1000, 0, 'put ' || $1) ON CONFLICT DO NOTHING; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END $$;
SQL
my @indexes = qw(t_pkey t_ab t_x);
my $prepare = <<'SQL';
PREPARE key(int8) AS SELECT concat(a, ' ', b) FROM t WHERE id = $1;
PREPARE page(int4, int4) AS SELECT string_agg(id::text, ' ') FROM (SELECT id FROM t WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 5) q;
PREPARE parts(int4) AS SELECT count(*) FROM t WHERE a < $1;
PREPARE change(int8, int4) AS UPDATE t SET b = $2 WHERE id = $1 RETURNING b;
SQL

sub settings
{
	my ($mode) = @_;
	return "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET plan_cache_mode = $mode; "
	  . 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET client_min_messages = error;';
}

my %sessions = map { $_ => $node->background_psql('postgres', on_error_stop => 0) } qw(force_generic_plan force_custom_plan);
$sessions{$_}->query_safe(settings($_) . $prepare) foreach keys %sessions;

# The right answers, and a plan for the method that the index has now.
sub ask
{
	my ($when, $session, $ours) = @_;
	is($session->query('EXECUTE key(4321)'), '86 21', "$when: a prepared lookup");
	is($session->query('SELECT by_key(4322)'), '86 22', "$when: a lookup of PL/pgSQL");
	is($session->query('EXECUTE page(100, 47)'), '5048 5049 5050 5051 5052', "$when: a prepared row comparison");
	is($session->query('SELECT by_page(100, 46)'), '5047 5048 5049 5050 5051', "$when: one of PL/pgSQL");
	is($session->query('EXECUTE parts(200)'), '9999', "$when: a prepared scan");
	is($session->query('EXECUTE change(77, 27)'), '27', "$when: a prepared update");
	my $plan = $session->query('EXPLAIN (COSTS off) EXECUTE page(100, 47)');
	my $wanted = $ours && !$all_kept ? qr/Filter: \(ROW\(a, b\)/ : qr/Index Cond: \(ROW\(a, b\)/;
	like($plan, $wanted, "$when: a plan for the method that it has now");
	return;
}

foreach my $round (1 .. 2)
{
	ask("btree, $_, round $round", $sessions{$_}, 0) foreach sort keys %sessions;
	adopt($node, 'postgres', @indexes);
	ask("adopted, $_, round $round", $sessions{$_}, 1) foreach sort keys %sessions;
	release($node, 'postgres', @indexes);
}

# ---- ON CONFLICT ----

my $session = $sessions{force_generic_plan};
is($session->query('SELECT put(50001)'), '1', 'ON CONFLICT with btree');
adopt($node, 'postgres', 't_x');
my $put = $session->query('SELECT put(50002), put(50001)');
if ($all_kept) { is($put, '1|0', 'ON CONFLICT with an adopted index'); }
else
{
	is($put, '', 'ON CONFLICT is refused');
	like($session->{stderr}, qr/unexpected non-btree speculative unique index/, 'with the error that the README names');
	$session->{stderr} = '';
}
release($node, 'postgres', 't_x');
is($session->query('SELECT put(50003), put(50001)'), '1|0', 'ON CONFLICT with the released index');

# ---- within a session, and a transaction ----

my $both = "SELECT learnedbtree_adopt('t_pkey', true), learnedbtree_adopt('t_ab', true);";
my $back = "SELECT learnedbtree_release('t_pkey'), learnedbtree_release('t_ab');";
$session->query_safe("BEGIN; EXECUTE key(1); $both");
ask('adopted in this transaction', $session, 1);
$session->query_safe("SAVEPOINT s; $back");
ask('released in it again', $session, 0);
$session->query_safe('ROLLBACK TO s');
ask('not released after all', $session, 1);
$session->query_safe('ROLLBACK');
ask('nor adopted', $session, 0);
is(access_methods($node, 'postgres'), 'learnedbtree_settings_pkey btree, t_ab btree, t_pkey btree, t_x btree', 'all are btree');

# A snapshot from before does not make an old plan good.
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
adopt($node, 'postgres', @indexes);
ask('adopted after the snapshot', $session, 1);
$session->query_safe('COMMIT');
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
release($node, 'postgres', @indexes);
ask('released after the snapshot', $session, 0);
$session->query_safe('COMMIT');

# ---- what holds an index open ----

sub refused
{
	my ($name, $sql, $message) = @_;
	my ($code, undef, $err) = $node->psql('postgres', "SET client_min_messages = error; $sql");
	ok($code != 0 && $err =~ $message, $name) or diag("$code: $err");
	like(access_methods($node, 'postgres'), qr/t_ab btree/, "$name: and it is as it was");
	return;
}

refused('a cursor of this session', settings('auto') . 'BEGIN; DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 5 ORDER BY a, b; FETCH c; '
	  . "SELECT learnedbtree_adopt('t_ab', true); COMMIT", qr/in use by this session/);
refused('a loop of this session', settings('auto') . 'DO $$ DECLARE r record; BEGIN FOR r IN SELECT a FROM t WHERE a > 5 ORDER BY a, b LOOP '
	  . "PERFORM learnedbtree_adopt('t_ab', true); END LOOP; END \$\$", qr/in use by this session/);
refused('the query itself', settings('auto') . "SELECT learnedbtree_adopt('t_ab', true) FROM t WHERE a = 7", qr/in use by this session/);
$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 5 ORDER BY a, b; FETCH c');
refused('a cursor of another session', "SET lock_timeout = '200ms'; SELECT learnedbtree_adopt('t_ab', true)", qr/due to lock timeout/);
$session->query_safe('COMMIT');
adopt($node, 'postgres', 't_ab');
like(access_methods($node, 'postgres'), qr/\bt_ab learnedbtree/, 'when the cursor is closed, it can be adopted');
$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 5 ORDER BY a, b; FETCH c');
my ($code, undef, $err) = $node->psql('postgres', "SET lock_timeout = '200ms'; SELECT learnedbtree_release('t_ab')");
ok($code != 0 && $err =~ /due to lock timeout/, 'neither is it released under a cursor') or diag("$code: $err");
is($session->query('FETCH 2 FROM c'), "6\n6", 'the cursor goes on');
$session->query_safe('COMMIT');
$_->quit foreach values %sessions;

# ---- ALTER TYPE ----

my $answers = settings('auto') . 'SELECT (SELECT sum((SELECT count(*) FROM t WHERE id = g)) FROM generate_series(1, 25000, 7) g), '
  . q{(SELECT count(*) FROM t WHERE a = 11 AND b > 5), (SELECT string_agg(x, ' ') FROM (SELECT x FROM t WHERE x > 'x77' ORDER BY x LIMIT 5) q)};
my $wanted = $node->safe_psql('postgres', $answers);
foreach my $change ('id TYPE numeric', 'a TYPE int8', 'id TYPE int4', 'x TYPE varchar', 'x TYPE text COLLATE "C"', 'x TYPE varchar(60) COLLATE "C"',
	'x TYPE varchar(90) COLLATE "C"')
{
	adopt($node, 'postgres', @indexes);
	$node->safe_psql('postgres', "ALTER TABLE t ALTER $change");
	is(access_methods($node, 'postgres'), 'learnedbtree_settings_pkey btree, t_ab learnedbtree, t_pkey '
		  . ($change =~ /^id/ ? 'btree' : 'learnedbtree') . ', t_x learnedbtree',
		"ALTER $change: a constraint's index is made again as btree, another one as it was");
	is($node->safe_psql('postgres', $answers), $wanted, "ALTER $change: the answers are the same");
	is(dangling($node, 'postgres'), '', "ALTER $change: the catalogs fit together");
	is($node->psql('postgres', "SELECT learnedbtree_check('t_ab', true, true), learnedbtree_check('t_x', true, true)"), 0,
		"ALTER $change: amcheck is content");
}

# ---- the extension goes ----

adopt($node, 'postgres', @indexes);
$node->safe_psql('postgres', 'CREATE INDEX t_native ON t USING learnedbtree (b)');
($code, undef, $err) = $node->psql('postgres', 'DROP EXTENSION learnedbtree');
ok($code != 0 && $err =~ /index t_ab depends on|constraint t_pkey on table t depends on/, 'DROP EXTENSION is refused') or diag($err);
like(access_methods($node, 'postgres'), qr/t_ab learnedbtree, t_native learnedbtree, t_pkey learnedbtree/, 'nothing has gone');
$node->safe_psql('postgres', 'SET client_min_messages = error; SELECT learnedbtree_release_all()');
$node->safe_psql('postgres', 'DROP EXTENSION learnedbtree CASCADE');
is(access_methods($node, 'postgres'), 't_ab btree, t_native btree, t_pkey btree, t_x btree',
	'after learnedbtree_release_all() it takes nothing along');
is($node->safe_psql('postgres', $answers), $wanted, 'the answers are the same');
is($node->psql('postgres', "SELECT bt_index_parent_check('$_', true, true)"), 0, "amcheck is content with $_") foreach @indexes, 't_native';
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_opclass WHERE opcmethod NOT IN (SELECT oid FROM pg_am)}), '0', 'no operator class is left');

# Without releasing, a primary key goes with the extension.
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree');
adopt($node, 'postgres', @indexes);
$node->safe_psql('postgres', 'SET client_min_messages = error; DROP EXTENSION learnedbtree CASCADE');
is(access_methods($node, 'postgres'), 't_native btree', 'DROP EXTENSION CASCADE drops what is adopted');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '20003' - ($all_kept ? 0 : 1), 'but no row');

$node->stop;
done_testing();
