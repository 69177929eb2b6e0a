/* SPDX-License-Identifier: MIT */
/* ddl.h - comments in a table's declaration. Private. */
#ifndef PROBING_SQL_DDL_H
#define PROBING_SQL_DDL_H

#include <stddef.h>

/*
 * ddl_comment - the comment behind a column, to the end of its line.
 * @ddl: of sqlite_schema; foreign, may be NULL.
 * @to:  "" if there is none. Terminal controls become blanks.
 */
void ddl_comment(const char *ddl, const char *column, char *to, size_t n_bytes);

/* The comment on the first line, which is about the table. */
void ddl_doc(const char *ddl, char *to, size_t n_bytes);

#endif
