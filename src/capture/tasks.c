/* SPDX-License-Identifier: MIT */
/* tasks.c - see tasks.h. */
#include "src/capture/tasks.h"

#include <string.h>

#include "base/util.h"

void task_set_done(struct task_set *set)
{
	free(set->tids);
	*set = (struct task_set){ 0 };
}

/* Index of the first member that is not below tid. */
static size_t lower_bound(const struct task_set *set, pid_t tid)
{
	size_t low = 0, high = set->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->tids[middle] < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool task_set_has(const struct task_set *set, pid_t tid)
{
	size_t i = lower_bound(set, tid);

	return i < set->n && set->tids[i] == tid;
}

int task_set_add(struct task_set *set, pid_t tid)
{
	size_t i = lower_bound(set, tid);
	int r;

	if (i < set->n && set->tids[i] == tid)
		return 0;
	r = grow(&set->tids, set->n, &set->allocated, sizeof *set->tids);
	if (r < 0)
		return r;
	/* TIDs mostly come in ascending order, so that nothing moves. */
	memmove(set->tids + i + 1, set->tids + i, (set->n - i) * sizeof *set->tids);
	set->tids[i] = tid;
	set->n++;
	return 1;
}

void task_set_remove(struct task_set *set, pid_t tid)
{
	size_t i = lower_bound(set, tid);

	if (!task_set_has(set, tid))
		return;
	set->n--;
	memmove(set->tids + i, set->tids + i + 1, (set->n - i) * sizeof *set->tids);
}
