/* SPDX-License-Identifier: MIT */
/* script_slot.c - where a thread of CPython 3.14 and later finds a script to run on behalf of another process.
 *
 * Between two instructions a thread whose breaker is set runs the script in its slot (PEP 768). Offsets are the
 * runtime's own (_Py_DebugOffsets.debugger_support).
 * Source: Include/internal/pycore_debug_offsets.h, Include/cpython/pystate.h, Python/ceval_gil.c of 3.14 and 3.15.
 */
#include <errno.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { PLEASE_STOP = 1 << 5, MAX_PATH = 4096 };

static int is_of_main_interpreter(struct py_runtime *runtime, const struct thread_slot *slot)
{
	uint64_t id;
	int r = remote_read(runtime->remote, RADDR(slot->interpreter + reader_field(runtime, INTERPRETER_ID)), &id,
			    sizeof id);

	return r < 0 ? r : id == 0;
}

/* Use the main interpreter only: a thread may have a state in several. */
static int find_state(struct py_runtime *runtime, pid_t tid, struct thread_slot *ret)
{
	struct thread_slot slots[PY_MAX_STATES];
	int n;

	py_begin_sample(runtime);
	n = reader_states(runtime, tid, true, slots, N_ELEMENTS(slots));
	for (int i = 0; i < n; i++)
		if (is_of_main_interpreter(runtime, &slots[i]) == 1) {
			*ret = slots[i];
			return 0;
		}
	return n < 0 ? n : -ESRCH;
}

int py_script_slot(struct py_runtime *runtime, pid_t tid, struct py_script_slot *ret)
{
	struct thread_slot slot;
	uint64_t debugger;
	int32_t enabled;
	int r;

	if (!reader_has(runtime, DEBUGGER_PENDING))
		return -EOPNOTSUPP;
	if (reader_field(runtime, DEBUGGER_SCRIPT_BYTES) > MAX_PATH)
		return -EOPNOTSUPP;
	r = find_state(runtime, tid, &slot);
	if (r < 0)
		return r;
	r = remote_read(runtime->remote, RADDR(slot.interpreter + reader_field(runtime, INTERPRETER_REMOTE_DEBUG)),
			&enabled, sizeof enabled);
	if (r < 0)
		return r;
	if (enabled != 1)
		return -EACCES;
	debugger = slot.state + reader_field(runtime, THREAD_DEBUGGER);
	*ret = (struct py_script_slot){
		.breaker = slot.state + reader_field(runtime, THREAD_BREAKER),
		.breaker_bit = PLEASE_STOP,
		.pending = debugger + reader_field(runtime, DEBUGGER_PENDING),
		.script = debugger + reader_field(runtime, DEBUGGER_SCRIPT),
		.script_bytes = reader_field(runtime, DEBUGGER_SCRIPT_BYTES),
	};
	return 0;
}
