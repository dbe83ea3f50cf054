# Replica identities and subscribers: what each server version makes of indexes made USING learnedbtree, on the publisher and
# on the subscriber, and of tables without identity (REPLICA IDENTITY FULL); served btree indexes work everywhere.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('replica');
$node->init(allows_streaming => 'logical');
configure_serving($node, shared => 1);
$node->append_conf('postgresql.conf', "max_replication_slots = 20\nmax_wal_senders = 20\nmax_logical_replication_workers = 20\nmax_worker_processes = 40\n"
	  . "learnedbtree.btree_indexes = 'served_*_b'\n");
$node->start;
my $version = int($node->pg_version->major);
my $have_amcheck = -e $node->config_data('--sharedir') . '/extension/amcheck.control';

# What the apply worker does: look a row up by the index, or by a sequential scan, or fail.  Of 16 and 17 with assertions one
# of their own fails before: it wants replica identities to be of an access method that would do for REPLICA IDENTITY FULL.
my $asserts = ($version == 16 || $version == 17) && $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';
my $by_identity = $asserts ? 'crashes' : $version == 17 ? 'fails' : 'index';
my $by_full = $version >= 18 ? 'index' : 'seq';
my $by_full_btree = $version >= 16 ? 'index' : 'seq';

my $learned = 'CREATE UNIQUE INDEX @_l ON @ USING learnedbtree (k); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_l';
my $btree = 'CREATE UNIQUE INDEX @_b ON @ (k); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_b';
my $key = 'ALTER TABLE @ ADD CONSTRAINT @_b PRIMARY KEY (k)';
my $full = 'ALTER TABLE @ REPLICA IDENTITY FULL';

# Table; the publisher's side; the subscriber's side; what its apply worker does, and by which index.
my @cases = (
	[ 'learned_both', $learned, $learned, $by_identity, 'l' ],
	[ 'learned_published', $learned, $key, 'index', 'b' ],
	[ 'learned_subscribed', $key, $learned, $by_identity, 'l' ],
	[ 'learned_full', "$learned; $full", 'CREATE INDEX @_l ON @ USING learnedbtree (k)', $by_full, 'l' ],
	[ 'learned_full_unique', $full, 'CREATE UNIQUE INDEX @_l ON @ USING learnedbtree (k)', $by_full, 'l' ],
	[ 'learned_full_identity', $full, $learned, $by_identity, 'l' ],
	[ 'learned_beside', $full, 'CREATE INDEX @_l ON @ USING learnedbtree (k); CREATE INDEX @_b ON @ (v)', $by_full_btree, 'any' ],
	[ 'served_key', $key, $key, 'index', 'b' ],
	[ 'served_identity', $btree, $btree, 'index', 'b' ],
	[ 'served_learned', $learned, $btree, 'index', 'b' ],
	[ 'served_full', $full, 'CREATE INDEX @_b ON @ (k)', $by_full_btree, 'b' ]);
note('left out: learnedbtree indexes as replica identities of subscribers, which an assertion of the server refuses') if $asserts;
@cases = grep { $_->[3] ne 'crashes' } @cases;

# With the table's name for each @.  Statistics of tables are told before it returns, see forget_scans().
sub psql
{
	my ($database, $table, $sql) = @_;
	return $node->safe_psql($database, ($sql =~ s/\@/$table/gr) . '; DO $$ BEGIN PERFORM pg_stat_force_next_flush(); END $$');
}

foreach my $database ('pub', 'sub')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION learnedbtree');
	$node->safe_psql($database, 'CREATE EXTENSION amcheck') if $have_amcheck;
}
foreach my $case (@cases)
{
	my ($table, @sides) = @$case;
	foreach my $database ('pub', 'sub')
	{
		# (the warning about ON CONFLICT is not of interest here)
		psql($database, $table, 'SET client_min_messages = error; CREATE TABLE @ (k int NOT NULL, v int);'
			  . 'INSERT INTO @ SELECT g, g % 100 FROM generate_series(1, 3000) g;' . shift(@sides));
	}
	psql('pub', $table, 'CREATE PUBLICATION @ FOR TABLE @');
	psql('pub', $table, "SELECT pg_create_logical_replication_slot('\@', 'pgoutput')");
	psql('sub', $table, q(CREATE SUBSCRIPTION @ CONNECTION ') . $node->connstr . q( dbname=pub' PUBLICATION @
		WITH (create_slot = false, slot_name = '@', copy_data = false, disable_on_error = true)));
}

