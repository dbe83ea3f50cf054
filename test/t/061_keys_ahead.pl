# Statements that write many rows into tables with foreign keys, which are looked ahead for: random ones, with errors at random
# moments inside savepoints, statements within them by triggers, and DDL and lookups in between, in one transaction; some checks
# are deferred to its end, or until they are set to be immediate.  All
# answers and messages are the same as by btree's own functions.
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

my $transactions = 90;
my $rows = 4000;

my $node = PostgreSQL::Test::Cluster->new('keys');
$node->init;
configure_serving($node);
$node->append_conf('postgresql.conf', "effective_io_concurrency = 32\nfsync = off\nlearnedbtree.autotrain = off\n");
$node->start;
my $folder = $node->basedir;

# Keys of rows: of three tables, one by two columns.  Several rows share a key, some have NULLs, "bad" ones have no such key.
sub columns
{
	my ($i, $bad) = @_;
	my $key = "(1 + hashint4($i) & 2047)";
	my @column = ("'k' || lpad(($key)::text, 5, '0')", "CASE WHEN $i % 11 > 0 THEN 1 + (hashint4($i * 7) & 2047) END", "1 + ($i * 37) % 40", "'b' || ($i * 37) % 40 % 9");
	return @column unless $bad;
	my $which = draw(4);
	$column[$which] = "CASE $i WHEN $bad THEN " . ("'none'", '-5', '77', "'none'")[$which] . " ELSE $column[$which] END";
	return @column;
}

my $setup = <<"SQL";
CREATE TABLE parent_t (id text COLLATE "C" PRIMARY KEY, v int4);
CREATE TABLE parent_n (id int4 PRIMARY KEY, v int4);
CREATE TABLE parent_2 (a int4, b text COLLATE "C", v int4, PRIMARY KEY (b, a));
INSERT INTO parent_t SELECT 'k' || lpad(g::text, 5, '0'), g FROM generate_series(0, $rows) g;
INSERT INTO parent_n SELECT g, g FROM generate_series(-3, $rows) g;
INSERT INTO parent_2 SELECT 1 + (g * 37) % 40, 'b' || (g * 37) % 40 % 9, min(g) FROM generate_series(1, 40) g GROUP BY 1, 2;
INSERT INTO parent_2 SELECT g, 'x' || g, g FROM generate_series(100, $rows) g;
CREATE TABLE child (x int4, t text COLLATE "C" CONSTRAINT child_t REFERENCES parent_t, y text, n int4 CONSTRAINT child_n REFERENCES parent_n DEFERRABLE,
                    a int4, b text COLLATE "C", u int4 CONSTRAINT child_u UNIQUE, CONSTRAINT child_2 FOREIGN KEY (a, b) REFERENCES parent_2 (a, b) DEFERRABLE);
CREATE TABLE nested (n int4 CONSTRAINT nested_n REFERENCES parent_n DEFERRABLE INITIALLY DEFERRED, t text COLLATE "C" CONSTRAINT nested_t REFERENCES parent_t);
INSERT INTO child SELECT -g, 'k00001', 'y', 1, 1 + (g * 37) % 40, 'b' || (g * 37) % 40 % 9, -g FROM generate_series(1, 50) g;
CREATE FUNCTION does(what text) RETURNS bool LANGUAGE sql RETURN current_setting('keys.does', true) ~ what;
CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    IF does('raise') AND NEW.x % 97 = 50 THEN
        RAISE EXCEPTION 'not %', NEW.x;
    END IF;
    IF does('look') THEN
        NEW.y = (SELECT v FROM parent_n WHERE id = NEW.n) || '-' || (SELECT v FROM parent_t WHERE id = NEW.t);
    END IF;
    IF does('divide') AND NEW.x % 60 = 59 THEN
        BEGIN
            NEW.y = 1 / (NEW.x % 60 - 59);
        EXCEPTION WHEN division_by_zero THEN
            NEW.y = 'caught';
        END;
    END IF;
    RETURN NEW;
END \$\$;
CREATE FUNCTION after_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    IF does('nested') AND NEW.x % 40 = 20 THEN
        INSERT INTO nested SELECT 1 + g % 500, 'k' || lpad(g::text, 5, '0') FROM generate_series(NEW.x % 300 + 1, NEW.x % 300 + 70) g;
    END IF;
    IF does('fails') AND NEW.x % 40 = 10 THEN
        BEGIN
            INSERT INTO nested SELECT CASE g WHEN NEW.x % 90 THEN -7 ELSE g END FROM generate_series(1, 90) g;
        EXCEPTION WHEN foreign_key_violation THEN
            NULL;
        END;
    END IF;
    IF does('copies') AND NEW.x % 100 = 30 THEN
        BEGIN
            COPY nested FROM '$folder/nested';
        EXCEPTION WHEN foreign_key_violation THEN
            NULL;
        END;
    END IF;
    IF does('delete') AND NEW.x % 3 = 0 THEN
        DELETE FROM child WHERE u = NEW.u - 1;
    END IF;
    IF does('throw') AND NEW.x % 89 = 80 THEN
        RAISE EXCEPTION 'after %', NEW.x;
    END IF;
    IF does('alter') AND NEW.x % 50 = 7 THEN
        BEGIN
            IF NEW.x % 100 = 7 THEN
                ALTER TABLE child DROP CONSTRAINT child_n;
            ELSE
                TRUNCATE nested;
            END IF;
        EXCEPTION WHEN object_in_use THEN
            RAISE WARNING '%', SQLERRM;
        END;
    END IF;
    RETURN NULL;
