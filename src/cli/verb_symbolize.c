/* SPDX-License-Identifier: MIT */
/* verb_symbolize.c - resolves the symbols of a recording, here or on another machine.
 *
 * All changes are one transaction: after Ctrl-C or kill -9
 * the recording is unchanged.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/duration.h"
#include "src/cli/format.h"
#include "src/cli/resymbolize_summary.h"
#include "src/pipeline/pipeline.h"
#include "src/store/store.h"

enum { KEY_SYSROOT = 0x200, KEY_DEBUG_DIR, KEY_DEBUGINFOD, KEY_REDO, KEY_FORCE };
enum { PROGRESS_NS = 100000000, MAX_SENTENCE = 512 };

struct arguments {
	const char *recording;
	const char **debug_dirs;
	size_t n_debug_dirs, dirs_allocated;
	const char *sysroot, *debuginfod;
	bool redo, force, quiet;
};

static const struct argp_option options[] = {
	{ "debug-dir", KEY_DEBUG_DIR, "DIR", 0,
	  "Search DIR/.build-id/xx/yyyy.debug and DIR/PATH as well (repeatable; default: /usr/lib/debug only)", 0 },
	{ "sysroot", KEY_SYSROOT, "DIR", 0,
	  "Search for each module at DIR/PATH first (a copy of the recorded "
	  "machine's files)",
	  0 },
	{ "debuginfod", KEY_DEBUGINFOD, "URLS", 0,
	  "Fetch missing files from these servers (default: DEBUGINFOD_URLS, otherwise none)", 0 },
	{ "redo", KEY_REDO, NULL, 0,
	  "Re-resolve all native and kernel symbols (default: those without a name or "
	  "line)",
	  0 },
	{ "force", KEY_FORCE, NULL, 0,
	  "Match modules without a recorded build-id by path, and resolve kernel functions with the running kernel",
	  0 },
	{ "quiet", 'q', NULL, 0, "Print errors only", 0 },
	{ 0 },
};

static void add_debug_dir(struct argp_state *state, struct arguments *arguments, const char *folder)
{
	if (access(folder, R_OK | X_OK) < 0)
		argp_error(state, "--debug-dir %s cannot be read: %s", folder, strerror(errno));
	if (grow(&arguments->debug_dirs, arguments->n_debug_dirs, &arguments->dirs_allocated,
		 sizeof *arguments->debug_dirs) < 0)
		argp_error(state, "not enough memory");
	else
		arguments->debug_dirs[arguments->n_debug_dirs++] = folder;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case KEY_DEBUG_DIR:
		add_debug_dir(state, arguments, argument);
		return 0;
	case KEY_SYSROOT:
		if (access(argument, R_OK | X_OK) < 0)
			argp_error(state, "--sysroot %s cannot be read: %s", argument, strerror(errno));
		arguments->sysroot = argument;
		return 0;
	case KEY_DEBUGINFOD:
		arguments->debuginfod = argument;
		return 0;
	case KEY_REDO:
		arguments->redo = true;
		return 0;
	case KEY_FORCE:
		arguments->force = true;
		return 0;
	case 'q':
		arguments->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_parse_recording(state, argument, &arguments->recording);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[FILE]",
	.doc = "Resolve a recording's native functions (default: probing.db): names, files, lines and inlined "
	       "callers, on any machine. Only files with the recorded build-id are used.\v"
	       "Examples:\n"
	       "  probing symbolize\n"
	       "  probing symbolize prod.db --sysroot /mnt/image --debug-dir ~/debug\n"
	       "  probing symbolize --debuginfod \"$DEBUGINFOD_URLS\"\n"
	       "\n"
	       "A name is never replaced by a less precise one. The file changes in one transaction at the end. "
	       "Exit status: 0 the file is up to date, even if names are still missing (stderr lists them, with a "
	       "remedy); 65 not a sound recording; 66 no such file; 73 it is being recorded or cannot be changed; "
	       "74 the disk is full.",
};

/* ---- Progress ---- */

