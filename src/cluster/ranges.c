/* SPDX-License-Identifier: MIT */
/* ranges.c - numbers of ranks as ranges, "0-6,8-511". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/private.h"

/* "rank 3", "ranks 0-2"; @numbers may be empty. */
static int put_named(int64_t *numbers, size_t n, const char *what, FILE *out)
{
	CLEANUP(freep) char *ranges = NULL;
	size_t n_bytes, n_different;
	FILE *to;

	if (n == 0)
		return 0;
	to = open_memstream(&ranges, &n_bytes);
	if (!to)
		return -ENOMEM;
	n_different = rank_put_ranges(numbers, n, to);
	if (fclose(to) != 0)
		return -ENOMEM;
	fprintf(out, "%s%s %s", what, n_different > 1 ? "s" : "", ranges);
	return 0;
}

char *cluster_ranks_text(const struct cluster *cluster, const uint32_t *indices, size_t n)
{
	CLEANUP(freep) int64_t *ranks = calloc(n + 1, sizeof *ranks), *pids = calloc(n + 1, sizeof *pids);
	size_t n_ranks = 0, n_pids = 0, n_bytes;
	char *text = NULL;
	FILE *out;
	int r;

	if (!ranks || !pids)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct cluster_rank *rank = &cluster->ranks[indices[i]];

		if (rank->identity.rank >= 0)
			ranks[n_ranks++] = rank->identity.rank;
		else
			pids[n_pids++] = rank->pid;
	}
	out = open_memstream(&text, &n_bytes);
	if (!out)
		return NULL;
	r = put_named(ranks, n_ranks, "rank", out);
	if (r >= 0 && n_ranks > 0 && n_pids > 0)
		fputs(", ", out);
	if (r >= 0)
		r = put_named(pids, n_pids, "pid", out);
	if (fclose(out) == 0 && r >= 0)
		return text;
	free(text);
	return NULL;
}

static char *text_of(const struct cluster_tree *tree, const uint32_t *stacks, size_t n)
{
	CLEANUP(freep) uint32_t *ranks = calloc(n + 1, sizeof *ranks);

	if (!ranks)
		return NULL;
	for (size_t i = 0; i < n; i++)
		ranks[i] = tree->stacks[stacks[i]].rank;
	return cluster_ranks_text(tree->cluster, ranks, n);
}

char *tree_node_ranks(const struct cluster_tree *tree, uint32_t node)
{
	return text_of(tree, tree->order + tree->nodes[node].first, tree->nodes[node].n_stacks);
}

char *tree_class_ranks(const struct cluster_tree *tree, uint32_t class_index)
{
	const struct tree_class *class = &tree->classes[class_index];

	return text_of(tree, tree->by_class + class->start, class->n_stacks);
}

/* The world size that a job's ranks agree on: the largest; 0: none says. */
static int64_t world_size_of(const struct cluster *cluster, const char *job)
{
	int64_t size = 0;

	for (size_t i = 0; i < cluster->n_ranks; i++)
		if (strcmp(cluster->ranks[i].identity.job, job) == 0)
			size = MAX(size, cluster->ranks[i].identity.world_size);
	return MIN(size, CLUSTER_MAX_RANKS);
}

int cluster_each_missing(const struct cluster *cluster, const char *job,
			 int (*take)(void *data, const char *job, int64_t rank, int64_t world_size), void *data)
{
	int64_t size = world_size_of(cluster, job);
	CLEANUP(freep) bool *is_there = calloc((size_t)size + 1, sizeof *is_there);
	int r = 0;

	if (!is_there)
		return -ENOMEM;
	for (size_t i = 0; i < cluster->n_ranks; i++) {
		const struct rank_identity *identity = &cluster->ranks[i].identity;

		if (strcmp(identity->job, job) == 0 && identity->rank >= 0 && identity->rank < size)
			is_there[identity->rank] = true;
	}
	for (int64_t i = 0; r >= 0 && i < size; i++)
		if (!is_there[i])
			r = take(data, job, i, size);
	return r;
}

struct missing {
	int64_t *ranks;
	size_t n, allocated;
};

static int add_missing(void *data, const char *job, int64_t rank, int64_t world_size)
{
	struct missing *missing = data;
	int r = grow(&missing->ranks, missing->n, &missing->allocated, sizeof *missing->ranks);

	(void)job;
	(void)world_size;
	if (r >= 0)
		missing->ranks[missing->n++] = rank;
	return r;
}

static int put_missing(const struct missing *missing, char **ret)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out;
	int r;

	*ret = NULL;
	if (missing->n == 0)
		return 0;
	out = open_memstream(&text, &n_bytes);
	if (!out)
		return -ENOMEM;
	r = put_named(missing->ranks, missing->n, "rank", out);
	if (fclose(out) != 0 || r < 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

int cluster_missing(const struct cluster *cluster, const char *job, char **ret, uint64_t *ret_n)
{
	struct missing missing = { 0 };
	int r = cluster_each_missing(cluster, job, add_missing, &missing);

	if (r >= 0)
		r = put_missing(&missing, ret);
	*ret_n = missing.n;
	free(missing.ranks);
	return r;
}
