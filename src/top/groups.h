/* SPDX-License-Identifier: MIT */
/* groups.h - frames that count as one: of a function, a line, a module. Private. */
#ifndef PROBING_TOP_GROUPS_H
#define PROBING_TOP_GROUPS_H

#include "src/top/names.h"

enum grouping { GROUP_FUNCTIONS, GROUP_LINES, GROUP_MODULES };

/* Groups that are no frames. */
enum { GROUP_NO_STACK, GROUP_NO_PYTHON, GROUP_N_SPECIAL };

/* Strings are the names'. */
struct group {
	uint64_t key; /* does not change when groups get new numbers */
	const char *name;
	const char *file, *module; /* NULL: unknown */
	int line;                  /* 0: unknown */
	enum frame_kind kind;
	enum frame_role role;
};

struct groups {
	enum grouping by;
	struct group *items;
	size_t n, allocated;
	struct id_map index;
	uint32_t *of_frame; /* by index of the frame */
	size_t n_frames, frames_allocated;
};

/*
 * groups_update - put frames that are new into their groups.
 * Groups keep their numbers until groups_reset(). -ENOMEM.
 */
int groups_update(struct groups *groups, const struct top_names *names);

/* Start again, perhaps with another grouping, or because frames have got names. */
void groups_reset(struct groups *groups, enum grouping by);
void groups_done(struct groups *groups);

#endif
