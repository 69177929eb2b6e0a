/* SPDX-License-Identifier: MIT */
/* verb_cluster.c - all ranks of a distributed job: selects one of the cluster's own verbs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/endpoint.h"
#include "src/cluster/cluster.h"
#include "src/columns/columns.h"

const struct verb *const cluster_verbs[] = { &cluster_verb_backtrace,
					     &cluster_verb_nodes,
					     &cluster_verb_query,
					     &cluster_verb_report,
					     &cluster_verb_attach,
					     &cluster_verb_record,
					     &cluster_verb_flamegraph,
					     &cluster_verb_rows,
					     &cluster_verb_clock,
					     &cluster_verb_fetch,
					     NULL };

struct options {
	int first; /* index of the word that names the verb; 0: none */
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_ARG:
		options->first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "verb missing: probing cluster --help lists them");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The help lists the verbs below the summary. */
static char *filter_help(int key, const char *text, void *input)
{
	char *list = NULL;
	size_t n_bytes;
	FILE *out;

	if (key != ARGP_KEY_HELP_POST_DOC)
		return cli_help_filter(key, text, input);
	out = open_memstream(&list, &n_bytes);
	if (!out)
		return NULL;
	fputs("Verbs:\n", out);
	for (size_t i = 0; cluster_verbs[i]; i++)
		if (cluster_verbs[i]->summary) {
			label_put(out, VERB_COLUMNS, cluster_verbs[i]->name);
			fprintf(out, "%s\n", cluster_verbs[i]->summary);
		}
	fprintf(out, "\n%s", text);
	if (fclose(out) == 0)
		return list;
	free(list);
	return NULL;
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "CLUSTER-VERB ...",
	.doc = "Inspect all ranks of a distributed job at once, on this machine or on many, by ssh or HTTPS. probing finds ranks by the "
	       "variables that torchrun, Slurm, MPI and Kubernetes set.\v"
	       "Examples:\n"
	       "  probing cluster backtrace\n"
	       "  probing cluster backtrace --hosts node[01-64]\n"
	       "  probing cluster nodes\n"
	       "  probing cluster query 'SELECT rank, rss_mb FROM memory_usage'\n"
	       "\n"
	       "probing cluster CLUSTER-VERB --help explains one of them.",
	.help_filter = filter_help,
};

/* "probing 4242 cluster nodes": the option for the job of a rank, or for the descendants of a launcher. NULL: no memory. */
static char *option_of_target(pid_t pid)
{
	struct rank_identity identity;
	char *option;
	int n;

	if (rank_of_process(pid, &identity) > 0 && identity.job[0])
		n = asprintf(&option, "--job=%s", identity.job);
	else
		n = asprintf(&option, "--launcher=%d", (int)pid);
	return n < 0 ? NULL : option;
}

static int run_with_target(const struct verb *verb, pid_t target, int argc, char **argv)
{
	CLEANUP(freep) char *option = option_of_target(target);
	CLEANUP(freep) char **words = calloc((size_t)argc + 2, sizeof *words);

	if (!option || !words)
		return cli_fail(EXIT_FAILED, "not enough memory");
	words[0] = argv[0];
	words[1] = option;
	for (int i = 1; i < argc; i++)
		words[i + 1] = argv[i];
	return verb->run(argc + 1, words);
}

static int run_cluster(int argc, char **argv)
{
	struct options options = { 0 };
	const struct verb *verb;
	pid_t target = 0;
	char name[64];

	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	if (endpoint_is_process(argv[options.first]) && options.first + 1 < argc)
		target = (pid_t)strtol(argv[options.first++], NULL, 10);
	verb = verb_find_in(cluster_verbs, argv[options.first]);
	if (!verb)
		return cli_fail(EXIT_USAGE, "there is no verb %s of cluster; see probing cluster --help",
				argv[options.first]);
	snprintf(name, sizeof name, "probing cluster %s", verb->name);
	argc -= options.first;
	argv += options.first;
	argv[0] = name;
	return target > 0 ? run_with_target(verb, target, argc, argv) : verb->run(argc, argv);
}

const struct verb verb_cluster = {
	.name = "cluster",
	.summary = "inspect all ranks of a distributed job",
	.argp = &argp,
	.below = cluster_verbs,
	.run = run_cluster,
};
