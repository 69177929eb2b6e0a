/* SPDX-License-Identifier: MIT */
/* ship.h - one recording on its way, and its shipments as blocks. Private. */
#ifndef PROBING_FLEET_SHIP_H
#define PROBING_FLEET_SHIP_H

#include "base/interner.h"
#include "src/fleet/plan.h"
#include "src/fleet/server.h"
#include "src/fleet/feed.h"

enum { SHIP_DAY_S = 86400, SHIP_ID_BYTES = 64 };

struct recording {
	struct feed feed;
	struct plan *plan;
	struct fleet_server *server; /* borrowed */
	uint64_t run;                /* that the plan is of */
	char *job;
	struct interner threads; /* rows of threads that were sent, as texts */
	double sent_ended;       /* run.ended of the row that was sent */
	bool is_run_sent;
	bool is_live, is_finished;
	bool is_first; /* the next shipment may have been sent before, by another process */
	double next_s; /* monotonic: when its samples have waited long enough */
	uint64_t n_shipments, n_samples;
	uint64_t n_waiting; /* samples that are not sent yet */
	char error[FLEET_MAX_SENTENCE];
};

/* Blocks of one shipment. Memory is used again for the next one. */
struct blocks {
	struct native samples, totals, stacks, functions;
	uint32_t *new_stacks, *new_functions; /* indices, to be marked once they have arrived */
	size_t n_new_stacks, new_stacks_room, n_new_functions, new_functions_room;
	struct interner total_keys;
	struct total_sum {
		uint32_t samples;
		uint64_t weight;
	} * sums;
	size_t n_sums, sums_room;
	struct id_map numbers; /* of samples of a thread in a millisecond */
	uint64_t *path;
	size_t n_path, path_room;
	uint64_t weight;
	uint32_t n_samples;
};

/*
 * blocks_build - the rows of a shipment, out of those that feed_load() has loaded.
 * Errors: -EBADMSG, -ENOMEM, -EINVAL.
 */
int blocks_build(struct blocks *blocks, struct recording *recording, const struct shipment *shipment, uint32_t week);
/* Their stacks and functions have arrived: they are sent again only in another week. */
void blocks_mark(struct blocks *blocks, struct recording *recording, uint32_t week);
void blocks_done(struct blocks *blocks);

/* threads_build - rows of threads that were not sent yet. run_build - the row of the run. */
int threads_build(struct native *native, struct recording *recording, enum fleet_dialect dialect);
void run_build(struct native *native, const struct recording *recording, enum fleet_dialect dialect);
void shipment_build(struct native *native, const struct recording *recording, const struct blocks *blocks,
		    const struct shipment *shipment, enum fleet_dialect dialect);

/* The day of a time, since 1970. */
static inline uint32_t day_of(uint64_t time_ns)
{
	return (uint32_t)(time_ns / 1000000000u / SHIP_DAY_S);
}

#endif
