# A table under heavy change, for the TAP tests: pgbench scripts that insert, move, delete and compare, and
# questions whose answers tell whether anything was lost.
#
# Every key column has a mirror column with the same values.  The first has a learnedbtree index, the mirror
# a btree one, so that one snapshot can be asked the same question by both.  All columns follow from "uniq".
# Only the learnedbtree index on uniq is unique: nothing else would notice if it let a duplicate through.
#
# Ledger: a transaction that changes the table also adds to its client's row of "done" how many rows it
# added, and the sum of their keys.  So in every snapshot, on every server, done tells what t must hold.
package Torture;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(torture_conf torture_settings make_tables torture_scripts start_load end_load operations acknowledged
  faults memory_balanced unexpected_in_log has_column learned_indexes check_indexes);

my $rows = 20000;        # at the start
my $domain = 240000;     # random keys are below it, ascending ones are not
my $ascending = 1000000;
my $clients_at_most = 64;

# name: key columns without prefix, how the index orders them, condition of partial indexes, fillfactor: some
# begin with many leaves, others with full ones.
my @shapes = (
	{ name => 'dup', columns => ['dup'], fillfactor => 60 },
	{ name => 'uniq', columns => ['uniq'], fillfactor => 10, unique => 1 },
	{ name => 'pair', columns => [ 'a', 'b' ], order => [ '', 'DESC' ], fillfactor => 80 },
	{ name => 'word', columns => [ 'c', 'w' ], fillfactor => 90 },
	{ name => 'part', columns => ['p'], condition => 'part', fillfactor => 30 });

# Questions about the row that is made from $1; @ is the prefix of key columns.
my @questions = (
	map({ "SELECT concat_ws(' ', count(*), sum(v), sum(uniq)) FROM t WHERE $_" } (
		'@dup = ($1 * 7919) % 97', '@uniq = $1', '@uniq BETWEEN $1 AND $1 + 60', '@uniq IN ($1, $1 + 7, $1 - 400)',
		'@a = ($1 / 300)::int4', '@a = ($1 / 300)::int4 AND @b = ($1 * 31) % 1000',
		'@a = ($1 / 300)::int4 AND @b BETWEEN 200 AND $1 % 1000', '@c = ($1 % 600)::int4',
		'@c = ($1 % 600)::int4 AND @w = md5(($1 / 7)::text)', 'part AND @p = $1 / 4', 'part AND @p IS NULL',
		'part AND @p > $1 / 4 AND @p < $1 / 4 + 30')),
	# the next keys either way: what, condition, order
	map({ my ($columns, $condition, $order) = @$_;
		"SELECT string_agg(r, ' ') FROM (SELECT concat_ws(',', $columns) AS r FROM t WHERE $condition "
		  . "ORDER BY $order LIMIT 30) q" } (
		[ '@dup', '@dup > ($1 * 7919) % 97', '@dup' ], [ '@dup', '@dup <= ($1 * 7919) % 97', '@dup DESC' ],
		[ '@uniq', '@uniq >= $1', '@uniq' ], [ '@uniq', '@uniq < $1', '@uniq DESC' ],
		[ '@a, @b', '@a = ($1 / 300)::int4 AND @b < ($1 * 31) % 1000', '@a, @b DESC' ],
		[ '@a, @b', '@a <= ($1 / 300)::int4', '@a DESC, @b' ],
		[ '@c, @w', '@c = ($1 % 600)::int4 AND @w > md5($1::text)', '@c, @w' ],
		[ '@c, @w', '@c <= ($1 % 600)::int4', '@c DESC, @w DESC' ],
		[ '@p', 'part AND @p >= $1 / 4', '@p' ], [ '@p', 'part AND @p < $1 / 4', '@p DESC' ])));

