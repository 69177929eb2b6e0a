/* SPDX-License-Identifier: MIT */
/* verb_backtrace.c - where a running process is now, all of its threads. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/cli/backtrace_format.h"
#include "src/cli/cli.h"
#include "src/cli/progress.h"
#include "src/cli/requests.h"

enum {
	OPTION_JSON = 0x200,
	OPTION_NO_STOP,
	OPTION_NO_NATIVE,
	OPTION_INTERPRETER,
	OPTION_ASYNC,
	OPTION_LOCALS,
	OPTION_CORE,
	OPTION_SUBPROCESSES,
	OPTION_NO_CACHE,
	OPTION_REQUESTS,
	MAX_REQUEST_BYTES = 64
};

struct options {
	struct backtrace_options look;
	const char *words[2]; /* positional arguments, interpreted after all options */
	bool json, subprocesses, no_cache, requests;
};

static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "Show this process (same as a bare PID)", 0 },
	{ "json", OPTION_JSON, NULL, 0, "Print one JSON object; with --subprocesses an array of them", 0 },
	{ "core", OPTION_CORE, "FILE", 0, "Read a core file instead; PROGRAM is its executable, if that has moved", 0 },
	{ "subprocesses", OPTION_SUBPROCESSES, NULL, 0, "Show all descendants as well, each under its own heading", 0 },
	{ "no-stop", OPTION_NO_STOP, NULL, 0, "Stop no thread: read only Python frames, while the threads run", 0 },
	{ "no-native", OPTION_NO_NATIVE, NULL, 0, "Hide native and kernel frames", 0 },
	{ "async", OPTION_ASYNC, NULL, 0, "Show the asyncio tasks of each event loop, with the awaited task", 0 },
	{ "interpreter-frames", OPTION_INTERPRETER, NULL, 0, "Show internal frames of the interpreter", 0 },
	{ "no-cache", OPTION_NO_CACHE, NULL, 0, "Do not read or write the cache of names, ~/.cache/probing/names", 0 },
	{ "locals", OPTION_LOCALS, NULL, 0, "Show local variables, read from memory; nothing runs in the process", 0 },
	{ "requests", OPTION_REQUESTS, NULL, 0,
	  "Read requests from stdin, a line each, empty or a TID, and answer each: \"ok BYTES\" and that many bytes of JSON, or "
	  "\"bad STATUS SENTENCE\"",
	  0 },
	{ 0 },
};

/* For a core file: the program's path, and a numeric TID. */
static void parse_of_core(struct options *options, const char *argument, struct argp_state *state)
{
	if (argument[strspn(argument, "0123456789")] == '\0' && !options->look.tid)
		options->look.tid = cli_parse_id(state, argument, "thread");
	else if (!options->look.executable)
		options->look.executable = argument;
	else
		argp_error(state, "unexpected argument %s: give at most one program and one TID", argument);
}

static void parse_of_process(struct options *options, const char *argument, struct argp_state *state)
{
	if (!options->look.pid)
		options->look.pid = cli_parse_id(state, argument, "process");
	else
		options->look.tid = cli_parse_id(state, argument, "thread");
}

static void keep_word(struct options *options, const char *argument, struct argp_state *state)
{
	if (options->words[1])
		argp_error(state, "unexpected argument %s: give one PID and at most one TID", argument);
	options->words[options->words[0] != NULL] = argument;
}

