/* SPDX-License-Identifier: MIT */
/* rights.c - our rights: descriptors, memory of other processes; see rights.h and capture.h.
 *
 * Source: getrlimit(2), process_vm_readv(2).
 */
#include "src/capture/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/remote.h"
#include "base/util.h"
#include "src/capture/capture.h"

enum { NEEDED_LATER = 24 };

void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* The lowest free descriptor is about the number of open ones. */
int descriptors_suffice(void)
{
	CLEANUP(closep) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;

	if (fd < 0)
		return errno == EMFILE ? -EMFILE : 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return (rlim_t)fd + NEEDED_LATER < limit.rlim_cur ? 0 : -EMFILE;
}

int capture_check_memory(pid_t pid)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	CLEANUP(freep) char *maps = NULL;
	char byte;
	uint64_t start;
	int r;

	r = proc_read(pid, "maps", 256, &maps, NULL);
	if (r >= 0)
		r = remote_open_process(pid, &remote);
	if (r >= 0 && sscanf(maps, "%" SCNx64, &start) == 1)
		r = remote_read(remote, RADDR(start), &byte, 1);
	return r;
}
