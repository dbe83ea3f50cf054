# A new version.  ALTER EXTENSION UPDATE makes the objects that CREATE EXTENSION makes; the library answers by the SQL of
# other versions; and while sessions with the old library are open, those with the new one have memory of their own.
#
# There is one version so far: older and newer SQL is made here, and so is a library that says that it is of another version.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run qw(start finish);
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my ($prefix, $lib, $extensions) = private_install(PostgreSQL::Test::Cluster->new('config'));
my $node = PostgreSQL::Test::Cluster->new('new_version', install_path => $prefix);
$node->init;
configure_node($node);
my $sessions_load = !needs_preload($node);
$node->append_conf('postgresql.conf', "session_preload_libraries = 'learnedbtree'\n") if $sessions_load;
$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = 'all'\nlearnedbtree.min_leaves = 0\n");
$node->start;
my ($default) = slurp_file("$extensions/learnedbtree.control") =~ /^default_version = '(.+)'/m;
my $full = slurp_file("$extensions/learnedbtree--$default.sql");
my ($library_version) = slurp_file("$FindBin::RealBin/../../META.json") =~ /^ +"version": "([^"]+)"/m;

sub sql { my ($database, $sql) = @_; return $node->safe_psql($database, $sql); }
sub said { my ($database, $sql) = @_; return ($node->psql($database, $sql, on_error_stop => 1))[2]; }

# ---- older and newer SQL ----

