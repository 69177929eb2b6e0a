/* SPDX-License-Identifier: MIT */
/* accounts.h - CPU time of sampled processes by the kernel's own account, to compare with samples. Private.
 *
 * The kernel's account of a process and its children is exact for an ended child of ours. For any other it
 * has steps of a clock tick. The time of an ended process that its parent has waited for is part of the
 * parent's account. So children that are not sampled have accounts, too, which show what to leave out there.
 */
#ifndef PROBING_CAPTURE_ACCOUNTS_H
#define PROBING_CAPTURE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct account {
	pid_t pid;
	uint64_t base_ns;     /* used before it counted */
	uint64_t now_ns;      /* used up to the last reading, base_ns included */
	pid_t parent;         /* at the last reading */
	uint64_t children_ns; /* of now_ns: of the children that it has waited for */
	uint64_t moved_ns;    /* of them: from before it counted, and of those that had accounts of their own */
	uint64_t earlier_ns;  /* children_ns when accounts_read() ended last */
	bool is_left_out;     /* its time does not count: base_ns is now_ns */
	bool is_exact;        /* now_ns is no multiple of a clock tick */
	bool has_ended;       /* now_ns is its whole time */
	bool is_orphan;       /* a child of ours that only accounts_reap() waits for */
};

/* All zero is empty. */
struct accounts {
	struct account *items;
	size_t n, allocated;
	size_t n_orphans;   /* of the items */
	bool no_children;   /* do not count the time of children */
	uint64_t before_ns; /* used in former intervals, see accounts_pause() */
	uint64_t read_ns;   /* CLOCK_MONOTONIC, when they were read last */
};
void accounts_done(struct accounts *accounts);

/* accounts_add - count a process' time from now on, with the children that it waits for. Errors: -ENOMEM. */
int accounts_add(struct accounts *accounts, pid_t pid);

/* accounts_add_born - the same from its start, unless it is known already. Errors: -ENOMEM. */
int accounts_add_born(struct accounts *accounts, pid_t pid);

/*
 * accounts_leave_out - never count a process' time, nor when its parent waits for it, unless it is known already.
 * accounts_add() ends that. Errors: -ENOMEM.
 */
int accounts_leave_out(struct accounts *accounts, pid_t pid);

/* accounts_add_orphan - the same of one that has just become a child of this process. Errors: -ENOMEM. */
int accounts_add_orphan(struct accounts *accounts, pid_t pid);

/* Waits for ended orphans, as init would, and notes their whole time. */
void accounts_reap(struct accounts *accounts);

/* Read all of them; an ended one keeps its last value. */
void accounts_read(struct accounts *accounts);

/* accounts_read_sometimes - the same, if the last time was some seconds ago: of one that ends unseen no more than
 * these are missing. */
void accounts_read_sometimes(struct accounts *accounts, uint64_t now_ns);

/* Time from here on does not count, until accounts_resume(). */
void accounts_pause(struct accounts *accounts);
void accounts_resume(struct accounts *accounts);

/* Nanoseconds of CPU time up to the last reading; one account's share in it. */
uint64_t accounts_sum(const struct accounts *accounts);
uint64_t account_used(const struct account *account);

/* Maximal error of the sum, since times come in clock ticks: nanoseconds. */
uint64_t accounts_resolution(const struct accounts *accounts);

#endif
