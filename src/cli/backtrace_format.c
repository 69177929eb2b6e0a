/* SPDX-License-Identifier: MIT */
/* backtrace_format.c - why a process' backtrace is missing or incomplete; see backtrace_format.h. */
#include "src/cli/backtrace_format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cli.h"

pid_t backtrace_process_of(pid_t tid)
{
	CLEANUP(freep) char *status = NULL;
	const char *value;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	if (read_file(path, 1 << 16, &status, NULL) < 0)
		return 0;
	value = proc_status_value(status, "Tgid");
	return value ? (pid_t)strtol(value, NULL, 10) : 0;
}

static int __attribute__((format(printf, 3, 4))) say(char *to, int status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(to, SAY_BYTES, format, arguments);
	va_end(arguments);
	return status;
}

static int format_missing(const struct backtrace_options *look, char *to)
{
	if (look->tid && backtrace_process_of(look->pid) == look->pid)
		return say(to, EXIT_NO_INPUT, "process %d has no thread %d", (int)look->pid, (int)look->tid);
	return say(to, EXIT_NO_INPUT, "there is no process %d, or it has just ended", (int)look->pid);
}

static int format_empty(pid_t pid, char *to)
{
	struct proc_stat stat;

	if (proc_stat_read(pid, 0, &stat) == 0 && stat.is_kernel_thread)
		return say(to, EXIT_FAILED, "process %d is a kernel thread: it has no user stack", (int)pid);
	if (proc_stat_read(pid, 0, &stat) == 0 && stat.state == 'Z')
		return say(to, EXIT_NO_INPUT,
			   "process %d has ended and is a zombie until its parent, process %d, reaps it: it has no "
			   "stack",
			   (int)pid, (int)stat.parent);
	return say(to, EXIT_NO_INPUT, "process %d has just ended", (int)pid);
}

static int format_core_error(const struct backtrace_options *look, int error, char *to)
{
	switch (error) {
	case -ESRCH:
		return say(to, EXIT_NO_INPUT, "%s has no thread %d", look->core, (int)look->tid);
	case -EBADMSG:
		return say(to, EXIT_BAD_DATA, "%s is not a core file, or is damaged", look->core);
	case -EOPNOTSUPP:
		return say(to, EXIT_BAD_DATA, "%s is a core file of another kind of machine, or of a 32-bit program",
			   look->core);
	case -ENODATA:
		return say(to, EXIT_BAD_DATA, "%s contains no threads", look->core);
	default:
		return say(to, cli_status(error), "%s cannot be read: %s",
			   error == -ENOENT && look->executable && access(look->core, R_OK) == 0 ? look->executable
												 : look->core,
			   strerror(-error));
	}
}

int backtrace_print_failure(const struct backtrace_options *look, int error, char *to)
{
	if (look->core)
		return format_core_error(look, error, to);
	switch (error) {
	case -ESRCH:
		return format_missing(look, to);
	case -ENODATA:
		return format_empty(look->pid, to);
	case -EPERM:
	case -EACCES:
		backtrace_explain(look->pid, to, SAY_BYTES);
		return EXIT_NOT_PERMITTED;
	case -EOPNOTSUPP:
		return say(to, EXIT_FAILED,
			   "no Python that can be read is in process %d: without stopping its threads "
			   "there is nothing to show",
			   (int)look->pid);
	default:
		return say(to, cli_status(error), "looking at process %d failed: %s", (int)look->pid, strerror(-error));
	}
}

static void print(void *data, const char *sentence)
{
	cli_say("%s%s\n", (const char *)data, sentence);
}

void backtrace_print_shortcomings(const struct backtrace *backtrace, const char *whose)
{
	backtrace_shortcomings(backtrace, print, (void *)whose);
}
