/*
 * writes.c - the look-ahead node below ModifyTable; see join.h.
 *
 *     Insert on t                      Insert on t
 *       -> source              =>        -> Custom Scan (Learned Look-Ahead)
 *                                             -> source
 *
 * A node looks ahead in the served indexes of the table, for the leaf where
 * the new entry goes (with ON CONFLICT, for the row that is there, too).
 * am/rowsbehind.c does it for the rows that foreign keys refer to.
 *
 *     a new row's column         is, of the source's
 *       of INSERT                  the column of the same number
 *       of UPDATE                  the column that is set, if it is
 *       of MERGE                   what its first INSERT computes
 *       generated                  computed from these
 *     an index's column
 *       or condition             computed from these
 *
 * Only what is cheap is computed.  An index is looked into if its first column
 * is known.  Triggers may change a row, or refuse it, and MERGE may find that
 * it is there: then what was looked up for it is of no use.  Partitioned
 * targets are left out.
 */
#include "join/join.h"

#include "access/genam.h"
#include "access/table.h"
#include "am/am.h"
#include "join/rowbatch.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "server/executor.h"
#include "server/guard.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* The node costs some microseconds to set up: the source's rows, at least. */
#define MIN_ROWS 32

typedef struct Write
{
	const ModifyTable *modify;
	Relation	table;
	const MergeAction *insert;	/* MERGE's first one */
	List	   *keys;			/* of each index to look into */
	List	   *facts;
} Write;

/* An expression, on its way from a new row's columns to the source's. */
typedef struct Key
{
	const Write *write;
	int			functions;
	bool		unfit;
} Key;

static Node *copy_key(Node *node, Key *key);

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

/* What a column of new rows is, or NULL. */
static Node *
copy_column(AttrNumber column, Key *key)
{
	const Write *write = key->write;
	const List *source = outerPlan(write->modify)->targetlist;
	const List *computed = write->insert ? write->insert->targetList : NIL;
	TargetEntry *entry;
	Node	   *value;
	int			number;

	if (column > 0 && TupleDescAttr(RelationGetDescr(write->table), column - 1)->attgenerated)
	{
		value = build_column_default(write->table, column);
		key->unfit |= !lbt_key_folds(value);
		return key->unfit ? NULL :
			copy_key((Node *) expression_planner((Expr *) value), key);
	}
	if (column > 0 && computed != NIL)
	{
		entry = list_nth(computed, column - 1);
		return copy_key((Node *) entry->expr, key);
	}
	number = computed == NIL ? source_of(write, column) : 0;
	entry = number < 1 || number > list_length(source) ? NULL : list_nth(source, number - 1);
	key->unfit |= entry == NULL;
	if (key->unfit || IsA(entry->expr, Const))
		return entry == NULL ? NULL : copyObjectImpl(entry->expr);
	return (Node *) makeVarFromTargetEntry(INDEX_VAR, entry);
}

/* Copy an expression over a new row's columns; MERGE's are the source's. */
static Node *
copy_key(Node *node, Key *key)
{
	const Var  *var = (const Var *) node;

	if (node == NULL || key->unfit)
		return NULL;
	key->unfit = !lbt_key_fits(node, &key->functions) ||
		(IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN);
	if (key->unfit)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, copy_key, key);
	if (var->varno == INNER_VAR)
		return (Node *) makeVar(INDEX_VAR, var->varattno, var->vartype, var->vartypmod,
								var->varcollid, 0);
	return copy_column(var->varattno, key);
}

static inline bool
is_null(const Node *value)
{
	return IsA(value, Const) && ((const Const *) value)->constisnull;
}

/* Will rows be looked for that are in the index already? */
static bool
looks_for_rows(const ModifyTable *modify, Relation index)
{
	return modify->onConflictAction != ONCONFLICT_NONE && index->rd_index->indisunique &&
		(modify->arbiterIndexes == NIL ||
		 list_member_oid(modify->arbiterIndexes, RelationGetRelid(index)));
}

/*
 * May this column of pg_index, expressions or the condition, be asked for?
 * The server computes what is constant of it, if it has not yet: by functions
 * that may raise errors and notices, though the statement may write no row.
 */
static bool
may_read(Relation index, AttrNumber column)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, column, &isnull);

	return isnull || lbt_key_folds(stringToNode(TextDatumGetCString(value)));
}

