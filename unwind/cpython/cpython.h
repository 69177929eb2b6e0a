/* SPDX-License-Identifier: MIT */
/* cpython.h - an interpreter's frames, read from outside.
 *
 * Terms:
 *   evaluation   one run of the interpreter's loop, one native frame. From
 *                3.11 several Python frames can live in one evaluation.
 *   anchor       the word on an evaluation's native frame that refers to its
 *                Python frames: a pointer to the frame object up to 3.10, the
 *                _PyCFrame in 3.11 and 3.12, the shim frame from 3.13.
 * Everything read is foreign: bounded, cycle-checked, never trusted.
 */
#ifndef PROBING_CPYTHON_H
#define PROBING_CPYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/address_space.h"
#include "base/python_record.h"
#include "base/remote.h"

/* Deeper Python stacks are cut, and marked. */
#define PY_MAX_FRAMES 65536
#define PY_MAX_ANCHORS 65536

struct py_runtime;

/* A code object, identified by more than its address; lives as long as its
 * runtime, or until it is evicted (py_codes_take). */
struct py_code {
	const char *qualname; /* UTF-8 */
	const char *file;     /* as the interpreter has it */
	int first_line;
	uint64_t bytecode; /* last known address of the bytecode */
	uint32_t bytecode_bytes;
	const uint8_t *line_table;
	uint32_t line_table_bytes;
	uint8_t line_kind;     /* LINES_* of layout.h */
	bool is_internal;      /* a stub of the interpreter itself, without a line: no user function */
	uint64_t first_sample; /* number of the sample in which it was first found */
	uint64_t number;       /* no other code ever has it, though it be put where this one was in our memory */
	void *user;            /* the caller's */
};

enum { PY_INSTRUCTION_NONE = -1 /* before the first */, PY_INSTRUCTION_UNKNOWN = -2 };

struct py_frame {
	uint64_t address; /* of the interpreter's frame */
	struct py_code *code;
	uint64_t kept;           /* the frame's own record of its position */
	uint64_t pointer;        /* into the bytecode: where that is */
	uint32_t bytecode_index; /* which of its code's bytecodes it runs (free-threaded builds) */
	int32_t instruction;     /* the same in bytes from the start of the bytecode, or PY_INSTRUCTION_* */
};

/* Growable, reused from sample to sample. */
struct py_frames {
	struct py_frame *frames; /* innermost first */
	size_t n, allocated;
	bool is_cut; /* there were more than PY_MAX_FRAMES */
};
void py_frames_done(struct py_frames *frames);

struct py_anchor {
	uint64_t address;      /* on the thread's native stack; up to 3.10 that of the frame object */
	uint64_t top;          /* innermost frame of its evaluation; 0: not in the anchor, and not live */
	uint64_t outer_anchor; /* anchor of the next outer evaluation; 0: not in the anchor */
	uint64_t outer_top;    /* innermost frame of the next outer evaluation; 0: none, or not in the anchor */
};

/* Symbols of an interpreter's executable: run-time addresses, 0 if missing. */
struct py_symbols {
	uint64_t runtime;        /* _PyRuntime, from 3.7 */
	uint64_t current_thread; /* _PyThreadState_Current, up to 3.6 */
	uint64_t interpreters;   /* interp_head, up to 3.6 and if it was not stripped */
	uint64_t version;        /* Py_Version, from 3.11 */
	uint64_t collecting;     /* whether garbage is being collected, up to 3.6 and if it was not stripped */
	uint64_t lock;           /* pointer to the GIL, of 2.7 and if it was not stripped */
	uint64_t asyncio;        /* from 3.14: where asyncio says how its tasks are laid out; in 3.6: its variables */
	uint64_t code_type;      /* PyCode_Type */
	uint64_t loop;           /* the evaluation loop; needed up to 3.10, where each call of it is an evaluation */
	uint64_t data_start, data_end; /* its writable memory */
	bool is_debug_build;
};

/*
 * py_runtime_open - a CPython with known symbols: in a process, a core file, or
 * an image of memory.
 * @pid: in the PID namespace of that process.
 * Otherwise like py_runtime_find().
 */
int py_runtime_open(struct remote *remote, pid_t pid, const struct py_symbols *symbols, char *version,
		    struct py_runtime **ret);

