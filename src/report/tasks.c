/* SPDX-License-Identifier: MIT */
/* tasks.c - sums by thread and by process: every sample belongs to one of them. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/report/sums.h"

static int compare_ids(int32_t pid, int32_t tid, int32_t other_pid, int32_t other_tid)
{
	if (pid != other_pid)
		return pid < other_pid ? -1 : 1;
	return tid < other_tid ? -1 : tid > other_tid;
}

static int compare_threads(const void *a, const void *b)
{
	const struct profile_thread *left = a, *right = b;

	return compare_ids(left->pid, left->tid, right->pid, right->tid);
}

static int compare_totals(const void *a, const void *b)
{
	const struct profile_total *left = a, *right = b;

	return compare_ids(left->pid, left->tid, right->pid, right->tid);
}

/* Find the thread in the recording; if it is missing, use empty names. */
static struct profile_thread name_thread(const struct profile_thread *threads, size_t n,
					 const struct profile_total *total)
{
	struct profile_thread wanted = { .pid = total->pid, .tid = total->tid, .name = "", .process = "" };
	const struct profile_thread *found = n > 0 ? bsearch(&wanted, threads, n, sizeof wanted, compare_threads)
						   : NULL;

	return found ? *found : wanted;
}

static struct report_sum name_task(const struct profile_thread *thread, bool by_process)
{
	const char *name = by_process ? thread->process : thread->name;

	return (struct report_sum){
		.name = name[0]      ? name
			: by_process ? "[process]"
				     : "[thread]",
		.pid = thread->pid,
		.tid = by_process ? 0 : thread->tid,
		.process = thread->process[0] ? thread->process : NULL,
	};
}

static void add_tasks(const struct profile_total *totals, size_t n_totals, const struct profile_thread *threads,
		      size_t n_threads, bool by_process, struct report_sums *sums)
{
	for (size_t i = 0; i < n_totals; i++) {
		const struct profile_total *total = &totals[i];
		struct report_sum *last = sums->n_items > 0 ? &sums->items[sums->n_items - 1] : NULL;

		if (!last || last->pid != total->pid || (!by_process && last->tid != total->tid)) {
			struct profile_thread thread = name_thread(threads, n_threads, total);

			last = &sums->items[sums->n_items++];
			*last = name_task(&thread, by_process);
		}
		last->self += whole_value(&sums->whole, total);
		last->total = last->self;
		last->samples += total->samples;
	}
}

int report_sums_of_tasks(const struct profile *profile, bool by_process, struct report_sums *ret)
{
	CLEANUP(freep) struct profile_total *totals = calloc(profile->n_totals + 1, sizeof *totals);
	CLEANUP(freep) struct profile_thread *threads = calloc(profile->n_threads + 1, sizeof *threads);
	CLEANUP(report_sums_done)
	struct report_sums sums = {
		.whole = whole_of(profile),
		.items = calloc(profile->n_totals + 1, sizeof *sums.items),
	};

	if (!totals || !threads || !sums.items)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_totals; i++)
		totals[i] = profile->totals[i];
	for (size_t i = 0; i < profile->n_threads; i++)
		threads[i] = profile->threads[i];
	qsort(totals, profile->n_totals, sizeof *totals, compare_totals);
	qsort(threads, profile->n_threads, sizeof *threads, compare_threads);
	add_tasks(totals, profile->n_totals, threads, profile->n_threads, by_process, &sums);
	*ret = sums;
	sums.items = NULL;
	return 0;
}
