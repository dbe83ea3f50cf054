# Crashes at random moments of heavy change: an immediate shutdown, the postmaster killed, a backend killed.
# After each: recovery, amcheck, every index against the table, and no transaction lost whose commit a client
# was told of.  A standby follows, with readers, and crashes too at times; at the end it takes over.
# LBT_CRASH_ROUNDS and LBT_SEED make other runs; test/torture makes long ones.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use List::Util qw(shuffle sum);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use Torture;

my $seed = $ENV{LBT_SEED} || 20241104;
my $rounds = $ENV{LBT_CRASH_ROUNDS} || 4;
my $clients = 6;
my $readers = 2;
srand($seed);

my $usual = qr/could not serialize|duplicate key value|deadlock detected/;
my $told = qr/$usual|terminating connection|the database system is/;
my $severed = qr/terminating walreceiver|could not (?:receive|connect|send)|canceling statement due to conflict/;
my $killed = qr/terminated by signal 9|terminating (?:any other|background worker|autovacuum)/;
# The server's own, when it leaves a parallel command or waits for reads under way, and the postmaster has gone.
my $orphaned = qr/lost connection to parallel worker|postmaster exited during a parallel/;
my $leaving = qr/TRAP: failed Assert\("!IsTransactionOrTransactionBlock\(\)"\), File: "pgstat/;
my %expected = (
	immediate => qr/$told|$severed/,
	postmaster => qr/$told|$severed|$orphaned|$leaving/,
	backend => qr/$told|$severed|$killed/);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => ['--data-checksums']);
torture_conf($primary);
$primary->append_conf('postgresql.conf', <<'CONF');
restart_after_crash = on
full_page_writes = on
max_wal_size = 512MB
CONF
$primary->start;
torture_settings($primary);
make_tables($primary);
$primary->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('standby', true)");
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
# Readers may hold replay up, and be held up, but are not to be cancelled.
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\nhot_standby_feedback = on\n"
	  . "max_standby_streaming_delay = -1\n");
$standby->start;

# ---- crashes ----

# Start a server again whose processes may not all have gone yet.
sub start_again
{
	my ($node, @pids) = @_;
	for (my $end = time + patience(); time < $end;)
	{
		last unless grep { kill(0, $_) } @pids;
		usleep(100_000);
	}
	$node->start;
}

sub pids
{
	my ($node, $condition) = @_;
	return split /\n/, $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE $condition AND pid <> pg_backend_pid()");
}

# Kill a client's backend or one of our workers; the postmaster begins anew.
sub kill_backend
{
	my ($node) = @_;
	my $offset = -s $node->logfile;
	my $killed = 0;
	foreach (1 .. 20)
	{
		my @workers = pids($node, "backend_type LIKE 'learnedbtree %'");
		my @clients = pids($node, "backend_type = 'client backend'");
		my @choice = @workers && rand() < 0.5 ? @workers : @clients;
		$killed = @choice && kill('KILL', $choice[ rand @choice ]);
		last if $killed;
	}
	die 'there was no backend to kill' unless $killed;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
	wait_until($node, 'SELECT true');
}

my %crash = (
	immediate => sub { my ($node) = @_; $node->stop('immediate'); $node->start; },
	postmaster => sub { my ($node) = @_; my @pids = pids($node, 'true'); $node->kill9; start_again($node, @pids); },
	backend => \&kill_backend);

# What happens in a round: all of it in every four rounds, in random order.  With wal_consistency_checking, whole
# pages are logged and compared by recovery and by the standby; a tenth of the changes fits into the time.
my @plans;

sub next_plan
{
	if (!@plans)
	{
		my @consistency = shuffle(1, 0, 0, 0);
		my @standby = shuffle('immediate', 'postmaster', '', '');
		@plans = map { { kind => $_, consistency => shift @consistency, standby => shift @standby } }
		  shuffle('immediate', 'immediate', 'postmaster', 'backend');
	}
	return shift @plans;
}

# ---- checks ----

sub counts
{
	my ($node) = @_;
	return split /\n/, $node->safe_psql('postgres', "SELECT n FROM done WHERE who < $clients ORDER BY who");
}

# Of what clients were told is committed, all is there; and no more than one transaction of each beyond.
sub lost_commits
{
	my ($load, $before, $after) = @_;
	my $acknowledged = acknowledged($load);
	my @wrong;
	foreach my $client (0 .. $clients - 1)
	{
		my $there = $after->[$client] - $before->[$client];
		my $told = $acknowledged->{$client};
		push @wrong, "client $client was told of $told, $there are there" if $there < $told || $there > $told + 1;
	}
	return join("\n", @wrong);
}

