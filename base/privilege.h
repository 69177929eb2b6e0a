/* SPDX-License-Identifier: MIT */
/* privilege.h - give up what a process may do and does not need to.
 *
 * Nothing given up here can be had back. Sources: capabilities(7), capset(2), prctl(2), credentials(7).
 */
#ifndef PROBING_BASE_PRIVILEGE_H
#define PROBING_BASE_PRIVILEGE_H

#include <stdint.h>

/* A capability as a bit of a set. */
#define CAPABILITY(number) (UINT64_C(1) << (number))

/*
 * privilege_drop - keep only some of the calling thread's capabilities.
 * Effective and permitted keep what is in both; inheritable and ambient become empty, and the bounding set keeps
 * no more, where the thread may change it (CAP_SETPCAP). Other threads keep theirs: each calls this itself.
 * Errors: what capset(2) reports.
 */
int privilege_drop(uint64_t keep);

/* The calling thread's effective capabilities, for tests of privilege_drop(); 0: unknown. */
uint64_t privilege_effective(void);

/* privilege_lock - set no_new_privs: no program that the calling thread starts gains rights by its file. Errors: of prctl(2). */
int privilege_lock(void);

/*
 * privilege_become_nobody - change to the user and the group 65534, and leave all other groups.
 * Returns 0, or -EPERM where the thread may not: an ordinary user stays who it is.
 */
int privilege_become_nobody(void);

#endif
