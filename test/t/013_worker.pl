# Training in the background: what asks for it, the processes that do it, and everything that may come in between:
# settings, signals, locks, errors, dropped indexes and databases, a server without room for workers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('worker');
$node->init(allows_streaming => 1, $node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
learnedbtree.naptime = 50ms
learnedbtree.retrain_visits = 4
max_logical_replication_workers = 0
max_prepared_transactions = 1
restart_after_crash = on
CONF
$node->start;

my $objects = <<'SQL';
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
-- Tables of 20,000 keys, 1000 apart, on 500 leaves.
CREATE FUNCTION make(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %s (k int8)', name);
	EXECUTE format('INSERT INTO %s SELECT g * 1000 FROM generate_series(1, 20000) g', name);
	EXECUTE format('CREATE INDEX %s_k ON %s USING learnedbtree (k) WITH (fillfactor = 10)', name, name);
	EXECUTE format('ANALYZE %s', name);
END $$;
-- Five splits or more at a place that no call before has used.
CREATE SEQUENCE place;
CREATE FUNCTION split(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	at int8 := nextval('place') * 400000;
BEGIN
	EXECUTE format('INSERT INTO %s SELECT %s + g %% 999 FROM generate_series(1, 2500) g', name, at);
END $$;
-- Does the index give what the table has?
CREATE FUNCTION right_answers(name text, OUT answer bool) LANGUAGE plpgsql SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
	question text := format('SELECT md5(string_agg(k::text, '','')) FROM (SELECT k FROM %s WHERE k > 300000 ORDER BY k LIMIT 12000) q', name);
	by_table text;
	by_index text;
BEGIN
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_seqscan', 'on', true);
	EXECUTE question INTO by_table;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true), set_config('enable_seqscan', 'off', true);
	EXECUTE question INTO by_index;
	answer := by_table = by_index;
	EXECUTE format('SELECT $1 AND bool_and((SELECT count(*) FROM %s WHERE k = g * 1000) > 0) FROM generate_series(1, 20000, 7) g', name) INTO answer USING answer;
END $$;
SQL
$node->safe_psql('postgres', $objects);

my $is_worker = "backend_type = 'learnedbtree worker'";

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub split_leaves { sql(join(';', map { "SELECT split('$_')" } @_)); }
sub trained_at { return sql("SELECT coalesce(trained_at, '-infinity') FROM learnedbtree_model('$_[0]_k')"); }
sub since_log { return substr(slurp_file($node->logfile), $_[0]); }
sub log_size { return -s $node->logfile; }

# Is the index trained later than at that time, and no split since?
sub trained_since
{
	my ($name, $time, $what) = @_;
	ok(eventually($node, "SELECT trained_at > '$time' AND source = 'training' AND state = 'ready' FROM learnedbtree_model('${name}_k')"), $what)
	  or diag(sql("SELECT m::text FROM learnedbtree_model('${name}_k') m"));
}

sub reload
{
	my (%settings) = @_;
	sql("ALTER SYSTEM SET learnedbtree.$_ = '$settings{$_}'") foreach keys %settings;
	$node->reload;
	foreach my $name (keys %settings)
	{
		wait_until($node, "SELECT current_setting('learnedbtree.$name') = '$settings{$name}'");
	}
}

sub worker_gone { wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE $is_worker"); return 1; }

# The pid of the worker, made to come if need be; it has begun its work.
sub running
{
	my ($name) = @_;
	for (my $end = time + patience(); time < $end; sleep(0.1))
	{
		my $pid = sql("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE $is_worker AND wait_event_type = 'Extension'");
		return $pid if $pid ne '';
		split_leaves($name);
	}
	die 'there is no worker';
}

# Hold an index's lock and want a training: the worker comes, and stays until the lock is gone.
sub hold
{
	my ($session, $name) = @_;
	$session->query_safe("BEGIN; ALTER INDEX ${name}_k DEPENDS ON EXTENSION amcheck; SELECT split('$name')");
	$session->query_safe("SELECT learnedbtree_stat_get('${name}_k'::regclass)");
	return;
}

# Ask for a training, and see that it comes.
sub works
{
	my ($name, $what) = @_;
	my $time = trained_at($name);
	split_leaves($name);
	trained_since($name, $time, $what);
}

# ---- what asks for a training ----

sql("SELECT make('a'), make('b'), make('quiet'), learnedbtree_stat_reset()");
is(sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'learnedbtree%'"), '0', 'nobody is there before there is work');
works('a', 'leaf splits make the worker train');
is(sql("SELECT splits_since < 4 AND training_ms IS NOT NULL FROM learnedbtree_model('a_k')"), 't', 'the counts begin anew');
# (It does not stay for long: it may be gone before it is seen.)
ok(eventually($node, "SELECT count(*) = 1 AND bool_and($is_worker AND datname = 'postgres' AND query = 'learnedbtree: training public.a_k') "
		  . "FROM pg_stat_activity WHERE backend_type LIKE 'learnedbtree%'", again => sub { split_leaves('a') }), 'the worker is seen, and what it does')
  or diag(sql("SELECT string_agg(concat_ws(' ', backend_type, datname, query), ', ') FROM pg_stat_activity"));
is(sql("SELECT trainings FROM learnedbtree_stat WHERE indexrelname = 'quiet_k'"), '0', 'an index without changes is left alone');
my $time = trained_at('a');
sql('DELETE FROM a WHERE k BETWEEN 5000000 AND 9000000; VACUUM a; SET enable_seqscan = off; SET enable_bitmapscan = off; '
	  . 'SELECT sum((SELECT count(*) FROM a WHERE k = 5000000 + g * 1000)) FROM generate_series(100, 3900, 100) g');
trained_since('a', $time, 'so do lookups on pages that VACUUM has deleted');
sql("SELECT split('a'), split('a'), split('b')");
# (before it comes, it is not there either)
ok(eventually($node, "SELECT a.splits_since < 4 AND b.splits_since < 4 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE $is_worker) "
		  . "FROM learnedbtree_model('a_k') a, learnedbtree_model('b_k') b"), 'the worker ends');

# The threshold.
my %before = map { ($_ => trained_at($_)) } qw(b quiet);
sql("SET learnedbtree.retrain_visits = 1000000; SELECT split('b')");
sql("SET learnedbtree.retrain_visits = -1; SELECT split('quiet')");
sleep(1);
is(join(' ', map { trained_at($_) eq $before{$_} || 0 } qw(b quiet)), '1 1', 'few visits lost do not: by the setting, by default');
sql("SET learnedbtree.retrain_visits = 1; SELECT split('b')");
trained_since('b', $before{b}, 'the setting lowered');
sql("SET learnedbtree.retrain_visits = -1; SELECT split('quiet') FROM generate_series(1, 20)");
is(trained_at('quiet'), $before{quiet}, 'not while nobody looks up what has split');
sql('SET learnedbtree.retrain_visits = -1; SET enable_seqscan = off; SET enable_bitmapscan = off; '
	  . 'SELECT sum((SELECT count(*) FROM quiet WHERE k = p * 400000 + g)) FROM generate_series(1, 999, 3) g, '
	  . '(SELECT generate_series(last_value - 19, last_value) AS p FROM place) q');
trained_since('quiet', $before{quiet}, 'what a training costs is the default');

# ---- settings ----

is($node->psql('postgres', 'SELECT learnedbtree_model_memory(); SET learnedbtree.autotrain = off'), 3, 'a session cannot change autotrain');
reload(autotrain => 'off');
ok(worker_gone(), 'autotrain off: it ends at once');
$time = trained_at('a');
split_leaves('a', 'a');
sleep(0.5);
is(trained_at('a'), $time, 'and nothing is trained');
is(sql("SELECT splits_since >= 4 FROM learnedbtree_model('a_k')"), 't', 'though it would be time');
reload(autotrain => 'on');
sql("INSERT INTO a VALUES (1)");
trained_since('a', $time, 'autotrain on: the next use brings the training');

works('a', 'a worker is there');
my $log = log_size();
reload(naptime => '40ms', retrain_visits => '10', max_model_memory => '100MB', enable => 'off', enable_insert => 'off',
	enable_leaf_cache => 'off', enable_buffer_hint => 'off');
reload(enable => 'on', enable_insert => 'on', enable_leaf_cache => 'on', enable_buffer_hint => 'on');
works('a', 'it goes on while all settings change');
unlike(since_log($log), qr/FATAL|ERROR|background worker/, 'without complaint');
sql('ALTER SYSTEM RESET learnedbtree.retrain_visits');

reload(naptime => '2500ms');
works('a', 'with a long naptime');
$time = trained_at('a');
split_leaves('a');
trained_since('a', $time, 'the next training comes, too');
is(sql("SELECT trained_at - '$time'::timestamptz >= interval '2.4 s' FROM learnedbtree_model('a_k')"), 't', 'but not before the naptime is over')
  or diag("$time, " . trained_at('a'));
reload(naptime => '1h');
sql("SELECT learnedbtree_train('a_k')");
$time = trained_at('a');
split_leaves('a');
sleep(0.5);
is(trained_at('a'), $time, 'an hour is not over');
reload(naptime => '50ms');
sql('INSERT INTO a VALUES (1)');
trained_since('a', $time, 'a shorter one counts at once');
sql("SELECT learnedbtree_train('a_k')");

# ---- signals ----

foreach my $signal (qw(pg_terminate_backend pg_cancel_backend))
{
	works('b', "before $signal");
	my $pid = running('b');
	sql("SELECT $signal($pid)");
	if ($signal eq 'pg_terminate_backend')
	{
		wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	}
	works('b', "after $signal");
}

# ---- locks, and objects that go away ----

$log = log_size();
$time = trained_at('a');
my $holder = $node->background_psql('postgres');
hold($holder, 'a');
works('b', 'an index that is locked does not keep the worker from others');
is($holder->query_safe("SELECT trained_at = '$time' FROM learnedbtree_model('a_k')"), 't', 'it waits itself');
$holder->query_safe('ROLLBACK');
trained_since('a', $time, 'and is trained when the lock is gone');
$holder->query_safe('BEGIN; DROP INDEX b_k');
$holder->query_safe('COMMIT');
hold($holder, 'a');
wait_until($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE $is_worker");
$holder->query_safe('DROP TABLE a, b; COMMIT');
$holder->quit;
works('quiet', 'dropped with a training asked for: others go on');
ok(eventually($node, 'SELECT learnedbtree_model_memory() = (learnedbtree_model($$quiet_k$$)).bytes'), 'nothing is left behind');
unlike(since_log($log), qr/FATAL|ERROR/, 'and nobody complains');

# Two databases; one without work.
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(second third);
$node->safe_psql($_, "$objects SELECT make('a')") foreach qw(second third);
sql("SELECT make('a'), make('b')");
my %holder = map { $_ => $node->background_psql($_) } qw(second postgres);
hold($holder{$_}, 'a') foreach qw(second postgres);
ok(eventually($node, "SELECT string_agg(datname, ' ' ORDER BY datname) = 'postgres second' FROM pg_stat_activity WHERE $is_worker"),
	'two databases are served at once, one without work is not');
foreach my $session (values %holder)
{
	$session->query_safe('ROLLBACK');
	$session->quit;
}
ok(eventually($node, "SELECT splits_since < 4 FROM learnedbtree_model('a_k')", database => 'second'), 'the other database is served');
# The worker is connected still, and another training wanted.
$node->safe_psql('second', "SELECT split('a')");
is($node->psql('postgres', 'CREATE DATABASE copy TEMPLATE second'), 0, 'a database can be a template though a worker was there');
is($node->safe_psql('copy', "SELECT right_answers('a')"), 't', 'the copy answers');
$node->safe_psql('second', "SELECT split('a')");
is($node->psql('postgres', 'DROP DATABASE second'), 0, 'and be dropped');
$node->safe_psql('postgres', 'CREATE ROLE developer LOGIN CREATEDB; ALTER DATABASE third OWNER TO developer');
# A worker that waits for a locked table goes before who waits for it.
$node->safe_psql('third', q{BEGIN; LOCK a; SELECT split('a'); PREPARE TRANSACTION 'locked'});
ok(eventually($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE $is_worker AND datname = 'third'"), 'a worker comes that cannot train');
my ($rc, $out, $err) = $node->psql('postgres', 'ALTER DATABASE third RENAME TO fourth');
like($err, qr/There is 1 prepared transaction using the database/, 'and goes where the database is wanted');
$node->safe_psql('third', q{COMMIT PREPARED 'locked'});
$node->safe_psql('third', "SELECT split('a')");
ok(eventually($node, q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'third' AND backend_type = 'client backend')}), 'clients are gone');
# Mostly before the worker has left.
is($node->psql('postgres', 'DROP DATABASE third WITH (FORCE)', extra_params => [ '-U', 'developer' ]), 0, 'and be dropped by force, by its owner') or diag(since_log($log));
works('a', 'after that all is well');
unlike(since_log($log), qr/FATAL: (?!.*(terminating background worker|database .* does not exist))|PANIC/, 'no other process was hurt');

# A database that a worker cannot connect to does not keep others from theirs.
$node->safe_psql('postgres', 'CREATE DATABASE closed');
$node->safe_psql('closed', "$objects SELECT make('a')");
$holder = $node->background_psql('closed');
$holder->query_safe('SELECT 1');
worker_gone();
$log = log_size();
sql('ALTER DATABASE closed ALLOW_CONNECTIONS off');
$holder->query_safe('SELECT split($$a$$)') for 1 .. 3;
ok($node->wait_for_log(qr/FATAL: .*"closed" is not currently accepting connections/, $log), 'a worker is refused');
$holder->query_safe('SELECT split($$a$$)') for 1 .. 3;
works('a', 'another database is served');
my @refused = since_log($log) =~ /FATAL/g;
is(scalar @refused, 1, 'the other one is left alone');
$holder->quit;
sql('DROP DATABASE closed');

# ---- a crash ----

my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $victim_pid = $victim->query_safe('SELECT pg_backend_pid()');
$log = log_size();
kill('KILL', $victim_pid);
$node->wait_for_log(qr/all server processes terminated; reinitializing/, $log);
wait_until($node, 'SELECT true');
eval { $victim->quit; };
is(sql("SELECT right_answers('a')"), 't', 'after a crash: the answers are right');
trained_since('a', '-infinity', 'there is a model');
works('a', 'and the worker comes');

# ---- models that do not pay ----

# The second column's type has no key code: all keys tie.  (A new model would get a chance of its own, and
# growth by a quarter would bring one.)
reload(autotrain => 'off');
sql(<<'SQL');
CREATE FUNCTION scattered(g int8) RETURNS int8[] LANGUAGE sql IMMUTABLE AS $$ SELECT ARRAY[hashint8extended($1, 42)] $$;
CREATE TABLE tie (a int4, t int8[]);
INSERT INTO tie SELECT 1, scattered(g) FROM generate_series(1, 200000) g;
CREATE INDEX tie_i ON tie USING learnedbtree (a, t) WITH (fillfactor = 60);
SQL
sql("INSERT INTO tie SELECT 1, scattered(g) FROM generate_series(300001, 340000) g");
is(model_state($node, 'tie_i'), 'not paying', 'a model that tells nothing is given up') or diag(sql("SELECT m::text FROM learnedbtree_model('tie_i') m"));
is(sql("SELECT reason LIKE '%predictions%failed%' FROM learnedbtree_model('tie_i')"), 't', 'with the reason');
sql("SELECT learnedbtree_stat_reset('tie_i'); INSERT INTO tie SELECT 1, scattered(g) FROM generate_series(400001, 401000) g");
is(stat_of($node, 'tie_i', 'inserts'), '0', 'inserts no longer ask it');
is(sql("SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum((SELECT count(*) FROM tie WHERE a = 1 AND t = scattered(g))) FROM generate_series(-50, 200) g"),
	'200', 'lookups are answered');
is(stat_of($node, 'tie_i', 'verified'), '0', 'as in btree');
is($node->psql('postgres', check_sql('tie_i')), 0, 'amcheck is content');
sql("SELECT learnedbtree_train('tie_i')");
is(model_state($node, 'tie_i'), 'ready', 'a training gives it another chance');
sql("INSERT INTO tie SELECT 1, scattered(g) FROM generate_series(500001, 540000) g");
is(model_state($node, 'tie_i'), 'not paying', 'which it does not use');
sql("DROP TABLE tie");
reload(autotrain => 'on');

# ---- a damaged index ----

sql("SELECT make('broken'), learnedbtree_train('a_k')");
sql('CHECKPOINT');
my $file = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('broken_k')");
$node->stop;
{
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, 24 + 8, 0);
	read($fh, my $root, 8);
	my ($block, $level) = unpack('LL', $root);
	die 'the tree has not the height expected' if $level != 2;
	seek($fh, $block * 8192, 0);
	read($fh, my $page, 8192);
	my ($id) = unpack('L', substr($page, 24 + 4, 4));	# the second downlink of the root
	my ($hi, $lo) = unpack('SS', substr($page, $id & 0x7fff, 4));
	seek($fh, ($hi << 16 | $lo) * 8192, 0);
	print $fh "\0" x 8192;
	close $fh or die "$file: $!";
}
$log = log_size();
$node->start;
sql('ALTER DATABASE postgres SET exit_on_error = on');    # is not for the worker, who would have to begin anew each time
my $lookup = 'SET enable_seqscan = off; SELECT count(*) FROM broken WHERE k =';
is(sql("$lookup 5000"), '1', 'level 1 is damaged: the saved model still serves');
ok($node->wait_for_log(qr/index "broken_k" contains unexpected zero page.*training the model of the index with OID/s, $log), 'the worker says what is wrong');
is(sql("SELECT right_answers('b')"), 't', 'others are not affected');
works('b', 'and trained');
sleep(2);
my @complaints = since_log($log) =~ /unexpected zero page/g;
is(scalar @complaints, 1, 'it does not try over and over');
is(sql("$lookup 6000"), '1', 'lookups go on');
sql('ALTER DATABASE postgres RESET exit_on_error');
sql('DROP TABLE broken');

# ---- a demand that comes while the worker goes ----

# With the catalog locked, the worker stops in the sweep before its end, where it looks up indexes that it has not trained.
# (If it has gone before, another one comes, and once more.)
my $seen;
for (my $limit = time + patience(); !$seen && time < $limit;)
{
	my ($lock, $session) = map { $node->background_psql('postgres') } 1 .. 2;
	my $stuck = q{SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'pg_class'::regclass};
	$session->query_safe("SELECT split('a')") for 1 .. 2;
	worker_gone();
	reload(naptime => '3s');
	works('a', 'a worker is there');
	$time = trained_at('a');
	$lock->query_safe($stuck);
	$lock->query_safe('BEGIN; LOCK pg_class IN ACCESS EXCLUSIVE MODE');
	for (my $end = time + 2; time < $end && !$seen; sleep(0.05)) { $seen = $lock->query_safe($stuck) eq 't'; }
	$session->query_safe("SELECT split('a')");    # has read what it needs of the catalog
	$lock->query_safe('COMMIT');
	$_->quit foreach $lock, $session;
	trained_since('a', $time, 'a demand is served that came while the worker was about to end, and had to rest first');
	reload(naptime => '50ms');
}
ok($seen, 'it was about to end');

# ---- what has gone, and what is about to come ----

# (From 17 on, sessions do not see drops before they have loaded the library, and nobody loads it to drop a served index.)
{
	worker_gone();    # that of the test before: at its end it would forget what is to stay here
	my $maker = $node->background_psql('postgres');
	my $balance = 'SELECT learnedbtree_model_memory() = sum((learnedbtree_model(indexrelid)).bytes) FROM learnedbtree_stat';
	my $coming = q{SELECT state FROM learnedbtree_model('coming_k')};
	sql('CREATE TABLE unseen AS SELECT g AS k FROM generate_series(1, 20000) g; CREATE INDEX unseen_k ON unseen (k)');
	sql(q{SET learnedbtree.btree_indexes = 'unseen_k'; SELECT learnedbtree_train('unseen_k')});
	$maker->query_safe(q{BEGIN; SELECT make('coming')});
	sql(q{BEGIN; SELECT make('never'); ROLLBACK});
	sql('DROP TABLE unseen; CREATE DATABASE unseen');
	$node->safe_psql('unseen', "$objects SELECT make('a')");
	sql('DROP DATABASE unseen');
	is($maker->query_safe($balance), 'f', 'what has not been committed leaves a model, and so does a drop that the library has not seen');
	works('a', 'a worker comes');
	worker_gone();
	is($maker->query_safe("$balance; $coming"), "t\nready", 'at its end it forgets them, and not what may still be committed');
	$maker->query_safe('COMMIT');
	is($maker->query_safe($coming), 'ready', 'which then is there');
	$maker->quit;
	sql(q{LOAD 'learnedbtree'; DROP TABLE coming});
	is(sql($balance), 't', 'a session that has the library forgets what it drops');
	sql('CREATE DATABASE seen');
	$node->safe_psql('seen', "$objects SELECT make('a')");
	is(sql($balance), 'f', 'another database has a model');
	sql("LOAD 'learnedbtree';\nDROP DATABASE seen");
	is(sql($balance), 't', '... which is forgotten when it is dropped');

	# Nothing of these asks for a worker.
	worker_gone();
	sql(q{DO $$ BEGIN
	          FOR i IN 1..1000 LOOP
	              BEGIN
	                  CREATE TABLE undone AS SELECT g AS k FROM generate_series(1, 700) g;
	                  CREATE INDEX undone_k ON undone USING learnedbtree (k);
	                  RAISE EXCEPTION 'not that';
	              EXCEPTION WHEN raise_exception THEN
	              END;
	          END LOOP;
	      END $$});
	ok(eventually($node, $balance), 'many that were rolled back are forgotten');
}

# ---- a standby ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
is($standby->safe_psql('postgres', "SELECT right_answers('a')"), 't', 'a standby answers');
ok(eventually($standby, "SELECT source = 'training' FROM learnedbtree_model('a_k')"), 'its own worker trains');
$time = $standby->safe_psql('postgres', "SELECT trained_at FROM learnedbtree_model('a_k')");
sql('INSERT INTO a SELECT 100000 + g * 20000 + h FROM generate_series(1, 900) g, generate_series(1, 20) h ORDER BY random()');
sql('INSERT INTO a SELECT 12345000 + g % 1000 FROM generate_series(1, 5000) g');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$standby->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; '
	  . 'SELECT sum((SELECT count(*) FROM a WHERE k = 12345000 + g * 7 % 1000 AND g % 3 = 0)), sum((SELECT count(*) FROM a WHERE k = g * 1000)) FROM generate_series(1, 9000) g');
ok(eventually($standby, "SELECT trained_at > '$time' AND source = 'training' FROM learnedbtree_model('a_k')"),
	'lookups there that go wrong make it train again') or diag($standby->safe_psql('postgres', "SELECT m::text FROM learnedbtree_model('a_k') m"));
is($standby->safe_psql('postgres', "SELECT right_answers('a')"), 't', 'its answers are right');
$standby->stop;

# ---- no room for workers ----

{
	$node->append_conf('postgresql.conf', "max_worker_processes = 0\nmax_parallel_workers = 0\n");
	$log = log_size();
	$node->restart;
	is(sql("SELECT right_answers('a')"), 't', "no workers: the answers are right");
	is(model_state($node, 'a_k'), 'ready', "no workers: there is a model");
	$time = trained_at('a');
	sql('INSERT INTO a SELECT 15555000 + g % 1000 FROM generate_series(1, 5000) g');
	sql('SET enable_seqscan = off; SET enable_bitmapscan = off; '
		  . 'SELECT sum((SELECT count(*) FROM a WHERE k = 15555000 + g * 7 % 1000 AND g % 3 = 0)) + sum((SELECT count(*) FROM a WHERE k = g * 1000)) FROM generate_series(1, 9000) g') for 1 .. 3;
	is(trained_at('a'), $time, "no workers: lookups that go wrong do not train");
	split_leaves('a');
	my @hints = since_log($log) =~ /out of background worker slots.*\n.*HINT: .*max_worker_processes/g;
	is(scalar @hints, 1, "no workers: the log says so, once") or diag(since_log($log));
	is(sql("SELECT right_answers('a')"), 't', "no workers: still right");
	sql("SELECT learnedbtree_train('a_k')");
	ok(trained_at('a') gt $time, "no workers: a call trains");
}
$node->append_conf('postgresql.conf', "max_worker_processes = 1\n");
$node->restart;
is(sql("SELECT right_answers('a')"), 't', 'with one worker: the answers are right');
works('a', 'and it comes');
is($node->psql('postgres', check_sql('a_k', 'b_k')), 0, 'amcheck is content');
my $from = time;
ok(worker_gone(), 'without work, the worker ends');
cmp_ok(time - $from, '<', 60, 'in good time');

$node->stop;
done_testing();
