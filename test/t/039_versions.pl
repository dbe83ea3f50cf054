# What README.md and doc/ say about server versions is so: each cell of their tables that have a column for each version,
# in the column of the server at hand, is what a check finds out here; and what a sentence says of the versions that it names
# is so on this server just if it is one of them.  A row without a check, a check without a row, a sentence without a check,
# and a version without a column fail.
#
# The limits of indexes made USING learnedbtree are looked for in served btree indexes, too, which have none of them: there
# every statement that looks rows up does so by a model.
use strict;
use warnings;

use Documented;
use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Time::HiRes qw(usleep);

my $root = "$FindBin::RealBin/../..";
my $node = PostgreSQL::Test::Cluster->new('versions');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
jit = off
enable_seqscan = off
enable_bitmapscan = off
max_parallel_workers_per_gather = 0
learnedbtree.btree_indexes = 'all'
learnedbtree.min_leaves = 0
learnedbtree.naptime = 1h
max_replication_slots = 10
max_wal_senders = 10
max_logical_replication_workers = 12
max_worker_processes = 30
wal_retrieve_retry_interval = 20ms
CONF
$node->start;
my $version = int($node->pg_version->major);
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree');

# ---- tools of the checks ----

sub sql { return $node->safe_psql('postgres', $_[0]); }

# What a session says that ends at its first error: did it get to the end, its output, its messages.
sub said
{
	my ($sql, %params) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 1, %params);
	return ($rc == 0, $out, $err);
}

# Sessions tell the rest of what they have counted when they end, which may be after their clients: wait for that, but not
# for sessions that stay open.
my $all_told = <<'SQL';
DO $$ BEGIN
	FOR i IN 1 .. 40000 LOOP
		PERFORM pg_stat_clear_snapshot();
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name <> 'open');
		PERFORM pg_sleep(0.005);
	END LOOP;
END $$;
SQL

# A query on counts, which a session of its own answers.
my $counter;

sub counted
{
	$counter //= session();
	$counter->query_safe($all_told);
	return $counter->query_safe($_[0]);
}

sub session
{
	local $ENV{PGAPPNAME} = 'open';
	my $session = $node->background_psql('postgres');
	$session->set_query_timer_restart;
	$session->query_safe('SET client_min_messages = error');
	return $session;
}

# Has code used an index by its model, and left scans of it to btree's own?
sub uses_of
{
	my ($index, $code) = @_;
	my $sums = "SELECT sum(lookups + inserts), sum(delegated) FROM pg_class c, learnedbtree_stat_get(oid) WHERE oid IN "
	  . "(SELECT relid FROM pg_partition_tree('$index') WHERE isleaf UNION ALL SELECT '$index'::regclass WHERE relkind <> 'I')";
	my @before = split /\|/, counted($sums);
	$code->();
	my @after = split /\|/, counted($sums);
	return map { $after[$_] - $before[$_] } 0, 1;
}

# How often were models asked for an index?
sub asked_models { return (uses_of(@_))[0]; }

# A table of 3000 keys, and an index of this kind on them: its name and the messages about it.
sub table_of
{
	my ($kind, $name, $unique) = @_;
	my ($table, $using) = ("${name}_$kind", $kind eq 'learned' ? 'USING learnedbtree' : '');
	my ($good, undef, $err) = said(<<"SQL");
CREATE TABLE $table (k int NOT NULL, v int);
INSERT INTO $table SELECT (g * 7919) % 3001, g FROM generate_series(1, 3000) g;
ANALYZE $table;
CREATE $unique INDEX ${table}_k ON $table $using (k);
SQL
	die $err unless $good;
	return ($table, $err);
}

# The cell is what there is when a statement fails just so, else what $works says, called once it has run; any other error
# is no cell.  The index was looked up by its model.
sub unless_refused
{
	my ($statement, $index, $error, $refused, $works) = @_;
	my ($good, $out, $err);
	my $asked = asked_models($index, sub {
			($good, $out, $err) = said($statement);
			$works = $works->() if $good;
		});
	return $err =~ $error ? $refused : $err unless $good;
	cmp_ok($asked, '>', 0, "$index: looked up by a model");
	return $works;
}

# ---- doc/access-method.md: limits of indexes of either kind, learned or served ----

# Some are found out before the library is preloaded, some by subscriptions, see below; undef is what cannot be tried here.
my (%found, %replicated);

sub on_conflict
{
	my ($kind) = @_;
	my ($table, $messages) = table_of($kind, 'conflict', 'UNIQUE');
	sql("CREATE INDEX ${table}_beside ON $table USING learnedbtree (v)");
	my $cell = unless_refused("INSERT INTO $table VALUES (5, 0), (5000, 0) ON CONFLICT DO NOTHING;"
		  . "INSERT INTO $table VALUES (6, 0) ON CONFLICT (k) DO UPDATE SET v = -1", "${table}_k",
		qr/ERROR:  unexpected non-btree speculative unique index/, 'fails', sub { 'works' });
	is($messages =~ /WARNING:  INSERT ... ON CONFLICT will not work/ ? 'fails' : 'works', $cell, "ON CONFLICT, $kind: a warning says so");
	is(sql("SELECT string_agg(concat_ws(' ', k, v > 0), ', ' ORDER BY k) FROM $table WHERE k IN (5, 6, 5000)"),
		$cell eq 'fails' ? '5 t, 6 t' : '5 t, 6 f, 5000 f', "ON CONFLICT, $kind: the rows");

	# a non-unique index never stands in its way
	my ($other) = table_of($kind, 'conflict_beside', '');
	sql("ALTER TABLE $other ADD UNIQUE (v); INSERT INTO $other VALUES (1, 1) ON CONFLICT (v) DO NOTHING");
	return $cell;
}

