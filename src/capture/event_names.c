/* SPDX-License-Identifier: MIT */
/* event_names.c - the names of events; see event.h.
 *
 * Names are those of perf(1), so that its users can use them here.
 * A table has everything but tracepoints; a name with a colon is a tracepoint.
 *
 * Source: perf_event_open(2); include/uapi/linux/perf_event.h, Linux 6.12.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/util.h"
#include "src/capture/event.h"

/* clang-format off */
#define CACHE(cache, operation, result)                                                            \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 |                   \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
/* clang-format on */

/*
 * Page faults are too many to sample each one, and they come in bursts that end before the kernel has adjusted the
 * period for a frequency.
 */
enum { MANY = 100 };

struct known_event {
	const char *name, *other_name; /* NULL: no second name */
	const char *summary;
	enum event_kind kind;
	uint32_t type;
	uint64_t config;
	uint64_t usual_count;
	bool in_kernel;
};

/* clang-format off */
#define CLOCK(name, which, summary)                                                                \
	{ name, NULL, summary, EVENT_CLOCK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##which, 0, false },
#define SOFTWARE(name, other, which, summary, count, kernel)                                        \
	{ name, other, summary, EVENT_SOFTWARE, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##which, count, kernel },
#define HARDWARE(name, other, which, summary)                                                      \
	{ name, other, summary, EVENT_HARDWARE, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##which, 0, false },
#define CACHED(name, cache, operation, result, summary)                                            \
	{ name, NULL, summary, EVENT_HARDWARE, PERF_TYPE_HW_CACHE, CACHE(cache, operation, result), 0, false },

static const struct known_event known_events[] = {
	CLOCK("cpu-clock", CPU_CLOCK, "CPU time, by each processor's clock (the default)")
	CLOCK("task-clock", TASK_CLOCK, "CPU time, by each thread's clock")
	SOFTWARE("page-faults", "faults", PAGE_FAULTS, "first touches of memory pages", MANY, false)
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN, "page faults without reads from storage", MANY, false)
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ, "page faults that waited for storage", 1, false)
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES, "a thread leaves its processor", 1, true)
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS, "a thread moves to another processor", 1, true)
	SOFTWARE("cgroup-switches", NULL, CGROUP_SWITCHES, "the processor switches to another control group", 1, true)
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS, "unaligned accesses that the kernel fixed up", 1, false)
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS, "instructions that the kernel emulated", 1, false)
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES, "processor cycles")
	HARDWARE("instructions", NULL, INSTRUCTIONS, "retired instructions")
	HARDWARE("cache-references", NULL, CACHE_REFERENCES, "last-level cache accesses")
	HARDWARE("cache-misses", NULL, CACHE_MISSES, "last-level cache misses")
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "retired branches")
	HARDWARE("branch-misses", NULL, BRANCH_MISSES, "mispredicted branches")
	HARDWARE("bus-cycles", NULL, BUS_CYCLES, "bus cycles")
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES, "cycles at a constant reference frequency")
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles in which the frontend delivers no instructions")
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, "cycles in which the backend accepts no instructions")
	CACHED("L1-dcache-loads", L1D, READ, ACCESS, "L1 data cache loads")
	CACHED("L1-dcache-load-misses", L1D, READ, MISS, "L1 data cache load misses")
	CACHED("L1-dcache-stores", L1D, WRITE, ACCESS, "L1 data cache stores")
	CACHED("L1-icache-load-misses", L1I, READ, MISS, "L1 instruction cache misses")
	CACHED("LLC-loads", LL, READ, ACCESS, "last-level cache loads")
	CACHED("LLC-load-misses", LL, READ, MISS, "last-level cache load misses")
	CACHED("LLC-stores", LL, WRITE, ACCESS, "last-level cache stores")
	CACHED("LLC-store-misses", LL, WRITE, MISS, "last-level cache store misses")
	CACHED("dTLB-loads", DTLB, READ, ACCESS, "data TLB loads")
	CACHED("dTLB-load-misses", DTLB, READ, MISS, "data TLB load misses (page table walks)")
	CACHED("dTLB-store-misses", DTLB, WRITE, MISS, "data TLB store misses")
	CACHED("iTLB-load-misses", ITLB, READ, MISS, "instruction TLB misses")
	CACHED("node-loads", NODE, READ, ACCESS, "loads from memory")
	CACHED("node-load-misses", NODE, READ, MISS, "loads from another NUMA node's memory")
};
/* clang-format on */

static bool is_name_of(const struct known_event *known, const char *name)
{
	return strcmp(known->name, name) == 0 || (known->other_name && strcmp(known->other_name, name) == 0);
}

static struct sampled_event make_event(const struct known_event *known)
{
	struct sampled_event event = {
		.kind = known->kind,
		.type = known->type,
		.config = known->config,
		.usual_count = known->usual_count,
		.in_kernel = known->in_kernel,
	};

	strcpy(event.name, known->name);
	return event;
}

/* A tracefs name; it becomes part of a path and of a table name. */
static bool is_word(const char *text, size_t n)
{
	if (n == 0 || text[0] == '.')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", text[i]))
			return false;
	return true;
}

/*
 * System call tracepoints have the user's registers at hand, so the kernel treats their samples as user-side. It treats
 * samples of all other tracepoints as kernel-side.
 */
static int find_tracepoint(const char *name, const char *colon, struct sampled_event *ret)
{
	struct sampled_event event = {
		.kind = EVENT_TRACEPOINT,
		.type = PERF_TYPE_TRACEPOINT,
		.usual_count = 1,
		.in_kernel = strncmp(name, "syscalls:", strlen("syscalls:")) != 0,
	};

	if (!is_word(name, (size_t)(colon - name)) || !is_word(colon + 1, strlen(colon + 1)) ||
	    strlen(name) >= sizeof event.name)
		return -EINVAL;
	strcpy(event.name, name);
	*ret = event;
	return 0;
}

int event_find(const char *name, struct sampled_event *ret)
{
	const char *colon = strchr(name, ':');

	if (colon)
		return find_tracepoint(name, colon, ret);
	for (size_t i = 0; i < N_ELEMENTS(known_events); i++) {
		if (is_name_of(&known_events[i], name)) {
			*ret = make_event(&known_events[i]);
			return 0;
		}
	}
	return -ENOENT;
}

bool event_nth(size_t n, struct sampled_event *ret)
{
	if (n >= N_ELEMENTS(known_events))
		return false;
	*ret = make_event(&known_events[n]);
	return true;
}

const char *event_summary(const struct sampled_event *event)
{
	for (size_t i = 0; i < N_ELEMENTS(known_events); i++)
		if (is_name_of(&known_events[i], event->name))
			return known_events[i].summary;
	return "";
}
