/* SPDX-License-Identifier: MIT */
/* cgroup.c - the cgroups of processes, their ancestors, and where they are mounted; see sources.h.
 *
 * A limit may belong to any ancestor, so each of them counts. With version 1, hierarchies of controllers are mounted apart, and a
 * process has a path in each; groups of one path are one row. Source: cgroups(7), proc_pid_mountinfo(5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "src/metrics/sources.h"

enum {
	MAX_CGROUPS = 32,
	LOOKS = 16, /* a process moves seldom: its groups are read again after so many looks */
	MAX_PATH = 4096,
	TEXT = 8,
};

static const struct {
	const char *name;
	enum cgroup_controller controller;
} controllers[] = {
	{ "cpu", CGROUP_CPU },   { "cpuacct", CGROUP_CPUACCT }, { "memory", CGROUP_MEMORY },
	{ "pids", CGROUP_PIDS }, { "blkio", CGROUP_BLKIO },
};

/* Bits of a list "cpu,cpuacct", which it changes. */
static unsigned controllers_of(char *list)
{
	unsigned found = 0;
	char *name;

	while ((name = strsep(&list, ",")) != NULL)
		for (size_t i = 0; i < N_ELEMENTS(controllers); i++)
			if (strcmp(name, controllers[i].name) == 0)
				found |= controllers[i].controller;
	return found;
}

/* The kernel writes a space, a tab, a line end and a backslash as "\040": systemd's names have "\x2d". Source: seq_escape(). */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu" */
static int parse_mount(struct metrics *metrics, char *line)
{
	char *rest = strstr(line, " - "), *root = NULL, *folder = NULL, *type, *options;
	struct cgroup_mount mount = { 0 };
	int r;

	if (!rest)
		return 0;
	*rest = '\0';
	rest += 3;
	for (int i = 0; i < 5; i++) {
		char *word = strsep(&line, " ");

		root = i == 3 ? word : root;
		folder = i == 4 ? word : folder;
	}
	type = strsep(&rest, " ");
	strsep(&rest, " ");
	options = rest;
	if (!root || !folder || !type)
		return 0;
	if (strcmp(type, "cgroup2") == 0)
		mount.controllers = CGROUP_V2;
	else if (strcmp(type, "cgroup") == 0 && options)
		mount.controllers = controllers_of(options);
	if (mount.controllers == 0)
		return 0;
	r = grow(&metrics->mounts, metrics->n_mounts, &metrics->mounts_allocated, sizeof *metrics->mounts);
	if (r < 0)
		return r;
	unescape(root);
	unescape(folder);
	mount.root = strdup(root);
	mount.folder = strdup(folder);
	metrics->mounts[metrics->n_mounts++] = mount;
	return mount.root && mount.folder ? 0 : -ENOMEM;
}

int cgroup_parse_mounts(struct metrics *metrics, char *text)
{
	char *line;
	int r = 0;

	while (r >= 0 && (line = strsep(&text, "\n")) != NULL)
		r = parse_mount(metrics, line);
	return r;
}

/* ---- Groups ---- */

static int add_one(struct metrics *metrics, unsigned bits, const char *path)
{
	struct kept_cgroup *group;
	int r;

	for (size_t i = 0; i < metrics->n_cgroups; i++)
		if (strcmp(metrics->cgroups[i].path, path) == 0) {
			metrics->cgroups[i].controllers |= bits;
			metrics->cgroups[i].look = metrics->look;
			return 0;
		}
	if (metrics->n_cgroups == MAX_CGROUPS)
		return 0;
	r = grow(&metrics->cgroups, metrics->n_cgroups, &metrics->cgroups_allocated, sizeof *metrics->cgroups);
	if (r < 0)
		return r;
	group = &metrics->cgroups[metrics->n_cgroups];
	*group = (struct kept_cgroup){ .path = strdup(path), .controllers = bits, .look = metrics->look };
	if (!group->path)
		return -ENOMEM;
	for (size_t i = 0; i < CGROUP_N_FILES; i++)
		group->fds[i] = -1;
	metrics->n_cgroups++;
	return 0;
}

