/* SPDX-License-Identifier: MIT */
/* run.c - see cluster.h. */
#include "src/cli/cluster/cluster.h"

#include <string.h>

#include "src/cli/cli.h"

static int read_all(const struct cluster_question *question, const struct cluster_options *options,
		    struct cluster *cluster)
{
	int r = options->hosts.n > 0 ? question->hosts(options, cluster) : question->here(options, cluster);

	cluster_sort(cluster);
	return r < 0 ? cli_fail(cli_status(r), "the ranks cannot be read: %s", strerror(-r)) : r;
}

static int show(const struct cluster_question *question, const struct cluster_options *options, struct cluster *cluster)
{
	if (options->is_local)
		return ask_write_document(cluster);
	if (cluster->n_ranks == 0 && options->hosts.n == 0 && !options->is_from_files)
		return cluster_fail_empty(options);
	gather_say_versions(cluster);
	return question->show(options, cluster);
}

int cluster_run(const struct cluster_question *question, struct cluster_options *options, int argc, char **argv)
{
	struct cluster cluster = { 0 };
	int status = EXIT_OK;

	cli_parse(question->argp, argc, argv, 0, options);
	if (question->check)
		status = question->check(options);
	if (status == EXIT_OK && question->has_tables && !options->is_local)
		status = ask_open(&cluster);
	if (status == EXIT_OK)
		status = read_all(question, options, &cluster);
	if (status == EXIT_OK)
		status = show(question, options, &cluster);
	ask_close(&cluster);
	cluster_options_done(options);
	return status;
}
