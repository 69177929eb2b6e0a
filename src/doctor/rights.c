/* SPDX-License-Identifier: MIT */
/* rights.c - checks: our rights over other processes. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/doctor/check.h"

/* List the relevant capabilities: "CAP_PERFMON, CAP_BPF". */
static void list_capabilities(const struct facts *facts, bool present, char *to, size_t n_bytes)
{
	static const struct {
		int number;
		const char *name;
	} known[] = {
		{ CAPABILITY_PERFMON, "CAP_PERFMON" },       { CAPABILITY_BPF, "CAP_BPF" },
		{ CAPABILITY_SYS_PTRACE, "CAP_SYS_PTRACE" }, { CAPABILITY_IPC_LOCK, "CAP_IPC_LOCK" },
		{ CAPABILITY_SYSLOG, "CAP_SYSLOG" },
	};
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < N_ELEMENTS(known); i++)
		if (HAS_CAPABILITY(&facts->rights, known[i].number) == present && used < n_bytes)
			used += (size_t)snprintf(to + used, n_bytes - used, "%s%s", used ? ", " : "", known[i].name);
}

static void run_capabilities(const struct facts *facts, struct doctor_finding *ret)
{
	char have[128], lack[128];

	list_capabilities(facts, true, have, sizeof have);
	list_capabilities(facts, false, lack, sizeof lack);
	if (!lack[0]) {
		finding_set_state(ret, facts->rights.in_user_namespace ? DOCTOR_LIMITED : DOCTOR_OK, "%s", have);
		if (facts->rights.in_user_namespace)
			finding_set_effect(ret, "in this user namespace they have no effect on events and BPF");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "uid %u has %s; not %s", (unsigned)facts->rights.uid,
			  have[0] ? have : "none", lack);
	finding_set_effect(ret, "only your own processes can be read");
	finding_suggest_setcap(facts, ret);
}

static void run_seccomp(const struct facts *facts, struct doctor_finding *ret)
{
	static const char *const names[N_CALLS] = {
		[CALL_PERF_EVENT_OPEN] = "perf_event_open",
		[CALL_PROCESS_VM_READV] = "process_vm_readv",
		[CALL_PTRACE] = "ptrace",
		[CALL_BPF] = "bpf",
	};
	char list[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < N_CALLS; i++)
		if (facts->rights.is_filtered[i] && used < sizeof list)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", names[i]);
	if (!list[0]) {
		finding_set_state(ret, DOCTOR_OK, "%s",
				  facts->rights.has_filter ? "a filter that allows the needed calls" : "no filter");
		return;
	}
	finding_set_state(ret, facts->rights.is_filtered[CALL_PROCESS_VM_READV] ? DOCTOR_MISSING : DOCTOR_LIMITED,
			  "%s forbids %s", facts->rights.has_filter ? "a filter" : "something", list);
	finding_set_effect(ret, "%s",
			   facts->rights.is_filtered[CALL_PROCESS_VM_READV]
				   ? "memory of processes cannot be read: no Python frames"
				   : "see the checks of the forbidden calls");
	finding_set_remedy(ret, false, CONTAINER_REMEDY);
}

static void run_ptrace_scope(const struct facts *facts, struct doctor_finding *ret)
{
	long scope = facts->rights.ptrace_scope;

	if (scope <= 0 || (scope < 3 && HAS_CAPABILITY(&facts->rights, CAPABILITY_SYS_PTRACE))) {
		finding_set_state(ret, DOCTOR_OK, scope <= 0 ? "%ld" : "%ld, without effect: you have CAP_SYS_PTRACE",
				  scope);
	} else if (scope >= 3) {
		finding_set_state(ret, DOCTOR_MISSING, "%ld: the kernel forbids reading processes until the next boot",
				  scope);
		finding_set_effect(ret, "record and backtrace work on no process");
	} else {
		finding_set_state(ret, DOCTOR_LIMITED, "%ld: %s", scope,
				  scope == 1 ? "your own children only" : "administrators only");
		finding_set_effect(ret, scope == 1 ? "record -- CMD works; record --pid and backtrace do not"
						   : "record and backtrace do not work");
		finding_set_remedy(ret, true, "sysctl kernel.yama.ptrace_scope=0");
	}
}

static void run_namespaces(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_rights *rights = &facts->rights;

	if (!rights->in_pid_namespace && !rights->in_user_namespace && !rights->in_container) {
		finding_set_state(ret, DOCTOR_OK, "those of the machine");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "in %s%s%s", rights->in_container ? "a container" : "a namespace",
			  rights->in_pid_namespace ? ", process ids are its own" : "",
			  rights->in_user_namespace ? ", users are its own" : "");
	finding_set_effect(ret, "%s",
			   rights->in_pid_namespace || rights->in_user_namespace
				   ? "no --source bpf here; run probing on the host"
				   : "the container's options decide");
}

static const struct doctor_check checks[] = {
	{ "capabilities", "other users' processes", run_capabilities },
	{ "seccomp", "the system calls that probing needs", run_seccomp },
	{ "ptrace_scope", "memory of processes, and stopping them", run_ptrace_scope },
	{ "namespaces", "process ids and capabilities that count", run_namespaces },
};

const struct doctor_group doctor_rights = { "rights", checks, N_ELEMENTS(checks), false };
