/* SPDX-License-Identifier: MIT */
/* wait_call.c - see wait_call.h. Arguments are foreign: nothing is believed but numbers of descriptors. */
#include "base/wait_call.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/machine.h"
#include "base/util.h"

enum source { FIRST, POLL, SELECT, EPOLL, FUTEX, FLOCK, FCNTL, WAIT4, WAITID };

static const struct {
	long number;
	enum source source;
} calls[] = {
	{ SYS_read, FIRST },
	{ SYS_readv, FIRST },
	{ SYS_pread64, FIRST },
	{ SYS_preadv, FIRST },
	{ SYS_preadv2, FIRST },
	{ SYS_write, FIRST },
	{ SYS_writev, FIRST },
	{ SYS_pwrite64, FIRST },
	{ SYS_pwritev, FIRST },
	{ SYS_pwritev2, FIRST },
	{ SYS_recvfrom, FIRST },
	{ SYS_recvmsg, FIRST },
	{ SYS_recvmmsg, FIRST },
	{ SYS_sendto, FIRST },
	{ SYS_sendmsg, FIRST },
	{ SYS_sendmmsg, FIRST },
	{ SYS_accept, FIRST },
	{ SYS_accept4, FIRST },
	{ SYS_connect, FIRST },
	{ SYS_getdents64, FIRST },
	{ SYS_fsync, FIRST },
	{ SYS_fdatasync, FIRST },
	{ SYS_syncfs, FIRST },
	{ SYS_sync_file_range, FIRST },
	{ SYS_sendfile, FIRST },
	{ SYS_splice, FIRST },
	{ SYS_copy_file_range, FIRST },
	{ SYS_ioctl, FIRST },
	{ SYS_mq_timedreceive, FIRST },
	{ SYS_mq_timedsend, FIRST },
	{ SYS_io_uring_enter, FIRST },
#ifdef SYS_select
	{ SYS_select, SELECT },
	{ SYS_poll, POLL },
	{ SYS_epoll_wait, EPOLL },
#endif
	{ SYS_pselect6, SELECT },
	{ SYS_ppoll, POLL },
	{ SYS_epoll_pwait, EPOLL },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, EPOLL },
#endif
	{ SYS_futex, FUTEX },
	{ SYS_flock, FLOCK },
	{ SYS_fcntl, FCNTL },
	{ SYS_wait4, WAIT4 },
	{ SYS_waitid, WAITID },
};

static void add(struct wait_call *wait, int64_t descriptor)
{
	if (descriptor < 0 || descriptor > INT_MAX)
		return;
	for (size_t i = 0; i < wait->n_descriptors; i++)
		if (wait->descriptors[i] == descriptor)
			return;
	if (wait->n_descriptors < WAIT_MAX_DESCRIPTORS)
		wait->descriptors[wait->n_descriptors++] = (int)descriptor;
	else
		wait->n_more++;
}

/* An int argument is the lower half of a register. */
static int int_of(uint64_t argument)
{
	return (int32_t)(uint32_t)argument;
}

static void add_polled(struct wait_call *wait, struct remote *remote, uint64_t address, uint64_t n)
{
	struct pollfd polled[64];

	n = MIN(n, (uint64_t)WAIT_MAX_SEEN_DESCRIPTORS);
	for (uint64_t done = 0; done < n;) {
		size_t here = (size_t)MIN(n - done, (uint64_t)N_ELEMENTS(polled));

		if (remote_read(remote, RADDR(address + done * sizeof *polled), polled, here * sizeof *polled) < 0)
			return;
		for (size_t i = 0; i < here; i++)
			add(wait, polled[i].fd);
		done += here;
	}
}

static void add_selected(struct wait_call *wait, struct remote *remote, uint64_t set, int n)
{
	unsigned long words[WAIT_MAX_SEEN_DESCRIPTORS / (8 * sizeof(long))] = { 0 };
	int bits = 8 * (int)sizeof *words;

	n = MIN(n, WAIT_MAX_SEEN_DESCRIPTORS);
	if (set == 0 || n <= 0 ||
	    remote_read(remote, RADDR(set), words, (size_t)((n + bits - 1) / bits) * sizeof *words) < 0)
		return;
	for (int i = 0; i < n; i++)
		if (words[i / bits] >> i % bits & 1)
			add(wait, i);
}

void wait_call_parse_epoll(const char *text, struct wait_call *ret)
{
	size_t n = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		int descriptor;

		line += *line == '\n';
		if (strncmp(line, "tfd:", 4) == 0 && sscanf(line, "tfd: %d", &descriptor) == 1 &&
		    n++ < WAIT_MAX_SEEN_DESCRIPTORS)
			add(ret, descriptor);
	}
}

