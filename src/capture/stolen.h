/* SPDX-License-Identifier: MIT */
/* stolen.h - time that the hypervisor takes from this machine, and that the kernel therefore accounts to no program. Private. */
#ifndef PROBING_CAPTURE_STOLEN_H
#define PROBING_CAPTURE_STOLEN_H

#include <stdint.h>

/* All zero: nothing is known, as if nothing were stolen. */
struct stolen {
	uint64_t busy, stolen;     /* clock ticks of all processors at the start; stolen ones are in busy, too */
	uint64_t read_ns, wait_ns; /* CLOCK_MONOTONIC of the last reading, and the distance to the next one */
	uint64_t busy_so_far, stolen_so_far; /* since the start, up to the last reading */
};

/* stolen_begin - count from now on. */
void stolen_begin(struct stolen *stolen);

/* stolen_read - read the account; stolen_read_sometimes(): if the last time was long ago. */
void stolen_read(struct stolen *stolen);
void stolen_read_sometimes(struct stolen *stolen, uint64_t now_ns);

/* stolen_parse - (busy, stolen) clock ticks from the text of /proc/stat. Returns 0; -EBADMSG. Source: proc_stat(5). */
int stolen_parse(const char *text, uint64_t *ret_busy, uint64_t *ret_stolen);

/*
 * stolen_leave - what the kernel accounts of run time between two context switches.
 * Nobody accounts what is stolen to a program, so all are assumed to lose the same share.
 */
uint64_t stolen_leave(const struct stolen *stolen, uint64_t run_ns);

#endif
