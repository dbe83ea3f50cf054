/*
 * names.c - lists of index names and patterns; see names.h.
 *
 * A list is matched in place, each time an index's routine is chosen.
 */
#include "registry/names.h"

#include "mb/pg_wchar.h"

static inline bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static const char *
skip_blanks(const char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

/* The end of the quoted text that begins here; NULL when there is none. */
static const char *
skip_quoted(const char *at)
{
	for (at++; *at != '\0'; at++)
		if (*at == '"' && *++at != '"')
			return at;
	return NULL;
}

/* The end of a part; what is wrong with it goes to *problem. */
static const char *
skip_part(const char *at, const char **problem)
{
	const char *start = at;

	while (*at != '\0' && *at != ',' && *at != '.' && !is_blank(*at))
	{
		const char *end = *at == '"' ? skip_quoted(at) : at + 1;

		if (end == NULL)
			*problem = "A double quote is not closed.";
		else if (end - at == 2 && *at == '"')
			*problem = "A quoted name is empty.";
		if (*problem)
			return at;
		at = end;
	}
	if (at == start)
		*problem = "A name is missing.";
	return at;
}

static bool
is_word(const char *word, const char *start, const char *end)
{
	return end - start == strlen(word) && pg_strncasecmp(start, word, end - start) == 0;
}

bool
lbt_names_next(const char **at, LbtNamesItem *item, const char **problem)
{
	const char *here = skip_blanks(*at);
	const char *start;
	const char *end;

	*problem = NULL;
	if (*here == '\0')
		return false;
	item->text = here;
	item->excludes = *here == '!';
	if (item->excludes)
		here = skip_blanks(here + 1);
	start = here;
	end = skip_part(here, problem);
	if (*problem == NULL && *end == '.')
		end = skip_part(end + 1, problem);
	if (*problem == NULL && *end == '.')
		*problem = "A name has more than one dot outside double quotes.";
	item->everything = is_word("all", start, end) ||
		(!item->excludes && is_word("none", start, end));
	item->excludes = item->excludes || is_word("none", start, end);
	item->length = end - item->text;
	here = skip_blanks(end);
	if (*problem == NULL && *here != ',' && *here != '\0')
		*problem = "Names are separated by commas.";
	if (*problem == NULL && *here == ',')
	{
		here = skip_blanks(here + 1);
		if (*here == '\0')
			*problem = "A name is missing.";
	}
	if (*problem)
		item->length = strlen(item->text);
	*at = here;
	return *problem == NULL;
}

/* A place in a part. */
typedef struct Place
{
	const char *at;
	bool		quoted;			/* within double quotes */
} Place;

/* Step to the next character, '\0' at the end; *literal: it is no wildcard. */
static char
next_char(Place *place, const char *end, bool *literal)
{
	while (place->at < end)
	{
		char		c = *place->at;

		if (c == '.' && !place->quoted)
			break;
		place->at++;
		if (c == '"' && !(place->quoted && place->at < end && *place->at == '"'))
		{
			place->quoted = !place->quoted;
			continue;
		}
		if (c == '"')
			place->at++;
		*literal = place->quoted || (c != '*' && c != '?');
		return !place->quoted && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
	}
	*literal = true;
	return '\0';
}

/* Bytes of the name's first character. */
static inline int
char_length(const char *name)
{
	return strnlen(name, pg_encoding_mblen(GetDatabaseEncoding(), name));
}

/*
 * Does the part that begins at *place match the whole name?  On failure go
 * back to the last star alone: what is before it matches already.
 */
static bool
part_matches(Place *place, const char *end, const char *name)
{
	Place		star = {NULL, false};
	const char *star_name = NULL;

	for (;;)
	{
		bool		literal;
		char		c = next_char(place, end, &literal);

		if (c == '*' && !literal)
		{
			star = *place;
			star_name = name;
		}
		else if (c == *name && literal)
		{
			if (c == '\0')
				return true;
			name++;
		}
		else if (c == '?' && !literal && *name != '\0')
			name += char_length(name);
		else if (star_name == NULL || *star_name == '\0')
			return false;
		else
		{
			star_name += char_length(star_name);
			name = star_name;
			*place = star;
		}
	}
}

bool
lbt_names_item_matches(const LbtNamesItem *item, const char *schema, const char *name)
{
	const char *end = item->text +item->length;
	const char *part = *item->text == '!' ? skip_blanks(item->text +1) : item->text;
	const char *ignored = NULL;
	const char *dot = skip_part(part, &ignored);
	Place		place = {part, false};

	if (item->everything)
		return true;
	if (dot < end && *dot == '.')
	{
		if (!part_matches(&place, dot, schema))
			return false;
		place = (Place)
		{
			dot + 1, false
		};
	}
	return part_matches(&place, end, name);
}
