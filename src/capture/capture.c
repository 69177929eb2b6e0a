/* SPDX-License-Identifier: MIT */
/* capture.c - the public functions: combines rings, events, order and decoding.
 *
 * Invariants:
 * 1. capture_next() returns 0 only if a reading of all rings that began after
 *    the call found nothing. A caller that is woken and calls until 0 misses nothing.
 * 2. One moment of a thread's time on a CPU counts once, though two events may
 *    have recorded it (dup_events.c). Without late events, which is the
 *    rule, no two events can, and nothing is checked.
 * 3. No allocation per record.
 * 4. A sample has its own Python frames or none (frame_sample_match.c).
 */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/capture_private.h"
#include "src/capture/decode.h"
#include "src/capture/rights.h"
#include "src/capture/descheduled.h"
#include "src/capture/switches.h"
#include "src/capture/unsampled.h"

/* A record that is later than this round's clock belongs to the next round. After this many rounds without a record, the
 * next one's time is invalid or in the future: return instead of spinning. */
enum { MAX_ROUNDS = 4 };

/* SOURCE_AUTO skips a source that is unavailable. */
static int open_bpf(struct capture *capture, const struct capture_options *options)
{
	enum capture_source source = options->source;
	bool is_tracepoint = capture->events.attr.type == PERF_TYPE_TRACEPOINT;
	const struct bpf_source_options bpf_options = {
		.tracepoint = is_tracepoint ? capture->events.attr.config : 0,
		.samples_switches = options->mode != MODE_CPU,
		.wake_on_live_read = options->wake_on_live_read,
		/* Timers and counters interrupt; other software events are counted where they occur. */
		.in_interrupt = capture->events.is_clock ||
				(!is_tracepoint && capture->events.attr.type != PERF_TYPE_SOFTWARE),
	};
	int r;

	if (source == SOURCE_WAKEUP)
		return 0;
	/* The BPF program of a tracepoint runs at each event: unless each is sampled, frames come without samples. */
	if (is_tracepoint && (capture->events.attr.freq || capture->events.attr.sample_period != 1))
		return source == SOURCE_BPF ? -EPROTONOSUPPORT : 0;
	r = bpf_source_new(&capture->rings, &bpf_options, &capture->bpf);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return source == SOURCE_BPF ? -EPROTONOSUPPORT : 0;
	capture->events.bpf = capture->bpf;
	/* The rate of other events is unknown. */
	capture->wake_on_live_read = options->wake_on_live_read && capture->events.is_clock &&
				     options->mode == MODE_CPU;
	if (capture->wake_on_live_read)
		capture->events.attr.watermark = 1;
	else if (capture->events.is_clock)
		events_wake_rarely(&capture->events);
	return frame_sample_match_init(&capture->matches, capture->rings.n);
}

/* Read memory right after each sample, before the sampled thread runs again. */
static void ask_for_stillness(struct capture *capture)
{
	capture->hides_switches = !capture->events.attr.context_switch;
	capture->events.attr.context_switch = 1;
	capture->reads_at_once = true;
}

static int capture_new(const struct capture_options *options, struct capture **ret)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	capture = calloc(1, sizeof *capture);
	if (!capture)
		return -ENOMEM;
	capture->rings.epoll_fd = capture->clock = -1;
	capture->no_children = options->no_children;
	capture->switch_refusal = options->mode == MODE_CPU ? 0 : -EPROTONOSUPPORT; /* until a BPF program is loaded */
	r = events_init(&capture->events, options, &capture->rings);
	if (r < 0)
		return r;
	capture->paused_ns = options->paused ? monotonic_ns() : 0;
	switches_ask(&capture->events, options->mode);
	r = perf_rings_open(options->ring_bytes, &capture->rings);
	if (r < 0)
		return r;
	r = merge_init(&capture->merge, capture->rings.ring, capture->rings.n);
	if (r >= 0)
		r = open_bpf(capture, options);
	if (r < 0)
		return r;
	if (!capture->bpf && !options->no_wakeup)
		ask_for_stillness(capture);
	capture->times_runs = unsampled_may_time_runs(capture, options);
	if (capture->times_runs) {
		capture->hides_switches = true;
		capture->events.attr.context_switch = 1;
	}

	*ret = TAKE(capture);
	return 0;
}

