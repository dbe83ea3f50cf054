-- What EXPLAIN (ANALYZE, LEARNEDBTREE) counts, from 18 on.  The oracle is learnedbtree_stat.
SELECT use_am() AS am \gset

SELECT current_setting('server_version_num')::int < 180000 AS old \gset
\if :old
\quit
\endif

-- The tables have no planner statistics: with them planning itself would look up the ends of columns.
LOAD 'learnedbtree';
CREATE TABLE exp_t (k int, g int, pad text);
INSERT INTO exp_t SELECT i, i % 100, '' FROM generate_series(1, 20000) i;
CREATE INDEX exp_k ON exp_t USING :am (k);
CREATE INDEX exp_g ON exp_t USING :am (g);
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;
SET enable_memoize = off;
SET enable_material = off;
SET jit = off;
SET learnedbtree.enable_prefetch = off;  -- versions differ in what a build leaves in shared buffers

-- What EXPLAIN shows of a statement's scans, in the plan's order: one line for each count.
CREATE FUNCTION shown(query text) RETURNS TABLE (scan bigint, index text, event text, n bigint) LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, LEARNEDBTREE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    RETURN QUERY
    SELECT s, node->>'Index Name', lower(replace(key, ' ', '_')), value::bigint
      FROM jsonb_path_query(plan, 'strict $.**?(exists(@."Learned B-Tree"))') WITH ORDINALITY q(node, s),
           jsonb_each_text(node->'Learned B-Tree');
END $$;

