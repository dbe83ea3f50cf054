-- Equality and every combination of inequalities, over unique and repeated keys, on one and two columns.
SELECT use_am() AS am \gset

CREATE TABLE rng (u int, d int, e int);
INSERT INTO rng SELECT i, mix(i) % 400, mix(i * 3) % 50 FROM generate_series(1, 20000) i;
CREATE INDEX rng_u ON rng USING :am (u);
CREATE INDEX rng_d ON rng USING :am (d);
ANALYZE rng;
SELECT relname, sound(oid) FROM pg_class WHERE relname LIKE 'rng\_%' ORDER BY 1;

-- how many leaves each spans, so that ranges cross many
SELECT relname, (learnedbtree_model(oid)).leaves > 15 AS many FROM pg_class WHERE relname LIKE 'rng\_%' ORDER BY 1;

-- equality: each key found, absent ones not
SELECT compare('rng_u', 'SELECT u FROM rng WHERE u = ' || i) AS outcome, count(*) FROM generate_series(-5, 20010, 501) i GROUP BY 1;
SELECT compare('rng_d', 'SELECT u FROM rng WHERE d = ' || i) AS outcome, count(*) FROM generate_series(-3, 403, 29) i GROUP BY 1;

-- all pairs of inequalities, in both orders, inside, at and beyond the ends
CREATE FUNCTION pairs(col text, vals int[]) RETURNS text[] LANGUAGE sql AS $$
    SELECT array_agg(format('%s %s %s AND %s %s %s', col, o1, a, col, o2, b) ORDER BY a, b, o1, o2)
      FROM unnest(vals) a, unnest(vals) b, unnest(ARRAY['>', '>=']) o1, unnest(ARRAY['<', '<=']) o2
$$;
SELECT outcome, queries FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', pairs('u', ARRAY[-1, 1, 366, 367, 20001]));
SELECT outcome, queries FROM compare_all('rng_d', 'SELECT d, u FROM rng WHERE $1', pairs('d', ARRAY[0, 7, 8, 400]));
SELECT left(compare('rng_u', 'SELECT u FROM rng WHERE u ' || o || ' ' || v), 14) AS outcome, count(*)
  FROM unnest(ARRAY['<', '<=', '>=', '>', '=']) o, unnest(ARRAY[-2147483648, -1, 0, 1, 2, 5000, 19999, 20000, 20001, 2147483647]) v
 GROUP BY 1;

-- the second column, after an equality on the first
DROP INDEX rng_d;
CREATE INDEX rng_de ON rng USING :am (d, e);
SELECT outcome, queries FROM compare_all('rng_de', 'SELECT d, e FROM rng WHERE d = 17 AND $1', pairs('e', ARRAY[-1, 20, 49]));
SELECT outcome, queries FROM compare_all('rng_de', 'SELECT d, e FROM rng WHERE $1', ARRAY['d = 17 AND e = 20', 'd = 399 AND e = 49', 'd = 0', 'd = 500 AND e = 1', 'd = 17 AND e = 70']);
DROP INDEX rng_de;
CREATE INDEX rng_dd ON rng USING :am (d DESC, e DESC);
SELECT outcome, queries FROM compare_all('rng_dd', 'SELECT d, e FROM rng WHERE d = 17 AND $1', pairs('e', ARRAY[-1, 20, 49]));
SELECT outcome, queries FROM compare_all('rng_dd', 'SELECT d, e FROM rng WHERE $1', pairs('d', ARRAY[0, 20, 399]));
DROP INDEX rng_dd;
CREATE INDEX rng_mix ON rng USING :am (d DESC, e ASC);
SELECT outcome, queries FROM compare_all('rng_mix', 'SELECT d, e FROM rng WHERE d = 17 AND $1', pairs('e', ARRAY[-1, 20, 49]));

-- several bounds on one side: the narrowest counts
SELECT * FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', ARRAY[
    'u > 10 AND u > 50 AND u >= 51 AND u < 60', 'u < 60 AND u <= 59 AND u < 59 AND u > 50', 'u >= 10 AND u > 10 AND u <= 20 AND u < 20']);

-- what contradicts itself touches no page
SELECT * FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', ARRAY['u > 5 AND u < 5', 'u >= 6 AND u <= 5', 'u > 5 AND u <= 5', 'u BETWEEN 9 AND 2']);
-- gaps in the columns are nbtree's
SELECT * FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', ARRAY['u = 5 AND u < 9', 'u IN (3, 5, 77, 12000)', 'u IS NULL', 'u = ANY (ARRAY[1, NULL, 3])']);
SELECT * FROM compare_all('rng_mix', 'SELECT d, e FROM rng WHERE $1', ARRAY['d > 390 AND e = 7', 'd IN (3, 5) AND e < 4']);

-- in order, in reverse, with LIMIT and OFFSET
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SELECT u FROM rng WHERE u > 730 ORDER BY u LIMIT 4;
SELECT u FROM rng WHERE u < 735 ORDER BY u DESC LIMIT 4;
SELECT u FROM rng WHERE u >= 10 AND u < 20000 ORDER BY u DESC OFFSET 3000 LIMIT 3;
SELECT u FROM rng WHERE u BETWEEN 300 AND 1500 ORDER BY u OFFSET 1198 LIMIT 5;
SELECT max(u), min(u) FROM rng WHERE u < 9000 AND u > 100;
RESET enable_sort;
SELECT count(*), sum(u) FROM (SELECT u FROM rng WHERE u BETWEEN 1000 AND 19000 ORDER BY u) s;
SELECT count(*), sum(u) FROM (SELECT u FROM rng WHERE u BETWEEN 1000 AND 19000 ORDER BY u DESC) s;
SELECT bool_and(u = before - 1) FROM (SELECT u, lag(u) OVER (ORDER BY u DESC) AS before FROM rng WHERE u BETWEEN 1000 AND 19000) s;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- the same through the spline alone, and without hints on buffers
SET learnedbtree.enable_leaf_cache = off;
SELECT left(outcome, 4) AS outcome, sum(queries) FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', pairs('u', ARRAY[0, 367, 20000])) GROUP BY 1;
SELECT verified > 0 AS verified FROM learnedbtree_stat WHERE indexrelname = 'rng_u';
SET learnedbtree.enable_buffer_hint = off;
SELECT left(outcome, 4) AS outcome, sum(queries) FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', pairs('u', ARRAY[0, 367, 20000])) GROUP BY 1;
RESET learnedbtree.enable_leaf_cache;
SELECT outcome, queries FROM compare_all('rng_u', 'SELECT u FROM rng WHERE $1', pairs('u', ARRAY[0, 367, 20000]));
RESET learnedbtree.enable_buffer_hint;
DROP TABLE rng;
DROP FUNCTION pairs;
