# Everything at once, by many clients: inserts (random, in batches, at hot spots, ascending), updates, deletes,
# lookups and ranges, VACUUM, REINDEX CONCURRENTLY, training.  Every answer is compared between learnedbtree
# and btree in one snapshot; afterwards nothing may be missing or there twice, by any index.
# LBT_TORTURE_SECONDS makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Torture;

my $seed = $ENV{LBT_SEED} || 20241103;
my $seconds = $ENV{LBT_TORTURE_SECONDS} || 8;
my $node = PostgreSQL::Test::Cluster->new('torture');
$node->init;
torture_conf($node);
$node->start;
torture_settings($node);
make_tables($node);

my $load = start_load($node, clients => 16, seconds => $seconds, seed => $seed,
	scripts => [ torture_scripts($node) ]);
# Rebuilt indexes begin with new counts: the last part of the run is for what is counted below.
my $rebuild = start_load($node, clients => 1, seconds => int($seconds * 0.6) + 1, seed => $seed,
	scripts => [ map { [ $_, 1, "REINDEX INDEX CONCURRENTLY $_;\n\\sleep 100 ms" ] } learned_indexes() ]);
ok(end_load($rebuild), 'indexes were rebuilt concurrently without errors') or diag($rebuild->{err});
ok(end_load($load), 'no errors and no wrong answers') or diag(substr($load->{err}, 0, 3000));
note(operations($load) . ' operations, seed ' . $seed);
note(join("\n", grep { /transactions|SQL script/ } split(/\n/, $_->{out}))) foreach $load, $rebuild;
# On a slow machine that part may have been short.
my $counted = "SELECT bool_and((learnedbtree_model(indexrelid)).state <> 'ready' OR lookups > 150 AND inserts > 150) AND (SELECT sum(conflicts) > 10 FROM done) "
  . 'FROM learnedbtree_stat';
for (my $more = 1; $more <= 10 && $node->safe_psql('postgres', $counted) ne 't'; $more++)
{
	my $again = start_load($node, clients => 16, seconds => int($seconds * 0.4) + 1, seed => $seed + $more,
		scripts => [ torture_scripts($node) ]);
	ok(end_load($again), "time $more again: no errors and no wrong answers") or diag(substr($again->{err}, 0, 3000));
}

is(faults($node, $seed), '', 'no key is lost or there twice, by any index');
is($node->safe_psql('postgres', 'SELECT sum(conflicts) > 10 FROM done'), 't',
	'keys that were there already were refused');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_index WHERE NOT indisvalid'), '0', 'all indexes are valid');
is(check_indexes($node), '', 'amcheck finds nothing wrong with the index files');
ok(memory_balanced($node), 'shared memory holds one model an index');

my @columns = qw(lookups verified moved_right fallback_block fallback_page fallback_low fallback_high delegated
  trainings);
push @columns, qw(inserts inserts_placed inserts_full inserts_equal inserts_fallback splits)
  if has_column($node, 'learnedbtree_stat', 'inserts_placed');
my $judged = 0;
foreach my $index (learned_indexes())
{
	my $state = model_state($node, $index);
	like($state, qr/^(?:ready|not paying)$/, "$index: it has a model, or one was of no use");
	next if $state ne 'ready';
	$judged++;
	note("$index: ", join(', ', map { "$_ " . stat_of($node, $index, $_) } @columns));
	is(stat_of($node, $index, 'lookups > 150 AND verified > lookups * 0.6'), 't',
		"$index: most lookups were predicted");
	is(stat_of($node, $index, 'inserts > 150 AND inserts_placed + inserts_full + inserts_equal > inserts * 0.6'), 't',
		"$index: most leaves for inserts were predicted") if has_column($node, 'learnedbtree_stat', 'inserts_placed');
}
cmp_ok($judged, '>=', 4, 'most have a model');

$node->stop;
is(unexpected_in_log($node, 0, qr/duplicate key value|could not serialize|deadlock detected/), '',
	'no other errors in the log');
done_testing();
