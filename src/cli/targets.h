/* SPDX-License-Identifier: MIT */
/* targets.h - which running processes are meant: by number, by name, by whose they are, and their descendants. */
#ifndef PROBING_CLI_TARGETS_H
#define PROBING_CLI_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/glob_list.h"

/* Selection by the user. All zero: none. */
struct target_options {
	pid_t *pids;
	size_t n_pids, pids_allocated;
	struct glob_list comms;    /* globs of a process' name, or of its executable's */
	struct glob_list cmdlines; /* texts and globs of a part of a command line */
	struct glob_list users;    /* names and numbers */
	bool descendants;          /* those that are running already, too */
	bool wait;                 /* for a first one, where names and users find none */
	unsigned *uids;            /* of users, once they have been looked up */
};
void target_options_done(struct target_options *options);

/* Whether there is any selection; and one that later processes may match. */
bool targets_are_asked_for(const struct target_options *options);
bool targets_are_matched(const struct target_options *options);

/* One that was found and is left out. */
struct target_refusal {
	pid_t pid;
	int error; /* -ESRCH there is none; -EPERM and the like */
	char name[32];
};

struct targets {
	pid_t *pids; /* in the order of the options and the search, each once */
	size_t n, allocated;
	struct target_refusal *refused;
	size_t n_refused, refused_allocated;
};
void targets_done(struct targets *targets);

/*
 * targets_find - the processes as of now.
 * Skips kernel threads, ended processes and this one, unless selected by number. A single one selected
 * by its number is not checked: its recorder reports problems.
 * Returns 0, or prints a message and returns an exit status: no process matches (EXIT_NO_INPUT), none of
 * them may be sampled (EXIT_NOT_PERMITTED).
 */
int targets_find(struct target_options *options, struct targets *ret);

/* targets_match - whether a process matches by its name, command line or user; after targets_find(). */
bool targets_match(const struct target_options *options, pid_t pid);
/* targets_add - add one, unless it is there already. -ENOMEM. */
int targets_add(struct targets *targets, pid_t pid);
/* targets_add_descendants - all that they have started, and those have, as of now. Negative errno. */
int targets_add_descendants(struct targets *targets);

/* targets_add_children - the children that a process has now, and none of theirs. Negative errno. */
int targets_add_children(struct targets *targets, pid_t pid);

/* targets_print_refused - print on stderr which processes are left out; nothing if there are none. @done: "recorded". */
void targets_print_refused(const struct targets *targets, const char *done);

#endif
