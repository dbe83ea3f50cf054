-- Taking over btree indexes in place, and giving them back.  What depends on the version is adoptlimits.sql's.

\set SHOW_CONTEXT never
SET client_min_messages = error;	-- below 18 adopting warns

-- What an index is in the catalogs: access method, operator classes of it or not, on what it depends.
CREATE FUNCTION what_is(VARIADIC names text[])
    RETURNS TABLE (index regclass, am name, opclasses_of text, depends_on text, options text[])
    LANGUAGE sql AS $$
    SELECT c.oid::regclass, a.amname,
           (SELECT string_agg(DISTINCT oa.amname, ', ') FROM unnest(i.indclass::oid[]) k
              JOIN pg_opclass o ON o.oid = k JOIN pg_am oa ON oa.oid = o.opcmethod),
           (SELECT string_agg(pg_describe_object(refclassid, refobjid, 0), ', ' ORDER BY refclassid, refobjid) FROM pg_depend
             WHERE classid = 'pg_class'::regclass AND objid = c.oid AND refclassid IN ('pg_am'::regclass, 'pg_opclass'::regclass)),
           c.reloptions
      FROM unnest(names) WITH ORDINALITY n(name, at) JOIN pg_class c ON c.relname = n.name
      JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
     ORDER BY n.at
$$;

-- A primary key with foreign keys to and from it: the file is the same, lookups and inserts go by the model.
CREATE TABLE ado_top (id int PRIMARY KEY);
CREATE TABLE ado (id int PRIMARY KEY, up int REFERENCES ado_top, k int, t text COLLATE "C", CONSTRAINT ado_t UNIQUE (t));
CREATE TABLE ado_child (id int PRIMARY KEY, parent int REFERENCES ado ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX ado_k ON ado (k DESC) WITH (fillfactor = 50);
INSERT INTO ado_top SELECT generate_series(1, 100);
INSERT INTO ado SELECT i, i % 100 + 1, mix(i) % 1000, 'row ' || i FROM generate_series(1, 20000) i;
INSERT INTO ado_child SELECT i, i FROM generate_series(1, 2000) i;
ANALYZE ado;
CREATE TEMP TABLE files AS SELECT oid, relfilenode, relpages FROM pg_class WHERE relname IN ('ado_pkey', 'ado_t', 'ado_k', 'ado_child_pkey', 'ado_top_pkey');
SELECT learnedbtree_adopt(oid, force => true) FROM (SELECT oid FROM files ORDER BY oid) f;
SELECT * FROM what_is('ado_pkey', 'ado_t', 'ado_k');
SELECT count(*) AS same_file FROM files f JOIN pg_class c USING (oid, relfilenode);
SELECT compare('ado_pkey', 'SELECT id FROM ado WHERE id BETWEEN 700 AND 800'),
       compare('ado_t', $$SELECT t FROM ado WHERE t BETWEEN 'row 11' AND 'row 12'$$),
       compare('ado_k', 'SELECT k, id FROM ado WHERE k BETWEEN 700 AND 710');
SELECT sound('ado_pkey'), sound('ado_t'), sound('ado_k');
INSERT INTO ado VALUES (7, 1, 1, 'seven');
INSERT INTO ado VALUES (30000, 1, 1, 'row 7');
INSERT INTO ado VALUES (30000, 101, 1, 'other');
INSERT INTO ado SELECT i, 1, 1, 'new ' || i FROM generate_series(20001, 24000) i;
INSERT INTO ado_child VALUES (3000, 30000);
INSERT INTO ado_child VALUES (3000, 24000);
DELETE FROM ado_top WHERE id = 1;
DELETE FROM ado WHERE id = 24000;
UPDATE ado SET id = 50000 WHERE id = 5;
SELECT * FROM ado_child WHERE id = 3000 OR id = 5;
SELECT inserts_placed > 3000 AS placed FROM learnedbtree_stat WHERE indexrelname = 'ado_pkey';
SELECT sound('ado_pkey'), sound('ado_t'), sound('ado_k');

-- Commands on the table and the index.
REINDEX INDEX ado_pkey;
REINDEX INDEX CONCURRENTLY ado_pkey;
REINDEX TABLE CONCURRENTLY ado;
VACUUM FULL ado;
CLUSTER ado USING ado_k;
SELECT * FROM what_is('ado_pkey', 'ado_t', 'ado_k');
SELECT sound('ado_pkey'), sound('ado_t'), sound('ado_k');
SELECT compare('ado_pkey', 'SELECT id FROM ado WHERE id BETWEEN 700 AND 800');
ALTER TABLE ado ALTER k TYPE bigint;
ALTER TABLE ado ALTER id TYPE bigint;	-- the server makes the constraint anew, as a btree's
SELECT * FROM what_is('ado_pkey', 'ado_t', 'ado_k');
SELECT learnedbtree_adopt('ado_pkey', true);
SELECT sound('ado_pkey'), sound('ado_k'), compare('ado_pkey', 'SELECT id FROM ado WHERE id BETWEEN 700 AND 800');
ALTER TABLE ado ALTER t TYPE varchar(40);	-- and here on the same file
SELECT * FROM what_is('ado_t');
SELECT learnedbtree_adopt('ado_t', true);
SELECT sound('ado_t'), compare('ado_t', $$SELECT t FROM ado WHERE t BETWEEN 'row 11' AND 'row 12'$$);
CREATE TABLE ado_like (LIKE ado INCLUDING ALL);
SELECT relname, relam = (SELECT oid FROM pg_am WHERE amname = 'learnedbtree') AS ours, reloptions
  FROM pg_class WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'ado_like'::regclass) ORDER BY 1;
