/*
 * explain_option.c - an option of EXPLAIN; see explain_option.h.
 */
#include "server/explain_option.h"

#if PG_VERSION_NUM >= 180000

#include "commands/defrem.h"

static const char *option_name;
static LbtExplainNode explain_node;
static explain_per_node_hook_type next_node_hook = NULL;
static explain_validate_options_hook_type next_validate_hook = NULL;

/* The extension state is no more than whether the option is on. */
static bool
is_on(ExplainState *es)
{
	return GetExplainExtensionState(es, GetExplainExtensionId(option_name)) != NULL;
}

static void
take_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	static char on;

	SetExplainExtensionState(es, GetExplainExtensionId(option_name), defGetBoolean(option) ? &on : NULL);
}

static void
validate_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (next_validate_hook)
		next_validate_hook(es, options, pstate);
	if (is_on(es) && !es->analyze)
	{
		char	   *upper = pstrdup(option_name);

		for (char *c = upper; *c; c++)
			*c = pg_ascii_toupper((unsigned char) *c);
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", upper),
				 errhint("Only a statement that is executed scans indexes: EXPLAIN (ANALYZE, %s).", upper)));
	}
}

static void
show_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name, ExplainState *es)
{
	if (next_node_hook)
		next_node_hook(node, ancestors, relationship, plan_name, es);
	if (is_on(es))
		explain_node(node, es);
}

void
lbt_explain_declare(const char *option, LbtExplainNode function)
{
	option_name = option;
	explain_node = function;
	RegisterExtensionExplainOption(option, take_option);
	next_validate_hook = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
	next_node_hook = explain_per_node_hook;
	explain_per_node_hook = show_node;
}

#else

void
lbt_explain_declare(const char *option, LbtExplainNode function)
{
}

#endif
