/* SPDX-License-Identifier: MIT */
/*
 * verb_import.c - converts another profiler's file, or the files of all ranks of a job, to a recording.
 *
 * The format is recognised by the file's contents. The recording appears when it is complete; an existing recording
 * gets tables of GPUs in one transaction.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/path.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/format.h"
#include "src/cli/format_list.h"
#include "src/cli/import_list.h"
#include "src/cli/new_file_options.h"
#include "src/cli/inputs.h"
#include "src/cli/progress.h"
#include "src/import/import.h"
#include "src/pipeline/pipeline.h"

enum { KEY_FROM = 'f', KEY_INTO = 0x200, MAX_SENTENCE = 512 };

struct options {
	const char *path, *into; /* path: the first one */
	struct import_list files;
	struct new_file_options place;
	const struct importer *importer; /* NULL: detect by the file's contents */
};

static const struct argp_option option_list[] = {
	{ "from", KEY_FROM, "FORMAT", 0, "The format", 0 }, /* list_formats() completes it */
	NEW_FILE_OPTION_ROWS("Write to OUT (default: FILE with .db in place of its ending)"),
	{ "into", KEY_INTO, "RECORDING", 0, "Add the GPU tables to an existing recording", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	int r;

	switch (key) {
	case KEY_FROM:
		options->importer = importer_by_name(argument);
		if (!options->importer)
			argp_error(state, "there is no format %s; --help lists them", argument);
		return 0;
	case KEY_INTO:
		options->into = argument;
		return 0;
	case ARGP_KEY_ARG:
		options->path = options->path ?: argument;
		r = import_list_add(&options->files, argument);
		if (r < 0)
			argp_error(state, "%s cannot be read: %s", argument, strerror(-r));
		return 0;
	case ARGP_KEY_END:
		if (!options->path)
			argp_error(state, "name the file that another profiler wrote");
		if (options->into && options->place.out)
			argp_error(state, "either -o OUT or --into RECORDING");
		return 0;
	default:
		return new_file_parse(key, argument, state, &options->place);
	}
}

/* Help text of --from, from the table of importers. argp frees the result. */
static char *list_formats(int key, const char *text, void *input)
{
	struct format_list list;

	if (key != KEY_FROM)
		return cli_help_filter(key, text, input);
	if (!format_list_begin(&list, "The format:"))
		return (char *)text;
	for (size_t i = 0; importers[i]; i++)
		format_list_add(&list, importers[i]->name, importers[i]->summary);
	return format_list_end(&list, "; default: detected");
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "FILE...",
	.doc = "Import the profile of another profiler (- is stdin) as a recording for report, flamegraph, sql, diff "
	       "and export. Dumps of PyTorch's Flight Recorder may be several, or a folder of them.\vExamples:\n  "
	       "probing import out.folded\n  probing import dumps -o hang.db && probing report hang.db\n  probing import nvprof.log -o gpu.db && probing "
	       "sql gpu.db 'SELECT * FROM gpu.nvprof'\n  probing import nvprof.csv --into train.db\n\nExit status: 65 "
	       "FILE is damaged, or its format is not recognised; 66 no such file; 73 OUT cannot be created; 74 the "
	       "disk is full.",
	.help_filter = list_formats,
};

/* Whether the last part is "." or "..". */
static bool is_dots(const char *path, size_t n)
{
	size_t n_dots = 0;

	while (n_dots < n && path[n - 1 - n_dots] == '.')
		n_dots++;
	return n_dots > 0 && n_dots < 3 && (n_dots == n || path[n - 1 - n_dots] == '/');
}

/* "out.folded" becomes "out.db", and the folder "dumps/" "dumps.db". "." has no name. */
static char *default_out(const char *path)
{
	size_t n = strlen(path);
	char *out;

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (strcmp(path, "-") == 0 || n == 0 || path[n - 1] == '/' || is_dots(path, n))
		return strdup("imported.db");
	if (path[n] == '/')
		return asprintf(&out, "%.*s.db", (int)n, path) < 0 ? NULL : out;
	return asprintf(&out, "%.*s.db", (int)path_stem_bytes(path), path) < 0 ? NULL : out;
}

/* ---- Errors ---- */

static int fail_size(const char *path)
{
	return cli_fail(EXIT_BAD_DATA,
			"%s has more than %" PRIu64 " MiB, the most that is read with this machine's memory: export a "
			"part of it with the profiler that made it",
			strcmp(path, "-") == 0 ? "stdin" : path, input_most() >> 20);
}

static int fail_read(const struct options *options, int error, const struct import_result *result)
{
	const char *format = options->importer->name, *path = options->files.current ?: options->path;

	switch (error) {
	case -ECANCELED:
		return options->into ? cli_fail(EXIT_FAILED, "interrupted; %s is unchanged", options->into)
				     : cli_fail(EXIT_FAILED, "interrupted; no file was created");
	case -E2BIG:
		return fail_size(path);
	case -ENODATA:
		if (options->files.n_other > 0 && options->files.n_other == options->files.n)
			return cli_fail(EXIT_BAD_DATA,
					"%s has no file of the format %s; name one file to have its "
					"format recognised",
					options->path, format);
		/* fallthrough */
	case -EBADMSG:
	case -EPROTONOSUPPORT:
	case -EOPNOTSUPP:
		return cli_fail(EXIT_BAD_DATA, "%s cannot be imported as %s: %s", path, format,
				result->why[0] ? result->why : "it is damaged");
	default:
		return cli_fail(cli_status(error), "importing %s as %s failed: %s", path, format, strerror(-error));
	}
}

static int fail_into(const char *path, int error)
{
	char sentence[MAX_SENTENCE];

	if (error == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT, "%s is being recorded or changed: wait until that ends", path);
	if (error == -EACCES || error == -EROFS || error == -EPERM)
		return cli_fail(EXIT_NO_OUTPUT, "%s cannot be changed: %s; copy it to a folder of your own", path,
				strerror(-error));
	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

static void print_result(const struct options *options, const char *out, const struct import_result *result)
{
	char samples[32];

	format_count(result->n_samples, samples);
	cli_say("probing: %s %s: ", options->into ? "added to" : "wrote", out);
	if (result->n_gpu == 0 || result->n_timed > 0)
		cli_say("%s samples%s", samples, result->n_timed > 0 ? "" : ", without a time");
	if (result->n_gpu > 0)
		cli_say("%s%" PRIu64 " rows of GPUs", result->n_timed > 0 ? ", " : "", result->n_gpu);
	cli_say(" (%s)\n", options->importer->name);
	if (options->files.n_other > 0)
		cli_say("%zu other file%s of %s %s of another format\n", options->files.n_other,
			options->files.n_other == 1 ? "" : "s", options->path,
			options->files.n_other == 1 ? "is" : "are");
	if (result->n_skipped > 0)
		cli_say("%" PRIu64 " entr%s of %s could not be parsed and %s skipped\n", result->n_skipped,
			result->n_skipped == 1 ? "y" : "ies", options->path, result->n_skipped == 1 ? "was" : "were");
}

/* ---- Import ---- */

struct showing {
	struct progress progress;
	const struct import_list *files;
};

/* Of several files each is a like part of the work. */
static bool show(void *data, const struct import_progress *now)
{
	enum { PARTS = 1000 };
	struct showing *showing = data;
	const struct import_list *files = showing->files;
	struct progress_share share = {
		.n = now->n_rows, .unit = "rows", .what = now->what, .n_done = now->n_done, .n_all = now->n_all
	};

	if (files->n > 1 && now->n_all > 0 && strcmp(now->what, "read") == 0) {
		share.n_done = (files->next - 1) * PARTS + PARTS * now->n_done / now->n_all;
		share.n_all = files->n * PARTS;
	}
	return progress_show_share(&showing->progress, &share);
}

static bool show_names(void *data, const struct resymbolize_progress *now)
{
	struct showing *showing = data;

	return progress_show(&showing->progress, "names", now->n_done, now->n_places);
}

/* Resolve addresses for which the import has no symbols, with files of this machine. */
static int name_places(const char *path, struct showing *showing)
{
	CLEANUP(store_closep) struct store *store = NULL;
	CLEANUP(resymbolize_result_done) struct resymbolize_result result = { 0 };
	const struct resymbolize_options options = { .keep_going = show_names, .data = showing };
	int r;

	r = store_open(path, &store);
	if (r >= 0)
		r = pipeline_resymbolize(store, &options, &result);
	return r < 0 ? r : store_checkpoint(store);
}

static int make(struct options *options, const char *path, struct import_result *result)
{
	const struct import_files files = { import_list_next, &options->files };
	CLEANUP(store_closep) struct store *store = NULL;
	int r;

	r = store_create(path, NULL, &store);
	if (r < 0)
		return r;
	r = import_read(options->importer, &files, store, false, cli_version, result);
	if (r >= 0)
		r = store_finish(TAKE(store), result->ended_ns);
	if (r >= 0 && result->has_places)
		r = name_places(path, options->files.data);
	return r;
}

static int import_new(struct options *options, const char *out)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	struct showing showing = { .files = &options->files };
	struct import_result result = { 0 };
	int r;

	r = new_file_reserve(&file, out, options->place.force, options->place.mode);
	if (r < 0)
		return inputs_fail_place(out, r);
	progress_begin(&showing.progress, options->place.quiet);
	options->files.keep_going = show;
	options->files.data = &showing;
	r = make(options, file.path, &result);
	if (r < 0)
		return progress_end(&showing.progress, fail_read(options, r, &result));
	progress_end(&showing.progress, EXIT_OK);
	r = new_file_finish(&file);
	if (r < 0)
		return inputs_fail_place(out, r);
	if (!options->place.quiet)
		print_result(options, out, &result);
	return EXIT_OK;
}

static int import_into(struct options *options)
{
	const struct import_files files = { import_list_next, &options->files };
	CLEANUP(store_closep) struct store *store = NULL;
	struct showing showing = { .files = &options->files };
	struct import_result result = { 0 };
	int r;

	if (!options->importer->has_gpu)
		return cli_fail(EXIT_USAGE,
				"%s has stacks of its own (%s): import it with -o, then use probing merge or probing "
				"diff",
				options->path, options->importer->name);
	r = store_open(options->into, &store);
	if (r < 0)
		return fail_into(options->into, r);
	progress_begin(&showing.progress, options->place.quiet);
	options->files.keep_going = show;
	options->files.data = &showing;
	r = import_read(options->importer, &files, store, true, cli_version, &result);
	if (r < 0)
		return progress_end(&showing.progress, fail_read(options, r, &result));
	progress_end(&showing.progress, EXIT_OK);
	r = store_checkpoint(store);
	if (r < 0)
		return fail_into(options->into, r);
	if (!options->place.quiet)
		print_result(options, options->into, &result);
	return EXIT_OK;
}

static int import_to(struct options *options)
{
	CLEANUP(freep) char *out = default_out(options->path);

	if (!out)
		return cli_fail(EXIT_FAILED, "not enough memory");
	return options->into ? import_into(options) : import_new(options, options->place.out ?: out);
}

static int import_one(struct options *options)
{
	struct input *input = &options->files.input;
	int r = input_read(options->path, input);

	if (r == -ENODEV)
		return cli_fail(EXIT_NO_INPUT, "%s is a device: name a file, or - for stdin", options->path);
	if (r == -E2BIG)
		return fail_size(options->path);
	if (r < 0)
		return cli_fail(cli_status(r), "%s cannot be read: %s", options->path, strerror(-r));
	if (input->n_bytes == 0)
		return cli_fail(EXIT_BAD_DATA, "%s is empty", options->path);
	options->files.is_read = true;
	if (!options->importer)
		options->importer = importer_recognise(input->bytes, input->n_bytes);
	if (!options->importer)
		return cli_fail(EXIT_BAD_DATA,
				"%s: unrecognised format; probing import --help lists the formats, --from names one",
				options->path);
	options->files.importer = options->importer;
	return import_to(options);
}

static const struct importer *joining_importer(void)
{
	for (size_t i = 0; importers[i]; i++)
		if (importers[i]->joins_files)
			return importers[i];
	return NULL;
}

static bool is_one_format(const struct import_list *files, const struct importer *importer)
{
	for (size_t i = 0; i < files->n; i++)
		if (strcmp(files->paths[i], "-") == 0)
			return false;
	return importer->joins_files;
}

/* Several files, or a folder of them. */
static int import_several(struct options *options)
{
	options->importer = options->importer ?: joining_importer();
	options->files.importer = options->importer;
	if (!is_one_format(&options->files, options->importer))
		return cli_fail(EXIT_USAGE, "one file at a time; only %s reads several, one of each rank",
				joining_importer()->name);
	if (options->files.n == 0)
		return cli_fail(EXIT_BAD_DATA, "%s has no files", options->path);
	return import_to(options);
}

static void options_done(struct options *options)
{
	import_list_done(&options->files);
}

static int run_import(int argc, char **argv)
{
	CLEANUP(options_done) struct options options = { 0 };

	cli_parse(&argp, argc, argv, 0, &options);
	return options.files.n == 1 && !options.files.is_folder ? import_one(&options) : import_several(&options);
}

const struct verb verb_import = {
	.name = "import",
	.summary = "import a profile of another profiler",
	.argp = &argp,
	.run = run_import,
};
