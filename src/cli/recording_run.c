/* SPDX-License-Identifier: MIT */
/* recording_run.c - the loop: samples, signals, time, and the process' end.
 *
 * One epoll. Samples are drained in portions, so that signals and timers are
 * served also when samples never cease. The writing thread does the rest.
 */
#include "src/cli/recording_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stack_reserve.h"
#include "base/util.h"
#include "src/cli/pidfd_set.h"
#include "src/cli/format.h"
#include "src/cli/matching.h"
#include "src/cli/recording_control.h"

enum {
	MATCH_MS = 500,
	PORTION = 256,
	PORTION_NS = 50000000,
	FLUSH_MS = 400,
	LONG_TICK = 6,
	MANY_SAMPLES = 64,
	CAPTURE_NICE = -10
};

enum source {
	SOURCE_SAMPLES,
	SOURCE_SIGNAL,
	SOURCE_PROCESS,
	SOURCE_DURATION,
	SOURCE_DELAY,
	SOURCE_FLUSH,
	SOURCE_CONTROL,
	SOURCE_MATCHES,
	N_SOURCES
};

struct loop {
	struct recording *recording;
	int epoll, fds[N_SOURCES]; /* -1: unused */
	struct pidfd_set ends;
	bool end;
	uint64_t n_ticks;
	unsigned n_waited; /* ticks since the last write */
	bool is_slow;      /* ticks have LONG_TICK times the length */
};

/*
 * Under nohup(1) the end of the terminal is not that of the recording: a blocked signal would arrive although it is
 * ignored. SIGINT counts even so, as shells ignore it in all commands that a script starts with &.
 */
static void taken_signals(sigset_t *ret)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE };
	struct sigaction hangup;

	sigemptyset(ret);
	for (size_t i = 0; i < N_ELEMENTS(signals); i++)
		sigaddset(ret, signals[i]);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN)
		sigdelset(ret, SIGHUP);
}

void recording_block_signals(sigset_t *ret_before)
{
	sigset_t taken;

	taken_signals(&taken);
	pthread_sigmask(SIG_BLOCK, &taken, ret_before);
}

static struct itimerspec timer_of(uint64_t first_ns, uint64_t every_ns)
{
	return (struct itimerspec){
		.it_value = { (time_t)(first_ns / 1000000000u), (long)(first_ns % 1000000000u) },
		.it_interval = { (time_t)(every_ns / 1000000000u), (long)(every_ns % 1000000000u) },
	};
}

