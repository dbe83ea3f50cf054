# Models that are slower than descents though they predict right: found by the clock, given up, and tried again.
#
# learnedbtree.debug_lookup_delay makes those lookups slow that are timed.  No time is compared here but by the extension, and
# that only with a delay that no descent comes near.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('clock');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
max_parallel_workers_per_gather = 0
enable_hashjoin = off
enable_mergejoin = off
enable_memoize = off
enable_material = off
enable_seqscan = off
enable_bitmapscan = off
learnedbtree.autotrain = off
learnedbtree.lookahead_rows = 0
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE t (k int8, n numeric);
INSERT INTO t SELECT g * 1000, g * 1.5 FROM generate_series(1, 200000) g;
CREATE INDEX t_k ON t USING learnedbtree (k);
CREATE INDEX t_n ON t USING learnedbtree (n);
CREATE TABLE probe (k int8, n numeric);
INSERT INTO probe SELECT k, n FROM (SELECT t.*, hashint8(k) AS h FROM t) q ORDER BY h;
VACUUM ANALYZE t, probe;
SQL

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub model_of { return sql("SELECT $_[1] FROM learnedbtree_model('$_[0]')"); }
sub retrain { sql("SELECT learnedbtree_train('t_$_') FROM learnedbtree_stat_reset('t_$_')") foreach @_; }

# 800,000 lookups of a column in one session, with this delay; each gives its row.
sub look_up
{
	my ($column, $delay) = @_;
	my $once = "SELECT count(*) FROM probe p JOIN t ON t.$column = p.$column;";
	my $counts = sql("LOAD 'learnedbtree'; SET learnedbtree.debug_lookup_delay = $delay;" . $once x 4);
	is($counts, join("\n", (200000) x 4), "$column, delay $delay: answers");
	return;
}

foreach my $column (qw(k n))
{
	my $index = "t_$column";

	retrain($column);
	is(model_of($index, 'model_us IS NULL AND descent_us IS NULL'), 't', "$index: nothing is timed at first");
	look_up($column, 0);
	is(stat_of($node, $index, 'lookups = 800000 AND verified = lookups AND moved_right = 0'), 't', 'all predictions are right');
	is(model_of($index, 'lookups_since = 800000 AND model_us > 0 AND descent_us > 0'), 't', 'both ways have been timed');

	retrain($column);
	look_up($column, 1000);
	is(model_state($node, $index), 'not paying', 'the same with a delay: the model is given up');
	like(model_of($index, 'reason'), qr/^by the clock: a lookup takes 100\.00 us through the model, and [\d.]+ us by a descent/,
		'with the reason');
	is(model_of($index, 'fallbacks_since = 0 AND moved_since = 0 AND model_us > descent_us'), 't', 'though all predictions were right');
	is(stat_of($node, $index, 'lookups BETWEEN 100000 AND 799999 AND verified >= lookups - 1 AND lookups + delegated = 800000'),
		't', 'within the statement, which went on as by btree');

	sql("SELECT learnedbtree_stat_reset('$index')");
	look_up($column, 0);
	is(stat_of($node, $index, 'lookups'), '0', 'and so do those that follow');

	retrain($column);
	is(model_of($index, 'state, model_us IS NULL'), 'ready|t', 'a training gives it another chance');
	look_up($column, 0);
	is(model_state($node, $index), 'ready', 'which it uses');
}

# Without parts of the prediction a session's lookups say nothing of the others'.
retrain('k');
sql('SET learnedbtree.enable_buffer_hint = off; SET learnedbtree.debug_lookup_delay = 1000;'
	  . 'SELECT count(*) FROM probe p JOIN t USING (k);' x 4);
is(model_of('t_k', 'state, model_us IS NULL'), 'ready|t', 'sessions that have turned hints off time nothing');

$node->stop;
done_testing();
