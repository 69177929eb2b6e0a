/* SPDX-License-Identifier: MIT */
/* cluster.c - hosts, ranks and frames as they were read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/cluster.h"

const struct rank_usage rank_usage_unknown = { .seconds = 0,
					       .cpu_s = -1,
					       .queued_s = -1,
					       .throttled_s = -1,
					       .stolen_s = -1,
					       .limit_cpus = -1,
					       .memory_mb = -1,
					       .comm_s = -1,
					       .step_ms = -1,
					       .forward_ms = -1,
					       .backward_ms = -1,
					       .comm_ms = -1,
					       .data_ms = -1 };

static void thread_done(struct cluster_thread *thread)
{
	free(thread->name);
	free(thread->python_name);
	free(thread->wait);
	free(thread->frames);
}

static void rank_done(struct cluster_rank *rank)
{
	for (size_t i = 0; i < rank->n_threads; i++)
		thread_done(&rank->threads[i]);
	free(rank->threads);
	free(rank->looks);
	free(rank->problem);
	free(rank->command);
	free(rank->python);
	free(rank->note);
	free(rank->data);
	cluster_collectives_done(rank);
	cluster_history_done(rank);
}

static void host_done(struct cluster_host *host)
{
	free(host->name);
	free(host->address);
	free(host->version);
	free(host->problem);
}

void cluster_done(struct cluster *cluster)
{
	for (size_t i = 0; i < cluster->n_ranks; i++)
		rank_done(&cluster->ranks[i]);
	for (size_t i = 0; i < cluster->n_hosts; i++)
		host_done(&cluster->hosts[i]);
	for (size_t i = 0; i < cluster->n_frames; i++) {
		free((char *)cluster->frames[i].function);
		free((char *)cluster->frames[i].file);
		free((char *)cluster->frames[i].module);
	}
	free(cluster->ranks);
	free(cluster->hosts);
	free(cluster->frames);
	for (size_t i = 0; i < cluster->n_stacks; i++)
		free(cluster->stacks[i].frames);
	free(cluster->stacks);
	interner_done(&cluster->frame_keys);
	*cluster = (struct cluster){ 0 };
}

/* NULL stays NULL. */
static int copy(const char *text, char **ret)
{
	char *copied = text ? strdup(text) : NULL;

	if (text && !copied)
		return -ENOMEM;
	free(*ret);
	*ret = copied;
	return 0;
}

int cluster_add_host(struct cluster *cluster, const char *name, const char *address, const char *version,
		     struct cluster_host **ret)
{
	struct cluster_host *host;
	int r;

	if (cluster->n_hosts >= CLUSTER_MAX_HOSTS)
		return -E2BIG;
	r = grow(&cluster->hosts, cluster->n_hosts, &cluster->hosts_allocated, sizeof *cluster->hosts);
	if (r < 0)
		return r;
	host = &cluster->hosts[cluster->n_hosts++];
	*host = (struct cluster_host){ 0 };
	r = copy(name, &host->name);
	if (r >= 0)
		r = copy(address, &host->address);
	if (r >= 0)
		r = copy(version, &host->version);
	if (r < 0)
		return r;
	*ret = host;
	return 0;
}

int cluster_add_rank(struct cluster *cluster, size_t host, pid_t pid, const struct rank_identity *identity,
		     struct cluster_rank **ret)
{
	struct cluster_rank *rank;
	int r;

	if (cluster->n_ranks >= CLUSTER_MAX_RANKS)
		return -E2BIG;
	r = grow(&cluster->ranks, cluster->n_ranks, &cluster->ranks_allocated, sizeof *cluster->ranks);
	if (r < 0)
		return r;
	rank = &cluster->ranks[cluster->n_ranks++];
	*rank = (struct cluster_rank){ .host = host, .pid = pid, .identity = *identity, .usage = rank_usage_unknown };
	*ret = rank;
	return 0;
}

