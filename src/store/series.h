/* SPDX-License-Identifier: MIT */
/* series.h - SQL tables over a recording's samples, which it stores as compressed columns. */
#ifndef PROBING_STORE_SERIES_H
#define PROBING_STORE_SERIES_H

#include <sqlite3.h>

/*
 * series_register - register the tables of samples for a connection to a recording, its database "main":
 *   sample         a row is a sample; docs/file-format.md has the columns
 *   sample_total   sums of samples in a time range, grouped by the columns of a query
 *   block_error(samples, data)   why a row of sample_block is unreadable; NULL: it is readable
 *   row_block_error(rows, data)  the same of row_block
 *   metric_block_error(rows, data)   the same of metric_block
 * A file with a table `sample` of its own, as those of schema version 1, shows that one. A file without a
 * recording causes an error only when the tables are used.
 * Returns SQLite's code.
 */
int series_register(sqlite3 *db);

#endif
