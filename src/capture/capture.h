/* SPDX-License-Identifier: MIT */
/* capture.h - samples and related events, from perf_event_open(2).
 *
 * One ring per CPU. Attaching opens an event per thread and CPU, redirected to
 * that CPU's ring; launching opens one inheriting event per CPU that starts at
 * exec. Events come out in time order over all rings. If perf events are not allowed,
 * threads are polled on a timer instead, and the same events come out (poller.h).
 */
#ifndef PROBING_CAPTURE_H
#define PROBING_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sample.h"
#include "src/capture/event.h"

/* Where a sample's Python frames come from. */
enum capture_source {
	SOURCE_AUTO,   /* the best that is allowed here */
	SOURCE_WAKEUP, /* the captured bytes, and memory read right after each sample */
	SOURCE_BPF,    /* memory read inside the interrupt that takes the sample */
	SOURCE_POLL,   /* memory alone, of threads that run at a poll tick */
	SOURCE_AGENT,  /* memory read by the sampled thread itself, in a signal handler of the agent */
	SOURCE_N
};

enum { CAPTURE_WHY_BYTES = 512 };

/* Which time of a thread is recorded. */
enum capture_mode {
	MODE_CPU,    /* on a processor */
	MODE_WALL,   /* both */
	MODE_OFFCPU, /* off the processor */
};

struct capture_options {
	enum capture_source source;
	enum capture_mode mode;
	double hz;                         /* samples a second of CPU time and thread */
	const struct sampled_event *event; /* resolved; NULL: the CPU clock. SOURCE_POLL knows no other */
	uint64_t count;     /* sample every Nth event of each thread and CPU, unless the event is a clock; 0: by hz */
	size_t stack_bytes; /* user stack to copy, a multiple of 8, at most 65528 */
	size_t ring_bytes;  /* per CPU, a power of two of pages; 0: as much as allowed */
	bool no_kernel;     /* sample user code only */
	/* capture_fd() becomes readable when a ring is a quarter full, and not at each sample, because the target
	 * pays for each wake-up. Call capture_next() on a timer. */
	bool no_wakeup;
	/* With SOURCE_BPF and the clock, samples that need no memory of the program wait: the descriptor
	 * becomes readable at once only for others (see capture_note_stack). Call capture_next() on a timer.
	 * With SOURCE_AGENT the descriptor becomes readable 4 instead of 50 times a second. */
	bool wake_on_live_read;
	bool paused;      /* start as after capture_pause(); the exec of a launched command starts nothing either */
	bool no_children; /* exclude processes that the recorded ones start */
	/* SOURCE_POLL only: a sample of each thread at each poll tick, running or not; its weight is
	 * the elapsed time. */
	bool idle;
	/*
	 * Connects to the agent of a process; NULL: there is no SOURCE_AGENT. @ret: a socket, owned by the caller.
	 * Errors: negative errno, -EBUSY with agent_why; also called later, for processes that start meanwhile.
	 */
	int (*connect_agent)(pid_t pid, int *ret);
	char *agent_why; /* CAPTURE_WHY_BYTES, receives the reason if an agent refuses; may be NULL */
};

enum capture_event_type {
	CAPTURE_SAMPLE,
	CAPTURE_MMAP,      /* an executable mapping */
	CAPTURE_COMM,      /* new name; is_exec: also a new program */
	CAPTURE_FORK,      /* new thread (pid == parent_pid) or process */
	CAPTURE_EXIT,      /* of a thread */
	CAPTURE_REMAPPED,  /* SOURCE_AGENT only: mappings may have changed; read them again */
	CAPTURE_LOST,      /* the kernel dropped records, because a ring was full */
	CAPTURE_THROTTLE,  /* the kernel paused sampling for a moment */
	CAPTURE_SWITCH,    /* a thread starts or stops running on a processor; not with MODE_CPU */
	CAPTURE_UNSAMPLED, /* CPU time by the kernel's account without samples; with MODE_CPU */
	CAPTURE_END,       /* the last event: sampling stopped at its time; not with MODE_CPU */
};

struct capture_event {
	enum capture_event_type type;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0 where the record has none */
	pid_t pid, tid;
	union {
		struct sample sample;
		struct {
			uint64_t start, end, file_offset, device, inode;
			bool executable, writable;
			const char *path;
		} mmap;
		struct {
			const char *name;
			bool is_exec;
		} comm;
		struct {
			pid_t parent_pid, parent_tid;
		} fork;
		struct {
			uint64_t n;
		} lost;
		struct {
			uint64_t weight;
			uint64_t at_ns;     /* CLOCK_MONOTONIC, when the time was used; not after time_ns */
			bool is_of_process; /* at the end: of any thread, with the pid as the tid */
		} unsampled;
		struct {
			unsigned cpu;
			bool is_out;
			bool is_preempted; /* out: it remains runnable */
			bool is_late;      /* in: reported with the next departure; time_ns is before earlier events' */
		} change;
	};
};

/*
 * Exact counts. PERF_FORMAT_LOST gives lost, which therefore includes losses at the very end. If the rings also carry
 * context switches (waits; SOURCE_WAKEUP with wake-ups), it includes their records: the kernel does not distinguish
 * them.
 */
