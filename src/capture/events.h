/* SPDX-License-Identifier: MIT */
/* events.h - the perf events that sample the target. */
#ifndef PROBING_CAPTURE_EVENTS_H
#define PROBING_CAPTURE_EVENTS_H

#include <linux/perf_event.h>

#include "src/capture/bpf.h"
#include "src/capture/capture.h"
#include "src/capture/perf_ring.h"
#include "src/capture/tasks.h"

struct event_set {
	const struct perf_rings *rings; /* borrowed */
	const struct bpf_source *bpf;   /* borrowed; runs at each sample; NULL: nothing does */
	struct perf_event_attr attr;
	int *fds;
	size_t n_fds, fds_allocated;
	/* Opened on threads that may have inherited events; in order of id. */
	struct late_event {
		uint64_t id;
		int fd; /* -1: retired */
	} * late;
	size_t n_late, late_allocated;
	struct task_set covered; /* threads with events */
	size_t n_opened, n_threads;
	bool is_clock;    /* periods are nanoseconds */
	bool in_kernel;   /* the event is there only: not to be given up */
	bool is_paused;   /* events are opened switched off, and an exec does not switch them on */
	bool at_switch;   /* samples threads that leave: without the right to see the kernel there is no use in it */
	bool system_wide; /* one event a processor, which samples all processes: for each event too many threads */
};

/*
 * events_init - choose the kernel's attributes; opens nothing.
 * @rings: borrowed, outlive the set. Ended with events_done().
 * Errors: -EINVAL options out of range.
 */
int events_init(struct event_set *set, const struct capture_options *options, const struct perf_rings *rings);
void events_done(struct event_set *set);

/*
 * events_wake_rarely - wake the reader some ten times a second only, however often is sampled, as
 * far as the rings have room. To be called when they are open, and before any event is; for where something else wakes
 * it when it must be.
 */
void events_wake_rarely(struct event_set *set);

/* events_count_threads - of all of these processes; ended ones count 0. -ESRCH: all have ended. */
int events_count_threads(const pid_t *pids, size_t n_pids, size_t *ret);
/*
 * events_attach_all - sample every thread of these processes. Errors as capture_attach().
 * If that takes too many descriptors, and a BPF program can drop the samples of others, the events cover all
 * processes instead: system_wide.
 */
int events_attach_all(struct event_set *set, const pid_t *pids, size_t n_pids);

/*
 * events_attach_wide - sample all processes from the start; the BPF program (required)
 * drops samples of others. Costs less if threads switch often: the kernel switches the events of a
 * thread, too.
 * @n_threads: for the report. Errors: as capture_attach(); then nothing is open.
 */
int events_attach_wide(struct event_set *set, size_t n_threads);

/*
 * events_add - sample every thread of one more process. Not for a set with system_wide.
 * Its threads may have inherited events of others: then new events are redundant. Errors: as events_cover(); -ESRCH.
 */
int events_add(struct event_set *set, pid_t pid);

/*
 * events_cover - open the events of one thread.
 * @late: it may have inherited some already.
 * Returns 0 also where the thread has ended in the meantime.
 */
int events_cover(struct event_set *set, pid_t tid, bool late);

/* events_launch - sample a process from its next exec on. */
int events_launch(struct event_set *set, pid_t child);

void events_stop(struct event_set *set);

/*
 * events_pause, events_resume - switch all off and on, including inherited ones; new children
 * inherit the state, too. An event that is off reports nothing: neither samples nor mappings.
 */
void events_pause(struct event_set *set);
void events_resume(struct event_set *set);

bool events_have_kernel(const struct event_set *set);
/* The format of samples, for record_decode(); and the weight of a sample without one, 0: samples have weights. */
unsigned events_format(const struct event_set *set);
uint64_t events_weight(const struct event_set *set);
/* Whether the kernel counts losses per event; if not, only LOST records report them. */
bool events_count_losses(const struct event_set *set);
/* Records lost because the rings were full, by the kernel's count. */
uint64_t events_lost(const struct event_set *set);

/* CPU time by per-task clocks, including inherited ones: nanoseconds. Exact when they are stopped. */
uint64_t events_used(const struct event_set *set);

/* Close a late event that is not needed. False: there is no such late event. */
bool events_retire(struct event_set *set, uint64_t id);
bool events_is_retired(const struct event_set *set, uint64_t id);

#endif
