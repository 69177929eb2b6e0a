/* SPDX-License-Identifier: MIT */
/* event_loop.h - waits for descriptors, timers and signals, and calls the function of each: for record and top.
 *
 * Source: epoll(7), timerfd_create(2), signalfd(2).
 */
#ifndef PROBING_CLI_EVENT_LOOP_H
#define PROBING_CLI_EVENT_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

struct capture;

enum { EVENT_SOURCES = 8 };

/* @data: of the loop. A function that fails remembers its error there and calls event_loop_end(). */
typedef void event_serve(void *data);
typedef void event_take_signal(void *data, const struct signalfd_siginfo *info);

struct event_loop {
	int epoll;
	bool is_over; /* event_loop_end() was called */
	void *data;
	unsigned n_sources;
	struct event_source {
		int fd; /* -1: not watched any more */
		bool is_owned, is_timer;
		event_serve *serve;
		event_take_signal *take_signal; /* of signals, instead of serve */
	} sources[EVENT_SOURCES];
};

/* event_loop_init - an empty loop. @data: borrowed. Ended with event_loop_done() in any case. Errors: of epoll_create1(2). */
int event_loop_init(struct event_loop *loop, void *data);
void event_loop_done(struct event_loop *loop);

/*
 * event_loop_watch - call a function each time a descriptor is readable.
 * @fd:       a negative errno is returned, so that the result of an open function can be passed.
 * @is_owned: the loop closes it, also if this fails.
 * Returns the number of the source; negative errno: that of @fd, or of epoll_ctl(2).
 */
int event_loop_watch(struct event_loop *loop, int fd, bool is_owned, event_serve *serve);

/* event_loop_watch_capture - the same for the records of a capture; at most one call for all rings that have some. */
int event_loop_watch_capture(struct event_loop *loop, struct capture *capture, event_serve *serve);

/* event_loop_watch_signals - call a function for each of these signals, which the caller has blocked. */
int event_loop_watch_signals(struct event_loop *loop, const sigset_t *signals, event_take_signal *take);

/*
 * event_loop_watch_timer - call a function after first_ns, then every_ns; nanoseconds of CLOCK_MONOTONIC.
 * @first_ns: 0: the timer is not armed yet. @every_ns: 0: once.
 * Returns as event_loop_watch().
 */
int event_loop_watch_timer(struct event_loop *loop, uint64_t first_ns, uint64_t every_ns, event_serve *serve);

/* event_loop_set_timer - arm or, with zeros, disarm a timer. Errors: of timerfd_settime(2). */
int event_loop_set_timer(struct event_loop *loop, unsigned source, uint64_t first_ns, uint64_t every_ns);

/* event_loop_unwatch - never call the function of a source again. */
void event_loop_unwatch(struct event_loop *loop, unsigned source);

/* event_loop_run - serve until event_loop_end() is called. Errors: of epoll_wait(2). */
int event_loop_run(struct event_loop *loop);

/* event_loop_end - event_loop_run() returns after the function that runs now; before, it serves nothing. */
void event_loop_end(struct event_loop *loop);

#endif
