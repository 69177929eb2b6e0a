/* SPDX-License-Identifier: MIT */
/* process.c - checks: whether a process may be sampled, and how. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/doctor/check.h"

static bool is_foreign(const struct facts *facts)
{
	const unsigned *uids = facts->process.uids;

	return uids[0] != facts->rights.uid || uids[1] != facts->rights.uid || uids[2] != facts->rights.uid;
}

static bool may_all(const struct facts *facts)
{
	return HAS_CAPABILITY(&facts->rights, CAPABILITY_SYS_PTRACE);
}

/* Access to another user's process needs that user, root, or file capabilities. */
static void set_access_remedy(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->rights.is_filtered[CALL_PROCESS_VM_READV])
		finding_set_remedy(ret, false, CONTAINER_REMEDY);
	else if (!is_foreign(facts) && facts->process.is_dumpable && facts->rights.ptrace_scope > 0 && !may_all(facts))
		finding_set_remedy(ret, true, "sysctl kernel.yama.ptrace_scope=0");
	else if (!may_all(facts))
		finding_suggest_setcap(facts, ret);
}

static void run_exists(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	switch (process->is) {
	case PROCESS_THERE:
		if (process->state == 'Z')
			finding_set_state(ret, DOCTOR_OK, "\"%s\", whose main thread has ended; others run",
					  process->name);
		else
			finding_set_state(ret, DOCTOR_OK, "\"%s\", state %c", process->name, process->state);
		return;
	case PROCESS_ZOMBIE:
		finding_set_state(ret, DOCTOR_MISSING, "\"%s\" has ended, and is a zombie until process %d reaps it",
				  process->name, (int)process->parent);
		break;
	case PROCESS_OF_KERNEL:
		finding_set_state(ret, DOCTOR_MISSING, "\"%s\" is a thread of the kernel", process->name);
		break;
	default:
		finding_set_state(ret, DOCTOR_MISSING, "there is no process %d%s", (int)process->pid,
				  facts->rights.in_pid_namespace ? " in this namespace" : "");
		break;
	}
	finding_set_effect(ret, "there is nothing to record or read");
}

static void run_owner(const struct facts *facts, struct doctor_finding *ret)
{
	if (!is_foreign(facts)) {
		finding_set_state(ret, DOCTOR_OK, "yours (uid %u)", facts->process.uids[1]);
		return;
	}
	if (may_all(facts)) {
		finding_set_state(ret, DOCTOR_OK, "uid %u, and you may read other users' processes",
				  facts->process.uids[1]);
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "uid %u, and you are uid %u", facts->process.uids[1],
			  (unsigned)facts->rights.uid);
	finding_set_effect(ret, "probing cannot read this process");
	set_access_remedy(facts, ret);
}

static void run_dumpable(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->process.is_dumpable) {
		finding_set_state(ret, DOCTOR_OK, "not protected");
	} else if (may_all(facts)) {
		finding_set_state(ret, DOCTOR_OK, "protected from its own user, but not from you");
	} else {
		finding_set_state(ret, DOCTOR_MISSING,
				  "protected from its own user: a setuid program, or made not dumpable");
		finding_set_effect(ret, "probing cannot read this process");
		set_access_remedy(facts, ret);
	}
}

static void run_width(const struct facts *facts, struct doctor_finding *ret)
{
	if (!facts->process.is_32_bit) {
		finding_set_state(ret, DOCTOR_OK, "64-bit");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "a 32-bit program");
	finding_set_effect(ret, "it is recorded without stacks");
}

static void run_namespace(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (!process->has_other_pids && !process->has_other_files && !process->has_other_users) {
		finding_set_state(ret, DOCTOR_OK, "the same as yours");
		return;
	}
	finding_set_state(ret, DOCTOR_OK, "different from yours:%s%s%s; its own PID is %d",
			  process->has_other_pids ? " pid" : "", process->has_other_files ? " mnt" : "",
			  process->has_other_users ? " user" : "", (int)process->own_pid);
}

