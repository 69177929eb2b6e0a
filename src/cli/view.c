/* SPDX-License-Identifier: MIT */
/* view.c - see view.h.
 *
 * Filters of samples become SQL over the file (src/store/profile_view.c); filters of stacks and threads
 * are applied in memory (view_filter.c).
 */
#include "src/cli/view.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/cli/fleet_source.h"
#include "src/cli/live_recording.h"
#include "src/cli/progress.h"

enum { MAX_ID = 1 << 22, DEFAULT_LIVE_S = 5 }; /* proc_sys_kernel(5), pid_max */

void view_done(struct view *view)
{
	glob_list_done(&view->pids);
	glob_list_done(&view->processes);
	glob_list_done(&view->threads);
	glob_list_done(&view->functions);
	glob_list_done(&view->focus);
	glob_list_done(&view->modules);
	glob_list_done(&view->ignore);
	glob_list_done(&view->hosts);
}

/* Without a list, like in other tools, the option separates threads. */
static void parse_threads(struct argp_state *state, const char *list, struct view *view)
{
	if (list)
		cli_parse_list(state, list, "--threads needs a list", &view->threads);
	else if (view->can_split)
		view->by_thread = true;
	else
		argp_error(state, "--threads needs a list: --threads='busy-*,4243'");
}

static void parse_time(struct argp_state *state, const char *option, const char *text, struct view_time *to)
{
	if (view_time_parse(text, to) < 0)
		argp_error(state, "%s needs a time: 12.5, 90s, 2m, 14:05:30 or '2026-03-01 14:05', not %s", option,
			   text);
}

static void parse_chosen(struct argp_state *state, char *argument, struct view *view)
{
	if (view->chosen)
		argp_error(state, "-p is given twice: write -p %s,%s", view->chosen, argument);
	view->chosen = argument;
}

