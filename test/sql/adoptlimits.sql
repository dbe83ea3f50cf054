-- What adopted indexes lose before PostgreSQL 18, and what they keep everywhere.

\set SHOW_CONTEXT never
CREATE TABLE adl (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, t text);
INSERT INTO adl SELECT i, i / 10, i % 10, 'row ' || i FROM generate_series(1, 20000) i;
CREATE INDEX adl_ab ON adl (a, b);
CREATE UNIQUE INDEX adl_u ON adl (b, a);
ANALYZE adl;

-- below 18 not without force, and not without a warning
SELECT learnedbtree_adopt('adl_pkey');
SELECT learnedbtree_adopt('adl_ab');
SELECT learnedbtree_adopt('adl_pkey', force => true);
SELECT learnedbtree_adopt('adl_ab', force => true);
SELECT * FROM learnedbtree_adopt_all('adl');
SELECT * FROM learnedbtree_adopt_all('adl', force => true);

-- row comparisons
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM adl WHERE (a, b) > (1000, 5) ORDER BY a, b LIMIT 3;
SELECT id FROM adl WHERE (a, b) > (1000, 5) ORDER BY a, b LIMIT 3;
PREPARE keyset AS SELECT id FROM adl WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE keyset(1000, 5);
SELECT learnedbtree_release('adl_ab');
EXECUTE keyset(1000, 5);
SET client_min_messages = error;
SELECT learnedbtree_adopt('adl_ab', true);
RESET client_min_messages;
EXECUTE keyset(1000, 5);
SELECT learnedbtree_release('adl_ab');
PREPARE keyset2 AS SELECT id FROM adl WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 3;
EXECUTE keyset2(1000, 5);
SET client_min_messages = error;
SELECT learnedbtree_adopt('adl_ab', true);
RESET client_min_messages;
EXECUTE keyset2(1000, 5);
RESET plan_cache_mode;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- ON CONFLICT, and after the release
INSERT INTO adl VALUES (1, 1, 1, 'again') ON CONFLICT DO NOTHING;
INSERT INTO adl VALUES (2, 1, 1, 'again') ON CONFLICT (id) DO UPDATE SET t = 'changed';
SELECT t FROM adl WHERE id = 2;
SELECT index, outcome FROM learnedbtree_release_all('adl');
INSERT INTO adl VALUES (2, 1, 1, 'again') ON CONFLICT (id) DO UPDATE SET t = 'changed';
SELECT t FROM adl WHERE id = 2;
SET client_min_messages = error;
SELECT index, outcome FROM learnedbtree_adopt_all('adl', force => true);
RESET client_min_messages;

-- foreign keys to adopted ones, made before and after; an adopted index has btree's operator classes
CREATE TABLE adl_child (id int REFERENCES adl, a int, b int, FOREIGN KEY (b, a) REFERENCES adl (b, a));
INSERT INTO adl_child VALUES (7, 5, 5);
\set VERBOSITY terse
INSERT INTO adl_child VALUES (0, 5, 5);
INSERT INTO adl_child VALUES (7, 5, 50);
DELETE FROM adl WHERE id = 7;
\set VERBOSITY default

-- replica identity, set before and after
ALTER TABLE adl REPLICA IDENTITY USING INDEX adl_u;
UPDATE adl SET t = 'x' WHERE id = 9;
SELECT learnedbtree_release('adl_u');
UPDATE adl SET t = 'y' WHERE id = 9;
SET client_min_messages = error;
SELECT learnedbtree_adopt('adl_u', force => true);
RESET client_min_messages;
UPDATE adl SET t = 'z' WHERE id = 9;
DELETE FROM adl WHERE id = 9;
ALTER TABLE adl REPLICA IDENTITY DEFAULT;

-- a materialized view refreshed while it is read
CREATE MATERIALIZED VIEW adl_mv AS SELECT id, t FROM adl WHERE id < 100;
CREATE UNIQUE INDEX adl_mv_id ON adl_mv (id);
SELECT learnedbtree_adopt('adl_mv_id', force => true);
REFRESH MATERIALIZED VIEW adl_mv;
REFRESH MATERIALIZED VIEW CONCURRENTLY adl_mv;
SELECT learnedbtree_release('adl_mv_id');
REFRESH MATERIALIZED VIEW CONCURRENTLY adl_mv;

-- new partitions, and partitions that are partitioned
CREATE TABLE adl_p (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE adl_p1 PARTITION OF adl_p FOR VALUES FROM (0) TO (10);
SET client_min_messages = error;
SELECT learnedbtree_adopt('adl_p_pkey', force => true);
CREATE TABLE adl_p2 PARTITION OF adl_p FOR VALUES FROM (10) TO (20);
CREATE TABLE adl_p3 PARTITION OF adl_p FOR VALUES FROM (20) TO (30) PARTITION BY RANGE (a);
-- a table with a btree is not attached; with an adopted one it is
CREATE TABLE adl_p4 (a int PRIMARY KEY);
ALTER TABLE adl_p ATTACH PARTITION adl_p4 FOR VALUES FROM (30) TO (40);
SELECT learnedbtree_adopt('adl_p4_pkey', force => true);
ALTER TABLE adl_p ATTACH PARTITION adl_p4 FOR VALUES FROM (30) TO (40);
INSERT INTO adl_p VALUES (5), (15), (35);
INSERT INTO adl_p VALUES (15);
-- copies
CREATE TABLE adl_like (LIKE adl INCLUDING ALL);
RESET client_min_messages;
INSERT INTO adl_like VALUES (1, 1, 1) ON CONFLICT DO NOTHING;
-- a constraint made of an index wants a btree: release it before
SELECT learnedbtree_adopt('adl_u', force => true);
BEGIN;
ALTER TABLE adl DROP CONSTRAINT adl_pkey CASCADE;
SAVEPOINT a;
ALTER TABLE adl ADD PRIMARY KEY USING INDEX adl_u;
ROLLBACK TO a;
SELECT learnedbtree_release('adl_u');
ROLLBACK;
DROP MATERIALIZED VIEW adl_mv;
DROP TABLE adl_like, adl_p, adl_child, adl;
