/* SPDX-License-Identifier: MIT */
/* bpf.c - the BPF program, its maps, and the events that it writes to; see bpf.h.
 *
 * Process and thread ids in the kernel are those of the initial PID namespace. Only if
 * that is ours do they identify samples and processes.
 */
#include "src/capture/bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/capture/decode.h"
#include "src/capture/direct_map.h"
#include "src/capture/frames_direct_object.h"
#include "src/capture/frames_object.h"
#include "src/capture/kernel_numbers.h"

/* Inode of the initial PID namespace. Source: include/linux/proc_ns.h, PROC_PID_INIT_INO. */
#define INITIAL_NAMESPACE 0xeffffffcu

/* The program's output events of one processor; -1: not open. */
struct outputs {
	int quiet, call; /* output on call also wakes the reader of the ring */
};

struct bpf_source {
	struct bpf_object *object;
	int program, at_switch, processes, quiet, calls, judged, floors;
	int direct_refusal; /* error that prevents reads through page tables; 0: they work */
	struct bpf_source_options options;
	int holder;              /* event that attaches the program to the tracepoint; -1: none */
	struct outputs *outputs; /* indexed by processor */
	size_t n_outputs;
};

static bool in_initial_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INITIAL_NAMESPACE;
}

void bpf_source_free(struct bpf_source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->n_outputs; i++) {
		closep(&source->outputs[i].quiet);
		closep(&source->outputs[i].call);
	}
	free(source->outputs);
	bpf_source_stop(source);
	bpf_object__close(source->object);
	free(source);
}

void bpf_source_freep(struct bpf_source **source)
{
	bpf_source_free(*source);
}

/* Libraries do not print; callers get errors. */
static int discard_log(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

static int set_size(struct bpf_source *source, const char *map, uint32_t n)
{
	return bpf_map__set_max_entries(bpf_object__find_map_by_name(source->object, map), n);
}

static struct bpf_program *find_program(const struct bpf_source *source, const char *name)
{
	return bpf_object__find_program_by_name(source->object, name);
}

/* Load only the programs this source uses: the kernel verifies each one at length. */
static int choose_programs(struct bpf_source *source)
{
	bool is_tracepoint = source->options.tracepoint != 0;
	int r;

	r = bpf_program__set_autoload(find_program(source, "read_frames"), !is_tracepoint);
	if (r >= 0)
		r = bpf_program__set_autoload(find_program(source, "read_tracepoint_frames"), is_tracepoint);
	return r < 0 ? r
		     : bpf_program__set_autoload(find_program(source, "read_frames_at_switch"),
						 source->options.samples_switches);
}

static int find_map(const struct bpf_source *source, const char *name)
{
	return bpf_object__find_map_fd_by_name(source->object, name);
}

static int set_sizes(struct bpf_source *source, uint32_t n_cpus)
{
	static const char *const by_processor[] = { "rooms", "outputs", "calls", "switch_budgets" };
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(by_processor) && r >= 0; i++)
		r = set_size(source, by_processor[i], n_cpus);
	/* The kernel allocates all entries of a map at once, which takes up to a millisecond. */
	if (r >= 0 && !source->options.samples_switches) /* only system-wide events need judgements */
		r = set_size(source, "judged", 1);
	if (r >= 0 && !source->options.wake_on_live_read)
		r = set_size(source, "met", 1);
	return r;
}

/* Set what differs between machines, and load. */
static int load_object(struct bpf_source *source, uint32_t n_cpus)
{
	int r;

	r = set_sizes(source, n_cpus);
	if (r >= 0)
		r = choose_programs(source);
	return r < 0 ? r : bpf_object__load(source->object);
}

static int load_copying(struct bpf_source *source, uint32_t n_cpus)
{
	bpf_object__close(source->object);
	source->object = bpf_object__open_mem(frames_object_bytes, sizeof frames_object_bytes, NULL);
	return source->object ? load_object(source, n_cpus) : -errno;
}

static int load_direct(struct bpf_source *source, uint32_t n_cpus)
{
	CLEANUP(freep) void *bytes = NULL;
	struct kernel_numbers numbers;
	struct direct_map direct_map;
	int r;

	r = direct_map_find(&direct_map, &numbers);
	if (r >= 0)
		r = kernel_numbers_put(&numbers, frames_direct_object_bytes, sizeof frames_direct_object_bytes, &bytes);
	if (r < 0)
		return r;
	source->object = bpf_object__open_mem(bytes, sizeof frames_direct_object_bytes, NULL);
	if (!source->object)
		return -errno;
	r = bpf_map__set_initial_value(bpf_object__find_map_by_name(source->object, ".rodata.direct_map"), &direct_map,
				       sizeof direct_map);
	return r < 0 ? r : load_object(source, n_cpus);
}

/* frames.bpf.c is compiled to two objects. The one that reads through page tables needs more of the kernel. */
static int load_either(struct bpf_source *source, uint32_t n_cpus)
{
	source->direct_refusal = source->options.in_interrupt ? load_direct(source, n_cpus) : -EOPNOTSUPP;
	return source->direct_refusal == 0 ? 0 : load_copying(source, n_cpus);
}

static int load(struct bpf_source *source, uint32_t n_cpus)
{
	int r = load_either(source, n_cpus);

	if (r < 0)
		return r;
	source->program = bpf_program__fd(
		find_program(source, source->options.tracepoint ? "read_tracepoint_frames" : "read_frames"));
	source->at_switch = bpf_program__fd(find_program(source, "read_frames_at_switch")); /* negative: not loaded */
	source->processes = find_map(source, "processes");
	source->quiet = find_map(source, "outputs");
	source->calls = find_map(source, "calls");
	source->judged = find_map(source, "judged");
	source->floors = find_map(source, "floors");
	return source->program < 0 || source->processes < 0 || source->quiet < 0 || source->calls < 0 ||
			       source->judged < 0 || source->floors < 0
		       ? -ENOENT
		       : 0;
}

