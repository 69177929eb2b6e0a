/* SPDX-License-Identifier: MIT */
/* protocol.h - messages between probing and the agent inside a process.
 *
 * A message is a header of 8 bytes, numbers of a fixed size, and text up to the end. All numbers have this machine's
 * byte order: both ends are on one machine. Each kind has one direction and bounds, listed in one table
 * (protocol.c); a message that violates them ends the connection. Neither end trusts the other.
 *
 * SAMPLE samples the process until its connection ends. SAMPLING brings the ring's memfd (sample_ring.h) and the process'
 * own /proc/self/mem, read-only, through which its memory can be read where process_vm_readv(2) is refused.
 *
 * Every header contains the version; each end checks that of the first message. A process has one evaluation at a time;
 * STARTED, OUTPUT and RESULT belong to the last EVALUATE of their connection.
 *
 *   probing                      agent
 *   HELLO                ──►
 *                        ◄──     WELCOME
 *   EVALUATE             ──►
 *                        ◄──     STARTED, OUTPUT..., RESULT   or   REFUSED
 *   INTERRUPT            ──►     (no answer of its own)
 *   CONFIGURE            ──►
 *                        ◄──     CONFIGURATION   or   REFUSED
 *   SAMPLE               ──►
 *                        ◄──     SAMPLING, with two descriptors   or   REFUSED
 *   LAYOUT               ──►     (no answer, or REFUSED)
 *   DETACH               ──►
 *                        ◄──     BYE   or   REFUSED
 */
#ifndef PROBING_AGENT_PROTOCOL_H
#define PROBING_AGENT_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	PROTOCOL_VERSION = 1,
	PROTOCOL_HEADER_BYTES = 8,
	PROTOCOL_MAX_BYTES = 1 << 20,  /* of a message, its header included */
	PROTOCOL_MAX_OUTPUT = 1 << 15, /* of text in an OUTPUT: a reader need not wait long for the next message */
};

enum message_kind {
	MESSAGE_HELLO = 1,
	MESSAGE_EVALUATE, /* numbers: [0] ms it may run, 0: no bound; text: the code */
	MESSAGE_INTERRUPT,
	MESSAGE_DETACH,
	MESSAGE_WELCOME, /* numbers: [0] process id in its own PID namespace; text: Python's version */
	MESSAGE_STARTED, /* the code runs now: the interpreter's lock has been taken */
	MESSAGE_OUTPUT,  /* numbers: [0] 1 stdout, 2 stderr */
	MESSAGE_RESULT,  /* numbers: [0] enum outcome; text: repr() of the value, or a traceback */
	MESSAGE_REFUSED, /* text: why, a clause */
	MESSAGE_BYE,
	MESSAGE_CONFIGURE,     /* text: KEY=VALUE to set (src/config); none: only report */
	MESSAGE_CONFIGURATION, /* text: KEY=VALUE of each key, a line each */
	MESSAGE_SAMPLE,        /* numbers: [0] samples in 1000 s of CPU time, [1] stack bytes at most */
	MESSAGE_SAMPLING,      /* SCM_RIGHTS: the ring, the memory */
	MESSAGE_LAYOUT,        /* text: a struct python_layout, by which frames are read from now on */
};

/* How an evaluation ended. */
enum outcome {
	OUTCOME_VALUE,   /* of the last expression */
	OUTCOME_NOTHING, /* it ends with no expression, or its value is None */
	OUTCOME_EXCEPTION,
	OUTCOME_INTERRUPTED, /* by INTERRUPT, or by its time bound */
	OUTCOME_NOT_STARTED, /* its time was over before the interpreter's lock could be had: it will not run */
	OUTCOME_ABANDONED,   /* interrupted, but it does not end: it is in C code. It continues, without a listener */
	OUTCOME_N
};

enum { MESSAGE_MAX_NUMBERS = 2 };

/* Bounds of the numbers of SAMPLE. */
enum { SAMPLE_MIN_RATE = 1, SAMPLE_MAX_RATE = 20000000 };

struct message {
	enum message_kind kind;
	uint32_t numbers[MESSAGE_MAX_NUMBERS];
	const char *text; /* n_text bytes, without a NUL at the end; borrowed */
	size_t n_text;
};

enum protocol_end { PROTOCOL_PROBING, PROTOCOL_AGENT };

/*
 * message_parse - the first message of a buffer.
 * @from: the sender.
 * @ret:  its text borrows the bytes.
 * Returns its size in bytes; 0: incomplete. Errors: -EPROTONOSUPPORT another version of the
 * protocol; -EBADMSG it violates the rules.
 */
ssize_t message_parse(const void *bytes, size_t n_bytes, enum protocol_end from, struct message *ret);

/*
 * message_format - the reverse: @to has PROTOCOL_HEADER_BYTES + 4 * MESSAGE_MAX_NUMBERS + n_text bytes.
 * Returns the number of bytes written; -EMSGSIZE: more text than such a message may have.
 */
ssize_t message_format(const struct message *message, void *to);

#endif
