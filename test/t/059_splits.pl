# learnedbtree_splits() while others insert, delete and vacuum: boundaries are in the order of the index, and different; and
# on a standby, where they are the primary's.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $calls = 300;
my $node = PostgreSQL::Test::Cluster->new('splits');
$node->init(allows_streaming => 1);
configure_node($node);
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE s (k int, t text);
INSERT INTO s SELECT i % 1000, md5(i::text) FROM generate_series(1, 40000) i;
CREATE INDEX s_kt ON s USING learnedbtree (k DESC, t DESC) WITH (fillfactor = 20);
CREATE INDEX s_tk ON s (t, k) WITH (fillfactor = 20);
SQL
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

my $writer = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_until(qr/started/, <<'SQL');
\echo started
DO $$ BEGIN FOR i IN 1..1000000 LOOP
	DELETE FROM s WHERE k BETWEEN i * 37 % 1000 AND i * 37 % 1000 + 60;
	COMMIT;
	INSERT INTO s SELECT (g + i * 37) % 1000, md5((i * 4000 + g)::text) FROM generate_series(1, 2400) g;
	COMMIT;
END LOOP; END $$;
SQL
my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(qr/started/, "\\echo started\n" . "VACUUM (INDEX_CLEANUP on) s;\nSELECT pg_sleep(0.05);\n" x 300);

foreach (
	[ 's_kt', 'k int, t text', '(k, t) < (before_k, before_t)' ],
	[ 's_tk', 't text, k int', '(t, k) > (before_t, before_k)' ])
{
	my ($index, $columns, $in_order) = @$_;
	my ($rc, $out, $err) = $node->psql('postgres', <<"SQL");
DO \$\$ DECLARE s record; BEGIN FOR i IN 1..$calls LOOP
	SELECT count(*) AS n, count(*) FILTER (WHERE NOT $in_order) AS wrong INTO s
	  FROM (SELECT *, lag(k) OVER () AS before_k, lag(t) OVER () AS before_t FROM learnedbtree_splits('$index', 2 + i % 100) AS s($columns)) s;
	ASSERT s.n BETWEEN 1 AND 1 + i % 100 AND s.wrong = 0, format('%s parts: %s', 2 + i % 100, s);
	COMMIT;
END LOOP; END \$\$;
SQL
	is($err, '', "$index: in order, and different");
}
my $others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
is(stat_of($node, 's_kt', 'pages_deleted > 0'), 't', 'VACUUM has deleted pages');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) $others");
settle($node);

$node->safe_psql('postgres', 'CHECKPOINT');
$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
my $all = "SELECT string_agg(s::text, ' ') FROM learnedbtree_splits('s_kt', 50) AS s(k int, t text)";
is($standby->safe_psql('postgres', $all), $node->safe_psql('postgres', $all), 'the same on a standby');
$standby->stop;
$node->stop;
done_testing();
