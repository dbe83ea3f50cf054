-- "= ANY" and IN lists: any number of values, on one or several columns, in every plan and direction.
SELECT use_am() AS am \gset

CREATE TABLE arr (u int8, a int4, b int2, n int8, t text COLLATE "C", d date, z timestamptz, f float4, i uuid, o oid, y bool);
INSERT INTO arr SELECT g * 3, mix(g) % 50, mix(g * 7) % 20 - 10, CASE WHEN g % 11 > 0 THEN mix(g) % 500 END,
       'k' || mix(g) % 3000, date '2020-01-01' + g / 10, timestamptz '2020-01-01 00:00+00' + g * interval '1 hour',
       (g % 1000) / 8.0, md5((g % 2000)::text)::uuid, g % 777, g % 3 = 0
  FROM generate_series(1, 6000) g;
-- few keys to a leaf: many leaves, many borders
CREATE INDEX arr_u ON arr USING :am (u) WITH (fillfactor = 10);
CREATE INDEX arr_ab ON arr USING :am (a, b DESC) WITH (fillfactor = 10);
CREATE TABLE arm AS SELECT a, b, u FROM arr;
CREATE INDEX arm_abu ON arm USING :am (a DESC, b, u) WITH (fillfactor = 10);
CREATE INDEX arr_n ON arr USING :am (n DESC NULLS LAST) WITH (fillfactor = 10);
CREATE INDEX arr_t ON arr USING :am (t) WITH (fillfactor = 10);
CREATE INDEX arr_d ON arr USING :am (d);
CREATE INDEX arr_z ON arr USING :am (z);
CREATE INDEX arr_f ON arr USING :am (f);
CREATE INDEX arr_i ON arr USING :am (i);
CREATE INDEX arr_o ON arr USING :am (o);
CREATE INDEX arr_y ON arr USING :am (y);
VACUUM ANALYZE arr, arm;

-- one column
SELECT * FROM compare_all('arr_u', 'SELECT u, ctid FROM arr WHERE $1', ARRAY[
    'u IN (3, 300, 17997)', 'u = ANY (''{3}'')', 'u = ANY (''{4}'')', 'u IN (18000, 3)', 'u IN (18000, 18000, 18000)',
    'u IN (1, 2, 4, 5, 7)', 'u IN (-5, 0, 18001, 99999)', 'u IN (30, 27, 24, 21, 18, 15, 12)', 'u = ANY (''{30,NULL,33,NULL}'')',
    'u = ANY (''{-9223372036854775808,9223372036854775807,6,NULL}'')', 'u = ANY (ARRAY(SELECT generate_series(1, 18000)))',
    'u = ANY (ARRAY(SELECT g * 3 FROM generate_series(6000, 1, -1) g))', 'u = ANY (ARRAY(SELECT mix(g) % 20000 FROM generate_series(1, 500) g))',
    'u = ANY (ARRAY(SELECT mix(g) % 20000 FROM generate_series(1, 30000) g))', 'u = ANY (ARRAY[1, 3, 6]::int4[])', 'u = ANY (ARRAY[1, 3, 6]::int2[])']);
SELECT * FROM compare_all('arr_u', 'SELECT u, ctid FROM arr WHERE $1', ARRAY[
    'u = ANY (''{}'')', 'u = ANY (''{NULL}'')', 'u = ANY (''{NULL,NULL}'')', 'u = ANY (ARRAY(SELECT 1 WHERE false))',
    'u = ANY (ARRAY(SELECT NULL::int8 FROM generate_series(1, 10)))']);

