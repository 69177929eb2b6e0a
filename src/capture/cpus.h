/* SPDX-License-Identifier: MIT */
/* cpus.h - which CPUs are online. */
#ifndef PROBING_CAPTURE_CPUS_H
#define PROBING_CAPTURE_CPUS_H

#include <stddef.h>

/*
 * cpus_parse - the numbers in a list such as "0-3,8,10-11\n".
 * @ret: owned by the caller, in the order of the list, at least one.
 * Errors: -EINVAL not such a list, or a number of 65536 and more; -ENOMEM.
 */
int cpus_parse(const char *text, unsigned **ret, size_t *ret_n);

/* cpus_online - from /sys; where that is not mounted, as many as sysconf(3) knows of. */
int cpus_online(unsigned **ret, size_t *ret_n);

#endif
