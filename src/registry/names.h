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

/*
 * The most bytes of a list that a setting may have: thousands of names, which
 * are matched in milliseconds, as nothing can interrupt that.
 */
#define LBT_NAMES_LIMIT (1024 * 1024)

/* An item, as it stands in the list. */
typedef struct LbtNamesItem
{
	const char *text;			/* without blanks around; not terminated */
	int			length;			/* bytes */
	bool		excludes;
	bool		everything;		/* all, none or !all: matches every index */
} LbtNamesItem;

/*
 * Step through a list: *at is the list at first.  Returns false at its end,
 * and where there is no proper item; *problem says which: NULL, or what is
 * wrong with item->text.  Allocates nothing.
 */
extern bool lbt_names_next(const char **at, LbtNamesItem *item, const char **problem);

/* Does an item of a proper list match the name, apart from "!"? */
extern bool lbt_names_item_matches(const LbtNamesItem *item, const char *schema, const char *name);

#endif							/* LBT_NAMES_H */
