/* SPDX-License-Identifier: MIT */
/* record.c - frames that a BPF program read at a sample's instant, instead of memory.
 *
 * The program uses the layout of py_describe(), and records the fields of each frame, and the
 * identity of each code object (base/python_record.h). The record takes precedence over
 * memory, which is of a later moment; data missing in the record come from memory, and
 * py_record_sufficed() reports that.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

static int32_t end_of(const int32_t *offsets, size_t n, int32_t n_bytes)
{
	int32_t end = 0;

	for (size_t i = 0; i < n; i++)
		end = MAX(end, offsets[i] + n_bytes);
	return end;
}

/* Fields are read as words, whatever their size. */
#define SPAN(...)                                                                                                      \
	end_of((const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t),           \
	       sizeof(uint64_t))

static int describe_roots(struct py_runtime *runtime, struct python_layout *layout)
{
	uint64_t first;
	int r;

	r = reader_interpreters(runtime, &first);
	if (r < 0)
		return r;
	if (runtime->layout.field[ROOT] == ROOT_RUNTIME)
		layout->interpreters = runtime->symbols.runtime + reader_field(runtime, RUNTIME_INTERPRETERS);
	else
		layout->interpreters = runtime->symbols.interpreters;
	layout->interpreter = first;
	return 0;
}

static int describe_threads(struct py_runtime *runtime, struct python_layout *layout)
{
	const int32_t *field = runtime->layout.field;
	struct thread_slot state;
	bool has_cframes = field[ANCHOR] == ANCHOR_CFRAME;

	layout->interpreter_next = field[INTERPRETER_NEXT];
	layout->interpreter_threads = field[INTERPRETER_THREADS];
	layout->thread_next = field[THREAD_NEXT];
	layout->thread_interpreter = field[THREAD_INTERPRETER];
	layout->thread_top = field[has_cframes ? THREAD_CFRAME : THREAD_FRAME];
	layout->thread_root_cframe = has_cframes ? field[THREAD_ROOT_CFRAME] : PYTHON_ABSENT;
	layout->pthread_tid = PYTHON_ABSENT;
	layout->thread_id = field[THREAD_NATIVE_ID];
	if (!reader_has(runtime, THREAD_NATIVE_ID)) {
		layout->thread_id = field[THREAD_PTHREAD];
		if (runtime->pthread_tid == ABSENT) /* any thread shows the offset */
			(void)reader_states(runtime, runtime->pid, true, &state, 1);
		if (runtime->pthread_tid == ABSENT)
			return -EAGAIN;
		layout->pthread_tid = runtime->pthread_tid;
	}
	layout->thread_span = SPAN(layout->thread_next, layout->thread_interpreter, layout->thread_top,
				   layout->thread_id);
	if (!has_cframes)
		return 0;
	layout->cframe_frame = field[CFRAME_FRAME];
	layout->cframe_previous = field[CFRAME_PREVIOUS];
	layout->cframe_span = SPAN(layout->cframe_frame, layout->cframe_previous);
	return 0;
}

/*
 * A part of memory to read at once: required fields and other fields nearby. It is shorter than a page, so that each
 * page it touches has a required field.
 */
struct near {
	uint64_t start, end, needed_end;
};

static struct near near_to(uint64_t address)
{
	return (struct near){ address & ~(uint64_t)7, address + sizeof(uint64_t), address + sizeof(uint64_t) };
}

static void take_in(struct near *near, uint64_t address)
{
	uint64_t start = MIN(near->start, address & ~(uint64_t)7), end = MAX(near->end, address + sizeof(uint64_t));

	if (end - start > PYTHON_MAX_RANGE || near->needed_end - start > PYTHON_MAX_SPAN)
		return;
	near->start = start;
	near->end = end;
}

