/* SPDX-License-Identifier: MIT */
/* explain.c - reasons for refusing to stop a process, or to read its memory.
 *
 * The kernel's rules (kernel/ptrace.c, __ptrace_may_access and ptrace_attach, Linux
 * 6.12), in the order of the messages here:
 *   one tracer at a time         TracerPid in /proc/PID/status
 *   same user and groups, and dumpable, or CAP_SYS_PTRACE
 *   Yama's ptrace_scope          1: descendants only; 2: with CAP_SYS_PTRACE; 3: nobody
 *   a seccomp filter, a security module
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"

#define PTRACE_SCOPE "/proc/sys/kernel/yama/ptrace_scope"

static bool is_dumpable(pid_t pid, unsigned uid)
{
	char path[64];
	struct stat st;

	/* The /proc folder of a process that is not dumpable belongs to root. */
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	return stat(path, &st) < 0 || st.st_uid == uid;
}

static void format_scope(pid_t pid, long scope, char *to, size_t n_bytes)
{
	if (scope >= 3)
		snprintf(to, n_bytes,
			 "kernel.yama.ptrace_scope is 3: the kernel forbids reading processes until the next boot");
	else if (scope > 0)
		snprintf(to, n_bytes,
			 "process %d may not be read, because kernel.yama.ptrace_scope is %ld: run `sysctl "
			 "kernel.yama.ptrace_scope=0` as root, or run probing as root or with CAP_SYS_PTRACE",
			 (int)pid, scope);
	else
		snprintf(to, n_bytes,
			 "process %d may not be read: probably a seccomp filter, as containers have by default, or a "
			 "security module forbids ptrace: run probing as root, outside the container, or start the "
			 "container with `--cap-add SYS_PTRACE`",
			 (int)pid);
}

static void format_reason(pid_t pid, const char *status, const unsigned uids[3], char *to, size_t n_bytes)
{
	const char *tracer = proc_status_value(status, "TracerPid");

	if (tracer && strtol(tracer, NULL, 10) != 0)
		snprintf(to, n_bytes,
			 "process %d is being traced by process %ld (a debugger, or strace), and there can "
			 "be only one: end that first",
			 (int)pid, strtol(tracer, NULL, 10));
	else if (geteuid() != 0 && (uids[0] != getuid() || uids[1] != getuid() || uids[2] != getuid()))
		snprintf(to, n_bytes,
			 "process %d belongs to uid %u and you are uid %u: run probing as that user or as "
			 "root, or give it CAP_SYS_PTRACE",
			 (int)pid, uids[1], getuid());
	else if (geteuid() != 0 && !is_dumpable(pid, uids[1]))
		snprintf(to, n_bytes,
			 "process %d is protected from its own user (a setuid program, or made not "
			 "dumpable): run probing as root, or give it CAP_SYS_PTRACE",
			 (int)pid);
	else
		format_scope(pid, proc_number(PTRACE_SCOPE, 0), to, n_bytes);
}

void backtrace_explain(pid_t pid, char *to, size_t n_bytes)
{
	CLEANUP(freep) char *status = NULL;
	unsigned uids[3];
	char path[64];
	size_t used;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (read_file(path, 1 << 16, &status, NULL) < 0 || !proc_status_ids(status, "Uid", uids)) {
		snprintf(to, n_bytes, "there is no process %d, or it has just ended", (int)pid);
		return;
	}
	format_reason(pid, status, uids, to, n_bytes);
	used = strlen(to);
	snprintf(to + used, n_bytes - used, "; run `probing doctor %d` for details", (int)pid);
}

void backtrace_shortcomings(const struct backtrace *backtrace, void (*say)(void *data, const char *sentence),
			    void *data)
{
	char why[1024], sentence[sizeof why + 128];

	if (backtrace->refused) {
		backtrace_explain(backtrace->pid, why, sizeof why);
		snprintf(sentence, sizeof sentence,
			 "its threads were not stopped, these are Python frames from memory: %s", why);
		say(data, sentence);
	}
	if (backtrace->n_files_missing > 0) {
		snprintf(sentence, sizeof sentence,
			 "%zu of its mapped files are missing or have changed: stacks may end early, and names may be "
			 "missing",
			 backtrace->n_files_missing);
		say(data, sentence);
	}
	if (backtrace->python_error == -EAGAIN) {
		say(data, "its Python is still starting up: these are native frames");
	} else if (backtrace->python_error) {
		snprintf(sentence, sizeof sentence, "Python %s in %s %d cannot be read: these are native frames",
			 backtrace->python, backtrace->is_dumped ? "the core of process" : "process",
			 (int)backtrace->pid);
		say(data, sentence);
	}
}
