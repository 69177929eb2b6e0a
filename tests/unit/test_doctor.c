/* SPDX-License-Identifier: MIT */
/* test_doctor.c - how facts are judged, and that each fault has its remedy. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/doctor/check.h"

#define ALL_CAPABILITIES UINT64_MAX

/* An ordinary user on a good machine, who asks about a process of that user's own. */
static struct facts good(void)
{
	struct facts facts = {
		.rights = { .uid = 1000,
			    .gid = 1001,
			    .memlock_bytes = 8 << 20,
			    .descriptors_soft = 1024,
			    .descriptors_hard = 100000,
			    .program = "/opt/probing" },
		.machine = { .n_cpus = 4,
			     .is_x86_64 = true,
			     .paranoid = 1,
			     .mlock_kib = 516,
			     .sampling = { .ring_bytes = 1 << 20 },
			     .bpf_error = -EPROTONOSUPPORT,
			     .bpf_reason = "needs root, or CAP_BPF and CAP_PERFMON",
			     .reads_tracefs = true,
			     .has_tracefs = true,
			     .has_kernel_names = true,
			     .has_libc = true,
			     .has_libc_debug = true,
			     .distribution = "debian",
			     .has_servers = true,
			     .folder_is_writable = true,
			     .disk_free_bytes = UINT64_C(1) << 40 },
		.process = { .pid = 77,
			     .is = PROCESS_THERE,
			     .uids = { 1000, 1000, 1000 },
			     .is_dumpable = true,
			     .own_pid = 77,
			     .n_threads = 3,
			     .python = "3.14.1",
			     .runs_scripts = true,
			     .has_proc = true,
			     .interpreter = { .path = "/usr/bin/python3", .has_debug = true },
			     .executable = { .path = "/usr/bin/python3" } },
	};

	return facts;
}

static const struct doctor_group *const groups[] = {
	&doctor_sampling, &doctor_rights, &doctor_names, &doctor_process, &doctor_python, &doctor_agent,
};

static struct doctor_finding run(const char *name, const struct facts *facts)
{
	struct doctor_finding finding = { .state = DOCTOR_OK };

	for (size_t i = 0; i < N_ELEMENTS(groups); i++)
		for (size_t k = 0; k < groups[i]->n_checks; k++)
			if (strcmp(groups[i]->checks[k].name, name) == 0)
				groups[i]->checks[k].run(facts, &finding);
	assert_true(finding.found[0] != '\0');
	assert_int_equal(finding.remedy[0] != '\0' && finding.state == DOCTOR_OK, 0);
	return finding;
}

static void assert_judged(const char *name, const struct facts *facts, enum doctor_state state, const char *found,
			  const char *remedy)
{
	struct doctor_finding finding = run(name, facts);

	if (finding.state != state)
		fail_msg("%s is %s: %s", name, doctor_state_name(finding.state), finding.found);
	if (!strstr(finding.found, found))
		fail_msg("%s: \"%s\" does not say \"%s\"", name, finding.found, found);
	if (remedy[0] == '\0' ? finding.remedy[0] != '\0' : !strstr(finding.remedy, remedy))
		fail_msg("%s: the remedy is \"%s\", not \"%s\"", name, finding.remedy, remedy);
}

