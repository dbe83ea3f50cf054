# A split that an error or a crash interrupted before the new page got its downlink: inserts, lookups and ranges
# by prediction, as the first thing after a restart, with a model from before and one from after.  nbtree has to
# finish the split; nothing may be lost.  The state is made by editing the file of the stopped server: the left
# page is marked, the right page's downlink taken out of the parent.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant { PAGE => 8192, ITEMS => 24, INCOMPLETE_SPLIT => 0x80, LEAF => 0x01 };

my $node = PostgreSQL::Test::Cluster->new('incomplete');
$node->init($node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
configure_node($node);
$node->append_conf('postgresql.conf', "learnedbtree.autotrain = off\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (k int8, bk int8);
INSERT INTO t SELECT g * 1000, g * 1000 FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
CREATE INDEX t_bk ON t USING btree (bk);
VACUUM ANALYZE t;

CREATE FUNCTION put(VARIADIC keys int8[]) RETURNS void LANGUAGE sql AS 'INSERT INTO t SELECT k, k FROM unnest(keys) k';

-- Is every row found by every way?  '' if so.
CREATE FUNCTION differences() RETURNS text LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
DECLARE
	answers text[] := '{}';
	answer text;
	missed bigint;
	way text;
BEGIN
	FOREACH way IN ARRAY ARRAY['bk + 0', 'bk', 'k'] LOOP
		PERFORM set_config('enable_seqscan', (way = 'bk + 0')::text, true), set_config('enable_indexscan', (way <> 'bk + 0')::text, true);
		EXECUTE format('SELECT md5(string_agg(k || '' '' || ctid, '','' ORDER BY k, ctid)) FROM t WHERE %s > -1', way) INTO answer;
		answers := answers || answer;
	END LOOP;
	SELECT count(*) INTO missed FROM (SELECT bk, count(*) AS n FROM t GROUP BY bk) d WHERE n <> (SELECT count(*) FROM t x WHERE x.k = d.bk);
	RETURN concat_ws(', ', CASE WHEN answers[2] <> answers[1] THEN 'btree' END, CASE WHEN answers[3] <> answers[1] THEN 'learnedbtree' END,
		CASE WHEN missed > 0 THEN missed || ' keys by lookup' END);
END $$;
SQL
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_k')");

# Start the server, with the counts at zero.
sub start_counting
{
	$node->start;
	$node->safe_psql('postgres', "SELECT learnedbtree_stat_reset('t_k')");
	return;
}

# ---- the file ----

sub read_page
{
	my ($block) = @_;
	open(my $fh, '<:raw', $file) or die "$file: $!";
	seek($fh, $block * PAGE, 0);
	read($fh, my $page, PAGE) == PAGE or die "short read of block $block";
	close $fh;
	return $page;
}

sub write_page
{
	my ($block, $page) = @_;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, $block * PAGE, 0);
	print $fh $page;
	close $fh or die "$file: $!";
}

sub special { my ($page) = @_; my %s; @s{qw(prev next level flags)} = unpack('LLLS', substr($page, PAGE - 16)); return \%s; }
sub lower { return unpack('S', substr($_[0], 12, 2)); }

# The items' contents, in order; item 0 is the high key, except on a rightmost page.
sub items
{
	my ($page) = @_;
	return map { my ($id) = unpack('L', substr($page, $_, 4)); substr($page, $id & 0x7fff, $id >> 17) }
	  map { ITEMS + 4 * $_ } 0 .. (lower($page) - ITEMS) / 4 - 1;
}

sub data_items { my ($page) = @_; my @items = items($page); shift @items if special($page)->{next}; return @items; }
sub downlink { my ($hi, $lo) = unpack('SS', $_[0]); return $hi << 16 | $lo; }
sub key { return unpack('q', substr($_[0], 8, 8)); }

# The leftmost page of level 1, which is not the root.
sub find_parent
{
	my ($block, $level) = unpack('LL', substr(read_page(0), ITEMS + 8, 8));
	die 'the tree is too small' if $level < 2;
	$block = downlink((data_items(read_page($block)))[0]) while $level-- > 1;
	return $block;
}

# Undo the end of the split of the n-th child of the parent.
sub interrupt_split
{
	my ($n) = @_;
	my %split = (parent => find_parent());
	my $parent = read_page($split{parent});
	my @children = data_items($parent);
	@split{qw(left right beyond)} = map { downlink($children[$_]) } $n .. $n + 2;
	my $left = read_page($split{left});
	die "block $split{left} is not the left sibling of $split{right}" if special($left)->{next} != $split{right};
	@split{qw(left_key right_key beyond_key)} = map { key((data_items(read_page($split{$_})))[0]) } qw(left right beyond);

	substr($left, PAGE - 4, 2) = pack('S', special($left)->{flags} | INCOMPLETE_SPLIT);
	write_page($split{left}, $left);
	my $lower = lower($parent);
	my $at = ITEMS + 4 * ($n + 1 + 1);	# behind the high key
	substr($parent, $at, $lower - $at) = substr($parent, $at + 4, $lower - $at - 4) . "\0" x 4;
	substr($parent, 12, 2) = pack('S', $lower - 4);
	write_page($split{parent}, $parent);
	return \%split;
}

sub is_finished
{
	my ($split) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	return !(special(read_page($split->{left}))->{flags} & INCOMPLETE_SPLIT)
	  && scalar grep { downlink($_) == $split->{right} } data_items(read_page($split->{parent}));
}

# ---- what is done first ----

# (LEFT, RIGHT: new keys on the two pages; FIRST: the first key of the right page; END: its last.)
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;';
my $lookups = "$by_index SELECT count(*) FROM t WHERE k = FIRST; SELECT count(*) FROM t WHERE k = END; "
  . 'SELECT count(*) FROM t WHERE k BETWEEN LEFT AND END; SELECT count(*) FROM (SELECT k FROM t WHERE k <= END ORDER BY k DESC LIMIT 60) q;';
my @cases = (
	[ 'an insert on the left page', 'SELECT put(LEFT)' ],
	[ 'an insert on the right page', 'SELECT put(RIGHT)' ],
	[ 'a key equal to the separator', 'SELECT put(FIRST)' ],
	[ 'lookups, ranges, then inserts', "$lookups SELECT put(RIGHT, LEFT)" ],
	[ 'many inserts on both pages', 'INSERT INTO t SELECT k, k FROM generate_series(LEFT, END, 20) k' ],
	[ 'lookups, then inserts without model', "$lookups SET learnedbtree.enable_insert = off; SELECT put(LEFT, RIGHT)" ],
	[ 'a training, then inserts', "SELECT learnedbtree_train('t_k'); SELECT put(END, RIGHT, LEFT)" ],
	[ 'both pages emptied, vacuumed, filled again', "DELETE FROM t WHERE k >= LEFT - 500 AND k <= END; VACUUM t; VACUUM t; $lookups "
		  . 'INSERT INTO t SELECT k, k FROM generate_series(LEFT, END, 500) k' ]);

my $n = 10;
foreach my $case (@cases)
{
	my ($name, $sql) = @$case;
	$node->stop;
	my $split = interrupt_split($n += 25);
	my %key = (LEFT => $split->{left_key} + 500, FIRST => $split->{right_key}, RIGHT => $split->{right_key} + 500, END => $split->{beyond_key} - 1000);
	$sql =~ s/\b(LEFT|RIGHT|FIRST|END)\b/$key{$1}/g;
	start_counting();
	is($node->psql('postgres', $sql), 0, "$name: done");
	ok(is_finished($split), "$name: the split is finished") or diag(explain($split));
	is(stat_of($node, 't_k', 'inserts_fallback > 0'), 't', "$name: the predicted insert was left to nbtree")
	  unless $sql =~ /enable_insert = off/;
	is($node->safe_psql('postgres', 'SELECT differences()'), '', "$name: every row is found by every way");
	is($node->psql('postgres', check_sql('t_k')), 0, "$name: amcheck is content");
}

# The model of before, saved in the metapage, knows the right page, and puts keys there that no descent
# reaches without a step to the right.  The lock keeps the worker from training.  A lookup reads the left page: with a saved
# model, its link proves the right one.
$node->append_conf('postgresql.conf', "learnedbtree.autotrain = on\n");
$node->stop;
my $split = interrupt_split($n += 25);
my ($left, $right) = ($split->{left_key} + 500, $split->{right_key} + 500);
start_counting();
my $source = $node->safe_psql('postgres', "BEGIN; ALTER INDEX t_k DEPENDS ON EXTENSION amcheck; SELECT count(*) FROM t WHERE k = $left \\g /dev/null\n"
	. "SELECT put($right, $right + 1) \\g /dev/null\n"
	  . "SELECT source FROM learnedbtree_model('t_k'); COMMIT");
is($source, 'metapage', 'the saved model was in use');
ok(!is_finished($split), 'the right page got keys by prediction, the split is as it was');
is(stat_of($node, 't_k', 'inserts_placed >= 2 AND inserts_fallback = 0'), 't', 'that was a proven leaf') or diag(stat_of($node, 't_k', '*'));
is($node->safe_psql('postgres', 'SELECT differences()'), '', 'every row is found by every way');
is($node->psql('postgres', check_sql('t_k')), 0, 'amcheck is content with the unfinished split');
$node->safe_psql('postgres', "SELECT put($left, $right + 2)");
ok(is_finished($split), 'the next insert on the left page finishes the split');
is($node->safe_psql('postgres', 'SELECT differences()'), '', 'every row is found by every way, still');
is($node->psql('postgres', check_sql('t_k')), 0, 'amcheck is content at the end');

$node->stop;
done_testing();