/* Options of a fleet. */
static error_t parse_fleet(int key, char *argument, struct argp_state *state, struct view *view)
{
	switch (key) {
	case KEY_VIEW_JOB:
		view->job = argument;
		return 0;
	case KEY_VIEW_HOST:
		cli_parse_list(state, argument, "--host needs a list", &view->hosts);
		return 0;
	case KEY_VIEW_RANK:
		view->ranks = argument;
		return 0;
	case KEY_VIEW_PARTIAL:
		view->partial = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Options with lists and names. */
static error_t parse_words(int key, char *argument, struct argp_state *state, struct view *view)
{
	switch (key) {
	case KEY_VIEW_PID:
		cli_parse_list(state, argument, "--pid needs a list", &view->pids);
		if (!glob_list_are_numbers(&view->pids))
			argp_error(state, "--pid needs process ids, not %s", argument);
		return 0;
	case KEY_VIEW_PROCESS:
		cli_parse_list(state, argument, "--process needs a list", &view->processes);
		return 0;
	case KEY_VIEW_THREADS:
		parse_threads(state, argument, view);
		return 0;
	case KEY_VIEW_FUNCTION:
		cli_parse_name(state, argument, &view->functions);
		return 0;
	case KEY_VIEW_FOCUS:
		cli_parse_name(state, argument, &view->focus);
		return 0;
	case KEY_VIEW_MODULE:
		cli_parse_name(state, argument, &view->modules);
		return 0;
	case KEY_VIEW_IGNORE:
		cli_parse_name(state, argument, &view->ignore);
		return 0;
	default:
		return parse_fleet(key, argument, state, view);
	}
}

error_t view_parse(int key, char *argument, struct argp_state *state, struct view *view)
{
	switch (key) {
	case KEY_VIEW_SINCE:
		parse_time(state, "--since", argument, &view->since);
		return 0;
	case KEY_VIEW_UNTIL:
		parse_time(state, "--until", argument, &view->until);
		return 0;
	case KEY_VIEW_WHERE:
		if (view->where)
			argp_error(state, "one --where at a time: join conditions with AND");
		view->where = argument;
		return 0;
	case KEY_VIEW_BY_THREAD:
		view->by_thread = true;
		return 0;
	case KEY_VIEW_GIL:
		view->gil = true;
		return 0;
	case KEY_VIEW_NATIVE:
	case KEY_VIEW_NO_NATIVE:
		view->no_native = key == KEY_VIEW_NO_NATIVE;
		return 0;
	case KEY_VIEW_INTERPRETER:
		view->show_interpreter = true;
		return 0;
	case KEY_VIEW_FULL_PATHS:
		view->full_paths = true;
		return 0;
	case KEY_VIEW_LINES:
		view->lines = true;
		return 0;
	case KEY_VIEW_INVERTED:
		view->inverted = true;
		return 0;
	case KEY_VIEW_MERGE:
		view->merge_processes = true;
		return 0;
	case KEY_VIEW_LIVE:
		view->live_s = cli_parse_duration(state, argument, "the duration", 0.001, 1e6);
		return 0;
	case KEY_VIEW_CHOSEN:
		parse_chosen(state, argument, view);
		return 0;
	case KEY_VIEW_COUNTS:
		view->counts = true;
		return 0;
	case KEY_VIEW_MIN_SHARE:
		view->min_share = cli_parse_number(state, argument, "--min-share", 0, 100) / 100;
		return 0;
	default:
		return parse_words(key, argument, state, view);
	}
}

void view_end(struct argp_state *state, struct view *view, const char **recording)
{
	if (!view->chosen)
		return;
	if (*recording)
		parse_words(KEY_VIEW_PID, view->chosen, state, view);
	else if (endpoint_is_process(view->chosen))
		*recording = view->chosen;
	else
		argp_error(state,
			   "-p without a recording takes one process id, not %s; 'probing record -p LIST' records "
			   "several",
			   view->chosen);
}

void view_export(const struct view *view, struct export_options *options)
{
	options->show_interpreter = view->show_interpreter;
	options->by_thread = view->by_thread;
	options->merge_processes = view->merge_processes;
	options->lines = view->lines;
	options->inverted = view->inverted;
	options->min_share = view->min_share;
}

void cli_help_filters(void)
{
	static const struct argp_option rows[] = { VIEW_OPTION_ROWS, { 0 } };
	static char text[] =
		"Options that choose the samples of a recording: of report, flamegraph, annotate, export, diff and check. All "
		"that are given must hold.\vExamples:\n"
		"  probing report train.db --since 10 --until 2m\n"
		"  probing flamegraph train.db --threads='loader-*' --no-native\n"
		"  probing report train.db --function Trainer.step --ignore 'zlib.*'\n"
		"  probing report train.db --where='cpu = 3'\n"
		"\n"
		"LIST has commas between its items; quote globs.";
	static char usage[] = "VERB [FILTER...]";
	struct argp filters = { .options = rows, .args_doc = usage, .doc = text };
	struct argp_option shown[N_ELEMENTS(rows)];

	for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
		shown[i] = rows[i];
		shown[i].flags &= ~OPTION_FILTER;
	}
	filters.options = shown;
	filters.help_filter = cli_help_filter;
	cli_begin_help();
	argp_help(&filters, stdout, ARGP_HELP_LONG | ARGP_HELP_DOC, (char *)"probing");
}

/* ---- Open ---- */

int view_fail_export(const char *path, const struct exporter *exporter, int error)
{
	path = path ? path : cli_default_recording();
	if (error == -ENODATA)
		return cli_fail(EXIT_BAD_DATA,
				"%s has only sums, no single samples, which %s needs; use folded, svg, speedscope or "
				"pprof",
				path, exporter->name);
	if (error == -ENOTSUP)
		return cli_fail(EXIT_BAD_DATA,
				"%s shows time only, but %s counts events, or --counts is given: use another format",
				exporter->name, path);
	return cli_fail(EXIT_FAILED, "making the %s failed: %s", exporter->name, strerror(-error));
}

/* Whether a filter needs single samples. */
static bool is_of_samples(const struct view *view)
{
	return view->since.type != VIEW_TIME_NONE || view->until.type != VIEW_TIME_NONE || view->where || view->label;
}

static bool is_part(const struct view *view)
{
	return view->pids.n > 0 || view->processes.n > 0 || view->threads.n > 0 || view->functions.n > 0 ||
	       view->focus.n > 0 || view->modules.n > 0 || view->ignore.n > 0 || view->gil || is_of_samples(view);
}

static double read_start(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, "SELECT started FROM run", -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		return 0;
	return sqlite3_column_double(statement, 0);
}

static struct profile_filter filter_of(const struct view *view, sqlite3 *db)
{
	double started = read_start(db);

	return (struct profile_filter){
		.has_since = view->since.type != VIEW_TIME_NONE,
		.has_until = view->until.type != VIEW_TIME_NONE,
		.since = view_time_resolve(&view->since, started),
		.until = view_time_resolve(&view->until, started),
		.where = view->where,
		.label = view->label,
		.held = view->gil,
		.with_samples = view->with_samples,
	};
}

static int fail_load(sqlite3 *db, const char *path, const struct view *view, int error)
{
	char sentence[512];

	if (error == -ENODATA)
		return cli_fail(EXIT_BAD_DATA, "%s has no GIL data: an older probing recorded it", path);
	if (error == -ENOTSUP)
		return cli_fail(
			EXIT_BAD_DATA,
			"samples of %s have no ranks, steps, spans and modules of torch: an older probing recorded or exported it",
			path);
	if (error == -EINVAL)
		return cli_fail(EXIT_BAD_DATA,
				"--where is not a condition on samples: %s; 'probing tables sample' lists the columns",
				sqlite3_errcode(db) == SQLITE_OK ? "something follows it" : sqlite3_errmsg(db));
	if (error == -EBADMSG && view->where)
		return cli_fail(EXIT_BAD_DATA,
				"--where cannot be evaluated on %s: the file is damaged (run 'probing info --check'), "
				"or the condition fails",
				path);
	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

static void show(void *data, uint64_t n_done, uint64_t n_all)
{
	progress_show(data, "samples", n_done, n_all);
}

static int load(sqlite3 *db, const char *path, const struct view *view, struct profile **ret)
{
	struct profile_filter filter = filter_of(view, db);
	struct progress progress;
	int r;

	if (is_of_samples(view) && !profile_has_samples(db))
		return cli_fail(EXIT_BAD_DATA,
				"%s has no single samples, which --since, --until, --where, steps and spans need",
				path);
	progress_begin_shown(&progress, view->quiet || cli_is_quiet());
	filter.show = show;
	filter.show_data = &progress;
	r = profile_load_view(db, &filter, ret);
	progress_clear(&progress);
	return r < 0 ? fail_load(db, path, view, r) : EXIT_OK;
}

/* @file: the file to open; @path: its name in messages. */
static int open_file(const char *file, const char *path, const struct view *view, sqlite3 **ret_db,
		     struct profile **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	int status;

	/* Return temporary memory to the system at once; glibc would otherwise raise the threshold. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	status = cli_open_recording(file, &db);
	if (status == EXIT_OK)
		status = load(db, path, view, &profile);
	if (status != EXIT_OK)
		return status;
	if (!is_part(view) && profile_is_empty(profile))
		return cli_fail(EXIT_BAD_DATA, "%s has no samples: %s", path, cli_why_empty(db, profile));
	if (view->counts)
		profile_drop_weights(profile);
	if (view->full_paths)
		profile_show_full_paths(profile);
	if (view_filter(profile, view) < 0 || (view->label_none && profile_put_labels(profile, view->label_none) < 0))
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (profile_is_empty(profile))
		return cli_fail(EXIT_NO_INPUT, "no samples in %s match the filter", path);
	*ret_db = TAKE(db);
	*ret = TAKE(profile);
	return EXIT_OK;
}

static int open_process(const char *word, const struct view *view, sqlite3 **ret_db, struct profile **ret)
{
	CLEANUP(live_recording_done) struct live_recording live = { 0 };
	char name[48];
	long id = strtol(word, NULL, 10);
	int status;

	if (id < 1 || id > MAX_ID)
		return cli_fail(EXIT_NO_INPUT, "there is no process %s; a recording of this name is ./%s", word, word);
	if (view->chosen && kill((pid_t)id, 0) < 0 && errno == ESRCH)
		return cli_fail(EXIT_NO_INPUT,
				"there is no process %ld; 'probing VERB FILE --pid %ld' shows a recorded one", id, id);
	status = live_recording_make((pid_t)id, view->live_s > 0 ? view->live_s : DEFAULT_LIVE_S, &live);
	if (status != EXIT_OK)
		return status;
	snprintf(name, sizeof name, "process %ld", id);
	return open_file(live.path, name, view, ret_db, ret);
}

/* The servers apply what selects samples; a recording of sums remains. */
static int open_fleet(const char *address, const struct view *view, sqlite3 **ret_db, struct profile **ret)
{
	CLEANUP(live_recording_done) struct live_recording fetched = { 0 };
	struct view rest = *view;
	char name[256];
	int status = fleet_source_read(address, view, &fetched);

	if (status != EXIT_OK)
		return status;
	rest.since = rest.until = (struct view_time){ 0 };
	rest.where = NULL;
	rest.gil = false;
	fleet_source_name(address, name, sizeof name);
	return open_file(fetched.path, name, &rest, ret_db, ret);
}

int view_open(const char *path, const struct view *view, sqlite3 **ret_db, struct profile **ret)
{
	path = path ? path : cli_default_recording();
	if (fleet_source_is_one(path))
		return open_fleet(path, view, ret_db, ret);
	if (view->job || view->ranks || view->hosts.n > 0 || view->partial)
		return cli_fail(
			EXIT_USAGE,
			"--job, --host, --rank and --partial are for a fleet, clickhouse://USER@HOST/DATABASE: %s is a "
			"recording; --where='...' selects its samples",
			path);
	return endpoint_is_process(path) ? open_process(path, view, ret_db, ret)
					 : open_file(path, path, view, ret_db, ret);
}

/* ---- The GIL ---- */

/* Read five numbers from the first row. False: no row, or no values. */
static bool read_row(sqlite3 *db, const char *sql, struct held_time *ret)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	uint64_t *const to[] = { &ret->all, &ret->gil, &ret->gil_known, &ret->gc, &ret->gc_known };

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
		return false;
	for (int i = 0; i < (int)N_ELEMENTS(to); i++) {
		if (sqlite3_column_type(statement, i) == SQLITE_NULL || sqlite3_column_int64(statement, i) < 0)
			return false;
		*to[i] = (uint64_t)sqlite3_column_int64(statement, i);
	}
	return true;
}

/* A finished recording has the sums; otherwise add up all samples. */
bool view_held(const struct view *view, sqlite3 *db, struct held_time *ret)
{
	static const char sums[] = "SELECT (SELECT sum(weight) FROM stack_total),"
				   " (SELECT value FROM counter WHERE name = 'gil ns'),"
				   " (SELECT value FROM counter WHERE name = 'gil known ns'),"
				   " (SELECT value FROM counter WHERE name = 'gc ns'),"
				   " (SELECT value FROM counter WHERE name = 'gc known ns')";
#define SUMS_OF(table)                                                                                                 \
	"SELECT sum(weight), sum(weight * (gil IS 1)), sum(weight * (gil IS NOT NULL)),"                               \
	" sum(weight * (gc IS 1)), sum(weight * (gc IS NOT NULL)) FROM " table

	/* Files of version 1 have no blocks to add up. */
	return !is_part(view) && (read_row(db, sums, ret) || read_row(db, SUMS_OF("sample_total"), ret) ||
				  read_row(db, SUMS_OF("sample"), ret));
}
