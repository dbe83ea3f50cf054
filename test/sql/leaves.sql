-- learnedbtree_leaves(): the model leaf by leaf.
SELECT use_am() AS am \gset

CREATE TABLE lea (a int, b float8, r int, j jsonb);
INSERT INTO lea SELECT i, exp(i / 2000.0), i % 5, to_jsonb(i) FROM generate_series(1, 40000) i;
CREATE INDEX lea_a ON lea USING :am (a);
SET learnedbtree.max_error = 1;
CREATE INDEX lea_b ON lea USING :am (b DESC);
RESET learnedbtree.max_error;
CREATE INDEX lea_r ON lea USING :am (r) WITH (deduplicate_items = off);
CREATE INDEX lea_j ON lea USING :am (j);

SELECT slot, code, knot, error FROM learnedbtree_leaves('lea_a') WHERE slot < 3;

-- all leaves and knots are there, in order, from the first leaf to the last; errors are those of the model; leaves that tie have none
SELECT i, count(*) = m.leaves AS leaves, min(slot) = 0 AND max(slot) = m.leaves - 1 AS slots, count(*) FILTER (WHERE knot) = m.knots AS knots,
       min(slot) FILTER (WHERE knot) = 0 AS from_first, max(slot) FILTER (WHERE knot) = m.leaves - 1 AS to_last,
       count(*) FILTER (WHERE error IS NULL) = m.ties AS ties, max(error) = m.max_error AS max_error, abs(avg(error) - m.mean_error) < 1e-9 AS mean_error,
       bool_and(slot = before + 1 AND code >= code_before) AS in_order, bool_and((code = code_before AND slot > 0) = (error IS NULL)) AS tied,
       bool_and(code > code_before OR NOT knot OR slot = 0) AS knots_apart
  FROM unnest('{lea_a, lea_b, lea_r}'::regclass[]) i, learnedbtree_model(i) m,
       LATERAL (SELECT l.*, lag(slot, 1, -1::bigint) OVER (ORDER BY slot) AS before, lag(code, 1, 0::numeric) OVER (ORDER BY slot) AS code_before FROM learnedbtree_leaves(i) l) l
 GROUP BY i, m.leaves, m.knots, m.ties, m.max_error, m.mean_error ORDER BY i::text;

-- the codes are those of the leaves' smallest keys, which are equally far from each other here
SELECT code - before AS apart, count(*) > 50 AS many
  FROM (SELECT slot, code, lag(code) OVER (ORDER BY slot) AS before FROM learnedbtree_leaves('lea_a')) l WHERE slot > 1 GROUP BY 1;

-- no model: no rows
SELECT count(*) FROM learnedbtree_leaves('lea_j');
CREATE TABLE lea_empty (a int);
CREATE INDEX lea_empty_a ON lea_empty USING :am (a);
SELECT count(*) FROM learnedbtree_leaves('lea_empty_a');
INSERT INTO lea_empty VALUES (1);
SELECT learnedbtree_train('lea_empty_a');
SELECT * FROM learnedbtree_leaves('lea_empty_a');

-- refused
SELECT * FROM learnedbtree_leaves(NULL);
SELECT * FROM learnedbtree_leaves('lea');
SELECT * FROM learnedbtree_leaves('pg_class_oid_index');
DROP TABLE lea, lea_empty;
