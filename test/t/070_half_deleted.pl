# A page of level 1 that VACUUM has begun to delete, with the last of its leaves: what it had belongs to its right neighbour's
# first leaf already, but nothing on the page says so.  Training walks over it, and must not take its high key for that
# leaf's low bound.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('whole', has_archiving => 1, allows_streaming => 1);
my $same = '-9223372036854775807';
sub value { return $primary->safe_psql('postgres', $_[0]) }

# The first tuple below each page of level 1, by column c, in order; the pages' high keys say it.
value('CREATE EXTENSION pageinspect');
my $bounds = <<'SQL';
WITH RECURSIVE page(block, next) AS (
    SELECT p.b, (s).btpo_next FROM (SELECT b, bt_page_stats('d_i', b) AS s FROM generate_series(1, pg_relation_size('d_i') / 8192 - 1) b) p
     WHERE (s).btpo_level = 1 AND (s).btpo_prev = 0
    UNION ALL SELECT next::bigint, (bt_page_stats('d_i', next)).btpo_next FROM page WHERE next <> 0)
SELECT d.c FROM page, LATERAL bt_page_items('d_i', next) i, LATERAL (SELECT (i.ctid::text::point)[0]::bigint AS leaf) l,
       LATERAL bt_page_items('d_i', l.leaf) e, d
 WHERE next <> 0 AND i.itemoffset = CASE WHEN (bt_page_stats('d_i', next)).btpo_next = 0 THEN 1 ELSE 2 END
   AND e.itemoffset = 2 AND d.ctid = coalesce(e.htid, e.ctid) ORDER BY d.c
SQL

# All alike: where do the second and the third page of level 1 begin?
value('CREATE TABLE d (a int8, b int, c int); INSERT INTO d SELECT 0, 1, c FROM generate_series(1, 20000) c; '
	  . 'CREATE INDEX d_i ON d (a, b, c) WITH (fillfactor = 10)');
my ($second, $third) = split /\n/, value($bounds);

# Now the second one begins within the keys (a, 100, ...), and the third with (a, 300): that separator is truncated.  Only its
# first leaf has some of the same a.  Others' are far apart, so codes tell these, and no more.
my $apart = 'c * 96000000000000 + c * 96000000000000';
value("DROP TABLE d; CREATE TABLE d (a int8, b int, c int); INSERT INTO d SELECT CASE WHEN c < $third + 10 THEN $same ELSE $same + $apart END, "
	  . "CASE WHEN c < $second - 10 THEN 1 WHEN c < $second + 10 THEN 100 WHEN c < $third THEN 200 ELSE 300 END, c FROM generate_series(1, 95000) c; "
	  . 'CREATE INDEX d_i ON d (a, b, c) WITH (fillfactor = 10)');
is(value($bounds) =~ s/\n.*//sr, $second, 'the second page begins there still');

# The second page goes, but for its last leaf; then that.
value('VACUUM d');
value("DELETE FROM d WHERE c BETWEEN $second AND $third - 2");
value('VACUUM (INDEX_CLEANUP on, TRUNCATE off) d');
value("DELETE FROM d WHERE c = $third - 1");
$primary->backup('base');
my $from = value('SELECT pg_current_wal_insert_lsn()');
value('VACUUM (INDEX_CLEANUP on, TRUNCATE off) d');
my $to = value('SELECT pg_switch_wal()');
my $dump = $primary->config_data('--bindir') . '/pg_waldump';
my @records = grep { /MARK_PAGE_HALFDEAD/ } split /\n/, qx{'$dump' -p '@{[ $primary->data_dir ]}/pg_wal' -r Btree -s $from -e $to};
is(scalar(@records), 1, 'one leaf was deleted, in two stages') or diag(join "\n", @records);
my ($stage) = $records[0] =~ /lsn: ([0-9A-F\/]+)/;

my $node = PostgreSQL::Test::Cluster->new('between');
$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
$node->append_conf('postgresql.conf', "recovery_target_lsn = '$stage'\nrecovery_target_action = promote\nsession_preload_libraries = 'learnedbtree'\n"
	  . "learnedbtree.autotrain = off\nlearnedbtree.max_model_memory = 64kB\nlearnedbtree.min_leaves = 0\nlearnedbtree.btree_indexes = all\n");
$node->start;
wait_until($node, 'SELECT NOT pg_is_in_recovery()');

my $low = $second - 6;
$node->safe_psql('postgres', "INSERT INTO d SELECT $same, 100, c FROM generate_series($second, $second + 5) c");
is($node->safe_psql('postgres', "SELECT state, m.separator_bytes FROM learnedbtree_train('d_i'), learnedbtree_model('d_i') m"), 'ready|0', 'codes decide');
foreach my $condition ("b = 100 AND c > $low", "b = 100 AND c >= $low", "b = 100 AND c <= $low + 8", "b > 1", "b = 100", "b = 300", "b < 300")
{
	foreach my $order ('a, b, c', 'a DESC, b DESC, c DESC')
	{
		my $query = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SELECT c FROM d WHERE a = $same AND $condition ORDER BY $order";
		foreach my $cache ('on', 'off')
		{
			is($node->safe_psql('postgres', "SET learnedbtree.enable_leaf_cache = $cache; $query"), $node->safe_psql('postgres', "SET learnedbtree.enable = off; $query"),
				"$condition, $order, leaf cache $cache");
		}
	}
}
is(stat_of($node, 'd_i', 'verified > 0'), 't', 'lookups went by the model');
$node->stop;
$primary->stop;
done_testing();
