/* SPDX-License-Identifier: MIT */
/* target_errors.c - see target_errors.h. */
#include "src/cli/target_errors.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/capture/capture.h"
#include "src/cli/cli.h"

enum { NAMED = 8 }; /* number of processes named in a message */

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

/* ---- Selection ---- */

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

void target_print_refused(const struct targets *targets, const char *done)
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

static int fail_none_matches(const struct target_options *options)
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

static void print_waiting(void)
{
	cli_say("waiting for a process to start; Ctrl-C ends it\n");
}

int target_find(struct target_options *options, struct targets *ret)
{
	int r = targets_find(options, print_waiting, ret);

	if (r >= 0)
		return EXIT_OK;
	switch (-r) {
	case ESRCH:
		return fail_none_matches(options);
	case EPERM:
		return fail_refused(ret);
	case EINVAL:
		return cli_fail(EXIT_NO_INPUT, "there is no user %s", ret->unknown_user);
	case EINTR:
		return cli_fail(EXIT_FAILED, "interrupted while waiting: nothing was recorded");
	case ENOMEM:
		return cli_fail(EXIT_FAILED, "not enough memory");
	default:
		return cli_fail(cli_status(r), "the processes cannot be listed: %s", strerror(-r));
	}
}

/* ---- FIFOs ---- */

static int fail_fifo(const char *path, int error)
{
	if (error == -ENXIO || error == -EISDIR)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s is not a FIFO: give --control another name, or create one with "
				"mkfifo",
				path);
	if (error == -PLACE_EOTHERS_FILE)
		return cli_fail(EXIT_NO_OUTPUT,
				"the FIFO %s belongs to another user, who could control the recorder: give --control "
				"another name",
				path);
	if (error == -EPERM)
		return cli_fail(EXIT_NO_OUTPUT, "everybody may write to the FIFO %s: chmod o-w it first", path);
	if (error == -PLACE_EOTHERS_LINK || error == -PLACE_ECHANGED)
		return cli_fail_open(path, error);
	return cli_fail(EXIT_NO_OUTPUT, "the FIFO %s cannot be opened: %s", path, strerror(-error));
}

int target_open_control(const char *paths, struct control *ret)
{
	int r = control_open(paths, ret);

	if (r >= 0)
		return EXIT_OK;
	if (ret->failed)
		return fail_fifo(ret->failed, r);
	if (r == -EINVAL)
		return cli_fail(EXIT_USAGE, "commands and answers need a FIFO each: --control CONTROL,REPLY");
	return cli_fail(EXIT_FAILED, "not enough memory");
}
