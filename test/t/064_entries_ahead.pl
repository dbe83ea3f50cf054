# Rows that are written one by one ask for the leaves of all of their entries together: random statements, with errors, triggers,
# conflicts, DDL and undone subtransactions, beside indexes that are partial, invalid, of expressions or of another access method,
# give the same answers and messages as by btree's own functions; leaves that are missing are asked for, and read.  So do apply
# workers.  CREATE INDEX CONCURRENTLY and REINDEX, which have one index open, take nothing from it.
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

my $rows = 20000;
my @indexes = qw(t_pkey t_a t_b t_cb t_d);

# Few shared buffers: leaves are missing all the time.  Apply workers load the library, too.
sub small_node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	configure_serving($node, shared => 1);
	$node->append_conf('postgresql.conf', "shared_buffers = 2MB\neffective_io_concurrency = 32\nmax_connections = 10\nfsync = off\nlearnedbtree.autotrain = off\n");
	$node->start;
	return $node;
}

my $table = <<'SQL';
CREATE EXTENSION learnedbtree;
CREATE EXTENSION amcheck;
CREATE TABLE t (gone int4, id int8 PRIMARY KEY, a uuid, b numeric, c int8, d text COLLATE "C", e int4, f int4 DEFAULT 7);
ALTER TABLE t DROP COLUMN gone;
CREATE INDEX t_a ON t (a);
CREATE INDEX t_b ON t (b);
CREATE UNIQUE INDEX t_cb ON t (c DESC, b);
CREATE INDEX t_d ON t (d) INCLUDE (e);
CREATE INDEX t_partial ON t (b) WHERE c > 0;
CREATE INDEX t_lower ON t (lower(d), c);
CREATE INDEX t_hash ON t USING hash (e);
CREATE INDEX t_invalid ON t (c);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_invalid'::regclass;
SQL

sub values_of
{
	my ($i) = @_;
	return "$i, md5('a' || $i)::uuid, hashint4($i) / 7.0, hashint8($i * 3)::int8 * 5, CASE WHEN $i % 19 > 0 THEN repeat(md5('d' || $i), 1 + $i % 3) END, $i % 1000";
}

my $fill = 'INSERT INTO t (id, a, b, c, d, e) SELECT ' . values_of('g') . " FROM generate_series(1, $rows) g;\n";
my $setup = $table . $fill . <<'SQL';
CREATE FUNCTION does(what text) RETURNS bool LANGUAGE sql RETURN current_setting('keys.does', true) ~ what;
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF does('raise') THEN RAISE EXCEPTION 'not %', NEW.id; END IF;
    IF does('skip') THEN RETURN NULL; END IF;
    IF does('change') THEN NEW.a = md5(NEW.a::text)::uuid; NEW.c = NEW.c + 1; END IF;
    IF does('write') AND pg_trigger_depth() < 2 THEN
        BEGIN
            INSERT INTO t (id, a, b, c, d) VALUES (-NEW.id, md5(NEW.id::text)::uuid, NEW.id, CASE WHEN does('fail') THEN 1 / (NEW.id - NEW.id) ELSE -NEW.id END, 'w');
        EXCEPTION WHEN division_by_zero OR unique_violation THEN
            RAISE WARNING '%', SQLERRM;
        END;
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION after_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF does('after') THEN RAISE EXCEPTION 'after %', NEW.id; END IF;
    IF does('drop') THEN
        BEGIN
            DROP INDEX t_b;
        EXCEPTION WHEN object_in_use THEN
            RAISE WARNING '%', SQLERRM;
        END;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION before_row();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after_row();
VACUUM ANALYZE t;
SQL

# ---- random statements ----

my $next = 100000;

