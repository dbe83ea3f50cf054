# What learnedbtree.btree_indexes names is decided by the next statement: when the setting changes, in a session, by a reload
# of the server's file in the middle of transactions and of cursors, for a database or a role; and when another session
# renames an index, its table's schema or a partitioned index, moves it, attaches or detaches a partition.  Kept plans,
# functions with a setting of their own, parallel workers, names in all kinds of encodings, values that are no lists.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('patterns');
$node->init(allows_streaming => 'logical');
configure_serving($node);
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE SCHEMA shop;
CREATE SCHEMA store;
CREATE TABLE shop.t (id int8 PRIMARY KEY, a int4, x text COLLATE "C" CONSTRAINT t_x UNIQUE);
INSERT INTO shop.t SELECT g, g / 10, 'x' || g FROM generate_series(1, 3000) g;
CREATE INDEX t_a ON shop.t (a);
CREATE TABLE shop.other (k int PRIMARY KEY);
INSERT INTO shop.other SELECT generate_series(1, 1000);
CREATE TABLE shop.p (k int8, v int4) PARTITION BY RANGE (k);
CREATE INDEX p_k ON shop.p (k);
CREATE TABLE shop.p1 PARTITION OF shop.p FOR VALUES FROM (0) TO (1000);
CREATE TABLE shop.p2 PARTITION OF shop.p FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (k);
CREATE TABLE shop.p21 PARTITION OF shop.p2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE shop.p3 (k int8, v int4);
CREATE INDEX p3_k ON shop.p3 (k);
INSERT INTO shop.p SELECT g, g FROM generate_series(0, 1999) g;
INSERT INTO shop.p3 SELECT g, g FROM generate_series(2000, 2999) g;
VACUUM ANALYZE;
SQL
my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET client_min_messages = error; SET search_path = shop, store, mall, public;';

# Questions: their answers, and the indexes that they are answered by, which have each another name at times.
my %index = map { $_ => $node->safe_psql('postgres', "SELECT 'shop.$_'::regclass::oid") } qw(t_pkey t_a t_x other_pkey p1_k_idx p21_k_idx p3_k);
my %questions = (
	t_pkey => [ 'SELECT x FROM t WHERE id = 77', 'x77' ],
	t_a => [ 'SELECT count(*) FROM t WHERE a = 7', 10 ],
	t_x => [ "SELECT id FROM t WHERE x = 'x78'", 78 ],
	other_pkey => [ 'SELECT count(*) FROM other WHERE k = 78', 1 ],
	p1_k_idx => [ 'SELECT v FROM p1 WHERE k = 78', 78 ],
	p21_k_idx => [ 'SELECT v FROM p21 WHERE k = 1078', 1078 ],
	p3_k => [ 'SELECT v FROM p3 WHERE k = 2078', 2078 ]);

# A session whose plans are made for each statement, one that keeps them, and one that asks by a function of PL/pgSQL.
my (%sessions, $session);

sub begin_sessions
{
	$_->quit foreach values %sessions;
	%sessions = map { $_ => $node->background_psql('postgres') } qw(simple prepared function);
	$_->set_query_timer_restart foreach values %sessions;
	$_->query_safe("$settings SET plan_cache_mode = force_generic_plan") foreach values %sessions;
	$sessions{prepared}->query_safe(join(';', map { "PREPARE $_ AS $questions{$_}[0]" } keys %questions));
	$sessions{function}->query_safe(join(';', map { "CREATE FUNCTION pg_temp.$_() RETURNS text LANGUAGE plpgsql AS \$\$ BEGIN RETURN ($questions{$_}[0]); END \$\$" } keys %questions));
	$session = $sessions{simple};
	return;
}
begin_sessions();
my %how = (simple => sub { $questions{ $_[0] }[0] }, prepared => sub { "EXECUTE $_[0]" }, function => sub { "SELECT pg_temp.$_[0]()" });

sub count_of { return $_[0]->query_safe('SELECT lookups + inserts FROM learnedbtree_stat_get(' . $index{ $_[1] } . ')'); }

