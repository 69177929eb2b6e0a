/* SPDX-License-Identifier: MIT */
/*
 * series_check.c - which blocks of a damaged recording can still be read, as a function of SQL.
 *
 * SELECT sum(samples), sum(weight) FROM sample_block WHERE block_error(samples, data) IS NULL
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/series_table.h"

static const char *words_of(int error)
{
	switch (error) {
	case -ENOMEM:
		return "not enough memory";
	case -EPROTONOSUPPORT:
		return "of a newer version";
	default:
		return "damaged";
	}
}

static void check_block(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
	struct block block = { 0 };
	const void *bytes = sqlite3_value_blob(arguments[1]);
	int r = -EBADMSG;

	(void)n_arguments;
	if (bytes)
		r = block_open(&block, bytes, (size_t)sqlite3_value_bytes(arguments[1]));
	if (r >= 0)
		r = block_load(&block, BLOCK_ALL);
	if (r < 0)
		sqlite3_result_text(context, words_of(r), -1, SQLITE_STATIC);
	else if (sqlite3_value_int64(arguments[0]) != (int64_t)block.n_rows)
		sqlite3_result_text(context, "another number of samples", -1, SQLITE_STATIC);
	block_done(&block);
}

int series_register_check(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "block_error", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
					  NULL, check_block, NULL, NULL, NULL);
}