static volatile sig_atomic_t caught; /* the signal to end by; 0: none */

static void catch (int number)
{
	caught = number;
}

static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = catch };
	struct sigaction before;

	for (size_t i = 0; i < N_ELEMENTS(signals); i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

struct screen {
	bool on; /* stderr is a terminal */
	uint64_t next_ns, began_ns;
	bool is_dirty;
};

static bool show(void *data, const struct resymbolize_progress *progress)
{
	struct screen *screen = data;
	const char *slash = strrchr(progress->path, '/');
	char name[48], size[16], left[DURATION_LEFT_BYTES];
	uint64_t now = monotonic_ns();

	if (!screen->on || now < screen->next_ns)
		return !caught;
	screen->next_ns = now + PROGRESS_NS;
	screen->is_dirty = true;
	format_printable_name(slash ? slash + 1 : progress->path, name, sizeof name);
	duration_format_left(now - screen->began_ns, progress->n_done, progress->n_places, left);
	fprintf(stderr, "\r%zu of %zu places%s  %s", progress->n_done, progress->n_places, left, name);
	if (progress->downloaded > 0) {
		format_bytes((uint64_t)progress->downloaded, size);
		cli_say("  %s downloaded", size);
	}
	fputs("\033[K", stderr);
	return !caught;
}

/* ---- Resymbolize ---- */

static int fail(int error, const char *path)
{
	char sentence[MAX_SENTENCE];

	if (error == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT, "%s is being recorded or changed: wait until that ends", path);
	if (error == -EACCES || error == -EROFS || error == -EPERM)
		return cli_fail(EXIT_NO_OUTPUT, "%s cannot be changed: %s; copy it to a folder of your own", path,
				strerror(-error));
	if (error == -ECANCELED)
		return cli_fail(EXIT_FAILED, "interrupted; %s is unchanged", path);
	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

/* Die of the signal, as if it had not been caught. */
static void end_by(int number)
{
	signal(number, SIG_DFL);
	raise(number);
}

static int resymbolize_all(const struct arguments *arguments, struct store *store, const char *path)
{
	CLEANUP(resymbolize_result_done) struct resymbolize_result result;
	struct screen screen = { .on = !arguments->quiet && isatty(STDERR_FILENO), .began_ns = monotonic_ns() };
	const char *urls = getenv("DEBUGINFOD_URLS");
	const struct resymbolize_options wanted = {
		.sysroot = arguments->sysroot,
		.debug_dirs = arguments->debug_dirs,
		.n_debug_dirs = arguments->n_debug_dirs,
		.debuginfod = urls && urls[0] != '\0',
		.redo = arguments->redo,
		.force = arguments->force,
		.keep_going = show,
		.data = &screen,
	};
	int r;

	r = pipeline_resymbolize(store, &wanted, &result);
	if (screen.is_dirty)
		fputs("\r\033[K", stderr);
	if (r >= 0)
		r = store_settle(store);
	if (r < 0)
		return fail(r, path);
	if (!arguments->quiet)
		resymbolize_summary(&result, path, &wanted);
	return EXIT_OK;
}

static int run_symbolize(int argc, char **argv)
{
	CLEANUP(store_closep) struct store *store = NULL;
	struct arguments arguments = { 0 };
	const char *path;
	int r, status;

	cli_parse(&argp, argc, argv, 0, &arguments);
	path = arguments.recording ? arguments.recording : cli_default_recording();
	if (arguments.debuginfod)
		setenv("DEBUGINFOD_URLS", arguments.debuginfod, 1);
	catch_signals();
	r = store_open(path, &store);
	status = r < 0 ? fail(r, path) : resymbolize_all(&arguments, store, path);
	free(arguments.debug_dirs);
	store_close(TAKE(store));
	if (caught && status != EXIT_OK)
		end_by(caught);
	return status;
}

const struct verb verb_symbolize = {
	.name = "symbolize",
	.summary = "resolve a recording's native functions",
	.argp = &argp,
	.run = run_symbolize,
};
