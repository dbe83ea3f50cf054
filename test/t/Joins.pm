# Shared by the TAP tests of nested loops that look ahead: tables, and random queries that join them.
package Joins;

use strict;
use warnings;

use Draw;
use Exporter 'import';

our @EXPORT = qw(make_join_tables random_joins);

# ---- tables ----

# Rows of a table, and how many different values its columns have.  k and n repeat, n, t and u are NULL at times; w is wide,
# and out of line in some rows.  For small tables there is no looking ahead, so p, also in the primary key's index, makes
# large ones of few rows.
my %tables = (a => [ 4000, 1500, 400 ], b => [ 3000, 1000, 300 ], c => [ 600, 500, 200 ], d => [ 2000, 800, 250 ]);

# In database postgres, with the functions and the sequence that queries use.
sub make_join_tables
{
	my ($node) = @_;
	$node->safe_psql('postgres', <<'SQL');
CREATE SEQUENCE counter;
CREATE FUNCTION word(int) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'w' || md5(($1 % 700)::text);
CREATE FUNCTION identity(int) RETURNS uuid LANGUAGE sql IMMUTABLE RETURN md5(($1 % 900)::text)::uuid;
SQL
	foreach my $table (sort keys %tables)
	{
		my ($rows, $keys, $few) = @{ $tables{$table} };
		my $partitioned = $table eq 'd' ? 'PARTITION BY RANGE (id)' : '';
		my $parts = join('', map { "CREATE TABLE d$_ PARTITION OF d FOR VALUES FROM (@{[ $_ * 700 ]}) TO (@{[ ($_ + 1) * 700 ]});\n" } 0 .. 9);
		$parts = '' unless $partitioned;
		# Spreads row numbers, so that keys come in no order.
		my $mixed = "(g * 7919 + @{[ ord $table ]})";
		my $columns = "id, k, n, t, u, v, p, w";
		my $row = sub {
			"g, $mixed % $keys, nullif($mixed % $few, 7), CASE WHEN g % 11 > 0 THEN word($mixed) END, "
			  . "CASE WHEN g % 13 > 0 THEN identity($mixed) END, g % 100, repeat(chr(97 + g % 26), 1300), "
			  . "CASE g % 40 WHEN 1 THEN (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 120) i) "
			  . "WHEN 2 THEN repeat('x', 300) ELSE 'w' || g END";
		};
		$node->safe_psql('postgres', <<"SQL");
CREATE TABLE $table (id int8, k int4 NOT NULL, n int4, t text COLLATE "C", u uuid, v int4, p text, w text) $partitioned;
ALTER TABLE $table ALTER p SET STORAGE PLAIN;
$parts
INSERT INTO $table ($columns) SELECT @{[ $row->() ]} FROM generate_series(1, $rows) g;
ALTER TABLE $table ADD PRIMARY KEY (id) INCLUDE (v, p) WITH (fillfactor = 40);
CREATE INDEX ON $table (k);
CREATE INDEX ON $table (k, n);
CREATE INDEX ON $table (n DESC) INCLUDE (v);
CREATE INDEX ON $table (t);
CREATE INDEX ON $table (u, k);
DELETE FROM $table WHERE id % 9 = 0;
VACUUM ANALYZE $table;
DELETE FROM $table WHERE id % 17 = 0;
UPDATE $table SET v = v + 1 WHERE id % 29 = 0;
UPDATE $table SET k = (k + 5) % $keys WHERE id % 101 = 0;
INSERT INTO $table ($columns) SELECT @{[ $row->() ]} FROM generate_series($rows + 1, $rows + 50) g;
SQL
	}
	return;
}

# ---- random queries ----

my $aliases;

# A table under a new name: [SQL, alias].
sub relation
{
	my $table = one_of(qw(a a b b c d));
	my $alias = 'r' . ++$aliases;
	return ("$table AS $alias", $alias);
}

