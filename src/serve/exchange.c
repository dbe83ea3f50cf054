/*
 * exchange.c - giving a btree index's relcache entry our routine; see serve.h.
 *
 * Exchange only while our own open is the only one in this backend (rd_refcnt
 * is 1), so that no scan, insert or cursor of the old routine can meet the
 * state of ours.  Never undo it: each scan and insert asks its view at its
 * start (LbtServing.learned), and is nbtree's to its end when not served.
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

static inline bool
is_exchanged(Relation index)
{
	return index->rd_indam == &routine;
}

/* Does the entry have exactly the routine that the server gave it? */
static bool
has_btrees_routine(Relation index)
{
	return memcmp(index->rd_indam, lbt_bt_routine(), sizeof(IndexAmRoutine)) == 0;
}

const char *
lbt_index_unfit(Relation index, bool looking_into)
{
	Form_pg_class class = index->rd_rel;

	if (class->relkind != RELKIND_INDEX && class->relkind != RELKIND_PARTITIONED_INDEX)
		return "it is not an index";
	if (!lbt_is_btree(index) && !(looking_into && class->relam == lbt_am_oid()))
		return looking_into ? "it is not a btree or learnedbtree index" :
			"it is not a btree index";
	if (class->relkind == RELKIND_PARTITIONED_INDEX)
		return "it is a partitioned index, which has no pages of its own";
	if (RelationGetRelid(index) < FirstNormalObjectId || class->relisshared ||
		IsCatalogRelation(index))
		return "it is an index of a system catalog";
	if (IsToastRelation(index))
		return "it is the index of a TOAST table";
	if (looking_into ? RELATION_IS_OTHER_TEMP(index) : class->relpersistence == RELPERSISTENCE_TEMP)
		return "temporary indexes have no model";
	if (class->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		return "it is unlogged, and this is a standby";
	if (!index->rd_index->indisvalid || !index->rd_index->indisready || !index->rd_index->indislive)
		return "it is not valid";
	return NULL;
}

const char *
lbt_serve_refusal(Relation index, bool *settled)
{
	const char *reason = lbt_index_unfit(index, false);
	LbtIndexOptions options;
	LbtIndex   *view;
	bool		heapkeyspace;
	bool		allequalimage;

	if (reason)
		return reason;
	if (!is_exchanged(index) && !has_btrees_routine(index))
		return "another extension has taken it over in this session";

	/* Without a view, which is kept for long: most indexes need none. */
	if (!lbt_index_options(index, &options, &reason))
		*settled = false;
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

	/* On pages of PostgreSQL 11's format, or older, no proof holds. */
	_bt_metaversion(index, &heapkeyspace, &allequalimage);
	return heapkeyspace ? view->serving.why_not : "it has the format of PostgreSQL 11 or older";
}

void
lbt_exchange(Oid oid, bool *settled)
{
	Relation	index = RelationIdGetRelation(oid);

	if (!RelationIsValid(index))
		return;
	if (!is_exchanged(index) && lbt_serve_refusal(index, settled) == NULL)
	{
		/* Ask this last: looking may have received an invalidation. */
		if (index->rd_refcnt == 1 && has_btrees_routine(index))
		{
			if (routine.type != T_IndexAmRoutine)
				make_routine();
			index->rd_indam = &routine;
		}
		else
			*settled = false;	/* somebody here has it open */
	}
	RelationClose(index);
}
