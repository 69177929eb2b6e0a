/* SPDX-License-Identifier: MIT */
/* dup_events.h - notices threads that are sampled twice. */
#ifndef PROBING_CAPTURE_DUP_EVENTS_H
#define PROBING_CAPTURE_DUP_EVENTS_H

#include <stdint.h>
#include <sys/types.h>

struct dup_events;

int dup_events_new(struct dup_events **ret);
void dup_events_free(struct dup_events *streams);

/*
 * dup_events_note - a record of this thread on this CPU came from this event.
 * @id: the kernel's number of the event, which grows in the order of opening.
 * Returns 0, or the id of an event that is redundant for all its threads: another
 * one, opened earlier, samples them too.
 */
uint64_t dup_events_note(struct dup_events *streams, pid_t tid, unsigned cpu, uint64_t id);

/* Drop a thread on a CPU (its number may be reused), or all. */
void dup_events_forget(struct dup_events *streams, pid_t tid, unsigned cpu);
void dup_events_forget_all(struct dup_events *streams);

#endif
