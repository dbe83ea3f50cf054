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

-- ---- marks of btree indexes ----

-- In a schema of their own, as tools that compare a database with a program's tables look at the others.
DO $$
BEGIN
    IF to_regnamespace('learnedbtree') IS NULL THEN
        CREATE SCHEMA learnedbtree;
    ELSIF NOT (SELECT r.rolsuper OR r.rolname = current_user FROM pg_catalog.pg_namespace n
                 JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner WHERE n.nspname = 'learnedbtree') THEN
        RAISE EXCEPTION 'schema "learnedbtree" exists, and belongs to another user'
            USING ERRCODE = 'duplicate_schema', HINT = 'Rename or drop it: the extension keeps its table there.';
    END IF;
END $$;
GRANT USAGE ON SCHEMA learnedbtree TO PUBLIC;
COMMENT ON SCHEMA learnedbtree IS 'what the extension learnedbtree keeps';

-- The index of a name; NULL when there is none.  Declared immutable for the generated column below, which is what the
-- name meant when its row was written last.
CREATE FUNCTION learnedbtree.index_named(schemaname name, indexname name) RETURNS oid
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
     WHERE n.nspname OPERATOR(pg_catalog.=) $1 AND c.relname OPERATOR(pg_catalog.=) $2
       AND c.relkind OPERATOR(pg_catalog.=) ANY ('{i,I}'::pg_catalog."char"[])
$$;

-- One row for each btree index that is adopted or excluded.  By name, so that dump and restore keep them; indexid, which
-- is not dumped, follows the index when it is renamed.  Written by the functions, and by the triggers below.
CREATE TABLE learnedbtree.marks (
    schemaname name NOT NULL,
    tablename name NOT NULL,
    indexname name NOT NULL,
    learned boolean NOT NULL DEFAULT true,
    max_error integer,
    retrain_splits integer,
    indexid oid GENERATED ALWAYS AS (learnedbtree.index_named(schemaname, indexname)) STORED) USING heap;
GRANT SELECT ON learnedbtree.marks TO PUBLIC;
COMMENT ON TABLE learnedbtree.marks IS
    'btree indexes that are adopted, or (learned is false) excluded; see learnedbtree_adopt()';
SELECT pg_catalog.pg_extension_config_dump('learnedbtree.marks', '');

-- Sessions copy the table, and are told when SQL changes it, as a restore does.
CREATE FUNCTION learnedbtree.marks_changed() RETURNS trigger
    AS 'MODULE_PATHNAME', 'learnedbtree_marks_changed' LANGUAGE C;
CREATE TRIGGER tell_sessions AFTER INSERT OR UPDATE OR DELETE ON learnedbtree.marks
    FOR EACH STATEMENT EXECUTE FUNCTION learnedbtree.marks_changed();
ALTER TABLE learnedbtree.marks ENABLE ALWAYS TRIGGER tell_sessions;

-- A restore brings marks before it makes indexes, but after tables.  (pg_dump has it say warnings only.)
CREATE FUNCTION learnedbtree.tell_missing() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    missing record;
BEGIN
    FOR missing IN
        SELECT format('%I.%I', r.schemaname, r.tablename) AS tablename, format('%I', r.indexname) AS indexname FROM restored r
         WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                            WHERE n.nspname = r.schemaname AND c.relname IN (r.tablename, r.indexname))
         ORDER BY 1, 2
    LOOP
        RAISE WARNING 'learnedbtree: there is no table %, whose index % is adopted', missing.tablename, missing.indexname;
    END LOOP;
    RETURN NULL;
END $$;
ALTER FUNCTION learnedbtree.tell_missing() SET search_path = pg_catalog, pg_temp;
CREATE TRIGGER tell_missing AFTER INSERT ON learnedbtree.marks
    REFERENCING NEW TABLE AS restored FOR EACH STATEMENT EXECUTE FUNCTION learnedbtree.tell_missing();

-- Models and marks of dropped indexes go; marks of renamed indexes, and of indexes made anew under the old name, follow.
-- The writing is done in C, as what SQL writes would be published by a publication FOR ALL TABLES; but errors are caught:
-- commands have to work where the library's file is missing.
CREATE FUNCTION learnedbtree.follow_marks(changed oid[]) RETURNS void
    AS 'MODULE_PATHNAME', 'learnedbtree_follow_marks' LANGUAGE C STRICT VOLATILE;
