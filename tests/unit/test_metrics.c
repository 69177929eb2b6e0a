/* SPDX-License-Identifier: MIT */
/* test_metrics.c - numbers out of texts as the kernel writes them, and of this process and machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/metrics/sources.h"

enum { TICK_NS = 10000000 };

static struct metrics *metrics;

static int make_metrics(void **state)
{
	(void)state;
	return metrics_new(&metrics);
}

static int free_metrics(void **state)
{
	(void)state;
	metrics_free(metrics);
	return 0;
}

static const char stat_text[] =
	"4242 (a) b) S 1 4242 4242 0 -1 4194304 100 0 7 0 12 34 5 6 20 0 3 0 100 1000 50 18446744073709551615\n";
static const char status_text[] = "Name:\ta) b\nVmSize:\t    5432 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\n"
				  "VmSwap:\t       8 kB\n";

static void a_process_is_parsed(void **state)
{
	struct process_files files = { stat_text, status_text, "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n" };
	struct process_usage_row row;

	(void)state;
	assert_int_equal(metrics_parse_process(&files, TICK_NS, &row), 0);
	assert_int_equal(row.rss, 1024 << 10);
	assert_int_equal(row.anonymous, 512 << 10);
	assert_int_equal(row.swap, 8 << 10);
	assert_int_equal(row.virtual, 5432 << 10);
	assert_int_equal(row.threads, 3);
	assert_int_equal(row.user_ns, 12 * TICK_NS);
	assert_int_equal(row.system_ns, 34 * TICK_NS);
	assert_int_equal(row.major_faults, 7);
	assert_int_equal(row.read_bytes, 4096);
	assert_int_equal(row.written_bytes, 8192);
	files.io = NULL;
	assert_int_equal(metrics_parse_process(&files, TICK_NS, &row), 0);
	assert_int_equal(row.read_bytes, METRIC_UNKNOWN);
	assert_int_equal(row.written_bytes, METRIC_UNKNOWN);
}

static void what_is_no_process_is_refused(void **state)
{
	struct process_files files = { stat_text, "Name:\tx\nState:\tZ (zombie)\n", NULL };
	struct process_usage_row row = { .rss = 5 };

	(void)state;
	assert_int_equal(metrics_parse_process(&files, TICK_NS, &row), -ESRCH);
	files = (struct process_files){ "4242 (x) S 1 2", status_text, NULL };
	assert_int_equal(metrics_parse_process(&files, TICK_NS, &row), -EBADMSG);
	files.stat = NULL;
	assert_int_equal(metrics_parse_process(&files, TICK_NS, &row), -EBADMSG);
	assert_int_equal(row.rss, 5);
}

static void numbers_that_overflow_are_unknown(void **state)
{
	const struct process_files files = { "1 (x) S 1 1 1 0 -1 0 0 0 0 0 18446744073709551615 1 0 0 20 0 3 0 100\n",
					     "VmSize:\t1 kB\nVmRSS:\t18446744073709551615 kB\nRssAnon:\t\n", NULL };
	struct process_usage_row row;

	(void)state;
	assert_int_equal(metrics_parse_process(&files, TICK_NS, &row), 0);
	assert_int_equal(row.user_ns, METRIC_UNKNOWN);
	assert_int_equal(row.system_ns, TICK_NS);
	assert_int_equal(row.rss, METRIC_UNKNOWN);
	assert_int_equal(row.swap, METRIC_UNKNOWN);
}

static void a_machine_is_parsed(void **state)
{
	struct machine_files files = {
		.stat = "cpu  10 20 30 40 50 60 70 80 0 0\ncpu0 5 10 15 20 25 30 35 40 0 0\n",
		.meminfo =
			"MemTotal:       16000 kB\nMemAvailable:   8000 kB\nSwapTotal:      100 kB\nSwapFree:       60 kB\n",
		.vmstat = "nr_free_pages 12\npgpgin_not 5\npgpgin 100\npgpgout 200\n",
		.net_dev = "Inter-|   Receive\n face |bytes    packets\n    lo:  999 1 0 0 0 0 0 0  999 1 0 0 0 0 0 0\n"
			   "  eth0: 1000 1 0 0 0 0 0 0  2000 1 0 0 0 0 0 0\n  eth1:10 1 0 0 0 0 0 0  20 1 0 0 0 0 0 0\n",
		.io_pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=5\n",
	};
	struct machine_usage_row row;

	(void)state;
	assert_int_equal(metrics_parse_machine(&files, TICK_NS, &row), 0);
	assert_int_equal(row.user_ns, 30 * (int64_t)TICK_NS);
	assert_int_equal(row.system_ns, 160 * (int64_t)TICK_NS);
	assert_int_equal(row.idle_ns, 40 * (int64_t)TICK_NS);
	assert_int_equal(row.iowait_ns, 50 * (int64_t)TICK_NS);
	assert_int_equal(row.steal_ns, 80 * (int64_t)TICK_NS);
	assert_int_equal(row.memory, 16000 << 10);
	assert_int_equal(row.available, 8000 << 10);
	assert_int_equal(row.swap_used, 40 << 10);
	assert_int_equal(row.read_bytes, 100 << 10);
	assert_int_equal(row.written_bytes, 200 << 10);
	assert_int_equal(row.received_bytes, 1010);
	assert_int_equal(row.sent_bytes, 2020);
	assert_int_equal(row.cpu_stalled_ns, METRIC_UNKNOWN);
	assert_int_equal(row.io_stalled_ns, 12000);
	files.stat = "cpu 1 2 3\n";
	assert_int_equal(metrics_parse_machine(&files, TICK_NS, &row), -EBADMSG);
}

/* Against what the process has done itself. */
static void this_process_is_read(void **state)
{
	enum { N_BYTES = 32 << 20 };
	struct process_usage_row before, after;
	struct rusage usage;
	uint8_t *memory;

	(void)state;
	assert_int_equal(metrics_read_process(metrics, getpid(), &before), 0);
	memory = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	do
		assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	while (usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 100000);
	assert_int_equal(metrics_read_process(metrics, getpid(), &after), 0);
	assert_in_range(after.rss - before.rss, N_BYTES - (1 << 20), N_BYTES + (4 << 20));
	assert_in_range(after.anonymous - before.anonymous, N_BYTES - (1 << 20), N_BYTES + (4 << 20));
	assert_in_range(after.user_ns + after.system_ns, 80000000, 10000000000);
	assert_int_equal(after.threads, 1);
	munmap(memory, N_BYTES);
}

