/* SPDX-License-Identifier: MIT */
/* private.h - declarations that the files of this folder share. */
#ifndef PROBING_CATALOGUE_PRIVATE_H
#define PROBING_CATALOGUE_PRIVATE_H

#include "src/catalogue/catalogue.h"

/* All return SQLite's result code. */

/* query_table.c: the module of tables that are a query, "probing_query". */
int query_table_register(sqlite3 *db);

/* remarks.c: SQL functions with the documentation of tables and columns. */
int remarks_register(sqlite3 *db);

/* catalogue.c: a number from a query of one row; 0 if the query fails. */
sqlite3_int64 catalogue_ask(sqlite3 *db, const char *sql, const char *argument);

#endif
