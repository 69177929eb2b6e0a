/* SPDX-License-Identifier: MIT */
/* waits.c - see waits.h.
 *
 * All is read before the thread is stopped: afterwards the kernel shows a call that was interrupted. Whether it was the same wait,
 * the stack pointer says.
 */
#include "src/backtrace/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/syscall_name.h"
#include "base/task_ids.h"
#include "base/util.h"
#include "base/wait_call.h"

/* Words of stack that hold the functions that lock, and libc's waiting functions. */
enum { LOCKING_WORDS = 512 };

void backtrace_wait_done(struct backtrace_wait *wait)
{
	for (size_t i = 0; i < wait->n_descriptors; i++)
		free(wait->descriptors[i].what);
	*wait = (struct backtrace_wait){ 0 };
}

bool backtrace_wait_is_of(const struct backtrace_wait *wait, const struct regs *regs)
{
	return wait->sp == regs->value[MACHINE_REG_SP];
}

static int read_descriptors(const struct wait_call *call, pid_t pid, struct sockets *sockets,
			    struct backtrace_wait *wait)
{
	for (size_t i = 0; i < call->n_descriptors; i++) {
		struct backtrace_descriptor *descriptor = &wait->descriptors[i];
		char what[DESCRIPTOR_TEXT_BYTES];
		int r;

		descriptor->number = call->descriptors[i];
		r = descriptor_describe(pid, descriptor->number, sockets, what);
		if (r == -ENOMEM)
			return r;
		descriptor->error = r;
		descriptor->what = r < 0 ? NULL : strdup(what);
		if (r >= 0 && !descriptor->what)
			return -ENOMEM;
		wait->n_descriptors++;
	}
	wait->n_more = call->n_more;
	return 0;
}

static void read_lock(struct target *target, const struct wait_call *call, struct backtrace_wait *wait)
{
	uint64_t words[LOCKING_WORDS];
	struct py_lock lock;
	ssize_t n;

	wait->owner_own = wait_call_mutex_owner(call, target->remote);
	if (wait->owner_own > 0) {
		wait->lock = LOCK_MUTEX;
		wait->lock_address = call->futex;
		return;
	}
	n = target->runtime ? remote_read_some(target->remote, RADDR(wait->sp), words, sizeof words) : 0;
	if (n <= 0 || py_lock_find(target->runtime, words, (size_t)n / sizeof *words, call->futex, &lock) < 0)
		return;
	wait->lock = lock.is_recursive ? LOCK_RECURSIVE : LOCK_PYTHON;
	wait->lock_address = lock.object;
	wait->owner_ident = lock.owner;
	wait->depth = lock.depth;
}

int backtrace_wait_read(struct target *target, struct sockets *sockets, pid_t tid, struct backtrace_wait *ret)
{
	struct proc_call call;
	struct wait_call wait;
	int r;

	*ret = (struct backtrace_wait){ 0 };
	if (proc_call_read(target->pid, tid, &call) < 0 || call.is_running || call.number < 0)
		return 0;
	wait_call_of(&call, target->pid, target->remote, &wait);
	ret->call = syscall_name(wait.number);
	ret->sp = call.sp;
	ret->is_for_child = wait.kind == WAIT_CHILD;
	ret->child = wait.child;
	r = read_descriptors(&wait, target->pid, sockets, ret);
	if (r < 0) {
		backtrace_wait_done(ret);
		return r;
	}
	if (wait.kind == WAIT_FUTEX)
		read_lock(target, &wait, ret);
	if (wait.kind == WAIT_FILE_LOCK && wait.n_descriptors > 0) {
		ret->lock = LOCK_FILE;
		ret->holder = descriptor_lock_holder(target->pid, wait.descriptors[0]);
	}
	return 0;
}

/* ---- Holders ---- */

static pid_t find_ident(struct backtrace *backtrace, struct target *target, const pid_t *tids, size_t n_tids,
			uint64_t ident)
{
	struct py_state state;

	for (size_t i = 0; i < backtrace->n_threads; i++)
		if (backtrace->threads[i].is_python && backtrace->threads[i].python.ident == ident)
			return backtrace->threads[i].tid;
	/* With a single requested thread, another thread may hold the lock. */
	for (size_t i = 0; i < n_tids; i++)
		if (target_state(target, tids[i], &state) && state.ident == ident)
			return tids[i];
	return 0;
}

static pid_t find_own(pid_t pid, const pid_t *tids, size_t n_tids, pid_t own)
{
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;
	pid_t found;

	if (task_ids_new(pid, &ids) < 0)
		return 0;
	for (size_t i = 0; i < n_tids; i++)
		if (task_ids_own(ids, tids[i], &found) == 0 && found == own)
			return tids[i];
	return 0;
}

static pid_t find_gil_holder(const struct backtrace *backtrace, const struct backtrace_thread *waiting)
{
	for (size_t i = 0; i < backtrace->n_threads; i++) {
		const struct backtrace_thread *thread = &backtrace->threads[i];

		if (thread != waiting && thread->is_python && thread->python.holds_gil == PY_YES &&
		    thread->python.interpreter == waiting->python.interpreter)
			return thread->tid;
	}
	return 0;
}

void backtrace_find_holders(struct backtrace *backtrace, struct target *target, const pid_t *tids, size_t n_tids)
{
	for (size_t i = 0; i < backtrace->n_threads; i++) {
		struct backtrace_thread *thread = &backtrace->threads[i];
		struct backtrace_wait *wait = &thread->wait;

		if (thread->waits_for_gil == PY_YES) {
			wait->lock = LOCK_GIL;
			wait->holder = find_gil_holder(backtrace, thread);
		} else if (wait->lock == LOCK_MUTEX) {
			wait->holder = find_own(backtrace->pid, tids, n_tids, wait->owner_own);
			if (wait->holder == 0) /* then it is no mutex */
				wait->lock = LOCK_UNKNOWN;
		} else if (wait->lock == LOCK_RECURSIVE && wait->owner_ident != 0) {
			wait->holder = find_ident(backtrace, target, tids, n_tids, wait->owner_ident);
		}
	}
}
