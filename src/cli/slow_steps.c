/* SPDX-License-Identifier: MIT */
/* slow_steps.c - see slow_steps.h.
 *
 * Only whole steps count: those that began and ended while the program was recorded. A number that a process uses
 * several times, as in each epoch, is one step of their mean duration. Each step is a run of the comparison, so the
 * variation between steps decides what is significant; of many steps, some that follow each other are one run.
 */
#include "src/cli/slow_steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/format.h"

enum { MAX_WHY = 256, MIN_STEPS = 8, MAX_RUNS = 200, MAX_NAMED = 8 };

struct one_step {
	int64_t pid, step;
	uint64_t first_ns, duration_ns; /* of all of that number together */
	size_t n;
	bool is_slow;
	int32_t run;
};

struct slow_steps {
	struct one_step *steps;
	size_t n, n_slow;
	struct compare_steps *runs;
	size_t n_runs;
	int32_t *steps_of; /* by total of the profile */
};

static void slow_steps_done(struct slow_steps *slow)
{
	free(slow->steps);
	free(slow->runs);
	free(slow->steps_of);
}

static double mean_ns(const struct one_step *step)
{
	return (double)step->duration_ns / (double)step->n;
}

static int by_number(const void *a, const void *b)
{
	const struct one_step *one = a, *other = b;

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return (one->step > other->step) - (one->step < other->step);
}

static int slowest_first(const void *a, const void *b)
{
	double one = mean_ns(a), other = mean_ns(b);

	return one != other ? (one > other ? -1 : 1) : by_number(a, b);
}

static int by_time(const void *a, const void *b)
{
	const struct one_step *one = a, *other = b;

	return (one->first_ns > other->first_ns) - (one->first_ns < other->first_ns);
}

/* The first and the last sample. */
static int read_span(sqlite3 *db, uint64_t *ret_first, uint64_t *ret_last)
{
	sqlite3_stmt *row = NULL;
	int code, r;

	code = sqlite3_prepare_v2(db, "SELECT min(timestamp), max(timestamp) FROM sample", -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW) {
		*ret_first = store_nanoseconds(sqlite3_column_double(row, 0));
		*ret_last = store_nanoseconds(sqlite3_column_double(row, 1));
	}
	r = code == SQLITE_ROW ? 0 : store_errno(db, code);
	sqlite3_finalize(row);
	return r;
}

/* Whole steps, one for each number of a process. */
static int list_steps(sqlite3 *db, struct slow_steps *slow)
{
	CLEANUP(freep) struct step_time *times = NULL;
	uint64_t first_ns = 0, last_ns = 0;
	size_t n_times = 0, n = 0;
	int r;

	r = store_read_steps(db, &times, &n_times);
	if (r >= 0)
		r = read_span(db, &first_ns, &last_ns);
	if (r < 0)
		return r;
	slow->steps = calloc(n_times + 1, sizeof *slow->steps);
	if (!slow->steps)
		return -ENOMEM;
	for (size_t i = 0; i < n_times; i++)
		if (times[i].begin_ns >= first_ns && times[i].end_ns <= last_ns)
			slow->steps[n++] = (struct one_step){ .pid = times[i].pid,
							      .step = times[i].step,
							      .first_ns = times[i].begin_ns,
							      .duration_ns = times[i].end_ns - times[i].begin_ns,
							      .n = 1 };
	qsort(slow->steps, n, sizeof *slow->steps, by_number);
	for (size_t i = 0; i < n; i++) {
		struct one_step *last = slow->n > 0 ? &slow->steps[slow->n - 1] : NULL, step = slow->steps[i];

		if (last && by_number(last, &step) == 0) {
			last->duration_ns += step.duration_ns;
			last->n += step.n;
		} else {
			slow->steps[slow->n++] = step;
		}
	}
	return 0;
}

/* Runs of one side: at most MAX_RUNS, of steps that follow each other. The steps are in the order of time. */
static void make_runs(struct slow_steps *slow, bool is_slow)
{
	size_t n = is_slow ? slow->n_slow : slow->n - slow->n_slow, n_runs = MIN(n, (size_t)MAX_RUNS), at = 0;
	size_t first = slow->n_runs;

	for (size_t i = 0; i < slow->n; i++) {
		struct one_step *step = &slow->steps[i];
		size_t run;

		if (step->is_slow != is_slow)
			continue;
		run = first + at++ * n_runs / n;
		step->run = (int32_t)run;
		slow->runs[run].side = is_slow ? SIDE_HEAD : SIDE_BASE;
		slow->runs[run].n += (double)step->n;
	}
	slow->n_runs += n_runs;
}