static void an_ended_process_is_reported(void **state)
{
	struct process_usage_row row;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(metrics_read_process(metrics, pid, &row), -ESRCH);
}

static void this_machine_is_read(void **state)
{
	struct machine_usage_row row;

	(void)state;
	assert_int_equal(metrics_read_machine(metrics, &row), 0);
	assert_true(row.user_ns > 0 && row.idle_ns > 0);
	assert_int_equal(row.memory / 1024 / getpagesize(), sysconf(_SC_PHYS_PAGES) / 1024);
	assert_in_range(row.available, 1, row.memory);
}

/* ---- Other tables ---- */

static void pressure_is_parsed(void **state)
{
	static const char text[] =
		"some avg10=1.50 avg60=2.25 avg300=0.00 total=12\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=5\n";
	struct pressure_row row;

	(void)state;
	assert_true(pressure_parse(text, "some", &row));
	assert_int_equal(row.ns, 12000);
	assert_true(row.avg10 == 1.5 && row.avg60 == 2.25 && row.avg300 == 0);
	assert_true(pressure_parse(text, "full", &row));
	assert_int_equal(row.ns, 5000);
	assert_false(pressure_parse("some avg10=1.50\n", "some", &row));
	assert_int_equal(row.ns, METRIC_UNKNOWN);
	assert_true(isnan(row.avg10));
}

