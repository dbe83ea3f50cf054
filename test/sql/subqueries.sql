-- Subqueries that are evaluated for each row and look it up: a node that looks ahead evaluates them.  The same answers as
-- without, wherever the subquery stands and whatever is around it; and which plans get no such node.

-- Sparse leaves, so that few rows make an index that is worth it.
CREATE TABLE sq_t (id int8 NOT NULL, x text, v int4);
INSERT INTO sq_t SELECT mix(i) * 1000003::int8, 'x' || i, i FROM generate_series(1, 25000) i;
CREATE UNIQUE INDEX sq_t_id ON sq_t (id) WITH (fillfactor = 10);
CREATE TABLE sq_r (dev int4, at timestamp, u int4, v int4);
INSERT INTO sq_r SELECT mix(i) % 900, CASE WHEN i % 13 > 0 THEN timestamp '2026-01-01' + (mix(i) % 5000) * interval '1 hour' END,
       i % 700, i FROM generate_series(1, 15000) i;
CREATE INDEX sq_r_at ON sq_r (dev, at) WITH (fillfactor = 10);
CREATE INDEX sq_r_u ON sq_r (u, dev) WITH (fillfactor = 10);
CREATE TABLE sq_o (n int4 PRIMARY KEY, gone text, id int8, dev int4, u int4, w text, since timestamp);
ALTER TABLE sq_o DROP COLUMN gone;
INSERT INTO sq_o SELECT i, CASE WHEN i % 9 = 0 THEN NULL WHEN i % 5 = 0 THEN mix(-i) ELSE mix(mix(i) % 25000 + 1) * 1000003::int8 END,
       CASE WHEN i % 17 > 0 THEN mix(i) % 950 END, mix(i + 2) % 75, repeat('wide ', (mix(i) % 400)::int4), timestamp '2026-03-01' + mix(i) % 3000 * interval '1 hour'
  FROM generate_series(1, 700) i;
VACUUM ANALYZE sq_t, sq_r, sq_o;

SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;
SET compute_query_id = regress;
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_bitmapscan = off;
SELECT i AS index, learnedbtree_train(i) FROM unnest('{sq_t_id,sq_r_at,sq_r_u}'::regclass[]) i;

-- What plans look like.
EXPLAIN (COSTS OFF) SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o;
EXPLAIN (COSTS OFF, VERBOSE) SELECT o.n + 1, o, (SELECT at FROM sq_r r WHERE r.dev = o.dev AND r.at < o.since ORDER BY at DESC LIMIT 1) FROM sq_o o WHERE u < 50;
EXPLAIN (COSTS OFF) SELECT n FROM sq_o o WHERE dev < 600 AND (SELECT v FROM sq_t t WHERE t.id = o.id) > 5 ORDER BY w;
EXPLAIN (COSTS OFF) SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY w LIMIT 8;
EXPLAIN (COSTS OFF) SELECT sum((SELECT v FROM sq_t t WHERE t.id = o.id)) FROM sq_o o;
EXPLAIN (COSTS OFF) UPDATE sq_o o SET w = (SELECT x FROM sq_t t WHERE t.id = o.id);

