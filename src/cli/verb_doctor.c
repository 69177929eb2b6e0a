/* SPDX-License-Identifier: MIT */
/* verb_doctor.c - which features work here, and the one command that solves each problem. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/doctor/doctor.h"

enum { OPTION_JSON = 0x200 };

struct options {
	pid_t pid; /* 0: none */
	bool json;
};

static const struct argp_option option_list[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print one JSON object", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_JSON:
		options->json = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_take_pid(state, argument, &options->pid);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PID]",
	.doc = "Test the features of probing on this machine. With PID, also test whether probing can sample, read and "
	       "stop that process, and which Python it runs. Each line is ok, limited or missing, with the reason and "
	       "the command that fixes it. doctor stops and changes nothing.\v"
	       "Examples:\n"
	       "  probing doctor\n"
	       "  probing doctor 4242\n"
	       "  probing doctor 4242 --json\n"
	       "\n"
	       "Exit status: 0 recording works, perhaps without native frames; 77 recording is not permitted; 66 no "
	       "such process; 1 PID is a kernel thread.",
};

static int status_of(const struct doctor_report *report)
{
	if (report->recording != RECORDING_NONE)
		return EXIT_OK;
	switch (report->process) {
	case PROCESS_GONE:
	case PROCESS_ZOMBIE:
		return EXIT_NO_INPUT;
	case PROCESS_OF_KERNEL:
		return EXIT_FAILED;
	default:
		return EXIT_NOT_PERMITTED;
	}
}

static int put_text(const void *report, FILE *out)
{
	return doctor_print_text(report, cli_colour(STDOUT_FILENO), out);
}

static int put_json(const void *report, FILE *out)
{
	return doctor_print_json(report, out);
}

static int fail_print(const void *report, int error)
{
	(void)report;
	return cli_fail(EXIT_FAILED, "printing failed: %s", strerror(-error));
}

static int run_doctor(int argc, char **argv)
{
	CLEANUP(doctor_report_freep) struct doctor_report *report = NULL;
	struct options options = { 0 };
	int r, status;

	cli_parse(&argp, argc, argv, 0, &options);
	r = doctor_examine(options.pid, &report);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "the checks failed: %s", strerror(-r));
	status = output_write("-", 0, options.json ? put_json : put_text, fail_print, report);
	return status != EXIT_OK ? status : status_of(report);
}

const struct verb verb_doctor = {
	.name = "doctor",
	.aliases = NULL,
	.summary = "test what works on this machine, and how to fix the rest",
	.argp = &argp,
	.pages = true,
	.run = run_doctor,
};
