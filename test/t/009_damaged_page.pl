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
change_page($file, $block, "\0" x 8192);
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

# An old model names a leaf that has split, or was deleted, since: where only that one is damaged, other keys are none the worse.
$node = new_node('outdated', conf => "shared_buffers = 2MB\nautovacuum = off\nlearnedbtree.autotrain = off\nsession_preload_libraries = 'learnedbtree'\n");
my $served = "SET learnedbtree.btree_indexes = 'all'; SET learnedbtree.min_leaves = 0; SET enable_seqscan = off; SET enable_bitmapscan = off; ";
my $btree = "SET learnedbtree.btree_indexes = 'none'; SET enable_seqscan = off; SET enable_bitmapscan = off; ";
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION pageinspect; CREATE EXTENSION pg_buffercache; CREATE EXTENSION pg_prewarm;
CREATE TABLE large AS SELECT repeat('x', 500) FROM generate_series(1, 10000);
CREATE TABLE t (k int8); INSERT INTO t SELECT g * 1000 FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t (k);
$served SELECT learnedbtree_train('t_k');
SQL
$block = leaf_of($node, 't_k', 7000000);
my ($low, $high) = split /\|/, $node->safe_psql('postgres',
	"SELECT min(k), max(k) FROM t WHERE ctid IN (SELECT htid FROM bt_page_items('t_k', $block) WHERE itemoffset > 1)");
$node->safe_psql('postgres', "INSERT INTO t SELECT $low + g FROM generate_series(1, 300) g");
isnt(leaf_of($node, 't_k', $high), $block, 'the leaf has split');
$node->safe_psql('postgres', 'CHECKPOINT');
wait_until($node, "SELECT pg_prewarm('large') > 0 AND NOT EXISTS (SELECT FROM pg_buffercache "
	  . "WHERE relfilenode = pg_relation_filenode('t_k') AND relforknumber = 0 AND relblocknumber = $block)");
$file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_k')");
my $good = change_page($file, $block, "\xA5" x 8192);
foreach my $by ($btree, $served)
{
	my $who = $by eq $served ? 'served' : 'btree';
	is($node->safe_psql('postgres', "$by SELECT k FROM t WHERE k = $high"), $high, "$who: a key that has moved is found");
	is($node->safe_psql('postgres', "$by INSERT INTO t VALUES ($high - 7) RETURNING k"), $high - 7, "$who: ... and one inserted beside it");
	is($node->safe_psql('postgres', "$by SELECT count(*) FROM large, LATERAL (SELECT FROM t WHERE k = $high LIMIT 1) t"), '10000', "$who: ... and a join's");
	is($node->safe_psql('postgres', "SET zero_damaged_pages = on; $by SELECT k FROM t WHERE k = $high"), $high, "$who: ... where pages may be zeroed");
	my ($rc, $out, $err) = $node->psql('postgres', "$by SELECT k FROM t WHERE k = $low");
	like($err, qr/invalid page in block $block/, "$who: one that was not has the error");
}
is($node->safe_psql('postgres', "SELECT trainings FROM learnedbtree_stat WHERE indexrelname = 't_k'"), '1', 'by the old model');
is(stat_of($node, 't_k', 'fallback_block > 0 AND inserts_fallback > 0'), 't', 'which led to the damaged page');
change_page($file, $block, $good);
is($node->safe_psql('postgres', "$served SELECT k FROM t WHERE k = $low"), $low, 'the page is back');
$node->stop;

# A sector of a level-1 page is zero, whose header and end are whole: a training reads all keys of it, a lookup of other leaves none.
$node = new_node('sector', conf => "autovacuum = off\nsession_preload_libraries = 'learnedbtree'\n",
	$node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
$node->safe_psql('postgres', 'CREATE EXTENSION pageinspect');
my @types = ('numeric' => "(g / 7.0)::numeric", 'char(9)' => 'g::text', 'text COLLATE "C"' => 'lpad(g::text, 9)', 'name' => 'lpad(g::text, 9)');
while (my ($type, $key) = splice(@types, 0, 2))
{
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS t; CREATE TABLE t (k $type); INSERT INTO t SELECT $key FROM generate_series(1, 20000) g; "
		  . 'CREATE INDEX t_k ON t (k) WITH (fillfactor = 10); CHECKPOINT');
	my $inner = $node->safe_psql('postgres', q{SELECT i FROM generate_series(1, pg_relation_size('t_k') / 8192 - 1) i, bt_page_stats('t_k', i) s
		WHERE s.type = 'i' ORDER BY i DESC LIMIT 1});
	my ($first) = $node->safe_psql('postgres', 'SELECT min(k) FROM t');
	$file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_k')");
	foreach my $at (8192 - 1024, 100, 'flag', $type eq 'name' ? 'circle' : ())
	{
		$node->stop;
		my $whole = change_page($file, $inner, "\0" x 8192);
		my $torn = $whole;
		if ($at eq 'flag')
		{
			# an item that denies to have keys of variable length
			my $info = (unpack('V', substr($whole, 24 + 4 * 5, 4)) & 0x7FFF) + 6;
			substr($torn, $info, 2) = pack('v', unpack('v', substr($whole, $info, 2)) & ~0x4000);
		}
		elsif ($at eq 'circle')
		{
			# deleted, and its own right sibling
			substr($torn, 8192 - 12, 4) = pack('V', $inner);
			substr($torn, 8192 - 4, 2) = pack('v', unpack('v', substr($torn, 8192 - 4, 2)) | 4);
		}
		else
		{
			substr($torn, $at, 512) = "\0" x 512;
		}
		change_page($file, $inner, $torn);
		$node->start;
		is($node->safe_psql('postgres', "$served SELECT learnedbtree_train('t_k'); SELECT count(*) FROM t WHERE k = '$first'"), "\n1",
			"$type, $at: the key of another page is found");
		is($node->safe_psql('postgres', "SELECT state FROM learnedbtree_model('t_k')"), 'damaged', "$type, $at: the page is noticed");
		$node->stop;
		change_page($file, $inner, $whole);
		$node->start;
	}
}
$node->stop;
done_testing();
