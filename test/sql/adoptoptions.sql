-- Options of ours on indexes of primary keys and unique constraints: never among the storage parameters.

\set SHOW_CONTEXT never
SET client_min_messages = error;	-- below 18 adopting warns
CREATE TABLE aop (id int PRIMARY KEY, u bigint UNIQUE, n int);
INSERT INTO aop SELECT i, mix(i), i FROM generate_series(1, 20000) i;
CREATE INDEX aop_n ON aop (n);
SELECT index, outcome FROM learnedbtree_adopt_all('aop', true);
ANALYZE aop;
RESET client_min_messages;

-- ALTER says where they belong; btree's own are set as ever, and those of other indexes, too
ALTER INDEX aop_pkey SET (max_error = 2);
ALTER INDEX aop_pkey SET (fillfactor = 70, learned = off);
ALTER TABLE aop_u_key SET (retrain_splits = 3);
ALTER INDEX aop_pkey SET (fillfactor = 70, deduplicate_items = off);
ALTER INDEX aop_pkey RESET (deduplicate_items, max_error);
ALTER INDEX aop_n SET (max_error = 2, learned = off);
SELECT relname, reloptions FROM pg_class WHERE relname IN ('aop_pkey', 'aop_u_key', 'aop_n') ORDER BY 1;

-- set and taken back, at once and for all sessions
SELECT compare('aop_pkey', 'SELECT id FROM aop WHERE id BETWEEN 700 AND 800');
SELECT learnedbtree_set('aop_pkey', 'learned', 'off');
SELECT state, reason FROM learnedbtree_model('aop_pkey');
SELECT compare('aop_pkey', 'SELECT id FROM aop WHERE id BETWEEN 700 AND 800');
\c -
SELECT state, reason FROM learnedbtree_model('aop_pkey');
SELECT compare('aop_pkey', 'SELECT id FROM aop WHERE id BETWEEN 700 AND 800');
BEGIN;
SELECT learnedbtree_set('aop_pkey', 'learned', NULL), learnedbtree_set('aop_pkey', 'max_error', '1'), learnedbtree_set('aop_pkey', 'retrain_splits', '12');
SELECT state FROM learnedbtree_model('aop_pkey');
TABLE learnedbtree_settings;
ROLLBACK;
TABLE learnedbtree_settings;
SELECT state FROM learnedbtree_model('aop_pkey');
SELECT learnedbtree_set('aop_pkey', 'learned', 'on');
SELECT state FROM learnedbtree_model('aop_pkey');
SELECT learnedbtree_set('aop_pkey', 'learned', NULL), learnedbtree_set('aop_pkey', 'max_error', NULL);
TABLE learnedbtree_settings;

-- the largest error that the index allows goes before the setting
SET learnedbtree.max_error = 64;
SELECT learnedbtree_set('aop_u_key', 'max_error', '1');
SELECT learnedbtree_train('aop_u_key');
SELECT knots AS knots_1, max_error <= 1 AS kept FROM learnedbtree_model('aop_u_key') \gset
SELECT learnedbtree_set('aop_u_key', 'max_error', NULL);
SELECT learnedbtree_train('aop_u_key');
SELECT :'kept' AS kept, knots <= :knots_1 AS not_more_knots FROM learnedbtree_model('aop_u_key');
RESET learnedbtree.max_error;

-- what is refused
SELECT learnedbtree_set('aop_pkey', 'max_error', '0');
SELECT learnedbtree_set('aop_pkey', 'max_error', 'many');
SELECT learnedbtree_set('aop_pkey', 'learned', 'perhaps');
SELECT learnedbtree_set('aop_pkey', 'fillfactor', '50');
SELECT learnedbtree_set('aop_pkey', NULL, '50');
SELECT learnedbtree_set('aop_n', 'max_error', '5');
SELECT learnedbtree_set('aop', 'max_error', '5');
SELECT learnedbtree_set(NULL, 'max_error', '5');
CREATE TABLE aop_ex (a int, EXCLUDE USING learnedbtree (a WITH =) WITH (max_error = 3));
SELECT learnedbtree_set('aop_ex_a_excl', 'max_error', '5');
ALTER INDEX aop_ex_a_excl SET (max_error = 5);
DROP TABLE aop_ex;
TABLE learnedbtree_settings;
CREATE ROLE aop_other;
SET ROLE aop_other;
INSERT INTO learnedbtree_settings VALUES ('aop', 'aop_pkey', false);
SELECT learnedbtree_set('aop_pkey', 'learned', 'off');
SELECT count(*) FROM learnedbtree_settings;
RESET ROLE;

