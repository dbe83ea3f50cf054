# An index that gets a name which is served is so from the next statement of every session on, whatever plan it keeps: prepared statements, queries of
# functions, cursors, COPY, inserts through partitions, checks of foreign keys; so does its end.  Invalidations of
# relcache entries (ANALYZE, VACUUM, other sessions' DDL) do not end serving, nor do settings that change in a session.
# Parallel workers serve beside a leader that does not, and the reverse.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = serving_node('plans', indexes => 'served_*');
my $file = PostgreSQL::Test::Utils::tempdir() . '/rows';
$node->safe_psql('postgres', <<"SQL");
CREATE SEQUENCE next START 100000;
CREATE TABLE t (id int8 PRIMARY KEY DEFAULT nextval('next'), a int4, b int4, x text COLLATE "C");
INSERT INTO t SELECT g, g / 50, g % 50, 'x' || g FROM generate_series(1, 20000) g;
CREATE INDEX t_ab ON t (a, b);
CREATE UNIQUE INDEX t_x ON t (x);
CREATE TABLE child (id int8 DEFAULT nextval('next'), parent int8 REFERENCES t);
CREATE TABLE p (k int8 PRIMARY KEY, v int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100000) TO (MAXVALUE);
INSERT INTO p SELECT g, g FROM generate_series(1, 10000) g;
VACUUM ANALYZE t, child, p;
CREATE FUNCTION by_key(int8) RETURNS text LANGUAGE plpgsql AS \$\$ BEGIN RETURN (SELECT concat(a, ' ', b) FROM t WHERE id = \$1); END \$\$;
CREATE FUNCTION by_loop(int4) RETURNS text LANGUAGE plpgsql AS \$\$ DECLARE r record; s text := ''; BEGIN
	FOR r IN SELECT id FROM t WHERE a = \$1 AND b > 45 ORDER BY b LOOP s := s || ' ' || by_key(r.id); END LOOP; RETURN s; END \$\$;
CREATE FUNCTION put(int4) RETURNS int LANGUAGE plpgsql AS \$\$ DECLARE n int; BEGIN
	INSERT INTO t (a, b, x) VALUES (1000, \$1, 'put ' || currval('next')) ON CONFLICT DO NOTHING; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END \$\$;
CREATE FUNCTION by_sql(int8) RETURNS text LANGUAGE sql STABLE AS \$\$ SELECT x FROM t WHERE id = \$1 LIMIT 1 \$\$;
CREATE ROLE filler IN ROLE pg_execute_server_program;
GRANT INSERT (k, v) ON p TO filler;
COPY (SELECT 2000, 5) TO '$file';
SQL
my @indexes = qw(t_pkey t_ab t_x p_pkey);
my $prepare = <<'SQL';
PREPARE key(int8) AS SELECT concat(a, ' ', b) FROM t WHERE id = $1;
PREPARE page(int4, int4) AS SELECT string_agg(id::text, ' ') FROM (SELECT id FROM t WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 5) q;
PREPARE only_index(int4) AS SELECT count(b) FROM t WHERE a = $1;
PREPARE list(int8[]) AS SELECT (SELECT count(*) FROM t WHERE id = ANY ($1));
PREPARE nested(int4) AS WITH w AS MATERIALIZED (SELECT id + 1 AS id FROM t WHERE a = $1) SELECT sum(i.id) FROM w, LATERAL (SELECT id FROM t WHERE t.id = w.id LIMIT 1) i;
PREPARE parts(int8) AS SELECT sum(k) FROM p WHERE k = ANY (ARRAY[$1, $1 + 1]);
PREPARE change(int8, int4) AS UPDATE t SET b = $2 WHERE id = $1 RETURNING a;
PREPARE insert AS INSERT INTO t (a, b, x) VALUES (5000, 0, 'insert ' || nextval('next')) RETURNING a;
PREPARE routed AS INSERT INTO p VALUES (nextval('next'), 1) RETURNING v;
PREPARE fk(int8) AS INSERT INTO child (parent) VALUES ($1) RETURNING parent;
PREPARE merging AS MERGE INTO t USING (SELECT nextval('next') AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 1, s.id);
SQL