-- several conditions on the column: nbtree's where one is a list
SELECT * FROM compare_all('arr_u', 'SELECT u, ctid FROM arr WHERE $1', ARRAY[
    'u = ANY (''{3,9,15,600}'') AND u = ANY (''{600,9,1}'')', 'u = ANY (''{3,9,15,600}'') AND u = 9', 'u = 9 AND u = ANY (''{600,9}'')',
    'u = ANY (''{3,9,15,600}'') AND u > 3 AND u < 600', 'u >= 9 AND u = ANY (''{3,9,15,600}'')', 'u <= 9 AND u > 3 AND u IN (3, 9, 15)',
    'u = ANY (''{3,9,15,600}'') AND u > 3 AND u = ANY (''{3,9,18}'') AND u < 1000', 'u = 9 AND u > 3']);
SELECT * FROM compare_all('arr_u', 'SELECT u, ctid FROM arr WHERE $1', ARRAY[
    'u = ANY (''{3,9,15,600}'') AND u = 12', 'u IN (3, 9) AND u = ANY (''{15,18}'')', 'u IN (3, 9) AND u > 9', 'u = 9 AND u > 9']);
-- not ours
SELECT * FROM compare_all('arr_u', 'SELECT u, ctid FROM arr WHERE $1', ARRAY['u < ANY (''{30,60}'')', 'u = ANY (''{30,60}'') AND u IS NOT NULL']);

-- several columns, ascending and descending
SELECT * FROM compare_all('arr_ab', 'SELECT a, b FROM arr WHERE $1', ARRAY[
    'a IN (3, 5, 8)', 'a IN (7, 3, 60, -1) AND b = 4', 'a = 7 AND b IN (1, 2, -3)', 'a IN (7, 3, 9) AND b IN (1, 2, -3, 4)',
    'a IN (7, 3, 9) AND b > 2', 'a IN (7, 3, 9) AND b BETWEEN -2 AND 2', 'a IN (7, 3) AND b IN (40000, 5, -40000)',
    'a IN (7, 3, 9) AND b IN (1, 2, 3) AND b < 3', 'a = ANY (''{7,3,9}'') AND a > 3 AND b IN (1, 2) AND b <= 2',
    'a IN (1, 2, 3, 4, 5, 6, 7, 8) AND b IN (-3, -2, -1, 0, 1, 2, 3)']);
SELECT * FROM compare_all('arm_abu', 'SELECT a, b, u FROM arm WHERE $1', ARRAY[
    'a IN (7, 3, 9) AND b IN (1, 2, -3) AND u < 9000', 'a IN (7, 3, 9) AND b IN (1, 2, -3) AND u >= 9000 AND u < 9600',
    'a = ANY (ARRAY(SELECT generate_series(0, 60))) AND b = ANY (ARRAY(SELECT generate_series(-20, 20))) AND u = ANY (ARRAY(SELECT generate_series(3, 18000, 210)))',
    'a IN (7, 3, 9) AND b = 2 AND u IN (3, 6, 9, 12000)', 'a IN (1, 2) AND b > 3']);
SELECT * FROM compare_all('arr_ab', 'SELECT a, b FROM arr WHERE $1', ARRAY['a IN (7, 3) AND b IS NULL']);
-- more combinations than are worth counting; up to 17 the server may leave out a list, and ours skip instead
SELECT compare('arm_abu', 'SELECT u FROM arm WHERE a = ANY (ARRAY(SELECT generate_series(1, 100000))) AND b = ANY (ARRAY(SELECT generate_series(-300, 29999))) AND u = 300', false) IN ('same, delegated', CASE WHEN current_setting('server_version_num')::int < 180000 THEN 'same, verified' END) AS same;

-- NULLs in the column
SELECT * FROM compare_all('arr_n', 'SELECT n FROM arr WHERE $1', ARRAY['n IN (3, 499, 0)', 'n = ANY (''{NULL,5}'')', 'n IN (1, 2, 3) AND n > 1',
    'n = ANY (ARRAY(SELECT generate_series(-1000, 1000)))']);

