# Shared by the TAP tests of faults: builds the shim (failat.c), starts servers with it, and declares its functions.
package Failat;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(build_shim with_shim declare_shim crashed_since log_size since_log);

my $shim;

# Build the shim; tests are skipped where it cannot be had.
sub build_shim
{
	plan skip_all => 'the fault shim needs Linux and the GNU C library' unless $^O eq 'linux' && `ldd --version 2>&1` =~ /GLIBC|GNU libc/;
	my $folder = PostgreSQL::Test::Utils::tempdir;
	my $log = "$folder/build.log";
	my $rc = system("make -s -C '$FindBin::RealBin/../shim' PG_CONFIG=pg_config TO='$folder' >'$log' 2>&1");
	die 'the fault shim does not build: ' . slurp_file($log) unless $rc == 0;
	return $shim = "$folder/failat.so";
}

# Run what starts a server; its processes, and all that are started by it, have the shim.
sub with_shim
{
	my ($code) = @_;
	local $ENV{LD_PRELOAD} = $shim;
	$code->();
	return;
}

sub declare_shim
{
	my ($node, $database) = @_;
	my %functions = (
		'failat_mapping(n int, repeat boolean DEFAULT false, anywhere boolean DEFAULT false)' => 'void',
		'failat_malloc(n int, repeat boolean DEFAULT false, anywhere boolean DEFAULT false)' => 'void',
		'failat_rule(kind cstring, part cstring, first int8, last int8, error int, everybody boolean DEFAULT true, times int8 DEFAULT 0)' => 'boolean',
		'failat_calls()' => 'int8', 'failat_failed()' => 'int8', 'failat_hits()' => 'int8', 'failat_off()' => 'void',
		'failat_tell(boolean)' => 'void', 'failat_clock(int8)' => 'void', 'failat_preloaded()' => 'boolean');
	$node->safe_psql($database // 'postgres',
		join('', map { "CREATE FUNCTION $_ RETURNS $functions{$_} LANGUAGE C STRICT AS '$shim';\n" } sort keys %functions));
	is($node->safe_psql($database // 'postgres', 'SELECT failat_preloaded()'), 't', 'the shim is in place');
	return;
}

sub log_size { return -s $_[0]->logfile; }
sub since_log { return substr(slurp_file($_[0]->logfile), $_[1]); }

# What in a server's log, from an offset on, says that a process has crashed; '' if nothing.
sub crashed_since
{
	my ($node, $offset) = @_;
	return join("\n", grep { /PANIC: |TRAP: |terminated by signal/ } split(/\n/, since_log($node, $offset)));
}

1;
