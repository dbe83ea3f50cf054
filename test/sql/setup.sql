-- What the other tests use.  A btree's engine and a sequential scan are the oracles.

SELECT extname FROM pg_extension WHERE extname IN ('amcheck', 'learnedbtree') ORDER BY 1;

-- The access method of the tests' indexes: btree, which is what people run, unless the environment names another.
\getenv am LBT_AM
\if :{?am}
\else
\set am btree
\endif
CREATE FUNCTION am() RETURNS name LANGUAGE sql IMMUTABLE RETURN :'am';

-- A file that is run for each begins with "SELECT use_am() AS am \gset" and says USING :am.  A session serves every btree
-- index then, and trains it at the end of CREATE INDEX, as indexes of our access method are.
CREATE FUNCTION use_am() RETURNS name LANGUAGE plpgsql AS $$
BEGIN
    IF am() = 'btree' THEN
        LOAD 'learnedbtree';
        PERFORM set_config('learnedbtree.btree_indexes', 'all', false), set_config('learnedbtree.min_leaves', '0', false);
        PERFORM set_config('tests.train', 'on', false);
    END IF;
    RETURN am();
END $$;
CREATE FUNCTION train_built() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tests.train', true) = 'on' THEN
        PERFORM learnedbtree_train(i.indexrelid)
           FROM pg_event_trigger_ddl_commands() d, learnedbtree_indexes i
          WHERE i.served AND i.am = 'btree' AND d.objid IN (i.indexrelid, (SELECT inhparent FROM pg_inherits WHERE inhrelid = i.indexrelid));
    END IF;
END $$;
CREATE EVENT TRIGGER train_built ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION train_built();

-- The same for other commands that make an index's file.
CREATE FUNCTION built(index regclass) RETURNS regclass LANGUAGE plpgsql AS $$
BEGIN
    IF am() = 'btree' THEN
        PERFORM learnedbtree_train(index);
    END IF;
    RETURN index;
END $$;

