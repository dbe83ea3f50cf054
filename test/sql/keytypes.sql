-- Types whose keys are encoded, or have a form of their own: numeric, addresses, times, enums, domains, blank-padded strings,
-- money, positions.  For each: a model, and answers as by a sequential scan.  (types.sql, bytes.sql: the others.)
SELECT use_am() AS am \gset

CREATE TYPE kt_mood AS ENUM ('bad', 'fair', 'good');
ALTER TYPE kt_mood ADD VALUE 'awful' BEFORE 'bad';
ALTER TYPE kt_mood ADD VALUE 'poor' BEFORE 'fair';
CREATE DOMAIN kt_price AS numeric CHECK (VALUE IS NULL OR VALUE >= -100000);

CREATE TABLE kt (n numeric, p kt_price, i inet, c cidr, m macaddr, m8 macaddr8, t time, e kt_mood, b char(12), bv bpchar,
                 y money, l pg_lsn, x xid8, id int);
INSERT INTO kt SELECT (mix(i) % 1000000 - 500000) / 8.0, mix(i) % 90000 / 4.0, set_masklen('10.0.0.0'::inet + mix(i) % 100000, (32 - mix(i) % 3)::int),
       network(set_masklen('10.0.0.0'::inet + mix(i) % 1000000, (16 + mix(i) % 17)::int)), lpad(to_hex(mix(i)), 12, '0')::macaddr,
       lpad(to_hex(mix(i) * 65537), 16, '0')::macaddr8, time '00:00' + mix(i) % 86400 * interval '1 s',
       (enum_range(NULL::kt_mood))[1 + mix(i) % 5], 'item ' || mix(i) % 3000, 'item ' || mix(i) % 3000,
       (mix(i) % 100000)::money, '0/0'::pg_lsn + mix(i)::numeric, mix(i)::text::xid8, i
  FROM generate_series(1, 1200) i;
-- the ends, equal ones that look different, and NULLs
INSERT INTO kt (n, i)
SELECT n::numeric, i::inet
  FROM (VALUES ('NaN', '0.0.0.0/0'), ('Infinity', '::/0'), ('-Infinity', '::1'), ('0', '10.0.0.0/8'), ('0.000', '10.0.0.1/8'), ('1e400', 'ffff::/16'),
               ('-1e-400', '255.255.255.255'), (NULL, NULL)) q (n, i), generate_series(1, 3);
ANALYZE kt;

-- Every operator with each argument, BETWEEN, IN and ORDER BY, through an index in each direction.  How many answers are the same, the model having
-- had part in them; those that are not; and how many lookups were verified.
CREATE FUNCTION try_key_type(col text, args text[])
    RETURNS TABLE (type text, direction text, state text, same bigint, others text, verified text) LANGUAGE plpgsql AS $$
DECLARE
    of text := (SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'kt'::regclass AND attname = col);
    literals text[] := (SELECT array_agg(format('%L::%I', a, typname)) FROM unnest(args) a, pg_attribute JOIN pg_type t ON t.oid = atttypid WHERE attrelid = 'kt'::regclass AND attname = col);
    list text := array_to_string(literals, ', ');
    conditions text[];
BEGIN
    SELECT array_agg(format('%I %s %s', col, o, a)) INTO conditions FROM unnest(literals) a, unnest(ARRAY['<', '<=', '=', '>=', '>']) o;
    conditions := conditions || ARRAY[
        format('%I BETWEEN %s AND %s', col, literals[1], literals[2]),
        format('%I > %s ORDER BY 1', col, literals[1]), format('%I <= %s ORDER BY 1 DESC', col, literals[2]),
        format('%I IN (%s)', col, list), format('%1$I >= %2$s AND %1$I > %2$s', col, literals[1]),
        format('%I = ANY (ARRAY[%s, NULL, %s]) ORDER BY 1', col, list, literals[1]), format('%I = ANY (ARRAY[%s]) ORDER BY 1 DESC LIMIT 3', col, list)];
    FOREACH direction IN ARRAY ARRAY['ASC', 'DESC NULLS LAST'] LOOP
        EXECUTE format('CREATE INDEX kt_i ON kt USING %s (%I %s) WITH (fillfactor = 12)', am(), col, direction);
        type := of;
        SELECT m.state INTO state FROM learnedbtree_model('kt_i') m;
        SELECT sum(c.queries) FILTER (WHERE c.outcome IN ('same, verified', 'same, fallback')),
               string_agg(c.outcome || ': ' || c.which, '; ' ORDER BY c.outcome) FILTER (WHERE c.outcome NOT IN ('same, verified', 'same, fallback'))
          INTO same, others FROM compare_all('kt_i', format('SELECT %I FROM kt WHERE $1', col), conditions) c;
        verified := (SELECT CASE WHEN s.verified > 0.8 * s.lookups THEN 'most' ELSE s.verified || ' of ' || s.lookups END
                       FROM learnedbtree_stat s WHERE s.indexrelid = 'kt_i'::regclass);
        DROP INDEX kt_i;
        RETURN NEXT;
    END LOOP;
