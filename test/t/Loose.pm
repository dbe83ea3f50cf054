# Random tables and random questions that a loose scan may answer, from a fixed seed: DISTINCT, DISTINCT ON, GROUP BY with no
# aggregate or with min() and max(), in all places where such a query can be.
#
# A question is a hash:
#   shape     its kind
#   settings  SQL before it
#   ask       a function: the SQL for psql that asks it once; its argument is unique for the script
#   explain   SQL whose plan is the question's, if there is one such statement
#   mode      how answers are compared: list, multiset, or subset, where "of" is the query without its LIMIT
#   kinds     of the columns of the answer, which tell what is equal: see normal()
package Loose;

use strict;
use warnings;

use Draw;
use Exporter 'import';

our @EXPORT = qw(loose_types loose_table loose_question normal_rows);

my $names;

sub shuffled
{
	my @from = @_;
	my @to;
	push @to, splice(@from, draw(scalar @from), 1) while @from;
	return @to;
}

# ---- types ----

# type, collation, value from integers n and h: equal n make equal values, and h may give them another form; show: one form
# of @ for all that are equal, where they differ; ends: has min() and max(); like: another kind that it is comparable with.
my %kinds = (
	int2 => { type => 'int2', value => '(n - 50)::int2', ends => 1, like => 'int4' },
	int4 => { type => 'int4', value => 'n * 7 - 100', ends => 1, like => 'int8' },
	int8 => { type => 'int8', value => '(n - 20) * 10000000000', ends => 1, like => 'int2' },
	bool => { type => 'bool', value => 'n % 2 = 0', ends => [qw(bool_and bool_or)] },
	text => { type => 'text', collate => '"C"', value => q{'w' || n}, ends => 1, text => 1 },
	wide => { type => 'text', collate => '"C"', value => q{CASE WHEN n % 3 > 0 THEN repeat('w' || n || '-', 300) ELSE 'w' || n END}, ends => 1, text => 1 },
	plain => { type => 'text', value => q{'v' || n}, ends => 1, text => 1 },
	icu => { type => 'text', collate => '"en-x-icu"', value => q{(CASE n % 3 WHEN 0 THEN 'K' WHEN 1 THEN 'k' ELSE 'ä' END) || n / 3}, ends => 1, text => 1, icu => 1 },
	nocase => { type => 'text', collate => 'icu_nocase', value => q{(CASE h % 2 WHEN 0 THEN 'K' ELSE 'k' END) || n}, show => 'lower(@)', ends => 1, icu => 1 },
	varchar => { type => 'varchar(20)', collate => '"C"', value => q{'x' || n}, ends => 1, text => 1 },
	name => { type => 'name', value => q{('n' || n)::name} },
	bpchar => { type => 'char(7)', base => 'bpchar', collate => '"C"', value => q{'p' || n}, ends => 1 },
	numeric => { type => 'numeric', value => q{CASE n WHEN 1 THEN 'NaN' ELSE CASE h % 3 WHEN 0 THEN (n * 0.5)::numeric(20,1) WHEN 1 THEN (n * 0.5)::numeric(20,3) ELSE trim_scale(n * 0.5) END END},
		show => 'trim_scale(@)', ends => 1 },
	float8 => { type => 'float8', value => q{CASE n WHEN 0 THEN 'NaN' WHEN 1 THEN CASE h % 2 WHEN 0 THEN '0'::float8 ELSE '-0' END WHEN 2 THEN 'Infinity' ELSE 3 - n * 0.25 END},
		show => '@ + 0', ends => 1 },
	float4 => { type => 'float4', value => q{n * 0.5}, ends => 1, like => 'float8' },
	uuid => { type => 'uuid', value => 'md5(n::text)::uuid' },
	timestamptz => { type => 'timestamptz', value => q{'2020-01-01 00:00+0'::timestamptz + n * '7 hours'::interval}, ends => 1 },
	date => { type => 'date', value => q{'2020-01-01'::date + n::int4}, ends => 1 },
	interval => { type => 'interval', value => q{CASE h % 2 WHEN 0 THEN make_interval(months => n::int4 % 360 / 30, days => n::int4 % 30) ELSE make_interval(days => n::int4 % 360) END},
		show => 'justify_interval(@)', ends => 1 },
	ints => { type => 'int4[]', value => 'ARRAY[n / 5, n % 5]', ends => 1 },
	number => { type => 'some_number', value => 'n::some_number' },
	state => { type => 'some_state', value => q{(ARRAY['new', 'open', 'done', 'a', 'zzz']::some_state[])[n % 5 + 1]}, ends => 1 });
my @kinds;

