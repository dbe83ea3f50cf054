# Random tables, and random statements of all shapes over them, as scripts for psql; for t/065_shapes.pl.  The same seed
# makes the same script.
#
# Before each statement a script prints <<N K>>: N is its number; K is s where its rows come in any order, o where their
# order is determined, S and O where the next statement is the same one by btree, and e for a plan, which is asked for only where indexes are served.  Afterwards it prints how many
# rows there were, or the error.  What a statement answers, and what it changes, never depends on the order in which rows
# are met: a LIMIT has a total order, by the table's key; a row to be updated meets one other row at most.
package Shapes;

use strict;
use warnings;

use Draw;
use Exporter 'import';

our @EXPORT = qw(shapes_setup shapes_schema shapes_statements shapes_end shapes_asked);

# Types of key columns: declaration, and the value made from an integer.
my %types = (
	int2 => [ 'int2', '($1 % 16000 - 8000)::int2' ],
	int4 => [ 'int4', '$1 * 37 - 5000' ],
	int8 => [ 'int8', '$1::int8 * 7919000003' ],
	float8 => [ 'float8', '($1 - 700)::float8 / 7' ],
	numeric => [ 'numeric(14,2)', '($1 * 1.25 - 300)::numeric(14,2)' ],
	word => [ 'text COLLATE "C"', q{'key ' || lpad($1::text, 6, '0')} ],
	name => [ 'text COLLATE "C"', q{left(md5($1::text), 3 + $1 % 9) || $1} ],
	icu => [ 'text COLLATE "en-x-icu"', q{chr(97 + $1 % 7) || chr(65 + $1 % 23) || md5($1::text)} ],
	uuid => [ 'uuid', 'md5($1::text)::uuid' ],
	stamp => [ 'timestamptz', q{timestamptz '2024-01-01 00:00+00' + $1 * interval '61 s'} ],
	day => [ 'date', q{date '2020-01-01' + $1} ]);
my @columns = qw(id p n a b c v r w);
my (%type, %domain, $full, @tables, $next, $script, $number, %statements, $savepoint, $paired);