END $$;

SELECT * FROM try_key_type('n', '{-100.125, 1000, 0, 0.00, NaN, Infinity, -Infinity, 1e400, 12345.678901234567890123}');
SELECT * FROM try_key_type('p', '{100.25, 20000, -1, 0.000, 22499.75}');
SELECT * FROM try_key_type('i', '{10.0.100.0, 10.1.0.0/30, 10.0.0.0/8, 0.0.0.0/0, ::1, ffff::/16, 255.255.255.255}');
SELECT * FROM try_key_type('c', '{10.0.128.0/20, 10.8.0.0/17, 10.0.0.0/8, ::/0}');
SELECT * FROM try_key_type('m', '{00:00:10:00:00:00, 00:00:ff:00:00:00, ff:ff:ff:ff:ff:ff}');
SELECT * FROM try_key_type('m8', '{00:00:10:00:00:00:00:00, 00:00:ff:00:00:00:00:00, ff:ff:ff:ff:ff:ff:ff:ff}');
SELECT * FROM try_key_type('t', '{01:02:03, 12:00, 24:00, 00:00:00.000001}');
SELECT * FROM try_key_type('e', '{bad, good, fair}');
SELECT * FROM try_key_type('b', '{item 100, item 7, item 2999, item, "item 7   ", ""}');
SELECT * FROM try_key_type('bv', '{item 100, item 7, item 2999, item, "item 7   ", ""}');
SELECT * FROM try_key_type('y', '{100, 90000.00, 0, -1}');
SELECT * FROM try_key_type('l', '{0/1000000, 0/F0000000, 0/0, FFFFFFFF/FFFFFFFF}');
SELECT * FROM try_key_type('x', '{100000000, 4000000000, 0, 18446744073709551615}');

-- blanks at the end, and the pattern operator class
CREATE INDEX kt_b ON kt USING :am (b bpchar_pattern_ops) WITH (fillfactor = 40);
SELECT * FROM compare_all('kt_b', 'SELECT b FROM kt WHERE $1', ARRAY[$$b ~<~ 'item 2'$$, $$b ~>=~ 'item 99 '$$, $$b = 'item 7    '$$, $$b ~>~ 'item 1' AND b ~<=~ 'item 2'$$, $$b = ANY ('{item 1, item 2 , nothing}')$$]);
DROP INDEX kt_b;

-- several columns of such types, orders and nulls
CREATE INDEX kt_eni ON kt USING :am (e, n DESC NULLS LAST, i) WITH (fillfactor = 12);
SELECT * FROM compare_all('kt_eni', 'SELECT e, n, i FROM kt WHERE $1', ARRAY[
    $$e = 'awful'$$, $$e = 'fair' AND n > 100$$, $$e = 'good' AND n BETWEEN -50 AND 7000.5$$, $$e IN ('bad', 'poor') AND n < -10000$$, $$e > 'fair'$$,
    $$e = 'bad' AND n = 0.00$$, $$e = ANY ('{awful, good, NULL}') AND n = ANY ('{1, 2.5, 100.125, NaN}')$$]);
SELECT compare_walk('kt_eni', $$SELECT e, n, i FROM kt WHERE e >= 'bad' ORDER BY e, n DESC NULLS LAST, i$$);
SELECT sound('kt_eni');
DROP INDEX kt_eni;