/* Without the BPF program, for any reason, the events' own records report switches, at a higher cost. */
static void tell_switches(struct capture *capture)
{
	size_t n_cpus = 0;

	for (size_t i = 0; i < capture->rings.n; i++)
		n_cpus = MAX(n_cpus, (size_t)capture->rings.ring[i].cpu + 1);
	capture->switch_refusal = bpf_switches_new(capture->bpf, n_cpus, &capture->bpf_switches);
	if (capture->switch_refusal >= 0)
		capture->events.attr.context_switch = 0;
}

static void tell_switches_by_events(struct capture *capture, int refusal)
{
	bpf_switches_free(TAKE(capture->bpf_switches));
	capture->switch_refusal = refusal;
	capture->events.attr.context_switch = 1;
}

/*
 * With switches, open system-wide events if a BPF program filters out other processes: events of single threads cost
 * the threads more. Returns whether they are open.
 */
static bool start_wide(struct capture *capture, const struct capture_options *options, const pid_t *pids, size_t n_pids,
		       bool launch)
{
	size_t n_threads = 0;
	int r;

	if (options->mode == MODE_CPU || !capture->bpf || events_count_threads(pids, n_pids, &n_threads) < 0 ||
	    n_threads == 0)
		return false;
	for (size_t i = 0; i < n_pids; i++)
		if (bpf_source_judge(capture->bpf, pids[i], true) < 0)
			return false;
	tell_switches(capture);
	r = events_attach_wide(&capture->events, n_threads);
	if (r < 0) {
		tell_switches_by_events(capture, r);
		return false;
	}
	capture->awaits_exec = launch ? pids[0] : 0;
	return true;
}

/* In addition to the open events. */
static int start_switches(struct capture *capture, const struct capture_options *options, const pid_t *pids,
			  size_t n_pids, bool launch)
{
	int r;

	if (options->mode == MODE_CPU)
		return 0;
	switches_init(&capture->switches, &capture->events);
	r = switches_start(&capture->switches, pids, n_pids, launch, capture->events.system_wide);
	return r < 0 ? r : switches_clock(capture->rings.epoll_fd, &capture->clock);
}

static int attach_events(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct capture **ret)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	r = capture_new(options, &capture);
	for (size_t i = 0; r >= 0 && i < n_pids; i++)
		r = task_set_add(&capture->wanted, pids[i]);
	if (r >= 0)
		r = start_wide(capture, options, pids, n_pids, false)
			    ? 0
			    : events_attach_all(&capture->events, pids, n_pids);
	if (r >= 0)
		r = start_switches(capture, options, pids, n_pids, false);
	if (r >= 0)
		r = descriptors_suffice();
	if (r < 0)
		return r;
	if (capture->paused_ns != 0 && capture->events.system_wide)
		r = bpf_source_judge(capture->bpf, BPF_PAUSED, true);
	if (r < 0)
		return r;
	if (capture->events.n_late > 0) {
		r = dup_events_new(&capture->dup_events);
		if (r < 0)
			return r;
	}

	*ret = TAKE(capture);
	return 0;
}

static int launch_events(const struct capture_options *options, pid_t child, struct capture **ret)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	r = capture_new(options, &capture);
	if (r < 0)
		return r;
	r = task_set_add(&capture->wanted, child);
	if (r >= 0)
		r = start_wide(capture, options, &child, 1, true) ? 0 : events_launch(&capture->events, child);
	if (r >= 0)
		r = start_switches(capture, options, &child, 1, true);
	if (r >= 0)
		r = descriptors_suffice();
	if (r < 0)
		return r;

	*ret = TAKE(capture);
	return 0;
}

/* Without perf events. @source: SOURCE_POLL or SOURCE_AGENT. @refusal: of perf events; 0: they were not requested. */
static int start_other(const struct capture_options *options, enum capture_source source, const pid_t *pids,
		       size_t n_pids, bool launch, int refusal, struct capture **ret)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	capture = calloc(1, sizeof *capture);
	if (!capture)
		return -ENOMEM;
	capture->rings.epoll_fd = capture->clock = -1;
	capture->refusal = refusal;
	capture->paused_ns = options->paused ? monotonic_ns() : 0;
	if (source == SOURCE_AGENT)
		r = launch ? -ENOTCONN : agent_source_new(options, pids, n_pids, &capture->agent);
	else
		r = launch ? poller_launch(options, pids[0], &capture->poller)
			   : poller_attach(options, pids, n_pids, &capture->poller);
	if (r < 0)
		return r;
	*ret = TAKE(capture);
	return 0;
}

