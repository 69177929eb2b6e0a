/* SPDX-License-Identifier: MIT */
/* test_metrics.c - numbers out of texts as the kernel writes them, and of this process and machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/metrics/metrics.h"

enum { TICK_NS = 10000000 };

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
	assert_int_equal(metrics_read_process(getpid(), &before), 0);
	memory = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	do
		assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	while (usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 100000);
	assert_int_equal(metrics_read_process(getpid(), &after), 0);
	assert_int_equal(after.pid, getpid());
	assert_true(after.time_ns > before.time_ns && after.time_ns <= realtime_ns());
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
	assert_int_equal(metrics_read_process(pid, &row), -ESRCH);
}

static void this_machine_is_read(void **state)
{
	struct machine_usage_row row;

	(void)state;
	assert_int_equal(metrics_read_machine(&row), 0);
	assert_true(row.user_ns > 0 && row.idle_ns > 0);
	assert_int_equal(row.memory / 1024 / getpagesize(), sysconf(_SC_PHYS_PAGES) / 1024);
	assert_in_range(row.available, 1, row.memory);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
