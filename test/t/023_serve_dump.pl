# Marks in pg_dump and pg_upgrade: they come back for indexes of the same name, with their options, and serve; a mark
# whose table was left out says so and does nothing else; the dump of a served index is that of a btree index.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Upgrade;

my $tables = <<'SQL';
CREATE SCHEMA "My Shop";
CREATE TABLE customers (id int8 PRIMARY KEY, name text NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED, code text COLLATE "C");
INSERT INTO customers SELECT g, 'name ' || g, 'c' || g % 50 FROM generate_series(1, 3000) g;
CREATE INDEX customers_code ON customers (code DESC, id) INCLUDE (name) WITH (fillfactor = 60);
CREATE INDEX customers_like ON customers (code text_pattern_ops);
CREATE INDEX customers_even ON customers ((id / 2)) WHERE id % 2 = 0;
CREATE TABLE orders (id int4, customer int8 REFERENCES customers, at timestamptz,
	CONSTRAINT orders_pk PRIMARY KEY (id) INCLUDE (customer) WITH (fillfactor = 70));
INSERT INTO orders SELECT g, g % 3000 + 1, '2026-01-01'::timestamptz + g * interval '1 min' FROM generate_series(1, 9000) g;
CREATE UNIQUE INDEX orders_at ON orders (at, id);
ALTER TABLE orders REPLICA IDENTITY USING INDEX orders_pk;
ALTER TABLE customers CLUSTER ON customers_code;
CREATE TABLE "My Shop"."Line Items" ("Order" int4 REFERENCES orders, "No" int2, CONSTRAINT "Line Items PK" PRIMARY KEY ("Order", "No"));
INSERT INTO "My Shop"."Line Items" SELECT g, 1 FROM generate_series(1, 9000, 3) g;
CREATE TABLE rooms (room int, EXCLUDE USING btree (room WITH =));
INSERT INTO rooms SELECT generate_series(1, 100);
CREATE TABLE p (k int4, v int4, PRIMARY KEY (k)) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (3000) PARTITION BY RANGE (k);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE p22 PARTITION OF p2 FOR VALUES FROM (2000) TO (3000);
CREATE INDEX p_v ON p (v);
INSERT INTO p SELECT g, g % 77 FROM generate_series(0, 2999) g;
CREATE TABLE left_alone (k int PRIMARY KEY);
INSERT INTO left_alone SELECT generate_series(1, 100);
CREATE MATERIALIZED VIEW sums AS SELECT customer, count(*) FROM orders GROUP BY 1;
CREATE UNIQUE INDEX sums_customer ON sums (customer);
SQL

my @indexes = qw(customers_pkey customers_name_key customers_code customers_like orders_pk orders_at rooms_room_excl p_pkey p_v sums_customer);
push @indexes, '"My Shop"."Line Items PK"';
my $options = "SELECT learnedbtree_adopt('customers_code', max_error => 2), learnedbtree_adopt('orders_at', retrain_splits => 9, max_error => 3), "
  . "learnedbtree_adopt('customers_even', false), learnedbtree_adopt('p22_v_idx', learned => false)";

# What the catalogs know of each index and constraint.
my $definitions = <<'SQL';
SELECT n.nspname, c.relname, pg_get_indexdef(c.oid), a.amname, c.reloptions, indisclustered, indisreplident
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_index ON indexrelid = c.oid
	WHERE c.relkind IN ('i', 'I') AND n.nspname IN ('public', 'My Shop')
UNION ALL SELECT connamespace::regnamespace::text, conname, pg_get_constraintdef(oid), NULL, NULL, condeferrable, condeferred
	FROM pg_constraint WHERE connamespace::regnamespace::text IN ('public', '"My Shop"') ORDER BY 1, 2, 3
SQL
my $answers = <<'SQL';
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
SELECT (SELECT sum((SELECT count(*) FROM customers WHERE id = g)) FROM generate_series(0, 4000, 7) g),
	(SELECT code FROM customers WHERE name = 'name 77'),
	(SELECT string_agg(id::text, ' ') FROM (SELECT id FROM customers WHERE code = 'c7' ORDER BY code DESC, id LIMIT 5) q),
	(SELECT count(*) FROM customers WHERE code ~>=~ 'c4' AND code ~<~ 'c5'), (SELECT count(*) FROM customers WHERE id / 2 < 100 AND id % 2 = 0),
	(SELECT sum(customer) FROM orders WHERE id BETWEEN 100 AND 300), (SELECT count(*) FROM orders WHERE at < '2026-01-02'),
	(SELECT count(*) FROM "My Shop"."Line Items" WHERE "Order" < 900), (SELECT count(*) FROM rooms WHERE room = 7),
	(SELECT sum(v) FROM p WHERE k IN (900, 1900, 2100)), (SELECT sum(k) FROM p WHERE v = 5), (SELECT count FROM sums WHERE customer = 77)
SQL
my $effect = q{SELECT string_agg(concat_ws(' ', indexname, coalesce(mark, 'no mark'), served), ', ' ORDER BY indexname COLLATE "C")
	FROM learnedbtree_indexes WHERE indexname IN ('customers_even', 'customers_code', 'p22_v_idx', 'p21_v_idx', 'left_alone_pkey', 'Line Items PK')};