static int choose(struct slow_steps *slow, double percent)
{
	slow->n_slow = MAX((size_t)floor((double)slow->n * percent / 100 + 0.5), (size_t)1);
	slow->runs = calloc(2 * MAX_RUNS, sizeof *slow->runs);
	if (!slow->runs)
		return -ENOMEM;
	qsort(slow->steps, slow->n, sizeof *slow->steps, slowest_first);
	for (size_t i = 0; i < slow->n; i++)
		slow->steps[i].is_slow = i < slow->n_slow;
	return 0;
}

/* Name them, while the slowest are first. */
static void print_choice(const struct slow_steps *slow)
{
	const struct one_step *steps = slow->steps;

	cli_say("slow steps: %zu of %zu, %.3g to %.3g ms each; the median of the others is %.3g ms (", slow->n_slow,
		slow->n, mean_ns(&steps[slow->n_slow - 1]) / 1e6, mean_ns(&steps[0]) / 1e6,
		mean_ns(&steps[slow->n_slow + (slow->n - slow->n_slow) / 2]) / 1e6);
	for (size_t i = 0; i < MIN(slow->n_slow, (size_t)MAX_NAMED); i++)
		cli_say("%s%lld", i > 0 ? ", " : "step ", (long long)steps[i].step);
	cli_say("%s)\n", slow->n_slow > MAX_NAMED ? ", ..." : "");
}

static int assign_totals(struct slow_steps *slow, const struct profile *profile)
{
	slow->steps_of = calloc(profile->n_totals + 1, sizeof *slow->steps_of);
	if (!slow->steps_of)
		return -ENOMEM;
	qsort(slow->steps, slow->n, sizeof *slow->steps, by_time);
	make_runs(slow, false);
	make_runs(slow, true);
	qsort(slow->steps, slow->n, sizeof *slow->steps, by_number);
	for (size_t i = 0; i < profile->n_totals; i++) {
		const struct profile_total *total = &profile->totals[i];
		struct one_step wanted = { .pid = total->pid };
		const struct one_step *found = NULL;

		if (total->label > 0) {
			wanted.step = strtoll(profile->labels[total->label - 1], NULL, 10);
			found = bsearch(&wanted, slow->steps, slow->n, sizeof wanted, by_number);
		}
		slow->steps_of[i] = found ? found->run : -1;
	}
	return 0;
}

static int fail(const char *path, int error, const char *why)
{
	if (error == -E2BIG)
		return cli_fail(EXIT_BAD_DATA, "%s has more than 16 million rows of steps and spans", path);
	return compare_arguments_fail(path, error, why);
}

static int add(const char *path, sqlite3 *db, const struct profile *profile, double percent, struct compare *compare)
{
	CLEANUP(slow_steps_done) struct slow_steps slow = { 0 };
	char why[MAX_WHY] = "";
	int r;

	r = list_steps(db, &slow);
	if (r >= 0 && slow.n < MIN_STEPS)
		return cli_fail(
			EXIT_BAD_DATA,
			"%s has %zu whole steps, and --slow-steps needs %d: let the program call probing.step() in each "
			"step (docs/rings.md), and record longer",
			path, slow.n, MIN_STEPS);
	if (r >= 0)
		r = choose(&slow, percent);
	if (r < 0)
		return fail(path, r, why);
	print_choice(&slow);
	r = assign_totals(&slow, profile);
	if (r >= 0)
		r = compare_add_steps(compare, path, db, profile, slow.runs, slow.n_runs, slow.steps_of, why);
	return r < 0 ? fail(path, r, why) : EXIT_OK;
}

int slow_steps_run(struct compare_arguments *arguments, double percent, struct compare **ret)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	CLEANUP(profile_freep) struct profile *profile = NULL;
	const struct glob_list *files = &arguments->files[SIDE_BASE];
	const char *path = files->n > 0 ? files->words[0] : cli_default_recording();
	int status;

	arguments->view.label = "step";
	arguments->options.steps = true;
	arguments->options.show_interpreter = arguments->view.show_interpreter;
	if (compare_new(&arguments->options, &compare) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = view_open(path, &arguments->view, &db, &profile);
	if (status == EXIT_OK)
		status = add(path, db, profile, percent, compare);
	if (status == EXIT_OK)
		status = compare_arguments_compute(compare);
	if (status == EXIT_OK)
		*ret = TAKE(compare);
	return status;
}
