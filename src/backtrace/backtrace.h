/* SPDX-License-Identifier: MIT */
/* backtrace.h - the stacks of a running process, each of one instant.
 *
 * Each thread is stopped by ptrace(2), read, and continued before the next one: every stack is
 * exact, but no two are of the same instant. Slow work, above all resolving names,
 * happens after the last thread has been continued.
 */
#ifndef PROBING_BACKTRACE_H
#define PROBING_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/sample.h"
#include "unwind/cpython/cpython.h"

/*
 * Data shared by several backtraces, such as those of a process and its children: opens files and
 * resolves names once. Outlives backtraces taken with it.
 */
struct backtrace_session;
/*
 * backtrace_session_new - @use_cache: use the user's symbol cache, if symbol_cache_open() allows it.
 * -ENOMEM.
 */
int backtrace_session_new(bool use_cache, struct backtrace_session **ret);

/* backtrace_session_keep - write slow results into the symbol cache: after the stacks are shown, since writing is
 * slow, too. */
void backtrace_session_keep(struct backtrace_session *session);
/* Whether it has seen so many files that a new one takes less: a process may map another file each time. */
bool backtrace_session_is_large(const struct backtrace_session *session);
void backtrace_session_free(struct backtrace_session *session);
void backtrace_session_freep(struct backtrace_session **session);

struct backtrace_options {
	pid_t pid;
	const char *core;       /* a core file instead of a process; NULL: none */
	const char *executable; /* of a core file: its program's file, where that has moved; NULL: it has not */
	pid_t tid;              /* only this thread; 0: all */
	bool no_stop;           /* stop no thread: Python frames alone, from memory */
	bool show_interpreter;  /* interpreter-internal functions as frames too */
	bool no_native;         /* Python frames alone */
	bool async;             /* the tasks of event loops, too */
	bool locals;            /* the variables of Python frames, too */
	/* Called between two threads, while none is stopped, with the progress. NULL: none. */
	void (*progress)(void *data, const char *what, size_t n_done, size_t n_all);
	void *progress_data;
};

struct backtrace_frame {
	enum frame_kind kind;
	bool is_builtin;                /* a C function that Python code can call */
	const char *name;               /* never NULL */
	const char *file;               /* NULL: unknown */
	const char *module;             /* path of a native frame's; NULL: none, or unknown */
	int line;                       /* executing; 0: unknown */
	uint64_t address;               /* native: its next instruction, in the process; 0: Python, or unknown */
	const struct py_locals *locals; /* NULL: not requested, or no Python frame */
};

/* Whether, and why not, a thread was stopped. */
enum backtrace_stop {
	STOP_DONE,
	STOP_NOT_WANTED,    /* by option no_stop */
	STOP_REFUSED,       /* no permission */
	STOP_TIMED_OUT,     /* it did not get to where it can be: see state and wchan */
	STOP_HAS_ENDED,     /* a main thread that has ended before others */
	STOP_OTHER_MACHINE, /* it runs 32-bit code */
	STOP_DUMPED         /* a core file has no running threads */
};

/* Kinds of locks that a thread waits for. */
enum backtrace_lock {
	LOCK_UNKNOWN, /* none, or another object that uses futex(2) */
	LOCK_GIL,
	LOCK_MUTEX,     /* of the C library */
	LOCK_PYTHON,    /* threading.Lock: does not record its owner */
	LOCK_RECURSIVE, /* threading.RLock */
	LOCK_FILE,      /* of flock(2) or fcntl(2) */
};

/* The object that a thread waited for, before it was stopped. */
struct backtrace_wait {
	const char *call; /* the system call that it sleeps in; NULL: unknown, and so is everything else */
	struct backtrace_descriptor {
		int number;
		char *what; /* "tcp 127.0.0.1:80, listening": see descriptor_describe(); NULL: unknown, */
		int error;  /* and why: negative errno */
	} descriptors[8];
	size_t n_descriptors, n_more; /* of which there are more */
	enum backtrace_lock lock;
	uint64_t lock_address; /* of the Python object, or the mutex; 0: not known */
	pid_t holder;          /* a thread of the process; of a file's lock a process; 0: not known */
	uint64_t depth;        /* of a recursive lock: number of acquisitions */
	bool is_for_child;
	pid_t child; /* as the process knows it; 0: any */
	/* To find the holder by, and whether it is the same wait. */
	uint64_t owner_ident, sp;
	pid_t owner_own;
};

/* A task of an event loop. */
struct backtrace_task {
	char *name;                     /* "": it has none */
	bool is_running;                /* then its frames are those at the inner end of its thread's */
	struct backtrace_frame *frames; /* innermost first */
	size_t n_frames;
	size_t *awaiters; /* tasks that wait for it, as indices into the thread's tasks */
	size_t n_awaiters;
};

