-- Nested loops that look ahead: the same answers as without, for keys of all kinds, joins of all kinds, and all sizes of
-- batches; and which plans get no such node.

-- Inner tables: sparse leaves, so that few rows make an index that is worth it.
CREATE TABLE la_big (k int8 NOT NULL, a int4, u uuid, s text, v int4);
INSERT INTO la_big SELECT mix(i) * 1000003::int8, i % 500, md5((mix(i) % 29000)::text)::uuid, 'key ' || mix(i + 1) % 29000, i
  FROM generate_series(1, 30000) i;
INSERT INTO la_big SELECT -i, NULL, NULL, NULL, i FROM generate_series(1, 300) i;
CREATE UNIQUE INDEX la_big_k ON la_big (k) WITH (fillfactor = 10);
CREATE INDEX la_big_au ON la_big (a, u) WITH (fillfactor = 10);
CREATE INDEX la_big_u ON la_big (u DESC NULLS LAST) WITH (fillfactor = 10);
CREATE INDEX la_big_s ON la_big (s COLLATE "C") WITH (fillfactor = 10);
DELETE FROM la_big WHERE v % 11 = 3;
CREATE TABLE la_probe (n int4, k int8, k4 int4, a int4, u uuid, s text, wide text);
INSERT INTO la_probe SELECT i, CASE WHEN i % 9 = 0 THEN NULL WHEN i % 5 = 0 THEN mix(-i) ELSE mix(mix(i) % 30000 + 1) * 1000003::int8 END,
       -(mix(i) % 400), mix(i) % 520, md5((mix(i + 3) % 29000)::text)::uuid, 'key ' || mix(i + 4) % 29999, repeat('wide ', (mix(i) % 400)::int4)
  FROM generate_series(1, 700) i;
CREATE INDEX la_probe_k ON la_probe (k);
VACUUM ANALYZE la_big, la_probe;

SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;
SET compute_query_id = regress;
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET enable_bitmapscan = off;
SELECT i AS index, learnedbtree_train(i) FROM unnest('{la_big_k,la_big_au,la_big_u,la_big_s}'::regclass[]) i;
SELECT i AS index, state, source FROM unnest('{la_big_k,la_big_au,la_big_u,la_big_s}'::regclass[]) i, learnedbtree_model(i);

