/*
 * explain.h - what the index scans of a statement did: EXPLAIN (ANALYZE, LEARNEDBTREE), learnedbtree_last_scan().
 */
#ifndef LBT_EXPLAIN_H
#define LBT_EXPLAIN_H

/* In _PG_init. */
extern void lbt_explain_init(void);

#endif							/* LBT_EXPLAIN_H */
