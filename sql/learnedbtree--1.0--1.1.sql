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

-- ---- inspection ----

-- ---- what scans did ----

-- ---- statistics ----
