/* SPDX-License-Identifier: MIT */
/* waits.h - the waits of a profile: the waiting line, the kind of wait, the native function. */
#ifndef PROBING_REPORT_WAITS_H
#define PROBING_REPORT_WAITS_H

#include "src/report/report.h"
#include "src/report/paths.h"

/* The object of some waits: "[pipe]", "[held by MainThread]". */
struct wait_object_sum {
	const struct profile_frame *object;
	uint64_t value;
	uint32_t item;
};

/* One of these for each line, kind and function that differ. Frames are borrowed from the profile. */
struct wait_sum {
	const struct profile_frame *caller;   /* the Python line, or native function, that waits; NULL: not known */
	const struct profile_frame *wait;     /* "[sleep]"; never NULL */
	const struct profile_frame *function; /* its callee that waits: a builtin, or native; NULL: unknown */
	uint64_t value, samples;              /* in the unit of struct whole; may represent more waits than samples */
	uint64_t threads;
	const struct wait_object_sum *objects; /* the longest first; the rest of the value is of unknown ones */
	size_t n_objects;
	int32_t last_pid, last_tid; /* the thread that was counted last */
};

struct wait_sums {
	struct wait_sum *items; /* the longest first */
	size_t n_items, allocated;
	struct wait_object_sum *objects; /* of all items */
	size_t n_objects, objects_allocated;
	struct whole whole; /* of the profile */
	uint64_t value;     /* of all items */
};

/*
 * wait_sums_make - add up the waits of a profile.
 * Threads that could have run, but had no CPU, are one item without caller and function.
 * @ret: ended with wait_sums_done(). -ENOMEM.
 */
int wait_sums_make(const struct profile *profile, struct wait_sums *ret);
void wait_sums_done(struct wait_sums *sums);

/*
 * print_waits - as a table of at most @max rows. @heading: a line above it; NULL: none. -ENOMEM.
 * print_json_waits - as a key "waits" of an object.
 */
int print_waits(const struct wait_sums *sums, const struct report_options *options, const char *heading, size_t max,
		FILE *out);
struct json;
void print_json_waits(struct json *json, const struct wait_sums *sums, const char *key, size_t max);

#endif
