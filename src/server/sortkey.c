/*
 * sortkey.c - sort keys, by the server's functions where it has them; see sortkey.h.
 */
#include "server/sortkey.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "server/compat.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#if PG_VERSION_NUM < 160000 && defined(USE_ICU)
#include <unicode/ucol.h>
#endif

int			lbt_debug_sort_keys = LBT_SORT_KEYS_TRUE;

/* A sort key must be asked for as a whole, with memory for it: kept from one to the next. */
static char *whole = NULL;
static Size whole_size = 0;

/* Sort keys are a few times as long as their text. */
#define BYTES_A_CHARACTER 4
#define LEAST_SIZE 1024

/*
 * What lies behind so much of a text is not worth its time.  (Search arguments may be of any length, and ICU may
 * need the whole key's memory.)  The price: texts that agree so far may get keys out of order.
 */
#define MAX_TEXT 1024

static void
need_size(Size size)
{
	if (size <= whole_size)
		return;
	size = Max(size, LEAST_SIZE);
	whole = whole ? repalloc(whole, size) : MemoryContextAlloc(TopMemoryContext, size);
	whole_size = size;
}

#if PG_VERSION_NUM >= 180000

static Size
make_whole(Oid collation, const char *text, Size length)
{
	return pg_strnxfrm(whole, whole_size, text, length, pg_newlocale_from_collation(collation));
}

#else

/* Before 18 the server's function refuses libc, which it does not trust; the database's own libc locale is NULL. */
static Size
libc_key(pg_locale_t locale, const char *text, Size length)
{
	char	   *copy = pnstrdup(text, length);
	Size		size = locale ? strxfrm_l(whole, copy, whole_size, locale->info.lt) :
		strxfrm(whole, copy, whole_size);

	pfree(copy);
	return size;
}

#ifdef USE_ICU
static Size
icu_key(pg_locale_t locale, const char *text, Size length)
{
#if PG_VERSION_NUM >= 160000
	return pg_strnxfrm(whole, whole_size, text, length, locale);
#else
	UChar	   *wide;
	int32_t		n = icu_to_uchar(&wide, text, length);
	Size		size = ucol_getSortKey(locale->info.icu.ucol, wide, n, (uint8_t *) whole, (int32_t) whole_size);

	pfree(wide);
	return size;
#endif
}
#endif

static Size
make_whole(Oid collation, const char *text, Size length)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

#ifdef USE_ICU
	if (locale && locale->provider == COLLPROVIDER_ICU)
		return icu_key(locale, text, length);
#endif
	return libc_key(locale, text, length);
}

#endif

Size
lbt_sort_key(Oid collation, const char *text, Size length, uint8 *out, Size room)
{
	Size		size;

	if (length > MAX_TEXT)
		length = pg_mbcliplen(text, length, MAX_TEXT);
	need_size(length * BYTES_A_CHARACTER + 1);
	size = make_whole(collation, text, length);
	if (size >= whole_size)
	{
		need_size(size + 1);
		size = Min(make_whole(collation, text, length), whole_size);
	}
	size = Min(size, room);
	memcpy(out, whole, size);
	return size;
}
