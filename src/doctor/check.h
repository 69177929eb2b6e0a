/* SPDX-License-Identifier: MIT */
/* check.h - a check, and its functions to report findings. Private.
 *
 * A new check is a line in the table of its group; a new group is a file with a table, and
 * its line in report.c.
 */
#ifndef PROBING_DOCTOR_CHECK_H
#define PROBING_DOCTOR_CHECK_H

#include "src/doctor/facts.h"

struct doctor_check {
	const char *name;
	const char *purpose; /* the feature of probing that needs it */
	void (*run)(const struct facts *facts, struct doctor_finding *ret);
};

struct doctor_group {
	const char *title;
	const struct doctor_check *checks;
	size_t n_checks;
	bool of_process; /* only for a process */
};

extern const struct doctor_group doctor_sampling, doctor_rights, doctor_names, doctor_process, doctor_no_process,
	doctor_python, doctor_agent;

/* The observed state. A check reports this first; the rest only for a problem. */
void finding_set_state(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The consequence for the user of probing. */
void finding_set_effect(struct doctor_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The one command that solves it. */
void finding_set_remedy(struct doctor_finding *finding, bool as_root, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* setcap(8) on this program, with those that all of its features want. */
void finding_suggest_setcap(const struct facts *facts, struct doctor_finding *finding);

/* The user replaces "CONTAINER". */
#define CONTAINER_REMEDY "docker run --cap-add PERFMON --cap-add SYS_PTRACE IMAGE"

#endif