static void a_disk_is_parsed(void **state)
{
	struct disk_row row;

	(void)state;
	assert_true(disk_parse(" 254       0 vda 10 1 20 30 40 2 50 60 70 80 90 0 0 0 0 0 0\n", &row));
	assert_string_equal(row.device, "vda");
	assert_int_equal(row.reads, 10);
	assert_int_equal(row.read_bytes, 20 * 512);
	assert_int_equal(row.read_ns, 30000000);
	assert_int_equal(row.writes, 40);
	assert_int_equal(row.written_bytes, 50 * 512);
	assert_int_equal(row.write_ns, 60000000);
	assert_int_equal(row.in_flight, 70);
	assert_int_equal(row.busy_ns, 80000000);
	assert_false(disk_parse(" 254       0 vda 10\n", &row));
}

static void an_interface_is_parsed(void **state)
{
	struct network_row row;

	(void)state;
	assert_true(network_parse("  eth0:1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n", &row));
	assert_string_equal(row.interface, "eth0");
	assert_int_equal(row.received_bytes, 1);
	assert_int_equal(row.received_packets, 2);
	assert_int_equal(row.receive_errors, 3);
	assert_int_equal(row.receive_drops, 4);
	assert_int_equal(row.sent_bytes, 5);
	assert_int_equal(row.sent_packets, 6);
	assert_int_equal(row.send_errors, 7);
	assert_int_equal(row.send_drops, 8);
	assert_false(network_parse(" face |bytes    packets errs drop fifo frame compressed multicast|bytes\n", &row));
}

static void a_group_of_version_1_is_parsed(void **state)
{
	const struct cgroup_files files = {
		.cpu_stat = "nr_periods 30\nnr_throttled 20\nthrottled_time 1234567\n",
		.cpu_quota = "50000\n",
		.cpu_period = "100000\n",
		.cpu_usage = "777\n",
		.cpu_times = "user 3\nsystem 4\n",
		.memory = "4096\n",
		.memory_limit = "9223372036854771712\n",
		.memory_events = "6\n",
		.memory_high = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		.tasks = "5\n",
		.tasks_limit = "max\n",
		.io = "8:0 Read 100\n8:0 Write 200\n8:16 Read 1\n8:16 Write 2\n8:0 Total 300\nTotal 303\n",
	};
	struct cgroup_row row;

	(void)state;
	cgroup_parse(&files, TICK_NS, &row);
	assert_int_equal(row.cpu_ns, 777);
	assert_int_equal(row.user_ns, 3 * TICK_NS);
	assert_int_equal(row.system_ns, 4 * TICK_NS);
	assert_int_equal(row.quota_us, 50000);
	assert_int_equal(row.period_us, 100000);
	assert_int_equal(row.periods, 30);
	assert_int_equal(row.throttled_periods, 20);
	assert_int_equal(row.throttled_ns, 1234567);
	assert_int_equal(row.memory, 4096);
	assert_int_equal(row.memory_limit, METRIC_UNKNOWN);
	assert_int_equal(row.memory_high, METRIC_UNKNOWN);
	assert_int_equal(row.limit_hits, 6);
	assert_int_equal(row.oom_kills, 2);
	assert_int_equal(row.tasks, 5);
	assert_int_equal(row.tasks_limit, METRIC_UNKNOWN);
	assert_int_equal(row.read_bytes, 101);
	assert_int_equal(row.written_bytes, 202);
}

/* Rows of the group "/made/app" and of its parent. */
struct made {
	char folder[64];
	size_t n_app, n_parent;
	struct metric_value app[32];
};

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int keep_made(void *data, const char *table, const struct metric_value *values, size_t n)
{
	struct made *made = data;

	assert_string_equal(table, "cgroup_usage");
	made->n_parent += strcmp(values[1].text, "/made\\x2d1") == 0;
	if (strcmp(values[1].text, "/made\\x2d1/app") != 0)
		return 0;
	made->n_app++;
	assert_true(n <= N_ELEMENTS(made->app));
	memcpy(made->app, values, n * sizeof *values);
	return 0;
}

