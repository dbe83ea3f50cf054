# Primary keys, unique and other indexes get names that are served, lose them, are excluded, trained and rebuilt, and the
# setting changes, over and over while 16 clients look up, join, insert, update and delete, by simple and by prepared statements; half of them have not loaded the library
# (below 17: serve no index).  Nobody gets an error, each answer is that of a btree index on a mirror column that nobody
# touches, and in the end nothing is lost.  LBT_NAME_SECONDS makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Torture;

my $seed = $ENV{LBT_SEED} || 20241105;
my $seconds = $ENV{LBT_NAME_SECONDS} || 5;
my $customers = 400;
my $keys = 30000;
my @named = qw(customers_pkey customers_name_key orders_pkey orders_customer events_pkey);

my $node = PostgreSQL::Test::Cluster->new('names');
$node->init;
torture_conf($node);
$node->append_conf('postgresql.conf', "learnedbtree.min_leaves = 0\nlearnedbtree.btree_indexes = 'served_*, !served_*_not'\n");
$node->start;
torture_settings($node);

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
	IF key % 2 = 0 THEN
		INSERT INTO orders VALUES (key, buyer, 1, key, buyer) ON CONFLICT DO NOTHING RETURNING id INTO added;
	ELSE
		BEGIN
			INSERT INTO orders VALUES (key, buyer, 1, key, buyer) RETURNING id INTO added;
		EXCEPTION WHEN unique_violation THEN
			NULL;
		END;
	END IF;
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
CREATE FUNCTION happen(key int8) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO events VALUES (key, 0, key) ON CONFLICT (k) DO UPDATE SET v = events.v + 1
\$\$;
-- A statement of the loop, in a subtransaction and with little patience: given up, it must leave no trace.
CREATE FUNCTION try(call text, patience text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM set_config('lock_timeout', patience, true);
	EXECUTE call;
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
foreach my $index (@named)
{
	my ($in, $out) = map { naming($_, $index) } 'in', 'out';
	# The list excludes a name that ends so.
	my $exclude = "ALTER INDEX IF EXISTS served_$index RENAME TO served_${index}_not";
	my $include = "ALTER INDEX IF EXISTS served_${index}_not RENAME TO served_$index";
	push @loop,
	  [ "$index.in", 6, "$in;\n\\sleep 5 ms" ],
	  [ "$index.out", 5, "$out;\n\\sleep 5 ms" ],
	  [ "$index.exclude", 2, "$exclude;\n\\sleep 5 ms\n$include;" ],
	  [ "$index.impatient", 3, "SELECT try(\$\$$in\$\$, '1ms');\nSELECT try(\$\$$out\$\$, '1ms');" ],
	  [ "$index.undone", 2, "BEGIN;\n$in;\nROLLBACK;\nBEGIN;\nSAVEPOINT s;\n$out;\nROLLBACK TO s;\nCOMMIT;" ],
	  [ "$index.both", 1, "BEGIN;\n$in;\n$out;\n$in;\nCOMMIT;" ],
	  [ "$index.train", 1, "$in;\nSELECT learnedbtree_train('" . ($index =~ /events_/ ? 'events2_pkey' : "served_$index") . "');" ];
}
my $list = 'served_*, !served_*_not';
push @loop,
  map({ [ "reload.$_", 3, "ALTER SYSTEM SET learnedbtree.btree_indexes = '$_';\nSELECT pg_reload_conf();\n\\sleep 5 ms\n"
			. "ALTER SYSTEM SET learnedbtree.btree_indexes = '$list';\nSELECT pg_reload_conf();" ] } 'none', 'all', 'all, !orders_*, !customers_*'),
  [ 'set', 2, "ALTER INDEX IF EXISTS orders_customer SET (fillfactor = 80);\nALTER INDEX IF EXISTS orders_customer RESET (fillfactor);" ],
  [ 'vacuum', 2, 'VACUUM ANALYZE customers, orders, events;' ],
  [ 'reindex', 1, naming('in', 'orders_customer') . ";\nREINDEX INDEX CONCURRENTLY served_orders_customer;" ];

# pgbench has no number of its own for a second run's clients.
sub scripts { my ($base) = @_; return [ map { [ $_->[0], $_->[1], $_->[2] =~ s/:base/$base/gr ] } @read, @write ]; }
my $without = needs_preload($node) ? '-c learnedbtree.btree_indexes=none' : '-c session_preload_libraries=';
# First client, how many, protocol, options of the connection.  Preparing a statement waits for locks, and with it the
# thread: a client in a transaction must not share it.
my %groups = (
	'by simple statements' => [ 0, 4, 'simple' ], 'by prepared ones' => [ 4, 4, 'prepared' ],
	'by simple ones without the library' => [ 8, 4, 'simple', $without ], 'by prepared ones without it' => [ 12, 4, 'prepared', $without ]);
my %named_in_loop;
my $wrote = 'SELECT count(*) FROM done WHERE rows <> 0 AND who >= 0 AND who < 16';

sub run_all
{
	my ($round) = @_;
	my %load;
	foreach my $name (sort keys %groups)
	{
		my ($base, $clients, $protocol, $options) = @{ $groups{$name} };
		$load{$name} = start_load($node, clients => $clients, jobs => $clients, seconds => $seconds, seed => $seed + $base + 100 * $round,
			protocol => $protocol, options => $options, scripts => scripts($base));
	}
	my $loop = start_load($node, clients => 1, seconds => $seconds - 1, seed => $seed + 100 * $round, scripts => \@loop);
	ok(end_load($loop), 'the loop never fails') or diag(substr($loop->{err}, 0, 3000));
	foreach my $name (sort keys %load)
	{
		ok(end_load($load{$name}), "$name: no errors and no wrong answers") or diag(substr($load{$name}{err}, 0, 3000));
		note($name, ': ', $load{$name}{out} =~ /actually processed: (\d+)/);
	}
	note('the loop: ', $loop->{out} =~ /actually processed: (\d+)/);
	foreach my $file (glob "$loop->{folder}/log.*")
	{
		foreach my $line (split /\n/, slurp_file($file))
		{
			my $script = (split / /, $line)[3];
			$named_in_loop{$1}++ if $loop->{scripts}[$script][0] =~ /^(\w+)\.in$/;
		}
	}
	return;
}

# On a slow machine once is too little for each index to have its turn, and for each client to write.
for (my $round = 0; $round < 10; $round++)
{
	run_all($round);
	last if !grep({ !$named_in_loop{$_} } @named) && $node->safe_psql('postgres', $wrote) == 16;
}
is($node->safe_psql('postgres', $wrote), 16, 'each client has written');
cmp_ok($named_in_loop{$_} // 0, '>', 0, "$_ was named in the loop") foreach @named;

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
	foreach my $index (@named)
	{
		my ($table, $order) = @{ $columns{$index} };
		my $query = sprintf $entries, $order, $table, $order;
		my ($by_index, $by_table) = map { $node->safe_psql('postgres', "$_; $query") }
		  'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off', 'SET enable_indexscan = off; SET enable_indexonlyscan = off';
		is($by_index, $by_table, "$when: $index has the table's entries");
	}
	is(amcheck_all($node, 'postgres'), '', "$when: amcheck is content");
}

name_out($node, 'postgres', @named);
foreach my $index (@named)
{
	my ($used, $scanned) = ((uses($node, 'postgres', 'all', $index))[0], $node->safe_psql('postgres',
			"SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelid IN (SELECT relid FROM pg_partition_tree('$index')) "
			  . "OR indexrelid = '$index'::regclass"));
	# What REINDEX CONCURRENTLY makes begins to count anew.
	cmp_ok($used, '>', 0, "$index was served") if $index ne 'orders_customer';
	note("$index: $used served scans and inserts, $scanned scans");
}
check_all('after the loop');
serve($node, \@named);
check_all('all named');
is($node->safe_psql('postgres', 'SELECT min(indexes) FROM learnedbtree_patterns'), '1', 'each name has its index');
foreach my $index (map { $_ eq 'events_pkey' ? qw(events1_pkey events2_pkey events3_pkey) : $_ } @named)
{
	is($node->psql('postgres', "SELECT learnedbtree_train('$index'), learnedbtree_check('$index')"), 0, "the model of $index is right");
}
serve($node, 'none');
check_all('none served');

is(unexpected_in_log($node, 0, qr/duplicate key value/), '', 'no other errors in the log');
$node->stop;
done_testing();
