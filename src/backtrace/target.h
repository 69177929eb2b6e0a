/* SPDX-License-Identifier: MIT */
/* target.h - the examined process, and the stacks of its threads. Private. */
#ifndef PROBING_BACKTRACE_TARGET_H
#define PROBING_BACKTRACE_TARGET_H

#include "unwind/cpython/cpython.h"
#include "unwind/native/native.h"
#include "unwind/stitch/stitch.h"

struct core_file;

struct target {
	pid_t pid;                    /* of a core file: in its own PID namespace */
	bool is_dumped;               /* it is a core file, and no process */
	size_t n_files_missing;       /* then: of those that were mapped */
	struct remote *dump;          /* then: memory that the file itself contains; borrowed from remote */
	struct module_table *modules; /* borrowed */
	struct address_space *space;
	struct remote *remote;
	struct native_unwinder *unwinder;
	struct native_process *native;
	struct native_stack walked;
	struct stitcher *stitcher;
	struct py_runtime *runtime; /* NULL: none, or it cannot be read */
	int python_error;           /* why not; -ENOENT there is none */
	char python[64];            /* version; "" none */
	uint8_t *stack_bytes;       /* SAMPLE_STACK_BYTES */
};

/*
 * target_open - open a process, without stopping it.
 * @pid: a living thread: after the main thread's end, /proc shows memory only under
 *       the ids of other threads.
 * @modules: of this and other processes; borrowed, outlives the target.
 * Errors: -ESRCH, -EPERM, -EACCES, -ENOMEM.
 */
int target_open(pid_t pid, struct module_table *modules, struct target **ret);
/*
 * target_open_core - the same from a core file.
 * @core:       result of core_file_read().
 * @executable: the program's file, if it is not at its original path; else NULL.
 * Errors: -EBADMSG, -EOPNOTSUPP, -ENOMEM; what open(2) and read(2) report.
 */
int target_open_core(const char *path, const char *executable, const struct core_file *core,
		     struct module_table *modules, struct target **ret);

/* The second half of both: unwinder and stitcher. -ENOMEM. */
int target_make_tools(struct target *target);

void target_free(struct target *target);
void target_freep(struct target **target);

/*
 * target_stack - the merged stack of a stopped thread.
 * @ret: frames are borrowed until the next stack.
 * Errors: -ENOMEM.
 */
int target_stack(struct target *target, pid_t tid, const struct regs *regs, struct stack *ret);

/* The same from memory alone: the Python frames of a thread that may be running. */
int target_python_stack(struct target *target, pid_t tid, struct stack *ret);

/*
 * target_locals - the variables of the Python frames of the latest stack.
 * Variables that are not read within LOCALS_NS are omitted, and marked.
 * @locals: n_frames; those of native frames stay empty.
 * Errors: -ENOMEM.
 */
enum { LOCALS_NS = 10000000 };
int target_locals(struct target *target, const struct stack *stack, struct py_locals *locals);

/* Its interpreter's state of a thread; false: no interpreter has it. */
bool target_state(struct target *target, pid_t tid, struct py_state *ret);

/* Does a thread sleep until it gets its GIL? */
enum py_answer target_waits_for_gil(struct target *target, pid_t tid);

/* The tasks of a thread's event loop: as py_tasks_of(). -ESRCH where there is no interpreter. */
int target_tasks(struct target *target, pid_t tid, struct py_tasks *ret);

#endif
