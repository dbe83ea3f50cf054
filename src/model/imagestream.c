/*
 * imagestream.c - the leaves in an image; see imagestream.h.
 *
 * One adaptively range-coded stream of
 *   the blocks: runs of consecutive ones, and the steps between the runs;
 *   the codes: all of them exactly, or a tree of midpoints.
 *
 * The tree of midpoints is what makes much of few bytes.  Between two leaves whose codes are known,
 * the others are on a straight line, or, where that is not good enough, the one in the middle gets a
 * code of its own and both halves are treated alike.  So a line costs nothing, a curve or a gap is
 * refined where it is, and random keys, whose leaves stray like a random walk, end with a point every
 * few leaves.  The middle's code is given as its distance from half way, in steps of a fraction of a
 * leaf, the same for the whole stream: the finest with which it fits.
 *
 * Writer and reader walk through the stream in the same functions: each value is passed to the coder,
 * which writes it and returns it, or ignores it and returns what it reads.
 */
#include "imagestream.h"
#include "rangecoder.h"

#include <math.h>
#include <string.h>

#define STEPS_PER_LEAF 65536.0

/* ---- blocks ---- */

/*
 * The blocks, as runs of consecutive ones.  A fresh build has a run for each inner page; where keys
 * are of one size, all runs are as long as the one before.
 */
static void
code_blocks(LbtCoder *c, LbtLeaf *leaves, uint32_t nleaves)
{
	LbtNumberOdds odds[2];
	LbtNumberOdds *lengths = &odds[0];
	LbtNumberOdds *steps = &odds[1];
	uint64_t	usual = 0;		/* length of the last run */
	int64_t		block = 0;

	lbt_coder_forget(odds, 2);
	for (uint32_t i = 0; i < nleaves && !c->failed;)
	{
		uint64_t	left = nleaves - i;
		uint64_t	length = 1;
		int64_t		step;		/* to the next run's first block; within a run it would be 1 */

		step = lbt_code_signed(c, steps, (int64_t) leaves[i].block - block);
		block = step <= UINT32_MAX && step >= -(int64_t) UINT32_MAX ? block + step : 0;
		if (c->writing)
			while (length < left && leaves[i + length].block == leaves[i + length - 1].block + 1)
				length++;
		if (lbt_code_bit(c, &lengths->other, length == (usual < left ? usual : left)))
			length = usual < left ? usual : left;
		else
			length = lbt_code_number(c, lengths, length);
		if (length < 1 || length > left || !lbt_stream_valid_block(block) ||
			!lbt_stream_valid_block(block + (int64_t) length - 1))
			c->failed = true;
		if (c->failed)
			return;
		usual = length;
		for (uint64_t k = 0; k < length; k++)
			leaves[i++].block = (uint32_t) block++;
		block--;
	}
}

/* ---- codes ---- */

/* The tree of midpoints, at most this deep. */
#define MAX_DEPTH 32

typedef struct Tree
{
	LbtCoder   *coder;
	LbtLeaf    *leaves;
	double		step;			/* of the midpoints, in leaves */
	int			sample_depth;	/* writing: at this depth take one node in SAMPLE only; -1 take all */
	uint32_t	nmet;			/* nodes at that depth */
	size_t		sampled;		/* bytes that those taken have cost */
	double		lost;			/* writing: leaves' worth of keys put into a wrong leaf */
	LbtNumberOdds finer;
	LbtNumberOdds odds[MAX_DEPTH + 1];	/* for every depth */
} Tree;

/* A step is halved at most this often for one point. */
#define MAX_HALVINGS 64

/* No place is as far from half way as this, as a part of what is between left and right. */
#define FARTHEST 18

/* So near to an end that it is the end: less than half a code of any span. */
#define LEAST_PART 0x1p-67

#define SAMPLE 8

static double
smaller(double a, double b)
{
	return a < b ? a : b;
}

static double
distance(uint64_t from, uint64_t to)
{
	return to >= from ? (double) (to - from) : -(double) (from - to);
}

/*
 * Is a straight line from left to right so bad that a point in the middle is worth its bytes?  It is
 * where the line puts codes further off than points are coded, unless that concerns few leaves.
 */
