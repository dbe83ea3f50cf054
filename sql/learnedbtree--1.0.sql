\echo Use "CREATE EXTENSION learnedbtree" to load this file. \quit

CREATE FUNCTION learnedbtree_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD learnedbtree TYPE INDEX HANDLER learnedbtree_handler;
COMMENT ON ACCESS METHOD learnedbtree IS 'B+-tree whose leaves are found through a learned model';

-- ---- operator classes ----

CREATE FUNCTION learnedbtree_sync_opclasses() RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
REVOKE ALL ON FUNCTION learnedbtree_sync_opclasses() FROM PUBLIC;
COMMENT ON FUNCTION learnedbtree_sync_opclasses() IS
    'give every btree operator class that lacks one an alias for learnedbtree; returns how many were made';

SELECT learnedbtree_sync_opclasses();

-- Types that other extensions bring are indexable at once.
CREATE FUNCTION learnedbtree_on_ddl() RETURNS event_trigger
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE EVENT TRIGGER learnedbtree_sync_opclasses ON ddl_command_end
    WHEN TAG IN ('CREATE EXTENSION', 'ALTER EXTENSION', 'CREATE OPERATOR CLASS')
    EXECUTE FUNCTION learnedbtree_on_ddl();

-- A dropped index takes its model along, whichever session drops it.
CREATE FUNCTION learnedbtree_on_drop() RETURNS event_trigger
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE EVENT TRIGGER learnedbtree_forget_models ON sql_drop
    EXECUTE FUNCTION learnedbtree_on_drop();

-- ---- training and inspection ----

CREATE FUNCTION learnedbtree_train(index regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_train(regclass) IS 'train the model of a learnedbtree index now';

CREATE FUNCTION learnedbtree_model(index regclass,
        OUT state text, OUT reason text,
        OUT leaves bigint, OUT knots integer,
        OUT max_error double precision, OUT mean_error double precision,
        OUT bytes bigint, OUT key_code text, OUT segments bigint, OUT ties bigint,
        OUT trained_at timestamptz, OUT training_ms double precision, OUT source text,
        OUT splits_since bigint, OUT deleted_since bigint, OUT lookups_since bigint,
        OUT moved_since bigint, OUT fallbacks_since bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_model(regclass) IS
    'state and measures of an index''s model, and what happened since it was trained; errors are in leaves';

CREATE FUNCTION learnedbtree_knots(index regclass, OUT code numeric, OUT slot bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_knots(regclass) IS
    'the spline''s knots: key code, and number of leaves to the left of it';

CREATE FUNCTION learnedbtree_predict(index regclass, VARIADIC key "any",
        OUT predicted_block bigint, OUT found_block bigint, OUT hops integer)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_predict(regclass, VARIADIC "any") IS
    'leaf block the model predicts for a key, block the descent finds, steps right between them (NULL: not proven)';

CREATE FUNCTION learnedbtree_key_code(index regclass, VARIADIC key "any") RETURNS numeric
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_key_code(regclass, VARIADIC "any") IS
    'the number that the model of an index makes of a key, in the order of the index; different keys may share one';

CREATE FUNCTION learnedbtree_check(index regclass,
        heapallindexed boolean DEFAULT true, rootdescend boolean DEFAULT true) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_check(regclass, boolean, boolean) IS
    'check the index file with amcheck''s bt_index_parent_check; an error tells what is wrong';

CREATE FUNCTION learnedbtree_model_memory() RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION learnedbtree_model_memory() IS 'bytes of shared memory taken by all models';

-- ---- statistics ----

CREATE FUNCTION learnedbtree_stat_get(index oid,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint,
        OUT inserts bigint, OUT inserts_placed bigint, OUT inserts_moved bigint,
        OUT inserts_full bigint, OUT inserts_equal bigint, OUT inserts_fallback bigint,
        OUT splits bigint, OUT pages_deleted bigint,
        OUT trainings bigint, OUT last_trained timestamptz)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE VIEW learnedbtree_stat AS
    SELECT i.indexrelid, i.indrelid AS relid, n.nspname AS schemaname, t.relname,
           c.relname AS indexrelname, s.*
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
      JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL learnedbtree_stat_get(c.oid) s
     WHERE a.amname = 'learnedbtree' AND c.relkind = 'i';
GRANT SELECT ON learnedbtree_stat TO PUBLIC;
COMMENT ON VIEW learnedbtree_stat IS
    'what lookups through learnedbtree indexes of this database did, since the last reset';

CREATE FUNCTION learnedbtree_stat_reset(index regclass DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
REVOKE ALL ON FUNCTION learnedbtree_stat_reset(regclass) FROM PUBLIC;
COMMENT ON FUNCTION learnedbtree_stat_reset(regclass) IS
    'set the counts of one index, or of all indexes of this database, back to zero';