/*
 * py_runtime_find - find and check a CPython in a process.
 * @space, @remote: borrowed; outlive the result.
 * @version: receives "3.12.1" also where it is refused; at least 32 bytes, "" where none was found.
 * Errors: -ENOENT none; -EAGAIN one that is still starting up; -EOPNOTSUPP one that
 *         cannot be read (version, debug or free-threaded build); -EPERM memory not
 *         readable.
 */
int py_runtime_find(struct address_space *space, struct remote *remote, char *version, struct py_runtime **ret);
/* "CPython 2.7, 3.4 to 3.15": the versions that py_runtime_find() accepts. Returns @to. */
char *py_known_versions(char *to, size_t n_bytes);

/* py_runtime_find_dumped - the same in a core file. @pid: in the PID namespace of that process, as its threads' ids. */
int py_runtime_find_dumped(struct address_space *space, struct remote *remote, pid_t pid, char *version,
			   struct py_runtime **ret);

void py_runtime_free(struct py_runtime *runtime);
void py_runtime_freep(struct py_runtime **runtime);
const char *py_runtime_version(const struct py_runtime *runtime); /* for tests, which print it */

/* Whether a run-time PC lies in the interpreter's own code, and in which module. */
bool py_runtime_owns(const struct py_runtime *runtime, uint64_t pc);
const struct module *py_runtime_module(const struct py_runtime *runtime);
/* Run-time minus own addresses of that module. */
int64_t py_runtime_bias(const struct py_runtime *runtime);

/* Run-time address of the evaluation loop's start; 0: unknown. Parts of the loop may be elsewhere. */
uint64_t py_runtime_loop(const struct py_runtime *runtime);

/* True if an anchor contains its own evaluation's innermost frame (up to 3.12). */
bool py_anchor_tells_top(const struct py_runtime *runtime);

/* True where an anchor is a pointer to a frame object, and that is the evaluation's only one (up to 3.10). */
bool py_anchor_is_frame(const struct py_runtime *runtime);

/* True where bytecode offsets grow past the running instruction before it has
 * ended: the pointer kept by the loop points behind it. */
int32_t py_instruction_before(const struct py_runtime *runtime, int32_t next_instruction);

/* Size of the smallest instruction. */
int32_t py_instruction_bytes(const struct py_runtime *runtime);

/* Drop the memory read for the previous sample; call this before each. */
void py_begin_sample(struct py_runtime *runtime);

/*
 * py_expect_thread - read in one call the memory that recent samples of a thread needed, which is cheaper than piece by
 * piece. Right after py_begin_sample().
 * @tid: as we see it.
 * Errors: -ENOMEM.
 */
int py_expect_thread(struct py_runtime *runtime, pid_t tid);

/*
 * py_look_again - forget the memory read for this sample and read the thread's as py_expect_thread() does: what is read
 * from now on is later than all that was read before.
 * Errors: -ENOMEM.
 */
int py_look_again(struct py_runtime *runtime, pid_t tid);

/*
 * py_describe - the layout that a reader inside the kernel needs for this interpreter. Leaves its id 0.
 * Errors: -EAGAIN not known yet; -EOPNOTSUPP its structures are too large; -EFAULT.
 */
int py_describe(struct py_runtime *runtime, struct python_layout *ret);

/*
 * py_take_record - frames that such a reader has found of the current sample's thread. Until the next sample
 * they replace memory in py_live_anchors(), py_walk() and all functions that read frames.
 * @record: borrowed until then. Only its counts need to be right.
 */
void py_take_record(struct py_runtime *runtime, const struct python_record *record);

/* Whether the record is complete, and had the answer to each later read. */
bool py_record_sufficed(const struct py_runtime *runtime);

/* py_anchor_parse - an anchor from bytes of the stack, py_anchor_bytes() of them; from 3.11. */
size_t py_anchor_bytes(const struct py_runtime *runtime);
int py_anchor_parse(const struct py_runtime *runtime, const void *bytes, uint64_t address, struct py_anchor *ret);

/*
 * py_live_anchors - the anchors of a thread as of now in memory, with their tops.
 * Includes all interpreters that the thread is in: one may have called another.
 * @tid:     as we see it.
 * @anew:    read the list of threads again: the thread may have entered more interpreters.
 * @anchors: room for max, innermost first.
 * Returns how many. Errors: -ESRCH no interpreter knows the thread;
 * -EFAULT, -ELOOP.
 */
int py_live_anchors(struct py_runtime *runtime, pid_t tid, bool anew, struct py_anchor *anchors, size_t max);

