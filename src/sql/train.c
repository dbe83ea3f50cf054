/*
 * train.c - learnedbtree_train(regclass).
 */
#include "postgres.h"

#include "access/genam.h"
#include "am/am.h"
#include "fmgr.h"
#include "train/train.h"
#include "sql/index_arg.h"

PG_FUNCTION_INFO_V1(learnedbtree_train);

static void
report_untrained(Relation rel, LbtState state)
{
	const char *name = RelationGetRelationName(rel);

	switch (state)
	{
		case LBT_READY:
		case LBT_EMPTY:
			return;
		case LBT_TOO_LARGE:
			ereport(WARNING,
					(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
					 errmsg("the model of index \"%s\" does not fit into learnedbtree.max_model_memory, or its training into maintenance_work_mem",
							name),
					 errhint("A model takes 16 bytes a leaf and 24 bytes a knot, a training as much; raise the settings and train again.")));
			return;
		case LBT_NO_MEMORY:
			ereport(WARNING,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("no shared memory for the model of index \"%s\"", name)));
			return;
		default:
			ereport(WARNING,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("the separators of index \"%s\" are not in order", name),
					 errhint("Check the index with learnedbtree_check(), and REINDEX it if it is damaged.")));
	}
}

Datum
learnedbtree_train(PG_FUNCTION_ARGS)
{
	/* No writer is blocked: training reads what it needs page by page. */
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_CHANGE);
	LbtIndex   *index = lbt_index_get(rel);
	const char *reason;

	if (!lbt_trainable(rel, index, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot have a model", RelationGetRelationName(rel)),
				 errdetail_internal("%s.", reason),
				 errhint("It works as a plain btree; see learnedbtree_model().")));
	report_untrained(rel, lbt_train_apart(rel, index));
	index_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}
