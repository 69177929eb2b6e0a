/* SPDX-License-Identifier: MIT */
/* agent_use.h - what the verbs share that need the agent in a process. */
#ifndef PROBING_CLI_AGENT_USE_H
#define PROBING_CLI_AGENT_USE_H

#include <argp.h>

#include "src/config/config.h"
#include "src/inject/inject.h"

/* What -D KEY=VALUE gave; the texts are the command line's. All zero is none. */
struct assignments {
	struct config config;
	const char *items[CONFIG_MAX_KEYS];
	size_t n;
};

/* assignments_take - one more of them; ends the program with a message where the key or the value is wrong. */
void assignments_take(struct assignments *given, struct argp_state *state, const char *assignment);

/* The agent's file: where it was installed, or beside this program in a build. To be freed; NULL: in neither place. */
char *agent_path(void);

/*
 * agent_put - load it into a process, where it is not there yet.
 * @wait_ms: for a thread at a safe place.
 * Returns an exit status, after having said what was wrong.
 */
int agent_put(pid_t pid, unsigned wait_ms, uint32_t options, struct inject_result *ret);

/* agent_put_by - the same with all options but the library, which is found here. */
int agent_put_by(pid_t pid, const struct inject_options *options, struct inject_result *ret);

/* agent_open - connect, and hear it welcome us. Returns an exit status, as above. */
int agent_open(pid_t pid, const struct agent_state *state, struct agent_talk *ret);

/*
 * agent_configure - set a key of the agent, KEY=VALUE.
 * Returns an exit status, after having said what was wrong.
 */
int agent_configure(pid_t pid, struct agent_talk *talk, const char *assignment);

/* agent_look - the state of the agent in a process, without a note. Errors: as inject_find(); -ENOENT also where it is off. */
int agent_look(pid_t pid, struct agent_state *ret);

#endif
