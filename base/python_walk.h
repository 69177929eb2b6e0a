/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* python_walk.h - walks a thread's Python frames at its own instant, into a struct python_record.
 *
 * Compiled for BPF (src/capture/bpf/frames.bpf.c) and for the agent inside a process (src/agent/frames.c). A struct
 * python_layout is all it knows of an interpreter. The includer defines __always_inline and bpf_loop(), as the kernel's
 * helper of that name, and the functions declared below that read and remember.
 *
 * A thread's states are cached by its id. They are valid only while each still has this thread's id, and while no list
 * of threads has another head: a new state, with which the thread may have entered another interpreter, comes there.
 */
#ifndef PROBING_BASE_PYTHON_WALK_H
#define PROBING_BASE_PYTHON_WALK_H

#include <stdbool.h>

#include "base/python_entry.h"
#include "base/python_record.h"

enum {
	MAX_INTERPRETERS = 64,
	MAX_STEPS = 1 << 14, /* limit over all threads of all interpreters */
	RANGE_MASK = 2047,
	ENTRIES_MASK = PYTHON_MAX_ENTRIES - 1,
	SEEN_MASK = 255,
	PAGE_MASK = 4095, /* of the smallest page */
};

/*
 * Target memory that this run has read and may need again; it cannot change within one interrupt. One read call costs
 * as much as copying a few hundred bytes, so read ahead.
 */
struct cached_range {
	uint64_t start, n_bytes; /* address and length; length 0: empty */
	_Alignas(8) uint8_t bytes[RANGE_MASK + 1 + BYTES_MASK + 1 + sizeof(uint64_t)];
};

struct known_thread {
	uint64_t layout_id, lists;
	uint64_t pthread;
	uint64_t n_states;
	struct python_state states[PYTHON_MAX_STATES];
};

/*
 * Where a walk is. Not on the stack, whose values the verifier knows: it would check each step once for each way on which
 * they differ.
 */
struct position {
	struct known_thread thread;
	uint64_t interpreter, state, address, root;
	uint64_t tables; /* the process's page tables; 0: read through helpers instead */
	uint32_t tid;    /* in the thread's own PID namespace */
	uint32_t failed, ended, is_new;
};

/* Per-run data. */
struct room {
	struct position now;
	struct python_record record;
	struct python_entry entries[PYTHON_MAX_ENTRIES];
	uint8_t bytes[BYTES_MASK + 1 + sizeof(uint64_t)];
	struct cached_range roots, interpreter, thread, frames;
	uint16_t seen[SEEN_MASK + 1]; /* by hash of a code address: index of an entry that may have that code */
};

_Static_assert((PYTHON_MAX_ENTRIES & ENTRIES_MASK) == 0 && PYTHON_MAX_RANGE <= (int)RANGE_MASK, "masks");

struct walk {
	struct room *room;
	const struct python_layout *layout;
};

/* Reads the sampled process' memory. Less than 0: it cannot be read; the destination may have been written. */
static __always_inline long read_memory(struct room *room, void *to, uint32_t n_bytes, uint64_t address);
/* Whether an id that a thread state has, libc's thread structure, is the sampled thread's. */
static __always_inline bool is_own_pthread(struct walk *walk, uint64_t id);
/* The thread's id in its own PID namespace; 0: unknown. */
static __always_inline uint32_t own_tid(const struct python_layout *layout, uint32_t kernel_tid);
/* What keep_thread() has kept of the thread; NULL: nothing. */
static __always_inline const struct known_thread *known_thread(struct walk *walk, uint32_t kernel_tid);
static __always_inline void keep_thread(struct walk *walk, uint32_t kernel_tid);
/* Whether this is the first time that a code object with this key is met. */
static __always_inline bool meet_code(struct walk *walk, uint64_t key);

static __always_inline long read_bytes(struct room *room, int32_t n_bytes, uint64_t address)
{
	return read_memory(room, room->bytes, (uint32_t)n_bytes & BYTES_MASK, address);
}

