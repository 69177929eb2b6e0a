/* SPDX-License-Identifier: MIT */
/*
 * verb_bench.c - measures a command: alternating runs, recorded and only timed.
 *
 * Alternation makes the two comparable: a slow phase of the machine affects both. Recordings are in a
 * folder beside the resulting file, which is removed in any case.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/private_folder.h"
#include "base/util.h"
#include "src/cli/bench.h"
#include "src/cli/cli.h"
#include "src/cli/inputs.h"
#include "src/cli/new_file_options.h"
#include "src/cli/progress.h"
#include "src/cli/target_errors.h"
#include "src/target/target.h"

enum { KEY_WARMUP = 0x800, KEY_NO_TIMING, KEY_IGNORE, KEY_SHOW, KEY_MODE, KEY_SOURCE, KEY_NO_KERNEL };
enum { MAX_RUNS = 200, MAX_OPTIONS = 32 };

struct options {
	unsigned n_runs, n_warmup;
	struct new_file_options place;
	bool no_timing, ignore_failure, has_pace;
	char *record[MAX_OPTIONS]; /* terminated by NULL */
	size_t n_record;
	struct bench_command command;
};

struct bench {
	const struct options *options;
	struct private_folder folder; /* temporary recordings */
	struct bench_result *results;
	size_t n_results;
	struct progress progress;
};

static const struct argp_option option_list[] = {
	{ "runs", 'n', "N", 0, "Record N runs, and time N without recording (default: 10)", 0 },
	{ "warmup", KEY_WARMUP, "N", 0, "Run the command N times first, not counted (default: 1)", 0 },
	NEW_FILE_OPTION_ROWS("Write to OUT (default: bench.db)"),
	{ "frequency", 'F', "HZ", 0, "Samples per second of CPU time, per thread (default: 999)", 0 },
	{ "event", 'e', "NAME", 0, "As in record", 0 },
	{ "count", 'c', "N", 0, "As in record", 0 },
	{ "mode", KEY_MODE, "NAME", 0, "As in record", 0 },
	{ "source", KEY_SOURCE, "NAME", 0, "As in record", 0 },
	{ "no-kernel", KEY_NO_KERNEL, NULL, 0, "As in record", 0 },
	{ "no-timing", KEY_NO_TIMING, NULL, 0, "Skip the unrecorded runs; wall times are then unknown", 0 },
	{ "ignore-failure", KEY_IGNORE, NULL, 0, "Continue if the command fails", 0 },
	{ "show-output", KEY_SHOW, NULL, 0, "Show the command's stdout (default: discard it)", 0 },
	{ 0 },
};

/* Build "--name=value", or "--name" without a value; never freed. */
static void pass_on(struct options *options, const char *name, const char *value, struct argp_state *state)
{
	char **word = &options->record[options->n_record];

	if (options->n_record + 1 >= MAX_OPTIONS)
		argp_error(state, "too many options");
	else if (asprintf(word, value ? "--%s=%s" : "--%s", name, value) < 0)
		argp_failure(state, EXIT_FAILED, 0, "not enough memory");
	else
		options->n_record++;
}

static error_t parse_recorded(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	for (const struct argp_option *row = option_list; row->name; row++) {
		if (row->key != key)
			continue;
		options->has_pace |= key == 'F' || key == 'c';
		pass_on(options, row->name, argument, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'n':
		options->n_runs = (unsigned)cli_parse_number(state, argument, "the number of runs", 1, MAX_RUNS);
		return 0;
	case KEY_WARMUP:
		options->n_warmup = (unsigned)cli_parse_number(state, argument, "--warmup", 0, MAX_RUNS);
		return 0;
	case KEY_NO_TIMING:
		options->no_timing = true;
		return 0;
	case KEY_IGNORE:
		options->ignore_failure = true;
		return 0;
	case KEY_SHOW:
		options->command.show_output = true;
		return 0;
	case ARGP_KEY_ARGS:
		options->command.command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->command.command)
			argp_error(state, "command missing: probing bench -- COMMAND");
		if (!options->has_pace)
			pass_on(options, "frequency", "999", state);
		return 0;
	default:
		if (new_file_parse(key, argument, state, &options->place) == 0)
			return 0;
		return argument || key == KEY_NO_KERNEL ? parse_recorded(key, argument, state) : ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "-- COMMAND [ARGUMENT...]",
	.doc = "Run a command repeatedly, recorded and unrecorded in turn, into one file for 'probing check' and "
	       "'probing diff'. For reliable comparisons alternate the runs of base and head: see "
	       "docs/comparing.md.\v"
	       "Examples:\n"
	       "  probing bench -o base.db -- python3 train.py --epochs 1\n"
	       "  probing bench -n 20 -F 1999 -- ./app\n"
	       "\n"
	       "The table bench_run has the wall times, run the recorded runs. Exit status: 1 the command failed; "
	       "73 OUT cannot be created; 126 and 127 as in record.",
};

static int fail_run(const struct options *options, const struct bench_measure *measure)
{
	return cli_fail(EXIT_FAILED, "%s ended with status %d; no file was created (--ignore-failure continues)",
			options->command.command[0], measure->exit_status);
}

/* Run the command once and keep the measurement. */
static int run_once(struct bench *bench, bool is_recorded)
{
	struct bench_result *result = &bench->results[bench->n_results];
	int r;

	if (is_recorded && asprintf(&result->recording, "%s/%zu.db", bench->folder.path, bench->n_results) < 0) {
		result->recording = NULL;
		return cli_fail(EXIT_FAILED, "not enough memory");
	}
	bench->n_results++;
	r = bench_measure(&bench->options->command, result->recording, &result->measure);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(-r));
	if (progress_is_stopped())
		return cli_fail(EXIT_FAILED, "interrupted; no file was created");
	if (is_recorded && access(result->recording, F_OK) != 0)
		return cli_fail(EXIT_FAILED, "the run could not be recorded; no file was created");
	if (result->measure.exit_status != 0 && !bench->options->ignore_failure)
		return fail_run(bench->options, &result->measure);
	return EXIT_OK;
}

