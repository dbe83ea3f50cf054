-- learnedbtree_splits(): keys that cut an index into parts of about equal size.
SELECT use_am() AS am \gset

-- (where the server has ICU)
SELECT quote_ident(coalesce(min(collname), 'C')) AS collation FROM pg_collation WHERE collname = 'de-x-icu' \gset
CREATE TABLE spl (id bigint, u uuid, t text COLLATE :collation, a int, b text, n int, v varchar(20), j jsonb, nm name);
INSERT INTO spl SELECT i, md5(i::text)::uuid, initcap(md5(mix(i)::text)), i % 100, md5(i::text), NULLIF(i % 10, 3) * (i % 1000), 'v' || i, to_jsonb(i), 'n' || i
  FROM generate_series(1, 30000) i;
CREATE INDEX spl_id ON spl USING :am (id);
CREATE INDEX spl_u ON spl USING :am (u) INCLUDE (a);
CREATE INDEX spl_t ON spl USING :am (t);
CREATE INDEX spl_ab ON spl USING :am (a, b);
CREATE INDEX spl_down ON spl USING :am (id DESC);
CREATE INDEX spl_n ON spl USING :am (n, id);
CREATE INDEX spl_n_first ON spl USING :am (n DESC NULLS FIRST);
CREATE INDEX spl_v ON spl USING :am (v);
CREATE INDEX spl_j ON spl USING :am (j);
CREATE INDEX spl_nm ON spl USING :am (nm);
CREATE INDEX spl_lower ON spl USING :am (lower(b), (id + 1));
CREATE INDEX spl_part ON spl USING :am (id) WHERE a < 50;
CREATE INDEX spl_few ON spl USING :am ((id / 10000));
ANALYZE spl;

-- Boundaries; are they in the order of the index; are the parts together all that the index has; the smallest and the largest part, in percent of their mean.
CREATE FUNCTION split(index regclass, definition text, keys text, parts int, condition text DEFAULT 'true',
                      OUT boundaries bigint, OUT in_order boolean, OUT complete boolean, OUT smallest int, OUT largest int) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($q$
        WITH split AS MATERIALIZED (SELECT row_number() OVER () AS part, s.* FROM learnedbtree_splits(%1$L, %2$s) AS s(%3$s)),
             part AS (SELECT (SELECT count(*) FROM split s WHERE (%4$s) <= (%5$s)) AS part, count(*) AS size FROM spl i WHERE %6$s GROUP BY 1)
        SELECT (SELECT count(*) FROM split), count(DISTINCT part) = count(*) AND count(*) = (SELECT count(*) + 1 FROM split),
               sum(size) = (SELECT count(*) FROM spl i WHERE %6$s), min(size) * 100 / avg(size), max(size) * 100 / avg(size) FROM part $q$,
        index, parts, definition, regexp_replace(keys, '(\w+)', 's.\1', 'g'), regexp_replace(keys, '(\w+)', 'i.\1', 'g'), condition)
       INTO boundaries, in_order, complete, smallest, largest;
END $$;
\set text 'text COLLATE ' :collation
SELECT i, s.boundaries, s.in_order, s.complete, s.smallest > 80 AND s.largest < 120 AS equal
  FROM (VALUES ('spl_id', 'id bigint', 'id'), ('spl_u', 'u uuid', 'u'), ('spl_t', 't ' || :'text', 't'), ('spl_ab', 'a int, b text', 'a, b'),
               ('spl_ab', 'a int', 'a'), ('spl_down', 'id bigint', 'id'), ('spl_v', 'v varchar', 'v'), ('spl_v', 'v text', 'v'), ('spl_j', 'j jsonb', 'j'), ('spl_nm', 'nm name', 'nm')) i (i, d, k),
       split(i, d, k, 8) s;
SELECT parts, s.boundaries, s.complete FROM unnest('{1, 2, 3, 50}'::int[]) parts, split('spl_id', 'id bigint', 'id', parts) s;
SELECT boundaries, in_order, complete, smallest > 80 AND largest < 120 AS equal FROM split('spl_part', 'id bigint', 'id', 4, 'a < 50');

-- in the order of the index
SELECT count(*), bool_and(down) AS down FROM (SELECT id < lag(id) OVER () AS down FROM learnedbtree_splits('spl_down', 4) AS s(id bigint)) s;
-- by any expression of the type
SELECT count(*), bool_and(s.e ~ '^[0-9a-f]{32}$') FROM learnedbtree_splits('spl_lower', 4) AS s(e text, plus bigint);
-- boundaries have no NULLs, and each is there once
SELECT count(*) > 10 AS many, count(n) = count(*) AS known, count(DISTINCT n) = count(*) AS apart FROM learnedbtree_splits('spl_n', 20) AS s(n int);
SELECT count(*) > 10 AS many, count(n) = count(*) AS known, bool_and(up) AS up FROM (SELECT n, (n, id) > lag((n, id)) OVER () AS up FROM learnedbtree_splits('spl_n', 20) AS s(n int, id bigint)) s;
SELECT count(*) > 10 AS many, count(n) = count(*) AS known, count(DISTINCT n) = count(*) AS apart FROM learnedbtree_splits('spl_n_first', 20) AS s(n int);
SELECT * FROM learnedbtree_splits('spl_few', 20) AS s(tenth bigint);