struct backtrace_thread {
	pid_t tid;
	char *name;        /* as the kernel has it */
	char *python_name; /* as Python has it; NULL: it has none, or is not known */
	char state;        /* before it was stopped; see struct proc_stat */
	char *wchan;       /* where in the kernel it waits; "" it does not, or unknown */
	struct backtrace_wait wait;
	bool is_idle; /* it slept there, and not because of a GIL */
	enum backtrace_stop stop;
	uint64_t stopped_ns; /* how long it was */
	enum verdict verdict;
	enum stack_end end;
	bool is_python;         /* an interpreter knows it */
	struct py_state python; /* then: its state in Python */
	enum py_answer waits_for_gil;
	struct backtrace_frame *frames; /* innermost first */
	size_t n_frames;
	bool has_tasks; /* they were requested, and could be read */
	bool tasks_cut; /* there were too many */
	struct backtrace_task *tasks;
	size_t n_tasks;
	struct py_locals *locals; /* that frames point to; n_locals of them */
	size_t n_locals;
};

struct backtrace {
	pid_t pid; /* of a core file: in its own PID namespace, as its threads' ids */
	char *command;
	bool is_dumped;                   /* it is from a core file */
	int signal;                       /* then: that ended the process; 0: none, it was copied alive */
	pid_t signalled;                  /* then: the thread that received it */
	size_t n_files_missing;           /* then: files that were mapped, and are not here, or are others by now */
	char python[64];                  /* version, also of one that cannot be read; "" none */
	int python_error;                 /* why its Python frames are missing; 0: they are not, or there are none */
	int refused;                      /* ptrace's error, where that is why threads were not stopped; else 0 */
	struct backtrace_thread *threads; /* the main thread first */
	size_t n_threads;
	void *names; /* owner of the frames' strings */
};

/*
 * backtrace_take - the stacks of a process, now.
 * @session: borrowed, until the backtrace is freed.
 * If stopping is refused and memory can be read, Python frames come from memory.
 * @ret: ended with backtrace_free().
 * Errors: -ESRCH no such process (or thread); -ENODATA it has ended, or is a thread of the
 * kernel; -EPERM, -EACCES; -EOPNOTSUPP there is no result without stopping it; -ENOMEM.
 * For a core file: -ESRCH no such thread; and those of core_file_read().
 */
int backtrace_take(struct backtrace_session *session, const struct backtrace_options *options, struct backtrace **ret);
void backtrace_free(struct backtrace *backtrace);
void backtrace_freep(struct backtrace **backtrace);

/* A Python thread in some looks. */
struct backtrace_gil_thread {
	pid_t tid;
	char *name;
	uint64_t ident; /* threading.get_ident() there */
	unsigned n_readings, n_held, n_waited;
};

/*
 * backtrace_gil_take - look some times, within a fifth of a second, which threads hold the GIL and which wait for it.
 * No thread is stopped. @ret: ended with backtrace_gil_free(); none if there is no Python that can be read.
 * Errors: -ESRCH, -EPERM, -EACCES, -ENOMEM.
 */
int backtrace_gil_take(struct backtrace_session *session, pid_t pid, struct backtrace_gil_thread **ret, size_t *ret_n);
void backtrace_gil_free(struct backtrace_gil_thread *threads, size_t n);

/* Why stopping or reading a process was refused (-EPERM, -EACCES), and the remedy. */
void backtrace_explain(pid_t pid, char *to, size_t n_bytes);

/* Which requested data is missing, and why: one sentence per call. */
void backtrace_shortcomings(const struct backtrace *backtrace, void (*say)(void *data, const char *sentence),
			    void *data);

/*
 * backtrace_descendants - a process and its living descendants.
 * @ret: owned by the caller; each parent before its children, the process itself first.
 * Errors: -ENOMEM; what opening /proc reports.
 */
struct backtrace_relative {
	pid_t pid, parent; /* parent 0: of the process itself */
};
int backtrace_descendants(pid_t pid, struct backtrace_relative **ret, size_t *ret_n);

/* The position of a process among others that are shown with it. */
struct backtrace_place {
	pid_t pid, parent;   /* parent 0: not shown */
	const char *problem; /* why its backtrace is missing; NULL: it is not */
};

/*
 * Both: 0, -ENOMEM, or the error of writing.
 * @backtrace: NULL: there is a problem.
 * @place:     NULL: it is the only process, without a problem.
 */
int backtrace_print_text(const struct backtrace *backtrace, const struct backtrace_place *place, bool colour,
			 FILE *out);
int backtrace_print_json(const struct backtrace *backtrace, const struct backtrace_place *place, FILE *out);

#endif
