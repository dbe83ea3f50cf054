/*
 * names.h - the value of learnedbtree.btree_indexes: lists of index patterns.
 *
 *     list    =  item { "," item }
 *     item    =  "all" | "none" | [ "!" ] [ part "." ] part
 *     part    =  characters; * stands for any number of them, ? for one.
 *                Letters fold to lower case.  "In double quotes" everything
 *                stands for itself, and "" for a double quote.
 *
 * The first part is the schema; an item without it is about every schema.
 * An item with ! excludes; "none" excludes every index.  Of the items that
 * match an index, the last one decides.
 */
#ifndef LBT_NAMES_H
#define LBT_NAMES_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* The most bytes of a list: thousands of names. */
#define LBT_NAMES_LIMIT 1048576

/* An item; its patterns are bytes from the start of the LbtNames. */
typedef struct LbtNamesItem
{
	uint32		text;			/* byte of the list, without blanks before */
	uint32		length;			/* bytes, without blanks after */
	uint32		schema;			/* pattern; 0: about every schema */
	uint32		name;			/* pattern */
	bool		excludes;
	bool		everything;		/* all, none or !all: matches every index */
	bool		odd;			/* hardly meant as a name: on, true; a%, [ab], a; */
} LbtNamesItem;

/* A list in a form that is quick to match, in one piece of memory. */
typedef struct LbtNames
{
	uint32		nitems;
	LbtNamesItem items[FLEXIBLE_ARRAY_MEMBER];	/* and the patterns */
} LbtNames;

/*
 * Parse a list, into memory of a setting (NULL without) or of this context.
 * NULL also if it is no proper list: *problem says what is wrong, and *where
 * from where on, NULL if all is.  Nothing interrupts it.
 */
extern LbtNames *lbt_names_parse(const char *list, bool setting, const char **problem,
								 const char **where);

/* Does an item match any of these, schema and name in turn, apart from "!"? */
extern bool lbt_item_matches_names(const LbtNames *list, const LbtNamesItem *item,
								   const List *names);

#endif							/* LBT_NAMES_H */
