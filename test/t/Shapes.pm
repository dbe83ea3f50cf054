# Random tables, and random statements of all shapes over them, as scripts for psql; for t/067_shapes.pl.  The same seed
# makes the same script.
#
# Before each statement a script prints <<N K>>: N is its number; K is s where its rows come in any order, o where their
# order is determined, S and O where the next statement is the same one by btree, and e for a plan, which is asked for
# only where indexes are served.  Afterwards it prints how many rows there were, or the error.  What a statement answers,
# and what it changes, never depends on the order in which rows are met: a LIMIT has a total order, by the table's key; a
# row to be updated meets one other row at most.
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
		plain($list eq 'all' ? "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSET LOCAL learnedbtree.btree_indexes = 'all';\nSAVEPOINT s"
			: "SET LOCAL learnedbtree.btree_indexes = 'none'") if $list;
		my $kind = $order || 's';
		$kind = uc $kind if $list eq 'all';
		$number++;
		$statements{$number} = $sql;
		$script .= "\\echo <<$number $kind>>\n$sql;\n\\if :ERROR\n\\echo ERROR :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE\n"
		  . ($savepoint || $list ? "ROLLBACK TO s;\n" : '') . "\\else\n\\echo rows :ROW_COUNT\n\\endif\n";
		plain('COMMIT') if $list eq 'none';
	}
	return;
}

# ---- tables ----

