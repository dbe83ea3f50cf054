/*
 * lookahead.c - the node that looks ahead; see join.h.
 *
 * Rows go one of two ways: as the outer side gives them (plain), at first and
 * while all feeds pause, or by way of outerrows.h.  Each way is a function:
 *
 *     first_row --> plain_rows <--> choose_way() <--> rows_ahead
 *                                       |
 *                                       +--> outer_rows: not in this execution
 */
#include "join/join.h"

#include "commands/explain.h"
#include "join/outerrows.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"

/*
 * Rows to pass on before the first batch, unless blocks are missing: of most
 * loops that have fewer, opening indexes would take longer than their lookups.
 */
#define FIRST_ROWS 4

typedef struct Lookahead
{
	CustomScanState css;
	ExecProcNodeMtd way;		/* the next row's */
	LbtOuterRows rows;			/* opened before the first batch */
	uint64		plain_until;	/* the first row that goes the other way */
	bool		wakes;			/* ... unless a block is missing before */
	int64		reads_seen;		/* pgBufferUsage's, at the last plain row */
} Lookahead;

static TupleTableSlot *choose_way(Lookahead *node, bool missed);

/* ---- the ways ---- */

/* The outer side's rows, and nothing else. */
static TupleTableSlot *
outer_rows(PlanState *state)
{
	return ExecProcNode(outerPlanState(state));
}

/* The same up to some row, or until blocks are missing. */
static TupleTableSlot *
plain_rows(PlanState *state)
{
	Lookahead  *node = (Lookahead *) state;
	LbtOuterRows *rows = &node->rows;
	bool		missed = node->wakes && pgBufferUsage.shared_blks_read != node->reads_seen;
	TupleTableSlot *row;

	if (unlikely(missed || rows->at >= node->plain_until))
		return choose_way(node, missed);
	row = lbt_outer_next(rows);
	node->reads_seen = pgBufferUsage.shared_blks_read;
	rows->at = ++rows->end;
	rows->plain++;
	return row ? row : choose_way(node, false);
}

static void
go_plainly(Lookahead *node, uint64 until, bool wakes)
{
	node->plain_until = until;
	node->wakes = wakes;
	node->reads_seen = pgBufferUsage.shared_blks_read;
	node->way = plain_rows;
}

/* Rows that are looked up ahead, until nobody does. */
static TupleTableSlot *
rows_ahead(PlanState *state)
{
	Lookahead  *node = (Lookahead *) state;
	bool		pauses;
	TupleTableSlot *row = lbt_outer_row(&node->rows, &pauses);

	if (pauses)
		go_plainly(node, 0, false);
	return row ? row : choose_way(node, false);
}

/*
 * At the start, and after a rescan.  Open partitions before an INSERT does, so
 * that their indexes can be served from its first row on.
 */
static TupleTableSlot *
first_row(PlanState *state)
{
	Lookahead  *node = (Lookahead *) state;
	bool		named = linitial(((CustomScan *) state->plan)->custom_private) != NIL;

	go_plainly(node, node->rows.end + (named ? FIRST_ROWS : 0), true);
	return plain_rows(state);
}

/* Choose the next row's way, if any.  missed: plain rows missed blocks. */
static TupleTableSlot *
choose_way(Lookahead *node, bool missed)
{
	PlanState  *state = &node->css.ss.ps;
	LbtOuterRows *rows = &node->rows;
	uint64		resume;
	bool		wakes = false;

	if (rows->ended)
	{
		lbt_outer_end(rows);
		return NULL;
	}
	if (rows->copies == NULL && lbt_lookahead_rows >= 2 && !lbt_write_is_limited())
		lbt_outer_open(rows, &node->css);
	if (rows->nindexes == 0 && rows->route == NULL)
	{
		node->way = outer_rows;
		return outer_rows(state);
	}
	if (missed)
		rows->nowhere.resume = rows->nowhere.length = 0;
	if (node->plain_until > 0)
		rows->posted = rows->at;	/* those were not looked at */
	resume = rows->nindexes > 0 ? PG_UINT64_MAX : 0;
	for (int i = 0; i < rows->nindexes; i++)
	{
		LbtFeed    *feed = &rows->index[i].feed;
		uint64		item = lbt_outer_item(rows, rows->index[i].part);

		if (missed)
			lbt_feed_wake(feed);
		if (feed->pause.resume < PG_UINT64_MAX)
			resume = Min(resume, rows->at + Max(item, feed->pause.resume) - item);
		wakes |= !feed->unused;
	}
	resume = Max(resume, rows->nowhere.resume);
	if (resume > rows->at)
		go_plainly(node, resume, wakes);
	else
		node->way = rows_ahead;
	return node->way(state);
}

/* ---- what ExecProcNode() calls ---- */

static TupleTableSlot *
passed_row(PlanState *state)
{
	return ((Lookahead *) state)->way(state);
}

/* The row for expressions, which are compiled for virtual tuples. */
static TupleTableSlot *
as_virtual(TupleTableSlot *row, TupleTableSlot *copy)
{
	int			natts = copy->tts_tupleDescriptor->natts;

	if (TTS_IS_VIRTUAL(row))
		return row;
	slot_getallattrs(row);
	ExecClearTuple(copy);
	memcpy(copy->tts_values, row->tts_values, natts * sizeof(Datum));
	memcpy(copy->tts_isnull, row->tts_isnull, natts * sizeof(bool));
	return ExecStoreVirtualTuple(copy);
}

