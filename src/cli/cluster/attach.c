/* SPDX-License-Identifier: MIT */
/* attach.c - probing cluster attach: the agent, and probes, in all ranks at once. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/cli/cluster/cluster.h"

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
	.doc = "Load the agent into all ranks, as probing inject does, or arm probes in all of them, as probing attach "
	       "does.\v"
	       "Examples:\n"
	       "  probing cluster attach\n"
	       "  probing cluster attach --config probes.yaml --hosts node[01-64]\n"
	       "  probing cluster query 'SELECT rank, func, calls FROM python.function_time'\n",
};

static const struct options *of(const struct cluster_options *cluster)
{
	return (const struct options *)cluster; /* its first member */
}

/* What the verb printed, in its one line. */
static int take_line(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	const char *text = command->output ? command->output : "";

	(void)cluster;
	free(rank->note);
	rank->note = strndup(text, strcspn(text, "\n"));
	return rank->note ? 0 : -ENOMEM;
}

static int attach_here(const struct cluster_options *options, struct cluster *cluster)
{
	const char *words[MAX_WORDS] = { options->config ? "attach" : "inject", "%p" };

	if (options->config) {
		words[2] = "--config";
		words[3] = of(options)->path;
	}
	return gather_ranks(options, words, take_line, cluster);
}

static int attach_hosts(const struct cluster_options *options, struct cluster *cluster)
{
	static const char *const asked[] = { "attach", NULL };

	return gather_hosts(options, asked, cluster);
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
static int show(const struct cluster_options *options, struct cluster *cluster)
{
	size_t n_failed = 0;

	(void)options;
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
static int find_config(struct cluster_options *asked)
{
	struct options *options = (struct options *)asked; /* its first member */

	if (!options->cluster.config || options->cluster.hosts.n > 0 ||
	    realpath(options->cluster.config, options->path))
		return EXIT_OK;
	return cli_fail(cli_status(-errno), "%s cannot be read: %s", options->cluster.config, strerror(errno));
}

static const struct cluster_question question = {
	.argp = &argp, .check = find_config, .here = attach_here, .hosts = attach_hosts, .show = show
};

static int run_cluster_attach(int argc, char **argv)
{
	struct options options = { 0 };

	cluster_options_init(&options.cluster);
	return cluster_run(&question, &options.cluster, argc, argv);
}

const struct verb cluster_verb_attach = {
	.name = "attach",
	.aliases = "inject",
	.summary = "load the agent, or arm probes, in all ranks",
	.argp = &argp,
	.run = run_cluster_attach,
};
