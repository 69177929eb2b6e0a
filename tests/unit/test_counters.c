/* SPDX-License-Identifier: MIT */
/* Quotas and throttling of control groups, in trees of files as the kernel makes them for versions 1 and 2. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/util.h"
#include "src/cli/cluster/counters.h"

struct file {
	const char *path, *text;
};

static char root[32];

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/probing-test.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make(const struct file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char path[PATH_MAX];
		FILE *out;

		snprintf(path, sizeof path, "%s/%s", root, files[i].path);
		assert_int_equal(path_make_folders(path), 0);
		out = fopen(path, "w");
		assert_non_null(out);
		fputs(files[i].text, out);
		assert_int_equal(fclose(out), 0);
	}
}

static struct counters read_from(const char *groups)
{
	struct counters counters = { .throttled_s = -1, .limit_cpus = -1 };

	counters_add_groups(root, groups, &counters);
	return counters;
}

static void expect(const struct counters *counters, double throttled_s, double limit_cpus)
{
	if (counters->throttled_s < throttled_s - 1e-9 || counters->throttled_s > throttled_s + 1e-9 ||
	    counters->limit_cpus < limit_cpus - 1e-9 || counters->limit_cpus > limit_cpus + 1e-9)
		fail_msg("throttled %g s instead of %g, %g CPUs instead of %g", counters->throttled_s, throttled_s,
			 counters->limit_cpus, limit_cpus);
}

/* Source: Documentation/admin-guide/cgroup-v2.rst of Linux 6.12, CPU Interface Files. */
#define STAT_V2(periods, throttled, usec)                                                                              \
	"usage_usec 7204818\nuser_usec 6128401\nsystem_usec 1076417\nnice_usec 0\ncore_sched.force_idle_usec 0\n"      \
	"nr_periods " periods "\nnr_throttled " throttled "\nthrottled_usec " usec "\nnr_bursts 0\nburst_usec 0\n"

/* A pod of Kubernetes: its own limit, and one of the slice above it. The root has no quota, and its cpu.stat no throttling. */
static void groups_of_version_2(void **state)
{
	static const struct file files[] = {
		{ "cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n" },
		{ "cpu.stat", "usage_usec 934811\nuser_usec 502113\nsystem_usec 432698\nnice_usec 0\n" },
		{ "kubepods.slice/cpu.max", "150000 100000\n" },
		{ "kubepods.slice/cpu.stat", STAT_V2("120", "10", "2500000") },
		{ "kubepods.slice/pod7/cpu.max", "20000 100000\n" },
		{ "kubepods.slice/pod7/cpu.stat", STAT_V2("97", "91", "6120345") },
		{ "kubepods.slice/pod7/app/cpu.max", "max 100000\n" },
		{ "kubepods.slice/pod7/app/cpu.stat", STAT_V2("0", "0", "0") },
		{ "free/cpu.max", "max 100000\n" },
		{ "free/cpu.stat", STAT_V2("0", "0", "0") },
		{ "no controller/cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n" },
	};
	struct counters app, slice, free_of_limits, without, top;

	(void)state;
	make(files, N_ELEMENTS(files));
	app = read_from("0::/kubepods.slice/pod7/app\n");
	expect(&app, 6.120345 + 2.5, 0.2);
	slice = read_from("0::/kubepods.slice\n");
	expect(&slice, 2.5, 1.5);
	free_of_limits = read_from("0::/free\n");
	expect(&free_of_limits, 0, -1);
	without = read_from("0::/no controller\n");
	expect(&without, 0, -1);
	top = read_from("0::/\n");
	expect(&top, 0, -1);
}

#define STAT_V1(ns) "nr_periods 3\nnr_throttled 2\nthrottled_time " ns "\nnr_bursts 0\nburst_time 0\n"

/* Both at once: the CPU controller is in version 1, and version 2 is mounted below. Source: sched-bwc.rst. */
static void groups_of_both_versions(void **state)
{
	static const struct file files[] = {
		{ "cpu,cpuacct/cpu.stat", STAT_V1("0") },
		{ "cpu,cpuacct/cpu.cfs_quota_us", "-1\n" },
		{ "cpu,cpuacct/cpu.cfs_period_us", "100000\n" },
		{ "cpu,cpuacct/job/cpu.stat", STAT_V1("1250000000") },
		{ "cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n" },
		{ "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n" },
		{ "cpuset/job/cpu.stat", STAT_V1("77000000000") },
		{ "unified/service/cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n" },
		{ "cpu/alone/cpu.stat", STAT_V1("3000000000") },
		{ "cpu/alone/cpu.cfs_quota_us", "300000\n" },
		{ "cpu/alone/cpu.cfs_period_us", "100000\n" },
	};
	struct counters both, alone, renamed;

	(void)state;
	make(files, N_ELEMENTS(files));
	both = read_from("5:memory:/elsewhere\n4:cpu,cpuacct:/job\n3:cpuset:/job\n0::/service\n");
	expect(&both, 1.25, 0.5);
	alone = read_from("1:cpu:/alone\n");
	expect(&alone, 3, 3);
	/* The folder may be named by one of the controllers alone. */
	renamed = read_from("1:cpuacct,cpu:/alone\n");
	expect(&renamed, 3, 3);
}

static void what_is_no_group(void **state)
{
	static const char *const texts[] = { "",       "\n",      "0\n",      "0:\n",
					     "0::\n",  "1:cpu\n", "1:cpu:\n", "0::/not/there\n",
					     ":::::\n" };

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		struct counters counters = read_from(texts[i]);

		assert_true(counters.limit_cpus < 0 && counters.throttled_s <= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_of_version_2, make_root, remove_root),
		cmocka_unit_test_setup_teardown(groups_of_both_versions, make_root, remove_root),
		cmocka_unit_test_setup_teardown(what_is_no_group, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
