/*
 * writekeys.c - in which indexes a write's rows are looked up; see join.h.
 *
 * An index is looked into if its first column is known, and it has entries for
 * all rows.  Generated columns and expressions are not known.
 */
#include "join/join.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "am/am.h"
#include "catalog/pg_am.h"
#include "nodes/makefuncs.h"
#include "server/bufferhint.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

Node *
lbt_copy_value(const Node *value)
{
	const Var  *var = (const Var *) value;

	if (IsA(value, Const))
		return copyObjectImpl(value);
	return IsA(value, Var) && (var->varno == INNER_VAR || var->varno == INDEX_VAR) ?
		(Node *) makeVar(INDEX_VAR, var->varattno, var->vartype, var->vartypmod,
						 var->varcollid, 0) : NULL;
}

/*
 * What a column of the table's new rows is; NULL if it is not known.  Sets
 * *type to what it is compared as, if not the index column's.
 */
static Node *
copy_column(const LbtWrite *write, AttrNumber number, const LbtKeyColumn *c, Oid *type)
{
	FormData_pg_attribute *column;
	Node	   *value;

	if (number <= 0)
		return NULL;
	column = TupleDescAttr(RelationGetDescr(write->table), number - 1);
	if (OidIsValid(write->root))
		number = get_attnum(write->root, NameStr(column->attname));
	if (column->attgenerated || number <= 0 || number > list_length(write->columns))
		return NULL;
	value = list_nth(write->columns, number - 1);
	if (value != NULL)
		return lbt_copy_value(lbt_key_as_it_stands(value, c, type));
	return write->updated == 0 ? NULL :
		(Node *) makeVar(write->updated, number, column->atttypid, column->atttypmod,
						 column->attcollation, 0);
}

/* Will rows be looked for that are in the index already? */
static bool
looks_for_rows(const LbtWrite *write, Relation index)
{
	return write->conflicts && index->rd_index->indisunique &&
		(write->arbiters == NIL || list_member_oid(write->arbiters, RelationGetRelid(index)));
}

/* Find new rows' keys in an index; NIL if there is nothing to look up. */
static List *
find_keys_of_rows(const LbtWrite *write, Relation index, const LbtKeySpec *spec, List **types)
{
	List	   *keys = NIL;
	bool		varies = false;

	for (int i = 0; i < spec->ncolumns; i++)
	{
		Oid			type = InvalidOid;
		Node	   *value = copy_column(write, index->rd_index->indkey.values[i], &spec->column[i],
										&type);

		if (value == NULL || (IsA(value, Const) && ((Const *) value)->constisnull))
			break;
		varies |= !IsA(value, Const);
		keys = lappend(keys, value);
		*types = lappend_oid(*types, type);
	}
	return varies ? keys : NIL;
}

/* Look into this index, if it is of use. */
static void
add_index(LbtWrite *write, Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);
	List	   *types = NIL;
	List	   *keys = NIL;
	LbtIndex   *view;

	/* (What only BRIN has changes without new entries, from 16 on.) */
	for (int i = 0; i < index->rd_index->indnatts && !write->enters &&
		 index->rd_rel->relam != BRIN_AM_OID; i++)
		write->enters = index->rd_index->indkey.values[i] > 0 &&
			list_nth(write->columns, index->rd_index->indkey.values[i] - 1) != NULL;
	if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_index->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		(view = lbt_learned_view(index)) != NULL)
		keys = find_keys_of_rows(write, index, &view->keyspec, &types);
	if (keys != NIL)
	{
		write->lookups.keys = lappend(write->lookups.keys, keys);
		write->lookups.facts = lappend(write->lookups.facts,
									   lbt_lookahead_facts(oid, RelationGetRelid(write->table),
														   looks_for_rows(write, index),
														   list_length(keys), false, false,
														   types));
	}
	index_close(index, AccessShareLock);
}

void
lbt_write_indexes(LbtWrite *write, Relation table)
{
	List	   *indexes;
	ListCell   *lc;

	if (table->rd_rel->relkind != RELKIND_RELATION || !lbt_is_heap(table))
		return;
	write->table = table;
	indexes = RelationGetIndexList(table);
	foreach(lc, indexes)
		add_index(write, lfirst_oid(lc));
}

LbtLookups
lbt_find_writes(Oid partition, const List *route, const List *columns)
{
	LbtWrite	write = {
		.columns = columns,
		.root = linitial_oid(route),
		.conflicts = llast_oid(route) != 0,
		.enters = true
	};
	Relation	table = try_relation_open(partition, RowExclusiveLock);

	if (table != NULL)
	{
		lbt_statement.routed(partition);
		lbt_write_indexes(&write, table);
		relation_close(table, NoLock);
	}
	return write.lookups;
}
