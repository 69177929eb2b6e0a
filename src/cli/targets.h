/* SPDX-License-Identifier: MIT */
/* targets.h - which running processes are meant: by number, by name, by whose they are, and their descendants. */
#ifndef PROBING_CLI_TARGETS_H
#define PROBING_CLI_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/glob_list.h"

/* What was asked for. All zero: nothing. */
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

/* Whether anything was asked for; and by what processes may match that start later. */
bool targets_are_asked_for(const struct target_options *options);
bool targets_are_matched(const struct target_options *options);

/* One that was found and is left out. */
struct target_refusal {
	pid_t pid;
	int error; /* -ESRCH there is none; -EPERM and the like */
	char name[32];
};

struct targets {
	pid_t *pids; /* in the order in which they were asked for and found, each once */
	size_t n, allocated;
	struct target_refusal *refused;
	size_t n_refused, refused_allocated;
};
void targets_done(struct targets *targets);

/*
 * targets_find - the processes as of now.
 * Kernel threads, those that have ended, and this one are none, but by their number. Of a single one that
 * was asked for by its number nothing is checked: whoever records it says what is wrong.
 * Returns 0, or an exit status after having said why: nobody is meant by it (EXIT_NO_INPUT), none of
 * them may be looked at (EXIT_NOT_PERMITTED).
 */
int targets_find(struct target_options *options, struct targets *ret);

/* targets_match - whether a process is meant by its name, command line or user, once targets_find() has been asked. */
bool targets_match(const struct target_options *options, pid_t pid);
/* targets_add - one more, if it is not there yet. -ENOMEM. */
int targets_add(struct targets *targets, pid_t pid);
/* targets_add_descendants - all that they have started, and those have, as of now. Negative errno. */
int targets_add_descendants(struct targets *targets);

/* targets_add_children - the children that a process has now, and none of theirs. Negative errno. */
int targets_add_children(struct targets *targets, pid_t pid);

/* targets_say_refused - in a sentence on stderr who is left out; nothing where nobody is. */
void targets_say_refused(const struct targets *targets);

#endif
