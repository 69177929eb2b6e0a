/* SPDX-License-Identifier: MIT */
/* collectives.h - dumps of PyTorch's Flight Recorder in a report: which rank has not come to which collective. */
#ifndef PROBING_REPORT_COLLECTIVES_H
#define PROBING_REPORT_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum report_group_state {
	GROUP_ENDED,   /* no collective goes on */
	GROUP_GOES_ON, /* all ranks have come to it */
	GROUP_BEHIND,  /* some ranks have not come to it, and others wait in it */
	GROUP_DIFFERS, /* ranks have called different operations */
	GROUP_N_STATES
};
extern const char *const report_group_state_names[GROUP_N_STATES]; /* "ended"... */

/* Ranks that did the same. Strings are owned. */
struct report_group_ranks {
	int64_t *ranks;
	size_t n, allocated;
	bool has_come;     /* to the collective of the group */
	bool has_dump;     /* false: nothing is known of them; what follows is empty */
	int64_t seq;       /* of their operation; 0: they have called none */
	char *op, *state;  /* NULL: the dump no longer has it */
	char *func, *file; /* that called it; NULL: unknown */
	int64_t line;      /* 0: unknown */
};

struct report_group {
	char *name, *description; /* description: NULL: none */
	int64_t n_ranks;
	enum report_group_state state;
	int64_t seq; /* of the collective; of GROUP_ENDED the last one of all ranks */
	struct report_group_ranks *parts;
	size_t n_parts, parts_allocated;
};

struct report_collectives {
	int64_t n_dumps, n_operations, n_open_messages;
	/* Dumps that are not compared; n_older: their rank has a newer one. */
	int64_t n_without_rank, n_older;
	struct report_group *groups;
	size_t n_groups, groups_allocated;
};

void report_collectives_done(struct report_collectives *collectives);

#endif
