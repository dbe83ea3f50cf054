-- Nested loops that look ahead: the same answers as without, for keys of all kinds, joins of all kinds, and all sizes of
-- batches; and where the planner may not have them.

-- Inner tables: sparse leaves, so that few rows make an index that is worth it.
CREATE TABLE la_big (k int8 NOT NULL, a int4, u uuid, s text, v int4);
INSERT INTO la_big SELECT mix(i) * 1000003::int8, i % 500, md5((mix(i) % 29000)::text)::uuid, 'key ' || mix(i + 1) % 29000, i
  FROM generate_series(1, 30000) i;
INSERT INTO la_big SELECT -i, NULL, NULL, NULL, i FROM generate_series(1, 300) i;
CREATE UNIQUE INDEX la_big_k ON la_big (k) WITH (fillfactor = 10);
CREATE INDEX la_big_au ON la_big (a, u) WITH (fillfactor = 10);
CREATE INDEX la_big_u ON la_big (u DESC NULLS LAST) WITH (fillfactor = 10);
CREATE INDEX la_big_s ON la_big (s COLLATE "C") WITH (fillfactor = 10);
DELETE FROM la_big WHERE v % 11 = 3;
CREATE TABLE la_probe (n int4, k int8, k4 int4, a int4, u uuid, s text, wide text);
INSERT INTO la_probe SELECT i, CASE WHEN i % 9 = 0 THEN NULL WHEN i % 5 = 0 THEN mix(-i) ELSE mix(mix(i) % 30000 + 1) * 1000003::int8 END,
       -(mix(i) % 400), mix(i) % 520, md5((mix(i + 3) % 29000)::text)::uuid, 'key ' || mix(i + 4) % 29999, repeat('wide ', (mix(i) % 400)::int4)
  FROM generate_series(1, 700) i;
CREATE INDEX la_probe_k ON la_probe (k);
VACUUM ANALYZE la_big, la_probe;

SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;
SET compute_query_id = regress;
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET enable_bitmapscan = off;
SELECT learnedbtree_train(i) IS NOT NULL FROM unnest('{la_big_k,la_big_au,la_big_u,la_big_s}'::regclass[]) i;

