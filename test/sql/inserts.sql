-- Inserts on predicted leaves: every shape of index, against the same rows in a table with a plain btree index.
SELECT use_am() AS am \gset
SET learnedbtree.btree_indexes = 'all, !*_b_i';

SET client_min_messages = error;	-- no warnings about ON CONFLICT below 18
\set VERBOSITY terse

-- Run a command for the tables NAME_l and NAME_b (@ in it); say what came of it when that is the same.
CREATE FUNCTION twice(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    kind text;
    n bigint;
    came text[] := '{}';
BEGIN
    FOREACH kind IN ARRAY ARRAY['_l', '_b'] LOOP
        BEGIN
            EXECUTE replace(command, '@', kind);
            GET DIAGNOSTICS n = ROW_COUNT;
            came := came || (n || ' rows');
        EXCEPTION WHEN OTHERS THEN
            came := came || replace(SQLERRM, kind, '');
        END;
    END LOOP;
    RETURN CASE WHEN came[1] = came[2] THEN came[1] ELSE 'DIFFERENT: ' || came::text END;
END $$;

-- The two tables, with indexes of the same definition, after the rows of a query.
CREATE FUNCTION make(name text, columns text, kind text, definition text, rows text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    which text;
BEGIN
    FOREACH which IN ARRAY ARRAY['l', 'b'] LOOP
        EXECUTE format('CREATE TABLE %s_%s (%s)', name, which, columns);
        EXECUTE format('INSERT INTO %s_%s %s', name, which, rows);
        EXECUTE format('CREATE %s INDEX %2$s_%3$s_i ON %2$s_%3$s USING %s %s', kind, name, which,
                       CASE which WHEN 'l' THEN am() ELSE 'btree' END, definition);
    END LOOP;
    RETURN (SELECT state FROM learnedbtree_model((name || '_l_i')::regclass));
END $$;

-- Do queries give the same by the index, through the model and without, by the table, and by btree?
-- Is the file sound?
CREATE FUNCTION agree(name text, columns text, VARIADIC conditions text[]) RETURNS text LANGUAGE plpgsql
    SET enable_sort = off AS $$
DECLARE
    c text;
    outcome text;
    index regclass := name || '_l_i';
BEGIN
    EXECUTE format('ANALYZE %s_l, %s_b', name, name);
    FOREACH c IN ARRAY conditions LOOP
        outcome := compare(index, format('SELECT %s FROM %s_l WHERE %s', columns, name, c));
        IF outcome NOT LIKE 'same, %' THEN
            RETURN c || ': ' || outcome;
        END IF;
        PERFORM use_access('index');
        IF answers(format('SELECT %s FROM %s_l WHERE %s', columns, name, c)) <>
           answers(format('SELECT %s FROM %s_b WHERE %s', columns, name, c)) THEN
            RETURN c || ': WRONG, btree has others';
        END IF;
        PERFORM use_access('seq');
    END LOOP;
    RETURN 'agreed, ' || sound(index);
END $$;

-- What inserts did since the last time; counts that depend on the page layout are only compared.
CREATE FUNCTION counts(name text, OUT asked bool, OUT most_placed bool, OUT moved bool, OUT "full" bool, OUT equal bool,
                       OUT fallback bool, OUT splits bool) LANGUAGE plpgsql AS $$
DECLARE
    s record;
BEGIN
    SELECT * INTO s FROM learnedbtree_stat_get((name || '_l_i')::regclass);
    IF s.inserts <> s.inserts_placed + s.inserts_full + s.inserts_equal + s.inserts_fallback THEN
        RAISE EXCEPTION 'the counts do not add up: %', s;
    END IF;
    asked := s.inserts > 0;
    most_placed := s.inserts > 0 AND s.inserts_placed > s.inserts * 0.8;
    moved := s.inserts_moved > 0;
    "full" := s.inserts_full > 0;
    equal := s.inserts_equal > 0;
    fallback := s.inserts_fallback > 0;
    splits := s.splits > 0;
    PERFORM learnedbtree_stat_reset((name || '_l_i')::regclass);
END $$;

-- ---- one column: random, ascending, descending; with room and without ----

SELECT make('one', 'k int8, v int', '', '(k) WITH (fillfactor = 70)', 'SELECT mix(i) % 1000000, i FROM generate_series(1, 20000) i');
SELECT twice('INSERT INTO one@ SELECT mix(i) % 1000000, i FROM generate_series(20001, 23000) i');
SELECT * FROM counts('one');
SELECT twice('INSERT INTO one@ SELECT mix(i) % 1000000, i FROM generate_series(23001, 23100) i ORDER BY 1');
SELECT twice('INSERT INTO one@ SELECT mix(i) % 1000000, i FROM generate_series(23101, 23200) i ORDER BY 1 DESC');
SELECT * FROM counts('one');
SELECT twice('INSERT INTO one@ SELECT 2000000 + i, i FROM generate_series(1, 5000) i');
SELECT * FROM counts('one');
SELECT twice('INSERT INTO one@ SELECT -i, i FROM generate_series(1, 2000) i');
SELECT twice('INSERT INTO one@ VALUES (9223372036854775807, 1), (-9223372036854775808, 1), (NULL, 1), (NULL, 2), (0, 1)');
SELECT agree('one', 'k, v', 'k = 0', 'k BETWEEN 5000 AND 90000', 'k > 2004990', 'k < 0', 'k IS NULL', 'k > 9223372036854775806', 'k = -9223372036854775808');
SELECT count(*) = sum(n) AS no_key_lost FROM (SELECT k, (SELECT count(*) FROM one_l x WHERE x.k = o.k) AS n FROM one_b o WHERE k % 7 = 0) q;

-- no prediction at all, by either setting
SELECT asked FROM counts('one');
SET learnedbtree.enable_insert = off;
SELECT twice('INSERT INTO one@ SELECT mix(i) % 1000000, i FROM generate_series(30001, 30100) i');
SELECT * FROM counts('one');
RESET learnedbtree.enable_insert;
SET learnedbtree.enable = off;
SELECT twice('INSERT INTO one@ SELECT mix(i) % 1000000, i FROM generate_series(30101, 30200) i');
RESET learnedbtree.enable;
SELECT * FROM counts('one');

-- UPDATE: the key changed, kept (a new version elsewhere, and heap-only), moved by much
SELECT twice('UPDATE one@ SET k = k + 1 WHERE k BETWEEN 100000 AND 110000');
SELECT * FROM counts('one');
SELECT twice('UPDATE one@ SET v = -v WHERE k BETWEEN 200000 AND 220000');
SELECT asked FROM counts('one');
SELECT twice('UPDATE one@ SET k = 1000000 - k WHERE k BETWEEN 10000 AND 40000');
SELECT twice('DELETE FROM one@ WHERE k BETWEEN 300000 AND 400000');
VACUUM one_l;
SELECT twice('INSERT INTO one@ SELECT 300000 + i * 10, i FROM generate_series(1, 2000) i');
SELECT twice('COPY one@ (k) FROM PROGRAM ''seq 500000 7 540000''');
SELECT agree('one', 'k, v', 'k BETWEEN 99000 AND 111000', 'k BETWEEN 200000 AND 200500', 'k BETWEEN 900000 AND 1000000', 'k BETWEEN 290000 AND 540000');

-- subtransactions: rows come and go, the index stays sound
DO $$ BEGIN
    FOR i IN 1..60 LOOP
        BEGIN
            INSERT INTO one_l SELECT 600000 + i * 100 + g, g FROM generate_series(1, 20) g;
            INSERT INTO one_b SELECT 600000 + i * 100 + g, g FROM generate_series(1, 20) g;
            PERFORM 1 / (i % 3);
        EXCEPTION WHEN division_by_zero THEN NULL;
        END;
    END LOOP;
END $$;
SELECT agree('one', 'k, v', 'k BETWEEN 600000 AND 610000');
DROP TABLE one_l, one_b;

-- ---- key columns ----

SELECT make('down', 'k int4, v int', '', '(k DESC NULLS LAST) WITH (fillfactor = 50)',
    'SELECT nullif(mix(i) % 50000, 7), i FROM generate_series(1, 8000) i');
SELECT twice('INSERT INTO down@ SELECT nullif(mix(i) % 50000, 11), i FROM generate_series(8001, 10000) i');
SELECT twice('INSERT INTO down@ SELECT NULL, i FROM generate_series(1, 30) i');
SELECT * FROM counts('down');
SELECT agree('down', 'k, v', 'k > 49000', 'k BETWEEN 7 AND 400', 'k IS NULL', 'k < 100');
DROP TABLE down_l, down_b;

SELECT make('duo', 'a int4, b int4', '', '(a NULLS FIRST, b DESC NULLS FIRST) WITH (fillfactor = 50)',
    'SELECT nullif(i / 100, 3), nullif(mix(i) % 1000, 5) FROM generate_series(1, 10000) i');
SELECT twice('INSERT INTO duo@ SELECT nullif(mix(i) % 100, 3), nullif(mix(i * 7) % 1000, 5) FROM generate_series(1, 3000) i');
SELECT twice('INSERT INTO duo@ VALUES (NULL, NULL), (NULL, 1), (3, NULL), (-5, 1), (2147483647, NULL), (-2147483648, 0)');
SELECT * FROM counts('duo');
SELECT agree('duo', 'a, b', 'a = 50', 'a = 50 AND b > 300', 'a = 99 AND b BETWEEN 10 AND 60', 'a IS NULL', 'a = 3', 'a < 0', 'a > 98');
DROP TABLE duo_l, duo_b;

-- a column without a key code behind one with it: nbtree decides among equals
SELECT make('word', 'a int4, t text', '', '(a, t COLLATE "C") WITH (fillfactor = 50)',
    'SELECT i, md5(i::text) FROM generate_series(1, 6000) i');
SELECT twice('INSERT INTO word@ SELECT mix(i) % 6000, md5((i * 3)::text) FROM generate_series(1, 1500) i');
SELECT twice('INSERT INTO word@ SELECT 2000, md5(i::text) FROM generate_series(1, 500) i');
SELECT asked, "full", splits FROM counts('word');
SELECT agree('word', 'a, t', 'a = 2000', 'a BETWEEN 1990 AND 2010', 'a = 2000 AND t > ''8''', 'a < 50');
DROP TABLE word_l, word_b;

-- other types: their ends
SELECT make('real', 'k float8', '', '(k) WITH (fillfactor = 50)', 'SELECT (mix(i) % 100000) / 7.0 - 5000 FROM generate_series(1, 5000) i');
SELECT twice('INSERT INTO real@ SELECT (mix(i) % 100000) / 3.0 - 10000 FROM generate_series(1, 1000) i');
SELECT twice('INSERT INTO real@ SELECT k::float8 FROM unnest(ARRAY[''NaN'', ''NaN'', ''Infinity'', ''-Infinity'', ''-0'', ''0'', ''1e-308'', ''-1e308'']) k');
SELECT * FROM counts('real');
SELECT agree('real', 'k', 'k = 0', 'k > 20000', 'k < -9000', 'k = ''NaN''', 'k BETWEEN -1 AND 1');
DROP TABLE real_l, real_b;
SELECT make('day', 'k timestamptz, d date', '', '(k, d) WITH (fillfactor = 50)',
    'SELECT timestamptz ''2020-01-01 00:00+00'' + i * interval ''1 minute'', date ''2020-01-01'' + i FROM generate_series(1, 5000) i');
SELECT twice('INSERT INTO day@ SELECT timestamptz ''2020-01-01 00:00:30+00'' + i * interval ''2 minutes'', NULL FROM generate_series(1, 1000) i');
SELECT twice('INSERT INTO day@ VALUES (''infinity'', ''infinity''), (''-infinity'', ''-infinity''), (NULL, ''infinity'')');
SELECT * FROM counts('day');
SELECT agree('day', 'k, d', 'k > ''2020-01-04 11:00+00''', 'k < ''2020-01-01 00:10+00''', 'k IS NULL');
DROP TABLE day_l, day_b;

-- ---- unique, INCLUDE, partial, expression ----

SELECT make('uni', 'a int8, b int4, c text', 'UNIQUE', '(a, b) INCLUDE (c) WITH (fillfactor = 60)',
    'SELECT mix(i), i % 5, ''row '' || i FROM generate_series(1, 6000) i');
SELECT twice('INSERT INTO uni@ SELECT mix(i), i % 5 + 10, ''new '' || i FROM generate_series(1, 900) i');
SELECT twice('INSERT INTO uni@ SELECT mix(i), i % 5 + 10, ''again'' FROM generate_series(500, 900) i');
SELECT twice('INSERT INTO uni@ SELECT mix(i), NULL, ''null'' FROM generate_series(1, 300) i');
SELECT twice('INSERT INTO uni@ SELECT mix(i), NULL, ''null'' FROM generate_series(1, 300) i');
SELECT asked, moved, equal FROM counts('uni');
SELECT twice('UPDATE uni@ SET c = c || ''!'' WHERE a < 1000000000');
SELECT twice('UPDATE uni@ SET b = b + 1 WHERE b = 12');
SELECT twice('UPDATE uni@ SET b = b - 1 WHERE b = 1');
DO $$ BEGIN
    FOR i IN 1..200 LOOP
        BEGIN
            INSERT INTO uni_l VALUES (mix(i), i % 7, 'tried');
        EXCEPTION WHEN unique_violation THEN NULL;
        END;
        BEGIN
            INSERT INTO uni_b VALUES (mix(i), i % 7, 'tried');
        EXCEPTION WHEN unique_violation THEN NULL;
        END;
    END LOOP;
END $$;
SELECT twice('DELETE FROM uni@ WHERE c = ''tried''');
SELECT twice('INSERT INTO uni@ SELECT mix(i), i % 7 + 100, ''after'' FROM generate_series(1, 200) i');
SELECT agree('uni', 'a, b, c', 'a < 100000000', 'a BETWEEN 1000000000 AND 1200000000', 'a = 2654435761', 'b = 100 AND a > 0');
DROP TABLE uni_l, uni_b;

SELECT make('part', 'k int4, v int4', '', '(k) WITH (fillfactor = 50) WHERE v > 0', 'SELECT i, i % 3 FROM generate_series(1, 9000) i');
SELECT twice('INSERT INTO part@ SELECT mix(i) % 9000, i % 3 FROM generate_series(1, 2000) i');
SELECT twice('UPDATE part@ SET v = 1 WHERE v = 0 AND k % 4 = 0');
SELECT twice('UPDATE part@ SET v = 0 WHERE v = 2 AND k % 4 = 0');
SELECT * FROM counts('part');
SELECT agree('part', 'k, v', 'v > 0 AND k = 400', 'v > 0 AND k BETWEEN 100 AND 300', 'v > 0 AND k > 8990');
DROP TABLE part_l, part_b;

SELECT make('expr', 'k int4, t text', 'UNIQUE', '((k * 2 + 1), length(t)) WITH (fillfactor = 50)',
    'SELECT i, repeat(''x'', i % 30) FROM generate_series(1, 5000) i');
SELECT twice('INSERT INTO expr@ SELECT mix(i) % 5000, repeat(''x'', i % 30 + 30) FROM generate_series(1, 700) i');
SELECT twice('INSERT INTO expr@ VALUES (1, ''y'')');
SELECT twice('INSERT INTO expr@ VALUES (2147483647, ''y'')');
SELECT * FROM counts('expr');
SELECT agree('expr', 'k, t', 'k * 2 + 1 = 4001', 'k * 2 + 1 BETWEEN 100 AND 300', 'k * 2 + 1 = 3 AND length(t) > 0');
DROP TABLE expr_l, expr_b;

-- ON CONFLICT and deferred checks go by limits.sql; an exclusion constraint's are inserts as others
CREATE TABLE excl_l (k int4);
CREATE TABLE excl_b (k int4);
INSERT INTO excl_l SELECT i * 2 FROM generate_series(1, 3000) i;
INSERT INTO excl_b SELECT i * 2 FROM generate_series(1, 3000) i;
ALTER TABLE excl_l ADD CONSTRAINT excl_l_i EXCLUDE USING :am (k WITH =) DEFERRABLE;
ALTER TABLE excl_b ADD CONSTRAINT excl_b_i EXCLUDE USING btree (k WITH =) DEFERRABLE;
SELECT twice('INSERT INTO excl@ SELECT i * 20 + 1 FROM generate_series(1, 200) i');
SELECT twice('INSERT INTO excl@ VALUES (3), (4)');
SELECT twice('UPDATE excl@ SET k = k + 2 WHERE k > 5000');
SELECT asked, most_placed FROM counts('excl');
SELECT agree('excl', 'k', 'k < 100', 'k > 5990');
DROP TABLE excl_l, excl_b;

-- ---- duplicates, with posting lists and without ----

SELECT make('many', 'k int4, v int', '', '(k)', 'SELECT i / 200, i FROM generate_series(1, 40000) i');
SELECT make('list', 'k int4, v int', '', '(k) WITH (deduplicate_items = off)', 'SELECT i / 200, i FROM generate_series(1, 40000) i');
SELECT twice('INSERT INTO many@ SELECT mix(i) % 200, i FROM generate_series(1, 4000) i');
SELECT twice('INSERT INTO list@ SELECT mix(i) % 200, i FROM generate_series(1, 4000) i');
-- heap TIDs in the middle of posting lists
SELECT twice('DELETE FROM many@ WHERE v % 10 = 3');
SELECT twice('DELETE FROM list@ WHERE v % 10 = 3');
VACUUM many_l, list_l;
SELECT twice('INSERT INTO many@ SELECT mix(i) % 200, -i FROM generate_series(1, 3000) i');
SELECT twice('INSERT INTO list@ SELECT mix(i) % 200, -i FROM generate_series(1, 3000) i');
SELECT twice('INSERT INTO many@ SELECT 77, i FROM generate_series(1, 3000) i');
SELECT twice('INSERT INTO list@ SELECT 77, i FROM generate_series(1, 3000) i');
SELECT asked, "full", splits FROM counts('many');
SELECT asked, "full", splits FROM counts('list');
SELECT agree('many', 'k, v', 'k = 77', 'k BETWEEN 100 AND 110', 'k > 198', 'k = 0');
SELECT agree('list', 'k, v', 'k = 77', 'k BETWEEN 100 AND 110', 'k > 198', 'k = 0');
DROP TABLE many_l, many_b, list_l, list_b;

-- one key only, then two
SELECT make('same', 'k int4, v int', '', '(k)', 'SELECT 1, i FROM generate_series(1, 20000) i');
SELECT twice('INSERT INTO same@ SELECT 1, i FROM generate_series(1, 500) i');
SELECT twice('INSERT INTO same@ SELECT i % 3, i FROM generate_series(1, 400) i');
SELECT agree('same', 'k, v', 'k = 1', 'k = 0', 'k > 1');
DROP TABLE same_l, same_b;

-- ---- large rows ----

SELECT make('wide', 'k int4, t text', '', '(k, t) WITH (fillfactor = 40)', 'SELECT i, left(md5(i::text), 20) FROM generate_series(1, 3000) i');
SELECT twice('INSERT INTO wide@ SELECT i * 10, (SELECT string_agg(md5((i * g)::text), '''') FROM generate_series(1, 40) g) FROM generate_series(1, 40) i');
SELECT twice('INSERT INTO wide@ SELECT i * 10, (SELECT string_agg(md5((i * g)::text), '''') FROM generate_series(1, 80) g) FROM generate_series(1, 40) i');
SELECT twice('INSERT INTO wide@ SELECT 5, (SELECT string_agg(md5(g::text), '''') FROM generate_series(1, 100) g)');
SELECT twice('INSERT INTO wide@ SELECT 5, repeat(''compressible '', 1000)');
SELECT asked, "full", splits FROM counts('wide');
SELECT agree('wide', 'k, t', 'k BETWEEN 10 AND 50', 'k = 400', 'k > 2990');
DROP TABLE wide_l, wide_b;

-- ---- from nothing: in one statement, in many, truncated and filled again ----

SELECT make('void', 'k int8', '', '(k)', 'SELECT 1 WHERE false');
SELECT twice('INSERT INTO void@ SELECT mix(i) FROM generate_series(1, 20000) i');
SELECT asked, most_placed, splits FROM counts('void');
SELECT twice('INSERT INTO void@ SELECT mix(i) FROM generate_series(20001, 22000) i');
SELECT asked FROM counts('void');
SELECT agree('void', 'k', 'k < 10000000', 'k = 2654443680', 'k > 4290000000');
TRUNCATE void_l, void_b;
SELECT twice('INSERT INTO void@ SELECT i FROM generate_series(1, 3000) i');
SELECT agree('void', 'k', 'k < 100', 'k = 1500', 'k > 2990');
BEGIN;
TRUNCATE void_l, void_b;
SELECT twice('INSERT INTO void@ SELECT i * 3 FROM generate_series(1, 3000) i');
SELECT agree('void', 'k', 'k < 100', 'k = 1500', 'k > 2990');
ROLLBACK;
SELECT twice('INSERT INTO void@ SELECT i + 3000 FROM generate_series(1, 1000) i');
SELECT agree('void', 'k', 'k < 100', 'k = 1500', 'k > 2990');
DROP TABLE void_l, void_b;

CREATE TABLE loop_l (k int4);
CREATE UNIQUE INDEX loop_l_i ON loop_l USING :am (k);
DO $$ BEGIN FOR i IN 1..3000 LOOP INSERT INTO loop_l VALUES (i * 7919 % 3001); END LOOP; END $$;
CREATE TABLE loop_b AS SELECT * FROM loop_l;
CREATE UNIQUE INDEX loop_b_i ON loop_b (k);
SELECT agree('loop', 'k', 'k < 100', 'k = 1500', 'k > 2990');
DROP TABLE loop_l, loop_b;

-- ---- unlogged, temporary, partitioned ----

CREATE UNLOGGED TABLE unl_l (k int8, v int);
CREATE UNLOGGED TABLE unl_b (k int8, v int);
SELECT twice('INSERT INTO unl@ SELECT mix(i) % 100000, i FROM generate_series(1, 8000) i');
CREATE INDEX unl_l_i ON unl_l USING :am (k) WITH (fillfactor = 60);
CREATE INDEX unl_b_i ON unl_b USING btree (k) WITH (fillfactor = 60);
SELECT twice('INSERT INTO unl@ SELECT mix(i) % 100000, i FROM generate_series(8001, 10000) i');
SELECT * FROM counts('unl');
-- entries marked dead by scans, rows in between
SELECT twice('DELETE FROM unl@ WHERE k BETWEEN 20000 AND 30000');
SELECT agree('unl', 'k, v', 'k BETWEEN 19000 AND 31000');
SELECT twice('INSERT INTO unl@ SELECT 20000 + i * 4, i FROM generate_series(1, 2500) i');
SELECT agree('unl', 'k, v', 'k BETWEEN 19000 AND 31000', 'k < 100', 'k = 25000');
DROP TABLE unl_l, unl_b;

CREATE TEMP TABLE tmp_l (k int8, v int);
CREATE TEMP TABLE tmp_b (k int8, v int);
SELECT twice('INSERT INTO tmp@ SELECT mix(i) % 100000, i FROM generate_series(1, 8000) i');
CREATE INDEX tmp_l_i ON tmp_l USING :am (k);
CREATE INDEX tmp_b_i ON tmp_b USING btree (k);
SELECT twice('INSERT INTO tmp@ SELECT mix(i) % 100000, i FROM generate_series(8001, 9000) i');
SELECT asked FROM counts('tmp');
SELECT agree('tmp', 'k, v', 'k < 100', 'k BETWEEN 500 AND 1000');
DROP TABLE tmp_l, tmp_b;

CREATE TABLE tree_l (k int4, v int) PARTITION BY RANGE (k);
CREATE TABLE tree_l_1 PARTITION OF tree_l FOR VALUES FROM (0) TO (5000);
CREATE TABLE tree_l_2 PARTITION OF tree_l FOR VALUES FROM (5000) TO (10000);
INSERT INTO tree_l SELECT i, i FROM generate_series(0, 9999) i;
CREATE INDEX tree_l_i ON tree_l USING :am (k) WITH (fillfactor = 50);
INSERT INTO tree_l VALUES (0, 0), (5000, 0);	-- an insert finds the partitions: served from the next statement on
INSERT INTO tree_l SELECT mix(i) % 10000, -i FROM generate_series(1, 2000) i;
SELECT bool_and(inserts > 500 AND inserts_placed > inserts * 0.8) AS both_placed FROM learnedbtree_stat WHERE indexrelname LIKE 'tree_l_%_k_idx';
UPDATE tree_l SET k = 9999 - k WHERE v < -1000;
SELECT compare('tree_l_1_k_idx', 'SELECT k, v FROM tree_l_1 WHERE k BETWEEN 1000 AND 1400'), sound('tree_l_1_k_idx'), sound('tree_l_2_k_idx');
DROP TABLE tree_l;

DROP FUNCTION twice, make, agree, counts;
