/*
 * image.c - the small, lossy image of a model; see image.h for the contract.
 *
 * Layout: a header of fixed fields, the key code, and the stream of imagestream.h.
 */
#include "image.h"
#include "imagestream.h"

#include <string.h>

#define IMAGE_MAGIC UINT32_C(0x4c425449)	/* "LBTI" */
#define IMAGE_VERSION 3

/* Where the header's fields are. */
enum
{
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_BYTES = 8,
	AT_CRC = 12,
	AT_STEP = 16,
	AT_NLEAVES = 20,
	AT_TRAINED_LEAVES = 24,
	AT_NCOLUMNS = 28,
	AT_TRAINED_AT = 32,
	AT_CODE = 40,
	COLUMN_BYTES = 6,			/* the order's three, number of digits, two of the prefix's length; it follows */
	NUMBER_BYTES = 16,			/* a number's digit: lo, span */
	BYTE_BYTES = 4,				/* a byte's digit: lo, ends, span of two bytes */
	ALPHABET_BYTES = 32			/* the alphabet: its members; behind the columns */
};

/* ---- checksum ---- */

/* CRC-32C (Castagnoli), four bits at a time. */
static uint32_t
crc32c(uint32_t crc, const uint8_t *bytes, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75
	};

	while (len-- > 0)
	{
		crc ^= *bytes++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

/* Over everything but the checksum itself. */
static uint32_t
image_crc(const uint8_t *image, size_t bytes)
{
	uint32_t	crc = crc32c(UINT32_MAX, image, AT_CRC);

	return ~crc32c(crc, image + AT_CRC + 4, bytes - AT_CRC - 4);
}

static void
put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, 4);
}

static void
put64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, 8);
}

static uint32_t
get32(const uint8_t *at)
{
	uint32_t	value;

	memcpy(&value, at, 4);
	return value;
}

static uint64_t
get64(const uint8_t *at)
{
	uint64_t	value;

	memcpy(&value, at, 8);
	return value;
}

/* ---- choosing the anchors ---- */

/*
 * Anchors are a longest sequence of leaves with ascending blocks: those of the last build, whatever
 * has been split off since and is now elsewhere in the file.  They go to the front of the array.
 *
 * best[k] is the leaf with the lowest block that ends an ascending sequence of k + 1 leaves; before[i]
 * is the one that precedes leaf i.  Both are in the scratch array.
 */
#define best(k) scratch[k].slot
#define before(i) scratch[i].unused

static uint32_t
keep_ascending(LbtLeaf *anchors, const LbtLeaf *leaves, uint32_t nleaves, LbtKnot *scratch)
{
	uint32_t	length = 0;		/* of the longest sequence */
	uint32_t	near = 0;		/* where the last leaf went: the next is likely to go next to it */
	uint32_t	rising = 1;

	while (rising < nleaves && leaves[rising].block > leaves[rising - 1].block)
		rising++;
	if (rising == nleaves)
	{
		memcpy(anchors, leaves, nleaves * sizeof(LbtLeaf));
		return nleaves;			/* a fresh build */
	}
	for (uint32_t i = 0; i < nleaves; i++)
	{
		uint32_t	block = leaves[i].block;
		uint32_t	lo = 0,		/* the first k in [lo, hi] whose block is not below, or length */
					hi = length;

		if (near < length && leaves[best(near)].block < block)
		{
			lo = near + 1;
			for (uint32_t stride = 1; lo < length && leaves[best(lo)].block < block; stride *= 2)
			{
				near = lo;
				lo = length - lo > stride ? lo + stride : length;
			}
			hi = lo;
			lo = near + 1;
		}
		while (lo < hi)
		{
			uint32_t	middle = lo + (hi - lo) / 2;

			if (leaves[best(middle)].block < block)
				lo = middle + 1;
			else
				hi = middle;
		}
		best(lo) = i;
		before(i) = lo > 0 ? best(lo - 1) : 0;
		if (lo == length)
			length++;
		near = lo;
	}
	for (uint32_t k = length, i = best(length - 1); k-- > 0; i = before(i))
		anchors[k] = leaves[i];
	return length;
}

/* ---- image ---- */

static size_t
column_bytes(const LbtCodeColumn *column)
{
	return COLUMN_BYTES + column->prefix_length +
		(size_t) column->ndigits * (column->order.bytes ? BYTE_BYTES : NUMBER_BYTES);
}

/* Where the stream starts, behind the key code. */
static size_t
stream_start(const LbtKeyCode *code)
{
	size_t		at = AT_CODE + ALPHABET_BYTES;

	for (int i = 0; i < code->ncolumns; i++)
		at += column_bytes(&code->column[i]);
	return at;
}

