/*
 * explain.c - what the index scans of a statement did.
 *
 * The counts are in the scans (am/scan.c).  EXPLAIN (ANALYZE, LEARNEDBTREE) shows them node by node, from 18 on; when an
 * instrumented statement ends, they are kept until the next one, for learnedbtree_last_scan().
 */
#include "postgres.h"

#include "am/am.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "server/executor.h"
#include "sql/functions.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(learnedbtree_last_scan);

/* Scans of a statement that are kept: a plan may have one for each of thousands of partitions. */
#define SCANS_MAX 1000

/* ---- EXPLAIN ---- */

#ifdef LBT_EXPLAIN_OPTIONS

#define OPTION "learnedbtree"

static explain_per_node_hook_type next_node_hook = NULL;
static explain_validate_options_hook_type next_validate_hook = NULL;

/* The events' names in structured formats, and in text. */
static const struct
{
	const char *label;
	const char *word;
}			event_names[LBT_SCAN_EVENTS] = {
	[LBT_EV_LOOKUP] = {"Lookups", "lookups"},
	[LBT_EV_VERIFIED] = {"Verified", "verified"},
	[LBT_EV_MOVED_RIGHT] = {"Moved Right", "moved_right"},
	[LBT_EV_NO_MODEL] = {"Fallback No Model", "fallback_no_model"},
	[LBT_EV_BAD_BLOCK] = {"Fallback Block", "fallback_block"},
	[LBT_EV_BAD_PAGE] = {"Fallback Page", "fallback_page"},
	[LBT_EV_LOW] = {"Fallback Low", "fallback_low"},
	[LBT_EV_HIGH] = {"Fallback High", "fallback_high"},
	[LBT_EV_DELEGATED] = {"Delegated", "delegated"},
	[LBT_EV_PREFETCHED] = {"Prefetched", "prefetched"},
	[LBT_EV_ROWS_PREFETCHED] = {"Rows Prefetched", "rows_prefetched"},
};

/* One line, of what has happened; none where nothing has. */
static void
explain_text(const LbtScanCounts *counts, ExplainState *es)
{
	StringInfoData line;

	initStringInfo(&line);
	for (int i = 0; i < LBT_SCAN_EVENTS; i++)
		if (counts->events[i] > 0 || (i == LBT_EV_VERIFIED && counts->events[LBT_EV_LOOKUP] > 0))
			appendStringInfo(&line, "%s%s=" UINT64_FORMAT, line.len > 0 ? " " : "", event_names[i].word,
							 counts->events[i]);
	if (line.len > 0)
		ExplainPropertyText("Learned B-Tree", line.data, es);
	pfree(line.data);
}

/* The extension state is no more than whether the option is on. */
static bool
is_on(ExplainState *es)
{
	return GetExplainExtensionState(es, GetExplainExtensionId(OPTION)) != NULL;
}

static void
take_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	static char on;

	SetExplainExtensionState(es, GetExplainExtensionId(OPTION), defGetBoolean(option) ? &on : NULL);
}

static void
validate_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (next_validate_hook)
		next_validate_hook(es, options, pstate);
	if (is_on(es) && !es->analyze)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", "LEARNEDBTREE")));
}

static void
explain_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name, ExplainState *es)
{
	LbtScanCounts counts;

	if (next_node_hook)
		next_node_hook(node, ancestors, relationship, plan_name, es);
	if (!is_on(es) || !lbt_node_counts(node, &counts))
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		explain_text(&counts, es);
		return;
	}
	ExplainOpenGroup("Learned B-Tree", "Learned B-Tree", true, es);
	for (int i = 0; i < LBT_SCAN_EVENTS; i++)
		ExplainPropertyInteger(event_names[i].label, NULL, (int64) counts.events[i], es);
	ExplainCloseGroup("Learned B-Tree", "Learned B-Tree", true, es);
}

static void
declare_option(void)
{
	lbt_register_explain_option(OPTION, take_option);
	next_validate_hook = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
	next_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#endif

/* ---- learnedbtree_last_scan() ---- */

static LbtScanCounts *last_scans = NULL;	/* room for SCANS_MAX, once needed */
static int	nlast_scans = 0;

/* Keep the scans of a plan in EXPLAIN's order; *n says how many. */
static bool
collect(PlanState *node, int *n)
{
	LbtScanCounts counts;

	if (*n < SCANS_MAX && lbt_node_counts(node, &counts))
	{
		if (last_scans == NULL)
			last_scans = MemoryContextAlloc(TopMemoryContext, SCANS_MAX * sizeof(LbtScanCounts));
		last_scans[(*n)++] = counts;
	}
	return planstate_tree_walker(node, collect, n);
}

/* Statements without a scan of ours leave what is there: the one that asks for it is such a statement. */
static void
statement_ended(const QueryDesc *query)
{
	int			n = 0;

	(void) collect(query->planstate, &n);
	if (n > 0)
		nlast_scans = n;
}

#define LAST_SCAN_COLUMNS (LBT_SCAN_EVENTS + 2)

Datum
learnedbtree_last_scan(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int scan = 0; scan < nlast_scans; scan++)
	{
		const LbtScanCounts *counts = &last_scans[scan];
		Datum		values[LAST_SCAN_COLUMNS];
		bool		nulls[LAST_SCAN_COLUMNS] = {false};

		values[0] = Int32GetDatum(scan + 1);
		values[1] = ObjectIdGetDatum(counts->index);
		for (int i = 0; i < LBT_SCAN_EVENTS; i++)
			values[2 + i] = Int64GetDatum((int64) counts->events[i]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

void
lbt_explain_init(void)
{
#ifdef LBT_EXPLAIN_OPTIONS
	declare_option();
#endif
	lbt_statement.instrumented_ends = statement_ended;
}
