/*
 * probing_sqlite.c - the tables of a recording that need code, for programs that are not probing.
 *
 * SELECT load_extension('.../probing_sqlite') in the stock shell or in Python's sqlite3. The program and this
 * module share one libsqlite3, which it is linked with: a program that has one of its own inside cannot use it.
 */
#include "src/store/store.h"

/* Source: https://sqlite.org/loadext.html; the name is made of the file's. */
int sqlite3_probingsqlite_init(sqlite3 *db, char **ret_error, const void *api);
int sqlite3_probingsqlite_init(sqlite3 *db, char **ret_error, const void *api)
{
	(void)ret_error;
	(void)api;
	return series_register(db);
}
