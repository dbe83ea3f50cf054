# Models of texts whose sort keys the provider has to make: none in small indexes, as descents are cheaper there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('dear');
$node->init(extra => [ '--encoding', 'UTF8', '--locale', 'C' ]);
configure_node($node);
$node->append_conf('postgresql.conf', <<'CONF');
enable_seqscan = off
enable_bitmapscan = off
learnedbtree.autotrain = off
CONF
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub reason { return sql("SELECT reason FROM learnedbtree_model('$_[0]')"); }
sub trainings { return sql("SELECT trainings FROM learnedbtree_stat WHERE indexrelname = '$_[0]'"); }

plan skip_all => 'the server has no ICU' if sql("SELECT count(*) FROM pg_collation WHERE collname IN ('und-x-icu', 'en-x-icu')") < 2;

# A text for each number: of so many CJK characters, of plain letters, and a mixture of both.
sql(<<'SQL');
CREATE EXTENSION learnedbtree;
CREATE FUNCTION letters(n int, low int, number int, length int) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT string_agg(chr(low + ((hashint8extended(n, i) & 1048575) % number)::int), '') FROM generate_series(1, length) i $$;
CREATE FUNCTION cjk(n int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT letters(n, 19968, 2000, 12) $$;
CREATE FUNCTION english(n int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT letters(n, 97, 26, 12) $$;
SQL

# All of the table's rows looked up in one session, by the index and by another order of the same texts.
sub answers_right
{
	my ($table, $what) = @_;
	is(sql(<<"SQL"), 't|t', "$what: answers");
LOAD 'learnedbtree';
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
SELECT count(*) = (SELECT count(*) FROM $table), bool_and(a.n = b.n)
  FROM (SELECT n, k FROM $table ORDER BY n OFFSET 0) a JOIN $table b ON b.k = a.k;
SQL
	return;
}

sub make
{
	my ($table, $collation, $key, $with) = @_;
	sql(<<"SQL");
CREATE TABLE $table (n int, k text COLLATE "$collation");
INSERT INTO $table SELECT n, $key FROM generate_series(1, 10000) n;
CREATE INDEX ${table}_k ON $table USING learnedbtree (k) WITH ($with);
VACUUM ANALYZE $table;
SQL
	return;
}

my $dear = qr/^many of its texts have characters whose sort keys the collation's provider has to make/;

foreach my $collation (qw(und-x-icu en-x-icu))
{
	my $table = 'cjk_' . substr($collation, 0, 2);
	my $index = "${table}_k";

	make($table, $collation, 'cjk(n)', 'fillfactor = 90');
	is(model_state($node, $index), 'not paying', "$collation: CJK text in a small index has no model");
	like(reason($index), $dear, 'with the reason');
	answers_right($table, $collation);
	answers_right($table, "$collation, again");
	is(trainings($index), '1', 'and lookups do not train it again');
	is(sql("SELECT lookups FROM learnedbtree_stat WHERE indexrelname = '$index'"), '0', 'nor look anything up');
	is(sql("SELECT saved_model FROM learnedbtree_check('$index')"), 'none', 'nothing is saved');

	make("plain_$table", $collation, 'english(n)', 'fillfactor = 90');
	is(model_state($node, "plain_$index"), 'ready', "$collation: plain text has a model");
	answers_right("plain_$table", "$collation, plain");
}

my ($like, $warning) = ('WARNING:  index "cjk_un_k" has no model: many of its texts', '');
$node->psql('postgres', "SELECT learnedbtree_train('cjk_un_k')", stderr => \$warning);
like($warning, qr/\Q$like/, 'a training by hand says so');

# The decision is of all trainings: after a restart, too.
$node->restart;
answers_right('cjk_un', 'after a restart');
is(model_state($node, 'cjk_un_k'), 'not paying', 'there is none either');
like(reason('cjk_un_k'), $dear, 'with the reason');

# ... of a served btree index
sql(<<'SQL');
CREATE INDEX cjk_un_btree ON cjk_un (k);
DROP INDEX cjk_un_k;
ALTER SYSTEM SET learnedbtree.btree_indexes = 'all';
SELECT pg_reload_conf();
SQL
wait_until($node, "SELECT current_setting('learnedbtree.btree_indexes') = 'all'");
answers_right('cjk_un', 'a served btree index');
is(sql("SELECT served, model FROM learnedbtree_indexes WHERE indexname = 'cjk_un_btree'"), 't|not paying', 'is served without a model');
like(reason('cjk_un_btree'), $dear, 'with the reason');

# ... and of keys with other columns, by all their texts
sql('CREATE INDEX cjk_en_two ON cjk_en USING learnedbtree (n, k); CREATE INDEX cjk_en_plain ON cjk_en USING learnedbtree (n) INCLUDE (k)');
is(model_state($node, 'cjk_en_two'), 'ready', 'separators without texts tell nothing');
is(model_state($node, 'cjk_en_plain'), 'ready', 'nor do included columns');
sql('CREATE INDEX cjk_en_same ON cjk_en USING learnedbtree ((n / 1000), k)');
is(model_state($node, 'cjk_en_same'), 'not paying', 'a text in the second column is a part of the key');

# Some texts of many.
make('few', 'und-x-icu', 'CASE WHEN n % 10 = 0 THEN cjk(n) ELSE english(n) END', 'fillfactor = 90');
is(model_state($node, 'few_k'), 'ready', 'a few texts among many are no reason');

# It grows: by a few rows, by a quarter, and beyond what its texts ask for; and comes back.
make('grown', 'und-x-icu', 'cjk(n)', 'fillfactor = 90');
is(trainings('grown_k'), '1', 'trained when it is built');
sql('INSERT INTO grown SELECT n, cjk(n) FROM generate_series(10001, 10500) n');
is(trainings('grown_k'), '1', 'few more rows are no reason to train it again');
sql('INSERT INTO grown SELECT n, cjk(n) FROM generate_series(10501, 16000) n');
answers_right('grown', 'grown by half');
is(model_state($node, 'grown_k'), 'not paying', 'which is not enough');
cmp_ok(trainings('grown_k'), '>', 1, 'though it was trained again');
cmp_ok(trainings('grown_k'), '<', 5, 'a few times');
sql('ALTER INDEX grown_k SET (fillfactor = 10); REINDEX INDEX grown_k');
is(model_state($node, 'grown_k'), 'ready', 'with many leaves it has a model');
answers_right('grown', 'with many leaves');
is(sql("SELECT lookups > 0 AND verified > 0 FROM learnedbtree_stat WHERE indexrelname = 'grown_k'"), 't', 'which is used');
is(sql("SELECT saved_model FROM learnedbtree_check('grown_k')"), 'readable', 'and saved');
sql('DELETE FROM grown WHERE n > 10000; ALTER INDEX grown_k SET (fillfactor = 90); REINDEX INDEX grown_k');
is(model_state($node, 'grown_k'), 'not paying', 'small again, it has none');
answers_right('grown', 'small again');

# By inserts alone.
make('inserts', 'und-x-icu', 'cjk(n)', 'fillfactor = 90');
sql(<<'SQL');
ALTER TABLE inserts ADD pad text;
CREATE INDEX inserts_pad ON inserts USING learnedbtree (k) INCLUDE (pad);
DROP INDEX inserts_k;
SQL
is(model_state($node, 'inserts_pad'), 'not paying', 'no model before many inserts');
sql("INSERT INTO inserts SELECT n, cjk(n), repeat(md5(n::text), 15) FROM generate_series(10001, 25000) n");
answers_right('inserts', 'many inserts');
is(model_state($node, 'inserts_pad'), 'ready', 'many inserts bring a model');

$node->stop;
done_testing();
