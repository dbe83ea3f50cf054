# COPY asks ahead for the leaves of the rows that it has put into the table, and whose index entries come next: leaves are
# asked for where they are missing, and nowhere else; entries are right whatever the keys, triggers, errors and other tables'
# rows on the same pages; nothing stays pinned.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = new_small_node('copies');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (u uuid PRIMARY KEY, n int8, s text COLLATE "C", w text);
INSERT INTO t SELECT md5(g::text)::uuid, (g * 2654435761) % 4294967291, md5((g * 7)::text), 'x' FROM generate_series(1::int8, 60000) g;
CREATE INDEX t_n ON t (n DESC, s);
CREATE INDEX t_s ON t (s);
CREATE INDEX t_partial ON t (s) WHERE n % 2 = 0;
CREATE INDEX t_lower ON t (lower(s), n);
CREATE INDEX t_second ON t (n, lower(s));
CREATE TABLE plain (u uuid, n int8, s text, w text);
VACUUM ANALYZE;
SQL
my @indexes = qw(t_pkey t_n t_s t_partial t_lower t_second);

# Rows to copy; some have NULLs, long texts, and rows of other widths beside them.
sub rows
{
	my ($seed, $n) = @_;
	return $node->safe_psql('postgres', "SELECT md5('$seed-' || g)::uuid || E'\\t' || CASE WHEN g % 11 = 0 THEN '\\N' ELSE (hashint8($seed + g)::int8 & 4294967295)::text END || E'\\t' "
		  . "|| CASE WHEN g % 13 = 0 THEN '\\N' WHEN g % 17 = 0 THEN repeat(md5(g::text), 20) ELSE md5(g * 3 || '$seed') END || E'\\t' || repeat('w', g % 200) FROM generate_series(1, $n) g");
}

sub copy_file
{
	my ($seed, $n) = @_;
	my $file = $node->basedir . "/rows-$seed";
	append_to_file($file, rows($seed, $n) . "\n");
	chmod 0644, $file;
	return $file;
}

# Cold: what is in shared buffers goes by a restart; models are there before the first row.
sub cold
{
	$node->restart;
	$node->safe_psql('postgres', join(';', map { "SELECT learnedbtree_train('$_')" } @indexes) . '; SELECT learnedbtree_stat_reset()');
	return;
}

# How many leaves have been asked for ahead, by index.
sub asked
{
	my ($name) = @_;
	others_have_ended($node, 'postgres', '');
	return $node->safe_psql('postgres', "SELECT coalesce(sum(prefetched), 0) FROM learnedbtree_stat WHERE indexrelname = '$name'");
}

sub same
{
	my ($what) = @_;
	my $wanted = $node->safe_psql('postgres', 'SET learnedbtree.enable = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; '
		  . 'SELECT count(*), count(n), count(s), sum(n), md5(string_agg(u::text, \',\' ORDER BY u)) FROM t');
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_sort = off; SELECT count(*), count(n), count(s), sum(n), md5(string_agg(u::text, \',\' ORDER BY u)) FROM (SELECT * FROM t ORDER BY u) q'),
		$wanted, "$what: answers");
	is(amcheck_all(), '', "$what: amcheck is content");
	return;
}

sub amcheck_all
{
	return $node->safe_psql('postgres', join(';', map { "SELECT bt_index_check('$_', true)" } @indexes)) =~ s/^\s*$//gmr =~ s/\n//gr;
}

