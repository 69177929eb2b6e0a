/* SPDX-License-Identifier: MIT */
/* backtrace.c - probing cluster backtrace: the stacks of all ranks as one tree.
 *
 * Each rank of this machine is read by a process of its own, `probing backtrace --json`. Other machines run the same verb
 * with --local, and answer with a document.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/cluster/hosts.h"
#include "src/cli/exporters.h"
#include "src/cluster/cluster.h"
#include "src/profile/profile.h"

enum {
	OPTION_THREADS = 0x200,
	OPTION_NO_NATIVE,
	OPTION_WHOLE,
	OPTION_FROM,
	OPTION_MODE,
	MAX_ARGUMENTS = 8,
};

struct options {
	struct cluster_options cluster;
	struct tree_options tree;
	struct cluster_output output;
	struct glob_list from;
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "threads", OPTION_THREADS, NULL, 0, "Show all threads (default: the main thread of each rank)", 0 },
	{ "no-native", OPTION_NO_NATIVE, NULL, 0, "Hide native frames", 0 },
	{ "all-frames", OPTION_WHOLE, NULL, 0, "Show frames of the interpreter's start, and each frame of a recursion",
	  0 },
	{ "mode", OPTION_MODE, "wall", 0, "Show threads whether they run or wait (the only mode)", 0 },
	CLUSTER_OUTPUT_ROWS,
	{ "from", OPTION_FROM, "FILE", 0, "Show an earlier output of --format json instead of processes (repeatable)",
	  0 },
	{ 0 },
};

static void finish_parsing(struct argp_state *state, struct options *options)
{
	if (options->from.n > 0 && (options->cluster.hosts.n > 0 || options->cluster.selection.n_pids > 0 ||
				    options->cluster.selection.launcher > 0 || options->cluster.selection.pattern))
		argp_error(state, "--from shows what was read before: it takes no processes, and no hosts");
	options->tree.job = options->cluster.selection.job;
	cluster_output_end(&options->output);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	static const char *const modes[] = { "wall" };
	struct options *options = state->input;

	switch (key) {
	case OPTION_THREADS:
		options->tree.all_threads = true;
		return 0;
	case OPTION_NO_NATIVE:
		options->tree.no_native = true;
		return 0;
	case OPTION_WHOLE:
		options->tree.whole = true;
		return 0;
	case OPTION_MODE:
		(void)cli_parse_word(state, argument, "--mode", modes, N_ELEMENTS(modes));
		return 0;
	case OPTION_FROM:
		cli_parse_name(state, argument, &options->from);
		options->cluster.is_from_files = true;
		return 0;
	case ARGP_KEY_END:
		finish_parsing(state, options);
		return cluster_options_parse(key, argument, state, &options->cluster);
	case CLUSTER_OPTION_FORMAT:
	case 'j':
	case 'o':
		return cluster_output_parse(key, argument, state, &options->output);
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PATTERN]",
	.doc = "Print where all ranks of a job are: one tree of Python and native frames with the ranks of each branch, "
	       "outliers first. The processes need no preparation; probing stops each thread for about a millisecond. "
	       "PATTERN is a part of the command line.\v"
	       "Examples:\n"
	       "  probing cluster backtrace\n"
	       "  probing cluster backtrace train.py --threads --no-native\n"
	       "  probing cluster backtrace --launcher 4242\n"
	       "  probing cluster backtrace --hosts node[01-64] --format html -o hang.html\n"
	       "  probing cluster backtrace --hosts \"$SLURM_JOB_NODELIST\"\n"
	       "  probing cluster backtrace --hosts pod-0,pod-1 --ssh 'kubectl exec %h --'\n"
	       "\n"
	       "A rank that is missing, refused or too slow, and a host that does not answer, has a line with the reason.",
};

static const struct options *of(const struct cluster_options *cluster)
{
	return (const struct options *)cluster; /* its first member */
}

/* ---- Earlier output ---- */

