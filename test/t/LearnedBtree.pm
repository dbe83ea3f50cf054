# Shared by the TAP tests: a server with learnedbtree, and short questions about an index.
package LearnedBtree;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(private_install needs_preload configure_node new_node new_small_node nothing_pinned model_state stat_of settle leaf_of change_page wait_until eventually patience amcheck_sql check_sql dump_and_restore make_scans_that_fail);

# 15 and 16 know no template of data folders: a server that is made in the usual way is a copy of one there, too.
if ($ENV{LBT_COPY_TEMPLATE})
{
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	no warnings 'redefine';
	*PostgreSQL::Test::Utils::system_or_bail = sub {
		return $run->(@_) unless "@_" =~ /^initdb -D (\S+) -A trust -N$/;
		return $run->('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $1);
	};
}

# Below 17 models need memory that only preloaded modules can have.
sub needs_preload
{
	my ($node) = @_;
	return $node->pg_version < 17;
}

# A server with files of its own, in which a test may change the extension's: its programs, which find the rest from where
# they are, the extension, and links to everything else.  Returns where it is, for PostgreSQL::Test::Cluster's install_path,
# and the folders of libraries and of extensions.
sub private_install
{
	my ($node) = @_;
	my ($folder, $bin, $lib, $share) = (PostgreSQL::Test::Utils::tempdir(), map { $node->config_data("--$_") } qw(bindir pkglibdir sharedir));
	my $prefix = $bin =~ s{/bin$}{}r;
	# A server from a Python package has libraries beside it, too.
	foreach my $linked ($prefix, glob($prefix =~ s{/[^/]+/[^/]+$}{/*.libs}r), grep { !m{^\Q$prefix\E/} } $lib, $share)
	{
		my $parent = "$folder$linked" =~ s{/[^/]+$}{}r;
		system_or_bail('mkdir', '-p', $parent);
		system_or_bail('cp', '-rs', $linked, $parent);
	}
	my ($own_lib, $own_extensions) = ("$folder$lib", "$folder$share/extension");
	foreach my $link (glob("$folder$bin/*"), glob("$own_extensions/learnedbtree*"), "$own_lib/learnedbtree.so")
	{
		next unless -f $link;
		system_or_bail('cp', '-L', '--remove-destination', readlink($link), $link);
	}
	return ("$folder$prefix", $own_lib, $own_extensions);
}

# Settings for a node that is initialized but not started.
sub configure_node
{
	my ($node) = @_;
	$node->append_conf('postgresql.conf', <<"CONF");
log_statement = none
shared_buffers = 32MB
max_connections = 50
autovacuum = off
jit = off
CONF
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'learnedbtree'\n")
	  if needs_preload($node);
}

# A started server with the extensions learnedbtree and amcheck in database postgres.
sub new_node
{
	my ($name, %params) = @_;
	my $conf = delete $params{conf} // '';
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%params);
	configure_node($node);
	$node->append_conf('postgresql.conf', $conf);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
	return $node;
}

# The same, serving all btree indexes, with few shared buffers; and pg_buffercache where the server has it.
sub new_small_node
{
	my ($name) = @_;
	my $node = new_node($name, conf => "shared_buffers = 2MB\neffective_io_concurrency = 32\nlearnedbtree.autotrain = off\n"
		  . "session_preload_libraries = 'learnedbtree'\nlearnedbtree.min_leaves = 0\nlearnedbtree.btree_indexes = 'all'\nmax_connections = 10\n");
	$node->psql('postgres', 'CREATE EXTENSION pg_buffercache');
	return $node;
}

# No buffer stays pinned, as far as the server can tell.  (Who writes pages out pins them for a moment.)
sub nothing_pinned
{
	my ($node) = @_;
  SKIP:
	{
		skip 'no pg_buffercache for this server', 1 unless $node->safe_psql('postgres', q{SELECT count(*) FROM pg_extension WHERE extname = 'pg_buffercache'});
		ok(eventually($node, 'SELECT count(*) = 0 FROM pg_buffercache WHERE pinning_backends > 0'), 'nothing stays pinned');
	}
	return;
}

# The state of an index's model.
sub model_state
{
	my ($node, $index) = @_;
	return $node->safe_psql('postgres', "SELECT state FROM learnedbtree_model('$index')");
}

# Columns of learnedbtree_stat for an index, as one string; or whether a condition on them holds.  Sessions tell what they have
# counted at the latest when they end, which may be after their clients: one that does not hold yet is asked again.
sub stat_of
{
	my ($node, $index, $columns) = @_;
	my $query = "SELECT $columns FROM learnedbtree_stat WHERE indexrelname = '$index'";
	my $answer = $node->safe_psql('postgres', $query);
	return $answer eq 'f' && eventually($node, $query) ? 't' : $answer;
}

# Wait until no client is left, and all that they have counted is told.
sub settle
{
	my ($node) = @_;
	wait_until($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
	return;
}

# What has amcheck look at the files of indexes, raising an error for what is wrong.  It takes btree indexes only, and those
# of our access method pass for such until the transaction ends.
sub amcheck_sql
{
	my $list = "'{" . join(',', @_) . "}'::regclass[]";
	return "BEGIN; UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = 'btree') WHERE oid = ANY ($list); "
	  . "SELECT bt_index_parent_check(i, true, true) FROM unnest($list) i; ROLLBACK;\n";
}

# ... and learnedbtree_check() at their models.
sub check_sql
{
	return amcheck_sql(@_) . "SELECT learnedbtree_check(i) FROM unnest('{" . join(',', @_) . "}'::regclass[]) i;\n";
}

# The leaf that has a key, of an index on one int8 column.
sub leaf_of
{
	my ($node, $index, $key) = @_;
	my $bytes = join(' ', map { sprintf('%02x', $_) } unpack('C*', pack('q<', $key)));
	return $node->safe_psql('postgres', <<"SQL");
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pageinspect;
SELECT b FROM generate_series(1, pg_relation_size('$index')::int / 8192 - 1) b, get_raw_page('$index', b) p, bt_page_items(p) i
 WHERE (get_byte(p, 8188) & 1) = 1 AND (i.itemoffset > 1 OR get_byte(p, 8180) + get_byte(p, 8181) = 0) AND i.data = '$bytes'; -- a leaf; no high key
SQL
}

# Write a page of a file, which the server does not have in memory.  Returns what was there.
sub change_page
{
	my ($file, $block, $content) = @_;
	open(my $fh, '+<', $file) or die "$file: $!";
	binmode $fh;
	sysseek($fh, $block * 8192, 0);
	sysread($fh, my $old, 8192) == 8192 or die 'short read';
	sysseek($fh, $block * 8192, 0);
	syswrite($fh, $content) == 8192 or die 'short write';
	close $fh;
	return $old;
}

# How databases are dumped, and what restores such a dump: pg_restore with these options, or (undef) psql.
my %dump_formats = (
	plain => [ ['--format=plain'], undef ],
	custom => [ ['--format=custom'], [] ],
	parallel => [ [ '--format=directory', '--jobs=2' ], ['--jobs=3'] ]);

# Dump a database in each format, into $folder/$format, and restore it as restored_$format.  Returns the formats.
sub dump_and_restore
{
	my ($node, $database, $folder) = @_;
	foreach my $format (sort keys %dump_formats)
	{
		my ($dump_options, $restore_options) = @{ $dump_formats{$format} };
		my ($file, $restored) = ("$folder/$format", "restored_$format");
		$node->command_ok([ 'pg_dump', @$dump_options, "--file=$file", $database ], "$format: dump");
		$node->safe_psql('postgres', "CREATE DATABASE $restored");
		$node->command_ok($restore_options ?
			  [ 'pg_restore', '--exit-on-error', @$restore_options, "--dbname=$restored", $file ] :
			  [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $restored, '-f', $file ], "$format: restore");
	}
	return sort keys %dump_formats;
}

# Functions for errors in the middle of scans of table t, in the order of k: fails(x) divides by zero at the row whose column
# is x; catches() does so at 20 rows, this many apart, and returns how many errors it has caught.
sub make_scans_that_fail
{
	my ($node, $column, $apart) = @_;
	my $last = 20 * $apart;
	$node->safe_psql('postgres', <<"SQL");
CREATE FUNCTION fails(at int8) RETURNS int8 LANGUAGE sql STABLE AS
    'SELECT sum(1 / ($column - \$1)) FROM (SELECT $column FROM t WHERE k > 1000000000 ORDER BY k) q';
CREATE FUNCTION catches() RETURNS int LANGUAGE plpgsql AS \$\$
DECLARE
    caught int := 0;
    rows int8[] := ARRAY(SELECT $column FROM t WHERE k > 1100000000 ORDER BY k LIMIT $last);
BEGIN
    FOR i IN 1..20 LOOP
        BEGIN
            PERFORM fails(rows[i * $apart]);
        EXCEPTION WHEN division_by_zero THEN caught := caught + 1;
        END;
    END LOOP;
    RETURN caught;
END \$\$;
SQL
	return;
}

# Poll a query until it says t; dies when it does not in good time.  While a server is restarting, psql may end
# before it has read the query, which IPC::Run takes for an error: once more, then.
sub wait_until
{
	my ($node, $query) = @_;
	foreach my $try (1 .. 20)
	{
		my $good = eval { $node->poll_query_until('postgres', $query) };
		return if $good;
		last unless $@ =~ /Broken pipe/;
	}
	die "waited in vain for: $query" . ($@ ? ": $@" : '');
}

# For how many seconds to wait for what has to come; test/run makes it more where servers are slow.
sub patience { return $PostgreSQL::Test::Utils::timeout_default; }

# Does the query say t, now or after a while?  Code, if given, is run each time before it is asked.
sub eventually
{
	my ($node, $query, %params) = @_;
	for (my $end = time + patience();;)
	{
		$params{again}->() if $params{again};
		return 1 if $node->safe_psql($params{database} // 'postgres', $query) eq 't';
		return 0 if time > $end;
		sleep(0.1);
	}
}

1;
