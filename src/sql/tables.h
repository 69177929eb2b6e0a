/* SPDX-License-Identifier: MIT */
/* tables.h - which tables there are, as a question. Private. */
#ifndef PROBING_SQL_TABLES_H
#define PROBING_SQL_TABLES_H

/* Columns schema, name, type of all tables of a connection. */
extern const char tables_sql[];

#endif
