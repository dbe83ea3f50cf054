# HypoPG beside learnedbtree, loaded before it and after it: hypothetical btree indexes do not disturb a real index of
# ours, which keeps its own costs, and our access method is refused by name.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('hypopg');
my $share = $node->config_data('--sharedir');
plan skip_all => 'HypoPG is not installed' unless -e "$share/extension/hypopg.control";

$node->init;
configure_node($node);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION hypopg; CREATE TABLE t (k int, v int); '
	  . 'INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i; CREATE INDEX t_k ON t USING learnedbtree (k)');
$node->safe_psql('postgres', 'VACUUM ANALYZE t');

# Index and startup cost of a lookup, as the last line of what a session says after these commands.
sub lookup_plan
{
	my ($before) = @_;
	my $plan = $node->safe_psql('postgres',
		"SET enable_seqscan = off; SET enable_bitmapscan = off; SET cpu_operator_cost = 1; $before; "
		  . 'EXPLAIN SELECT v FROM t WHERE k = 77');
	return $plan =~ /using (\S+) on t\s+\(cost=([0-9.]+)\.\./ ? ($1, $2) : ($plan, 0);
}

my $make = "SELECT FROM hypopg_create_index('CREATE INDEX ON t (k)')";
my $ours = "SELECT FROM hypopg_create_index('CREATE INDEX ON t USING learnedbtree (k)')";

foreach my $order ('learnedbtree,hypopg', 'hypopg,learnedbtree')
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$order'\n");
	$node->restart;
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT v FROM t WHERE k = 77'), '77', "$order: a lookup");
	is(model_state($node, 't_k'), 'ready', "$order: there is a model");

	my ($index, $cost) = lookup_plan('SELECT');
	is($index, 't_k', "$order: the index is used");
	my ($hypothetical, $hypothetical_cost) = lookup_plan($make);
	like($hypothetical, qr/btree_t_k/, "$order: a hypothetical btree looks cheaper");
	is($cost - $hypothetical_cost, 100, "$order: by the two pages of a descent, as it is charged none");
	is(($node->psql('postgres', "$make; SET enable_seqscan = off; SELECT v FROM t WHERE k = 78"))[1], '78',
		"$order: execution does not know of it");
	is((lookup_plan("$make; SELECT hypopg_reset()"))[0], 't_k', "$order: nor do plans after a reset");
	is((lookup_plan("$make; SET learnedbtree.enable = off"))[1], $hypothetical_cost, "$order: its cost is the same without us");

	my ($rc, $out, $err) = $node->psql('postgres', $ours);
	isnt($rc, 0, "$order: no hypothetical index of ours");
	like($err, qr/access method "learnedbtree" is not supported/, "$order: by name");
	is($node->safe_psql('postgres', "DO \$\$ BEGIN PERFORM hypopg_create_index('CREATE INDEX ON t USING learnedbtree (k)'); "
			  . 'EXCEPTION WHEN OTHERS THEN NULL; END $$; SELECT count(*) FROM hypopg()'), '0', "$order: and nothing is left of it");

  SKIP:
	{
		skip 'this version of HypoPG hides no indexes', 1
		  if $node->safe_psql('postgres', "SELECT count(*) FROM pg_proc WHERE proname = 'hypopg_hide_index'") eq '0';
		unlike((lookup_plan("SELECT hypopg_hide_index('t_k'::regclass)"))[0], qr/^t_k$/, "$order: our index can be hidden");
	}
}

$node->stop;
done_testing();