/* Errors that prevent perf events, but not reading memory. */
static bool is_refusal(int error)
{
	return error == -EACCES || error == -EPERM || error == -ENOSYS || error == -EMFILE || error == -ENFILE ||
	       error == -ENOBUFS;
}

static int open_any(const struct capture_options *options, const pid_t *pids, size_t n_pids, bool launch,
		    struct capture **ret)
{
	int r, by_agent;

	raise_descriptor_limit();
	if (options->source == SOURCE_POLL || options->source == SOURCE_AGENT)
		return start_other(options, options->source, pids, n_pids, launch, 0, ret);
	r = launch ? launch_events(options, pids[0], ret) : attach_events(options, pids, n_pids, ret);
	if (options->source != SOURCE_AUTO || options->event || !is_refusal(r))
		return r;
	by_agent = start_other(options, SOURCE_AGENT, pids, n_pids, launch, r, ret);
	if (by_agent >= 0)
		return 0;
	/* A timer alone detects no waits. */
	if (options->mode != MODE_CPU || capture_check_memory(pids[0]) < 0)
		return by_agent == -EBUSY ? by_agent : r;
	return start_other(options, SOURCE_POLL, pids, n_pids, launch, r, ret);
}

static int start(const struct capture_options *options, const pid_t *pids, size_t n_pids, bool launch,
		 struct capture **ret)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;
	int r;

	r = open_any(options, pids, n_pids, launch, &capture);
	if (r >= 0)
		r = unsampled_begin(capture, options, pids, n_pids);
	if (r < 0)
		return r;
	capture->began_ns = monotonic_ns();
	*ret = TAKE(capture);
	return 0;
}

int capture_attach(const struct capture_options *options, pid_t pid, struct capture **ret)
{
	return start(options, &pid, 1, false, ret);
}

int capture_attach_all(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct capture **ret)
{
	return n_pids > 0 ? start(options, pids, n_pids, false, ret) : -ESRCH;
}

/* In addition to the sampled processes: a thread of one that they started may have inherited events. */
static int add_events(struct capture *capture, pid_t pid)
{
	int r = 0;

	if (!capture->dup_events)
		r = dup_events_new(&capture->dup_events);
	if (r >= 0)
		r = events_add(&capture->events, pid);
	if (r >= 0 && capture->switches.n_opened > 0 && !capture->switches.system_wide)
		r = events_add(&capture->switches, pid);
	return r;
}

int capture_add(struct capture *capture, pid_t pid)
{
	int r;

	r = unsampled_add(capture, pid);
	if (r < 0)
		return r;
	if (capture->poller)
		return poller_add(capture->poller, pid);
	if (capture->agent)
		return agent_source_add(capture->agent, pid);
	r = task_set_add(&capture->wanted, pid);
	if (r >= 0 && (capture->events.system_wide || capture->switches.system_wide))
		r = bpf_source_judge(capture->bpf, pid, true);
	if (r >= 0 && !capture->events.system_wide)
		r = add_events(capture, pid);
	return r;
}

int capture_launch(const struct capture_options *options, pid_t child, struct capture **ret)
{
	return start(options, &child, 1, true, ret);
}

enum capture_source capture_source(const struct capture *capture)
{
	if (capture->agent)
		return SOURCE_AGENT;
	return capture->poller ? SOURCE_POLL : capture->bpf ? SOURCE_BPF : SOURCE_WAKEUP;
}

int capture_refusal(const struct capture *capture)
{
	return capture->refusal;
}

double capture_max_hz(const struct capture *capture)
{
	struct timespec tick;

	if (capture_source(capture) != SOURCE_AGENT || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) < 0)
		return 0;
	return 1 / ((double)tick.tv_sec + (double)tick.tv_nsec / 1e9);
}

void capture_free(struct capture *capture)
{
	if (!capture)
		return;
	poller_free(capture->poller);
	agent_source_free(capture->agent);
	closep(&capture->clock);
	events_done(&capture->switches);
	events_done(&capture->events);
	bpf_switches_free(capture->bpf_switches);
	bpf_source_free(capture->bpf);
	frame_sample_match_done(&capture->matches);
	sample_periods_done(&capture->periods);
	reader_affinity_end(&capture->affinity);
	task_set_done(&capture->wanted);
	accounts_done(&capture->accounts);
	run_times_done(&capture->run_times);
	own_periods_done(&capture->own_periods);
	merge_done(&capture->merge);
	perf_rings_close(&capture->rings);
	dup_events_free(capture->dup_events);
	free(capture);
}

