/* SPDX-License-Identifier: MIT */
/* rows.c - see rows.h. */
#include "src/live/rows.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static void put(struct live_rows *rows, struct live_value value)
{
	if (rows->error == 0)
		rows->error = grow(&rows->values, rows->n_values, &rows->values_allocated, sizeof *rows->values);
	if (rows->error == 0)
		rows->values[rows->n_values++] = value;
}

void live_null(struct live_rows *rows)
{
	put(rows, (struct live_value){ .type = LIVE_NULL });
}

void live_integer(struct live_rows *rows, int64_t value)
{
	put(rows, (struct live_value){ .type = LIVE_INTEGER, .integer = value });
}

void live_real(struct live_rows *rows, double value)
{
	put(rows, (struct live_value){ .type = LIVE_REAL, .real = value });
}

void live_bytes(struct live_rows *rows, const char *bytes, size_t n)
{
	size_t start = rows->n_bytes;

	n = MIN(n, (size_t)INT_MAX / 2);
	if (rows->error == 0 && n > 0)
		rows->error = grow(&rows->bytes, rows->n_bytes + n, &rows->bytes_allocated, 1);
	if (rows->error != 0)
		return;
	if (n > 0)
		memcpy(rows->bytes + rows->n_bytes, bytes, n);
	rows->n_bytes += n;
	put(rows, (struct live_value){ .type = LIVE_TEXT, .text = start, .n_bytes = n });
}

void live_text(struct live_rows *rows, const char *text)
{
	if (text)
		live_bytes(rows, text, strlen(text));
	else
		live_null(rows);
}

void live_cut(struct live_rows *rows, size_t n_values)
{
	rows->n_values = MIN(rows->n_values, n_values);
}

void live_rows_done(struct live_rows *rows)
{
	free(rows->values);
	free(rows->bytes);
	*rows = (struct live_rows){ 0 };
}

void live_result(sqlite3_context *context, const struct live_rows *rows, size_t n)
{
	const struct live_value *value = &rows->values[n];

	switch (value->type) {
	case LIVE_INTEGER:
		sqlite3_result_int64(context, value->integer);
		break;
	case LIVE_REAL:
		sqlite3_result_double(context, value->real);
		break;
	case LIVE_TEXT:
		/* Copied, because a sorter may keep it longer than the rows. */
		sqlite3_result_text(context, value->n_bytes > 0 ? rows->bytes + value->text : "", (int)value->n_bytes,
				    SQLITE_TRANSIENT);
		break;
	default:
		sqlite3_result_null(context);
	}
}
