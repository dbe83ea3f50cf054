# doc/rollout.md, followed: each of its blocks runs, in order, as who and where its first line says, and does what the page says;
# each step is taken back by what the page has for it.  A primary with a standby.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = slurp_file("$FindBin::RealBin/../../doc/rollout.md");
my %section = $page =~ /^## (?:Step )?(.*?)\n(.*?)(?=^## |\z)/msg;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
configure_node($primary);
$primary->append_conf('postgresql.conf', "enable_seqscan = off\nenable_bitmapscan = off\n");
$primary->start;
$primary->safe_psql('postgres', 'CREATE DATABASE shop; CREATE ROLE web LOGIN; CREATE ROLE other LOGIN; GRANT pg_read_all_settings TO other');
$primary->safe_psql('shop', <<'SQL');
CREATE TABLE orders (id bigint PRIMARY KEY, customer integer);
INSERT INTO orders SELECT hashint8extended(i, 1), i % 10000 FROM generate_series(1, 50000) i;
CREATE INDEX orders_customer ON orders (customer);
GRANT SELECT ON orders TO public;
VACUUM ANALYZE orders;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# ---- what runs, where ----

sub caught_up { $primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert')); return; }

# A block's statements in a new session: what it prints.  Nothing else may come of it.
sub run_as
{
	my ($node, $role, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('shop', $sql, $role eq 'web' ? (extra_params => [ '-U', 'web' ]) : ());
	is("$rc|$err", '0|', ($sql =~ s/^--.*\n//r) =~ s/\n.*//sr);
	caught_up() if $node == $primary;
	return $out;
}

# The blocks of a section, each by its first line; and those that have been run.
my %blocks = map { my $name = $_; ($name => [ $section{$name} =~ /^```sql\n(.*?)^```$/msg ]) } keys %section;
my %ran;

# Run the next block of a section, on the servers that its first line may mean.
sub follow
{
	my ($name, @nodes) = @_;
	my $sql = $blocks{$name}[ $ran{$name}++ ] // die "$name has no such block\n";
	my ($role, $where) = $sql =~ /^-- (superuser|web), (primary|standby|each server|the server that serves)(?:, to undo|, if needed)?\n/ or die "who runs it, and where?\n$sql";
	my %servers = (primary => "$primary", standby => "$standby", 'each server' => "$standby $primary");
	is("@nodes", $servers{$where}, "$name: on the $where") if $servers{$where};
	my @printed = map { run_as($_, $role, $sql) } @nodes;
	return wantarray ? @printed : $printed[0];
}

# The page's lines for a shell.
sub shell
{
	my ($which, @nodes) = @_;
	my $line = ($section{'Go back'} =~ /^```\n(.*?)^```$/msg)[$which];
	$_->command_ok([ 'bash', '-c', $line ], $line) foreach @nodes;
	foreach my $node (@nodes) { wait_until($node, "SELECT current_setting('learnedbtree.enable', true) IS DISTINCT FROM '" . ($which ? 'off' : 'on') . "'"); }
	return;
}

# Which indexes does a new session of a role serve?  Asked by looking up.
my %question = (orders_pkey => 'SELECT count(*) FROM orders WHERE id = hashint8extended(77, 1)', orders_customer => 'SELECT count(*) FROM orders WHERE customer = 77');

sub served_in
{
	my ($node, $role) = @_;
	my $lookups = q(SELECT coalesce((SELECT lookups FROM learnedbtree_stat WHERE indexrelname = '%s'), 0));
	my @served;
	foreach my $index (sort keys %question)
	{
		my $before = $node->safe_psql('shop', sprintf($lookups, $index));
		$node->safe_psql('shop', $question{$index}, extra_params => [ '-U', $role ]);
		settle($node);
		push @served, $index if $node->safe_psql('shop', sprintf($lookups, $index)) > $before;
	}
	return "@served";
}

sub load
{
	my ($node) = @_;
	$node->safe_psql('shop', q(DO $$ DECLARE k int8; BEGIN FOR i IN 1..12000 LOOP SELECT id INTO k FROM orders WHERE id = hashint8extended(i, 1); END LOOP; END $$), extra_params => [ '-U', 'web' ]);
	settle($node);
	return;
}

# ---- the steps ----

is(join('', follow('1: Files', $standby, $primary)), '', 'the library is there, and has memory');
follow('1: Files', $primary);
is(served_in($_, 'web'), '', 'nobody is served') foreach $primary, $standby;
load($primary);
ok(eventually($primary, q(SELECT sum(visits_to_save) > 10000 FROM learnedbtree_indexes), database => 'shop'), 'scans are counted');
like(scalar follow('1: Files', $primary), qr/\Apublic\|orders_pkey\|1\d{4}\|2\|1\d{4}\n?/, 'the first index');
like($_, qr/^[^|]+\|\d+\|\d+$/, 'time and transactions') foreach follow('1: Files', $standby, $primary);

my $two = '2: One index, on one standby';
like(scalar follow($two, $standby), qr/\At\z/, 'a reload');
wait_until($standby, q(SELECT current_setting('learnedbtree.btree_indexes', true) = 'orders_pkey'));
like(scalar follow($two, $standby), qr/^orders_pkey\|t\|\|untrained$/, 'it is served');
is(served_in($standby, 'web'), 'orders_pkey', '... in fact');
is(served_in($primary, 'web'), '', '... not on the primary');
shell(0, $standby);
is(served_in($standby, 'web'), '', 'the way back');
shell(1, $standby);
is(served_in($standby, 'web'), 'orders_pkey', '... and on');
load($standby);
like(scalar follow('The numbers', $standby), qr/^orders_pkey\|1\d{4}\|(?:100\.0|9\d\.\d)\|1\|.*\|go on$/m, 'the numbers: go on');
like(scalar follow('The numbers', $standby), qr/^ready\|1\|.*\|256MB$/, 'models');
follow($two, $standby);
wait_until($standby, q(SELECT current_setting('learnedbtree.btree_indexes', true) IS DISTINCT FROM 'orders_pkey'));
is(served_in($standby, 'web'), '', 'the end of the step');

my $three = '3: One index, for one role';
my $pooled = $primary->background_psql('shop', extra_params => [ '-U', 'web' ]);
follow($three, $primary);
like($pooled->query_safe(q(SELECT coalesce(nullif(current_setting('learnedbtree.btree_indexes', true), ''), 'none'))), qr/^none$/, 'a session that was open does not follow');
like(scalar follow('Poolers', $primary), qr/^web\|1\|/m, '... which is among the old ones');
$pooled->quit;
like(scalar follow($three, $primary), qr/^orders_pkey\|t\|\|\w+$/, 'it is served');
is(served_in($primary, 'web'), 'orders_pkey', '... in fact');
is(served_in($primary, 'other'), '', '... not for another role');
is(served_in($standby, 'web'), 'orders_pkey', '... on the standby, too');
shell(0, $primary, $standby);
is(served_in($_, 'web'), '', 'the way back') foreach $primary, $standby;
shell(1, $primary, $standby);
my $name = ($blocks{$three}[0] =~ /^(ALTER ROLE.*btree_indexes.*)$/m)[0];
follow($three, $primary);
is(served_in($primary, 'web'), '', 'the step alone is undone');
$primary->safe_psql('shop', $name);

my $four = '4: More indexes';
follow($four, $primary);
is(served_in($primary, 'web'), 'orders_customer orders_pkey', 'two indexes');
is(scalar follow($four, $primary), '', 'no name matches nothing');
like($primary->safe_psql('shop', "LOAD 'learnedbtree'; SET learnedbtree.btree_indexes = 'orders'; $blocks{$four}[1]"), qr/^orders$/, '... and a name that does is shown');
like(scalar follow($four, $primary), qr/^\d+ \w+\|\d+ \w+\|256MB$/, 'what memory they will take');
follow($four, $primary);
is(served_in($primary, 'web'), 'orders_customer orders_pkey', 'all');

# With a library that the setting has already (here one that all servers have), as the page and doc/install.md write it.
foreach my $file ('rollout.md', 'install.md')
{
	my ($list) = slurp_file("$FindBin::RealBin/../../doc/$file") =~ /('auto_explain', 'learnedbtree')/;
	my $set = "ALTER ROLE other SET session_preload_libraries = $list" =~ s/auto_explain/amcheck/r;
	$primary->safe_psql('shop', $set);
	is($primary->safe_psql('shop', 'SHOW session_preload_libraries', extra_params => [ '-U', 'other' ]), 'amcheck, learnedbtree', "$file: another library");
}
$primary->safe_psql('shop', 'ALTER ROLE other RESET ALL');

follow('5: All roles', $primary);
is(served_in($_, 'web'), 'orders_customer orders_pkey', 'all, for the role') foreach $primary, $standby;
is(served_in($_, 'other'), 'orders_customer orders_pkey', '... and for others') foreach $primary, $standby;
load($primary);
$ran{'The numbers'} = 0;
like(scalar follow('The numbers', $primary), qr/^orders_pkey\|\d+\|(?:100\.0|9\d\.\d)\|\d+\|.*\|go on$/m, 'the numbers: go on');
like(scalar follow('The numbers', $primary), qr/^ready\|2\|.*\|256MB$/m, 'models');
shell(0, $primary, $standby);
is(served_in($_, 'other'), '', 'the way back') foreach $primary, $standby;
shell(1, $primary, $standby);

$standby->restart;
like(scalar follow('What first statements cost', $standby), qr/^2$/, 'all models are trained ahead');
is(served_in($standby, 'web'), 'orders_customer orders_pkey', '... and used');

follow('What other sessions notice', $primary);
is($primary->safe_psql('shop', q(SELECT current_setting('effective_io_concurrency') || current_setting('learnedbtree.enable_row_prefetch')), extra_params => [ '-U', 'web' ]), '4off', 'reading ahead is bounded');

is_deeply({ map { $_ => $ran{$_} // 0 } grep { @{ $blocks{$_} } } keys %blocks }, { map { $_ => scalar @{ $blocks{$_} } } grep { @{ $blocks{$_} } } keys %blocks }, 'each block of the page has run');
$_->stop foreach $standby, $primary;
done_testing();