sub copies
{
	my ($file, $settings) = @_;
	return $node->safe_psql('postgres', ($settings // '') . "COPY t FROM '$file'");
}

my $file = copy_file(1, 4000);
cold();
copies($file);
cmp_ok(asked($_), '>', 300, "$_: leaves are asked for") foreach qw(t_pkey t_n t_s);
is(asked($_), 0, "$_: none are, as it has a condition, or expressions") foreach qw(t_partial t_lower t_second);
cmp_ok($node->safe_psql('postgres', "SELECT coalesce(sum(inserts), 0) FROM learnedbtree_stat WHERE indexrelname = '$_'"), '>', 1000, "$_: its inserts are served") foreach qw(t_partial t_lower t_second);
same('cold');
nothing_pinned($node);

cold();
copies(copy_file(2, 2000), 'SET learnedbtree.enable_prefetch = off;');
is(asked('t_pkey'), 0, 'turned off: none');
same('turned off');

# Rows one by one, by a trigger: no row comes after any, and each asks for its own leaves.
$node->safe_psql('postgres', 'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n = NEW.n + 1; RETURN NEW; END $$; '
	  . 'CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()');
cold();
copies(copy_file(3, 1000));
cmp_ok(asked($_), '<=', 1000, "row by row: no more leaves than rows of $_") foreach qw(t_pkey t_n t_s);
cmp_ok(asked('t_s'), '>', 100, '... but their own');
same('row by row');
$node->safe_psql('postgres', 'DROP TRIGGER b ON t');

# A key that cannot be computed: inserting its row raises the error, unless the row is not in the index.  (It is not computed
# before.)
foreach my $condition ('n > 0', "s <> '1000'")
{
	$node->safe_psql('postgres', "CREATE INDEX t_fails ON t ((1000000 / (n - 1000))) WHERE $condition; SELECT learnedbtree_train('t_fails')");
	my ($rc, undef, $err) = $node->psql('postgres', "SELECT learnedbtree_stat_reset(); COPY t FROM PROGRAM 'for i in \$(seq 1 1500); do printf \"%08x-1111-0000-0000-000000000000\\t\$i\\t\$i\\tx\\n\" \$i; done'");
	if ($condition eq 'n > 0')
	{
		like($err, qr/division by zero/, 'the row of a key that fails raises the error');
	}
	else
	{
		is($rc, 0, 'no error for a row that is not in the index') or diag($err);
		is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE 1000000 / (n - 1000) BETWEEN -2000000 AND 2000000 AND s <> \'1000\' AND n <= 1500'), 1499, '... and all others are');
	}
	$node->safe_psql('postgres', 'DROP INDEX t_fails');
	same($condition);
}

# An error among them; a subtransaction; rows of the same transaction before and after.
cold();
append_to_file($node->basedir . '/rows-dup', rows(4, 700) . "\n" . rows(1, 1) . "\n" . rows(5, 50) . "\n");
chmod 0644, $node->basedir . '/rows-dup';
my ($rc, $out, $err) = $node->psql('postgres', "COPY t FROM '" . $node->basedir . "/rows-dup'");
like($err, qr/duplicate key value violates unique constraint "t_pkey"/, 'a duplicate is found');
same('after an error');
my ($six, $seven) = map { copy_file($_, 900) } 6, 7;
$node->safe_psql('postgres', "BEGIN; COPY t FROM '$six'; SAVEPOINT s; COPY t FROM '" . copy_file(8, 500) . "'; ROLLBACK TO s; COPY t FROM '$seven'; COMMIT");
same('in subtransactions');

# Rows that are frozen at once, in a table of this transaction; and triggers that see what COPY has put there.
is( $node->safe_psql('postgres', "BEGIN; CREATE TABLE tf (LIKE t INCLUDING INDEXES); INSERT INTO tf SELECT * FROM t; SELECT learnedbtree_train('tf_pkey'); TRUNCATE tf; COPY tf FROM '$six' (FREEZE); SELECT count(*), count(DISTINCT u) FROM tf; COMMIT; "
		  . "SELECT bt_index_check('tf_pkey', true); SELECT count(*) FROM tf; DROP TABLE tf") =~ s/\s+/ /gr,
	' 900|900 900', 'FREEZE');
$node->safe_psql('postgres', 'CREATE TABLE seen (n int8); CREATE FUNCTION sees() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen SELECT count(*) FROM t WHERE u = NEW.u; UPDATE t SET w = w || 1 WHERE u = NEW.u; RETURN NULL; END $$; '
	  . 'CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION sees()');
cold();
copies(copy_file(12, 1500));
cmp_ok(asked('t_pkey'), '>', 100, 'with a trigger: leaves are asked for');
is($node->safe_psql('postgres', 'SELECT count(*), min(n), max(n) FROM seen'), '1500|1|1', '... which sees each row once');
same('with a trigger');
$node->safe_psql('postgres', 'DROP TRIGGER a ON t');