static void understand(struct argp_state *state, struct options *options)
{
	for (size_t i = 0; i < N_ELEMENTS(options->words) && options->words[i]; i++)
		(options->look.core ? parse_of_core : parse_of_process)(options, options->words[i], state);
	if (options->look.core && options->look.no_stop)
		argp_error(state, "--no-stop works with processes only, not with --core");
	if (options->look.core && options->subprocesses)
		argp_error(state, "--subprocesses works with processes only, not with --core");
	if (options->requests && (options->look.core || options->subprocesses || options->look.tid))
		argp_error(state, "--requests works with one process, and each request names its thread");
	if (options->look.tid && options->subprocesses)
		argp_error(state, "one thread, or --subprocesses?");
	if (!options->look.core && !options->look.pid)
		argp_error(state, "of which process? Give its PID, or --core FILE");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		keep_word(options, argument, state);
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_CORE:
		options->look.core = argument;
		return 0;
	case OPTION_NO_STOP:
		options->look.no_stop = true;
		return 0;
	case OPTION_NO_NATIVE:
		options->look.no_native = true;
		return 0;
	case OPTION_SUBPROCESSES:
		options->subprocesses = true;
		return 0;
	case OPTION_ASYNC:
		options->look.async = true;
		return 0;
	case OPTION_INTERPRETER:
		options->look.show_interpreter = true;
		return 0;
	case OPTION_NO_CACHE:
		options->no_cache = true;
		return 0;
	case OPTION_REQUESTS:
		options->requests = true;
		return 0;
	case OPTION_LOCALS:
		options->look.locals = true;
		return 0;
	case ARGP_KEY_ARG:
		keep_word(options, argument, state);
		return 0;
	case ARGP_KEY_END:
		understand(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID [TID]\n--core FILE [PROGRAM] [TID]",
	.doc = "Print the stack of each thread of a running process or core file: Python and native frames with current "
	       "lines, innermost first. probing stops each thread for about a millisecond, one after the other; a "
	       "thread resumes even if probing is killed.\v"
	       "Examples:\n"
	       "  probing backtrace 4242\n"
	       "  probing backtrace 4242 4250 --no-native --locals\n"
	       "  probing backtrace 4242 --json\n"
	       "  probing backtrace 4242 --subprocesses\n"
	       "  probing backtrace --core core.4242\n"
	       "\n"
	       "If threads may be read but not stopped, Python frames are read as with --no-stop. Interrupted "
	       "system calls restart; a few return EINTR, as after SIGSTOP: see signal(7).",
};

/* Print one process; @place not NULL: one of several. */
static int put(const struct backtrace *backtrace, const struct backtrace_place *place, const struct options *options,
	       struct output *output)
{
	int r;

	if (options->json)
		r = backtrace_print_json(backtrace, place, output->file);
	else
		r = backtrace_print_text(backtrace, place, cli_colour(STDOUT_FILENO), output->file);
	if (output->error < 0)
		return cli_fail_write("-", output->error);
	return r < 0 ? cli_fail(EXIT_FAILED, "printing failed: %s", strerror(-r)) : EXIT_OK;
}

static void show_progress(void *data, const char *what, size_t n_done, size_t n_all)
{
	progress_show(data, what, n_done, n_all);
}

/* Take a backtrace, with progress on a terminal for processes with thousands of threads. */
static int take(struct backtrace_session *session, const struct backtrace_options *options, struct backtrace **ret)
{
	struct backtrace_options shown = *options;
	struct progress progress;

	progress_begin_shown(&progress, false);
	shown.progress = show_progress;
	shown.progress_data = &progress;
	return progress_end(&progress, backtrace_take(session, &shown, ret));
}

static int look_at_one(struct backtrace_session *session, const struct options *options, struct output *output)
{
	CLEANUP(backtrace_freep) struct backtrace *backtrace = NULL;
	char text[SAY_BYTES];
	int r;

	r = take(session, &options->look, &backtrace);
	if (r < 0) {
		r = backtrace_print_failure(&options->look, r, text);
		return cli_fail(r, "%s", text);
	}
	backtrace_print_shortcomings(backtrace, "");
	return put(backtrace, NULL, options, output);
}

/* Print one of several processes; an error replaces its output. @failure: exit status of the error. */
static int look_at_relative(struct backtrace_session *session, const struct options *options,
			    const struct backtrace_relative *relative, struct output *output, int *failure)
{
	CLEANUP(backtrace_freep) struct backtrace *backtrace = NULL;
	struct backtrace_place place = { relative->pid, relative->parent, NULL };
	struct backtrace_options look = options->look;
	char text[SAY_BYTES], whose[32];
	int r;

	look.pid = relative->pid;
	snprintf(whose, sizeof whose, "process %d: ", (int)look.pid);
	r = take(session, &look, &backtrace);
	*failure = r < 0 ? backtrace_print_failure(&look, r, text) : EXIT_OK;
	if (r < 0)
		place.problem = text;
	else
		backtrace_print_shortcomings(backtrace, whose);
	return put(backtrace, &place, options, output);
}

/* Fails only if no process can be shown, with the first one's status. */
static int look_at_relatives(struct backtrace_session *session, const struct options *options, struct output *output)
{
	CLEANUP(freep) struct backtrace_relative *relatives = NULL;
	int status = EXIT_OK, first_failure = EXIT_OK, r;
	bool any = false;
	size_t n;

	if (backtrace_process_of(options->look.pid) == 0)
		return look_at_one(session, options, output);
	r = backtrace_descendants(options->look.pid, &relatives, &n);
	if (r < 0)
		return cli_fail(cli_status(r), "the processes cannot be listed: %s", strerror(-r));
	for (size_t i = 0; i < n && status == EXIT_OK; i++) {
		int failure;

		fputs(options->json ? i > 0 ? "," : "[\n" : i > 0 ? "\n" : "", output->file);
		status = look_at_relative(session, options, &relatives[i], output, &failure);
		any |= failure == EXIT_OK;
		if (i == 0)
			first_failure = failure;
	}
	if (options->json)
		fputs("]\n", output->file);
	if (status != EXIT_OK || any)
		return status;
	return cli_fail(first_failure, "process %d%s cannot be shown, for the reasons above", (int)options->look.pid,
			n > 1 ? " and its descendants" : "");
}

/* ---- Requests ---- */

/* Files and names stay open from one request to the next. */
struct requested {
	struct backtrace_session *session;
	const struct options *options;
};

/* @requested: its session is that of the last request; NULL: there was none, or it has grown too large. */
static int renew_session(struct requested *requested)
{
	if (requested->session && backtrace_session_is_large(requested->session))
		backtrace_session_free(TAKE(requested->session));
	return requested->session ? 0 : backtrace_session_new(!requested->options->no_cache, &requested->session);
}

static void keep_first(void *data, const char *sentence)
{
	char *to = data;

	if (!to[0])
		snprintf(to, REQUEST_SENTENCE_BYTES, "%s", sentence);
}

static int answer(void *data, const char *line, FILE *out, char *sentence)
{
	CLEANUP(backtrace_freep) struct backtrace *backtrace = NULL;
	struct requested *requested = data;
	struct backtrace_options look = requested->options->look;
	char text[SAY_BYTES], *end;
	long tid = strtol(line, &end, 10);
	int r;

	if (*end || tid < 0 || tid > INT_MAX) {
		snprintf(sentence, REQUEST_SENTENCE_BYTES, "a request is a TID, or empty");
		return EXIT_USAGE;
	}
	look.tid = (pid_t)tid;
	r = renew_session(requested);
	if (r >= 0)
		r = backtrace_take(requested->session, &look, &backtrace);
	if (r < 0) {
		r = backtrace_print_failure(&look, r, text);
		snprintf(sentence, REQUEST_SENTENCE_BYTES, "%.*s", REQUEST_SENTENCE_BYTES - 1, text);
		return r;
	}
	backtrace_session_keep(requested->session);
	backtrace_shortcomings(backtrace, keep_first, sentence);
	r = backtrace_print_json(backtrace, NULL, out);
	if (r == 0)
		return EXIT_OK;
	snprintf(sentence, REQUEST_SENTENCE_BYTES, "not enough memory");
	return EXIT_FAILED;
}

static int answer_requests(const struct options *options)
{
	struct requested requested = { .options = options };
	int status = requests_serve(MAX_REQUEST_BYTES, answer, &requested);

	backtrace_session_free(requested.session);
	return status;
}

static int look(const struct options *options)
{
	CLEANUP(backtrace_session_freep) struct backtrace_session *session = NULL;
	CLEANUP(output_abandon) struct output output;
	int r, status;

	r = backtrace_session_new(!options->no_cache, &session);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = output_open(&output, "-", 0);
	if (r < 0)
		return cli_fail_open("-", r);
	status = options->subprocesses ? look_at_relatives(session, options, &output)
				       : look_at_one(session, options, &output);
	if (output.error < 0)
		return status;
	r = output_finish(&output);
	backtrace_session_keep(session);
	return r < 0 ? cli_fail_write("-", r) : status;
}

static int run_backtrace(int argc, char **argv)
{
	struct options options = { 0 };
	pid_t process;

	cli_parse(&argp, argc, argv, 0, &options);
	process = options.look.core ? 0 : backtrace_process_of(options.look.pid);
	if (process != 0 && process != options.look.pid)
		return cli_fail(EXIT_NO_INPUT, "%d is a thread of process %d: probing backtrace %d %d",
				(int)options.look.pid, (int)process, (int)process, (int)options.look.pid);
	return options.requests ? answer_requests(&options) : look(&options);
}

const struct verb verb_backtrace = {
	.name = "backtrace",
	.aliases = "dump bt b",
	.summary = "print the stack of each thread of a running process",
	.argp = &argp,
	.pages = true,
	.run = run_backtrace,
};
