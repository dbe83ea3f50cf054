-- The planner's look for the first and last value of a column, where the rows there have been deleted.
SELECT use_am() AS am \gset

CREATE TABLE ends (a bigint, d bigint, n int) WITH (autovacuum_enabled = off);
INSERT INTO ends SELECT i, i, i FROM generate_series(1, 160000) i;
INSERT INTO ends SELECT NULL FROM generate_series(1, 1000);
CREATE INDEX ends_a ON ends USING :am (a);
CREATE INDEX ends_d ON ends USING :am (d DESC, a);
-- one without a model, if it is btree
SET tests.train = off;
CREATE INDEX ends_n ON ends USING :am (n);
VACUUM ANALYZE ends;

-- Before 18 the planner looks at btree indexes only.
SELECT am() = 'btree' OR current_setting('server_version_num')::int >= 180000 AS looks \gset

-- Pages that planning reads, and the number of rows that it expects.
CREATE FUNCTION planning(condition text, OUT pages bigint, OUT rows bigint) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    FOR i IN 1..2 LOOP          -- first the system catalogs, by a constant that is at no end
        EXECUTE 'EXPLAIN (BUFFERS, FORMAT JSON) SELECT * FROM ends WHERE ' || CASE i WHEN 1 THEN 'a > 80000 AND d > 80000 AND n > 80000' ELSE condition END INTO plan;
    END LOOP;
    pages := (plan->0->'Planning'->>'Shared Hit Blocks')::bigint + (plan->0->'Planning'->>'Shared Read Blocks')::bigint;
    rows := plan->0->'Plan'->'Plan Rows';
END $$;
CREATE FUNCTION plannings() RETURNS TABLE (condition text, pages bigint, rows bigint) LANGUAGE sql
    AS $$ SELECT c, p.* FROM unnest('{a < 2, a > 159999, d < 2, d > 159999, n < 2, n > 159999}'::text[]) c, planning(c) p $$;
SELECT condition, pages < 10 AS few, rows < 10 OR NOT :'looks' AS few_rows FROM plannings();

-- some rows deleted at each end: it finds the first ones that are left
DELETE FROM ends WHERE a <= 3000 OR a > 157000;
SELECT c, rows < 100 OR NOT :'looks' AS found FROM unnest('{a < 1000, a > 159000, d < 1000, d > 159000}'::text[]) c, planning(c);

-- many: it gives up, before their entries have been marked dead and after that, and takes its statistics
DELETE FROM ends WHERE a NOT BETWEEN 70000 AND 90000;
SELECT condition, pages < 100 AS few, pages > 30 OR NOT :'looks' AS looked FROM plannings();
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT c, answers('SELECT * FROM ends WHERE ' || c) FROM unnest('{a < 70000, a > 90000, d < 70000, d > 90000}'::text[]) c;
CREATE TABLE ends_seen AS SELECT * FROM plannings();
SELECT condition, pages < 100 AS few, pages > 30 OR NOT :'looks' AS looked FROM ends_seen;

SELECT state FROM learnedbtree_model('ends_n') WHERE am() = 'btree' AND state <> 'untrained';

-- nbtree does not
SET learnedbtree.enable = off;
SELECT condition, pages > 150 OR NOT :'looks' AS many FROM plannings() WHERE condition !~ 'n';
RESET learnedbtree.enable;

-- scans that look for rows pass them all
SELECT compare('ends_d', 'SELECT d FROM ends WHERE d IS NOT NULL ORDER BY d'), compare('ends_d', 'SELECT d FROM ends WHERE d IS NOT NULL ORDER BY d DESC');
SELECT compare('ends_d', 'SELECT min(d), max(d) FROM ends'), min(d), max(d) FROM ends;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX ends_a, ends_d, ends_n;
SELECT condition, p.rows = s.rows AS same FROM plannings() p JOIN ends_seen s USING (condition);
DROP TABLE ends, ends_seen;
DROP FUNCTION planning, plannings;