static void what_keeps_the_agent_out_is_said(void **state)
{
	struct facts facts = good();

	(void)state;
	assert_judged("inject", &facts, DOCTOR_OK, "its Python loads the agent", "");
	facts.process.tracer = 9; /* no obstacle to its Python */
	assert_judged("inject", &facts, DOCTOR_OK, "its Python loads the agent", "");
	assert_judged("agent_by_thread", &facts, DOCTOR_LIMITED, "already has a tracer", "kill 9");
	facts.process.runs_scripts = false;
	assert_judged("inject", &facts, DOCTOR_MISSING, "not possible", "");
	assert_judged("agent_by_python", &facts, DOCTOR_LIMITED, "disabled", "PYTHON_DISABLE_REMOTE_DEBUG");
	assert_judged("agent_by_thread", &facts, DOCTOR_MISSING, "already has a tracer", "kill 9");
	facts = good();
	strcpy(facts.process.python, "3.11.2");
	facts.process.runs_scripts = false;
	assert_judged("inject", &facts, DOCTOR_OK, "a stopped thread loads the agent", "");
	assert_judged("agent_by_python", &facts, DOCTOR_LIMITED, "3.14 and later", "");
	facts.process.state = 'T';
	assert_judged("agent_by_thread", &facts, DOCTOR_MISSING, "it is stopped", "kill -CONT 77");
	facts.process.state = 'S';
	facts.process.has_shadow_stack = true;
	assert_judged("agent_by_thread", &facts, DOCTOR_MISSING, "shadow stack", "probing run");
	facts.process.has_shadow_stack = false;
	facts.rights.is_filtered[CALL_PTRACE] = true;
	assert_judged("agent_by_thread", &facts, DOCTOR_MISSING, "a filter forbids", "SYS_PTRACE");
	facts.rights.is_filtered[CALL_PTRACE] = false;
	facts.machine.is_x86_64 = false;
	assert_judged("agent_by_thread", &facts, DOCTOR_MISSING, "x86-64", "");
	facts.machine.is_x86_64 = true;
	facts.process.libc = LIBC_MUSL;
	assert_judged("agent_host", &facts, DOCTOR_MISSING, "musl", "");
	facts.process.libc = LIBC_NONE;
	assert_judged("agent_host", &facts, DOCTOR_MISSING, "static", "");
	assert_judged("inject", &facts, DOCTOR_MISSING, "not possible", "");
	facts.process.libc = LIBC_GLIBC;
	strcpy(facts.process.python, "2.7.18");
	assert_judged("agent_host", &facts, DOCTOR_MISSING, "older than 3.6", "");
	facts.process.python[0] = '\0';
	assert_judged("agent_host", &facts, DOCTOR_MISSING, "no Python", "");
	facts = good();
	facts.process.has_filter = true;
	assert_judged("agent_filter", &facts, DOCTOR_LIMITED, "seccomp filter", "");
	facts.process.has_other_files = true;
	assert_judged("agent_files", &facts, DOCTOR_OK, "a copy", "");
	facts.process.has_proc = false;
	assert_judged("agent_files", &facts, DOCTOR_MISSING, "without /proc", "nsenter -t 77");
	assert_judged("inject", &facts, DOCTOR_MISSING, "not possible", "");
	facts.process.has_other_network = true;
	assert_judged("agent_network", &facts, DOCTOR_LIMITED, "another network", "/opt/probing inject 77");
	facts.rights.capabilities = ALL_CAPABILITIES;
	assert_judged("agent_network", &facts, DOCTOR_OK, "may enter", "");
	facts.process.memory_error = -EPERM;
	assert_judged("inject", &facts, DOCTOR_MISSING, "memory cannot be read", "");
}

static void a_good_machine_lacks_nothing(void **state)
{
	struct facts facts = good();

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(groups); i++)
		for (size_t k = 0; k < groups[i]->n_checks; k++) {
			const char *name = groups[i]->checks[k].name;
			struct doctor_finding finding = run(name, &facts);

			assert_true(groups[i]->checks[k].purpose[0] != '\0');
			/* What an ordinary user never has. */
			if (strcmp(name, "bpf") == 0 || strcmp(name, "direct_map") == 0 ||
			    strcmp(name, "switches") == 0 || strcmp(name, "capabilities") == 0)
				continue;
			if (finding.state != DOCTOR_OK)
				fail_msg("%s: %s", name, finding.found);
		}
	assert_int_equal(facts_recording(&facts), RECORDING_WAKEUP);
	facts.machine.bpf_error = 0;
	assert_int_equal(facts_recording(&facts), RECORDING_BPF);
	assert_judged("direct_map", &facts, DOCTOR_OK, "page tables", "");
	facts.machine.direct_error = -EINVAL;
	assert_judged("direct_map", &facts, DOCTOR_LIMITED, "Linux 6.2", "");
	facts.machine.direct_error = -ECANCELED;
	assert_judged("direct_map", &facts, DOCTOR_LIMITED, "PROBING_DIRECT_MAP=0", "");
}

