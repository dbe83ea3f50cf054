-- Looking ahead in partitions: joins whose inner side is pruned for each row, and writes that are routed.  Each answer is
-- compared with that of plain btree indexes.

CREATE TABLE pa_hash (v int4, k int8, a int4, w text) PARTITION BY HASH (k);
SELECT format('CREATE TABLE pa_hash_%s PARTITION OF pa_hash FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', i) FROM generate_series(0, 7) i \gexec
CREATE INDEX pa_hash_k ON pa_hash (k) WITH (fillfactor = 10);
INSERT INTO pa_hash SELECT i, mix(i) * 1000003::int8, i % 500, 'wide ' || i FROM generate_series(1, 24000) i;
-- columns in another order than the parent's, with a hole
CREATE TABLE pa_list (gone int4, a int4, k int8, v int4) PARTITION BY LIST (a);
ALTER TABLE pa_list DROP COLUMN gone;
CREATE TABLE pa_list_0 PARTITION OF pa_list FOR VALUES IN (0, 3, 6, NULL);
CREATE TABLE pa_list_1 (k int8, gone text, v int4, a int4);
ALTER TABLE pa_list_1 DROP COLUMN gone;
ALTER TABLE pa_list ATTACH PARTITION pa_list_1 FOR VALUES IN (1, 4, 7);
CREATE TABLE pa_list_2 PARTITION OF pa_list FOR VALUES IN (2);
CREATE TABLE pa_list_rest PARTITION OF pa_list DEFAULT;
CREATE INDEX pa_list_ka ON pa_list (k, a) WITH (fillfactor = 10);
INSERT INTO pa_list (a, k, v) SELECT CASE WHEN i % 13 = 0 THEN NULL ELSE i % 10 END, mix(i), i FROM generate_series(1, 24000) i;
-- by several columns; the first one's type is compared with others of its family
CREATE TABLE pa_range (a int4, k int8, v int4) PARTITION BY RANGE (a, k);
CREATE TABLE pa_range_1 PARTITION OF pa_range FOR VALUES FROM (MINVALUE, MINVALUE) TO (100, 0);
CREATE TABLE pa_range_2 PARTITION OF pa_range FOR VALUES FROM (100, 0) TO (100, 2000000000);
CREATE TABLE pa_range_3 PARTITION OF pa_range FOR VALUES FROM (100, 2000000000) TO (350, 0);
CREATE TABLE pa_range_rest PARTITION OF pa_range DEFAULT;
CREATE UNIQUE INDEX pa_range_ak ON pa_range (a, k DESC) WITH (fillfactor = 10);
INSERT INTO pa_range SELECT CASE WHEN i % 3 = 0 THEN 100 ELSE i % 500 END, mix(i), i FROM generate_series(1, 24000) i;
CREATE TABLE pa_text (s text COLLATE "C", v int4) PARTITION BY RANGE (s);
CREATE TABLE pa_text_1 PARTITION OF pa_text FOR VALUES FROM (MINVALUE) TO ('key 3');
CREATE TABLE pa_text_2 PARTITION OF pa_text FOR VALUES FROM ('key 3') TO ('key 7');
CREATE TABLE pa_text_3 PARTITION OF pa_text FOR VALUES FROM ('key 7') TO (MAXVALUE);
CREATE INDEX pa_text_s ON pa_text (s) WITH (fillfactor = 10);
INSERT INTO pa_text SELECT 'key ' || mix(i), i FROM generate_series(1, 24000) i;
-- a partition that is partitioned
CREATE TABLE pa_deep (a int4, k int8, v int4) PARTITION BY LIST (a);
CREATE TABLE pa_deep_0 PARTITION OF pa_deep FOR VALUES IN (0);
CREATE TABLE pa_deep_1 PARTITION OF pa_deep FOR VALUES IN (1) PARTITION BY HASH (k);
CREATE TABLE pa_deep_1_0 PARTITION OF pa_deep_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE pa_deep_1_1 PARTITION OF pa_deep_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX pa_deep_ka ON pa_deep (k, a) WITH (fillfactor = 10);
INSERT INTO pa_deep SELECT i % 2, mix(i), i FROM generate_series(1, 24000) i;
CREATE TABLE pa_probe (n int4, k int8, m int8, k4 int4, a int4, a8 int8, s text, wide text);
INSERT INTO pa_probe SELECT i, CASE WHEN i % 9 = 0 THEN NULL WHEN i % 5 = 0 THEN mix(-i) ELSE mix(mix(i) % 24000 + 1) * 1000003::int8 END,
       mix(i * 29), (mix(i) % 1000)::int4, CASE WHEN i % 11 = 0 THEN NULL WHEN i % 4 = 0 THEN 100 ELSE (i * 29) % 10 END, (i * 29) % 500,
       'key ' || mix(i * 29), repeat('wide ', (mix(i) % 400)::int4)
  FROM generate_series(1, 800) i;