static __always_inline uint64_t word(const struct room *room, int32_t offset)
{
	return word_at(room->bytes, offset);
}

static __always_inline uint32_t half(const struct room *room, int32_t offset)
{
	return half_at(room->bytes, offset);
}

/* Return n_bytes at an address if the cached range contains them, else NULL. Addresses are word-aligned. */
static __always_inline const uint8_t *find(const struct cached_range *range, uint64_t address, uint32_t n_bytes)
{
	uint64_t offset = address - range->start;

	/* A single branch: the verifier explores each branch again at every inlined call. */
	if ((offset > RANGE_MASK) | (offset % 8 != 0) | (offset + n_bytes > range->n_bytes))
		return NULL;
	return range->bytes + ((uint32_t)offset & RANGE_MASK & ~7U);
}

/* Replace the contents of a range. False: the memory cannot be read. */
static __always_inline bool fill(struct room *room, struct cached_range *range, uint64_t start, uint32_t n_bytes)
{
	range->start = start;
	range->n_bytes = n_bytes;
	if (read_memory(room, range->bytes, n_bytes & RANGE_MASK, start) == 0)
		return true;
	range->n_bytes = 0;
	return false;
}

/* Return n_bytes at an address, read only if not cached. NULL: the memory cannot be read. */
static __always_inline const uint8_t *read_range(struct room *room, struct cached_range *range, uint64_t address,
						 uint32_t n_bytes)
{
	const uint8_t *bytes = find(range, address, n_bytes);

	if (bytes)
		return bytes;
	return fill(room, range, address, n_bytes) ? range->bytes : NULL;
}

/*
 * Return the bytes of a frame; NULL: they cannot be read. Also copy what precedes it on its page, mostly callers'
 * frames, as far as the buffer allows. Stay on the page: the previous one may be missing, and a fault costs more than
 * all reads.
 */
static __always_inline const uint8_t *copy_frame(struct room *room, const struct python_layout *layout,
						 uint64_t address)
{
	uint32_t span = (uint32_t)layout->frame_span;
	uint64_t start = address - layout->frame_before, page = address & ~(uint64_t)PAGE_MASK;
	const uint8_t *bytes = find(&room->frames, address, span);

	if (bytes)
		return bytes;
	if (start < page || start > address)
		start = page;
	if (address % 8 != 0) /* not a frame address */
		start = address;
	if (!fill(room, &room->frames, start, (uint32_t)(address - start) + span))
		return NULL;
	return room->frames.bytes + ((uint32_t)(address - start) & RANGE_MASK & ~7U);
}

/* Return the word at an address from the range, or read it alone. */
static __always_inline bool find_word(struct room *room, const struct cached_range *range, uint64_t address,
				      uint64_t *ret)
{
	const uint8_t *bytes = find(range, address, sizeof *ret);

	if (bytes) {
		*ret = word_at(bytes, 0);
		return true;
	}
	return read_memory(room, ret, sizeof *ret, address) == 0;
}

static __always_inline bool find_half(struct room *room, const struct cached_range *range, uint64_t address,
				      uint32_t *ret)
{
	uint32_t inside = address & 4;
	const uint8_t *bytes = find(range, address - inside, inside + (uint32_t)sizeof *ret);

	if (bytes) {
		*ret = half_at(bytes, (int32_t)inside);
		return true;
	}
	return read_memory(room, ret, sizeof *ret, address) == 0;
}

/* Read a field of an interpreter. */
static __always_inline uint64_t interpreter_word(struct walk *walk, uint64_t interpreter, int32_t field)
{
	uint64_t value = 0;

	if (read_memory(walk->room, &value, sizeof value, at(interpreter, field)) < 0)
		walk->room->now.failed = 1;
	return value;
}

static __always_inline uint64_t first_thread(struct walk *walk, uint64_t interpreter)
{
	return interpreter_word(walk, interpreter, walk->layout->interpreter_threads);
}

