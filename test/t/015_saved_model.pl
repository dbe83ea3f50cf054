# The saved model in the metapage: used by the first lookup after a restart, a crash, a promotion, a base backup;
# damaged, forged and foreign ones; WAL replay with wal_consistency_checking; those of indexes that were defined otherwise.
# LBT_SEED makes other damages.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant { PAGE => 8192, SPARE => 72, MAGIC => 0x4c425433 };	# the metapage's bytes behind nbtree's own

my $seed = $ENV{LBT_SEED} || 20241105;
srand($seed);
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off;';
my $by_table = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;';

my $node = PostgreSQL::Test::Cluster->new('saved');
$node->init(allows_streaming => 1, $node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
configure_node($node);
$node->append_conf('postgresql.conf', "learnedbtree.naptime = 50ms\nlearnedbtree.retrain_visits = 4\nwal_keep_size = 1GB\npost_auth_delay = 2\n");
$ENV{PGOPTIONS} = '-c post_auth_delay=0';
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (k int8, d timestamptz, v int4);
INSERT INTO t SELECT g * 100 + (g * 7919) % 83, timestamptz '2020-01-01 00:00+00' + g * interval '1 min', (g * 7919) % 100003 FROM generate_series(1, 30000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 10);
CREATE INDEX t_d ON t USING learnedbtree (d DESC) WITH (fillfactor = 10);
CREATE INDEX t_vk ON t USING learnedbtree (v, k) WITH (fillfactor = 10);
CREATE UNLOGGED TABLE u (k int8);
INSERT INTO u SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX u_k ON u USING learnedbtree (k) WITH (fillfactor = 10);
CREATE TABLE c (k varchar(10), n int4);
INSERT INTO c SELECT g, g FROM generate_series(1, 20000) g;
CREATE INDEX c_n ON c USING learnedbtree (n) WITH (fillfactor = 10);
CREATE TABLE one (n int8, m int8);
INSERT INTO one SELECT g, -g FROM generate_series(1, 20000) g;
CREATE INDEX one_n ON one USING learnedbtree (n) WITH (fillfactor = 10);
VACUUM ANALYZE t, u, c, one;
SQL
# (From here on, as the WAL becomes as large as all pages that are changed.)
$node->append_conf('postgresql.conf', "wal_consistency_checking = 'all'\n");
my @indexes = qw(t_k t_d t_vk);

sub answers
{
	my ($server, $way) = @_;
	return $server->safe_psql('postgres', "$way SELECT "
		  . "(SELECT count(*) FROM generate_series(1, 30000, 11) g JOIN t ON k = g * 100 + (g * 7919) % 83),"
		  . "(SELECT md5(string_agg(k::text, ',')) FROM (SELECT k FROM t WHERE k BETWEEN 200000 AND 900000 ORDER BY k) q),"
		  . "(SELECT md5(string_agg(k::text, ',')) FROM (SELECT k FROM t WHERE k < 500000 ORDER BY k DESC LIMIT 500) q),"
		  . "(SELECT count(*) FROM t WHERE d BETWEEN '2020-01-03 00:00+00' AND '2020-01-05 12:00+00'),"
		  . "(SELECT md5(string_agg(v || ' ' || k, ',')) FROM (SELECT v, k FROM t WHERE v BETWEEN 500 AND 900 ORDER BY v, k) q),"
		  . "(SELECT count(*) FROM t WHERE v = 7919 AND k > 0)");
}

sub right_answers { my ($server) = @_; return answers($server, $by_index) eq answers($server, $by_table); }

sub source_of
{
	my ($server, $index) = @_;
	return $server->safe_psql('postgres', "SELECT source FROM learnedbtree_model('$index')");
}

# The first lookups of a server that has just come up, before the worker: that one takes its time, by the setting, and all are
# in one session.  A saved model does not prove that a leaf is linked: its left neighbour does, which has to be in memory.
my %first = map { $_->[0] => "SELECT (SELECT count(*) FROM (SELECT FROM t WHERE $_->[1] LIMIT 1000) q), (SELECT count(*) FROM t WHERE $_->[2])" } (
	[ 't_k', 'k <= 1500037 ORDER BY k DESC', 'k = 1500037' ],
	[ 't_d', "d >= '2020-01-09 00:00+00' ORDER BY d", "d = '2020-01-09 00:00+00'" ],
	[ 't_vk', 'v <= 7919 ORDER BY v DESC, k DESC', 'v = 7919' ]);

sub first_lookups
{
	my ($server) = @_;
	$server->safe_psql('postgres', 'SELECT learnedbtree_stat_reset()');
	return split /\n/, $server->safe_psql('postgres', $by_index . join('', map { "\n$first{$_} \\g /dev/null\n"
		  . "SELECT source || ' ' || state || ' ' || (SELECT verified > 0 FROM learnedbtree_stat WHERE indexrelname = '$_') FROM learnedbtree_model('$_');" } @indexes));
}

sub came_up
{
	my ($server, $what) = @_;
	my @by = first_lookups($server);
	is($by[$_], 'metapage ready true', "$what: the first lookup goes by the saved model of $indexes[$_]") foreach 0 .. $#indexes;
	ok(right_answers($server), "$what: the answers are right");
	foreach my $index (@indexes)
	{
		ok(eventually($server, "SELECT source = 'training' FROM learnedbtree_model('$index')"), "$what: then the worker trains $index")
		  or diag($server->safe_psql('postgres', "SELECT m::text FROM learnedbtree_model('$index') m"));
	}
	ok(right_answers($server), "$what: the answers are right after that");
}

sub check
{
	my ($server, $what) = @_;
	is($server->psql('postgres', check_sql(@indexes)), 0, "$what: amcheck is content");
}

# ---- restart and crash ----

is(source_of($node, 't_k'), 'training', 'the build trains');
$node->restart;
came_up($node, 'restart');
# An index that has changed since its model was saved.
$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.autotrain = off");
$node->reload;
wait_until($node, "SELECT current_setting('learnedbtree.autotrain') = 'off'");
$node->safe_psql('postgres', 'INSERT INTO t SELECT 700000 + g, NULL, g FROM generate_series(1, 1500) g; DELETE FROM t WHERE k BETWEEN 1000000 AND 1100000; '
	  . 'INSERT INTO t SELECT 2000000 + g, now(), -g FROM generate_series(1, 1000) g');
$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.autotrain = on");
$node->stop('immediate');
$node->start;
came_up($node, 'crash, after changes');
check($node, 'crash');
is($node->safe_psql('postgres', "SELECT count(*) FROM u; $by_index SELECT count(*) FROM u WHERE k = 5"), "0\n0", 'an unlogged index begins anew');
$node->safe_psql('postgres', 'INSERT INTO u SELECT g FROM generate_series(1, 20000) g');
is($node->safe_psql('postgres', "$by_index SELECT sum((SELECT count(*) FROM u WHERE k = g)) FROM generate_series(1, 2000) g"), '2000', 'it answers again');
is($node->psql('postgres', check_sql('u_k')), 0, 'amcheck is content with it');

# ---- replay of everything that touches the metapage, with every page compared; and promotion ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
came_up($standby, 'a standby made by pg_basebackup');

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE grow (k int8, pad text);
CREATE INDEX grow_k ON grow USING learnedbtree (k) INCLUDE (pad);
SQL
# From nothing to three levels: the root splits; trainings in between, by hand and by the worker.
my $row = "lpad('', 400, g::text)";
foreach my $size (1, 100, 1000, 9000)
{
	$node->safe_psql('postgres', "INSERT INTO grow SELECT (g * 2654435761) % 1000003, $row FROM generate_series(1, $size) g; SELECT learnedbtree_train('grow_k')");
	$node->safe_psql('postgres', "INSERT INTO grow SELECT -g, $row FROM generate_series(1, 200) g");
}
is($node->safe_psql('postgres', "SELECT state = 'ready' AND leaves > 400 FROM learnedbtree_model('grow_k')"), 't', 'an index grows');
$node->safe_psql('postgres', "DELETE FROM grow WHERE k > 1000; VACUUM grow; VACUUM grow; INSERT INTO grow SELECT g, $row FROM generate_series(1, 1000) g; VACUUM grow");
$node->safe_psql('postgres', "SELECT learnedbtree_train('grow_k'), learnedbtree_train('t_k'), learnedbtree_train('u_k')");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', "$by_index SELECT count(*) FROM grow WHERE k BETWEEN 1 AND 900"),
	$node->safe_psql('postgres', "$by_table SELECT count(*) FROM grow WHERE k BETWEEN 1 AND 900"), 'so it does on the standby');
