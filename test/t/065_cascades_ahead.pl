# Rows that a DELETE takes from a table to which foreign keys refer: their rows there are looked ahead for.  Random statements, with
# actions of all kinds, keys of other types and in another order, a table that refers to itself, actions of actions, partitions,
# triggers that delete, change, refuse or raise, DDL, and errors in savepoints, give the same rows and messages as by btree's
# own functions.  Cold, the blocks that are asked for are those that are read.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Draw;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $transactions = 40;
my $rows = 3000;

my $node = PostgreSQL::Test::Cluster->new('cascades');
$node->init;
configure_serving($node);
$node->append_conf('postgresql.conf', "shared_buffers = 2MB\neffective_io_concurrency = 32\nmax_connections = 10\nfsync = off\nautovacuum = off\nlearnedbtree.autotrain = off\n");
$node->start;
my $folder = $node->basedir;

# Keys of rows that refer to others: several to one, some NULL, some of them in one half only.
sub key { return "CASE WHEN g % 13 > 0 THEN 1 + (hashint4(g * $_[0]) & 2047) END" }

my $setup = <<"SQL";
CREATE TABLE parent (gone int4, id int8 CONSTRAINT parent_pkey PRIMARY KEY, a int4, b text COLLATE "C", u int4 CONSTRAINT parent_u UNIQUE, boss int8, deputy int8, pad text, CONSTRAINT parent_ab UNIQUE (a, b));
ALTER TABLE parent DROP COLUMN gone;
INSERT INTO parent SELECT g, g % 50, 'b' || lpad(g::text, 5, '0'), -g, CASE WHEN g % 9 = 0 THEN 1 + hashint4(g) & 2047 END, CASE WHEN g % 7 = 0 THEN 1 + (hashint4(g * 5) & 2047) END, repeat('p', 100)
  FROM generate_series(1, $rows) g ORDER BY hashint4(g * 11);
ALTER TABLE parent ADD CONSTRAINT parent_boss FOREIGN KEY (boss) REFERENCES parent ON DELETE CASCADE, ADD CONSTRAINT parent_deputy FOREIGN KEY (deputy) REFERENCES parent ON DELETE SET NULL (deputy);
CREATE INDEX parent_b ON parent (boss);
CREATE INDEX parent_d ON parent (deputy);
CREATE TABLE goes (p int4 CONSTRAINT goes_p REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, x int4 CONSTRAINT goes_pkey PRIMARY KEY, pad text);
INSERT INTO goes SELECT ${\key(3)}, g, repeat('g', 150) FROM generate_series(1, 2 * $rows) g;
CREATE INDEX goes_i ON goes (p);
CREATE TABLE nulls (x int4, p int8 CONSTRAINT nulls_p REFERENCES parent ON DELETE SET NULL, pad text);
INSERT INTO nulls SELECT g, ${\key(5)}, repeat('n', 150) FROM generate_series(1, $rows) g;
CREATE INDEX nulls_i ON nulls (p, x DESC);
CREATE TABLE two (b varchar COLLATE "C", a int2, x int4, CONSTRAINT two_ab FOREIGN KEY (a, b) REFERENCES parent (a, b) ON DELETE CASCADE);
INSERT INTO two SELECT 'b' || lpad(k::text, 5, '0'), CASE WHEN g % 5 > 0 THEN k % 50 END, g FROM generate_series(1, $rows) g, LATERAL (SELECT 1 + (hashint4(g * 17) & 2047) AS k) k;
CREATE INDEX two_i ON two (b, a);
CREATE TABLE stays (u int4 CONSTRAINT stays_u REFERENCES parent (u) DEFERRABLE, r int8 CONSTRAINT stays_r REFERENCES parent ON DELETE RESTRICT);
INSERT INTO stays SELECT -g, g FROM generate_series(1, 20) g;
INSERT INTO stays SELECT NULL FROM generate_series(1, 2000) g;
CREATE INDEX stays_i ON stays (u);
CREATE INDEX stays_j ON stays (r);
CREATE TABLE below (x int4 CONSTRAINT below_x REFERENCES goes ON DELETE CASCADE, y text);
INSERT INTO below SELECT 1 + (hashint4(g * 7) & 4095), repeat('y', 100) FROM generate_series(1, $rows) g;
CREATE INDEX below_i ON below (x);
CREATE TABLE parts (p int8 CONSTRAINT parts_p REFERENCES parent ON DELETE CASCADE, x int4) PARTITION BY HASH (x);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT ${\key(19)}, g FROM generate_series(1, $rows) g;
CREATE INDEX parts_i ON parts (p);
CREATE TABLE plain (p int8 DEFAULT 3000 CONSTRAINT plain_p REFERENCES parent ON DELETE SET DEFAULT, x int4);
INSERT INTO plain SELECT g, g FROM generate_series(100, 150) g;