-- Lines of an executed plan, a number in it, summed up, and how many nodes there are.
CREATE FUNCTION sq_plan(query text, wanted text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ wanted THEN
            RETURN NEXT regexp_replace(line, ' \(actual rows=(\d+)(\.00)? loops=(\d+)\)', ' (\1 x \3)');
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION sq_predicted(query text) RETURNS numeric LANGUAGE sql
    RETURN (SELECT sum(substring(line from 'Predicted: (\d+)')::numeric) FROM sq_plan(query, 'Predicted') line);
CREATE FUNCTION sq_nodes(query text) RETURNS int LANGUAGE sql RETURN look_aheads(query);
-- Has the query nodes, and the same answers, in the same order, by batches of several sizes, with little memory, as with
-- btree's own functions?
CREATE FUNCTION sq_compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    oracle record;
    answer record;
    rows text;
    nodes int;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', 'none', true);
    oracle := both_answers(query || ' OFFSET 0');
    PERFORM set_config('learnedbtree.btree_indexes', 'all', true);
    FOREACH rows IN ARRAY '{0,2,7,64}'::text[] LOOP
        PERFORM set_config('learnedbtree.lookahead_rows', rows, true),
                set_config('work_mem', CASE WHEN rows = '7' THEN '64kB' ELSE '4MB' END, true);
        answer := both_answers(query || ' OFFSET 0');
        IF answer IS DISTINCT FROM oracle THEN
            RETURN format('WRONG with %s rows: %s, not %s', rows, answer, oracle);
        END IF;
        nodes := sq_nodes(query);
        IF rows = '0' AND nodes > 0 THEN
            RETURN 'a node, with 0 rows';
        END IF;
    END LOOP;
    RETURN CASE WHEN nodes > 0 THEN 'same, nodes' ELSE 'same, no node' END;
END $$;

-- Predictions are made, and used (else the node would pause).
SELECT sq_predicted(q) BETWEEN 480 AND 1400 AS predicted, q
  FROM unnest(ARRAY[
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o',
    'SELECT n, (SELECT at FROM sq_r r WHERE r.dev = o.dev ORDER BY at DESC LIMIT 1) FROM sq_o o',
    'SELECT n, (SELECT max(at) FROM sq_r r WHERE r.dev = o.dev) FROM sq_o o',
    'SELECT n, (SELECT min(at) FROM sq_r r WHERE r.dev = o.dev AND at > o.since) FROM sq_o o',
    'SELECT n, m FROM sq_o o, LATERAL (SELECT max(at) AS m FROM sq_r r WHERE r.dev = o.dev) s',
    'SELECT n, m FROM sq_o o, LATERAL (SELECT min(at) AS m FROM sq_r r WHERE r.dev = o.dev) s',
    'SELECT n, m FROM sq_o o, LATERAL (SELECT min(at) AS m, max(at) FROM sq_r r WHERE r.dev = o.dev) s',
    'SELECT n FROM sq_o o WHERE EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0)',
    'SELECT n FROM sq_o o WHERE n > 0 AND NOT EXISTS (SELECT FROM sq_r r WHERE r.u = o.u AND r.dev = o.dev OFFSET 0)',
    'SELECT sum((SELECT v FROM sq_t t WHERE t.id = o.id)) FROM sq_o o',
    'SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0)) FROM sq_o o']) q;
-- ... by all that may evaluate a subquery
SELECT q, sq_compare(q)
  FROM unnest(ARRAY[
    -- the columns of a scan
    'SELECT o.*, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o',
    'SELECT o, o.ctid, o.tableoid, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o',
    'SELECT (SELECT x FROM sq_t t WHERE t.id = o.id), (SELECT v FROM sq_t t WHERE t.id = o.id), (SELECT v FROM sq_t t WHERE t.id = o.dev * 1000003) FROM sq_o o',
    'SELECT (SELECT x FROM sq_t t WHERE t.id = o.id), (SELECT max(v) FROM sq_r r WHERE r.u = o.u AND r.dev = o.dev) FROM sq_o o WHERE n > 3',
    'SELECT n, ARRAY(SELECT v FROM sq_r r WHERE r.dev = o.dev ORDER BY v) FROM sq_o o',
    'SELECT n, id IN (SELECT t.id FROM sq_t t WHERE t.id = o.id), dev NOT IN (SELECT r.v FROM sq_r r WHERE r.u = o.u) FROM sq_o o',
    'SELECT n, (u, dev) = (SELECT r.u, r.dev FROM sq_r r WHERE r.u = o.u AND r.dev = o.dev LIMIT 1), dev > ANY (SELECT r.v FROM sq_r r WHERE r.u = o.u) FROM sq_o o',
    'SELECT n, CASE WHEN n % 3 = 0 THEN (SELECT x FROM sq_t t WHERE t.id = o.id) WHEN n % 100 = 1 THEN (SELECT max(at)::text FROM sq_r r WHERE r.dev = o.dev) END FROM sq_o o',
    'SELECT n, coalesce((SELECT x FROM sq_t t WHERE t.id = o.id), (SELECT r.u::text FROM sq_r r WHERE r.u = o.u LIMIT 1)) FROM sq_o o',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.dev) FROM sq_o o',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id + n * 0) FROM sq_o o',
    'SELECT n, (SELECT (SELECT x FROM sq_t t WHERE t.id = o.id AND r.v > 0) FROM sq_r r WHERE r.u = o.u ORDER BY v LIMIT 1) FROM sq_o o',
    'SELECT n, (SELECT string_agg((SELECT x FROM sq_t t WHERE t.id = r.v), '','' ORDER BY r.v) FROM sq_r r WHERE r.u = o.u AND r.dev < 60) FROM sq_o o WHERE n < 90',
    'SELECT n, (SELECT count(x) FROM sq_r r JOIN sq_t t ON t.id = r.v WHERE r.u = o.u AND r.dev < 60) FROM sq_o o',
    -- its conditions
    'SELECT n FROM sq_o o WHERE (SELECT v FROM sq_t t WHERE t.id = o.id) > 5000 AND n > 60',
    'SELECT n, w FROM sq_o o WHERE n % 2 = 0 OR EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0)',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE EXISTS (SELECT FROM sq_r r WHERE r.u = o.u AND r.dev = o.dev OFFSET 0)',
    'SELECT n FROM sq_o o WHERE n = ANY (ARRAY[3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 19, 20, 21]) AND NOT EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0)',
    'SELECT n FROM sq_o o WHERE n > (SELECT 20) AND (SELECT v FROM sq_t t WHERE t.id = o.id) > (SELECT avg(v) / 2 FROM sq_t)',
    -- what gives the rows
    'SELECT g, (SELECT x FROM sq_t t WHERE t.id = g) FROM generate_series(1000003::int8, 300000900, 1000003) g',
    'SELECT g, (SELECT x FROM sq_t t WHERE t.id = g) FROM (VALUES (1), (2), (NULL), (4), (5), (6), (7), (1000003), (9)) q (g)',
    'WITH c AS MATERIALIZED (SELECT * FROM sq_o) SELECT c.n, c, (SELECT x FROM sq_t t WHERE t.id = c.id) FROM c',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = q.id) FROM (SELECT * FROM sq_o ORDER BY w, n OFFSET 3) q',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM (SELECT n, id FROM sq_o UNION ALL SELECT -n, n * 1000003 FROM sq_o) o',
    'SELECT o.n, p.n, (SELECT x FROM sq_t t WHERE t.id = p.id), (SELECT max(at) FROM sq_r r WHERE r.dev = o.dev) FROM sq_o o LEFT JOIN sq_o p ON p.n = o.n + 300',
    'SELECT o.n, t.x, (SELECT r.v FROM sq_r r WHERE r.u = o.u AND r.dev = t.v ORDER BY v LIMIT 1) FROM sq_o o JOIN sq_t t ON t.id = o.id',
    'SELECT o.n FROM sq_o o LEFT JOIN sq_o p ON p.n = o.n + 300 WHERE (SELECT v FROM sq_t t WHERE t.id = coalesce(p.id, o.id)) > 300',
    'SELECT u, max(n), (SELECT x FROM sq_t t WHERE t.id = o.u) FROM sq_o o GROUP BY u',
    'SELECT dev / 2, max(id), (SELECT x FROM sq_t t WHERE t.id = max(o.id)) FROM sq_o o GROUP BY dev / 2 HAVING EXISTS (SELECT FROM sq_t t WHERE t.id = max(o.id) OFFSET 0)',
    'SELECT u, dev, grouping(u), (SELECT count(*) FROM sq_r r WHERE r.u = o.u) FROM sq_o o GROUP BY ROLLUP (u, dev)',
    'SELECT u, sum((SELECT v FROM sq_t t WHERE t.id = o.id)), max(n) FROM sq_o o GROUP BY u',
    'SELECT n, sum(n) OVER (ORDER BY n), (SELECT x FROM sq_t t WHERE t.id = o.id), max((SELECT v FROM sq_t t WHERE t.id = o.id)) OVER (PARTITION BY u) FROM sq_o o',
    -- ... a condition on a window function counts the columns of its own node
    'SELECT * FROM (SELECT n, (SELECT v FROM sq_t t WHERE t.id = o.id AND t.v + o.u > 0), row_number() OVER (ORDER BY n) AS rn FROM sq_o o) q WHERE rn <= 20',
    'SELECT * FROM (SELECT (SELECT v FROM sq_t t WHERE t.id = o.id), (SELECT v FROM sq_t t WHERE t.id = o.id + 0), (SELECT x FROM sq_t t WHERE t.id = o.id), rank() OVER (ORDER BY n) AS rn FROM sq_o o) q WHERE rn < 20',
    'SELECT * FROM (SELECT (SELECT v FROM sq_t t WHERE t.id = o.id AND length(o.w) >= 0), count(*) OVER (ORDER BY n) AS rn FROM sq_o o) q WHERE rn <= 20',
    'SELECT DISTINCT u, (SELECT max(at) FROM sq_r r WHERE r.dev = o.u) FROM sq_o o',
    'SELECT n, generate_series(1, 2), (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o',
    'SELECT o.n, l.* FROM sq_o o, LATERAL (SELECT p.n, (SELECT x FROM sq_t t WHERE t.id = p.id) FROM sq_o p WHERE p.u = o.u AND p.n > o.n) l',
    'SELECT n, m, v FROM sq_o o, LATERAL (SELECT max(at) AS m, min(v) AS v FROM sq_r r WHERE r.dev = o.dev HAVING max(v) > 10) s',
    'WITH RECURSIVE c AS (SELECT n, id FROM sq_o WHERE n < 20 UNION ALL SELECT n + 20, (SELECT id + 1000003 FROM sq_t t WHERE t.id = c.id) FROM c WHERE n < 400) SELECT n, id FROM c',
    -- orders and limits
    'SELECT n FROM sq_o o ORDER BY (SELECT x FROM sq_t t WHERE t.id = o.id), n',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY w, n LIMIT 90',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY u FETCH FIRST 50 ROWS WITH TIES',
    'SELECT n FROM sq_o o WHERE EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0) ORDER BY n DESC LIMIT 30',
    'SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o LIMIT (SELECT 40)',
    'SELECT q.*, (SELECT v FROM sq_t t WHERE t.id = q.id) FROM (SELECT id, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY n LIMIT 90) q']) q;
