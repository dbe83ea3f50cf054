/*
 * metapage.c - reading and writing the model's image; see metapage.h, server/btree.h for how it is logged,
 * and model/image.h for what it holds.
 */
#include "learn/metapage.h"

#include "access/xlog.h"
#include "learn/settings.h"
#include "model/image.h"
#include "utils/memutils.h"

void
lbt_metapage_write(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	uint32		nleaves = trained->header.nleaves;
	char		image[BLCKSZ];
	LbtLeaf    *scratch_leaves;
	LbtKnot    *scratch_knots;
	Buffer		buf;
	Page		page;
	char	   *spare;
	Size		room;
	Size		size;
	bool		known;

	if (RecoveryInProgress())
		return;
	scratch_leaves = MemoryContextAllocHuge(CurrentMemoryContext, (Size) nleaves * sizeof(LbtLeaf));
	scratch_knots = MemoryContextAllocHuge(CurrentMemoryContext, (Size) nleaves * sizeof(LbtKnot));
	buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);
	(void) lbt_bt_meta_spare(BufferGetPage(buf), &room);
	_bt_relbuf(rel, buf);

	size = lbt_image_encode(image, Min(room, sizeof(image)), &trained->header.code, trained->leaves,
							nleaves, trained->header.trained_at, scratch_leaves, scratch_knots);
	pfree(scratch_leaves);
	pfree(scratch_knots);

	buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_WRITE);
	page = BufferGetPage(buf);
	spare = lbt_bt_meta_spare(page, &room);

	/* An index that has outgrown images loses the one it has: it would only get worse. */
	known = !RelationNeedsWAL(rel) || PageGetLSN(page) == index->image_lsn;
	if (size > 0 ? !known || !lbt_image_same(spare, room, image, size) : spare[0] != 0)
		lbt_bt_fill_meta_spare(rel, buf, image, size);
	trained->image_lsn = PageGetLSN(page);
	_bt_relbuf(rel, buf);
}

/* Copy the metapage's spare bytes out, and the height of the tree. */
static Size
copy_spare(Relation rel, char *copy, uint32 *height)
{
	Buffer		buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);
	Page		page = BufferGetPage(buf);
	Size		room;
	char	   *spare = lbt_bt_meta_spare(page, &room);

	memcpy(copy, spare, room);
	*height = BTPageGetMeta(page)->btm_level + 1;
	_bt_relbuf(rel, buf);
	return room;
}

static const char *
image_problem(LbtImageCheck check)
{
	switch (check)
	{
		case LBT_IMAGE_OK:
		case LBT_IMAGE_NONE:
			return NULL;
		case LBT_IMAGE_BAD_MAGIC:
			return "it does not begin as one";
		case LBT_IMAGE_BAD_VERSION:
			return "it is of another version";
		case LBT_IMAGE_BAD_LENGTH:
			return "its length is wrong";
		case LBT_IMAGE_BAD_CRC:
			return "its checksum is wrong";
		case LBT_IMAGE_BAD_VALUE:
			return "its contents are impossible";
	}
	return NULL;
}

bool
lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	char		copy[BLCKSZ];
	LbtImageInfo info;
	LbtImageCheck check;
	LbtLeaf    *leaves;
	LbtKnot    *knots;
	LbtSplineFit fit;
	uint32		height;
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	Size		room = copy_spare(rel, copy, &height);

	check = lbt_image_open(copy, room, nblocks, &info);
	if (check == LBT_IMAGE_OK && !lbt_keyspec_fits(&index->keyspec, &info.code))
		check = LBT_IMAGE_BAD_VALUE;
	if (check == LBT_IMAGE_OK)
	{
		leaves = MemoryContextAllocHuge(CurrentMemoryContext, (Size) info.nleaves * sizeof(LbtLeaf));
		knots = MemoryContextAllocHuge(CurrentMemoryContext, (Size) info.nleaves * sizeof(LbtKnot));
		if (!lbt_image_leaves(copy, room, &info, leaves) ||
			!lbt_spline_fit(leaves, info.nleaves, lbt_index_max_error(rel), knots, &fit))
			check = LBT_IMAGE_BAD_VALUE;
	}
	if (check != LBT_IMAGE_OK)
	{
		if (check != LBT_IMAGE_NONE)
			ereport(LOG,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("ignoring the model's image in the metapage of index \"%s\": %s",
							RelationGetRelationName(rel), image_problem(check)),
					 errdetail("The model is trained from the tree, and the image written anew.")));
		return false;
	}

	memset(trained, 0, sizeof(*trained));
	trained->state = LBT_READY;
	trained->leaves = leaves;
	trained->knots = knots;
	trained->blocks = nblocks;
	trained->header.source = LBT_FROM_IMAGE;
	trained->header.nleaves = info.nleaves;
	trained->header.nknots = fit.nknots;
	trained->header.max_error = fit.max_error;
	trained->header.mean_error = fit.mean_error;
	trained->header.height = height;
	trained->header.trained_at = info.trained_at;
	trained->header.code = info.code;
	return true;
}
