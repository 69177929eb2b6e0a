/* SPDX-License-Identifier: MIT */
/* test_agent_frames.c - the agent's reader of the own thread's Python frames, on made interpreters.
 *
 * Interpreters lie in memory of this test, by layouts like those of three releases. Each pointer in them is then replaced
 * by values that cannot be read, each structure is put across the ends of readable pages, and another thread changes
 * what is read. The reader must end, and what it found before must be right.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/agent/frames.h"

enum {
	PAGE = 4096,
	ARENA_BYTES = 256 * PAGE,
	TID = 4242,
	MAX_FRAMES = 700,
	FEW_FRAMES = 20,
	N_CODES = 7, /* fewer than frames: functions that call themselves */
	N_CFRAMES = 3,
	AT = 5,           /* the frame that is changed */
	ROOM_BYTES = 512, /* between structures */
	OTHER_THREADS = 3,
	SHIM_OWNER = 3,
};

#define UNMAPPED UINT64_C(0x10000) /* nothing is put so low without a request */
#define NON_CANONICAL UINT64_C(0x0000800000000000)
#define OF_THE_KERNEL UINT64_C(0xffffffff81000000)
#define VSYSCALL UINT64_C(0xffffffffff600000)

/* ---- Layouts: not those of a release, but with all that releases differ in ---- */

/* Frames are objects, threads have pthread_self(), one word names the holder of the GIL: up to 3.10. */
static const struct python_layout with_objects = {
	.id = 7,
	.roots_span = 24,
	.pthread_tid = 720,
	.interpreter_next = 0,
	.interpreter_threads = 8,
	.interpreter_span = 16,
	.thread_span = 40,
	.thread_next = 0,
	.thread_interpreter = 8,
	.thread_id = 32,
	.thread_top = 24,
	.thread_root_cframe = PYTHON_ABSENT,
	.frame_span = 68,
	.frame_code = 32,
	.frame_previous = 24,
	.frame_type = 8,
	.frame_instruction = 64,
	.frame_instruction_bytes = 4,
	.frame_entry = PYTHON_ABSENT,
	.frame_owner = PYTHON_ABSENT,
	.frame_bytecode_index = PYTHON_ABSENT,
	.shim_owner = PYTHON_ABSENT,
	.code_span = 104,
	.code_name = 56,
	.code_file = 48,
	.code_lines = 64,
	.code_first_line = 40,
	.code_version = PYTHON_ABSENT,
	.code_size = 96,
	.name_identity = 16,
	.interpreter_gil = PYTHON_ABSENT,
	.interpreter_collecting = PYTHON_ABSENT,
};

/* Threads have their number, and a chain of _PyCFrames: 3.11, 3.12. */
static const struct python_layout with_cframes = {
	.id = 8,
	.roots_span = 8,
	.pthread_tid = PYTHON_ABSENT,
	.interpreter_next = 8,
	.interpreter_threads = 32,
	.interpreter_start = 8,
	.interpreter_span = 48,
	.thread_span = 72,
	.thread_next = 8,
	.thread_interpreter = 16,
	.thread_id = 64,
	.thread_top = 56,
	.thread_root_cframe = 96,
	.cframe_span = 24,
	.cframe_frame = 8,
	.cframe_previous = 16,
	.frame_span = 72,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_before = 800,
	.frame_type = PYTHON_ABSENT,
	.frame_instruction = 56,
	.frame_instruction_bytes = 8,
	.frame_entry = 68,
	.frame_owner = 69,
	.frame_bytecode_index = PYTHON_ABSENT,
	.shim_owner = PYTHON_ABSENT,
	.code_span = 128,
	.code_name = 112,
	.code_file = 104,
	.code_lines = 120,
	.code_first_line = 72,
	.code_version = PYTHON_ABSENT,
	.code_size = 16,
	.name_identity = 16,
	.interpreter_gil = 40,
	.gil_span = 20,
	.gil_locked = 16,
	.gil_last_holder = 8,
	.gil_enabled = PYTHON_ABSENT,
	.interpreter_collecting = 48,
};

/* Tagged pointers to code, shims at the end, codes with versions: from 3.13. */
static const struct python_layout with_shims = {
	.id = 9,
	.roots_span = 8,
	.pthread_tid = PYTHON_ABSENT,
	.interpreter_next = 8,
	.interpreter_threads = 32,
	.interpreter_start = 8,
	.interpreter_span = 48,
	.thread_span = 72,
	.thread_next = 8,
	.thread_interpreter = 16,
	.thread_id = 64,
	.thread_top = 56,
	.thread_root_cframe = PYTHON_ABSENT,
	.frame_span = 80,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_before = 800,
	.frame_type = PYTHON_ABSENT,
	.frame_instruction = 56,
	.frame_instruction_bytes = 8,
	.frame_entry = PYTHON_ABSENT,
	.frame_owner = 74,
	.frame_bytecode_index = 76,
	.shim_owner = SHIM_OWNER,
	.code_span = 144,
	.code_name = 120,
	.code_file = 112,
	.code_lines = 136,
	.code_first_line = 68,
	.code_version = 72,
	.code_size = 16,
	.name_identity = PYTHON_ABSENT,
	.interpreter_gil = 40,
	.gil_span = 24,
	.gil_locked = 16,
	.gil_last_holder = 8,
	.gil_enabled = 20,
	.interpreter_collecting = 48,
};