static int read_files(const struct options *options, struct cluster *cluster)
{
	for (size_t i = 0; i < options->from.n; i++) {
		CLEANUP(freep) char *text = NULL;
		size_t n_bytes;
		int r = read_file(options->from.words[i], CLUSTER_MAX_BYTES, &text, &n_bytes);

		if (r < 0)
			return cli_fail(cli_status(r), "%s cannot be read: %s", options->from.words[i], strerror(-r));
		r = cluster_read(cluster, text, n_bytes, NULL);
		if (r < 0)
			return cli_fail(r == -ENOMEM ? EXIT_FAILED : EXIT_BAD_DATA, "%s: %s", options->from.words[i],
					r == -ENOMEM ? "not enough memory"
					: r == -EPROTONOSUPPORT
						? "a document of another version of probing"
						: "no document of probing cluster backtrace --format json");
	}
	return EXIT_OK;
}

/* ---- Reading ---- */

static int take_rank(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	return cluster_read_backtrace(cluster, rank, command->output ? command->output : "", command->output_bytes);
}

static int read_here(const struct cluster_options *asked, struct cluster *cluster)
{
	const struct options *options = of(asked);
	const char *words[MAX_ARGUMENTS] = { "backtrace", "%p", "--json" };
	size_t n = 3;
	int r;

	if (options->from.n > 0)
		return read_files(options, cluster);
	if (!options->tree.all_threads)
		words[n++] = "%p";
	if (options->tree.no_native)
		words[n++] = "--no-native";
	if (options->tree.whole)
		words[n++] = "--interpreter-frames";
	r = gather_ranks(&options->cluster, words, take_rank, cluster);
	return r < 0 ? r : gather_collectives(&options->cluster, cluster);
}

static int read_hosts(const struct cluster_options *asked, struct cluster *cluster)
{
	const struct options *options = of(asked);
	const char *words[MAX_ARGUMENTS] = { "backtrace", "--format=json" };
	size_t n = 2;

	if (options->tree.all_threads)
		words[n++] = "--threads";
	if (options->tree.no_native)
		words[n++] = "--no-native";
	if (options->tree.whole)
		words[n++] = "--all-frames";
	return gather_hosts(&options->cluster, words, cluster);
}

/* ---- Output ---- */

struct result {
	const struct options *options;
	const struct cluster *cluster;
	bool expects_all;
};

static int put_picture(const struct cluster_tree *tree, const struct exporter *exporter, FILE *out)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct export_options options = { .merge_processes = true,
					  .lines = true,
					  .title = "probing cluster backtrace" };
	int r = cluster_profile(tree, &profile);

	return r < 0 ? r : exporter->write(profile, &options, out);
}

static int put_merged(const struct result *result, FILE *out)
{
	struct cluster_tree tree;
	int r = cluster_merge(result->cluster, &result->options->tree, &tree);

	if (r < 0)
		return r;
	if (result->options->output.format == CLUSTER_JSON)
		r = cluster_write(result->cluster, cli_version, &tree, out);
	else
		r = put_picture(&tree, cluster_output_exporter(&result->options->output), out);
	cluster_tree_done(&tree);
	return r;
}

static int put(const void *data, FILE *out)
{
	const struct result *result = data;
	const struct options *options = result->options;
	bool colour = strcmp(options->output.path, "-") == 0 && cli_colour(STDOUT_FILENO);

	if (options->output.format == CLUSTER_TEXT)
		return cluster_print(result->cluster, &options->tree, colour, result->expects_all, out);
	return put_merged(result, out);
}

static int fail(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "printing failed: %s", strerror(-error));
}

static int show(const struct cluster_options *asked, struct cluster *cluster)
{
	const struct options *options = of(asked);
	struct result result = { options, cluster, options->cluster.selection.n_pids == 0 };
	int status;

	status = output_write(options->output.path, 0, put, fail, &result);
	return status != EXIT_OK ? status : gather_status(cluster);
}

static int check_format(struct cluster_options *asked)
{
	return cluster_output_check(&of(asked)->output);
}

static const struct cluster_question question = {
	.argp = &argp, .check = check_format, .here = read_here, .hosts = read_hosts, .show = show
};

static int run_cluster_backtrace(int argc, char **argv)
{
	struct options options = { .output = { CLUSTER_BY_NAME, "-" } };
	int status;

	cluster_options_init(&options.cluster);
	status = cluster_run(&question, &options.cluster, argc, argv);
	glob_list_done(&options.from);
	return status;
}

const struct verb cluster_verb_backtrace = {
	.name = "backtrace",
	.aliases = "bt dump",
	.summary = "print the stacks of all ranks as one tree, outliers first",
	.argp = &argp,
	.pages = true,
	.run = run_cluster_backtrace,
};
