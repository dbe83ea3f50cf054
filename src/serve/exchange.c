/*
 * exchange.c - giving a btree index's relcache entry our routine; see serve.h.
 *
 * We exchange only while our own open is the only one in this backend
 * (rd_refcnt is 1).  So no scan, insert or cursor of the old routine exists
 * that could meet the state of ours.  An entry that is open keeps its routine
 * through invalidations (RelationReloadIndexInfo); one that nobody has open is
 * thrown away, and comes back with btree's.
 *
 * When the setting changes, entries keep our routine until they are thrown
 * away: each scan and insert asks its view (LbtIndex.learned) at its start,
 * and is nbtree's from the first call to the last.
 */
#include "serve/serve.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "am/am.h"
#include "catalog/catalog.h"
#include "registry/settings.h"
#include "train/train.h"
#include "miscadmin.h"

static IndexAmRoutine routine;	/* ours; zero before the first exchange */

/* btree's routine; all that shares the state of a scan or insert is ours. */
static void
make_routine(void)
{
	memcpy(&routine, lbt_bt_routine(), sizeof(routine));
	routine.aminsert = lbt_insert;
	routine.ambeginscan = lbt_beginscan;
	routine.amrescan = lbt_rescan;
	routine.amgettuple = lbt_gettuple;
	routine.amgetbitmap = lbt_getbitmap;
	routine.amendscan = lbt_endscan;
	routine.ammarkpos = lbt_markpos;
	routine.amrestrpos = lbt_restrpos;
}

/* Does the entry have exactly the routine that the server gave it? */
static bool
has_btrees_routine(Relation index)
{
	return memcmp(index->rd_indam, lbt_bt_routine(), sizeof(IndexAmRoutine)) == 0;
}

/* Does it have ours? */
static inline bool
is_exchanged(Relation index)
{
	return index->rd_indam == &routine;
}

LbtRefusal
lbt_index_unfit(Relation index, bool looking_into)
{
	Form_pg_class class = index->rd_rel;
	bool		partitioned = class->relkind == RELKIND_PARTITIONED_INDEX;

	if (class->relkind != RELKIND_INDEX && !partitioned)
		return lbt_refuse(ERRCODE_WRONG_OBJECT_TYPE, "it is not an index",
						  "That of a primary key or unique constraint has the constraint's name.");
	if (!lbt_is_btree(index) && !(looking_into && class->relam == lbt_am_oid()))
		return lbt_refuse(ERRCODE_WRONG_OBJECT_TYPE,
						  looking_into ? "it is not a btree or learnedbtree index" :
						  "it is not a btree index", NULL);
	if (partitioned)
		return lbt_refuse(ERRCODE_WRONG_OBJECT_TYPE,
						  "it is a partitioned index, which has no pages of its own",
						  "Name one of its partitions' indexes; pg_partition_tree() lists them.");
	if (RelationGetRelid(index) < FirstNormalObjectId || class->relisshared ||
		IsCatalogRelation(index))
		return lbt_refuse(ERRCODE_FEATURE_NOT_SUPPORTED, "it is an index of a system catalog",
						  NULL);
	if (IsToastRelation(index))
		return lbt_refuse(ERRCODE_FEATURE_NOT_SUPPORTED, "it is the index of a TOAST table", NULL);
	if (looking_into ? RELATION_IS_OTHER_TEMP(index) : class->relpersistence == RELPERSISTENCE_TEMP)
		return lbt_refuse(ERRCODE_FEATURE_NOT_SUPPORTED, "temporary indexes have no model", NULL);
	if (class->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		return lbt_refuse(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						  "it is unlogged, and this is a standby", NULL);
	if (!index->rd_index->indisvalid || !index->rd_index->indisready || !index->rd_index->indislive)
		return lbt_refuse(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "it is not valid",
						  "Its build did not finish; REINDEX it or drop it.");
	return lbt_refuse(0, NULL, NULL);
}

/* Is its format PostgreSQL 11's or older?  There no proof on a page holds. */
static bool
has_old_format(Relation index)
{
	bool		heapkeyspace;
	bool		allequalimage;

	_bt_metaversion(index, &heapkeyspace, &allequalimage);
	return !heapkeyspace;
}

const char *
lbt_serve_refusal(Relation index, bool *sure)
{
	const char *reason;
	LbtIndex   *view;
	LbtIndexOptions options;

	if (sure)
		*sure = true;
	reason = lbt_index_unfit(index, false).reason;
	if (reason)
		return reason;
	if (!is_exchanged(index) && !has_btrees_routine(index))
		return "another extension has taken it over in this session";

	/* Without a view, which is kept for long: most indexes need none. */
	if (!lbt_index_options(index, &options, &reason))
	{
		if (sure)
			*sure = false;
		return reason;
	}
	if (reason)
		return reason;
	view = lbt_index_get(index);
	if (!lbt_trainable(index, view, &reason))
		return reason;

	/* It may have grown into min_leaves since the view was made. */
	if (view->serving.why_not)
	{
		view->serving.at = 0;
		view = lbt_index_get(index);
	}
	if (has_old_format(index))
		return "it has the format of PostgreSQL 11 or older";
	return view->serving.why_not;
}

bool
lbt_exchange(Oid oid, bool *settled)
{
	Relation	index = RelationIdGetRelation(oid);
	bool		sure = true;
	bool		served;

	if (!RelationIsValid(index))
		return false;
	if (is_exchanged(index))
		served = lbt_index_get(index)->serving.learned;
	else
		served = index->rd_rel->relkind == RELKIND_INDEX && lbt_is_btree(index) &&
			index->rd_indam != NULL && lbt_serve_refusal(index, &sure) == NULL;

	/* Ask this last: looking may have received an invalidation. */
	if (served && !is_exchanged(index))
	{
		if (index->rd_refcnt == 1 && has_btrees_routine(index))
		{
			if (routine.type != T_IndexAmRoutine)
				make_routine();
			index->rd_indam = &routine;
		}
		else
			served = sure = false;	/* somebody here has it open */
	}
	if (!sure)
		*settled = false;
	RelationClose(index);
	return served;
}
