# A streaming standby reads through a model of its own while the primary inserts, splits, deletes, vacuums.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
configure_node($primary);
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (k int8, bk int8);
INSERT INTO t SELECT g * 100, g * 100 FROM generate_series(1, 10000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
CREATE INDEX t_bk ON t USING btree (bk);
VACUUM ANALYZE t;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = -1\n");
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));

# The same question by both indexes within one snapshot; true if the answers are the same.
sub question
{
	my ($from) = @_;
	my @answers = map {
		"concat_ws(' ', (SELECT sum((SELECT count(*) FROM t WHERE $_ = $from + g * 700)) FROM generate_series(1, 100) g), "
		  . "(SELECT string_agg(r::text, ',') FROM (SELECT $_ AS r FROM t WHERE $_ >= $from ORDER BY $_ LIMIT 200) q), "
		  . "(SELECT string_agg(r::text, ',') FROM (SELECT $_ AS r FROM t WHERE $_ < $from ORDER BY $_ DESC LIMIT 200) q))"
	} qw(k bk);
	return "SELECT $answers[0] = $answers[1]";
}

my $reader = $standby->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;');
is($reader->query_safe("SELECT state FROM learnedbtree_model('t_k')"), 'untrained', 'the standby starts without a model');

my $writer = $primary->background_psql('postgres', on_error_stop => 0);
$writer->query_until(qr/started/, <<'SQL');
\echo started
DO $$ BEGIN FOR i IN 1..60 LOOP
	INSERT INTO t SELECT x, x FROM (SELECT (i * 17321 + g) % 1000000 AS x FROM generate_series(1, 400) g) q;
	COMMIT;
	DELETE FROM t WHERE k BETWEEN (i * 31123) % 1000000 AND (i * 31123) % 1000000 + 15000;
	COMMIT;
	PERFORM pg_sleep(0.05);
END LOOP; END $$;
SQL
my ($asked, $wrong, %counts) = (0, 0);
for (my $round = 1; $round <= 60 || (keys %counts < 3 && $round <= 1000); $round++)
{
	$wrong++ if $reader->query_safe(question(($round * 15013) % 1000000)) ne 't';
	$counts{ $reader->query_safe('SET enable_seqscan = on; SELECT count(*) FROM t; SET enable_seqscan = off') }++;
	$primary->safe_psql('postgres', 'VACUUM t') if $round % 6 == 0;
	$asked++;
}
is($wrong, 0, "the standby's $asked answers were the same by both indexes");
cmp_ok(scalar keys %counts, '>=', 3, 'while its table changed');
is($reader->query_safe("SELECT state FROM learnedbtree_model('t_k')"), 'ready', 'it has a model of its own');
note($reader->query_safe("SELECT s::text FROM learnedbtree_stat s"));
is($reader->query_safe("SELECT verified > 1000 AND verified > lookups / 2 FROM learnedbtree_stat WHERE indexrelname = 't_k'"),
	't', 'its lookups went by prediction');
$writer->query('SELECT 1');
is($writer->{stderr}, '', 'the writer came to its end');
$writer->quit;

# Pages deleted and used again on the primary, under the standby's old model.
$primary->safe_psql('postgres', 'DELETE FROM t WHERE k < 400000');
$primary->safe_psql('postgres', 'VACUUM t') for 1 .. 3;
$primary->safe_psql('postgres', 'INSERT INTO t SELECT g, g FROM generate_series(700000, 740000) g');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($reader->query_safe(question($_)), 't', "after reuse of pages, from $_") for (300000, 400000, 720000);

$reader->query_safe("SELECT learnedbtree_stat_reset('t_k')");
is($reader->query_safe("SELECT lookups FROM learnedbtree_stat WHERE indexrelname = 't_k'"), '0', 'counts can be reset on the standby');

# Replay tells nobody that REINDEX CONCURRENTLY has dropped an index: the worker finds out.
for my $round (1 .. 3)
{
	$primary->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_k');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is($reader->query_safe(question(600000 + $round)), 't', "after REINDEX CONCURRENTLY, round $round");
}
wait_until($standby, 'SELECT learnedbtree_model_memory() = sum((learnedbtree_model(indexrelid)).bytes) FROM learnedbtree_stat');
pass('models of indexes that replay has dropped are forgotten');

$standby->promote;
wait_until($standby, 'SELECT NOT pg_is_in_recovery()');
$standby->safe_psql('postgres', 'INSERT INTO t SELECT g, g FROM generate_series(100000, 120000) g; DELETE FROM t WHERE k BETWEEN 700000 AND 710000; VACUUM t');
is($reader->query_safe(question($_)), 't', "after promotion, from $_") for (110000, 705000, 730000);
is($standby->psql('postgres', check_sql('t_k')), 0, 'amcheck is content after promotion');
$standby->safe_psql('postgres', "SELECT learnedbtree_train('t_k')");
is($reader->query_safe(question(500000)), 't', 'after training on the new primary');
$reader->quit;

$standby->stop;
$primary->stop;
done_testing();
