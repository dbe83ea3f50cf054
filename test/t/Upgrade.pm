# Shared by the TAP tests that run pg_upgrade, from an older server to the server under test.
package Upgrade;

use strict;
use warnings;

use Exporter 'import';
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(no_upgrade other_scripts start_old_node upgrade);

my @same = ('--locale=C', '--encoding=UTF8', '--data-checksums');
my $old_bindir;

# Why there can be no upgrade to a new node, or '' if there can.  LBT_OLD_PG_CONFIG names the old server's pg_config;
# without it the oldest in Debian's places is taken that has learnedbtree.
sub no_upgrade
{
	my ($new) = @_;
	my $version = int($new->pg_version->major);
	my @configs = $ENV{LBT_OLD_PG_CONFIG} || map { "/usr/lib/postgresql/$_/bin/pg_config" } 15 .. $version - 1;
	my @without;

	foreach my $old_config (grep { -x $_ } @configs)
	{
		chomp($old_bindir = `$old_config --bindir`);
		chomp(my $old_share = `$old_config --sharedir`);
		next unless -x "$old_bindir/initdb";
		return '' if -e "$old_share/extension/learnedbtree.control";
		push @without, $old_bindir;
	}
	return 'learnedbtree is not installed into the old server in ' . join(' or ', @without) if @without;
	return "no server older than $version is here (LBT_OLD_PG_CONFIG names one)";
}

# Does the old server have other SQL scripts of the extension than the new one?  Then why there can be no upgrade, else ''.
sub other_scripts
{
	my ($new) = @_;
	chomp(my $old_share = `$old_bindir/pg_config --sharedir`);
	my ($old_scripts, $new_scripts) = map { my $share = $_; join('', map { slurp_file($_) } sort glob("$share/extension/learnedbtree--*.sql")) }
	  $old_share, $new->config_data('--sharedir');
	return $old_scripts eq $new_scripts ? '' : "another learnedbtree is installed into the old server in $old_bindir";
}

# Code configures the node further, if given.
sub start_old_node
{
	my ($configure) = @_;
	note("pg_upgrade from the server in $old_bindir");
	# Its programs find their libraries themselves; lib is asked for by PostgreSQL::Test.
	my $old = PostgreSQL::Test::Cluster->new('old', install_path => $old_bindir =~ s{/bin$}{}r);
	$old->init(extra => \@same);
	configure_node($old);
	$configure->($old) if $configure;
	$old->start;
	return $old;
}

# Debian's 15 may keep a version of its own in every column's options (pg_attver), which no other
# major knows: pg_upgrade from it fails for any table, with or without learnedbtree.  This cluster is a
# scratch one, so take the options away before the upgrade.
sub forget_column_versions
{
	my ($old) = @_;
	foreach my $database ('postgres', 'template1')
	{
		my $cleared = $old->safe_psql($database, <<'SQL');
SET allow_system_table_mods = on;
WITH cleared AS (UPDATE pg_attribute SET attoptions =
		(SELECT array_agg(o) FROM unnest(attoptions) o WHERE o NOT LIKE 'pg\_attver=%')
	WHERE attoptions::text LIKE '%pg\_attver=%' RETURNING 1)
SELECT count(*) FROM cleared;
SQL
		note("columns with pg_attver in $database: $cleared");
	}
}

# Stop the old node, upgrade, start the new one, which code configures further, if given.
sub upgrade
{
	my ($old, $new, $configure) = @_;
	forget_column_versions($old);
	$old->stop;
	$new->init(extra => \@same);
	configure_node($new);
	$configure->($new) if $configure;
	my $good = $new->run_log([ 'pg_upgrade', '--no-sync', '--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
			'--old-bindir', $old_bindir, '--new-bindir', $new->config_data('--bindir'), '--socketdir', $new->host,
			'--old-port', $old->port, '--new-port', $new->port, '--copy' ]);
	ok($good, 'pg_upgrade succeeds');
	if (!$good)
	{
		foreach my $log (glob($new->data_dir . '/pg_upgrade_output.d/*/log/*.log'))
		{
			my @lines = split(/^/, slurp_file($log));
			splice(@lines, 0, -12) if @lines > 12;
			diag("$log:\n@lines") if @lines;
		}
		BAIL_OUT('pg_upgrade failed');
	}
	$new->start;
}

1;