-- other types, and arguments of other types than the column's
SELECT compare('arr_t', 'SELECT t, ctid FROM arr WHERE t IN (''k5'', ''k50'', ''k1000'', ''zz'', '''')'),
       compare('arr_t', 'SELECT t, ctid FROM arr WHERE t = ANY (''{k5,k50,k1000}''::varchar[])'),
       compare('arr_t', 'SELECT t, ctid FROM arr WHERE t = ANY (ARRAY(SELECT ''k'' || g FROM generate_series(1, 4000) g)) AND t > ''k2'' AND t <= ''k30''', true);
SELECT compare('arr_d', 'SELECT d, ctid FROM arr WHERE d = ANY (''{2020-01-05,2020-03-01,infinity,1999-01-01,NULL}'')'),
       compare('arr_z', 'SELECT z, ctid FROM arr WHERE z = ANY (''{2020-01-05,2020-03-01}''::date[])'),
       compare('arr_z', 'SELECT z, ctid FROM arr WHERE z = ANY (''{2020-01-05 01:00+00,-infinity,2020-03-01 02:30+00}''::timestamptz[])'),
       compare('arr_f', 'SELECT f, ctid FROM arr WHERE f = ANY (''{0.125,0.1,3,NaN,1e300}''::float8[])'),
       compare('arr_f', 'SELECT f, ctid FROM arr WHERE f = ANY (''{0.125,-0,0,3,NaN}''::float4[])');
SELECT compare('arr_i', 'SELECT i, ctid FROM arr WHERE i = ANY (ARRAY(SELECT md5(g::text)::uuid FROM generate_series(1, 50) g))'),
       compare('arr_o', 'SELECT o, ctid FROM arr WHERE o IN (7, 700, 776, 4294967295)'),
       compare('arr_o', 'SELECT o, ctid FROM arr WHERE o = ANY (''{7,700}''::regclass[])'),
       compare('arr_y', 'SELECT y FROM arr WHERE y IN (true, false)');
CREATE DOMAIN small AS int4 CHECK (VALUE < 1000);
SELECT compare('arr_ab', 'SELECT a, b FROM arr WHERE a = ANY (ARRAY[5, 7, 300]::small[])');
DROP DOMAIN small;

-- keys that are encoded: equal by their comparison function, whatever they look like
CREATE TYPE arr_mood AS ENUM ('low', 'so so', 'high');
CREATE TABLE are AS SELECT (g % 700)::numeric / 10 AS n, ('10.0.' || g % 7 || '.' || g % 50)::inet AS i,
    (ARRAY['low', 'so so', 'high'])[1 + g % 3]::arr_mood AS m FROM generate_series(1, 4000) g;
CREATE INDEX are_n ON are USING :am (n DESC, m) WITH (fillfactor = 10);
CREATE INDEX are_i ON are USING :am (i) WITH (fillfactor = 10);
CREATE INDEX are_m ON are USING :am (m);
VACUUM ANALYZE are;
SELECT compare('are_n', 'SELECT n, m FROM are WHERE n IN (1.10, 1.1, 1.100, 69, 70, -1, ''NaN'', 2.05)'),
       compare('are_n', 'SELECT n, m FROM are WHERE n = ANY (ARRAY(SELECT g / 20.0 FROM generate_series(1, 2000) g)) AND m IN (''high'', ''low'')') LIKE 'same, %' AS same,
       compare('are_i', 'SELECT i, ctid FROM are WHERE i = ANY (''{10.0.1.1,10.0.3.24,10.0.3.24/31,::1}'')'),
       compare('are_m', 'SELECT m, ctid FROM are WHERE m IN (''so so'', ''low'')');
-- of a long list, no more memory than its values need, however long their encodings might be
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT n FROM are WHERE n = ANY (ARRAY(SELECT g::numeric FROM generate_series(1, 100000) g));
MOVE c;
SELECT sum(total_bytes) < 12000000 AS little FROM pg_backend_memory_contexts WHERE name = 'learnedbtree arrays';
COMMIT;
DROP TABLE are;
DROP TYPE arr_mood;

