# The README's SQL does what the README says: each ```sql block runs, from top to bottom in one session of a fresh
# database, and prints the ``` block that follows it.  A block without one prints no error, warning or notice.
#
# What differs between servers is in normalised() alone.  <!-- not run: REASON --> in front of a block leaves it out.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# The SQL blocks of a text: line, sql, expected (undef: none).
sub blocks_of
{
	my ($text) = @_;
	my (@blocks, $block, $kind);
	my $skip = 0;       # the last line with text was a comment that says so
	my $behind = 0;     # ... or the end of an SQL block
	my $line = 0;
	foreach (split /\n/, $text)
	{
		$line++;
		if (defined $kind)
		{
			if ($_ eq '```')
			{
				$behind = $kind eq 'sql';
				undef $kind;
			}
			elsif ($kind ne 'other')
			{
				$block->{$kind} .= "$_\n";
			}
		}
		elsif (/^```(.*)/)
		{
			$kind = $1 eq 'sql' ? 'sql' : $behind && $1 eq '' ? 'expected' : 'other';
			if ($kind eq 'sql')
			{
				$block = { line => $line, sql => '' };
				push @blocks, $block unless $skip;
			}
			$block->{expected} = '' if $kind eq 'expected';
			$skip = 0;
		}
		elsif (/\S/)
		{
			$skip = /^<!-- not run:/;
			$behind = 0;
		}
	}
	return @blocks;
}

# Only 18 counts searches, and rows in fractions; what planning reads varies; psql centers headings.
sub normalised
{
	my ($text) = @_;
	$text =~ s/^ +Index Searches: \d+\n//mg;
	$text =~ s/\b(rows=\d+)\.00\b/$1/g;
	$text =~ s/^ Planning:\n +Buffers: .*\n//mg;
	$text =~ s/^ +QUERY PLAN *\n-+$/QUERY PLAN/mg;
	$text =~ s/ +$//mg;
	$text =~ s/\n{2,}/\n/g;
	$text =~ s/^\n//;
	return $text;
}

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
configure_node($node);
$node->append_conf('postgresql.conf', "shared_buffers = 256MB\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->safe_psql('postgres', 'CREATE ROLE web');

my @blocks = blocks_of(slurp_file("$FindBin::RealBin/../../README.md"));
cmp_ok(@blocks, '>', 8, 'the README has examples');

# Between blocks: mark the output, and have scans counted at once, for which a reader's session takes a second.
my $script = "\\pset footer off\n";
$script .= "\\o /dev/null\nSELECT pg_stat_force_next_flush();\n\\o\n\\echo == block $_\n$blocks[$_]{sql}" foreach 0 .. $#blocks;
my $output = '';
IPC::Run::run([ 'psql', '-X', '-q', '-d', $node->connstr('shop') ], '<', \$script, '>&', \$output,
	IPC::Run::timeout(3 * patience()));
my %printed = $output =~ /^== block (\d+)\n(.*?)(?=^== block |\z)/msg;

foreach my $i (0 .. $#blocks)
{
	my $block = $blocks[$i];
	my $printed = normalised($printed{$i} // "(psql has ended)\n");
	my $name = "line $block->{line}: " . ($block->{sql} =~ s/\n.*//sr);
	if (defined $block->{expected}) { is($printed, normalised($block->{expected}), $name); }
	else { unlike($printed, qr/^(?:\(psql|ERROR|FATAL|PANIC|WARNING|NOTICE|invalid|\\)/m, $name); }
}

is($node->safe_psql('shop', "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'i' AND oid >= 16384"),
	'orders_customer orders_pkey', 'btree indexes are left');
$node->stop;
done_testing();