/* Add the epoll instance itself if its descriptors are unknown, or it has none. */
static void add_epoll(struct wait_call *wait, pid_t pid, int instance)
{
	CLEANUP(freep) char *text = NULL;
	char file[64], path[PROC_PATH_BYTES];

	snprintf(file, sizeof file, "fdinfo/%d", instance);
	if (pid > 0) {
		proc_path(pid, file, path);
		if (read_file(path, 1 << 18, &text, NULL) >= 0)
			wait_call_parse_epoll(text, wait);
	}
	if (wait->n_descriptors == 0)
		add(wait, instance);
}

/* fcntl(2) commands that wait for locks. Source: include/uapi/asm-generic/fcntl.h. */
static bool is_lock_command(int command)
{
	enum { SETLKW = 7, OFD_SETLKW = 38 };

	return command == SETLKW || command == OFD_SETLKW;
}

static void add_set(const struct proc_call *call, struct remote *remote, struct wait_call *wait, enum source source)
{
	if (!remote)
		return;
	if (source == POLL)
		add_polled(wait, remote, call->arguments[0], call->arguments[1]);
	for (int i = 1; source == SELECT && i <= 3; i++)
		add_selected(wait, remote, call->arguments[i], int_of(call->arguments[0]));
}

static pid_t child_of(const struct proc_call *call, enum source source)
{
	int id = int_of(call->arguments[source == WAITID]);

	if (source == WAITID && int_of(call->arguments[0]) != P_PID)
		return 0;
	return MAX(id, 0);
}

static void describe(const struct proc_call *call, pid_t pid, struct remote *remote, enum source source,
		     struct wait_call *wait)
{
	int first = int_of(call->arguments[0]);

	switch (source) {
	case FUTEX:
		wait->kind = WAIT_FUTEX;
		wait->futex = call->arguments[0];
		wait->expected = (uint32_t)call->arguments[2];
		return;
	case WAIT4:
	case WAITID:
		wait->kind = WAIT_CHILD;
		wait->child = child_of(call, source);
		return;
	case FLOCK:
		wait->kind = WAIT_FILE_LOCK;
		add(wait, first);
		return;
	case FCNTL:
		wait->kind = is_lock_command(int_of(call->arguments[1])) ? WAIT_FILE_LOCK : WAIT_DESCRIPTORS;
		add(wait, first);
		return;
	case EPOLL:
		wait->kind = WAIT_DESCRIPTORS;
		add_epoll(wait, pid, first);
		return;
	case POLL:
	case SELECT:
		add_set(call, remote, wait, source);
		wait->kind = wait->n_descriptors > 0 ? WAIT_DESCRIPTORS : WAIT_UNKNOWN;
		return;
	case FIRST:
		wait->kind = WAIT_DESCRIPTORS;
		add(wait, first);
	}
}

/*
 * After a signal, the kernel resumes a timed wait through restart_syscall(2), with the same arguments. The instructions
 * before it show the original call.
 */
static long number_of(const struct proc_call *call, struct remote *remote)
{
	uint8_t before[MACHINE_CALL_NUMBER_BYTES];
	const struct regs regs = { 0 };
	uint64_t arguments[6];
	long number;

	if (call->number != SYS_restart_syscall || !remote ||
	    remote_read(remote, RADDR(call->pc - sizeof before), before, sizeof before) < 0)
		return call->number;
	number = machine_system_call(&regs, before, arguments);
	return number > 0 ? number : call->number;
}

void wait_call_of(const struct proc_call *call, pid_t pid, struct remote *remote, struct wait_call *ret)
{
	*ret = (struct wait_call){ .kind = WAIT_UNKNOWN, .number = call->is_running ? -1 : number_of(call, remote) };
	for (size_t i = 0; i < N_ELEMENTS(calls) && !call->is_running; i++)
		if (calls[i].number == ret->number)
			describe(call, pid, remote, calls[i].source, ret);
}

pid_t wait_call_mutex_owner(const struct wait_call *call, struct remote *remote)
{
	enum { LOCKED_AND_WAITED_FOR = 2, PRIORITY_BITS = 0x60, LARGEST_KIND = 0x1ff };
	struct {
		uint32_t lock, count, owner, n_users, kind;
	} mutex;

	if (call->kind != WAIT_FUTEX || call->expected != LOCKED_AND_WAITED_FOR ||
	    remote_read(remote, RADDR(call->futex), &mutex, sizeof mutex) < 0)
		return 0;
	if (mutex.lock != LOCKED_AND_WAITED_FOR || mutex.n_users == 0 || mutex.kind > LARGEST_KIND ||
	    (mutex.kind & PRIORITY_BITS) || mutex.owner > INT_MAX)
		return 0;
	return (pid_t)mutex.owner;
}
