-- Every key type with a key code, arguments of other types of the family, and values at the ends.
SELECT use_am() AS am \gset

CREATE TABLE typ (i2 int2, i4 int4, i8 int8, o oid, b bool, c "char", f4 float4, f8 float8,
                  d date, t timestamp, z timestamptz);
INSERT INTO typ SELECT (mix(i) % 60000 - 30000)::int2, (mix(i) - 2147483645)::int4, (mix(i) - 2000000000) * 4000000000,
       mix(i)::oid, i % 3 = 0, chr((i % 120 + 1)::int)::"char", ((mix(i) - 2000000000) / 1000.0)::float4, (mix(i) - 2000000000) / 7.0,
       date '1900-01-01' + (mix(i) % 90000)::int, timestamp '1970-01-01' + mix(i) * interval '1 second',
       timestamptz '1970-01-01 00:00+00' + mix(i) * interval '1 second'
  FROM generate_series(1, 1500) i;
INSERT INTO typ VALUES
    (-32768, -2147483648, -9223372036854775808, 0, false, '', '-Infinity', '-Infinity', '-infinity', '-infinity', '-infinity'),
    (32767, 2147483647, 9223372036854775807, 4294967295, true, E'\\377', 'Infinity', 'Infinity', 'infinity', 'infinity', 'infinity'),
    (0, 0, 0, 1, NULL, NULL, 'NaN', 'NaN', '2000-01-01', '2000-01-01', '2000-01-01 00:00+00'),
    (0, 0, 0, 1, NULL, NULL, '-0', '-0', '4713-01-01 BC', '4713-01-01 BC', '4713-01-02 00:00+00 BC'),
    (NULL, NULL, NULL, NULL, NULL, NULL, '0', '0', NULL, NULL, NULL);
ANALYZE typ;

-- an index each, ascending and descending in turn; all compared against a sequential scan
CREATE FUNCTION try_type(col text, args text[]) RETURNS TABLE (outcome text, queries bigint, which text) LANGUAGE plpgsql AS $$
DECLARE
    direction text;
BEGIN
    FOREACH direction IN ARRAY ARRAY['ASC', 'DESC', 'ASC NULLS FIRST', 'DESC NULLS LAST'] LOOP
        EXECUTE format('CREATE INDEX typ_i ON typ USING %s (%I %s) WITH (fillfactor = 11)', am(), col, direction);
        RETURN QUERY
            SELECT direction || ': ' || c.outcome, c.queries, CASE WHEN c.outcome = 'same, verified' THEN '' ELSE c.which END
              FROM compare_all('typ_i', format('SELECT %I FROM typ WHERE $1', col),
                     (SELECT array_agg(format('%I %s %s', col, o, a)) FROM unnest(args) a, unnest(ARRAY['<', '<=', '=', '>=', '>']) o)) c;
        DROP INDEX typ_i;
    END LOOP;
END $$;

SELECT * FROM try_type('i2', ARRAY['0::int2', '(-32768)::int2', '32767::int2', '77', '(-40000)', '40000', '32768', '5000000000', '(-5000000000)', '1234::int8']);
SELECT * FROM try_type('i4', ARRAY['0', '(-2147483648)', '2147483647', '12::int2', '2147483648', '(-2147483649)', '99::int8', '9223372036854775807', '(-9223372036854775808)']);
SELECT * FROM try_type('i8', ARRAY['0', '(-9223372036854775808)', '9223372036854775807', '12::int2', '4000000000', '7::int4']);
SELECT * FROM try_type('o', ARRAY['0::oid', '1::oid', '4294967295::oid', '3000000000::oid', '2147483648::oid']);
SELECT * FROM try_type('f4', ARRAY['0::float4', $$'-0'::float4$$, $$'NaN'::float4$$, $$'NaN'::float8$$, $$'Infinity'::float8$$, $$'-Infinity'::float4$$, '1e300::float8', '(-1e300)::float8', '0.1::float8', '1e-300::float8', '16777217::float8', '(-2000.1)::float8']);
SELECT * FROM try_type('f8', ARRAY['0::float8', $$'-0'::float8$$, $$'NaN'::float8$$, $$'NaN'::float4$$, $$'Infinity'::float4$$, $$'-Infinity'::float8$$, '0.1::float4', '1e300::float8', '(-1e-310)::float8']);
SELECT * FROM try_type('d', ARRAY[$$date '2000-01-01'$$, $$date 'infinity'$$, $$date '-infinity'$$, $$date '1899-12-31'$$]);
SELECT * FROM try_type('t', ARRAY[$$timestamp '2000-01-01'$$, $$date '2000-01-01'$$, $$date 'infinity'$$, $$date '-infinity'$$, $$timestamp 'infinity'$$, $$timestamp '-infinity'$$, $$date '5000000-01-01'$$, $$date '4713-01-01 BC'$$]);
SET timezone = 'America/St_Johns';
SELECT * FROM try_type('z', ARRAY[$$timestamptz '2000-01-01'$$, $$date '2000-01-01'$$, $$timestamp '2000-06-01 12:00'$$, $$date 'infinity'$$, $$timestamp '-infinity'$$, $$date '5000000-01-01'$$, $$timestamptz 'infinity'$$]);
RESET timezone;