END \$\$;
CREATE FUNCTION before_all() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    IF does('first') THEN
        INSERT INTO nested SELECT g FROM generate_series(1, 90) g;
        PERFORM FROM parent_n WHERE id = 5;
        ALTER TABLE nested ADD z int4;
        ALTER TABLE nested DROP z;
        TRUNCATE nested;
    END IF;
    RETURN NULL;
END \$\$;
CREATE TRIGGER z_row BEFORE INSERT OR UPDATE ON child FOR EACH ROW EXECUTE FUNCTION on_row();
CREATE TRIGGER z_after AFTER INSERT OR UPDATE ON child FOR EACH ROW EXECUTE FUNCTION after_row();
CREATE TRIGGER z_all BEFORE INSERT OR UPDATE ON child FOR EACH STATEMENT EXECUTE FUNCTION before_all();
CREATE VIEW lookups AS SELECT (SELECT sum((SELECT v FROM parent_t WHERE id = 'k' || lpad(g::text, 5, '0'))) FROM generate_series(60, 75) g) AS t,
       (SELECT sum((SELECT v FROM parent_n WHERE id = g)) FROM generate_series(125, 135) g) AS n,
       (SELECT sum((SELECT v FROM parent_2 WHERE a = g AND b = 'b' || (g - 1) % 9)) FROM generate_series(1, 40) g) AS two;
VACUUM ANALYZE;
SQL

# Files to copy.
foreach my $file (0 .. 5)
{
	start_drawing(100 + $file);
	my ($first, $n, $bad) = (10000 * $file, 100 + draw(200), $file < 2 ? 0 : 30 + draw(150));
	my @column = columns('g', $bad && "$first + $bad");
	my $unique = $file == 3 ? "CASE g - $first WHEN 170 THEN g - 5 ELSE g END" : 'g';
	$setup .= "COPY (SELECT g, $column[0], 'y', $column[1], $column[2], $column[3], $unique FROM generate_series($first + 1, $first + $n) g) TO '$folder/rows$file';\n";
}
$setup .= "COPY (SELECT CASE g WHEN 70 THEN -7 ELSE g END, 'k' || lpad(g::text, 5, '0') FROM generate_series(1, 80) g) TO '$folder/nested';\n";

my $next = 100000;

# A statement that writes many rows; half of them fail somewhere.
sub write_rows
{
	my $n = 40 + draw(220);
	my ($first, $last) = ($next + 1, $next + $n);
	my $bad = chance(30) ? $next + 1 + draw($n) : 0;
	$next += $n;
	my @column = columns('g', $bad);
	my $x = chance(15) ? "g + 1 / (g - $next + " . draw($n) . ')' : 'g';
	my $u = chance(10) ? "CASE WHEN g = $last THEN $first ELSE g END" : 'g';
	my $source = "SELECT $x AS x, $column[0] AS t, 'y' AS y, $column[1] AS n, $column[2] AS a, $column[3] AS b, $u AS u FROM generate_series($first, $last) g";
	return one_of(
		("INSERT INTO child $source") x 4,
		"INSERT INTO child $source ON CONFLICT (u) DO NOTHING",
		"INSERT INTO child $source ON CONFLICT (u) DO UPDATE SET n = excluded.n RETURNING u",
		("MERGE INTO child USING ($source) s ON child.u = s.u - $n WHEN NOT MATCHED THEN INSERT VALUES (s.x, s.t, s.y, s.n, s.a, s.b, s.u) WHEN MATCHED THEN UPDATE SET n = s.n, t = s.t") x 2,
		'UPDATE child SET n = 1 + (hashint4(x + 1) & 2047)',
		'UPDATE child SET n = n + ' . one_of(1, 1, 3000) . ', t = \'k\' || lpad((1 + hashint4(x) & 1023)::text, 5, \'0\') WHERE x > ' . draw($next),
		'UPDATE child SET t = \'k\' || lpad(((SELECT count(*) FROM child) + x % 90)::text, 5, \'0\')',
		map { "COPY child FROM '$folder/rows$_'" } draw(6), draw(6), draw(6), draw(6));
}

