/*
 * contract_separators.c - keeping separators, and what that promises; see contract.h.
 */
#include "contract.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static const KeyColumns *sorted_columns;	/* qsort() passes nothing on */

static int
compare_for_sort(const void *a, const void *b)
{
	return compare_bounds(sorted_columns, a, b);
}

void
sort_bounds(const KeyColumns *columns, KeyBound *bounds, uint32_t n)
{
	sorted_columns = columns;
	qsort(bounds, n, sizeof(KeyBound), compare_for_sort);
}

/* The key code, and the leaves' codes. */
static void
learn_code(Separated *s, const KeyBound *bounds)
{
	LbtKeyLearner *learner = test_alloc(sizeof(LbtKeyLearner));

	lbt_keycode_begin(learner, s->columns->ncolumns, s->columns->order);
	for (uint32_t i = 0; i < s->nleaves; i++)
		lbt_keycode_observe(learner, bounds[i].values, bounds[i].nvalues);
	lbt_keycode_finish(learner, &s->code);
	free(learner);
	CHECK(lbt_keycode_bytes(&s->code) > 0, "a learned code is not valid");
	for (uint32_t i = 0; i < s->nleaves; i++)
		s->leaves[i] = (LbtLeaf) {.min_code = i > 0 ? lbt_keycode(&s->code, bounds[i].values, bounds[i].nvalues, false) : 0,.block = i + 1};
	s->code_ties = count_ties(s->leaves, s->nleaves);
}

void
set_columns(LbtSeparators *separators, const KeyColumns *columns)
{
	separators->ncolumns = columns->ncolumns < LBT_CODE_COLUMNS ? columns->ncolumns : LBT_CODE_COLUMNS;
	separators->order = columns->order;
}

Separated
make_separated(const KeyColumns *columns, const KeyBound *bounds, uint32_t nleaves, uint32_t max_bytes)
{
	Separated	s = {.columns = columns,.nleaves = nleaves,.leaves = test_alloc(nleaves * sizeof(LbtLeaf))};
	int			ncolumns = columns->ncolumns < LBT_CODE_COLUMNS ? columns->ncolumns : LBT_CODE_COLUMNS;
	LbtKeyValue *values = test_alloc(nleaves * (size_t) ncolumns * sizeof(LbtKeyValue));
	uint8_t    *nvalues = test_alloc(nleaves);
	LbtSeparatorKeys keys = {.values = values,.nvalues = nvalues,.ncolumns = ncolumns,.order = columns->order};
	void	   *room = test_alloc(max_bytes);
	uint32_t	bytes;

	learn_code(&s, bounds);
	for (uint32_t i = 0; i < nleaves; i++)
	{
		nvalues[i] = (uint8_t) (bounds[i].nvalues < ncolumns ? bounds[i].nvalues : ncolumns);
		memcpy(&values[i * (size_t) ncolumns], bounds[i].values, (size_t) ncolumns * sizeof(LbtKeyValue));
	}
	s.needed = lbt_separators_needed(&s.code, ncolumns, s.leaves, nleaves);
	bytes = lbt_separators_build(&keys, nleaves, room, max_bytes);
	CHECK(bytes <= max_bytes, "separators of %u bytes, allowed were %u", bytes, max_bytes);
	s.memory = bytes > 0 ? test_copy(room, bytes) : NULL;
	CHECK(lbt_separators_open(s.memory, bytes, nleaves, &s.separators), "separators of %u bytes were refused", bytes);
	set_columns(&s.separators, columns);
	free(values);
	free(nvalues);
	free(room);
	return s;
}

static LbtTiedKey
tied_key(const LbtKeyCode *code, const KeyBound *key, bool past)
{
	return (LbtTiedKey)
	{
		.values = key->values,.nvalues = key->nvalues,.past = past,.fraction = 0.5,
			.code = lbt_keycode(code, key->values, key->nvalues, past)
	};
}

static void
check_found(const LbtTiedKey *key, uint32_t nleaves)
{
	CHECK(key->slot < nleaves, "slot %u of %u leaves", key->slot, nleaves);
	CHECK(key->fraction >= 0.0 && key->fraction <= 1.0, "a fraction of %g", key->fraction);
}