struct capture_counts {
	uint64_t samples, lost, throttled;
	uint64_t malformed; /* invalid records, skipped */
	uint64_t unpaired;  /* Python frames without a sample: the kernel dropped it */
	/* CPU time: of all samples, and by the kernel's account; 0: not known (waits, other events than the clock). */
	uint64_t sampled_ns, used_ns;
	uint64_t ended_ns; /* CPU time without a sample of threads that have ended, up to then; see CAPTURE_UNSAMPLED */
	uint64_t n_events, n_threads; /* descriptors opened, threads found at the start */
	/* Of SOURCE_POLL: poll ticks done, poll ticks skipped because the previous one came late or overran, and the
	 * longest period, 0 if it was never lengthened. */
	uint64_t poll_ticks, skipped_ticks, longest_period_ns;
	/* Of SOURCE_AGENT: threads without a timer (RLIMIT_SIGPENDING), those that block the signal, and processes that
	 * have taken the signal for themselves, where sampling has ended. */
	uint64_t n_refused, n_blocked, n_yielded;
	uint64_t handler_ns; /* CPU time of the handlers of all samples, without the signals' delivery */
};

struct capture;

/*
 * capture_attach - sample all threads of a running process, and their children. It stops nothing. With
 * SOURCE_AUTO, perf events may be refused: by rights, a filter, descriptors, or memory for the rings. Then it
 * becomes SOURCE_AGENT if all processes have an agent, else SOURCE_POLL, if reading memory is permitted.
 * @ret: ended with capture_free().
 * Errors: -ESRCH; -EACCES/-EPERM not permitted (see capture_explain);
 *         -EMFILE descriptors; -ENOSYS no perf_event; -EINVAL options;
 *         -ENOBUFS the rings exceed the limit of locked memory;
 *         -ENOTCONN SOURCE_AGENT: a process has no agent; -EBUSY its agent refuses;
 *         -EPROTONOSUPPORT the requested source is unavailable (see capture_explain_source);
 *         those of event_check().
 */
int capture_attach(const struct capture_options *options, pid_t pid, struct capture **ret);

/*
 * capture_attach_all - the same for several processes, one at least.
 * Skips those that have ended; -ESRCH if all have. Any other error fails the whole call: check each process with
 * capture_check_memory() before.
 */
int capture_attach_all(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct capture **ret);

/*
 * capture_add - sample one more running process from now on, and the children that it starts.
 * @pid: may be sampled already. Errors: -ESRCH it has ended; otherwise as capture_attach(). Sampling of the others
 * continues.
 */
int capture_add(struct capture *capture, pid_t pid);

/* capture_launch - sample a child from its next exec on. The child must not have called exec yet. */
int capture_launch(const struct capture_options *options, pid_t child, struct capture **ret);

void capture_free(struct capture *capture);
void capture_freep(struct capture **capture);

/* The source in use: never SOURCE_AUTO. */
enum capture_source capture_source(const struct capture *capture);

/* Why SOURCE_AUTO fell back to SOURCE_POLL or SOURCE_AGENT: a negative errno for capture_explain(); 0: it did not. */
int capture_refusal(const struct capture *capture);

/*
 * capture_max_hz - the most samples per second of CPU time that a thread can have; 0: as many as asked for.
 * Timers of CPU clocks expire at the kernel's tick (CONFIG_HZ), whose length CLOCK_MONOTONIC_COARSE has as its resolution.
 * Source: clock_getres(2); kernel/time/posix-cpu-timers.c, Linux 6.12.
 */
double capture_max_hz(const struct capture *capture);

/*
 * capture_check_memory - whether probing may read the memory of a process, which needs another privilege than sampling
 * it. Returns 0; -EPERM, -ENOSYS (a seccomp filter), -ESRCH.
 */
int capture_check_memory(pid_t pid);

/*
 * capture_note_stack - the base of a thread's stack: the outermost CFA of a complete one.
 * With SOURCE_BPF, samples whose stack bytes reach it need not be read at once, and no longer wake the reader: see
 * capture_fd().
 */
void capture_note_stack(struct capture *capture, pid_t tid, uint64_t start);

/* capture_forget_stack - wake the reader for each sample of this thread again. */
void capture_forget_stack(struct capture *capture, pid_t tid);

/*
 * A descriptor for poll(2)/epoll: readable if records wait. Borrowed.
 * A record that must be read at once makes it readable at once; the others may wait for more. So call capture_next()
 * on a timer, too.
 */
int capture_fd(const struct capture *capture);

/*
 * capture_watch - notify the caller's own epoll instead of capture_fd(), which reports less from then on.
 * Saves the cost of an epoll inside an epoll at each wake-up, which the sampled thread pays. Edge-triggered: call
 * capture_next() until it returns 0, or again on a timer.
 * @data: returned in epoll_event.data.u32, perhaps several times by one epoll_wait(2).
 * Errors: what epoll_ctl(2) reports.
 */
int capture_watch(struct capture *capture, int epoll_fd, uint32_t data);

