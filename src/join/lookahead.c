/*
 * lookahead.c - the node that looks ahead; see join.h.
 *
 * Rows go one of two ways: as the outer side gives them (plain), or by batches
 * that are looked up ahead.  ExecProcNode() calls the way's own function until
 * its rows are used up:
 *
 *     first_row --> plain_rows <--> choose_way() <--> batch_rows
 *                                       |
 *                                       +--> outer_rows: not in this execution
 *
 * The first rows are plain: most loops have few, and a LIMIT may need no more.
 * A batch has at most as many rows as were needed before.  After one that did
 * not pay (lbt_rowbatch_paid()) some rows are plain, twice as many each time.
 * The same statement on the same data does the same: no clock decides.
 *
 * Where blocks are missing there is a next batch beside the one at hand, each
 * of half as many rows, so that reads are under way at all times:
 *
 *     rows passed on      0 ............... half ............... all of them
 *     this one's rows     being read        the later half being read
 *     next one's leaves   asked for         have come
 *     next one's rows                       asked for, being read
 */
#include "join/join.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "join/rowbatch.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "server/compat.h"
#include "utils/lsyscache.h"

/* Rows to pass on before the first batch, unless blocks are missing. */
#define FIRST_ROWS 4

/*
 * Plain rows after a batch that did not pay; doubled each time.  One batch of
 * 64 among 1,024 costs next to nothing.
 */
#define PAUSE_MIN 1024
#define PAUSE_MAX (PAUSE_MIN * 64)

/* Pages of the inner index and table that the processor's caches can hold. */
#define CACHED_PAGES 512

/* Rows to pass on where there is no model, before asking again. */
#define ROWS_WITHOUT_MODEL 64

typedef struct Lookahead
{
	CustomScanState css;
	LbtInners  *inners;			/* NULL before the first batch */
	LbtRowBatch *now;			/* NULL before the first batch */
	LbtRowBatch *next;			/* NULL: never needed */
	bool		ended;			/* the outer side has no more rows */
	bool		missing;		/* the batch before missed blocks */
	bool		unused;			/* ... was of no use, missing blocks or not */
	uint32		plain;			/* rows to pass on as they come */
	uint32		chosen;			/* what plain was when its way was chosen */
	uint32		passed;			/* rows since the last rescan, until then */
	uint32		pause;			/* plain rows after the next wasted batch */
	int64		reads_seen;		/* pgBufferUsage's, at the last plain row */

	uint64		batches;
	uint64		predicted;		/* rows */
} Lookahead;

static TupleTableSlot *next_way(Lookahead *node, uint32 taken, bool missed);

/* The outer side's next row; NULL at its end. */
static inline TupleTableSlot *
outer_row(Lookahead *node)
{
	TupleTableSlot *row;

	if (unlikely(node->ended))
		return NULL;
	row = ExecProcNode(outerPlanState(node));
	node->ended = TupIsNull(row);
	return node->ended ? NULL : row;
}

/* ---- batches ---- */

/* Begin a batch of at most size rows, within half of work_mem. */
static void
begin_batch(Lookahead *node, LbtRowBatch *rows, int size)
{
	Size		bytes = 0;
	TupleTableSlot *row;
	int			predicted;

	while (rows->n < size && bytes < (Size) work_mem * (1024 / 2) &&
		   (row = outer_row(node)) != NULL)
		bytes = lbt_rowbatch_add(node->inners, rows, node->css.ss.ps.state, row);
	predicted = rows->n > 0 ? lbt_rowbatch_predict(node->inners, rows) : 0;
	node->batches += predicted > 0;
	node->predicted += predicted;
}

/* Has the next batch been begun? */
static inline bool
is_begun(const Lookahead *node)
{
	return node->next != NULL && node->next->n > 0;
}

