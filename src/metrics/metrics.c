/* SPDX-License-Identifier: MIT */
/* metrics.c - all tables of metrics, and the files that they share; see metrics.h and sources.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/metrics/sources.h"

enum {
	FIRST_BYTES = 8192,
	MAX_FILE_BYTES = 1 << 20, /* /proc/stat has a line per CPU and a number per interrupt */
	MAX_KEPT_PROCESSES = 128, /* three descriptors each */
	SHARE_OF_DESCRIPTORS = 8, /* of those that the process may open */
};

static const struct metric_source *const sources[] = {
	&metric_process_usage, &metric_machine_usage, &metric_cgroup_usage,
	&metric_pressure,      &metric_disk_usage,    &metric_network_usage,
};

/* ---- Files ---- */

static int reserve(struct metrics *metrics, unsigned slot, size_t n_bytes)
{
	char *larger;

	if (n_bytes <= metrics->allocated[slot])
		return 0;
	larger = realloc(metrics->texts[slot], n_bytes);
	if (!larger)
		return -ENOMEM;
	metrics->texts[slot] = larger;
	metrics->allocated[slot] = n_bytes;
	return 0;
}

const char *metric_read_fd(struct metrics *metrics, unsigned slot, int fd)
{
	size_t n = 0;

	for (;;) {
		size_t room = MAX(metrics->allocated[slot], (size_t)FIRST_BYTES);
		ssize_t got;

		if (n + 1 >= room)
			room *= 2;
		if (room > MAX_FILE_BYTES || reserve(metrics, slot, room) < 0) {
			errno = room > MAX_FILE_BYTES ? EFBIG : ENOMEM;
			return NULL;
		}
		/* From where the last read ended, the kernel does not make the text again: seq_read_iter(), fs/seq_file.c. */
		got = pread(fd, metrics->texts[slot] + n, room - n - 1, (off_t)n);
		if (got < 0)
			return NULL;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	metrics->texts[slot][n] = '\0';
	return metrics->texts[slot];
}

const char *metric_read_kept(struct metrics *metrics, unsigned slot, const char *path, int *fd)
{
	const char *text = NULL;

	if (*fd < 0)
		*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd >= 0)
		text = metric_read_fd(metrics, slot, *fd);
	if (!text && *fd >= 0) {
		int error = errno;

		close(*fd);
		*fd = -1;
		errno = error;
	}
	return text;
}

const char *metric_read_once(struct metrics *metrics, unsigned slot, const char *path)
{
	int fd = -1;
	const char *text = metric_read_kept(metrics, slot, path, &fd);

	if (fd >= 0)
		close(fd);
	return text;
}

const char *metric_machine_file(struct metrics *metrics, enum machine_file file)
{
	static const char *const paths[MACHINE_N_FILES] = {
		[FILE_STAT] = "/proc/stat",
		[FILE_MEMINFO] = "/proc/meminfo",
		[FILE_VMSTAT] = "/proc/vmstat",
		[FILE_NET_DEV] = "/proc/self/net/dev",
		[FILE_PRESSURE_CPU] = "/proc/pressure/cpu",
		[FILE_PRESSURE_MEMORY] = "/proc/pressure/memory",
		[FILE_PRESSURE_IO] = "/proc/pressure/io",
		[FILE_DISKSTATS] = "/proc/diskstats",
	};

	return metric_read_kept(metrics, file, paths[file], &metrics->machine[file]);
}

/* ---- Processes ---- */

static void close_process(struct kept_process *process)
{
	for (size_t i = 0; i < PROCESS_N_FILES; i++)
		if (process->fds[i] >= 0)
			close(process->fds[i]);
}

struct kept_process *metric_process(struct metrics *metrics, pid_t pid)
{
	const struct id_slot *slot = id_map_find(&metrics->by_pid, (uint64_t)pid);
	struct kept_process *process;

	if (!slot) {
		if (grow(&metrics->processes, metrics->n_processes, &metrics->processes_allocated,
			 sizeof *metrics->processes) < 0 ||
		    id_map_add(&metrics->by_pid, (uint64_t)pid, (uint32_t)metrics->n_processes) < 0)
			return NULL;
		metrics->processes[metrics->n_processes++] = (struct kept_process){ .pid = pid, .fds = { -1, -1, -1 } };
	}
	process = &metrics->processes[slot ? slot->id : metrics->n_processes - 1];
	process->look = metrics->look;
	return process;
}

