/* SPDX-License-Identifier: MIT */
/* thread.c - from an operating system's thread id to its thread state in the interpreter.
 *
 * Up to 3.10 a thread state does not have that id but pthread_self(), the address of libc's
 * own structure of the thread, which contains the id somewhere.
 *
 * The lists of interpreters and threads change while they are read; every loop
 * is bounded, and a thread state counts only if it points back to an
 * interpreter in the list, and has the thread id.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum {
	MAX_INTERPRETERS = 1024,
	MAX_THREADS = 1 << 16,
	MAX_TID = 1 << 22, /* proc_sys_kernel(5), pid_max */
	PTHREAD_BYTES = 1024,
};

struct thread_state {
	uint64_t next, interpreter;
	pid_t tid; /* 0: unknown */
};

/*
 * Find the thread id in libc's thread structure. In glibc the list head of robust mutexes follows, which normally is
 * empty: two pointers to itself (nptl/descr.h, 2.4 to 2.43). Otherwise search the main thread's structure for the PID.
 * Up to 2.24 glibc also has the PID after the TID, at an odd multiple of four in all threads.
 */
static int find_tid(const struct py_runtime *runtime, uint64_t address, const uint8_t *bytes)
{
	for (uint32_t i = 0; i + 24 <= PTHREAD_BYTES; i += 8) {
		uint64_t head = address + i + 16;
		uint32_t tid = half_at(bytes, i);

		if (word_at(bytes, i + 8) == head && word_at(bytes, i + 16) == head && tid > 0 && tid <= MAX_TID)
			return (int)i;
	}
	for (uint32_t i = 0; i < PTHREAD_BYTES; i += 8)
		if (half_at(bytes, i) == (uint32_t)runtime->pid)
			return (int)i;
	return ABSENT;
}

/* Read remembered threads through the sample's page cache, but the list directly, as it is now. */
static int read_bytes(struct py_runtime *runtime, bool is_remembered, uint64_t address, void *to, size_t n_bytes)
{
	return is_remembered ? page_cache_read(&runtime->page_cache, address, to, n_bytes)
			     : remote_read(runtime->remote, RADDR(address), to, n_bytes);
}

/* The TID of a thread with this pthread_self(); 0: unknown. */
static pid_t tid_of_pthread(struct py_runtime *runtime, bool is_remembered, uint64_t address)
{
	uint8_t bytes[PTHREAD_BYTES] = { 0 }; /* a smaller structure may end at the end of a mapping */
	uint32_t tid;

	if (runtime->pthread_tid == ABSENT &&
	    remote_read_some(runtime->remote, RADDR(address), bytes, sizeof bytes) > 0)
		runtime->pthread_tid = find_tid(runtime, address, bytes);
	if (runtime->pthread_tid == ABSENT ||
	    read_bytes(runtime, is_remembered, address + (uint64_t)runtime->pthread_tid, &tid, sizeof tid) < 0)
		return 0;
	return tid <= MAX_TID ? (pid_t)tid : 0;
}

static int read_state(struct py_runtime *runtime, bool is_remembered, uint64_t address, struct thread_state *ret)
{
	uint8_t bytes[MAX_HEAD_BYTES];
	int r;

	r = read_bytes(runtime, is_remembered, address, bytes, runtime->layout.thread_bytes);
	if (r < 0)
		return r;
	ret->next = word_at(bytes, reader_field(runtime, THREAD_NEXT));
	ret->interpreter = word_at(bytes, reader_field(runtime, THREAD_INTERPRETER));
	if (reader_has(runtime, THREAD_NATIVE_ID))
		ret->tid = (pid_t)word_at(bytes, reader_field(runtime, THREAD_NATIVE_ID));
	else
		ret->tid = tid_of_pthread(runtime, is_remembered,
					  word_at(bytes, reader_field(runtime, THREAD_PTHREAD)));
	return 0;
}

static int remember(struct py_runtime *runtime, pid_t tid, uint64_t state, uint64_t interpreter)
{
	int r;

	r = grow(&runtime->threads, runtime->n_threads, &runtime->threads_allocated, sizeof *runtime->threads);
	if (r < 0)
		return r;
	runtime->threads[runtime->n_threads++] = (struct thread_slot){ tid, state, interpreter };
	return 0;
}