static void events_that_are_refused(void **state)
{
	struct facts facts = good();

	(void)state;
	facts.machine.sampling.error = facts.process.sampling.error = -EACCES;
	facts.machine.paranoid = 3;
	assert_judged("perf_event", &facts, DOCTOR_MISSING, "refused", "sysctl kernel.perf_event_paranoid=2");
	assert_judged("perf_event_paranoid", &facts, DOCTOR_MISSING, "3", "sysctl kernel.perf_event_paranoid=2");
	assert_judged("sampling", &facts, DOCTOR_MISSING, "refused", "sysctl kernel.perf_event_paranoid=2");
	assert_int_equal(facts_recording(&facts), RECORDING_POLL);
	assert_judged("agent_sampling", &facts, DOCTOR_LIMITED, "has no agent", "PROBING=1");
	facts.process.has_agent = true;
	assert_judged("agent_sampling", &facts, DOCTOR_OK, "exact stacks", "");
	assert_int_equal(facts_recording(&facts), RECORDING_AGENT);
	facts.process.memory_error = -EPERM; /* it lends its memory */
	assert_int_equal(facts_recording(&facts), RECORDING_AGENT);
	facts.machine.is_x86_64 = false;
	assert_judged("agent_sampling", &facts, DOCTOR_MISSING, "x86-64", "");
	assert_int_equal(facts_recording(&facts), RECORDING_NONE);
	facts.machine.is_x86_64 = true;
	facts.process.memory_error = 0;
	facts.process.has_agent = false;
	facts.rights.capabilities = ALL_CAPABILITIES;
	assert_judged("perf_event_paranoid", &facts, DOCTOR_OK, "without effect: you have CAP_PERFMON", "");
	facts.rights.capabilities = ALL_CAPABILITIES & ~(UINT64_C(1) << CAPABILITY_SYS_ADMIN);
	assert_judged("perf_event_paranoid", &facts, DOCTOR_MISSING, "CAP_PERFMON is not enough",
		      "sysctl kernel.perf_event_paranoid=2");
	facts.machine.sampling.error = 0;
	assert_judged("perf_event_paranoid", &facts, DOCTOR_OK, "without effect: you have CAP_PERFMON", "");
	facts.rights.capabilities = 0;

	facts.machine.sampling.error = -EPERM;
	facts.rights.has_filter = facts.rights.is_filtered[CALL_PERF_EVENT_OPEN] = true;
	assert_judged("perf_event", &facts, DOCTOR_MISSING, "seccomp", "--cap-add PERFMON");
	assert_judged("seccomp", &facts, DOCTOR_LIMITED, "perf_event_open", "--cap-add PERFMON");
	assert_judged("switches", &facts, DOCTOR_MISSING, "need perf_event", "");

	facts = good();
	facts.machine.sampling.error = -EMFILE;
	assert_judged("perf_event", &facts, DOCTOR_MISSING, "Too many open files", "--nofile=80");
	facts.machine.sampling.error = -ENOBUFS;
	assert_judged("rings", &facts, DOCTOR_MISSING, "none could be created", "perf_event_mlock_kb=1032");
	facts = good();
	facts.machine.sampling.rings_are_small = true;
	assert_judged("rings", &facts, DOCTOR_LIMITED, "1024 KiB", "perf_event_mlock_kb");
}

static void what_ordinary_users_lack(void **state)
{
	struct facts facts = good();

	(void)state;
	assert_judged("bpf", &facts, DOCTOR_MISSING, "CAP_BPF", "setcap cap_perfmon,cap_bpf");
	assert_judged("switches", &facts, DOCTOR_LIMITED, "needs bpf", "");
	facts.machine.bpf_error = 0;
	assert_judged("switches", &facts, DOCTOR_OK, "a BPF program", "");
	facts.machine.switches_error = -ESRCH;
	assert_judged("switches", &facts, DOCTOR_LIMITED, "CONFIG_DEBUG_INFO_BTF (No such process)", "");
	assert_judged("capabilities", &facts, DOCTOR_LIMITED, "uid 1000 has none", "+ep /opt/probing");
	/* If file capabilities have no effect, they are no remedy. */
	facts.rights.gains_nothing = true;
	assert_judged("capabilities", &facts, DOCTOR_LIMITED, "uid 1000 has none", "");
	facts.rights.capabilities = ALL_CAPABILITIES;
	assert_judged("capabilities", &facts, DOCTOR_OK, "CAP_PERFMON", "");
	facts = good();
	facts.machine.reads_tracefs = false;
	assert_judged("tracefs", &facts, DOCTOR_MISSING, "you may not read it", "remount,mode=755,gid=1001 ");
	facts.machine.has_tracefs = false;
	assert_judged("tracefs", &facts, DOCTOR_MISSING, "not mounted", "mount -t tracefs");
	facts = good();
	facts.machine.has_kernel_names = false;
	assert_judged("kernel_names", &facts, DOCTOR_LIMITED, "hidden", "sysctl kernel.perf_event_paranoid=1");
	facts.machine.kptr_restrict = 1;
	assert_judged("kernel_names", &facts, DOCTOR_LIMITED, "hidden", "sysctl kernel.kptr_restrict=0");
}

static void addresses_of_the_kernel_are_hidden_when_all_are(void **state)
{
	(void)state;
	assert_true(facts_shows_addresses("ffffffff81000000 T _text\n"));
	assert_true(
		facts_shows_addresses("0000000000000000 A fixed_percpu_data\n0000000000001000 A cpu_debug_store\n"));
	assert_false(facts_shows_addresses("0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n00000"));
	assert_false(facts_shows_addresses(""));
}