/* As the kernel lays out version 2; in a folder that is mounted with the root "/made\x2d1", as in a container. */
static void a_group_of_version_2_is_read(void **state)
{
	static const char *const files[][2] = {
		{ "cpu.stat",
		  "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 9\nnr_throttled 3\nthrottled_usec 70\n" },
		{ "cpu.max", "150000 100000\n" },
		{ "memory.current", "1000\n" },
		{ "memory.max", "2000\n" },
		{ "memory.high", "max\n" },
		{ "memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n" },
		{ "pids.current", "7\n" },
		{ "pids.max", "100\n" },
		{ "io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2\n" },
	};
	const struct metrics_moment moment = { .seconds = 1 };
	struct made made = { .folder = "/tmp/probing cgroup_XXXXXX" };
	const struct metric_sink sink = { keep_made, &made };
	char app[96], mounts[256], groups[] = "0::/made\\x2d1/app\n";

	(void)state;
	assert_non_null(mkdtemp(made.folder));
	snprintf(app, sizeof app, "%s/app", made.folder);
	assert_int_equal(mkdir(app, 0700), 0);
	for (size_t i = 0; i < N_ELEMENTS(files); i++)
		write_file(app, files[i][0], files[i][1]);
	write_file(made.folder, "cpu.stat", "usage_usec 1\n");
	/* As the kernel escapes the root "/made\x2d1", and the space of the folder. */
	snprintf(mounts, sizeof mounts,
		 "30 20 0:26 /made\\134x2d1 /tmp/probing\\040%.13s rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
		 made.folder + strlen("/tmp/probing "));
	assert_int_equal(cgroup_parse_mounts(metrics, mounts), 0);
	assert_int_equal(cgroup_add(metrics, groups), 0);
	assert_int_equal(metrics_put(metrics, "cgroup_usage", &moment, &sink), 0);
	assert_int_equal(made.n_app, 1);
	assert_int_equal(made.n_parent, 1);
	assert_int_equal(made.app[2].integer, 100000);
	assert_int_equal(made.app[3].integer, 60000);
	assert_int_equal(made.app[4].integer, 40000);
	assert_true(made.app[5].type == METRIC_REAL && made.app[5].real == 1.5);
	assert_int_equal(made.app[6].integer, 9);
	assert_int_equal(made.app[7].integer, 3);
	assert_int_equal(made.app[8].integer, 70000);
	assert_int_equal(made.app[9].integer, 1000);
	assert_int_equal(made.app[10].integer, 2000);
	assert_int_equal(made.app[11].type, METRIC_NULL);
	assert_int_equal(made.app[12].type, METRIC_NULL);
	assert_int_equal(made.app[13].integer, 5);
	assert_int_equal(made.app[14].integer, 1);
	assert_int_equal(made.app[15].integer, 7);
	assert_int_equal(made.app[16].integer, 100);
	assert_int_equal(made.app[17].integer, 11);
	assert_int_equal(made.app[18].integer, 22);
	/* Files stay open: the group is read from the same ones, and reports their changes. */
	write_file(app, "memory.current", "3000\n");
	assert_int_equal(metrics_put(metrics, "cgroup_usage", &moment, &sink), 0);
	assert_int_equal(made.app[9].integer, 3000);
	for (size_t i = 0; i < N_ELEMENTS(files); i++) {
		char path[160];

		snprintf(path, sizeof path, "%s/%s", app, files[i][0]);
		assert_int_equal(unlink(path), 0);
	}
	snprintf(mounts, sizeof mounts, "%s/cpu.stat", made.folder);
	assert_int_equal(unlink(mounts), 0);
	assert_int_equal(rmdir(app), 0);
	assert_int_equal(rmdir(made.folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_parsed),
		cmocka_unit_test(what_is_no_process_is_refused),
		cmocka_unit_test(numbers_that_overflow_are_unknown),
		cmocka_unit_test(a_machine_is_parsed),
		cmocka_unit_test(this_process_is_read),
		cmocka_unit_test(an_ended_process_is_reported),
		cmocka_unit_test(this_machine_is_read),
		cmocka_unit_test(pressure_is_parsed),
		cmocka_unit_test(a_disk_is_parsed),
		cmocka_unit_test(an_interface_is_parsed),
		cmocka_unit_test(a_group_of_version_1_is_parsed),
		cmocka_unit_test(a_group_of_version_2_is_read),
	};

	return cmocka_run_group_tests(tests, make_metrics, free_metrics);
}
