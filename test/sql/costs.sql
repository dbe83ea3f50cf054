-- What the planner is told: an index costs what btree says, whether there is a model or not.

SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET cpu_operator_cost = 1;	-- a descent is charged 50 times this for each page

CREATE TABLE cst (k int, v int);
INSERT INTO cst SELECT i, mix(i) % 1000 FROM generate_series(1, 20000) i;
CREATE INDEX cst_b ON cst (k) WITH (fillfactor = 10);
CREATE INDEX cst_l ON cst USING learnedbtree (k) WITH (fillfactor = 10);
VACUUM ANALYZE cst;
SELECT state FROM learnedbtree_model('cst_l');

-- The plan of a query while the planner sees this index only; its costs and its index's name are left out of the text.
CREATE FUNCTION seen_only(index regclass) RETURNS void LANGUAGE sql AS $$
    UPDATE pg_index SET indisvalid = indexrelid = index
     WHERE indrelid = (SELECT indrelid FROM pg_index WHERE indexrelid = index)
$$;
CREATE FUNCTION plan(query text, index regclass, OUT costs text, OUT plan text) LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    PERFORM seen_only(index);
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        CONTINUE WHEN line ~ 'Look-Ahead';
        costs := concat(costs, substring(line from '\(cost=.*\)'));
        plan := concat(plan, regexp_replace(replace(ltrim(line, ' ->'), index::text, 'the index'), '  \(cost=.*\)', ''), '; ');
    END LOOP;
    IF plan !~ 'the index' THEN
        RAISE 'wrong plan: %', plan;
    END IF;
END $$;
-- Compared for one index that is btree's, one that is ours, and the former with and without being served.
CREATE FUNCTION compare_costs(query text, btree regclass DEFAULT 'cst_b', learned regclass DEFAULT 'cst_l') RETURNS text LANGUAGE plpgsql
    SET learnedbtree.min_leaves = 0 AS $$
DECLARE
    plain record;
    served record;
    ours record;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', 'none', true);
    plain := plan(query, btree);
    PERFORM set_config('learnedbtree.btree_indexes', 'all', true);
    served := plan(query, btree);
    ours := plan(query, learned);
    RETURN CASE WHEN served <> plain THEN format('served: %s, not %s', served, plain)
                WHEN ours <> plain THEN format('learnedbtree: %s, not %s', ours, plain) ELSE 'the same' END;
END $$;
-- as soon as there are models
SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;
SELECT learnedbtree_train('cst_b');
SELECT state FROM learnedbtree_model('cst_b');
RESET learnedbtree.btree_indexes;

SELECT condition, compare_costs('SELECT v FROM cst WHERE ' || condition)
  FROM unnest(ARRAY['k = 5', 'k = 5::bigint', 'k > 19000', 'k >= 5 AND k < 90', 'k IN (5, 9000)',
                    'k = ANY (ARRAY[5, 700, 9000]) AND k > 600', 'k IS NULL', 'k < ANY (ARRAY[5, 9])', 'v = 5 ORDER BY k']) condition;
SELECT compare_costs('SELECT k FROM cst WHERE k = 5') AS index_only,
       compare_costs('SELECT k FROM cst WHERE k > 19900 ORDER BY k DESC') AS backward,
       compare_costs('SELECT c.v FROM cst c, (VALUES (1), (2), (3)) p (k) WHERE c.k = p.k') AS a_probe;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT compare_costs('SELECT v FROM cst WHERE k BETWEEN 5 AND 90') AS bitmap;
RESET enable_indexscan;
SET enable_bitmapscan = off;

-- a join for which one page less in each descent would make another plan
CREATE TABLE csp AS SELECT i * 100 AS k FROM generate_series(1, 150) i;
VACUUM ANALYZE csp;
RESET enable_seqscan;
SET cpu_operator_cost = 0.1;
SELECT compare_costs(format('SELECT cst.v FROM csp JOIN cst USING (k) WHERE csp.k < %s', i)) FROM unnest('{500,3000,6000}'::int[]) i;

-- partitions have an index of their own each
CREATE TABLE csq (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE csq_1 PARTITION OF csq FOR VALUES FROM (0) TO (10000);
CREATE TABLE csq_2 PARTITION OF csq FOR VALUES FROM (10000) TO (30000);
CREATE INDEX csq_k ON csq USING learnedbtree (k);
INSERT INTO csq SELECT k, v FROM cst;
VACUUM ANALYZE csq;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT v FROM csq WHERE k IN (5, 15000);

DROP FUNCTION seen_only, plan, compare_costs;
DROP TABLE cst, csp, csq;