# What a session does, what it answers, and which indexes this uses; "late": of what it does not know beforehand, those
# from the second time on.
my @ways = (
	[ 'a prepared lookup', 'EXECUTE key(4321)', '86 21', 't_pkey' ],
	[ 'a lookup of PL/pgSQL', 'SELECT by_key(4322)', '86 22', 't_pkey' ],
	[ 'a loop of PL/pgSQL', 'SELECT by_loop(86)', ' 86 46 86 47 86 48 86 49', 't_pkey t_ab' ],
	[ 'an SQL function', 'SELECT max(by_sql(g)) FROM generate_series(70, 79) g', 'x79', 't_pkey' ],
	[ 'a prepared row comparison', 'EXECUTE page(100, 47)', '5048 5049 5050 5051 5052', 't_ab' ],
	[ 'a prepared index-only scan', 'EXECUTE only_index(77)', '50', 't_ab' ],
	[ 'a prepared list', "EXECUTE list('{5, 7, 0}')", '2', 't_pkey' ],
	[ 'subqueries', 'EXECUTE nested(30)', '76275', 't_pkey t_ab' ],
	[ 'a bitmap scan', 'SET enable_bitmapscan = on; SET enable_indexscan = off; SELECT count(*) FROM t WHERE a = 5 OR id = 7; '
		  . 'RESET enable_indexscan; SET enable_bitmapscan = off', '51', 't_pkey t_ab' ],
	[ 'partitions', 'EXECUTE parts(7)', '15', 'p_pkey' ],
	[ 'a cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE a >= 9 ORDER BY a, b; FETCH 2 FROM c; COMMIT', "450\n451", 't_ab' ],
	[ 'a prepared update', 'EXECUTE change(77, nextval(\'next\')::int4)', '1', 't_pkey t_ab' ],
	[ 'a prepared insert', 'EXECUTE insert', '5000', 't_pkey t_ab t_x' ],
	[ 'an insert of PL/pgSQL', "SELECT nextval('next') > 0; SELECT put(1)", "t\n1", 't_pkey t_ab t_x' ],
	[ 'MERGE', 'EXECUTE merging', '', 't_pkey t_ab t_x' ],
	[ 'the check of a foreign key', 'EXECUTE fk(77)', '77', 't_pkey' ],
	[ 'COPY', "COPY t (a, b) FROM '$file'", '', 't_pkey t_ab t_x' ],
	[ 'an insert through partitions, late', 'EXECUTE routed', '1', 'p_pkey' ],
	[ 'COPY through partitions, late', "COPY p FROM PROGRAM 'date +%s%N%t1'", '', 'p_pkey' ],
	[ 'COPY by who may fill some columns, late', "SET ROLE filler; COPY p (k, v) FROM PROGRAM 'date +%s%N%t1'; RESET ROLE", '', 'p_pkey' ]);

sub settings
{
	my ($mode) = @_;
	return "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET plan_cache_mode = $mode; "
	  . "SET client_min_messages = error;\n";
}

my %sessions = map { $_ => $node->background_psql('postgres') } qw(force_generic_plan force_custom_plan);
$_->set_query_timer_restart foreach values %sessions;
$sessions{$_}->query_safe(settings($_) . $prepare) foreach keys %sessions;

# All ways in a session: right answers, by served indexes or not.
sub ask
{
	my ($when, $session, $served) = @_;
	my (@wrong, @unlike);
	foreach my $way (@ways)
	{
		my ($name, $sql, $answer, $used) = @$way;
		my @used = split / /, $used;
		$session->query_safe($sql) if $name =~ /late/;
		my $got;
		my $run = sub { $got = asked($session, $sql) };
		my $by = $served ? served_in($node, 'postgres', $run, @used) : predicted_in($node, 'postgres', $run, @used);
		push @wrong, "$name: $got" if $got ne $answer;
		push @unlike, "$name: by '$by'" if $by ne ($served ? $used : '');
	}
	is("@wrong", '', "$when: right answers");
	is(join('; ', @unlike), '', $served ? "$when: all served" : "$when: none served");
	return;
}

my ($generic, $custom) = @sessions{qw(force_generic_plan force_custom_plan)};
ask("not named, $_", $sessions{$_}, 0) foreach sort keys %sessions;
name_in($node, 'postgres', @indexes);
ask("named, $_", $sessions{$_}, 1) foreach sort keys %sessions;
$node->safe_psql('postgres', 'ANALYZE t, p, child; VACUUM t, p1, p2');
ask('after ANALYZE and VACUUM', $generic, 1);
$node->safe_psql('postgres', 'ALTER INDEX served_t_ab SET (fillfactor = 80); ALTER TABLE t SET (autovacuum_enabled = off); REINDEX INDEX CONCURRENTLY served_t_x; REINDEX TABLE p1; REINDEX INDEX served_t_pkey');
ask('after other changes', $generic, 1);

# ---- settings ----