DROP TABLE ado_like;
TRUNCATE ado CASCADE;
INSERT INTO ado SELECT i, i % 100 + 1, mix(i) % 1000, 'row ' || i FROM generate_series(1, 5000) i;
SELECT compare('ado_pkey', 'SELECT id FROM ado WHERE id BETWEEN 700 AND 800');
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname IN ('ado_pkey', 'ado_t') ORDER BY 1;
SELECT pg_get_indexdef('ado_k'::regclass);

-- The extension is needed as long as one is adopted.
DROP EXTENSION learnedbtree;

-- In one session and transaction: use, release, use, adopt, use; also from PL/pgSQL, whose plans are kept.
PREPARE ado_by_id AS SELECT k >= 0 AS found FROM ado WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE ado_by_id(17);
BEGIN;
EXECUTE ado_by_id(17);
SELECT learnedbtree_release('ado_pkey');
EXECUTE ado_by_id(17);
INSERT INTO ado VALUES (6000, 1, 1, 'x');
SELECT learnedbtree_adopt('ado_pkey', true);
EXECUTE ado_by_id(6000);
INSERT INTO ado VALUES (6000, 1, 1, 'y');
ROLLBACK;
EXECUTE ado_by_id(17);
EXECUTE ado_by_id(6000);
RESET plan_cache_mode;
CREATE FUNCTION ado_turns(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found int := 0;
BEGIN
    FOR i IN 1..n LOOP
        PERFORM learnedbtree_release('ado_pkey');
        found := found + (SELECT count(*) FROM ado WHERE id BETWEEN i AND i + 99);
        PERFORM learnedbtree_adopt('ado_pkey', true);
        found := found + (SELECT count(*) FROM ado WHERE id = i);
    END LOOP;
    RETURN found;
END $$;
SELECT ado_turns(50);
SELECT sound('ado_pkey');

-- Rolled back, and rolled back to a savepoint.
BEGIN;
SELECT learnedbtree_release('ado_k');
SELECT am, options FROM what_is('ado_k');
ROLLBACK;
SELECT am, opclasses_of, depends_on, options FROM what_is('ado_k');
BEGIN;
SAVEPOINT a;
SELECT learnedbtree_release('ado_k');
SAVEPOINT b;
SELECT learnedbtree_adopt('ado_k', true);
SELECT count(*) FROM ado WHERE k = 77;
ROLLBACK TO b;
SELECT am FROM what_is('ado_k');
SELECT count(*) FROM ado WHERE k = 77;
ROLLBACK TO a;
SELECT am FROM what_is('ado_k');
SELECT count(*) FROM ado WHERE k = 77;
COMMIT;
SELECT sound('ado_k');

-- A released index is btree's in every respect, and has no model, nor counts.
SELECT compare('ado_k', 'SELECT k, id FROM ado WHERE k BETWEEN 700 AND 710');
SELECT learnedbtree_release('ado_k');
SELECT * FROM what_is('ado_k');
SELECT bt_index_parent_check('ado_k', true, true);
SELECT count(*) AS in_stat FROM learnedbtree_stat WHERE indexrelname = 'ado_k';
INSERT INTO ado SELECT i, 1, mix(i) % 1000, 'row ' || i FROM generate_series(5001, 9000) i;
SELECT learnedbtree_adopt('ado_k', true);
SELECT lookups, trainings FROM learnedbtree_stat WHERE indexrelname = 'ado_k';
SELECT state FROM learnedbtree_model('ado_k');
SELECT compare('ado_k', 'SELECT k, id FROM ado WHERE k BETWEEN 700 AND 710'), sound('ado_k');
SELECT state, source FROM learnedbtree_model('ado_k');	-- not of an image from before the release

-- Those made by CREATE INDEX ... USING learnedbtree are released as well, and nothing is left that needs the extension.
CREATE EXTENSION citext;
CREATE TABLE nat (a int, c citext, t text COLLATE "C");
INSERT INTO nat SELECT i, 'C' || i, 'T' || i FROM generate_series(1, 3000) i;
CREATE INDEX nat_a ON nat USING learnedbtree (a) WITH (fillfactor = 70, max_error = 2, learned = on, retrain_splits = 9);
CREATE UNIQUE INDEX nat_ct ON nat USING learnedbtree (c, t text_pattern_ops, a, c citext_pattern_ops) INCLUDE (t);
ALTER TABLE nat ADD EXCLUDE USING learnedbtree (a WITH =) WITH (max_error = 3);
SELECT * FROM what_is('nat_a', 'nat_ct', 'nat_a_excl');
RESET client_min_messages;
SELECT learnedbtree_release('nat_a');
SELECT learnedbtree_release('nat_a');
SELECT learnedbtree_release('nat_ct'), learnedbtree_release('nat_a_excl');
SET client_min_messages = error;
SELECT * FROM what_is('nat_a', 'nat_ct', 'nat_a_excl');
SELECT pg_get_indexdef('nat_ct'::regclass);
SELECT bt_index_parent_check('nat_ct', true, true);
SELECT count(*) FROM nat WHERE c = 'c77';
INSERT INTO nat VALUES (3, 'x', 'x');
-- and back: what a dump names by its schema gets the alias, which is in pg_catalog
SELECT learnedbtree_adopt('nat_ct', true), learnedbtree_adopt('nat_a', true), learnedbtree_adopt('nat_a_excl', true);
SELECT * FROM what_is('nat_a', 'nat_ct', 'nat_a_excl');
SELECT pg_get_indexdef('nat_ct'::regclass);
BEGIN;
SET LOCAL search_path = '';
SELECT pg_get_indexdef('public.nat_ct'::regclass) AS dumped \gset
DROP INDEX public.nat_ct;
:dumped;
SELECT :'dumped';
ROLLBACK;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'nat_a_excl';
SELECT learnedbtree_release('nat_ct');
SELECT * FROM what_is('nat_ct');
DROP TABLE nat;
DROP EXTENSION citext;

-- Partitioned: the root with all its parts, never a part alone.
CREATE TABLE apt (a int, b int, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TABLE apt_1 PARTITION OF apt FOR VALUES FROM (0) TO (5000);
CREATE TABLE apt_2 PARTITION OF apt FOR VALUES FROM (5000) TO (20000) PARTITION BY RANGE (a);
CREATE TABLE apt_21 PARTITION OF apt_2 FOR VALUES FROM (5000) TO (10000);
CREATE TABLE apt_child (a int REFERENCES apt);
INSERT INTO apt SELECT i, i FROM generate_series(1, 9999) i;
INSERT INTO apt_child VALUES (1), (7000);
SELECT outcome($$learnedbtree_adopt('apt_21_pkey', true)$$);
SELECT learnedbtree_adopt('apt_pkey', true);
SELECT * FROM what_is('apt_pkey', 'apt_1_pkey', 'apt_2_pkey', 'apt_21_pkey');
SELECT sound('apt_1_pkey'), sound('apt_21_pkey'), compare('apt_21_pkey', 'SELECT a FROM apt_21 WHERE a BETWEEN 6000 AND 6100');
INSERT INTO apt VALUES (7000, 1);
\set VERBOSITY sqlstate
DELETE FROM apt WHERE a = 7000;
\set VERBOSITY default
INSERT INTO apt_child VALUES (-1);
-- new partitions, and attached ones
CREATE TABLE apt_3 PARTITION OF apt FOR VALUES FROM (20000) TO (30000);
CREATE TABLE apt_4 (a int PRIMARY KEY, b int);
INSERT INTO apt_4 SELECT i, i FROM generate_series(30000, 34000) i;
SELECT learnedbtree_adopt('apt_4_pkey', true);
ALTER TABLE apt ATTACH PARTITION apt_4 FOR VALUES FROM (30000) TO (40000);
SELECT * FROM what_is('apt_pkey', 'apt_3_pkey', 'apt_4_pkey');
SELECT sound('apt_3_pkey'), sound('apt_4_pkey');
SELECT outcome($$learnedbtree_release('apt_1_pkey')$$);
SELECT learnedbtree_release('apt_pkey');
SELECT * FROM what_is('apt_pkey', 'apt_1_pkey', 'apt_2_pkey', 'apt_21_pkey', 'apt_3_pkey', 'apt_4_pkey');
-- one part stands against it: nothing is changed
CREATE ROLE ado_other;
ALTER TABLE apt_21 OWNER TO ado_other;
CREATE ROLE ado_owner;
GRANT ado_owner TO CURRENT_USER;
ALTER TABLE apt OWNER TO ado_owner;
ALTER TABLE apt_1 OWNER TO ado_owner;
ALTER TABLE apt_2 OWNER TO ado_owner;
SET ROLE ado_owner;
SELECT outcome($$learnedbtree_adopt('apt_pkey', true)$$);
RESET ROLE;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM apt_21;
SELECT outcome($$learnedbtree_adopt('apt_pkey', true)$$);
ROLLBACK;
SELECT * FROM what_is('apt_pkey', 'apt_1_pkey', 'apt_21_pkey');
CREATE INDEX apt_only ON ONLY apt (b);
SELECT outcome($$learnedbtree_adopt('apt_only', true)$$);
DROP TABLE apt, apt_child;

-- What is refused.
CREATE TABLE ref (a int PRIMARY KEY, b int, j jsonb, u int UNIQUE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO ref SELECT i, i, to_jsonb(i), i FROM generate_series(1, 1000) i;
CREATE INDEX ref_hash ON ref USING hash (b);
CREATE INDEX ref_native ON ref USING learnedbtree (b);
CREATE VIEW ref_view AS SELECT * FROM ref;
SELECT outcome(format('learnedbtree_adopt(%L, true)', o)) FROM unnest(ARRAY['ref', 'ref_view', 'ref_hash', 'pg_class_oid_index', 'pg_database_oid_index',
    'learnedbtree_settings_pkey', 'nowhere']) o;
SELECT outcome(format('learnedbtree_adopt(%L, true)', o)) FROM unnest(ARRAY['4000000000', '0']) o;
SELECT regexp_replace(outcome(format('learnedbtree_adopt(%s, true)', indexrelid)), '[0-9]+_index', 'N_index')
  FROM pg_class c JOIN pg_index i ON i.indrelid = c.reltoastrelid WHERE c.oid = 'ref'::regclass;
SELECT outcome('learnedbtree_adopt(NULL)'), outcome('learnedbtree_release(NULL)');
SELECT outcome(format('learnedbtree_release(%L)', o)) FROM unnest(ARRAY['ref', 'ref_view', 'ref_hash', 'nowhere']) o;
SET ROLE ado_other;
SELECT outcome($$learnedbtree_adopt('ref_pkey', true)$$), outcome($$learnedbtree_release('ref_native')$$), outcome($$learnedbtree_set('ref_native', 'learned', 'off')$$);
RESET ROLE;
BEGIN READ ONLY;
SELECT outcome($$learnedbtree_adopt('ref_pkey', true)$$), outcome($$learnedbtree_release('ref_native')$$), outcome($$learnedbtree_adopt_all()$$),
       outcome($$learnedbtree_release_all()$$), outcome($$learnedbtree_set('ref_native', 'learned', 'off')$$);
COMMIT;
-- made, or given another file, in this transaction
BEGIN;
CREATE INDEX ref_new ON ref (b);
SELECT outcome($$learnedbtree_adopt('ref_new', true)$$);
REINDEX INDEX ref_pkey;
SELECT outcome($$learnedbtree_adopt('ref_pkey', true)$$);
TRUNCATE ref;
SELECT outcome($$learnedbtree_release('ref_native')$$);
ROLLBACK;
BEGIN;
SAVEPOINT a;
REINDEX INDEX ref_pkey;
ROLLBACK TO a;
SELECT outcome($$learnedbtree_adopt('ref_pkey', true)$$);
ROLLBACK;
-- in use
BEGIN;
DECLARE c CURSOR FOR SELECT a FROM ref ORDER BY a;
FETCH c;
SELECT outcome($$learnedbtree_adopt('ref_pkey', true)$$);
CLOSE c;
SELECT outcome($$learnedbtree_adopt('ref_pkey', true)$$);
ROLLBACK;
SELECT learnedbtree_adopt('ref_pkey', true) FROM ref;
SELECT learnedbtree_release('ref_native') FROM ref;
INSERT INTO ref (a, b) SELECT 5000, 1 WHERE learnedbtree_adopt('ref_pkey', true) IS NOT NULL;
BEGIN;
UPDATE ref SET u = 2 WHERE a = 1;
SELECT outcome($$learnedbtree_adopt('ref_u_key', true)$$);
UPDATE ref SET u = 1 WHERE a = 1;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT outcome($$learnedbtree_adopt('ref_u_key', true)$$);
ROLLBACK;
-- not complete; but it can be released
INSERT INTO ref VALUES (1001, 5, NULL, 1001);
CREATE UNIQUE INDEX CONCURRENTLY ref_invalid ON ref (b);
SELECT outcome($$learnedbtree_adopt('ref_invalid', true)$$);
DROP INDEX ref_invalid;
CREATE UNIQUE INDEX CONCURRENTLY ref_invalid ON ref USING learnedbtree (b);
SELECT outcome($$learnedbtree_release('ref_invalid')$$);
SELECT am, opclasses_of FROM what_is('ref_invalid');
DROP INDEX ref_invalid;
-- the format before version 12: only the metapage says so
CREATE TABLE ref_old (a int);
CREATE INDEX ref_old_i ON ref_old (a);
CHECKPOINT;
SELECT format('cat >/dev/null; printf ''\003'' | dd of=%s bs=1 seek=28 conv=notrunc 2>/dev/null', pg_relation_filepath('ref_old_i')) AS command \gset
COPY (SELECT) TO PROGRAM :'command';
SET ignore_checksum_failure = on;
SELECT outcome($$learnedbtree_adopt('ref_old_i', true)$$);
RESET ignore_checksum_failure;
DROP TABLE ref_old;
-- twice is not an error
RESET client_min_messages;
SELECT learnedbtree_adopt('ref_native', true);
SELECT learnedbtree_release('ref_pkey');
SET client_min_messages = error;
-- a deferred constraint, and an own temporary table
SELECT learnedbtree_adopt('ref_u_key', true);
BEGIN;
UPDATE ref SET u = 2 WHERE a = 1;
UPDATE ref SET u = 1 WHERE a = 2;
COMMIT;
UPDATE ref SET u = 2 WHERE a = 2;
SELECT sound('ref_u_key');
CREATE TEMP TABLE ref_temp (a int PRIMARY KEY);
SELECT learnedbtree_adopt('ref_temp_pkey', true);
INSERT INTO ref_temp SELECT generate_series(1, 1000);
INSERT INTO ref_temp VALUES (77);
SELECT count(*) FROM ref_temp WHERE a = 77;
DROP TABLE ref_temp;
DROP VIEW ref_view;
DROP TABLE ref;

-- Many at once.
CREATE SCHEMA many;
SET search_path = many, public;
CREATE TABLE "Orders" (id int PRIMARY KEY, j jsonb);
CREATE INDEX orders_j ON "Orders" (j);
CREATE INDEX orders_gin ON "Orders" USING gin (j);
CREATE TABLE ord_1 (id int PRIMARY KEY, b int);
CREATE TABLE ord_22 (id int PRIMARY KEY, b int);
CREATE INDEX ord_22_b ON ord_22 USING learnedbtree (b);
CREATE TABLE ord_p (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE ord_p1 PARTITION OF ord_p FOR VALUES FROM (0) TO (10);
CREATE MATERIALIZED VIEW ord_m AS SELECT 1 AS a;
CREATE UNIQUE INDEX ord_m_a ON ord_m (a);
CREATE TABLE ord_theirs (id int PRIMARY KEY);
CREATE TABLE "aé"(id int PRIMARY KEY);
CREATE ROLE many_user;
GRANT USAGE, CREATE ON SCHEMA many TO many_user;
ALTER TABLE ord_1 OWNER TO many_user;
ALTER TABLE ord_p OWNER TO many_user;
ALTER TABLE ord_p1 OWNER TO many_user;
SET ROLE many_user;
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('many.*', true);
RESET ROLE;
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('many."Orders"', true);
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('man?.ord__?', true);
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('man?.ord_2?', true);
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('ord*', true);
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('many.*"r"*', true);
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('pg_catalog.*', true);
SELECT index, outcome, CASE outcome WHEN 'skipped' THEN reason END AS why FROM learnedbtree_adopt_all('nowhere', true);
SELECT count(*) FROM learnedbtree_adopt_all('*_*_*_*_*_*_*_*_*_*_*_*_*_*_*_*_*' || '*r*r*r*r*r*r*r*r*r*r*r*r*!', true);
SELECT p, (SELECT count(*) FROM learnedbtree_adopt_all('many.' || p, true)) AS indexes
  FROM unnest(ARRAY['*', '**', 'ord_1', 'ord_1*', 'o*1', '*1', '*_*1', '?rd_1', '????_1', '*rd*_*', 'ord_1?', 'ORD_1', '"ord_"1', '"ord_*"', 'a?', 'a??', '*é', 'a*é*']) p;
SELECT outcome(format('learnedbtree_adopt_all(%L)', p)) FROM unnest(ARRAY['', 'a.b.c', 'many.', '.t', '"t']) p;
SELECT index, outcome, reason FROM learnedbtree_release_all('many.ord_2*');
SELECT index, outcome, reason FROM learnedbtree_release_all('many.*');
SELECT index, outcome, reason FROM learnedbtree_release_all('many.*');
-- an error in the middle takes all back
CREATE FUNCTION fail_at(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'enough of %', $1; END $$;
SELECT fail_at(index::text) FROM learnedbtree_adopt_all('many.*', true);
SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'learnedbtree' AND relnamespace = 'many'::regnamespace;
DROP SCHEMA many CASCADE;
RESET search_path;
DROP ROLE many_user;

-- Tables of other extensions are left alone; no pattern is no pattern for all.
CREATE SCHEMA member;
CREATE TABLE member.m (a int PRIMARY KEY);
ALTER EXTENSION plpgsql ADD TABLE member.m;
SELECT * FROM learnedbtree_adopt_all('member.*', true);
ALTER EXTENSION plpgsql DROP TABLE member.m;
SELECT index, outcome FROM learnedbtree_adopt_all('member.*', true);
SELECT learnedbtree_adopt_all(NULL, true);
SELECT learnedbtree_release_all(NULL);
DROP SCHEMA member CASCADE;

-- What a failed REINDEX CONCURRENTLY leaves depends on the access method, too: DROP EXTENSION must not leave it behind.
CREATE TABLE ado_left (a int);
CREATE FUNCTION ado_fails(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_setting('ado.fail', true) = 'on' THEN
        RAISE 'no more';
    END IF;
    RETURN $1;
END $$;
INSERT INTO ado_left VALUES (1);
CREATE INDEX ado_left_a ON ado_left (ado_fails(a));
SELECT learnedbtree_adopt('ado_left_a', true);
SET ado.fail = 'on';
REINDEX INDEX CONCURRENTLY ado_left_a;
SET ado.fail = 'off';
SELECT * FROM what_is('ado_left_a', 'ado_left_a_ccnew');
DROP TABLE ado_left;
DROP FUNCTION ado_fails;

-- Everything of this database goes back, and DROP EXTENSION is free to go.
SELECT count(*) > 0 AS released FROM learnedbtree_release_all() WHERE outcome = 'released';
SELECT count(*) AS left FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'learnedbtree' AND c.relpersistence <> 't';
SELECT count(*) AS dependencies FROM pg_depend d JOIN pg_opclass o ON o.oid = d.refobjid JOIN pg_am a ON a.oid = o.opcmethod
 WHERE d.refclassid = 'pg_opclass'::regclass AND d.classid = 'pg_class'::regclass AND a.amname = 'learnedbtree';
BEGIN;
DROP EXTENSION learnedbtree;
SELECT count(*) FROM ado WHERE id = 17;
ROLLBACK;
-- with CASCADE adopted indexes go, and with a primary key's the foreign keys to it
SELECT learnedbtree_adopt('ado_pkey', true);
BEGIN;
DROP EXTENSION learnedbtree CASCADE;
SELECT conname FROM pg_constraint WHERE conrelid IN ('ado'::regclass, 'ado_child'::regclass) AND contype IN ('p', 'u', 'f') ORDER BY 1;
ROLLBACK;
SELECT count(*) FROM ado WHERE id = 17;
SELECT sound('ado_pkey');
DROP TABLE ado, ado_child, ado_top;
DROP ROLE ado_other, ado_owner;
DROP FUNCTION what_is, ado_turns;
