# Blocks that are asked for ahead are those that are read: cold, each query with nested loops or writes that look ahead reads and
# asks for no more blocks than with plain btree indexes, counting what was asked for and not used.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('blocks_used');
$node->init;
configure_loops($node);
$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 64MB
effective_io_concurrency = 64
learnedbtree.autotrain = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION learnedbtree;
CREATE TABLE series AS SELECT i AS id, timestamp '2026-01-01' + (i % 40) * interval '1 hour' AS since FROM generate_series(1, 200) i;
CREATE TABLE reading AS SELECT s AS id, timestamp '2026-01-01' + m * interval '2 minutes' AS at, m % 97 AS val, repeat('r', 60) AS pad
  FROM generate_series(1, 200) s, generate_series(1, 1500) m ORDER BY m, s;
CREATE INDEX reading_i ON reading (id, at);
-- two of five end before the next reading
CREATE TABLE span AS SELECT id, lo, lo + (CASE WHEN i % 5 < 3 THEN 2 ELSE 1 END) * interval '1 minute' AS hi
  FROM (SELECT i, 1 + i % 200 AS id, timestamp '2026-01-01 00:00:30' + (i * 7 % 1400) * interval '2 minutes' AS lo FROM generate_series(1, 1500) i) q;
CREATE TABLE item (id uuid NOT NULL, v int, pad text);
INSERT INTO item SELECT md5(i::text)::uuid, i, repeat('x', 80) FROM generate_series(1, 150000) i;
ALTER TABLE item ADD CONSTRAINT item_i UNIQUE (id);
CREATE TABLE absent AS SELECT md5((-i)::text)::uuid AS id FROM generate_series(1, 2000) i;
CREATE TABLE mixed AS SELECT md5((i * 75 * (CASE WHEN i % 3 = 0 THEN 1 ELSE -1 END))::text)::uuid AS id FROM generate_series(1, 2000) i;
CREATE TABLE moved (id int, v int, pad text);
INSERT INTO moved SELECT i, 0, repeat('m', 200) FROM generate_series(1, 60000) i ORDER BY hashint4(i);
CREATE INDEX moved_i ON moved (id);
UPDATE moved SET v = id;
CREATE TABLE few AS SELECT i * 30 AS id FROM generate_series(1, 2000) i ORDER BY hashint4(i);
CREATE TABLE late (id uuid);
INSERT INTO late SELECT NULL FROM generate_series(1, 5000);
INSERT INTO late SELECT md5((i * 75)::text)::uuid FROM generate_series(1, 2000) i ORDER BY hashint4(i);
VACUUM (FREEZE, ANALYZE) series, span, reading, item, absent, mixed, few, late;
ANALYZE moved;
-- Mark the entries of old rows.
SELECT sum(m.v) FROM generate_series(1, 60000) i JOIN moved m ON m.id = i;
SQL

