/* SPDX-License-Identifier: MIT */
/*
 * verb_timeline.c - a recording as lanes over time, as JSON.
 *
 * With --requests it stays, and answers one line of stdin after the other, so that the recording is read once. Each answer begins with a
 * line "ok BYTES" or "bad STATUS SENTENCE".
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/pager.h"
#include "src/cli/requests.h"
#include "src/lanes/lanes.h"
#include "src/sql/sql.h"
#include "src/store/store.h"

enum {
	OPTION_SINCE = 0x200,
	OPTION_UNTIL,
	OPTION_PIXELS,
	OPTION_DEPTH,
	OPTION_THREADS,
	OPTION_REQUESTS,
	MAX_SENTENCE = REQUEST_SENTENCE_BYTES
};

struct options {
	const char *recording;
	struct lanes_query query;
	bool requests;
};

static const struct argp_option option_list[] = {
	{ "since", OPTION_SINCE, "TIME", 0, "From TIME after the start of the recording (default: its start)", 0 },
	{ "until", OPTION_UNTIL, "TIME", 0, "Up to TIME after the start of the recording (default: its end)", 0 },
	{ "pixels", OPTION_PIXELS, "N", 0, "Fold to N to 2N columns (default: 1200)", 0 },
	{ "depth", OPTION_DEPTH, "N", 0, "Outermost N calls of each stack (default: 32)", 0 },
	{ "threads", OPTION_THREADS, "LIST", 0, "Stacks of these TIDs (default: of the 16 with the most samples)", 0 },
	{ "requests", OPTION_REQUESTS, NULL, 0,
	  "Read queries from stdin, a line each, as since=1.5&until=2&pixels=1200, and answer each: \"ok BYTES\" and that many bytes of "
	  "JSON, or \"bad STATUS SENTENCE\"",
	  0 },
	{ 0 },
};

static void parse_threads(struct argp_state *state, const char *argument, struct lanes_query *query)
{
	char text[LANES_QUERY_BYTES], sentence[LANES_SENTENCE_BYTES];
	struct lanes_query parsed;

	if (snprintf(text, sizeof text, "threads=%s", argument) >= (int)sizeof text)
		argp_error(state, "--threads is too long");
	if (lanes_query_parse(text, &parsed, sentence) < 0)
		argp_error(state, "%s", sentence);
	query->has_threads = true;
	query->n_threads = parsed.n_threads;
	memcpy(query->threads, parsed.threads, sizeof query->threads);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	struct lanes_query *query = &options->query;

	switch (key) {
	case OPTION_SINCE:
		query->since_ns = (int64_t)(cli_parse_duration(state, argument, "--since", 0, 1e9) * 1e9);
		query->has_since = true;
		return 0;
	case OPTION_UNTIL:
		query->until_ns = (int64_t)(cli_parse_duration(state, argument, "--until", 0, 1e9) * 1e9);
		query->has_until = true;
		return 0;
	case OPTION_PIXELS:
		query->pixels = (unsigned)cli_parse_number(state, argument, "--pixels", LANES_MIN_PIXELS,
							   LANES_MAX_PIXELS);
		return 0;
	case OPTION_DEPTH:
		query->depth = (unsigned)cli_parse_number(state, argument, "--depth", 0, LANES_MAX_DEPTH);
		return 0;
	case OPTION_THREADS:
		parse_threads(state, argument, query);
		return 0;
	case OPTION_REQUESTS:
		options->requests = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_parse_recording(state, argument, &options->recording);
		return 0;
	case ARGP_KEY_END:
		if (query->has_since && query->has_until && query->since_ns >= query->until_ns)
			argp_error(state, "--since must be before --until");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE]",
	.doc = "Print a recording (default: probing.db) as lanes over time, as JSON for scripts. Lanes are stacks and "
	       "states of threads, the holder of the GIL, steps, spans, and modules of torch. GPU kernels, "
	       "communication and curves of metrics are lanes, too. Each column of a thread has the path that took most "
	       "of its time. The page of 'probing serve' draws it; docs/serve.md describes the format.\v"
	       "Examples:\n"
	       "  probing timeline train.db > train.json\n"
	       "  probing timeline train.db --since 10 --until 10.5 --pixels 500 --threads 4242\n",
};

static int fail(int error, const char *path, char *sentence)
{
	if (error == -EFBIG)
		snprintf(sentence, MAX_SENTENCE,
			 "%s has more than %lld million samples, too many for a timeline: record a part of it", path,
			 (long long)LANES_MAX_SAMPLES / 1000000);
	else
		store_explain(error, path, sentence, MAX_SENTENCE);
	return cli_status(error);
}

/* A recording that is read, and the file that it is in. */
struct reading {
	sqlite3 *db;
	struct lanes *lanes; /* NULL: nothing is read */
	struct stat file;
};