static bool
needs_middle(Tree *t, uint32_t left, uint32_t right, uint64_t left_code, uint64_t right_code)
{
	uint32_t	width = right - left;
	uint32_t	parts = width <= 8 ? width : width <= 512 ? 8 : 16;
	double		leaves_per_code = width / distance(left_code, right_code);
	double		lost = 0;

	for (uint32_t p = 1; p < parts; p++)
	{
		uint32_t	i = (uint32_t) ((uint64_t) width * p / parts);
		double		off = fabs(distance(left_code, t->leaves[left + i].min_code) * leaves_per_code - i);

		lost += smaller(off, 1);	/* wrong is wrong */
	}
	lost *= (double) width / parts;
	if (lost > 0.5 * t->step * width && lost > 3 * t->step)
		return true;
	t->lost += lost;
	return false;
}

/*
 * The middle's place on the way from left to right, as a signed number of steps from half way.  It is
 * linear in the middle half; outside that, each halving of the distance to the nearer end takes as
 * many steps as the one before.  So a step is a like fraction of a leaf on either side, however much
 * denser one side is.
 */
static int64_t
place_of(double step, uint32_t width, uint64_t left_code, uint64_t right_code, uint64_t code)
{
	double		span = distance(left_code, right_code);
	bool		lower;
	double		part;			/* distance from the nearer end, as a part of the span */
	double		place;

	if (code < left_code)
		code = left_code;
	if (code > right_code)
		code = right_code;
	lower = code - left_code < right_code - code;
	part = (lower ? distance(left_code, code) : distance(code, right_code)) / span;
	if (part >= 0.25)
		place = 0.5 - part;
	else
	{
		int			exponent;
		double		mantissa = frexp(part > LEAST_PART ? part : LEAST_PART, &exponent);

		place = 0.25 + 0.25 * (2 * (1 - mantissa) - exponent - 2);
	}
	place = place * width / step + 0.5;
	if (place > 0x1p62)
		place = 0x1p62;
	return lower ? -(int64_t) place : (int64_t) place;
}

static uint64_t
code_at(double step, uint32_t width, uint64_t left_code, uint64_t right_code, int64_t steps)
{
	double		span = distance(left_code, right_code);
	double		place = fabs((double) steps) * step / width;
	double		part;
	uint64_t	offset;

	if (place <= 0.25)
		part = 0.5 - place;
	else
	{
		double		z = 4 * place - 1 < 128 ? 4 * place - 1 : 128;
		int			halvings = (int) z;

		part = ldexp(1 - (z - halvings) / 2, -halvings - 2);
	}
	offset = (uint64_t) (part * span + 0.5);	/* at most half of it */
	return steps < 0 ? left_code + offset : right_code - offset;
}

/* Put the leaves between two on a straight line. */
static void
fill_line(LbtLeaf *leaves, uint32_t left, uint32_t right, uint64_t left_code, uint64_t right_code)
{
	uint64_t	width = right - left;
	uint64_t	whole = (right_code - left_code) / width;
	uint64_t	rest = (right_code - left_code) % width;
	uint64_t	sum = 0;		/* of the rests */
	uint64_t	code = left_code;

	for (uint32_t i = left + 1; i < right; i++)
	{
		code += whole;
		sum += rest;
		if (sum >= width)
		{
			sum -= width;
			code++;
		}
		leaves[i].min_code = code;
	}
}

/*
 * How many times to halve the step for a middle that is in a denser part than both halves are on the
 * whole: between two gaps, say.  Where leaves share a code, being off by one makes lookups of that code
 * miss all of them, so it is to come back as it is.
 */
