/* SPDX-License-Identifier: MIT */
/* steps.c - what the columns step, span and phase cost a query over many samples.
 *
 * Usage: bench_steps FILE [SAMPLES [STEPS]]
 * Makes FILE (default: 10 million samples of 4 threads, 100000 steps with two spans each), times queries over it, and
 * removes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/store/store.h"

enum { PID = 1000, N_THREADS = 4, BATCH = 100000 };
#define BEGAN_NS UINT64_C(1700000000000000000)
#define SAMPLE_NS UINT64_C(1000000)

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_steps: %s: %s\n", what, strerror(-r));
	exit(1);
}

static struct row_value integer(int64_t value)
{
	return (struct row_value){ .kind = ROW_INTEGER, .integer = value };
}

static struct row_value text(const char *value)
{
	return (struct row_value){ .kind = ROW_TEXT, .text = value, .n_text = strlen(value) };
}

static void put_span(struct row_bytes *rows, uint64_t time_ns, int64_t span, const char *phase, const char *name)
{
	const struct row_value values[] = { integer(span), text(phase), text(name), integer(PID) };

	must(row_put(rows, time_ns, values, N_ELEMENTS(values)), "row");
}

static void put_rows(struct store *store, uint64_t n_steps, uint64_t step_ns)
{
	static const struct row_column_row step_columns[] = { { "step", "INTEGER" }, { "tid", "INTEGER" } };
	static const struct row_column_row span_columns[] = {
		{ "span", "INTEGER" }, { "phase", "TEXT" }, { "name", "TEXT" }, { "tid", "INTEGER" }
	};
	struct row_bytes steps = { 0 }, spans = { 0 };

	must(store_put_row_table(store, &(struct row_table_row){ 1, PID, "steps", BEGAN_NS, step_columns, 2 }),
	     "table");
	must(store_put_row_table(store, &(struct row_table_row){ 2, PID, "spans", BEGAN_NS, span_columns, 4 }),
	     "table");
	for (uint64_t i = 0; i < n_steps; i++) {
		const struct row_value values[] = { integer((int64_t)i), integer(PID) };

		must(row_put(&steps, i * step_ns, values, 2), "row");
		put_span(&spans, i * step_ns + 1, (int64_t)(2 * i + 1), "begin", "forward");
		put_span(&spans, i * step_ns + step_ns / 3, (int64_t)(2 * i + 2), "begin", "attention");
		put_span(&spans, i * step_ns + step_ns / 2, (int64_t)(2 * i + 2), "end", "attention");
		put_span(&spans, i * step_ns + step_ns * 9 / 10, (int64_t)(2 * i + 1), "end", "forward");
	}
	must(store_put_row_block(store, 1, &steps), "block");
	must(store_put_row_block(store, 2, &spans), "block");
	free(steps.at);
	free(spans.at);
}

static void make(const char *path, uint64_t n_samples, uint64_t n_steps)
{
	uint64_t length_ns = n_samples / N_THREADS * SAMPLE_NS;
	struct store *store;

	must(store_create(path, NULL, &store), path);
	must(store_begin(store), "begin");
	must(store_put_run(store, &(struct run_row){ .started_ns = BEGAN_NS,
						     .command = "bench",
						     .mode = "cpu",
						     .stack_source = "bpf",
						     .host = "",
						     .kernel = "",
						     .probing = "",
						     .pid = PID,
						     .hz = 999 }),
	     "run");
	put_rows(store, n_steps, length_ns / n_steps);
	for (uint64_t i = 0; i < n_samples; i++) {
		const struct sample_row row = { .time_ns = BEGAN_NS + i / N_THREADS * SAMPLE_NS + i % N_THREADS * 1000,
						.pid = PID,
						.tid = (pid_t)(PID + i % N_THREADS),
						.weight = SAMPLE_NS,
						.end = STACK_COMPLETE,
						.verdict = VERDICT_EXACT };

		must(store_put_sample(store, &row), "sample");
		if (i % BATCH == BATCH - 1) {
			must(store_commit(store), "commit");
			must(store_begin(store), "begin");
		}
	}
	must(store_commit(store), "commit");
	must(store_finish(store, BEGAN_NS + length_ns), "finish");
}

static void time_query(sqlite3 *db, const char *sql)
{
	uint64_t began = monotonic_ns();
	sqlite3_stmt *rows;
	size_t n = 0;

	must(store_errno(db, sqlite3_prepare_v2(db, sql, -1, &rows, NULL)), sql);
	while (sqlite3_step(rows) == SQLITE_ROW)
		n++;
	must(store_errno(db, sqlite3_finalize(rows)), sql);
	printf("%6.2f s  %7zu rows  %s\n", (double)(monotonic_ns() - began) / 1e9, n, sql);
}

int main(int argc, char **argv)
{
	uint64_t n_samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
	uint64_t n_steps = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
	sqlite3 *db;

	if (argc < 2 || n_samples < N_THREADS || n_steps == 0) {
		fprintf(stderr, "usage: bench_steps FILE [SAMPLES [STEPS]]\n");
		return 2;
	}
	make(argv[1], n_samples, n_steps);
	must(store_open_reader(argv[1], &db), argv[1]);
	time_query(db, "SELECT count(*), sum(weight) FROM sample WHERE tid >= 0");
	time_query(db, "SELECT count(*), sum(weight) FROM sample WHERE step BETWEEN 100 AND 110");
	time_query(db, "SELECT tid, count(*), sum(weight) FROM sample GROUP BY 1");
	time_query(db, "SELECT phase, count(*), sum(weight) FROM sample GROUP BY 1");
	time_query(db, "SELECT step, count(*), sum(weight) FROM sample GROUP BY 1");
	sqlite3_close(db);
	unlink(argv[1]);
	return 0;
}