$generic->query_safe("SET learnedbtree.btree_indexes = 'none'");
ask('set to none', $generic, 0);
$generic->query_safe("SET learnedbtree.btree_indexes = 'all'");
name_out($node, 'postgres', @indexes);
ask('not named, but set to all', $generic, 1);
ask('not named any more', $custom, 0);
name_in($node, 'postgres', @indexes);
$generic->query_safe("SET learnedbtree.btree_indexes = 'all, !served_*'");
ask('all, but these excluded', $generic, 0);
$generic->query_safe("SET learnedbtree.btree_indexes = 'all, !served_*, public.served_*'");
ask('... but not these', $generic, 1);
$generic->query_safe('RESET learnedbtree.btree_indexes');
ask('named again', $generic, 1);
$generic->query_safe("BEGIN; SET LOCAL learnedbtree.btree_indexes = 'none'");
is(predicted_in($node, 'postgres', sub { asked($generic, 'EXECUTE key(4321); ROLLBACK') }, 't_pkey'), '', 'none for a transaction');
is(served_in($node, 'postgres', sub { asked($generic, 'EXECUTE key(4321)') }, 't_pkey'), 't_pkey', 'and served again after it');
$node->safe_psql('postgres', "CREATE ROLE plain LOGIN SUPERUSER; ALTER ROLE plain SET learnedbtree.btree_indexes = 'none'");
my $lookup = settings('auto') . 'SELECT id FROM t WHERE id = 77';
is(served_in($node, 'postgres', sub { $node->safe_psql('postgres', $lookup, extra_params => [ '-U', 'plain' ]) }, 't_pkey'), '', 'none for a role');
is(served_in($node, 'postgres', sub { $node->safe_psql('postgres', $lookup) }, 't_pkey'), 't_pkey', 'but for others');

# ---- in one transaction ----

name_out($node, 'postgres', 't_pkey', 't_ab');
# Which of t's indexes lookups use as served ones, by what the session has counted; p_pkey always is.
my $in = sub {
	my ($sql) = @_;
	my $count = "SELECT 'count', replace(indexrelname, 'served_', ''), lookups FROM learnedbtree_stat WHERE indexrelname ~ '^(served_)?t_(pkey|ab)\$'";
	my $out = $generic->query_safe("$sql; $count; EXECUTE parts(7); EXECUTE key(1); EXECUTE only_index(5); $count");
	my (%first, @more);
	while ($out =~ /^count\|(\w+)\|(\d+)$/mg)
	{
		push @more, $1 if defined $first{$1} && $2 > $first{$1};
		$first{$1} //= $2;
	}
	return join(' ', sort { $b cmp $a } @more);
};
is($in->('BEGIN'), '', 'a transaction that serves neither');
is($in->(naming('in', 't_pkey')), 't_pkey', 'names one');
is($in->('SAVEPOINT s; ' . naming('in', 't_ab') . ';' . naming('out', 't_pkey')), 't_ab', 'turns, in a subtransaction');
is($in->('ROLLBACK TO s'), 't_pkey', 'back');
is($in->("SAVEPOINT s; SET LOCAL learnedbtree.btree_indexes = 't_ab, served_p*'"), 't_ab', 'turns by the setting');
is($in->('ROLLBACK TO s'), 't_pkey', 'back');
is($in->('ROLLBACK'), '', 'and back');
$generic->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM child');
name_in($node, 'postgres', 't_pkey', 't_ab');
is($in->('SELECT 1'), 't_pkey t_ab', 'a transaction with an old snapshot serves what others have named since');
$generic->query_safe('COMMIT');

# Rows that a subtransaction has put in and taken back.
is($generic->query_safe("BEGIN; SAVEPOINT s; INSERT INTO t (id) VALUES (-1); ROLLBACK TO s; SELECT count(*) FROM t WHERE id = -1; INSERT INTO t (id) VALUES (-1); "
	  . 'ROLLBACK TO s; RELEASE s; INSERT INTO t (id) VALUES (-1) ON CONFLICT DO NOTHING RETURNING id; ROLLBACK'), "0\n-1", 'subtransactions');