$standby->restart;
ok(right_answers($standby), 'the standby restarted: the answers are right');
$node->stop('immediate');
$standby->promote;
$standby->restart;
came_up($standby, 'the standby promoted and restarted');
check($standby, 'promoted');
is($standby->psql('postgres', check_sql('grow_k')), 0, 'amcheck is content with the index that grew');
$standby->stop;
unlike(slurp_file($_->logfile), qr/(FATAL: (?!.*(terminating|the database system is|could not (receive|connect|send)))|PANIC: |TRAP: |inconsistent page)/, $_->name . ': replay was consistent, nothing was fatal')
  foreach $node, $standby;
$node->start;
ok(right_answers($node), 'the old primary recovers');
unlike(slurp_file($node->logfile), qr/inconsistent page|PANIC: |TRAP: /, 'consistently');

# ---- saved models that do not fit ----

# The same file under another definition of the index's column; another index of the same name.
$node->safe_psql('postgres', "BEGIN; ALTER TABLE c ALTER n TYPE oid; COMMIT");
$node->safe_psql('postgres', "DROP INDEX one_n; CREATE INDEX one_n ON one USING learnedbtree (m DESC) WITH (fillfactor = 10)");
$node->restart;
is($node->safe_psql('postgres', "$by_index SELECT sum((SELECT count(*) FROM c WHERE n = g::oid)) FROM generate_series(1, 20000, 7) g"), '2858', 'a column of another type');
is($node->safe_psql('postgres', "$by_index SELECT sum((SELECT count(*) FROM one WHERE m = -g)) FROM generate_series(1, 20000, 7) g"), '2858', 'another index');
is($node->psql('postgres', check_sql('c_n', 'one_n')), 0, 'amcheck is content with both');

