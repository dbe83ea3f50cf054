-- Keys whose first entry begins a leaf.  Splits truncate the separator to the key, or to its first columns; a lookup takes
-- that leaf at once, instead of the one to its left.
SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;

-- Groups of 30 to 100 rows that came in no order, so that most leaves begin with a group.
CREATE TABLE beg_rows AS SELECT g::int, at::int, nullif(g, 7) * 1000000007::bigint AS x
  FROM generate_series(1, 500) g, LATERAL generate_series(1, 30 + mix(g) % 70) at ORDER BY mix(g * 1000 + at);
CREATE TABLE beg_one (LIKE beg_rows);
CREATE TABLE beg_two (LIKE beg_rows);
CREATE TABLE beg_down (LIKE beg_rows);
CREATE TABLE beg_null (LIKE beg_rows);
CREATE INDEX beg_one_i ON beg_one (g) WITH (deduplicate_items = off);
CREATE INDEX beg_two_i ON beg_two (g, at);
CREATE INDEX beg_down_i ON beg_down (g DESC, at DESC);
CREATE INDEX beg_null_i ON beg_null (x NULLS FIRST, at);
INSERT INTO beg_one TABLE beg_rows;
INSERT INTO beg_two TABLE beg_rows;
INSERT INTO beg_down TABLE beg_rows;
INSERT INTO beg_null TABLE beg_rows;
VACUUM ANALYZE beg_one, beg_two, beg_down, beg_null;
SELECT i, leaves > 80 AS many FROM unnest('{beg_one_i, beg_two_i, beg_down_i, beg_null_i}'::text[]) i, learnedbtree_train(i::regclass),
    learnedbtree_model(i::regclass);
CREATE TABLE beg_groups AS SELECT DISTINCT g, x FROM beg_rows;
ANALYZE beg_groups;

-- The first entry that a condition on each group leads to, by the table's index: the same as by btree?  Leaves that are
-- looked at beside one a lookup; and lookups that did not come to the right leaf.
CREATE FUNCTION beg_blocks(node jsonb) RETURNS bigint LANGUAGE sql AS $$
    SELECT CASE WHEN node ? 'Index Name' THEN (node->>'Shared Hit Blocks')::bigint + (node->>'Shared Read Blocks')::bigint
        ELSE (SELECT sum(beg_blocks(child)) FROM jsonb_array_elements(node->'Plans') child) END $$;
CREATE FUNCTION beg_first(t text, condition text) RETURNS text LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off
    SET enable_sort = off SET max_parallel_workers_per_gather = 0 SET learnedbtree.btree_indexes = 'all' AS $$
DECLARE
    query text := format('SELECT o.g, e.* FROM beg_groups o, LATERAL (SELECT g, x, at FROM %s t WHERE %s LIMIT 1) e',
        t, condition);
    s record;
    plan jsonb;
    learned text;
    more bigint;
BEGIN
    query := replace(query, 'g, x, at', CASE t WHEN 'beg_one' THEN 'g' WHEN 'beg_null' THEN 'x, at' ELSE 'g, at' END);
    learned := answers(query);
    PERFORM learnedbtree_stat_reset((t || '_i')::regclass);
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
    SELECT * INTO s FROM learnedbtree_stat WHERE relname = t;
    more := beg_blocks(plan->0->'Plan') - s.lookups;
    PERFORM set_config('learnedbtree.btree_indexes', 'none', true);
    RETURN concat_ws(', ', CASE WHEN learned = answers(query) THEN 'same' ELSE 'WRONG' END,
        CASE WHEN s.lookups NOT BETWEEN 490 AND 500 THEN s.lookups || ' lookups' END,
        CASE WHEN more < 5 THEN 'one leaf each' WHEN more < 30 THEN 'few more' ELSE 'more' END,
        CASE WHEN s.verified < s.lookups THEN s.lookups - s.verified || ' descended' END);
END $$;
CREATE VIEW beg_all AS
    SELECT t, condition, beg_first(t, condition) AS outcome
      FROM (VALUES ('beg_one', 'g = o.g'),
                   ('beg_two', 'g = o.g ORDER BY at'),
                   ('beg_two', 'g = o.g AND at > 0 ORDER BY at'),
                   ('beg_two', 'g >= o.g ORDER BY g, at'),
                   ('beg_two', 'g = o.g ORDER BY g DESC, at DESC'),
                   ('beg_two', 'g < o.g ORDER BY g DESC, at DESC'),
                   ('beg_down', 'g = o.g ORDER BY at DESC'),
                   ('beg_down', 'g <= o.g ORDER BY g DESC, at DESC'),
                   ('beg_null', 'x = o.x ORDER BY at')) v(t, condition);
TABLE beg_all;
SELECT learnedbtree_check(i::regclass) IS NOT NULL AS checked FROM unnest('{beg_one_i, beg_two_i, beg_down_i, beg_null_i}'::text[]) i;

-- Entries before these, and between: the leaves are no longer as the training saw them.
INSERT INTO beg_two SELECT g, CASE WHEN g % 3 > 0 THEN 0 ELSE 1000 END FROM beg_groups WHERE g % 5 > 0;
SELECT split_part(outcome, ',', 1) AS answers, outcome LIKE '%descended%' AS descended, count(*)
  FROM beg_all WHERE t = 'beg_two' GROUP BY 1, 2;
SELECT sound('beg_two_i');

-- A leaf that a key began is deleted, and comes again in the middle of the same key's entries.
CREATE TABLE beg_again (g int NOT NULL);
CREATE INDEX beg_again_i ON beg_again (g) WITH (deduplicate_items = off);
INSERT INTO beg_again SELECT g FROM generate_series(1, 12) g, generate_series(1, CASE WHEN g = 6 THEN 3000 ELSE 500 END) i
  ORDER BY mix(g * 10000 + i);
VACUUM ANALYZE beg_again;
SELECT leaves > 20 AS many FROM learnedbtree_train('beg_again_i'), learnedbtree_model('beg_again_i');
DELETE FROM beg_again t USING (SELECT ctid, row_number() OVER (PARTITION BY g ORDER BY ctid) AS n FROM beg_again WHERE g = 6) d
 WHERE t.ctid = d.ctid AND n <= 1500;
VACUUM beg_again;
-- A deleted page can be used again when a later transaction has begun.
SELECT pg_current_xact_id() IS NOT NULL AS begun;
VACUUM beg_again;
SELECT pg_relation_size('beg_again_i') AS size, trainings FROM learnedbtree_stat WHERE relname = 'beg_again' \gset
INSERT INTO beg_again SELECT 6 FROM generate_series(1, 1200) i;
SELECT pg_relation_size('beg_again_i') < :size + 4 * 8192 AS used_again, trainings = :trainings AS old_model FROM learnedbtree_stat WHERE relname = 'beg_again';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM beg_again WHERE g = 6;
SELECT g, (SELECT count(*) FROM beg_again t WHERE t.g = o.g) AS rows FROM generate_series(4, 8) o(g);
SELECT sound('beg_again_i');
DROP VIEW beg_all;
DROP FUNCTION beg_first, beg_blocks;
DROP TABLE beg_rows, beg_one, beg_two, beg_down, beg_null, beg_groups, beg_again;
