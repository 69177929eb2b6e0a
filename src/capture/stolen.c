/* SPDX-License-Identifier: MIT */
/* stolen.c - see stolen.h.
 *
 * The clock of a guest goes on while the hypervisor runs another machine, so records of context switches and the counts of
 * events contain this time. A kernel with a steal clock subtracts it from the account of each program (update_rq_clock_task(),
 * kernel/sched/core.c, Linux 6.18), and counts it in /proc/stat. Without a steal clock the count is 0, and programs pay.
 */
#include "src/capture/stolen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"

enum { FIRST_NS = 100000000, LAST_NS = 2000000000, MAX_BYTES = 256 };

int stolen_parse(const char *text, uint64_t *ret_busy, uint64_t *ret_stolen)
{
	uint64_t user, nice, system, irq, softirq, stolen;

	if (sscanf(text, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64, &user,
		   &nice, &system, &irq, &softirq, &stolen) != 6)
		return -EBADMSG;
	*ret_busy = user + nice + system + irq + softirq + stolen;
	*ret_stolen = stolen;
	return 0;
}

static int read_ticks(uint64_t *ret_busy, uint64_t *ret_stolen)
{
	CLEANUP(freep) char *text = NULL;
	int r = read_file("/proc/stat", MAX_BYTES, &text, NULL);

	return r < 0 ? r : stolen_parse(text, ret_busy, ret_stolen);
}

void stolen_begin(struct stolen *stolen)
{
	*stolen = (struct stolen){ .read_ns = monotonic_ns(), .wait_ns = FIRST_NS };
	(void)read_ticks(&stolen->busy, &stolen->stolen);
}

void stolen_read(struct stolen *stolen)
{
	uint64_t busy, taken;

	if (read_ticks(&busy, &taken) < 0 || busy < stolen->busy || taken < stolen->stolen)
		return;
	stolen->busy_so_far = busy - stolen->busy;
	stolen->stolen_so_far = taken - stolen->stolen;
}

void stolen_read_sometimes(struct stolen *stolen, uint64_t now_ns)
{
	if (stolen->wait_ns == 0 || now_ns < stolen->read_ns + stolen->wait_ns)
		return;
	stolen_read(stolen);
	stolen->read_ns = now_ns;
	stolen->wait_ns = MIN(2 * stolen->wait_ns, (uint64_t)LAST_NS);
}

uint64_t stolen_leave(const struct stolen *stolen, uint64_t run_ns)
{
	if (stolen->stolen_so_far == 0 || stolen->busy_so_far <= stolen->stolen_so_far)
		return run_ns;
	return (uint64_t)((double)run_ns * (double)(stolen->busy_so_far - stolen->stolen_so_far) /
			  (double)stolen->busy_so_far);
}
