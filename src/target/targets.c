/* SPDX-License-Identifier: MIT */
/* targets.c - see target.h.
 *
 * A selection becomes a list of PIDs in three steps: the given ones, those
 * that match names and users, and the descendants of all of these. Processes start and end
 * meanwhile; an ended one is skipped later. Reading a process' memory needs
 * at least the rights that sampling it does (ptrace(2), access mode checking), so it decides.
 */
#include "src/target/target.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/capture.h"

enum {
	MAX_PROCESSES = 1 << 16,
	MAX_ROUNDS = 8, /* rounds of searching descendants of newly found processes */
	MAX_CMDLINE = 1 << 16,
	WAIT_NS = 50000000,
};

/* A process in /proc. */
struct seen {
	pid_t pid, parent;
};

struct list {
	struct seen *items;
	size_t n, allocated;
};

static void list_done(struct list *list)
{
	free(list->items);
}

void target_options_done(struct target_options *options)
{
	free(options->pids);
	glob_list_done(&options->comms);
	glob_list_done(&options->cmdlines);
	free(options->uids);
	glob_list_done(&options->users);
	*options = (struct target_options){ 0 };
}

void targets_done(struct targets *targets)
{
	free(targets->pids);
	free(targets->refused);
	*targets = (struct targets){ 0 };
}

bool targets_are_asked_for(const struct target_options *options)
{
	return options->n_pids > 0 || targets_are_matched(options);
}

bool targets_are_matched(const struct target_options *options)
{
	return options->comms.n > 0 || options->cmdlines.n > 0 || options->users.n > 0;
}

/* List all live user processes except this one and its helpers. */
static int list_all(struct list *list)
{
	CLEANUP(closedirp) DIR *folder = opendir("/proc");
	struct dirent *entry;

	if (!folder)
		return -errno;
	while ((entry = readdir(folder)) != NULL && list->n < MAX_PROCESSES) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct proc_stat stat;

		if (pid <= 0 || pid == getpid() || proc_stat_read(pid, 0, &stat) < 0 || stat.is_kernel_thread ||
		    stat.parent == getpid() || proc_has_ended(&stat))
			continue;
		if (grow(&list->items, list->n, &list->allocated, sizeof *list->items) < 0)
			return -ENOMEM;
		list->items[list->n++] = (struct seen){ pid, stat.parent };
	}
	return 0;
}

static bool has(const struct targets *targets, pid_t pid)
{
	for (size_t i = 0; i < targets->n; i++)
		if (targets->pids[i] == pid)
			return true;
	return false;
}

int targets_add(struct targets *targets, pid_t pid)
{
	if (has(targets, pid))
		return 0;
	if (grow(&targets->pids, targets->n, &targets->allocated, sizeof *targets->pids) < 0)
		return -ENOMEM;
	targets->pids[targets->n++] = pid;
	return 0;
}

/* ---- Names and users ---- */

static bool has_name(const struct glob_list *comms, pid_t pid)
{
	CLEANUP(freep) char *comm = proc_text(pid, "comm", 64);
	char path[PROC_PATH_BYTES], program[4096], *slash;
	ssize_t n;

	if (comm && comm[0] && glob_list_match(comms, comm))
		return true;
	proc_path(pid, "exe", path);
	n = readlink(path, program, sizeof program - 1);
	if (n <= 0)
		return false;
	program[n] = '\0';
	slash = strrchr(program, '/');
	return glob_list_match(comms, slash ? slash + 1 : program);
}

/* A substring matches. */
static bool has_cmdline(const struct glob_list *texts, pid_t pid)
{
	CLEANUP(freep) char *cmdline = proc_text(pid, "cmdline", MAX_CMDLINE);

	for (size_t i = 0; cmdline && i < texts->n; i++) {
		CLEANUP(freep) char *glob = NULL;

		if (strstr(cmdline, texts->words[i]))
			return true;
		if (asprintf(&glob, "*%s*", texts->words[i]) < 0)
			glob = NULL;
		if (glob && fnmatch(glob, cmdline, 0) == 0)
			return true;
	}
	return false;
}

/* Match the effective user, like file ownership does. */
static bool is_of(const unsigned *uids, size_t n_uids, pid_t pid)
{
	CLEANUP(freep) char *status = NULL;
	unsigned ids[3];
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (read_file(path, 1 << 16, &status, NULL) < 0 || !proc_status_ids(status, "Uid", ids))
		return false;
	for (size_t i = 0; i < n_uids; i++)
		if (ids[1] == uids[i])
			return true;
	return false;
}

/* @ret_unknown: with -EINVAL, the one that there is not. */
static int find_users(const struct glob_list *users, unsigned *uids, const char **ret_unknown)
{
	for (size_t i = 0; i < users->n; i++) {
		const struct passwd *user = getpwnam(users->words[i]);
		char *end;

		errno = 0;
		uids[i] = user ? user->pw_uid : (unsigned)strtoul(users->words[i], &end, 10);
		if (!user && (*end || errno != 0 || users->words[i][0] == '-')) {
			*ret_unknown = users->words[i];
			return -EINVAL;
		}
	}
	return 0;
}

/* Skip our ancestors, such as sudo, whose command line contains ours. */
static bool is_above_us(pid_t pid)
{
	struct proc_stat stat;

	for (pid_t above = getppid(); above > 1; above = stat.parent) {
		if (above == pid)
			return true;
		if (proc_stat_read(above, 0, &stat) < 0)
			break;
	}
	return false;
}

