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

DROP FUNCTION learnedbtree_check(regclass, boolean, boolean);
CREATE FUNCTION learnedbtree_check(index regclass,
        heapallindexed boolean DEFAULT true, rootdescend boolean DEFAULT true,
        OUT model text, OUT image text,
        OUT separators bigint, OUT landed bigint, OUT moved_right bigint, OUT fallbacks bigint,
        OUT fallback_block bigint, OUT fallback_page bigint, OUT fallback_low bigint, OUT fallback_high bigint)
    AS 'MODULE_PATHNAME', 'learnedbtree_check_model' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_check(regclass, boolean, boolean) IS
    'check the index file with amcheck''s bt_index_parent_check, and the model against the tree; an error tells what is wrong';

CREATE FUNCTION learnedbtree_histogram(index regclass, buckets integer DEFAULT 20,
        OUT bucket integer, OUT first_slot bigint, OUT leaves bigint, OUT min_code numeric,
        OUT knots integer, OUT ties bigint,
        OUT mean_error double precision, OUT max_error double precision, OUT bar text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_histogram(regclass, integer) IS
    'the model in parts of equally many leaves, in key order: where each begins, and how well the spline fits';

-- ---- what scans did ----

CREATE FUNCTION learnedbtree_last_scan(OUT scan integer, OUT index regclass,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION learnedbtree_last_scan() IS
    'what each learnedbtree index scan did in this session''s last instrumented statement that had any';

-- ---- statistics ----

-- Replaced, not dropped: users' objects may depend on the view.
ALTER FUNCTION learnedbtree_stat_get(oid) RENAME TO learnedbtree_stat_get_1_0;
CREATE FUNCTION learnedbtree_stat_get(index oid,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint,
        OUT inserts bigint, OUT inserts_placed bigint, OUT inserts_moved bigint,
        OUT inserts_full bigint, OUT inserts_equal bigint, OUT inserts_fallback bigint,
        OUT splits bigint, OUT pages_deleted bigint,
        OUT trainings bigint, OUT last_trained timestamptz, OUT stats_reset timestamptz)
    AS 'MODULE_PATHNAME', 'learnedbtree_stat_get_1_1' LANGUAGE C STRICT VOLATILE;
CREATE OR REPLACE VIEW learnedbtree_stat AS
    SELECT i.indexrelid, i.indrelid AS relid, n.nspname AS schemaname, t.relname,
           c.relname AS indexrelname, s.*
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
      JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL learnedbtree_stat_get(c.oid) s
     WHERE a.amname = 'learnedbtree' AND c.relkind = 'i';
DROP FUNCTION learnedbtree_stat_get_1_0(oid);
