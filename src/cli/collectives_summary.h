/* SPDX-License-Identifier: MIT */
/* collectives_summary.h - finds in the dumps of a recording which rank has not come to which collective. */
#ifndef PROBING_CLI_COLLECTIVES_SUMMARY_H
#define PROBING_CLI_COLLECTIVES_SUMMARY_H

#include <sqlite3.h>

#include "src/report/report.h"

/*
 * collectives_summary - of the tables comm_flight*.
 * @ret: ended with report_collectives_done(), on failure, too.
 * Returns 1, or 0: the recording has no dump of a Flight Recorder; negative errno of reading.
 */
int collectives_summary(sqlite3 *db, struct report_collectives *ret);

#endif
