# Models in many segments of shared memory, and a process that cannot map one of them: what it was about to change stays as it
# was, for all others, too.  (By the shim in test/shim.)
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

my $indexes = 2300;
build_shim();
my $node = PostgreSQL::Test::Cluster->new('segments');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
max_locks_per_transaction = 256
statement_timeout = 120s
enable_bitmapscan = off
enable_seqscan = off
fsync = off
learnedbtree.autotrain = off
learnedbtree.min_leaves = 0
CONF
with_shim(sub { $node->start });
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree');
declare_shim($node);

# Small models, from blocks that dsa divides, and some that get pages of their own.
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE small (k int4);
INSERT INTO small SELECT generate_series(1, 800);
DO \$\$ BEGIN FOR i IN 1 .. $indexes LOOP
	EXECUTE format('CREATE INDEX small_%s ON small USING learnedbtree (k)', i);
	IF i % 100 = 0 THEN COMMIT; END IF;
END LOOP; END \$\$;
CREATE TABLE large (k int8, pad text COLLATE "C");
INSERT INTO large SELECT g, repeat('x', 400) FROM generate_series(1, 2000) g;
DO \$\$ BEGIN FOR i IN 1 .. 20 LOOP
	EXECUTE format('CREATE INDEX large_%s ON large USING learnedbtree (k, pad) WITH (fillfactor = 10) WHERE k < %s', i, 400 + 80 * i);
END LOOP; END \$\$;
VACUUM ANALYZE small, large;
SQL

# All segments are mapped by who changes something, and they are many.
my $session = $node->background_psql('postgres');
my $maps = '/proc/' . $session->query_safe('SELECT pg_backend_pid()') . '/maps';
my $segments = sub { my %found = map { $_ => 1 } slurp_file($maps) =~ m{(/\S*PostgreSQL\.\d+)}g; return scalar keys %found; };
$session->query_safe("SELECT learnedbtree_model_memory()");
my $before = $segments->();
$session->query_safe("SELECT learnedbtree_train('large_1')");
SKIP:
{
	skip 'segments are no files', 1 unless $node->safe_psql('postgres', 'SHOW dynamic_shared_memory_type') eq 'posix';
	cmp_ok($segments->() - $before, '>=', 4, 'models are in four segments, and the block that all have');
}
$session->quit;

# All of them have room, in pieces.
$node->safe_psql('postgres', <<"SQL");
DO \$\$ BEGIN FOR i IN 1 .. $indexes LOOP
	IF i % 100 > 20 THEN EXECUTE format('DROP INDEX small_%s', i); END IF;
	IF i % 100 = 0 THEN COMMIT; END IF;
END LOOP; END \$\$;
SQL

# In each session one mapping fails, of the first training in it; the next one meets a segment that cannot be mapped.
my $offset = log_size($node);
my @lines = ('\set VERBOSITY terse', 'SET client_min_messages = error;');
my $calls = 0;
foreach my $repeat ('false', 'true')
{
	foreach my $n (map { ($_, $_, $_) } 1 .. 12)
	{
		my @trained = map { 'large_' . (1 + (7 * $n + 3 * $_) % 20) } 0 .. 5;
		push @lines, "\\c\nSET client_min_messages = error;\nSELECT learnedbtree_model_memory() > 0;\nSELECT failat_mapping($n, $repeat);",
		  (map { "SELECT learnedbtree_train('$_');" } @trained),
		  'SELECT failat_failed() AS failed, failat_off() \gset', '\echo @ :failed';
	}
}
my ($out, $err) = ('', '');
IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ], '<', \join("\n", @lines, ''),
	'>', \$out, '2>', \$err, IPC::Run::timeout(2 * patience()));
$calls += $_ foreach $out =~ /^@ (\d+)$/mg;
cmp_ok($calls, '>', 20, 'mappings have failed');
is(join("\n", grep { !/index "small_\d+" does not exist/ } split(/\n/, $err)), '', 'no statement has');
is(crashed_since($node, $offset), '', 'no crash');

# Who cannot map all of them evicts no model, where there is no room for its own.
my $count_ready = "SELECT count(*) FROM learnedbtree_stat WHERE (learnedbtree_model(indexrelid)).state = 'ready'";
my $ready = $node->safe_psql('postgres', $count_ready);
cmp_ok($ready, '>', 100, "$ready models are there");
my $full = $node->safe_psql('postgres', 'SELECT learnedbtree_model_memory() / 1024');
$node->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.max_model_memory = $full");
$node->reload;
wait_until($node, "SELECT learnedbtree_model_memory() > 0 AND (SELECT setting FROM pg_settings WHERE name = 'learnedbtree.max_model_memory') = '$full'");
# (It says how many mappings have failed, last.)
my $train_without = sub {
	my ($n) = @_;
	return $node->safe_psql('postgres', "SELECT learnedbtree_model_memory();\nSELECT failat_mapping($n, true);\nSELECT learnedbtree_train('large_1');\n"
		  . 'SELECT failat_failed()') =~ /(\d+)$/ ? $1 : die 'no count';
};
my $failed = 0;
$failed += $train_without->($_) foreach 1 .. 8;
cmp_ok($failed, '>', 0, "without room for more: $failed mappings have failed");
is($node->safe_psql('postgres', $count_ready), $ready, 'all are there still');
$node->safe_psql('postgres', "SELECT learnedbtree_train('large_1')");
cmp_ok($node->safe_psql('postgres', $count_ready), '<', $ready, 'who can map them evicts some');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET learnedbtree.max_model_memory');
$node->reload;

# Everything can still be changed.
is($node->safe_psql('postgres', "SELECT count(*) FROM large WHERE k = 5"), 1, 'a lookup');
$node->safe_psql('postgres', "SELECT learnedbtree_train(indexrelid) FROM learnedbtree_stat");
is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT (learnedbtree_model(indexrelid)).state, ' ') FROM learnedbtree_stat"), 'ready', 'all are trained');
$node->safe_psql('postgres', 'DROP TABLE small, large');
is($node->safe_psql('postgres', 'SELECT count(*) FROM learnedbtree_stat'), 0, 'all are gone');
$node->stop;
is(crashed_since($node, $offset), '', 'no crash until the end');
done_testing();