-- in order, in reverse, with LIMIT
SELECT compare('arr_u', 'SELECT u FROM arr WHERE u IN (900, 30, 3000, 31) ORDER BY u'),
       compare('arr_u', 'SELECT u FROM arr WHERE u IN (900, 30, 3000, 31) ORDER BY u DESC'),
       compare('arr_u', 'SELECT u FROM arr WHERE u = ANY (ARRAY(SELECT generate_series(1, 18000, 7))) ORDER BY u DESC'),
       compare('arr_u', 'SELECT u FROM arr WHERE u = ANY (ARRAY(SELECT generate_series(1, 18000))) ORDER BY u LIMIT 20 OFFSET 300'),
       compare('arr_u', 'SELECT u FROM arr WHERE u = ANY (ARRAY(SELECT generate_series(1, 18000))) ORDER BY u DESC LIMIT 20 OFFSET 300');
SELECT compare_walk('arr_u', 'SELECT u, ctid FROM arr WHERE u = ANY (ARRAY(SELECT generate_series(1, 18000, 2))) ORDER BY u'),
       compare_walk('arr_u', 'SELECT u, ctid FROM arr WHERE u = ANY (ARRAY(SELECT mix(g) % 18000 FROM generate_series(1, 4000) g)) ORDER BY u DESC'),
       compare_walk('arr_u', 'SELECT u FROM arr WHERE u = ANY (ARRAY(SELECT generate_series(1, 18000, 59))) ORDER BY u', 'only'),
       compare_walk('arr_ab', 'SELECT a FROM arr WHERE a = ANY (''{3,4,5,9,20,21,22,49,60}'') ORDER BY a'),
       compare_walk('arr_ab', 'SELECT a FROM arr WHERE a = ANY (''{3,4,5,9,20,21,22,49,60}'') ORDER BY a DESC', 'only');

-- a cursor by hand: over both ends, from one value's rows to the next one's and back
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT u FROM arr WHERE u IN (6, 3, 9000, 17, 18000) ORDER BY u;
FETCH 2 FROM c;
FETCH BACKWARD 5 FROM c;
FETCH 3 FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
FETCH FORWARD 5 FROM c;
FETCH BACKWARD ALL FROM c;
FETCH FIRST FROM c;
COMMIT;

-- rescans with other arrays, in line and out of line, empty, NULL
CREATE TABLE lists (id int, l int8[]);
INSERT INTO lists VALUES (1, '{3,6,18000}'), (2, '{}'), (3, NULL), (4, '{NULL}'), (5, '{900}'), (6, '{5}');
INSERT INTO lists SELECT 6 + g, ARRAY(SELECT mix(g * 1000 + i) % 20000 FROM generate_series(1, g * g) i) FROM generate_series(1, 30) g;
INSERT INTO lists SELECT 100, array_agg(g) FROM generate_series(18000, 1, -9) g;
ANALYZE lists;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
RESET enable_seqscan;
SELECT compare('arr_u', 'SELECT id, u, arr.ctid FROM lists, arr WHERE u = ANY (l) AND (id < 10 OR id % 5 = 0)', false),
       compare('arr_u', 'SELECT id, (SELECT count(*) FROM arr WHERE u = ANY (l) AND u > id * 20) FROM lists WHERE id < 10 OR id % 5 = 0', false),
       compare('arr_u', 'SELECT id, (SELECT array_agg(u) FROM (SELECT u FROM arr WHERE u = ANY (l) ORDER BY u DESC LIMIT 3) q) FROM lists WHERE id < 10 OR id % 5 = 0', false);

-- marked and restored by a merge join, on both sides
CREATE FUNCTION merged(query text) RETURNS text LANGUAGE plpgsql SET enable_nestloop = off SET enable_hashjoin = off
    SET enable_mergejoin = on SET enable_sort = off SET enable_material = off SET enable_bitmapscan = off AS $$
