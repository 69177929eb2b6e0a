/* SPDX-License-Identifier: MIT */
/* fuzz_schema.c - recordings whose schema is somebody else's text: opened, read, copied.
 *
 * The first byte of an input chooses the table or view, the second how, the rest is SQL:
 *   0  it stands in place of the text
 *   1  it stands behind the text, as a second statement would
 *   2  it is the expression of a generated column of that table
 *   3  it is a constraint, or a column's end, of that table
 * No file may be made but the copy, and the recording may not be changed.
 */
#include "fuzz/recording.h"

#include <dirent.h>

enum { MAX_TEXT = 4000 };

static const char *const names[] = {
	"run",       "process",     "thread",       "module",       "function",        "frame",
	"stack",     "stack_total", "counter",      "sample_block", "anchor_location", "pause",
	"bench_run", "named_frame", "hot_function", "gil",          "other",           "seen",
	"other_x",
};

/* Foreign tables and views are copied, too. */
static const char others[] =
	"CREATE TABLE other(x); INSERT INTO other VALUES(1); CREATE VIEW seen AS SELECT x FROM other;"
	" CREATE INDEX other_x ON other(x)";

static char *new_text(const char *sql, unsigned how, const char *text)
{
	const char *end = strrchr(sql, ')');
	int n = end ? (int)(end - sql) : (int)strlen(sql);

	switch (how % 4) {
	case 0:
		return sqlite3_mprintf("%s", text);
	case 1:
		return sqlite3_mprintf("%s;%s", sql, text);
	case 2:
		return sqlite3_mprintf("%.*s\n, made AS (%s))", n, sql, text);
	default:
		return sqlite3_mprintf("%.*s\n, %s)", n, sql, text);
	}
}

static void take_text(sqlite3_context *context, int n, sqlite3_value **values)
{
	const char *sql = (const char *)sqlite3_value_text(values[0]);
	char *text = new_text(sql ? sql : "", (unsigned)sqlite3_value_int(values[1]),
			      (const char *)sqlite3_value_text(values[2]));

	(void)n;
	sqlite3_result_text(context, text, -1, sqlite3_free);
}

static void change_schema(const char *name, unsigned how, const char *text)
{
	sqlite3_stmt *update = NULL;
	sqlite3 *db;

	recording_must(sqlite3_open(recording_path, &db) == SQLITE_OK, "open");
	recording_must(sqlite3_create_function(db, "new_text", 3, SQLITE_UTF8, NULL, take_text, NULL, NULL) ==
			       SQLITE_OK,
		       "function");
	recording_must(sqlite3_exec(db, "PRAGMA writable_schema = ON; PRAGMA synchronous = OFF", NULL, NULL, NULL) ==
			       SQLITE_OK,
		       "pragma");
	recording_must(sqlite3_prepare_v2(db, "UPDATE sqlite_schema SET sql = new_text(sql, ?1, ?2) WHERE name = ?3",
					  -1, &update, NULL) == SQLITE_OK,
		       "update");
	sqlite3_bind_int(update, 1, (int)how);
	sqlite3_bind_text(update, 2, text, -1, SQLITE_STATIC);
	sqlite3_bind_text(update, 3, name, -1, SQLITE_STATIC);
	sqlite3_step(update);
	sqlite3_finalize(update);
	sqlite3_close(db);
}

/* Our files: the recording, its copy, and SQLite's files beside it. */
static void check_folder(void)
{
	DIR *folder = opendir(".");
	struct dirent *entry;

	recording_must(folder != NULL, "folder");
	while ((entry = readdir(folder)) != NULL)
		recording_must(entry->d_name[0] == '.' || strcmp(entry->d_name, recording_path) == 0 ||
				       strncmp(entry->d_name, recording_copy, sizeof recording_copy - 1) == 0,
			       "a file was made");
	closedir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) char *before = NULL;
	char text[MAX_TEXT + 1];
	size_t n, n_before;
	sqlite3 *db;

	if (!recording_bytes)
		recording_make(others);
	if (n_bytes < 2)
		return 0;
	n = MIN(n_bytes - 2, (size_t)MAX_TEXT);
	memcpy(text, data + 2, n);
	text[n] = '\0';
	recording_write(recording_path, recording_bytes, recording_n_bytes);
	change_schema(names[data[0] % N_ELEMENTS(names)], data[1], text);
	recording_must(read_file(recording_path, RECORDING_MAX_BYTES, &before, &n_before) == 0, "read");
	if (store_open_reader(recording_path, &db) == 0) {
		recording_read(db);
		recording_copy_all(db);
		sqlite3_close(db);
	}
	recording_must(recording_is(recording_path, before, n_before), "the recording was changed");
	check_folder();
	recording_remove();
	return 0;
}
