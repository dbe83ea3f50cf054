-- Row comparisons, scans without keys, IS NULL and IS NOT NULL, by our own engine: the same as by btree's and by a
-- sequential scan.  On served btree indexes, for which every version makes conditions of row comparisons.

\set VERBOSITY terse
\set SHOW_CONTEXT never
SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;

CREATE FUNCTION ks_mix(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT mix(i % 99991)';

-- A key of this type from an integer; one in ten is NULL.
CREATE FUNCTION ks_key(type text, i bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN i % 10 = 3 THEN NULL
                WHEN type = 'uuid' THEN md5(i::text)
                WHEN type = 'text' THEN 'key ' || repeat('x', (i % 3)::int) || i
                WHEN type = 'numeric' THEN round(i * 1.37 - 100, 2)::text
                WHEN type = 'float8' THEN CASE i % 10 WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE (i / 7.0)::text END
                ELSE (i - 50)::text END
$$;

-- The table: types of its key columns, how many different keys each has, the index's columns with their order.  The model is
-- of a part of the rows; then leaves are split and emptied.
CREATE FUNCTION ks_make(types text[], kinds int[], definition text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    columns text := (SELECT string_agg(format('k%s %s', o, CASE t WHEN 'text' THEN 'text COLLATE "C"' ELSE t END), ', ' ORDER BY o) FROM unnest(types) WITH ORDINALITY u (t, o));
    keys text := (SELECT string_agg(format('ks_key(%L, ks_mix(i * 3 + %s) %% %s)::%s', t, o, n, t), ', ' ORDER BY o)
                    FROM unnest(types, kinds) WITH ORDINALITY u (t, n, o));
BEGIN
    EXECUTE format('CREATE TABLE ks (%s, pad int)', columns);
    EXECUTE format('CREATE INDEX ks_i ON ks (%s) WITH (fillfactor = 20)', definition);
    EXECUTE format('INSERT INTO ks SELECT %s, i FROM generate_series(1, 3000) i', keys);
    PERFORM learnedbtree_train('ks_i');
    EXECUTE format('INSERT INTO ks SELECT %s, i FROM generate_series(3001, 4500) i', keys);
    DELETE FROM ks WHERE pad % 9 = 0 OR pad BETWEEN 500 AND 700;
    ANALYZE ks;
END $$;

-- A value for the column, mostly one that it has; of another type now and then.  With sure it is not NULL.
CREATE FUNCTION ks_value(types text[], kinds int[], nr int, i bigint, sure boolean) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN types[nr] = 'int4' AND i % 13 = 5 THEN CASE i % 2 WHEN 0 THEN '1099511627776' ELSE '-1099511627776' END || '::int8'
                WHEN NOT sure AND key IS NULL THEN 'NULL::' || types[nr]
                ELSE quote_literal(coalesce(key, ks_key(types[nr], 5))) || '::' ||
                     CASE WHEN types[nr] = 'int4' THEN (ARRAY['int4', 'int2', 'int8'])[i % 3 + 1]
                          WHEN types[nr] = 'float8' AND i % 3 = 0 THEN 'float4' ELSE types[nr] END END
      FROM ks_key(types[nr], i % (kinds[nr] + 3)) key
$$;

-- (k1, k2) < (x, y): members of the index's columns from one on.
CREATE FUNCTION ks_row(types text[], kinds int[], first int, members int, operator text, i bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('(%s) %s (%s)', string_agg('k' || nr, ', ' ORDER BY nr), operator,
                  string_agg(ks_value(types, kinds, nr, ks_mix(i + nr), nr = first), ', ' ORDER BY nr))
      FROM generate_series(first, first + members - 1) nr
$$;

-- The i-th condition of a kind.
CREATE FUNCTION ks_condition(types text[], kinds int[], kind text, i bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n int := array_length(types, 1);
    first int := CASE WHEN kind ~ 'below' THEN 2 ELSE 1 END;
    members int := 2 + (ks_mix(i + 5) % (n - first))::int;
    equal text := 'k1 = ' || ks_value(types, kinds, 1, ks_mix(i + 6), true) || ' AND ';
    one text := ks_value(types, kinds, 1, ks_mix(i + 7), true);
    two text := ks_value(types, kinds, n, ks_mix(i + 8), true);
BEGIN
    CASE kind
        WHEN 'row' THEN
            RETURN ks_row(types, kinds, 1, members, (ARRAY['<', '<=', '>', '>='])[i % 4 + 1], i);
        WHEN 'rows' THEN
            RETURN ks_row(types, kinds, 1, members, (ARRAY['>', '>='])[i % 2 + 1], i) || ' AND ' ||
                   ks_row(types, kinds, 1, 2, (ARRAY['<', '<=', '>'])[i % 3 + 1], i + 1);
        WHEN 'row and key' THEN
            RETURN ks_row(types, kinds, 1, members, (ARRAY['<', '<=', '>', '>='])[i % 4 + 1], i) || ' AND k1 ' ||
                   (ARRAY['<', '<=', '>', '>='])[ks_mix(i) % 4 + 1] || ' ' || one;
        WHEN 'row below' THEN
            RETURN CASE i % 4 WHEN 0 THEN 'k1 IS NULL AND '
                              WHEN 1 THEN format('k1 IN (%s, %s) AND ', one, ks_value(types, kinds, 1, ks_mix(i + 9), true))
                              ELSE equal END ||
                   ks_row(types, kinds, 2, members, (ARRAY['<', '<=', '>', '>='])[ks_mix(i) % 4 + 1], i);
        WHEN 'nulls' THEN
            RETURN CASE i % 9
                WHEN 0 THEN 'k1 IS NULL' WHEN 1 THEN 'k1 IS NOT NULL' WHEN 2 THEN equal || 'k2 IS NULL'
                WHEN 3 THEN equal || 'k2 IS NOT NULL' WHEN 4 THEN 'k1 IS NOT NULL AND k1 > ' || one
                WHEN 5 THEN 'k1 IS NULL AND k1 <= ' || one WHEN 6 THEN 'k1 IS NULL AND k1 IS NOT NULL'
                WHEN 7 THEN 'k1 IS NULL AND k2 IS NOT NULL' ELSE 'k1 IS NULL AND k2 IS NULL' END;
        WHEN 'none' THEN
            RETURN 'true';
    END CASE;
END $$;

-- Conditions of every kind with each end of the order, with and without LIMIT; by outcome.
CREATE FUNCTION ks_try(types text[], kinds int[], definition text, backward text, tries int DEFAULT 9)
    RETURNS TABLE (kind text, queries bigint, served text, wrong text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ks_make(types, kinds, definition);
    RETURN QUERY
      WITH condition AS MATERIALIZED (
        SELECT k, i, ks_condition(types, kinds, k, ks_mix(i * 11 + o)) AS c, CASE WHEN i % 2 = 0 THEN definition ELSE backward END AS sorted
          FROM unnest(ARRAY['row', 'rows', 'row and key', 'row below', 'nulls', 'none']) WITH ORDINALITY u (k, o), generate_series(1, tries) i
         WHERE array_length(types, 1) > 2 OR k <> 'row below'),
      done AS MATERIALIZED (
        SELECT k, compare('ks_i', format('SELECT %s FROM ks WHERE %s ORDER BY %s%s',
                                         (SELECT string_agg('k' || nr, ', ' ORDER BY nr) FROM generate_series(1, array_length(types, 1)) nr) ||
                                         CASE WHEN i % 6 = 0 THEN ', ctid' ELSE '' END,
                                         c, sorted, CASE i % 3 WHEN 1 THEN ' LIMIT 1' WHEN 2 THEN ' LIMIT 20' ELSE '' END)) AS r, c
          FROM condition)
      SELECT k, count(*),
             CASE WHEN bool_and(r ~ '^same, (verified|fallback|no lookup)$') THEN 'by our engine'
                  WHEN bool_and(r ~ '^same, (delegated|no lookup)$') THEN 'by btree''s' ELSE 'by both' END ||
             CASE WHEN bool_or(r ~ 'verified') THEN ', predicted' ELSE '' END,
             string_agg(c || ': ' || r, '; ') FILTER (WHERE r !~ '^same')
        FROM done GROUP BY k ORDER BY k COLLATE "C";
    DROP TABLE ks;
END $$;

SELECT * FROM ks_try('{int4,int4}', '{40,60}', 'k1, k2', 'k1 DESC, k2 DESC');
SELECT * FROM ks_try('{int4,int4}', '{40,60}', 'k1 DESC, k2 DESC', 'k1, k2');
SELECT * FROM ks_try('{int4,int4,int4}', '{9,9,40}', 'k1 NULLS FIRST, k2, k3 NULLS FIRST', 'k1 DESC NULLS LAST, k2 DESC, k3 DESC NULLS LAST', 15);
SELECT * FROM ks_try('{int4,int4,int4}', '{9,9,40}', 'k1 DESC, k2 DESC NULLS LAST, k3 DESC', 'k1, k2 NULLS FIRST, k3', 15);
SELECT * FROM ks_try('{text,uuid}', '{50,1000}', 'k1, k2', 'k1 DESC, k2 DESC');
SELECT * FROM ks_try('{uuid,text}', '{9,1000}', 'k1 DESC, k2 DESC NULLS LAST', 'k1, k2 NULLS FIRST');
SELECT * FROM ks_try('{numeric,int4}', '{90,90}', 'k1, k2 NULLS FIRST', 'k1 DESC, k2 DESC NULLS LAST');
SELECT * FROM ks_try('{float8,text,numeric}', '{30,30,30}', 'k1, k2, k3', 'k1 DESC, k2 DESC, k3 DESC');
-- the columns do not go one way: an interval only where a NULL decides before the second one
SELECT * FROM ks_try('{int4,int4}', '{40,60}', 'k1, k2 DESC', 'k1 DESC, k2');

-- What is no interval, or not of the first columns that have codes; what the planner makes a key of fewer columns of;
-- members that are NULL; another type's values.
SELECT ks_make('{int4,int4,int4}', '{40,9,60}', 'k1, k2, k3');
SELECT c, compare('ks_i', 'SELECT k1, k2, k3 FROM ks WHERE ' || c)
  FROM unnest(ARRAY['true ORDER BY k1, k2, k3', 'k1 IS NULL', 'k1 = -20 AND k2 IS NOT NULL', 'k1 > -20 AND k2 IS NULL', '(k1, k3) > (-20, 4)', '(k1, k3, k2) > (-20, 4, -43)', '(k2, k3) > (-44, 4)', '(k1, k1) > (-20, 4)', '(k1, pad) > (-20, 4)',
                    '(k1, k2, pad) < (-20, -44, 6)', 'k1 = -20 AND (k2, k3, pad) < (-44, 0, 6)', '(k1, k2) > (-20, NULL)', '(k1, k2) >= (-20, NULL)',
                    '(k1, k2) < (-20, NULL)', '(k1, k2) <= (-20, NULL)', '(k1, k2) <= (2147483648, 1)', '(k1, k2) > (-2147483649, 1)',
                    '(k1, k2) < (-20, 2147483648)', '(k1, k2) <= (-20, -2147483649)', '(k1, k2) > (-20, -44) AND k2 > -44',
                    'k1 > -25 AND (k1, k2) < (-20, -44) AND (k1, k2) < (-21, -45) AND k1 IS NOT NULL',
                    '(k1, k2) > (-20, -44) AND (k1, k2, k3) > (-20, -44, 3) AND (k1, k2) <= (-20, -43)', 'k1 = -20 AND (k1, k2) > (-20, -44)',
                    '(k1, k2) > (-20, -44) AND (k1, k2) < (-20, -44)', 'k1 = -20 AND (k1, k2) > (-20, -44) AND k2 < -41', '(-20, -44) < (k1, k2)']) c;
-- a row that begins with NULL: without btree's engine, whose assertions some versions fail
SET enable_seqscan = off;
SELECT count(*) FROM ks WHERE (k1, k2) > (NULL::int, -44);
PREPARE ks_page(int, int) AS SELECT k1, k2, k3 FROM ks WHERE (k1, k2) > ($1, $2) ORDER BY k1, k2, k3 LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE ks_page(-20, -44);
EXECUTE ks_page(-20, NULL);
EXECUTE ks_page(NULL, -44);
EXECUTE ks_page(-21, -44);
RESET plan_cache_mode;

-- to and fro
CREATE FUNCTION ks_walks(condition text, sorted text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(compare_walk('ks_i', format('SELECT k1, k2, k3 FROM ks WHERE %s ORDER BY %s', condition, sorted), way), '; ')
      FROM unnest(ARRAY['index', 'only']) way
$$;
SELECT c, ks_walks(c, 'k1, k2, k3') AS forward, ks_walks(c, 'k1 DESC, k2 DESC, k3 DESC') AS backward
  FROM unnest(ARRAY['true', '(k1, k2) > (-20, -44)', '(k1, k2, k3) < (-20, -44, 3)', '(k1, k2) > (-25, -44) AND (k1, k2) <= (-20, -44)',
                    'k1 IS NOT NULL', 'k1 IS NULL', 'k1 IN (-20, -15) AND (k2, k3) >= (-46, 3)']) c;

-- ends
RESET enable_seqscan;
SELECT compare('ks_i', 'SELECT min(k1), max(k1) FROM ks'), compare('ks_i', 'SELECT min(k2), max(k2) FROM ks WHERE k1 = -20'),
       compare('ks_i', 'SELECT k1, k2, k3 FROM ks ORDER BY k1, k2, k3 LIMIT 1'), compare('ks_i', 'SELECT k1, k2, k3 FROM ks ORDER BY k1 DESC, k2 DESC, k3 DESC LIMIT 1');

-- grown at the right end, beyond what the model knows (or it is trained meanwhile): found once, the end is remembered
CREATE TABLE ks3 (k int PRIMARY KEY);
INSERT INTO ks3 SELECT generate_series(1, 20000);
ANALYZE ks3;
SELECT learnedbtree_train('ks3_pkey');
INSERT INTO ks3 SELECT generate_series(20001, 24000);
SELECT max(k) FROM ks3;
SELECT learnedbtree_stat_reset('ks3_pkey');
SELECT max(k) FROM ks3;
SELECT k FROM ks3 ORDER BY k DESC LIMIT 2;
SELECT min(k) FROM ks3;
SELECT lookups, verified FROM learnedbtree_stat WHERE indexrelname = 'ks3_pkey';
DROP TABLE ks3;

-- joins of two whole indexes, with marks; many rows with equal keys
CREATE TABLE ks2 AS SELECT k1, k2, pad % 50 AS x FROM ks WHERE pad % 3 = 0;
CREATE INDEX ks2_i ON ks2 (k1, k2);
ANALYZE ks2;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SET enable_sort = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(hashint4extended(a.pad * 50 + b.x, 1)) FROM ks a JOIN ks2 b USING (k1, k2);
SELECT learnedbtree_stat_reset('ks_i'), learnedbtree_stat_reset('ks2_i');
SELECT count(*), sum(hashint4extended(a.pad * 50 + b.x, 1)) FROM ks a JOIN ks2 b USING (k1, k2);
SELECT sum(lookups) > 0 AS looked_up, sum(delegated) AS delegated FROM learnedbtree_stat WHERE indexrelname IN ('ks_i', 'ks2_i');
SET learnedbtree.enable = off;
SELECT count(*), sum(hashint4extended(a.pad * 50 + b.x, 1)) FROM ks a JOIN ks2 b USING (k1, k2);
RESET learnedbtree.enable;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
RESET enable_sort;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- emptied, and filled again at both ends
DELETE FROM ks WHERE k1 < 0 OR k1 IS NULL;
VACUUM ks;
SELECT c, left(compare('ks_i', 'SELECT k1, k2, k3 FROM ks WHERE ' || c || ' ORDER BY k1, k2, k3 LIMIT 9'), 4)
  FROM unnest(ARRAY['true', 'k1 IS NULL', 'k1 IS NOT NULL', '(k1, k2) > (-20, -44)']) c;
INSERT INTO ks SELECT v, i % 7, i, i FROM unnest(ARRAY[-1000000, 1000000, NULL]) v, generate_series(1, 2000) i;
ANALYZE ks;
SELECT c, left(compare('ks_i', 'SELECT k1, k2, k3 FROM ks WHERE ' || c || ' ORDER BY ' || o || ' LIMIT 400'), 4)
  FROM unnest(ARRAY['true', 'k1 IS NULL', 'k1 IS NOT NULL', '(k1, k2) > (999999, 3)', '(k1, k2) < (-999999, 3)', '(k1, k2, k3) > (1000000, 4, 900)']) c,
       unnest(ARRAY['k1, k2, k3', 'k1 DESC, k2 DESC, k3 DESC']) o;
TRUNCATE ks;
SELECT c, left(compare('ks_i', 'SELECT k1, k2, k3 FROM ks WHERE ' || c || ' ORDER BY k1 DESC, k2 DESC, k3 DESC'), 4)
  FROM unnest(ARRAY['true', 'k1 IS NULL', '(k1, k2) > (999999, 3)']) c;
DROP TABLE ks, ks2;

-- a column without a code behind one that has one
CREATE TABLE ks (k1 int, k2 int[]);
INSERT INTO ks SELECT ks_mix(i) % 50, ARRAY[i % 9] FROM generate_series(1, 3000) i;
CREATE INDEX ks_i ON ks (k1, k2);
ANALYZE ks;
SELECT c, compare('ks_i', 'SELECT k1, k2 FROM ks WHERE ' || c)
  FROM unnest(ARRAY['(k1, k2) > (20, ARRAY[3])', 'k1 = 20 AND k2 IS NOT NULL', 'k1 IS NOT NULL AND k1 < 20']) c;
SELECT compare('ks_i', 'SELECT k1, k2 FROM ks ORDER BY k1 DESC, k2 DESC LIMIT 80');
DROP TABLE ks;
DROP FUNCTION ks_mix, ks_key, ks_make, ks_value, ks_row, ks_condition, ks_try, ks_walks;
