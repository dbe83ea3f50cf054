/*
 * metapage.c - reading and writing the saved model; see train.h.  How it is
 * logged: server/btree.h; how it is encoded: model/saved.h.
 */
#include "train/train.h"

#include "model/saved.h"
#include "port/pg_crc32c.h"

#define SAVED_MAGIC 0x4c425433	/* "LBT3" */

/* What the metapage has to spare; zeroes without a saved model. */
typedef struct SavedModel
{
	uint32		magic;
	pg_crc32c	crc;			/* of all that follows */
	uint32		bytes;			/* of body that are in use */
	uint32		nleaves;
	uint8		body[LBT_BT_META_SPARE - 16];
} SavedModel;

StaticAssertDecl(sizeof(SavedModel) == LBT_BT_META_SPARE, "a saved model fills the metapage");

static pg_crc32c
checksum(const SavedModel *saved)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &saved->bytes, sizeof(SavedModel) - offsetof(SavedModel, bytes));
	FIN_CRC32C(crc);
	return crc;
}

void
lbt_metapage_write(Relation rel, const LbtKeyCode *code, const LbtLeaf *leaves, uint32 nleaves)
{
	SavedModel *saved = palloc0(sizeof(SavedModel));
	Buffer		buf;
	char	   *spare;

	if (nleaves > 0)
		saved->bytes = lbt_saved_encode(saved->body, sizeof(saved->body), code, leaves, nleaves);
	if (saved->bytes > 0)
	{
		saved->magic = SAVED_MAGIC;
		saved->nleaves = nleaves;
		memset(saved->body + saved->bytes, 0, sizeof(saved->body) - saved->bytes);
		saved->crc = checksum(saved);
	}
	else
		memset(saved, 0, sizeof(SavedModel));
	buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_WRITE);
	spare = lbt_bt_meta_spare(BufferGetPage(buf));
	if (memcmp(spare, saved, sizeof(SavedModel)) != 0)
		lbt_bt_fill_meta_spare(rel, buf, saved);
	_bt_relbuf(rel, buf);
	pfree(saved);
}

static const char too_large[] = "too large for maintenance_work_mem or max_model_memory";

/* Make a model's leaves from it; what is wrong with it, or NULL. */
static const char *
decode(const SavedModel *saved, const LbtIndex *index, Size max_leaves, LbtTrained *trained)
{
	LbtModelHeader *header = &trained->header;
	LbtLeaf    *leaves;

	if (saved->magic != SAVED_MAGIC)
		return "it does not begin as one";
	if (saved->crc != checksum(saved))
		return "its checksum is wrong";
	if (saved->bytes > sizeof(saved->body) || saved->nleaves < 1 ||
		saved->nleaves >= trained->blocks)
		return "its contents are impossible";
	if (saved->nleaves > max_leaves)
		return too_large;
	leaves = MemoryContextAllocHuge(CurrentMemoryContext, (Size) saved->nleaves * sizeof(LbtLeaf));
	if (!lbt_saved_decode(saved->body, saved->bytes, &header->code, leaves, saved->nleaves) ||
		!lbt_keyspec_can_use(&index->keyspec, &header->code))
		return "its contents are impossible";
	trained->leaves = leaves;
	header->nleaves = saved->nleaves;
	header->saved = true;
	return NULL;
}

const char *
lbt_metapage_read(Relation rel, const LbtIndex *index, Size max_leaves, LbtTrained *trained)
{
	SavedModel *saved = palloc(sizeof(SavedModel));
	const char *wrong;
	Buffer		buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);

	memset(trained, 0, sizeof(*trained));
	trained->header.height = BTPageGetMeta(BufferGetPage(buf))->btm_level + 1;
	memcpy(saved, lbt_bt_meta_spare(BufferGetPage(buf)), sizeof(SavedModel));
	_bt_relbuf(rel, buf);
	trained->blocks = RelationGetNumberOfBlocks(rel);
	if (saved->magic == 0)
		return "none";
	wrong = decode(saved, index, max_leaves, trained);
	if (wrong && wrong != too_large)
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring the saved model in the metapage of index \"%s\": %s",
						RelationGetRelationName(rel), wrong),
				 errdetail("The model is trained from the tree, and saved anew.")));
	return wrong ? wrong : "readable";
}
