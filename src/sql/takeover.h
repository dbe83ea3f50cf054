/*
 * takeover.h - turning btree indexes into learnedbtree indexes, and back.
 *
 * adopt.c does it to one index, adoptall.c to many.
 */
#ifndef LBT_TAKEOVER_H
#define LBT_TAKEOVER_H

#include "postgres.h"

typedef enum LbtTurn
{
	LBT_ADOPT,					/* btree -> learnedbtree */
	LBT_RELEASE					/* learnedbtree -> btree */
} LbtTurn;

typedef enum LbtOutcome
{
	LBT_TURNED,
	LBT_ALREADY,				/* it is what it was to become */
	LBT_GONE,					/* there is no such relation (any more) */
	LBT_REFUSED
} LbtOutcome;

/* What there is to say about it. */
typedef struct LbtVerdict
{
	/* LBT_REFUSED: why; the reason goes on from "cannot adopt index ...: ".  hint may be NULL. */
	int			sqlstate;
	const char *reason;
	const char *hint;

	/* LBT_TURNED: what it has lost, and force has put up with; NULL: nothing */
	const char *losses;
} LbtVerdict;

/* What lbt_turn_index() would say as far as the catalogs tell; LBT_TURNED: nothing against it.  Takes no lock. */
extern LbtOutcome lbt_look_at_index(Oid index, LbtTurn turn, bool force, LbtVerdict *verdict);

/*
 * Turn an index, a partitioned one with all its partitions.  Locks its table, then itself, exclusively until
 * the end of the transaction.  Nothing is changed unless all of it is turned.  What speaks against it on
 * sight is found before anything is locked.
 *
 * force: adopt even what loses something on this server version.
 */
extern LbtOutcome lbt_turn_index(Oid index, LbtTurn turn, bool force, LbtVerdict *verdict);

#endif							/* LBT_TAKEOVER_H */
