# Guards: their blocks take no lock and read no catalog, an error in one leaves nothing behind, and the statement can be
# cancelled.  So a lookup waits for no lock that it would not wait for under btree, and fails by no catalog's damage.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = PostgreSQL::Test::Utils::tempdir;
system("make -s -C '$FindBin::RealBin/../guards' PG_CONFIG=pg_config TO='$folder' >'$folder/build.log' 2>&1") == 0
  or die 'the module does not build: ' . slurp_file("$folder/build.log");
chmod 0755, $folder;

my $node = PostgreSQL::Test::Cluster->new('guards');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
session_preload_libraries = 'learnedbtree'
learnedbtree.btree_indexes = 'all'
learnedbtree.min_leaves = 0
learnedbtree.autotrain = off
enable_seqscan = off
enable_bitmapscan = off
max_parallel_workers_per_gather = 0
restart_after_crash = on
CONF
$node->start;
my $icu = $node->safe_psql('postgres', q{SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'}) eq 't';
my $asserts = $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION learnedbtree;
CREATE FUNCTION guard_fails(regclass) RETURNS bool LANGUAGE C AS '$folder/guards';
CREATE FUNCTION guard_locks(regclass, keep bool) RETURNS void LANGUAGE C AS '$folder/guards';
CREATE FUNCTION guard_lasts() RETURNS void LANGUAGE C AS '$folder/guards';
SQL

# A session's statements: the errors of those that fail, and what the others answer.
sub outcome
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY sqlstate\n$sql", on_error_stop => 1, timeout => 100);
	return join("\n", $err =~ /ERROR:  (\w+)/g, $out ne '' ? $out : ());
}

# ---- guards ----

is(outcome(<<'SQL'), "t\n0\n1", 'an error in a guard: the lock is gone, and the session goes on');
BEGIN;
SELECT guard_fails('pg_enum');
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'pg_enum'::regclass;
COMMIT;
SELECT 1;
SQL
is(outcome("SET statement_timeout = '200ms'; SELECT guard_lasts()"), '57014', 'a cancelled statement ends in a guard');
is(outcome("BEGIN; SAVEPOINT a; SET statement_timeout = '200ms';\n\\set ON_ERROR_STOP 0\nSELECT guard_lasts();\n"
	  . "ROLLBACK TO a; SET statement_timeout = 0; SELECT guard_fails('pg_enum'); COMMIT;\n"), "57014\nt", '... in a subtransaction');
SKIP:
{
	skip 'the server has no assertions', 2 unless $asserts;
	foreach my $sql ("SELECT guard_locks('pg_enum', true)", "SET debug_discard_caches = 1; SELECT guard_locks('pg_enum', false)")
	{
		my $log = -s $node->logfile;
		$node->psql('postgres', $sql);
		$node->wait_for_log(qr/ready to accept connections/, $log);
		like(substr(slurp_file($node->logfile), $log), qr/TRAP: failed Assert/, "an assertion tells of a lock in a guard: $sql");
	}
}

# ---- indexes ----

# Values of an enum that were added between others are the ones of whose order only the catalog knows: it is not asked.
$node->safe_psql('postgres', <<'SQL');
CREATE TYPE plain AS ENUM ('a', 'c', 'e');
CREATE TYPE added AS ENUM ('a', 'c', 'e');
ALTER TYPE added ADD VALUE 'b' BEFORE 'c';
ALTER TYPE added ADD VALUE 'd' BEFORE 'e';
CREATE DOMAIN plain_domain AS plain;
CREATE DOMAIN added_domain AS added;
SQL
$node->safe_psql('postgres', <<'SQL') if $icu;
CREATE COLLATION letters (provider = icu, locale = 'de-u-kf-upper');
CREATE COLLATION domains (provider = icu, locale = 'sv-u-kf-upper');
CREATE DOMAIN text_domain AS text COLLATE domains;
SQL
is($node->safe_psql('postgres', q{SELECT string_agg(enumlabel, '' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = 'added'::regtype AND oid::int8 % 2 = 1}),
	'bd', 'values added in between have odd OIDs');

# Table, type, an expression that gives value number i % 5 of the type, and a condition that an index on it serves.
my %shapes = (
	plains => [ 'plain', '(enum_range(NULL::plain))[1 + i % 3]', "k >= 'c'" ],
	addeds => [ 'added', '(enum_range(NULL::added))[1 + i % 5]', "k >= 'c' AND k < 'e'" ],
	plain_domains => [ 'plain_domain', '(enum_range(NULL::plain))[1 + i % 3]', 'k IS NOT NULL' ],
	added_domains => [ 'added_domain', '(enum_range(NULL::added))[1 + i % 5]', 'k IS NOT NULL' ],
	$icu ? (letters => [ 'text COLLATE letters', "'k' || hashint4(i)", "k > 'k1'" ],
		text_domains => [ 'text_domain', "'k' || hashint4(i)", "k > 'k1'" ],
		second => [ 'int, k2 text COLLATE letters', "i % 7, 'k' || hashint4(i)", q{k = 5 AND k2 > 'k'} ]) : ());

sub make
{
	my ($name, $am, $rows) = @_;
	my ($type, $value) = @{ $shapes{$name} };
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS $name; CREATE TABLE $name (k $type, i int8, pad text); "
		  . "INSERT INTO $name SELECT $value, i, repeat('x', 300) FROM generate_series(1, $rows) i; "
		  . "CREATE INDEX ${name}_k ON $name USING $am (k, " . ($name eq 'second' ? 'k2, ' : '') . "i) WITH (fillfactor = 10); VACUUM ANALYZE $name");
	return;
}

sub count_of { my ($name) = @_; return "SELECT count(pad) FROM $name WHERE $shapes{$name}[2];"; }

my %count;
foreach my $name (sort keys %shapes)
{
	make($name, 'btree', 2000);
	$count{$name} = outcome('SET learnedbtree.btree_indexes = none;' . count_of($name));
	is(outcome(count_of($name) x 2), "$count{$name}\n$count{$name}", "$name: first use");
	is(model_state($node, "${name}_k"), 'ready', "$name: first use has trained it");
	is($node->safe_psql('postgres', "SELECT verified > 0 FROM learnedbtree_stat WHERE indexrelname = '${name}_k'"), 't', "$name: and lookups use it")
	  unless $name =~ /domain/ && $name !~ /text/;
}

# Values that were added in between are looked up by nbtree, the others by the model.
$node->safe_psql('postgres', "ALTER TYPE added ADD VALUE 'bb' BEFORE 'c'; ALTER TYPE added ADD VALUE 'aa' BEFORE 'b'");
$node->safe_psql('postgres', "INSERT INTO addeds SELECT v, i, '' FROM unnest(enum_range(NULL::added)) v, generate_series(3001, 3200) i; SELECT learnedbtree_train('addeds_k')");
$node->safe_psql('postgres', "SELECT learnedbtree_stat_reset('addeds_k')");
is(outcome(q{SELECT string_agg(n::text, ' ') FROM (SELECT (SELECT count(*) FROM addeds a WHERE a.k = v AND a.i > 1500) n FROM unnest(enum_range(NULL::added)) v) x}),
	join(' ', map { /^.$/ ? 300 : 200 } qw(a aa b bb c d e)), 'values added in between: right answers');
is(stat_of($node, 'addeds_k', 'lookups, verified, delegated'), '3|3|4', 'values added in between: left to nbtree, the others predicted');

# ---- locks of others ----

# No lookup that btree serves without such a catalog waits for it.
foreach my $catalog (qw(pg_enum pg_enum_typid_sortorder_index))
{
	foreach my $name (grep { !/text|letters|second/ } sort keys %shapes)
	{
		make($name, 'btree', 2000);
		my $sql = count_of($name) =~ s/WHERE.*/WHERE k IS NOT NULL;/r;
		my $holder = $node->background_psql('postgres');
		$holder->query_safe($catalog eq 'pg_enum' ? 'BEGIN; LOCK TABLE pg_enum IN ACCESS EXCLUSIVE MODE'
			: "SET allow_system_table_mods = on; BEGIN; REINDEX INDEX $catalog");
		is(outcome("SET statement_timeout = '20s'; $sql"), 2000, "$catalog locked, $name: a lookup does not wait");
		$holder->query_safe('ROLLBACK');
		$holder->quit;
		ok($node->poll_query_until('postgres', "$sql SELECT state = 'ready' FROM learnedbtree_model('${name}_k')", "2000\nt"),
			"$catalog no longer locked, $name: then it is trained");
	}
}

# ---- a damaged catalog ----

make($_, 'btree', 2000) foreach qw(plains plain_domains);
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('pg_enum_oid_index')});
$node->stop;
my $kept = slurp_file($file);
open(my $fh, '+<:raw', $file) or die "$file: $!";
seek($fh, 8192, 0);
print $fh "\x5a" x 8192;
close $fh or die "$file: $!";
$node->start;
foreach my $name (qw(plains plain_domains))
{
	is(outcome('BEGIN; ' . count_of($name) . q{SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation::regclass::text LIKE 'pg_enum%'; COMMIT; SELECT 1}),
		"$count{$name}\n0\n1", "pg_enum's index is damaged, $name: no matter");
}
$node->stop;
open($fh, '>:raw', $file) or die "$file: $!";
print $fh $kept;
close $fh or die "$file: $!";
$node->start;