static int open_timer(uint64_t first_ns, uint64_t every_ns)
{
	const struct itimerspec spec = timer_of(first_ns, every_ns);
	CLEANUP(closep) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &spec, NULL) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int watch(struct loop *loop, enum source source, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	if (fd < 0)
		return fd;
	loop->fds[source] = fd;
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_signals(void)
{
	sigset_t taken;
	int fd;

	taken_signals(&taken);
	fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_processes(struct loop *loop)
{
	const struct recording *recording = loop->recording;
	const struct targets *targets = &recording->targets;
	int r;

	r = recording->is_child ? pidfd_set_open(&recording->pid, 1, &loop->ends)
				: pidfd_set_open(targets->pids, targets->n, &loop->ends);
	return r < 0 ? r : loop->ends.epoll;
}

static bool is_borrowed(enum source source)
{
	return source == SOURCE_CONTROL || source == SOURCE_PROCESS;
}

static void loop_done(struct loop *loop)
{
	loop->recording->end_timer = -1;
	for (int i = 0; i < N_SOURCES; i++)
		if (!is_borrowed((enum source)i) && loop->fds[i] >= 0)
			close(loop->fds[i]);
	pidfd_set_done(&loop->ends);
	if (loop->epoll >= 0)
		close(loop->epoll);
}

/* Watch for external commands, and for the times to start and stop. */
static int watch_orders(struct loop *loop, const struct recording *recording)
{
	int r = 0;

	if (recording->duration_s > 0) /* if paused, resuming sets it */
		r = watch(loop, SOURCE_DURATION,
			  open_timer(recording->is_paused ? 0 : (uint64_t)(recording->duration_s * 1e9), 0));
	if (r >= 0 && recording->is_paused && recording->delay_s >= 0)
		r = watch(loop, SOURCE_DELAY, open_timer((uint64_t)(recording->delay_s * 1e9) + 1, 0));
	if (r >= 0 && recording->matching)
		r = watch(loop, SOURCE_MATCHES, open_timer(MATCH_MS * 1000000u, MATCH_MS * 1000000u));
	if (r >= 0 && recording->control.fd > 0)
		r = watch(loop, SOURCE_CONTROL, recording->control.fd);
	return r;
}

static int loop_init(struct loop *loop, struct recording *recording)
{
	int r;

	loop->recording = recording;
	for (int i = 0; i < N_SOURCES; i++)
		loop->fds[i] = -1;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return -errno;
	r = capture_watch(recording->capture, loop->epoll, SOURCE_SAMPLES);
	if (r >= 0)
		r = watch(loop, SOURCE_SIGNAL, open_signals());
	if (r >= 0)
		r = watch(loop, SOURCE_FLUSH, open_timer(FLUSH_MS * 1000000u, FLUSH_MS * 1000000u));
	if (r >= 0)
		r = watch_orders(loop, recording);
	recording->end_timer = loop->fds[SOURCE_DURATION];
	if (r >= 0)
		r = watch(loop, SOURCE_PROCESS, open_processes(loop));
	if (r == -ESRCH) { /* the target has ended; read what it left */
		loop->end = true;
		r = 0;
	}
	return r;
}

static void reap(struct recording *recording, int flags)
{
	if (recording->is_child && !recording->child_ended &&
	    waitpid(recording->pid, &recording->child_status, flags) == recording->pid)
		recording->child_ended = true;
}

/* The child gets signals of the terminal itself, but not those of kill(1). */
static void pass_on(const struct recording *recording, const struct signalfd_siginfo *info)
{
	if (recording->is_child && !recording->child_ended && info->ssi_code <= 0)
		kill(recording->pid, (int)info->ssi_signo);
}

/* Returns 1 if there may be more: very deep stacks take a few milliseconds each. */
static int take_samples(struct recording *recording, unsigned max)
{
	uint64_t end_ns = monotonic_ns() + PORTION_NS;

	while (max-- > 0 && monotonic_ns() < end_ns) {
		struct capture_event event;
		struct sample next;
		int r;

		r = capture_next(recording->capture, &event);
		if (r > 0 && capture_peek(recording->capture, &next))
			pipeline_expect_sample(recording->pipeline, &next);
		if (r == 0)
			return pipeline_idle(recording->pipeline);
		if (r > 0)
			r = pipeline_event(recording->pipeline, &event) ?: 1;
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Read the rings until they are empty, but stop in time to serve signals and timers. */
static int take_waiting(struct recording *recording)
{
	uint64_t end_ns = monotonic_ns() + FLUSH_MS * 500000ull;
	int r;

	do
		r = take_samples(recording, PORTION);
	while (r > 0 && monotonic_ns() < end_ns);
	return MIN(r, 0);
}

static void show_progress(const struct recording *recording)
{
	struct pipeline_counts counts;
	struct capture_counts captured;
	char size[16], seconds[16];

	pipeline_read_counts(recording->pipeline, &counts);
	capture_read_counts(recording->capture, &captured);
	format_bytes((uint64_t)pipeline_store_bytes(recording->pipeline), size);
	snprintf(seconds, sizeof seconds, "%.0f", (double)recording_recorded_ns(recording) / 1e9);
	fprintf(stderr, "\r%s s  %llu samples  %llu lost  %s%s \033[K", seconds, (unsigned long long)counts.samples,
		(unsigned long long)captured.lost, size, recording->is_paused ? "  paused" : "");
}

/* A transaction costs as much as a few samples, so write few samples later. */
static bool is_to_write(const struct loop *loop)
{
	static const struct {
		unsigned ticks, samples;
	} paces[] = { { 2, 12 }, { LONG_TICK, MANY_SAMPLES } };
	const struct recording *recording = loop->recording;
	unsigned pace = recording->is_always_on ? 1 : 0;

	return loop->n_waited >= paces[pace].ticks || pipeline_pending(recording->pipeline) >= paces[pace].samples;
}

/*
 * An always-on recorder with few samples spends more on waking up than on work. Unless someone watches or waits for an
 * answer, use slow ticks. Urgent samples wake the reader themselves.
 */
static int choose_tick(struct loop *loop, bool has_many)
{
	const struct recording *recording = loop->recording;
	bool is_slow = recording->is_always_on && !has_many && !recording->progress && recording->n_flushes_asked == 0;
	uint64_t tick_ns = FLUSH_MS * 1000000ull * (is_slow ? LONG_TICK : 1);
	const struct itimerspec spec = timer_of(tick_ns, tick_ns);

	if (is_slow == loop->is_slow)
		return 0;
	loop->is_slow = is_slow;
	return timerfd_settime(loop->fds[SOURCE_FLUSH], 0, &spec, NULL) < 0 ? -errno : 0;
}

static int write_or_wait(struct loop *loop)
{
	struct recording *recording = loop->recording;
	bool is_late = loop->n_waited >= LONG_TICK, has_many;
	int r = 0;

	if (is_to_write(loop)) {
		has_many = pipeline_pending(recording->pipeline) >= MANY_SAMPLES;
		loop->n_waited = 0;
		r = pipeline_flush(recording->pipeline);
		if (r >= 0 && (is_late || has_many))
			r = choose_tick(loop, has_many);
	}
	return r;
}

/* Many samples at once do not wait for the end of a slow tick. */
static int take_woken(struct loop *loop)
{
	int r = take_samples(loop->recording, PORTION);

	if (r >= 0 && loop->is_slow && pipeline_pending(loop->recording->pipeline) >= MANY_SAMPLES)
		r = choose_tick(loop, true);
	return r;
}

static void tick(struct loop *loop)
{
	struct recording *recording = loop->recording;
	uint64_t expirations;
	int r;

	if (read(loop->fds[SOURCE_FLUSH], &expirations, sizeof expirations) < 0)
		return;
	/* The last samples of a thread that sleeps now, and deferred samples, did not wake the reader. */
	r = take_waiting(recording);
	recording_answer_flush(recording);
	loop->n_waited += loop->is_slow ? LONG_TICK : 1;
	if (r >= 0)
		r = write_or_wait(loop);
	loop->n_ticks++;
	recording->error = r < 0 ? r : 0;
	if (recording->progress && loop->n_ticks % 2 == 0)
		show_progress(recording);
}

/* Keep an earlier error. */
static void flush_now(struct recording *recording)
{
	int r = recording->error;

	if (r == 0)
		r = take_waiting(recording);
	if (r >= 0)
		r = pipeline_flush(recording->pipeline);
	recording->error = MIN(r, 0);
}

/* An answer must describe the current state, so flush first. A tick answers requests for a flush. */
static int take_orders(struct loop *loop)
{
	struct recording *recording = loop->recording;
	int r = take_waiting(recording);

	if (r < 0)
		return r;
	loop->end |= recording_obey(recording);
	return recording->n_flushes_asked > 0 ? choose_tick(loop, true) : 0;
}

static void take_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->fds[SOURCE_SIGNAL], &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGPIPE)
			continue; /* the pidfd reports the end; a message that nobody reads ends no recording */
		if (loop->recording->is_child)
			pass_on(loop->recording, &info);
		else if (info.ssi_signo == SIGUSR1)
			flush_now(loop->recording);
		else if (info.ssi_signo != SIGUSR2)
			loop->end = true;
		else if (loop->recording->is_paused)
			recording_resume(loop->recording);
		else
			recording_pause(loop->recording);
	}
}

int recording_take_all(struct recording *recording)
{
	int r;

	do
		r = take_samples(recording, PORTION);
	while (r > 0);
	return r;
}

/* Resume only once: a later pause is deliberate. */
static void resume_late(struct loop *loop)
{
	uint64_t expirations;

	if (read(loop->fds[SOURCE_DELAY], &expirations, sizeof expirations) == sizeof expirations)
		recording_resume(loop->recording);
}

/* A process that cannot be recorded is no error of the recording. -ENOMEM. */
static int join(struct loop *loop, pid_t pid)
{
	struct recording *recording = loop->recording;
	int r;

	if (pipeline_knows(recording->pipeline, pid))
		return 0;
	r = capture_add(recording->capture, pid);
	if (r >= 0)
		r = pipeline_join(recording->pipeline, pid);
	if (r >= 0)
		r = pidfd_set_add(&loop->ends, pid);
	recording->n_joined += r >= 0;
	return r == -ENOMEM ? r : 0;
}

/* Skip known processes: whether to record their children was decided before. */
static void leave_known_out(const struct recording *recording, struct targets *found)
{
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++)
		if (!pipeline_knows(recording->pipeline, found->pids[i]))
			found->pids[n++] = found->pids[i];
	found->n = n;
}

