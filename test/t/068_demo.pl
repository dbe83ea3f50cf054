# The queries of "make demo", with few keys: what they ask of the extension is there, and both tables come out.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $sql = "$FindBin::RealBin/../../bench/demo_sql";
my $node = PostgreSQL::Test::Cluster->new('demo');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\nautovacuum = off\n"
	  . join '', map { "enable_$_ = off\n" } qw(hashjoin mergejoin material memoize bitmapscan));
$node->start;

sub rows { return split /\n/, $node->safe_psql('postgres', $_[0]) }

$node->safe_psql('postgres', slurp_file("$sql/measure.sql"));
$node->safe_psql('postgres', 'CALL load_random(20000)');
$node->safe_psql('postgres', "CALL load_$_(20000)") foreach qw(sizes times);
my @sets = rows('SELECT name FROM key_set ORDER BY ordinal');
cmp_ok(scalar @sets, '>', 2, 'there are sets of keys');
foreach my $set (@sets)
{
	$node->safe_psql('postgres', "VACUUM (ANALYZE) keys_$set");
	$node->safe_psql('postgres', "CALL make_probes('$set', 200)");
	$node->safe_psql('postgres', "VACUUM (ANALYZE) $_") foreach "probe_$set", "probe_sorted_$set";
	$node->safe_psql('postgres', "CALL build('$set')");
	foreach my $lookup (rows("SELECT ordinal FROM lookup WHERE coalesce(of_set, '$set') = '$set' ORDER BY ordinal"))
	{
		$node->safe_psql('postgres', "CALL measure('$set', $lookup)");
		$node->safe_psql('postgres', "CALL note_figures('$set')") if $lookup == 4;
	}
}
my $report = $node->safe_psql('postgres', slurp_file("$sql/report.sql"));
my ($lookups) = rows('SELECT count(DISTINCT (name, lookup)) FROM sample');
is(scalar(() = $report =~ / x$/mg), $lookups, 'each lookup is compared');
is(scalar(() = $report =~ / %$/mg), scalar @sets, 'and each set has figures of its model');

$node->stop;
done_testing();
