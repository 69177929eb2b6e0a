/* SPDX-License-Identifier: MIT */
/* run.c - serves samples, signals, timers, and the process' end.
 *
 * Samples are read in portions, so that signals and timers are served also with a constant stream of samples. The
 * writing thread does the rest.
 */
#include "src/cli/record/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stack_reserve.h"
#include "base/util.h"
#include "src/cli/format.h"
#include "src/target/target.h"

enum {
	MATCH_MS = 500,
	PORTION = 256,
	PORTION_NS = 50000000,
	FLUSH_MS = 400,
	LONG_TICK = 6,
	MANY_SAMPLES = 64,
	CAPTURE_NICE = -10
};

struct run {
	struct recording *recording;
	struct event_loop loop;
	unsigned flush_timer; /* a source of the loop */
	struct pidfd_set ends;
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

/* Remember an error, which ends the recording. */
static void check(struct run *run, int r)
{
	if (r >= 0)
		return;
	run->recording->error = r;
	event_loop_end(&run->loop);
}

static event_serve take_woken, tick, process_ended, duration_ended, resume_late, take_orders, take_matches;
static event_take_signal take_signal;

static int open_processes(struct run *run)
{
	const struct recording *recording = run->recording;
	const struct targets *targets = &recording->targets;
	int r;

	r = recording->is_child ? pidfd_set_open(&recording->pid, 1, &run->ends)
				: pidfd_set_open(targets->pids, targets->n, &run->ends);
	return r < 0 ? r : run->ends.epoll;
}

static void run_done(struct run *run)
{
	run->recording->loop = NULL;
	event_loop_done(&run->loop);
	pidfd_set_done(&run->ends);
}

/* Watch for external commands, and for the times to start and stop. */
static int watch_orders(struct run *run)
{
	struct recording *recording = run->recording;
	int r = 0;

	if (recording->duration_s > 0) { /* if paused, resuming sets it */
		r = event_loop_watch_timer(&run->loop,
					   recording->is_paused ? 0 : (uint64_t)(recording->duration_s * 1e9), 0,
					   duration_ended);
		recording->end_timer = r;
	}
	if (r >= 0 && recording->is_paused && recording->delay_s >= 0)
		r = event_loop_watch_timer(&run->loop, (uint64_t)(recording->delay_s * 1e9) + 1, 0, resume_late);
	if (r >= 0 && recording->matching)
		r = event_loop_watch_timer(&run->loop, MATCH_MS * 1000000u, MATCH_MS * 1000000u, take_matches);
	if (r >= 0 && recording->control.fd > 0)
		r = event_loop_watch(&run->loop, recording->control.fd, false, take_orders);
	return r;
}

static int watch_all(struct run *run)
{
	struct recording *recording = run->recording;
	sigset_t taken;
	int r;

	taken_signals(&taken);
	r = event_loop_watch_capture(&run->loop, recording->capture, take_woken);
	if (r >= 0)
		r = event_loop_watch_signals(&run->loop, &taken, take_signal);
	if (r >= 0)
		r = event_loop_watch_timer(&run->loop, FLUSH_MS * 1000000u, FLUSH_MS * 1000000u, tick);
	if (r >= 0) {
		run->flush_timer = (unsigned)r;
		r = watch_orders(run);
	}
	if (r >= 0)
		r = event_loop_watch(&run->loop, open_processes(run), false, process_ended);
	if (r == -ESRCH) { /* the target has ended; read what it left */
		event_loop_end(&run->loop);
		r = 0;
	}
	return MIN(r, 0);
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

static int take_samples(struct recording *recording)
{
	return pipeline_take(recording->pipeline, recording->capture, PORTION, PORTION_NS);
}

/* Read the rings until they are empty, but stop in time to serve signals and timers. */
static int take_waiting(struct recording *recording)
{
	uint64_t end_ns = monotonic_ns() + FLUSH_MS * 500000ull;
	int r;

	do
		r = take_samples(recording);
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
static bool is_to_write(const struct run *run)
{
	static const struct {
		unsigned ticks, samples;
	} paces[] = { { 2, 12 }, { LONG_TICK, MANY_SAMPLES } };
	const struct recording *recording = run->recording;
	unsigned pace = recording->is_always_on ? 1 : 0;

	return run->n_waited >= paces[pace].ticks || pipeline_pending(recording->pipeline) >= paces[pace].samples;
}

/*
 * An always-on recorder with few samples spends more on waking up than on work. Unless someone watches or waits for an
 * answer, use slow ticks. Urgent samples wake the reader themselves.
 */
static int choose_tick(struct run *run, bool has_many)
{
	const struct recording *recording = run->recording;
	bool is_slow = recording->is_always_on && !has_many && !recording->progress && recording->n_flushes_asked == 0;
	uint64_t tick_ns = FLUSH_MS * 1000000ull * (is_slow ? LONG_TICK : 1);

	if (is_slow == run->is_slow)
		return 0;
	run->is_slow = is_slow;
	return event_loop_set_timer(&run->loop, run->flush_timer, tick_ns, tick_ns);
}

static int write_or_wait(struct run *run)
{
	struct recording *recording = run->recording;
	bool is_late = run->n_waited >= LONG_TICK, has_many;
	int r = 0;

	if (is_to_write(run)) {
		has_many = pipeline_pending(recording->pipeline) >= MANY_SAMPLES;
		run->n_waited = 0;
		r = pipeline_flush(recording->pipeline);
		if (r >= 0 && (is_late || has_many))
			r = choose_tick(run, has_many);
	}
	return r;
}

/* Many samples at once do not wait for the end of a slow tick. */
static void take_woken(void *data)
{
	struct run *run = data;
	int r = take_samples(run->recording);

	if (r >= 0 && run->is_slow && pipeline_pending(run->recording->pipeline) >= MANY_SAMPLES)
		r = choose_tick(run, true);
	check(run, r);
}

static void tick(void *data)
{
	struct run *run = data;
	struct recording *recording = run->recording;
	int r;

	/* The last samples of a thread that sleeps now, and deferred samples, did not wake the reader. */
	r = take_waiting(recording);
	recording_answer_flush(recording);
	run->n_waited += run->is_slow ? LONG_TICK : 1;
	if (r >= 0)
		r = write_or_wait(run);
	run->n_ticks++;
	check(run, r);
	if (recording->progress && run->n_ticks % 2 == 0)
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
static void take_orders(void *data)
{
	struct run *run = data;
	struct recording *recording = run->recording;
	int r = take_waiting(recording);

	if (r >= 0 && recording_obey(recording))
		event_loop_end(&run->loop);
	if (r >= 0 && recording->n_flushes_asked > 0)
		r = choose_tick(run, true);
	check(run, r < 0 ? r : recording->error);
}

static void take_signal(void *data, const struct signalfd_siginfo *info)
{
	struct run *run = data;
	struct recording *recording = run->recording;

	if (info->ssi_signo == SIGCHLD || info->ssi_signo == SIGPIPE)
		return; /* the pidfd reports the end; an unread message ends no recording */
	if (recording->is_child)
		pass_on(recording, info);
	else if (info->ssi_signo == SIGUSR1)
		flush_now(recording);
	else if (info->ssi_signo != SIGUSR2)
		event_loop_end(&run->loop);
	else if (recording->is_paused)
		recording_resume(recording);
	else
		recording_pause(recording);
	check(run, recording->error);
}

int recording_take_all(struct recording *recording)
{
	int r;

	do
		r = take_samples(recording);
	while (r > 0);
	return r;
}

/* Resume only once: a later pause is deliberate. */
static void resume_late(void *data)
{
	struct run *run = data;

	recording_resume(run->recording);
	check(run, run->recording->error);
}

static void duration_ended(void *data)
{
	struct run *run = data;

	event_loop_end(&run->loop);
}

static void process_ended(void *data)
{
	struct run *run = data;

	if (pidfd_set_all(&run->ends))
		event_loop_end(&run->loop);
}

/* A process that cannot be recorded is no error of the recording. -ENOMEM. */
static int join(struct run *run, pid_t pid)
{
	struct recording *recording = run->recording;
	int r;

	if (pipeline_knows(recording->pipeline, pid))
		return 0;
	r = capture_add(recording->capture, pid);
	if (r >= 0)
		r = pipeline_join(recording->pipeline, pid);
	if (r >= 0)
		r = pidfd_set_add(&run->ends, pid);
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
static void take_matches(void *data)
{
	CLEANUP(targets_done) struct targets found = { 0 };
	struct run *run = data;
	int r;

	r = matching_look(run->recording->matching, &found);
	leave_known_out(run->recording, &found);
	if (r >= 0 && found.n > 0 && run->recording->follows_children)
		r = targets_add_descendants(&found);
	for (size_t i = 0; r >= 0 && i < found.n; i++)
		r = join(run, found.pids[i]);
	check(run, r);
}

static void drain(struct recording *recording)
{
	int r;

	capture_stop(recording->capture);
	r = recording_take_all(recording);
	if (r < 0)
		recording->error = r;
}

int recording_run(struct recording *recording)
{
	struct run run = { .recording = recording, .ends.epoll = -1 };
	int r;

	/* An earlier wake-up reads memory earlier. Only this thread; fails for an ordinary user. */
	(void)setpriority(PRIO_PROCESS, 0, CAPTURE_NICE);
	stack_reserve();

	recording->end_timer = -1;
	recording->began_ns = recording->paused_ns = monotonic_ns();
	r = event_loop_init(&run.loop, &run);
	recording->loop = &run.loop;
	if (r >= 0)
		r = watch_all(&run);
	if (r >= 0)
		recording->restrict_error = privilege_restrict(&recording->needs);
	if (r >= 0)
		r = event_loop_run(&run.loop);
	recording->recorded_ns = recording_recorded_ns(recording); /* samples still in the rings are from before this */
	if (r >= 0 && recording->error == 0)
		drain(recording);
	capture_stop(recording->capture);
	reap(recording, WNOHANG);
	recording_end_pause(recording);
	recording_answer_flush(recording);
	run_done(&run);
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
