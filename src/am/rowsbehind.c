/*
 * rowsbehind.c - rows whose index entries come next; see rowsbehind.h.
 */
#include "am/rowsbehind.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "ahead/predict.h"
#include "am/am.h"
#include "catalog/index.h"
#include "catalog/pg_constraint.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "server/bufferhint.h"
#include "server/compat.h"
#include "server/guard.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Rows to insert before looking again, where none was behind; doubled. */
#define PAUSE_MIN 16
#define PAUSE_MAX 4096

typedef struct Rows
{
	int			n;
	int			at;				/* the next one to be inserted */
	ItemPointerData tid[LBT_BATCH];
	LbtReads   *leaves;			/* that are not at hand; or NULL */
	LbtReads   *rows;			/* that a check looks for; or NULL */
	LbtBatch	batch;			/* of batch.n = n keys, of a model */
} Rows;

struct LbtRowsBehind
{
	bool		never;			/* keys cannot be told */
	CommandId	command;		/* that has put the rows into the table */
	int			ncolumns;		/* of the index's key, the leading ones */
	AttrNumber	attribute[LBT_CODE_COLUMNS];	/* the table's for each */
	Oid			type[LBT_CODE_COLUMNS]; /* or InvalidOid: the index's own */
	bool		skip_nulls;		/* rows with NULLs have no key */
	ItemPointerData end;		/* where the last batch ends */
	int			pause;			/* rows to let pass */
	int			next_pause;
	MemoryContext context;		/* of keys' copies while a batch is made */
	uint8	   *scratch;		/* for keys' encoded values; or NULL */

	/* If keys are computed, or only rows that meet a condition have one: */
	IndexInfo  *info;			/* of the statement; else NULL */
	EState	   *estate;
	TupleTableSlot *slot;		/* the row whose key is being computed */
	ExprState  *condition;
	int			ncopies;
	HeapTuple	copy[LBT_BATCH];	/* rows of a page */

	Rows	   *now;			/* NULL: nothing was ever behind */
	Rows	   *next;
	LbtTally	leaves;			/* asked for */
	LbtTally	rows;
};

/* Is what a key is computed by dear, or not the server's own? */
static bool
is_unfit(Node *node, void *functions)
{
	return node != NULL && (!lbt_key_fits(node, functions) ||
							expression_tree_walker(node, is_unfit, functions));
}

static LbtRowsBehind *
make_behind(const LbtIndex *index, Relation table, IndexInfo *info)
{
	int			functions = 0;
	LbtRowsBehind *behind = MemoryContextAllocZero(info->ii_Context, sizeof(LbtRowsBehind));

	behind->next_pause = PAUSE_MIN;
	behind->never = !lbt_is_heap(table) || is_unfit((Node *) info->ii_Predicate, &functions) ||
		is_unfit((Node *) info->ii_Expressions, &functions);
	if (info->ii_Predicate != NIL || info->ii_Expressions != NIL)
		behind->info = info;
	behind->command = GetCurrentCommandId(false);
	behind->ncolumns = index->keyspec.ncolumns;
	for (int i = 0; i < behind->ncolumns; i++)
	{
		behind->attribute[i] = info->ii_IndexAttrNumbers[i];
		behind->never |= behind->attribute[i] < 0;
	}
	return behind;
}

/* Is there any row behind this one on its page? */
static bool
is_any_behind(Relation table, ItemPointer tid)
{
	Buffer		buf = ReadBuffer(table, ItemPointerGetBlockNumber(tid));
	bool		any;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	any = PageGetMaxOffsetNumber(BufferGetPage(buf)) > ItemPointerGetOffsetNumber(tid);
	UnlockReleaseBuffer(buf);
	return any;
}

/* Make room for batches: they are large, and most statements need none. */
static void
make_batches(LbtRowsBehind *behind, const LbtIndex *index)
{
	MemoryContext context = GetMemoryChunkContext(behind);
	Rows	   *rows = MemoryContextAllocZero(context, 2 * sizeof(Rows));

	behind->now = &rows[0];
	behind->next = &rows[1];
	behind->context = AllocSetContextCreate(context, "learnedbtree rows behind",
											ALLOCSET_SMALL_SIZES);
	if (index->keyspec.encoded)
		behind->scratch = MemoryContextAlloc(context, (Size) LBT_BATCH *
											 behind->ncolumns * LBT_SCRATCH_BYTES);
}

