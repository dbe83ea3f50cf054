# Citus: distributed and reference tables whose shards' primary keys are served on the workers.  Answers are those of local
# copies; lookups, joins of colocated tables and ON CONFLICT ask the models, a lookup in a shard takes one index page, and
# an index USING learnedbtree is refused on a distributed table.  test/citus runs this, and says where there is no Citus.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Time::HiRes qw(sleep time);

my $rows = 100_000;
my $coordinator = PostgreSQL::Test::Cluster->new('coordinator');
plan skip_all => 'Citus is not installed' unless -e $coordinator->config_data('--sharedir') . '/extension/citus.control';
my @workers = map { PostgreSQL::Test::Cluster->new("worker$_") } 1, 2;

# Citus has to be the first library.  Its nodes meet by TCP, on this machine alone.
foreach my $node ($coordinator, @workers)
{
	$node->init;
	configure_serving($node, shared => 1);
	$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'citus,learnedbtree'
listen_addresses = '127.0.0.1'
max_connections = 200
max_prepared_transactions = 200
citus.node_conninfo = 'sslmode=disable'
citus.shard_count = 4
CONF
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree');
	$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
}
$coordinator->safe_psql('postgres', "SELECT citus_set_coordinator_host('127.0.0.1', " . $coordinator->port . ')');
$coordinator->safe_psql('postgres', "SELECT citus_add_node('127.0.0.1', " . $_->port . ')') foreach @workers;

$coordinator->safe_psql('postgres', $_) foreach
  'CREATE TABLE orders (id int8 PRIMARY KEY, region int4 NOT NULL, note text)',
  'CREATE TABLE lines (id int8, line int4, amount int4 NOT NULL, PRIMARY KEY (id, line))',
  'CREATE TABLE regions (region int4 PRIMARY KEY, name text NOT NULL)',
  "SELECT create_distributed_table('orders', 'id')",
  "SELECT create_distributed_table('lines', 'id', colocate_with => 'orders')",
  "SELECT create_reference_table('regions')",
  'CREATE TABLE orders_copy (id int8 PRIMARY KEY, region int4 NOT NULL, note text)',
  'CREATE TABLE lines_copy (id int8, line int4, amount int4 NOT NULL, PRIMARY KEY (id, line))',
  'CREATE TABLE regions_copy (region int4 PRIMARY KEY, name text NOT NULL)',
  "INSERT INTO orders_copy SELECT hashint8extended(i, 1) >> 8, i % 5000, 'note ' || i FROM generate_series(1, $rows) i",
  'INSERT INTO lines_copy SELECT id, line, abs(id + line) % 100 FROM orders_copy, generate_series(1, 2) line',
  "INSERT INTO regions_copy SELECT i, 'region ' || i FROM generate_series(0, 4999) i",
  (map { "INSERT INTO $_ TABLE ${_}_copy" } qw(orders lines regions)),
  'VACUUM ANALYZE orders', 'VACUUM ANALYZE lines', 'VACUUM ANALYZE regions';

my @keys = split /\n/, $coordinator->safe_psql('postgres', 'SELECT id FROM orders_copy ORDER BY note LIMIT 20');
my $list = join(',', @keys);
# Of tables with "_" for the copies' suffix: what is asked, which indexes of the shards it uses.
my @questions = (
	[ 'one row', "SELECT id, note FROM orders_ WHERE id = $keys[0]", 'orders_pkey' ],
	[ 'a list', "SELECT id, note FROM orders_ WHERE id = ANY ('{$list}')", 'orders_pkey' ],
	[ 'a join of colocated tables', "SELECT sum(amount), count(*) FROM orders_ o JOIN lines_ l USING (id) WHERE o.id = ANY ('{$list}')", 'lines_pkey' ],
	[ 'a join with a reference table', "SELECT string_agg(name, ',' ORDER BY id) FROM orders_ o JOIN regions_ r USING (region) WHERE o.id = ANY ('{$list}')", 'regions_pkey' ]);