CREATE FUNCTION does(what text) RETURNS bool LANGUAGE sql RETURN current_setting('keys.does', true) ~ what;
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    IF does('refuse') AND OLD.id % 3 = 0 THEN RETURN NULL; END IF;
    IF does('raise') AND OLD.id % 97 = 50 THEN RAISE EXCEPTION 'not %', OLD.id; END IF;
    IF does('change') AND OLD.id % 20 = 0 THEN UPDATE goes SET p = OLD.id WHERE p = OLD.id + 1; END IF;
    IF does('before') AND OLD.id % 31 = 0 THEN DELETE FROM parent WHERE id = OLD.id + 1; END IF;
    RETURN OLD;
END \$\$;
CREATE FUNCTION after_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    IF does('look') THEN PERFORM count(*) FROM goes WHERE p = OLD.id + 3; END IF;
    IF does('ahead') THEN DELETE FROM goes WHERE p = OLD.id + 1; END IF;
    IF does('more') AND OLD.id % 40 = 20 THEN
        DELETE FROM parent WHERE id BETWEEN OLD.id % 1000 + 21 AND OLD.id % 1000 + 70;
    END IF;
    IF does('fails') AND OLD.id % 40 = 10 THEN
        BEGIN
            DELETE FROM parent WHERE id IN (SELECT 1 + g * OLD.id % 2048 FROM generate_series(1, 60) g);
            PERFORM 1 / (OLD.id % 20 - 10);
        EXCEPTION WHEN division_by_zero OR foreign_key_violation THEN
            NULL;
        END;
    END IF;
    IF does('throw') AND OLD.id % 89 = 80 THEN RAISE EXCEPTION 'after %', OLD.id; END IF;
    IF does('alter') AND OLD.id % 50 = 7 THEN
        BEGIN
            IF OLD.id % 100 = 7 THEN
                ALTER TABLE parent DROP COLUMN pad;
            ELSIF OLD.id % 150 = 7 THEN
                DROP INDEX goes_i;
            ELSE
                ALTER TABLE nulls ALTER p TYPE int4;
            END IF;
        EXCEPTION WHEN object_in_use THEN
            RAISE WARNING '%', SQLERRM;
        END;
    END IF;
    RETURN NULL;
END \$\$;
CREATE FUNCTION child_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    IF does('keep') AND OLD.x % 17 = 0 THEN RETURN NULL; END IF;
    IF does('child') AND OLD.x % 90 = 0 THEN DELETE FROM nulls WHERE p = OLD.p; END IF;
    IF does('index') AND OLD.x % 400 = 0 THEN CREATE INDEX ON two (x); END IF;
    RETURN OLD;
END \$\$;
CREATE TRIGGER z_row BEFORE DELETE ON parent FOR EACH ROW EXECUTE FUNCTION before_row();
CREATE TRIGGER a_after AFTER DELETE ON parent FOR EACH ROW EXECUTE FUNCTION after_row();
CREATE TRIGGER z_row BEFORE DELETE ON goes FOR EACH ROW EXECUTE FUNCTION child_row();
VACUUM ANALYZE;
SQL
my @tables = qw(parent goes nulls two stays below parts plain);
my $all_rows = join ' UNION ALL ', map { "SELECT '$_', count(*), sum(hashtext(t::text)::int8) FROM $_ t" } @tables;
$all_rows .= ' ORDER BY 1';

