-- demo.sql - what bench/demo runs in its server: sets of keys, their indexes, the measurements.
--
-- A key set has a table keys_NAME (its key columns, and v, a number of the row), a table probe_NAME of
-- keys in random order and probe_sorted_NAME of the same keys in key order.

CREATE EXTENSION learnedbtree;

CREATE TABLE key_set (ordinal serial, name text PRIMARY KEY, title text, columns text[]);
CREATE TABLE sample (name text, lookup int, method text, us float8, pages float8);

-- {eq}: all key columns are equal to the probe's; {from}: all but the last are, and that is not below
-- the probe's; {last}: the last key column.
CREATE TABLE lookup (ordinal int PRIMARY KEY, title text, share int, query text);
INSERT INTO lookup VALUES
    (1, 'join, index only, random', 1, 'SELECT count(*) FROM probe_{name} p JOIN keys_{name} t ON {eq}'),
    (2, 'join, index only, sorted', 1, 'SELECT count(*) FROM probe_sorted_{name} p JOIN keys_{name} t ON {eq}'),
    (3, 'join with table rows, random', 1, 'SELECT sum(t.v) FROM probe_{name} p JOIN keys_{name} t ON {eq}'),
    (4, 'the next 100 keys', 20,
     'SELECT sum(n) FROM (SELECT * FROM probe_{name} LIMIT {probes}) p CROSS JOIN LATERAL (
          SELECT count(*) AS n FROM (SELECT FROM keys_{name} t WHERE {from} ORDER BY t.{last} LIMIT 100) r) s');

CREATE TABLE real_size (size bigint);
CREATE TABLE real_time (changed bigint);

-- ---- key sets ----

CREATE PROCEDURE load_random(wanted bigint) LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE keys_random AS
        SELECT hashint8extended(i, 1) AS k, i::int AS v FROM generate_series(1, wanted) i;
    INSERT INTO key_set (name, title, columns)
        VALUES ('random', format('%s M random int8 keys', round(wanted / 1e6, 1)), '{k}');
END $$;

-- Copies of the real set, each shifted behind the one before, until there are enough keys.
CREATE PROCEDURE load_sizes(wanted bigint) LANGUAGE plpgsql AS $$
DECLARE
    source text := 'sizes of Debian packages';
    copies bigint;
    span bigint;
BEGIN
    IF (SELECT count(*) FROM real_size) < 1000 THEN
        source := 'sizes by a log-normal rule';
        TRUNCATE real_size;
        INSERT INTO real_size SELECT exp(11 + 2 * sqrt(-2 * ln((i - 0.5) / 50000)) * cos(i * 2.399963))::bigint
            FROM generate_series(1, 50000) i;
    END IF;
    SELECT ceil(wanted::numeric / count(*)), max(size) + 1 INTO copies, span FROM real_size;
    CREATE TABLE keys_size AS
        SELECT copy * span + size AS k, row_number() OVER ()::int AS v
          FROM generate_series(0, copies - 1) copy, real_size;
    INSERT INTO key_set (name, title, columns)
        SELECT 'size', format('%s (int8), %s M', source, round(count(*) / 1e6, 1)), '{k}' FROM keys_size;
END $$;

-- Files of one package share a time, so the key is (time, number of the file).
CREATE PROCEDURE load_times(wanted bigint) LANGUAGE plpgsql AS $$
DECLARE
    source text := 'times of files';
    copies bigint;
    span bigint;
BEGIN
    IF (SELECT count(*) FROM real_time) < 1000 THEN
        source := 'times by rule';
        TRUNCATE real_time;
        INSERT INTO real_time SELECT 1700000000 - (86400 * 15 * sqrt(i % 700))::bigint FROM generate_series(1, 30000) i;
    END IF;
    SELECT ceil(wanted::numeric / count(*)), max(changed) - min(changed) + 1 INTO copies, span FROM real_time;
    CREATE TABLE keys_time AS
        SELECT to_timestamp(changed + copy * span) AS changed, file::int AS file, row_number() OVER ()::int AS v
          FROM generate_series(0, copies - 1) copy,
               (SELECT changed, row_number() OVER () AS file FROM real_time) real;
    INSERT INTO key_set (name, title, columns)
        SELECT 'time', format('%s (timestamptz, int4), %s M', source, round(count(*) / 1e6, 1)), '{changed,file}'
          FROM keys_time;