/* ---- An interpreter ---- */

/* Addresses of its structures. */
struct made {
	struct python_layout layout;
	uint64_t roots, interpreter, gil, thread, others[OTHER_THREADS];
	uint64_t cframes[N_CFRAMES];
	uint64_t frames[MAX_FRAMES], codes[N_CODES], names[N_CODES];
	size_t n_frames;
};

static uint8_t *arena;             /* readable, up to ... */
static uint64_t refused, past_end; /* ... pages without rights; a page past the end of its file */
static struct frames_room *room;

static void set(uint64_t address, uint64_t value)
{
	memcpy((void *)(uintptr_t)address, &value, sizeof value);
}

static void set_half(uint64_t address, uint32_t value)
{
	memcpy((void *)(uintptr_t)address, &value, sizeof value);
}

static uint64_t get(uint64_t address)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
	return value;
}

static uint64_t thread_id(const struct python_layout *layout)
{
	return layout->pthread_tid == PYTHON_ABSENT ? TID : (uint64_t)pthread_self();
}

static bool is_shim(const struct made *made, size_t i)
{
	return made->layout.shim_owner != PYTHON_ABSENT && i + 1 == made->n_frames;
}

static void write_thread(const struct made *made, uint64_t address, uint64_t next, uint64_t id, uint64_t top)
{
	set(address + made->layout.thread_next, next);
	set(address + made->layout.thread_interpreter, made->interpreter);
	set(address + made->layout.thread_id, id);
	set(address + made->layout.thread_top, top);
}

static void write_threads(const struct made *made)
{
	const struct python_layout *layout = &made->layout;
	uint64_t top = made->n_frames > 0 ? made->frames[0] : 0;

	for (size_t i = 0; i < OTHER_THREADS; i++)
		write_thread(made, made->others[i], i + 1 < OTHER_THREADS ? made->others[i + 1] : made->thread, 1 + i,
			     0);
	if (layout->thread_root_cframe == PYTHON_ABSENT) {
		write_thread(made, made->thread, 0, thread_id(layout), top);
		return;
	}
	write_thread(made, made->thread, 0, thread_id(layout), made->cframes[0]);
	for (size_t i = 0; i < N_CFRAMES; i++) {
		set(made->cframes[i] + layout->cframe_frame, i == 0 ? top : 0xc000 + i);
		set(made->cframes[i] + layout->cframe_previous,
		    i + 1 < N_CFRAMES ? made->cframes[i + 1] : made->thread + layout->thread_root_cframe);
	}
}

static void write_frames(const struct made *made)
{
	const struct python_layout *layout = &made->layout;

	for (size_t i = 0; i < made->n_frames; i++) {
		uint64_t frame = made->frames[i], code = made->codes[i % N_CODES];

		set(frame + layout->frame_previous, i + 1 < made->n_frames ? made->frames[i + 1] : 0);
		set(frame + layout->frame_code, code | (layout->shim_owner != PYTHON_ABSENT ? 1 : 0));
		set_half(frame + layout->frame_instruction, 0x1000 + i);
		if (layout->frame_instruction_bytes == 8)
			set_half(frame + layout->frame_instruction + 4, 0);
		if (layout->frame_type != PYTHON_ABSENT)
			set(frame + layout->frame_type, 0x7e);
		if (layout->frame_bytecode_index != PYTHON_ABSENT)
			set_half(frame + layout->frame_bytecode_index, 3);
		if (layout->frame_owner != PYTHON_ABSENT)
			*(uint8_t *)(uintptr_t)(frame + layout->frame_owner) = is_shim(made, i) ? SHIM_OWNER : 1;
		if (layout->frame_entry != PYTHON_ABSENT)
			*(uint8_t *)(uintptr_t)(frame + layout->frame_entry) = i % 3 == 0;
	}
}

static void write_codes(const struct made *made)
{
	const struct python_layout *layout = &made->layout;

	for (size_t i = 0; i < N_CODES; i++) {
		uint64_t code = made->codes[i];

		set(code + layout->code_name, made->names[i]);
		set(code + layout->code_file, 0xf000 + i);
		set(code + layout->code_lines, 0xe000 + i);
		set(code + layout->code_size, 100 + i);
		set_half(code + layout->code_first_line, 10 + (uint32_t)i);
		if (layout->code_version != PYTHON_ABSENT)
			set_half(code + layout->code_version, 1000 + (uint32_t)i);
		if (layout->name_identity == PYTHON_ABSENT)
			continue;
		set(made->names[i] + layout->name_identity, 5 + i);
		set(made->names[i] + layout->name_identity + 8, 0xa5a5000 + i);
	}
}

