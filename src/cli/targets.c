/* SPDX-License-Identifier: MIT */
/* targets.c - see targets.h.
 *
 * A selection becomes a list of PIDs in three steps: the given ones, those
 * that match names and users, and the descendants of all of these. Processes start and end
 * meanwhile; an ended one is skipped later. Reading a process' memory needs
 * at least the rights that sampling it does (ptrace(2), access mode checking), so it decides.
 */
#include "src/cli/targets.h"

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
#include "src/cli/cli.h"
#include "src/capture/capture.h"

enum {
	MAX_PROCESSES = 1 << 16,
	MAX_ROUNDS = 8, /* rounds of searching descendants of newly found processes */
	MAX_CMDLINE = 1 << 16,
	WAIT_NS = 50000000,
	NAMED = 8, /* number of processes named in a message */
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

static void closedirp(DIR **folder)
{
	if (*folder)
		closedir(*folder);
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

static int find_users(const struct glob_list *users, unsigned *uids)
{
	for (size_t i = 0; i < users->n; i++) {
		const struct passwd *user = getpwnam(users->words[i]);
		char *end;

		errno = 0;
		uids[i] = user ? user->pw_uid : (unsigned)strtoul(users->words[i], &end, 10);
		if (!user && (*end || errno != 0 || users->words[i][0] == '-'))
			return cli_fail(EXIT_NO_INPUT, "there is no user %s", users->words[i]);
	}
	return EXIT_OK;
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

/* Look up users once: a recorder without privileges cannot do it later. Returns an exit status. */
static int add_matching(struct target_options *options, const struct list *all, struct targets *targets)
{
	int status = EXIT_OK;

	if (!options->uids) {
		options->uids = calloc(options->users.n + 1, sizeof *options->uids);
		status = options->uids ? find_users(&options->users, options->uids)
				       : cli_fail(EXIT_FAILED, "not enough memory");
	}
	if (status != EXIT_OK || !targets_are_matched(options))
		return status;
	for (size_t i = 0; i < all->n; i++)
		if (targets_match(options, all->items[i].pid) && targets_add(targets, all->items[i].pid) < 0)
			return cli_fail(EXIT_FAILED, "not enough memory");
	return EXIT_OK;
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

/* "12 (python3), 34 (cron) and 5 others" */
static void name_refused(const struct targets *targets, bool missing, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < targets->n_refused; i++) {
		const struct target_refusal *refusal = &targets->refused[i];

		if ((refusal->error == -ESRCH) != missing)
			continue;
		if (n++ >= NAMED)
			continue;
		fprintf(out, "%s%d", n > 1 ? ", " : "", (int)refusal->pid);
		if (refusal->name[0])
			fprintf(out, " (%s)", refusal->name);
	}
	if (n > NAMED)
		fprintf(out, " and %zu others", n - NAMED);
}

static char *text_of_refused(const struct targets *targets, bool missing)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	name_refused(targets, missing, out);
	if (fclose(out) != 0)
		return NULL;
	return text;
}

static const char remedy[] = "run as root or with CAP_SYS_PTRACE and CAP_PERFMON, or, for your own processes, "
			     "`sysctl kernel.yama.ptrace_scope=0`";

void targets_print_refused(const struct targets *targets, const char *done)
{
	CLEANUP(freep) char *missing = text_of_refused(targets, true), *refused = text_of_refused(targets, false);

	if (missing && missing[0])
		cli_say("no process %s: recording the others\n", missing);
	if (refused && refused[0])
		cli_say("not %s (no permission): %s: %s\n", done, refused, remedy);
}

static void put_words(const struct glob_list *words, FILE *out)
{
	for (size_t i = 0; i < words->n; i++)
		fprintf(out, "%s%s", i > 0 ? "," : "", words->words[i]);
}

static int fail_nothing(const struct target_options *options)
{
	CLEANUP(freep) char *what = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&what, &n_bytes);

	if (!out)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (options->comms.n > 0) {
		fputs(" called ", out);
		put_words(&options->comms, out);
	}
	if (options->cmdlines.n > 0) {
		fputs(" with the command line ", out);
		put_words(&options->cmdlines, out);
	}
	if (options->users.n > 0) {
		fputs(" of the user ", out);
		put_words(&options->users, out);
	}
	fclose(out);
	return cli_fail(EXIT_NO_INPUT, "there is no process%s%s", what ? what : "",
			targets_are_matched(options) ? "; --wait waits for one to start" : "");
}

static int fail_refused(const struct targets *targets)
{
	CLEANUP(freep) char *missing = text_of_refused(targets, true), *refused = text_of_refused(targets, false);

	if (!missing || !refused)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (!refused[0])
		return cli_fail(EXIT_NO_INPUT, "there is no process %s", missing);
	return cli_fail(EXIT_NOT_PERMITTED, "no permission to record any of the processes: %s: %s", refused, remedy);
}

/* This thread may block the signals that end it: a recorder handles them in its own loop. */
static bool is_interrupted(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
					     sigismember(&pending, SIGHUP) || sigismember(&pending, SIGQUIT));
}

/* Wait until at least one process matches. */
static int wait_for_first(struct target_options *options, struct targets *targets)
{
	static const struct timespec pause = { .tv_nsec = WAIT_NS };
	bool told = false;
	int status = EXIT_OK;

	while (status == EXIT_OK && options->wait && targets->n == 0) {
		CLEANUP(list_done) struct list all = { 0 };
		int r;

		if (!told)
			cli_say("waiting for a process to start; Ctrl-C ends it\n");
		told = true;
		nanosleep(&pause, NULL);
		if (is_interrupted())
			return cli_fail(EXIT_FAILED, "interrupted while waiting: nothing was recorded");
		r = list_all(&all);
		status = r < 0 ? cli_fail(cli_status(r), "the processes cannot be listed: %s", strerror(-r))
			       : add_matching(options, &all, targets);
	}
	return status;
}

static int find(struct target_options *options, struct targets *targets)
{
	CLEANUP(list_done) struct list all = { 0 };
	int r = 0, status;

	for (size_t i = 0; r >= 0 && i < options->n_pids; i++)
		r = targets_add(targets, options->pids[i]);
	if (r >= 0)
		r = list_all(&all);
	if (r < 0)
		return cli_fail(cli_status(r), "the processes cannot be listed: %s", strerror(-r));
	status = add_matching(options, &all, targets);
	if (status == EXIT_OK)
		status = wait_for_first(options, targets);
	if (status != EXIT_OK)
		return status;
	if (options->descendants)
		r = targets_add_descendants(targets);
	if (targets->n == 0)
		return fail_nothing(options);
	if (r >= 0 && (targets->n > 1 || options->n_pids == 0))
		r = part_refused(options, targets);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "the processes cannot be listed: %s", strerror(-r));
	if (targets->n > 0)
		return EXIT_OK;
	return targets->n_refused > 0 ? fail_refused(targets) : fail_nothing(options);
}

int targets_find(struct target_options *options, struct targets *ret)
{
	CLEANUP(targets_done) struct targets targets = { 0 };
	int status;

	status = find(options, &targets);
	if (status != EXIT_OK)
		return status;
	*ret = targets;
	targets = (struct targets){ 0 };
	return EXIT_OK;
}
