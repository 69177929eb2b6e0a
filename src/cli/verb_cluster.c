/* SPDX-License-Identifier: MIT */
/* verb_cluster.c - all ranks of a distributed job: selects one of the cluster's own verbs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cluster.h"

static const struct verb *const cluster_verbs[] = { &cluster_verb_backtrace };

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
		argp_error(state, "which verb? probing cluster --help lists them");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The list of verbs stands in the help, below the summary. */
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
	for (size_t i = 0; i < N_ELEMENTS(cluster_verbs); i++)
		fprintf(out, "  %-12s %s\n", cluster_verbs[i]->name, cluster_verbs[i]->summary);
	fprintf(out, "\n%s", text);
	if (fclose(out) == 0)
		return list;
	free(list);
	return NULL;
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "VERB ...",
	.doc = "Look at all ranks of a distributed job at once, on this machine or on many by ssh. Ranks are found by the "
	       "variables that torchrun, Slurm, MPI and Kubernetes set.\v"
	       "Examples:\n"
	       "  probing cluster backtrace\n"
	       "  probing cluster backtrace --hosts node[01-64]\n"
	       "\n"
	       "probing cluster VERB --help explains a verb.",
	.help_filter = filter_help,
};

static const struct verb *find(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(cluster_verbs); i++) {
		const char *aliases = cluster_verbs[i]->aliases ? cluster_verbs[i]->aliases : "";

		if (strcmp(cluster_verbs[i]->name, name) == 0)
			return cluster_verbs[i];
		for (size_t n = strlen(name); n > 0 && *aliases; aliases += strcspn(aliases, " ")) {
			aliases += strspn(aliases, " ");
			if (strcspn(aliases, " ") == n && strncmp(aliases, name, n) == 0)
				return cluster_verbs[i];
		}
	}
	return NULL;
}

static int run_cluster(int argc, char **argv)
{
	struct options options = { 0 };
	const struct verb *verb;
	char name[64];

	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	verb = find(argv[options.first]);
	if (!verb)
		return cli_fail(EXIT_USAGE, "there is no verb %s of cluster; see probing cluster --help",
				argv[options.first]);
	snprintf(name, sizeof name, "probing cluster %s", verb->name);
	argv[options.first] = name;
	return verb->run(argc - options.first, argv + options.first);
}

const struct verb verb_cluster = {
	.name = "cluster",
	.summary = "look at all ranks of a distributed job",
	.argp = &argp,
	.run = run_cluster,
};
