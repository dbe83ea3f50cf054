/*
 * executor.h - moments in the life of a statement, and whom to call then.
 *
 * Hooks run for every statement: with nothing to do, in a few instructions.
 */
#ifndef LBT_EXECUTOR_H
#define LBT_EXECUTOR_H

#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"

typedef struct LbtStatementCallbacks
{
	/* A statement begins, or one within it: the outermost first.  Or NULL. */
	void		(*begins) (void);

	/*
	 * The planner has looked a relation up, or something else in FROM; its
	 * indexes are described, and nothing depends on that yet.
	 */
	void		(*described) (RelOptInfo *rel);

	/* The planner has finished a plan, which may still be changed. */
	void		(*planned) (PlannedStmt *plan);

	/*
	 * Only if *looking.  The executor is about to open a statement's
	 * relations.  A statement that has routed tuples to this partition has
	 * ended, and its relations are closed.
	 */
	const bool *looking;
	void		(*starts) (const PlannedStmt *plan);
	void		(*routed) (Oid partition);

	/* Before and, without an error, after each COPY. */
	void		(*around_copy) (const CopyStmt *copy);
} LbtStatementCallbacks;

extern LbtStatementCallbacks lbt_statement;

/* The plan being executed, the innermost query's; NULL if not known. */
extern PlanState *lbt_executor_plan(void);

/* Call in _PG_init, when all of them are set. */
extern void lbt_executor_init(void);

#endif							/* LBT_EXECUTOR_H */
