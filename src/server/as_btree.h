/*
 * as_btree.h - a bracket in which our relation passes for a btree index.
 *
 * Some server functions look at pg_class.relam and refuse any other access method than btree, though
 * the file is btree's: index builds below 18 (PrepareSortSupportFromIndexRel), the option macros of
 * assert-enabled servers, amcheck.  Inside the bracket rd_rel->relam of *this backend's* relcache
 * entry says btree; a relcache callback keeps it so when the entry is rebuilt meanwhile.
 *
 *     LBT_AS_BTREE_BEGIN(rel);
 *     { ... rel must stay open throughout ... }
 *     LBT_AS_BTREE_END(rel);
 *
 * No return, break or goto out of the bracket.  Errors leave it properly.  Brackets nest.
 */
#ifndef LBT_AS_BTREE_H
#define LBT_AS_BTREE_H

#include "postgres.h"

#include "utils/rel.h"

typedef struct LbtMask
{
	Relation	rel;
	Oid			relam;			/* the true one, put back at the end */
	struct LbtMask *outer;
} LbtMask;

extern void lbt_mask_push(LbtMask *mask, Relation rel);
extern void lbt_mask_pop(LbtMask *mask);

/* From the relcache callback: this relation's entry, or (InvalidOid) any, may have been rebuilt. */
extern void lbt_mask_again(Oid relid);

#define LBT_AS_BTREE_BEGIN(rel) \
	do { \
		LbtMask		lbt_mask_; \
		lbt_mask_push(&lbt_mask_, (rel)); \
		PG_TRY(); \
		{

#define LBT_AS_BTREE_END(rel) \
		} \
		PG_FINALLY(); \
		{ \
			lbt_mask_pop(&lbt_mask_); \
		} \
		PG_END_TRY(); \
	} while (0)

/* Does the server's insert path look at relam?  Only the assertions of assert-enabled servers do. */
#ifdef USE_ASSERT_CHECKING
#define LBT_INSERT_NEEDS_MASK true
#else
#define LBT_INSERT_NEEDS_MASK false
#endif

#endif							/* LBT_AS_BTREE_H */