void cluster_cut(struct cluster *cluster, size_t n_hosts, size_t n_ranks)
{
	while (cluster->n_ranks > n_ranks)
		rank_done(&cluster->ranks[--cluster->n_ranks]);
	while (cluster->n_hosts > n_hosts)
		host_done(&cluster->hosts[--cluster->n_hosts]);
}

int cluster_add_thread(struct cluster_rank *rank, pid_t tid, char state)
{
	int r;

	if (rank->n_threads >= CLUSTER_MAX_THREADS)
		return -E2BIG;
	r = grow(&rank->threads, rank->n_threads, &rank->threads_allocated, sizeof *rank->threads);
	if (r >= 0)
		rank->threads[rank->n_threads++] = (struct cluster_thread){ .tid = tid, .state = state };
	return r;
}

int cluster_add_stack(struct cluster *cluster, const uint32_t *frames, size_t n_frames, uint32_t *ret)
{
	uint32_t *copied = calloc(n_frames + 1, sizeof *copied);
	int r = copied ? 0 : -ENOMEM;

	if (r == 0 && cluster->n_stacks >= UINT32_MAX)
		r = -EOVERFLOW;
	if (r == 0)
		r = grow(&cluster->stacks, cluster->n_stacks, &cluster->stacks_allocated, sizeof *cluster->stacks);
	if (r < 0) {
		free(copied);
		return r;
	}
	if (n_frames > 0)
		memcpy(copied, frames, n_frames * sizeof *copied);
	*ret = (uint32_t)cluster->n_stacks;
	cluster->stacks[cluster->n_stacks++] = (struct cluster_stack){ copied, n_frames };
	return 0;
}

int cluster_add_looks(struct cluster_rank *rank, uint32_t stack, uint64_t n)
{
	int r = grow(&rank->looks, rank->n_looks, &rank->looks_allocated, sizeof *rank->looks);

	if (r == 0)
		rank->looks[rank->n_looks++] = (struct cluster_look){ stack, n };
	return r;
}

int cluster_fail_rank(struct cluster_rank *rank, enum rank_status status, const char *problem)
{
	rank->status = status;
	return copy(problem, &rank->problem);
}

const char *rank_status_name(enum rank_status status)
{
	static const char *const names[] = {
		[RANK_READ] = "read",     [RANK_GONE] = "gone",     [RANK_REFUSED] = "not permitted",
		[RANK_SLOW] = "too slow", [RANK_FAILED] = "failed",
	};

	return names[status];
}

const char *cluster_host_label(const struct cluster_host *host)
{
	if (host->address)
		return host->address;
	return host->name ? host->name : "this machine";
}

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_ranks(const void *a, const void *b)
{
	const struct cluster_rank *left = a, *right = b;
	int order = strcmp(left->identity.job, right->identity.job);

	if (order == 0)
		order = compare(left->identity.rank, right->identity.rank);
	if (order == 0)
		order = compare((int64_t)left->host, (int64_t)right->host);
	return order != 0 ? order : compare(left->pid, right->pid);
}

void cluster_sort(struct cluster *cluster)
{
	if (cluster->n_ranks > 0)
		qsort(cluster->ranks, cluster->n_ranks, sizeof *cluster->ranks, compare_ranks);
}

int cluster_jobs(const struct cluster *cluster, const char *const **ret, size_t *ret_n)
{
	const char **jobs = calloc(CLUSTER_MAX_JOBS, sizeof *jobs);
	size_t n = 0;

	if (!jobs)
		return -ENOMEM;
	for (size_t i = 0; i < cluster->n_ranks && n < CLUSTER_MAX_JOBS; i++)
		if (n == 0 || strcmp(jobs[n - 1], cluster->ranks[i].identity.job) != 0)
			jobs[n++] = cluster->ranks[i].identity.job;
	*ret = (const char *const *)jobs;
	*ret_n = n;
	return 0;
}
