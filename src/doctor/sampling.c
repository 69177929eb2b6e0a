/* SPDX-License-Identifier: MIT */
/* sampling.c - checks: the sources of samples. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/doctor/check.h"

/* Other descriptors of a recording, and the threads of a large program. */
enum { OTHER_DESCRIPTORS = 64, MANY_THREADS = 200 };

static bool has_perfmon(const struct facts *facts)
{
	return HAS_CAPABILITY(&facts->rights, CAPABILITY_PERFMON) ||
	       HAS_CAPABILITY(&facts->rights, CAPABILITY_SYS_ADMIN);
}

static bool is_filtered(const struct facts *facts)
{
	return facts->rights.has_filter && facts->rights.is_filtered[CALL_PERF_EVENT_OPEN];
}

static uint64_t descriptors_needed(const struct facts *facts)
{
	size_t n_threads = facts->process.is == PROCESS_THERE ? facts->process.n_threads : MANY_THREADS;

	return (n_threads + 1) * facts->machine.n_cpus + OTHER_DESCRIPTORS;
}

static void set_sampling_remedy(const struct facts *facts, int error, struct doctor_finding *ret)
{
	if (is_filtered(facts))
		finding_set_remedy(ret, false, CONTAINER_REMEDY);
	else if (error == -EMFILE)
		finding_set_remedy(ret, true, "prlimit --pid $$ --nofile=%llu",
				   (unsigned long long)descriptors_needed(facts));
	else if (error == -ENOBUFS)
		finding_set_remedy(ret, true, "sysctl kernel.perf_event_mlock_kb=%ld",
				   MAX(facts->machine.mlock_kib, 0) + 516);
	else if (facts->machine.paranoid >= 3)
		finding_set_remedy(ret, true, "sysctl kernel.perf_event_paranoid=2");
	else
		finding_suggest_setcap(facts, ret);
}

static void run_perf_event(const struct facts *facts, struct doctor_finding *ret)
{
	const struct tried_sampling *tried = &facts->machine.sampling;

	if (tried->error == 0) {
		finding_set_state(ret, DOCTOR_OK, "opened one on each of %u CPUs", facts->machine.n_cpus);
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "perf_event_open is refused: %s%s", strerror(-tried->error),
			  is_filtered(facts) ? " (a seccomp filter)"
			  : has_perfmon(facts) && facts->rights.in_user_namespace
				  ? " (capabilities of a user namespace do not count)"
				  : "");
	finding_set_effect(ret, "Python frames are read from memory on a timer (--source poll): no native frames");
	set_sampling_remedy(facts, tried->error, ret);
}

static void run_paranoid(const struct facts *facts, struct doctor_finding *ret)
{
	long level = facts->machine.paranoid;
	/*
	 * From level 3 on, a patch of distributions, the kernel mostly does not check CAP_PERFMON:
	 * src/capture/explain.c.
	 */
	bool is_exempt = has_perfmon(facts) && !facts->rights.in_user_namespace &&
			 (level < 3 || HAS_CAPABILITY(&facts->rights, CAPABILITY_SYS_ADMIN) ||
			  facts->machine.sampling.error != -EACCES);

	if (is_exempt) {
		finding_set_state(ret, DOCTOR_OK, "%ld, without effect: you have CAP_PERFMON", level);
	} else if (level <= 1) {
		finding_set_state(ret, DOCTOR_OK, "%ld: your own processes, kernel included", level);
	} else if (level == 2) {
		finding_set_state(ret, DOCTOR_LIMITED, "2: your own processes, without the kernel");
		finding_set_effect(ret, "not permitted; user time of your own processes is");
		finding_set_remedy(ret, true, "sysctl kernel.perf_event_paranoid=1");
	} else {
		finding_set_state(ret, DOCTOR_MISSING, "%ld: root alone%s", level,
				  has_perfmon(facts) ? ", CAP_PERFMON is not enough" : "");
		finding_set_effect(ret, "not permitted; your own processes have no native frames");
		finding_set_remedy(ret, true, "sysctl kernel.perf_event_paranoid=2");
	}
}

static void run_rings(const struct facts *facts, struct doctor_finding *ret)
{
	const struct tried_sampling *tried = &facts->machine.sampling;
	char memlock[32] = "unlimited";

	if (facts->rights.memlock_bytes != UINT64_MAX)
		snprintf(memlock, sizeof memlock, "%llu KiB", (unsigned long long)facts->rights.memlock_bytes / 1024);
	if (tried->error < 0) {
		finding_set_state(ret, tried->error == -ENOBUFS ? DOCTOR_MISSING : DOCTOR_LIMITED,
				  "none could be created; perf_event_mlock_kb is %ld, ulimit -l %s",
				  facts->machine.mlock_kib, memlock);
		if (tried->error == -ENOBUFS)
			set_sampling_remedy(facts, tried->error, ret);
		return;
	}
	finding_set_state(ret, tried->rings_are_small ? DOCTOR_LIMITED : DOCTOR_OK,
			  "%zu KiB per CPU; perf_event_mlock_kb is %ld, ulimit -l %s", tried->ring_bytes / 1024,
			  facts->machine.mlock_kib, memlock);
	if (!tried->rings_are_small)
		return;
	finding_set_effect(ret, "bursts of samples may be lost (and are counted)");
	finding_set_remedy(ret, true, "sysctl kernel.perf_event_mlock_kb=4100");
}

