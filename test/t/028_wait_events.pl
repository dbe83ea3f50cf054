# What pg_stat_activity says that our processes, and those that train, wait for.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('events');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', "learnedbtree.naptime = 50ms\nlearnedbtree.retrain_visits = 1\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE t (k int8);
INSERT INTO t SELECT g * 1000 FROM generate_series(1, 50000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
INSERT INTO t SELECT g FROM generate_series(1, 2000) g;
SQL

# Below 17 all modules share one name.
sub event { return $node->pg_version < 17 ? 'Extension' : $_[0]; }

sub waits
{
	my ($who, $event, $what) = @_;
	wait_until($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE $who AND wait_event_type = 'Extension' AND wait_event = '$event'");
	pass($what);
}

# (It ends soon when there are none: then it is asked for again.)
ok(eventually($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker' AND wait_event_type = 'Extension' AND wait_event = '"
		  . event('LearnedBtreeWorkerMain') . "'", again => sub { $node->safe_psql('postgres', 'INSERT INTO t SELECT random() * 50000000 FROM generate_series(1, 2000)') }),
	'the worker waits for demands');

my $trainer = $node->background_psql('postgres', on_error_stop => 0);
$trainer->query_until(qr/started/, <<'SQL');
\echo started
DO $$ BEGIN LOOP PERFORM learnedbtree_train('t_k'); END LOOP; END $$;
SQL
waits("query LIKE 'DO %'", event('LearnedBtreeTrain'), 'a session is training');
is($node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'"), 't', 'which is cancelled');
wait_until($node, "SELECT state = 'idle' AND wait_event = 'ClientRead' FROM pg_stat_activity WHERE query LIKE 'DO %'");
pass('and then waits for its client');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '" . event('LearnedBtreeTrain') . "' AND state IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'"),
	'0', 'nobody else is said to');
$trainer->quit;

if ($node->pg_version >= 17)
{
	is($node->safe_psql('postgres', "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_wait_events WHERE type = 'Extension' AND name LIKE 'Learned%'"),
		'LearnedBtreeTrain LearnedBtreeWorkerMain', 'the server lists the events');
}

$node->stop;
done_testing();