/* 0: there is no interpreter, or the memory cannot be read. */
static __always_inline uint64_t first_interpreter(struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	const uint8_t *roots;

	if (!layout->interpreters)
		return layout->interpreter;
	roots = read_range(walk->room, &walk->room->roots, layout->roots, layout->roots_span);
	return roots ? word_at(roots, (int32_t)(layout->interpreters - layout->roots)) : 0;
}

static __always_inline void note_list(struct walk *walk, uint64_t value)
{
	walk->room->now.thread.lists = (walk->room->now.thread.lists ^ value) * 0x9e3779b97f4a7c15;
}

/* Note an interpreter's address, its first thread state and that state's thread, which usually is the sampled one. */
static long note_interpreter(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	const uint8_t *interpreter, *thread;
	uint64_t head;

	interpreter = read_range(walk->room, &walk->room->interpreter,
				 at(walk->room->now.interpreter, layout->interpreter_start), layout->interpreter_span);
	if (!interpreter)
		return 1;
	head = word_at(interpreter, layout->interpreter_threads - layout->interpreter_start);
	note_list(walk, walk->room->now.interpreter);
	note_list(walk, head);
	if (head) {
		thread = read_range(walk->room, &walk->room->thread, head, (uint32_t)layout->thread_span);
		if (!thread)
			return 1;
		note_list(walk, word_at(thread, layout->thread_id));
	}
	walk->room->now.interpreter = word_at(interpreter, layout->interpreter_next - layout->interpreter_start);
	walk->room->now.ended = walk->room->now.interpreter == 0;
	return walk->room->now.ended;
}

/* Hash the interpreter and thread lists, to detect changes. False: they cannot be read. */
static __always_inline bool note_lists(struct walk *walk)
{
	walk->room->now.ended = 0;
	walk->room->now.thread.lists = 1;
	walk->room->now.interpreter = first_interpreter(walk);
	if (walk->room->now.interpreter == 0)
		return false;
	bpf_loop(MAX_INTERPRETERS, note_interpreter, walk, 0);
	return walk->room->now.ended;
}

/* Whether a thread state's thread id belongs to the sampled thread. */
static __always_inline bool is_ours(struct walk *walk, uint64_t id)
{
	return walk->layout->pthread_tid == PYTHON_ABSENT ? id == walk->room->now.tid : is_own_pthread(walk, id);
}

static __always_inline void keep_state(struct walk *walk)
{
	uint64_t n = walk->room->now.thread.n_states;

	if (n >= PYTHON_MAX_STATES) {
		walk->room->now.failed = 1;
		return;
	}
	walk->room->now.thread.states[n].state = walk->room->now.state;
	walk->room->now.thread.states[n].interpreter = walk->room->now.interpreter;
	walk->room->now.thread.n_states = n + 1;
}

/* Visit one thread state of any interpreter. */
static long search_thread(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;

	if (walk->room->now.state == 0) {
		walk->room->now.interpreter = interpreter_word(walk, walk->room->now.interpreter,
							       layout->interpreter_next);
		if (walk->room->now.failed || walk->room->now.interpreter == 0) {
			walk->room->now.ended = 1;
			return 1;
		}
		walk->room->now.state = first_thread(walk, walk->room->now.interpreter);
		return walk->room->now.failed != 0;
	}
	if (read_bytes(room, layout->thread_span, walk->room->now.state) < 0 ||
	    word(room, layout->thread_interpreter) != walk->room->now.interpreter) {
		walk->room->now.failed = 1;
		return 1;
	}
	walk->room->now.address = word(room, layout->thread_next);
	if (is_ours(walk, word(room, layout->thread_id))) {
		walk->room->now.thread.pthread = word(room, layout->thread_id);
		keep_state(walk);
	}
	walk->room->now.state = walk->room->now.address;
	return walk->room->now.failed != 0;
}