sub ask
{
	my ($question, $suffix) = @_;
	$question =~ s/\b(orders|lines|regions)_(?=\s)/$1$suffix/g;
	return join("\n", sort split /\n/, $coordinator->safe_psql('postgres', $question));
}

# How often models of the indexes of a table's shards were asked, on both workers.
sub asked_of
{
	my ($index) = @_;
	my $sum = 0;
	$sum += $_->safe_psql('postgres', "SELECT coalesce(sum(lookups + inserts), 0) FROM learnedbtree_stat WHERE indexrelname ~ '^${index}_\\d+\$'")
	  foreach @workers;
	return $sum;
}

# Have they been asked in what code did?  Sessions on the workers tell when they end, some time after the coordinator's; it
# is waited for where they are to be asked.
sub models_asked
{
	my ($index, $wanted, $code) = @_;
	my $before = asked_of($index);
	$code->();
	for (my $end = time + ($wanted ? patience() : 2); time < $end; sleep(0.1))
	{
		return 1 if asked_of($index) > $before;
	}
	return 0;
}

# Pages of an index-only lookup in a shard of the first worker.
sub pages
{
	my $shard = $workers[0]->safe_psql('postgres', q{SELECT relname FROM pg_class WHERE relname ~ '^orders_\d+$' AND relkind = 'r' ORDER BY 1 LIMIT 1});
	my $key = $workers[0]->safe_psql('postgres', "SELECT id FROM $shard ORDER BY id OFFSET 10 LIMIT 1");
	my $lookup = "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id FROM $shard WHERE id = $key";
	my $plan = $workers[0]->safe_psql('postgres', "$lookup; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) " . ($lookup =~ s/.*; //r));
	return $plan =~ /Index Only Scan using orders_pkey_\d+ .*?Buffers: shared hit=(\d+)/s ? $1 : $plan;
}

my %pages;
foreach my $setting ('none', 'all')
{
	foreach my $worker (@workers)
	{
		$worker->append_conf('postgresql.conf', "learnedbtree.btree_indexes = '$setting'\n");
		$worker->restart;
	}
	foreach my $question (@questions)
	{
		my ($title, $sql, $index) = @$question;
		my $answer;
		is(models_asked($index, $setting eq 'all', sub { $answer = ask($sql, '') }), $setting eq 'all' ? 1 : 0,
			$setting eq 'all' ? "$title: models are asked" : "$title: without the setting no model is asked");
		is($answer, ask($sql, '_copy'), '... and the answer is right');
		isnt($answer, '', '... and there is one');
	}
	$pages{$setting} = pages();
}
is($pages{all}, 2, 'a lookup in a shard visits one index page, and the visibility map');
cmp_ok($pages{none}, '>', 2, 'and without a model more');

foreach my $change ("INSERT INTO orders_ SELECT i, 1, 'new' FROM generate_series(1, 300) i",
	"INSERT INTO orders_ SELECT i, 2, 'newer' FROM generate_series(201, 500) i ON CONFLICT DO NOTHING",
	"INSERT INTO orders_ SELECT i, 3, 'newest' FROM generate_series(401, 600) i ON CONFLICT (id) DO UPDATE SET note = excluded.note",
	"UPDATE orders_ SET note = 'changed' WHERE id = $keys[0]", "DELETE FROM orders_ WHERE id = $keys[1]")
{
	ok(models_asked('orders_pkey', 1, sub { ask($change, '') }), 'models are asked by: ' . substr($change, 0, 60));
	ask($change, '_copy');
	my $all = 'SELECT count(*), sum(hashtext(concat_ws(chr(32), id, region, note))) FROM orders_ o';
	is(ask($all, ''), ask($all, '_copy'), '... and the rows are right');
}

like(($coordinator->psql('postgres', 'CREATE INDEX orders_region ON orders USING learnedbtree (region)'))[2], qr/unsupported object operator class/i,
	'an index USING learnedbtree is refused on a distributed table');
is(amcheck_all($_, 'postgres'), '', 'the indexes of ' . $_->name . ' are in order') foreach @workers;
$_->stop foreach $coordinator, @workers;
done_testing();