# Joins that look up so many keys, made from $1, one after the other.
my $many = 1000;
my @joins = map { "SELECT concat_ws(' ', count(*), sum(uniq * i), sum(v)) FROM generate_series(1, $many) i, t WHERE $_" } (
	"\@uniq = (\$1 * 7919 + i * 104729) % $domain", "\@uniq = (\$1 + i * 3) % $domain",
	"\@a = ((\$1 + i * 7919) % $domain / 300)::int4 AND \@b = ((\$1 + i * 7919) % $domain * 31) % 1000",
	"\@c = ((\$1 + i) % $domain % 600)::int4 AND \@w = md5(((\$1 + i) % $domain / 7)::text)",
	"part AND \@p = (\$1 * 31 + i * 6007) % $domain / 4");

# Settings of a node that is initialized but not started.
sub torture_conf
{
	my ($node) = @_;
	configure_node($node);
	# Waits for each other's keys end in deadlocks now and then: find them quickly.
	$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 16MB
max_connections = 60
deadlock_timeout = 50ms
checkpoint_timeout = 30s
statement_timeout = 120s
client_min_messages = error
CONF
	# After a crash models are to be made again at once.
	$node->append_conf('postgresql.conf', "session_preload_libraries = 'learnedbtree'\n")
	  unless needs_preload($node);
}

# Train often.
sub torture_settings
{
	my ($node, %settings) = @_;
	%settings = ('learnedbtree.naptime' => '100ms', 'learnedbtree.retrain_visits' => 24, %settings);
	foreach my $name (sort keys %settings)
	{
		$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$settings{$name}'");
	}
	$node->reload;
}