/* All of it, where its structures are now. */
static void write_all(struct made *made)
{
	struct python_layout *layout = &made->layout;

	layout->roots = layout->interpreters = made->roots;
	set(made->roots, made->interpreter);
	if (layout->interpreter_gil == PYTHON_ABSENT) {
		layout->gil_holder = made->roots + 8;
		layout->collecting = made->roots + 16;
		set(layout->gil_holder, made->thread);
		set(layout->collecting, 0);
	} else {
		set(made->interpreter + layout->interpreter_gil, made->gil);
		set(made->interpreter + layout->interpreter_collecting, 0);
		set(made->gil + layout->gil_last_holder, made->thread);
		set_half(made->gil + layout->gil_locked, 1);
		if (layout->gil_enabled != PYTHON_ABSENT)
			set_half(made->gil + layout->gil_enabled, 1);
	}
	set(made->interpreter + layout->interpreter_next, 0);
	set(made->interpreter + layout->interpreter_threads, made->others[0]);
	write_threads(made);
	write_frames(made);
	write_codes(made);
}

static uint64_t next_place;

static uint64_t place(void)
{
	uint64_t at = next_place;

	next_place += ROOM_BYTES;
	assert_true(next_place <= (uint64_t)(uintptr_t)arena + ARENA_BYTES);
	return at;
}

static void make(const struct python_layout *layout, size_t n_frames, struct made *made)
{
	next_place = (uint64_t)(uintptr_t)arena + PAGE;
	memset(arena, 0, ARENA_BYTES);
	*made = (struct made){ .layout = *layout, .n_frames = n_frames };
	made->roots = place();
	made->interpreter = place();
	made->gil = place();
	made->thread = place();
	for (size_t i = 0; i < OTHER_THREADS; i++)
		made->others[i] = place();
	for (size_t i = 0; i < N_CFRAMES; i++)
		made->cframes[i] = place();
	for (size_t i = 0; i < N_CODES; i++) {
		made->codes[i] = place();
		made->names[i] = place();
	}
	for (size_t i = 0; i < n_frames; i++)
		made->frames[i] = place();
	write_all(made);
}

static size_t n_cframes(const struct made *made)
{
	return made->layout.thread_root_cframe == PYTHON_ABSENT ? 0 : N_CFRAMES;
}

/* ---- Reading it ---- */

/* NULL: no frames. A record's limits hold in any case. */
static const struct python_record *read_again(struct made *made)
{
	const struct python_record *record = NULL;
	uint32_t n_bytes;

	frames_begin(room);
	n_bytes = frames_read(room, &made->layout, TID, &record);
	if (n_bytes == 0)
		return NULL;
	assert_in_range(record->n_entries, 0, PYTHON_MAX_ENTRIES);
	assert_in_range(record->n_states, 1, PYTHON_MAX_STATES);
	assert_int_equal(n_bytes, sizeof *record + record->n_entries * sizeof(struct python_entry));
	assert_int_equal(record->layout_id, made->layout.id);
	assert_int_equal(record->tid, TID);
	return record;
}

/* By a thread that is not known yet. */
static const struct python_record *read_anew(struct made *made)
{
	frames_forget(room);
	return read_again(made);
}

static void assert_cframe(const struct made *made, const struct python_entry *entry, size_t i)
{
	assert_int_equal(entry->kind, PYTHON_ENTRY_CFRAME);
	assert_int_equal(entry->address, made->cframes[i]);
	assert_int_equal(entry->previous, get(made->cframes[i] + made->layout.cframe_previous));
	assert_int_equal(entry->instruction, get(made->cframes[i] + made->layout.cframe_frame));
}

static void assert_code(const struct made *made, const struct python_entry *entry, size_t i)
{
	const struct python_layout *layout = &made->layout;

	assert_int_equal(entry->name, made->names[i]);
	assert_int_equal(entry->file, 0xf000 + i);
	assert_int_equal(entry->lines, 0xe000 + i);
	assert_int_equal(entry->size, 100 + i);
	assert_int_equal(entry->first_line, 10 + i);
	assert_int_equal(entry->version, layout->code_version == PYTHON_ABSENT ? 0 : 1000 + i);
	assert_int_equal(entry->name_length, layout->name_identity == PYTHON_ABSENT ? 0 : 5 + i);
	assert_int_equal(entry->name_hash, layout->name_identity == PYTHON_ABSENT ? 0 : 0xa5a5000 + i);
}

static void assert_frame(const struct made *made, const struct python_entry *entry, size_t i)
{
	const struct python_layout *layout = &made->layout;

	assert_int_equal(entry->kind, PYTHON_ENTRY_FRAME);
	assert_int_equal(entry->address, made->frames[i]);
	assert_int_equal(entry->previous, i + 1 < made->n_frames ? made->frames[i + 1] : 0);
	assert_int_equal(entry->instruction, 0x1000 + i);
	assert_int_equal(entry->type, layout->frame_type == PYTHON_ABSENT ? 0 : 0x7e);
	assert_int_equal(entry->is_entry, layout->frame_entry == PYTHON_ABSENT ? 0 : i % 3 == 0);
	if (is_shim(made, i)) {
		assert_int_equal(entry->code, 0);
		return;
	}
	assert_int_equal(entry->code, made->codes[i % N_CODES]);
	assert_code(made, entry, i % N_CODES);
}

