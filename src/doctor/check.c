/* SPDX-License-Identifier: MIT */
/* check.c - functions with which a check reports findings; see check.h. */
#include "src/doctor/check.h"

#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 3, 0)))
format_text(char *to, size_t n_bytes, const char *format, va_list arguments)
{
	(void)vsnprintf(to, n_bytes, format, arguments);
}

void finding_set_state(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
{
	va_list arguments;

	finding->state = state;
	va_start(arguments, format);
	format_text(finding->found, sizeof finding->found, format, arguments);
	va_end(arguments);
}

void finding_set_effect(struct doctor_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	format_text(finding->means, sizeof finding->means, format, arguments);
	va_end(arguments);
}

void finding_set_remedy(struct doctor_finding *finding, bool as_root, const char *format, ...)
{
	va_list arguments;

	finding->as_root = as_root;
	va_start(arguments, format);
	format_text(finding->remedy, sizeof finding->remedy, format, arguments);
	va_end(arguments);
}

void finding_suggest_setcap(const struct facts *facts, struct doctor_finding *finding)
{
	const char *program = facts->rights.program;

	/* File capabilities only work in the initial user namespace, and without no_new_privs. */
	if (facts->rights.in_user_namespace || facts->rights.gains_nothing || !program[0])
		return;
	finding_set_remedy(finding, true, "setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_ipc_lock,cap_syslog+ep %s",
			   program);
}
