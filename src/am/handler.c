/*
 * handler.c - btree's routine with our callbacks; here builds.
 */
#include "am/am.h"

#include "catalog/index.h"
#include "fmgr.h"
#include "train/train.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* ---- CREATE INDEX: nbtree's build, then training ---- */

/* Tell the DBA what a new index cannot do on this server. */
static void
give_notice(Relation index, IndexInfo *info)
{
	lbt_tell_no_memory();
	if (LBT_ON_CONFLICT_NEEDS_BTREE && info->ii_Unique)
		ereport(WARNING,
				(errmsg("INSERT ... ON CONFLICT will not work on table \"%s\" on this server version",
						get_rel_name(index->rd_index->indrelid)),
				 errdetail("Before PostgreSQL 18 it accepts unique indexes of btree only; \"%s\" is one of another access method.",
						   RelationGetRelationName(index)),
				 errhint("Use btree for the unique indexes of tables that need INSERT ... ON CONFLICT.")));
}

/*
 * The server knows btree's pattern operator classes by OID and refuses them
 * where they disagree with equality.  Our aliases have OIDs of their own.
 */
static void
refuse_nondeterministic(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		RegProcedure compare = index_getprocid(index, i + 1, BTORDER_PROC);
		Oid			collation = index->rd_indcollation[i];

		if ((compare == F_BTTEXT_PATTERN_CMP || compare == F_BTBPCHAR_PATTERN_CMP) &&
			OidIsValid(collation) && !get_collation_isdeterministic(collation))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("pattern operator classes cannot be used with the nondeterministic collation \"%s\"",
							get_collation_name(collation)),
					 errhint("Use the type's default operator class, or a deterministic collation.")));
	}
}

static IndexBuildResult *
build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *volatile result = NULL;
	LbtIndex   *learned;

	refuse_nondeterministic(index);
	LBT_AS_BTREE(index, result = btbuild(heap, index, info));
	learned = lbt_index_get(index);
	if (index->rd_createSubid != InvalidSubTransactionId &&
		!ReindexIsProcessingIndex(RelationGetRelid(index)))
		give_notice(index, info);
	if (lbt_untrainable(index, learned) == NULL)
		(void) lbt_train(index, learned);
	return result;
}

/* ---- the routine ---- */

PG_FUNCTION_INFO_V1(learnedbtree_handler);

Datum
learnedbtree_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = lbt_bt_routine_for_our_method();

	lbt_take_scans(routine);
	routine->aminsert = lbt_insert;
	routine->ambuild = build;
	routine->amcostestimate = lbt_skip_cost;

	/* pg_upgrade restores indexes, but not the aliases that they need. */
	if (IsBinaryUpgrade && OidIsValid(lbt_am_oid()))
		(void) lbt_sync_opclasses(lbt_am_oid());
	PG_RETURN_POINTER(routine);
}
