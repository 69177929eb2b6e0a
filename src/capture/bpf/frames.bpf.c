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

#ifdef __bpf__ /* tests compile this for the host, with their own helpers */
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
	PAUSED = 0,                /* key in map `judged`, see bpf.h: no sampled process has PID 0 */
	MAX_STEPS = 1 << 14,       /* limit over all threads of all interpreters */
	MAX_STACK_BYTES = 1 << 16, /* copied stacks are never larger */
	STRETCH_MASK = 2047,
	ENTRIES_MASK = PYTHON_MAX_ENTRIES - 1,
	SEEN_MASK = 255,
	PAGE_MASK = 4095, /* of the smallest page */
	SWITCH_WINDOW_NS = 20000000,
	SWITCH_STACKS = 10, /* per window */
};

char program_license[] SEC("license") = "Dual MIT/GPL";

/*
 * Target memory that this run has read and may need again; it cannot change within one interrupt. One read call costs
 * as much as copying a few hundred bytes, so read ahead.
 */
struct stretch {
	uint64_t start, n_bytes; /* address and length; length 0: empty */
	_Alignas(8) uint8_t bytes[STRETCH_MASK + 1 + BYTES_MASK + 1 + sizeof(uint64_t)];
};

/* Per-run data that exceeds the BPF stack. */
struct room {
	struct python_record record;
	struct python_entry entries[PYTHON_MAX_ENTRIES];
	uint8_t bytes[BYTES_MASK + 1 + sizeof(uint64_t)];
	struct stretch roots, interpreter, thread, frames;
	uint16_t seen[SEEN_MASK + 1]; /* by hash of a code address: index of an entry that may have that code */
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

/*
 * System-wide sampling: whether samples of a process are wanted. User space judges PIDs that are missing here. Key
 * PAUSED: no sample is wanted.
 */
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

/* An array, because elements of per-CPU maps are limited to 32 KiB. */
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

/* Like outputs, but wakes the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* set when loaded */
	__type(key, uint32_t);
	__type(value, uint32_t);
} calls SEC(".maps");

/* By thread: the lowest stack pointer at which a sample copies the whole stack. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_KNOWN_THREADS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} floors SEC(".maps");

/* Hashes of code objects that the reader was already woken for. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_MET);
	__type(key, uint64_t);
	__type(value, uint32_t);
} met SEC(".maps");

/* How many stacks of descheduled threads were taken in the current time window. */
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
	uint32_t tid;                   /* in the thread's own PID namespace */
	uint32_t failed, ended, is_new; /* not bool: the verifier would not know that it is 0 or 1 */
	uint64_t tables;                /* the process's page tables; 0: read through helpers instead */
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

/* Return n_bytes at an address if the cached stretch contains them, else NULL. Addresses are word-aligned. */
static __always_inline const uint8_t *find(const struct stretch *stretch, uint64_t address, uint32_t n_bytes)
{
	uint64_t offset = address - stretch->start;

	/* A single branch: the verifier explores each branch again at every inlined call. */
	if ((offset > STRETCH_MASK) | (offset % 8 != 0) | (offset + n_bytes > stretch->n_bytes))
		return NULL;
	return stretch->bytes + ((uint32_t)offset & STRETCH_MASK & ~7U);
}

/* Replace the contents of a stretch. False: the memory cannot be read. */
static __always_inline bool fill(struct stretch *stretch, uint64_t start, uint32_t n_bytes)
{
	stretch->start = start;
	stretch->n_bytes = n_bytes;
	if (bpf_probe_read_user(stretch->bytes, n_bytes & STRETCH_MASK, (const void *)start) == 0)
		return true;
	stretch->n_bytes = 0;
	return false;
}

/* Return n_bytes at an address, read only if not cached. NULL: the memory cannot be read. */
static __always_inline const uint8_t *read_stretch(struct stretch *stretch, uint64_t address, uint32_t n_bytes)
{
	const uint8_t *bytes = find(stretch, address, n_bytes);

	if (bytes)
		return bytes;
	return fill(stretch, address, n_bytes) ? stretch->bytes : NULL;
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
	if (!fill(&room->frames, start, (uint32_t)(address - start) + span))
		return NULL;
	return room->frames.bytes + ((uint32_t)(address - start) & STRETCH_MASK & ~7U);
}

