/* SPDX-License-Identifier: MIT */
/* call_filter.h - which system calls a process may still make.
 *
 * A table of rules becomes a seccomp program. A call that no rule lets through, and none kills for,
 * fails with ENOSYS, as on an older kernel: libc and its callers know a way around that, or report it.
 * Sources: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.
 */
#ifndef PROBING_BASE_CALL_FILTER_H
#define PROBING_BASE_CALL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address and leak sanitizers map more memory than any limit allows, and trace their own process. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

enum call_verdict {
	CALL_ALLOWED,
	CALL_KILLS,     /* the whole process */
	CALL_NOT_THERE, /* ENOSYS */
	CALL_SIGNALS,   /* SIGSYS, whose handler may emulate the call */
};

/* When a rule applies: by the low 32 bits of one argument. */
enum call_condition {
	CALL_ALWAYS,
	CALL_WITHOUT_BITS, /* none of value's bits is set */
	CALL_WITH_BITS,    /* one of them is */
	CALL_EQUALS,
};

struct call_rule {
	int number; /* __NR_... */
	enum call_verdict verdict;
	enum call_condition condition;
	unsigned argument; /* from 0 */
	uint32_t value;
};

#define ALLOW(name)                                                                                                    \
	{                                                                                                              \
		__NR_##name, CALL_ALLOWED, CALL_ALWAYS, 0, 0                                                           \
	}
#define ALLOW_IF(name, condition, argument, value)                                                                     \
	{                                                                                                              \
		__NR_##name, CALL_ALLOWED, condition, argument, value                                                  \
	}
#define KILL(name)                                                                                                     \
	{                                                                                                              \
		__NR_##name, CALL_KILLS, CALL_ALWAYS, 0, 0                                                             \
	}

struct call_table {
	const struct call_rule *rules;
	size_t n;
};

/* Tables that several filters begin with (call_tables.c). */
extern const struct call_table calls_fatal; /* kills */
extern const struct call_table calls_basic; /* allows no opening, no starting of anything, and no memory that is code */

/*
 * call_filter_install - from now on the first rule that applies to a call decides; of the tables, in their order.
 * @otherwise: for calls without a rule.
 * @all_threads: also for the process' other threads, which get no_new_privs with it; else for the calling one, and
 *          those it starts. no_new_privs must be set.
 * Errors: -ENOSYS, -EINVAL this kernel has no filters; -EBUSY a thread has a filter of its own; -E2BIG too many rules.
 */
int call_filter_install(const struct call_table *tables, size_t n_tables, enum call_verdict otherwise,
			bool all_threads);

/* call_filter_count - the number of filters that this process has installed itself. */
unsigned call_filter_count(void);

#endif
