# Random operations by several sessions at once, with fixed seeds, on tables that have the same keys in a
# learnedbtree index and, in mirror columns, in a btree index.  Every answer is compared between the
# learnedbtree index, the btree index and a sequential scan, within one snapshot.
#
# A shape is a table: name; columns, one to three; fillfactor; before, SQL that its types need; share of
# LBT_ORACLE_TRANSACTIONS.  A column:
#   type     of the column; argument: of what it is compared with, where that is another
#   key      SQL expression of a key from the integer n, below 20,000 for the first column, 1,000 for the others
#   real     instead of key where LBT_KEYS names a folder that has it: file, and expression of a key from line
#   sorted   number the keys in their own order, so that ranges of n are ranges of keys
#   order    as in CREATE INDEX
#   collate, opclass
#   show     expression of @ that is the same for keys that compare equal
#   pattern  compared by the operators of the pattern operator classes
#   endless  there is no min() and max() on every version
package Oracle;

use strict;
use warnings;

use Exporter 'import';
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(oracle_node try_shapes real_keys libc_locale collations);

my $seed = $ENV{LBT_SEED} || 20240917;
my $transactions = $ENV{LBT_ORACLE_TRANSACTIONS} || 50;    # a client and shape, times its share
my $clients = 4;
my $rows = 12000;
my $locale_made;
my @domain = (undef, 20000, 1000, 1000);    # keys of a column are made from integers below it

my %backward = ('' => 'DESC', 'DESC' => '', 'NULLS FIRST' => 'DESC NULLS LAST', 'DESC NULLS LAST' => 'NULLS FIRST');

# What does not depend on a shape: how queries are chosen, completed and answered.
my $machinery = <<'SQL';
CREATE TABLE shape_column (shape text, nr int, argument text, domain int, PRIMARY KEY (shape, nr));
CREATE TABLE shape_query (shape text, choice int, query text, PRIMARY KEY (shape, choice));