/* An index's condition, true if it has none. */
static Node *
find_condition(Relation index, Key *key)
{
	Node	   *condition;

	key->unfit = !may_read(index, Anum_pg_index_indpred);
	if (key->unfit)
		return NULL;
	condition = (Node *) make_ands_explicit(RelationGetIndexPredicate(index));
	condition = copy_key(condition, key);
	return key->unfit ? NULL : eval_const_expressions(NULL, condition);
}

/*
 * Find new rows' keys in an index, behind the condition that its rows meet;
 * NIL if there is nothing to look up.
 */
static List *
find_keys_of_rows(const Write *write, Relation index, int ncolumns, List **facts)
{
	List	   *expressions = NIL;
	int			nexpressions = 0;
	Key			key = {.write = write};
	Node	   *condition = find_condition(index, &key);
	bool		varies = false;
	List	   *keys;

	if (key.unfit ||
		(IsA(condition, Const) && (is_null(condition) || !((Const *) condition)->constvalue)))
		return NIL;
	keys = list_make1(IsA(condition, Const) ? NULL : condition);
	for (int i = 0; i < ncolumns; i++)
	{
		AttrNumber	column = index->rd_index->indkey.values[i];
		Node	   *value;

		if (column != 0)
			value = copy_column(column, &key);
		else
		{
			if (nexpressions == 0 && may_read(index, Anum_pg_index_indexprs))
				expressions = RelationGetIndexExpressions(index);
			key.unfit = expressions == NIL;
			value = key.unfit ? NULL : copy_key(list_nth(expressions, nexpressions++), &key);
		}
		if (key.unfit || is_null(value))
			break;
		varies |= !IsA(value, Const);
		keys = lappend(keys, value);
		*facts = lappend_oid(*facts, InvalidOid);
	}
	return varies ? keys : NIL;
}

/*
 * Look into this index, if it is of use.  What is constant is computed here;
 * an error (1 / 0) is none of a statement that writes no row.
 */
static void
add_index(Write *write, Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);
	List	   *facts = list_make2_oid(oid, (Oid) looks_for_rows(write->modify, index));
	List	   *volatile keys = NIL;
	LbtIndex   *view;

	if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_index->indisvalid &&
		(view = lbt_learned_view(index)) != NULL)
	{
		int			ncolumns = view->keyspec.ncolumns;

		LBT_GUARD_BEGIN_SILENTLY();
		{
			keys = find_keys_of_rows(write, index, ncolumns, &facts);
		}
		LBT_GUARD_END(keys = NIL);
	}
	index_close(index, AccessShareLock);
	if (keys == NIL)
		return;
	write->keys = lappend(write->keys, keys);
	write->facts = lappend(write->facts, facts);
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

/*
 * MERGE's first INSERT; NULL if it has none, or inserts into another table
 * than the one it changes: the parent, of which only one partition is left.
 */
static const MergeAction *
find_insert(const ModifyTable *modify)
{
	ListCell   *lc;

	if (modify->nominalRelation != (Index) linitial_int(modify->resultRelations))
		return NULL;
	foreach(lc, (List *) linitial(modify->mergeActionLists))
	{
		const MergeAction *action = lfirst(lc);

		if (action->commandType == CMD_INSERT)
			return action;
	}
	return NULL;
}

void
lbt_place_for_write(ModifyTable *modify, const List *rtable, int *last_id)
{
	Write		write = {.modify = modify};
	List	   *used = NIL;
	List	   *indexes;
	ListCell   *lc;

	if (!lbt_write_is_large(modify) || (modify->operation == CMD_MERGE &&
										(write.insert = find_insert(modify)) == NULL))
		return;
	lbt_statement.writes(rt_fetch(linitial_int(modify->resultRelations), rtable)->relid);
	write.table = open_target(modify, rtable);
	if (write.table->rd_rel->relkind == RELKIND_RELATION && lbt_is_heap(write.table))
	{
		indexes = RelationGetIndexList(write.table);
		foreach(lc, indexes)
			add_index(&write, lfirst_oid(lc));
	}
	table_close(write.table, NoLock);
	for (int i = 1; i <= list_length(outerPlan(modify)->targetlist); i++)
		used = lappend_int(used, i);
	if (write.keys != NIL)
		lbt_place_node(&outerPlan(modify), write.keys, write.facts, used, ++*last_id);
}