-- an enum value that comes between others changes no order; btree's functions look it up
CREATE INDEX kt_e ON kt USING :am (e, id) WITH (fillfactor = 12);
ALTER TYPE kt_mood ADD VALUE 'middling' AFTER 'poor';
INSERT INTO kt (e, id) SELECT 'middling', i FROM generate_series(1, 200) i;
SELECT * FROM compare_all('kt_e', 'SELECT e, id FROM kt WHERE $1', ARRAY[$$e = 'middling'$$, $$e = 'middling' AND id > 100$$, $$e >= 'middling'$$, $$e < 'middling'$$, $$e IN ('poor', 'middling')$$]);
SELECT sound('kt_e');
DROP INDEX kt_e;

-- equal keys are one key to a unique index, however they look
CREATE TABLE kt_unique (n numeric, b char(8), i inet);
SET client_min_messages = error;	-- ON CONFLICT does not work with these on all versions
CREATE UNIQUE INDEX kt_unique_n ON kt_unique USING :am (n);
CREATE UNIQUE INDEX kt_unique_b ON kt_unique USING :am (b);
RESET client_min_messages;
INSERT INTO kt_unique SELECT i / 4.0, i, NULL FROM generate_series(1, 2000) i;
INSERT INTO kt_unique (n) VALUES (25.000);
INSERT INTO kt_unique (b) VALUES ('77   ');
INSERT INTO kt_unique (n, b) VALUES (25.1, '77 x');
SELECT sound('kt_unique_n'), sound('kt_unique_b');
DROP TABLE kt_unique;

-- types that have no key code: the state says so, and lookups descend
CREATE TYPE kt_pair AS (x int, y text);
CREATE TABLE kt_other (j jsonb, a int[], r kt_pair, v tsvector, mr int4multirange, ra int4range, iv interval, bi varbit, id int);
INSERT INTO kt_other SELECT to_jsonb(i), ARRAY[i, 0], ROW(i, 'x'::text)::kt_pair, to_tsvector('simple', 'word' || i), int4multirange(int4range(i, i + 5)), int4range(i, i + 5), i * interval '1 day', i::bit(20), i FROM generate_series(1, 2000) i;
ANALYZE kt_other;
DO $$
DECLARE col text;
BEGIN
    FOREACH col IN ARRAY ARRAY['j', 'a', 'r', 'v', 'mr', 'ra', 'iv', 'bi'] LOOP
        EXECUTE format('CREATE INDEX kt_other_%1$s ON kt_other USING %2$s (%1$s)', col, am());
    END LOOP;
END $$;
SELECT indexrelid::regclass::text AS index, m.state, m.reason FROM pg_index, learnedbtree_model(indexrelid) m WHERE indrelid = 'kt_other'::regclass ORDER BY 1;
SELECT compare('kt_other_j', $$SELECT id FROM kt_other WHERE j = '77'$$), compare('kt_other_a', 'SELECT id FROM kt_other WHERE a > ARRAY[1990]'),
       compare('kt_other_r', $$SELECT id FROM kt_other WHERE r = ROW(77, 'x')::kt_pair$$), compare('kt_other_v', $$SELECT id FROM kt_other WHERE v < to_tsvector('simple', 'word9')$$),
       compare('kt_other_mr', $$SELECT id FROM kt_other WHERE mr = '{[77,82)}'$$), compare('kt_other_ra', $$SELECT id FROM kt_other WHERE ra < '[7,12)'$$),
       compare('kt_other_iv', $$SELECT id FROM kt_other WHERE iv = '30 days'$$), compare('kt_other_bi', $$SELECT id FROM kt_other WHERE bi = 77::bit(20)$$);
-- one further on in the index ends what the model covers
CREATE INDEX kt_other_idj ON kt_other USING :am (id, j);
SELECT state FROM learnedbtree_model('kt_other_idj');
SELECT compare('kt_other_idj', 'SELECT id, j FROM kt_other WHERE id = 77'), compare('kt_other_idj', $$SELECT id, j FROM kt_other WHERE id = 77 AND j = '77'$$);

DROP TABLE kt_other;
DROP TYPE kt_pair;
DROP TABLE kt;
DROP TYPE kt_mood;
DROP DOMAIN kt_price;
DROP FUNCTION try_key_type;
