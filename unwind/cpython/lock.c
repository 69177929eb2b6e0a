/* SPDX-License-Identifier: MIT */
/* lock.c - the lock object that a thread waits for, and its owner.
 *
 * Neither threading.Lock nor the thread's futex(2) refers to the object. The waiting C function does, in its
 * frame or in a register that its callees have saved, so the object is among the words of the thread's stack:
 *
 * up to 3.12  the object points to libc's semaphore, which the thread sleeps on;
 * 3.13        so does threading.RLock, and threading.Lock in 3.13.0; in 3.13.15 threading.Lock is as from 3.14 on;
 * 3.14 on     the lock is a byte in the object, and threads sleep on a semaphore of their own: the object is one whose
 *             byte means held, with waiters.
 *
 * Source: Modules/_threadmodule.c and Python/thread_pthread.h, 3.4 to 3.13; Modules/_threadmodule.c and
 * Include/internal/pycore_lock.h, 3.13.15, 3.14 and 3.15. In 2.7 threading.RLock is written in Python.
 */
#include <errno.h>
#include <string.h>

#include "unwind/cpython/object.h"

/* In both kinds of lock, the fields follow the head, which ends with the type. */
enum { HEAD_END = sizeof(uint64_t), OWNER = sizeof(uint64_t), DEPTH = 2 * sizeof(uint64_t), HELD_AND_WAITED_FOR = 3 };

static bool waits_in(const struct py_runtime *runtime, bool is_recursive, uint64_t first_word, uint64_t futex)
{
	int32_t kind = runtime->layout.field[LOCKS];
	bool is_semaphore = first_word == futex, is_parked = (first_word & UINT8_MAX) == HELD_AND_WAITED_FOR;

	if (kind == LOCKS_EITHER && is_recursive)
		kind = LOCKS_SEMAPHORE;
	return (is_semaphore && kind != LOCKS_PARKED) || (is_parked && kind != LOCKS_SEMAPHORE);
}

static int read_lock(struct py_runtime *runtime, uint64_t object, uint64_t futex, struct py_lock *ret)
{
	uint64_t parts = object + reader_field(runtime, OBJECT_TYPE) + HEAD_END;
	struct py_lock lock = { .object = object };
	struct object_type type;
	uint64_t first_word;
	int r;

	r = object_word(runtime, parts, &first_word);
	if (r < 0)
		return r;
	if (!waits_in(runtime, false, first_word, futex)) /* cheaper than its type */
		return -ESRCH;
	r = object_type_of(runtime, object, &type);
	if (r < 0)
		return r;
	lock.is_recursive = object_is_a(runtime, &type, "_thread.RLock", NULL);
	if (!lock.is_recursive && strcmp(type.name, "_thread.lock") != 0 && strcmp(type.name, "thread.lock") != 0)
		return -ESRCH;
	if (!waits_in(runtime, lock.is_recursive, first_word, futex))
		return -ESRCH;
	if (lock.is_recursive)
		r = object_word(runtime, parts + OWNER, &lock.owner);
	if (lock.is_recursive && r >= 0)
		r = object_word(runtime, parts + DEPTH, &lock.depth);
	if (runtime->layout.field[LOCKS] == LOCKS_PARKED && lock.owner != 0)
		lock.depth++; /* there the depth counts from 0 */
	if (r >= 0)
		*ret = lock;
	return r;
}

int py_lock_find(struct py_runtime *runtime, const uint64_t *words, size_t n, uint64_t futex, struct py_lock *ret)
{
	struct py_lock lock;
	bool has_lock = false;

	py_begin_sample(runtime);
	for (size_t i = 0; i < n; i++) {
		if (words[i] < 4096 || words[i] % sizeof(uint64_t) != 0 ||
		    read_lock(runtime, words[i], futex, &lock) < 0)
			continue;
		if (has_lock && lock.object != ret->object)
			return -ESRCH; /* ambiguous */
		*ret = lock;
		has_lock = true;
	}
	return has_lock ? 0 : -ESRCH;
}