-- ... of workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT q, sq_compare(q), (SELECT count(*) FROM sq_plan(q, 'Gather')) AS gathers
  FROM unnest(ARRAY['SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE u < 60 ORDER BY w, n',
                    'SELECT w FROM sq_o o WHERE EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0) AND n < 600 ORDER BY w']) q;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;

-- A sort below a LIMIT knows how many rows are wanted; no more are looked up; and no row beyond is an error.
SELECT sq_plan('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY w, n LIMIT 70', 'Look-Ahead|Limit') AS line;
SELECT count(*) FROM sq_plan('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY w, n LIMIT 70', 'top-N');
SELECT count(x) FROM (SELECT (SELECT x FROM sq_t t WHERE t.id = o.id) AS x FROM sq_o o WHERE 1 / (n - 30) < 2 LIMIT 9) q;
CREATE VIEW sq_sorted AS SELECT n, w, (SELECT x FROM sq_t t WHERE t.id = o.id) AS x FROM sq_o o ORDER BY w, n;
SELECT count(*) FROM sq_plan('SELECT x, n FROM sq_sorted LIMIT 10', 'top-N');
-- Rows that an OFFSET skips have their effects.
CREATE SEQUENCE sq_s;
SELECT nextval('sq_s'), x > '' AS found FROM (SELECT (SELECT x FROM sq_t t WHERE t.id = o.id) AS x FROM sq_o o OFFSET 10 LIMIT 3) q;
SELECT nextval('sq_s') - 3 AS number, n, (SELECT x FROM sq_t t WHERE t.id = o.id) > '' AS found FROM sq_o o OFFSET 10 LIMIT 3;
SELECT last_value FROM sq_s;
SELECT v - 16 AS number, n, found FROM (SELECT nextval('sq_s') AS v, n, (SELECT x FROM sq_t t WHERE t.id = o.id) > '' AS found FROM sq_o o LIMIT 100) q OFFSET 5 LIMIT 3;
SELECT last_value FROM sq_s;
-- Columns have the names that the outermost query gives them.
CREATE TABLE sq_names AS SELECT n AS number, x AS found FROM (SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o LIMIT 100) q;
SELECT count(number), count(found) FROM sq_names;
SELECT sq_nodes('SELECT n AS number, x AS found FROM (SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o LIMIT 100) q');
-- ... and no node keeps the sort below from knowing how many rows are wanted.
SELECT count(*) FROM sq_plan('SELECT n, random(), (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY w, n LIMIT 20 OFFSET 20', 'top-N');
-- Few rows: none, as it would not look ahead.  Nor for what is hashed, or asks for nothing of the row, or for a key that is computed.
SELECT sq_nodes('SELECT (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE n = 5'),
       sq_nodes('SELECT n FROM sq_o o WHERE id IN (SELECT id FROM sq_t) OR n = 1'),
       sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = 1000003) FROM sq_o o'),
       sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = abs(o.id)) FROM sq_o o');