sub index_on
{
	my ($table) = @_;
	my $name = $table->{name} . '_i' . ++$table->{indexes};
	my @keys = (one_of(qw(n n n p a b id)), map { one_of(qw(id n n a a b c p r g)) } 1 .. draw(3));
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
	$domain{$_} = one_of(60, 300, 3000) foreach qw(a b c);
	$domain{n} = one_of(25, 300, 3000);
	$full = chance(25);    # no NULL in column a
	@tables = ();
	plain('DROP TABLE IF EXISTS ' . join(', ', map { "t$_" } 1 .. 4) . ' CASCADE');
	plain('TRUNCATE log');
	foreach my $name (map { "t$_" } 1 .. 3 + draw(2))
	{
		my $by = one_of('', '', '', '', 'hash (id)', 'range (id)', 'list (p)', 'list (p) sub', $full ? ('hash (a)') x 3 : '');
		my $table = { name => $name, by => $by, indexes => 0, rows => one_of(300, 1000, 1500, 3000) };
		$table->{key} = [ $by =~ /list/ ? one_of([ 'id', 'p' ], [ 'p', 'id' ])->@* : $by =~ /\(a\)/ ? ('id', 'a') : 'id' ];
		my $count = 2 + draw(7);
		push @tables, $table;
		plain("CREATE TABLE $name (id " . one_of('int4', 'int8') . ' NOT NULL, p int4 NOT NULL CHECK (p >= 0), n int4, '
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
		if (chance(60))
		{
			my $other = $tables[0]{name};
			plain("CREATE TRIGGER z_row BEFORE INSERT OR UPDATE ON $name FOR EACH ROW EXECUTE FUNCTION on_row('$other')") if $other ne $name;
			plain("CREATE TRIGGER z_after AFTER INSERT OR UPDATE OR DELETE ON $name FOR EACH ROW EXECUTE FUNCTION after_row('$other')");
		}
	}
	return $script;
}

# ---- templates ----
#
# {A|B|} is one of these.  {name:argument...} is what %fill has; what stands for itself until the end of a statement is
# remembered by it: {T:x} a table and its alias, by which {key:x} orders; {c:1} a column, of which {v:1} is a value.

sub table { return one_of(@tables) }
sub column { return one_of(qw(id id id n n n a a b c p r g)) }

sub value
{
	my ($column, $not_null) = @_;
	return 'NULL' if chance(3) && !$not_null;
	return "v_$type{$column}(" . draw($domain{$column} + 5) . ')' if $type{$column};
	return { id => draw(1700), p => draw(10), n => draw($domain{n}), r => draw(300), g => 2 * draw($domain{n}), v => draw(100) }->{$column};
}

# Numbers of rows: mostly such as there are none of yet.
sub numbers
{
	my ($count, $old) = @_;
	my $low = chance($old) ? draw(1300) : $next + 1;
	$next += $count;
	return ($low, $low + $count - 1);
}

my (%fill, %shapes);

sub expand
{
	my ($text, %is) = @_;
	1 while $text =~ s/\{([^{}]*)\}/fill($1, \%is)/e;
	return $text;
}

sub fill
{
	my ($what, $is) = @_;
	return one_of(split /\|/, $what, -1) if $what =~ /\|/;
	my ($kind, @arguments) = split /:/, $what;
	return $fill{$kind}->($is, @arguments) if $fill{$kind};
	# Another template, whose x and y are the arguments.
	my %alias = (x => $arguments[0] // 'x', y => $arguments[1] // 'y');
	return expand(one_of(@{ $shapes{$kind} }) =~ s/\b([xy])(?=[.:}])/$alias{$1}/gr);
}

%fill = (
	t => sub { return table()->{name} },
	is => sub { return $_[1] },
	listof => sub { my ($is, $of) = @_; return '{list:' . $is->{"c$of"} . '}' },
	T => sub { my ($is, $x, $as) = @_; $is->{$x} = table(); return $is->{$x}{name} . ($as // '') . " $x" },
	name => sub { my ($is, $x) = @_; return $is->{$x}{name} },
	key => sub { my ($is, $x, $way) = @_; return join(', ', map { "$x.$_ " . ($way // '') } @{ $is->{$x}{key} }) },
	keys => sub { my ($is, $x) = @_; return join(', ', @{ $is->{$x}{key} }) },
	# What a condition on id leaves out of the key of $y.
	same => sub { my ($is, $y, $x) = @_; return join('', map { " AND $y.$_ = $x.$_" } grep { $_ ne 'id' } @{ $is->{$y}{key} }) },
	c => sub { my ($is, $number) = @_; return $is->{"c$number"} //= column() },
	minmax => sub { my ($is, $number) = @_; my $c = $is->{"c$number"} //= column(); return ($type{$c} // '') eq 'uuid' ? 'count(x.id)' : "min(x.$c), max(x.$c)" },
	v => sub { my ($is, $of, $not_null) = @_; return value($is->{"c$of"} // $of, $not_null) },
	vs => sub { my ($is, $of, $count) = @_; return join(', ', map { value($is->{"c$of"} // $of) } 1 .. $count) },
	type => sub { my ($is, $of) = @_; my $type = $type{ $is->{"c$of"} // $of }; return $type ? $types{$type}[0] =~ s/ .*//r : one_of('int4', 'int8') },
	d => sub { my ($is, $number) = @_; return $is->{"d$number"} //= one_of('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') },
	n => sub { my ($is, $limit) = @_; return 1 + draw($limit) },
	m => sub { my ($is, $limit) = @_; return $is->{m} //= draw($limit) },    # the same number each time
	same_type => sub { return $type{a} eq $type{b} ? 'b' : 'NULL' },
	range => sub { my ($is, $of) = @_; my ($c, $low) = ($is->{"c$of"}, draw(1200)); my ($lo, $hi) = map { $type{$c} ? "v_$type{$c}($_)" : $_ } $low, $low + 30; return "x.$c BETWEEN $lo AND $hi" },
	cols => sub { return join(', ', @columns) },
	shift => sub { return $next += 5000 },
	far => sub { return $next += 100000 },
	rows => sub { my ($is, $count) = @_; return rows(numbers($count, 25)) },
	tuples => sub { my ($is, $count) = @_; my ($low, $high) = numbers($count, 0); return join(', ', map { '(' . join(', ', map { s/ AS \w+$//r } row($_)) . ')' } $low .. $high) });

%shapes = (
	list => [ 'ARRAY[{vs:x:1}]::{type:x}[]', ('ARRAY[{vs:x:3}]::{type:x}[]', 'ARRAY[{vs:x:10}]::{type:x}[]', 'ARRAY[{vs:x:60}]::{type:x}[]', 'ARRAY[{vs:x:300}]::{type:x}[]') x 2, 'ARRAY(SELECT {is:x} FROM {t} WHERE id BETWEEN {m:900} AND {m:900} + 40)' ],
	# Row comparisons do not begin with NULL, for which the server's own assertions do not hold.
	term => [ ('x.{c:1} = {v:1}') x 3, ('x.id BETWEEN {m:1200} AND {m:1200} + 25') x 2, 'x.{c:1} {<|<=|>|>=} {v:1}', 'x.{c:1} IN ({vs:1:4})', ('x.{c:1} = ANY ({listof:1})') x 2, 'x.{c:1} IS NULL', 'x.{c:1} IS NOT NULL AND x.{c:1} < {v:1}',
		'(x.a, x.b) {>|<=} ({v:a:1}, {v:b})', '(x.n, x.id) >= ({v:n:1}, {v:id})', 'x.n = {v:n} AND x.a > {v:a}', 'x.p = ANY ({list:p}) AND x.id = ANY ({list:id})', 'x.v % 3 = 0 AND x.id < 900 AND x.{c:1} > {v:1}', 'x.n + 1 = {v:n}' ],
	condition => [ ('{term:x}') x 5, ('{term:x} AND {term:x}') x 4, '({term:x} OR {term:x})', '{term:x} AND {term:x} AND {term:x}' ],
	window => [ ('x.id BETWEEN {m:1300} AND {m:1300} + {5|40|120}') x 4, '{condition:x} AND x.v % 8 = 3' ],
	# A condition by which y is looked up for a row of x.
	match => [ ('y.id = x.n', 'y.id = x.r', 'y.n = x.n') x 2, 'y.id = x.id', 'y.a = x.a', 'y.b = x.b', 'y.c = x.c', 'y.r = x.id', 'y.n = x.n AND y.a = x.a', 'y.p = x.p AND y.id = x.n', 'y.id BETWEEN x.n AND x.n + 2', 'y.a = x.a AND y.id > x.id', 'y.b = x.b AND y.c < x.c',
		'y.id IN (x.n, x.r)', 'y.id = ANY (ARRAY[x.n, x.r, NULL])', 'y.g = x.n', 'y.id = x.n + 1', '(y.id, y.p) = (x.r, x.p)', 'y.id > x.n AND y.id < x.n + 4', 'y.n = 5 AND y.id = x.n', 'y.id = abs(x.n - 5)' ],
	lookup => [ ('{match:x:y}') x 4, '{match:x:y} AND {y.v < 60|y.v + x.v > 40|x.v <> 13|length(y.w) > 30|y.n IS NOT NULL}', '{match:x:y} AND {term:y}' ],
	# A subquery of one value.
	scalar => [ '(SELECT {max|min}(y.{id|n|v}) FROM {T:y} WHERE {lookup:x:y})', '(SELECT {count(*)|sum(y.v)} FROM {T:y} WHERE {lookup:x:y})', '{|NOT }EXISTS (SELECT FROM {T:y} WHERE {lookup:x:y})', '(SELECT y.v FROM {T:y} WHERE {lookup:x:y} ORDER BY y.n, {key:y} LIMIT 1)',
		'(SELECT y.id FROM {T:y} WHERE {lookup:x:y} ORDER BY y.id {|DESC} LIMIT 1)', 'CASE WHEN x.v > 30 THEN (SELECT max(y.id) FROM {T:y} WHERE {lookup:x:y}) END', 'ARRAY(SELECT y.id FROM {T:y} WHERE {lookup:x:y} ORDER BY y.id)',
		'(SELECT max(y.v + (SELECT count(*) FROM {t} q WHERE {lookup:y:q})) FROM {T:y} WHERE {lookup:x:y})' ],
	join => [ ('{JOIN|LEFT JOIN} {T:y} ON {lookup:x:y}') x 4, 'RIGHT JOIN {T:y} ON {lookup:x:y}', 'FULL JOIN {T:y} ON {y.id = x.id|y.n = x.n AND y.a = x.a}' ],
	# Queries: in any order of rows, and in a determined one.
	unordered => [
		('SELECT {x.id|x.id, x.v|x.*|x.n, x.a} FROM {t} x WHERE {condition:x}') x 2,
		('SELECT {count(*), {minmax:1}|count(DISTINCT x.{c:1})|count(DISTINCT x.{c:1}), min(x.{p|n|v})|{minmax:1}} FROM {t} x {|WHERE {condition:x}}') x 2,
		'SELECT x.{c:2}, {count(*)|{minmax:1}|count(DISTINCT x.{c:1})} FROM {t} x {|WHERE {condition:x}} GROUP BY x.{c:2} {||HAVING count(*) > 1}', 'SELECT x.{c:1}, x.{c:2} FROM {t} x {|WHERE {term:x}} GROUP BY 1, 2',
		('SELECT DISTINCT x.{c:1}{||, x.{c:2}} FROM {t} x {|WHERE x.{c:1} > {v:1}|WHERE x.{c:1} = ANY ({listof:1})|WHERE x.{c:1} IN ({vs:1:5})|WHERE {condition:x}}') x 4,
		'SELECT DISTINCT ON (x.{c:1}) x.{c:1}, x.id, x.v FROM {T:x} {|WHERE x.{c:1} < {v:1}|WHERE x.{c:1} = ANY ({listof:1})} ORDER BY x.{c:1}{d:1}, {{key:x}|{key:x:DESC}}',
		'SELECT DISTINCT ON (x.{c:1}, x.{c:2}) x.{c:1}, x.{c:2}, x.id FROM {T:x} {|WHERE {term:x}} ORDER BY x.{c:1}{d:1}, x.{c:2}, {key:x}',
		('SELECT x1.id, x1.{v|n|a|w}, x2.id AS i, x2.{b|w} FROM {t} x1 {join:x1:x2} WHERE {window:x1}') x 3, 'SELECT x1.id, x2.id AS i, x3.id AS j, x3.v FROM {t} x1 {join:x1:x2} {join:{x1|x2}:x3} WHERE {window:x1}',
		'SELECT x.id, x.v FROM {t} x WHERE {window:x} AND {{|NOT }EXISTS (SELECT FROM {t} y WHERE {lookup:x:y})|x.id IN (SELECT y.n FROM {t} y WHERE {lookup:x:y})|x.n NOT IN (SELECT y.n FROM {t} y WHERE {lookup:x:y})|x.n IN (SELECT y.id FROM {t} y WHERE {condition:y})}',
		('SELECT x.id, {scalar:x:y} AS s FROM {t} x WHERE {window:x}') x 2, 'SELECT x.id, {scalar:x:y} AS s, {scalar:x:z} AS t FROM {t} x WHERE {window:x}', 'SELECT x.id FROM {t} x WHERE {window:x} AND {scalar:x:y} IS NOT NULL',
		'SELECT x1.id, {scalar:x1:y} AS s, x2.id AS i, {scalar:x2:z} AS t FROM {t} x1 {join:x1:x2} WHERE {window:x1}',
		'SELECT x.n, count(*), (SELECT max(y.v) FROM {t} y WHERE y.id = x.n) AS m FROM {t} x WHERE {window:x} GROUP BY x.n {|HAVING EXISTS (SELECT FROM {t} z WHERE z.n = x.n)}',
		('SELECT x.id, s.* FROM {t} x {JOIN|LEFT JOIN} LATERAL (SELECT {max|min}(y.{id|n|v}) AS m FROM {t} y WHERE {lookup:x:y}) s ON true WHERE {window:x}', 'SELECT x.id, s.* FROM {t} x {JOIN|LEFT JOIN} LATERAL (SELECT y.id AS i, y.v FROM {T:y} WHERE {lookup:x:y} ORDER BY y.n{d:1}, {key:y} LIMIT {n:3}) s ON true WHERE {window:x}',
			'SELECT x.id, s.* FROM {t} x {JOIN|LEFT JOIN} LATERAL (SELECT {DISTINCT y.n|count(*)|min(y.id), max(y.v)} FROM {t} y WHERE {lookup:x:y}) s ON true WHERE {window:x}') x 2,
		'SELECT x.id, x.n, row_number() OVER (PARTITION BY x.n ORDER BY x.id, x.p, x.a) AS k FROM {t} x WHERE {condition:x}',
		'SELECT id, v FROM {t} x WHERE {condition:x} {UNION ALL|UNION|EXCEPT|INTERSECT} SELECT id, v FROM {t} x WHERE {condition:x}', 'SELECT x.id, u.k FROM unnest({list:id}) AS u (k) {JOIN|LEFT JOIN} {t} x ON x.{id|n|r} = u.k' ],
	ordered => [
		'SELECT x.{c:1}, x.id, x.v FROM {T:x} WHERE {true|{condition:x}} ORDER BY x.{c:1}{d:1}, {{key:x}|{key:x:DESC}} LIMIT {n:40} {|OFFSET {n:100}}', 'SELECT x.{c:1} FROM {t} x WHERE {true|{condition:x}} ORDER BY x.{c:1}{d:1} {|LIMIT {n:40}}',
		'SELECT x.id, x.w FROM {T:x} WHERE {true|{condition:x}} ORDER BY {{key:x}|{key:x:DESC}} {LIMIT {n:40}|LIMIT 20 OFFSET {n:100}}', 'SELECT x.{a|b|n}, x.id FROM {t} x WHERE (x.n, x.id) > ({v:n:1}, {v:id}) ORDER BY x.n, x.id, 1 LIMIT {n:30}',
		'SELECT x.a, x.id FROM {t} x WHERE (x.a, x.id) {> ({v:a:1}, {v:id}) ORDER BY x.a, x.id|< ({v:a:1}, {v:id}) ORDER BY x.a DESC, x.id DESC} LIMIT {n:30}', 'SELECT DISTINCT x.{c:1} FROM {t} x {|WHERE {term:x}} ORDER BY x.{c:1}{d:1} LIMIT {n:20}',
		'SELECT x1.id, x1.p, x2.id, x2.p FROM {t} x1 {join:x1:x2} WHERE {window:x1} ORDER BY {1, 2, 3, 4|1 DESC, 2, 3, 4} {|LIMIT {n:50}}', 'SELECT x.id, {scalar:x:y} FROM {T:x} WHERE {true|{condition:x}} ORDER BY {{key:x}|{key:x:DESC}} LIMIT {n:60}',
		"SELECT one_by_one('{t}', {m:1200}, {m:1200} + {n:60})" ],
	write => [
		('INSERT INTO {T:x: AS} ({cols}) {rows:{1|5|60|150}} {||ON CONFLICT DO NOTHING|ON CONFLICT ({keys:x}) DO UPDATE SET v = excluded.v + x.v, n = excluded.n + 1|RETURNING id, v}') x 5, 'INSERT INTO {t} ({cols}) VALUES {tuples:{1|3|6}}',
		('INSERT INTO {t} ({cols}) SELECT x.id + {shift}, x.p, x.n, x.a, x.b, x.c, x.v, x.r, x.w FROM {t} x WHERE {window:x} {|AND {scalar:x:y} IS NOT NULL|ORDER BY x.a}') x 2,
		('UPDATE {t} x SET {v = v + 1|n = n + 1|a = {same_type}|n = v, v = n|a = {v:a}|p = (p + 1) % 8|r = {n:400}|r = n|id = id + {far}|w = left(w, 9)|c = DEFAULT|b = {v:b}, v = 7} WHERE {window:x} {|RETURNING id, n}') x 3,
		'UPDATE {t} x SET v = y.v + 1, n = y.n FROM {T:y} WHERE y.id = x.{n|r|id}{same:y:x} AND {window:x}', 'UPDATE {t} x SET v = (SELECT max(y.v) + 1 FROM {t} y WHERE {lookup:x:y}) WHERE {window:x}', 'UPDATE {t} x SET n = n + 1 WHERE {window:x} AND EXISTS (SELECT FROM {t} y WHERE {lookup:x:y})',
		('DELETE FROM {t} x WHERE {x.id BETWEEN {m:1500} AND {m:1500} + 12|x.id = ANY (ARRAY[{vs:id:9}])|x.id BETWEEN {m:1500} AND {m:1500} + 60 AND x.v % 5 = 0|{condition:x} AND x.v % 10 = 3} {|RETURNING id}') x 2, 'DELETE FROM {t} x USING {t} y WHERE {lookup:x:y} AND {window:x} AND x.v % 4 = 0',
		('MERGE INTO {T:x} USING ({rows:{40|100}}) s ON x.id = s.id{same:x:s} {|WHEN MATCHED AND x.v % 7 = 0 THEN DELETE} WHEN MATCHED THEN {UPDATE SET v = s.v + x.v, n = s.n + 1|UPDATE SET a = s.a, b = NULL|DO NOTHING} WHEN NOT MATCHED THEN INSERT ({cols}) VALUES (' . join(', ', map { "s.$_" } @columns) . ')') x 2,
		'WITH d AS (DELETE FROM {t} x WHERE {window:x} AND x.v % 3 = 1 RETURNING *) INSERT INTO {t} ({cols}) SELECT id + {shift}, p, n, a, b, c, v, r, w FROM d', 'SELECT count(*) FROM (SELECT FROM {t} x WHERE {window:x} FOR {UPDATE|SHARE|NO KEY UPDATE}) q' ],
	prepared => [ 'SELECT x.id, x.v FROM {t} x WHERE x.{n = $1|id = $1|id BETWEEN $1 AND $1 + 9|id = ANY (ARRAY[$1, $1 + 3, 5])|r = $1 AND x.n > 3}', 'SELECT x.id, y.id AS i FROM {t} x LEFT JOIN {t} y ON {lookup:x:y} WHERE x.id BETWEEN $1 AND $1 + 30',
		'SELECT x.id, {scalar:x:y} FROM {t} x WHERE x.id BETWEEN $1 AND $1 + 20', 'SELECT DISTINCT x.{c:1} FROM {t} x WHERE x.n > $1', 'UPDATE {t} SET v = v + 1 WHERE id = $1', 'DELETE FROM {t} WHERE id = $1 AND v % 2 = 0', 'SELECT max(x.id), min(x.id) FROM {t} x WHERE x.n = $1' ],
	fetch => [ map { "$_ FROM c" } 'FETCH 1', 'FETCH 7', 'FETCH FORWARD 30', 'FETCH PRIOR', 'FETCH BACKWARD 5', 'FETCH LAST', 'FETCH FIRST', 'FETCH ABSOLUTE 4', 'FETCH RELATIVE -2', 'MOVE FORWARD 3', 'FETCH BACKWARD ALL' ]);

# A query, and its kind.
sub query
{
	return (expand('{ordered}'), 'o') if chance(30);
	return (expand(chance(50) ? 'SELECT count(*), sum(hashtext(q::text)::int8) FROM ({unordered}) q' : '{unordered}'), 's');
}

sub copy_rows
{
	plain('COPY (' . expand('{rows:{3|60|200}}') . ") TO :'file'");
	emit(expand("COPY {t} ({cols}) FROM :'file'"), '');
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
	push @ways, (map { "ALTER TABLE $name $_" } 'DROP COLUMN w', 'DROP COLUMN b', 'DROP COLUMN c', 'ALTER n TYPE int8', 'ALTER v TYPE int8', 'ALTER id TYPE int8', "DROP CONSTRAINT IF EXISTS ${name}_r", 'ADD z int4 DEFAULT 7', "DETACH PARTITION $part"),
	  (map { "$_ $name" } 'TRUNCATE', 'DELETE FROM'), "TRUNCATE $name CASCADE", "DROP TABLE $name CASCADE", "DROP TABLE $part", "CLUSTER $name USING $index" if $savepoint == 2;
	my $way = one_of(@ways);
	emit($way, '');
	if ($way =~ /DETACH/)
	{
		emit(query()) if chance(50);
		emit("ALTER TABLE $name ATTACH PARTITION $part $bound", '');
	}
	return;
}

# ---- settings ----

my @learned = (
	[ btree_indexes => 'all', 'all', 'all', 't*', 'all, !t1*', 't2_*, t3_*', 'none' ], [ min_leaves => 0, 0, 3, 20 ], [ enable => 'on', 'on', 'off' ], (map { [ $_ => 'on', 'on', 'off' ] } qw(enable_leaf_cache enable_buffer_hint enable_insert
			enable_prefetch enable_row_prefetch enable_loose_scan)), [ lookahead_rows => 0, 1, 2, 7, 64, 64, 64 ], [ retrain_visits => -1, 0, 1, 24, 100000 ],
	[ max_model_memory => '64kB', '256kB', '64MB', '64MB' ], [ debug_sort_keys => 'off', 'scrambled', 'always' ]);
my @planner = (
	(map { [ $_ => 'on', 'off', 'off' ] } qw(enable_seqscan enable_bitmapscan enable_hashjoin enable_mergejoin enable_material)), (map { [ $_ => 'on', 'on', 'off' ] } qw(enable_sort enable_hashagg enable_memoize enable_indexonlyscan enable_incremental_sort
			enable_partition_pruning)), (map { [ $_ => 'on', 'off' ] } qw(enable_partitionwise_join enable_partitionwise_aggregate parallel_leader_participation)), [ work_mem => '64kB', '1MB', '16MB' ], [ effective_io_concurrency => 0, 1, 16, 200 ],
	[ random_page_cost => 0, 1, 4 ], [ cpu_operator_cost => 0, '0.0025' ], [ constraint_exclusion => 'on', 'partition' ], [ plan_cache_mode => qw(auto force_generic_plan force_custom_plan) ], [ cursor_tuple_fraction => '0.01', 1 ], [ max_parallel_workers_per_gather => 0, 0, 2 ], [ parallel_setup_cost => 0, 1000 ],
	[ parallel_tuple_cost => 0, '0.1' ], [ min_parallel_table_scan_size => 0, '8MB' ], [ min_parallel_index_scan_size => 0, '512kB' ], [ join_collapse_limit => 1, 8 ]);

sub set_some
{
	plain('RESET ALL') if chance(50);
	$script .= join('', map { "SET enable_$_ = off;\n" } qw(hashjoin mergejoin seqscan bitmapscan material)) . "SET random_page_cost = 0.1;\nSET cpu_tuple_cost = " . one_of(0, 0.01, 1) . ";\n" if chance(45);
	my $set = sub { my ($prefix, $name, @values) = ($_[0], @{ $_[1] }); return "SET $prefix$name = '" . one_of(@values) . "';\n" };
	$script .= $set->('', one_of(@planner)) foreach 0 .. draw(4);
	$script .= $set->('shapes.', [ does => '', '', '', qw(raise look catch log write fail), 'look log', 'catch write' ]);
	$script .= "\\if :served\n" . join('', map { $set->('learnedbtree.', one_of(@learned)) } 0 .. draw(3)) . "\\endif\n";
	return;
}

# ---- transactions ----

sub cursor
{
	plain('CLOSE ALL');
	emit(expand('DECLARE c {SCROLL|NO SCROLL|} CURSOR {||WITH HOLD} FOR {ordered}'), '');
	plain('SAVEPOINT s');
	for (0 .. 2 + draw(5))
	{
		emit(expand('{fetch}'), '');
		emit(expand('{write}'), '') if chance(25);
	}
	emit('CLOSE c', '') if chance(70);
	my $name = table()->{name};
	emit(expand("DECLARE u CURSOR FOR SELECT id, v FROM $name x WHERE {window:x} ORDER BY id, p, a FOR UPDATE"), '');
	plain('SAVEPOINT s');
	for (0 .. 1 + draw(4))
	{
		emit(expand('FETCH {|3} FROM u'), '');
		emit(expand("{UPDATE $name SET v = v + 100, n = n + 1|UPDATE $name SET a = NULL|DELETE FROM $name} WHERE CURRENT OF u"), '') if chance(60);
	}
	emit('CLOSE u', '');
	return;
}

sub prepared
{
	plain('DEALLOCATE ALL');
	emit(expand('PREPARE q (int4) AS {prepared}'), '');
	for (0 .. 5 + draw(4))
	{
		emit('EXECUTE q (' . (chance(6) ? 'NULL' : draw(1300)) . ')', '');
		emit(expand('{write}'), '') if chance(20);
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
		my ($sql, $order) = query();
		emit($sql, $order);
		$script .= "\\if :served\n\\echo <<$number e>>\nEXPLAIN (COSTS off) $sql;\n\\endif\n" . ($savepoint ? "\\if :ERROR\nROLLBACK TO s;\n\\endif\n" : '') if chance(60) && !$paired;
	}
	elsif ($what < 86) { $what < 80 ? emit(expand('{write}'), '') : copy_rows() }
	elsif ($what < 95) { $what < 91 && $savepoint ? cursor() : prepared() }
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
			emit('VACUUM ' . one_of('', '(ANALYZE) ', '(INDEX_CLEANUP on) ', '(FREEZE) ', $paired ? '' : '(FULL) ') . table()->{name}, '') if chance(20);
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
