-- Skip scans: conditions that leave out an index's leading columns, by ordinary index scans that skip to what they leave of
-- each value of these.  Up to 17 the planner is told what they cost; later servers know.
SELECT use_am() AS am \gset
SET max_parallel_workers_per_gather = 0;
SET random_page_cost = 0.1;
SET cpu_operator_cost = 0.0005;

-- Is a query's plan cheaper for them, up to 17, and has it the same answers as without, and as nbtree gives?
CREATE FUNCTION skip(query text, wanted boolean DEFAULT true, ordered boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
    without json;
    ours record;
    nbtrees record;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    SET LOCAL learnedbtree.enable_loose_scan = off;
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO without;
    SET LOCAL learnedbtree.enable_loose_scan = on;
    IF ((plan->0->'Plan'->>'Total Cost')::float < (without->0->'Plan'->>'Total Cost')::float) <>
        (wanted AND current_setting('server_version_num')::int < 180000) THEN
        RETURN format('WRONG plan: %s, not %s', plan, without);
    END IF;
    SELECT * INTO ours FROM both_answers(query);
    SET LOCAL learnedbtree.enable = off;
    SELECT * INTO nbtrees FROM both_answers(query);
    SET LOCAL learnedbtree.enable = on;
    IF ours.sorted <> nbtrees.sorted OR (ordered AND ours.in_order <> nbtrees.in_order) THEN
        RETURN format('WRONG: %s, not %s', ours, nbtrees);
    END IF;
    RETURN same_without_loose(query, ordered);
END $$;

-- Does it use as few pages as that, by an index scan?
CREATE FUNCTION skip_pages(query text, most int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    used int;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    used := substring(plan FROM '"Shared Hit Blocks": (\d+)')::int + substring(plan FROM '"Shared Read Blocks": (\d+)')::int;
    RETURN CASE WHEN plan ~ 'Index (Only )?Scan' AND used <= most THEN 'few' ELSE format('WRONG: %s pages, %s', used, plan) END;
END $$;

-- Few values of a, d and g, with NULLs.  c is unique.
CREATE TABLE l (a int, b int, c int NOT NULL, s text COLLATE "C", d date, g varchar(20) COLLATE "C", n numeric, v varchar(20) COLLATE "C");
INSERT INTO l SELECT CASE WHEN i % 40 > 0 THEN mix(i) % 5 END, CASE WHEN mix(i + 7) % 90 > 0 THEN mix(i + 1) % 500 END, i,
    CASE WHEN i % 100 > 0 THEN 'value ' || mix(i + 2) % 2000 END, date '2024-01-01' + (mix(i + 4) % 3)::int,
    nullif('group ' || mix(i + 5) % 4, 'group 2'), (mix(i + 3) % 900) / 4.0, 'value ' || mix(i + 2) % 2000
  FROM generate_series(1, 40000) i;
CREATE INDEX l_a_b ON l USING :am (a, b);
CREATE INDEX l_d_g_n ON l USING :am (d DESC, g NULLS FIRST, n DESC NULLS LAST, c);
CREATE INDEX l_d_v ON l USING :am (d, v, b);
CREATE INDEX l_g_s ON l USING :am (g DESC, s DESC) INCLUDE (c);
VACUUM ANALYZE l;

-- One column left out: rows, or only the index; NULLs on either side
SELECT q, skip(q) FROM unnest(ARRAY[
    'SELECT * FROM l WHERE b = 7',
    'SELECT count(*) FROM l WHERE b = 7',
    'SELECT a, b FROM l WHERE 7 = b',
    'SELECT c + 1, ctid, l FROM l WHERE b = 499',
    'SELECT * FROM l WHERE b = 500',
    'SELECT * FROM l WHERE b < 2',
    'SELECT a, b FROM l WHERE b > 3 AND b <= 5',
    'SELECT count(*) FROM l WHERE b IS NULL',
    'SELECT s, c FROM l WHERE s = ''value 7''',
    'SELECT c FROM l WHERE s >= ''value 1998'' AND s < ''value 2''',
    'SELECT v, b FROM l WHERE v = ''value 7''']) q;

-- With conditions on other columns
SELECT q, skip(q) FROM unnest(ARRAY[
    'SELECT * FROM l WHERE b = 7 AND c % 2 = 0',
    'SELECT * FROM l WHERE b = 7 AND d = ''2024-01-01''']) q;

-- Several columns, in several orders; conditions on those before the last one left out
SELECT q, skip(q) FROM unnest(ARRAY[
    'SELECT * FROM l WHERE n = 12.25',
    'SELECT d, g, c FROM l WHERE n = 12.250 AND c > 20000',
    'SELECT d, g, n FROM l WHERE n = 3 AND c < 30000',
    'SELECT * FROM l WHERE n > 224',
    'SELECT * FROM l WHERE d = ''2024-01-02'' AND n = 8',
    'SELECT g, n FROM l WHERE d > ''2024-01-01'' AND n = 9',
    'SELECT * FROM l WHERE d < ''2024-01-03'' AND g IS NOT NULL AND n = 9.5',
    'SELECT * FROM l WHERE g > ''group 0'' AND s = ''value 11''',
    'SELECT * FROM l WHERE a >= 1 AND a < 4 AND b = 7']) q;

-- Lists on either side of what is left out, backward, and several keys on a column
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT q, regexp_replace(compare(index::regclass, q, q ~ 'ORDER'), 'verified|fallback', 'by the model') AS compare FROM (VALUES
    ('l_a_b', 'SELECT a, b FROM l WHERE b IN (7, 9, 300, 301, 77777)'),
    ('l_a_b', 'SELECT a, b FROM l WHERE b IN (7, 9, 300, 301, 77777) ORDER BY a DESC, b DESC'),
    ('l_a_b', 'SELECT a, b FROM l WHERE a > 1 AND b IN (498, 499, 5) AND b IS NOT NULL ORDER BY a, b'),
    ('l_a_b', 'SELECT a, b FROM l WHERE a IS NOT NULL AND b > 20 AND b < 23 AND b >= 21 ORDER BY a DESC, b DESC'),
    ('l_d_g_n', 'SELECT d, g, n, c FROM l WHERE d IN (''2024-01-01'', ''2024-01-03'') AND n = 12.25 ORDER BY d DESC, g NULLS FIRST, n DESC NULLS LAST, c'),
    ('l_d_g_n', 'SELECT d, g, n, c FROM l WHERE d IN (''2024-01-01'', ''2024-01-03'') AND n < 2 ORDER BY d, g DESC NULLS LAST, n NULLS FIRST, c DESC'),
    ('l_d_g_n', 'SELECT d, g, n, c FROM l WHERE g IN (''group 0'', ''group 3'') AND n IS NULL'),
    ('l_d_g_n', 'SELECT d, g, n, c FROM l WHERE g IS NULL AND n IN (1, 2.5, 200) AND c > 20000'),
    ('l_d_g_n', 'SELECT d, g, n, c FROM l WHERE c = 777'),
    ('l_d_g_n', 'SELECT d, g, n, c FROM l WHERE c IN (777, 778, 39999) ORDER BY d, g DESC NULLS LAST, n NULLS FIRST, c DESC'),
    ('l_g_s', 'SELECT g, s FROM l WHERE s > ''value 19'' AND s < ''value 1903'' ORDER BY g, s'),
    ('l_g_s', 'SELECT g, s FROM l WHERE s IS NULL ORDER BY g DESC, s DESC')) v (index, q);
-- Random conditions on small leaves, in both directions and to and fro, beside nbtree's answers.  No scan is left to nbtree.
CREATE FUNCTION random_test(col text, n int) RETURNS text LANGUAGE sql AS $$
    SELECT CASE mix(n) % 9 WHEN 0 THEN col || ' = ' || v WHEN 1 THEN format('%s IN (%s, %s, %s)', col, v, mix(n + 2) % 12, mix(n + 3) % 12) WHEN 2 THEN col || ' > ' || v
        WHEN 3 THEN col || ' <= ' || v WHEN 4 THEN format('%s >= %s AND %s < %s', col, v, col, v + 3) WHEN 5 THEN col || ' IS NULL' WHEN 6 THEN col || ' IS NOT NULL' ELSE 'true' END
      FROM CAST(mix(n + 1) % 12 AS int) v
$$;
CREATE FUNCTION random_skips(index text, first int, last int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    query text;
    on_cursor text;
    ours record;
    nbtrees record;
    own oid := (SELECT indexrelid FROM pg_index WHERE indrelid = 'small'::regclass);
    before record;
    after record;
BEGIN
    FOR i IN first .. last LOOP
        query := format('SELECT a, b, c FROM small WHERE %s AND %s AND %s ORDER BY %s', random_test('a', 100 * i), random_test('b', 100 * i + 10),
            random_test('c', 100 * i + 20), CASE WHEN i % 2 = 0 THEN index ELSE replace(replace(replace(replace(index, ' ASC NULLS LAST', ' _'), ' DESC NULLS FIRST', ' ASC NULLS LAST'), ' _', ' DESC NULLS FIRST'), ' ASC NULLS FIRST', ' DESC NULLS LAST') END);
        SET LOCAL learnedbtree.enable = on;
        SELECT * INTO before FROM learnedbtree_stat_get(own);
        ours := both_answers(query);
        on_cursor := walk(query, 30, i);
        SELECT * INTO after FROM learnedbtree_stat_get(own);
        IF after.lookups = before.lookups OR after.delegated > before.delegated THEN
            RETURN format('WRONG: %s: %s lookups, %s scans left to nbtree', query, after.lookups - before.lookups, after.delegated - before.delegated);
        END IF;
        SET LOCAL learnedbtree.enable = off;
        nbtrees := both_answers(query);
        IF ours <> nbtrees OR on_cursor <> walk(query, 30, i) THEN
            RETURN format('WRONG: %s: %s, not %s', query, ours, nbtrees);
        END IF;
    END LOOP;
    RETURN 'same';
END $$;
SET enable_sort = off;
CREATE TABLE small (a int, b int, c int, p text);
INSERT INTO small SELECT nullif(mix(i) % 9, 8), nullif(mix(i + 1) % 12, 4), nullif(mix(i + 2) % 12, 7), repeat('p', 100) FROM generate_series(1, 4000) i;
CREATE INDEX small_1 ON small USING :am (a, b, c) INCLUDE (p) WITH (fillfactor = 10);
SELECT random_skips('a ASC NULLS LAST, b ASC NULLS LAST, c ASC NULLS LAST', 1, 150);
DROP INDEX small_1;
CREATE INDEX small_2 ON small USING :am (a DESC, b, c DESC NULLS FIRST) INCLUDE (p) WITH (fillfactor = 10);
SELECT random_skips('a DESC NULLS FIRST, b ASC NULLS LAST, c DESC NULLS FIRST', 151, 300);
DROP TABLE small;
RESET enable_sort;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Above it: order, limits, groups, and other parts of a query
SELECT q, skip(q, true, q ~ 'ORDER') FROM unnest(ARRAY[
    'SELECT a, c FROM l WHERE b = 7 ORDER BY c',
    'SELECT c FROM l WHERE b = 7 ORDER BY a DESC, c LIMIT 5',
    'SELECT a, count(*), max(c) FROM l WHERE b = 7 GROUP BY a ORDER BY a',
    'SELECT c FROM l WHERE b = 7 UNION ALL SELECT c FROM l WHERE b = 8',
    'SELECT count(*) FROM (SELECT c FROM l WHERE b = 7 OFFSET 3) q',
    'WITH q AS MATERIALIZED (SELECT c FROM l WHERE b = 7) SELECT * FROM q JOIN l USING (c)']) q;

-- Left to the server: other conditions, nothing left out, joins, rows to lock, many values, and many rows
SELECT q, skip(q, false) FROM unnest(ARRAY[
    'SELECT * FROM l WHERE b + 1 = 7',
    'SELECT * FROM l WHERE b = a',
    'SELECT * FROM l WHERE a = 3 AND b = 7',
    'SELECT * FROM l WHERE c = 7',
    'SELECT * FROM l WHERE b = (random() * 0)::int + 7',
    'SELECT l.c FROM l JOIN l l2 ON l.c = l2.c WHERE l.b = 7']) q;
EXPLAIN (COSTS OFF) SELECT * FROM l WHERE b = 7 FOR UPDATE;

-- Two leaves for each of six values, some 75 rows, and no more than a scan of the index where each entry has its own value
SELECT skip_pages('SELECT a, b FROM l WHERE b = 7', 40), skip_pages('SELECT a, b FROM l WHERE b = 7 AND a > 2', 20),
    skip_pages('SELECT d, g, n FROM l WHERE n = 3', 80);

-- Rows that are not visible.  A value that has no others does no harm.
BEGIN;
DELETE FROM l WHERE a IN (0, 4) OR (a = 2 AND b <> 7) OR (a = 3 AND c % 2 = 0);
INSERT INTO l VALUES (100, 7, 0), (NULL, 7, 0);
UPDATE l SET a = 101 WHERE a = 1 AND c < 10000;
SELECT skip('SELECT * FROM l WHERE b = 7'), skip('SELECT a, b FROM l WHERE b < 3'), skip('SELECT count(*) FROM l WHERE b IS NULL');
ROLLBACK;
SELECT skip('SELECT * FROM l WHERE b = 7');

-- Parameters: of prepared statements, and of outer rows, which begin the scan again
PREPARE p (int, int) AS SELECT count(*), sum(c) FROM l WHERE b = $1 AND a > $2;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (7, 2);
EXECUTE p (7, NULL);
EXECUTE p (NULL, 2);
EXECUTE p (9, 0);
RESET plan_cache_mode;
SELECT skip('SELECT x, (SELECT count(*) FROM l WHERE b = x) FROM generate_series(1, 5) x'),
    skip('SELECT x, y.* FROM generate_series(1, 9, 2) x, LATERAL (SELECT a, c FROM l WHERE b = x AND a > x / 2 ORDER BY c LIMIT 4) y'),
    skip('SELECT x, (SELECT max(c) FROM l WHERE b IS NULL AND a >= x) FROM unnest(ARRAY[1, NULL, 9]) x'),
    skip('SELECT s, (SELECT sum(c) FROM l WHERE l.s = q.s) FROM (SELECT DISTINCT s FROM l WHERE c < 30 OFFSET 0) q');

-- A cursor, to and fro
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT c FROM l WHERE b = 7 ORDER BY c;
DECLARE d SCROLL CURSOR FOR SELECT b FROM l WHERE b = 7;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM d;
FETCH BACKWARD 2 FROM d;
MOVE FORWARD ALL FROM d;
COMMIT;

-- Without SCROLL: WHERE CURRENT OF, and backwards, as far as the server's own plan can.  Is the row that was updated, and each
-- one's place, the cursor's?
CREATE FUNCTION walk_skip(query text, moves int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c refcursor := 'c';
    there int[] := '{}';
    here int;
    changed int;
    place int;
    result text := '';
BEGIN
    EXECUTE 'DECLARE c CURSOR FOR ' || query;
    LOOP FETCH c INTO here; EXIT WHEN NOT FOUND; there := there || here; END LOOP;
    FOR i IN 1 .. cardinality(moves) LOOP
        place := 1 + moves[i] % (cardinality(there) - 1);
        EXECUTE format('MOVE ABSOLUTE %s FROM c', place + 1);
        FETCH PRIOR FROM c INTO here;
        UPDATE l SET g = 'changed' WHERE CURRENT OF c RETURNING l.c INTO changed;
        IF here IS DISTINCT FROM there[place] OR changed IS DISTINCT FROM here THEN
            result := result || format('WRONG at %s: %s, changed %s; ', place, here, changed);
        END IF;
    END LOOP;
    CLOSE c;
    RETURN coalesce(nullif(result, ''), 'right');
END $$;
BEGIN;
SET LOCAL enable_bitmapscan = off;
SELECT q, walk_skip(q, '{2,9,4,60,61,59,3,30}') FROM unnest(ARRAY['SELECT c FROM l WHERE b = 7', 'SELECT c FROM l WHERE s = ''value 7''',
    'SELECT c FROM l WHERE n = 12.25', 'SELECT c FROM l WHERE a > 1 AND b = 7', 'SELECT c FROM (SELECT c FROM l WHERE b = 9 OFFSET 1) q']) q;
ROLLBACK;
BEGIN;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT c FROM l WHERE b = 7;
MOVE 2 FROM c;
MOVE BACKWARD ALL FROM c;
MOVE FORWARD ALL FROM c;
UPDATE l SET g = 'none' WHERE CURRENT OF c;
ROLLBACK;

-- A function that the planner calls, and in which a statement fails while it is planned
CREATE FUNCTION fails() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT 1 / 0';
EXCEPTION WHEN division_by_zero THEN
    RETURN 7;
END $$;
SELECT skip('SELECT * FROM l WHERE b = fails()');
DROP FUNCTION fails();

-- A name is shorter in the index, and so is a domain over it
CREATE DOMAIN label AS name;
CREATE TABLE named (a label, b int);
INSERT INTO named SELECT 'name ' || i % 3, mix(i) % 500 FROM generate_series(1, 20000) i;
CREATE INDEX named_a_b ON named USING :am (a, b);
VACUUM ANALYZE named;
SELECT skip('SELECT * FROM named WHERE b = 7');
DROP TABLE named;
DROP DOMAIN label;

-- Many more values than the planner thinks: the scan costs no more than one of the whole index.
CREATE TABLE many (a int, b int, s text COLLATE "C");
INSERT INTO many SELECT nullif(mix(i) % 5000, 3), mix(i + 1) % 1000, repeat('x', 700) || mix(i + 2) % 100 FROM generate_series(1, 40000) i;
CREATE INDEX many_a ON many USING :am (a, b);
CREATE INDEX many_s ON many USING :am (s, b);
ALTER TABLE many ALTER a SET (n_distinct = 4), ALTER s SET (n_distinct = 4);
VACUUM ANALYZE many;
BEGIN;
DROP INDEX many_s;
SELECT q, skip(q) FROM unnest(ARRAY['SELECT * FROM many WHERE b = 8', 'SELECT a FROM many WHERE b < 3 LIMIT 5', 'SELECT count(*) FROM many WHERE b = 1000']) q;
SELECT skip('SELECT x, (SELECT count(*) FROM many WHERE b = x AND a >= y) FROM (VALUES (1, 10), (2, 4999), (3, NULL), (4, 3000), (5, 4998)) v (x, y)');
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT skip_pages('SELECT a, b FROM many WHERE b = 8', 250);
ROLLBACK;
BEGIN;
DROP INDEX many_a;
SELECT skip('SELECT * FROM many WHERE b = 8');
ROLLBACK;

-- Partial indexes: the condition that is theirs need not be looked up.
BEGIN;
DROP INDEX many_a, many_s;
CREATE INDEX many_part ON many USING :am (s, b) WHERE a > 100;
SELECT skip('SELECT a, b FROM many WHERE b = 8 AND a > 100'), skip('SELECT a, b FROM many WHERE b = 8 AND a > 200');
SELECT skip('SELECT * FROM many WHERE b = 8', false), skip('SELECT a FROM many WHERE a > 100', false);
ROLLBACK;

-- Not where parallel paths come whatever the pages: those are nbtree's, and skip nothing.
CREATE TABLE parts (LIKE l) PARTITION BY LIST (d);
CREATE TABLE parts_all PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM l;
CREATE INDEX parts_a_b ON parts_all USING :am (a, b);
VACUUM ANALYZE parts;
SELECT skip('SELECT * FROM parts WHERE b = 7');
SET max_parallel_workers_per_gather = 2;
SELECT skip('SELECT * FROM parts WHERE b = 7', false), skip('SELECT * FROM l WHERE b = 7');
ALTER TABLE l SET (parallel_workers = 2);
SELECT skip('SELECT * FROM l WHERE b = 7', false);
ALTER TABLE l SET (parallel_workers = 0);
SELECT skip('SELECT * FROM l WHERE b = 7'), skip('SELECT * FROM l WHERE b < ANY (ARRAY[1, 2])', false);
ALTER TABLE l RESET (parallel_workers);
SET max_parallel_workers_per_gather = 0;
DROP TABLE parts;

-- Serializable transactions
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT skip('SELECT count(*) FROM l WHERE b = 7');
COMMIT;

-- Not by an index that is not served
SELECT use_model('l_a_b', false);
SELECT skip('SELECT * FROM l WHERE b = 7', false);
SELECT use_model('l_a_b', true);

DROP TABLE l, many;