# Ask one question in each session after a change: which of them serve it?  Answers are right.  All tell what they have
# counted before the next one is asked; so it is not for transactions.
sub served_after
{
	my ($name, $which, $change) = @_;
	my $count = count_of($session, $which);
	my @served;
	$change->() if $change;
	foreach my $kind (sort keys %sessions)
	{
		my $answer = asked($sessions{$kind}, $how{$kind}->($which));
		fail("$name: $kind: $answer") if $answer ne $questions{$which}[1];
		my $now = count_of($session, $which);
		push @served, $kind if $now > $count;
		$count = $now;
	}
	return "@served";
}
my $all = join(' ', sort keys %sessions);

sub ddl { my ($sql) = @_; return sub { $node->safe_psql('postgres', $sql) }; }
sub set_all { my ($list) = @_; $_->query_safe("SET learnedbtree.btree_indexes = '$list'") foreach values %sessions; return; }

# ---- names that others change ----

# A list; an index that it does not name; what makes that so, and what undoes it.  In sessions that have not served it before.
sub named_by
{
	my ($name, $list, $which, $do, $undo) = @_;
	begin_sessions();
	set_all($list);
	is(served_after($name, $which), '', "$name: not served before");
	is(served_after($name, $which, ddl($do)), $all, "$name: served by the next statement");
	is(served_after($name, $which), $all, "$name: and by the one after it");
	is(served_after($name, $which, ddl($undo)), '', "$name: not served any more");
	set_all("*, !$list");
	is(served_after($name, $which), $all, "$name: not excluded");
	is(served_after($name, $which, ddl($do)), '', "$name: excluded by the next statement");
	is(served_after($name, $which, ddl($undo)), $all, "$name: and not any more");
	return;
}

named_by('ALTER INDEX RENAME', 'new_*', 't_a', 'ALTER INDEX shop.t_a RENAME TO new_a', 'ALTER INDEX shop.new_a RENAME TO t_a');
named_by('ALTER TABLE RENAME CONSTRAINT', '*_new', 't_x', 'ALTER TABLE shop.t RENAME CONSTRAINT t_x TO t_x_new', 'ALTER TABLE shop.t RENAME CONSTRAINT t_x_new TO t_x');
named_by('ALTER TABLE SET SCHEMA', 'store.*', 't_pkey', 'ALTER TABLE shop.t SET SCHEMA store', 'ALTER TABLE store.t SET SCHEMA shop');
named_by('ALTER SCHEMA RENAME', 'mall.*', 't_a', 'ALTER SCHEMA shop RENAME TO mall', 'ALTER SCHEMA mall RENAME TO shop');
named_by('a partitioned index', 'top_*', 'p1_k_idx', 'ALTER INDEX shop.p_k RENAME TO top_k', 'ALTER INDEX shop.top_k RENAME TO p_k');
named_by('one above that', 'top_*', 'p21_k_idx', 'ALTER INDEX shop.p_k RENAME TO top_k', 'ALTER INDEX shop.top_k RENAME TO p_k');
named_by('one below that', 'mid_*', 'p21_k_idx', 'ALTER INDEX shop.p2_k_idx RENAME TO mid_k', 'ALTER INDEX shop.mid_k RENAME TO p2_k_idx');
named_by('its schema', 'store.*', 'p21_k_idx', 'ALTER TABLE shop.p SET SCHEMA store', 'ALTER TABLE store.p SET SCHEMA shop');
named_by('ATTACH PARTITION', 'p_k', 'p3_k', 'ALTER TABLE shop.p ATTACH PARTITION shop.p3 FOR VALUES FROM (2000) TO (3000)', 'ALTER TABLE shop.p DETACH PARTITION shop.p3');
$node->safe_psql('postgres', 'ALTER TABLE shop.p DETACH PARTITION shop.p2');
named_by('ATTACH PARTITION of what has partitions', 'p_k', 'p21_k_idx', 'ALTER TABLE shop.p ATTACH PARTITION shop.p2 FOR VALUES FROM (1000) TO (2000)', 'ALTER TABLE shop.p DETACH PARTITION shop.p2 CONCURRENTLY');
$node->safe_psql('postgres', 'ALTER TABLE shop.p ATTACH PARTITION shop.p2 FOR VALUES FROM (1000) TO (2000)');

