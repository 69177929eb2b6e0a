/* SPDX-License-Identifier: MIT */
/* privilege.c - see privilege.h.
 *
 * Direct system calls, because they affect one thread; five of them do not justify libcap.
 */
#include "base/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Source: Documentation/admin-guide/sysctl/fs.rst, "overflowgid & overflowuid". */
enum { NOBODY = 65534, N_CAPABILITIES = 64 };

struct sets {
	struct __user_cap_data_struct half[_LINUX_CAPABILITY_U32S_3];
};

static int read_sets(struct sets *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, ret->half) < 0 ? -errno : 0;
}

static int write_sets(const struct sets *sets)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &header, sets->half) < 0 ? -errno : 0;
}

/* Dropping the bounding set needs CAP_SETPCAP; without it, no_new_privs has the same effect. */
static void drop_bounding(uint64_t capabilities)
{
	for (unsigned i = 0; i < N_CAPABILITIES; i++)
		if (!(capabilities & CAPABILITY(i)) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

int privilege_drop(uint64_t capabilities)
{
	struct sets sets, before;
	int r;

	drop_bounding(capabilities);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* clearing inheritable below does the same */
	r = read_sets(&sets);
	if (r < 0)
		return r;
	before = sets;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t kept = (uint32_t)(capabilities >> (32 * i)) & sets.half[i].permitted & sets.half[i].effective;

		sets.half[i] = (struct __user_cap_data_struct){ .effective = kept, .permitted = kept };
	}
	/* Who has no more needs no call, which a strict filter may refuse. */
	return memcmp(&sets, &before, sizeof sets) == 0 ? 0 : write_sets(&sets);
}

uint64_t privilege_effective(void)
{
	struct sets sets;

	if (read_sets(&sets) < 0)
		return 0;
	return (uint64_t)sets.half[1].effective << 32 | sets.half[0].effective;
}

int privilege_lock(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int privilege_become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -errno;
	return 0;
}