# Run it cold; returns the answer (how many rows; and what a table that it changes holds then), how many blocks it has read, and
# how many others it has asked for.
sub cold
{
	my ($indexes, $query) = @_;
	$node->safe_psql('postgres', 'VACUUM (FULL, FREEZE, ANALYZE) item') if $query =~ /INSERT/;    # else it finds room on other pages
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train(i) FROM unnest('{reading_i,item_i,moved_i}'::regclass[]) i; SELECT learnedbtree_stat_reset()");
	my ($changed) = $query =~ /(?:INSERT|MERGE) INTO (\w+)/;
	my $then = $changed ? "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;\n"
	  . "SELECT 'then', count(*), sum(hashtext(t::text)) FROM $changed t;" : '';
	my $out = $node->safe_psql('postgres', <<"SQL");
SET learnedbtree.btree_indexes = '$indexes';
CREATE FUNCTION pg_temp.run() RETURNS TABLE (answer text, blocks bigint) LANGUAGE plpgsql AS \$\$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || \$q\$$query\$q\$ INTO plan;
    RETURN QUERY SELECT plan->0->'Plan'->>'Actual Rows', (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
END \$\$;
BEGIN;
SELECT answer, blocks FROM pg_temp.run();
$then
ROLLBACK;
SELECT 'ahead', sum(prefetched + rows_prefetched), sum(prefetched_used + rows_prefetched_used)
  FROM unnest('{reading_i,item_i,moved_i}'::regclass[]) i, learnedbtree_stat_get(i);
SQL
	my ($answer, $blocks) = $out =~ /^([\d.]+)\|(\d+)$/m or die "no plan: $out";
	my ($asked, $used) = $out =~ /^ahead\|(\d+)\|(\d+)$/m or die "no counts: $out";
	$answer .= " $1" if $out =~ /^(then\|.*)$/m;
	die "it has left no answer: $out" if $changed && $answer !~ /then\|\d+\|-?\d+$/;
	return ($answer, $blocks, $asked, $asked - $used);
}

sub compare
{
	my ($name, $query, $asks, $more) = @_;
	my ($right, $plain) = cold('none', $query);
	my ($answer, $blocks, $asked, $wasted) = cold('all', $query);
	is($answer, $right, "$name: the answer");
	my $all = $blocks + $wasted;
	cmp_ok($all, '<=', 1.02 * $plain + ($more // 2), "$name: no more blocks are read ($blocks read, $asked asked for, $wasted of them not used; btree $plain)");
	cmp_ok($asked, '>=', $asks * $plain, "$name: and most are asked for ahead");
	return;
}

# The newest row before a time: the scan begins inside the group.
my $newest = 'SELECT r.val FROM series s, LATERAL (SELECT at, val FROM reading WHERE id = s.id AND at %s ORDER BY at %s LIMIT 1) r';
compare('before a time', sprintf($newest, "< timestamp '2026-01-02 00:30'", 'DESC'), 0.5);
compare('up to a time', sprintf($newest, "<= timestamp '2026-01-02 00:30'", 'DESC'), 0.5);
compare('after a time', sprintf($newest, "> timestamp '2026-01-02 00:30'", 'ASC'), 0.5);
compare("after an outer row's time", sprintf($newest, '>= s.since', 'ASC'), 0.5);
compare('newest of all', 'SELECT r.val FROM series s, LATERAL (SELECT at, val FROM reading WHERE id = s.id ORDER BY at DESC LIMIT 1) r', 0.5);
compare('ranges', "SELECT r.val FROM series s JOIN reading r ON r.id = s.id AND r.at >= s.since AND r.at < s.since + interval '20 minutes'", 0.3);
# The first entry after where the scan begins may be after where it ends.
my $span = 'SELECT r.val FROM span s, LATERAL (SELECT at, val FROM reading WHERE id = s.id AND %s ORDER BY at %s LIMIT 1) r';
compare('from ... to', sprintf($span, 'at > s.lo AND at < s.hi', 'ASC'), 0.5);
compare('from ... up to, backward', sprintf($span, 'at >= s.lo AND at <= s.hi', 'DESC'), 0.5);
compare('before the first', sprintf($span, "at <= timestamp '2026-01-01 00:01'", 'ASC'), 0);
compare('from ... on, backward', sprintf($span, "at >= timestamp '2026-01-03 01:59'", 'DESC'), 0);
# Keys that are not there: no row of the table is theirs.
compare('absent keys, anti join', 'SELECT FROM absent a WHERE NOT EXISTS (SELECT FROM item WHERE item.id = a.id AND item.v > 0)', 0.5);
compare('absent keys, left join', 'SELECT item.v FROM absent a LEFT JOIN item ON item.id = a.id', 0.5);
compare('some keys, left join', 'SELECT item.v FROM mixed m LEFT JOIN item ON item.id = m.id', 0.5);
compare('new keys, DO NOTHING', "INSERT INTO item SELECT id, 1, repeat('n', 200) FROM absent ON CONFLICT DO NOTHING", 0.5);
compare('some keys, DO NOTHING', "INSERT INTO item SELECT id, 1, repeat('n', 200) FROM mixed ON CONFLICT DO NOTHING", 0.5);
compare('some keys, DO UPDATE', "INSERT INTO item SELECT id, 1, repeat('n', 200) FROM mixed ON CONFLICT (id) DO UPDATE SET v = 0", 0.5);
compare('some keys, MERGE', "MERGE INTO item USING mixed m ON m.id = item.id WHEN NOT MATCHED THEN INSERT VALUES (m.id, 1, repeat('n', 200))", 0.5);
# The entries of old rows come first, and are passed by.
compare('marked entries', 'SELECT m.v FROM few JOIN moved m ON m.id = few.id', 0.5);
# What is asked for and never used is soon left alone, after a few batches of 64: here LIMIT keeps the inner side from being read.
compare('a lookup that does not come', 'SELECT s.v FROM mixed m LEFT JOIN LATERAL (SELECT v FROM item WHERE item.id = m.id LIMIT (length(m.id::text) < 5)::int) s ON true', 0, 300);

# Checks of foreign keys, between which a trigger looks into the same index by bitmaps, cold: no lookup of its own is taken for
# a check, and no stream is told of a table that it has not.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE child (id uuid CONSTRAINT child_item REFERENCES item (id), n int);
CREATE FUNCTION looks() RETURNS trigger LANGUAGE plpgsql SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = on AS $$
BEGIN
    ASSERT (SELECT count(v) FROM item WHERE id = NEW.id) = 1;
    RETURN NULL;
END $$;
CREATE TRIGGER looks AFTER INSERT ON child FOR EACH ROW EXECUTE FUNCTION looks();
SQL
my $children = "INSERT INTO child SELECT id, v FROM item WHERE v % 300 = 7";
foreach my $indexes ('none', 'all')
{
	my ($answer, $blocks) = cold($indexes, $children);
	cmp_ok($blocks, '>', 100, "checks among bitmap scans, $indexes: blocks were read");
}
# Rows without a key have no checks: those behind many of them are looked ahead for.
$node->safe_psql('postgres', 'DROP TRIGGER looks ON child');
my (undef, undef, $asked, $wasted) = cold('all', 'INSERT INTO child SELECT id, 1 FROM late');
cmp_ok($asked, '>=', 1500, "checks behind NULLs: $asked blocks are asked for");
cmp_ok($wasted, '<=', 50, "... $wasted of them not used");
is($node->safe_psql('postgres', "$children; SELECT count(*), sum(n) FROM child"), $node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM item WHERE v % 300 = 7'), '... and all rows came');
$node->stop;
done_testing();
