/*
 * pattern.h - names of tables as psql's \d takes them: [schema.]table, with * and ? and double quotes.
 */
#ifndef LBT_PATTERN_H
#define LBT_PATTERN_H

#include "postgres.h"

typedef struct LbtGlob
{
	char	   *text;
	bool	   *special;		/* for each byte: a * or ? that stands for others */
	int			length;
} LbtGlob;

typedef struct LbtTablePattern
{
	bool		has_schema;
	LbtGlob		schema;
	LbtGlob		table;
} LbtTablePattern;

/* An error when it is none. */
extern void lbt_pattern_parse(const char *text, LbtTablePattern *pattern);

extern bool lbt_glob_matches(const LbtGlob *glob, const char *name);

#endif							/* LBT_PATTERN_H */
