/* SPDX-License-Identifier: MIT */
/* switch_rate.c - see switch_rate.h.
 *
 * An event of a thread is put on its processor and taken off again with it, which takes about 3 us a switch (docs/waiting.md). One
 * of a processor is always there, and interrupts others, too. Five hundredths of the threads' time are where the one
 * begins to be worse than the other.
 */
#include "src/capture/switch_rate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/poll_parse.h"

enum { MAX_THREADS = 256, MIN_NS = 20000000, SWITCH_NS = 3000, SHARE = 20 };

struct lived {
	uint64_t ns, n_runs;
	size_t n_threads;
};

static void add_thread(pid_t pid, pid_t tid, struct lived *lived)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t ns, n_runs;
	char file[64];

	snprintf(file, sizeof file, "task/%d/schedstat", tid);
	text = proc_text(pid, file, 64);
	lived->n_threads++;
	if (!text || poll_parse_schedstat(text, &ns, &n_runs) < 0)
		return;
	lived->ns += ns;
	lived->n_runs += n_runs;
}

bool switch_rate_is_high(const pid_t *pids, size_t n_pids)
{
	struct lived lived = { 0 };

	for (size_t i = 0; i < n_pids; i++) {
		CLEANUP(freep) pid_t *tids = NULL;
		size_t n = 0;

		if (proc_tasks(pids[i], &tids, &n) < 0)
			continue;
		for (size_t k = 0; k < n && lived.n_threads < MAX_THREADS; k++)
			add_thread(pids[i], tids[k], &lived);
	}
	return lived.ns >= MIN_NS && lived.n_runs * SWITCH_NS > lived.ns / SHARE;
}
