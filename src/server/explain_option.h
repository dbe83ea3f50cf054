/*
 * explain_option.h - an option of EXPLAIN that modules may add, from 18 on.
 */
#ifndef LBT_SERVER_EXPLAIN_H
#define LBT_SERVER_EXPLAIN_H

#include "postgres.h"

#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "nodes/execnodes.h"

/* Adds lines or members about a node of the plan. */
typedef void (*LbtExplainNode) (PlanState *node, ExplainState *es);

/*
 * In _PG_init: add a boolean option of this name (lower case, a constant) that needs ANALYZE.  Where it is on, the
 * function is called for each node.  Nothing happens below 18.
 */
extern void lbt_explain_declare(const char *option, LbtExplainNode function);

#endif							/* LBT_SERVER_EXPLAIN_H */
