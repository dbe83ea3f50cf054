# Random operations by several sessions at once, with fixed seeds, on tables that have the same keys in
# a learnedbtree index and, in mirror columns, in a btree index.  Every answer is compared between the
# learnedbtree index, the btree index and a sequential scan, within one snapshot.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{LBT_SEED} || 20240917;
my $clients = 4;
my $transactions = $ENV{LBT_ORACLE_TRANSACTIONS} || 900;    # a client and shape
my $rows = 12000;
my $domain = 20000;    # keys are made from integers below it

# Shapes of keys: type, expression of it from the integer n, place in the order; of a second column, where there
# is one, the type, and its expression from an integer n of three digits.
my $number = { type => 'int8', key => 'n::int8' };
my $word = { type => 'text', key => q{left('word' || lpad(n::text, 3, '0') || md5(n::text), 7 + n % 20)} };
my @shapes = (
	{ name => 'int8', type => 'int8', key => 'n::int8 * 7919 - 20000000' },
	{ name => 'int4_desc', type => 'int4', key => 'n * 11', order => 'DESC', fillfactor => 10 },
	{ name => 'pair', type => 'int4', key => 'n / 200', second => $number },
	{ name => 'float8', type => 'float8', key => '(n - 9000)::float8 / 7' },
	{ name => 'stamp', type => 'timestamptz', key => q{'2024-01-01 00:00+00'::timestamptz + n * interval '61 s'}, fillfactor => 10 },
	{ name => 'duplicates', type => 'int8', key => '(n % 25)::int8', fillfactor => 50 },
	{ name => 'nulls', type => 'int8', key => 'CASE WHEN n % 4 = 0 THEN NULL ELSE n::int8 END', order => 'NULLS FIRST', fillfactor => 10 },
	{ name => 'text', type => 'text', key => q{'user' || lpad(n::text, 5, '0') || left(md5(n::text), n % 7)}, fillfactor => 30 },
	{ name => 'text_desc', type => 'text', key => q{lpad(n::text, 5, '0') || repeat('x', n % 5 * 200)}, order => 'DESC' },
	{ name => 'bytea', type => 'bytea', key => q{int4send(n * 3) || substr('\x00ff00'::bytea, 1, n % 4)}, fillfactor => 10 },
	{ name => 'uuid', type => 'uuid', key => q{left(lpad(to_hex(n * 211), 8, '0') || md5(n::text), 32)::uuid} },
	{ name => 'number_text', type => 'int4', key => 'n / 200', second => $word },
	{ name => 'text_number', type => 'text', key => q{'group ' || lpad((n / 100)::text, 3, '0')}, second => $number });

my $node = new_node('oracle');

# How a query is answered: the columns it names, and which paths the planner may take.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION force_path(path text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('enable_seqscan', (path = 'seq')::text, true),
		set_config('enable_sort', (path IN ('seq', 'bitmap'))::text, true),
		set_config('enable_bitmapscan', (path = 'bitmap')::text, true),
		set_config('enable_indexscan', (path IN ('index', 'only'))::text, true),
		set_config('enable_indexonlyscan', (path = 'only')::text, true);
END $$;