/* Prepare to compute keys.  All of it goes with the statement's memory. */
static void
prepare_to_compute(LbtRowsBehind *behind, Relation table)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(behind));

	behind->estate = CreateExecutorState();
	behind->slot = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(RelationGetDescr(table)),
											&TTSOpsHeapTuple);
	behind->condition = ExecPrepareQual(behind->info->ii_Predicate, behind->estate);
	MemoryContextSwitchTo(old);
}

/* Add a row's key, if it has one; false if it cannot be predicted. */
static bool
add_key(LbtRowsBehind *behind, LbtIndex *index, Rows *rows, const ItemPointerData *tid,
		const Datum *key, const bool *isnull)
{
	LbtKeyValue values[LBT_CODE_COLUMNS];

	for (int i = 0; i < behind->ncolumns; i++)
	{
		const LbtKeyColumn *column = &index->keyspec.column[i];
		int			number = rows->n * behind->ncolumns + i;

		values[i].isnull = isnull[i];
		values[i].ordered = 0;
		if (isnull[i] && behind->skip_nulls)
			return true;
		if (isnull[i])
			continue;
		if (!lbt_keyspec_plain(column, key[i]) ||
			lbt_keyspec_argument(column, behind->type[i], key[i], &values[i], behind->scratch ?
								 behind->scratch + (Size) number * LBT_SCRATCH_BYTES : NULL) != 0)
			return false;
	}
	rows->tid[rows->n++] = *tid;
	lbt_batch_add(index, &rows->batch, values, behind->ncolumns, false);
	return true;
}

/* The same for a row whose columns are the key. */
static bool
add_row(LbtRowsBehind *behind, LbtIndex *index, Relation table, HeapTuple row, Rows *rows)
{
	Datum		key[LBT_CODE_COLUMNS];
	bool		isnull[LBT_CODE_COLUMNS];

	for (int i = 0; i < behind->ncolumns; i++)
	{
		const LbtKeyColumn *column = &index->keyspec.column[i];
		AttrNumber	attribute = behind->attribute[i];
		Form_pg_attribute form = TupleDescAttr(RelationGetDescr(table), attribute - 1);

		if (attribute > HeapTupleHeaderGetNatts(row->t_data))
			return false;
		key[i] = fastgetattr(row, attribute, RelationGetDescr(table), &isnull[i]);
		if (isnull[i])
			continue;
		if (!lbt_keyspec_plain(column, key[i]))
			return false;
		if (column->bytes)
			key[i] = datumCopy(key[i], form->attbyval, form->attlen);
	}
	return add_key(behind, index, rows, &row->t_self, key, isnull);
}

/*
 * The same for the rows of a page that have been copied, as no page may be
 * locked while their keys are computed.  One that fails has no key: inserting
 * its row will raise the error.  Nor have those behind what takes much memory.
 */
static bool
add_copies(LbtRowsBehind *behind, LbtIndex *index, Rows *rows)
{
	ExprContext *econtext = GetPerTupleExprContext(behind->estate);
	volatile bool known = true;

	econtext->ecxt_scantuple = behind->slot;
	LBT_GUARD_BEGIN_SILENTLY();
	{
		for (int i = 0; i < behind->ncopies && known; i++)
		{
			Datum		key[INDEX_MAX_KEYS];
			bool		isnull[INDEX_MAX_KEYS];

			known = !lbt_keys_are_dear(econtext->ecxt_per_tuple_memory);
			if (!known)
				break;
			ExecStoreHeapTuple(behind->copy[i], behind->slot, false);
			if (behind->condition != NULL && !ExecQual(behind->condition, econtext))
				continue;
			FormIndexDatum(behind->info, behind->slot, behind->estate, key, isnull);
			known = add_key(behind, index, rows, &behind->copy[i]->t_self, key, isnull);
		}
	}
	LBT_GUARD_END(known = false);
	behind->ncopies = 0;
	return known;
}

/* Has the command made the row? */
static inline bool
is_new(const LbtRowsBehind *behind, HeapTupleHeader row)
{
	return HeapTupleHeaderGetRawCommandId(row) == behind->command &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(row));
}

/*
 * Add what the command has put on this page of the table, from *at on.  Sets
 * *at to where to go on; false if that is not on the next page.
 */
