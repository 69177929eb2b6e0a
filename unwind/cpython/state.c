/* state.c - who holds the GIL, and whether garbage is being collected.
 *
 * up to 3.11  the runtime has the thread that holds the GIL, or 0.
 * 3.12 on     each interpreter points to a GIL, its own or the main one's: whether
 *             it is taken, and who took it last.
 * Free-threaded builds may have none.
 */
#include "unwind/cpython/reader.h"

static enum py_answer answer(bool value)
{
	return value ? PY_YES : PY_NO;
}

static enum py_answer is_current(struct py_runtime *runtime, uint64_t address, uint64_t state)
{
	uint64_t current;

	if (window_read(&runtime->window, address, &current, sizeof current) < 0)
		return PY_UNKNOWN;
	return answer(current == state);
}

static enum py_answer holds_gil_of(struct py_runtime *runtime, uint64_t interpreter, uint64_t state)
{
	uint64_t own = reader_field(runtime, INTERPRETER_OWN_GIL), gil, holder;
	uint32_t locked, enabled = 1;

	if (window_read(&runtime->window, interpreter + reader_field(runtime, INTERPRETER_GIL), &gil, sizeof gil) < 0)
		return PY_UNKNOWN;
	if (gil == 0)
		return PY_NO;
	if (window_read(&runtime->window, gil + reader_field(runtime, INTERPRETER_OWN_GIL_LOCKED) - own, &locked,
			sizeof locked) < 0 ||
	    window_read(&runtime->window, gil + reader_field(runtime, INTERPRETER_OWN_GIL_HOLDER) - own, &holder,
			sizeof holder) < 0)
		return PY_UNKNOWN;
	if (reader_has(runtime, GIL_ENABLED) &&
	    window_read(&runtime->window, gil + reader_field(runtime, GIL_ENABLED), &enabled, sizeof enabled) < 0)
		return PY_UNKNOWN;
	return answer(enabled && locked == 1 && holder == state);
}

static enum py_answer holds_gil(struct py_runtime *runtime, uint64_t interpreter, uint64_t state)
{
	if (reader_has(runtime, INTERPRETER_GIL))
		return holds_gil_of(runtime, interpreter, state);
	if (reader_has(runtime, RUNTIME_CURRENT_THREAD))
		return is_current(runtime, runtime->symbols.runtime + reader_field(runtime, RUNTIME_CURRENT_THREAD),
				  state);
	return is_current(runtime, runtime->symbols.current_thread, state);
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
	if (address == 0 || window_read(&runtime->window, address, &collecting, sizeof collecting) < 0)
		return PY_UNKNOWN;
	return answer(collecting != 0);
}

int py_state_of(struct py_runtime *runtime, pid_t tid, struct py_state *ret)
{
	uint64_t state, interpreter, id = 0;
	int r;

	r = reader_thread(runtime, tid, &state, &interpreter);
	if (r >= 0 && reader_has(runtime, INTERPRETER_ID))
		r = window_read(&runtime->window, interpreter + reader_field(runtime, INTERPRETER_ID), &id, sizeof id);
	if (r < 0)
		return r;
	*ret = (struct py_state){
		.interpreter = id,
		.holds_gil = holds_gil(runtime, interpreter, state),
		.collects = collects(runtime, interpreter),
	};
	return 0;
}
