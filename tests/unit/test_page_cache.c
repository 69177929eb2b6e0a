/* SPDX-License-Identifier: MIT */
/* test_page_cache.c - reading another process' memory a page at a time, and what is read at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { N_PAGES = CACHE_N_PAGES + 128, START = 0x10000, TID = 7, OTHER = 8 };

/* Memory, and how often it was read. */
struct memory {
	struct remote base;
	uint8_t bytes[N_PAGES * CACHE_PAGE_BYTES];
	uint64_t unreadable; /* a page; 0: none */
	unsigned n_calls, n_parts;
	size_t n_bytes;
};

static uint64_t page_at(unsigned n)
{
	return START + (uint64_t)n * CACHE_PAGE_BYTES;
}

static bool copy(struct memory *memory, uint64_t from, void *to, size_t n_bytes)
{
	uint64_t offset = from - START;

	if (from < START || offset + n_bytes > sizeof memory->bytes ||
	    (memory->unreadable != 0 && from / CACHE_PAGE_BYTES == memory->unreadable / CACHE_PAGE_BYTES))
		return false;
	memcpy(to, memory->bytes + offset, n_bytes);
	memory->n_bytes += n_bytes;
	return true;
}

static ssize_t read_memory(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct memory *memory = (struct memory *)remote;

	memory->n_calls++;
	return copy(memory, from.value, to, n_bytes) ? (ssize_t)n_bytes : -EFAULT;
}

static int read_parts(struct remote *remote, const struct remote_part *parts, size_t n)
{
	struct memory *memory = (struct memory *)remote;
	int done = 0;

	memory->n_calls++;
	memory->n_parts += (unsigned)n;
	while ((size_t)done < n && copy(memory, parts[done].from.value, parts[done].to, parts[done].n_bytes))
		done++;
	return done;
}

static const struct remote_ops OPS = { .read = read_memory, .read_parts = read_parts };

struct fixture {
	struct memory memory;
	struct page_cache cache;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	if (!fixture)
		return -1;
	fixture->memory.base.ops = &OPS;
	for (size_t i = 0; i < sizeof fixture->memory.bytes; i++)
		fixture->memory.bytes[i] = (uint8_t)(i * 7 + i / CACHE_PAGE_BYTES);
	*state = fixture;
	return page_cache_init(&fixture->cache, &fixture->memory.base);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	page_cache_done(&fixture->cache);
	free(fixture);
	return 0;
}

static void check(struct fixture *fixture, uint64_t address, size_t n_bytes)
{
	uint8_t bytes[2 * CACHE_PAGE_BYTES];

	assert_int_equal(page_cache_read(&fixture->cache, address, bytes, n_bytes), 0);
	assert_memory_equal(bytes, fixture->memory.bytes + (address - START), n_bytes);
}

static void begin(struct fixture *fixture, pid_t tid)
{
	page_cache_forget(&fixture->cache);
	assert_int_equal(page_cache_expect(&fixture->cache, tid), 0);
}

/* What each sample of a thread needs here. */
static void take_sample(struct fixture *fixture, pid_t tid)
{
	begin(fixture, tid);
	check(fixture, page_at(3) + 8, 8);
	check(fixture, page_at(9) + 4000, 200); /* two pages */
	check(fixture, page_at(3) + 4088, 8);
}

static void a_page_is_read_once_a_sample(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	assert_int_equal(fixture->memory.n_calls, 3);
}

static void what_a_thread_needed_is_read_at_once(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	fixture->memory.n_calls = 0;
	take_sample(fixture, TID);
	assert_int_equal(fixture->memory.n_calls, 1);
	assert_int_equal(fixture->memory.n_parts, 3);
}

/* Of page 9 the last 128 bytes, of page 10 the first 128, not the rest. */
static void no_more_than_that_is_read(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	fixture->memory.n_bytes = 0;
	begin(fixture, TID);
	assert_int_equal(fixture->memory.n_bytes, CACHE_PAGE_BYTES + 128 + 128);
	check(fixture, page_at(9), CACHE_PAGE_BYTES);
}

