/*
 * writes.c - the look-ahead node below ModifyTable; see join.h.
 *
 *     Insert on t                      Insert on t
 *       -> source              =>        -> Custom Scan (Learned Look-Ahead)
 *                                             -> source
 *
 * The source's columns are the new rows'.  So a node looks ahead in each
 * served index of the table, for the leaf where the new entry goes (with ON
 * CONFLICT, for the row that is there, too), and in the index of each foreign
 * key, for the row that the check will look for when the statement ends.
 *
 * An UPDATE's source has the columns that it sets.  An index is looked into if
 * its first column is among them.
 *
 * Triggers may change a row, or refuse it: then what was looked up for it is
 * of no use.  Left out: MERGE, partitioned targets, partial indexes, columns
 * that are expressions or generated.
 */
#include "join/join.h"

#include "access/table.h"
#include "am/am.h"
#include "catalog/pg_constraint.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "server/bufferhint.h"
#include "server/executor.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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

/*
 * Place a node that looks into this index.  columns: the new rows' column for
 * each column of the index, 0 if there is none.  rows: look for a row, too.
 */
static void
place_for_index(Write *write, Oid oid, const AttrNumber *columns, bool rows)
{
	Relation	index = RelationIdGetRelation(oid);
	List	   *keys = NIL;
	List	   *facts = list_make2_oid(oid, (Oid) rows);
	LbtIndex   *view;

	if (!RelationIsValid(index))
		return;
	if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_index->indisvalid &&
		lbt_scans(index) && !RelationUsesLocalBuffers(index) &&
		RelationGetIndexPredicate(index) == NIL &&
		(view = lbt_index_get(index))->serving.learned)
		for (int i = 0; i < view->keyspec.ncolumns; i++)
		{
			AttrNumber	column = columns ? columns[i] : index->rd_index->indkey.values[i];
			TargetEntry *entry = column > 0 ? source_of(write, column) : NULL;
			Oid			type = entry && columns ? exprType((Node *) entry->expr) : InvalidOid;

			if (entry == NULL || !lbt_keyspec_takes(&view->keyspec.column[i], type))
				break;
			keys = lappend(keys, makeVarFromTargetEntry(INDEX_VAR, entry));
			facts = lappend_oid(facts, type);
		}
	RelationClose(index);
	if (keys != NIL)
	{
		List	   *used = NIL;

		for (int i = 1; i <= list_length(outerPlan(write->modify)->targetlist); i++)
			used = lappend_int(used, i);
		lbt_place_node(&outerPlan(write->modify), keys, facts, used, ++*write->last_id);
	}
}

/* Place a node for the index that a foreign key refers to. */
static void
place_for_key(Write *write, const ForeignKeyCacheInfo *key)
{
	HeapTuple	row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(key->conoid));
	AttrNumber	columns[INDEX_MAX_KEYS] = {0};
	Oid			oid;
	Relation	index;

	if (!HeapTupleIsValid(row))
		return;
	oid = ((Form_pg_constraint) GETSTRUCT(row))->conindid;
	ReleaseSysCache(row);
	index = RelationIdGetRelation(oid);
	if (!RelationIsValid(index))
		return;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		for (int j = 0; j < key->nkeys; j++)
			if (index->rd_index->indkey.values[i] == key->confkey[j])
				columns[i] = key->conkey[j];
	RelationClose(index);
	place_for_index(write, oid, columns, true);
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
	bool		may;

	if (!lbt_write_is_large(modify) || modify->operation != CMD_INSERT ||
		modify->returningLists != NIL || modify->onConflictAction == ONCONFLICT_UPDATE)
		return false;
	rel = open_target(modify, rtable);
	may = true;
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		may &= rel->trigdesc->triggers[i].tgisinternal;
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
			place_for_index(&write, lfirst_oid(lc), NULL,
							modify->onConflictAction != ONCONFLICT_NONE &&
							list_member_oid(modify->arbiterIndexes, lfirst_oid(lc)));
		list_free(indexes);
		foreach(lc, RelationGetFKeyList(rel))
			place_for_key(&write, lfirst(lc));
	}
	table_close(rel, NoLock);
}