sub index_command
{
	my ($shape, $method) = @_;
	my $prefix = $method eq 'btree' ? 'b' : '';
	my @order = @{ $shape->{order} // [] };
	my $columns = join(', ', map { "$prefix$_ " . (shift(@order) // '') } @{ $shape->{columns} });
	my $unique = $shape->{unique} && $method ne 'btree' ? 'UNIQUE' : '';
	my $where = $shape->{condition} ? "WHERE $shape->{condition}" : '';
	my $name = ($method eq 'btree' ? 'b' : 'l') . "_$shape->{name}";
	return "CREATE $unique INDEX $name ON t USING $method ($columns) "
	  . "WITH (fillfactor = $shape->{fillfactor}) $where;\n";
}

sub make_tables
{
	my ($node) = @_;
	my $columns = join(",\n", map { my ($name, $type, $value) = @$_;
			map { "$_ $type GENERATED ALWAYS AS ($value) STORED" } ($name eq 'uniq' ? () : $name), "b$name" }
		  [ 'uniq', 'int8', 'uniq' ], [ 'dup', 'int8', '(uniq * 7919) % 97' ],
		[ 'a', 'int4', '(uniq / 300)::int4' ], [ 'b', 'int8', '(uniq * 31) % 1000' ],
		[ 'c', 'int4', '(uniq % 600)::int4' ], [ 'w', 'text', 'md5((uniq / 7)::text)' ],
		[ 'p', 'int8', 'CASE WHEN uniq % 8 <> 0 THEN uniq / 4 END' ]);
	my $indexes = join('', map { index_command($_, 'learnedbtree'), index_command($_, 'btree') } @shapes);
	$node->safe_psql('postgres', <<"SQL");
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS learnedbtree;
CREATE EXTENSION IF NOT EXISTS amcheck;
CREATE TABLE t (uniq int8 NOT NULL, part boolean GENERATED ALWAYS AS (uniq % 5 <> 0) STORED, v int8 DEFAULT 0,
	$columns);
INSERT INTO t (uniq) SELECT g::int8 * $domain / $rows FROM generate_series(1, $rows) g;
$indexes
-- Transactions that claim numbers here must be serializable, or they would take some twice.
CREATE TABLE s (k int8 NOT NULL);
CREATE INDEX l_serial ON s USING learnedbtree (k);
INSERT INTO s SELECT g * 10 FROM generate_series(1, 3000) g;
CREATE SEQUENCE ascending START $ascending;
CREATE TABLE done (who int PRIMARY KEY, n int8 NOT NULL DEFAULT 0, rows int8 NOT NULL DEFAULT 0,
	total numeric NOT NULL DEFAULT 0, conflicts int8 NOT NULL DEFAULT 0) WITH (fillfactor = 10);
INSERT INTO done (who) SELECT generate_series(0, $clients_at_most);
UPDATE done SET (rows, total) = (SELECT count(*), sum(uniq) FROM t) WHERE who = $clients_at_most;
VACUUM ANALYZE t, s, done;
SQL
	make_changes($node);
	make_questions($node);
	make_faults($node);
}

# Functions that change the table and the ledger together.
sub make_changes
{
	my ($node) = @_;
	my $on_conflict = $node->pg_version >= 18 ? 'ON CONFLICT DO NOTHING' : '';
	$node->safe_psql('postgres', <<"SQL");
-- Nothing added, and not even zero: a conflict.
CREATE FUNCTION tally(client int, added int8, sum numeric) RETURNS void LANGUAGE sql AS \$\$
	UPDATE done SET n = n + 1, rows = rows + coalesce(added, 0), total = total + coalesce(sum, 0),
		conflicts = conflicts + (added IS NULL)::int WHERE who = client
\$\$;
-- Several keys in one command: all, or none if one of them is there already.
CREATE FUNCTION add(client int, first int8, step int8, count int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	added int8;
	sum numeric;
BEGIN
	BEGIN
		WITH new AS (INSERT INTO t (uniq) SELECT first + i * step FROM generate_series(0, count - 1) i RETURNING uniq)
			SELECT count(*), sum(uniq) INTO added, sum FROM new;
	EXCEPTION WHEN unique_violation THEN
		added := NULL;
	END;
	PERFORM tally(client, added, sum);
END \$\$;
-- A command for each key, in a subtransaction; before 18 ON CONFLICT would refuse our unique index.
CREATE FUNCTION add_each(client int, first int8, step int8, count int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	key int8;
	added int8 := 0;
	sum numeric := 0;
BEGIN
	FOR i IN 0 .. count - 1 LOOP
		BEGIN
			INSERT INTO t (uniq) VALUES (first + i * step) $on_conflict RETURNING uniq INTO key;
			added := added + (key IS NOT NULL)::int;
			sum := sum + coalesce(key, 0);
		EXCEPTION WHEN unique_violation THEN
			NULL;
		END;
	END LOOP;
	PERFORM tally(client, added, sum);
END \$\$;
CREATE FUNCTION move(client int, first int8, distance int8) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	moved int8;
BEGIN
	BEGIN
		UPDATE t SET uniq = uniq + distance WHERE ctid = ANY (ARRAY(SELECT ctid FROM t
			WHERE uniq BETWEEN first AND first + 60 LIMIT 20 FOR UPDATE SKIP LOCKED));
		GET DIAGNOSTICS moved = ROW_COUNT;
	EXCEPTION WHEN unique_violation THEN
		moved := NULL;
	END;
	PERFORM tally(client, 0 * moved, moved * distance);		-- no rows more, or a conflict
END \$\$;
CREATE FUNCTION remove(client int, first int8, last int8, count int) RETURNS void LANGUAGE sql AS \$\$
	WITH old AS (DELETE FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t
			WHERE uniq BETWEEN first AND last ORDER BY uniq LIMIT count FOR UPDATE SKIP LOCKED)) RETURNING uniq)
		SELECT tally(client, -count(*), -sum(uniq)) FROM old
\$\$;
-- No key changes: HOT where the page has room, else new entries for the same keys.
CREATE FUNCTION touch(client int, key int8) RETURNS void LANGUAGE sql AS \$\$
	UPDATE t SET v = v + 1 WHERE ctid = ANY (ARRAY(SELECT ctid FROM t
		WHERE dup = key LIMIT 15 FOR UPDATE SKIP LOCKED));
	SELECT tally(client, 0, 0)
\$\$;
-- REINDEX CONCURRENTLY may replace the index between the name's look-up and the lock.
CREATE FUNCTION train(name text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE format('SELECT learnedbtree_train(%L)', name);
EXCEPTION WHEN undefined_object OR undefined_table OR object_not_in_prerequisite_state THEN NULL;
END \$\$;
SQL
}

sub question_list
{
	return join(",\n", map { "\$q\$$_\$q\$" } @_ ? @_ : @questions);
}

# compare(): one question to both indexes, or one of the joins; answer(): one question by one path.
sub make_questions
{
	my ($node) = @_;
	my ($list, $joins) = (question_list(), question_list(@joins));
	$node->safe_psql('postgres', <<"SQL");
CREATE FUNCTION compare(choice int, n int8, many bool = false) RETURNS void LANGUAGE plpgsql STABLE AS \$\$
DECLARE
	queries text[] := CASE WHEN many THEN ARRAY[$joins] ELSE ARRAY[$list] END;
	query text := queries[1 + choice % cardinality(queries)];
	learned text;
	btree text;
BEGIN
	EXECUTE replace(query, '\@', '') INTO learned USING n;
	EXECUTE replace(query, '\@', 'b') INTO btree USING n;
	IF learned IS DISTINCT FROM btree THEN
		RAISE EXCEPTION 'wrong answer for %', n
			USING DETAIL = format('query: %s; learnedbtree: %s; btree: %s', query, learned, btree);
	END IF;
END \$\$;

CREATE FUNCTION force_path(path text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM set_config('enable_seqscan', (path = 'seq')::text, true), set_config('enable_bitmapscan', 'off', true),
		set_config('enable_sort', (path = 'seq')::text, true),
		set_config('enable_indexscan', (path = 'index')::text, true),
		set_config('enable_indexonlyscan', (path IN ('index', 'only'))::text, true);
END \$\$;
CREATE FUNCTION answer(path text, query text, n int8, keys int8[]) RETURNS text LANGUAGE plpgsql STABLE AS \$\$
DECLARE
	result text;
BEGIN
	PERFORM force_path(path);
	EXECUTE query INTO result USING n, keys;
	RETURN result;
END \$\$;
SQL
}

# faults(): everything about every index against the table.
sub make_faults
{
	my ($node) = @_;
	my $list = question_list();
	my $shapes = join(",\n", map {
		my ($shape, @order) = ($_, @{ $_->{order} // [] });
		my @columns = map { "\@$_" } @{ $shape->{columns} };
		my $order = join(', ', map { "$_ " . (shift(@order) // '') } @columns);
		my $condition = $shape->{condition} // 'true';
		"ARRAY['$shape->{name}', '" . join(', ', @columns) . "', '$columns[0]', '$order', '$condition']"
	} @shapes);
	$node->safe_psql('postgres', <<"SQL");
-- What is wrong, a row each.  One snapshot.  \$1 is a number to choose samples by.
CREATE FUNCTION faults(seed int8) RETURNS SETOF text LANGUAGE plpgsql STABLE AS \$\$
DECLARE
	queries text[] := ARRAY[$list];
	shape text[];
	prefix text;
	query text;
	keys int8[];
BEGIN
	IF answer('seq', 'SELECT concat_ws('' '', count(*), coalesce(sum(uniq), 0)) FROM t', 0, NULL) <>
		(SELECT concat_ws(' ', sum(rows), sum(total)) FROM done) THEN
		RETURN NEXT 'the table does not hold what the ledger says';
	END IF;
	IF answer('seq', 'SELECT count(*) - count(DISTINCT uniq) FROM t', 0, NULL) <> '0' THEN
		RETURN NEXT 'duplicates in the unique index''s column';
	END IF;
	IF answer('seq', 'SELECT count(*) - count(DISTINCT k) FROM s', 0, NULL) <> '0' THEN
		RETURN NEXT 'serializable transactions have claimed the same number';
	END IF;
	keys := answer('seq', 'SELECT array_agg(DISTINCT k) FROM s', 0, NULL);
	IF answer('index', 'SELECT sum((SELECT count(*) FROM s WHERE k = key)) FROM unnest(\$2) AS key', 0, keys) <>
		answer('seq', 'SELECT count(*) FROM s', 0, NULL) THEN
		RETURN NEXT 'index serial: lookups lose rows';
	END IF;
	FOREACH shape SLICE 1 IN ARRAY ARRAY[$shapes] LOOP
		FOREACH prefix IN ARRAY ARRAY['', 'b'] LOOP
			-- every entry, in order
			query := replace(format('SELECT concat_ws('' '', count(*), md5(string_agg(r, '' ''))) FROM '
				'(SELECT concat_ws('','', %s) AS r FROM t WHERE %s ORDER BY %s) q', shape[2], shape[5], shape[4]),
				'\@', prefix);
			IF answer('only', query, 0, NULL) IS DISTINCT FROM answer('seq', query, 0, NULL) THEN
				RETURN NEXT format('index %s, %s: entries differ from the table', shape[1], prefix || shape[2]);
			END IF;
			-- every key looked up
			query := replace(format('SELECT array_agg(DISTINCT %s) FROM t WHERE %s', shape[3], shape[5]),
				'\@', prefix);
			keys := answer('seq', query, 0, NULL);
			query := replace(format('SELECT concat_ws('' '', sum(n), sum(total)) FROM unnest(\$2) AS key, LATERAL '
				'(SELECT count(*) AS n, sum(uniq) AS total FROM t WHERE %s = key AND %s) q', shape[3], shape[5]),
				'\@', prefix);
			IF answer('index', query, 0, keys) IS DISTINCT FROM
				answer('seq', replace(format('SELECT concat_ws('' '', count(*), sum(uniq)) FROM t WHERE %s '
				'AND %s IS NOT NULL', shape[5], shape[3]), '\@', prefix), 0, NULL) THEN
				RETURN NEXT format('index %s, %s: lookups lose rows', shape[1], prefix || shape[2]);
			END IF;
		END LOOP;
	END LOOP;
	FOREACH query IN ARRAY queries LOOP
		FOR i IN 1 .. 3 LOOP
			query := replace(query, '\@', '');
			seed := (seed * 7919 + 104729) % $domain;
			IF answer('index', query, seed, NULL) IS DISTINCT FROM answer('seq', query, seed, NULL) THEN
				RETURN NEXT format('%s, with %s: differs from a sequential scan', query, seed);
			END IF;
		END LOOP;
	END LOOP;
END \$\$;
SQL
}

# pgbench's scripts: name, weight, text.  Those whose name begins with write add one to done.n.
sub torture_scripts
{
	my ($node, %weights) = @_;
	my $n = "\\set n random(0, $domain)\n";
	my $names = join(', ', map { "'$_'" } learned_indexes());
	my $hot = "\\set n random(1, 6) * 40000 + random_exponential(0, 3000, 8)\n";
	my $compare = "\\set m random(0, $domain + 3000)\n\\set c random(0, 100000)\nSELECT compare(:c, :m);\n";
	my %scripts = (
		compare => [ 60, $compare ],
		compare_many => [ 6, "${n}\\set c random(0, 100000)\nSELECT compare(:c, :n, true);" ],
		compare_repeatable => [ 4, "BEGIN ISOLATION LEVEL REPEATABLE READ;\n$compare${compare}COMMIT;" ],
		write_single => [ 14, "${n}SELECT add(:client_id, :n, 1, 1);" ],
		write_batch => [ 5, "${n}\\set step random(1, 2000)\nSELECT add(:client_id, :n, :step, 40);" ],
		write_hot => [ 6, "${hot}SELECT add_each(:client_id, :n, 1, 20);" ],
		write_each => [ 3, "${n}SELECT add_each(:client_id, :n, -3, 30);" ],
		write_ascending => [ 5, "SELECT add(:client_id, nextval('ascending'), 1, 1);" ],
		write_ascending_batch => [ 2, "SELECT setval('ascending', nextval('ascending') + 50) AS n \\gset\n"
			  . "SELECT add(:client_id, :n - 50, 1, 50);" ],
		write_move => [ 5, "${n}\\set d random(-5000, 5000)\nSELECT move(:client_id, :n, :d);" ],
		write_remove => [ 3, "${n}SELECT remove(:client_id, :n, :n + 2500, 150);" ],
		write_dequeue => [ 2, "SELECT remove(:client_id, $ascending, $ascending * 2, 60);" ],
		write_touch => [ 3, "\\set k random(0, 96)\nSELECT touch(:client_id, :k);" ],
		write_partly => [ 4, "${n}BEGIN;\nSAVEPOINT a;\nSELECT add(:client_id, :n, 5, 25);\nROLLBACK TO a;\n"
			  . "SELECT add(:client_id, :n + 1, 5, 10);\n${compare}COMMIT;" ],
		write_serializable => [ 4, "${n}BEGIN ISOLATION LEVEL SERIALIZABLE;\n$compare"
			  . "SELECT add(:client_id, :n, 11, 5);\nCOMMIT;" ],
		rollback => [ 3, "${n}BEGIN;\nSELECT add(:client_id, :n, 3, 30);\nROLLBACK;" ],
		claim => [ 6, "\\set k random(1, 30000)\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n"
			  . "SELECT count(*) FROM s WHERE k BETWEEN :k - 3 AND :k + 3;\n"
			  . "INSERT INTO s SELECT :k WHERE NOT EXISTS (SELECT FROM s WHERE k = :k);\nCOMMIT;" ],
		claim_next => [ 6, "BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT max(k) + 1 AS k FROM s \\gset\n"
			  . "INSERT INTO s VALUES (:k);\nCOMMIT;" ],
		unclaim => [ 2, "\\set k random(1, 30000)\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n"
			  . "DELETE FROM s WHERE k BETWEEN :k AND :k + 200;\nCOMMIT;" ],
		vacuum => [ 1, "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF, SKIP_LOCKED) t, s;" ],
		train => [ 1, "\\set rare random(1, 8)\n\\if :rare = 1\n"
			  . "SELECT train((ARRAY[$names])[:client_id % 6 + 1]);\n\\endif" ]);
	$scripts{$_}[0] = $weights{$_} foreach keys %weights;
	return map { [ $_, @{ $scripts{$_} } ] } grep { $scripts{$_}[0] > 0 } sort keys %scripts;
}

# A script that dies leaves no pgbench behind.
my @running;

END
{
	local $?;
	$_->kill_kill foreach @running;
}

# Start pgbench; scripts are [ name, weight, text ], options those of its connections.
sub start_load
{
	my ($node, %load) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir;
	my @files;
	foreach my $script (@{ $load{scripts} })
	{
		my ($name, $weight, $text) = @$script;
		append_to_file("$folder/$name", "$text\n");
		push @files, '-f', "$folder/$name\@$weight";
	}
	my %handle = (%load, folder => $folder, out => '', err => '');
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off -c enable_hashjoin=off -c enable_mergejoin=off '
	  . '-c default_statistics_target=10 ' . ($load{options} // '');
	my @command = ($node->installed_command('pgbench'), '--no-vacuum', "--client=$load{clients}",
		'--jobs=' . ($load{jobs} // ($load{clients} > 1 ? 2 : 1)), "--time=$load{seconds}", "--random-seed=$load{seed}",
		'--protocol=' . ($load{protocol} // 'simple'), '--log', "--log-prefix=$folder/log", @files, '-h', $node->host, '-p', $node->port, 'postgres');
	$handle{run} = IPC::Run::start(\@command, '<', \'', '>', \$handle{out}, '2>', \$handle{err},
		IPC::Run::timeout($load{seconds} + 2 * patience()));
	push @running, $handle{run};
	return \%handle;
}

# Wait for pgbench; true if it ended well and no client gave up.
sub end_load
{
	my ($handle) = @_;
	my $good = eval { $handle->{run}->finish };
	$handle->{run}->kill_kill unless defined $good;
	@running = grep { $_ != $handle->{run} } @running;
	return ($good // 0) && $handle->{err} !~ /ERROR|aborted/ && $handle->{out} =~ /actually processed/;
}

# How many keys were looked up and compared, questions were asked, and transactions wrote, by pgbench's report.
sub operations
{
	my ($handle) = @_;
	my ($sum, $each) = (0, 0);
	foreach my $line (split /\n/, $handle->{out})
	{
		$each = $1 eq 'compare_many' ? $many : 1 if $line =~ /SQL script \d+: .*\/(\w+)$/;
		$sum += $1 * $each if $line =~ /^ - (\d+) transactions/;
	}
	return $sum;
}

# How many writing transactions each client was told to be committed, by pgbench's log.
sub acknowledged
{
	my ($handle) = @_;
	my %count = map { ($_ => 0) } 0 .. $handle->{clients} - 1;
	foreach my $file (glob "$handle->{folder}/log.*")
	{
		foreach my $line (split /\n/, slurp_file($file))
		{
			my ($client, undef, $time, $script) = split / /, $line;
			$count{$client}++ if $time =~ /^\d+$/ && $handle->{scripts}[$script][0] =~ /^write/;
		}
	}
	return \%count;
}

sub learned_indexes
{
	return (map { "l_$_->{name}" } @shapes), 'l_serial';
}

# What is wrong with answers, '' if nothing.
sub faults
{
	my ($node, $seed) = @_;
	return $node->safe_psql('postgres', "SELECT * FROM faults($seed)");
}

# What amcheck finds wrong with the index files, '' if nothing.
sub check_indexes
{
	my ($node) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		check_sql(learned_indexes()));
	return $rc == 0 ? '' : "$err";
}

# Does shared memory hold one model an index and nothing else?  Soon: one may be being replaced.
sub memory_balanced
{
	my ($node) = @_;
	return 1 if eventually($node, 'SELECT learnedbtree_model_memory() = '
		  . 'coalesce(sum((learnedbtree_model(indexrelid)).bytes), 0) FROM learnedbtree_stat');
	diag($node->safe_psql('postgres', 'SELECT learnedbtree_model_memory(), indexrelname, '
		  . '(learnedbtree_model(indexrelid)).* FROM learnedbtree_stat'));
	return 0;
}

sub has_column
{
	my ($node, $relation, $column) = @_;
	return $node->safe_psql('postgres', 'SELECT count(*) FROM pg_attribute '
		  . "WHERE attrelid = '$relation'::regclass AND attname = '$column'") eq '1';
}

# Lines of a server's log, from an offset on, that a run without faults does not have.
sub unexpected_in_log
{
	my ($node, $offset, $expected) = @_;
	my $log = substr(slurp_file($node->logfile), $offset // 0);
	my $shutdown = qr/terminating (?:background worker "learnedbtree \w+"|connection) due to administrator command/;
	my @lines = grep { /(PANIC|FATAL|ERROR): |TRAP: |terminated by signal|inconsistent page/
		  && !/$expected|$shutdown/ } split(/\n/, $log);
	return join("\n", @lines > 20 ? @lines[ 0 .. 19 ] : @lines);
}

1;
