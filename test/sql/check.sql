-- learnedbtree_check(): every separator is looked up through the model.  Counts: fresh, outdated and missing models.
SELECT use_am() AS am \gset

-- Is there a saved model, if it is of our access method?
CREATE FUNCTION saved(saved_model text) RETURNS boolean LANGUAGE sql
    AS $$ SELECT saved_model = CASE am() WHEN 'learnedbtree' THEN 'readable' ELSE 'none' END $$;
-- Are the counts those of the tree?  (All leaves but the first have a separator.)
CREATE FUNCTION check_counts(index regclass) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(', ', c.model, CASE WHEN saved(c.saved_model) THEN 'saved' ELSE 'saved model ' || c.saved_model END,
                     CASE WHEN c.separators = m.leaves - 1 THEN 'all separators' ELSE c.separators || ' of ' || m.leaves - 1 END,
                     CASE WHEN c.landed = c.separators THEN 'all landed' WHEN c.moved_right > 0 THEN 'some moved right' END,
                     CASE WHEN c.fallbacks > 0 THEN 'some fell back' END,
                     CASE WHEN c.landed + c.moved_right + c.fallbacks <> c.separators
                            OR c.fallback_block + c.fallback_page + c.fallback_low + c.fallback_high <> c.fallbacks THEN 'WRONG SUMS' END)
      FROM learnedbtree_model(index) m, check_file(index), learnedbtree_check(index) c
$$;

CREATE TABLE chk (a int, b bigint, n numeric, t text COLLATE "C", u uuid, f float8, r int, j jsonb);
INSERT INTO chk SELECT i * 100, mix(i), mix(i) / 7.0, CASE WHEN i % 2 = 0 THEN '/srv/archive/north/' ELSE '/srv/archive/south/' END || mix(i),
                       md5(i::text)::uuid, exp(i / 1000.0), i % 7, to_jsonb(i)
  FROM generate_series(1, 20000) i;
CREATE INDEX chk_a ON chk USING :am (a) INCLUDE (b);
CREATE INDEX chk_bn ON chk USING :am (b DESC NULLS LAST, n);
CREATE INDEX chk_n ON chk USING :am (n DESC);
CREATE INDEX chk_t ON chk USING :am (t);
CREATE INDEX chk_ru ON chk USING :am (r, u);
CREATE INDEX chk_f ON chk USING :am (f) WHERE a > 100000;
CREATE INDEX chk_e ON chk USING :am ((b % 1000), (NULLIF(r, 3)));
CREATE INDEX chk_r ON chk USING :am (r) WITH (deduplicate_items = off);
CREATE INDEX chk_j ON chk USING :am (j);
CREATE TABLE chk_empty (a int);
CREATE INDEX chk_empty_a ON chk_empty USING :am (a);
CREATE TABLE chk_one (a int);
INSERT INTO chk_one VALUES (1), (2);
CREATE INDEX chk_one_a ON chk_one USING :am (a);

-- fresh models; keys under long prefixes need not all be told apart; too many equal ones are not saved
SELECT i, check_counts(i) FROM unnest('{chk_a, chk_bn, chk_n, chk_ru, chk_f, chk_e, chk_one_a}'::regclass[]) i;
SELECT check_file('chk_t'), check_file('chk_r'), check_file('chk_j');
SELECT model, saved(saved_model), separators > 50 AS separators, landed + moved_right + fallbacks = separators AS sums FROM learnedbtree_check('chk_t');
SELECT model, saved_model, separators > 50 AS separators, landed = separators AS landed FROM learnedbtree_check('chk_r');

-- the other ways of finding the leaf
SET learnedbtree.enable_leaf_cache = off;
SELECT check_counts('chk_a') ~ '^ready, saved, all separators' AS by_spline;
SET learnedbtree.enable_buffer_hint = off;
SELECT check_counts('chk_bn') ~ '^ready, saved, all separators' AS by_spline;
RESET learnedbtree.enable_leaf_cache;
SELECT check_counts('chk_a');
RESET learnedbtree.enable_buffer_hint;
SET learnedbtree.enable = off;
SELECT check_counts('chk_a');
RESET learnedbtree.enable;

-- it is no user's lookup: nothing is counted
SELECT lookups, verified, moved_right, fallback_low + fallback_high + fallback_page + fallback_block AS fallbacks FROM learnedbtree_stat WHERE indexrelname = 'chk_r';
SELECT lookups_since, moved_since, fallbacks_since FROM learnedbtree_model('chk_r');

-- no model, no counts, no error
SELECT i, c.* FROM unnest('{chk_j, chk_empty_a}'::regclass[]) i, learnedbtree_check(i) c;
CREATE TEMP TABLE chk_temp AS SELECT * FROM chk LIMIT 1000;
CREATE INDEX chk_temp_a ON chk_temp USING :am (a);
SELECT * FROM learnedbtree_check('chk_temp_a');

-- an outdated model: one split is a step to the right, many in one place are too far; then trained again
INSERT INTO chk (a) SELECT 500000 FROM generate_series(1, 200) i;
INSERT INTO chk (a) SELECT i * 5000 + i % 99 FROM generate_series(1, 300) i, generate_series(1, 8);
SELECT check_counts('chk_a') ~ 'some moved right' AS moved_right;
INSERT INTO chk (a) SELECT 1000000 + i FROM generate_series(1, 5000) i;
SELECT model, moved_right > 0 AS moved_right, fallback_high > 0 AS too_far_right, fallbacks = fallback_high AS nothing_else, landed > 0 AS landed
  FROM learnedbtree_check('chk_a');
SELECT learnedbtree_train('chk_a');
SELECT check_counts('chk_a');
-- deleted leaves are missed where new separators come into the gap
DELETE FROM chk WHERE a BETWEEN 300000 AND 900000;
VACUUM chk;
SELECT model, separators < (SELECT leaves - 1 FROM learnedbtree_model('chk_a')) AS fewer, landed = separators AS landed FROM learnedbtree_check('chk_a');
INSERT INTO chk (a) SELECT 600000 + i FROM generate_series(1, 3000) i;
SELECT model, fallback_page + fallback_low > 0 AS pages_gone, fallback_block FROM learnedbtree_check('chk_a');
SELECT learnedbtree_train('chk_a');
SELECT check_counts('chk_a');

-- in a transaction that has changed the index, and in one that takes it back
BEGIN;
INSERT INTO chk (a) SELECT 2 * i FROM generate_series(1, 3000) i;
SELECT check_counts('chk_a') ~ '^ready, saved, ' AS sound;
SAVEPOINT s;
DELETE FROM chk WHERE a < 1000;
SELECT check_counts('chk_a') ~ '^ready, saved, ' AS sound;
ROLLBACK;
SELECT check_counts('chk_a') ~ '^ready, saved, ' AS sound;

DROP TABLE chk, chk_empty, chk_one, chk_temp;
DROP FUNCTION check_counts, saved;
