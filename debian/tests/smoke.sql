-- Does the installed extension serve, build, train, answer and take inserts?  An error if not.
CREATE EXTENSION learnedbtree;
CREATE TABLE t AS SELECT g * 3 AS k FROM generate_series(1, 100000) g;
CREATE INDEX t_k ON t USING learnedbtree (k);
CREATE TABLE u AS SELECT * FROM t;
ALTER TABLE u ADD PRIMARY KEY (k);
SET learnedbtree.btree_indexes = 'all';
INSERT INTO t SELECT g * 3 + 1 FROM generate_series(1, 1000) g;
INSERT INTO u SELECT k FROM t ON CONFLICT DO NOTHING;
SET enable_seqscan = off;

DO $$
DECLARE
	found bigint;
	model record;
BEGIN
	SELECT sum((SELECT count(*) FROM t WHERE k = g)) INTO found FROM generate_series(1, 6000) g;
	ASSERT found = 3000, format('%s of 3000 keys found', found);
	model := learnedbtree_model('t_k');
	ASSERT model.state = 'ready', format('model is %s: %s', model.state, model.reason);
	SELECT sum((SELECT count(*) FROM u WHERE k = g)) INTO found FROM generate_series(1, 6000) g;
	ASSERT found = 3000, format('%s of 3000 keys found by a served index', found);
	model := learnedbtree_model('u_pkey');
	ASSERT model.state = 'ready', format('model of a served index is %s: %s', model.state, model.reason);
END $$;

DROP EXTENSION learnedbtree CASCADE;
