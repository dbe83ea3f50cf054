-- Index options and settings.

CREATE TABLE opt (a int);
INSERT INTO opt SELECT mix(i) % 1000000 FROM generate_series(1, 30000) i;

-- btree's options do what they do in btree
CREATE INDEX opt_90 ON opt USING learnedbtree (a);
CREATE INDEX opt_50 ON opt USING learnedbtree (a) WITH (fillfactor = 50);
CREATE INDEX opt_b50 ON opt USING btree (a) WITH (fillfactor = 50);
SELECT pg_relation_size('opt_50') = pg_relation_size('opt_b50') AS as_btree, pg_relation_size('opt_50') > pg_relation_size('opt_90') * 3 / 2 AS larger;
CREATE INDEX opt_nd ON opt USING learnedbtree ((a % 10)) WITH (deduplicate_items = off);
CREATE INDEX opt_dd ON opt USING learnedbtree ((a % 10)) WITH (deduplicate_items = on);
SELECT pg_relation_size('opt_nd') > pg_relation_size('opt_dd') * 2 AS larger;
DROP INDEX opt_b50, opt_nd, opt_dd, opt_50;

-- without the leaf cache, the spline alone predicts
CREATE INDEX opt_e ON opt USING learnedbtree (a);
DROP INDEX opt_90;
ANALYZE opt;
SELECT compare('opt_e', 'SELECT a FROM opt WHERE a BETWEEN 1000 AND 2000');
SET learnedbtree.enable_leaf_cache = off;
SELECT left(compare('opt_e', 'SELECT a FROM opt WHERE a BETWEEN 1000 AND 2000'), 4);
RESET learnedbtree.enable_leaf_cache;

-- out of range, unknown, of the wrong kind
\set VERBOSITY default
CREATE INDEX ON opt USING learnedbtree (a) WITH (fillfactor = 5);
CREATE INDEX ON opt USING learnedbtree (a) WITH (max_error = 2);
CREATE INDEX ON opt USING learnedbtree (a) WITH (buffering = on);
SET learnedbtree.lookahead_rows = -1;
SET learnedbtree.lookahead_rows = 65;
\set VERBOSITY sqlstate
SET learnedbtree.max_model_memory = 63;
\set VERBOSITY default
SET learnedbtree.max_model_memory = '1 leaf';
SET learnedbtree.enable = 7;
SET learnedbtree.nothing = on;
SELECT count(*) AS indexes FROM pg_index WHERE indrelid = 'opt'::regclass;

-- settings: units, kinds, words
SET learnedbtree.max_model_memory = '1MB';
SHOW learnedbtree.max_model_memory;
RESET learnedbtree.max_model_memory;
SELECT name, setting, unit, vartype, context, min_val, max_val, short_desc IS NOT NULL AND extra_desc IS NOT NULL AS described
  FROM pg_settings WHERE name LIKE 'learnedbtree.%' ORDER BY name;
SHOW learnedbtree.debug_sort_keys;	-- is not among them

-- too little memory for a model: the index works, and the state says why
SET learnedbtree.max_model_memory = 64;
CREATE TABLE opt_big (a int, filler text);
ALTER TABLE opt_big ALTER filler SET STORAGE PLAIN;
INSERT INTO opt_big SELECT i, repeat('x', 1900) FROM generate_series(1, 20000) i;
CREATE INDEX opt_big_i ON opt_big USING learnedbtree (a) INCLUDE (filler);
ALTER TABLE opt_big ALTER a SET (n_distinct = 5);
ANALYZE opt_big;
SELECT state, reason, leaves FROM learnedbtree_model('opt_big_i');
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT DISTINCT a FROM opt_big;		-- no loose scan
SELECT compare('opt_big_i', 'SELECT a FROM opt_big WHERE a BETWEEN 1000 AND 1010');
SELECT learnedbtree_train('opt_big_i');
SELECT compare('opt_big_i', 'SELECT a FROM opt_big WHERE a = 5');
SELECT compare('opt_e', 'SELECT a FROM opt WHERE a BETWEEN 1000 AND 2000');
RESET learnedbtree.max_model_memory;
SELECT learnedbtree_train('opt_big_i');
SELECT state, leaves > 4096 AS many FROM learnedbtree_model('opt_big_i');
EXPLAIN (COSTS OFF) SELECT DISTINCT a FROM opt_big;
RESET max_parallel_workers_per_gather;
SELECT compare('opt_big_i', 'SELECT a FROM opt_big WHERE a BETWEEN 1000 AND 1010');
SELECT learnedbtree_model_memory() > 65536 AS memory;
DROP TABLE opt_big, opt;
