-- Alias operator classes: one for every operator class of btree, in btree's own operator families.

SELECT amname, amtype, amhandler FROM pg_am WHERE amname = 'learnedbtree';

-- none is missing, and what they say is what btree's say
SELECT count(*) AS missing
  FROM pg_opclass b JOIN pg_am ba ON ba.oid = b.opcmethod AND ba.amname = 'btree'
 WHERE NOT EXISTS (
       SELECT FROM pg_opclass l JOIN pg_am la ON la.oid = l.opcmethod AND la.amname = 'learnedbtree'
        WHERE l.opcname = b.opcname AND l.opcfamily = b.opcfamily AND l.opcintype = b.opcintype
          AND l.opcdefault = b.opcdefault AND l.opckeytype = b.opckeytype);
SELECT count(*) AS own_families FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod WHERE a.amname = 'learnedbtree';
SELECT learnedbtree_sync_opclasses() AS made_by_a_second_call;

-- aliases belong to the access method, and are no members of the extension
SELECT d.deptype, d.refclassid::regclass, count(*) = (SELECT count(*) FROM pg_opclass l JOIN pg_am a ON a.oid = l.opcmethod
                                                       WHERE a.amname = 'learnedbtree') AS all_of_them
  FROM pg_depend d JOIN pg_opclass l ON l.oid = d.objid JOIN pg_am a ON a.oid = l.opcmethod
 WHERE d.classid = 'pg_opclass'::regclass AND a.amname = 'learnedbtree'
 GROUP BY 1, 2 ORDER BY 2;

-- a type that comes later is indexable at once, and goes without leaving anything
CREATE EXTENSION citext;
CREATE TABLE cat_citext (c citext);
CREATE INDEX cat_citext_i ON cat_citext USING learnedbtree (c);
INSERT INTO cat_citext VALUES ('One'), ('two');
SET enable_seqscan = off;
SELECT c FROM cat_citext WHERE c = 'TWO';
DROP TABLE cat_citext;
DROP EXTENSION citext;
SELECT count(*) AS dangling FROM pg_opclass l JOIN pg_am a ON a.oid = l.opcmethod
 WHERE amname = 'learnedbtree' AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid = l.opcintype);

-- an operator class made by hand, in a schema of its own
CREATE SCHEMA cat_ops;
CREATE FUNCTION cat_ops.backwards(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS cat_ops.int4_backwards FOR TYPE int USING btree AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 cat_ops.backwards(int, int);
CREATE TABLE cat_own (a int);
INSERT INTO cat_own SELECT i FROM generate_series(1, 3000) i;
CREATE INDEX cat_own_i ON cat_own USING learnedbtree (a int4_backwards);
ANALYZE cat_own;
SELECT state FROM learnedbtree_model('cat_own_i');
SELECT compare('cat_own_i', 'SELECT a FROM cat_own WHERE a BETWEEN 100 AND 120');
DROP TABLE cat_own;
DROP SCHEMA cat_ops CASCADE;

-- what the planner knows of btree's families it knows of ours
CREATE TABLE cat_p (id int PRIMARY KEY, t text COLLATE "C", p text, n inet);
INSERT INTO cat_p SELECT i, 'row ' || i, 'row ' || i, '10.0.0.0'::inet + i FROM generate_series(1, 5000) i;
CREATE INDEX cat_p_t ON cat_p USING learnedbtree (t);
CREATE INDEX cat_p_p ON cat_p USING learnedbtree (p text_pattern_ops);
CREATE INDEX cat_p_n ON cat_p USING learnedbtree (n);
ANALYZE cat_p;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM cat_p WHERE t LIKE 'row 12%';
EXPLAIN (COSTS OFF) SELECT * FROM cat_p WHERE p LIKE 'row 12%';
EXPLAIN (COSTS OFF) SELECT * FROM cat_p WHERE n << '10.0.1.0/24';
RESET enable_bitmapscan;
SELECT compare('cat_p_t', $$SELECT id FROM cat_p WHERE t LIKE 'row 12%'$$),
       compare('cat_p_p', $$SELECT id FROM cat_p WHERE p LIKE 'row 12%'$$),
       compare('cat_p_n', $$SELECT id FROM cat_p WHERE n << '10.0.1.0/24'$$);

-- join removal by a unique index, sort order by an index, min and max
CREATE TABLE cat_u (id int);
INSERT INTO cat_u SELECT i FROM generate_series(1, 5000) i;
SET client_min_messages = error;	-- ON CONFLICT below 18 is another test's
CREATE UNIQUE INDEX cat_u_id ON cat_u USING learnedbtree (id);
RESET client_min_messages;
ANALYZE cat_u;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT p.id FROM cat_p p LEFT JOIN cat_u u ON u.id = p.id;
EXPLAIN (COSTS OFF) SELECT id FROM cat_u ORDER BY id DESC LIMIT 1;
SELECT min(id), max(id) FROM cat_u;
RESET enable_bitmapscan;
RESET enable_seqscan;

-- LIKE INCLUDING ALL carries the access method along
CREATE TABLE cat_like (LIKE cat_p INCLUDING ALL);
SELECT a.amname, count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
 WHERE i.indrelid = 'cat_like'::regclass GROUP BY 1 ORDER BY 1;
SELECT pg_get_indexdef('cat_p_p'::regclass);

-- the extension stays as long as an index needs it
DROP ACCESS METHOD learnedbtree;
DROP TABLE cat_like, cat_u, cat_p;
