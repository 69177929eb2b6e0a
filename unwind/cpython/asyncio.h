/* asyncio.h - the tasks of event loops, read from outside.
 *
 * A task runs a coroutine; that awaits another, and the innermost waits for a future, which may be
 * another task. All is as memory has it at the moment: of a thread that stands still it is exact.
 * Source: Lib/asyncio/tasks.py and Modules/_asynciomodule.c, 3.4 to 3.15.
 */
#ifndef PROBING_ASYNCIO_H
#define PROBING_ASYNCIO_H

#include "unwind/cpython/cpython.h"

/* More tasks of one event loop are left out, and that is said. */
enum { PY_MAX_TASKS = 1 << 16, PY_TASK_NAME_BYTES = 256 };

struct py_task {
	uint64_t address;
	char *name;       /* UTF-8; "": it has none, up to 3.7 */
	bool is_running;  /* then its frames are part of the thread's stack */
	uint64_t frame;   /* of its outermost coroutine; 0: not known */
	size_t first_frame, n_frames; /* of all coroutines, the awaited ones too; innermost first */
	uint64_t future;  /* what it waits for; 0: not known */
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
 * py_asyncio_look - look for what asyncio says of itself, which is loaded when it is imported.
 * Does nothing where that has been found, where nothing new has been mapped, and where the module alone tells.
 */
void py_asyncio_look(struct py_runtime *runtime, struct address_space *space);

/*
 * py_tasks_of - the tasks of a thread's event loop that have not ended.
 * Up to 3.13 the loop says which thread runs it; the tasks of one that does not are the main thread's.
 * @tid: as we see it.
 * @ret: filled; ended with py_tasks_done(), also after an error.
 * Errors: -ESRCH no interpreter knows the thread; -ENOMEM. What cannot be read is left out.
 */
int py_tasks_of(struct py_runtime *runtime, pid_t tid, struct py_tasks *ret);

/* A task for which a thread runs, and those that wait for it. */
struct py_task_link {
	const char *name;               /* as in struct py_task */
	uint64_t frame;                 /* of its outermost coroutine */
	const struct py_frame *frames;  /* innermost first; none of the one that runs */
	size_t n_frames;
};

enum { PY_MAX_LINKS = 16 };

/*
 * py_running_task - the task that a thread is in the middle of, and outwards the tasks that wait for it
 *                   (the first, where there are several; from 3.14 on).
 * For samples: part of what py_begin_sample() began. Where to look is remembered, not what is there.
 * @links: room for PY_MAX_LINKS, the running one first. Borrowed until the next call.
 * Returns how many; 0: it runs no task, or that cannot be told. -ENOMEM.
 */
int py_running_task(struct py_runtime *runtime, pid_t tid, struct py_task_link *links);

#endif
