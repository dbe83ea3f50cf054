-- Who sees key values: who may read the key columns of all rows.  Others see counts.

\set SHOW_CONTEXT never
SET learnedbtree.btree_indexes = 'all';
SET learnedbtree.min_leaves = 0;
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE ROLE pv_super SUPERUSER;
CREATE ROLE pv_owner;
CREATE ROLE pv_owner_member IN ROLE pv_owner;
CREATE ROLE pv_reader;
CREATE ROLE pv_nobody;
CREATE ROLE pv_monitor IN ROLE pg_monitor;
CREATE ROLE pv_monitor_reader IN ROLE pg_monitor;
CREATE ROLE pv_monitor_member IN ROLE pg_monitor, pv_reader;
CREATE ROLE pv_monitor_data IN ROLE pg_monitor, pg_read_all_data;
CREATE ROLE pv_monitor_abt IN ROLE pg_monitor;
CREATE ROLE pv_monitor_a IN ROLE pg_monitor;
CREATE ROLE pv_monitor_c IN ROLE pg_monitor;
CREATE ROLE pv_monitor_parent IN ROLE pg_monitor;
CREATE ROLE pv_bypass BYPASSRLS IN ROLE pg_monitor;
CREATE ROLE pv_bypass_reader BYPASSRLS IN ROLE pg_monitor;

CREATE TABLE pv (a int, b bigint, t text, c int);
INSERT INTO pv SELECT 770000000 + i * 3, 9100000000 + mix(i) % 1000000, 'zanzibar' || mix(i), i FROM generate_series(1, 8000) i;
CREATE INDEX pv_served ON pv (a);
CREATE INDEX pv_include ON pv (a) INCLUDE (c);
CREATE INDEX pv_some ON pv (a) WHERE c % 2 = 0;
CREATE INDEX pv_two ON pv USING learnedbtree (a, b);
CREATE INDEX pv_sum ON pv USING learnedbtree ((a + b));
CREATE INDEX pv_partly ON pv ((b / 10), a);
CREATE INDEX pv_text ON pv USING learnedbtree (t COLLATE "C");
CREATE TABLE pv_parent (a int, b bigint, t text, c int) PARTITION BY RANGE (a);
CREATE TABLE pv_part PARTITION OF pv_parent DEFAULT;
CREATE INDEX pv_part_two ON pv_part USING learnedbtree (a, b);
INSERT INTO pv_parent SELECT * FROM pv;
ALTER TABLE pv OWNER TO pv_owner;
ALTER TABLE pv_parent OWNER TO pv_owner;
ALTER TABLE pv_part OWNER TO pv_owner;
GRANT SELECT ON pv, pv_part TO pv_reader, pv_monitor_reader, pv_bypass_reader;
GRANT SELECT (a, b, t) ON pv, pv_part TO pv_monitor_abt;
GRANT SELECT (a) ON pv, pv_part TO pv_monitor_a;
GRANT SELECT (c) ON pv, pv_part TO pv_monitor_c;
GRANT SELECT ON pv_parent TO pv_monitor_parent;

-- The indexes, a key that is not in them, and the texts that tell their values: codes, ranges, prefixes.
CREATE TABLE pv_index AS
    SELECT i::regclass AS index, k AS key, NULL::text[] AS secrets, NULL::bigint AS leaves
      FROM (VALUES ('pv_served', '42'), ('pv_include', '42'), ('pv_some', '42'), ('pv_two', '42, 43'), ('pv_sum', '42'),
                   ('pv_partly', '42, 43'), ('pv_text', '''abc'''), ('pv_part_two', '42, 43')) v (i, k);
SELECT learnedbtree_train(index) FROM pv_index;
UPDATE pv_index SET leaves = (SELECT leaves FROM learnedbtree_model(index)), secrets = ARRAY(
    SELECT s FROM (SELECT code::text FROM learnedbtree_leaves(index)
                   UNION SELECT w FROM learnedbtree_model(index), regexp_split_to_table(key_code, '[^[:alnum:]]+') w) x (s)
     WHERE s ~ '[0-9]{9}|zanzibar' ORDER BY 1);
SELECT i.index, m.state, m.key_code, i.leaves > 5 AS leaves, cardinality(i.secrets) >= i.leaves - 1 AS secrets
  FROM pv_index i, learnedbtree_model(i.index) m;
GRANT SELECT ON pv_index TO PUBLIC;

