# What is not to be trusted of a page: that it is as a training found it, if it has changed while that training went on; marks
# of dead entries on a standby, where older snapshots may still see their rows; and the order of equal keys, and what
# separators say, in files of before PostgreSQL 12.  (By the shim in test/shim, and by edited files.)
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../shim";
use Failat;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

build_shim();
my $node = PostgreSQL::Test::Cluster->new('trusted');
$node->init(allows_streaming => 1, $node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
session_preload_libraries = 'learnedbtree'
maintenance_io_concurrency = 1
max_parallel_workers_per_gather = 0
enable_seqscan = off
enable_bitmapscan = off
enable_sort = off
learnedbtree.autotrain = off
learnedbtree.min_leaves = 0
learnedbtree.btree_indexes = 'all'
CONF
with_shim(sub { $node->start });
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION pageinspect');
declare_shim($node);

my $btree = "SET learnedbtree.btree_indexes = 'none';";
sub value { return $node->safe_psql('postgres', $_[0]) }

# A query's answer by the served index, and by btree.
sub same
{
	my ($query, $what) = @_;
	return is(value($query), value("$btree $query"), $what);
}

# ---- a page that has changed while the training went on ----

# Leaves, in the order of a build's blocks, by c of their first entries.
my $same = '-9223372036854775807';
my $leaves = q{SELECT d.c, block FROM generate_series(1, 30) block, bt_page_stats('d_i', block) s, bt_page_items('d_i', block) i, d
	WHERE s.type = 'l' AND i.itemoffset = 2 AND d.ctid = coalesce(i.htid, i.ctid) ORDER BY block};

# All alike: where do two leaves in the middle of a page of level 1 begin?
value('CREATE TABLE d (a int8, b int, c int); INSERT INTO d SELECT 0, 1, c FROM generate_series(1, 20000) c; '
	  . 'CREATE INDEX d_i ON d (a, b, c) WITH (fillfactor = 10)');
my @first = map { (split /\|/)[0] } split /\n/, value($leaves);
my ($k, $l) = @first[ 10, 11 ];

# Now the first of them begins within the keys (a, 100, ...), and the second with (a, 300): that separator is truncated.  Other
# keys are far apart, so codes tell these, and tie those of the same a: they lead to the last leaf that has some.
my $apart = 'c * 96000000000000 + c * 96000000000000';
value("DROP TABLE d; CREATE TABLE d (a int8, b int, c int); INSERT INTO d SELECT CASE WHEN c < $l + 10 THEN $same ELSE $same + $apart END, "
	  . "CASE WHEN c < $k - 10 THEN 1 WHEN c < $k + 10 THEN 100 WHEN c < $l THEN 200 ELSE 300 END, c FROM generate_series(1, 95000) c; "
	  . 'CREATE INDEX d_i ON d (a, b, c) WITH (fillfactor = 10)');
my @found = split /\n/, value($leaves);
is(join(' ', map { (split /\|/)[0] } @found[ 10, 11 ]), "$k $l", 'two leaves begin where they should');
my $emptied = (split /\|/, $found[10])[1];
my $last = value(q{SELECT b FROM generate_series(1, pg_relation_size('d_i') / 8192 - 1) b, bt_page_stats('d_i', b) s
	WHERE s.btpo_level = 1 AND s.btpo_next = 0});
cmp_ok($last, '>', $emptied + 1000, 'level 1 ends far behind them');
value('VACUUM d');
value("DELETE FROM d WHERE c BETWEEN $k AND $l - 1; ALTER SYSTEM SET learnedbtree.max_model_memory = '64kB'");
with_shim(sub { $node->restart });

# A training waits for the last page of level 1.  Meanwhile the first of the two leaves, which is empty, is deleted, and what it
# had of the keys goes to the second: new ones come there.  (VACUUM ends with the training, as it reads that page, too.)
my $file = value("SELECT pg_relation_filepath('d_i')");
value("SELECT failat_rule('read', '$file', $last, $last, 0)");
my $trainer = $node->background_psql('postgres');
$trainer->query_until(qr/begun/, "\\echo begun\nSELECT learnedbtree_train('d_i');\n");
wait_until($node, 'SELECT failat_hits() > 0');
my $vacuum = $node->background_psql('postgres');
$vacuum->query_until(qr/begun/, "\\echo begun\n$btree VACUUM (INDEX_CLEANUP on, TRUNCATE off) d;\n");
wait_until($node, "SELECT type = 'd' FROM bt_page_stats('d_i', $emptied)");
value("$btree INSERT INTO d SELECT $same, 100, c FROM generate_series($k, $k + 5) c");
is(value("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%learnedbtree_train(%' AND pid <> pg_backend_pid()"), 1,
	'a leaf has changed while a training went on');
value('SELECT failat_off()');
$trainer->query_safe('SELECT 1');
$vacuum->query_safe('SELECT 1');
$_->quit foreach $trainer, $vacuum;
is(value("SELECT state, separator_bytes FROM learnedbtree_model('d_i')"), 'ready|0', 'codes decide');
my $low = $k - 6;
foreach my $condition ('b = 100', "b = 100 AND c >= $low", "b = 100 AND c > $low", "b = 100 AND c < $k + 3", 'b > 1', 'b < 300', 'b IN (1, 100)')
{
	foreach my $order ('a, b, c', 'a DESC, b DESC, c DESC')
	{
		same("SELECT c FROM d WHERE a = $same AND $condition ORDER BY $order", "... $condition, $order: the same answer");
	}
}
is(stat_of($node, 'd_i', 'fallback_low + fallback_page > 0 AND trainings = 1'), 't', '... where that training leads, and what it knows proves nothing');
value('ALTER SYSTEM RESET learnedbtree.max_model_memory');

# ---- files of before PostgreSQL 12 ----

value(<<'SQL');
DROP TABLE d;
CREATE TABLE old (k int8);
INSERT INTO old SELECT g * 10 FROM generate_series(1, 20000) g;
CREATE INDEX old_b ON old (k) WITH (fillfactor = 50);
CREATE INDEX old_l ON old USING learnedbtree ((k + 0)) WITH (fillfactor = 50);
VACUUM ANALYZE old;
SQL
my %file = map { ($_ => $node->data_dir . '/' . value("SELECT pg_relation_filepath('$_')")) } qw(old_b old_l);
my $version = sub { return value("SELECT version FROM bt_metap('old_b')") };
is($version->(), '4', 'today\'s format');
$node->stop;
foreach my $name (sort keys %file)
{
	my $meta = substr(slurp_file($file{$name}), 0, 8192);
	substr($meta, 24 + 4, 4) = pack('L', 3);
	substr($meta, 24 + 40, 1) = "\0";    # btm_allequalimage: equal keys could not be merged
	change_page($file{$name}, 0, $meta);
}
$node->start;
is($version->(), '3', 'the format of PostgreSQL 11');
is(value("SELECT served, reason FROM learnedbtree_indexes WHERE indexname = 'old_b'"), 'f|it has the format of PostgreSQL 11 or older', '... such an index is not served');
is(value("SELECT learnedbtree_train('old_b'); SELECT state, reason FROM learnedbtree_model('old_b')"),
	"\nready|not served in this session: it has the format of PostgreSQL 11 or older", '... and a model for it is not used');
foreach my $key ('k', 'k + 0')
{
	same("SELECT count(*) FROM generate_series(1, 2000) g, old WHERE $key = g * 99", "$key: lookups");
	# Equal keys are anywhere among their equals there.
	value("INSERT INTO old SELECT g * 990 FROM generate_series(1, 100) g, generate_series(1, 4)");
	is(value("SELECT count(*), sum(n) FROM (SELECT (SELECT count(*) FROM old WHERE $key = g * 990) n FROM generate_series(1, 100) g) q"),
		value("SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT 100, count(*) FROM old WHERE k % 990 = 0 AND k <= 99000"), "$key: equal keys");
	same("SELECT md5(string_agg(k::text, ' ')) FROM (SELECT k FROM old WHERE $key BETWEEN 5000 AND 50000 ORDER BY $key) q", "$key: a range");
}
is(value("SELECT coalesce(sum(lookups + inserts), 0) FROM learnedbtree_stat WHERE indexrelname = 'old_b'"), '0', 'no lookup and no insert was ours');
is(stat_of($node, 'old_l', 'verified > 0 AND inserts_fallback >= 100'), 't', "an index of ours: lookups are, and equal keys are nbtree's to place");
value('REINDEX TABLE old');
is($version->(), '4', 'REINDEX makes today\'s format');
is(value("SELECT served FROM learnedbtree_indexes WHERE indexname = 'old_b'"), 't', '... which is served');

# ---- marks of dead entries on a standby ----

# Three rows a page of the table leave room, so that no scan prunes the page, for which replay would wait.
value(<<'SQL');
CREATE TABLE t (a int, k int8, pad text);
ALTER TABLE t ALTER pad SET STORAGE PLAIN;
INSERT INTO t SELECT g / 500, g, repeat('x', 1990) FROM generate_series(1, 3000) g;
CREATE INDEX t_k ON t (k) WITH (fillfactor = 50);
CREATE INDEX t_a ON t (a, k) WITH (fillfactor = 50);
VACUUM ANALYZE t;
SQL
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = off\nmax_standby_streaming_delay = -1\n");
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my $old = $standby->background_psql('postgres');
my %queries = (
	'lookups' => 'SELECT sum((SELECT count(pad) FROM t WHERE k = g)) FROM generate_series(900, 1600) g',
	'a range' => 'SELECT count(pad), sum(k) FROM t WHERE k BETWEEN 900 AND 1600',
	'a range backward' => "SELECT md5(string_agg(k::text, ' ')) FROM (SELECT k FROM t WHERE k BETWEEN 900 AND 1600 ORDER BY k DESC) q",
	'a list' => 'SELECT count(pad), sum(k) FROM t WHERE k = ANY (ARRAY(SELECT generate_series(900, 1600, 3)))',
	'a loose scan' => "SELECT string_agg(a::text, ' ') FROM (SELECT DISTINCT a FROM t ORDER BY a) q",
	'a loose scan, least and greatest' => "SELECT string_agg(q::text, ' ') FROM (SELECT a, min(k), max(k) FROM t GROUP BY a ORDER BY a) q");
like($old->query_safe("EXPLAIN (COSTS OFF) $queries{$_}"), qr/Loose/, "$_ is one") foreach grep { /loose/ } sort keys %queries;
$old->query_safe('SELECT learnedbtree_train(i) FROM unnest($${t_k,t_a}$$::regclass[]) i; BEGIN ISOLATION LEVEL REPEATABLE READ');
my %before = map { ($_ => $old->query_safe($queries{$_})) } sort keys %queries;

# Most of group 2 is deleted, its entries are marked, and with the first change after a checkpoint their pages go over as they are.
value('DELETE FROM t WHERE k BETWEEN 1000 AND 1499 AND k % 10 <> 5');
value("$btree SELECT count(pad) FROM t WHERE k BETWEEN 900 AND 1600; SELECT count(pad) FROM t WHERE a = 2") for 1 .. 2;
value('CHECKPOINT');
value("$btree INSERT INTO t SELECT a, g, 'y' FROM generate_series(1000, 1499, 50) g, unnest('{1,2,3}'::int[]) a");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
foreach my $index ('t_k', 't_a')
{
	cmp_ok($standby->safe_psql('postgres', "SELECT count(*) FROM generate_series(1, pg_relation_size('$index') / 8192 - 1) b, bt_page_items('$index', b) WHERE dead"), '>', 300,
		"$index: the standby has entries that are marked dead");
}
foreach my $name (sort keys %queries)
{
	is($old->query_safe($queries{$name}), $before{$name}, "an older snapshot on the standby: $name");
	isnt($standby->safe_psql('postgres', $queries{$name}), $before{$name}, "... not a new one: $name") unless $name eq 'a loose scan';
}
$old->query_safe('COMMIT');
$old->quit;
foreach my $index ('t_k', 't_a')
{
	cmp_ok($standby->safe_psql('postgres', "SELECT verified FROM learnedbtree_stat WHERE indexrelname = '$index'"), '>', 0, "$index: by its model");
}
$standby->stop;
$node->stop;
done_testing();
