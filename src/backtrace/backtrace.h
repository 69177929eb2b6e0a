/* SPDX-License-Identifier: MIT */
/* backtrace.h - the stacks of a running process, of one instant each.
 *
 * Each thread is stopped by ptrace(2), read, and let go before the next one: no two
 * stacks are of the same instant, but each is exact. What takes time, names above all,
 * is done after the last thread runs again.
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
 * What several looks share, such as those at a process and its children: files are opened, and
 * names read, once. Outlives what was taken with it.
 */
struct backtrace_session;
/*
 * backtrace_session_new - @use_cache: what was found out about modules before is read from the user's cache, where that may
 * be used: symbol_cache_open(). -ENOMEM.
 */
int backtrace_session_new(bool use_cache, struct backtrace_session **ret);

/* backtrace_session_keep - write what took long into the cache: after the stacks have been shown, since it takes time, too. */
void backtrace_session_keep(struct backtrace_session *session);
void backtrace_session_free(struct backtrace_session *session);
void backtrace_session_freep(struct backtrace_session **session);

struct backtrace_options {
	pid_t pid;
	const char *core;       /* a core file instead of a process; NULL: none */
	const char *executable; /* of a core file: its program's file, where that has moved; NULL: it has not */
	pid_t tid;              /* only this thread; 0: all */
	bool no_stop;           /* stop nobody: Python frames alone, from memory */
	bool show_interpreter;  /* interpreter-internal functions as frames too */
	bool no_native;         /* Python frames alone */
	bool async;             /* the tasks of event loops, too */
	bool locals;            /* the variables of Python frames, too */
	/* Told between two threads, while none is stopped: how far the look is. NULL: nobody asks. */
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
	uint64_t address;               /* native: where it goes on, in the process; 0: Python, or unknown */
	const struct py_locals *locals; /* NULL: not asked for, or no Python frame */
};

/* Whether, and why not, a thread was stopped. */
enum backtrace_stop {
	STOP_DONE,
	STOP_NOT_WANTED,    /* nobody was to be stopped */
	STOP_REFUSED,       /* no permission */
	STOP_TIMED_OUT,     /* it did not get to where it can be: see state and wchan */
	STOP_HAS_ENDED,     /* a main thread that has ended before others */
	STOP_OTHER_MACHINE, /* it runs 32-bit code */
	STOP_DUMPED         /* there is nobody to be stopped: a core file */
};

/* What kind of lock a thread waits for. */
enum backtrace_lock {
	LOCK_UNKNOWN, /* none, or something else that is built on futex(2) */
	LOCK_GIL,
	LOCK_MUTEX,     /* of the C library */
	LOCK_PYTHON,    /* threading.Lock: nothing tells who holds it */
	LOCK_RECURSIVE, /* threading.RLock */
	LOCK_FILE,      /* of flock(2) or fcntl(2) */
};

/* What a thread waits for, before it was stopped. */
struct backtrace_wait {
	const char *call; /* the system call that it sleeps in; NULL: not known, and so is all else */
	struct backtrace_descriptor {
		int number;
		char *what; /* "tcp 127.0.0.1:80, listening": see descriptor_describe(); NULL: it cannot be told, */
		int error;  /* and why: negative errno */
	} descriptors[8];
	size_t n_descriptors, n_more; /* of which there are more */
	enum backtrace_lock lock;
	uint64_t lock_address; /* of the Python object, or the mutex; 0: not known */
	pid_t holder;          /* a thread of the process; of a file's lock a process; 0: not known */
	uint64_t depth;        /* of a recursive lock: how often it is held */
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
	size_t *awaiters; /* tasks that wait for it, by their place among those of the thread */
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
	struct py_state python; /* then: what it is in the middle of */
	enum py_answer waits_for_gil;
	struct backtrace_frame *frames; /* innermost first */
	size_t n_frames;
	bool has_tasks; /* they were asked for, and could be read */
	bool tasks_cut; /* there were too many of them */
	struct backtrace_task *tasks;
	size_t n_tasks;
	struct py_locals *locals; /* that frames point to; n_locals of them */
	size_t n_locals;
};

struct backtrace {
	pid_t pid; /* of a core file: as the process knew itself, and so its threads */
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
 * backtrace_take - look at a process now.
 * @session: borrowed, until the backtrace is freed.
 * Where stopping is refused and memory can be read, Python frames come from memory.
 * @ret: ended with backtrace_free().
 * Errors: -ESRCH no such process (or thread); -ENODATA it has ended, or is a thread of the
 * kernel; -EPERM, -EACCES; -EOPNOTSUPP nothing can be told without stopping it; -ENOMEM.
 * Of a core file: -ESRCH no such thread; and those of core_file_read().
 */
int backtrace_take(struct backtrace_session *session, const struct backtrace_options *options, struct backtrace **ret);
void backtrace_free(struct backtrace *backtrace);
void backtrace_freep(struct backtrace **backtrace);

/* Why stopping or reading a process was refused (-EPERM, -EACCES), and what to do about it. */
void backtrace_explain(pid_t pid, char *to, size_t n_bytes);

/* What could not be shown that was asked for, and why: a sentence at a time. */
void backtrace_shortcomings(const struct backtrace *backtrace, void (*say)(void *data, const char *sentence),
			    void *data);

/*
 * backtrace_descendants - a process and all that it has started, and those have, that live.
 * @ret: owned by the caller; each parent before its children, the process itself first.
 * Errors: -ENOMEM; what opening /proc reports.
 */
struct backtrace_relative {
	pid_t pid, parent; /* parent 0: of the process itself */
};
int backtrace_descendants(pid_t pid, struct backtrace_relative **ret, size_t *ret_n);

/* Where a process stands among others that are shown with it. */
struct backtrace_place {
	pid_t pid, parent;   /* parent 0: not told */
	const char *problem; /* why there is nothing of it; NULL: there is */
};

/*
 * Both: 0, -ENOMEM, or what writing met.
 * @backtrace: NULL: there is a problem.
 * @place:     NULL: it is the only one, and was taken.
 */
int backtrace_print_text(const struct backtrace *backtrace, const struct backtrace_place *place, bool colour,
			 FILE *out);
int backtrace_print_json(const struct backtrace *backtrace, const struct backtrace_place *place, FILE *out);

#endif