/* From 3.13: is an anchor the outermost in its interpreter? Before that its outer_anchor decides. */
bool py_is_outermost(struct py_runtime *runtime, const struct py_anchor *anchor);

enum py_answer { PY_UNKNOWN, PY_NO, PY_YES };

/* State of a thread, as of now in memory. */
struct py_state {
	uint64_t ident;           /* threading.get_ident() there */
	uint64_t interpreter;     /* id of its interpreter: 0 the main one; always 0 before 3.7 */
	enum py_answer holds_gil; /* PY_NO where there is none */
	enum py_answer collects;  /* its interpreter collects garbage, in any thread */
};

/*
 * py_state_of - of a thread that the interpreter knows.
 * @tid: as we see it.
 * Errors: -ESRCH the interpreter does not know the thread; -EFAULT.
 */
int py_state_of(struct py_runtime *runtime, pid_t tid, struct py_state *ret);

/* Locks of the interpreter that a thread holds. */
struct py_gil_state {
	enum py_answer gil;      /* PY_NO if there is no GIL */
	enum py_answer collects; /* its interpreter collects garbage, and it holds that one's GIL. PY_UNKNOWN also
				  * if garbage collection needs no GIL */
};

/*
 * py_gil_state_read - as of now in memory; for samples: it does not search.
 * @tid: as we see it.
 * Errors: -ESRCH no interpreter is known to have the thread.
 */
int py_gil_state_read(struct py_runtime *runtime, pid_t tid, struct py_gil_state *ret);

/*
 * py_thread_of_ident - the thread of that threading.get_ident(): its id in its own process.
 * Call it between samples (py_begin_sample). -ESRCH.
 */
int py_thread_of_ident(struct py_runtime *runtime, uint64_t ident, pid_t *ret);

/*
 * py_gil_holder - the thread that holds the GIL that another thread waits for: its threading.get_ident().
 * @tid: of the waiting thread, as we see it.
 * Call it between samples (py_begin_sample).
 * Errors: -ESRCH nobody else holds it, or no interpreter is known to have the waiting thread; -EFAULT.
 */
int py_gil_holder(struct py_runtime *runtime, pid_t tid, uint64_t *ret);

/* Addresses in the process at which a thread finds a script to run on behalf of another process (PEP 768). */
struct py_script_slot {
	uint64_t breaker; /* a word; this bit makes the thread check for a script, */
	uint64_t breaker_bit;
	uint64_t pending; /* whether this int is 1, */
	uint64_t script;  /* and for the path here */
	size_t script_bytes;
};

/*
 * py_script_slot - that of a thread of the main interpreter; always read again.
 * @tid: as we see it.
 * Errors: -EOPNOTSUPP a release before 3.14; -EACCES disabled (PYTHON_DISABLE_REMOTE_DEBUG, -X, or the build); -ESRCH
 *         the main interpreter does not have the thread; -EFAULT.
 */
int py_script_slot(struct py_runtime *runtime, pid_t tid, struct py_script_slot *ret);

/* Whether the build always has a GIL: then a thread that runs bytecode holds it. */
bool py_has_gil(const struct py_runtime *runtime);

/* A thread's name in Python: threading.Thread.name. */
struct py_thread_named {
	uint64_t ident;
	char *name; /* UTF-8 */
};

struct py_thread_names {
	struct py_thread_named *names;
	size_t n, allocated;
};
void py_thread_names_done(struct py_thread_names *names);

/*
 * py_thread_names_read - the names of all threads of the module threading, in all interpreters.
 * Empty if it is not imported. While threads start and end, some may be missing.
 * @ret: appended to.
 * Errors: -EFAULT, -EBADMSG, -EAGAIN; -ENOMEM. Names read before the error remain.
 */
int py_thread_names_read(struct py_runtime *runtime, struct py_thread_names *ret);

/* NULL: it is not among them. */
const char *py_thread_name(const struct py_thread_names *names, uint64_t ident);

/*
 * py_thread_title - the more informative of a thread's two names: Python's, unless threading generated it and the
 * program set another one in the operating system.
 * @python:  threading.Thread.name; NULL: Python does not know the thread.
 * @comm:    the operating system's name, truncated to 15 bytes.
 * @process: comm of the thread-group leader, which new threads inherit.
 * Returns @python or @comm.
 * Source: Lib/threading.py, _newname() and Thread.__init__(), 2.7 to 3.15; prctl(2), PR_SET_NAME.
 */
