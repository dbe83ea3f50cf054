/*
 * compat.c - sort keys across server versions; see compat.h.
 */
#include "server/compat.h"

#include "catalog/pg_collation.h"

Size
lbt_strnxfrm(Oid collation, const char *text, Size length, char *key, Size size)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

#if PG_VERSION_NUM >= 180000
	return pg_strnxfrm(key, size, text, length, locale);
#else
	/* The server's refuses libc.  A NULL locale is the database's own. */
	char	   *copy;

#if PG_VERSION_NUM >= 160000
	/* Not ICU's own functions: their names tell its version. */
	if (locale && locale->provider == COLLPROVIDER_ICU)
		return pg_strnxfrm(key, size, text, length, locale);
#elif defined(USE_ICU)
	if (locale && locale->provider == COLLPROVIDER_ICU)
	{
		UChar	   *wide;
		int32_t		n = icu_to_uchar(&wide, text, length);

		size = ucol_getSortKey(locale->info.icu.ucol, wide, n, (uint8_t *) key, (int32_t) size);
		pfree(wide);
		return Max(size, 1) - 1;	/* without the zero at its end */
	}
#endif
	copy = pnstrdup(text, length);
	size = locale ? strxfrm_l(key, copy, size, locale->info.lt) : strxfrm(key, copy, size);
	pfree(copy);
	return size;
#endif
}