# Places of deleted rows are filled first: what comes next is elsewhere.
$node->safe_psql('postgres', 'DELETE FROM t WHERE n % 3 = 0; VACUUM t');
cold();
copies(copy_file(9, 3000));
cmp_ok(asked('t_pkey'), '>', 100, 'into holes: leaves are asked for');
same('into holes');

# Another session trains, splits and deletes in the middle.
my $other = $node->background_psql('postgres');
$other->query_safe('BEGIN');
$other->query_safe('INSERT INTO t SELECT md5(\'o\' || g)::uuid, g, g::text, NULL FROM generate_series(1, 3000) g');
my $ten = copy_file(10, 2000);
$node->safe_psql('postgres', "BEGIN; COPY t FROM '$ten'; SELECT learnedbtree_train('t_pkey'); COPY t FROM '" . copy_file(11, 2000) . "'; COMMIT");
$other->query_safe('COMMIT');
$other->quit;
same('beside another session');

# Keys of other types, which are passed by value or not, and encoded or not.
$node->safe_psql('postgres', "CREATE TYPE mood AS ENUM ('calm', 'glad', 'angry')");
foreach my $type ('mood', '"char"', 'bool', 'float4', 'float8', 'numeric', 'timestamptz', 'inet', 'bytea', 'name', 'varchar COLLATE "C"')
{
	my $expression = {
		mood => q{(ARRAY['calm', 'glad', 'angry'])[1 + abs(n) % 3]::mood}, '"char"' => 'chr(65 + (abs(n) % 26)::int)::"char"', bool => 'n % 2 = 0',
		inet => q{('10.' || abs(n) % 250 || '.' || abs(n) % 199 || '.3')::inet}, bytea => 'decode(md5(n::text), $$hex$$)', name => 'md5(n::text)::name',
		timestamptz => q{to_timestamp(n / 7)}
	}->{$type} // ($type =~ /varchar/ ? 'md5(n::text)' : "n::$type");
	my $file = $node->basedir . '/typed';
	is($node->safe_psql('postgres', "SET client_min_messages = warning; CREATE TABLE typed (v $type, n int8); INSERT INTO typed SELECT $expression, n FROM (SELECT hashint8(g)::int8 FROM generate_series(1, 4000) g) q(n); CREATE INDEX typed_v ON typed (v, n); "
			  . "SELECT learnedbtree_train('typed_v'); COPY (SELECT $expression, n FROM (SELECT hashint8(-g)::int8 FROM generate_series(1, 700) g) q(n)) TO '$file'; COPY typed FROM '$file'; "
			  . "SELECT count(*) FROM typed; SELECT bt_index_check('typed_v', true); SELECT learnedbtree_stat_reset(); DROP TABLE typed") =~ s/\s//gr,
		'4700', "keys of type $type");
}

# Temporary and unlogged tables, and a partitioned one.
is( $node->safe_psql('postgres', "CREATE TEMP TABLE tt (LIKE t INCLUDING INDEXES); COPY tt FROM '$ten'; SELECT count(*), count(DISTINCT u) FROM tt"),
	'2000|2000', 'a temporary table');
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE tu (LIKE t INCLUDING INDEXES); CREATE TABLE tp (LIKE t, PRIMARY KEY (u)) PARTITION BY HASH (u); '
	  . 'CREATE TABLE tp0 PARTITION OF tp FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE tp1 PARTITION OF tp FOR VALUES WITH (MODULUS 2, REMAINDER 1)');
foreach my $table (qw(tu tp))
{
	is($node->safe_psql('postgres', "COPY $table FROM '$six'; COPY $table FROM '$seven'; SELECT count(*) FROM $table"), '1800', "$table: all rows are there");
}
is($node->safe_psql('postgres', q{SELECT bt_index_check('tp0_pkey', true); SELECT bt_index_check('tu_pkey', true)}) =~ s/\s//gr, '', 'amcheck is content with these');

done_testing();