-- Nor where reading rows early would be seen; functions above may do what they like.
CREATE SEQUENCE sq_seq;
SELECT sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE random() < n'),
       sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM (SELECT id, nextval(''sq_seq'') AS n FROM sq_o OFFSET 0) o'),
       sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id FOR UPDATE) FROM sq_o o'),
       sq_nodes('WITH o AS (DELETE FROM sq_o RETURNING *) SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM o'),
       sq_nodes('SELECT n, random(), (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o'),
       sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE EXISTS (SELECT FROM sq_r r WHERE r.u = o.u OFFSET 0) AND random() < n'),
       sq_nodes('SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o FOR UPDATE');

-- Conditions of a barrier are evaluated before what could tell of the rows that they hide.
CREATE FUNCTION sq_tells(int4) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'seen: %', $1; RETURN true; END $$;
CREATE VIEW sq_barrier WITH (security_barrier) AS SELECT * FROM sq_o o WHERE n > 670 AND (SELECT v FROM sq_t t WHERE t.id = o.id) > 5;
EXPLAIN (COSTS OFF) SELECT n FROM sq_barrier WHERE sq_tells(n);
SELECT n FROM sq_barrier WHERE sq_tells(n);
CREATE ROLE regress_sq;
GRANT SELECT ON sq_o, sq_t, sq_r TO regress_sq;
CREATE POLICY sq_policy ON sq_o TO regress_sq USING (n < 100 AND (SELECT t.v % 10 FROM sq_t t WHERE t.id = sq_o.id) <> 1);
ALTER TABLE sq_o ENABLE ROW LEVEL SECURITY;
SET ROLE regress_sq;
EXPLAIN (COSTS OFF) SELECT n FROM sq_o WHERE sq_tells(n) AND dev > 700;
SELECT n, (SELECT max(v) FROM sq_r r WHERE r.u = sq_o.u) FROM sq_o WHERE sq_tells(n) AND dev > 700;
RESET ROLE;
ALTER TABLE sq_o DISABLE ROW LEVEL SECURITY;
DROP POLICY sq_policy ON sq_o;

