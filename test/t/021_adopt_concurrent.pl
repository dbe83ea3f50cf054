# Primary keys, unique and other indexes are adopted and released over and over while 16 clients look up, join, insert,
# update and delete, by simple and by prepared statements.  Nobody gets an error, each answer is that of a btree index on
# a mirror column that nobody touches, and in the end nothing is lost.  LBT_ADOPT_SECONDS makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Adoption;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Torture;

my $seed = $ENV{LBT_SEED} || 20241105;
my $seconds = $ENV{LBT_ADOPT_SECONDS} || 15;
my $customers = 400;
my $keys = 30000;
my @adopted = qw(customers_pkey customers_name_key orders_pkey orders_customer events_pkey);

my $node = PostgreSQL::Test::Cluster->new('adopt');
$node->init;
torture_conf($node);
$node->start;
torture_settings($node);
my $on_conflict = $node->pg_version >= 18 ? 'ON CONFLICT DO NOTHING' : '';

# bid, bcustomer: mirrors.  done: how many rows each client has added, and the sum of their keys.
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE customers (id int PRIMARY KEY, name text COLLATE "C" UNIQUE, bid int);
CREATE INDEX customers_bid ON customers (bid);
CREATE TABLE orders (id int8 PRIMARY KEY, customer int NOT NULL REFERENCES customers ON UPDATE CASCADE,
	amount int NOT NULL DEFAULT 1, bid int8, bcustomer int);
CREATE INDEX orders_customer ON orders (customer, id);
CREATE INDEX orders_bcustomer ON orders (bcustomer, bid);
CREATE INDEX orders_bid ON orders (bid);
INSERT INTO customers SELECT g, 'customer ' || g, g FROM generate_series(1, $customers) g;
INSERT INTO orders SELECT g * 3, c, 1, g * 3, c FROM generate_series(1, $keys / 3) g, LATERAL (SELECT g * 7 % $customers + 1 AS c) q;
CREATE TABLE events (k int8 PRIMARY KEY, v int NOT NULL DEFAULT 0, bk int8) PARTITION BY RANGE (k);
CREATE TABLE events1 PARTITION OF events FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE events2 PARTITION OF events FOR VALUES FROM (1000) TO (20000);
CREATE TABLE events3 PARTITION OF events FOR VALUES FROM (20000) TO (MAXVALUE);
CREATE INDEX events_bk ON events (bk);
INSERT INTO events SELECT g * 10, 0, g * 10 FROM generate_series(1, $keys / 10) g;
CREATE TABLE done (who int PRIMARY KEY, rows int8 NOT NULL, total numeric NOT NULL);
INSERT INTO done SELECT g, 0, 0 FROM generate_series(0, 19) g;
INSERT INTO done SELECT -1, count(*), sum(id) FROM orders;

