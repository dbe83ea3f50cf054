# Faults of the system a server runs on: processes killed, disks and shared memory full, connections at their limit, more
# indexes than there is memory for their models, in use or not, and long load, with the memory of every process over time.  (No worker
# slots: 013_worker; crashes of whole servers and standbys: 011_crash; every single failure of memory: 032_memory_faults.)
#
# LBT_FAULTS chooses some of these, LBT_FAULT_SECONDS makes load longer; test/faults runs long ones by hand, with a tablespace
# and a /dev/shm of their own that are really full (LBT_FULL_TABLESPACE, LBT_SMALL_SHM).
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../shim";
use Failat;
use LearnedBtree;
use List::Util qw(max min sum);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use Torture;

my $seed = $ENV{LBT_SEED} || 20250301;
my $seconds = $ENV{LBT_FAULT_SECONDS};
my $long = defined $seconds;
srand($seed);

my $ENOSPC = 28;
my %faults = (
	kill => \&processes_killed,
	disk => \&disk_full,
	shm => \&shared_memory_full,
	connections => \&connections_at_limit,
	many => \&many_indexes,
	idle => \&idle_models,
	memory => \&memory_over_time);
my @wanted = $ENV{LBT_FAULTS} ? split(/[ ,]+/, $ENV{LBT_FAULTS}) : sort keys %faults;
foreach my $name (@wanted)
{
	die "there is no fault $name: " . join(' ', sort keys %faults) unless $faults{$name};
}

build_shim();
foreach my $name (@wanted)
{
	my $began = time;
	subtest $name => $faults{$name};
	figure('%s: %.0f s', $name, time - $began);
}
done_testing();

# ---- what they share ----

# What test/faults shows.
sub figure { my ($format, @values) = @_; note(sprintf("figure: $format", @values)); return; }

