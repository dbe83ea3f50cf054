/*
 * report.h - this backend's counts, reported to the shared totals and to the
 * retrain policy.
 */
#ifndef LBT_REPORT_H
#define LBT_REPORT_H

#include "registry/view.h"

/* In _PG_init: report before commits and at exit. */
extern void lbt_report_init(void);

/* Report the events of all indexes.  What there is no memory for is not counted. */
extern void lbt_report_all(void);

/*
 * Report those of one index, at once: within statements that take long.  The
 * caller holds no lock; what was read from shared memory before must be read
 * again.  True when a training is wanted for which no worker is available.
 */
extern bool lbt_report(LbtIndex *index);

#endif							/* LBT_REPORT_H */
