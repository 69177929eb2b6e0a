/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* switches.bpf.c - one small record for each context switch, with the threads that leave and come.
 *
 * Runs at each switch of each processor, with interrupts off and the run queue locked, so nothing else writes to that
 * processor's ring meanwhile. PERF_RECORD_SWITCH has the same information, but takes two records a switch, each several
 * times as expensive as this program, and covers all processes.
 *
 * The leaving thread is still current; its sample, if the event that counts switches takes one, comes after this.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "src/capture/switch_record.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

/* The fields read here; CO-RE finds their offsets in the kernel's BTF. */
struct sched_info {
	unsigned long long last_arrival; /* scheduler clock */
} __attribute__((preserve_access_index));

struct task_struct {
	int pid, tgid;
	struct sched_info sched_info;
} __attribute__((preserve_access_index));

/* Which PIDs are wanted: the loader replaces this map by the one of frames.bpf.c. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} judged SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set when loaded */
	__type(key, uint32_t);
	__type(value, struct switch_ring);
} switch_rings SEC(".maps");

/*
 * Report processes that user space has not judged yet, so that no child is missed. PID 0 is an idle processor. A wanted
 * PID stays wanted on its ring: if another process gets this PID, the reader drops its records.
 */
static __always_inline bool is_told(struct switch_ring *ring, uint32_t pid)
{
	const uint32_t *wanted;

	if (pid == 0)
		return false;
	if (pid == ring->wanted_pid)
		return true;
	wanted = bpf_map_lookup_elem(&judged, &pid);
	if (wanted && *wanted)
		ring->wanted_pid = pid;
	return !wanted || *wanted;
}

/* Write the record before the head, so that the reader sees it whole. */
static __always_inline void put(struct switch_ring *ring, uint64_t head, const struct switch_record *record)
{
	ring->records[head & (SWITCH_RING_RECORDS - 1)] = *record;
	__sync_lock_test_and_set(&ring->head, head + 1); /* full barrier; a plain store is weaker on some machines */
}

/* A record is missing: the next one reports that. */
static __always_inline void miss(struct switch_ring *ring)
{
	ring->n_lost++;
	ring->n_untold++;
}

static __always_inline void tell(struct switch_ring *ring, const struct switch_record *record)
{
	uint64_t head = ring->head, tail = *(const volatile uint64_t *)&ring->tail;
	struct switch_record lost = { .time_ns = record->time_ns, .out_pid = (uint32_t)ring->n_untold };

	/* One slot is reserved for the record of lost ones. */
	if (SWITCH_RING_RECORDS - (head - tail) < 2) {
		miss(ring);
		return;
	}
	if (lost.out_pid) {
		ring->n_untold = 0;
		put(ring, head++, &lost);
	}
	put(ring, head, record);
}

/* When the scheduler let the leaving thread arrive, by its own clock; 0: unknown, as of an idle processor. */
static __always_inline uint64_t arrival_of(const struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.last_arrival) ? task->sched_info.last_arrival : 0;
}

/* If its arrival was seen, the scheduler's time of it gives the offset of the two clocks. */
static __always_inline void learn_offset(struct switch_ring *ring, const struct task_struct *task)
{
	uint64_t arrived = arrival_of(task);

	if (arrived && ring->arrived_ns)
		ring->behind_ns = ring->arrived_ns - arrived;
}

/* When the leaving thread arrived. If the arrival was hidden, the scheduler's time and the offset replace its record. */
static __always_inline void note_arrival(struct switch_ring *ring, const struct task_struct *task, bool is_hidden,
					 uint64_t now_ns)
{
	uint64_t arrived = arrival_of(task), late;
	struct switch_record record = { .in = (uint32_t)task->pid, .in_pid = (uint32_t)task->tgid };

	if (!is_hidden) {
		learn_offset(ring, task);
		return;
	}
	record.time_ns = now_ns;
	record.out_pid = 1;
	if (now_ns > arrived + ring->behind_ns + SWITCH_LATE_NS) {
		late = (now_ns - arrived - ring->behind_ns) / SWITCH_LATE_NS; /* more than an hour fits */
		record.out_pid = late < UINT32_MAX ? (uint32_t)late : UINT32_MAX;
	}
	if (arrived && ring->behind_ns)
		tell(ring, &record);
	else
		miss(ring);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(tell_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	uint32_t out_pid = (uint32_t)prev->tgid, in_pid = (uint32_t)next->tgid, cpu = bpf_get_smp_processor_id();
	struct switch_ring *ring = bpf_map_lookup_elem(&switch_rings, &cpu);
	struct switch_record record = { .in_pid = in_pid };
	bool tells_out, tells_in, is_hidden, learns;

	if (!ring) /* a processor that came online later has no ring for samples either */
		return 0;
	is_hidden = ring->running != 0 && ring->running != (uint64_t)(uint32_t)prev->pid + 1;
	ring->running = (uint64_t)(uint32_t)next->pid + 1;
	ring->n_hidden += is_hidden;
	tells_out = is_told(ring, out_pid);
	tells_in = in_pid == out_pid ? tells_out : is_told(ring, in_pid);
	learns = bpf_core_field_exists(prev->sched_info.last_arrival) && ring->behind_ns == 0;
	if (!tells_out && !tells_in && !learns) {
		ring->arrived_ns = 0; /* who comes now may be wanted by the time of leaving */
		return 0;
	}
	record.time_ns = bpf_ktime_get_ns();
	if (tells_out) { /* a preempted thread has no wait state */
		note_arrival(ring, prev, is_hidden, record.time_ns);
		record.out_pid = out_pid;
		record.out = (uint32_t)prev->pid | (preempt || state == 0 ? SWITCH_PREEMPTED : 0);
	} else if (learns &&
		   !is_hidden) { /* from any thread, or the first hidden arrival of a wanted one has no time */
		learn_offset(ring, prev);
	}
	if (tells_in)
		record.in = (uint32_t)next->pid;
	ring->arrived_ns = record.time_ns;
	if (tells_out || tells_in)
		tell(ring, &record);
	return 0;
}

/*
 * Some kernels run no programs in some tasks, so the switch from such a task to the next thread is not reported. The
 * arrived thread checks whether it is the reported one. Preemption is off, so no switch happens meanwhile. A new thread
 * does not pass here on its first arrival, which is then reported when it leaves.
 */
SEC("tp_btf/sched_exit_tp")
int BPF_PROG(look_after_switch, bool is_switch)
{
	uint64_t ids = bpf_get_current_pid_tgid();
	uint32_t cpu = bpf_get_smp_processor_id();
	struct switch_ring *ring = bpf_map_lookup_elem(&switch_rings, &cpu);
	struct switch_record record = { .in = (uint32_t)ids, .in_pid = (uint32_t)(ids >> 32) };

	if (!is_switch || !ring || ring->running == (uint64_t)record.in + 1)
		return 0;
	ring->running = (uint64_t)record.in + 1;
	ring->n_hidden++;
	ring->arrived_ns = 0; /* it is another thread's */
	if (!is_told(ring, record.in_pid))
		return 0;
	record.time_ns = ring->arrived_ns = bpf_ktime_get_ns();
	tell(ring, &record);
	return 0;
}
