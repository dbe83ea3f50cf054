-- Loose scans: DISTINCT, DISTINCT ON and GROUP BY by seeks from group to group.
SELECT use_am() AS am \gset
SET max_parallel_workers_per_gather = 0;

-- Is a query's plan a loose scan, and has it the same answers as without?  In the same order, if ordered.
CREATE FUNCTION loose(query text, ordered boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
SET compute_query_id = off;
    EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
    RETURN CASE WHEN plan ~ 'Learned Loose Scan' THEN 'loose' ELSE 'not loose' END || ', ' || same_without_loose(query, ordered);
END $$;

-- A field of the node in EXPLAIN (ANALYZE).
CREATE FUNCTION loose_field(query text, field text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    RETURN substring(plan FROM format('"%s": (\d+)', field));
END $$;

-- Ten values of a and a thousand rows without; b has NULLs, and c is unique.
CREATE TABLE l (a int, b int, c int NOT NULL, s text COLLATE "C", n numeric, d date);
INSERT INTO l SELECT CASE WHEN i % 40 > 0 THEN mix(i) % 10 END, CASE WHEN mix(i + 7) % 9 > 0 THEN mix(i + 1) % 50 END, i,
    CASE WHEN i % 100 > 0 THEN 'value ' || mix(i + 2) % 20 END, (mix(i + 3) % 30) / 4.0, date '2024-01-01' + (mix(i + 4) % 25)::int
  FROM generate_series(1, 40000) i;
CREATE INDEX l_a_b ON l USING :am (a, b);
CREATE INDEX l_s ON l USING :am (s DESC, c);
CREATE INDEX l_n ON l USING :am (n NULLS FIRST) INCLUDE (c);
CREATE INDEX l_d ON l USING :am (d DESC NULLS LAST, a NULLS FIRST, b DESC);
VACUUM ANALYZE l;

-- One column, with its NULLs, in either direction and in any
SELECT q, loose(q, q ~ 'ORDER') FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM l',
    'SELECT DISTINCT a FROM l ORDER BY a',
    'SELECT DISTINCT a FROM l ORDER BY a DESC',
    'SELECT DISTINCT a FROM l ORDER BY a NULLS FIRST',
    'SELECT DISTINCT a FROM l ORDER BY a LIMIT 3',
    'SELECT a FROM l GROUP BY a',
    'SELECT DISTINCT s FROM l ORDER BY s DESC',
    'SELECT DISTINCT s FROM l ORDER BY s',
    'SELECT DISTINCT n FROM l',
    'SELECT DISTINCT d FROM l ORDER BY d DESC NULLS LAST',
    'SELECT DISTINCT a, 7 AS seven FROM l',
    'SELECT count(*) FROM (SELECT DISTINCT a FROM l) q']) q;

-- Several columns
SELECT q, loose(q, q ~ 'ORDER') FROM unnest(ARRAY[
    'SELECT DISTINCT a, b FROM l',
    'SELECT DISTINCT b, a FROM l',
    'SELECT DISTINCT a, b FROM l ORDER BY a, b',
    'SELECT DISTINCT a, b FROM l ORDER BY b, a',
    'SELECT d, a FROM l GROUP BY a, d',
    'SELECT DISTINCT d, a FROM l ORDER BY d DESC NULLS LAST, a NULLS FIRST']) q;

-- min() and max() of the next column
SELECT q, loose(q, q ~ 'ORDER') FROM unnest(ARRAY[
    'SELECT a, min(b) FROM l GROUP BY a',
    'SELECT a, max(b) FROM l GROUP BY a',
    'SELECT max(b), a, min(b), min(b) FROM l GROUP BY a ORDER BY a DESC',
    'SELECT min(c) FROM l GROUP BY s',
    'SELECT d, a, min(b), max(b) FROM l GROUP BY d, a',
    'SELECT d, max(a), min(a) FROM l GROUP BY d']) q;