static bool
add_page(LbtRowsBehind *behind, LbtIndex *index, Relation table, BlockNumber block,
		 OffsetNumber *at, Rows *rows)
{
	Buffer		buf = ReadBuffer(table, block);
	Page		page = BufferGetPage(buf);
	bool		known = true;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	for (; known && rows->n + behind->ncopies < LBT_BATCH && *at <= PageGetMaxOffsetNumber(page);
		 (*at)++)
	{
		ItemId		line = PageGetItemId(page, *at);
		HeapTupleData row;

		if (!ItemIdIsNormal(line))
			continue;
		row.t_data = (HeapTupleHeader) PageGetItem(page, line);
		if (!is_new(behind, row.t_data))
			continue;
		row.t_len = ItemIdGetLength(line);
		row.t_tableOid = RelationGetRelid(table);
		ItemPointerSet(&row.t_self, block, *at);
		if (behind->info != NULL)
			behind->copy[behind->ncopies++] = heap_copytuple(&row);
		else
			known = add_row(behind, index, table, &row, rows);
	}
	known &= *at > PageGetMaxOffsetNumber(page);
	UnlockReleaseBuffer(buf);
	if (behind->ncopies > 0)
		known &= add_copies(behind, index, rows);
	return known;
}

/*
 * Make a batch of the rows from behind->end on, as far as their pages follow
 * each other and are in shared buffers, and ask for missing leaves.  Moves
 * behind->end to the batch's end.
 */
static void
begin_rows_behind(LbtRowsBehind *behind, Relation rel, LbtIndex *index, Relation table, Rows *rows)
{
	MemoryContext old = MemoryContextSwitchTo(behind->context);
	BlockNumber first = ItemPointerGetBlockNumber(&behind->end);
	BlockNumber block = first;
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);
	OffsetNumber at = ItemPointerGetOffsetNumberNoCheck(&behind->end);

	MemoryContextReset(behind->context);
	if (behind->estate != NULL)
		ResetPerTupleExprContext(behind->estate);
	rows->n = rows->at = 0;
	lbt_batch_begin(&rows->batch, behind->ncolumns, false);

	/* A lookup of the statement itself may come before its first row. */
	while (block < nblocks)
	{
		int			before = rows->n;

		if (!add_page(behind, index, table, block, &at, rows) ||
			(rows->n == before && block > first) ||
			block + 1 >= nblocks || !lbt_block_cached(table, block + 1))
			break;
		block++;
		at = FirstOffsetNumber;
	}
	ItemPointerSet(&behind->end, block, at);
	MemoryContextSwitchTo(GetMemoryChunkContext(behind));
	if (rows->n > 0)
	{
		lbt_batch_finish(index, &rows->batch);
		if (lbt_enable_prefetch)
			rows->leaves = lbt_batch_read(rel, index, &rows->batch, &behind->leaves);
		lbt_reads_start(rows->leaves);
		if (index->keyspec.nplaces > 0)
			lbt_batch_near(rel, index, &rows->batch, false);
	}
	MemoryContextSwitchTo(old);
}

/* Forget a batch, if there is one. */
static void
end_rows(LbtRowsBehind *behind, LbtIndex *index, Rows *rows)
{
	lbt_reads_end(&rows->leaves);
	lbt_reads_end(&rows->rows);
	lbt_count_tally(index, LBT_EV_PREFETCHED, &behind->leaves, NULL);
	lbt_count_tally(index, LBT_EV_ROWS_PREFETCHED, &behind->rows, NULL);
	rows->n = rows->at = 0;
}

/* Is this the batch's next row? */
static inline bool
is_next(Rows *rows, ItemPointer tid)
{
	return rows->at < rows->n && ItemPointerEquals(&rows->tid[rows->at], tid);
}

/* Nothing is behind, or looking does not pay: not again for some rows. */
static void
let_pass(LbtRowsBehind *behind)
{
	behind->pause = behind->next_pause;
	behind->next_pause = Min(behind->next_pause * 2, PAUSE_MAX);
}

/* Is the row's place the index's right end, where all that comes goes? */
static inline bool
is_ascending(const LbtIndex *index)
{
	return index->inserting.last.block != InvalidBlockNumber &&
		index->inserting.last.hi == PG_UINT64_MAX;
}

/* Go on with the next batch, if there is one. */
static void
take_next(LbtRowsBehind *behind, LbtIndex *index)
{
	Rows	   *done = behind->now;

	end_rows(behind, index, done);
	behind->now = behind->next;
	behind->next = done;
}

/* Hand on the prediction for the batch's next row. */
static inline void
hand_on(LbtIndex *index, Rows *rows)
{
	if (rows->leaves != NULL)
		(void) lbt_reads_come(rows->leaves, rows->at);
	lbt_post_prediction(index, &rows->batch, rows->at);
}

