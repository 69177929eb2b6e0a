/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* frames.bpf.c - a thread's Python frames, read in the interrupt that samples it, or as it leaves its processor.
 *
 * Runs before the kernel writes the sample, and puts a record in front of it into the same
 * ring. A struct python_layout is all it knows of an interpreter; it reads the
 * program's own memory, at its own instant, with that thread stopped on this processor.
 *
 * A thread's states are cached by its id. They are valid only while each
 * still has this thread's id, and while no list of threads has another head: a
 * new state, with which the thread may have entered another interpreter, comes there.
 *
 * Anything unexpected ends in a record without frames, or in one marked as
 * incomplete. The sample itself is never dropped (by returning 0), except for unwanted processes, and for
 * threads that leave their processor so often that reading each of them would slow them down.
 *
 * The sampled thread pays for waking the reader of the rings, and that costs it more than all the rest.
 * So the wake-up comes at once only for urgent samples: one whose frames were not read here, or
 * whose stack extends beyond the kernel's copy. If the reader comes only once in seconds, new code
 * is urgent, too: it has to be read before it is freed.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>

#ifdef __bpf__ /* tests compile it for this machine, with helpers of their own */
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#endif

#include "base/python_record.h"
#include "src/capture/bpf/entry.h"

enum {
	MAX_PROCESSES = 4096,
	MAX_KNOWN_THREADS = 16384,
	MAX_JUDGED = 16384,
	MAX_MET = 16384,
	MAX_INTERPRETERS = 64,
	PAUSED = 0,                /* of judged, as bpf.h has it: the number of no process that is sampled */
	MAX_STEPS = 1 << 14,       /* over all threads of all interpreters */
	MAX_STACK_BYTES = 1 << 16, /* more is never copied */
	STRETCH_MASK = 2047,
	ENTRIES_MASK = PYTHON_MAX_ENTRIES - 1,
	SEEN_MASK = 255,
	PAGE_MASK = 4095, /* the smallest page there is */
	SWITCH_WINDOW_NS = 20000000,
	SWITCH_STACKS = 10, /* in each window */
};

char program_license[] SEC("license") = "Dual MIT/GPL";

/*
 * What was read in this run and may be asked for again: in one interrupt it stays what it was. A reading costs as much
 * as some hundred bytes, so with what is needed now comes what will be.
 */
struct stretch {
	uint64_t start, n_bytes; /* from this address on; 0: nothing is in it */
	_Alignas(8) uint8_t bytes[STRETCH_MASK + 1 + BYTES_MASK + 1 + sizeof(uint64_t)];
};

/* What one run needs and is too large for its stack. */
struct room {
	struct python_record record;
	struct python_entry entries[PYTHON_MAX_ENTRIES];
	uint8_t bytes[BYTES_MASK + 1 + sizeof(uint64_t)];
	struct stretch roots, interpreter, thread, frames;
	uint16_t seen[SEEN_MASK + 1]; /* by address of a code object: an entry that may have it */
};

_Static_assert((PYTHON_MAX_ENTRIES & ENTRIES_MASK) == 0 && PYTHON_MAX_STRETCH <= (int)STRETCH_MASK, "masks");

struct known_thread {
	uint64_t layout_id, lists;
	uint64_t pthread;
	uint64_t n_states;
	struct python_state states[PYTHON_MAX_STATES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, uint32_t);
	__type(value, struct python_layout);
} processes SEC(".maps");

/* Where all processors are sampled: is a process' sample wanted? Others are judged by who reads them.
 * Under PAUSED it says that none is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_JUDGED);
	__type(key, uint32_t);
	__type(value, uint32_t);
} judged SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_KNOWN_THREADS);
	__type(key, uint32_t);
	__type(value, struct known_thread);
} threads SEC(".maps");

/* An array rather than one a processor, whose elements are limited to 32 KiB. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set when loaded */
	__type(key, uint32_t);
	__type(value, struct room);
} rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* set when loaded */
	__type(key, uint32_t);
	__type(value, uint32_t);
} outputs SEC(".maps");

/* The same, but it wakes the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* set when loaded */
	__type(key, uint32_t);
	__type(value, uint32_t);
} calls SEC(".maps");

