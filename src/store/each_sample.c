/* SPDX-License-Identifier: MIT */
/* each_sample.c - the samples of a range as rows, without SQL: for those who take all of them. */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/series_private.h"

static int take_block(const struct series_scan *scan, int64_t first, int64_t last,
		      int (*take)(void *data, int64_t number, const struct sample_row *row), void *data)
{
	int r = 0;

	for (size_t i = 0; i < scan->block.n_rows && r == 0; i++) {
		int64_t number = scan->first + (int64_t)i;
		struct sample_row row;

		if (number < first || number > last)
			continue;
		block_row(&scan->block, i, &row);
		r = take(data, number, &row);
	}
	return r;
}

int store_each_sample(sqlite3 *db, int64_t first, int64_t last,
		      int (*take)(void *data, int64_t number, const struct sample_row *row), void *data)
{
	struct series_range range = SERIES_ALL;
	struct series_scan scan = { 0 };
	int code, r = 0;

	range.first = first;
	range.last = last;
	code = series_scan_begin(&scan, db, &range, false, NULL);
	while (code == SQLITE_OK && r == 0) {
		code = series_scan_next(&scan, BLOCK_ALL, NULL);
		if (code != SQLITE_ROW)
			break;
		r = take_block(&scan, first, last, take, data);
		code = SQLITE_OK;
	}
	if (r == 0 && code != SQLITE_OK && code != SQLITE_DONE)
		r = code == SQLITE_CORRUPT_VTAB ? -EBADMSG : store_read_errno(db, code);
	series_scan_done(&scan);
	return r;
}