DECLARE
    plan text;
    learned text;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
    learned := answers(query);
    PERFORM set_config('learnedbtree.enable', 'off', true);
    RETURN concat_ws(', ', CASE WHEN plan ~ 'Merge Join' AND plan !~ 'Sort|Material' THEN 'merged' ELSE plan END,
                     CASE WHEN learned = answers(query) THEN 'same' ELSE 'WRONG' END);
END $$;
SELECT merged('SELECT x.b, y.b FROM arr x JOIN arr y ON x.a = y.a WHERE x.a = ANY (''{3,5,6,30,39,44}'') AND y.a = ANY (''{1,3,4,5,6,39,44,45}'')'),
       merged('SELECT x.u, y.n FROM arr x JOIN arr y ON x.n = y.n WHERE x.n = ANY (ARRAY(SELECT generate_series(1, 400, 3))) AND y.n = ANY (ARRAY(SELECT generate_series(-5, 400, 2)))');
DROP FUNCTION merged;
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET enable_bitmapscan;

-- arrays of every kind against a plain sorted join, the index growing meanwhile; other ones for each access method
SELECT CASE :'am' WHEN 'btree' THEN 100 ELSE 0 END AS seed \gset
CREATE FUNCTION array_torture(seed int, rounds int) RETURNS text LANGUAGE plpgsql SET enable_seqscan = on AS $$
DECLARE
    x bigint := seed;
    list int8[];
    oracle int8[];
    got int8[];
    way text;
BEGIN
    FOR r IN 1..rounds LOOP
        x := (x * 1103515245 + 12345) % 2147483648;
        -- dense, or spread, or both; from few values to many
        list := ARRAY(SELECT CASE (x / 8) % 3 WHEN 0 THEN (x / 64) % 18000 + g WHEN 1 THEN mix(x + g) % 19000
                                  ELSE CASE WHEN g % 5 > 0 THEN (x / 64) % 18000 + g / 3 ELSE mix(x + g) % 19000 END END
                        FROM generate_series(1, 1 + ((x / 512) % (CASE x % 4 WHEN 0 THEN 3 WHEN 1 THEN 30 WHEN 2 THEN 300 ELSE 3000 END))::int) g);
        PERFORM use_access('seq');
        SELECT array_agg(u ORDER BY u) INTO oracle FROM arr WHERE u IN (SELECT unnest(list));
        FOREACH way IN ARRAY ARRAY['index', 'only', 'bitmap'] LOOP
            PERFORM use_access(way);
            EXECUTE 'SELECT array_agg(u' || CASE way WHEN 'bitmap' THEN ' ORDER BY u' ELSE '' END || ') FROM (SELECT u FROM arr WHERE u = ANY ($1)'
                    || CASE way WHEN 'bitmap' THEN '' ELSE ' ORDER BY u' END || ') q' INTO got USING list;
            IF got IS DISTINCT FROM oracle THEN
                RETURN format('WRONG by %s: %s of %s for %s', way, cardinality(got), cardinality(oracle), list);
            END IF;
            CONTINUE WHEN way = 'bitmap';
            EXECUTE 'SELECT array_agg(u) FROM (SELECT u FROM arr WHERE u = ANY ($1) ORDER BY u DESC) q' INTO got USING list;
            IF got IS DISTINCT FROM (SELECT array_agg(v ORDER BY v DESC) FROM unnest(oracle) v) THEN
                RETURN format('WRONG backward by %s: %s of %s for %s', way, cardinality(got), cardinality(oracle), list);
            END IF;
        END LOOP;
    END LOOP;
    RETURN 'right';