bool targets_match(const struct target_options *options, pid_t pid)
{
	return (options->comms.n == 0 || has_name(&options->comms, pid)) &&
	       (options->cmdlines.n == 0 || (has_cmdline(&options->cmdlines, pid) && !is_above_us(pid))) &&
	       (options->users.n == 0 || is_of(options->uids, options->users.n, pid));
}

/* Look up users once: a recorder without privileges cannot do it later. */
static int add_matching(struct target_options *options, const struct list *all, struct targets *targets)
{
	int r = 0;

	if (!options->uids) {
		options->uids = calloc(options->users.n + 1, sizeof *options->uids);
		r = options->uids ? find_users(&options->users, options->uids, &targets->unknown_user) : -ENOMEM;
	}
	if (!targets_are_matched(options))
		return r;
	for (size_t i = 0; r >= 0 && i < all->n; i++)
		if (targets_match(options, all->items[i].pid))
			r = targets_add(targets, all->items[i].pid);
	return r;
}

/* ---- Descendants ---- */

/* Add listed processes whose parent is a target. The list is unsorted, so repeat until nothing changes. */
static int add_children(const struct list *all, struct targets *targets)
{
	size_t n_before;
	int r = 0;

	do {
		n_before = targets->n;
		for (size_t i = 0; r >= 0 && i < all->n; i++)
			if (has(targets, all->items[i].parent))
				r = targets_add(targets, all->items[i].pid);
	} while (r >= 0 && targets->n > n_before);
	return r;
}

/* Repeat while new processes are started. */
int targets_add_descendants(struct targets *targets)
{
	int r = 0;

	for (int i = 0; r >= 0 && i < MAX_ROUNDS; i++) {
		CLEANUP(list_done) struct list all = { 0 };
		size_t n_before = targets->n;

		r = list_all(&all);
		if (r >= 0)
			r = add_children(&all, targets);
		if (targets->n == n_before)
			break;
	}
	return r;
}

int targets_add_children(struct targets *targets, pid_t pid)
{
	CLEANUP(list_done) struct list all = { 0 };
	int r = list_all(&all);

	for (size_t i = 0; r >= 0 && i < all.n; i++)
		if (all.items[i].parent == pid)
			r = targets_add(targets, all.items[i].pid);
	return r;
}

/* ---- Permissions ---- */

static int refuse(struct targets *targets, pid_t pid, int error)
{
	CLEANUP(freep) char *name = proc_text(pid, "comm", sizeof targets->refused->name);
	struct target_refusal *refusal;

	if (!name || grow(&targets->refused, targets->n_refused, &targets->refused_allocated, sizeof *refusal) < 0)
		return -ENOMEM;
	refusal = &targets->refused[targets->n_refused++];
	*refusal = (struct target_refusal){ .pid = pid, .error = error };
	snprintf(refusal->name, sizeof refusal->name, "%s", name);
	return 0;
}

static bool was_given(const struct target_options *options, pid_t pid)
{
	for (size_t i = 0; i < options->n_pids; i++)
		if (options->pids[i] == pid)
			return true;
	return false;
}

/* A process that is ending has no memory, so there is nothing to refuse. */
static bool is_ending(pid_t pid)
{
	CLEANUP(freep) char *maps = NULL;
	size_t n_bytes = 0;
	int r;

	r = proc_read(pid, "maps", 16, &maps, &n_bytes);
	return r == -ESRCH || (r >= 0 && n_bytes == 0);
}

static int part_refused(const struct target_options *options, struct targets *targets)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < targets->n; i++) {
		pid_t pid = targets->pids[i];
		int error = capture_check_memory(pid);

		if (error == -EPERM || error == -EACCES || error == -ENOSYS ||
		    (error == -ESRCH && was_given(options, pid)))
			r = refuse(targets, pid, error);
		else if (error != -ESRCH && !is_ending(pid))
			targets->pids[n++] = pid;
	}
	targets->n = n;
	return r;
}

/* This thread may block the signals that end it: a recorder handles them in its own loop. */
static bool is_interrupted(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
					     sigismember(&pending, SIGHUP) || sigismember(&pending, SIGQUIT));
}

/* Wait until at least one process matches. */
static int wait_for_first(struct target_options *options, void (*waiting)(void), struct targets *targets)
{
	static const struct timespec pause = { .tv_nsec = WAIT_NS };
	int r = 0;

	if (options->wait && targets->n == 0)
		waiting();
	while (r >= 0 && options->wait && targets->n == 0) {
		CLEANUP(list_done) struct list all = { 0 };

		nanosleep(&pause, NULL);
		if (is_interrupted())
			return -EINTR;
		r = list_all(&all);
		if (r >= 0)
			r = add_matching(options, &all, targets);
	}
	return r;
}

int targets_find(struct target_options *options, void (*waiting)(void), struct targets *ret)
{
	CLEANUP(list_done) struct list all = { 0 };
	int r = 0;

	*ret = (struct targets){ 0 };
	for (size_t i = 0; r >= 0 && i < options->n_pids; i++)
		r = targets_add(ret, options->pids[i]);
	if (r >= 0 && targets_are_matched(options))
		r = list_all(&all);
	if (r >= 0)
		r = add_matching(options, &all, ret);
	if (r >= 0)
		r = wait_for_first(options, waiting, ret);
	if (r >= 0 && options->descendants)
		r = targets_add_descendants(ret);
	if (r >= 0 && (ret->n > 1 || options->n_pids == 0))
		r = part_refused(options, ret);
	if (r < 0 || ret->n > 0)
		return r;
	return ret->n_refused > 0 ? -EPERM : -ESRCH;
}
