/* SPDX-License-Identifier: MIT */
/* refusals.h - what the kernel refuses, asked by the tests themselves.
 *
 * A test is skipped when the kernel refuses, never because the code under test says so: its mistakes
 * must not look like a missing permission.
 */
#ifndef PROBING_TESTS_REFUSALS_H
#define PROBING_TESTS_REFUSALS_H

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

/* perf_event_open(2) of a process's CPU clock with the least options; 0 or a negative errno. */
static inline int perf_refusal(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The result of the code under test was that perf events are refused: skips where they are, and fails where not. */
static inline void skip_if_perf_is_refused(int result, pid_t pid, const char *reason)
{
	if (result != -EPERM && result != -EACCES && result != -ENOSYS)
		return;
	if (perf_refusal(pid) == 0)
		fail_msg("refused (%s), but perf_event_open(2) allows it", strerror(-result));
	print_message("skipped: %s\n", reason);
	skip();
}

/* bpf(2) of the smallest program for perf events; 0 or a negative errno. */
static inline int bpf_refusal(void)
{
	const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof attr);
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insns = (uintptr_t)nothing;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Whether processes have the numbers here that the kernel's own programs see. */
static inline bool has_first_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xeffffffc; /* PROC_PID_INIT_INO */
}

static inline bool has_linux_5_17(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 17));
}

/*
 * Frames could not be read in the interrupt: skip where the kernel refuses this to all, and fail where it is possible.
 */
static inline void skip_if_bpf_is_refused(int result, const char *reason)
{
	if (result != -EPROTONOSUPPORT)
		return;
	if (bpf_refusal() == 0 && has_first_pid_namespace() && has_linux_5_17() && !strstr(reason, "needs a build"))
		fail_msg("refused (%s), but bpf(2) loads programs", reason);
	print_message("skipped: %s\n", reason);
	skip();
}

#endif
