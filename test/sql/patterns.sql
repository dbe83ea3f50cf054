-- learnedbtree.btree_indexes: lists of names and patterns, which of their items decides, and what the views say of it.

\set VERBOSITY terse
\set SHOW_CONTEXT never
SET client_min_messages = warning;	-- whether new sessions load the library is another test's
CREATE FUNCTION status(like_name text) RETURNS TABLE (index name, pattern text, served boolean, reason text) LANGUAGE sql AS $$
    SELECT indexname, pattern, served, reason FROM learnedbtree_indexes WHERE indexname LIKE like_name ORDER BY indexname, schemaname
$$;
-- Which of pt's indexes does a list serve?
CREATE FUNCTION serves(list text, OUT served text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', list, true);
    served := (SELECT string_agg(format('%I', indexname), ' ' ORDER BY indexname COLLATE "C")
                 FROM learnedbtree_indexes i WHERE i.served AND am = 'btree' AND tablename LIKE 'pt%');
END $$;

CREATE SCHEMA pt_shop;
CREATE SCHEMA "pt.Shop";
CREATE TABLE pt (id int PRIMARY KEY, t text COLLATE "C" UNIQUE, j jsonb, p point);
INSERT INTO pt SELECT i, 'row ' || i FROM generate_series(1, 30000) i;
CREATE INDEX pt_j ON pt (j);
CREATE INDEX pt_hash ON pt USING hash (id);
CREATE INDEX pt_own ON pt USING learnedbtree (id);
CREATE INDEX "Pt, a.b" ON pt (id);
CREATE INDEX "pt ""q""" ON pt (id);
CREATE INDEX "all" ON pt (id);
CREATE INDEX "none" ON pt (id);
CREATE INDEX "pt*" ON pt (id);
CREATE INDEX "!pt" ON pt (id);
VACUUM ANALYZE pt;
CREATE TABLE pt_shop.pt (id int PRIMARY KEY, v int);
CREATE TABLE "pt.Shop".pt (id int PRIMARY KEY);
CREATE INDEX pt_all ON pt_shop.pt (v);

-- nothing is served unless it is said; each kind of value
SHOW learnedbtree.btree_indexes;
SELECT * FROM status('pt%');
SET learnedbtree.btree_indexes = 'all';
SELECT * FROM status('pt%');
SET learnedbtree.btree_indexes = 'PT_PKEY, !none';
SELECT * FROM status('pt%');
SET learnedbtree.enable = off;
SELECT * FROM status('pt_pkey');
RESET learnedbtree.enable;
SELECT * FROM learnedbtree_patterns;
SET learnedbtree.btree_indexes = '';
SELECT reason, count(*) FROM status('pt%') GROUP BY 1 ORDER BY 1;
SELECT * FROM learnedbtree_patterns;
SET learnedbtree.btree_indexes = None;
SELECT item, pattern, excludes, indexes >= 12 AS all_indexes FROM learnedbtree_patterns;	-- those of other extensions, too
SET learnedbtree.btree_indexes = pt_pkey, pt_t_key;	-- one string is wanted
SHOW learnedbtree.btree_indexes;
RESET learnedbtree.btree_indexes;

-- what can hardly be meant is told; each once, where nothing else comes between
SET client_min_messages = notice;
\set VERBOSITY default
SET learnedbtree.btree_indexes = 'pt%, pt_p[ab]';
SET learnedbtree.btree_indexes = 'pt%, pt_p[ab]';
SET learnedbtree.btree_indexes = '!pt_pkey';
\set VERBOSITY terse
SET learnedbtree.btree_indexes = '';
SET learnedbtree.btree_indexes = on;
SET learnedbtree.btree_indexes = true;
SET learnedbtree.btree_indexes = 'none, FALSE';
SET learnedbtree.btree_indexes = 'pt_pkey;';
SET learnedbtree.btree_indexes = 'pt_pkey, public.^pt';
SET learnedbtree.btree_indexes = '!pt-pkey';
-- ... and nothing of these
SET learnedbtree.btree_indexes = 'pt_pkey, public."Pt, a.b", "on", "pt-pkey", _$1?*, été, !all, t';
SET learnedbtree.btree_indexes = '!all';
SET learnedbtree.btree_indexes = 'NONE';
SET learnedbtree.btree_indexes = '!pt_pkey, all';
CREATE FUNCTION odd() RETURNS int LANGUAGE sql SET learnedbtree.btree_indexes = '' RETURN 1;
SELECT sum(odd()) FROM generate_series(1, 3);
SET client_min_messages = warning;
RESET learnedbtree.btree_indexes;

-- names and patterns, as in psql
SELECT list, serves(list) FROM unnest(ARRAY['pt_pkey', 'PT_Pkey', '"PT_PKEY"', 'p"t_P"KEY', 'p"t_p"KEY', 'public.pt_pkey', 'pt_shop.*', 'pt_shop.pt_????',
    'pt_shop.pt_?????', '"pt.Shop".pt_pkey', '"pt.shop".pt_pkey', '?t?shop.pt*', '*."Pt, a.b"', '"Pt, "*', '"pt ""q"""', '*""""*', '"pt*"', '"pt?"', '"all"', '"none"', '"!pt"', '! pt*', '!"none"',
    '*_pkey', '*_*_*', 'pt_*key', '*t*t*key*', '**pt_pkey**', '?*', '*?', '?', 'pt_pkey*?', 'pt_pke', 'pt_pkeyy', 'pkey', '%pkey', 'pt_.key', 'pt-pkey',
    E'\tpt_pkey \n, \r\x0b\f pt_t_key ', 'pt_j, pt_hash, pt_own', 'pg_catalog.*', 'ALL', 'aLL.x', '*.*']) list;
-- later items go before earlier ones
SELECT list, serves(list) FROM unnest(ARRAY['pt_pkey, pt_pkey', 'pt*key, !pt_t*', '!pt_t*, pt*key', 'pt*key, !*, pt_t_key', 'pt*key, none, pt_t_key', 'none, pt_t_key', 'pt_t_key, none',
    'pt_t_key, !all', 'all, ! pt_t_key', '!pt_t_key, all', 'all, none', 'none, all', 'all, !public.*', 'all, !*, pt_shop.*', 'all, pt_shop.pt_all', 'pt_shop.pt_all, all', '!pt_pkey', '!nothing', '!all', 'all, !"all"',
    '*, !pt_shop.*, !"pt.Shop".*', '*, !*.pt_pkey, public.pt_pkey']) list;
-- more of them than anybody writes
SELECT serves(string_agg('no_such_' || i, ', ') || ', pt_pkey') FROM generate_series(1, 5000) i;
SELECT serves('pt_pkey, ' || string_agg('!pt_' || i || '*', ', ')) FROM generate_series(1, 5000) i;
SELECT serves(repeat('*', 1000) || 'pt' || repeat('*_', 1000) || '*'), serves(repeat('*p*t*', 500) || 'x');
SELECT serves('public.' || repeat('x', 100000)), serves('"' || repeat('""', 50000) || '"');

-- what is no list
CREATE FUNCTION refused(list text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', list, true);
    RETURN 'accepted';
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT list, refused(list) FROM unnest(ARRAY['a b', 'a, b c', 'a,', 'a, ', ',', ',a', 'a,,b', '"', 'a, "b', '"a""', '""', 'a""', '!', '! ', 'a, !, b', '!!a', 'a.b.c', '.', '.a', 'a.', 'a. b', 'a .b', '"a"."b"."c"', 'a.b."c.d"',
    '"a.b".c', '"a b"', '"a"b"c"', 'all none', 'a; b', '!all, !none']) list;
\set VERBOSITY default
SET learnedbtree.btree_indexes = 'pt_pkey, a b';
SHOW learnedbtree.btree_indexes;
SELECT learnedbtree_pattern_items('a, "b');
\set VERBOSITY terse
SELECT * FROM learnedbtree_pattern_items('all, ! a.b ,"c, ""d""".E*,none');
SELECT * FROM learnedbtree_pattern_items('');
SELECT * FROM learnedbtree_pattern_items(NULL);
SELECT learnedbtree_pattern_matches('pt_*', 'pt_pkey'::regclass), learnedbtree_pattern_matches('!pt_*', 'pt_pkey'::regclass), learnedbtree_pattern_matches('pt_shop.*', 'pt_pkey'::regclass),
    learnedbtree_pattern_matches('all', 'pt_pkey'::regclass), learnedbtree_pattern_matches('*', 4000000000), learnedbtree_pattern_matches('*', NULL);
SELECT learnedbtree_pattern_matches('a, pt_?key', 'pt_pkey'::regclass);
SELECT learnedbtree_pattern_matches('', 'pt_pkey'::regclass);
SELECT learnedbtree_pattern_matches('a.b.c', 'pt_pkey'::regclass);
SELECT * FROM learnedbtree_pattern_items('pt_*, !pt_shop.*, *, all', ARRAY['pt_pkey'::regclass, 'pt_shop.pt_all', 'pt_shop.pt_all', '4000000000', NULL]);
SELECT learnedbtree_pattern_items(repeat('a,', 600000) || 'b');

-- patterns match as LIKE's do; what is quoted stands for itself
CREATE SCHEMA pt_like;
CREATE TABLE pt_like.t (i int);
SELECT format('CREATE INDEX %I ON pt_like.t (i)', name)
    FROM unnest(ARRAY['a', 'b', '\', '*', 'aa', 'ab', 'ba', 'a*', '?b', 'a\', '\b', 'aab', 'a\b', 'a_b', 'a?b', 'abab', 'ba*b', '\\']) name \gexec
WITH RECURSIVE patterns AS (SELECT '' AS p UNION ALL SELECT p || c FROM patterns, unnest(ARRAY['a', 'b', '*', '?', '\', '_']) c WHERE length(p) < 4)
    SELECT count(*) AS compared, count(*) FILTER (WHERE is_like) AS alike, count(*) FILTER (WHERE is_like <> learnedbtree_pattern_matches(p, oid)) AS wrong,
           count(*) FILTER (WHERE p = relname) AS same, count(*) FILTER (WHERE (p = relname) <> learnedbtree_pattern_matches('pt_like."' || p || '"', oid)) AS wrong_quoted
      FROM (SELECT p, relname, c.oid, relname LIKE translate(regexp_replace(p, '([\\_])', '\\\1', 'g'), '*?', '%_') AS is_like
              FROM patterns, pg_class c WHERE p <> '' AND relkind = 'i' AND relnamespace = 'pt_like'::regnamespace) s;
DROP TABLE pt_like.t;

-- size counts for all, not for what is named
SET learnedbtree.btree_indexes = 'all, pt_shop.pt_p*';
SELECT * FROM status('pt_pkey');
SELECT * FROM status('pt_all');
INSERT INTO pt_shop.pt VALUES (1);
SELECT * FROM pt_shop.pt WHERE id = 1;
SELECT schemaname, indexname, served, reason FROM learnedbtree_indexes WHERE tablename = 'pt' AND schemaname <> 'public' ORDER BY 1, 2;
SET learnedbtree.min_leaves = 0;
SELECT schemaname, indexname, served, reason FROM learnedbtree_indexes WHERE tablename = 'pt' AND schemaname <> 'public' ORDER BY 1, 2;
RESET learnedbtree.min_leaves;
-- ... for inserts and lookups, too
SELECT learnedbtree_stat_reset();
CREATE FUNCTION used(index regclass, OUT lookups boolean, OUT inserts boolean) LANGUAGE sql AS
    'SELECT s.lookups > 0, s.inserts > 0 FROM learnedbtree_stat_get(index) s';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
INSERT INTO pt_shop.pt VALUES (2), (3);
SELECT count(*) FROM pt_shop.pt WHERE id = 2;
SELECT used('pt_shop.pt_pkey'), used('pt_shop.pt_all');

-- what a name cannot help
SET learnedbtree.btree_indexes = '*';
CREATE TEMP TABLE pt_temp (id int PRIMARY KEY);
CREATE TABLE pt_small (id int, d int DEFAULT 1);
INSERT INTO pt_small VALUES (1), (2);
CREATE UNIQUE INDEX CONCURRENTLY pt_invalid ON pt_small (d);
SELECT indexname, am, pattern, served, reason FROM learnedbtree_indexes WHERE indexname IN ('pt_j', 'pt_own', 'pt_invalid', 'pt_temp_pkey') ORDER BY 1;
SELECT pattern, served, reason FROM learnedbtree_index_status('pg_class_oid_index'::regclass);
SELECT pattern, served, reason ~ 'TOAST' AS toast FROM pg_index, learnedbtree_index_status(indexrelid) WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'pt'::regclass);
DROP TABLE pt_temp, pt_small;

-- patterns that match nothing, and how many indexes the others match
SET learnedbtree.btree_indexes = 'pt_pkey, pt_pkye, pt_shop.*, ! pt_shop.pt_all , "Pt, a.b"';
SELECT * FROM learnedbtree_patterns;
SET learnedbtree.btree_indexes = 'pg_catalog.*, pt_hash, pt_own, pt';	-- no btree indexes that could be served
SELECT * FROM learnedbtree_patterns;

SET learnedbtree.btree_indexes = 'pt_pkey';

-- an ordinary user: for what it does
CREATE ROLE pt_other;
GRANT USAGE ON SCHEMA pt_shop TO pt_other;
GRANT SELECT, INSERT ON pt_shop.pt TO pt_other;
SELECT learnedbtree_stat_reset();
SET ROLE pt_other;
SET learnedbtree.btree_indexes = 'pt_shop.pt_all, pt_pkye';
SELECT * FROM learnedbtree_patterns;
SELECT pattern, served, reason FROM learnedbtree_indexes WHERE indexname = 'pt_all';
INSERT INTO pt_shop.pt VALUES (4, 5);
SELECT count(*) FROM pt_shop.pt WHERE v = 5;
SET learnedbtree.btree_indexes = 'a b';
RESET ROLE;
SELECT used('pt_shop.pt_all'), used('pt_shop.pt_pkey');
REVOKE ALL ON SCHEMA pt_shop FROM pt_other;
REVOKE ALL ON pt_shop.pt FROM pt_other;
DROP ROLE pt_other;

-- the next statement knows, in transactions and subtransactions, too
SET learnedbtree.btree_indexes = 'none';
PREPARE look AS SELECT count(*) FROM pt_shop.pt WHERE id = 1;
CREATE FUNCTION looks() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint := (SELECT lookups + inserts + delegated FROM learnedbtree_stat_get('pt_shop.pt_pkey'::regclass));
BEGIN
    EXECUTE 'EXECUTE look';
    RETURN (SELECT lookups + inserts + delegated - before FROM learnedbtree_stat_get('pt_shop.pt_pkey'::regclass));
END $$;
DROP INDEX pt_shop.pt_all;
SELECT looks();
BEGIN;
SET LOCAL learnedbtree.btree_indexes = 'pt_shop.*';
SELECT looks();
SAVEPOINT a;
SET LOCAL learnedbtree.btree_indexes = 'pt_shop.*, !pt_pkey';
SELECT looks();
ROLLBACK TO a;
SELECT looks();
ROLLBACK;
SELECT looks();
SET learnedbtree.btree_indexes = 'pt_shop.pt_pkey';
BEGIN;
ALTER INDEX pt_shop.pt_pkey RENAME TO pt_new;
SELECT pattern, served, reason FROM learnedbtree_indexes WHERE indexname = 'pt_new';
ROLLBACK;
SELECT looks();
CREATE FUNCTION looks_by_itself() RETURNS bigint LANGUAGE sql SET learnedbtree.btree_indexes = '"pt_shop".pt_pkey, !"a, b"' AS 'SELECT looks()';
SET learnedbtree.btree_indexes = 'none';
SELECT looks_by_itself(), looks();
SELECT proconfig FROM pg_proc WHERE proname = 'looks_by_itself';
CREATE FUNCTION nothing() RETURNS int LANGUAGE sql SET learnedbtree.btree_indexes = 'a b' AS 'SELECT 1';
DEALLOCATE look;
DROP TABLE pt_shop.pt, "pt.Shop".pt, pt;

-- partitions: the name of a partition's index, or of one that it is part of
CREATE TABLE pp (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE pp_1 PARTITION OF pp FOR VALUES FROM (0) TO (1000);
CREATE TABLE pt_shop.pp_2 PARTITION OF pp FOR VALUES FROM (1000) TO (3000) PARTITION BY RANGE (id);
CREATE TABLE pp_21 PARTITION OF pt_shop.pp_2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE pp_22 PARTITION OF pt_shop.pp_2 FOR VALUES FROM (2000) TO (3000);
CREATE INDEX pp_22_v ON pp_22 (v);
INSERT INTO pp SELECT i, i FROM generate_series(0, 2999) i;
CREATE FUNCTION parts(list text, OUT served text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', list, true);
    served := (SELECT string_agg(indexname, ' ' ORDER BY indexname COLLATE "C") FROM learnedbtree_indexes i WHERE i.served AND tablename LIKE 'pp%');
END $$;
SELECT list, parts(list) FROM unnest(ARRAY['pp_pkey', 'public.pp_pkey', 'pt_shop.pp_pkey', 'pp_2_pkey', 'pt_shop.*', 'pp_2?_pkey', 'pp_pkey, !pp_21_pkey', 'pp_pkey, !pp_2_pkey', '!pp_2_pkey, pp_pkey',
    'pp_pkey, !pp_2_pkey, pp_22*', '!pp_21_pkey, pp_2_pkey', 'pp_1_pkey, !pp_pkey', '*, !pp_pkey', 'all', 'all, pp_2_pkey', '!pp_pkey, pp_21_pkey']) list;
SET learnedbtree.btree_indexes = 'pp_pkey, !pp_2_pkey, pp_22_pkey';
SELECT * FROM status('pp%');
SELECT * FROM learnedbtree_patterns;
-- ... those to come included, and no more when they leave
SET learnedbtree.btree_indexes = 'pp_pkey';
CREATE TABLE pp_3 (id int PRIMARY KEY, v int);
INSERT INTO pp_3 SELECT i, i FROM generate_series(3000, 3999) i;
SELECT * FROM status('pp_3%');
ALTER TABLE pp ATTACH PARTITION pp_3 FOR VALUES FROM (3000) TO (4000);
SELECT * FROM status('pp_3%');
ALTER TABLE pp DETACH PARTITION pp_3;
ALTER TABLE pp DETACH PARTITION pt_shop.pp_2;
SELECT * FROM status('pp%');
DROP TABLE pp, pp_3, pt_shop.pp_2;

-- what was decided is remembered, also that an index is not named, until that may have changed
CREATE TABLE pf (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE pf_1 (id int PRIMARY KEY);
INSERT INTO pf_1 VALUES (1), (2);
PREPARE ask AS SELECT count(*) FROM pf_1 WHERE id = 1;
-- By a statement that is planned, and by one that is not.
CREATE FUNCTION asked(OUT planned bigint, OUT prepared bigint) LANGUAGE plpgsql AS $$
DECLARE
    counted text := $q$ SELECT sum(lookups + delegated)::bigint FROM pg_index, learnedbtree_stat_get(indexrelid) WHERE indrelid = (SELECT oid FROM pg_class WHERE relname = 'pf_1') $q$;
    n bigint;
BEGIN
    EXECUTE counted INTO n;
    EXECUTE 'SELECT count(*) FROM pf_1 WHERE id = 1';
    EXECUTE counted INTO planned;
    EXECUTE 'EXECUTE ask';
    EXECUTE counted INTO prepared;
    prepared := prepared - planned;
    planned := planned - n;
END $$;
SET plan_cache_mode = force_generic_plan;
SET learnedbtree.btree_indexes = 'pf_pkey, pf_new, pt_moved.*, pf_more';
SELECT asked();
ALTER INDEX pf_1_pkey RENAME TO pf_new;
SELECT asked();
BEGIN;
SAVEPOINT a;
ALTER INDEX pf_new RENAME TO pf_old;
SELECT asked();
ROLLBACK TO a;
SELECT asked();
ALTER INDEX pf_new RENAME TO pf_old;
SELECT asked();
ROLLBACK;
SELECT asked();
ALTER INDEX pf_new RENAME TO pf_1_pkey;
SELECT asked();
CREATE SCHEMA pf_schema;
SET search_path = pf_schema, pt_moved, public;
ALTER TABLE pf_1 SET SCHEMA pf_schema;
SELECT asked();
ALTER SCHEMA pf_schema RENAME TO pt_moved;
SELECT asked();
ALTER SCHEMA pt_moved RENAME TO pf_schema;
SELECT asked();
ALTER TABLE pf ATTACH PARTITION pf_1 FOR VALUES FROM (0) TO (100000);
SELECT asked();
ALTER INDEX pf_pkey RENAME TO pf_no;
SELECT asked();
ALTER INDEX pf_no RENAME TO pf_more;
SELECT asked();
ALTER TABLE pf DETACH PARTITION pf_1;
SELECT asked();
BEGIN;
SET LOCAL learnedbtree.btree_indexes = 'pf_1_*';
SELECT asked();
ROLLBACK;
SELECT asked();
CREATE FUNCTION asked_by_itself(OUT planned bigint, OUT prepared bigint) LANGUAGE sql SET learnedbtree.btree_indexes = 'pf_1_pkey' AS 'SELECT * FROM asked()';
SELECT asked_by_itself(), asked();
SET learnedbtree.btree_indexes = 'pf_1_pkey';
SELECT asked();
SET learnedbtree.btree_indexes = 'pf_*, !pf_1_*';
SELECT asked();
SET learnedbtree.btree_indexes = 'pf_1_pkey';
SELECT asked();
-- ... and of an index that has grown: ANALYZE tells
SET learnedbtree.btree_indexes = 'all, no_such_*';
SET learnedbtree.min_leaves = 8;
SELECT asked();
INSERT INTO pf_1 SELECT generate_series(3, 10000);
ANALYZE pf_1;
SELECT asked();
RESET learnedbtree.min_leaves;
SELECT asked();
-- ... and of another one of the name
SET learnedbtree.btree_indexes = 'pf_?_pkey, no_such_*';
SELECT asked();
DROP TABLE pf_1;
CREATE TABLE pf_schema.pf_1 (id int CONSTRAINT pf_x_key UNIQUE);
SELECT asked();
SET learnedbtree.btree_indexes = 'all, no_such_*';
SELECT asked();
INSERT INTO pf_1 SELECT generate_series(1, 10000);
ANALYZE pf_1;
SELECT asked();
SET learnedbtree.btree_indexes = 'pf_?_pkey, no_such_*';
SELECT asked();
ALTER TABLE pf_1 DROP CONSTRAINT pf_x_key, ADD PRIMARY KEY (id);
SELECT asked();
DEALLOCATE ask;
RESET plan_cache_mode;
RESET search_path;
DROP SCHEMA pf_schema CASCADE;
DROP TABLE pf;

-- the cost of long lists: how many times as long does what none costs take? Other load counts, so try until it is little
CREATE TABLE pc (a int PRIMARY KEY, b int UNIQUE, c int UNIQUE, d int UNIQUE, e int UNIQUE, f int UNIQUE, g int UNIQUE, h int UNIQUE);
CREATE FUNCTION time_of(list text, statement text, times int) RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', list, false);
    began := clock_timestamp();
    FOR j IN 1 .. times LOOP
        EXECUTE statement;
    END LOOP;
    RETURN clock_timestamp() - began;
END $$;
CREATE FUNCTION costs_little(limits float8, list text, statement text, times int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    least_none interval := '1 day';
    least_long interval := '1 day';
BEGIN
    FOR i IN 1 .. 200 LOOP
        least_none := LEAST(least_none, time_of('none', statement, times));
        least_long := LEAST(least_long, time_of(list, statement, times));
        IF i >= 3 AND least_long < limits * least_none THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT string_agg('no_such_' || i || '_*', ', ') AS long FROM generate_series(1, 10000) i \gset
SELECT what, costs_little(limits, :'long', statement, times) AS in_time
    FROM (VALUES ('planning', 'EXPLAIN SELECT FROM pc WHERE a = 1', 1000, 3), ('learnedbtree_indexes', 'SELECT FROM learnedbtree_indexes', 1, 30),
                 ('learnedbtree_patterns', 'SELECT FROM learnedbtree_patterns', 1, 100)) v (what, statement, times, limits);
DROP TABLE pc;

-- indexes of materialized views
CREATE MATERIALIZED VIEW pv AS SELECT i AS id FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX "P v ""i""" ON pv (id);
SET learnedbtree.btree_indexes = '"P v ""i"""';
SELECT * FROM status('P v%');

DROP SCHEMA "pt.Shop", pt_shop, pt_like CASCADE;
DROP MATERIALIZED VIEW pv;
DROP FUNCTION status, serves, refused, used, looks, looks_by_itself, parts, asked, costs_little, time_of;
