# Scans in the middle of a leaf while its rows die, are vacuumed away and their places in the table are given to new rows
# that our inserts put on the same leaf: which scans hold the leaf's pin is as in btree, and none that has let it go marks
# the new row's entry dead.  From 19 on that includes unlogged tables, whose pages then have LSNs, ours as btree's.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('unpinned');
$node->init;
configure_serving($node);
$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = 't_k'\nlearnedbtree.autotrain = off\nwal_level = minimal\nmax_wal_senders = 0\n"
	  # Who writes pages out pins them for a moment.
	  . "bgwriter_lru_maxpages = 0\ncheckpoint_timeout = 1h\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION pageinspect');

# Release candidates count as less than their version.
my $unlogged_lsns = $node->pg_version->major >= 19;

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET enable_sort = off;';
my %mode = (btree => "SET learnedbtree.btree_indexes = 'none';", ours => '');

# Nine rows a heap page, and no page with room for a tenth.
sub make
{
	my ($persistence) = @_;
	$node->safe_psql('postgres', <<"SQL");
DROP TABLE IF EXISTS t;
CREATE $persistence TABLE t (k int8, pad text);
ALTER TABLE t ALTER pad SET STORAGE PLAIN;
INSERT INTO t SELECT g * 10, repeat('x', 800) FROM generate_series(1, 2700) g;
CREATE INDEX t_k ON t (k);
VACUUM t;
SELECT learnedbtree_train('t_k');
SQL
	return;
}