static void describe_single_addresses(struct python_layout *layout)
{
	struct near near = near_to(layout->interpreters);

	if (layout->gil_holder)
		take_in(&near, layout->gil_holder);
	if (layout->collecting)
		take_in(&near, layout->collecting);
	layout->roots = near.start;
	layout->roots_span = (uint32_t)(near.end - near.start);
}

static void describe_interpreters(struct python_layout *layout)
{
	int32_t first = MIN(layout->interpreter_next, layout->interpreter_threads);
	struct near near = near_to((uint64_t)MAX(layout->interpreter_next, layout->interpreter_threads));

	take_in(&near, (uint64_t)first);
	if (layout->interpreter_gil != PYTHON_ABSENT)
		take_in(&near, (uint64_t)layout->interpreter_gil);
	if (layout->interpreter_collecting != PYTHON_ABSENT)
		take_in(&near, (uint64_t)layout->interpreter_collecting);
	layout->interpreter_start = (int32_t)near.start;
	layout->interpreter_span = (uint32_t)(near.end - near.start);
}

/* Callers' frames precede a frame on the thread's data stack: this many bytes hold about a dozen. */
enum { FRAME_WINDOW = 2040 };

static void describe_frames(const struct py_runtime *runtime, struct python_layout *layout)
{
	const int32_t *field = runtime->layout.field;
	bool by_pointer = reader_has(runtime, FRAME_INSTRUCTION);

	layout->frame_code = field[FRAME_CODE];
	layout->frame_previous = field[FRAME_PREVIOUS];
	layout->frame_type = field[ENTRY] == ENTRY_EACH ? field[OBJECT_TYPE] : PYTHON_ABSENT;
	layout->frame_instruction = field[by_pointer ? FRAME_INSTRUCTION : FRAME_LAST_INSTRUCTION];
	layout->frame_instruction_bytes = by_pointer ? sizeof(uint64_t) : sizeof(uint32_t);
	layout->frame_entry = field[FRAME_ENTRY];
	layout->frame_owner = field[FRAME_OWNER];
	layout->frame_bytecode_index = field[FRAME_BYTECODE_INDEX];
	layout->shim_owner = field[ENTRY] == ENTRY_OWNER ? OWNER_SHIM : PYTHON_ABSENT;
	/* Never read past the structure: the next page may be unmapped. */
	layout->frame_span = runtime->layout.frame_bytes;
	layout->frame_before = field[ENTRY] == ENTRY_EACH ? 0 : (uint32_t)(FRAME_WINDOW - layout->frame_span) & ~7U;
}

static void describe_codes(const struct py_runtime *runtime, struct python_layout *layout)
{
	const int32_t *field = runtime->layout.field;

	layout->code_name = field[reader_has(runtime, CODE_QUALNAME) ? CODE_QUALNAME : CODE_NAME];
	layout->code_file = field[CODE_FILE];
	layout->code_lines = field[CODE_LINES];
	layout->code_first_line = field[CODE_FIRST_LINE];
	layout->code_version = field[CODE_VERSION];
	layout->code_size = field[reader_has(runtime, CODE_BYTECODE_OBJECT) ? CODE_BYTECODE_OBJECT : OBJECT_SIZE];
	layout->name_identity = reader_has(runtime, CODE_VERSION) ? PYTHON_ABSENT : field[STRING_LENGTH];
	layout->code_span = SPAN(layout->code_name, layout->code_file, layout->code_lines, layout->code_first_line,
				 layout->code_version, layout->code_size);
}

