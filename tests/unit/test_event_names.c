/* SPDX-License-Identifier: MIT */
/* test_event_names.c - names of events, and what they ask the kernel for. */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/event.h"
#include "tests/unit/refusals.h"

static void test_known_names(void **state)
{
	static const struct {
		const char *name;
		enum event_kind kind;
		uint32_t type;
		uint64_t config;
	} cases[] = {
		{ "cpu-clock", EVENT_CLOCK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "task-clock", EVENT_CLOCK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ "page-faults", EVENT_SOFTWARE, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "context-switches", EVENT_SOFTWARE, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cycles", EVENT_HARDWARE, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "branch-misses", EVENT_HARDWARE, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
		/* perf_event_open(2): cache | operation << 8 | result << 16 */
		{ "dTLB-load-misses", EVENT_HARDWARE, PERF_TYPE_HW_CACHE, 3 | 0 << 8 | 1 << 16 },
		{ "LLC-stores", EVENT_HARDWARE, PERF_TYPE_HW_CACHE, 2 | 1 << 8 | 0 << 16 },
	};
	struct sampled_event event;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(event_find(cases[i].name, &event), 0);
		assert_string_equal(event.name, cases[i].name);
		assert_int_equal(event.kind, cases[i].kind);
		assert_int_equal(event.type, cases[i].type);
		assert_int_equal(event.config, cases[i].config);
		assert_true(strlen(event_summary(&event)) > 0);
	}
}

/* All spellings of an event have one stored name. */
static void test_other_names(void **state)
{
	struct sampled_event event;

	(void)state;
	assert_int_equal(event_find("cs", &event), 0);
	assert_string_equal(event.name, "context-switches");
	assert_true(event.in_kernel);
	assert_int_equal(event_find("cpu-cycles", &event), 0);
	assert_string_equal(event.name, "cycles");
}

static void test_no_names(void **state)
{
	static const char *const names[] = { "", "list", "cycle", "Cycles", "cycles ", "page_faults" };
	struct sampled_event event;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		assert_int_equal(event_find(names[i], &event), -ENOENT);
}

static void test_tracepoints(void **state)
{
	struct sampled_event event;

	(void)state;
	assert_int_equal(event_find("sched:sched_switch", &event), 0);
	assert_int_equal(event.kind, EVENT_TRACEPOINT);
	assert_int_equal(event.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(event.usual_count, 1);
	assert_true(event.in_kernel);
	assert_string_equal(event.name, "sched:sched_switch");
	/* The tracepoint of one system call is on the user side, raw_syscalls is in the kernel. */
	assert_int_equal(event_find("syscalls:sys_enter_write", &event), 0);
	assert_false(event.in_kernel);
	assert_int_equal(event_find("raw_syscalls:sys_enter", &event), 0);
	assert_true(event.in_kernel);
}

/* It becomes a path and a table. */
static void test_no_tracepoints(void **state)
{
	static const char *const names[] = { ":",    "a:",  ":b",    "a:b:c", "../a:b", "a:../b",
					     "..:b", "a:.", "a b:c", "a:b\"", "a:b/c",  "\303\244:b" };
	struct sampled_event event = { .name = "untouched" };
	char longest[2 * EVENT_MAX_NAME];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		assert_int_equal(event_find(names[i], &event), -EINVAL);
	memset(longest, 'a', sizeof longest);
	longest[1] = ':';
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(event_find(longest, &event), -EINVAL);
	assert_string_equal(event.name, "untouched");
	longest[EVENT_MAX_NAME - 1] = '\0';
	assert_int_equal(event_find(longest, &event), 0);
}

/* Each event of the list is found by its name, and names are unique. */
static void test_list(void **state)
{
	struct sampled_event event, found, other;
	size_t n;

	(void)state;
	for (n = 0; event_nth(n, &event); n++) {
		assert_int_equal(event_find(event.name, &found), 0);
		assert_int_equal(found.config, event.config);
		assert_int_equal(found.type, event.type);
		assert_true(event.kind != EVENT_CLOCK || event.usual_count == 0);
		for (size_t i = 0; i < n && event_nth(i, &other); i++)
			assert_true(other.type != event.type || other.config != event.config);
	}
	assert_true(n > 30);
}

static void assert_says(int error, const char *name, const char *words)
{
	struct sampled_event event;
	char text[512];

	assert_int_equal(event_find(name, &event), 0);
	event_explain(error, &event, text, sizeof text);
	assert_null(strchr(text, '\n'));
	assert_true(strlen(text) < sizeof text - 1);
	if (!strstr(text, name) || !strstr(text, words))
		fail_msg("\"%s\" does not name %s and \"%s\"", text, name, words);
}

static void test_sentences(void **state)
{
	(void)state;
	assert_says(-ENOENT, "cycles", "cpu-clock");
	assert_says(-EOPNOTSUPP, "LLC-loads", "--event list");
	assert_says(-ENOENT, "sched:nothing", "no tracepoint");
	assert_says(-ENODEV, "sched:sched_switch", "mount -t tracefs none /sys/kernel/tracing");
	assert_says(-ENODEV, "cycles", "no such counter");
	assert_says(-EACCES, "sched:sched_switch", "mount -o remount");
	assert_says(-EACCES, "context-switches", "CAP_PERFMON");
	assert_says(-EPERM, "page-faults", "root");
	assert_says(-EIO, "page-faults", "Input/output error");
}

/* Every Linux has these, and its own user may sample them. */
static void test_check(void **state)
{
	struct sampled_event event;
	int r;

	(void)state;
	assert_int_equal(event_find("page-faults", &event), 0);
	r = event_check(&event);
	skip_if_perf_is_refused(r, 0, "perf events are refused");
	assert_int_equal(r, 0);
	event.config = 0xffff;
	assert_true(event_check(&event) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_names),    cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_no_names),       cmocka_unit_test(test_tracepoints),
		cmocka_unit_test(test_no_tracepoints), cmocka_unit_test(test_list),
		cmocka_unit_test(test_sentences),      cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
