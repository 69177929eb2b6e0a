/* SPDX-License-Identifier: MIT */
/* verb_info.c - description and check of a recording. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "base/glob_list.h"
#include "src/cli/cli.h"
#include "src/cli/extension.h"
#include "src/cli/info.h"
#include "src/cli/pager.h"
#include "src/store/store.h"

enum { KEY_CHECK = 0x200, KEY_JSON, KEY_EXTENSION, MAX_SENTENCE = 512 };

struct options {
	struct glob_list paths;
	bool check, json, extension;
};

static const struct argp_option option_list[] = {
	{ "check", KEY_CHECK, NULL, 0,
	  "Read the whole file and report damage: pages, dangling references, samples, the final checksum", 0 },
	{ "json", KEY_JSON, NULL, 0, "Print an array of one object a file", 0 },
	{ "extension", KEY_EXTENSION, NULL, 0,
	  "Print the path of the SQLite extension that lets sqlite3 and Python's sqlite3 read recordings", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_CHECK:
		options->check = true;
		return 0;
	case KEY_JSON:
		options->json = true;
		return 0;
	case KEY_EXTENSION:
		options->extension = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_parse_name(state, argument, &options->paths);
		return 0;
	case ARGP_KEY_END:
		if (options->extension && (options->paths.n > 0 || options->check || options->json))
			argp_error(state, "--extension takes no recording: give it alone");
		if (!options->extension && options->paths.n == 0)
			cli_parse_name(state, cli_default_recording(), &options->paths);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE...]",
	.doc = "Describe recordings (default: probing.db): the command or processes, when and where they ran, how the "
	       "recording ended, the time span, the number of samples, and the space by part.\v"
	       "Examples:\n"
	       "  probing info train.db\n"
	       "  probing info --check *.db\n"
	       "  sqlite3 -cmd \".load $(probing info --extension)\" train.db 'SELECT count(*) FROM sample'\n"
	       "\n"
	       "Exit status: 0 the files are readable, and with --check intact; 65 one is damaged or not a "
	       "recording; 66 no such file. A recording whose recorder was killed is intact if everything written "
	       "is there.",
};

static void hear(void *data, const char *sentence)
{
	struct info *info = data;
	char *copy = strdup(sentence);

	if (copy && grow(&info->wrong, info->n_wrong, &info->wrong_allocated, sizeof *info->wrong) >= 0)
		info->wrong[info->n_wrong++] = copy;
	else
		free(copy);
}

static void info_done(struct info *info)
{
	about_done(&info->about);
	for (size_t i = 0; i < info->n_wrong; i++)
		free(info->wrong[i]);
	free(info->wrong);
}

static int fail(int error, const char *path)
{
	char sentence[MAX_SENTENCE];

	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

/* Run --check first: it reports all damage, also damage that would stop reading. */
static int look(struct info *info, const char *path, bool check)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	bool is_written = store_is_written(path);
	int status, r = 0;

	*info = (struct info){ .path = path };
	status = cli_open_recording(path, &db);
	if (status != EXIT_OK)
		return status;
	if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK && check) {
		r = check_recording(db, hear, info, &info->check);
		info->is_checked = r >= 0;
	}
	if (r >= 0)
		r = about_read(db, path, is_written, &info->about);
	if (r == -EBADMSG && info->check.n_wrong > 0)
		return EXIT_BAD_DATA; /* the output below describes the damage */
	return r < 0 ? fail(r, path) : info->check.n_wrong > 0 ? EXIT_BAD_DATA : EXIT_OK;
}

/* A damaged file must not hide the others. */
static int look_at_all(const struct options *options, struct info *infos, bool *ret_is_seen)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < options->paths.n; i++) {
		int one = look(&infos[i], options->paths.words[i], options->check);

		ret_is_seen[i] = one == EXIT_OK || infos[i].is_checked;
		if (one == EXIT_BAD_DATA && infos[i].is_checked)
			cli_fail(one, "%s is damaged: %s", options->paths.words[i],
				 infos[i].n_wrong > 0 ? infos[i].wrong[0] : "");
		if (status == EXIT_OK)
			status = one;
	}
	return status;
}

static int print(const struct options *options, struct info *infos, const bool *is_seen)
{
	size_t n = 0;
	int r;

	for (size_t i = 0; i < options->paths.n; i++) {
		struct info kept = infos[i];

		if (!is_seen[i])
			continue;
		if (!options->json) {
			pager_start();
			if (n > 0)
				putchar('\n');
			info_print(&infos[i], stdout);
		}
		/* Move shown files to the front; the rest stay owned. */
		infos[i] = infos[n];
		infos[n++] = kept;
	}
	r = options->json ? info_print_json(infos, n, stdout) : 0;
	if (r == -ENOMEM)
		return cli_fail(EXIT_FAILED, "not enough memory");
	return r < 0 ? cli_fail_write("-", r) : EXIT_OK;
}

static int info_all(const struct options *options)
{
	CLEANUP(freep) struct info *infos = calloc(options->paths.n, sizeof *infos);
	CLEANUP(freep) bool *is_seen = calloc(options->paths.n, sizeof *is_seen);
	int status, printed;

	if (!infos || !is_seen)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = look_at_all(options, infos, is_seen);
	printed = print(options, infos, is_seen);
	for (size_t i = 0; i < options->paths.n; i++)
		info_done(&infos[i]);
	return status == EXIT_OK ? printed : status;
}

static int print_extension(void)
{
	CLEANUP(freep) char *path = extension_path();

	if (!path)
		return cli_fail(EXIT_NO_INPUT,
				"probing_sqlite.so is missing from its install folder: reinstall probing");
	puts(path);
	return EXIT_OK;
}

static int run_info(int argc, char **argv)
{
	struct options options = { 0 };
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = options.extension ? print_extension() : info_all(&options);
	glob_list_done(&options.paths);
	return status;
}

const struct verb verb_info = {
	.name = "info",
	.summary = "describe a recording and check its integrity",
	.argp = &argp,
	.pages = true,
	.run = run_info,
};
