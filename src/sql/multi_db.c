/* SPDX-License-Identifier: MIT */
/* multi_db.c - several recordings in one connection; see sql.h.
 *
 * Each file has a connection of its own, opened like any recording: SQLite attaches ten databases at most, and
 * would trust them all alike. Queries run in an in-memory database in which each table is a
 * virtual one over that table of all files.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/multi_db_private.h"
#include "src/sql/sql.h"
#include "src/store/store.h"

void multi_db_close(struct multi_db *multi_db)
{
	if (!multi_db)
		return;
	for (size_t i = 0; i < multi_db->n_tables; i++)
		multi_db_table_done(&multi_db->tables[i]);
	free(multi_db->tables);
	for (size_t i = 0; i < multi_db->n_files; i++) {
		sqlite3_close(multi_db->files[i]);
		free(multi_db->paths[i]);
	}
	free(multi_db->files);
	free(multi_db->paths);
	free(multi_db);
}

void multi_db_closep(struct multi_db **multi_db)
{
	multi_db_close(*multi_db);
}

sqlite3 *const *multi_db_connections(const struct multi_db *multi_db, size_t *ret_n)
{
	*ret_n = multi_db->n_files;
	return multi_db->files;
}

static int create_table(sqlite3 *db, const struct multi_db_table *table)
{
	char *columns = multi_db_declaration(table), *sql = NULL;
	int code = SQLITE_NOMEM;

	if (columns)
		sql = sqlite3_mprintf("CREATE VIRTUAL TABLE %s.\"%w\" USING recordings(\n%s)",
				      table->is_program ? PROGRAM_SCHEMA : "main", table->name, columns);
	if (sql)
		code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(columns);
	sqlite3_free(sql);
	return code == SQLITE_OK ? 0 : code == SQLITE_NOMEM ? -ENOMEM : -EBADMSG;
}

static int open_database(struct multi_db *multi_db, sqlite3 **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	int r = 0;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	    sqlite3_create_module(db, "recordings", &multi_db_module, multi_db) != SQLITE_OK ||
	    sqlite3_exec(db, "ATTACH ':memory:' AS " PROGRAM_SCHEMA, NULL, NULL, NULL) != SQLITE_OK)
		return -ENOMEM;
	for (size_t i = 0; i < multi_db->n_tables && r >= 0; i++)
		r = create_table(db, &multi_db->tables[i]);
	if (r < 0)
		return r;
	if (sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL) != SQLITE_OK)
		return -ENOMEM;
	*ret = TAKE(db);
	return 0;
}

/* The rows that its programs wrote, as tables of the schema python. */
static int attach_rows(sqlite3 *db)
{
	int code = sqlite3_exec(db, "ATTACH 'file:" PROGRAM_SCHEMA "?mode=memory' AS " PROGRAM_SCHEMA, NULL, NULL,
				NULL);

	return store_errno(db, code == SQLITE_OK ? row_tables_attach(db) : code);
}

static int add_file(struct multi_db *multi_db, const char *path)
{
	char *copy = strdup(path);
	int r;

	if (!copy)
		return -ENOMEM;
	r = store_open_reader(path, &multi_db->files[multi_db->n_files]);
	if (r < 0) {
		free(copy);
		return r;
	}
	multi_db->paths[multi_db->n_files++] = copy;
	return attach_rows(multi_db->files[multi_db->n_files - 1]);
}

int multi_db_open(const char *const *paths, size_t n, sqlite3 **ret_db, struct multi_db **ret, size_t *ret_failed)
{
	CLEANUP(multi_db_closep) struct multi_db *multi_db = calloc(1, sizeof *multi_db);
	int r = 0;

	*ret_failed = 0;
	if (!multi_db)
		return -ENOMEM;
	multi_db->paths = calloc(n, sizeof *multi_db->paths);
	multi_db->files = calloc(n, sizeof *multi_db->files);
	if (!multi_db->paths || !multi_db->files)
		return -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++) {
		*ret_failed = i;
		r = add_file(multi_db, paths[i]);
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		*ret_failed = i;
		r = multi_db_read_file(multi_db, i);
	}
	if (r >= 0)
		r = open_database(multi_db, ret_db);
	if (r < 0)
		return r;
	*ret = TAKE(multi_db);
	return 0;
}