my $wanted_effect = 'Line Items PK adopted t, customers_code adopted t, customers_even excluded f, left_alone_pkey no mark f, p21_v_idx adopted t, p22_v_idx excluded f';

my $node = serving_node('dump');
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', $tables);
my $folder = PostgreSQL::Test::Utils::tempdir();
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/before", 'source' ], 'dump before');
my ($btree_answers, $btree_definitions) = map { $node->safe_psql('source', $_) } $answers, $definitions;
$node->safe_psql('source', 'CREATE EXTENSION learnedbtree');
adopt($node, 'source', @indexes);
$node->safe_psql('source', $options);
my $marks = marks($node, 'source');
is(scalar(split /\n/, $marks), @indexes + 2, 'all have their marks');
is(predicted_in($node, 'source', sub { is($node->safe_psql('source', $answers), $btree_answers, 'the answers are those of btree') }, @indexes), "@indexes", 'all are served');
is($node->safe_psql('source', $effect), $wanted_effect, 'as they were marked');
is($node->safe_psql('source', $definitions), $btree_definitions, 'the catalogs are as before');

foreach my $format (dump_and_restore($node, 'source', $folder))
{
	my $restored = "restored_$format";
	is(marks($node, $restored), $marks, "$format: marks have come back");
	is($node->safe_psql($restored, $definitions), $btree_definitions, "$format: indexes and constraints, too");
	is(predicted_in($node, $restored, sub { is($node->safe_psql($restored, $answers), $btree_answers, "$format: the answers are the same") }, @indexes),
		"@indexes", "$format: served at once");
	is($node->safe_psql($restored, $effect), $wanted_effect, "$format: as they were marked");
}

# The lines of a dump that say something; marks may come in any order.
sub lines { return grep { !/^(?:--|\\(?:un)?restrict|\s*$)/ } split(/^/, slurp_file("$folder/$_[0]")); }
sub sorted { return sort(lines($_[0])); }
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/again", 'restored_custom' ], 'dump of the restored database');
is(join('', sorted('again')), join('', sorted('plain')), 'it equals the first dump');
my %before = map { $_ => 1 } lines('before');
my @more = grep { !$before{$_} } lines('plain');
like($more[0], qr/CREATE SCHEMA learnedbtree|CREATE EXTENSION/, 'the dump has more than without marks:');
is(scalar(grep { !/^(?:CREATE|COMMENT|GRANT|ALTER|REVOKE).*learnedbtree|^COPY learnedbtree\.marks |\t[tf]\t\S+\t\S+$/ } @more), 0, 'the extension and its marks')
  or diag(@more);

# ---- without some tables, and over what is there ----

$node->command_ok([ 'pg_dump', '--format=custom', "--file=$folder/part", '--exclude-table=orders', '--exclude-table=sums', '--exclude-table="My Shop"."Line Items"', 'source' ], 'dump without some tables');
$node->safe_psql('postgres', 'CREATE DATABASE part');
# pg_restore passes on what the server says only when it is asked to.
my ($out, $err) = run_command([ 'pg_restore', '--verbose', '--exit-on-error', '-d', $node->connstr('part'), "$folder/part" ]);
like($err, qr/there is no table $_,/, "restore of it names $_") foreach 'public\.orders', 'public\.sums', '"My Shop"\."Line Items"';
unlike($err, qr/ERROR|there is no table public\.(?:customers|rooms|p)\b/, 'and no other, and succeeds');
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/part_plain", '--exclude-table=sums', 'source' ], 'a plain dump without a table');
$node->safe_psql('postgres', 'CREATE DATABASE part_plain');
($out, $err) = run_command([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('part_plain'), '-f', "$folder/part_plain" ]);
like($err, qr/there is no table public\.sums,/, 'psql names the table');
unlike($err, qr/ERROR|there is no table public\.(?:customers|rooms|p|orders)\b/, 'and no other, and succeeds');
is($node->safe_psql('part', 'SELECT count(*) FROM rooms WHERE room = 7'), '1', 'the other tables are there');
is(predicted_in($node, 'part', sub { $node->safe_psql('part', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT code FROM customers WHERE name = \'name 77\' ') }, 'customers_name_key'),
	'customers_name_key', 'with their marks');