sub delete_rows
{
	my ($n, $first) = (40 + draw(200), 20 + draw(2200));
	my $last = $first + $n;
	my $list = join ',', map { chance(5) ? 'NULL' : draw(2600) + (chance(3) ? 0 : 21) } 1 .. $n;
	my $key = "1 + (hashint4(g * $n) & 2047)";
	return one_of(
		("DELETE FROM parent WHERE id BETWEEN $first AND $last") x 2,
		("DELETE FROM parent WHERE id = ANY ('{$list}')") x 3,
		"DELETE FROM parent WHERE id IN (SELECT $key FROM generate_series(1, $n) g) AND u < -20 RETURNING u",
		"DELETE FROM parent USING generate_series(1, $n) g WHERE id = $key AND id > 20",
		"DELETE FROM parent WHERE hashint8(id) % 20 = " . draw(20) . ' AND id > 20',
		"DELETE FROM parent WHERE boss BETWEEN $first AND $last",
		"WITH d AS (DELETE FROM parent WHERE id BETWEEN $first AND $last RETURNING id) SELECT count(*) FROM d JOIN goes ON p = id",
		"WITH d AS (DELETE FROM goes WHERE p BETWEEN $last AND $last + 50) DELETE FROM parent WHERE id BETWEEN $first AND $last",
		"MERGE INTO parent USING (SELECT DISTINCT $key AS k FROM generate_series(1, $n) g) s ON id = k WHEN MATCHED AND id > 20 THEN DELETE",
		"DELETE FROM goes WHERE x BETWEEN $first AND $last", "DELETE FROM goes WHERE p IN (SELECT $key FROM generate_series(1, $n) g)",
		"UPDATE parent SET id = id + 10000 WHERE id BETWEEN $first AND $last AND NOT EXISTS (SELECT FROM nulls WHERE p = id) AND NOT EXISTS (SELECT FROM parts WHERE p = id) AND NOT EXISTS (SELECT FROM parent p WHERE parent.id IN (p.boss, p.deputy)) AND NOT EXISTS (SELECT FROM plain WHERE p = id)",
		"INSERT INTO goes SELECT 1 + g % 20, 100000 + $first + g, 'x' FROM generate_series(1, $n) g ON CONFLICT DO NOTHING",
		"DO \$\$ BEGIN FOR i IN 0..40 LOOP DELETE FROM parent WHERE id = $first + i * 3; END LOOP; END \$\$");
}

sub change_table
{
	return one_of(
		'ALTER TABLE goes DROP CONSTRAINT goes_p', 'ALTER TABLE goes ALTER p TYPE int8', 'DROP INDEX goes_i', 'DROP INDEX goes_i; CREATE INDEX goes_i ON goes (p) INCLUDE (pad)', 'CREATE INDEX goes_j ON goes (p, x)',
		'DROP INDEX two_i; CREATE INDEX two_i ON two (a, b)', 'ALTER TABLE two DROP COLUMN x', 'ALTER TABLE parent DROP COLUMN pad', 'ALTER TABLE parent ADD c int4 DEFAULT 5', 'REINDEX TABLE goes', 'TRUNCATE below', 'TRUNCATE nulls',
		'ALTER TABLE nulls DROP CONSTRAINT nulls_p, ADD CONSTRAINT nulls_p FOREIGN KEY (p) REFERENCES parent ON DELETE CASCADE NOT VALID', 'ALTER TABLE parent DISABLE TRIGGER ALL', 'SET CONSTRAINTS ALL DEFERRED', 'SET CONSTRAINTS ALL IMMEDIATE',
		'DELETE FROM stays', 'DROP TABLE plain', 'ALTER TABLE below DROP CONSTRAINT below_x', 'SET LOCAL session_replication_role = replica', 'SET LOCAL enable_indexscan = off', 'SET LOCAL enable_bitmapscan = off');
}

# A transaction: each of its statements in a savepoint, to which an error leads back; some are undone without one.
sub transaction
{
	my ($number) = @_;
	my $script = "\\echo transaction $number\nBEGIN;\n" . one_of('', 'SET LOCAL enable_bitmapscan = off;', 'SET LOCAL enable_seqscan = off;', 'SET LOCAL plan_cache_mode = force_custom_plan;') . "\n";
	for (0 .. 1 + draw(3))
	{
		my $does = join ' ', map { chance(14) ? $_ : () } qw(refuse raise change before look ahead more fails throw alter keep child index);
		$script .= "SET LOCAL keys.does = '$does';\nSAVEPOINT s;\n" . delete_rows() . ";\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n";
		$script .= "ROLLBACK TO s;\n" if chance(20);
		$script .= "SAVEPOINT s;\n" . change_table() . ";\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n" if chance(50);
		$script .= "$all_rows;\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n" if chance(60);
	}
	return $script . "ROLLBACK;\n";
}

start_drawing(4242);
my @scripts = map { transaction($_) } 1 .. $transactions;
my $indexes = q('{parent_pkey,parent_u,parent_ab,parent_b,parent_d,goes_i,goes_pkey,nulls_i,two_i,stays_i,stays_j,below_i}'::regclass[]);
my $all = same_transactions($node, \@scripts, indexes => $indexes, setup => "CREATE EXTENSION learnedbtree; SET learnedbtree.btree_indexes = 'none'; $setup",
	flags => '-XAt',
	# Which of several rows is the first depends on the plan.
	common => sub { $_[0] =~ s/((?:ERROR|DETAIL): .*)/$1 =~ s{\d+}{N}gr/ger });
