/*
 * contract_keycode.c - the promise of the key code: it keeps the order; see contract.h.
 */
#include "contract.h"
#include "test.h"

/* Byte by byte, each compared as a number; of two strings where one begins with the other, the shorter first. */
static int
compare_bytes(const LbtKeyValue *a, const LbtKeyValue *b)
{
	for (uint32_t i = 0;; i++)
	{
		if (i == a->length || i == b->length)
			return (a->length > b->length) - (a->length < b->length);
		if (a->bytes[i] != b->bytes[i])
			return a->bytes[i] < b->bytes[i] ? -1 : 1;
	}
}

static int
compare_values(const LbtKeyValue *a, const LbtKeyValue *b, const LbtColumnOrder *order)
{
	if (a->isnull && b->isnull)
		return 0;
	if (a->isnull || b->isnull)
		return a->isnull == (order->nulls_first != 0) ? -1 : 1;
	if (order->bytes)
		return order->desc ? compare_bytes(b, a) : compare_bytes(a, b);
	return (a->ordered > b->ordered) - (a->ordered < b->ordered);
}

int
compare_bounds(const KeyColumns *columns, const KeyBound *a, const KeyBound *b)
{
	int			a_side,
				b_side;

	for (int i = 0; i < a->nvalues && i < b->nvalues; i++)
	{
		int			order = compare_values(&a->values[i], &b->values[i], &columns->order[i]);

		if (order != 0)
			return order;
	}

	/* A complete key is itself; the prefix of one is below or above all keys that begin with it. */
	a_side = a->nvalues == columns->ncolumns ? 0 : a->high ? 1 : -1;
	b_side = b->nvalues == columns->ncolumns ? 0 : b->high ? 1 : -1;
	if (a->nvalues == b->nvalues)
		return a_side - b_side;
	return a->nvalues < b->nvalues ? a_side : -b_side;
}

void
check_order(const KeyColumns *columns, const KeyBound *a, uint64_t a_code, const KeyBound *b, uint64_t b_code)
{
	int			order = compare_bounds(columns, a, b);

	CHECK(order >= 0 || a_code <= b_code,
		  "of %d columns, a key of %d values has a lower position and code %llu, "
		  "a key of %d values a higher one and code %llu", columns->ncolumns, a->nvalues,
		  (unsigned long long) a_code, b->nvalues, (unsigned long long) b_code);
	CHECK(order <= 0 || a_code >= b_code,
		  "of %d columns, a key of %d values has a higher position and code %llu, "
		  "a key of %d values a lower one and code %llu", columns->ncolumns, a->nvalues,
		  (unsigned long long) a_code, b->nvalues, (unsigned long long) b_code);
	CHECK(order != 0 || a_code == b_code, "equal keys have codes %llu and %llu",
		  (unsigned long long) a_code, (unsigned long long) b_code);
}

void
check_code_order(const LbtKeyCode *code, const KeyColumns *columns, const KeyBound *a,
				 const KeyBound *b)
{
	check_order(columns, a, lbt_keycode(code, a->values, a->nvalues, a->high),
				b, lbt_keycode(code, b->values, b->nvalues, b->high));
}
