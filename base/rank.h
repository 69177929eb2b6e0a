/* SPDX-License-Identifier: MIT */
/* rank.h - who a process is in a distributed job, by the variables that launchers set. */
#ifndef PROBING_BASE_RANK_H
#define PROBING_BASE_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum {
	RANK_MAX_NUMBER = 1 << 24,            /* of a rank; larger ones are unknown */
	RANK_MAX_ENVIRONMENT_BYTES = 1 << 20, /* of a process; what follows is not read */
};

/* Where a rank's number comes from: later ones are more precise. */
enum rank_source {
	RANK_UNKNOWN,
	RANK_OF_INDEX,    /* JOB_COMPLETION_INDEX of Kubernetes: a number of a pod */
	RANK_OF_LAUNCHER, /* srun, mpirun: SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK */
	RANK_OF_JOB,      /* RANK */
	RANK_OF_WORKER,   /* RANK and LOCAL_RANK, as torchrun sets them for each worker */
};

struct rank_identity {
	enum rank_source source;
	int64_t rank, local_rank, world_size; /* -1: unknown */
	char job[256];                        /* what all ranks of a job have in common; "" unknown */
	char role[64];                        /* ROLE_NAME of torchrun; "" none */
};

/*
 * rank_identify - read the rank from a process' environment, as /proc/PID/environ has it at its start.
 * @environ: n_bytes, variables that end with NUL; any bytes.
 * Returns whether there is a rank; *ret is always set.
 * Source: torch.distributed.run, "Environment Variables" (PyTorch 2.5); srun(1); mpirun(1); Kubernetes, Indexed Job.
 */
bool rank_identify(const char *environ, size_t n_bytes, struct rank_identity *ret);

/*
 * rank_of_process - the same, of a process' environment in /proc.
 * Returns 1 it has a rank; 0 it has none; -ENOMEM; -EACCES and -ESRCH as proc_read() has them: *ret has none then, either.
 */
int rank_of_process(pid_t pid, struct rank_identity *ret);

/* rank_put_ranges - print numbers as "0-6,8-511". Sorts them, and moves duplicates behind. Returns how many differ. */
size_t rank_put_ranges(int64_t *numbers, size_t n, FILE *out);

#endif