-- Cursors go backward, and rows are changed where they are.
BEGIN;
DECLARE c CURSOR FOR SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE EXISTS (SELECT FROM sq_t t WHERE t.id = o.id OFFSET 0);
FETCH 7 c;
FETCH BACKWARD 3 c;
UPDATE sq_o SET w = 'here' WHERE CURRENT OF c;
SELECT n FROM sq_o WHERE w = 'here';
DECLARE s SCROLL CURSOR FOR SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o ORDER BY u, n;
MOVE 300 s;
FETCH BACKWARD 2 s;
DECLARE f CURSOR FOR SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE n BETWEEN 100 AND 200 FOR UPDATE;
MOVE 60 f;
DELETE FROM sq_o WHERE CURRENT OF f RETURNING n;
DECLARE g SCROLL CURSOR FOR SELECT n, v FROM (SELECT n, (SELECT v FROM sq_t t WHERE t.id = o.id) AS v FROM sq_o o WHERE n < 100 FOR UPDATE) q;
MOVE 20 g;
FETCH BACKWARD 3 g;
FETCH LAST g;
DECLARE h SCROLL CURSOR FOR SELECT n, v FROM (SELECT n, (SELECT v FROM sq_t t WHERE t.id = o.id) AS v FROM sq_o o WHERE n < 100 LIMIT 50 FOR UPDATE) q;
MOVE ALL h;
FETCH BACKWARD 2 h;
ROLLBACK;
-- ... not those that nobody has
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT n, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o WHERE n < 60 ORDER BY n LOOP
        EXIT WHEN r.n > 50;
    END LOOP;
    RAISE NOTICE 'last: %', r;
