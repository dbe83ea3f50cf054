-- Served btree indexes give what btree gives: all that other access methods must do without, too, on every version.

\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE TABLE sv (a int NOT NULL, b int NOT NULL, t text, u uuid, PRIMARY KEY (a, b));
INSERT INTO sv SELECT mix(i) % 5000, i, 'row ' || mix(i), md5(i::text)::uuid FROM generate_series(1, 30000) i;
CREATE UNIQUE INDEX sv_t ON sv (t COLLATE "C");
CREATE INDEX sv_u ON sv (u);
CREATE INDEX sv_desc ON sv (b DESC, a) INCLUDE (t);
CREATE INDEX sv_some ON sv ((a + b)) WHERE a % 2 = 0;
VACUUM ANALYZE sv;

-- Not before, so that first uses train models of all leaves.
SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;

-- answers, through the model and through nbtree's own engine, against a sequential scan
SELECT i, q, compare(i, q, false)
  FROM (VALUES ('sv_pkey', 'SELECT a, b FROM sv WHERE a = 77'),
               ('sv_pkey', 'SELECT a, b, t FROM sv WHERE a BETWEEN 70 AND 75'),
               ('sv_pkey', 'SELECT a, b FROM sv WHERE a = 12 AND b > 1000'),
               ('sv_pkey', 'SELECT a, b FROM sv WHERE a IN (1, 5, 900, 4999, 70000)'),
               ('sv_pkey', 'SELECT a, b FROM sv WHERE (a, b) > (4990, 20000)'),
               ('sv_t', 'SELECT t FROM sv WHERE t COLLATE "C" >= ''row 2'' AND t COLLATE "C" < ''row 21'''),
               ('sv_u', 'SELECT u FROM sv WHERE u < ''01000000-0000-0000-0000-000000000000'''),
               ('sv_desc', 'SELECT b, a, t FROM sv WHERE b < 200'),
               ('sv_some', 'SELECT a FROM sv WHERE a + b = 900 AND a % 2 = 0')) v (i, q);
EXPLAIN (COSTS OFF) SELECT a, b FROM sv WHERE (a, b) > (4990, 20000) ORDER BY a, b LIMIT 3;
SELECT lookups > 0 AS looked_up, verified = lookups AS verified FROM learnedbtree_stat WHERE indexrelname = 'sv_pkey';

SELECT state, source, leaves > 50 AS leaves FROM learnedbtree_model('sv_pkey');

-- a tree with more than one inner level, which is trained by reading level 1 ahead
CREATE TABLE sv_deep (t text COLLATE "C" PRIMARY KEY);
INSERT INTO sv_deep SELECT (SELECT string_agg(md5(p::text), '') FROM generate_series(1, 7) p) || mix(i) FROM generate_series(1, 20000) i;
SELECT height >= 3 AS deep FROM learnedbtree_indexes WHERE indexname = 'sv_deep_pkey';
SELECT learnedbtree_train('sv_deep_pkey');
SELECT bt_index_parent_check('sv_deep_pkey', true, true);
SELECT separators > 500 AS separators, fallbacks FROM learnedbtree_check('sv_deep_pkey');
SELECT compare('sv_deep_pkey', format('SELECT right(t, 12) FROM sv_deep WHERE t > %L', (SELECT min(t) || '5' FROM sv_deep)), false);
DROP TABLE sv_deep;

-- a file that is btree's, and nothing else
SELECT saved_model FROM learnedbtree_check('sv_pkey');
SELECT bt_index_parent_check(i::regclass, true, true) FROM unnest(ARRAY['sv_pkey', 'sv_t', 'sv_u', 'sv_desc', 'sv_some']) i;

