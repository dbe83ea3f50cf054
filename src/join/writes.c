/*
 * writes.c - the look-ahead node below ModifyTable; see join.h.
 *
 *     Insert on t                      Insert on t
 *       -> source              =>        -> Custom Scan (Learned Look-Ahead)
 *                                             -> source
 *
 * A node looks ahead in the served indexes of the table, for the leaf where
 * the new entry goes (with ON CONFLICT, for the row that is there, too).
 *
 *     a new row's column         is, of the source's
 *       of INSERT                  the column of the same number
 *       of UPDATE                  the column that is set, if it is; else the
 *                                  old row's, found by the source's TID
 *       of MERGE                   what its first INSERT takes
 *
 * An UPDATE enters all indexes if it sets a column of one.
 *
 * An index is looked into if its first column is known, and it has entries for
 * all rows.  Nothing is computed: generated columns, expressions, and what
 * MERGE's INSERT computes are not known.  Triggers may change a row, or refuse
 * it, and MERGE may find that it is there: then what was looked up for it is
 * of no use.  Partitioned targets are left out.
 */
#include "join/join.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "am/am.h"
#include "catalog/pg_am.h"
#include "catalog/pg_am.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "server/bufferhint.h"
#include "utils/rel.h"

/* The node costs some microseconds to set up: the source's rows, at least. */
#define MIN_ROWS 32

typedef struct Write
{
	const ModifyTable *modify;
	Relation	table;
	const MergeAction *insert;	/* MERGE's first one */
	List	   *keys;			/* of each index to look into */
	List	   *facts;
	bool		enters;			/* new rows get entries */
} Write;

/* The number of the source's column for a column of new rows; 0: none. */
static int
source_of(const Write *write, AttrNumber column)
{
	ListCell   *lc;

	if (write->modify->operation == CMD_INSERT)
		return column;
	foreach(lc, (List *) linitial(write->modify->updateColnosLists))
	{
		if (lfirst_int(lc) == column)
			return foreach_current_index(lc) + 1;
	}
	return 0;
}

/*
 * What a column of new rows is, over the source's, or a column of the target,
 * for the old row's; NULL if it is not known.
 * Sets *type to what it is compared as, if not the index column's.
 */
static Node *
copy_column(const Write *write, AttrNumber column, const LbtKeyColumn *c, Oid *type)
{
	const List *source = outerPlan(write->modify)->targetlist;
	TargetEntry *entry;
	const Var  *value;
	int			number;

	if (column <= 0 || TupleDescAttr(RelationGetDescr(write->table), column - 1)->attgenerated)
		return NULL;
	if (write->insert != NULL)
	{
		entry = list_nth(write->insert->targetList, column - 1);
		value = (const Var *) lbt_key_as_it_stands((Node *) entry->expr, c, type);
		if (IsA(value, Const))
			return copyObjectImpl(value);
		return IsA(value, Var) && value->varno == INNER_VAR ?
			(Node *) makeVar(INDEX_VAR, value->varattno, value->vartype, value->vartypmod,
							 value->varcollid, 0) : NULL;
	}
	number = source_of(write, column);
	if (number < 1 && write->modify->operation == CMD_UPDATE)
	{
		Form_pg_attribute old = TupleDescAttr(RelationGetDescr(write->table), column - 1);

		return (Node *) makeVar(linitial_int(write->modify->resultRelations), column,
								old->atttypid, old->atttypmod, old->attcollation, 0);
	}
	if (number < 1 || number > list_length(source))
		return NULL;
	entry = list_nth(source, number - 1);
	return IsA(entry->expr, Const) ? copyObjectImpl(entry->expr) :
		(Node *) makeVarFromTargetEntry(INDEX_VAR, entry);
}

/* Will rows be looked for that are in the index already? */
static bool
looks_for_rows(const ModifyTable *modify, Relation index)
{
	return modify->onConflictAction != ONCONFLICT_NONE && index->rd_index->indisunique &&
		(modify->arbiterIndexes == NIL ||
		 list_member_oid(modify->arbiterIndexes, RelationGetRelid(index)));
}

