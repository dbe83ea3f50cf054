# Applications with ORMs: Django with its migrations, SQLAlchemy with Alembic, by psycopg 3.  The programs in test/clients
# print the same answers with learnedbtree.btree_indexes = none, a list and all; in the latter two their lookups are
# served, and what compares models with the database finds nothing to change.  LBT_CLIENTS_PYTHON names a Python that has
# these packages (test/run provides one where it can).
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use LearnedBtree;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serving;
use Test::More;

my $python = $ENV{LBT_CLIENTS_PYTHON};
plan skip_all => 'no Python with Django and SQLAlchemy: LBT_CLIENTS_PYTHON names none' unless $python;
my $programs = "$FindBin::RealBin/../clients";

my $node = serving_node('clients');
my $user = $node->safe_psql('postgres', 'SELECT current_user');

# What the program prints in a database of its own, and which of these indexes have been served while it ran: their counts
# are of this database alone, and go with tables that are dropped.
sub run_in
{
	my ($program, $setting, $list, @indexes) = @_;
	my $database = "${program}_$setting";
	my ($out, $err);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION learnedbtree; CREATE EXTENSION amcheck');
	my $good = IPC::Run::run([ $python, '-B', "$programs/$program.py", $node->host, $node->port, $database, $user, $list ],
		'<', \'', '>', \$out, '2>', \$err, IPC::Run::timeout(600));
	ok($good, "$program, $setting: it runs") or diag(substr($err, -3000));
	others_have_ended($node, $database, '');
	my @uses = uses($node, $database, 'model', @indexes);
	is(amcheck_all($node, $database), '', "$program, $setting: amcheck is content");
	return ($out, join(' ', map { $uses[$_] > 0 ? $indexes[$_] : () } 0 .. $#indexes));
}

# The same answers always.  Indexes that the list does not name are served with all only, indexes of ours always.
sub same_answers
{
	my ($program, $list, $named, $others, $ours) = @_;
	my @indexes = (@$named, @$others, @$ours);
	my %lists = (none => 'none', named => $list, all => 'all');
	my %served = (none => "@$ours", named => "@$named @$ours" =~ s/ $//r, all => "@indexes");
	my %answers;
	foreach my $setting (qw(none named all))
	{
		($answers{$setting}, my $served) = run_in($program, $setting, $lists{$setting}, @indexes);
		is($served, $served{$setting}, "$program, $setting: what is served");
		is($answers{$setting}, $answers{none}, "$program, $setting: the answers are the same");
	}
	return $answers{all};
}

# The line that begins with this.
sub line_of
{
	my ($answers, $start) = @_;
	return join("\n", $answers =~ /^\Q$start\E: (.*)$/mg);
}

# ---- Django ----

my $out = same_answers('django_shop', 'shop_*_pkey, public.nothing', [qw(shop_customer_pkey shop_product_pkey shop_order_pkey)], ['shop_customer_name_key'], []);
is(line_of($out, 'makemigrations --check'), "No changes detected\nNo changes detected", 'Django: no migration is missing');
is(line_of($out, 'update_conflicts, text'), "{'code__count': 2500, 'stock__sum': 1999500, 'price__sum': 1999500}",
	'Django: bulk_create(update_conflicts=True)');
is(line_of($out, 'get_or_create'), 'False False True False', 'Django: get_or_create');
like($out, qr/^class ShopCustomer\(models\.Model\):\n.*^class ShopOrder\(models\.Model\):\n/ms, 'Django: inspectdb');
unlike($out, qr/class Learned/, 'Django: inspectdb finds no table of learnedbtree');

# ---- SQLAlchemy, Alembic ----

$out = same_answers('sqlalchemy_shop', 'sa_*_pkey, ix_sa_order_c*', [qw(sa_customer_pkey sa_product_pkey sa_order_pkey ix_sa_order_customer_id)], [], ['sa_order_placed']);
like(line_of($out, 'index'), qr/'postgresql_using': 'learnedbtree'/, 'SQLAlchemy: the index is made by postgresql_using');
is(line_of($out, 'tables'), "['sa_customer', 'sa_order', 'sa_product']", 'SQLAlchemy: no table of learnedbtree is in the schema public');
foreach my $when ('before', 'after')
{
	is(line_of($out, "autogenerate, $when"), '[]', "Alembic, $when: nothing to change");
	is(line_of($out, "autogenerate of all schemas, $when"), '[]', "Alembic, $when: nor with all schemas");
}

$node->stop;
done_testing();
