/* SPDX-License-Identifier: MIT */
/* state.c - the holder of the GIL, threads that wait for it, and garbage collection.
 *
 * up to 3.11  the runtime has the thread that holds the GIL, or 0.
 * 3.12 on     each interpreter points to a GIL, its own or the main one's: whether
 *             it is taken, and its last holder.
 * Free-threaded builds may have none.
 *
 * A thread that waits for it sleeps in futex(2) on one of the GIL's own condition variables or mutexes,
 * whatever the names of its functions.
 */
#include <errno.h>

#include "unwind/cpython/reader.h"

static enum py_answer answer(bool value)
{
	return value ? PY_YES : PY_NO;
}

static int holder_of_own(struct py_runtime *runtime, uint64_t interpreter, uint64_t *ret)
{
	uint64_t own = reader_field(runtime, INTERPRETER_OWN_GIL), gil, holder;
	uint32_t locked, enabled = 1;

	if (page_cache_read(&runtime->page_cache, interpreter + reader_field(runtime, INTERPRETER_GIL), &gil,
			    sizeof gil) < 0)
		return -EFAULT;
	*ret = 0;
	if (gil == 0)
		return 0;
	if (page_cache_read(&runtime->page_cache, gil + reader_field(runtime, INTERPRETER_OWN_GIL_LOCKED) - own,
			    &locked, sizeof locked) < 0 ||
	    page_cache_read(&runtime->page_cache, gil + reader_field(runtime, INTERPRETER_OWN_GIL_HOLDER) - own,
			    &holder, sizeof holder) < 0)
		return -EFAULT;
	if (reader_has(runtime, GIL_ENABLED) &&
	    page_cache_read(&runtime->page_cache, gil + reader_field(runtime, GIL_ENABLED), &enabled, sizeof enabled) <
		    0)
		return -EFAULT;
	*ret = enabled && locked == 1 ? holder : 0;
	return 0;
}

/* The thread that holds the GIL of an interpreter; *ret 0: none does. -EFAULT. */
static int holder_of(struct py_runtime *runtime, uint64_t interpreter, uint64_t *ret)
{
	uint64_t current = runtime->symbols.current_thread;

	if (reader_has(runtime, INTERPRETER_GIL))
		return holder_of_own(runtime, interpreter, ret);
	if (reader_has(runtime, RUNTIME_CURRENT_THREAD))
		current = runtime->symbols.runtime + reader_field(runtime, RUNTIME_CURRENT_THREAD);
	return page_cache_read(&runtime->page_cache, current, ret, sizeof *ret);
}

static enum py_answer holds_gil(struct py_runtime *runtime, uint64_t interpreter, uint64_t state)
{
	uint64_t holder;

	return holder_of(runtime, interpreter, &holder) < 0 ? PY_UNKNOWN : answer(holder == state);
}

static enum py_answer collects(struct py_runtime *runtime, uint64_t interpreter)
{
	uint64_t address = runtime->symbols.collecting;
	uint32_t collecting;

	if (reader_has(runtime, INTERPRETER_GC))
		address = interpreter + reader_field(runtime, INTERPRETER_GC) + reader_field(runtime, GC_COLLECTING);
	else if (reader_has(runtime, RUNTIME_GC))
		address = runtime->symbols.runtime + reader_field(runtime, RUNTIME_GC) +
			  reader_field(runtime, GC_COLLECTING);
	if (address == 0 || page_cache_read(&runtime->page_cache, address, &collecting, sizeof collecting) < 0)
		return PY_UNKNOWN;
	return answer(collecting != 0);
}

static int state_in(struct py_runtime *runtime, const struct thread_slot *slot, struct py_state *ret)
{
	uint64_t id = 0, ident = 0;
	int r;

	r = page_cache_read(&runtime->page_cache, slot->state + reader_field(runtime, THREAD_IDENT), &ident,
			    sizeof ident);

	if (r >= 0 && reader_has(runtime, INTERPRETER_ID))
		r = page_cache_read(&runtime->page_cache, slot->interpreter + reader_field(runtime, INTERPRETER_ID),
				    &id, sizeof id);
	*ret = (struct py_state){
		.ident = ident,
		.interpreter = id,
		.holds_gil = holds_gil(runtime, slot->interpreter, slot->state),
		.collects = collects(runtime, slot->interpreter),
	};
	return r;
}

