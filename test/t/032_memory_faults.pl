# Memory that cannot be had, at each call for it, one by one: mappings of shared memory, and private memory (by the shim
# in test/shim).  The rule: after a commit or abort nothing allocates, attaches or maps; a view becomes current last;
# whatever fails in shared memory means no model, a line in the log, and a descent.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../shim";
use Failat;
use IPC::Run;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

build_shim();
my $node = PostgreSQL::Test::Cluster->new('memory_faults');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
restart_after_crash = on
wal_level = minimal
max_wal_senders = 0
max_prepared_transactions = 5
statement_timeout = 120s
log_checkpoints = off
learnedbtree.autotrain = off
enable_bitmapscan = off
CONF
with_shim(sub { $node->start });
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree');
declare_shim($node);

$node->safe_psql('postgres', <<'SQL');
-- One leaf a row.
CREATE FUNCTION fill(name text, rows int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (k int8, pad text COLLATE "C")', name);
	EXECUTE format('INSERT INTO %I SELECT g, repeat($x$x$x$, 400) FROM generate_series(1, %s) g', name, rows);
END $$;
CREATE FUNCTION make(name text, method text DEFAULT 'learnedbtree') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DROP TABLE IF EXISTS %I', name);
	PERFORM fill(name, 360);
	IF method <> '' THEN
		EXECUTE format('CREATE INDEX %I ON %I USING %I (k, pad) WITH (fillfactor = 10)', name || '_k', name, method);
	END IF;
END $$;
CREATE FUNCTION lookups(name text) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE format('SELECT concat_ws($x$ $x$, sum(n), sum(total)) FROM generate_series(2, 350, 25) g, '
		'LATERAL (SELECT count(*) AS n, sum(k) AS total FROM %I WHERE k = g) q', name) INTO answer;
	RETURN answer;
END $$;
-- Is a range the same by an index and by a sequential scan?  A table that has been dropped is whole.
CREATE FUNCTION by_path(name text, seq boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('enable_seqscan', seq::text, true), set_config('enable_indexscan', (NOT seq)::text, true),
		set_config('enable_indexonlyscan', (NOT seq)::text, true);
	EXECUTE format('SELECT concat_ws($x$ $x$, count(*), sum(k)) FROM %I WHERE k BETWEEN -10 AND 300', name) INTO answer;
	RETURN answer;
END $$;
CREATE FUNCTION whole(name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN to_regclass(name) IS NULL OR by_path(name, false) = by_path(name, true);
END $$;
CREATE FUNCTION gone(process int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 40000 LOOP
		PERFORM pg_stat_clear_snapshot();
		IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = process) THEN
			RETURN true;
		END IF;
		PERFORM pg_sleep(0.002);
	END LOOP;
	RETURN false;
END $$;
CREATE FUNCTION compare_odd(a int8, b int8) RETURNS int4 LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
	PERFORM count(*) FROM public.keep WHERE k = 77;
	RETURN btint8cmp(a, b);
END $$;
CREATE OPERATOR CLASS odd_ops FOR TYPE int8 USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 compare_odd(int8, int8);
CREATE TABLE small (k int8);
INSERT INTO small SELECT generate_series(1, 2000);
CREATE INDEX small_k ON small USING learnedbtree (k);
-- The tables that name models have grown when the first segment is full: they lie in it.
CREATE TABLE tiny (k int8);
INSERT INTO tiny VALUES (1);
DO $$ BEGIN FOR i IN 1 .. 64 LOOP
	EXECUTE format('CREATE INDEX tiny_%s ON tiny USING learnedbtree (k)', i);
END LOOP; END $$;
SELECT fill('filler', 18500);
SELECT fill('big', 18500);
CREATE INDEX filler_1 ON filler USING learnedbtree (k, pad) WITH (fillfactor = 10);
CREATE INDEX filler_2 ON filler USING learnedbtree (k, pad) WITH (fillfactor = 10);
CREATE INDEX filler_3 ON filler USING learnedbtree (k, pad) WITH (fillfactor = 10);
DO $$ BEGIN FOR i IN 4 .. 28 LOOP
	EXECUTE format('CREATE INDEX filler_%s ON filler USING learnedbtree (k, pad) WITH (fillfactor = 10) WHERE k < 360', i);
END LOOP; END $$;
CREATE INDEX big_k ON big USING learnedbtree (k, pad) WITH (fillfactor = 10);
SELECT make('keep');
CREATE TABLE odd AS SELECT g::int8 AS k FROM generate_series(1, 350) g;
CREATE INDEX odd_k ON odd (k odd_ops);
SQL
$node->safe_psql('postgres', 'VACUUM ANALYZE small, big, keep');
cmp_ok($node->safe_psql('postgres', "SELECT bytes FROM learnedbtree_model('big_k')"), '>', 260000, 'the big model needs a segment');
cmp_ok($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()'), '>', 260000, '... and is counted');

# After a crash: the models as they were.  A session maps the block that all have and the first segment when it uses
# "small"; fillers take what there is; those of big, keep and m lie in a segment behind it.
sub train_all
{
	$node->safe_psql('postgres', "SELECT format('SELECT learnedbtree_train(%L)', indexrelname) FROM learnedbtree_stat WHERE indexrelname <> 'm_k' ORDER BY indexrelid \\gexec");
	return;
}

# ---- scenarios ----

# prepare: in a session before; touch: before the fault is armed; run: under it ("~": its output, or that it warns of no
# memory, does not matter); check: in a session behind it, besides lookups.
my $touch = 'SELECT count(*) FROM small WHERE k = 5';
my $made = "SELECT make('m')";
my $plain = "SELECT make('m', 'btree')";
my $unindexed = "SELECT make('m', '')";
my $create = 'CREATE INDEX m_k ON m USING learnedbtree (k, pad) WITH (fillfactor = 10)';
my $one = 'SELECT count(*) FROM m WHERE k = 77';
my $all = "SELECT lookups('m')";
my $whole = "SELECT whole('m')";
my @scenarios = (
	{ name => 'first touch', touch => '', run => [ $touch, 'SELECT count(*) FROM big WHERE k = 5', 'SELECT count(*) FROM big WHERE k = 9000',
			"SELECT lookups('keep')" ] },
	{ name => 'lookup', run => [ 'SELECT count(*) FROM big WHERE k = 5', 'SELECT count(*) FROM big WHERE k = 5',
			'SELECT count(*), sum(k) FROM big WHERE k BETWEEN 1000 AND 1100', "SELECT sum(k) FROM big WHERE k = ANY ('{7,7000,17000}')",
			"SELECT lookups('keep')" ] },
	{ name => 'cursor', run => [ 'BEGIN', 'DECLARE c SCROLL CURSOR FOR SELECT k FROM big WHERE k > 300 ORDER BY k', 'FETCH 2 FROM c',
			'SELECT count(*) FROM keep WHERE k = 77', 'MOVE 1000 FROM c', 'FETCH PRIOR FROM c', 'COMMIT' ] },
	{ name => 'insert', prepare => $made, run => [ "INSERT INTO m SELECT g, 'new' FROM generate_series(-40, 40) g", "INSERT INTO m VALUES (3000, 'new')",
			'SELECT count(*) FROM m WHERE k = 3000', "INSERT INTO big VALUES (0, '')", 'DELETE FROM big WHERE k = 0' ], check => [$whole] },
	{ name => 'first use', prepare => $plain, run => [ "SET learnedbtree.btree_indexes = 'all'", 'SET learnedbtree.min_leaves = 0', $all, $all,
			"INSERT INTO m VALUES (3000, 'new')", 'SELECT count(*) FROM m WHERE k = 3000' ], check => [$whole] },
	{ name => 'build', prepare => $unindexed, run => [ $create, $all ], check => [$whole] },
	{ name => 'train', prepare => $made, run => [ "~SELECT learnedbtree_train('m_k')", $all, "~SELECT learnedbtree_train('keep_k')", "SELECT lookups('keep')" ],
		check => [$whole] },
	{ name => 'drop index', prepare => $made, run => [ 'DROP INDEX m_k', $touch ], check => [$whole] },
	{ name => 'drop, untouched', touch => "LOAD 'learnedbtree'", prepare => $made, run => [ 'DROP INDEX m_k', $touch ], check => [$whole] },
	{ name => 'drop table', prepare => $made, run => [ 'BEGIN', $one, 'DROP TABLE m', 'COMMIT', $touch ], check => [$whole] },
	{ name => 'drop, two-phase', prepare => $made, run => [ 'BEGIN', 'DROP TABLE m', "PREPARE TRANSACTION 'm'", "COMMIT PREPARED 'm'" ],
		cleanup => "SELECT 'ROLLBACK PREPARED ' || quote_literal(gid) FROM pg_prepared_xacts \\gexec", check => [$whole] },
	{ name => 'drop rolled back', prepare => $made, run => [ 'BEGIN', 'DROP TABLE m', 'ROLLBACK', $all ], check => [$whole] },
	{ name => 'create rolled back', prepare => $unindexed, run => [ 'BEGIN', $create, $one, 'ROLLBACK', "SELECT lookups('keep')" ], check => [$whole] },
	{ name => 'subtransaction', prepare => $unindexed, run => [ 'BEGIN', 'SAVEPOINT a', $create, $one, 'ROLLBACK TO a', 'RELEASE a',
			'SELECT count(*) FROM keep WHERE k = 77', 'COMMIT', "SELECT lookups('keep')" ], check => [$whole] },
	{ name => 'truncate', prepare => $made, run => [ 'TRUNCATE m', $one, "INSERT INTO m VALUES (77, 'new')", $one ], check => [$whole] },
	{ name => 'truncate rolled back', prepare => $made, run => [ 'BEGIN', 'TRUNCATE m', "INSERT INTO m VALUES (77, 'new')", $one, 'ROLLBACK', $all ], check => [$whole] },
	{ name => 'reindex', prepare => $made, run => [ 'REINDEX INDEX m_k', $all, 'REINDEX INDEX CONCURRENTLY m_k', $all ], check => [$whole] },
	{ name => 'alter', prepare => $made, run => [ 'ALTER INDEX m_k SET (fillfactor = 80)', $one, 'SET learnedbtree.enable = off', $one,
			'RESET learnedbtree.enable', $all ], check => [$whole] },
	{ name => 'names', touch => "LOAD 'learnedbtree'", prepare => $plain, run => [ "SET learnedbtree.btree_indexes = '*_*, !big_*, m_k'", $all, 'BEGIN', 'ALTER INDEX m_k RENAME TO big_m_k', $all, 'ROLLBACK', $all,
			"SET learnedbtree.btree_indexes = 'm_k, !m*'", $all ], check => [$whole] },
	{ name => 'views', run => [ '~SELECT count(*) > 20 FROM learnedbtree_stat', 'SELECT learnedbtree_model_memory()', "~SELECT state FROM learnedbtree_model('keep_k')",
			"~SELECT count(*) FROM learnedbtree_indexes WHERE indexname = 'keep_k'", '~SELECT count(*) FROM learnedbtree_patterns', "SELECT learnedbtree_stat_reset('keep_k')", "SELECT lookups('keep')" ] },
	{ name => 'parallel', before => 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0',
		run => [ '~EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*) FROM big WHERE k BETWEEN 1000 AND 9000',
			'SELECT count(*) FROM big WHERE k BETWEEN 1000 AND 9000' ] },
	# nbtree compares keys under a page's lock, and the function that compares runs a query.
	{ name => 'within a comparison', touch => "LOAD 'learnedbtree'", run => [ 'SELECT count(*) FROM odd WHERE k = 77', 'INSERT INTO odd VALUES (400)',
			'SELECT count(*) FROM odd WHERE k > 300', 'DELETE FROM odd WHERE k = 400' ] },
	{ name => 'exit', run => [ 'SELECT count(*) FROM big WHERE k = 5', 'BEGIN', 'SELECT count(*) FROM keep WHERE k = 6' ] });

# ---- running them ----

# Two sessions: one prepares, one is under the fault from its arming to its end; then the next one checks.  "@" lines tell
# what belongs to which statement, and how that has ended.
sub script_of
{
	my ($s, $arm, $n) = @_;
	my $before = $s->{touch} // $touch;
	my $statement = sub { my ($sql) = @_; $sql =~ s/^~//; return "$sql;\n\\echo \@ :SQLSTATE\n"; };
	return join('', ($s->{prepare} ? "\\o /dev/null\n$s->{prepare};\n\\o\n" : ''),
		"\\c\n\\echo \@start $n\nSET enable_seqscan = off;\n", ($s->{before} ? "$s->{before};\n" : ''),
		"\\o /dev/null\n", ($before ? "$before;\n" : ''), "SELECT pg_backend_pid() AS pid \\gset\n", sprintf($arm, $n), ";\n\\o\n\\echo \@run\n",
		(map { $statement->($_) } @{ $s->{run} }),
		"\\c\nSET client_min_messages = error;\n", ($s->{cleanup} ? "$s->{cleanup}\n" : ''), "\\echo \@check\n",
		(map { $statement->($_) } 'SELECT gone(:pid)', @{ $s->{check} // [] }, 'SELECT count(*) FROM keep WHERE k = 77', 'SELECT count(*) FROM big WHERE k = 5'),
		"SELECT failat_calls() AS calls \\gset\n\\echo \@calls :calls\n\\o /dev/null\nSELECT failat_off();\n\\o\n",
		($n > 0 ? "SELECT :calls < $n AS over \\gset\n\\if :over\n\\q\n\\endif\n" : ''));
}

# Statements' outputs and SQLSTATEs.
sub parse { return map { { out => $_->[0], state => $_->[1] } } map { [/\A(.*?)^\@ (\w+)\n\z/ms] } ($_[0] // '') =~ /(.*?^\@ \w+\n)/gms; }

# The sessions for these values of n, until one was not reached; what is said to stderr.
sub run_sessions
{
	my ($s, $arm, @ns) = @_;
	my ($out, $err) = ('', '');
	my $file = PostgreSQL::Test::Utils::tempdir . '/script';
	append_to_file($file, "\\set VERBOSITY verbose\nSET client_min_messages = error;\n" . join('', map { script_of($s, $arm, $_) } @ns));
	IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-f', $file ], '<', \undef,
		'>', \$out, '2>', \$err, IPC::Run::timeout(3 * patience()));
	my @sessions;
	foreach my $text (split /^\@start /m, "$out\n")
	{
		next unless $text =~ /\A(\d+)\n/;
		my %session = (n => $1);
		($session{calls}) = $text =~ /^\@calls (\d+)/m;
		@{ $session{run} } = parse($text =~ /^\@run\n(.*?)(?:^\@check|\z)/ms);
		@{ $session{check} } = parse($text =~ /^\@check\n(.*?)(?:^\@calls|\z)/ms);
		push @sessions, \%session;
	}
	return \@sessions, $err;
}

# What is wrong with a session, compared with one without fault; '' if nothing.
sub judge
{
	my ($s, $session, $good, $private) = @_;
	my @problems;
	my $failed = 0;
	foreach my $i (0 .. $#{ $s->{run} })
	{
		my ($statement, $got, $wanted) = ($s->{run}[$i], $session->{run}[$i], $good->{run}[$i]);
		my $name = 'statement ' . ($i + 1) . " ($statement)";
		return "n = $session->{n}, $name: the session has ended" unless $got;
		if ($private && ($failed ? $got->{state} =~ /^(53|25|42|3B)/ : $got->{state} eq '53200'))
		{
			$failed = 1;
			next;
		}
		push @problems, "$name: SQLSTATE $got->{state}" if $got->{state} ne $wanted->{state};
		push @problems, "$name: '$got->{out}' instead of '$wanted->{out}'"
		  if $got->{state} eq '00000' && $got->{out} ne $wanted->{out} && $statement !~ /^~/ && !$failed;
	}
	push @problems, 'the session that checks has ended' unless defined $session->{calls};
	foreach my $i (0 .. $#{ $good->{check} })
	{
		my ($got, $wanted) = ($session->{check}[$i], $good->{check}[$i]);
		push @problems, "check $i: " . ($got ? "$got->{state} $got->{out}" : 'none') if !$got || "$got->{state} $got->{out}" ne "$wanted->{state} $wanted->{out}";
	}
	return @problems ? "n = $session->{n}: " . join('; ', @problems) : '';
}

my $calls_mapping = 0;

# All n, one by one; with "repeat" the n-th and all later ones.
sub go_through
{
	my ($s, $what, $repeat, @ns) = @_;
	my $private = $what eq 'malloc';
	my $name = "$s->{name}: $what" . ($repeat eq 'true' ? ', from the n-th call on' : '');
	my ($offset, $arm) = (log_size($node), "SELECT failat_$what(%d, $repeat)");
	my ($good, $said) = run_sessions($s, $arm, 0);
	my ($sessions, $err) = run_sessions($s, $arm, @ns);
	my @problems = grep { $_ } map { judge($s, $_, $good->[0], $private) } @$sessions;
	my $allowed = $private ? qr/ERROR:  (53200|25P02|42\w+|3B001): |WARNING:  .*out of memory/ :
	  $s->{name} eq 'train' ? qr/WARNING:  53\w+: / : qr/^$/;
	push @problems, grep { /(ERROR|FATAL|WARNING):  |server closed/ && !/$allowed/ } split(/\n/, $said . $err);
	# A session that has ended may have crashed: the postmaster has to see that first.
	for (1 .. 20)
	{
		last if crashed_since($node, $offset) || !grep { /has ended/ } @problems;
		usleep(100_000);
	}
	my $crash = crashed_since($node, $offset);
	push @problems, $crash if $crash;
	@problems = (@problems[ 0 .. 7 ], '...') if @problems > 8;
	ok(!@problems, "$name: " . (@$sessions - 1) . ' calls') or diag(join("\n", @problems));
	$calls_mapping += $good->[0]{calls} // 0 unless $private;
	cmp_ok($sessions->[-1]{calls} // 'inf', '<', $ns[-1], "$name: all of them") unless $repeat eq 'true';
	if (@problems)
	{
		# for the next one, all is to be as it was; after a crash shared memory is new, too
		if ($crash) { wait_until($node, 'SELECT true'); }
		else { with_shim(sub { $node->restart }); }
		train_all();
	}
	return;
}

# Every call, but for private memory, where not asked for: every sixth one behind the 25th.
my @mapping = 1 .. 60;
my $step = $ENV{LBT_FAULT_STEP} || 6;    # behind the first 25 calls; 1: each
my @malloc = grep { $_ <= 25 || $_ % $step == 0 } 1 .. 300;

# Sessions that have nothing of ours in shared memory yet have nowhere to agree: each says it for itself.
my (@lines, @all_lines);
my $begun = time;
foreach my $s (@scenarios)
{
	my $offset = log_size($node);
	go_through($s, 'mapping', 'false', @mapping);
	go_through($s, 'mapping', 'true', @mapping);
	my @said = grep { /(LOG|WARNING|ERROR|FATAL):  / && !/has no model: its memory|STATEMENT/ } split(/\n/, since_log($node, $offset));
	push @all_lines, @said;
	push @lines, @said unless defined $s->{touch};
}
cmp_ok($calls_mapping, '>', 30, 'there was something to fail');
cmp_ok(scalar @all_lines, '>', 0, 'the log says that there was no memory');
cmp_ok(scalar @lines, '<=', 2 + (time - $begun) / 60, 'once a minute, but for sessions that could not attach') or diag(join("\n", @lines > 20 ? @lines[ 0 .. 19 ] : @lines));
foreach my $s (@scenarios)
{
	go_through($s, 'malloc', 'false', @malloc);
	go_through($s, 'malloc', 'true', 1, 3, 9, 27, 81);
}

# With memory again, new sessions use the models, and nothing is wrong with the indexes.
my $verified = stat_of($node, 'big_k', 'verified');
$node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM big WHERE k = 5');
is(stat_of($node, 'big_k', "verified > $verified"), 't', 'with memory again models are used');
foreach my $index (qw(small_k big_k keep_k))
{
	is($node->psql('postgres', "CREATE EXTENSION IF NOT EXISTS amcheck; " . check_sql($index)), 0, "$index is in order");
}

# ---- the first use in a server's life ----

# From 17 on shared memory is found by its name; a failure in the middle must not become an error of all later statements.
SKIP:
{
	skip 'shared memory comes from preloading', 1 if needs_preload($node);
	my @problems;
	foreach my $repeat ('false', 'true')
	{
		foreach my $n (1 .. 30)
		{
			with_shim(sub { $node->restart });
			my $lookups = "SELECT count(*) FROM small WHERE k = 5;\nSELECT count(*) FROM keep WHERE k = 77;\n";
			my $said = '';
			foreach my $arm ("SELECT failat_mapping($n, $repeat);\n", '', '')
			{
				wait_until($node, 'SELECT true');	# it may just have crashed
				my ($rc, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off;\n$arm$lookups$lookups", on_error_stop => 0);
				$out =~ s/^\n//;
				push @problems, "n = $n, $repeat, " . ($arm ? 'under' : 'after') . " the fault: $out $err" if $rc != 0 || $out ne "1\n1\n1\n1" || $err ne '';
			}
			wait_until($node, 'SELECT true');
			last if $node->safe_psql('postgres', 'SELECT failat_calls()') < $n;
			die 'too many calls' if $n == 30;
		}
	}
	is(join("\n", @problems), '', 'a failure of the first use of shared memory');
}

# ---- too little address space ----

SKIP:
{
	skip 'there is no prlimit', 1 if system('prlimit --version >/dev/null 2>&1') != 0;
	my $log = log_size($node);
	foreach my $run (
		[ 'SELECT count(*) FROM big WHERE k = 5', 'SELECT count(*) FROM big WHERE k = 5' ],
		[ 'DROP INDEX keep_k', 'SELECT count(*) FROM big WHERE k = 5' ])
	{
		wait_until($node, 'SELECT true');
		with_shim(sub { $node->restart });
		train_all();
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		# Private memory for all that will be done is there, that for the event triggers of a drop, too.
		$session->query_safe('SET enable_seqscan = off; SELECT count(*) FROM small WHERE k = 5; CREATE TABLE dropped (k int8); '
			  . 'CREATE INDEX dropped_k ON dropped (k); DROP INDEX dropped_k; DROP TABLE dropped');
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		my ($kilobytes) = slurp_file("/proc/$pid/status") =~ /^VmSize:\s+(\d+) kB/m;
		is(system('prlimit', "--pid=$pid", '--as=' . ($kilobytes * 1024 + 700000)), 0, 'address space is limited');
		is(join(' ', map { eval { $session->query($_) } // 'died' } @$run), $run->[0] =~ /DROP/ ? ' 1' : '1 1', "$run->[0]: no matter");
		eval { $session->quit };
	}
	$node->stop;		# by then the postmaster has seen a crash
	is(crashed_since($node, $log), '', 'no crash');
}
$node->stop;
done_testing();