-- DISTINCT ON, where the index has the order
SELECT q, loose(q, true) FROM unnest(ARRAY[
    'SELECT DISTINCT ON (s) s, c, upper(s), a FROM l ORDER BY s, c DESC',
    'SELECT DISTINCT ON (s) s, c, d FROM l ORDER BY s DESC, c',
    'SELECT DISTINCT ON (s) s, c FROM l ORDER BY s, c',
    'SELECT DISTINCT ON (a) a, b FROM l ORDER BY a, b DESC',
    'SELECT DISTINCT ON (a) a, b FROM l ORDER BY a DESC, b DESC']) q;

-- Conditions: on columns of the groups, on those behind, and on others
SELECT q, loose(q, q ~ 'ORDER') FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM l WHERE a > 3',
    'SELECT DISTINCT a FROM l WHERE 3 > a AND a IS NOT NULL ORDER BY a DESC',
    'SELECT DISTINCT a FROM l WHERE b >= 7 AND b < 40',
    'SELECT DISTINCT d, a FROM l WHERE a > 3 ORDER BY d DESC NULLS LAST, a NULLS FIRST',
    'SELECT DISTINCT d, a FROM l WHERE b > 20',
    'SELECT DISTINCT a FROM l WHERE b > 40',
    'SELECT a, max(b) FROM l WHERE ''2024-01-05'' = d GROUP BY a',
    'SELECT DISTINCT a FROM l WHERE b IS NULL',
    'SELECT DISTINCT a FROM l WHERE a = 3',
    'SELECT DISTINCT a FROM l WHERE d = ''2024-01-05''',
    'SELECT a, max(b) FROM l WHERE d = ''2024-01-05'' GROUP BY a',
    'SELECT a, min(b), max(b) FROM l WHERE b > 10 AND b < 20 GROUP BY a',
    'SELECT DISTINCT d FROM l WHERE b > 0',
    'SELECT d, min(a), max(a) FROM l WHERE b = 7 GROUP BY d',
    'SELECT DISTINCT a FROM l WHERE a IN (1, 3, 4, 77) ORDER BY a DESC',
    'SELECT a, min(b), max(b) FROM l WHERE a = ANY (''{7,2,NULL,2}'') GROUP BY a',
    'SELECT DISTINCT d, a FROM l WHERE d IN (''2024-01-05'', ''2024-01-07'') AND a IN (1, 2) ORDER BY d, a DESC NULLS LAST',
    'SELECT DISTINCT ON (s) s, c FROM l WHERE c > 20000 ORDER BY s, c DESC']) q;

-- Lists behind the groups, which servers from 18 on may look up for each group themselves
SELECT loose('SELECT DISTINCT a FROM l WHERE b IN (3, 49) ORDER BY a', true) ~ '5 rows', loose('SELECT a, min(b), max(b) FROM l WHERE b IN (3, 4, 48, 100) GROUP BY a') ~ '6 rows';

-- Behind columns of many values: the probe would read all of the index to find the few rows
CREATE TABLE l_items (o int, p int);
INSERT INTO l_items SELECT i, i % 4000 FROM generate_series(1, 40000) i;
CREATE INDEX l_items_o_p ON l_items USING :am (o, p);
CREATE INDEX l_items_p ON l_items USING :am (p);
VACUUM ANALYZE l_items;
SELECT q, loose(q) FROM unnest(ARRAY[
    'SELECT DISTINCT o FROM l_items WHERE p = 7',
    'SELECT o, p FROM l_items WHERE p > 3998 GROUP BY p, o',
    'SELECT count(DISTINCT o) FROM l_items WHERE p = 7']) q;

-- Deleted by a transaction that sees it: the other plan, before the probe has found the next row
CREATE TABLE l_gone AS SELECT nullif(i / 10000, 2) AS a, i AS b, repeat('wide', 90) AS w FROM generate_series(1, 30000) i;
CREATE INDEX l_gone_a_b ON l_gone USING :am (a, b);
VACUUM ANALYZE l_gone;
BEGIN;
DELETE FROM l_gone WHERE a = 1;
SELECT q, loose(q), loose_field(q, 'Seeks') AS seeks, loose_field(q, 'Switched Over') AS switched FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM l_gone',
    'SELECT a, max(b), min(b) FROM l_gone GROUP BY a',
    'SELECT DISTINCT ON (a) a, b FROM l_gone ORDER BY a DESC, b DESC']) q;
