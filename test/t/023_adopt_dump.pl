# Adopted indexes in pg_dump and pg_upgrade.  A constraint's index is dumped as the constraint and comes back as btree,
# others come back USING learnedbtree; nothing of ours gets into ADD CONSTRAINT; learnedbtree_adopt_all() brings back what
# was adopted, with its settings.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Adoption;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Upgrade;

my $tables = <<'SQL';
CREATE EXTENSION learnedbtree;
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
SQL

my @constraints = qw(customers_pkey customers_name_key orders_pk p_pkey);
push @constraints, '"My Shop"."Line Items PK"';
my @others = qw(customers_code customers_like customers_even orders_at rooms_room_excl p_v);

# The access method and the options of each index.
my $methods = <<'SQL';
SELECT n.nspname, c.relname, a.amname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('i', 'I') AND n.nspname IN ('public', 'My Shop') AND c.relname NOT LIKE 'learnedbtree%' ORDER BY 1, 2
SQL
my $definitions = <<'SQL';
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
	WHERE connamespace::regnamespace::text IN ('public', '"My Shop"') AND conrelid::regclass::text NOT LIKE 'learnedbtree%' ORDER BY 1, 2
SQL
my $answers = <<'SQL';
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT (SELECT sum((SELECT count(*) FROM customers WHERE id = g)) FROM generate_series(0, 4000, 7) g),
	(SELECT name FROM customers WHERE name = 'name 77'),
	(SELECT string_agg(id::text, ' ') FROM (SELECT id FROM customers WHERE code = 'c7' ORDER BY code DESC, id LIMIT 5) q),
	(SELECT count(*) FROM customers WHERE code LIKE 'c4%'), (SELECT count(*) FROM customers WHERE id / 2 < 100 AND id % 2 = 0),
	(SELECT sum(customer) FROM orders WHERE id BETWEEN 100 AND 300), (SELECT count(*) FROM orders WHERE at < '2026-01-02'),
	(SELECT count(*) FROM "My Shop"."Line Items" WHERE "Order" < 900), (SELECT count(*) FROM rooms WHERE room = 7),
	(SELECT sum(v) FROM p WHERE k BETWEEN 900 AND 2100), (SELECT sum(k) FROM p WHERE v = 5)
SQL
# This adopts left_alone_pkey, too, which is released again below.
my $adopt_all = q{SET client_min_messages = error; SELECT outcome, count(*) FROM learnedbtree_adopt_all(force => true) GROUP BY 1 ORDER BY 1};

# Settings of two constraints, and what they do.
my $set = "SELECT learnedbtree_set('customers_pkey', 'learned', 'off'), learnedbtree_set('orders_pk', 'max_error', '2')";
my $effect = q{SELECT (SELECT state FROM learnedbtree_model('customers_pkey')), (SELECT state FROM learnedbtree_model('orders_pk'))};

sub adopted
{
	my ($definition) = @_;
	return grep { /\|learnedbtree\|/ } split /\n/, $definition;
}

my $node = new_node('dump');
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', $tables);
my $btree_answers = $node->safe_psql('source', $answers);
my $constraints_before = $node->safe_psql('source', $definitions);
adopt($node, 'source', @constraints, @others);
$node->safe_psql('source', 'ALTER INDEX customers_code SET (max_error = 3)');
$node->safe_psql('source', $set);
is($node->safe_psql('source', $answers), $btree_answers, 'the answers are those of btree');
is($node->safe_psql('source', $effect), 'off|ready', 'settings of constraints have an effect');
my $wanted = $node->safe_psql('source', $methods);
is(scalar(adopted($wanted)), scalar(@constraints) + scalar(@others) + 4 + 4, 'all are adopted, partitions included');

my $folder = PostgreSQL::Test::Utils::tempdir();
foreach my $format (dump_and_restore($node, 'source', $folder))
{
	my $restored = "restored_$format";
	my $after = $node->safe_psql($restored, $methods);
	is(join(' ', sort map { (split /\|/)[1] } adopted($after)), join(' ', sort @others, qw(p1_v_idx p2_v_idx p21_v_idx p22_v_idx)),
		"$format: constraints have come back as btree, others as learnedbtree");
	is($node->safe_psql($restored, $definitions), $constraints_before =~ s/USING btree/USING learnedbtree/r, "$format: the constraints are the same");
	is($node->safe_psql($restored, $answers), $btree_answers, "$format: so are the answers");
	is(dangling($node, $restored), '', "$format: the catalogs fit together");

	$node->safe_psql($restored, $adopt_all);
	release($node, $restored, 'left_alone_pkey');
	is($node->safe_psql($restored, $methods), $wanted, "$format: learnedbtree_adopt_all() adopts them again");
	is($node->safe_psql($restored, $answers), $btree_answers, "$format: with the same answers");
	is($node->safe_psql($restored, $effect), 'off|ready', "$format: and with their settings");
	is(dangling($node, $restored), '', "$format: and the catalogs fit together");
}

