/* streams.h - notices threads that are sampled twice. */
#ifndef PROBING_RECORD_STREAMS_H
#define PROBING_RECORD_STREAMS_H

#include <stdint.h>
#include <sys/types.h>

struct streams;

int streams_new(struct streams **ret);
void streams_free(struct streams *streams);

/*
 * streams_note - a record of this thread on this CPU came from this event.
 * @id: as the kernel numbers events, in the order in which they were opened.
 * Returns 0, or the id of an event that all threads sampled by it could do
 * without: another one, opened earlier, samples them too.
 */
uint64_t streams_note(struct streams *streams, pid_t tid, unsigned cpu, uint64_t id);

/* Forget what is known of a thread on a CPU (its number may come again), or of all. */
void streams_forget(struct streams *streams, pid_t tid, unsigned cpu);
void streams_forget_all(struct streams *streams);

#endif
