# An extension that is still at version 1.0 works with the new library; ALTER EXTENSION UPDATE makes of it what
# CREATE EXTENSION makes today, leaves indexes, models, counts and grants alone, and where it is refused, changes nothing.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('update');    # its database postgres has the new version
my $new_version = $node->safe_psql('postgres', 'SELECT default_version FROM pg_available_extensions'
	  . q{ WHERE name = 'learnedbtree'});
$node->safe_psql('postgres', 'CREATE DATABASE old');
$node->safe_psql('old', <<'SQL');
CREATE EXTENSION learnedbtree VERSION '1.0';
CREATE EXTENSION amcheck;
SQL
my $old = 'SELECT extversion FROM pg_extension WHERE extname = ';
is($node->safe_psql('old', "$old 'learnedbtree'"), '1.0', 'an extension of version 1.0');

# ---- what a database has of the extension, without OIDs ----

my $members = q{members AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'learnedbtree'))};
my %catalogs = (
	members => "WITH $members SELECT pg_describe_object(classid, objid, 0), obj_description(objid, classid::regclass::name) FROM members",
	functions => "WITH $members SELECT pg_get_functiondef(objid), proowner, proacl FROM members JOIN pg_proc p ON p.oid = objid",
	relations => "WITH $members SELECT c.oid::regclass, relkind, relowner, relacl, reloptions, "
	  . "CASE WHEN relkind = 'v' THEN pg_get_viewdef(c.oid) END, "
	  . "(SELECT array_agg(concat_ws(' ', attname, atttypid::regtype, attnotnull, attacl, col_description(c.oid, attnum)) ORDER BY attnum) "
	  . ' FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped), '
	  . '(SELECT array_agg(pg_get_constraintdef(oid) ORDER BY 1) FROM pg_constraint WHERE conrelid = c.oid), '
	  . '(SELECT array_agg(pg_get_indexdef(indexrelid) ORDER BY 1) FROM pg_index WHERE indrelid = c.oid) '
	  . 'FROM members JOIN pg_class c ON c.oid = objid',
	triggers => 'SELECT evtname, evtevent, evtowner, evtfoid::regproc, evtenabled, evttags FROM pg_event_trigger',
	method => q{SELECT amname, amhandler, amtype, obj_description(oid, 'pg_am') FROM pg_am},
	classes => q{SELECT opcname, opcnamespace::regnamespace, opcowner, opcfamily, opcintype::regtype, opcdefault, opckeytype::regtype
		FROM pg_opclass WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'learnedbtree')},
	privileges => "WITH $members SELECT pg_describe_object(i.classoid, i.objoid, i.objsubid), i.privtype, i.initprivs "
	  . 'FROM members JOIN pg_init_privs i ON (i.classoid, i.objoid) = (classid, objid)',
	dependencies => "WITH $members SELECT pg_describe_object(d.classid, d.objid, d.objsubid), d.deptype, "
	  . 'pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) FROM pg_depend d WHERE (d.classid, d.objid) IN (TABLE members) '
	  . 'OR (d.refclassid, d.refobjid) IN (TABLE members)',
	extension => 'SELECT extversion, extowner, extnamespace::regnamespace, extrelocatable, extconfig::regclass[], extcondition '
	  . q{FROM pg_extension WHERE extname = 'learnedbtree'});

sub catalog
{
	my ($database, $which) = @_;
	return $node->safe_psql($database, "SELECT q::text FROM ($catalogs{$which}) q ORDER BY 1");
}

sub all_catalogs { my ($database) = @_; return join("\n", map { catalog($database, $_) } sort keys %catalogs); }

# ---- version 1.0 with the new library ----

$node->safe_psql('old', <<'SQL');
CREATE TABLE t (k int8, a int4, x text);
INSERT INTO t SELECT g * 3, g % 100, 'row ' || g FROM generate_series(1, 30000) g;
CREATE INDEX t_bk ON t (k);
CREATE INDEX t_bax ON t (a, x);
CREATE ROLE keeper LOGIN;
GRANT EXECUTE ON FUNCTION learnedbtree_stat_reset(regclass), learnedbtree_sync_opclasses() TO keeper;
CREATE FUNCTION answers() RETURNS text LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
	SELECT concat_ws(' ', (SELECT sum((SELECT count(*) FROM t WHERE k = g)) FROM generate_series(1, 3000) g),
		(SELECT sum(k) FROM t WHERE k BETWEEN 40000 AND 41000), (SELECT count(*) FROM t WHERE a = 7 AND x > 'row 2')) $$;