# 0.0: without what the setting's patterns have, with a function of fewer columns, and with one that is gone since.
my ($patterns) = $full =~ /(^-- ---- the setting's names and patterns ----.*)/ms or die 'no patterns in the script';
my ($model) = $full =~ /(^CREATE FUNCTION \@extschema\@\.learnedbtree_model\(.*?;\nCOMMENT ON FUNCTION \@extschema\@\.learnedbtree_model\(.*?;\n)/ms or die 'no model in the script';
my $shorter = $model =~ s/,\s+OUT splits_since .*?\)\n/)\n/sr;
isnt($shorter, $model, 'an older function is made');
(my $older = $full) =~ s/\Q$patterns\E//;
$older =~ s/\Q$model\E/$shorter/;
append_to_file("$extensions/learnedbtree--0.0.sql", $older . "CREATE FUNCTION learnedbtree_gone() RETURNS bigint AS 'MODULE_PATHNAME', 'learnedbtree_model_memory' LANGUAGE C;\n");
append_to_file("$extensions/learnedbtree--0.0--0.1.sql", "DROP FUNCTION learnedbtree_gone();\nDROP FUNCTION learnedbtree_model(regclass);\n$model");
append_to_file("$extensions/learnedbtree--0.1--$default.sql", $patterns);
# Newer: a column more, and more columns than a row has room for; and what leaves a comment out, to see that it is noticed.
my ($longer, $longest) = map { my $n = $_; $model =~ s/(OUT fallbacks_since bigint)/join ', ', $1, map { "OUT new_$_ int" } 1 .. $n/er } 1, 20;
append_to_file("$extensions/learnedbtree--$default--97.sql", "DROP FUNCTION learnedbtree_model(regclass);\n$longer");
append_to_file("$extensions/learnedbtree--$default--98.sql", "DROP FUNCTION learnedbtree_model(regclass);\n$longest");
append_to_file("$extensions/learnedbtree--$default--99.sql", "COMMENT ON VIEW learnedbtree_stat IS NULL;\n");

# What the extension consists of: as pg_dump makes it where it must make each member, and by name.
sub objects
{
	my ($database) = @_;
	my ($dump, $err);
	$node->run_log([ 'pg_dump', '--binary-upgrade', '--schema-only', '-d', $database ], '>', \$dump, '2>', \$err) or die "pg_dump: $err";
	# Its OIDs, and the key of psql's restricted mode, are of this database alone.
	$dump =~ s/^(SELECT pg_catalog\.binary_upgrade_set_next_.*|\\(un)?restrict .*)\n//mg;
	my $members = sql($database, <<'SQL');
SELECT i.type, i.identity, obj_description(d.objid, d.classid::regclass::name)
  FROM pg_depend d, pg_identify_object(d.classid, d.objid, d.objsubid) i
 WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'learnedbtree') ORDER BY 1, 2;
SELECT objoid::regclass, privtype, initprivs FROM pg_init_privs WHERE classoid = 'pg_class'::regclass AND objoid::regclass::text LIKE 'learnedbtree%' ORDER BY 1;
SELECT amproc::regproc, count(*) FROM pg_amproc WHERE amprocfamily IN (SELECT f.oid FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod WHERE amname = 'learnedbtree') GROUP BY 1 ORDER BY 1::text;
SQL
	return join('', sort split(/^/, $dump)) . $members;
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(fresh updated older newer);
sql('fresh', 'CREATE EXTENSION learnedbtree');
my $fresh = objects('fresh');
cmp_ok(scalar(() = $fresh =~ /learnedbtree/g), '>', 100, 'the objects are there');

# From each version that has a script of its own, made here or shipped.
my @versions = grep { $_ ne $default } map { /--([^-]+)\.sql$/ } glob("$extensions/learnedbtree--*.sql");
@versions = grep { -e "$extensions/learnedbtree--$_.sql" } @versions;
ok((grep { $_ eq '0.0' } @versions), 'there is an older version');
foreach my $version (@versions)
{
	sql('updated', "DROP EXTENSION IF EXISTS learnedbtree; CREATE EXTENSION learnedbtree VERSION '$version'");
	isnt(objects('updated'), $fresh, "$version: has other objects");
	sql('updated', 'ALTER EXTENSION learnedbtree UPDATE');
	is(sql('updated', q(SELECT extversion FROM pg_extension WHERE extname = 'learnedbtree')), $default, "$version: updated");
	is(objects('updated'), $fresh, "$version: has the same objects after it");
}
sql('updated', q(ALTER EXTENSION learnedbtree UPDATE TO '99'));
isnt(objects('updated'), $fresh, 'a comment that an update leaves out is noticed');

# The library, by older SQL and by newer.
my $tables = 'CREATE TABLE t (k int8 PRIMARY KEY); INSERT INTO t SELECT g * 2 FROM generate_series(1, 20000) g; CREATE INDEX t_l ON t USING learnedbtree (k); '
  . q(SELECT learnedbtree_train('t_pkey'));
sql('older', "CREATE EXTENSION learnedbtree VERSION '0.0'; $tables");
is(sql('older', q(SELECT state, source FROM learnedbtree_model('t_l'))), 'ready|training', 'older SQL: a function of fewer columns answers');
is(sql('older', 'SELECT k FROM t WHERE k = 77 * 2; SELECT count(*) > 0 FROM learnedbtree_indexes WHERE served'), "154\nt", 'older SQL: served, and the views answer');
# Such a function can be made only while the library has it.
sql('older', q(UPDATE pg_proc SET prosrc = proname WHERE proname = 'learnedbtree_gone'));
like(said('older', 'SELECT learnedbtree_gone()'), qr/ERROR:  could not find function "learnedbtree_gone" in file/, 'older SQL: a function that is gone');
sql('newer', "CREATE EXTENSION learnedbtree; $tables; ALTER EXTENSION learnedbtree UPDATE TO '97'");
is(sql('newer', q(SELECT state, new_1 IS NULL FROM learnedbtree_model('t_l'))), 'ready|t', 'newer SQL: a column that the library does not know is NULL');
sql('newer', "DROP EXTENSION learnedbtree CASCADE; CREATE EXTENSION learnedbtree; ALTER EXTENSION learnedbtree UPDATE TO '98'; CREATE INDEX t_l ON t USING learnedbtree (k)");
like(said('newer', q(SELECT learnedbtree_model('t_l'))), qr/ERROR:  the library of learnedbtree in this session is older .*HINT:  Install .* and reconnect/s,
	'newer SQL: too many columns are refused');

# ---- the library of another version, under a running server ----

# Put a library in place as packages do: another file, under the same name.  Of another version it has other strings.
sub put_library
{
	my ($version) = @_;
	my ($file, $content) = ("$lib/learnedbtree.so", slurp_file("$lib/learnedbtree.so"));
	my $replaced = $content =~ s/\Q$library_version\E\0/$version\0/g;
	ok($replaced, "the library names its version, $library_version");
	is(length($version), length($library_version), 'one as long');
	append_to_file("$file.new", $content);
	chmod 0755, "$file.new";
	rename "$file.new", $file or die "$file: $!";
}

sub session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->set_query_timer_restart;
	$session->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
	return $session;
}

# Inserts, lookups and deletions of rows, each answer compared with a sequential scan's.
sql('postgres', "CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck; $tables");
sql('postgres', <<'SQL');
CREATE FUNCTION work(n int) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	x int8;
BEGIN
	FOR i IN 1 .. n LOOP
		x := (random() * 50000)::int8;
		INSERT INTO t VALUES (x * 2 + 1) ON CONFLICT DO NOTHING;
		PERFORM FROM t WHERE k = x * 2 + 1;
		IF NOT FOUND THEN RAISE EXCEPTION 'row % is lost', x * 2 + 1; END IF;
		DELETE FROM t WHERE k = x * 2;
		IF (SELECT sum(k) FROM t WHERE k BETWEEN x AND x + 500) IS DISTINCT FROM (SELECT sum(k) FROM t WHERE k + 0 BETWEEN x AND x + 500)
		THEN RAISE EXCEPTION 'another answer at %', x; END IF;
	END LOOP;
