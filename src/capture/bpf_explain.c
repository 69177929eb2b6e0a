/* SPDX-License-Identifier: MIT */
/* bpf_explain.c - why Python frames cannot be read in the interrupt; see bpf.h.
 *
 * Requirements, by kernel version: bounded loops in calls of their own and
 * user memory, 5.17. Loading takes CAP_BPF and CAP_PERFMON (5.8), or
 * CAP_SYS_ADMIN, in the initial user namespace. Source: bpf(2), bpf-helpers(7).
 */
#include <cap-ng.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "src/capture/bpf.h"

/* Linux 5.8; older headers lack these. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

static bool may(unsigned capability)
{
	return capng_have_capability(CAPNG_EFFECTIVE, capability);
}

static bool is_privileged(void)
{
	return capng_get_caps_process() == 0 && (may(CAP_SYS_ADMIN) || (may(CAP_BPF) && may(CAP_PERFMON)));
}

void bpf_source_explain(int error, char *to, size_t n_bytes)
{
	struct utsname system = { 0 };

	uname(&system);
	if (error == -ENOSYS)
		snprintf(to, n_bytes, "needs a build with clang and libbpf");
	else if (error == -EXDEV)
		snprintf(to, n_bytes, "needs the initial PID namespace: run probing outside of the container");
	else if (!is_privileged())
		snprintf(to, n_bytes, "needs root, or CAP_BPF and CAP_PERFMON");
	else if (error == -EPERM || error == -EACCES)
		snprintf(to, n_bytes, "needs the initial user namespace, and a kernel that is not locked down");
	else if (error == -ENOMEM || error == -EMFILE || error == -ENFILE)
		snprintf(to, n_bytes, "needs more than is left here: %s", strerror(-error));
	else
		snprintf(to, n_bytes, "needs Linux 5.17 or later with CONFIG_BPF_SYSCALL; %s refuses its program: %s",
			 system.release, strerror(-error));
}
