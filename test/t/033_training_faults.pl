# Errors while an index is trained for the first time, or while leaves are read ahead: what passes is tried again later and
# by itself, what is damaged is not; a clock that is set back delays nothing; and no statement fails for a block that it
# does not need (by the shim in test/shim).
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../shim";
use Failat;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $EIO = 5;
my ($SIGINT, $SIGTERM, $SIGCONT) = (2, 15, 18);
my $patience = patience();    # seconds in which a model comes by itself

build_shim();
my $node = PostgreSQL::Test::Cluster->new('training_faults');
$node->init(allows_streaming => 1);
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
restart_after_crash = on
statement_timeout = 120s
effective_io_concurrency = 32
maintenance_io_concurrency = 32
max_parallel_workers_per_gather = 0
enable_seqscan = off
enable_bitmapscan = off
learnedbtree.btree_indexes = 'all'
learnedbtree.min_leaves = 0
CONF
$node->append_conf('postgresql.conf', ($node->pg_version < 17 ? 'shared' : 'session') . "_preload_libraries = 'learnedbtree'\n");
with_shim(sub { $node->start });
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
declare_shim($node);

# A btree index that nobody has used, of one leaf a row, and of three levels or more.
my @faults = qw(private shared io once cancelled terminated conflict damaged parallel);
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION fill(name text, rows int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (k int8, pad text COLLATE "C") WITH (autovacuum_enabled = off)', name);
	EXECUTE format('INSERT INTO %I SELECT g, repeat($x$x$x$, 400) FROM generate_series(1, %s) g', name, rows);
	EXECUTE format('CREATE INDEX %I ON %I (k, pad) WITH (fillfactor = 10)', name || '_k', name);
END $$;
SQL
$node->safe_psql('postgres', join('', map { "SELECT fill('$_', 2500);" } @faults));
$node->safe_psql('postgres', 'VACUUM ANALYZE');
$node->backup('base');
$node->safe_psql('postgres', "SELECT fill('scan', 5500); SELECT fill('large', 8400); VACUUM ANALYZE scan, large; CHECKPOINT");

sub file_of { my ($index) = @_; return $node->safe_psql('postgres', "SELECT pg_relation_filepath('$index')"); }

# The blocks of an index that are on a level, from left to right.
sub blocks_on_level
{
	my ($index, $wanted) = @_;
	my $bytes = slurp_file($node->data_dir . '/' . file_of($index));
	my (%next, %has_left);
	foreach my $block (1 .. length($bytes) / 8192 - 1)
	{
		my ($left, $right, $level, $flags) = unpack('LLLS', substr($bytes, $block * 8192 + 8192 - 16, 16));
		next if $level != $wanted || $flags & (4 | 8 | 16);
		$next{$block} = $right;
		$has_left{$block} = $left != 0;
	}
	my ($block) = grep { !$has_left{$_} } keys %next;
	my @blocks;
	for (; $block; $block = $next{$block}) { push @blocks, $block; }
	return @blocks;
}

# A rule of the shim for reads of these blocks.
sub read_rule
{
	my ($index, $first, $last, $error, $times) = @_;
	return sprintf("SELECT failat_rule('read', '%s', %d, %d, %d, true, %d);", file_of($index), $first, $last, $error, $times // 0);
}

# Nothing of the data is in shared buffers, and there are no models.
sub cold
{
	my ($server) = @_;
	with_shim(sub { $server->restart });
	return;
}

sub off { return $_[0]->safe_psql('postgres', 'SELECT failat_hits(), failat_off()'); }

sub hits { my ($out) = @_; $out =~ /^(\d+)/ or die "no hits in '$out'"; return $1; }

# A session's statement: its answer, or the SQLSTATE of its error; "gone" when it takes the session with it.
sub outcome
{
	my ($server, $sql) = @_;
	my ($rc, $out, $err) = $server->psql('postgres', "\\set VERBOSITY sqlstate\n$sql\n\\echo alive", on_error_stop => 0, timeout => $patience);
	return 'gone' if $out !~ /alive$/;
	$out =~ s/\n?alive$//;
	return $err =~ /ERROR:  (\w+)/ ? $1 : $out;
}

sub lookup { my ($name, $key) = @_; return sprintf('SELECT count(*) FROM %s WHERE k = %d;', $name, $key // 1); }

# With each use a model may come; it must in good time.
sub comes_by_itself
{
	my ($server, $name, $what) = @_;
	my $began = time;
	my ($state, $answer) = ('', '');
	while (time - $began < $patience)
	{
		$answer = outcome($server, lookup($name));
		last if $answer ne '1';
		$state = model_state($server, "${name}_k");
		last if $state eq 'ready';
		sleep(0.2);
	}
	is("$answer $state", '1 ready', sprintf('%s: then a model comes by itself (%.1f s)', $what, time - $began));
	return;
}

# ---- first trainings ----

my %level1 = map { ($_ => [ blocks_on_level("${_}_k", 1) ]) } @faults, 'large';
cmp_ok(scalar @{ $level1{io} }, '>=', 6, 'the index has pages enough on level 1');
cold($node);
my $log = log_size($node);

# A statement may fail for want of private memory, but only so; then training is tried again.  (What a session allocates
# once, it has by another index.)
my $answer = outcome($node, lookup('scan') . "SELECT failat_rule('allocation', '', 30000, 1000000000, 12);" . lookup('private') . lookup('private'));
like($answer, qr/^(53200|1\nt\n1\n1)$/, 'out of private memory: nothing worse than that');
cmp_ok(hits(off($node)), '>', 0, 'out of private memory: met');
isnt(model_state($node, 'private_k'), 'ready', 'out of private memory: no model');
comes_by_itself($node, 'private', 'out of private memory');

# No model without shared memory, but no error either.
$node->safe_psql('postgres', "SELECT failat_rule('map', '', 0, 1000000000, 12)");
is(outcome($node, lookup('shared') . lookup('shared')), "1\n1", 'out of shared memory: statements do without');
cmp_ok(hits(off($node)), '>', 0, 'out of shared memory: met');
comes_by_itself($node, 'shared', 'out of shared memory');

# A page of level 1 that the lookups do not need cannot be read.
my $page;
my $bad = $level1{io}[-3];
$node->safe_psql('postgres', read_rule('io_k', $bad, $bad, $EIO));
my (%answers, $n);
my $began = time;
while (time - $began < 5 || (time - $began < $patience && $node->safe_psql('postgres', 'SELECT failat_hits()') < 2))
{
	$answers{ outcome($node, lookup('io') x 20) }++;
	$n++;
}
my $good = join("\n", ('1') x 20);
my $failed = grep { $_ ne $good && $_ ne '58030' } keys %answers;
is($failed, 0, 'I/O error: nothing worse than that') or diag(explain(\%answers));
note("$n sessions of 20 lookups, " . ($answers{58030} // 0) . ' errors');
isnt(model_state($node, 'io_k'), 'ready', 'I/O error: no model');
my $met = hits(off($node));
cmp_ok($met, '>', 0, 'I/O error: met');
cmp_ok($met, '>', 1, 'I/O error: tried again');
cmp_ok($met, '<=', 12, 'I/O error: but not with each statement');
comes_by_itself($node, 'io', 'I/O error');

# Once, where it is read ahead: then it is read when it is needed.
my $once = $level1{once}[4];
$node->safe_psql('postgres', read_rule('once_k', $once, $once, $EIO, 1));
my $once_answer = outcome($node, lookup('once'));
cmp_ok(hits(off($node)), '>', 0, 'one I/O error while reading ahead: met');
is($once_answer, '1', 'one I/O error while reading ahead: the statement goes on') if $node->pg_version >= 17;
comes_by_itself($node, 'once', 'one I/O error');

# A signal as a page of level 1 is read.  Those that come later are not: training does not put the statement's end off.
foreach my $signal ([ cancelled => $SIGINT, qr/^57014$/ ], [ terminated => $SIGTERM, qr/^gone$/ ])
{
	my ($name, $number, $expected) = @$signal;
	my $page = $level1{$name}[4];
	my $later = $level1{$name}[-3];
	$node->safe_psql('postgres', read_rule("${name}_k", $page, $page, -$number, 1) . read_rule("${name}_k", $later, $later, -$SIGCONT));
	my $first = outcome($node, lookup($name));
	is(hits(off($node)), 1, "$name: met, and training ends there");
	like($first, $expected, "$name: so the statement ends");
	comes_by_itself($node, $name, $name);
}

# The same of an index so large that a worker would train it, where there is none.
cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('large_k') / 8192"), '>', 8192, 'a large index');
$node->safe_psql('postgres', 'ALTER SYSTEM SET learnedbtree.autotrain = off');
cold($node);
$bad = $level1{large}[-3];
$node->safe_psql('postgres', read_rule('large_k', $bad, $bad, $EIO));
is(outcome($node, lookup('large') x 2), "1\n1", 'large, I/O error: statements do without a model');
cmp_ok(hits(off($node)), '>', 0, 'large, I/O error: met');
isnt(model_state($node, 'large_k'), 'ready', 'large, I/O error: no model');
cold($node);
$node->safe_psql('postgres', read_rule('large_k', $level1{large}[4], $level1{large}[4], -$SIGINT, 1) . read_rule('large_k', $bad, $bad, -$SIGCONT));
is(outcome($node, lookup('large')), '57014', 'large, cancelled: so the statement ends');
is(hits(off($node)), 1, 'large, cancelled: met, and training ends there');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET learnedbtree.autotrain; SELECT pg_reload_conf()');
comes_by_itself($node, 'large', 'large');

# An error of a parallel worker reaches its leader in a training, and says nothing about the index, whatever it is.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION fail_in_worker(leader int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
	IF pg_backend_pid() <> leader THEN
		WHILE failat_hits() = 0 LOOP	-- not before the leader trains
			PERFORM pg_sleep(0.01);
		END LOOP;
		RAISE 'the worker says' USING ERRCODE = 'index_corrupted';
	END IF;
	RETURN 1;
END $$;
SQL
cold($node);
$page = $level1{parallel}[4];
$node->safe_psql('postgres', read_rule('parallel_k', $page, $page, 0));
my $leader = $node->background_psql('postgres', on_error_stop => 0);
$leader->query_safe('SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET enable_hashjoin = off; '
	  . 'SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off; SET enable_seqscan = on; SET max_parallel_workers_per_gather = 1');
my $leader_pid = $leader->query_safe('SELECT pg_backend_pid()');
my $before = log_size($node);
$leader->query_until(qr/begun/, "\\echo begun\n\\set VERBOSITY sqlstate\nSELECT count(*) FROM scan JOIN parallel USING (k) WHERE fail_in_worker($leader_pid + 0 * scan.k::int) > 0;\n");
wait_until($node, 'SELECT failat_hits() > 0');
for (1 .. 10 * $patience)
{
	last if since_log($node, $before) =~ /the worker says/;
	sleep(0.1);
}
is(hits(off($node)), 1, 'parallel: the leader trains');
like(since_log($node, $before), qr/the worker says/, 'parallel: and its worker fails');
eval { $leader->quit };
is(model_state($node, 'parallel_k'), 'untrained', 'parallel: nothing is said about the index');
comes_by_itself($node, 'parallel', 'parallel');
is(crashed_since($node, $log), '', 'no crash');

# ---- a conflict with recovery ----

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 0\nhot_standby_feedback = off\n"
	  . "log_recovery_conflict_waits = on\ndeadlock_timeout = 50ms\n");
with_shim(sub { $standby->start });
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$page = $level1{conflict}[4];
# The training waits as it reads a page, and goes on when the rule ends.
$standby->safe_psql('postgres', read_rule('conflict_k', $page, $page, 0));
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_until(qr/started/, "\\set VERBOSITY sqlstate\n\\echo started\nBEGIN ISOLATION LEVEL REPEATABLE READ;\n" . lookup('conflict') . "\n");
wait_until($standby, 'SELECT failat_hits() > 0');
$node->safe_psql('postgres', 'DELETE FROM conflict WHERE k > 2000; VACUUM (INDEX_CLEANUP OFF) conflict');
$standby->wait_for_log(qr/recovery still waiting after .* recovery conflict on snapshot/);    # its signal has been sent
off($standby);
eval { $reader->query('SELECT 1') };
eval { $reader->quit };
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
like(slurp_file($standby->logfile), qr/canceling statement due to conflict with recovery|terminating connection due to conflict/, 'conflict: met');
comes_by_itself($standby, 'conflict', 'conflict with recovery');
$standby->stop;

# ---- damage ----

$node->safe_psql('postgres', 'ALTER TABLE shared ADD PRIMARY KEY (k); CREATE TABLE refers (k int8 REFERENCES shared)');
my $damaged = $level1{damaged}[-3];
my ($file, $metapage, $gone) = map { $node->data_dir . '/' . file_of("${_}_k") } qw(damaged io shared);
$node->stop;
{
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, $damaged * 8192, 0);
	read($fh, my $kept, 8192);
	seek($fh, $damaged * 8192, 0);
	print $fh "\0" x 8192;
	close $fh or die "$file: $!";
	open($fh, '+<:raw', $metapage) or die "$metapage: $!";
	print $fh 'x' x 8192;
	close $fh or die "$metapage: $!";
	unlink($gone) or die "$gone: $!";
}
$log = log_size($node);
with_shim(sub { $node->start });
is($node->safe_psql('postgres', "SELECT indexname, reason FROM learnedbtree_indexes WHERE NOT served AND indexname <> 'once_k' ORDER BY 1"),
	"io_k|its metapage cannot be read\nshared_k|its metapage cannot be read", 'indexes are listed whose files are damaged or gone');
is($node->psql('postgres', 'INSERT INTO refers VALUES (NULL)'), 0, 'a file that a statement does not need may be gone');
my %states;
$began = time;
while (time - $began < 6)
{
	outcome($node, lookup('damaged'));
	$states{ model_state($node, 'damaged_k') }++;
	sleep(0.1);
}
my @complaints = since_log($node, $log) =~ /unexpected zero page/g;
is(join(' ', keys %states), 'damaged', 'a damaged index: training has failed, and says why');
is(scalar @complaints, 1, 'a damaged index: it is not tried again');
is(outcome($node, lookup('damaged')), '1', 'a damaged index: what is in order is found');
isnt($node->psql('postgres', "SELECT learnedbtree_train('damaged_k')"), 0, 'a damaged index: learnedbtree_train() says so');
$node->safe_psql('postgres', 'REINDEX INDEX damaged_k');
comes_by_itself($node, 'damaged', 'rebuilt');

# ---- a clock that is set back ----

# By a day: what was to wait for a moment does not wait for a day.  One index was trained a moment ago, another one's training
# has just failed, and a worker is there; in a second database one was asked for and could not come.
my $day = 24 * 60 * 60;
$node->safe_psql('postgres', "CREATE DATABASE closed; SELECT fill(t, 2500) FROM unnest('{recent,failing,another}'::text[]) t");
$node->safe_psql('closed', 'CREATE EXTENSION learnedbtree; CREATE TABLE t (k int); '
	  . 'INSERT INTO t SELECT 10 * g FROM generate_series(1, 20000) g; CREATE INDEX t_k ON t (k)');
my @level1 = blocks_on_level('failing_k', 1);
cold($node);
sub split_leaves { my ($table, $key) = @_; return "SET learnedbtree.retrain_visits = 1; INSERT INTO $table SELECT $key FROM generate_series(1, 3000) g;"; }
sub is_trained_anew
{
	my ($database, $index, $before, $what) = @_;
	my $began = time;
	my $after = $before;
	while ($after eq $before && time - $began < $patience)
	{
		sleep(0.2);
		$after = $node->safe_psql($database, "SELECT trained_at FROM learnedbtree_model('$index')");
	}
	isnt($after, $before, sprintf('%s (%.1f s)', $what, time - $began));
	return;
}
my $guest = $node->background_psql('closed');
my $asked = split_leaves('t', 'g');
$guest->query_safe("SELECT learnedbtree_train('t_k')");
my $trained_there = $guest->query_safe("SELECT trained_at FROM learnedbtree_model('t_k')");
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS off');
$log = log_size($node);
$guest->query_safe($asked);
ok($node->wait_for_log(qr/FATAL: .*"closed" is not currently accepting connections/, $log), 'a worker is refused');
$node->safe_psql('postgres', read_rule('failing_k', $level1[-3], $level1[-3], $EIO));
outcome($node, lookup('failing'));
cmp_ok(hits(off($node)), '>', 0, 'a training has failed');
$node->safe_psql('postgres', 'SELECT learnedbtree_train($$recent_k$$)');
my $trained = $node->safe_psql('postgres', 'SELECT trained_at FROM learnedbtree_model($$recent_k$$)');
my $workers = q{FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker'};
outcome($node, lookup('another'));
$node->safe_psql('postgres', split_leaves('another', '10000 + g, $$x$$') . "DO \$\$ BEGIN FOR i IN 1 .. 500 LOOP "
	  . "EXIT WHEN EXISTS (SELECT $workers); PERFORM pg_stat_clear_snapshot(), pg_sleep(0.02); END LOOP; END \$\$; SELECT failat_clock(-$day)");
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT $workers)"), 'set back while a worker is there: it ends');
comes_by_itself($node, 'failing', 'set back after a failed training');
$node->safe_psql('postgres', split_leaves('recent', '10000 + g, $$x$$'));
is_trained_anew('postgres', 'recent_k', $trained, 'set back after a training');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS on');
$guest->query_safe($asked);
is_trained_anew('closed', 't_k', $trained_there, 'set back while a worker is expected');
$guest->quit;
wait_until($node, "SELECT NOT EXISTS (SELECT $workers)");
$node->safe_psql('postgres', 'SELECT failat_clock(0)');

# ---- leaves that are read ahead ----

my @leaves = blocks_on_level('scan_k', 0);
my $list = sub { my ($from, $step, $count) = @_; return join(',', map { $from + $step * $_ } 0 .. $count - 1); };

# Needs the leaves of $need keys from $from on, one leaf a key; what it says.
my %shapes = (
	'a range' => sub { my ($from, $need) = @_;
		return ("SELECT k FROM scan WHERE k >= $from ORDER BY k LIMIT $need", join("\n", $from .. $from + $need - 1), sub { $from + $_[0] }); },
	'a range backward' => sub { my ($from, $need) = @_;
		return ("SELECT k FROM scan WHERE k <= $from ORDER BY k DESC LIMIT $need", join("\n", map { $from - $_ } 0 .. $need - 1), sub { $from - $_[0] }); },
	'a cursor' => sub { my ($from, $need) = @_;
		return ("BEGIN; DECLARE c CURSOR FOR SELECT k FROM scan WHERE k >= $from ORDER BY k; FETCH $need FROM c; CLOSE c; COMMIT",
			join("\n", $from .. $from + $need - 1), sub { $from + $_[0] }); },
	'a list' => sub { my ($from, $need) = @_;
		return ("SELECT k FROM scan WHERE k = ANY ('{" . $list->($from, 3, 100) . "}') ORDER BY k LIMIT $need",
			join("\n", map { $from + 3 * $_ } 0 .. $need - 1), sub { $from + 3 * $_[0] }); });

sub read_ahead
{
	my ($what) = @_;
	my ($key, $hits) = (1000, 0);
	my $offset = log_size($node);
	cold($node);
	# No leaf is in shared buffers, but level 1 is.
	$node->safe_psql('postgres', "SELECT learnedbtree_train('scan_k')");
	foreach my $shape (sort keys %shapes)
	{
		my @wrong;
		foreach my $distance (1, 2, 4, 8)
		{
			$key += 200;
			my ($sql, $answer, $nth) = $shapes{$shape}->($key, 30);
			my $block = $leaves[ $nth->(29 + $distance) - 1 ];
			$node->safe_psql('postgres', read_rule('scan_k', $block, $block, $EIO));
			my $got = outcome($node, "$sql;");
			$hits += hits(off($node));
			push @wrong, "$distance leaves beyond the end: $got" if $got ne $answer;
		}
		is(join("\n", @wrong), '', "$what, $shape: a leaf that is not needed cannot be read");
	}
	is($hits, 0, 'nor is it tried: leaves that are read ahead are only asked for');
	foreach my $shape (sort keys %shapes)
	{
		$key += 200;
		my ($sql, $answer, $nth) = $shapes{$shape}->($key, 30);
		my $block = $leaves[ $nth->(20) - 1 ];
		$node->safe_psql('postgres', read_rule('scan_k', $block, $block, $EIO));
		# One session: the error, something else, and without the fault the answer.
		my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY sqlstate\n$sql;\nROLLBACK;\n" . lookup('scan', 5)
			  . "\n\\o /dev/null\nSELECT failat_off();\n\\o\n$sql;", on_error_stop => 0, timeout => $patience);
		$out =~ s/^(\d+\n)*?1\n(?=$key\n)//;
		my @errors = grep { $_ ne '25P02' } $err =~ /(?:ERROR|FATAL|PANIC):  (\w+)/g;
		is("@errors\n$out", "58030\n$answer", "$what, $shape: a leaf that is needed: an error, and the session goes on");
	}
	is(crashed_since($node, $offset), '', "$what: no crash");
	return;
}

read_ahead('reading ahead');

# ---- a page of level 1 that goes ----

# A training waits after it has copied the first page of level 1.  Meanwhile all leaves below that, and it, are deleted, and
# what they had of the keys goes to the first leaf that is left.  That one splits, left of the end of the page copied.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE deep (b text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO deep SELECT lpad(g::text, 8, '0') || repeat('x', 400) FROM generate_series(1, 2000) g;
CREATE INDEX deep_b ON deep (b) WITH (fillfactor = 10);
CHECKPOINT;
DELETE FROM deep WHERE b < '00000081';
SQL
my @before = blocks_on_level('deep_b', 1);
cmp_ok(scalar @before, '>', 20, 'level 1 has many pages');
my $trainer = $node->background_psql('postgres');
$trainer->query_until(qr/begun/, "SELECT failat_rule('allocation', '', 65536, 66000, 0, false, 1);\n\\echo begun\nSELECT learnedbtree_train('deep_b');\n");
wait_until($node, 'SELECT failat_hits() > 0');
$node->safe_psql('postgres', 'VACUUM deep');
$node->safe_psql('postgres', "SET learnedbtree.btree_indexes = 'none'; INSERT INTO deep SELECT lpad(g::text, 8, '0') || repeat('x', 400) FROM generate_series(1, 40) g; CHECKPOINT");
my @after = blocks_on_level('deep_b', 1);
ok(!grep({ $_ == $before[0] } @after), 'the first one has been deleted');
$node->safe_psql('postgres', 'SELECT failat_off()');
$trainer->query_safe('SELECT 1');
$trainer->quit;
is(model_state($node, 'deep_b'), 'ready', '... while a training went on: nothing is damaged');
is($node->safe_psql('postgres', "SELECT count(*) FROM deep WHERE b < '00000081'"), 40, '... and all rows are found');
$node->stop;
done_testing();
