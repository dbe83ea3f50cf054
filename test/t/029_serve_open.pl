# What is in the middle of something when serving begins or ends: cursors, loops and inserts that have the index open, and
# transactions that make, change, truncate, rebuild and roll back the very tables and indexes they use.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = serving_node('open', indexes => 'served_*');
my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET client_min_messages = error;';
my %other = (in => 'out', out => 'in');

sub make_table
{
	$node->safe_psql('postgres', <<'SQL');
DROP TABLE IF EXISTS t, u;
CREATE TABLE t (id int8 PRIMARY KEY, a int4, b int4) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g * 10, g / 20, g % 20 FROM generate_series(1, 8000) g;
CREATE INDEX t_ab ON t (a, b);
CREATE TABLE u AS SELECT * FROM t;
CREATE INDEX u_a ON u (a);
VACUUM ANALYZE t, u;
SQL
	return;
}

# ---- a cursor, another session that names the index so that it is served, or is not, and nested queries on it ----

foreach my $to ('in', 'out')
{
	make_table();
	name_in($node, 'postgres', 't_ab', 't_pkey', 'u_a') if $to eq 'out';
	my $session = $node->background_psql('postgres');
	$session->query_safe("$settings SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off");
	$session->query_safe(<<'SQL');
BEGIN;
DECLARE forward SCROLL CURSOR FOR SELECT id FROM t WHERE a >= 10 ORDER BY a, b;
DECLARE backward CURSOR FOR SELECT id FROM t WHERE a <= 300 ORDER BY a DESC, b DESC;
DECLARE list CURSOR FOR SELECT id FROM t WHERE id = ANY (ARRAY(SELECT g * 100 FROM generate_series(1, 800) g)) ORDER BY id;
DECLARE merge CURSOR FOR SELECT t.id + u.id FROM t JOIN u USING (a) WHERE a < 30 ORDER BY a, t.b;
FETCH 3 FROM forward; FETCH 3 FROM backward; FETCH 3 FROM list; FETCH 30 FROM merge;
SQL
	foreach my $again (1 .. 3)
	{
		my $now = $again % 2 ? $to : $other{$to};
		$node->safe_psql('postgres', join(';', map { naming($now, $_) } qw(t_ab t_pkey u_a)));
		# Others split leaves under the cursors, and VACUUM deletes some behind them.
		$node->safe_psql('postgres', "INSERT INTO t SELECT g * 10 + $again, 100 + $again, -g FROM generate_series(1, 1500) g; DELETE FROM t WHERE a BETWEEN 5 AND 9; VACUUM t");
		is($session->query_safe("SELECT count(*), sum(b) FROM t WHERE a = 77; SELECT id FROM t WHERE id = 4000; INSERT INTO t VALUES (-$again, -$again, 0); "
				  . "SELECT id FROM t WHERE a = -$again; UPDATE t SET a = a - 100 WHERE id = -$again RETURNING a; SELECT count(*) FROM t JOIN u USING (a) WHERE u.a = 12"),
			"20|190\n4000\n-$again\n" . (-$again - 100) . "\n400", "$to, turn $again: nested queries");
		my $from = 200 + 20 * $again;
		is($session->query_safe('MOVE 17 IN forward; FETCH 3 FROM forward; FETCH BACKWARD 2 FROM forward; FETCH 2 FROM forward'), join("\n", map { $_ * 10 } (
					$from, $from + 1, $from + 2, $from + 1, $from, $from + 1, $from + 2)), "$to, turn $again: a scan forward goes on");
		my $last = 6019 - 20 * $again;
		is($session->query_safe('MOVE 17 IN backward; FETCH 3 FROM backward'), join("\n", map { $_ * 10 } ($last - 0, $last - 1, $last - 2)),
			"$to, turn $again: so does one backward");
		is($session->query_safe('MOVE 17 IN list; FETCH 3 FROM list'), join("\n", map { $_ * 100 } (20 * $again + 1, 20 * $again + 2, 20 * $again + 3)),
			"$to, turn $again: and a list");
	}
	# 19 pairs of keys at a = 0, then 20.
	my $merged = $session->query_safe('FETCH ALL FROM merge');
	is(scalar(split /\n/, $merged), 19 * 19 + 29 * 20 * 20 - 30, "$to: so does a merge join, with mark and restore");
	$session->query_safe('COMMIT');
	is(predicted_in($node, 'postgres', sub { asked($session, 'SELECT id FROM t WHERE id = 40; SELECT count(*) FROM t WHERE a = 77') }, qw(t_pkey t_ab)),
		$to eq 'in' ? 't_pkey t_ab' : '', "$to: the next statement knows");
	$session->quit;
	is(amcheck_all($node, 'postgres'), '', "$to: amcheck is content");
}

