# Switching serving on changes no plan: EXPLAIN (FORMAT JSON, VERBOSE), with all costs, says the same whether
# learnedbtree.btree_indexes is none or all, but for our node, which stands on the outer side of nested loops and has the
# estimates of its child, or above a plan whose subqueries it evaluates.  Of random joins (test/t/Joins.pm; LBT_SEED, LBT_JOINS of each shape), in one session and in two,
# and, where the server has them, of what PostgreSQL's regression tests do, each in its session, just before it is done.
# At two prices of a random page; without parallel query, with it, and by nested loops alone.  Loose scans, which do have paths
# and costs of their own, are off.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Joins;
use JSON::PP;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $seed = $ENV{LBT_SEED} || 20270318;
my $of_each = $ENV{LBT_JOINS} || 6;
my $node_name = 'Learned Look-Ahead';
my ($json, $readable) = map { JSON::PP->new->canonical->latin1->indent($_)->space_after($_) } 0, 1;

# ---- plans without our node ----

my @estimates = ('Startup Cost', 'Total Cost', 'Plan Rows', 'Plan Width');

# Takes our nodes out of a decoded plan, and counts them in $$count.  One that is not as a node of ours has to be, with one
# child, in its place, and with the child's estimates, stays, so that it will be found to differ.  One that evaluates
# subqueries gives them, and conditions, back to its child, or to what is below a Limit.
sub take_out
{
	my ($part, $count) = @_;
	return [ map { take_out($_, $count) } @$part ] if ref $part eq 'ARRAY';
	return $part unless ref $part eq 'HASH';
	my %rest = map { $_ => take_out($part->{$_}, $count) } keys %$part;
	return \%rest unless ($part->{'Custom Plan Provider'} // '') eq $node_name;
	$$count++;
	my ($child, @more) = grep { $_->{'Parent Relationship'} eq 'Outer' } @{ $rest{Plans} // [] };
	my @subqueries = grep { $_->{'Parent Relationship'} ne 'Outer' } @{ $rest{Plans} // [] };
	return \%rest if !$child || @more;
	return \%rest if grep { $rest{$_} != $child->{$_} } @estimates;
	# (One of several partitions shows the subqueries.)
	return $rest{'Parent Relationship'} eq 'Outer' ? $child : \%rest unless grep { /SubPlan/ } @{ $rest{Output} }, $rest{Filter} // ();
	my $evaluates = $child->{'Node Type'} eq 'Limit' ? $child->{Plans}[0] : $child;
	unshift @{ $child->{Plans} }, grep { $_->{'Parent Relationship'} eq 'InitPlan' } @subqueries;
	push @{ $evaluates->{Plans} }, grep { $_->{'Parent Relationship'} eq 'SubPlan' } @subqueries;
	$evaluates->{Filter} = join(' AND ', grep { defined } $evaluates->{Filter}, $rest{Filter}) if defined $rest{Filter};
	foreach my $place ('Parent Relationship', 'Subplan Name')
	{
		delete $child->{$place};
		$child->{$place} = $rest{$place} if defined $rest{$place};
	}
	return $child;
}

# A plan with subqueries, without what differs when they are evaluated above: columns, parentheses, which comes first.
sub loosely
{
	my ($part) = @_;
	return [ map { loosely($_) } sort { ($a->{'Subplan Name'} // '') cmp($b->{'Subplan Name'} // '') } @$part ]
	  if ref $part eq 'ARRAY' && @$part && ref $part->[0] eq 'HASH';
	return $part unless ref $part eq 'HASH';
	my %rest = map { $_ => loosely($part->{$_}) } grep { $_ ne 'Output' } keys %$part;
	$rest{Filter} =~ s/[()]//g if defined $rest{Filter};
	return \%rest;
}

# How many of our nodes are in the plan made with serving, and the first line that differs otherwise, '' when none does.
# Plans are as EXPLAIN writes them, or say why there is none.
sub compare
{
	my ($without, $with) = @_;
	return (0, '') if $without eq $with && index($with, $node_name) < 0;
	return (0, "$without\n$with") if grep { !/^\s*\[/ } $without, $with;
	my $count = 0;
	my $rest = take_out($json->decode($with), \$count);
	my $plain = $json->decode($without);
	($rest, $plain) = map { loosely($_) } $rest, $plain if $with =~ /"SubPlan"/;
	return ($count, '') if $json->encode($plain) eq $json->encode($rest);
	my ($is, $was) = map { [ split /\n/, $readable->encode($_) ] } $rest, $plain;
	my ($line) = grep { ($was->[$_] // '') ne ($is->[$_] // '') } 0 .. $#$was + 1;
	return ($count, join("\n", map { $_->[$line] // '(no more)' } $was, $is));
}

# ---- statements, explained and run ----

my $serial = 'max_parallel_workers_per_gather=0';
my $parallel = 'max_parallel_workers_per_gather=2 parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 min_parallel_index_scan_size=0';
my $nested_loops = 'enable_hashjoin=off enable_mergejoin=off';
my @variants = map { ("random_page_cost=$_ $serial", "random_page_cost=$_ $parallel", "random_page_cost=$_ $serial $nested_loops") } 4, 1.1;

# A function that explains a statement with each variant and each value of learnedbtree.btree_indexes, one right after the
# other.  Settings are taken back by errors, which do not fail the transaction around.
sub make_explained
{
	my ($node, $database) = @_;
	my $variants = join(', ', map { "'$_'" } @variants);
	$node->safe_psql($database, <<"SQL");
CREATE SCHEMA same_plans;
GRANT USAGE ON SCHEMA same_plans TO public;
CREATE FUNCTION same_plans.explained(number int, statement text, serving text[]) RETURNS SETOF text LANGUAGE plpgsql AS \$\$
DECLARE
	ways text[] := ARRAY(SELECT v || ' learnedbtree.btree_indexes=' || s FROM unnest(ARRAY[$variants]) WITH ORDINALITY v (v, n),
		unnest(serving) WITH ORDINALITY s (s, n) ORDER BY v.n, s.n);
	plan text;
	last text;
BEGIN
	FOR way IN 1 .. cardinality(ways) LOOP
		-- The third time, if there is one, only where the first two differ.
		CONTINUE WHEN cardinality(serving) = 3 AND way % 3 = 0 AND plan = last;
		last := plan;
		BEGIN
			PERFORM set_config(split_part(s, '=', 1), split_part(s, '=', 2), true) FROM unnest(string_to_array(ways[way], ' ')) s;
			-- Plans of prepared statements are kept: have new ones.
			IF statement ~* '^execute' THEN
				DISCARD PLANS;
				PERFORM set_config('plan_cache_mode', 'force_custom_plan', true) WHERE current_setting('plan_cache_mode') = 'auto';
			END IF;
			EXECUTE 'EXPLAIN (FORMAT JSON, VERBOSE) ' || statement INTO plan;
			RAISE EXCEPTION USING ERRCODE = 'LB000';
		EXCEPTION
			WHEN SQLSTATE 'LB000' THEN NULL;
			WHEN OTHERS THEN plan := 'failed: ' || SQLERRM;
		END;
		RETURN NEXT concat_ws('|', 'same_plans', number, way, translate(plan, E'\\n', ' '));
	END LOOP;
END \$\$;
SQL
	return;
}

# A script's statements and psql's commands, [kind, text]: kind is sql, psql or, when psql's command ends it, both.
sub parts
{
	my ($script) = @_;
	my (@parts, $depth, $atomic, $last);
	my $text = '';
	my $end = sub {
		my ($kind, $more) = @_;
		$text =~ s/^\s+//;
		push @parts, [ $kind, "$text$more" ] if "$text$more" ne '';
		($text, $depth, $atomic, $last) = ('', 0, 0, '');
	};
	$end->('sql', '');
	pos($script) = 0;
	while (pos($script) < length($script))
	{
		if ($script =~ /\G(--[^\n]*|\/\*.*?\*\/)/gcs) { $text .= ' ' }
		elsif ($script =~ /\G(\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([a-z_]\w*|)\$.*?\$\g2\$)/gcsi) { $text .= $1 }
		elsif ($script =~ /\G(\\;)/gc) { $text .= $1 }
		elsif ($script =~ /\G\\/gc)
		{
			my $kind = $text =~ /\S/ ? 'both' : 'psql';
			$end->($kind, "\\$1") if $script =~ /\G([^\n]*)/gc;
		}
		elsif ($script =~ /\G(\w+)/gc)
		{
			# The body of a function, BEGIN ATOMIC ... END, has statements of its own.
			my $word = lc $1;
			$text .= $1;
			if ($word eq 'atomic' && $last eq 'begin') { $atomic = 1 }
			elsif ($atomic && $word eq 'case') { $atomic++ }
			elsif ($atomic && $word eq 'end') { $atomic-- }
			$last = $word;
		}
		elsif ($script =~ /\G;/gc)
		{
			if ($depth > 0 || $atomic) { $text .= ';'; next }
			my $copy = $text =~ /^\s*copy\b.*\bfrom\s+stdin\b/is;
			$end->('sql', ';');
			$parts[-1][1] .= $1 if $copy && $script =~ /\G[^\n]*(\n.*?^\\\.$)/gcms;
		}
		elsif ($script =~ /\G([()])/gc) { $depth += $1 eq '(' ? 1 : -1; $text .= $1 }
		elsif ($script =~ /\G(.)/gcs) { $text .= $1 }
	}
	$end->('sql', '');
	return @parts;
}

# What can be explained of a statement: itself, what it explains, or what a function that explains is given.
sub explainable
{
	my ($sql) = @_;
	$sql =~ s/^\s+|\s*;?\s*$//g;
	$sql =~ s/^explain\s*(?:\([^)]*\)|(?:analyze\b|verbose\b|\s)*)\s*//i;
	my @found;
	push @found, $1 =~ s/''/'/gr if $sql =~ /^select\b.*?\bexplain\w*\(\s*'((?:[^']|'')*)'/is;
	push @found, $sql if $sql =~ /^(?:[(\s]*(?:select|with|values|table)|insert|update|delete|merge|execute|declare\s.*\scursor|
		create\s+(?:temp\w*\s+|unlogged\s+)?table\s+[\w.]+\s+as)\b/isx;
	return @found;
}

my $psql_commands = qr/^\\(?:set|unset|getenv|c|connect|if|elif|else|endif|copy)\b/;

# The plans of a script's statements in a session of its own, each before it is run, with serving; or, unless $run, those of
# statements that are not run at all.  Returns the statements, and for each number of one a list: for each variant the plan
# with each of @$serving.
sub plans_in_session
{
	my ($name, $node, $database, $script, $serving, $run) = @_;
	my @explained;
	my $list = join(',', @$serving);
	my $commands = "\\o /dev/null\n";
	foreach my $part (parts($script))
	{
		my ($kind, $text) = @$part;
		# Others say something, or change how psql writes plans.
		next if $kind eq 'psql' && $text !~ $psql_commands;
		my @statements = $kind eq 'sql' ? explainable($text) : ();
		foreach my $statement (@statements)
		{
			push @explained, $statement;
			$commands .= "\\o\nSELECT * FROM same_plans.explained($#explained, \$same_plans\$$statement\$same_plans\$, '{$list}');\n\\o /dev/null\n";
		}
		$commands .= "$text\n" if $run || !@statements;
	}
	my ($rc, $out) = $node->psql($database, $commands, on_error_stop => 0, timeout => 3 * patience());
	is($rc, 0, "$name: the session comes to the end");
	my %plans;
	foreach my $line (grep { /^same_plans/ } split /\n/, $out)
	{
		my (undef, $number, $way, $plan) = split /\|/, $line, 4;
		$plans{$number}[ $way - 1 ] = $plan;
	}
	return (\@explained, \%plans);
}

# Whether a script's statements have the same plans in one session.
sub same_plans
{
	my ($name, $node, $database, $script) = @_;
	return same_pairs($name, plans_in_session($name, $node, $database, $script, [ 'none', 'all', 'none' ], 1));
}

# Whether plans are the same: for each variant the one without serving, the one with it, and, unless these are equal, the one
# without it again.  Returns counts, and under "sample" such a pair with our node.
#
# Plans may change by themselves.  The planner looks for the ends of indexes, gives up after some entries of dead rows, and
# marks these.  Some time it comes to the end, and from then on to other estimates: if between the first two plans, the third
# is like the second.
sub same_pairs
{
	my ($name, $explained, $plans) = @_;
	my %count = map { $_ => 0 } 'plans', 'with our node', 'our nodes', 'without a plan', 'parallel with our node', 'not served with our node',
	  'changed by themselves';
	# In a transaction that has failed nothing is explained.
	$count{statements} = @$explained;
	$count{'not explained'} = @$explained - keys %$plans;
	my @different;
	foreach my $number (sort { $a <=> $b } keys %$plans)
	{
		foreach my $variant (0 .. $#variants)
		{
			my ($without, $with, $again) = @{ $plans->{$number} }[ map { 3 * $variant + $_ } 0 .. 2 ];
			my ($nodes, $difference) = compare($without, $with);
			if ($difference ne '' && $again && $again ne $without && (compare($again, $with))[1] eq '')
			{
				$count{'changed by themselves'}++;
				($without, $difference) = ($again, '');
			}
			push @different, "$variants[$variant]: $explained->[$number]\n$difference" if $difference ne '';
			$count{ $with =~ /^failed/ ? 'without a plan' : 'plans' }++;
			$count{'not served with our node'}++ if index($without, $node_name) >= 0;
			next if $nodes == 0;
			$count{'with our node'}++;
			$count{'our nodes'} += $nodes;
			$count{'parallel with our node'}++ if $with =~ /"Gather/;
			$count{sample} = [ $without, $with ];
		}
	}
	is(scalar @different, 0, "$name: the same plans");
	diag($_) foreach @different[ 0 .. ($#different < 4 ? $#different : 4) ];
	cmp_ok($count{'changed by themselves'}, '<=', 2 + $count{plans} / 200, "$name: few that change by themselves");
	is($count{'not served with our node'}, 0, "$name: without serving our node is in none");
	note_counts($name, \%count);
	return \%count;
}

sub note_counts
{
	my ($name, $count) = @_;
	note("$name: " . join(', ', map { "$_: $count->{$_}" } grep { !ref $count->{$_} } sort keys %$count));
	return;
}

sub train_all
{
	my ($node, $database) = @_;
	$node->safe_psql($database, "SELECT learnedbtree_train(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'i' "
		  . "AND amname = 'btree' AND relpersistence = 'p' AND relnamespace <> 'pg_toast'::regnamespace AND c.oid >= 16384");
	return;
}

# ---- random joins ----

my $node = PostgreSQL::Test::Cluster->new('same_plans');
$node->init;
configure_serving($node);
$node->append_conf('postgresql.conf', <<'CONF');
learnedbtree.btree_indexes = 'all'
learnedbtree.enable_loose_scan = off
learnedbtree.autotrain = off
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree');
make_explained($node, 'postgres');
make_join_tables($node);
train_all($node, 'postgres');

my $sample;
my @joins = random_joins($seed, $of_each);
foreach my $settings ('the settings of the server', 'random settings')
{
	my $name = "random joins, $settings";
	# What a session does: settings, if any, and then the query.
	my $script = sub { return join('', map { "RESET ALL;\n" . ($settings =~ /random/ ? $_->[1] : '') . "$_->[2];\n" } @_) };
	my $count = same_plans($name, $node, 'postgres', $script->(@joins));
	is("$count->{'not explained'} $count->{'without a plan'}", '0 0', "$name: each has a plan");
	cmp_ok($count->{plans}, '>=', @joins * @variants, "$name: all were compared");
	cmp_ok($count->{'with our node'}, '>', $count->{plans} / 4, "$name: with serving our node is in many");
	cmp_ok($count->{'parallel with our node'}, '>', $of_each, "$name: also in parallel ones");
	$sample = $count->{sample};

	# A session that has served an index goes on using some of our routine for it.  One that has not, and from 17 on has no
	# library either:
	$node->safe_psql('postgres', 'VACUUM a, b, c, d');
	my $queries = $script->(grep { $_->[3] } @joins);
	my ($explained, $served) = plans_in_session("$name, served", $node, 'postgres', $queries, ['all'], 0);
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	my (undef, $plain) = plans_in_session("$name, not served", $node, 'postgres', $queries, ['none'], 0);
	my %both;
	foreach my $number (keys %$served)
	{
		$both{$number} = [ map { ($plain->{$number}[$_], $served->{$number}[$_], undef) } 0 .. $#variants ];
	}
	$count = same_pairs("$name, in two sessions", $explained, \%both);
	is("$count->{'not explained'} $count->{'without a plan'}", '0 0', "$name, in two sessions: each has a plan");
	cmp_ok($count->{'with our node'}, '>', $count->{plans} / 4, "$name, in two sessions: with serving our node is in many");
}

# ---- a comparison that can fail ----

my ($without, $with) = @$sample;
is_deeply([ compare($without, $with) ], [ scalar(() = $with =~ /\Q$node_name\E/g), '' ], 'a plan with our node is the same as without it');

# Change one thing in one of the nodes of a plan.
sub doctored
{
	my ($plan, $which, $change) = @_;
	my $decoded = $json->decode($plan);
	my @left = @$decoded;
	while (my $item = shift @left)
	{
		if (exists $item->{Plan}) { push @left, $item->{Plan}; next }
		if ($which->($item)) { $change->($item); return $json->encode($decoded) }
		push @left, @{ $item->{Plans} // [] };
	}
	die 'the plan has no such node';
}

my $ours = sub { return ($_[0]{'Custom Plan Provider'} // '') eq $node_name };
my $loop = sub { return $_[0]{'Node Type'} eq 'Nested Loop' };
my %doctored = (
	'a cost' => [ $loop, sub { $_[0]{'Total Cost'} += 0.01 } ],
	'a number of rows' => [ $loop, sub { $_[0]{'Plan Rows'}++ } ],
	'an output' => [ $loop, sub { push @{ $_[0]{Output} }, 'x' } ],
	'another kind of node' => [ $loop, sub { $_[0]{'Node Type'} = 'Hash Join' } ],
	'another cost below our node' => [ $ours, sub { $_[0]{Plans}[0]{'Startup Cost'} += 0.01 } ],
	'another cost of our node' => [ $ours, sub { $_[0]{'Total Cost'} += 0.01 } ],
	'our node in another place' => [ $ours, sub { $_[0]{'Parent Relationship'} = 'Inner' } ],
	'two children of our node' => [ $ours, sub { push @{ $_[0]{Plans} }, $_[0]{Plans}[0] } ],
	'another node' => [ $ours, sub { $_[0]{'Custom Plan Provider'} = 'Another' } ]);
foreach my $what (sort keys %doctored)
{
	my (undef, $difference) = compare($without, doctored($with, @{ $doctored{$what} }));
	isnt($difference, '', "$what is found to differ");
}
isnt((compare('failed: x', $with))[1], '', 'so is a statement that is planned with serving only');
isnt((compare($with, $with))[1], '', 'and our node without serving');

# ---- PostgreSQL's regression tests ----

# Servers of ci/server with assertions keep them.
my $regress = $node->config_data('--bindir') . '/../suites/regress';
my @files = qw(select_distinct join join_hash subselect aggregates equivclass union with memoize inherit select_parallel
  partition_join partition_prune partition_aggregate incremental_sort groupingsets tuplesort merge updatable_views rowsecurity);
SKIP:
{
	skip 'this server comes without the regression tests of PostgreSQL', 1 unless -d "$regress/sql";
	# As pg_regress does.
	local %ENV = (%ENV, PG_ABS_SRCDIR => $regress, PG_LIBDIR => $regress, PG_DLSUFFIX => '.so', PGTZ => 'America/Los_Angeles',
		PGDATESTYLE => 'Postgres, MDY', PGOPTIONS => '-c intervalstyle=postgres_verbose');
	$node->safe_psql('postgres', 'CREATE DATABASE regression TEMPLATE template0');
	$node->safe_psql('regression', 'CREATE EXTENSION learnedbtree');
	make_explained($node, 'regression');
	foreach my $file (qw(test_setup create_function_c create_misc create_index create_view create_aggregate sanity_check))
	{
		$node->psql('regression', slurp_file("$regress/sql/$file.sql"), on_error_stop => 0, timeout => 3 * patience());
	}
	train_all($node, 'regression');
	my %total;
	foreach my $file (grep { -e "$regress/sql/$_.sql" } @files)
	{
		my $count = same_plans($file, $node, 'regression', slurp_file("$regress/sql/$file.sql"));
		delete $count->{sample};
		$total{$_} += $count->{$_} foreach keys %$count;
	}
	note_counts('all of them', \%total);
	# Their scripts try much that is an error.
	cmp_ok($total{'without a plan'}, '<', $total{plans} / 5, 'most statements have a plan');
	cmp_ok($total{'not explained'}, '<', $total{statements} / 50, 'nearly all were asked for it');
	cmp_ok($total{'with our node'}, '>', 300, 'with serving our node is in many');
	cmp_ok($total{'parallel with our node'}, '>', 50, 'also in parallel ones');
}
$node->stop;
my $log = slurp_file($node->logfile);
unlike($log, qr/TRAP:|PANIC:|terminated by signal/, 'nothing has crashed');
done_testing();
