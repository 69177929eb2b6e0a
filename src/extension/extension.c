/* SPDX-License-Identifier: MIT */
/*
 * extension.c - the SQLite extension that reads recordings: in the sqlite3 shell, in Python's sqlite3, anywhere.
 *
 * SQLite finds the one function below by the file's name, and calls it for each connection that loads the file.
 * It is linked with the same shared libsqlite3 that Debian's shell and Python use, so it calls SQLite as the
 * rest of probing does. A program with a SQLite of its own would have two, whose connections are
 * incompatible: the extension refuses it by its version, or because of missing functions.
 */
#include <errno.h>
#include <sqlite3ext.h>

#include "base/util.h"
#include "src/extension/extension.h"
#include "src/sql/sql.h"
#include "src/store/store.h"

SQLITE_EXTENSION_INIT1

/* sqlite3ext.h redirects calls through the loading program's table; call the library itself. */
#undef sqlite3_create_function_v2
#undef sqlite3_result_text
#undef sqlite3_sourceid
#undef sqlite3_mprintf

static void put_version(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	(void)values;
	sqlite3_result_text(context, extension_version, -1, SQLITE_STATIC);
}

static int register_version(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "probing_version", 0,
					  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, put_version,
					  NULL, NULL, NULL);
}

/* Register functions, and tables that are in no file. */
static int attach(sqlite3 *db)
{
	int r = sql_attach(db);

	return r == 0 ? SQLITE_OK : r == -ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

/* Registrations for each connection, in this order; each returns SQLite's code. Add a line for a new one. */
static int (*const registrations[])(sqlite3 *db) = { register_version, series_register, attach };

__attribute__((visibility("default"))) int sqlite3_probingsqlite_init(sqlite3 *db, char **error,
								      const sqlite3_api_routines *api);

int sqlite3_probingsqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	int code = SQLITE_OK;

	SQLITE_EXTENSION_INIT2(api);
	/* The loading program's SQLite, found through its table, must be the library we are linked with. */
	if (api->create_function_v2 != sqlite3_create_function_v2) {
		*error = api->mprintf(
			"this program has a SQLite of its own inside (%s), and probing_sqlite.so works with the "
			"system's: use the system's sqlite3 or Python, or 'probing sql'",
			api->sourceid());
		return SQLITE_ERROR;
	}
	for (size_t i = 0; i < N_ELEMENTS(registrations) && code == SQLITE_OK; i++)
		code = registrations[i](db);
	return code;
}
