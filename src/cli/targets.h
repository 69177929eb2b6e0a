/* targets.h - which running processes are meant: by number, by name, by whose they are, and their descendants. */
#ifndef PROBING_CLI_TARGETS_H
#define PROBING_CLI_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/words.h"

/* What was asked for. All zero: nothing. */
struct target_options {
	pid_t *pids;
	size_t n_pids, pids_allocated;
	struct words comms; /* globs of a process' name, or of its executable's */
	struct words users; /* names and numbers */
	bool descendants;   /* those that are running already, too */
};
void target_options_done(struct target_options *options);

/* Whether anything was asked for. */
bool targets_are_asked_for(const struct target_options *options);

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
int targets_find(const struct target_options *options, struct targets *ret);

/* targets_say_refused - in a sentence on stderr who is left out; nothing where nobody is. */
void targets_say_refused(const struct targets *targets);

#endif
