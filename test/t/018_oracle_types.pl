# The oracle (see Oracle.pm) over types that are neither plain numbers nor byte strings, and mixtures of them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Oracle;
use Test::More;

# Numbers of every length and sign, some equal but for trailing zeros, or different in the 20th digit only.
my $numeric = { type => 'numeric', sorted => 1, show => 'trim_scale(@)', key => q{CASE
	WHEN n % 97 = 0 THEN (ARRAY['NaN', 'Infinity', '-Infinity', '0', '0.000', '1e-400', '-1e400', '9.99e130'])[1 + n / 97 % 8]::numeric
	WHEN n % 5 = 0 THEN 123456789012345678.00 + n % 400 * 0.0000000001
	WHEN n % 5 = 1 THEN (n - 10000) * power(10::numeric, n % 40 - 20)
	WHEN n % 5 = 2 THEN round((n % 2000)::numeric, n % 4)
	ELSE (n - 10000) * 3.14159 END} };
my $inet = { type => 'inet', sorted => 1, key => q{CASE n % 7 WHEN 0 THEN set_masklen('10.0.0.0'::inet + n * 37, n % 33)
		WHEN 1 THEN set_masklen('2001:db8::'::inet + n * 4294967291, n % 129) WHEN 2 THEN network(set_masklen('192.168.0.0'::inet + n, n % 33))
		ELSE '10.0.0.0'::inet + n * 37 END},
	real => { file => 'ipv4_starts.txt', key => q{'0.0.0.0'::inet + line::numeric::bigint} } };
my $mood = { type => 'mood', key => q{(ARRAY['m1', 'm2', 'm3', 'm4', 'before 1', 'before 3', 'after 4', 'm5'])[1 + n / 400 % 8]::mood} };
my $moods = <<'SQL';
CREATE TYPE mood AS ENUM ('m1', 'm2', 'm3', 'm4');
ALTER TYPE mood ADD VALUE 'before 1' BEFORE 'm1';
ALTER TYPE mood ADD VALUE 'm5';
ALTER TYPE mood ADD VALUE 'before 3' BEFORE 'm3';
ALTER TYPE mood ADD VALUE 'after 4' AFTER 'm4';
SQL
my $number = { type => 'int8', key => 'n::int8' };
my $word = { type => 'text', collate => 'C', key => q{'word ' || left(md5(n::text), n % 9)} };
my $time = { type => 'time', key => q{time '00:00' + n * interval '86.399 s'} };

sub with_order { my ($column, $order) = @_; return { %$column, order => $order } }

# A shape of one column, or of those given; these are many, so each gets a part of the transactions.
sub shape
{
	my ($name, $columns, %more) = @_;
	return { name => $name, columns => ref $columns eq 'ARRAY' ? $columns : [$columns], share => 0.2, %more };
}

my $node = oracle_node('oracle_types');
try_shapes($node,
	shape('numeric', $numeric, share => 0.4),
	shape('numeric_desc', { type => 'numeric(12,2)', argument => 'numeric', key => 'n * 1.37 - 9000', show => 'trim_scale(@)',
		order => 'DESC NULLS LAST' }, fillfactor => 10),
	shape('inet', $inet, fillfactor => 10, share => 0.4),
	shape('cidr', { type => 'cidr', argument => 'inet', sorted => 1, order => 'DESC', show => '@::inet',
		key => q{network(set_masklen('10.0.0.0'::inet + n * 997, 8 + n % 25))} }),
	shape('macaddr', { type => 'macaddr', endless => 1, key => q{('08002b' || lpad(to_hex(n * 801), 6, '0'))::macaddr} }, fillfactor => 10),
	shape('macaddr8', { type => 'macaddr8', endless => 1, order => 'DESC', key => q{('08002b' || lpad(to_hex(n * 801::bigint * 65537), 10, '0'))::macaddr8} }),
	shape('time', $time),
	shape('mood', $mood, before => $moods, fillfactor => 20),
	shape('domain', { type => 'price', argument => 'numeric', key => q{n / 4.0}, show => 'trim_scale(@)' },
		before => "CREATE DOMAIN price AS numeric CHECK (VALUE >= 0);\n"),
	shape('domain_text', { type => 'code', argument => 'text', key => q{'#' || n}, sorted => 1 },
		before => qq{CREATE DOMAIN code AS text COLLATE "C" CHECK (length(VALUE) > 1);\n}),
	# equal keys with blanks of their own would trip an assertion of the server, under btree as well
	shape('bpchar', { type => 'char(20)', argument => 'bpchar', collate => 'C', show => 'rtrim(@)', sorted => 1,
		key => q{(ARRAY['a', 'ab', 'ab ', 'b', chr(1), ''])[1 + n % 6] || n / 30 % 10 || repeat(' ', n % 3)} }, fillfactor => 10),
	shape('bpchar_free', { type => 'bpchar', collate => 'C', show => 'rtrim(@)', sorted => 1, order => 'DESC',
		key => q{'item ' || n / 2 || repeat(' ', n / 2 % 3)} }),
	shape('bpchar_pattern', { type => 'bpchar', opclass => 'bpchar_pattern_ops', pattern => 1, collate => 'C', show => 'rtrim(@)',
		sorted => 1, key => q{left(md5((n / 2)::text), 1 + n % 9) || repeat(' ', n % 9 % 4)} }),
	shape('money', { type => 'money', key => '(n * 7 - 60000)::money', order => 'DESC' }),
	shape('pg_lsn', { type => 'pg_lsn', endless => 1, key => q{'0/0'::pg_lsn + n * 1000003::numeric} }),
	shape('xid8', { type => 'xid8', endless => 1, key => q{(n::bigint * 1000003)::text::xid8} }, fillfactor => 10),
	# mixtures
	shape('mood_text', [ $mood, $word ]),
	shape('inet_int8', [ { type => 'inet', key => q{set_masklen('10.0.0.0'::inet + n / 150, 8 + n / 5000 * 8)} }, with_order($number, 'DESC') ]),
	shape('bpchar_time', [ { type => 'char(10)', argument => 'bpchar', collate => 'C', show => 'rtrim(@)', order => 'DESC NULLS LAST',
		key => q{NULLIF('shop ' || n / 300, 'shop 7')} }, $time ]),
	shape('three_types', [ $mood, with_order({ %$inet, real => undef }, 'NULLS FIRST'),
		{ type => 'timestamptz', key => q{timestamptz '2024-01-01 00:00+00' + n * interval '1 min'}, order => 'DESC' } ]),
	shape('three_orders', [ { type => 'date', key => q{date '2024-01-01' + NULLIF(n / 1500, 3)}, order => 'DESC NULLS LAST' },
		{ type => 'numeric', key => 'NULLIF(n / 50, 5) / 4.0', show => 'trim_scale(@)', order => 'NULLS FIRST' }, with_order($time, 'DESC') ]));
$node->stop;
done_testing();
