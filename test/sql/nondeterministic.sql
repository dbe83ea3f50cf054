-- Pattern operator classes under a collation that takes different bytes for equal: btree refuses them, and so do we.
-- Only ICU has such collations; a server without it has the other expected output.
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS no_icu \gset
\if :no_icu
\quit
\endif
CREATE COLLATION nd_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE nd (t text COLLATE nd_case);
CREATE INDEX ON nd USING learnedbtree (t text_pattern_ops);
CREATE INDEX ON nd (t text_pattern_ops);
CREATE INDEX ON nd USING learnedbtree (t);
DROP TABLE nd;

-- Lists with values that are equal under it, and each value once
SELECT use_am() AS am \gset
CREATE TABLE nd AS SELECT ((ARRAY['key ', 'Key ', 'KEY '])[1 + i % 3] || mix(i) % 50) COLLATE nd_case AS t FROM generate_series(1, 20000) i;
CREATE INDEX nd_t ON nd USING :am (t);
VACUUM ANALYZE nd;
SELECT compare('nd_t', 'SELECT t, ctid FROM nd WHERE t = ANY (ARRAY(SELECT (ARRAY[''kEy '', ''KEY ''])[1 + g % 2] || mix(g) % 70 FROM generate_series(1, 500) g))', false) LIKE 'same, %' AS same;
SELECT same_without_loose('SELECT count(DISTINCT t), lower(max(t)), array_length(array_agg(DISTINCT t), 1) FROM nd', false), count(DISTINCT t) FROM nd;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(DISTINCT t) FROM nd;
RESET enable_seqscan;
DROP TABLE nd;
DROP COLLATION nd_case;