DELETE FROM l_gone WHERE b < 9900 OR b > 20100 AND b < 29990;
SELECT q, loose(q), loose_field(q, 'Seeks') AS seeks, loose_field(q, 'Switched Over') AS switched FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM l_gone',
    'SELECT a, max(b), min(b) FROM l_gone GROUP BY a']) q;
ROLLBACK;

-- A trigger changes the row in the slot that it was returned in.
CREATE TABLE l_most AS SELECT CASE WHEN i <= 500 THEN 0 WHEN i <= 59500 THEN 1 ELSE 2 END AS a, i AS b, repeat('wide', 90) AS w FROM generate_series(1, 60000) i;
CREATE INDEX l_most_a_b ON l_most USING :am (a, b);
VACUUM ANALYZE l_most;
CREATE TABLE l_copy (LIKE l_most);
CREATE FUNCTION loose_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.a := NEW.a + tg_argv[0]::int; RETURN NEW; END';
CREATE TRIGGER changes BEFORE INSERT ON l_copy FOR EACH ROW EXECUTE FUNCTION loose_change('10');
BEGIN;
DELETE FROM l_most WHERE a = 1;
SELECT loose_field('INSERT INTO l_copy SELECT DISTINCT ON (a) * FROM l_most ORDER BY a, b', 'Switched Over') AS switched;
SELECT a, b FROM l_copy;
ROLLBACK;
-- In a subquery: its outer query's parallel workers run all of it, and have the same answer
CREATE FUNCTION loose_parallel(query text, OUT plan text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    plan := substring(plan FROM 'Gather.*(Loose Scan)');
    EXECUTE query INTO answer;
END $$;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT loose_parallel('SELECT count(*) FROM l WHERE b NOT IN (SELECT DISTINCT a FROM l l2 WHERE a > 3)');
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
SET max_parallel_workers_per_gather = 0;

-- Aggregates of all rows to which a value that comes again makes no difference
SELECT q, loose(q) FROM unnest(ARRAY[
    'SELECT count(DISTINCT a) FROM l',
    'SELECT max(a) - min(a), count(DISTINCT a) + 1, sum(DISTINCT a), avg(DISTINCT a), array_agg(DISTINCT a), count(DISTINCT a) FROM l',
    'SELECT count(DISTINCT s), array_agg(DISTINCT s), max(s), 7 FROM l WHERE s < ''value 3''',
    'SELECT count(DISTINCT b), min(b) FROM l WHERE a = 3',
    'SELECT count(DISTINCT a), array_agg(DISTINCT a) FROM l WHERE b = 7',
    'SELECT count(DISTINCT a), array_agg(DISTINCT a) FROM l WHERE b > 7',
    'SELECT count(DISTINCT a), array_agg(DISTINCT a), max(a) FROM l WHERE a > 100',
    'SELECT x, (SELECT count(DISTINCT a) FROM l WHERE a < x) FROM generate_series(1, 5) x',
    'SELECT DISTINCT count(DISTINCT a) FROM l ORDER BY 1',
    'SELECT * FROM generate_series(8, 12) x WHERE x <= (SELECT count(DISTINCT a) FROM l)']) q;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(DISTINCT b) FROM l WHERE a = 3;

-- Not to others, of other columns, or where equal is another thing
SELECT q, loose(q) FROM unnest(ARRAY[
    'SELECT count(DISTINCT a), count(*) FROM l',
    'SELECT count(DISTINCT a), count(a) FROM l',
    'SELECT count(DISTINCT a), sum(a) FROM l',
    'SELECT count(DISTINCT a), min(b) FROM l',
    'SELECT count(DISTINCT a), count(DISTINCT s) FROM l',
    'SELECT count(DISTINCT b) FROM l',
    'SELECT count(DISTINCT (a, b)) FROM l',
    'SELECT count(DISTINCT a % 3) FROM l',
    'SELECT count(DISTINCT a) FILTER (WHERE a > 3) FROM l',
    'SELECT array_agg(DISTINCT a ORDER BY a DESC) FROM l',
    'SELECT string_agg(DISTINCT s, '','') FROM l',
    'SELECT count(DISTINCT s COLLATE "POSIX") FROM l',
    'SELECT count(DISTINCT a) FROM l HAVING count(DISTINCT a) > 3',
    'SELECT count(DISTINCT a) FROM l WHERE c > 0',
    'SELECT count(DISTINCT a) FROM l WHERE random() >= 0',
    'SELECT count(DISTINCT l.a) FROM l JOIN l l2 ON l.c = l2.c']) q;

-- Left to the server: other aggregates and columns, what is not a prefix, and what rows are locked or counted for
SELECT q, loose(q) FROM unnest(ARRAY[
    'SELECT DISTINCT b FROM l',
    'SELECT DISTINCT a, c FROM l',
    'SELECT DISTINCT a + 1 FROM l',
    'SELECT DISTINCT c FROM l',
    'SELECT DISTINCT s COLLATE "POSIX" FROM l',
    'SELECT a, count(*) FROM l GROUP BY a',
    'SELECT a, min(c) FROM l GROUP BY a',
    'SELECT a, min(b) FILTER (WHERE b > 3) FROM l GROUP BY a',
    'SELECT a, max(b) FROM l GROUP BY a HAVING max(b) > 3',
    'SELECT a FROM l GROUP BY ROLLUP (a)',
    'SELECT DISTINCT a, count(*) OVER () FROM l',
    'SELECT DISTINCT l.a FROM l JOIN l l2 ON l.c = l2.c',
    'SELECT DISTINCT a FROM l WHERE random() >= 0',
    'SELECT DISTINCT a FROM l WHERE c > 0',
    'SELECT DISTINCT a FROM l WHERE b <> 3',
    'SELECT DISTINCT ON (s) s, c FROM l ORDER BY s, c, a']) q;
-- ... and conditions that our scans leave to nbtree: a list beside another one, or a comparison with a type of another kind
SELECT q, loose(q) FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM l WHERE a IN (1, 2, 3) AND a > 1',
    'SELECT a, max(b) FROM l WHERE a IN (1, 2, 3) AND a IS NOT NULL GROUP BY a',
    'SELECT DISTINCT d FROM l WHERE d >= timestamp ''2024-01-05'' ORDER BY d',
    'SELECT DISTINCT d FROM l WHERE timestamptz ''2024-01-05 00:00Z'' < d',
    'SELECT DISTINCT d FROM l WHERE d = ANY (ARRAY[timestamp ''2024-01-05'', ''2024-01-07''])']) q;

