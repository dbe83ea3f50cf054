# Leaves and rows that are read ahead are pinned by nobody: VACUUM does not wait for a scan or join that waits for a lock,
# for its client, or in a function's loop, nor does a standby's replay.  (Otherwise they would wait for each other in a
# circle: VACUUM for a pin, the pin's owner for a row, the row's owner for VACUUM's lock on the table.)
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $patience = patience();    # seconds
my $node = PostgreSQL::Test::Cluster->new('pins');
$node->init(allows_streaming => 1);
configure_loops($node);
$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 4MB
learnedbtree.naptime = 1h
hot_standby_feedback = on
wal_receiver_status_interval = 1s
max_standby_streaming_delay = -1
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE ei (k int8 NOT NULL, v int, pad text);
INSERT INTO ei SELECT g * 7919 % 120000, g, repeat('x', 20) FROM generate_series(1::int8, 120000) g;
CREATE UNIQUE INDEX ei_k ON ei (k);
CREATE TABLE probe AS SELECT g AS n, (g * 104729::int8) % 120000 AS k FROM generate_series(1, 20000) g;
-- Stops at some row until an advisory lock is free.
CREATE FUNCTION loop(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    row record;
    rows bigint := 0;
BEGIN
    FOR row IN EXECUTE query LOOP
        rows := rows + 1;
        IF rows = 700 THEN
            PERFORM pg_advisory_lock_shared(1);
        END IF;
    END LOOP;
    RETURN rows;
END $$;
VACUUM ANALYZE ei, probe;
SQL

my $range = 'SELECT k, v FROM ei WHERE k BETWEEN 1000 AND 90000 ORDER BY k';
my $join = 'SELECT ei.k, ei.v FROM (SELECT * FROM probe ORDER BY n OFFSET 0) p JOIN ei ON ei.k = p.k';
my $list = "SELECT k, v FROM ei WHERE k = ANY (ARRAY(SELECT k FROM probe WHERE n <= 5000)) ORDER BY k";
my %queries = ('a range' => $range, 'a join' => $join, 'a list' => $list);
like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $join"), qr/Learned Look-Ahead/, 'the join looks ahead');

# Nothing in shared buffers, models trained, some entries dead.
my $round = 0;
sub cold
{
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train('ei_k'), learnedbtree_stat_reset()");
	$node->safe_psql('postgres', 'UPDATE ei SET v = v + 1 WHERE k % 5000 = ' . $round++);
}

sub waits_for
{
	my ($on, $event) = @_;
	return $on->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND $event");
}

sub read_ahead
{
	my ($what) = @_;
	is(stat_of($node, 'ei_k', 'prefetched + rows_prefetched > 20'), 't', "$what: blocks have been read ahead")
	  or diag(stat_of($node, 'ei_k', 'learnedbtree_stat'));
}

sub vacuums
{
	my ($what) = @_;
	my ($rc, undef, $err) = $node->psql('postgres', "SET statement_timeout = '${patience}s';\nVACUUM (INDEX_CLEANUP on, TRUNCATE off) ei");
	is("$rc$err", '0', "$what: VACUUM does not wait for it");
}

# A session that begins a statement and does not wait for its end.
sub begin
{
	my ($on, $sql) = @_;
	my $session = $on->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\n$sql;\n\\echo ended\n");
	return $session;
}

# ---- it waits for a row ----

foreach my $what (sort keys %queries)
{
	my $row = $what eq 'a range' ? 20000 : $node->safe_psql('postgres', "SELECT k FROM ($queries{$what} LIMIT 1 OFFSET 900) q");
	cold();
	my $owner = $node->background_psql('postgres', on_error_stop => 1);
	$owner->query_safe("BEGIN; SELECT * FROM ei WHERE k = $row FOR UPDATE");
	my $waiter = begin($node, "SELECT count(*) FROM ($queries{$what} FOR UPDATE OF ei) q");
	ok(waits_for($node, "wait_event_type = 'Lock'"), "$what waits for a row");
	vacuums("$what that waits for a row");
	# What would close the circle.  (The new index goes by a rollback: to drop it takes a lock that the waiter is in the way of.)
	$owner->query_safe("SET lock_timeout = '${patience}s'; CREATE INDEX ei_v ON ei (v)");
	$owner->query_safe('ROLLBACK');
	like($waiter->query_until(qr/ended/, ''), qr/^[1-9]\d*$/m, "$what: goes on when the row is free");
	$_->quit foreach $owner, $waiter;
	read_ahead($what);
}

# ---- it waits for its client ----

foreach my $what (sort keys %queries)
{
	cold();
	# More than a pipe has room for, and nobody reads it.  The reader says who it is.
	my $file = $node->basedir . '/reader';
	unlink $file;
	my $copy = begin($node, "COPY (SELECT q.*, repeat('y', 2000) FROM ($queries{$what}) q) TO PROGRAM 'echo \$\$ >$file; exec sleep 1000'");
	my $last = -1;
	for (my $end = time + $patience; time < $end;)
	{
		my $now = $node->safe_psql('postgres', 'SELECT coalesce(sum(tuples_processed), 0) FROM pg_stat_progress_copy');
		last if $now > 0 && $now == $last;
		$last = $now;
		sleep(1);
	}
	cmp_ok($last, '>', 0, "$what: COPY waits for its reader");
	vacuums("$what of COPY that waits for its reader");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_progress_copy'), '1', '... which it still does');
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_progress_copy");
	kill('TERM', slurp_file($file) + 0);
	$copy->{run}->kill_kill if defined $copy->{run};
	read_ahead("$what of COPY") if $what eq 'a join';    # of the others too few rows have come
}

# ---- it waits within a function's loop; on a standby, too ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
foreach my $what (sort keys %queries)
{
	cold();
	$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
	$standby->restart;
	my %waiting;
	foreach my $on ($node, $standby)
	{
		my $owner = $on->background_psql('postgres', on_error_stop => 1);
		$owner->query_safe('SELECT pg_advisory_lock(1)');
		my $waiter = begin($on, "SELECT loop(\$\$$queries{$what}\$\$)");
		ok(waits_for($on, "wait_event = 'advisory'"), "$what waits in a loop, " . $on->name);
		$waiting{ $on->name } = [ $owner, $waiter ];
	}
	# The standby's feedback keeps rows that its query might see; replay of what VACUUM does to leaves needs their pins.
	$node->safe_psql('postgres', 'UPDATE ei SET v = v + 1 WHERE k % 5000 = ' . $round++);
	vacuums("$what in a loop");
	ok(eval { $node->wait_for_catchup($standby, 'replay', $node->lsn('flush')); 1 }, "$what in a loop: nor does replay on the standby");
	foreach my $pair (values %waiting)
	{
		$pair->[0]->query_safe('SELECT pg_advisory_unlock(1)');
		$pair->[1]->query_until(qr/ended/, '');
		$_->quit foreach @$pair;
	}
	read_ahead("$what in a loop");
}
is($standby->safe_psql('postgres', "SELECT confl_bufferpin FROM pg_stat_database_conflicts WHERE datname = 'postgres'"), '0', 'no query of the standby was in the way');
$standby->stop;
$node->stop;
done_testing();
