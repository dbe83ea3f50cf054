# A real pg_upgrade from an older server to the one under test: indexes, operator classes and answers survive, and models
# are trained on the old files.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Upgrade;

my $new = PostgreSQL::Test::Cluster->new('new');
my $reason = no_upgrade($new);
plan skip_all => $reason if $reason;

my $old = start_old_node();
$old->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION citext;
CREATE TABLE t (k int8, a int4, x text, c citext);
INSERT INTO t SELECT g, g % 100, 'row ' || g, 'Row ' || g FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 30);
CREATE INDEX t_ak ON t USING learnedbtree (a DESC NULLS LAST, k) INCLUDE (x);
CREATE INDEX t_x ON t USING learnedbtree (x text_pattern_ops);
CREATE INDEX t_c ON t USING learnedbtree (c);
CREATE UNIQUE INDEX t_part ON t USING learnedbtree (k) WHERE a > 5;
CREATE INDEX t_expr ON t USING learnedbtree ((k * 2));
DELETE FROM t WHERE k BETWEEN 5000 AND 7000;
VACUUM t;
INSERT INTO t SELECT g, g % 100, 'new ' || g, 'New ' || g FROM generate_series(20001, 22000) g;
SQL

my $definitions = q{SELECT c.relname, pg_get_indexdef(c.oid), c.reloptions, pg_relation_size(c.oid), i.indisvalid FROM pg_class c
	JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid WHERE a.amname = 'learnedbtree' ORDER BY 1};
my $answers = <<'SQL';
SET enable_seqscan = off;
SELECT (SELECT sum((SELECT count(*) FROM t WHERE k = g * 3)) FROM generate_series(7400, 1, -1) g),
	(SELECT concat_ws(' ', count(*), sum(k)) FROM t WHERE k BETWEEN 4900 AND 7100),
	(SELECT string_agg(k::text, ',') FROM (SELECT k FROM t WHERE k < 7100 ORDER BY k DESC LIMIT 120) q),
	(SELECT count(*) FROM t WHERE a = 7 AND k > 10000), (SELECT count(*) FROM t WHERE x LIKE 'row 12%'),
	(SELECT count(*) FROM t WHERE c = 'ROW 77'), (SELECT count(*) FROM t WHERE k * 2 = 444);
SQL
my ($definitions_before, $answers_before) = map { $old->safe_psql('postgres', $_) } ($definitions, $answers);
upgrade($old, $new);

is($new->safe_psql('postgres', $definitions), $definitions_before, 'the indexes are the same, and on the same files');
is(model_state($new, 't_k'), 'untrained', 'models stay behind');
is($new->safe_psql('postgres', $answers), $answers_before, 'the answers are the same');
like(model_state($new, 't_k'), qr/^(ready|not paying)$/, 'the first lookup made a model on the old file');
# That model is the saved one from before the last changes; the worker makes a true one.
wait_until($new, "SELECT source = 'training' FROM learnedbtree_model('t_k')");
$new->safe_psql('postgres', "SELECT learnedbtree_stat_reset('t_k')");
is($new->safe_psql('postgres', $answers), $answers_before, 'the answers are the same by a new model');
is(stat_of($new, 't_k', 'verified > 1000 AND verified >= lookups * 0.9'), 't', 'lookups went by prediction')
  or diag(stat_of($new, 't_k', 'learnedbtree_stat'));
$new->safe_psql('postgres', 'CREATE EXTENSION amcheck');
foreach my $index (qw(t_k t_ak t_x t_c t_part t_expr))
{
	is($new->psql('postgres', check_sql($index)), 0, "amcheck is content with $index");
}
is($new->safe_psql('postgres', 'INSERT INTO t SELECT g FROM generate_series(5000, 6000) g; SET enable_seqscan = off; '
	  . 'SELECT count(*) FROM t WHERE k BETWEEN 5000 AND 7000'), '1001', 'the indexes take inserts');
is($new->safe_psql('postgres', 'REINDEX INDEX t_k; CREATE INDEX t_new ON t USING learnedbtree (x, c); '
	  . "SELECT state FROM learnedbtree_model('t_k')"), 'ready', 'they can be rebuilt, and new ones made');
isnt($new->psql('postgres', 'DROP EXTENSION learnedbtree'), 0, 'the extension is needed by the indexes');
is($new->psql('postgres', 'DROP EXTENSION learnedbtree CASCADE'), 0, 'and goes with them');

$new->stop;
done_testing();