static void run_memory(const struct facts *facts, struct doctor_finding *ret)
{
	int error = facts->process.memory_error;

	if (error >= 0) {
		finding_set_state(ret, DOCTOR_OK, "was read");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "reading it is refused: %s", strerror(-error));
	finding_set_effect(ret, "no Python frames: record and backtrace do not work");
	set_access_remedy(facts, ret);
}

static void run_sampling(const struct facts *facts, struct doctor_finding *ret)
{
	const struct tried_sampling *tried = &facts->process.sampling;
	uint64_t needed = (facts->process.n_threads + 1) * facts->machine.n_cpus + 64;

	if (tried->error == 0) {
		finding_set_state(ret, DOCTOR_OK, "events were opened on its threads%s",
				  tried->has_kernel ? ", kernel time too" : "");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "opening events on it is refused: %s", strerror(-tried->error));
	finding_set_effect(ret, facts->process.memory_error < 0 ? "record does not work"
								: "record reads memory on a timer: no native frames");
	if (tried->error == -EMFILE)
		finding_set_remedy(ret, true, "prlimit --pid $$ --nofile=%llu", (unsigned long long)needed);
	else if (facts->rights.is_filtered[CALL_PERF_EVENT_OPEN])
		finding_set_remedy(ret, false, CONTAINER_REMEDY);
	else if (facts->process.memory_error < 0)
		set_access_remedy(facts, ret);
	else if (facts->machine.paranoid >= 3)
		finding_set_remedy(ret, true, "sysctl kernel.perf_event_paranoid=2");
	else
		finding_suggest_setcap(facts, ret);
}

/* Judge by rights: the kernel checks the same for stopping as for reading. Source: ptrace(2), PTRACE_MODE_ATTACH. */
static void run_stopping(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (process->memory_error >= 0 && process->tracer == 0 && !facts->rights.is_filtered[CALL_PTRACE]) {
		finding_set_state(ret, DOCTOR_OK, "permitted (not tried)");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "not permitted%s",
			  process->tracer                          ? ": it already has a tracer"
			  : facts->rights.is_filtered[CALL_PTRACE] ? ": a filter"
								   : "");
	finding_set_effect(ret, process->memory_error < 0
					? "no backtrace"
					: "backtrace shows Python frames from memory, no native ones");
	if (facts->rights.is_filtered[CALL_PTRACE])
		finding_set_remedy(ret, false, CONTAINER_REMEDY);
	else if (process->tracer)
		finding_set_remedy(ret, is_foreign(facts), "kill %d", (int)process->tracer);
	else
		set_access_remedy(facts, ret);
}

static void run_tracer(const struct facts *facts, struct doctor_finding *ret)
{
	pid_t tracer = facts->process.tracer;

	if (tracer == 0) {
		finding_set_state(ret, DOCTOR_OK, "no tracer");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "process %d traces it, such as a debugger or strace", (int)tracer);
	finding_set_effect(ret, "a process has at most one tracer: backtrace stops no thread, record works");
	finding_set_remedy(ret, is_foreign(facts), "kill %d", (int)tracer);
}

static void run_threads(const struct facts *facts, struct doctor_finding *ret)
{
	finding_set_state(ret, DOCTOR_OK, "%zu", facts->process.n_threads);
}

static const struct doctor_check checks[] = {
	{ "process", "everything", run_exists },
	{ "owner", "access", run_owner },
	{ "dumpable", "access", run_dumpable },
	{ "width", "native frames", run_width },
	{ "process_namespaces", "its files and ids", run_namespace },
	{ "memory", "Python frames", run_memory },
	{ "sampling", "record with native frames", run_sampling },
	{ "stopping", "backtrace with native frames", run_stopping },
	{ "tracer", "backtrace with native frames", run_tracer },
	{ "threads", "one event per thread and CPU", run_threads },
};

static const struct doctor_check missing_checks[] = {
	{ "process", "everything", run_exists },
};

const struct doctor_group doctor_process = { "process", checks, N_ELEMENTS(checks), true };
const struct doctor_group doctor_no_process = { "process", missing_checks, N_ELEMENTS(missing_checks), false };
