-- The planner's look for the first and last value of a column, where rows there have been deleted: it finds what it finds by btree.
CREATE TABLE ends (a bigint, d bigint) WITH (autovacuum_enabled = off);
INSERT INTO ends SELECT i, i FROM generate_series(1, 160000) i;
INSERT INTO ends SELECT NULL FROM generate_series(1, 1000);
SELECT use_am();
CREATE INDEX ends_a ON ends (a);
CREATE INDEX ends_d ON ends (d DESC, a);
VACUUM ANALYZE ends;

CREATE FUNCTION expected_rows(condition text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT FROM ends WHERE ' || condition INTO plan;
    RETURN plan->0->'Plan'->'Plan Rows';
END $$;
-- The number of rows that planning expects at each end, and is it the same by nbtree?  It gives up after 100 pages of dead rows, but has
-- marked their entries then, so that the next one comes further.
CREATE FUNCTION plannings() RETURNS TABLE (condition text, rows bigint, same boolean) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH condition IN ARRAY '{a < 1000, a > 159000, d < 1000, d > 159000}'::text[] LOOP
        FOR i IN 1..10 LOOP
            rows := expected_rows(condition);
        END LOOP;
        SET LOCAL learnedbtree.enable = off;
        same := rows = expected_rows(condition);
        RESET learnedbtree.enable;
        RETURN NEXT;
    END LOOP;
END $$;
SELECT condition, rows BETWEEN 500 AND 1500 AS as_many, same FROM plannings();
DELETE FROM ends WHERE a <= 3000 OR a > 157000;
SELECT condition, rows < 100 AS few, same FROM plannings();
DELETE FROM ends WHERE a NOT BETWEEN 70000 AND 90000;
SELECT condition, rows < 100 AS few, same FROM plannings();
SELECT sum(lookups) >= 120 AS by_models FROM learnedbtree_stat WHERE indexrelname IN ('ends_a', 'ends_d');

-- scans that look for rows pass the dead ones
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT c, answers('SELECT * FROM ends WHERE ' || c) FROM unnest('{a < 70000, a > 90000, d < 70000, d > 90000}'::text[]) c;
SELECT compare('ends_d', 'SELECT d FROM ends WHERE d IS NOT NULL ORDER BY d'), compare('ends_d', 'SELECT d FROM ends WHERE d IS NOT NULL ORDER BY d DESC');
SELECT compare('ends_d', 'SELECT min(d), max(d) FROM ends'), min(d), max(d) FROM ends;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE ends;
DROP FUNCTION expected_rows, plannings;
