# Key codes against the operator classes' comparison functions: in btree's order of keys, their codes never
# decrease, and equal keys have one code.  The model learns from some of the keys, none of the extreme ones; the
# codes are of all.  LBT_KEY_ORDER_KEYS is their number a type.
#
# At the end, sort keys that contradict the collation: answers must be btree's all the same.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use Oracle;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir;
system("make -s -C '$FindBin::RealBin/../codes' PG_CONFIG=pg_config TO='$folder' >'$folder/build.log' 2>&1") == 0
  or die 'the module of key codes does not build: ' . slurp_file("$folder/build.log");
my $keys = $ENV{LBT_KEY_ORDER_KEYS} || 5_000;
my $tried = 0;

libc_locale();
my $node = oracle_node('key_order');
my %collation = collations($node);
if ($collation{icu})
{
	$node->safe_psql('postgres', "CREATE COLLATION icu_czech (provider = icu, locale = 'cs')");
	$collation{icu_czech} = 'icu_czech';
}

$node->safe_psql('postgres', qq(CREATE FUNCTION key_code(index regclass, VARIADIC key "any") RETURNS numeric LANGUAGE C STRICT AS '$folder/codes'));

# Random things, each call another; what has an argument does not depend on it, but must be evaluated for each row.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION whole(lo float8, hi float8) RETURNS int8 LANGUAGE sql VOLATILE AS 'SELECT floor(lo + random() * (hi - lo))::int8';
-- as often small as large
CREATE FUNCTION wide(bits int) RETURNS numeric LANGUAGE sql VOLATILE AS 'SELECT trunc(power(2::numeric, whole(0, bits)) * random()::numeric)';
CREATE FUNCTION sign() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT CASE WHEN random() < 0.5 THEN -1 ELSE 1 END';
CREATE FUNCTION one_of(VARIADIC of text[]) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT of[whole(1, cardinality(of) + 1)]';
CREATE FUNCTION letters(of text[], most int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	result text := '';
BEGIN
	FOR i IN 1..whole(0, most + 1) LOOP
		result := result || of[whole(1, cardinality(of) + 1)];
	END LOOP;
	RETURN result;
END $$;
CREATE FUNCTION random_numeric() RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT CASE whole(0, 6)
		WHEN 0 THEN sign() * wide(60) WHEN 1 THEN sign() * wide(30) / power(10::numeric, whole(0, 30))
		WHEN 2 THEN 12345678901234567890.00 + whole(-1000, 1000) * 0.0000000001
		WHEN 3 THEN sign() * (whole(0, 99999)::text || repeat('0', whole(0, 60)::int))::numeric
		WHEN 4 THEN sign() * ('0.' || repeat('0', whole(0, 60)::int) || whole(0, 99999) || repeat('0', whole(0, 5)::int))::numeric
		ELSE round((random() * 1000 - 500)::numeric, whole(0, 6)::int) END
$$;
CREATE FUNCTION random_inet() RETURNS inet LANGUAGE sql VOLATILE AS $$
	SELECT CASE whole(0, 4)
		WHEN 0 THEN set_masklen('0.0.0.0'::inet + whole(0, 4294967296), whole(0, 33)::int)
		WHEN 1 THEN set_masklen('10.1.0.0'::inet + whole(0, 5000), whole(0, 33)::int)
		WHEN 2 THEN set_masklen('2001:db8::'::inet + whole(0, 9e18), whole(0, 129)::int)
		ELSE network(set_masklen('10.1.0.0'::inet + whole(0, 500000), whole(8, 33)::int)) END
$$;
CREATE TYPE mood AS ENUM ('c', 'e', 'g', 'i');
ALTER TYPE mood ADD VALUE 'b' BEFORE 'c';
ALTER TYPE mood ADD VALUE 'j';
ALTER TYPE mood ADD VALUE 'f' BEFORE 'g';
ALTER TYPE mood ADD VALUE 'h' AFTER 'g';
ALTER TYPE mood ADD VALUE 'a' BEFORE 'b';
ALTER TYPE mood ADD VALUE 'd' BEFORE 'e';
CREATE DOMAIN price AS numeric;

-- How many keys' codes are less than one before them in the order (with near: than the one just before them); in one
-- column of one index, and beside another column on either side; and how many equal keys have several codes, or
-- a code of the first column alone that is more than one with a second.
CREATE FUNCTION disorder(way text, down text, near boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	code text;
	ordered text;
	result bigint;
BEGIN
	CASE way
		WHEN 'one' THEN code := $q$'one', k$q$; ordered := 'k ' || down;
		WHEN 'after' THEN code := $q$'after', g, k$q$; ordered := 'g, k ' || down;
		WHEN 'before' THEN code := $q$'before', k, g$q$; ordered := format('k %s, g DESC', down);
	END CASE;
	EXECUTE format('SELECT count(*) FROM (SELECT code, max(code) OVER (ORDER BY %s ROWS BETWEEN %s PRECEDING AND 1 PRECEDING) AS m '
				   'FROM (SELECT *, key_code(%s) AS code FROM key OFFSET 0) c) q WHERE code < m',
				   ordered, CASE WHEN near THEN '1' ELSE 'UNBOUNDED' END, code) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION unequal() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FROM (SELECT 1 FROM (SELECT k, key_code('one', k) AS code, key_code('before', k) AS part,
			key_code('before', k, g) AS code2 FROM key OFFSET 0) q
		GROUP BY k HAVING min(code) <> max(code) OR min(part) <> max(part) OR max(part) > min(code2)) r);
END $$;
SQL

# Keys of a type: of (its declaration), random (expression), extreme (list of expressions), and perhaps
# collate, opclass, using (the order's operator), twin (expression of another key from k, often an equal one that looks
# different), near (rare disagreements are allowed), few (not
# many values), tied (no code need tell them from each other), or loose: unequal keys may
# have equal sort keys, and a column behind them may then have its own order in the code.
sub try_keys
{
	my ($name, %type) = @_;
	my $declared = $type{of} . ($type{collate} ? qq( COLLATE "$type{collate}") : '');
	my $down = $tried++ % 2 ? '' : 'DESC';
	my $order = $type{using} ? ($down ? 'USING ~>~' : 'USING ~<~') : $down;
	my $class = $type{opclass} // '';
	my $extreme = join(', ', map { "(($_)::$type{of})" } @{ $type{extreme} });
	my $number = $type{tied} ? $keys / 5 : $keys;
	my $started = time;
	$node->safe_psql('postgres', <<"SQL");
DROP TABLE IF EXISTS key, sample;
SELECT setseed(0.5);
CREATE TABLE key (k $declared, g int);
INSERT INTO key SELECT ($type{random})::$type{of}, whole(-2, 8) FROM generate_series(1, $number) i;
CREATE TABLE sample AS SELECT k, (g + whole(0, 2) * 0)::int AS g FROM
	(SELECT *, ntile(10) OVER (ORDER BY k $order) AS part FROM key) q WHERE part BETWEEN 2 AND 9 AND random() < 0.3 AND g BETWEEN 0 AND 5;
INSERT INTO key SELECT k, g FROM (VALUES $extreme) v (k), generate_series(-2, 6, 4) g;
INSERT INTO key SELECT @{[ $type{twin} // 'k' ]}, whole(0, 5) FROM key WHERE random() < 0.05;
CREATE INDEX one ON sample USING learnedbtree (k $class $down) WITH (fillfactor = 10);
CREATE INDEX after ON sample USING learnedbtree (g, k $class $down) WITH (fillfactor = 10);
CREATE INDEX before ON sample USING learnedbtree (k $class $down, g DESC) WITH (fillfactor = 10);
SQL
	is($node->safe_psql('postgres', "SELECT string_agg((learnedbtree_model(i)).state, ' ') FROM unnest('{one, after, before}'::regclass[]) i"),
		'ready ready ready', "$name: models are made");
	my $near = $type{near} ? 'true' : 'false';
	my @wrong = split /\|/, $node->safe_psql('postgres',
		join(', ', 'SELECT count(*)', map { "disorder('$_', '$order', $near)" } qw(one after before)) . ' FROM key');
	my $all = shift @wrong;
	my ($codes, $leaves, $distinct) = split /\|/, $node->safe_psql('postgres',
		"SELECT count(DISTINCT key_code('one', k)), (SELECT leaves FROM learnedbtree_model('one')), (SELECT count(*) FROM "
		. "(SELECT k FROM key GROUP BY k LIMIT 1000) d) FROM key");
	note("$name: $all keys, $distinct or more different; $leaves leaves, $codes codes; disorder @wrong; ", time - $started, ' s');
	pop @wrong if $type{loose};
	if ($type{near})
	{
		cmp_ok((sort { $b <=> $a } @wrong)[0], '<', $all / 1000, "$name: codes are in the order of keys, but for rare exceptions");
	}
	else
	{
		is("@wrong", $type{loose} ? '0 0' : '0 0 0', "$name: codes are in the order of keys");
	}
	is($node->safe_psql('postgres', 'SELECT unequal()'), 0, "$name: equal keys have one code, and no less than their first column's");
	cmp_ok($codes, '>=', $type{tied} ? 1 : $type{few} ? $distinct / 4 : 500, "$name: codes tell keys from each other");
}

# Texts: letters that sort at many levels, groups of letters that sort as others do, what sorts as nothing.
my @letters = map { "'$_'" } 'a' .. 'f', 'A' .. 'F', ' ', '-', '_', '0', '9', 's', 'ss', 'ß', 'é', 'e', 'É', 'ä', 'ae', 'æ', 'ch',
  'll', 'ñ', 'o', 'ö', 'z', 'ž', 'č', 'è', 'ш', 'щ', 'й', 'σ', 'ς', '日', '本', '旧', 'ا', '€', 'ﬁ';
my $letters = 'ARRAY[' . join(', ', @letters, 'chr(1)', 'chr(127)', 'chr(769)', 'chr(8205)', 'chr(65533)', 'chr(128512)') . ']';
my $texts = "CASE whole(0, 4) WHEN 0 THEN letters($letters, 4) WHEN 1 THEN 'common prefix/' || letters($letters, 6) "
  . "WHEN 2 THEN repeat('Straße ', whole(0, 12)::int) || letters($letters, 3) ELSE letters($letters, 40) END";
my @texts = (q{''}, q{' '}, 'chr(1)', 'chr(1) || chr(1)', 'chr(1114111)', "repeat('z', 2000)", "repeat('aB', 20000)", "repeat('-', 3000) || 'a'",
	(map { "'$_'" } qw(strasse straße Strasse STRASSE cote coté côte côté Cote resume résumé RESUME co-op coop CO-OP a A á Á aa AA chz cz hz ll lz)),
	q{'common prefix'}, q{'common prefix/'}, q{'common prefix0'}, q{'10'}, q{'9'}, q{'1 0'}, 'U&\'a\0301\'', 'U&\'\00e1\'');

try_keys('numeric', of => 'numeric', random => 'random_numeric()', twin => 'k + 0.00000000', extreme => [ map { "'$_'" }
	qw(NaN Infinity -Infinity 0 -0 0.0000 1 1.0 1.000000 -1 -1.00 1e131000 -1e131000 1e-16000 -1e-16000 9999 10000 10000.0001 99999999 100000000
	12345678901234567890 12345678901234567890.000000000000001 12345678901234567891 -12345678901234567890 -12345678901234567891
	0.00001 0.0001 0.001 1e64 9.99e63 1e256 1e-256) ]);
try_keys('a domain of numeric', of => 'price', random => 'random_numeric()', extreme => [ "'NaN'", '0.00', '1e100' ]);
try_keys('int8', of => 'int8', random => 'sign() * wide(62)', extreme => [ '(-9223372036854775808)', '9223372036854775807', '0', '-1' ]);
try_keys('float8', of => 'float8', random => 'sign() * power(10, random() * 600 - 300)', extreme => [ map { "'$_'" }
	qw(NaN Infinity -Infinity 0 -0 5e-324 -5e-324 1.7976931348623157e308 -1.7976931348623157e308 1 -1) ]);
try_keys('float4', of => 'float4', random => 'sign() * power(10, random() * 74 - 37)', extreme => [ map { "'$_'" } qw(NaN Infinity -Infinity 0 -0 1e-45 3.4e38) ]);
try_keys('inet', of => 'inet', random => 'random_inet()', extreme => [ map { "'$_'" }
	qw(0.0.0.0/0 0.0.0.0 255.255.255.255 255.255.255.255/0 10.0.0.0/8 10.0.0.1/8 10.0.0.0/9 10.128.0.0/9 10.0.0.0 ::/0 :: ::/128 ::1 ::ffff:10.0.0.0/104
	ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8::/32 2001:db8::1/32 2001:db8::/33 128.0.0.0/1 127.255.255.255/1) ]);
try_keys('cidr', of => 'cidr', random => 'network(random_inet())', extreme => [ map { "'$_'" } qw(0.0.0.0/0 0.0.0.0/1 128.0.0.0/1 255.255.255.255 ::/0 ::/1 10.1.0.0/16 10.1.0.0/17) ]);
try_keys('macaddr', of => 'macaddr', random => q{lpad(to_hex(wide(48)::bigint), 12, '0')}, extreme => [ "'000000000000'", "'ffffffffffff'", "'800000000000'", "'7fffffffffff'" ]);
try_keys('macaddr8', of => 'macaddr8', random => q{lpad(to_hex(wide(63)::bigint), 15, '0') || one_of('0', '8', 'f')}, extreme => [ "'0000000000000000'", "'ffffffffffffffff'", "'8000000000000000'" ]);
try_keys('time', of => 'time', random => q{time '00:00' + random() * interval '24 h'}, extreme => [ "'00:00'", "'24:00'", "'23:59:59.999999'", "'00:00:00.000001'" ]);
# (Those added between others have no place in the order of codes.)
try_keys('enum', of => 'mood', random => q{one_of('c', 'e', 'g', 'i', 'j')}, extreme => [ map { "'$_'" } qw(c e g i j) ], few => 1);
try_keys('char(n)', of => 'char(24)', collate => 'C', random => "left(letters($letters, 6), 24)", extreme => [ "''", "' '", "'a'", "'a  '", "'a' || chr(1)", "chr(1)", "'  a'" ]);
try_keys('bpchar', of => 'bpchar', collate => 'C', random => "rtrim(letters($letters, 5))", twin => "k || '  '::bpchar", extreme => [ "'x'", "'x '", "'x' || chr(1)", "'x' || chr(31)", "'x' || chr(33)", "''", 'chr(1)' ]);
try_keys('bpchar_pattern_ops', of => 'char(24)', opclass => 'bpchar_pattern_ops', using => 1, collate => 'C', random => "left(letters($letters, 6), 24)", extreme => [ "''", "'a '", "'a' || chr(1)", 'chr(1)' ]);
try_keys('money', of => 'money', random => 'sign() * wide(62) / 100', extreme => [ "'0'", "'-92233720368547758.08'", "'92233720368547758.07'", "'-0.01'" ]);
try_keys('pg_lsn', of => 'pg_lsn', random => q{to_hex(wide(31)::bigint) || '/' || to_hex(wide(32)::bigint)}, extreme => [ "'0/0'", "'FFFFFFFF/FFFFFFFF'", "'80000000/0'", "'7FFFFFFF/FFFFFFFF'" ]);
try_keys('xid8', of => 'xid8', random => q{wide(62)::text}, extreme => [ "'0'", "'18446744073709551615'", "'9223372036854775808'" ]);
try_keys('text, C', of => 'text', collate => 'C', random => $texts, extreme => \@texts);
try_keys('text_pattern_ops', of => 'text', opclass => 'text_pattern_ops', using => 1, collate => 'C', random => $texts, extreme => \@texts);
# sort keys are of the first level, on which texts that differ in accents and case are the same
my %loose = map { $_ => 1 } grep { $_ ne 'unicode' } keys %collation;
foreach my $order (sort keys %collation)
{
	# sort keys are made of a text's first kilobyte (sortkey.c)
	my @extreme = grep { $order ne 'icu_shifted' || !/repeat\('-'/ } @texts;
	try_keys("text, $order", loose => $loose{$order}, of => 'text', collate => $collation{$order}, random => $texts, twin => "CASE WHEN random() < 0.5 THEN upper(k) ELSE normalize(k, NFD) END", extreme => \@extreme, near => $order eq 'libc');
}
# Plain characters, of which some are one letter together ("ccs" in Hungarian), or nothing.
try_keys("plain texts, $_", loose => $loose{$_}, of => 'text', collate => $collation{$_}, near => $_ eq 'libc', extreme => [ "''" ],
	random => q{(SELECT string_agg(one_of('c', 'C', 's', 'd', 'z', 'g', 'y', 'dzs', 'ccs', 'a', '-', '.', ' ', '1', '12', '@', 'o'), '') FROM generate_series(1, 1 + i % 7))})
	foreach sort keys %collation;
# Characters of two bytes: with an accent, one or two; of several alphabets, which ICU's weights say once for letters in a
# row; letters together ("ch" in Czech); and more pairs than are remembered.
my @further = map { "'$_'" } qw(e é è E É u ü Ü s ß ss o ø Ø æ c č Č h ch CH d ž dž l · а б В в и й Й ё я Я α ά Σ σ ς ω ا ب א ב - . 1), ' ';
foreach my $order (grep { $_ ne 'unicode' } sort keys %collation)
{
	my %text = (loose => $loose{$order}, of => 'text', collate => $collation{$order}, near => $order eq 'libc', extreme => [ "''" ]);
	try_keys("characters of two bytes, $order", %text, random => 'letters(ARRAY[' . join(', ', @further) . '], 8)');
	try_keys("with a mark, $order", %text, random => 'letters(ARRAY[' . join(', ', @further, 'chr(769)', 'chr(774)') . '], 8)');
	try_keys("all characters of two bytes, $order", %text,
		random => q{(SELECT string_agg(chr(whole(32, one_of('127', '2047')::int)::int), '') FROM generate_series(1, 1 + i % 7))});
}
try_keys('varchar, ICU', loose => 1, of => 'varchar', collate => $collation{icu}, random => $texts, extreme => \@texts) if $collation{icu};
try_keys('char(n), libc', loose => 1, of => 'char(40)', collate => $collation{libc}, random => "left($texts, 40)", extreme => [ "''", "'a'", "'a  '", "'a' || chr(1)" ], near => 1) if $collation{libc};

# Keys that differ only behind what a code, or the encoding of which it is made, takes in: what is beside them in the
# index must not decide.
try_keys('long numeric', of => 'numeric', tied => 1, random => q{(repeat('1234567890', 20) || '.' || whole(0, 2000))::numeric}, extreme => [ '0' ]);
try_keys('long negative numeric', of => 'numeric', tied => 1, random => q{('-' || repeat('1234567890', 20) || '.' || whole(0, 2000))::numeric}, extreme => [ '0' ]);
try_keys('long bytea', of => 'bytea', tied => 1, random => q{decode(repeat('00ff', 400), 'hex') || int8send(whole(0, 2000))}, extreme => [ q{'\x00'} ]);
foreach my $order ('C', sort keys %collation)
{
	my %text = (of => 'text', collate => $collation{$order} // $order, tied => 1, loose => $loose{$order}, near => $order eq 'libc');
	try_keys("long texts, $order", %text, random => q{repeat('one and the same, ', 30) || whole(0, 2000)}, extreme => [ "''" ]);
	try_keys("texts that differ in what sorts as nothing, $order", %text, random => q{whole(0, 300) || repeat(chr(1), whole(0, 4)::int)}, extreme => [ "''" ]);
	try_keys("texts that differ in the end and in case, $order", %text, extreme => [ "''" ], random => q{one_of('a', 'A') || repeat('x', 300) || one_of('b', 'B')});
}
note('not on this system: ', join(', ', grep { !$collation{$_} } qw(libc icu unicode)));

# ---- sort keys that contradict the collation ----

$node->safe_psql('postgres', <<'SQL');
-- Many questions about the table; compare() (see Oracle.pm) raises an error when the answers are not the same.
CREATE FUNCTION ask(times int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	key text[];
	condition text;
	query text;
	asked bigint := 0;
BEGIN
	FOR i IN 1..times LOOP
		-- a few that are there, and the first one changed to one that hardly is
		SELECT array_agg(k_k) || ((array_agg(k_k))[1] || 'x') INTO key
		  FROM (SELECT k_k FROM scrambled WHERE id IN (SELECT whole(1, 20000) FROM generate_series(1, 12)) OFFSET 0) q;
		FOREACH condition IN ARRAY ARRAY[
			format('@k = %L', key[1]), format('@k = %L', key[cardinality(key)]), format('@k BETWEEN %L AND %L', key[1], key[2]),
			format('@k > %L', key[3]), format('@k <= %L', key[1]), format('@k = ANY (%L)', key), format('@n = %s AND @k > %L', i % 20, key[1]),
			format('@n = %s AND @k = ANY (%L)', i % 20, key), format('@n = ANY (''{3, 7, 100}'') AND @k < %L', key[1])]
		LOOP
			FOREACH query IN ARRAY ARRAY['SELECT string_agg(id::text, '' '') FROM (SELECT id FROM scrambled WHERE %s ORDER BY @k LIMIT 9) q',
				'SELECT string_agg(id::text, '' '') FROM (SELECT id FROM scrambled WHERE %s ORDER BY @n DESC, @k DESC LIMIT 9) q',
				'SELECT concat_ws('' '', count(*), min(@k), max(@k), sum(id)) FROM scrambled WHERE %s']
			LOOP
				query := format(query, condition);
				PERFORM compare(replace(query, '@', 'k_'), replace(query, '@', 'b_'));
				asked := asked + 1;
			END LOOP;
		END LOOP;
	END LOOP;
	RETURN asked;
END $$;
SQL

sub set_sort_keys
{
	my ($how) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.debug_sort_keys = '$how'");
	$node->reload;
	wait_until($node, "SELECT current_setting('learnedbtree.debug_sort_keys') = '$how'");
}

my $changed = 0;    # times: each has other new keys

sub ask_and_change
{
	my ($what) = @_;
	is($node->psql('postgres', 'SELECT setseed(0.25); SELECT ask(3)'), 0, "$what: answers are btree's");
	my $seed = ++$changed / 100;
	my $changes = <<"SQL";
SELECT setseed($seed);
SELECT sum(insert_key(new_key(i), i % 20)) > 0 FROM generate_series(1, 3000) i;
DELETE FROM scrambled WHERE id % 20 = 7;
VACUUM scrambled;
SELECT sum(insert_key(k, n)) FROM (SELECT k_k AS k, k_n AS n FROM scrambled WHERE id % 5 = 1 OFFSET 0) q;
SQL
	like($node->safe_psql('postgres', $changes), qr/^\n?t\n0$/, "$what: no key comes into the unique index twice");
	my ($status, undef, $stderr) = $node->psql('postgres', 'INSERT INTO scrambled (k_k, k_n) SELECT k_k, k_n FROM scrambled WHERE id % 50 = 1 ORDER BY id DESC');
	like($stderr, qr/duplicate key value violates unique constraint "scrambled_k"/, "$what: one that is there is refused");
	is($node->psql('postgres', 'SELECT setseed(0.5); SELECT ask(1)'), 0, "$what: answers are btree's after changes");
	is($node->psql('postgres', check_sql('scrambled_k', 'scrambled_nk')), 0, "$what: the index files are sound");
}

# Lookups that ended in a descent, and whether the model was given up, of both indexes.
sub given_up
{
	return $node->safe_psql('postgres', q{SELECT bool_and(fallback_page + fallback_low + fallback_high + moved_right > 0
		OR (learnedbtree_model(indexrelid)).state = 'not paying') FROM learnedbtree_stat WHERE relname = 'scrambled'});
}

foreach my $order (grep { $collation{$_} } qw(icu libc icu_nocase))
{
	set_sort_keys('scrambled');
	$node->safe_psql('postgres', <<"SQL");
SELECT setseed(0.5);
CREATE TABLE scrambled (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k_k text COLLATE "$collation{$order}",
	b_k text COLLATE "$collation{$order}", k_n int, b_n int);
CREATE FUNCTION new_key(i int) RETURNS text LANGUAGE sql VOLATILE AS \$\$ SELECT letters($letters, 12) || whole(0, 100) \$\$;
CREATE UNIQUE INDEX scrambled_k ON scrambled USING learnedbtree (k_k) WITH (fillfactor = 30);
CREATE UNIQUE INDEX scrambled_b ON scrambled USING btree (b_k);
-- One by one: ON CONFLICT does not work with this index on all versions.
CREATE FUNCTION insert_key(k text, n int) RETURNS int LANGUAGE plpgsql AS \$\$
BEGIN
	INSERT INTO scrambled (k_k, b_k, k_n, b_n) VALUES (k, k, n, n);
	RETURN 1;
EXCEPTION WHEN unique_violation THEN
	RETURN 0;
END \$\$;
SELECT sum(insert_key(new_key(i), i % 20)) > 0 FROM generate_series(1, 20000) i;
REINDEX INDEX scrambled_k;
CREATE INDEX scrambled_nk ON scrambled USING learnedbtree (k_n, k_k) WITH (fillfactor = 30);
CREATE INDEX scrambled_nb ON scrambled USING btree (b_n, b_k);
VACUUM ANALYZE scrambled;
SQL
	ask_and_change("$order, sort keys scrambled");
	is(given_up(), 't', "$order: predictions by scrambled sort keys fail");
	set_sort_keys('always');
	ask_and_change("$order, trained with scrambled sort keys");
	$node->safe_psql('postgres', q{SELECT learnedbtree_train('scrambled_k'), learnedbtree_train('scrambled_nk'), learnedbtree_stat_reset()});
	ask_and_change("$order, sort keys set right");
	cmp_ok($node->safe_psql('postgres', q{SELECT min(100 * verified / greatest(lookups, 1)) FROM learnedbtree_stat WHERE relname = 'scrambled'}), '>', 90,
		"$order: predictions by true sort keys come true");
	set_sort_keys('scrambled');
	ask_and_change("$order, trained with true sort keys");
	is(given_up(), 't', "$order: predictions that contradict the training fail");
	$node->safe_psql('postgres', 'DROP TABLE scrambled; DROP FUNCTION new_key, insert_key');
}
note('no collation to scramble') unless $collation{icu} || $collation{libc};

$node->stop;
done_testing();
