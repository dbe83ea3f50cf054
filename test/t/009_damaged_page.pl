# A predicted page that is damaged: the error that nbtree gives, never a crash; other keys are still found.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('damaged');
$node->safe_psql('postgres', 'CREATE TABLE t (k int8); INSERT INTO t SELECT g FROM generate_series(1, 20000) g; '
	  . 'CREATE INDEX t_k ON t USING learnedbtree (k); CHECKPOINT');
my $block = leaf_of($node, 't_k', 7000);
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_k')");
my $lookup = 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE k =';
$node->stop;

open(my $fh, '+<', $file) or die "$file: $!";
binmode $fh;
seek($fh, $block * 8192, 0);
print $fh "\0" x 8192;
close $fh;

$node->start;
# A saved model proves a leaf by its left sibling, if that is in memory.
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM t WHERE k BETWEEN 14000 AND 15000; $lookup 15000"), "1001\n1", 'a key on another leaf is found');
foreach my $enable ('off', 'on')
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET learnedbtree.enable = $enable; $lookup 7000");
	isnt($rc, 0, "enable = $enable: the lookup fails");
	like($err, qr/index "t_k" contains unexpected zero page at block $block/, 'with the error of nbtree');
}
# The session tells so when it ends, which may be after its client.
ok($node->poll_query_until('postgres', 'SELECT verified > 0 AND fallback_page > 0 FROM learnedbtree_stat'),
	'the page was met by prediction');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '20000', 'the server lives');

$node->stop;
done_testing();
