/* SPDX-License-Identifier: MIT */
/* test_page_trim.c - when the memory of mapped files is given back, by made contents of /proc/self/statm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/pipeline/page_trim.h"

#define MIB UINT64_C(1048576)
#define CALM_NS UINT64_C(2000000000)

enum { BUSY_MIB = 64, CALM_MIB = 16, NEW_MIB = 4 };

/* As if so much of mapped files were in our memory. Source: proc(5): size, resident and shared pages, and more. */
static void say(struct page_trim *trim, uint64_t mib)
{
	char text[128];
	int n = snprintf(text, sizeof text, "9999999 8888888 %llu 7 0 7777777 0\n",
			 (unsigned long long)(mib * MIB / (uint64_t)getpagesize()));

	assert_int_equal(ftruncate(trim->statm, 0), 0);
	assert_int_equal(pwrite(trim->statm, text, (size_t)n, 0), n);
}

static void begin(struct page_trim *trim)
{
	page_trim_init(trim, BUSY_MIB * MIB, CALM_MIB * MIB);
	close(trim->statm);
	trim->statm = memfd_create("statm", MFD_CLOEXEC);
	assert_true(trim->statm >= 0);
}

/* Simulate this much time since the last release of pages. */
static void wait_for(struct page_trim *trim, uint64_t ns)
{
	trim->trimmed_ns = monotonic_ns() - ns;
}

/* During continuous lookups it releases from 64 MiB on; less than two seconds have passed since the start. */
static void while_busy_much_must_have_come(void **state)
{
	struct page_trim trim;

	(void)state;
	begin(&trim);
	say(&trim, BUSY_MIB - 1);
	assert_false(page_trim_is_due(&trim));
	say(&trim, BUSY_MIB);
	assert_true(page_trim_is_due(&trim));
	page_trim_done(&trim);
}

static void after_calm_less_will_do(void **state)
{
	struct page_trim trim;

	(void)state;
	begin(&trim);
	say(&trim, CALM_MIB);
	wait_for(&trim, CALM_NS / 2);
	assert_false(page_trim_is_due(&trim));
	wait_for(&trim, CALM_NS);
	assert_true(page_trim_is_due(&trim));
	say(&trim, CALM_MIB - 1);
	assert_false(page_trim_is_due(&trim));
	page_trim_done(&trim);
}

/* What others have mapped stays after giving back, and does not count: four MiB have to be new. */
static void what_stays_does_not_count(void **state)
{
	struct page_trim trim;
	uint64_t before_ns;

	(void)state;
	begin(&trim);
	say(&trim, BUSY_MIB + 10);
	assert_true(page_trim_is_due(&trim));
	before_ns = monotonic_ns();
	page_trim_did(&trim);
	assert_int_equal(trim.trimmed_bytes, (BUSY_MIB + 10) * MIB);
	assert_true(trim.trimmed_ns >= before_ns);
	assert_false(page_trim_is_due(&trim));
	say(&trim, BUSY_MIB + 10 + NEW_MIB - 1);
	assert_false(page_trim_is_due(&trim));
	say(&trim, BUSY_MIB + 10 + NEW_MIB);
	assert_true(page_trim_is_due(&trim));
	/* Also when it is calm. */
	say(&trim, BUSY_MIB + 10 + NEW_MIB - 1);
	wait_for(&trim, CALM_NS);
	assert_false(page_trim_is_due(&trim));
	page_trim_done(&trim);
}

static void without_numbers_nothing_is_given_back(void **state)
{
	static const char *const texts[] = { "", "1 2", "x y z" };
	struct page_trim trim;

	(void)state;
	begin(&trim);
	wait_for(&trim, CALM_NS);
	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		assert_int_equal(ftruncate(trim.statm, 0), 0);
		assert_int_equal(pwrite(trim.statm, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
		assert_false(page_trim_is_due(&trim));
	}
	page_trim_done(&trim);
	trim.statm = -1; /* as where there is no /proc */
	wait_for(&trim, CALM_NS);
	assert_false(page_trim_is_due(&trim));
}

/* The kernel's own numbers: a large mapped file that has been read counts, memory of our own does not. */
static void pages_of_files_count(void **state)
{
	enum { N_BYTES = 32 << 20 };
	struct page_trim trim;
	int fd = memfd_create("large", MFD_CLOEXEC);
	char *map, *own;

	(void)state;
	page_trim_init(&trim, UINT64_MAX, UINT64_MAX);
	assert_true(trim.statm >= 0);
	own = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(own != MAP_FAILED);
	memset(own, 1, N_BYTES);
	page_trim_did(&trim);
	assert_true(trim.trimmed_bytes < N_BYTES);
	assert_int_equal(ftruncate(fd, N_BYTES), 0);
	map = mmap(NULL, N_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	memset(map, 1, N_BYTES);
	page_trim_did(&trim);
	assert_true(trim.trimmed_bytes >= N_BYTES);
	munmap(map, N_BYTES);
	munmap(own, N_BYTES);
	close(fd);
	page_trim_done(&trim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_busy_much_must_have_come),
		cmocka_unit_test(after_calm_less_will_do),
		cmocka_unit_test(what_stays_does_not_count),
		cmocka_unit_test(without_numbers_nothing_is_given_back),
		cmocka_unit_test(pages_of_files_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
