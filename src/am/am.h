/*
 * am.h - the access method's callbacks, as the handler wires them up.
 */
#ifndef LBT_AM_H
#define LBT_AM_H

#include "postgres.h"

#include "access/amapi.h"
#include "registry/view.h"
#include "nodes/execnodes.h"
#include "server/btree.h"

/* insert.c */
extern bool lbt_insert(Relation rel, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
					   IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info);

/* scan.c */

extern void lbt_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					   ScanKey orderbys, int norderbys);

/* Do our callbacks scan this open index? */
static inline bool
lbt_scans(Relation index)
{
	return index->rd_indam->amrescan == lbt_rescan;
}

/* The view of an open index, if our plan nodes may look up in it; or NULL. */
static inline LbtIndex *
lbt_learned_view(Relation index)
{
	LbtIndex   *view = lbt_scans(index) && !RelationUsesLocalBuffers(index) ?
		lbt_index_get(index) : NULL;

	return view != NULL && view->serving.learned ? view : NULL;
}

/*
 * Of such a scan, until the next rescan, few rows will be wanted: copy as many
 * entries of its first leaf.  If they turn out not to be enough, the scan
 * begins once more, and so may return rows again.
 */
extern void lbt_scan_few(IndexScanDesc scan);

extern IndexScanDesc lbt_beginscan(Relation rel, int nkeys, int norderbys);
extern bool lbt_gettuple(IndexScanDesc scan, ScanDirection dir);
extern int64 lbt_getbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void lbt_endscan(IndexScanDesc scan);
extern void lbt_markpos(IndexScanDesc scan);
extern void lbt_restrpos(IndexScanDesc scan);

/* Into btree's routine: all that shares the state of a scan or insert. */
static inline void
lbt_take_scans(IndexAmRoutine *routine)
{
	routine->aminsert = lbt_insert;
	routine->ambeginscan = lbt_beginscan;
	routine->amrescan = lbt_rescan;
	routine->amgettuple = lbt_gettuple;
	routine->amgetbitmap = lbt_getbitmap;
	routine->amendscan = lbt_endscan;
	routine->ammarkpos = lbt_markpos;
	routine->amrestrpos = lbt_restrpos;
}

/* opclass.c */

/*
 * Give every btree operator class an alias for our access method; returns how
 * many were made.  Callers check the permission to change the catalogs.
 */
extern int	lbt_sync_opclasses(Oid am);

#endif							/* LBT_AM_H */
