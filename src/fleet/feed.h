/* SPDX-License-Identifier: MIT */
/* feed.h - a recording as its shipper reads it: runs, threads, and samples whose stacks are ids of their contents. Private.
 *
 * Invariants: 1. A recording is only read. It may be written meanwhile: each pass opens it again, and sees whole
 * batches. 2. The id of a stack is a hash of the functions from its outermost frame to its innermost. That of a
 * function is a hash of its kind, role, name, file, line and module. All hosts agree on them without asking each other.
 * 3. A frame without a name yet is the function "libfoo.so+0x1234". The next pass looks again: if one has a name now, all
 * stacks are read again. 4. Another file at the
 * path (compact, a new recording) has other ids: they are forgotten. feed.run says whose they are. 5. The file is
 * foreign: chains of parents and inlined functions have bounds, and references must resolve.
 */
#ifndef PROBING_FLEET_FEED_H
#define PROBING_FLEET_FEED_H

#include <sys/types.h>

#include "base/id_map.h"
#include "src/fleet/native.h"
#include "src/store/store.h"

struct feed_run {
	struct fleet_hash hash;
	uint64_t run; /* its id */
	char *host, *command, *mode, *unit, *event, *stack_source, *python, *kernel, *probing;
	double hz, started, ended; /* ended 0: not known to have */
	unsigned cpus;
};

/* A function with its texts; one row of `functions`. */
struct feed_function {
	struct fleet_hash hash;
	char *kind, *role, *name, *file, *module, *build_id;
	uint32_t line;
	uint32_t week;    /* when it arrived last, in weeks since 1970; 0: never */
	uint32_t pending; /* the same of the shipment in work */
};

/* Where the function of a number is in feed.functions, for frames of this module, kind, and place. */
struct feed_seen {
	int64_t module; /* of the frame; -1: none */
	uint32_t function;
	int kind;
	bool is_eval;
};

/* A frame that had no name when it was read, and the function that it was given instead. */
struct feed_nameless {
	int64_t frame;     /* number in the recording */
	uint32_t function; /* index */
	bool is_eval;
};

struct feed_frame {
	size_t first, n; /* in feed.parts: its functions, from the outermost inlined into to the innermost */
	uint32_t list;   /* the same for all frames of these functions */
	uint32_t line;
	bool is_python;
};

struct feed_stack {
	struct fleet_hash hash;
	uint32_t parent;        /* index; FEED_NONE */
	uint32_t same;          /* index of the first stack with these functions: lines of callers may differ */
	uint32_t frame;         /* index */
	uint16_t leaf;          /* executing line of the innermost Python frame; 0: unknown */
	uint32_t week, pending; /* as of functions */
	uint32_t total; /* of its last sample in the shipment in work: a number of blocks.c, and one more; 0: none */
};
enum { FEED_NONE = UINT32_MAX };

/* A stack that is not known yet, below a caller that may be. */
struct feed_link {
	int64_t stack, frame; /* numbers in the recording */
};

/* Rows of a table, in groups whose numbers follow each other: the number and other columns. */
enum { FEED_GROUP = 32, FEED_GROUPS = 16, FEED_COLUMNS = 7 };
struct feed_rows {
	sqlite3_stmt *statement; /* rows between two numbers; during a pass */
	struct feed_group {
		int64_t rows[FEED_GROUP][FEED_COLUMNS];
		size_t n;
	} groups[FEED_GROUPS]; /* that of the number N is at N / FEED_GROUP, modulo their number */
};

struct feed_rank {
	uint32_t pid;
	int32_t rank;
};

struct feed {
	const char *path; /* borrowed */
	dev_t device;     /* of the file that the ids are of */
	ino_t inode;
	sqlite3 *db; /* during a pass */
	struct feed_rows stack_rows, frame_rows;
	sqlite3_stmt *function;
	sqlite3_stmt *rank; /* NULL: an older recording, which has none */
	struct feed_run run;
	struct id_map stacks_by_id, stacks_by_hash, frames_by_id, functions_by_hash;
	struct id_map stacks_by_step;  /* by caller and list: the first stack with these functions */
	struct id_map functions_by_id; /* index into seen */
	struct id_map lists;           /* by list and function: the longer list */
	struct feed_seen *seen;
	size_t n_seen, seen_room;
	struct feed_stack *stacks;
	size_t n_stacks, stacks_room;
	struct feed_frame *frames;
	size_t n_frames, frames_room;
	uint32_t *parts; /* indices of functions */
	size_t n_parts, parts_room;
	struct feed_function *functions;
	size_t n_functions, functions_room;
	/* While a stack is resolved. Not on the thread's stack: each call would touch all of its pages (-fstack-clash-protection). */
	struct feed_link *links;
	size_t links_room;
	struct feed_rank *ranks;
	size_t n_ranks, ranks_room;
	int32_t default_rank; /* of processes whose environment says nothing */
	bool is_live;         /* a recorder writes it, on this machine */
	struct feed_nameless *nameless;
	size_t n_nameless, nameless_room;
	struct sample_row *rows; /* of the range that was loaded */
	size_t n_rows, rows_room;
	int64_t first, last; /* numbers of the first and the last row of that range */
	int64_t from;        /* where it begins; rows may have been dropped there */
};

/*
 * feed_begin - open the recording for a pass.
 * Errors: those of store_open_reader(); -EMEDIUMTYPE a recording without a run, or of STORE_PLAIN_VERSION.
 */
int feed_begin(struct feed *feed);
void feed_end(struct feed *feed); /* of the pass; keeps what is known */
void feed_done(struct feed *feed);

/*
 * feed_hold - begin one read of the file for all that follows, up to feed_release().
 * Otherwise SQLite locks the file and looks for a journal at each statement. Until then the recorder may have to wait: hold it
 * while rows are read, not while they are sent. Errors: those of store_errno().
 */
int feed_hold(struct feed *feed);
void feed_release(struct feed *feed);

/* The parts of these that concern stacks (feed_stacks.c). @is_other: the file is not that of the pass before. */
int feed_begin_stacks(struct feed *feed, bool is_other);
void feed_end_stacks(struct feed *feed);
void feed_stacks_done(struct feed *feed);

/* A text of a row, "" for NULL. Owned by the caller; NULL: no memory. */
char *feed_copy_text(sqlite3_stmt *row, int column);

/* The number of the newest sample; 0: none. */
int feed_newest(struct feed *feed, int64_t *ret);

/*
 * feed_load - read samples from a number on. All of the range that this pass loaded last is not read again.
 * @last:       not behind this number.
 * @horizon_ns: not from the first sample that is younger on; UINT64_MAX: all.
 * @max: how many at most, into rows.
 * Errors: those of store_each_sample().
 */
int feed_load(struct feed *feed, int64_t first, int64_t last, uint64_t horizon_ns, size_t max);

/* feed_resolve - the index of a stack of the recording, whose functions are known afterwards. -EBADMSG, -ENOMEM. */
int feed_resolve(struct feed *feed, int64_t stack, uint32_t *ret);

/* The functions of a stack from the outermost on. @ret: appended, as ids (fleet_id()). -ENOMEM. */
int feed_path(const struct feed *feed, uint32_t stack, uint64_t **ids, size_t *n, size_t *room);

/* The rank of a process: as recorded, else its environment's, if it lives, else default_rank. -ENOMEM. */
int feed_find_rank(struct feed *feed, uint32_t pid, int32_t *ret);

#endif
