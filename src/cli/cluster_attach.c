/* SPDX-License-Identifier: MIT */
/* cluster_attach.c - probing cluster attach: the agent, and probes, in all ranks at once. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/cli/cluster.h"
#include "src/cli/cluster_ask.h"
#include "src/cli/cluster_gather.h"

enum { OPTION_CONFIG = 0x200, MAX_WORDS = 8 };

struct options {
	struct cluster_options cluster;
	char path[PATH_MAX];
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "config", OPTION_CONFIG, "FILE", 0,
	  "Arm the probes of this file, on each host of that path (default: the agent alone)", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_CONFIG:
		options->cluster.config = argument;
		return 0;
	case ARGP_KEY_END:
		if (options->cluster.is_local)
			cluster_decode(options->cluster.config);
		return cluster_options_parse(key, argument, state, &options->cluster);
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PATTERN]",
	.doc = "Load the agent into all ranks, as probing inject does it, or arm probes in all of them, as probing attach does "
	       "it.\v"
	       "Examples:\n"
	       "  probing cluster attach\n"
	       "  probing cluster attach --config probes.yaml --hosts node[01-64]\n"
	       "  probing cluster query 'SELECT rank, func, calls FROM python.function_time'\n",
};

/* What the verb printed, in its one line. */
static int take_line(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	const char *text = command->output ? command->output : "";

	(void)cluster;
	free(rank->note);
	rank->note = strndup(text, strcspn(text, "\n"));
	return rank->note ? 0 : -ENOMEM;
}

static int attach_all(const struct options *options, struct cluster *cluster)
{
	static const char *const asked[] = { "attach", NULL };
	const char *config = options->cluster.config;
	const char *words[MAX_WORDS] = { config ? "attach" : "inject", "%p" };

	if (config) {
		words[2] = "--config";
		words[3] = options->path;
	}
	return options->cluster.hosts.n > 0 ? gather_hosts(&options->cluster, asked, cluster)
					    : gather_ranks(&options->cluster, words, take_line, cluster);
}

/* "rank 3 on node07: the agent is in process 812": to stdout, a failure to stderr. */
static int say(const struct cluster *cluster, const struct cluster_rank *rank)
{
	const char *host = cluster_host_label(&cluster->hosts[rank->host]), *said = rank->note ? rank->note : "done";
	CLEANUP(freep) char *line = NULL;
	char name[32];

	if (rank->status != RANK_READ)
		said = rank->problem ? rank->problem : "it does not say why";
	snprintf(name, sizeof name, rank->identity.rank >= 0 ? "rank %jd" : "pid %jd",
		 (intmax_t)(rank->identity.rank >= 0 ? rank->identity.rank : rank->pid));
	if (asprintf(&line, "%s on %s: %s", name, host, said) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	if (rank->status != RANK_READ) {
		cli_say("probing: %s\n", line);
		return 0;
	}
	text_put_spelled(stdout, line, strlen(line));
	putchar('\n');
	return 0;
}

/* One that failed makes the status that of a failure: a job with probes in some of its ranks misleads. */
static int show(const struct options *options, struct cluster *cluster)
{
	size_t n_failed = 0;

	if (options->cluster.is_local)
		return ask_write_document(cluster);
	if (cluster->n_ranks == 0 && options->cluster.hosts.n == 0)
		return cluster_fail_empty(&options->cluster);
	gather_say_hidden(cluster);
	for (size_t i = 0; i < cluster->n_hosts; i++) {
		if (!cluster->hosts[i].problem)
			continue;
		cli_say("probing: host %s: %s\n", cluster_host_label(&cluster->hosts[i]), cluster->hosts[i].problem);
		n_failed++;
	}
	for (size_t i = 0; i < cluster->n_ranks; i++) {
		if (say(cluster, &cluster->ranks[i]) < 0)
			return cli_fail(EXIT_FAILED, "not enough memory");
		n_failed += cluster->ranks[i].status != RANK_READ;
	}
	if (n_failed > 0)
		return cli_fail(EXIT_FAILED, "%zu of the ranks and hosts failed, for the reasons above", n_failed);
	return EXIT_OK;
}

/* The path of a file that a process of its own reads, wherever it starts. */
static int find_config(struct options *options)
{
	if (!options->cluster.config || options->cluster.hosts.n > 0 ||
	    realpath(options->cluster.config, options->path))
		return EXIT_OK;
	return cli_fail(cli_status(-errno), "%s cannot be read: %s", options->cluster.config, strerror(errno));
}

static int run_cluster_attach(int argc, char **argv)
{
	struct options options = { 0 };
	struct cluster cluster = { 0 };
	int status, r;

	cluster_options_init(&options.cluster);
	cli_parse(&argp, argc, argv, 0, &options);
	status = find_config(&options);
	if (status == EXIT_OK) {
		r = attach_all(&options, &cluster);
		cluster_sort(&cluster);
		status = r < 0 ? cli_fail(cli_status(r), "the ranks cannot be reached: %s", strerror(-r))
			       : show(&options, &cluster);
	}
	cluster_done(&cluster);
	cluster_options_done(&options.cluster);
	return status;
}

const struct verb cluster_verb_attach = {
	.name = "attach",
	.aliases = "inject",
	.summary = "load the agent, or arm probes, in all ranks",
	.argp = &argp,
	.run = run_cluster_attach,
};