static __always_inline bool search_threads(struct walk *walk)
{
	walk->room->now.ended = 0;
	walk->room->now.thread.n_states = walk->room->now.thread.pthread = 0;
	walk->room->now.interpreter = first_interpreter(walk);
	walk->room->now.state = walk->room->now.interpreter ? first_thread(walk, walk->room->now.interpreter) : 0;
	if (walk->room->now.interpreter == 0 || walk->room->now.failed)
		return false;
	bpf_loop(MAX_STEPS, search_thread, walk, 0);
	return walk->room->now.ended && !walk->room->now.failed;
}

static __always_inline bool find_thread(struct walk *walk, uint32_t kernel_tid)
{
	const struct known_thread *known = known_thread(walk, kernel_tid);
	uint64_t lists;

	if (!note_lists(walk))
		return false;
	lists = walk->room->now.thread.lists;
	if (known && known->layout_id == walk->layout->id && known->lists == lists &&
	    (known->n_states == 0 || walk->layout->pthread_tid == PYTHON_ABSENT || is_ours(walk, known->pthread))) {
		walk->room->now.thread = *known;
		return true;
	}
	if (!search_threads(walk))
		return false;
	walk->room->now.thread.layout_id = walk->layout->id;
	walk->room->now.thread.lists = lists;
	/* If the lists changed during the search, the next sample searches again. */
	keep_thread(walk, kernel_tid);
	return true;
}

/* Append an entry to the record; NULL: the record is full. */
static __always_inline struct python_entry *new_entry(struct room *room)
{
	uint32_t n = room->record.n_entries;

	if (n >= PYTHON_MAX_ENTRIES) {
		room->record.flags |= PYTHON_CUT;
		return NULL;
	}
	room->record.n_entries = n + 1;
	return &room->entries[n];
}

static long add_cframe(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;
	struct python_entry *entry;

	if (walk->room->now.address == walk->room->now.root || walk->room->now.address == 0)
		return 1;
	if (read_bytes(room, layout->cframe_span, walk->room->now.address) < 0) {
		room->record.flags |= PYTHON_FAULT;
		return 1;
	}
	entry = new_entry(room);
	if (!entry)
		return 1;
	*entry = (struct python_entry){
		.address = walk->room->now.address,
		.previous = word(room, layout->cframe_previous),
		.instruction = word(room, layout->cframe_frame),
		.kind = PYTHON_ENTRY_CFRAME,
	};
	walk->room->now.address = entry->previous;
	return 0;
}

/* An earlier entry with the same code; NULL: none is known. */
static __always_inline const struct python_entry *seen_entry(struct room *room, const struct python_entry *entry)
{
	uint32_t n = room->record.n_entries - 1, slot = (uint32_t)(entry->code >> 4 ^ entry->code >> 12) & SEEN_MASK;
	uint32_t before = room->seen[slot];

	room->seen[slot] = (uint16_t)n;
	/*
	 * The slot may be left from an earlier run. An entry of this run with the same code has its fields filled,
	 * unless it is a shim.
	 */
	if (before >= n || entry->code == 0 || room->entries[before & ENTRIES_MASK].code != entry->code ||
	    room->entries[before & ENTRIES_MASK].kind != PYTHON_ENTRY_FRAME)
		return NULL;
	return &room->entries[before & ENTRIES_MASK];
}

static __always_inline bool copy_code(struct walk *walk, struct python_entry *entry)
{
	const struct python_layout *layout = walk->layout;
	struct view view = { walk->room->bytes, 0 };

	if (read_bytes(walk->room, layout->code_span, entry->code) < 0)
		return false;
	take_code(layout, &view, entry);
	if (layout->name_identity == PYTHON_ABSENT)
		return true;
	if (read_bytes(walk->room, name_span(layout), entry->name) < 0)
		return false;
	take_name(layout, &view, entry);
	return true;
}

static __always_inline bool add_code(struct walk *walk, struct python_entry *entry)
{
	const struct python_entry *seen = seen_entry(walk->room, entry);
	int r;

	if (seen) {
		entry->name = seen->name;
		entry->file = seen->file;
		entry->lines = seen->lines;
		entry->size = seen->size;
		entry->name_length = seen->name_length;
		entry->name_hash = seen->name_hash;
		entry->first_line = seen->first_line;
		entry->version = seen->version;
		return true;
	}
	r = take_code_in_place(walk->layout, walk->room->now.tables, entry);
	return r == NOT_IN_PLACE ? copy_code(walk, entry) : r == IN_PLACE;
}

