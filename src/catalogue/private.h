/* SPDX-License-Identifier: MIT */
/* private.h - what the files of this folder share. */
#ifndef PROBING_CATALOGUE_PRIVATE_H
#define PROBING_CATALOGUE_PRIVATE_H

#include "src/catalogue/catalogue.h"

/* All return SQLite's result code. */

/* query_table.c: the module of tables that are a query, "probing_query". */
int query_table_register(sqlite3 *db);

/* remarks.c: functions that say what the catalogue knows of a table or a column. */
int remarks_register(sqlite3 *db);

/* catalogue.c: a number out of a query of one row; 0 where it cannot be asked. */
sqlite3_int64 catalogue_ask(sqlite3 *db, const char *sql, const char *argument);

#endif
