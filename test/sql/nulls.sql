-- NULL keys: first and last, ascending and descending, in first and second columns.
SELECT use_am() AS am \gset

CREATE TABLE nul (a int, b int);
INSERT INTO nul SELECT CASE WHEN i % 5 = 0 THEN NULL ELSE mix(i) % 3000 END, CASE WHEN i % 7 = 0 THEN NULL ELSE mix(i + 9) % 100 END
  FROM generate_series(1, 15000) i;
INSERT INTO nul SELECT 1234, CASE WHEN i % 2 = 0 THEN i END FROM generate_series(1, 3000) i;
ANALYZE nul;
CREATE FUNCTION try_nulls(columns text) RETURNS TABLE (outcome text, queries bigint, which text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE INDEX nul_i ON nul USING %s (%s)', am(), columns);
    RETURN QUERY SELECT * FROM compare_all('nul_i', 'SELECT a, b FROM nul WHERE $1', ARRAY[
        'a < 20', 'a <= 0', 'a > 2990', 'a >= 0', 'a = 1234', 'a = 77', 'a BETWEEN 100 AND 140',
        'a = 1234 AND b > 2500', 'a = 1234 AND b < 50', 'a = 1234 AND b >= 2000 AND b < 2100', 'a = 1234 AND b <= 3000',
        'a = 1234 AND b > 3000', 'a = 77 AND b > 0', 'a = 77 AND b < 1000', 'a = 1234 AND b = 1000']);
    RETURN QUERY SELECT * FROM compare_all('nul_i', 'SELECT a, b FROM nul WHERE $1', ARRAY[
        'a IS NULL', 'a IS NOT NULL', 'a = 1234 AND b IS NULL', 'a IS NULL AND b = 5', 'a IS NULL AND b IS NOT NULL', 'a = 1234 AND b IS NOT NULL',
        'a < 100 AND b IS NULL']);
    DROP INDEX nul_i;
END $$;
SELECT * FROM try_nulls('a, b');
SELECT * FROM try_nulls('a NULLS FIRST, b');
SELECT * FROM try_nulls('a DESC, b DESC');
SELECT * FROM try_nulls('a DESC NULLS LAST, b NULLS FIRST');
SELECT * FROM try_nulls('a, b DESC NULLS LAST');
SELECT * FROM try_nulls('a NULLS FIRST, b NULLS FIRST');
SELECT * FROM try_nulls('a DESC, b NULLS FIRST');

-- backward ranges that end at the NULLs
CREATE INDEX nul_b ON nul USING :am (a, b DESC NULLS LAST);
SELECT compare_walk('nul_b', 'SELECT a, b FROM nul WHERE a > 2000 ORDER BY a, b DESC NULLS LAST'),
       compare_walk('nul_b', 'SELECT a, b FROM nul WHERE a > 2000 ORDER BY a DESC, b NULLS FIRST'),
       compare_walk('nul_b', 'SELECT a, b FROM nul WHERE a = 1234 AND b < 2000 ORDER BY b'),
       compare_walk('nul_b', 'SELECT a, b FROM nul WHERE a = 1234 AND b > 5 ORDER BY b DESC NULLS LAST');
DROP INDEX nul_b;

-- a NULL argument finds nothing, at once
CREATE INDEX nul_p ON nul USING :am (a, b);
PREPARE nul_q(int) AS SELECT count(*) FROM nul WHERE a = $1;
PREPARE nul_r(int, int) AS SELECT count(*) FROM nul WHERE a = $1 AND b > $2;
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
SELECT learnedbtree_stat_reset();
EXECUTE nul_q(NULL);
EXECUTE nul_r(1234, NULL);
SELECT verified, delegated FROM learnedbtree_stat_get('nul_p'::regclass);
EXECUTE nul_q(1234);
EXECUTE nul_r(1234, 0);
SELECT verified > 0 AS verified, delegated FROM learnedbtree_stat WHERE indexrelname = 'nul_p';

-- a column of nothing but NULLs
CREATE TABLE nul_only (a int);
INSERT INTO nul_only SELECT NULL FROM generate_series(1, 5000);
CREATE INDEX nul_only_i ON nul_only USING :am (a);
ANALYZE nul_only;
RESET enable_seqscan;
SELECT sound('nul_only_i');
SELECT c, compare('nul_only_i', 'SELECT a FROM nul_only WHERE a ' || c) FROM unnest(ARRAY['= 5', '> 5', '< 5', 'IS NULL']) c;
INSERT INTO nul_only SELECT i FROM generate_series(1, 2000) i;
SELECT c, left(compare('nul_only_i', 'SELECT a FROM nul_only WHERE a ' || c), 4) FROM unnest(ARRAY['= 5', '> 5', '< 5', 'IS NULL']) c;
-- leaves of NULLs beside leaves of values
SELECT learnedbtree_train('nul_only_i');
SELECT sound('nul_only_i');
SELECT c, compare('nul_only_i', 'SELECT a FROM nul_only WHERE a ' || c) FROM unnest(ARRAY['= 5', '> 5', '< 500', '> 1999', '>= 2001']) c;
DROP INDEX nul_only_i;
CREATE INDEX nul_first_i ON nul_only USING :am (a DESC NULLS FIRST);
SELECT sound('nul_first_i');
SELECT c, compare('nul_first_i', 'SELECT a FROM nul_only WHERE a ' || c) FROM unnest(ARRAY['= 5', '> 5', '< 500', '> 1999', '>= 2001']) c;
DROP TABLE nul_only, nul;
DROP FUNCTION try_nulls;
