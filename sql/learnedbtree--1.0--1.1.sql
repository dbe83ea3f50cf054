\echo Use "ALTER EXTENSION learnedbtree UPDATE TO '1.1'" to load this file. \quit

-- ---- taking over btree indexes ----

-- ---- inspection ----

-- ---- what scans did ----

CREATE FUNCTION learnedbtree_last_scan(OUT scan integer, OUT index regclass,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint, OUT without_parallel_workers boolean)
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
