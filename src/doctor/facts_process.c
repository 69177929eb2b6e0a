/* SPDX-License-Identifier: MIT */
/* facts_process.c - the examined process; see facts.h.
 *
 * It is read and sampled for a moment, as a recording would; it is not stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/doctor/facts.h"
#include "src/capture/capture.h"

/* False also if the link is unreadable. */
static bool has_other(pid_t pid, const char *namespace)
{
	char path[PROC_PATH_BYTES], file[32];
	struct stat ours, its;

	snprintf(path, sizeof path, "/proc/self/ns/%s", namespace);
	if (stat(path, &ours) < 0)
		return false;
	snprintf(file, sizeof file, "ns/%s", namespace);
	proc_path(pid, file, path);
	return stat(path, &its) == 0 && its.st_ino != ours.st_ino;
}

static bool has_proc(pid_t pid)
{
	char path[PROC_PATH_BYTES];

	proc_path(pid, "root/proc/self", path);
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The /proc folder of a process that is not dumpable belongs to root. Source: proc(5). */
static bool is_dumpable(pid_t pid, unsigned uid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	return uid == 0 || stat(path, &st) < 0 || st.st_uid == uid;
}

static void read_status(struct facts_process *ret)
{
	CLEANUP(freep) char *status = NULL;
	const char *value;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)ret->pid);
	if (read_file(path, 1 << 16, &status, NULL) < 0)
		return;
	(void)proc_status_ids(status, "Uid", ret->uids);
	(void)proc_status_ids(status, "Gid", ret->gids);
	value = proc_status_value(status, "TracerPid");
	ret->tracer = value ? (pid_t)strtol(value, NULL, 10) : 0;
	if (proc_status_own_pid(status, &ret->own_pid, NULL) < 0)
		ret->own_pid = ret->pid;
	value = proc_status_value(status, "Seccomp");
	ret->has_filter = value && strtol(value, NULL, 10) != 0;
	value = proc_status_value(status, "x86_Thread_features");
	ret->has_shadow_stack = value && strncmp(value + strspn(value, " \t"), "shstk", 5) == 0;
	ret->is_dumpable = is_dumpable(ret->pid, ret->uids[1]);
}

static int read_name(struct facts_process *ret)
{
	CLEANUP(freep) char *name = proc_text(ret->pid, "comm", sizeof ret->name - 1);

	if (!name)
		return -ENOMEM;
	snprintf(ret->name, sizeof ret->name, "%s", name);
	return 0;
}

static void count_threads(struct facts_process *ret)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;

	ret->n_threads = proc_tasks(ret->pid, &tids, &n) >= 0 ? n : 1;
}

static enum doctor_process what_is(const struct proc_stat *stat)
{
	if (stat->is_kernel_thread)
		return PROCESS_OF_KERNEL;
	return proc_has_ended(stat) ? PROCESS_ZOMBIE : PROCESS_THERE;
}

static bool thread_has_socket(pid_t pid, pid_t tid, uint64_t inode)
{
	CLEANUP(closedirp) DIR *folder = NULL;
	const struct dirent *entry;
	char path[64], link[DESCRIPTOR_TEXT_BYTES];

	snprintf(path, sizeof path, "/proc/%d/task/%d/fd", (int)pid, (int)tid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)) != NULL) {
		ssize_t n = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);

		if (n < 0)
			continue;
		link[n] = '\0';
		if (descriptor_socket_inode(link) == inode)
			return true;
	}
	return false;
}

/* The agent's thread has files of its own. */
static bool any_thread_has_socket(pid_t pid, uint64_t inode)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;

	if (proc_tasks(pid, &tids, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (thread_has_socket(pid, tids[i], inode))
			return true;
	return false;
}

/* "@probing-7", or "@probing-7-1" where a process of another container has that name. Source: agent_format_socket(), src/agent/agent.h. */
static bool is_agents_name(const char *line, pid_t own_pid)
{
	char name[32];
	const char *at;

	snprintf(name, sizeof name, " @probing-%d", (int)own_pid);
	at = strstr(line, name);
	return at && (at[strlen(name)] == '\0' || at[strlen(name)] == '-');
}

/* Containers may share a network namespace, and with it the names of sockets. Source: proc_pid_net(5), unix. */
static bool has_agent(const struct facts_process *process)
{
	CLEANUP(freep) char *sockets = NULL;
	char text[DESCRIPTOR_TEXT_BYTES], *rest;
	uint64_t inode;

	if (proc_read(process->pid, "net/unix", 1 << 24, &sockets, NULL) < 0)
		return false;
	for (char *line = strtok_r(sockets, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (is_agents_name(line, process->own_pid) && descriptor_parse_unix(line, &inode, text) &&
		    any_thread_has_socket(process->pid, inode))
			return true;
	return false;
}

int facts_process_gather(pid_t pid, struct facts_process *ret)
{
	struct proc_stat stat;
	int r;

	ret->pid = pid;
	ret->is = PROCESS_GONE;
	if (proc_stat_read(pid, 0, &stat) < 0)
		return 0;
	ret->is = what_is(&stat);
	ret->state = stat.state;
	ret->parent = stat.parent;
	r = read_name(ret);
	if (r < 0 || ret->is != PROCESS_THERE)
		return r;
	read_status(ret);
	count_threads(ret);
	ret->is_32_bit = proc_is_32_bit(pid);
	ret->has_other_pids = has_other(pid, "pid");
	ret->has_other_files = has_other(pid, "mnt");
	ret->has_other_users = has_other(pid, "user");
	ret->has_other_network = has_other(pid, "net");
	ret->has_proc = has_proc(pid);
	ret->has_agent = has_agent(ret);
	ret->memory_error = capture_check_memory(pid);
	r = facts_try_sampling(pid, &ret->sampling);
	return r < 0 ? r : facts_python_gather(ret);
}
