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
	int64_t since_renewal, since_sweep; /* samples dropped since then */
	uint64_t renewed_ns;                /* CLOCK_MONOTONIC, of the last request for a new tree */
	int64_t left_bytes, growth_bytes;   /* size after the last time; growth by batches */
	size_t n_rows;                      /* written since the last time */
	uint64_t looked_ns;                 /* CLOCK_MONOTONIC, that was then */
	uint64_t n_dropped;                 /* samples, all in all */
	bool wants_renewal;
};

/* Prepare the file. Without limits, later calls have no effect. */
int retention_init(struct retention *trim, struct store *store, const struct store_limits *limits);

/*
 * retention_after - drop the oldest samples, according to the limits. In transactions of its own.
 * @n_rows: rows written. A few rows wait for more, or for some seconds.
 * @now_ns: CLOCK_REALTIME.
 * Afterwards wants_renewal is whether the capturing thread should begin a new tree of stacks, so that rows of
 * dropped samples alone can be dropped. Errors: what the store reports.
 */
int retention_after(struct retention *trim, struct store *store, struct symbol_writer *names, size_t n_rows,
		    uint64_t now_ns);

/* A new tree has begun; the last numbers of those before it. */
void retention_renewed(struct retention *trim, int64_t last_stack, int64_t last_frame);

#endif