/* @left: remaining number of threads to visit, including those without an id. */
static int list_threads(struct py_runtime *runtime, uint64_t interpreter, unsigned *left)
{
	struct circle circle = { 0 };
	struct raddr state;
	int r;

	r = remote_read_pointer(runtime->remote, RADDR(interpreter + reader_field(runtime, INTERPRETER_THREADS)),
				&state);
	while (r >= 0 && !raddr_is_null(state)) {
		struct thread_state thread;

		if (circle_met(&circle, state.value) || (*left)-- == 0)
			return -ELOOP;
		r = read_state(runtime, false, state.value, &thread);
		if (r < 0)
			break;
		if (thread.interpreter != interpreter)
			return -EBADMSG;
		if (thread.tid > 0)
			r = remember(runtime, thread.tid, state.value, interpreter);
		state = RADDR(thread.next);
	}
	return r;
}

/* Read interpreters and threads again. Keep what was read even if the rest fails. */
static int list_all(struct py_runtime *runtime)
{
	struct raddr interpreter = RADDR_NULL;
	unsigned left = MAX_THREADS;
	int r;

	runtime->n_threads = 0;
	r = reader_interpreters(runtime, &interpreter.value);
	for (unsigned i = 0; r >= 0 && !raddr_is_null(interpreter) && i < MAX_INTERPRETERS; i++) {
		r = list_threads(runtime, interpreter.value, &left);
		if (r < 0)
			break;
		r = remote_read_pointer(runtime->remote,
					raddr_add(interpreter, (int64_t)reader_field(runtime, INTERPRETER_NEXT)),
					&interpreter);
	}
	return r;
}

/* 0: none is known, or one of them now belongs to another thread. */
static size_t known_states(struct py_runtime *runtime, pid_t tid, struct thread_slot *states, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < runtime->n_threads && n < max; i++) {
		struct thread_state thread;

		if (runtime->threads[i].tid != tid)
			continue;
		if (read_state(runtime, true, runtime->threads[i].state, &thread) < 0 || thread.tid != tid)
			return 0;
		states[n++] = runtime->threads[i];
	}
	return n;
}

int reader_known_states(struct py_runtime *runtime, pid_t tid, struct thread_slot *states, size_t max)
{
	size_t n;
	int r = 0;

	if (runtime->ids)
		r = task_ids_own(runtime->ids, tid, &tid);
	if (r < 0)
		return r;
	n = known_states(runtime, tid, states, max);
	return n > 0 ? (int)n : -ESRCH;
}

static bool has_ident(struct py_runtime *runtime, const struct thread_slot *slot, uint64_t ident)
{
	uint64_t found;

	return page_cache_read(&runtime->page_cache, slot->state + reader_field(runtime, THREAD_IDENT), &found,
			       sizeof found) >= 0 &&
	       found == ident;
}

int py_thread_of_ident(struct py_runtime *runtime, uint64_t ident, pid_t *ret)
{
	for (int is_new = 0; is_new < 2; is_new++) {
		for (size_t i = 0; i < runtime->n_threads; i++)
			if (has_ident(runtime, &runtime->threads[i], ident)) {
				*ret = runtime->threads[i].tid;
				return 0;
			}
		if (!is_new)
			(void)list_all(runtime); /* what it could read is searched */
	}
	return -ESRCH;
}

int reader_states(struct py_runtime *runtime, pid_t tid, bool anew, struct thread_slot *states, size_t max)
{
	size_t n = 0;
	int r = 0;

	if (runtime->ids)
		r = task_ids_own(runtime->ids, tid, &tid);
	if (r < 0)
		return r;
	if (!anew)
		n = known_states(runtime, tid, states, max);
	if (n == 0) {
		r = list_all(runtime);
		n = known_states(runtime, tid, states, max);
	}
	if (n == 0)
		return r < 0 ? r : -ESRCH;
	return (int)n;
}
