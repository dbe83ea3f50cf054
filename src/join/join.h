/*
 * join.h - nested loops that look ahead: a node of ours on their outer side
 * (src/README, "Nested loops that look ahead").
 *
 *     Nested Loop                             joins as ever
 *       -> Custom Scan (Learned Look-Ahead)   takes 1, 2, 4 ... 64 outer rows,
 *            -> outer side                    looks all up in the inner index,
 *                                             passes them on one by one
 *       -> Index Scan on inner table          uses the prediction for the row
 *
 * The same node stands below ModifyTable (writes.c), and above a plan with
 * subqueries that look up its rows; these it evaluates itself.
 */
#ifndef LBT_JOIN_H
#define LBT_JOIN_H

#include "postgres.h"

#include "server/executor.h"

/*
 * A plan node's custom_private holds three lists: for each index, one of OIDs,
 * as follows; as integers, from 1 on, the columns of outer rows that the join
 * uses; and if the indexes are partitions', the partitioned table, and the
 * functions that hash the columns of its key, or compare them with its bounds.
 * Its custom_exprs hold that key, or NIL; and for each index, the keys of the
 * bound at which a scan begins: equalities of leading columns, and maybe a
 * bound of the next column; and maybe the bound of that column at which it
 * ends.  A key is a column, a constant, or a parameter
 * from further out, as it stands or relabelled: nothing fails that is
 * evaluated early.  For an UPDATE of one table it may be a column of that (a
 * Var of another table than INDEX_VAR): of the old row, whose TID is in the
 * outer row.
 *
 * Of an UPDATE of partitions: 0 and these, in place of the partitioned table,
 * and as the key a column with their OID.  The indexes of an INSERT are not
 * known before its rows come: then what is known of each of its columns, in
 * place of their keys, and after the functions, 1 if it looks for rows.
 */
typedef enum LbtLookaheadFact
{
	LBT_LOOKAHEAD_INDEX,		/* the index, and its table */
	LBT_LOOKAHEAD_TABLE,
	LBT_LOOKAHEAD_ROWS,			/* 1: the inner scan fetches rows */
	LBT_LOOKAHEAD_EQUAL,		/* how many keys are equalities */
	LBT_LOOKAHEAD_PAST,			/* 1: the bound is after what equals the keys */
	LBT_LOOKAHEAD_BACKWARD,		/* 1: the scan goes backward from there */
	LBT_LOOKAHEAD_END,			/* 1: the last key is the end's; 2: and what
								 * equals it is before that; 0: no end */
	LBT_LOOKAHEAD_TYPES			/* from here on: each key's type */
} LbtLookaheadFact;

/* place.c: in _PG_init. */
extern void lbt_join_init(void);

/* ... put nodes that look ahead into a finished plan. */
extern void lbt_look_ahead(PlannedStmt *stmt, bool for_cursor);

/* ... the indexes that scans read by themselves, not with other processes. */
extern List *lbt_scanned_indexes(const PlannedStmt *stmt);

/* writes.c: does it write enough rows for a node to be worth its set-up? */
extern bool lbt_write_is_large(const ModifyTable *modify);

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

/* effects.c: a node's children besides the left and the right one. */
extern List *lbt_other_children(const Plan *plan);

/* ... may an expression have effects?  Any function of a user may. */
extern bool lbt_may_have_effects(Node *node, void *context);

/*
 * ... can what runs for each row of a write, as triggers, checks or RETURNING
 * lists, neither ask for the last number of a sequence nor set a setting?
 */
extern bool lbt_write_is_quiet(const ModifyTable *modify, const List *rtable);

/* ... does what a node evaluates have effects, or what it does itself? */
extern bool lbt_node_has_effects(Plan *plan, LbtPlanWalk *walk);

/* What a plan node looks up for each row. */
typedef struct LbtLookups
{
	List	   *keys;			/* of each index */
	List	   *facts;
	List	   *route;			/* to partitions, or NIL ... */
	List	   *partition_key;	/* ... by this */
} LbtLookups;

/* What an index scan of a plan reads. */
typedef struct LbtPlannedScan
{
	Oid			index;
	const List *conditions;
	bool		rows;			/* it fetches rows */
	bool		backward;
} LbtPlannedScan;

/* lookups.c: false if it is none. */
extern bool lbt_planned_scan(const Plan *plan, LbtPlannedScan *scan);

/*
 * ... add what an inner side, a loop's or the plan of a subquery, looks
 * up by these parameters (NestLoopParams), which are set for each row: in one
 * index, or where nothing else is, in those of partitions.
 */
extern void lbt_add_lookup(LbtLookups *lookups, const List *params, const Plan *inner,
						   const LbtPlanWalk *walk);

/*
 * writes.c: add an index with its keys, their types, and what is said of them
 * above, from LBT_LOOKAHEAD_ROWS on, if one varies with the row.
 */
extern void lbt_add_index(LbtLookups *lookups, Relation index, List *keys, List *types,
						  List *facts);

/* ... may this function find partitions by keys of this type? */
extern bool lbt_can_route(Oid type, Oid function);

/* ... the indexes that a write's rows, which may be read early, come to. */
extern LbtLookups lbt_find_write(const ModifyTable *modify, const List *rtable);

/*
 * ... those of a partition to which rows are inserted, which the statement is
 * about to open.  It stays locked.
 */
extern LbtLookups lbt_find_writes(Oid partition, const List *route, const List *columns);

/*
 * lookahead.c: put a node above *input, with the same columns.  They refer to
 * its input, so that EXPLAIN finds their names below.  used: NIL if all are.
 */
extern void lbt_place_node(Plan **input, const LbtLookups *lookups, List *used, int id);
extern const LbtNodeKind lbt_lookahead_node;

static inline bool
lbt_is_lookahead(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &lbt_lookahead_node.plan;
}

#endif							/* LBT_JOIN_H */
