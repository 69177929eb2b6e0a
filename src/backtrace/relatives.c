/* SPDX-License-Identifier: MIT */
/* relatives.c - a process and its descendants; see backtrace.h.
 *
 * /proc has no complete list of a running process' children (proc_tid_children(5)), so
 * the parents of all processes are read. One whose parent ended meanwhile belongs to
 * another, and is missed: the tree is never constant.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"

struct table {
	struct backtrace_relative *entries;
	size_t n, allocated;
};

static void table_done(struct table *table)
{
	free(table->entries);
}

static int add(struct table *table, pid_t pid, pid_t parent)
{
	int r = grow(&table->entries, table->n, &table->allocated, sizeof *table->entries);

	if (r < 0)
		return r;
	table->entries[table->n++] = (struct backtrace_relative){ pid, parent };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct backtrace_relative *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Read all processes with their parents. */
static int read_all(struct table *ret)
{
	CLEANUP(closedirp) DIR *folder = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!folder)
		return -errno;
	while (r >= 0 && (entry = readdir(folder)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct proc_stat stat;

		if (pid > 0 && proc_stat_read(pid, 0, &stat) == 0)
			r = add(ret, pid, stat.parent);
	}
	if (ret->n > 0)
		qsort(ret->entries, ret->n, sizeof *ret->entries, compare);
	return r;
}

static size_t first_child(const struct table *all, pid_t parent)
{
	size_t low = 0, high = all->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all->entries[middle].parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* PIDs reused during the scan could form a cycle: add none twice. */
static bool has(const struct table *table, pid_t pid)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->entries[i].pid == pid)
			return true;
	return false;
}

int backtrace_descendants(pid_t pid, struct backtrace_relative **ret, size_t *ret_n)
{
	CLEANUP(table_done) struct table all = { 0 }, found = { 0 };
	int r;

	r = read_all(&all);
	if (r >= 0)
		r = add(&found, pid, 0);
	for (size_t i = 0; r >= 0 && i < found.n; i++) {
		pid_t parent = found.entries[i].pid;

		for (size_t k = first_child(&all, parent); r >= 0 && k < all.n && all.entries[k].parent == parent; k++)
			if (!has(&found, all.entries[k].pid))
				r = add(&found, all.entries[k].pid, parent);
	}
	if (r < 0)
		return r;
	*ret = TAKE(found.entries);
	*ret_n = found.n;
	return 0;
}