my $plain = slurp_file("$folder/plain");
my @with_options = grep { /PRIMARY KEY|UNIQUE/ && /learned|max_error|retrain/ } $plain =~ /(ADD CONSTRAINT[^;]*;)/g;
is("@with_options", '', 'no key in the dump has anything of ours');

# Dumping what was restored gives the same again.
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/again", 'restored_custom' ], 'dump of the restored database');
my ($first, $second) = map { join('', grep { !/^\\(un)?restrict|^--/ } split(/^/, slurp_file("$folder/$_"))) } qw(plain again);
ok($first eq $second, 'it equals the first dump');

# Over what is there; pg_restore --clean cannot do that to partitions' keys, whatever their access method.
$node->command_ok([ 'pg_dump', '--format=custom', "--file=$folder/no_partitions", '--exclude-table=p', '--exclude-table=p[0-9]*', 'source' ],
	'dump without partitions');
$node->safe_psql('restored_plain', 'DROP TABLE p');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '--dbname=restored_plain', "$folder/no_partitions" ],
	'restore over adopted indexes');
is($node->safe_psql('restored_plain', "SELECT concat_ws(' ', count(*), sum(id)) FROM customers WHERE id > 7"), '2993 4501472', 'it is all there');
is(dangling($node, 'restored_plain'), '', 'and the catalogs fit together');

# The way out: release all, drop the extension, and no trace is left.
$node->safe_psql('source', 'SELECT * FROM learnedbtree_release_all()');
is(scalar(adopted($node->safe_psql('source', $methods))), 0, 'learnedbtree_release_all() releases all');
$node->safe_psql('source', 'DROP EXTENSION learnedbtree');
is($node->safe_psql('source', $definitions), $constraints_before, 'after DROP EXTENSION the constraints are there');
is($node->safe_psql('source', $answers), $btree_answers, 'and the answers are the same');
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/without", 'source' ], 'dump without the extension');
unlike(slurp_file("$folder/without"), qr/learned/, 'it has nothing of ours');
$node->stop;

# ---- pg_upgrade ----

my $new = PostgreSQL::Test::Cluster->new('new');
my $reason = no_upgrade($new) || other_scripts($new);
SKIP:
{
	skip($reason, 1) if $reason;
	my $old = start_old_node();
	$old->safe_psql('postgres', $tables);
	$old->safe_psql('postgres', 'DELETE FROM orders WHERE id % 3 = 2');
	my $before = $old->safe_psql('postgres', $answers);
	adopt($old, 'postgres', @constraints, @others);
	$old->safe_psql('postgres', $set);
	is($old->safe_psql('postgres', $answers), $before, 'pg_upgrade: the answers on 15');
	my $files = "SELECT c.oid::regclass, c.relfilenode FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'i' "
	  . "AND nspname IN ('public', 'My Shop') ORDER BY 1";
	my ($files_before, $adopted_before) = map { $old->safe_psql('postgres', $_) } $files, $methods;

	upgrade($old, $new);
	my $after = $new->safe_psql('postgres', $methods);
	is(join(' ', sort map { (split /\|/)[1] } adopted($after)), join(' ', sort @others, qw(p1_v_idx p2_v_idx p21_v_idx p22_v_idx)),
		'pg_upgrade: constraints have come out as btree, others as learnedbtree');
	is($new->safe_psql('postgres', $files), $files_before, 'on the same files');
	is($new->safe_psql('postgres', $answers), $before, 'with the same answers');
	is(dangling($new, 'postgres'), '', 'and the catalogs fit together');

	$new->safe_psql('postgres', 'CREATE TABLE clock AS SELECT clock_timestamp() AS at');
	$new->safe_psql('postgres', $adopt_all);
	note($new->safe_psql('postgres', q{SELECT 'learnedbtree_adopt_all() took, with a new session, ' || clock_timestamp() - at FROM clock}));
	release($new, 'postgres', 'left_alone_pkey');
	is($new->safe_psql('postgres', $methods), $adopted_before, 'learnedbtree_adopt_all() adopts them again');
	is($new->safe_psql('postgres', $files), $files_before, 'still on the same files');
	is($new->safe_psql('postgres', $answers), $before, 'with the same answers');
	is($new->safe_psql('postgres', $effect), 'off|ready', 'and with their settings');
	is(dangling($new, 'postgres'), '', 'and the catalogs fit together');
	$new->safe_psql('postgres', 'CREATE EXTENSION amcheck');
	is($new->psql('postgres', "SELECT learnedbtree_check('$_', true, true)"), 0, "amcheck is content with $_")
	  foreach grep { !/^p_/ } @constraints, @others;
	is($new->psql('postgres', 'INSERT INTO orders SELECT g, 1 FROM generate_series(10000, 11000) g'), 0, 'the indexes take inserts');
	isnt($new->psql('postgres', 'INSERT INTO orders VALUES (10500, 1)'), 0, 'and are unique');
	isnt($new->psql('postgres', 'DELETE FROM customers WHERE id = 1'), 0, 'and foreign keys hold');
	$new->stop;
}
done_testing();
