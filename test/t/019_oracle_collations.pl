# The oracle (see Oracle.pm) over text in every kind of collation that the system has: ICU's, also such that equal
# texts may differ, libc's, and the server's own.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Oracle;
use Test::More;

libc_locale();
my $node = oracle_node('oracle_collations');
my %collation = collations($node);

# Words that sort by accents, by case, by letters that count as two or as nothing; some are equal but for case.
my $word = q{(ARRAY['straße', 'strasse', 'Strasse', 'STRASSE', 'cote', 'côte', 'coté', 'Côté', 'co-op', 'coop', 'Coop', 'résumé', 'resume', 'Resume',
	'æon', 'aeon', 'zebra', 'Zebra', 'ångström', 'a' || chr(1), '日本', '', ' ', 'item 9', 'item 10'])[1 + n % 25]};
my $words = "$word || ' ' || n / 50";
my $number = { type => 'int8', key => 'n::int8' };
my $numeric = { type => 'numeric', key => 'n / 8.0', show => 'trim_scale(@)' };
my $file = { file => 'english_words.txt', key => 'line' };

sub text_in
{
	my ($collation, %more) = @_;
	return { type => 'text', collate => $collation, key => $words, sorted => 1, %more };
}

sub shape
{
	my ($name, $columns, %more) = @_;
	return { name => $name, columns => ref $columns eq 'ARRAY' ? $columns : [$columns], share => 0.3, %more };
}

my ($icu, $nocase, $numbers, $libc, $unicode) = @collation{qw(icu icu_nocase icu_numeric libc unicode)};
my %folded = (show => 'fold(@)');
my $fold = <<'SQL';
-- the same for texts that icu_nocase takes for equal
CREATE FUNCTION fold(text) RETURNS text LANGUAGE sql STABLE AS $$ SELECT replace(lower($1 COLLATE "en-x-icu"), chr(1), '') COLLATE "C" $$;
SQL
my @shapes;
push @shapes,
	shape('icu', text_in($icu)),
	shape('icu_words', text_in($icu, real => $file), fillfactor => 20, share => 0.5),
	shape('icu_desc', text_in($icu, order => 'DESC NULLS LAST', key => "CASE WHEN n % 50 > 0 THEN $words END"), fillfactor => 10),
	shape('icu_numeric', text_in($numbers, key => q{'item ' || n / 3})),
	shape('nocase', text_in($nocase, %folded), before => $fold),
	shape('nocase_desc', text_in($nocase, %folded, real => $file, order => 'DESC'), fillfactor => 10),
	shape('varchar_icu', text_in($icu, type => 'varchar', argument => 'text'), fillfactor => 10),
	shape('bpchar_icu', text_in($icu, type => 'char(20)', argument => 'bpchar', show => 'rtrim(@)')),
	shape('icu_pattern', text_in($icu, opclass => 'text_pattern_ops', pattern => 1)),
	shape('icu_numbers', [ text_in($icu, key => "$word || n / 4000", sorted => 0), $numeric ]),
	shape('nocase_int8', [ text_in($nocase, %folded, key => "$word || n / 4000", sorted => 0), $number ]),
	shape('numbers_icu', [ { type => 'int4', key => 'n / 250', order => 'DESC' }, text_in($icu, sorted => 0, order => 'NULLS FIRST', key => "$word || NULLIF(n / 50, 7)") ]),
	shape('three_icu', [ { type => 'int2', key => 'n / 2500' }, text_in($nocase, %folded, key => $word, sorted => 0), text_in($icu, sorted => 0, order => 'DESC') ])
	if $icu;
push @shapes,
	shape('libc', text_in($libc)),
	shape('libc_words', text_in($libc, real => $file, order => 'DESC'), fillfactor => 20, share => 0.5),
	shape('libc_bpchar', text_in($libc, type => 'char(20)', argument => 'bpchar', show => 'rtrim(@)')),
	shape('libc_number', [ text_in($libc, key => "$word || n / 4000", sorted => 0), $number ])
	if $libc;
push @shapes, shape('unicode', text_in($unicode)), shape('unicode_words', text_in($unicode, real => $file, order => 'DESC')) if $unicode;
# the database's own, which is C's here, and the pattern operator class with it
push @shapes, shape('default', text_in(undef), fillfactor => 40), shape('pattern', text_in(undef, opclass => 'text_pattern_ops', pattern => 1, order => 'DESC'));

note('not on this system: ', join(', ', grep { !$collation{$_} } qw(libc icu unicode)));
try_shapes($node, @shapes);
$node->stop;
done_testing();