# An index of the name, and none.
set_all('t_b');
$node->safe_psql('postgres', 'CREATE INDEX t_b ON shop.t (a); DROP INDEX shop.t_a');
$index{t_a} = $node->safe_psql('postgres', "SELECT 'shop.t_b'::regclass::oid");
is(served_after('a new index', 't_a'), $all, 'an index that another one makes');
foreach my $command ('REINDEX INDEX shop.t_b', 'REINDEX INDEX CONCURRENTLY shop.t_b', 'CLUSTER shop.t USING t_b', 'VACUUM FULL shop.t', 'ALTER TABLE shop.t ALTER a TYPE int8', 'ANALYZE shop.t')
{
	$node->safe_psql('postgres', $command);
	$index{t_a} = $node->safe_psql('postgres', "SELECT 'shop.t_b'::regclass::oid");
	is(served_after($command, 't_a'), $all, "still, after $command");
}
$node->safe_psql('postgres', 'ALTER INDEX shop.t_b RENAME TO t_a');
my ($t_x, $t_pkey) = map { $node->safe_psql('postgres', "SELECT 'shop.$_'::regclass::oid") } qw(t_x t_pkey);
@index{qw(t_x t_pkey)} = ($t_x, $t_pkey);

# Names that are not committed are nobody else's, nor those rolled back.
set_all('new_*');
my $dba = $node->background_psql('postgres');
$dba->query_safe('BEGIN; ALTER INDEX shop.t_a RENAME TO new_a');
is(served_after('uncommitted', 't_a'), '', 'a name that is not committed');
is(served_after('rolled back', 't_a', sub { $dba->query_safe('ROLLBACK') }), '', 'or rolled back');