END $$;
SQL
my $state = q(SELECT string_agg(state, ' ' ORDER BY i) FROM unnest('{t_l,t_pkey}'::regclass[]) i, learnedbtree_model(i));
my $modules = q(SELECT version FROM pg_get_loaded_modules() WHERE module_name = 'learnedbtree');
my $loaded = $node->pg_version >= 18;

my $old = session();
is($old->query_safe($state), 'ready ready', 'the old library has models');
is($old->query_safe($modules), $library_version, 'it tells its version') if $loaded;
put_library($library_version);
my $same = session();
is($same->query_safe($state), 'ready ready', 'another file of the same version finds them');
$same->quit;

# Clients with the old library are at work, and go on while others come with the new one.
my ($worked, $errors) = ('', '');
my $workers = q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clients');
my $script = $node->basedir . '/work.sql';
append_to_file($script, "SELECT work(3);\n");
my @pgbench = ('pgbench', '-n', '-M', 'prepared', '-h', $node->host, '-p', $node->port, '-f', $script, '-d', 'postgres');
sub bench { my ($output, @arguments) = @_; local %ENV = ($node->_get_env(), PGAPPNAME => 'clients'); return start([ @pgbench, @arguments ], '>', $output, '2>&1'); }

# (They end when they are told to: pgbench takes the signal for the end of its time.)
my $old_clients = bench(\$worked, '-c', '2', '-T', '1000');
wait_until($node, "SELECT ($workers) = 2");
put_library('9.9.9');
my $new = session();
is($new->query_safe($modules), '9.9.9', 'a new session has the new library') if $loaded;
is($old->query_safe($modules), $library_version, 'an old session has the old one') if $loaded;
is($new->query_safe($state), $sessions_load ? 'untrained untrained' : 'ready ready',
	$sessions_load ? 'the new library has memory of its own' : 'below 17 the server has loaded the library for all sessions');
my $new_clients = bench(\$errors, '-c', '2', '-T', '1000');
wait_until($node, "SELECT ($workers) = 4");
foreach my $round (1 .. 3)
{
	foreach my $session ($old, $new)
	{
		$session->query_safe('SELECT work(20)');
		$session->query_safe('VACUUM t');
		$session->query_safe('REINDEX INDEX CONCURRENTLY t_l') if $round == 2;
	}
}
is(sql('postgres', $workers), '4', 'clients with either library were at work all the time');
$_->signal('ALRM') foreach $new_clients, $old_clients;
ok((finish $new_clients), 'clients with the new library had right answers') or diag($errors);
ok((finish $old_clients), 'and so had those with the old one') or diag($worked);
like($_, qr/actually processed: [1-9]/, 'which were some') foreach $errors, $worked;
foreach my $session ([ 'old', $old ], [ 'new', $new ])
{
	my ($name, $psql) = @$session;
	$psql->query_safe(q(SELECT learnedbtree_train('t_l'), learnedbtree_train('t_pkey')));
	$psql->query_safe(q(SELECT learnedbtree_stat_reset()));
	$psql->query_safe('SELECT work(20)');
	is($psql->query_safe('SELECT bool_and(verified > 0), bool_and(inserts > 0) FROM learnedbtree_stat'), 't|t', "$name library: looks up by models");
	is($psql->query_safe(q(SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0;
		SET min_parallel_table_scan_size = 0; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = on; SET work_mem = '64kB';
		SELECT count(*) = (SELECT count(*) FROM t WHERE k + 0 > 0) FROM t a JOIN t b USING (k))), 't', "$name library: its parallel workers' answer is right");
}
is($old->query_safe($state), 'ready ready', 'the old library still has its models') if $sessions_load;
is($node->psql('postgres', check_sql('t_l', 't_pkey')), 0, 'amcheck is content');

# What a worker of the other version does not train, a session trains itself.
foreach my $psql ($old, $new)
{
	$psql->query_safe('SELECT learnedbtree_stat_reset()');
	my $trained = 0;
	for (my $end = time + patience(); time < $end;)
	{
		$psql->query_safe('INSERT INTO t SELECT 100000 + (random() * 1e9)::int8 FROM generate_series(1, 3000) ON CONFLICT DO NOTHING');
		$trained = $psql->query_safe(q(SELECT trainings > 0 FROM learnedbtree_stat WHERE indexrelname = 't_pkey')) eq 't' and last;
		usleep(100_000);
	}
	ok($trained, 'a model is trained anew');
}
$_->quit foreach $old, $new;

# The end: one library again.
$node->restart;
is(sql('postgres', $modules), '9.9.9', 'after a restart all have the new library') if $loaded;
sql('postgres', 'SELECT work(20)');
unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|terminated by signal/, 'nothing has crashed');

$node->stop;
done_testing();
