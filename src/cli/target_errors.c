/* SPDX-License-Identifier: MIT */
/* target_errors.c - see target_errors.h. */
#include "src/cli/target_errors.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "src/cli/cli.h"
#include "src/capture/capture.h"

static char agent_why[CAPTURE_WHY_BYTES];

char *target_agent_why(void)
{
	return agent_why;
}

static bool is_refused(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

int target_fail_capture(int error, pid_t pid)
{
	char text[1024];

	if (error == -ENOTCONN)
		return cli_fail(EXIT_FAILED,
				"--source agent needs the agent in process %d: run `probing inject %d`, or start the "
				"program with PROBING=1",
				(int)pid, (int)pid);
	if (error == -EBUSY && agent_why[0])
		return cli_fail(EXIT_FAILED, "the agent in process %d does not sample it: %s", (int)pid, agent_why);
	if (error == -EPROTONOSUPPORT) {
		capture_explain_source(text, sizeof text);
		return cli_fail(EXIT_NOT_PERMITTED, "--source bpf %s", text);
	}
	if (error == -ESRCH)
		return cli_fail(EXIT_NO_INPUT, "there is no process %d", (int)pid);
	capture_explain(error, pid, text, sizeof text);
	return cli_fail(cli_status(error), "%s%s", text,
			is_refused(error) ? "; a program started with PROBING=1 needs no right to be recorded" : "");
}

int target_fail_command(const char *command, int error)
{
	if (error == -ENOENT)
		return cli_fail(EXIT_NOT_FOUND, "%s: command not found", command);
	return cli_fail(EXIT_NOT_EXECUTABLE, "%s cannot be run: %s", command, strerror(-error));
}

int target_check_memory(pid_t pid)
{
	int r = capture_check_memory(pid);

	if (r != -EPERM && r != -EACCES && r != -ENOSYS)
		return EXIT_OK;
	return cli_fail(EXIT_NOT_PERMITTED,
			"the memory of process %d may not be read%s: run as root or with CAP_SYS_PTRACE, or, for your "
			"own processes, `sysctl kernel.yama.ptrace_scope=0`; run `probing doctor %d` for details",
			(int)pid, r == -ENOSYS ? " (a filter forbids process_vm_readv)" : "", (int)pid);
}