/* Record new matches, and the children they started before they were found. */
static int take_matches(struct loop *loop)
{
	CLEANUP(targets_done) struct targets found = { 0 };
	uint64_t expirations;
	int r;

	if (read(loop->fds[SOURCE_MATCHES], &expirations, sizeof expirations) < 0)
		return 0;
	r = matching_look(loop->recording->matching, &found);
	leave_known_out(loop->recording, &found);
	if (r >= 0 && found.n > 0 && loop->recording->follows_children)
		r = targets_add_descendants(&found);
	for (size_t i = 0; r >= 0 && i < found.n; i++)
		r = join(loop, found.pids[i]);
	return MIN(r, 0);
}

static void serve(struct loop *loop, enum source source)
{
	struct recording *recording = loop->recording;
	int r;

	switch (source) {
	case SOURCE_SAMPLES:
		r = take_woken(loop);
		if (r < 0)
			recording->error = r;
		break;
	case SOURCE_SIGNAL:
		take_signals(loop);
		break;
	case SOURCE_PROCESS:
		loop->end |= pidfd_set_all(&loop->ends);
		break;
	case SOURCE_DURATION:
		loop->end = true;
		break;
	case SOURCE_DELAY:
		resume_late(loop);
		break;
	case SOURCE_FLUSH:
		tick(loop);
		break;
	case SOURCE_CONTROL:
		r = take_orders(loop);
		if (r < 0)
			recording->error = r;
		break;
	case SOURCE_MATCHES:
		r = take_matches(loop);
		if (r < 0)
			recording->error = r;
		break;
	case N_SOURCES:
		break;
	}
}

