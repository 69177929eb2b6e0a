/* SPDX-License-Identifier: MIT */
/* functions_private.h - a function of SQL is an entry in the table of its family. */
#ifndef PROBING_SQL_FUNCTIONS_PRIVATE_H
#define PROBING_SQL_FUNCTIONS_PRIVATE_H

#include <sqlite3.h>
#include <stdbool.h>

struct sql_function {
	const char *name;
	int n_arguments; /* -1: any number */
	const char *doc; /* "f(x, y): what it returns"; NULL: hidden */
	int flags;       /* SQLITE_DETERMINISTIC ... */
	void *data;      /* sqlite3_user_data() */
	/* A scalar function has call, an aggregate step and finish. */
	void (*call)(sqlite3_context *context, int n, sqlite3_value **arguments);
	void (*step)(sqlite3_context *context, int n, sqlite3_value **arguments);
	void (*finish)(sqlite3_context *context);
};

/* Each family, ended by an entry without a name: one file each. */
extern const struct sql_function time_functions[];
extern const struct sql_function percentile_functions[];
extern const struct sql_function spread_functions[];
extern const struct sql_function text_functions[];

/* Stacks as text use their connection, and cache its rows: registered separately. */
int stack_functions_register(sqlite3 *db);
extern const struct sql_function stack_functions[];

/* generate_series(), which is a table. */
int series_table_register(sqlite3 *db);

#endif
