# Random statements of all shapes over random tables (Shapes.pm), with every setting at random, give by served indexes what
# they give by btree: answers, errors, and what the tables hold in the end.  Beside them, other sessions share tables of
# another database, change them, and ask each query twice in one snapshot, by served indexes and by btree.
#
# LBT_SHAPES_SECONDS makes it longer (test/torture --shapes).  A round has a seed of its own, from LBT_SEED on; a failure
# prints it, and leaves the script in the folder of logs.
use strict;
use warnings;

use Draw;
use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Shapes;
use Test::More;

my $seed = $ENV{LBT_SEED} || 20261126;
my $rounds = $ENV{LBT_SHAPES_ROUNDS} || 4;
my $seconds = $ENV{LBT_SHAPES_SECONDS} || 0;
my $sessions = $ENV{LBT_SHAPES_SESSIONS} // 2;
my $transactions = 40;    # of a session in a round
my $limit = patience();    # of a statement
my $logs = $PostgreSQL::Test::Utils::log_path;

my $node = PostgreSQL::Test::Cluster->new('shapes');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
configure_serving($node);
$node->append_conf('postgresql.conf', "fsync = off\nlog_error_verbosity = verbose\nlearnedbtree.naptime = 50ms\nmax_locks_per_transaction = 256\nstatement_timeout = ${limit}s\n");
$node->start;
foreach my $database (qw(served plain shared))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, shapes_setup());
}


# What sessions of psql, [database, script], print: for each, what stands below each line <<...>>.
sub answers
{
	my (@sessions) = @_;
	my (@started, @found);
	foreach my $i (0 .. $#sessions)
	{
		my ($database, $script) = @{ $sessions[$i] };
		my $base = $node->basedir . "/session$i";
		unlink $base;
		append_to_file($base, $script);
		local $ENV{PGOPTIONS} = '-c learnedbtree.btree_indexes=' . ($database eq 'plain' ? 'none' : 'all');
		my $served = $database eq 'plain' ? 0 : 1;
		push @started, IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr($database), '-v', "served=$served", '-v', "file=$base.rows", '-f', $base ],
			'<', \undef, '>', "$base.out", '2>', "$base.err", IPC::Run::timeout(4 * $limit));
	}
	foreach my $i (0 .. $#sessions)
	{
		my $ended = eval { $started[$i]->finish };
		my (undef, @parts) = split /^<<(\d+ \w)>>\n/m, slurp_file($node->basedir . "/session$i.out");
		push @found, { @parts, ended => $ended };
	}
	return @found;
}

my (%seen, @failures, $asked);

sub failed
{
	my ($what, $number, @scripts) = @_;
	push @failures, "seed $number: $what";
	diag($failures[-1]);
	append_to_file("$logs/shapes-$number-$_.sql", $scripts[$_]) foreach 0 .. $#scripts;
	return;
}

# Fails where two answers differ.
sub compare
{
	my ($number, $statement, $in_order, $served, $btree, @scripts) = @_;
	my ($one, $two) = map { join "\n", $in_order ? $_ // 'nothing' : sort split /\n/, $_ // 'nothing' } $served, $btree;
	return 1 if $one eq $two;
	failed("$statement\n---- served:\n" . substr($one, 0, 1500) . "\n---- by btree:\n" . substr($two, 0, 1500), $number, @scripts);
	return 0;
}

sub one_round
{
	my ($number) = @_;
	my $script = shapes_schema($number) . shapes_statements($number + 1, $transactions) . shapes_end();
	my %statement = shapes_asked()->%*;
	# Other tables for sessions that share them.
	my @shared = (shapes_schema($number + 2), map { shapes_statements($number + 2 + $_, $transactions, paired => 1, first => $_ * 300_000_000) } 1 .. $sessions);
	my $made = shift @shared;
	$node->psql('shared', $made, on_error_stop => 0) if $sessions;
	my ($served, $plain, @found) = answers([ 'served', $script ], [ 'plain', $script ], map { [ 'shared', $_ ] } @shared);
	if (grep { !$_->{ended} } $served, $plain, @found)
	{
		failed('a session did not come to its end', $number, $script, $made, @shared);
		return 0;
	}
	foreach my $n (sort { $a <=> $b } keys %statement)
	{
		my ($kind) = grep { exists $plain->{"$n $_"} } 's', 'o';
		$kind //= 's';
		$asked++;
		$seen{ $1 // 'no error' }++ if ($plain->{"$n $kind"} // '') =~ /^(?:rows|ERROR (\w+))/m;
		foreach my $node_name ('Learned Look-Ahead', 'Learned Loose Scan')
		{
			$seen{$node_name} += () = ($served->{"$n e"} // '') =~ /$node_name/g;
		}
		last unless compare($number, "statement $n: $statement{$n}", $kind eq 'o', $served->{"$n $kind"}, $plain->{"$n $kind"}, $script);
	}
	%statement = shapes_asked()->%*;
	foreach my $answers (@found)
	{
		$asked += grep { /^\d+ \w$/ } keys %$answers;
		foreach my $key (sort keys %$answers)
		{
			next unless $key =~ /^(\d+) ([SO])$/;
			my ($in_order, $one, $two) = ($2 eq 'O', $answers->{$key}, $answers->{ $1 + 1 . ' ' . lc $2 } // '');
			my @errors = map { /^ERROR (\w+)/m } $one, $two;
			next if @errors == 2 || grep { /^(?:40|53|55|57)/ } @errors;    # what others do makes either fail
			$seen{pairs}++;
			last unless compare($number, "in shared tables, statement $1: $statement{$1}", $in_order, $one, $two, $made, @shared);
		}
	}
	return @failures < 6;
}

my $end = time + $seconds;
my ($last, $settled) = ($seed, 0);
for (my $number = $seed; $seconds ? time < $end : $number < $seed + 10 * $rounds; $number += 10)
{
	if ($settled != int($number / 200))
	{
		start_drawing($settled = int($number / 200));
		my %settings = (shared_buffers => one_of('1MB', '2MB', '8MB', '64MB'), autovacuum => one_of('on', 'off'), 'learnedbtree.autotrain' => one_of('on', 'on', 'off'), wal_level => one_of('replica', 'logical'));
		$settings{io_method} = one_of('sync', 'worker') if $node->pg_version >= 18;
		$node->safe_psql('postgres', "ALTER SYSTEM SET $_ = '$settings{$_}'") foreach sort keys %settings;
		$node->restart;
	}
	$last = $number;
	last unless one_round($number);
}
note("$asked statements, seeds $seed to $last; " . join(', ', map { "$_: $seen{$_}" } sort keys %seen));

unless ($ENV{LBT_SHAPES_ROUNDS})    # few may have none of these
{
	cmp_ok($seen{$_} // 0, '>', 0, "there were: $_") foreach 'Learned Look-Ahead', 'Learned Loose Scan', 'pairs', qw(23503 23505 P0001);
}
cmp_ok($seen{'no error'}, '>', 0.2 * $asked, 'most statements are such as the server takes');
if (is(join("\n", @failures), '', 'the same answers'))
{
	others_have_ended($node, 'served', '');
	cmp_ok($node->safe_psql('served', 'SELECT coalesce(sum(verified), 0) FROM learnedbtree_stat'), '>', 1000, 'models found leaves');
}
$node->stop('fast', fail_ok => 1);
my @wrong = grep { /PANIC: |TRAP: |terminated by signal|(?:ERROR|FATAL):  XX|WARNING: .*(?:leak|not closed|don't own)/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @wrong > 20 ? @wrong[ 0 .. 19 ] : @wrong), '', 'no crash, no internal error');
done_testing();
