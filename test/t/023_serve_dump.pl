# Settings of a database and of a role in pg_dump, pg_dumpall and pg_upgrade: they come back as they were, with commas and
# quotes, and serve; the dump of a served index is that of a btree index.
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
CREATE INDEX "It's, ""so""" ON rooms ((room + 0));
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
my @quoted = ('"My Shop"."Line Items PK"', q("It's, ""so"""));
# What the database's setting says.
my $list = join(', ', @indexes, @quoted, '"My Shop".*', '! customers_even', '!p22_v_*', 'nothing');
my $set = "SET learnedbtree.btree_indexes = \$list\$$list\$list\$";
push @indexes, $quoted[0];

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
	(SELECT count(*) FROM "My Shop"."Line Items" WHERE "Order" < 900), (SELECT count(*) FROM rooms WHERE room = 7), (SELECT count(*) FROM rooms WHERE room + 0 = 7),
	(SELECT sum(v) FROM p WHERE k IN (900, 1900, 2100)), (SELECT sum(k) FROM p WHERE v = 5), (SELECT count FROM sums WHERE customer = 77)
SQL
my $effect = q{SELECT string_agg(concat_ws(' ', indexname, coalesce(pattern, 'no item'), served), ', ' ORDER BY indexname COLLATE "C")
	FROM learnedbtree_indexes WHERE indexname IN ('customers_even', 'customers_code', 'p22_v_idx', 'p21_v_idx', 'left_alone_pkey', 'Line Items PK', $$It's, "so"$$)};
my $wanted_effect = q{It's, "so" "It's, ""so""" t, Line Items PK "My Shop".* t, customers_code customers_code t, customers_even ! customers_even f, left_alone_pkey no item f, p21_v_idx p_v t, p22_v_idx !p22_v_* f};

my $node = serving_node('dump');
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', $tables);
my $folder = PostgreSQL::Test::Utils::tempdir();
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/before", 'source' ], 'dump before');
my ($btree_answers, $btree_definitions) = map { $node->safe_psql('source', $_) } $answers, $definitions;
is($node->safe_psql('source', "$set; $answers"), $btree_answers, 'without the extension, and served, the answers are the same');
$node->safe_psql('source', "CREATE EXTENSION learnedbtree; ALTER DATABASE source $set");
is(predicted_in($node, 'source', sub { is($node->safe_psql('source', $answers), $btree_answers, 'the answers are those of btree') }, @indexes), "@indexes", 'all are served');
is($node->safe_psql('source', $effect), $wanted_effect, 'as the items say');
is($node->safe_psql('source', $definitions), $btree_definitions, 'the catalogs are as before');

foreach my $format (dump_and_restore($node, 'source', $folder))
{
	my $restored = "restored_$format";
	is($node->safe_psql($restored, $definitions), $btree_definitions, "$format: indexes and constraints have come back");
	is(predicted_in($node, $restored, sub { is($node->safe_psql($restored, $answers), $btree_answers, "$format: the answers are the same") }, @indexes),
		'', "$format: a dump without --create has no setting");
	is(predicted_in($node, $restored, sub { is($node->safe_psql($restored, "$set; $answers"), $btree_answers, "$format: the answers are the same, served") }, @indexes),
		"@indexes", "$format: what it names is served");
	is($node->safe_psql($restored, "$set; $effect"), $wanted_effect, "$format: as the items say");
}

# The lines of a dump that say something.
sub lines { return grep { !/^(?:--|\\(?:un)?restrict|\s*$)/ } split(/^/, slurp_file("$folder/$_[0]")); }
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/again", 'restored_custom' ], 'dump of the restored database');
is(join('', lines('again')), join('', lines('plain')), 'it equals the first dump');
my %before = map { $_ => 1 } lines('before');
my @more = grep { !$before{$_} } lines('plain');
cmp_ok(scalar(@more), '>', 0, 'the dump has more than without the extension:');
is(scalar(grep { !/^(?:CREATE|COMMENT).* EXTENSION .*learnedbtree/ } @more), 0, 'the extension') or diag(@more);

# ---- the setting ----

# All there is of it, for which database and role.
my $set_for = q{SELECT string_agg(concat_ws(' ', coalesce(datname, 'all'), coalesce(rolname, 'all'), setting), E'\n' ORDER BY datname, rolname)
	FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = setdatabase LEFT JOIN pg_roles r ON r.oid = setrole, unnest(setconfig) setting WHERE setting ~ 'learnedbtree'};
$node->safe_psql('postgres', q{CREATE ROLE app LOGIN SUPERUSER; ALTER ROLE app SET learnedbtree.btree_indexes = 'all, !"a, ""b""", !customers_*'; }
	  . q{ALTER ROLE app IN DATABASE source SET learnedbtree.btree_indexes = 'orders_pk, "My Shop"."Line Items PK"'; }
	  . q{ALTER ROLE app IN DATABASE source SET learnedbtree.min_leaves = 0; ALTER DATABASE restored_plain SET learnedbtree.btree_indexes = 'orders_pk, orders_at'});
my $settings = $node->safe_psql('postgres', $set_for);
is($settings, "restored_plain all learnedbtree.btree_indexes=orders_pk, orders_at\nsource app learnedbtree.btree_indexes=orders_pk, \"My Shop\".\"Line Items PK\"\n"
	  . "source app learnedbtree.min_leaves=0\nsource all learnedbtree.btree_indexes=$list\nall app learnedbtree.btree_indexes=all, !\"a, \"\"b\"\"\", !customers_*", 'settings are kept as they were given');

# In a server that loads the library, and in one that does not, which takes any value.
my $program = "CREATE FUNCTION by_setting() RETURNS text LANGUAGE sql SET learnedbtree.btree_indexes = 'orders_pk, \"My Shop\".*, \"a, \"\"b\"\"\"' "
  . q{AS $$SELECT current_setting('learnedbtree.btree_indexes')$$};
$node->safe_psql('source', $program);
$node->command_ok([ 'pg_dump', '--format=custom', '--create', "--file=$folder/created", 'source' ], 'pg_dump --create');
$node->command_ok([ 'pg_dumpall', '--no-role-passwords', "--file=$folder/all" ], 'pg_dumpall');
foreach my $loads (1, 0)
{
	my $other = PostgreSQL::Test::Cluster->new("other$loads");
	$other->init;
	$loads ? configure_serving($other) : $other->append_conf('postgresql.conf', "autovacuum = off\n");
	$other->start;
	my $how = $loads ? 'with the library' : 'without it';
	$other->safe_psql('postgres', 'CREATE ROLE app');
	$other->command_ok([ 'pg_restore', '--exit-on-error', '--create', '-d', $other->connstr('postgres'), "$folder/created" ], "$how: pg_restore --create");
	is($other->safe_psql('postgres', $set_for), join("\n", grep { /^source/ } split(/\n/, $settings)), "$how: it brings the settings of the database");
	$other->safe_psql('postgres', 'DROP DATABASE source; DROP ROLE app');
	# (the role that runs it exists)
	my ($out, $err) = run_command([ 'psql', '-X', '-q', '-d', $other->connstr('postgres'), '-f', "$folder/all" ]);
	is(join("\n", grep { /ERROR/ && !/role ".*" already exists/ } split(/\n/, $err)), '', "$how: pg_dumpall's output is run without errors");
	is($other->safe_psql('postgres', $set_for), $settings, "$how: and brings all settings");
	is($other->safe_psql('source', 'SELECT by_setting()'), 'orders_pk, "My Shop".*, "a, ""b"""', "$how: and that of a function");
	if ($loads)
	{
		is(predicted_in($other, 'source', sub { is($other->safe_psql('source', $answers), $btree_answers, 'the answers are the same') }, @indexes), "@indexes", 'all are served there');
		is($other->safe_psql('source', $effect), $wanted_effect, 'as the items say');
		is(predicted_in($other, 'source', sub { $other->safe_psql('source', $answers, extra_params => [ '-U', 'app' ]) }, @indexes), 'orders_pk "My Shop"."Line Items PK"', 'a role has its own');
	}
	$other->stop;
}

# A dump without some tables: their names match nothing, until they come.
$node->command_ok([ 'pg_dump', '--format=custom', '--create', "--file=$folder/part", '--exclude-table=orders', '--exclude-table=sums', '--exclude-table="My Shop"."Line Items"', 'source' ], 'dump without some tables');
$node->safe_psql('postgres', 'CREATE DATABASE part');
$node->safe_psql('postgres', "ALTER DATABASE part $set");
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('part'), "$folder/part" ], 'restore of it');
is($node->safe_psql('part', q{SELECT string_agg(pattern, ' ' ORDER BY item) FROM learnedbtree_patterns WHERE indexes = 0}), 'orders_pk orders_at sums_customer "My Shop"."Line Items PK" "My Shop".* nothing',
	'learnedbtree_patterns says which names are of nothing');
