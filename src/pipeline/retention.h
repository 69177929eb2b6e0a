/* SPDX-License-Identifier: MIT */
/* retention.h - keeps a recording within its limits, in the writing thread. Private. */
#ifndef PROBING_PIPELINE_RETENTION_H
#define PROBING_PIPELINE_RETENTION_H

#include "src/pipeline/symbol_writer.h"
#include "src/store/store.h"

struct retention {
	struct store_limits limits;
	/* The last stack and frame of former trees; 0: there is only one. */
	int64_t old_stacks, old_frames;
	int64_t since_renewal, since_sweep; /* samples that went since then */
	uint64_t renewed_ns;                /* CLOCK_MONOTONIC, when a new tree was last asked for */
	int64_t left_bytes, growth_bytes;   /* used after the last time; what batches add */
	size_t n_rows;                      /* written since the last time */
	uint64_t looked_ns;                 /* CLOCK_MONOTONIC, that was then */
	uint64_t n_dropped;                 /* samples, all in all */
	bool wants_renewal;
};

/* Prepare the file. Nothing happens later where there are no limits. */
int retention_init(struct retention *trim, struct store *store, const struct store_limits *limits);

/*
 * retention_after - let the oldest go, as far as limits ask for it. In transactions of its own.
 * @n_rows: that have been written. Few do not matter: they wait for more, or for some seconds to pass.
 * @now_ns: CLOCK_REALTIME.
 * Afterwards wants_renewal says whether a new tree of stacks should be begun, so that what only
 * former samples used can go. Errors: what the store reports.
 */
int retention_after(struct retention *trim, struct store *store, struct symbol_writer *names, size_t n_rows,
		    uint64_t now_ns);

/* A new tree has begun; the last numbers of those before it. */
void retention_renewed(struct retention *trim, int64_t last_stack, int64_t last_frame);

#endif