void
find_leaves(const Separated *s, const KeyBound *keys, const bool *past, int nkeys, uint32_t *slots)
{
	for (int from = 0; from < nkeys; from += LBT_SEPARATORS_GROUP)
	{
		LbtTiedKey	group[LBT_SEPARATORS_GROUP];
		int			n = nkeys - from < LBT_SEPARATORS_GROUP ? nkeys - from : LBT_SEPARATORS_GROUP;

		for (int i = 0; i < n; i++)
		{
			group[i] = tied_key(&s->code, &keys[from + i], past[from + i]);
			group[i].slot = lbt_leaf_search(s->leaves, s->nleaves, 0, group[i].code, group[i].past);
		}
		if (s->separators.bytes > 0)
			lbt_separators_find(&s->separators, s->leaves, s->nleaves, group, n);
		for (int i = 0; i < n; i++)
		{
			check_found(&group[i], s->nleaves);
			slots[from + i] = group[i].slot;
		}
	}
}

uint32_t
find_leaf(const Separated *s, const KeyBound *key, bool past)
{
	uint32_t	slot;

	find_leaves(s, key, &past, 1, &slot);
	return slot;
}

uint32_t
naive_leaf(const KeyColumns *columns, const KeyBound *bounds, uint32_t nleaves, const KeyBound *key, bool past)
{
	KeyBound	position = *key;
	uint32_t	slot = 0;

	position.high = past;
	for (uint32_t i = 1; i < nleaves; i++)
	{
		int			cmp = compare_bounds(columns, &position, &bounds[i]);

		if (cmp > 0 || (cmp == 0 && past))
			slot = i;
	}
	return slot;
}

void
free_separated(Separated *s)
{
	free(s->memory);
	free(s->leaves);
}

void *
make_separated_model(const Separated *s, size_t *bytes)
{
	LbtModelHeader header = {.nleaves = s->nleaves,.separator_bytes = s->separators.bytes,.code = s->code};
	LbtKnot    *knots = test_alloc(s->nleaves * sizeof(LbtKnot));
	void	   *memory;

	header.nknots = lbt_spline_fit(s->leaves, s->nleaves, 4, knots, s->nleaves);
	CHECK(header.nknots > 0, "leaves were refused");
	*bytes = lbt_model_bytes(s->nleaves, header.nknots, s->separators.bytes);
	memory = test_alloc(*bytes);
	memset(memory, 0xa5, *bytes);
	lbt_model_assemble(memory, &header, knots, s->leaves, s->memory);
	free(knots);
	return memory;
}

/* What a server does before it uses a model: are its columns ordered as the index's are? */
static bool
fits(const LbtModel *model, const KeyColumns *columns)
{
	for (int i = 0; i < model->code->ncolumns; i++)
		if (i >= columns->ncolumns ||
			memcmp(&model->code->order[i], &columns->order[i], sizeof(LbtColumnOrder)) != 0)
			return false;
	return true;
}

void
use_separated_model(LbtModel *model, const KeyColumns *columns, const KeyBound *keys, int nkeys)
{
	check_in_bounds(model, model->nleaves);
	if (!fits(model, columns))
		return;
	set_columns(&model->separators, columns);
	for (int from = 0; from < nkeys; from += LBT_SEPARATORS_GROUP)
	{
		LbtTiedKey	group[LBT_SEPARATORS_GROUP];
		int			n = nkeys - from < LBT_SEPARATORS_GROUP ? nkeys - from : LBT_SEPARATORS_GROUP;

		for (int i = 0; i < n; i++)
		{
			group[i] = tied_key(model->code, &keys[from + i], i & 1);
			group[i].slot = lbt_model_slot(model, group[i].code, i & 1);
		}
		if (model->separators.bytes > 0)
			lbt_separators_find(&model->separators, model->leaves, model->nleaves, group, n);
		for (int i = 0; i < n; i++)
			check_found(&group[i], model->nleaves);
	}
}