/* The first so many frames, after all _PyCFrames. */
static void assert_frames(const struct made *made, const struct python_record *record, size_t n)
{
	const struct python_entry *entries = python_entries(record);

	assert_true(record->n_entries >= n_cframes(made) + n);
	for (size_t i = 0; i < n_cframes(made); i++)
		assert_cframe(made, &entries[i], i);
	for (size_t i = 0; i < n; i++)
		assert_frame(made, &entries[n_cframes(made) + i], i);
}

static void assert_whole(const struct made *made, const struct python_record *record)
{
	assert_non_null(record);
	assert_int_equal(record->flags, PYTHON_GIL_KNOWN | PYTHON_GIL_HELD | PYTHON_GC_KNOWN);
	assert_int_equal(record->n_states, 1);
	assert_int_equal(record->states[0].state, made->thread);
	assert_int_equal(record->states[0].interpreter, made->interpreter);
	assert_int_equal(record->n_entries, n_cframes(made) + made->n_frames);
	assert_frames(made, record, made->n_frames);
}

static const struct python_layout *const all_layouts[] = { &with_objects, &with_cframes, &with_shims };

typedef void test_of_layout(const struct python_layout *layout);

static void with_all_layouts(test_of_layout *test)
{
	for (size_t i = 0; i < N_ELEMENTS(all_layouts); i++)
		test(all_layouts[i]);
}

/* ---- Tests ---- */

static void read_whole(const struct python_layout *layout)
{
	static const size_t counts[] = { 1, 2, FEW_FRAMES, 300 };
	struct made made;

	for (size_t i = 0; i < N_ELEMENTS(counts); i++) {
		make(layout, counts[i], &made);
		assert_whole(&made, read_anew(&made));
		assert_whole(&made, read_again(&made)); /* the thread is known */
	}
}

static void all_frames_are_read(void **state)
{
	(void)state;
	with_all_layouts(read_whole);
}

static void read_too_many(const struct python_layout *layout)
{
	const struct python_record *record;
	struct made made;
	size_t room_for;

	make(layout, 0, &made);
	room_for = PYTHON_MAX_ENTRIES - n_cframes(&made);
	for (size_t n = room_for - 1; n <= room_for + 1; n++) { /* one less than there is room for, and one more */
		make(layout, n, &made);
		record = read_anew(&made);
		assert_non_null(record);
		assert_int_equal(record->n_entries, MIN(n_cframes(&made) + n, (size_t)PYTHON_MAX_ENTRIES));
		assert_int_equal(record->flags & PYTHON_INCOMPLETE, n > room_for ? PYTHON_CUT : 0);
		assert_frames(&made, record, MIN(n, room_for));
	}
}

static void too_many_frames_are_cut(void **state)
{
	(void)state;
	with_all_layouts(read_too_many);
}

/* A chain that comes back to a frame: of one, of two, and to the first. */
static void read_cycles(const struct python_layout *layout)
{
	static const size_t back_to[] = { AT, AT - 1, 0 };
	const struct python_record *record;
	struct made made;

	for (size_t i = 0; i < N_ELEMENTS(back_to); i++) {
		make(layout, FEW_FRAMES, &made);
		set(made.frames[AT] + layout->frame_previous, made.frames[back_to[i]]);
		record = read_anew(&made);
		assert_non_null(record);
		assert_int_equal(record->n_entries, PYTHON_MAX_ENTRIES);
		assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_CUT);
		assert_frames(&made, record, AT);
	}
}

static void cycles_of_frames_end(void **state)
{
	const struct python_record *record;
	struct made made;

	(void)state;
	with_all_layouts(read_cycles);
	make(&with_cframes, FEW_FRAMES, &made);
	set(made.cframes[1] + with_cframes.cframe_previous, made.cframes[0]);
	record = read_anew(&made);
	assert_non_null(record);
	assert_int_equal(record->n_entries, PYTHON_MAX_ENTRIES);
	assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_CUT);
}

static void read_cycles_of_lists(const struct python_layout *layout)
{
	struct made made;

	make(layout, FEW_FRAMES, &made); /* of threads, without the own one in it */
	set(made.others[1] + layout->thread_next, made.others[0]);
	assert_null(read_anew(&made));
	make(layout, FEW_FRAMES, &made); /* and with it: found more often than there is room for */
	set(made.thread + layout->thread_next, made.thread);
	assert_null(read_anew(&made));
	make(layout, FEW_FRAMES, &made);
	set(made.interpreter + layout->interpreter_next, made.interpreter);
	assert_null(read_anew(&made));
	write_all(&made);
	assert_whole(&made, read_anew(&made));
}

static void cycles_of_threads_and_interpreters_end(void **state)
{
	(void)state;
	with_all_layouts(read_cycles_of_lists);
}

