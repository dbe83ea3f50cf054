-- Keys that share a code with a separator: the separators are kept, and decide.
SELECT use_am() AS am \gset

-- Paths and URLs by rule: large groups below prefixes that are longer than a key code's digits.
CREATE FUNCTION a_path(i bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (ARRAY['/usr/share/doc/packages/', '/usr/lib/x86_64-linux-gnu/', '/srv/repositories/', '/home/user/projects/learned/'])[1 + i % 4] ||
           (ARRAY['source/', 'documentation/reference/', 'tests/regression/data/'])[1 + mix(i) % 3] ||
           (ARRAY['module-', 'library-of-', 'a', 'zz-long-directory-name/with-another-one-below-it/'])[1 + mix(i + 1) % 4] ||
           mix(i + 2) % 100000 || '.' || (ARRAY['c', 'h', 'txt'])[1 + mix(i + 3) % 3] $$;
CREATE TABLE seg (path text COLLATE "C", n int, url text COLLATE "C");
INSERT INTO seg SELECT a_path(i), mix(i + 4) % 3, 'https://media-archive.example.org/collections/' || a_path(i)
  FROM generate_series(1, 30000) i;
INSERT INTO seg VALUES ('', 1, ''), ('/usr/share/doc/packages/', 2, 'https://'), ('/usr/share/doc/packages/source/module', NULL, NULL),
    (repeat('/usr', 80), 3, repeat('x', 300)), (chr(1), 4, chr(127)), (NULL, 5, NULL);
CREATE INDEX seg_path ON seg USING :am (path);
CREATE INDEX seg_url_desc ON seg USING :am (url DESC NULLS LAST, n);
CREATE INDEX seg_n ON seg USING :am (n, path DESC);
VACUUM ANALYZE seg;
CREATE TABLE seg_keys AS SELECT path, n, url FROM seg WHERE n IS NOT NULL AND path IS NOT NULL;
ANALYZE seg_keys;

-- Most leaves share their code with the one before.
CREATE VIEW seg_models AS
    SELECT indexrelname, m.state, m.separator_bytes > 0 AS separators, m.leaves > 100 AS many_leaves
      FROM learnedbtree_stat, learnedbtree_model(indexrelid) m WHERE relname = 'seg' ORDER BY 1;
SELECT * FROM seg_models;

-- Every key is found where it is predicted, or nearly so.
CREATE FUNCTION find_all(index regclass, query text) RETURNS TABLE (answers text, found text) LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off
    SET enable_material = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    s record;
    learned text;
BEGIN
    PERFORM learnedbtree_stat_reset(index);
    learned := answers(query);
    SELECT * INTO s FROM learnedbtree_stat WHERE indexrelid = index;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true),
            set_config('enable_hashjoin', 'on', true);
    RETURN QUERY SELECT CASE WHEN learned = answers(query) THEN 'same' ELSE 'WRONG' END,
        CASE WHEN s.lookups < 4000 THEN format('%s lookups only', s.lookups)
             WHEN s.verified < 0.99 * s.lookups THEN format('verified %s of %s', s.verified, s.lookups)
             WHEN s.moved_right > 0.01 * s.lookups THEN format('moved %s of %s', s.moved_right, s.lookups)
             ELSE 'nearly all' END;
END $$;
SELECT * FROM find_all('seg_path', 'SELECT count(*), count(i.path) FROM seg_keys o LEFT JOIN seg i USING (path)');
SELECT * FROM find_all('seg_url_desc', 'SELECT count(*), count(i.url) FROM seg_keys o LEFT JOIN seg i USING (url)');
SELECT * FROM find_all('seg_n', 'SELECT count(*), count(i.n) FROM seg_keys o LEFT JOIN seg i USING (n, path)');

-- Answers, for keys that were learned and others.
CREATE FUNCTION seg_conditions() RETURNS text[] LANGUAGE sql AS $$
    SELECT array_agg(c) FROM (SELECT path FROM seg WHERE path > '/' AND length(path) < 300 AND mix(length(path) + n) % 50 = 0 ORDER BY md5(path) LIMIT 10) q,
        LATERAL (VALUES (path), (path || '~'), (left(path, -1) || chr(1)), (replace(path, 'o', 'p')), (left(path, 45))) v(x),
        LATERAL (VALUES (format('path = %L', x)), (format('path >= %L AND path < %L', x, x || '9')), (format('path > %L AND path <= %L', left(x, -2), x))) w(c) $$;
SELECT outcome, queries FROM compare_all('seg_path', 'SELECT path FROM seg WHERE $1', seg_conditions());
SELECT outcome, queries FROM compare_all('seg_path', 'SELECT path FROM seg WHERE $1',
    ARRAY[$c$path LIKE '/usr/share/doc/packages/source/%'$c$, $c$path BETWEEN '/srv/repositories/source/b' AND '/srv/repositories/source/module-5'$c$,
          $c$path IS NULL$c$, $c$path <= chr(1)$c$, $c$path > repeat('/usr', 79) AND path < '/usr/t'$c$,
          $c$path > '/usr/share/doc/packages/tests/' AND path < '/usr/share/doc/packages/tests/regression/data/library'$c$]);
SELECT outcome, queries FROM compare_all('seg_n', 'SELECT n, path FROM seg WHERE $1',
    ARRAY[$c$n = 1 AND path > '/srv/repositories/source/b'$c$, $c$n = 1 AND path <= '/usr'$c$, $c$n < 1$c$, $c$n IS NULL AND path > ''$c$]);

-- Inserts go by them, too.
SELECT learnedbtree_stat_reset('seg_path');
INSERT INTO seg SELECT a_path(i), mix(i + 4) % 3, 'https://media-archive.example.org/collections/' || a_path(i)
  FROM generate_series(30001, 34000) i;
SELECT inserts = 4000 AS all, inserts_placed + inserts_full > 0.95 * inserts AS placed, inserts_fallback < 0.01 * inserts AS few_fallbacks
  FROM learnedbtree_stat WHERE indexrelname = 'seg_path';
SELECT sound('seg_path'), sound('seg_url_desc'), sound('seg_n');
SELECT learnedbtree_train('seg_path'), learnedbtree_train('seg_url_desc'), learnedbtree_train('seg_n');
SELECT * FROM seg_models;
SELECT * FROM find_all('seg_path', 'SELECT count(*), count(i.path) FROM (SELECT a_path(i) AS path FROM generate_series(30001, 34000) i) o LEFT JOIN seg i USING (path)');

-- Equal keys tie whatever the code.
CREATE TABLE seg_same (t text COLLATE "C");
INSERT INTO seg_same SELECT repeat('one and the same', 4) FROM generate_series(1, 2000);
CREATE INDEX seg_same_t ON seg_same USING :am (t) WITH (deduplicate_items = off);
SELECT separator_bytes > 0 AS separators FROM learnedbtree_model('seg_same_t');
SELECT compare('seg_same_t', $$SELECT t FROM seg_same WHERE t >= 'one'$$);
DROP VIEW seg_models;
DROP TABLE seg, seg_keys, seg_same;
DROP FUNCTION a_path, find_all, seg_conditions;
