/* SPDX-License-Identifier: MIT */
/* least_privilege.c - see least_privilege.h.
 *
 * Two tables list the kept rights: capabilities, each with its user, and system calls. Dropped ones cannot
 * be regained, so a recording that needs a missing one fails for good: in doubt a row stays.
 */
#include "src/cli/record/least_privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/privilege.h"
#include "base/proc.h"
#include "base/util.h"

/* Newer than the headers of old systems. Source: include/uapi/linux/capability.h, Linux 5.9. */
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_PERFMON 38
#define CAP_BPF 39
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* ---- Capabilities ---- */

static bool always(const struct privilege_needs *needs)
{
	(void)needs;
	return true;
}

static bool has_events(const struct privilege_needs *needs)
{
	return needs->source != SOURCE_POLL && needs->source != SOURCE_AGENT;
}

static bool has_bpf(const struct privilege_needs *needs)
{
	return needs->source == SOURCE_BPF;
}

/* At the end, the recorder records two threads of its own to measure the cost of a switch (capture_switch_cost()). */
static bool measures_switches(const struct privilege_needs *needs)
{
	return has_events(needs) && needs->mode != MODE_CPU;
}

static bool has_child(const struct privilege_needs *needs)
{
	return needs->has_child;
}

/*
 * CAP_SYS_ADMIN replaces these before Linux 5.9, and where Debian's patch accepts nothing else (src/capture/explain.c).
 */
static bool is_old(const struct privilege_needs *needs)
{
	(void)needs;
	return prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) < 0 ||
	       proc_number("/proc/sys/kernel/perf_event_paranoid", 0) >= 3;
}

