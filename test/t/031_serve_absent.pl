# Sessions without the library, and a server whose library file is missing: the setting means nothing there, and nothing
# fails; it serves once the library is there, extension or not.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('absent');
$node->init;
$node->append_conf('postgresql.conf', "learnedbtree.min_leaves = 0\nautovacuum = off\n");
$node->start;
my $have_citext = -e $node->config_data('--sharedir') . '/extension/citext.control';
my $serving = !needs_preload($node);
my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';

# ---- how a user learns of it ----

my ($rc, $out, $err) = $node->psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (id int8 PRIMARY KEY, a int4, x text COLLATE "C" UNIQUE);
INSERT INTO t SELECT g, g / 10, 'x' || g FROM generate_series(1, 5000) g;
CREATE INDEX t_a ON t (a);
CREATE TABLE child (t int8 REFERENCES t ON DELETE CASCADE);
CREATE TABLE renamed (k int);
CREATE INDEX renamed_k ON renamed (k);
INSERT INTO renamed SELECT generate_series(1, 3000);
CREATE TABLE p (k int PRIMARY KEY) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10000);
INSERT INTO p SELECT generate_series(1, 3000);
SQL
is($rc, 0, 'the extension can be created where sessions do not load the library');

# Without the library the setting takes any value, which is read when the library comes.
my $list = 't_pkey, "t_a", t_x*, p_pkey, renamed_k';
my $plain = q{SET learnedbtree.btree_indexes = 'no, list "'; SHOW learnedbtree.btree_indexes};
is($node->safe_psql('postgres', $plain), 'no, list "', 'a session without the library takes any value') if $serving;
($rc, $out, $err) = $node->psql('postgres', <<"SQL");
LOAD 'learnedbtree';
ALTER DATABASE postgres SET learnedbtree.btree_indexes = '$list';
ALTER ROLE CURRENT_USER SET learnedbtree.btree_indexes = '$list';
ALTER ROLE CURRENT_USER RESET learnedbtree.btree_indexes;
SQL
is($rc, 0, 'indexes can be named where new sessions do not load the library');
my @hints = $err =~ /^HINT: +(.*)$/mg;
my $statement = 'ALTER DATABASE postgres SET session_preload_libraries = learnedbtree;';
like("@hints", $serving ? qr/^$/ : qr/^[^.]*\bshared_preload_libraries and restart the server\.$/, 'where there is no memory, a hint says what to do, once') or diag($err);
my $query = "$settings SELECT x FROM t WHERE id = 77";
is(predicted_in($node, 'postgres', sub { is($node->safe_psql('postgres', $query), 'x77', 'an answer') }, 't_pkey'), '', 'without it new sessions serve nothing');
if ($serving) { $node->safe_psql('postgres', $statement); }
else
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\n");
	$node->restart;
}
is(predicted_in($node, 'postgres', sub { is($node->safe_psql('postgres', $query), 'x77', 'an answer') }, 't_pkey'), 't_pkey', 'after it they do');
is(($node->psql('postgres', "ALTER DATABASE postgres SET learnedbtree.btree_indexes = '$list'"))[2], '', 'and nothing more is said');
$node->safe_psql('postgres', "SELECT learnedbtree_train('t_pkey')");

# In one session LOAD does it, where models need no memory of the server's start.
if ($serving)
{
	$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');
	is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', $query) }, 't_pkey'), '', 'off again');
	is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "LOAD 'learnedbtree'; $query") }, 't_pkey'), 't_pkey', 'LOAD serves a session');
	my $session = $node->background_psql('postgres');
	$session->query_safe("$settings SET plan_cache_mode = force_generic_plan; PREPARE q(int8) AS SELECT x FROM t WHERE id = \$1; EXECUTE q(5)");
	is(predicted_in($node, 'postgres', sub { asked($session, 'EXECUTE q(6)') }, 't_pkey'), '', 'a session with a plan');
	is(predicted_in($node, 'postgres', sub { asked($session, "LOAD 'learnedbtree'; EXECUTE q(7)") }, 't_pkey'), 't_pkey', 'serves it after LOAD');
	$session->quit;
}
else
{
	# So that the file is not there for any session.
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
	$node->restart;
}