/* Weights and shifts are left out: they follow from the rest. */
static void
put_code(uint8_t *at, const LbtKeyCode *code)
{
	const LbtKeyDigit *d = code->digit;

	for (int i = 0; i < code->ncolumns; i++)
	{
		const LbtCodeColumn *column = &code->column[i];

		at[0] = column->order.bytes;
		at[1] = column->order.desc;
		at[2] = column->order.nulls_first;
		at[3] = column->ndigits;
		at[4] = (uint8_t) (column->prefix_length >> 8);
		at[5] = (uint8_t) column->prefix_length;
		memcpy(at + COLUMN_BYTES, code->prefix + column->prefix, column->prefix_length);
		at += COLUMN_BYTES + column->prefix_length;
		for (const LbtKeyDigit *end = d + column->ndigits; d < end; d++)
		{
			if (column->order.bytes)
			{
				at[0] = (uint8_t) d->lo;
				at[1] = d->ends;
				at[2] = (uint8_t) (d->span >> 8);
				at[3] = (uint8_t) d->span;
				at += BYTE_BYTES;
				continue;
			}
			put64(at, d->lo);
			put64(at + 8, d->span);
			at += NUMBER_BYTES;
		}
	}
	memcpy(at, code->alphabet.members, ALPHABET_BYTES);
}

/* Read a key code that ends before the end; false when that is not possible. */
static bool
get_code(const uint8_t *at, const uint8_t *end, uint32_t ncolumns, LbtKeyCode *code)
{
	uint32_t	prefix = 0;

	memset(code, 0, sizeof(*code));
	if (ncolumns < 1 || ncolumns > LBT_CODE_COLUMNS)
		return false;
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		LbtCodeColumn *column = &code->column[i];

		if (end - at < COLUMN_BYTES)
			return false;
		column->order = (LbtColumnOrder) {at[0], at[1], at[2]};
		column->ndigits = at[3];
		column->prefix = column->order.bytes ? (uint16_t) prefix : 0;
		column->prefix_length = (uint16_t) (at[4] << 8 | at[5]);
		prefix += column->prefix_length;
		if (column->ndigits < 1 || column->ndigits > LBT_CODE_DIGITS - code->ndigits || prefix > LBT_CODE_PREFIX ||
			(size_t) (end - at) < column_bytes(column))
			return false;
		memcpy(code->prefix + column->prefix, at + COLUMN_BYTES, column->prefix_length);
		at += COLUMN_BYTES + column->prefix_length;
		for (int n = 0; n < column->ndigits; n++)
		{
			LbtKeyDigit *d = &code->digit[code->ndigits++];

			if (column->order.bytes)
			{
				d->lo = at[0];
				d->ends = at[1];
				d->span = (uint64_t) at[2] << 8 | at[3];
				at += BYTE_BYTES;
				continue;
			}
			d->lo = get64(at);
			d->span = get64(at + 8);
			at += NUMBER_BYTES;
		}
	}
	code->ncolumns = (int32_t) ncolumns;
	if (end - at < ALPHABET_BYTES)
		return false;
	memcpy(code->alphabet.members, at, ALPHABET_BYTES);
	lbt_alphabet_rank(&code->alphabet);
	lbt_keycode_weigh(code);
	return lbt_keycode_valid(code);
}

static bool
good_leaves(const LbtLeaf *leaves, uint32_t nleaves)
{
	for (uint32_t i = 0; i < nleaves; i++)
		if (!lbt_stream_valid_block(leaves[i].block) ||
			(i > 0 && leaves[i].min_code < leaves[i - 1].min_code))
			return false;
	return nleaves >= 1 && nleaves <= LBT_IMAGE_MAX_LEAVES;
}

/* Write all leaves, exactly or nearly so, in whatever order their blocks are. */
static size_t
write_all(uint8_t *out, size_t room, LbtLeaf *leaves, uint32_t nleaves, uint32_t *step)
{
	double		lost = 0;
	size_t		used;

	*step = LBT_STREAM_EXACT;
	used = lbt_stream_write(out, room, leaves, nleaves, *step, &lost);
	if (used == 0 && nleaves <= room)
		used = lbt_stream_write_finest(out, room, leaves, nleaves, LBT_STREAM_COARSEST / 16, step,
									   &lost);
	return used;
}

/* Write those leaves whose blocks ascend, unless too few do, or the codes come out too wrong. */
static size_t
write_anchors(uint8_t *out, size_t room, LbtLeaf *anchors, uint32_t nanchors, uint32_t nleaves,
			  uint32_t *step)
{
	double		lost = 0;
	size_t		used;

	if (nanchors < nleaves / 3)
		return 0;
	used = lbt_stream_write_finest(out, room, anchors, nanchors, LBT_STREAM_COARSEST, step, &lost);
	return lost < nanchors * (2.0 / 3) ? used : 0;
}

