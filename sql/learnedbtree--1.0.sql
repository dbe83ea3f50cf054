\echo Use "CREATE EXTENSION learnedbtree" to load this file. \quit

-- Whoever may create objects in our schema must not have an operator or function of his own chosen below.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE FUNCTION @extschema@.learnedbtree_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD learnedbtree TYPE INDEX HANDLER @extschema@.learnedbtree_handler;
COMMENT ON ACCESS METHOD learnedbtree IS 'B+-tree whose leaves are found through a learned model';

-- ---- operator classes ----

CREATE FUNCTION @extschema@.learnedbtree_sync_opclasses() RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
REVOKE ALL ON FUNCTION @extschema@.learnedbtree_sync_opclasses() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.learnedbtree_sync_opclasses() IS
    'give every btree operator class that lacks one an alias for learnedbtree; returns how many were made';

SELECT @extschema@.learnedbtree_sync_opclasses();

-- Types that other extensions bring are indexable at once.  (Here, and not in C, so that CREATE EXTENSION works where the
-- library's file is missing.)
CREATE FUNCTION @extschema@.learnedbtree_on_new_opclasses() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM @extschema@.learnedbtree_sync_opclasses();
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'learnedbtree has not made aliases of new operator classes: %', SQLERRM;
END $$;
REVOKE ALL ON FUNCTION @extschema@.learnedbtree_on_new_opclasses() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.learnedbtree_on_new_opclasses() IS 'for the event trigger of the same name';
CREATE EVENT TRIGGER learnedbtree_on_new_opclasses ON ddl_command_end
    WHEN TAG IN ('CREATE EXTENSION', 'ALTER EXTENSION', 'CREATE OPERATOR CLASS')
    EXECUTE FUNCTION @extschema@.learnedbtree_on_new_opclasses();

-- ---- training and inspection ----

CREATE FUNCTION @extschema@.learnedbtree_train(index regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION @extschema@.learnedbtree_train(regclass) IS 'train the model of a learnedbtree or btree index now';

CREATE FUNCTION @extschema@.learnedbtree_model(index regclass,
        OUT state text, OUT reason text,
        OUT leaves bigint, OUT knots integer, OUT bytes bigint, OUT separator_bytes bigint,
        OUT trained_at timestamptz, OUT training_ms double precision, OUT source text,
        OUT splits_since bigint, OUT lookups_since bigint,
        OUT moved_since bigint, OUT fallbacks_since bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION @extschema@.learnedbtree_model(regclass) IS
    'state and measures of an index''s model, and what happened since it was trained';

CREATE FUNCTION @extschema@.learnedbtree_check(index regclass,
        OUT model text, OUT saved_model text,
        OUT separators bigint, OUT landed bigint, OUT moved_right bigint, OUT fallbacks bigint,
        OUT fallback_block bigint, OUT fallback_page bigint, OUT fallback_low bigint, OUT fallback_high bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION @extschema@.learnedbtree_check(regclass) IS
    'check the model of an index against its tree; an error tells what is wrong';

CREATE FUNCTION @extschema@.learnedbtree_model_memory() RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION @extschema@.learnedbtree_model_memory() IS 'bytes of shared memory taken by all models';

-- ---- statistics ----

CREATE FUNCTION @extschema@.learnedbtree_stat_get(index oid,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint, OUT prefetched_used bigint,
        OUT rows_prefetched bigint, OUT rows_prefetched_used bigint,
        OUT inserts bigint, OUT inserts_placed bigint, OUT inserts_moved bigint,
        OUT inserts_full bigint, OUT inserts_equal bigint, OUT inserts_fallback bigint,
        OUT splits bigint,
        OUT trainings bigint, OUT last_trained timestamptz, OUT stats_reset timestamptz)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

-- A barrier, so that functions called with its indexes are called with these only.
CREATE VIEW @extschema@.learnedbtree_stat WITH (security_barrier) AS
    SELECT i.indexrelid, i.indrelid AS relid, n.nspname AS schemaname, t.relname,
           c.relname AS indexrelname, s.*
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
      JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL @extschema@.learnedbtree_stat_get(c.oid) s
     WHERE c.relkind = 'i' AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
       AND (a.amname = 'learnedbtree'
            OR a.amname = 'btree' AND (s.lookups > 0 OR s.delegated > 0 OR s.inserts > 0 OR s.trainings > 0));
GRANT SELECT ON @extschema@.learnedbtree_stat TO PUBLIC;
COMMENT ON VIEW @extschema@.learnedbtree_stat IS
    'what lookups through models did, of learnedbtree indexes and served btree indexes of this database, since the last reset or the start of the server';

CREATE FUNCTION @extschema@.learnedbtree_stat_reset(index regclass DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
REVOKE ALL ON FUNCTION @extschema@.learnedbtree_stat_reset(regclass) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.learnedbtree_stat_reset(regclass) IS
    'set the counts of one index, or of all indexes of this database, back to zero';

-- ---- which indexes are served ----

CREATE FUNCTION @extschema@.learnedbtree_index_status(index oid,
        OUT pattern text, OUT served boolean, OUT reason text, OUT model text, OUT height integer, OUT leaves bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION @extschema@.learnedbtree_index_status(oid) IS
    'whether this session serves an index, or why not; the item of learnedbtree.btree_indexes that decides, the state of its model, the height of its tree, and its leaves';

CREATE VIEW @extschema@.learnedbtree_indexes WITH (security_barrier) AS
    SELECT n.nspname AS schemaname, t.relname AS tablename, c.relname AS indexname, a.amname AS am,
           s.pattern, s.served, s.reason, s.model, s.height, s.leaves,
           pg_catalog.pg_stat_get_numscans(c.oid) AS idx_scan,
           (l.verified + l.inserts_placed) * (s.height - 1) - l.moved_right - l.inserts_moved
               - (l.lookups - l.verified - l.fallback_no_model) - l.inserts_fallback AS visits_saved,
           GREATEST(pg_catalog.pg_stat_get_numscans(c.oid) - l.verified, 0) * (s.height - 1) AS visits_to_save,
           c.oid AS indexrelid, t.oid AS relid
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
      JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL @extschema@.learnedbtree_index_status(c.oid) s
     CROSS JOIN LATERAL @extschema@.learnedbtree_stat_get(c.oid) l
     WHERE c.relkind = 'i' AND a.amname IN ('btree', 'learnedbtree')
       AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND n.nspname !~ '^pg_temp_|^pg_toast_temp_';
GRANT SELECT ON @extschema@.learnedbtree_indexes TO PUBLIC;
COMMENT ON VIEW @extschema@.learnedbtree_indexes IS
    'each btree and learnedbtree index of this database: is it served in this session, and why not; page visits that serving has saved, and would save';

-- ---- the setting's names and patterns ----

CREATE FUNCTION @extschema@.learnedbtree_pattern_items(patterns text, among oid[] DEFAULT '{}',
        OUT item integer, OUT pattern text, OUT excludes boolean, OUT indexes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION @extschema@.learnedbtree_pattern_items(text, oid[]) IS
    'the items of a value of learnedbtree.btree_indexes, and how many of these indexes each matches';

CREATE FUNCTION @extschema@.learnedbtree_pattern_matches(pattern text, index oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
    AS 'SELECT EXISTS (SELECT FROM @extschema@.learnedbtree_pattern_items(pattern, ARRAY[index]) i WHERE i.indexes > 0)';
COMMENT ON FUNCTION @extschema@.learnedbtree_pattern_matches(text, oid) IS
    'whether any item of a list like learnedbtree.btree_indexes matches an index, or a partitioned index to which it belongs; ! is ignored';

CREATE VIEW @extschema@.learnedbtree_patterns WITH (security_barrier) AS
    SELECT p.item, p.pattern, p.excludes, p.indexes
      FROM @extschema@.learnedbtree_pattern_items(pg_catalog.current_setting('learnedbtree.btree_indexes', true), ARRAY(
                SELECT i.indexrelid
                  FROM pg_catalog.pg_index i
                  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
                  JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'btree'
                  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                       AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_')) p
     ORDER BY 1;
GRANT SELECT ON @extschema@.learnedbtree_patterns TO PUBLIC;
COMMENT ON VIEW @extschema@.learnedbtree_patterns IS
    'each item of learnedbtree.btree_indexes in this session, and how many btree indexes of this database it matches';