(undef, undef, $err) = $node->psql('part', "SELECT count(*) FROM learnedbtree_adopt_all('orders')");
like($err, qr/there is no index public\.orders_pk\b/, 'learnedbtree_adopt_all() names what is missing');
$node->safe_psql('part', 'CREATE TABLE orders (id int4 CONSTRAINT orders_pk PRIMARY KEY); INSERT INTO orders SELECT generate_series(1, 2000)');
is(predicted_in($node, 'part', sub { $node->safe_psql('part', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id FROM orders WHERE id = 7') }, 'orders_pk'),
	'orders_pk', 'an index that comes later takes its mark');

$node->command_ok([ 'pg_dump', '--format=custom', "--file=$folder/no_partitions", '--exclude-table=p', '--exclude-table=p[0-9]*', 'source' ], 'dump without partitions');
$node->safe_psql('restored_plain', 'DROP TABLE p');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '--dbname=restored_plain', "$folder/no_partitions" ], 'restore over what is there');
is($node->safe_psql('restored_plain', "SELECT concat_ws(' ', count(*), sum(id)) FROM customers WHERE id > 7"), '2993 4501472', 'it is all there');
is(marks($node, 'restored_plain') =~ s/^public\.p.*\n?//gmr, $marks =~ s/^public\.p.*\n?//gmr, 'marks, too');
$node->command_ok([ 'pg_dump', '--format=custom', "--file=$folder/data", '--data-only', '--table=rooms', 'source' ], 'dump of a table\'s data');
$node->safe_psql('restored_custom', 'TRUNCATE rooms');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--dbname=restored_custom', "$folder/data" ], 'restore of it');
is(marks($node, 'restored_custom'), $marks, 'marks are as they were');
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE source');
is(marks($node, 'copied'), $marks, 'CREATE DATABASE copies marks');
is(predicted_in($node, 'copied', sub { $node->safe_psql('copied', $answers) }, @indexes), "@indexes", 'and its sessions serve');

# The way out.
$node->safe_psql('source', 'DROP EXTENSION learnedbtree');
is($node->safe_psql('source', $definitions), $btree_definitions, 'after DROP EXTENSION indexes and constraints are as they were');
is($node->safe_psql('source', $answers), $btree_answers, 'and the answers');
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/without", 'source' ], 'dump without the extension');
is(join('', grep { !/learnedbtree/ } lines('without')), join('', lines('before')), 'it is the one before') or diag(join('', lines('without')));
unlike(join('', lines('without')), qr/learned/, 'with no trace of the extension');
is(amcheck_without($node, 'source'), 0, 'amcheck is content');
$node->stop;

sub amcheck_without
{
	my ($server, $database) = @_;
	$server->safe_psql($database, 'CREATE EXTENSION IF NOT EXISTS amcheck');
	return $server->psql($database, join(';', map { "SELECT bt_index_parent_check('$_', true, true)" } grep { !/^p_/ } @indexes));
}

# ---- pg_upgrade ----

my $new = PostgreSQL::Test::Cluster->new('new');
my $reason = no_upgrade($new) || other_scripts($new);
SKIP:
{
	skip($reason, 1) if $reason;
	my $old = start_old_node(sub { learned_settings($_[0]) });
	$old->safe_psql('postgres', "CREATE EXTENSION learnedbtree; $tables");
	$old->safe_psql('postgres', 'DELETE FROM orders WHERE id % 3 = 2');
	adopt($old, 'postgres', @indexes);
	$old->safe_psql('postgres', $options);
	# The role that made an operator class is gone.
	$old->safe_psql('postgres', <<'SQL');
CREATE ROLE maker SUPERUSER;
SET ROLE maker;
CREATE OPERATOR CLASS backwards FOR TYPE int4 USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
	FUNCTION 1 pg_catalog.btint4cmp(int4, int4);
RESET ROLE;
REASSIGN OWNED BY maker TO postgres;
DROP ROLE maker;
SQL
	my ($before, $files_before);
	is(predicted_in($old, 'postgres', sub { $before = $old->safe_psql('postgres', $answers) }, @indexes), "@indexes", 'pg_upgrade: all are served before');
	my $files = "SELECT c.oid::regclass, c.relfilenode, indisvalid FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_index ON indexrelid = c.oid "
	  . "WHERE relkind = 'i' AND nspname IN ('public', 'My Shop') ORDER BY 1";
	$files_before = $old->safe_psql('postgres', $files);

	upgrade($old, $new, sub { learned_settings($_[0]) });
	is(marks($new, 'postgres'), $marks, 'pg_upgrade keeps marks');
	is($new->safe_psql('postgres', $files), $files_before, 'and files');
	is(predicted_in($new, 'postgres', sub { is($new->safe_psql('postgres', $answers), $before, 'with the same answers') }, @indexes), "@indexes", 'all are served after');
	is($new->safe_psql('postgres', $effect), $wanted_effect, 'as they were marked');
	is(amcheck_without($new, 'postgres'), 0, 'amcheck is content');
	is($new->safe_psql('postgres', "SELECT amname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'backwards' ORDER BY 1"), "btree\nlearnedbtree",
		'an operator class has its alias');
	$new->safe_psql('postgres', 'ALTER INDEX orders_at RENAME TO orders_as; DROP INDEX customers_like');
	is(marks($new, 'postgres'), $marks =~ s/orders_at/orders_as/r =~ s/^.*customers_like\n//mr, 'marks follow after it');
	is($new->psql('postgres', 'INSERT INTO orders SELECT g, 1 FROM generate_series(10000, 11000) g'), 0, 'the indexes take inserts');
	isnt($new->psql('postgres', 'INSERT INTO orders VALUES (10500, 1)'), 0, 'and are unique');
	isnt($new->psql('postgres', 'DELETE FROM customers WHERE id = 1'), 0, 'and foreign keys hold');
	$new->stop;
}
done_testing();