/* capture_explain_source - why SOURCE_BPF is unavailable: "needs root, or ...". At least 256 bytes. */
void capture_explain_source(char *to, size_t n_bytes);

/*
 * capture_watch_python - set the layout of a process' interpreter, from now on.
 * Samples of other processes come without Python frames. No effect if the source
 * is neither SOURCE_BPF nor SOURCE_AGENT.
 * @layout: copied; its id is in the records made with it, and distinguishes them from those of an
 *          earlier program in that process.
 * Errors: -ESRCH; -E2BIG, -ENOSPC too many processes.
 */
int capture_watch_python(struct capture *capture, pid_t pid, const struct python_layout *layout);
void capture_forget_python(struct capture *capture, pid_t pid);

/* When the last event was opened: CLOCK_MONOTONIC, nanoseconds. */
uint64_t capture_began_ns(const struct capture *capture);

/* Whether threads are also sampled when they leave the processor; if not, the caller must read the stack of a waiting
 * thread during its wait. */
bool capture_has_switch_stacks(const struct capture *capture);

/* Whether a thread is the agent's, which waits all the time. */
bool capture_is_agents(pid_t pid, pid_t tid);

/*
 * capture_switch_refusal - why perf events record context switches, and not a BPF program, which
 * costs a fraction of that: a negative errno; 0: the program records them, or nothing does (MODE_CPU).
 */
int capture_switch_refusal(const struct capture *capture);

/*
 * capture_direct_refusal - why the BPF program copies frames with the kernel's helper, and not by page tables, which
 * takes less than half as long: a negative errno, -ENOSYS where there is no program. 0: it reads them so.
 */
int capture_direct_refusal(const struct capture *capture);

/* Whether time inside the kernel is sampled too, and the bytes of one ring. */
bool capture_has_kernel(const struct capture *capture);
size_t capture_ring_bytes(const struct capture *capture);
/* Whether the rings are smaller than usual, because the limit on locked memory is too low. */
bool capture_rings_are_small(const struct capture *capture);

/*
 * capture_next - the next event, in time order over all rings.
 * Returns 1 and fills ret (its pointers hold until the next call), 0 when
 * nothing more has happened up to now, negative errno otherwise.
 */
int capture_next(struct capture *capture, struct capture_event *ret);

/*
 * capture_begin - the recording of attached processes begins now, and so do its samples and its account of CPU time.
 * Events report from capture_attach() on, so no mapping, fork or exec is missed while the caller reads maps. Samples from
 * before this call are dropped. What the rings lost before it does not count as lost (Linux 6.0), but CAPTURE_LOST reports
 * it: a mapping may be missing. Call it once, before the first capture_next().
 * No effect in three cases: while paused, because capture_resume() does the same; with SOURCE_POLL, whose recording begins with
 * capture_attach(); and if weights are not CPU time (waits, other events than the clock).
 * Errors: -ENOMEM.
 */
int capture_begin(struct capture *capture);

/*
 * capture_is_descheduled - whether the thread of the latest sample has not run since it was taken.
 * Up to this call: its memory read before is then as of the sample. False also if that is
 * unknown. Only with SOURCE_WAKEUP, whose reader moves to the processors of the samples, so as to take them from
 * the sampled threads: it binds the thread that calls capture_next(), until capture_stop().
 */
bool capture_is_descheduled(const struct capture *capture, const struct sample *sample);

/*
 * capture_peek - the sample behind the latest event.
 * A hint only: another event may come first, or instead.
 * False: there is none yet. Its pointers are valid as long as that event's.
 */
bool capture_peek(const struct capture *capture, struct sample *ret);

/*
 * capture_pause - take no samples until capture_resume(), without cost for the target.
 * Earlier samples remain readable. May be called repeatedly.
 */
void capture_pause(struct capture *capture);

/*
 * capture_resume - sample again.
 * Returns 1 if mappings, forks and execs were not reported meanwhile: the caller must read
 * them again now, before the next event; 0 if all of them come as events.
 */
int capture_resume(struct capture *capture);

/* Stop sampling; the records in the rings remain readable. */
void capture_stop(struct capture *capture);

void capture_read_counts(struct capture *capture, struct capture_counts *ret);

/*
 * capture_explain - one sentence with the reason of a refusal and the remedy,
 * naming the exact sysctl, capability or limit. @to: at least 512 bytes.
 */
void capture_explain(int error, pid_t pid, char *to, size_t n_bytes);

/* ---- Overhead of recording waits (switch_cost.c) ---- */

/*
 * capture_switch_cost - CPU time that recording adds to each switch away from a CPU, on this machine, now.
 * Records two threads of our own that only switch, for some 20 ms; best without another
 * recording of ours at the same time.
 * @options: of the recording; uses a small ring, since few records come.
 * @source:  the one in use, never SOURCE_POLL.
 * @ret_ns:  nanoseconds, not below 0.
 * Errors: those of capture_attach(); what pipe(2) and pthread_create(3) report.
 */
int capture_switch_cost(const struct capture_options *options, enum capture_source source, double *ret_ns);

#endif
