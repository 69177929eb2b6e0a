/* SPDX-License-Identifier: MIT */
/* matching.c - see target.h. */
#include "src/target/target.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/capture.h"

enum { LOOKS_EACH = 4 };

struct known {
	pid_t pid;
	unsigned n_looks;
};

struct known_list {
	struct known *items; /* sorted by PID, as /proc lists them (proc_pid_readdir() in fs/proc/base.c, Linux 6.12) */
	size_t n, allocated;
};

struct matching {
	const struct target_options *options;
	struct known_list known;
};

static int list_known(struct known_list *ret)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!folder)
		return -errno;
	while (r >= 0 && (entry = readdir(folder)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		r = grow(&ret->items, ret->n, &ret->allocated, sizeof *ret->items);
		if (r >= 0)
			ret->items[ret->n++] = (struct known){ .pid = pid };
	}
	closedir(folder);
	return r;
}

int matching_new(const struct target_options *options, struct matching **ret)
{
	struct matching *matching = calloc(1, sizeof *matching);
	int r;

	if (!matching)
		return -ENOMEM;
	matching->options = options;
	r = list_known(&matching->known);
	if (r < 0) {
		matching_free(matching);
		return r;
	}
	*ret = matching;
	return 0;
}

void matching_free(struct matching *matching)
{
	if (!matching)
		return;
	free(matching->known.items);
	free(matching);
}

static int judge(const struct matching *matching, struct known *known, struct targets *to)
{
	struct proc_stat stat;

	if (known->n_looks >= LOOKS_EACH || known->pid == getpid())
		return 0;
	known->n_looks++;
	if (proc_stat_read(known->pid, 0, &stat) < 0 || stat.is_kernel_thread || stat.parent == getpid() ||
	    proc_has_ended(&stat) || !targets_match(matching->options, known->pid) ||
	    capture_check_memory(known->pid) < 0)
		return 0;
	return targets_add(to, known->pid);
}

int matching_look(struct matching *matching, struct targets *ret)
{
	struct known_list now = { 0 };
	struct targets found = { 0 };
	size_t at = 0;
	int r = list_known(&now);

	for (size_t i = 0; r >= 0 && i < now.n; i++) {
		while (at < matching->known.n && matching->known.items[at].pid < now.items[i].pid)
			at++;
		if (at < matching->known.n && matching->known.items[at].pid == now.items[i].pid)
			now.items[i].n_looks = matching->known.items[at].n_looks;
		r = judge(matching, &now.items[i], &found);
	}
	free(matching->known.items);
	matching->known = now;
	if (r < 0) {
		targets_done(&found);
		return r;
	}
	*ret = found;
	return 0;
}
