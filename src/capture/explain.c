/* SPDX-License-Identifier: MIT */
/* explain.c - why sampling is refused; see capture.h.
 *
 * The kernel's rules, in the order of its checks (kernel/events/core.c,
 * Linux 6.12; the level 3 of perf_event_paranoid is a patch of Debian, Ubuntu
 * and Android):
 *   a seccomp filter           EPERM or ENOSYS, before perf's own checks
 *   paranoid >= 3              EACCES without CAP_SYS_ADMIN: CAP_PERFMON, which is younger than the patch, does
 *                              not count (tested on Debian's 5.10 to 7.3)
 *   the target                 EACCES unless CAP_PERFMON, or we may "ptrace read" it:
 *                              same user and groups and dumpable, or CAP_SYS_PTRACE
 * CAP_SYS_ADMIN counts as CAP_PERFMON, too. Both count in the initial user namespace
 * only. Time inside the kernel needs paranoid <= 1; capturing continues without it
 * after a refusal, so it is no reason here.
 */
#include "src/capture/explain.h"

#include <cap-ng.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/cpus.h"
#include "src/capture/capture.h"

/* Linux 5.8; older headers lack it. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static bool all_are(const unsigned ids[3], unsigned id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id;
}

static void gather_target(pid_t pid, struct explain_facts *facts)
{
	CLEANUP(freep) char *status = NULL;
	unsigned uids[3], gids[3];
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (read_file(path, 1 << 16, &status, NULL) < 0 || !proc_status_ids(status, "Uid", uids) ||
	    !proc_status_ids(status, "Gid", gids))
		return;
	facts->target_uid = uids[1];
	facts->target_is_foreign = !all_are(uids, getuid());

	/* The /proc folder of a process that is not dumpable belongs to root. */
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	facts->target_is_protected = !all_are(gids, getgid()) || (stat(path, &st) == 0 && st.st_uid != uids[1]);
}

static void gather_rights(struct explain_facts *facts)
{
	CLEANUP(freep) char *status = NULL;
	CLEANUP(freep) char *map = NULL;
	unsigned first, outside, n;
	const char *seccomp;

	if (capng_get_caps_process() == 0) {
		facts->has_sys_admin = capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN);
		facts->has_perfmon = facts->has_sys_admin || capng_have_capability(CAPNG_EFFECTIVE, CAP_PERFMON);
	}
	if (read_file("/proc/self/status", 1 << 16, &status, NULL) >= 0) {
		seccomp = proc_status_value(status, "Seccomp");
		facts->has_seccomp_filter = seccomp && strtol(seccomp, NULL, 10) == 2;
	}
	/* The initial user namespace maps every ID to itself. */
	if (read_file("/proc/self/uid_map", 4096, &map, NULL) >= 0)
		facts->in_user_namespace = sscanf(map, "%u %u %u", &first, &outside, &n) != 3 || first != 0 ||
					   outside != 0 || n != UINT_MAX;
}

static void gather_limits(pid_t pid, struct explain_facts *facts)
{
	CLEANUP(freep) pid_t *tids = NULL;
	CLEANUP(freep) unsigned *cpus = NULL;
	struct rlimit limit;
	size_t n;

	facts->n_threads = proc_tasks(pid, &tids, &n) >= 0 ? n : 1;
	facts->n_cpus = cpus_online(&cpus, &n) >= 0 ? n : 1;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		facts->n_descriptors_allowed = limit.rlim_max;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		facts->memlock_bytes = limit.rlim_cur;
}

void explain_gather(pid_t pid, struct explain_facts *ret)
{
	*ret = (struct explain_facts){
		.pid = pid,
		.uid = getuid(),
		.paranoid = proc_number("/proc/sys/kernel/perf_event_paranoid", 2),
		.mlock_kib = proc_number("/proc/sys/kernel/perf_event_mlock_kb", 516),
	};
	gather_rights(ret);
	gather_target(pid, ret);
	gather_limits(pid, ret);
}

