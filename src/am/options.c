/*
 * options.c - storage parameters: those of btree, and ours.
 */
#include "am/am.h"

#include "access/reloptions.h"
#include "learn/settings.h"

static relopt_kind lbt_relopt_kind;

/* A change of how models are made or used needs no stronger lock than training does. */
#define LEARN_LOCK ShareUpdateExclusiveLock

void
lbt_options_init(void)
{
	lbt_relopt_kind = add_reloption_kind();
	add_int_reloption(lbt_relopt_kind, "fillfactor",
					  "Packs leaf pages only to this percentage (as in btree)",
					  BTREE_DEFAULT_FILLFACTOR, BTREE_MIN_FILLFACTOR, 100, LEARN_LOCK);
	add_real_reloption(lbt_relopt_kind, "vacuum_cleanup_index_scale_factor",
					   "Deprecated, without effect (as in btree)", -1, 0.0, 1e10, LEARN_LOCK);
	add_bool_reloption(lbt_relopt_kind, "deduplicate_items",
					   "Merges equal keys into posting lists (as in btree)", true, LEARN_LOCK);
	add_bool_reloption(lbt_relopt_kind, "learned",
					   "Finds leaves through a learned model", true, LEARN_LOCK);
	add_int_reloption(lbt_relopt_kind, "max_error",
					  "Largest error of the model's spline, in leaves; unset takes learnedbtree.max_error",
					  -1, 1, LBT_MAX_ERROR_LIMIT, LEARN_LOCK);
	add_int_reloption(lbt_relopt_kind, "retrain_splits",
					  "Leaf splits since training after which the model is trained again; unset takes learnedbtree.retrain_splits",
					  -1, 1, INT_MAX, LEARN_LOCK);
}

bytea *
lbt_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"fillfactor", RELOPT_TYPE_INT, offsetof(LbtOptions, btree.fillfactor)},
		{"vacuum_cleanup_index_scale_factor", RELOPT_TYPE_REAL,
		offsetof(LbtOptions, btree.vacuum_cleanup_index_scale_factor)},
		{"deduplicate_items", RELOPT_TYPE_BOOL, offsetof(LbtOptions, btree.deduplicate_items)},
		{"learned", RELOPT_TYPE_BOOL, offsetof(LbtOptions, learned)},
		{"max_error", RELOPT_TYPE_INT, offsetof(LbtOptions, max_error)},
		{"retrain_splits", RELOPT_TYPE_INT, offsetof(LbtOptions, retrain_splits)},
	};

	return (bytea *) build_reloptions(reloptions, validate, lbt_relopt_kind, sizeof(LbtOptions),
									  table, lengthof(table));
}
