-- The short list of test/minors: what a library built with the newest minor's headers does on another one.  Answers
-- through the model are compared with those of btree; what differs is an error, and ends it.
\set ON_ERROR_STOP on
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION amcheck;
CREATE EXTENSION learnedbtree;
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET learnedbtree.min_leaves = 0;

-- Rows by the index, served and not, must be the same.
CREATE PROCEDURE compare(index regclass, query text) LANGUAGE plpgsql AS $$
DECLARE
    count_and_hash text := format('SELECT concat(count(*), '':'', md5(string_agg(q::text, ''|''))) FROM (%s) q', query);
    by_btree text;
    by_model text;
    plan json;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', 'none', false);
    EXECUTE count_and_hash INTO by_btree;
    PERFORM set_config('learnedbtree.btree_indexes', 'all', false);
    EXECUTE count_and_hash INTO by_model;
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    IF position(format('"Index Name": "%s"', index) IN plan::text) = 0 THEN
        RAISE 'not by %: %', index, query;
    ELSIF by_btree <> by_model OR by_btree LIKE '0:%' THEN
        RAISE '% by btree, % by the model: %', by_btree, by_model, query;
    END IF;
END $$;
CREATE PROCEDURE compare_all() LANGUAGE plpgsql AS $$
BEGIN
    CALL compare('t_pkey', 'SELECT * FROM t WHERE k = 700001');
    CALL compare('t_pkey', 'SELECT * FROM t WHERE k = ANY (ARRAY[7, 70, 700, 70007, 349993, -5])');
    CALL compare('t_pkey', 'SELECT * FROM t WHERE k BETWEEN 1000 AND 90000 ORDER BY k');
    CALL compare('t_pkey', 'SELECT k FROM t WHERE k < 90000 ORDER BY k DESC LIMIT 2000');
    CALL compare('t_s', 'SELECT * FROM t WHERE s = ''key 4711''');
    CALL compare('t_s', 'SELECT * FROM t WHERE s >= ''key 2'' AND s < ''key 21'' ORDER BY s');
    CALL compare('t_l', 'SELECT * FROM t WHERE l > ''Key 49'' ORDER BY l, k');
    CALL compare('t_nu', 'SELECT * FROM t WHERE n = 77 AND u > ''40000000-0000-0000-0000-000000000000'' ORDER BY u');
    CALL compare('t_pkey', 'SELECT p.n, t.n AS m FROM p JOIN t ON t.k = p.k ORDER BY p.n');
    CALL compare('t_s', 'SELECT p.n, t.n AS m FROM p LEFT JOIN t ON t.s = p.s ORDER BY p.n');
END $$;
CREATE FUNCTION plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    lines text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) ' || query LOOP
        lines := concat_ws(E'\n', lines, line);
    END LOOP;
    RETURN lines;
END $$;

-- :text_collation is one of ICU's, if the library has been built with it: models know its keys by sort keys.
CREATE TABLE t (k int8 NOT NULL, n int4, u uuid, s text COLLATE "C", l text COLLATE :"text_collation");
INSERT INTO t SELECT i * 7, i % 500, md5(i::text)::uuid, 'key ' || i, 'Key ' || i % 5000 FROM generate_series(1, 50000) i;
INSERT INTO t SELECT 700001, 1, NULL, NULL, NULL;
ALTER TABLE t ADD PRIMARY KEY (k) WITH (fillfactor = 30);
CREATE UNIQUE INDEX t_s ON t (s);
CREATE INDEX t_l ON t (l, k);
CREATE INDEX t_nu ON t (n, u);
CREATE TABLE p AS SELECT i AS n, (hashint4(i) & 65535) * 7::int8 AS k, 'key ' || (hashint4(i) & 65535) AS s
  FROM generate_series(1, 3000) i;
VACUUM ANALYZE t, p;

SET learnedbtree.btree_indexes = 'all';
DO $$ BEGIN PERFORM learnedbtree_train(i) FROM unnest('{t_pkey,t_s,t_l,t_nu}'::regclass[]) i; END $$;
CALL compare_all();
DO $$
BEGIN
    IF plan('SELECT p.n, t.n FROM p JOIN t ON t.k = p.k') !~ 'Look' THEN
        RAISE E'no look-ahead node:\n%', plan('SELECT p.n, t.n FROM p JOIN t ON t.k = p.k');
    ELSIF plan('SELECT * FROM t WHERE k = 7007') !~ 't_pkey' THEN
        RAISE 'not by the index: %', plan('SELECT * FROM t WHERE k = 7007');
    END IF;
END $$;

-- Changes, and what they make of the pages.
INSERT INTO t SELECT i * 7 + 3, i % 500, md5((-i)::text)::uuid, 'new ' || i, 'Key x' || i % 5000
  FROM generate_series(1, 10000) i;
CALL compare_all();
DO $$ BEGIN
    INSERT INTO t VALUES (7007, 1, NULL, 'none', NULL);
    RAISE 'a duplicate was taken';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
UPDATE t SET n = n + 1 WHERE k % 5 = 0;
DELETE FROM t WHERE k BETWEEN 100000 AND 200000 OR k % 11 = 3;
VACUUM t;
CALL compare_all();
SELECT bt_index_parent_check(i, true, true) FROM unnest('{t_pkey,t_s,t_l,t_nu}'::regclass[]) i \g /dev/null
DO $$ BEGIN PERFORM learnedbtree_check(i) FROM unnest('{t_pkey,t_s,t_l,t_nu}'::regclass[]) i; END $$;
DO $$ BEGIN
    IF (SELECT count(*) FROM learnedbtree_stat WHERE indexrelname IN ('t_pkey', 't_s', 't_l', 't_nu') AND lookups > 0) < 4 THEN
        RAISE 'not all models were used: %', (SELECT json_agg(s) FROM (SELECT indexrelname, lookups, verified, reason
          FROM learnedbtree_stat JOIN learnedbtree_indexes USING (indexrelname)) s);
    END IF;
END $$;

-- An index of the access method's own.
CREATE INDEX t_own ON t USING learnedbtree (u);
SELECT learnedbtree_train('t_own') \g /dev/null
CALL compare('t_own', 'SELECT * FROM t WHERE u < ''01000000-0000-0000-0000-000000000000'' ORDER BY u');

-- Names and patterns.
SET learnedbtree.btree_indexes = '*, !t_*, public.t_pk*';
SELECT count(*) FROM learnedbtree_indexes \g /dev/null
SELECT count(*) FROM learnedbtree_patterns \g /dev/null
CALL compare('t_pkey', 'SELECT * FROM t WHERE k < 7000 ORDER BY k');

DROP INDEX t_own;
DROP PROCEDURE compare_all;
DROP EXTENSION learnedbtree CASCADE;
SELECT bt_index_parent_check(i, true, true) FROM unnest('{t_pkey,t_s,t_l,t_nu}'::regclass[]) i \g /dev/null
SELECT count(*) AS rows FROM t WHERE k > 0;