-- an owner needs no more than the index
ALTER TABLE aop OWNER TO aop_other;
GRANT CREATE ON SCHEMA public TO aop_other;
SET ROLE aop_other;
SELECT learnedbtree_set('aop_pkey', 'retrain_splits', '5'), learnedbtree_set('aop_pkey', 'max_error', '3');
SELECT learnedbtree_set('aop_pkey', 'max_error', '7');
ALTER INDEX aop_pkey RENAME TO aop_id;
TABLE learnedbtree_settings;
ALTER TABLE aop RENAME CONSTRAINT aop_id TO aop_key;
ALTER TABLE aop RENAME TO aop_t;
TABLE learnedbtree_settings;
RESET ROLE;
REINDEX INDEX CONCURRENTLY aop_key;
TABLE learnedbtree_settings;
-- a constraint that the server makes anew is a btree's; its settings wait
ALTER TABLE aop_t ALTER id TYPE bigint;
SELECT reloptions, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'aop_key';
TABLE learnedbtree_settings;
SET client_min_messages = error;
SELECT learnedbtree_adopt('aop_key', true);
RESET client_min_messages;
SELECT learnedbtree_train('aop_key');
SELECT max_error <= 7 AS kept FROM learnedbtree_model('aop_key');
-- nothing of ours goes to tables that are made alike
SET client_min_messages = error;
CREATE TABLE aop_like (LIKE aop_t INCLUDING ALL);
RESET client_min_messages;
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'aop\_like\_%key%' ORDER BY 1;
DROP TABLE aop_like;

-- dropped with the constraint or table, by whomever
SET ROLE aop_other;
BEGIN;
ALTER TABLE aop_t DROP CONSTRAINT aop_key;
SELECT count(*) FROM learnedbtree_settings;
ROLLBACK;
BEGIN;
DROP TABLE aop_t;
SELECT count(*) FROM learnedbtree_settings;
ROLLBACK;
BEGIN;
ALTER TABLE aop_t DROP CONSTRAINT aop_u_key;
SELECT count(*) FROM learnedbtree_settings;
ROLLBACK;
RESET ROLE;
-- released: with a notice
SELECT learnedbtree_release('aop_key');
SELECT learnedbtree_release('aop_n');
SELECT relname, reloptions FROM pg_class WHERE relname IN ('aop_key', 'aop_u_key', 'aop_n') ORDER BY 1;
TABLE learnedbtree_settings;
DROP TABLE aop_t;

-- partitioned: each partition's index has its own
CREATE TABLE aop_p (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE aop_p1 PARTITION OF aop_p FOR VALUES FROM (0) TO (100000);
SET client_min_messages = error;
SELECT learnedbtree_adopt('aop_p_pkey', true);
INSERT INTO aop_p SELECT generate_series(1, 5000);
CREATE TABLE aop_p2 PARTITION OF aop_p FOR VALUES FROM (100000) TO (200000);
RESET client_min_messages;
SELECT learnedbtree_set('aop_p_pkey', 'max_error', '5');
SELECT learnedbtree_set('aop_p1_pkey', 'max_error', '5'), learnedbtree_set('aop_p2_pkey', 'learned', 'off');
ALTER INDEX aop_p2_pkey SET (max_error = 5);
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'aop\_p%key' ORDER BY 1;
SELECT * FROM learnedbtree_settings ORDER BY indexname;
SELECT learnedbtree_release('aop_p_pkey');
TABLE learnedbtree_settings;
DROP TABLE aop_p;
REVOKE CREATE ON SCHEMA public FROM aop_other;
-- A row that waits for its index stays when an index of that name is dropped in another schema.
CREATE SCHEMA aop_s;
CREATE TABLE aop_w (a int);
CREATE TABLE aop_s.w (a int CONSTRAINT aop_w_pkey PRIMARY KEY);
INSERT INTO learnedbtree_settings VALUES ('aop_w', 'aop_w_pkey', false);	-- as a restore does
DROP TABLE aop_s.w;
SELECT * FROM learnedbtree_settings WHERE relid = 'aop_w'::regclass;
ALTER TABLE aop_w ADD CONSTRAINT aop_w_pkey PRIMARY KEY (a);
DROP TABLE aop_w;
SELECT count(*) FROM learnedbtree_settings WHERE indexname = 'aop_w_pkey';
DROP SCHEMA aop_s;
DROP ROLE aop_other;