/* A group and its ancestors. "/.." is outside the namespace, where nothing is mounted. */
static int add_path(struct metrics *metrics, unsigned bits, char *path)
{
	int r = 0;

	if (path[0] != '/' || strncmp(path, "/..", 3) == 0 || strlen(path) >= MAX_PATH / 2)
		return 0;
	while (r >= 0 && path[1] != '\0') {
		char *slash = strrchr(path, '/');

		r = add_one(metrics, bits, path);
		*(slash == path ? slash + 1 : slash) = '\0';
	}
	return r < 0 ? r : add_one(metrics, bits, "/");
}

int cgroup_add(struct metrics *metrics, char *text)
{
	char *line;
	int r = 0;

	/* "4:memory:/path"; of version 2 "0::/path". */
	while (r >= 0 && (line = strsep(&text, "\n")) != NULL) {
		char *number = strsep(&line, ":"), *list = strsep(&line, ":");
		unsigned bits;

		if (!list || !line)
			continue;
		bits = strcmp(number, "0") == 0 && list[0] == '\0' ? CGROUP_V2 : controllers_of(list);
		if (bits != 0)
			r = add_path(metrics, bits, line);
	}
	return r;
}

static void free_group(struct kept_cgroup *group)
{
	for (size_t i = 0; i < CGROUP_N_FILES; i++)
		if (group->fds[i] >= 0)
			close(group->fds[i]);
	free(group->path);
}

static void evict(struct metrics *metrics)
{
	size_t n = 0;

	for (size_t i = 0; i < metrics->n_cgroups; i++)
		if (metrics->look - metrics->cgroups[i].look <= 2 * LOOKS)
			metrics->cgroups[n++] = metrics->cgroups[i];
		else
			free_group(&metrics->cgroups[i]);
	metrics->n_cgroups = n;
}

int cgroup_find(struct metrics *metrics, const struct metrics_moment *moment)
{
	int r = 0;

	if (metrics->n_mounts == 0)
		return 0;
	for (size_t i = 0; i < moment->n_pids && r >= 0; i++) {
		struct kept_process *process = metric_process(metrics, moment->pids[i]);
		char path[PROC_PATH_BYTES];

		if (!process)
			return -ENOMEM;
		if (process->grouped != 0 && metrics->look - process->grouped < LOOKS)
			continue;
		process->grouped = metrics->look;
		snprintf(path, sizeof path, "/proc/%d/cgroup", (int)moment->pids[i]);
		if (metric_read_once(metrics, TEXT, path))
			r = cgroup_add(metrics, metrics->texts[TEXT]);
	}
	evict(metrics);
	return r;
}

void cgroup_done(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->n_cgroups; i++)
		free_group(&metrics->cgroups[i]);
	free(metrics->cgroups);
	for (size_t i = 0; i < metrics->n_mounts; i++) {
		free(metrics->mounts[i].root);
		free(metrics->mounts[i].folder);
	}
	free(metrics->mounts);
}

/* ---- Their files ---- */

/* What a path has below a mount's root; NULL: it is outside. */
static const char *below(const char *path, const char *root)
{
	size_t n = strlen(root);

	if (strcmp(root, "/") == 0)
		return path;
	if (strncmp(path, root, n) != 0 || (path[n] != '\0' && path[n] != '/'))
		return NULL;
	return path + n;
}

const char *cgroup_file(struct metrics *metrics, struct kept_cgroup *cgroup, enum cgroup_controller controller,
			unsigned file, const char *name)
{
	char path[MAX_PATH];

	if (!(cgroup->controllers & controller))
		return NULL;
	if (cgroup->fds[file] >= 0)
		return metric_read_kept(metrics, file, "", &cgroup->fds[file]);
	if (cgroup->missing >> file & 1)
		return NULL;
	for (size_t i = 0; i < metrics->n_mounts; i++) {
		const struct cgroup_mount *mount = &metrics->mounts[i];
		const char *rest = mount->controllers & controller ? below(cgroup->path, mount->root) : NULL;
		const char *text;
		int n;

		if (!rest)
			continue;
		n = snprintf(path, sizeof path, "%s%s/%s", mount->folder, strcmp(rest, "/") == 0 ? "" : rest, name);
		if (n < 0 || n >= (int)sizeof path)
			continue;
		text = metric_read_kept(metrics, file, path, &cgroup->fds[file]);
		if (text)
			return text;
	}
	cgroup->missing |= 1u << file;
	return NULL;
}