-- The node, and what it says.
EXPLAIN (COSTS OFF) SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k;
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM la_probe p JOIN la_big b ON b.k = p.n + p.k;
-- Lines of an executed plan; and a number in it, summed up.
CREATE FUNCTION la_plan(query text, VARIADIC wanted text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ ANY (wanted) THEN
            RETURN NEXT regexp_replace(line, ' \(actual rows=(\d+)(\.00)? loops=(\d+)\)', ' (\1 x \3)');
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION la_sum(query text, what text) RETURNS numeric LANGUAGE sql
    RETURN (SELECT sum(substring(line from what || ': (\d+)')::numeric) FROM la_plan(query, what) line);
CREATE FUNCTION la_read(query text, rows int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('learnedbtree.lookahead_rows', rows::text, true);
    RETURN substring(la_plan('SELECT p.n, b.v FROM la_probe p ' || query, 'Scan on la_probe') from '\d+');
END $$;
-- in memory from here on
SELECT count(b.v) AS warm FROM la_probe p JOIN la_big b ON b.k = p.k \gset
SELECT * FROM la_plan('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k', 'Look');
SELECT predicted BETWEEN 600 AND 700 AS predicted
  FROM la_sum('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k', 'Rows Predicted') predicted;
SET learnedbtree.lookahead_rows = 7;
SELECT la_sum(query, 'Rows Predicted') / la_sum(query, 'Batches') BETWEEN 1 AND 7 AS a_batch
  FROM (VALUES ('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k')) q (query);
RESET learnedbtree.lookahead_rows;
-- rows read in vain are few: none where the first is enough, later no more than were needed
SELECT * FROM la_plan('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a LIMIT 3', 'Look', 'Scan on la_probe', 'Predicted');
-- ... nor more than a LIMIT takes, or where rows find no match, a few more
SELECT query, read, read_ahead - read AS ahead
  FROM (VALUES ('LEFT JOIN la_big b ON b.k = p.k LIMIT 50'), ('LEFT JOIN la_big b ON b.k = p.k OFFSET 21 LIMIT 29'),
               ('LEFT JOIN la_big b ON b.k = p.k FETCH FIRST 50 ROWS ONLY FOR UPDATE OF p'),
               ('LEFT JOIN la_big b ON b.k = p.k LEFT JOIN la_big c ON c.k = b.k + 0 LIMIT 50'),
               ('LEFT JOIN la_big b ON b.k = p.k LEFT JOIN la_big c ON c.k = p.k LIMIT 50'),
               ('LEFT JOIN la_big b ON b.k = p.k WHERE coalesce(b.v, 1) % 5 = 2 LIMIT 20'),
               ('LEFT JOIN la_big b ON b.a = p.a LIMIT 600'), ('LEFT JOIN la_big b ON b.a = p.a LIMIT 6000'),
               ('LEFT JOIN la_big b ON b.k = p.k GROUP BY p.n, b.v LIMIT 50')) q (query),
       LATERAL (SELECT la_read(query, 1) AS read, la_read(query, 64) AS read_ahead) n;
-- ... so that there is no error of the second
SELECT p.n, b.v < 0 AS negative FROM la_probe p LEFT JOIN la_big b ON b.k = p.k + 0 / (p.n - 2) LIMIT 1;
-- ... nor of a key, which is not computed early
SELECT count(v) FROM (SELECT b.v FROM (SELECT n FROM la_probe ORDER BY n OFFSET 0) p LEFT JOIN la_big b ON b.k = p.n / (p.n - 20) LIMIT 19) q;
SELECT count(v) FROM (SELECT b.v FROM (SELECT n FROM la_probe ORDER BY n OFFSET 0) p LEFT JOIN la_big b ON b.k = p.n / (p.n - 20) LIMIT 20) q;
SELECT count(s.v) FROM la_probe p CROSS JOIN LATERAL (SELECT max(b.v) AS v FROM la_big b WHERE b.k = p.s::int8 AND p.n < 0) s;
SELECT count(s.v) FROM la_probe p LEFT JOIN LATERAL (SELECT b.v FROM la_big b WHERE b.k = p.n / (p.n - 20) LIMIT (p.n <> 20)::int) s ON true;
-- wide rows: work_mem bounds a batch
SET work_mem = '64kB';
SELECT la_sum(query, 'Rows Predicted') / la_sum(query, 'Batches') < 48 AS small_batches
  FROM (VALUES ('SELECT p.wide, b.v FROM la_probe p JOIN la_big b ON b.k = p.k')) q (query);
RESET work_mem;
-- where it does not pay, the node turns itself off: lookups that come to few leaves, one after the other
SELECT la_sum('SELECT p.n, b.k FROM (SELECT b.v AS n, b.k FROM la_big b WHERE k > 0 ORDER BY k OFFSET 0) p JOIN la_big b ON b.k = p.k', 'Rows Predicted')
       BETWEEN 100 AND 2000 AS turned_off;
-- ... and where most rows are not looked up, as Memoize has what belongs to them
CREATE TABLE la_repeated AS SELECT p.k, i FROM generate_series(1, 40) i, la_probe p WHERE p.n < 150 ORDER BY i, p.n;
ANALYZE la_repeated;
SET enable_memoize = on;
EXPLAIN (COSTS OFF) SELECT r.i, b.v FROM la_repeated r JOIN la_big b ON b.k = r.k;
SELECT count(b.v) FROM la_repeated r JOIN la_big b ON b.k = r.k;
SELECT la_sum('SELECT r.i, b.v FROM la_repeated r JOIN la_big b ON b.k = r.k', 'Rows Predicted') BETWEEN 100 AND 1500 AS turned_off;
SET enable_memoize = off;
DROP TABLE la_repeated;
-- planned with it, and run without
PREPARE la_prepared AS SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k;
SET plan_cache_mode = force_generic_plan;
EXECUTE la_prepared;
SET learnedbtree.lookahead_rows = 0;
SELECT * FROM la_plan('EXECUTE la_prepared', 'Look', 'Batches');
SET learnedbtree.btree_indexes = none;
EXECUTE la_prepared;
RESET learnedbtree.lookahead_rows;
SELECT * FROM la_plan('EXECUTE la_prepared', 'Look', 'Batches');
-- ... and not planned with it when the index is not served any more
SELECT * FROM la_plan('SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k', 'Look');
SET learnedbtree.btree_indexes = 'all';

-- Joins, each with batches of several sizes, with little memory, and by a hash join.
CREATE FUNCTION la_compare(query text) RETURNS text LANGUAGE sql
    RETURN regexp_replace(compare_joins(query), '^\d+ rows, ', '');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k4');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a AND b.u = p.u');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.u = p.u');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.s = p.s COLLATE "C"');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a AND b.v > p.n');