/* ---- Pointers that lead nowhere ---- */

enum field {
	ROOT,
	INTERPRETER_NEXT,
	INTERPRETER_THREADS,
	INTERPRETER_GIL,
	THREAD_NEXT,
	THREAD_INTERPRETER,
	THREAD_TOP,
	CFRAME_PREVIOUS,
	CFRAME_FRAME,
	FRAME_PREVIOUS,
	FRAME_CODE,
	CODE_NAME,
	N_FIELDS,
};

/* 0: the layout has none. */
static uint64_t field_address(const struct made *made, enum field field)
{
	const struct python_layout *layout = &made->layout;
	bool has_cframes = n_cframes(made) > 0;

	switch (field) {
	case ROOT:
		return made->roots;
	case INTERPRETER_NEXT:
		return made->interpreter + layout->interpreter_next;
	case INTERPRETER_THREADS:
		return made->interpreter + layout->interpreter_threads;
	case INTERPRETER_GIL:
		return layout->interpreter_gil == PYTHON_ABSENT ? 0 : made->interpreter + layout->interpreter_gil;
	case THREAD_NEXT:
		return made->thread + layout->thread_next;
	case THREAD_INTERPRETER:
		return made->thread + layout->thread_interpreter;
	case THREAD_TOP:
		return made->thread + layout->thread_top;
	case CFRAME_PREVIOUS:
		return has_cframes ? made->cframes[1] + layout->cframe_previous : 0;
	case CFRAME_FRAME:
		return has_cframes ? made->cframes[0] + layout->cframe_frame : 0;
	case FRAME_PREVIOUS:
		return made->frames[AT] + layout->frame_previous;
	case FRAME_CODE:
		return made->frames[AT] + layout->frame_code;
	case CODE_NAME:
		return layout->name_identity == PYTHON_ABSENT ? 0 : made->codes[AT] + layout->code_name;
	default:
		return 0;
	}
}

/* What is still right where this field leads to memory that cannot be read. */
static void assert_stopped(const struct made *made, enum field field, const struct python_record *record)
{
	size_t n_before = field == FRAME_PREVIOUS ? AT + 1 : AT;

	switch (field) {
	case INTERPRETER_GIL: /* not known who holds it; the frames are there */
		assert_non_null(record);
		assert_int_equal(record->flags & (PYTHON_INCOMPLETE | PYTHON_GIL_KNOWN), 0);
		assert_frames(made, record, made->n_frames);
		break;
	case THREAD_TOP:
	case CFRAME_FRAME:
		assert_non_null(record);
		assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_FAULT);
		break;
	case CFRAME_PREVIOUS:
		assert_non_null(record);
		assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_FAULT);
		assert_int_equal(record->n_entries, 2 + made->n_frames);
		for (size_t i = 0; i < made->n_frames; i++)
			assert_frame(made, &python_entries(record)[2 + i], i);
		break;
	case FRAME_PREVIOUS:
	case FRAME_CODE:
	case CODE_NAME:
		assert_non_null(record);
		assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_FAULT);
		assert_int_equal(record->n_entries, n_cframes(made) + n_before + 1);
		for (size_t i = 0; i < n_before - (field == FRAME_PREVIOUS); i++)
			assert_frame(made, &python_entries(record)[n_cframes(made) + i], i);
		break;
	default:
		assert_null(record);
	}
}

/* Each one in each field, of a thread that is not known and of one that is. */
static void read_unreadable(const struct python_layout *layout)
{
	const uint64_t nowhere[] = { 8,
				     PAGE - 8,
				     refused,
				     refused + PAGE - 8,
				     UNMAPPED,
				     past_end,
				     NON_CANONICAL,
				     UINT64_C(1) << 63,
				     OF_THE_KERNEL,
				     VSYSCALL,
				     UINT64_MAX - 7,
				     refused - 8 /* begins before it, and goes on there */ };
	struct made made;

	for (unsigned field = 0; field < N_FIELDS; field++) {
		make(layout, FEW_FRAMES, &made);
		if (field_address(&made, field) == 0)
			continue;
		for (size_t i = 0; i < N_ELEMENTS(nowhere); i++) {
			set(field_address(&made, field), nowhere[i]);
			assert_stopped(&made, field, read_anew(&made));
			write_all(&made);
			assert_whole(&made, read_anew(&made));
			set(field_address(&made, field), nowhere[i]);
			if (field != THREAD_NEXT) /* of a known thread it is not read */
				assert_stopped(&made, field, read_again(&made));
			write_all(&made);
		}
	}
}

static void memory_that_cannot_be_read_ends_the_walk(void **state)
{
	(void)state;
	with_all_layouts(read_unreadable);
}

