/* SPDX-License-Identifier: MIT */
/* record_target.h - processes to sample, for the tests of src/capture.
 *
 * A target is a child of the test that runs one function; the two talk through
 * a page of shared memory. It dies with the test.
 */
#ifndef PROBING_TESTS_RECORD_TARGET_H
#define PROBING_TESTS_RECORD_TARGET_H

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/capture.h"
#include "tests/unit/refusals.h"

enum { TARGET_MAX_THREADS = 64 };

struct target_page {
	int ready;       /* set by the target */
	int command;     /* set by the test, counted up */
	int progress[2]; /* set by the target, counted up */
	int n_tids;
	pid_t tids[TARGET_MAX_THREADS];
	pid_t child;
	uint64_t address;
};

struct target {
	pid_t pid;
	struct target_page *page;
};

static inline int load(const int *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static inline void store(int *to, int value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static inline void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

enum { PATIENCE_MS = 60000 }; /* a target on a busy machine is slow; one that hangs takes this long */

/* Wait for a number to reach a value. */
static inline void wait_for(const int *number, int value)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (load(number) >= value)
			return;
		sleep_ms(1);
	}
	fail_msg("the target did not get to %d", value);
}

/* Wait until a thread is in a state of proc_pid_stat(5). */
static inline void wait_for_state(pid_t pid, pid_t tid, char state)
{
	struct proc_stat stat;

	for (int i = 0; i < PATIENCE_MS; i++) {
		if (proc_stat_read(pid, tid, &stat) == 0 && stat.state == state)
			return;
		sleep_ms(1);
	}
	fail_msg("thread %d did not get to state %c", (int)tid, state);
}

static inline struct target target_start(void (*run)(struct target_page *page))
{
	struct target target;

	target.page = mmap(NULL, sizeof *target.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(target.page, MAP_FAILED);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(target.page);
		_exit(0);
	}
	wait_for(&target.page->ready, 1);
	return target;
}

static inline void target_end(struct target *target)
{
	if (target->pid > 0) {
		kill(target->pid, SIGKILL);
		waitpid(target->pid, NULL, 0);
	}
	munmap(target->page, sizeof *target->page);
}

/* Nanoseconds a thread has been on a CPU; 0 once it is gone. */
static inline uint64_t cpu_of_thread_ns(pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *text = NULL;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	return read_file(path, 128, &text, NULL) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* Wait until a thread has had so much of a CPU, however busy the machine is. */
static inline void let_run(pid_t pid, pid_t tid, unsigned ms)
{
	uint64_t until = cpu_of_thread_ns(pid, tid) + ms * UINT64_C(1000000);

	for (int i = 0; i < PATIENCE_MS; i++) {
		if (cpu_of_thread_ns(pid, tid) >= until)
			return;
		sleep_ms(1);
	}
	fail_msg("thread %d does not run", (int)tid);
}

/* By perf events. Where the kernel refuses them, that is a skip with its reason. */
static inline struct capture *attach_or_skip(const struct capture_options *options, pid_t pid)
{
	struct capture_options by_events = *options;
	struct capture *capture;
	char reason[512];
	int r;

	by_events.source = SOURCE_WAKEUP;
	r = capture_attach(&by_events, pid, &capture);
	if (r < 0) {
		capture_explain(r, pid, reason, sizeof reason);
		skip_if_perf_is_refused(r, pid, reason);
		fail_msg("capture_attach: %s", strerror(-r));
	}
	return capture;
}

typedef void target_visit(const struct capture_event *event, void *data);

static inline void drain(struct capture *capture, target_visit *visit, void *data)
{
	struct capture_event event;
	int r;

	while ((r = capture_next(capture, &event)) > 0)
		if (visit)
			visit(&event, data);
	assert_int_equal(r, 0);
}

/* Read as a recorder does, woken by the descriptor, for some time, and at least once. */
static inline unsigned read_for(struct capture *capture, unsigned ms, target_visit *visit, void *data)
{
	uint64_t end = monotonic_ns() + ms * UINT64_C(1000000);
	struct pollfd woken = { .fd = capture_fd(capture), .events = POLLIN };
	unsigned n_woken = 0;

	do {
		n_woken += poll(&woken, 1, 20) > 0;
		drain(capture, visit, data);
	} while (monotonic_ns() < end);
	return n_woken;
}

/* Samples per thread. */
struct tally {
	struct tally_row {
		pid_t tid;
		unsigned n_samples;
	} rows[4096];
	size_t n;
	unsigned n_samples;
};

static inline unsigned *tally_of(struct tally *tally, pid_t tid)
{
	for (size_t i = 0; i < tally->n; i++)
		if (tally->rows[i].tid == tid)
			return &tally->rows[i].n_samples;
	assert_true(tally->n < N_ELEMENTS(tally->rows));
	tally->rows[tally->n] = (struct tally_row){ .tid = tid };
	return &tally->rows[tally->n++].n_samples;
}

static inline void tally_visit(const struct capture_event *event, void *data)
{
	struct tally *tally = data;

	if (event->type != CAPTURE_SAMPLE)
		return;
	++*tally_of(tally, event->tid);
	tally->n_samples++;
}

/*
 * Nanoseconds that the hypervisor took from all processors. The clock of timers and switches goes on meanwhile, the threads'
 * CPU time does not: so much more may be sampled. Source: proc_stat(5), in ticks.
 */
static inline uint64_t stolen_ns(void)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t ticks;

	assert_int_equal(read_file("/proc/stat", 256, &text, NULL), 0);
	assert_int_equal(sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks), 1);
	return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/*
 * The number of samples must match the CPU time. A paused virtual machine loses ticks, so the lower limit is loose; a
 * thread sampled twice would have 200 %.
 */
static inline void assert_in_share(uint64_t n_samples, uint64_t cpu_ns, double hz, double least, double most)
{
	double expected = (double)cpu_ns * 1e-9 * hz;

	if ((double)n_samples > expected * most + 5 || (double)n_samples < expected * least - 5)
		fail_msg("%llu samples, %.1f expected", (unsigned long long)n_samples, expected);
}

/* For CPU time entirely within the recording, and for CPU time that includes the whole recording. */
static inline void assert_at_least(uint64_t n_samples, uint64_t cpu_ns, double hz)
{
	assert_in_share(n_samples, cpu_ns, hz, 0.5, INFINITY);
}

static inline void assert_at_most(uint64_t n_samples, uint64_t cpu_ns, double hz)
{
	assert_in_share(n_samples, cpu_ns, hz, 0, 1.2);
}

/* CPU times read around the begin and the end of a recording, during which this process may not run. */
struct cpu_span {
	uint64_t outside, inside, after, stopped, stolen;
};

static inline void assert_plausible(uint64_t n_samples, const struct cpu_span *span, double hz)
{
	assert_at_least(n_samples, span->after - span->inside, hz);
	assert_at_most(n_samples, span->stopped - span->outside + span->stolen, hz);
}

#endif
