# Leaves brought in ahead of need: cold range and array scans of an index grown by random inserts, with few shared
# buffers; what brings none, or few; changes of direction and of the model in the middle; errors, a standby,
# VACUUM beside an idle cursor.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('prefetch');
$node->init(allows_streaming => 1);
configure_node($node);
$node->append_conf('postgresql.conf', "shared_buffers = 1MB\neffective_io_concurrency = 32\nlearnedbtree.autotrain = off\n"
	  . "max_parallel_workers_per_gather = 0\nwal_keep_size = 1GB\nenable_seqscan = off\nmax_connections = 10\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (k int8, b int8);
CREATE INDEX t_k ON t USING learnedbtree (k);
CREATE TABLE s (v text COLLATE "C");
CREATE INDEX s_v ON s USING learnedbtree (v DESC);
INSERT INTO t SELECT (g * 2654435761) % 4294967291, g FROM generate_series(1::int8, 120000) g;
INSERT INTO s SELECT md5(g::text) FROM generate_series(1, 40000) g;
ALTER TABLE t ADD bk int8;
UPDATE t SET bk = k;
VACUUM FULL t;
DROP INDEX t_k;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 100);
-- leaves split everywhere, their right halves at the end of the file
INSERT INTO t SELECT (g * 2654435761) % 4294967291, g, (g * 2654435761) % 4294967291 FROM generate_series(120001::int8, 200000) g;
CREATE INDEX t_b ON t (bk);
VACUUM ANALYZE;
SELECT learnedbtree_train('t_k'), learnedbtree_train('s_v');
SQL

# Cold: everything that is in shared buffers goes, by a restart; and the first use trains, from level 1 alone.
sub cold
{
	my ($server) = @_;
	$server->restart;
	$server->safe_psql('postgres', "SELECT learnedbtree_train('t_k'), learnedbtree_train('s_v'), learnedbtree_stat_reset()") if $server->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f';
	return;
}

