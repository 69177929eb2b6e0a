/* SPDX-License-Identifier: MIT */
/* facts_rights.c - our identity and rights; see facts.h.
 *
 * A system call that a filter forbids fails before the kernel checks its arguments. So each
 * is made with arguments that have no effect, and the error shows how far it got.
 * Sources: seccomp(2), perf_event_open(2), ptrace(2), bpf(2), process_vm_readv(2), namespaces(7).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/doctor/facts.h"

/* Inodes of the initial namespaces. Source: include/linux/proc_ns.h. */
#define INITIAL_PID_NAMESPACE 0xeffffffcu
#define INITIAL_USER_NAMESPACE 0xeffffffdu

static bool is_initial(const char *path, ino_t initial)
{
	struct stat st;

	return stat(path, &st) < 0 || st.st_ino == initial;
}

/* With a NULL attribute the kernel returns EFAULT, or the error of perf_event_paranoid. */
static int try_perf_event_open(void)
{
	long fd = syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);

	if (fd >= 0)
		close((int)fd);
	return fd < 0 ? errno : 0;
}

/* A process may always read its own memory. */
static int try_process_vm_readv(void)
{
	char from = 1, to = 0;
	struct iovec here = { &to, 1 }, there = { &from, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 ? 0 : errno;
}

/* No process is its own tracee: the kernel returns ESRCH. */
static int try_ptrace(void)
{
	return ptrace(PTRACE_DETACH, getpid(), NULL, NULL) < 0 ? errno : 0;
}

/* The kernel returns EINVAL; or EPERM if it checks a capability first. */
static int try_bpf(void)
{
	return syscall(SYS_bpf, -1, NULL, 0) < 0 ? errno : 0;
}

static bool is_refusal(int error)
{
	return error == EPERM || error == ENOSYS;
}

static void try_calls(struct facts_rights *ret)
{
	bool may_bpf = HAS_CAPABILITY(ret, CAPABILITY_BPF) || HAS_CAPABILITY(ret, CAPABILITY_SYS_ADMIN);
	int bpf = try_bpf();

	ret->is_filtered[CALL_PERF_EVENT_OPEN] = is_refusal(try_perf_event_open());
	ret->is_filtered[CALL_PROCESS_VM_READV] = is_refusal(try_process_vm_readv());
	ret->is_filtered[CALL_PTRACE] = is_refusal(try_ptrace());
	ret->is_filtered[CALL_BPF] = bpf == ENOSYS || (bpf == EPERM && may_bpf && !ret->in_user_namespace);
}

static void read_status(struct facts_rights *ret)
{
	CLEANUP(freep) char *status = NULL;
	const char *value;

	if (read_file("/proc/self/status", 1 << 16, &status, NULL) < 0)
		return;
	value = proc_status_value(status, "CapEff");
	if (value)
		ret->capabilities = strtoull(value, NULL, 16);
	value = proc_status_value(status, "Seccomp");
	ret->has_filter = value && strtol(value, NULL, 10) == 2;
	value = proc_status_value(status, "NoNewPrivs");
	ret->gains_nothing = value && strtol(value, NULL, 10) == 1;
}

/* Marker files of container runtimes. */
static bool has_container_mark(void)
{
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
	       getenv("KUBERNETES_SERVICE_HOST") != NULL;
}

static void read_limits(struct facts_rights *ret)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		ret->memlock_bytes = limit.rlim_cur;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		ret->descriptors_soft = limit.rlim_cur;
		ret->descriptors_hard = limit.rlim_max;
	}
}

void facts_rights_gather(struct facts_rights *ret)
{
	ssize_t n;

	ret->uid = geteuid();
	ret->gid = getegid();
	ret->ptrace_scope = proc_number("/proc/sys/kernel/yama/ptrace_scope", 0);
	ret->in_user_namespace = !is_initial("/proc/self/ns/user", INITIAL_USER_NAMESPACE);
	ret->in_pid_namespace = !is_initial("/proc/self/ns/pid", INITIAL_PID_NAMESPACE);
	ret->in_container = has_container_mark();
	n = readlink("/proc/self/exe", ret->program, sizeof ret->program - 1);
	ret->program[MAX(n, 0)] = '\0';
	read_status(ret);
	read_limits(ret);
	try_calls(ret);
}