END $$;

-- Prepared, with a plan for all values; served and not.
SET plan_cache_mode = force_generic_plan;
PREPARE sq_prepared (int) AS SELECT count(x), max(x) FROM (SELECT (SELECT x FROM sq_t t WHERE t.id = o.id) AS x FROM sq_o o WHERE n < $1 LIMIT $1 - 100) q;
EXECUTE sq_prepared (600);
SELECT sq_plan('EXECUTE sq_prepared (500)', 'Look-Ahead') AS line;
SET learnedbtree.btree_indexes = 'none';
EXECUTE sq_prepared (600);
SET learnedbtree.btree_indexes = 'all';
RESET plan_cache_mode;

-- Writes: rows of a table that is changed, columns set together, and rows that are inserted.
BEGIN;
UPDATE sq_o o SET w = (SELECT x FROM sq_t t WHERE t.id = o.id), id = n WHERE (SELECT v FROM sq_t t WHERE t.id = o.id) > 100;
UPDATE sq_o o SET (dev, u) = (SELECT v, v + 1 FROM sq_t t WHERE t.id = o.id) WHERE n > 50;
DELETE FROM sq_o o WHERE EXISTS (SELECT FROM sq_r r WHERE r.u = o.u AND r.dev = o.dev OFFSET 0);
INSERT INTO sq_o SELECT n + 1000, id, (SELECT max(v) FROM sq_r r WHERE r.u = o.u), u, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o;
SELECT answers('TABLE sq_o') AS changed \gset
ROLLBACK;
BEGIN;
SET LOCAL learnedbtree.btree_indexes = none;
UPDATE sq_o o SET w = (SELECT x FROM sq_t t WHERE t.id = o.id), id = n WHERE (SELECT v FROM sq_t t WHERE t.id = o.id) > 100;
UPDATE sq_o o SET (dev, u) = (SELECT v, v + 1 FROM sq_t t WHERE t.id = o.id) WHERE n > 50;
DELETE FROM sq_o o WHERE EXISTS (SELECT FROM sq_r r WHERE r.u = o.u AND r.dev = o.dev OFFSET 0);
INSERT INTO sq_o SELECT n + 1000, id, (SELECT max(v) FROM sq_r r WHERE r.u = o.u), u, (SELECT x FROM sq_t t WHERE t.id = o.id) FROM sq_o o;
SELECT answers('TABLE sq_o') = :'changed' AS same;
ROLLBACK;
SELECT sq_nodes('UPDATE sq_o o SET (dev, u) = (SELECT v, v + 1 FROM sq_t t WHERE t.id = o.id)') > 0 AS nodes;

