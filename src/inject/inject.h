/* SPDX-License-Identifier: MIT */
/* inject.h - loads the agent into a running Python process, finds a loaded one, and talks to it.
 *
 * CPython 3.14 and later load it themselves, by a script that one of their threads runs between two instructions
 * (script.h). In older releases, or if no thread does so in time, probing stops a thread. It chooses a point
 * where its unwinder shows that calling libc is safe (place.h). The thread runs a few system calls and one
 * function, and restores itself (call.h). All of that works also if probing dies meanwhile.
 */
#ifndef PROBING_INJECT_H
#define PROBING_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/agent/agent.h"

enum { INJECT_WHY_BYTES = 512 };

/* How it gets in. */
enum inject_method {
	INJECT_AUTO,           /* by the interpreter where that is possible, else by a thread */
	INJECT_BY_INTERPRETER, /* it runs a script (PEP 768, CPython 3.14 and later) */
	INJECT_BY_THREAD,      /* one is stopped by ptrace(2), and used */
};

struct inject_options {
	const char *library;  /* the agent's file, in this process' mount namespace */
	uint32_t agent;       /* options of its start */
	unsigned patience_ms; /* for a thread at a safe place */
	enum inject_method method;
	bool trusts_filter; /* a seccomp filter that cannot be read does not end the process */
};

struct inject_result {
	bool was_there;            /* it ran already; nothing was done */
	enum inject_method method; /* that was used */
	unsigned n_tries;          /* threads that were stopped for INJECT_BY_THREAD */
	uint64_t stopped_ns;       /* for how long the one that was used did not do its own work */
	struct agent_state state;
	char why[INJECT_WHY_BYTES]; /* on failure: a sentence; "": none but the error's own */
};

/*
 * inject - load the agent and start it. Call it in a thread that ends soon: its end detaches everything that it has
 * seized.
 * @ret: filled also on failure.
 * Errors: -ESRCH no such process; -EPERM, -EACCES; -EOPNOTSUPP it cannot have an agent; -EXDEV it has one of another
 *         version; -EBUSY no thread was at a safe place in time; -ETIMEDOUT; -ENOMEM; others with a sentence.
 */
int inject(pid_t pid, const struct inject_options *options, struct inject_result *ret);

/*
 * inject_find - the state of the agent in a process.
 * Errors: -ENOENT there is none; -EXDEV it has another version; -ESRCH, -EPERM, -EACCES, -ENOMEM; for @library: of
 * open(2).
 */
int inject_find(pid_t pid, const char *library, struct agent_state *ret);

/* Parts of an agent that is there, by the system calls that they make. */
enum inject_part {
	INJECT_TALK = 1,   /* its threads, for a client */
	INJECT_SAMPLE = 2, /* sampling: in each thread */
	INJECT_CRASH = 4,  /* reports of crashes: in each thread */
	INJECT_ROWS = 8,   /* rows that the program's threads write */
};

/*
 * inject_check - whether the seccomp filters of a process let parts of its agent work: some end it for a call. Its threads
 * with filters are stopped one after the other, those of the agent alone for INJECT_TALK. Costs a read per thread otherwise.
 * @parts:      enum inject_part.
 * @is_trusted: filters that cannot be read do no harm (AGENT_TRUSTS_FILTER). For INJECT_TALK they never do: the agent talks.
 * @why:        INJECT_WHY_BYTES; a sentence on refusal.
 * Returns 0 yes. Errors: -EPERM no, or unknown; -ESRCH; -ENOMEM; those of fork(2) and pipe2(2).
 */
int inject_check(pid_t pid, unsigned parts, bool is_trusted, char *why);

/*
 * agent_connect - to the agent of a process, also across a network namespace that we may enter.
 * @ret: a socket, owned by the caller.
 * Errors: -ECONNREFUSED nobody listens there, or another process does; -EPERM it is in a network namespace that we may
 *         not enter; what socket(2) and connect(2) report.
 */
int agent_connect(pid_t pid, const struct agent_state *state, int *ret);

/* A conversation with it. */
struct agent_talk {
	int fd;
	char *bytes;      /* PROTOCOL_MAX_BYTES */
	size_t n, n_used; /* received bytes; of them, those of the last message */
};
int agent_talk_begin(int fd, struct agent_talk *ret); /* takes fd, also on failure. -ENOMEM */
void agent_talk_end(struct agent_talk *talk);
int agent_send(struct agent_talk *talk, enum message_kind kind, uint32_t number, const char *text, size_t n_text);

/*
 * agent_receive - receive the next message.
 * @ret: borrows the talk's bytes until the next call.
 * Errors: -ETIMEDOUT none within @wait_ms (-1: no limit); -EINTR a signal; -EPIPE the agent has closed the connection;
 *         -EBADMSG, -EPROTONOSUPPORT.
 */
int agent_receive(struct agent_talk *talk, int wait_ms, struct message *ret);

#endif
