/* SPDX-License-Identifier: MIT */
/* proc.c - see proc.h. */
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/util.h"

int proc_tasks(pid_t pid, pid_t **ret, size_t *ret_n)
{
	CLEANUP(closedirp) DIR *folder = NULL;
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0, allocated = 0;
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(folder)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);
		int r;

		if (tid <= 0)
			continue; /* "." and ".." */
		r = grow(&tids, n, &allocated, sizeof *tids);
		if (r < 0)
			return r;
		tids[n++] = (pid_t)tid;
	}

	*ret = TAKE(tids);
	*ret_n = n;
	return 0;
}

static void chomp(char *text)
{
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
}

char *proc_text(pid_t pid, const char *file, size_t max_bytes)
{
	char *text;
	size_t n;
	int r;

	r = proc_read(pid, file, max_bytes, &text, &n);
	if (r < 0)
		return r == -ENOMEM ? NULL : strdup("");
	for (size_t i = 0; i + 1 < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	chomp(text);
	return text;
}

/* From the state on: fields 3, 4, 9, 20, 26, 28 and 45 of proc_pid_stat(5). */
#define SKIP_5 " %*s %*s %*s %*s %*s"
#define SKIP_15 SKIP_5 SKIP_5 SKIP_5
#define STAT_FORMAT                                                                                                    \
	" %c %d %*s %*s %*s %*s %u" SKIP_5 SKIP_5 " %u" SKIP_5 " %" SCNu64 " %*s %" SCNu64 SKIP_15 " %*s %" SCNu64

int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *ret)
{
	enum { PF_EXITING = 0x00000004, PF_KTHREAD = 0x00200000 }; /* include/linux/sched.h */
	CLEANUP(freep) char *text = NULL;
	const char *rest;
	unsigned flags, n_threads;
	uint64_t code, stack, data;
	char path[64], state;
	int parent, r;

	if (tid)
		snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	else
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	r = read_file(path, 4096, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	rest = strrchr(text, ')'); /* the name may contain any character */
	if (!rest || sscanf(rest + 1, STAT_FORMAT, &state, &parent, &flags, &n_threads, &code, &stack, &data) != 7)
		return -EBADMSG;
	*ret = (struct proc_stat){
		.state = state,
		.parent = (pid_t)parent,
		.is_kernel_thread = (flags & PF_KTHREAD) != 0,
		.is_ending = (flags & PF_EXITING) != 0,
		.n_threads = n_threads,
		.image = stack ? mix64(code ^ mix64(data ^ mix64(stack))) | 1 : 0,
	};
	return 0;
}

static int read_schedstat(pid_t pid, pid_t tid, uint64_t *ret_run_ns, uint64_t *ret_n_runs)
{
	CLEANUP(freep) char *text = NULL;
	char path[64];
	int r;

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	r = read_file(path, 128, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return sscanf(text, "%" SCNu64 " %*u %" SCNu64, ret_run_ns, ret_n_runs) == 2 && *ret_run_ns > 0 ? 0 : -ENOSYS;
}

int proc_run_time(pid_t pid, pid_t tid, uint64_t *ret_ns)
{
	uint64_t run_ns, n_runs;
	int r = read_schedstat(pid, tid, &run_ns, &n_runs);

	if (r >= 0)
		*ret_ns = run_ns;
	return r;
}

int proc_run_count(pid_t pid, pid_t tid, uint64_t *ret)
{
	uint64_t run_ns, n_runs;
	int r = read_schedstat(pid, tid, &run_ns, &n_runs);

	if (r >= 0)
		*ret = n_runs;
	return r;
}

bool proc_has_ended(const struct proc_stat *stat)
{
	return (stat->is_ending || strchr("ZX", stat->state)) && stat->n_threads <= 1;
}

int proc_futex(pid_t pid, pid_t tid, uint64_t *ret)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t address;
	char path[64];
	long number;
	int r;

	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	r = read_file(path, 512, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	*ret = 0;
	if (strncmp(text, "running", strlen("running")) == 0)
		return 0;
	if (sscanf(text, "%ld", &number) != 1)
		return -EBADMSG;
	/* After a signal, the kernel resumes a wait through restart_syscall(2), with the same arguments. */
	if ((number == SYS_futex || number == SYS_restart_syscall) && sscanf(text, "%*d %" SCNx64, &address) == 1)
		*ret = address;
	return 0;
}

int proc_call_parse(const char *text, struct proc_call *ret)
{
	struct proc_call call = { .number = -1 };
	uint64_t *to = call.arguments;

	if (strncmp(text, "running", strlen("running")) == 0) {
		*ret = (struct proc_call){ .is_running = true };
		return 0;
	}
	if (sscanf(text, "-1 %" SCNx64 " %" SCNx64, &call.sp, &call.pc) != 2 &&
	    sscanf(text,
		   "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		   &call.number, &to[0], &to[1], &to[2], &to[3], &to[4], &to[5], &call.sp, &call.pc) != 9)
		return -EBADMSG;
	*ret = call;
	return 0;
}

int proc_call_read(pid_t pid, pid_t tid, struct proc_call *ret)
{
	CLEANUP(freep) char *text = NULL;
	char path[64];
	int r;

	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	r = read_file(path, 512, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return proc_call_parse(text, ret);
}

const char *proc_status_value(const char *status, const char *key)
{
	size_t n_key = strlen(key);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n_key) == 0 && line[n_key] == ':')
			return line + n_key + 1;
	}
	return NULL;
}

int proc_status_own_pid(const char *status, pid_t *ret, unsigned *ret_n)
{
	const char *at = proc_status_value(status, "NSpid");
	unsigned n = 0;
	pid_t own = 0;

	if (!at)
		return -ENODATA;
	while (*at == '\t') {
		char *end;
		unsigned long number = strtoul(at + 1, &end, 10);

		if (end == at + 1 || number == 0 || number > INT32_MAX)
			return -EBADMSG;
		own = (pid_t)number;
		n++;
		at = end;
	}
	if (*at != '\n' || n == 0)
		return -EBADMSG;
	*ret = own;
	if (ret_n)
		*ret_n = n;
	return 0;
}

bool proc_status_ids(const char *status, const char *key, unsigned ids[3])
{
	const char *value = proc_status_value(status, key);

	return value && sscanf(value, "%u %u %u", &ids[0], &ids[1], &ids[2]) == 3;
}

long proc_number(const char *path, long otherwise)
{
	CLEANUP(freep) char *text = NULL;
	char *end;
	long value;

	if (read_file(path, 64, &text, NULL) < 0)
		return otherwise;
	value = strtol(text, &end, 10);
	return end == text ? otherwise : value;
}

/* Value of the first "key : value" line; "": none. */
static void cpuinfo_value(const char *text, const char *key, char *to, size_t n_bytes)
{
	to[0] = '\0';
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line += strlen(key);
		line += strspn(line, " \t");
		if (*line++ != ':')
			continue;
		line += strspn(line, " \t");
		snprintf(to, n_bytes, "%.*s", (int)strcspn(line, "\n"), line);
		return;
	}
}

void proc_cpu_model(char *to, size_t n_bytes)
{
	CLEANUP(freep) char *text = NULL;
	char implementer[32], part[32];

	to[0] = '\0';
	if (read_file("/proc/cpuinfo", 1 << 16, &text, NULL) < 0)
		return;
	cpuinfo_value(text, "model name", to, n_bytes);
	if (to[0])
		return;
	cpuinfo_value(text, "CPU implementer", implementer, sizeof implementer);
	cpuinfo_value(text, "CPU part", part, sizeof part);
	if (implementer[0] && part[0])
		snprintf(to, n_bytes, "implementer %s part %s", implementer, part);
}