sub statement
{
	my $new = ++$next;
	my $old = 1 + draw($rows);
	my $insert = 'INSERT INTO t (id, a, b, c, d, e) VALUES';
	return one_of(
		("$insert (" . values_of($new) . ')') x 6,
		"$insert (" . values_of($old) . ')',
		"$insert (" . values_of($new) . ') ON CONFLICT (id) DO NOTHING',
		"$insert (" . values_of($old) . ") ON CONFLICT (id) DO UPDATE SET b = t.b + 1, a = md5('$new')::uuid RETURNING b",
		"$insert (" . join('), (', map { values_of(++$next) } 1 .. 5) . ')',
		"INSERT INTO t (id, c, b) SELECT $new, c, b FROM t WHERE id = $old",
		("UPDATE t SET a = md5('$new')::uuid WHERE id = $old") x 2,
		"UPDATE t SET b = b * 3, d = left(d, 40) || '$new' WHERE id BETWEEN $old AND $old + 6",
		"UPDATE t SET id = $new WHERE id = $old",
		"UPDATE t SET f = $new WHERE id = $old",
		"DELETE FROM t WHERE id BETWEEN $old AND $old + 2",
		"MERGE INTO t USING (VALUES ($old), ($new)) s (i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET c = c - 1 WHEN NOT MATCHED THEN INSERT (id, a, c, b) VALUES (s.i, md5(s.i::text)::uuid, s.i, s.i)",
		"SELECT count(*), sum(b), min(d) FROM t WHERE a > md5('$new')::uuid",
		"SELECT id, b FROM t WHERE c = hashint8($old * 3)::int8 * 5");
}

sub change_table
{
	return one_of(
		'ALTER TABLE t ADD h int4 DEFAULT 3', 'ALTER TABLE t DROP COLUMN e', 'ALTER TABLE t ALTER id TYPE numeric', 'ALTER TABLE t ALTER a TYPE text COLLATE "C"', 'DROP INDEX t_a', 'DROP INDEX t_b, t_partial',
		'CREATE INDEX t_more ON t (a, b)', 'REINDEX INDEX t_d', 'TRUNCATE t', 'ALTER TABLE t SET UNLOGGED', 'DELETE FROM t WHERE id % 3 = 0', 'CLUSTER t USING t_a');
}

sub transaction
{
	my ($number) = @_;
	my $script = "\\echo transaction $number\nBEGIN;\n";
	my $changes = 0;
	for (0 .. draw(25))
	{
		my $does = chance(12) ? join(' ', map { chance(25) ? $_ : () } qw(raise skip change write fail after drop)) : '';
		$changes ||= $does =~ /drop/;
		if (chance(8))
		{
			$changes = 1;
			$script .= "SAVEPOINT s;\n" . change_table() . ";\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n";
		}
		$script .= "SET LOCAL keys.does = '$does';\nSAVEPOINT s;\n" . statement() . ";\n\\if :ERROR\nROLLBACK TO s;\n\\endif\n";
		$script .= "ROLLBACK TO s;\n" if chance(8);
	}
	return $script . ($changes || chance(10) ? 'ROLLBACK' : 'COMMIT') . ";\nSELECT count(*), md5(string_agg(t::text, ',' ORDER BY id)) FROM t;\n";
}

start_drawing(6464);
my $transactions = 60;
my @scripts = map { transaction($_) } 1 .. $transactions;
my $node = small_node('entries');
my $all = same_transactions($node, \@scripts, indexes => "'{" . join(',', @indexes) . "}'::regclass[]", setup => $setup,
	settings => [ 'enable_seqscan=off', 'enable_bitmapscan=off' ]);
foreach my $message ('duplicate key value', 'not \d+', 'after \d+', 'division by zero', 'being used by active queries|pending trigger events')
{
	cmp_ok(scalar(() = $all =~ /(?:ERROR|WARNING): +.*(?:$message)/g), '>', 0, "there were errors: $message");
}

# By index: leaves asked for, and of these read.
sub asked_for
{
	my ($where, $database) = @_;
	return map { my ($name, @n) = split /\|/; $name => \@n } split /\n/, $where->safe_psql($database, 'SELECT indexrelname, prefetched, prefetched_used FROM learnedbtree_stat');
}

