/*
 * saved.c - encoding and decoding a saved model; see saved.h.
 */
#include "saved.h"

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
	bool		writing;
	bool		failed;
	uint8_t    *at;
	size_t		left;
} Stream;

static void
code_bytes(Stream *s, void *bytes, size_t n)
{
	s->failed = s->failed || n > s->left;
	if (s->failed)
		return;
	memcpy(s->writing ? s->at : bytes, s->writing ? bytes : s->at, n);
	s->at += n;
	s->left -= n;
}

static uint8_t
code_byte(Stream *s, uint8_t value)
{
	code_bytes(s, &value, 1);
	return s->failed ? 0 : value;
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

/* A difference of two block numbers: its sign is its lowest bit. */
static uint32_t
code_difference(Stream *s, uint32_t value)
{
	uint32_t	coded = code_within(s, (value << 1) ^ -(value >> 31), 0, UINT32_MAX);

	return (coded >> 1) ^ -(coded & 1);
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

/* As it is in memory: the file is this machine's, and garbage is harmless. */
static void
code_keycode(Stream *s, LbtKeyCode *kc)
{
	const size_t head = offsetof(LbtKeyCode, digit);

	code_bytes(s, kc, head);
	s->failed = s->failed || lbt_keycode_bytes(kc) == 0;
	if (!s->failed)
		code_bytes(s, (char *) kc + head, lbt_keycode_bytes(kc) - head);
}

/* ---- leaves ---- */

/*
 * The end of the run of consecutive blocks that begins at this leaf, and how
 * many blocks are between it and the next run, modulo 2^32.
 */
static uint32_t
run_end(const LbtLeaf *leaves, uint32_t nleaves, uint32_t at, uint32_t *gap)
{
	while (++at < nleaves && leaves[at].block == leaves[at - 1].block + 1)
		;
	*gap = at < nleaves ? leaves[at].block - leaves[at - 1].block - 1 : 0;
	return at;
}

/* For each run: length * 2 + (equal ones follow), gap, and how many if so. */
static void
code_blocks(Stream *s, LbtLeaf *leaves, uint32_t nleaves)
{
	uint32_t	block = code_within(s, leaves[0].block, 1, UINT32_MAX - 1);

	for (uint32_t at = 0; at < nleaves && !s->failed;)
	{
		uint32_t	length = 0;
		uint32_t	runs = 1;
		uint32_t	gap = 0;

		if (s->writing)
		{
			uint32_t	end = run_end(leaves, nleaves, at, &gap);
			uint32_t	next_gap;

			length = end - at;
			for (uint32_t next; end < nleaves; end = next, runs++)
			{
				next = run_end(leaves, nleaves, end, &next_gap);
				if (next - end != length || next_gap != gap)
					break;
			}
		}
		length = code_within(s, (uint64_t) length << 1 | (runs > 1), 2, UINT32_MAX);
		gap = code_difference(s, gap);
		if (length & 1)
			runs = code_within(s, runs, 2, nleaves);
		length >>= 1;
		s->failed = s->failed || length > (nleaves - at) / runs;
		for (; runs > 0 && !s->failed; runs--, block += gap)
			for (uint32_t i = 0; i < length; i++, block++, at++)
			{
				s->failed = s->failed || block == 0 || block == UINT32_MAX;
				if (!s->writing)
					leaves[at].block = block;
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
	s->failed = s->failed || s->left < 3 * STEP_BYTES;
	return s->failed ? 0 : 1 + (uint32_t) (nleaves / (s->left / STEP_BYTES - 2));
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
	uint32_t	stride = code_within(s, s->writing ? stride_within(s, nleaves) : 0, 1, UINT32_MAX);
	uint32_t	wrong = 0;

	if (!s->writing)
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

			if (!s->writing)
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
	Stream		s = {.writing = true,.at = out,.left = room};

	for (uint32_t i = 2; i < nleaves; i++)
		if (leaves[i].min_code < leaves[i - 1].min_code)
			return 0;
	code_model(&s, (LbtKeyCode *) code, (LbtLeaf *) leaves, nleaves);	/* changes none */
	return s.failed ? 0 : room - s.left;
}

bool
lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves)
{
	Stream		s = {.at = (uint8_t *) in,.left = len};

	memset(code, 0, sizeof(*code));
	memset(leaves, 0, nleaves * sizeof(*leaves));
	code_model(&s, code, leaves, nleaves);
	return !s.failed && s.left == 0;
}
