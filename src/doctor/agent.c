/* SPDX-License-Identifier: MIT */
/* agent.c - checks: whether the agent can be loaded into a process, and how. The rules are those of src/inject. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/doctor/check.h"

enum { FIRST_MINOR = 6, FIRST_SCRIPTED_MINOR = 14 };

/* Minor version from "3.11.2"; 0: none, or older than 3. */
static int minor_of(const char *python)
{
	int minor = 0;

	return sscanf(python, "3.%d", &minor) == 1 ? minor : 0;
}

static bool is_scripted(const struct facts_process *process)
{
	return minor_of(process->python) >= FIRST_SCRIPTED_MINOR && process->runs_scripts;
}

static const char *is_no_host(const struct facts_process *process)
{
	if (process->is_32_bit)
		return "it is a 32-bit program";
	if (process->libc == LIBC_MUSL)
		return "it runs on musl, and the agent needs glibc";
	if (process->libc == LIBC_NONE)
		return "it is a static program, and the agent needs a shared glibc";
	if (!process->python[0])
		return "no Python was found in it";
	if (minor_of(process->python) < FIRST_MINOR)
		return "its Python is older than 3.6";
	return NULL;
}

static bool is_readable(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->process.memory_error >= 0)
		return true;
	finding_set_state(ret, DOCTOR_MISSING, "unknown: its memory cannot be read");
	finding_set_effect(ret, "see the check memory");
	return false;
}

static void run_host(const struct facts *facts, struct doctor_finding *ret)
{
	const char *why;

	if (!is_readable(facts, ret))
		return;
	why = is_no_host(&facts->process);
	if (!why) {
		finding_set_state(ret, DOCTOR_OK, "CPython %s on glibc", facts->process.python);
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "%s", why);
	finding_set_effect(ret, "no inject, eval, repl or attach; record and backtrace work without the agent");
}

static void run_interpreter_way(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (!is_readable(facts, ret))
		return;
	if (is_scripted(process)) {
		finding_set_state(ret, DOCTOR_OK, "its Python runs scripts from outside (PEP 768)");
		return;
	}
	if (minor_of(process->python) >= FIRST_SCRIPTED_MINOR) {
		finding_set_state(ret, DOCTOR_LIMITED, "its Python was started with remote debugging disabled");
		finding_set_effect(ret, "a stopped thread loads the agent instead");
		finding_set_remedy(ret, false, "env -u PYTHON_DISABLE_REMOTE_DEBUG python3 SCRIPT");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "CPython 3.14 and later only");
	finding_set_effect(ret, "a stopped thread loads the agent instead");
}

/* Why no thread of the process may be stopped for injection; NULL: it may. */
static const char *is_unstoppable(const struct facts *facts)
{
	const struct facts_process *process = &facts->process;

	if (!facts->machine.is_x86_64)
		return "x86-64 only";
	if (process->tracer != 0)
		return "it already has a tracer";
	if (facts->rights.is_filtered[CALL_PTRACE])
		return "a filter forbids you ptrace";
	if (process->has_shadow_stack)
		return "it has a shadow stack";
	if (process->state == 'T' || process->state == 't')
		return "it is stopped, and no thread of it runs";
	return NULL;
}

static void run_thread_way(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;
	const char *why;

	if (!is_readable(facts, ret))
		return;
	why = is_unstoppable(facts);
	if (!why) {
		finding_set_state(ret, DOCTOR_OK, "permitted (not tried)");
		return;
	}
	finding_set_state(ret, is_scripted(process) ? DOCTOR_LIMITED : DOCTOR_MISSING, "%s", why);
	finding_set_effect(ret, is_scripted(process) ? "only its Python can load the agent: there is no other way"
						     : "the agent cannot be loaded");
	if (process->tracer != 0)
		finding_set_remedy(ret, false, "kill %d", (int)process->tracer);
	else if (facts->rights.is_filtered[CALL_PTRACE])
		finding_set_remedy(ret, false, CONTAINER_REMEDY);
	else if (process->state == 'T')
		finding_set_remedy(ret, false, "kill -CONT %d", (int)process->pid);
	else if (facts->machine.is_x86_64)
		finding_set_remedy(ret, false, "probing run COMMAND");
}