# ---- between statements ----

# What a session has counted, it also tells when it hears from others while it waits for its client.  An error that is
# swallowed there must leave it as it was: one that can be cancelled.  Another session's DROP has the counts' place made anew.
{
	$node->safe_psql('postgres', 'CREATE TABLE counted (k int PRIMARY KEY); INSERT INTO counted SELECT generate_series(1, 5000); '
		  . 'SELECT learnedbtree_train(\'counted_pkey\')');
	my $listener = $node->background_psql('postgres', on_error_stop => 0, timeout => 100);
	$listener->query('LISTEN gone');
	# What fails tells nothing at its end.
	$listener->query(q{DO $$ BEGIN PERFORM count(*) FROM counted WHERE k = 7; RAISE EXCEPTION 'undone'; END $$});
	my $oid = $node->safe_psql('postgres', q{SELECT 'counted_pkey'::regclass::oid});
	$node->safe_psql('postgres', 'DROP TABLE counted; NOTIFY gone');
	ok(eventually($node, "SELECT lookups > 0 FROM learnedbtree_stat_get($oid)"), 'a session tells its counts while it waits');
	like($listener->query('SELECT 1'), qr/^1/, '... goes on');
	$listener->query("SET statement_timeout = '200ms'");
	$listener->query('SELECT pg_sleep(20)');
	like($listener->{stderr}, qr/canceling statement due to statement timeout/, '... can be cancelled');
	$listener->quit;
}

