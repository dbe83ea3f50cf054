# An image of the extension alone, mounted into a server's container, as CloudNativePG does it: the folders share/ and lib/
# anywhere, named by extension_control_path and dynamic_library_path.  The server itself has no file of the extension.
#
# packaging/Dockerfile.volume makes such an image; its folders are made here by the commands that it runs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $config = PostgreSQL::Test::Cluster->new('config');
plan skip_all => 'extension_control_path is new in 18' if $config->pg_version < 18;

my ($prefix, $lib, $extensions) = private_install($config);
my $volume = PostgreSQL::Test::Utils::tempdir() . '/extensions/learnedbtree';

# What the Dockerfile copies into the image, from the files that make install has made.
my %source = ('share/extension' => $extensions, 'lib' => $lib);
my $copies = 0;
foreach my $line (split /\n/, slurp_file("$FindBin::RealBin/../../packaging/Dockerfile.volume"))
{
	next unless $line =~ m{^COPY --from=build \S+/(\S+) /(\S+)/$};
	my ($files, $to) = ($1, $2);
	system_or_bail('mkdir', '-p', "$volume/$to");
	my @files = glob("$source{$to}/" . $files =~ s{^.*/}{}r);
	ok(scalar(@files), "$line: there are files");
	system_or_bail('mv', @files, "$volume/$to");
	$copies += @files;
}
cmp_ok($copies, '>=', 3, 'the control file, a script and the library are copied');
is_deeply([ glob("$extensions/learnedbtree*"), glob("$lib/learnedbtree*") ], [], 'the server has nothing of the extension');
like(slurp_file("$volume/share/extension/learnedbtree.control"), qr/^module_pathname = '\$libdir\/learnedbtree'$/m, 'the control file names $libdir');

my $node = PostgreSQL::Test::Cluster->new('volume', install_path => $prefix);
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', <<"CONF");
extension_control_path = '\$system:$volume/share'
dynamic_library_path = '\$libdir:$volume/lib'
learnedbtree.btree_indexes = 'all'
learnedbtree.min_leaves = 0
CONF
foreach my $setting ('session_preload_libraries', 'shared_preload_libraries')
{
	$node->append_conf('postgresql.conf', "session_preload_libraries = ''\n$setting = 'learnedbtree'\n");
	$node->stop if -e $node->data_dir . '/postmaster.pid';
	$node->start;
	$node->safe_psql('postgres', <<'SQL');
DROP EXTENSION IF EXISTS learnedbtree CASCADE;
DROP TABLE IF EXISTS t;
CREATE EXTENSION learnedbtree;
CREATE TABLE t (k int8 PRIMARY KEY);
INSERT INTO t SELECT generate_series(1, 20000);
CREATE INDEX t_l ON t USING learnedbtree (k);
SELECT learnedbtree_train('t_pkey');
SQL
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM generate_series(1, 300) g, LATERAL (SELECT FROM t WHERE k = g OFFSET 0) q; '
		  . q(SELECT sum(lookups) > 0 FROM learnedbtree_stat; SELECT count(*) FROM learnedbtree_model('t_l') WHERE state = 'ready')),
		"300\nt\n1", "$setting: serves, and the access method works");
	is($node->safe_psql('postgres', q(SELECT file_name FROM pg_get_loaded_modules() WHERE module_name = 'learnedbtree')), 'learnedbtree.so',
		"$setting: one library is loaded, by one name");
	# A background worker finds the library by its name alone.
	$node->safe_psql('postgres', 'SET learnedbtree.retrain_visits = 1; INSERT INTO t SELECT generate_series(20001, 90000)');
	wait_until($node, q(SELECT trainings > 1 FROM learnedbtree_stat WHERE indexrelname = 't_l'));
}
$node->command_ok([ 'pg_dump', '-d', 'postgres', '-f', "$volume/dump" ], 'a dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', 'restored', '-f', "$volume/dump" ], 'is restored');

$node->stop;
done_testing();