static void reading_done(struct reading *reading)
{
	lanes_close(reading->lanes);
	sqlite3_close(reading->db);
	*reading = (struct reading){ 0 };
}

/* Open it, or what it has by now. A failure leaves nothing behind: the next try reads all of it. Returns an exit status. */
static int read_recording(const char *path, struct reading *reading, char *sentence)
{
	CLEANUP(sqlite3_closep) sqlite3 *newer = NULL;
	struct stat file = { 0 };
	int r = stat(path, &file) < 0 ? -errno : 0;

	if (reading->lanes && (file.st_ino != reading->file.st_ino || file.st_dev != reading->file.st_dev))
		reading_done(reading); /* another recording has its name */
	if (r >= 0)
		r = store_open_reader(path, &newer);
	if (r >= 0)
		r = sql_attach(newer);
	if (r >= 0)
		r = reading->lanes ? lanes_refresh(reading->lanes, newer) : lanes_open(newer, &reading->lanes);
	if (r < 0) {
		reading_done(reading);
		return fail(r, path, sentence);
	}
	sqlite3_close(reading->db);
	reading->db = TAKE(newer);
	reading->file = file;
	return EXIT_OK;
}

/* Whether what was read is still all that its path has. */
static bool is_current(const char *path, const struct reading *reading)
{
	struct stat now;

	return reading->lanes && !lanes_is_stale(reading->lanes) && stat(path, &now) == 0 &&
	       now.st_ino == reading->file.st_ino && now.st_dev == reading->file.st_dev;
}

static int print(struct lanes *lanes, const struct lanes_query *query)
{
	int r;

	pager_start();
	r = lanes_write(lanes, query, stdout);
	if (r == 0 && fflush(stdout) != 0)
		r = -errno;
	return r < 0 ? cli_fail_write("-", r) : EXIT_OK;
}

/* ---- Requests ---- */

struct requested {
	const char *path;
	struct reading reading;
};

static int answer(void *data, const char *line, FILE *out, char *sentence)
{
	struct requested *requested = data;
	struct lanes_query query;
	int status;

	if (lanes_query_parse(line, &query, sentence) < 0)
		return EXIT_USAGE;
	if (!is_current(requested->path, &requested->reading)) {
		status = read_recording(requested->path, &requested->reading, sentence);
		if (status != EXIT_OK)
			return status;
	}
	if (lanes_write(requested->reading.lanes, &query, out) == 0)
		return EXIT_OK;
	snprintf(sentence, MAX_SENTENCE, "not enough memory");
	return EXIT_FAILED;
}

static int answer_requests(const char *path)
{
	struct requested requested = { .path = path };
	int status = requests_serve(LANES_QUERY_BYTES + 1, answer, &requested);

	reading_done(&requested.reading);
	return status;
}

static int run_timeline(int argc, char **argv)
{
	CLEANUP(reading_done) struct reading reading = { 0 };
	struct options options = { .query = { .pixels = LANES_DEFAULT_PIXELS, .depth = LANES_DEFAULT_DEPTH } };
	char sentence[MAX_SENTENCE];
	const char *path;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	path = options.recording ?: cli_default_recording();
	if (options.requests)
		return answer_requests(path);
	status = read_recording(path, &reading, sentence);
	return status != EXIT_OK ? cli_fail(status, "%s", sentence) : print(reading.lanes, &options.query);
}

const struct verb verb_timeline = {
	.name = "timeline",
	.summary = "print threads, waits, steps and metrics over time, as JSON",
	.argp = &argp,
	.pages = true,
	.run = run_timeline,
};
