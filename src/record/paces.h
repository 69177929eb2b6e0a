/* paces.h - how many events a sample stands for, where the kernel seeks a pace for them. Private. */
#ifndef PROBING_RECORD_PACES_H
#define PROBING_RECORD_PACES_H

#include <sys/types.h>

#include "base/id_map.h"

/* All zero is empty. */
struct paces {
	struct id_map next; /* by thread and processor: how many its next sample stands for; 0: not known */
};
void paces_done(struct paces *paces);

/*
 * paces_take - what a sample stands for.
 * @told: what the kernel says of it, which is what it will wait for next.
 * Errors: -ENOMEM.
 */
int paces_take(struct paces *paces, pid_t tid, unsigned cpu, uint64_t told, uint64_t *ret);

/* A thread's number may be another's from now on. */
void paces_forget(struct paces *paces, pid_t tid, unsigned cpu);

#endif
