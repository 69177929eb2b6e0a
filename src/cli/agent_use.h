/* SPDX-License-Identifier: MIT */
/* agent_use.h - functions for the verbs that need the agent in a process. */
#ifndef PROBING_CLI_AGENT_USE_H
#define PROBING_CLI_AGENT_USE_H

#include <argp.h>

#include "src/config/config.h"
#include "src/inject/inject.h"

/* Values of -D KEY=VALUE; the texts are the command line's. All zero: none. */
struct assignments {
	struct config config;
	const char *items[CONFIG_MAX_KEYS];
	size_t n;
};

/* The row of -D for a list of options. */
#define ASSIGNMENT_OPTION_ROW                                                                                          \
	{                                                                                                              \
		"define", 'D', "KEY=VALUE", 0,                                                                         \
			"Set a key of the agent's configuration (repeatable); probing config lists them", 0            \
	}

/* agent_refuse_key - end the program with a message: @why of config_assign(), or what replaces a key of the older
 * probing. @word: KEY or KEY=VALUE. */
void agent_refuse_key(struct argp_state *state, const char *word, const char *why);

/* assignments_take - add one; ends the program with a message if the key or the value is wrong. */
void assignments_take(struct assignments *given, struct argp_state *state, const char *assignment);

/* The agent's file: where it was installed, or beside this program in a build. To be freed; NULL: in neither place. */
char *agent_path(void);

/*
 * agent_put - load it into a process, unless it is there already.
 * @wait_ms: timeout for a thread at a safe place.
 * Returns 0, or prints a message and returns an exit status.
 */
int agent_put(pid_t pid, unsigned wait_ms, uint32_t options, struct inject_result *ret);

/* agent_put_by - the same with all options but the library, which is found here. */
int agent_put_by(pid_t pid, const struct inject_options *options, struct inject_result *ret);

/* agent_open - connect, and receive WELCOME. Returns an exit status, as above. */
int agent_open(pid_t pid, const struct agent_state *state, struct agent_talk *ret);

/*
 * agent_configure - set a key of the agent, KEY=VALUE.
 * Returns 0, or prints a message and returns an exit status.
 */
int agent_configure(pid_t pid, struct agent_talk *talk, const char *assignment);

/* agent_look - the state of the agent in a process, without a note. Errors: as inject_find(); -ENOENT also where it is
 * off. */
int agent_look(pid_t pid, struct agent_state *ret);

/*
 * agent_find_socket - connect to the agent of a process for capturing (struct capture_options, connect_agent).
 * Where its memory may not be read, the socket goes by one of its usual names. Errors: as agent_look() and agent_connect(); -EBUSY
 * a seccomp filter would end the process for sampling, or may: target_agent_why() has the sentence.
 */
int agent_find_socket(pid_t pid, int *ret);

#endif
