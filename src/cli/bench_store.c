/* SPDX-License-Identifier: MIT */
/*
 * bench_store.c - merges the recordings of one command, with the table bench_run; see bench.h.
 *
 * The wall time of a recorded run is the process' own, by the recorder's events: the recorder's start and
 * symbol resolution at the end are not part of the command's time.
 */
#include "src/cli/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/new_file.h"
#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/inputs.h"
#include "src/store/store.h"

enum { MAX_SENTENCE = 512 };

static bool show(void *data, const struct copy_progress *progress)
{
	return progress_show(data, progress->what, progress->n_done, progress->n_all);
}

/* Duration in seconds of a run's process; -1: its end was not recorded. */
static double read_wall(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(db,
			       "SELECT process.ended - process.started FROM process JOIN run USING (pid)"
			       " WHERE process.ended > process.started",
			       -1, &row, NULL) != SQLITE_OK)
		return -1;
	return sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_double(row, 0) : -1;
}

static int put_results(struct store *store, const struct bench_result *results, size_t n, const char *command,
		       sqlite3 *const *dbs)
{
	size_t run = 0;
	int r;

	r = store_begin(store);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct bench_measure *measure = &results[i].measure;
		struct bench_run_row row = { .command = command,
					     .started_ns = measure->started_ns,
					     .wall_s = measure->wall_s,
					     .user_s = measure->user_s,
					     .sys_s = measure->sys_s,
					     .max_rss_bytes = measure->max_rss_bytes,
					     .exit_status = measure->exit_status };

		if (results[i].recording) {
			row.wall_s = read_wall(dbs[run]);
			row.run = (int64_t)++run;
			row.user_s = row.sys_s = -1;
			row.max_rss_bytes = -1;
		}
		r = store_put_bench_run(store, &row);
	}
	if (r < 0) {
		store_rollback(store);
		return r;
	}
	return store_commit(store);
}

static int add_results(const char *path, const struct bench_result *results, size_t n, const char *command,
		       sqlite3 *const *dbs)
{
	CLEANUP(store_closep) struct store *store = NULL;
	int r;

	r = store_open(path, &store);
	if (r >= 0)
		r = put_results(store, results, n, command, dbs);
	return r < 0 ? r : store_checkpoint(store);
}

static int make(const struct bench_result *results, size_t n, const char *command, const struct new_file_options *out,
		const struct inputs *sources, struct progress *progress)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	struct copy_options options = { .keep_going = show, .data = progress };
	struct copy_result copied;
	char sentence[MAX_SENTENCE];
	int r;

	r = new_file_reserve(&file, out->out, out->force, out->mode);
	if (r < 0)
		return inputs_fail_place(out->out, r);
	r = copy_recordings(sources->dbs, sources->n, file.path, &options, &copied);
	if (r < 0)
		return inputs_fail(sources, out->out, r, &copied);
	r = add_results(file.path, results, n, command, sources->dbs);
	if (r < 0) {
		store_explain(r, out->out, sentence, sizeof sentence);
		return cli_fail(cli_status(r), "%s", sentence);
	}
	r = new_file_finish(&file);
	return r < 0 ? inputs_fail_place(out->out, r) : EXIT_OK;
}

int bench_store(const struct bench_result *results, size_t n, const char *command, const struct new_file_options *out,
		struct progress *progress)
{
	CLEANUP(freep) const char **paths = calloc(n + 1, sizeof(char *));
	CLEANUP(inputs_done) struct inputs sources = { 0 };
	size_t n_paths = 0;
	int status;

	if (!paths)
		return cli_fail(EXIT_FAILED, "not enough memory");
	for (size_t i = 0; i < n; i++)
		if (results[i].recording)
			paths[n_paths++] = results[i].recording;
	status = inputs_open(paths, n_paths, &sources);
	return status != EXIT_OK ? status : make(results, n, command, out, &sources, progress);
}
