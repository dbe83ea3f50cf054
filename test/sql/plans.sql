-- Prepared statements and cached plans through changes of settings, of the index and of the model.
SELECT use_am() AS am \gset

CREATE TABLE pla (a int, b int);
INSERT INTO pla SELECT i, mix(i) % 1000 FROM generate_series(1, 10000) i;
CREATE INDEX pla_a ON pla USING :am (a);
VACUUM ANALYZE pla;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE pla_eq(int) AS SELECT b FROM pla WHERE a = $1;
PREPARE pla_eq8(bigint) AS SELECT b FROM pla WHERE a = $1;
PREPARE pla_range(int, int) AS SELECT count(*), sum(a) FROM pla WHERE a >= $1 AND a < $2;
EXPLAIN (COSTS OFF) EXECUTE pla_eq(5);
-- lookups since the last call, and how they went
CREATE FUNCTION pla_used(OUT lookups bigint, OUT verified bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT s.lookups, s.verified INTO lookups, verified FROM learnedbtree_stat_get('pla_a'::text::regclass) s;
    PERFORM learnedbtree_stat_reset('pla_a'::text::regclass);
END $$;
SELECT FROM pla_used();
EXECUTE pla_eq(77);
EXECUTE pla_eq8(77);
EXECUTE pla_eq8(77000000000);
EXECUTE pla_range(100, 2000);
EXECUTE pla_range(2000, 100);
SELECT * FROM pla_used();

-- switched off and on between executions
SET learnedbtree.enable = off;
EXECUTE pla_eq(78);
EXECUTE pla_range(100, 2000);
SELECT lookups FROM pla_used();
SET learnedbtree.enable = on;
EXECUTE pla_eq(78);
SELECT * FROM pla_used();
SET learnedbtree.enable_leaf_cache = off;
EXECUTE pla_eq(79);
SET learnedbtree.enable_buffer_hint = off;
EXECUTE pla_eq(80);
RESET learnedbtree.enable_leaf_cache;
EXECUTE pla_eq(81);
RESET learnedbtree.enable_buffer_hint;
SELECT lookups FROM pla_used();

-- the index without its model
SELECT use_model('pla_a', false);
EXECUTE pla_eq(82);
SELECT lookups FROM pla_used();
SELECT use_model('pla_a', true);
EXECUTE pla_eq(82);
SELECT state FROM learnedbtree_model('pla_a');
SELECT * FROM pla_used();

-- rebuilt, dropped, made again
REINDEX INDEX pla_a;
EXECUTE pla_eq(83);
REINDEX INDEX CONCURRENTLY pla_a;
EXECUTE pla_eq(84);
SELECT * FROM pla_used();
DROP INDEX pla_a;
EXECUTE pla_eq(85);
EXECUTE pla_range(100, 2000);
CREATE INDEX pla_a ON pla USING :am (a DESC);
EXECUTE pla_eq(85);
EXECUTE pla_range(100, 2000);
EXPLAIN (COSTS OFF) EXECUTE pla_range(1, 2);
SELECT * FROM pla_used();
TRUNCATE pla;
EXECUTE pla_eq(86);
INSERT INTO pla SELECT i, 0 FROM generate_series(1, 3000) i;
EXECUTE pla_eq(86);
EXECUTE pla_range(100, 2000);
SELECT verified > 0 AS verified FROM pla_used();
ALTER TABLE pla ALTER a TYPE bigint;
EXECUTE pla_eq(87);
EXECUTE pla_range(100, 2000);

-- many subtransactions and errors in between
DO $$
DECLARE
    n int := 0;
BEGIN
    FOR i IN 1..300 LOOP
        BEGIN
            n := n + (SELECT count(*) FROM pla WHERE a BETWEEN i * 10 AND i * 10 + 5);
            IF i % 3 = 0 THEN
                PERFORM 1 / (SELECT count(*) FROM pla WHERE a = -i);
            END IF;
        EXCEPTION WHEN division_by_zero THEN n := n + 1000;
        END;
    END LOOP;
    RAISE NOTICE '%', n;
END $$;

-- a scan abandoned by an error, by LIMIT, and by closing its cursor
SELECT 1 / (a - 50) FROM pla WHERE a > 48 ORDER BY a;
SELECT a FROM pla WHERE a > 48 ORDER BY a LIMIT 2;
BEGIN;
DECLARE c CURSOR FOR SELECT a FROM pla WHERE a > 48 ORDER BY a;
FETCH 1 FROM c;
CLOSE c;
SAVEPOINT s;
DECLARE c CURSOR FOR SELECT a FROM pla WHERE a > 50 ORDER BY a;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 1 FROM c;
ROLLBACK;

-- functions, correlated subqueries, rescans with other arguments
CREATE FUNCTION pla_next(int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT a FROM pla WHERE a > $1 ORDER BY a LIMIT 1';
SELECT sum(pla_next(i)) FROM generate_series(0, 2999) i;
SELECT sum((SELECT a FROM pla p WHERE p.a < i ORDER BY a DESC LIMIT 1)) FROM generate_series(2, 3000) i;
SELECT lookups > 5000 AS lookups, verified * 10 > lookups * 9 AS verified FROM pla_used();
DROP TABLE pla;
DROP FUNCTION pla_next, pla_used;