SELECT la_compare('SELECT p.n, p.wide, b.v FROM la_probe p LEFT JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT p.n, b.v FROM la_probe p LEFT JOIN la_big b ON b.k = p.k AND p.n % 2 = 0');
SELECT la_compare('SELECT p.n FROM la_probe p WHERE EXISTS (SELECT FROM la_big b WHERE b.k = p.k)');
SELECT la_compare('SELECT p.n FROM la_probe p WHERE NOT EXISTS (SELECT FROM la_big b WHERE b.a = p.a AND b.v > p.n)');
SELECT la_compare('SELECT b.v FROM la_big b WHERE b.k IN (SELECT p.k FROM la_probe p)');
SELECT la_compare('SELECT b.v FROM la_big b WHERE b.a IN (SELECT p.a + 1 FROM la_probe p WHERE p.n < 300)');
SELECT la_compare('SELECT p.n, b.v, c.v FROM la_probe p JOIN la_big b ON b.k = p.k JOIN la_big c ON c.k = b.k + 1000003');
SELECT la_compare('SELECT p.n, b.v, c.v FROM la_probe p JOIN la_big b ON b.a = p.a JOIN la_big c ON c.u = b.u');
SELECT la_compare('SELECT q.a, q.m, b.v FROM (SELECT a, max(k) AS m FROM la_probe GROUP BY a) q JOIN la_big b ON b.k = q.m');
SELECT la_compare('SELECT q.n, q.m, b.v FROM (SELECT n, k, coalesce(wide, ''none'') AS m FROM la_probe) q LEFT JOIN la_big b ON b.k = q.k + length(q.m)');
SELECT la_compare('SELECT p.n, b.v, x.n FROM la_probe x LEFT JOIN la_probe p ON p.n = x.n + 5 LEFT JOIN la_big b ON b.k = coalesce(p.k, x.k)');
SELECT la_compare('SELECT p.ctid, p.tableoid, p, b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT x.n, l.v FROM la_probe x, LATERAL (SELECT b.v FROM la_probe p JOIN la_big b ON b.a = p.a WHERE p.n < x.n ORDER BY b.v, p.n LIMIT 2) l WHERE x.n BETWEEN 10 AND 30');
SELECT la_compare('SELECT x.n, (SELECT sum(b.v) FROM la_probe p JOIN la_big b ON b.a = p.a AND b.u = p.u WHERE p.n < x.n) FROM la_probe x WHERE x.n < 20');
SELECT la_compare('SELECT x.n, (SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k + x.n) FROM la_probe x WHERE x.n < 20');
SELECT la_compare('SELECT x.n, (SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k WHERE p.n > x.n) FROM la_probe x WHERE x.n % 29 = 0');
SELECT la_compare('SELECT x.n, (SELECT sum(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k WHERE p.n % 40 = x.n) FROM la_probe x WHERE x.n < 60');
SELECT la_compare('SELECT p.n, s.m FROM la_probe p, LATERAL (SELECT max(b.v) AS m FROM la_big b WHERE b.a = p.a) s');
SELECT la_compare('SELECT p.n, s.v FROM la_probe p LEFT JOIN LATERAL (SELECT b.v FROM la_big b WHERE b.a = p.a ORDER BY b.v LIMIT 1) s ON true');
SELECT la_compare('SELECT * FROM (SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.a = p.a ORDER BY p.n, b.v OFFSET 40 LIMIT 90) q');

