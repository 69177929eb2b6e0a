/* SPDX-License-Identifier: MIT */
/*
 * places.c - places of native and kernel code in a file, for completing their names.
 *
 * The file is foreign: ids are checked against the recorder's range, so that
 * they fit the tables of the caller.
 */
#include <errno.h>
#include <stdio.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store_private.h"

/* Frames of inlined functions are numbered from 2^32 on. */
#define MAX_FRAME (INT64_C(1) << 40)

static bool is_id(sqlite3_stmt *statement, int column, int64_t max)
{
	int64_t id = sqlite3_column_int64(statement, column);

	return sqlite3_column_type(statement, column) == SQLITE_NULL || (id >= 0 && id <= max);
}

static const char *text(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

/* Pass each row of a query to @take. */
static int each_row(struct store *store, const char *sql, int (*take)(void *context, sqlite3_stmt *row), void *context)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	int code, r;

	code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
	if (code != SQLITE_OK)
		return store_read_errno(store->db, code);
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		r = take(context, statement);
		if (r < 0)
			return r;
	}
	return code == SQLITE_DONE ? 0 : store_read_errno(store->db, code);
}

struct module_taker {
	int (*take)(void *data, const struct module_row *row);
	void *data;
};

static int take_module(void *context, sqlite3_stmt *statement)
{
	const struct module_taker *taker = context;
	const struct module_row row = {
		.module = sqlite3_column_int64(statement, 0),
		.path = text(statement, 1),
		.build_id = text(statement, 2),
	};

	if (!is_id(statement, 0, UINT32_MAX) || !row.path)
		return -EBADMSG;
	return taker->take(taker->data, &row);
}

int store_each_module(struct store *store, int (*take)(void *data, const struct module_row *row), void *data)
{
	struct module_taker taker = { take, data };

	return each_row(store, "SELECT module, path, build_id FROM module ORDER BY module", take_module, &taker);
}

/* Addresses that stacks refer to; frames of inlined functions belong to one of them. */
static const char places_sql[] =
	"SELECT frame.frame, frame.function, frame.module, frame.inlined_into, frame.kind = 'kernel',"
	" frame.address, frame.line, frame.is_eval, function.name GLOB '*+0x*'"
	" FROM frame LEFT JOIN function USING (function)"
	" WHERE frame.kind IN ('native', 'kernel') AND frame.frame < 1 << 32"
	" ORDER BY frame.module, frame.frame";

struct place_taker {
	int (*take)(void *data, const struct place_row *row);
	void *data;
};

static int take_place(void *context, sqlite3_stmt *statement)
{
	const struct place_taker *taker = context;
	const struct place_row row = {
		.frame = sqlite3_column_int64(statement, 0),
		.function = sqlite3_column_int64(statement, 1),
		.module = sqlite3_column_int64(statement, 2),
		.inlined_into = sqlite3_column_int64(statement, 3),
		.kind = sqlite3_column_int(statement, 4) ? FRAME_KERNEL : FRAME_NATIVE,
		.has_address = sqlite3_column_type(statement, 5) != SQLITE_NULL,
		.address = (uint64_t)sqlite3_column_int64(statement, 5),
		.line = sqlite3_column_int(statement, 6),
		.is_eval = sqlite3_column_int(statement, 7),
		.is_offset = sqlite3_column_int(statement, 8),
	};

	if (!is_id(statement, 0, UINT32_MAX) || !is_id(statement, 1, UINT32_MAX) || !is_id(statement, 2, UINT32_MAX) ||
	    !is_id(statement, 3, MAX_FRAME))
		return -EBADMSG;
	return taker->take(taker->data, &row);
}

int store_each_place(struct store *store, int (*take)(void *data, const struct place_row *row), void *data)
{
	struct place_taker taker = { take, data };

	return each_row(store, places_sql, take_place, &taker);
}

struct function_taker {
	int (*take)(void *data, const struct function_row *row);
	void *data;
};

static int take_function(void *context, sqlite3_stmt *statement)
{
	const struct function_taker *taker = context;
	const struct function_row row = {
		.function = sqlite3_column_int64(statement, 0),
		.name = text(statement, 1),
		.kind = sqlite3_column_int(statement, 2) ? FRAME_KERNEL : FRAME_NATIVE,
		.first_line = sqlite3_column_int(statement, 3),
		.module = sqlite3_column_int64(statement, 4),
	};

	if (!is_id(statement, 0, UINT32_MAX) || !is_id(statement, 4, UINT32_MAX) || !row.name)
		return -EBADMSG;
	return taker->take(taker->data, &row);
}

int store_each_function(struct store *store, int (*take)(void *data, const struct function_row *row), void *data)
{
	struct function_taker taker = { take, data };

	return each_row(store,
			"SELECT function, name, kind = 'kernel', first_line, module FROM function"
			" WHERE kind IN ('native', 'kernel') ORDER BY function",
			take_function, &taker);
}

static int take_run(void *context, sqlite3_stmt *statement)
{
	struct run_names *run = context;

	snprintf(run->host, sizeof run->host, "%s", text(statement, 0) ?: "");
	snprintf(run->kernel, sizeof run->kernel, "%s", text(statement, 1) ?: "");
	run->started = sqlite3_column_double(statement, 2);
	return 0;
}

int store_read_run(struct store *store, struct run_names *ret)
{
	*ret = (struct run_names){ .started = 0 };
	return each_row(store, "SELECT host, kernel, started FROM run LIMIT 1", take_run, ret);
}

static int take_last(void *context, sqlite3_stmt *statement)
{
	int64_t *last = context;

	last[0] = sqlite3_column_int64(statement, 0);
	last[1] = sqlite3_column_int64(statement, 1);
	return is_id(statement, 0, MAX_FRAME) && is_id(statement, 1, UINT32_MAX / 2) ? 0 : -EBADMSG;
}

int store_last_ids(struct store *store, int64_t *ret_frame, int64_t *ret_function)
{
	int64_t last[2] = { 0, 0 };
	int r;

	r = each_row(store, "SELECT (SELECT max(frame) FROM frame), (SELECT max(function) FROM function)", take_last,
		     last);
	if (r < 0)
		return r;
	*ret_frame = last[0];
	*ret_function = last[1];
	return 0;
}

int store_drop_unused_functions(struct store *store)
{
	return store_exec(store->db, "DELETE FROM function WHERE kind IN ('native', 'kernel') AND function NOT IN"
				     " (SELECT function FROM frame WHERE function IS NOT NULL)");
}
