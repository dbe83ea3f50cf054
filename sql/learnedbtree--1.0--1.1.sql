\echo Use "ALTER EXTENSION learnedbtree UPDATE TO '1.1'" to load this file. \quit

-- ---- taking over btree indexes ----

-- ---- inspection ----

-- ---- what scans did ----

-- ---- statistics ----
