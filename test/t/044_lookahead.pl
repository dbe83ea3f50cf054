# Nested loops that look ahead, among other sessions and faults: cold, with blocks counted; the model, settings and indexes
# changed in the middle of a batch; VACUUM beside an idle cursor; rows locked and changed concurrently; cancel and timeout;
# damaged pages that a LIMIT does not come to; parallel workers; a standby.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('lookahead');
$node->init(allows_streaming => 1);
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 2MB
max_connections = 12
effective_io_concurrency = 32
max_parallel_workers_per_gather = 0
enable_hashjoin = off
enable_mergejoin = off
enable_memoize = off
enable_material = off
enable_bitmapscan = off
learnedbtree.autotrain = off
learnedbtree.btree_indexes = 'all'
learnedbtree.min_leaves = 0
CONF
$node->append_conf('postgresql.conf', "session_preload_libraries = 'learnedbtree'\n") unless needs_preload($node);
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE big (k int8 NOT NULL, v int4, pad text);
INSERT INTO big SELECT (g * 2654435761) % 4294967291, g, repeat('x', 100) FROM generate_series(1::int8, 60000) g;
CREATE UNIQUE INDEX big_k ON big (k) WITH (fillfactor = 30);
CREATE TABLE probe (n int4, k int8);
INSERT INTO probe SELECT g, ((g * 77777 % 60000 + 1) * 2654435761) % 4294967291 FROM generate_series(1::int8, 3000) g;
CREATE FUNCTION stuck(n int4) RETURNS int4 STABLE LANGUAGE plpgsql AS $$
BEGIN
    IF n = 1050 THEN PERFORM pg_sleep(1000); END IF;
    RETURN n;
END $$;
-- (Immutable, by what they say: a stable function may read settings, so a cursor whose outer rows call one looks nothing up ahead.)
CREATE FUNCTION loud(n int4) RETURNS int4 IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'row %', n;
    RETURN n;
END $$;
CREATE SEQUENCE outer_rows;
CREATE FUNCTION counted(n int4) RETURNS int4 IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('outer_rows');
    RETURN n;
END $$;
VACUUM ANALYZE big, probe;
SELECT learnedbtree_train('big_k');
SQL

my $join = 'FROM probe p JOIN big b ON b.k = p.k';
my $right = $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = none; SET enable_nestloop = off; SET enable_hashjoin = on; SELECT count(*), sum(b.v), md5(string_agg(b.pad || b.v, '' ORDER BY p.n)) $join");
my $sum = "SELECT count(*), sum(b.v), md5(string_agg(b.pad || b.v, '' ORDER BY p.n)) $join";

