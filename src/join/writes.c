/*
 * writes.c - the look-ahead node below ModifyTable, and in which indexes it
 * looks ahead (src/README, "Writes that look ahead").
 *
 *     a new row's column         is, of the source's
 *       of INSERT                  the column of the same number
 *       of UPDATE                  the column that is set, if it is; else the
 *                                  old row's, found by the source's TID
 *       of MERGE                   what its first INSERT takes
 *
 * An index is looked into if its first column is known, and it has entries for
 * all rows.
 */
#include "join/join.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "am/am.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "server/bufferhint.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"

/* The node costs some microseconds to set up: the source's rows, at least. */
#define MIN_ROWS 32

/* New rows, and the indexes of a table that they are looked up in. */
typedef struct Write
{
	Relation	table;
	Index		updated;		/* it, if rows keep what is not known; or 0 */
	Oid			root;			/* whose columns are known, if not its own */
	const List *columns;		/* of new rows, from 1 on; NULL: not known */
	bool		conflicts;		/* looks for rows that are there ... */
	const List *arbiters;		/* ... by these indexes; NIL: all */
	bool		enters;			/* new rows get entries */
	LbtLookups	lookups;		/* found */
} Write;

void
lbt_add_index(LbtLookups *lookups, Relation index, List *keys, List *types, List *facts)
{
	List	   *which = list_make2_oid(RelationGetRelid(index), index->rd_index->indrelid);
	int			nkeys = list_length(keys) - (llast_oid(facts) != 0);	/* but the end's */
	bool		varies = false;

	for (int i = 0; i < nkeys; i++)
		varies |= IsA(list_nth(keys, i), Var);
	if (!varies)
		return;
	lookups->keys = lappend(lookups->keys, keys);
	lookups->facts = lappend(lookups->facts, list_concat(list_concat(which, facts), types));
}

/*
 * May this function hash or compare a column of a partition key before the
 * server does?  Those of arrays, ranges and rows call users' functions.
 */
bool
lbt_can_route(Oid type, Oid function)
{
	char		kind = get_typtype(type);

	return function < FirstNormalObjectId && (kind == TYPTYPE_BASE || kind == TYPTYPE_ENUM) &&
		!OidIsValid(get_element_type(type));
}

/* ---- in which indexes ---- */

/* A column or constant over the node's input; NULL if it is none. */
static Node *
copy_value(const Node *value)
{
	const Var  *var = (const Var *) value;

	if (value == NULL || IsA(value, Const))
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
copy_column(const Write *write, AttrNumber number, const LbtKeyColumn *c, Oid *type)
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
		return copy_value(lbt_key_as_it_stands(value, c, type));
	return write->updated == 0 ? NULL :
		(Node *) makeVar(write->updated, number, column->atttypid, column->atttypmod,
						 column->attcollation, 0);
}

/*
 * Look into this index, if it is of use.  The planner would not wait for its
 * lock, nor need the executor.
 */