/* Readable, but no such structure, or not where one can be. */
static void read_nonsense(const struct python_layout *layout)
{
	const uint64_t first = (uint64_t)(uintptr_t)arena;
	const uint64_t odd[] = { first, first + 1, first + 3, first + ARENA_BYTES - PAGE - 4,
				 (uint64_t)(uintptr_t)&read_nonsense };
	struct made made;

	for (unsigned field = 0; field < N_FIELDS; field++) {
		make(layout, FEW_FRAMES, &made);
		for (size_t i = 0; i < N_ELEMENTS(odd) && field_address(&made, field) != 0; i++) {
			set(field_address(&made, field), odd[i]);
			(void)read_anew(&made);
			write_all(&made);
			assert_whole(&made, read_again(&made));
		}
	}
}

static void nonsense_does_no_harm(void **state)
{
	(void)state;
	with_all_layouts(read_nonsense);
}

static void read_null(const struct python_layout *layout)
{
	const struct python_record *record;
	struct made made;

	for (unsigned field = 0; field < N_FIELDS; field++) {
		make(layout, FEW_FRAMES, &made);
		if (field_address(&made, field) == 0)
			continue;
		set(field_address(&made, field), 0);
		record = read_anew(&made);
		switch (field) {
		case INTERPRETER_NEXT:
		case THREAD_NEXT: /* the ends of lists */
			assert_whole(&made, record);
			break;
		case INTERPRETER_GIL: /* there is none */
			assert_non_null(record);
			assert_int_equal(record->flags, PYTHON_GIL_KNOWN | PYTHON_GC_KNOWN);
			break;
		case THREAD_TOP: /* no Python runs in it */
		case CFRAME_FRAME:
			assert_non_null(record);
			assert_int_equal(record->flags & PYTHON_INCOMPLETE, 0);
			assert_int_equal(record->n_entries, field == THREAD_TOP ? 0 : N_CFRAMES);
			break;
		case CFRAME_PREVIOUS:
			assert_non_null(record);
			assert_int_equal(record->flags & PYTHON_INCOMPLETE, 0);
			assert_int_equal(record->n_entries, 2 + made.n_frames);
			break;
		case FRAME_PREVIOUS: /* the outermost */
			assert_non_null(record);
			assert_int_equal(record->flags & PYTHON_INCOMPLETE, 0);
			assert_int_equal(record->n_entries, n_cframes(&made) + AT + 1);
			break;
		default:
			assert_stopped(&made, field, record);
		}
	}
}

static void null_is_an_end_or_a_fault(void **state)
{
	(void)state;
	with_all_layouts(read_null);
}

/* ---- Ends of pages ---- */

struct structure {
	uint64_t *address;
	uint32_t start, end; /* the bytes that are read */
};

static size_t structures_of(struct made *made, struct structure to[8])
{
	const struct python_layout *layout = &made->layout;
	uint32_t interpreter = (uint32_t)layout->interpreter_start;
	size_t n = 0;

	to[n++] = (struct structure){ &made->roots, 0, layout->roots_span };
	to[n++] = (struct structure){ &made->interpreter, interpreter, interpreter + layout->interpreter_span };
	to[n++] = (struct structure){ &made->others[0], 0, (uint32_t)layout->thread_span };
	to[n++] = (struct structure){ &made->thread, 0, (uint32_t)layout->thread_span };
	to[n++] = (struct structure){ &made->frames[AT], 0, (uint32_t)layout->frame_span };
	to[n++] = (struct structure){ &made->codes[AT], 0, (uint32_t)layout->code_span };
	if (layout->name_identity != PYTHON_ABSENT)
		to[n++] = (struct structure){ &made->names[AT], 0, (uint32_t)layout->name_identity + 16 };
	if (layout->thread_root_cframe != PYTHON_ABSENT)
		to[n++] = (struct structure){ &made->cframes[1], 0, (uint32_t)layout->cframe_span };
	return n;
}

/* The page's end at each word of each structure, where the next page can be read. */
static void read_across(const struct python_layout *layout)
{
	const uint64_t end = (uint64_t)(uintptr_t)arena + ARENA_BYTES - PAGE;
	struct structure structures[8];
	struct made made;
	size_t n;

	make(layout, FEW_FRAMES, &made);
	n = structures_of(&made, structures);
	for (size_t s = 0; s < n; s++) {
		for (uint64_t before = 0; before <= structures[s].end + 8; before += 8) {
			make(layout, FEW_FRAMES, &made);
			*structures[s].address = end - before;
			write_all(&made);
			assert_whole(&made, read_anew(&made));
			assert_whole(&made, read_again(&made));
		}
	}
}

static void structures_across_pages_are_read(void **state)
{
	(void)state;
	with_all_layouts(read_across);
}

/* Whether all before this many bytes of a structure, and nothing behind, can be read: rights of the last page change. */
static void read_cut(const struct python_layout *layout)
{
	uint8_t *last = arena + ARENA_BYTES - PAGE;
	struct structure structures[8];
	struct made made;
	size_t n;

	make(layout, FEW_FRAMES, &made);
	n = structures_of(&made, structures);
	for (size_t s = 0; s < n; s++) {
		for (uint64_t before = 8; before <= structures[s].end + 8; before += 8) {
			const struct python_record *record;

			make(layout, FEW_FRAMES, &made);
			*structures[s].address = (uint64_t)(uintptr_t)last - before;
			write_all(&made);
			assert_int_equal(mprotect(last, PAGE, PROT_NONE), 0);
			record = read_anew(&made);
			if (before >= structures[s].end)
				assert_whole(&made, record);
			else
				assert_true(!record || record->flags & PYTHON_FAULT);
			assert_int_equal(mprotect(last, PAGE, PROT_READ | PROT_WRITE), 0);
			assert_whole(&made, read_anew(&made));
		}
	}
}

