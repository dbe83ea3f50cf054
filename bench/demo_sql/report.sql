-- report.sql - print what bench/demo measured.
\pset footer off
\pset border 1
\pset linestyle ascii

WITH median AS (
    SELECT name, lookup, setting, percentile_cont(0.5) WITHIN GROUP (ORDER BY us) AS us, avg(pages) AS pages
      FROM sample GROUP BY name, lookup, setting
)
SELECT CASE WHEN l.ordinal = 1 THEN k.title ELSE '' END AS "keys",
       l.title AS "lookup",
       round(b.pages::numeric, 2) AS "btree pages",
       round(o.pages::numeric, 2) AS "served pages",
       round(b.us::numeric, 2) AS "btree µs",
       round(o.us::numeric, 2) AS "served µs",
       round((b.us / o.us)::numeric, 2) || ' x' AS "speed-up"
  FROM median b
  JOIN median o USING (name, lookup)
  JOIN key_set k USING (name)
  JOIN lookup l ON l.ordinal = lookup
 WHERE b.setting = 'none' AND o.setting = 'all'
 ORDER BY k.ordinal, l.ordinal;

SELECT k.title AS "keys",
       pg_size_pretty(f.size) AS "index",
       pg_size_pretty(f.bytes) AS "model",
       f.leaves, f.knots,
       round(f.training_ms::numeric, 2) AS "training ms",
       round(f.hit_rate::numeric, 2) || ' %' AS "hit rate"
  FROM key_set k
  JOIN figures f USING (name)
 ORDER BY k.ordinal;

\echo 'btree: learnedbtree.btree_indexes = none.  served: all.  pages: index pages visited by a lookup or an insert.'
\echo 'µs: time of a lookup or an insert in the server.'
\echo 'hit rate: lookups answered by the predicted leaf or a right neighbour; the others descended as in btree.'