# ---- two kinds of sessions on the same leaves ----

if ($serving)
{
	my $with = $node->background_psql('postgres');
	my $without = $node->background_psql('postgres');
	$_->query_safe("$settings SET client_min_messages = error") foreach $with, $without;
	$with->query_safe("LOAD 'learnedbtree'");
	foreach my $round (1 .. 20)
	{
		my $from = 10000 + $round * 1000;
		$with->query_safe("INSERT INTO t SELECT g, g / 10, 'x' || g FROM generate_series($from, $from + 400, 2) g");
		$without->query_safe("INSERT INTO t SELECT g, g / 10, 'x' || g FROM generate_series($from + 1, $from + 401, 2) g; DELETE FROM t WHERE a BETWEEN $round * 10 AND $round * 10 + 3; VACUUM t");
		my $question = "SELECT (SELECT count(*) FROM t WHERE id BETWEEN $from AND $from + 401), (SELECT count(*) FROM t WHERE a = $from / 10 + 3), "
		  . "(SELECT count(*) FROM t WHERE x IN ('x" . ($from + 3) . "', 'x" . ($from + 4) . "')), (SELECT count(*) FROM t WHERE a = $round * 10 + 1)";
		is($_->query_safe($question), '402|10|2|0', "round $round: both find all") foreach $with, $without;
	}
	$_->quit foreach $with, $without;
	is(amcheck_all($node, 'postgres'), '', 'amcheck is content');
}

# ---- the library's file is missing ----

my $functions = "UPDATE pg_proc SET probin = '\$libdir/%s' WHERE probin = '\$libdir/%s'";
my ($away, $back) = map { "SET allow_system_table_mods = on; $_" } sprintf($functions, 'no_such_library', 'learnedbtree'), sprintf($functions, 'learnedbtree', 'no_such_library');
$node->safe_psql('postgres', 'CREATE DATABASE dropped TEMPLATE postgres');
$node->safe_psql($_, $away) foreach 'postgres', 'dropped';
isnt(($node->psql('postgres', "SELECT learnedbtree_train('t_a')"))[0], 0, 'the library is missing');

sub works
{
	my ($name, $sql, $wanted) = @_;
	my ($code, $answer, $complaint) = $node->psql('postgres', "$settings $sql");
	is($code, 0, "$name: works") or diag($complaint);
	is($answer, $wanted, "$name: the answer") if defined $wanted;
	note($complaint) if $complaint =~ /WARNING/;
	return;
}