-- A table that is proven to have no rows, however cheap the scan
BEGIN;
ALTER TABLE l ADD CHECK (a >= 0);
SET LOCAL constraint_exclusion = on;
SET LOCAL cpu_operator_cost = 0;
SET LOCAL cpu_tuple_cost = 0;
SET LOCAL cpu_index_tuple_cost = 0;
SET LOCAL random_page_cost = 0;
SELECT loose('SELECT DISTINCT a FROM l WHERE a < 0'), loose('SELECT a, max(b) FROM l WHERE a < 0 GROUP BY a');
ROLLBACK;

-- Each group costs a seek, and so does the end.
SELECT loose_field('SELECT DISTINCT a FROM l WHERE a < 5', 'Seeks') AS seeks, loose_field('SELECT DISTINCT a FROM l WHERE a < 5', 'Switched Over') AS switched;

-- Rows that are not visible: a value without others is skipped, one with others is not.
BEGIN;
DELETE FROM l WHERE a IN (0, 4, 9) OR (a = 5 AND b < 30);
INSERT INTO l SELECT 100, NULL, 0;
SELECT a, min(b), max(b) FROM l GROUP BY a ORDER BY a;
SELECT loose('SELECT DISTINCT a FROM l ORDER BY a', true), loose('SELECT a, min(b), max(b) FROM l GROUP BY a'),
       loose('SELECT count(DISTINCT a), array_agg(DISTINCT a) FROM l');