# ---- damaged saved models ----

my ($file, $file_d, $file_vk) = map { $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } @indexes;
$node->safe_psql('postgres', "SELECT learnedbtree_train('t_k')");
$node->append_conf('postgresql.conf', "post_auth_delay = 0\n");
$node->stop;

sub read_metapage
{
	my ($from) = @_;
	open(my $fh, '<:raw', $from) or die "$from: $!";
	read($fh, my $page, PAGE) == PAGE or die 'short read';
	close $fh;
	return $page;
}

sub write_metapage
{
	my ($page) = @_;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	print $fh $page;
	close $fh or die "$file: $!";
}

# Magic, checksum of what follows, bytes of the body, leaves, body.
my $good = read_metapage($file);
my $at = index($good, pack('L', MAGIC), SPARE);
cmp_ok($at, '>', 0, 'the saved model is found in the file');
my $bytes = 16 + unpack('L', substr($good, $at + 8, 4));
my $end = PAGE - 16;
note("a saved model of $bytes bytes");

sub overwrite { my ($offset, $with) = @_; my $page = $good; substr($page, $at + $offset, length $with) = $with; return $page; }
sub garbage { return join('', map { chr(int(rand(256))) } 1 .. $_[0]); }

# The same with a right checksum (CRC-32C): what nobody has written, but looks as if.
my @table = map { my $c = $_; $c = $c & 1 ? 0x82f63b78 ^ ($c >> 1) : $c >> 1 for 1 .. 8; $c } 0 .. 255;

sub forge
{
	my $page = overwrite(@_);
	my $crc = 0xffffffff;
	$crc = $table[ ($crc ^ $_) & 0xff ] ^ ($crc >> 8) foreach unpack('C*', substr($page, $at + 8, $end - $at - 8));
	substr($page, $at + 4, 4) = pack('L', $crc ^ 0xffffffff);
	return $page;
}
is(forge(0, ''), $good, 'the checksum is that of the bytes behind it');

my @damages = (
	[ 'magic', overwrite(0, 'LBTX'), 1 ],
	[ 'checksum', overwrite(4, pack('L', unpack('L', substr($good, $at + 4, 4)) ^ 1)), 1 ],
	[ 'length', overwrite(8, pack('L', 100000)), 1 ],
	[ 'end', overwrite($bytes / 2, "\0" x ($bytes - int($bytes / 2))), 1 ],
	[ 'behind the end', overwrite($end - $at - 1, 'x'), 1 ],
	[ 'everything', overwrite(4, garbage($end - $at - 4)), 1 ],
	[ 'none', overwrite(0, "\0" x ($end - $at)), 0 ],
	[ 'length, forged', forge(8, pack('L', $end)), 1 ],
	[ 'no length, forged', forge(8, pack('L', 0)), 1 ],
	[ 'no leaves, forged', forge(12, pack('L', 0)), 1 ],
	[ 'more leaves than blocks, forged', forge(12, pack('L', 1000000)), 1 ],
	[ 'knots, forged', forge($bytes - 400, garbage(400)), 1 ],
	[ 'key code, forged', forge(16, garbage(32)), 1 ],
	[ "another index's, of other columns", overwrite(0, substr(read_metapage($file_vk), $at, $end - $at)), 1 ]);
for (1 .. 4)
{
	my $offset = 4 + int(rand($bytes - 4));
	push @damages, [ "byte $offset", overwrite($offset, chr(ord(substr($good, $at + $offset, 1)) ^ (1 + int(rand(255))))), 1 ];
}
foreach my $damage (@damages)
{
	my ($name, $page, $lines) = @$damage;
	write_metapage($page);
	my $log = -s $node->logfile;
	$node->start;
	is($node->safe_psql('postgres', "$by_index $first{t_k}"), $node->safe_psql('postgres', "$by_table $first{t_k}"), "damaged $name: the first lookup");
	ok(right_answers($node), "damaged $name: the answers are right");
	is(source_of($node, 't_k'), 'training', "damaged $name: trained from the tree");
	my @said = substr(slurp_file($node->logfile), $log) =~ /LOG: .*ignoring the saved model in the metapage of index "t_k"/g;
	is(scalar @said, $lines, "damaged $name: the log says so, once");
	$node->stop;
	is(unpack('L', substr(read_metapage($file), $at, 4)), MAGIC, "damaged $name: the model was saved anew");
}

# A model of the same columns says nothing right of these keys, which no check can tell.
write_metapage(overwrite(0, substr(read_metapage($file_d), $at, $end - $at)));
$node->start;
is($node->safe_psql('postgres', "$by_index $first{t_k}"), $node->safe_psql('postgres', "$by_table $first{t_k}"), "another index's: the first lookup");
ok(right_answers($node), 'after all damage: the answers are right');
check($node, 'after all damage');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC: |TRAP: |terminated by signal|inconsistent page/, 'no crash');
done_testing();
