/* SPDX-License-Identifier: MIT */
/* script.h - the interpreter loads the agent itself, if it runs scripts for other processes (PEP 768). Private.
 *
 * A thread that runs Python does so within a millisecond; one in C code when that returns. So there is a timeout, after
 * which the other method follows. It stops only a sleeping thread, to wake it.
 */
#ifndef PROBING_INJECT_SCRIPT_H
#define PROBING_INJECT_SCRIPT_H

#include "src/inject/target.h"

struct script_job {
	struct inject_target *target;
	const struct agent_library *library;
	uint64_t entry; /* of the library where it is loaded already; 0: it is not */
	uint32_t options;
	bool is_only_way;             /* no other method is tried where no thread takes it */
	unsigned patience_ms;         /* for threads to take it then, and to run it */
	bool (*is_armed)(void *data); /* whether the agent says so */
	bool (*may_run_in)(void *data,
			   pid_t tid); /* whether this thread may be asked to; it may be stopped meanwhile */
	void *data;
};

/*
 * script_inject - have a thread of the interpreter load and start the agent.
 * @why: INJECT_WHY_BYTES; a clause where it did not.
 * Returns 1: done; 0: not here, or not in time. Errors: -ESRCH, -ENOMEM.
 */
int script_inject(const struct script_job *job, char *why);

#endif
