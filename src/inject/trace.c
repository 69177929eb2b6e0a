/* SPDX-License-Identifier: MIT */
/* trace.c - one thread at a time under ptrace(2): see call.h. The kernel detaches a seized thread when we end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/inject/call.h"

enum { PATIENCE_MS = 3000, ASLEEP_MS = 50, LOOK_AGAIN_MS = 5, SYSTEM_CALL_STOP = SIGTRAP | 0x80 };

static int signal_held; /* signal that the thread was about to receive */

void trace_prepare(void)
{
	sigset_t child;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
}

static void wait_for_news(void)
{
	const struct timespec a_while = { .tv_nsec = LOOK_AGAIN_MS * 1000000L };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	(void)sigtimedwait(&child, NULL, &a_while);
}

/* Wait for the thread's next stop; status as in waitpid(2). */
static int await(pid_t pid, pid_t tid, int *ret_status)
{
	uint64_t since_ns = monotonic_ns(), awake_ns = since_ns;

	for (;;) {
		pid_t told = waitpid(tid, ret_status, __WALL | WNOHANG);
		uint64_t now_ns = monotonic_ns();
		struct proc_stat stat;

		if (told == tid)
			return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
		if (told < 0 && errno != EINTR)
			return -ESRCH;
		if (proc_stat_read(pid, tid, &stat) < 0 || stat.state != 'D')
			awake_ns = now_ns;
		if (now_ns - since_ns >= PATIENCE_MS * 1000000ull || now_ns - awake_ns >= ASLEEP_MS * 1000000ull)
			return -ETIMEDOUT;
		wait_for_news();
	}
}

/* Reason of a stop: 0 for our interrupt, SYSTEM_CALL_STOP, or a signal number. */
static int reason_of(int status)
{
	if (status >> 16 == PTRACE_EVENT_STOP)
		return WSTOPSIG(status) == SIGTRAP ? 0 : -1; /* otherwise a group stop */
	return WSTOPSIG(status);
}

int trace_stop(pid_t pid, pid_t tid)
{
	int status, r;

	signal_held = 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return -errno;
	r = await(pid, tid, &status);
	if (r < 0)
		return r;
	r = reason_of(status);
	if (r == 0)
		return 0;
	signal_held = r > 0 ? r : 0;
	trace_end(tid);
	return -EAGAIN;
}

int trace_step(pid_t pid, pid_t tid)
{
	int status, r;

	if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) < 0)
		return -errno;
	r = await(pid, tid, &status);
	if (r < 0)
		return r;
	r = reason_of(status);
	if (r == SYSTEM_CALL_STOP)
		return 0;
	signal_held = r > 0 ? r : 0;
	return -ECANCELED;
}

void trace_end(pid_t tid)
{
	/* Fails only if the thread was killed meanwhile. */
	(void)ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_held);
	signal_held = 0;
}
