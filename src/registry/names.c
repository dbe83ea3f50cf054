/*
 * names.c - lists of index names and patterns; see names.h.
 */
#include "registry/names.h"

#include "mb/pg_wchar.h"
#include "server/compat.h"
#include "utils/builtins.h"

/* Where patterns are put.  Without memory, only their bytes are counted. */
typedef struct Writer
{
	char	   *memory;
	uint32		bytes;
} Writer;

static void
put(Writer *to, char c)
{
	if (to->memory)
		to->memory[to->bytes] = c;
	to->bytes++;
}

static inline bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *
skip_blanks(const char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

/* A part's character, in its pattern: what stands for itself has a \. */
static void
put_character(Writer *to, char c, bool quoted)
{
	if (c == '\\' || (quoted && (c == '*' || c == '?')))
		put(to, '\\');
	put(to, quoted ? c : pg_ascii_tolower(c));
}

static inline bool
is_usual(char c)
{
	return IS_HIGHBIT_SET(c) || isalnum((unsigned char) c) || strchr("_$*?", c) != NULL;
}

/* The end of a part; what is wrong with it goes to *problem. */
static const char *
read_part(const char *at, LbtNamesItem *item, Writer *to, const char **problem)
{
	const char *start = at;
	bool		quoted = false;

	for (; *at != '\0' && (quoted || !(*at == ',' || *at == '.' || is_blank(*at))); at++)
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
		item->odd |= !quoted && !is_usual(*at);
		put_character(to, *at, quoted);
	}
	put(to, '\0');
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

/*
 * Step through a list.  Returns false at its end, and at what is no proper
 * item; *problem says which: NULL, or what is wrong with it.
 */
static bool
next_item(const char *list, const char **at, LbtNamesItem *item, Writer *to, const char **problem)
{
	const char *text = skip_blanks(*at);
	const char *start;
	const char *end;
	const char *next;
	bool		value;

	*problem = NULL;
	*at = text;
	if (*text == '\0')
		return false;
	*item = (LbtNamesItem)
	{
		.text = text - list,.name = to->bytes,.excludes = *text == '!'
	};
	start = item->excludes ? skip_blanks(text + 1) : text;
	end = read_part(start, item, to, problem);
	if (*problem == NULL && *end == '.')
	{
		item->schema = item->name;
		item->name = to->bytes;
		end = read_part(end + 1, item, to, problem);
	}
	item->everything = is_word("all", start, end) ||
		(!item->excludes && is_word("none", start, end));
	item->excludes = item->excludes || is_word("none", start, end);
	item->odd |= end - start > 1 && parse_bool_with_len(start, end - start, &value);
	item->length = end - text;
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
	if (*problem)
		return false;
	*at = next;
	return true;
}

LbtNames *
lbt_names_parse(const char *list, bool setting, const char **problem, const char **where)
{
	Writer		to = {NULL, 0};
	LbtNamesItem item;
	LbtNames   *names;
	uint32		nitems = 0;
	Size		size;
	const char *at = list;

	*where = NULL;
	if (strlen(list) > LBT_NAMES_LIMIT)
	{
		*problem = "A list has at most " CppAsString2(LBT_NAMES_LIMIT) " bytes.";
		return NULL;
	}
	while (next_item(list, &at, &item, &to, problem))
		nitems++;
	*where = at;
	if (*problem)
		return NULL;
	size = offsetof(LbtNames, items[nitems]) + to.bytes;
	names = setting ? guc_malloc(LOG, size) : palloc(size);
	if (names == NULL)
		return NULL;
	names->nitems = nitems;
	to.memory = (char *) names;
	to.bytes = offsetof(LbtNames, items[nitems]);
	at = list;
	for (uint32 i = 0; i < nitems; i++)
		(void) next_item(list, &at, &names->items[i], &to, problem);
	return names;
}

/* ---- matching ---- */

static inline int
character_length(const char *at)
{
	if (!IS_HIGHBIT_SET(*at))
		return 1;
	return strnlen(at, pg_encoding_mblen(GetDatabaseEncoding(), at));
}

/*
 * Does the name match?  Goes by the name's characters.  So no name matches a
 * list of another encoding that is not valid here.
 */
static bool
is_like(const char *name, const char *pattern)
{
	const char *rest = NULL;	/* of the pattern, after the last * so far */
	const char *rest_name = NULL;	/* what is tried for it */

	while (*name != '\0' || *pattern == '*')
	{
		int			length = *pattern == '*' ? 0 : character_length(name);
		const char *literal = pattern + (*pattern == '\\');

		if (*pattern == '*')
		{
			rest = ++pattern;
			rest_name = name;
		}
		else if (*pattern == '?')
		{
			pattern++;
			name += length;
		}
		else if (*name == *literal && (length == 1 || strncmp(name, literal, length) == 0))
		{
			pattern = literal + length;
			name += length;
		}
		else if (rest == NULL)
			return false;
		else
		{
			rest_name += character_length(rest_name);
			name = rest_name;
			pattern = rest;
		}
	}

	/* If more is wanted, later places for the rest have still less. */
	return *pattern == '\0';
}

bool
lbt_item_matches_names(const LbtNames *list, const LbtNamesItem *item, const List *names)
{
	const char *patterns = (const char *) list;

	if (item->everything)
		return true;
	for (int i = 0; i + 1 < list_length(names); i += 2)
		if (is_like(list_nth(names, i + 1), patterns + item->name) &&
			(item->schema == 0 || is_like(list_nth(names, i), patterns + item->schema)))
			return true;
	return false;
}
