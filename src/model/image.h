/*
 * image.h - a small, lossy, checksummed image of a model: what a metapage has room for.
 *
 * A few kilobytes cannot hold hundreds of thousands of leaves.  The image holds what predicts them:
 * which blocks follow each other in key order, and where, roughly, each of those leaves begins.  The
 * leaf cache made from it is approximate: it lists only some of the leaves, the anchors; its codes are
 * off by a fraction of a leaf; and the leaf of a key may lie to the right of the anchor found, where
 * leaves that split off follow, or a little to its left.  A small index's image lists every leaf as it
 * is.
 *
 * Contract: a decoded leaf cache has non-decreasing codes, the first of them 0, and blocks a file may
 * have.  An image is untrusted: whatever the bytes, nothing outside them is read, and the work is in
 * proportion to the leaves asked for.  The buffer needs no alignment.  An image is read by the machine
 * that wrote it: numbers are in native byte order.  No allocation, no globals.
 */
#ifndef LBT_IMAGE_H
#define LBT_IMAGE_H

#include <stddef.h>

#include "keycode.h"
#include "spline.h"

/* The most leaves an image may claim; lbt_image_open()'s max_leaves sets a tighter bound. */
#define LBT_IMAGE_MAX_LEAVES UINT32_C(0x7fffffff)

typedef enum LbtImageCheck
{
	LBT_IMAGE_OK,
	LBT_IMAGE_NONE,				/* no image: fewer bytes than a magic number, or that is zero */
	LBT_IMAGE_BAD_MAGIC,
	LBT_IMAGE_BAD_VERSION,
	LBT_IMAGE_BAD_LENGTH,		/* ends before its length says so, or that cannot be */
	LBT_IMAGE_BAD_CRC,
	LBT_IMAGE_BAD_VALUE			/* the checksum is right, the contents are impossible */
} LbtImageCheck;

typedef struct LbtImageInfo
{
	uint32_t	nleaves;		/* leaves the image gives: the anchors */
	uint32_t	trained_leaves; /* leaves the index had in training */
	int64_t		trained_at;		/* as given to lbt_image_encode() */
	LbtKeyCode	code;
	uint32_t	bytes;			/* the image's length */
	uint32_t	body;			/* private: where its leaves begin */
	uint32_t	step;			/* private: how exact they are */
} LbtImageInfo;

/*
 * Write an image of at most cap bytes of the leaf cache, which is in key order, to out.  The scratch
 * arrays need room for nleaves entries each and may not be the leaves themselves.  Returns the bytes
 * used, or 0 when no image fits that is worth having: too little room, too few leaves whose blocks
 * follow each other, or codes too ragged.  The same leaves give the same image.
 */
extern size_t lbt_image_encode(void *out, size_t cap, const LbtKeyCode *code, const LbtLeaf *leaves,
							   uint32_t nleaves, int64_t trained_at, LbtLeaf *scratch_leaves,
							   LbtKnot *scratch_knots);

/*
 * Check the image at the start of len readable bytes, and say what it holds.  An image of more than
 * max_leaves leaves, the blocks of the index file say, has impossible contents: its reader is going to
 * allocate them.  info is meaningless unless the answer is LBT_IMAGE_OK.
 */
extern LbtImageCheck lbt_image_open(const void *image, size_t len, uint32_t max_leaves,
									LbtImageInfo *info);

/*
 * Make the approximate leaf cache, info->nleaves entries, from an image that lbt_image_open() found
 * good.  Returns false, and the entries are worthless, when its contents are impossible.
 */
extern bool lbt_image_leaves(const void *image, size_t len, const LbtImageInfo *info, LbtLeaf *leaves);

/* Do two images say the same but for when they were made?  False when either is none or broken. */
extern bool lbt_image_same(const void *a, size_t a_len, const void *b, size_t b_len);

#endif							/* LBT_IMAGE_H */