# A condition by which an index of $inner can be searched for a row of $outer; few inner rows have it.
sub condition
{
	my ($inner, $outer) = @_;
	my $number = one_of("$outer.k", "$outer.n", "$outer.id", "$outer.v", "$outer.k + 3", "($outer.n * 2)", "$outer.k::int8", "abs($outer.v - 50)");
	my $condition = one_of(
		"$inner.id = $number", "$inner.id = $number", "$inner.k = $number", "$inner.k = $number", "$inner.n = $number",
		"$inner.t = $outer.t", "$inner.t = word($outer.v)", "$inner.u = $outer.u", "$inner.u = $outer.u AND $inner.k = $outer.k",
		"$inner.k = $number AND $inner.n = $outer.n", "$inner.k = $outer.k AND $inner.n > $outer.n",
		"$inner.id BETWEEN $number AND $number + 2", "$inner.k >= $outer.k AND $inner.k < $outer.k + 2",
		"$inner.id IN ($outer.k, $outer.n)", "$inner.k = ANY (ARRAY[$outer.v, $outer.n, NULL])", "$inner.k = 77 AND $inner.n = $outer.n",
		"($inner.k, $inner.n) = ($outer.k, $outer.n)");
	$condition .= one_of(" AND $inner.v < 60", " AND $inner.v + $outer.v > 40", " AND $outer.v <> 13", " AND length($inner.w) > 3") if chance(35);
	return $condition;
}

# Few rows of a relation.
sub window
{
	my ($alias, $width) = @_;
	my $low = draw(2500);
	return one_of("$alias.id BETWEEN $low AND @{[ $low + $width ]}", "$alias.id BETWEEN $low AND @{[ $low + $width ]}", "$alias.k < @{[ $width / 4 ]}",
		"$alias.id > @{[ 4000 - $width ]}");
}