-- What a call shows: values; counts, which are all there, without the values; that these are refused; or nothing.
CREATE FUNCTION pv_outcome(call text, value text, number text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
    shown bigint;
    numbers bigint;
BEGIN
    EXECUTE format('SELECT count(*), count(%s), count(%s) FROM %s', value, number, call) INTO n, shown, numbers;
    RETURN CASE WHEN n = 0 OR numbers < n OR shown NOT IN (0, n) THEN format('WRONG: %s, %s, %s', n, shown, numbers)
                WHEN shown = n THEN 'values' ELSE 'counts' END;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN CASE WHEN SQLERRM ~ 'key values' THEN 'refused' ELSE 'denied' END;
END $$;

-- All that a role gets to see about an index, errors included.
CREATE FUNCTION pv_everything(index regclass, key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    what text;
    line text;
    result text := '';
    detail text;
    hint text;
    context text;
BEGIN
    FOREACH what IN ARRAY ARRAY['SELECT f::text FROM learnedbtree_model($1) f', 'SELECT f::text FROM learnedbtree_leaves($1) f',
            'SELECT f::text FROM learnedbtree_check($1) f', 'SELECT f::text FROM learnedbtree_predict($1, ' || key || ') f',
            'SELECT f::text FROM learnedbtree_predict($1, ''(1,2)''::point) f', 'SELECT f::text FROM learnedbtree_predict($1, 9e100) f',
            'SELECT f::text FROM learnedbtree_predict($1, 1, 2, 3, 4) f', 'SELECT f::text FROM learnedbtree_index_status($1) f',
            'SELECT f::text FROM learnedbtree_stat f WHERE indexrelid = $1', 'SELECT f::text FROM learnedbtree_indexes f WHERE indexrelid = $1',
            'EXPLAIN (ANALYZE, VERBOSE, LEARNEDBTREE) SELECT a FROM pv WHERE (a, b) > (42, 43)', -- from 18 on
            'EXPLAIN (ANALYZE, VERBOSE) SELECT t FROM pv WHERE t COLLATE "C" > ''abc'''] LOOP
        BEGIN
            FOR line IN EXECUTE what USING index LOOP
                result := result || line || E'\n';
            END LOOP;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
            result := concat(result, SQLERRM, E'\n', detail, E'\n', hint, E'\n', context, E'\n');
        END;
    END LOOP;
    RETURN result;
END $$;

-- For each role, indexes of which the same is seen in one line; told: does anything at all have a value in it?
CREATE FUNCTION pv_seen(roles text[])
    RETURNS TABLE (role text, indexes text, model text, leaves text, predict text, "check" text, told boolean)
    LANGUAGE plpgsql AS $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY roles LOOP
        PERFORM set_config('role', one, true);
        RETURN QUERY
            WITH s AS MATERIALIZED (
                SELECT i.index::text AS name,
                       pv_outcome(format('learnedbtree_model(%L) WHERE state = ''ready''', i.index), 'key_code', format('nullif(leaves = %s AND knots > 0 AND bytes > 0, false)', i.leaves)) AS m,
                       pv_outcome(format('learnedbtree_leaves(%L)', i.index), 'code', 'CASE WHEN knot IS NOT NULL THEN slot END') AS l,
                       pv_outcome(format('learnedbtree_predict(%L, %s)', i.index, i.key), 'code + predicted_block', 'found_block') AS p,
                       pv_outcome(format('learnedbtree_check(%L)', i.index), 'NULL', 'separators') AS x,
                       (SELECT bool_or(strpos(seen, secret) > 0)
                          FROM pv_everything(i.index, i.key) seen, unnest(i.secrets) secret) AS t
                  FROM pv_index i)
            SELECT one, string_agg(s.name, ' ' ORDER BY s.name COLLATE "C"), m, l, p, x, t
              FROM s GROUP BY m, l, p, x, t ORDER BY min(s.name COLLATE "C");
        PERFORM set_config('role', 'none', true);
    END LOOP;
END $$;
\set all '{pv_super, pv_owner, pv_owner_member, pv_reader, pv_nobody, pv_monitor, pv_monitor_reader, pv_monitor_member, pv_monitor_data, pv_monitor_abt, pv_monitor_a, pv_monitor_c, pv_monitor_parent, pv_bypass, pv_bypass_reader}'

SELECT * FROM pv_seen(:'all');

-- row-level security stands in the way of all but the owner and those exempt from it
ALTER TABLE pv ENABLE ROW LEVEL SECURITY;
ALTER TABLE pv_part ENABLE ROW LEVEL SECURITY;
CREATE POLICY pv_all ON pv USING (true);
SELECT * FROM pv_seen(:'all');
-- and, forced, of the owner
ALTER TABLE pv FORCE ROW LEVEL SECURITY;
ALTER TABLE pv_part FORCE ROW LEVEL SECURITY;
SELECT * FROM pv_seen('{pv_super, pv_owner, pv_owner_member, pv_bypass_reader}');
SET row_security = off;
SELECT * FROM pv_seen('{pv_super, pv_owner, pv_monitor_reader, pv_bypass_reader}');
RESET row_security;
ALTER TABLE pv DISABLE ROW LEVEL SECURITY;
ALTER TABLE pv_part DISABLE ROW LEVEL SECURITY;

-- an owner that has revoked its own right
REVOKE SELECT ON pv, pv_part FROM pv_owner;
SELECT * FROM pv_seen('{pv_owner, pv_owner_member, pv_super}');
GRANT SELECT ON pv, pv_part TO pv_owner;

-- it is the current user that counts: not a view's owner, but that of a function with SECURITY DEFINER
CREATE VIEW pv_view AS SELECT key_code FROM learnedbtree_model('pv_text');
CREATE VIEW pv_view_barrier WITH (security_barrier) AS SELECT code FROM learnedbtree_leaves('pv_text');
CREATE VIEW pv_view_code AS SELECT code FROM learnedbtree_predict('pv_text', 'zebra');
CREATE FUNCTION pv_of_owner() RETURNS TABLE (key_code text, predicted boolean) LANGUAGE sql SECURITY DEFINER AS $$
    SELECT m.key_code, p.predicted_block IS NOT NULL FROM learnedbtree_model('pv_text') m, learnedbtree_predict('pv_text', 'zebra') p
$$;
CREATE FUNCTION pv_of_monitor() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT key_code FROM learnedbtree_model('pv_text') $$;
CREATE FUNCTION pv_of_caller() RETURNS text LANGUAGE sql AS $$ SELECT key_code FROM learnedbtree_model('pv_text') $$;
CREATE VIEW pv_view_owner AS SELECT * FROM pv_of_owner();
ALTER VIEW pv_view OWNER TO pv_owner;
ALTER VIEW pv_view_barrier OWNER TO pv_owner;
ALTER VIEW pv_view_code OWNER TO pv_owner;
ALTER VIEW pv_view_owner OWNER TO pv_owner;
ALTER FUNCTION pv_of_owner() OWNER TO pv_owner;
ALTER FUNCTION pv_of_monitor() OWNER TO pv_monitor;
ALTER FUNCTION pv_of_caller() OWNER TO pv_owner;
GRANT SELECT ON pv_view, pv_view_barrier, pv_view_code, pv_view_owner TO PUBLIC;
SET ROLE pv_owner;
SELECT key_code, pv_of_caller() = key_code AS of_caller, pv_of_monitor() AS of_monitor FROM pv_view;
SELECT count(code) > 1 AS codes FROM pv_view_barrier;
SELECT code > 0 AS code FROM pv_view_code;
SET ROLE pv_monitor;
SELECT key_code, pv_of_caller() AS of_caller, pv_of_monitor() AS of_monitor FROM pv_view;
SELECT count(code) AS codes, count(*) > 1 AS leaves FROM pv_view_barrier;
SELECT code > 0 AS code FROM pv_view_code;
SET ROLE pv_nobody;
SELECT key_code FROM pv_view;
SELECT code > 0 AS code FROM pv_view_code;
SELECT pv_of_caller();
SELECT * FROM pv_of_owner();
SELECT * FROM pv_view_owner;
RESET ROLE;

-- decided at each call, not when a statement is prepared
SET ROLE pv_monitor_reader;
PREPARE pv_model AS SELECT key_code FROM learnedbtree_model('pv_text');
EXECUTE pv_model;
RESET ROLE;
REVOKE SELECT ON pv FROM pv_monitor_reader;
SET ROLE pv_monitor_reader;
EXECUTE pv_model;

-- refused before the key is looked at
SELECT learnedbtree_predict('pv_text', 'zebra');
SELECT * FROM learnedbtree_predict('pv_served', 'no number');
SET ROLE pv_reader;
SELECT learnedbtree_predict('pv_text', 'zebra');
RESET ROLE;

DROP VIEW pv_view, pv_view_barrier, pv_view_code, pv_view_owner;
DROP FUNCTION pv_of_owner, pv_of_monitor, pv_of_caller, pv_seen, pv_everything, pv_outcome;
DROP TABLE pv, pv_parent, pv_index;
DROP OWNED BY pv_owner;
DROP ROLE pv_super, pv_owner, pv_owner_member, pv_nobody, pv_monitor, pv_monitor_reader, pv_monitor_member, pv_monitor_data, pv_monitor_abt,
    pv_monitor_a, pv_monitor_c, pv_monitor_parent, pv_bypass, pv_bypass_reader, pv_reader;
RESET client_min_messages;
RESET enable_seqscan;
RESET enable_bitmapscan;
