/* SPDX-License-Identifier: MIT */
/* target.h - the processes that are sampled: which ones are meant, their start and end, commands from outside meanwhile,
 * and the loop that waits for all of these.
 *
 * Nothing here prints: the verbs turn errors into sentences (src/cli/target_errors.h).
 */
#ifndef PROBING_TARGET_H
#define PROBING_TARGET_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/glob_list.h"
#include "base/place.h"

/* ---- Selection ---- */

/* Selection by the user. All zero: none. */
struct target_options {
	pid_t *pids;
	size_t n_pids, pids_allocated;
	struct glob_list comms;    /* globs of a process' name, or of its executable's */
	struct glob_list cmdlines; /* texts and globs of a part of a command line */
	struct glob_list users;    /* names and numbers */
	bool descendants;          /* those that are running already, too */
	bool wait;                 /* for a first one, where names and users find none */
	unsigned *uids;            /* of users, once they have been looked up */
};
void target_options_done(struct target_options *options);

/* Whether there is any selection; and one that later processes may match. */
bool targets_are_asked_for(const struct target_options *options);
bool targets_are_matched(const struct target_options *options);

/* One that was found and is left out. */
struct target_refusal {
	pid_t pid;
	int error; /* -ESRCH there is none; -EPERM and the like */
	char name[32];
};

struct targets {
	pid_t *pids; /* in the order of the options and the search, each once */
	size_t n, allocated;
	struct target_refusal *refused;
	size_t n_refused, refused_allocated;
	const char *unknown_user; /* of the options; NULL: there is none */
};
void targets_done(struct targets *targets);

/*
 * targets_find - the processes as of now.
 * Skips kernel threads, ended processes and this one, unless selected by number. A single one selected
 * by its number is not checked: its recorder reports problems.
 * @waiting: called once, before it waits for a first process.
 * @ret:     ended with targets_done(), after an error, too: it holds the reasons.
 * Errors: -ESRCH no process matches; -EPERM none of them may be sampled (refused); -EINVAL there is no such user
 * (unknown_user); -EINTR a signal ended the wait; -ENOMEM; what opening /proc reports.
 */
int targets_find(struct target_options *options, void (*waiting)(void), struct targets *ret);

/* targets_match - whether a process matches by its name, command line or user; after targets_find(). */
bool targets_match(const struct target_options *options, pid_t pid);
/* targets_add - add one, unless it is there already. -ENOMEM. */
int targets_add(struct targets *targets, pid_t pid);
/* targets_add_descendants - all that they have started, and those have, as of now. Negative errno. */
int targets_add_descendants(struct targets *targets);

/* targets_add_children - the children that a process has now, and none of theirs. Negative errno. */
int targets_add_children(struct targets *targets, pid_t pid);

/* ---- Processes that start later ---- */

struct matching;

/* matching_new - for processes that start from now on. @options: borrowed. -ENOMEM. */
int matching_new(const struct target_options *options, struct matching **ret);
void matching_free(struct matching *matching);

/*
 * matching_look - find new processes since the last call. Each process is judged in a few calls, because it may exec
 * another program; afterwards it costs only its line in /proc.
 * @ret: matching ones that may be sampled; the caller ends it with targets_done(). May contain ones found before.
 * Errors: -ENOMEM; what opening /proc reports.
 */
int matching_look(struct matching *matching, struct targets *ret);

/* ---- Their end ---- */

struct pidfd_set {
	int epoll; /* readable when a process has ended; -1: not open */
	int *pidfds;
	size_t n, n_left;
	/* Where pidfd_open(2) is refused or missing, folders of /proc are open instead, and looked at by a timer. */
	bool is_polled;
	int timer; /* if is_polled */
};

/*
 * pidfd_set_open - watch processes.
 * @ret: ended with pidfd_set_done(). Errors: -ESRCH all have ended; -ENOMEM; what epoll, pidfd_open(2) and timerfd_create(2) report.
 */
int pidfd_set_open(const pid_t *pids, size_t n_pids, struct pidfd_set *ret);
void pidfd_set_done(struct pidfd_set *ends);

/* pidfd_set_add - one more. Errors: -ESRCH it has ended; as pidfd_set_open(). */
int pidfd_set_add(struct pidfd_set *ends, pid_t pid);

/* Call it when epoll is readable: whether all have ended. */
bool pidfd_set_all(struct pidfd_set *ends);

/* ---- A command that record or top starts ---- */

struct child {
	pid_t pid;
	int gate;    /* written to: the child may exec */
	int failure; /* read from: errno of a failed exec; closed by a successful one */
};

/*
 * child_find - whether a command can be found and run, as execvp(3) would.
 * Errors: -ENOENT; -EACCES not executable.
 */
int child_find(const char *command);

/*
 * child_fork - start a process that waits right before its exec.
 * @mask: its signal mask.
 * Errors: what pipe2(2) and fork(2) report.
 */
int child_fork(char **argv, const sigset_t *mask, struct child *ret);

/* Let it exec. Returns 0 once the exec has succeeded, else its negative errno. */
int child_release(struct child *child);

/* Give up before the release: it ends, unseen. */
void child_abandon(struct child *child);

/* ---- Commands through a FIFO ---- */

enum control_command {
	CONTROL_PAUSE,
	CONTROL_RESUME,
	CONTROL_FLUSH,
	CONTROL_STOP,
	CONTROL_STATUS,
	CONTROL_UNKNOWN, /* anything else */
};

enum { CONTROL_MAX_LINE = 256 };

/* State of the next line. Starts as zeros. */
struct control_line {
	char text[CONTROL_MAX_LINE];
	size_t n;
	bool is_cut; /* too long: the rest is skipped */
};

/*
 * control_line_take - add one character.
 * @ret: the command, when the line is complete; its text is in the line until the next call, with
 *       terminal controls made harmless.
 * Returns whether it is complete; false for an empty line.
 */
bool control_line_take(struct control_line *line, char c, enum control_command *ret);

struct control {
	int fd, reply_fd; /* not above 0: none; so zeros are a control that there is none of */
	char *path, *reply_path;
	const char *failed; /* of these, the one that control_open() could not open; NULL: none */
	struct control_fifo {
		struct place place;
		struct stat st;
		bool made; /* by us, so that we remove it */
	} command, reply;
	struct control_line line;
};

/*
 * control_open - open the FIFOs, and create missing ones, for our user alone. Existing ones must belong
 * to our user, and must not be writable by everybody.
 * @paths: "CONTROL" or "CONTROL,REPLY".
 * @ret:   must not move; ended with control_close(), after an error, too.
 * Errors of @paths: -ENOMEM; -EINVAL both are the same. Of the FIFO @ret->failed: -ENXIO and -EISDIR it is none;
 * -EPERM everybody may write to it; as place_find() and open(2).
 */
int control_open(const char *paths, struct control *ret);

/* Removes FIFOs that control_open() created, if they still exist. Zeros the struct. */
void control_close(struct control *control);

/*
 * control_next - the next command that has come.
 * @ret_line: as it was written, for messages; borrowed until the next call.
 * Returns whether there is one. Empty lines are none. Never waits.
 */
bool control_next(struct control *control, enum control_command *ret, const char **ret_line);

/* One line of answer, if there is a reply FIFO; dropped if its reader is too far behind. */
void control_reply(const struct control *control, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Event loop (epoll(7), timerfd_create(2), signalfd(2)) ---- */

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
