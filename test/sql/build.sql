-- Every kind of index that btree can build; each is searched through its model where it can have one.
SELECT use_am() AS am \gset

CREATE TABLE bld (a int, b bigint, c text[], d date, f float8);
INSERT INTO bld SELECT mix(i) % 5000, mix(i + 1), ARRAY['text ' || i], date '2000-01-01' + (i % 3000), i / 7.0
  FROM generate_series(1, 20000) i;
INSERT INTO bld SELECT NULL, i, NULL, NULL, 'NaN' FROM generate_series(1, 500) i;
ANALYZE bld;

-- several columns
CREATE INDEX bld_ab ON bld USING :am (a, b);
SELECT state FROM learnedbtree_model('bld_ab');
SELECT * FROM compare_all('bld_ab', 'SELECT a, b FROM bld WHERE $1', ARRAY[
    'a = 17', 'a = 17 AND b > 1000000000', 'a = 17 AND b BETWEEN 1000000000 AND 2000000000', 'a < 10', 'a > 4990']);
DROP INDEX bld_ab;

-- descending, nulls first and last, in all combinations
CREATE INDEX bld_dn ON bld USING :am (a DESC, b DESC);
CREATE INDEX bld_dl ON bld USING :am (a DESC NULLS LAST, b);
CREATE INDEX bld_af ON bld USING :am (a ASC NULLS FIRST, b DESC NULLS LAST);
SELECT relname, sound(oid) FROM pg_class WHERE relname IN ('bld_dn', 'bld_dl', 'bld_af') ORDER BY 1;
DROP INDEX bld_dl, bld_af;
SELECT * FROM compare_all('bld_dn', 'SELECT a, b FROM bld WHERE $1', ARRAY[
    'a = 17', 'a = 17 AND b > 1000000000', 'a < 10', 'a > 4990', 'a >= 100 AND a < 120']);
DROP INDEX bld_dn;
CREATE INDEX bld_dl ON bld USING :am (a DESC NULLS LAST, b);
SELECT * FROM compare_all('bld_dl', 'SELECT a, b FROM bld WHERE $1', ARRAY[
    'a = 17', 'a = 17 AND b > 1000000000', 'a < 10', 'a > 4990', 'a >= 100 AND a < 120']);
DROP INDEX bld_dl;

-- more columns than the model has digits for, and an array behind an integer
CREATE INDEX bld_many ON bld USING :am (a, d, f, b, c);
SELECT compare('bld_many', $$SELECT a FROM bld WHERE a = 17 AND d >= '2001-01-01'$$);
DROP INDEX bld_many;
CREATE INDEX bld_ac ON bld USING :am (a, c);
SELECT state FROM learnedbtree_model('bld_ac');
SELECT * FROM compare_all('bld_ac', 'SELECT a, c FROM bld WHERE $1', ARRAY['a = 17', 'a < 10']);
SELECT compare('bld_ac', $$SELECT a FROM bld WHERE a = 17 AND c > '{text 5}'$$);
DROP INDEX bld_ac;

-- INCLUDE
CREATE INDEX bld_inc ON bld USING :am (b) INCLUDE (c, a);
SELECT * FROM compare_all('bld_inc', 'SELECT b, c, a FROM bld WHERE $1', ARRAY[
    'b = 1000', 'b < 100000000', 'b BETWEEN 5 AND 10']);
DROP INDEX bld_inc;

-- partial
CREATE INDEX bld_part ON bld USING :am (b) WHERE a < 1000;
SELECT compare('bld_part', 'SELECT a, b FROM bld WHERE a < 1000 AND b < 500000000');
DROP INDEX bld_part;

-- expressions
CREATE INDEX bld_expr ON bld USING :am ((a * 2), (b % 100));
SELECT compare('bld_expr', 'SELECT a, b FROM bld WHERE a * 2 = 34 AND b % 100 > 50');
DROP INDEX bld_expr;
CREATE INDEX bld_lower ON bld USING :am ((c || c));
SELECT state, reason FROM learnedbtree_model('bld_lower');
SELECT compare('bld_lower', $$SELECT c FROM bld WHERE c || c = '{text 777,text 777}'$$);
DROP INDEX bld_lower;

-- on an empty table, and grown by inserts: the model comes with use
CREATE TABLE bld_grow (a bigint);
CREATE INDEX bld_grow_i ON bld_grow USING :am (a);
SELECT state, leaves FROM learnedbtree_model('bld_grow_i');
SELECT count(*) FROM bld_grow WHERE a = 5;
INSERT INTO bld_grow SELECT mix(i) FROM generate_series(1, 20000) i;
SET enable_seqscan = off;
SELECT count(*) FROM bld_grow WHERE a = mix(77);
RESET enable_seqscan;
SELECT state, leaves > 20 AS leaves_known FROM learnedbtree_model('bld_grow_i');
SELECT compare('bld_grow_i', 'SELECT a FROM bld_grow WHERE a BETWEEN 1000000 AND 9000000');
SELECT sound('bld_grow_i');
-- a third more after training: right moves or descents, and no wrong answer
INSERT INTO bld_grow SELECT mix(i) FROM generate_series(20001, 27000) i;
SELECT left(compare('bld_grow_i', 'SELECT a FROM bld_grow WHERE a BETWEEN ' || mix(i) || ' AND ' || mix(i) + 20000000), 4) AS answers, count(*)
  FROM generate_series(1, 300, 7) i GROUP BY 1;
SELECT learnedbtree_train('bld_grow_i');
SELECT compare('bld_grow_i', 'SELECT a FROM bld_grow WHERE a BETWEEN 1000000 AND 9000000');
DROP TABLE bld_grow;

-- ascending inserts at the right end
CREATE TABLE bld_right (a bigint);
CREATE INDEX bld_right_i ON bld_right USING :am (a);
INSERT INTO bld_right SELECT i FROM generate_series(1, 5000) i;
SELECT learnedbtree_train('bld_right_i');
INSERT INTO bld_right SELECT i FROM generate_series(5001, 9000) i;
SELECT left(compare('bld_right_i', 'SELECT a FROM bld_right WHERE a >= ' || i), 4) AS answers, count(*)
  FROM generate_series(4000, 9001, 500) i GROUP BY 1;
SELECT sound('bld_right_i');
DROP TABLE bld_right;

-- the phases that pg_stat_progress_create_index shows: btree's, and then one more
SELECT n, pg_indexam_progress_phasename(l.oid, n) AS phase, pg_indexam_progress_phasename(l.oid, n) IS NOT DISTINCT FROM pg_indexam_progress_phasename(b.oid, n) AS of_btree
  FROM generate_series(0, 7) n, pg_am l, pg_am b WHERE l.amname = 'learnedbtree' AND b.amname = 'btree' ORDER BY n;

-- wide keys: many levels
CREATE TABLE bld_wide (a int, filler text);
INSERT INTO bld_wide SELECT i, repeat(md5(i::text), 30) FROM generate_series(1, 4000) i;
ALTER TABLE bld_wide ALTER filler SET STORAGE PLAIN;
CREATE INDEX bld_wide_i ON bld_wide USING :am (a) INCLUDE (filler);
SELECT state, leaves > 400 AS many_leaves FROM learnedbtree_model('bld_wide_i');
SELECT * FROM compare_all('bld_wide_i', 'SELECT a, filler FROM bld_wide WHERE $1', ARRAY['a = 1', 'a = 4000', 'a = 4001', 'a > 3900']);
SELECT sound('bld_wide_i');
DROP TABLE bld_wide;

DROP TABLE bld;
