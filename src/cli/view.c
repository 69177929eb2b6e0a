/* view.c - see view.h.
 *
 * A recording's stacks are one tree, so whether a stack runs through a function is asked once of
 * each of its nodes, callers first. Totals of others are dropped; the tree stays as it is.
 */
#include "src/cli/view.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"

void view_done(struct view *view)
{
	words_done(&view->pids);
	words_done(&view->threads);
	words_done(&view->functions);
	words_done(&view->focus);
}

static void add_list(struct argp_state *state, const char *option, const char *list, struct words *to)
{
	int r = words_add_list(to, list);

	if (r == -ENOMEM)
		argp_failure(state, 1, 0, "not enough memory");
	if (r < 0)
		argp_error(state, "%s wants a list", option);
}

static void add_name(struct argp_state *state, const char *name, struct words *to)
{
	if (words_add(to, name) < 0)
		argp_failure(state, 1, 0, "not enough memory");
}

/* Without a list it is the habit of other tools, and tells threads apart. */
static void parse_threads(struct argp_state *state, const char *list, struct view *view)
{
	if (list)
		add_list(state, "--threads", list, &view->threads);
	else if (view->can_split)
		view->by_thread = true;
	else
		argp_error(state, "--threads wants a list: --threads='busy-*,4243'");
}

error_t view_parse(int key, char *argument, struct argp_state *state, struct view *view)
{
	switch (key) {
	case KEY_VIEW_PID:
		add_list(state, "--pid", argument, &view->pids);
		if (!words_are_numbers(&view->pids))
			argp_error(state, "--pid wants process ids, not %s", argument);
		return 0;
	case KEY_VIEW_THREADS:
		parse_threads(state, argument, view);
		return 0;
	case KEY_VIEW_BY_THREAD:
		view->by_thread = true;
		return 0;
	case KEY_VIEW_FUNCTION:
		add_name(state, argument, &view->functions);
		return 0;
	case KEY_VIEW_FOCUS:
		add_name(state, argument, &view->focus);
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
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Functions ---- */

/* By frame: is it one of these functions? NULL: no memory. */
static bool *match_frames(const struct profile *profile, const struct words *wanted)
{
	bool *matches = calloc(profile->n_frames + 1, sizeof *matches);

	for (size_t i = 0; matches && i < profile->n_frames; i++)
		matches[i] = words_match_function(wanted, profile->frames[i].name);
	return matches;
}

/* Whether one of the functions at a place is wanted: the one there, and those it was inlined into. */
static bool is_at(const struct profile *profile, const bool *matches, int32_t place)
{
	for (int64_t frame = place; frame >= 0; frame = profile->frames[frame].inlined_into)
		if (matches[frame])
			return true;
	return false;
}

/* Drop the totals of stacks that run through none of the frames. */
static int keep_through(struct profile *profile, const bool *matches)
{
	CLEANUP(freep) bool *through = calloc(profile->n_stacks + 1, sizeof *through);
	size_t n = 0;

	if (!through)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		through[i] = (stack->parent >= 0 && through[stack->parent]) || is_at(profile, matches, stack->frame);
	}
	for (size_t i = 0; i < profile->n_totals; i++)
		if (profile->totals[i].stack >= 0 && through[profile->totals[i].stack])
			profile->totals[n++] = profile->totals[i];
	profile->n_totals = n;
	return 0;
}

static int keep_functions(struct profile *profile, const struct words *wanted, bool as_root)
{
	CLEANUP(freep) bool *matches = NULL;
	int r;

	if (wanted->n == 0)
		return 0;
	matches = match_frames(profile, wanted);
	if (!matches)
		return -ENOMEM;
	r = keep_through(profile, matches);
	if (r >= 0 && as_root)
		profile->is_root = TAKE(matches);
	return r;
}

/* ---- Processes and threads ---- */

static const struct profile_thread *thread_of(const struct profile *profile, const struct profile_total *total)
{
	for (size_t i = 0; i < profile->n_threads; i++)
		if (profile->threads[i].tid == total->tid && profile->threads[i].pid == total->pid)
			return &profile->threads[i];
	return NULL;
}

/* Totals of a thread stand side by side, as they were stored. */
static void keep_threads(struct profile *profile, const struct view *view)
{
	const struct profile_total *last = NULL;
	bool wanted = false;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_totals; i++) {
		const struct profile_total total = profile->totals[i];
		const struct profile_thread *thread;

		if (!last || i == 0 || last->pid != total.pid || last->tid != total.tid) {
			thread = view->threads.n > 0 ? thread_of(profile, &total) : NULL;
			wanted = (view->pids.n == 0 || words_have_number(&view->pids, total.pid)) &&
				 (view->threads.n == 0 || words_have_number(&view->threads, total.tid) ||
				  (thread && words_match(&view->threads, thread->name)));
		}
		last = &profile->totals[i];
		if (wanted)
			profile->totals[n++] = total;
	}
	profile->n_totals = n;
}