/* By thread: the lowest stack pointer from which all of its stack is copied. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_KNOWN_THREADS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} floors SEC(".maps");

/* Code that the reader has been woken for, or will be: by what tells it from others. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_MET);
	__type(key, uint64_t);
	__type(value, uint32_t);
} met SEC(".maps");

/* Stacks of threads that leave a processor, in the window of time that began then. */
struct switch_budget {
	uint64_t began_ns;
	uint64_t n_taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set when loaded */
	__type(key, uint32_t);
	__type(value, struct switch_budget);
} switch_budgets SEC(".maps");

struct walk {
	struct room *room;
	const struct python_layout *layout;
	struct known_thread thread;
	uint64_t interpreter, state, address, root;
	uint32_t tid;                   /* as it knows itself */
	uint32_t failed, ended, is_new; /* no bool: the kernel would not see that it is 0 or 1 */
	uint64_t tables;                /* the process' page tables; 0: memory is not read by them */
};

static __always_inline long read_bytes(struct room *room, int32_t n_bytes, uint64_t address)
{
	return bpf_probe_read_user(room->bytes, (uint32_t)n_bytes & BYTES_MASK, (const void *)address);
}

static __always_inline uint64_t word(const struct room *room, int32_t offset)
{
	return word_at(room->bytes, offset);
}

static __always_inline uint32_t half(const struct room *room, int32_t offset)
{
	return half_at(room->bytes, offset);
}

/* What is at an address, of which a stretch has n_bytes; NULL: it does not. What is read lies at whole words, and so
 * it does here. */
static __always_inline const uint8_t *find(const struct stretch *stretch, uint64_t address, uint32_t n_bytes)
{
	uint64_t offset = address - stretch->start;

	/* One question, for what is asked here is verified at each place that asks. */
	if ((offset > STRETCH_MASK) | (offset % 8 != 0) | (offset + n_bytes > stretch->n_bytes))
		return NULL;
	return stretch->bytes + ((uint32_t)offset & STRETCH_MASK & ~7U);
}

/* Another stretch instead. False: it cannot be read. */
static __always_inline bool fill(struct stretch *stretch, uint64_t start, uint32_t n_bytes)
{
	stretch->start = start;
	stretch->n_bytes = n_bytes;
	if (bpf_probe_read_user(stretch->bytes, n_bytes & STRETCH_MASK, (const void *)start) == 0)
		return true;
	stretch->n_bytes = 0;
	return false;
}

/* The same, where it may be there already. NULL: it cannot be read. */
static __always_inline const uint8_t *read_stretch(struct stretch *stretch, uint64_t address, uint32_t n_bytes)
{
	const uint8_t *bytes = find(stretch, address, n_bytes);

	if (bytes)
		return bytes;
	return fill(stretch, address, n_bytes) ? stretch->bytes : NULL;
}

/*
 * The bytes of a frame; NULL: they cannot be read. What lies before it on its page, callers' frames mostly, comes with
 * it as far as there is room. Other pages may not be there, and a fault costs more than all of this.
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
	if (address % 8 != 0) /* no frame */
		start = address;
	if (!fill(&room->frames, start, (uint32_t)(address - start) + span))
		return NULL;
	return room->frames.bytes + ((uint32_t)(address - start) & STRETCH_MASK & ~7U);
}

/* The word at an address, which may be in a stretch; else it is read by itself. */
static __always_inline bool find_word(const struct stretch *stretch, uint64_t address, uint64_t *ret)
{
	const uint8_t *bytes = find(stretch, address, sizeof *ret);

	if (bytes) {
		*ret = word_at(bytes, 0);
		return true;
	}
	return bpf_probe_read_user(ret, sizeof *ret, (const void *)address) == 0;
}

static __always_inline bool find_half(const struct stretch *stretch, uint64_t address, uint32_t *ret)
{
	uint32_t inside = address & 4;
	const uint8_t *bytes = find(stretch, address - inside, inside + (uint32_t)sizeof *ret);

	if (bytes) {
		*ret = half_at(bytes, (int32_t)inside);
		return true;
	}
	return bpf_probe_read_user(ret, sizeof *ret, (const void *)address) == 0;
}

/* A field of an interpreter. */
static __always_inline uint64_t interpreter_word(struct walk *walk, uint64_t interpreter, int32_t field)
{
	uint64_t value = 0;

	if (bpf_probe_read_user(&value, sizeof value, (const void *)at(interpreter, field)) < 0)
		walk->failed = 1;
	return value;
}