# What a query says, and how many leaves were brought in ahead for it.
sub ask
{
	my ($server, $query, $settings) = @_;
	my $out = $server->safe_psql('postgres', ($settings // '') . "\n$query;\n"
		  . "SELECT 'prefetched ' || sum(prefetched) FROM learnedbtree_stat");
	my ($n) = $out =~ /^prefetched (\d+)$/m;
	$out =~ s/^prefetched.*\n?//m;
	chomp $out;
	return ($out, $n);
}

my $only = 'SET enable_bitmapscan = off;';
my $heap = "$only SET enable_indexonlyscan = off;";
my $bitmap = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on;';
my $array = 'ARRAY(SELECT (g * 2654435761) % 4294967291 FROM generate_series(1::int8, 250000, 250) g)';
# query over the column of either index, settings, the least number of leaves
my @scans = (
	[ 'a range', 'SELECT count(*), sum(K) FROM t WHERE K BETWEEN 1000000000 AND 3000000000', $only, 100 ],
	[ 'a range backward', 'SELECT md5(string_agg(K::text, \',\')) FROM (SELECT K FROM t WHERE K BETWEEN 1000000000 AND 3000000000 ORDER BY K DESC) q', $only, 100 ],
	[ 'a range with no end', 'SELECT count(*), sum(K) FROM t WHERE K > 3000000000', $only, 100 ],
	[ 'a range by a bitmap', 'SELECT count(*), sum(b) FROM t WHERE K BETWEEN 1000000000 AND 3000000000', $bitmap, 100 ],
	[ 'an array', "SELECT count(*), sum(K) FROM t WHERE K = ANY ($array)", $only, 200 ],
	[ 'an array, with the table', "SELECT count(*), sum(b) FROM t WHERE K = ANY ($array)", $heap, 200 ],
	[ 'an array backward', "SELECT md5(string_agg(K::text, ',')) FROM (SELECT K FROM t WHERE K = ANY ($array) ORDER BY K DESC) q", $only, 200 ],
	[ 'an array by a bitmap', "SELECT count(*), sum(b) FROM t WHERE K = ANY ($array)", $bitmap, 200 ]);

sub scans
{
	my ($server, $what) = @_;
	foreach my $scan (@scans)
	{
		my ($name, $query, $settings, $least) = @$scan;
		my ($by_model, $by_btree) = ($query, $query);
		$by_model =~ s/\bK\b/k/g;
		$by_btree =~ s/\bK\b/bk/g;
		my $oracle = $server->safe_psql('postgres', "$settings $by_btree");
		cold($server);
		my (undef, $before) = ask($server, 'SELECT', '');
		my ($got, $n) = ask($server, $by_model, $settings);
		is($got, $oracle, "$what: $name: the answer");
		cmp_ok($n - $before, '>=', $least, "$what: $name: leaves were brought in ahead");
	}
}

scans($node, 'primary');

# ---- none, or few ----

cold($node);
foreach my $scan (@scans)
{
	my ($name, $query, $settings) = @$scan;
	$query =~ s/\bK\b/k/g;
	my (undef, $n) = ask($node, $query, "$settings SET learnedbtree.enable_prefetch = off;");
	is($n, 0, "switched off: $name: none");
}
cold($node);
my ($got, $n) = ask($node, "SELECT k FROM t WHERE k > 1000000000 ORDER BY k LIMIT 1", $only);
is($n, 0, 'LIMIT 1 of a range: none');
($got, $n) = ask($node, "SELECT k FROM t WHERE k = ANY ($array) ORDER BY k LIMIT 1", $only);
cmp_ok($n, '<=', 8, 'LIMIT 1 of an array: few');
$node->safe_psql('postgres', 'SELECT learnedbtree_stat_reset()');
# When all is there, nothing has to come.
$node->append_conf('postgresql.conf', "shared_buffers = 64MB\n");
cold($node);
ask($node, $_, $only) foreach "SELECT count(*) FROM t WHERE k > 0", "SELECT count(*) FROM s WHERE v > ''";
$node->safe_psql('postgres', 'SELECT learnedbtree_stat_reset()');
($got, $n) = ask($node, "SELECT count(*) FROM t WHERE k BETWEEN 1000000000 AND 3000000000; SELECT count(*) FROM t WHERE k = ANY ($array)", $only);
is($n, 0, 'all leaves in shared buffers: none');
$node->append_conf('postgresql.conf', "shared_buffers = 1MB\n");
cold($node);

# ---- strings, and in the other direction ----

my $list = "ARRAY(SELECT md5(g::text) FROM generate_series(1, 50000, 100) g)";
foreach my $order ('', 'DESC')
{
	foreach my $where ("v = ANY ($list)", "v BETWEEN '4' AND 'c'")
	{
		my $query = "SELECT count(*), md5(string_agg(v, ',')) FROM (SELECT v FROM s WHERE $where ORDER BY v $order) q";
		my $oracle = $node->safe_psql('postgres', "SET learnedbtree.enable = off; $only $query");
		cold($node);
		($got, $n) = ask($node, $query, $only);
		is($got, $oracle, "strings, $where $order: the answer");
		cmp_ok($n, '>=', 50, "strings, $where $order: leaves were brought in ahead");
	}
}

# ---- to and fro, another model, rescans, errors: in the middle of it all ----

my $walk = <<'SQL';
CREATE FUNCTION walk(query text, train bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    r record;
    x int8 := 1;
    seen text := '';
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    FOR i IN 1..60 LOOP
        x := (x * 1103515245 + 12345) % 2147483648;
        CASE (x / 65536) % 4
            WHEN 0 THEN MOVE FORWARD 2000 FROM c; FETCH NEXT FROM c INTO r;
            WHEN 1 THEN MOVE FORWARD 5000 FROM c; FETCH NEXT FROM c INTO r;
            WHEN 2 THEN MOVE BACKWARD 1500 FROM c; FETCH PRIOR FROM c INTO r;
            ELSE FETCH RELATIVE 3 FROM c INTO r;
        END CASE;
        seen := seen || coalesce(r::text, '-') || ' ';
        IF train AND i % 7 = 0 THEN PERFORM learnedbtree_train('t_k'); END IF;
    END LOOP;
    CLOSE c;
    RETURN md5(seen);
END $$;
SQL
$node->safe_psql('postgres', $walk);
foreach my $where ('K > 500000000', 'K = ANY (ARRAY(SELECT (g * 2654435761) % 4294967291 FROM generate_series(1::int8, 150000, 2) g))')
{
	foreach my $order ('', 'DESC')
	{
		my $query = "SELECT K FROM t WHERE $where ORDER BY K $order";
		(my $by_model = $query) =~ s/\bK\b/k/g;
		(my $by_btree = $query) =~ s/\bK\b/bk/g;
		my $oracle = $node->safe_psql('postgres', "$only SELECT walk(\$q\$$by_btree\$q\$, false)");
		foreach my $train ('false', 'true')
		{
			cold($node);
			($got, $n) = ask($node, "SELECT walk(\$q\$$by_model\$q\$, $train)", $only);
			is($got, $oracle, "to and fro, $where $order, trained again $train: the answer");
			# ... until fewer than half of them have been read: each turn leaves some behind
			cmp_ok($n, '>', 20, "to and fro, $where $order, trained again $train: leaves were brought in ahead");
		}
	}
}
foreach my $condition ('K = ANY (ARRAY(SELECT ((g + h * 300) * 2654435761) % 4294967291 FROM generate_series(1::int8, 600) h))', 'K BETWEEN g * 1e8::int8 AND g * 1e8::int8 + 50000000')
{
	foreach my $limit (3, 700)
	{
		my $query = "SELECT md5(string_agg(s::text, ',')) FROM generate_series(1, 30) g, LATERAL (SELECT sum(K) s FROM (SELECT K FROM t WHERE $condition ORDER BY K LIMIT $limit) i) q";
		(my $by_model = $query) =~ s/\bK\b/k/g;
		(my $by_btree = $query) =~ s/\bK\b/bk/g;
		is($node->safe_psql('postgres', "$only $by_model"), $node->safe_psql('postgres', "$only $by_btree"), "rescans, LIMIT $limit, $condition");
	}
}
# Errors under way leave nothing behind: caught ones, and those that end the transaction.
make_scans_that_fail($node, 'k', 600);
cold($node);
is($node->safe_psql('postgres', "$only SELECT catches(); SELECT catches(); SELECT count(*) FROM t WHERE k > 4000000000"),
	"20\n20\n" . $node->safe_psql('postgres', "$only SELECT count(*) FROM t WHERE bk > 4000000000"), 'errors caught in the middle');
cold($node);
my ($rc, $out, $err) = $node->psql('postgres', "$only SELECT fails((SELECT max(k) FROM t WHERE k < 2000000000));\nSELECT count(*) FROM t WHERE k > 4000000000;", on_error_stop => 0);
like($err, qr/division by zero/, 'an error at the top');
is($out, $node->safe_psql('postgres', "$only SELECT count(*) FROM t WHERE bk > 4000000000"), '... and then');
cold($node);
($rc, $out, $err) = $node->psql('postgres', "$only SELECT count(*) FROM t x WHERE k > 0 AND (k < 1000000000 OR pg_cancel_backend(pg_backend_pid()));\nSELECT count(*) FROM t WHERE k > 4000000000;", on_error_stop => 0);
like($err, qr/canceling statement due to user request/, 'cancelled in the middle');
is($out, $node->safe_psql('postgres', "$only SELECT count(*) FROM t WHERE bk > 4000000000"), '... and then');

# ---- VACUUM does not wait for a cursor that is left alone, however many leaves it had on their way ----

foreach my $where ('k > 1000000000', "k = ANY ($array)")
{
	cold($node);
	my $cursor = $node->background_psql('postgres', on_error_stop => 1);
	$cursor->query_safe("$heap BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE $where ORDER BY k; MOVE 900 FROM c");
	my ($vacuumed) = $node->psql('postgres', "SET statement_timeout = '60s';\nDELETE FROM t WHERE b % 50 = 0 AND k > 1000000000;\nVACUUM (TRUNCATE off) t;", on_error_stop => 1);
	is($vacuumed, 0, "VACUUM beside a cursor, $where");
	my ($rest) = $cursor->query_safe("MOVE ALL FROM c");
	$cursor->query_safe('COMMIT');
	$cursor->quit;
	$node->safe_psql('postgres', "INSERT INTO t SELECT bk, b, bk FROM (SELECT (g * 2654435761) % 4294967291 AS bk, g AS b FROM generate_series(50::int8, 200000, 50) g) q WHERE bk > 1000000000");
}
is($node->psql('postgres', check_sql('t_k')), 0, 'amcheck is content');

# ---- a standby ----

$node->safe_psql('postgres', "VACUUM t; SELECT learnedbtree_train('t_k')");
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
foreach my $scan (@scans)
{
	my ($name, $query, $settings) = @$scan;
	(my $by_model = $query) =~ s/\bK\b/k/g;
	(my $by_btree = $query) =~ s/\bK\b/bk/g;
	is($standby->safe_psql('postgres', "$settings $by_model"), $standby->safe_psql('postgres', "$settings $by_btree"), "standby: $name: the answer");
}
($got, $n) = ask($standby, "SELECT 1", '');
cmp_ok($n, '>', 200, 'standby: leaves were brought in ahead');
$standby->stop;

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC: |TRAP: |terminated by signal|resource was not closed|buffer refcount leak|not owned by resource owner/, 'no crash, no pin left behind');
unlike(slurp_file($standby->logfile), qr/PANIC: |TRAP: |terminated by signal|resource was not closed|buffer refcount leak/, 'nor on the standby');
done_testing();
