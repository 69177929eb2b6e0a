/* SPDX-License-Identifier: MIT */
/*
 * functions.c - the families of functions, registered with a connection.
 */
#include "src/sql/functions.h"

#include "base/util.h"
#include "src/sql/functions/functions_private.h"

static const struct sql_function *const families[] = {
	time_functions, percentile_functions, spread_functions, text_functions, stack_functions,
};

static const char *find_doc(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(families); i++)
		for (const struct sql_function *function = families[i]; function->name; function++)
			if (function->doc && sqlite3_stricmp(function->name, name) == 0)
				return function->doc;
	return NULL;
}

static void function_remarks(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const char *name = (const char *)sqlite3_value_text(arguments[0]);

	(void)n;
	sqlite3_result_text(context, name ? find_doc(name) : NULL, -1, SQLITE_STATIC);
}

static int register_one(sqlite3 *db, const struct sql_function *function)
{
	return sqlite3_create_function_v2(db, function->name, function->n_arguments, SQLITE_UTF8 | function->flags,
					  function->data, function->call, function->step, function->finish, NULL);
}

int sql_functions_register(sqlite3 *db)
{
	int code;

	code = sqlite3_create_function_v2(db, "probing_function_remarks", 1, SQLITE_UTF8, NULL, function_remarks, NULL,
					  NULL, NULL);
	for (size_t i = 0; i < N_ELEMENTS(families); i++)
		for (const struct sql_function *function = families[i]; function->name && code == SQLITE_OK; function++)
			if (function->call || function->step)
				code = register_one(db, function);
	if (code == SQLITE_OK)
		code = series_table_register(db);
	return code == SQLITE_OK ? stack_functions_register(db) : code;
}
