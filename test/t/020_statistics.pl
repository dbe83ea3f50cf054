# Counts outlast restarts and crashes: the statistics file, and everything that can happen to it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_node('statistics', allows_streaming => 1);
my $file = $node->data_dir . '/pg_stat_tmp/learnedbtree.stat';

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub log_size { return -s $node->logfile; }
sub since_log { return substr(slurp_file($node->logfile), $_[0]); }

# How long to wait between two writes of the file.
sub save_interval
{
	my ($interval) = @_;
	sql("ALTER SYSTEM SET learnedbtree.stat_save_interval = '$interval'");
	$node->reload;
	wait_until($node, "SELECT current_setting('learnedbtree.stat_save_interval') = '$interval'");
}

# All that is counted of an index.
sub counts
{
	my ($index) = @_;
	return stat_of($node, $index, "to_jsonb(learnedbtree_stat) - '{relid,relname,schemaname,indexrelname}'::text[]");
}

# Look so many keys up by an index.
sub lookup_query { return "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum((SELECT count(*) FROM $_[0] WHERE k = g)) FROM generate_series(1, $_[1]) g;"; }
sub look_up { return sql(lookup_query(@_)); }

# The database and index of each entry in the file.
sub entries
{
	return () unless -e $file;
	my $bytes = slurp_file($file);
	my ($size, $n) = unpack('x16 L L', $bytes);
	return sort map { join('/', unpack('L L', substr($bytes, 32 + $_ * $size, 8))) } 0 .. $n - 1;
}

# Has the file entries like this before long (or none)?  Sessions may still be ending.
sub entries_become
{
	my ($pattern, $wanted, $what) = @_;
	for (1 .. 120)
	{
		look_up('t', 1);
		my $found = grep { /$pattern/ } entries();
		if (!!$found == $wanted)
		{
			pass($what);
			return;
		}
		sleep(0.25);
	}
	fail($what);
}

sub oid_of { return sql("SELECT d.oid || '/' || '$_[0]'::regclass::oid FROM pg_database d WHERE datname = 'postgres'"); }

sub crash
{
	$node->stop('immediate');
	$node->start;
}

$node->append_conf('postgresql.conf', "restart_after_crash = on\nlearnedbtree.stat_save_interval = 1h\n");
$node->reload;
sql(<<'SQL');
CREATE TABLE t (k int8);
INSERT INTO t SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t USING learnedbtree (k);
CREATE TABLE u (k int8);
INSERT INTO u SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX u_k ON u USING learnedbtree (k);
SQL

# ---- restarts ----

look_up('t', 300);
my $before = counts('t_k');
like($before, qr/"lookups": 300\b.*"verified": 300\b/, 'what is counted');
$node->restart;
is(counts('t_k'), $before, 'a restart loses nothing');
look_up('t', 50);
$node->restart;
like(counts('t_k'), qr/"lookups": 350\b/, 'counting goes on');

# Sessions that end with the server have counted, too.
my $session = $node->background_psql('postgres');
my $other = $node->background_psql('postgres');
$session->query_safe(lookup_query('t', 100));
$other->query_safe(lookup_query('t', 10) . lookup_query('u', 20));
$node->restart;
like(counts('t_k'), qr/"lookups": 460\b/, 'open sessions end: nothing is lost of one index');
like(counts('u_k'), qr/"lookups": 20\b/, 'and of the other');
eval { $_->quit } foreach ($session, $other);

# The last sessions end at different times, some in the middle of a transaction.
$session = $node->background_psql('postgres');
$session->query_safe('BEGIN;' . lookup_query('t', 40));
$node->restart;
like(counts('t_k'), qr/"lookups": 500\b/, 'nor of a transaction that did not end');
eval { $session->quit };

# ---- crashes ----

# The first counts after a start are saved at once; then an hour is to pass.
look_up('t', 1);
$session = $node->background_psql('postgres');
$session->query_safe(lookup_query('t', 7));
$before = counts('t_k');
crash();
eval { $session->quit };
like($before, qr/"lookups": 508\b/, 'before a crash');
like(counts('t_k'), qr/"lookups": 501\b/, 'a crash loses what was counted since the file was written, and no more');

save_interval('0');
$session = $node->background_psql('postgres');
$session->query_safe(lookup_query('t', 7));
wait_until($node, "SELECT lookups = 508 FROM learnedbtree_stat WHERE indexrelname = 't_k'");
$before = counts('t_k');
crash();
eval { $session->quit };
is(counts('t_k'), $before, 'a crash loses nothing that is in the file');