static __always_inline uint64_t first_thread(struct walk *walk, uint64_t interpreter)
{
	return interpreter_word(walk, interpreter, walk->layout->interpreter_threads);
}

/* 0: none, or it cannot be read. */
static __always_inline uint64_t first_interpreter(struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	const uint8_t *roots;

	if (!layout->interpreters)
		return layout->interpreter;
	roots = read_stretch(&walk->room->roots, layout->roots, layout->roots_span);
	return roots ? word_at(roots, (int32_t)(layout->interpreters - layout->roots)) : 0;
}

static __always_inline void note_list(struct walk *walk, uint64_t value)
{
	walk->thread.lists = (walk->thread.lists ^ value) * 0x9e3779b97f4a7c15;
}

/* One interpreter: its address, the first of its threads, and whose that is. Mostly it is the sampled thread. */
static long note_interpreter(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	const uint8_t *interpreter, *thread;
	uint64_t head;

	interpreter = read_stretch(&walk->room->interpreter, at(walk->interpreter, layout->interpreter_start),
				   layout->interpreter_span);
	if (!interpreter)
		return 1;
	head = word_at(interpreter, layout->interpreter_threads - layout->interpreter_start);
	note_list(walk, walk->interpreter);
	note_list(walk, head);
	if (head) {
		thread = read_stretch(&walk->room->thread, head, (uint32_t)layout->thread_span);
		if (!thread)
			return 1;
		note_list(walk, word_at(thread, layout->thread_id));
	}
	walk->interpreter = word_at(interpreter, layout->interpreter_next - layout->interpreter_start);
	walk->ended = walk->interpreter == 0;
	return walk->ended;
}

/* A number that changes with any list. False: they cannot be read. */
static __always_inline bool note_lists(struct walk *walk)
{
	walk->ended = 0;
	walk->thread.lists = 1;
	walk->interpreter = first_interpreter(walk);
	if (walk->interpreter == 0)
		return false;
	bpf_loop(MAX_INTERPRETERS, note_interpreter, walk, 0);
	return walk->ended;
}

/* Whether an id that a thread state has is the sampled thread's. */
static __always_inline bool is_ours(struct walk *walk, uint64_t id)
{
	uint32_t tid = 0;

	if (walk->layout->pthread_tid == PYTHON_ABSENT)
		return id == walk->tid;
	/* Of a thread that has ended it may not be there any more. */
	return bpf_probe_read_user(&tid, sizeof tid,
				   (const void *)(id + (uint64_t)(int64_t)walk->layout->pthread_tid)) == 0 &&
	       tid == walk->tid;
}

static __always_inline void keep_state(struct walk *walk)
{
	uint64_t n = walk->thread.n_states;

	if (n >= PYTHON_MAX_STATES) {
		walk->failed = 1;
		return;
	}
	walk->thread.states[n].state = walk->state;
	walk->thread.states[n].interpreter = walk->interpreter;
	walk->thread.n_states = n + 1;
}

/* One step over the threads of all interpreters. */
static long search_thread(uint32_t i, struct walk *walk)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;

	if (walk->state == 0) {
		walk->interpreter = interpreter_word(walk, walk->interpreter, layout->interpreter_next);
		if (walk->failed || walk->interpreter == 0) {
			walk->ended = 1;
			return 1;
		}
		walk->state = first_thread(walk, walk->interpreter);
		return walk->failed != 0;
	}
	if (read_bytes(room, layout->thread_span, walk->state) < 0 ||
	    word(room, layout->thread_interpreter) != walk->interpreter) {
		walk->failed = 1;
		return 1;
	}
	walk->address = word(room, layout->thread_next);
	if (is_ours(walk, word(room, layout->thread_id))) {
		walk->thread.pthread = word(room, layout->thread_id);
		keep_state(walk);
	}
	walk->state = walk->address;
	return walk->failed != 0;
}

static __always_inline bool search_threads(struct walk *walk)
{
	walk->ended = 0;
	walk->thread.n_states = 0;
	walk->interpreter = first_interpreter(walk);
	walk->state = walk->interpreter ? first_thread(walk, walk->interpreter) : 0;
	if (walk->interpreter == 0 || walk->failed)
		return false;
	bpf_loop(MAX_STEPS, search_thread, walk, 0);
	return walk->ended && !walk->failed;
}

