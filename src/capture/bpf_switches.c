/* SPDX-License-Identifier: MIT */
/* bpf_switches.c - the program at the switch, and the memory that it writes to; see bpf_switches.h.
 *
 * It needs more of the kernel than the one that reads frames: its BTF, for the program reads fields of tasks, and the
 * state that a thread leaves in among the tracepoint's arguments (Linux 5.18). Where that is not there, loading fails.
 */
#include "src/capture/bpf_switches.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/util.h"
#include "src/capture/switches_object.h"

/*
 * The second program reports switches that the first one missed because it did not run. Not every kernel needs it, and
 * not every kernel has its tracepoint (Linux 6.18 does).
 */
enum { TELL_SWITCH, LOOK_AFTER_SWITCH, N_PROGRAMS };
static const char *const program_names[N_PROGRAMS] = { "tell_switch", "look_after_switch" };

/* After this long without a missed switch, detach the second program. */
enum { TRIAL_NS = 1000000000 };

struct bpf_switches {
	struct bpf_object *object;
	struct bpf_link *links[N_PROGRAMS]; /* NULL: not attached */
	uint64_t began_ns;
	bool is_tried;
	struct switch_ring *shared;
	size_t shared_bytes; /* 0: not mapped */
	struct switch_rings rings;
};

static void take_off(struct bpf_switches *switches, size_t i)
{
	bpf_link__destroy(switches->links[i]);
	switches->links[i] = NULL;
}

void bpf_switches_free(struct bpf_switches *switches)
{
	if (!switches)
		return;
	bpf_switches_stop(switches);
	switch_rings_done(&switches->rings);
	if (switches->shared_bytes > 0)
		munmap(switches->shared, switches->shared_bytes);
	bpf_object__close(switches->object);
	free(switches);
}

void bpf_switches_freep(struct bpf_switches **switches)
{
	bpf_switches_free(*switches);
}

void bpf_switches_stop(struct bpf_switches *switches)
{
	for (size_t i = 0; i < N_PROGRAMS; i++)
		take_off(switches, i);
}

struct switch_rings *bpf_switches_rings(struct bpf_switches *switches)
{
	return &switches->rings;
}

static struct bpf_map *find_map(const struct bpf_switches *switches, const char *name)
{
	return bpf_object__find_map_by_name(switches->object, name);
}

static struct bpf_program *find_program(const struct bpf_switches *switches, size_t i)
{
	return bpf_object__find_program_by_name(switches->object, program_names[i]);
}

static int load_programs(struct bpf_switches *switches, const struct bpf_source *source, size_t n_cpus,
			 size_t n_programs)
{
	int r;

	switches->object = bpf_object__open_mem(switches_object_bytes, sizeof switches_object_bytes, NULL);
	if (!switches->object)
		return -errno;
	r = bpf_map__reuse_fd(find_map(switches, "judged"), bpf_source_judged(source));
	if (r >= 0)
		r = bpf_map__set_max_entries(find_map(switches, "switch_rings"), (uint32_t)n_cpus);
	for (size_t i = n_programs; r >= 0 && i < N_PROGRAMS; i++)
		r = bpf_program__set_autoload(find_program(switches, i), false);
	return r < 0 ? r : bpf_object__load(switches->object);
}

/* Load both programs, or only the first if the second's tracepoint is missing. */
static int load(struct bpf_switches *switches, const struct bpf_source *source, size_t n_cpus)
{
	int r = load_programs(switches, source, n_cpus, N_PROGRAMS);

	if (r >= 0 || r == -ENOMEM)
		return r;
	bpf_object__close(TAKE(switches->object));
	return load_programs(switches, source, n_cpus, 1);
}

static int map_rings(struct bpf_switches *switches, size_t n_cpus)
{
	size_t n_bytes = n_cpus * sizeof *switches->shared;
	int fd = bpf_map__fd(find_map(switches, "switch_rings"));

	switches->shared = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (switches->shared == MAP_FAILED)
		return -errno;
	switches->shared_bytes = n_bytes;
	return switch_rings_init(&switches->rings, switches->shared, n_cpus);
}

/* Attach the loaded programs; a missing second one is no error. */
static int attach(struct bpf_switches *switches)
{
	for (size_t i = 0; i < N_PROGRAMS; i++) {
		struct bpf_program *program = find_program(switches, i);

		if (switches->links[i] || bpf_program__fd(program) < 0)
			continue;
		switches->links[i] = bpf_program__attach(program);
		if (!switches->links[i])
			return -errno;
	}
	return 0;
}

static bool anyone_is_hidden(const struct bpf_switches *switches)
{
	for (size_t i = 0; i < switches->rings.n; i++)
		if (__atomic_load_n(&switches->shared[i].n_hidden, __ATOMIC_RELAXED) > 0)
			return true;
	return false;
}

void bpf_switches_tend(struct bpf_switches *switches, uint64_t now_ns)
{
	if (switches->is_tried || now_ns < switches->began_ns + TRIAL_NS)
		return;
	switches->is_tried = true;
	if (!anyone_is_hidden(switches))
		take_off(switches, LOOK_AFTER_SWITCH);
}

int bpf_switches_new(const struct bpf_source *source, size_t n_cpus, struct bpf_switches **ret)
{
	CLEANUP(bpf_switches_freep) struct bpf_switches *switches = calloc(1, sizeof *switches);
	int r;

	if (!switches)
		return -ENOMEM;
	r = load(switches, source, n_cpus);
	if (r >= 0)
		r = map_rings(switches, n_cpus);
	if (r >= 0)
		r = attach(switches);
	if (r < 0)
		return r;
	switches->began_ns = monotonic_ns();
	*ret = TAKE(switches);
	return 0;
}