$session = $node->background_psql('postgres');
$session->query_safe(lookup_query('t', 3));
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$before = counts('t_k');
my $offset = log_size();
kill 'KILL', $pid;
$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
wait_until($node, 'SELECT true');
eval { $session->quit };
is(counts('t_k'), $before, 'nor does a backend that is killed');

# ---- resets ----

is(stat_of($node, 't_k', 'stats_reset IS NULL'), 't', 'never reset');
$before = counts('u_k');
sql("SELECT learnedbtree_stat_reset('t_k')");
my $reset = counts('t_k');
crash();
is(counts('t_k'), $reset, 'a reset survives a crash');
like($reset, qr/"lookups": 0\b.*"trainings": 0\b/, 'all is zero');
is(stat_of($node, 't_k', "stats_reset BETWEEN now() - interval '5 minutes' AND now()"), 't', 'the time of the reset is known');
is(counts('u_k'), $before, 'the other index keeps its counts');
sql("SELECT learnedbtree_stat_reset('t'), learnedbtree_stat_reset(0)");
is(counts('u_k'), $before, 'what is not an index of ours is not reset');
look_up('t', 5);
like(counts('t_k'), qr/"lookups": 5\b/, 'counting begins anew');
sql('SELECT learnedbtree_stat_reset()');
sql('CREATE INDEX t_new ON t USING learnedbtree (k, k)');
crash();
is(sql('SELECT count(*), count(DISTINCT stats_reset), sum(lookups) FROM learnedbtree_stat'), '3|1|0', 'the whole database is reset');
is(stat_of($node, 't_k', "stats_reset > '" . ($reset =~ /"stats_reset": "([^"]+)"/)[0] . "'"), 't', 'later than the index before');
sql('DROP INDEX t_new');

# ---- many writers ----

save_interval('0');
look_up('t', 1);
my ($lookups) = counts('t_k') =~ /"lookups": (\d+)/;
my $script = $node->basedir . '/lookup.sql';
append_to_file($script, "SET enable_seqscan = off;\nSELECT count(*) FROM t WHERE k = 77;\n");
$node->command_ok([ 'pgbench', '-n', '-C', '-c', '8', '-j', '2', '-t', '25', '-f', $script, $node->connstr('postgres') ],
	'eight clients that connect for each lookup');
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '25', '-f', $script, $node->connstr('postgres') ],
	'eight clients that stay');
wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'");
look_up('t', 1);	# alone: nobody else is at the file, as may have been when the last of the others came
crash();
my ($after) = counts('t_k') =~ /"lookups": (\d+)/;
is($after - $lookups, 401, 'each has been counted once, and is in the file');
ok(!-e "$file.tmp", 'no temporary file is left');

# The first to use a fresh server come all at once: one of them reads the file, and the others wait.  (Those that come
# while another one is training leave their scan to btree's engine.)
my $scans = stat_of($node, 't_k', 'lookups + delegated');
foreach my $try (1 .. 3)
{
	$node->restart;
	$node->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '1', '-f', $script, $node->connstr('postgres') ], 'eight first clients');
	wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'");
	is(stat_of($node, 't_k', 'lookups + delegated'), $scans + 8 * $try, 'nothing is read twice, and nothing counted is lost');
}

# ---- what is gone ----

sql('CREATE TABLE gone (k int8); INSERT INTO gone SELECT g FROM generate_series(1, 1000) g; CREATE INDEX gone_k ON gone USING learnedbtree (k)');
look_up('gone', 1);
my $oid = oid_of('gone_k');
entries_become("^$oid\$", 1, 'an index is in the file');
sql('REINDEX INDEX gone_k');
like(counts('gone_k'), qr/"lookups": 1\b.*"trainings": 2\b/, 'REINDEX keeps its counts');
sql('DROP TABLE gone');
entries_become("^$oid\$", 0, 'and no more when it was dropped');
sql('CREATE DATABASE gone');
my $database = sql("SELECT oid FROM pg_database WHERE datname = 'gone'");
my $objects = 'CREATE EXTENSION learnedbtree; CREATE TABLE d (k int8); INSERT INTO d SELECT g FROM generate_series(1, 1000) g; CREATE INDEX d_k ON d USING learnedbtree (k)';
$node->safe_psql('gone', $objects);
entries_become("^$database/", 1, 'an index of another database is in the file');
sql("LOAD 'learnedbtree'; DROP DATABASE gone");
entries_become("^$database/", 0, 'and no more when the database was dropped');