static void run_descriptors(const struct facts *facts, struct doctor_finding *ret)
{
	uint64_t needed = descriptors_needed(facts), hard = facts->rights.descriptors_hard;
	bool is_enough = needed <= hard;

	finding_set_state(ret, is_enough ? DOCTOR_OK : DOCTOR_LIMITED, "at most %llu (ulimit -Hn); %s takes about %llu",
			  (unsigned long long)hard,
			  facts->process.is == PROCESS_THERE ? "this process" : "a process of 200 threads",
			  (unsigned long long)needed);
	if (is_enough)
		return;
	finding_set_effect(ret, "more threads than these are sampled by --source bpf or poll only");
	finding_set_remedy(ret, true, "prlimit --pid $$ --nofile=%llu", (unsigned long long)needed);
}

static void run_bpf(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (machine->bpf_error == 0) {
		finding_set_state(ret, DOCTOR_OK, "the program is loaded and attached");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "%s",
			  machine->bpf_error == -EPROTONOSUPPORT ? machine->bpf_reason : "takes perf_event, see there");
	finding_set_effect(ret,
			   "Python frames are read directly after a sample instead of inside the interrupt: some are "
			   "approximate");
	if (strstr(machine->bpf_reason, "needs a build"))
		finding_set_remedy(ret, false, "meson configure build -Dbpf=enabled");
	else if (strstr(machine->bpf_reason, "CAP_BPF"))
		finding_suggest_setcap(facts, ret);
}

static void run_direct_map(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (machine->bpf_error == 0 && machine->direct_error == 0) {
		finding_set_state(ret, DOCTOR_OK, "memory is read by page tables");
		return;
	}
	if (machine->bpf_error < 0)
		finding_set_state(ret, DOCTOR_LIMITED, "not tested: it needs bpf, see there");
	else if (machine->direct_error == -ECANCELED)
		finding_set_state(ret, DOCTOR_LIMITED,
				  "memory is copied by the kernel: PROBING_DIRECT_MAP=0 is in the environment");
	else
		finding_set_state(
			ret, DOCTOR_LIMITED,
			"memory is copied by the kernel: page tables take x86-64, Linux 6.2 and CONFIG_DEBUG_INFO_BTF (%s)",
			strerror(-machine->direct_error));
	finding_set_effect(ret, "a sample takes some microseconds more, and is as exact");
}

static void run_switches(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (machine->bpf_error == 0 && machine->switches_error == 0) {
		finding_set_state(ret, DOCTOR_OK, "traced by a BPF program");
		return;
	}
	if (machine->sampling.error < 0) {
		finding_set_state(ret, DOCTOR_MISSING, "need perf_event, see there");
		finding_set_effect(
			ret, "only of processes with the agent: see agent_source; --source poll does not see them");
		return;
	}
	if (machine->bpf_error < 0)
		finding_set_state(ret, DOCTOR_LIMITED, "traced by perf events; a BPF program needs bpf, see there");
	else
		finding_set_state(
			ret, DOCTOR_LIMITED,
			"traced by perf events; a BPF program needs Linux 5.18 or later with CONFIG_DEBUG_INFO_BTF (%s)",
			strerror(-machine->switches_error));
	finding_set_effect(ret, "each costs the threads several times as much");
}

static void run_counters(const struct facts *facts, struct doctor_finding *ret)
{
	int error = facts->machine.counters_error;

	if (error == 0) {
		finding_set_state(ret, DOCTOR_OK, "cycles can be counted");
		return;
	}
	finding_set_effect(ret, "not here; samples by time need none of them");
	if (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV) {
		finding_set_state(ret, DOCTOR_MISSING, "the processor's are not there, as in most virtual machines");
		return;
	}
	finding_set_state(ret, DOCTOR_MISSING, "refused: %s", strerror(-error));
	set_sampling_remedy(facts, error, ret);
}

static void run_tracefs(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (machine->reads_tracefs) {
		finding_set_state(ret, DOCTOR_OK, "mounted and readable");
		return;
	}
	finding_set_effect(ret, "not here; samples by time need none of them");
	finding_set_state(ret, DOCTOR_MISSING, "%s",
			  machine->has_tracefs ? "mounted, but you may not read it" : "not mounted");
	if (machine->has_tracefs)
		finding_set_remedy(ret, true, "mount -o remount,mode=755,gid=%u /sys/kernel/tracing",
				   facts->rights.gid);
	else
		finding_set_remedy(ret, true, "mount -t tracefs nodev /sys/kernel/tracing");
}

/* What needs no right at all. */
static void run_agent_source(const struct facts *facts, struct doctor_finding *ret)
{
	if (!facts->machine.is_x86_64) {
		finding_set_state(ret, DOCTOR_MISSING, "x86-64 only");
		finding_set_effect(ret, "threads cannot sample themselves");
	} else if (facts->machine.sampling.error == 0) {
		finding_set_state(ret, DOCTOR_OK, "not needed: events are permitted");
	} else {
		finding_set_state(
			ret, DOCTOR_OK,
			"programs started with PROBING=1 sample themselves, with PROBING_RECORD=FILE from the start on");
	}
}

static const struct doctor_check checks[] = {
	{ "perf_event", "samples with native frames", run_perf_event },
	{ "perf_event_paranoid", "samples of time in the kernel, and of other users' processes", run_paranoid },
	{ "rings", "room for samples until they are read", run_rings },
	{ "descriptors", "one event per thread and CPU", run_descriptors },
	{ "bpf", "Python frames of the very instant of a sample", run_bpf },
	{ "direct_map", "bpf at half its price", run_direct_map },
	{ "switches", "--mode wall and offcpu: when threads come and go", run_switches },
	{ "hardware_counters", "samples by cycles, cache misses and the like", run_counters },
	{ "tracefs", "samples by tracepoints", run_tracefs },
	{ "agent_source", "recordings where perf events are refused", run_agent_source },
};

const struct doctor_group doctor_sampling = { "sampling", checks, N_ELEMENTS(checks), false };