static void what_a_process_forbids(void **state)
{
	struct facts facts = good();

	(void)state;
	facts.process.memory_error = -EPERM;
	facts.rights.ptrace_scope = 1;
	assert_judged("memory", &facts, DOCTOR_MISSING, "refused", "sysctl kernel.yama.ptrace_scope=0");
	assert_judged("stopping", &facts, DOCTOR_MISSING, "not permitted", "sysctl kernel.yama.ptrace_scope=0");
	assert_judged("ptrace_scope", &facts, DOCTOR_LIMITED, "1", "sysctl kernel.yama.ptrace_scope=0");
	assert_judged("python", &facts, DOCTOR_MISSING, "unknown", "");
	assert_int_equal(facts_recording(&facts), RECORDING_NONE);
	facts.rights.ptrace_scope = 3;
	assert_judged("ptrace_scope", &facts, DOCTOR_MISSING, "the kernel forbids", "");

	facts = good();
	facts.process.uids[1] = 5;
	assert_judged("owner", &facts, DOCTOR_MISSING, "uid 5", "setcap");
	facts.rights.capabilities = ALL_CAPABILITIES;
	assert_judged("owner", &facts, DOCTOR_OK, "uid 5", "");

	facts = good();
	facts.process.is_dumpable = false;
	assert_judged("dumpable", &facts, DOCTOR_MISSING, "protected", "setcap");
	facts.process.is_32_bit = true;
	assert_judged("width", &facts, DOCTOR_MISSING, "32-bit", "");
	facts.process.tracer = 9;
	assert_judged("tracer", &facts, DOCTOR_LIMITED, "process 9", "kill 9");
	assert_judged("stopping", &facts, DOCTOR_MISSING, "already has a tracer", "kill 9");
	assert_int_equal(facts_recording(&facts), RECORDING_WAKEUP);
}

static void pythons(void **state)
{
	struct facts facts = good();

	(void)state;
	strcpy(facts.process.python, "3.12.1");
	assert_judged("python", &facts, DOCTOR_OK, "layout of that release", "");
	strcpy(facts.process.python, "3.14.0");
	assert_judged("python", &facts, DOCTOR_OK, "debug offsets", "");
	facts.process.python_error = -EAGAIN;
	assert_judged("python", &facts, DOCTOR_LIMITED, "starting", "probing doctor 77");
	facts.process.python_error = -EOPNOTSUPP;
	assert_judged("python", &facts, DOCTOR_MISSING, "3.14.0 cannot be read", "");
	facts.process.python_error = -ENOENT;
	assert_judged("python", &facts, DOCTOR_MISSING, "none", "");
	facts = good();
	facts.process.executable.error = -ESTALE;
	assert_judged("executable", &facts, DOCTOR_LIMITED, "replaced", "record --pid 77");
	facts.process.n_generated = 2;
	assert_judged("generated_code", &facts, DOCTOR_LIMITED, "without symbols", "");
	facts.process.has_perf_map = true;
	assert_judged("generated_code", &facts, DOCTOR_OK, "perf map", "");
}

static void disks(void **state)
{
	struct facts facts = good();

	(void)state;
	facts.machine.disk_free_bytes = 100 << 20;
	assert_judged("disk", &facts, DOCTOR_LIMITED, "100 MiB", "cd");
	facts.machine.disk_free_bytes = 0;
	assert_judged("disk", &facts, DOCTOR_MISSING, "0 MiB", "cd");
	facts.machine.folder_is_writable = false;
	assert_judged("disk", &facts, DOCTOR_MISSING, "not write", "cd");
}

static const struct doctor_finding *find(const struct doctor_report *report, const char *name)
{
	for (size_t i = 0; i < report->n_findings; i++)
		if (strcmp(report->findings[i].name, name) == 0)
			return &report->findings[i];
	return NULL;
}

static void a_report_of_this_process(void **state)
{
	CLEANUP(doctor_report_freep) struct doctor_report *report = NULL;

	(void)state;
	assert_int_equal(doctor_examine(getpid(), &report), 0);
	assert_int_equal(report->process, PROCESS_THERE);
	assert_int_equal(find(report, "process")->state, DOCTOR_OK);
	assert_int_equal(find(report, "owner")->state, DOCTOR_OK);
	assert_int_equal(find(report, "python")->state, DOCTOR_MISSING);
	assert_non_null(strstr(find(report, "threads")->found, "1"));
}

static void a_report_of_nobody(void **state)
{
	CLEANUP(doctor_report_freep) struct doctor_report *report = NULL;

	(void)state;
	assert_int_equal(doctor_examine(1 << 22, &report), 0);
	assert_int_equal(report->process, PROCESS_GONE);
	assert_int_equal(report->recording, RECORDING_NONE);
	assert_int_equal(find(report, "process")->state, DOCTOR_MISSING);
	assert_null(find(report, "memory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_keeps_the_agent_out_is_said),
		cmocka_unit_test(a_good_machine_lacks_nothing),
		cmocka_unit_test(events_that_are_refused),
		cmocka_unit_test(what_ordinary_users_lack),
		cmocka_unit_test(addresses_of_the_kernel_are_hidden_when_all_are),
		cmocka_unit_test(what_a_process_forbids),
		cmocka_unit_test(pythons),
		cmocka_unit_test(disks),
		cmocka_unit_test(a_report_of_this_process),
		cmocka_unit_test(a_report_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