/* The same fields as in state.c. */
static void describe_gil(const struct py_runtime *runtime, struct python_layout *layout)
{
	const int32_t *field = runtime->layout.field;
	int32_t own = field[INTERPRETER_OWN_GIL];

	layout->interpreter_gil = layout->gil_enabled = layout->interpreter_collecting = PYTHON_ABSENT;
	if (reader_has(runtime, INTERPRETER_GIL)) {
		layout->interpreter_gil = field[INTERPRETER_GIL];
		layout->gil_locked = field[INTERPRETER_OWN_GIL_LOCKED] - own;
		layout->gil_last_holder = field[INTERPRETER_OWN_GIL_HOLDER] - own;
		layout->gil_enabled = field[GIL_ENABLED];
		layout->gil_span = SPAN(layout->gil_locked, layout->gil_last_holder, layout->gil_enabled);
	} else if (reader_has(runtime, RUNTIME_CURRENT_THREAD)) {
		layout->gil_holder = runtime->symbols.runtime + reader_field(runtime, RUNTIME_CURRENT_THREAD);
	} else {
		layout->gil_holder = runtime->symbols.current_thread;
	}
	if (reader_has(runtime, INTERPRETER_GC))
		layout->interpreter_collecting = field[INTERPRETER_GC] + field[GC_COLLECTING];
	else if (reader_has(runtime, RUNTIME_GC))
		layout->collecting = runtime->symbols.runtime + reader_field(runtime, RUNTIME_GC) +
				     reader_field(runtime, GC_COLLECTING);
	else
		layout->collecting = runtime->symbols.collecting;
}

int py_describe(struct py_runtime *runtime, struct python_layout *ret)
{
	struct python_layout layout = { 0 };
	int r;

	r = describe_roots(runtime, &layout);
	if (r >= 0)
		r = describe_threads(runtime, &layout);
	if (r < 0)
		return r;
	describe_frames(runtime, &layout);
	describe_codes(runtime, &layout);
	describe_gil(runtime, &layout);
	describe_single_addresses(&layout);
	describe_interpreters(&layout);
	if (layout.thread_span > PYTHON_MAX_SPAN || layout.frame_span > PYTHON_MAX_SPAN ||
	    layout.code_span > PYTHON_MAX_SPAN || layout.gil_span > PYTHON_MAX_SPAN ||
	    layout.interpreter_start > MIN(layout.interpreter_next, layout.interpreter_threads))
		return -EOPNOTSUPP;
	*ret = layout;
	return 0;
}

void py_take_record(struct py_runtime *runtime, const struct python_record *record)
{
	runtime->record = record;
	runtime->record_next = 0;
	runtime->record_is_whole = (record->flags & PYTHON_INCOMPLETE) == 0;
}

bool py_record_sufficed(const struct py_runtime *runtime)
{
	return runtime->record && runtime->record_is_whole;
}

/* The next request usually is for the next entry. */
const struct python_entry *reader_recorded(struct py_runtime *runtime, unsigned kind, uint64_t address)
{
	const struct python_entry *entries;
	size_t n;

	if (!runtime->record || !runtime->record_is_whole)
		return NULL;
	entries = python_entries(runtime->record);
	n = runtime->record->n_entries;
	for (size_t i = 0; i < n; i++) {
		size_t at = (runtime->record_next + i) % n;

		if (entries[at].address == address && entries[at].kind == kind) {
			runtime->record_next = at + 1;
			return &entries[at];
		}
	}
	runtime->record_is_whole = false;
	return NULL;
}

int reader_recorded_states(const struct py_runtime *runtime, struct thread_slot *states, size_t max)
{
	const struct python_record *record = runtime->record;
	size_t n = MIN((size_t)record->n_states, max);

	for (size_t i = 0; i < n; i++)
		states[i] = (struct thread_slot){
			.tid = (pid_t)record->tid,
			.state = record->states[i].state,
			.interpreter = record->states[i].interpreter,
		};
	return (int)n;
}

int reader_top(struct py_runtime *runtime, uint64_t state, uint64_t field, uint64_t *ret)
{
	for (size_t i = 0; runtime->record && i < runtime->record->n_states; i++)
		if (runtime->record->states[i].state == state) {
			*ret = runtime->record->states[i].top;
			return 0;
		}
	return page_cache_read(&runtime->page_cache, state + field, ret, sizeof *ret);
}