static uint64_t
halvings_for(const Tree *t, uint32_t left, uint32_t middle, uint32_t right, uint64_t left_code,
			 uint64_t right_code)
{
	uint32_t	from = middle - left > 4 ? middle - 4 : left;
	uint32_t	to = right - middle > 4 ? middle + 4 : right;
	uint64_t	code = t->leaves[middle].min_code;
	double		below = distance(left_code, code);
	double		above = distance(code, right_code);
	double		fine = 4 * (distance(t->leaves[from].min_code, t->leaves[to].min_code) + 1) / (to - from);
	double		coarse = smaller(below / (middle - left), above / (right - middle));
	double		most_steps = FARTHEST * (right - left) / t->step;
	uint64_t	halvings = 0;

	if (t->leaves[middle - 1].min_code == code || t->leaves[middle + 1].min_code == code)
	{
		fine = 0.5 / t->step;
		coarse = smaller(4 * smaller(below, above), below + above) / (right - left);
	}
	for (; coarse > fine && halvings < MAX_HALVINGS && most_steps < 0x1p53; halvings++)
	{
		coarse /= 2;
		most_steps *= 2;
	}
	return halvings;
}

/* Code the middle between two; returns the code that the reader will know it by. */
static uint64_t
code_middle(Tree *t, uint32_t left, uint32_t middle, uint32_t right, uint64_t left_code,
			uint64_t right_code, LbtNumberOdds *odds)
{
	bool		writing = t->coder->writing;
	uint32_t	width = right - left;
	uint64_t	halvings = 0;
	int64_t		steps = 0;
	double		step;

	if (writing)
		halvings = halvings_for(t, left, middle, right, left_code, right_code);
	halvings = lbt_code_number(t->coder, &t->finer, halvings);
	if (halvings > MAX_HALVINGS)
		t->coder->failed = true;
	if (t->coder->failed)
		return left_code;
	step = halvings > 0 ? ldexp(t->step, -(int) halvings) : t->step;
	if (writing)
		steps = place_of(step, width, left_code, right_code, t->leaves[middle].min_code);
	steps = lbt_code_signed(t->coder, odds, steps);
	return code_at(step, width, left_code, right_code, steps);
}

static void code_part(Tree *t, uint32_t left, uint32_t right, uint64_t left_code, uint64_t right_code,
					  int depth);

/* Code the leaves between two.  Recursion is as deep as halving a number of leaves can be. */
static void
code_between(Tree *t, uint32_t left, uint32_t right, uint64_t left_code, uint64_t right_code, int depth)
{
	LbtNumberOdds *odds = &t->odds[depth];
	bool		writing = t->coder->writing;

	if (right - left < 2 || t->coder->failed)
		return;
	if (left_code < right_code &&
		lbt_code_bit(t->coder, &odds->other,
					 writing && needs_middle(t, left, right, left_code, right_code)))
	{
		uint32_t	middle = left + (right - left) / 2;
		uint64_t	code = code_middle(t, left, middle, right, left_code, right_code, odds);

		code_part(t, left, middle, left_code, code, depth + 1);
		code_part(t, middle, right, code, right_code, depth + 1);
		if (!writing)
			t->leaves[middle].min_code = code;
	}
	else if (!writing)
		fill_line(t->leaves, left, right, left_code, right_code);
}

/* Code one half of what is between two, or skip it for a sample. */
static void
code_part(Tree *t, uint32_t left, uint32_t right, uint64_t left_code, uint64_t right_code, int depth)
{
	LbtCoder   *c = t->coder;
	size_t		pos = c->pos;

	if (depth != t->sample_depth)
		code_between(t, left, right, left_code, right_code, depth);
	else if (t->nmet++ % SAMPLE == 0)
	{
		code_between(t, left, right, left_code, right_code, depth);
		t->sampled += c->pos - pos;
		if (c->pos + (SAMPLE - 1) * t->sampled > c->end)
			c->failed = true;
	}
}

static void
start_tree(Tree *t, LbtCoder *c, LbtLeaf *leaves)
{
	t->coder = c;
	t->leaves = leaves;
	t->sample_depth = -1;
	lbt_coder_forget(t->odds, MAX_DEPTH + 1);
	lbt_coder_forget(&t->finer, 1);
}