/* Open an event for the program's output on one processor, redirected to that processor's ring. */
static int open_output(const struct perf_ring *ring, int map, bool wakes, int *fd)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = RECORD_SAMPLE_TYPE_PYTHON,
		.use_clockid = 1, /* all events of a ring must use one clock */
		.clockid = CLOCK_MONOTONIC,
		.wakeup_events = wakes,
	};
	uint32_t cpu = ring->cpu;

	*fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (*fd < 0 || ioctl(*fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
		return -errno;
	return bpf_map_update_elem(map, &cpu, fd, BPF_ANY);
}

static int open_both(struct bpf_source *source, const struct perf_ring *ring)
{
	struct outputs *outputs = &source->outputs[ring->cpu];
	int r;

	r = open_output(ring, source->quiet, false, &outputs->quiet);
	return r < 0 ? r : open_output(ring, source->calls, true, &outputs->call);
}

static int open_outputs(struct bpf_source *source, const struct perf_rings *rings, size_t n_cpus)
{
	int r = 0;

	source->outputs = calloc(n_cpus, sizeof *source->outputs);
	if (!source->outputs)
		return -ENOMEM;
	while (source->n_outputs < n_cpus)
		source->outputs[source->n_outputs++] = (struct outputs){ .quiet = -1, .call = -1 };
	for (size_t i = 0; i < rings->n && r >= 0; i++)
		r = rings->ring[i].cpu < n_cpus ? open_both(source, &rings->ring[i]) : -EINVAL;
	return r;
}

/*
 * The kernel detaches a tracepoint's program when the event that attached it closes, or any event that inherited it.
 * The first thread to end would detach ours. So attach the program through an event that is not inherited and counts
 * nothing. Source: perf_event_free_bpf_prog(), kernel/events/core.c, Linux 6.18.
 */
static int attach_to_own_event(struct bpf_source *source)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_TRACEPOINT,
		.config = source->options.tracepoint,
		.sample_period = 1,
		.disabled = 1,
	};

	source->holder = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (source->holder < 0 || ioctl(source->holder, PERF_EVENT_IOC_SET_BPF, source->program) < 0)
		return -errno;
	return 0;
}

void bpf_source_stop(struct bpf_source *source)
{
	closep(&source->holder);
	source->holder = -1;
}

int bpf_source_new(const struct perf_rings *rings, const struct bpf_source_options *options, struct bpf_source **ret)
{
	CLEANUP(bpf_source_freep) struct bpf_source *source = NULL;
	int r, n_cpus;

	if (!in_initial_namespace())
		return -EXDEV;
	libbpf_set_print(discard_log);
	n_cpus = libbpf_num_possible_cpus();
	if (n_cpus < 0)
		return n_cpus;
	source = calloc(1, sizeof *source);
	if (!source)
		return -ENOMEM;
	source->options = *options;
	source->holder = -1;
	r = load(source, (uint32_t)n_cpus);
	if (r >= 0)
		r = open_outputs(source, rings, (size_t)n_cpus);
	if (r >= 0 && options->tracepoint)
		r = attach_to_own_event(source);
	if (r < 0)
		return r;
	*ret = TAKE(source);
	return 0;
}

int bpf_source_attach(const struct bpf_source *source, int event_fd, bool at_switch)
{
	if (source->options.tracepoint)
		return 0;
	return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, at_switch ? source->at_switch : source->program) < 0 ? -errno
													    : 0;
}

int bpf_source_watch(struct bpf_source *source, pid_t pid, const struct python_layout *layout)
{
	struct python_layout complete = *layout;
	uint32_t key = (uint32_t)pid;
	struct stat ours, its;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
	if (stat("/proc/self/ns/pid", &ours) < 0 || stat(path, &its) < 0)
		return -errno;
	if (ours.st_ino != its.st_ino) {
		/* The kernel's internal device number. Source: include/linux/kdev_t.h, MKDEV. */
		complete.namespace_device = (uint64_t)major(its.st_dev) << 20 | minor(its.st_dev);
		complete.namespace_inode = its.st_ino;
	}
	return bpf_map_update_elem(source->processes, &key, &complete, BPF_ANY);
}

void bpf_source_forget(struct bpf_source *source, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(source->processes, &key);
}

int bpf_source_judge(struct bpf_source *source, pid_t pid, bool wanted)
{
	uint32_t key = (uint32_t)pid, value = wanted;

	return bpf_map_update_elem(source->judged, &key, &value, BPF_ANY);
}

void bpf_source_unjudge(struct bpf_source *source, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(source->judged, &key);
}

int bpf_source_direct_refusal(const struct bpf_source *source)
{
	return source->direct_refusal;
}

int bpf_source_judged(const struct bpf_source *source)
{
	return source->judged;
}

void bpf_source_set_floor(struct bpf_source *source, pid_t tid, uint64_t floor)
{
	uint32_t key = (uint32_t)tid;

	bpf_map_update_elem(source->floors, &key, &floor, BPF_ANY);
}

void bpf_source_clear_floor(struct bpf_source *source, pid_t tid)
{
	uint32_t key = (uint32_t)tid;

	bpf_map_delete_elem(source->floors, &key);
}