# In transactions: with an old snapshot, and of the session's own renames and subtransactions.
# Does this session serve?
sub serves
{
	my ($which, $before_it) = @_;
	$session->query_safe($before_it) if $before_it;
	my $before = count_of($session, $which);
	is($session->query_safe($questions{$which}[0]), $questions{$which}[1], 'the answer');
	return count_of($session, $which) > $before ? 1 : 0;
}
is(serves('t_a', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other'), 0, 'an old snapshot: not served');
$node->safe_psql('postgres', 'ALTER INDEX shop.t_a RENAME TO new_a');
is(serves('t_a'), 1, 'served by a name that is newer');
$node->safe_psql('postgres', 'ALTER INDEX shop.new_a RENAME TO t_a');
is(serves('t_a'), 0, 'and not any more');
is(serves('t_a', 'COMMIT; BEGIN'), 0, 'own transaction: not served');
is(serves('t_a', 'SAVEPOINT a; ALTER INDEX shop.t_a RENAME TO new_a'), 1, 'served by its own rename');
is(serves('t_a', 'SAVEPOINT b; ALTER SCHEMA shop RENAME TO mall; SET LOCAL learnedbtree.btree_indexes = $$shop.*$$'), 0, 'and not by the next');
is(serves('t_a', 'ROLLBACK TO b'), 1, 'back');
is(serves('t_a', 'ROLLBACK TO a'), 0, 'and back');
is(serves('t_a', 'COMMIT'), 0, 'and after it');

# ---- the setting ----

set_all('none');
is(serves('t_a'), 0, 'none');
is(serves('t_a', 'SET learnedbtree.btree_indexes = \'t_pkey, "t_a"\''), 1, 'SET');
is(serves('t_a', q(SELECT set_config('learnedbtree.btree_indexes', '*, !t_a', false))), 0, 'set_config()');
is(serves('t_a', 'RESET learnedbtree.btree_indexes'), 0, 'RESET');
is(serves('t_a', q(BEGIN; SET LOCAL learnedbtree.btree_indexes = 't_a')), 1, 'SET LOCAL');
is(serves('t_a', q(SAVEPOINT a; SET LOCAL learnedbtree.btree_indexes = 't_x')), 0, 'in a subtransaction');
is(serves('t_x'), 1, 'another one');
is(serves('t_a', 'ROLLBACK TO a'), 1, 'back');
is(serves('t_x'), 0, 'the other one, too');
is(serves('t_a', 'ROLLBACK'), 0, 'and back');
is(serves('t_a', q(BEGIN; SET learnedbtree.btree_indexes = 't_a'; COMMIT)), 1, 'committed');
my (undef, undef, $err) = $node->psql('postgres', "LOAD 'learnedbtree'; SET learnedbtree.btree_indexes = 't_a, t b'", on_error_stop => 0);
like($err, qr/invalid value for parameter "learnedbtree.btree_indexes": "t_a, t b"\n.*DETAIL: +Names are separated by commas. It is at "t b".\n.*HINT: +Valid values are none, all, and lists like/s, 'an error says what is wrong');
$session->query_safe(q{DO $$ BEGIN PERFORM set_config('learnedbtree.btree_indexes', 'a.b.c', false); EXCEPTION WHEN invalid_parameter_value THEN NULL; END $$});
is(serves('t_a'), 1, 'and changes nothing');
$session->query_safe('RESET learnedbtree.btree_indexes');

# Functions have settings of their own, also such that run in the middle of a scan of the same index.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION served(i int4) RETURNS bigint LANGUAGE plpgsql SET learnedbtree.btree_indexes = 'nothing, shop."t_a"' AS
	$$ BEGIN RETURN (SELECT count(*) FROM shop.t WHERE a = i); END $$;
CREATE FUNCTION unserved(i int4) RETURNS bigint LANGUAGE plpgsql SET learnedbtree.btree_indexes = 'none' AS
	$$ BEGIN RETURN (SELECT count(*) FROM shop.t WHERE a = i); END $$;
SQL
my $in = sub {
	my ($sql, $wanted) = @_;
	my $before = count_of($session, 't_a');
	is($session->query_safe($sql), $wanted, 'the answer');
	return count_of($session, 't_a') - $before;
};
is($in->('SELECT served(7)', 10), 1, 'a function with the setting');
is(serves('t_a'), 0, 'has it alone');
is($in->('SELECT sum(served(g)) FROM generate_series(10, 19) g', 100), 10, 'for each call');
$session->query_safe('SET learnedbtree.btree_indexes = "t_a"');
is($in->('SELECT sum(unserved(g)) FROM generate_series(10, 19) g', 100), 0, 'one without it');
cmp_ok($in->('SELECT sum(CASE WHEN a % 2 = 0 THEN served(a::int4) ELSE unserved(a::int4) END) FROM (SELECT a FROM shop.t WHERE a BETWEEN 20 AND 29 ORDER BY a) q', 1000), '>=', 51, 'in the middle of a scan');
is(serves('t_a'), 1, 'afterwards as before');
$session->query_safe('RESET learnedbtree.btree_indexes');

# ---- the server's file ----

set_all('none');
$_->query_safe('RESET learnedbtree.btree_indexes') foreach values %sessions;
my @sessions = values %sessions;
is(served_after('reload', 't_a', sub { serve($node, [ 't_a', '"My, ""t"""' ], @sessions) }), $all, 'ALTER SYSTEM and a reload: all sessions serve');
is(served_after('reload', 't_a', sub { serve($node, 'all, !shop.t_*', @sessions) }), '', 'and not any more');
is(served_after('reload', 'other_pkey'), $all, 'but another index');
$session->query_safe("SET learnedbtree.btree_indexes = 't_a'");
$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.btree_indexes = 't_x'; SELECT pg_reload_conf()");
wait_until($node, "SELECT current_setting('learnedbtree.btree_indexes') = 't_x'");
is(serves('t_a'), 1, 'a session with a value of its own keeps it');
$session->query_safe('RESET learnedbtree.btree_indexes');

# In the middle of transactions and of cursors.
foreach my $turn ([ 'none', 't_a, other_pkey', 1 ], [ 't_a, other_pkey', 'none', 0 ])
{
	my ($from, $to, $served) = @$turn;
	# A new one, whose entries are as from before.
	$session->quit;
	$session = $sessions{simple} = $node->background_psql('postgres');
	$session->query_safe($settings);
	serve($node, $from, $session);
	$session->query_safe('BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE a >= 100 ORDER BY a, id % 1');
	is($session->query_safe('FETCH 3 FROM c'), "1000\n1001\n1002", "from $from: a cursor is open");
	is(serves('other_pkey'), 1 - $served, "from $from: in the transaction");
	serve($node, $to, $session);
	is(serves('other_pkey'), $served, "to $to: served or not by the next statement");
	# What the cursor has open has btree's routine, or nothing that is to be served.
	is(serves('t_a'), 0, "to $to: a nested query on what the cursor has open");
	is($session->query_safe('MOVE 100 FROM c; FETCH 2 FROM c; FETCH BACKWARD 1 FROM c; SELECT count(*) FROM t WHERE a = 200; FETCH 1 FROM c'), "1103\n1104\n1103\n10\n1104", "to $to: the cursor goes on");
	$session->query_safe('COMMIT');
	is(serves('t_a'), $served, "to $to: after the transaction");
}

# ---- databases and roles ----

serve($node, 'none', @sessions);
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN SUPERUSER; CREATE ROLE plain LOGIN; GRANT USAGE ON SCHEMA shop TO plain; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO plain');
sub shows { my ($role) = @_; return $node->safe_psql('postgres', 'SHOW learnedbtree.btree_indexes', extra_params => [ '-U', $role ]); }
sub by_role { my ($role, @which) = @_; return predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "$settings $questions{$_}[0]", extra_params => [ '-U', $role ]) foreach @which }, map { "shop.$_" } @which); }
$node->safe_psql('postgres', q{ALTER DATABASE postgres SET learnedbtree.btree_indexes = 't_a, "It''s, t"'});
is(shows('app'), q(t_a, "It's, t"), 'a value of the database');
is(by_role('app', 't_a', 't_x'), 'shop.t_a', 'new sessions serve');
is(by_role('plain', 't_a', 't_x'), 'shop.t_a', 'of all roles');
is(serves('t_a'), 0, 'those that are there do not');
$node->safe_psql('postgres', q{ALTER ROLE app SET learnedbtree.btree_indexes = '*, !t_a'});
is(by_role('app', 't_a', 't_x'), 'shop.t_x', 'a value of a role goes before that');
$node->safe_psql('postgres', q{ALTER ROLE app IN DATABASE postgres SET learnedbtree.btree_indexes = 't_pkey'});
is(by_role('app', 't_a', 't_x', 't_pkey'), 'shop.t_pkey', 'and one for a role in the database before both');
is(by_role('plain', 't_a', 't_x'), 'shop.t_a', 'not for another role');
is(($node->psql('postgres', q{ALTER ROLE plain SET learnedbtree.btree_indexes = 't_x'}, extra_params => [ '-U', 'plain' ]))[0], 0, 'a user may for itself');
is(by_role('plain', 't_a', 't_x'), 'shop.t_x', 'and it does');