void capture_freep(struct capture **capture)
{
	capture_free(*capture);
}

int capture_fd(const struct capture *capture)
{
	if (capture->agent)
		return agent_source_fd(capture->agent);
	return capture->poller ? poller_fd(capture->poller) : capture->rings.epoll_fd;
}

/* The remaining events, the clock of waits or the poller's, do not belong to single samples. */
int capture_watch(struct capture *capture, int epoll_fd, uint32_t data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = data };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, capture_fd(capture), &event) < 0)
		return -errno;
	return capture->poller || capture->agent ? 0 : perf_rings_watch(&capture->rings, epoll_fd, data);
}

void capture_explain_source(char *to, size_t n_bytes)
{
	CLEANUP(bpf_source_freep) struct bpf_source *source = NULL;
	const struct bpf_source_options options = { 0 };
	const struct perf_rings none = { .epoll_fd = -1 };

	bpf_source_explain(bpf_source_new(&none, &options, &source), to, n_bytes);
}

int capture_watch_python(struct capture *capture, pid_t pid, const struct python_layout *layout)
{
	struct python_layout complete = *layout;

	if (capture->agent)
		return agent_source_watch(capture->agent, pid, layout);
	if (!capture->bpf)
		return 0;
	complete.calls_for_new = capture->wake_on_live_read;
	return bpf_source_watch(capture->bpf, pid, &complete);
}

void capture_forget_python(struct capture *capture, pid_t pid)
{
	if (capture->bpf)
		bpf_source_forget(capture->bpf, pid);
}

void capture_note_stack(struct capture *capture, pid_t tid, uint64_t start)
{
	if (capture->bpf)
		bpf_source_set_floor(capture->bpf, tid, start - capture->events.attr.sample_stack_user);
}

void capture_forget_stack(struct capture *capture, pid_t tid)
{
	if (capture->bpf)
		bpf_source_clear_floor(capture->bpf, tid);
}

uint64_t capture_began_ns(const struct capture *capture)
{
	return capture->began_ns;
}

bool capture_has_switch_stacks(const struct capture *capture)
{
	return capture->switches.n_opened > 0;
}

int capture_switch_refusal(const struct capture *capture)
{
	return capture->switch_refusal;
}

int capture_direct_refusal(const struct capture *capture)
{
	return capture->bpf ? bpf_source_direct_refusal(capture->bpf) : -ENOSYS;
}

bool capture_has_kernel(const struct capture *capture)
{
	return !capture->poller && !capture->agent && events_have_kernel(&capture->events);
}

bool capture_rings_are_small(const struct capture *capture)
{
	return capture->rings.was_shrunk;
}

size_t capture_ring_bytes(const struct capture *capture)
{
	return capture->rings.ring_bytes;
}

static unsigned format_of(const struct capture *capture)
{
	return events_format(&capture->events) | (capture->switches.n_opened > 0 ? RECORD_TELLS_SWITCHES : 0);
}

/* Whether another event has reported, or will report, the same. */
static bool is_duplicate(struct capture *capture, const struct perf_event_header *record)
{
	struct record_origin origin;
	uint64_t redundant;

	if (!capture->dup_events || record_origin(record, &origin) < 0)
		return false;
	/* Describes the whole ring, whichever event carried it. Two stacks of one switch do no harm: the second replaces
	 * the first. */
	if (record->type == PERF_RECORD_LOST || (record->type == PERF_RECORD_SAMPLE && capture->switches.n_opened > 0 &&
						 origin.period <= RECORD_MAX_SWITCHES))
		return false;
	if (events_is_retired(&capture->events, origin.id))
		return true;
	redundant = dup_events_note(capture->dup_events, origin.tid, origin.cpu, origin.id);
	if (redundant == 0)
		return false;
	if (!events_retire(&capture->events, redundant)) {
		/* Two first events: the TID was another thread's before. */
		dup_events_forget(capture->dup_events, origin.tid, origin.cpu);
		return false;
	}
	/* The event that is retired now has reported the time up to this sample. */
	return origin.id == redundant || record->type == PERF_RECORD_SAMPLE;
}

static void forget_thread(struct capture *capture, pid_t tid)
{
	for (size_t i = 0; i < capture->rings.n; i++)
		dup_events_forget(capture->dup_events, tid, capture->rings.ring[i].cpu);
}