sub placed { return $node->safe_psql('postgres', q{SELECT inserts_placed FROM learnedbtree_stat WHERE indexrelname = 't_k'}) // 0; }

# ---- pins, and marks of entries ----

sub vacuum_waits
{
	return $node->poll_query_until('postgres', q{SELECT wait_event IN ('BufferPin', 'BufferCleanup') OR state = 'idle' FROM pg_stat_activity
		WHERE query LIKE 'VACUUM (INDEX\_CLEANUP%'}) ?
	  $node->safe_psql('postgres', q{SELECT state = 'active' FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX\_CLEANUP%'}) : 'never';
}

# A scan has been at the dead row 10000 and goes on on its leaf; the row's place is given to 10005.  Returns whether
# VACUUM had to wait for the scan.
sub reuse
{
	my ($what, $scanner) = @_;
	my $tid = $node->safe_psql('postgres', 'DELETE FROM t WHERE k = 10000 RETURNING ctid');
	$node->safe_psql('postgres', "SELECT learnedbtree_stat_reset('t_k')");
	my $reader = $node->background_psql('postgres');
	$reader->query_safe("$by_index $mode{$scanner} BEGIN; DECLARE c CURSOR FOR SELECT k FROM t WHERE k BETWEEN 10000 AND 10300 ORDER BY k");
	my $rows = $reader->query_safe('FETCH 15 FROM c');

	my $vacuum = $node->background_psql('postgres');
	$vacuum->query_until(qr/started/, "\\echo started\nVACUUM (INDEX_CLEANUP on, TRUNCATE off) t;\n");
	my $waits = vacuum_waits();
	$rows .= "\n" . $reader->query_safe('FETCH ALL FROM c') if $waits eq 't';
	$vacuum->query_safe('SELECT 1');
	my $before = placed();
	is($node->safe_psql('postgres', "INSERT INTO t SELECT 10005, repeat('y', 800) RETURNING ctid"), $tid, "$what: a new row has the place of the dead one");
	is(placed() - $before, 1, "$what: and its entry comes from us");
	$rows .= "\n" . $reader->query_safe('FETCH ALL FROM c') if $waits ne 't';
	is(join(' ', split(/\s+/, $rows)), join(' ', map { 10000 + 10 * $_ } 1 .. 30), "$what: the scan returns what its snapshot has");
	$reader->query_safe('COMMIT');
	is(asked($reader, "SELECT lookups > 0 FROM learnedbtree_stat WHERE indexrelname = 't_k'"), $scanner eq 'ours' ? 't' : 'f', "$what: whose scan it was");
	is($node->safe_psql('postgres', "$by_index $mode{$_} SELECT left(pad, 1) FROM t WHERE k = 10005"), 'y', "$what: the new row is found by $_")
	  foreach sort keys %mode;
	$reader->quit;
	$vacuum->quit;
	return $waits;
}

foreach my $persistence ('', 'UNLOGGED')
{
	my %waits;
	foreach my $scanner (sort keys %mode)
	{
		make($persistence);
		$waits{$scanner} = reuse(($persistence || 'logged') . ", scan by $scanner", $scanner);
	}
	is($waits{ours}, $waits{btree}, "VACUUM waits for our scans of a table ($persistence) as it does for btree's: $waits{btree}");
	is($waits{ours}, $persistence && !$unlogged_lsns ? 't' : 'f', 'which lets their pins go where a page has an LSN');
}

# The mark itself: an entry whose row is dead is marked, by scans without a pin, too, if nothing has come between.
foreach my $persistence ('', 'UNLOGGED')
{
	make($persistence);
	foreach my $scanner (sort keys %mode)
	{
		my ($dead, $other) = $scanner eq 'ours' ? (10000, 10100) : (10200, 10300);
		my $marked = "SELECT count(*) FROM generate_series(1, pg_relation_size('t_k') / 8192 - 1) b, bt_page_items('t_k', b::int) WHERE dead";
		my $before = $node->safe_psql('postgres', $marked);
		$node->safe_psql('postgres', "DELETE FROM t WHERE k IN ($dead, $other)");
		$node->safe_psql('postgres', "$by_index $mode{$scanner} SELECT count(*) FROM t WHERE k = $dead");
		is($node->safe_psql('postgres', $marked) - $before, 1, ($persistence || 'logged') . ": a scan by $scanner marks a dead entry");

		# An insert on the leaf, while the scan is in the middle of it.
		my $reader = $node->background_psql('postgres');
		$reader->query_safe("$by_index $mode{$scanner} BEGIN; DECLARE c CURSOR FOR SELECT k FROM t WHERE k BETWEEN $other AND $other + 30 ORDER BY k");
		$reader->query_safe('FETCH 2 FROM c');
		my $placed = placed();
		$node->safe_psql('postgres', "INSERT INTO t VALUES ($other + 5, 'z')");
		is(placed() - $placed, 1, 'an insert of ours comes between');
		$reader->query_safe('FETCH ALL FROM c');
		$reader->query_safe('COMMIT');
		my $pinned = $persistence && !$unlogged_lsns;
		is($node->safe_psql('postgres', $marked) - $before, $pinned ? 2 : 1,
			$pinned ? 'a scan with the pin finds the entry where it is now' : 'a scan without the pin sees by the LSN that the leaf has changed, and marks none');
		$reader->quit;
	}
}

# ---- LSNs ----

# Does an insert give the leaf another LSN?
my $lsns = q{SELECT string_agg(lsn::text, ' ' ORDER BY b) FROM generate_series(1, pg_relation_size('t_k') / 8192 - 1) b,
	page_header(get_raw_page('t_k', b::int))};
my %changes;
foreach my $persistence ('', 'UNLOGGED')
{
	make($persistence);
	foreach my $inserter (sort keys %mode)
	{
		my $key = $inserter eq 'ours' ? 5005 : 5015;
		my ($lsn_before, $placed) = ($node->safe_psql('postgres', $lsns), placed());
		$node->safe_psql('postgres', "$mode{$inserter} INSERT INTO t VALUES ($key, 'z')");
		is(placed() - $placed, $inserter eq 'ours' ? 1 : 0, "inserted by $inserter");
		$changes{$persistence}{$inserter} = $node->safe_psql('postgres', $lsns) eq $lsn_before ? 'no' : 'yes';
	}
	is($changes{$persistence}{ours}, $changes{$persistence}{btree}, "our insert gives a leaf of a table ($persistence) a new LSN as btree's does: $changes{$persistence}{btree}");
}
is($changes{UNLOGGED}{ours}, $unlogged_lsns ? 'yes' : 'no', 'that of an unlogged table from 19 on');

# A new file is not logged with wal_level = minimal, but is a permanent table's: after a crash all is there.
$node->safe_psql('postgres', <<'SQL');
BEGIN;
CREATE TABLE fresh (k int8);
INSERT INTO fresh SELECT g * 10 FROM generate_series(1, 20000) g;
CREATE INDEX fresh_k ON fresh USING learnedbtree (k) WITH (fillfactor = 50);
INSERT INTO fresh SELECT g * 10 + 5 FROM generate_series(1, 20000, 3) g;
COMMIT;
SQL
is($node->safe_psql('postgres', q{SELECT inserts_placed > 6000 FROM learnedbtree_stat WHERE indexrelname = 'fresh_k'}), 't', 'inserts of ours into a file that is not logged');
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
is($node->safe_psql('postgres', "$by_index SELECT count(*), sum(k) FROM fresh WHERE k > 0"), '26667|2666833335', 'are there after a crash');
is($node->psql('postgres', check_sql('fresh_k')), 0, 'and the index is good');

$node->stop;
done_testing();
