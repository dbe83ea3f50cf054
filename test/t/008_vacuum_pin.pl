# VACUUM between an index-only scan's fetch from the leaf and its look at the heap.  The scan has copied
# entries of dead rows; its pin keeps VACUUM from marking their heap pages all-visible (and from giving
# the heap slots to other rows), or the scan would return rows that are gone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('pin');
my $waiting = "FROM pg_stat_activity WHERE query LIKE 'VACUUM%t;%' AND wait_event IN ('BufferPin', 'BufferCleanup')";

foreach my $access ('btree', 'learnedbtree')
{
	foreach my $direction ('', 'DESC')
	{
		my $what = "$access, " . ($direction eq '' ? 'forward' : 'backward');
		$node->safe_psql('postgres', <<"SQL");
DROP TABLE IF EXISTS t;
CREATE TABLE t (k int8);
INSERT INTO t SELECT g FROM generate_series(1, 300) g;
CREATE INDEX t_k ON t USING $access (k);
DELETE FROM t WHERE k NOT IN (1, 300);
SQL
		my $reader = $node->background_psql('postgres');
		$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;');
		$reader->query_safe("BEGIN; DECLARE c CURSOR FOR SELECT k FROM t WHERE k BETWEEN 1 AND 300 ORDER BY k $direction;");
		my $first = $reader->query_safe('FETCH 1 FROM c;');

		my $vacuum = $node->background_psql('postgres');
		$vacuum->query_until(qr/started/, "\\echo started\nVACUUM (TRUNCATE off) t;\n");
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $waiting"), "$what: VACUUM waits for the scan's pin");
		my $rest = $reader->query_safe('FETCH ALL FROM c;');
		is(join(' ', sort { $a <=> $b } split(/\s+/, "$first $rest")), '1 300', "$what: the scan returns the live rows only");
		$reader->query_safe('COMMIT;');
		$vacuum->query_safe('SELECT 1');
		is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT string_agg(k::text, ' ' ORDER BY k) FROM t WHERE k BETWEEN 1 AND 300"),
			'1 300', "$what: VACUUM ends when the pin goes, and answers are right");
		is($reader->query_safe("SELECT lookups > 0 AND verified = lookups FROM learnedbtree_stat WHERE indexrelname = 't_k'"), 't',
			"$what: the scan was ours") if $access eq 'learnedbtree';
		$reader->quit;
		$vacuum->quit;
	}
}

$node->stop;
done_testing();
