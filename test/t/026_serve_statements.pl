# Every kind of statement that asks for a btree index by name works on served ones, and gives the same output: the same
# commands are run in a database without the extension, in one whose indexes are named, and in one with
# learnedbtree.btree_indexes = 'all'.  What has to be served is, and amcheck is content afterwards.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = serving_node('statements');
my %databases = (named => 'indexes named', every => 'all served');
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach 'plain', sort keys %databases;
$node->safe_psql($_, 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck') foreach sort keys %databases;
$node->safe_psql('postgres', q{ALTER DATABASE every SET learnedbtree.btree_indexes = 'all'; ALTER DATABASE named SET learnedbtree.btree_indexes = '*_*'});

# What a psql session says, errors included.
sub output
{
	my ($database, $sql) = @_;
	my (undef, $out, $err) = $node->psql($database, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;\n$sql",
		on_error_stop => 0, extra_params => [ '-v', 'VERBOSITY=default' ]);
	return "$out\n" . ($err =~ s/^psql:<stdin>:\d+: //gmr);
}

# Name, commands that make tables, commands, what the output must have, indexes that are to be served.
sub same
{
	my ($name, $make, $commands, $wanted, @indexes) = @_;
	$node->safe_psql($_, $make) foreach 'plain', sort keys %databases;
	my $plain = output('plain', $commands);
	like($plain, $wanted, "$name: as wanted with btree");
	foreach my $database (sort keys %databases)
	{
		my $out;
		is(served_in($node, $database, sub { $out = output($database, $commands) }, @indexes), "@indexes",
			"$name, $databases{$database}: they are served");
		is($out, $plain, "$name, $databases{$database}: the output is the same");
	}
	return;
}

# ---- ON CONFLICT ----

same('ON CONFLICT', <<'SQL', <<'SQL2', qr/cannot affect row a second time.*duplicate key value.*does not support deferrable/s,
CREATE TABLE c (id int8 PRIMARY KEY, code text COLLATE "C", n int NOT NULL DEFAULT 0, at timestamptz, late int,
	CONSTRAINT c_code UNIQUE (code), CONSTRAINT c_late UNIQUE (late) DEFERRABLE);
CREATE UNIQUE INDEX c_at ON c ((at AT TIME ZONE 'UTC'), n) WHERE n < 100;
INSERT INTO c SELECT g * 2, 'code ' || g, g % 200, '2026-01-01Z'::timestamptz + g * interval '1 s', g FROM generate_series(1, 3000) g;
ANALYZE c;
SQL
INSERT INTO c VALUES (2, 'code 1') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO c VALUES (3, 'code 2') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO c VALUES (5, 'new 5') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO c VALUES (2, 'new 2') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO c VALUES (7, 'code 9') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO c VALUES (9, 'code 9') ON CONFLICT (code) DO NOTHING RETURNING *;
INSERT INTO c VALUES (2, 'new 2') ON CONFLICT ON CONSTRAINT c_pkey DO NOTHING RETURNING *;
INSERT INTO c VALUES (11, 'code 9') ON CONFLICT ON CONSTRAINT c_code DO NOTHING RETURNING *;
INSERT INTO c VALUES (2, 'other 2', 7) ON CONFLICT (id) DO UPDATE SET n = c.n + excluded.n, code = excluded.code RETURNING *;
INSERT INTO c VALUES (13, 'code 3', 7) ON CONFLICT ON CONSTRAINT c_code DO UPDATE SET id = excluded.id RETURNING *;
INSERT INTO c VALUES (13, 'x', 7) ON CONFLICT (id) DO UPDATE SET n = 0 WHERE c.n > 1000 RETURNING *;
INSERT INTO c VALUES (15, 'at', 20, '2026-01-01 00:00:20Z') ON CONFLICT ((at AT TIME ZONE 'UTC'), n) WHERE n < 100
	DO UPDATE SET code = 'the same time' RETURNING id, code, n;
INSERT INTO c SELECT g, 'many ' || g FROM generate_series(5000, 7000) g ON CONFLICT (id) DO UPDATE SET n = c.n + 1000;
INSERT INTO c SELECT g, 'code ' || g FROM generate_series(6500, 8000) g ON CONFLICT DO NOTHING;
INSERT INTO c VALUES (21, 'a'), (21, 'b') ON CONFLICT (id) DO UPDATE SET code = excluded.code;
INSERT INTO c VALUES (21, 'a'), (21, 'b') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO c VALUES (2, 'again');
INSERT INTO c (id, late) VALUES (23, 5) ON CONFLICT (late) DO NOTHING;
INSERT INTO c (id, late) VALUES (25, 5), (27, NULL) ON CONFLICT DO NOTHING RETURNING id;
BEGIN; SET CONSTRAINTS c_late DEFERRED; UPDATE c SET late = late + 1 WHERE late < 10; COMMIT;
BEGIN; SET CONSTRAINTS c_late DEFERRED; INSERT INTO c (id, late) VALUES (29, 700); COMMIT;
MERGE INTO c USING (SELECT g AS id FROM generate_series(5990, 6110, 3) g) s ON c.id = s.id
	WHEN MATCHED AND c.n > 1000 THEN DELETE WHEN MATCHED THEN UPDATE SET n = -1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'merged ' || s.id);
SELECT count(*), sum(id), sum(n), md5(string_agg(code, ' ')) FROM (SELECT * FROM c ORDER BY id) q;
SELECT count(*), md5(string_agg(id::text, ' ')) FROM (SELECT * FROM c ORDER BY code) q;
SQL2
	qw(c_pkey c_code c_late c_at));

same('ON CONFLICT, partitions', <<'SQL', <<'SQL2', qr/up\|1001\|8/,
CREATE TABLE p (k int8, v int NOT NULL DEFAULT 0, w text, PRIMARY KEY (k)) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (9000) PARTITION BY RANGE (k);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE p22 (w text, v int NOT NULL DEFAULT 0, k int8 NOT NULL);
ALTER TABLE p2 ATTACH PARTITION p22 FOR VALUES FROM (2000) TO (9000);
INSERT INTO p SELECT g FROM generate_series(1, 6000, 2) g;
ANALYZE p;
SQL
INSERT INTO p VALUES (1, 5), (2, 5), (1001, 5), (1002, 5), (2001, 5), (2002, 5) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO p VALUES (3, 5), (4, 5), (1003, 5), (1004, 5), (2003, 5), (2004, 5) ON CONFLICT (k) DO NOTHING RETURNING *;
INSERT INTO p VALUES (1, 7), (1001, 8), (2001, 9), (2006, 9) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING 'up', *;
INSERT INTO p VALUES (3, 7), (1003, 8) ON CONFLICT ON CONSTRAINT p_pkey DO UPDATE SET v = p.v + 1 RETURNING *;
INSERT INTO p VALUES (2001, 9) ON CONFLICT (k) DO UPDATE SET k = 3;
INSERT INTO p SELECT g, 1 FROM generate_series(100, 8000) g ON CONFLICT (k) DO UPDATE SET v = p.v + 1;
UPDATE p SET k = k + 1000 WHERE k IN (10, 12, 1010);
UPDATE p SET k = 5010 WHERE k = 11;
SELECT tableoid::regclass, count(*), sum(k), sum(v) FROM p GROUP BY 1 ORDER BY 1;
SELECT k, v FROM p WHERE k = 1005;
SQL2
	qw(p1_pkey p21_pkey p22_pkey));

# ---- scans ----

same('row comparisons', <<'SQL', <<'SQL2', qr/Index Cond: \(ROW\(a, b\) > ROW\(20, 30\)\).*Index Cond: \(ROW\(a, b, id\) <= ROW/s,
CREATE TABLE r (id int8 PRIMARY KEY, a int4, b int4, x text);
INSERT INTO r SELECT g, g / 100, g % 100, 'x' || g % 7 FROM generate_series(1, 6000) g;
INSERT INTO r VALUES (6001, 20, NULL), (6002, NULL, 5);
CREATE INDEX r_abi ON r (a, b, id);
CREATE INDEX r_ad ON r (a DESC, b DESC);
ANALYZE r;
SQL
EXPLAIN (COSTS off) SELECT id FROM r WHERE (a, b) > (20, 30) ORDER BY a, b LIMIT 5;
EXPLAIN (COSTS off) SELECT id FROM r WHERE (a, b, id) <= (20, 30, 2030) ORDER BY a DESC, b DESC, id DESC LIMIT 5;
SELECT id FROM r WHERE (a, b) > (20, 30) ORDER BY a, b LIMIT 5;
SELECT id FROM r WHERE (a, b) >= (20, 99) ORDER BY a, b LIMIT 5;
SELECT id FROM r WHERE (a, b, id) <= (20, 30, 2030) ORDER BY a DESC, b DESC, id DESC LIMIT 5;
SELECT count(*), sum(id) FROM r WHERE (a, b) < (7, 7);
SELECT count(*), sum(id) FROM r WHERE (a, b) BETWEEN (7, 7) AND (9, 9);
SELECT id FROM r WHERE a = 20 AND (b, id) > (50, 2050) ORDER BY b, id LIMIT 3;
SELECT count(*) FROM r WHERE (a, b) > (20, NULL);
DROP INDEX r_abi;
SELECT id FROM r WHERE (a, b) < (20, 30) ORDER BY a DESC, b DESC LIMIT 5;
SQL2
	'r_ad');

same('scans', <<'SQL', <<'SQL2', qr/Merge Join/,
CREATE TABLE s (id int8 PRIMARY KEY, d int4, x text COLLATE "C");
INSERT INTO s SELECT g, NULLIF(g / 20, 77), 'x' || g FROM generate_series(1, 6000) g;
CREATE INDEX s_d ON s (d);
CREATE INDEX s_x ON s (x text_pattern_ops) INCLUDE (id);
CREATE TABLE s2 AS SELECT * FROM s;
CREATE INDEX s2_d ON s2 (d);
VACUUM ANALYZE s, s2;
SQL
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM s WHERE d BETWEEN 30 AND 60 ORDER BY d, id % 1;
FETCH 3 FROM c; FETCH BACKWARD 2 FROM c; FETCH LAST FROM c; FETCH PRIOR FROM c; FETCH ABSOLUTE 300 FROM c; FETCH RELATIVE -250 FROM c;
COMMIT;
BEGIN;
DECLARE u CURSOR FOR SELECT id FROM s WHERE id > 5000 ORDER BY id FOR UPDATE;
FETCH 2 FROM u; UPDATE s SET x = 'current' WHERE CURRENT OF u; DELETE FROM s WHERE CURRENT OF u; FETCH 1 FROM u;
COMMIT;
SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off;
EXPLAIN (COSTS off) SELECT count(*), sum(s.id + s2.id) FROM s JOIN s2 USING (d) WHERE d < 40;
SELECT count(*), sum(s.id + s2.id) FROM s JOIN s2 USING (d) WHERE d < 40;
RESET enable_nestloop; SET enable_mergejoin = off;
SELECT count(*), sum(s.id + s2.id) FROM s JOIN s2 USING (d) WHERE s.id < 900;
SELECT count(*), sum(id) FROM s WHERE id = ANY ('{5, 17, 17, 5999, 0, 400}');
SELECT count(*), sum(id) FROM s WHERE d IN (5, 17, 222) AND id > 100;
SELECT count(*), sum(id) FROM s WHERE d IS NULL;
SELECT min(d), max(d), min(id), max(id), min(x) FROM s;
SELECT DISTINCT ON (d) d, id FROM s WHERE d < 4 ORDER BY d, id;
SELECT id FROM s WHERE x LIKE 'x59%' ORDER BY x COLLATE "C" LIMIT 3;
SELECT (SELECT id FROM s i WHERE i.id = o.id + 1) FROM s o WHERE o.d = 3 ORDER BY id LIMIT 3;
RESET enable_bitmapscan; SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
SELECT count(*), sum(id) FROM s WHERE (d = 7 OR id BETWEEN 50 AND 70) AND x >= 'x';
SAVEPOINT outside;
BEGIN; INSERT INTO s VALUES (9001, 1, 'a'); SAVEPOINT a; INSERT INTO s SELECT g, 1, 'b' FROM generate_series(9002, 9400) g;
SELECT count(*) FROM s WHERE d = 1; ROLLBACK TO a; SELECT count(*) FROM s WHERE d = 1; INSERT INTO s VALUES (9001); ROLLBACK TO a;
SELECT count(*) FROM s WHERE d = 1; COMMIT;
SELECT count(*) FROM s WHERE d = 1;
SQL2
	qw(s_pkey s_d s_x s2_d));

# ---- what asks for btree ----

same('foreign keys', <<'SQL', <<'SQL2', qr/violates foreign key constraint "fk2_a_fkey".*still referenced/s,
CREATE TABLE fk1 (id int8 PRIMARY KEY, code text COLLATE "C" UNIQUE);
INSERT INTO fk1 SELECT g, 'c' || g FROM generate_series(1, 3000) g;
CREATE TABLE fk2 (id int8 PRIMARY KEY, a int8 REFERENCES fk1 ON DELETE CASCADE ON UPDATE CASCADE,
	c text COLLATE "C" REFERENCES fk1 (code) ON DELETE SET NULL);
CREATE INDEX fk2_a ON fk2 (a);
CREATE INDEX fk2_c ON fk2 (c);
CREATE TABLE fk3 (id int8 REFERENCES fk2 DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX fk3_id ON fk3 (id);
ANALYZE;
SQL
INSERT INTO fk2 SELECT g, g % 3000 + 1, 'c' || g % 2900 + 1 FROM generate_series(1, 6000) g;
INSERT INTO fk2 VALUES (7001, 3001);
INSERT INTO fk2 VALUES (7001, 1, 'none');
DELETE FROM fk1 WHERE id BETWEEN 10 AND 500;
UPDATE fk1 SET id = id + 10000 WHERE id BETWEEN 600 AND 700;
SELECT count(*), count(a), count(c), sum(a) FROM fk2;
BEGIN; INSERT INTO fk3 VALUES (8000); INSERT INTO fk2 VALUES (8000, 1); COMMIT;
BEGIN; INSERT INTO fk3 VALUES (8001); COMMIT;
DELETE FROM fk2 WHERE id = 8000;
SELECT count(*) FROM fk3;
ALTER TABLE fk2 ADD FOREIGN KEY (id) REFERENCES fk1;
SQL2
	qw(fk1_pkey fk1_code_key fk2_pkey fk2_a fk2_c fk3_id));

same('REFRESH MATERIALIZED VIEW CONCURRENTLY', <<'SQL', <<'SQL2', qr/^6\|2101$/m,
CREATE TABLE base (id int8 PRIMARY KEY, v int);
INSERT INTO base SELECT g, g % 10 FROM generate_series(1, 6000) g;
CREATE MATERIALIZED VIEW mv AS SELECT id, v FROM base;
CREATE UNIQUE INDEX mv_id ON mv (id);
CREATE INDEX mv_v ON mv (v, id);
SQL
RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_sort;
UPDATE base SET v = v + 1 WHERE id % 4 = 1; DELETE FROM base WHERE id % 50 = 0; INSERT INTO base SELECT g, 6 FROM generate_series(7000, 8200) g;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
SELECT count(*), sum(id), sum(v) FROM mv;
SELECT v, count(*) FROM mv WHERE v > 5 GROUP BY v ORDER BY v;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
REFRESH MATERIALIZED VIEW mv;
SELECT count(*) FROM mv WHERE v = 6;
SQL2
	qw(base_pkey mv_id mv_v));

same('constraints, CLUSTER and replica identity', <<'SQL', <<'SQL2', qr/k_pk\|t\|t\|f\|t.*k_un\|f\|t\|t\|f/s,
CREATE TABLE k (id int8 NOT NULL, code text COLLATE "C" NOT NULL, v int);
INSERT INTO k SELECT (g * 7919) % 6007, 'code ' || g, g FROM generate_series(1, 6000) g;
CREATE UNIQUE INDEX k_id ON k (id);
CREATE UNIQUE INDEX k_code ON k (code);
CREATE INDEX k_v ON k (v);
ANALYZE k;
SQL
ALTER TABLE k ADD CONSTRAINT k_pk PRIMARY KEY USING INDEX k_id;
ALTER TABLE k ADD CONSTRAINT k_un UNIQUE USING INDEX k_code;
ALTER TABLE k REPLICA IDENTITY USING INDEX k_un;
CLUSTER k USING k_pk;
SELECT indexrelid::regclass, indisprimary, indisunique, indisreplident, indisclustered FROM pg_index WHERE indrelid = 'k'::regclass ORDER BY 1;
SELECT id, v FROM k WHERE ctid = '(0,1)';
INSERT INTO k VALUES (3, 'x'); INSERT INTO k VALUES (6100, 'code 3'); INSERT INTO k VALUES (6100, 'new');
UPDATE k SET v = 0 WHERE id = 77 RETURNING *; DELETE FROM k WHERE code = 'code 78' RETURNING *;
CREATE TABLE k2 (id int8 REFERENCES k, code text COLLATE "C" REFERENCES k (code)); INSERT INTO k2 VALUES (77, 'code 79'), (1, NULL);
INSERT INTO k2 VALUES (78, 'code 78');
ALTER TABLE k ALTER COLUMN v TYPE int8; SELECT count(*) FROM k WHERE v BETWEEN 7 AND 300;
TRUNCATE k CASCADE; INSERT INTO k VALUES (3, 'x', 1); SELECT * FROM k WHERE id = 3; SELECT * FROM k WHERE v = 1;
INSERT INTO k SELECT g, g, g FROM generate_series(10, 3000) g; SELECT count(*) FROM k WHERE v BETWEEN 7 AND 300; INSERT INTO k VALUES (77, 'y');
VACUUM FULL k; SELECT id FROM k WHERE code = '77'; INSERT INTO k VALUES (77, 'y'); INSERT INTO k VALUES (4001, 'y');
SQL2
	'k_v');

same('exclusion constraints and temporary tables', <<'SQL', <<'SQL2', qr/conflicting key value violates exclusion constraint/,
CREATE TABLE e (room int, EXCLUDE USING btree (room WITH =));
INSERT INTO e SELECT generate_series(1, 3000);
SQL
INSERT INTO e VALUES (77); INSERT INTO e VALUES (3001); INSERT INTO e VALUES (78) ON CONFLICT DO NOTHING;
SELECT * FROM e WHERE room = 3001;
CREATE TEMP TABLE mine (k int PRIMARY KEY); INSERT INTO mine SELECT generate_series(1, 3000); INSERT INTO mine VALUES (5) ON CONFLICT DO NOTHING;
SELECT * FROM mine WHERE k = 99;
CREATE UNLOGGED TABLE ul (k int PRIMARY KEY); INSERT INTO ul SELECT generate_series(1, 3000); INSERT INTO ul VALUES (5) ON CONFLICT DO NOTHING;
SELECT * FROM ul WHERE k = 99;
SQL2
	'e_room_excl');

# COPY does not look at children that are being dropped: here pg_inherits names one of which nothing else is left.
$node->safe_psql('every', "CREATE TABLE parent (k int PRIMARY KEY); CREATE TABLE child () INHERITS (parent); SET allow_system_table_mods = on; "
	  . "INSERT INTO pg_inherits VALUES (1, 'parent'::regclass, 1, false)");
is($node->psql('every', "COPY parent FROM PROGRAM 'echo 1'"), 0, 'COPY while a child is being dropped');
$node->safe_psql('every', "SET allow_system_table_mods = on; DELETE FROM pg_inherits WHERE inhrelid = 1; DROP TABLE parent, child");
# What depends on a temporary object is dropped with it, when the session ends.
{
	my $from = -s $node->logfile;
	$node->safe_psql('every', "CREATE TABLE lasting (k int); INSERT INTO lasting SELECT generate_series(1, 3000); CREATE FUNCTION pg_temp.same(int) RETURNS int "
		  . "IMMUTABLE LANGUAGE sql AS 'SELECT \$1'; CREATE INDEX lasting_k ON lasting (pg_temp.same(k))");
	ok($node->poll_query_until('every', "SELECT to_regclass('lasting_k') IS NULL"), 'an index that depends on a temporary function goes with the session');
	unlike(slurp_file($node->logfile, $from), qr/FATAL|PANIC|TRAP/, 'which ends as it should');
}
# Locales may go, or be missing on a standby's system: only what compares by one needs it.
same('a collation that cannot be opened', <<'SQL', <<'SQL2', qr/^1000\n.*^1500\n.*could not create locale.*could not create locale/sm,
CREATE COLLATION lost (provider = libc, locale = 'C');
CREATE TABLE lost (id int, y text COLLATE lost);
INSERT INTO lost SELECT g, CASE WHEN g % 2 = 0 THEN md5(g::text) END FROM generate_series(1, 3000) g;
CREATE INDEX lost_id ON lost (id);
CREATE INDEX lost_y ON lost (y);
ANALYZE lost;
SET allow_system_table_mods = on;
UPDATE pg_collation SET collcollate = 'xx_YY.utf8', collctype = 'xx_YY.utf8' WHERE collname = 'lost';
SQL
SELECT count(*) FROM lost WHERE id > 2000;
DELETE FROM lost WHERE id = 3;
SELECT count(y) FROM lost WHERE y IS NOT NULL;
SELECT count(*) FROM lost WHERE y IS NULL;
SELECT count(*) FROM lost WHERE y = 'a';
INSERT INTO lost VALUES (3, 'b');
SQL2
	'lost_id');
$node->safe_psql($_, 'DROP TABLE lost') foreach 'plain', sort keys %databases;

# ---- a key that refers to many partitions ----

# As many relcache entries as without: the catalogs have a key for each partition, but a check looks into one.
same('key to partitions', <<'SQL', <<'SQL2', qr/^\d+\n\d+\n.*violates foreign key/s,
CREATE TABLE pk (id int PRIMARY KEY) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE pk_%s PARTITION OF pk FOR VALUES FROM (%1$s000) TO (%s000)', i, i + 1) FROM generate_series(0, 29) i \gexec
INSERT INTO pk SELECT generate_series(0, 29999, 2);
CREATE TABLE fk (id int PRIMARY KEY, pk int REFERENCES pk);
INSERT INTO fk SELECT i, i % 15000 * 2 FROM generate_series(1, 3000) i;
ANALYZE pk, fk;
SQL
INSERT INTO fk VALUES (100000, 7000);
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'index info' AND ident LIKE 'pk#__%' ESCAPE '#';
INSERT INTO fk VALUES (100001, 9001);
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'index info' AND ident LIKE 'pk#__%' ESCAPE '#';
SQL2
	qw(fk_pkey pk_7_pkey pk_9_pkey));

# ---- afterwards ----

foreach my $database (sort keys %databases)
{
	is(amcheck_all($node, $database), '', "$databases{$database}: amcheck is content");
	$node->command_ok([ 'pg_amcheck', '--heapallindexed', '--rootdescend', '--parent-check', $database ], "$databases{$database}: so is pg_amcheck");
	is($node->safe_psql($database, q{SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'learnedbtree'}), '0',
		"$databases{$database}: the catalogs know of no index of ours");
}
$node->stop;
done_testing();