sub check_primary
{
	my ($node, $name, $number) = @_;
	# what an interrupted REINDEX CONCURRENTLY has left
	$node->safe_psql('postgres',
		"SELECT format('DROP INDEX %I', indexrelid::regclass) FROM pg_index WHERE NOT indisvalid \\gexec");
	is(check_indexes($node), '', "$name: amcheck finds nothing wrong");
	is(faults($node, $number), '', "$name: nothing is lost or there twice, by any index");
	# (a worker may be about to train one)
	ok(eventually($node, "SELECT bool_and((learnedbtree_model(indexrelid)).state IN ('ready', 'not paying')) FROM learnedbtree_stat"),
		"$name: there are models again")
	  or diag($node->safe_psql('postgres', 'SELECT indexrelname, (learnedbtree_model(indexrelid)).* FROM learnedbtree_stat'));
	# A standby is not told which indexes replay drops: the worker forgets them some time later.
	ok(memory_balanced($node), "$name: shared memory holds one model an index") if $node == $primary;
}

sub check_standby
{
	my ($name, $number) = @_;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(faults($standby, $number), '', "$name: the standby's indexes hold what its table holds");
	my $all = 'SELECT sum(n) FROM done';
	is($standby->safe_psql('postgres', $all), $primary->safe_psql('postgres', $all),
		"$name: the standby has all transactions");
}

sub start_round_load
{
	my ($node, $number) = @_;
	return start_load($node, clients => $clients, seconds => 60, seed => $seed + $number,
		scripts => [ torture_scripts($node, compare => 25, claim => 3, claim_next => 2) ]);
}

sub crash_round
{
	my ($number) = @_;
	my $plan = next_plan();
	my $seconds = 0.3 + rand(2.2);
	my @offsets = map { -s $_->logfile } $primary, $standby;
	my $failures = grep { !$_ } Test::More->builder->summary;
	my $name = "round $number";

	my $checking = $plan->{consistency} ? 'all' : '';
	$primary->safe_psql('postgres', "ALTER SYSTEM SET wal_consistency_checking = '$checking'");
	$primary->reload;
	my @before = counts($primary);
	my $load = start_round_load($primary, $number);
	# Not too often: a new index has nothing to recover.
	my $rebuild = start_load($primary, clients => 1, seconds => 60, seed => $seed + $number,
		scripts => [ map { [ $_, 1, "\\set ms random(0, 4000)\n\\sleep :ms ms\nREINDEX INDEX CONCURRENTLY $_;" ] }
			  learned_indexes() ]);
	my $read = start_load($standby, clients => $readers, seconds => int($seconds) + 1, seed => $seed + $number,
		scripts => [ grep { $_->[0] eq 'compare' } torture_scripts($standby) ]);

	wait_until($primary, "SELECT sum(n) > " . sum(@before) . " FROM done WHERE who < $clients");
	usleep($seconds * 1_000_000 / 2);
	$crash{ $plan->{standby} }->($standby) if $plan->{standby};
	usleep($seconds * 1_000_000 / 2);
	$crash{ $plan->{kind} }->($primary);

	end_load($_) foreach $load, $rebuild;
	my $survived = end_load($read);
	ok($survived, "$name: the standby's answers were right") or diag($read->{err}) unless $plan->{standby};
	my @errors = grep { $plan->{kind} ne 'postmaster' || !/$orphaned/ }
	  map { $_->{err} =~ /^(.*ERROR: .*)$/mg } $load, $rebuild, $read;
	is("@errors", '', "$name: no errors and no wrong answers");
	my @after = counts($primary);
	is(lost_commits($load, \@before, \@after), '', "$name: no acknowledged transaction is lost");
	check_primary($primary, $name, $number);
	check_standby($name, $number) if $plan->{standby} || $number % 2 == 0;
	is(unexpected_in_log($primary, $offsets[0], $expected{ $plan->{kind} }), '',
		"$name: nothing unexpected in the log");
	is(unexpected_in_log($standby, $offsets[1], $expected{ $plan->{standby} || 'immediate' }), '',
		"$name: nor in the standby's");

	my $transactions = sum(@after) - sum(@before);
	my $good = (grep { !$_ } Test::More->builder->summary) == $failures;
	note(sprintf('%s: %s after %.2f s and %d writing transactions%s%s: %s', $name, $plan->{kind}, $seconds,
			$transactions, $plan->{consistency} ? ', wal_consistency_checking' : '',
			$plan->{standby} ? ", standby $plan->{standby}" : '', $good ? 'passed' : 'failed'));
}

crash_round($_) foreach 1 .. $rounds;

# ---- the standby takes over ----

my $offset = -s $standby->logfile;
my $load = start_round_load($primary, 0);
usleep(1_000_000);
$primary->stop('immediate');
$standby->promote;
wait_until($standby, 'SELECT NOT pg_is_in_recovery()');
end_load($load);
check_primary($standby, 'after promotion', 0);
$load = start_load($standby, clients => $clients, seconds => 3, seed => $seed,
	scripts => [ torture_scripts($standby) ]);
ok(end_load($load), 'the new primary serves all without errors and wrong answers') or diag($load->{err});
check_primary($standby, 'after changes on the new primary', 1);
$standby->stop;
is(unexpected_in_log($standby, $offset, qr/$told|$severed/), '', 'nothing unexpected in its log');
done_testing();