size_t
lbt_image_encode(void *out, size_t cap, const LbtKeyCode *code, const LbtLeaf *leaves,
				 uint32_t nleaves, int64_t trained_at, LbtLeaf *scratch_leaves, LbtKnot *scratch_knots)
{
	uint8_t    *image = out;
	size_t		start;
	size_t		used = 0;
	uint32_t	nanchors = nleaves;
	uint32_t	step = LBT_STREAM_EXACT;

	if (!lbt_keycode_valid(code) || !good_leaves(leaves, nleaves))
		return 0;
	start = stream_start(code);
	if (cap <= start || cap > UINT32_MAX)
		return 0;
	if (nleaves / 8 <= cap)		/* a bit for a leaf: not hopeless */
	{
		memcpy(scratch_leaves, leaves, nleaves * sizeof(LbtLeaf));
		used = write_all(image + start, cap - start, scratch_leaves, nleaves, &step);
	}
	if (used == 0)
	{
		nanchors = keep_ascending(scratch_leaves, leaves, nleaves, scratch_knots);
		used = write_anchors(image + start, cap - start, scratch_leaves, nanchors, nleaves, &step);
	}
	if (used == 0)
		return 0;
	used += start;
	put32(image + AT_MAGIC, IMAGE_MAGIC);
	put32(image + AT_VERSION, IMAGE_VERSION);
	put32(image + AT_BYTES, (uint32_t) used);
	put32(image + AT_STEP, step);
	put32(image + AT_NLEAVES, nanchors);
	put32(image + AT_TRAINED_LEAVES, nleaves);
	put32(image + AT_NCOLUMNS, (uint32_t) code->ncolumns);
	put64(image + AT_TRAINED_AT, (uint64_t) trained_at);
	put_code(image + AT_CODE, code);
	put32(image + AT_CRC, image_crc(image, used));
	return used;
}

/* The fields whose values may be wrong though the checksum is right. */
static bool
read_info(const uint8_t *image, uint32_t bytes, LbtImageInfo *info)
{
	memset(info, 0, sizeof(*info));
	info->nleaves = get32(image + AT_NLEAVES);
	info->trained_leaves = get32(image + AT_TRAINED_LEAVES);
	info->trained_at = (int64_t) get64(image + AT_TRAINED_AT);
	info->bytes = bytes;
	info->step = get32(image + AT_STEP);
	if (!get_code(image + AT_CODE, image + bytes, get32(image + AT_NCOLUMNS), &info->code))
		return false;
	info->body = (uint32_t) stream_start(&info->code);
	return info->nleaves >= 1 && info->nleaves <= LBT_IMAGE_MAX_LEAVES &&
		info->nleaves <= info->trained_leaves && info->step <= LBT_STREAM_COARSEST;
}

LbtImageCheck
lbt_image_open(const void *image, size_t len, uint32_t max_leaves, LbtImageInfo *info)
{
	const uint8_t *in = image;
	uint32_t	bytes;

	if (len < AT_MAGIC + 4 || get32(in + AT_MAGIC) == 0)
		return LBT_IMAGE_NONE;
	if (get32(in + AT_MAGIC) != IMAGE_MAGIC)
		return LBT_IMAGE_BAD_MAGIC;
	if (len < AT_CODE)
		return LBT_IMAGE_BAD_LENGTH;
	if (get32(in + AT_VERSION) != IMAGE_VERSION)
		return LBT_IMAGE_BAD_VERSION;
	bytes = get32(in + AT_BYTES);
	if (bytes < AT_CODE || bytes > len)
		return LBT_IMAGE_BAD_LENGTH;
	if (get32(in + AT_CRC) != image_crc(in, bytes))
		return LBT_IMAGE_BAD_CRC;
	if (!read_info(in, bytes, info) || info->nleaves > max_leaves)
		return LBT_IMAGE_BAD_VALUE;
	return LBT_IMAGE_OK;
}

bool
lbt_image_leaves(const void *image, size_t len, const LbtImageInfo *info, LbtLeaf *leaves)
{
	if (info->bytes > len || info->body > info->bytes || info->nleaves < 1)
		return false;
	return lbt_stream_read((const uint8_t *) image + info->body, info->bytes - info->body, leaves,
						   info->nleaves, info->step);
}

bool
lbt_image_same(const void *a, size_t a_len, const void *b, size_t b_len)
{
	LbtImageInfo info[2];

	if (lbt_image_open(a, a_len, LBT_IMAGE_MAX_LEAVES, &info[0]) != LBT_IMAGE_OK ||
		lbt_image_open(b, b_len, LBT_IMAGE_MAX_LEAVES, &info[1]) != LBT_IMAGE_OK ||
		info[0].bytes != info[1].bytes)
		return false;
	return memcmp(a, b, AT_CRC) == 0 &&
		memcmp((const uint8_t *) a + AT_CRC + 4, (const uint8_t *) b + AT_CRC + 4,
			   AT_TRAINED_AT - AT_CRC - 4) == 0 &&
		memcmp((const uint8_t *) a + AT_CODE, (const uint8_t *) b + AT_CODE,
			   info[0].bytes - AT_CODE) == 0;
}
