# Other extensions beside learnedbtree, all loaded together, after it and before it.  Each works on tables whose primary keys
# are served, and on an index of ours, as it does without, and what it leaves behind is served again.  Those that are not
# installed are skipped by name.  (HypoPG is there for company, 025_hypopg is about it.)
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Time::HiRes qw(usleep);

# Library and extension; a library that works without being preloaded has none here.
my @others = (
	[ 'pg_stat_statements', 'pg_stat_statements' ],
	[ 'auto_explain', undef ],
	[ 'hypopg', 'hypopg' ],
	[ 'pg_cron', 'pg_cron' ],
	[ 'pg_hint_plan', 'pg_hint_plan' ],
	[ 'pg_partman_bgw', 'pg_partman' ],
	[ undef, 'pg_repack' ],
	[ 'pglogical', 'pglogical' ],
	[ 'pg_squeeze', 'pg_squeeze' ]);
my $user = (getpwuid($<))[0];
my %there;

# Is this extension there?  Skips the tests of the block around it if not.
sub needs
{
	my ($name) = @_;
	skip "$name is not installed", 1 unless $there{$name};
	return;
}

# A node that loads all of them, with learnedbtree first or last; all indexes of database postgres are served.
sub beside_node
{
	my ($name, $order) = @_;
	my $node = PostgreSQL::Test::Cluster->new("${name}_$order");
	my ($share, $lib) = map { $node->config_data($_) } '--sharedir', '--pkglibdir';
	$there{ $_->[1] // $_->[0] } = $_->[1] ? -e "$share/extension/$_->[1].control" : -e "$lib/$_->[0].so" foreach @others;
	my @libraries = map { $_->[0] // () } grep { $there{ $_->[1] // $_->[0] } } @others;
	@libraries = $order eq 'first' ? ('learnedbtree', @libraries) : (@libraries, 'learnedbtree');
	$node->init(allows_streaming => 'logical');
	configure_node($node);
	$node->append_conf('postgresql.conf', join("\n",
			"shared_preload_libraries = '" . join(',', @libraries) . "'",
			'learnedbtree.min_leaves = 0',
			'learnedbtree.retrain_visits = 4',
			'max_worker_processes = 30',
			'track_commit_timestamp = on',
			'compute_query_id = on',
			$there{pg_cron} ? ("cron.database_name = 'postgres'", "cron.host = '" . $node->host . "'") : (),
			$there{pg_partman} ? ("pg_partman_bgw.dbname = 'postgres'", "pg_partman_bgw.role = '$user'", 'pg_partman_bgw.interval = 2') : (),
			''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck; CREATE SCHEMA partman;'
		  . q{ALTER DATABASE postgres SET learnedbtree.btree_indexes = 'all'});
	# Where output plugins have to be allowed.
	if ($node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'}))
	{
		$node->append_conf('postgresql.conf', "output_plugin_libraries = 'pgoutput, pglogical_output, pg_squeeze'\n");
		$node->reload;
	}
	foreach my $extension (map { $_->[1] // () } @others)
	{
		$node->safe_psql('postgres', "CREATE EXTENSION $extension" . ($extension eq 'pg_partman' ? ' SCHEMA partman' : ''))
		  if $there{$extension};
	}
	return $node;
}

# A table with a primary key and another btree index, and an index of ours.  Many of its rows are dead.
my $make_table = <<'SQL';
CREATE TABLE @ (k int8 PRIMARY KEY, v int NOT NULL, w text NOT NULL, x int);
INSERT INTO @ SELECT g * 3, g, 'w' || g, g % 500 FROM generate_series(1, 9000) g;
CREATE INDEX @_v ON @ (v);
CREATE INDEX @_x ON @ USING learnedbtree (x);
DELETE FROM @ WHERE k % 2 = 0;
ANALYZE @;
SQL

# Lookups by each of its indexes, with answers that show whether they are right.
my $lookups = <<'SQL';
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_sort = off;
SELECT count(*), sum(v) FROM generate_series(1, 30000, 7) g, LATERAL (SELECT v FROM @ WHERE k = g OFFSET 0) t;
SELECT count(*), sum(k) FROM generate_series(1, 9000, 5) g, LATERAL (SELECT k FROM @ WHERE v = g OFFSET 0) t;
SELECT count(*), sum(k) FROM generate_series(1, 500, 9) g, LATERAL (SELECT k FROM @ WHERE x = g OFFSET 0) t;
SQL

# Run something that makes the files of a table anew.  Nothing may get lost, and all is served as before.
sub rewritten
{
	my ($node, $name, $table, $code) = @_;
	my @indexes = ("${table}_pkey", "${table}_v", "${table}_x");
	my $ask = sub { $node->safe_psql('postgres', $lookups =~ s/\@/$table/gr) };
	my $oracle = $node->safe_psql('postgres', "SET learnedbtree.enable = off; SET learnedbtree.btree_indexes = 'none'; "
		  . $lookups =~ s/\@/$table/gr);
	my $files = "SELECT string_agg(pg_relation_filenode(i::regclass)::text, ' ') FROM unnest(ARRAY['"
	  . join("', '", @indexes) . "']) i";
	my $answer;
	my $before = $node->safe_psql('postgres', $files);
	is(predicted_in($node, 'postgres', sub { $answer = $ask->() }, @indexes), "@indexes", "$name: lookups before are served");
	is($answer, $oracle, "$name: and right");
	$code->();
	my %old = map { $_ => 1 } split / /, $before;
	is(join(' ', grep { $old{$_} } split / /, $node->safe_psql('postgres', $files)), '', "$name: the indexes have new files");
	is(predicted_in($node, 'postgres', sub { $answer = $ask->() }, @indexes), "@indexes", "$name: lookups afterwards are served");
	is($answer, $oracle, "$name: and right");
	is(model_state($node, $_), 'ready', "$name: $_ has its model again") foreach @indexes;
	# Splits have the worker train our index, whose model is from when its file was another index's.
	my $trainings = stat_of($node, "${table}_x", 'trainings');
	$node->safe_psql('postgres', "INSERT INTO $table SELECT g * 3 + 1, g, 'new', g % 500 FROM generate_series(1, 9000, 11) g");
	is($node->safe_psql('postgres', "SELECT count(*) FROM $table WHERE k % 3 = 1"), '819', "$name: inserts go on");
	wait_until($node, "SELECT (SELECT state FROM learnedbtree_model('${table}_x')) <> 'ready' OR "
		  . "(SELECT trainings FROM learnedbtree_stat WHERE indexrelname = '${table}_x') > $trainings");
	is($node->psql('postgres', check_sql(@indexes)), 0, "$name: amcheck is content");
	is($node->safe_psql('postgres', "SELECT string_agg(model, ' ') FROM unnest(ARRAY['" . join("', '", @indexes)
			  . "']) i, learnedbtree_check(i::regclass)"), 'ready ready ready', "$name: models are sound");
	return;
}

# The plan of a query, without costs.
sub plan_of
{
	my ($node, $query, $set) = @_;
	return $node->safe_psql('postgres', ($set // '') . ";EXPLAIN (COSTS OFF) $query");
}

sub try_statements
{
	my ($node, $order) = @_;
	my $name = "$order, pg_stat_statements";
	needs('pg_stat_statements');
	my @statements = (
		[ 'SELECT v FROM t WHERE k = 9', 'SELECT v FROM t WHERE k = %', 1 ],
		[ 'SELECT count(*) FROM t a JOIN t b ON b.k = a.k + 3 WHERE a.x = 7', 'SELECT count(*) FROM t a JOIN%', 1 ],
		[ 'INSERT INTO t VALUES (9, 0, 0, 0) ON CONFLICT (k) DO NOTHING', 'INSERT INTO t VALUES (%', 0 ],
		[ 'UPDATE t SET w = w WHERE k IN (9, 15, 21)', 'UPDATE t SET w = w WHERE k IN%', 3 ],
		[ 'COPY (SELECT k FROM t WHERE k BETWEEN 9 AND 21) TO STDOUT', 'COPY (SELECT k FROM t WHERE%', 3 ]);
	my $ids = "SET compute_query_id = on; SET enable_seqscan = off; EXPLAIN (VERBOSE, COSTS OFF) SELECT v FROM t WHERE k = 9";
	my ($plain, $served) = map { $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = '$_'; $ids") } 'none', 'all';
	like($plain, qr/Query Identifier: -?\d+/, "$name: there is a query identifier");
	is($served, $plain, "$name: it is the same of served indexes");
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
	is(predicted_in($node, 'postgres', sub {
			$node->safe_psql('postgres', join(';', "SET enable_seqscan = off; SET learnedbtree.btree_indexes = '$_'",
					map { $_->[0] } @statements)) foreach 'none', 'all' }, 't_pkey'), 't_pkey', "$name: an index is served");
	foreach (@statements)
	{
		my ($statement, $like, $rows) = @$_;
		is($node->safe_psql('postgres', 'SELECT count(DISTINCT queryid), sum(calls), sum(rows), bool_and(shared_blks_hit > 0) '
				  . "FROM pg_stat_statements WHERE query LIKE '$like' AND toplevel"), '1|2|' . 2 * $rows . '|t', "$name: $statement");
	}
	return;
}

sub try_auto_explain
{
	my ($node, $order) = @_;
	my $name = "$order, auto_explain";
	needs('auto_explain');
	my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET client_min_messages = log; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;'
	  . 'SET auto_explain.log_timing = off; SET auto_explain.log_nested_statements = on;';
	$settings .= q{SET auto_explain.log_extension_options = 'learnedbtree';} if $node->pg_version->major >= 19;
	my ($rc, $out, $err) = $node->psql('postgres', "$settings DO \$\$ BEGIN PERFORM v FROM t WHERE k = 9; END \$\$;"
		  . 'SET auto_explain.log_min_duration = -1');
	like($err, qr/Query Text: SELECT v FROM t WHERE k = 9.*Index Scan using t_pkey on t .*rows=1/s, "$name: shows the scan of a served index");
	like($err, qr/Learned B-Tree: lookups=1 verified=1/, "$name: and so has the plan") if $node->pg_version->major >= 19;
	# It prints what EXPLAIN has not begun.
	$node->safe_psql('postgres', 'CREATE TABLE loose AS SELECT g % 3 AS k, g AS v FROM generate_series(1, 20000) g; CREATE INDEX ON loose (k, v)');
	$node->safe_psql('postgres', 'VACUUM ANALYZE loose');
	foreach my $query ('SELECT DISTINCT k FROM loose', 'SELECT count(*) FROM loose a JOIN t ON t.k = a.v', 'INSERT INTO t (k) SELECT k + 1000000 FROM t WHERE k > 0')
	{
		($rc, $out, $err) = $node->psql('postgres', "$settings SET enable_hashjoin = off; SET enable_mergejoin = off; EXPLAIN (BUFFERS, COSTS OFF) $query");
		is($rc, 0, "$name: EXPLAIN (BUFFERS) $query") or diag($err);
		like($out, qr/Learned Loose Scan/, "$name: ... has the node") if $query =~ /DISTINCT/;
	}
	return;
}

sub try_hints
{
	my ($node, $order) = @_;
	my $name = "$order, pg_hint_plan";
	needs('pg_hint_plan');
	my $join = 'SELECT count(*) FROM t a JOIN t b ON a.v = b.k';
	foreach (
		[ '/*+ IndexScan(t t_pkey) */ SELECT v FROM t WHERE k > 0', qr/^Index Scan using t_pkey/, 't_pkey' ],
		[ '/*+ IndexScan(t t_v) */ SELECT v FROM t WHERE v > 0 AND k = 9', qr/^Index Scan using t_v/, 't_v' ],
		[ '/*+ IndexOnlyScan(t t_pkey) */ SELECT k FROM t WHERE k > 0', qr/^Index Only Scan using t_pkey/, 't_pkey' ],
		[ '/*+ BitmapScan(t t_pkey) */ SELECT v FROM t WHERE k = 9', qr/^Bitmap Heap Scan on t.*Index Scan on t_pkey/s, 't_pkey' ],
		[ '/*+ IndexScan(t t_x) */ SELECT v FROM t WHERE x > 0 AND k > 0', qr/^Index Scan using t_x/, 't_x' ],
		[ '/*+ NoIndexScan(t) */ SELECT v FROM t WHERE k = 9', qr/^Seq Scan/, '' ],
		[ "/*+ Leading((a b)) NestLoop(a b) SeqScan(a) IndexScan(b t_pkey) */ $join", qr/Nested Loop.*Seq Scan on t a.*Index Scan using t_pkey on t b/s, 't_pkey' ],
		[ "/*+ HashJoin(a b) SeqScan(a) SeqScan(b) */ $join", qr/Hash Join/, '' ])
	{
		my ($query, $wanted, $served) = @$_;
		my $answer;
		my $set = 'SET max_parallel_workers_per_gather = 0; SET enable_memoize = off;' . ($query =~ /Bitmap/ ? '' : 'SET enable_bitmapscan = off');
		like(plan_of($node, $query, $set), $wanted, "$name: $query");
		is(predicted_in($node, 'postgres', sub { $answer = $node->safe_psql('postgres', "$set; $query") }, qw(t_pkey t_v t_x)),
			$served, "$name: '$served' is served");
		my $oracle = $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = 'none'; SET learnedbtree.enable = off; "
			  . $query =~ s/^.*\*\/ //r);
		is(join("\n", sort split /\n/, $answer), join("\n", sort split /\n/, $oracle), "$name: the answer is right");
	}
	return;
}

sub try_repack
{
	my ($node, $order) = @_;
	needs('pg_repack');
	my $program = $node->config_data('--bindir') . '/pg_repack';
	my @where = ('--host=' . $node->host, '--port=' . $node->port, '--dbname=postgres', '--wait-timeout=60');
	$node->safe_psql('postgres', $make_table =~ s/\@/$_/gr) foreach 'repacked', 'reindexed';
	rewritten($node, "$order, pg_repack", 'repacked', sub { $node->command_ok([ $program, @where, '--table=repacked' ], "$order, pg_repack: runs") });
	rewritten($node, "$order, pg_repack of indexes", 'reindexed',
		sub { $node->command_ok([ $program, @where, '--table=reindexed', '--only-indexes' ], "$order, pg_repack of indexes: runs") });
	return;
}

sub try_squeeze
{
	my ($node, $order) = @_;
	needs('pg_squeeze');
	$node->safe_psql('postgres', $make_table =~ s/\@/squeezed/gr);
	rewritten($node, "$order, pg_squeeze", 'squeezed', sub { $node->safe_psql('postgres', "SELECT squeeze.squeeze_table('public', 'squeezed')") });
	return;
}

# Wait until the extension's worker has made this partition.  Its master process ends with an error, to come back after ten
# minutes, where a worker ends before the master has looked whether it began, as on a busy machine: the server is then
# started anew.  With no place left for its worker it would end as well, and that would be our doing.
sub partman_makes
{
	my ($node, $partition) = @_;
	my $restarts = 0;
	foreach my $try (1 .. 1200)
	{
		return if $node->safe_psql('postgres', "SELECT EXISTS (SELECT FROM pg_class WHERE relname ~ '^$partition\$')") eq 't';
		my $log = slurp_file($node->logfile);
		die 'no place for a worker of pg_partman' if $log =~ /Unable to register dynamic background worker/;
		if ((() = $log =~ /Could not start dynamic pg_partman background process/g) > $restarts)
		{
			note("pg_partman's master process has ended");
			$node->restart;
			$restarts++;
		}
		usleep(100_000);
	}
	die "pg_partman's worker has not made $partition; sessions: "
	  . $node->safe_psql('postgres', 'SELECT pid, backend_type, state, wait_event, left(query, 60) FROM pg_stat_activity');
}

# The index of the partitioned table is named: partitions of the extension, and of its worker, are served by that alone.
sub try_partman
{
	my ($node, $order) = @_;
	my $name = "$order, pg_partman";
	needs('pg_partman');
	my $version = $node->safe_psql('postgres', q{SELECT split_part(extversion, '.', 1) FROM pg_extension WHERE extname = 'pg_partman'});
	my $type = $version < 5 ? 'native' : 'range';
	$node->safe_psql('postgres', 'CREATE TABLE part (k int8 PRIMARY KEY, v int8) PARTITION BY RANGE (k)');
	$node->safe_psql('postgres', "SELECT partman.create_parent(p_parent_table := 'public.part', p_control := 'k', p_type := '$type', "
		  . "p_interval := '1000', p_premake := 3)");
	my $ask = sub {
		my ($from, $to) = @_;
		return $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = 'public.part_pkey'; SET enable_seqscan = off; SET enable_bitmapscan = off; "
			  . "SET enable_hashjoin = off; SET enable_mergejoin = off; "
			  . "SELECT count(*) FROM generate_series($from, $to) g, LATERAL (SELECT v FROM part WHERE k = g OFFSET 0) p WHERE v = g");
	};
	# Partitions that have rows, with their indexes.
	my $indexes = sub {
		return split /\n/, $node->safe_psql('postgres', 'SELECT i.indexrelid::regclass FROM pg_index i JOIN '
			  . "(SELECT DISTINCT tableoid AS part FROM part) p ON indrelid = part WHERE part::regclass::text !~ 'default' ORDER BY 1");
	};
	$node->safe_psql('postgres', 'INSERT INTO part SELECT g, g FROM generate_series(0, 2999) g; ANALYZE part');
	my @before = $indexes->();
	cmp_ok(scalar @before, '>=', 3, "$name: made partitions");
	my $answer;
	is(predicted_in($node, 'postgres', sub { $answer = $ask->(0, 2999) }, @before), "@before", "$name: all of them are served");
	is($answer, '3000', "$name: and answer right");
	partman_makes($node, 'part_p0*5000');
	pass("$name: its worker has made partitions");
	$node->safe_psql('postgres', 'INSERT INTO part SELECT g, g FROM generate_series(3000, 5999) g; ANALYZE part');
	my @after = $indexes->();
	cmp_ok(scalar @after, '>', scalar @before, "$name: rows have found them");
	is(predicted_in($node, 'postgres', sub { $answer = $ask->(0, 5999) }, @after), "@after", "$name: the worker's are served, too");
	is($answer, '6000', "$name: and answer right");
	return;
}

# The job runs while other things are tried.  Before 1.5 it can be each minute only.
sub begin_cron
{
	my ($node) = @_;
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE by_cron (k int8 PRIMARY KEY, v int);
INSERT INTO by_cron SELECT g, g + 1 FROM generate_series(1, 9000) g;
VACUUM ANALYZE by_cron;
CREATE TABLE cron_saw (v int);
SELECT cron.schedule('look', CASE WHEN extversion ~ '^1\.[0-4]$|^1\.[0-4]-' THEN '* * * * *' ELSE '1 seconds' END,
	'INSERT INTO cron_saw SELECT v FROM by_cron WHERE k = 77') FROM pg_extension WHERE extname = 'pg_cron';
SQL
	return;
}

sub end_cron
{
	my ($node, $order) = @_;
	my $name = "$order, pg_cron";
	needs('pg_cron');
	wait_until($node, 'SELECT count(*) > 0 FROM cron_saw');
	$node->safe_psql('postgres', q{SELECT cron.unschedule('look')});
	is($node->safe_psql('postgres', 'SELECT DISTINCT v FROM cron_saw'), '78', "$name: its lookup is right");
	wait_until($node, q{SELECT lookups > 0 FROM learnedbtree_stat WHERE indexrelname = 'by_cron_pkey'});
	pass("$name: and served");
	return;
}

sub try_pglogical
{
	my ($node, $order) = @_;
	my $name = "$order, pglogical";
	needs('pglogical');
	my $other = beside_node('subscriber', $order);
	my ($here, $there) = map { $_->connstr('postgres') } $node, $other;
	my $create = 'CREATE TABLE flows (k int8 PRIMARY KEY, v int, w text)';
	$_->safe_psql('postgres', $create) foreach $node, $other;
	$node->safe_psql('postgres', "SELECT pglogical.create_node('provider', \$\$$here\$\$); SELECT pglogical.replication_set_add_table('default', 'flows');"
		  . q{INSERT INTO flows SELECT g * 2, g, 'w' || g FROM generate_series(1, 6000) g});
	$other->safe_psql('postgres', "SELECT pglogical.create_node('subscriber', \$\$$there\$\$)");
	$other->safe_psql('postgres', "SELECT pglogical.create_subscription('sub', \$\$$here\$\$)");
	my $same = sub {
		my ($when) = @_;
		my $contents = q{SELECT count(*), sum(k), sum(v), md5(string_agg(w, ' ' ORDER BY k)) FROM flows};
		my $wanted = $node->safe_psql('postgres', $contents);
		wait_until($other, "SELECT q::text = \$\$(" . $wanted =~ s/\|/,/gr . ")\$\$ FROM ($contents) q");
		pass("$name: $when");
	};
	$same->('the first copy');
	$node->safe_psql('postgres', 'INSERT INTO flows SELECT g * 2 + 1, g, \'more\' FROM generate_series(1, 3000, 2) g');
	$same->('inserts');
	is(predicted_in($other, 'postgres', sub {
			$node->safe_psql('postgres', 'UPDATE flows SET v = v + 1, w = \'up\' WHERE k % 5 = 0');
			$node->safe_psql('postgres', 'UPDATE flows SET k = k + 100000 WHERE k % 7 = 0');
			$node->safe_psql('postgres', 'DELETE FROM flows WHERE k % 11 = 0');
			$same->('updates and deletes') }, 'flows_pkey'), '', "$name: its apply workers look up as btree does");
	foreach ([ $node, 'provider' ], [ $other, 'subscriber' ])
	{
		my ($server, $which) = @$_;
		my $answer;
		is(predicted_in($server, 'postgres', sub { $answer = $server->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; '
					  . 'SELECT count(*) FROM generate_series(1, 12000) g, LATERAL (SELECT FROM flows WHERE k = g OFFSET 0) t') }, 'flows_pkey'),
			'flows_pkey', "$name: lookups of the $which are served");
		is($answer, $server->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; '
				  . 'SELECT count(*) FROM flows WHERE k <= 12000'), "$name: and right");
	}
	is(amcheck_all($other, 'postgres'), '', "$name: amcheck is content with the subscriber");
	$other->stop('immediate');
	return;
}

foreach my $order ('first', 'last')
{
	my $node = beside_node('node', $order);
	note('with ' . $node->safe_psql('postgres', q{SELECT string_agg(extname || ' ' || extversion, ', ' ORDER BY 1) FROM pg_extension}));
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_extension') - 3, scalar(grep { $_->[1] && $there{ $_->[1] } } @others),
		"$order: all extensions can be created");
	begin_cron($node) if $there{pg_cron};
	$node->safe_psql('postgres', $make_table =~ s/\@/t/gr);
	$node->safe_psql('postgres', 'VACUUM ANALYZE t');
	foreach my $try (\&try_statements, \&try_auto_explain, \&try_hints, \&try_repack, \&try_squeeze, \&try_partman, \&try_pglogical, \&end_cron)
	{
	  SKIP: { $try->($node, $order); }
	}
	is(amcheck_all($node, 'postgres'), '', "$order: amcheck is content");
	$node->stop('fast');
	unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|terminated by signal/, "$order: no crash");
}

done_testing();
