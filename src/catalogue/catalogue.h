/* SPDX-License-Identifier: MIT */
/* catalogue.h - every table of SQL, described once.
 *
 * A table is a file in src/catalogue/tables: its CREATE statement with a comment on each column.
 * tools/catalogue.py turns them into these descriptors at build time. The schema of a new
 * recording, information_schema, DESCRIBE and docs/tables.md are made from them.
 */
#ifndef PROBING_CATALOGUE_H
#define PROBING_CATALOGUE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum catalogue_kind {
	CATALOGUE_TABLE,   /* in the file */
	CATALOGUE_VIEW,    /* of schema main: in the file; of another: a query of ours */
	CATALOGUE_VIRTUAL, /* in no file: a module of the program provides it */
};

struct catalogue_column {
	const char *name;
	const char *type; /* INTEGER, REAL, TEXT, BLOB; ANY: of each row its own */
	const char *unit; /* "ns", "bytes", "seconds since 1970" ...; NULL: none */
	const char *doc;
	bool not_null;
};

struct catalogue_table {
	const char *schema; /* "main" for tables of a recording */
	const char *name;
	const char *doc;   /* meaning of a row */
	const char *ddl;   /* the statement that makes it, with its comments */
	const char *query; /* of a view: its SELECT; else NULL */
	enum catalogue_kind kind;
	bool is_optional; /* a table only of files that have rows for it */
	const struct catalogue_column *columns;
	size_t n_columns;
};

/* All of them; NULL ends the list. */
extern const struct catalogue_table *const catalogue_tables[];

/* All that makes a new recording's tables and views, in one text. */
extern const char catalogue_schema_sql[];

/* catalogue_add_optional - create the missing optional tables of a family ("gpu_") in the connection's main database.
 * SQLite's result code. */
int catalogue_add_optional(sqlite3 *db, const char *prefix);

/* catalogue_find - the table of that name; capitals do not matter. NULL: there is none. */
const struct catalogue_table *catalogue_find(const char *schema, const char *name);
const struct catalogue_column *catalogue_find_column(const struct catalogue_table *table, const char *name);

/* catalogue_declare - declare the columns of a virtual table, in xConnect. SQLite's result code. */
int catalogue_declare(sqlite3 *db, const struct catalogue_table *table);

/*
 * catalogue_create_virtual - create a virtual table, whose statement has the description of each column as a comment.
 * @module: its arguments are the columns. Its schema is attached. Returns SQLite's code.
 */
int catalogue_create_virtual(sqlite3 *db, const struct catalogue_table *table, const char *module);

/*
 * catalogue_execute - run statements that make something temporary, or in an attached database of
 * memory, whether or not the connection is query_only. Returns SQLite's result code.
 */
int catalogue_execute(sqlite3 *db, const char *sql);

/* catalogue_is_recording - whether the connection's main database has a recording's stacks, in tables of
 * its own: virtual ones may be of several recordings, where the same numbers mean different stacks. */
bool catalogue_is_recording(sqlite3 *db);

/*
 * catalogue_register - add the tables that are not in its file to a connection.
 *
 * Always attaches information_schema. If the connection's main database is a recording, also
 * the schemas of its views (python ...). Views that an older file does not have become
 * temporary ones, and missing tables exist without a row. Existing names remain unchanged.
 * The connection may be read-only, and query_only: it is so again afterwards.
 * Call once for a connection. Returns SQLite's result code; the message is the connection's.
 */
int catalogue_register(sqlite3 *db);

#include "src/catalogue/program_table.h"

#endif