cmp_ok(scalar(() = $all =~ /^DELETE [1-9]/mg), '>', $transactions / 2, 'rows were deleted');
foreach my $message ('violates foreign key constraint', 'not N', 'after N', 'pending trigger events|being used by active queries')
{
	cmp_ok(scalar(() = $all =~ /(?:ERROR|WARNING): +.*(?:$message)/g), '>', 0, "there were errors: $message");
}
foreach my $index (qw(goes_i nulls_i two_i parent_b parent_d))
{
	cmp_ok($node->safe_psql('served_all', "SELECT coalesce(sum(verified), 0) FROM learnedbtree_stat WHERE indexrelname = '$index'"), '>', 500, "$index was served");
	cmp_ok($node->safe_psql('served_all', "SELECT coalesce(sum(prefetched), 0) FROM learnedbtree_stat WHERE indexrelname = '$index'"), '>', 0, '... and leaves were asked for');
}

# Cold: of scattered rows that are deleted, and of all of their rows elsewhere.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE upper AS SELECT g AS id, CASE WHEN g % 60 = 0 THEN NULL ELSE g END AS u, repeat('u', 100) AS pad FROM generate_series(1, 20000) g;
ALTER TABLE upper ADD PRIMARY KEY (id), ADD UNIQUE (u);
-- In no order, so that neighbouring leaves are not neighbours in the file: those are left to the operating system.
CREATE TABLE lower (p int, u int, pad text);
CREATE INDEX lower_p ON lower (p);
CREATE INDEX lower_u ON lower (u);
INSERT INTO lower SELECT 1 + (hashint4(g) & 16383), CASE WHEN g < 20000 AND g % 40 > 0 THEN g END, repeat('l', 150) FROM generate_series(1, 40000) g ORDER BY hashint4(-g);
CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
VACUUM (FREEZE, ANALYZE) upper, lower;
SQL

# How many rows remain, and what is asked for ahead and used of it, of the index and of its table.
sub cold
{
	my ($indexes, $key, $index, $settings) = @_;
	my $delete = 'DELETE FROM upper WHERE id IN (SELECT g * 40 FROM generate_series(1, 400) g)';
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train(i) FROM unnest('{upper_pkey,lower_p,lower_u}'::regclass[]) i; SELECT learnedbtree_stat_reset()");
	my $answer = $node->safe_psql('postgres', "SET learnedbtree.btree_indexes = '$indexes'; BEGIN; ALTER TABLE lower ADD FOREIGN KEY $key NOT VALID; $settings; $delete; SELECT count(*), count(p), count(u) FROM lower; ROLLBACK");
	return ($answer, split /\|/, $node->safe_psql('postgres', "SELECT prefetched, prefetched_used, rows_prefetched, rows_prefetched_used FROM learnedbtree_stat_get('$index'::regclass)"));
}

foreach my $case (
	[ '(p) REFERENCES upper ON DELETE CASCADE', 'lower_p', 50, 300 ], [ '(p) REFERENCES upper ON DELETE SET NULL', 'lower_p', 50, 300 ],
	[ '(p) REFERENCES upper ON DELETE CASCADE', 'lower_p', 50, 300, 'SET enable_indexscan = off' ], [ '(u) REFERENCES upper (u)', 'lower_u', 25, 0 ],
	[ '(p) REFERENCES upper ON DELETE CASCADE', 'lower_p', 0, 0, 'CREATE TRIGGER r BEFORE DELETE ON upper FOR EACH ROW EXECUTE FUNCTION refuses()' ])
{
	my ($key, $index, $leaves, $rows_asked, $settings) = @$case;
	my $what = $key . ($settings ? ", $settings" : '');
	my ($right) = cold('none', $key, $index, $settings // 'SELECT');
	my ($answer, $asked, $used, $asked_rows, $used_rows) = cold('all', $key, $index, $settings // 'SELECT');
	is($answer, $right, "$what: as many rows remain");
	cmp_ok($asked, '>=', $leaves, '... leaves are asked for');
	cmp_ok($asked_rows, '>=', $rows_asked, '... and rows');
	cmp_ok($used, '>=', 0.9 * $asked, '... and leaves used');
	cmp_ok($used_rows, '>=', 0.9 * $asked_rows, '... and rows');
	is($asked + $asked_rows, 0, '... or none') if $leaves == 0;
}
$node->stop;
done_testing();
