/*
 * build.c - building the index: nbtree's build, then training.
 */
#include "am/am.h"

#include "catalog/index.h"
#include "commands/progress.h"
#include "registry/counters.h"
#include "registry/settings.h"
#include "train/train.h"
#include "server/shared.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

void
lbt_tell_no_memory(void)
{
	static bool told = false;

	if (lbt_shared_possible() || told)
		return;
	told = true;
	ereport(NOTICE,
			(errmsg("learnedbtree has no shared memory for models: its indexes work as plain btree"),
			 errhint("Add learnedbtree to shared_preload_libraries and restart the server.")));
}

/* What a DBA should know about a new index on this server. */
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
				 errhint("Use btree for unique indexes of tables that need either.")));
}

/*
 * The server knows btree's pattern operator classes by their OIDs and refuses them where they would disagree
 * with equality.  Ours have OIDs of their own.
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

/* What pg_stat_progress_create_index calls the training, which follows btree's phases. */
#define PHASE_TRAINING (PROGRESS_BTREE_PHASE_LEAF_LOAD + 1)

char *
lbt_build_phase_name(int64 phase)
{
	return phase == PHASE_TRAINING ? "training the model" : btbuildphasename(phase);
}

IndexBuildResult *
lbt_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *volatile result = NULL;
	LbtIndex   *learned;
	const char *reason;

	refuse_nondeterministic(index);
	LBT_AS_BTREE_BEGIN(index);
	{
		result = btbuild(heap, index, info);
	}
	LBT_AS_BTREE_END(index);

	learned = lbt_index_get(index);
	if (index->rd_createSubid != InvalidSubTransactionId &&
		!ReindexIsProcessingIndex(RelationGetRelid(index)))
	{
		give_notice(index, info);
		if (learned->shareable)
			lbt_stats_forget(learned->file.database, learned->oid); /* of an index long gone with its OID */
	}
	if (lbt_trainable(index, learned, &reason))
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_TRAINING);
		(void) lbt_train(index, learned);
	}
	return result;
}
