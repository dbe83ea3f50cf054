# Shared by the TAP tests of served btree indexes: servers whose sessions serve them, which ones, and whether an index
# was served in what a session did.
package Serving;

use strict;
use warnings;

use Exporter 'import';
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT = qw(same_transactions others_have_ended configure_serving configure_loops learned_settings serving_node serve name_in name_out naming uses asked served_in predicted_in amcheck_all);

# Settings for a node that is initialized but not started.
sub configure_serving
{
	my ($node, %params) = @_;
	configure_node($node);
	learned_settings($node, %params);
	return;
}

# Those of them that concern learnedbtree: all sessions load the library, and no index is too small.  With "shared"
# background workers load it, too, as apply workers have to.
sub learned_settings
{
	my ($node, %params) = @_;
	my $shared = $params{shared} || needs_preload($node);
	$node->append_conf('postgresql.conf', ($shared ? 'shared' : 'session') . "_preload_libraries = 'learnedbtree'\n"
		  . "learnedbtree.min_leaves = 0\n");
	return;
}

# A server whose plans are index scans and nested loops over served indexes, which read ahead.
sub configure_loops
{
	my ($node) = @_;
	configure_serving($node);
	$node->append_conf('postgresql.conf', <<'CONF');
effective_io_concurrency = 32
max_parallel_workers_per_gather = 0
enable_seqscan = off
enable_bitmapscan = off
enable_hashjoin = off
enable_mergejoin = off
enable_material = off
learnedbtree.btree_indexes = 'all'
CONF
	return;
}

# A started server, with the extensions learnedbtree and amcheck in database postgres.  "indexes" are served.
sub serving_node
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	configure_serving($node, %params);
	$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = '$params{indexes}'\n") if defined $params{indexes};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
	return $node;
}

# Serve just these (items of learnedbtree.btree_indexes) in all sessions that set nothing of their own: new ones from now on,
# and those of background_psql() that are named, which read the changed file before their next command.
sub serve
{
	my ($node, $list, @sessions) = @_;
	my $value = join(', ', ref $list ? @$list : $list);
	$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.btree_indexes = '$value'; SELECT pg_reload_conf()");
	my $show = 'SHOW learnedbtree.btree_indexes';
	foreach my $ask (sub { $node->safe_psql('postgres', $show) }, map { my $session = $_; sub { $session->query_safe($show) } } @sessions)
	{
		my $tries = 0;
		while ($ask->() ne $value)
		{
			die 'a session does not read the changed file' if ++$tries > 1800;
			sleep(0.1);
		}
	}
	return;
}

# Give indexes names that match 'served_*', which is what some tests have sessions serve, or take these names away: so that
# all sessions know from their next statement on.  uses() and what is below knows such an index by its own name.
sub name_in
{
	my ($node, $database, @indexes) = @_;
	$node->safe_psql($database, join(';', map { naming('in', $_) } @indexes));
	return;
}

sub name_out
{
	my ($node, $database, @indexes) = @_;
	$node->safe_psql($database, join(';', map { naming('out', $_) } @indexes));
	return;
}

# The command for that; it does nothing where it is done.
sub naming
{
	my ($to, $index) = @_;
	return $to eq 'in' ? "ALTER INDEX IF EXISTS $index RENAME TO served_$index" : "ALTER INDEX IF EXISTS served_$index RENAME TO $index";
}

# How often, so far, models were asked for each of these indexes (or partitions of theirs), or, with "all", how often they
# were scanned or inserted into by the routine of served indexes, which leaves some scans to nbtree.  Sessions tell at
# the end of transactions, if they have not in the last 10 ms.
sub uses
{
	my ($node, $database, $which, @indexes) = @_;
	my $sum = 's.lookups + s.inserts' . ($which eq 'all' ? ' + s.delegated' : '');
	my $list = join(', ', map { "(coalesce(to_regclass('$_'), to_regclass('served_$_')))" } @indexes);
	return split /\n/, $node->safe_psql($database, <<"SQL");
SELECT (SELECT coalesce(sum($sum), 0) FROM pg_class c, learnedbtree_stat_get(c.oid) s
		WHERE relkind = 'i' AND (c.oid = i.index OR c.oid IN (SELECT relid FROM pg_partition_tree(i.index))))
	FROM (VALUES $list) AS i (index)
SQL
}

# Processes of sessions, and what waits for all others that are there to have ended: they tell the rest of what they have
# counted when they do, which may be after their clients.
my $processes = q{SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()};

