-- Marks: which btree indexes are served, made and taken back by functions; what may have one, and what becomes of it.

\set VERBOSITY terse
\set SHOW_CONTEXT never
SET client_min_messages = warning;	-- whether new sessions load the library is another test's
CREATE FUNCTION marks() RETURNS TABLE (mark text) LANGUAGE sql AS $$
    SELECT concat_ws(' ', schemaname, tablename, indexname, CASE WHEN learned THEN 'adopted' ELSE 'excluded' END,
                     'max_error ' || max_error, 'retrain_splits ' || retrain_splits)
      FROM learnedbtree.marks ORDER BY 1
$$;
CREATE FUNCTION status(like_name text) RETURNS TABLE (index name, mark text, served boolean, reason text) LANGUAGE sql AS $$
    SELECT indexname, mark, served, reason FROM learnedbtree_indexes WHERE indexname LIKE like_name ORDER BY 1
$$;

CREATE TABLE mk (id int PRIMARY KEY, t text COLLATE "C" UNIQUE, j jsonb, p point);
INSERT INTO mk SELECT i, 'row ' || i FROM generate_series(1, 30000) i;
CREATE INDEX mk_j ON mk (j);
CREATE INDEX mk_hash ON mk USING hash (id);
CREATE INDEX mk_own ON mk USING learnedbtree (id);
VACUUM ANALYZE mk;
CREATE TABLE mk_small (id int PRIMARY KEY);

-- the three settings
SELECT * FROM status('mk%');
SELECT learnedbtree_adopt('mk_pkey');
SELECT * FROM marks();
SELECT * FROM status('mk%');
SET learnedbtree.btree_indexes = 'none';
SELECT * FROM status('mk_pkey');
SET learnedbtree.btree_indexes = 'all';
SELECT * FROM status('mk%');
SET learnedbtree.min_leaves = 0;
INSERT INTO mk_small VALUES (1);
SELECT * FROM status('mk_small%');
RESET learnedbtree.min_leaves;
SET learnedbtree.enable = off;
SELECT * FROM status('mk_pkey');
RESET learnedbtree.enable;
SET learnedbtree.btree_indexes = 'some';
RESET learnedbtree.btree_indexes;

-- options; excluded; again; released
SET client_min_messages = warning;
DO $$ BEGIN PERFORM learnedbtree_adopt('mk_pkey'); END $$;	-- the notice about loading comes once a session
SELECT learnedbtree_release('mk_pkey');
SET client_min_messages = notice;
SELECT learnedbtree_adopt('mk_pkey', max_error => 2, retrain_splits => 100);
SELECT learnedbtree_adopt('mk_pkey', max_error => 2, retrain_splits => 100);
SELECT * FROM marks();
SELECT learnedbtree_train('mk_pkey');
SELECT max_error <= 2 AS as_said FROM learnedbtree_model('mk_pkey');
SELECT learnedbtree_adopt('mk_t_key', learned => false);
SELECT * FROM marks();
SET learnedbtree.btree_indexes = 'all';
SELECT * FROM status('mk_t%');
SELECT state, reason FROM learnedbtree_model('mk_t_key');
RESET learnedbtree.btree_indexes;
SELECT learnedbtree_release('mk_pkey');
SELECT learnedbtree_release('mk_pkey');
SELECT learnedbtree_release('mk_hash');
SELECT * FROM marks();
SELECT learnedbtree_release('mk_t_key');

-- what is refused, and leaves no mark
SELECT learnedbtree_adopt(NULL);
SELECT learnedbtree_adopt('mk');
SELECT learnedbtree_adopt('mk_hash');
SELECT learnedbtree_adopt('mk_own');
SELECT learnedbtree_adopt('mk_j');
SELECT learnedbtree_adopt('pg_class_oid_index');
SELECT outcome(format('learnedbtree_adopt(%L)', indexrelid::regclass), 'accepted') ~ 'TOAST' AS toast
  FROM pg_index WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'mk');
