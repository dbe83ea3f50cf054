-- learnedbtree_histogram(): the model in parts of equally many leaves.

CREATE TABLE his (a int, b float8, r int, j jsonb);
INSERT INTO his SELECT i, exp(i / 2000.0), i % 5, to_jsonb(i) FROM generate_series(1, 40000) i;
CREATE INDEX his_a ON his USING learnedbtree (a);
CREATE INDEX his_b ON his USING learnedbtree (b) WITH (max_error = 1);
CREATE INDEX his_r ON his USING learnedbtree (r) WITH (deduplicate_items = off);
CREATE INDEX his_j ON his USING learnedbtree (j);

SELECT * FROM learnedbtree_histogram('his_a', 4);
SELECT count(*) FROM learnedbtree_histogram('his_b');

-- leaves and knots are all there, in order, whatever the number of buckets; errors are those of the model
SELECT i, n, count(*) = least(n, m.leaves) AS buckets, sum(h.leaves) = m.leaves AS leaves, sum(h.knots) = m.knots AS knots, sum(h.ties) = m.ties AS ties,
       max(h.max_error) = m.max_error AS max_error, abs(sum(h.mean_error * (h.leaves - h.ties)) / sum(h.leaves - h.ties) - m.mean_error) < 1e-9 AS mean_error,
       bool_and(h.first_slot = h.before AND h.bucket = h.row AND h.min_code >= h.code_before AND length(h.bar) <= 30) AS in_order, max(length(h.bar)) AS longest
  FROM unnest('{his_a, his_b, his_r}'::regclass[]) i, unnest('{1, 7, 20, 1000000, 2147483647}'::int[]) n, learnedbtree_model(i) m,
       LATERAL (SELECT x.*, row_number() OVER w AS row, lag(min_code, 1, 0::numeric) OVER w AS code_before,
                       coalesce(sum(x.leaves) OVER (ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
                  FROM learnedbtree_histogram(i, n) x WINDOW w AS (ORDER BY bucket)) h
 GROUP BY i, n, m.leaves, m.knots, m.ties, m.max_error, m.mean_error ORDER BY i::text, n;

-- one leaf a bucket: the knots are where learnedbtree_knots() says
SELECT count(*) = (SELECT count(*) FROM learnedbtree_knots('his_b')) AS all_knots, bool_and(h.knots = 1 AND h.min_code = k.code) AS same
  FROM learnedbtree_knots('his_b') k JOIN learnedbtree_histogram('his_b', 1000000) h ON h.first_slot = k.slot;
-- leaves that tie have no error of their own
SELECT count(*) > 0 AS ties, bool_and(mean_error IS NULL AND max_error IS NULL AND bar = '') AS nothing FROM learnedbtree_histogram('his_r', 1000000) WHERE ties = 1;

-- no model: no rows
SELECT count(*) FROM learnedbtree_histogram('his_j');
CREATE TABLE his_empty (a int);
CREATE INDEX his_empty_a ON his_empty USING learnedbtree (a);
SELECT count(*) FROM learnedbtree_histogram('his_empty_a', 3);
INSERT INTO his_empty VALUES (1);
SELECT learnedbtree_train('his_empty_a');
SELECT * FROM learnedbtree_histogram('his_empty_a', 3);

-- refused
SELECT * FROM learnedbtree_histogram('his_a', 0);
SELECT * FROM learnedbtree_histogram('his_a', -1);
SELECT * FROM learnedbtree_histogram('his_a', NULL);
SELECT * FROM learnedbtree_histogram(NULL);
SELECT * FROM learnedbtree_histogram('his');
SELECT * FROM learnedbtree_histogram('pg_class_oid_index');
DROP TABLE his, his_empty;
