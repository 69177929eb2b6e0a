/* SPDX-License-Identifier: MIT */
/* seccomp.h - the seccomp filters of a process: whether they let the agent work there. Private.
 *
 * A filter may end a process for a system call that it does not expect. The agent makes such calls, so probing runs
 * the filters itself, on each call that the agent needs, before it changes anything.
 */
#ifndef PROBING_INJECT_SECCOMP_H
#define PROBING_INJECT_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * seccomp_run - the answer of one filter to one system call.
 * @code: n instructions, which nothing is assumed about.
 * @ret:  SECCOMP_RET_*, with its data.
 * Errors: -EBADMSG the kernel would not accept this filter.
 * Source: kernel/seccomp.c (seccomp_check_filter) and net/core/filter.c (bpf_check_classic) of Linux 6.12.
 */
int seccomp_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data, uint32_t *ret);

/* seccomp_stricter - of two answers of filters, the one that the kernel obeys. Source: seccomp(2), "Filters". */
uint32_t seccomp_stricter(uint32_t a, uint32_t b);

/* seccomp_ends - whether the kernel ends the thread or its process after this answer, by a signal or at once. */
bool seccomp_ends(uint32_t answer);

/* seccomp_count - number of filters of a thread; 0: none, or it has ended. 1: some, before Linux 5.9, or strict mode. -ENOMEM. */
int seccomp_count(pid_t pid, pid_t tid);

/* Which calls are checked: a bit for each part of the agent that makes some. */
enum seccomp_need {
	SECCOMP_START = 1,     /* a thread that is used for the start, and those that it makes */
	SECCOMP_TALK = 2,      /* the agent's threads, once it is armed */
	SECCOMP_SAMPLER = 4,   /* its thread that starts sampling */
	SECCOMP_SAMPLED = 8,   /* each thread that is sampled, in a signal handler */
	SECCOMP_CRASH = 16,    /* its thread that prepares reports of crashes */
	SECCOMP_CRASHING = 32, /* each thread that may crash, in a signal handler */
	SECCOMP_ROWS = 64,     /* each thread that may write rows */
};

/*
 * seccomp_check - whether the filters of a thread let parts of the agent work. Strict mode, which allows four calls, does not.
 * @tid:        its filters can be read only while this process traces it and has stopped it.
 * @needs:      enum seccomp_need.
 * @is_trusted: filters that cannot be read do no harm, the user says.
 * @why:        on refusal, a sentence of at most why_bytes.
 * Returns 0 yes. Errors: -EPERM no, or unknown; -ESRCH it has ended; -ENOMEM.
 * Source: ptrace(2), PTRACE_SECCOMP_GET_FILTER, which needs CAP_SYS_ADMIN and no filter of our own.
 */
int seccomp_check(pid_t pid, pid_t tid, unsigned needs, bool is_trusted, char *why, size_t why_bytes);

/* seccomp_note_harmless - a thread's filters, that many, were read and are harmless: so are as many that cannot be read. */
void seccomp_note_harmless(int n_filters);

#endif