-- leaves are sparse after a build, so that few rows make indexes that are worth it
SELECT format('REINDEX TABLE %s', t) FROM unnest('{pa_hash,pa_list,pa_range,pa_text,pa_deep}'::text[]) t \gexec
VACUUM ANALYZE pa_hash, pa_list, pa_range, pa_text, pa_deep, pa_probe;

SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
CREATE FUNCTION pa_train() RETURNS int8 LANGUAGE sql AS
    'SELECT count(learnedbtree_train(oid)) FROM pg_class WHERE relkind = ''i'' AND relname LIKE ''pa\_%'' AND (SELECT indisvalid FROM pg_index WHERE indexrelid = oid)';
SELECT pa_train() > 0 AS trained;

-- The node, and that its predictions are used.
SET enable_seqscan = on;
EXPLAIN (COSTS OFF) SELECT p.n, h.v FROM pa_probe p JOIN pa_list h ON h.k = p.m AND h.a = p.a;
SET enable_seqscan = off;
CREATE FUNCTION pa_plan(query text, VARIADIC wanted text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ ANY (wanted) THEN
            RETURN NEXT line;
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION pa_sum(query text, what text) RETURNS numeric LANGUAGE sql
    RETURN (SELECT coalesce(sum(substring(line from what || ': (\d+)')::numeric), 0) FROM pa_plan(query, what) line);
SELECT count(h.v) AS warm FROM pa_probe p JOIN pa_hash h ON h.k = p.k \gset
SELECT pa_sum('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k', 'Rows Predicted') BETWEEN 500 AND 800 AS predicted;
SELECT pa_sum('SELECT p.n, (SELECT max(h.v) FROM pa_hash h WHERE h.k = p.k) FROM pa_probe p', 'Rows Predicted') BETWEEN 500 AND 800 AS predicted;
SELECT pa_sum('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k', 'Batches') BETWEEN 40 AND 200 AS batches;
-- rows read in vain are few
SELECT substring(line from 'rows=(\d+)')::int BETWEEN 50 AND 102 AS twice_at_most
  FROM pa_plan('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_hash h ON h.k = p.k LIMIT 50', 'Scan on pa_probe') line;
-- no node where a row may come from several partitions, or all are scanned
SELECT count(*) FROM pa_plan('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k >= p.k AND p.n < 100 ORDER BY h.k LIMIT 3', 'Look-Ahead');
SELECT count(*) FROM pa_plan('SELECT p.n, h.v FROM pa_probe p JOIN pa_list h ON h.k = p.m', 'Look-Ahead');
SET enable_partition_pruning = off;
SELECT count(*) FROM pa_plan('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k', 'Look-Ahead');
RESET enable_partition_pruning;

-- The same answers as by a hash join, with batches of several sizes, and little memory.
CREATE FUNCTION pa_compare(query text) RETURNS text LANGUAGE sql RETURN compare_joins(query);
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k');
SELECT pa_compare('SELECT p.n, h.w FROM pa_probe p JOIN pa_hash h ON h.k = p.k4');
SELECT pa_compare('SELECT p.n, p.wide, h.w FROM pa_probe p LEFT JOIN pa_hash h ON h.k = p.k');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p JOIN pa_list h ON h.k = p.m AND h.a = p.a');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p JOIN pa_list h ON h.k = p.m AND h.a = p.a8 % 10');
SELECT pa_compare('SELECT p.n, h.v FROM (SELECT n, m, a8 % 10 AS a FROM pa_probe OFFSET 0) p JOIN pa_list h ON h.k = p.m AND h.a = p.a');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_range h ON h.a = p.a AND h.k = p.m');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_range h ON h.a = p.a8 AND h.k = p.m');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_text h ON h.s = p.s');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_text h ON h.s = p.s COLLATE "C"');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p JOIN pa_deep h ON h.k = p.m AND h.a = p.a');
SELECT pa_compare('SELECT p.n FROM pa_probe p WHERE EXISTS (SELECT FROM pa_hash h WHERE h.k = p.k)');
SELECT pa_compare('SELECT p.n FROM pa_probe p WHERE NOT EXISTS (SELECT FROM pa_hash h WHERE h.k = p.k AND h.v > p.n)');
SELECT pa_compare('SELECT p.n, (SELECT max(h.v) FROM pa_hash h WHERE h.k = p.k) FROM pa_probe p');
SELECT pa_compare('SELECT p.n, (SELECT g.v FROM pa_range g WHERE g.a = p.a AND g.k = p.m) FROM pa_probe p WHERE p.n % 3 = 0 OR (SELECT count(*) FROM pa_list h WHERE h.k = p.m AND h.a = p.a) = 0');
SELECT pa_compare('SELECT p.n, h.v, g.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k JOIN pa_range g ON g.a = h.a AND g.k = p.m');
SELECT pa_compare('SELECT p.n, s.m FROM pa_probe p, LATERAL (SELECT max(h.v) AS m FROM pa_hash h WHERE h.k = p.k) s');
SELECT pa_compare('SELECT p.n, s.v FROM pa_probe p, LATERAL (SELECT h.v FROM pa_hash h WHERE h.k = p.k ORDER BY h.v LIMIT 1) s');
SELECT pa_compare('SELECT p.n, s.v FROM pa_probe p, LATERAL (SELECT h.v, h.k FROM pa_hash h WHERE h.k = p.k ORDER BY h.k LIMIT 1) s');
SELECT pa_compare('SELECT x.n, l.v FROM pa_probe x, LATERAL (SELECT h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k WHERE p.n < x.n ORDER BY h.v, p.n LIMIT 2) l WHERE x.n BETWEEN 10 AND 30');
SELECT pa_compare('SELECT x.n, (SELECT count(h.v) FROM pa_probe p JOIN pa_hash h ON h.k = p.k WHERE p.n > x.n) FROM pa_probe x WHERE x.n % 29 = 0');
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p JOIN (SELECT * FROM pa_hash UNION ALL SELECT v, k, a, NULL FROM pa_range) h ON h.k = p.k WHERE p.n % 4 = 0');
SET enable_memoize = on;
SELECT pa_compare('SELECT r.i, h.v FROM (SELECT k, i FROM generate_series(1, 20) i, pa_probe WHERE n < 100 ORDER BY i, n OFFSET 0) r JOIN pa_hash h ON h.k = r.k');
SET enable_memoize = off;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT pa_compare('SELECT p.n, h.w FROM pa_probe p JOIN pa_hash h ON h.k = p.k');
RESET enable_indexscan;
SET enable_bitmapscan = off;
-- cursors, to and fro
CREATE FUNCTION pa_walk(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    served text := walk(query, 60, 1);
BEGIN
    PERFORM set_config('learnedbtree.lookahead_rows', '0', true);
    RETURN CASE WHEN served = walk(query, 60, 1) THEN 'same' ELSE 'WRONG' END;
END $$;
SELECT pa_walk('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_hash h ON h.k = p.k');
RESET learnedbtree.lookahead_rows;

-- Partitions whose index is left out, missing, or not valid.
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k');
SET learnedbtree.btree_indexes = 'all, !pa_hash_3_k_idx';
SELECT pa_sum('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k', 'Rows Predicted') BETWEEN 400 AND 700 AS fewer;
SET learnedbtree.btree_indexes = 'all, !pa_hash_*';
SELECT count(*) FROM pa_plan('SELECT p.n, h.v FROM pa_probe p JOIN pa_hash h ON h.k = p.k', 'Look-Ahead');
SET learnedbtree.btree_indexes = 'all';
DROP INDEX pa_text_s;
CREATE INDEX pa_text_1_s ON pa_text_1 (s) WITH (fillfactor = 10);
CREATE INDEX pa_text_3_s ON pa_text_3 (s) WITH (fillfactor = 10);
SELECT pa_train() > 0 AS trained;
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_text h ON h.s = p.s COLLATE "C" WHERE p.n % 4 = 0');
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'pa_text_3_s'::regclass;
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_text h ON h.s = p.s COLLATE "C" WHERE p.n % 4 = 0');

-- A plan that is kept, while partitions come and go.
SET plan_cache_mode = force_generic_plan;
PREPARE pa_kept AS SELECT count(*), sum(h.v) FROM pa_probe p JOIN pa_list h ON h.k = p.m AND h.a = p.a;
EXECUTE pa_kept;
ALTER TABLE pa_list DETACH PARTITION pa_list_2;
EXECUTE pa_kept;
SELECT count(*), sum(h.v) FROM pa_probe p JOIN pa_list h ON h.k = p.m AND h.a = p.a;
ALTER TABLE pa_list ATTACH PARTITION pa_list_2 FOR VALUES IN (2);
EXECUTE pa_kept;
ALTER TABLE pa_hash DETACH PARTITION pa_hash_7 CONCURRENTLY;
SELECT pa_compare('SELECT p.n, h.v FROM pa_probe p LEFT JOIN pa_hash h ON h.k = p.k');
DROP TABLE pa_list_0;
EXECUTE pa_kept;
SELECT count(*) FROM pa_plan('EXECUTE pa_kept', 'Look-Ahead');
RESET plan_cache_mode;

-- Writes.  What a command leaves in a table, or its error, by which node; then it is undone.
CREATE TABLE pa_new (w text, k int8, id int4, a int4, at date);
INSERT INTO pa_new SELECT 'new ' || i, mix(i + 24000 - i % 2 * 23000), i, i % 500, '2024-01-01'::date + i % 400 FROM generate_series(1, 900) i;
CREATE TABLE pa_to (gone int4, id int8, k int8 NOT NULL, w text, g int8 GENERATED ALWAYS AS (k * 2) STORED, PRIMARY KEY (k) WITH (fillfactor = 10)) PARTITION BY HASH (k);
ALTER TABLE pa_to DROP COLUMN gone;
CREATE TABLE pa_to_0 PARTITION OF pa_to FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE pa_to_1 (w text, gone int4, k int8 NOT NULL, id int8, g int8 GENERATED ALWAYS AS (k * 2) STORED);
ALTER TABLE pa_to_1 DROP COLUMN gone;
ALTER TABLE pa_to ATTACH PARTITION pa_to_1 FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE pa_to_2 PARTITION OF pa_to FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE pa_to_3 PARTITION OF pa_to FOR VALUES WITH (MODULUS 4, REMAINDER 3);
CREATE INDEX pa_to_id ON pa_to (id, w) WITH (fillfactor = 10);
CREATE INDEX pa_to_0_only ON pa_to_0 (w) WITH (fillfactor = 10);
CREATE INDEX pa_to_g ON pa_to (g);
INSERT INTO pa_to (id, k, w) SELECT i, mix(i), 'old ' || i FROM generate_series(1, 24000) i;
CREATE TABLE pa_dates (at date, id int8, w text) PARTITION BY RANGE (at);
CREATE TABLE pa_dates_1 PARTITION OF pa_dates FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
CREATE TABLE pa_dates_2 PARTITION OF pa_dates FOR VALUES FROM ('2024-07-01') TO ('2025-01-01') PARTITION BY LIST (id);
CREATE TABLE pa_dates_2_rest PARTITION OF pa_dates_2 DEFAULT;
CREATE TABLE pa_dates_rest PARTITION OF pa_dates DEFAULT;
CREATE INDEX pa_dates_id ON pa_dates (id, at) WITH (fillfactor = 10);
INSERT INTO pa_dates SELECT '2024-01-01'::date + i % 500, mix(i), 'old ' || i FROM generate_series(1, 20000) i;
REINDEX TABLE pa_to;
REINDEX TABLE pa_dates;
VACUUM ANALYZE pa_to, pa_dates, pa_new;
SELECT pa_train() > 0 AS trained;
SET enable_seqscan = on;
SET enable_hashjoin = on;
CREATE FUNCTION pa_write(command text, written text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    oracle text;
    answer text;
    nodes int := 0;
    rows text;
BEGIN
    FOREACH rows IN ARRAY '{none,0,2,7,64}'::text[] LOOP
        PERFORM set_config('learnedbtree.btree_indexes', CASE rows WHEN 'none' THEN 'none' ELSE 'all' END, true),
                set_config('learnedbtree.lookahead_rows', CASE rows WHEN 'none' THEN '64' ELSE rows END, true);
        nodes := nodes + look_aheads(command);
        BEGIN
            EXECUTE command;
            answer := answers(format('SELECT tableoid::regclass, * FROM %s', written));
            RAISE EXCEPTION 'undo' USING ERRCODE = 'LB000';
        EXCEPTION WHEN SQLSTATE 'LB000' THEN
            NULL;
        WHEN OTHERS THEN
            answer := SQLERRM;
        END;
        oracle := coalesce(oracle, answer);
        IF answer IS DISTINCT FROM oracle THEN
            RETURN format('WRONG with %s rows: %s, not %s', rows, answer, oracle);
        END IF;
    END LOOP;
    RETURN format('%s, %s nodes in 3 plans', CASE WHEN oracle ~ '^\d+:' THEN split_part(oracle, ':', 1) || ' rows' ELSE oracle END, nodes);
END $$;
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k + 7, w FROM pa_new', 'pa_to');
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k + 7, w FROM pa_new WHERE id % 2 = 0 RETURNING id', 'pa_to');
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k, w FROM pa_new', 'pa_to');
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, CASE WHEN id < 800 THEN k + 7 END, w FROM pa_new', 'pa_to');
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k, w FROM pa_new ON CONFLICT DO NOTHING', 'pa_to');
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k, w FROM pa_new ON CONFLICT (k) DO UPDATE SET w = excluded.w, id = pa_to.id + 1', 'pa_to');
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT a, 5000000000 + id, w FROM pa_new', 'pa_to');
SELECT pa_write('INSERT INTO pa_to_1 (id, k, w) SELECT id, k + 7, w FROM pa_new', 'pa_to');
SELECT pa_write('INSERT INTO pa_dates SELECT CASE WHEN id % 3 > 0 THEN at END, k, w FROM pa_new', 'pa_dates');
-- Where all of them go to one leaf of one partition, they are looked up no more.
BEGIN;
SELECT pa_sum('INSERT INTO pa_dates SELECT ''2030-01-01'', g, ''one'' FROM generate_series(1, 2000) g', 'Rows Predicted') > 0 AS warm;
SELECT pa_sum('INSERT INTO pa_dates SELECT ''2030-01-01'', 9000000000 + g, ''more'' FROM generate_series(1, 4000) g', 'Rows Predicted') < 500 AS paused;
ROLLBACK;
SELECT pa_write('UPDATE pa_to t SET id = t.id + 100000 FROM pa_new n WHERE n.k = t.k', 'pa_to');
SELECT pa_write('UPDATE pa_to t SET k = t.k + 5000000000, w = n.w FROM pa_new n WHERE n.k = t.k', 'pa_to');
SELECT pa_write('UPDATE pa_to_1 t SET w = n.w FROM pa_new n WHERE n.k = t.k', 'pa_to');
SELECT pa_write('UPDATE pa_dates SET id = -id WHERE id % 20 = 0', 'pa_dates');
SELECT pa_write('UPDATE pa_dates SET at = at + 180, id = -id WHERE id % 20 = 0', 'pa_dates');
SELECT pa_write('MERGE INTO pa_to t USING pa_new n ON t.k = n.k WHEN MATCHED THEN UPDATE SET w = n.w WHEN NOT MATCHED THEN INSERT (id, k, w) VALUES (n.id, n.k, n.w)', 'pa_to');
SELECT pa_write('MERGE INTO pa_to t USING pa_new n ON t.k = n.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k, w) VALUES (n.id, n.k, n.w)', 'pa_to');
SELECT pa_write('MERGE INTO pa_to t USING pa_new n ON t.k = n.k WHEN NOT MATCHED THEN INSERT (id, k, w) VALUES (n.id, n.k + 7, n.w)', 'pa_to');
SELECT pa_write('DELETE FROM pa_to USING pa_new n WHERE n.k = pa_to.k', 'pa_to');
-- a trigger of a partition that drops another one's index, and one that changes the key
CREATE FUNCTION pa_drop() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id = 300 THEN
        DROP INDEX pa_to_0_only;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER pa_drop BEFORE INSERT ON pa_to_3 FOR EACH ROW EXECUTE FUNCTION pa_drop();
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k + 7, w FROM pa_new', 'pa_to');
DROP TRIGGER pa_drop ON pa_to_3;
CREATE FUNCTION pa_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := NEW.id + 1; RETURN NEW; END';
CREATE TRIGGER pa_change BEFORE INSERT OR UPDATE ON pa_to FOR EACH ROW EXECUTE FUNCTION pa_change();
SELECT pa_write('INSERT INTO pa_to (id, k, w) SELECT id, k + 7, w FROM pa_new', 'pa_to');
-- numbers of a sequence, and a key that is computed
CREATE TABLE pa_serial (id bigserial, k int8) PARTITION BY HASH (id);
CREATE TABLE pa_serial_0 PARTITION OF pa_serial FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE pa_mod (k int8) PARTITION BY LIST ((k % 2));
CREATE TABLE pa_mod_0 PARTITION OF pa_mod DEFAULT;
EXPLAIN (COSTS OFF) INSERT INTO pa_serial (k) SELECT k FROM pa_new;
EXPLAIN (COSTS OFF) INSERT INTO pa_mod SELECT k FROM pa_new;
EXPLAIN (COSTS OFF) INSERT INTO pa_to (id, k, w) SELECT id, k + 7, w FROM pa_new;
EXPLAIN (COSTS OFF) UPDATE pa_to SET id = id + 1;
-- one partition: in all indexes, by the old row's columns
EXPLAIN (COSTS OFF) UPDATE pa_to_1 SET w = w || '!';
-- predictions are used
SELECT pa_sum('INSERT INTO pa_to (id, k, w) SELECT id, k + 7, w FROM pa_new', 'Rows Predicted') > 2 * 300 AS predicted;
DROP TABLE pa_hash, pa_list, pa_list_1, pa_range, pa_text, pa_deep, pa_probe, pa_new, pa_to, pa_dates, pa_serial, pa_mod;
