/* SPDX-License-Identifier: MIT */
/* names.h - frames and stacks, read from the store as it grows. Private.
 *
 * Reads only new rows, and those without a name so far. Rows do not
 * change otherwise: a frame gets a name once.
 */
#ifndef PROBING_TOP_NAMES_H
#define PROBING_TOP_NAMES_H

#include "base/id_map.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

struct name_function {
	const char *name, *file, *module; /* file, module: NULL unknown */
	enum frame_role role;
	int first_line; /* 0: unknown */
};

struct unnamed {
	int64_t frame; /* id */
	uint32_t index, tries;
	uint32_t since; /* number of the top_names_update() call that added it */
};

struct top_names;
int top_names_new(sqlite3 *reader, struct top_names **ret); /* takes ownership of reader on success */
void top_names_free(struct top_names *names);

/*
 * top_names_update - read new rows.
 * @ret_renamed: set to true if a known frame has got its name.
 * Errors: -EBADMSG, -ENOMEM; what the store reports.
 */
int top_names_update(struct top_names *names, bool *ret_renamed);

/* Frames and stacks alone; the stack with id N has index N - 1. */
const struct profile *top_names_profile(const struct top_names *names);
uint32_t top_names_last_stack(const struct top_names *names);

/* Whether frames without a name remain that have not been read often. */
bool top_names_are_awaited(const struct top_names *names);

/* The function of a frame; NULL: it has no name yet. */
const struct name_function *top_names_function(const struct top_names *names, size_t frame);

/* The name of a thread: Python's, or as the operating system knows it; "" unknown. */
const char *top_names_thread(const struct top_names *names, pid_t pid, pid_t tid);

#endif
