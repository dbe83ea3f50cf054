-- measure.sql - what bench/demo runs in its server: sets of keys, their indexes, the measurements.
--
-- A key set has a table keys_NAME (its key columns, and v, a number of the row) with a btree index NAME_index, a table
-- probe_NAME of keys in random order and probe_sorted_NAME of the same keys in key order.

CREATE EXTENSION learnedbtree;

CREATE TABLE key_set (ordinal serial, name text PRIMARY KEY, title text, columns text[], distinct_keys bool);
CREATE TABLE sample (name text, lookup int, setting text, us float8, pages float8);
CREATE TABLE figures (name text, size bigint, bytes bigint, leaves bigint, knots int, training_ms float8,
                      hit_rate float8);

-- {eq}: all key columns are equal to the probe's; {from}: all but the last are, and that is not below
-- the probe's; {last}: the last key column; {probes}: how many of them; {row}: a row number that was not used before.
CREATE TABLE lookup (ordinal int PRIMARY KEY, title text, share int, query text, of_set text);
INSERT INTO lookup (ordinal, title, share, query) VALUES
    (1, 'join, index only, random', 1, 'SELECT count(*) FROM probe_{name} p JOIN keys_{name} t ON {eq}'),
    (2, 'join, index only, sorted', 1, 'SELECT count(*) FROM probe_sorted_{name} p JOIN keys_{name} t ON {eq}'),
    (3, 'join with table rows, random', 1, 'SELECT sum(t.v) FROM probe_{name} p JOIN keys_{name} t ON {eq}'),
    (4, 'the next 100 keys', 20,
     'SELECT sum(n) FROM (SELECT * FROM probe_{name} LIMIT {probes}) p CROSS JOIN LATERAL (
          SELECT count(*) AS n FROM (SELECT FROM keys_{name} t WHERE {from} ORDER BY t.{last} LIMIT 100) r) s');
INSERT INTO lookup VALUES
    (5, 'inserts, random', 3,
     'INSERT INTO keys_{name} SELECT hashint8extended(i, 1), 0 FROM generate_series({row}, {row} + {probes} - 1) i',
     'random');

CREATE TABLE real_size (size bigint);
CREATE TABLE real_time (changed bigint);

-- ---- key sets ----

CREATE PROCEDURE load_random(wanted bigint) LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE keys_random AS
        SELECT hashint8extended(i, 1) AS k, i::int AS v FROM generate_series(1, wanted) i;
    INSERT INTO key_set (name, title, columns, distinct_keys)
        VALUES ('random', format('primary key, random int8, %s M', round(wanted / 1e6, 1)), '{k}', true);
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
    INSERT INTO key_set (name, title, columns, distinct_keys)
        SELECT 'size', format('%s (int8), %s M', source, round(count(*) / 1e6, 1)), '{k}', false FROM keys_size;
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
    INSERT INTO key_set (name, title, columns, distinct_keys)
        SELECT 'time', format('%s (timestamptz, int4), %s M', source, round(count(*) / 1e6, 1)), '{changed,file}', true
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

-- The index, in which nothing tells that there is the extension.
CREATE PROCEDURE build(set_name text) LANGUAGE plpgsql AS $$
DECLARE
    key text := array_to_string((SELECT columns FROM key_set WHERE name = set_name), ', ');
BEGIN
    IF (SELECT distinct_keys FROM key_set WHERE name = set_name) THEN
        EXECUTE format('ALTER TABLE keys_%1$s ADD CONSTRAINT %1$s_index PRIMARY KEY (%2$s)', set_name, key);
    ELSE
        EXECUTE format('CREATE INDEX %1$s_index ON keys_%1$s (%2$s)', set_name, key);
    END IF;
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

-- Run the query with a setting of learnedbtree.btree_indexes; that, and rows it has written, are rolled back.
CREATE FUNCTION run_once(index regclass, setting text, query text, OUT us float8, OUT pages bigint, OUT answer text)
LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    began timestamptz;
BEGIN
    PERFORM set_config('learnedbtree.btree_indexes', setting, true);
    IF (SELECT served FROM learnedbtree_indexes WHERE indexrelid = index) IS DISTINCT FROM (setting = 'all') THEN
        RAISE EXCEPTION 'with learnedbtree.btree_indexes = % the index % is served or not as it should not be',
            setting, index;
    END IF;
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    IF query LIKE 'SELECT%' AND plan NOT LIKE format('%%"Index Name": "%s"%%', index) THEN
        RAISE EXCEPTION 'the planner does not use index %', index USING DETAIL = plan;
    END IF;
    pages := pg_stat_get_xact_blocks_fetched(index);
    began := clock_timestamp();
    IF query LIKE 'SELECT%' THEN
        EXECUTE query INTO answer;
    ELSE
        EXECUTE query;
        GET DIAGNOSTICS answer = ROW_COUNT;
    END IF;
    us := extract(epoch FROM clock_timestamp() - began) * 1e6;
    pages := pg_stat_get_xact_blocks_fetched(index) - pages;
    RAISE EXCEPTION USING ERRCODE = 'DEMO1';
EXCEPTION
    WHEN SQLSTATE 'DEMO1' THEN NULL;
END $$;

-- One round to warm up, then five; the two settings take turns at going first.
CREATE PROCEDURE measure(set_name text, which int) LANGUAGE plpgsql AS $$
DECLARE
    settings text[] := '{none,all}';
    probes bigint;
    unused_row bigint;
    query text;
    first_answer text;
    one record;
    i int;
BEGIN
    EXECUTE format('SELECT count(*) / (SELECT share FROM lookup WHERE ordinal = %s) FROM probe_%s', which, set_name)
        INTO probes;
    EXECUTE format('SELECT count(*) + 1 FROM keys_%s', set_name) INTO unused_row;
    query := query_of(set_name, which, probes);
    FOR round IN 0..5 LOOP
        FOR turn IN 0..1 LOOP
            i := 1 + (round + turn) % 2;
            SELECT * INTO one
              FROM run_once((set_name || '_index')::regclass, settings[i], replace(query, '{row}', unused_row::text));
            unused_row := unused_row + probes;
            first_answer := coalesce(first_answer, one.answer);
            IF one.answer IS DISTINCT FROM first_answer THEN
                RAISE EXCEPTION 'the answers differ: % and %', first_answer, one.answer;
            END IF;
            IF round > 0 THEN
                INSERT INTO sample VALUES (set_name, which, settings[i], one.us / probes, one.pages::float8 / probes);
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Of the model, before inserts change the index.
CREATE PROCEDURE note_figures(set_name text) LANGUAGE sql AS $$
    INSERT INTO figures
    SELECT set_name, pg_relation_size(index), m.bytes, m.leaves, m.knots, m.training_ms,
           100.0 * s.verified / nullif(s.lookups, 0)
      FROM CAST(set_name || '_index' AS regclass) AS index
     CROSS JOIN LATERAL learnedbtree_model(index) m
      JOIN learnedbtree_stat s ON s.indexrelid = index
$$;
