-- What depends on the server's version: before 18 PostgreSQL itself insists on btree here.

\set VERBOSITY terse
CREATE TABLE lim (a int NOT NULL, b int NOT NULL, t text);
INSERT INTO lim SELECT i / 10, i % 10, 'row ' || i FROM generate_series(1, 20000) i;
CREATE UNIQUE INDEX lim_ab ON lim USING learnedbtree (a, b);
ANALYZE lim;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- row comparisons: a condition on 18, a filter below; the answers are the same everywhere
EXPLAIN (COSTS OFF) SELECT * FROM lim WHERE (a, b) > (1000, 5) ORDER BY a, b LIMIT 3;
SELECT * FROM lim WHERE (a, b) > (1000, 5) ORDER BY a, b LIMIT 3;
SELECT * FROM lim WHERE (a, b) <= (1000, 5) ORDER BY a DESC, b DESC LIMIT 3;
SELECT * FROM lim WHERE a >= 1000 AND (a, b) > (1000, 5) ORDER BY a, b LIMIT 3;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT c, left(compare('lim_ab', 'SELECT a, b FROM lim WHERE ' || c), 4)
  FROM unnest(ARRAY['(a, b) > (100, 3)', '(a, b) < (3, 0)', '(a, b) >= (1999, 0) AND a <= 1999', 'a = 7 AND (a, b) > (7, 5)']) c;

-- ON CONFLICT
INSERT INTO lim VALUES (1, 1, 'again') ON CONFLICT DO NOTHING;
INSERT INTO lim VALUES (1, 2, 'again') ON CONFLICT (a, b) DO UPDATE SET t = 'changed';
SELECT t FROM lim WHERE a = 1 AND b = 2;

-- a foreign key to it
CREATE TABLE lim_child (a int, b int, FOREIGN KEY (a, b) REFERENCES lim (a, b));
INSERT INTO lim_child VALUES (1, 2);
INSERT INTO lim_child VALUES (1, 20);
DELETE FROM lim WHERE a = 1 AND b = 2;
DROP TABLE IF EXISTS lim_child;

-- a primary key takes btree only
ALTER TABLE lim ADD PRIMARY KEY USING INDEX lim_ab;

-- a materialized view refreshed while it is read
CREATE MATERIALIZED VIEW lim_mv AS SELECT a, b FROM lim WHERE a < 100;
CREATE UNIQUE INDEX lim_mv_i ON lim_mv USING learnedbtree (a, b);
REFRESH MATERIALIZED VIEW lim_mv;
REFRESH MATERIALIZED VIEW CONCURRENTLY lim_mv;

-- a unique index of a partitioned table
CREATE TABLE lim_part (a int NOT NULL, b int) PARTITION BY RANGE (a);
CREATE TABLE lim_part_1 PARTITION OF lim_part FOR VALUES FROM (0) TO (1000);
CREATE UNIQUE INDEX lim_part_i ON lim_part USING learnedbtree (a);
INSERT INTO lim_part SELECT i, i FROM generate_series(1, 100) i;
SELECT count(*) FROM lim_part WHERE a = 50;

-- a parallel build
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
CREATE TABLE lim_par AS SELECT mix(i) AS a FROM generate_series(1, 50000) i;
ALTER TABLE lim_par SET (parallel_workers = 2);
CREATE INDEX lim_par_i ON lim_par USING learnedbtree (a);
SELECT sound('lim_par_i');

DROP TABLE lim_par, lim_part;
DROP MATERIALIZED VIEW lim_mv;
DROP TABLE lim;