-- The node, and what it says.
EXPLAIN (COSTS OFF) SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM la_probe p JOIN la_big b ON b.k = p.n + p.k;
CREATE FUNCTION la_plan(query text, VARIADIC wanted text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ ANY (wanted) THEN
            RETURN NEXT regexp_replace(line, ' \(actual rows=(\d+)(\.00)? loops=(\d+)\)', ' (\1 x \3)');
        END IF;
    END LOOP;
END $$;
-- in memory from here on: batches are as large as they get
SELECT count(b.v) AS warm FROM la_probe p JOIN la_big b ON b.k = p.k \gset
SELECT * FROM la_plan('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k', 'Look', 'Batches', 'Predicted');
SET learnedbtree.lookahead_rows = 7;
SELECT * FROM la_plan('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k', 'Look', 'Batches', 'Predicted');
-- rows read in vain are few
SELECT * FROM la_plan('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a LIMIT 3', 'Look', 'Scan on la_probe', 'Predicted');
-- ... and none after the first, if that is enough: no error of the second
SELECT p.n, b.v < 0 AS negative FROM la_probe p LEFT JOIN la_big b ON b.k = p.k + 0 / (p.n - 2) LIMIT 1;
RESET learnedbtree.lookahead_rows;
-- wide rows: work_mem bounds a batch
SET work_mem = '64kB';
SELECT * FROM la_plan('SELECT p.wide, b.v FROM la_probe p JOIN la_big b ON b.k = p.k', 'Look', 'Batches');
RESET work_mem;
-- planned with it, and run without
PREPARE la_prepared AS SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k;
SET plan_cache_mode = force_generic_plan;
EXECUTE la_prepared;
SET learnedbtree.lookahead_rows = 0;
SELECT * FROM la_plan('EXECUTE la_prepared', 'Look', 'Batches');
SET learnedbtree.btree_indexes = none;
EXECUTE la_prepared;
RESET learnedbtree.lookahead_rows;
SELECT * FROM la_plan('EXECUTE la_prepared', 'Look', 'Batches');
SET learnedbtree.btree_indexes = 'all';

-- Joins, each with batches of several sizes, with little memory, and by a hash join.
CREATE FUNCTION la_compare(query text) RETURNS text LANGUAGE plpgsql
    SET enable_hashjoin = on SET enable_nestloop = on SET work_mem = '4MB' AS $$
DECLARE
    oracle text;
    answer text;
    plan text;
    nodes int := 0;
    rows text;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', 'none', true), set_config('enable_nestloop', 'off', true);
    oracle := answers(query);
    PERFORM set_config('learnedbtree.btree_indexes', 'all', true), set_config('enable_nestloop', 'on', true), set_config('enable_hashjoin', 'off', true);
    FOREACH rows IN ARRAY '{0,1,2,7,64}'::text[] LOOP
        PERFORM set_config('learnedbtree.lookahead_rows', rows, true),
                set_config('work_mem', CASE WHEN rows = '7' THEN '64kB' ELSE '4MB' END, true);
        FOR plan IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
            nodes := nodes + (plan ~ 'Look-Ahead')::int;
        END LOOP;
        answer := answers(query);
        IF answer IS DISTINCT FROM oracle THEN
            RETURN format('WRONG with %s rows: %s, not %s', rows, answer, oracle);
        END IF;
    END LOOP;
    PERFORM set_config('learnedbtree.lookahead_rows', '64', true);
    RETURN format('%s nodes in 3 plans', nodes);
END $$;
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k4');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a AND b.u = p.u');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.u = p.u');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.s = p.s COLLATE "C"');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a AND b.v > p.n');
SELECT la_compare('SELECT p.n, p.wide, b.v FROM la_probe p LEFT JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p LEFT JOIN la_big b ON b.k = p.k AND p.n % 2 = 0');
SELECT la_compare('SELECT p.n FROM la_probe p WHERE EXISTS (SELECT FROM la_big b WHERE b.k = p.k)');
SELECT la_compare('SELECT p.n FROM la_probe p WHERE NOT EXISTS (SELECT FROM la_big b WHERE b.a = p.a AND b.v > p.n)');
SELECT la_compare('SELECT b.v FROM la_big b WHERE b.k IN (SELECT p.k FROM la_probe p)');
SELECT la_compare('SELECT b.v FROM la_big b WHERE b.a IN (SELECT p.a + 1 FROM la_probe p WHERE p.n < 300)');
SELECT la_compare('SELECT p.n, b.v, c.v FROM la_probe p JOIN la_big b ON b.k = p.k JOIN la_big c ON c.k = b.k + 1000003');
SELECT la_compare('SELECT p.n, b.v, c.v FROM la_probe p JOIN la_big b ON b.a = p.a JOIN la_big c ON c.u = b.u');
SELECT la_compare('SELECT q.a, q.m, b.v FROM (SELECT a, max(k) AS m FROM la_probe GROUP BY a) q JOIN la_big b ON b.k = q.m');
SELECT la_compare('SELECT q.n, q.m, b.v FROM (SELECT n, k, coalesce(wide, ''none'') AS m FROM la_probe) q LEFT JOIN la_big b ON b.k = q.k + length(q.m)');
SELECT la_compare('SELECT p.n, b.v, x.n FROM la_probe x LEFT JOIN la_probe p ON p.n = x.n + 5 LEFT JOIN la_big b ON b.k = coalesce(p.k, x.k)');
SELECT la_compare('SELECT p.ctid, p.tableoid, p, b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT x.n, l.v FROM la_probe x, LATERAL (SELECT b.v FROM la_probe p JOIN la_big b ON b.a = p.a WHERE p.n < x.n ORDER BY b.v, p.n LIMIT 2) l WHERE x.n BETWEEN 10 AND 30');
SELECT la_compare('SELECT x.n, (SELECT sum(b.v) FROM la_probe p JOIN la_big b ON b.a = p.a AND b.u = p.u WHERE p.n < x.n) FROM la_probe x WHERE x.n < 20');
SELECT la_compare('SELECT x.n, (SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k + x.n) FROM la_probe x WHERE x.n < 20');
SELECT la_compare('SELECT * FROM (SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a ORDER BY p.n, b.v OFFSET 40 LIMIT 90) q');

