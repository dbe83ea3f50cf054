# Marks belong to indexes: they follow renames, moves and rebuilds, go with what is dropped, also in sessions that have not
# loaded the library, and cover the partitions of a partitioned index, those to come included.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Time::HiRes qw(sleep);

my $node = serving_node('marks');
my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET client_min_messages = error;';
my $connection = $node->connstr('postgres');

sub make
{
	$node->safe_psql('postgres', <<'SQL');
SET client_min_messages = error;
DROP SCHEMA IF EXISTS shop, store, "My Shop" CASCADE;
CREATE SCHEMA shop;
CREATE SCHEMA store;
CREATE TABLE shop.t (id int8 PRIMARY KEY, a int4, x text COLLATE "C" CONSTRAINT t_un UNIQUE);
INSERT INTO shop.t SELECT g, g / 10, 'x' || g FROM generate_series(1, 3000) g;
CREATE INDEX t_a ON shop.t (a);
CREATE TABLE shop.other (a int4);
CREATE INDEX other_a ON shop.other (a);
SELECT learnedbtree_adopt('shop.t_pkey'), learnedbtree_adopt('shop.t_un', max_error => 2), learnedbtree_adopt('shop.t_a', retrain_splits => 7),
	learnedbtree_adopt('shop.other_a', false);
SQL
	return;
}

# The same twice: in a session with the library, and in one without (where one can be without).
my @kinds = needs_preload($node) ? ('') : ('', ' without the library');
my $all = "shop.other.other_a excluded\nshop.t.t_a retrain_splits=7\nshop.t.t_pkey\nshop.t.t_un max_error=2";

# A DDL command, marks after it, and a lookup that is served then, by an index.
sub follows
{
	my ($name, $ddl, $wanted, $lookup, $index) = @_;
	foreach my $kind (@kinds)
	{
		make();
		local $ENV{PGOPTIONS} = $kind ? '-c session_preload_libraries=' : '';
		my ($rc, undef, $err) = $node->psql('postgres', join(";\n", map { "$_" } split(/;\s*/, $ddl)), on_error_stop => 1);
		is("$rc$err", '0', "$name$kind: no error, no message");
		local $ENV{PGOPTIONS} = '';
		is(marks($node, 'postgres'), $wanted, "$name$kind: marks follow");
		is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "$settings $lookup") }, $index), $index, "$name$kind: and serve") if $lookup;
	}
	return;
}

# ---- names ----

my @lookup = ('SELECT id FROM shop.t WHERE a = 7', 'shop.t_a');
follows('ALTER INDEX RENAME', 'ALTER INDEX shop.t_a RENAME TO new_a; ALTER INDEX shop.t_pkey RENAME TO t_a', $all =~ s/t_a retr/new_a retr/r =~ s/(.*)(.*new_a.*)\n(.*)t_pkey/$1$2\n$3t_a/r,
	$lookup[0], 'shop.new_a');
follows('indexes that change places', 'ALTER INDEX shop.t_a RENAME TO tmp; ALTER INDEX shop.other_a RENAME TO t_a; ALTER INDEX shop.tmp RENAME TO other_a',
	"shop.other.t_a excluded\nshop.t.other_a retrain_splits=7\nshop.t.t_pkey\nshop.t.t_un max_error=2", $lookup[0], 'shop.other_a');
follows('ALTER TABLE RENAME', 'ALTER TABLE shop.t RENAME TO "New T"; ALTER TABLE shop."New T" RENAME a TO b', join("\n", sort split(/\n/, $all =~ s/shop\.t\./shop.New T./gr)),
	'SELECT id FROM shop."New T" WHERE b = 7', 'shop.t_a');
follows('ALTER TABLE RENAME CONSTRAINT', 'ALTER TABLE shop.t RENAME CONSTRAINT t_un TO t_unique', $all =~ s/t_un /t_unique /r, "SELECT id FROM shop.t WHERE x = 'x7'", 'shop.t_unique');
follows('ALTER TABLE SET SCHEMA', 'ALTER TABLE shop.t SET SCHEMA store', $all =~ s/shop\.t\./store.t./gr, 'SELECT id FROM store.t WHERE a = 7', 'store.t_a');
follows('ALTER SCHEMA RENAME', 'ALTER SCHEMA shop RENAME TO "My Shop"', $all =~ s/shop\./My Shop./gr, 'SELECT id FROM "My Shop".t WHERE a = 7', '"My Shop".t_a');
follows('ALTER MATERIALIZED VIEW', 'SET client_min_messages = warning; CREATE MATERIALIZED VIEW shop.m AS SELECT id, a FROM shop.t; CREATE INDEX m_a ON shop.m (a); SELECT FROM learnedbtree_adopt($$shop.m_a$$); '
	  . 'ALTER MATERIALIZED VIEW shop.m SET SCHEMA store; ALTER MATERIALIZED VIEW store.m RENAME TO n', "$all\nstore.n.m_a", 'SELECT id FROM store.n WHERE a = 7', 'store.m_a');
