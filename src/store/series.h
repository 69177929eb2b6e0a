/* SPDX-License-Identifier: MIT */
/* series.h - the samples of a recording, which stand in it as compressed columns, as tables of SQL. */
#ifndef PROBING_STORE_SERIES_H
#define PROBING_STORE_SERIES_H

#include <sqlite3.h>

/*
 * series_register - make samples known to a connection to a recording, its database "main":
 *   sample         a row is a sample; docs/file-format.md has the columns
 *   sample_total   samples of a time added up, by whichever columns a query names
 *   block_error(samples, data)   why a row of sample_block cannot be read; NULL: it can
 * A file that has a table `sample` itself, as those of schema version 1, shows that one. Files without any
 * recording are no matter until the tables are asked.
 * Returns SQLite's code.
 */
int series_register(sqlite3 *db);

#endif
