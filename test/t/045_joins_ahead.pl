# Random joins over served indexes give the same answers whether nested loops look ahead by 1, 2, 7 or 64 rows or not at
# all, with little work_mem and with enough, as they give by btree.  Queries are made from a fixed seed (LBT_SEED), so many
# of each shape (LBT_JOINS); shared buffers are too few for the tables, some pages are not all-visible, some rows deleted.
# And no lock is waited for that the plan does not need.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Joins;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $seed = $ENV{LBT_SEED} || 20261122;
my $of_each = $ENV{LBT_JOINS} || 6;
my $node_name = 'Learned Look-Ahead';

my $node = PostgreSQL::Test::Cluster->new('joins_ahead');
$node->init;
configure_serving($node);
$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 4MB
learnedbtree.naptime = 1h
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
make_join_tables($node);

# ---- the same answers ----

# [shape, settings, SQL, whether it is one query]
my @asked = random_joins($seed, $of_each);

# What a session answers to each query.  Before $sql, which holds for all of them; nothing may be said on stderr but of
# failures, which belong to the answer.
sub answers
{
	my ($sql, $what) = @_;
	my $script = "\\set VERBOSITY terse\n";
	foreach my $number (0 .. $#asked)
	{
		my (undef, $settings, $query) = @{ $asked[$number] };
		$script .= "RESET ALL;\n$sql$settings\\echo ---- $number\n" . $what->($number, $query) . ";\n\\echo\n";
	}
	my ($rc, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0);
	my @found = split /^---- \d+\n/m, $out;
	shift @found;
	return (\@found, $err);
}

my $serving = "SET learnedbtree.btree_indexes = 'all';\n";
my $as_it_is = sub { return $_[1] };
my ($expected, $errors) = answers("SET learnedbtree.btree_indexes = 'none';\n", $as_it_is);
is($errors, '', 'all queries are such as the server takes');
is(scalar @$expected, scalar @asked, 'and each has an answer');
my $empty = grep { /\A(0\|)?\s*\z/ } @$expected;
cmp_ok($empty, '<', @asked / 3, 'most of which are of some rows');

foreach my $rows (0, 1, 2, 7, 64)
{
	foreach my $memory ('64kB', '4MB')
	{
		my ($found, $wrong) = answers("${serving}SET learnedbtree.lookahead_rows = $rows;\nSET work_mem = '$memory';\n", $as_it_is);
		my @different = grep { ($found->[$_] // '') ne $expected->[$_] } 0 .. $#asked;
		is($wrong, '', "lookahead_rows $rows, work_mem $memory: no errors");
		is(scalar @different, 0, "lookahead_rows $rows, work_mem $memory: the same answers");
		foreach my $number (@different[ 0 .. ($#different < 2 ? $#different : 2) ])
		{
			diag("$asked[$number][0]: $asked[$number][1]$asked[$number][2]\nby btree:\n$expected->[$number]by the model:\n$found->[$number]");
		}
	}
}

# ---- by looking ahead ----

# The queries' plans, executed.
my ($plans) = answers("${serving}SET learnedbtree.lookahead_rows = 64;\n",
	sub { return $asked[ $_[0] ][3] ? "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) $_[1]" : 'SELECT 1' });
my %seen;
foreach my $plan (@$plans)
{
	$seen{plans}++ if $plan =~ /\Q$node_name\E/;
	$seen{parallel}++ if $plan =~ /Gather.*\Q$node_name\E/s;
	my $kind = '';
	foreach my $line (split /\n/, $plan)
	{
		$kind = $1 if $line =~ /(Nested Loop[\w ]*?) +\(/;
		$seen{$kind}++ if $line =~ /\Q$node_name\E/;
		$seen{'rows predicted'} += $1 if $line =~ /Rows Predicted: (\d+)/;
		$seen{'long batches'}++ if $line =~ /Batches: (\d+)/ && $1 > 3;
	}
}
note(join(', ', map { "$_: $seen{$_}" } sort keys %seen));
cmp_ok($seen{plans} // 0, '>', $of_each * 2, "$node_name: in many plans");
cmp_ok($seen{'rows predicted'} // 0, '>', 50 * $of_each, "$node_name: rows were predicted");
foreach my $what ('Nested Loop', 'Nested Loop Left Join', 'parallel', 'long batches')
{
	cmp_ok($seen{$what} // 0, '>', 0, "$node_name: $what");
}
is(amcheck_all($node, 'postgres'), '', 'the indexes are sound');

# ---- a partition that the executor has pruned ----

# Rows are routed there, but nobody scans it: no lock of its index is waited for.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE parted (k int) PARTITION BY RANGE (k);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (50000);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (50000) TO (100000);
INSERT INTO parted SELECT generate_series(0, 99999);
CREATE INDEX ON parted (k);
CREATE TABLE asks AS SELECT g * 7919 % 100000 AS k FROM generate_series(1, 2000) g;
VACUUM ANALYZE parted, asks;
SQL
my $asker = $node->background_psql('postgres', on_error_stop => 0);
$asker->query_safe(<<"SQL");
SET learnedbtree.btree_indexes = 'all';
SET plan_cache_mode = force_generic_plan;
SET lock_timeout = '2s';
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET enable_bitmapscan = off;
PREPARE ask(int) AS SELECT count(*) FROM asks LEFT JOIN parted ON parted.k = asks.k AND parted.k >= \$1;
SQL
like($asker->query_safe('EXPLAIN (COSTS OFF) EXECUTE ask(60000)'), qr/\Q$node_name\E.*Subplans Removed: 1/s, 'a partition is pruned, the other one is joined ahead');
is($asker->query_safe('EXECUTE ask(60000)'), '2000', 'all rows come');
my $holder = $node->background_psql('postgres', on_error_stop => 1);
$holder->query_safe("BEGIN; REINDEX INDEX parted_low_k_idx");
my ($answer) = $asker->query('EXECUTE ask(60000)');
is($answer, '2000', "all rows come while the pruned partition's index is locked") or diag($asker->{stderr});
$holder->query_safe('COMMIT');
$_->quit foreach $holder, $asker;
done_testing();
