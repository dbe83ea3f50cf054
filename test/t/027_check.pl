# What is wrong is found: separators out of order by amcheck; a broken saved model, and a prediction that is proven on a page
# which the tree does not lead to, by learnedbtree_check().  That last cannot come about by SQL; the index file is edited for it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant { PAGE => 8192, ITEMS => 24, SPARE => 72 };

my $node = PostgreSQL::Test::Cluster->new('check');
$node->init($node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
configure_node($node);
$node->append_conf('postgresql.conf', "learnedbtree.autotrain = off\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (k int8);
INSERT INTO t SELECT g * 10 FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING learnedbtree (k);
SQL
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_k')");
my $counts = "SELECT model || ' ' || saved_model || ' ' || (separators > 40) || ' ' || (landed = separators) FROM learnedbtree_check('t_k')";

# ---- the file; the root is the only page of level 1 ----

sub page_at
{
	my ($block, $new) = @_;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, $block * PAGE, 0);
	if (defined $new) { print $fh $new; }
	else { read($fh, $new, PAGE) == PAGE or die "short read of block $block"; }
	close $fh or die "$file: $!";
	return $new;
}

# Where in the root the n-th line pointer is, from 0, and the tuple that it names.
sub line_pointer { my ($n) = @_; return ITEMS + 4 * $n; }
sub tuple_at { my ($page, $n) = @_; return unpack('L', substr($page, line_pointer($n), 4)) & 0x7fff; }

my ($root, $level) = unpack('LL', substr(page_at(0), ITEMS + 8, 8));
is($level, 1, 'the root is of level 1');

is($node->safe_psql('postgres', $counts), 'ready readable true true', 'a fresh model: every separator is found by prediction');

# ---- separators out of order ----

$node->stop;
my $sound = page_at($root);
my $swapped = $sound;
substr($swapped, line_pointer(20), 8) = substr($sound, line_pointer(21), 4) . substr($sound, line_pointer(20), 4);
page_at($root, $swapped);
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', amcheck_sql('t_k'));
isnt($rc, 0, 'two separators in each other\'s place: an error');
like($err, qr/ERROR: .* in index "t_k"|ERROR: .* for index "t_k"/, 'it names the index');
$node->stop;
page_at($root, $sound);
$node->start;

# ---- a saved model that cannot be read ----

$node->psql('postgres', "SELECT learnedbtree_train('t_k')");
is($node->safe_psql('postgres', $counts), 'ready readable true true', 'mended: all is well');
$node->stop;
my $meta = page_at(0);
my $broken = $meta;
substr($broken, SPARE + 100, 1) = chr(ord(substr($meta, SPARE + 100, 1)) ^ 0xff);
page_at(0, $broken);
$node->start;
is($node->safe_psql('postgres', "SELECT model || ': ' || saved_model FROM learnedbtree_check('t_k')"), 'untrained: its checksum is wrong',
	'a broken saved model is no error, and is named');
$node->safe_psql('postgres', "SELECT learnedbtree_train('t_k')");
is($node->safe_psql('postgres', $counts), 'ready readable true true', 'the training has written it anew');

# ---- a leaf that the tree does not lead to ----

# A copy of a leaf at the end of the file, and its downlink turned to it: so it is trained.
$node->stop;
my $pointer = tuple_at($sound, 25);
my ($hi, $lo) = unpack('SS', substr($sound, $pointer, 4));
my $leaf = $hi << 16 | $lo;
my $copy = (-s $file) / PAGE;
my $turned = $sound;
substr($turned, $pointer, 4) = pack('SS', $copy >> 16, $copy & 0xffff);
page_at($copy, page_at($leaf));
page_at($root, $turned);
$node->start;
$node->safe_psql('postgres', "SELECT learnedbtree_train('t_k')");

# Then the downlink turned back, and the left sibling's link turned.  The saved model still names the copy, where everything
# speaks for it: a live leaf among its siblings, with the right keys.  Nothing of the server makes such a page; the lock keeps
# the worker from training.
$node->append_conf('postgresql.conf', "learnedbtree.autotrain = on\n");
$node->stop;
($hi, $lo) = unpack('SS', substr($sound, tuple_at($sound, 24), 4));
my $left = $hi << 16 | $lo;
my $linked = my $left_page = page_at($left);
substr($linked, PAGE - 12, 4) = pack('L', $copy);
page_at($root, $sound);
page_at($left, $linked);
$node->start;
($rc, $out, $err) = $node->psql('postgres', "BEGIN; ALTER INDEX t_k DEPENDS ON EXTENSION amcheck;\n"
	  . "SET enable_seqscan = off; SELECT count(*) FROM t WHERE k = 10;\n"
	  . "SELECT source FROM learnedbtree_model('t_k');\n$counts");
isnt($rc, 0, 'a prediction proven on a page that is not in the tree: an error') or diag($out);
like($out, qr/metapage/, 'the model was the saved one');
like($err, qr/a lookup in index "t_k" that was proven is not where the descent leads/, 'it says so');
like($err, qr/block \d+ was predicted and block \d+ proven, which is item \d+ of block $copy; the descent leads to item \d+ of block $leaf\b/,
	'and which blocks');
$node->stop;
page_at($left, $left_page);
$node->start;
is($node->psql('postgres', amcheck_sql('t_k')), 0, 'amcheck has nothing to say');
$node->safe_psql('postgres', "SELECT learnedbtree_train('t_k')");
is($node->safe_psql('postgres', $counts), 'ready readable true true', 'trained again, all is well');

$node->stop;
done_testing();
