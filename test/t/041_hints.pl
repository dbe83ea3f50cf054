# Marks of dead entries while their leaf is being written, with data checksums: from 19 on a page that a process writes out
# must not change, so the server denies the mark, to our scans as to btree's; it is set later.  And with checkpoints all
# the time, a backup and the files at the end have right checksums.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../shim";
use Failat;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Torture;

my $seconds = $ENV{LBT_HINT_SECONDS} || 8;

build_shim();
my $node = PostgreSQL::Test::Cluster->new('hints');
$node->init(allows_streaming => 1, extra => ['--data-checksums']);
configure_serving($node);
$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = 't_k, t_pkey, other_k'\nlearnedbtree.autotrain = off\nbgwriter_lru_maxpages = 0\ncheckpoint_timeout = 1h\n"
	  . "enable_seqscan = off\nenable_bitmapscan = off\nenable_indexonlyscan = off\n");
with_shim(sub { $node->start });
declare_shim($node);
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION pageinspect;
CREATE TABLE t (k int8, v text);
INSERT INTO t SELECT g, 'row' FROM generate_series(1, 3000) g;
CREATE INDEX t_k ON t (k);
VACUUM t;
SELECT learnedbtree_train('t_k');
SQL

my %mode = (btree => "SET learnedbtree.btree_indexes = 'none';", ours => '');
my $path = $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_k')");

# Two neighbouring rows, and their leaf.
my %key = (btree => 1000, ours => 1001);
$node->safe_psql('postgres', 'CREATE TABLE was AS SELECT k, ctid AS tid FROM t WHERE k IN (1000, 1001)');
my $leaf = $node->safe_psql('postgres', q{SELECT b FROM generate_series(1, pg_relation_size('t_k') / 8192 - 1) b
	WHERE (SELECT count(*) FROM bt_page_items('t_k', b::int), was WHERE htid = tid) = 2});
like($leaf, qr/^\d+$/, 'two rows are on one leaf');
my $dead = qq{SELECT string_agg(k::text, ' ' ORDER BY k) FROM was, bt_page_items('t_k', $leaf) WHERE htid = tid AND dead};
$node->safe_psql('postgres', 'CHECKPOINT; DELETE FROM t WHERE k IN (1000, 1001); INSERT INTO t VALUES (1002, $$again$$)');

# The checkpointer stops at writing the leaf.
is($node->safe_psql('postgres', "SELECT failat_rule('w', '$path', $leaf, $leaf, 0)"), 't', 'a rule');
my $checkpoint = $node->background_psql('postgres');
$checkpoint->query_until(qr/started/, "\\echo started\nCHECKPOINT;\n");
wait_until($node, 'SELECT failat_hits() > 0');
foreach my $scanner (sort keys %mode)
{
	is($node->safe_psql('postgres', "$mode{$scanner} SELECT count(*) FROM t WHERE k = $key{$scanner}"), '0', "while the leaf is written, a scan by $scanner");
}
is($node->safe_psql('postgres', $dead), $node->pg_version->major >= 19 ? '' : '1000 1001', 'marks what the server allows then, and no more');
$node->safe_psql('postgres', 'SELECT failat_off()');
$checkpoint->query_safe('SELECT 1');
$checkpoint->quit;
foreach my $scanner (sort keys %mode)
{
	$node->safe_psql('postgres', "$mode{$scanner} SELECT count(*) FROM t WHERE k = $key{$scanner}");
	like($node->safe_psql('postgres', $dead), qr/$key{$scanner}/, "later, a scan by $scanner does mark its entry");
}

# Marks, inserts and checkpoints all at once, small buffers, a backup meanwhile.
$node->safe_psql('postgres', <<'SQL');
DROP TABLE t;
CREATE TABLE t (k int8 PRIMARY KEY, v text) WITH (fillfactor = 50);
CREATE TABLE other (k int8, v text);
CREATE INDEX other_k ON other (k);
INSERT INTO t SELECT g * 2, repeat('x', 100) FROM generate_series(1, 6000) g;
INSERT INTO other SELECT k, v FROM t;
VACUUM t, other;
SELECT learnedbtree_train('t_pkey'), learnedbtree_train('other_k');
SQL
my $round = 0;
sub load { my ($clients, @scripts) = @_; return start_load($node, clients => $clients, jobs => 1, seconds => $seconds, seed => 19 + $round, scripts => \@scripts); }
sub load_all
{
	return (
	load(1, [ 'checkpoint', 1, "CHECKPOINT;\n" ]),
	load(3, map({ [ "replace.$_", 1, "\\set k random(1, 6000)\nBEGIN;\nSELECT pg_advisory_xact_lock(:k);\n"
			  . "DELETE FROM $_ WHERE k = 2 * :k;\nINSERT INTO $_ VALUES (2 * :k, 'new');\nCOMMIT;" ],
		[ "look.$_", 1, "\\set k 2 * random(1, 5900)\nSELECT 1 / (count(v) = 30)::int FROM $_ WHERE k > :k AND k <= :k + 60;" ] } qw(t other))));
}
sub end_all
{
	foreach (@_)
	{
		ok(end_load($_), 'no errors and no wrong answers') or diag(substr($_->{err}, 0, 2000));
		note($_->{out} =~ /actually processed: (\d+)/);
	}
	return;
}
sub marked
{
	my ($index) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM generate_series(1, pg_relation_size('$index') / 8192 - 1) b, "
		  . "bt_page_stats('$index', b::int) WHERE type = 'l' AND dead_items > 0");
}
my @load = load_all();
my $backup = $node->backup_dir . '/checked';
$node->command_ok([ 'pg_basebackup', '-D', $backup, '-h', $node->host, '-p', $node->port, '--checkpoint', 'fast', '--no-sync' ],
	'a backup finds all checksums right meanwhile');
end_all(@load);
# On a slow machine once may be too little.
end_all(load_all()) while $round++ < 10 && grep { !marked($_) } qw(t_pkey other_k);
foreach my $index (qw(t_pkey other_k))
{
	cmp_ok(marked($index), '>', 0, "$index: entries have been marked");
	is(stat_of($node, $index, 'verified > 0 AND inserts > 0'), 't', "$index: by scans of ours") or diag(stat_of($node, $index, 'learnedbtree_stat'));
}
$node->stop;
$node->command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'and so are those of the files at the end');

done_testing();
