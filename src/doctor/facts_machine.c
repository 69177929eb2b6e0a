/* SPDX-License-Identifier: MIT */
/* facts_machine.c - the machine, as visible to this user; see facts.h.
 *
 * Features are tried if possible: it opens events and loads a BPF program on this process.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/doctor/facts.h"
#include "src/capture/capture.h"
#include "unwind/cpython/cpython.h"

enum { SOME_HZ = 99, SOME_STACK_BYTES = 16384 };

static int sample_with(enum capture_source source, pid_t pid, struct tried_sampling *ret)
{
	const struct capture_options options = { .source = source, .hz = SOME_HZ, .stack_bytes = SOME_STACK_BYTES };
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	*ret = (struct tried_sampling){ 0 };
	r = capture_attach(&options, pid, &capture);
	if (r == -ENOMEM)
		return r;
	ret->error = r;
	if (r < 0)
		return 0;
	ret->ring_bytes = capture_ring_bytes(capture);
	ret->rings_are_small = capture_rings_are_small(capture);
	ret->has_kernel = capture_has_kernel(capture);
	return 0;
}

int facts_try_sampling(pid_t pid, struct tried_sampling *ret)
{
	return sample_with(SOURCE_WAKEUP, pid, ret);
}

/* Features that make the bpf source cheaper. */
static int try_savings(struct facts_machine *ret)
{
	const struct capture_options options = {
		.source = SOURCE_BPF, .mode = MODE_WALL, .hz = SOME_HZ, .stack_bytes = SOME_STACK_BYTES
	};
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	r = capture_attach(&options, getpid(), &capture);
	ret->switches_error = r < 0 ? r : capture_switch_refusal(capture);
	ret->direct_error = r < 0 ? r : capture_direct_refusal(capture);
	return r == -ENOMEM ? r : 0;
}

static int try_bpf(struct facts_machine *ret)
{
	struct tried_sampling tried;
	int r;

	r = sample_with(SOURCE_BPF, getpid(), &tried);
	if (r < 0)
		return r;
	ret->bpf_error = tried.error;
	if (tried.error == -EPROTONOSUPPORT)
		capture_explain_source(ret->bpf_reason, sizeof ret->bpf_reason);
	return tried.error < 0 ? 0 : try_savings(ret);
}

static int try_counter(void)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	CLEANUP(closep) int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

/* Check a file: folders that everyone may enter may contain files of root. */
static void look_for_tracefs(struct facts_machine *ret)
{
	struct statfs fs;

	ret->has_tracefs = (statfs("/sys/kernel/tracing", &fs) == 0 && fs.f_type == TRACEFS_MAGIC) ||
			   access("/sys/kernel/debug/tracing/events", F_OK) == 0;
	ret->reads_tracefs = access("/sys/kernel/tracing/events/sched/sched_switch/id", R_OK) == 0 ||
			     access("/sys/kernel/debug/tracing/events/sched/sched_switch/id", R_OK) == 0;
}

/* Up to Linux 6.14, the first symbols are per-CPU offsets from 0 on. */
bool facts_shows_addresses(const char *symbols)
{
	const char *line = symbols;

	while (line) {
		if (isxdigit((unsigned char)line[strspn(line, "0")]))
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

static bool has_kernel_names(void)
{
	CLEANUP(freep) char *text = NULL;

	return read_file("/proc/kallsyms", 4096, &text, NULL) >= 0 && facts_shows_addresses(text);
}

/* Most processes use the same libc as this one. */
static void look_for_libc(struct facts_machine *ret)
{
	CLEANUP(freep) char *maps = NULL;
	char *end, *path;
	int fd;

	if (read_file("/proc/self/maps", 1 << 20, &maps, NULL) < 0)
		return;
	end = strstr(maps, "/libc.so.");
	if (!end)
		return;
	end += strcspn(end, "\n");
	*end = '\0';
	path = strrchr(maps, '\n');
	path = strchr(path ? path : maps, '/');
	if (!path || strlen(path) >= sizeof ret->libc)
		return;
	strcpy(ret->libc, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ret->has_libc = fd >= 0;
	ret->has_libc_debug = fd >= 0 && facts_has_debug_file(fd);
}

/* ID in os-release(5). */
static void read_distribution(struct facts_machine *ret)
{
	CLEANUP(freep) char *text = NULL;
	const char *line;

	if (read_file("/etc/os-release", 1 << 14, &text, NULL) < 0)
		return;
	line = strncmp(text, "ID=", 3) == 0 ? text : strstr(text, "\nID=");
	if (!line)
		return;
	line = strchr(line, '=') + 1;
	line += *line == '"';
	snprintf(ret->distribution, sizeof ret->distribution, "%.*s", (int)strcspn(line, "\"\n"), line);
}

static void look_at_disk(struct facts_machine *ret)
{
	struct statvfs fs;

	ret->folder_is_writable = access(".", W_OK) == 0;
	if (statvfs(".", &fs) == 0)
		ret->disk_free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
}

int facts_machine_gather(struct facts_machine *ret)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int r;

#ifdef __x86_64__
	ret->is_x86_64 = true;
#endif
	ret->n_cpus = n_cpus > 0 ? (unsigned)n_cpus : 1;
	ret->paranoid = proc_number("/proc/sys/kernel/perf_event_paranoid", 2);
	ret->mlock_kib = proc_number("/proc/sys/kernel/perf_event_mlock_kb", 516);
	ret->kptr_restrict = proc_number("/proc/sys/kernel/kptr_restrict", 0);
	ret->has_servers = servers && servers[0];
	ret->has_kernel_names = has_kernel_names();
	ret->counters_error = try_counter();
	py_known_versions(ret->pythons, sizeof ret->pythons);
	look_for_tracefs(ret);
	look_for_libc(ret);
	read_distribution(ret);
	look_at_disk(ret);
	r = facts_try_sampling(getpid(), &ret->sampling);
	return r < 0 ? r : try_bpf(ret);
}
