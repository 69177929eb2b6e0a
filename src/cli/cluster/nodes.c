/* SPDX-License-Identifier: MIT */
/* nodes.c - probing cluster nodes: which ranks there are, as a table. */
#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cluster/cluster.h"

struct options {
	struct cluster_options cluster;
	struct sql_rules rules;
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "format", 'f', "FORMAT", 0, "Print as table, box, markdown, csv, json, jsonl or rows (default: table)", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'f':
		ask_parse_format(state, argument, &options->rules);
		return 0;
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PATTERN]",
	.doc = "List the ranks of distributed jobs, on this machine or on others, with missing ranks and hosts that do "
	       "not answer. The table is cluster.nodes of probing cluster query.\v"
	       "Examples:\n"
	       "  probing cluster nodes\n"
	       "  probing cluster nodes --hosts node[01-64] -f csv\n",
};

static const struct options *of(const struct cluster_options *cluster)
{
	return (const struct options *)cluster; /* its first member */
}

/* Its main thread's state, without frames. */
static int look_at(struct cluster_rank *rank)
{
	struct proc_stat stat;

	rank->started_ns = realtime_ns();
	rank->command = proc_text(rank->pid, "cmdline", CLUSTER_MAX_TEXT);
	if (proc_stat_read(rank->pid, 0, &stat) < 0 || stat.state == 'Z')
		return cluster_fail_rank(rank, RANK_GONE, "it has just ended");
	return cluster_add_thread(rank, rank->pid, stat.state);
}

static int find_here(const struct cluster_options *options, struct cluster *cluster)
{
	int r = gather_find(options, cluster);

	for (size_t i = 0; r >= 0 && i < cluster->n_ranks; i++)
		r = look_at(&cluster->ranks[i]);
	return r;
}

static int ask_hosts(const struct cluster_options *options, struct cluster *cluster)
{
	static const char *const words[] = { "nodes", NULL };

	return gather_hosts(options, words, cluster);
}

static int show(const struct cluster_options *options, struct cluster *cluster)
{
	static const char sql[] =
		"SELECT host, addr, rank, local_rank, world_size, role_name, job, pid, status, problem, "
		"timestamp FROM cluster.nodes ORDER BY job, rank IS NULL, rank, host";

	gather_say_hidden(cluster);
	return ask(cluster, options->selection.n_pids == 0, sql, &of(options)->rules);
}

static const struct cluster_question question = {
	.argp = &argp, .has_tables = true, .here = find_here, .hosts = ask_hosts, .show = show
};

static int run_cluster_nodes(int argc, char **argv)
{
	struct options options = { 0 };

	cluster_options_init(&options.cluster);
	return cluster_run(&question, &options.cluster, argc, argv);
}

const struct verb cluster_verb_nodes = {
	.name = "nodes",
	.aliases = "ls list",
	.summary = "list the ranks, the missing ones, and silent hosts",
	.argp = &argp,
	.pages = true,
	.run = run_cluster_nodes,
};
