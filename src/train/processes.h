/*
 * processes.h - the background processes: launcher.c and worker.c.
 */
#ifndef LBT_PROCESSES_H
#define LBT_PROCESSES_H

#include "postgres.h"

#include "fmgr.h"

/* Entry points, by name, of the server's background workers. */
extern PGDLLEXPORT void lbt_launcher_main(Datum arg);
extern PGDLLEXPORT void lbt_worker_main(Datum arg);

/* For the launcher: forget the models of a database that is gone; false when it exists. */
extern bool lbt_forget_lost_database(Oid database);

#endif							/* LBT_PROCESSES_H */