follows('a swap of tables', 'CREATE TABLE store.t (LIKE shop.t INCLUDING ALL); INSERT INTO store.t SELECT * FROM shop.t; DROP TABLE shop.t; ALTER TABLE store.t SET SCHEMA shop', 'shop.other.other_a excluded');

# ---- rebuilds ----

follows('REINDEX', 'REINDEX TABLE shop.t; REINDEX INDEX shop.t_a', $all, @lookup);
follows('REINDEX CONCURRENTLY', 'REINDEX TABLE CONCURRENTLY shop.t', $all, @lookup);
follows('REINDEX CONCURRENTLY and a rename', 'REINDEX INDEX CONCURRENTLY shop.t_a; ALTER INDEX shop.t_a RENAME TO new_a', $all =~ s/t_a retr/new_a retr/r, $lookup[0], 'shop.new_a');
follows('REINDEX CONCURRENTLY, then DROP', 'REINDEX INDEX CONCURRENTLY shop.t_a; DROP INDEX shop.t_a', $all =~ s/^.*\bt_a.*\n//mr);
follows('REINDEX CONCURRENTLY, then another schema', 'REINDEX TABLE CONCURRENTLY shop.t; ALTER TABLE shop.t SET SCHEMA store', $all =~ s/shop\.t\./store.t./gr, 'SELECT id FROM store.t WHERE a = 7', 'store.t_a');
follows('ALTER TYPE', "ALTER TABLE shop.t ALTER a TYPE int8, ALTER x TYPE varchar(90); ALTER TABLE shop.t ALTER id TYPE int4", $all, @lookup);
follows('ALTER TYPE and a rename', 'ALTER TABLE shop.t ALTER a TYPE int8; ALTER INDEX shop.t_a RENAME TO new_a', $all =~ s/t_a retr/new_a retr/r, $lookup[0], 'shop.new_a');
follows('TRUNCATE', 'TRUNCATE shop.t; INSERT INTO shop.t SELECT g, g / 10 FROM generate_series(1, 3000) g', $all, @lookup);
follows('CLUSTER and VACUUM FULL', 'CLUSTER shop.t USING t_a; VACUUM FULL shop.t; ALTER TABLE shop.t SET UNLOGGED; ALTER TABLE shop.t SET LOGGED', $all, @lookup);
follows('ADD COLUMN', 'ALTER TABLE shop.t ADD c float DEFAULT random(); ALTER TABLE shop.t DROP c', $all, @lookup);
follows('ADD CONSTRAINT USING INDEX', 'SET client_min_messages = warning; CREATE UNIQUE INDEX t_new ON shop.t (id, x); SELECT FROM learnedbtree_adopt($$shop.t_new$$); ALTER TABLE shop.t ADD CONSTRAINT t_named UNIQUE USING INDEX t_new',
	"shop.other.other_a excluded\nshop.t.t_a retrain_splits=7\nshop.t.t_named\nshop.t.t_pkey\nshop.t.t_un max_error=2", @lookup);

# ---- drops ----

follows('DROP INDEX', 'DROP INDEX shop.t_a', $all =~ s/^.*\bt_a.*\n//mr);
follows('DROP INDEX CONCURRENTLY', 'DROP INDEX CONCURRENTLY shop.t_a', $all =~ s/^.*\bt_a.*\n//mr);
follows('ALTER TABLE DROP CONSTRAINT', 'ALTER TABLE shop.t DROP CONSTRAINT t_un, DROP CONSTRAINT t_pkey', $all =~ s/^.*\bt_(?:un|pkey).*\n?//gmr =~ s/\n$//r);
follows('ALTER TABLE DROP COLUMN', 'ALTER TABLE shop.t DROP a', $all =~ s/^.*\bt_a.*\n//mr);
follows('DROP TABLE', 'DROP TABLE shop.t', 'shop.other.other_a excluded');
follows('DROP SCHEMA', 'SET client_min_messages = error; DROP SCHEMA shop CASCADE', '');
follows('DROP OWNED', 'SET client_min_messages = error; CREATE ROLE r; GRANT CREATE ON SCHEMA shop TO r; GRANT CREATE ON SCHEMA store TO r; ALTER TABLE shop.t OWNER TO r; DROP OWNED BY r; DROP ROLE r', 'shop.other.other_a excluded');
follows('an index of the same name', 'DROP INDEX shop.t_a; CREATE INDEX t_a ON shop.t (a)', $all =~ s/^.*\bt_a.*\n//mr);
follows('what is rolled back', 'BEGIN; ALTER INDEX shop.t_a RENAME TO gone; DROP TABLE shop.other; ROLLBACK; BEGIN; SAVEPOINT s; DROP INDEX shop.t_a; ROLLBACK TO s; COMMIT', $all, @lookup);

# ---- partitions ----

make();
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE shop.p (k int8, v int4) PARTITION BY RANGE (k);
CREATE TABLE shop.p1 PARTITION OF shop.p FOR VALUES FROM (0) TO (1000);
CREATE INDEX p_k ON shop.p (k);
SELECT learnedbtree_adopt('shop.p_k', max_error => 3);
CREATE TABLE shop.p2 PARTITION OF shop.p FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (k);
CREATE TABLE shop.p21 PARTITION OF shop.p2 FOR VALUES FROM (1000) TO (1500);
CREATE TABLE shop.p3 (LIKE shop.p INCLUDING ALL);
ALTER TABLE shop.p ATTACH PARTITION shop.p3 FOR VALUES FROM (2000) TO (3000);
CREATE INDEX p3_own ON shop.p3 (v);
CREATE TABLE shop.p4 PARTITION OF shop.p FOR VALUES FROM (3000) TO (4000);
SQL
my $state = q{SELECT string_agg(concat_ws(' ', indexname, mark, CASE WHEN served THEN 'served' END), ', ' ORDER BY indexname COLLATE "C") FROM learnedbtree_indexes WHERE tablename ~ '^p\d'};
sub state_is { my ($wanted, $name) = @_; return is($node->safe_psql('postgres', $state), $wanted, $name); }
is(marks($node, 'postgres'), "$all\n" =~ s/^(?=shop\.t\.t_a)/shop.p.p_k max_error=3\n/mr =~ s/\n$//r, 'a partitioned index has one mark');
state_is('p1_k_idx adopted served, p21_k_idx adopted served, p3_k_idx adopted served, p3_own, p4_k_idx adopted served', 'it is of all partitions, and those that came later');
my $partitions = "$settings INSERT INTO shop.p SELECT g, g FROM generate_series(0, 3900, 3) g WHERE g NOT BETWEEN 1500 AND 1999; INSERT INTO shop.p SELECT 0; SELECT v FROM shop.p WHERE k = 3";
is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "$partitions; SELECT v FROM shop.p WHERE k = 1002; SELECT v FROM shop.p WHERE k = 2001; SELECT v FROM shop.p WHERE k = 3000") },
		map { "shop.p${_}_k_idx" } qw(1 21 3 4)), join(' ', map { "shop.p${_}_k_idx" } qw(1 21 3 4)), 'all are served');
is($node->safe_psql('postgres', "SELECT learnedbtree_train('shop.p1_k_idx'); SELECT max_error <= 3 FROM learnedbtree_model('shop.p1_k_idx')"), "\nt", 'with its options');
$node->safe_psql('postgres', "SELECT learnedbtree_adopt('shop.p1_k_idx', false), learnedbtree_adopt('shop.p21_k_idx', max_error => 7)");
state_is('p1_k_idx excluded, p21_k_idx adopted served, p3_k_idx adopted served, p3_own, p4_k_idx adopted served', 'a mark of a partition goes before it');
$node->safe_psql('postgres', 'ALTER TABLE shop.p DETACH PARTITION shop.p3; ALTER TABLE shop.p DETACH PARTITION shop.p2');
state_is('p1_k_idx excluded, p21_k_idx adopted served, p3_k_idx, p3_own, p4_k_idx adopted served', 'DETACH ends it');
$node->safe_psql('postgres', 'ALTER TABLE shop.p DETACH PARTITION shop.p4 CONCURRENTLY');
state_is('p1_k_idx excluded, p21_k_idx adopted served, p3_k_idx, p3_own, p4_k_idx', 'so does DETACH CONCURRENTLY');
$node->safe_psql('postgres', 'ALTER TABLE shop.p ATTACH PARTITION shop.p4 FOR VALUES FROM (3000) TO (4000); ALTER INDEX shop.p_k RENAME TO p_new');
state_is('p1_k_idx excluded, p21_k_idx adopted served, p3_k_idx, p3_own, p4_k_idx adopted served', 'ATTACH begins it');
$node->safe_psql('postgres', "SELECT learnedbtree_release('shop.p_new')");
state_is('p1_k_idx excluded, p21_k_idx adopted served, p3_k_idx, p3_own, p4_k_idx', 'released');
$node->safe_psql('postgres', 'DROP TABLE shop.p1; DROP TABLE shop.p2');
is(marks($node, 'postgres'), $all, 'marks of partitions go with them');

# ---- who may, and when others are at it ----

$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE reader LOGIN; GRANT ALL ON SCHEMA shop TO owner, reader; ALTER TABLE shop.other OWNER TO owner; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA shop TO reader');
sub as { my ($role, $sql) = @_; my ($rc, $out, $err) = $node->psql('postgres', $sql, extra_params => [ '-U', $role ]); return "$out$err"; }
is(as('owner', "SELECT learnedbtree_adopt('shop.other_a')"), '', 'the owner of an index may adopt it');
like(as('reader', "SELECT learnedbtree_adopt('shop.other_a', false)"), qr/belongs to another user|must be owner/, 'nobody else may');
like(as('reader', "SELECT learnedbtree_release('shop.other_a')"), qr/belongs to another user|must be owner/, 'nor release it');
like(as('reader', "INSERT INTO learnedbtree.marks VALUES ('shop', 't', 'x')"), qr/permission denied/, 'nor write marks');
is(as('reader', "SELECT count(*) FROM learnedbtree.marks"), '4', 'all may read them');
is(as('owner', 'ALTER INDEX shop.other_a RENAME TO other_new; DROP INDEX shop.other_new; SELECT count(*) FROM learnedbtree.marks'), '3', 'marks follow what an owner without rights on them does');
is(predicted_in($node, 'postgres', sub { as('reader', "$settings SELECT a FROM shop.t WHERE a = 7") }, 'shop.t_a'), 'shop.t_a', 'who may read a table is served');

# Readers and writers are not waited for, nor do they wait.
my $reader = $node->background_psql('postgres');
my $marker = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM shop.t WHERE id = 7; UPDATE shop.t SET a = a + 1 WHERE id = 7');
$marker->query_safe("SET lock_timeout = '10s'; BEGIN; SELECT learnedbtree_release('shop.t_a'), learnedbtree_adopt('shop.t_pkey', max_error => 9)");
is($reader->query_safe("SET lock_timeout = '10s'; UPDATE shop.t SET a = a + 1 WHERE id = 8; SELECT count(*) FROM shop.t WHERE a = 100"), '10', 'nobody waits');
is($node->safe_psql('postgres', "SET lock_timeout = '10s'; SELECT learnedbtree_adopt('shop.t_un'); CREATE TABLE shop.more (k int PRIMARY KEY); ALTER INDEX shop.more_pkey RENAME TO more_k; "
		  . "SELECT learnedbtree_adopt('shop.more_k'); DROP TABLE shop.more; SELECT count(*) FROM learnedbtree.marks"), "\n\n3", 'nor others who mark, rename and drop');
$marker->query_safe('COMMIT');
$reader->query_safe('COMMIT');
$_->quit foreach $reader, $marker;
is(marks($node, 'postgres'), "shop.t.t_pkey max_error=9\nshop.t.t_un", 'all is as said');

# What a transaction has brought up to date others do not wait for.
$node->safe_psql('postgres', 'CREATE TABLE shop.one (k int PRIMARY KEY); CREATE TABLE shop.two (k int PRIMARY KEY)');
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY shop.t_un');
my ($first, $second) = map { $node->background_psql('postgres', on_error_stop => 0) } 1, 2;
$first->query_safe('BEGIN; ALTER TABLE shop.one ADD a int');
is($second->query_safe("SET lock_timeout = '10s'; BEGIN; ALTER TABLE shop.two ADD a int; ALTER INDEX shop.two_pkey RENAME TO two_key; COMMIT; SELECT 1"), '1', 'ALTER does not wait for another one');
is($first->query_safe('SELECT count(a) FROM shop.two; COMMIT'), '0', 'nor the other one for it');
is(marks($node, 'postgres'), "shop.t.t_pkey max_error=9\nshop.t.t_un", 'marks are right');

# Adopting locks the table first, as all else does.
$first->query_safe("BEGIN; SELECT learnedbtree_adopt('shop.t_a')");
$second->query_until(qr/started/, "\\echo started\nDROP INDEX shop.t_a;\n");
wait_until($node, 'SELECT count(*) > 0 FROM pg_locks WHERE NOT granted');
is($first->query_safe('SELECT count(*) FROM shop.t WHERE id = 7; COMMIT'), '1', 'no deadlock with DROP INDEX');
$second->query_safe('SELECT 1');
is(marks($node, 'postgres'), "shop.t.t_pkey max_error=9\nshop.t.t_un", 'the mark is gone with the index');

# Adopting beside a rename that is not yet committed.
$first->query_safe('BEGIN; ALTER INDEX shop.t_un RENAME TO t_other');
$second->query_until(qr/started/, "\\echo started\nSELECT learnedbtree_adopt('shop.t_un', max_error => 4);\n");
sleep(0.3);
$first->query_safe('COMMIT');
$second->query('SELECT 1');
is($node->safe_psql('postgres', "SELECT count(*), min(max_error) FROM learnedbtree.marks WHERE indexid = 'shop.t_other'::regclass"), '1|4', 'adopting beside a rename makes one mark');
$node->safe_psql('postgres', 'ALTER INDEX shop.t_other RENAME TO t_un');
is(marks($node, 'postgres'), "shop.t.t_pkey max_error=9\nshop.t.t_un max_error=4", 'of the right name after the next one');

# Nor does adopting a partitioned index wait for those who rebuild a partition's.
$node->safe_psql('postgres', 'CREATE TABLE shop.q (k int PRIMARY KEY) PARTITION BY RANGE (k); CREATE TABLE shop.q1 PARTITION OF shop.q FOR VALUES FROM (0) TO (10)');
$first->query_safe('BEGIN; REINDEX INDEX shop.q1_pkey');
is(($node->psql('postgres', "SET lock_timeout = '5s'; SELECT learnedbtree_adopt('shop.q_pkey'), learnedbtree_release('shop.q_pkey')"))[0], 0, 'adopting a partitioned index waits for no partition');
$first->query_safe('COMMIT; DROP TABLE shop.q');

# A role without rights keeps nobody waiting.
my $idle = $node->background_psql('postgres', extra_params => [ '-U', 'reader' ]);
$idle->query_safe("SET client_min_messages = error; BEGIN; SELECT count(*) FROM learnedbtree_adopt_all('nosuch'); SELECT count(*) FROM learnedbtree_adopt_all(); SELECT count(*) FROM learnedbtree_release_all()");
my ($rc, undef, $complaints) = $node->psql('postgres', "SET lock_timeout = '2s'; ALTER TABLE shop.t ADD z int; REINDEX TABLE shop.t; ALTER INDEX shop.t_un RENAME TO t_uniq; "
	  . "ALTER INDEX shop.t_uniq RENAME TO t_un; SELECT learnedbtree_adopt('shop.t_un'); TRUNCATE shop.one");
is("$rc$complaints", '0', 'commands do not wait for who may not adopt');
$idle->query_safe('COMMIT');
$_->quit foreach $first, $second, $idle;

# Rows that replication, or a superuser's hand, has put there.
my $running = $node->background_psql('postgres');
$running->query_safe("$settings SELECT id FROM shop.t WHERE a = 7");
$node->safe_psql('postgres', "CREATE INDEX t_b ON shop.t (a, id); SET session_replication_role = replica; INSERT INTO learnedbtree.marks VALUES ('shop', 't', 't_b')");
is(predicted_in($node, 'postgres', sub { asked($running, 'SELECT id FROM shop.t WHERE a = 7') }, 'shop.t_b'), 'shop.t_b', 'sessions are told of a row that replication brings');
$running->query_safe('DROP INDEX shop.t_b');
$running->quit;
$node->safe_psql('postgres', "INSERT INTO learnedbtree.marks VALUES ('shop', 't', 't_un'), ('shop', 't', 't_un'), ('shop', 'none', 'none_pkey')");
$node->safe_psql('postgres', "SELECT learnedbtree_release('shop.t_un')");
is($node->safe_psql('postgres', "SELECT count(*) FROM learnedbtree.marks WHERE indexname = 't_un'"), '0', 'releasing deletes all rows of an index');
is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "$settings SELECT id FROM shop.t WHERE x = 'x7'") }, 'shop.t_un'), '', 'and it is served no more');
$node->safe_psql('postgres', 'DELETE FROM learnedbtree.marks');
is(predicted_in($node, 'postgres', sub { $node->safe_psql('postgres', "$settings SELECT id FROM shop.t WHERE id = 7") }, 'shop.t_pkey'), '', 'so are others without their rows');

is(amcheck_all($node, 'postgres'), '', 'amcheck is content');
unlike(slurp_file($node->logfile), qr/WARNING:.*marks|PANIC|TRAP|XX000/, 'no complaint in the log');
$node->stop;
done_testing();
