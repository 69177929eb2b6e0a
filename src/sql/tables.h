/* SPDX-License-Identifier: MIT */
/* tables.h - which tables there are, as a question. Private. */
#ifndef PROBING_SQL_TABLES_H
#define PROBING_SQL_TABLES_H

#include <sqlite3.h>

/* Columns schema, name, type of all tables of a connection. Ask between tables_begin() and tables_endp(). */
extern const char tables_sql[];

/*
 * tables_begin - until tables_endp(), SQLite gets less memory than queries do (trust.c).
 * A list of tables or columns expands all views. While one needs more memory than there is, SQLite begins again for each table
 * of the file. Returns the limit of before.
 */
sqlite3_int64 tables_begin(void);
void tables_endp(const sqlite3_int64 *before);

/* tables_schema - "main", or "temp" where a temporary table or view of ours has the rows of the file's, and those of its blocks. */
const char *tables_schema(sqlite3 *db, const char *table);

#endif