# A join of $count relations: (SQL, condition on the first, aliases of those whose columns can be used above).
sub join_tree
{
	my ($count) = @_;
	my ($sql, $first) = relation();
	my @seen = ($first);
	foreach (2 .. $count)
	{
		my ($right, $alias);
		my $join = one_of('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
		my $on;
		if (chance(15))
		{
			# The right side is a join itself.
			my ($inside, $second) = relation();
			($right, $alias) = relation();
			$on = condition($alias, one_of(@seen));
			$right = "($right " . one_of('JOIN', 'LEFT JOIN') . " $inside ON " . condition($second, $alias) . ')';
			push @seen, $alias, $second;
		}
		else
		{
			($right, $alias) = relation();
			$on = condition($alias, one_of(@seen));
			push @seen, $alias;
		}
		# Only such conditions have full joins.
		if ($join eq 'FULL JOIN')
		{
			$on = one_of("$alias.id = $seen[0].id", "$alias.t = $seen[0].t AND $alias.v = $seen[0].v");
		}
		$sql .= "\n\t$join $right ON $on";
	}
	return ($sql, window($first, 60), @seen);
}

sub columns
{
	return join(', ', map { ("$_.id", one_of("$_.k", "$_.n", "$_.t", ("$_.v") x 4, "right($_.w, 9)", "$_.u", "left($_.p, 2)")) } @_);
}

# One answer for rows in any order.
sub digest
{
	my ($rows) = @_;
	return "SELECT count(*), md5(string_agg(q::text, ' ' ORDER BY q::text)) FROM (\n\t$rows) AS q";
}

sub joined
{
	my ($from, $where, @seen) = join_tree(2 + draw(3));
	return 'SELECT ' . columns(@seen) . " FROM $from\n\tWHERE $where";
}

sub subquery
{
	my ($outer, $more) = @_;
	my ($from, $inner) = relation();
	if (chance(25))
	{
		my ($second, $alias) = relation();
		$from .= " JOIN $second ON " . condition($alias, $inner);
	}
	return ($inner, "FROM $from WHERE " . condition($inner, $outer) . ($more // ''));
}

sub some_ids
{
	my ($from, $where, @seen) = join_tree(2);
	return "SELECT $seen[0].id, $seen[1].v FROM $from WHERE $where";
}

# A join below that ends early and begins again for the next row of $outer.
sub page_of
{
	my ($outer) = @_;
	return 'SELECT y1.id, y2.v FROM ' . one_of('a', 'b') . ' AS y1 ' . one_of('JOIN', 'LEFT JOIN') . ' ' . one_of('a', 'b') . ' AS y2 ON y2.id = y1.k WHERE y1.id > '
	  . draw(2000) . ' AND ' . one_of("y1.v > $outer.v", "y1.v <> $outer.v", 'y1.v < 90') . ' ORDER BY y1.id LIMIT ' . (1 + draw(12));
}

# A pair for which the inner row is one, so that the outer order is a total one.
sub ordered_pair
{
	my ($width, $what) = @_;
	return 'SELECT ' . ($what // 'r1.id, r1.k, r2.id, r2.v') . ' FROM ' . one_of(qw(a b c)) . ' AS r1 ' . one_of('JOIN', 'LEFT JOIN') . ' '
	  . one_of(qw(a b c d)) . ' AS r2 ON r2.id = ' . one_of('r1.k', 'r1.n', 'r1.k + 1') . ' WHERE r1.id BETWEEN ' . draw(1500) . " AND $width";
}

# A statement that changes a table is rolled back, after saying what the table was like.
sub changing
{
	my ($table, $change) = @_;
	return "BEGIN;\n$change;\n" . digest("SELECT id, k, v FROM $table") . ";\nROLLBACK";
}

# Shapes; of a shape that is a query the plan is looked at, too.
my %queries = (
	join => sub { digest(joined()) },
	exists => sub {
		my ($from, $where, @seen) = join_tree(1 + draw(2));
		my (undef, $inner) = subquery($seen[-1]);
		return digest('SELECT ' . columns(@seen) . " FROM $from WHERE $where AND " . one_of('', 'NOT ') . "EXISTS (SELECT $inner)");
	},
	in => sub {
		my ($from, $where, @seen) = join_tree(1);
		my ($inner, $rest) = subquery($seen[0]);
		my ($plain, $alias) = relation();
		return digest('SELECT ' . columns(@seen) . " FROM $from WHERE $where AND " . one_of(
				"$seen[0].k IN (SELECT $inner.k $rest)", "$seen[0].id NOT IN (SELECT $inner.id $rest)",
				"$seen[0].k IN (SELECT $alias.id FROM $plain WHERE $alias.v < 40)", "$seen[0].k IN (SELECT $alias.n FROM $plain WHERE $alias.v > 90)"));
	},
	lateral => sub {
		my ($from, $where, @seen) = join_tree(1 + draw(2));
		my ($inner, $rest) = subquery(one_of(@seen));
		my $limit = 1 + draw(4);
		return digest('SELECT ' . columns(@seen) . ", s.* FROM $from " . one_of("CROSS JOIN LATERAL (SELECT $inner.id $rest ORDER BY $inner.id LIMIT $limit) AS s",
				"LEFT JOIN LATERAL (SELECT $inner.id $rest ORDER BY $inner.id DESC OFFSET 1 LIMIT $limit) AS s ON true",
				"CROSS JOIN LATERAL (SELECT count(*) AS c, max($inner.v) AS m $rest) AS s",
				('LEFT JOIN LATERAL (' . page_of($seen[0]) . ') AS s ON true') x 3) . " WHERE $where");
	},
	correlated => sub {
		my ($from, $where, @seen) = join_tree(1 + draw(2));
		my ($inner, $rest) = subquery(one_of(@seen));
		return digest('SELECT ' . columns(@seen) . ', ' . one_of("(SELECT sum($inner.v) $rest)", "(SELECT string_agg($inner.t, ',' ORDER BY $inner.id) $rest)",
				"ARRAY(SELECT $inner.id $rest ORDER BY 1)", ('ARRAY(SELECT concat(q.id, q.v) FROM (' . page_of($seen[0]) . ') AS q)') x 3) . " FROM $from WHERE $where");
	},
	subqueries => sub {
		my ($from, $where, @seen) = join_tree(1 + draw(2));
		my @subqueries = map {
			my ($inner, $rest) = subquery(one_of(@seen));
			one_of("(SELECT max($inner.v) $rest)", "(SELECT $inner.v $rest ORDER BY $inner.id LIMIT 1)", "EXISTS (SELECT $rest OFFSET 0)",
				"CASE WHEN $seen[0].v < 50 THEN (SELECT min($inner.k) $rest) END", "$seen[0].v IN (SELECT $inner.v $rest)")
		} 1 .. 3;
		my $columns = join(', ', columns(@seen), @subqueries[ 0 .. draw(2) ]);
		my ($inner, $rest) = subquery($seen[0]);
		$where = window($seen[0], 400) . one_of(" AND EXISTS (SELECT $rest OFFSET 0)", " AND $seen[0].v > 5 AND NOT EXISTS (SELECT $rest OFFSET 0)") if chance(40);
		my $query = "SELECT $columns FROM $from WHERE $where";
		return one_of(digest($query), digest("$query OFFSET 0"), "$query ORDER BY " . join(', ', 1 .. 2 * @seen) . ' LIMIT ' . (5 + draw(90)));
	},
	aggregate => sub {
		my ($table, $below) = relation();
		my ($right, $alias) = relation();
		my $key = one_of(qw(k n));
		my $on = one_of("$alias.id = s.key", "$alias.k = s.key", "$alias.n = s.key");
		return digest("SELECT s.key, s.c, $alias.id, $alias.v FROM (SELECT $below.$key AS key, count(*) AS c, max($below.v) FROM $table "
			  . 'WHERE ' . window($below, 200) . " GROUP BY $below.$key" . one_of('', ' HAVING count(*) > 1', " ORDER BY 1 LIMIT 30") . ") AS s "
			  . one_of('JOIN', 'LEFT JOIN') . " $right ON $on");
	},
	distinct => sub {
		my ($from, $where, @seen) = join_tree(2 + draw(2));
		return "SELECT DISTINCT $seen[0].k, $seen[1].v FROM $from WHERE $where ORDER BY 1, 2";
	},
	union => sub { digest(join(one_of(' UNION ALL ', ' UNION ', ' EXCEPT ALL '), map { some_ids() } 1 .. 2)) },
	page => sub {
		my ($from, $where, @seen) = join_tree(2 + draw(2));
		my $columns = columns(@seen);
		return "SELECT $columns FROM $from WHERE $where ORDER BY $columns OFFSET @{[ draw(5) ]} LIMIT @{[ 1 + draw(20) ]}";
	},
	first_rows => sub { ordered_pair(4000) . ' ORDER BY r1.id OFFSET ' . draw(3) . ' LIMIT ' . (1 + draw(40)) },
	values => sub {
		my ($right, $alias) = relation();
		my $list = join(', ', map { '(' . one_of(draw(1500), draw(1500), 'NULL') . ", $_)" } 1 .. 1 + draw(90));
		return digest("SELECT x.*, $alias.id, $alias.w FROM (VALUES $list) AS x (key, nr) " . one_of('JOIN', 'LEFT JOIN') . " $right ON $alias."
			  . one_of(qw(id k n)) . ' = x.key');
	});
my %scripts = (
	cursor => sub {
		my $name = 'c' . ++$aliases;
		my ($scroll, $hold) = (one_of('SCROLL', 'SCROLL', 'NO SCROLL'), chance(30));
		my $query = ordered_pair(4000) . ' ORDER BY r1.id';
		my @moves = map { one_of('FETCH 5', 'FETCH 70', 'FETCH NEXT', 'MOVE 10', $scroll eq 'SCROLL' ? ('FETCH BACKWARD 3', 'FETCH PRIOR',
				'FETCH ABSOLUTE 20', 'FETCH FIRST', 'FETCH LAST', 'MOVE BACKWARD 80', 'FETCH RELATIVE -2') : ()) . " FROM $name" } 1 .. 6;
		return "BEGIN;\nDECLARE $name $scroll CURSOR " . ($hold ? 'WITH HOLD ' : '') . "FOR $query;\n"
		  . ($hold ? "FETCH 3 FROM $name;\nCOMMIT;\n" . join(";\n", @moves) . ";\nCLOSE $name" : join(";\n", @moves) . ";\nROLLBACK");
	},
	prepared => sub {
		my $name = 'p' . ++$aliases;
		my $low = draw(1000);
		my ($from, undef, @seen) = join_tree(2 + draw(2));
		return "PREPARE $name (int) AS " . digest('SELECT ' . columns(@seen) . " FROM $from WHERE $seen[0].id BETWEEN \$1 AND \$1 + 40")
		  . ";\n" . join('', map { "EXECUTE $name ($_);\n" } $low, 'NULL', $low + 300, 5000) . "DEALLOCATE $name";
	},
	update => sub {
		my ($inner, $rest) = subquery('x');
		return changing(@{ one_of(
					[ b => 'UPDATE b AS x SET v = -1 FROM a AS y WHERE ' . window('y', 50) . ' AND ' . condition('x', 'y') ],
					[ c => 'UPDATE c AS x SET v = - y.c FROM (SELECT k, count(*) AS c FROM a WHERE id < 900 GROUP BY k) AS y WHERE x.id = y.k' ],
					[ a => "UPDATE a AS x SET v = -2, k = k + 1 WHERE x.id < 300 AND EXISTS (SELECT $rest)" ]) });
	},
	delete => sub {
		my $table = one_of('a', 'b');
		return changing($table, "DELETE FROM $table AS x USING c AS y WHERE " . window('y', 50) . ' AND ' . condition('x', 'y'));
	},
	merge => sub {
		my $key = one_of('k', 'n');
		return changing('b', "MERGE INTO b AS x USING (SELECT DISTINCT $key AS key FROM a WHERE id < @{[ 100 + draw(900) ]}) AS y ON x.id = y.key\n"
			  . "\tWHEN MATCHED AND x.v > 70 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -3\n"
			  . "\tWHEN NOT MATCHED AND y.key IS NOT NULL THEN INSERT (id, k, v) VALUES (y.key + 10000, y.key, -4)");
	},
	insert => sub {
		return changing('c', 'INSERT INTO c (id, k, v) SELECT DISTINCT x.id + ' . one_of(0, 300, 5000) . ', 1, -5 FROM ' . one_of('a', 'b') . ' AS y JOIN b AS x ON '
			  . condition('x', 'y') . ' WHERE ' . window('y', 60) . ' ON CONFLICT (id) ' . one_of('DO NOTHING', 'DO UPDATE SET v = -6'));
	},
	locking => sub {
		return "BEGIN;\n" . ordered_pair(4000) =~ s/LEFT JOIN/JOIN/r . ' ORDER BY r1.id LIMIT ' . (5 + draw(60)) . one_of(' FOR UPDATE', ' FOR SHARE OF r1', ' FOR NO KEY UPDATE OF r2 SKIP LOCKED')
		  . ";\nROLLBACK";
	},
	modifying => sub {
		my $deleted = "WITH gone AS (DELETE FROM a WHERE id BETWEEN 200 AND @{[ 250 + draw(200) ]} RETURNING *)";
		return "BEGIN;\n$deleted " . digest('SELECT y.id, x.id, x.v FROM gone AS y ' . one_of('JOIN', 'LEFT JOIN') . ' ' . one_of(qw(a b c))
			  . ' AS x ON ' . condition('x', 'y')) . ";\nROLLBACK";
	},
	volatile => sub {
		my $outer = one_of('(SELECT a.k, nextval(\'counter\') AS nr FROM a ORDER BY a.id OFFSET 0)', '(SELECT a.k, a.v AS nr FROM a WHERE nextval(\'counter\') > 3 ORDER BY a.id OFFSET 0)');
		# By the same plan each time, so that as much of the sequence is used.
		return join('', map { "SET $_ = off;\n" } qw(enable_hashjoin enable_mergejoin enable_material enable_seqscan enable_sort))
		  . "SELECT setval('counter', 1);\nSELECT o.nr, x.v FROM $outer AS o JOIN b AS x ON x.id = o.k LIMIT @{[ 1 + draw(30) ]};\nSELECT last_value FROM counter";
	});

# Settings for one query: nested loops most of the time, and what may be around them.
sub settings
{
	my %chosen = (
		enable_hashjoin => chance(15), enable_mergejoin => chance(15), enable_seqscan => chance(70), enable_bitmapscan => chance(40),
		enable_material => chance(60), enable_memoize => chance(30), enable_indexonlyscan => chance(75), enable_sort => chance(85));
	my $sql = join('', map { "SET $_ = " . ($chosen{$_} ? 'on' : 'off') . ";\n" } sort keys %chosen);
	$sql .= "SET join_collapse_limit = 1;\n" if chance(20);
	$sql .= "SET plan_cache_mode = force_generic_plan;\n";
	$sql .= "SET cursor_tuple_fraction = 1;\n" if chance(30);
	$sql .= "SET parallel_setup_cost = 0;\nSET parallel_tuple_cost = 0;\nSET min_parallel_table_scan_size = 0;\nSET min_parallel_index_scan_size = 0;\n"
	  . "SET max_parallel_workers_per_gather = 2;\n"
	  if chance(25);
	return $sql;
}

# So many queries of each shape, from a seed: [shape, settings, SQL, whether it is one query].
sub random_joins
{
	my ($seed, $of_each) = @_;
	my @asked;
	start_drawing($seed);
	foreach my $shape (sort keys %queries, sort keys %scripts)
	{
		foreach (1 .. $of_each)
		{
			$aliases = 0;
			my $sql = ($queries{$shape} // $scripts{$shape})->();
			push @asked, [ $shape, settings(), $sql, exists $queries{$shape} ];
		}
	}
	return @asked;
}

1;
