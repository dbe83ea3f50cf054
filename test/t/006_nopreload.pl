# Below 17, without shared_preload_libraries: the index works as a btree, and says why there is no model.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run qw(run);
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('nopreload');
plan skip_all => 'this server needs no preloading' unless needs_preload($node);

$node->init;
$node->append_conf('postgresql.conf', "autovacuum = off\njit = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck; CREATE TABLE t (k int8); '
	  . 'INSERT INTO t SELECT g FROM generate_series(1, 10000) g');

my ($rc, $out, $err) = $node->psql('postgres', 'CREATE INDEX t_k ON t USING learnedbtree (k); '
	  . 'CREATE INDEX t_k2 ON t USING learnedbtree (k DESC); REINDEX INDEX t_k');
is($rc, 0, 'the index can be made');
my $notices = () = $err =~ /NOTICE:.*works? as plain btree/g;
is($notices, 1, 'one notice in the session') or diag($err);
like($err, qr/HINT:.*shared_preload_libraries/, 'with a hint what to do');

is(model_state($node, 't_k'), 'off', 'there is no model');
like($node->safe_psql('postgres', "SELECT reason FROM learnedbtree_model('t_k')"), qr/shared_preload_libraries/, 'the state says why');
isnt($node->psql('postgres', "SELECT learnedbtree_train('t_k')"), 0, 'training is refused');
is($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory()'), '0', 'no memory is taken');
is($node->safe_psql('postgres', 'SELECT count(*) FROM learnedbtree_stat'), '2', 'the view of counts can be read');

$node->safe_psql('postgres', 'DROP INDEX t_k2; INSERT INTO t SELECT g FROM generate_series(5000, 30000) g; DELETE FROM t WHERE k % 3 = 0; VACUUM t');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT (SELECT count(*) FROM t WHERE k = 5002), '
	  . '(SELECT sum(k) FROM t WHERE k BETWEEN 100 AND 200), '
	  . "(SELECT string_agg(k::text, ',') FROM (SELECT k FROM t WHERE k < 50 ORDER BY k DESC LIMIT 4) q)"),
	'2|10200|49,47,46,44', 'answers are right');
is($node->psql('postgres', check_sql('t_k')), 0, 'amcheck is content');

# Loading the module in a session is no preloading.
is($node->safe_psql('postgres', "LOAD 'learnedbtree'; SET learnedbtree.enable = off; SELECT count(*) FROM t WHERE k = 5002"), '2',
	'settings can be made all the same');

# Who names indexes is told, once, and so is who sets it for others; not the sessions in which it is set already.
my $plain = qr/^(?:psql:.*?)?NOTICE: +learnedbtree has no shared memory for models: its indexes work as plain btree\n.*HINT: +Add learnedbtree to shared_preload_libraries and restart the server\./;
sub told { return ($node->psql('postgres', $_[0]))[2]; }
like(told("LOAD 'learnedbtree'; SET learnedbtree.btree_indexes = 'all'"), qr/$plain\z/, 'LOAD and SET: told');
like(told("SET learnedbtree.btree_indexes = 'all'; LOAD 'learnedbtree'"), qr/$plain\z/, 'SET and LOAD: told');
like(told("LOAD 'learnedbtree'; SELECT set_config('learnedbtree.btree_indexes', 'all', true); SET learnedbtree.btree_indexes = 't_k'"), qr/$plain\z/, 'once');
is(told("LOAD 'learnedbtree'; SET learnedbtree.btree_indexes = 'none'"), '', 'none: not told');
like(told("LOAD 'learnedbtree'; ALTER ROLE CURRENT_USER SET learnedbtree.btree_indexes = 'all'"), qr/$plain\z/, 'ALTER ROLE: told');
is(told("LOAD 'learnedbtree'; SELECT count(*) FROM t"), '', 'a session of the role: not told');
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=learnedbtree -c learnedbtree.btree_indexes=all';
	is(told('SELECT count(*) FROM t'), '', 'nor one that sets it as it connects');
}
$node->safe_psql('postgres', 'ALTER ROLE CURRENT_USER RESET ALL');

# With preloading the same index gets its model.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\n");
$node->restart;
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE k = 5002'), '2', 'after preloading answers are right');
is(model_state($node, 't_k'), 'ready', 'and a lookup has trained the model');
$node->stop;

# A single-user server, with and without.
foreach my $preload ('learnedbtree', '')
{
	my ($answer, $log) = ('', '');
	ok(run([ 'postgres', '--single', '-c', "shared_preload_libraries=$preload", '-c', 'session_preload_libraries=learnedbtree', '-c', 'learnedbtree.btree_indexes=all',
				'-c', 'learnedbtree.min_leaves=0', '-c', 'enable_seqscan=off', '-D', $node->data_dir, 'postgres' ],
			'<', \'SELECT count(*) AS found FROM t WHERE k = 5002', '>', \$answer, '2>', \$log), "single-user server, preloaded '$preload': ends") or diag($log);
	like($answer, qr/found = "2"/, '... and answers');
}
done_testing();