sub others_have_ended
{
	my ($node, $database, $known) = @_;
	my $tries = 100 * patience();
	$node->safe_psql($database, <<"SQL");
DO \$\$ DECLARE
	others int[] := ARRAY(SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
		AND pid <> ALL ('{$known}'));
BEGIN
	FOR i IN 1 .. $tries LOOP
		PERFORM pg_stat_clear_snapshot();
		IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY (others)) THEN
			RETURN;
		END IF;
		PERFORM pg_sleep(0.01);
	END LOOP;
	RAISE EXCEPTION 'sessions that should have ended are there';
END \$\$
SQL
	return;
}

sub used_in
{
	my ($node, $database, $which, $code, @indexes) = @_;
	my @before = uses($node, $database, $which, @indexes);
	my $known = $node->safe_psql($database, $processes);
	$code->();
	others_have_ended($node, $database, $known);
	my @after = uses($node, $database, $which, @indexes);
	return join(' ', map { $after[$_] > $before[$_] ? $indexes[$_] : () } 0 .. $#indexes);
}

# What a session of background_psql() answers; afterwards, and outside of transactions, it has told what it used.
sub asked
{
	my ($session, $sql) = @_;
	my $answer = $session->query_safe($sql);
	$session->query_safe('DO $$ BEGIN PERFORM pg_sleep(0.012); END $$');
	return $answer;
}

# Which of these indexes code has used as served ones: their names, in one line.
sub served_in
{
	my ($node, $database, $code, @indexes) = @_;
	return used_in($node, $database, 'all', $code, @indexes);
}

# By their models; a session that serves an index no longer may leave its scans to nbtree.
sub predicted_in
{
	my ($node, $database, $code, @indexes) = @_;
	return used_in($node, $database, 'model', $code, @indexes);
}

# What amcheck finds wrong with any btree index of a database and its table, '' if nothing.
sub amcheck_all
{
	my ($node, $database) = @_;
	my $indexes = q{SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = relam JOIN pg_index i ON indexrelid = c.oid
		WHERE relkind = 'i' AND amname = 'btree' AND indisvalid AND c.oid >= 16384};
	my @list = split /\n/, $node->safe_psql($database, $indexes);
	my ($rc, $out, $err) = $node->psql($database, join('', map { "SELECT bt_index_parent_check('$_', true, true);" } @list));
	return $rc == 0 && @list > 0 ? '' : "$rc @list: $err";
}

# Do transactions, scripts for psql that begin with "\echo transaction N", say the same in a database whose indexes are served as
# in one of btree's own functions?  setup makes either, indexes (an expression of their OIDs) are trained; settings are of the
# sessions, flags psql's, and what is said goes through common.  Returns what btree says; served_all is left for questions.
sub same_transactions
{
	my ($node, $scripts, %how) = @_;
	my $number = @$scripts;
	my $file = $node->basedir . '/script';
	my $common = $how{common} // sub { $_[0] };
	my %came;

	PostgreSQL::Test::Utils::append_to_file($file, join '', @$scripts);
	foreach my $served ('none', 'all')
	{
		my $said = '';

		$node->safe_psql('postgres', "CREATE DATABASE served_$served");
		$node->safe_psql("served_$served", $how{setup});
		$node->safe_psql("served_$served", "SET learnedbtree.btree_indexes = 'all'; SELECT learnedbtree_train(i) FROM unnest($how{indexes}) i; SELECT learnedbtree_stat_reset()");
		local $ENV{PGOPTIONS} = join ' ', map { "-c $_" } "learnedbtree.btree_indexes=$served", 'client_min_messages=warning', @{ $how{settings} // [] };
		ok(IPC::Run::run([ 'psql', $how{flags} // '-XqAt', '-d', $node->connstr("served_$served"), '-f', $file ], '>&', \$said,
				IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default)), "btree_indexes = $served: the session comes to its end");
		@{ $came{$served} } = split /^(?=transaction \d+$)/m, $common->($said);
		is(scalar @{ $came{$served} }, $number, '... with all transactions');
	}
	foreach my $i (0 .. $number - 1)
	{
		next if ($came{all}[$i] // '') eq $came{none}[$i];
		is($came{all}[$i], $came{none}[$i], 'transaction ' . ($i + 1) . ":\n$scripts->[$i]");
		last;
	}
	others_have_ended($node, 'served_all', '');
	return join '', @{ $came{none} };
}

1;