-- A bound of the next column, at which the scan begins: both directions, both orders, NULLs, inclusive or not.
CREATE TABLE la_at (id int4, at timestamp, back timestamp, v int4);
INSERT INTO la_at SELECT i % 90, CASE WHEN i % 13 > 0 THEN timestamp '2026-01-01' + (i / 90 % 300) * interval '1 hour' END,
       CASE WHEN i % 11 > 0 THEN timestamp '2026-01-01' - (i / 90 % 300) * interval '1 hour' END, i FROM generate_series(1, 30000) i;
CREATE INDEX la_at_up ON la_at (id, at) WITH (fillfactor = 10);
CREATE INDEX la_at_down ON la_at (id, back DESC) WITH (fillfactor = 10);
ANALYZE la_at;
SELECT la_compare(format('SELECT p.n, l.%1$I FROM (SELECT n, n %% 95 AS id FROM la_probe OFFSET 0) p, '
                         'LATERAL (SELECT b.%1$I FROM la_at b WHERE b.id = p.id AND b.%1$I %2$s ORDER BY b.%1$I %3$s LIMIT 2) l', c, t, o)) AS answer, count(*)
  FROM unnest('{at,back}'::text[]) c, unnest('{ASC,DESC}'::text[]) o,
       unnest(ARRAY['< timestamp ''2026-01-03 12:00''', '<= timestamp ''2026-01-03 12:00''', '> timestamp ''2025-12-30 12:00''', '>= date ''2026-01-05''',
                    'BETWEEN timestamp ''2025-12-29'' AND timestamp ''2026-01-04'' + p.n * interval ''1 hour''', 'IS NOT NULL', 'IS NULL']) t
 GROUP BY 1;
-- Not where reading ahead would be seen.
CREATE FUNCTION la_nodes(query text) RETURNS int LANGUAGE sql RETURN look_aheads(query);
CREATE SEQUENCE la_seq;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE random() < p.n'),
       la_nodes('SELECT b.v FROM (SELECT k, nextval(''la_seq'') FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM (SELECT k FROM la_probe FOR UPDATE) p JOIN la_big b ON b.k = p.k'),
       la_nodes('WITH p AS (UPDATE la_probe SET n = n RETURNING k) SELECT b.v FROM p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v, random() FROM la_probe p JOIN la_big b ON b.k = p.k');
-- Nor where an outer row's columns show what the statement itself may lock or change meanwhile.
SELECT la_nodes('SELECT b.v, p.xmin, p.ctid FROM la_probe p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v, p.xmax FROM la_probe p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE p.cmin = ''0'''),
       la_nodes('SELECT b.v, p.cmax FROM la_probe p JOIN la_big b ON b.k = p.k');
-- ... nor for one row: by a unique index, also with others joined to it, or an aggregate of all rows.
SELECT la_nodes('SELECT c.v FROM la_big b JOIN la_big c ON c.u = b.u WHERE b.a = 7'),
       la_nodes('SELECT c.v FROM la_big b JOIN la_big c ON c.u = b.u WHERE b.k = 1000003'),
       la_nodes('SELECT d.v FROM la_big b JOIN la_big c ON c.k = b.v JOIN la_big d ON d.u = c.u WHERE b.k = 1000003'),
       la_nodes('SELECT c.v FROM (SELECT count(*) AS k FROM la_probe) b JOIN la_big c ON c.k = b.k');
-- ... nor for few that are wide
DO $$
BEGIN
    EXECUTE 'CREATE TABLE la_wide AS SELECT i AS k, i / 3 AS fk' || (SELECT string_agg(format(', i AS c%s', c), '') FROM generate_series(1, 40) c) ||
        ' FROM generate_series(1, 3000) i';
END $$;
CREATE INDEX ON la_wide (fk);
ANALYZE la_wide;
SELECT la_nodes('SELECT w.c1, b.v FROM la_wide w JOIN la_big b ON b.k = w.k WHERE w.fk = 7'),
       la_nodes('SELECT w.c1, b.v FROM la_wide w JOIN la_big b ON b.k = w.k WHERE w.fk BETWEEN 7 AND 12');