static void structures_that_end_with_a_page_are_read(void **state)
{
	(void)state;
	with_all_layouts(read_cut);
}

/* A frame at the beginning of a page: what is read ahead of it must stay there. */
static void read_first_of_page(const struct python_layout *layout)
{
	uint8_t *page = arena + ARENA_BYTES - 2 * PAGE;
	struct made made;

	for (uint64_t behind = 0; behind <= 64; behind += 8) {
		make(layout, FEW_FRAMES, &made);
		made.frames[AT] = (uint64_t)(uintptr_t)page + PAGE + behind;
		write_all(&made);
		assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
		assert_whole(&made, read_anew(&made));
		assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	}
}

static void the_page_before_a_frame_is_not_read(void **state)
{
	(void)state;
	with_all_layouts(read_first_of_page);
}

static void how_much_can_be_read(void **state)
{
	const uint64_t first = (uint64_t)(uintptr_t)arena;
	sigset_t before, after;

	(void)state;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &before, NULL), 0);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
	frames_begin(room);
	assert_int_equal(frames_readable(room, first, 0), 0);
	assert_int_equal(frames_readable(room, first + 1, 1), 1);
	assert_int_equal(frames_readable(room, first + 1, ARENA_BYTES - 1),
			 ARENA_BYTES - 1); /* more pages than are kept */
	assert_int_equal(frames_readable(room, first, ARENA_BYTES + 1), ARENA_BYTES);
	assert_int_equal(frames_readable(room, refused - 9, 100), 9);
	assert_int_equal(frames_readable(room, refused, 8), 0);
	assert_int_equal(frames_readable(room, past_end, 8), 0);
	assert_int_equal(frames_readable(room, past_end - 8, 16), 8);
	assert_int_equal(frames_readable(room, 0, 8), 0);
	assert_int_equal(frames_readable(room, UINT64_MAX - 7, 8), 0);
	assert_int_equal(frames_readable(room, UINT64_MAX - 7, 100), 0);
	assert_int_equal(frames_readable(room, NON_CANONICAL, 8), 0);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
	assert_int_equal(sigismember(&after, SIGUSR2), 1);
	for (int signal = 1; signal < NSIG; signal++) /* asking changes no mask */
		assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
}

static uint64_t n_readable(uint64_t page)
{
	return frames_readable(room, page, 8);
}

/* Neighbours that the last sample read are asked for together; one that is gone does not take the other with it. */
static void a_page_is_readable_without_its_neighbour(void **state)
{
	const uint64_t first = (uint64_t)(uintptr_t)arena, second = first + PAGE, third = second + PAGE;

	(void)state;
	for (uint64_t gone = first; gone <= third; gone += PAGE) {
		frames_begin(room);
		assert_int_equal(frames_readable(room, first, 3 * PAGE), 3 * PAGE);
		assert_int_equal(mprotect((void *)(uintptr_t)gone, PAGE, PROT_NONE), 0);
		for (unsigned sample = 0; sample < 2; sample++) {
			frames_begin(room);
			for (uint64_t page = third; page >= first; page -= PAGE)
				assert_int_equal(n_readable(page), page == gone ? 0 : 8);
			frames_begin(room);
			assert_int_equal(n_readable(second), second == gone ? 0 : 8);
			assert_int_equal(n_readable(first), first == gone ? 0 : 8);
			assert_int_equal(n_readable(third), third == gone ? 0 : 8);
		}
		assert_int_equal(mprotect((void *)(uintptr_t)gone, PAGE, PROT_READ | PROT_WRITE), 0);
	}
}