# What scripts need in a database.
sub shapes_setup
{
	my $values = join('', map { "CREATE FUNCTION v_$_(int) RETURNS " . ($types{$_}[0] =~ s/ .*//r)
			. " LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN $types{$_}[1];\n" } sort keys %types);
	return $values . <<'SQL';
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE log (what text, id int8, p int4, level int4);
CREATE INDEX ON log (what, id);
CREATE FUNCTION does(what text) RETURNS bool LANGUAGE sql STABLE RETURN current_setting('shapes.does', true) ~ what;
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF does('raise') AND NEW.id % 97 = 50 THEN
		RAISE EXCEPTION 'refused';
	END IF;
	IF does('look') THEN
		EXECUTE format('SELECT max(v) + $1 FROM %I WHERE id = $2', TG_ARGV[0]) INTO NEW.v USING NEW.v, NEW.n;
	END IF;
	IF does('catch') AND NEW.id % 20 = 3 THEN
		BEGIN
			INSERT INTO log VALUES ('caught', NEW.id, 1 / (NEW.id % 20 - 3), 0);
		EXCEPTION WHEN division_by_zero THEN
			NEW.v = 5;
		END;
	END IF;
	RETURN NEW;
END $$;
CREATE FUNCTION after_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF does('log') THEN
		INSERT INTO log SELECT lower(TG_OP), CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END, 0, pg_trigger_depth();
	END IF;
	IF does('write') AND pg_trigger_depth() = 1 AND TG_OP <> 'DELETE' AND NEW.id % 30 = 7 THEN
		BEGIN
			EXECUTE format('UPDATE %I SET v = v + 1 WHERE id BETWEEN $1 AND $1 + 20', TG_ARGV[0]) USING NEW.n;
			EXECUTE format('DELETE FROM %I WHERE id = $1', TG_ARGV[0]) USING NEW.n + 3;
		EXCEPTION WHEN foreign_key_violation THEN
			NULL;
		END;
	END IF;
	IF does('fail') AND TG_OP <> 'DELETE' AND NEW.id % 89 = 80 THEN
		RAISE EXCEPTION 'refused afterwards';
	END IF;
	RETURN NULL;
END $$;
-- Looks rows up one by one, each in a subtransaction, of which some fail.
CREATE FUNCTION one_by_one(table_name text, low int, high int) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	sum int8 := 0;
	x int8;
BEGIN
	FOR i IN low .. high LOOP
		BEGIN
			EXECUTE format('SELECT sum(v / ($1 %% 7)) FROM %I WHERE id = $1', table_name) INTO x USING i;
			sum := sum + coalesce(x, 1);
		EXCEPTION WHEN division_by_zero THEN
			sum := sum - 1;
		END;
	END LOOP;
	RETURN sum;
END $$;
SQL
}

# ---- scripts ----

# The statements by number, since the last schema.
sub shapes_asked { return {%statements} }

sub plain { $script .= "$_[0];\n"; return }

# A statement whose answer is compared; with "paired", by itself, with and without served indexes in one snapshot.
sub emit
{
	my ($sql, $order) = @_;
	foreach my $list ($paired && $order ? ('all', 'none') : '')
	{
		plain($list eq 'all' ? "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSET LOCAL learnedbtree.btree_indexes = 'all'"
			: "SET LOCAL learnedbtree.btree_indexes = 'none'") if $list;
		my $kind = $order || 's';
		$kind = uc $kind if $list eq 'all';
		$number++;
		$statements{$number} = $sql;
		$script .= "\\echo <<$number $kind>>\n$sql;\n\\if :ERROR\n\\echo ERROR :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE\n"
		  . ($savepoint ? "ROLLBACK TO s;\n" : '') . "\\else\n\\echo rows :ROW_COUNT\n\\endif\n";
		plain('COMMIT') if $list eq 'none';
	}
	return;
}

# ---- tables ----

sub index_on
{
	my ($table) = @_;
	my $name = $table->{name} . '_i' . ++$table->{indexes};
	my @keys = map { one_of(qw(id n n a a b c p r g)) } 0 .. draw(3);
	my %seen;
	@keys = grep { !$seen{$_}++ } @keys;
	my @terms = map { $_ . one_of('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') } @keys;
	@terms = (one_of('(n + 1)', '(v % 10)', "($keys[0] IS NULL)"), @terms) if chance(10);
	my $unique = chance(15) ? 'UNIQUE' : '';
	@terms = (@{ $table->{key} }, grep { my $term = $_; !grep { $term =~ /^$_\b/ } @{ $table->{key} } } @terms) if $unique;
	return "CREATE $unique INDEX $name ON $table->{name} (" . join(', ', @terms) . ')' . one_of('', '', '', ' INCLUDE (v)', ' INCLUDE (v, w)')
	  . ' WITH (fillfactor = ' . one_of(10, 10, 10, 30, 90, 100) . one_of('', '', ', deduplicate_items = off') . ')'
	  . (chance(15) && !$unique ? one_of(' WHERE v % 3 = 0', ' WHERE n IS NOT NULL', ' WHERE id < 900') : '');
}

# Columns of row number $g.
sub row
{
	my ($g) = @_;
	my $spread = sub { "(hashint4($g + $_[0]) & 1048575) % $_[1]" };
	return ("$g AS id", "$g % 8 AS p", 'nullif(' . $spread->(0, $domain{n}) . ', 7) AS n',
		(map { "CASE WHEN $g % @{[ 5 + ord($_) % 9 ]} <> @{[ $full && /a/ ? -1 : 1 ]} THEN v_$type{$_}(" . $spread->(1000 * ord, $domain{$_}) . ") END AS $_" } qw(a b c)),
		"$g % 100 AS v", "CASE WHEN $g % 5 > 1 THEN 1 + " . $spread->(77, 300) . ' END AS r', "repeat(chr(97 + $g % 26), 20 + $g % 40 * ($g % 7)) AS w");
}

sub rows { return 'SELECT ' . join(', ', row('g')) . " FROM generate_series($_[0], $_[1]) g" . ($_[2] // '') }
sub list_of_columns { return join(', ', @columns) }

sub parts
{
	my ($table, $name, $by, $count, $sub) = @_;
	my $sql = '';
	foreach my $i (0 .. $count - 1)
	{
		my ($low, $high) = ($i * 400, $i == $count - 1 ? 'MAXVALUE' : $i * 400 + 400);
		my $list = join(', ', grep { $_ % $count == $i } 0 .. 7);
		my $bound = 'FOR VALUES ' . ($by =~ /hash/ ? "WITH (MODULUS $count, REMAINDER $i)" : $by =~ /range/ ? "FROM ($low) TO ($high)" : "IN ($list)");
		$bound = 'DEFAULT' if $by =~ /list/ && $i == $count - 1 && chance(50);
		push @{ $table->{parts} }, [ "${name}_$i", $bound ] if $name eq $table->{name};
		$sql .= "CREATE TABLE ${name}_$i PARTITION OF $name $bound" . ($sub ? " PARTITION BY HASH (id);\n" . parts($table, "${name}_$i", 'hash', 2) : ";\n");
	}
	return $sql;
}

# A script that makes the tables, from now on those of which the others speak.
sub shapes_schema
{
	my ($seed) = @_;
	start_drawing($seed);
	($script, $number, $savepoint, $next, %statements) = ('', 0, 0, 100000);
	$type{$_} = one_of(sort keys %types) foreach qw(a b c);
	$domain{$_} = one_of(6, 300, 3000) foreach qw(a b c n);
	$full = chance(25);    # no NULL in column a
	@tables = ();
	plain('DROP TABLE IF EXISTS ' . join(', ', map { "t$_" } 1 .. 4) . ' CASCADE');
	plain('TRUNCATE log');
	foreach my $name (map { "t$_" } 1 .. 3 + draw(2))
	{
		my $by = one_of('', '', '', '', 'hash (id)', 'range (id)', 'list (p)', 'list (p) sub', $full ? ('hash (a)') x 3 : '');
		my $table = { name => $name, by => $by, indexes => 0, rows => one_of(300, 1000, 1500, 4000) };
		$table->{key} = [ $by =~ /list/ ? one_of([ 'id', 'p' ], [ 'p', 'id' ])->@* : $by =~ /\(a\)/ ? ('id', 'a') : 'id' ];
		my $count = 2 + draw(7);
		push @tables, $table;
		plain("CREATE TABLE $name (id " . one_of('int4', 'int8') . ' NOT NULL, p int4 NOT NULL, n int4, '
			  . join('', map { "$_ $types{$type{$_}}[0], " } qw(a b c)) . 'v int4, r int4, w text, g int8 GENERATED ALWAYS AS (n * 2) STORED'
			  . ', PRIMARY KEY (' . join(', ', @{ $table->{key} }) . ')' . one_of('', '', ' INCLUDE (v)') . ' WITH (fillfactor = ' . one_of(10, 20, 90) . '))'
			  . ($by ? ' PARTITION BY ' . $by =~ s/ sub//r : ''));
		$script .= parts($table, $name, $by, $count, $by =~ /sub/) if $by;
		plain(index_on($table)) foreach 0 .. draw(2);
		plain("INSERT INTO $name (" . list_of_columns() . ') ' . rows(1, $table->{rows}));
		plain(index_on($table)) foreach 0 .. draw(3);
		plain("DELETE FROM $name WHERE id % 9 = 0") if chance(50) && $name ne 't1';
		plain("VACUUM (ANALYZE) $name") if chance(80);
		plain("UPDATE $name SET v = v + 1 WHERE id % 29 = 0");
		plain("INSERT INTO $name (" . list_of_columns() . ') ' . rows($table->{rows} + 1, $table->{rows} + 40));
		foreach my $other (grep { "@{ $_->{key} }" eq 'id' } @tables)
		{
			next if !chance(35) || $table->{refers};
			$table->{refers} = "r) REFERENCES $other->{name} (id) " . one_of('', '', 'ON DELETE CASCADE', 'ON DELETE CASCADE', 'ON DELETE SET NULL', 'ON DELETE RESTRICT')
			  . one_of('', ' ON UPDATE CASCADE') . one_of('', '', ' DEFERRABLE', ' DEFERRABLE INITIALLY DEFERRED');
			plain("DELETE FROM $name x WHERE r IS NOT NULL AND NOT EXISTS (SELECT FROM $other->{name} y WHERE y.id = x.r)");
			plain("ALTER TABLE $name ADD CONSTRAINT ${name}_r FOREIGN KEY ($table->{refers}");
		}
		if (chance(40))
		{
			my $other = $tables[0]{name};
			plain("CREATE TRIGGER z_row BEFORE INSERT OR UPDATE ON $name FOR EACH ROW EXECUTE FUNCTION on_row('$other')") if $other ne $name;
			plain("CREATE TRIGGER z_after AFTER INSERT OR UPDATE OR DELETE ON $name FOR EACH ROW EXECUTE FUNCTION after_row('$other')");
		}
	}
	return $script;
}

# ---- expressions ----

sub table { return one_of(@tables) }
sub name { return table()->{name} }

# Its name, and a total order, as its alias is $x; and what a condition on id leaves out of the key of $y, looked up for $x.
sub ordered
{
	my ($x, $direction) = @_;
	my $table = table();
	return ($table->{name}, join(', ', map { "$x.$_" . ($direction // '') } @{ $table->{key} }));
}
sub other_keys { my ($table, $y, $x) = @_; return join('', map { " AND $y.$_ = $x.$_" } grep { $_ ne 'id' } @{ $table->{key} }) }
sub column { return one_of(qw(id id id n n a a b c p r g)) }

# A constant; row comparisons do not begin with NULL, for which the server's own assertions do not hold.
sub value
{
	my ($column, $no_null) = @_;
	return 'NULL' if chance(3) && !$no_null;
	return "v_$type{$column}(" . draw($domain{$column} + 5) . ')' if $column =~ /^[abc]$/;
	return { id => draw(1700), p => draw(10), n => draw($domain{n}), r => draw(300), g => 2 * draw($domain{n}), v => draw(100) }->{$column};
}

sub values_of { my ($column, $count) = @_; return join(', ', map { value($column) } 1 .. $count) }

sub list_for
{
	my ($column) = @_;
	my $low = draw(900);
	return "ARRAY(SELECT $column FROM " . name() . " WHERE id BETWEEN $low AND $low + 40)" if chance(20);
	return 'ARRAY[' . values_of($column, one_of(1, 3, 10, 60, 300)) . ']::' . ($type{$column} ? $types{ $type{$column} }[0] =~ s/ .*//r : one_of('int4', 'int8')) . '[]';
}

sub condition
{
	my ($x) = @_;
	my ($column, $number) = (column(), draw(1200));
	my $k = "$x.$column";
	my $condition = one_of(
		sub { "$k = " . value($column) }, sub { "$k = " . value($column) },
		sub { $column =~ /^[abc]$/ ? "$k BETWEEN v_$type{$column}($number) AND v_$type{$column}($number + 30)" : "$k BETWEEN $number AND $number + 30" },
		sub { "$k " . one_of('<', '<=', '>', '>=') . ' ' . value($column) },
		sub { "$k IN (" . values_of($column, 4) . ')' }, sub { "$k = ANY (" . list_for($column) . ')' },
		sub { "$k IS NULL" }, sub { "$k IS NOT NULL AND $k < " . value($column) },
		sub { "($x.a, $x.b) " . one_of('>', '<=') . ' (' . value('a', 1) . ', ' . value('b') . ')' }, sub { "($x.n, $x.id) >= (" . value('n', 1) . ', ' . value('id') . ')' },
		sub { "$x.n = " . value('n') . " AND $x.a > " . value('a') }, sub { "$x.p = ANY (" . list_for('p') . ") AND $x.id = ANY (" . list_for('id') . ')' },
		sub { "$x.v % 3 = 0 AND $x.id < 900 AND $k > " . value($column) }, sub { "$x.n + 1 = " . value('n') }, sub { "$x.id BETWEEN $number AND $number + 25" })->();
	return $condition . (chance(40) ? ' AND ' . condition($x) : chance(6) ? ' OR ' . condition($x) : '');
}

# Of few rows.
sub window { my ($x) = @_; my $low = draw(1300); return chance(20) ? condition($x) : "$x.id BETWEEN $low AND " . ($low + one_of(5, 40, 120)) }

# A condition by which $y is looked up for a row of $x.
sub lookup
{
	my ($y, $x) = @_;
	my $condition = one_of("$y.id = $x.n", "$y.id = $x.r", "$y.id = $x.id", "$y.n = $x.n", "$y.a = $x.a", "$y.b = $x.b", "$y.c = $x.c", "$y.r = $x.id",
		"$y.n = $x.n AND $y.a = $x.a", "$y.p = $x.p AND $y.id = $x.n", "$y.id BETWEEN $x.n AND $x.n + 2", "$y.a = $x.a AND $y.id > $x.id", "$y.b = $x.b AND $y.c < $x.c",
		"$y.id IN ($x.n, $x.r)", "$y.id = ANY (ARRAY[$x.n, $x.r, NULL])", "$y.g = $x.n", "$y.id = $x.n + 1", "($y.id, $y.p) = ($x.r, $x.p)", "$y.id > $x.n AND $y.id < $x.n + 4",
		"$y.n = 5 AND $y.id = $x.n", "$y.id = abs($x.n - 5)");
	return $condition . (chance(35) ? ' AND ' . one_of("$y.v < 60", "$y.v + $x.v > 40", "$x.v <> 13", "length($y.w) > 30", "$y.n IS NOT NULL", condition($y)) : '');
}

# A subquery of one value.
sub scalar_for
{
	my ($x, $y) = ($_[0], $_[1] // 'y');
	my ($name, $total) = ordered($y);
	my $from = "$name $y WHERE " . lookup($y, $x);
	my $column = one_of(qw(id n a b c v));
	$column = 'v' if $type{ $column } && $type{$column} eq 'uuid';
	return one_of("(SELECT max($y.$column) FROM $from)", "(SELECT min($y.$column) FROM $from)", "(SELECT count(*) FROM $from)", "(SELECT sum($y.v) FROM $from)",
		"EXISTS (SELECT FROM $from)", "NOT EXISTS (SELECT FROM $from)", "(SELECT $y.v FROM $from ORDER BY $y.n, $total LIMIT 1)",
		"(SELECT $y.id FROM $from ORDER BY $y.id DESC LIMIT 1)", "CASE WHEN $x.v > 30 THEN (SELECT max($y.id) FROM $from) END",
		"ARRAY(SELECT $y.id FROM $from ORDER BY $y.id)",
		chance(50) ? "(SELECT max($y.v + " . ($y eq 'y' ? "(SELECT count(*) FROM " . name() . ' q WHERE ' . lookup('q', 'y') . ')' : '0') . ") FROM $from)" : "(SELECT min($y.p) FROM $from)");
}

# ---- queries: [SQL, s or o] ----

sub digest { my ($sql) = @_; return "SELECT count(*), sum(hashtext(q::text)::int8) FROM ($sql) q" }
sub unordered { my ($sql) = @_; return [ chance(50) ? digest($sql) : $sql, 's' ] }
sub direction { return one_of('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') }

sub from_tables
{
	my ($count) = @_;
	my $sql = name() . ' x1';
	foreach my $i (2 .. $count)
	{
		my $join = one_of('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
		my $outer = 'x' . (1 + draw($i - 1));
		$sql .= " $join " . name() . " x$i ON " . ($join eq 'FULL JOIN' ? one_of("x$i.id = $outer.id", "x$i.n = $outer.n AND x$i.a = $outer.a") : lookup("x$i", $outer));
	}
	return "FROM $sql WHERE " . window('x1');
}

my @queries = (
	sub { unordered('SELECT ' . one_of('x.id', 'x.id, x.v', 'x.*', 'x.n, x.a', 'x.b') . ' FROM ' . name() . ' x WHERE ' . condition('x')) },
	sub {
		my $column = column();
		my $order = direction();
		my $page = ' LIMIT ' . (1 + draw(40)) . one_of('', '', ' OFFSET ' . draw(100));
		my ($name, $total) = ordered('x', one_of('', ' DESC'));
		my $from = "FROM $name x WHERE " . (chance(70) ? condition('x') : 'true');
		return [ one_of("SELECT x.$column, x.id, x.p, x.v $from ORDER BY x.$column$order, $total$page", "SELECT x.$column $from ORDER BY x.$column$order$page", "SELECT x.id, x.w $from ORDER BY $total$page"), 'o' ];
	},
	sub {
		my $column = one_of(qw(a b n id));
		my ($sign, $order) = @{ one_of([ '>', '' ], [ '<', ' DESC' ], [ '>=', '' ]) };
		my $limit = 1 + draw(30);
		return [ "SELECT x.$column, x.id FROM " . name() . " x WHERE (x.$column, x.id) $sign (" . value($column, 1) . ', ' . value('id') . ") ORDER BY x.$column$order, x.id$order LIMIT $limit", 'o' ];
	},
	sub {
		my ($column, $group) = (column(), one_of(qw(n p a b v)));
		my $ends = ($type{$column} // '') eq 'uuid' ? 'count(x.id)' : "min(x.$column), max(x.$column)";
		my $from = ' FROM ' . name() . ' x' . one_of('', ' WHERE ' . condition('x'));
		return unordered(one_of("SELECT count(*), $ends$from", "SELECT count(DISTINCT x.$column)$from", "SELECT count(DISTINCT x.$column), min(x.${group}::text)$from",
				"SELECT x.$group, count(*), $ends$from GROUP BY x.$group", "SELECT x.$group, x.$column$from GROUP BY x.$group, x.$column", "SELECT x.$group, count(DISTINCT x.$column)$from GROUP BY x.$group",
				"SELECT x.$group$from GROUP BY x.$group HAVING count(*) > 1", "SELECT $ends$from"));
	},
	sub {
		my ($one, $two) = (column(), column());
		my $where = one_of('', " WHERE x.$one " . one_of('>', '<') . ' ' . value($one), " WHERE x.$one = ANY (" . list_for($one) . ')', " WHERE x.$one IN (" . values_of($one, 5) . ')', ' WHERE ' . condition('x'));
		my ($name, $total) = ordered('x', one_of('', ' DESC'));
		my ($from, $order) = (" FROM $name x$where", direction());
		return one_of(unordered("SELECT DISTINCT x.$one$from"), unordered("SELECT DISTINCT x.$one, x.$two$from"), [ "SELECT DISTINCT x.$one$from ORDER BY x.$one$order LIMIT " . (1 + draw(20)), 'o' ],
			[ "SELECT DISTINCT ON (x.$one) x.$one, x.id, x.p, x.v$from ORDER BY x.$one$order, $total", 's' ],
			unordered("SELECT x.$one, min(x.id), max(x.id)$from GROUP BY x.$one"), unordered("SELECT count(*) FROM (SELECT DISTINCT x.$one$from) q"),
			unordered("SELECT DISTINCT ON (x.$one, x.$two) x.$one, x.$two, x.id, x.p$from ORDER BY x.$one$order, x.$two, $total"));
	},
	(sub { my $n = 2 + draw(2); [ digest('SELECT ' . join(', ', map { ("x$_.id", "x$_." . one_of(qw(v n a b c w))) } 1 .. $n) . ' ' . from_tables($n)), 's' ] }) x 3,
	sub { [ 'SELECT x1.id, x1.p, x2.id, x2.p ' . from_tables(2) . one_of(' ORDER BY 1, 2, 3, 4', ' ORDER BY 1 DESC, 2, 3, 4') . one_of('', ' LIMIT ' . (1 + draw(50))), 'o' ] },
	sub {
		my $from = name() . ' x WHERE ' . window('x') . ' AND ';
		my $inner = ' FROM ' . name() . ' y WHERE ' . lookup('y', 'x');
		return unordered('SELECT x.id, x.v FROM ' . $from . one_of("EXISTS (SELECT$inner)", "NOT EXISTS (SELECT$inner)", "x.id IN (SELECT y.n$inner)", "x.n NOT IN (SELECT y.n$inner)",
				'x.n IN (SELECT y.id FROM ' . name() . ' y WHERE ' . condition('y') . ')', 'NOT EXISTS (SELECT FROM ' . name() . ' y WHERE y.id = x.n AND y.a = x.a)', "(EXISTS (SELECT$inner) OR x.v < 5)"));
	},
	(sub { unordered('SELECT x.id, ' . scalar_for('x') . ' AS s1' . (chance(40) ? ', ' . scalar_for('x', 'z') . ' AS s2' : '') . ' FROM ' . name() . ' x WHERE ' . window('x') . (chance(30) ? ' AND ' . scalar_for('x') . ' IS NOT NULL' : '')) }) x 3,
	sub { unordered('SELECT x1.id, ' . scalar_for('x1') . ' AS s, x2.id AS i, ' . scalar_for('x2') . ' AS t ' . from_tables(2)) },
	sub { unordered('SELECT x.n, count(*), ' . '(SELECT max(y.v) FROM ' . name() . ' y WHERE y.id = x.n) AS m FROM ' . name() . ' x WHERE ' . window('x') . ' GROUP BY x.n' . one_of('', ' HAVING EXISTS (SELECT FROM ' . name() . ' z WHERE z.n = x.n)')) },
	sub { my ($name, $total) = ordered('x', one_of('', ' DESC')); [ 'SELECT x.id, ' . scalar_for('x') . " FROM $name x WHERE " . one_of('true', condition('x')) . " ORDER BY $total LIMIT " . (1 + draw(60)), 'o' ] },
	sub {
		my ($name, $total) = ordered('y', one_of('', ' DESC'));
		my ($inner, $column) = (" FROM $name y WHERE " . lookup('y', 'x'), one_of(qw(id n v)));
		my ($join, $on) = @{ one_of([ 'CROSS JOIN', '' ], [ 'LEFT JOIN', ' ON true' ]) };
		return unordered('SELECT x.id, s.* FROM ' . name() . " x $join LATERAL (" . one_of("SELECT max(y.$column) AS m$inner", "SELECT min(y.$column), max(y.id)$inner",
				"SELECT y.id AS i, y.v$inner ORDER BY y.n DESC, $total LIMIT " . (1 + draw(3)), "SELECT y.id AS i$inner ORDER BY y.id DESC LIMIT 1", "SELECT DISTINCT y.n AS d$inner", "SELECT count(*)$inner")
			  . ") s$on WHERE " . window('x'));
	},
	sub { my ($name, $total) = ordered('x'); unordered("SELECT x.id, x.n, row_number() OVER (PARTITION BY x.n ORDER BY $total) AS k FROM $name x WHERE " . condition('x')) },
	sub { unordered('SELECT id, v FROM ' . name() . ' x WHERE ' . condition('x') . one_of(' UNION ALL ', ' UNION ', ' EXCEPT ', ' INTERSECT ') . 'SELECT id, v FROM ' . name() . ' x WHERE ' . condition('x')) },
	sub { my $low = draw(1200); [ "SELECT one_by_one('" . name() . "', $low, $low + " . draw(60) . ')', 's' ] },
	sub { unordered('SELECT x.id, u.k FROM unnest(' . list_for('id') . ') WITH ORDINALITY AS u (k, o) ' . one_of('JOIN', 'LEFT JOIN') . ' ' . name() . ' x ON x.' . one_of(qw(id n r)) . ' = u.k') });

sub query
{
	my $made = one_of(@queries)->();
	return ref $made ? $made : [ $made, 's' ];
}

# ---- statements that write ----

my @writes = (
	(sub {
		my ($table, $count) = (table(), one_of(1, 5, 60, 150));
		my $first = $next + 1;
		$next += $count;
		my ($lo, $hi) = chance(25) ? (draw(1300), draw(1300)) : ($first, $next);
		my $target = join(', ', @{ $table->{key} });
		return "INSERT INTO $table->{name} (" . list_of_columns() . ') ' . rows($lo, $hi) . one_of('', '', " ON CONFLICT DO NOTHING", " ON CONFLICT ($target) DO UPDATE SET v = excluded.v + $table->{name}.v, n = excluded.n + 1", ' RETURNING id, v');
	}) x 4,
	sub {
		my ($table, $count) = (table(), 1 + draw(6));
		my $first = $next + 1;
		$next += $count;
		return "INSERT INTO $table->{name} (" . list_of_columns() . ') VALUES ' . join(', ', map { '(' . join(', ', map { s/ AS \w+$//r } row($_)) . ')' } $first .. $next);
	},
	sub {
		my ($to, $x) = (name(), name());
		my $shift = ($next += 5000);
		return "INSERT INTO $to (" . list_of_columns() . ") SELECT x.id + $shift, x.p, x.n, x.a, x.b, x.c, x.v, x.r, x.w FROM $x x WHERE " . window('x') . one_of('', ' AND ' . scalar_for('x') . ' IS NOT NULL', ' ORDER BY x.a');
	},
	sub { my $x = name(); "UPDATE $x x SET " . one_of('v = v + 1', 'n = n + 1', 'a = b', 'n = v, v = n', "a = " . value('a'), 'p = (p + 1) % 8', 'r = ' . (1 + draw(400)), 'r = n', "id = id + " . ($next += 100000), 'w = left(w, 9)', 'c = DEFAULT', 'b = ' . value('b') . ', v = 7')
		  =~ s/a = b/$type{a} eq $type{b} ? 'a = b' : 'a = NULL'/er . ' WHERE ' . window('x') . one_of('', ' RETURNING id, n') },
	sub { my $from = table(); 'UPDATE ' . name() . " x SET v = y.v + 1, n = y.n FROM $from->{name} y WHERE y.id = x." . one_of(qw(n r id)) . other_keys($from, 'y', 'x') . ' AND ' . window('x') },
	sub { 'UPDATE ' . name() . ' x SET v = (SELECT max(y.v) + 1 FROM ' . name() . ' y WHERE ' . lookup('y', 'x') . ') WHERE ' . window('x') },
	sub { 'UPDATE ' . name() . ' x SET n = n + 1 WHERE ' . window('x') . ' AND EXISTS (SELECT FROM ' . name() . ' y WHERE ' . lookup('y', 'x') . ')' },
	(sub { my $low = draw(1500); 'DELETE FROM ' . name() . ' x WHERE ' . one_of("x.id BETWEEN $low AND $low + 12", "x.id = ANY (ARRAY[" . values_of('id', 9) . '])', "x.id BETWEEN $low AND $low + 60 AND x.v % 5 = 0", condition('x') . " AND x.v % 10 = 3") . one_of('', ' RETURNING id') }) x 2,
	sub { 'DELETE FROM ' . name() . ' x USING ' . name() . ' y WHERE ' . lookup('y', 'x') . ' AND ' . window('x') . ' AND x.v % 4 = 0' },
	sub {
		my $table = table();
		my ($low, $first) = (draw(1300), $next + 1);
		$next += 40;
		my ($lo, $hi) = @{ one_of([ $low, $low + 40 ], [ $first, $next ], [ $low, $low + 100 ]) };
		return "MERGE INTO $table->{name} x USING (" . rows($lo, $hi) . ') s ON x.id = s.id' . other_keys($table, 'x', 's')
		  . one_of(' WHEN MATCHED AND x.v % 7 = 0 THEN DELETE', '') . one_of(' WHEN MATCHED THEN UPDATE SET v = s.v + x.v, n = s.n + 1', ' WHEN MATCHED THEN UPDATE SET a = s.a, b = NULL', ' WHEN MATCHED THEN DO NOTHING')
		  . ' WHEN NOT MATCHED THEN INSERT (' . list_of_columns() . ') VALUES (' . join(', ', map { "s.$_" } @columns) . ')';
	},
	sub {
		my ($from, $to, $shift) = (name(), name(), $next += 5000);
		return "WITH d AS (DELETE FROM $from x WHERE " . window('x') . " AND x.v % 3 = 1 RETURNING *) INSERT INTO $to (" . list_of_columns() . ") SELECT id + $shift, p, n, a, b, c, v, r, w FROM d";
	},
	sub { 'SELECT count(*) FROM (SELECT FROM ' . name() . ' x WHERE ' . window('x') . one_of(' FOR UPDATE', ' FOR SHARE', ' FOR NO KEY UPDATE') . ') q' });

sub copy_rows
{
	my ($first, $count) = ($next + 1, one_of(3, 60, 200));
	my $name = name();
	$next += $count;
	my ($lo, $hi) = chance(15) ? (draw(1200), 1400) : ($first, $next);
	plain('COPY (' . rows($lo, $hi) . ") TO :'file'");
	emit("COPY $name (" . list_of_columns() . ") FROM :'file'", '');
	return;
}

sub change_table
{
	my $table = table();
	my $name = $table->{name};
	my $index = "${name}_i" . (1 + draw($table->{indexes} + 1));
	my ($part, $bound) = @{ one_of(@{ $table->{parts} // [ [ "${name}_0", 'DEFAULT' ] ] }) };
	my @ways = (index_on($table), index_on($table), "DROP INDEX IF EXISTS $index", "REINDEX TABLE $name", "ANALYZE $name", "ALTER INDEX IF EXISTS $index SET (fillfactor = 50)");
	# All of this is undone.
	push @ways, "ALTER TABLE $name DROP COLUMN " . one_of(qw(w b c)), "ALTER TABLE $name ALTER n TYPE int8", "ALTER TABLE $name ALTER v TYPE int8", "TRUNCATE $name", "TRUNCATE $name CASCADE", "ALTER TABLE $name DROP CONSTRAINT IF EXISTS ${name}_r",
	  "ALTER TABLE $name ADD z int4 DEFAULT 7", "ALTER TABLE $name DETACH PARTITION $part", "DROP TABLE $part", "ALTER TABLE $name ALTER id TYPE int8", "CLUSTER $name USING $index", "DROP TABLE $name CASCADE", "DELETE FROM $name"
	  if $savepoint == 2;
	my $way = one_of(@ways);
	emit($way, '');
	if ($way =~ /DETACH/)
	{
		emit(query()->[0], 's') if chance(50);
		emit("ALTER TABLE $name ATTACH PARTITION $part $bound", '');
	}
	return;
}

# ---- settings ----

my @learned = (
	[ btree_indexes => 'all', 'all', 'all', 't*', 'all, !t1*', 't2_*, t3_*', 'none' ], [ min_leaves => 0, 0, 3, 20 ], [ enable => 'on', 'on', 'off' ], (map { [ $_ => 'on', 'on', 'off' ] } qw(enable_leaf_cache enable_buffer_hint enable_insert
			enable_prefetch enable_row_prefetch enable_loose_scan)), [ lookahead_rows => 0, 1, 2, 7, 64, 64, 64 ], [ retrain_visits => -1, 0, 1, 24, 100000 ], [ max_error => 1, 2, 32, 1024 ],
	[ max_model_memory => '64kB', '256kB', '64MB', '64MB' ], [ debug_sort_keys => 'off', 'scrambled', 'always' ]);
my @planner = (
	(map { [ $_ => 'on', 'off', 'off' ] } qw(enable_seqscan enable_bitmapscan enable_hashjoin enable_mergejoin enable_material)), (map { [ $_ => 'on', 'on', 'off' ] } qw(enable_sort enable_hashagg enable_memoize enable_indexonlyscan enable_incremental_sort
			enable_partition_pruning)), (map { [ $_ => 'on', 'off' ] } qw(enable_partitionwise_join enable_partitionwise_aggregate parallel_leader_participation)), [ work_mem => '64kB', '1MB', '16MB' ], [ effective_io_concurrency => 0, 1, 16, 200 ],
	[ random_page_cost => 1, 4 ], [ plan_cache_mode => qw(auto force_generic_plan force_custom_plan) ], [ cursor_tuple_fraction => '0.01', 1 ], [ max_parallel_workers_per_gather => 0, 0, 2 ], [ parallel_setup_cost => 0, 1000 ],
	[ parallel_tuple_cost => 0, '0.1' ], [ min_parallel_table_scan_size => 0, '8MB' ], [ min_parallel_index_scan_size => 0, '512kB' ], [ join_collapse_limit => 1, 8 ], [ 'shapes.does' => '', '', '', qw(raise look catch log write fail), 'look log', 'catch write' ]);

sub set_some
{
	plain('RESET ALL') if chance(50);
	$script .= join('', map { "SET enable_$_ = off;\n" } qw(hashjoin mergejoin seqscan bitmapscan material)) . "SET random_page_cost = 0.1;\nSET cpu_tuple_cost = " . one_of(0.01, 1) . ";\n" if chance(45);
	my $set = sub { my ($prefix, $name, @values) = ($_[0], @{ $_[1] }); return "SET $prefix$name = '" . one_of(@values) . "';\n" };
	$script .= $set->('', one_of(@planner)) foreach 0 .. draw(4);
	$script .= "\\if :served\n" . join('', map { $set->('learnedbtree.', one_of(@learned)) } 0 .. draw(3)) . "\\endif\n";
	return;
}

# ---- transactions ----

sub cursor
{
	my $made;
	plain('CLOSE ALL');
	do { $made = query() } while $made->[1] ne 'o';
	my $hold = chance(30) ? 'WITH HOLD' : '';
	emit('DECLARE c ' . one_of('SCROLL', 'NO SCROLL', '') . " CURSOR $hold FOR $made->[0]", '');
	plain('SAVEPOINT s');
	for (0 .. 2 + draw(5))
	{
		emit(one_of('FETCH 1', 'FETCH 7', 'FETCH FORWARD 30', 'FETCH PRIOR', 'FETCH BACKWARD 5', 'FETCH LAST', 'FETCH FIRST', 'FETCH ABSOLUTE 4', 'FETCH RELATIVE -2', 'MOVE FORWARD 3', 'FETCH BACKWARD ALL') . ' FROM c', '');
		emit(one_of(@writes)->(), '') if chance(25);
	}
	emit('CLOSE c', '') unless $hold && chance(50);
	my ($name, $total) = ordered('x');
	emit("DECLARE u CURSOR FOR SELECT id, v FROM $name x WHERE " . window('x') . " ORDER BY $total FOR UPDATE", '');
	plain('SAVEPOINT s');
	for (0 .. 1 + draw(4))
	{
		emit('FETCH ' . one_of('', '3') . ' FROM u', '');
		emit(one_of("UPDATE $name SET v = v + 100, n = n + 1", "UPDATE $name SET a = NULL", "DELETE FROM $name") . ' WHERE CURRENT OF u', '') if chance(60);
	}
	emit('CLOSE u', '');
	return;
}

sub prepared
{
	my $sql = one_of('SELECT x.id, x.v FROM ' . name() . ' x WHERE x.' . one_of('n = $1', 'id = $1', 'id BETWEEN $1 AND $1 + 9', "a = v_$type{a}(\$1)", 'id = ANY (ARRAY[$1, $1 + 3, 5])', 'r = $1 AND x.n > 3'),
		'SELECT x.id, y.id AS i FROM ' . name() . ' x LEFT JOIN ' . name() . ' y ON ' . lookup('y', 'x') . ' WHERE x.id BETWEEN $1 AND $1 + 30', 'SELECT x.id, ' . scalar_for('x') . ' FROM ' . name() . ' x WHERE x.id BETWEEN $1 AND $1 + 20',
		'SELECT DISTINCT x.' . column() . ' FROM ' . name() . ' x WHERE x.n > $1', 'UPDATE ' . name() . ' SET v = v + 1 WHERE id = $1', 'DELETE FROM ' . name() . ' WHERE id = $1 AND v % 2 = 0', 'SELECT max(x.id), min(x.id) FROM ' . name() . ' x WHERE x.n = $1');
	plain('DEALLOCATE ALL');
	emit("PREPARE q (int4) AS $sql", '');
	for (0 .. 5 + draw(4))
	{
		emit('EXECUTE q (' . one_of('NULL', map { draw(1300) } 1 .. 15) . ')', '');
		emit(one_of(@writes)->(), '') if chance(20);
		change_table() if chance(8);
	}
	emit('DEALLOCATE q', '');
	return;
}

sub something
{
	my $what = draw(100);
	if ($what < 55)
	{
		my ($sql, $order) = @{ query() };
		emit($sql, $order);
		$script .= "\\if :served\n\\echo <<$number e>>\nEXPLAIN (COSTS off) $sql;\n\\endif\n" . ($savepoint ? "\\if :ERROR\nROLLBACK TO s;\n\\endif\n" : '') if chance(15) && !$paired;
	}
	elsif ($what < 80) { emit(one_of(@writes)->(), '') }
	elsif ($what < 86) { copy_rows() }
	elsif ($what < 91) { $savepoint ? cursor() : emit(one_of(@writes)->(), '') }
	elsif ($what < 95) { prepared() }
	else { change_table() }
	return;
}

# A script of this many transactions; first is of numbers of rows to come.  With "paired" it is one of several sessions.
sub shapes_statements
{
	my ($seed, $transactions, %params) = @_;
	start_drawing($seed);
	$paired = $params{paired};
	$next = 100000 + ($params{first} // 0);
	($script, $number) = ('', $number // 0);
	for (1 .. $transactions)
	{
		($savepoint, my $kind) = (0, draw(10));
		set_some() if chance(70);
		if ($kind < 4 || $paired && chance(60))
		{
			something() foreach 0 .. draw(4);
			emit('VACUUM ' . one_of('', '(ANALYZE) ', '(INDEX_CLEANUP on) ', '(FREEZE) ', $paired ? '' : '(FULL) ') . name(), '') if chance(20);
		}
		else
		{
			plain('BEGIN' . one_of('', '', '', ' ISOLATION LEVEL REPEATABLE READ', ' ISOLATION LEVEL SERIALIZABLE'));
			plain('SET CONSTRAINTS ALL DEFERRED') if chance(20);
			$savepoint = 2 if chance(40);    # in the end, all is undone
			$paired = 0;
			for (0 .. 1 + draw(5))
			{
				$savepoint ||= 1 if chance(85);
				plain('SAVEPOINT s') if $savepoint;
				something();
				emit('SET CONSTRAINTS ALL IMMEDIATE', '') if chance(10);
				plain(one_of('RELEASE s', 'ROLLBACK TO s')) if $savepoint && chance(35);
			}
			my $undone = $savepoint == 2;
			($savepoint, $paired) = (0, $params{paired});
			emit($undone || chance(15) ? 'ROLLBACK' : 'COMMIT', '');
		}
	}
	return $script;
}

# What the tables hold in the end, and whether their indexes are sound.
sub shapes_end
{
	($script, $savepoint, $paired) = ('', 0, 0);
	plain('RESET ALL');
	emit("SELECT count(*), sum(hashtext(x::text)::int8) FROM $_ x", '') foreach 'log', map { $_->{name} } @tables;
	emit("SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam, LATERAL bt_index_check(indexrelid, true) WHERE relkind = 'i' AND amname = 'btree' AND indisvalid AND indexrelid >= 16384 AND relnamespace = 'public'::regnamespace", '');
	return $script;
}

1;
