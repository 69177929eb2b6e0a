/* SPDX-License-Identifier: MIT */
/* series.c - the samples of a recording again and again, into a copy of it; see bench/series.py.
 *
 * Usage: bench_series FROM TO N    TO: a copy of FROM without samples; N: how many samples it gets
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/store/series_private.h"

enum { BATCH = 1000 };

struct samples {
	struct sample_row *rows;
	size_t n, room;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_series: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void read_samples(const char *path, struct samples *ret)
{
	CLEANUP(series_scan_done) struct series_scan scan = { 0 };
	struct series_range all = SERIES_ALL;
	sqlite3 *db = NULL;

	must(store_open_reader(path, &db), path);
	must(series_scan_begin(&scan, db, &all, false, NULL) == SQLITE_OK ? 0 : -EBADMSG, path);
	while (series_scan_next(&scan, BLOCK_ALL, NULL) == SQLITE_ROW)
		for (size_t i = 0; i < scan.block.n_rows; i++) {
			must(grow(&ret->rows, ret->n, &ret->room, sizeof *ret->rows), "memory");
			block_row(&scan.block, i, &ret->rows[ret->n++]);
		}
	series_scan_done(&scan);
	sqlite3_close(db);
}

/* Each round is this much later than the one before. */
static uint64_t span_ns(const struct samples *samples)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < samples->n; i++) {
		first = MIN(first, samples->rows[i].time_ns);
		last = MAX(last, samples->rows[i].time_ns);
	}
	return last - first + 1001001;
}

static void write_samples(const char *path, const struct samples *samples, size_t n)
{
	uint64_t span = span_ns(samples);
	struct store *store = NULL;

	must(store_open(path, &store), path);
	for (size_t at = 0; at < n; at += BATCH) {
		must(store_begin(store), "begin");
		for (size_t i = at; i < MIN(at + BATCH, n); i++) {
			struct sample_row row = samples->rows[i % samples->n];

			row.time_ns += i / samples->n * span;
			must(store_put_sample(store, &row), "put");
		}
		must(store_commit(store), "commit");
	}
	must(store_checkpoint(store), "settle");
	store_close(store);
}

int main(int argc, char **argv)
{
	struct samples samples = { 0 };

	if (argc != 4 || atoll(argv[3]) <= 0) {
		fprintf(stderr, "usage: bench_series FROM TO N\n");
		return 2;
	}
	read_samples(argv[1], &samples);
	if (samples.n == 0)
		must(-ENODATA, argv[1]);
	write_samples(argv[2], &samples, (size_t)atoll(argv[3]));
	free(samples.rows);
	return 0;
}