/* The columns of the next row for which conditions hold. */
static TupleTableSlot *
evaluated_row(PlanState *state)
{
	Lookahead  *node = (Lookahead *) state;
	ExprContext *econtext = state->ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *row;

		ResetExprContext(econtext);
		row = node->way(state);
		if (TupIsNull(row))
			return NULL;
		econtext->ecxt_scantuple = as_virtual(row, node->css.ss.ss_ScanTupleSlot);
		if (ExecQual(state->qual, econtext))
			return state->ps_ProjInfo ? ExecProject(state->ps_ProjInfo) :
				econtext->ecxt_scantuple;
		InstrCountFiltered1(state, 1);
	}
}

/* ---- the node ---- */

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *state = &css->ss.ps;

	outerPlanState(state) = ExecInitNode(outerPlan(state->plan), estate, eflags);
	((Lookahead *) css)->rows.node = css;
	state->resultops = &TTSOpsVirtual;	/* or the outer side's, or copies' */
	state->resultopsset = true;
	state->resultopsfixed = false;

	/* A recheck joins single rows. */
	((Lookahead *) css)->way = estate->es_epq_active == NULL ? first_row : outer_rows;
	state->ExecProcNode = state->qual || state->ps_ProjInfo ? evaluated_row : passed_row;
}

static void
rescan(CustomScanState *css)
{
	PlanState  *state = &css->ss.ps;

	lbt_outer_restart(&((Lookahead *) css)->rows);
	((Lookahead *) css)->rows.ended = false;
	if (((Lookahead *) css)->way != outer_rows)
		((Lookahead *) css)->way = first_row;
	if (outerPlanState(state)->chgParam == NULL)
		ExecReScan(outerPlanState(state));
}

static void
end_lookahead(CustomScanState *css)
{
	lbt_outer_close(&((Lookahead *) css)->rows);
	ExecEndNode(outerPlanState(css));
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	Lookahead  *node = (Lookahead *) css;
	List	   *names = NIL;
	LbtTally	leaves = {0};
	LbtTally	rows = {0};
	uint64		batches = 0;
	uint64		predicted = 0;
	ListCell   *lc;

	/* A loop's inner side shows it. */
	foreach(lc, (List *) linitial(((CustomScan *) css->ss.ps.plan)->custom_private))
	{
		char	   *name = get_rel_name(list_nth_oid(lfirst(lc), LBT_LOOKAHEAD_INDEX));

		if (name != NULL)		/* else a trigger has dropped it */
			names = lappend(names, name);
	}
	if (names != NIL && (ancestors == NIL || !IsA(linitial(ancestors), NestLoop)))
		ExplainPropertyList(list_length(names) > 1 ? "Indexes" : "Index", names, es);

	/* Each worker has counts of its own. */
	if (es->analyze && css->ss.ps.worker_instrument == NULL)
	{
		for (int i = 0; i < node->rows.nindexes; i++)
		{
			const LbtFeed *feed = &node->rows.index[i].feed;

			batches += feed->batches;
			predicted += feed->predicted;
			lbt_tally_add(&leaves, &feed->leaves);
			lbt_tally_add(&rows, &feed->rows);
		}
		ExplainPropertyInteger("Batches", NULL, (int64) batches, es);
		ExplainPropertyInteger("Rows Predicted", NULL, (int64) predicted, es);
		lbt_explain_tally("Leaves", &leaves, es);
		lbt_explain_tally("Row Blocks", &rows, es);
	}
}

/* Rows come by functions of their own: see above. */
const LbtNodeKind lbt_lookahead_node =
LBT_NODE_KIND("Learned Look-Ahead", Lookahead,
			  .BeginCustomScan = begin,
			  .EndCustomScan = end_lookahead,
			  .ReScanCustomScan = rescan,
			  .ExplainCustomScan = explain);

/* ---- the plan node ---- */

/*
 * A target list's columns, as Vars of this kind.  A NULL stays what it is in
 * the node's own: ModifyTable wants it for a dropped column.
 */
static List *
columns_of(const List *targetlist, int varno)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst(lc));

		if (varno != INDEX_VAR || !IsA(entry->expr, Const) || !((Const *) entry->expr)->constisnull)
			entry->expr = (Expr *) makeVarFromTargetEntry(varno, entry);
		columns = lappend(columns, entry);
	}
	return columns;
}

void
lbt_place_node(Plan **input, const LbtLookups *lookups, List *used, int id)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *node = &scan->scan.plan;
	Plan	   *outer = *input;
	List	   *all = NIL;

	for (int i = 1; used == NIL && i <= list_length(outer->targetlist); i++)
		all = lappend_int(all, i);
	*node = *outer;
	node->type = T_CustomScan;
	node->parallel_aware = node->async_capable = false;
	node->plan_node_id = id;
	node->targetlist = columns_of(outer->targetlist, INDEX_VAR);
	node->qual = node->initPlan = NIL;
	node->lefttree = outer;
	node->righttree = NULL;
	scan->custom_scan_tlist = columns_of(outer->targetlist, OUTER_VAR);
	scan->custom_exprs = lcons(lookups->partition_key, lookups->keys);
	scan->custom_private = list_make3(lookups->facts, used ? used : all, lookups->route);
	scan->methods = &lbt_lookahead_node.plan;
	*input = node;
}