static __always_inline bool find_thread(struct walk *walk, uint32_t kernel_tid)
{
	const struct known_thread *known = bpf_map_lookup_elem(&threads, &kernel_tid);
	uint64_t lists;

	if (!note_lists(walk))
		return false;
	lists = walk->thread.lists;
	if (known && known->layout_id == walk->layout->id && known->lists == lists &&
	    (known->n_states == 0 || walk->layout->pthread_tid == PYTHON_ABSENT || is_ours(walk, known->pthread))) {
		walk->thread = *known;
		return true;
	}
	if (!search_threads(walk))
		return false;
	walk->thread.layout_id = walk->layout->id;
	walk->thread.lists = lists;
	/* Where the lists were changed meanwhile it is searched anew next time. */
	bpf_map_update_elem(&threads, &kernel_tid, &walk->thread, BPF_ANY);
	return true;
}

/* The next entry of the record; NULL: there is no room. */
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

	if (walk->address == walk->root || walk->address == 0)
		return 1;
	if (read_bytes(room, layout->cframe_span, walk->address) < 0) {
		room->record.flags |= PYTHON_FAULT;
		return 1;
	}
	entry = new_entry(room);
	if (!entry)
		return 1;
	*entry = (struct python_entry){
		.address = walk->address,
		.previous = word(room, layout->cframe_previous),
		.instruction = word(room, layout->cframe_frame),
		.kind = PYTHON_ENTRY_CFRAME,
	};
	walk->address = entry->previous;
	return 0;
}

/* An entry before this one that has the same code; NULL: none is known. */
static __always_inline const struct python_entry *seen_entry(struct room *room, const struct python_entry *entry)
{
	uint32_t n = room->record.n_entries - 1, slot = (uint32_t)(entry->code >> 4 ^ entry->code >> 12) & SEEN_MASK;
	uint32_t before = room->seen[slot];

	room->seen[slot] = (uint16_t)n;
	/* What stands there may be of a run before this one. An entry of this run with that code has been read, unless
	 * it is a shim's. */
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
	r = take_code_in_place(walk->layout, walk->tables, entry);
	return r == NOT_IN_PLACE ? copy_code(walk, entry) : r == IN_PLACE;
}

static __always_inline uint64_t mixed(uint64_t a, uint64_t b)
{
	return (a ^ b ^ a >> 29) * 0x9e3779b97f4a7c15;
}

/* Two that are taken for one: the later one is looked at late, no more. */
static __always_inline void judge_code(struct walk *walk, const struct python_entry *entry)
{
	uint64_t key = mixed(mixed(walk->layout->id, entry->code), entry->name);
	uint32_t value = 1;

	key = mixed(mixed(key, entry->lines), (uint64_t)entry->version << 32 | entry->first_line);
	key = mixed(key, entry->name_hash);
	if (bpf_map_lookup_elem(&met, &key))
		return;
	bpf_map_update_elem(&met, &key, &value, BPF_ANY);
	walk->is_new = 1;
}

