/*
 * effects.h - may rows be read before they are needed?  What the nodes of a
 * finished plan evaluate, and whether that has effects.
 *
 * Rows that are looked ahead for are read early.  So leave alone inputs with
 * effects: with volatile functions, row locks or changes of data anywhere
 * below, or with a subquery while any of the statement has such effects.
 */
#ifndef LBT_EFFECTS_H
#define LBT_EFFECTS_H

#include "join/join.h"

/* What is known of a whole statement. */
typedef struct LbtPlanWalk
{
	Bitmapset  *init_params;	/* set by a subquery that runs once, when its
								 * first user asks for them */
	bool		effects;		/* a subquery seen so far has some */
	int			last_id;		/* the highest plan_node_id */
	bool		any_use;		/* a loop, a subquery, or a write of many rows */
	const PlannedStmt *stmt;
	bool		asked_settings; /* has it been asked for changes_settings? */
	bool		changes_settings;	/* while it runs, perhaps */
	const Plan *early_nextval;	/* may take sequences' numbers early; or NULL */
	bool		nextval_ok;		/* what is looked at belongs to it */
} LbtPlanWalk;

/* A node's children besides the left and the right one. */
extern List *lbt_other_children(const Plan *plan);

/* Does what a node evaluates have effects, or what it does itself? */
extern bool lbt_node_has_effects(Plan *plan, LbtPlanWalk *walk);

#endif							/* LBT_EFFECTS_H */