-- ... what is not zero, a line for each scan.
CREATE FUNCTION scans(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', scan || '.', index, string_agg(event || '=' || n, ' ' ORDER BY o) FILTER (WHERE n <> 0))
      FROM shown(query)
      JOIN unnest('{lookups,verified,moved_right,fallback_no_model,fallback_block,fallback_page,fallback_low,fallback_high,delegated,prefetched,prefetched_used,rows_prefetched,rows_prefetched_used}'::text[]) WITH ORDINALITY u(event, o) USING (event)
     GROUP BY scan, index ORDER BY scan
$$;

-- Do these counts, which are kept, add up to what the view has counted meanwhile?
CREATE TABLE exp_said (indexrelname text, event text, n bigint);
CREATE FUNCTION agrees(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := (SELECT jsonb_object_agg(indexrelid, to_jsonb(s)) FROM learnedbtree_stat s WHERE relname = 'exp_t');
    wrong text;
BEGIN
    DELETE FROM exp_said;
    INSERT INTO exp_said SELECT index, s.event, sum(s.n) FROM shown(query) s GROUP BY 1, 2;
    WITH counted AS (
        SELECT indexrelname, key AS event, value::bigint - (before->indexrelid::text->>key)::bigint AS n
          FROM learnedbtree_stat s, jsonb_each_text(to_jsonb(s))
         WHERE relname = 'exp_t' AND key IN ('lookups', 'verified', 'moved_right', 'fallback_no_model', 'fallback_block', 'fallback_page', 'fallback_low', 'fallback_high', 'delegated', 'prefetched', 'prefetched_used', 'rows_prefetched', 'rows_prefetched_used'))
    SELECT string_agg(format('%s.%s: %s, not %s', indexrelname, event, s.n, c.n), ', ') INTO wrong
      FROM counted c FULL JOIN exp_said s USING (indexrelname, event) WHERE coalesce(s.n, 0) <> coalesce(c.n, 0);
    RETURN coalesce(wrong, 'agrees');
END $$;

-- plain, index-only, bitmap; backward; no match; a contradiction; a list; all keys
SET enable_bitmapscan = off;
SELECT scans('SELECT pad FROM exp_t WHERE k = 5000');
SELECT scans('SELECT k FROM exp_t WHERE k BETWEEN 5000 AND 5010');
SELECT scans('SELECT k FROM exp_t WHERE k < 5000 ORDER BY k DESC LIMIT 10');
SELECT scans('SELECT k FROM exp_t WHERE k = -1');
SELECT scans('SELECT k FROM exp_t WHERE k > 10 AND k < 5');
SELECT scans('SELECT k FROM exp_t WHERE k IN (10, 7000, 15000, 15001, 19000)');
RESET learnedbtree.enable_prefetch;
BEGIN;
REINDEX INDEX exp_k;
SELECT scans('SELECT k FROM exp_t WHERE k IN (10, 7000, 15000, 15001, 19000)') ~ ' prefetched=4 prefetched_used=4$' AS prefetched;
ROLLBACK;
SET learnedbtree.enable_prefetch = off;
SELECT scans('SELECT k FROM exp_t WHERE k IS NULL');
SELECT scans('SELECT k FROM exp_t WHERE k < ANY (''{-1}'')');
SET learnedbtree.enable = off;
SELECT scans('SELECT k FROM exp_t WHERE k = 5000');
RESET learnedbtree.enable;
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT scans('SELECT pad FROM exp_t WHERE k = 5000');
SELECT scans('SELECT pad FROM exp_t WHERE k IN (5000, 15000) OR g = 7');
SELECT scans('SELECT pad FROM exp_t WHERE k < ANY (''{-1}'')');
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;

-- a join, looked up again for each row; the same index twice, taking turns, each with counts of its own
SELECT scans('SELECT FROM generate_series(101, 400) i JOIN exp_t ON k = i');
SELECT scans('SELECT FROM exp_t a JOIN exp_t b ON b.k = a.k + 1 WHERE a.k BETWEEN 101 AND 200');
SELECT agrees('SELECT FROM generate_series(1, 20000, 7) i JOIN exp_t ON k = i');
SELECT agrees('SELECT FROM exp_t a JOIN exp_t b ON b.k = a.k + 1 JOIN exp_t c ON c.g = b.k % 100 AND c.k = b.k WHERE a.k < 1000');
SELECT agrees('SELECT (SELECT pad FROM exp_t WHERE k = i) FROM generate_series(1, 20000, 11) i WHERE EXISTS (SELECT FROM exp_t WHERE g = i % 100 AND k > i)');
-- scans of subplans, of WITH queries, of such that change data
SELECT scans('WITH w AS MATERIALIZED (SELECT k FROM exp_t WHERE k = 300) SELECT (SELECT g FROM exp_t WHERE k = 400), (SELECT g FROM exp_t WHERE k = w.k) FROM w');
BEGIN;
SELECT scans('WITH w AS (UPDATE exp_t SET pad = ''x'' WHERE k = 300 RETURNING k) SELECT 1');
ROLLBACK;
-- not executed
SELECT scans('SELECT k FROM exp_t WHERE k = 5 AND (SELECT count(*) FROM exp_t WHERE k = 6) > 1');

-- What a function's statements do is theirs, though it runs within the statement and by the same index.
CREATE FUNCTION looks_up(i int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM exp_t WHERE k BETWEEN i AND i + 1); END $$;
SELECT scans('SELECT looks_up(k) FROM exp_t WHERE k BETWEEN 1001 AND 1020');
-- ... even when the function fails, and its error is caught
CREATE FUNCTION fails(i int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM 1 / (k - i) FROM exp_t WHERE k >= i - 1 LIMIT 3; RETURN 0; EXCEPTION WHEN division_by_zero THEN RETURN 1; END $$;
SELECT scans('SELECT a.k, fails(a.k), b.k FROM exp_t a JOIN exp_t b ON b.k = a.k + fails(a.k) WHERE a.k BETWEEN 1001 AND 1010');

-- Fallbacks by reason: leaves split since the training; keys far right of all that was known; no model.
SELECT learnedbtree_train('exp_k');
INSERT INTO exp_t SELECT 777, 0, '' FROM generate_series(1, 1000);
SELECT agrees('SELECT FROM generate_series(700, 800) i JOIN exp_t ON k = i');
SELECT indexrelname, n > 10 AS moved FROM exp_said WHERE event = 'moved_right';
INSERT INTO exp_t SELECT i, 0, '' FROM generate_series(20001, 30000) i;
SELECT agrees('SELECT FROM generate_series(28001, 28200) i JOIN exp_t ON k = i');
SELECT sum(n) FILTER (WHERE event = 'fallback_high') > 190 AS high, sum(n) FILTER (WHERE event IN ('verified', 'fallback_high')) = sum(n) FILTER (WHERE event = 'lookups') AS all,
       sum(n) FILTER (WHERE event = 'lookups') AS lookups FROM exp_said;

-- Partitions.
CREATE TABLE exp_p (k int) PARTITION BY RANGE (k);
SELECT format('CREATE TABLE exp_p%s PARTITION OF exp_p FOR VALUES FROM (%s) TO (%s)', i, i * 1000, (i + 1) * 1000) FROM generate_series(0, 3) i \gexec
INSERT INTO exp_p SELECT i FROM generate_series(0, 3999) i;
CREATE INDEX exp_p_k ON exp_p USING :am (k);
SELECT scans('SELECT k FROM exp_p WHERE k IN (500, 1500, 1501, 3500)');
SELECT scans('SELECT FROM generate_series(990, 1009) i JOIN exp_p ON k = i');

-- What parallel workers do is in the totals, and not shown with their leader's scans.
CREATE TABLE exp_w (k int8) WITH (parallel_workers = 2);
INSERT INTO exp_w SELECT i * 7 % 5003 FROM generate_series(1, 5000) i;
CREATE TABLE exp_i AS SELECT i::int8 AS k FROM generate_series(1, 6000) i;
CREATE INDEX exp_i_k ON exp_i USING :am (k);
ANALYZE exp_w, exp_i;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
SET enable_seqscan = on;
CREATE FUNCTION by_workers() RETURNS TABLE (gather boolean, shown bigint, counted bigint) LANGUAGE plpgsql AS $$
DECLARE
    before bigint := (SELECT lookups FROM learnedbtree_stat WHERE relname = 'exp_i');
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, LEARNEDBTREE, TIMING OFF, FORMAT JSON) SELECT count(*) FROM exp_w JOIN exp_i USING (k)' INTO plan;
    gather := jsonb_path_exists(plan, 'strict $.**?(@."Workers Launched" > 0)');
    shown := (SELECT sum(l::bigint) FROM jsonb_path_query(plan, 'strict $.**?(exists(@."Learned B-Tree"))."Learned B-Tree"."Lookups"') l);
    counted := (SELECT lookups FROM learnedbtree_stat WHERE relname = 'exp_i') - before;
    RETURN NEXT;
END $$;
SELECT * FROM by_workers();
SET max_parallel_workers_per_gather = 0;
SELECT * FROM by_workers();
DROP FUNCTION by_workers;
SET enable_seqscan = off;
DROP TABLE exp_w, exp_i;

DROP TABLE exp_p, exp_t, exp_said;
DROP FUNCTION looks_up, fails, agrees, scans, shown;
