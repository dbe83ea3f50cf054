# Random choices, the same with each seed on every machine.
package Draw;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(start_drawing draw one_of chance);

my $state;

sub start_drawing { $state = $_[0]; return }

# A number below the limit.
sub draw
{
	my ($limit) = @_;
	$state = ($state * 1103515245 + 12345) & 0x7fffffff;
	return ($state >> 8) % $limit;
}

sub one_of { return $_[ draw(scalar @_) ] }
sub chance { return draw(100) < $_[0] }

1;
