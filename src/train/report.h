/*
 * report.h - this backend's counts, for the totals and the retrain policy.
 */
#ifndef LBT_REPORT_H
#define LBT_REPORT_H

#include "registry/view.h"

/* In _PG_init: report before commits and at exit. */
extern void lbt_report_init(void);

/* Report events of all indexes.  Without memory for some, they are lost. */
extern void lbt_report_all(void);

/*
 * Report those of one index, at once: within statements that take long.  The
 * caller holds no lock; what was read from shared memory before must be read
 * again.  True when a training is wanted for which no worker is available.
 */
extern bool lbt_report(LbtIndex *index);

#endif							/* LBT_REPORT_H */