-- ... in VALUES, in WITH queries, in subqueries that are planned before
SELECT la_nodes('SELECT b.v FROM (VALUES (nextval(''la_seq'')), (1)) p (k) LEFT JOIN la_big b ON b.k = p.k LIMIT 2'),
       la_nodes('SELECT b.v FROM (VALUES (1::int8), (2)) p (k) LEFT JOIN la_big b ON b.k = p.k LIMIT 2');
SELECT la_nodes('WITH p AS MATERIALIZED (SELECT k, nextval(''la_seq'') FROM la_probe) SELECT b.v FROM p JOIN la_big b ON b.k = p.k LIMIT 3'),
       la_nodes('WITH p AS MATERIALIZED (SELECT k FROM la_probe FOR UPDATE) SELECT b.v FROM p JOIN la_big b ON b.k = p.k LIMIT 3'),
       la_nodes('WITH p AS MATERIALIZED (SELECT k FROM la_probe) SELECT b.v FROM p JOIN la_big b ON b.k = p.k LIMIT 3'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE p.n < (SELECT nextval(''la_seq'') FROM la_seq WHERE p.n > 3)'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE EXISTS (SELECT FROM la_seq WHERE p.n > 3 OFFSET 0)'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE EXISTS (SELECT FROM la_big x WHERE p.n > x.k OFFSET 0 FOR UPDATE)'),
       la_nodes('SELECT b.v FROM (SELECT k FROM la_probe UNION ALL SELECT k4 FROM la_probe) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM (SELECT k FROM la_probe UNION ALL SELECT nextval(''la_seq'') FROM la_probe) p JOIN la_big b ON b.k = p.k');
-- ... in a recursive query, which reads itself
SELECT la_nodes('WITH RECURSIVE p AS (SELECT 1::int8 AS k UNION ALL SELECT b.k + 1000003 FROM p JOIN la_big b ON b.k = p.k WHERE p.k < 9) SELECT * FROM p'),
       la_nodes('WITH RECURSIVE p AS (SELECT 1::int8 AS k UNION ALL SELECT k + nextval(''la_seq'') FROM p WHERE k < 9) SELECT b.v FROM p JOIN la_big b ON b.k = p.k');
-- ... in subqueries that run once, if at all
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE CASE WHEN p.n = 6 THEN (SELECT nextval(''la_seq'')) ELSE 1 END <> 0'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k WHERE CASE WHEN p.n = 6 THEN (SELECT max(k) FROM la_probe) ELSE 1 END <> 0'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k + (SELECT 1)');
-- ... at joins below
SELECT la_nodes('SELECT b.v FROM (la_probe p LEFT JOIN la_probe x ON x.n = p.n + 1 AND random() < 1) LEFT JOIN la_big b ON b.k = coalesce(x.k, p.k)'),
       la_nodes('SELECT b.v FROM (la_probe p LEFT JOIN la_probe x ON x.n = p.n + 1 AND x.n < 9) LEFT JOIN la_big b ON b.k = coalesce(x.k, p.k)');
-- ... in a subquery that is evaluated at one: as many rows are locked as without us
CREATE TABLE la_locked AS SELECT i AS n, i AS k FROM generate_series(1, 700) i;
CREATE INDEX la_locked_n ON la_locked (n);
CREATE TABLE la_rows AS SELECT * FROM la_locked;
CREATE INDEX la_rows_n ON la_rows (n);
ANALYZE la_locked, la_rows;
CREATE FUNCTION la_locks() RETURNS bigint LANGUAGE plpgsql SET enable_sort = off SET enable_seqscan = off AS $$
BEGIN
    PERFORM s.y, b.v FROM (la_rows p LEFT JOIN (SELECT x.n, (SELECT c.k FROM la_locked c WHERE c.n = x.n + y.k - y.n FOR UPDATE) y
                                                  FROM la_rows x JOIN la_rows y ON x.n = y.n) s ON p.n = s.n) LEFT JOIN la_big b ON b.k = p.k
      ORDER BY p.n LIMIT 17;
    RETURN (SELECT count(*) FROM la_locked WHERE xmax <> 0);
END $$;
BEGIN;
SELECT la_locks();
ROLLBACK;
BEGIN;
SET LOCAL learnedbtree.btree_indexes = none;
DISCARD PLANS;
SELECT la_locks();
ROLLBACK;
-- Nor where a key is computed; a cast within the operator family, and a relabelling, are none.
CREATE FUNCTION la_loud(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE COST 1 AS $$ BEGIN RAISE NOTICE 'once for %', $1; RETURN $1; END $$;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = la_loud(p.k)'),
       la_nodes('SELECT b.v FROM (SELECT la_loud(k) AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k + extract(epoch from now())::int8'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k + p.n * 2 - 1'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k + p.n * 2 - 1 + p.a / 3'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = (SELECT p.k)'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.n::int8'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.a = p.k::int4'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.s = p.s::varchar COLLATE "C"');
SELECT count(b.v) FROM (SELECT la_loud(k) AS k FROM la_probe WHERE n IN (1, 2, 3, 4, 5, 6, 7) OFFSET 0) p JOIN la_big b ON b.k = p.k;
-- ... in a domain's constraint, or an aggregate's function
CREATE DOMAIN la_domain AS bigint CHECK (la_loud(VALUE) IS NOT NULL);
CREATE FUNCTION la_count(bigint, bigint) RETURNS bigint LANGUAGE sql VOLATILE RETURN $1 + 1;
CREATE AGGREGATE la_aggregate(bigint) (SFUNC = la_count, STYPE = bigint, INITCOND = '0');
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = (p.k + 1)::la_domain'),
       la_nodes('SELECT b.v FROM (SELECT k::la_domain AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k'),
       la_nodes('SELECT b.v, p.k FROM (SELECT a, la_aggregate(k) AS k FROM la_probe GROUP BY a) p JOIN la_big b ON b.k = p.a'),
       la_nodes('SELECT b.v, p.k FROM (SELECT a, la_aggregate(k) OVER (ORDER BY n) AS k FROM la_probe) p JOIN la_big b ON b.k = p.a'),
       la_nodes('SELECT b.v, p.k FROM (SELECT a, max(k) AS k FROM la_probe GROUP BY a) p JOIN la_big b ON b.k = p.a');
-- ... which functions of the server, and nodes, run for rows and arrays; and none of other types
CREATE TYPE la_row AS (k la_domain);
CREATE TYPE la_plain AS (k int8);
CREATE TYPE la_range AS RANGE (SUBTYPE = la_domain);
SELECT la_nodes(format('SELECT b.v FROM (SELECT %s AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k', k)) AS nodes, k
  FROM unnest(ARRAY['(jsonb_populate_record(NULL::la_row, jsonb_build_object(''k'', k))).k', '(concat(''{'', k, ''}'')::la_domain[])[1]', '(concat(''('', k, '')'')::la_row).k',
                    '(jsonb_populate_record(NULL::la_plain, jsonb_build_object(''k'', k))).k', '(concat(''{'', k, ''}'')::int8[])[1]', '(concat(''('', k, '')'')::la_plain).k']) k;
SELECT la_nodes(format('SELECT b.v FROM la_probe x, LATERAL %s JOIN la_big b ON b.k = p.k', f)) AS nodes, f
  FROM unnest(ARRAY['jsonb_to_record(jsonb_build_object(''k'', x.k)) p (k la_domain)', 'jsonb_to_record(jsonb_build_object(''k'', x.k)) p (k int8)']) f;
SELECT la_nodes(format('SELECT b.v FROM (SELECT %s AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k',
                       CASE WHEN current_setting('server_version_num')::int4 < 170000 THEN 'k::la_domain' ELSE 'JSON_VALUE(jsonb_build_object(''k'', k), ''$.k'' RETURNING la_domain)' END)),
       la_nodes('SELECT b.v FROM (SELECT CASE WHEN lower_inc(concat(''['', k, '',)'')::la_range) THEN k END AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k') AS of_range,
       la_nodes('SELECT b.v FROM (SELECT CASE WHEN lower_inc(concat(''{['', k, '',)}'')::la_multirange) THEN k END AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k') AS of_multirange,
       la_nodes('SELECT b.v FROM (SELECT CASE WHEN lower_inc(concat(''['', k, '',)'')::int8range) THEN k END AS k FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k') AS plain;
-- A key that is the same for all rows is none; one behind it is not known then.
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.a = 5 AND b.u = (md5(p.n::text))::uuid'),
       la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.a = 5 AND b.u = p.u');
-- A loop on the inner side begins with its own outer side.
SELECT la_compare('SELECT p.n, b.v, c.v FROM la_probe p LEFT JOIN (la_big b JOIN la_big c ON c.k = b.k + b.v * 0) ON b.a = p.a AND p.n < 90');
-- Columns of all kinds pass through, by their names.
EXPLAIN (COSTS OFF, VERBOSE) SELECT (p.r).f2, b.v, p FROM (SELECT k, ROW(n, a) AS r, wide FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k WHERE length(p.wide) > b.v;
SELECT la_compare('SELECT (p.r).f2, b.v, p.wide FROM (SELECT k, ROW(n, a) AS r, wide FROM la_probe OFFSET 0) p JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT p, b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SELECT la_compare('SELECT 1 FROM la_probe p JOIN la_big b ON b.k = p.k');
SET learnedbtree.lookahead_rows = 1;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
SET learnedbtree.lookahead_rows = 65;
RESET learnedbtree.lookahead_rows;
SET learnedbtree.enable = off;
SELECT la_nodes('SELECT b.v FROM la_probe p JOIN la_big b ON b.k = p.k');
RESET learnedbtree.enable;

-- Cursors, held and scrolled.
BEGIN;
DECLARE la_c SCROLL CURSOR FOR SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k ORDER BY p.n;
DECLARE la_h NO SCROLL CURSOR WITH HOLD FOR SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k;
FETCH 3 la_c;
FETCH BACKWARD 2 la_c;
MOVE 5 la_h;
COMMIT;
MOVE FORWARD ALL la_h;
CLOSE la_h;

-- Rows locked and changed by way of a join.
BEGIN;
WITH l AS (SELECT p.n, b.v FROM la_probe p JOIN la_big b ON b.k = p.k FOR UPDATE) SELECT count(*) FROM l;
UPDATE la_probe p SET n = b.v FROM la_big b WHERE b.k = p.k;
UPDATE la_big b SET v = -p.n FROM la_probe p WHERE b.k = p.k AND p.k4 < -200;
DELETE FROM la_probe p USING la_big b WHERE b.k = p.k AND b.a < 250;
SELECT count(*), sum(n) FROM la_probe;
SELECT count(*), sum(v) FROM la_big;
ROLLBACK;
-- ... in a table with partitions, of which the server makes one plan
BEGIN;
CREATE TABLE la_parts (n int4, k int8) PARTITION BY LIST (n);
CREATE TABLE la_parts_1 PARTITION OF la_parts FOR VALUES IN (1);
CREATE TABLE la_parts_2 PARTITION OF la_parts DEFAULT;
INSERT INTO la_parts SELECT n % 2, k FROM la_probe;
ANALYZE la_parts;
SELECT la_nodes('SELECT p.n, b.v FROM la_parts p JOIN la_big b ON b.k = p.k'),
       la_nodes('UPDATE la_parts p SET n = b.v FROM la_big b WHERE b.k = p.k');
UPDATE la_parts p SET n = b.v FROM la_big b WHERE b.k = p.k;
SELECT count(*), sum(n) FROM la_parts;
MERGE INTO la_parts p USING la_big b ON b.k = p.k AND b.a < 200 WHEN MATCHED THEN DELETE;
SELECT count(*), sum(n) FROM la_parts;
ROLLBACK;

-- An error in the middle of a batch.
SELECT count(1 / (p.n - 40)) FROM la_probe p JOIN la_big b ON b.a = p.a;
DO $$
BEGIN
    PERFORM 1 / (p.n - 40) FROM la_probe p JOIN la_big b ON b.a = p.a OFFSET 0;
    RAISE EXCEPTION 'no error';
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE '%', SQLERRM;
END $$;
SELECT count(b.v) FROM la_probe p JOIN la_big b ON b.k = p.k;

DROP AGGREGATE la_aggregate(bigint);
DROP TYPE la_row, la_plain, la_range;
DROP DOMAIN la_domain;
DROP FUNCTION la_compare, la_plan, la_sum, la_read, la_nodes, la_locks, la_loud, la_count;
DROP SEQUENCE la_seq;
DROP TABLE la_big, la_probe, la_locked, la_rows, la_at;
