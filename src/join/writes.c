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

#include "access/genam.h"
#include "access/table.h"
#include "am/am.h"
#include "catalog/pg_constraint.h"
#include "commands/trigger.h"
#include "join/rowbatch.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "server/bufferhint.h"
#include "server/executor.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
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

/* The new rows' column for an index's column, that a foreign key refers to. */
static AttrNumber
column_for(AttrNumber indexed, const ForeignKeyCacheInfo *key)
{
	if (key == NULL)
		return indexed;
	for (int i = 0; i < key->nkeys; i++)
		if (key->confkey[i] == indexed)
			return key->conkey[i];
	return InvalidAttrNumber;
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
find_keys_of_rows(const Write *write, Relation index, const ForeignKeyCacheInfo *key, List **facts)
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
		AttrNumber	column = column_for(index->rd_index->indkey.values[i], key);
		TargetEntry *entry = column > 0 ? source_of(write, column) : NULL;
		Oid			type = InvalidOid;

		if (entry != NULL && key != NULL)
			type = getBaseType(exprType((Node *) entry->expr));
		if (entry == NULL || !lbt_keyspec_takes(&view->keyspec.column[i], type))
			break;
		keys = lappend(keys, makeVarFromTargetEntry(INDEX_VAR, entry));
		*facts = lappend_oid(*facts, type);
	}
	return keys;
}

/* Place a node that looks into this index, for the rows' entries or a key. */
static void
place_for_index(Write *write, Oid oid, const ForeignKeyCacheInfo *key)
{
	Relation	index = lbt_open_unless_locked(oid);
	Oid			table;
	List	   *keys;
	List	   *facts;
	List	   *used = NIL;

	if (index == NULL)
		return;
	table = index->rd_index->indrelid;
	facts = list_make2_oid(oid, (Oid) (key != NULL || looks_for_rows(write->modify, index)));
	keys = find_keys_of_rows(write, index, key, &facts);
	index_close(index, AccessShareLock);
	UnlockRelationOid(table, AccessShareLock);
	if (keys == NIL)
		return;
	for (int i = 1; i <= list_length(outerPlan(write->modify)->targetlist); i++)
		used = lappend_int(used, i);
	lbt_place_node(&outerPlan(write->modify), keys, facts, used, ++*write->last_id);
}

/* Place a node for the index that a foreign key refers to. */
static void
place_for_key(Write *write, const ForeignKeyCacheInfo *key)
{
	HeapTuple	row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(key->conoid));
	Oid			index;

	if (!HeapTupleIsValid(row))
		return;
	index = ((Form_pg_constraint) GETSTRUCT(row))->conindid;
	ReleaseSysCache(row);
	place_for_index(write, index, key);
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

		/* What follows may rebuild the relcache entry, which has the list. */
		List	   *fkeys = copyObjectImpl(RelationGetFKeyList(rel));

		foreach(lc, indexes)
			place_for_index(&write, lfirst_oid(lc), NULL);
		foreach(lc, SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA ? NIL : fkeys)
			if (lbt_key_is_enforced((ForeignKeyCacheInfo *) lfirst(lc)))
			place_for_key(&write, lfirst(lc));
	}
	table_close(rel, NoLock);
}
