# pg_dump and restore, serial and parallel: operator classes, options and types of other extensions; operator classes of
# roles that are gone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('dump');
my $have_citext = $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'");
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE t (k int8, a int4, x text, ts timestamptz);
INSERT INTO t SELECT g, g % 100, 'row ' || g, '2024-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 5000) g;
CREATE INDEX t_k ON t USING learnedbtree (k) WITH (fillfactor = 40);
CREATE INDEX t_desc ON t USING learnedbtree (k DESC) WITH (deduplicate_items = off);
CREATE INDEX t_ak ON t USING learnedbtree (a DESC NULLS LAST, k) INCLUDE (x);
CREATE INDEX t_x ON t USING learnedbtree (x text_pattern_ops);
CREATE UNIQUE INDEX t_part ON t USING learnedbtree (k) WHERE a > 5;
CREATE INDEX t_expr ON t USING learnedbtree ((k * 2));
CREATE TABLE p (k int4, v int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (3000);
CREATE INDEX p_k ON p USING learnedbtree (k);
INSERT INTO p SELECT g, g FROM generate_series(0, 2999) g;
CREATE MATERIALIZED VIEW m AS SELECT k, a FROM t WHERE a < 10;
CREATE INDEX m_k ON m USING learnedbtree (k);
SQL
$node->safe_psql('source', <<'SQL') if $have_citext;
CREATE EXTENSION citext;
CREATE TABLE c (x citext);
INSERT INTO c SELECT 'Word' || g FROM generate_series(1, 500) g;
CREATE INDEX c_x ON c USING learnedbtree (x);
CREATE INDEX c_y ON c USING learnedbtree (x citext_pattern_ops);
SQL

my $definitions = q{SELECT c.relname, pg_get_indexdef(c.oid), c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE a.amname = 'learnedbtree' ORDER BY 1};
my $answers = 'SET enable_seqscan = off; SELECT (SELECT count(*) FROM t WHERE k = 77), (SELECT sum(k) FROM t WHERE k BETWEEN 10 AND 900), '
  . "(SELECT count(*) FROM t WHERE x LIKE 'row 12%'), (SELECT sum(v) FROM p WHERE k BETWEEN 990 AND 1010), (SELECT sum(a) FROM m WHERE k < 500)";
my $wanted = $node->safe_psql('source', $definitions);
my $right = $node->safe_psql('source', $answers =~ s/SET enable_seqscan = off;/SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;/r);
my $folder = PostgreSQL::Test::Utils::tempdir();

foreach my $format (dump_and_restore($node, 'source', $folder))
{
	is($node->safe_psql("restored_$format", $definitions), $wanted, "$format: the indexes are the same");
	is($node->safe_psql("restored_$format", $answers), $right, "$format: and their answers are right");
	is($node->safe_psql("restored_$format", "SELECT state FROM learnedbtree_model('t_k')"), 'ready', "$format: with a model");
	is($node->safe_psql("restored_$format", "SET enable_seqscan = off; SELECT count(*) FROM c WHERE x = 'wORD17'"), '1',
		"$format: an index on another extension's type") if $have_citext;
}

unlike(slurp_file("$folder/plain"), qr/OPERATOR (CLASS|FAMILY)/, 'alias operator classes are no part of the dump');
like(slurp_file("$folder/plain"), qr/USING learnedbtree \(x text_pattern_ops\)/, 'a named operator class is');

# Dumping what was restored gives the same again.
$node->command_ok([ 'pg_dump', '--format=plain', "--file=$folder/again", 'restored_custom' ], 'dump of the restored database');
my ($first, $second) = map { join('', grep { !/^\\(un)?restrict|^--/ } split(/^/, slurp_file("$folder/$_"))) } qw(plain again);
ok($first eq $second, 'it equals the first dump');

# ---- a role that made operator classes, and went ----

# In each of three databases of their own: pg_dump reads all operator classes and their owners.
my $citext = $have_citext ? 'CREATE EXTENSION citext; CREATE TABLE c (x citext); CREATE INDEX ON c USING learnedbtree (x);' : '';
my $made = "SELECT count(*) FROM pg_opclass WHERE oid >= 16384 AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'learnedbtree')"
  . " AND opcname ~ '^(backwards|citext_.*)\$'";
foreach my $way ('REASSIGN OWNED BY maker TO postgres', 'REASSIGN OWNED BY maker TO heir; DROP OWNED BY heir CASCADE', 'DROP OWNED BY maker CASCADE')
{
	my ($database) = map { lc =~ s/\W+/_/gr } $way;
	my $kept = $way =~ /DROP/ ? 0 : $have_citext ? 3 : 1;
	$node->safe_psql('postgres', "CREATE DATABASE $database; CREATE ROLE heir; CREATE ROLE maker SUPERUSER");
	$node->safe_psql($database, <<"SQL");
CREATE EXTENSION learnedbtree;
SET ROLE maker;
$citext
CREATE SCHEMA s;
CREATE OPERATOR CLASS s.backwards FOR TYPE int4 USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
	FUNCTION 1 pg_catalog.btint4cmp(int4, int4);
CREATE TABLE s.t (a int4);
CREATE INDEX t_a ON s.t USING learnedbtree (a backwards);
RESET ROLE;
SQL
	is($node->safe_psql($database, $made), $have_citext ? 3 : 1, "$way: there are aliases");
	$node->safe_psql($database, $way);
	is($node->safe_psql($database, $made), $kept, 'which stay or go with their originals');
	$node->command_ok([ 'pg_dump', '--schema-only', "--file=$folder/$database.early", $database ], 'pg_dump after it');
	$node->safe_psql('postgres', 'DROP ROLE maker; DROP ROLE heir');
	$node->command_ok([ 'pg_dump', '--schema-only', "--file=$folder/$database", $database ], 'and after DROP ROLE');
	is($node->safe_psql($database, 'SELECT count(*) FROM pg_opclass LEFT JOIN pg_roles r ON r.oid = opcowner WHERE r.oid IS NULL'), '0',
		'no operator class belongs to nobody');
}
$node->command_ok([ 'pg_dumpall', '--schema-only', "--file=$folder/all" ], 'pg_dumpall, too');
$node->stop;
done_testing();