-- Which paths the planner may take.
CREATE FUNCTION force_path(path text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('enable_seqscan', (path = 'seq')::text, true),
		set_config('enable_sort', (path IN ('seq', 'bitmap'))::text, true),
		set_config('enable_bitmapscan', (path = 'bitmap')::text, true),
		set_config('enable_indexscan', (path IN ('index', 'only'))::text, true),
		set_config('enable_indexonlyscan', (path = 'only')::text, true);
END $$;

CREATE FUNCTION answer(query text, path text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	result text;
BEGIN
	PERFORM force_path(path);
	EXECUTE query INTO result;
	RETURN result;
END $$;

-- Compare the answers; one call is one snapshot, as a STABLE function's queries all use its caller's.  In
-- a query @1 stands for the first key column.
CREATE FUNCTION compare(learned text, mirror text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	expected text := answer(mirror, 'seq');
	result text;
	path text;
BEGIN
	FOREACH path IN ARRAY ARRAY['index', 'only', 'bitmap', 'btree'] LOOP
		result := CASE path WHEN 'btree' THEN answer(mirror, 'only') ELSE answer(learned, path) END;
		IF result IS DISTINCT FROM expected THEN
			RAISE EXCEPTION 'wrong answer by %', path
				USING DETAIL = format('query: %s; sequential: %s; index: %s', learned, expected, result);
		END IF;
	END LOOP;
END $$;

-- The text of a key, or of an array of keys, of a shape's column.  a, b and c are keys from low, high and the
-- middle; list10 is an array of ten, some near low and some anywhere, each third one a duplicate;
-- list10null has NULLs in it, too.
CREATE FUNCTION argument(shape text, column_nr int, kind text, low int, high int) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	c shape_column := (SELECT c FROM shape_column c WHERE c.shape = argument.shape AND c.nr = column_nr);
	keys text := format('keys_%s_%s', shape, column_nr);
	result text;
BEGIN
	IF kind ~ '^list' THEN
		EXECUTE format('SELECT quote_literal(coalesce(array_agg(k ORDER BY j), ''{}'')::text) || %L '
					   'FROM generate_series(1, $1) j LEFT JOIN %s ON NOT ($2 AND j %% 5 = 4) AND '
					   'n = CASE j %% 3 WHEN 0 THEN $3 + j ELSE $3 + (j - (j + 1) %% 3) * 7919 END %% $4',
					   '::' || c.argument || '[]', keys)
		   INTO result
		  USING substring(kind, '\d+')::int, kind ~ 'null', low, c.domain;
		RETURN result;
	END IF;
	EXECUTE format('SELECT quote_literal(k) || %L FROM %s WHERE n = $1', '::' || c.argument, keys) INTO result
	  USING least(CASE kind WHEN 'a' THEN low WHEN 'b' THEN high ELSE (low + high) / 2 END, c.domain - 1);
	RETURN coalesce(result, 'NULL');
END $$;

-- A query with its arguments; [:a:1:] stands for a key of the first column.  The further columns' keys are
-- those of the row that n makes, or others, by the parity of s.
CREATE FUNCTION complete(shape text, template text, n int, m int, s int) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	result text := template;
	place text[];
	low int;
BEGIN
	FOR place IN SELECT DISTINCT p FROM regexp_matches(template, '\[:(\w+):(\d):\]', 'g') p LOOP
		low := CASE WHEN place[2] = '1' THEN n WHEN s % 2 = 0 THEN s WHEN place[2] = '2' THEN n * 31 % 1000 ELSE n * 57 % 1000 END;
		result := replace(result, format('[:%s:%s:]', place[1], place[2]),
						 argument(shape, place[2]::int, place[1], low, CASE WHEN place[2] = '1' THEN m ELSE low + 20 END));
	END LOOP;
	RETURN result;
END $$;

CREATE FUNCTION check_shape(shape text, choice int, n int, m int, s int) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	template text := (SELECT q.query FROM shape_query q WHERE q.shape = check_shape.shape AND
					  q.choice = check_shape.choice % (SELECT count(*) FROM shape_query q WHERE q.shape = check_shape.shape));
BEGIN
	PERFORM compare(complete(shape, replace(template, '@', 'k'), n, m, s), complete(shape, replace(template, '@', 'b'), n, m, s));
END $$;

-- Which of these conditions is not served by our own engine?  The planner may look for a column's ends itself, and
-- does so as often without executing the query.
CREATE FUNCTION not_ours(shape text, condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := complete(shape, format('SELECT count(*) FROM t_%s WHERE %s', shape, replace(condition, '@', 'k')), 7001, 7101, 6);
	stat record;
	planned record;
	done record;
BEGIN
	PERFORM force_path('index');
	SELECT lookups, delegated INTO stat FROM learnedbtree_stat WHERE indexrelname = 'l_' || shape;
	EXECUTE 'EXPLAIN ' || query;
	SELECT lookups, delegated INTO planned FROM learnedbtree_stat WHERE indexrelname = 'l_' || shape;
	EXECUTE query;
	SELECT lookups, delegated INTO done FROM learnedbtree_stat WHERE indexrelname = 'l_' || shape;
	IF done.delegated - planned.delegated > planned.delegated - stat.delegated THEN
		RETURN condition || ' was delegated';
	ELSIF done.lookups - planned.lookups <= planned.lookups - stat.lookups THEN
		RETURN condition || ' looked nothing up';
	END IF;
	RETURN NULL;
END $$;
SQL

# A started server for shapes.  Its database is UTF8, and its default collation C's.
sub oracle_node
{
	my ($name) = @_;
	my $node = new_node($name, extra => [ '--encoding=UTF8', '--locale=C' ]);
	# Texts of all kinds have models, in small indexes, too.
	$node->append_conf('postgresql.conf', "learnedbtree.debug_sort_keys = always\n");
	$node->restart;
	$node->safe_psql('postgres', $machinery);
	return $node;
}

# Let servers that are started from now on have the libc locale en_US.UTF-8, where localedef can make it.
sub libc_locale
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my ($out, $err) = eval { run_command([ 'localedef', '-i', 'en_US', '-f', 'UTF-8', "$folder/en_US.UTF-8" ]) };
	$locale_made = -e "$folder/en_US.UTF-8/LC_COLLATE";
	$ENV{LOCPATH} = $folder if $locale_made;
}

# The collations that there are to try: a hash of names by what they stand for.  libc: a language's order by
# libc; icu: by ICU, which then has made icu_nocase, too, that takes case for no difference, icu_numeric, that
# orders digits as numbers, icu_hungarian, where "dzs" is a letter, and icu_shifted, where punctuation is nothing; unicode:
# code points, by the server itself (17).
sub collations
{
	my ($node) = @_;
	my %found;
	$node->safe_psql('postgres', q{CREATE COLLATION en_made (provider = libc, locale = 'en_US.UTF-8')}) if $locale_made;
	$found{libc} = $locale_made ? 'en_made' : $node->safe_psql('postgres', q{SELECT collname FROM pg_collation WHERE collprovider = 'c' AND
		collencoding IN (-1, 6) AND collname ~ '^(en|de|fr)_' ORDER BY collname LIMIT 1});
	$found{icu} = $node->safe_psql('postgres', q{SELECT collname FROM pg_collation WHERE collprovider = 'i' AND collname = 'en-x-icu'});
	$found{unicode} = $node->safe_psql('postgres', q{SELECT collname FROM pg_collation WHERE collprovider = 'b' AND collname = 'pg_c_utf8'});
	if ($found{icu})
	{
		$node->safe_psql('postgres', <<'SQL');
CREATE COLLATION icu_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION icu_numeric (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION icu_hungarian (provider = icu, locale = 'hu');
CREATE COLLATION icu_shifted (provider = icu, locale = 'en-u-ka-shifted');
SQL
		$found{$_} = $_ foreach qw(icu_nocase icu_numeric icu_hungarian icu_shifted);
	}
	delete @found{ grep { !$found{$_} } keys %found };
	return %found;
}

# The lines of a file of real keys, no more than a first column can have; none without the file.
sub real_keys
{
	my ($file) = @_;
	my $path = ($ENV{LBT_KEYS} // '') . "/$file.xz";
	return () if !$ENV{LBT_KEYS} || !-r $path;
	my ($out, $err) = run_command([ 'xz', '-dc', $path ]);
	my @lines = split /\n/, $out;
	die "no keys in $path: $err" unless @lines;
	my $step = @lines > $domain[1] ? @lines / $domain[1] : 1;
	return map { $lines[ $_ * $step ] } 0 .. ($domain[1] < @lines ? $domain[1] : @lines) - 1;
}

# A condition with a column's own operators: {<} stands for its <.
sub with_operators
{
	my ($condition, @columns) = @_;
	$condition =~ s/(\@(\d)) \{([<>]=?)\}/$columns[$2 - 1]{pattern} ? "$1 ~$3~" : "$1 $3"/ge;
	return $condition;
}

# Conditions; the first of them are those that our own engine serves.
sub conditions
{
	my (@columns) = @_;
	my @ours = (
		'@1 = [:a:1:]', '@1 {>=} [:a:1:] AND @1 {<=} [:b:1:]', '@1 = ANY ([:list10:1:])',
		'@1 = ANY ([:list10null:1:])', '@1 IS NULL', '@1 IS NOT NULL');
	my @others = (
		'@1 = [:a:1:]', '@1 {>} [:a:1:] AND @1 {<} [:b:1:]', '@1 {>=} [:a:1:]', '@1 {<=} [:a:1:]',
		'@1 {<} [:a:1:]', '@1 {>} [:b:1:]', '@1 IN ([:a:1:], [:b:1:], [:c:1:])', 'true', '@1 IS NOT NULL AND @1 {<=} [:b:1:]',
		'@1 {>} [:b:1:] AND @1 {<} [:a:1:]', '@1 {>=} [:a:1:] AND @1 IN ([:a:1:], [:b:1:])',
		'@1 = ANY ([:list0:1:])', '@1 = ANY ([:list1:1:])', '@1 = ANY ([:list2:1:])', '@1 = ANY ([:list300null:1:])',
		'@1 = ANY ([:list5null:1:]) OR @1 = [:b:1:]', '@1 = ANY ([:list300:1:]) AND @1 {>} [:a:1:]',
		'@1 = ANY ([:list10:1:]) AND @1 {<=} [:b:1:] AND @1 {>=} [:a:1:]',
		'@1 = ANY ([:list10:1:]) AND @1 = ANY ([:list300:1:])', '@1 = ANY ([:list10:1:]) AND @1 = [:a:1:]');
	# The server's own assertions do not hold for rows that begin with NULL where the first column is descending.
	my $row = ($columns[0]{order} // '') =~ /DESC/ ? '[:a:1:] IS NOT NULL AND ' : '';
	if (@columns > 1)
	{
		push @ours, '@1 = [:a:1:] AND @2 = [:a:2:]', '@1 = [:a:1:] AND @2 {>} [:a:2:]',
		  '@1 = [:a:1:] AND @2 = ANY ([:list10:2:])', '@1 = ANY ([:list10:1:]) AND @2 = ANY ([:list10:2:])',
		  '@1 = ANY ([:list10:1:]) AND @2 {>} [:a:2:]', '@1 = [:a:1:] AND @2 IS NULL';
		push @others, '@1 = [:a:1:] AND @2 {<=} [:a:2:]', "$row(\@1, \@2) > ([:a:1:], [:a:2:])", '@2 = [:a:2:]',
		  '@1 = [:a:1:] AND @2 {>=} [:a:2:] AND @2 {<=} [:b:2:]', '@1 = ANY ([:list300:1:]) AND @2 = ANY ([:list10null:2:])',
		  '@1 = ANY ([:list2:1:]) AND @2 = ANY ([:list300:2:]) AND @2 {<} [:b:2:]', '@2 = ANY ([:list2:2:])',
		  '@1 {>} [:a:1:] AND @2 = ANY ([:list10:2:])', '@1 IS NULL AND @2 {<=} [:a:2:]', '@1 = [:a:1:] AND @2 IS NOT NULL';
	}
	if (@columns > 2)
	{
		push @ours, '@1 = [:a:1:] AND @2 = [:a:2:] AND @3 {>} [:a:3:]',
		  '@1 = ANY ([:list2:1:]) AND @2 = [:a:2:] AND @3 = ANY ([:list300:3:])',
		  '@1 = ANY ([:list10:1:]) AND @2 = ANY ([:list10:2:]) AND @3 = ANY ([:list10:3:])';
		push @others, "$row(\@1, \@2, \@3) <= ([:a:1:], [:a:2:], [:a:3:])", '@1 = [:a:1:] AND @3 = [:a:3:]',
		  '@1 = [:a:1:] AND (@2, @3) > ([:a:2:], [:a:3:])',
		  '@1 = [:a:1:] AND @2 = ANY ([:list10:2:]) AND @3 {>=} [:a:3:] AND @3 {<} [:b:3:]',
		  '@1 = [:a:1:] AND @2 {>} [:a:2:] AND @3 = ANY ([:list10null:3:])';
	}
	return ([ map { with_operators($_, @columns) } @ours ], [ map { with_operators($_, @columns) } @ours, @others ]);
}

# ORDER BY in the index's order, and in the reverse one.
sub orders
{
	my (@columns) = @_;
	my (@forth, @back);
	foreach my $i (0 .. $#columns)
	{
		my $order = $columns[$i]{order} // '';
		my $nr = '@' . ($i + 1);
		my @ways = map { "$nr $_" } $order, $backward{$order};
		@ways = map { s/ DESC/ USING ~>~/r =~ s/^(@\d) (?!USING)/$1 USING ~<~ /r } @ways if $columns[$i]{pattern};
		push @forth, $ways[0];
		push @back, $ways[1];
	}
	return ('ORDER BY ' . join(', ', @forth), 'ORDER BY ' . join(', ', @back));
}

sub queries
{
	my ($name, $conditions, @columns) = @_;
	my @shown = map { ($columns[$_]{show} // '@') =~ s/@/'@' . ($_ + 1)/ger } 0 .. $#columns;
	my $pick = 'SELECT string_agg(concat_ws(\',\', ' . join(', ', map { "s$_" } 1 .. @columns) . '), \' \') FROM (SELECT '
	  . join(', ', map { "$shown[$_] AS s" . ($_ + 1) } 0 .. $#columns) . " FROM t_$name";
	my $ends = 'count(@1)';
	$ends = join(', ', map { ($columns[0]{show} // '@') =~ s/@/$_(\@1)/gr } 'min', 'max')
	  unless $columns[0]{endless} || $columns[0]{pattern};
	my ($forward, $backward) = orders(@columns);
	# Some leaves' rows; how many there are in all is the last query's.
	my $enough = 'LIMIT 700';
	return map {
		("$pick WHERE $_ $forward $enough) q", "$pick WHERE $_ $backward $enough) q",
		 "$pick WHERE $_ $forward LIMIT 7) q", "$pick WHERE $_ $backward LIMIT 7) q",
		 "$pick WHERE $_ $backward OFFSET 90 LIMIT 3) q",
		 "SELECT concat_ws(' ', count(*), $ends, sum(id)) FROM t_$name WHERE $_")
	} @$conditions;
}

# A shape's tables, keys, queries and indexes.
sub create_shape
{
	my ($node, $shape, $queries) = @_;
	my $name = $shape->{name};
	my @columns = @{ $shape->{columns} };
	my ($sql, @definition, @learned, @btree) = ('');
	foreach my $i (1 .. @columns)
	{
		my $column = $columns[ $i - 1 ];
		my $type = $column->{type} . ($column->{collate} ? qq( COLLATE "$column->{collate}") : '');
		my $key = $column->{key};
		my $source = "generate_series(0, $domain[$i] - 1) n";
		my @lines = $column->{real} && $i == 1 ? real_keys($column->{real}{file}) : ();
		if (@lines)
		{
			$sql .= "CREATE TABLE lines_$name (line text);\nCOPY lines_$name FROM STDIN;\n"
			  . join('', map { s/\\/\\\\/gr . "\n" } @lines) . "\\.\n";
			($key, $source) = ($column->{real}{key}, "lines_$name");
		}
		my $number = $column->{sorted} || @lines ? "row_number() OVER (ORDER BY q.k) - 1" : 'q.n';
		$source = "(SELECT *, row_number() OVER () AS n FROM $source) l" if @lines;
		push @definition, "k$i $type, b$i $type";
		my $how = join(' ', grep { $_ } $column->{opclass}, $column->{order});
		push @learned, "k$i $how";
		push @btree, "b$i $how";
		$sql .= <<"SQL";
CREATE TABLE keys_${name}_$i (n int PRIMARY KEY, k $type);
INSERT INTO keys_${name}_$i SELECT $number, q.k FROM (SELECT n, ($key)::$type AS k FROM $source) q;
ANALYZE keys_${name}_$i;
CREATE FUNCTION key_${name}_$i(n int) RETURNS $column->{type} LANGUAGE sql STABLE
	AS 'SELECT k FROM keys_${name}_$i q WHERE q.n = \$1';
INSERT INTO shape_column VALUES ('$name', $i, '@{[ $column->{argument} // $column->{type} ]}', $domain[$i]);
SQL
	}
	my $choice = 0;
	$sql .= "INSERT INTO shape_query VALUES " . join(",\n", map { "('$name', " . $choice++ . ", \$q\$$_\$q\$)" } @$queries) . ";\n";
	my $fillfactor = $shape->{fillfactor} // 90;
	my $some = new_rows($shape, "SELECT (i * 37) % $domain[1] AS n FROM generate_series(1, $rows) i");
	local $" = ', ';
	$node->safe_psql('postgres', ($shape->{before} // '') . $sql . <<"SQL");
CREATE TABLE t_$name (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, @definition, v int DEFAULT 0);
$some;
CREATE INDEX l_$name ON t_$name USING learnedbtree (@learned) WITH (fillfactor = $fillfactor);
CREATE INDEX b_$name ON t_$name USING btree (@btree) WITH (fillfactor = $fillfactor);
VACUUM ANALYZE t_$name;
SQL
}

# Insert a row for each n of a query.
sub new_rows
{
	my ($shape, $from) = @_;
	my $name = $shape->{name};
	my @number = (undef, 'n', 'n * 31 % 1000', 'n * 57 % 1000');
	my @nrs = 1 .. @{ $shape->{columns} };
	return "INSERT INTO t_$name (" . join(', ', map { "k$_, b$_" } @nrs) . ') SELECT ' . join(', ', map { "x$_, x$_" } @nrs)
	  . ' FROM (SELECT ' . join(', ', map { "key_${name}_$_($number[$_]) AS x$_" } @nrs) . " FROM ($from) q OFFSET 0) r";
}

# pgbench's scripts for a shape, with weights.  id is no key: rows change place in the index.
sub scripts
{
	my ($shape) = @_;
	my $name = $shape->{name};
	my $n = "\\set n random(0, $domain[1] - 1)\n";
	my $range = "\\set c random(0, 1000000)\n\\set m :n + random(0, 200)\n\\set s random(0, 979)\n";
	my $key = "(SELECT key_${name}_1(:n))";
	my $doomed = with_operators("SELECT id FROM t_$name WHERE \@1 {>=} $key AND "
		. "\@1 {<=} (SELECT key_${name}_1(least(:n + 400, $domain[1] - 1)))", @{ $shape->{columns} }) =~ s/@/k/gr;
	return (
		check => [ 40, "$n${range}SELECT check_shape('$name', :c, :n, :m, :s);" ],
		insert => [ 9, $n . new_rows($shape, 'SELECT :n AS n') . ';' ],
		insert_many => [ 3, $n . new_rows($shape, "SELECT (:n + i) % $domain[1] AS n FROM generate_series(1, 200) i") . ';' ],
		update => [ 6, $n . "WITH old AS MATERIALIZED (SELECT id FROM t_$name WHERE k1 = $key LIMIT 1 FOR UPDATE SKIP LOCKED) "
			. "UPDATE t_$name t SET k1 = x, b1 = x, v = v + 1 FROM "
			. "(SELECT key_${name}_1((:n + 7777) % $domain[1]) AS x OFFSET 0) q, old WHERE t.id = old.id;" ],
		delete => [ 3, $n . "DELETE FROM t_$name WHERE id IN (SELECT id FROM t_$name WHERE k1 = $key LIMIT 20 FOR UPDATE SKIP LOCKED);" ],
		delete_many => [ 2, $n . "DELETE FROM t_$name WHERE id IN ($doomed LIMIT 400 FOR UPDATE SKIP LOCKED);" ],
		rollback => [ 3, "${n}BEGIN;\n" . new_rows($shape, 'SELECT :n AS n FROM generate_series(1, 30)') . ";\nROLLBACK;" ],
		train => [ 1, "SELECT learnedbtree_train('l_$name');" ],
		vacuum => [ 3, "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t_$name;" ]);
}

sub try_shape
{
	my ($node, $shape) = @_;
	my $name = $shape->{name};
	my ($ours, $conditions) = conditions(@{ $shape->{columns} });
	my $times = int($transactions * ($shape->{share} // 1)) || 1;
	my $started = time;

	create_shape($node, $shape, [ queries($name, $conditions, @{ $shape->{columns} }) ]);
	my %scripts = scripts($shape);
	my %files = map { ("oracle_${name}_$_\@$scripts{$_}[0]" => $scripts{$_}[1]) } keys %scripts;
	$node->pgbench("--no-vacuum --client=$clients --jobs=2 --transactions=$times --random-seed=$seed",
		0, [qr{processed: (\d+)/\1}], [qr/^(?!.*(ERROR|wrong answer))/s],
		"$name: every answer is the same by learnedbtree, btree and sequential scan", \%files);

	is($node->psql('postgres', check_sql("l_$name")), 0,
		"$name: amcheck finds nothing wrong with the index file");
	my ($lookups, $verified) = split /\|/, stat_of($node, "l_$name", 'lookups, verified');
	my $share = share($verified, $lookups);
	note("$name: $lookups lookups, $share % verified; ", stat_of($node, "l_$name", 'moved_right, '
		  . 'fallback_no_model, fallback_block, fallback_page, fallback_low, fallback_high, delegated, trainings'),
		'; ', time - $started, ' s');
	cmp_ok($lookups, '>', $times, "$name: our engine was used");
	my @list = map { "(\$q\$$_\$q\$)" } @$ours;
	local $" = ', ';
	is($node->safe_psql('postgres', "SELECT learnedbtree_train('l_$name');\n"
		. "SELECT not_ours('$name', c) FROM (VALUES @list) v (c) WHERE not_ours('$name', c) IS NOT NULL") =~ s/^\n//r, '',
		"$name: keys, ranges and arrays are all looked up by our engine");

	# By now each leaf has been split, emptied or moved; alone, as how soon a busy machine retrains is another matter.
	settle($node);
	($lookups, $verified) = split /\|/, stat_of($node, "l_$name", 'lookups, verified');
	$node->pgbench("--no-vacuum --transactions=20 --random-seed=$seed", 0, [qr{processed: (\d+)/\1}],
		[qr/^(?!.*(ERROR|wrong answer))/s], "$name: every answer is the same when nobody writes",
		{ "oracle_${name}_alone" => $scripts{check}[1] });
	settle($node);
	my ($later, $right) = split /\|/, stat_of($node, "l_$name", 'lookups, verified');
	cmp_ok(share($right - $verified, $later - $lookups), '>', 70, "$name: most predictions are right, for all the splits and deleted pages");
}

sub share
{
	my ($part, $whole) = @_;
	return sprintf('%.1f', 100 * $part / ($whole || 1));
}

sub try_shapes
{
	my ($node, @shapes) = @_;
	try_shape($node, $_) foreach @shapes;
}

1;
