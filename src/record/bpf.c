/* bpf.c - the program in the kernel, its maps, and the events that it writes to; see bpf.h.
 *
 * Process and thread ids in the kernel are those of the initial PID namespace. Only where
 * that is ours can samples and processes be told by them.
 */
#include "src/record/bpf.h"

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
#include "src/record/bpf_object.h"
#include "src/record/decode.h"

/* Of the initial PID namespace. Source: include/linux/proc_ns.h, PROC_PID_INIT_INO. */
#define INITIAL_NAMESPACE 0xeffffffcu

struct output {
	int fd;
	uint64_t id;
};

struct bpf_source {
	struct bpf_object *object;
	int program, at_switch, processes, outputs, judged;
	struct output *output; /* by processor */
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
	for (size_t i = 0; i < source->n_outputs; i++)
		closep(&source->output[i].fd);
	free(source->output);
	bpf_object__close(source->object);
	free(source);
}

void bpf_source_freep(struct bpf_source **source)
{
	bpf_source_free(*source);
}

/* Libraries do not print; what is wrong is told by errors. */
static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

static int set_size(struct bpf_source *source, const char *map, uint32_t n)
{
	return bpf_map__set_max_entries(bpf_object__find_map_by_name(source->object, map), n);
}

static int load(struct bpf_source *source, uint32_t n_cpus)
{
	int r;

	source->object = bpf_object__open_mem(bpf_object_bytes, sizeof bpf_object_bytes, NULL);
	if (!source->object)
		return -errno;
	r = set_size(source, "rooms", n_cpus);
	if (r >= 0)
		r = set_size(source, "outputs", n_cpus);
	if (r >= 0)
		r = set_size(source, "switch_budgets", n_cpus);
	if (r >= 0)
		r = bpf_object__load(source->object);
	if (r < 0)
		return r;
	source->program = bpf_program__fd(bpf_object__find_program_by_name(source->object, "read_frames"));
	source->at_switch =
		bpf_program__fd(bpf_object__find_program_by_name(source->object, "read_frames_at_switch"));
	source->processes = bpf_object__find_map_fd_by_name(source->object, "processes");
	source->outputs = bpf_object__find_map_fd_by_name(source->object, "outputs");
	source->judged = bpf_object__find_map_fd_by_name(source->object, "judged");
	return source->program < 0 || source->at_switch < 0 || source->processes < 0 || source->outputs < 0 || source->judged < 0 ? -ENOENT : 0;
}

/* An event of one processor that the program writes to, redirected to that one's ring. */
static int open_output(struct bpf_source *source, const struct ring *ring)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = RECORD_SAMPLE_TYPE_PYTHON,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct output *output = &source->output[ring->cpu];
	uint32_t cpu = ring->cpu;

	output->fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (output->fd < 0 || ioctl(output->fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0 ||
	    ioctl(output->fd, PERF_EVENT_IOC_ID, &output->id) < 0)
		return -errno;
	return bpf_map_update_elem(source->outputs, &cpu, &output->fd, BPF_ANY);
}

static int open_outputs(struct bpf_source *source, const struct rings *rings, size_t n_cpus)
{
	int r = 0;

	source->output = calloc(n_cpus, sizeof *source->output);
	if (!source->output)
		return -ENOMEM;
	while (source->n_outputs < n_cpus)
		source->output[source->n_outputs++].fd = -1;
	for (size_t i = 0; i < rings->n && r >= 0; i++)
		r = rings->ring[i].cpu < n_cpus ? open_output(source, &rings->ring[i]) : -EINVAL;
	return r;
}

int bpf_source_new(const struct rings *rings, struct bpf_source **ret)
{
	CLEANUP(bpf_source_freep) struct bpf_source *source = NULL;
	int r, n_cpus;

	if (!in_initial_namespace())
		return -EXDEV;
	libbpf_set_print(say_nothing);
	n_cpus = libbpf_num_possible_cpus();
	if (n_cpus < 0)
		return n_cpus;
	source = calloc(1, sizeof *source);
	if (!source)
		return -ENOMEM;
	r = load(source, (uint32_t)n_cpus);
	if (r >= 0)
		r = open_outputs(source, rings, (size_t)n_cpus);
	if (r < 0)
		return r;
	*ret = TAKE(source);
	return 0;
}

int bpf_source_attach(const struct bpf_source *source, int event_fd, bool at_switch)
{
	return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, at_switch ? source->at_switch : source->program) < 0 ? -errno : 0;
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
		/* As the kernel has it inside: include/linux/kdev_t.h, MKDEV. */
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

bool bpf_source_wrote(const struct bpf_source *source, unsigned cpu, uint64_t id)
{
	return cpu < source->n_outputs && source->output[cpu].fd >= 0 && source->output[cpu].id == id;
}