SELECT learnedbtree_adopt(4000000000::oid::regclass);
SELECT learnedbtree_adopt('mk_pkey', max_error => 0);
SELECT learnedbtree_adopt('mk_pkey', max_error => 1025);
SELECT learnedbtree_adopt('mk_pkey', retrain_splits => 0);
CREATE TEMP TABLE mk_temp (id int PRIMARY KEY);
SELECT learnedbtree_adopt('mk_temp_pkey');
DROP TABLE mk_temp;
INSERT INTO mk_small VALUES (2);
ALTER TABLE mk_small ADD COLUMN d int DEFAULT 1;
SET client_min_messages = error;
CREATE UNIQUE INDEX CONCURRENTLY mk_invalid ON mk_small (d);
SET client_min_messages = notice;
SELECT learnedbtree_adopt('mk_invalid');
DROP TABLE mk_small;
BEGIN READ ONLY;
SELECT learnedbtree_adopt('mk_pkey');
ROLLBACK;
SELECT * FROM marks();

-- only the owner
CREATE ROLE mk_other;
SET ROLE mk_other;
SELECT learnedbtree_adopt('mk_pkey');
SELECT learnedbtree_release('mk_pkey');
SELECT * FROM learnedbtree_adopt_all('mk') WHERE index = 'mk_pkey'::regclass;
INSERT INTO learnedbtree.marks VALUES ('public', 'mk', 'mk_pkey');
DELETE FROM learnedbtree.marks;
SELECT count(*) FROM learnedbtree.marks;
RESET ROLE;
ALTER TABLE mk OWNER TO mk_other;
SET ROLE mk_other;
SELECT learnedbtree_adopt('mk_pkey');
RESET ROLE;
SELECT * FROM marks();
SELECT learnedbtree_release('mk_pkey');
ALTER TABLE mk OWNER TO CURRENT_USER;
DROP ROLE mk_other;

-- all of a pattern
SELECT * FROM learnedbtree_adopt_all('nothing*');
SELECT * FROM learnedbtree_adopt_all('a.b.c');
SELECT * FROM learnedbtree_adopt_all(NULL);
SELECT index, outcome, reason FROM learnedbtree_adopt_all('mk*', retrain_splits => 50) ORDER BY index::text;
SELECT * FROM learnedbtree_adopt_all('public.mk', retrain_splits => 50) WHERE index = 'mk_pkey'::regclass;
SELECT * FROM learnedbtree_adopt_all('"MK"');
SELECT * FROM marks();
SELECT * FROM learnedbtree_release_all('mk*') ORDER BY index::text;
SELECT * FROM learnedbtree_release_all('mk*');
SELECT * FROM marks();

-- a mark follows its index
SELECT learnedbtree_adopt('mk_pkey', max_error => 3);
ALTER INDEX mk_pkey RENAME TO "Mk pk";
SELECT * FROM marks();
ALTER TABLE mk RENAME TO mk2;
SELECT * FROM marks();
ALTER TABLE mk2 RENAME CONSTRAINT "Mk pk" TO mk_pkey;
CREATE SCHEMA mk_schema;
ALTER TABLE mk2 SET SCHEMA mk_schema;
SELECT * FROM marks();
ALTER SCHEMA mk_schema RENAME TO mk_schema2;
SELECT * FROM marks();
ALTER TABLE mk_schema2.mk2 SET SCHEMA public;
ALTER TABLE mk2 RENAME TO mk;
REINDEX INDEX mk_pkey;
REINDEX INDEX CONCURRENTLY mk_pkey;
SELECT mark, served FROM status('mk_pkey');
ALTER INDEX mk_pkey RENAME TO mk_renamed;
SELECT * FROM marks();
ALTER INDEX mk_renamed RENAME TO mk_pkey;
ALTER TABLE mk ALTER COLUMN id TYPE bigint;
SELECT * FROM marks();
SELECT mark, served FROM status('mk_pkey');
CLUSTER mk USING mk_pkey;
VACUUM FULL mk;
TRUNCATE mk;
INSERT INTO mk SELECT i, 'row ' || i FROM generate_series(1, 30000) i;
SELECT mark, served FROM status('mk_pkey');
SELECT * FROM marks();