# ---- nothing of the catalogs is known ----

# Indexes of our access method: with debug_discard_caches, a served one is btree's again before it is used.
SKIP:
{
	skip 'the server has no assertions', 1 unless $asserts;
	make($_, 'learnedbtree', 200) foreach sort keys %shapes;
	my %few = map { $_ => $node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_seqscan = on; ' . count_of($_)) } keys %shapes;
	$node->safe_psql('postgres', 'CREATE TABLE probes AS SELECT k, i FROM ' . ($icu ? 'letters' : 'addeds') . ' WHERE i % 20 = 0; VACUUM ANALYZE probes; '
		. 'COPY (SELECT * FROM addeds) TO ' . "'$folder/copied'");
	my $log = -s $node->logfile;
	foreach my $name (sort keys %shapes)
	{
		# No models are in shared memory, and no rows in shared buffers.
		$node->restart;
		my $insert = "INSERT INTO $name SELECT * FROM $name WHERE i = 7;";
		my $got = outcome('SET debug_discard_caches = 1; ' . count_of($name) . 'BEGIN; ' . $insert . 'ROLLBACK;' . count_of($name));
		is($got, "$few{$name}\n$few{$name}", "$name: nothing is known of the catalogs");
		is($node->safe_psql('postgres', "SELECT trainings > 0 FROM learnedbtree_stat WHERE indexrelname = '${name}_k'"), 't', "$name: ... and it is trained");
	}
	$node->restart;
	is(outcome("SET debug_discard_caches = 1; BEGIN; COPY addeds FROM '$folder/copied'; ROLLBACK; SELECT 1"), '1', 'COPY');
	my $join = 'SELECT count(t.pad) FROM probes p JOIN ' . ($icu ? 'letters' : 'addeds') . ' t ON t.k = p.k AND t.i = p.i';
	is(outcome("SET debug_discard_caches = 1; SET enable_hashjoin = off; SET enable_mergejoin = off; $join"), '10', 'a join');
	unlike(substr(slurp_file($node->logfile), $log), qr/TRAP|PANIC|terminated by signal|not owned|goes on without/, 'no assertion failed');
}
$node->stop;
done_testing();
