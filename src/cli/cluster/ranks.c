/* SPDX-License-Identifier: MIT */
/* ranks.c - see hosts.h. */
#include "src/cli/cluster/hosts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/cli/python_program.h"

enum { MAX_COMMAND = 1 << 16, MAX_ANCESTORS = 256 };

struct found {
	struct local_rank *ranks;
	size_t n, allocated;
	size_t n_hidden; /* may be ranks, but may not be read */
};

static bool is_number(const char *name)
{
	return isdigit((unsigned char)name[0]) && name[strspn(name, "0123456789")] == '\0';
}

static bool matches(const char *pattern, pid_t pid)
{
	CLEANUP(freep) char *command = proc_text(pid, "cmdline", MAX_COMMAND);

	return command && (strstr(command, pattern) || fnmatch(pattern, command, 0) == 0);
}

/* Everybody may read a command line; "/usr/bin/python3 train.py" is Python's. */
static bool looks_like_python(pid_t pid)
{
	CLEANUP(freep) char *command = proc_text(pid, "cmdline", 256);

	if (!command)
		return false;
	command[strcspn(command, " ")] = '\0';
	return strncmp(path_base_name(command), "python", strlen("python")) == 0;
}

/* Add a process, unless it is not meant, or has just ended. -ENOMEM. */
static int consider(const struct rank_selection *selection, pid_t pid, struct found *found)
{
	char version[PYTHON_VERSION_BYTES];
	struct local_rank rank = { .pid = pid };
	struct proc_stat stat;
	bool is_named = selection->n_pids > 0;
	int r;

	if (pid == getpid() || found->n >= CLUSTER_MAX_RANKS ||
	    (selection->pattern && !matches(selection->pattern, pid)))
		return 0;
	r = proc_stat_read(pid, 0, &stat);
	if (r == -ENOMEM)
		return r;
	if (r < 0 && !is_named)
		return 0;
	rank.parent = r < 0 ? 0 : stat.parent;
	r = rank_of_process(pid, &rank.identity);
	if (r == -ENOMEM)
		return r;
	if ((r == -EACCES || r == -EPERM) && !is_named && looks_like_python(pid)) {
		found->n_hidden++;
		return 0;
	}
	if (r <= 0 && !is_named && !selection->pattern && selection->launcher == 0)
		return 0;
	if (!is_named && !python_program(pid, version))
		return 0;
	if (selection->job && strcmp(selection->job, rank.identity.job) != 0)
		return 0;
	r = grow(&found->ranks, found->n, &found->allocated, sizeof *found->ranks);
	if (r < 0)
		return r;
	found->ranks[found->n++] = rank;
	return 0;
}

static int consider_all(const struct rank_selection *selection, struct found *found)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	int r = dir ? 0 : -errno;

	while (r >= 0 && (entry = readdir(dir)))
		if (is_number(entry->d_name))
			r = consider(selection, (pid_t)strtol(entry->d_name, NULL, 10), found);
	if (dir)
		closedir(dir);
	return r;
}

static int consider_descendants(const struct rank_selection *selection, struct found *found)
{
	CLEANUP(freep) struct backtrace_relative *relatives = NULL;
	size_t n = 0;
	int r = backtrace_descendants(selection->launcher, &relatives, &n);

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = consider(selection, relatives[i].pid, found);
	return r;
}

static int consider_named(const struct rank_selection *selection, struct found *found)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < selection->n_pids; i++)
		r = consider(selection, selection->pids[i], found);
	return r;
}

/* ---- Which of them are ranks ---- */

static const struct local_rank *with_pid(const struct found *found, pid_t pid)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->ranks[i].pid == pid)
			return &found->ranks[i];
	return NULL;
}

/* Parents between two Python processes may be others: a shell, a wrapper. */
static const struct local_rank *next_ancestor(const struct found *found, pid_t *parent)
{
	for (unsigned i = 0; *parent > 1 && i < MAX_ANCESTORS; i++) {
		const struct local_rank *rank = with_pid(found, *parent);
		struct proc_stat stat;

		*parent = rank ? rank->parent : proc_stat_read(*parent, 0, &stat) < 0 ? 0 : stat.parent;
		if (rank)
			return rank;
	}
	return NULL;
}

static bool is_same_rank(const struct rank_identity *a, const struct rank_identity *b)
{
	return a->source == b->source && a->rank == b->rank && strcmp(a->job, b->job) == 0;
}

/* Mark what is none: @is_out, by index. */
static void judge(const struct found *found, bool *is_out)
{
	for (size_t i = 0; i < found->n; i++) {
		const struct local_rank *rank = &found->ranks[i], *ancestor;
		pid_t parent = rank->parent;

		while ((ancestor = next_ancestor(found, &parent))) {
			if (is_same_rank(&rank->identity, &ancestor->identity) && rank->identity.source != RANK_UNKNOWN)
				is_out[i] = true;
			else if (rank->identity.source > ancestor->identity.source)
				is_out[ancestor - found->ranks] = true;
		}
	}
}

static int drop_others(struct found *found)
{
	CLEANUP(freep) bool *is_out = calloc(found->n + 1, sizeof *is_out);
	bool has_ranks = false;
	size_t n = 0;

	if (!is_out)
		return -ENOMEM;
	judge(found, is_out);
	for (size_t i = 0; i < found->n; i++)
		has_ranks |= found->ranks[i].identity.source != RANK_UNKNOWN;
	for (size_t i = 0; i < found->n; i++)
		if (!is_out[i] && (!has_ranks || found->ranks[i].identity.source != RANK_UNKNOWN))
			found->ranks[n++] = found->ranks[i];
	found->n = n;
	return 0;
}

int ranks_find(const struct rank_selection *selection, struct local_rank **ret, size_t *ret_n, size_t *ret_hidden)
{
	struct found found = { 0 };
	int r;

	if (selection->n_pids > 0)
		r = consider_named(selection, &found);
	else if (selection->launcher > 0)
		r = consider_descendants(selection, &found);
	else
		r = consider_all(selection, &found);
	if (r >= 0 && selection->n_pids == 0)
		r = drop_others(&found);
	if (r < 0) {
		free(found.ranks);
		return r;
	}
	*ret = found.ranks;
	*ret_n = found.n;
	*ret_hidden = found.n_hidden;
	return 0;
}
