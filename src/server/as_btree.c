/*
 * as_btree.c - masking an index's access method in this backend's relcache; see as_btree.h.
 */
#include "server/as_btree.h"

#include "catalog/pg_am.h"

static LbtMask *open_masks = NULL;

/*
 * The entry may just have been rebuilt with the true access method: mask it again.  A pinned entry is
 * never freed, so the pointer stays good; its rd_rel may be another one now.
 */
void
lbt_mask_again(Oid relid)
{
	for (LbtMask *m = open_masks; m != NULL; m = m->outer)
		if (!OidIsValid(relid) || RelationGetRelid(m->rel) == relid)
			m->rel->rd_rel->relam = BTREE_AM_OID;
}

void
lbt_mask_push(LbtMask *mask, Relation rel)
{
	mask->rel = rel;
	mask->relam = rel->rd_rel->relam;
	mask->outer = open_masks;
	open_masks = mask;
	rel->rd_rel->relam = BTREE_AM_OID;
}

void
lbt_mask_pop(LbtMask *mask)
{
	Assert(open_masks == mask);
	open_masks = mask->outer;
	mask->rel->rd_rel->relam = mask->relam;
}