SQL
my $answers = $node->safe_psql('old', 'SELECT answers()');
$node->safe_psql('old', <<'SQL');
DROP INDEX t_bk, t_bax;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (max_error = 2);
CREATE INDEX t_ax ON t USING learnedbtree (a, x);
SQL
is($node->safe_psql('old', 'SELECT answers()'), $answers, 'the answers are those of btree');

# Each function of version 1.0, by its name: a question and its answer.
my %calls = (
	train => [ "SELECT learnedbtree_train('t_k')", qr/^$/ ],
	model => [ "SELECT state, reason, leaves > 50, knots > 1, max_error <= 2, mean_error <= max_error, bytes > 0, key_code, segments, ties, "
		  . "trained_at > now() - interval '1 hour', training_ms >= 0, source, splits_since, deleted_since, lookups_since, moved_since, fallbacks_since "
		  . "FROM learnedbtree_model('t_k')", qr/^ready\|\|t\|t\|t\|t\|t\|k bigint\|0\|0\|t\|t\|training\|0\|0\|\d+\|\d+\|\d+$/ ],
	knots => [ q{SELECT count(*) > 1 AND min(slot) = 0 AND min(code) >= 0 FROM learnedbtree_knots('t_k')}, qr/^t$/ ],
	predict => [ q{SELECT predicted_block > 0, found_block > 0, hops = 0 FROM learnedbtree_predict('t_k', 4500::int8)}, qr/^t\|t\|t$/ ],
	key_code => [ q{SELECT learnedbtree_key_code('t_k', 6::int8) > learnedbtree_key_code('t_k', 3::int8)}, qr/^t$/ ],
	check => [ "SELECT learnedbtree_check('t_k'), learnedbtree_check('t_ax', true, true)", qr/^\|$/ ],
	model_memory => [ 'SELECT learnedbtree_model_memory() > 0', qr/^t$/ ],
	stat_reset => [ "SELECT learnedbtree_stat_reset('t_k')", qr/^$/ ],
	stat_get => [ q{SELECT lookups + verified + moved_right + fallback_no_model + fallback_block + fallback_page + fallback_low + fallback_high
		+ delegated + prefetched + inserts + inserts_placed + inserts_moved + inserts_full + inserts_equal + inserts_fallback + splits
		+ pages_deleted + trainings >= 0, last_trained IS NULL OR last_trained <= now() FROM learnedbtree_stat_get('t_k'::regclass)}, qr/^t\|t$/ ],
	sync_opclasses => [ 'SELECT learnedbtree_sync_opclasses()', qr/^0$/ ]);
my @unasked = split /\n/, $node->safe_psql('old', <<'SQL');
SELECT substr(proname, 14) FROM pg_proc p WHERE proname LIKE 'learnedbtree\_%'
	AND prorettype NOT IN ('event_trigger'::regtype, 'index_am_handler'::regtype) ORDER BY 1
SQL
is("@unasked", join(' ', sort keys %calls), 'all functions of version 1.0 are asked');

sub ask_all
{
	my ($when, @which) = @_;
	foreach my $function (@which)
	{
		my ($code, $out, $err) = $node->psql('old', $calls{$function}[0]);
		ok($code == 0 && $out =~ $calls{$function}[1], "$when: learnedbtree_$function()") or diag("$out\n$err");
	}
}

ask_all('version 1.0', qw(train model knots predict key_code check model_memory stat_reset stat_get sync_opclasses));
$node->safe_psql('old', 'SELECT answers()');
my $counts = q{SELECT indexrelname, relname, lookups, verified > 0.9 * lookups FROM learnedbtree_stat WHERE indexrelname = 't_k'};
is($node->safe_psql('old', $counts), 't_k|t|3001|t', 'its view counts');
$node->safe_psql('old', 'CREATE TABLE gone (k int); CREATE INDEX gone_k ON gone USING learnedbtree (k); DROP TABLE gone');
my $citext = $node->safe_psql('old', "SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'");
if ($citext)
{
	$node->safe_psql('old', 'CREATE EXTENSION citext; CREATE TABLE c (x citext); CREATE INDEX ON c USING learnedbtree (x)');
	pass('its event triggers work');
	$node->safe_psql('old', 'DROP TABLE c; DROP EXTENSION citext');
}

# ---- the update ----

my $state = 'SELECT relname, relfilenode, reloptions, relam, (learnedbtree_model(oid)).trained_at FROM pg_class '
  . "WHERE relname IN ('t_k', 't_ax') ORDER BY 1";
my $state_before = $node->safe_psql('old', $state);
my $before = all_catalogs('old');

