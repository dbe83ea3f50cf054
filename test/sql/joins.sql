-- Joins through the model: nested loops with every kind of argument, merge joins that mark and restore.
SELECT use_am() AS am \gset

CREATE TABLE jo (k int, v int);
CREATE TABLE ji (k int, w int);
INSERT INTO jo SELECT mix(i) % 900, i FROM generate_series(1, 3000) i;
INSERT INTO ji SELECT mix(i + 5) % 900, i FROM generate_series(1, 9000) i;
INSERT INTO jo SELECT 450, -i FROM generate_series(1, 3) i;
INSERT INTO ji SELECT 450, -i FROM generate_series(1, 3000) i;	-- one key over several leaves
INSERT INTO ji SELECT NULL, i FROM generate_series(1, 100) i;
CREATE INDEX jo_k ON jo USING :am (k);
CREATE INDEX ji_k ON ji USING :am (k);
VACUUM ANALYZE jo, ji;
SELECT sound('jo_k'), sound('ji_k');

CREATE FUNCTION joined(query text, VARIADIC settings text[]) RETURNS text LANGUAGE plpgsql
    SET max_parallel_workers_per_gather = 0 SET learnedbtree.enable = on SET enable_seqscan = on SET enable_indexscan = on
    SET enable_indexonlyscan = on SET enable_bitmapscan = on SET enable_hashjoin = on SET enable_mergejoin = on
    SET enable_nestloop = on SET enable_sort = on SET enable_material = on SET enable_memoize = off AS $$
DECLARE
    s text;
    oracle text;
    counts bigint[];
    lookups bigint;
    verified bigint;
    learned text;
    plan text;
BEGIN
    PERFORM set_config('enable_mergejoin', 'off', true), set_config('enable_nestloop', 'off', true),
            set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    oracle := answers(query);
    PERFORM set_config('enable_mergejoin', 'on', true), set_config('enable_nestloop', 'on', true),
            set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true), set_config('enable_bitmapscan', 'on', true);
    FOREACH s IN ARRAY settings LOOP
        PERFORM set_config(s, 'off', true);
    END LOOP;
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
    counts := (SELECT ARRAY[sum(t.lookups), sum(t.verified)] FROM learnedbtree_stat t WHERE relname IN ('jo', 'ji'));
    learned := answers(query);
    lookups := (SELECT sum(t.lookups) FROM learnedbtree_stat t WHERE relname IN ('jo', 'ji')) - counts[1];
    verified := (SELECT sum(t.verified) FROM learnedbtree_stat t WHERE relname IN ('jo', 'ji')) - counts[2];
    IF learned <> oracle THEN RETURN 'WRONG'; END IF;
    PERFORM set_config('learnedbtree.enable', 'off', true);
    IF answers(query) <> oracle THEN RETURN 'WRONG without model'; END IF;
    RETURN concat_ws(', ', substring(plan from 'Merge Join|Nested Loop|Hash Join'),
        CASE WHEN plan ~ 'Index Only' THEN 'index only' WHEN plan ~ 'Bitmap' THEN 'bitmap' WHEN plan ~ 'Index Scan' THEN 'index' END,
        CASE WHEN verified = 0 THEN 'no lookup' WHEN verified * 10 >= lookups * 9 THEN 'verified' ELSE format('verified %s of %s', verified, lookups) END);
END $$;

-- nested loops
SELECT joined('SELECT jo.v, ji.w FROM jo JOIN ji USING (k)', 'enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'enable_bitmapscan');
SELECT joined('SELECT jo.v, ji.k FROM jo JOIN ji USING (k)', 'enable_hashjoin', 'enable_mergejoin', 'enable_bitmapscan', 'enable_material');
SELECT joined('SELECT jo.v, ji.w FROM jo JOIN ji USING (k) WHERE jo.v < 500', 'enable_hashjoin', 'enable_mergejoin', 'enable_indexscan', 'enable_material');
SELECT joined('SELECT jo.v, s.w FROM jo, LATERAL (SELECT w FROM ji WHERE ji.k BETWEEN jo.k AND jo.k + 1) s WHERE jo.v < 200', 'enable_seqscan', 'enable_bitmapscan', 'enable_material');
SELECT joined('SELECT jo.v, s.w FROM jo, LATERAL (SELECT w FROM ji WHERE ji.k > jo.k::bigint ORDER BY k, w LIMIT 3) s WHERE jo.v < 150', 'enable_seqscan', 'enable_bitmapscan', 'enable_material');
SELECT joined('SELECT jo.v, s.k FROM jo, LATERAL (SELECT k FROM ji WHERE ji.k < jo.k ORDER BY k DESC LIMIT 1) s WHERE jo.v < 300', 'enable_seqscan', 'enable_bitmapscan', 'enable_material');
SELECT joined('SELECT v FROM jo WHERE EXISTS (SELECT FROM ji WHERE ji.k = jo.k + 1) AND v > 0', 'enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'enable_bitmapscan', 'enable_material');
SELECT joined('SELECT v FROM jo WHERE NOT EXISTS (SELECT FROM ji WHERE ji.k = jo.k * 2)', 'enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'enable_bitmapscan', 'enable_material');

-- merge joins: the inner side is marked and restored, over many leaves for one key
CREATE TABLE jm (k int, v int);
INSERT INTO jm SELECT mix(i) % 900, i FROM generate_series(1, 2000) i;
INSERT INTO jm SELECT 450, -i FROM generate_series(1, 5) i;
CREATE INDEX jm_k ON jm USING :am (k);
VACUUM ANALYZE jm;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_material = off;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION merged(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    before bigint := (SELECT sum(verified) FROM learnedbtree_stat WHERE relname IN ('jm', 'ji'));
    learned text;
    verified bigint;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
    learned := answers(query);
    verified := (SELECT sum(s.verified) FROM learnedbtree_stat s WHERE relname IN ('jm', 'ji')) - before;
    PERFORM set_config('learnedbtree.enable', 'off', true);
    RETURN concat_ws(', ', substring(plan from 'Merge Join'), CASE WHEN plan ~ 'Materialize|Sort Key' THEN 'materialized' END,
        CASE WHEN learned = answers(query) THEN 'same' ELSE 'WRONG' END, CASE WHEN verified > 0 THEN 'verified' END);
END $$;
SELECT merged('SELECT jm.v, ji.w FROM jm JOIN ji USING (k) WHERE jm.k >= 0 AND ji.k >= 0');
SELECT merged('SELECT jm.k FROM jm JOIN ji USING (k) WHERE jm.k >= 0 AND ji.k >= 0');
SELECT merged('SELECT jm.v, ji.w FROM jm JOIN ji USING (k) WHERE jm.k BETWEEN 440 AND 460 AND ji.k BETWEEN 440 AND 460');
SELECT merged('SELECT jm.v, ji.w FROM jm LEFT JOIN ji ON jm.k = ji.k AND ji.k > 300 WHERE jm.k > 200');
SELECT merged('SELECT a.v, b.v FROM jm a JOIN jm b USING (k) WHERE a.k > 100 AND b.k > 100');
DROP TABLE jo, ji, jm;
DROP FUNCTION joined;
DROP FUNCTION merged;