/* ---- Opening ---- */

static bool is_part(const struct view *view)
{
	return view->pids.n > 0 || view->threads.n > 0 || view->functions.n > 0 || view->focus.n > 0 || view->gil;
}

static int apply(struct profile *profile, const struct view *view)
{
	int r;

	if (view->pids.n > 0 || view->threads.n > 0)
		keep_threads(profile, view);
	r = keep_functions(profile, &view->focus, false);
	if (r >= 0)
		r = keep_functions(profile, &view->functions, true);
	profile->python_only = view->no_native;
	return r;
}

static int fail_gil(const char *path, int error)
{
	if (error == -ENODATA)
		return cli_fail(EXIT_BAD_DATA, "%s does not say who held the GIL: it was recorded by an older probing",
				path ? path : "probing.db");
	return cli_fail(cli_status(error), "%s cannot be read: %s", path ? path : "probing.db", strerror(-error));
}

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)

int view_open(const char *path, const struct view *view, sqlite3 **ret_db, struct profile **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	int status, r = 0;

	status = cli_open_profile(path, &db, &profile);
	if (status != EXIT_OK)
		return status;
	if (view->gil) {
		profile_free(TAKE(profile));
		r = profile_load_held(db, &profile);
		if (r < 0)
			return fail_gil(path, r);
	}
	r = apply(profile, view);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (is_part(view) && cli_count_samples(profile) == 0)
		return cli_fail(EXIT_NO_INPUT, "no sample of %s is of what was asked for", path ? path : "probing.db");
	*ret_db = TAKE(db);
	*ret = TAKE(profile);
	return EXIT_OK;
}

/* ---- The GIL ---- */

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/* Five numbers of the first row. False: there is none, or it says nothing. */
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

/* A finished recording has the sums; of another one all samples are asked. */
bool view_held(const struct view *view, sqlite3 *db, struct held_time *ret)
{
	static const char sums[] =
		"SELECT (SELECT sum(weight_ns) FROM stack_total),"
		" (SELECT value FROM counter WHERE name = 'gil ns'),"
		" (SELECT value FROM counter WHERE name = 'gil known ns'),"
		" (SELECT value FROM counter WHERE name = 'gc ns'),"
		" (SELECT value FROM counter WHERE name = 'gc known ns')";
#define SUMS_OF(table)                                                                                   \
	"SELECT sum(weight_ns), sum(weight_ns * (gil IS 1)), sum(weight_ns * (gil IS NOT NULL)),"        \
	" sum(weight_ns * (gc IS 1)), sum(weight_ns * (gc IS NOT NULL)) FROM " table

	/* Files of version 1 have no blocks that could be added up. */
	return !is_part(view) && (read_row(db, sums, ret) || read_row(db, SUMS_OF("sample_total"), ret) ||
				  read_row(db, SUMS_OF("sample"), ret));
}
