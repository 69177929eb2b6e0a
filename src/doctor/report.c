/* SPDX-License-Identifier: MIT */
/* report.c - all checks in order, and the overall result; see doctor.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/util.h"
#include "src/doctor/check.h"

static const struct doctor_group *const groups[] = {
	&doctor_sampling, &doctor_rights, &doctor_names, &doctor_process, &doctor_python, &doctor_agent,
};

const char *doctor_state_name(enum doctor_state state)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_LIMITED] = "limited",
		[DOCTOR_MISSING] = "missing",
	};

	return names[state];
}

const char *doctor_recording_name(enum doctor_recording recording)
{
	static const char *const names[] = {
		[RECORDING_POLL] = "poll",
		[RECORDING_AGENT] = "agent",
		[RECORDING_WAKEUP] = "wakeup",
		[RECORDING_BPF] = "bpf",
	};

	return names[recording];
}

void doctor_report_free(struct doctor_report *report)
{
	if (!report)
		return;
	free(report->findings);
	free(report);
}

void doctor_report_freep(struct doctor_report **report)
{
	doctor_report_free(*report);
}

/* As record does it (capture_attach()): events first, then the agent, then memory on a timer. */
enum doctor_recording facts_recording(const struct facts *facts)
{
	const struct facts_process *process = &facts->process;
	bool of_process = process->pid != 0;
	int sampling = of_process ? process->sampling.error : facts->machine.sampling.error;
	bool is_readable = of_process ? process->memory_error >= 0 : !facts->rights.is_filtered[CALL_PROCESS_VM_READV];

	if (of_process && process->is != PROCESS_THERE)
		return RECORDING_NONE;
	if (of_process && sampling < 0 && process->has_agent && facts->machine.is_x86_64)
		return RECORDING_AGENT;
	if (!is_readable)
		return RECORDING_NONE;
	if (sampling < 0)
		return RECORDING_POLL;
	return facts->machine.bpf_error == 0 ? RECORDING_BPF : RECORDING_WAKEUP;
}

/* Make foreign text valid UTF-8 without control characters. */
static void make_harmless(char *text)
{
	char *to = text;

	for (const char *at = text; *at;) {
		utf8proc_int32_t c;
		utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)at, (utf8proc_ssize_t)strnlen(at, 4),
						      &c);
		utf8proc_category_t category = n > 0 ? utf8proc_category(c) : UTF8PROC_CATEGORY_CC;
		bool is_harmless = category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_CF &&
				   category != UTF8PROC_CATEGORY_ZL && category != UTF8PROC_CATEGORY_ZP;

		if (is_harmless)
			memmove(to, at, (size_t)n);
		else
			*to = '?';
		to += is_harmless ? n : 1;
		at += n > 0 ? n : 1;
	}
	*to = '\0';
}

static void run(const struct doctor_group *group, const struct facts *facts, struct doctor_report *report)
{
	for (size_t i = 0; i < group->n_checks; i++) {
		const struct doctor_check *check = &group->checks[i];
		struct doctor_finding *finding = &report->findings[report->n_findings++];

		*finding = (struct doctor_finding){ group->title, check->name, check->purpose, .state = DOCTOR_OK };
		check->run(facts, finding);
		make_harmless(finding->found);
		make_harmless(finding->means);
		make_harmless(finding->remedy);
	}
}

static int judge(const struct facts *facts, struct doctor_report *report)
{
	bool is_there = facts->process.is == PROCESS_THERE;
	size_t n = doctor_no_process.n_checks;

	for (size_t i = 0; i < N_ELEMENTS(groups); i++)
		n += groups[i]->n_checks;
	report->findings = calloc(n, sizeof *report->findings);
	if (!report->findings)
		return -ENOMEM;
	report->pid = facts->process.pid;
	report->process = facts->process.is;
	report->recording = facts_recording(facts);
	for (size_t i = 0; i < N_ELEMENTS(groups); i++)
		if (is_there || !groups[i]->of_process)
			run(groups[i], facts, report);
	if (report->pid != 0 && !is_there)
		run(&doctor_no_process, facts, report);
	return 0;
}

int doctor_examine(pid_t pid, struct doctor_report **ret)
{
	CLEANUP(doctor_report_freep) struct doctor_report *report = calloc(1, sizeof *report);
	CLEANUP(freep) struct facts *facts = calloc(1, sizeof *facts);
	int r;

	if (!report || !facts)
		return -ENOMEM;
	facts_rights_gather(&facts->rights);
	r = facts_machine_gather(&facts->machine);
	if (r >= 0 && pid != 0)
		r = facts_process_gather(pid, &facts->process);
	if (r >= 0)
		r = judge(facts, report);
	if (r < 0)
		return r;
	*ret = TAKE(report);
	return 0;
}
