/* SPDX-License-Identifier: MIT */
/* test_capture_without_bpf.c - a build without programs for the kernel records all the same, and says what it lacks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/capture.h"
#include "tests/unit/refusals.h"

static int attach(enum capture_source source, struct capture **ret)
{
	const struct capture_options options = { .source = source, .hz = 99, .stack_bytes = 4096 };

	return capture_attach(&options, getpid(), ret);
}

static void what_is_asked_for_by_name_is_refused(void **state)
{
	struct capture *capture = NULL;
	char text[256];
	int r = attach(SOURCE_BPF, &capture);

	(void)state;
	skip_if_perf_is_refused(r, getpid(), "perf events are refused before that is asked");
	assert_int_equal(r, -EPROTONOSUPPORT);
	capture_explain_source(text, sizeof text);
	assert_string_equal(text, "needs a build with clang and libbpf");
}

/* By read, or by poll where perf events are refused. */
static void it_goes_without(void **state)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;

	(void)state;
	assert_int_equal(attach(SOURCE_AUTO, &capture), 0);
	assert_int_not_equal(capture_source(capture), SOURCE_BPF);
	assert_int_not_equal(capture_direct_refusal(capture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_by_name_is_refused),
		cmocka_unit_test(it_goes_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
