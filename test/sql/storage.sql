-- What lies on the pages: posting lists, dead items, the visibility map; bitmaps and parallel scans.
SELECT use_am() AS am \gset

CREATE TABLE sto (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO sto SELECT i % 50, i FROM generate_series(1, 20000) i;
CREATE INDEX sto_k ON sto USING :am (k);
CREATE INDEX sto_v ON sto USING :am (v) WITH (deduplicate_items = off);
VACUUM ANALYZE sto;

-- 400 rows a key, deduplicated: a quarter of the size
SELECT pg_relation_size('sto_k') * 2 < pg_relation_size('sto_v') AS posting_lists;
SELECT * FROM compare_all('sto_k', 'SELECT k, v FROM sto WHERE $1', ARRAY['k = 0', 'k = 25', 'k = 49', 'k = 50', 'k < 2', 'k > 47', 'k BETWEEN 20 AND 22']);
SELECT * FROM compare_all('sto_k', 'SELECT k FROM sto WHERE $1', ARRAY['k = 0', 'k = 49', 'k < 2', 'k BETWEEN 20 AND 22']);
SELECT compare_walk('sto_k', 'SELECT k FROM sto WHERE k > 10 ORDER BY k'), compare_walk('sto_k', 'SELECT k FROM sto WHERE k = 7 ORDER BY k DESC', 'only');
-- ... grown by inserts, in the middle of posting lists
INSERT INTO sto SELECT 25, -i FROM generate_series(1, 1500) i;
UPDATE sto SET v = v + 1000000 WHERE k = 25 AND v % 10 = 0;
SELECT left(compare('sto_k', 'SELECT k, v FROM sto WHERE k ' || c), 4) AS answers, count(*) FROM unnest(ARRAY['= 24', '= 25', '= 26', '> 24', '< 26']) c GROUP BY 1;
SELECT sound('sto_k');

-- index-only scans: heap fetched where pages are not all-visible, and dead rows never seen
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT v FROM sto WHERE v BETWEEN 100 AND 110;
DELETE FROM sto WHERE v BETWEEN 103 AND 105;
SELECT v FROM sto WHERE v BETWEEN 100 AND 110 ORDER BY v;
BEGIN;
DELETE FROM sto WHERE v = 107;
SAVEPOINT s;
INSERT INTO sto VALUES (1, 104);
SELECT v FROM sto WHERE v BETWEEN 100 AND 110 ORDER BY v DESC;
ROLLBACK TO s;
SELECT v FROM sto WHERE v BETWEEN 100 AND 110 ORDER BY v DESC;
ROLLBACK;
VACUUM sto;
SELECT v FROM sto WHERE v BETWEEN 100 AND 110 ORDER BY v;
SELECT count(*) FROM sto WHERE v BETWEEN 100 AND 110;

-- dead items: an index scan that finds rows dead marks them, and the next one does not see them
CREATE EXTENSION pageinspect;
CREATE TABLE sto_dead (k bigint) WITH (autovacuum_enabled = off);
CREATE INDEX sto_dead_i ON sto_dead USING :am (k);
INSERT INTO sto_dead SELECT i FROM generate_series(1, 1000) i;
SELECT learnedbtree_train('sto_dead_i');
DELETE FROM sto_dead WHERE k BETWEEN 100 AND 300;
SET enable_indexonlyscan = off;
SELECT count(*) FROM sto_dead WHERE k BETWEEN 90 AND 310;
SELECT count(*) FROM sto_dead WHERE k BETWEEN 90 AND 310;
SELECT count(*) > 190 AS dead FROM generate_series(1, 4) b, LATERAL page_header(get_raw_page('sto_dead_i', b)) h,
       LATERAL (SELECT generate_series(0, (h.lower - 24) / 4 - 1) AS n) l,
       LATERAL (SELECT get_byte(get_raw_page('sto_dead_i', b), 24 + 4 * n + 1) AS b1, get_byte(get_raw_page('sto_dead_i', b), 24 + 4 * n + 2) AS b2) f
 WHERE (b1 >> 7) + ((b2 & 1) << 1) = 3;
RESET enable_indexonlyscan;
SELECT count(*), min(k), max(k) FROM sto_dead WHERE k BETWEEN 90 AND 310;
-- room of dead items is taken again, and the answers stay right
INSERT INTO sto_dead SELECT i FROM generate_series(100, 300) i;
SELECT count(*), min(k), max(k) FROM sto_dead WHERE k BETWEEN 90 AND 310;
SELECT sound('sto_dead_i');
DROP TABLE sto_dead;
DROP EXTENSION pageinspect;

-- pages deleted by VACUUM and used again
CREATE TABLE sto_del (k int) WITH (autovacuum_enabled = off);
INSERT INTO sto_del SELECT i FROM generate_series(1, 20000) i;
CREATE INDEX sto_del_i ON sto_del USING :am (k);
VACUUM ANALYZE sto_del;
DELETE FROM sto_del WHERE k BETWEEN 3000 AND 15000;
VACUUM sto_del;
SELECT left(compare('sto_del_i', 'SELECT k FROM sto_del WHERE k ' || c), 4) AS answers, count(*)
  FROM unnest(ARRAY['= 2999', '= 3000', '= 9000', '= 15001', '> 2900', '< 15100', 'BETWEEN 5000 AND 6000', 'BETWEEN 2990 AND 15010']) c GROUP BY 1;
SELECT compare_walk('sto_del_i', 'SELECT k FROM sto_del WHERE k > 2500 AND k < 16000 ORDER BY k');
VACUUM sto_del;
INSERT INTO sto_del SELECT i FROM generate_series(20001, 30000) i;
SELECT left(compare('sto_del_i', 'SELECT k FROM sto_del WHERE k ' || c), 4) AS answers, count(*)
  FROM unnest(ARRAY['= 2999', '= 3000', '= 9000', '= 15001', '> 2900', '< 15100', 'BETWEEN 25000 AND 26000', '= 30000', '= 20001', 'BETWEEN 2990 AND 15010']) c GROUP BY 1;
SELECT compare_walk('sto_del_i', 'SELECT k FROM sto_del WHERE k > 2500 ORDER BY k DESC');
SELECT sound('sto_del_i');
DELETE FROM sto_del;
VACUUM sto_del;
SELECT left(compare('sto_del_i', 'SELECT k FROM sto_del WHERE k > 5'), 4);
INSERT INTO sto_del SELECT i FROM generate_series(1, 3000) i;
SELECT left(compare('sto_del_i', 'SELECT k FROM sto_del WHERE k > 5'), 4);
DROP TABLE sto_del;

-- a file that is made anew in place (TRUNCATE in the transaction that made it) is shorter than its old model and size say:
-- whatever the options and settings were meanwhile, nothing is read beyond its end, and answers are those of the new contents
CREATE FUNCTION anew(off text, what text, "on" text) RETURNS text LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET client_min_messages = error AS $$
DECLARE
    look CONSTANT text := 'SELECT count(*) FROM anew WHERE k BETWEEN 5500 AND 5900';
    file oid;
    found bigint;
    result text;
BEGIN
    CREATE TABLE anew (k int);
    INSERT INTO anew SELECT generate_series(1, 6000);
    EXECUTE format('CREATE INDEX anew_k ON anew USING %s (k) WITH (fillfactor = 50)', am());
    file := pg_relation_filenode('anew_k');
    EXECUTE look;
    EXECUTE look;
    result := (SELECT CASE WHEN verified > 0 THEN 'predicted' ELSE 'not predicted' END FROM learnedbtree_stat_get('anew_k'::regclass));
    EXECUTE off;
    EXECUTE what;
    EXECUTE "on";
    EXECUTE 'INSERT INTO anew SELECT generate_series(5850, 5950)';
    EXECUTE look INTO found;
    result := concat_ws(', ', result, found, left(compare('anew_k', 'SELECT k FROM anew WHERE k > 5870'), 4));
    EXECUTE 'INSERT INTO anew SELECT mix(i) % 12000 FROM generate_series(1, 6000) i';
    result := concat_ws(', ', result, left(compare('anew_k', 'SELECT k FROM anew WHERE k > 5870'), 4),
                        CASE WHEN pg_relation_filenode('anew_k') = file THEN 'same file' ELSE 'new file' END);
    PERFORM check_file('anew_k');
    DROP TABLE anew;
    RETURN result;
END $$;
SELECT what, anew(off, how, "on") AS result, string_agg(meanwhile, ', ' ORDER BY meanwhile COLLATE "C") AS each
  FROM (VALUES ('truncated', 'TRUNCATE anew'),
               ('and read', 'TRUNCATE anew; SELECT count(*) FROM anew WHERE k > 5500'),
               ('twice', 'TRUNCATE anew; INSERT INTO anew SELECT generate_series(1, 3000); SELECT count(*) FROM anew WHERE k = 2900; TRUNCATE anew'),
               ('after half a scan', 'DO ''DECLARE r record; BEGIN FOR r IN SELECT k FROM anew WHERE k > 5500 LOOP EXIT WHEN r.k > 5505; END LOOP; TRUNCATE anew; END'''),
               ('and rolled back', 'DO ''BEGIN TRUNCATE anew; PERFORM count(*) FROM anew WHERE k > 5500; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END'''),
               ('in a subtransaction, too', 'DO ''BEGIN TRUNCATE anew; EXCEPTION WHEN division_by_zero THEN NULL; END''; TRUNCATE anew'),
               ('clustered', 'CLUSTER anew USING anew_k'),
               ('reindexed', 'REINDEX INDEX anew_k')) w (what, how),
       (VALUES ('nothing', 'SELECT 1', 'SELECT 1'),
               ('use_model', 'SELECT use_model(''anew_k'', false)', 'SELECT use_model(''anew_k'', true)'),
               ('enable', 'SET learnedbtree.enable = off', 'SET learnedbtree.enable = on'),
               ('btree_indexes', 'SET learnedbtree.btree_indexes = none', 'SET learnedbtree.btree_indexes = anew_k')) s (meanwhile, off, "on")
 GROUP BY 1, 2 ORDER BY what COLLATE "C", 2;
DROP FUNCTION anew;
-- ... with a cursor open, which keeps TRUNCATE out
BEGIN;
CREATE TABLE anew (k int);
INSERT INTO anew SELECT generate_series(1, 6000);
CREATE INDEX anew_k ON anew USING :am (k) WITH (fillfactor = 50);
DECLARE c CURSOR FOR SELECT k FROM anew WHERE k > 5500 ORDER BY k;
FETCH 2 FROM c;
SAVEPOINT s;
SELECT use_model('anew_k', false);
ROLLBACK TO s;
TRUNCATE anew;
ROLLBACK TO s;
FETCH 2 FROM c;
CLOSE c;
SELECT use_model('anew_k', false);
TRUNCATE anew;
SELECT use_model('anew_k', true);
INSERT INTO anew SELECT generate_series(5500, 5510);
SELECT count(*) FROM anew WHERE k > 5500;
COMMIT;
SELECT count(*) FROM anew WHERE k > 5500;
DROP TABLE anew;
RESET learnedbtree.btree_indexes;
SELECT use_am() AS am \gset

-- bitmaps: alone, of several indexes, lossy
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM sto WHERE k = 3 AND v < 5000;
SELECT learnedbtree_stat_reset();
SELECT count(*), sum(v) FROM sto WHERE k = 3 AND v < 5000;
SELECT count(*), sum(v) FROM sto WHERE k = 3 OR v BETWEEN 2000 AND 2999;
SET work_mem = '64kB';
SELECT count(*), sum(v) FROM sto WHERE v BETWEEN 1000 AND 19000;
RESET work_mem;
SELECT indexrelname, lookups, verified > 0 AS verified FROM learnedbtree_stat WHERE relname = 'sto' ORDER BY 1;
SET learnedbtree.enable = off;
SELECT count(*), sum(v) FROM sto WHERE k = 3 AND v < 5000;
SELECT count(*), sum(v) FROM sto WHERE k = 3 OR v BETWEEN 2000 AND 2999;
SELECT count(*), sum(v) FROM sto WHERE v BETWEEN 1000 AND 19000;
RESET learnedbtree.enable;
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- parallel scans are nbtree's engine
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET enable_bitmapscan = off;
ALTER TABLE sto SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM sto WHERE v > 100;
SELECT count(*), sum(v) FROM sto WHERE v > 100;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT count(*), sum(v) FROM sto WHERE v > 100;
SET enable_seqscan = on;
SELECT count(*), sum(v) FROM sto WHERE v > 100;
DROP TABLE sto;