sub foreign_keys
{
	my ($kind) = @_;
	my ($table) = table_of($kind, 'fk', 'UNIQUE');
	return unless_refused("CREATE TABLE child_$kind (k int REFERENCES $table (k)); INSERT INTO child_$kind VALUES (5), (6)", "${table}_k",
		qr/ERROR:  only b-tree indexes are supported for foreign keys/, 'refused', sub {
			like((said("INSERT INTO child_$kind VALUES (5000)"))[2], qr/violates foreign key/, "foreign keys, $kind: one is violated");
			like((said("DELETE FROM $table WHERE k = 5"))[2], qr/violates foreign key/, "foreign keys, $kind: another");
			return 'works';
		});
}

sub row_comparison
{
	my ($kind) = @_;
	my ($table) = table_of($kind, 'rows', '');
	my $using = $kind eq 'learned' ? 'USING learnedbtree' : '';
	sql("DROP INDEX ${table}_k; CREATE INDEX ${table}_k ON $table $using (k, v); VACUUM ANALYZE $table");
	my $query = "SELECT k FROM $table WHERE (k, v) > (1500, 2) ORDER BY k, v LIMIT 3";
	my $plan = sql("EXPLAIN (COSTS off) $query");
	return $plan unless $plan =~ /using ${table}_k .*\n +(.*): \(ROW/;
	my $how = $1;
	my ($own, $delegated) = uses_of("${table}_k", sub {
			is(sql($query), sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; $query"), "row comparison, $kind: the answer");
		});
	return $how eq 'Filter' ? 'a filter' : $how eq 'Index Cond' && $own && !$delegated ? 'an index condition' : $plan;
}

sub partitioned_unique
{
	my ($kind) = @_;
	my $using = $kind eq 'learned' ? 'USING learnedbtree' : '';
	my $table = "parts_$kind";
	sql("CREATE TABLE $table (k int NOT NULL, v int) PARTITION BY RANGE (k); CREATE TABLE ${table}_1 PARTITION OF $table FOR VALUES FROM (0) TO (9000);"
		  . "INSERT INTO $table SELECT g, g FROM generate_series(1, 3000) g; CREATE INDEX ${table}_1_k ON ${table}_1 (v)");
	my ($good, undef, $err) = said("CREATE UNIQUE INDEX ${table}_k ON $table $using (k)");
	return $err =~ /ERROR:  cannot match partition key to an index using access method "learnedbtree"/ ? 'refused' : $err unless $good;
	return unless_refused("INSERT INTO $table VALUES (4000, 1)", "${table}_k", qr/^$/, '', sub {
			like((said("INSERT INTO $table VALUES (5, 5)"))[2], qr/duplicate key/, "unique index on partitions, $kind: it is");
			is(sql("SELECT v FROM $table WHERE k = 4000"), '1', "unique index on partitions, $kind: a lookup");
			return 'works';
		});
}

sub refresh_concurrently
{
	my ($kind) = @_;
	my ($table) = table_of('served', "base_$kind", '');
	my $using = $kind eq 'learned' ? 'USING learnedbtree' : '';
	sql("CREATE MATERIALIZED VIEW mv_$kind AS SELECT k, v FROM $table; CREATE UNIQUE INDEX mv_${kind}_k ON mv_$kind $using (k);"
		  . "DELETE FROM $table WHERE k < 50; INSERT INTO $table SELECT g, g FROM generate_series(5000, 5100) g");
	return unless_refused("REFRESH MATERIALIZED VIEW CONCURRENTLY mv_$kind", "mv_${kind}_k",
		qr/ERROR:  cannot refresh materialized view "public.mv_$kind" concurrently/, 'refused', sub {
			is(sql("SELECT count(*), sum(k) FROM mv_$kind"), sql("SELECT count(*), sum(k) FROM $table"), "REFRESH CONCURRENTLY, $kind: the rows");
			return 'works';
		});
}

sub parallel_build
{
	my ($kind) = @_;
	my ($table) = table_of($kind, 'parallel', '');
	my $using = $kind eq 'learned' ? 'USING learnedbtree' : '';
	my (undef, undef, $err) = said("ALTER TABLE $table SET (parallel_workers = 2); SET min_parallel_table_scan_size = 0; SET max_parallel_maintenance_workers = 2;"
		  . "SET client_min_messages = debug1; CREATE INDEX ${table}_v ON $table $using (v)");
	my $asked = asked_models("${table}_v", sub { is(sql("SELECT v FROM $table WHERE v = 77"), '77', "built, $kind: a lookup") });
	cmp_ok($asked, '>', 0, "built, $kind: by a model");
	return $err =~ /building index "${table}_v" on table "$table" with request for [1-9]\d* parallel worker/ ? 'yes' :
	  $err =~ /building index "${table}_v" on table "$table" serially/ ? 'no' : $err;
}

sub constraints
{
	my ($kind) = @_;
	my ($table) = table_of($kind, 'constraints', 'UNIQUE');
	sql("ALTER TABLE $table ADD CONSTRAINT ${table}_pk PRIMARY KEY (k), ADD CONSTRAINT ${table}_u UNIQUE (v)");
	my $made = sql("SELECT string_agg(DISTINCT amname, ' ') FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.relname IN ('${table}_pk', '${table}_u')");
	sql("DROP INDEX ${table}_k");
	foreach my $index ("${table}_pk", "${table}_u")
	{
		my $asked = asked_models($index, sub {
				like((said("INSERT INTO $table VALUES (5, 5)"))[2], qr/duplicate key/, "$index: refuses a row");
				sql("SELECT FROM $table WHERE k = 5; SELECT FROM $table WHERE v = 5; INSERT INTO $table VALUES (4000, 4000); DELETE FROM $table WHERE v = 4000");
			});
		cmp_ok($asked, '>', 0, "$index: looked up by a model");
	}
	return $kind eq 'learned' ? "made as $made" : 'work';
}

sub constraints_using
{
	my ($kind) = @_;
	my @cells;
	foreach my $constraint ('PRIMARY KEY', 'UNIQUE')
	{
		my ($table) = table_of($kind, lc("using_$constraint") =~ s/ .*//r, 'UNIQUE');
		push @cells, unless_refused("ALTER TABLE $table ADD CONSTRAINT ${table}_k $constraint USING INDEX ${table}_k; INSERT INTO $table VALUES (5000, 1)", $table . '_k',
			qr/ERROR:  index "${table}_k" is not a btree/, 'refused', sub {
				like((said("INSERT INTO $table VALUES (5, 5)"))[2], qr/duplicate key/, "$constraint, $kind: refuses a row");
				return 'work';
			});
	}
	return $cells[0] eq $cells[1] ? $cells[0] : "@cells";
}

sub cluster_by_sorting
{
	my ($kind) = @_;
	my ($table) = table_of($kind, 'cluster', '');
	my ($good, undef, $err) = said("SET enable_indexscan = off; CLUSTER VERBOSE $table USING ${table}_k");
	is(sql("SELECT k FROM $table WHERE ctid = '(0,1)'"), '1', "CLUSTER, $kind: the order") if $good;
	my $asked = asked_models("${table}_k", sub { is(sql("SELECT k FROM $table WHERE k = 77"), '77', "clustered, $kind: a lookup") });
	cmp_ok($asked, '>', 0, "clustered, $kind: by a model");
	return $err =~ /"public.$table" using sequential scan and sort/ ? 'yes' : $err =~ /"public.$table" using index scan on/ ? 'no' : $err;
}

my %limits = (
	'models need `shared_preload_libraries`' => sub { $found{"models $_[0]"} },
	'`INSERT ... ON CONFLICT` on a table with such a unique index' => \&on_conflict,
	'foreign keys to such a unique index' => \&foreign_keys,
	'replica identity by such a unique index' => sub { $replicated{"identity $_[0]"} },
	'rows of `REPLICA IDENTITY FULL` tables found by such an index on subscribers' => sub { $replicated{"full $_[0]"} },
	'row comparisons, `(a, b) > (1, 2)`' => \&row_comparison,
	'unique index on a partitioned table' => \&partitioned_unique,
	'`REFRESH MATERIALIZED VIEW CONCURRENTLY` by such a unique index' => \&refresh_concurrently,
	'parallel index build' => \&parallel_build,
	'`PRIMARY KEY` and `UNIQUE` constraints' => \&constraints,
	'`ADD PRIMARY KEY USING INDEX`, `ADD UNIQUE USING INDEX`' => \&constraints_using,
	'`CLUSTER` by sorting instead of an index scan' => \&cluster_by_sorting);

# What a cell of the column of served indexes, which is for all versions, says of this one.
sub of_this_version
{
	my ($cell, $of_learned) = @_;
	return $of_learned if $cell eq 'the same';
	return $version >= $1 ? 'yes' : 'no' if $cell =~ /^from (\d+) on$/;
	return $cell;
}

# ---- doc/install.md: what loads the library ----

my $preload = '`shared_preload_libraries`, and a restart';
my %loading = (
	$preload => sub {
		my $asked = asked_models('plain_k', sub { sql('SELECT FROM plain WHERE k = 5') });
		return join(', and ', $asked ? 'in all sessions' : (), $replicated{'identity served'} eq 'works' ? 'in the apply workers of logical replication' : ());
	},
	'`session_preload_libraries`, by `ALTER DATABASE`, `ALTER ROLE` or `ALTER SYSTEM`' => sub { $found{session} },
	q(`CREATE EXTENSION learnedbtree`, `LOAD 'learnedbtree'` (superusers), or the first use of one of its functions or of an index made `USING learnedbtree`) => sub { $found{use} });

my $no_memory = 'there is no shared memory for models: learnedbtree is not in shared_preload_libraries';

# Does a new session that does this, and then looks a key up in a btree index, serve that?
sub serves_after
{
	my ($first) = @_;
	return asked_models('plain_k', sub { sql("$first; SELECT FROM plain WHERE k = 5") }) > 0;
}

sub without_memory { return sql("SELECT reason = '$no_memory' FROM learnedbtree_indexes WHERE indexname = 'plain_k'") eq 't'; }

# The answer, if it is the same for all; for who is not served, there is no shared memory.
sub agreed
{
	my ($yes, $no, %answers) = @_;
	my @yes = grep { $answers{$_} } sort keys %answers;
	return "only by @yes" if @yes && @yes < keys %answers;
	return @yes ? $yes : without_memory() ? $no : 'not, for some other reason';
}

sub by_session_preload
{
	my %ways = ('ALTER DATABASE' => 'ALTER DATABASE postgres', 'ALTER ROLE' => 'ALTER ROLE CURRENT_USER', 'ALTER SYSTEM' => 'ALTER SYSTEM');
	my %answers;
	foreach my $way (sort keys %ways)
	{
		my $before = session();
		sql("$ways{$way} SET session_preload_libraries = 'learnedbtree'");
		sql('SELECT pg_reload_conf()') if $way eq 'ALTER SYSTEM';
		wait_until($node, q(SELECT current_setting('session_preload_libraries') = 'learnedbtree'));
		$answers{$way} = serves_after('SELECT');
		is(asked_models('plain_k', sub { asked($before, 'SELECT FROM plain WHERE k = 5') }), '0', "$way: not in a session that was open");
		$before->quit;
		sql("$ways{$way} RESET session_preload_libraries");
		sql('SELECT pg_reload_conf()') if $way eq 'ALTER SYSTEM';
		wait_until($node, q(SELECT current_setting('session_preload_libraries') = ''));
	}
	return agreed('in new sessions, without a restart', 'not enough: without the above there is no shared memory for models', %answers);
}

sub by_first_use
{
	my %answers = (
		'LOAD' => serves_after(q(LOAD 'learnedbtree')),
		'a function' => serves_after('SELECT learnedbtree_model_memory()'),
		'an index' => serves_after('SELECT FROM learned WHERE k = 5'),
		'CREATE EXTENSION' => serves_after('DROP INDEX learned_k; DROP EXTENSION learnedbtree; CREATE EXTENSION learnedbtree'));
	like((said(q(CREATE ROLE web; SET ROLE web; LOAD 'learnedbtree')))[2], qr/ERROR:  access to library "learnedbtree" is not allowed/, 'LOAD is for superusers');
	return agreed('in this session, from then on', 'not enough', %answers);
}

# A standby whose sessions load the library: does it serve, or is there no shared memory?
sub by_standby
{
	$node->backup('standby');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'standby', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "session_preload_libraries = 'learnedbtree'\n");
	$standby->start;
	my $served = $standby->safe_psql('postgres', "SELECT FROM plain WHERE k = 5; SELECT i.served AND s.lookups > 0, i.reason = '$no_memory' "
		  . 'FROM learnedbtree_indexes i, learnedbtree_stat_get(i.indexrelid) s WHERE i.indexname = $$plain_k$$');
	$standby->stop;
	return { 't|' => 'yes', 'f|t' => 'no' }->{ $served =~ s/^\n//r } // $served;
}

# ---- README.md: what there is on each version ----

my %readme = (
	'lookups, lists, ranges and inserts, served' => \&plain_use,
	'all that btree indexes back: keys, constraints, `ON CONFLICT`, ...' => sub {
		my @missing = grep { $found{"limit $_"} !~ /^(?:works?|yes|an index condition.*)$/ } grep { !/REPLICA IDENTITY FULL|shared_preload/ } sort keys %limits;
		return @missing ? "not: @missing" : 'yes';
	},
	'loaded without a restart of the server' => sub { $found{session} =~ /without a restart/ ? 'yes' : 'no' },
	'apply workers find rows of `REPLICA IDENTITY FULL` tables by indexes' => sub { $replicated{'full served'} },
	'`EXPLAIN (ANALYZE, LEARNEDBTREE)`' => \&explain_option,
	'the same in `auto_explain`' => \&auto_explain,
	'waits by name in `pg_stat_activity`' => \&named_waits);

# In btree indexes of two levels, a served lookup visits one page of each.
sub plain_use
{
	sql('CREATE TABLE used (k int PRIMARY KEY, v int); INSERT INTO used SELECT g, g FROM generate_series(1, 30000) g; CREATE INDEX used_v ON used (v)');
	sql('VACUUM ANALYZE used');
	sql(q(SELECT learnedbtree_train('used_pkey'), learnedbtree_train('used_v')));
	# Leaves that are read ahead would count as visited.
	my $join = 'SET learnedbtree.lookahead_rows = 0; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off; '
	  . 'SELECT count(i.k) FROM generate_series(1, 30000, 30) g LEFT JOIN used i ON i.k = g';
	my %pages;
	foreach my $indexes ('all', 'none')
	{
		my $visits = 'SELECT idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = $$used_pkey$$';
		my $before = counted($visits);
		is(sql("SET learnedbtree.btree_indexes = '$indexes'; $join"), '1000', "a join, $indexes");
		$pages{$indexes} = counted($visits) - $before;
	}
	cmp_ok($pages{all}, '<', 1050, '1000 lookups visit a page each');
	cmp_ok($pages{none}, '>=', 2000, "and in btree two");
	my %used = (
		'a lookup' => [ 'used_pkey', 'SELECT v FROM used WHERE k = 77', '77' ],
		'a list' => [ 'used_pkey', 'SELECT sum(v) FROM used WHERE k IN (77, 7, 20000)', '20084' ],
		'a range' => [ 'used_v', 'SELECT sum(k) FROM used WHERE v BETWEEN 100 AND 199', '14950' ],
		'a range backward' => [ 'used_v', 'SELECT k FROM used WHERE v < 199 ORDER BY v DESC LIMIT 1', '198' ],
		'a bitmap' => [ 'used_v', 'SET enable_bitmapscan = on; SET enable_indexscan = off; SELECT sum(k) FROM used WHERE v IN (5, 10000)', '10005' ],
		'an insert' => [ 'used_v', 'INSERT INTO used VALUES (40000, 5) RETURNING k', '40000' ]);
	my @missing;
	foreach my $what (sort keys %used)
	{
		my ($index, $sql, $answer) = @{ $used{$what} };
		push @missing, $what unless asked_models($index, sub { is(sql($sql), $answer, $what) }) > 0;
	}
	return @missing ? "not @missing" : 'yes';
}

# Cold indexes are scanned, see below: leaves are read ahead by advice, on all versions.
sub read_ahead
{
	my %ahead;
	foreach my $table ('ahead_none', 'ahead_some', 'ahead_off')
	{
		sql("SELECT learnedbtree_train('${table}_k')");
		my $settings = $table eq 'ahead_none' ? 'SET effective_io_concurrency = 0' : 'SET effective_io_concurrency = 16';
		$settings .= '; SET learnedbtree.enable_prefetch = off' if $table eq 'ahead_off';
		is(sql("$settings; SELECT count(*) FROM $table WHERE k > 1000"), '39000', "$table: the answer");
		$ahead{$table} = counted("SELECT prefetched FROM learnedbtree_stat WHERE indexrelname = '${table}_k'");
	}
	is($ahead{ahead_off}, '0', 'read-ahead can be switched off');
	is($ahead{ahead_none}, '0', 'by effective_io_concurrency, too');
	cmp_ok($ahead{ahead_some}, '>', 0, 'leaves are read ahead');
	return;
}

sub explain_option
{
	my ($good, $out, $err) = said('SELECT FROM plain WHERE k = 5; EXPLAIN (ANALYZE, LEARNEDBTREE) SELECT FROM plain WHERE k = 5');
	return $good ? ($out =~ /Learned B-Tree: lookups=1 verified=1/ ? 'yes' : $out) : $err =~ /unrecognized EXPLAIN option "learnedbtree"/ ? 'no' : $err;
}

sub auto_explain
{
	# (a server without contrib modules has no auto_explain)
	return explain_option() eq 'no' ? 'no' : undef unless -e $node->config_data('--pkglibdir') . '/auto_explain.so';
	my ($good, $out, $err) = said(<<'SQL');
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on;
SET client_min_messages = log;
SET auto_explain.log_extension_options = 'learnedbtree';
SELECT FROM plain WHERE k = 5;
SQL
	return $good ? ($err =~ /Learned B-Tree: lookups=1 verified=1/ ? 'yes' : $err) :
	  $err =~ /invalid configuration parameter name "auto_explain.log_extension_options"/ ? 'no' : $err;
}

# The worker that has trained a large index at its first use waits, as the next demand comes before its time.
sub named_waits
{
	sql(q(ALTER SYSTEM SET learnedbtree.naptime = '3s'));
	$node->reload;
	sql('CREATE TABLE waits (k int); INSERT INTO waits SELECT g * 1000 FROM generate_series(1, 320000) g; CREATE INDEX waits_k ON waits (k) WITH (fillfactor = 10)');
	sql('SELECT count(*) FROM waits WHERE k = 5000');
	wait_until($node, q(SELECT trainings > 0 FROM learnedbtree_stat WHERE indexrelname = 'waits_k'));
	# (it may have gone before it is seen)
	my $event = '';
	for (my $end = time + patience(); time < $end && $event eq '';)
	{
		sql('SET learnedbtree.retrain_visits = 1; INSERT INTO waits SELECT generate_series(1, 3000)');
		$event = sql(q(SELECT string_agg(DISTINCT wait_event, ' ') FROM pg_stat_activity WHERE backend_type = 'learnedbtree worker' AND wait_event_type = 'Extension'));
	}
	return $event =~ /^LearnedBtree(?:WorkerMain|Train)$/ ? 'yes' : $event eq 'Extension' ? 'no' : $event;
}

# ---- subscriptions: from database pub to sub ----

my %publisher = (
	identity_published => 'CREATE UNIQUE INDEX @_i ON @ USING learnedbtree (k); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_i',
	identity_subscribed => 'CREATE UNIQUE INDEX @_i ON @ (k); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_i',
	identity_served => 'CREATE UNIQUE INDEX @_i ON @ (k); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_i',
	full_learned => 'ALTER TABLE @ REPLICA IDENTITY FULL',
	full_served => 'ALTER TABLE @ REPLICA IDENTITY FULL',
	full_hash => 'ALTER TABLE @ REPLICA IDENTITY FULL');
my %subscriber = (
	%publisher,
	identity_published => $publisher{identity_subscribed},
	identity_subscribed => $publisher{identity_published},
	full_learned => 'CREATE INDEX @_i ON @ USING learnedbtree (k)',
	full_served => 'CREATE INDEX @_i ON @ (k)',
	full_hash => 'CREATE INDEX @_i ON @ USING hash (k)');

# The table's changes are applied; how the subscriber has found their rows: by its index and a model, by sequential scans, or
# not at all.
sub replicate
{
	my ($table) = @_;
	my %sides = (pub => $publisher{$table}, sub => $subscriber{$table});
	foreach my $side ('pub', 'sub')
	{
		$node->safe_psql($side, "SET client_min_messages = error; CREATE TABLE \@ (k int NOT NULL, v int); INSERT INTO \@ SELECT g, 0 FROM generate_series(1, 3000) g; $sides{$side}" =~ s/\@/$table/gr);
	}
	$node->safe_psql('pub', "CREATE PUBLICATION $table FOR TABLE $table");
	$node->safe_psql('pub', "SELECT pg_create_logical_replication_slot('$table', 'pgoutput')");
	$node->safe_psql('sub', "CREATE SUBSCRIPTION $table CONNECTION '" . $node->connstr . " dbname=pub' PUBLICATION $table "
		  . "WITH (create_slot = false, slot_name = '$table', copy_data = false, disable_on_error = true)");
	my $log = -s $node->logfile;
	$node->safe_psql('pub', $_) foreach "INSERT INTO $table VALUES (5000, 0)", "UPDATE $table SET v = 1 WHERE k BETWEEN 1 AND 10",
	  "UPDATE $table SET k = k + 6000 WHERE k BETWEEN 2000 AND 2089", "DELETE FROM $table WHERE k = 77", "UPDATE $table SET v = 2 WHERE k = 8010";
	cmp_ok((uses($node, 'pub', 'model', "${table}_i"))[0], '>', 0, "$table: looked up by a model on the publisher") if $table =~ /^identity/;
	my $applied = sub {
		my $lsn = $node->safe_psql('pub', 'SELECT pg_current_wal_insert_lsn()');
		wait_until($node, "SELECT NOT subenabled OR EXISTS (SELECT FROM pg_stat_replication WHERE application_name = '$table' AND replay_lsn >= '$lsn') "
			  . "FROM pg_subscription WHERE subname = '$table'");
	};
	$applied->();
	my $how;
	if (sql("SELECT subenabled FROM pg_subscription WHERE subname = '$table'") eq 'f')
	{
		like(substr(slurp_file($node->logfile), $log), qr/ERROR: +missing operator 0\(23,23\) in opfamily \d+\n.*CONTEXT: .*"public\.$table"/, "$table: the log says why it is not applied");
		$how = 'not at all';
	}
	else
	{
		# the second transaction's 90 rows are looked for in one way or the other; what a worker has counted comes with a
		# later transaction
		my $lookups = $table eq 'full_hash' ? 'idx_scan) > 90 FROM pg_stat_user_indexes' : 'lookups) > 0 FROM learnedbtree_stat';
		my $by = "SELECT (SELECT sum($lookups WHERE indexrelname = '${table}_i'), (SELECT seq_scan > 90 FROM pg_stat_user_tables WHERE relname = '$table')";
		foreach my $try (1 .. 300)
		{
			last if $node->safe_psql('sub', "SELECT a OR b FROM ($by) s (a, b)") eq 't';
			$node->safe_psql('pub', "INSERT INTO $table VALUES (9000 + $try, 0)");
			usleep(100_000);
		}
		$applied->();
		$how = { 't|f' => 'by the index', 'f|t' => 'by sequential scans' }->{ $node->safe_psql('sub', $by) } // 'nobody knows how';
		my $rows = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(k), sum(v) FROM $table";
		is($node->safe_psql('sub', $rows), $node->safe_psql('pub', $rows), "$table: the rows are the publisher's");
	}
	$node->safe_psql('sub', "DROP SUBSCRIPTION $table");
	return $how;
}

sub find_out_replication
{
	foreach my $database ('pub', 'sub')
	{
		sql("CREATE DATABASE $database");
		$node->safe_psql($database, 'CREATE EXTENSION learnedbtree');
	}
	# Of 16 and 17 with assertions one of their own fails (035_replica_identity).
	my $asserts = ($version == 16 || $version == 17) && sql('SHOW debug_assertions') eq 'on';
	my %how = map { $_ => $asserts && $_ eq 'identity_subscribed' ? undef : replicate($_) } sort keys %publisher;
	is($how{identity_published}, 'by the index', 'a publisher may have a learnedbtree index as replica identity');
	my %identity = ('by the index' => 'works', 'not at all' => 'not on subscribers');
	my %full = ('by the index' => 'yes', 'by sequential scans' => 'no');
	%replicated = ('identity learned' => defined $how{identity_subscribed} ? $identity{ $how{identity_subscribed} } // $how{identity_subscribed} : undef,
		'identity served' => $identity{ $how{identity_served} } // $how{identity_served},
		map { ("full $_" => $full{ $how{"full_$_"} } // $how{"full_$_"}) } 'learned', 'served', 'hash');
	return;
}

# Do we tell the planner that index scans skip?
sub skips
{
	my $plan = sql(<<'SQL');
CREATE TABLE skipped AS SELECT i % 3 AS a, i AS b FROM generate_series(1, 100000) i;
CREATE INDEX ON skipped (a, b);
VACUUM ANALYZE skipped;
EXPLAIN SELECT * FROM skipped WHERE b = 7;
SET learnedbtree.enable_loose_scan = off;
EXPLAIN SELECT * FROM skipped WHERE b = 7;
DROP TABLE skipped;
SQL
	my @costs = $plan =~ /^[^ ].*cost=[\d.]+\.\.([\d.]+)/mg;
	return $costs[0] < $costs[1];
}

# ---- sentences that name versions ----

# Parts of them, each with all versions that it names; and is what it says so on this server?  (undef: it cannot tell.)  Where
# nothing here can find that out: the test that does, and the name of what it looks at.
my $needs_preload = sub { $found{'models served'} eq 'yes' };
my $has_option = sub { explain_option() eq 'yes' };
my $in_auto_explain = sub { my $is = auto_explain(); return defined $is ? $is eq 'yes' : undef };
my $skips = \&skips;
my $default_depth = sub { sql("SELECT boot_val FROM pg_settings WHERE name = 'effective_io_concurrency'") };
my $one_block = sub { $default_depth->() eq '1' };
my $full_by = sub { my $kinds = join(' ', grep { $replicated{"full $_"} eq 'yes' } 'served', 'hash', 'learned'); return $kinds eq $_[0] };
my %sentences = (
	'README.md' => {
		'**On PostgreSQL 15 and 16, [load the library](#load-the-library) first**' => sub { $found{use} eq 'not enough' },
		'Both install PostgreSQL 15 from Debian' => sub { slurp_file("$root/bench/demo") =~ /pg_config=\$\("\$root\/ci\/server" $version stock\)/ },
		"PostgreSQL 15 to 18, or 19's release candidate" => \&is_supported,
		'**PostgreSQL 17, 18 and 19** load it in new sessions, without a restart' => sub { $found{session} =~ /without a restart/ },
		'**PostgreSQL 15 and 16** need shared memory' => $needs_preload,
		'Served indexes work on PostgreSQL 15 to 18, and on 19 as far as its release candidate goes' =>
		  sub { is_supported() && $found{'README.md, lookups, lists, ranges and inserts, served'} eq 'yes' },
		'([before PostgreSQL 18, only if you allow it](#support-by-version))' => $one_block,
		'**Its default before PostgreSQL 18, 1, leaves little' => $one_block,
		'From PostgreSQL 18 on `EXPLAIN (ANALYZE, LEARNEDBTREE)` shows' => $has_option },
	'doc/access-method.md' => {
		"PostgreSQL 17's apply workers look rows up by btree and hash indexes only." =>
		  sub { defined $replicated{'identity learned'} ? $replicated{'identity learned'} eq 'not on subscribers' : undef },
		'rows are looked up by btree indexes on 16' => sub { $full_by->('served') },
		'by btree and hash indexes on 17' => sub { $full_by->('served hash') },
		'from 18 on by learnedbtree indexes, too' => sub { $full_by->('served hash learned') },
		'by sequential scans, as on 15' => sub { $full_by->('') } },
	'doc/install.md' => {
		'The extension is for PostgreSQL 15 to 18, and for 19 as far as its release candidate goes.' => \&is_supported,
		'New clusters of the image load the library: from 17 on by `session_preload_libraries`' => sub { image_loads_by('session') },
		'on 15 and 16 by `shared_preload_libraries`' => sub { image_loads_by('shared') },
		'on 15 and 16 `shared_preload_libraries` in its own' => sub { $found{standby} eq 'no' } },
	'doc/models.md' => { 'exclude cost less before PostgreSQL 18' => $skips },
	'doc/operations.md' => { 'Before PostgreSQL 18, an index scan that [skips]' => $skips },
	'doc/rollout.md' => {
		'On PostgreSQL 15 and 16, add the library to [shared_preload_libraries]' => $needs_preload,
		'the default is 16 from PostgreSQL 18 on' => sub { $default_depth->() eq '16' },
		'before PostgreSQL 18, index scans by conditions that leave out leading columns' => $skips },
	'doc/settings.md' => { 'before PostgreSQL 18, that index scans [skip]' => $skips },
	'doc/monitoring.md' => {
		'makes servers before PostgreSQL 18 read all of the index' => $skips,
		'Few, where `effective_io_concurrency` is 1, its default before PostgreSQL 18' => $one_block,
		"| $no_memory | PostgreSQL 15 and 16" => $needs_preload,
		'From PostgreSQL 17 on, `pg_stat_activity` names' => sub { $found{'README.md, waits by name in `pg_stat_activity`'} eq 'yes' },
		'From PostgreSQL 18 on, `EXPLAIN` has an option' => $has_option,
		'auto_explain turns the option on from 19 on' => $in_auto_explain,
		'| `off` | there is no shared memory for models | PostgreSQL 15 and 16' => $needs_preload,
		'ON CONFLICT` before PostgreSQL 18 on a table with a unique index' =>
		  sub { $found{'doc/access-method.md, `INSERT ... ON CONFLICT` on a table with such a unique index'} eq 'fails' } },
	'doc/scaling.md' => {
		'PostgreSQL 15 and 16 need it in `shared_preload_libraries` instead' => $needs_preload,
		"Tried with Citus' main branch of May 2026 on PostgreSQL 18" => [ 't/048_citus.pl', 'a lookup in a shard visits one index page, and the visibility map' ] },
	'doc/serving.md' => {
		'on PostgreSQL 15 and 16 without `shared_preload_libraries`' => $needs_preload,
		'[from 19 on](monitoring.md#explain) what a model did' => $in_auto_explain,
		'from 16 on subscribers of `REPLICA IDENTITY FULL` tables' => sub { $replicated{'full served'} eq 'yes' } });

# Do these words name the version at hand?
sub named
{
	my ($words) = @_;
	return $version >= $1 if $words =~ /\bfrom (?:PostgreSQL )?(1\d) on\b/i;
	return $version < $1 if $words =~ /\bbefore (?:PostgreSQL )?(1\d)\b/i;
	$words =~ s/\b(1\d) to (1\d)\b/join(' ', $1 .. $2)/e;
	return scalar grep { $_ == $version } $words =~ /\b1\d\b/g;
}

sub check_sentences
{
	my ($file) = @_;
	my %checks = %{ $sentences{$file} // {} };
	my %seen;
	foreach my $sentence (version_sentences("$root/$file"))
	{
		my $rest = $sentence;
		foreach my $part (keys %checks)
		{
			$seen{$part}++ if $rest =~ s/\Q$part\E//;
		}
		ok($rest ne $sentence && !names_version($rest), "$file: there is a check for each version in: $sentence");
	}
	foreach my $part (sort keys %checks)
	{
		is($seen{$part}, 1, "$file: there is one sentence with: $part");
		my $check = $checks{$part};
		if (ref $check eq 'ARRAY')
		{
			like(slurp_file("$root/test/$check->[0]"), qr/'\Q$check->[1]\E'/, "$file: $check->[0] looks at: $part");
			next;
		}
		my $is = $check->();
	  SKIP:
		{
			skip "$file, $part: this server cannot tell", 1 unless defined $is;
			is($is ? 'so' : 'not so', named($part) ? 'so' : 'not so', "$file, on PostgreSQL $version: $part");
		}
	}
	return;
}

# Which versions there are: the compiler knows them; of 19 there is a release candidate.
sub supported { return slurp_file("$root/src/server/compat.h") =~ /^#if PG_VERSION_NUM < (\d\d)0000 \|\| PG_VERSION_NUM >= (\d\d)0000$/m; }

sub is_supported { my ($oldest, $end) = supported(); return $version >= $oldest && $version < $end; }

sub check_supported
{
	my ($oldest, $end) = supported();
	is("$oldest to " . ($end - 1), '15 to 19', 'README.md and doc/install.md name all versions');
	like(slurp_file("$root/debian/pgversions"), qr/^$oldest\+$/m, 'so does the Debian package');
	diag('PostgreSQL 19 has been released: README.md and doc/install.md say that it has not') if sql('SHOW server_version') =~ /^19\.\d/;
	return;
}

# How the Docker image loads the library is decided by the version; and it has to be enough.
sub image_loads_by
{
	my ($wanted) = @_;
	my ($from) = slurp_file("$root/Dockerfile") =~ /if \[ "\$PG_MAJOR" -lt (\d+) \]; then preload=shared; else preload=session; fi/;
	return $wanted eq 'shared' ? $version < $from : $version >= $from && $found{session} =~ /without a restart/;
}

# ---- now find out ----

# Without the library.
sql('CREATE TABLE plain (k int, v int); INSERT INTO plain SELECT g, g FROM generate_series(1, 3000) g; CREATE INDEX plain_k ON plain (k);'
	  . 'CREATE TABLE learned AS TABLE plain; CREATE INDEX learned_k ON learned USING learnedbtree (k); ANALYZE');
ok(!serves_after('SELECT'), 'sessions without the library serve nothing');
foreach my $kind ('learned', 'served')
{
	my $index = $kind eq 'learned' ? 'learned_k' : 'plain_k';
	my $asked = asked_models($index, sub { sql(q(LOAD 'learnedbtree'; SELECT FROM ) . ($index =~ s/_k$//r) . ' WHERE k = 5') });
	my ($state, $reason) = split /\|/, sql("SELECT state, reason FROM learnedbtree_model('$index')");
	$found{"models $kind"} = $asked ? 'no' : $state eq 'off' && $reason =~ /\Q$no_memory\E/ ? 'yes' : "$state: $reason";
}
$found{standby} = by_standby();
like($found{standby}, qr/^(?:yes|no)\z/, 'a standby whose sessions load the library serves, or says why not');
$found{session} = by_session_preload();
$found{use} = by_first_use();

# With it.
foreach my $table ('ahead_none', 'ahead_some', 'ahead_off')
{
	sql("CREATE TABLE $table (k int); INSERT INTO $table SELECT generate_series(1, 40000); CREATE INDEX ${table}_k ON $table (k)");
	sql("VACUUM ANALYZE $table");
}
$counter->quit;
undef $counter;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\n");
$node->restart;
read_ahead();
find_out_replication();

# ---- and compare ----

my %checks = ('README.md' => { 'Support by version' => \%readme }, 'doc/install.md' => { 'Loading the library' => \%loading }, 'doc/access-method.md' => { 'Limits' => \%limits });
my @files = ((map { s{^\Q$root\E/}{}r } grep { !m{/next-major\.md$} } sort glob "$root/doc/*.md"), 'README.md');    # that one is about servers to come
cmp_ok(@files, '>', 5, 'the documentation is there');
foreach my $file (@files)    # README.md last: it sums up
{
	my @tables = version_tables("$root/$file");
	is(join('; ', map { $_->{under} } @tables), join('; ', sort keys %{ $checks{$file} // {} }), "$file: tables of versions are those that are checked");
	foreach my $table (@tables)
	{
		my $check = $checks{$file}{ $table->{under} } or next;
		is(join("\n", sort map { $_->[0] } @{ $table->{rows} }), join("\n", sort keys %$check), "$file, $table->{under}: each row has a check, each check a row");
		foreach my $row (@{ $table->{rows} })
		{
			my ($name, $cell) = ($row->[0], cell_of($table, $row, $version));
			next unless $check->{$name};
			ok(defined $cell, "$file, $name: a column for PostgreSQL $version") or next;
			my $is = $found{"$file, $name"} = $check->{$name}->('learned');
			SKIP:
			{
				skip "$file, $name: this server cannot tell", 1 unless defined $is;
				is($is, $cell, "$file, $name");
			}
			next unless $check == \%limits;
			is($found{"limit $name"} = $check->{$name}->('served'), of_this_version($row->[-1], $cell), "$file, $name: a served btree");
		}
	}
}
check_sentences($_) foreach @files;
check_supported();
$counter->quit;
$node->stop;
done_testing();
