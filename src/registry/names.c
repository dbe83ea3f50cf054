/*
 * names.c - lists of index names and patterns; see names.h.
 */
#include "registry/names.h"

#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#define BLANKS " \t\n\r\f\v"

static const char *
skip_blanks(const char *at)
{
	return at + strspn(at, BLANKS);
}

/* Append a part's character to a pattern of LIKE. */
static void
append_like(StringInfo like, char c, bool quoted)
{
	if (!quoted && (c == '*' || c == '?'))
		c = c == '*' ? '%' : '_';
	else if (c == '%' || c == '_' || c == '\\')
		appendStringInfoChar(like, '\\');
	else if (!quoted)
		c = pg_ascii_tolower(c);
	appendStringInfoChar(like, c);
}

/*
 * The end of a part; what is wrong with it goes to *problem.  Appends the part
 * to a pattern of LIKE, unless that is NULL.
 */
static const char *
read_part(const char *at, StringInfo like, const char **problem)
{
	const char *start = at;
	bool		quoted = false;

	for (; *at != '\0' && (quoted || strchr(",." BLANKS, *at) == NULL); at++)
	{
		if (*at == '"' && !(quoted && at[1] == '"'))
		{
			if (!quoted && at[1] == '"' && at[2] != '"')
			{
				*problem = "A quoted name is empty.";
				return at;
			}
			quoted = !quoted;
			continue;
		}
		if (*at == '"')
			at++;
		if (like)
			append_like(like, *at, quoted);
	}
	if (quoted)
		*problem = "A double quote is not closed.";
	else if (at == start)
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
	const char *start = skip_blanks(*at);
	const char *end;
	const char *next;

	*problem = NULL;
	if (*start == '\0')
		return false;
	item->text = start;
	item->excludes = *start == '!';
	if (item->excludes)
		start = skip_blanks(start + 1);
	end = read_part(start, NULL, problem);
	if (*problem == NULL && *end == '.')
		end = read_part(end + 1, NULL, problem);
	item->everything = is_word("all", start, end) ||
		(!item->excludes && is_word("none", start, end));
	item->excludes = item->excludes || is_word("none", start, end);
	next = skip_blanks(end);
	if (*problem == NULL && *end == '.')
		*problem = "A name has more than one dot outside double quotes.";
	else if (*problem == NULL && *next == ',')
	{
		next = skip_blanks(next + 1);
		if (*next == '\0')
			*problem = "A name is missing.";
	}
	else if (*problem == NULL && *next != '\0')
		*problem = "Names are separated by commas.";
	item->length = *problem ? strlen(item->text) : end - item->text;
	*at = next;
	return *problem == NULL;
}

/*
 * Does the name match?  A list may have been written in a database of another
 * encoding: no name has what is not valid here.
 */
static bool
is_like(const char *name, const char *pattern)
{
	text	   *name_text;
	text	   *pattern_text;
	bool		result;

	if (!pg_verifymbstr(pattern, strlen(pattern), true))
		return false;
	name_text = cstring_to_text(name);
	pattern_text = cstring_to_text(pattern);
	result = DatumGetBool(DirectFunctionCall2Coll(textlike, C_COLLATION_OID,
												  PointerGetDatum(name_text),
												  PointerGetDatum(pattern_text)));
	pfree(name_text);
	pfree(pattern_text);
	return result;
}

bool
lbt_names_item_matches(const LbtNamesItem *item, const char *schema, const char *name)
{
	const char *part = *item->text == '!' ? skip_blanks(item->text +1) : item->text;
	const char *ignored;
	const char *end;
	StringInfoData like;
	bool		matches = true;

	if (item->everything)
		return true;
	initStringInfo(&like);
	end = read_part(part, &like, &ignored);
	if (*end == '.')
	{
		matches = is_like(schema, like.data);
		resetStringInfo(&like);
		(void) read_part(end + 1, &like, &ignored);
	}
	matches = matches && is_like(name, like.data);
	pfree(like.data);
	return matches;
}
