/* SPDX-License-Identifier: MIT */
/* settings.h - the agent's configuration: one thread changes it, others read it, and any thread may fork. Private.
 *
 * A reader, and a forked child, has the configuration from before a change or after it, never parts of both. No signal
 * handler of the program runs in a thread that holds the lock, so a handler that forks never waits for itself.
 */
#ifndef PROBING_AGENT_SETTINGS_H
#define PROBING_AGENT_SETTINGS_H

#include <stdbool.h>

#include "src/config/config.h"

/* settings_get - copy it. Any thread. */
void settings_get(struct config *ret);

/* settings_set - replace it. */
void settings_set(const struct config *config);

/* settings_assign - KEY=VALUE. @why and errors: as config_assign(). */
int settings_assign(const char *assignment, char why[CONFIG_MAX_WHY]);

/* settings_forget_applied - unset the keys that a module of Python applies: what they had changed has been undone. */
void settings_forget_applied(void);

/* settings_follow_forks - whether probing.follow_forks is on. Any thread, without the lock. */
bool settings_follow_forks(void);

/*
 * For pthread_atfork(3). From settings_before_fork() to settings_after_fork(), which the parent and the child both call, no
 * thread changes the configuration, and the forking thread's signals wait.
 */
void settings_before_fork(void);
void settings_after_fork(void);

#endif