/* Return the word at an address from the stretch, or read it alone. */
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

/* Read a field of an interpreter. */
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

/* 0: there is no interpreter, or the memory cannot be read. */
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

/* Note an interpreter's address, its first thread state and that state's thread, which usually is the sampled one. */
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

/* Hash the interpreter and thread lists, to detect changes. False: they cannot be read. */
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

/* Whether a thread state's thread id belongs to the sampled thread. */
static __always_inline bool is_ours(struct walk *walk, uint64_t id)
{
	uint32_t tid = 0;

	if (walk->layout->pthread_tid == PYTHON_ABSENT)
		return id == walk->tid;
	/* The pthread structure of an ended thread may be unmapped. */
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

/* Visit one thread state of any interpreter. */
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
	/* If the lists changed during the search, the next sample searches again. */
	bpf_map_update_elem(&threads, &kernel_tid, &walk->thread, BPF_ANY);
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
	r = take_code_in_place(walk->layout, walk->tables, entry);
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

/* PYTHON_GIL_* of one thread state. @ret_exists is 0 if there is no GIL. */
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

/* PYTHON_GC_* of one thread state. Without a GIL, or without its holder, the collecting thread is unknown. */
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

/* Add the frames of one thread state. */
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
	/* The state may have been freed and its memory reused. */
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

/* The thread's id in its own PID namespace; 0: unknown. */
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

/* Add the frames of all of a thread's states. False: it has none, or they cannot be read. */
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

/* Whether the sample copies the whole stack. Unknown for a thread in the kernel. */
static __always_inline bool is_copied(struct bpf_perf_event_data *context, uint32_t tid)
{
	const uint64_t *floor = bpf_map_lookup_elem(&floors, &tid);

	return floor && PT_REGS_SP(&context->regs) - *floor <= MAX_STACK_BYTES;
}

/* Reset and return this processor's buffer. NULL: there is none. */
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

/* Write the record with its entries to a map of outputs. */
static __always_inline void write_record(void *context, void *to, struct room *room)
{
	uint64_t n_bytes = room->record.n_entries;

	if (n_bytes > PYTHON_MAX_ENTRIES)
		return;
	n_bytes = sizeof room->record + n_bytes * sizeof room->entries[0] - sizeof room->record.n_bytes;
	room->record.time_ns = bpf_ktime_get_ns();
	bpf_perf_event_output(context, to, BPF_F_CURRENT_CPU, &room->record.mark, n_bytes);
}

/* @may_call: wake the reader if the sample cannot wait. */
static __always_inline int read_any(struct bpf_perf_event_data *context, bool may_call)
{
	uint64_t ids = bpf_get_current_pid_tgid();
	uint32_t pid = (uint32_t)(ids >> 32), tid = (uint32_t)ids;
	struct walk walk = { 0 };

	if (is_paused())
		return 0;
	walk.layout = bpf_map_lookup_elem(&processes, &pid);
	if (!walk.layout && is_foreign(pid)) /* only system-wide sampling sees foreign processes */
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
 * Runs for all processes. Always return 1: 0 would hide the event from the tracepoint's other listeners. The samples
 * themselves wake the reader.
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
	walk.room = begin(ids); /* no page tables: interrupts may be enabled */
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

/* Runs when a thread leaves its processor. Other records report how long it is away, so its stack is optional. */
SEC("perf_event")
int read_frames_at_switch(struct bpf_perf_event_data *context)
{
	uint32_t pid = (uint32_t)(bpf_get_current_pid_tgid() >> 32);

	if (pid == 0 || is_foreign(pid) || !affords_switch(bpf_get_smp_processor_id()))
		return 0;
	return read_any(context, false); /* no wake-up: the thread is descheduled, and the reader wakes often enough */
}
