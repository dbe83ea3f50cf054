-- What is refused, with which error and hint; and who may see what.

\set SHOW_CONTEXT never
CREATE TABLE bad (a int, t int[], d date);
INSERT INTO bad SELECT i, ARRAY[i], date '2000-01-01' + i FROM generate_series(1, 3000) i;
CREATE INDEX bad_i ON bad USING learnedbtree (a, d);
CREATE INDEX bad_btree ON bad (a);
CREATE INDEX bad_t ON bad USING learnedbtree (t);
CREATE INDEX bad_hash ON bad USING hash (a);
CREATE VIEW bad_view AS SELECT * FROM bad;
CREATE TABLE bad_empty (a int);
CREATE INDEX bad_empty_i ON bad_empty USING learnedbtree (a);

-- not an index of ours: each function
CREATE FUNCTION refused(call text) RETURNS text LANGUAGE sql AS $$ SELECT outcome(call, 'accepted') $$;
SELECT f, refused(format('%s(%L)', f, 'bad'))
  FROM unnest(ARRAY['learnedbtree_train', 'learnedbtree_model', 'learnedbtree_check']) f;
SELECT o, refused(format('learnedbtree_model(%L)', o)) FROM unnest(ARRAY['bad_btree', 'bad_hash', 'bad_view', 'pg_class', 'pg_class_oid_index', 'nowhere']) o;
SELECT o, refused(format('learnedbtree_check(%L)', o)) FROM unnest(ARRAY['bad_btree', 'bad_hash']) o;
SELECT refused('learnedbtree_model(4000000000::oid::regclass)');
SELECT refused('learnedbtree_train(0::regclass)');

-- NULL
SELECT learnedbtree_train(NULL) IS NULL AS train, learnedbtree_check(NULL) IS NULL AS "check";
SELECT * FROM learnedbtree_model(NULL);

-- no type for a model
SELECT refused('learnedbtree_train(''bad_t'')');

-- an empty index, an invalid one
SELECT state, reason FROM learnedbtree_model('bad_empty_i');
SELECT learnedbtree_train('bad_empty_i');
SELECT * FROM learnedbtree_check('bad_empty_i');
SET enable_seqscan = off;
SELECT * FROM bad_empty WHERE a > 5;
RESET enable_seqscan;
INSERT INTO bad VALUES (1, '{}', NULL);
SET client_min_messages = error;
CREATE UNIQUE INDEX CONCURRENTLY bad_invalid ON bad USING learnedbtree (a);
RESET client_min_messages;
SELECT f, refused(format('%s(%L)', f, 'bad_invalid'))
  FROM unnest(ARRAY['learnedbtree_train', 'learnedbtree_model', 'learnedbtree_check']) f;
DROP INDEX bad_invalid;

-- what no index of this kind can be
CREATE INDEX bad_none ON bad USING learnedbtree ((a::text::point));
CREATE INDEX bad_none ON bad USING learnedbtree (a int8_ops);
CREATE INDEX bad_none ON bad USING learnedbtree (a nonexistent_ops);
CREATE INDEX bad_none ON bad USING learnedbtree (a) INCLUDE (a, nothing);
CREATE TABLE bad_heap (a int) USING learnedbtree;
-- (the server's text differs between minor versions)
DO $$ BEGIN
    PERFORM learnedbtree_handler(NULL);
EXCEPTION WHEN undefined_function OR feature_not_supported THEN
    RAISE NOTICE 'learnedbtree_handler(NULL): refused';
END $$;

-- others' indexes: owners do all, members of pg_monitor look at what tells no keys, others nothing
CREATE ROLE lbt_owner;
CREATE ROLE lbt_monitor IN ROLE pg_monitor;
CREATE ROLE lbt_other;
ALTER TABLE bad OWNER TO lbt_owner;
CREATE FUNCTION rights() RETURNS TABLE (call text, outcome text) LANGUAGE sql AS $$
    SELECT c, refused(c) FROM unnest(ARRAY['learnedbtree_model(''bad_i'')',
        'learnedbtree_train(''bad_i'')', 'learnedbtree_check(''bad_i'')', 'learnedbtree_stat_reset()', 'learnedbtree_sync_opclasses()',
        'count(*) FROM learnedbtree_stat WHERE indexrelname = ''bad_i''']) c
$$;
SET ROLE lbt_owner;
SELECT * FROM rights();
SELECT bytes AS model_bytes FROM learnedbtree_model('bad_i') \gset
SET learnedbtree.enable = off;
SET learnedbtree.max_model_memory = '1MB';
SET ROLE lbt_monitor;
SELECT * FROM rights();
SET ROLE lbt_other;
SELECT * FROM rights();
-- the sum is no secret, and has what the owner's model takes
SELECT learnedbtree_model_memory() >= :model_bytes AS memory;
RESET ROLE;
RESET learnedbtree.enable;
DROP VIEW bad_view;
DROP TABLE bad, bad_empty;
DROP ROLE lbt_owner, lbt_monitor, lbt_other;
DROP FUNCTION rights, refused;
