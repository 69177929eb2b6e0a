/* SPDX-License-Identifier: MIT */
/* verb_symbolize.c - resolves the symbols of a recording, here or on another machine.
 *
 * All changes are one transaction: after Ctrl-C or kill -9
 * the recording is unchanged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/format.h"
#include "src/cli/progress.h"
#include "src/cli/resymbolize_summary.h"
#include "src/pipeline/pipeline.h"
#include "src/store/store.h"

enum { KEY_SYSROOT = 0x200, KEY_DEBUG_DIR, KEY_DEBUGINFOD, KEY_REDO, KEY_FORCE };
enum { MAX_SENTENCE = 512 };

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

/* The file in work, and what servers have sent. */
static bool show(void *data, const struct resymbolize_progress *progress)
{
	const char *slash = strrchr(progress->path, '/');
	char name[48], size[16], all[16], item[96];
	size_t n;

	format_printable_name(slash ? slash + 1 : progress->path, name, sizeof name);
	n = (size_t)snprintf(item, sizeof item, "%s", name);
	/* Before it knows the size, libdebuginfod counts its own waits. Source: elfutils 0.188, debuginfod-client.c. */
	if (progress->to_download > 0) {
		format_bytes((uint64_t)progress->downloaded, size);
		format_bytes((uint64_t)progress->to_download, all);
		snprintf(item + n, sizeof item - n, "  %s of %s downloaded", size, all);
	}
	return progress_show_item(data, "places", progress->n_done, progress->n_places, item);
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

static int resymbolize_all(const struct arguments *arguments, struct store *store, const char *path,
			   struct progress *progress)
{
	CLEANUP(resymbolize_result_done) struct resymbolize_result result;
	const char *urls = getenv("DEBUGINFOD_URLS");
	const struct resymbolize_options wanted = {
		.sysroot = arguments->sysroot,
		.debug_dirs = arguments->debug_dirs,
		.n_debug_dirs = arguments->n_debug_dirs,
		.debuginfod = urls && urls[0] != '\0',
		.redo = arguments->redo,
		.force = arguments->force,
		.keep_going = show,
		.data = progress,
	};
	int r;

	r = pipeline_resymbolize(store, &wanted, &result);
	progress_clear(progress);
	if (r >= 0)
		r = store_checkpoint(store);
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
	struct progress progress;
	const char *path;
	int r, status;

	cli_parse(&argp, argc, argv, 0, &arguments);
	path = arguments.recording ? arguments.recording : cli_default_recording();
	if (arguments.debuginfod)
		setenv("DEBUGINFOD_URLS", arguments.debuginfod, 1);
	progress_begin(&progress, arguments.quiet);
	r = store_open(path, &store);
	status = r < 0 ? fail(r, path) : resymbolize_all(&arguments, store, path, &progress);
	free(arguments.debug_dirs);
	store_close(TAKE(store));
	return progress_end(&progress, status);
}

const struct verb verb_symbolize = {
	.name = "symbolize",
	.summary = "resolve a recording's native functions",
	.argp = &argp,
	.run = run_symbolize,
};
