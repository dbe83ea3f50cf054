/*
 * metapage.c - reading and writing the model's image; see metapage.h, server/btree.h for how it is logged,
 * and model/image.h for what it holds.
 */
#include "train/metapage.h"

#include "access/xlog.h"
#include "train/fit.h"
#include "model/image.h"
#include "utils/memutils.h"

/* Of the leaves, one in so many may share its code with the one before, or there is no image. */
#define MAX_TIES_SHIFT 2		/* a quarter */

void
lbt_metapage_write(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	uint32		nleaves = trained->header.nleaves;
	const LbtLeaf *leaves = trained->image_leaves ? trained->image_leaves : trained->leaves;
	char		image[LBT_BT_META_SPARE];
	LbtLeaf    *scratch_leaves;
	LbtKnot    *scratch_knots;
	Buffer		buf;
	Page		page;
	char	   *spare;
	Size		size;
	bool		known;

	if (RecoveryInProgress())
		return;
	scratch_leaves = MemoryContextAllocHuge(CurrentMemoryContext, (Size) nleaves * sizeof(LbtLeaf));
	scratch_knots = MemoryContextAllocHuge(CurrentMemoryContext, (Size) nleaves * sizeof(LbtKnot));
	size = lbt_leaf_ties(leaves, nleaves) > nleaves >> MAX_TIES_SHIFT ? 0 :
		lbt_image_encode(image, sizeof(image), &trained->header.code, leaves, nleaves,
						 trained->header.trained_at, scratch_leaves, scratch_knots);
	pfree(scratch_leaves);
	pfree(scratch_knots);

	buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_WRITE);
	page = BufferGetPage(buf);
	spare = lbt_bt_meta_spare(page);

	/* An index that has outgrown images loses the one it has: it would only get worse. */
	known = !RelationNeedsWAL(rel) || PageGetLSN(page) == index->image_lsn;
	if (size > 0 ? !known || !lbt_image_same(spare, LBT_BT_META_SPARE, image, size) : spare[0] != 0)
		lbt_bt_fill_meta_spare(rel, buf, image, size);
	trained->image_lsn = PageGetLSN(page);
	_bt_relbuf(rel, buf);
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

/* As lbt_metapage_read(), and what is the matter. */
static LbtImageCheck
read_image(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	char		copy[LBT_BT_META_SPARE];
	LbtImageInfo info;
	LbtImageCheck check;
	LbtLeaf    *leaves;
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	Buffer		buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);
	uint32		height = BTPageGetMeta(BufferGetPage(buf))->btm_level + 1;

	memcpy(copy, lbt_bt_meta_spare(BufferGetPage(buf)), sizeof(copy));
	_bt_relbuf(rel, buf);

	memset(trained, 0, sizeof(*trained));
	check = lbt_image_open(copy, sizeof(copy), nblocks, &info);
	if (check != LBT_IMAGE_OK)
		return check;
	if (!lbt_keyspec_fits(&index->keyspec, &info.code))
		return LBT_IMAGE_BAD_VALUE;
	leaves = MemoryContextAllocHuge(CurrentMemoryContext, (Size) info.nleaves * sizeof(LbtLeaf));
	if (!lbt_image_leaves(copy, sizeof(copy), &info, leaves) ||
		!lbt_fit_model(index, leaves, info.nleaves, trained))
		return LBT_IMAGE_BAD_VALUE;
	trained->blocks = nblocks;
	trained->header.source = LBT_FROM_IMAGE;
	trained->header.height = height;
	trained->header.trained_at = info.trained_at;
	trained->header.code = info.code;
	return LBT_IMAGE_OK;
}

bool
lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	LbtImageCheck check = read_image(rel, index, trained);

	if (check != LBT_IMAGE_OK && check != LBT_IMAGE_NONE)
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring the model's image in the metapage of index \"%s\": %s",
						RelationGetRelationName(rel), image_problem(check)),
				 errdetail("The model is trained from the tree, and the image written anew.")));
	return check == LBT_IMAGE_OK;
}

const char *
lbt_metapage_state(Relation rel, const LbtIndex *index)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree image",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	LbtTrained	trained;
	LbtImageCheck check = read_image(rel, index, &trained);

	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return check == LBT_IMAGE_OK ? "readable" : check == LBT_IMAGE_NONE ? "none" : image_problem(check);
}