-- The answer of one query, in which K and S stand for the key columns, from one place.
CREATE FUNCTION answer(query text, k text, s text, path text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	result text;
BEGIN
	PERFORM force_path(path);
	EXECUTE replace(replace(query, '@K', k), '@S', s) INTO result;
	RETURN result;
END $$;

-- Compare the answers; one call is one snapshot, as a STABLE function's queries all use its caller's.
CREATE FUNCTION compare(query text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	expected text := answer(query, 'bk', 'bs', 'seq');
	place text[];
	result text;
BEGIN
	FOREACH place SLICE 1 IN ARRAY ARRAY[['k', 's', 'index'], ['k', 's', 'only'], ['k', 's', 'bitmap'],
										 ['bk', 'bs', 'only']]
	LOOP
		result := answer(query, place[1], place[2], place[3]);
		IF result IS DISTINCT FROM expected THEN
			RAISE EXCEPTION 'wrong answer by % on %', place[3], place[1]
				USING DETAIL = format('query: %s; sequential: %s; index: %s', query, expected, result);
		END IF;
	END LOOP;
END $$;
SQL

# A query about the shape's table, chosen by a number.  n1 <= n2 are integers within the domain.
sub query_function
{
	my ($shape) = @_;
	my $name = $shape->{name};
	my $second = $shape->{second} // $number;
	my $columns = $shape->{second} ? '@K, @S' : '@K';
	my $pick = "SELECT string_agg(concat_ws(',', $columns), ' ') FROM (SELECT $columns FROM t_$name";
	my ($forth, $back) = ('', 'DESC');
	($forth, $back) = ('DESC', '') if ($shape->{order} // '') eq 'DESC';
	($forth, $back) = ('NULLS FIRST', 'DESC NULLS LAST') if ($shape->{order} // '') eq 'NULLS FIRST';
	my $forward = "ORDER BY \@K $forth" . ($shape->{second} ? ", \@S $forth" : '');
	my $backward = "ORDER BY \@K $back" . ($shape->{second} ? ", \@S $back" : '');
	my @conditions = (
		'@K = {1}', '@K = {1}', '@K BETWEEN {1} AND {2}', '@K > {1} AND @K < {2}', '@K >= {1}', '@K <= {1}',
		'@K < {1}', '@K > {2}', '@K IN ({1}, {2}, {3})', '@K IS NULL', '@K IS NOT NULL',
		'@K >= {1} AND @K IN ({1}, {2})', '@K > {2} AND @K < {1}');
	@conditions = (@conditions, '@K = {1} AND @S = {s}', '@K = {1} AND @S > {s}', '@K = {1} AND @S <= {s}',
		'(@K, @S) > ({1}, {s})', '@K = {1} AND @S BETWEEN {s} AND {s2}', '@S = {s}')
	  if $shape->{second};
	my $ends = $shape->{type} =~ /^(bytea|uuid)$/ ? 'count(@K)' : 'min(@K), max(@K)';	# not on every version
	my @queries;
	foreach my $condition (@conditions)
	{
		push @queries, "$pick WHERE $condition $forward) q", "$pick WHERE $condition $backward) q",
		  "$pick WHERE $condition $forward LIMIT 7) q", "$pick WHERE $condition $backward LIMIT 7) q",
		  "$pick WHERE $condition $backward OFFSET 90 LIMIT 3) q",
		  "SELECT concat_ws(' ', count(*), $ends, sum(id)) FROM t_$name WHERE $condition";
	}
	my $list = join(",\n", map { "\$q\$$_\$q\$" } @queries);
	return <<"SQL";
CREATE FUNCTION check_$name(choice int, n1 int, n2 int, s int) RETURNS void LANGUAGE plpgsql STABLE AS \$\$
DECLARE
	queries text[] := ARRAY[$list];
	query text := queries[1 + choice % cardinality(queries)];
BEGIN
	query := replace(query, '{1}', coalesce(quote_literal(key_$name(n1)) || '::$shape->{type}', 'NULL'));
	query := replace(query, '{2}', coalesce(quote_literal(key_$name(n2)) || '::$shape->{type}', 'NULL'));
	query := replace(query, '{3}', coalesce(quote_literal(key_$name((n1 + n2) / 2)) || '::$shape->{type}', 'NULL'));
	query := replace(query, '{s}', quote_literal(second_$name(s)) || '::$second->{type}');
	query := replace(query, '{s2}', quote_literal(second_$name(least(s + 20, 999))) || '::$second->{type}');
	PERFORM compare(query);
END \$\$;
SQL
}

# pgbench's scripts for a shape, with weights.  id is no key: rows change place in the index.
sub scripts
{
	my ($shape) = @_;
	my $name = $shape->{name};
	my $new = "key_$name(n), key_$name(n), second_$name((n * 31) % 1000), second_$name((n * 31) % 1000)";
	my $n = "\\set n random(0, $domain - 1)\n";
	my $doomed = "SELECT id FROM t_$name WHERE k >= key_$name(:n) AND k <= key_$name(:n + 400)";
	my $range = "\\set c random(0, 1000000)\n\\set m :n + random(0, 200)\n\\set s random(0, 999)\n";
	return (
		check => [ 40, "$n${range}SELECT check_$name(:c, :n, :m, :s);" ],
		insert => [ 9, "${n}INSERT INTO t_$name (k, bk, s, bs) SELECT $new FROM (SELECT :n AS n) q;" ],
		insert_many => [ 3, $n . "INSERT INTO t_$name (k, bk, s, bs) SELECT $new FROM "
			. "(SELECT (:n + i) % $domain AS n FROM generate_series(1, 200) i) q;" ],
		update => [ 6, $n . "WITH old AS MATERIALIZED (SELECT id FROM t_$name WHERE k = key_$name(:n) LIMIT 1 FOR UPDATE SKIP LOCKED) "
			. "UPDATE t_$name t SET k = key_$name(n), bk = key_$name(n), v = v + 1 FROM "
			. "(SELECT (:n + 7777) % $domain AS n) q, old WHERE t.id = old.id;" ],
		delete => [ 3, $n . "DELETE FROM t_$name WHERE id IN (SELECT id FROM t_$name WHERE k = key_$name(:n) LIMIT 20 FOR UPDATE SKIP LOCKED);" ],
		delete_many => [ 2, $n . "DELETE FROM t_$name WHERE id IN ($doomed LIMIT 400 FOR UPDATE SKIP LOCKED);" ],
		rollback => [ 3, $n . "BEGIN;\nINSERT INTO t_$name (k, bk, s, bs) SELECT $new FROM "
			. "(SELECT :n AS n FROM generate_series(1, 30)) q;\nROLLBACK;" ],
		train => [ 1, "SELECT learnedbtree_train('l_$name');" ],
		vacuum => [ 3, "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t_$name;" ]);
}

foreach my $shape (@shapes)
{
	my $name = $shape->{name};
	my $order = $shape->{order} // '';
	my $fillfactor = $shape->{fillfactor} // 90;
	my ($learned, $btree) = $shape->{second} ? ("k $order, s", "bk $order, bs") : ("k $order", "bk $order");
	my $key = $shape->{key} =~ s/'/''/gr;
	my $second = $shape->{second} // $number;
	my $second_key = $second->{key} =~ s/'/''/gr;
	my ($k_type, $s_type) = map { $_ eq 'text' ? 'text COLLATE "C"' : $_ } $shape->{type}, $second->{type};

	$node->safe_psql('postgres', <<"SQL");
CREATE FUNCTION key_$name(n int) RETURNS $shape->{type} LANGUAGE sql STABLE AS 'SELECT $key';
CREATE FUNCTION second_$name(n int) RETURNS $second->{type} LANGUAGE sql STABLE AS 'SELECT $second_key';
CREATE TABLE t_$name (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k $k_type, bk $k_type,
	s $s_type, bs $s_type, v int DEFAULT 0);
INSERT INTO t_$name (k, bk, s, bs) SELECT key_$name(n), key_$name(n), second_$name((n * 31) % 1000), second_$name((n * 31) % 1000)
	FROM (SELECT (i * 37) % $domain AS n FROM generate_series(1, $rows) i) q;
CREATE INDEX l_$name ON t_$name USING learnedbtree ($learned) WITH (fillfactor = $fillfactor);
CREATE INDEX b_$name ON t_$name USING btree ($btree) WITH (fillfactor = $fillfactor);
VACUUM ANALYZE t_$name;
SQL
	$node->safe_psql('postgres', query_function($shape));

	my %scripts = scripts($shape);
	my %files = map { ("005_oracle_${name}_$_\@$scripts{$_}[0]" => $scripts{$_}[1]) } keys %scripts;
	$node->pgbench("--no-vacuum --client=$clients --jobs=2 --transactions=$transactions --random-seed=$seed",
		0, [qr{processed: (\d+)/\1}], [qr/^(?!.*(ERROR|wrong answer))/s],
		"$name: every answer is the same by learnedbtree, btree and sequential scan", \%files);

	is($node->psql('postgres', "SELECT learnedbtree_check('l_$name', true, true)"), 0,
		"$name: amcheck finds nothing wrong with the index file");
	my ($lookups, $share) = split /\|/,
	  stat_of($node, "l_$name", 'lookups, round(100.0 * verified / greatest(lookups, 1), 1)');
	note("$name: $lookups lookups, $share % verified; ", stat_of($node, "l_$name", 'moved_right, '
		  . 'fallback_no_model, fallback_block, fallback_page, fallback_low, fallback_high, delegated, trainings'));
	cmp_ok($lookups, '>', 500, "$name: our engine was used");
	cmp_ok($share, '>', 70, "$name: most predictions were right, for all the splits and deleted pages");
}

$node->stop;
done_testing();
