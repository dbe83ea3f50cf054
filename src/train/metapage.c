/*
 * metapage.c - reading and writing the saved model; see train.h.  How it is
 * logged: server/btree.h; how it is encoded: model/saved.h.
 */
#include "train/train.h"

#include "model/saved.h"
#include "port/pg_crc32c.h"
#include "server/btree.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define SAVED_MAGIC 0x4c425453	/* "LBTS" */
#define SAVED_VERSION 2

/* What the metapage has to spare; zeroes without a saved model. */
typedef struct SavedModel
{
	uint32		magic;
	uint32		version;
	uint32		bytes;			/* all of it */
	pg_crc32c	crc;			/* of what follows */
	TimestampTz trained_at;
	uint32		nleaves;
	uint8		body[FLEXIBLE_ARRAY_MEMBER];
} SavedModel;

#define HEADER_BYTES offsetof(SavedModel, body)

static const char readable[] = "readable";
static const char none[] = "none";

static pg_crc32c
checksum(const SavedModel *saved)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &saved->trained_at, saved->bytes - offsetof(SavedModel, trained_at));
	FIN_CRC32C(crc);
	return crc;
}

/* The state for users, as far as the header tells. */
static const char *
check_header(const SavedModel *saved)
{
	return saved->magic == 0 ? none :
		saved->magic != SAVED_MAGIC ? "it does not begin as one" :
		saved->version != SAVED_VERSION ? "it is of another version" :
		saved->bytes < HEADER_BYTES || saved->bytes > LBT_BT_META_SPARE ? "its length is wrong" :
		saved->crc != checksum(saved) ? "its checksum is wrong" : readable;
}

/* Do two say the same, apart from when they were made? */
static bool
same(const SavedModel *a, const SavedModel *b)
{
	const char *state = check_header(a);

	return state == check_header(b) &&
		(state == none ||
		 (state == readable && a->bytes == b->bytes &&
		  memcmp(&a->nleaves, &b->nleaves, a->bytes - offsetof(SavedModel, nleaves)) == 0));
}

void
lbt_metapage_write(Relation rel, const LbtKeyCode *code, const LbtLeaf *leaves, uint32 nleaves)
{
	SavedModel *saved = palloc0(LBT_BT_META_SPARE);
	Size		size = nleaves == 0 ? 0 :
		lbt_saved_encode(saved->body, LBT_BT_META_SPARE - HEADER_BYTES, code, leaves, nleaves);
	Buffer		buf;

	if (size > 0)
	{
		saved->magic = SAVED_MAGIC;
		saved->version = SAVED_VERSION;
		saved->bytes = HEADER_BYTES + size;
		saved->trained_at = GetCurrentTimestamp();
		saved->nleaves = nleaves;
		saved->crc = checksum(saved);
	}
	buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_WRITE);
	if (!same((SavedModel *) lbt_bt_meta_spare(BufferGetPage(buf)), saved))
		lbt_bt_fill_meta_spare(rel, buf, saved, saved->bytes);
	_bt_relbuf(rel, buf);
	pfree(saved);
}

/* As lbt_metapage_read(), with the state as for users. */
static const char *
read_saved(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	SavedModel *saved = palloc(LBT_BT_META_SPARE);
	const char *state;
	LbtLeaf    *leaves;
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	Buffer		buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);
	uint32		height = BTPageGetMeta(BufferGetPage(buf))->btm_level + 1;

	memcpy(saved, lbt_bt_meta_spare(BufferGetPage(buf)), LBT_BT_META_SPARE);
	_bt_relbuf(rel, buf);

	memset(trained, 0, sizeof(*trained));
	state = check_header(saved);
	if (state != readable)
		return state;
	if (saved->nleaves < 1 || saved->nleaves >= nblocks)
		return "its contents are impossible";
	leaves = MemoryContextAllocHuge(CurrentMemoryContext, (Size) saved->nleaves * sizeof(LbtLeaf));
	if (!lbt_saved_decode(saved->body, saved->bytes - HEADER_BYTES, &trained->header.code, leaves,
						  saved->nleaves) ||
		!lbt_keyspec_fits(&index->keyspec, &trained->header.code))
		return "its contents are impossible";
	trained->leaves = leaves;
	trained->header.nleaves = saved->nleaves;
	trained->blocks = nblocks;
	trained->header.source = LBT_FROM_SAVED;
	trained->header.height = height;
	trained->header.trained_at = saved->trained_at;
	return readable;
}

bool
lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	const char *state = read_saved(rel, index, trained);

	if (state != readable && state != none)
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring the saved model in the metapage of index \"%s\": %s",
						RelationGetRelationName(rel), state),
				 errdetail("The model is trained from the tree, and saved anew.")));
	return state == readable;
}

const char *
lbt_metapage_state(Relation rel, const LbtIndex *index)
{
	LbtTrained	trained;

	return read_saved(rel, index, &trained);
}