works('a query', 'SELECT x FROM t WHERE id = 78; SELECT count(*) FROM t WHERE a = 300', "x78\n10");
works('an insert', "INSERT INTO t VALUES (90001, 1, 'new'), (78, 1, 'x') ON CONFLICT DO NOTHING; INSERT INTO child VALUES (78)");
works('an update', 'UPDATE t SET id = 90002 WHERE id = 79 RETURNING x', 'x79');
works('a delete', 'DELETE FROM t WHERE id = 90002; DELETE FROM t WHERE id = 78; SELECT count(*) FROM child', '0');
works('COPY', "COPY (SELECT 95000, 1, 'copied') TO '" . $node->basedir . "/row'; COPY t FROM '" . $node->basedir . "/row'");
works('ANALYZE and VACUUM', 'ANALYZE; VACUUM t');
works('ALTER INDEX RENAME', 'ALTER INDEX renamed_k RENAME TO renamed_new; SELECT count(*) FROM renamed WHERE k = 301', '1');
works('ALTER TABLE', 'ALTER TABLE t ADD c int DEFAULT 5; ALTER TABLE t ALTER a TYPE int8; ALTER TABLE t RENAME c TO d');
works('ALTER INDEX RENAME of another index', 'CREATE INDEX t_d ON t (d); ALTER INDEX t_d RENAME TO t_dd; DROP INDEX t_dd');
works('REINDEX', 'REINDEX TABLE CONCURRENTLY t');
works('another list', 'ALTER DATABASE postgres SET learnedbtree.btree_indexes = \'renamed_new, t_*, p_pkey\'; SET learnedbtree.btree_indexes = \'t_pkey, !t_*\'');
works('DROP TABLE', 'CREATE TABLE gone (k int PRIMARY KEY); DROP TABLE gone');
works('DROP INDEX', 'CREATE INDEX more ON t (a); DROP INDEX more');
works('CREATE and DROP SCHEMA', 'CREATE SCHEMA s; CREATE TABLE s.t (k int PRIMARY KEY); ALTER SCHEMA s RENAME TO s2; DROP SCHEMA s2 CASCADE');
works('partitions', 'CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10000) TO (20000); INSERT INTO p VALUES (10001); ALTER TABLE p DETACH PARTITION p2; DROP TABLE p2; SELECT count(*) FROM p WHERE k = 7', '1');
works('CREATE EXTENSION', 'CREATE EXTENSION citext; CREATE TABLE c (x citext PRIMARY KEY); INSERT INTO c VALUES (\'A\'); DROP EXTENSION citext CASCADE') if $have_citext;
works('CREATE OPERATOR CLASS', "CREATE OPERATOR CLASS mine FOR TYPE int4 USING btree AS FUNCTION 1 btint4cmp(int4, int4)");
$node->command_ok([ 'pg_dump', '--format=plain', '--file=' . $node->basedir . '/dump', 'postgres' ], 'pg_dump works');
works('amcheck', "SELECT bt_index_parent_check('t_pkey', true), bt_index_parent_check('t_a', true)");

# ---- and comes back ----

$node->safe_psql('postgres', $back);
$node->append_conf('postgresql.conf', needs_preload($node) ? "shared_preload_libraries = 'learnedbtree'\n" : "session_preload_libraries = 'learnedbtree'\n");
$node->restart;
is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "$settings SELECT x FROM t WHERE id = 77; SELECT count(*) FROM t WHERE a = 300; SELECT k FROM renamed WHERE k = 7") },
		qw(t_pkey t_a renamed_new)), 't_pkey t_a renamed_new', 'indexes are served again, also those rebuilt or renamed meanwhile');
is(amcheck_all($node, 'postgres'), '', 'amcheck is content');

# ---- a database without the extension ----

$node->safe_psql('postgres', 'CREATE DATABASE bare');
$node->safe_psql('bare', "CREATE TABLE t (id int8 PRIMARY KEY, x text); INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 5000) g; ALTER DATABASE bare SET learnedbtree.btree_indexes = 't_*'");
is($node->safe_psql('bare', "$query; INSERT INTO t VALUES (9000, 'new')"), 'x77', 'an answer in a database without the extension');
$node->safe_psql('bare', 'CREATE EXTENSION learnedbtree');
others_have_ended($node, 'bare', '');
is($node->safe_psql('bare', q{SELECT lookups > 0, inserts > 0, trainings FROM learnedbtree_stat WHERE indexrelname = 't_pkey'}), 't|t|1', 'which was served');
$node->safe_psql('bare', 'DROP EXTENSION learnedbtree');
if ($node->pg_version->major >= 18)
{
	like($node->safe_psql('bare', "$settings EXPLAIN (ANALYZE, LEARNEDBTREE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) SELECT x FROM t WHERE id = 77"), qr/lookups=1 verified=1/, 'and is after DROP EXTENSION');
}

# ---- DROP EXTENSION does not need it ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nsession_preload_libraries = ''\n");
$node->restart;
is(($node->psql('dropped', 'DROP EXTENSION learnedbtree'))[0], 0, 'DROP EXTENSION works without the library');
is($node->safe_psql('dropped', "$settings SELECT x FROM t WHERE id = 77; INSERT INTO t VALUES (77, 1) ON CONFLICT DO NOTHING; ALTER INDEX t_a RENAME TO t_new; DROP TABLE renamed; "
		  . 'SELECT count(*) FROM pg_event_trigger; SELECT bt_index_parent_check(\'t_pkey\', true)'), "x77\n0\n", 'and leaves the indexes in use');
$node->stop;
done_testing();