-- A subquery of more than one row, and an error, in the middle of a batch.
SELECT count((SELECT at FROM sq_r r WHERE r.dev = o.dev)) FROM sq_o o;
SELECT (SELECT x FROM sq_t t WHERE t.id = o.id AND 1 / (o.n - 80) < 2) FROM sq_o o WHERE n % 4 = 0;
SELECT count((SELECT x FROM sq_t t WHERE t.id = o.id)) FROM sq_o o;

-- What a row sets, or takes from a sequence, is there for the next row to read: nothing is read ahead of that.  But where
-- nothing is set, rows with a setting are.
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
CREATE FUNCTION sq_setting() RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN current_setting('sq.x'); END $$;
SELECT set_config('sq.x', '0', false), nextval('sq_seq') > 0 AS called;
SELECT sq_compare(q) FROM unnest(ARRAY[
    'SELECT count(*) FILTER (WHERE n > 1 AND cs::int = n - 1) FROM (SELECT o.n, o.cs, l.s FROM (SELECT n, id, current_setting(''sq.x'') AS cs FROM sq_o ORDER BY n OFFSET 0) o'
    ' LEFT JOIN LATERAL (SELECT set_config(''sq.x'', o.n::text, false) AS s FROM sq_t t WHERE t.id = o.id OFFSET 0) l ON true OFFSET 0) q',
    'SELECT count(*) FILTER (WHERE n > 1 AND cs::int = n - 1) FROM (SELECT o.n, o.cs, l.s FROM (SELECT n, id, sq_setting() AS cs FROM sq_o ORDER BY n OFFSET 0) o'
    ' LEFT JOIN LATERAL (SELECT set_config(''sq.x'', o.n::text, false) AS s FROM sq_t t WHERE t.id = o.id OFFSET 0) l ON true OFFSET 0) q',
    'SELECT nv - lv, x FROM (SELECT nextval(''sq_seq'') AS nv, lv, (SELECT x FROM sq_t t WHERE t.id = q.id) AS x FROM (SELECT o.id, s.last_value AS lv FROM sq_o o'
    ' LEFT JOIN LATERAL (SELECT last_value FROM sq_seq WHERE o.n > 0) s ON true WHERE o.n > 1 OFFSET 0) q OFFSET 0) z',
    'SELECT count(*) FILTER (WHERE nv = lv + 1) FROM (SELECT nextval(''sq_seq'') AS nv, q.lv, t.x FROM (SELECT o.id, l.lv FROM sq_o o'
    ' LEFT JOIN LATERAL (SELECT last_value AS lv FROM sq_seq WHERE ctid = ''(0,1)'' AND o.n > 0) l ON true OFFSET 0) q JOIN sq_t t ON t.id = q.id OFFSET 0) z',
    'SELECT count(*) FILTER (WHERE nv = lv + 1) FROM (SELECT nextval(''sq_seq'') AS nv, q.lv, t.x FROM (SELECT o.id, l.lv FROM sq_o o'
    ' LEFT JOIN LATERAL (SELECT last_value AS lv FROM sq_seq WHERE ctid >= ''(0,0)'' AND o.n > 0) l ON true OFFSET 0) q JOIN sq_t t ON t.id = q.id OFFSET 0) z',
    'SELECT count(*) FILTER (WHERE cu = CASE WHEN n % 2 = 1 THEN ''regress_sq'' ELSE session_user END) FROM (SELECT o.n, o.cu, l.s FROM (SELECT n, id, current_user::text AS cu FROM sq_o ORDER BY n OFFSET 0) o'
    ' LEFT JOIN LATERAL (SELECT set_config(''role'', CASE WHEN o.n % 2 = 0 THEN ''regress_sq'' ELSE ''none'' END, true) AS s FROM sq_t t WHERE t.id = o.id OFFSET 0) l ON true OFFSET 0) q',
    'SELECT o.n, (SELECT x FROM sq_t t WHERE t.id = o.id) AS x, current_setting(''sq.x'') FROM sq_o o WHERE o.n >= length(current_setting(''sq.x''))']) q;

