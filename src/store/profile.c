/* SPDX-License-Identifier: MIT */
/*
 * profile.c - loads a recording's calling-context tree into memory.
 *
 * One pass over each table, in order of its ids; then forward references
 * are resolved, and cycles detected. All passes see the same
 * moment of a file that is still being written.
 *
 * The file is not trusted: a reference to nothing, a number outside
 * its range or a cycle ends the load with -EBADMSG.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/profile_private.h"
#include "src/store/store_private.h"

static void loader_done(struct loader *loader)
{
	sqlite3_finalize(loader->row);
	profile_free(loader->profile);
	free(loader->modules.ids);
	free(loader->functions.ids);
	free(loader->frames.ids);
	free(loader->stacks.ids);
	free(loader->module_rows);
	free(loader->function_rows);
	free(loader->parents.items);
	free(loader->inlined.items);
}

/* Each table comes after those it refers to. */
static const struct {
	const char *sql;
	int (*load)(struct loader *loader);
} passes[] = {
	{ "SELECT started, ended, pid, command, mode, python, probing, hz, host FROM run", load_run },
	{ "SELECT module, path, build_id FROM module ORDER BY module", load_module },
	{ "SELECT function, name, role, file, module, symbol, first_line FROM function ORDER BY function",
	  load_function },
	{ "SELECT frame, kind, function, line, module, address, is_eval, inlined_into"
	  " FROM frame ORDER BY frame",
	  load_frame },
	{ "SELECT stack, parent, frame FROM stack ORDER BY stack", load_stack },
	{ "SELECT thread.pid, tid, thread.name, process.name"
	  " FROM thread LEFT JOIN process USING(pid) ORDER BY thread.pid, tid",
	  load_thread },
};

static int load_table(struct loader *loader, const char *sql, int (*load)(struct loader *loader))
{
	int code, r = 0;

	code = sqlite3_prepare_v2(loader->db, sql, -1, &loader->row, NULL);
	if (code != SQLITE_OK)
		return store_read_errno(loader->db, code);
	while (r == 0 && (code = sqlite3_step(loader->row)) == SQLITE_ROW)
		r = load(loader);
	if (r == 0)
		r = store_read_errno(loader->db, code);
	sqlite3_finalize(TAKE(loader->row));
	return r;
}

static int resolve(struct loader *loader)
{
	struct profile *profile = loader->profile;
	int32_t index;
	int r;

	for (size_t i = 0; i < loader->parents.n; i++) {
		const struct forward *forward = &loader->parents.items[i];

		r = row_index_find(&loader->stacks, forward->to_id, &index);
		if (r < 0)
			return r;
		profile->stacks[forward->from].parent = index;
	}
	for (size_t i = 0; i < loader->inlined.n; i++) {
		const struct forward *forward = &loader->inlined.items[i];

		r = row_index_find(&loader->frames, forward->to_id, &index);
		if (r < 0)
			return r;
		profile->frames[forward->from].inlined_into = index;
	}
	return 0;
}

/* Older files lack these columns and contain nanoseconds. */
static int load_unit(struct loader *loader)
{
	static const char sql[] = "SELECT event FROM run WHERE unit = 'count'";

	if (sqlite3_prepare_v2(loader->db, sql, -1, &loader->row, NULL) == SQLITE_ERROR)
		return 0;
	sqlite3_finalize(TAKE(loader->row));
	return load_table(loader, sql, load_event);
}

/* A filter chooses, and nobody knows how many before they are read. */
static uint64_t count_samples(const struct loader *loader)
{
	const struct profile_filter *filter = loader->filter;
	sqlite3_stmt *row = NULL;
	int64_t n = 0;

	if (!filter->show || filter->has_since || filter->has_until || filter->where || filter->label || filter->held)
		return 0;
	if (sqlite3_prepare_v2(loader->db, "SELECT sum(samples) FROM main.stack_total", -1, &row, NULL) == SQLITE_OK &&
	    sqlite3_step(row) == SQLITE_ROW)
		n = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return n > 0 ? (uint64_t)n : 0;
}

static int load_samples(struct loader *loader)
{
	int r;

	loader->n_samples_all = count_samples(loader);
	loader->n_sorted_threads = loader->profile->n_threads;
	if (loader->filter->by_block && profile_has_blocks(loader->db))
		return load_blocks(loader, loader->filter->after);
	r = load_table(loader, loader->samples, load_sample);
	if (r == 0)
		profile_order_samples(loader->profile);
	return r;
}

static int load_all(struct loader *loader)
{
	int r = load_unit(loader);

	for (size_t i = 0; r == 0 && i < N_ELEMENTS(passes); i++)
		r = load_table(loader, passes[i].sql, passes[i].load);
	if (r == 0)
		r = load_table(loader, loader->totals, load_total);
	if (r == 0 && loader->samples)
		r = load_samples(loader);
	if (r == 0)
		r = resolve(loader);
	if (r == 0)
		r = profile_check_inlined(loader->profile);
	if (r == 0)
		r = profile_order_stacks(loader->profile);
	if (r == 0)
		r = profile_label_files(loader->profile);
	if (r == 0)
		profile_count_sampled(loader->profile);
	return r;
}

static int load(sqlite3 *db, const struct profile_filter *filter, const char *totals, const char *samples,
		struct profile **ret)
{
	CLEANUP(loader_done)
	struct loader loader = { .db = db, .totals = totals, .samples = samples, .filter = filter };
	int r, end;

	loader.samples_left = loader.weight_left = INT64_MAX;
	r = profile_new(&loader.profile);
	if (r < 0)
		return r;
	r = store_read_errno(db, sqlite3_exec(db, "SAVEPOINT profile_load", NULL, NULL, NULL));
	if (r < 0)
		return r;
	r = load_all(&loader);
	end = store_read_errno(db, sqlite3_exec(db, "RELEASE profile_load", NULL, NULL, NULL));
	if (r == 0)
		r = end;
	if (r < 0)
		return r;
	*ret = TAKE(loader.profile);
	return 0;
}

int profile_load(sqlite3 *db, struct profile **ret)
{
	static const struct profile_filter all;

	return profile_load_view(db, &all, ret);
}

int profile_load_view(sqlite3 *db, const struct profile_filter *filter, struct profile **ret)
{
	char *totals, *samples;
	int r;

	r = profile_view_sql(db, filter, &totals, &samples);
	if (r < 0)
		return r;
	r = load(db, filter, totals, samples, ret);
	sqlite3_free(totals);
	sqlite3_free(samples);
	return r;
}
