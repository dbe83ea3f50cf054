/*
 * changes.c - the server's hook for changes of catalog objects; see changes.h.
 *
 * Only sessions that have loaded the library have it: who makes or alters an index of ours has, as that opens the
 * index or asks for its access method; who drops one may not have (drop.c).
 */
#include "postgres.h"

#include "am/am.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "learn/lifecycle.h"
#include "miscadmin.h"
#include "sql/alter.h"
#include "sql/changes.h"

static object_access_hook_type next_hook = NULL;

static void
note_relation(ObjectAccessType access, Oid relid)
{
	switch (access)
	{
		case OAT_POST_CREATE:
			lbt_note_create(relid);
			break;
		case OAT_POST_ALTER:
			lbt_note_alter(relid);
			break;
		case OAT_DROP:
			if (lbt_is_our_index(relid))
				lbt_lifecycle_dropped(MyDatabaseId, relid);
			break;
		default:
			break;
	}
}

static void
note_change(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (class == RelationRelationId && sub == 0)
		note_relation(access, object);
	else if (class == DatabaseRelationId && access == OAT_DROP)
		lbt_lifecycle_dropped(object, InvalidOid);
}

void
lbt_changes_init(void)
{
	next_hook = object_access_hook;
	object_access_hook = note_change;
}