END $$;

CREATE PROCEDURE make_probes(set_name text, wanted bigint) LANGUAGE plpgsql AS $$
DECLARE
    key text := array_to_string((SELECT columns FROM key_set WHERE name = set_name), ', ');
    total bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM keys_%s', set_name) INTO total;
    EXECUTE format('CREATE TABLE probe_%1$s AS SELECT %2$s FROM keys_%1$s '
                   'WHERE abs(hashint4extended(v, 2) %% %3$s) < %4$s ORDER BY hashint4extended(v, 3)',
                   set_name, key, total, wanted);
    EXECUTE format('CREATE TABLE probe_sorted_%1$s AS SELECT * FROM probe_%1$s ORDER BY %2$s', set_name, key);
END $$;

CREATE PROCEDURE build(set_name text) LANGUAGE plpgsql AS $$
DECLARE
    key text := array_to_string((SELECT columns FROM key_set WHERE name = set_name), ', ');
BEGIN
    EXECUTE format('CREATE INDEX %1$s_btree ON keys_%1$s USING btree (%2$s)', set_name, key);
    EXECUTE format('CREATE INDEX %1$s_learnedbtree ON keys_%1$s USING learnedbtree (%2$s)', set_name, key);
END $$;

-- ---- measurements ----

CREATE FUNCTION query_of(set_name text, which int, probes bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    query text := (SELECT l.query FROM lookup l WHERE ordinal = which);
    key text[] := (SELECT columns FROM key_set WHERE name = set_name);
    last text := key[array_upper(key, 1)];
    equal text := (SELECT string_agg(format('t.%1$s = p.%1$s', c), ' AND ') FROM unnest(key) c);
BEGIN
    query := replace(query, '{from}', replace(equal, format('t.%s =', last), format('t.%s >=', last)));
    query := replace(replace(query, '{eq}', equal), '{last}', last);
    RETURN replace(replace(query, '{name}', set_name), '{probes}', probes::text);
END $$;

-- Run the query with one of the indexes hidden: dropped, and brought back by rolling back.
CREATE FUNCTION run_once(used text, hidden text, query text, OUT us float8, OUT pages bigint, OUT answer text)
LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    began timestamptz;
BEGIN
    EXECUTE format('DROP INDEX %s', hidden);
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    IF plan NOT LIKE format('%%"Index Name": "%s"%%', used) THEN
        RAISE EXCEPTION 'the planner does not use index %', used USING DETAIL = plan;
    END IF;
    pages := pg_stat_get_xact_blocks_fetched(used::regclass);
    began := clock_timestamp();
    EXECUTE query INTO answer;
    us := extract(epoch FROM clock_timestamp() - began) * 1e6;
    pages := pg_stat_get_xact_blocks_fetched(used::regclass) - pages;
    RAISE EXCEPTION USING ERRCODE = 'DEMO1';
EXCEPTION
    WHEN SQLSTATE 'DEMO1' THEN NULL;
END $$;

-- One round to warm up, then five; the two indexes take turns at going first.
CREATE PROCEDURE measure(set_name text, which int) LANGUAGE plpgsql AS $$
DECLARE
    methods text[] := '{btree,learnedbtree}';
    probes bigint;
    query text;
    first_answer text;
    one record;
    i int;
BEGIN
    EXECUTE format('SELECT count(*) / (SELECT share FROM lookup WHERE ordinal = %s) FROM probe_%s', which, set_name)
        INTO probes;
    query := query_of(set_name, which, probes);
    FOR round IN 0..5 LOOP
        FOR turn IN 0..1 LOOP
            i := 1 + (round + turn) % 2;
            SELECT * INTO one FROM run_once(set_name || '_' || methods[i], set_name || '_' || methods[3 - i], query);
            first_answer := coalesce(first_answer, one.answer);
            IF one.answer IS DISTINCT FROM first_answer THEN
                RAISE EXCEPTION 'the indexes give different answers: % and %', first_answer, one.answer;
            END IF;
            IF round > 0 THEN
                INSERT INTO sample VALUES (set_name, which, methods[i], one.us / probes, one.pages::float8 / probes);
            END IF;
        END LOOP;
    END LOOP;
END $$;
