/* SPDX-License-Identifier: MIT */
/* agent.h - the agent's interface to the rest of probing: the library that is loaded into a Python process.
 *
 * libprobing-agent.so needs libc only, and is the same file for all releases of CPython: it looks the interpreter's
 * functions up at run time. It exports the functions that this file declares. In the process it has two threads, which
 * sleep without requests: one listens, one runs Python code. It never prints, exits, or changes signals, locale or errno
 * of other threads; on any doubt it switches itself off and leaves the reason in its state.
 *
 * Other processes read the state from the process' memory, at the section AGENT_SECTION of the library's file.
 */
#ifndef PROBING_AGENT_H
#define PROBING_AGENT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/agent/protocol.h"
#include "src/agent/sample_ring.h"
#include "src/config/config.h"

#define AGENT_FILE "libprobing-agent.so"
#define AGENT_SECTION ".probing_agent"
#define AGENT_STUB_SECTION ".probing_stub"
#define AGENT_ENTRY "probing_agent_start"
#define AGENT_MAGIC UINT64_C(0x6167656e74303034) /* "agent004" */

enum agent_status {
	AGENT_NONE, /* loaded, never started */
	AGENT_STARTING,
	AGENT_ARMED, /* it listens */
	AGENT_OFF,   /* detached, switched off by itself, or in a forked child */
};

/* Options of a start, a bit each. */
enum {
	AGENT_FOLLOW_FORKS = 1,  /* a child that forks gets an agent of its own: switches probing.follow_forks on */
	AGENT_NO_EVAL = 2,       /* it runs no code that is sent: switches probing.eval off */
	AGENT_TRUSTS_FILTER = 4, /* for probing: a seccomp filter that cannot be read does no harm, its user has said */
	AGENT_NO_ROWS = 8,       /* it creates no rings for rows: a seccomp filter would end the program for that */
};

struct agent_state {
	uint64_t magic;
	uint32_t status; /* enum agent_status */
	uint32_t options;
	int32_t pid;              /* of the process that started it, in its PID namespace */
	int32_t listener, worker; /* its threads, the same way; 0: ended */
	uint32_t n_starts;
	uint32_t has_probes; /* attach --config has armed some: 1 until they are disarmed */
	uint32_t has_undo;   /* Python code of ours has changed the program: 1 until that is undone (package.py) */
	char socket[108];    /* abstract name, without the leading NUL */
	char reason[128];    /* of AGENT_OFF: a clause; "" on request */
	struct config config;
};

enum { AGENT_MAX_NAMES = 100 };

/*
 * agent_format_socket - an abstract name for the agent's socket. Names are unique in a network namespace, which containers
 * may share: the agent takes the first one that is free.
 * @pid: in the namespace of the process. @i: below AGENT_MAX_NAMES. @to: struct agent_state's; the rest stays as it is.
 * Returns its length without the NUL.
 */
static inline int agent_format_socket(char to[108], int pid, unsigned i)
{
	return snprintf(to, 107, i ? "probing-%d-%u" : "probing-%d", pid, i);
}

/*
 * probing_agent_start - start the agent in this process; harmless where it runs already.
 * Returns 0, or a negative errno; the state then has the reason.
 */
int probing_agent_start(uint32_t options);

/*
 * probing_agent_configure - set a key before the agent is started, KEY=VALUE: for the start hook.
 * @why: on failure a sentence. Errors: as config_assign(); -EBUSY it runs already.
 */
int probing_agent_configure(const char *assignment, char why[CONFIG_MAX_WHY]);

/*
 * probing_agent_spawn - run a program to its end, once the agent is armed: for the start hook.
 * @argv:        argv[0] is its path; ends with NULL.
 * @patience_ms: it is killed after that time.
 * @out:         n_bytes; receives the beginning of its stdout and stderr, with a NUL.
 * Errors: -ETIMEDOUT; those of pipe(2) and posix_spawn(3).
 */
int probing_agent_spawn(const char *const argv[], int patience_ms, char *out, size_t n_bytes);

/* Input and output of the stub in the process' memory; probing fills in the first and reads the second. */
struct agent_stub {
	/* Filled in: addresses of libc's functions, and the library. */
	uint64_t pthread_create, pthread_self, pthread_detach, dlopen, dlsym, dlerror, errno_location, close, syscall;
	uint64_t entry; /* of a library that is loaded already; 0: it is not */
	int32_t fd;     /* the library's descriptor, to be closed after loading; -1: none */
	uint32_t options;
	char path[256];
	char entry_name[32];
	/* Results. */
	uint32_t is_called;   /* by the thread that was used, */
	uint32_t is_done;     /* by the one that it has started: nothing of the stub runs any more, but for its end */
	int32_t create_error; /* of pthread_create(), an errno; -1: not called yet */
	int32_t start_error;  /* result of the entry function */
	uint64_t thread;
	int32_t tid;     /* of the one that it has started, in its PID namespace; set before is_done */
	char error[256]; /* of dlopen() */
};

/* ---- Crash reports ----
 *
 * Memory that a process shares with the one that writes its report. The agent creates it, a memfd, and starts `probing crash`
 * with it (crash.c). In the crash the thread fills in what has happened, sets request, and waits until done is set. The other
 * process trusts no text and no number in it.
 */
#define CRASH_MAGIC UINT64_C(0x6372617368303031) /* "crash001" */

enum { CRASH_N_REGISTERS = 32, CRASH_MAX_TEXT = 6000, CRASH_MAX_FOLDER = 512 };

enum crash_result { CRASH_NOT_DONE, CRASH_WRITTEN, CRASH_FAILED };

struct crash_page {
	uint64_t magic;
	int32_t pid;            /* of the process, in its PID namespace */
	int32_t writer;         /* PID of the process that writes the report; 0: not ready yet */
	uint32_t request, done; /* futexes; enum crash_result */
	/* The crash. */
	int32_t tid, signal, code; /* signal 0: an exception in Python */
	int32_t sender;            /* of a signal that a process has sent: siginfo's si_pid */
	uint64_t address;          /* siginfo's si_addr, of a fault */
	uint32_t n_registers;      /* of struct ucontext, gregs; 0: none */
	uint64_t registers[CRASH_N_REGISTERS];
	uint32_t n_text;
	char text[CRASH_MAX_TEXT];     /* of an exception: its traceback */
	char folder[CRASH_MAX_FOLDER]; /* of reports; "": the user's */
};

enum { CRASH_PAGE_BYTES = 8192 };
_Static_assert(sizeof(struct crash_page) <= CRASH_PAGE_BYTES, "it is what is mapped");

#endif
