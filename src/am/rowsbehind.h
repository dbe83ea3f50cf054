/*
 * rowsbehind.h - leaves for rows that are in the table already, and whose
 * index entries, or checks of foreign keys, come next.
 *
 * COPY puts up to a thousand rows into the table before it inserts their
 * entries, in the same order.  So the rows behind the one being inserted tell
 * which leaves the index will need:
 *
 *     table page   r1  r2  r3  r4  r5 ...      all there
 *     entries      e1  e2                      inserted
 *                       |   |___|___|
 *                       |     keys, predictions; missing leaves asked for
 *                       the row at hand
 *
 * There are two batches: when half of one has been inserted, the next one is
 * begun.  Everything here is a hint.  A page of the table is share-locked for
 * a moment, with no other page locked, and no pin is kept.
 */
#ifndef LBT_ROWSBEHIND_H
#define LBT_ROWSBEHIND_H

#include "postgres.h"

#include "access/relscan.h"
#include "key/bound.h"
#include "nodes/execnodes.h"
#include "registry/view.h"

/* What a statement knows of the rows behind; in the IndexInfo's context. */
typedef struct LbtRowsBehind LbtRowsBehind;

/*
 * The statement inserts the entry of the row with this TID.  Puts a prediction
 * for it into the index's mailbox if there is one, and looks for rows behind
 * it.  The index's view is up to date and has a model; the caller holds no
 * lock.  *behind is NULL before the first call.
 */
extern void lbt_rows_behind(LbtRowsBehind **behind, Relation rel, LbtIndex *index, Relation table,
							ItemPointer tid, IndexInfo *info);

/*
 * ---- rows whose foreign keys are checked next ----
 *
 * The checks come when the statement ends, each by a lookup in the index of
 * the referenced table, in the order in which the rows are in the table.  So
 * where a lookup's key is the next row's, those of the rows behind it follow.
 * It may be another one's: then it gets no prediction from here.
 */
extern bool lbt_checks_expected;

/*
 * A statement is about to put rows into this table; or has ended.  Another one
 * within it takes its place.  The table is locked.
 */
extern void lbt_checks_expect(Relation table);
extern void lbt_checks_end(void);

/*
 * A scan is about to look for this bound, and checks are expected.  Puts a
 * prediction into the index's mailbox if this is the check of a row.  The
 * caller holds no page lock.
 */
extern void lbt_check_comes(IndexScanDesc scan, LbtIndex *index, const LbtBound *bound);

#endif							/* LBT_ROWSBEHIND_H */