/* Move the next batch on, before the one at hand passes on a row. */
static void
advance_next(Lookahead *node)
{
	LbtRowBatch *now = node->now;
	int			half = lbt_lookahead_rows / 2;

	if (now->at == 0 && (node->missing || now->missed) && now->n >= half && half > 1 &&
		!node->ended && lbt_enable)
	{
		if (node->next == NULL)
			node->next = lbt_rowbatch_make(node->inners, node->css.ss.ps.state);
		begin_batch(node, node->next, half);
		lbt_rowbatch_start(node->inners, node->next);
	}
	else if (now->at == now->n / 2 && is_begun(node) && node->inners->rows)
	{
		lbt_rowbatch_look(node->inners, node->next);
		lbt_rowbatch_start(node->inners, node->next);
	}
}

/* ---- the ways ---- */

/* For ExecProcNode(): the outer side's rows, and nothing else. */
static TupleTableSlot *
outer_rows(PlanState *state)
{
	return ExecProcNode(outerPlanState(state));
}

/* The same for so many rows, or until blocks are missing. */
static TupleTableSlot *
plain_rows(PlanState *state)
{
	Lookahead  *node = (Lookahead *) state;
	TupleTableSlot *row;

	if (unlikely(node->plain == 0 ||
				 (pgBufferUsage.shared_blks_read != node->reads_seen && !node->unused)))
		return next_way(node, node->chosen - node->plain, node->plain > 0);
	row = outer_row(node);
	node->reads_seen = pgBufferUsage.shared_blks_read;
	if (unlikely(row == NULL))
		return next_way(node, node->chosen - node->plain, false);
	node->plain--;
	return row;
}

/* The rows of a batch. */
static TupleTableSlot *
batch_rows(PlanState *state)
{
	Lookahead  *node = (Lookahead *) state;
	LbtRowBatch *rows = node->now;

	if (unlikely(rows->at == rows->n))
		return next_way(node, rows->n, rows->missed);
	if (unlikely(rows->reads))
		advance_next(node);
	return lbt_rowbatch_next(node->inners, rows);
}

static void
go_plainly(Lookahead *node, uint32 rows)
{
	node->plain = node->chosen = rows;
	node->reads_seen = pgBufferUsage.shared_blks_read;
	ExecSetExecProcNode(&node->css.ss.ps, plain_rows);
}

/* At the start, and after a rescan. */
static TupleTableSlot *
first_row(PlanState *state)
{
	go_plainly((Lookahead *) state, FIRST_ROWS);
	return plain_rows(state);
}

/* ---- choosing between them ---- */

/* Prepare the first batch; false if there will be none. */
static bool
set_up(Lookahead *node)
{
	EState	   *estate = node->css.ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	node->inners = palloc(sizeof(LbtInners));
	lbt_inners_open(node->inners, &node->css);
	if (node->inners->n > 0)
		node->now = lbt_rowbatch_make(node->inners, estate);
	MemoryContextSwitchTo(old);
	node->pause = PAUSE_MIN;
	return node->now != NULL;
}

/*
 * Choose the way of the next rows.  An inner side that the processor's caches
 * hold needs no looking ahead, unless blocks are missing.
 */
static void
choose_way(Lookahead *node, bool paid)
{
	if (!lbt_enable || lbt_lookahead_rows < 2 || !lbt_inners_ready(node->inners))
		go_plainly(node, ROWS_WITHOUT_MODEL);
	else if (!paid)
	{
		go_plainly(node, node->pause);
		node->pause = Min(node->pause * 2, PAUSE_MAX);
	}
	else if (node->inners->pages < CACHED_PAGES && !node->missing)
		go_plainly(node, PG_UINT32_MAX);
	else
	{
		begin_batch(node, node->now, Min(Max(node->passed, 2), lbt_lookahead_rows));
		lbt_rowbatch_look(node->inners, node->now);
		ExecSetExecProcNode(&node->css.ss.ps, batch_rows);
	}
}

/*
 * So many rows went one way, and the next one is asked for; or blocks are
 * missing, or there are no more.  Returns the next row, or NULL at the end.
 */
