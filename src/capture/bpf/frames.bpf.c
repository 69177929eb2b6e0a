/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* frames.bpf.c - a thread's Python frames, read in the interrupt that samples it, or as it leaves its processor.
 *
 * Runs before the kernel writes the sample, and puts a record in front of it into the same
 * ring. A struct python_layout is all it knows of an interpreter; it reads the
 * program's own memory, at its own instant, with that thread stopped on this processor.
 *
 * base/python_walk.h walks the frames, with what is defined here.
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

#ifdef HAVE_DIRECT_MAP
#include "src/capture/bpf/page_tables.h"
#endif

#include "base/python_walk.h"

enum {
	MAX_PROCESSES = 4096,
	MAX_KNOWN_THREADS = 16384,
	MAX_JUDGED = 16384,
	MAX_MET = 16384,
	PAUSED = 0,                /* key in map `judged`, see bpf.h: no sampled process has PID 0 */
	MAX_STACK_BYTES = 1 << 16, /* copied stacks are never larger */
	SWITCH_WINDOW_NS = 20000000,
	SWITCH_STACKS = 10, /* per window */
};

char program_license[] SEC("license") = "Dual MIT/GPL";

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

/* ---- What the walk asks for ---- */

static __always_inline long read_memory(struct room *room, void *to, uint32_t n_bytes, uint64_t address)
{
	return bpf_probe_read_user(to, n_bytes, (const void *)address);
}

/* The pthread structure of an ended thread may be unmapped. */
static __always_inline bool is_own_pthread(struct walk *walk, uint64_t id)
{
	uint32_t tid = 0;

	return bpf_probe_read_user(&tid, sizeof tid,
				   (const void *)(id + (uint64_t)(int64_t)walk->layout->pthread_tid)) == 0 &&
	       tid == walk->room->now.tid;
}

static __always_inline uint32_t own_tid(const struct python_layout *layout, uint32_t kernel_tid)
{
	struct bpf_pidns_info own;

	if (layout->namespace_inode == 0)
		return kernel_tid;
	if (bpf_get_ns_current_pid_tgid(layout->namespace_device, layout->namespace_inode, &own, sizeof own) < 0)
		return 0;
	return own.pid;
}

static __always_inline const struct known_thread *known_thread(struct walk *walk, uint32_t kernel_tid)
{
	return bpf_map_lookup_elem(&threads, &kernel_tid);
}

static __always_inline void keep_thread(struct walk *walk, uint32_t kernel_tid)
{
	bpf_map_update_elem(&threads, &kernel_tid, &walk->room->now.thread, BPF_ANY);
}

static __always_inline bool meet_code(struct walk *walk, uint64_t key)
{
	uint32_t value = 1;

	if (bpf_map_lookup_elem(&met, &key))
		return false;
	bpf_map_update_elem(&met, &key, &value, BPF_ANY);
	return true;
}

/* ---- A run ---- */

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
	begin_record(room, ids, cpu);
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
	walk.room->now.tables = own_tables();
	if (!walk.layout || !add_states(&walk, tid)) {
		walk.room->record.layout_id = 0;
		walk.room->record.n_entries = walk.room->record.n_states = 0;
		if (may_call)
			write_record(context, &calls, walk.room);
		return 1;
	}
	walk.room->record.layout_id = walk.layout->id;
	if (!may_call ||
	    (!walk.room->now.is_new && (walk.room->record.flags & PYTHON_INCOMPLETE) == 0 && is_copied(context, tid)))
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