static __always_inline uint64_t mixed(uint64_t a, uint64_t b)
{
	return (a ^ b ^ a >> 29) * 0x9e3779b97f4a7c15;
}

/* Note whether the code is new to the reader. A hash collision only delays the reading of the later code. */
static __always_inline void judge_code(struct walk *walk, const struct python_entry *entry)
{
	uint64_t key = mixed(mixed(walk->layout->id, entry->code), entry->name);

	key = mixed(mixed(key, entry->lines), (uint64_t)entry->version << 32 | entry->first_line);
	key = mixed(key, entry->name_hash);
	if (meet_code(walk, key))
		walk->room->now.is_new = 1;
}

static __always_inline bool fill_entry(struct walk *walk, struct python_entry *entry)
{
	struct view view = { 0 };
	int r = take_frame_in_place(walk->layout, walk->room->now.tables, entry);

	if (r != NOT_IN_PLACE)
		return r == IN_PLACE;
	view.bytes = copy_frame(walk->room, walk->layout, entry->address);
	if (!view.bytes)
		return false;
	take_frame(walk->layout, &view, entry);
	return true;
}

static long add_frame(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;
	struct python_entry *entry;

	if (walk->room->now.address == 0)
		return 1;
	entry = new_entry(room);
	if (!entry)
		return 1;
	entry->address = walk->room->now.address;
	if (!fill_entry(walk, entry)) {
		room->record.flags |= PYTHON_FAULT;
		return 1;
	}
	walk->room->now.address = entry->previous;
	if (layout->shim_owner != PYTHON_ABSENT && entry->owner >= layout->shim_owner) {
		entry->code = 0;
	} else if (!add_code(walk, entry)) {
		room->record.flags |= PYTHON_FAULT;
		return 1;
	} else if (layout->calls_for_new) {
		judge_code(walk, entry);
	}
	return 0;
}

/* PYTHON_GIL_* of one thread state. @ret_exists is 0 if there is no GIL. */
static __always_inline uint32_t judge_gil(struct walk *walk, const struct python_state *state, uint32_t *ret_exists)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;
	uint64_t holder = 0, gil = 0;
	uint32_t locked = 1, enabled = 1;

	if (layout->gil_holder) {
		if (!find_word(room, &room->roots, layout->gil_holder, &holder))
			return 0;
	} else {
		if (layout->interpreter_gil == PYTHON_ABSENT ||
		    !find_word(room, &room->interpreter, at(state->interpreter, layout->interpreter_gil), &gil))
			return 0;
		if (gil) {
			if (read_bytes(room, layout->gil_span, gil) < 0)
				return 0;
			locked = half(room, layout->gil_locked);
			holder = word(room, layout->gil_last_holder);
			enabled = layout->gil_enabled == PYTHON_ABSENT ? 1 : half(room, layout->gil_enabled);
		}
		*ret_exists = gil != 0 && enabled != 0;
		if (!*ret_exists)
			return PYTHON_GIL_KNOWN;
	}
	return PYTHON_GIL_KNOWN | (locked == 1 && holder == state->state ? PYTHON_GIL_HELD : 0);
}

/* PYTHON_GC_* of one thread state. Without a GIL, or without its holder, the collecting thread is unknown. */
static __always_inline uint32_t judge_collector(struct walk *walk, const struct python_state *state, uint32_t gil,
						uint32_t exists)
{
	const struct python_layout *layout = walk->layout;
	uint32_t collecting = 0;

	if (layout->collecting) {
		if (!find_half(walk->room, &walk->room->roots, layout->collecting, &collecting))
			return 0;
	} else if (layout->interpreter_collecting == PYTHON_ABSENT ||
		   !find_half(walk->room, &walk->room->interpreter,
			      at(state->interpreter, layout->interpreter_collecting), &collecting)) {
		return 0;
	}
	if (!collecting)
		return PYTHON_GC_KNOWN;
	if (!exists || !(gil & PYTHON_GIL_KNOWN))
		return 0;
	return PYTHON_GC_KNOWN | (gil & PYTHON_GIL_HELD ? PYTHON_GC_RUNS : 0);
}