/* TIDs are reused: forget the former thread. */
static void follow_threads(struct capture *capture, const struct capture_event *event)
{
	if (!capture->dup_events)
		return;
	if (event->type == CAPTURE_FORK || event->type == CAPTURE_EXIT ||
	    (event->type == CAPTURE_COMM && event->comm.is_exec))
		forget_thread(capture, event->tid);
	else if (event->type == CAPTURE_LOST)
		dup_events_forget_all(capture->dup_events);
}

/* A new process: follow the target's children; a reused PID is another process. */
static int judge_fork(struct capture *capture, const struct capture_event *event)
{
	int r;

	if (capture->no_children || !task_set_has(&capture->wanted, event->fork.parent_pid)) {
		task_set_remove(&capture->wanted, event->pid);
		bpf_source_unjudge(capture->bpf, event->pid);
		return 0;
	}
	r = task_set_add(&capture->wanted, event->pid);
	if (r < 0)
		return r;
	(void)bpf_source_judge(capture->bpf, event->pid, true);
	return 1;
}

/* Until then the child runs this program. */
static int await_exec(struct capture *capture, const struct capture_event *event)
{
	if (event->type != CAPTURE_COMM || !event->comm.is_exec)
		return 0;
	capture->awaits_exec = 0;
	return task_set_add(&capture->wanted, event->pid);
}

/* PID 0 is an idle processor, and in map `judged` 0 means BPF_PAUSED. A thread that ends may have -1. */
static void leave_out(struct capture *capture, pid_t pid)
{
	if (pid > 0)
		(void)bpf_source_judge(capture->bpf, pid, false);
}

/*
 * With system-wide events: whether an event belongs to a recorded process. The BPF program passes all samples of a
 * process until this function has decided, which knows its fork by then. So no child is missed, and few samples of
 * others arrive.
 */
static int is_wanted(struct capture *capture, const struct capture_event *event)
{
	bool wanted = task_set_has(&capture->wanted, event->pid);

	if (capture->awaits_exec != 0 && event->pid == capture->awaits_exec)
		return await_exec(capture, event);

	switch (event->type) {
	case CAPTURE_LOST:
	case CAPTURE_THROTTLE:
		return 1;
	case CAPTURE_FORK:
		return event->pid == event->fork.parent_pid ? wanted : judge_fork(capture, event);
	case CAPTURE_SAMPLE:
		if (!wanted)
			leave_out(capture, event->pid);
		/* The map `judged` may have been full. */
		return wanted && (capture->paused_ns == 0 || event->time_ns < capture->paused_ns);
	case CAPTURE_SWITCH:
		/* The exit of a thread that leaves may have been reported before, and its TID is no longer known. */
		if (!wanted && !event->change.is_out)
			leave_out(capture, event->pid);
		return wanted;
	case CAPTURE_EXIT:
		if (!wanted && event->pid == event->tid)
			bpf_source_unjudge(capture->bpf, event->pid);
		return wanted;
	default:
		return wanted;
	}
}

/* If the events include children, recorded or not (events.c). */
static bool is_of_child(const struct capture *capture, const struct capture_event *event)
{
	return capture->no_children && event->type != CAPTURE_LOST && event->type != CAPTURE_THROTTLE &&
	       !task_set_has(&capture->wanted, event->pid);
}

static void count(struct capture *capture, const struct capture_event *event)
{
	if (event->type == CAPTURE_SAMPLE) {
		capture->counts.samples++;
		unsampled_count(capture, &event->sample);
	} else if (event->type == CAPTURE_THROTTLE)
		capture->counts.throttled++;
	else if (event->type == CAPTURE_LOST)
		capture->lost_records += event->lost.n;
}

/* Whether it is a record of Python frames, which waits for its sample; else *ret: what waited for this one. */
static bool pair(struct capture *capture, const struct perf_event_header *record, const struct python_record **ret)
{
	const struct perf_ring *ring = capture->merge.current;
	size_t i = (size_t)(ring - capture->rings.ring);

	if (record_is_python(record)) {
		frame_sample_match_keep(&capture->matches, i, ring->n_malformed, record);
		return true;
	}
	*ret = frame_sample_match_take(&capture->matches, i, ring->n_malformed, record);
	return false;
}

