# Loose index scans give the answers that plans without them give: random tables, indexes and questions from a fixed seed
# (LBT_SEED), each asked with learnedbtree.enable_loose_scan on and off in one snapshot; statistics are often of few values
# where there are many, or the reverse, so that scans switch over; rows are dead, in progress, or new in the transaction
# itself.  Then: how many pages are read, and which are asked for ahead; rights; rechecks of changed rows; readers among
# writers, and on a standby until it takes over; serializable transactions.
# LBT_LOOSE_ROUNDS and LBT_LOOSE_SECONDS make it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Draw;
use IO::Socket::UNIX;
use LearnedBtree;
use Loose;
use Oracle;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;
use Torture;

my $seed = $ENV{LBT_SEED} || 20261125;
my $rounds = $ENV{LBT_LOOSE_ROUNDS} || 2;
my $seconds = $ENV{LBT_LOOSE_SECONDS} || 3;
my $tables = 8;
my $questions = 30;    # of each table
my $node_name = 'Learned Loose Scan';
my $setting = 'learnedbtree.enable_loose_scan';

my $node = PostgreSQL::Test::Cluster->new('loose');
$node->init(allows_streaming => 1, extra => [ '--encoding=UTF8', '--locale=C' ]);
configure_serving($node);
$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 64MB
learnedbtree.btree_indexes = 'all'
learnedbtree.autotrain = off
learnedbtree.naptime = 1h
max_parallel_workers = 4
lock_timeout = 60s
statement_timeout = 120s
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
$node->psql('postgres', 'CREATE EXTENSION pg_buffercache');
my %collations = collations($node);
$node->safe_psql('postgres', loose_types($collations{icu_nocase}) . <<'SQL');
CREATE SEQUENCE ids;
-- Not all indexes can have models.
CREATE FUNCTION train(index regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM learnedbtree_train(index);
EXCEPTION WHEN OTHERS THEN
	NULL;
END $$;
CREATE TABLE few (k int PRIMARY KEY);
INSERT INTO few SELECT g FROM generate_series(0, 19) g;
SQL

# ---- the same answers ----

my %seen;

# What psql is told for a question: begin, ask with and without loose scans, and look at the plan.
sub script_of
{
	my ($number, $question) = @_;
	my $sql = "RESET ALL;\n$question->{settings}BEGIN ISOLATION LEVEL REPEATABLE READ;\n$question->{begin}";
	foreach my $way (qw(on off))
	{
		my $ask = $way eq 'off' && $question->{mode} eq 'subset' ? "$question->{of};\n" : $question->{ask}->("${number}_$way");
		$sql .= "SET LOCAL $setting = $way;\n" . ($way eq 'off' ? $question->{without} : '') . "\\echo ---- $number $way\n$ask";
		$sql .= "\\echo ---- $number plan\nEXPLAIN (ANALYZE, VERBOSE, COSTS off, TIMING off, SUMMARY off) " . $question->{explain}->("${number}_$way") . ";\n"
		  if $way eq 'on' && $question->{explain};
	}
	$sql .= $question->{held} ? "COMMIT;\n" : "ROLLBACK;\n";
	$sql .= join('', map { "\\echo ---- $number $_\n" . $question->{held}->("${number}_$_") } qw(on off)) if $question->{held};
	return $sql;
}

# What is wrong with an answer; '' if nothing.
sub compare
{
	my ($question, $found, $expected) = @_;
	my @found = normal_rows($question->{kinds}, $found);
	my @expected = normal_rows($question->{kinds}, $expected);
	if ($question->{mode} eq 'subset')
	{
		my ($limit, $offset) = ($question->{sql} =~ /LIMIT (\d+)/, $question->{sql} =~ /OFFSET (\d+)/ ? $1 : 0);
		my $rows = @expected - $offset;
		$rows = $rows < 0 ? 0 : $rows > $limit ? $limit : $rows;
		return scalar(@found) . " rows instead of $rows" if @found != $rows;
		my %left;
		$left{$_}++ foreach @expected;
		foreach (@found) { return "no such row: $_" if --$left{$_} < 0 }
		return '';
	}
	if ($question->{mode} eq 'multiset') { @$_ = sort @$_ foreach \@found, \@expected }
	return join("\n", @found) eq join("\n", @expected) ? '' : 'another answer';
}

sub note_plan
{
	my ($shape, $plan) = @_;
	$seen{explained}++;
	return unless $plan =~ /\Q$node_name\E/;
	$seen{loose}++;
	$seen{"loose: $shape"}++;
	$seen{'switched over'}++ if $plan =~ /Switched Over: (?!false|0)/;
	$seen{rescanned}++ if $plan =~ /\Q$node_name\E.*loops=([2-9]|\d\d)/;
	$seen{'index-only'}++ if $plan =~ /\Q$node_name\E(?:.*\n){1,6}? +->  Index Only Scan/;
	$seen{backward}++ if $plan =~ /Backward/;
	return;
}

foreach my $round (1 .. $rounds)
{
	start_drawing($seed + 1000 * $round);
	my @tables = map { loose_table($_ % 4 == 3 ? 9000 : $_ % 4 ? 5000 : 1200) } 1 .. $tables;
	my $made = "SELECT setval('ids', 1), setseed(0.25);\n";
	foreach my $table (@tables)
	{
		$node->safe_psql('postgres', "SET client_min_messages = warning;\n$made$table->{sql}");
		$made = "SELECT setseed(0.25);\n";
	}
	my $busy = $node->background_psql('postgres');
	$busy->query_safe("SELECT setseed(0.5); BEGIN; " . join('', map { $_->{busy} } @tables));
	my @asked = map { my $table = $_; map { loose_question($table) } 1 .. $questions } @tables;
	my $script = "\\set VERBOSITY terse\n\\pset null NULL\nSELECT setseed(0.75);\n" . join('', map { script_of($_, $asked[$_]) } 0 .. $#asked);
	my ($rc, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0, timeout => 3 * patience());
	is($err, '', "round $round: all questions are such as the server takes");
	my %answer;
	my $at;
	foreach my $line (split /\n/, $out)
	{
		if ($line =~ /^---- (\d+ \w+)$/) { $at = $1; $answer{$at} //= ''; next }
		$answer{$at} .= "$line\n" if defined $at;
	}
	my $different = 0;
	foreach my $number (0 .. $#asked)
	{
		my $question = $asked[$number];
		my ($found, $expected) = map { $answer{"$number $_"} // 'no answer' } qw(on off);
		my $plan = $answer{"$number plan"} // '';
		note_plan($question->{shape}, $plan) if $question->{explain};
		$seen{rows}++ if $expected =~ /\n.*\n/;
		$seen{asked}++;
		# Of a prepared statement each answer by itself.
		my @found = split /^next\n/m, $found . "\n", -1;
		my @expected = split /^next\n/m, $expected . "\n", -1;
		my @why = @found == @expected ? grep { $_ } map { compare($question, $found[$_], $expected[$_]) } 0 .. $#found : ('not as many answers');
		next unless @why;
		$different++;
		next if $different > 3;
		diag("$question->{shape}: $why[0]\n$question->{table}{sql}-- in progress: $question->{table}{busy}\n\n" . script_of($number, $question)
			  . "\nwithout loose scans:\n" . substr($expected, 0, 2000) . "\nwith them:\n" . substr($found, 0, 2000) . "\nplan:\n$plan");
	}
	is($different, 0, "round $round: the same answers");
	$busy->query_safe('ROLLBACK');
	$busy->quit;
	$node->safe_psql('postgres', 'DROP TABLE ' . join(', ', map { $_->{name} } @tables));
}
note(join(', ', map { "$_: $seen{$_}" } sort keys %seen));
cmp_ok($seen{rows} // 0, '>', $seen{asked} / 2, 'most answers are of some rows');
cmp_ok($seen{loose} // 0, '>', $seen{explained} / 10, "$node_name: in many plans");
foreach my $what ('switched over', 'rescanned', 'index-only', 'backward', 'loose: distinct', 'loose: group', 'loose: distinct_on', 'loose: lateral',
	'loose: prepared', 'loose: cursor')
{
	cmp_ok($seen{$what} // 0, '>', 0, "$node_name: $what");
}

# ---- pages read ----

# Groups of 10,000 rows.  In table gone only the first ten of each are left, in table single only the first; a snapshot keeps
# the others from being forgotten.  Of table few_left statistics know what is left.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE long (v int, w int, t text COLLATE "C", p text);
INSERT INTO long SELECT g % 10, g, 'w' || g % 10, 'p' FROM generate_series(1, 100000) g;
CREATE INDEX long_v ON long (v, w) WITH (deduplicate_items = off);
CREATE INDEX long_t ON long (t) WITH (deduplicate_items = off);
CREATE TABLE gone AS SELECT v, w FROM long;
CREATE TABLE single AS SELECT v, w FROM long;
CREATE INDEX gone_v ON gone (v, w);
CREATE INDEX single_v ON single (v, w);
CREATE TABLE few_left AS SELECT w % 50 AS v, w, repeat('x', 100) AS p FROM long;
CREATE INDEX few_left_v ON few_left (v, w);
VACUUM ANALYZE long, gone, single, few_left;
SQL
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM few');
$node->safe_psql('postgres', 'DELETE FROM gone WHERE w > 100; DELETE FROM single WHERE w > 10; '
	  . 'DELETE FROM few_left WHERE w > 500; ANALYZE few_left');

# How many buffers a query uses, and whether it has our node.
sub buffers
{
	my ($query, $way) = @_;
	my $plan = $node->safe_psql('postgres', "SET $setting = $way;\nEXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) $query");
	my ($used) = $plan =~ /Buffers: shared (.*)/;
	my $sum = 0;
	$sum += $1 while ($used // '') =~ /(?:hit|read)=(\d+)/g;
	return ($sum, $plan =~ /\Q$node_name\E/ ? 1 : 0, $plan);
}

foreach my $case (
	[ 'DISTINCT of ten long groups', 'SELECT DISTINCT v FROM long', 60 ],
	[ 'of texts', 'SELECT DISTINCT t FROM long', 60 ],
	[ 'their ends', 'SELECT v, min(w), max(w) FROM long GROUP BY v', 120 ],
	[ 'the last row of each', 'SELECT DISTINCT ON (v) v, w, p FROM long ORDER BY v DESC, w DESC', 80 ],
	[ 'three of them', 'SELECT DISTINCT v FROM long LIMIT 3', 30 ],
	[ 'groups whose rows but ten are dead', 'SELECT DISTINCT v FROM gone', 150 ],
	[ 'their first rows', 'SELECT v, min(w) FROM gone GROUP BY v', 150 ],
	[ 'groups whose rows but one are dead', 'SELECT DISTINCT v FROM single', 150 ],
	# Of a few groups all rows are passed, to know their length: some 1,800 pages each.
	[ 'fifty such groups, and statistics know', 'SELECT DISTINCT v FROM few_left', 8000 ])
{
	my ($name, $query, $most) = @$case;
	my ($used, $loose, $plan) = buffers($query, 'on');
	ok($loose, "$name: a loose scan");
	cmp_ok($used, '<=', $most, "$name: few pages") or diag($plan);
	my ($more) = buffers($query, 'off');
	cmp_ok($more, '>', 3 * $most / 2, "$name: many without") unless $query =~ /LIMIT|few_left/;
}
$holder->query_safe('ROLLBACK');
$holder->quit;

# ---- leaves asked for ahead ----

# A hundred groups of some six leaves.  Named are the leaves in which groups end, one each: if those were not the ones where
# seeks land, it would be two for each seek, or two in all.  Where seeks go on to the right sibling, that is named, too.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE spread (v int, w int, t text COLLATE "C");
INSERT INTO spread SELECT g % 100, g, 'group ' || g % 100 FROM generate_series(1, 200000) g;
CREATE INDEX spread_v ON spread (v, w);
CREATE INDEX spread_t ON spread (t) WITH (deduplicate_items = off);
VACUUM ANALYZE spread;

-- By random inserts: leaves have been split between groups, so that the next one begins on the sibling.
CREATE TABLE apart (v int);
CREATE INDEX apart_v ON apart (v) WITH (deduplicate_items = off);
INSERT INTO apart SELECT (hashint4(g) & 65535) % 100 FROM generate_series(1, 200000) g;
VACUUM ANALYZE apart;
SQL
foreach my $case (
	[ 'cold', 'SELECT DISTINCT v FROM spread', 80, 120 ],
	[ 'cold, backward', 'SELECT DISTINCT v FROM spread ORDER BY v DESC', 80, 120 ],
	[ 'cold, texts', 'SELECT DISTINCT t FROM spread', 80, 120 ],
	[ 'cold, groups on leaves of their own', 'SELECT DISTINCT v FROM apart', 160, 210 ],
	[ 'cold, backward, groups on leaves of their own', 'SELECT DISTINCT v FROM apart ORDER BY v DESC', 80, 120 ],
	[ 'cold, with extremes', 'SELECT v, min(w), max(w) FROM spread GROUP BY v', 80, 120 ],
	[ 'cold, one group', 'SELECT DISTINCT v FROM spread LIMIT 1', 0, 0 ],
	[ 'cold, one group each time', 'SELECT (SELECT DISTINCT v FROM spread WHERE v >= k LIMIT 1) FROM few', 0, 0 ],
	[ 'cold, three groups', 'SELECT DISTINCT v FROM spread LIMIT 3', 1, 8 ],
	[ 'effective_io_concurrency = 0', 'SELECT DISTINCT v FROM spread', 0, 0 ],
	[ 'learnedbtree.enable_prefetch = off', 'SELECT DISTINCT v FROM spread', 0, 0 ],
	[ 'in memory', 'SELECT DISTINCT v FROM spread', 0, 0 ])
{
	my ($name, $query, $least, $most) = @$case;
	my $set = $name =~ /=/ ? "SET $name" : 'SET effective_io_concurrency = 16';
	my $warm = $name eq 'in memory' ? "$query; " : '';
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train(i::regclass) FROM unnest('{spread_v,spread_t,apart_v}'::text[]) i");
	my $out = $node->safe_psql('postgres', "SET effective_io_concurrency = 0; $warm$set; SELECT learnedbtree_stat_reset(); "
		  . "EXPLAIN (COSTS off) $query; $query; SELECT 'asked ' || sum(prefetched) FROM learnedbtree_stat WHERE relname IN ('spread', 'apart')");
	my ($asked) = $out =~ /^asked (\d+)$/m;
	like($out, qr/\Q$node_name\E/, "$name: a loose scan");
	ok(defined $asked && $least <= $asked && $asked <= $most, "$name: $least to $most leaves asked for")
	  or diag(defined $asked ? "$asked leaves" : $out);
}

# ---- leaves asked for ahead where filters are skipped by ----

# Of each of the same groups one entry, or those of two leaves: its leaf, and the one that the group ends in.
$node->safe_psql('postgres', 'CREATE INDEX spread_t_w ON spread (t, w); VACUUM spread');
foreach my $case (
	[ 'one leaf', 'w BETWEEN 100000 AND 100099', 'v, w', 150, 210 ],
	[ 'one leaf, backward', 'w BETWEEN 100000 AND 100099', 'v DESC, w DESC', 150, 210 ],
	[ 'one leaf, texts', 'w BETWEEN 100000 AND 100099', 't, w', 150, 210 ],
	[ 'up to groups\' ends', 'w > 140000', 'v, w', 200, 400 ],
	[ 'backward from groups\' ends', 'w > 140000', 'v DESC, w DESC', 200, 400 ],
	[ 'up to an end', 'v < 30 AND w BETWEEN 100000 AND 100099', 'v, w', 40, 63 ],
	[ 'backward up to an end', 'v >= 70 AND w BETWEEN 100000 AND 100099', 'v DESC, w DESC', 40, 63 ],
	[ 'one row', 'w BETWEEN 100000 AND 100099', 'v, w LIMIT 1', 0, 2 ],
	[ 'effective_io_concurrency = 0', 'w BETWEEN 100000 AND 100099', 'v, w', 0, 0 ],
	[ 'in memory', 'w BETWEEN 100000 AND 100099', 'v, w', 0, 0 ])
{
	my ($name, $where, $order, $least, $most) = @$case;
	my $set = $name =~ /=/ ? "SET $name" : 'SET effective_io_concurrency = 16';
	my $column = substr($order, 0, 1);
	my $query = "SELECT md5(string_agg(q::text, ',')) FROM (SELECT $column, w FROM spread WHERE $where ORDER BY $order) q";
	my $plain = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0';
	my $oracle = $node->safe_psql('postgres', "$plain; SET learnedbtree.enable = off; $query");
	my $warm = $name eq 'in memory' ? "$query; " : '';
	$node->restart;
	$node->safe_psql('postgres', "SELECT learnedbtree_train(i::regclass) FROM unnest('{spread_v,spread_t_w}'::text[]) i");
	my $out = $node->safe_psql('postgres', "$plain; SET effective_io_concurrency = 0; $warm$set; SELECT learnedbtree_stat_reset(); "
		  . "SELECT 'answer ' || ($query); SELECT 'asked ' || sum(prefetched), 'used ' || sum(prefetched_used) FROM learnedbtree_stat WHERE relname = 'spread'");
	my ($asked, $used) = $out =~ /^asked (\d+)\|used (\d+)$/m;
	like($out, qr/^answer $oracle$/m, "skipping, cold, $name: the answer");
	ok(defined $used && $least <= $asked && $asked <= $most, "skipping, cold, $name: $least to $most leaves asked for") or diag($out);
	cmp_ok($used, '>=', 0.9 * $asked - 2, "skipping, cold, $name: and used") or diag($out);
}

# ---- costs ----

# What a page costs is the tablespace's.
$node->safe_psql('postgres', q{SET allow_in_place_tablespaces = on; CREATE TABLESPACE slow LOCATION '' WITH (random_page_cost = 7)});
$node->safe_psql('postgres', 'CREATE TABLE slow_long TABLESPACE slow AS SELECT * FROM long; CREATE INDEX slow_long_v ON slow_long (v, w) TABLESPACE slow; '
	  . q{VACUUM ANALYZE slow_long; SELECT learnedbtree_train('slow_long_v')});
my %cost;
foreach my $global (1.1, 7)
{
	my $plan = $node->safe_psql('postgres', "SET random_page_cost = $global; SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0; EXPLAIN SELECT DISTINCT v FROM slow_long");
	($cost{$global}) = $plan =~ /Learned Loose Scan\)  \(cost=(\S+)/;
	ok(defined $cost{$global}, "random_page_cost = $global: a loose scan") or diag($plan);
}
is($cost{1.1}, $cost{7}, 'its cost is by the tablespace\'s');
$node->safe_psql('postgres', 'DROP TABLE slow_long; DROP TABLESPACE slow');

# ---- rights ----

# Rows that a user may not see have w from 90,000 on, which leaks() tells.
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE reader;
CREATE ROLE of_one_column;
CREATE TABLE guarded AS SELECT v, w, CASE WHEN w >= 90000 THEN 'other' ELSE 'reader' END AS owner FROM long;
CREATE INDEX guarded_v ON guarded (v, w, owner);
CREATE FUNCTION leaks(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS
	$$ BEGIN IF $1 >= 90000 THEN RAISE EXCEPTION 'leaked %', $1; END IF; RETURN true; END $$;
CREATE FUNCTION leaks_greater(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN leaks($1) AND $1 > $2; END $$;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM guarded WHERE owner = 'reader';
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON guarded USING (owner = current_user);
GRANT SELECT ON guarded, barrier TO reader;
GRANT SELECT (v, owner) ON guarded TO of_one_column;
VACUUM ANALYZE guarded;
SQL
foreach my $query ('SELECT DISTINCT v FROM guarded', 'SELECT DISTINCT v FROM guarded WHERE leaks(w)', 'SELECT v, max(w) FROM guarded WHERE leaks(v) GROUP BY v',
	'SELECT DISTINCT ON (v) v, w, owner FROM guarded WHERE leaks_greater(w, 5) ORDER BY v DESC, w DESC', 'SELECT DISTINCT v FROM barrier WHERE leaks(w)',
	'SELECT v, min(w), max(w) FROM barrier WHERE leaks(w) AND w > 5 GROUP BY v', 'SELECT count(DISTINCT v), max(v) FROM guarded WHERE leaks(w)')
{
	my ($found, $expected) = map { join("\n", sort split /\n/, $node->safe_psql('postgres', "SET ROLE reader;\nSET $setting = $_;\n$query")) } qw(on off);
	is($found, $expected, "$query: no row of another's");
	isnt($found, '', "$query: rows of its own");
}
foreach my $case ([ 'SELECT DISTINCT v FROM guarded', '' ], [ 'SELECT v, min(w) FROM guarded GROUP BY v', 'permission denied' ],
	[ 'SELECT DISTINCT v FROM guarded WHERE w > 5', 'permission denied' ], [ 'SELECT count(DISTINCT v) FROM guarded', '' ])
{
	my ($query, $refused) = @$case;
	my ($rc, $out, $err) = $node->psql('postgres', "SET ROLE of_one_column;\n$query");
	$refused ? like($err, qr/$refused/, "$query: refused without the column's right") : is($err, '', "$query: taken with the column's right");
}

# ---- portals of the protocol ----

# Rows of a named portal, some at a time, while others are updated WHERE CURRENT OF it, by a skip scan.
{
	my $session = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "no connection: $!";
	my $user = getpwuid($<);
	my $sent = sub { my ($type, $body) = @_; return $type . pack('N', length($body) + 4) . $body; };
	# Send this, and give back the rows' first columns and errors up to a message of this type.
	my $answer = sub {
		my ($message, $last) = @_;
		my ($type, @rows) = ('');
		print $session $message;
		$session->flush;
		while ($type ne $last)
		{
			read($session, my $head, 5) == 5 or die 'the session has ended';
			($type, my $length) = unpack('aN', $head);
			my $body = '';
			read($session, $body, $length - 4) if $length > 4;
			push @rows, unpack('x2 N/a', $body) if $type eq 'D';
			push @rows, $body =~ s/\0/ /gr if $type eq 'E';
			last if $type eq 'E' && $last ne 'Z';
		}
		return "@rows";
	};
	my $query = sub { return $answer->($sent->('Q', "$_[0]\0"), 'Z'); };
	$answer->($sent->('', pack('N', 3 << 16) . "user\0$user\0database\0postgres\0\0"), 'Z');
	$query->('SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0');
	foreach my $columns ('w, v, t', 'w, v')
	{
		my $select = "SELECT $columns FROM long WHERE w BETWEEN 5000 AND 5030";
		$query->('BEGIN');
		like($query->("EXPLAIN $select"), qr/Index (Only )?Scan.*Index Cond/s, "$columns: a skip scan") if $node->pg_version < 18;
		$answer->($sent->('P', "\0$select\0" . pack('n', 0)) . $sent->('B', "portal\0\0" . pack('nnn', 0, 0, 0)) . $sent->('H', ''), '2');
		my (@found, @updated);
		foreach my $count (1, 7, 1, 12)
		{
			push @found, (split / /, $answer->($sent->('E', "portal\0" . pack('N', $count)) . $sent->('H', ''), 's'))[-1];
			push @updated, $query->('UPDATE long SET p = p WHERE CURRENT OF portal RETURNING w');
		}
		is("@updated", "@found", "$columns: the row that the portal has returned last is updated");
		like($query->('FETCH BACKWARD 1 FROM portal'), qr/can only scan forward/, "$columns: it goes forward only");
		$query->('ROLLBACK');
	}
	close $session;
}

# ---- errors in the middle ----

my ($rc, $out, $err) = $node->psql('postgres', <<'SQL', on_error_stop => 0);
SELECT v, 1 / (v - 5) FROM (SELECT DISTINCT v FROM long) q;
SELECT DISTINCT v FROM long WHERE 1 / (w - 4) < 5;
SQL
like($err, qr/division by zero.*division by zero/s, 'errors above and below a loose scan');
nothing_pinned($node);

# A scan that has switched over needs the pages that the other plan is at, and not the one where it switched over, which
# rescans keep pinned from 19 on.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE many (a int, b int, p text);
INSERT INTO many SELECT g, g, repeat('x', 200) FROM generate_series(1, 40000) g;
CREATE INDEX many_a ON many (a, b);
ALTER TABLE many ALTER a SET (n_distinct = 5);
ANALYZE many;
SQL
SKIP:
{
	skip 'rescans keep their page pinned', 1 if $node->pg_version->major >= 19;
	skip 'no pg_buffercache for this server', 1 unless $node->safe_psql('postgres', q{SELECT count(*) FROM pg_extension WHERE extname = 'pg_buffercache'});
	my $cursor = $node->background_psql('postgres');
	$cursor->query_safe('SET enable_hashagg = off; SET enable_sort = off; BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT DISTINCT ON (a) a, p FROM many ORDER BY a, b; MOVE 30000 FROM c');
	# (Who writes pages out pins them for a moment.)
	ok(eventually($node, <<'SQL'), 'after a switch-over the probe has no page pinned');
SELECT bool_and(relblocknumber > pg_relation_size('many') / current_setting('block_size')::int / 2) FROM pg_buffercache
 WHERE relfilenode = pg_relation_filenode('many') AND relforknumber = 0 AND pinning_backends > 0;
SQL
	$cursor->query_safe('COMMIT');
	$cursor->quit;
}

# ---- rechecks of rows that have changed ----

$node->safe_psql('postgres', 'CREATE TABLE counter (k int PRIMARY KEY, n int); INSERT INTO counter SELECT g, 0 FROM generate_series(0, 3) g');
my $changes = 'UPDATE counter SET n = n + (SELECT count(*) FROM (SELECT DISTINCT v FROM long WHERE v >= counter.k) q) + s.v '
  . 'FROM (SELECT DISTINCT v FROM long OFFSET 0) s WHERE s.v = counter.k';
like($node->safe_psql('postgres', "EXPLAIN $changes"), qr/\Q$node_name\E/, 'an update with loose scans');
my ($first, $second) = map { $node->background_psql('postgres') } 1 .. 2;
$first->query_safe('BEGIN; UPDATE counter SET n = 100');
$second->query_until(qr/asked/, "\\echo asked\n$changes;\n\\echo done\n");
wait_until($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE counter%'");
$first->query_safe('COMMIT');
$second->query_until(qr/done/, '');
is($node->safe_psql('postgres', "SELECT string_agg(n::text, ' ' ORDER BY k) FROM counter"), '110 110 110 110', 'rechecked rows see all groups');
$_->quit foreach $first, $second;

# ---- readers among writers ----

$node->safe_psql('postgres', <<"SQL");
CREATE TABLE live (v int, w int, t text COLLATE "C");
INSERT INTO live SELECT g % 13 * 10, g % 100, 'w' || g % 7 FROM generate_series(1, 20000) g;
CREATE INDEX live_v ON live (v, w);
CREATE INDEX live_t ON live (t DESC, v);
VACUUM ANALYZE live;
CREATE FUNCTION answer(query text, loose text) RETURNS text LANGUAGE plpgsql STABLE AS \$\$
DECLARE
	result text;
BEGIN
	PERFORM set_config(s, loose, true) FROM unnest('{$setting,enable_indexscan,enable_indexonlyscan,enable_bitmapscan}'::text[]) s;
	EXECUTE 'SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (' || query || ') q' INTO result;
	RETURN result;
END \$\$;
-- A STABLE function's queries all see what its caller does.
CREATE FUNCTION compare(query text) RETURNS void LANGUAGE plpgsql STABLE AS \$\$
DECLARE
	found text := answer(query, 'on');
	expected text := answer(query, 'off');
BEGIN
	IF found IS DISTINCT FROM expected THEN
		RAISE EXCEPTION 'wrong answer' USING DETAIL = concat_ws('; ', query, 'expected: ' || expected, 'found: ' || found);
	END IF;
END \$\$;
SQL
my @live = ('SELECT DISTINCT v FROM live', 'SELECT DISTINCT t FROM live', 'SELECT v, min(w), max(w) FROM live GROUP BY v', 'SELECT DISTINCT t, v FROM live',
	'SELECT DISTINCT ON (v) v, w FROM live ORDER BY v DESC, w DESC', 'SELECT t, max(v) FROM live WHERE v > 30 GROUP BY t', 'SELECT DISTINCT v FROM live WHERE w < 20',
	'SELECT v, t FROM live WHERE w = 7', 'SELECT count(DISTINCT v), max(v), array_agg(DISTINCT v) FROM live', 'SELECT count(DISTINCT t), min(t) FROM live WHERE v > 30');
my $loose = grep { $node->safe_psql('postgres', "EXPLAIN $_") =~ /\Q$node_name\E/ } @live;
cmp_ok($loose, '>=', @live / 2, 'loose scans among writers');
my %scripts = (
	'insert@6' => "\\set v random_exponential(1, 400, 4)\nINSERT INTO live SELECT :v, g, 'w' || :v % 9 FROM generate_series(1, 20) g;",
	'delete@4' => "\\set v random(1, 400)\nDELETE FROM live WHERE v BETWEEN :v AND :v + 3 AND w > random() * 50;",
	'group@2' => "\\set v random(0, 12)\nDELETE FROM live WHERE v = :v * 10;",
	'rolled@1' => "\\set v random(1, 400)\nBEGIN;\nINSERT INTO live SELECT :v, g, 'x' || :v FROM generate_series(1, 50) g;\nROLLBACK;",
	'move@2' => "\\set v random(1, 400)\nUPDATE live SET v = v + 1, w = w - 1 WHERE v = :v;",
	'vacuum@1' => 'VACUUM live;',
	'analyze@1' => 'ANALYZE live;');
$scripts{"read$_\@4"} = "SELECT compare('$live[$_]');\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT count(*) FROM few;\nSELECT compare('$live[$_]');\nCOMMIT;"
  foreach 0 .. $#live;
$node->pgbench("--no-vacuum --client=5 --time=$seconds --random-seed=$seed", 0, [qr/number of transactions actually processed: [1-9]\d+/],
	[qr/^(?!.*wrong answer)/s], 'readers among writers', \%scripts);

# ---- readers on a standby ----

# With feedback its answers keep the primary from vacuuming.  Without, vacuuming ends its answers, or their connections; with
# it, truncating the table may.
my @writes = map { [ split(/\@/, $_), $scripts{$_} ] } grep { !/^read/ } sort keys %scripts;
my @reads = map { [ "read$_", 1, "SELECT compare('$live[$_]');" ] } 0 .. $#live;
my $some = int(($seconds + 1) / 2);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('loose_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 50ms');
$standby->start;
foreach my $feedback (qw(off on))
{
	$standby->append_conf('postgresql.conf', "hot_standby_feedback = $feedback");
	$standby->reload;
	my $writers = start_load($node, clients => 2, seconds => $some, seed => $seed, scripts => \@writes);
	my ($out, $err) = ('', '');

	# A conflict may end a connection that is being made, and pgbench with it.
	for (my $try = 0; $try < 50 && $out !~ /actually processed: [1-9]/; $try++)
	{
		my $readers = start_load($standby, clients => 4, seconds => $some, seed => $seed,
			scripts => [ @reads, [ 'train', 1, "SELECT learnedbtree_train('live_v');" ] ]);
		end_load($readers);
		$out = $readers->{out};
		$err .= $readers->{err};
	}
	like($out, qr/actually processed: [1-9]/, "readers on a standby, feedback $feedback");
	unlike($err, qr/(ERROR|FATAL|PANIC)(?!.*conflict with recovery)/, '... no errors except conflicts');
	ok(end_load($writers), "the primary's writers, feedback $feedback");
}
note('conflicts: ', $standby->safe_psql('postgres', "SELECT to_json(c) FROM pg_stat_database_conflicts c WHERE datname = 'postgres'"));
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my $all_live = join(";\n", map { "SELECT answer('$_', 'on')" } @live);
is($standby->safe_psql('postgres', $all_live), $node->safe_psql('postgres', $all_live =~ s/'on'\)/'off')/gr), "the standby's answers are those of the primary's table");
$standby->promote;
wait_until($standby, 'SELECT NOT pg_is_in_recovery()');
$standby->pgbench("--no-vacuum --client=3 --transactions=20 --random-seed=$seed", 0, [qr/number of transactions actually processed: [1-9]\d+/],
	[qr/^(?!.*wrong answer)/s], 'readers among writers where it has taken over', \%scripts);
nothing_pinned($standby);
is(amcheck_all($standby, 'postgres'), '', 'and the indexes are sound there');
$standby->stop;

# Two conditions: of the many leaves of the first one's value, only the second one's.
$node->safe_psql('postgres', 'CREATE TABLE paired AS SELECT g % 50 AS v, g / 50 % 10 AS w, g / 500 AS x FROM generate_series(0, 249999) g; '
	  . 'CREATE INDEX paired_i ON paired (v, w, x) WITH (fillfactor = 10); VACUUM ANALYZE paired');
foreach my $bitmap ('off', 'on')
{
	my $other = $bitmap eq 'on' ? 'off' : 'on';
	$node->restart;
	my $out = $node->safe_psql('postgres', "SELECT learnedbtree_train('paired_i'); SELECT learnedbtree_stat_reset(); SET effective_io_concurrency = 100; SET enable_seqscan = off; "
		  . "SET enable_bitmapscan = $bitmap; SET enable_indexscan = $other; SET enable_indexonlyscan = $other; SET max_parallel_workers_per_gather = 0; "
		  . "SELECT 'answer ' || count(*) FROM paired WHERE w = 3 AND x = 250; SELECT 'asked ' || prefetched, 'used ' || prefetched_used FROM learnedbtree_stat WHERE indexrelname = 'paired_i'");
	my ($asked, $used) = $out =~ /^asked (\d+)\|used (\d+)$/m;
	like($out, qr/^answer 50$/m, "skipping by two conditions, bitmap scan $bitmap");
	cmp_ok($asked, '>=', 30, '... asks for leaves') or diag($out);
	cmp_ok($used, '>=', 0.9 * $asked - 2, '... and used them') or diag($out);
}

# ---- an index that is not in order ----

# After the index was made, its collation has changed: 'x', which has many leaves at the end, now is before '4'.  A skip
# scan would come back to it for ever.
SKIP:
{
	skip 'ICU collations have no rules', 1
	  if $node->pg_version < 16 || $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collprovider = 'i'") eq '0';
	$node->safe_psql('postgres', <<'SQL');
CREATE COLLATION changed (provider = icu, locale = 'und');
CREATE TABLE unordered (v text COLLATE changed, w int);
INSERT INTO unordered SELECT lpad((g * 5)::text, 6, '0'), 7 FROM generate_series(0, 199999) g;
INSERT INTO unordered SELECT 'x', g FROM generate_series(1, 20000) g;
CREATE INDEX unordered_v ON unordered (v, w);
VACUUM ANALYZE unordered;
SELECT learnedbtree_train('unordered_v');
UPDATE pg_collation SET collicurules = '&4 < x' WHERE collname = 'changed';
SQL
	my ($rc, $out, $err) = $node->psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; '
		  . "SET statement_timeout = 60000; SELECT count(*) FROM unordered WHERE w = 5; SELECT state FROM learnedbtree_model('unordered_v')");
	like($out, qr/^\d+\nready$/, 'a skip scan of it ends') or diag($err);
	$node->safe_psql('postgres', 'DROP TABLE unordered; DROP COLLATION changed');
}

# ---- serializable transactions ----

# Each of two reads the distinct values and adds one that was not there.  One has to fail.
$node->safe_psql('postgres', 'CREATE TABLE serial (v int, w int); INSERT INTO serial SELECT 10 * (1 + g % 8), g FROM generate_series(1, 16000) g; '
	  . 'CREATE INDEX serial_v ON serial (v, w) WITH (deduplicate_items = off); VACUUM ANALYZE serial');
my $skew = 'SELECT DISTINCT v FROM serial';
like($node->safe_psql('postgres', "EXPLAIN $skew"), qr/\Q$node_name\E/, 'a loose scan');
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$_->query_safe("SET plan_cache_mode = force_generic_plan; PREPARE read AS $skew; EXECUTE read") foreach @sessions;
foreach my $pair ([ 5, 85 ], [ 15, 25 ], [ 15, 85 ], [ 14, 16 ], [ 5, 35 ], [ 75, 76 ])
{
	foreach my $read ($skew, 'EXECUTE read')
	{
		foreach my $way (qw(on off))
		{
			$_->query("SET $setting = $way; BEGIN ISOLATION LEVEL SERIALIZABLE; $read") foreach @sessions;
			foreach my $i (0, 1)
			{
				$sessions[$i]->query("INSERT INTO serial VALUES ($pair->[$i], 0)");
				$sessions[$i]->query('COMMIT');
			}
			my $added = $node->safe_psql('postgres', "WITH d AS (DELETE FROM serial WHERE w = 0 RETURNING 1) SELECT count(*) FROM d");
			is($added, '1', "@$pair, $read, $setting = $way: one of two serializable transactions fails");
		}
	}
}
$_->quit foreach @sessions;

nothing_pinned($node);
is(amcheck_all($node, 'postgres'), '', 'the indexes are sound');
done_testing();
