/* SPDX-License-Identifier: MIT */
/* accounts.h - the CPU time of what is sampled by the kernel's own account, for samples to be compared with. Private.
 *
 * What a process and its children used is told by the kernel: exactly of a child of ours that has ended, and in
 * steps of a clock tick of any other. A process that has ended and was waited for by its parent stands in the
 * parent's account.
 */
#ifndef PROBING_CAPTURE_ACCOUNTS_H
#define PROBING_CAPTURE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct account {
	pid_t pid;
	uint64_t base_ns; /* used before it counted */
	uint64_t now_ns;  /* used up to the last reading, base_ns included */
	bool is_exact;    /* now_ns is no multiple of a clock tick */
	bool has_ended;   /* now_ns is what it used in all */
	bool is_orphan;   /* a child of ours that nobody waits for but accounts_reap() */
};

/* All zero is empty. */
struct accounts {
	struct account *items;
	size_t n, allocated;
	size_t n_orphans;   /* of the items */
	bool no_children;   /* what children used does not count */
	uint64_t before_ns; /* used in former stretches, see accounts_pause() */
	uint64_t read_ns;   /* CLOCK_MONOTONIC, when they were read last */
};
void accounts_done(struct accounts *accounts);

/* accounts_add - count what a process uses from now on, with the children that it waits for. Errors: -ENOMEM. */
int accounts_add(struct accounts *accounts, pid_t pid);

/* accounts_add_born - the same of one whose whole life counts, unless it is there already. Errors: -ENOMEM. */
int accounts_add_born(struct accounts *accounts, pid_t pid);

/* accounts_add_orphan - the same of one that has just become a child of this process. Errors: -ENOMEM. */
int accounts_add_orphan(struct accounts *accounts, pid_t pid);

/* Orphans that have ended are waited for, as init would, and what they used in all is known. */
void accounts_reap(struct accounts *accounts);

/* Read all of them; one that is gone keeps what was read last. */
void accounts_read(struct accounts *accounts);

/* accounts_read_sometimes - the same, if the last time was some seconds ago: of one that ends unseen no more than these are missing. */
void accounts_read_sometimes(struct accounts *accounts, uint64_t now_ns);

/* What is used from here on does not count, until accounts_resume(). */
void accounts_pause(struct accounts *accounts);
void accounts_resume(struct accounts *accounts);

/* Nanoseconds of CPU time up to the last reading; one account's share in it. */
uint64_t accounts_sum(const struct accounts *accounts);
uint64_t account_used(const struct account *account);

/* How far off the sum may be, since times are told in clock ticks: nanoseconds. */
uint64_t accounts_resolution(const struct accounts *accounts);

#endif