-- no more than the leaves that there are, and none in an index of one leaf or none
SELECT count(*) = learned.leaves - 1 AS all, count(DISTINCT id) = count(*) AS apart
  FROM learnedbtree_model('spl_id') learned, learnedbtree_splits('spl_id', 2147483647) AS s(id bigint) GROUP BY learned.leaves;
CREATE TABLE spl_small (a int);
CREATE INDEX spl_small_a ON spl_small USING :am (a);
SELECT * FROM learnedbtree_splits('spl_small_a', 8) AS s(a int);
INSERT INTO spl_small VALUES (1), (2);
SELECT * FROM learnedbtree_splits('spl_small_a', 8) AS s(a int);

-- the same without the model, and where the index is not served
CREATE FUNCTION boundaries() RETURNS bigint[] LANGUAGE sql AS $$ SELECT array_agg(id) FROM learnedbtree_splits('spl_id', 8) AS s(id bigint) $$;
SELECT boundaries() AS before \gset
SET learnedbtree.enable = off;
SET learnedbtree.btree_indexes = 'none';
SELECT boundaries() = :'before' AS same;
RESET learnedbtree.enable;
SELECT FROM use_am();
-- leaves that VACUUM has deleted or emptied
DELETE FROM spl WHERE id BETWEEN 3000 AND 20000 OR id > 29000;
VACUUM spl;
SELECT boundaries, in_order, complete, smallest > 80 AND largest < 120 AS equal FROM split('spl_id', 'id bigint', 'id', 4);
SELECT boundaries, complete FROM split('spl_u', 'u uuid', 'u', 4);

-- what is refused
CREATE FUNCTION refused(call text) RETURNS text LANGUAGE sql AS $$ SELECT outcome('FROM learnedbtree_splits(' || call, 'accepted') $$;
SELECT c, refused(c) FROM unnest(ARRAY['''spl_id'', 0) AS s(id bigint)', '''spl_id'', -5) AS s(id bigint)', 'NULL, 8) AS s(id bigint)', '''spl_id'', 8)', '''spl_id'', 8) AS s(id int)',
    '''spl_ab'', 8) AS s(a int, b text, c int)', '''spl_ab'', 8) AS s(b text)', '''spl_u'', 8) AS s(u uuid, a int)', '''spl_nm'', 8) AS s(nm cstring)',
    '''spl'', 8) AS s(id bigint)', '''pg_class_oid_index'', 8) AS s(o oid)']) c;
SELECT learnedbtree_splits('spl_id', 2);

-- who may see keys: who may read these columns, or all of them where others have a part in the index
CREATE ROLE spl_other;
SET ROLE spl_other;
CREATE FUNCTION pg_temp.rights() RETURNS TABLE (call text, outcome text) LANGUAGE sql AS $$
    SELECT c, refused(c) FROM unnest(ARRAY['''spl_id'', 4) AS s(id bigint)', '''spl_ab'', 4) AS s(a int)', '''spl_ab'', 4) AS s(a int, b text)', '''spl_u'', 4) AS s(u uuid)',
        '''spl_part'', 4) AS s(id bigint)', '''spl_lower'', 4) AS s(e text)']) c
$$;
SELECT * FROM pg_temp.rights();
RESET ROLE;
GRANT SELECT (id, a) ON spl TO spl_other;
SET ROLE spl_other;
SELECT * FROM pg_temp.rights();
RESET ROLE;
GRANT SELECT ON spl TO spl_other;
SET ROLE spl_other;
SELECT * FROM pg_temp.rights() WHERE outcome <> 'accepted';
RESET ROLE;
ALTER TABLE spl ENABLE ROW LEVEL SECURITY;
SET ROLE spl_other;
SELECT * FROM pg_temp.rights() LIMIT 1;
SET row_security = off;
SELECT * FROM pg_temp.rights() LIMIT 1;
RESET row_security;
RESET ROLE;
SELECT refused('''spl_id'', 4) AS s(id bigint)');
DROP OWNED BY spl_other;
DROP ROLE spl_other;
DROP TABLE spl, spl_small;
DROP FUNCTION split, boundaries, refused;