ROLLBACK;
-- the first ones of each posting list, or all but its last ones
BEGIN;
DELETE FROM l WHERE c < 20000 OR (a = 5 AND b IS NOT NULL);
SELECT loose('SELECT DISTINCT a, b FROM l ORDER BY a, b', true), loose('SELECT DISTINCT d FROM l'), loose('SELECT a, min(b), max(b) FROM l GROUP BY a'), loose('SELECT count(DISTINCT s), min(s), max(s) FROM l');
DELETE FROM l WHERE c < 39000;
SELECT loose('SELECT DISTINCT a FROM l ORDER BY a', true), loose('SELECT DISTINCT d FROM l'), loose('SELECT DISTINCT s FROM l ORDER BY s', true), loose('SELECT a, min(b), max(b) FROM l GROUP BY a');
ROLLBACK;
SELECT a, min(b), max(b) FROM l GROUP BY a ORDER BY a;

-- Parameters: of prepared statements, and of outer rows, which begin the scan again
PREPARE p (int, int) AS SELECT string_agg(a::text, ' ' ORDER BY a) FROM (SELECT DISTINCT a FROM l WHERE a > $1 AND b = $2) q;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (3, 7);
EXECUTE p (7, 11);
EXECUTE p (NULL, 1);
RESET plan_cache_mode;
SELECT x, (SELECT string_agg(a::text, ' ' ORDER BY a) FROM (SELECT DISTINCT a FROM l WHERE a >= x) q) FROM unnest(ARRAY[2, 8, NULL, 9]) x;
SELECT loose('SELECT x, (SELECT count(*) FROM (SELECT DISTINCT a, b FROM l WHERE a < x) q) FROM generate_series(1, 5) x');

-- A cursor, to and fro
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT DISTINCT a FROM l ORDER BY a;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;

-- Without SCROLL: a Sort on top lets it go back, as without loose scans.  NO SCROLL cursors, and queries that are none, need no Sort.
SET cursor_tuple_fraction = 1;
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT DISTINCT a FROM l ORDER BY a;
EXPLAIN (COSTS OFF) DECLARE c NO SCROLL CURSOR FOR SELECT DISTINCT a FROM l ORDER BY a;
BEGIN;
DECLARE c CURSOR FOR SELECT DISTINCT a FROM l ORDER BY a;
FETCH 3 FROM c;
FETCH BACKWARD 1 FROM c;
DECLARE d CURSOR FOR SELECT * FROM (SELECT a, min(b) FROM l GROUP BY a ORDER BY a DESC LIMIT 4) q;
FETCH LAST FROM d;
FETCH PRIOR FROM d;
FETCH ABSOLUTE -4 FROM d;
COMMIT;

-- PL/pgSQL's cursors, and its loops, which keep the node
CREATE FUNCTION to_and_fro() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR FOR SELECT DISTINCT a FROM l ORDER BY a;
    d SCROLL CURSOR (least int) FOR SELECT DISTINCT a FROM l WHERE a > least ORDER BY a DESC;
    e refcursor;
    found int[] := '{}';
    x int;
BEGIN
    OPEN c;
    MOVE FORWARD 5 FROM c;
    FETCH PRIOR FROM c INTO x; found := found || x;
    MOVE BACKWARD 2 FROM c;
    FETCH RELATIVE 0 FROM c INTO x; found := found || x;
    OPEN d(4);
    FETCH LAST FROM d INTO x; found := found || x;
    FETCH PRIOR FROM d INTO x; found := found || x;
    OPEN e FOR EXECUTE 'SELECT DISTINCT a FROM l WHERE a < $1 ORDER BY a' USING 5;
    FETCH LAST FROM e INTO x; found := found || x;
    FETCH FIRST FROM e INTO x; found := found || x;
    FOR x IN SELECT DISTINCT a FROM l WHERE a > 6 ORDER BY a LOOP found := found || x; END LOOP;
    RETURN found;