static void another_thread_has_other_habits(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	fixture->memory.n_parts = 0;
	begin(fixture, OTHER);
	check(fixture, page_at(20), 8);
	assert_int_equal(fixture->memory.n_parts, 0);
	fixture->memory.n_calls = 0;
	take_sample(fixture, TID);
	assert_int_equal(fixture->memory.n_calls, 1);
}

/* Its number is another thread's in the same place. */
static void a_thread_does_not_take_over_anothers(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	fixture->memory.n_parts = 0;
	begin(fixture, TID + CACHE_N_PREFETCH_SETS);
	assert_int_equal(fixture->memory.n_parts, 0);
}

static void what_is_expected_is_read_anew(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	memset(fixture->memory.bytes, 0xa5, sizeof fixture->memory.bytes);
	take_sample(fixture, TID);
}

static void what_was_of_no_use_is_let_go(void **state)
{
	struct fixture *fixture = *state;

	take_sample(fixture, TID);
	for (int i = 0; i < 8; i++) {
		begin(fixture, TID);
		check(fixture, page_at(30), 8);
	}
	fixture->memory.n_parts = 0;
	begin(fixture, TID);
	assert_int_equal(fixture->memory.n_parts, 1);
}

/* Of two stacks that take turns both are known. */
static void what_is_of_use_now_and_then_is_kept(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 8; i++) {
		if (i >= 2)
			fixture->memory.n_calls = 0;
		begin(fixture, TID);
		check(fixture, page_at(i % 2 ? 30 : 40), 8);
	}
	assert_int_equal(fixture->memory.n_calls, 1);
}

static void what_cannot_be_read_keeps_nothing_else_back(void **state)
{
	struct fixture *fixture = *state;
	uint64_t word;

	take_sample(fixture, TID);
	fixture->memory.unreadable = page_at(3);
	begin(fixture, TID);
	check(fixture, page_at(9) + 4000, 200);
	assert_int_equal(page_cache_read(&fixture->cache, page_at(3) + 8, &word, sizeof word), -EFAULT);
	fixture->memory.unreadable = 0;
	check(fixture, page_at(3) + 8, 8);
}

static void things_are_prepared_in_one_call(void **state)
{
	struct fixture *fixture = *state;
	uint64_t addresses[100];

	page_cache_forget(&fixture->cache);
	for (unsigned i = 0; i < N_ELEMENTS(addresses); i++)
		addresses[i] = page_at(i / 2) + i % 2 * 512;
	page_cache_prepare(&fixture->cache, addresses, N_ELEMENTS(addresses), 64);
	assert_int_equal(fixture->memory.n_calls, 1);
	for (unsigned i = 0; i < N_ELEMENTS(addresses); i++)
		check(fixture, addresses[i], 64);
	assert_int_equal(fixture->memory.n_calls, 1);
}

/* A sample that needs more than the cache holds: some pages are read again, all are right. */
static void a_sample_may_need_more_than_fits(void **state)
{
	struct fixture *fixture = *state;

	for (int round = 0; round < 3; round++) {
		begin(fixture, TID);
		for (unsigned n = 0; n < N_PAGES - 1; n++)
			check(fixture, page_at(n) + n * 8, 2 * CACHE_PAGE_BYTES - n * 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_page_is_read_once_a_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_thread_needed_is_read_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(no_more_than_that_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(another_thread_has_other_habits, setup, teardown),
		cmocka_unit_test_setup_teardown(a_thread_does_not_take_over_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_expected_is_read_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_of_no_use_is_let_go, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_of_use_now_and_then_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_keeps_nothing_else_back, setup, teardown),
		cmocka_unit_test_setup_teardown(things_are_prepared_in_one_call, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sample_may_need_more_than_fits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