# A started server with the shim, and a table maker: one leaf a row, by our access method, in a tablespace or none.
sub faulty_node
{
	my ($name, $conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	configure_node($node);
	$node->append_conf('postgresql.conf', "restart_after_crash = on\nstatement_timeout = 120s\nenable_bitmapscan = off\n" . ($conf // ''));
	with_shim(sub { $node->start });
	$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
	declare_shim($node);
	$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION make(name text, rows int, space text DEFAULT 'pg_default') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (k int8, pad text COLLATE "C")', name);
	EXECUTE format('INSERT INTO %I SELECT g, repeat($x$x$x$, 400) FROM generate_series(1, %s) g', name, rows);
	EXECUTE format('CREATE INDEX %I ON %I USING learnedbtree (k, pad) WITH (fillfactor = 10) TABLESPACE %I', name || '_k', name, space);
END $$;
-- All keys one by one and together, by the index and by a sequential scan.
CREATE FUNCTION answers(name text, path text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	one text;
	together text;
BEGIN
	PERFORM set_config('enable_seqscan', (path = 'seq')::text, true), set_config('enable_indexscan', (path <> 'seq')::text, true),
		set_config('enable_indexonlyscan', (path <> 'seq')::text, true);
	EXECUTE format('SELECT concat_ws($x$ $x$, count(*), sum(k)) FROM %I', name) || ' WHERE k > -1000000' INTO together;
	EXECUTE format('SELECT concat_ws($x$ $x$, sum(n), sum(total)) FROM generate_series(1, 500, 10) g, '
		'LATERAL (SELECT count(*) AS n, sum(k) AS total FROM %I WHERE k = g) q', name) INTO one;
	RETURN together || ', ' || one;
END $$;
CREATE FUNCTION right_answers(name text) RETURNS boolean LANGUAGE sql AS $$ SELECT answers(name, 'index') = answers(name, 'seq') $$;
SQL
	return $node;
}

sub rule
{
	my ($node, $kind, $part, $first) = @_;
	is($node->safe_psql('postgres', sprintf("SELECT failat_rule('%s', '%s', %d, 1000000000, %d)", $kind, $part, $first // 0, $ENOSPC)), 't', "$part is full");
	return;
}

sub off { return $_[0]->safe_psql('postgres', 'SELECT failat_hits(); SELECT failat_off()') + 0; }

# A statement, and the SQLSTATE of its error ('' if none).
sub state_of
{
	my ($node, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSET enable_seqscan = off;\n$sql", timeout => 120);
	sleep(0.5) if $err =~ /server closed the connection/;    # for the postmaster to see a crash
	return $err =~ /(?:ERROR|FATAL|PANIC):  (\w+)/ ? $1 : $rc == 0 ? '' : $err;
}

sub in_order
{
	my ($node, $what, @tables) = @_;
	foreach my $table (@tables)
	{
		is($node->safe_psql('postgres', "SELECT right_answers('$table')"), 't', "$what: answers from $table are right");
		is(state_of($node, check_sql("${table}_k")), '', "$what: amcheck is content with it");
	}
	return;
}

sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[ $#sorted / 2 ]; }

sub torture_node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	torture_conf($node);
	$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
	$node->start;
	torture_settings($node);
	make_tables($node);
	return $node;
}

# ---- processes killed ----

# A pid of this kind of process, while there is load; undef when none comes.
sub pid_of
{
	my ($node, $kind) = @_;
	my $condition = $kind eq 'backend' ? "backend_type = 'client backend' AND pid <> pg_backend_pid()" : "backend_type = 'learnedbtree $kind'";
	for (my $end = time + 60; time < $end;)
	{
		my ($pid) = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $condition ORDER BY random() LIMIT 1");
		return $pid if $pid;
		sleep(0.05);
	}
	return;
}

sub processes_killed
{
	my $node = torture_node('kill');
	my $began = time;
	my ($round, %killed) = (0);
	while ($round < 3 || ($long && time - $began < $seconds))
	{
		my $kind = qw(worker backend) [ $round++ % 2 ];
		my $offset = log_size($node);
		my $load = start_load($node, clients => 6, seconds => 60, seed => $seed + $round,
			scripts => [ torture_scripts($node, compare => 25, claim => 3, claim_next => 2) ]);
		my $before = $node->safe_psql('postgres', 'SELECT sum(n) FROM done');
		wait_until($node, "SELECT sum(n) > $before + 20 FROM done");
		sleep(rand($long ? 2 : 0.5));
		my $pid;
		foreach (1 .. 20)
		{
			$pid = pid_of($node, $kind);
			last if $pid && kill('KILL', $pid);    # it may have ended by itself
			$pid = undef;
		}
		ok($pid, "round $round: a $kind is killed") or last;
		$killed{$kind}++;
		$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
		wait_until($node, 'SELECT true');
		end_load($load);
		is(join(' ', $load->{err} =~ /^(.*ERROR: .*)$/mg), '', "round $round: no errors and no wrong answers");
		is(check_indexes($node), '', "round $round: amcheck finds nothing wrong");
		is(faults($node, $seed + $round), '', "round $round: nothing is lost or there twice, by any index");
		ok(memory_balanced($node), "round $round: shared memory holds one model an index");
		is(unexpected_in_log($node, $offset, qr/could not serialize|duplicate key value|deadlock detected|terminating connection|the database system is|terminated by signal 9|terminating (?:any other|background worker|autovacuum)/),
			'', "round $round: nothing unexpected in the log");
	}
	figure('killed by SIGKILL: %s', join(', ', map { "$killed{$_} times a $_" } sort keys %killed));
	$node->stop;
	return;
}

# ---- disk full ----

sub disk_full
{
	my $node = faulty_node('disk', "wal_level = minimal\nmax_wal_senders = 0\n");
	my $real = $ENV{LBT_FULL_TABLESPACE};
	my $folder = $real // PostgreSQL::Test::Utils::tempdir;
	$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$folder'");
	my $offset = log_size($node);
	$node->safe_psql('postgres', "SELECT make('d', 800, 'small'); SELECT make('bystander', 500); CHECKPOINT");
	# Rules go by real names, behind the link in pg_tblspc.
	my $file = $node->safe_psql('postgres', "SELECT regexp_replace(pg_relation_filepath('d_k'), '^pg_tblspc/[0-9]+/', '')");
	my $blocks = $node->safe_psql('postgres', "SELECT pg_relation_size('d_k') / 8192");
	my $fill = sub {
		return rule($node, 'write', $file, $blocks) unless $real;
		is(system("dd if=/dev/zero of='$folder/fill' bs=64k >/dev/null 2>&1; dd if=/dev/zero of='$folder/fill2' bs=512 >/dev/null 2>&1") >> 8, 1, 'the tablespace is full');
	};
	my $free = sub {
		return cmp_ok(off($node), '>', 0, 'there were writes') unless $real;
		unlink("$folder/fill", "$folder/fill2");
	};

	# Inserts that split leaves: the file cannot grow.
	$fill->();
	is(state_of($node, "INSERT INTO d SELECT g % 800, lpad(g::text, 400, 'y') FROM generate_series(1, 20000) g"), '53100', 'inserts: disk full');
	in_order($node, 'inserts', 'd', 'bystander');
	is(state_of($node, "SELECT learnedbtree_train('d_k')"), '', 'training needs no disk');
	is(model_state($node, 'd_k'), 'ready', 'and makes a model');
	$free->();
	is(state_of($node, "INSERT INTO d SELECT g, 'z' FROM generate_series(1, 500) g"), '', 'space again: inserts go on');
	in_order($node, 'space again', 'd');

	# A build, and what it leaves.
	my $memory = $node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()');
	if ($real) { $fill->(); }
	else { rule($node, 'write', "$folder/", 0); }
	is(state_of($node, 'CREATE INDEX d_k2 ON d USING learnedbtree (k) WITH (fillfactor = 10) TABLESPACE small'), '53100', 'a build: disk full');
	is(state_of($node, 'REINDEX INDEX d_k'), '53100', 'a rebuild: disk full');
	$free->();
	is($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()'), $memory, 'nothing is left of them');
	in_order($node, 'builds', 'd');

	# No page can be written: that with the saved model is not, either; it is in shared buffers, and written later.
	$node->safe_psql('postgres', "CHECKPOINT; INSERT INTO d SELECT g, lpad(g::text, 400, 'w') FROM generate_series(900, 1000) g");
	rule($node, 'write', $file, 0);
	is(state_of($node, "SELECT learnedbtree_train('d_k')"), '', 'training that saves its model');
	isnt(state_of($node, 'CHECKPOINT'), '', 'which a checkpoint cannot write');
	is($node->safe_psql('postgres', "SELECT right_answers('d')"), 't', 'answers are right');
	cmp_ok(off($node), '>', 0, 'there were writes');
	is(state_of($node, 'CHECKPOINT'), '', 'the next one can');

	$node->safe_psql('postgres', 'SELECT failat_off()');
	with_shim(sub { $node->restart });
	in_order($node, 'after a restart', 'd', 'bystander');
	is(crashed_since($node, $offset), '', 'no crash');
	$node->stop;
	return;
}

# ---- shared memory full ----

sub shared_memory_full
{
	my $real = $ENV{LBT_SMALL_SHM};
	my $node = faulty_node('shm', "wal_level = minimal\nmax_wal_senders = 0\nmax_parallel_workers_per_gather = 0\nlearnedbtree.autotrain = off\n");
	my $offset = log_size($node);
	my $ready = "SELECT count(*) FROM learnedbtree_stat WHERE (learnedbtree_model(indexrelid)).state = 'ready'";
	$node->safe_psql('postgres', "SELECT make('first', 700)");

	# Each model takes some 110 kB; a segment has room for a few.
	my $n = 0;
	rule($node, 'write', '/dev/shm/', 0) unless $real;
	foreach my $i (1 .. ($real ? 60 : 14))
	{
		is(state_of($node, "SELECT make('t$i', 6500); SELECT count(*) FROM t$i WHERE k = 5; SELECT count(*) FROM t$i WHERE k = 5000"), '', "index $i: no error")
		  or last;
		$n = $i;
		last if $real && $node->safe_psql('postgres', $ready) < $i;    # full
	}
	if (crashed_since($node, $offset))
	{
		is(crashed_since($node, $offset), '', 'no crash');
		return;    # without shared memory it cannot begin anew, either
	}
	cmp_ok($node->safe_psql('postgres', $ready), '<', $n + 1, 'there was no room for some models');
	is($node->safe_psql('postgres', "SELECT bool_and(right_answers('t' || g)) FROM generate_series(1, $n) g"), 't', 'answers are right');
	is(state_of($node, "INSERT INTO t$n SELECT g, 'new' FROM generate_series(1, 1000) g; TRUNCATE t1; INSERT INTO t1 VALUES (1, ''); REINDEX INDEX t2_k; "
			  . 'DROP TABLE t3; BEGIN; DROP TABLE t4; ROLLBACK; SELECT count(*) FROM t4 WHERE k = 5'), '', 'changes, too');
	is($node->safe_psql('postgres', "SELECT right_answers('t$n') AND right_answers('t1') AND right_answers('t2')"), 't', 'and are right');
	my @lines = since_log($node, $offset) =~ /^.*(?:shared memory|No space left).*$/mg;
	figure('%d indexes, %d lines in the log%s', $n, scalar @lines, @lines ? ", the first: $lines[0]" : '');
	if ($real)
	{
		$node->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 5 .. ' . ($n - 1) . ' LOOP EXECUTE $x$DROP TABLE IF EXISTS t$x$ || i; END LOOP; END $$');
	}
	else
	{
		cmp_ok(off($node), '>', 0, 'shared memory was asked for');
	}
	is(state_of($node, "SELECT learnedbtree_train('t${n}_k')"), '', 'space again: a training');
	is(model_state($node, "t${n}_k"), 'ready', 'and the model is there');

	# The first use in a server's life finds no shared memory.
	if (!$real)
	{
		with_shim(sub { $node->restart });
		rule($node, 'write', '/dev/shm/', 0);
		is(state_of($node, 'SELECT count(*) FROM first WHERE k = 5; SELECT count(*) FROM first WHERE k = 6; DROP TABLE t2'), '', 'from the start: no error');
		is($node->safe_psql('postgres', "SELECT right_answers('first')"), 't', 'from the start: answers are right');
		off($node);
		is(state_of($node, 'SELECT count(*) FROM first WHERE k = 5'), '', 'space again: no error');
		is(model_state($node, 'first_k'), 'ready', 'space again: the model is there');
	}
	is(crashed_since($node, $offset), '', 'no crash');
	$node->stop;
	return;
}

# ---- connections at their limit ----

sub connections_at_limit
{
	my $node = faulty_node('connections', "max_connections = 6\nlearnedbtree.naptime = 100ms\nlearnedbtree.retrain_visits = 4\nmax_wal_senders = 0\n");
	my $offset = log_size($node);
	$node->safe_psql('postgres', "SELECT make('c', 600)");
	my $before = $node->safe_psql('postgres', "SELECT trained_at FROM learnedbtree_model('c_k')");
	my @sessions;
	# (one that has just ended may be in the way of the last one)
	for (my $end = time + patience(); time < $end && @sessions < 20;)
	{
		my $session = eval { $node->background_psql('postgres') };
		if ($session) { push @sessions, $session; }
		elsif (@sessions >= 6) { last; }
		else { sleep(0.1); }
	}
	is(scalar @sessions, 6, 'sessions: as many as there may be');
	isnt($node->psql('postgres', 'SELECT 1'), 0, 'one more is refused');
	$_->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off') foreach @sessions;
	foreach my $i (0 .. $#sessions)
	{
		$sessions[$i]->query_safe("INSERT INTO c SELECT (g * 37 + $i * 11) % 600, lpad(g::text, 400, 'y') FROM generate_series(1, 60) g");
		is($sessions[$i]->query_safe('SELECT count(*) FROM c WHERE k = 600'), '1', "session $i: an answer");
	}
	my $trained = '';
	for (my $end = time + patience(); time < $end;)
	{
		$sessions[0]->query_safe("INSERT INTO c SELECT 300 + g % 3, lpad(random()::text, 400, 'z') FROM generate_series(1, 200) g");
		$trained = $sessions[1]->query_safe("SELECT trained_at > '$before' AND source = 'training' FROM learnedbtree_model('c_k')");
		last if $trained eq 't';
		sleep(0.1);
	}
	is($trained, 't', 'the worker trains: it needs no connection');
	is($sessions[2]->query_safe("SELECT right_answers('c')"), 't', 'answers are right');
	$_->quit foreach @sessions;
	wait_until($node, 'SELECT true');
	in_order($node, 'connections again', 'c');
	is(unexpected_in_log($node, $offset, qr/too many clients|remaining connection slots/), '', 'nothing unexpected in the log');
	is(crashed_since($node, $offset), '', 'no crash');
	$node->stop;
	return;
}

# ---- more indexes than there is memory for ----

# In seconds: a process's time on processors, so that others' does not count, or the clock's where the kernel does not tell.
sub time_of
{
	my ($pid) = @_;
	return (eval { slurp_file("/proc/$pid/schedstat") } // '') =~ /^([1-9]\d*) / ? $1 / 1e9 : time;
}

sub many_indexes
{
	my $indexes = $long ? 2000 : 200;
	my $rounds = $long ? 25 : 20;
	my $lookups = $indexes * $rounds;
	my $node = faulty_node('many', "max_locks_per_transaction = 1000\nlearnedbtree.autotrain = off\nlearnedbtree.min_leaves = 0\nshared_buffers = 256MB\n");
	my $offset = log_size($node);

	# A lookup in each index after the other, each a statement of its own with a plan that is kept.
	$node->safe_psql('postgres', <<"SQL");
DO \$\$ BEGIN FOR i IN 1 .. $indexes LOOP
	EXECUTE format('CREATE TABLE t%s AS SELECT g AS k FROM generate_series(1::int8, 400) g', i);
	EXECUTE format('CREATE INDEX t%s_k ON t%s (k) WITH (fillfactor = 10)', i, i);
	EXECUTE format('CREATE FUNCTION look%s(int8) RETURNS int8 LANGUAGE plpgsql AS \$x\$ BEGIN RETURN (SELECT k FROM t%s WHERE k = \$1); END \$x\$', i, i);
	IF i % 100 = 0 THEN COMMIT; END IF;
END LOOP; END \$\$;
VACUUM ANALYZE;
SQL
	my $calls = join(', ', map { "look$_((g * 7919 + $_) % 400 + 1)" } 1 .. $indexes);
	my $query = "SELECT sum((SELECT sum(k) FROM unnest(ARRAY[$calls]) k)) FROM generate_series(1, $rounds) g";
	my $settings = "LOAD 'learnedbtree'; SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; SET learnedbtree.min_leaves = 0;";
	my $session = $node->background_psql('postgres', timeout => 600);
	my $pid = $session->query_safe("$settings SELECT pg_backend_pid()");

	# What all want, and a tenth of it.
	$session->query_safe("SET learnedbtree.btree_indexes = 'all'");
	my $answer = $session->query_safe($query);
	my $wanted = $session->query_safe('SELECT learnedbtree_model_memory()');
	my $run = sub {
		my ($which) = @_;
		$session->query_safe("SET learnedbtree.btree_indexes = '$which'");
		$session->query_safe('SELECT 1');
		my $began = time_of($pid);
		$session->query_safe($query);
		return 1000 * (time_of($pid) - $began);
	};
	my %times = (fits => [], btree => [], tenth => [], 'btree again' => []);
	my $runs = $long ? 9 : 5;
	foreach (0 .. $runs)
	{
		push @{ $times{btree} }, $run->('none');
		push @{ $times{fits} }, $run->('all');
	}
	my $limit = max(64, int($wanted / 10240));
	$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.max_model_memory = '${limit}kB'");
	with_shim(sub { $session->quit; $node->restart });
	$session = $node->background_psql('postgres', timeout => 600);
	$pid = $session->query_safe("$settings SET learnedbtree.btree_indexes = 'all'; SELECT pg_backend_pid()");
	is($session->query_safe($query), $answer, 'with memory for a tenth of the models: the answer');
	my $states = $session->query_safe("SELECT string_agg(state || ' ' || n, ', ') FROM (SELECT (learnedbtree_model(indexrelid)).state, count(*) AS n FROM learnedbtree_stat GROUP BY 1 ORDER BY 1) q");
	foreach (0 .. $runs)
	{
		push @{ $times{'btree again'} }, $run->('none');
		push @{ $times{tenth} }, $run->('all');
	}
	is($session->query_safe($query), $answer, 'with memory for a tenth of the models: the answer, again');
	cmp_ok($session->query_safe('SELECT learnedbtree_model_memory()'), '<=', $limit * 1024, 'memory stays within its limit');
	shift @$_ foreach values %times;    # to warm up
	my %us = map { ($_ => 1000 * median(@{ $times{$_} }) / $lookups) } keys %times;
	figure('%d indexes, %d kB of models wanted, %s; %d lookups round-robin, medians of %d runs by turns, each lookup:', $indexes, $wanted / 1024, $states, $lookups, $runs);
	figure('all models fit: %.2f us, btree_indexes = none: %.2f us', @us{ 'fits', 'btree' });
	figure('memory for a tenth (%d kB): %.2f us, btree_indexes = none: %.2f us', $limit, @us{ 'tenth', 'btree again' });
	cmp_ok($us{tenth}, '<', 2 * $us{'btree again'}, 'indexes without room for a model cost no more than twice as much as btree');
	$session->quit;
	is(crashed_since($node, $offset), '', 'no crash');
	$node->stop;
	return;
}

# Of these, a model that has not been used for a minute makes room for one that is looked up, and no other does.
sub idle_models
{
	my $indexes = 20;
	my $node = faulty_node('idle', "learnedbtree.autotrain = off\nlearnedbtree.max_model_memory = 64kB\n");
	my $columns = join(', ', map { "c$_ int4" } 1 .. $indexes);
	$node->safe_psql('postgres', "CREATE TABLE many ($columns); INSERT INTO many SELECT " . join(', ', ('g') x $indexes) . ' FROM generate_series(1, 20000) g;'
		  . join('', map { "CREATE INDEX many_$_ ON many USING learnedbtree (c$_) WITH (fillfactor = 10);" } 1 .. $indexes));
	my $session = $node->background_psql('postgres');
	$session->query_safe('SET enable_seqscan = off');
	my $look = sub { $session->query_safe("SELECT c$_ FROM many WHERE c$_ = 777; SELECT learnedbtree_stat_get('many_$_'::regclass)") foreach @_; };
	my $ready = sub {
		return $node->safe_psql('postgres', "SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(1, $indexes) i "
			  . "WHERE (learnedbtree_model('many_' || i)).state = 'ready'");
	};
	# Which ones they are is left open: all that a session has not reported yet is used when it reports.
	my @fit = split / /, $ready->();
	my %fit = map { $_ => 1 } @fit;
	my @evicted = grep { !$fit{$_} } 1 .. $indexes;
	my $used = $fit[-1];
	cmp_ok(scalar(@fit), '>', 1, 'some models are there');
	cmp_ok(scalar(@evicted), '>=', scalar(@fit), 'more are not');
	$look->(@evicted);
	is($ready->(), "@fit", 'none is idle, and none makes room');
	$node->safe_psql('postgres', 'SELECT failat_clock(61)');
	$look->($used);
	$look->(@evicted);
	my $now = join(' ', sort { $a <=> $b } @evicted[ 0 .. $#fit - 1 ], $used);
	is($ready->(), $now, 'after a minute all but one that is used make room');
	sleep(1.1);
	$look->(@evicted);
	is($ready->(), $now, 'once');
	$session->quit;
	$node->stop;
	return;
}

# ---- memory over time ----

# Private memory of each of a server's processes, in kB, and what it is.
sub private_memory
{
	my ($node, $postmaster) = @_;
	my %memory;
	foreach my $file (glob '/proc/[0-9]*/smaps_rollup')
	{
		my ($pid) = $file =~ /(\d+)/;
		my $status = eval { slurp_file("/proc/$pid/status") } // next;
		next unless $status =~ /^PPid:\s+$postmaster$/m || $pid == $postmaster;
		my $rollup = eval { slurp_file($file) } // next;
		my ($anonymous) = $rollup =~ /^Pss_Anon:\s+(\d+)/m;
		($anonymous) = $rollup =~ /^Private_Dirty:\s+(\d+)/m unless defined $anonymous;
		my $title = eval { slurp_file("/proc/$pid/cmdline") } // '';
		$title =~ s/\0.*//s;
		$title =~ s/^postgres: (?:\S+: )?//;
		$title =~ s/(\[local\]).*/$1/;
		$memory{$pid} = { kilobytes => $anonymous, title => $pid == $postmaster ? 'postmaster' : $title } if defined $anonymous;
	}
	return \%memory;
}

sub memory_over_time
{
	plan skip_all => 'this kernel does not sum up the memory of processes' unless -e '/proc/self/smaps_rollup';
	my $node = torture_node('memory');
	my $duration = $seconds // 6;
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	# (a little longer, for the last samples to be of all)
	my $load = start_load($node, clients => 8, seconds => $duration + 4, seed => $seed, scripts => [ torture_scripts($node) ]);
	my $rebuild = start_load($node, clients => 1, seconds => $duration + 4, seed => $seed,
		scripts => [ map { [ $_, 1, "\\sleep " . ($long ? 100 : 500) . " ms\nREINDEX INDEX CONCURRENTLY $_;" ] } learned_indexes() ]);
	wait_until($node, "SELECT count(*) >= 9 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
	my $began = time;
	my %samples;    # pid: [ time, kB ]
	my %title;
	my $step = max(0.5, $duration / 400);
	while (time - $began < $duration)
	{
		my $memory = private_memory($node, $postmaster);
		foreach my $pid (keys %$memory)
		{
			push @{ $samples{$pid} }, [ time - $began, $memory->{$pid}{kilobytes} ];
			$title{$pid} //= $memory->{$pid}{title};
		}
		sleep($step);
	}
	ok(end_load($_), 'no errors and no wrong answers') or diag(substr($_->{err}, 0, 2000)) foreach $load, $rebuild;
	my ($rebuilt) = $rebuild->{out} =~ /actually processed: (\d+)/;
	cmp_ok($rebuilt // 0, '>', 0, 'indexes are rebuilt');
	figure('indexes rebuilt: %d', $rebuilt // 0);

	# Of those that were there all the time, the most in the second third against the most in the last.
	my @grown;
	my $lasting = 0;
	foreach my $pid (sort { $a <=> $b } keys %samples)
	{
		my @all = @{ $samples{$pid} };
		next if $all[0][0] > $duration * 0.2 || $all[-1][0] < $duration * 0.9;
		$lasting++;
		my $middle = max(map { $_->[1] } grep { $_->[0] > $duration / 3 && $_->[0] <= $duration * 2 / 3 } @all);
		my $last = max(map { $_->[1] } grep { $_->[0] > $duration * 2 / 3 } @all);
		figure('%-40s first %6d kB, second third at most %6d kB, last third at most %6d kB', "$title{$pid} ($pid)", $all[0][1], $middle, $last);
		push @grown, "$title{$pid}: $middle kB, then $last kB" if $last > $middle * 1.25 + 2048;
	}
	cmp_ok($lasting, '>=', 9, 'processes that were there all the time');
	is(join('; ', @grown), '', "$duration s of load: no process grows");
	my @short = grep { $title{$_} =~ /learnedbtree/ } keys %samples;
	figure('workers: %d, at most %d kB', scalar @short, max(map { $_->[1] } map { @{ $samples{$_} } } @short)) if @short;
	is(faults($node, $seed), '', 'nothing is lost or there twice, by any index');
	ok(memory_balanced($node), 'shared memory holds one model an index');
	$node->stop;
	return;
}
