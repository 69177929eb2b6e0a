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
		say_found(ret, DOCTOR_OK, "/proc/kallsyms has addresses; kptr_restrict is %ld", machine->kptr_restrict);
		return;
	}
	say_found(ret, DOCTOR_LIMITED, "addresses are hidden from you; kptr_restrict is %ld", machine->kptr_restrict);
	say_means(ret, "kernel frames are [kernel]; probing symbolize as root names them later");
	/* With 0, perf_event_paranoid decides: kernel/kallsyms.c, kallsyms_show_value(). */
	if (machine->kptr_restrict == 0)
		say_remedy(ret, true, "sysctl kernel.perf_event_paranoid=1");
	else
		say_remedy(ret, true, "sysctl kernel.kptr_restrict=0");
}

static void say_package(const struct facts *facts, struct doctor_finding *ret)
{
	const char *distribution = facts->machine.distribution;

	if (strcmp(distribution, "debian") == 0 || strcmp(distribution, "ubuntu") == 0)
		say_remedy(ret, true, "apt-get install libc6-dbg");
	else if (strcmp(distribution, "fedora") == 0)
		say_remedy(ret, true, "dnf debuginfo-install glibc");
}

static void run_debug_files(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;

	if (!machine->has_libc || machine->has_libc_debug) {
		say_found(ret, DOCTOR_OK,
			  machine->has_libc ? "libc has its debug file" : "probing is linked statically with libc");
		return;
	}
	say_found(ret, DOCTOR_LIMITED, "/usr/lib/debug has no debug file for %s", machine->libc);
	say_means(ret, "its functions have no lines, and only exported ones have names");
	say_package(facts, ret);
}

static void run_servers(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->machine.has_servers) {
		say_found(ret, DOCTOR_OK, "DEBUGINFOD_URLS is set");
		return;
	}
	say_found(ret, DOCTOR_LIMITED, "DEBUGINFOD_URLS is not set");
	say_means(ret, "files without an installed debug file stay without lines");
	say_remedy(ret, false, "export DEBUGINFOD_URLS=\"URL\"");
}

static void run_pythons(const struct facts *facts, struct doctor_finding *ret)
{
	say_found(ret, DOCTOR_OK, "%s are supported", facts->machine.pythons);
}

static void run_disk(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_machine *machine = &facts->machine;
	unsigned long long mib = machine->disk_free_bytes >> 20;

	if (!machine->folder_is_writable) {
		say_found(ret, DOCTOR_MISSING, "you may not write into this folder");
		say_means(ret, "record needs another folder for its file");
		say_remedy(ret, false, "cd /tmp");
		return;
	}
	say_found(ret,
		  mib < LITTLE_BYTES >> 20 ? DOCTOR_MISSING
		  : mib < MUCH_BYTES >> 20 ? DOCTOR_LIMITED
					   : DOCTOR_OK,
		  "%llu MiB are free in this folder", mib);
	if (mib >= MUCH_BYTES >> 20)
		return;
	say_means(ret, "a long recording may fill it");
	say_remedy(ret, false, "cd /tmp");
}

static const struct doctor_check checks[] = {
	{ "kernel_names", "names of kernel functions", run_kernel_names },
	{ "debug_files", "lines of native functions, and names of hidden ones", run_debug_files },
	{ "debuginfod", "debug files that are not installed", run_servers },
	{ "python_versions", "Python frames", run_pythons },
	{ "disk", "the recording", run_disk },
};

const struct doctor_group doctor_names = { "names and files", checks, N_ELEMENTS(checks), false };