int py_gil_state_read(struct py_runtime *runtime, pid_t tid, struct py_gil_state *ret)
{
	struct py_gil_state gil_state = { .gil = PY_NO, .collects = PY_NO };
	struct thread_slot slots[PY_MAX_STATES];
	int n;

	n = reader_known_states(runtime, tid, slots, PY_MAX_STATES);
	if (n < 0)
		return n;
	/* Combine several states as frames.bpf.c does. */
	for (int i = 0; i < n && gil_state.gil != PY_YES; i++) {
		gil_state.gil = holds_gil(runtime, slots[i].interpreter, slots[i].state);
		gil_state.collects = collects(runtime, slots[i].interpreter);
		if (gil_state.collects == PY_YES && gil_state.gil != PY_YES)
			gil_state.collects = gil_state.gil == PY_NO && !runtime->layout.free_threaded ? PY_NO
												      : PY_UNKNOWN;
	}
	*ret = gil_state;
	return 0;
}

int py_gil_holder(struct py_runtime *runtime, pid_t tid, uint64_t *ret)
{
	struct thread_slot slots[PY_MAX_STATES];
	uint64_t holder = 0;
	int n, r = 0;

	n = reader_known_states(runtime, tid, slots, PY_MAX_STATES);
	if (n < 0)
		return n;
	for (int i = n; i-- > 0 && r >= 0 && holder == 0;) {
		r = holder_of(runtime, slots[i].interpreter, &holder);
		if (holder == slots[i].state)
			holder = 0;
	}
	if (r < 0)
		return r;
	return holder == 0 ? -ESRCH
			   : page_cache_read(&runtime->page_cache, holder + reader_field(runtime, THREAD_IDENT), ret,
					     sizeof *ret);
}

bool py_has_gil(const struct py_runtime *runtime)
{
	return !runtime->layout.free_threaded;
}

int py_state_of(struct py_runtime *runtime, pid_t tid, struct py_state *ret)
{
	struct thread_slot slots[PY_MAX_STATES];
	int n, r = 0;

	n = reader_states(runtime, tid, false, slots, PY_MAX_STATES);
	if (n < 0)
		return n;
	/* With several interpreters, the thread is in the one whose GIL it holds, else in the last one it entered. */
	for (int i = n; i-- > 0 && r >= 0;) {
		struct py_state state;

		r = state_in(runtime, &slots[i], &state);
		if (r >= 0 && (i == n - 1 || state.holds_gil == PY_YES || ret->holds_gil != PY_YES))
			*ret = state;
	}
	return r < 0 ? r : 0;
}

/* Size of libc's semaphore, which 2.7's lock uses. */
enum { SEMAPHORE_BYTES = 32 };

static bool is_within(uint64_t address, uint64_t start, uint64_t n_bytes)
{
	return start != 0 && address - start < n_bytes;
}

/* Address of the interpreter's GIL. -EFAULT. */
static int gil_of(struct py_runtime *runtime, uint64_t interpreter, uint64_t *ret)
{
	if (runtime->layout.field[GIL] == GIL_RUNTIME) {
		*ret = runtime->symbols.runtime + reader_field(runtime, RUNTIME_GIL);
		return 0;
	}
	return page_cache_read(&runtime->page_cache, interpreter + reader_field(runtime, INTERPRETER_GIL), ret,
			       sizeof *ret);
}

static enum py_answer waits_for_any(struct py_runtime *runtime, const struct thread_slot *slots, int n, uint64_t futex)
{
	enum py_answer result = PY_NO;

	for (int i = 0; i < n; i++) {
		uint64_t gil;

		if (gil_of(runtime, slots[i].interpreter, &gil) < 0)
			result = PY_UNKNOWN;
		else if (is_within(futex, gil, reader_field(runtime, GIL_BYTES)))
			return PY_YES;
	}
	return result;
}

static enum py_answer waits_for_lock(struct py_runtime *runtime, uint64_t futex)
{
	uint64_t lock;

	if (runtime->symbols.lock == 0 ||
	    page_cache_read(&runtime->page_cache, runtime->symbols.lock, &lock, sizeof lock) < 0)
		return PY_UNKNOWN;
	return answer(is_within(futex, lock, SEMAPHORE_BYTES));
}

enum py_answer py_waits_for_gil(struct py_runtime *runtime, pid_t tid, uint64_t futex)
{
	const struct py_symbols *symbols = &runtime->symbols;
	struct thread_slot slots[PY_MAX_STATES];
	int n;

	n = reader_states(runtime, tid, false, slots, PY_MAX_STATES);
	if (n < 0)
		return n == -ESRCH ? PY_NO : PY_UNKNOWN;
	switch (runtime->layout.field[GIL]) {
	case GIL_LOCK:
		return waits_for_lock(runtime, futex);
	case GIL_VARIABLES: /* threads wait on none of its other variables */
		return answer(is_within(futex, symbols->data_start, symbols->data_end - symbols->data_start));
	default:
		return waits_for_any(runtime, slots, n, futex);
	}
}