END $$;
SELECT to_and_fro();
RESET cursor_tuple_fraction;

-- Many more groups than the planner thinks: the other plan gives the rest, and no group twice.
CREATE TABLE many (a int, b int, s text COLLATE "C", t int);
INSERT INTO many SELECT nullif(mix(i) % 5000, 3), i % 7, 'value ' || mix(i + 1) % 4000, mix(i + 2) % 3000 FROM generate_series(1, 40000) i;
CREATE INDEX many_a ON many USING :am (a, b);
CREATE INDEX many_s ON many USING :am (s DESC);
CREATE INDEX many_t ON many USING :am (t NULLS FIRST, a);
ALTER TABLE many ALTER a SET (n_distinct = 4), ALTER s SET (n_distinct = 3), ALTER t SET (n_distinct = 3);
VACUUM ANALYZE many;
SELECT q, loose(q, q ~ 'ORDER'), loose_field(q, 'Switched Over') AS switched FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM many',
    'SELECT DISTINCT a FROM many ORDER BY a',
    'SELECT DISTINCT a FROM many ORDER BY a DESC',
    'SELECT DISTINCT a FROM many WHERE b = 3',
    'SELECT a, min(b), max(b) FROM many GROUP BY a',
    'SELECT s FROM many GROUP BY s ORDER BY s DESC',
    'SELECT count(DISTINCT a), sum(DISTINCT a), min(a), max(a) FROM many',
    'SELECT count(DISTINCT s), array_agg(DISTINCT s) FROM many',
    'SELECT DISTINCT t FROM many']) q;
SET enable_hashagg = off;
SELECT q, loose(q, q ~ 'ORDER'), loose_field(q, 'Switched Over') AS switched FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM many ORDER BY a',
    'SELECT DISTINCT ON (t) t, a FROM many ORDER BY t NULLS FIRST, a',
    'SELECT t, max(a) FROM many GROUP BY t']) q;
SET enable_indexonlyscan = off;
SELECT q, loose(q, q ~ 'ORDER'), loose_field(q, 'Switched Over') AS switched FROM unnest(ARRAY[
    'SELECT DISTINCT a FROM many ORDER BY a',
    'SELECT DISTINCT a FROM many ORDER BY a DESC',
    'SELECT DISTINCT ON (t) t, a FROM many ORDER BY t NULLS FIRST, a',
    'SELECT a, min(b), max(b) FROM many GROUP BY a',
    'SELECT s FROM many GROUP BY s ORDER BY s DESC',
    'SELECT count(DISTINCT a), sum(DISTINCT a), min(a), max(a) FROM many',
    'SELECT t, max(a) FROM many GROUP BY t']) q;
RESET enable_indexonlyscan;
SET enable_indexscan = off;
SELECT loose('SELECT DISTINCT a FROM l');
RESET enable_indexscan;
-- Groups end where leaves do, or a value of the list is not there, and the first rows of the next one are gone.
CREATE TABLE l_runs (a int, b int);
INSERT INTO l_runs SELECT a, b FROM generate_series(1, 9) a, generate_series(1, 5) b, generate_series(1, 1000 + a * 10);
CREATE INDEX l_runs_i ON l_runs USING :am (a, b);
VACUUM ANALYZE l_runs;
DELETE FROM l_runs WHERE ctid IN (SELECT ctid FROM (SELECT ctid, row_number() OVER (PARTITION BY a, b ORDER BY ctid) AS n,
    row_number() OVER (PARTITION BY a, b ORDER BY ctid DESC) AS last FROM l_runs) r WHERE least(n, last) <= 5);
