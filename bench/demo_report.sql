-- demo_report.sql - print what bench/demo measured.
\pset footer off
\pset border 1
\pset linestyle ascii

WITH median AS (
    SELECT name, lookup, method, percentile_cont(0.5) WITHIN GROUP (ORDER BY us) AS us, avg(pages) AS pages
      FROM sample GROUP BY name, lookup, method
)
SELECT CASE WHEN l.ordinal = 1 THEN k.title ELSE '' END AS "keys",
       l.title AS "lookup",
       round(b.pages::numeric, 2) AS "btree pages",
       round(o.pages::numeric, 2) AS "learned pages",
       round(b.us::numeric, 2) AS "btree µs",
       round(o.us::numeric, 2) AS "learned µs",
       round((b.us / o.us)::numeric, 2) || ' x' AS "speed-up"
  FROM median b
  JOIN median o USING (name, lookup)
  JOIN key_set k USING (name)
  JOIN lookup l ON l.ordinal = lookup
 WHERE b.method = 'btree' AND o.method = 'learnedbtree'
 ORDER BY k.ordinal, l.ordinal;

SELECT k.title AS "keys",
       pg_size_pretty(pg_relation_size(index)) AS "index",
       pg_size_pretty(m.bytes) AS "model",
       m.leaves, m.knots,
       round(m.max_error::numeric, 1) AS "max error",
       round(m.training_ms::numeric, 2) AS "training ms",
       round(100.0 * s.verified / nullif(s.lookups, 0), 2) || ' %' AS "hit rate"
  FROM key_set k
 CROSS JOIN LATERAL CAST(k.name || '_learnedbtree' AS regclass) AS index
 CROSS JOIN LATERAL learnedbtree_model(index) m
  JOIN learnedbtree_stat s ON s.indexrelid = index
 ORDER BY k.ordinal;

\echo 'pages: index pages touched a lookup.  µs: time a lookup takes in the server.  max error: of the spline, in leaves.'
\echo 'hit rate: lookups answered by the predicted leaf or a right neighbour; the others descended as in btree.'