-- ... and goes with it
BEGIN;
DROP INDEX mk_own, mk_j;
ALTER TABLE mk DROP CONSTRAINT mk_pkey;
SELECT * FROM marks();
ROLLBACK;
SELECT * FROM marks();
ALTER TABLE mk DROP CONSTRAINT mk_pkey;
SELECT * FROM marks();
ALTER TABLE mk ADD PRIMARY KEY (id);
SELECT mark, served FROM status('mk_pkey');
SELECT learnedbtree_adopt('mk_pkey');
BEGIN;
SAVEPOINT a;
SELECT learnedbtree_release('mk_pkey');
SELECT mark, served FROM status('mk_pkey');
ROLLBACK TO a;
SELECT mark, served FROM status('mk_pkey');
COMMIT;
DROP TABLE mk;
SELECT * FROM marks();

-- partitions, those to come included
CREATE TABLE mp (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE mp_1 PARTITION OF mp FOR VALUES FROM (0) TO (1000);
SELECT learnedbtree_adopt('mp_pkey');
CREATE TABLE mp_2 PARTITION OF mp FOR VALUES FROM (1000) TO (2000);
CREATE TABLE mp_3 (id int PRIMARY KEY, v int);
ALTER TABLE mp ATTACH PARTITION mp_3 FOR VALUES FROM (2000) TO (3000);
SELECT * FROM marks();
SELECT * FROM status('mp%');
SELECT learnedbtree_adopt('mp_2_pkey', learned => false);
SELECT * FROM status('mp%');
SELECT learnedbtree_release('mp_1_pkey');
SELECT learnedbtree_release('mp_2_pkey');
ALTER TABLE mp DETACH PARTITION mp_3;
SELECT * FROM status('mp%');
SELECT * FROM learnedbtree_release_all('mp*');
SELECT * FROM status('mp%');
DROP TABLE mp, mp_3;
SELECT * FROM marks();

-- an index of a materialized view; names that need quotes
CREATE MATERIALIZED VIEW mv AS SELECT i AS id FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX "M v ""i""" ON mv (id);
SELECT learnedbtree_adopt('"M v ""i"""');
ALTER MATERIALIZED VIEW mv RENAME TO "M V";
CREATE SCHEMA "mk.Schema";
ALTER MATERIALIZED VIEW "M V" SET SCHEMA "mk.Schema";
SELECT * FROM marks();
SELECT index, outcome, reason FROM learnedbtree_release_all('"mk.Schema"."M V"');
DROP SCHEMA "mk.Schema" CASCADE;

-- as a restore brings them: by name, before the index is there
INSERT INTO learnedbtree.marks (schemaname, tablename, indexname, max_error) VALUES ('public', 'mr', 'mr_pkey', 2);
SELECT * FROM marks();
CREATE TABLE mr (id int PRIMARY KEY);
SELECT * FROM marks();
SELECT mark, served FROM status('mr%');
INSERT INTO learnedbtree.marks (schemaname, tablename, indexname) VALUES ('public', 'mr', 'mr_lost');
SELECT * FROM learnedbtree_release_all('mr');
SELECT * FROM learnedbtree_release_all('mr');
DELETE FROM learnedbtree.marks;
DROP TABLE mr;

-- what a superuser has put in the table's place, or made of it, is not read and not written
CREATE TABLE mo (id int PRIMARY KEY);
SELECT learnedbtree_adopt('mo_pkey');
ALTER TABLE learnedbtree.marks RENAME TO marks_away;
SELECT served, reason FROM status('mo%');
SELECT learnedbtree_release('mo_pkey');
CREATE TABLE learnedbtree.marks (schemaname text, indexname text);
INSERT INTO learnedbtree.marks VALUES ('public', 'mo_pkey');
SELECT served, reason FROM status('mo%');
SELECT learnedbtree_release('mo_pkey');
SELECT * FROM mo WHERE id = 1;
DROP TABLE learnedbtree.marks;
CREATE VIEW learnedbtree.marks AS SELECT * FROM learnedbtree.marks_away;
SELECT served, reason FROM status('mo%');
SELECT learnedbtree_release('mo_pkey');
DROP VIEW learnedbtree.marks;
ALTER TABLE learnedbtree.marks_away RENAME TO marks;
SELECT mark, served, reason FROM status('mo%');
SELECT learnedbtree_release('mo_pkey');
DROP TABLE mo;

DROP FUNCTION marks, status;
