/* SPDX-License-Identifier: MIT */
/* names.c - checks: sources of symbols, and the folder of recordings. */
#include <string.h>

#include "base/util.h"
#include "src/doctor/check.h"

/* Enough for days of recording; too little for an hour. */
#define MUCH_BYTES (UINT64_C(1) << 30)
#define LITTLE_BYTES (UINT64_C(16) << 20)

static void run_kernel_names(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (machine->has_kernel_names) {
		finding_set_state(ret, DOCTOR_OK, "/proc/kallsyms has addresses; kptr_restrict is %ld",
				  machine->kptr_restrict);
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "addresses are hidden from you; kptr_restrict is %ld",
			  machine->kptr_restrict);
	finding_set_effect(ret, "kernel frames are [kernel]; probing symbolize as root names them later");
	/* With 0, perf_event_paranoid decides: kernel/kallsyms.c, kallsyms_show_value(). */
	if (machine->kptr_restrict == 0)
		finding_set_remedy(ret, true, "sysctl kernel.perf_event_paranoid=1");
	else
		finding_set_remedy(ret, true, "sysctl kernel.kptr_restrict=0");
}

static void set_package_remedy(const struct facts *facts, struct doctor_finding *ret)
{
	const char *distribution = facts->machine.distribution;

	if (strcmp(distribution, "debian") == 0 || strcmp(distribution, "ubuntu") == 0)
		finding_set_remedy(ret, true, "apt-get install libc6-dbg");
	else if (strcmp(distribution, "fedora") == 0)
		finding_set_remedy(ret, true, "dnf debuginfo-install glibc");
}

static void run_debug_files(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (!machine->has_libc || machine->has_libc_debug) {
		finding_set_state(ret, DOCTOR_OK,
				  machine->has_libc ? "libc has its debug file"
						    : "probing is linked statically with libc");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "/usr/lib/debug has no debug file for %s", machine->libc);
	finding_set_effect(ret, "its functions have no lines, and only exported ones have names");
	set_package_remedy(facts, ret);
}

static void run_servers(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->machine.has_servers) {
		finding_set_state(ret, DOCTOR_OK, "DEBUGINFOD_URLS is set");
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "DEBUGINFOD_URLS is not set");
	finding_set_effect(ret, "files without an installed debug file stay without lines");
	finding_set_remedy(ret, false, "export DEBUGINFOD_URLS=\"URL\"");
}

static void run_pythons(const struct facts *facts, struct doctor_finding *ret)
{
	finding_set_state(ret, DOCTOR_OK, "%s are supported", facts->machine.pythons);
}

static void run_disk(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;
	unsigned long long mib = machine->disk_free_bytes >> 20;

	if (!machine->folder_is_writable) {
		finding_set_state(ret, DOCTOR_MISSING, "you may not write into this folder");
		finding_set_effect(ret, "record needs another folder for its file");
		finding_set_remedy(ret, false, "cd /tmp");
		return;
	}
	finding_set_state(ret,
			  mib < LITTLE_BYTES >> 20 ? DOCTOR_MISSING
			  : mib < MUCH_BYTES >> 20 ? DOCTOR_LIMITED
						   : DOCTOR_OK,
			  "%llu MiB are free in this folder", mib);
	if (mib >= MUCH_BYTES >> 20)
		return;
	finding_set_effect(ret, "a long recording may fill it");
	finding_set_remedy(ret, false, "cd /tmp");
}

static const struct doctor_check checks[] = {
	{ "kernel_names", "names of kernel functions", run_kernel_names },
	{ "debug_files", "lines of native functions, and names of hidden ones", run_debug_files },
	{ "debuginfod", "debug files that are not installed", run_servers },
	{ "python_versions", "Python frames", run_pythons },
	{ "disk", "the recording", run_disk },
};

const struct doctor_group doctor_names = { "names and files", checks, N_ELEMENTS(checks), false };