$node->safe_psql('old', 'BEGIN; ALTER EXTENSION learnedbtree UPDATE; ROLLBACK');
is(all_catalogs('old'), $before, 'an update that is rolled back changes nothing');

# Functions that return something else now can only be made anew.
my $signatures = 'SELECT proname, pg_get_function_result(oid), pg_get_function_identity_arguments(oid) FROM pg_proc '
  . "WHERE proname LIKE 'learnedbtree\\_%' ORDER BY 1";
my %kept = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', $signatures);
my @changed = map { /^([^|]+)/ } grep { !$kept{$_} } split /\n/, $node->safe_psql('old', $signatures);
note("functions that the update makes anew: @changed");
foreach my $function (@changed)
{
	my ($argument) = $function eq 'learnedbtree_stat_get' ? "'t_k'::regclass::oid" : "'t_k'";
	$node->safe_psql('old', "CREATE VIEW mine AS SELECT 1 AS one FROM $function($argument)");
	my $with_view = all_catalogs('old');
	my ($code, undef, $err) = $node->psql('old', 'ALTER EXTENSION learnedbtree UPDATE');
	ok($code != 0 && $err =~ /cannot drop .* because other objects depend on it/, "refused while a view depends on $function()") or diag($err);
	is(all_catalogs('old'), $with_view, 'and nothing is changed');
	is($node->safe_psql('old', 'SELECT answers()'), $answers, 'the answers neither');
	$node->safe_psql('old', 'DROP VIEW mine');
}
my ($unchanged) = grep { my $name = "learnedbtree_$_"; !grep { $_ eq $name } @changed } qw(knots model);
$node->safe_psql('old', "CREATE VIEW mine AS SELECT 1 AS one FROM learnedbtree_$unchanged('t_k')") if $unchanged;

# A view on learnedbtree_stat is what DBAs have.
$node->safe_psql('old', 'CREATE VIEW hits AS SELECT indexrelname, lookups, verified FROM learnedbtree_stat');

my $session = $node->background_psql('old');
$session->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; '
	  . 'PREPARE find(int8) AS SELECT k FROM t WHERE k = $1');
is($session->query_safe('EXECUTE find(4500)'), '4500', 'a session looks up a key');
$node->safe_psql('old', 'ALTER EXTENSION learnedbtree UPDATE');
is($node->safe_psql('old', "$old 'learnedbtree'"), $new_version, "the extension is at version $new_version");
is($session->query_safe('EXECUTE find(4503)'), '4503', 'the session goes on, by the same plan');
is($session->query_safe('SELECT answers()'), $answers, 'with the same answers');
$session->quit;

is($node->safe_psql('old', $state), $state_before, 'indexes and their models are the same');
is($node->safe_psql('old', 'SELECT answers()'), $answers, 'and their answers');
is($node->safe_psql('old', $counts =~ s/lookups,/lookups > 3001,/r), 't_k|t|t|t', 'counting goes on');
is($node->safe_psql('old', "SELECT count(*) FROM hits WHERE indexrelname = 't_k' AND lookups > 3001"), '1', 'a view on learnedbtree_stat goes on');
ask_all('after the update', grep { my $name = "learnedbtree_$_"; !grep { $_ eq $name } @changed } sort keys %calls);
is($node->psql('old', "SELECT learnedbtree_check('t_k'), learnedbtree_check('t_ax', true, true)"), 0, 'amcheck is content');
is($node->safe_psql('old', <<'SQL'), 't', 'grants are kept');
SELECT has_function_privilege('keeper', 'learnedbtree_stat_reset(regclass)', 'EXECUTE')
	AND has_function_privilege('keeper', 'learnedbtree_sync_opclasses()', 'EXECUTE')
SQL

# ---- the same as a new extension ----

$node->safe_psql('old', 'DROP VIEW IF EXISTS mine; DROP VIEW hits; DROP TABLE t; DROP FUNCTION answers; '
	  . 'REVOKE EXECUTE ON FUNCTION learnedbtree_stat_reset(regclass), learnedbtree_sync_opclasses() FROM keeper');
is(catalog('old', $_), catalog('postgres', $_), "the same as of a new extension: $_") foreach sort keys %catalogs;
my @dumps = map {
	my $file = PostgreSQL::Test::Utils::tempdir() . "/$_";
	$node->command_ok([ 'pg_dump', "--file=$file", $_ ], "dump of $_");
	join('', grep { !/^\\(un)?restrict|^--/ } split(/^/, slurp_file($file)));
} qw(old postgres);
is($dumps[0], $dumps[1], 'their dumps are the same');

$node->stop;
done_testing();
