-- What can be seen of a model, and the statistics.
SELECT use_am() AS am \gset

CREATE TABLE ins (a int, b bigint, t jsonb);
INSERT INTO ins SELECT i, mix(i), to_jsonb('row ' || i) FROM generate_series(1, 20000) i;
CREATE INDEX ins_a ON ins USING :am (a);
CREATE INDEX ins_ba ON ins USING :am (b DESC, a);
CREATE INDEX ins_t ON ins USING learnedbtree (t);
CREATE INDEX ins_btree ON ins (a);

SELECT * FROM learnedbtree_model('ins_t');
SELECT state, reason, leaves, knots, bytes >= leaves * 16 + knots * 16 AS bytes,
       trained_at BETWEEN now() - interval '5 minutes' AND clock_timestamp() AS trained, training_ms > 0 AS timed
  FROM learnedbtree_model('ins_a');
SELECT state, leaves > 50 AS leaves, knots >= 2 AS knots FROM learnedbtree_model('ins_ba');
SET learnedbtree.enable = off;
SELECT state, reason FROM learnedbtree_model('ins_a');
RESET learnedbtree.enable;

-- leaves are those of the file: pages less the metapage and the inner ones
SELECT leaves = pg_relation_size('ins_a') / 8192 - 2 AS all_leaves FROM learnedbtree_model('ins_a');

-- What lookups of a query by an index came to.
CREATE FUNCTION ins_lookups(index regclass, query text, OUT rows bigint, OUT lookups bigint, OUT verified bigint, OUT moved_right bigint) LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off SET enable_material = off AS $$
DECLARE
    before record;
BEGIN
    SELECT * INTO before FROM learnedbtree_stat_get(index);
    EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO rows;
    SELECT s.lookups - before.lookups, s.verified - before.verified, s.moved_right - before.moved_right INTO lookups, verified, moved_right
      FROM learnedbtree_stat_get(index) s;
END $$;
-- every key is on its predicted leaf, or, of several columns, right of it at most; so are keys that are not there
DROP INDEX ins_btree;
SELECT * FROM ins_lookups('ins_a', 'SELECT FROM generate_series(1, 20000) i, LATERAL (SELECT a FROM ins WHERE a = i OFFSET 0) s');
SELECT * FROM ins_lookups('ins_a', 'SELECT a FROM ins WHERE a < -1');
SELECT * FROM ins_lookups('ins_a', 'SELECT a FROM ins WHERE a > 2000000000');
SELECT rows, lookups, verified = lookups AS verified, moved_right < 400 AS few_moved
  FROM ins_lookups('ins_ba', 'SELECT FROM generate_series(1, 20000) i, LATERAL (SELECT a FROM ins WHERE b = mix(i) OFFSET 0) s');
SET learnedbtree.enable_leaf_cache = off;
SELECT rows, lookups, verified > 0 AS verified FROM ins_lookups('ins_a', 'SELECT FROM generate_series(1, 20000, 37) i, LATERAL (SELECT a FROM ins WHERE a = i OFFSET 0) s');
RESET learnedbtree.enable_leaf_cache;
-- after a split the right half is one step away
INSERT INTO ins SELECT 777, 0, to_jsonb(''::text) FROM generate_series(1, 500);
SELECT rows, lookups, verified, moved_right > 0 AS moved FROM ins_lookups('ins_a', 'SELECT FROM generate_series(600, 1000) i, LATERAL (SELECT a FROM ins WHERE a = i OFFSET 0) s');
DROP FUNCTION ins_lookups;

-- statistics: exact where the work is known
SELECT indexrelname, relname, schemaname FROM learnedbtree_stat WHERE relname = 'ins' ORDER BY 1;
SELECT learnedbtree_train('ins_a');
VACUUM ANALYZE ins;
SELECT learnedbtree_stat_reset();
SELECT lookups, verified, moved_right, fallback_no_model, fallback_block, fallback_page, fallback_low, fallback_high, delegated, trainings, last_trained
  FROM learnedbtree_stat_get('ins_ba'::regclass);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM generate_series(1001, 1100) i, LATERAL (SELECT FROM ins WHERE a = i) s;
SELECT lookups, verified, moved_right, fallback_low + fallback_high + fallback_page + fallback_block + fallback_no_model AS fallbacks, trainings, last_trained
  FROM learnedbtree_stat WHERE indexrelname = 'ins_a';
SELECT learnedbtree_train('ins_a');
SELECT trainings, last_trained > now() - interval '5 minutes' AS last_trained FROM learnedbtree_stat WHERE indexrelname = 'ins_a';
SET learnedbtree.enable = off;
SELECT count(*) FROM ins WHERE a = 5;
RESET learnedbtree.enable;
SELECT lookups, delegated > 0 AS delegated FROM learnedbtree_stat WHERE indexrelname = 'ins_a';
SELECT learnedbtree_stat_reset('ins_a');
SELECT lookups, trainings FROM learnedbtree_stat_get('ins_a'::regclass);
-- rolled back or not, a lookup was made
BEGIN;
SELECT count(*) FROM ins WHERE a = 5;
ROLLBACK;
SELECT lookups, verified FROM learnedbtree_stat WHERE indexrelname = 'ins_a';
-- pg_stat_user_indexes counts as for btree
SELECT pg_stat_force_next_flush();
SELECT idx_scan >= 101 AS scans, idx_tup_read >= 101 AS read FROM pg_stat_user_indexes WHERE indexrelname = 'ins_a';
-- a dropped index leaves no line
DROP INDEX ins_ba;
SELECT count(*) FROM learnedbtree_stat WHERE relname = 'ins';
DROP TABLE ins;