CREATE FUNCTION learnedbtree.forget_dropped(oids oid[], names text[]) RETURNS void
    AS 'MODULE_PATHNAME', 'learnedbtree_forget_dropped' LANGUAGE C STRICT VOLATILE;
REVOKE ALL ON FUNCTION learnedbtree.follow_marks(oid[]), learnedbtree.forget_dropped(oid[], text[]) FROM PUBLIC;

CREATE FUNCTION learnedbtree.follow_ddl() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    oids oid[];
    names text[];
BEGIN
    IF tg_event = 'sql_drop' THEN
        SELECT array_agg(objid), array_agg(object_identity) INTO oids, names
          FROM pg_event_trigger_dropped_objects() WHERE object_type = 'index' AND NOT is_temporary;
        IF oids IS NULL THEN
            RETURN;
        END IF;
    -- This gives back its lock at once, which a query would not.
    ELSIF coalesce(pg_relation_size(to_regclass('learnedbtree.marks')), 0) = 0 THEN
        RETURN;
    END IF;
    BEGIN
        CASE tg_event
            WHEN 'sql_drop' THEN
                PERFORM learnedbtree.forget_dropped(oids, names);
            WHEN 'ddl_command_end' THEN
                -- An index is renamed with its constraint.
                PERFORM learnedbtree.follow_marks(ARRAY(
                    SELECT coalesce(c.conindid, objid) FROM pg_event_trigger_ddl_commands()
                      LEFT JOIN pg_constraint c ON c.oid = objid AND classid = 'pg_constraint'::regclass
                     WHERE objid IS NOT NULL));
            ELSE
                PERFORM learnedbtree.follow_marks('{}');
        END CASE;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'learnedbtree has not brought its marks up to date: %', SQLERRM;
    END;
END $$;
ALTER FUNCTION learnedbtree.follow_ddl() SET search_path = pg_catalog, pg_temp;
CREATE EVENT TRIGGER learnedbtree_drop_marks ON sql_drop
    EXECUTE FUNCTION learnedbtree.follow_ddl();
-- Before a rename, too: an index that has been made anew is found by the name that it still has.
CREATE EVENT TRIGGER learnedbtree_find_marks ON ddl_command_start
    WHEN TAG IN ('ALTER INDEX', 'ALTER TABLE', 'ALTER MATERIALIZED VIEW', 'ALTER SCHEMA', 'ALTER EXTENSION')
    EXECUTE FUNCTION learnedbtree.follow_ddl();
CREATE EVENT TRIGGER learnedbtree_follow_marks ON ddl_command_end
    WHEN TAG IN ('ALTER INDEX', 'ALTER TABLE', 'ALTER MATERIALIZED VIEW', 'ALTER SCHEMA', 'ALTER EXTENSION')
    EXECUTE FUNCTION learnedbtree.follow_ddl();

