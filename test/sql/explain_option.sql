-- EXPLAIN (ANALYZE, LEARNEDBTREE), from 18 on.

SELECT current_setting('server_version_num')::int < 180000 AS old \gset
\if :old
\quit
\endif

-- A session knows the option once it has loaded the library, by hand or by its first use of an index of ours.
-- (Where the server has preloaded it, each session does.)
\c
DO $$
DECLARE
    answer text := 'known';
BEGIN
    BEGIN
        EXECUTE 'EXPLAIN (ANALYZE, LEARNEDBTREE) SELECT 1';
    EXCEPTION WHEN syntax_error THEN
        answer := SQLERRM;
    END;
    IF current_setting('shared_preload_libraries') ~ 'learnedbtree' AND answer = 'known' THEN
        answer := 'unrecognized EXPLAIN option "learnedbtree"';     -- what it is without
    END IF;
    RAISE NOTICE '%', answer;
END $$;
LOAD 'learnedbtree';
SELECT use_am() AS am \gset
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT 1;

CREATE TABLE exo_t (k int, g int, pad text);
INSERT INTO exo_t SELECT i, i % 100, '' FROM generate_series(1, 20000) i;
CREATE INDEX exo_k ON exo_t USING :am (k);
CREATE INDEX exo_g ON exo_t USING :am (g);
CREATE INDEX exo_btree ON exo_t (pad);
SET learnedbtree.btree_indexes = 'all, !exo_btree';
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;
SET enable_memoize = off;
SET enable_bitmapscan = off;
SET jit = off;
SET learnedbtree.enable_prefetch = off;

-- the option and ANALYZE
EXPLAIN (LEARNEDBTREE) SELECT k FROM exo_t WHERE k = 1;
EXPLAIN (LEARNEDBTREE, ANALYZE off) SELECT k FROM exo_t WHERE k = 1;
EXPLAIN (LEARNEDBTREE off, COSTS OFF) SELECT k FROM exo_t WHERE k = 1;
EXPLAIN (LEARNEDBTREE maybe, ANALYZE) SELECT k FROM exo_t WHERE k = 1;
EXPLAIN (ANALYZE, LEARNEDBTREE off, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT pad FROM exo_t WHERE k = 1;
EXPLAIN (ANALYZE, learnedbtree on, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT pad FROM exo_t WHERE k = 1;

SET learnedbtree.lookahead_rows = 0;
-- each kind of scan; a node that is not executed; one of btree's
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT a.pad FROM exo_t a WHERE k IN (5, 5000, 15000);
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT a.pad FROM exo_t a JOIN exo_t b ON b.k = a.k + 1 WHERE a.k BETWEEN 101 AND 200;
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT pad FROM exo_t WHERE k < ANY ('{-1}');
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT k FROM exo_t WHERE k = 5 AND (SELECT count(*) FROM exo_t WHERE k = 6) > 1;
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT k FROM exo_t WHERE pad = 'x';
RESET enable_bitmapscan;
SET enable_indexscan = off;
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
SELECT pad FROM exo_t WHERE k < 600 AND g = 7;
RESET enable_indexscan;
SET enable_bitmapscan = off;

-- the other formats; all counts, whatever they are
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) SELECT pad FROM exo_t WHERE k = 5000;
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT YAML) SELECT pad FROM exo_t WHERE k = 5000;
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT XML) SELECT pad FROM exo_t WHERE k = 5000;

-- a stale model: nothing of it is near the key
INSERT INTO exo_t SELECT i, 0, '' FROM generate_series(20001, 30000) i;
EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT pad FROM exo_t WHERE k = 28000;

DROP TABLE exo_t;