-- Not where reading ahead would be seen, nor where it is of no use.
CREATE FUNCTION la_nodes(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    nodes int := 0;
BEGIN
    FOR plan IN EXECUTE 'EXPLAIN (COSTS OFF, VERBOSE) ' || query LOOP
        nodes := nodes + (plan ~ 'Look-Ahead')::int;
    END LOOP;
    RETURN nodes;
END $$;
CREATE SEQUENCE la_seq;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE random() < p.n'),
       la_nodes('SELECT b.v FROM (SELECT k, nextval(''la_seq'') FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM (SELECT k FROM la_probe FOR UPDATE) p JOIN la_big b ON b.k = p.k'),
       la_nodes('WITH p AS (UPDATE la_probe SET n = n RETURNING k) SELECT b.v FROM p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v, random() FROM la_probe p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM (VALUES (1::int8), (2)) p (k) JOIN la_big b ON b.k = p.k');
-- ... in VALUES, in WITH queries, in subqueries that are planned before
SELECT la_nodes('SELECT b.v FROM (VALUES ' || string_agg('(nextval(''la_seq''))', ', ') || ') p (k) LEFT JOIN la_big b ON b.k = p.k LIMIT 2'),
       la_nodes('SELECT b.v FROM (VALUES ' || string_agg('(1::int8)', ', ') || ') p (k) LEFT JOIN la_big b ON b.k = p.k LIMIT 2')
  FROM generate_series(1, 9);
SELECT la_nodes('WITH p AS MATERIALIZED (SELECT k, nextval(''la_seq'') FROM la_probe) SELECT b.v FROM p JOIN la_big b ON b.k = p.k LIMIT 3'),
       la_nodes('WITH p AS MATERIALIZED (SELECT k FROM la_probe FOR UPDATE) SELECT b.v FROM p JOIN la_big b ON b.k = p.k LIMIT 3'),
       la_nodes('WITH p AS MATERIALIZED (SELECT k FROM la_probe) SELECT b.v FROM p JOIN la_big b ON b.k = p.k LIMIT 3'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE p.n < (SELECT nextval(''la_seq'') FROM la_seq WHERE p.n > 3)'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE EXISTS (SELECT FROM la_seq WHERE p.n > 3 OFFSET 0)'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE EXISTS (SELECT FROM la_big x WHERE p.n > x.k OFFSET 0 FOR UPDATE)'),
       la_nodes('SELECT b.v FROM (SELECT k FROM la_probe UNION ALL SELECT k4 FROM la_probe) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM (SELECT k FROM la_probe UNION ALL SELECT nextval(''la_seq'') FROM la_probe) p JOIN la_big b ON b.k = p.k');
-- ... in subqueries that run once, if at all
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE CASE WHEN p.n = 6 THEN (SELECT nextval(''la_seq'')) ELSE 1 END <> 0'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE CASE WHEN p.n = 6 THEN (SELECT max(k) FROM la_probe) ELSE 1 END <> 0');
-- ... nor where a custom scan cannot have the columns
SELECT la_nodes('SELECT (p.r).f2 FROM (SELECT k, ROW(n, a) AS r FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT p FROM la_probe p JOIN la_big b ON b.k = p.k');
-- ... nor where nested loops are unwanted
SET enable_nestloop = off;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
RESET enable_nestloop;
SET learnedbtree.lookahead_rows = 1;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SET learnedbtree.lookahead_rows = 65;
RESET learnedbtree.lookahead_rows;

-- Cursors, held and scrolled.
BEGIN;
DECLARE la_c SCROLL CURSOR FOR SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k ORDER BY p.n;
DECLARE la_h NO SCROLL CURSOR WITH HOLD FOR SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k;
FETCH 3 la_c;
FETCH BACKWARD 2 la_c;
MOVE 5 la_h;
COMMIT;
MOVE FORWARD ALL la_h;
CLOSE la_h;

-- Rows locked and changed by way of a join.
BEGIN;
WITH l AS (SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k FOR UPDATE) SELECT count(*) FROM l;
UPDATE la_probe p SET n = b.v FROM la_big b WHERE b.k = p.k;
UPDATE la_big b SET v = -p.n FROM la_probe p WHERE b.k = p.k AND p.k4 < -200;
DELETE FROM la_probe p USING la_big b WHERE b.k = p.k AND b.a < 250;
SELECT count(*), sum(n) FROM la_probe;
SELECT count(*), sum(v) FROM la_big;
ROLLBACK;
-- ... in a table with partitions, of which the server makes one plan
BEGIN;
CREATE TABLE la_parts (n int4, k int8) PARTITION BY LIST (n);
CREATE TABLE la_parts_1 PARTITION OF la_parts FOR VALUES IN (1);
CREATE TABLE la_parts_2 PARTITION OF la_parts DEFAULT;
INSERT INTO la_parts SELECT n % 2, k FROM la_probe;
ANALYZE la_parts;
SELECT la_nodes('SELECT p.n, b.v FROM la_parts p JOIN la_big b ON b.k = p.k'),
       la_nodes('UPDATE la_parts p SET n = b.v FROM la_big b WHERE b.k = p.k');
UPDATE la_parts p SET n = b.v FROM la_big b WHERE b.k = p.k;
SELECT count(*), sum(n) FROM la_parts;
MERGE INTO la_parts p USING la_big b ON b.k = p.k AND b.a < 200 WHEN MATCHED THEN DELETE;
SELECT count(*), sum(n) FROM la_parts;
ROLLBACK;

-- An error in the middle of a batch.
SELECT 1 / (b.v - 1) FROM la_probe p JOIN la_big b ON b.a = p.a WHERE b.v < 400 ORDER BY p.n LIMIT 0;
DO $$
BEGIN
    PERFORM 1 / (p.n - 40) FROM la_probe p JOIN la_big b ON b.a = p.a OFFSET 0;
    RAISE EXCEPTION 'no error';
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE '%', SQLERRM;
END $$;
SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k;

DROP FUNCTION la_compare, la_plan, la_nodes;
DROP SEQUENCE la_seq;
DROP TABLE la_big, la_probe;