static void format_refused(int error, const struct explain_facts *f, char *to, size_t n_bytes)
{
	if (error == -EPERM && f->has_seccomp_filter)
		snprintf(to, n_bytes,
			 "a seccomp filter, as containers have by default, forbids "
			 "perf_event_open: start the container with `--cap-add PERFMON`, or with "
			 "`--security-opt seccomp=FILE` and a profile that allows it");
	else if (f->has_perfmon && f->in_user_namespace)
		snprintf(to, n_bytes,
			 "capabilities of a user namespace do not count for perf_event_open (perf_event_paranoid is "
			 "%ld): run probing outside it as root, or with CAP_PERFMON",
			 f->paranoid);
	else if (f->target_is_foreign)
		snprintf(to, n_bytes,
			 "process %d belongs to uid %u and you are uid %u: run probing as that "
			 "user or as root%s",
			 (int)f->pid, f->target_uid, f->uid,
			 f->paranoid >= 3 ? "" : ", or give it CAP_PERFMON and CAP_SYS_PTRACE");
	else if (f->paranoid >= 3 && !f->has_sys_admin)
		snprintf(to, n_bytes,
			 "perf_event_paranoid is %ld%s: run `sysctl kernel.perf_event_paranoid=2` as "
			 "root, or run probing as root",
			 f->paranoid, f->has_perfmon ? ", for which CAP_PERFMON is not enough" : "");
	else if (f->target_is_protected)
		snprintf(to, n_bytes,
			 "process %d is protected from its own user (a setuid program, other "
			 "groups, or made not dumpable): run probing as root, or give it "
			 "CAP_PERFMON and CAP_SYS_PTRACE",
			 (int)f->pid);
	else
		snprintf(to, n_bytes,
			 "the kernel refuses perf_event_open on process %d (%s), although "
			 "perf_event_paranoid is %ld: probably a security module or lockdown "
			 "forbids it; %s",
			 (int)f->pid, strerror(-error), f->paranoid,
			 f->has_perfmon ? "see the kernel's log" : "run probing as root, or give it CAP_PERFMON");
}

static void format_descriptors(const struct explain_facts *f, char *to, size_t n_bytes)
{
	/* One event per thread and ring, one per ring, and some descriptors for everything else. */
	uint64_t n_needed = (f->n_threads + 1) * f->n_cpus + 64;

	snprintf(to, n_bytes,
		 "sampling %llu threads on %llu CPUs takes about %llu file descriptors and at "
		 "most %llu are allowed: run `ulimit -n %llu` first (as root)",
		 (unsigned long long)f->n_threads, (unsigned long long)f->n_cpus, (unsigned long long)n_needed,
		 (unsigned long long)f->n_descriptors_allowed, (unsigned long long)n_needed);
}

static void format_memory(const struct explain_facts *f, char *to, size_t n_bytes)
{
	snprintf(to, n_bytes,
		 "the kernel allows no rings of that size: perf_event_mlock_kb is %ld (per CPU and "
		 "user, shared with other profilers) and `ulimit -l` is %llu KiB: raise one of "
		 "them, ask for smaller rings, or give probing CAP_IPC_LOCK",
		 f->mlock_kib, (unsigned long long)f->memlock_bytes / 1024);
}

void explain_format(int error, const struct explain_facts *facts, char *to, size_t n_bytes)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
		format_refused(error, facts, to, n_bytes);
		break;
	case -ESRCH:
		snprintf(to, n_bytes, "there is no process %d, or it has just ended", (int)facts->pid);
		break;
	case -EMFILE:
		format_descriptors(facts, to, n_bytes);
		break;
	case -ENFILE:
		snprintf(to, n_bytes, "the system has no file descriptors left: raise `sysctl fs.file-max`");
		break;
	case -ENOBUFS:
		format_memory(facts, to, n_bytes);
		break;
	case -ENOSYS:
		snprintf(to, n_bytes, "%s",
			 facts->has_seccomp_filter ? "a seccomp filter hides perf_event_open: start the container "
						     "with `--cap-add PERFMON`, or with a profile that allows it"
						   : "this kernel was built without perf_event_open "
						     "(CONFIG_PERF_EVENTS)");
		break;
	case -EINVAL:
		snprintf(to, n_bytes,
			 "the kernel takes at most 100000 samples a second, 65528 bytes of stack "
			 "(a multiple of 8), and rings of a power of two pages");
		break;
	default:
		snprintf(to, n_bytes, "sampling process %d failed: %s", (int)facts->pid, strerror(-error));
	}
}

/* Point to `probing doctor` for refusals. Omit the PID of our child: it will have ended by then. */
static void point_to_doctor(int error, pid_t pid, char *to, size_t n_bytes)
{
	size_t used = strlen(to);
	struct proc_stat stat;

	if (error != -EACCES && error != -EPERM && error != -ENOSYS && error != -ENOBUFS)
		return;
	if (proc_stat_read(pid, 0, &stat) == 0 && stat.parent != getpid() && pid != getpid())
		snprintf(to + used, n_bytes - used, "; run `probing doctor %d` for details", (int)pid);
	else
		snprintf(to + used, n_bytes - used, "; run `probing doctor` for details");
}

void capture_explain(int error, pid_t pid, char *to, size_t n_bytes)
{
	struct explain_facts facts;

	explain_gather(pid, &facts);
	explain_format(error, &facts, to, n_bytes);
	point_to_doctor(error, pid, to, n_bytes);
}
