-- Partitioned tables: indexes of all partitions, attach and detach.
SELECT use_am() AS am \gset

CREATE TABLE par (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE par_1 PARTITION OF par FOR VALUES FROM (0) TO (5000);
CREATE TABLE par_2 PARTITION OF par FOR VALUES FROM (5000) TO (10000);
CREATE INDEX par_i ON par USING :am (a, b);
INSERT INTO par SELECT i, mix(i) % 100 FROM generate_series(0, 9999) i;
ANALYZE par;
SELECT c.relname, a.amname = am() AS of_parent, c.relkind FROM pg_class c JOIN pg_am a ON a.oid = c.relam
 WHERE c.relname LIKE 'par\_%' AND a.amname <> 'heap' ORDER BY 1;
SELECT learnedbtree_model('par_i');
SELECT compare('par_1_a_b_idx', 'SELECT * FROM par_1 WHERE a BETWEEN 100 AND 200');

-- a table with an index of the same kind brings it along; one without gets a new one; one of another access method too
SELECT CASE :'am' WHEN 'btree' THEN 'learnedbtree' ELSE 'btree' END AS other \gset
CREATE TABLE par_3 (a int, b int);
INSERT INTO par_3 SELECT i, i FROM generate_series(10000, 14999) i;
CREATE INDEX par_3_mine ON par_3 USING :am (a, b);
ALTER TABLE par ATTACH PARTITION par_3 FOR VALUES FROM (10000) TO (15000);
CREATE TABLE par_4 (a int, b int);
INSERT INTO par_4 SELECT i, i FROM generate_series(15000, 19999) i;
CREATE INDEX par_4_other ON par_4 USING :other (a, b);
ALTER TABLE par ATTACH PARTITION par_4 FOR VALUES FROM (15000) TO (20000);
ANALYZE par;
SELECT inhrelid::regclass, amname = am() AS of_parent FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_am a ON a.oid = c.relam
 WHERE inhparent = 'par_i'::regclass ORDER BY inhrelid::regclass::text COLLATE "C";
SELECT compare('par_3_mine', 'SELECT * FROM par_3 WHERE a = 12345');
SELECT compare('par_4_a_b_idx', 'SELECT * FROM par_4 WHERE a = 17000');
SET enable_seqscan = off;
SELECT count(*), sum(b) FROM par WHERE a BETWEEN 9990 AND 10010;
SELECT a FROM par WHERE a > 4995 ORDER BY a LIMIT 10;
SELECT a FROM par WHERE a < 5003 ORDER BY a DESC LIMIT 6;
RESET enable_seqscan;

-- rows that move between partitions
UPDATE par SET a = a + 5000 WHERE a BETWEEN 4000 AND 4100;
SELECT learnedbtree_train('par_2_a_b_idx');
SELECT compare('par_2_a_b_idx', 'SELECT a FROM par_2 WHERE a BETWEEN 9000 AND 9100');

-- detach keeps the index, attach takes it again
ALTER TABLE par DETACH PARTITION par_3;
SELECT compare('par_3_mine', 'SELECT * FROM par_3 WHERE a = 12345');
ALTER TABLE par ATTACH PARTITION par_3 FOR VALUES FROM (10000) TO (15000);
ALTER TABLE par DETACH PARTITION par_4 CONCURRENTLY;
DROP TABLE par_4;

-- index on the parent only, attached piece by piece
CREATE INDEX par_only ON ONLY par USING :am (b);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'par_only'::regclass;
CREATE INDEX par_1_b ON par_1 USING :am (b);
CREATE INDEX par_2_b ON par_2 USING :am (b);
CREATE INDEX par_3_b ON par_3 USING :am (b);
ALTER INDEX par_only ATTACH PARTITION par_1_b;
ALTER INDEX par_only ATTACH PARTITION par_2_b;
ALTER INDEX par_only ATTACH PARTITION par_3_b;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'par_only'::regclass;
SELECT relname, sound(oid) FROM pg_class WHERE relkind = 'i' AND relname LIKE 'par\_%' ORDER BY 1;
REINDEX TABLE par;
REINDEX INDEX CONCURRENTLY par_i;
SELECT relname, sound(built(oid)) FROM pg_class WHERE relkind = 'i' AND relname LIKE 'par\_%' ORDER BY 1;
DROP TABLE par;
