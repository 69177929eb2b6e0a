/* SPDX-License-Identifier: MIT */
/*
 * reader.c - opens a recording of any origin, also while it is written.
 *
 * The file is foreign: it may be no database, another program's, from a newer version, damaged, or crafted;
 * and so are the files beside it, which others may have put there. So
 *
 * 1. nothing is written, rolled back or removed: SQLite reads the files through read_vfs.c, which cannot;
 * 2. files of other users beside the recording are ignored, with a notice;
 * 3. a half-changed file is read from a private copy (recover.c), with a notice;
 * 4. SQLite runs nothing of the schema but views; schemas that no recorder creates are refused (trust.c);
 * 5. the reader checks application id, version and tables before it returns the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/beside.h"
#include "src/store/files.h"
#include "src/store/vfs.h"
#include "src/store/recover.h"
#include "src/store/store_private.h"
#include "src/store/trust.h"

/* Read one number; returns SQLite's code. */
static int query_number(sqlite3 *db, const char *sql, int64_t *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int code;

	code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
	*ret = sqlite3_column_int64(statement, 0);
	return SQLITE_OK;
}

static int guard(sqlite3 *db)
{
	int code;

	code = store_distrust(db);
	return code == SQLITE_OK ? sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL) : code;
}

/*
 * SQLite opens lazily, so only the first read shows whether this works. The name is no URI, but the connection accepts
 * URIs for in-memory schemas. One thread at a time uses it, so it needs no mutex.
 * @ret_code: SQLite's result.
 */
static int open_with(const char *name, int flags, const char *vfs, sqlite3 **ret, int *ret_code)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	int64_t ignored;
	int code;

	code = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, vfs);
	if (code == SQLITE_OK)
		code = guard(db);
	if (code == SQLITE_OK)
		code = series_register(db);
	if (code == SQLITE_OK)
		code = query_number(db, "PRAGMA schema_version", &ignored);
	*ret_code = code;
	if (code != SQLITE_OK)
		return db ? store_read_errno(db, code) : -ENOMEM;
	*ret = TAKE(db);
	return 0;
}

/* Our own copy in our own folder may be rolled back. */
static int open_copy(const char *name, sqlite3 **ret)
{
	int code;

	return open_with(name, SQLITE_OPEN_READWRITE, WRITE_VFS, ret, &code);
}

static int open_file(const char *path, sqlite3 **ret)
{
	CLEANUP(freep) char *name = NULL;
	int r, code;

	code = read_vfs_register();
	if (code != SQLITE_OK)
		return store_errno(NULL, code);
	r = files_plain_name(path, &name);
	if (r < 0)
		return r;
	r = open_with(name, SQLITE_OPEN_READONLY, READ_VFS, ret, &code);
	return code == SQLITE_READONLY_ROLLBACK ? recover_copy(path, open_copy, ret) : r;
}

/* Another user's journal or log is not part of the recording. */
static int tell_foreign(const char *path)
{
	CLEANUP(freep) char *name = NULL;
	int r;

	r = beside_foreign(path, &name);
	if (r >= 0 && name)
		store_notice("%s is ignored: it is not a file of the recording's owner", name);
	return r;
}

/* Count real tables, with pages: a query on a planted view could run for ever. */
static const char count_tables_sql[] =
	"SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
	" AND name IN ('run', 'process', 'thread', 'module', 'function', 'frame', 'stack',"
	" 'stack_total', 'counter', CASE WHEN (SELECT user_version FROM pragma_user_version) < 2"
	" THEN 'sample' ELSE 'sample_block' END)";
enum { N_TABLES = 10 };

static int check_is_ours(sqlite3 *db)
{
	int64_t application = 0, version = 0, n_tables = 0;
	int code;

	code = query_number(db, "PRAGMA application_id", &application);
	if (code != SQLITE_OK)
		return store_read_errno(db, code);
	if (application != STORE_APPLICATION_ID)
		return -EMEDIUMTYPE;
	code = query_number(db, "PRAGMA user_version", &version);
	if (code != SQLITE_OK)
		return store_read_errno(db, code);
	if (version > STORE_SCHEMA_VERSION)
		return -EPROTONOSUPPORT;
	code = query_number(db, count_tables_sql, &n_tables);
	if (code != SQLITE_OK)
		return store_read_errno(db, code);
	return version < 1 || n_tables != N_TABLES ? -EBADMSG : 0;
}

static int check_contents(sqlite3 *db)
{
	int r = check_is_ours(db);

	return r < 0 ? r : store_check_schema(db);
}

int reader_check(sqlite3 *db)
{
	int code = store_distrust(db);

	return code == SQLITE_OK ? check_contents(db) : store_read_errno(db, code);
}

int store_open_reader(const char *path, sqlite3 **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	r = open_file(path, &db);
	if (r >= 0)
		r = check_contents(db);
	if (r >= 0)
		r = store_read_errno(db, metric_tables_attach(db));
	if (r >= 0)
		r = tell_foreign(path);
	if (r < 0)
		return r;
	trust_read_only(db);
	*ret = TAKE(db);
	return 0;
}
