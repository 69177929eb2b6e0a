/* SPDX-License-Identifier: MIT */
/* functions.h - SQL functions beyond SQLite's own. */
#ifndef PROBING_SQL_FUNCTIONS_H
#define PROBING_SQL_FUNCTIONS_H

#include <sqlite3.h>

/* sql_functions_register - make them known to a connection. Returns SQLite's result code. */
int sql_functions_register(sqlite3 *db);

#endif
