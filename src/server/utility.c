/*
 * utility.c - the server's hook for utility statements; see utility.h.
 */
#include "server/utility.h"

#include "tcop/utility.h"

static ProcessUtility_hook_type next_hook = NULL;
static void (*before_copy) (const CopyStmt *copy);
static void (*after_copy) (const CopyStmt *copy);

static void
process(PlannedStmt *plan, const char *text, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
		QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	const CopyStmt *copy = IsA(plan->utilityStmt, CopyStmt) ? (const CopyStmt *) plan->utilityStmt : NULL;

	if (copy)
		before_copy(copy);
	if (next_hook)
		next_hook(plan, text, read_only_tree, context, params, environment, dest, completion);
	else
		standard_ProcessUtility(plan, text, read_only_tree, context, params, environment, dest, completion);
	if (copy)
		after_copy(copy);
}

void
lbt_utility_around_copy(void (*before) (const CopyStmt *copy), void (*after) (const CopyStmt *copy))
{
	before_copy = before;
	after_copy = after;
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = process;
}
