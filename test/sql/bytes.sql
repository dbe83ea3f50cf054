-- Keys that are byte strings: text and varchar under the C collation or with a pattern operator class, bytea, uuid, name.
SELECT use_am() AS am \gset

CREATE TABLE byt (t text COLLATE "C", v varchar(900) COLLATE "POSIX", p text, b bytea, u uuid, n name, k int);
INSERT INTO byt SELECT x, x, x, x::bytea, md5(i::text)::uuid, left(x, 40), i % 7
  FROM (SELECT i, CASE WHEN i % 11 = 0 THEN 'user' || i / 11 WHEN i % 13 = 0 THEN md5(i::text) ELSE 'user' || mix(i) END AS x
          FROM generate_series(1, 3000) i) q;
-- the ends, prefixes of each other, bytes above 127, keys that the index compresses, NULLs
INSERT INTO byt SELECT x, x, x, x::bytea, md5(x)::uuid, left(x, 60), k
  FROM unnest(ARRAY['', 'u', 'user', 'user0', 'user9', 'user99999999999', 'uses', 'usdr', 'zz', chr(1), 'user' || chr(1),
                    'user' || chr(127), 'ü', 'user€', '€€', repeat('user', 30), NULL]) x, generate_series(1, 3) k;
INSERT INTO byt SELECT x, x, x, x::bytea, NULL, NULL, i % 7
  FROM (SELECT i, i || repeat('x', 750) AS x FROM generate_series(1, 250) i) q;
INSERT INTO byt (b, u) VALUES
    ('\x', '00000000-0000-0000-0000-000000000000'), ('\x00', 'ffffffff-ffff-ffff-ffff-ffffffffffff'), ('\x0000', NULL), ('\x00ff', NULL),
    ('\xff', NULL), ('\xffff', NULL), ('\xff00', NULL), ('\x7573657200', NULL), ('\x75736572ff', NULL);
ANALYZE byt;

