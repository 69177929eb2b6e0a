/* SPDX-License-Identifier: MIT */
/* doctor.h - which features work here: each is tried, judged, and reported with the one command that solves a problem.
 *
 * First facts are gathered, by doing what a recording does; then each check judges
 * them. A check is a const descriptor in a table, one file per group. Nothing here stops, changes
 * or loads anything in the examined process.
 */
#ifndef PROBING_DOCTOR_H
#define PROBING_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_LIMITED, /* something works less well, or for some only */
	DOCTOR_MISSING,
};

/* Result of a check. All texts are UTF-8 of one line, safe for a terminal. */
struct doctor_finding {
	const char *group, *name;
	const char *purpose; /* the feature of probing that needs it */
	enum doctor_state state;
	char found[256];
	char means[256];  /* which feature is not there, or less good; "": none */
	char remedy[512]; /* the command that changes it; "": none does, or none is needed */
	bool as_root;     /* the command needs root */
};

/* How a recording would get its stacks. */
enum doctor_recording {
	RECORDING_NONE,
	RECORDING_POLL,  /* memory alone, on a timer */
	RECORDING_AGENT, /* its agent samples its threads */
	RECORDING_WAKEUP,
	RECORDING_BPF,
};

/* Why there is nothing to record, other than permissions. */
enum doctor_process {
	PROCESS_NOT_ASKED,
	PROCESS_THERE,
	PROCESS_GONE,
	PROCESS_ZOMBIE,
	PROCESS_OF_KERNEL,
};

struct doctor_report {
	pid_t pid; /* 0: no process examined */
	enum doctor_process process;
	enum doctor_recording recording;
	struct doctor_finding *findings;
	size_t n_findings;
};

/*
 * doctor_examine - find out.
 * @pid: the process to ask about; 0: only about this machine and user. One that is not there is
 *       no error: the report says so.
 * @ret: ended with doctor_report_free().
 * Errors: -ENOMEM.
 */
int doctor_examine(pid_t pid, struct doctor_report **ret);
void doctor_report_free(struct doctor_report *report);
void doctor_report_freep(struct doctor_report **report);

const char *doctor_state_name(enum doctor_state state);
/* "bpf", "wakeup", "poll" as --source has them; NULL: none. */
const char *doctor_recording_name(enum doctor_recording recording);

/* Both: 0, -ENOMEM, or the error of writing. */
int doctor_print_text(const struct doctor_report *report, bool colour, FILE *out);
int doctor_print_json(const struct doctor_report *report, FILE *out);

#endif
