/*
 * explain.c - EXPLAIN (ANALYZE, LEARNEDBTREE), from 18: what index scans did.
 */
#include "postgres.h"

#include "am/am.h"
#include "am/scan.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "lib/stringinfo.h"
#include "sql/functions.h"

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
	[LBT_EV_PREFETCHED_USED] = {"Prefetched Used", "prefetched_used"},
	[LBT_EV_ROWS_PREFETCHED] = {"Rows Prefetched", "rows_prefetched"},
	[LBT_EV_ROWS_PREFETCHED_USED] = {"Rows Prefetched Used", "rows_prefetched_used"},
};

/* Counts, by LbtEvent, of a node's scan; NULL if it scans none of ours. */
static const uint64 *
node_counts(const PlanState *node)
{
	static const uint64 not_executed[LBT_SCAN_EVENTS] = {0};
	Relation	rel = NULL;
	IndexScanDesc scan = NULL;

	switch (nodeTag(node))
	{
		case T_IndexScanState:
			rel = ((const IndexScanState *) node)->iss_RelationDesc;
			scan = ((const IndexScanState *) node)->iss_ScanDesc;
			break;
		case T_IndexOnlyScanState:
			rel = ((const IndexOnlyScanState *) node)->ioss_RelationDesc;
			scan = ((const IndexOnlyScanState *) node)->ioss_ScanDesc;
			break;
		case T_BitmapIndexScanState:
			rel = ((const BitmapIndexScanState *) node)->biss_RelationDesc;
			scan = ((const BitmapIndexScanState *) node)->biss_ScanDesc;
			break;
		default:
			break;
	}
	if (rel == NULL || !lbt_scans(rel))
		return NULL;
	if (scan == NULL)
		return not_executed;
	lbt_scan_count_ahead(scan->opaque);
	return ((LbtScan *) scan->opaque)->counts;
}

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

/* All counts; in text one line of what has happened, or none. */
static void
explain_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name,
			 ExplainState *es)
{
	bool text = es->format == EXPLAIN_FORMAT_TEXT;
	const uint64 *counts;
	StringInfoData line;

	if (next_node_hook)
		next_node_hook(node, ancestors, relationship, plan_name, es);
	if (!is_on(es) || (counts = node_counts(node)) == NULL)
		return;
	initStringInfo(&line);
	if (!text)
		ExplainOpenGroup("Learned B-Tree", "Learned B-Tree", true, es);
	for (int i = 0; i < LBT_SCAN_EVENTS; i++)
		if (!text)
			ExplainPropertyInteger(event_names[i].label, NULL, (int64) counts[i], es);
		else if (counts[i] > 0 || (i == LBT_EV_VERIFIED && counts[LBT_EV_LOOKUP] > 0))
			appendStringInfo(&line, "%s%s=" UINT64_FORMAT, line.len > 0 ? " " : "",
							 event_names[i].word, counts[i]);
	if (!text)
		ExplainCloseGroup("Learned B-Tree", "Learned B-Tree", true, es);
	else if (line.len > 0)
		ExplainPropertyText("Learned B-Tree", line.data, es);
}

#endif

void
lbt_explain_init(void)
{
#ifdef LBT_EXPLAIN_OPTIONS
	lbt_register_explain_option(OPTION, take_option);
	next_validate_hook = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
	next_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
#endif
}
