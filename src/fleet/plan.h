/* SPDX-License-Identifier: MIT */
/* plan.h - what was sent of a recording, and what is about to be. Private.
 *
 * A shipment is a fixed range of a recording's samples. It is written down here, and on the disk, before it is sent the
 * first time: a shipper that is killed continues with the same ranges, and so the same numbers of blocks.
 *
 * The plan is a small SQLite file in the user's state folder (~/.local/state/probing/ship/RUN.db), not beside the
 * recording: a recording may be in a folder that its shipper may not write to. It may be moved or renamed before it is
 * sent completely; its run finds the plan again. And probing's readers never write into a recording or its folder.
 */
#ifndef PROBING_FLEET_PLAN_H
#define PROBING_FLEET_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct plan;

struct shipment {
	uint32_t block;      /* its number in the run, from 1 */
	int64_t first, last; /* numbers of samples, both included */
	uint32_t day;        /* since 1970, UTC: only samples of that day */
	uint32_t n_samples;
	bool is_raw, is_done;
};

/*
 * plan_open - open the plan of a run, or begin one. One process at a time has it open.
 * @folder: NULL: the user's state folder.
 * @target: of the shipments, "HOST:PORT/DATABASE". Others in the same file are left alone.
 * Errors: -EBUSY another shipper has it; -ENOENT no state folder is known (neither HOME nor XDG_STATE_HOME);
 *         -ENOSPC, -EIO and others of SQLite; those of mkdir(2).
 */
int plan_open(const char *folder, uint64_t run, const char *target, struct plan **ret);

/* plan_next - the first shipment that is not done, in order. Returns 1 if there is one, 0, or an error. */
int plan_next(struct plan *plan, struct shipment *ret);

/* plan_last - the largest number of a block, and of a sample; both 0: nothing was planned. */
int plan_last(struct plan *plan, uint32_t *ret_block, int64_t *ret_sample);

/* plan_put - write shipments down, all or none. On the disk afterwards. */
int plan_put(struct plan *plan, const struct shipment *shipments, unsigned n);

/*
 * plan_parse - a shipment that has arrived, as a server prints its row: block, first, last, day, samples and raw, with tabs
 * between them. -EPROTO: it is none.
 */
int plan_parse(const char *line, struct shipment *ret);

/* plan_finish - it has arrived completely. */
int plan_finish(struct plan *plan, uint32_t block);

/*
 * A receiver that refuses a shipment may refuse it for its samples, or refuse everything. So a refused shipment is one of a row
 * until the receiver has taken another one, also over several processes: plan_count() counts the row.
 *
 * plan_refuse - the receiver has refused it: plan_next() leaves it out, and it is in the row.
 * plan_set_aside - the receiver has taken a part of it: plan_next() leaves it out, and it is in no row.
 * plan_reopen - the receiver refuses everything: plan_next() returns those of the row again. They stay in the row.
 * plan_end_row - the receiver takes shipments: those of the row that plan_next() leaves out were refused for their samples.
 * plan_retry - plan_next() leaves none out, and there is no row.
 */
int plan_refuse(struct plan *plan, uint32_t block);
int plan_set_aside(struct plan *plan, uint32_t block);
int plan_reopen(struct plan *plan);
int plan_end_row(struct plan *plan);
int plan_retry(struct plan *plan);

/*
 * plan_split - in the place of a shipment there are two: its samples up to a number, and a new one of those behind it. On
 * the disk afterwards.
 * @n_first: samples of the former. -EINVAL: one of them would have none.
 */
int plan_split(struct plan *plan, const struct shipment *whole, int64_t last_of_first, uint32_t n_first);

/* plan_each - pass all shipments, in order. A negative result of take ends it and is returned. */
int plan_each(struct plan *plan, int (*take)(void *data, const struct shipment *shipment), void *data);

/*
 * plan_job - the job of all shipments to that target: the first one that was given. Rows are found again by it.
 * @given: for a plan without one, which keeps it; NULL: "", and nothing is written.
 * @ret: owned by the caller; the text that it points to before, or NULL, is freed.
 */
int plan_job(struct plan *plan, const char *given, char **ret);

struct plan_counts {
	uint64_t n_done, n_samples; /* shipments that have arrived, and their samples */
	uint64_t n_open;            /* shipments that have not */
	uint64_t n_dropped;         /* samples that the recording had dropped before they were planned */
	uint64_t n_refused; /* samples of shipments that plan_next() leaves out; they are neither done nor open */
	uint64_t n_in_row;  /* shipments that the receiver has refused since it took one */
};
int plan_count(struct plan *plan, struct plan_counts *ret);

/* Path of the file. Borrowed. */
const char *plan_path(const struct plan *plan);

void plan_close(struct plan *plan);
DEFINE_CLEANUP(struct plan *, plan_close)

#endif
