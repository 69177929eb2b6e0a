/* SPDX-License-Identifier: MIT */
/* agent_source.h - samples that agents inside the processes take (src/agent/sampler.h). Private.
 *
 * Signals by CPU clocks interrupt the threads, and the agent writes registers, stack bytes and Python frames into a ring
 * that this reads. Nothing but the agent's socket is needed: no perf_event_open, ptrace, bpf or process_vm_readv.
 * Forks, execs and ends of threads are found by the poller; a child is sampled once it has an agent of its own.
 */
#ifndef PROBING_CAPTURE_AGENT_SOURCE_H
#define PROBING_CAPTURE_AGENT_SOURCE_H

#include "src/capture/capture.h"

struct agent_source;

/*
 * agent_source_new - sample running processes, and children that they start from now on.
 * @options: with connect_agent. @ret: ended with agent_source_free().
 * Errors: -ENOTCONN one has no agent, or it cannot be reached; -EBUSY its agent refuses (options->agent_why has the
 *         reason); -ESRCH all have ended; -EBADMSG an answer makes no sense; -ENOMEM; those of poller_attach().
 */
int agent_source_new(const struct capture_options *options, const pid_t *pids, size_t n_pids,
		     struct agent_source **ret);
void agent_source_free(struct agent_source *source);

/* agent_source_add - sample one more, as soon as it has an agent. Errors: -ESRCH, -ENOMEM. */
int agent_source_add(struct agent_source *source, pid_t pid);

/* Readable when agent_source_next() is to be called again. Borrowed. */
int agent_source_fd(const struct agent_source *source);

/* agent_source_next - as capture_next(). */
int agent_source_next(struct agent_source *source, struct capture_event *ret);

/* agent_source_watch - the layout of a process' interpreter, as capture_watch_python(). -ESRCH: it has no agent. */
int agent_source_watch(struct agent_source *source, pid_t pid, const struct python_layout *layout);

/* Without samples until agent_source_resume(), and without timers in the processes. */
void agent_source_pause(struct agent_source *source);
void agent_source_resume(struct agent_source *source);

/* No more samples; those that are in the rings can be read. */
void agent_source_stop(struct agent_source *source);

void agent_source_read_counts(const struct agent_source *source, struct capture_counts *ret);

#endif
