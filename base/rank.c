/* SPDX-License-Identifier: MIT */
/* rank.c - which rank of which job a process is, by the variables that launchers set.
 *
 * A process may have variables of several launchers: torchrun under srun has SLURM_PROCID, and its workers have that and
 * RANK. The most precise source wins, and all numbers come from it.
 */
#include "base/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"

struct environment {
	const char *bytes;
	size_t n;
};

/* A launcher's names for its numbers; NULL: it has none. */
static const struct source {
	enum rank_source source;
	const char *rank, *local_rank, *world_size;
	const char *job[2]; /* parts of the job's name */
} sources[] = {
	{ RANK_OF_WORKER, "RANK", "LOCAL_RANK", "WORLD_SIZE", { "TORCHELASTIC_RUN_ID", "MASTER_PORT" } },
	{ RANK_OF_JOB, "RANK", NULL, "WORLD_SIZE", { "TORCHELASTIC_RUN_ID", "MASTER_PORT" } },
	{ RANK_OF_LAUNCHER,
	  "OMPI_COMM_WORLD_RANK",
	  "OMPI_COMM_WORLD_LOCAL_RANK",
	  "OMPI_COMM_WORLD_SIZE",
	  { "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid" } },
	{ RANK_OF_LAUNCHER, "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", { "SLURM_JOB_ID", "SLURM_STEP_ID" } },
	{ RANK_OF_LAUNCHER, "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", { NULL, NULL } },
	{ RANK_OF_LAUNCHER, "PMIX_RANK", NULL, NULL, { "PMIX_NAMESPACE", NULL } },
	{ RANK_OF_INDEX, "JOB_COMPLETION_INDEX", NULL, NULL, { "JOB_NAME", NULL } },
};

/* The value of a variable, which ends with a NUL; NULL: there is none, or its end is cut off. */
static const char *value_of(const struct environment *environment, const char *name)
{
	size_t n_name = name ? strlen(name) : 0;
	const char *at = environment->bytes, *end = at + environment->n, *stop;

	for (; n_name > 0 && at < end; at = stop + 1) {
		stop = memchr(at, '\0', (size_t)(end - at));
		if (!stop)
			return NULL;
		if ((size_t)(stop - at) > n_name && at[n_name] == '=' && memcmp(at, name, n_name) == 0)
			return at + n_name + 1;
	}
	return NULL;
}

/* -1: there is no such variable, or it is no number from 0 on. */
static int64_t number_of(const struct environment *environment, const char *name)
{
	const char *value = value_of(environment, name);
	char *end;
	long number;

	if (!value || !value[0] || value[strspn(value, "0123456789")] != '\0')
		return -1;
	number = strtol(value, &end, 10);
	return number <= RANK_MAX_NUMBER ? number : -1;
}

static void name_job(const struct environment *environment, const struct source *source, char *to, size_t n_bytes)
{
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < N_ELEMENTS(source->job); i++) {
		const char *part = value_of(environment, source->job[i]);

		if (!part || !part[0] || used >= n_bytes)
			continue;
		used += (size_t)snprintf(to + used, n_bytes - used, "%s%s", used > 0 ? ":" : "", part);
	}
}

bool rank_identify(const char *environ, size_t n_bytes, struct rank_identity *ret)
{
	struct environment environment = { environ, n_bytes };
	const char *role;

	*ret = (struct rank_identity){ .rank = -1, .local_rank = -1, .world_size = -1 };
	for (size_t i = 0; i < N_ELEMENTS(sources); i++) {
		const struct source *source = &sources[i];
		int64_t rank = number_of(&environment, source->rank);
		int64_t local_rank = number_of(&environment, source->local_rank);

		if (rank < 0 || (source->source == RANK_OF_WORKER && local_rank < 0))
			continue;
		ret->source = source->source;
		ret->rank = rank;
		ret->local_rank = local_rank;
		ret->world_size = number_of(&environment, source->world_size);
		name_job(&environment, source, ret->job, sizeof ret->job);
		role = value_of(&environment, "ROLE_NAME");
		snprintf(ret->role, sizeof ret->role, "%s", role && source->source >= RANK_OF_JOB ? role : "");
		return true;
	}
	return false;
}

int rank_of_process(pid_t pid, struct rank_identity *ret)
{
	CLEANUP(freep) char *environment = NULL;
	size_t n_bytes = 0;
	int r = proc_read(pid, "environ", RANK_MAX_ENVIRONMENT_BYTES, &environment, &n_bytes);
	bool is_rank = rank_identify(r < 0 ? "" : environment, r < 0 ? 0 : n_bytes, ret);

	return r < 0 ? r : is_rank;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

size_t rank_put_ranges(int64_t *numbers, size_t n, FILE *out)
{
	size_t n_different = 0, last;

	qsort(numbers, n, sizeof *numbers, compare_numbers);
	for (size_t i = 0; i < n; i++)
		if (n_different == 0 || numbers[n_different - 1] != numbers[i])
			numbers[n_different++] = numbers[i];
	for (size_t i = 0; i < n_different; i = last + 1) {
		last = i;
		while (last + 1 < n_different && numbers[last + 1] == numbers[last] + 1)
			last++;
		fprintf(out, "%s%jd", i > 0 ? "," : "", (intmax_t)numbers[i]);
		if (last > i)
			fprintf(out, "%c%jd", last == i + 1 ? ',' : '-', (intmax_t)numbers[last]);
	}
	return n_different;
}
