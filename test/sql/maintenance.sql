-- Commands that rebuild, move or empty an index, with its model going along.
SELECT use_am() AS am \gset

CREATE TABLE mnt (a int, b text);
INSERT INTO mnt SELECT mix(i) % 100000, 'row ' || i FROM generate_series(1, 10000) i;
CREATE INDEX mnt_a ON mnt USING :am (a);
ANALYZE mnt;
CREATE FUNCTION mnt_state(OUT state text, OUT leaves boolean, OUT compared text) LANGUAGE plpgsql AS $$
BEGIN	-- by name: the index may have another OID
    IF am() = 'btree' THEN	-- the first lookup of a new file trains
        PERFORM compare('mnt_a'::text::regclass, 'SELECT * FROM mnt WHERE a = 5');
    END IF;
    SELECT m.state, m.leaves > 20, compare('mnt_a'::text::regclass, 'SELECT * FROM mnt WHERE a BETWEEN 1000 AND 1500')
      INTO state, leaves, compared FROM learnedbtree_model('mnt_a'::text::regclass) m;
END $$;
SELECT * FROM mnt_state();

CREATE FUNCTION file_changed(command text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before oid := pg_relation_filenode('mnt_a');
BEGIN
    EXECUTE command;
    RETURN before <> pg_relation_filenode('mnt_a');
END $$;
SELECT file_changed('REINDEX INDEX mnt_a');
SELECT * FROM mnt_state();
SELECT file_changed('REINDEX TABLE mnt');
SELECT * FROM mnt_state();
SELECT file_changed('CLUSTER mnt USING mnt_a');
SELECT * FROM mnt_state();
SELECT bool_and(a >= before) AS clustered FROM (SELECT a, lag(a, 1, 0) OVER (ORDER BY ctid) AS before FROM mnt) s;
VACUUM FULL mnt;
SELECT * FROM mnt_state();
REINDEX INDEX CONCURRENTLY mnt_a;
SELECT * FROM mnt_state();
REINDEX TABLE CONCURRENTLY mnt;
SELECT * FROM mnt_state();
ALTER TABLE mnt ALTER a TYPE bigint;
SELECT * FROM mnt_state();
ALTER TABLE mnt ALTER b TYPE varchar;
SELECT * FROM mnt_state();
SELECT sound('mnt_a');
ALTER INDEX mnt_a RENAME TO mnt_renamed;
ALTER INDEX mnt_renamed RENAME TO mnt_a;
SELECT * FROM mnt_state();

-- what is rolled back leaves the index as it was, and its model is trained again
SELECT learnedbtree_model_memory() AS memory \gset
BEGIN;
REINDEX INDEX mnt_a;
TRUNCATE mnt;
SAVEPOINT s;
INSERT INTO mnt SELECT i, 'new' FROM generate_series(1, 3000) i;
TRUNCATE mnt;
ROLLBACK TO s;
ROLLBACK;
SELECT left(compare('mnt_a', 'SELECT * FROM mnt WHERE a = 7'), 4);
SELECT * FROM mnt_state();
SELECT learnedbtree_model_memory() = :memory AS memory_as_before;
-- ... whatever was looked up in between
BEGIN;
TRUNCATE mnt;
INSERT INTO mnt SELECT i, 'new' FROM generate_series(1, 3000) i;
SELECT compare('mnt_a', 'SELECT * FROM mnt WHERE a = 7');
SAVEPOINT s;
TRUNCATE mnt;
SELECT compare('mnt_a', 'SELECT * FROM mnt WHERE a = 7');
ROLLBACK TO s;
SELECT compare('mnt_a', 'SELECT * FROM mnt WHERE a = 7');
ROLLBACK;
SELECT left(compare('mnt_a', 'SELECT * FROM mnt WHERE a = 7'), 4);
SELECT state, compared FROM mnt_state();
SELECT learnedbtree_model_memory() = :memory AS memory_as_before;

-- models of superseded files go: rebuilding again and again takes no more memory
REINDEX INDEX mnt_a;
REINDEX INDEX mnt_a;
SELECT learnedbtree_model_memory() = :memory AS memory_as_before;
-- ... of several rebuilds in one transaction the last one's stays
SELECT count(*) FROM generate_series(1, 20) WHERE file_changed('REINDEX INDEX mnt_a') AND built('mnt_a'::text::regclass) IS NOT NULL;
SELECT state FROM learnedbtree_model('mnt_a');
SELECT learnedbtree_model_memory() = :memory AS memory_as_before;

-- TRUNCATE, and refill
TRUNCATE mnt;
SELECT state FROM learnedbtree_model(built('mnt_a'));
INSERT INTO mnt SELECT mix(i) % 100000, 'row ' || i FROM generate_series(1, 10000) i;
SET enable_seqscan = off;
SELECT count(*) FROM mnt WHERE a = 17;
RESET enable_seqscan;
SELECT * FROM mnt_state();
SELECT sound('mnt_a');

-- built concurrently
DROP FUNCTION mnt_state;
CREATE INDEX CONCURRENTLY mnt_cic ON mnt USING :am (a DESC);
SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 'mnt_cic'::regclass;
SELECT sound('mnt_cic');
DROP INDEX CONCURRENTLY mnt_a;
SELECT compare('mnt_cic', 'SELECT * FROM mnt WHERE a BETWEEN 1000 AND 1500');
DROP INDEX mnt_cic;
SELECT learnedbtree_model_memory() AS memory_after_drop;

-- a crash-safe table made unlogged and back
CREATE UNLOGGED TABLE mnt_un (a int);
INSERT INTO mnt_un SELECT i FROM generate_series(1, 5000) i;
CREATE INDEX mnt_un_i ON mnt_un USING :am (a);
SELECT compare('mnt_un_i', 'SELECT a FROM mnt_un WHERE a > 4000'), sound('mnt_un_i');
ALTER TABLE mnt_un SET LOGGED;
SELECT compare('mnt_un_i', 'SELECT a FROM mnt_un WHERE a > 4000'), sound('mnt_un_i');
ALTER TABLE mnt_un SET UNLOGGED;
DELETE FROM mnt_un WHERE a BETWEEN 4100 AND 4200;
SELECT compare('mnt_un_i', 'SELECT a FROM mnt_un WHERE a > 4000'), sound('mnt_un_i');
DROP TABLE mnt_un;

-- temporary tables: no model, the same answers
CREATE TEMP TABLE mnt_temp (a int) ON COMMIT DELETE ROWS;
CREATE INDEX mnt_temp_i ON mnt_temp USING :am (a);
BEGIN;
INSERT INTO mnt_temp SELECT i FROM generate_series(1, 5000) i;
SELECT left(compare('mnt_temp_i', 'SELECT a FROM mnt_temp WHERE a > 4000'), 4) AS answers, state, reason FROM learnedbtree_model('mnt_temp_i');
COMMIT;
SELECT left(compare('mnt_temp_i', 'SELECT a FROM mnt_temp WHERE a > 4000'), 4) AS answers;
SELECT check_file('mnt_temp_i');
SELECT model, separators FROM learnedbtree_check('mnt_temp_i');
DROP TABLE mnt_temp;

-- materialized views, another tablespace's worth of ALTERs, and a dropped schema
CREATE MATERIALIZED VIEW mnt_mv AS SELECT a FROM mnt;
CREATE INDEX mnt_mv_i ON mnt_mv USING :am (a);
REFRESH MATERIALIZED VIEW mnt_mv;
SELECT compare('mnt_mv_i', 'SELECT a FROM mnt_mv WHERE a < 500'), sound('mnt_mv_i');
DROP MATERIALIZED VIEW mnt_mv;
CREATE SCHEMA mnt_s;
CREATE TABLE mnt_s.t AS SELECT i AS a FROM generate_series(1, 5000) i;
CREATE INDEX t_i ON mnt_s.t USING :am (a);
SELECT sound('mnt_s.t_i');
DROP SCHEMA mnt_s CASCADE;
SELECT learnedbtree_model_memory() AS memory_after_drop;
DROP TABLE mnt;
DROP FUNCTION file_changed;

-- prepared transactions
CREATE TABLE mnt_pt (a int);
INSERT INTO mnt_pt SELECT i FROM generate_series(1, 2000) i;
BEGIN;
CREATE INDEX mnt_pt_i ON mnt_pt USING :am (a);
INSERT INTO mnt_pt VALUES (2001);
PREPARE TRANSACTION 'lbt';
COMMIT PREPARED 'lbt';
ANALYZE mnt_pt;
SELECT compare('mnt_pt_i', 'SELECT a FROM mnt_pt WHERE a > 1990'), sound('mnt_pt_i');
DROP TABLE mnt_pt;
