# Blocks of the table brought in ahead of need: cold index scans of rows in random order, with few shared buffers, against
# btree's engine; what brings none, or few; no further than a LIMIT; cursors, marks, locks and changes in the middle; errors, cancelled queries,
# VACUUM beside an idle cursor.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('rows_ahead');
$node->init(allows_streaming => 1);
configure_node($node);
$node->append_conf('postgresql.conf', "shared_buffers = 1MB\neffective_io_concurrency = 16\nlearnedbtree.autotrain = off\n"
	  . "max_parallel_workers_per_gather = 0\nenable_seqscan = off\nenable_bitmapscan = off\nenable_sort = off\nmax_connections = 10\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE t (k int8, a int4, n int8, pad text);
INSERT INTO t SELECT (g * 2654435761) % 4294967291, (g * 7919) % 40, g, repeat('x', 150) FROM generate_series(1::int8, 60000) g;
CREATE INDEX t_k ON t USING learnedbtree (k);
CREATE INDEX t_a ON t USING learnedbtree (a, k);
VACUUM ANALYZE t;
-- rows in the order of the index; several rows a key
CREATE TABLE s (k int8, n int8, pad text);
INSERT INTO s SELECT g / 3, g, repeat('x', 150) FROM generate_series(1::int8, 30000) g;
CREATE INDEX s_k ON s USING learnedbtree (k);
CREATE TABLE m (k int8, n int8, pad text);
INSERT INTO m SELECT (g * 7919) % 4001, g, repeat('x', 150) FROM generate_series(1::int8, 20000) g;
CREATE INDEX m_k ON m USING learnedbtree (k);
VACUUM ANALYZE s, m;
SQL

# (a server without contrib modules does not have it)
my $shows_pins = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache'}) eq '1';
$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache') if $shows_pins;

sub train { return $_[0]->safe_psql('postgres', "SELECT learnedbtree_train(c.oid::regclass) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'learnedbtree' AND relkind = 'i'; SELECT learnedbtree_stat_reset()"); }

# Everything that is in shared buffers goes, by a restart.
sub cold
{
	$node->restart;
	train($node);
	return;
}

# What a query says, and how many blocks of tables were brought in ahead for it.
sub ask
{
	my ($query, $settings) = @_;
	my $out = $node->safe_psql('postgres', ($settings // '') . "\nSELECT learnedbtree_stat_reset();\n$query;\nSELECT 'prefetched ' || sum(rows_prefetched) FROM learnedbtree_stat");
	my ($n) = $out =~ /^prefetched (\d+)$/m;
	$out =~ s/^prefetched.*\n?//m;
	$out =~ s/^\n+//;
	chomp $out;
	return ($out, $n);
}

my $only = 'SET enable_indexonlyscan = on;';
my $heap = 'SET enable_indexonlyscan = off;';
my $list = 'ARRAY(SELECT (g * 2654435761) % 4294967291 FROM generate_series(1::int8, 70000, 90) g)';
# query, settings, the least number of blocks, and, where few are right, the greatest
my @scans = (
	[ 'a range', 'SELECT count(pad), sum(n) FROM t WHERE k BETWEEN 1000000000 AND 1200000000', $heap, 1000 ],
	[ 'a range backward', 'SELECT md5(string_agg(n::text, \',\')) FROM (SELECT n FROM t WHERE k BETWEEN 1000000000 AND 1200000000 ORDER BY k DESC) q', $heap, 1000 ],
	[ 'a range of one leaf', 'SELECT count(pad), sum(n) FROM t WHERE k BETWEEN 1000000000 AND 1010000000', $heap, 50 ],
	[ 'a prefix', 'SELECT count(pad), sum(n) FROM t WHERE a = 17', $heap, 800 ],
	[ 'a prefix backward', 'SELECT md5(string_agg(n::text, \',\')) FROM (SELECT n FROM t WHERE a = 17 ORDER BY k DESC) q', $heap, 800 ],
	[ 'a list', "SELECT count(pad), sum(n) FROM t WHERE k = ANY ($list)", $heap, 400 ],
	[ 'a list backward', "SELECT md5(string_agg(n::text, ',')) FROM (SELECT n FROM t WHERE k = ANY ($list) ORDER BY k DESC) q", $heap, 400 ],
	[ 'a list and a range', 'SELECT count(pad), sum(n) FROM t WHERE a IN (3, 9, 30) AND k < 1000000000', $heap, 500 ],
	[ 'index only', 'SELECT count(*), sum(k) FROM t WHERE k BETWEEN 1000000000 AND 2000000000', $only, 50 ],
	[ 'index only, backward', 'SELECT md5(string_agg(k::text, \',\')) FROM (SELECT k FROM t WHERE k BETWEEN 1000000000 AND 2000000000 ORDER BY k DESC) q', $only, 50 ],
	[ 'the first 100', 'SELECT md5(string_agg(n::text, \',\')) FROM (SELECT n FROM t WHERE k > 2000000000 ORDER BY k LIMIT 100) q', $heap, 50 ],
	[ 'ascending blocks', 'SELECT count(pad), sum(n) FROM s WHERE k BETWEEN 1000 AND 8000', $heap, 0, 20 ],
	[ 'locked rows', 'SELECT md5(string_agg(n::text, \',\')) FROM (SELECT n FROM t WHERE k BETWEEN 1500000000 AND 1600000000 ORDER BY k FOR UPDATE) q', $heap, 500 ],
	[ 'a merge join', 'SELECT count(*), sum(x.n + y.n) FROM m x JOIN m y ON x.k = y.k WHERE x.k BETWEEN 100 AND 2000 AND y.k BETWEEN 200 AND 3000',
		"$heap SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_material = off;", 500 ],
	[ 'rescans', 'SELECT count(*), sum(q.s) FROM generate_series(1, 20) g, LATERAL (SELECT sum(n) s FROM (SELECT n FROM t WHERE k >= g * 200000000::int8 ORDER BY k LIMIT 30) i) q', $heap, 200 ],
	# what was predicted for one list is not for the next
	[ 'rescans of a list', 'SELECT count(*), sum(n) FROM (SELECT array_agg((g * 2654435761) % 4294967291) list FROM generate_series(1::int8, 60000, 77) g '
		. 'GROUP BY g % 40) q JOIN t ON k = ANY (list)', $heap, 500 ],
	[ 'a list with three quarters that are not there', "SELECT count(pad), sum(n) FROM t WHERE k = ANY (@{[ $list =~ s/70000/280000/r ]})", $heap, 400 ]);

sub scans
{
	my ($what) = @_;
	$node->safe_psql('postgres', 'VACUUM t');
	foreach my $scan (@scans)
	{
		my ($name, $query, $settings, $least, $most) = @$scan;
		my ($oracle) = ask($query, "SET learnedbtree.enable = off; $settings");
		# blocks that are not all-visible, as scans may have made them
		$node->safe_psql('postgres', 'SET enable_seqscan = on; UPDATE t SET n = n WHERE n % 300 = 0') if $settings eq $only;
		cold();
		my ($got, $n) = ask($query, $settings);
		is($got, $oracle, "$what: $name: the answer");
		cmp_ok($n, '>=', $least, "$what: $name: blocks were brought in ahead") if $least > 0;
		cmp_ok($n, '<=', $most, "$what: $name: few") if defined $most;
	}
}

scans('buffered');
like($node->safe_psql('postgres', "$scans[13][2] EXPLAIN (COSTS OFF) $scans[13][1]"), qr/Merge Join/, 'the merge join is one');

# ---- none, or few ----

cold();
foreach my $scan (@scans)
{
	my ($name, $query, $settings) = @$scan;
	my (undef, $n) = ask($query, "$settings SET learnedbtree.enable_row_prefetch = off;");
	is($n, 0, "switched off: $name: none");
}
foreach my $limit ([ 1, 0 ], [ 2, 0 ], [ 5, 4 ], [ 10, 9 ])
{
	my ($rows, $most) = @$limit;
	cold();
	my (undef, $n) = ask("SELECT pad FROM t WHERE k > 1000000000 ORDER BY k LIMIT $rows", $heap);
	cmp_ok($n, '<=', $most, "LIMIT $rows: few");
}
(undef, my $n) = ask($scans[0][1], "$heap SET effective_io_concurrency = 0;");
is($n, 0, 'no concurrency: none');
$node->append_conf('postgresql.conf', "shared_buffers = 64MB\n");
cold();
ask($_, $heap) foreach ('SELECT count(pad) FROM t WHERE k > 0', 'SELECT count(pad) FROM t WHERE a > 0');
foreach my $scan (@scans[ 0 .. 10 ])
{
	my ($name, $query, $settings) = @$scan;
	(undef, $n) = ask($query, $settings);
	is($n, 0, "all blocks in shared buffers: $name: none");
}
$node->append_conf('postgresql.conf', "shared_buffers = 1MB\n");

# ---- no further than a LIMIT, where the plan tells ----

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE r (LIKE t) PARTITION BY RANGE (k);
CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (MINVALUE) TO (1010000000);
CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (1010000000) TO (MAXVALUE);
CREATE TABLE h (LIKE t) PARTITION BY HASH (n);
CREATE TABLE h1 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE h2 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO r SELECT * FROM t;
INSERT INTO h SELECT * FROM t;
CREATE INDEX ON r USING learnedbtree (k);
CREATE INDEX ON h USING learnedbtree (k);
VACUUM ANALYZE r, h;
CREATE FUNCTION by_sql(int8, int8) RETURNS SETOF int8 LANGUAGE sql VOLATILE AS 'SELECT n FROM t WHERE k > $1 ORDER BY k LIMIT $2';
CREATE FUNCTION by_plpgsql(from_key int8, rows int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r record;
    seen text := '';
BEGIN
    FOR r IN SELECT n FROM t WHERE k > from_key ORDER BY k LIMIT rows LOOP
        seen := seen || ' ' || r.n;
    END LOOP;
    RETURN seen;
END $$;
CREATE FUNCTION within(from_key int8, fails bool) RETURNS int8 LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT sum(n / CASE WHEN fails THEN 0 ELSE 1 END) FROM (SELECT n FROM t WHERE k > from_key + 100000000 ORDER BY k LIMIT 5) q);
EXCEPTION WHEN division_by_zero THEN
    RETURN -1;
END $$;
SQL
my $some = 'FROM t WHERE k > 1000000000 ORDER BY k';
my $generic = 'SET plan_cache_mode = force_generic_plan; PREPARE p(int8, %s) AS SELECT n FROM t WHERE k > $1 ORDER BY k LIMIT %s; EXECUTE p(1000000000, 40)';
# query, the least and the greatest number of blocks; the latter undef: as far as without a LIMIT
my @limits = (
	[ 'a constant', "SELECT n $some LIMIT 40", 30, 39 ],
	[ 'backward', "SELECT n $some DESC LIMIT 40", 30, 39 ],
	[ 'an offset', "SELECT n $some LIMIT 20 OFFSET 20", 30, 39 ],
	[ 'a generic plan', sprintf($generic, 'int8', '$2'), 30, 39 ],
	[ 'an int4 parameter', sprintf($generic, 'int4', '$2'), 30, 39 ],
	[ 'an expression', sprintf($generic, 'int4', '$2 / 2 OFFSET $2 / 2'), 30, 39 ],
	[ 'a generic plan, again', sprintf($generic, 'int8', '$2') . '; EXECUTE p(3000000000, 10)', 35, 48 ],
	[ 'an SQL function', 'SELECT by_sql(1000000000, 40)', 0, 39 ],
	[ 'PL/pgSQL', 'SELECT by_plpgsql(1000000000, 40)', 30, 39 ],
	[ 'PL/pgSQL, of a kept plan', 'SELECT by_plpgsql(g * 300000000::int8, 10) FROM generate_series(1, 10) g', 50, 90 ],
	[ 'locked rows', "SELECT n $some LIMIT 40 FOR UPDATE", 30, 39 ],
	[ 'columns computed', "SELECT n * 2, k || 'x' $some LIMIT 40", 30, 39 ],
	[ 'a subquery', "SELECT sum(n) FROM (SELECT n + 1 AS n $some LIMIT 40) q", 30, 39 ],
	[ 'a limit from an outer row', 'SELECT g, (SELECT sum(n) FROM (SELECT n FROM t WHERE k > g * 100000000::int8 ORDER BY k LIMIT g) q) FROM generate_series(1, 20) g', 100, 190 ],
	[ 'partitions, one after the other', "SELECT n FROM r WHERE k > 1009500000 ORDER BY k LIMIT 40", 20, 39 ],
	[ 'partitions, merged', "SELECT n FROM h WHERE k > 1000000000 ORDER BY k LIMIT 40", 20, 80 ],
	[ 'the same index within', "SELECT n, within(k, false) $some LIMIT 20", 15, 19 + 20 * 4 ],
	[ 'an error within', "SELECT n, within(k, n % 5 = 0) $some LIMIT 20", 15, 19 + 20 * 4 + 20 ],
	[ 'a cursor', "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT n $some LIMIT 40; FETCH 10 FROM c; FETCH 35 FROM c; FETCH BACKWARD 25 FROM c; FETCH ALL FROM c; COMMIT", 20, undef ],
	[ 'all rows', "SELECT n $some LIMIT ALL", 1000, undef ],
	[ 'a great offset', "SELECT n $some LIMIT 9223372036854775807 OFFSET 9223372036854775807", 1000, undef ],
	[ 'none', "SELECT n $some LIMIT 0", 0, 0 ],
	[ 'ties', "SELECT n $some FETCH FIRST 20 ROWS WITH TIES", 20, undef ],
	[ 'a filter', "SELECT n FROM t WHERE k > 1000000000 AND n % 2 = 0 ORDER BY k LIMIT 20", 30, undef ]);

sub limits
{
	my ($what) = @_;
	foreach my $limit (@limits)
	{
		my ($name, $query, $least, $most) = @$limit;
		my ($oracle) = ask($query, "SET learnedbtree.enable = off; $heap");
		cold();
		my ($got, $n) = ask($query, $heap);
		is($got, $oracle, "$what: $name: the answer");
		cmp_ok($n, '>=', $least, "$what: $name: blocks were brought in ahead") if $least > 0;
		cmp_ok($n, '<=', $most, "$what: $name: ... and none behind the LIMIT") if defined $most;
	}
}

limits('buffered');

# ---- to and fro, changes, errors: in the middle of it all ----

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION walk(query text, change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    r record;
    x int8 := 1;
    seen text := '';
BEGIN
    OPEN c SCROLL FOR EXECUTE query;
    FOR i IN 1..40 LOOP
        x := (x * 1103515245 + 12345) % 2147483648;
        FOR j IN 1..CASE (x / 65536) % 3 WHEN 0 THEN 5 WHEN 1 THEN 40 ELSE 200 END LOOP
            IF (x / 1048576) % 3 = 0 THEN FETCH PRIOR FROM c INTO r; ELSE FETCH NEXT FROM c INTO r; END IF;
            seen := md5(seen || coalesce(r::text, '-'));
        END LOOP;
        IF i % 7 = 0 AND change <> '' THEN EXECUTE change; END IF;
    END LOOP;
    CLOSE c;
    RETURN seen;
END $$;
SQL
make_scans_that_fail($node, 'n', 150);

sub in_the_middle
{
	my ($what) = @_;
	my %walks = ('k > 500000000' => 'k', "k = ANY ($list)" => 'k', 'a IN (2, 5, 7) AND k > 100000000' => 'a, k');
	foreach my $where (sort keys %walks)
	{
		foreach my $change ("SELECT learnedbtree_train('t_k')", 'INSERT INTO t SELECT (g * 2654435761) % 4294967291 + 1, g % 40, g, NULL FROM generate_series(1::int8, 60000, 500) g', 'SET learnedbtree.enable_row_prefetch = off')
		{
			my $call = "BEGIN; SELECT walk(\$\$SELECT k, n, a FROM t WHERE $where ORDER BY $walks{$where}\$\$, '" . ($change =~ s/'/''/gr) . "'); ROLLBACK";
			my ($oracle) = ask($call, "SET learnedbtree.enable = off; $heap");
			cold();
			my ($got) = ask($call, $heap);
			is($got, $oracle, "$what: to and fro, $where, $change");
		}
	}
	cold();
	my ($got) = ask("SELECT catches(); SELECT catches()", $heap);
	is($got, "20\n20", "$what: errors caught in the middle");
	cold();
	my ($rc, $out, $err) = $node->psql('postgres', "$heap SELECT fails((SELECT n FROM t WHERE k > 1500000000 ORDER BY k LIMIT 1));\nSELECT count(pad) FROM t WHERE k > 4000000000;", on_error_stop => 0);
	like($err, qr/division by zero/, "$what: an error at the top");
	my $rest = $node->safe_psql('postgres', "SET learnedbtree.enable = off; SELECT count(pad) FROM t WHERE k > 4000000000");
	is($out, $rest, "$what: ... and then");
	cold();
	($rc, $out, $err) = $node->psql('postgres', "$heap SELECT count(pad) FROM t WHERE k > 0 AND (k < 1000000000 OR pg_cancel_backend(pg_backend_pid()));\nSELECT count(pad) FROM t WHERE k > 4000000000;", on_error_stop => 0);
	like($err, qr/canceling statement due to user request/, "$what: cancelled in the middle");
	is($out, $rest, "$what: ... and then");
	cold();
	# rows that the statement itself changes, while their blocks are on their way
	my $change = 'BEGIN; UPDATE t SET n = n + 1 WHERE k BETWEEN 1000000000 AND 1200000000; DELETE FROM t WHERE k BETWEEN 1100000000 AND 1150000000; '
	  . 'SELECT count(*), sum(n) FROM t WHERE k BETWEEN 1000000000 AND 1200000000; ROLLBACK';
	my ($oracle) = ask($change, "SET learnedbtree.enable = off; $heap");
	cold();
	($got) = ask($change, $heap);
	is($got, $oracle, "$what: rows changed by the scan's own statement");
}

in_the_middle('buffered');

# ---- VACUUM does not wait for a cursor that is left alone, however many blocks it had on their way ----

sub vacuum_beside_cursor
{
	my ($what) = @_;
	foreach my $where ('k > 1000000000', "k = ANY ($list)")
	{
		cold();
		my $cursor = $node->background_psql('postgres', on_error_stop => 1);
		$cursor->query_safe("$heap BEGIN; DECLARE c SCROLL CURSOR FOR SELECT n FROM t WHERE $where ORDER BY k; MOVE 300 FROM c");
		# the block of the row that the cursor is at; others for a moment, by who writes them out
		my $pinned = 'SELECT count(*) = 1 FROM pg_buffercache WHERE relfilenode = pg_relation_filenode(\'t\') AND relforknumber = 0 AND pinning_backends > 0';
		ok($node->poll_query_until('postgres', $pinned), "$what: blocks pinned by an idle cursor, $where") if $shows_pins;
		my ($vacuumed) = $node->psql('postgres', "SET statement_timeout = '60s';\nSET enable_seqscan = on;\nUPDATE t SET n = n WHERE n % 20 = 0;\nVACUUM (TRUNCATE off) t;", on_error_stop => 1);
		is($vacuumed, 0, "$what: VACUUM beside a cursor, $where");
		$cursor->query_safe('MOVE ALL FROM c');
		$cursor->query_safe('COMMIT');
		$cursor->quit;
	}
}

vacuum_beside_cursor('buffered');

# ---- a damaged page of the table behind what is needed ----

sub damaged_page
{
	my ($what) = @_;
	my ($from, $limit) = (3000000000, 40);
	# (with a filter, lest the scan knows of the LIMIT)
	my $query = "SELECT n FROM t WHERE k > $from AND n >= 0 ORDER BY k LIMIT $limit";
	my $rows = $node->safe_psql('postgres', "$heap SET learnedbtree.enable = off; $query");
	# the blocks of the rows behind, but for those that are needed
	my @behind = split /\n/, $node->safe_psql('postgres', <<"SQL");
$heap WITH q AS (SELECT ctid, row_number() OVER (ORDER BY k) o FROM (SELECT ctid, k FROM t WHERE k > $from ORDER BY k LIMIT $limit + 12) i),
b AS (SELECT split_part(trim('(' FROM ctid::text), ',', 1)::int block, o FROM q)
SELECT block FROM b GROUP BY block HAVING min(o) > $limit ORDER BY min(o)
SQL
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t')");
	$node->safe_psql('postgres', 'CHECKPOINT');
	train($node);
	$node->stop;
	my %kept;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	foreach my $block (@behind)
	{
		seek($fh, $block * 8192, 0);
		read($fh, $kept{$block}, 8192);
		seek($fh, $block * 8192, 0);
		print $fh "\xff" x 8192;
	}
	close $fh or die "$file: $!";
	$node->start;
	my ($got, $n) = ask($query, $heap);
	is($got, $rows, "$what: damaged pages behind a LIMIT");
	cmp_ok($n, '>', 20, "$what: ... were near what was read ahead");
	my ($rc, $out, $err) = $node->psql('postgres', "$heap SELECT n FROM t WHERE k > $from AND n >= 0 ORDER BY k LIMIT $limit + 30;\n$query;", on_error_stop => 0);
	like($err, qr/invalid page in block/, "$what: ... and an error, if they are needed");
	like($out, qr/\Q$rows\E$/, "$what: ... after which the session goes on");
	$node->stop;
	open($fh, '+<:raw', $file) or die "$file: $!";
	foreach my $block (@behind) { seek($fh, $block * 8192, 0); print $fh $kept{$block}; }
	close $fh or die "$file: $!";
	$node->start;
}

damaged_page('buffered');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC: |TRAP: |terminated by signal|resource was not closed|buffer refcount leak|not owned by resource owner/, 'no crash, no pin left behind');
done_testing();
