/*
 * pattern.c - names of tables with wildcards; see pattern.h.
 */
#include "sql/pattern.h"

#include "mb/pg_wchar.h"

static void
bad_pattern(const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_NAME),
			 errmsg("improper pattern for names of tables: %s", text),
			 errhint("Write table or schema.table; * stands for any characters, ? for one. Letters are folded to lower case, unless in double quotes.")));
}

static LbtGlob
make_glob(int room)
{
	return (LbtGlob) {.text = palloc(room + 1),.special = palloc(room + 1),.length = 0};
}

static void
add(LbtGlob *glob, char c, bool special)
{
	glob->text[glob->length] = c;
	glob->special[glob->length++] = special;
}

void
lbt_pattern_parse(const char *text, LbtTablePattern *pattern)
{
	bool		quoted = false;

	pattern->has_schema = false;
	pattern->table = make_glob(strlen(text));
	for (const char *c = text; *c != '\0'; c++)
	{
		if (*c == '"' && quoted && c[1] == '"')
			add(&pattern->table, *c++, false);
		else if (*c == '"')
			quoted = !quoted;
		else if (quoted)
			add(&pattern->table, *c, false);
		else if (*c == '.')
		{
			if (pattern->has_schema || pattern->table.length == 0)
				bad_pattern(text);
			pattern->has_schema = true;
			pattern->schema = pattern->table;
			pattern->table = make_glob(strlen(text));
		}
		else
			add(&pattern->table, pg_ascii_tolower((unsigned char) *c), *c == '*' || *c == '?');
	}
	if (quoted || pattern->table.length == 0)
		bad_pattern(text);
}

/* Does the pattern from this place on match the name? */
static bool
matches(const LbtGlob *glob, int at, const char *name)
{
	for (; at < glob->length; at++)
	{
		if (!glob->special[at])
		{
			if (glob->text[at] != *name++)
				return false;
		}
		else if (glob->text[at] == '*')
		{
			while (at + 1 < glob->length && glob->special[at + 1] && glob->text[at + 1] == '*')
				at++;
			for (;; name += pg_mblen(name))
			{
				if (matches(glob, at + 1, name))
					return true;
				if (*name == '\0')
					return false;
			}
		}
		else if (*name == '\0')
			return false;
		else
			name += pg_mblen(name);
	}
	return *name == '\0';
}

bool
lbt_glob_matches(const LbtGlob *glob, const char *name)
{
	return matches(glob, 0, name);
}