static int warm_up(struct bench *bench)
{
	struct bench_measure measure;

	for (unsigned i = 0; i < bench->options->n_warmup; i++) {
		int r = bench_measure(&bench->options->command, NULL, &measure);

		if (r < 0)
			return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(-r));
		if (progress_is_stopped())
			return cli_fail(EXIT_FAILED, "interrupted; no file was created");
		if (measure.exit_status != 0 && !bench->options->ignore_failure)
			return fail_run(bench->options, &measure);
	}
	return EXIT_OK;
}

static int run_all(struct bench *bench)
{
	unsigned n = bench->options->n_runs;
	int status = warm_up(bench);

	for (unsigned i = 0; i < n && status == EXIT_OK; i++) {
		progress_show(&bench->progress, "runs", i, n);
		/* Alternate which kind of run comes first. */
		for (unsigned turn = 0; turn < 2 && status == EXIT_OK; turn++)
			if ((turn + i) % 2 == 0 || !bench->options->no_timing)
				status = run_once(bench, (turn + i) % 2 == 0);
	}
	return status;
}

/* Print mean and spread: "412 ms +- 3 %". */
static void print_times(const struct bench *bench, bool is_recorded)
{
	double sum = 0, squares = 0, mean, spread;
	size_t n = 0;

	for (size_t i = 0; i < bench->n_results; i++) {
		double wall = bench->results[i].measure.wall_s;

		if ((bench->results[i].recording != NULL) != is_recorded)
			continue;
		sum += wall;
		squares += wall * wall;
		n++;
	}
	if (n == 0)
		return;
	mean = sum / (double)n;
	spread = n > 1 ? sqrt(fmax(squares - sum * mean, 0) / (double)(n - 1)) : 0;
	cli_say("%zu run%s %s: %.3f s each, ± %.3f s\n", n, n == 1 ? "" : "s",
		is_recorded ? "recorded, the recorder's own time included" : "only timed", mean, spread);
}

static char *join(char *const *words)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	for (size_t i = 0; words[i]; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", words[i]);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int measure_all(struct bench *bench)
{
	const struct options *options = bench->options;
	CLEANUP(freep) char *command = join(options->command.command);
	int status;

	if (!command)
		return cli_fail(EXIT_FAILED, "not enough memory");
	progress_begin(&bench->progress, options->place.quiet);
	status = run_all(bench);
	if (status == EXIT_OK)
		status = bench_store(bench->results, bench->n_results, command, &options->place, &bench->progress);
	return status;
}

/* Beside the output file, so that both are on the same disk. */
static int make_folder(const char *out, struct private_folder *ret)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(freep) char *prefix = NULL;
	int r;

	r = place_find(out, &place);
	if (r < 0)
		return r;
	if (asprintf(&prefix, ".%.200s.", place.name) < 0) {
		prefix = NULL;
		return -ENOMEM;
	}
	return private_folder_make(place.folder, prefix, ret);
}

static void remove_recordings(struct bench *bench)
{
	for (size_t i = 0; i < bench->n_results; i++)
		free(bench->results[i].recording);
	private_folder_remove(&bench->folder);
}

static int bench_in_folder(const struct options *options)
{
	CLEANUP(freep) struct bench_result *results = calloc(2 * (size_t)options->n_runs, sizeof *results);
	struct bench bench = { .options = options, .results = results };
	const char *out = options->place.out;
	int status, r;

	if (!results)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = make_folder(out, &bench.folder);
	if (r < 0)
		return cli_fail_open(out, r);
	status = measure_all(&bench);
	if (status == EXIT_OK && !options->place.quiet) {
		cli_say("probing: wrote %s\n", out);
		print_times(&bench, false);
		print_times(&bench, true);
	}
	remove_recordings(&bench);
	return progress_end(&bench.progress, status);
}

static int run_bench(int argc, char **argv)
{
	struct options options = { .n_runs = 10, .n_warmup = 1, .place.out = "bench.db" };
	int status, r;

	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	options.command.record_options = options.record;
	r = child_find(options.command.command[0]);
	if (r < 0)
		status = target_fail_command(options.command.command[0], r);
	else if (!options.place.force && access(options.place.out, F_OK) == 0)
		status = inputs_fail_place(options.place.out, -EEXIST);
	else
		status = bench_in_folder(&options);
	for (size_t i = 0; i < options.n_record; i++)
		free(options.record[i]);
	return status;
}

const struct verb verb_bench = {
	.name = "bench",
	.summary = "run a command repeatedly, recorded and timed, into one file",
	.argp = &argp,
	.run = run_bench,
};