my %asked = asked_for($node, 'served_all');
foreach my $index (qw(t_a t_b t_d))
{
	cmp_ok($asked{$index}[0] // 0, '>', 30, "leaves of $index were asked for, since it was dropped last");
	cmp_ok($asked{$index}[1] // 0, '>', 0.7 * ($asked{$index}[0] // 0), '... and read');
}
is($asked{$_}[0] // 0, 0, "none of $_") foreach qw(t_partial t_lower);
my $check = join(';', map { "SELECT bt_index_check('$_', true)" } grep { $_ ne 't_invalid' } @indexes, qw(t_partial t_lower));
is($node->safe_psql('served_all', $check) =~ s/\s//gr, '', 'amcheck is content');

# Turned off, or where the server reads nothing ahead, nothing is asked for.
foreach my $setting ('learnedbtree.enable_prefetch = off', 'effective_io_concurrency = 0', 'learnedbtree.enable_insert = off')
{
	my %before = asked_for($node, 'served_all');
	$node->safe_psql('served_all', "SET learnedbtree.btree_indexes = 'all'; SET $setting; " . join('; ', map { $next++; 'INSERT INTO t (id, a, b, c, d, e) VALUES (' . values_of($next) . ')' } 1 .. 50));
	others_have_ended($node, 'served_all', '');
	my %after = asked_for($node, 'served_all');
	is($after{t_a}[0], $before{t_a}[0], "$setting: nothing");
}

# Rows that fail at their first index need no leaf of another.
my @old = map { 'INSERT INTO t (id, a, b, c, d, e) VALUES (' . values_of(1 + draw($rows)) . ')' } 1 .. 200;
my %before = asked_for($node, 'served_all');
$node->psql('served_all', "SET learnedbtree.btree_indexes = 'all';\n" . join(";\n", @old), on_error_stop => 0, stderr => \my $errors);
others_have_ended($node, 'served_all', '');
my %after = asked_for($node, 'served_all');
cmp_ok(scalar(() = $errors =~ /duplicate key value/g), '>', 100, 'most of them fail');
cmp_ok($after{t_a}[0] - $before{t_a}[0], '<', 60, 'leaves were asked for until that was seen');

# ---- indexes that are made meanwhile ----

my $waits = $node->background_psql('served_all');
$waits->query_safe('BEGIN; INSERT INTO t (id, c) VALUES (-5, -5)');
my $makes = $node->background_psql('served_all');
$makes->query_until(qr/begins/, "\\echo begins\nSET learnedbtree.btree_indexes = 'all';\nCREATE INDEX CONCURRENTLY t_new ON t (b, a);\nREINDEX INDEX CONCURRENTLY t_a;\n");
ok(eventually($node, "SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ '^CREATE INDEX CONC' AND wait_event_type = 'Lock'"), 'CREATE INDEX CONCURRENTLY waits');
foreach my $when ('while it waits', 'while it goes on')
{
	$waits->query_safe('COMMIT') if $when =~ /on$/;
	is($node->psql('served_all', "SET learnedbtree.btree_indexes = 'all'; " . join('; ', map { $next++; 'INSERT INTO t (id, a, b, c, d, e) VALUES (' . values_of($next) . ')' } 1 .. 150)), 0, "rows are inserted $when");
}
$makes->query_safe('SELECT 1');
$_->quit foreach $waits, $makes;
is($node->safe_psql('served_all', "$check; SELECT bt_index_check('t_new', true)") =~ s/\s//gr, '', 'amcheck is content');
is($node->safe_psql('served_all', "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND NOT indisvalid"), 1, 'they are valid');

# ---- an apply worker ----

my $subscriber = small_node('subscriber');
$_->safe_psql('postgres', $table) foreach $node, $subscriber;
$node->safe_psql('postgres', "$fill CREATE PUBLICATION p FOR TABLE t");
$subscriber->safe_psql('postgres', "ALTER SYSTEM SET learnedbtree.btree_indexes = 'all'; SELECT pg_reload_conf()");
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $node->connstr . " dbname=postgres' PUBLICATION p");
$subscriber->wait_for_subscription_sync($node, 's');
$subscriber->safe_psql('postgres', join('; ', map { "SELECT learnedbtree_train('$_')" } @indexes) . '; SELECT learnedbtree_stat_reset()');
my $changes = join('; ', map { $next++; ('INSERT INTO t (id, a, b, c, d, e) VALUES (' . values_of($next) . ')', "UPDATE t SET b = b + 1 WHERE id = " . (1 + draw($rows))) } 1 .. 200);
$node->safe_psql('postgres', $changes);
$node->wait_for_catchup('s');
$node->safe_psql('postgres', join('; ', map { $next++; 'INSERT INTO t (id, a, b, c, d, e) VALUES (' . values_of($next) . ')' } 1 .. 300));
$node->wait_for_catchup('s');
my $contents = "SELECT count(*), md5(string_agg(t::text, ',' ORDER BY id)) FROM t";
is($subscriber->safe_psql('postgres', $contents), $node->safe_psql('postgres', $contents), 'an apply worker: the same rows');
is($subscriber->safe_psql('postgres', $check) =~ s/\s//gr, '', '... amcheck is content');
ok(eventually($subscriber, "SELECT coalesce(sum(prefetched), 0) > 100 FROM learnedbtree_stat WHERE indexrelname IN ('t_a', 't_b')"), '... leaves were asked for');
done_testing();
