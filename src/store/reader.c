/*
 * reader.c - opening a recording that somebody else wrote, or is writing.
 *
 * The file is foreign bytes: it may be no database, another program's, from a
 * newer version, damaged, or made to hurt. So nothing of it is run (no trusted
 * schema, no extensions), nothing in it is changed, and what it claims to be
 * is checked before anyone asks it a question.
 *
 * How a file has to be opened depends on how its writer ended:
 *   finished, live or killed  read-only; the log's index is made where missing
 *   killed while finishing    a journal waits to be rolled back: takes write access
 *   folder not writable       the log's index cannot be made; where there is no
 *                             log either, the file alone is the whole truth
 * They are tried in this order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "src/store/files.h"
#include "src/store/store_private.h"

enum { BUSY_MS = 1000 };

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/* What holds for whoever opens a foreign file, also to change it. */
static int distrust(sqlite3 *db)
{
	int code;

	code = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, BUSY_MS);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
	return code;
}

static int guard(sqlite3 *db)
{
	int code;

	code = distrust(db);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL);
	return code;
}

/* One number out of the file; returns SQLite's code. */
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

/* SQLite opens lazily: only the first read tells whether this way works. */
static int open_with(const char *name, int flags, sqlite3 **ret, int *ret_error)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	int64_t ignored;
	int code;

	/* A plain name is none of a URI; schemas of memory will be attached by one. */
	code = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, NULL);
	if (!db) {
		*ret_error = -ENOMEM;
		return code;
	}
	if (code == SQLITE_OK)
		code = guard(db);
	if (code == SQLITE_OK)
		code = series_register(db);
	if (code == SQLITE_OK)
		code = query_number(db, "PRAGMA schema_version", &ignored);
	*ret_error = store_read_errno(db, code);
	if (code == SQLITE_OK)
		*ret = TAKE(db);
	return code;
}

/* "file:" and the name with everything but the plainest characters as %xx. */
static int immutable_name(const char *name, char **ret)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	static const char scheme[] = "file:", query[] = "?immutable=1";
	char *text, *to;

	text = malloc(sizeof scheme + 3 * strlen(name) + sizeof query);
	if (!text)
		return -ENOMEM;
	to = stpcpy(text, scheme);
	for (; *name; name++) {
		if (strchr(plain, *name))
			*to++ = *name;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*name);
	}
	strcpy(to, query);
	*ret = text;
	return 0;
}

static int open_immutable(const char *name, sqlite3 **ret, int *ret_error)
{
	CLEANUP(freep) char *uri = NULL;
	int r;

	r = immutable_name(name, &uri);
	if (r < 0) {
		*ret_error = r;
		return SQLITE_NOMEM;
	}
	return open_with(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, ret, ret_error);
}

static bool is_refused(int code)
{
	return (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
}

static int open_somehow(const char *path, sqlite3 **ret)
{
	CLEANUP(freep) char *name = NULL;
	int r, code;

	r = files_plain_name(path, &name);
	if (r < 0)
		return r;
	code = open_with(name, SQLITE_OPEN_READONLY, ret, &r);
	if ((code & 0xff) == SQLITE_READONLY)
		code = open_with(name, SQLITE_OPEN_READWRITE, ret, &r);
	if (is_refused(code) && !files_have_log(name))
		open_immutable(name, ret, &r);
	/* The file is there: what is missing and cannot be made is the log's index. */
	return r == -ENOENT ? -EACCES : r;
}

/* Real tables, with pages of their own: a view could claim anything, for ever. */
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

int reader_check(sqlite3 *db)
{
	int code;

	code = distrust(db);
	if (code != SQLITE_OK)
		return store_read_errno(db, code);
	return check_is_ours(db);
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
	r = open_somehow(path, &db);
	if (r < 0)
		return r;
	r = check_is_ours(db);
	if (r < 0)
		return r;
	*ret = TAKE(db);
	return 0;
}
