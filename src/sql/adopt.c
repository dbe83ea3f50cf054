/*
 * adopt.c - learnedbtree_adopt(), learnedbtree_release().
 */
#include "postgres.h"

#include "am/am.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "sql/index_arg.h"
#include "sql/takeover.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(learnedbtree_adopt);
PG_FUNCTION_INFO_V1(learnedbtree_release);

static void
report(Oid index, LbtTurn turn, LbtOutcome outcome, const LbtVerdict *verdict)
{
	bool		adopt = turn == LBT_ADOPT;
	const char *name = get_rel_name(index);

	switch (outcome)
	{
		case LBT_TURNED:
			if (verdict->losses)
				ereport(WARNING,
						(errmsg("index \"%s\" loses what this server version has for btree only", name),
						 errdetail("While it is adopted, %s.", verdict->losses)));
			break;
		case LBT_ALREADY:
			ereport(NOTICE,
					(errmsg("index \"%s\" is a %s index already", name, adopt ? "learnedbtree" : "btree")));
			break;
		case LBT_GONE:
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("relation with OID %u does not exist", index)));
			break;
		case LBT_REFUSED:
			ereport(ERROR,
					(errcode(verdict->sqlstate),
					 adopt ? errmsg("cannot adopt \"%s\": %s", name, verdict->reason) :
					 errmsg("cannot release \"%s\": %s", name, verdict->reason),
					 verdict->hint ? errhint("%s", verdict->hint) : 0));
			break;
	}
}

static void
turn_argument(FunctionCallInfo fcinfo, LbtTurn turn, bool force)
{
	Oid			index = lbt_index_argument(fcinfo);
	LbtVerdict	verdict;
	LbtOutcome	outcome = lbt_turn_index(index, turn, force, &verdict);

	report(index, turn, outcome, &verdict);
	if (turn == LBT_ADOPT && outcome == LBT_TURNED)
		lbt_tell_no_memory();
}

Datum
learnedbtree_adopt(PG_FUNCTION_ARGS)
{
	lbt_forbid_readonly("learnedbtree_adopt()");
	turn_argument(fcinfo, LBT_ADOPT, !PG_ARGISNULL(1) && PG_GETARG_BOOL(1));
	PG_RETURN_VOID();
}

Datum
learnedbtree_release(PG_FUNCTION_ARGS)
{
	lbt_forbid_readonly("learnedbtree_release()");
	turn_argument(fcinfo, LBT_RELEASE, false);
	PG_RETURN_VOID();
}
