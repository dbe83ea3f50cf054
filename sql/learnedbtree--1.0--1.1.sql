\echo Use "ALTER EXTENSION learnedbtree UPDATE TO '1.1'" to load this file. \quit

-- ---- taking over btree indexes ----

CREATE FUNCTION learnedbtree_adopt(index regclass, force boolean DEFAULT false) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_adopt(regclass, boolean) IS
    'turn a btree index into a learnedbtree index, in place; with force also where this server version would lose something by it';

CREATE FUNCTION learnedbtree_release(index regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_release(regclass) IS
    'turn a learnedbtree index into a btree index, in place';

CREATE FUNCTION learnedbtree_adopt_all(tables text DEFAULT '*', force boolean DEFAULT false,
        OUT index regclass, OUT outcome text, OUT reason text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_adopt_all(text, boolean) IS
    'turn the btree indexes of tables that a pattern names, as in psql, into learnedbtree indexes; one row for each index';

CREATE FUNCTION learnedbtree_release_all(tables text DEFAULT '*',
        OUT index regclass, OUT outcome text, OUT reason text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_release_all(text) IS
    'turn the learnedbtree indexes of tables that a pattern names, as in psql, into btree indexes; one row for each index';

-- Options of learnedbtree for indexes of primary keys and unique constraints, which cannot keep them in their storage
-- parameters: a dump writes those into the constraint, and btree would refuse them.  Written by learnedbtree_set() only.
CREATE TABLE learnedbtree_settings (
    relid regclass,
    indexname name,
    learned boolean,
    max_error integer,
    retrain_splits integer,
    PRIMARY KEY (relid, indexname));
GRANT SELECT ON learnedbtree_settings TO PUBLIC;
COMMENT ON TABLE learnedbtree_settings IS
    'options of learnedbtree indexes of primary keys and unique constraints; see learnedbtree_set()';
SELECT pg_catalog.pg_extension_config_dump('learnedbtree_settings',
    'WHERE EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = relid)');

CREATE FUNCTION learnedbtree_set(index regclass, option text, value text) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_set(regclass, text, text) IS
    'set an option of the index of a primary key or unique constraint, or with NULL take it back; of other indexes ALTER INDEX does';

-- ---- inspection ----

-- ---- what scans did ----

-- ---- statistics ----