static void
add_index(Write *write, Oid oid)
{
	Relation	index = lbt_try_open(oid);
	Form_pg_index form;
	const LbtIndex *view = NULL;
	List	   *keys = NIL;
	List	   *types = NIL;
	bool		rows;

	if (index == NULL)
		return;
	form = index->rd_index;

	/* (What only BRIN has changes without new entries, from 16 on.) */
	for (int i = 0; i < form->indnatts && !write->enters &&
		 index->rd_rel->relam != BRIN_AM_OID; i++)
		write->enters = form->indkey.values[i] > 0 &&
			list_nth(write->columns, form->indkey.values[i] - 1) != NULL;
	if (form->indisvalid && heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		view = lbt_learned_view(index);
	for (int i = 0; view != NULL && i < view->keyspec.ncolumns; i++)
	{
		Oid			type = InvalidOid;
		Node	   *value = copy_column(write, form->indkey.values[i], &view->keyspec.column[i],
										&type);

		if (value == NULL || (IsA(value, Const) && ((Const *) value)->constisnull))
			break;
		keys = lappend(keys, value);
		types = lappend_oid(types, type);
	}

	/* Rows that are in the index are looked for where a conflict may be. */
	rows = write->conflicts && form->indisunique &&
		(write->arbiters == NIL || list_member_oid(write->arbiters, oid));
	lbt_add_index(&write->lookups, index, keys, types,
				  list_make5_oid(rows, list_length(keys), false, false, 0));
	relation_close(index, AccessShareLock);
}

/* Add the indexes of a table; none of a partitioned one. */
static void
add_indexes(Write *write, Relation table)
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

/* ---- of a finished plan ---- */

/*
 * What the columns of a target's new rows are, over the source's.  updated:
 * the columns that UPDATE sets; insert: MERGE's first one.
 */
static List *
list_columns(const ModifyTable *modify, Relation target, const List *updated,
			 const MergeAction *insert)
{
	const List *source = insert ? insert->targetList : outerPlan(modify)->targetlist;
	List	   *columns = NIL;
	ListCell   *lc;

	for (int column = 1; column <= RelationGetNumberOfAttributes(target); column++)
	{
		int			number = modify->operation == CMD_UPDATE ? 0 : column;
		TargetEntry *entry;

		foreach(lc, updated)
			if (lfirst_int(lc) == column)
				number = foreach_current_index(lc) + 1;
		entry = number > 0 && number <= list_length(source) ? list_nth(source, number - 1) : NULL;
		if (entry == NULL || insert != NULL || IsA(entry->expr, Const))
			columns = lappend(columns, entry ? copyObjectImpl(entry->expr) : NULL);
		else
			columns = lappend(columns, makeVarFromTargetEntry(INDEX_VAR, entry));
	}
	return columns;
}

bool
lbt_write_is_large(const ModifyTable *modify)
{
	return outerPlan(modify)->plan_rows >= MIN_ROWS;
}

/* Open the target, or the parent of several, which the planner has locked. */
static Relation
open_target(const ModifyTable *modify, const List *rtable)
{
	int			target = modify->rootRelation > 0 ? (int) modify->rootRelation :
		linitial_int(modify->resultRelations);

	return table_open(rt_fetch(target, rtable)->relid, NoLock);
}

/*
 * MERGE's first INSERT; NULL if it has none.  Nor where conditions may have
 * effects, or triggers run for deleted rows, or for the statement at its end:
 * if no row has been inserted or updated, one may drop an index, which the
 * node would have open.
 */
static const MergeAction *
find_insert(const ModifyTable *modify, Relation target)
{
	const TriggerDesc *triggers = target->trigdesc;
	const MergeAction *insert = NULL;
	ListCell   *lc;

	if (triggers != NULL &&
		(triggers->trig_insert_after_statement || triggers->trig_update_after_statement ||
		 triggers->trig_delete_after_statement))
		return NULL;
	foreach(lc, (List *) linitial(modify->mergeActionLists))
	{
		const MergeAction *action = lfirst(lc);

		if (lbt_may_have_effects(action->qual, NULL))
			return NULL;
		if (action->commandType == CMD_INSERT && insert == NULL)
			insert = action;
		if (action->commandType == CMD_DELETE && triggers != NULL &&
			(triggers->trig_delete_before_row || triggers->trig_delete_after_row))
			return NULL;
	}
	return insert;
}

/* An UPDATE's rows come from these tables; if several, each names its own. */
static void
find_updated(Write *write, const ModifyTable *modify, const List *rtable)
{
	AttrNumber	tableoid = ExecFindJunkAttributeInTlist(outerPlan(modify)->targetlist, "tableoid");
	LbtLookups *lookups = &write->lookups;
	ListCell   *target;
	ListCell   *updated;

	if (list_length(modify->resultRelations) == 1)
		write->updated = linitial_int(modify->resultRelations);
	else
	{
		lookups->route = list_make1_oid(InvalidOid);
		lookups->partition_key = list_make1(makeVar(INDEX_VAR, tableoid, OIDOID, -1, InvalidOid,
													0));
	}
	forboth(target, modify->resultRelations, updated, modify->updateColnosLists)
	{
		Relation	table = table_open(rt_fetch(lfirst_int(target), rtable)->relid, NoLock);

		write->columns = list_columns(modify, table, lfirst(updated), NULL);
		add_indexes(write, table);
		if (lookups->route != NIL)
			lookups->route = lappend_oid(lookups->route, RelationGetRelid(table));
		table_close(table, NoLock);
	}
}

/* Rows inserted into a partitioned table are routed by columns of theirs. */
static void
find_routed(Write *write, Relation root)
{
	PartitionKey partition = RelationGetPartitionKey(root);
	List	   *route = list_make1_oid(RelationGetRelid(root));
	List	   *key = NIL;

	for (int i = 0; i < partition->partnatts; i++)
	{
		int			column = partition->partattrs[i];
		Node	   *value = column > 0 ? copy_value(list_nth(write->columns, column - 1)) : NULL;

		if (value == NULL ||
			!lbt_can_route(partition->parttypid[i], partition->partsupfunc[i].fn_oid))
			return;
		key = lappend(key, value);
		route = lappend_oid(route, partition->partsupfunc[i].fn_oid);
	}
	write->lookups = (LbtLookups)
	{
		.keys = list_make1(unconstify(List *, write->columns)),
		.route = lappend_oid(route, write->conflicts),
		.partition_key = key
	};
}

LbtLookups
lbt_find_write(const ModifyTable *modify, const List *rtable)
{
	Write		write = {
		.conflicts = modify->onConflictAction != ONCONFLICT_NONE,
		.arbiters = modify->arbiterIndexes,
		.enters = modify->operation != CMD_UPDATE
	};
	Relation	target;
	const MergeAction *insert = NULL;

	if (!lbt_write_is_large(modify))
		return write.lookups;
	target = open_target(modify, rtable);

	/* Of MERGE nobody knows which partitions get rows: it locks no others. */
	if (modify->operation == CMD_MERGE && modify->rootRelation == 0)
		insert = find_insert(modify, target);
	if (modify->operation == CMD_UPDATE)
		find_updated(&write, modify, rtable);
	else if (modify->operation == CMD_INSERT || insert != NULL)
	{
		write.columns = list_columns(modify, target, NIL, insert);
		add_indexes(&write, target);
		if (target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
			lbt_btree_indexes != LBT_BTREE_NONE)
			find_routed(&write, target);
	}
	table_close(target, NoLock);
	return write.enters ? write.lookups : (LbtLookups) {0};
}

LbtLookups
lbt_find_writes(Oid partition, const List *route, const List *columns)
{
	Write		write = {
		.columns = columns,
		.root = linitial_oid(route),
		.conflicts = llast_oid(route) != 0,
		.enters = true
	};
	Relation	table = try_relation_open(partition, RowExclusiveLock);

	if (table != NULL)
	{
		lbt_statement.routed(partition);
		add_indexes(&write, table);
		relation_close(table, NoLock);
	}
	return write.lookups;
}