/* Compute the thread's GIL and GC flags; of several states, the one that holds the GIL decides. */
static long judge_state(uint32_t i, struct walk *walk)
{
	const struct python_state *state = &walk->room->record.states[i % PYTHON_MAX_STATES];
	uint32_t *flags = &walk->room->record.flags, exists = 1, gil;

	gil = judge_gil(walk, state, &exists);
	*flags &= PYTHON_INCOMPLETE;
	*flags |= gil | judge_collector(walk, state, gil, exists);
	return (gil & PYTHON_GIL_HELD) != 0;
}

/*
 * Add the frames of one thread state. Sets failed if they cannot be read. A callback of bpf_loop(), because the verifier checks
 * the steps of the inner loops once for each call of this function.
 */
static long add_state(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;
	uint32_t before, n = i % PYTHON_MAX_STATES;
	struct python_state *state = &room->record.states[n];
	const uint8_t *thread;

	state->state = walk->room->now.thread.states[n].state;
	state->interpreter = walk->room->now.thread.states[n].interpreter;
	thread = read_range(room, &room->thread, state->state, (uint32_t)layout->thread_span);
	/* The state may have been freed and its memory reused. */
	if (!thread || word_at(thread, layout->thread_interpreter) != state->interpreter ||
	    word_at(thread, layout->thread_id) != walk->room->now.thread.pthread) {
		walk->room->now.failed = 1;
		return 1;
	}
	state->top = word_at(thread, layout->thread_top);
	walk->room->now.address = state->top;
	if (layout->thread_root_cframe != PYTHON_ABSENT) {
		walk->room->now.root = state->state + (uint64_t)(int64_t)layout->thread_root_cframe;
		if (state->top == walk->room->now.root)
			return 0;
		before = room->record.n_entries;
		bpf_loop(PYTHON_MAX_ENTRIES + 1, add_cframe, walk, 0);
		walk->room->now.address = before < room->record.n_entries
						  ? room->entries[before & ENTRIES_MASK].instruction
						  : 0;
	}
	bpf_loop(PYTHON_MAX_ENTRIES + 1, add_frame, walk, 0);
	return walk->room->now.failed != 0;
}

/* Add the frames of all of a thread's states. False: it has none, or they cannot be read. */
static __always_inline bool add_states(struct walk *walk, uint32_t tid)
{
	walk->room->now.tid = own_tid(walk->layout, tid);
	if (walk->room->now.tid == 0 || !find_thread(walk, tid) || walk->room->now.thread.n_states == 0)
		return false;
	walk->room->record.n_states = (uint32_t)walk->room->now.thread.n_states;
	bpf_loop((uint32_t)walk->room->now.thread.n_states, add_state, walk, 0);
	if (walk->room->now.failed)
		return false;
	bpf_loop((uint32_t)walk->room->now.thread.n_states, judge_state, walk, 0);
	return walk->room->record.n_entries <= PYTHON_MAX_ENTRIES;
}

/* An empty record, and nothing read yet. */
static __always_inline void begin_record(struct room *room, uint64_t ids, uint32_t cpu)
{
	room->record.mark = PYTHON_MARK;
	room->record.pid = (uint32_t)(ids >> 32);
	room->record.tid = (uint32_t)ids;
	room->record.cpu = cpu;
	room->record.n_entries = room->record.n_states = room->record.flags = 0;
	room->now.failed = room->now.ended = room->now.is_new = 0;
	room->now.tables = 0;
	room->roots.n_bytes = room->interpreter.n_bytes = room->thread.n_bytes = room->frames.n_bytes = 0;
}

#endif
