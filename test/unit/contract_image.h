/*
 * contract_image.h - making and checking images, for tests and fuzz targets; and leaves to make them of.
 */
#ifndef LBT_CONTRACT_IMAGE_H
#define LBT_CONTRACT_IMAGE_H

#include "image.h"

/* What a metapage has to spare. */
#define ROOM 8100

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
	AT_CODE = 40
};

/* The key code of one unsigned column. */
extern const LbtKeyCode one_column;

/* An image in memory of exactly its size, and the leaves it was made from. */
typedef struct Image
{
	uint8_t    *bytes;			/* NULL: none was made */
	size_t		len;
	LbtImageInfo info;
	LbtLeaf    *leaves;			/* decoded, info.nleaves */
} Image;

/* The checksum that an image of these bytes should have. */
extern uint32_t crc32c(uint32_t crc, const uint8_t *bytes, size_t len);
extern uint32_t crc_of(const uint8_t *image, size_t len);

/* Encode into exactly cap bytes; returns a copy of exactly the length used, or NULL. */
extern uint8_t *encode(const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves, size_t cap,
					   int64_t trained_at, size_t *used);

/* Encode, open, decode; the image, if there is one, keeps its contract. */
extern Image make_image(const LbtLeaf *leaves, uint32_t nleaves, size_t cap);
extern void free_image(Image *image);

/* Open and decode whatever bytes, of exactly this length; the leaves, if any, keep the contract.
 * Returns how far it came: 0 not opened, 1 opened, 2 decoded. */
extern int	use_image(const uint8_t *bytes, size_t len, uint32_t max_leaves);

/* Leaf boundaries of random keys whose distribution has this quantile function. */
extern LbtLeaf *random_leaves(uint64_t (*quantile) (double), uint64_t seed, uint32_t nleaves);
extern uint64_t uniform_quantile(double p);

/* How many keys a leaf of random keys has; their number per unit of key space varies that much less. */
#define PER_LEAF 366

/* Blocks as a build gives them: inner pages between, one after each run of leaves. */
extern void number_blocks(LbtLeaf *leaves, uint32_t nleaves, uint32_t run);

/* Blocks in no order at all. */
extern void scatter_blocks(LbtLeaf *leaves, uint32_t nleaves, uint64_t seed);

#endif							/* LBT_CONTRACT_IMAGE_H */