/* The number of events that a sample represents, if its record does not contain it, or a wrong one. */
static int weigh(struct capture *capture, struct sample *sample)
{
	const struct perf_event_attr *attr = &capture->events.attr;

	if (capture->times_runs && !capture->events.system_wide)
		return run_times_weigh(&capture->run_times, sample, &sample->weight);
	sample->weight = events_weight(&capture->events) ?: sample->weight;
	/* Only samples of recorded processes arrive, so the values of others are unknown. */
	if (!attr->freq || capture->events.system_wide ||
	    (attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT))
		return 0;
	return sample_periods_take(&capture->periods, sample->tid, sample->cpu, sample->weight, &sample->weight);
}

/* Only inherited events are swapped. */
static void keep_periods(struct capture *capture, const struct capture_event *event)
{
	if (capture->events.system_wide || capture->no_children)
		return;
	if (event->type == CAPTURE_FORK && event->pid != event->fork.parent_pid)
		own_periods_forked(&capture->own_periods, event->fork.parent_tid);
	else if (event->type == CAPTURE_EXIT)
		own_periods_ended(&capture->own_periods, event->tid);
}

static void forget_paces(struct capture *capture, const struct capture_event *event)
{
	if (capture->events.attr.freq && (event->type == CAPTURE_FORK || event->type == CAPTURE_EXIT))
		for (size_t i = 0; i < capture->rings.n; i++)
			sample_periods_forget(&capture->periods, event->tid, capture->rings.ring[i].cpu);
}

static void note_processor(struct capture *capture, const struct sample *sample)
{
	if (!capture->reads_at_once)
		return;
	if (!capture->affinity.is_on)
		reader_affinity_begin(&capture->affinity);
	reader_affinity_note(&capture->affinity, sample->cpu, monotonic_ns() - sample->time_ns);
}

/* Report the end of all waits, once. Returns whether ret was filled. */
static bool take_stop(struct capture *capture, struct capture_event *ret)
{
	if (capture->clock < 0 || capture->stopped_ns == 0)
		return false;
	*ret = (struct capture_event){ .type = CAPTURE_END, .time_ns = capture->stopped_ns };
	capture->stopped_ns = 0;
	capture->has_ended = true;
	return true;
}

/* Whether an event happened after the end of all waits, while events were stopped one after another. */
static bool is_too_late(const struct capture *capture, const struct capture_event *event)
{
	return capture->has_ended && event->type != CAPTURE_LOST && event->type != CAPTURE_THROTTLE;
}

/* A sample from before the recording, while maps were read. */
static bool is_early(const struct capture *capture, const struct capture_event *event)
{
	return event->type == CAPTURE_SAMPLE && event->sample.time_ns < capture->since_ns;
}

/* Returns 1 if ret was filled, else 0; -ENOMEM. */
static int take_record(struct capture *capture, const struct perf_event_header *record, struct capture_event *ret)
{
	const struct python_record *python = NULL;
	int r;

	if (capture->bpf && pair(capture, record, &python))
		return 0;
	if (is_duplicate(capture, record))
		return 0;
	r = record_decode(record, format_of(capture), ret);
	if (r < 0)
		capture->counts.malformed++;
	if (r <= 0 ||
	    ((capture->events.system_wide || capture->switches.system_wide) && is_wanted(capture, ret) <= 0) ||
	    is_of_child(capture, ret))
		return 0;
	r = unsampled_note(capture, ret);
	if (r < 0 || (ret->type == CAPTURE_SWITCH && capture->hides_switches))
		return r;
	if (is_too_late(capture, ret))
		return 0;
	if (ret->type == CAPTURE_SAMPLE) {
		ret->sample.python = python;
		note_processor(capture, &ret->sample);
		r = weigh(capture, &ret->sample);
		if (r < 0 || is_early(capture, ret))
			return r;
	}
	count(capture, ret);
	follow_threads(capture, ret);
	keep_periods(capture, ret);
	forget_paces(capture, ret);
	unsampled_put_before(capture, ret);
	return 1;
}

/* All records have been read. Returns whether ret was filled, for the last time. */
static bool take_end(struct capture *capture, struct capture_event *ret)
{
	if (reader_affinity_wants(&capture->affinity))
		reader_affinity_go(&capture->affinity);
	switches_clock_served(capture->clock);
	if (!capture->stopped) {
		accounts_read_sometimes(&capture->accounts, monotonic_ns());
		stolen_read_sometimes(&capture->stolen, monotonic_ns());
	} else if (unsampled_take(capture, ret))
		return true;
	return take_stop(capture, ret);
}