END $$;
SELECT learnedbtree_stat_reset('arr_u');
SELECT array_torture(:seed + 1, 15);
INSERT INTO arr (u) SELECT mix(g) % 18000 FROM generate_series(1, 3000) g;
SELECT array_torture(:seed + 2, 10);
-- dead entries are marked, and looked over
DELETE FROM arr WHERE u % 7 < 3;
SELECT array_torture(:seed + 3, 10);
SELECT array_torture(:seed + 3, 10);
VACUUM arr;
SELECT array_torture(:seed + 4, 10);
INSERT INTO arr (u) SELECT 9000 + g % 5 FROM generate_series(1, 3000) g;
SELECT array_torture(:seed + 5, 10), sound('arr_u');
SELECT verified > 1000 AS predicted, delegated FROM learnedbtree_stat WHERE indexrelname = 'arr_u';

-- an empty index, and one whose first rows come later
CREATE TABLE arr_empty (k int8);
CREATE INDEX arr_empty_k ON arr_empty USING :am (k);
SET enable_seqscan = off;
SELECT count(*) FROM arr_empty WHERE k IN (1, 2, 3);
INSERT INTO arr_empty SELECT generate_series(1, 3);
SELECT array_agg(k) FROM (SELECT k FROM arr_empty WHERE k IN (3, 2, 7, 1) ORDER BY k DESC) q;
-- temporary: no model
CREATE TEMP TABLE arr_temp AS SELECT g AS k FROM generate_series(1, 5000) g;
CREATE INDEX arr_temp_k ON arr_temp USING :am (k);
SELECT array_agg(k) FROM (SELECT k FROM arr_temp WHERE k IN (3, 4999, 7, 1) ORDER BY k) q;

-- far more combinations than tuples: those between two tuples are passed over
CREATE TABLE arr_dense AS SELECT g % 100 * 50 AS a, g * 7 % 5000 AS b, g % 13 AS c FROM generate_series(1, 10000) g;
INSERT INTO arr_dense VALUES (NULL, 5, 1), (50, NULL, 2), (7, 7, NULL);
CREATE INDEX arr_dense_1 ON arr_dense USING :am (a, b, c);
ANALYZE arr_dense;
SELECT compare('arr_dense_1', $$SELECT a, b FROM arr_dense WHERE a = ANY (ARRAY(SELECT generate_series(-50, 6000, 10))) AND b = ANY (ARRAY(SELECT generate_series(1, 5000, 10)))$$),
       compare('arr_dense_1', $$SELECT a, b, c FROM arr_dense WHERE a = ANY (ARRAY(SELECT generate_series(1, 5000))) AND b = 700 AND c > 5$$),
       compare('arr_dense_1', $$SELECT a, b FROM (SELECT a, b FROM arr_dense WHERE a = ANY (ARRAY(SELECT generate_series(0, 5000, 10))) AND b = ANY (ARRAY(SELECT generate_series(1, 5000, 9))) ORDER BY a DESC, b DESC, c DESC LIMIT 900) q$$);
SELECT lookups < 2000 AS few, verified > 0 AS predicted FROM learnedbtree_stat WHERE indexrelname = 'arr_dense_1';
DROP INDEX arr_dense_1;
CREATE INDEX arr_dense_2 ON arr_dense USING :am (c, a DESC NULLS LAST, b);
SELECT compare('arr_dense_2', $$SELECT a, b FROM arr_dense WHERE c = 7 AND a = ANY (ARRAY(SELECT generate_series(0, 5000, 10))) AND b = ANY (ARRAY(SELECT generate_series(1, 5000, 10)))$$),
       compare('arr_dense_2', $$SELECT a, b FROM arr_dense WHERE c IN (1, 3, 5, 70) AND a = ANY (ARRAY(SELECT generate_series(0, 5000, 10))) AND b = ANY (ARRAY(SELECT generate_series(1, 5000, 20)))$$);
SELECT lookups < 2000 AS few, verified > 0 AS predicted FROM learnedbtree_stat WHERE indexrelname = 'arr_dense_2';
DROP TABLE arr_dense;

DROP TABLE arr, arm, arr_empty, arr_temp, lists;
DROP FUNCTION array_torture;
