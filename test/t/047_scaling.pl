# Partitions on other servers: a coordinator whose table's partitions are foreign tables (postgres_fdw) on two shards, read
# asynchronously, with the shards' primary keys served there.  Answers are those of a local copy, lookups, lists, joins and
# writes ask the shards' models, and ON CONFLICT DO NOTHING works through the coordinator; doc/scaling.md has the statements.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $rows = 20_000;
my $coordinator = PostgreSQL::Test::Cluster->new('coordinator');
plan skip_all => 'postgres_fdw is not installed' unless -e $coordinator->config_data('--sharedir') . '/extension/postgres_fdw.control';
# A server that was built beside another one's libpq may else load that.
local $ENV{LD_LIBRARY_PATH} = join(':', $coordinator->config_data('--libdir'), $ENV{LD_LIBRARY_PATH} // ());
my @shards = map { serving_node("shard$_") } 1, 2;

# Shards first: ordinary tables with ordinary primary keys.
$_->safe_psql('postgres', <<'SQL') foreach @shards;
CREATE TABLE orders (id int8 PRIMARY KEY, customer int4 NOT NULL, note text);
CREATE TABLE lines (id int8, line int4, amount int4 NOT NULL, PRIMARY KEY (id, line));
SQL

$coordinator->init;
configure_node($coordinator);
$coordinator->start;
my $user = (getpwuid($<))[0];
$coordinator->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw');
$coordinator->safe_psql('postgres', <<'SQL');
CREATE TABLE orders (id int8 NOT NULL, customer int4 NOT NULL, note text) PARTITION BY HASH (id);
CREATE TABLE lines (id int8 NOT NULL, line int4 NOT NULL, amount int4 NOT NULL) PARTITION BY HASH (id);
SQL
foreach my $i (0, 1)
{
	my ($server, $host, $port) = ("shard$i", $shards[$i]->host, $shards[$i]->port);
	$coordinator->safe_psql('postgres', <<"SQL");
CREATE SERVER $server FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', use_remote_estimate 'true');
CREATE USER MAPPING FOR CURRENT_USER SERVER $server OPTIONS (user '$user');
CREATE FOREIGN TABLE orders_$i PARTITION OF orders FOR VALUES WITH (MODULUS 2, REMAINDER $i) SERVER $server OPTIONS (table_name 'orders', batch_size '1000');
CREATE FOREIGN TABLE lines_$i PARTITION OF lines FOR VALUES WITH (MODULUS 2, REMAINDER $i) SERVER $server OPTIONS (table_name 'lines', batch_size '1000');
SQL
}

# Rows go to the shards through the coordinator, which has a copy of its own to compare with.
$coordinator->safe_psql('postgres', <<"SQL");
CREATE TABLE orders_copy (id int8 PRIMARY KEY, customer int4 NOT NULL, note text);
CREATE TABLE lines_copy (id int8, line int4, amount int4 NOT NULL, PRIMARY KEY (id, line));
INSERT INTO orders_copy SELECT hashint8extended(i, 1) >> 8, i % 2000, rpad('note ' || i, 300, '.') FROM generate_series(1, $rows) i;
INSERT INTO lines_copy SELECT id, line, (id + line) % 100 FROM orders_copy, generate_series(1, 3) line;
INSERT INTO orders TABLE orders_copy;
INSERT INTO lines TABLE lines_copy;
SQL
$_->safe_psql('postgres', 'VACUUM ANALYZE') foreach @shards;
$coordinator->safe_psql('postgres', 'ANALYZE');
my @counts = map { $_->safe_psql('postgres', 'SELECT count(*) FROM orders') } @shards;
cmp_ok($counts[$_], '>', $rows / 3, "shard $_ has its share of the rows") foreach 0, 1;

my @settings = ('SET enable_partitionwise_join = on', 'SET enable_partitionwise_aggregate = on');
my @keys = split /\n/, $coordinator->safe_psql('postgres', 'SELECT id FROM orders_copy ORDER BY note LIMIT 40');
my $list = join(',', @keys);
# Of tables with "_" for the copies' suffix: what is asked, which indexes of the shards it uses.
my @questions = (
	[ 'one row each', join(' UNION ALL ', map { "SELECT note FROM orders_ WHERE id = $_" } @keys), 'orders_pkey' ],
	[ 'a list', "SELECT id, note FROM orders_ WHERE id = ANY ('{$list}')", 'orders_pkey' ],
	[ 'a range', "SELECT count(*), sum(customer) FROM orders_ WHERE id BETWEEN 0 AND 1000000000000000", 'orders_pkey' ],
	[ 'a join on the shards', 'SELECT sum(amount), count(*) FROM orders_ o JOIN lines_ l USING (id) WHERE customer < 20', 'lines_pkey' ],
	[ 'rows of a local table', 'SELECT sum(amount) FROM (SELECT id FROM orders_copy ORDER BY note LIMIT 10) s JOIN lines_ l USING (id)', 'lines_pkey' ]);

# What the coordinator answers, one row a line and in order.
sub ask
{
	my ($question, $suffix) = @_;
	$question =~ s/\b(orders|lines)_(?=\s)/$1$suffix/g;
	return join("\n", sort split /\n/, $coordinator->safe_psql('postgres', join(';', @settings, $question)));
}

# Which of the shards have asked the model of their index in what code did.  Sessions of the coordinator's have ended then.
sub asked_on_shards
{
	my ($index, $code) = @_;
	my @before = map { uses($_, 'postgres', 'model', $index) } @shards;
	$code->();
	wait_until($_, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'postgres_fdw%'") foreach @shards;
	my @after = map { uses($_, 'postgres', 'model', $index) } @shards;
	return join(' ', grep { $after[$_] > $before[$_] } 0, 1);
}

my $plan = $coordinator->safe_psql('postgres', join(';', @settings, 'EXPLAIN (COSTS OFF) SELECT note FROM orders WHERE customer < 20'));
is(() = $plan =~ /Async Foreign Scan on orders_[01]/g, 2, 'both shards are asked at the same time') or diag($plan);
$plan = $coordinator->safe_psql('postgres', join(';', @settings, 'EXPLAIN (COSTS OFF, VERBOSE) SELECT amount FROM orders JOIN lines USING (id) WHERE customer < 20'));
is(() = $plan =~ /Async Foreign Scan\n.*\n *Relations: .* INNER JOIN/g, 2, 'also for joins, which they do') or diag($plan);

foreach my $served (0, 1)
{
	if ($served)
	{
		# For the coordinator's sessions alone; a setting of the shards' databases does it for all.
		$coordinator->safe_psql('postgres', "ALTER SERVER shard$_ OPTIONS (ADD options '-c learnedbtree.btree_indexes=all')") foreach 0, 1;
	}
	foreach my $question (@questions)
	{
		my ($title, $sql, $index) = @$question;
		my $answer;
		is(asked_on_shards($index, sub { $answer = ask($sql, '') }), $served ? '0 1' : '',
			"$title: " . ($served ? 'both shards ask their models' : 'without the setting no shard does'));
		is($answer, ask($sql, '_copy'), '... and the answer is right');
		isnt($answer, '', '... and there is one');
	}
}

# ---- writes ----

my $write = sub {
	my ($sql, $title) = @_;
	is(asked_on_shards('orders_pkey', sub {
				$coordinator->safe_psql('postgres', $sql);
				$coordinator->safe_psql('postgres', $sql =~ s/\b(INTO|UPDATE|FROM) orders\b/$1 orders_copy/r);
			}), '0 1', "$title: both shards ask their models");
	is(ask('SELECT count(*), sum(hashtext(o::text)) FROM orders_ o', ''), ask('SELECT count(*), sum(hashtext(o::text)) FROM orders_ o', '_copy'),
		'... and have the right rows');
};
$write->("INSERT INTO orders SELECT (i * 7919) % 100000, 1, 'new' FROM generate_series(1, 200) i", 'INSERT');
$write->("INSERT INTO orders SELECT (i * 7919) % 100000, 2, 'newer' FROM generate_series(101, 300) i ON CONFLICT DO NOTHING", 'ON CONFLICT DO NOTHING');
is($coordinator->safe_psql('postgres', "SELECT note, count(*) FROM orders WHERE note LIKE 'new%' GROUP BY 1 ORDER BY 1"), "new|200\nnewer|100", '... which inserted what was not there');
foreach my $clause ('(id) DO NOTHING', '(id) DO UPDATE SET note = excluded.note')
{
	like(($coordinator->psql('postgres', "INSERT INTO orders VALUES (1, 1, 'x') ON CONFLICT $clause"))[2], qr/no unique or exclusion constraint matching/,
		"ON CONFLICT $clause is refused by the coordinator");
}
like(($coordinator->psql('postgres', 'INSERT INTO orders SELECT id, 3 FROM orders_copy LIMIT 1'))[2], qr/duplicate key value violates unique constraint "orders_pkey"/,
	'without it a duplicate is refused');
$write->("UPDATE orders SET note = 'changed' WHERE id = ANY ('{$list}')", 'UPDATE');
$write->("DELETE FROM orders WHERE id = ANY ('{$list}')", 'DELETE');

is(amcheck_all($_, 'postgres'), '', 'the indexes of ' . $_->name . ' are in order') foreach @shards;
$_->stop foreach $coordinator, @shards;
done_testing();
