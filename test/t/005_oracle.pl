# The oracle (see Oracle.pm) over numbers, times and byte strings.  LBT_KEYS names a folder of real keys.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Oracle;
use Test::More;

my $number = { type => 'int8', key => 'n::int8' };
my $word = { type => 'text', collate => 'C', key => q{left('word' || lpad(n::text, 3, '0') || md5(n::text), 7 + n % 20)} };

# A shape of one column, or of those given.
sub shape
{
	my ($name, $columns, %more) = @_;
	return { name => $name, columns => ref $columns eq 'ARRAY' ? $columns : [$columns], %more };
}

my $node = oracle_node('oracle');
try_shapes($node,
	shape('int8', { type => 'int8', key => 'n::int8 * 7919 - 20000000' }),
	shape('int4_desc', { type => 'int4', key => 'n * 11', order => 'DESC' }, fillfactor => 10),
	shape('pair', [ { type => 'int4', key => 'n / 200' }, $number ]),
	shape('float8', { type => 'float8', sorted => 1, show => '@ + 0',
		key => q{CASE n % 900 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN 'Infinity' WHEN 4 THEN '-Infinity'
			ELSE (n - 9000)::float8 / 7 END} }),
	shape('stamp', { type => 'timestamptz', key => q{'2024-01-01 00:00+00'::timestamptz + n * interval '61 s'},
		real => { file => 'commit_times.txt', key => 'to_timestamp(line::float8)' } }, fillfactor => 10),
	shape('duplicates', { type => 'int8', key => '(n % 25)::int8' }, fillfactor => 50),
	shape('nulls', { type => 'int8', key => 'CASE WHEN n % 4 = 0 THEN NULL ELSE n::int8 END', order => 'NULLS FIRST' }, fillfactor => 10),
	shape('text', { type => 'text', collate => 'C', key => q{'user' || lpad(n::text, 5, '0') || left(md5(n::text), n % 7)} }, fillfactor => 30),
	shape('words', { type => 'text', collate => 'C', key => q{left(md5((n / 2)::text), 1 + n % 9)}, sorted => 1,
		real => { file => 'english_words.txt', key => 'line' } }, fillfactor => 20),
	shape('text_desc', { type => 'text', collate => 'C', key => q{lpad(n::text, 5, '0') || repeat('x', n % 5 * 200)}, order => 'DESC' }),
	shape('bytea', { type => 'bytea', key => q{int4send(n * 3) || substr('\x00ff00'::bytea, 1, n % 4)}, endless => 1 }, fillfactor => 10),
	shape('uuid', { type => 'uuid', key => q{left(lpad(to_hex(n * 211), 8, '0') || md5(n::text), 32)::uuid}, endless => 1 }),
	shape('number_text', [ { type => 'int4', key => 'n / 200' }, $word ]),
	shape('text_number', [ { type => 'text', collate => 'C', key => q{'group ' || lpad((n / 100)::text, 3, '0')} }, $number ]),
	shape('three', [ { type => 'int4', key => 'n / 2000', order => 'DESC NULLS LAST' },
		{ type => 'text', collate => 'C', key => q{'part ' || n / 100} }, { type => 'date', key => q{date '2020-01-01' + n}, order => 'NULLS FIRST' } ]));
$node->stop;
done_testing();
