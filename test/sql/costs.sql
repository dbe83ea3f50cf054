-- What the planner is told: btree's costs, and a descent of one page where a model will serve the scan.

CREATE EXTENSION pageinspect;
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
SELECT level FROM bt_metap('cst_b');

-- Cost of a query's one index scan while the planner sees this index only.  The same index makes a plan's cost depend
-- on nothing but its access method.
CREATE FUNCTION seen_only(index regclass) RETURNS void LANGUAGE sql AS $$
    UPDATE pg_index SET indisvalid = indexrelid = index
     WHERE indrelid = (SELECT indrelid FROM pg_index WHERE indexrelid = index)
$$;
CREATE FUNCTION index_cost(query text, index regclass) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    PERFORM seen_only(index);
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    plan := jsonb_path_query_first(plan, 'strict $.** ? (exists(@."Index Name"))');
    IF plan->>'Index Name' <> (SELECT relname FROM pg_class WHERE oid = index) THEN
        RAISE 'wrong plan: %', plan;
    END IF;
    RETURN plan->>'Total Cost';
END $$;

-- How many pages of descents less the second index is charged.
CREATE FUNCTION pages_less(query text, btree regclass DEFAULT 'cst_b', learned regclass DEFAULT 'cst_l')
    RETURNS numeric LANGUAGE sql AS $$
    SELECT trim_scale(round((index_cost(query, btree) - index_cost(query, learned)) / 50, 3))
$$;

-- Who serves the scan in the end: what the planner expects must be what happens.
CREATE FUNCTION served_by(query text, index regclass DEFAULT 'cst_l') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    counts record;
    planned record;
    run record;
BEGIN
    PERFORM seen_only(index);
    SELECT * INTO counts FROM learnedbtree_stat WHERE indexrelid = index;
    EXECUTE 'EXPLAIN ' || query;	-- the planner may look for the ends of a column itself
    SELECT * INTO planned FROM learnedbtree_stat WHERE indexrelid = index;
    EXECUTE query;
    SELECT * INTO run FROM learnedbtree_stat WHERE indexrelid = index;
    RETURN CASE WHEN run.delegated - planned.delegated > planned.delegated - counts.delegated THEN 'btree'
                WHEN run.lookups > planned.lookups THEN 'model' END;
END $$;

-- two pages above the leaves: as many less, for every descent
SELECT condition, pages_less('SELECT v FROM cst WHERE ' || condition), served_by('SELECT v FROM cst WHERE ' || condition)
  FROM unnest(ARRAY['k = 5', 'k = 5::bigint', 'k > 19000', 'k >= 5 AND k < 90', 'k BETWEEN 5 AND 90',
                    'k IN (5, 9000)', 'k = ANY (ARRAY[5, 700, 9000]) AND k > 600',
                    'k IS NULL', 'k < ANY (ARRAY[5, 9])', 'v = 5 ORDER BY k']) condition;
SELECT pages_less('SELECT k FROM cst WHERE k = 5') AS index_only,
       pages_less('SELECT k FROM cst WHERE k > 19900 ORDER BY k DESC') AS backward,
       pages_less('SELECT c.v FROM cst c, (VALUES (1), (2), (3)) p (k) WHERE c.k = p.k') AS a_probe;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT pages_less('SELECT v FROM cst WHERE k BETWEEN 5 AND 90') AS bitmap;
RESET enable_indexscan;
SET enable_bitmapscan = off;

-- an index condition for our access method, too, from 18 on
SELECT CASE WHEN current_setting('server_version_num')::int >= 180000
            THEN pages_less('SELECT v FROM cst WHERE (k, k) > (5, 6) ORDER BY k') ELSE 0 END AS row_comparison;

-- no model, or none in use
SET learnedbtree.enable = off;
SELECT pages_less('SELECT v FROM cst WHERE k = 5') AS disabled;
RESET learnedbtree.enable;
ALTER INDEX cst_l SET (learned = off);
SELECT pages_less('SELECT v FROM cst WHERE k = 5') AS not_learned;
REINDEX INDEX cst_l;
ALTER INDEX cst_l RESET (learned);
SELECT pages_less('SELECT v FROM cst WHERE k = 5') AS untrained, state FROM learnedbtree_model('cst_l');
SELECT seen_only('cst_l');
SELECT v FROM cst WHERE k = 5;
SELECT pages_less('SELECT v FROM cst WHERE k = 5') AS trained, state FROM learnedbtree_model('cst_l');