/* The codes of the leaves; the first is 0 and need not be told. */
static void
code_codes(Tree *t, uint32_t nleaves, uint32_t step)
{
	LbtCoder   *c = t->coder;
	LbtLeaf    *leaves = t->leaves;
	uint64_t	first,
				last;

	t->step = step / STEPS_PER_LEAF;
	t->nmet = 0;
	t->sampled = 0;
	t->lost = 0;
	leaves[0].min_code = 0;
	if (nleaves == 1)
		return;
	first = leaves[1].min_code = lbt_code_raw(c, 64, leaves[1].min_code);
	if (step == LBT_STREAM_EXACT)
	{
		for (uint32_t i = 2; i < nleaves && !c->failed; i++)
		{
			uint64_t	before = leaves[i - 1].min_code;
			uint64_t	more = c->writing ? leaves[i].min_code - before : 0;

			if (more == UINT64_MAX)
				c->failed = true;	/* not a number that can be coded */
			else
				more = lbt_code_number(c, &t->odds[0], more);
			if (more > UINT64_MAX - before)
				c->failed = true;
			leaves[i].min_code = before + more;
		}
		return;
	}
	if (nleaves == 2)
		return;
	last = leaves[nleaves - 1].min_code = lbt_code_raw(c, 64, leaves[nleaves - 1].min_code);
	if (first > last)
		c->failed = true;
	else
		code_between(t, 1, nleaves - 1, first, last, 0);
}

/* ---- the whole stream ---- */

size_t
lbt_stream_write(uint8_t *out, size_t room, LbtLeaf *leaves, uint32_t nleaves, uint32_t step,
				 double *lost)
{
	LbtCoder	c;
	Tree		t;

	lbt_coder_write(&c, out, room);
	code_blocks(&c, leaves, nleaves);
	start_tree(&t, &c, leaves);
	code_codes(&t, nleaves, step);
	lbt_coder_finish(&c);
	*lost = t.lost;
	return c.failed ? 0 : c.pos;
}

/*
 * Steps to choose from, 32 to an octave: from a 2048th of a leaf, which is as good as exact, to
 * LBT_STREAM_COARSEST, two leaves, where no point is worth its bytes any more.
 */
#define FINEST 0
#define COARSEST 384

static uint32_t
step_number(int n)
{
	return (32 + ((uint32_t) n & 31)) << (n >> 5);
}

/* Samples do for the estimate where there are more leaves than this. */
#define MANY_LEAVES 4096

/*
 * The finest step with which the codes are likely to fit, or COARSEST.  The odds are not forgotten
 * between the trials: what a small sample spends on learning them says nothing about the whole, which
 * is left some room for that instead.
 */
static int
estimate_step(uint8_t *out, size_t room, LbtLeaf *anchors, uint32_t nanchors)
{
	LbtCoder	c;
	Tree		t;
	int			lo = FINEST,
				hi = COARSEST;

	start_tree(&t, &c, anchors);
	if (nanchors > MANY_LEAVES)
	{
		t.sample_depth = 7;
		room -= room / 64;
	}
	while (lo < hi)
	{
		int			middle = lo + (hi - lo) / 2;

		lbt_coder_write(&c, out, room);
		code_codes(&t, nanchors, step_number(middle));
		lbt_coder_finish(&c);
		if (c.failed)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

size_t
lbt_stream_write_finest(uint8_t *out, size_t room, LbtLeaf *leaves, uint32_t nleaves,
						uint32_t coarsest, uint32_t *step, double *lost)
{
	LbtCoder	c;

	lbt_coder_write(&c, out, room);
	code_blocks(&c, leaves, nleaves);
	if (c.failed)
		return 0;
	for (int n = estimate_step(out, room - c.pos, leaves, nleaves); step_number(n) <= coarsest; n++)
	{
		size_t		used;

		*step = step_number(n);
		used = lbt_stream_write(out, room, leaves, nleaves, *step, lost);
		if (used > 0)
			return used;
	}
	return 0;
}

bool
lbt_stream_read(const uint8_t *in, size_t len, LbtLeaf *leaves, uint32_t nleaves, uint32_t step)
{
	LbtCoder	c;
	Tree		t;

	lbt_coder_read(&c, in, len);
	memset(leaves, 0, (size_t) nleaves * sizeof(LbtLeaf));
	code_blocks(&c, leaves, nleaves);
	start_tree(&t, &c, leaves);
	if (!c.failed)
		code_codes(&t, nleaves, step);
	return !c.failed;
}
