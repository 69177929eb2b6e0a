/* rows.c - all rows of a table, from one database into another. */
#include <errno.h>

#include "base/util.h"
#include "src/store/store_private.h"

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

static char *insert_sql(const char *table, int n_columns)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES", table);
	for (int i = 0; i < n_columns; i++)
		sqlite3_str_appendf(sql, i == 0 ? "(?" : ",?");
	sqlite3_str_appendf(sql, ")");
	return sqlite3_str_finish(sql);
}

/* Takes the text. */
static int prepare(sqlite3 *db, char *sql, sqlite3_stmt **ret)
{
	int code = sql ? sqlite3_prepare_v2(db, sql, -1, ret, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return store_errno(db, code);
}

int store_copy_rows(sqlite3 *from, sqlite3 *to, const char *table, bool (*keep_going)(void *data, uint64_t n), void *data)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL, *write = NULL;
	uint64_t n = 0;
	int code, r;

	r = prepare(from, sqlite3_mprintf("SELECT * FROM \"%w\"", table), &rows);
	if (r >= 0)
		r = prepare(to, insert_sql(table, sqlite3_column_count(rows)), &write);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(rows) && r >= 0; i++)
			r = store_errno(to, sqlite3_bind_value(write, i + 1, sqlite3_column_value(rows, i)));
		if (r >= 0)
			r = store_errno(to, sqlite3_step(write));
		sqlite3_reset(write);
		if (r >= 0 && ++n % 4096 == 0 && keep_going && !keep_going(data, n))
			r = -ECANCELED;
	}
	return r < 0 ? r : store_read_errno(from, code);
}
