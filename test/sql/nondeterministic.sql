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
DROP COLLATION nd_case;