CREATE FUNCTION learnedbtree_adopt(index regclass, learned boolean DEFAULT true, max_error integer DEFAULT NULL,
        retrain_splits integer DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_adopt(regclass, boolean, integer, integer) IS
    'have a btree index served in all sessions with learnedbtree.btree_indexes = adopted or all; with learned => false in none';

CREATE FUNCTION learnedbtree_release(index regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_release(regclass) IS 'delete the mark that learnedbtree_adopt() has made';

-- The LIKE patterns, with ! as escape, that a pattern of psql's stands for: [schema.]table, with *, ? and double quotes.
CREATE FUNCTION learnedbtree.like_patterns(pattern text, OUT schemas text, OUT tables text)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    part text := '((?:"(?:[^"]|"")+"|[^".])+)';
    parts text[] := regexp_match(replace(replace(replace(pattern, '!', '!!'), '%', '!%'), '_', '!_'),
                                 '^(?:' || part || '[.])?' || part || '$');
BEGIN
    IF pattern IS NULL THEN
        RAISE EXCEPTION 'the pattern must not be NULL'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Leave it out, or give ''*'', for all tables.';
    ELSIF parts IS NULL THEN
        RAISE EXCEPTION 'improper pattern for names of tables: %', pattern
            USING ERRCODE = 'invalid_name', HINT = 'Write table or schema.table; * stands for any characters, ? for one. '
                'Letters are folded to lower case, unless in double quotes.';
    END IF;
    FOR i IN 1 .. 2 LOOP
        parts[i] := (SELECT string_agg(coalesce(replace(t[1], '""', '"'), translate(lower(t[2] COLLATE "C"), '*?', '%_')), '' ORDER BY n)
                       FROM regexp_matches(parts[i], '"((?:[^"]|"")+)"|([^"]+)', 'g') WITH ORDINALITY m(t, n));
    END LOOP;
    schemas := coalesce(parts[1], '%');
    tables := parts[2];
END $$;
ALTER FUNCTION learnedbtree.like_patterns(text) SET search_path = pg_catalog, pg_temp;

-- Indexes of user tables of such names.  Those of partitions are left to the mark of the partitioned index.
CREATE FUNCTION learnedbtree.indexes_of(schemas text, tables text) RETURNS TABLE (index oid, owner oid) LANGUAGE sql AS $$
    SELECT i.indexrelid, c.relowner
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
      JOIN pg_namespace n ON n.oid = t.relnamespace
     WHERE NOT c.relispartition AND n.nspname LIKE $1 ESCAPE '!' AND t.relname LIKE $2 ESCAPE '!'
       AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
     ORDER BY i.indrelid, i.indexrelid
$$;
ALTER FUNCTION learnedbtree.indexes_of(text, text) SET search_path = pg_catalog, pg_temp;

-- The index that a mark is of, as in serve/marks.c.
CREATE FUNCTION learnedbtree.index_of(learnedbtree.marks) RETURNS oid LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) $1.indexid),
                    learnedbtree.index_named($1.schemaname, $1.indexname))
$$;

