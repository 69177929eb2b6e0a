/* SPDX-License-Identifier: MIT */
/* explain.h - facts for capture_explain(), and how to gather them. */
#ifndef PROBING_CAPTURE_EXPLAIN_H
#define PROBING_CAPTURE_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct explain_facts {
	pid_t pid;
	uid_t uid;        /* ours */
	long paranoid;    /* kernel.perf_event_paranoid */
	bool has_perfmon; /* CAP_PERFMON or CAP_SYS_ADMIN */
	bool has_sys_admin;
	bool in_user_namespace; /* not the initial one: capabilities do not count */
	bool has_seccomp_filter;
	bool target_is_foreign; /* runs as another user */
	uid_t target_uid;
	bool target_is_protected; /* not dumpable, or other groups */
	uint64_t n_threads, n_cpus;
	uint64_t n_descriptors_allowed; /* the hard limit */
	long mlock_kib;                 /* kernel.perf_event_mlock_kb */
	uint64_t memlock_bytes;         /* RLIMIT_MEMLOCK */
};

/* Gather the facts. Unknown ones get a harmless value. */
void explain_gather(pid_t pid, struct explain_facts *ret);

/* The sentence for a negative errno of capture_attach() or capture_launch(). */
void explain_format(int error, const struct explain_facts *facts, char *to, size_t n_bytes);

#endif
