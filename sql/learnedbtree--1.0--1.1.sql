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