# ---- the statement itself turns what it has open ----

make_table();
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION turn(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	IF n % 100 = 30 THEN PERFORM set_config('learnedbtree.btree_indexes', 't_*', n % 200 < 100);
	ELSIF n % 100 = 50 THEN ALTER INDEX IF EXISTS t_ab RENAME TO not_t_ab; ALTER INDEX IF EXISTS t_pkey RENAME TO not_t_pkey;
	ELSIF n % 100 = 60 THEN ALTER INDEX IF EXISTS not_t_ab RENAME TO t_ab; ALTER INDEX IF EXISTS not_t_pkey RENAME TO t_pkey;
	ELSIF n % 100 = 70 THEN PERFORM set_config('learnedbtree.btree_indexes', 'none', n % 200 > 100); END IF;
	IF n % 7 = 0 THEN PERFORM FROM t WHERE id = n * 10; PERFORM FROM t WHERE a = n; END IF;
	IF n % 9 = 0 THEN INSERT INTO t VALUES (-n, -n, 0) ON CONFLICT DO NOTHING; END IF;
	RETURN n; END $$;
SQL
is($node->safe_psql('postgres', "$settings SELECT count(turn(id::int / 10)), sum(id) FROM t WHERE id BETWEEN 10 AND 10000"), '1000|5005000', 'a scan turns its index');
is($node->safe_psql('postgres', "$settings SELECT count(*), sum(id), sum(turn(id::int / 10)) FROM (SELECT id FROM t WHERE a BETWEEN 60 AND 109 ORDER BY a, b) q"),
	'1000|16995000|1699500', 'so does an ordered one');
is($node->safe_psql('postgres', "$settings INSERT INTO t SELECT g * 10 + 5, turn(g), 5 FROM generate_series(1, 1000) g; SELECT count(*) FROM t WHERE id % 10 = 5 AND a BETWEEN 1 AND 1000"),
	'1000', 'an insert turns what it inserts into');
is($node->safe_psql('postgres', "$settings WITH n AS (UPDATE t SET a = turn(a) + 1000 WHERE id BETWEEN 10 AND 5000 RETURNING a) SELECT count(*), count(DISTINCT a) FROM n"), '999|500',
	'an update does');
# (What is open stays as it is; what turn() asks by the other index is served.)
my $got;
my $run = sub { my ($sql) = @_; return sub { $got = $node->safe_psql('postgres', "$settings $sql") } };
is(predicted_in($node, 'postgres', $run->('WITH d AS (DELETE FROM t WHERE a >= 1000 AND turn(a) = 1010 RETURNING a) SELECT count(*) FROM d; SELECT count(*) FROM t WHERE a = 1010'), 't_pkey'),
	't_pkey', 'a delete does, served');
is($got, "21\n0", '... and deletes what it should');
is(predicted_in($node, 'postgres', $run->("DO \$\$ DECLARE r record; n int := 0; s int8 := 0; BEGIN FOR r IN SELECT id, a FROM t WHERE id > 100 ORDER BY id LOOP n := n + 1; s := s + r.id; "
			  . "PERFORM turn(r.id::int / 10); IF r.id > 8000 THEN EXIT; END IF; BEGIN PERFORM turn(30); RAISE 'no'; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; "
			  . "PERFORM set_config('my.read', n || ' ' || s, false); END \$\$; SELECT current_setting('my.read')"), 't_ab'), 't_ab', 'a loop with subtransactions does, served');
is($got, '1560 6368950', '... and reads what it should');
is(amcheck_all($node, 'postgres'), '', 'amcheck is content');

# ---- transactions that change what they use ----

# Run commands in a schema of their own, in a session that serves nothing and in one that serves all: the same output.
my $number = 0;

sub same
{
	my ($name, $commands, $wanted, $more) = @_;
	my %out;
	$number++;
	foreach my $which ('none', 'all')
	{
		my $schema = "${which}_$number";
		my (undef, $out, $err) = $node->psql('postgres', "CREATE SCHEMA $schema; SET search_path = $schema, public; SET learnedbtree.btree_indexes = '$which'; "
			  . ($more // '') . "$settings\n$commands", on_error_stop => 0);
		$out{$which} = $out . $err;
		others_have_ended($node, 'postgres', '');
		my $uses = $node->safe_psql('postgres', "SELECT coalesce(sum(lookups + inserts), 0) > 0 FROM learnedbtree_stat WHERE schemaname = '$schema'");
		is($uses, $which eq 'all' ? 't' : 'f', "$name: $which " . ($which eq 'all' ? 'are' : 'is') . ' served');
	}
	$out{$_} =~ s/psql:<stdin>:\d+: // foreach keys %out;
	is($out{all}, $out{none}, "$name: the same with served indexes");
	like($out{none}, $wanted, "$name: and what it has to be");
	return;
}

my $new = 'CREATE TABLE n (k int8 PRIMARY KEY, v int); CREATE INDEX n_v ON n (v);';
my $fill = 'INSERT INTO n SELECT g, g % 100 FROM generate_series(1, 3000) g; INSERT INTO n VALUES (77) ON CONFLICT DO NOTHING;';
my $ask = "SELECT count(*), sum(k) FROM n WHERE v BETWEEN 7 AND 9; SELECT k, v FROM n WHERE k IN (5, 77, 2999, 3001) ORDER BY k; SELECT max(k), min(v) FROM n;\n";
same('made, filled and truncated at once', "BEGIN; $new $fill $ask TRUNCATE n; $ask $fill $ask TRUNCATE n; INSERT INTO n VALUES (3005, 8); $ask $fill $ask COMMIT; $ask", qr/91\|134225/);
same('filled, then indexed', "BEGIN; CREATE TABLE n (k int8, v int); INSERT INTO n SELECT g, g % 100 FROM generate_series(1, 3000) g; CREATE UNIQUE INDEX ON n (k); CREATE INDEX n_v ON n (v); $ask INSERT INTO n SELECT g, 8 FROM generate_series(4000, 5000) g; $ask COMMIT; $ask",
	qr/5000/);
same('options', "$new $fill BEGIN; $ask ALTER INDEX n_v SET (fillfactor = 30); $ask INSERT INTO n SELECT g, 8 FROM generate_series(4000, 5000) g; $ask ALTER INDEX n_pkey SET (deduplicate_items = off); $ask COMMIT; $ask",
	qr/5000/);
same('REINDEX', "$new $fill BEGIN; $ask REINDEX INDEX n_pkey; $ask INSERT INTO n VALUES (3001, 7); $ask REINDEX TABLE n; $ask DELETE FROM n WHERE v = 8; $ask ROLLBACK; $ask REINDEX TABLE CONCURRENTLY n; $ask", qr/3001/);
same('truncated, and not after all', "$new $fill BEGIN; $ask SAVEPOINT s; TRUNCATE n; $ask $fill INSERT INTO n VALUES (3001, 7); $ask ROLLBACK TO s; $ask INSERT INTO n VALUES (3001, 8); $ask ROLLBACK; $ask", qr/3001\|8/);
same('clustered and rewritten', "$new $fill BEGIN; $ask CLUSTER n USING n_v; $ask ALTER TABLE n ALTER k TYPE numeric; $ask INSERT INTO n VALUES (3001.5, 8); $ask ALTER TABLE n ALTER k TYPE int4; $ask INSERT INTO n VALUES (77); ROLLBACK; "
	  . "$ask VACUUM FULL n; $ask INSERT INTO n VALUES (77);", qr/3002.*duplicate key/s);
same('dropped and made again', "$new $fill BEGIN; $ask DROP INDEX n_v; SELECT k FROM n WHERE k = 5; CREATE INDEX n_v ON n (v, k); $ask SAVEPOINT s; ALTER TABLE n DROP CONSTRAINT n_pkey; INSERT INTO n VALUES (77, 8); "
	  . "ROLLBACK TO s; $ask INSERT INTO n VALUES (77, 8) ON CONFLICT (k) DO UPDATE SET v = 9; $ask ALTER TABLE n RENAME TO o; ALTER INDEX n_v RENAME TO o_v; SELECT count(*) FROM o WHERE v = 9; DROP TABLE o; $new $fill $ask COMMIT; $ask",
	qr/31/);
same('subtransactions', "$new $fill BEGIN; SAVEPOINT a; INSERT INTO n SELECT g, 8 FROM generate_series(5001, 9000) g; $ask ROLLBACK TO a; $ask SAVEPOINT b; INSERT INTO n VALUES (77); ROLLBACK TO b; $ask "
	  . "INSERT INTO n SELECT g, 8 FROM generate_series(5001, 9000) g; $ask COMMIT; $ask", qr/9000/);
same('partitions', 'CREATE TABLE p (k int8 PRIMARY KEY, v int) PARTITION BY RANGE (k); BEGIN; CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (2000); INSERT INTO p SELECT g, g FROM generate_series(1, 1999) g; '
	  . 'CREATE TABLE p2 (LIKE p); INSERT INTO p2 SELECT g, g FROM generate_series(2000, 3999) g; ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (2000) TO (4000); SELECT sum(v) FROM p WHERE k IN (5, 2500); '
	  . 'INSERT INTO p VALUES (5), (2500), (2501) ON CONFLICT DO NOTHING; ALTER TABLE p DETACH PARTITION p1; SELECT sum(v) FROM p WHERE k IN (5, 2500); INSERT INTO p1 VALUES (5) ON CONFLICT DO NOTHING; '
	  . 'SELECT sum(v) FROM p1 WHERE k IN (5, 2500); COMMIT; SELECT sum(v) FROM p WHERE k IN (5, 2500);', qr/2505.*2500/s);
same('a cursor over what is rebuilt', "$new $fill BEGIN; DECLARE c CURSOR FOR SELECT k FROM n WHERE v >= 7 ORDER BY v; FETCH 3 FROM c; SAVEPOINT s; REINDEX INDEX n_v; ROLLBACK TO s; TRUNCATE n; ROLLBACK TO s; ALTER INDEX n_v SET (fillfactor = 50); FETCH 2 FROM c; COMMIT; $ask",
	qr/being used by active queries/);
if ($node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on')
{
	same('caches thrown away at each turn', "CREATE TABLE n (k int8 PRIMARY KEY, v int); CREATE INDEX n_v ON n (v); INSERT INTO n SELECT g, g % 100 FROM generate_series(1, 500) g; SELECT count(*) FROM n WHERE v = 7; SET debug_discard_caches = 1; "
		  . 'INSERT INTO n VALUES (77) ON CONFLICT DO NOTHING; BEGIN; INSERT INTO n VALUES (501, 1) ON CONFLICT (k) DO UPDATE SET v = 5; SAVEPOINT s; UPDATE n SET k = k + 1000 WHERE v = 7; ROLLBACK TO s; '
		  . 'SELECT count(*), sum(k) FROM n WHERE v BETWEEN 7 AND 9; DECLARE c CURSOR FOR SELECT k FROM n WHERE v = 7 ORDER BY v; FETCH 2 FROM c; DELETE FROM n WHERE k = 107; FETCH 2 FROM c; COMMIT; SELECT count(*) FROM n WHERE v = 7;',
		qr/15\|3120/);
}

# ---- more invalidations than a session's queue holds ----

make_table();
name_in($node, 'postgres', 't_pkey', 't_ab');
my $session = $node->background_psql('postgres');
$session->query_safe("$settings SET plan_cache_mode = force_generic_plan; PREPARE k AS SELECT id FROM t WHERE id = 70; PREPARE i(int8) AS INSERT INTO t VALUES (\$1, 1, 1); EXECUTE k; EXECUTE i(1); "
	  . 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE a > 100 ORDER BY a, b; FETCH 1 FROM c');
$node->safe_psql('postgres', 'SET client_min_messages = error; DO $$ BEGIN FOR i IN 1 .. 500 LOOP CREATE TEMP TABLE IF NOT EXISTS x (k int PRIMARY KEY); ALTER TABLE x ADD c int; ALTER TABLE x DROP c; END LOOP; END $$');
is($session->query_safe('EXECUTE k; EXECUTE i(2); FETCH 1 FROM c; COMMIT'), "70\n20210", 'a session goes on after its queue has overflown');
is(predicted_in($node, 'postgres', sub { asked($session, 'EXECUTE k; EXECUTE i(3)') }, 't_pkey', 't_ab'), 't_pkey t_ab', 'and serves');
$session->quit;

is(amcheck_all($node, 'postgres'), '', 'amcheck is content with all');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|XX000|terminated by signal/, 'no internal errors in the log');
$node->stop;
done_testing();
