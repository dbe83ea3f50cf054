/*
 * saved.c - encoding and decoding a saved model; see saved.h for the contract.
 */
#include "saved.h"

#include <string.h>

/* Of the leaves, one in so many may come back with a wrong code. */
#define WRONG_PART 4

/* ---- numbers ---- */

/*
 * Bytes to write, or to read: where the same function does both, it passes a value, which is written and returned, or
 * replaced by what is read.  After a failure nothing is written, and zeroes are read.
 */
typedef struct Stream
{
	uint8_t    *out;			/* NULL: reading */
	const uint8_t *in;
	size_t		at;
	size_t		end;
	bool		failed;
} Stream;

static uint8_t
code_byte(Stream *s, uint8_t value)
{
	s->failed = s->failed || s->at >= s->end;
	if (s->failed)
		return 0;
	if (s->out != NULL)
		return s->out[s->at++] = value;
	return s->in[s->at++];
}

/* Seven bits to a byte, the lowest first; the highest bit says that more follow. */
static uint64_t
code_number(Stream *s, uint64_t value)
{
	uint64_t	result = 0;
	uint8_t		byte = 0x80;

	for (int shift = 0; shift < 64 && byte & 0x80; shift += 7, value >>= 7)
	{
		byte = code_byte(s, (uint8_t) ((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
		result |= (uint64_t) (byte & 0x7f) << shift;
	}
	return result;
}

/* A number between these two. */
static uint32_t
code_within(Stream *s, uint64_t value, uint32_t low, uint32_t high)
{
	value = code_number(s, value);
	s->failed = s->failed || value < low || value > high;
	return s->failed ? 0 : (uint32_t) value;
}

/* A difference of two block numbers. */
static int64_t
code_signed(Stream *s, int64_t value)
{
	uint64_t	coded = code_number(s, value < 0 ? ~((uint64_t) value << 1) : (uint64_t) value << 1);

	s->failed = s->failed || coded >> 34 != 0;
	return s->failed ? 0 : coded & 1 ? -(int64_t) (coded >> 1) - 1 : (int64_t) (coded >> 1);
}

/*
 * A code, by its distance from one that is not above it, in three bytes: 18 bits, and by how many to shift them.  What is
 * cut off is added to the next one's distance.
 */
#define STEP_BYTES 3
#define STEP_BITS 18

static uint64_t
code_step(Stream *s, uint64_t from, uint64_t to)
{
	uint64_t	step = to - from;
	uint32_t	shift = 0;
	uint32_t	coded;

	for (; step >> STEP_BITS != 0; shift++)
		step >>= 1;
	step |= shift << STEP_BITS;
	coded = (uint32_t) code_byte(s, (uint8_t) (step >> 16)) << 16;
	coded |= (uint32_t) code_byte(s, (uint8_t) (step >> 8)) << 8;
	coded |= code_byte(s, (uint8_t) step);
	step = (uint64_t) (coded & ((1 << STEP_BITS) - 1)) << (coded >> STEP_BITS);
	return step > UINT64_MAX - from ? UINT64_MAX : from + step;
}

/* ---- key code ---- */

/* Weights, shifts and ranks are left out: they follow from the rest. */
static void
code_keycode(Stream *s, LbtKeyCode *kc)
{
	uint32_t	prefix = 0;
	int32_t		ncolumns = (int32_t) code_within(s, (uint32_t) kc->ncolumns, 1, LBT_CODE_COLUMNS);

	kc->ndigits = 0;
	for (kc->ncolumns = 0; kc->ncolumns < ncolumns; kc->ncolumns++)
	{
		LbtCodeColumn *c = &kc->column[kc->ncolumns];
		LbtColumnOrder *order = &kc->order[kc->ncolumns];

		order->bytes = (uint8_t) code_within(s, order->bytes, 0, 1);
		order->desc = (uint8_t) code_within(s, order->desc, 0, 1);
		order->nulls_first = (uint8_t) code_within(s, order->nulls_first, 0, 1);
		c->prefix_length = (uint16_t) code_within(s, c->prefix_length, 0, LBT_CODE_PREFIX - prefix);
		for (uint32_t end = prefix + c->prefix_length; prefix < end; prefix++)
			kc->prefix[prefix] = code_byte(s, kc->prefix[prefix]);
		c->ndigits = (uint8_t) code_within(s, c->ndigits, 1, (uint32_t) (LBT_CODE_DIGITS - kc->ndigits));
		for (int32_t end = kc->ndigits + c->ndigits; kc->ndigits < end; kc->ndigits++)
		{
			LbtKeyDigit *d = &kc->digit[kc->ndigits];

			d->lo = code_number(s, d->lo);
			d->span = code_number(s, d->span);
			d->ends = (uint8_t) code_within(s, d->ends, 0, 1);
		}
	}
	for (size_t at = 0; at < sizeof(kc->alphabet.members); at++)
		kc->alphabet.members[at] = code_byte(s, kc->alphabet.members[at]);
	lbt_alphabet_rank(&kc->alphabet);
}

/* ---- leaves ---- */

/* A run: leaves in key order whose blocks follow each other. */
typedef struct Run
{
	uint32_t	length;
	int64_t		gap;			/* blocks between this run and the next */
} Run;

/* The run that begins at this leaf.  Returns where the next one does, or the end. */
static uint32_t
run_at(const LbtLeaf *leaves, uint32_t nleaves, uint32_t at, Run *run)
{
	uint32_t	end = at + 1;

	while (end < nleaves && leaves[end].block == leaves[end - 1].block + 1)
		end++;
	run->length = end - at;
	run->gap = end < nleaves ? (int64_t) leaves[end].block - leaves[end - 1].block - 1 : 0;
	return end;
}

/* Of each run twice the length, and one more if others like it follow; the gap; and how many follow. */
static void
write_blocks(Stream *s, const LbtLeaf *leaves, uint32_t nleaves)
{
	(void) code_number(s, leaves[0].block);
	for (uint32_t at = 0; at < nleaves && !s->failed;)
	{
		Run			run;
		uint32_t	more = 0;

		at = run_at(leaves, nleaves, at, &run);
		for (uint32_t end; at < nleaves; at = end, more++)
		{
			Run			next;

			end = run_at(leaves, nleaves, at, &next);
			if (next.length != run.length || next.gap != run.gap)
				break;
		}
		(void) code_number(s, (uint64_t) run.length << 1 | (more > 0));
		(void) code_signed(s, run.gap);
		if (more > 0)
			(void) code_number(s, more);
	}
}

static void
read_blocks(Stream *s, LbtLeaf *leaves, uint32_t nleaves)
{
	int64_t		block = code_within(s, 0, 1, UINT32_MAX - 1);

	for (uint32_t n = 0; n < nleaves && !s->failed;)
	{
		uint32_t	length = code_within(s, 0, 2, UINT32_MAX);
		int64_t		gap = code_signed(s, 0);
		uint32_t	runs = 1 + (length & 1 ? code_within(s, 0, 1, nleaves) : 0);

		length >>= 1;
		s->failed = s->failed || length > (nleaves - n) / runs;
		for (; runs > 0 && !s->failed; runs--, block += gap)
			for (uint32_t i = 0; i < length; i++, block++)
			{
				s->failed = s->failed || block < 1 || block >= UINT32_MAX;
				leaves[n++] = (LbtLeaf)
				{
					.block = (uint32_t) block
				};
			}
	}
}

/* A code on the way from one to another.  Rounding does not lead beyond that: a part is off the whole by more. */
static uint64_t
between(uint64_t from, uint64_t to, uint32_t part, uint32_t whole)
{
	return part == whole ? to : from + (uint64_t) ((double) (to - from) * part / whole);
}

/*
 * The second leaf's code as it is, and on from there as many as there is room for, the last leaf's among them.  Fails
 * where too many leaves would come back with a code beyond a neighbour's, or share theirs.
 */
static void
write_codes(Stream *s, const LbtLeaf *leaves, uint32_t nleaves)
{
	uint64_t	code = code_number(s, leaves[1].min_code);
	size_t		room = s->end - s->at;
	uint32_t	stride;
	uint32_t	wrong = 0;

	if (room < 3 * STEP_BYTES)
	{
		s->failed = true;
		return;
	}
	stride = 1 + (uint32_t) (nleaves / (room / STEP_BYTES - 2));	/* the stride takes less
																	 * than two steps' room */
	(void) code_number(s, stride);
	for (uint32_t at = 1, width; at + 1 < nleaves; at += width)
	{
		uint64_t	to;

		width = nleaves - 1 - at < stride ? nleaves - 1 - at : stride;
		to = code_step(s, code, leaves[at + width].min_code);
		for (uint32_t i = 1; i <= width; i++)
		{
			const LbtLeaf *leaf = &leaves[at + i];
			uint64_t	saved = between(code, to, i, width);

			wrong += saved <= leaf[-1].min_code || (at + i + 1 < nleaves && saved > leaf[1].min_code) ||
				lbt_leaf_tied(leaves, at + i);
		}
		code = to;
	}
	s->failed = s->failed || wrong > nleaves / WRONG_PART;
}

static void
read_codes(Stream *s, LbtLeaf *leaves, uint32_t nleaves)
{
	uint64_t	code = leaves[1].min_code = code_number(s, 0);
	uint32_t	stride = code_within(s, 0, 1, UINT32_MAX);

	for (uint32_t at = 1, width; at + 1 < nleaves && !s->failed; at += width)
	{
		uint64_t	to = code_step(s, code, 0);

		width = nleaves - 1 - at < stride ? nleaves - 1 - at : stride;
		for (uint32_t i = 1; i <= width; i++)
			leaves[at + i].min_code = between(code, to, i, width);
		code = to;
	}
}

/* ---- the whole ---- */

size_t
lbt_saved_encode(void *out, size_t room, const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves)
{
	Stream		s = {.out = out,.end = room};
	LbtKeyCode	copy = *code;

	for (uint32_t i = 2; i < nleaves; i++)
		if (leaves[i].min_code < leaves[i - 1].min_code)
			return 0;
	code_keycode(&s, &copy);
	write_blocks(&s, leaves, nleaves);
	if (nleaves > 1 && !s.failed)
		write_codes(&s, leaves, nleaves);
	return s.failed ? 0 : s.at;
}

bool
lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves)
{
	Stream		s = {.in = in,.end = len};

	memset(code, 0, sizeof(*code));
	code_keycode(&s, code);
	read_blocks(&s, leaves, nleaves);
	if (s.failed)
		return false;
	if (nleaves > 1)
		read_codes(&s, leaves, nleaves);
	lbt_keycode_weigh(code);
	return !s.failed && s.at == s.end && lbt_keycode_valid(code);
}