static bool is_in_group(gid_t group)
{
	int n = getgroups(0, NULL);
	CLEANUP(freep) gid_t *groups = n > 0 ? calloc((size_t)n, sizeof *groups) : NULL;

	if (group == getegid())
		return true;
	n = groups ? getgroups(n, groups) : 0;
	for (int i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* SQLite creates and removes files beside the recording until the end. */
static bool writes_with_override(const struct privilege_needs *needs)
{
	const char *slash = needs->path ? strrchr(needs->path, '/') : NULL;
	CLEANUP(freep) char *folder = slash ? strndup(needs->path, (size_t)(slash - needs->path) + 1) : strdup(".");
	const mode_t needed = S_IWOTH | S_IXOTH;
	struct stat st;
	mode_t mode;

	if (!needs->path)
		return false;
	if (!folder || stat(folder, &st) < 0)
		return true;
	mode = st.st_uid == geteuid() ? st.st_mode >> 6 : is_in_group(st.st_gid) ? st.st_mode >> 3 : st.st_mode;
	return (mode & needed) != needed;
}

static const struct kept {
	int capability;
	bool (*is_needed)(const struct privilege_needs *needs);
	bool by_capture, by_writer;
} kept[] = {
	/* Open events for new threads and CPUs. Source: perf_event_open(2). */
	{ CAP_PERFMON, has_events, true, false },
	/* Update BPF maps for new interpreters. Source: bpf(2), kernel.unprivileged_bpf_disabled. */
	{ CAP_BPF, has_bpf, true, false },
	/* Read memory, mappings and files of other users; /proc/PID/root for debug files. Source: ptrace(2). */
	{ CAP_SYS_PTRACE, always, true, true },
	/* Read programs and libraries without file permission. Source: capabilities(7). */
	{ CAP_DAC_READ_SEARCH, always, true, true },
	/* Open mapped files that have been deleted. Source: proc_pid_map_files(5). */
	{ CAP_CHECKPOINT_RESTORE, always, true, false },
	/* Read addresses in /proc/kallsyms with kernel.kptr_restrict=1. */
	{ CAP_SYSLOG, always, false, true },
	{ CAP_DAC_OVERRIDE, writes_with_override, true, true },
	{ CAP_KILL, has_child, true, false },
	{ CAP_IPC_LOCK, measures_switches, true, false },
	{ CAP_SYS_ADMIN, is_old, true, false },
};

uint64_t privilege_of_capture(const struct privilege_needs *needs)
{
	uint64_t found = 0;

	for (size_t i = 0; i < N_ELEMENTS(kept); i++)
		if (kept[i].by_capture && kept[i].is_needed(needs))
			found |= CAPABILITY(kept[i].capability);
	return found;
}

uint64_t privilege_of_writer(const struct privilege_needs *needs)
{
	uint64_t found = 0;

	for (size_t i = 0; i < N_ELEMENTS(kept); i++)
		if (kept[i].by_writer && kept[i].is_needed(needs))
			found |= CAPABILITY(kept[i].capability);
	return found;
}

/* ---- System calls ---- */

/* Allow new threads, no new processes. clone3(2) hides its flags; C libraries fall back to clone(2). */
/* clang-format off */
static const struct call_rule recording[] = {
	/* Frequent calls. */
	ALLOW(process_vm_readv), ALLOW(ioctl), ALLOW(openat), ALLOW(epoll_pwait), ALLOW(perf_event_open),
#ifdef __NR_epoll_wait
	ALLOW(epoll_wait), ALLOW(stat), ALLOW(lstat), ALLOW(access), ALLOW(readlink), ALLOW(unlink), ALLOW(rename), ALLOW(open),
	ALLOW(dup2), ALLOW(pipe), ALLOW(select), ALLOW(getrlimit), ALLOW(getpgrp), ALLOW(pause), ALLOW(time),
#endif
#ifdef __NR_newfstatat
	ALLOW(newfstatat),
#endif
	/* Files. */
	ALLOW(statx), ALLOW(faccessat), ALLOW(readlinkat), ALLOW(getdents64), ALLOW(statfs), ALLOW(unlinkat),
	ALLOW(renameat), ALLOW(renameat2), ALLOW(fchown), ALLOW(fchmod), ALLOW(fsync), ALLOW(fdatasync), ALLOW(fallocate),
	ALLOW(getcwd), ALLOW(umask), ALLOW(readv), ALLOW(writev), ALLOW(preadv), ALLOW(pwritev), ALLOW(flock), ALLOW(dup),
	ALLOW(dup3), ALLOW(pipe2), ALLOW(memfd_create), ALLOW(msync), ALLOW(mincore), ALLOW(mlock), ALLOW(munlock),
#ifdef __NR_faccessat2
	ALLOW(faccessat2),
#endif
#ifdef __NR_openat2 /* folders of rings, within the file system that a process sees */
	ALLOW(openat2),
#endif
	/* Waiting, signals, time. */
	ALLOW(epoll_create1), ALLOW(epoll_ctl), ALLOW(timerfd_create), ALLOW(timerfd_settime), ALLOW(timerfd_gettime),
	ALLOW(signalfd4), ALLOW(eventfd2), ALLOW(pselect6), ALLOW(nanosleep), ALLOW(rt_sigtimedwait), ALLOW(rt_sigpending),
	ALLOW(rt_sigsuspend), ALLOW(wait4), ALLOW(waitid), ALLOW(kill), ALLOW(tkill), ALLOW(setitimer), ALLOW(getitimer),
#ifdef __NR_pidfd_open
	ALLOW(pidfd_open),
#endif
	/* Threads and process attributes. */
	ALLOW_IF(clone, CALL_WITH_BITS, 0, CLONE_THREAD), ALLOW(set_tid_address), ALLOW(membarrier), ALLOW(sched_getaffinity),
	ALLOW(sched_setaffinity), ALLOW(sched_getattr), ALLOW(sched_setattr), ALLOW(sched_getscheduler), ALLOW(sched_getparam),
	ALLOW(getpriority), ALLOW(setpriority), ALLOW(prctl), ALLOW(prlimit64), ALLOW(getrusage), ALLOW(times), ALLOW(sysinfo),
	ALLOW(uname), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid), ALLOW(getgroups), ALLOW(getppid),
	ALLOW(getpgid), ALLOW(getsid), ALLOW(capget), ALLOW(capset), ALLOW(getcpu),
};
/* clang-format on */

/* Allow reading and updating BPF maps; nothing more is loaded. Source: enum bpf_cmd, include/uapi/linux/bpf.h. */
/* clang-format off */
static const struct call_rule maps_only[] = {
	ALLOW_IF(bpf, CALL_EQUALS, 0, 1 /* BPF_MAP_LOOKUP_ELEM */), ALLOW_IF(bpf, CALL_EQUALS, 0, 2 /* _UPDATE_ELEM */),
	ALLOW_IF(bpf, CALL_EQUALS, 0, 3 /* _DELETE_ELEM */), ALLOW_IF(bpf, CALL_EQUALS, 0, 4 /* _GET_NEXT_KEY */),
	ALLOW_IF(bpf, CALL_EQUALS, 0, 15 /* BPF_OBJ_GET_INFO_BY_FD */),
};
/* clang-format on */

static const struct call_rule all_of_bpf[] = { ALLOW(bpf) };

/* Agents of children, and after a pause. */
static const struct call_rule unix_sockets[] = {
	ALLOW_IF(socket, CALL_EQUALS, 0, AF_UNIX),
	ALLOW(connect),
	ALLOW(getsockopt),
#ifdef __NR_poll
	ALLOW(poll),
#endif
};

static int install_filter(const struct privilege_needs *needs)
{
	const struct call_table bpf = measures_switches(needs)
					      ? (struct call_table){ all_of_bpf, N_ELEMENTS(all_of_bpf) }
					      : (struct call_table){ maps_only, N_ELEMENTS(maps_only) };
	const struct call_table sockets = { unix_sockets,
					    needs->source == SOURCE_AGENT ? N_ELEMENTS(unix_sockets) : 0 };
	const struct call_table tables[] = {
		calls_fatal, { recording, N_ELEMENTS(recording) }, calls_basic, bpf, sockets,
	};

	if (HAS_SANITIZER)
		return 0; /* LeakSanitizer traces this process from another one */
	return call_filter_install(tables, N_ELEMENTS(tables), CALL_NOT_THERE, true);
}

int privilege_restrict(const struct privilege_needs *needs)
{
	int r;

	r = privilege_drop(privilege_of_capture(needs));
	if (r >= 0)
		r = privilege_lock();
	return r < 0 ? r : install_filter(needs);
}