static void drain(struct recording *recording)
{
	int r;

	capture_stop(recording->capture);
	r = recording_take_all(recording);
	if (r < 0)
		recording->error = r;
}

/* Each ring reports its own event, but the first one reads all rings. */
static bool is_served(const struct epoll_event *events, int n)
{
	return n > 0 && events[n].data.u32 == SOURCE_SAMPLES && events[n - 1].data.u32 == SOURCE_SAMPLES;
}

int recording_run(struct recording *recording)
{
	struct epoll_event events[N_SOURCES];
	struct loop loop = { .ends.epoll = -1 };
	int r;

	/* An earlier wake-up reads memory earlier. Only this thread; fails for an ordinary user. */
	(void)setpriority(PRIO_PROCESS, 0, CAPTURE_NICE);
	stack_reserve();

	recording->began_ns = recording->paused_ns = monotonic_ns();
	r = loop_init(&loop, recording);
	if (r >= 0)
		recording->restrict_error = privilege_restrict(&recording->needs);
	while (r >= 0 && !loop.end && recording->error == 0) {
		int n = epoll_wait(loop.epoll, events, N_SOURCES, -1);

		if (n < 0 && errno != EINTR)
			r = -errno;
		for (int i = 0; i < n && recording->error == 0; i++)
			if (!is_served(events, i))
				serve(&loop, events[i].data.u32);
	}
	recording->recorded_ns = recording_recorded_ns(recording); /* samples still in the rings are from before this */
	if (r >= 0 && recording->error == 0)
		drain(recording);
	capture_stop(recording->capture);
	reap(recording, WNOHANG);
	recording_end_pause(recording);
	recording_answer_flush(recording);
	loop_done(&loop);
	if (recording->progress)
		fputs("\r\033[K", stderr);
	return r;
}

void recording_wait_child(struct recording *recording)
{
	while (recording->is_child && !recording->child_ended) {
		struct signalfd_siginfo info = { 0 };
		siginfo_t from;
		sigset_t taken;
		int signal;

		reap(recording, WNOHANG);
		if (recording->child_ended)
			break;
		taken_signals(&taken);
		signal = sigwaitinfo(&taken, &from);
		if (signal < 0 || signal == SIGCHLD || signal == SIGPIPE)
			continue;
		info.ssi_signo = (uint32_t)signal;
		info.ssi_code = from.si_code;
		pass_on(recording, &info);
	}
}
