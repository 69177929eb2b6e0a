/* SPDX-License-Identifier: MIT */
/* wait_object.h - the object that a thread waits for, in words: a file, a socket, the holder of a lock. Private.
 *
 * "[/var/log/app.log]", "[pipe]", "[tcp to 10.0.0.2:5432]", "[tcp 127.0.0.1:8000 from 10.0.0.7]", "[held by worker-3]".
 * Numbers that each connection or pipe has for itself are left out, so that equal waits have equal objects.
 */
#ifndef PROBING_PIPELINE_WAIT_OBJECT_H
#define PROBING_PIPELINE_WAIT_OBJECT_H

#include "base/descriptor.h"
#include "base/proc.h"
#include "base/sample.h"
#include "src/pipeline/process.h"
#include "src/pipeline/thread_names.h"

/* Room for an object's name, which is cut where it is longer. */
enum { WAIT_OBJECT_BYTES = 192 };

/* Of a recording; zeroed: nothing has been read. Ended with wait_objects_done(). */
struct wait_objects {
	struct wait_sockets {
		pid_t pid;
		struct sockets *sockets;
		uint64_t next_ns; /* CLOCK_MONOTONIC: when they may be read again */
	} sockets[32];            /* of the processes that were met last */
	unsigned next;            /* which to replace */
	int64_t left_ns;          /* of the recorder's time for objects; negative: overdrawn */
	uint64_t filled_ns;
};

void wait_objects_done(struct wait_objects *objects);

/* A thread that waits. */
struct waiter {
	struct process *process;
	pid_t tid;
	enum thread_state state;
	const struct proc_call *call; /* its system call */
	const uint8_t *stack;         /* bytes of its stack, from the stack pointer on */
	size_t n_bytes;
};

/*
 * wait_object_read - the object of a wait of state io, lock or gil, from memory and /proc as they are now.
 * Takes at most a hundredth of the time on the clock; beyond that, objects are unknown.
 * @to: "": unknown.
 * Errors: -ENOMEM.
 */
int wait_object_read(struct wait_objects *objects, struct thread_names *names, const struct waiter *waiter,
		     char to[WAIT_OBJECT_BYTES]);

/* ---- Its part ---- */

/*
 * wait_object_shorten - a text of descriptor_describe() without the numbers that only it has.
 * @sockets: decide which end of a connection is the server; NULL: it is the other one.
 * @to:      "": the text says nothing, as of an epoll instance.
 */
void wait_object_shorten(const char *text, const struct sockets *sockets, char to[WAIT_OBJECT_BYTES]);

#endif