sub change_table
{
	return one_of(
		'ALTER TABLE child DROP COLUMN n', 'ALTER TABLE child DROP COLUMN t', 'ALTER TABLE child DROP COLUMN n, ADD n int4 CONSTRAINT child_n REFERENCES parent_n', 'ALTER TABLE child DROP COLUMN b CASCADE',
		'ALTER TABLE child ALTER n TYPE int8', 'ALTER TABLE child ALTER t TYPE varchar(20) COLLATE "C"', 'ALTER TABLE child DROP CONSTRAINT child_t; ALTER TABLE child ALTER t TYPE int4 USING 1',
		'ALTER TABLE child DROP CONSTRAINT child_n; ALTER TABLE child ALTER n TYPE text', 'TRUNCATE child', 'TRUNCATE child, nested', 'DELETE FROM child', 'DELETE FROM child WHERE x % 2 = 0',
		'ALTER TABLE child DROP CONSTRAINT child_n', 'ALTER TABLE child DROP CONSTRAINT child_2', 'ALTER TABLE child ADD CONSTRAINT child_x FOREIGN KEY (x) REFERENCES parent_n NOT VALID', 'CREATE INDEX child_i ON child (n)',
		('SET CONSTRAINTS ALL DEFERRED') x 2, ('SET CONSTRAINTS ALL IMMEDIATE') x 2, 'SET CONSTRAINTS child_n IMMEDIATE', 'REINDEX TABLE parent_n', 'ALTER TABLE parent_n ADD w int4 DEFAULT 7', 'DROP TABLE nested', 'ALTER TABLE parent_t DROP COLUMN v CASCADE',
		'ALTER TABLE child ALTER CONSTRAINT child_n DEFERRABLE', 'DO $$ BEGIN FOR i IN 1..' . draw(40) . ' LOOP INSERT INTO child (u) VALUES (-1000 - i); END LOOP; DELETE FROM child WHERE u < 0; END $$');
}

# A transaction: each of its statements in a savepoint, to which an error leads back; some are undone without one.
sub transaction
{
	my ($number) = @_;
	my $script = "\\echo transaction $number\nBEGIN;\n" . 'SELECT; ' x draw(3) . (chance(40) ? "SET CONSTRAINTS ALL DEFERRED;\n" : '');
	my $changes = 0;
	for (0 .. 1 + draw(3))
	{
		my $does = join ' ', map { chance(18) ? $_ : () } qw(raise look divide nested fails copies delete throw alter first);
		$changes ||= $does =~ /alter/;
		$script .= "SET LOCAL keys.does = '$does';\nSAVEPOINT s;\n" . write_rows() . ";\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n";
		$script .= "ROLLBACK TO s;\n" if chance(20);
		if (chance(65))
		{
			$changes = 1;
			$script .= "SAVEPOINT s;\n" . (chance(60) ? 'SET CONSTRAINTS ALL IMMEDIATE; ' : '') . change_table() . ";\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n";
		}
		$script .= "SELECT * FROM lookups;\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n" if chance(80);
		$script .= "SELECT count(*), md5(string_agg(c::text, ',' ORDER BY c::text COLLATE \"C\")) FROM child c;\n";
	}
	return $script . ($changes || chance(60) ? 'ROLLBACK' : 'COMMIT') . ";\nSELECT * FROM lookups;\n";
}

start_drawing(4040);
my @scripts = map { transaction($_) } 1 .. $transactions;
my $indexes = q('{parent_t_pkey,parent_n_pkey,parent_2_pkey,child_u}'::regclass[]);
my $all = same_transactions($node, \@scripts, indexes => $indexes, setup => "CREATE EXTENSION learnedbtree; SET learnedbtree.btree_indexes = 'none'; $setup",
	settings => [ 'enable_seqscan=off', 'enable_bitmapscan=off', 'enable_hashjoin=off' ]);
foreach my $message ('violates foreign key constraint', 'duplicate key value', 'division by zero', 'not \d+', 'after \d+', 'pending trigger events|being used by active queries', 'column "\w+" (?:of relation "child" )?does not exist')
{
	cmp_ok(scalar(() = $all =~ /(?:ERROR|WARNING): +.*(?:$message)/g), '>', 2, "there were errors: $message");
}
foreach my $index ('parent_t_pkey', 'parent_n_pkey', 'parent_2_pkey')
{
	cmp_ok($node->safe_psql('served_all', "SELECT coalesce(sum(verified), 0) FROM learnedbtree_stat WHERE indexrelname = '$index'"), '>', 5000, "$index was served");
}
is($node->safe_psql('served_all', "SET learnedbtree.btree_indexes = 'all'; CREATE EXTENSION amcheck; SELECT bt_index_check(i, true) FROM unnest($indexes) i") =~ s/\s//gr, '', 'amcheck is content');
done_testing();
