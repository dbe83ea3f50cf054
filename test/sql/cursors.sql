-- Scroll cursors: to and fro, over pages and ends, and a model that goes while one is open.
SELECT use_am() AS am \gset

CREATE TABLE cur (u int, d int, e int);
INSERT INTO cur SELECT i, mix(i) % 300, mix(i * 3) % 70 FROM generate_series(1, 15000) i;
CREATE INDEX cur_u ON cur USING :am (u);
CREATE INDEX cur_de ON cur USING :am (d, e);
VACUUM ANALYZE cur;

-- random walks; rows with equal keys come in any order, so only keys are compared where they repeat
SELECT compare_walk('cur_u', 'SELECT u, ctid FROM cur WHERE u > 5000 ORDER BY u'),
       compare_walk('cur_u', 'SELECT u, ctid FROM cur WHERE u < 9000 ORDER BY u DESC'),
       compare_walk('cur_u', 'SELECT u FROM cur WHERE u BETWEEN 3000 AND 3700 ORDER BY u', 'only'),
       compare_walk('cur_u', 'SELECT u FROM cur WHERE u = 77', 'only');
SELECT compare_walk('cur_de', 'SELECT d, e FROM cur WHERE d > 17 ORDER BY d, e'),
       compare_walk('cur_de', 'SELECT d, e FROM cur WHERE d <= 250 ORDER BY d DESC, e DESC'),
       compare_walk('cur_de', 'SELECT d, e FROM cur WHERE d = 17 AND e > 9 ORDER BY e', 'only'),
       compare_walk('cur_de', 'SELECT d, e FROM cur WHERE d = 299 ORDER BY d DESC, e DESC', 'only');

-- backward is the exact reverse of forward, repeated keys included
CREATE FUNCTION both_ways(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    r record;
    there tid[] := '{}';
    back tid[] := '{}';
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    LOOP FETCH NEXT FROM c INTO r; EXIT WHEN NOT FOUND; there := there || r.ctid; END LOOP;
    LOOP FETCH PRIOR FROM c INTO r; EXIT WHEN NOT FOUND; back := r.ctid || back; END LOOP;
    CLOSE c;
    RETURN cardinality(there) || CASE WHEN there = back THEN ' same' ELSE ' differ' END;
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SELECT both_ways('SELECT ctid FROM cur WHERE d BETWEEN 100 AND 130 ORDER BY d'),
       both_ways('SELECT ctid FROM cur WHERE d BETWEEN 100 AND 130 ORDER BY d DESC'),
       both_ways('SELECT ctid FROM cur WHERE u >= 14000 ORDER BY u');

-- by hand: over both ends
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT u FROM cur WHERE u BETWEEN 5 AND 1100 ORDER BY u;
FETCH 2 FROM c;
FETCH BACKWARD 5 FROM c;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH 1 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 1000 FROM c;
FETCH RELATIVE -900 FROM c;
FETCH FIRST FROM c;
MOVE FORWARD ALL FROM c;
FETCH PRIOR FROM c;
MOVE BACKWARD ALL FROM c;
FETCH NEXT FROM c;
COMMIT;

-- the engine is chosen when a scan begins: settings, training, and rebuilding change nothing under way
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT u FROM cur WHERE u > 100 ORDER BY u;
SELECT learnedbtree_stat_reset();       -- the planner has looked at the index's ends
FETCH 1 FROM c;
SET LOCAL learnedbtree.enable = off;
FETCH 2 FROM c;
MOVE 3000 FROM c;
FETCH 1 FROM c;
DECLARE c2 SCROLL CURSOR FOR SELECT u FROM cur WHERE u < 100 ORDER BY u DESC;
FETCH 1 FROM c2;
SET LOCAL learnedbtree.enable = on;
FETCH 2 FROM c2;
MOVE BACKWARD 2000 FROM c;
FETCH 1 FROM c;
SET LOCAL learnedbtree.enable_leaf_cache = off;
MOVE 2000 FROM c;
FETCH 1 FROM c;
SELECT learnedbtree_train('cur_u');
FETCH 1 FROM c;
SET LOCAL learnedbtree.max_model_memory = 64;
SELECT learnedbtree_train('cur_de');
MOVE BACKWARD 1500 FROM c;
FETCH 1 FROM c;
FETCH 2 FROM c2;
COMMIT;
SELECT lookups, verified FROM learnedbtree_stat WHERE indexrelname = 'cur_u';
RESET learnedbtree.max_model_memory;

-- rows inserted, updated and deleted under an open cursor
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT u FROM cur WHERE u BETWEEN 2000 AND 2004 ORDER BY u;
FETCH 2 FROM c;
INSERT INTO cur SELECT 2003, 0, 0 FROM generate_series(1, 1000);
UPDATE cur SET u = 2002 WHERE u = 2004;
DELETE FROM cur WHERE u = 2003;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
ROLLBACK;

-- WHERE CURRENT OF, and a cursor held after its transaction
BEGIN;
DECLARE c CURSOR FOR SELECT u FROM cur WHERE u >= 14998 ORDER BY u FOR UPDATE;
FETCH 2 FROM c;
UPDATE cur SET e = -1 WHERE CURRENT OF c;
COMMIT;
SELECT u FROM cur WHERE e = -1;
BEGIN;
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT u FROM cur WHERE u > 14990 ORDER BY u;
FETCH 2 FROM h;
COMMIT;
FETCH 1 FROM h;
FETCH BACKWARD 2 FROM h;
CLOSE h;
DROP TABLE cur;
DROP FUNCTION both_ways;