-- How often the answers are the same, and whether the model had part in it: most lookups must be verified.
CREATE FUNCTION try_bytes(columns text, col text, conditions text[])
    RETURNS TABLE (index text, state text, same bigint, others text, verified text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE INDEX byt_i ON byt USING %s (%s) WITH (fillfactor = 50)', am(), columns);
    RETURN QUERY
        SELECT columns, (SELECT m.state FROM learnedbtree_model('byt_i') m), sum(q.queries) FILTER (WHERE q.outcome IN ('same, verified', 'same, fallback'))::bigint,
               string_agg(q.outcome || ': ' || q.which, '; ' ORDER BY q.outcome) FILTER (WHERE q.outcome NOT IN ('same, verified', 'same, fallback')),
               (SELECT CASE WHEN s.verified > 0.8 * s.lookups THEN 'most' ELSE s.verified || ' of ' || s.lookups END
                  FROM learnedbtree_stat s WHERE s.indexrelid = 'byt_i'::regclass)
          FROM compare_all('byt_i', format('SELECT %s FROM byt WHERE $1', col), conditions) q;
    DROP INDEX byt_i;
END $$;

-- every operator, spelt like this, with these arguments
CREATE FUNCTION each_operator(col text, args text[], operator text DEFAULT '%s') RETURNS text[] LANGUAGE sql
    AS $$ SELECT array_agg(format('%s %s (%s)', col, CASE WHEN o = '=' THEN o ELSE format(operator, o) END, a))
            FROM unnest(args) a, unnest(ARRAY['<', '<=', '=', '>=', '>']) o $$;
CREATE FUNCTION args() RETURNS text[] LANGUAGE sql AS $$
    SELECT ARRAY['''''', '''user''', '''user123456789''', '''user4000''', '''zz''', '''user€''', 'chr(1)', '''usdr''',
                 '''77'' || repeat(''x'', 750)', 'repeat(''user'', 30)', 'repeat(''user'', 300)'] $$;

SELECT * FROM try_bytes('t', 't', each_operator('t', args()));
SELECT * FROM try_bytes('t DESC', 't', each_operator('t', args()));
SELECT * FROM try_bytes('v NULLS FIRST', 'v', each_operator('v', args()));
SELECT * FROM try_bytes('p text_pattern_ops', 'p', each_operator('p', args(), '~%s~'));
SELECT * FROM try_bytes('p varchar_pattern_ops DESC NULLS LAST', 'p', each_operator('p', args(), '~%s~'));
SELECT * FROM try_bytes('n', 'n', each_operator('n', ARRAY[$$''::name$$, $$'user'$$, $$'user123456789'$$, $$'zz'::name$$]));
SELECT * FROM try_bytes('n DESC', 'n', each_operator('n', ARRAY[$$''::name$$, $$'user'$$, $$'user123456789'$$, $$'zz'::name$$]));
SELECT * FROM try_bytes('b', 'b', each_operator('b', ARRAY[$$'\x'$$, $$'\x00'$$, $$'\x0001'$$, $$'\xff'$$, $$'\xff0000'$$, $$'\x75736572'$$, $$'\x7573657233'$$, $$'\x75736572ff'$$]));
SELECT * FROM try_bytes('b DESC', 'b', each_operator('b', ARRAY[$$'\x'$$, $$'\x00'$$, $$'\x0001'$$, $$'\xff'$$, $$'\xff0000'$$, $$'\x75736572'$$, $$'\x7573657233'$$, $$'\x75736572ff'$$]));
SELECT * FROM try_bytes('u', 'u', each_operator('u', ARRAY[$$'00000000-0000-0000-0000-000000000000'$$, $$'ffffffff-ffff-ffff-ffff-ffffffffffff'$$, $$md5('77')::uuid$$, $$'80000000-0000-0000-0000-000000000000'$$]));
SELECT * FROM try_bytes('u DESC NULLS LAST', 'u', each_operator('u', ARRAY[$$'00000000-0000-0000-0000-000000000000'$$, $$'ffffffff-ffff-ffff-ffff-ffffffffffff'$$, $$md5('77')::uuid$$, $$'80000000-0000-0000-0000-000000000000'$$]));

-- ranges, several bounds on one column, patterns, no bounds that meet
CREATE FUNCTION ranges() RETURNS text[] LANGUAGE sql AS $$
    SELECT ARRAY[$c$t BETWEEN 'user1' AND 'user2'$c$,
                 $c$t >= 'user1' AND t < 'user12' AND t > 'user100' AND t <= 'user11'$c$,
                 $c$t LIKE 'user12%'$c$,
                 $c$t LIKE 'ü%'$c$,
                 $c$t > 'b' AND t < 'a'$c$,
                 $c$t > 'user' AND t < 'user'$c$,
                 $c$t >= 'user' AND t <= 'user'$c$,
                 $c$t = NULL$c$,
                 $c$t = 'user' AND t > 'a'$c$] $$;
SELECT * FROM try_bytes('t', 't', ranges());
SELECT * FROM try_bytes('t DESC', 't', ranges());
SELECT * FROM try_bytes('p text_pattern_ops', 'p', ARRAY[$$p LIKE 'user12%'$$, $$p LIKE 'user€%'$$, $$p LIKE 'zz'$$]);

-- with other columns, before and behind
CREATE FUNCTION mixed() RETURNS text[] LANGUAGE sql AS $$
    SELECT ARRAY[$c$t = 'user' AND k = 2$c$,
                 $c$t = 'user' AND k > 1$c$,
                 $c$t = '' AND k <= 2$c$,
                 $c$t = 'user77' AND k >= 0$c$,
                 $c$t > 'user77'$c$,
                 $c$t = '5' || repeat('x', 750) AND k = 5$c$] $$;
SELECT * FROM try_bytes('t, k', 't, k', mixed());
SELECT * FROM try_bytes('t DESC, k', 't, k', mixed());
SELECT * FROM try_bytes('t NULLS FIRST, k DESC', 't, k', mixed());
CREATE FUNCTION behind() RETURNS text[] LANGUAGE sql AS $$
    SELECT ARRAY[$c$k = 2 AND t = 'user'$c$,
                 $c$k = 3 AND t > 'user77'$c$,
                 $c$k = 3 AND t >= 'user1' AND t < 'user2'$c$,
                 $c$k = 6 AND t LIKE 'user4%'$c$,
                 $c$k > 3$c$,
                 $c$k < 1$c$,
                 $c$k = 5$c$] $$;
SELECT * FROM try_bytes('k, t', 'k, t', behind());
SELECT * FROM try_bytes('k DESC, t DESC', 'k, t', behind());
SELECT * FROM try_bytes('u, t, b', 'u, t, b', ARRAY[$$u = md5('77')::uuid$$, $$u = md5('user')::uuid AND t = 'user'$$, $$u = md5('user')::uuid AND t = 'user' AND b >= '\x75'$$, $$u > 'f0000000-0000-0000-0000-000000000000'$$]);

-- to and fro
CREATE INDEX byt_t ON byt USING :am (t);
CREATE INDEX byt_b ON byt USING :am (b DESC);
SELECT compare_walk('byt_t', $$SELECT t FROM byt WHERE t > 'user2' AND t < 'user7' ORDER BY t$$),
       compare_walk('byt_t', $$SELECT t FROM byt WHERE t > 'user2' AND t < 'user7' ORDER BY t DESC$$, 'only'),
       compare_walk('byt_b', $$SELECT b FROM byt WHERE b < '\x7573657237' ORDER BY b$$, 'only');
-- arguments that come compressed
CREATE TABLE byt_args AS SELECT t, b FROM byt WHERE length(t) > 700 LIMIT 20;
SELECT count(*) FROM byt_args a JOIN byt USING (t);
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_material = off;
SELECT count(*) FROM byt_args a JOIN byt USING (t);
SELECT count(*) FROM byt_args a JOIN byt USING (b);
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan; RESET enable_material;
DROP TABLE byt_args;
DROP INDEX byt_t, byt_b;

-- each key of many is found where it is predicted
CREATE TABLE byt_words (t text COLLATE "C", u uuid, i int, b bytea);
INSERT INTO byt_words SELECT 'user' || (9 - mix(i) % 9) || lpad((mix(i) * 69621)::text, 18, mix(i * 7)::text), md5(i::text)::uuid, i % 100, int4send(i::int)
  FROM generate_series(1, 20000) i;
CREATE INDEX byt_words_t ON byt_words USING :am (t);
CREATE INDEX byt_words_u ON byt_words USING :am (u DESC);
CREATE INDEX byt_words_iut ON byt_words USING :am (i, u, t);
CREATE INDEX byt_words_b ON byt_words USING :am (b);
ANALYZE byt_words;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off; SET enable_seqscan = off;
SELECT learnedbtree_stat_reset(i) FROM unnest('{byt_words_t, byt_words_u, byt_words_iut, byt_words_b}'::regclass[]) i;
SELECT count(*) FROM byt_words o, LATERAL (SELECT i.t FROM byt_words i WHERE i.t = o.t OFFSET 0) q;
SELECT count(*) FROM byt_words o, LATERAL (SELECT i.b FROM byt_words i WHERE i.b = o.b OFFSET 0) q;
SELECT count(*) FROM (SELECT u FROM byt_words WHERE u >= 'f8000000-0000-0000-0000-000000000000' OFFSET 0) q;
SELECT indexrelname, lookups >= CASE indexrelname WHEN 'byt_words_u' THEN 1 ELSE 20000 END AS all, verified = lookups AS verified
  FROM learnedbtree_stat WHERE relname = 'byt_words' AND indexrelname <> 'byt_words_iut' ORDER BY 1;
DROP INDEX byt_words_t, byt_words_u;
SELECT count(*) FROM byt_words o, LATERAL (SELECT i.t FROM byt_words i WHERE i.i = o.i AND i.u = o.u AND i.t = o.t OFFSET 0) q;
SELECT lookups >= 20000 AS all, verified = lookups AS verified FROM learnedbtree_stat WHERE indexrelname = 'byt_words_iut';
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_memoize; RESET enable_material; RESET enable_seqscan;
DROP TABLE byt_words;

-- inserts: placed, and unique
CREATE TABLE byt_in (t text COLLATE "C", u uuid);
SET client_min_messages = error;    -- the warning about ON CONFLICT below 18 is limits.sql's
CREATE UNIQUE INDEX byt_in_t ON byt_in USING :am (t);
RESET client_min_messages;
CREATE INDEX byt_in_u ON byt_in USING :am (u) WITH (fillfactor = 50);
INSERT INTO byt_in SELECT 'user' || mix(i), md5(i::text)::uuid FROM generate_series(1, 10000) i;
SELECT indexrelname, splits > 0 AS splits FROM learnedbtree_stat WHERE indexrelname IN ('byt_in_t', 'byt_in_u') ORDER BY 1;  -- told before the trainings
SELECT learnedbtree_train('byt_in_t'), learnedbtree_train('byt_in_u');
SELECT i AS index, state, leaves > 10 AS grown, splits_since FROM unnest('{byt_in_t,byt_in_u}'::regclass[]) i, learnedbtree_model(i);
INSERT INTO byt_in SELECT 'user' || mix(i), md5(i::text)::uuid FROM generate_series(10001, 12000) i;
INSERT INTO byt_in SELECT 'user' || mix(i) || repeat('y', 900), md5(i::text)::uuid FROM generate_series(12001, 12100) i;
INSERT INTO byt_in VALUES ('', NULL), (NULL, NULL), (NULL, NULL), ('usen', NULL), ('zz', NULL);
\set VERBOSITY terse
INSERT INTO byt_in SELECT 'user' || mix(4711);
INSERT INTO byt_in SELECT 'user' || mix(12050) || repeat('y', 900);
INSERT INTO byt_in VALUES ('');
UPDATE byt_in SET t = 'user' || mix(1) WHERE t = 'user' || mix(2);
\set VERBOSITY default
DELETE FROM byt_in WHERE t = 'user' || mix(3);
INSERT INTO byt_in SELECT 'user' || mix(3);
SELECT indexrelname, sound(indexrelid), inserts_placed > 0.6 * inserts AS placed FROM learnedbtree_stat WHERE relname = 'byt_in' ORDER BY 1;
SELECT outcome LIKE 'same, %' AS same, sum(queries) FROM compare_all('byt_in_t', 'SELECT t FROM byt_in WHERE $1',
       ARRAY[$$t >= 'user'$$, $$t < 'user'$$, $$t = ''$$, $$t = 'user' || mix(3)$$, $$t LIKE 'user1%'$$, $$t > 'y'$$]) GROUP BY 1;
SELECT outcome LIKE 'same, %' AS same, sum(queries) FROM compare_all('byt_in_u', 'SELECT u FROM byt_in WHERE $1',
       ARRAY[$$u >= '80000000-0000-0000-0000-000000000000'$$, $$u < '80000000-0000-0000-0000-000000000000'$$, $$u = md5('11000')::uuid$$]) GROUP BY 1;
DROP TABLE byt_in;

-- values out of line, in the table and in search arguments: their pointers are no keys
CREATE TABLE byt_far (n int, x text COLLATE "C");
ALTER TABLE byt_far ALTER x SET STORAGE EXTERNAL;
INSERT INTO byt_far SELECT i, 'user' || (i * 7) || repeat('w', 2400) FROM generate_series(1, 300) i;
SELECT bool_and(pg_column_compression(x) IS NULL) AND pg_relation_size(reltoastrelid) > 600000 AS out_of_line
  FROM byt_far, pg_class WHERE relname = 'byt_far' GROUP BY reltoastrelid;
SET client_min_messages = error;	-- the warning about ON CONFLICT below 18 is limits.sql's
CREATE TABLE byt_near (t text COLLATE "C", n int);
INSERT INTO byt_near SELECT 'user' || i, i FROM generate_series(1, 3000) i;
INSERT INTO byt_near SELECT x || '', n FROM byt_far WHERE n <= 150;
CREATE INDEX byt_near_t ON byt_near USING :am (t) WITH (fillfactor = 50);
CREATE INDEX byt_near_d ON byt_near USING :am (t DESC, n) WITH (fillfactor = 50);
CREATE UNIQUE INDEX byt_near_u ON byt_near USING :am (t, n) WITH (fillfactor = 50);
RESET client_min_messages;
INSERT INTO byt_near SELECT x, n FROM byt_far WHERE n > 150;
\set VERBOSITY terse
INSERT INTO byt_near SELECT x, n FROM byt_far WHERE n = 77;
\set VERBOSITY default
SELECT sound('byt_near_t'), sound('byt_near_d'), sound('byt_near_u'), count(*), count(DISTINCT (t, n)) FROM byt_near;
-- (with one index at a time: the planner may choose any)
BEGIN;
DROP INDEX byt_near_d, byt_near_u;
SELECT * FROM compare_all('byt_near_t', 'SELECT t FROM byt_near WHERE $1', ARRAY['t = (SELECT x FROM byt_far WHERE n = 11)',
       't > (SELECT x FROM byt_far WHERE n = 200)', 't <= (SELECT x FROM byt_far WHERE n = 99) AND t > $$user3$$', 't = $$user77$$']);
ROLLBACK;
BEGIN;
DROP INDEX byt_near_t, byt_near_u;
SELECT * FROM compare_all('byt_near_d', 'SELECT t FROM byt_near WHERE $1', ARRAY['t = (SELECT x FROM byt_far WHERE n = 11)',
       't > (SELECT x FROM byt_far WHERE n = 200)', 't <= (SELECT x FROM byt_far WHERE n = 99) AND t > $$user3$$', 't = $$user77$$']);
ROLLBACK;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_sort = off;
SELECT count(*) FROM byt_far f JOIN byt_near b ON b.t = f.x;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan; RESET enable_sort;
DROP TABLE byt_far, byt_near;

-- the database's own collation, blanks at the end; arrays of strings are nbtree's
CREATE TABLE byt_not (d text, c char(20) COLLATE "C", a text[] COLLATE "C");
INSERT INTO byt_not SELECT i, i, ARRAY[i::text] FROM generate_series(1, 3000) i;
CREATE INDEX byt_not_d ON byt_not USING :am (d);
CREATE INDEX byt_not_c ON byt_not USING :am (c);
CREATE INDEX byt_not_a ON byt_not USING :am (a);
ANALYZE byt_not;
SELECT DISTINCT (learnedbtree_model(indexrelid)).state FROM pg_index WHERE indrelid = 'byt_not'::regclass;
SELECT compare('byt_not_d', $$SELECT d FROM byt_not WHERE d = '77'$$), compare('byt_not_c', $$SELECT c FROM byt_not WHERE c = '77'$$);
DROP TABLE byt_not;

-- the first separators are empty
CREATE TABLE byt_empty (t text COLLATE "C");
INSERT INTO byt_empty SELECT CASE WHEN i > 2000 THEN 'x' || i ELSE '' END FROM generate_series(1, 5000) i;
CREATE INDEX byt_empty_t ON byt_empty USING :am (t) WITH (deduplicate_items = off);
ANALYZE byt_empty;
SELECT compare('byt_empty_t', $$SELECT t FROM byt_empty WHERE t <= ''$$), compare('byt_empty_t', $$SELECT t FROM byt_empty WHERE t = 'x3000'$$);
DROP TABLE byt_empty;

-- the index's collation is what counts, not the column's
CREATE INDEX byt_p ON byt USING :am (p COLLATE "C");
SELECT compare('byt_p', $$SELECT p FROM byt WHERE p COLLATE "C" > 'user5'$$), compare('byt_p', $$SELECT p FROM byt WHERE p = 'user5'$$),
       compare('byt_p', $$SELECT p FROM byt WHERE p COLLATE "POSIX" > 'user5'$$);
DROP TABLE byt;
DROP FUNCTION try_bytes, each_operator, args, ranges, mixed, behind;