static bool has_no_files(const struct facts_process *process)
{
	return process->has_other_files && !process->has_proc;
}

static void run_inject(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (!is_readable(facts, ret))
		return;
	if (!is_no_host(process) && !has_no_files(process) && is_scripted(process))
		finding_set_state(ret, DOCTOR_OK, "possible: its Python loads the agent");
	else if (!is_no_host(process) && !has_no_files(process) && !is_unstoppable(facts))
		finding_set_state(ret, DOCTOR_OK, "possible: a stopped thread loads the agent");
	else
		finding_set_state(ret, DOCTOR_MISSING, "not possible: the checks below say why");
}

static void run_its_filter(const struct facts *facts, struct doctor_finding *ret)
{
	if (!facts->process.has_filter) {
		finding_set_state(ret, DOCTOR_OK, "it has no seccomp filter");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "it has a seccomp filter");
	finding_set_effect(
		ret,
		"inject loads nothing if the filter would end the process for a call of the agent; only root may read it");
}

static void run_its_files(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (!process->has_other_files) {
		finding_set_state(ret, DOCTOR_OK, "the same mounts as yours");
		return;
	}
	if (!has_no_files(process)) {
		finding_set_state(ret, DOCTOR_OK, "other mounts: it gets a copy of the agent");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "other mounts, without /proc");
	finding_set_effect(ret, "a copy of the agent cannot be loaded there");
	finding_set_remedy(ret, true, "nsenter -t %d -m mount -t proc proc /proc", (int)process->pid);
}

static void run_its_network(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (!process->has_other_network) {
		finding_set_state(ret, DOCTOR_OK, "the same network namespace as yours");
		return;
	}
	if (HAS_CAPABILITY(&facts->rights, CAPABILITY_SYS_ADMIN)) {
		finding_set_state(ret, DOCTOR_OK, "another network namespace, which you may enter");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "another network namespace");
	finding_set_effect(ret, "the agent listens there: only root and the owner of its user namespace can connect");
	finding_set_remedy(ret, true, "%s inject %d", facts->rights.program[0] ? facts->rights.program : "probing",
			   (int)process->pid);
}

static void run_sampling(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->process.sampling.error == 0) {
		finding_set_state(ret, DOCTOR_OK, "not needed: events are permitted");
	} else if (!facts->machine.is_x86_64) {
		finding_set_state(ret, DOCTOR_MISSING, "x86-64 only");
		finding_set_effect(ret, "the threads cannot sample themselves");
	} else if (facts->process.has_agent) {
		finding_set_state(ret, DOCTOR_OK,
				  "the agent listens: exact stacks, also where perf events are refused");
	} else {
		finding_set_state(ret, DOCTOR_LIMITED, "it has no agent");
		finding_set_effect(ret, "where perf events are refused, there are no native frames");
		finding_set_remedy(ret, false, "PROBING=1 python3 SCRIPT");
	}
}

static const struct doctor_check checks[] = {
	{ "inject", "inject, eval, repl, attach", run_inject },
	{ "agent_host", "inject, eval, repl, attach", run_host },
	{ "agent_by_python", "inject without a stopped thread", run_interpreter_way },
	{ "agent_by_thread", "inject by a stopped thread", run_thread_way },
	{ "agent_filter", "what the agent calls in the process", run_its_filter },
	{ "agent_files", "the agent's library in the process", run_its_files },
	{ "agent_network", "the connection to the agent", run_its_network },
	{ "agent_sampling", "record --source agent", run_sampling },
};

const struct doctor_group doctor_agent = { "agent", checks, N_ELEMENTS(checks), true };