CREATE FUNCTION place(client int, key int8, buyer int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	added int8;
BEGIN
	BEGIN
		INSERT INTO orders VALUES (key, buyer, 1, key, buyer) $on_conflict RETURNING id INTO added;
	EXCEPTION WHEN unique_violation THEN
		NULL;
	END;
	UPDATE done SET rows = rows + 1, total = total + added WHERE who = client AND added IS NOT NULL;
END \$\$;
CREATE FUNCTION move(client int, key int8, distance int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	moved int8;
BEGIN
	BEGIN
		UPDATE orders SET id = id + distance, bid = id + distance WHERE id = key;
		GET DIAGNOSTICS moved = ROW_COUNT;
	EXCEPTION WHEN unique_violation THEN
		moved := 0;
	END;
	UPDATE done SET total = total + moved * distance WHERE who = client;
END \$\$;
CREATE FUNCTION remove(client int, key int8) RETURNS void LANGUAGE sql AS \$\$
	WITH old AS (DELETE FROM orders WHERE id = key RETURNING id)
		UPDATE done SET rows = rows - n, total = total - sum FROM (SELECT count(*) AS n, coalesce(sum(id), 0) AS sum FROM old) q
			WHERE who = client
\$\$;
CREATE FUNCTION happen(key int8) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	INSERT INTO events VALUES (key, 0, key);
EXCEPTION WHEN unique_violation THEN
	UPDATE events SET v = v + 1 WHERE k = key;
END \$\$;
-- A statement of the loop, in a subtransaction and with little patience: given up, it must leave no trace.
CREATE FUNCTION try(call text, patience text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM set_config('lock_timeout', patience, true);
	EXECUTE 'SELECT ' || call;
EXCEPTION WHEN lock_not_available THEN
	NULL;
END \$\$;
SQL
$node->safe_psql('postgres', 'VACUUM ANALYZE customers, orders, events, done');

# A question of which the two answers must be the same: a division by zero, if they are not.  @ is the mirror's prefix.
sub question
{
	my ($query) = @_;
	my ($learned, $btree) = map { $query =~ s/@/$_/gr } '', 'b';
	return "SELECT 1 / (($learned) IS NOT DISTINCT FROM ($btree))::int;";
}

my $n = "\\set n random(0, $keys)\n\\set c random(1, $customers)\n";
my @read = (
	[ lookup => 20, $n . question('SELECT concat_ws(chr(32), count(*), sum(amount), sum(customer)) FROM orders WHERE @id = :n') ],
	[ join => 6, $n . question('SELECT concat_ws(chr(32), count(*), sum(o.id), max(c.name)) FROM customers c JOIN orders o '
			  . 'ON o.@customer = c.@id WHERE c.@id BETWEEN :c AND :c + 3') ],
	[ range => 8, $n . question('SELECT string_agg(r::text, chr(32)) FROM (SELECT @id AS r FROM orders WHERE @id >= :n ORDER BY @id LIMIT 20) q') ],
	[ backward => 4, $n . question('SELECT string_agg(r::text, chr(32)) FROM (SELECT @id AS r FROM orders WHERE @id < :n '
			  . 'ORDER BY @id DESC LIMIT 20) q') ],
	[ list => 4, $n . question('SELECT concat_ws(chr(32), count(*), sum(id)) FROM orders WHERE @id IN (:n, :n + 3, :n + 300, :n - 60)') ],
	[ page => 8, $n . question('SELECT string_agg(r::text, chr(32)) FROM (SELECT @id AS r FROM orders WHERE (@customer, @id) > (:c, :n) '
			  . 'ORDER BY @customer, @id LIMIT 10) q') ],
	[ event => 6, $n . question('SELECT concat_ws(chr(32), count(*), sum(v)) FROM events WHERE @k BETWEEN :n AND :n + 15') ],
	[ events => 2, $n . question('SELECT string_agg(r::text, chr(32)) FROM (SELECT @k AS r FROM events WHERE @k > :n ORDER BY @k LIMIT 30) q') ],
	[ name => 4, "${n}SELECT 1 / (count(*) = 1)::int FROM customers WHERE name = 'customer ' || :c;" ]);
my @write = (
	[ write_place => 12, "${n}SELECT place(:client_id + :base, :n, :c);" ],
	[ write_twice => 3, "${n}\\set m random(0, $keys)\nBEGIN;\nSELECT place(:client_id + :base, :n, :c);\n"
		  . "SELECT place(:client_id + :base, $keys + :n * 20 + :client_id + :base, :c);\nCOMMIT;" ],
	[ write_move => 6, "${n}\\set d random(-500, 500)\nSELECT move(:client_id + :base, :n, :d);" ],
	[ write_remove => 8, "${n}SELECT remove(:client_id + :base, :n);" ],
	[ write_amount => 6, "${n}UPDATE orders SET amount = amount + 1 WHERE id = :n;" ],
	[ write_event => 5, "${n}SELECT happen(:n);" ],
	[ rollback => 2, "${n}BEGIN;\nSELECT place(:client_id + :base, :n, :c);\nROLLBACK;" ]);

my @loop;
foreach my $index (@adopted)
{
	my ($adopt, $release) = ("learnedbtree_adopt('$index', true)", "learnedbtree_release('$index')");
	push @loop,
	  [ "$index.adopt", 6, "SELECT $adopt;\n\\sleep 5 ms" ],
	  [ "$index.release", 5, "SELECT $release;\n\\sleep 5 ms" ],
	  [ "$index.impatient", 3, "SELECT try(\$\$$adopt\$\$, '1ms');\nSELECT try(\$\$$release\$\$, '1ms');" ],
	  [ "$index.undone", 2, "BEGIN;\nSELECT $adopt;\nROLLBACK;\nBEGIN;\nSAVEPOINT s;\nSELECT $release;\nROLLBACK TO s;\nCOMMIT;" ],
	  [ "$index.both", 1, "BEGIN;\nSELECT $adopt;\nSELECT $release;\nSELECT $adopt;\nCOMMIT;" ],
	  [ "$index.train", 1, "SELECT $adopt;\nSELECT learnedbtree_train('" . $index =~ s/events_/events2_/r . "');" ];
}

push @loop, [ 'orders.all', 4, "SELECT count(*) FROM learnedbtree_adopt_all('orders', true);\n\\sleep 5 ms\n"
	  . "SELECT count(*) FROM learnedbtree_release_all('*rders');" ];

# pgbench has no number of its own for a second run's clients.
sub scripts { my ($base) = @_; return [ map { [ $_->[0], $_->[1], $_->[2] =~ s/:base/$base/gr ] } @read, @write ]; }
# Preparing a statement waits for locks, and with it the thread: a client in a transaction must not share it.
my @load = map { start_load($node, clients => 8, jobs => 8, seconds => $seconds, seed => $seed + $_, protocol => $_ ? 'prepared' : 'simple',
		scripts => scripts($_ * 8)) } 0, 1;
my $loop = start_load($node, clients => 1, seconds => $seconds - 1, seed => $seed, scripts => \@loop);
ok(end_load($loop), 'adopting and releasing never fails') or diag(substr($loop->{err}, 0, 3000));
ok(end_load($load[0]), 'no errors and no wrong answers by simple statements') or diag(substr($load[0]{err}, 0, 3000));
ok(end_load($load[1]), 'nor by prepared ones') or diag(substr($load[1]{err}, 0, 3000));
note(join("\n", grep { /actually processed|tps/ } split(/\n/, $_->{out}))) foreach $loop, @load;

# ---- what is left ----

my $entries = "SELECT concat_ws(' ', count(*), md5(string_agg(r, ' '))) FROM (SELECT concat_ws(',', %s) AS r FROM %s ORDER BY %s) q";
my %columns = (customers_pkey => [ 'customers', 'id' ], customers_name_key => [ 'customers', 'name' ],
	orders_pkey => [ 'orders', 'id' ], orders_customer => [ 'orders', 'customer, id' ], events_pkey => [ 'events', 'k' ]);

sub check_all
{
	my ($when) = @_;
	is($node->safe_psql('postgres', "SELECT concat_ws(' ', count(*), sum(id)) = (SELECT concat_ws(' ', sum(rows), sum(total)) FROM done), "
			  . 'count(*) = count(DISTINCT id), count(*) = count(id = bid AND customer = bcustomer OR NULL) FROM orders'),
		't|t|t', "$when: the table holds what its clients have put there");
	is(dangling($node, 'postgres'), '', "$when: the catalogs fit together");
	foreach my $index (@adopted)
	{
		my ($table, $order) = @{ $columns{$index} };
		my $query = sprintf $entries, $order, $table, $order;
		my ($by_index, $by_table) = map { $node->safe_psql('postgres', "$_; $query") }
		  'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off', 'SET enable_indexscan = off; SET enable_indexonlyscan = off';
		is($by_index, $by_table, "$when: $index has the table's entries");
		is(amcheck($node, 'postgres', $index), $table eq 'events' ? 3 : 1, "$when: amcheck is content with $index");
	}
}

check_all('after the loop');
adopt($node, 'postgres', @adopted);
check_all('all adopted');
release($node, 'postgres', @adopted);
check_all('all released');

my %seen;
foreach my $file (glob "$loop->{folder}/log.*")
{
	foreach my $line (split /\n/, slurp_file($file))
	{
		my $script = (split / /, $line)[3];
		$seen{ $loop->{scripts}[$script][0] }++;
	}
}
foreach my $index (@adopted)
{
	cmp_ok($seen{"$index.adopt"} // 0, '>=', 5, "$index was adopted often enough");
}
is($node->safe_psql('postgres', 'SELECT sum(rows) <> 0 OR sum(total) <> 0 FROM done WHERE who >= 8'), 't', 'prepared statements have written');

is(unexpected_in_log($node, 0, qr/duplicate key value/), '', 'no other errors in the log');
$node->stop;
done_testing();