const char *py_thread_title(const char *python, const char *comm, const char *process);

/* A variable of a frame, as text: UTF-8, in a line. */
struct py_local {
	char *name;
	char *value;     /* as repr() would have it, read without running anything; cut where it is long */
	char *type;      /* the name of the value's type */
	uint64_t object; /* its address in the process: of two variables the same where they are one object */
};

struct py_locals {
	struct py_local *locals;
	size_t n, allocated;
	bool is_cut; /* there are more: too many, unreadable, or there was no time */
};
void py_locals_done(struct py_locals *locals);

/* Allocates the memory for py_locals_read(), before a thread is stopped for it. -ENOMEM. */
int py_locals_prepare(struct py_runtime *runtime);

/*
 * py_locals_read - append the variables of a frame that have values: arguments, locals, cells and free
 * variables; of a module's or class' body its names, without imports and definitions.
 * Call it before anything of another sample is read: it continues with the memory read for this one.
 * @frame:       a struct py_frame's address.
 * @deadline_ns: by monotonic_ns(); variables not read by then are omitted, and marked.
 * Errors: -EFAULT, -EBADMSG no such frame; -ELOOP; -ENOMEM.
 */
int py_locals_read(struct py_runtime *runtime, uint64_t frame, uint64_t deadline_ns, struct py_locals *ret);

/*
 * py_waits_for_gil - does a thread wait for a GIL?
 * @tid:   as we see it.
 * @futex: address of the futex(2) that it waits on.
 * PY_NO also if the interpreter does not have the thread. Needs no symbols from 3.4 on.
 * Source: Python/ceval_gil.h and ceval_gil.c, 3.4 to 3.15; Python/ceval.c, 2.7.
 */
enum py_answer py_waits_for_gil(struct py_runtime *runtime, pid_t tid, uint64_t futex);

/* A lock object. */
struct py_lock {
	uint64_t object;   /* its address */
	bool is_recursive; /* threading.RLock; else threading.Lock, which does not record its owner */
	uint64_t owner;    /* of a recursive one: threading.get_ident() of the thread that holds it; 0: none */
	uint64_t depth;    /* and how many times */
};

/*
 * py_lock_find - the lock object that a thread waits for.
 * @words: the upper end of its stack, n words.
 * @futex: address of the futex(2) that it waits on.
 * Call it between samples: it reads memory again.
 * -ESRCH: it waits for none, or the lock is ambiguous.
 */
int py_lock_find(struct py_runtime *runtime, const uint64_t *words, size_t n, uint64_t futex, struct py_lock *ret);

/*
 * py_walk - append one evaluation's Python frames, innermost first.
 * @top:     its innermost frame.
 * @ret_end:   address of the frame at which it ended: the shim (3.12 and later), or
 *             the evaluation's entry frame (3.11).
 * @ret_outer: the frame that called this evaluation; 0: none.
 * Errors: -EFAULT, -ELOOP, -EBADMSG no frame or code object there; then nothing
 *         remains appended. -ENOMEM.
 */
int py_walk(struct py_runtime *runtime, uint64_t top, struct py_frames *frames, uint64_t *ret_end, uint64_t *ret_outer);

/*
 * py_prefetch - read frame objects, and their code objects, before a walk.
 * @addresses: of n frames, at most PY_PREFETCH. Ignores unreadable ones; the walk reports them.
 */
enum { PY_PREFETCH = 64 };
void py_prefetch(struct py_runtime *runtime, const uint64_t *addresses, size_t n);

/*
 * py_calls_into - is a frame among the callers of another, or that frame itself?
 * Follows the chain from @inner in live memory, at most to the end of the
 * evaluation.
 */
bool py_calls_into(struct py_runtime *runtime, uint64_t frame, uint64_t inner);

/*
 * py_callers_stay - are frames still as an earlier walk found them? Call py_look_again() first.
 * All but the innermost, which may run on, must be at the same instructions
 * and refer to each other.
 * @frames: n of one evaluation, innermost first, from py_walk().
 */
bool py_callers_stay(struct py_runtime *runtime, const struct py_frame *frames, size_t n);

/* Source position of an instruction. */
struct py_position {
	int line, end_line;     /* 0: unknown, or the code has none for it */
	int column, end_column; /* bytes from the line's start, the end exclusive; -1: unknown (always before 3.11) */
};
void py_code_position(const struct py_code *code, int32_t instruction, struct py_position *ret);

