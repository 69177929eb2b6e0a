/* SPDX-License-Identifier: MIT */
/* effort.h - limits of time and memory for the names of one module, and of all modules together. Private.
 *
 * Foreign files can be crafted to take unlimited time or memory. Loops whose length comes from a file call
 * effort_go_on(), and arrays that grow with it call effort_grow(). In a thread outside effort_begin() and effort_end()
 * neither has a limit.
 */
#ifndef PROBING_SYMBOLIZE_EFFORT_H
#define PROBING_SYMBOLIZE_EFFORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of all modules that share it. Zeroed is ready. */
struct effort_budget {
	struct effort *newest, *oldest; /* by their last use; those that hold memory */
	uint64_t n_bytes;
	uint64_t used_ns;
};

struct effort {
	struct effort_budget *budget;   /* NULL: this one alone */
	void (*give_back)(void *owner); /* frees all that was taken, and says so with effort_return() */
	void *owner;
	struct effort *newer, *older;
	bool is_listed;
	uint64_t n_bytes;   /* taken now */
	uint64_t n_derived; /* of these, made out of the file entry by entry */
	unsigned n_given_back;
	uint64_t allowed_ns; /* in addition to the basic time of each module */
	uint64_t n_allowed_bytes;
	uint64_t used_ns;    /* CPU time */
	uint64_t entered_ns; /* CLOCK_MONOTONIC */
	uint64_t read_ns;    /* the thread's clock when it was read last since; 0: it was not */
	unsigned n_steps;
	bool is_spent;
};

/*
 * effort_allow - allow time for large input: n_bytes of a file, or uncompressed. effort_allow_one: for one more
 * look-up.
 */
void effort_allow(struct effort *effort, uint64_t n_bytes);
void effort_allow_one(struct effort *effort);

/* effort_begin, effort_end - the thread's work between the two counts for this module. Not nested. */
void effort_begin(struct effort *effort);
void effort_end(struct effort *effort);

/*
 * effort_go_on - whether there is time left. @n_steps: since the last time; one is about 20 ns of work.
 * False from the end of its time on: return -ETIME.
 */
bool effort_go_on(size_t n_steps);

/* effort_spend - CPU time that another thread spent for the module. */
void effort_spend(uint64_t spent_ns);

/*
 * effort_take - n_bytes of memory more. Other modules give theirs back, the one first that was used longest ago.
 * @is_derived: made entry by entry, as against unpacked, which unpack_limits.c judges.
 * Errors: -E2BIG too much for one module.
 */
int effort_take(uint64_t n_bytes, bool is_derived);

/* Part of the memory is on disk, or free again. */
void effort_return(struct effort *effort, uint64_t n_bytes);

/* The same as grow(), and accounts for the addition. Also -E2BIG. */
int effort_grow(void *array, size_t n, size_t *allocated, size_t size);

#endif
