/* SPDX-License-Identifier: MIT */
/* ddl.h - what comments in a table's declaration say. Private. */
#ifndef PROBING_SQL_DDL_H
#define PROBING_SQL_DDL_H

#include <stddef.h>

/*
 * ddl_comment - the comment behind a column, to the end of its line.
 * @ddl: as sqlite_schema keeps it; foreign, may be NULL.
 * @to:  "" where there is none. What a terminal would obey becomes a blank.
 */
void ddl_comment(const char *ddl, const char *column, char *to, size_t n_bytes);

/* The comment on the first line, which is about the table. */
void ddl_doc(const char *ddl, char *to, size_t n_bytes);

#endif