/* What could be read in one sample is asked again in the next one. */
static void pages_are_asked_for_in_each_sample(void **state)
{
	uint8_t *last = arena + ARENA_BYTES - PAGE;
	const struct python_record *record;
	struct made made;

	(void)state;
	make(&with_shims, FEW_FRAMES, &made);
	made.frames[AT] = (uint64_t)(uintptr_t)last;
	write_all(&made);
	assert_whole(&made, read_anew(&made));
	assert_int_equal(mprotect(last, PAGE, PROT_NONE), 0);
	record = read_again(&made);
	assert_int_equal(mprotect(last, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_non_null(record);
	assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_FAULT);
	assert_frames(&made, record, AT);
	assert_whole(&made, read_again(&made));
}

/* ---- Threads ---- */

static void read_known(const struct python_layout *layout)
{
	struct made made;
	uint64_t moved;

	make(layout, FEW_FRAMES, &made);
	assert_whole(&made, read_anew(&made));
	/* Its state was freed, and is another thread's now. */
	set(made.thread + layout->thread_id, 99);
	assert_null(read_again(&made));
	/* The thread has another state: it is found once a list has another head. */
	moved = place();
	made.others[0] = place();
	made.thread = moved;
	write_all(&made);
	assert_whole(&made, read_again(&made));
	/* Another thread has this slot. */
	frames_forget(room);
	set(made.thread + layout->thread_id, 99);
	assert_null(read_again(&made));
}

static void a_known_thread_is_checked(void **state)
{
	(void)state;
	with_all_layouts(read_known);
}

/* What another thread sets in turn, until it is to end. */
struct changes {
	struct made *made;
	bool ends;
	unsigned n;
};

static void *change_frames(void *data)
{
	struct changes *changes = data;
	const struct made *made = changes->made;
	const struct python_layout *layout = &made->layout;
	const uint64_t top = n_cframes(made) > 0 ? made->cframes[0] + layout->cframe_frame
						 : made->thread + layout->thread_top;

	for (unsigned i = 0; !__atomic_load_n(&changes->ends, __ATOMIC_ACQUIRE); i++) {
		const uint64_t values[] = { made->frames[i % made->n_frames],       refused,     0,
					    made->frames[(i + 7) % made->n_frames], refused - 8, NON_CANONICAL };
		uint64_t at = made->frames[i % made->n_frames], value = values[i / 4 % N_ELEMENTS(values)];

		if (i % 4 == 0)
			at = top;
		else if (i % 4 == 3)
			at += (uint64_t)layout->frame_code;
		else
			at += (uint64_t)layout->frame_previous;
		__atomic_store_n((uint64_t *)(uintptr_t)at, value, __ATOMIC_RELAXED);
		__atomic_fetch_add(&changes->n, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Entries are frames that have been there, each with what one read of it has shown. */
static void assert_possible(const struct made *made, const struct python_record *record)
{
	const struct python_entry *entries = python_entries(record);

	for (size_t i = n_cframes(made); i < record->n_entries; i++) {
		bool is_last_and_bad = i + 1 == record->n_entries && record->flags & PYTHON_FAULT;
		bool is_frame = false;

		for (size_t k = 0; k < made->n_frames; k++)
			is_frame |= entries[i].address == made->frames[k];
		assert_true(is_frame || is_last_and_bad);
		if (i + 1 < record->n_entries)
			assert_int_equal(entries[i].previous, entries[i + 1].address);
	}
}

static void read_changing(const struct python_layout *layout)
{
	struct made made;
	struct changes changes = { .made = &made };
	const struct python_record *record;
	pthread_t thread;

	make(layout, FEW_FRAMES, &made);
	frames_forget(room);
	assert_int_equal(pthread_create(&thread, NULL, change_frames, &changes), 0);
	for (unsigned i = 0; i < 5000 || __atomic_load_n(&changes.n, __ATOMIC_ACQUIRE) < 1000; i++) {
		record = read_again(&made);
		assert_non_null(record); /* its thread state stays */
		assert_possible(&made, record);
	}
	__atomic_store_n(&changes.ends, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	write_all(&made);
	assert_whole(&made, read_again(&made));
}

static void frames_that_change_meanwhile_do_no_harm(void **state)
{
	(void)state;
	with_all_layouts(read_changing);
}

/* ---- Memory ---- */

static uint8_t *map(size_t n_bytes, int rights)
{
	void *memory = mmap(NULL, n_bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/* Reading the second page of a file of one would be SIGBUS. */
static uint64_t map_past_end(void)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	uint8_t *memory;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	memory = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	return (uint64_t)(uintptr_t)memory + PAGE;
}

static int set_up(void **state)
{
	(void)state;
	arena = map(ARENA_BYTES + 2 * PAGE, PROT_READ | PROT_WRITE);
	refused = (uint64_t)(uintptr_t)arena + ARENA_BYTES;
	past_end = map_past_end();
	room = (struct frames_room *)map(frames_room_bytes(), PROT_READ | PROT_WRITE);
	return mprotect(arena + ARENA_BYTES, 2 * PAGE, PROT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_frames_are_read),
		cmocka_unit_test(too_many_frames_are_cut),
		cmocka_unit_test(cycles_of_frames_end),
		cmocka_unit_test(cycles_of_threads_and_interpreters_end),
		cmocka_unit_test(memory_that_cannot_be_read_ends_the_walk),
		cmocka_unit_test(nonsense_does_no_harm),
		cmocka_unit_test(null_is_an_end_or_a_fault),
		cmocka_unit_test(structures_across_pages_are_read),
		cmocka_unit_test(structures_that_end_with_a_page_are_read),
		cmocka_unit_test(the_page_before_a_frame_is_not_read),
		cmocka_unit_test(how_much_can_be_read),
		cmocka_unit_test(a_page_is_readable_without_its_neighbour),
		cmocka_unit_test(pages_are_asked_for_in_each_sample),
		cmocka_unit_test(a_known_thread_is_checked),
		cmocka_unit_test(frames_that_change_meanwhile_do_no_harm),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
