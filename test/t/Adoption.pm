# Shared by the TAP tests of learnedbtree_adopt() and learnedbtree_release().
package Adoption;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(adopt release access_methods amcheck dangling);

# Below 18 taking over an index has a price that must be agreed to; so it is here.
sub adopt
{
	my ($node, $database, @indexes) = @_;
	$node->safe_psql($database, join(';', 'SET client_min_messages = error',
			map { "SELECT learnedbtree_adopt('$_', true)" } @indexes));
}

sub release
{
	my ($node, $database, @indexes) = @_;
	$node->safe_psql($database, join(';', 'SET client_min_messages = error',
			map { "SELECT learnedbtree_release('$_')" } @indexes));
}

# "index method" for each index of a schema, in one line.
sub access_methods
{
	my ($node, $database, $schema) = @_;
	$schema //= 'public';
	return $node->safe_psql($database, <<"SQL");
SELECT string_agg(concat_ws(' ', c.relname, a.amname), ', ' ORDER BY c.relname COLLATE "C")
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE c.relkind IN ('i', 'I') AND c.relnamespace = '$schema'::regnamespace
SQL
}

# Check the file of an index, or of its partitions, whatever the access method is now; how many there were.
sub amcheck
{
	my ($node, $database, $index) = @_;
	return $node->safe_psql($database, <<"SQL");
SELECT count(CASE amname WHEN 'btree' THEN bt_index_parent_check(c.oid, true, true)::text
		ELSE learnedbtree_check(c.oid, true, true)::text END)
	FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'i'
	AND (c.oid = '$index'::regclass OR c.oid IN (SELECT relid FROM pg_partition_tree('$index')))
SQL
}

# What the catalogs say of indexes that does not fit together, '' if nothing: an index of ours depends on our access
# method or on operator classes that do, and no other one does.
sub dangling
{
	my ($node, $database) = @_;
	return $node->safe_psql($database, <<'SQL');
WITH ours AS (SELECT oid FROM pg_am WHERE amname = 'learnedbtree'),
needed AS (
	SELECT objid AS index FROM pg_depend d JOIN ours ON d.refobjid = ours.oid
		WHERE d.refclassid = 'pg_am'::regclass AND d.classid = 'pg_class'::regclass
	UNION
	SELECT d.objid FROM pg_depend d JOIN pg_opclass o ON d.refobjid = o.oid JOIN ours ON o.opcmethod = ours.oid
		WHERE d.refclassid = 'pg_opclass'::regclass AND d.classid = 'pg_class'::regclass)
SELECT format('%s: of access method %s, which is not there', c.oid::regclass, c.relam)
	FROM pg_class c WHERE c.relkind IN ('i', 'I') AND NOT EXISTS (SELECT FROM pg_am a WHERE a.oid = c.relam)
UNION ALL
SELECT format('%s: is learnedbtree, but does not depend on it', c.oid::regclass)
	FROM pg_class c JOIN ours ON c.relam = ours.oid WHERE c.relkind IN ('i', 'I') AND c.oid NOT IN (SELECT index FROM needed)
UNION ALL
SELECT format('%s: depends on learnedbtree, but is none', index)
	FROM needed LEFT JOIN pg_class c ON c.oid = index LEFT JOIN ours ON c.relam = ours.oid
	WHERE ours.oid IS NULL AND (c.oid IS NULL OR c.relkind IN ('i', 'I'))
UNION ALL
SELECT format('%s: depends on the access method %s times', objid, count(*))
	FROM pg_depend d JOIN ours ON d.refobjid = ours.oid
	WHERE d.refclassid = 'pg_am'::regclass AND d.classid = 'pg_class'::regclass GROUP BY objid HAVING count(*) > 1
SQL
}

1;
