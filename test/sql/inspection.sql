-- What can be seen of a model, and the statistics.

CREATE TABLE ins (a int, b bigint, t jsonb);
INSERT INTO ins SELECT i, mix(i), to_jsonb('row ' || i) FROM generate_series(1, 20000) i;
CREATE INDEX ins_a ON ins USING learnedbtree (a);
CREATE INDEX ins_ba ON ins USING learnedbtree (b DESC, a);
CREATE INDEX ins_t ON ins USING learnedbtree (t);
CREATE INDEX ins_btree ON ins (a);

SELECT * FROM learnedbtree_model('ins_t');
SELECT state, reason, leaves, knots, max_error, mean_error, bytes >= leaves * 16 + knots * 16 AS bytes, key_code,
       trained_at BETWEEN now() - interval '5 minutes' AND clock_timestamp() AS trained, training_ms > 0 AS timed
  FROM learnedbtree_model('ins_a');
SELECT state, leaves > 50 AS leaves, knots >= 2 AS knots, max_error <= 4 AS max_error, mean_error <= max_error AS mean_error, key_code ~ '^b bigint desc.* x a integer' AS key_code
  FROM learnedbtree_model('ins_ba');
SET learnedbtree.enable = off;
SELECT state, reason FROM learnedbtree_model('ins_a');
RESET learnedbtree.enable;

-- leaves are those of the file: pages less the metapage and the inner ones
SELECT leaves = pg_relation_size('ins_a') / 8192 - 2 AS all_leaves FROM learnedbtree_model('ins_a');

-- prediction and descent meet, but for keys that begin a leaf: their place is also the end of the leaf before
SELECT count(*), bool_and(hops = 0) AS proven, count(*) FILTER (WHERE predicted_block <> found_block) BETWEEN 1 AND 60 AS met
  FROM generate_series(1, 20000) i, LATERAL learnedbtree_predict('ins_a', i);
SELECT bool_and(hops <= 1) AS proven, count(*) FILTER (WHERE predicted_block <> found_block) < 400 AS met
  FROM generate_series(1, 20000) i, LATERAL learnedbtree_predict('ins_ba', mix(i), i);
SELECT bool_and(hops <= 1) AS proven, count(*) FILTER (WHERE predicted_block <> found_block) < 400 AS met
  FROM generate_series(1, 20000) i, LATERAL learnedbtree_predict('ins_ba', mix(i));
SELECT predicted_block = found_block AS met, hops FROM learnedbtree_predict('ins_a', -1);
SELECT predicted_block = found_block AS met, hops FROM learnedbtree_predict('ins_a', 2000000000);
SELECT predicted_block = found_block AS met, hops FROM learnedbtree_predict('ins_a', '777');
SELECT predicted_block = found_block AS met, hops FROM learnedbtree_predict('ins_a', VARIADIC ARRAY[777]);
SET learnedbtree.enable_leaf_cache = off;
SELECT bool_and(coalesce(hops, 0) < 10 AND found_block > 0) AS sane FROM generate_series(1, 20000, 37) i, LATERAL learnedbtree_predict('ins_a', i);
RESET learnedbtree.enable_leaf_cache;
-- after a split the right half is one hop away
INSERT INTO ins SELECT 777, 0, to_jsonb(''::text) FROM generate_series(1, 500);
SELECT max(hops) >= 1 AS hopped, bool_and(hops IS NOT NULL) AS proven, count(*) FILTER (WHERE hops = 0 AND predicted_block <> found_block) < 5 AS agree
  FROM generate_series(600, 1000) i, LATERAL learnedbtree_predict('ins_a', i);

-- statistics: exact where the work is known
SELECT indexrelname, relname, schemaname FROM learnedbtree_stat WHERE relname = 'ins' ORDER BY 1;
SELECT learnedbtree_train('ins_a');
VACUUM ANALYZE ins;
SELECT learnedbtree_stat_reset();
SELECT lookups, verified, moved_right, fallback_no_model, fallback_block, fallback_page, fallback_low, fallback_high, delegated, trainings, last_trained
  FROM learnedbtree_stat WHERE indexrelname = 'ins_ba';
DROP INDEX ins_btree;
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
SELECT lookups, trainings FROM learnedbtree_stat WHERE indexrelname = 'ins_a';
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