# An update that has waited for another one looks at the new row: one use more than without waiting.
my $first = 'UPDATE t SET b = 7000 WHERE id = 300';
my $second = 'UPDATE t SET b = b + 1 FROM child WHERE t.id = 300 AND child.parent = 77 AND b >= 0 AND (SELECT i.a FROM t i WHERE i.id = t.id) >= 0 RETURNING b';
my $count = sub { return (uses($node, 'postgres', 'all', 't_pkey'))[0] };
asked($_, 'SELECT 1') foreach $generic, $custom;    # tell what has been before
my $before = $count->();
asked($custom, $first);
is(asked($generic, $second), '7001', 'an update after another one');
my $between = $count->();
$custom->query_safe("BEGIN; $first");
$generic->query_until(qr/started/, "\\echo started\n$second;\n");
wait_until($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
asked($custom, 'COMMIT');
asked($generic, 'SELECT 1');
cmp_ok($count->() - $between, '>', $between - $before, 'EvalPlanQual is served');
is($node->safe_psql('postgres', 'SELECT b FROM t WHERE id = 300'), '7001', 'with the right answer');

# ---- parallel queries ----

my $parallel = settings('auto') . 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; '
  . 'SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = on; '
  . 'SET enable_nestloop = on; SET enable_hashjoin = off; SET enable_mergejoin = off;';
my $scan = 'SELECT count(*), sum(id) FROM t WHERE id BETWEEN 10 AND 9000';
my $join = 'SELECT count(*), sum(i.b) FROM t o JOIN t i ON i.id = o.id + 1 WHERE o.id BETWEEN 10 AND 4000 AND o.a >= 0';
my $bitmap = 'SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(a) FROM t WHERE a BETWEEN 10 AND 70';
my %answers = map { $_ => $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = 'none'; $parallel $_") } $scan, $join, $bitmap;
like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS off) $_"), qr/Parallel Index/, 'a parallel plan') foreach $scan, $join;
like($node->safe_psql('postgres', "$parallel " . $bitmap =~ s/SELECT/EXPLAIN (COSTS off) SELECT/r), qr/Parallel Bitmap/, 'another one');
foreach my $leader ('on', 'off')
{
	my $session = $parallel . "SET parallel_leader_participation = $leader;";
	foreach my $query ($scan, $join, $bitmap)
	{
		my $got;
		my $index = $query eq $bitmap ? 't_ab' : 't_pkey';
		is(served_in($node, 'postgres', sub { $got = $node->safe_psql('postgres', "$session $query") }, $index), $index, "parallel, leader $leader: served");
		is($got, $answers{$query}, "parallel, leader $leader: the answer");
	}
}

# A leader whose entry somebody here has open: it stays what it was, workers have their own.
my $open = 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE id > 3 ORDER BY id; FETCH 2 FROM c;';
$generic->query_safe($parallel);
foreach my $turn ('out', 'in')
{
	$generic->query_safe('EXECUTE key(1)');
	is($generic->query_safe($open), "4\n5", "$turn: a cursor is open");
	$node->safe_psql('postgres', naming($turn, 't_pkey'));
	is($generic->query_safe($_), $answers{$_}, "$turn: the answer of a parallel query") foreach $scan, $join;
	is($generic->query_safe('FETCH 2 FROM c; FETCH BACKWARD 1 FROM c; MOVE FORWARD 300 FROM c; FETCH 1 FROM c; COMMIT'), "6\n7\n6\n307", "$turn: the cursor goes on");
	is(predicted_in($node, 'postgres', sub { asked($generic, 'EXECUTE key(4321)') }, 't_pkey'), $turn eq 'in' ? 't_pkey' : '', "$turn: and the next statement");
}

# ---- all that are large enough ----

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE grows (k int PRIMARY KEY) WITH (autovacuum_enabled = off);
INSERT INTO grows SELECT generate_series(1, 300);
ANALYZE grows;
SQL
my $grow = $node->background_psql('postgres');
$grow->query_safe(settings('force_generic_plan') . "SET learnedbtree.btree_indexes = 'all'; SET learnedbtree.min_leaves = 30; "
	  . 'PREPARE key(int) AS SELECT k FROM grows WHERE k = $1; PREPARE put(int, int) AS INSERT INTO grows SELECT generate_series($1, $2)');
my $steps = sub { my ($sql) = @_; return predicted_in($node, 'postgres', sub { asked($grow, $sql) }, 'grows_pkey'); };
is($steps->('EXECUTE key(1); EXECUTE put(301, 2000); EXECUTE put(2001, 3000); EXECUTE key(2)'), '', 'with few leaves it is not served');
$grow->query_safe('EXECUTE put(3001, 20000)');
$grow->query_safe(join(';', map { "EXECUTE put(20000 + $_, 20000 + $_)" } 1 .. 300));
is($steps->('EXECUTE put(30001, 30001)'), 'grows_pkey', 'inserts are served soon after it has grown');
is($steps->('SELECT k FROM grows WHERE k = 17'), 'grows_pkey', 'and so are lookups');
is($steps->('SET learnedbtree.min_leaves = 1000; EXECUTE key(1)'), '', 'with a higher limit it is not');
is($steps->('SET learnedbtree.min_leaves = 3; EXECUTE key(1)'), 'grows_pkey', 'with a lower one it is');
$grow->quit;

is(amcheck_all($node, 'postgres'), '', 'amcheck is content');
$_->quit foreach values %sessions;
$node->stop;
done_testing();