# A session without the library drops a database: the next worker notices, wherever it works.
sql('CREATE DATABASE gone');
$database = sql("SELECT oid FROM pg_database WHERE datname = 'gone'");
$node->safe_psql('gone', $objects);
sql('DROP DATABASE gone');
sql("ALTER SYSTEM SET learnedbtree.naptime = '10ms'");
$node->reload;
sql('ALTER INDEX u_k SET (retrain_splits = 1)');
sql('INSERT INTO u SELECT g FROM generate_series(1, 5000) g');
entries_become("^$database/", 0, 'a worker sweeps out what nobody has noticed');

# ---- a base backup does not take the file along ----

look_up('t', 1);
ok(-s $file, 'there is a file');
$node->backup('copy');
ok(!-e $node->backup_dir . '/copy/pg_stat_tmp/learnedbtree.stat', 'a base backup has none');

# A standby counts for itself.
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
is(stat_of($standby, 't_k', 'lookups'), '0', 'a standby starts from zero');
is($standby->safe_psql('postgres', lookup_query('t', 30)), '30', 'it looks up');
$standby->restart;
is(stat_of($standby, 't_k', 'lookups'), '30', 'and keeps its own counts over a restart');
$standby->stop;

# ---- damage ----

$node->stop;
my $good = slurp_file($file);
$node->start;
my $whole = counts('u_k');
like($whole, qr/"inserts": [1-9]/, 'before the damage');

sub with_file
{
	my ($bytes, $complaint, $what) = @_;
	$node->stop;
	unlink $file;
	append_to_file($file, $bytes);
	my $from = log_size();
	$node->start;
	my $counts = counts('u_k');
	if (defined $complaint)
	{
		like(since_log($from), qr/LOG:  ignoring the statistics file "pg_stat_tmp\/learnedbtree\.stat"\n.*DETAIL:  $complaint/, "$what: the log says so");
		like($counts, qr/"inserts": 0\b/, "$what: counts start from zero");
	}
	else
	{
		unlike(since_log($from), qr/statistics file/, "$what: the log is silent");
	}
	is(look_up('t', 2), 2, "$what: the server works");
	return $counts;
}

sub changed { my ($at, $bytes) = @_; my $copy = $good; substr($copy, $at, length $bytes, $bytes); return $copy; }

is(with_file($good, undef, 'the file put back'), $whole, 'the counts are back, too');
with_file(changed(100, chr(ord(substr($good, 100, 1)) ^ 1)), 'Its checksum is wrong', 'a bit flipped');
with_file(substr($good, 0, length($good) - 1), 'Its length is wrong', 'a byte short');
with_file($good . "\0", 'Its length is wrong', 'a byte too many');
with_file(substr($good, 0, 20), 'It is not a statistics file', 'a header cut off');
with_file("x" x 5000, 'It is not a statistics file', 'something else');
with_file(changed(4, pack('L', 99)), 'It was written by another version', 'another layout');
with_file(changed(8, pack('Q', 1)), 'It was written by another database cluster', 'another cluster');
with_file(changed(20, pack('L', 0x7fffffff)), 'Its length is wrong', 'a number without sense');
with_file('', undef, 'an empty file');
$node->stop;
unlink $file;
mkdir $file or die;
$node->start;
is(look_up('t', 2), 2, 'a folder in its place: the server works');
$node->stop;
rmdir $file or die;
$node->start;

# ---- a file that cannot be written ----

save_interval('0');
look_up('t', 1);
mkdir "$file.tmp" or die;
$offset = log_size();
is(look_up('t', 1), 1, 'a file that cannot be written is no error') for 1 .. 3;
sql("SELECT learnedbtree_stat_reset('u_k')");
my $complaints = () = since_log($offset) =~ /could not write the statistics file/g;
is($complaints, 1, 'the log says it once');
unlike(since_log($offset), qr/ERROR/, 'and nothing worse');
rmdir "$file.tmp" or die;
look_up('t', 1);
$before = counts('t_k');
crash();
is(counts('t_k'), $before, 'when it can be written again, it is');

# ---- the view ----

is(sql('SELECT count(*), bool_and(s.relid = a.relid AND s.relname = a.relname AND s.indexrelname = a.indexrelname AND s.schemaname = a.schemaname) FROM learnedbtree_stat s JOIN pg_stat_all_indexes a USING (indexrelid)'),
	'2|t', 'learnedbtree_stat joins with pg_stat_all_indexes');

$node->stop;
done_testing();
