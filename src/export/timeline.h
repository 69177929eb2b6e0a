/* SPDX-License-Identifier: MIT */
/* timeline.h - samples by thread, in the order of time, each with its node in one call tree: for formats
 * with a time axis.
 */
#ifndef PROBING_EXPORT_TIMELINE_H
#define PROBING_EXPORT_TIMELINE_H

#include "src/export/fold.h"

struct timeline_thread {
	const struct profile_thread *thread;
	size_t first, n; /* in order */
};

struct timeline {
	struct call_tree *tree;
	uint32_t *nodes; /* of each stack, see fold_stacks() */
	const struct profile_sample *samples;
	uint32_t *order;                 /* indices of samples, by thread, then by time */
	struct timeline_thread *threads; /* those with samples, by pid and tid */
	size_t n_threads;
	bool has_weights;            /* otherwise weights are numbers of samples */
	bool has_times;              /* otherwise samples are sums, in the order of the recording's stacks */
	struct profile_sample *made; /* then they are these */
	struct profile_thread *made_threads;
};

/*
 * timeline_new - fold and sort a profile, which must outlive @ret.
 * Errors: -ENOMEM; -EOVERFLOW.
 */
int timeline_new(const struct profile *profile, const struct export_options *options, struct timeline **ret);
void timeline_free(struct timeline *timeline);
void timeline_freep(struct timeline **timeline);

/* A thread's i-th sample, and the node where its stack ends; 0: nowhere. */
static inline const struct profile_sample *timeline_sample(const struct timeline *timeline,
							   const struct timeline_thread *thread, size_t i)
{
	return &timeline->samples[timeline->order[thread->first + i]];
}

static inline uint32_t timeline_node(const struct timeline *timeline, const struct profile_sample *sample)
{
	return timeline->nodes[sample->stack + 1];
}

/* Weight of a sample in the unit of the timeline. */
static inline uint64_t timeline_weight(const struct timeline *timeline, const struct profile_sample *sample)
{
	return timeline->has_weights || !timeline->has_times ? sample->weight : 1;
}

/* Whether a sample was taken while its thread had a processor, or else waits. */
static inline bool timeline_is_running(const struct profile_sample *sample)
{
	return sample->state == STATE_NONE || sample->state == STATE_RUNNING;
}

/* The recording's start in CLOCK_REALTIME; the first sample's time where it does not say. There are samples. */
uint64_t timeline_origin(const struct profile *profile);

/* timeline_path - labels from the outermost one to a node. @to: tree->nodes[node].depth of them. */
void timeline_path(const struct timeline *timeline, uint32_t node, uint32_t *to);

/* The depth of the deepest node. */
uint32_t timeline_depth(const struct timeline *timeline);

#endif