static TupleTableSlot *
next_way(Lookahead *node, uint32 taken, bool missed)
{
	PlanState  *state = &node->css.ss.ps;
	bool		paid = true;
	LbtRowBatch *done;

	if (node->inners == NULL && !node->ended && !set_up(node))
	{
		ExecSetExecProcNode(state, outer_rows);
		return outer_rows(state);
	}
	if (node->now == NULL)
		return NULL;			/* it ended before the first batch */
	done = node->now;
	if (done->n > 0)
	{
		paid = lbt_rowbatch_paid(node->inners, done, &node->unused);
		if (paid)
			node->pause = PAUSE_MIN;
	}
	else
		node->unused = false;
	node->passed += taken;
	node->chosen = node->plain = 0;
	node->missing = missed;
	lbt_rowbatch_empty(node->inners, done);
	if (is_begun(node))
	{
		node->now = node->next;
		node->next = done;
		lbt_rowbatch_look(node->inners, node->now);
	}
	else if (node->ended)
		return NULL;
	else
		choose_way(node, paid);
	return state->ExecProcNodeReal(state);
}

/* ---- the node ---- */

static void
start_over(Lookahead *node)
{
	if (node->now != NULL)
		lbt_rowbatch_empty(node->inners, node->now);
	if (node->next != NULL)
		lbt_rowbatch_empty(node->inners, node->next);
	node->ended = node->missing = node->unused = false;
	node->passed = node->chosen = node->plain = 0;
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *state = &css->ss.ps;

	outerPlanState(state) = ExecInitNode(outerPlan(state->plan), estate, eflags);
	state->resultops = &TTSOpsVirtual;	/* or the outer side's, or copies' */
	state->resultopsset = true;
	state->resultopsfixed = false;

	/* A recheck joins single rows. */
	state->ExecProcNode = estate->es_epq_active == NULL ? first_row : outer_rows;
}

static void
rescan(CustomScanState *css)
{
	PlanState  *state = &css->ss.ps;

	start_over((Lookahead *) css);
	if (state->ExecProcNodeReal != outer_rows)
		ExecSetExecProcNode(state, first_row);
	if (outerPlanState(state)->chgParam == NULL)
		ExecReScan(outerPlanState(state));
}

static void
end_lookahead(CustomScanState *css)
{
	Lookahead  *node = (Lookahead *) css;

	start_over(node);
	if (node->inners != NULL)
		lbt_inners_close(node->inners);
	ExecEndNode(outerPlanState(node));
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	Lookahead  *node = (Lookahead *) css;
	List	   *names = NIL;
	LbtTally	leaves = {0};
	LbtTally	rows = {0};
	ListCell   *lc;

	/* A loop's inner side shows it. */
	foreach(lc, (List *) linitial(((CustomScan *) css->ss.ps.plan)->custom_private))
	{
		char	   *name = get_rel_name(list_nth_oid(lfirst(lc), LBT_LOOKAHEAD_INDEX));

		if (name != NULL)		/* else a trigger has dropped it */
			names = lappend(names, name);
	}
	if (names != NIL && !IsA(linitial(ancestors), NestLoop))
		ExplainPropertyList(list_length(names) > 1 ? "Indexes" : "Index", names, es);

	/* Each worker has counts of its own. */
	if (es->analyze && css->ss.ps.worker_instrument == NULL)
	{
		ExplainPropertyInteger("Batches", NULL, (int64) node->batches, es);
		ExplainPropertyInteger("Rows Predicted", NULL, (int64) node->predicted, es);
		for (int i = 0; node->inners != NULL && i < node->inners->n; i++)
		{
			lbt_tally_add(&leaves, &node->inners->inner[i].leaves);
			lbt_tally_add(&rows, &node->inners->inner[i].rows);
		}
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
lbt_place_node(Plan **input, List *keys, List *facts, List *used, int id)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *node = &scan->scan.plan;
	Plan	   *outer = *input;

	*node = *outer;
	node->type = T_CustomScan;
	node->parallel_aware = node->async_capable = false;
	node->plan_node_id = id;
	node->targetlist = columns_of(outer->targetlist, INDEX_VAR);
	node->qual = node->initPlan = NIL;
	node->lefttree = outer;
	node->righttree = NULL;
	scan->custom_scan_tlist = columns_of(outer->targetlist, OUTER_VAR);
	scan->custom_exprs = keys;
	scan->custom_private = list_make2(facts, used);
	scan->methods = &lbt_lookahead_node.plan;
	*input = node;
}