/* Find new rows' keys in an index; NIL if there is nothing to look up. */
static List *
find_keys_of_rows(const Write *write, Relation index, const LbtKeySpec *spec, List **types)
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
add_index(Write *write, Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);
	List	   *types = NIL;
	List	   *keys = NIL;
	LbtIndex   *view;

	/* (What only BRIN has changes without new entries, from 16 on.) */
	for (int i = 0; i < index->rd_index->indnatts && !write->enters &&
		 index->rd_rel->relam != BRIN_AM_OID; i++)
		write->enters = source_of(write, index->rd_index->indkey.values[i]) > 0;
	if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_index->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		(view = lbt_learned_view(index)) != NULL)
		keys = find_keys_of_rows(write, index, &view->keyspec, &types);
	if (keys != NIL)
	{
		write->keys = lappend(write->keys, keys);
		write->facts = lappend(write->facts,
							   lbt_lookahead_facts(oid, RelationGetRelid(write->table),
												   looks_for_rows(write->modify, index),
												   list_length(keys), false, false, types));
	}
	index_close(index, AccessShareLock);
}

bool
lbt_write_is_large(const ModifyTable *modify)
{
	return modify->operation != CMD_DELETE && list_length(modify->resultRelations) == 1 &&
		outerPlan(modify)->plan_rows >= MIN_ROWS;
}

/* Open the target, which the planner has locked. */
static Relation
open_target(const ModifyTable *modify, const List *rtable)
{
	return table_open(rt_fetch(linitial_int(modify->resultRelations), rtable)->relid, NoLock);
}

bool
lbt_write_nextval_ok(const ModifyTable *modify, const List *rtable)
{
	Relation	rel;
	const TupleConstr *checks;
	bool		may = true;

	if (!lbt_write_is_large(modify) || modify->operation != CMD_INSERT ||
		contain_volatile_functions((Node *) modify->returningLists) ||
		contain_volatile_functions((Node *) modify->withCheckOptionLists) ||
		contain_volatile_functions((Node *) modify->onConflictSet) ||
		contain_volatile_functions(modify->onConflictWhere))
		return false;
	rel = open_target(modify, rtable);
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		may &= rel->trigdesc->triggers[i].tgisinternal;
	checks = RelationGetDescr(rel)->constr;
	for (int i = 0; checks != NULL && i < checks->num_check; i++)
		may &= !contain_volatile_functions(stringToNode(checks->check[i].ccbin));
	table_close(rel, NoLock);
	return may;
}

/*
 * MERGE's first INSERT; NULL if it has none, or inserts into another table
 * than the one it changes: the parent, of which only one partition is left.
 * Nor where it deletes rows before which a trigger runs: until a row is
 * inserted or updated, that may drop an index which the node would have open.
 */
static const MergeAction *
find_insert(const ModifyTable *modify, Relation table)
{
	const MergeAction *insert = NULL;
	ListCell   *lc;

	if (modify->nominalRelation != (Index) linitial_int(modify->resultRelations))
		return NULL;
	foreach(lc, (List *) linitial(modify->mergeActionLists))
	{
		const MergeAction *action = lfirst(lc);

		if (action->commandType == CMD_INSERT && insert == NULL)
			insert = action;
		if (action->commandType == CMD_DELETE && table->trigdesc != NULL &&
			table->trigdesc->trig_delete_before_row)
			return NULL;
	}
	return insert;
}

void
lbt_place_for_write(ModifyTable *modify, const List *rtable, int *last_id)
{
	Write		write = {.modify = modify,.enters = modify->operation != CMD_UPDATE};
	List	   *indexes;
	ListCell   *lc;

	if (!lbt_write_is_large(modify))
		return;
	write.table = open_target(modify, rtable);
	if (modify->operation == CMD_MERGE)
		write.insert = find_insert(modify, write.table);
	if (write.table->rd_rel->relkind == RELKIND_RELATION && lbt_is_heap(write.table) &&
		(modify->operation != CMD_MERGE || write.insert != NULL))
	{
		indexes = RelationGetIndexList(write.table);
		foreach(lc, indexes)
			add_index(&write, lfirst_oid(lc));
	}
	table_close(write.table, NoLock);
	if (write.keys != NIL && write.enters)
		lbt_place_node(&outerPlan(modify), write.keys, write.facts, NIL, ++*last_id);
}
