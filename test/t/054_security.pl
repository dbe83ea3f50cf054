# What roles without superuser can do through us: to the superuser who creates the extension, to indexes of others, to shared
# memory, to the worker.  And SECURITY.md's table of privileges is what the catalogs say.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('security');
$node->init(auth_extra => [ '--create-role', 'plain,owner,monitor' ]);
configure_node($node);
$node->append_conf('postgresql.conf', "learnedbtree.naptime = 50ms\nlearnedbtree.max_model_memory = 64kB\n");
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# What a role's session prints, and its errors.
sub as
{
	my ($role, $sql, $database) = @_;
	my ($rc, $out, $err) = $node->psql($database // 'postgres', "LOAD 'learnedbtree'; SET SESSION AUTHORIZATION $role; $sql", timeout => $PostgreSQL::Test::Utils::timeout_default);
	return "$out$err";
}

sql('CREATE ROLE plain; CREATE ROLE owner; CREATE ROLE monitor IN ROLE pg_monitor; CREATE DATABASE shared');

# ---- a schema in which everybody may create objects ----

# Better matches than the server's own operator (name, text) and aggregate ("any"), if these are looked for there.
$node->safe_psql('shared', <<'SQL');
CREATE SCHEMA everybodys;
GRANT ALL ON SCHEMA everybodys TO plain;
SET ROLE plain;
CREATE FUNCTION everybodys.taken(name, name) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'taken'; END $$;
CREATE OPERATOR everybodys.!~ (LEFTARG = name, RIGHTARG = name, FUNCTION = everybodys.taken);
CREATE FUNCTION everybodys.taken(int8, oid) RETURNS int8 LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'taken'; END $$;
CREATE AGGREGATE everybodys.count(oid) (SFUNC = everybodys.taken, STYPE = int8, INITCOND = '0');
RESET ROLE;
CREATE TABLE t (k int PRIMARY KEY);
CREATE EXTENSION learnedbtree SCHEMA everybodys;
SQL
is($node->safe_psql('shared', "SET learnedbtree.btree_indexes = 'all'; SELECT count(*) FROM everybodys.learnedbtree_indexes; "
	  . 'SELECT indexes FROM everybodys.learnedbtree_patterns; SELECT count(*) FROM everybodys.learnedbtree_stat'), "1\n1\n0",
	'views do not use what others have in their schema');

# ---- SECURITY.md against the catalogs ----

sql('CREATE EXTENSION learnedbtree');
my %documented;
foreach (split /\n/, slurp_file("$FindBin::RealBin/../../SECURITY.md"))
{
	$documented{ ($1 // '') . $2 } = [ $3, $4 ] if /^\| (view |access method |event trigger )?`(learnedbtree_?[^`]*)` \| (\w+) \| (.*?) ?\|$/;
}
my %found = map { split /=/ } split /\n/, sql(<<'SQL');
SELECT proname || '(' || (SELECT coalesce(string_agg(t::regtype::text, ', ' ORDER BY i), '') FROM unnest(proargtypes) WITH ORDINALITY a (t, i)) || ')='
       || CASE WHEN has_function_privilege('plain', p.oid, 'EXECUTE') THEN 'everyone' ELSE 'superusers' END
  FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'learnedbtree'
UNION ALL
SELECT 'view ' || relname || '=' || CASE WHEN NOT has_table_privilege('plain', c.oid, 'SELECT') THEN 'superusers'
       WHEN has_table_privilege('plain', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') THEN 'too many' ELSE 'everyone' END
  FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
  JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'learnedbtree'
UNION ALL
SELECT CASE classid WHEN 'pg_am'::regclass THEN 'access method learnedbtree=everyone'
       WHEN 'pg_event_trigger'::regclass THEN 'event trigger learnedbtree_on_new_opclasses=superusers' ELSE classid::regclass || '=unknown' END
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'learnedbtree'
 WHERE d.deptype = 'e' AND d.classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
SQL
is_deeply({ map { $_ => $documented{$_}[0] } keys %documented }, \%found, 'SECURITY.md names each object, and who may use it')
  or diag(explain(\%found));

my $context = { map { split /\|/ } split /\n/, sql("LOAD 'learnedbtree'; SELECT name, context FROM pg_settings WHERE name LIKE 'learnedbtree.%'") };
my %who = ('anyone, at any time' => 'user', 'superuser, at any time' => 'superuser', '`postgresql.conf`, reload' => 'sighup');
my %settings = map { /^\| `(learnedbtree\.\w+)` \|.*?\|.*?\| ([^|]*) \|/ ? ($1 => $who{$2}) : () } split /\n/, slurp_file("$FindBin::RealBin/../../doc/settings.md");
is_deeply(\%settings, $context, 'doc/settings.md names each setting, and who can set it');

# What functions check themselves: as the table says.
sql(<<'SQL');
CREATE TABLE secrets (k text COLLATE "C");
ALTER TABLE secrets OWNER TO owner;
INSERT INTO secrets SELECT 'secret' || g FROM generate_series(1, 5000) g;
CREATE INDEX secrets_k ON secrets (k);
VACUUM ANALYZE secrets;
SQL
foreach my $function (qw(train check model))
{
	my %can = map { $_ => as($_, "SELECT count(*) FROM (SELECT learnedbtree_$function('secrets_k')) s") !~ /permission denied/ } qw(plain monitor owner);
	my $checks = $documented{"learnedbtree_$function(regclass)"}[1];
	is_deeply(\%can, { plain => '', monitor => $checks =~ /pg_monitor/ ? 1 : '', owner => 1 }, "learnedbtree_$function(): who passes");
}

# ---- values of keys ----

my $seen = join '', map { as($_, 'SELECT v::text FROM learnedbtree_indexes v; SELECT v::text FROM learnedbtree_stat v; SELECT v::text FROM learnedbtree_patterns v; '
	  . "SELECT learnedbtree_index_status('secrets_k'::regclass), learnedbtree_stat_get('secrets_k'::regclass); SELECT learnedbtree_model('secrets_k');") } qw(plain monitor);
like($seen, qr/secrets_k.*btree/, 'views name indexes');
unlike($seen, qr/secret\d/, 'but no keys');

# ---- models of tables that a role may not read ----

sql('CREATE TABLE unread (k int8 PRIMARY KEY); INSERT INTO unread SELECT g FROM generate_series(1, 20000) g; VACUUM ANALYZE unread; ANALYZE unread');
my $served = "SET learnedbtree.btree_indexes = 'all'; SET learnedbtree.min_leaves = 0; SET enable_seqscan = off;";
like(as('plain', "$served EXPLAIN SELECT * FROM unread a JOIN unread b USING (k) WHERE a.k > 19990"), qr/permission denied/, 'a query that may not run');
like(as('plain', "$served COPY unread FROM stdin"), qr/permission denied/, 'COPY that may not run');
is(model_state($node, 'unread_pkey'), 'untrained', 'makes no model');
sql('GRANT SELECT ON unread TO plain');
is(as('plain', "$served SELECT count(*) FROM unread WHERE k = 7"), '1', 'a query that may');
is(model_state($node, 'unread_pkey'), 'ready', 'does');

# ---- memory ----

sql('GRANT CREATE ON SCHEMA public TO plain');
my $made = as('plain', "$served DO \$\$ BEGIN FOR i IN 1..60 LOOP EXECUTE format('CREATE TABLE m%s (k int8 PRIMARY KEY)', i); EXECUTE format('INSERT INTO m%s SELECT g FROM generate_series(1, 20000) g', i); "
	  . "EXECUTE format('SELECT FROM m%s WHERE k = 5', i); END LOOP; END \$\$; SELECT learnedbtree_train('m1_pkey'); SELECT max(learnedbtree_model_memory()) <= 65536 FROM learnedbtree_indexes");
like($made, qr/^t$/m, 'models of a plain role keep within max_model_memory');
is(as('plain', "$served SELECT count(*) FROM unread WHERE k BETWEEN 100 AND 299"), '200', 'who lost a model gets right answers');
like(as('plain', 'SET learnedbtree.max_model_memory = 1000000'), qr/permission denied to set parameter/, 'only superusers raise it');

# (The worker's models do not count here.)
sql('ALTER SYSTEM SET learnedbtree.autotrain = off');
$node->reload;
wait_until($node, "SELECT current_setting('learnedbtree.autotrain') = 'off' AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker')");
my $dropped = as('plain', "$served SET learnedbtree.btree_indexes = 'd*'; CREATE TABLE d (k int8 PRIMARY KEY); INSERT INTO d SELECT g FROM generate_series(1, 20000) g; SELECT FROM learnedbtree_train('d_pkey'); "
	  . "SELECT bytes > 0 FROM learnedbtree_model('d_pkey'); CREATE TEMP TABLE memory AS SELECT learnedbtree_model_memory() AS before, bytes FROM learnedbtree_model('d_pkey'); DROP TABLE d; "
	  . 'SELECT learnedbtree_model_memory() = before - bytes FROM memory');
is($dropped =~ s/^\n//r, "t\nt", 'what a dropped index had is free');
sql('ALTER SYSTEM SET learnedbtree.autotrain = on');
$node->reload;
wait_until($node, "SELECT current_setting('learnedbtree.autotrain') = 'on'");
like(as('plain', "LOAD 'learnedbtree'"), qr/access to library "learnedbtree" is not allowed/, 'only superusers load the library by name');

# ---- long lists ----

like(as('plain', "SELECT set_config('learnedbtree.btree_indexes', repeat('a,', 600000) || 'b', false)"), qr/A list has at most 1048576 bytes/, 'a list of more than 1 MB is refused');
is(as('plain', "SELECT length(set_config('learnedbtree.btree_indexes', repeat('a,', 500000) || 'b', false)); SELECT count(*) FROM unread WHERE k = 7"), "1000001\n1", 'of less, it is taken');
foreach my $call ("count(*) FROM learnedbtree_pattern_items(repeat('a,', 50000000) || 'b')", "learnedbtree_pattern_matches(repeat('a,', 50000000) || 'b', 'secrets_k'::regclass)")
{
	like(as('plain', "SELECT $call"), qr/A list has at most 1048576 bytes/, 'nor does a function take a longer one: ' . substr($call, 0, 40));
}
like(as('plain', "SET statement_timeout = '1s'; SELECT count(*) FROM learnedbtree_pattern_items(repeat('a,', 500000) || 'b', (SELECT array_agg('secrets_k'::regclass::oid) FROM generate_series(1, 100000)))"),
	qr/statement timeout/, 'who asks about many indexes can be cancelled');

# ---- the worker is a superuser's ----

my $log = -s $node->logfile;
my $privileged = as('plain', <<'SQL');
CREATE FUNCTION mine(int8) RETURNS int8 IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF session_user <> 'plain' THEN RAISE LOG 'taken by %', session_user; END IF;
	RETURN $1;
END $$;
CREATE TABLE expr (k int8);
CREATE INDEX expr_k ON expr (mine(k)) WITH (fillfactor = 10);
INSERT INTO expr SELECT g * 1000 FROM generate_series(1, 20000) g;
SET learnedbtree.btree_indexes = 'expr_k'; SET learnedbtree.retrain_visits = 1; SET enable_seqscan = off;
SELECT count(*) FROM expr WHERE mine(k) = 5000;
INSERT INTO expr SELECT 5000 + g % 999 FROM generate_series(1, 9000) g;
SQL
wait_until($node, "SELECT trainings > 1 FROM learnedbtree_stat WHERE indexrelname = 'expr_k'");
pass('the worker has trained an index on an expression');
unlike(slurp_file($node->logfile, $log), qr/taken by/, 'and has called no function of its owner');

$node->stop;
done_testing();
