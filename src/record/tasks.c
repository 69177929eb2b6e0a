/* tasks.c - the threads of a process; see tasks.h. */
#include "src/record/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static void closedirp(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

int tasks_list(pid_t pid, pid_t **ret, size_t *ret_n)
{
	CLEANUP(closedirp) DIR *folder = NULL;
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0, allocated = 0;
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(folder)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);
		int r;

		if (tid <= 0)
			continue; /* "." and ".." */
		r = grow(&tids, n, &allocated, sizeof *tids);
		if (r < 0)
			return r;
		tids[n++] = (pid_t)tid;
	}

	*ret = TAKE(tids);
	*ret_n = n;
	return 0;
}

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

int task_set_add(struct task_set *set, pid_t tid)
{
	size_t i = lower_bound(set, tid);
	int r;

	if (i < set->n && set->tids[i] == tid)
		return 0;
	r = grow(&set->tids, set->n, &set->allocated, sizeof *set->tids);
	if (r < 0)
		return r;
	/* Numbers mostly come in order, so that nothing has to move. */
	memmove(set->tids + i + 1, set->tids + i, (set->n - i) * sizeof *set->tids);
	set->tids[i] = tid;
	set->n++;
	return 1;
}