-- several columns: equalities on leading ones, and a range on the next
CREATE TABLE csm (a int, b int, c text COLLATE "C", d text COLLATE "POSIX");
INSERT INTO csm SELECT i % 50, i % 2000, 'c' || i, 'd' || i FROM generate_series(1, 20000) i;
CREATE INDEX csm_b ON csm (a, b, c, d) WITH (fillfactor = 10);
CREATE INDEX csm_l ON csm USING learnedbtree (a, b, c, d) WITH (fillfactor = 10);
VACUUM ANALYZE csm;
SELECT level FROM bt_metap('csm_b');
SELECT condition, pages_less('SELECT a FROM csm WHERE ' || condition, 'csm_b', 'csm_l'),
       served_by('SELECT a FROM csm WHERE ' || condition, 'csm_l')
  FROM unnest(ARRAY['a = 1', 'a = 1 AND b = 51', 'a = 1 AND b > 51', 'a = 1 AND a > 0 AND b = 51 AND c = ''c51''',
                    'a IN (1, 2) AND b = 51', 'a = 1 AND b = 51 AND c < ''d''', 'a = 1 AND b = 51 AND c LIKE ''c5%''',
                    'a = 1 AND c = ''c51''', 'a > 1 AND b = 51', 'b = 51', 'a = 1 AND b IS NOT NULL', 'a IS NULL',
                    'a = 1 AND b = 51 AND c > ''c5'' AND d = ''d51''']) condition;

-- types without a key code; temporary tables
CREATE TABLE csj (j jsonb);
INSERT INTO csj SELECT to_jsonb(i) FROM generate_series(1, 5000) i;
CREATE INDEX csj_b ON csj (j);
CREATE INDEX csj_l ON csj USING learnedbtree (j);
CREATE TEMP TABLE cst_temp AS SELECT k FROM cst;
CREATE INDEX cst_temp_b ON cst_temp (k);
CREATE INDEX cst_temp_l ON cst_temp USING learnedbtree (k);
VACUUM ANALYZE csj, cst_temp;
SELECT pages_less('SELECT j FROM csj WHERE j = ''5''', 'csj_b', 'csj_l') AS jsonb,
       pages_less('SELECT k FROM cst_temp WHERE k = 5', 'cst_temp_b', 'cst_temp_l') AS temporary;

-- enough to change a plan: a hash join by one index, a nested loop by the other
CREATE TABLE csp AS SELECT i * 100 AS k FROM generate_series(1, 150) i;
VACUUM ANALYZE csp;
RESET enable_seqscan;
SET cpu_operator_cost = 0.1;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
CREATE FUNCTION join_by(index regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    PERFORM seen_only(index);
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT cst.v FROM csp JOIN cst USING (k)' INTO plan;
    RETURN plan->0->'Plan'->>'Node Type';
END $$;
SELECT join_by('cst_b') AS btree, join_by('cst_l') AS learnedbtree;
SET learnedbtree.enable = off;
SELECT join_by('cst_b') AS btree, join_by('cst_l') AS learnedbtree;
RESET learnedbtree.enable;

-- partitions have an index of their own each
CREATE TABLE csq (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE csq_1 PARTITION OF csq FOR VALUES FROM (0) TO (10000);
CREATE TABLE csq_2 PARTITION OF csq FOR VALUES FROM (10000) TO (30000);
CREATE INDEX csq_k ON csq USING learnedbtree (k);
INSERT INTO csq SELECT k, v FROM cst;
VACUUM ANALYZE csq;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT v FROM csq WHERE k IN (5, 15000);

DROP FUNCTION seen_only, index_cost, pages_less, served_by, join_by;
DROP TABLE cst, csm, csj, cst_temp, csp, csq;
DROP EXTENSION pageinspect;