-- few values, each over many leaves
SELECT * FROM try_type('c', ARRAY[$$'a'::"char"$$, $$''::"char"$$, $$'x'::"char"$$]);
CREATE INDEX typ_b ON typ USING :am (b, i4) WITH (fillfactor = 30);
SELECT * FROM compare_all('typ_b', 'SELECT b, i4 FROM typ WHERE $1', ARRAY['b', 'NOT b', 'b = true AND i4 > 1000000', 'b = false AND i4 < 0', 'b AND i4 = 0']);
DROP INDEX typ_b;

-- arguments whose comparison depends on the time zone are nbtree's
CREATE INDEX typ_t ON typ USING :am (t) WITH (fillfactor = 30);
CREATE INDEX typ_d ON typ USING :am (d) WITH (fillfactor = 30);
SELECT compare('typ_t', $$SELECT t FROM typ WHERE t < timestamptz '1980-01-01 00:00+00'$$),
       compare('typ_d', $$SELECT d FROM typ WHERE d < timestamp '1910-01-01 12:00'$$),
       compare('typ_d', $$SELECT d FROM typ WHERE d < timestamptz '1910-01-01 12:00+00'$$);
DROP INDEX typ_t, typ_d;

-- domains and binary-coercible types
CREATE DOMAIN typ_dom AS int CHECK (VALUE > 0);
CREATE TABLE typ2 (x typ_dom, r regclass);
INSERT INTO typ2 SELECT i, i::oid::regclass FROM generate_series(1, 3000) i;
CREATE INDEX typ2_x ON typ2 USING :am (x);
CREATE INDEX typ2_r ON typ2 USING :am (r);
ANALYZE typ2;
SELECT indexrelid::regclass::text AS index, (learnedbtree_model(indexrelid)).state FROM pg_index WHERE indrelid = 'typ2'::regclass ORDER BY 1;
SELECT compare('typ2_x', 'SELECT x FROM typ2 WHERE x BETWEEN 5 AND 1000'), compare('typ2_r', 'SELECT x FROM typ2 WHERE r = 77::oid::regclass');
DROP TABLE typ2;
DROP DOMAIN typ_dom;

-- types without a key code: nbtree's engine, and the model says so
CREATE TYPE typ_pair AS (a int, b int);
CREATE TABLE typ3 (n int, a int[], j jsonb, t tsvector, p typ_pair);
INSERT INTO typ3 SELECT i, ARRAY[i], to_jsonb(i), to_tsvector('simple', i::text), ROW(i, i)::typ_pair FROM generate_series(1, 3000) i;
DO $$
DECLARE col text;
BEGIN
    FOREACH col IN ARRAY ARRAY['a', 'j', 't', 'p'] LOOP
        EXECUTE format('CREATE INDEX typ3_%s ON typ3 USING %s (%s)', col, am(), col);
    END LOOP;
END $$;
SELECT DISTINCT (learnedbtree_model(indexrelid)).state, (learnedbtree_model(indexrelid)).reason FROM pg_index WHERE indrelid = 'typ3'::regclass;
SELECT compare('typ3_a', 'SELECT n FROM typ3 WHERE a > ARRAY[2990]'), compare('typ3_j', $$SELECT n FROM typ3 WHERE j BETWEEN '10' AND '20'$$),
       compare('typ3_t', $$SELECT n FROM typ3 WHERE t = '77'$$), compare('typ3_p', $$SELECT n FROM typ3 WHERE p < ROW(20, 1)::typ_pair$$);
DROP TABLE typ3;
DROP TYPE typ_pair;
DROP TABLE typ;
DROP FUNCTION try_type;