bool metrics_saw_end(const struct metrics *metrics, pid_t pid)
{
	const struct id_slot *slot = id_map_find(&metrics->by_pid, (uint64_t)pid);

	return slot && metrics->processes[slot->id].has_ended;
}

/* Close the files of processes that are not looked at any more. */
static int evict(struct metrics *metrics)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < metrics->n_processes; i++)
		if (metrics->processes[i].look == metrics->look)
			metrics->processes[n++] = metrics->processes[i];
		else
			close_process(&metrics->processes[i]);
	if (n == metrics->n_processes)
		return 0;
	metrics->n_processes = n;
	id_map_clear(&metrics->by_pid);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = id_map_add(&metrics->by_pid, (uint64_t)metrics->processes[i].pid, (uint32_t)i);
	return r;
}

/* ---- All tables ---- */

int metrics_new(struct metrics **ret)
{
	CLEANUP(metrics_freep) struct metrics *metrics = calloc(1, sizeof *metrics);
	CLEANUP(freep) char *mounts = NULL;
	struct rlimit limit;
	int r = 0;

	if (!metrics)
		return -ENOMEM;
	for (size_t i = 0; i < MACHINE_N_FILES; i++)
		metrics->machine[i] = -1;
	metrics->tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	metrics->max_kept = MAX_KEPT_PROCESSES;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics->max_kept = MIN(metrics->max_kept, limit.rlim_cur / SHARE_OF_DESCRIPTORS / PROCESS_N_FILES);
	if (gethostname(metrics->host, sizeof metrics->host) < 0)
		metrics->host[0] = '\0';
	metrics->host[sizeof metrics->host - 1] = '\0';
	if (read_file("/proc/self/mountinfo", MAX_FILE_BYTES, &mounts, NULL) == 0)
		r = cgroup_parse_mounts(metrics, mounts);
	if (r < 0)
		return r;
	*ret = TAKE(metrics);
	return 0;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < METRIC_N_TEXTS; i++)
		free(metrics->texts[i]);
	for (size_t i = 0; i < MACHINE_N_FILES; i++)
		if (metrics->machine[i] >= 0)
			close(metrics->machine[i]);
	for (size_t i = 0; i < metrics->n_processes; i++)
		close_process(&metrics->processes[i]);
	free(metrics->processes);
	id_map_done(&metrics->by_pid);
	cgroup_done(metrics);
	gpu_reader_free(metrics->gpu);
	free(metrics);
}

void metrics_freep(struct metrics **metrics)
{
	metrics_free(*metrics);
}

int metrics_put(struct metrics *metrics, const char *table, const struct metrics_moment *moment,
		const struct metric_sink *sink)
{
	int r = table ? -ENOENT : 0;

	metrics->look++;
	for (size_t i = 0; i < N_ELEMENTS(sources) && r >= (table ? -ENOENT : 0); i++) {
		if (table && strcmp(sources[i]->table, table) != 0)
			continue;
		r = sources[i]->put(metrics, moment, sink);
		if (table)
			break;
	}
	return r < 0 ? r : evict(metrics);
}

/* ---- GPUs ---- */

int metrics_start_gpu(struct metrics *metrics)
{
	metrics->gpu_asked_seconds = (double)realtime_ns() / 1e9;
	return gpu_reader_start(&metrics->gpu);
}

void metrics_ask_gpu(struct metrics *metrics, double seconds)
{
	if (metrics->gpu && gpu_reader_ask(metrics->gpu, monotonic_ns()))
		metrics->gpu_asked_seconds = seconds;
}

int metrics_put_gpu(struct metrics *metrics, const struct metric_sink *sink)
{
	const struct gpu_look *look;
	int r = 0;

	if (!metrics->gpu || gpu_reader_take(metrics->gpu, 0, &look) < 0)
		return 0;
	if (!metrics->has_gpu_devices)
		r = gpu_put_devices(look, metrics->host, sink);
	metrics->has_gpu_devices = true;
	if (r >= 0)
		r = gpu_put_metrics(look, metrics->gpu_asked_seconds, metrics->host, sink);
	return r < 0 ? r : gpu_put_processes(look, metrics->gpu_asked_seconds, metrics->host, sink);
}

const char *metrics_gpu_trouble(struct metrics *metrics)
{
	bool is_absent = false;
	const char *why = metrics->gpu ? gpu_reader_why(metrics->gpu, monotonic_ns(), &is_absent) : NULL;

	return is_absent ? NULL : why;
}