/* Whether the BPF program at the switch reported the next event, and not perf. */
static bool is_switch_next(struct capture *capture)
{
	uint64_t switched_ns, recorded_ns;

	return capture->bpf_switches && switch_rings_time(bpf_switches_rings(capture->bpf_switches), &switched_ns) &&
	       (!merge_time(&capture->merge, &recorded_ns) || switched_ns < recorded_ns);
}

/* Returns whether ret was filled. */
static bool take_switch(struct capture *capture, struct capture_event *ret)
{
	switch_rings_take(bpf_switches_rings(capture->bpf_switches), ret);
	if (ret->type == CAPTURE_LOST) /* already counted */
		return true;
	return !is_too_late(capture, ret) && is_wanted(capture, ret) > 0;
}

/* Whether the next event of this round, if any, arrived while events were being stopped. */
static bool is_stop_next(struct capture *capture)
{
	uint64_t switched_ns = UINT64_MAX, recorded_ns = UINT64_MAX;
	bool any;

	if (capture->stopped_ns == 0)
		return false;
	any = merge_time(&capture->merge, &recorded_ns);
	if (capture->bpf_switches)
		any |= switch_rings_time(bpf_switches_rings(capture->bpf_switches), &switched_ns);
	return any && MIN(switched_ns, recorded_ns) > capture->stopped_ns;
}

/* Takes the next record of this round. Returns as take_record(); *ret_any: there was one. */
static int take_next(struct capture *capture, struct capture_event *ret, bool *ret_any)
{
	const struct perf_event_header *record;

	*ret_any = true;
	if (is_stop_next(capture) && take_stop(capture, ret))
		return 1;
	if (is_switch_next(capture))
		return take_switch(capture, ret);
	record = merge_next(&capture->merge);
	*ret_any = record != NULL;
	return record ? take_record(capture, record, ret) : 0;
}

/* Read the clock before the ring heads: see merge.c. Returns whether any record waits. */
static bool begin_round(struct capture *capture)
{
	uint64_t now_ns = capture->stopped ? UINT64_MAX : monotonic_ns();
	bool any = merge_begin(&capture->merge, now_ns);

	if (capture->bpf_switches) {
		any |= switch_rings_begin(bpf_switches_rings(capture->bpf_switches), now_ns);
		if (!capture->stopped)
			bpf_switches_tend(capture->bpf_switches, now_ns);
	}
	return any;
}

/* Between two ticks: daemons that are now children of this process. */
static int tend_orphans(struct capture *capture)
{
	pid_t pid;
	int r = 0;

	while (r >= 0 && (pid = poller_take_orphan(capture->poller)) != 0)
		r = accounts_add_orphan(&capture->accounts, pid);
	if (r >= 0)
		accounts_reap(&capture->accounts);
	return r;
}

static int next_polled(struct capture *capture, struct capture_event *ret)
{
	int r = poller_next(capture->poller, ret);

	if (r == 0)
		r = tend_orphans(capture);
	if (r == 0)
		return take_end(capture, ret);
	if (r > 0 && ret->type == CAPTURE_SAMPLE)
		unsampled_count(capture, &ret->sample);
	return r;
}

static int next_of_agents(struct capture *capture, struct capture_event *ret)
{
	int r;

	do
		r = agent_source_next(capture->agent, ret);
	while (r > 0 && is_early(capture, ret));
	if (r == 0)
		return take_end(capture, ret);
	if (r > 0 && ret->type == CAPTURE_SAMPLE)
		unsampled_count(capture, &ret->sample);
	return r;
}

int capture_begin(struct capture *capture)
{
	int r;

	if (!capture->is_accounted || capture->poller || capture->paused_ns != 0)
		return 0;
	r = unsampled_restart(capture);
	capture->lost_before = events_lost(&capture->events);
	capture->matches.began_ns = monotonic_ns();
	return r;
}

int capture_next(struct capture *capture, struct capture_event *ret)
{
	int n_rounds = 0;

	if (capture->agent)
		return next_of_agents(capture, ret);

	if (capture->poller)
		return next_polled(capture, ret);
	if (capture->has_pending) {
		capture->has_pending = false;
		*ret = capture->pending;
		return 1;
	}
	while (n_rounds < MAX_ROUNDS) {
		bool any;
		int r = take_next(capture, ret, &any);

		if (r != 0)
			return r;
		if (any) {
			n_rounds = 0;
			continue;
		}
		if (!begin_round(capture))
			return take_end(capture, ret);
		n_rounds++;
	}
	return 0;
}

