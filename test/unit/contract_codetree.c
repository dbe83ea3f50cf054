/*
 * contract_codetree.c - learning a tree of codes, and what it promises; see contract.h.
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

uint64_t
code_in_tree(const CodeTree *t, const KeyBound *key)
{
	return lbt_codetree_code(&t->tree, &t->code.alphabet, lbt_keycode(&t->code, key->values, key->nvalues, key->missing),
							 key->values, key->nvalues, key->missing);
}

/* The key code alone, and the leaves' codes in it. */
static void
learn_code(CodeTree *t, const KeyBound *separators)
{
	LbtKeyLearner *learner = test_alloc(sizeof(LbtKeyLearner));

	lbt_keycode_begin(learner, t->columns->ncolumns, t->columns->order);
	for (uint32_t i = 0; i < t->nleaves; i++)
		lbt_keycode_observe(learner, separators[i].values, separators[i].nvalues);
	lbt_keycode_finish(learner, &t->code);
	free(learner);
	CHECK(lbt_keycode_valid(&t->code), "a learned code is not valid");
	for (uint32_t i = 0; i < t->nleaves; i++)
		t->leaves[i] = (LbtLeaf) {.min_code = lbt_keycode(&t->code, separators[i].values, separators[i].nvalues,
														  LBT_MISSING_LOW),.block = i + 1};
	t->one_code_ties = lbt_leaf_ties(t->leaves, t->nleaves);
}

CodeTree
make_code_tree(const KeyColumns *columns, const KeyBound *separators, uint32_t nleaves, uint32_t max_bytes)
{
	CodeTree	t = {.columns = columns,.nleaves = nleaves,.leaves = test_alloc(nleaves * sizeof(LbtLeaf))};
	int			ncolumns = columns->ncolumns < LBT_CODE_COLUMNS ? columns->ncolumns : LBT_CODE_COLUMNS;
	LbtKeyValue *values = test_alloc(nleaves * (size_t) ncolumns * sizeof(LbtKeyValue));
	uint8_t    *nvalues = test_alloc(nleaves);
	LbtSeparators s = {.values = values,.nvalues = nvalues,.ncolumns = ncolumns,.order = columns->order,
	.code = &t.code};
	void	   *room = test_alloc(max_bytes);
	void	   *scratch = test_alloc(lbt_codetree_scratch_bytes(nleaves));
	uint32_t	bytes;

	learn_code(&t, separators);
	for (uint32_t i = 0; i < nleaves; i++)
	{
		nvalues[i] = (uint8_t) (separators[i].nvalues < ncolumns ? separators[i].nvalues : ncolumns);
		memcpy(&values[i * (size_t) ncolumns], separators[i].values, (size_t) ncolumns * sizeof(LbtKeyValue));
	}
	bytes = lbt_codetree_build(&s, t.leaves, nleaves, room, max_bytes, scratch);
	CHECK(bytes <= max_bytes, "a tree of %u bytes, allowed were %u", bytes, max_bytes);
	t.memory = bytes > 0 ? test_copy(room, bytes) : NULL;
	CHECK(lbt_codetree_open(t.memory, bytes, &t.tree), "a tree of %u bytes was refused", bytes);
	lbt_codetree_set_columns(&t.tree, columns->order, ncolumns);
	t.ties = lbt_leaf_ties(t.leaves, nleaves);
	CHECK((bytes > 0) == (lbt_codetree_subcodes(&t.tree) > 0), "%u subcodes in %u bytes",
		  lbt_codetree_subcodes(&t.tree), bytes);
	for (uint32_t i = 0; i < nleaves; i++)
	{
		CHECK(i == 0 || t.leaves[i - 1].min_code <= t.leaves[i].min_code, "leaf %u of %u is out of order", i,
			  nleaves);
		CHECK(t.leaves[i].min_code == code_in_tree(&t, &separators[i]), "leaf %u has another code than its key", i);
	}
	free(values);
	free(nvalues);
	free(room);
	free(scratch);
	return t;
}

void
free_code_tree(CodeTree *t)
{
	free(t->memory);
	free(t->leaves);
}

void *
make_tree_model(const CodeTree *t, size_t *bytes)
{
	LbtModelHeader header = {.nleaves = t->nleaves,.tree_bytes = t->tree.bytes,.code = t->code};
	LbtKnot    *knots = test_alloc(t->nleaves * sizeof(LbtKnot));
	LbtSplineFit fit;
	void	   *memory;

	CHECK(lbt_spline_fit(t->leaves, t->nleaves, 4, knots, t->nleaves, &fit), "leaves were refused");
	header.nknots = fit.nknots;
	*bytes = lbt_model_bytes(t->nleaves, fit.nknots, t->tree.bytes);
	memory = test_alloc(*bytes);
	memset(memory, 0xa5, *bytes);
	lbt_model_assemble(memory, &header, knots, t->memory, t->leaves);
	free(knots);
	return memory;
}

/* What a server does before it uses a model: are its columns ordered as the index's are? */
static bool
fits(const LbtModel *model, const KeyColumns *columns)
{
	for (int i = 0; i < model->code.ncolumns; i++)
		if (i >= columns->ncolumns ||
			memcmp(&model->code.order[i], &columns->order[i], sizeof(LbtColumnOrder)) != 0)
			return false;
	return true;
}

void
use_tree_model(LbtModel *model, const KeyColumns *columns, const KeyBound *keys, int nkeys)
{
	check_in_bounds(model, model->nleaves);
	if (!fits(model, columns))
		return;
	lbt_codetree_set_columns(&model->tree, columns->order, columns->ncolumns);
	for (int i = 0; i < nkeys; i++)
	{
		uint64_t	code = lbt_model_code(model, keys[i].values, keys[i].nvalues, keys[i].missing);
		uint32_t	slot = lbt_model_slot(model, code, i & 1);

		CHECK(slot < model->nleaves, "slot %u of %u leaves", slot, model->nleaves);
	}
}
