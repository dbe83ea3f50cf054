-- UNIQUE in all its forms.  (The warning about ON CONFLICT below 18 is limits.sql's.)
SELECT use_am() AS am \gset

SET client_min_messages = error;
\set VERBOSITY terse

CREATE TABLE uni (a int, b int);
CREATE UNIQUE INDEX uni_a ON uni USING :am (a);
INSERT INTO uni SELECT i, i FROM generate_series(1, 5000) i;
INSERT INTO uni VALUES (4711, 0);
INSERT INTO uni VALUES (NULL, 1), (NULL, 2);
BEGIN;
DELETE FROM uni WHERE a = 4711;
INSERT INTO uni VALUES (4711, -1);
COMMIT;
INSERT INTO uni VALUES (4711, 0);
UPDATE uni SET a = 5 WHERE a = 6;
UPDATE uni SET a = 60000 WHERE a = 6;
INSERT INTO uni VALUES (6, 6);
SELECT learnedbtree_train('uni_a');
SELECT * FROM compare_all('uni_a', 'SELECT * FROM uni WHERE $1', ARRAY['a = 4711', 'a = 6', 'a = 60000', 'a > 4990', 'a < 10']);
SELECT sound('uni_a');
-- duplicates in the table
INSERT INTO uni VALUES (7000, 1), (7001, 1);
CREATE UNIQUE INDEX uni_b ON uni USING :am (b);
CREATE UNIQUE INDEX CONCURRENTLY uni_b ON uni USING :am (b);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'uni_b'::regclass;
DROP INDEX uni_b;
DROP TABLE uni;

-- several columns; key and payload
CREATE TABLE uni2 (a int, b int, c text);
CREATE UNIQUE INDEX uni2_i ON uni2 USING :am (a, b DESC) INCLUDE (c);
INSERT INTO uni2 SELECT i / 10, i % 10, 'x' FROM generate_series(0, 4999) i;
INSERT INTO uni2 VALUES (17, 3, 'y');
INSERT INTO uni2 VALUES (17, 30, 'y'), (17, NULL, 'y'), (17, NULL, 'y');
SELECT * FROM compare_all('uni2_i', 'SELECT * FROM uni2 WHERE $1', ARRAY['a = 17', 'a = 17 AND b = 3', 'a = 17 AND b < 5']);
SELECT sound('uni2_i');
DROP TABLE uni2;

-- NULLS NOT DISTINCT
CREATE TABLE uni3 (a int);
CREATE UNIQUE INDEX uni3_i ON uni3 USING :am (a) NULLS NOT DISTINCT;
INSERT INTO uni3 SELECT i FROM generate_series(1, 3000) i;
INSERT INTO uni3 VALUES (NULL);
INSERT INTO uni3 VALUES (NULL);
INSERT INTO uni3 VALUES (1);
SELECT count(*) FROM uni3 WHERE a IS NULL;
SELECT sound('uni3_i');
DROP TABLE uni3;

-- a unique constraint, deferrable too, comes with btree only; an exclusion constraint can be ours
CREATE TABLE uni4 (a int, b int, EXCLUDE USING :am (a WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO uni4 SELECT i, i FROM generate_series(1, 2000) i;
BEGIN;
INSERT INTO uni4 VALUES (7, 7);
DELETE FROM uni4 WHERE a = 7 AND b = 7 AND ctid < '(5,1)';
INSERT INTO uni4 VALUES (7, 8);
DELETE FROM uni4 WHERE a = 7 AND b = 7;
COMMIT;
BEGIN;
INSERT INTO uni4 VALUES (9, 9);
COMMIT;
SELECT count(*), count(DISTINCT a) FROM uni4;
SELECT sound('uni4_a_excl');
DROP TABLE uni4;

-- the key moved by updates within one statement
CREATE TABLE uni5 (a int);
CREATE UNIQUE INDEX uni5_i ON uni5 USING :am (a);
INSERT INTO uni5 SELECT i FROM generate_series(1, 1000) i;
UPDATE uni5 SET a = a + 5000;
UPDATE uni5 SET a = a - 5000;
SELECT sum(a), count(*) FROM uni5;
SELECT compare('uni5_i', 'SELECT a FROM uni5 WHERE a BETWEEN 100 AND 600');
SELECT sound('uni5_i');
DROP TABLE uni5;
