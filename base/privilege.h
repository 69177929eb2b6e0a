/* SPDX-License-Identifier: MIT */
/* privilege.h - drop the rights that a process does not need.
 *
 * Dropped rights cannot be regained. Sources: capabilities(7), capset(2), prctl(2), credentials(7).
 */
#ifndef PROBING_BASE_PRIVILEGE_H
#define PROBING_BASE_PRIVILEGE_H

#include <stdint.h>

/* A capability as a bit of a set. */
#define CAPABILITY(number) (UINT64_C(1) << (number))

/*
 * privilege_drop - keep only some of the calling thread's capabilities.
 * The effective and permitted sets keep the capabilities in both; inheritable and ambient become empty, and so does the
 * rest of the bounding set, if the thread may change it (CAP_SETPCAP). Affects only the calling thread.
 * Errors: what capset(2) reports.
 */
int privilege_drop(uint64_t capabilities);

/* The calling thread's effective capabilities, for tests of privilege_drop(); 0: unknown. */
uint64_t privilege_effective(void);

/* privilege_lock - set no_new_privs: no program that the calling thread starts gains rights by its file. Errors: of
 * prctl(2). */
int privilege_lock(void);

/*
 * privilege_become_nobody - change to the user and the group 65534, and leave all other groups.
 * Returns 0, or -EPERM if the thread may not: an ordinary user keeps its identity.
 */
int privilege_become_nobody(void);

#endif
