\echo Use "ALTER EXTENSION learnedbtree UPDATE TO '1.1'" to load this file. \quit

-- ---- taking over btree indexes ----

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

-- ---- statistics ----
