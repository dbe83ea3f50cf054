/*
 * rangecoder.h - an adaptive binary range coder, for the image: bits cost what they are worth.
 *
 * Writer and reader are one: a value is passed to the coder, which writes it and returns it, or ignores
 * it and returns what it reads.  After a failure nothing is written any more, and what is read means
 * nothing but is still a value of its type.
 */
#ifndef LBT_RANGECODER_H
#define LBT_RANGECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The probability that a bit is 0, in 65536ths; learned from the bits coded with it. */
typedef uint16_t LbtOdds;

#define LBT_EVEN_ODDS 32768
#define LBT_LEARN_SHIFT 5

typedef struct LbtCoder
{
	bool		writing;
	bool		failed;			/* no room left, or nothing left to read: all else is worthless */
	uint32_t	low;			/* writing: start of the interval; reading: offset in it */
	uint32_t	range;
	uint8_t    *out;			/* writing */
	const uint8_t *in;			/* reading */
	size_t		pos;
	size_t		end;
} LbtCoder;

static inline void
lbt_coder_shift(LbtCoder *c)
{
	while (c->range < UINT32_C(1) << 24)
	{
		if (c->pos >= c->end)
			c->failed = true;
		if (c->writing)
		{
			if (!c->failed)
				c->out[c->pos++] = (uint8_t) (c->low >> 24);
			c->low <<= 8;
		}
		else
			c->low = c->low << 8 | (c->failed ? 0 : c->in[c->pos++]);
		c->range <<= 8;
	}
}

/* Writing: move the interval up.  A carry goes into the bytes already written. */
static inline void
lbt_coder_raise(LbtCoder *c, uint32_t by)
{
	c->low += by;
	if (c->low < by)
		for (size_t p = c->pos; p > 0 && ++c->out[--p] == 0;)
			;
}

static inline bool
lbt_code_split(LbtCoder *c, uint32_t bound, bool bit)
{
	if (!c->writing)
		bit = c->low >= bound;
	if (bit)
	{
		if (c->writing)
			lbt_coder_raise(c, bound);
		else
			c->low -= bound;
		c->range -= bound;
	}
	else
		c->range = bound;
	if (c->range < UINT32_C(1) << 24)
		lbt_coder_shift(c);
	return bit;
}

static inline bool
lbt_code_bit(LbtCoder *c, LbtOdds *odds, bool bit)
{
	bit = lbt_code_split(c, (c->range >> 16) * *odds, bit);
	if (bit)
		*odds -= *odds >> LBT_LEARN_SHIFT;
	else
		*odds += (uint16_t) ((65536 - *odds) >> LBT_LEARN_SHIFT);
	return bit;
}

/* Bits that nothing is known about. */
static inline uint64_t
lbt_code_raw(LbtCoder *c, int nbits, uint64_t value)
{
	uint64_t	result = 0;

	while (nbits-- > 0)
		result = result << 1 | lbt_code_split(c, c->range >> 1, value >> nbits & 1);
	return result;
}

static inline void
lbt_coder_write(LbtCoder *c, uint8_t *out, size_t room)
{
	*c = (LbtCoder) {.writing = true, .range = UINT32_MAX, .out = out, .end = room};
}

static inline void
lbt_coder_finish(LbtCoder *c)
{
	for (int i = 0; i < 4; i++)
	{
		if (c->pos >= c->end)
			c->failed = true;
		else
			c->out[c->pos++] = (uint8_t) (c->low >> 24);
		c->low <<= 8;
	}
}

static inline void
lbt_coder_read(LbtCoder *c, const uint8_t *in, size_t len)
{
	*c = (LbtCoder) {.range = UINT32_MAX, .in = in, .end = len};
	for (int i = 0; i < 4; i++)
	{
		if (c->pos >= c->end)
			c->failed = true;
		c->low = c->low << 8 | (c->failed ? 0 : c->in[c->pos++]);
	}
}

/* Numbers of a kind: the number of bits, one by one, and the bit after the leading one are learned. */
typedef struct LbtNumberOdds
{
	LbtOdds		longer[64];
	LbtOdds		second[64];
	LbtOdds		negative;
	LbtOdds		other;			/* free for a flag that goes with the number */
} LbtNumberOdds;

static inline void
lbt_coder_forget(LbtNumberOdds *kinds, int nkinds)
{
	for (int k = 0; k < nkinds; k++)
	{
		for (int i = 0; i < 64; i++)
			kinds[k].longer[i] = kinds[k].second[i] = LBT_EVEN_ODDS;
		kinds[k].negative = kinds[k].other = LBT_EVEN_ODDS;
	}
}

/* Any number but UINT64_MAX. */
static inline uint64_t
lbt_code_number(LbtCoder *c, LbtNumberOdds *odds, uint64_t value)
{
	uint64_t	x = value + 1;
	uint64_t	result = 1;
	int			nbits = 0;		/* after the leading one */
	int			want = c->writing ? 63 - __builtin_clzll(x) : 0;

	while (nbits < 63 && lbt_code_bit(c, &odds->longer[nbits], nbits < want))
		nbits++;
	if (nbits > 0)
	{
		result = 2 | lbt_code_bit(c, &odds->second[nbits], x >> (nbits - 1) & 1);
		result = result << (nbits - 1) | lbt_code_raw(c, nbits - 1, x);
	}
	return result - 1;
}

static inline int64_t
lbt_code_signed(LbtCoder *c, LbtNumberOdds *odds, int64_t value)
{
	uint64_t	magnitude = lbt_code_number(c, odds, value < 0 ? -(uint64_t) value : (uint64_t) value);
	bool		negative = false;

	if (magnitude > INT64_MAX)
		c->failed = true;
	if (magnitude == 0 || c->failed)
		return 0;
	negative = lbt_code_bit(c, &odds->negative, value < 0);
	return negative ? -(int64_t) magnitude : (int64_t) magnitude;
}

#endif							/* LBT_RANGECODER_H */