-- Marks that restores have brought, of indexes that have not come; or of what was dropped while event triggers were off.
-- Whose they are nobody can tell, so superusers delete them.
CREATE FUNCTION learnedbtree.tell_lost(schemas text, tables text, forget boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    names text[];
    lost text;
BEGIN
    SELECT array_agg(format('%I.%I', m.schemaname, m.indexname)) INTO names
      FROM learnedbtree.marks m
     WHERE m.schemaname LIKE schemas ESCAPE '!' AND m.tablename LIKE tables ESCAPE '!' AND learnedbtree.index_of(m) IS NULL;
    IF forget AND has_function_privilege('learnedbtree.forget_dropped(oid[], text[])', 'EXECUTE') THEN
        PERFORM learnedbtree.forget_dropped('{}', names);
    ELSE
        forget := false;
    END IF;
    FOREACH lost IN ARRAY coalesce(names, '{}') LOOP
        IF forget THEN
            RAISE NOTICE 'deleted the mark of index %, which does not exist', lost;
        ELSE
            RAISE NOTICE 'there is no index %, which learnedbtree.marks has a mark of', lost
                USING HINT = 'As superuser: SELECT learnedbtree_release_all(); deletes such marks.';
        END IF;
    END LOOP;
END $$;
ALTER FUNCTION learnedbtree.tell_lost(text, text, boolean) SET search_path = pg_catalog, pg_temp;

-- Adopt one of many indexes, or (learned is NULL) release it: the reason why not.  In one statement for all of them, as the
-- table is read anew after each statement that has written.
CREATE FUNCTION learnedbtree.write_mark(index oid, learned boolean, max_error integer, retrain_splits integer) RETURNS text
    AS 'MODULE_PATHNAME', 'learnedbtree_write_mark' LANGUAGE C VOLATILE;

CREATE FUNCTION learnedbtree_adopt_all(tables text DEFAULT '*', learned boolean DEFAULT true,
        max_error integer DEFAULT NULL, retrain_splits integer DEFAULT NULL,
        OUT index regclass, OUT outcome text, OUT reason text)
    RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    p record := learnedbtree.like_patterns(tables);
BEGIN
    RETURN QUERY
        SELECT i.index::regclass, CASE WHEN r IS NULL THEN 'adopted' ELSE 'skipped' END, r
          FROM learnedbtree.indexes_of(p.schemas, p.tables) i,
               learnedbtree.write_mark(i.index, coalesce(learned, true), max_error, retrain_splits) r;
    IF NOT FOUND THEN
        RAISE NOTICE 'no table with an index matches "%"', tables;
    END IF;
    PERFORM learnedbtree.tell_lost(p.schemas, p.tables, false);
END $$;
ALTER FUNCTION learnedbtree_adopt_all(text, boolean, integer, integer) SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION learnedbtree_adopt_all(text, boolean, integer, integer) IS
    'adopt the btree indexes of tables that a pattern names, as in psql; one row for each index';

CREATE FUNCTION learnedbtree_release_all(tables text DEFAULT '*',
        OUT index regclass, OUT outcome text, OUT reason text)
    RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    p record := learnedbtree.like_patterns(tables);
BEGIN
    RETURN QUERY
        WITH marked AS MATERIALIZED (
            SELECT i.index FROM learnedbtree.indexes_of(p.schemas, p.tables) i
             WHERE pg_has_role(i.owner, 'USAGE') AND i.index IN (SELECT learnedbtree.index_of(m) FROM learnedbtree.marks m))
        SELECT i.index::regclass, CASE WHEN r IS NULL THEN 'released' ELSE 'skipped' END, r
          FROM marked i, learnedbtree.write_mark(i.index, NULL, NULL, NULL) r;
    IF NOT FOUND THEN
        RAISE NOTICE 'no index of tables that match "%" is adopted', tables;
    END IF;
    PERFORM learnedbtree.tell_lost(p.schemas, p.tables, true);
END $$;
ALTER FUNCTION learnedbtree_release_all(text) SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION learnedbtree_release_all(text) IS
    'release the adopted indexes of tables that a pattern names, as in psql; one row for each index';

-- Types that other extensions bring are indexable at once.  (Here, and not in C, so that CREATE EXTENSION works where the
-- library's file is missing.)
CREATE FUNCTION learnedbtree.make_opclasses() RETURNS integer
    AS 'MODULE_PATHNAME', 'learnedbtree_sync_opclasses' LANGUAGE C STRICT;
REVOKE ALL ON FUNCTION learnedbtree.make_opclasses() FROM PUBLIC;
CREATE FUNCTION learnedbtree.sync_opclasses() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM learnedbtree.make_opclasses();
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'learnedbtree has not made aliases of new operator classes: %', SQLERRM;
END $$;
ALTER FUNCTION learnedbtree.sync_opclasses() SET search_path = pg_catalog, pg_temp;
CREATE EVENT TRIGGER learnedbtree_sync_opclasses ON ddl_command_end
    WHEN TAG IN ('CREATE EXTENSION', 'ALTER EXTENSION', 'CREATE OPERATOR CLASS')
    EXECUTE FUNCTION learnedbtree.sync_opclasses();

-- ---- training and inspection ----

CREATE FUNCTION learnedbtree_train(index regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_train(regclass) IS 'train the model of a learnedbtree or btree index now';

CREATE FUNCTION learnedbtree_model(index regclass,
        OUT state text, OUT reason text,
        OUT leaves bigint, OUT knots integer,
        OUT max_error double precision, OUT mean_error double precision,
        OUT bytes bigint, OUT key_code text, OUT separator_bytes bigint, OUT ties bigint,
        OUT trained_at timestamptz, OUT training_ms double precision, OUT source text,
        OUT splits_since bigint, OUT deleted_since bigint, OUT lookups_since bigint,
        OUT moved_since bigint, OUT fallbacks_since bigint,
        OUT model_us double precision, OUT descent_us double precision)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_model(regclass) IS
    'state and measures of an index''s model, and what happened since it was trained; errors are in leaves';

CREATE FUNCTION learnedbtree_leaves(index regclass,
        OUT slot bigint, OUT code numeric, OUT knot boolean, OUT error double precision)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_leaves(regclass) IS
    'the leaves of an index''s model in key order: smallest key code, is it a knot of the spline, and the spline''s error';

CREATE FUNCTION learnedbtree_predict(index regclass, VARIADIC key "any",
        OUT code numeric, OUT predicted_block bigint, OUT found_block bigint, OUT hops integer)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_predict(regclass, VARIADIC "any") IS
    'a key''s code, leaf block the model predicts, block the descent finds, steps from the one to the other (NULL: not proven)';

CREATE FUNCTION learnedbtree_check(index regclass,
        heapallindexed boolean DEFAULT true, rootdescend boolean DEFAULT true,
        OUT model text, OUT saved_model text,
        OUT separators bigint, OUT landed bigint, OUT moved_right bigint, OUT fallbacks bigint,
        OUT fallback_block bigint, OUT fallback_page bigint, OUT fallback_low bigint, OUT fallback_high bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION learnedbtree_check(regclass, boolean, boolean) IS
    'check the index file with amcheck''s bt_index_parent_check, and the model against the tree; an error tells what is wrong';

CREATE FUNCTION learnedbtree_model_memory() RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION learnedbtree_model_memory() IS 'bytes of shared memory taken by all models';

-- ---- what scans did ----

CREATE FUNCTION learnedbtree_last_scan(OUT scan integer, OUT index regclass,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint, OUT rows_prefetched bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION learnedbtree_last_scan() IS
    'what each learnedbtree index scan did in this session''s last instrumented statement that had any';

-- ---- statistics ----

CREATE FUNCTION learnedbtree_stat_get(index oid,
        OUT lookups bigint, OUT verified bigint, OUT moved_right bigint,
        OUT fallback_no_model bigint, OUT fallback_block bigint, OUT fallback_page bigint,
        OUT fallback_low bigint, OUT fallback_high bigint,
        OUT delegated bigint, OUT prefetched bigint, OUT rows_prefetched bigint,
        OUT inserts bigint, OUT inserts_placed bigint, OUT inserts_moved bigint,
        OUT inserts_full bigint, OUT inserts_equal bigint, OUT inserts_fallback bigint,
        OUT splits bigint, OUT pages_deleted bigint,
        OUT trainings bigint, OUT last_trained timestamptz, OUT stats_reset timestamptz)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

-- A barrier, so that functions called with its indexes are called with these only.
CREATE VIEW learnedbtree_stat WITH (security_barrier) AS
    SELECT i.indexrelid, i.indrelid AS relid, n.nspname AS schemaname, t.relname,
           c.relname AS indexrelname, s.*
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
      JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL learnedbtree_stat_get(c.oid) s
     WHERE c.relkind = 'i' AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
       AND (a.amname = 'learnedbtree'
            OR a.amname = 'btree' AND (s.lookups > 0 OR s.delegated > 0 OR s.inserts > 0 OR s.trainings > 0));
GRANT SELECT ON learnedbtree_stat TO PUBLIC;
COMMENT ON VIEW learnedbtree_stat IS
    'what lookups through models did, of learnedbtree indexes and served btree indexes of this database, since the last reset or the start of the server';

CREATE FUNCTION learnedbtree_stat_reset(index regclass DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
REVOKE ALL ON FUNCTION learnedbtree_stat_reset(regclass) FROM PUBLIC;
COMMENT ON FUNCTION learnedbtree_stat_reset(regclass) IS
    'set the counts of one index, or of all indexes of this database, back to zero';

-- ---- which indexes are served ----

CREATE FUNCTION learnedbtree_index_status(index oid,
        OUT mark text, OUT served boolean, OUT reason text, OUT model text, OUT height integer, OUT leaves bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION learnedbtree_index_status(oid) IS
    'is an index served in this session, and why not; its mark, the state of its model, and the height of its tree';

CREATE VIEW learnedbtree_indexes WITH (security_barrier) AS
    SELECT n.nspname AS schemaname, t.relname AS tablename, c.relname AS indexname, a.amname AS am,
           s.mark, s.served, s.reason, s.model, s.height, s.leaves,
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
     CROSS JOIN LATERAL learnedbtree_index_status(c.oid) s
     CROSS JOIN LATERAL learnedbtree_stat_get(c.oid) l
     WHERE c.relkind = 'i' AND a.amname IN ('btree', 'learnedbtree')
       AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND n.nspname !~ '^pg_temp_|^pg_toast_temp_';
GRANT SELECT ON learnedbtree_indexes TO PUBLIC;
COMMENT ON VIEW learnedbtree_indexes IS
    'each btree and learnedbtree index of this database: is it served in this session, and why not; page visits that serving has saved, and would save';