static __always_inline bool fill_entry(struct walk *walk, struct python_entry *entry)
{
	struct view view = { 0 };
	int r = take_frame_in_place(walk->layout, walk->tables, entry);

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

	if (walk->address == 0)
		return 1;
	entry = new_entry(room);
	if (!entry)
		return 1;
	entry->address = walk->address;
	if (!fill_entry(walk, entry)) {
		room->record.flags |= PYTHON_FAULT;
		return 1;
	}
	walk->address = entry->previous;
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

/* PYTHON_GIL_* of one of the thread's states. @ret_exists: 0: there is no GIL. */
static __always_inline uint32_t judge_gil(struct walk *walk, const struct python_state *state, uint32_t *ret_exists)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;
	uint64_t holder = 0, gil = 0;
	uint32_t locked = 1, enabled = 1;

	if (layout->gil_holder) {
		if (!find_word(&room->roots, layout->gil_holder, &holder))
			return 0;
	} else {
		if (layout->interpreter_gil == PYTHON_ABSENT ||
		    !find_word(&room->interpreter, at(state->interpreter, layout->interpreter_gil), &gil))
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

/* PYTHON_GC_*. Without a GIL, or not knowing it, nobody knows which thread collects. */
static __always_inline uint32_t judge_collector(struct walk *walk, const struct python_state *state, uint32_t gil,
						uint32_t exists)
{
	const struct python_layout *layout = walk->layout;
	uint32_t collecting = 0;

	if (layout->collecting) {
		if (!find_half(&walk->room->roots, layout->collecting, &collecting))
			return 0;
	} else if (layout->interpreter_collecting == PYTHON_ABSENT ||
		   !find_half(&walk->room->interpreter, at(state->interpreter, layout->interpreter_collecting),
			      &collecting)) {
		return 0;
	}
	if (!collecting)
		return PYTHON_GC_KNOWN;
	if (!exists || !(gil & PYTHON_GIL_KNOWN))
		return 0;
	return PYTHON_GC_KNOWN | (gil & PYTHON_GIL_HELD ? PYTHON_GC_RUNS : 0);
}

/* What the thread holds; of several states the one counts with which it does. */
static long judge_state(uint32_t i, struct walk *walk)
{
	const struct python_state *state = &walk->room->record.states[i % PYTHON_MAX_STATES];
	uint32_t *flags = &walk->room->record.flags, exists = 1, gil;

	gil = judge_gil(walk, state, &exists);
	*flags &= PYTHON_INCOMPLETE;
	*flags |= gil | judge_collector(walk, state, gil, exists);
	return (gil & PYTHON_GIL_HELD) != 0;
}

/* The frames of one of the thread's states. */
static __always_inline bool add_state(struct walk *walk, uint32_t n)
{
	const struct python_layout *layout = walk->layout;
	struct room *room = walk->room;
	struct python_state *state = &room->record.states[n];
	const uint8_t *thread;
	uint32_t before;

	state->state = walk->thread.states[n].state;
	state->interpreter = walk->thread.states[n].interpreter;
	thread = read_stretch(&room->thread, state->state, (uint32_t)layout->thread_span);
	/* It may have been freed, and its memory be another's. */
	if (!thread || word_at(thread, layout->thread_interpreter) != state->interpreter ||
	    word_at(thread, layout->thread_id) != walk->thread.pthread)
		return false;
	state->top = word_at(thread, layout->thread_top);
	walk->address = state->top;
	if (layout->thread_root_cframe != PYTHON_ABSENT) {
		walk->root = state->state + (uint64_t)(int64_t)layout->thread_root_cframe;
		if (state->top == walk->root)
			return true;
		before = room->record.n_entries;
		bpf_loop(PYTHON_MAX_ENTRIES + 1, add_cframe, walk, 0);
		walk->address = before < room->record.n_entries ? room->entries[before & ENTRIES_MASK].instruction : 0;
	}
	bpf_loop(PYTHON_MAX_ENTRIES + 1, add_frame, walk, 0);
	return !walk->failed;
}

/* A thread's id as it knows itself; 0: it cannot be known. */
static __always_inline uint32_t own_tid(const struct python_layout *layout, uint32_t kernel_tid)
{
	struct bpf_pidns_info own;

	if (layout->namespace_inode == 0)
		return kernel_tid;
	if (bpf_get_ns_current_pid_tgid(layout->namespace_device, layout->namespace_inode, &own, sizeof own) < 0)
		return 0;
	return own.pid;
}

static __always_inline bool is_paused(void)
{
	uint32_t key = PAUSED;

	return bpf_map_lookup_elem(&judged, &key) != NULL;
}

static __always_inline bool is_foreign(uint32_t pid)
{
	const uint32_t *wanted = bpf_map_lookup_elem(&judged, &pid);

	return wanted && !*wanted;
}

/* The frames of all states of a thread. False: it has none, or they cannot be read. */
static __always_inline bool add_states(struct walk *walk, uint32_t tid)
{
	walk->tid = own_tid(walk->layout, tid);
	if (walk->tid == 0 || !find_thread(walk, tid) || walk->thread.n_states == 0)
		return false;
	walk->room->record.n_states = (uint32_t)walk->thread.n_states;
	for (uint32_t n = 0; n < PYTHON_MAX_STATES; n++)
		if (n < walk->thread.n_states && !add_state(walk, n))
			return false;
	bpf_loop((uint32_t)walk->thread.n_states, judge_state, walk, 0);
	return walk->room->record.n_entries <= PYTHON_MAX_ENTRIES;
}

/* Whether all of the thread's stack comes with the sample. Not known of one that is in the kernel. */
static __always_inline bool is_copied(struct bpf_perf_event_data *context, uint32_t tid)
{
	const uint64_t *floor = bpf_map_lookup_elem(&floors, &tid);

	return floor && PT_REGS_SP(&context->regs) - *floor <= MAX_STACK_BYTES;
}

/* What is read and written by this run. NULL: there is no room. */
static __always_inline struct room *begin(uint64_t ids)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	struct room *room = bpf_map_lookup_elem(&rooms, &cpu);

	if (!room)
		return NULL;
	room->record.mark = PYTHON_MARK;
	room->record.pid = (uint32_t)(ids >> 32);
	room->record.tid = (uint32_t)ids;
	room->record.cpu = cpu;
	room->record.n_entries = room->record.n_states = room->record.flags = 0;
	room->roots.n_bytes = room->interpreter.n_bytes = room->thread.n_bytes = room->frames.n_bytes = 0;
	return room;
}

/* The record so far, with its entries. @to: a map of outputs. */
static __always_inline void write_record(void *context, void *to, struct room *room)
{
	uint64_t n_bytes = room->record.n_entries;

	if (n_bytes > PYTHON_MAX_ENTRIES)
		return;
	n_bytes = sizeof room->record + n_bytes * sizeof room->entries[0] - sizeof room->record.n_bytes;
	room->record.time_ns = bpf_ktime_get_ns();
	bpf_perf_event_output(context, to, BPF_F_CURRENT_CPU, &room->record.mark, n_bytes);
}

/* @may_call: what cannot wait wakes the reader. */
static __always_inline int read_any(struct bpf_perf_event_data *context, bool may_call)
{
	uint64_t ids = bpf_get_current_pid_tgid();
	uint32_t pid = (uint32_t)(ids >> 32), tid = (uint32_t)ids;
	struct walk walk = { 0 };

	if (is_paused())
		return 0;
	walk.layout = bpf_map_lookup_elem(&processes, &pid);
	if (!walk.layout && is_foreign(pid)) /* elsewhere than on all processors there are no foreign ones */
		return 0;
	walk.room = begin(ids);
	if (!walk.room)
		return 1;
	walk.tables = own_tables();
	if (!walk.layout || !add_states(&walk, tid)) {
		walk.room->record.layout_id = 0;
		walk.room->record.n_entries = walk.room->record.n_states = 0;
		if (may_call)
			write_record(context, &calls, walk.room);
		return 1;
	}
	walk.room->record.layout_id = walk.layout->id;
	if (!may_call ||
	    (!walk.is_new && (walk.room->record.flags & PYTHON_INCOMPLETE) == 0 && is_copied(context, tid)))
		write_record(context, &outputs, walk.room);
	else
		write_record(context, &calls, walk.room);
	return 1;
}

SEC("perf_event")
int read_frames(struct bpf_perf_event_data *context)
{
	return read_any(context, true);
}

/*
 * Of a tracepoint all processes come here, and 0 would keep it from whoever else listens to it. Its
 * samples wake the reader themselves.
 */
SEC("tracepoint")
int read_tracepoint_frames(void *context)
{
	uint64_t ids = bpf_get_current_pid_tgid();
	uint32_t pid = (uint32_t)(ids >> 32), tid = (uint32_t)ids;
	struct walk walk = { 0 };

	walk.layout = bpf_map_lookup_elem(&processes, &pid);
	if (!walk.layout)
		return 1;
	walk.room = begin(ids); /* and no page tables: interrupts may be on */
	if (!walk.room || !add_states(&walk, tid))
		return 1;
	walk.room->record.layout_id = walk.layout->id;
	write_record(context, &outputs, walk.room);
	return 1;
}

static __always_inline bool affords_switch(uint32_t cpu)
{
	struct switch_budget *budget = bpf_map_lookup_elem(&switch_budgets, &cpu);
	uint64_t now_ns = bpf_ktime_get_ns();

	if (!budget)
		return false;
	if (now_ns - budget->began_ns >= SWITCH_WINDOW_NS) {
		budget->began_ns = now_ns;
		budget->n_taken = 0;
	}
	return budget->n_taken++ < SWITCH_STACKS;
}

/* Of a thread that leaves the processor: how long it stays away is told by others, its stack may be left out. */
SEC("perf_event")
int read_frames_at_switch(struct bpf_perf_event_data *context)
{
	uint32_t pid = (uint32_t)(bpf_get_current_pid_tgid() >> 32);

	if (pid == 0 || is_foreign(pid) || !affords_switch(bpf_get_smp_processor_id()))
		return 0;
	return read_any(context, false); /* the reader wakes by itself often enough, and the thread stands still */
}