/* Executing line of an instruction; the first line for _NONE; 0: unknown, or the code has none there. */
int py_code_line(const struct py_code *code, int32_t instruction);

/* The code object whose bytecode contains an address, among the known ones; NULL: none. */
struct py_code *py_code_at(struct py_runtime *runtime, uint64_t address);

/*
 * py_code_find - the same, also for code that no frame has run yet.
 * From 3.11 bytecode is part of its code object: this searches the memory before the address
 * for one that contains it. NULL: none. Source: Include/cpython/code.h.
 */
struct py_code *py_code_find(struct py_runtime *runtime, uint64_t address);

/* Could code be younger than the current sample? Yes if this sample is the first with it. */
bool py_code_may_be_newer(const struct py_runtime *runtime, const struct py_code *code);

/* All known code objects, in the order in which they were found; py_code_nth() is for the fuzzer, which visits each. */
size_t py_code_count(const struct py_runtime *runtime);
struct py_code *py_code_nth(const struct py_runtime *runtime, size_t n);

/*
 * py_codes_take - evict all code objects; later frames read them again, as new ones. Otherwise a program
 * that keeps creating functions would fill our memory.
 * @ret: the evicted objects, for callers with pointers to them; ended with py_codes_free(). May be NULL.
 * Errors: -ENOMEM, then nothing is evicted.
 */
struct py_codes;
int py_codes_take(struct py_runtime *runtime, struct py_codes **ret);
void py_codes_free(struct py_codes *codes);

/*
 * The tasks of asyncio's event loops. A task runs a coroutine; that awaits another, and the innermost waits
 * for a future, which may be another task. All of it is as of now in memory: exact for a stopped
 * thread. Source: Lib/asyncio/tasks.py and Modules/_asynciomodule.c, 3.4 to 3.15.
 */

/* More tasks of one event loop are omitted, and reported. */
enum { PY_MAX_TASKS = 1 << 16, PY_TASK_NAME_BYTES = 256 };

struct py_task {
	uint64_t address;
	char *name;                   /* UTF-8; "": it has none, up to 3.7 */
	bool is_running;              /* then its frames are part of the thread's stack */
	uint64_t frame;               /* of its outermost coroutine; 0: not known */
	size_t first_frame, n_frames; /* of all coroutines, the awaited ones too; innermost first */
	uint64_t future;              /* the future it waits for; 0: unknown */
};

/* One task waits for another. */
struct py_awaiter {
	size_t task, awaiter; /* indices of tasks */
};

struct py_tasks {
	struct py_task *tasks;
	size_t n, allocated;
	bool is_cut; /* there were more than PY_MAX_TASKS */
	struct py_frames frames;
	struct py_awaiter *awaiters; /* by task */
	size_t n_awaiters, awaiters_allocated;
};
void py_tasks_done(struct py_tasks *tasks);

/*
 * py_asyncio_look - search for asyncio's debug information, which is mapped when asyncio is imported.
 * Does nothing once it is found, if nothing new is mapped, and for releases whose module suffices.
 */
void py_asyncio_look(struct py_runtime *runtime, struct address_space *space);

/*
 * py_tasks_of - the tasks of a thread's event loop that have not ended.
 * Up to 3.13 the loop records the thread that runs it; tasks of other loops count for the main thread.
 * @tid: as we see it.
 * @ret: filled; ended with py_tasks_done(), also after an error.
 * Errors: -ESRCH no interpreter has the thread; -ENOMEM. Unreadable tasks are omitted.
 */
int py_tasks_of(struct py_runtime *runtime, pid_t tid, struct py_tasks *ret);

/* A task for which a thread runs, and those that wait for it. */
struct py_task_link {
	const char *name;              /* as in struct py_task */
	uint64_t frame;                /* of its outermost coroutine */
	const struct py_frame *frames; /* innermost first; none of the one that runs */
	size_t n_frames;
};

enum { PY_MAX_LINKS = 16 };

/*
 * py_running_task - the task that a thread runs, and outwards the tasks that wait for it
 *                   (the first, if there are several).
 * For samples: between py_begin_sample() and the next. Caches addresses, not contents.
 * @links: room for PY_MAX_LINKS, the running one first. Borrowed until the next call.
 * Returns how many; 0: it runs no task, or that is unknown. -ENOMEM.
 */
int py_running_task(struct py_runtime *runtime, pid_t tid, struct py_task_link *links);

#endif
