/*
 * route.c - the partition that a row belongs to, found as the server finds it;
 * see outerrows.h.
 *
 * It is a hint, where to look ahead: nobody but us asks for it.
 */
#include "join/outerrows.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "join/join.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"

/* A partitioned table.  What its relcache entry has stays while it is open. */
typedef struct LbtRoute
{
	Relation	rel;			/* NULL: rows have their partition's OID */
	PartitionKey key;
	PartitionBoundInfo bounds;	/* NULL: it has no partitions */
	bool		nulls;			/* rows with NULLs have a partition, too */
	int			nvalues;
	ExprState  *value[PARTITION_MAX_KEYS];
	FmgrInfo	support[PARTITION_MAX_KEYS];
} LbtRoute;

/*
 * May this function hash or compare a column of a partition key before the
 * server does?  Those of arrays, ranges and rows call users' functions.
 */
bool
lbt_can_route(Oid type, Oid function)
{
	char		kind = get_typtype(type);

	return function < FirstNormalObjectId && (kind == TYPTYPE_BASE || kind == TYPTYPE_ENUM) &&
		!OidIsValid(get_element_type(type));
}

/* The table's partition for these values of its key; -1 if it has none. */
static int
partition_of(LbtRoute *route, Datum *values, bool *isnull)
{
	PartitionKey key = route->key;
	const PartitionBoundInfoData *bounds = route->bounds;
	int			partition = -1;
	bool		equal = false;
	int			at = 0;

	if (key->strategy == PARTITION_STRATEGY_HASH)
		return bounds->indexes[compute_partition_hash_value(key->partnatts, route->support,
															key->partcollation, values, isnull) %
							   bounds->nindexes];
	while (at < key->partnatts && !isnull[at])
		at++;
	if (at < key->partnatts)
		partition = bounds->null_index;
	else if (key->strategy == PARTITION_STRATEGY_RANGE)
	{
		at = partition_range_datum_bsearch(route->support, key->partcollation, route->bounds,
										   key->partnatts, values, &equal);
		partition = bounds->indexes[at + 1];
	}
	else if ((at = partition_list_bsearch(route->support, key->partcollation, route->bounds,
										  values[0], &equal)) >= 0 && equal)
		partition = bounds->indexes[at];
	return partition >= 0 ? partition : bounds->default_index;
}

LbtPart *
lbt_route(LbtOuterRows *rows, TupleTableSlot *row)
{
	LbtRoute   *route = rows->route;
	ExprContext *econtext = rows->node->ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	Datum		values[PARTITION_MAX_KEYS];
	bool		isnull[PARTITION_MAX_KEYS];
	int			partition = -1;
	bool		known = true;

	econtext->ecxt_scantuple = row;
	for (int i = 0; i < route->nvalues; i++)
	{
		values[i] = ExecEvalExpr(route->value[i], econtext, &isnull[i]);
		if (isnull[i])
			known &= route->nulls;
		else if (route->key != NULL && route->key->parttyplen[i] == -1)
			known &= !VARATT_IS_EXTERNAL(DatumGetPointer(values[i])) &&
				!VARATT_IS_COMPRESSED(DatumGetPointer(values[i]));
	}
	if (!known)
		;						/* nothing is equal, or it would be fetched */
	else if (route->bounds != NULL)
		partition = partition_of(route, values, isnull);
	else if (route->rel == NULL)
		for (partition = rows->nparts - 1;
			 partition >= 0 && rows->part[partition].table != DatumGetObjectId(values[0]);)
			partition--;
	MemoryContextSwitchTo(old);
	ResetExprContext(econtext);
	return partition >= 0 ? &rows->part[partition] : NULL;
}

void
lbt_route_open(LbtOuterRows *rows, const List *facts, const List *key)
{
	LbtRoute   *route = rows->route = palloc0(sizeof(LbtRoute));
	PartitionDesc desc = NULL;

	rows->nparts = list_length(facts) - 1;
	if (OidIsValid(linitial_oid(facts)))
	{
		route->rel = table_open(linitial_oid(facts), NoLock);	/* is locked */
		route->key = RelationGetPartitionKey(route->rel);
		desc = RelationGetPartitionDesc(route->rel, true);
		route->bounds = desc->boundinfo;
		rows->nparts = desc->nparts;
	}
	rows->part = palloc0(rows->nparts * sizeof(LbtPart));
	for (int i = 0; i < rows->nparts; i++)
		rows->part[i].table = desc ? desc->oids[i] : list_nth_oid(facts, i + 1);
	route->nvalues = list_length(key);
	route->nulls = list_length(facts) > route->nvalues + 1; /* of an INSERT */
	for (int i = 0; i < route->nvalues; i++)
	{
		route->value[i] = ExecInitExpr(list_nth(key, i), &rows->node->ss.ps);
		if (desc != NULL)
			fmgr_info(list_nth_oid(facts, i + 1), &route->support[i]);
	}
}

void
lbt_route_close(LbtRoute *route)
{
	if (route->rel != NULL)
		table_close(route->rel, NoLock);
}
