/*
 * saved.c - encoding and decoding a saved model; see saved.h.
 */
#include "saved.h"

#include <string.h>

/* One leaf in so many may come back with a wrong code. */
#define WRONG_PART 4

/* ---- numbers ---- */

/*
 * Bytes to write, or to read.  A function that does both passes a value, which
 * is written and returned, or replaced by what is read.  After a failure
 * nothing is written, and zeroes are read.
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

/* Seven bits to a byte, the lowest first; the highest bit: more follow. */
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
	uint64_t	coded = code_number(s, value < 0 ? ~((uint64_t) value << 1) :
									(uint64_t) value << 1);

	s->failed = s->failed || coded >> 34 != 0;
	return s->failed ? 0 : coded & 1 ? -(int64_t) (coded >> 1) - 1 : (int64_t) (coded >> 1);
}

/*
 * A code by its distance from one not above it, in three bytes: 18 bits, and
 * by how many to shift them.  What is cut off is added to the next distance.
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
		c->ndigits = (uint8_t) code_within(s, c->ndigits, 1,
										   (uint32_t) (LBT_CODE_DIGITS - kc->ndigits));
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

/* The end of the run of consecutive blocks that begins at this leaf. */
static uint32_t
run_end(const LbtLeaf *leaves, uint32_t nleaves, uint32_t at)
{
	while (++at < nleaves && leaves[at].block == leaves[at - 1].block + 1)
		;
	return at;
}

/* Blocks between the run that ends here and the next. */
static int64_t
gap_behind(const LbtLeaf *leaves, uint32_t nleaves, uint32_t end)
{
	return end < nleaves ? (int64_t) leaves[end].block - leaves[end - 1].block - 1 : 0;
}

/* For each run: length * 2 + (equal ones follow), gap, and how many if so. */
static void
code_blocks(Stream *s, LbtLeaf *leaves, uint32_t nleaves)
{
	int64_t		block = code_within(s, leaves[0].block, 1, UINT32_MAX - 1);

	for (uint32_t at = 0; at < nleaves && !s->failed;)
	{
		uint32_t	length = 0;
		uint32_t	runs = 1;
		int64_t		gap = 0;

		if (s->out != NULL)
		{
			uint32_t	end = run_end(leaves, nleaves, at);

			length = end - at;
			gap = gap_behind(leaves, nleaves, end);
			for (uint32_t next; end < nleaves; end = next, runs++)
			{
				next = run_end(leaves, nleaves, end);
				if (next - end != length || gap_behind(leaves, nleaves, next) != gap)
					break;
			}
		}
		length = code_within(s, (uint64_t) length << 1 | (runs > 1), 2, UINT32_MAX);
		gap = code_signed(s, gap);
		if (length & 1)
			runs = code_within(s, runs, 2, nleaves);
		length >>= 1;
		s->failed = s->failed || length > (nleaves - at) / runs;
		for (; runs > 0 && !s->failed; runs--, block += gap)
			for (uint32_t i = 0; i < length; i++, block++, at++)
			{
				s->failed = s->failed || block < 1 || block >= UINT32_MAX;
				if (s->out == NULL)
					leaves[at].block = (uint32_t) block;
			}
	}
}

/* A code between two.  Rounding never passes to: a part is short by more. */
static uint64_t
between(uint64_t from, uint64_t to, uint32_t part, uint32_t whole)
{
	return part == whole ? to : from + (uint64_t) ((double) (to - from) * part / whole);
}

/* The stride with which codes fit; the stride itself gets two steps' space. */
static uint32_t
stride_within(Stream *s, uint32_t nleaves)
{
	size_t		space = s->end - s->at;

	s->failed = s->failed || space < 3 * STEP_BYTES;
	return s->failed ? 0 : 1 + (uint32_t) (nleaves / (space / STEP_BYTES - 2));
}

/*
 * The second leaf's code as it is, then the codes of every stride-th leaf and
 * of the last.  Fails if too many leaves would share a code, or come back with
 * one beyond a neighbour's.
 */
static void
code_codes(Stream *s, LbtLeaf *leaves, uint32_t nleaves)
{
	uint64_t	code = code_number(s, leaves[1].min_code);
	uint32_t	stride = code_within(s, s->out ? stride_within(s, nleaves) : 0, 1, UINT32_MAX);
	uint32_t	wrong = 0;

	if (s->out == NULL)
		leaves[1].min_code = code;
	for (uint32_t at = 1, width; at + 1 < nleaves && !s->failed; at += width)
	{
		uint64_t	to;

		width = nleaves - 1 - at < stride ? nleaves - 1 - at : stride;
		to = code_step(s, code, leaves[at + width].min_code);
		for (uint32_t i = 1; i <= width; i++)
		{
			LbtLeaf    *leaf = &leaves[at + i];
			uint64_t	saved = between(code, to, i, width);

			if (s->out == NULL)
				leaf->min_code = saved;
			else
				wrong += saved <= leaf[-1].min_code ||
					(at + i + 1 < nleaves && saved > leaf[1].min_code) ||
					lbt_leaf_tied(leaves, at + i);
		}
		code = to;
	}
	s->failed = s->failed || wrong > nleaves / WRONG_PART;
}

/* ---- the whole ---- */

static void
code_model(Stream *s, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves)
{
	code_keycode(s, code);
	code_blocks(s, leaves, nleaves);
	if (nleaves > 1 && !s->failed)
		code_codes(s, leaves, nleaves);
}

size_t
lbt_saved_encode(void *out, size_t room, const LbtKeyCode *code, const LbtLeaf *leaves,
				 uint32_t nleaves)
{
	Stream		s = {.out = out,.end = room};
	LbtKeyCode	copy = *code;

	for (uint32_t i = 2; i < nleaves; i++)
		if (leaves[i].min_code < leaves[i - 1].min_code)
			return 0;
	code_model(&s, &copy, (LbtLeaf *) leaves, nleaves); /* changes none */
	return s.failed ? 0 : s.at;
}

bool
lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves)
{
	Stream		s = {.in = in,.end = len};

	memset(code, 0, sizeof(*code));
	memset(leaves, 0, nleaves * sizeof(*leaves));
	code_model(&s, code, leaves, nleaves);
	lbt_keycode_weigh(code);
	return !s.failed && s.at == s.end && lbt_keycode_valid(code);
}
