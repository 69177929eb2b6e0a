/* SPDX-License-Identifier: MIT */
/* check.c - the seccomp filters of all threads of a process, before a part of its agent begins to work: see inject.h.
 *
 * A program may install a filter long after the agent is there, and a filter belongs to a thread. So each part is checked
 * when it is switched on, on the threads that make its calls. A child does the tracing: its end detaches all threads, and
 * the caller's signals stay as they are. Where filters cannot be read, nothing is stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/inject/call.h"
#include "src/inject/inject.h"
#include "src/inject/seccomp.h"

enum { MAX_STOPS = 20, BETWEEN_STOPS_NS = 2000000 };

struct filter_verdict {
	int error;
	char why[INJECT_WHY_BYTES];
};

/* "probing-agent", "probing-worker". */
static bool is_agents(pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *name = NULL;
	char file[64];

	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	name = proc_text(pid, file, 64);
	return name && strncmp(name, "probing-", 8) == 0;
}

/* SECCOMP_* of a thread. */
static unsigned needs_of(pid_t pid, pid_t tid, unsigned parts)
{
	unsigned needs = 0;

	if (is_agents(pid, tid)) {
		needs |= parts & INJECT_TALK ? SECCOMP_TALK : 0;
		needs |= parts & INJECT_SAMPLE ? SECCOMP_SAMPLER : 0;
		return needs | (parts & INJECT_CRASH ? SECCOMP_CRASH : 0);
	}
	needs |= parts & INJECT_SAMPLE ? SECCOMP_SAMPLED : 0;
	needs |= parts & INJECT_CRASH ? SECCOMP_CRASHING : 0;
	return needs | (parts & INJECT_ROWS ? SECCOMP_ROWS : 0);
}

static int stop(pid_t pid, pid_t tid)
{
	const struct timespec a_while = { .tv_nsec = BETWEEN_STOPS_NS };
	int r = -EAGAIN;

	for (int i = 0; i < MAX_STOPS && r == -EAGAIN; i++) {
		if (i > 0)
			nanosleep(&a_while, NULL);
		r = trace_stop(pid, tid);
	}
	return r;
}

/* The kernel shows filters only to root without a filter of its own. Source: seccomp_get_filter() of Linux 6.12. */
static bool may_read_filters(void)
{
	return geteuid() == 0 && seccomp_count(getpid(), getpid()) == 0;
}

static int check_thread(pid_t pid, pid_t tid, unsigned needs, bool is_trusted, char *why)
{
	int stopped = may_read_filters() ? stop(pid, tid) : -EPERM, r;

	r = seccomp_check(pid, tid, needs, is_trusted || needs == SECCOMP_TALK, why, INJECT_WHY_BYTES);
	if (stopped == 0)
		trace_end(tid);
	return r == -ESRCH ? 0 : r; /* it has ended */
}

static int check_each(pid_t pid, unsigned parts, bool is_trusted, const pid_t *tids, size_t n, char *why)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = check_thread(pid, tids[i], needs_of(pid, tids[i], parts), is_trusted, why);
	return r;
}

/* Keeps of the threads those that have filters, and calls to make. */
static int threads_to_check(pid_t pid, unsigned parts, pid_t *tids, size_t *n)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < *n; i++) {
		int n_filters = seccomp_count(pid, tids[i]);

		if (n_filters < 0)
			return n_filters;
		if (n_filters > 0 && needs_of(pid, tids[i], parts) != 0)
			tids[n_kept++] = tids[i];
	}
	*n = n_kept;
	return 0;
}

static void __attribute__((noreturn))
check_in_child(pid_t pid, unsigned parts, bool is_trusted, const pid_t *tids, size_t n, int to)
{
	struct filter_verdict verdict = { 0 };

	trace_prepare();
	verdict.error = check_each(pid, parts, is_trusted, tids, n, verdict.why);
	_exit(write(to, &verdict, sizeof verdict) != (ssize_t)sizeof verdict);
}

/* @ret: unchanged if the child has ended without a verdict. */
static void read_verdict(int from, struct filter_verdict *ret)
{
	struct filter_verdict verdict;
	ssize_t n;

	do
		n = read(from, &verdict, sizeof verdict);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof verdict)
		*ret = verdict;
}

static int check_threads(pid_t pid, unsigned parts, bool is_trusted, const pid_t *tids, size_t n, char *why)
{
	struct filter_verdict verdict = { .error = -EIO };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child == 0)
		check_in_child(pid, parts, is_trusted, tids, n, ends[1]);
	if (child < 0)
		verdict.error = -errno;
	close(ends[1]);
	if (child > 0)
		read_verdict(ends[0], &verdict);
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	memcpy(why, verdict.why, sizeof verdict.why);
	return verdict.error;
}

int inject_check(pid_t pid, unsigned parts, bool is_trusted, char *why)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;
	int r;

	why[0] = '\0';
	r = proc_tasks(pid, &tids, &n);
	if (r >= 0)
		r = threads_to_check(pid, parts, tids, &n);
	if (r < 0 || n == 0)
		return r;
	if (!may_read_filters())
		return check_each(pid, parts, is_trusted, tids, n, why);
	r = check_threads(pid, parts, is_trusted, tids, n, why);
	for (size_t i = 0; r == 0 && parts & INJECT_SAMPLE && !is_trusted && i < n; i++)
		seccomp_note_harmless(seccomp_count(pid, tids[i]));
	return r;
}