void
lbt_rows_behind(LbtRowsBehind **where, Relation rel, LbtIndex *index, Relation table,
				ItemPointer tid, IndexInfo *info)
{
	LbtRowsBehind *behind = *where;
	Rows	   *rows;
	bool		in_vain;

	if (unlikely(behind == NULL))
		behind = *where = make_behind(index, table, info);
	if (behind->never)
		return;
	if (behind->pause > 0)
	{
		behind->pause--;
		return;
	}
	if (behind->now == NULL)
	{
		if (is_ascending(index) || !is_any_behind(table, tid))
		{
			let_pass(behind);
			return;
		}
		make_batches(behind, index);
		if (behind->info != NULL)
			prepare_to_compute(behind, table);
	}
	in_vain = behind->now->n > 0 && behind->now->at == 0;
	if (!is_next(behind->now, tid))
		take_next(behind, index);
	rows = behind->now;
	if (!is_next(rows, tid))
	{
		end_rows(behind, index, rows);
		if (in_vain || is_ascending(index))
		{
			let_pass(behind);
			return;
		}
		behind->end = *tid;
		ItemPointerSetOffsetNumber(&behind->end, ItemPointerGetOffsetNumber(tid) + 1);
		begin_rows_behind(behind, rel, index, table, rows);
		if (rows->n == 0)
			let_pass(behind);
		return;
	}
	behind->next_pause = PAUSE_MIN;
	hand_on(index, rows);
	if (rows->at++ == rows->n / 2 && rows->n == LBT_BATCH)
		begin_rows_behind(behind, rel, index, table, behind->next);
}

/* ---- foreign keys that are checked when the statement ends ---- */

/* Foreign keys to follow: one to a partitioned table has many. */
#define MAX_KEYS 8

/* Checks in a row for rows that we do not know, before giving up. */
#define MAX_UNKNOWN 64

/* A foreign key of the table. */
typedef struct Key
{
	const ForeignKeyCacheInfo *info;
	Oid			index;			/* that checks look up */
	int			unknown;
	LbtRowsBehind *behind;		/* NULL before the first check */
} Key;

bool		lbt_checks_expected = false;

/* In TopTransactionContext; of use while lbt_checks_expected. */
static struct
{
	MemoryContext context;
	Oid			table;
	ItemPointerData start;		/* where its new rows may begin */
	CommandId	command;
	int			nkeys;
	Key		   *key;
}			checks;

static void
forget_checks(XactEvent event, void *arg)
{
	lbt_checks_expected = false;
}

void
lbt_checks_end(void)
{
	if (lbt_checks_expected)
		MemoryContextDelete(checks.context);
	lbt_checks_expected = false;
}

