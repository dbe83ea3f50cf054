# What doc/operations.md says to who is on call: how to switch us off, and who follows when; all lines in the log and all wait
# events; memory by formula; queries and alerts for Prometheus.
use strict;
use warnings;

use CPAN::Meta::YAML;
use FindBin;
use JSON::PP;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $root = "$FindBin::RealBin/../..";
my $page = slurp_file("$root/doc/operations.md");
my %section = $page =~ /^## (.*?)\n(.*?)(?=^## |\z)/msg;
my $source = join '', map { slurp_file($_) } glob("$root/src/*/*.[ch]"), glob("$root/sql/*.sql");

# ---- lines in the log, wait events: the page against the source ----

my @said;
push @said, $1 while $source =~ /ereport\((?:LOG|WARNING|PANIC|FATAL),(?:(?!ereport).)*?errmsg\("((?:[^"\\]|\\.)*)"/sg;
push @said, $1 while $source =~ /elog\((?:LOG|WARNING|PANIC|FATAL),\s*"((?:[^"\\]|\\.)*)"/g;
push @said, $1 while $source =~ /RAISE (?:WARNING|LOG) '([^']*)'/g;
push @said, $1 while $source =~ /errcontext\("([^"]*)"/g;
my $levels = () = $source =~ /e(?:report|log)\((?:LOG|WARNING|PANIC|FATAL)\b|RAISE (?:WARNING|LOG)\b|errcontext\(/g;
is(scalar @said, $levels, 'all lines of the source are understood');
my @lines = sort map { s/\\"/"/gr =~ s/%[usd]?/.../gr } @said;
my @documented = sort map { /^\| (?:[^`|]*)`([^`]+)`/ ? $1 : () } grep { !/^\| line / } split /\n/, $section{'Log lines'};
is_deeply(\@documented, \@lines, 'the page has each line of the log');

my %event = map { $_ => 1 } $source =~ /lbt_wait_event\(&\w+,\s*"(\w+)"\)/g, $source =~ /#define LWLOCK_NAME "(\w+)"/g;
is_deeply([ sort $section{'Wait events'} =~ /^\| `\w+` \| `(\w+)`/mg ], [ sort keys %event ], 'and each wait event');

# ---- a server ----

my $node = PostgreSQL::Test::Cluster->new('operations');
$node->init(allows_streaming => 'logical');
configure_node($node);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\nlearnedbtree.btree_indexes = 'all'\nlearnedbtree.min_leaves = 0\nlearnedbtree.naptime = 1h\n"
	  . "enable_seqscan = off\nenable_hashjoin = off\nenable_mergejoin = off\nenable_bitmapscan = off\nenable_material = off\nenable_memoize = off\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE ROLE own LOGIN;
CREATE TABLE t (k int8 PRIMARY KEY);
INSERT INTO t SELECT g FROM generate_series(1, 100000) g;
CREATE TABLE few AS SELECT g * 3 AS k FROM generate_series(1, 30000) g;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO own;
VACUUM ANALYZE t, few;
SQL

# Lookups that sessions have reported, in a session that looks nothing up itself.
sub lookups { return $node->safe_psql('postgres', "SELECT lookups FROM learnedbtree_stat WHERE indexrelname = 't_pkey'"); }

# How many lookups by a model are there while code runs?  Sessions report at the ends of transactions, at most every 10 ms.
sub lookups_of
{
	my ($session, $sql) = @_;
	my $before = $session->query_safe("SELECT lookups FROM learnedbtree_stat WHERE indexrelname = 't_pkey'");
	$session->query_safe($sql);
	return $session->query_safe("SELECT lookups FROM learnedbtree_stat WHERE indexrelname = 't_pkey'") - $before;
}

my $open = $node->background_psql('postgres');
my $prepared = $node->background_psql('postgres');
my $cursor = $node->background_psql('postgres');
my $own = $node->background_psql('postgres');
$node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE k = 5');
is(lookups_of($open, 'SELECT count(*) FROM t WHERE k = 7'), 1, 'a session is served');
$prepared->query_safe('SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT count(*) FROM few JOIN t USING (k) WHERE few.k < $1');
is(lookups_of($prepared, 'EXECUTE p(3000)'), 999, '... and a prepared statement');
like($prepared->query_safe('EXPLAIN EXECUTE p(3000)'), qr/Learned Look-Ahead/, '... with the node');
$cursor->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT few.k FROM few JOIN t USING (k)');
is(lookups_of($cursor, 'FETCH 100 FROM c') > 90, 1, '... and a cursor');
$own->query_safe('SET SESSION AUTHORIZATION own; SET learnedbtree.enable = on');
$node->safe_psql('postgres', 'ALTER ROLE own SET learnedbtree.enable = on');

# An apply worker: inserts by a model, of ten transactions.  It serves a table from its second transaction on.
$node->safe_psql('postgres', 'CREATE DATABASE publisher; CREATE TABLE applied (k int8 PRIMARY KEY); INSERT INTO applied SELECT g * 1000 FROM generate_series(1, 20000) g');
$node->safe_psql('publisher', "CREATE TABLE applied (k int8 PRIMARY KEY); CREATE PUBLICATION p FOR TABLE applied; SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
$node->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $node->connstr . " dbname=publisher' PUBLICATION p WITH (create_slot = false, copy_data = false)");
my $last = 0;

sub applied
{
	my $inserts = "SELECT inserts FROM learnedbtree_stat WHERE indexrelname = 'applied_pkey'";
	my $before = $node->safe_psql('postgres', $inserts);
	foreach (1 .. 10)
	{
		$last++;
		$node->safe_psql('publisher', "INSERT INTO applied VALUES ($last * 1000 + 1)");
	}
	wait_until($node, "SELECT count(*) = 1 FROM applied WHERE k = $last * 1000 + 1");
	return $node->safe_psql('postgres', $inserts) - $before;
}

# Calls of it until it says so.  (Counts are reported at most every 10 ms.)
sub applies
{
	my ($wanted) = @_;
	for (my $end = time + patience(); time < $end;) { return 1 if (applied() > 0) == $wanted; }
	return 0;
}

# Wait until a session has the setting.
sub has_setting
{
	my ($session, $value) = @_;
	for (my $end = time + patience(); time < $end; sleep(0.01)) { return if $session->query_safe('SHOW learnedbtree.enable') eq $value; }
	return;
}
ok(applies(1), '... and an apply worker');

# The page's statements, in one session each, as it is read.
my @sql = $section{'Switch it off'} =~ /^```sql\n(.*?)^```/msg;
is(scalar @sql, 3, 'the page has statements to switch us off and on, and a query');
sub run_block { $node->safe_psql('postgres', $_) foreach grep { /\S/ } split /;/, $_[0]; return; }
run_block($sql[0]);
has_setting($_, 'off') foreach $open, $prepared;
is(lookups_of($open, 'SELECT count(*) FROM t WHERE k = 7'), 0, 'open sessions follow');
is(lookups_of($prepared, 'EXECUTE p(3000)'), 0, '... prepared statements, too');
like($prepared->query_safe('EXPLAIN EXECUTE p(3000)'), qr/Learned Look-Ahead/, '... although the node is there');
has_setting($cursor, 'off');
cmp_ok(lookups_of($cursor, 'FETCH 5000 FROM c'), '<', 2, '... and the nested loop of a cursor');
ok(applies(0), '... and the apply worker');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE k = 7'), '1', '... and new sessions');
is(lookups_of($own, 'SELECT count(*) FROM t WHERE k = 7'), 1, 'a session that sets it itself does not');
like($node->safe_psql('postgres', $sql[1]), qr/^\|own\|\{learnedbtree.enable=on\}$/m, 'the query finds roles that do');
run_block($sql[2]);
has_setting($open, 'on');
is(lookups_of($open, 'SELECT count(*) FROM t WHERE k = 7'), 1, 'and back');

$node->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$node->safe_psql('postgres', 'DROP DATABASE publisher');

# Others follow autotrain.
$node->safe_psql('postgres', 'ALTER SYSTEM SET learnedbtree.autotrain = off');
$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
wait_until($node, "SELECT current_setting('learnedbtree.autotrain') = 'off' AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker')");
$_->quit foreach $open, $prepared, $cursor, $own;

# ---- memory ----

my ($buffers) = $node->safe_psql('postgres', "SELECT setting FROM pg_settings WHERE name = 'shared_buffers'");
my $hints = 1;
$hints *= 2 while $hints < $buffers;
my $block = $node->safe_psql('postgres', "SELECT sum(allocated_size) FROM pg_shmem_allocations WHERE name LIKE 'learnedbtree%'");
cmp_ok(abs($block - 258 * 1024 - 4 * $hints), '<', 2048, 'the control block') or diag("$block bytes, $hints hints");

$node->safe_psql('postgres', "CREATE TABLE texts (k text); INSERT INTO texts SELECT 'https://www.example.com/' || md5(g::text) || '/' || g FROM generate_series(1, 50000) g; "
	  . "CREATE INDEX texts_k ON texts (k); SELECT learnedbtree_train('texts_k'), learnedbtree_train('t_pkey')");
is($node->safe_psql('postgres', "SELECT bool_and(bytes - 16 * leaves - 24 * knots - separator_bytes BETWEEN 2000 AND 2400 AND separator_bytes <= greatest(32 * leaves, 65536)) "
	  . "FROM (VALUES ('t_pkey'), ('texts_k')) i (name), learnedbtree_model(name::regclass)"), 't', 'models');
is($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory() = sum(bytes) FROM pg_class c, learnedbtree_model(oid) WHERE relkind = \'i\' AND oid >= 16384 AND relnamespace = \'public\'::regnamespace AND relpersistence = \'p\''),
	't', 'their sum');

$node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1..500 LOOP EXECUTE format('CREATE TABLE m%s (k int8 PRIMARY KEY)', i); END LOOP; END \$\$");
my $used = $node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1..500 LOOP EXECUTE format('INSERT INTO m%s VALUES (1)', i); END LOOP; END \$\$; "
	  . "SELECT sum(used_bytes) FILTER (WHERE name = 'learnedbtree indexes'), sum(used_bytes) FILTER (WHERE name LIKE 'relations that%') FROM pg_backend_memory_contexts");
my ($views, $tables) = split /\|/, $used;
cmp_ok($views, '<', 500 * 1.3 * 1024, 'what a session knows of indexes') or diag($used);
cmp_ok($tables, '<', 500 * 0.13 * 1024 + 16384, '... and of tables') or diag($used);
like($node->safe_psql('postgres', ($section{'Memory'} =~ /^```sql\n(.*?)^```/ms)[0]), qr/^\d+ \w+\|\d+ \w+$/, 'the estimate can be asked for');

# ---- Prometheus ----

my $queries = CPAN::Meta::YAML->read("$root/doc/prometheus/queries.yaml")->[0];
my %metric;
foreach my $name (sort keys %$queries)
{
	my ($rc, $out, $err) = $node->psql('postgres', $queries->{$name}{query}, extra_params => [ '--no-align', '--pset=footer=off', '--pset=tuples_only=off' ]);
	my ($head, @rows) = split /\n/, $out;
	my @columns = split /\|/, $head;
	is_deeply(\@columns, [ map { keys %$_ } @{ $queries->{$name}{metrics} } ], "$name: the query has the columns of the metrics") or diag($err);
	cmp_ok(scalar @rows, '>', 0, "$name: and rows");
	my @usage = map { (values %$_)[0]{usage} } @{ $queries->{$name}{metrics} };
	my @wrong = grep { my @values = split /\|/, $_, -1; grep { $usage[$_] ne 'LABEL' && $values[$_] !~ /^\d+$/ } 0 .. $#values } @rows;
	is("@wrong", '', "$name: numbers where numbers should be");
	is_deeply([ grep { !/^(?:LABEL|COUNTER|GAUGE)$/ } @usage ], [], "$name: known kinds");
	$metric{"${name}_$columns[$_]"} = 1 foreach grep { $usage[$_] ne 'LABEL' } 0 .. $#columns;
}
is(scalar keys %$queries, 3, 'three queries');

my $rules = CPAN::Meta::YAML->read("$root/doc/prometheus/rules.yaml")->[0]{groups}[0]{rules};
is_deeply([ sort map { $_->{alert} } @$rules ], [ sort $section{'Prometheus'} =~ /^\| `(\w+)`/mg ], 'the page has each alert');
is_deeply([ map { grep { !$metric{$_} } $_->{expr} =~ /\b(learnedbtree_\w+)/g } @$rules ], [], 'and they are about metrics that there are');

# The dashboard: of these metrics, each in some panel, with labels that they have.
my $dashboard = decode_json(slurp_file("$root/doc/prometheus/dashboard.json"));
my @targets = map { @{ $_->{targets} } } @{ $dashboard->{panels} };
my %drawn = map { $_ => 1 } map { $_->{expr} =~ /\b(learnedbtree_\w+)/g } @targets;
is_deeply([ sort keys %drawn ], [ sort keys %metric ], 'the dashboard has each metric, and no other');
my %label = map { my $query = $_; map { my ($name) = keys %$_; $_->{$name}{usage} eq 'LABEL' ? ("$query $name" => 1) : () } @{ $queries->{$query}{metrics} } } keys %$queries;
my @without = grep {
	my ($query) = $_->{expr} =~ /\b(learnedbtree_[a-z]+)_/;
	my @named = ($_->{legendFormat} =~ /\{\{(\w+)\}\}/g, map { $_ // () } $_->{expr} =~ /\{(\w+)=|by \((\w+)\)/g);
	grep { !$label{"$query $_"} } @named
} @targets;
is_deeply([ map { $_->{expr} } @without ], [], '... and labels that they have');

my @unknown_states = grep { my $state = $_; $queries->{learnedbtree_models}{query} !~ /'\Q$state\E'/ } map { map { split /\|/ } $_->{expr} =~ /state=~?"([^"]*)"/g } @$rules;
is("@unknown_states", '', 'and states');
SKIP:
{
	skip 'no promtool', 1 unless grep { -x "$_/promtool" } split /:/, $ENV{PATH};
	$node->command_ok([ 'promtool', 'test', 'rules', "$root/test/prometheus/rules_test.yaml" ], 'and fire when they should');
}

$node->stop;
done_testing();
