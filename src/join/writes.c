/*
 * writes.c - the look-ahead node below ModifyTable; see join.h.
 *
 *     Insert on t                      Insert on t
 *       -> source              =>        -> Custom Scan (Learned Look-Ahead)
 *                                             -> source
 *
 * The source's columns are the new rows'.  So a node looks ahead in each
 * served index of the table, for the leaf where the new entry goes (with ON
 * CONFLICT, for the row that is there, too).  am/rowsbehind.c does it for the
 * rows that foreign keys refer to.
 *
 * An UPDATE's source has the columns that it sets.  An index is looked into if
 * its first column is among them.
 *
 * Triggers may change a row, or refuse it: then what was looked up for it is
 * of no use.  Left out: MERGE, partitioned targets, partial indexes, columns
 * that are expressions or generated.
 */
#include "join/join.h"

#include "access/genam.h"
#include "access/table.h"
#include "am/am.h"
#include "join/rowbatch.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "server/executor.h"
#include "utils/rel.h"

/* The node costs some microseconds to set up: the source's rows, at least. */
#define MIN_ROWS 32

typedef struct Write
{
	ModifyTable *modify;
	int			ncolumns;		/* of the source */
	int		   *last_id;		/* the highest plan_node_id */
} Write;

/* The source's entry for a column of new rows; NULL: it has none. */
static TargetEntry *
source_of(const Write *write, AttrNumber column)
{
	const ModifyTable *modify = write->modify;
	TargetEntry *entry;
	int			number = column;

	if (modify->operation == CMD_UPDATE)
	{
		ListCell   *lc;

		number = 0;
		foreach(lc, (List *) linitial(modify->updateColnosLists))
		{
			if (lfirst_int(lc) == column)
				number = foreach_current_index(lc) + 1;
		}
	}
	if (number < 1 || number > write->ncolumns)
		return NULL;
	entry = list_nth(outerPlan(modify)->targetlist, number - 1);

	/* A NULL may stand for a column that is generated. */
	return IsA(entry->expr, Const) && ((Const *) entry->expr)->constisnull ? NULL : entry;
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
find_keys_of_rows(const Write *write, Relation index, List **facts)
{
	List	   *keys = NIL;
	LbtIndex   *view;

	if (index->rd_rel->relkind != RELKIND_INDEX || !index->rd_index->indisvalid ||
		!lbt_scans(index) || RelationUsesLocalBuffers(index) ||
		RelationGetIndexPredicate(index) != NIL)
		return NIL;
	view = lbt_index_get(index);
	for (int i = 0; view->serving.learned && i < view->keyspec.ncolumns; i++)
	{
		AttrNumber	column = index->rd_index->indkey.values[i];
		TargetEntry *entry = column > 0 ? source_of(write, column) : NULL;

		if (entry == NULL)
			break;
		keys = lappend(keys, makeVarFromTargetEntry(INDEX_VAR, entry));
		*facts = lappend_oid(*facts, InvalidOid);
	}
	return keys;
}

/* Place a node that looks into this index. */
static void
place_for_index(Write *write, Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);
	List	   *facts = list_make2_oid(oid, (Oid) looks_for_rows(write->modify, index));
	List	   *keys = find_keys_of_rows(write, index, &facts);
	List	   *used = NIL;

	index_close(index, AccessShareLock);
	if (keys == NIL)
		return;
	for (int i = 1; i <= list_length(outerPlan(write->modify)->targetlist); i++)
		used = lappend_int(used, i);
	lbt_place_node(&outerPlan(write->modify), keys, facts, used, ++*write->last_id);
}

bool
lbt_write_is_large(const ModifyTable *modify)
{
	return (modify->operation == CMD_INSERT || modify->operation == CMD_UPDATE) &&
		list_length(modify->resultRelations) == 1 && outerPlan(modify)->plan_rows >= MIN_ROWS;
}

/* Open the target, which the planner has locked. */
static Relation
open_target(const ModifyTable *modify, const List *rtable)
{
	return table_open(rt_fetch(linitial_int(modify->resultRelations), rtable)->relid, NoLock);
}

bool
lbt_write_may_number(const ModifyTable *modify, const List *rtable)
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

void
lbt_place_for_write(ModifyTable *modify, const List *rtable, int *last_id)
{
	Write		write = {.modify = modify,.last_id = last_id};
	Relation	rel;
	ListCell   *lc;

	if (!lbt_write_is_large(modify))
		return;
	write.ncolumns = list_length(outerPlan(modify)->targetlist);
	lbt_statement.writes(rt_fetch(linitial_int(modify->resultRelations), rtable)->relid);
	rel = open_target(modify, rtable);
	if (rel->rd_rel->relkind == RELKIND_RELATION && lbt_is_heap(rel))
	{
		List	   *indexes = RelationGetIndexList(rel);

		foreach(lc, indexes)
			place_for_index(&write, lfirst_oid(lc));
	}
	table_close(rel, NoLock);
}