$node->safe_psql('part', 'CREATE TABLE orders (id int4 CONSTRAINT orders_pk PRIMARY KEY); INSERT INTO orders SELECT generate_series(1, 2000)');
is(predicted_in($node, 'part', sub { $node->safe_psql('part', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id FROM orders WHERE id = 7') }, 'orders_pk'),
	'orders_pk', 'an index that comes later is served by its name');
$node->command_ok([ 'pg_dump', '--format=custom', "--file=$folder/no_partitions", '--exclude-table=p', '--exclude-table=p[0-9]*', 'source' ], 'dump without partitions');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '--dbname=restored_custom', "$folder/no_partitions" ], 'restore over what is there');
is($node->safe_psql('restored_custom', $answers), $btree_answers, 'it is all there');

# The way out.
$node->safe_psql('source', 'DROP EXTENSION learnedbtree; DROP FUNCTION by_setting');
is($node->safe_psql('source', $definitions), $btree_definitions, 'after DROP EXTENSION indexes and constraints are as they were');
is($node->safe_psql('source', $answers), $btree_answers, 'and the answers');
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/without", 'source' ], 'dump without the extension');
is(join('', lines('without')), join('', lines('before')), 'it is the one before, with no trace of the extension');
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
	$old->safe_psql('postgres', "ALTER DATABASE postgres $set");
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
	is($new->safe_psql('postgres', $set_for), "postgres all learnedbtree.btree_indexes=$list", 'pg_upgrade keeps the setting');
	is($new->safe_psql('postgres', $files), $files_before, 'and files');
	is(predicted_in($new, 'postgres', sub { is($new->safe_psql('postgres', $answers), $before, 'with the same answers') }, @indexes), "@indexes", 'all are served after');
	is($new->safe_psql('postgres', $effect), $wanted_effect, 'as the items say');
	is(amcheck_without($new, 'postgres'), 0, 'amcheck is content');
	is($new->safe_psql('postgres', "SELECT amname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'backwards' ORDER BY 1"), "btree\nlearnedbtree",
		'an operator class has its alias');
	is($new->psql('postgres', 'INSERT INTO orders SELECT g, 1 FROM generate_series(10000, 11000) g'), 0, 'the indexes take inserts');
	isnt($new->psql('postgres', 'INSERT INTO orders VALUES (10500, 1)'), 0, 'and are unique');
	isnt($new->psql('postgres', 'DELETE FROM customers WHERE id = 1'), 0, 'and foreign keys hold');
	$new->stop;
}
done_testing();
