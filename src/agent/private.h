/* SPDX-License-Identifier: MIT */
/* private.h - declarations that the parts of the agent share. Private. */
#ifndef PROBING_AGENT_PRIVATE_H
#define PROBING_AGENT_PRIVATE_H

#include <pthread.h>

#include "src/agent/agent.h"

extern struct agent_state agent;

/*
 * agent_thread - a thread that no signal of the process is delivered to.
 * @ret: to be joined or detached. Errors: negative errno of pthread_create(3).
 */
int agent_thread_with(void *(*body)(void *), void *data, size_t stack_bytes, pthread_t *ret);
static inline int agent_thread(void *(*body)(void *), size_t stack_bytes, pthread_t *ret)
{
	return agent_thread_with(body, NULL, stack_bytes, ret);
}

/* Switch off, with the reason. @reason: a clause; "": on request. */
void agent_off(const char *reason);

/* listener_start - make the thread that listens. Negative errno. */
int listener_start(void);

#endif