CREATE FUNCTION loose_runs(conditions text, OUT queries bigint, OUT mostly_loose boolean, OUT wrong text) LANGUAGE sql AS $$
    SELECT count(*), count(*) FILTER (WHERE answer ~ '^loose, \d+ rows') > count(*) / 2, min(answer) FILTER (WHERE answer ~ 'WRONG')
      FROM generate_series(0, 8) x, generate_series(2, 10) y,
           (VALUES ('DISTINCT a, b', ''), ('DISTINCT ON (a) a, b', 'ORDER BY a DESC, b DESC'), ('a, min(b)', 'GROUP BY a'), ('a, max(b)', 'GROUP BY a'), ('a, min(b), max(b)', 'GROUP BY a')) q (what, grouped),
           loose(format('SELECT %s FROM l_runs WHERE %s %s', what, format(conditions, x, y), grouped)) answer
     WHERE x < y AND (x + y) % 3 = 0
$$;
SELECT c, r.* FROM unnest(ARRAY['a IN (%s, %s)', 'a IN (%s, 100, %s, 7)', 'a BETWEEN %s AND %s']) c, loose_runs(c) r;
DELETE FROM l_runs WHERE a IN (3, 4) OR (a = 7 AND b > 3);
VACUUM l_runs;
SELECT c, r.* FROM unnest(ARRAY['a IN (%s, 5, %s)', 'a BETWEEN %s AND %s']) c, loose_runs(c) r;
-- Of max() alone, the probe goes backward, and seeks once a group; not where that would lose an order.
SELECT loose_field(q, 'Seeks') < 20 AS few, loose(q) FROM unnest(ARRAY['SELECT a, max(b) FROM l WHERE b IS NOT NULL GROUP BY a', 'SELECT a, max(b) FROM l GROUP BY a',
    'SELECT a, max(b) FROM l GROUP BY a ORDER BY a', 'SELECT a, max(b), min(b) FROM l GROUP BY a']) q;
RESET enable_hashagg;
SELECT x, (SELECT count(*) FROM (SELECT DISTINCT a FROM many WHERE a > x) q) FROM unnest(ARRAY[4000, 10, 4990, 2000]) x;

-- Serializable transactions.  Planned before, and not served then: the other plan
PREPARE q AS SELECT count(*) FROM (SELECT DISTINCT a FROM l) x;
SET plan_cache_mode = force_generic_plan;
EXECUTE q;
SELECT loose_field('EXECUTE q', 'Seeks') > 10 AS seeks;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT loose('SELECT DISTINCT a FROM l');
COMMIT;
SET learnedbtree.enable = off;
SELECT loose_field('EXECUTE q', 'Seeks') AS seeks, loose_field('EXECUTE q', 'Switched Over') AS switched;
EXECUTE q;
RESET learnedbtree.enable;
RESET plan_cache_mode;

-- Not if switched off, nor by an index that is not served
SET learnedbtree.enable_loose_scan = off;
SELECT loose_field('SELECT DISTINCT a FROM l', 'Seeks'), loose_field('SELECT count(DISTINCT a) FROM l', 'Seeks');
RESET learnedbtree.enable_loose_scan;
SET learnedbtree.enable = off;
SELECT loose_field('SELECT DISTINCT a FROM l', 'Seeks');
RESET learnedbtree.enable;

-- The outer side of a nested loop that looks ahead
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT look_aheads(q), loose(q) FROM unnest(ARRAY[
    'SELECT d.a, d.b, m.t FROM (SELECT DISTINCT a, b FROM l) d JOIN many m ON m.a = d.b AND m.b = d.a',
    'SELECT a, b, (SELECT max(m.b) FROM many m WHERE m.a = d.b) FROM (SELECT DISTINCT a, b FROM l) d']) q;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- The plan; and one for a few rows, in both inputs
EXPLAIN (COSTS OFF) SELECT DISTINCT a, b FROM l LIMIT 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT a, min(b), max(b) FROM l WHERE a > 5 GROUP BY a;

DROP TABLE l, l_items, l_gone, l_most, l_copy, many, l_runs;