# What the apply worker has to find 80 rows for.
my $to_find = 80;
my @changes = ('UPDATE @ SET v = v + 1 WHERE k BETWEEN 2000 AND 2040', 'DELETE FROM @ WHERE k BETWEEN 2030 AND 2035',
	'UPDATE @ SET k = k + 10000 WHERE k BETWEEN 2900 AND 2910', 'INSERT INTO @ SELECT g, g FROM generate_series(20000, 20300) g',
	'UPDATE @ SET v = 0 WHERE k BETWEEN 12900 AND 20010');

# Wait until a subscription has applied all that is there, or has been disabled by an error; is it enabled?
sub applied
{
	my ($table) = @_;
	my $lsn = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	wait_until($node, "SELECT NOT subenabled OR EXISTS (SELECT FROM pg_stat_replication WHERE application_name = '$table' AND replay_lsn >= '$lsn') "
		  . "FROM pg_subscription WHERE subname = '$table'");
	return $node->safe_psql('postgres', "SELECT subenabled FROM pg_subscription WHERE subname = '$table'") eq 't';
}

sub is_same
{
	my ($table, $name) = @_;
	my ($here, $there) = map { psql($_, $table, q(SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
		SELECT concat(count(*), ' ', md5(string_agg(concat(k, ' ', v), ',' ORDER BY k, v))) FROM @)) } 'pub', 'sub';
	is($there, $here, $name);
	return;
}

# Between forget_scans() and looked_up() none but apply workers scan the subscriber's tables.
sub forget_scans
{
	$node->safe_psql('sub', 'SELECT pg_stat_reset()');
	return;
}

# How the apply worker has looked for the rows of @changes.
sub looked_up
{
	my ($table, $suffix) = @_;
	my $scans = "SELECT seq_scan, (SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE relname = '$table' "
	  . "AND '$suffix' IN ('any', right(indexrelname, 1))) FROM pg_stat_user_tables WHERE relname = '$table'";
	$node->poll_query_until('sub', "SELECT seq_scan + idx_scan >= $to_find FROM ($scans) s (seq_scan, idx_scan)") or return 'nothing';
	my ($seq, $index) = split /\|/, $node->safe_psql('sub', $scans);
	return join(' ', $seq > 0 ? 'seq' : (), $index > 0 ? 'index' : ());
}

foreach my $case (@cases)
{
	my ($table, $publisher, undef, $expected, $suffix) = @$case;
	my $more = 0;
	my $log = -s $node->logfile;

	psql('pub', $table, 'INSERT INTO @ VALUES (50000, 1)');
	ok(applied($table), "$table: inserts need no lookup");
	forget_scans();
	psql('pub', $table, $_) foreach @changes;
	my $enabled = applied($table);
	if ($expected eq 'fails')
	{
		ok(!$enabled, 'the apply worker cannot look a row up');
		like(substr(slurp_file($node->logfile), $log), qr/ERROR: +missing operator 0\(23,23\) in opfamily \d+\n.*CONTEXT: .*"public\.$table"/, 'and says why');
		is(psql('sub', $table, 'SELECT count(*) FROM @'), '3001', 'it has changed nothing');
		# what the documentation tells to do
		psql('sub', $table, $btree);
		forget_scans();
		psql('sub', $table, 'ALTER SUBSCRIPTION @ ENABLE');
		$enabled = applied($table);
		$suffix = 'b';
		$expected = 'index';
	}
	ok($enabled, 'changes are applied');
	is(looked_up($table, $suffix), $expected, $expected eq 'index' ? 'by the index' : 'by sequential scans');
	is_same($table, 'as on the publisher');
	# what the worker serves it does from the second transaction on; what it counts it may tell before a later one's commit
	ok(eventually($node, "SELECT lookups > 0 FROM learnedbtree_stat WHERE indexrelname = '${table}_$suffix'", database => 'sub',
			again => sub { psql('pub', $table, "INSERT INTO \@ VALUES (60000 + $more, 1)"); $more++ }), 'and by the model')
	  if $expected eq 'index' && ($suffix eq 'l' || $table =~ /^served/);
	if ($have_amcheck)
	{
		is($node->psql('sub', "SELECT bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam "
				  . "WHERE indrelid = '$table'::regclass AND amname = 'btree'"), 0, 'amcheck is content');
	}
	is(psql('sub', $table, 'SET enable_seqscan = off; SELECT count(*) FROM @ WHERE k BETWEEN 2000 AND 2040'), '35', 'and lookups');
	psql('sub', $table, 'DROP SUBSCRIPTION @');
}
$node->stop;
done_testing();
