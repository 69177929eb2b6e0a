/* SPDX-License-Identifier: MIT */
/* private.h - what the files of this folder share. */
#ifndef PROBING_CLUSTER_PRIVATE_H
#define PROBING_CLUSTER_PRIVATE_H

#include "src/cluster/cluster.h"

/* Whether a Python frame is of the interpreter's library, or of an installed package: not of the user's own code. */
bool frame_is_library(const struct cluster_frame *frame);
/* Whether a frame belongs to the start of a program: of runpy, or of multiprocessing in a child. */
bool frame_is_start(const struct cluster_frame *frame);
/* Whether it is a call of torch.distributed, horovod, mpi4py or jax's, in which ranks wait for each other. */
bool frame_is_collective(const struct cluster_frame *frame);

/* "forward (train.py:21)", "time.sleep [python3.11]"; terminal controls become spaces. */
void frame_put(FILE *out, const struct cluster_frame *frame);

/* collectives.c */
struct json;
void cluster_collectives_write(struct json *json, const struct cluster_rank *rank);
void cluster_collectives_done(struct cluster_rank *rank);

/* write.c: the member "usage" of a rank; nothing if none was measured. */
void cluster_usage_write(struct json *json, const struct rank_usage *usage);

/* steps.c */
void cluster_history_write(struct json *json, const struct cluster_rank *rank);
void cluster_history_done(struct cluster_rank *rank);
/* "step", "outside communication", "passes". */
const char *history_kind_name(enum history_kind kind);

#endif
