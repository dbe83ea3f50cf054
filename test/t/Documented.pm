# What README.md and doc/ say about server versions: their tables with a column for each version, and their sentences
# that name one.
package Documented;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(version_tables version_sentences names_version cell_of);

my $number = qr/1[5-9]/;

# The versions that a column is of: "17", "15, 16", "PostgreSQL 17, 18, 19".  Other headings that look like it are not
# understood, lest their tables go unchecked.
sub versions_of
{
	my ($heading) = @_;
	return split(/, /, $1) if $heading =~ /^(?:PostgreSQL )?($number(?:, $number)*)$/;
	die "which versions are \"$heading\"?\n" if $heading =~ /^(?:PostgreSQL |from |before |until )*$number\b(?:\W|$number|and|or|to|on|later|older)*$/i;
	return ();
}

# Links are their text.
sub cells_of
{
	my ($line) = @_;
	my ($inside) = $line =~ /^\|(.*)\|$/;
	return map { s/^\s+|\s+$|\[([^]]*)\]\([^)]*\)/$1 \/\/ ''/ger } split /\|/, $inside, -1;
}

# The tables of a file that have such columns: under which heading, the headings of the columns, the rows.
sub version_tables
{
	my ($file) = @_;
	my ($under, $code, $table, @tables) = ('', 0);
	foreach my $line (split /\n/, slurp_file($file))
	{
		$code = !$code if $line =~ /^```/;
		next if $code;
		$under = $1 if $line =~ /^#+ (.*)/;
		if ($line !~ /^\|.*\|$/)
		{
			undef $table;
		}
		elsif (!$table)
		{
			$table = { under => $under, columns => [ cells_of($line) ], rows => [] };
			push @tables, $table if grep { versions_of($_) } @{ $table->{columns} };
		}
		elsif ($line !~ /^\|-/)
		{
			push @{ $table->{rows} }, [ cells_of($line) ];
		}
	}
	return @tables;
}

# A row's cell for a version; undef if no column is of it, or several are.
sub cell_of
{
	my ($table, $row, $version) = @_;
	my @found = grep { grep { $_ == $version } versions_of($table->{columns}[$_]) } 0 .. $#{ $table->{columns} };
	return @found == 1 ? $row->[ $found[0] ] : undef;
}

sub names_version
{
	return $_[0] =~
	  /\bPostgreSQL $number\b(?!\.\d)|\b(?:on|from|before|below|since|until) $number\b(?![.,]\d)|\b$number(?:, $number)*(?: (?:and|or|to) |-|\xe2\x80\x93)$number\b|\b(?:$number)'s\b/i;
}

# The sentences of a file that name a version, code left out; the rows of those tables are no sentences, but of others.
sub version_sentences
{
	my ($file) = @_;
	my $text = slurp_file($file);
	$text =~ s/^```.*?^```$//msg;
	my %in_table = map { my $columns = join('|', @{ $_->{columns} }); ($columns => 1) } version_tables($file);
	my @sentences;
	foreach my $paragraph (split /\n\s*\n/, $text)
	{
		if ($paragraph =~ /^\|/)
		{
			my ($heading, @rows) = split /\n/, $paragraph;
			push @sentences, @rows unless $in_table{ join('|', cells_of($heading)) };
			next;
		}
		$paragraph =~ s/\n(?=- )/.\n/g;
		$paragraph =~ s/\s+/ /g;
		push @sentences, split /(?<=[.:!?]) (?=[^a-z])/, $paragraph;
	}
	return grep { names_version($_) } @sentences;
}

1;