sub has_node { return $_[0]->safe_psql('postgres', ($_[2] // '') . "EXPLAIN (COSTS OFF) $_[1]") =~ /Learned Look-Ahead/; }
ok(has_node($node, $sum), 'the plan has the node');

# ---- cold ----

sub cold_prefetched
{
	my ($rows) = @_;
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train('big_k'), learnedbtree_stat_reset()");
	my $out = $node->safe_psql('postgres', "SET learnedbtree.lookahead_rows = $rows; $sum; "
		  . "SELECT 'prefetched ' || prefetched FROM learnedbtree_stat WHERE indexrelname = 'big_k'");
	my ($n) = $out =~ /^prefetched (\d+)$/m;
	$out =~ s/\nprefetched.*//;
	is($out, $right, "cold, $rows rows: the answer");
	return $n;
}
is(cold_prefetched(0), 0, 'without looking ahead no leaf is brought in');
cmp_ok(cold_prefetched(64), '>', 500, 'looking ahead brings leaves in');
cold_prefetched(7);

# How many outer rows have been read, when so many have been fetched in memory or cold, and others after a change of settings.
sub rows_read
{
	my ($fetch, $then) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', 'SET learnedbtree.lookahead_rows = 8; BEGIN; DECLARE c CURSOR FOR SELECT p.n, b.v '
		  . "FROM (SELECT loud(n) AS n, k FROM probe OFFSET 0) p JOIN big b ON b.k = p.k; FETCH $fetch FROM c; " . ($then // '') . '; COMMIT');
	return scalar(my @notices = $err =~ /row \d+$/mg);
}

sub restart_cold
{
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train('big_k'), learnedbtree_stat_reset()");
}

restart_cold();
sub within
{
	my ($low, $high, $got, $name) = @_;
	ok($low <= $got && $got <= $high, $name) or diag("$got rows were read, not $low to $high");
}
within(16, 31, rows_read(15), 'cold: no more than a batch and a next one are read ahead of need');
is($node->safe_psql('postgres', $sum), $right, 'all of it is read');
rows_read(30);    # shared buffers do not hold all of it: now they have what comes next
within(16, 22, rows_read(15), 'in memory: no more than one batch');
within(4, 4, rows_read(4), 'none before the first rows have been joined');
restart_cold();
within(13, 13, rows_read(5, 'SET learnedbtree.enable = off; FETCH 8 FROM c'), 'cold, switched off: no further batch is begun');

# A client that fetches few rows at a time: reads end whenever the executor returns, and are taken up again.
sub rows_prefetched
{
	restart_cold();
	return ($node->safe_psql('postgres', "SET effective_io_concurrency = 4; BEGIN; DECLARE c CURSOR FOR SELECT p.n, b.v $join; "
			  . "@_ COMMIT; SELECT 'prefetched ' || rows_prefetched FROM learnedbtree_stat WHERE indexrelname = 'big_k'") =~ /prefetched (\d+)/)[0];
}
cmp_ok(rows_prefetched('FETCH 10 FROM c; ' x 301), '>', 0.95 * rows_prefetched('FETCH ALL FROM c;'), 'cold, ten rows at a time: as many blocks are brought in');

# Texts lie at no fixed place in an entry: their rows are found ahead all the same, under every collation, in either order.
my @collations = ('"C"');
push @collations, '"en-x-icu"' if $node->safe_psql('postgres', "SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu')") eq 't';
for my $collation (@collations)
{
	for my $order ('', 'DESC')
	{
		my $texts = 'FROM text_probe p JOIN texts b ON b.k = p.k';
		my $found = "SELECT count(*), sum(b.v) $texts";
		$node->safe_psql('postgres', <<"SQL");
CREATE TABLE texts (k text COLLATE $collation NOT NULL, v int4, pad text);
INSERT INTO texts SELECT 'user.' || (g * 2654435761) % 4294967291 || '\@example.com', g, repeat('x', 100) FROM generate_series(1::int8, 20000) g;
CREATE INDEX texts_k ON texts (k $order);
CREATE TABLE text_probe AS SELECT n, 'user.' || k || '\@example.com' AS k FROM probe WHERE n % 2 = 0;
VACUUM ANALYZE texts, text_probe;
SQL
		my $wanted = $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = none; SET enable_nestloop = off; SET enable_hashjoin = on; $found");
		$node->restart;
		$node->safe_psql('postgres', "SELECT learnedbtree_train('texts_k'), learnedbtree_stat_reset()");
		my ($got, $ahead) = split(/\n/, $node->safe_psql('postgres', "$found; SELECT rows_prefetched FROM learnedbtree_stat WHERE indexrelname = 'texts_k'"));
		is($got, $wanted, "texts, $collation $order: the right rows");
		cmp_ok($ahead, '>', 0.6 * (split /\|/, $wanted)[0], "texts, $collation $order: most of them are brought in ahead");
		$node->safe_psql('postgres', 'DROP TABLE texts, text_probe');
	}
}

# Of long keys a batch keeps the beginning: where that does not tell entries apart, no other row's block is read instead.
for my $collation (@collations)
{
	$node->safe_psql('postgres', <<"SQL");
CREATE TABLE longs (a text COLLATE $collation NOT NULL, b text COLLATE $collation NOT NULL, v int4, pad text);
INSERT INTO longs SELECT repeat('tenant ', 17) || (g * 2654435761) % 4294967291 % 50 + 10, 'user.0000' || (g * 2654435761) % 4294967291, g, repeat('x', 100)
FROM generate_series(1::int8, 20000) g;
CREATE INDEX longs_k ON longs (a, b);
CREATE TABLE long_probe AS SELECT a, b FROM longs WHERE v % 13 = 0 ORDER BY hashint4(v);
VACUUM ANALYZE longs, long_probe;
SELECT learnedbtree_train('longs_k');
SQL
	my $found = 'SELECT count(*), sum(l.v) FROM long_probe p JOIN longs l ON l.a = p.a AND l.b = p.b';
	ok(has_node($node, $found), "long texts, $collation: the plan has the node");
	my %read;
	for my $rows (0, 64)
	{
		$node->restart;
		$node->safe_psql('postgres', "SELECT learnedbtree_train('longs_k')");
		($read{$rows}) = $node->safe_psql('postgres', "SET learnedbtree.lookahead_rows = $rows; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) $found") =~ /read=(\d+)/;
	}
	cmp_ok($read{64}, '<', 1.15 * $read{0}, "long texts, $collation: no more blocks are read");
	$node->safe_psql('postgres', 'DROP TABLE longs, long_probe');
}

# ---- a batch is open, and things change ----

# A cursor some rows into a batch, whose outer rows have been read; what others do meanwhile; then the rest.
sub in_batch
{
	my ($name, $do, $own, $served) = @_;
	restart_cold();
	my $reader = $node->background_psql('postgres');
	$reader->query_safe('SET learnedbtree.btree_indexes = \'' . ($served // 'all') . "'; SELECT setval('outer_rows', 1, false); "
		  . 'BEGIN; DECLARE c CURSOR FOR SELECT p.n, b.v FROM (SELECT counted(n) AS n, k FROM probe OFFSET 0) p JOIN big b ON b.k = p.k;');
	my @rows = split(/\n/, $reader->query_safe('FETCH 100 FROM c;'));
	cmp_ok($reader->query_safe("SELECT currval('outer_rows');"), $served ? '==' : '>', 100, "$name: " . ($served ? 'no' : 'a') . ' batch is open');
	$node->safe_psql('postgres', "SET statement_timeout = '100s'; $_") foreach @$do;
	$reader->query_safe($_) foreach @{ $own // [] };
	push @rows, split(/\n/, $reader->query_safe('FETCH ALL FROM c;'));
	$reader->query_safe('ROLLBACK;');
	$reader->quit;
	is(scalar(grep { /\|/ } @rows), 3000, "$name: all rows");
	return join("\n", grep { /\|/ } @rows);
}
my $rows = in_batch('by btree', [], [], 'none');
is(in_batch('undisturbed', []), $rows, 'undisturbed: the same rows');
is(in_batch('trained again', ["SELECT learnedbtree_train('big_k')"]), $rows, 'trained again in mid-batch: the same rows');
is(in_batch('switched off', [], ['SET learnedbtree.enable = off;']), $rows, 'switched off in mid-batch: the same rows');
is(in_batch('not served', [], ["SET learnedbtree.btree_indexes = none;"]), $rows, 'not served in mid-batch: the same rows');
is(in_batch('no rows ahead', [], ['SET learnedbtree.lookahead_rows = 0;']), $rows, 'the setting changed in mid-batch: the same rows');
is(in_batch('own changes', [], ['UPDATE big SET v = 0 WHERE v % 3 = 0; DELETE FROM probe WHERE n > 50; SAVEPOINT s; DELETE FROM big; ROLLBACK TO s;']),
	$rows, 'own changes in mid-batch: the same rows');
is(in_batch('VACUUM', ['DELETE FROM big WHERE v > 55000 AND k NOT IN (SELECT k FROM probe)', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) big',
			'INSERT INTO big SELECT (g * 2654435761) % 4294967291, -g FROM generate_series(60001::int8, 70000) g', 'VACUUM big, probe']),
	$rows, 'VACUUM and recycled entries in mid-batch: VACUUM does not wait, and the same rows');
is(in_batch('UPDATE', ['UPDATE big SET v = v WHERE v % 4 = 0', 'UPDATE big SET v = v WHERE v % 8 = 0', 'VACUUM big']),
	$rows, 'rows changed and pruned in mid-batch: the same rows');
$node->safe_psql('postgres', 'CREATE TABLE other (i int4); DROP TABLE other; CREATE DATABASE gone; DROP DATABASE gone');

# ---- a kept plan, and its index ----

my $keeper = $node->background_psql('postgres');
$keeper->query_safe('SET plan_cache_mode = force_generic_plan; PREPARE q AS ' . $sum . ';');
is($keeper->query_safe('EXECUTE q;'), $right, 'a kept plan');
foreach my $ddl ('REINDEX INDEX big_k', 'REINDEX INDEX CONCURRENTLY big_k', 'ALTER TABLE big ADD extra int4', 'ALTER INDEX big_k RENAME TO big_kk',
	'DROP INDEX big_kk', 'CREATE UNIQUE INDEX big_k ON big (k) WITH (fillfactor = 30)', 'VACUUM FULL big', 'ALTER TABLE big ALTER pad TYPE varchar(200)')
{
	$node->safe_psql('postgres', $ddl);
	is($keeper->query_safe($ddl =~ /DROP INDEX/ ? 'SET enable_hashjoin = on; EXECUTE q; SET enable_hashjoin = off;' : 'EXECUTE q;'),
		$right, "a kept plan after $ddl");
}
$keeper->quit;
$node->safe_psql('postgres', "ANALYZE big; SELECT learnedbtree_train('big_k')");
ok(has_node($node, $sum), 'the new index is looked ahead into');

# ---- cancelled, in mid-batch ----

my $stuck = "SELECT count(b.v) FROM (SELECT stuck(n) AS s, k FROM probe OFFSET 0) p JOIN big b ON b.k = p.k WHERE s > 0";
ok(has_node($node, $stuck), 'the plan of the stuck query has the node');
my ($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '1s'; $stuck; SET statement_timeout = 0; $sum", on_error_stop => 0);
like($err, qr/statement timeout/, 'a timeout in mid-batch');
is($out, $right, '... leaves the session as it was');
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe('SELECT pg_backend_pid();');
$victim->query_until(qr/started/, "\\echo started\n$stuck;\n");
ok($node->poll_query_until('postgres', "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $pid"), 'a query waits in mid-batch');
$node->safe_psql('postgres', "SET statement_timeout = '100s'; SELECT pg_cancel_backend($pid); VACUUM (FREEZE) big");
is($victim->query("$sum;"), $right, 'cancelled in mid-batch, it leaves the session as it was');
$victim->quit;
is($node->safe_psql('postgres', <<"SQL"), "55|2940", 'a loop with commits and exceptions inside');
CREATE TABLE seen (n int4, v int8);
DO \$\$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT p.n, b.v $join LOOP
        BEGIN
            INSERT INTO seen VALUES (r.n, r.v);
            IF r.n % 50 = 0 THEN COMMIT; END IF;
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
        IF r.n % 60 = 0 THEN COMMIT; END IF;
        PERFORM 1 FROM big b WHERE b.k = r.n;
    END LOOP;
END \$\$;
SELECT 55, count(*) FROM seen;
SQL

# ---- rows locked and changed at the same time ----

foreach my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	my $writer = $node->background_psql('postgres');
	my $other = $node->background_psql('postgres', on_error_stop => 0);
	my $pid2 = $other->query_safe("SELECT pg_backend_pid();");
	$node->safe_psql('postgres', 'UPDATE probe SET n = abs(n)');
	$writer->query_safe("BEGIN; UPDATE probe SET n = -n WHERE n BETWEEN 30 AND 40; UPDATE big SET v = v + 1000000 WHERE k IN (SELECT k FROM probe WHERE n IN (50, 60));");
	$other->query_until(qr/started/, "\\echo started\nBEGIN ISOLATION LEVEL $level; WITH l AS (SELECT p.n, b.v $join WHERE p.n > 0 FOR UPDATE) SELECT count(*), count(*) FILTER (WHERE v > 1000000) FROM l;\n");
	ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid2"), "$level: waits for a locked row");
	$writer->query_safe('COMMIT;');
	$writer->quit;
	my $got = $other->query('COMMIT; SELECT 1;');
	if ($level eq 'READ COMMITTED') { like($got, qr/^2989\|2$/m, "$level: rows are checked again, one by one"); }
	else { like($other->{stderr}, qr/could not serialize/, "$level: an error of the kind that asks for a retry"); }
	$other->quit;
	$node->safe_psql('postgres', 'UPDATE probe SET n = abs(n); UPDATE big SET v = v - 1000000 WHERE v > 1000000');
}

# ---- parallel ----

my $parallel = "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ";
like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS OFF) $sum"), qr/Gather.*Learned Look-Ahead.*Parallel/s, 'a parallel plan has the node below Gather');
is($node->safe_psql('postgres', "$parallel $sum"), $right, 'parallel: the answer');

# ---- a standby ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('lookahead_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
is($standby->safe_psql('postgres', $sum), $right, 'standby: the answer of the first query');
$standby->poll_query_until('postgres', "SELECT state = 'ready' FROM learnedbtree_model('big_k')");
ok(has_node($standby, $sum), 'standby: the plan has the node');
is($standby->safe_psql('postgres', $sum), $right, 'standby: the answer');
$standby->stop;

# ---- damaged pages ----

my $far = $node->safe_psql('postgres', 'SELECT k FROM probe p WHERE n = 900');
my $leaf = leaf_of($node, 'big_k', $far);
my $heap = $node->safe_psql('postgres', "SELECT (ctid::text::point)[0]::int FROM big WHERE k = (SELECT k FROM probe WHERE n = 930)");
my %file = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } ('big', 'big_k');
$node->safe_psql('postgres', 'CREATE TABLE first AS SELECT * FROM probe WHERE n <= 1000 ORDER BY n; ANALYZE first; CHECKPOINT');
$node->stop;

sub overwrite
{
	my ($file, $block, $byte) = @_;
	open(my $fh, '+<', $file) or die "$file: $!";
	binmode $fh;
	seek($fh, $block * 8192, 0);
	read($fh, my $was, 8192);
	seek($fh, $block * 8192, 0);
	print $fh length($byte) == 1 ? $byte x 8192 : $byte;
	close $fh;
	return $was;
}

# With the server stopped before and after.
sub damaged
{
	my ($mode, @bytes) = @_;
	foreach my $case ([ 'big_k', $leaf, 899, 900 ], [ 'big', $heap, 929, 930 ])
	{
		my ($relation, $block, $good, $bad) = @$case;
		foreach my $byte (@bytes)
		{
			# rows of an empty page are gone for good: scans mark their entries dead
			next if $relation eq 'big' && $byte eq "\0";
			my $what = sprintf('%s%s, bytes %02x', $mode, $relation, ord($byte));
			my $was = overwrite($file{$relation}, $block, $byte);
			$node->start;
			$node->safe_psql('postgres', "SELECT learnedbtree_train('big_k')");
			my $query = "SELECT p.n, length(b.pad) AS len FROM first p LEFT JOIN big b ON b.k = p.k AND p.n >= $bad - 60 AND p.n <> 900 - 60 LIMIT";
			ok(has_node($node, "$query 1000"), "$what: the plan has the node");
			my ($rc1, $out1, $err1) = $node->psql('postgres', "SET learnedbtree.lookahead_rows = 0; SELECT count(len) FROM ($query " . ($bad - 10) . ') q');
			my ($rc2, $out2, $err2) = $node->psql('postgres', "SELECT count(len) FROM ($query " . ($bad - 10) . ') q');
			is("$rc2|$out2|$err2", "$rc1|$out1|$err1", "$what: what the limit does not come to does not matter");
			($rc1, $out1, $err1) = $node->psql('postgres', "SET learnedbtree.lookahead_rows = 0; SELECT count(len) FROM ($query 1000) q");
			($rc2, $out2, $err2) = $node->psql('postgres', "SELECT count(len) FROM ($query 1000) q");
			isnt($rc1, 0, "$what: an error") if $byte eq "\xff";
			is("$rc2|$out2|$err2", "$rc1|$out1|$err1", "$what: and what it comes to is what it is without looking ahead");
			is($node->safe_psql('postgres', 'SELECT count(*) FROM probe'), '3000', "$what: the server lives");
			$node->stop;
			overwrite($file{$relation}, $block, $was);
		}
	}
}
damaged('', "\0", "\xff", "\x5a");
$node->start;
is($node->safe_psql('postgres', $sum), $right, 'the pages are back: the answer');

my $log = slurp_file($node->logfile);
unlike($log, qr/TRAP:|PANIC:|refcount leak|leaked|terminated by signal/, 'nothing has leaked or crashed');
$node->stop;
done_testing();