# A kind's type without a length.
sub base_type { return $kinds{ $_[0] }{base} // $kinds{ $_[0] }{type} =~ s/\(.*//r }

# What makes the types and, for each kind, functions of a value: v_ is folded by the planner, s_ not.
sub loose_types
{
	my ($has_icu) = @_;
	@kinds = grep { $has_icu || !$kinds{$_}{icu} } sort keys %kinds;
	my $sql = "CREATE DOMAIN some_number AS int4 CHECK (VALUE >= 0);\nCREATE TYPE some_state AS ENUM ('new', 'open', 'done', 'a', 'zzz');\n";
	foreach my $name (@kinds)
	{
		my ($type, $value) = (base_type($name), $kinds{$name}{value});
		$sql .= "CREATE FUNCTION v_$name(n int8, h int8 = 0) RETURNS $type LANGUAGE sql IMMUTABLE PARALLEL SAFE AS \$\$ SELECT ($value)::$type \$\$;\n"
		  . "CREATE FUNCTION s_$name(n int8) RETURNS $type LANGUAGE plpgsql STABLE PARALLEL SAFE AS \$\$ BEGIN RETURN v_$name(n); END \$\$;\n";
	}
	return $sql;
}

# The same form for values that are equal, of a psql field.
sub normal
{
	my ($kind, $field) = @_;
	return $field if $field eq 'NULL';
	if ($kind eq 'numeric') { $field =~ s/0+$// if $field =~ /\./; $field =~ s/\.$// }
	elsif ($kind eq 'float8') { $field = '0' if $field eq '-0' }
	elsif ($kind eq 'nocase') { $field = lc $field }
	elsif ($kind eq 'interval')
	{
		my $days = 0;
		$days += $1 * ($2 eq 'year' ? 360 : $2 eq 'mon' ? 30 : 1) while $field =~ /(\d+) (year|mon|day)/g;
		$field = $days;
	}
	return $field;
}

sub normal_rows
{
	my ($kinds, $answer) = @_;
	return map {
		my @fields = split /\|/, $_, -1;
		join('|', map { normal($kinds->[$_] // '', $fields[$_]) } 0 .. $#fields)
	} split /\n/, $answer;
}

# ---- tables ----

sub direction
{
	return one_of('', '', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST');
}

sub index_column
{
	my ($column) = @_;
	my $kind = $kinds{ $column->{kind} };
	my $sql = $column->{name};
	$sql .= one_of(('') x 6, ' COLLATE "C"', ($kinds{icu} && grep { $_ eq 'icu' } @kinds) ? ' COLLATE icu_nocase' : '') if $kind->{text};
	$sql .= one_of('', '', ' ' . ($column->{kind} eq 'varchar' ? 'varchar' : 'text') . '_pattern_ops')
	  if $kind->{text} && $sql !~ /COLLATE/ && chance(20);
	return $sql . direction();
}

sub make_index
{
	my ($table) = @_;
	# Most first columns are of kinds that models know.
	my @columns = shuffled(@{ $table->{columns} });
	push @columns, shift @columns while chance(85) && $columns[0]{kind} =~ /^(nocase|interval|ints)$/ && grep { $_->{kind} !~ /^(nocase|interval|ints)$/ } @columns;
	splice(@columns, 1 + draw(scalar @columns));
	push @columns, { name => 'o', kind => 'int4' } if chance(15);
	my %used = map { $_->{name} => 1 } @columns;
	my @key = map { index_column($_) } @columns;
	push @key, 'id' if chance(15);
	my $unique = $key[-1] eq 'id' && chance(50) ? 'UNIQUE ' : '';
	my @more = grep { !$used{$_} } map { $_->{name} } @{ $table->{columns} }, { name => 'o' };
	my $include = @more && chance(25) ? ' INCLUDE (' . join(', ', @more) . ')' : '';
	my $with = join(', ', (chance(40) ? 'fillfactor = ' . one_of(10, 30, 90) : ()), (chance(20) ? 'deduplicate_items = off' : ()));
	my $where = chance(8) ? ' WHERE ' . one_of('o < 60', "$columns[0]{name} IS NOT NULL", "$columns[-1]{name} IS NOT NULL", 'o <> 3') : '';
	my $name = 'i' . ++$names;
	push @{ $table->{indexes} }, { name => $name, columns => \@columns };
	my $method = chance(15) ? 'USING learnedbtree ' : '';
	return "CREATE ${unique}INDEX $name ON $table->{name} $method(" . join(', ', @key) . ")$include" . ($with ? " WITH ($with)" : '') . "$where;\n";
}

# A load of so many rows whose key columns have no more than so many values each.
sub load
{
	my ($table, $rows, $most) = @_;
	my @values = map {
		my $domain = $most && $most < $_->{domain} ? $most : $_->{domain};
		my $n = "floor($domain * power(random(), $_->{skew}))::int8";
		my $value = $table->{sorted} && $_->{name} eq 'a' ? "v_$_->{kind}(g * $domain / " . ($rows + 1) . ', g)' : "v_$_->{kind}($n, floor(random() * 6)::int8)";
		$_->{nulls} ? "CASE WHEN random() * 100 >= $_->{nulls} THEN $value END" : $value;
	} @{ $table->{columns} };
	return "INSERT INTO $table->{name} (id, o, p, " . join(', ', map { $_->{name} } @{ $table->{columns} }) . ")\n\tSELECT nextval('ids'), floor(random() * 100), repeat('p', $table->{width}), "
	  . join(', ', @values) . " FROM generate_series(1, $rows) g;\n";
}

# A random condition that some rows meet, by which they are removed or changed.
sub some_rows
{
	my ($table) = @_;
	my $column = one_of(@{ $table->{columns} });
	return one_of('o < 50', 'id % 10 < 9', 'id % 7 = 0', "$column->{name} = v_$column->{kind}(0)", "$column->{name} > v_$column->{kind}(" . draw($column->{domain}) . ')',
		"$column->{name} IS NULL");
}

# A table: name, columns, indexes, and the SQL that makes it; busy: what another session does to it and does not commit.
sub loose_table
{
	my ($size) = @_;
	my %table = (name => 't' . ++$names, columns => [], indexes => [], sorted => chance(30), width => one_of(0, 0, 10, 400));
	foreach my $name ((qw(a b c d))[ 0 .. draw(4) ])
	{
		push @{ $table{columns} },
		  { name => $name, kind => one_of(@kinds), domain => one_of(1, 2, 4, 4, 12, 12, 12, 60, 60, 500, 3000), skew => one_of(1, 1, 3, 6), nulls => one_of(0, 0, 0, 5, 40, 100) };
	}
	my $unlogged = chance(15) ? 'UNLOGGED ' : '';
	my $partitioned = chance(10);
	my $sql = "CREATE ${unlogged}TABLE $table{name} (id int8" . (chance(40) ? ' PRIMARY KEY' : ' NOT NULL') . ', o int4, p text'
	  . join('', map { my $k = $kinds{ $_->{kind} }; ", $_->{name} $k->{type}" . ($k->{collate} ? " COLLATE $k->{collate}" : '') } @{ $table{columns} }) . ')'
	  . ($partitioned ? ' PARTITION BY RANGE (id)' : '') . ";\n";
	$sql =~ s/UNLOGGED // if $partitioned;
	if ($partitioned)
	{
		$sql .= "CREATE TABLE $table{name}_1 PARTITION OF $table{name} FOR VALUES FROM (MINVALUE) TO (" . one_of(1000, 30000) . ");\n";
		$sql .= "CREATE TABLE $table{name}_2 PARTITION OF $table{name} DEFAULT;\n";
	}
	my @indexes = map { make_index(\%table) } 1 .. 2 + draw(3);
	$sql =~ s/ PRIMARY KEY/ NOT NULL/ if $partitioned;
	my $early = chance(50);
	$sql .= join('', @indexes) if $early;
	# Statistics may be of a few values and rows of very many, or the reverse.
	my $stale = one_of('none', 'under', 'under', 'under', 'over', 'right', 'right', 'right', 'declared');
	$sql .= load(\%table, one_of(20, 400, $size), 2) . "ANALYZE $table{name};\n" if $stale eq 'under';
	$sql .= load(\%table, $size, 0) . "ANALYZE $table{name};\nDELETE FROM $table{name} WHERE id % 50 > 0;\n" if $stale eq 'over';
	$sql .= load(\%table, one_of(1, 30, $size / 2, $size, $size), 0);
	$sql .= join('', @indexes) unless $early;
	$sql .= "VACUUM $table{name};\n" if chance(60);
	$sql .= "BEGIN;\n" . load(\%table, 60, 0) . "ROLLBACK;\n" if chance(40);
	$sql .= "DELETE FROM $table{name} WHERE " . some_rows(\%table) . ";\n" if chance(50);
	$sql .= "VACUUM $table{name};\n" if chance(20);
	$sql .= "UPDATE $table{name} SET " . one_of('o = o + 1', 'o = -o', "$table{columns}[-1]{name} = $table{columns}[0]{name}", 'p = p') . ' WHERE ' . some_rows(\%table) . ";\n"
	  if chance(40) && $table{columns}[0]{kind} eq $table{columns}[-1]{kind};
	$sql .= load(\%table, one_of(1, 50, 300), 0) if chance(50);
	$sql .= "ALTER TABLE $table{name} ALTER $_->{name} SET (n_distinct = " . one_of(1, 2, 5, -1) . ");\n"
	  foreach $stale ne 'declared' ? () : @{ $table{columns} };
	$sql .= "ANALYZE $table{name};\n" if $stale eq 'right' || $stale eq 'declared';
	$sql .= join('', map { "SELECT train('$_->{name}');\n" } @{ $table{indexes} }) if chance(80) && !$partitioned && !$unlogged;
	$table{sql} = $sql;
	$table{busy} = load(\%table, 40, 0) . "DELETE FROM $table{name} WHERE " . some_rows(\%table) . ' AND id % 3 = 0;' if chance(60);
	$table{$_} //= '' foreach qw(busy);
	return \%table;
}

# ---- questions ----

# How values come into the question at hand: NULL, or the types of its parameters so far.
my $parameters;

# SQL for a value of a column's kind.
sub value
{
	my ($column) = @_;
	my $kind = $column->{kind};
	$kind = $kinds{$kind}{like} if $kinds{$kind}{like} && chance(15) && grep { $_ eq $kinds{$kind}{like} } @kinds;
	my $n = draw($column->{domain} + 2);
	if ($parameters && chance(60))
	{
		push @$parameters, { kind => $kind, domain => $column->{domain} };
		return '$' . @$parameters;
	}
	return "NULL::$kinds{$kind}{type}" if chance(2);
	return one_of(("v_$kind($n, " . draw(6) . ')') x 6, "s_$kind($n)", "(SELECT s_$kind($n))");
}

sub condition_on
{
	my ($column) = @_;
	my $name = $column->{name};
	my $value = value($column);
	my $operator = one_of('=', '=', '<', '<=', '>', '>', '>=', '<>');
	my $kind = $column->{kind};
	my $list = sub { return join(', ', map { chance(10) ? "NULL::$kinds{$kind}{type}" : "v_$kind(" . draw($column->{domain} + 1) . ')' } 1 .. 1 + draw(5)) };
	return one_of(
		("$name $operator $value") x 5,
		"$name >= $value AND $name <= v_$kind(" . draw($column->{domain} + 2) . ')',
		"$name > $value AND $name > v_$kind(" . draw($column->{domain} + 2) . ')',
		($kind eq 'ints' ? () : ("$name = ANY (ARRAY[" . $list->() . '])', "$name <> ALL (ARRAY[" . $list->() . '])')), "$name IN (" . $list->() . ')',
		"$name IS NULL", "$name IS NOT NULL", "$name IS NOT NULL",
		"($name < $value OR $name IS NULL)", "$name IS DISTINCT FROM $value", "NOT $name = $value");
}

# A condition that an index can look up.
sub simple_condition
{
	my ($column) = @_;
	return one_of(("$column->{name} " . one_of('=', '<', '<=', '>', '>=') . ' ' . value($column)) x 3, "$column->{name} IS NOT NULL", "$column->{name} IS NULL",
		"$column->{name} IN (" . join(', ', map { value($column) } 0 .. draw(4)) . ')');
}

sub conditions
{
	my ($table, @prefix) = @_;
	return map { simple_condition(one_of(@prefix)) } 1 .. one_of(0, 0, 1, 1, 2) if @prefix && chance(80);
	my @columns = @{ $table->{columns} };
	my @found;
	foreach (1 .. one_of(0, 0, 0, 0, 1, 1, 1, 2, 3))
	{
		# No NULL in row comparisons: the server's own assertions do not hold where the column is descending.
		my ($x, $y) = (one_of(@columns, @prefix), one_of(@columns));
		push @found, one_of(
			(map { condition_on($x) } 1 .. 8),
			"o < @{[ draw(100) ]}", 'o = 77', 'o % 3 = 1', 'id % 5 <> 2', 'o < 60', "length(p) >= 0", "$columns[0]{name} IS NOT NULL",
			"($x->{name}, $y->{name}) " . one_of('>', '<=', '=') . ' (' . join(', ', map { "v_$_->{kind}(" . draw($_->{domain} + 1) . ')' } $x, $y) . ')',
			"($x->{name} IS NULL) = (o < 50)",
			($x->{kind} eq $y->{kind} && $x->{name} ne $y->{name} ? ("$x->{name} = $y->{name}", "$x->{name} < $y->{name}") : ()),
			($x->{kind} =~ /^(text|plain|varchar)$/ ? "$x->{name} LIKE '_1%'" : ()), ($x->{kind} eq 'text' ? "$x->{name} LIKE 'w1%'" : ()));
	}
	return @found;
}

sub where { return @_ ? ' WHERE ' . join(' AND ', @_) : '' }

# Columns of the keys: mostly those that an index begins with, in any order.
sub prefix
{
	my ($table) = @_;
	my @columns = chance(92) ? @{ one_of(@{ $table->{indexes} })->{columns} } : shuffled(@{ $table->{columns} });
	my $count = chance(50) ? 1 : 1 + draw(scalar @columns);
	my $next = $columns[$count];
	splice(@columns, $count);
	return ($next, shuffled(@columns));
}

sub order
{
	return join(', ', map { "$_->{name}" . one_of('', '', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST', ' ASC NULLS LAST') } @_);
}

# ... all one way, as an index may be read.
sub even_order
{
	my $way = direction();
	return join(', ', map { "$_->{name}$way" } @_);
}

sub limit { return chance(50) ? ' LIMIT ' . (1 + draw(20)) : ' LIMIT ' . (1 + draw(6)) . ' OFFSET ' . draw(8) }

# A query of one table: sql, kinds, mode, of.
sub select_distinct
{
	my ($table) = @_;
	my ($next, @d) = prefix($table);
	my $list = join(', ', map { $_->{name} } @d);
	my $sql = "SELECT DISTINCT $list FROM $table->{name}" . where(conditions($table, @d, $next // ()));
	my %q = (kinds => [ map { $_->{kind} } @d ]);
	if (chance(45)) { $sql .= ' ORDER BY ' . (chance(50) ? order(@d) : even_order(@d)); $q{mode} = 'list' }
	if (chance(25)) { $q{of} = $sql; $sql .= limit(); $q{mode} //= 'subset' }
	return { %q, sql => $sql };
}

# The aggregates that are the ends of a column.
sub ends_of
{
	my $ends = $kinds{ $_[0]{kind} }{ends};
	return ref $ends ? @$ends : qw(min max);
}

sub group_by
{
	my ($table) = @_;
	my ($next, @d) = prefix($table);
	my @all = @d;
	my $list = join(', ', map { $_->{name} } @d);
	my $where = where(conditions($table, @d, $next // ()));
	my $ends = $next && $kinds{ $next->{kind} }{ends} && chance(70) ? $next : one_of(@{ $table->{columns} });
	my $has_ends = $kinds{ $ends->{kind} }{ends} && $ends->{kind} ne 'number';
	my @kinds = map { $_->{kind} } @d;
	my $mode;
	if (chance(10)) { @all = ($d[0]); $mode = 'multiset' }
	my @targets = map { $_->{name} } @all;
	@kinds = map { $_->{kind} } @all;
	my @aggregates;
	if ($has_ends && chance(70))
	{
		my ($min, $max) = map { "$_($ends->{name})" } ends_of($ends);
		@aggregates = @{ one_of([$min], [$max], [ $min, $max ], [ $max, $min ], [ $min, $min ]) };
		push @kinds, ($ends->{kind}) x @aggregates;
		if (chance(8)) { push @aggregates, one_of('count(*)', "count($ends->{name})", "bool_or($ends->{name} IS NULL)", "$min FILTER (WHERE o < 50)"); push @kinds, $aggregates[-1] =~ /FILTER/ ? $ends->{kind} : $aggregates[-1] =~ /bool/ ? 'bool' : 'int8' }
	}
	my $having = '';
	my $on = one_of(@d);
	$having = ' HAVING ' . one_of(condition_on($on), $has_ends ? (map { my $e = one_of(ends_of($ends)); condition_on({ %$ends, name => "$e($ends->{name})" }) } 1 .. 2) : (), 'count(*) > 1') if chance(10);
	my $sql = 'SELECT ' . join(', ', shuffled_with(\@targets, \@aggregates)) . " FROM $table->{name}$where GROUP BY $list$having";
	my %q = (kinds => \@kinds, mode => $mode);
	if (!$mode && chance(40)) { $sql .= ' ORDER BY ' . (chance(50) ? order(@d) : even_order(@d)); $q{mode} = 'list' }
	if (chance(20)) { $q{of} = $sql; $sql .= limit(); $q{mode} = 'subset' if ($q{mode} // '') ne 'list' }
	return { %q, sql => $sql };
}

# In the order given: kinds belong to places.
sub shuffled_with { my ($first, $second) = @_; return (@$first, @$second) }

sub distinct_on
{
	my ($table) = @_;
	my @columns = @{ one_of(@{ $table->{indexes} })->{columns} };
	my $count = 1 + draw(scalar @columns);
	my @d = @columns[ 0 .. $count - 1 ];
	my @more = @columns[ $count .. $#columns ];
	@more = shuffled(@more) if chance(20);
	splice(@more, draw(@more + 1));
	my $where = where(conditions($table, @columns));
	my $order = chance(70) ? even_order(@d, @more) : order(shuffled(@d), @more);
	my $list = join(', ', map { $_->{name} } @d, @more);
	my %q = (kinds => [ map { $_->{kind} } @d, @more ], mode => 'list');
	my $sql = 'SELECT DISTINCT ON (' . join(', ', map { $_->{name} } shuffled(@d)) . ") $list FROM $table->{name}$where ORDER BY $order";
	$sql .= limit() if chance(25);
	return { %q, sql => $sql };
}

# What is much like those, and what the planner may make of it.
sub other
{
	my ($table) = @_;
	my ($next, @d) = prefix($table);
	my $list = join(', ', map { $_->{name} } @d);
	my $where = where(conditions($table, @d));
	my $from = "FROM $table->{name}$where";
	my $a = $d[0]{name};
	my $show = show($d[0], $a);
	my @kinds = map { $_->{kind} } @d;
	my $renamed = grep({ $_->{name} eq 'o' } @d) || $where =~ /\b(o|id|p)\b/ ? $table->{name} : "$table->{name} AS x (id_, o_, p_)";
	my ($sql, @k) = @{ one_of(
		[ "SELECT $show, 'x', 5 $from GROUP BY $list", $d[0]{kind} ],
		[ "SELECT $list, count(*) $from GROUP BY $list", @kinds ],
		[ "SELECT DISTINCT $list, 7 $from", @kinds ],
		[ "SELECT DISTINCT 7 $from" ],
		[ "SELECT DISTINCT $list, $list $from", @kinds, @kinds ],
		[ "SELECT $list, concat('<', $show, '>') $from GROUP BY $list", @kinds ],
		[ "SELECT DISTINCT $a IS NULL $from" ],
		[ "SELECT DISTINCT $a $from GROUP BY $list", $d[0]{kind} ],
		[ "SELECT DISTINCT $list, generate_series(1, 2) $from", @kinds ],
		[ "SELECT DISTINCT $list, count(*) OVER (PARTITION BY $a) $from", @kinds ],
		[ "SELECT $list, grouping($a) $from GROUP BY ROLLUP ($list)", @kinds ],
		[ "SELECT $a $from GROUP BY GROUPING SETS (($a), ($list))", $d[0]{kind} ],
		[ "SELECT DISTINCT $list, random() < 2 $from", @kinds ],
		[ "SELECT DISTINCT $list FROM $table->{name} TABLESAMPLE SYSTEM (100)$where", @kinds ],
		[ "SELECT DISTINCT $list FROM $table->{name} LEFT JOIN few ON few.k = $table->{name}.id$where", @kinds ],
		[ "SELECT DISTINCT $list FROM $table->{name} LEFT JOIN few ON few.k = $table->{name}.o$where", @kinds ],
		[ "SELECT DISTINCT $list FROM $table->{name} JOIN few ON few.k = $table->{name}.o$where", @kinds ],
		[ "SELECT DISTINCT $list FROM (SELECT * $from OFFSET 0) q", @kinds ],
		[ "SELECT DISTINCT $list FROM (SELECT * $from) q", @kinds ],
		[ "SELECT DISTINCT $list FROM ONLY $table->{name}$where", @kinds ],
		[ "SELECT id, o % 10 $from GROUP BY id, o" ],
		[ "SELECT DISTINCT id, $list $from", 'int8', @kinds ],
		[ "SELECT o, min(id), max(id) $from GROUP BY o" ],
		[ "SELECT $list FROM (SELECT DISTINCT $list $from) q GROUP BY $list", @kinds ],
		[ "SELECT min(o), max(o) $from" ],
		[ "SELECT $list, min(o) + max(o), coalesce(min(o), -1) $from GROUP BY $list ORDER BY max(o)", @kinds ],
		[ "SELECT max(o) - min(o) $from GROUP BY $list HAVING max(o) > 5" ],
		[ "SELECT DISTINCT min(o), $a $from GROUP BY $list", 'int4', $d[0]{kind} ],
		[ "SELECT min(id), count(DISTINCT o) $from" ],
		[ "SELECT $list, max(o) FILTER (WHERE id % 2 = 0) $from GROUP BY $list", @kinds ],
		[ "SELECT $list FROM $renamed$where GROUP BY $list", @kinds ],
		[ "SELECT $list, tableoid = '$table->{name}'::regclass $from GROUP BY $list, tableoid", @kinds ]) };
	return { sql => $sql, kinds => \@k };
}

# One form of a column of a query.
sub show
{
	my ($column, $name) = @_;
	return ($kinds{ $column->{kind} // $column }{show} // '@') =~ s/@/$name/r;
}

sub any_query
{
	my ($table) = @_;
	return one_of(\&select_distinct, \&select_distinct, \&group_by, \&group_by, \&group_by, \&distinct_on)->($table);
}

# A query whose answer is fixed, whatever its plan.
sub fixed_query
{
	my ($table) = @_;
	while (1)
	{
		my $query = any_query($table);
		return $query if ($query->{mode} // '') ne 'subset';
	}
}

# ... as a relation s with columns c1, c2, ..., of which each is shown in one form.
sub relation
{
	my ($query, $alias) = @_;
	my $n = 0;
	my @shown = map { $n++; ($kinds{$_}{show} // '@') =~ s/@/$alias.c$n/r } @{ $query->{kinds} };
	return ("($query->{sql}) AS $alias (" . join(', ', map { "c$_" } 1 .. $n) . ')', @shown);
}

sub text_of { return "concat_ws(',', " . join(', ', map { qq(coalesce(($_)::text COLLATE "C", 'NULL')) } @_) . ')' }

# A query with a condition on a row of u, whose p has the values of that column.
sub correlated
{
	my ($table) = @_;
	my @columns = @{ one_of(@{ $table->{indexes} })->{columns} };
	my $on = one_of(@columns, @{ $table->{columns} });
	my $step = 1 + int($on->{domain} // 100) / 8;
	my $outer = "(SELECT g AS g, CASE WHEN g <> 3 THEN v_$on->{kind}(floor(g * $step)::int8 - 1, g) END AS p FROM generate_series(1, @{[ 4 + draw(6) ]}) g) AS u";
	my $query;
	do { $query = fixed_query($table) } while $query->{sql} =~ /LIMIT/;
	my $condition = "$on->{name} " . one_of('=', '=', '<', '>', '>=', '<>') . ' u.p';
	$condition = "($condition OR u.g = 2)" if chance(10);
	my $before = $query->{sql} =~ / WHERE / ? ' WHERE ' : " FROM $table->{name}";
	$query->{sql} =~ s/\Q$before\E/$before eq ' WHERE ' ? " WHERE $condition AND " : "$before WHERE $condition"/e;
	$query->{sql} .= ' LIMIT ' . (1 + draw(4)) if ($query->{mode} // '') eq 'list' && chance(50);
	return ($outer, $query);
}

my %shapes = (
	distinct => [ 5, \&select_distinct ],
	group => [ 6, \&group_by ],
	distinct_on => [ 4, \&distinct_on ],
	other => [ 3, \&other ],
	count => [ 1, sub {
		my ($from, @shown) = relation(fixed_query($_[0]), 's');
		return { sql => "SELECT count(*), md5(string_agg(" . text_of(@shown) . ", ' ' ORDER BY " . text_of(@shown) . ')) FROM ' . $from };
	} ],
	with => [ 1, sub {
		my $query = fixed_query($_[0]);
		my ($from, @shown) = relation($query, 's');
		my $columns = join(', ', map { "c$_" } 1 .. @{ $query->{kinds} });
		return { sql => "WITH w ($columns) AS " . one_of('', 'MATERIALIZED ', 'NOT MATERIALIZED ') . "($query->{sql}) SELECT 1, w.* FROM w UNION ALL SELECT 2, w.* FROM w WHERE w.c1 IS NOT NULL",
			kinds => [ 'int4', @{ $query->{kinds} } ] };
	} ],
	join => [ 1, sub {
		my ($from, @shown) = relation(fixed_query($_[0]), 's');
		return { sql => 'SELECT ' . join(', ', @shown) . ", few.k FROM $from " . one_of('JOIN', 'LEFT JOIN', 'RIGHT JOIN') . ' few ON few.k = abs(hashtext(' . text_of(@shown) . ')) % 20' };
	} ],
	in => [ 1, sub {
		my ($table) = @_;
		my $column = one_of(@{ $table->{columns} });
		my ($next, @d) = prefix($table);
		my $where = where(conditions($table, $d[0]));
		return { sql => "SELECT id FROM $table->{name} WHERE id % 3 = 0 AND $d[0]{name} " . one_of('IN', 'IN', 'NOT IN')
			  . " (SELECT " . one_of("DISTINCT $d[0]{name} FROM $table->{name}$where", "$d[0]{name} FROM $table->{name}$where GROUP BY $d[0]{name}") . ')' };
	} ],
	exists => [ 1, sub {
		my ($outer, $query) = correlated($_[0]);
		return { sql => "SELECT u.g FROM $outer WHERE " . one_of('', 'NOT ') . "EXISTS ($query->{sql})" };
	} ],
	lateral => [ 3, sub {
		my ($outer, $query) = correlated($_[0]);
		my ($from, @shown) = relation($query, 's');
		return { sql => 'SELECT u.g, ' . join(', ', @shown) . " FROM $outer " . one_of("CROSS JOIN LATERAL $from", "LEFT JOIN LATERAL $from ON true") };
	} ],
	scalar => [ 2, sub {
		my ($outer, $query) = correlated($_[0]);
		my ($from, @shown) = relation($query, 's');
		return { sql => "SELECT u.g, (SELECT string_agg(" . text_of(@shown) . ", ' ' ORDER BY " . text_of(@shown) . ") FROM $from) FROM $outer" };
	} ],
	union => [ 1, sub {
		my ($table) = @_;
		my $first = fixed_query($table);
		my $second;
		foreach (1 .. 30) { $second = fixed_query($table); last if "@{ $first->{kinds} }" eq "@{ $second->{kinds} }" }
		$second = $first unless "@{ $first->{kinds} }" eq "@{ $second->{kinds} }";
		# A UNION without ALL may not give the same forms.
		return { sql => "($first->{sql}) " . one_of('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT') . " ($second->{sql})", kinds => $first->{kinds} };
	} ]);

my %scripts = (
	prepared => [ 3, sub {
		my ($table) = @_;
		$parameters = [];
		my $query = fixed_query($table);
		my @types = @$parameters;
		undef $parameters;
		my @rows = map { '(' . join(', ', map { chance(8) ? 'NULL' : "v_$_->{kind}(" . draw($_->{domain} + 1) . ', ' . draw(5) . ')' } @types) . ')' } 1 .. 4;
		@rows = ('', '') unless @types;
		my $prepare = (@types ? '(' . join(', ', map { base_type($_->{kind}) } @types) . ')' : '') . " AS $query->{sql}";
		return { settings => "SET plan_cache_mode = " . one_of(qw(force_generic_plan force_generic_plan auto force_custom_plan)) . ";\n",
			explain => sub { "EXECUTE p$_[0]$rows[0]" }, kinds => $query->{kinds},
			ask => sub { "PREPARE p$_[0]$prepare;\n" . join("SELECT 'next';\n", map { "EXECUTE p$_[0]$_;\n" } @rows) }, mode => 'multiset' };
	} ],
	cursor => [ 2, sub {
		my ($table) = @_;
		my $query = fixed_query($table);
		my $total = ($query->{mode} // '') eq 'list';
		my $scroll = $total && chance(50) ? 'SCROLL ' : chance(50) ? 'NO SCROLL ' : '';
		my $change = one_of('', "DELETE FROM $table->{name} WHERE id % 3 = 1;\n", load($table, 50, 0));
		my $first = 'FETCH ' . one_of(1, 2, 5, 40) . " FROM c;\n" . ($scroll eq 'SCROLL ' ? "FETCH BACKWARD 2 FROM c;\nMOVE FIRST FROM c;\n" : '');
		return { explain => sub { $query->{sql} }, settings => chance(50) ? "SET cursor_tuple_fraction = 1;\n" : '', kinds => $query->{kinds}, mode => $query->{mode},
			ask => sub { "SAVEPOINT s;\nDECLARE c ${scroll}CURSOR FOR $query->{sql};\n$first${change}FETCH ALL FROM c;\nROLLBACK TO s;\n" } };
	} ],
	hold => [ 1, sub {
		my ($table) = @_;
		my $query = fixed_query($table);
		return { explain => sub { $query->{sql} }, kinds => $query->{kinds}, mode => $query->{mode}, held => sub { "FETCH ALL FROM h$_[0];\nCLOSE h$_[0];\n" },
			ask => sub { "DECLARE h$_[0] CURSOR WITH HOLD FOR $query->{sql};\nFETCH 2 FROM h$_[0];\n" } };
	} ],
	plpgsql => [ 1, sub {
		my ($table) = @_;
		my ($from, @shown) = relation(fixed_query($table), 's');
		my $text = text_of(@shown);
		return { explain => sub { "SELECT $text FROM $from" }, mode => 'multiset',
			ask => sub { "CREATE FUNCTION pg_temp.f$_[0](x int) RETURNS SETOF text LANGUAGE plpgsql AS \$\$ DECLARE r record; n int := 0; BEGIN\n"
				  . "FOR r IN SELECT $text AS t FROM $from LOOP\nn := n + 1; IF n % 5 = 1 THEN BEGIN PERFORM 1 / (n % 3); EXCEPTION WHEN division_by_zero THEN NULL; END; END IF;\n"
				  . "RETURN NEXT r.t; END LOOP; END \$\$;\nSELECT * FROM pg_temp.f$_[0](1);\nSELECT * FROM pg_temp.f$_[0](2);\n" } };
	} ],
	changing => [ 1, sub {
		my ($table) = @_;
		my $query = fixed_query($table);
		my ($next, @d) = prefix($table);
		my $list = join(', ', map { $_->{name} } @d);
		my $change = one_of(
			"INSERT INTO $table->{name} (id, $list) SELECT 10000000 + row_number() OVER (ORDER BY $list), q.* FROM (SELECT DISTINCT $list FROM $table->{name}) q",
			"DELETE FROM $table->{name} WHERE id % 3 > 0 AND id IN (SELECT min(id) FROM $table->{name} GROUP BY o)",
			"DELETE FROM $table->{name} WHERE id % 3 > 0 AND ($list) IN (SELECT DISTINCT $list FROM $table->{name} WHERE o < 50)");
		return { explain => sub { $query->{sql} }, mode => $query->{mode}, kinds => $query->{kinds},
			ask => sub { "SAVEPOINT s;\n$change;\n$query->{sql};\nROLLBACK TO s;\n" } };
	} ]);

# Settings of one question: the planner is to prefer one thing or another.
sub settings
{
	my $sql = '';
	$sql .= 'SET ' . one_of('enable_hashagg', 'enable_seqscan', 'enable_sort', 'enable_indexonlyscan', 'enable_bitmapscan', 'enable_indexscan', 'enable_incremental_sort', 'enable_material', 'enable_hashjoin', 'enable_mergejoin') . " = off;\n"
	  foreach 1 .. one_of(0, 0, 1, 1, 2, 3);
	$sql .= one_of(('') x 1, ("SET random_page_cost = 0.01;\nSET cpu_tuple_cost = 0.5;\nSET cpu_index_tuple_cost = 0.5;\n") x 3, "SET random_page_cost = 1;\n");
	$sql .= "SET parallel_setup_cost = 0;\nSET parallel_tuple_cost = 0;\nSET min_parallel_table_scan_size = 0;\nSET min_parallel_index_scan_size = 0;\nSET max_parallel_workers_per_gather = 2;\n" if chance(15);
	$sql .= "SET work_mem = '64kB';\n" if chance(15);
	$sql .= "SET enable_partitionwise_aggregate = on;\n" if chance(20);
	return $sql;
}

# Shapes, each as often as its weight says.
my @choices = map {
	my $shape = $_;
	(($shape) x ($shapes{$shape} // $scripts{$shape})->[0])
} sort keys %shapes, sort keys %scripts;

sub loose_question
{
	my ($table) = @_;
	my $shape = one_of(@choices);
	undef $parameters;
	my $question = ($shapes{$shape} // $scripts{$shape})->[1]->($table);
	my $sql = $question->{sql};
	$question->{shape} = $shape;
	$question->{table} = $table;
	$question->{mode} //= 'multiset';
	$question->{kinds} //= [];
	$question->{ask} //= sub { "$sql;\n" };
	$question->{explain} //= $sql ? sub { $sql } : undef;
	$question->{settings} = settings() . ($question->{settings} // '');
	# The transaction may have changed the table itself.
	$question->{begin} = !$question->{held} && chance(15) ? one_of("DELETE FROM $table->{name} WHERE id % 3 > 0 AND " . some_rows($table) . ";\n", load($table, one_of(5, 300), 0),
		"SAVEPOINT x;\n" . load($table, 30, 0) . "ROLLBACK TO x;\n") : '';
	$question->{without} = chance(20) ? one_of("SET LOCAL learnedbtree.btree_indexes = 'none';\n", "SET LOCAL learnedbtree.enable = off;\n") : '';
	return $question;
}

1;