-- inserts through the model, then ON CONFLICT in all its forms
INSERT INTO sv SELECT mix(i) % 5000, i, 'row ' || mix(i), md5(i::text)::uuid FROM generate_series(30001, 40000) i;
SELECT inserts > 9000 AS asked, inserts_placed > 5000 AS placed FROM learnedbtree_stat WHERE indexrelname = 'sv_pkey';
INSERT INTO sv SELECT a, b, 'again', u FROM sv WHERE a = 77 ON CONFLICT DO NOTHING;
INSERT INTO sv SELECT a, b, t, u FROM sv WHERE a = 77 ON CONFLICT (a, b) DO UPDATE SET t = sv.t || '!' RETURNING sv.t LIKE '%!';
INSERT INTO sv SELECT a, b, t, u FROM sv WHERE a = 77 ON CONFLICT ON CONSTRAINT sv_pkey DO UPDATE SET t = excluded.t || '?';
INSERT INTO sv SELECT a, b, t || 'x', u FROM sv WHERE a = 77;
SELECT count(*), count(*) FILTER (WHERE t LIKE '%?') AS updated FROM sv WHERE a = 77;

-- foreign keys, both ways
CREATE TABLE sv_child (a int, b int, FOREIGN KEY (a, b) REFERENCES sv ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX sv_child_ab ON sv_child (a, b);
INSERT INTO sv_child SELECT a, b FROM sv WHERE a < 100;
INSERT INTO sv_child VALUES (1, 1000000);
SELECT count(*) AS children FROM sv_child WHERE a = 33;
DELETE FROM sv WHERE a = 33;
UPDATE sv SET a = 6000 WHERE a = 34;
SELECT count(*) AS deleted FROM sv_child WHERE a = 33;
SELECT count(*) > 0 AS moved FROM sv_child WHERE a = 6000;

-- a partitioned table: conflicts, routed rows
CREATE TABLE sv_part (k int PRIMARY KEY, v int) PARTITION BY RANGE (k);
CREATE TABLE sv_part_1 PARTITION OF sv_part FOR VALUES FROM (0) TO (10000);
CREATE TABLE sv_part_2 PARTITION OF sv_part FOR VALUES FROM (10000) TO (20000);
INSERT INTO sv_part SELECT i, 0 FROM generate_series(0, 19999, 2) i;
INSERT INTO sv_part SELECT i, 1 FROM generate_series(0, 19999) i ON CONFLICT (k) DO UPDATE SET v = 2;
SELECT v, count(*) FROM sv_part GROUP BY v ORDER BY v;
INSERT INTO sv_part VALUES (5, 0);
UPDATE sv_part SET k = 19000 WHERE k = 1;
SELECT indexrelname, inserts > 0 AS asked FROM learnedbtree_stat WHERE indexrelname LIKE 'sv_part%' ORDER BY 1;
MERGE INTO sv_part p USING (SELECT i FROM generate_series(19990, 20000 - 1) i) s ON p.k = s.i
  WHEN MATCHED THEN UPDATE SET v = 7 WHEN NOT MATCHED THEN INSERT VALUES (s.i, 8);
SELECT v, count(*) FROM sv_part GROUP BY v ORDER BY v;

-- REFRESH CONCURRENTLY, CLUSTER, constraints by index, exclusion, deferred checks
CREATE MATERIALIZED VIEW sv_mv AS SELECT a, b FROM sv WHERE a < 1000;
CREATE UNIQUE INDEX sv_mv_ab ON sv_mv (a, b);
SELECT count(*) > 0 AS rows FROM sv_mv WHERE a = 7;
DELETE FROM sv WHERE a = 7;
REFRESH MATERIALIZED VIEW CONCURRENTLY sv_mv;
SELECT count(*) AS rows FROM sv_mv WHERE a = 7;
CLUSTER sv USING sv_pkey;
SELECT a, b FROM sv WHERE a = 8 ORDER BY a, b LIMIT 1;
CREATE TABLE sv_key (k int NOT NULL, w int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE UNIQUE INDEX sv_key_k ON sv_key (k);
INSERT INTO sv_key SELECT i, i FROM generate_series(1, 5000) i;
SELECT k FROM sv_key WHERE k = 70;
ALTER TABLE sv_key ADD PRIMARY KEY USING INDEX sv_key_k;
SELECT k FROM sv_key WHERE k = 71;
UPDATE sv_key SET w = w + 1;
UPDATE sv_key SET w = 5001 WHERE k = 1;
ALTER TABLE sv_key REPLICA IDENTITY USING INDEX sv_key_k;

-- COPY
COPY sv_key (k, w) FROM stdin;
6000	6000
6001	6001
\.
COPY sv_key (k, w) FROM stdin;
6000	6002
\.
SELECT count(*) FROM sv_key WHERE k BETWEEN 5990 AND 6010;

-- DDL in the transaction that uses the index, and a file that is made anew in place
BEGIN;
CREATE TABLE sv_new (k int PRIMARY KEY);
INSERT INTO sv_new SELECT mix(i) % 1000000 FROM generate_series(1, 20000) i ON CONFLICT DO NOTHING;
SELECT count(*) > 0 AS found FROM sv_new WHERE k < 5000;
ALTER INDEX sv_new_pkey SET (fillfactor = 50);
SELECT count(*) > 0 AS found FROM sv_new WHERE k < 5000;
TRUNCATE sv_new;
SELECT count(*) AS found FROM sv_new WHERE k < 5000;
INSERT INTO sv_new SELECT i FROM generate_series(1, 100) i;
SELECT count(*) AS found FROM sv_new WHERE k < 5000;
REINDEX INDEX sv_new_pkey;
SELECT count(*) AS found FROM sv_new WHERE k < 50;
SAVEPOINT s;
INSERT INTO sv_new SELECT i FROM generate_series(1000, 3000) i;
TRUNCATE sv_new;
SELECT count(*) AS found FROM sv_new WHERE k < 5000;
ROLLBACK TO s;
SELECT count(*) AS found FROM sv_new WHERE k < 5000;
COMMIT;
SELECT count(*) AS found FROM sv_new WHERE k < 5000;

-- the session changes its mind in the middle of a scan
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM sv_key WHERE k > 10 ORDER BY k;
FETCH 2 FROM c;
SET LOCAL learnedbtree.btree_indexes = 'none';
FETCH 2 FROM c;
SELECT k FROM sv_key WHERE k = 99;
SET LOCAL learnedbtree.btree_indexes = 'all';
FETCH 2 FROM c;
COMMIT;

-- a function that the statement calls has settings of its own, and looks into the same index
CREATE FUNCTION sv_by_btree(int) RETURNS int LANGUAGE plpgsql SET learnedbtree.btree_indexes = 'none'
  AS $$ BEGIN RETURN (SELECT k FROM sv_key WHERE k = $1); END $$;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT learnedbtree_stat_reset('sv_key_k');
SELECT count(*), sum(sv_by_btree(s.k)) FROM generate_series(1001, 2000) g (i) JOIN sv_key s ON s.k = g.i;
SELECT lookups, delegated FROM learnedbtree_stat WHERE indexrelname = 'sv_key_k';
RESET enable_hashjoin;
RESET enable_mergejoin;
DROP FUNCTION sv_by_btree;

-- an extension's table among the catalogs is none of ours
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.sv_dist (k int PRIMARY KEY);
SELECT learnedbtree_train('pg_catalog.sv_dist_pkey');
DROP TABLE pg_catalog.sv_dist;
RESET allow_system_table_mods;

-- our own errors, which are swallowed, end no session
SET exit_on_error = on;
CREATE TABLE sv_exit (k int PRIMARY KEY);
INSERT INTO sv_exit SELECT i FROM generate_series(1, 3000) i;
SELECT k FROM sv_exit WHERE k = 70;
DROP TABLE sv_exit;
RESET exit_on_error;

-- nothing is left of it in the catalogs, and the extension goes without the indexes
SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname LIKE 'sv%' AND relkind = 'i';
SELECT count(*) AS dependencies FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND d.classid = 'pg_class'::regclass
 WHERE c.relname LIKE 'sv%' AND d.refobjid IN (SELECT oid FROM pg_am WHERE amname = 'learnedbtree');
DROP TABLE sv_new, sv_key, sv_part, sv_child;
DROP MATERIALIZED VIEW sv_mv;
DROP TABLE sv;
