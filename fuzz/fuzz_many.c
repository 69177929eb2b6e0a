/* SPDX-License-Identifier: MIT */
/* fuzz_many.c - recordings whose tables are not what they should be, asked as several.
 *
 * The input is SQL that changes a sound recording, as whoever hands a file on could; its first byte chooses
 * whether the file is the first of the two, or the second. Then every table there is gets read.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/sql/sql.h"
#include "src/store/store.h"

enum { MAX_STEPS = 20, MAX_TEXT = 1 << 14 };

static char sound[64], changed[64];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_many: cannot make the sound recording: %s\n", what);
	exit(1);
}

static void remove_files(void)
{
	unlink(sound);
	unlink(changed);
}

static void make_sound(const char *path)
{
	struct store *store;

	must(store_create(path, NULL, &store) == 0, "create");
	must(store_begin(store) == 0, "begin");
	must(store_put_process(store,
			       &(struct process_row){ .pid = 1, .name = "p", .command = "p", .started_ns = 1 }) == 0,
	     "process");
	must(store_put_counter(store, "samples", 7) == 0, "counter");
	must(store_commit(store) == 0 && store_finish(store, 1) == 0, "finish");
}

static void prepare(void)
{
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	if (sound[0])
		return;
	snprintf(sound, sizeof sound, "%s/fuzz-many-%d.db", folder, getpid());
	snprintf(changed, sizeof changed, "%s/fuzz-many-%d-changed.db", folder, getpid());
	make_sound(sound);
	atexit(remove_files);
}

/* Limit the steps, because a query may run for ever. */
static int tire(void *data)
{
	unsigned *n = data;

	return ++*n > MAX_STEPS;
}

/* Deny what changes more than the file, or takes long. */
static int permit(void *data, int action, const char *a, const char *b, const char *c, const char *d)
{
	(void)data;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return action == SQLITE_ATTACH || action == SQLITE_PRAGMA || action == SQLITE_FUNCTION ? SQLITE_DENY
											       : SQLITE_OK;
}

static void change(const char *sql)
{
	unsigned n = 0;
	sqlite3 *db;

	must(sqlite3_open(changed, &db) == SQLITE_OK, "open");
	sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY", NULL, NULL, NULL);
	sqlite3_set_authorizer(db, permit, NULL);
	sqlite3_progress_handler(db, 1000, tire, &n);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_close(db);
}

static void copy_sound(void)
{
	CLEANUP(freep) char *bytes = NULL;
	size_t n;
	FILE *out;

	must(read_file(sound, 1 << 20, &bytes, &n) == 0, "read");
	out = fopen(changed, "we");
	must(out && fwrite(bytes, 1, n, out) == n && fclose(out) == 0, "copy");
}

static int read_table(void *data, const struct sql_table *table)
{
	sqlite3 *db = data;
	sqlite3_stmt *statement = NULL;
	char *sql = sqlite3_mprintf("SELECT *, rowid FROM \"%w\".\"%w\" WHERE run <> 7 OR run = 1", table->schema,
				    table->name);

	if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK)
		for (unsigned i = 0; i < 100 && sqlite3_step(statement) == SQLITE_ROW; i++)
			if (sqlite3_column_int(statement, 0) < 1 || sqlite3_column_int(statement, 0) > 2)
				abort();
	sqlite3_finalize(statement);
	sqlite3_free(sql);
	return 0;
}

static void ask(const char *const paths[2])
{
	struct multi_db *multi_db;
	sqlite3 *db;
	sqlite3 *const *files;
	size_t n, failed;
	unsigned n_looks = 0;

	if (multi_db_open(paths, 2, &db, &multi_db, &failed) < 0)
		return;
	files = multi_db_connections(multi_db, &n);
	for (size_t i = 0; i < n; i++)
		sqlite3_progress_handler(files[i], 1000, tire, &n_looks);
	sqlite3_progress_handler(db, 1000, tire, &n_looks);
	sql_each_table(db, NULL, read_table, db);
	if (sqlite3_close(db) != SQLITE_OK)
		abort();
	multi_db_close(multi_db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char sql[MAX_TEXT];
	bool is_first;

	if (n_bytes < 1 || n_bytes > MAX_TEXT)
		return 0;
	prepare();
	memcpy(sql, data + 1, n_bytes - 1);
	sql[n_bytes - 1] = '\0';
	is_first = data[0] % 2 == 0;
	copy_sound();
	change(sql);
	ask((const char *const[2]){ is_first ? changed : sound, is_first ? sound : changed });
	return 0;
}