void
lbt_checks_expect(Relation table)
{
	static bool registered = false;
	BlockNumber nblocks;
	MemoryContext old;
	List	   *keys = RelationGetFKeyList(table);
	ListCell   *lc;

	lbt_checks_end();
	if (keys == NIL || !lbt_enable || !lbt_is_heap(table) || RelationUsesLocalBuffers(table) ||
		SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
		return;
	if (!registered)
		RegisterXactCallback(forget_checks, NULL);
	registered = true;
	nblocks = RelationGetNumberOfBlocks(table);
	checks.context = AllocSetContextCreate(TopTransactionContext, "learnedbtree foreign keys",
										   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(checks.context);
	checks.table = RelationGetRelid(table);
	ItemPointerSet(&checks.start, Max(nblocks, 1) - 1, FirstOffsetNumber);
	checks.command = GetCurrentCommandId(false);
	checks.nkeys = 0;
	checks.key = palloc0(MAX_KEYS * sizeof(Key));
	keys = copyObjectImpl(keys);	/* the macro wants newer compilers on 19 */
	foreach(lc, keys)
	{
		const ForeignKeyCacheInfo *info = lfirst(lc);
		HeapTuple	row;

		if (checks.nkeys == MAX_KEYS)
			break;
		row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(info->conoid));
		if (!HeapTupleIsValid(row))
			continue;
		checks.key[checks.nkeys].info = info;
		checks.key[checks.nkeys++].index = ((Form_pg_constraint) GETSTRUCT(row))->conindid;
		ReleaseSysCache(row);
	}
	MemoryContextSwitchTo(old);
	lbt_checks_expected = checks.nkeys > 0;
}

/* What the first check of a foreign key needs. */
static void
begin_checks(Key *key, Relation table, IndexScanDesc scan, LbtIndex *index)
{
	const Form_pg_index form = scan->indexRelation->rd_index;
	LbtRowsBehind *behind = MemoryContextAllocZero(checks.context, sizeof(LbtRowsBehind));

	key->behind = behind;
	behind->command = checks.command;
	behind->skip_nulls = true;
	behind->end = checks.start;
	while (behind->ncolumns < index->keyspec.ncolumns)
	{
		int			column = behind->ncolumns;
		int			i = 0;

		while (i < key->info->nkeys && key->info->confkey[i] != form->indkey.values[column])
			i++;
		if (i == key->info->nkeys)
			break;
		behind->attribute[column] = key->info->conkey[i];
		behind->type[column] =
			getBaseType(TupleDescAttr(RelationGetDescr(table), key->info->conkey[i] - 1)->atttypid);
		if (!lbt_keyspec_takes(&index->keyspec.column[column], behind->type[column]))
			break;
		behind->ncolumns++;
	}
	behind->never = behind->ncolumns == 0;
	if (!behind->never)
		make_batches(behind, index);
}

/* Find out which blocks of the referenced table a batch will need. */
static void
look_for_rows(LbtRowsBehind *behind, IndexScanDesc scan, LbtIndex *index, Rows *rows)
{
	MemoryContext old;

	if (rows->n == 0 || index->keyspec.nplaces == 0 || scan->heapRelation == NULL ||
		!lbt_is_heap(scan->heapRelation) || lbt_block_hints == NULL ||
		rows->batch.target[0].generation != index->generation)
		return;
	if (rows->leaves != NULL)
	{
		(void) lbt_reads_come(rows->leaves, rows->n - 1);
		lbt_batch_near(scan->indexRelation, index, &rows->batch, false);
	}
	old = MemoryContextSwitchTo(checks.context);
	rows->rows = lbt_batch_rows(scan->indexRelation, index, scan->heapRelation, &rows->batch,
								lbt_enable_row_prefetch ? &behind->rows : NULL);
	lbt_reads_start(rows->rows);
	MemoryContextSwitchTo(old);
}

/* Hand on the prediction for this check, if it is of a row that we know. */
static bool
check_is_next(Key *key, Relation table, IndexScanDesc scan, LbtIndex *index, uint64 code)
{
	LbtRowsBehind *behind = key->behind;
	Rows	   *rows = behind->now;

	lbt_reads_of(rows->leaves, scan->indexRelation);
	lbt_reads_of(rows->rows, scan->heapRelation);
	lbt_reads_of(behind->next->leaves, scan->indexRelation);
	lbt_reads_of(behind->next->rows, scan->heapRelation);
	if (rows->at == rows->n)
	{
		take_next(behind, index);
		rows = behind->now;
		if (rows->n == 0)
		{
			begin_rows_behind(behind, scan->indexRelation, index, table, rows);
			look_for_rows(behind, scan, index, rows);
		}
	}
	for (int at = rows->at; at < rows->n; at++)
		if (rows->batch.key[at].code == code)
		{
			bool		first = rows->at == 0;
			bool		half = rows->at <= rows->n / 2 && at >= rows->n / 2;

			rows->at = at;
			if (first)
				begin_rows_behind(behind, scan->indexRelation, index, table, behind->next);
			if (half)
				look_for_rows(behind, scan, index, behind->next);
			if (rows->rows != NULL)
				(void) lbt_reads_come(rows->rows, at);
			hand_on(index, rows);
			rows->at++;
			key->unknown = 0;
			return true;
		}
	behind->never = ++key->unknown > MAX_UNKNOWN;
	return false;
}

void
lbt_check_comes(IndexScanDesc scan, LbtIndex *index, const LbtBound *bound)
{
	Relation	table = NULL;
	bool		found = false;

	for (int i = 0; i < checks.nkeys && !found; i++)
	{
		Key		   *key = &checks.key[i];

		if (key->index != RelationGetRelid(scan->indexRelation) ||
			(key->behind && key->behind->never) || bound->past)
			continue;
		lbt_index_update(index);
		if (index->state != LBT_READY || !lbt_holds_lock(checks.table, RowExclusiveLock))
			break;
		if (table == NULL && !RelationIsValid(table = RelationIdGetRelation(checks.table)))
			break;
		if (key->behind == NULL)
			begin_checks(key, table, scan, index);
		found = !key->behind->never && bound->ncolumns == key->behind->ncolumns &&
			check_is_next(key, table, scan, index, bound_code(index, bound));
	}
	if (RelationIsValid(table))
		RelationClose(table);
}
