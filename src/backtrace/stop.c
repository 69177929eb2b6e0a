/* SPDX-License-Identifier: MIT */
/* stop.c - see stop.h.
 *
 * Results of waitpid(2) for a seized thread (ptrace(2), "Stopped states"):
 *   PTRACE_EVENT_STOP with SIGTRAP       stopped by PTRACE_INTERRUPT
 *   PTRACE_EVENT_STOP with a stop signal  its process is stopped (group-stop). After
 *                                         PTRACE_DETACH it returns there by itself;
 *                                         PTRACE_LISTEN is for tracers that stay attached.
 *   no event, some signal                 the signal is about to be delivered; the thread is
 *                                         stopped as well, and detaching with the
 *                                         signal delivers it with all its data
 * In each of them all registers are readable, and one PTRACE_DETACH ends it: a
 * pending PTRACE_INTERRUPT disappears with the attachment.
 */
#include "src/backtrace/stop.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/proc.h"
#include "base/util.h"

enum {
	PATIENCE_MS = 5000,      /* the thread may have to wait for a processor */
	PATIENCE_ASLEEP_MS = 50, /* limit for a thread that is always found in uninterruptible sleep */
	LOOK_AGAIN_MS = 5,
};

void stop_prepare(void)
{
	sigset_t child;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
}

/* False: no SIGCHLD within LOOK_AGAIN_MS. */
static bool wait_for_news(void)
{
	const struct timespec a_while = { .tv_nsec = LOOK_AGAIN_MS * 1000000L };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return sigtimedwait(&child, NULL, &a_while) == SIGCHLD;
}

struct patience {
	uint64_t since_ns, asleep_since_ns;
};

static bool is_over(struct patience *patience, pid_t pid, pid_t tid)
{
	uint64_t now = monotonic_ns();
	struct proc_stat stat;

	/* waitpid() reports a thread that has ended. */
	if (proc_stat_read(pid, tid, &stat) < 0 || stat.state != 'D')
		patience->asleep_since_ns = now;
	return now - patience->asleep_since_ns >= PATIENCE_ASLEEP_MS * 1000000ull ||
	       now - patience->since_ns >= PATIENCE_MS * 1000000ull;
}

/* The thread has stopped or ended. */
static int take_status(struct stop *stop, int status)
{
	if (!WIFSTOPPED(status))
		return -ESRCH;
	stop->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
	stop->since_ns = monotonic_ns();
	return 0;
}

static int await(pid_t pid, struct stop *stop)
{
	struct patience patience = { monotonic_ns(), monotonic_ns() };

	for (;;) {
		int status;
		pid_t told = waitpid(stop->tid, &status, __WALL | WNOHANG);

		if (told == stop->tid)
			return take_status(stop, status);
		if (told < 0 && errno != EINTR)
			return -ESRCH;
		if (!wait_for_news() && is_over(&patience, pid, stop->tid))
			return -ETIMEDOUT;
	}
}

int stop_seize(pid_t tid, struct stop *ret)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	*ret = (struct stop){ .tid = tid };
	return 0;
}

int stop_interrupt(pid_t pid, struct stop *stop)
{
	if (ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL) < 0)
		return -errno;
	return await(pid, stop);
}

int stop_thread(pid_t pid, pid_t tid, struct stop *ret)
{
	struct stop stop;
	int r;

	r = stop_seize(tid, &stop);
	if (r >= 0)
		r = stop_interrupt(pid, &stop);
	if (r < 0)
		return r;
	*ret = stop;
	return 0;
}

int stop_registers(const struct stop *stop, struct regs *ret)
{
	uint64_t words[MACHINE_STATUS_WORDS];
	struct iovec status = { words, sizeof words };

	if (ptrace(PTRACE_GETREGSET, stop->tid, (void *)NT_PRSTATUS, &status) < 0)
		return -errno;
	if (status.iov_len != sizeof words)
		return -EOPNOTSUPP;
	machine_regs_from_status(words, ret);
	return 0;
}

uint64_t stop_end(const struct stop *stop)
{
	/* Fails only if the thread was killed meanwhile. */
	(void)ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->signal);
	return monotonic_ns() - stop->since_ns;
}