bool capture_is_descheduled(const struct capture *capture, const struct sample *sample)
{
	const struct descheduled_query question = { .tid = sample->tid,
						    .time_ns = sample->time_ns,
						    .current = capture->merge.current };

	return capture->reads_at_once && question.current &&
	       descheduled_stack_is_unchanged(sample) && descheduled_since(capture->rings.ring, capture->rings.n, &question);
}

bool capture_peek(const struct capture *capture, struct sample *ret)
{
	const struct perf_event_header *record = merge_peek(&capture->merge, 0);
	struct capture_event event;

	if (record && capture->bpf && record_is_python(record)) /* it precedes its sample */
		record = merge_peek(&capture->merge, record->size);
	if (!record || record->type != PERF_RECORD_SAMPLE || record_decode(record, format_of(capture), &event) <= 0)
		return false;
	*ret = event.sample;
	return true;
}

/* With system-wide events, forks alone tell which process is whose child: keep those events on. */
void capture_pause(struct capture *capture)
{
	if (capture->paused_ns != 0)
		return;
	capture->paused_ns = monotonic_ns();
	unsampled_pause(capture);
	if (capture->poller)
		poller_pause(capture->poller);
	else if (capture->agent)
		agent_source_pause(capture->agent);
	else if (capture->events.system_wide)
		(void)bpf_source_judge(capture->bpf, BPF_PAUSED, true);
	else
		events_pause(&capture->events);
}

int capture_resume(struct capture *capture)
{
	if (capture->paused_ns == 0)
		return 0;
	capture->paused_ns = 0;
	run_times_forget(&capture->run_times);
	unsampled_resume(capture);
	if (capture->poller)
		return poller_resume(capture->poller);
	if (capture->agent) {
		agent_source_resume(capture->agent);
		return 1;
	}
	if (capture->events.system_wide) {
		bpf_source_unjudge(capture->bpf, BPF_PAUSED);
		return 0;
	}
	events_resume(&capture->events);
	if (capture->dup_events)
		dup_events_forget_all(capture->dup_events); /* TIDs may have been reused */
	return 1;
}

/*
 * The time comes first: events stop one after another, and processors see the end of a BPF program at different times. Of
 * a thread that changes processors meanwhile, a switch would be missing.
 */
static void stop_events(struct capture *capture)
{
	capture->stopped_ns = monotonic_ns();
	events_stop(&capture->events);
	events_stop(&capture->switches);
	if (capture->bpf_switches)
		bpf_switches_stop(capture->bpf_switches);
}

void capture_stop(struct capture *capture)
{
	if (capture->poller)
		poller_stop(capture->poller);
	else if (capture->agent)
		agent_source_stop(capture->agent);
	else if (!capture->stopped)
		stop_events(capture);
	if (capture->bpf)
		bpf_source_stop(capture->bpf);
	reader_affinity_end(&capture->affinity);
	if (!capture->stopped)
		unsampled_stop(capture);
	capture->reads_at_once = false;
	capture->stopped = true;
}

void capture_read_counts(struct capture *capture, struct capture_counts *ret)
{
	struct capture_counts counts = capture->counts;

	if (capture->poller) {
		poller_read_counts(capture->poller, ret);
		ret->sampled_ns = counts.sampled_ns;
		ret->used_ns = capture->used_ns;
		return;
	}
	if (capture->agent) {
		agent_source_read_counts(capture->agent, ret);
		ret->sampled_ns = counts.sampled_ns;
		ret->used_ns = capture->used_ns;
		return;
	}
	counts.lost = events_count_losses(&capture->events)
			      ? events_lost(&capture->events) - capture->lost_before + events_lost(&capture->switches)
			      : capture->lost_records;
	if (capture->bpf_switches)
		counts.lost += switch_rings_lost(bpf_switches_rings(capture->bpf_switches));
	for (size_t i = 0; i < capture->rings.n; i++)
		counts.malformed += capture->rings.ring[i].n_malformed;
	counts.malformed += capture->matches.malformed;
	counts.unpaired = capture->matches.unpaired;
	counts.used_ns = capture->used_ns;
	counts.n_events = capture->events.n_opened + capture->switches.n_opened;
	counts.n_threads = capture->events.n_threads;
	*ret = counts;
}