-- Leave an index to btree's own functions, or no longer: by the list of those that are served; one of ours, with all others.
CREATE FUNCTION use_model(index text, use boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF am() = 'btree' THEN
        PERFORM set_config('learnedbtree.btree_indexes', CASE WHEN use THEN 'all' ELSE 'all, !' || index END, false);
    ELSE
        PERFORM set_config('learnedbtree.enable', use::text, false);
    END IF;
END $$;

-- Make the planner use one way of access only, until the end of the calling function.
CREATE FUNCTION use_access(way text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('enable_seqscan', (way = 'seq')::text, true);
    PERFORM set_config('enable_indexscan', (way = 'index')::text, true);
    PERFORM set_config('enable_indexonlyscan', (way = 'only')::text, true);
    PERFORM set_config('enable_bitmapscan', (way = 'bitmap')::text, true);
END $$;

-- The answers of a query: how many and which, in any order; and in the order they come.
CREATE FUNCTION both_answers(query text, OUT sorted text, OUT in_order text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT concat(count(*), '':'', sum(h)), md5(string_agg(h::text, ''|'')) FROM (SELECT hashtextextended(q::text, 0) AS h FROM (%s) q OFFSET 0) r',
                   query) INTO sorted, in_order;
END $$;

-- Has a query the same answers with loose and skip scans as without?  So many rows; or what is wrong.
CREATE FUNCTION same_without_loose(query text, ordered boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    with_loose record;
    without record;
BEGIN
    SELECT * INTO with_loose FROM both_answers(query);
    PERFORM set_config('learnedbtree.enable_loose_scan', 'off', true);
    SELECT * INTO without FROM both_answers(query);
    PERFORM set_config('learnedbtree.enable_loose_scan', 'on', true);
    IF with_loose.sorted <> without.sorted OR (ordered AND with_loose.in_order <> without.in_order) THEN
        RETURN format('WRONG: %s, not %s', with_loose, without);
    END IF;
    RETURN split_part(without.sorted, ':', 1) || ' rows';
END $$;

CREATE FUNCTION answers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    sorted text;
BEGIN
    EXECUTE format('SELECT concat(count(*), '':'', sum(hashtextextended(q::text, 0))) FROM (%s) q', query) INTO sorted;
    RETURN sorted;
END $$;

CREATE FUNCTION plan_uses(query text, index regclass) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN plan ~ format('"Index Name": "%s"', (SELECT relname FROM pg_class WHERE oid = index));
END $$;

-- Does the query give the same by this index, through the model and through nbtree's own engine, as by
-- a sequential scan?  Says how the model was used: verified (every lookup was answered by a predicted
-- leaf), fallback (some descended), delegated (nbtree's engine did it, as it does for a btree index that is not
-- served), no lookup; or what is wrong.
-- With ordered, index scans must also give rows in the same order as each other.
CREATE FUNCTION compare(index regclass, query text, ordered boolean DEFAULT true) RETURNS text
    LANGUAGE plpgsql
    SET max_parallel_workers_per_gather = 0 SET jit = off
    SET enable_seqscan = on SET enable_indexscan = on SET enable_indexonlyscan = on
    SET enable_bitmapscan = on SET enable_sort = on SET learnedbtree.enable = on AS $$
DECLARE
    way text;
    oracle text;
    learned record;
    plain record;
    before record;
    planned record;
    after record;
    lookups bigint := 0;
    verified bigint := 0;
    delegated bigint := 0;
    ways int := 0;
BEGIN
    PERFORM use_access('seq');
    oracle := answers(query);
    FOREACH way IN ARRAY ARRAY['index', 'only', 'bitmap'] LOOP
        PERFORM use_access(way);
        SELECT * INTO before FROM learnedbtree_stat_get(index);
        IF NOT plan_uses(query, index) THEN
            CONTINUE;
        END IF;
        ways := ways + 1;
        -- the planner may look for the ends of a column itself, as often each time
        SELECT * INTO planned FROM learnedbtree_stat_get(index);
        learned := both_answers(query);
        SELECT * INTO after FROM learnedbtree_stat_get(index);
        lookups := lookups + (after.lookups - planned.lookups) - (planned.lookups - before.lookups);
        verified := verified + (after.verified - planned.verified) - (planned.verified - before.verified);
        delegated := delegated + (after.delegated - planned.delegated) - (planned.delegated - before.delegated);
        IF learned.sorted <> oracle THEN
            RETURN format('WRONG by %s: %s, not %s', way, learned.sorted, oracle);
        END IF;
        PERFORM set_config('learnedbtree.enable', 'off', true);
        plain := both_answers(query);
        IF plain.sorted <> oracle THEN
            RETURN format('WRONG by %s without model: %s, not %s', way, plain.sorted, oracle);
        END IF;
        IF ordered AND way <> 'bitmap' AND learned.in_order <> plain.in_order THEN
            RETURN format('WRONG order by %s', way);
        END IF;
        PERFORM set_config('learnedbtree.enable', 'on', true);
    END LOOP;
    RETURN CASE WHEN ways = 0 THEN 'index not used'
                WHEN delegated > 0 OR NOT (SELECT served FROM learnedbtree_index_status(index)) THEN 'same, delegated'
                WHEN lookups = 0 THEN 'same, no lookup'
                WHEN verified = lookups THEN 'same, verified'
                ELSE 'same, fallback' END;
END $$;

-- Several queries at once: $1 in the pattern stands for each condition.  One line for each outcome.
CREATE FUNCTION compare_all(index regclass, pattern text, conditions text[])
    RETURNS TABLE (outcome text, queries bigint, which text) LANGUAGE sql AS $$
    WITH done AS MATERIALIZED (
        SELECT c, compare(index, replace(pattern, '$1', c)) AS r FROM unnest(conditions) c)
    SELECT r, count(*), CASE WHEN r IN ('same, verified') THEN '' ELSE string_agg(c, '; ' ORDER BY c COLLATE "C") END
      FROM done GROUP BY r ORDER BY r COLLATE "C"
$$;

-- Walk a scroll cursor to and fro by fixed rule; the positions and rows met, as one text.
CREATE FUNCTION walk(query text, steps int, seed int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    r record;
    x bigint := seed;
    seen text := '';
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    FOR i IN 1..steps LOOP
        x := (x * 1103515245 + 12345) % 2147483648;
        CASE (x / 65536) % 8
            WHEN 0, 1, 2 THEN FETCH NEXT FROM c INTO r;
            WHEN 3, 4 THEN FETCH PRIOR FROM c INTO r;
            WHEN 5 THEN MOVE FORWARD 700 FROM c; FETCH NEXT FROM c INTO r;
            WHEN 6 THEN MOVE BACKWARD 450 FROM c; FETCH PRIOR FROM c INTO r;
            ELSE FETCH RELATIVE 3 FROM c INTO r;
        END CASE;
        seen := seen || coalesce(r::text, '-') || ' ';
    END LOOP;
    CLOSE c;
    RETURN md5(seen);
END $$;

-- The same walk through the model and through nbtree's engine, on an index (only) scan.
CREATE FUNCTION compare_walk(index regclass, query text, way text DEFAULT 'index') RETURNS text
    LANGUAGE plpgsql
    SET max_parallel_workers_per_gather = 0 SET enable_seqscan = on SET enable_indexscan = on
    SET enable_indexonlyscan = on SET enable_bitmapscan = on SET enable_sort = off
    SET enable_material = off SET learnedbtree.enable = on AS $$
DECLARE
    before bigint := (SELECT verified FROM learnedbtree_stat_get(index));
    learned text[];
    plain text[];
BEGIN
    PERFORM use_access(way);
    IF NOT plan_uses(query, index) THEN
        RETURN 'index not used';
    END IF;
    FOR i IN 1..5 LOOP
        learned[i] := walk(query, 300, i);
    END LOOP;
    IF (SELECT verified FROM learnedbtree_stat_get(index)) <= before THEN
        RETURN 'model not used';
    END IF;
    PERFORM set_config('learnedbtree.enable', 'off', true);
    FOR i IN 1..5 LOOP
        plain[i] := walk(query, 300, i);
    END LOOP;
    RETURN CASE WHEN learned = plain THEN 'same, verified' ELSE 'WRONG' END;
END $$;

-- The outcome of a call, with error, detail and hint.
CREATE FUNCTION outcome(call text, success text DEFAULT 'done') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE 'SELECT ' || call;
    RETURN success;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' / ', SQLSTATE, message, NULLIF(detail, ''), NULLIF(hint, ''));
END $$;

-- Pseudo-random numbers by rule: the same on every server.
CREATE FUNCTION mix(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT ((i * 2654435761) % 4294967291 * 40503 + i * 7919) % 4294967291';

-- An error for what amcheck finds wrong with the file.  It takes btree indexes only; those of our access method pass for such.
CREATE FUNCTION check_file(index regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    btree CONSTANT oid := (SELECT oid FROM pg_am WHERE amname = 'btree');
    am CONSTANT oid := (SELECT relam FROM pg_class WHERE oid = index);
BEGIN
    UPDATE pg_class SET relam = btree WHERE oid = index AND relam <> btree;
    PERFORM bt_index_parent_check(index, true, true);
    UPDATE pg_class SET relam = am WHERE oid = index AND relam <> am;
END $$;

-- The state of an index's model and whether the file passes amcheck.
CREATE FUNCTION sound(index regclass) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_file(index);
    PERFORM learnedbtree_check(index);
    RETURN (SELECT state FROM learnedbtree_model(index));
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END $$;

-- The same answers by nested loops that look ahead as by a hash join, with batches of several sizes, and little memory?
CREATE FUNCTION compare_joins(query text) RETURNS text LANGUAGE plpgsql
    SET enable_hashjoin = on SET enable_nestloop = on SET work_mem = '4MB' AS $$
DECLARE
    oracle text;
    answer text;
    nodes int := 0;
    rows text;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', 'none', true), set_config('enable_nestloop', 'off', true);
    oracle := answers(query);
    PERFORM set_config('learnedbtree.btree_indexes', 'all', true), set_config('enable_nestloop', 'on', true), set_config('enable_hashjoin', 'off', true);
    FOREACH rows IN ARRAY '{0,1,2,7,64}'::text[] LOOP
        PERFORM set_config('learnedbtree.lookahead_rows', rows, true),
                set_config('work_mem', CASE WHEN rows = '7' THEN '64kB' ELSE '4MB' END, true);
        nodes := nodes + look_aheads(query);
        answer := answers(query);
        IF answer IS DISTINCT FROM oracle THEN
            RETURN format('WRONG with %s rows: %s, not %s', rows, answer, oracle);
        END IF;
    END LOOP;
    PERFORM set_config('learnedbtree.lookahead_rows', '64', true);
    RETURN format('%s rows, %s nodes in 3 plans', split_part(oracle, ':', 1), nodes);
END $$;

-- How many nodes that look ahead has a query's plan?
CREATE FUNCTION look_aheads(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    nodes int := 0;
BEGIN
    FOR plan IN EXECUTE 'EXPLAIN (COSTS OFF, VERBOSE) ' || query LOOP
        nodes := nodes + (plan ~ 'Look-Ahead')::int;
    END LOOP;
    RETURN nodes;
END $$;
