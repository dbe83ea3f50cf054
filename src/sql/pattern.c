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

/* What the last * stands for grows as long as the rest does not match: earlier ones need not grow again. */
bool
lbt_glob_matches(const LbtGlob *glob, const char *name)
{
	int			at = 0;
	int			star = -1;		/* the last * passed */
	const char *rest = NULL;	/* what is behind the characters that it stands for */

	while (*name != '\0')
	{
		char		c = at < glob->length ? glob->text[at] : '\0';
		bool		special = at < glob->length && glob->special[at];

		if (special && c == '*')
		{
			star = at++;
			rest = name;
		}
		else if (special && c == '?')
		{
			at++;
			name += pg_mblen(name);
		}
		else if (at < glob->length && c == *name)
		{
			at++;
			name++;
		}
		else if (star >= 0)
		{
			rest += pg_mblen(rest);
			name = rest;
			at = star + 1;
		}
		else
			return false;
	}
	while (at < glob->length && glob->special[at] && glob->text[at] == '*')
		at++;
	return at == glob->length;
}