-- Between two fetches from a cursor, too.
BEGIN;
SET LOCAL learnedbtree.btree_indexes = 'all';
SET LOCAL sq.x = '1';
DECLARE sq_cursor CURSOR FOR SELECT o.n % 2 AS odd FROM sq_o o JOIN sq_t t ON t.id = o.id WHERE o.n % 2 = current_setting('sq.x')::int;
MOVE 30 FROM sq_cursor;
SET LOCAL sq.x = '0';
FETCH 3 FROM sq_cursor;
SET LOCAL TimeZone = 'UTC';
DECLARE sq_zones CURSOR FOR SELECT o.n % 2 AS odd FROM sq_o o JOIN sq_t t ON t.id = o.id WHERE (timestamptz '2026-01-01 00:00Z' + o.n * interval '12 hours')::time = '00:00';
MOVE 30 FROM sq_zones;
SET LOCAL TimeZone = 'Etc/GMT+12';
FETCH 3 FROM sq_zones;
SET LOCAL enable_hashagg = off;
DECLARE sq_json CURSOR FOR SELECT g.j::text LIKE '%12:00%' AS by_utc FROM (SELECT id, json_agg(timestamptz '2026-01-01 00:00Z') AS j FROM sq_o GROUP BY id OFFSET 0) g JOIN sq_t t ON t.id = g.id;
MOVE 30 FROM sq_json;
SET LOCAL TimeZone = 'UTC';
FETCH 3 FROM sq_json;
ROLLBACK;
-- Locking rows sets nothing.
SELECT sq_nodes('SELECT o.n FROM sq_o o JOIN sq_t t ON t.id = o.id WHERE o.n > 0 AND timestamptz ''2026-01-01'' + o.n * interval ''1 day'' < now() FOR UPDATE OF o');
DROP FUNCTION sq_setting;
-- To ask for a field of a record that is not assigned, or has another type now, is an error of the row that does.
CREATE FUNCTION sq_record(assign bool, below int4) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    IF assign THEN
        SELECT timestamp '2026-01-05' AS at INTO r;
    ELSIF assign IS NULL THEN
        SELECT 5 AS at INTO r;
    END IF;
    RETURN count(CASE WHEN n < below THEN (SELECT v FROM sq_r t WHERE t.dev = o.dev AND t.at < r.at ORDER BY at DESC LIMIT 1) END) FROM sq_o o;
END $$;
SET plan_cache_mode = force_generic_plan;
SELECT sq_record(true, 1000) > 0, sq_record(false, 0), sq_record(NULL, 0);
\set VERBOSITY terse
SELECT sq_record(false, 1000);
SELECT sq_record(NULL, 1000);
\set VERBOSITY default
RESET plan_cache_mode;
DROP FUNCTION sq_record;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET enable_bitmapscan;
RESET enable_seqscan;

DROP VIEW sq_barrier;
DROP FUNCTION sq_compare, sq_plan, sq_predicted, sq_nodes, sq_tells;
DROP VIEW sq_sorted;
DROP SEQUENCE sq_seq, sq_s;
DROP TABLE sq_t, sq_r, sq_o;
DROP ROLE regress_sq;
