/* SPDX-License-Identifier: MIT */
/* rows.h - rings of other processes: where they are, and their rows on the way into a recording. docs/rings.md has the whole. */
#ifndef PROBING_ROWS_H
#define PROBING_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/ring/ring.h"
#include "src/store/store.h"

/* ---- place.c ---- */

/* Where the rings of a running process are. */
struct rows_place {
	char *parent; /* freed by rows_place_done() */
	uid_t uid;
};

/*
 * rows_open_folder - the folder of a running process, as it sees its file system.
 * @ret_place: where that is, also after an error; may be NULL.
 * Errors: -ENOENT it has none, or has ended; those of ring_folder_find().
 */
int rows_open_folder(pid_t pid, struct rows_place *ret_place, int *ret);
void rows_place_done(struct rows_place *place);

/* ---- follow.c ---- */

/* One ring that is followed. */
struct rows_ring {
	struct ring_snapshot described; /* name and columns; no rows */
	unsigned long number;           /* of its file */
	ino_t inode;
	struct ring_cursor cursor;
	int64_t row_table; /* its number in the recording; 0: it has no row yet */
	uint64_t n_rows;   /* that were read */
	uint64_t dropped, unfit;
	bool is_gone; /* it was removed, or spoilt: it is not read any more */
};

/* The rings of one process. */
struct rows_follower {
	pid_t pid;
	int folder; /* -1: not found yet */
	uint64_t next_find_ns,
		find_ns; /* CLOCK_MONOTONIC: when the caller looks for new rings again, and how long after that */
	bool is_new; /* the process began while it was recorded: rows that were evicted before the first look are lost, too */
	uint64_t start; /* of the process, by ring_start_time(); 0: it had ended before that was read */
	uint64_t since; /* rings of processes that started before are another one's */
	struct rows_ring *rings;
	size_t n_rings, n_allocated;
};

/* @start: of the process, by ring_start_time(); 0: read it now. */
void rows_follower_init(struct rows_follower *follower, pid_t pid, uint64_t start, bool is_new);
void rows_follower_done(struct rows_follower *follower);

/*
 * rows_find - find the folder and new rings of the process. After the process has ended, its folder is still known.
 * @place: set to where the folder is, or would be, if the process runs.
 * Returns -ENOMEM, or 0: also where it has no rings, or they may not be read.
 */
int rows_find(struct rows_follower *follower, struct rows_place *place);

/* rows_clock - now, as processes' start times: clock ticks since boot. */
uint64_t rows_clock(void);

/*
 * rows_find_ended - the same for a process that has ended before it was looked at.
 * @place: of another one's folder; its parent may be NULL.
 * @since: where its own start is unknown: it is not before that (rows_clock()). Another process may have had the PID.
 */
int rows_find_ended(struct rows_follower *follower, const struct rows_place *place, uint64_t since);

enum { ROWS_MAX_BYTES = 4 << 20 }; /* of one ring at a time; what is left is read the next time */

/*
 * rows_read - new rows of a ring.
 * @ret: rows, appended to the empty one; ring->cursor.n_lost, dropped and unfit are up to date.
 * Errors: -ENOMEM. A ring that was removed or spoilt is gone then.
 */
int rows_read(const struct rows_follower *follower, struct rows_ring *ring, struct row_bytes *ret);

/* The name of a column's type in a recording. */
const char *rows_type_name(enum ring_type type);

#endif
