/* SPDX-License-Identifier: MIT */
/* record.c - probing cluster record, flamegraph: all ranks in one recording, at the same time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/cluster/hosts.h"

struct options {
	struct cluster_options cluster;
	int first;         /* index of the first word for record; 0: none */
	uint64_t start_ns; /* CLOCK_REALTIME; 0: at once */
};

enum { OPTION_START_AT = 0x200 };

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "start-at", OPTION_START_AT, "NS", OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	if (key == OPTION_START_AT) {
		options->start_ns = (uint64_t)cli_parse_number(state, argument, "--start-at", 1, 9e18);
		return 0;
	}
	if (key != ARGP_KEY_ARG)
		return cluster_options_parse(key, argument, state, &options->cluster);
	/* From "--" on, all words are record's. */
	options->first = state->next - 1;
	state->next = state->argc;
	return 0;
}

static const struct argp argp_record = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[-- RECORD-OPTION...]",
	.doc = "Record all ranks at once, into one recording whose columns rank, local_rank and host tell them apart. "
	       "Options behind -- go to probing record. With --hosts, each machine records its ranks from the same "
	       "moment on (default: 10 s). The recordings become one, cluster.db, with aligned clocks.\v"
	       "Examples:\n"
	       "  probing cluster record -- -d 10s -o ranks.db\n"
	       "  probing cluster record --job none:29500 -- --mode wall -d 10s -o ranks.html\n"
	       "  probing cluster record --hosts node[01-08] -- --mode wall -d 10s -o all.db\n"
	       "  probing report all.db --by rank\n",
};

static const struct argp argp_flamegraph = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[-- RECORD-OPTION...]",
	.doc = "Record all ranks for ten seconds, and draw one flame graph, cluster.svg: probing cluster record -- -d 10s -o "
	       "cluster.svg. Options behind -- go to probing record, and override these. With --hosts, ranks are groups of the "
	       "picture.\v"
	       "Examples:\n"
	       "  probing cluster flamegraph\n"
	       "  probing cluster flamegraph -- -o cluster.html -d 30s\n"
	       "  probing cluster flamegraph --hosts node[01-08]\n",
};

static int compare(const void *a, const void *b)
{
	const struct local_rank *left = a, *right = b;

	return left->identity.rank != right->identity.rank ? left->identity.rank < right->identity.rank ? -1 : 1
							   : left->pid - right->pid;
}

/* "812,813": NULL: no memory. Says which rank has which PID. */
static char *list_pids(const struct local_rank *ranks, size_t n)
{
	char *list = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&list, &n_bytes);

	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%d", i > 0 ? "," : "", (int)ranks[i].pid);
	if (fclose(out) != 0) {
		free(list);
		return NULL;
	}
	cli_say("probing: recording");
	for (size_t i = 0; i < n; i++)
		if (ranks[i].identity.rank >= 0)
			cli_say("%s rank %jd (pid %d)", i > 0 ? "," : "", (intmax_t)ranks[i].identity.rank,
				(int)ranks[i].pid);
		else
			cli_say("%s pid %d", i > 0 ? "," : "", (int)ranks[i].pid);
	cli_say("\n");
	return list;
}

/* Does not return but for a failure. */
static int become_record(const char *pids, char **more, const char *const *defaults)
{
	size_t n_more = 0, n = 0;
	const char **words;

	while (more && more[n_more])
		n_more++;
	words = calloc(n_more + 12, sizeof *words);
	if (!words)
		return cli_fail(EXIT_FAILED, "not enough memory");
	words[n++] = "probing";
	words[n++] = "record";
	words[n++] = "--pid";
	words[n++] = pids;
	for (size_t i = 0; defaults && defaults[i]; i++)
		words[n++] = defaults[i];
	for (size_t i = 0; i < n_more; i++)
		words[n++] = more[i];
	execv("/proc/self/exe", (char **)words);
	free(words);
	return cli_fail(EXIT_FAILED, "probing record cannot be started: %s", strerror(errno));
}

static int run(const struct argp *argp, int argc, char **argv, const char *const *defaults)
{
	CLEANUP(freep) struct local_rank *ranks = NULL;
	CLEANUP(freep) char *pids = NULL;
	struct options options = { 0 };
	size_t n = 0, n_hidden;
	int r, status;

	cluster_options_init(&options.cluster);
	cli_parse(argp, argc, argv, ARGP_IN_ORDER, &options);
	if (options.cluster.hosts.n > 0) {
		status = cluster_record_hosts(&options.cluster, options.first > 0 ? argv + options.first : NULL,
					      defaults != NULL);
		cluster_options_done(&options.cluster);
		return status;
	}
	r = ranks_find(&options.cluster.selection, &ranks, &n, &n_hidden);
	if (r < 0) {
		status = cli_fail(cli_status(r), "the ranks cannot be listed: %s", strerror(-r));
	} else if (n == 0) {
		status = cluster_fail_empty(&options.cluster);
	} else {
		qsort(ranks, n, sizeof *ranks, compare);
		pids = list_pids(ranks, n);
		if (!pids)
			status = cli_fail(EXIT_FAILED, "not enough memory");
		else if (options.cluster.is_local)
			status = cluster_record_for_another(pids, options.first > 0 ? argv + options.first : NULL,
							    options.start_ns);
		else
			status = become_record(pids, options.first > 0 ? argv + options.first : NULL, defaults);
	}
	cluster_options_done(&options.cluster);
	return status;
}

static int run_cluster_record(int argc, char **argv)
{
	return run(&argp_record, argc, argv, NULL);
}

static int run_cluster_flamegraph(int argc, char **argv)
{
	static const char *const defaults[] = { "-d", "10s", "-o", "cluster.svg", NULL };

	return run(&argp_flamegraph, argc, argv, defaults);
}

const struct verb cluster_verb_record = {
	.name = "record",
	.summary = "record all ranks at once",
	.argp = &argp_record,
	.run = run_cluster_record,
};

const struct verb cluster_verb_flamegraph = {
	.name = "flamegraph",
	.aliases = "flame fg",
	.summary = "draw a flame graph of all ranks",
	.argp = &argp_flamegraph,
	.run = run_cluster_flamegraph,
};