# What is no list is refused, where the library is loaded, and changes nothing.
foreach my $command ('ALTER DATABASE postgres', 'ALTER ROLE app', 'ALTER SYSTEM', 'ALTER FUNCTION served(int4)')
{
	my ($rc, undef, $message) = $node->psql('postgres', "$command SET learnedbtree.btree_indexes = 't_a, \"t'");
	isnt($rc, 0, "$command: what is no list");
	like($message, qr/invalid value for parameter "learnedbtree.btree_indexes": "t_a, "t"/, "$command: is refused");
}
is(shows('plain'), 't_x', 'nothing has changed');
is(by_role('app', 't_a', 't_x', 't_pkey'), 'shop.t_pkey', 'for nobody');
$node->safe_psql('postgres', 'ALTER ROLE app RESET ALL; ALTER ROLE app IN DATABASE postgres RESET ALL; ALTER ROLE plain RESET ALL; ALTER DATABASE postgres RESET learnedbtree.btree_indexes');

# ---- parallel workers ----

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2; '
  . 'SET parallel_leader_participation = off;';
my $count = 'SELECT count(*), sum(id) FROM shop.t WHERE id BETWEEN 10 AND 2900';
like($node->safe_psql('postgres', "$settings $parallel EXPLAIN (COSTS off) $count"), qr/Parallel Index (?:Only )?Scan using t_pkey/, 'a parallel plan');
foreach my $list ('t_pkey', '"t_pkey" , t_x', 't_x', '*, !"t_pkey"')
{
	my $got;
	is(predicted_in($node, 'postgres', sub { $got = $node->safe_psql('postgres', "$settings $parallel SET learnedbtree.btree_indexes = '$list'; $count") }, 'shop.t_pkey'),
		$list =~ /^"?t_pk/ ? 'shop.t_pkey' : '', "parallel workers, $list");
	is($got, '2891|4206405', 'with the answer');
}

# ---- a session that decodes ----

$node->safe_psql('postgres', "CREATE PUBLICATION everything FOR ALL TABLES; SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
$session->query_safe("SET learnedbtree.btree_indexes = 't_*, p_k'");
$node->safe_psql('postgres', q{ALTER TABLE shop.t ADD big text; ALTER TABLE shop.t REPLICA IDENTITY FULL; BEGIN; INSERT INTO shop.t SELECT -g, 5000, 'b' || g, (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i) FROM generate_series(1, 20) g;
	ALTER INDEX shop.t_a RENAME TO u_a; UPDATE shop.t SET a = 5001 WHERE id < 0; ALTER INDEX shop.u_a RENAME TO t_a; DELETE FROM shop.t WHERE id < 0; INSERT INTO shop.p VALUES (999, 78); COMMIT});
is($session->query_safe("SELECT count(*) > 60 FROM pg_logical_slot_get_binary_changes('s', NULL, NULL, 'proto_version', '1', 'publication_names', 'everything')"), 't', 'changes are decoded');
is(serves('t_a'), 1, 'the session serves after it');
is(serves('p1_k_idx'), 1, 'partitions, too');
$node->safe_psql('postgres', "SELECT pg_drop_replication_slot('s'); DROP PUBLICATION everything");
$_->quit foreach $dba, values %sessions;
is(amcheck_all($node, 'postgres'), '', 'amcheck is content');

# ---- encodings ----

# ? is a character, of one or more bytes.  (Names and patterns come as UTF-8.)
local $ENV{PGCLIENTENCODING} = 'UTF8';
my ($kanji, $accents) = ("\xe6\x97\xa5\xe6\x9c\xac", "\xc3\xa9t\xc3\xa9");
my %matches = (
	UTF8 => [ [ $kanji, $kanji, '??', "?\xe6\x9c\xac", "*\xe6\x9c\xac", "\xe6\x97\xa5*", '*?' ], [ $kanji, '?', '???', '??????', "?\xe6\x97\xa5", "*\xe6\x97\xa5" ],
		[ $accents, '?t?', "\xc3\xa9*\xc3\xa9", '*t*', '"' . $accents . '"' ], [ $accents, '?t', '??t??', "\xc3\x89T\xc3\x89", "e*" ] ],
	EUC_JP => [ [ $kanji, $kanji, '??', "?\xe6\x9c\xac", "*\xe6\x9c\xac", "\xe6\x97\xa5*" ], [ $kanji, '?', '???', '????', "?\xe6\x97\xa5" ] ],
	LATIN1 => [ [ $accents, $accents, '?t?', "\xc3\xa9*" ], [ $accents, '??t??', '?t' ] ],
	SQL_ASCII => [ [ $kanji, $kanji, '??????', '*' ], [ $kanji, '??' ], [ $accents, '??t??' ], [ $accents, '?t?' ] ]);
foreach my $encoding (sort keys %matches)
{
	my $database = lc $encoding;
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0 ENCODING '$encoding' LOCALE 'C'");
	$node->safe_psql($database, 'CREATE EXTENSION learnedbtree; CREATE TABLE t (k int)');
	my $wanted = 1;
	foreach (@{ $matches{$encoding} })
	{
		my ($name, @patterns) = @$_;
		my $sql = join(' || ', map { "learnedbtree_pattern_matches('$_', indexrelid)::text" } @patterns);
		is($node->safe_psql($database, "CREATE INDEX \"$name\" ON t (k); SELECT $sql FROM pg_index WHERE indrelid = 't'::regclass; DROP INDEX \"$name\""),
			($wanted ? 'true' : 'false') x @patterns, "$encoding: $name matches " . ($wanted ? '' : 'none of ') . join(', ', @patterns));
		$wanted = 1 - $wanted;
	}
	$node->safe_psql($database, "CREATE INDEX \"$matches{$encoding}[0][0]\" ON t (k); INSERT INTO t SELECT generate_series(1, 1000)");
	is($node->safe_psql($database, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET learnedbtree.btree_indexes = '$matches{$encoding}[0][1], x'; SELECT count(*) FROM t WHERE k = 5; SELECT lookups FROM learnedbtree_stat"), "1\n1",
		"$encoding: and serves");
}

# A role's list applies in databases of other encodings, in which its bytes may be half a character.
$node->safe_psql('latin1', "ALTER ROLE CURRENT_USER SET learnedbtree.btree_indexes = '\xc3\xa9?'");
is( $node->safe_psql('euc_jp', q{DO $$ BEGIN EXECUTE format('CREATE INDEX %I ON t (k)', convert_from('\xe9a1', 'EUC_JP')); END $$; SELECT count(*) FROM t WHERE k = 5}),
	'1', 'a list of another encoding matches nothing');
$node->safe_psql('postgres', 'ALTER ROLE CURRENT_USER RESET learnedbtree.btree_indexes');

# ---- values in the server's file that are no lists ----

$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
my $question = "$settings SELECT count(*) FROM shop.t WHERE a = 7";
foreach my $shared (needs_preload($node) ? (1) : (0, 1))
{
	my $how = $shared ? 'preloaded by the server' : 'loaded by sessions';
	$node->append_conf('postgresql.conf', ($shared ? "shared_preload_libraries = 'learnedbtree'\nsession_preload_libraries = ''\n" : "session_preload_libraries = 'learnedbtree'\n") . "learnedbtree.btree_indexes = 't_a'\n");
	$node->restart;
	is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', $question) }, 'shop.t_a'), 'shop.t_a', "$how: a list");
	my $at = -s $node->logfile;
	$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = 't_a, t b'\n");
	my $old = $node->background_psql('postgres', on_error_stop => 0);
	$old->query_safe($settings);
	$node->reload;
	foreach my $try (1 .. 1800)
	{
		# (a session that loads it says so when it begins)
		last if slurp_file($node->logfile, $at) =~ /invalid value for parameter "learnedbtree.btree_indexes": "t_a, t b"/;
		$node->psql('postgres', 'SELECT pg_sleep(0.1)');
	}
	like(slurp_file($node->logfile, $at), qr/(?:LOG|WARNING): +invalid value for parameter "learnedbtree.btree_indexes": "t_a, t b"\n.*DETAIL: +Names are separated by commas\. It is at "t b"\./, "$how: a reload says what is wrong");
	is($old->query('SHOW learnedbtree.btree_indexes'), 't_a', "$how: and changes nothing in a session");
	$old->quit;
	$at = -s $node->logfile;
	$node->restart;
	is($node->safe_psql('postgres', 'SHOW learnedbtree.btree_indexes; SELECT count(*) FROM shop.t WHERE a = 7'), "none\n10", "$how: the server starts, and serves none");
	like(slurp_file($node->logfile, $at), qr/WARNING: +invalid value for parameter "learnedbtree.btree_indexes": "t_a, t b"/, "$how: and says so in its log");
	$node->append_conf('postgresql.conf', "learnedbtree.btree_indexes = 'none'\n");
}

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|XX000|terminated by signal/, 'no internal errors in the log');
$node->stop;
done_testing();
