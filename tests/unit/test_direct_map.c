/* SPDX-License-Identifier: MIT */
/* test_direct_map.c - where the direct map has what a program has at an address: by tables of a test's own, and by the kernel's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/kernel_numbers.h"
#include "tests/unit/page_tables_here.h"

/* The program's page, and where it is. */
#define ADDRESS 0x00007f1234567000ull
#define PHYSICAL (PAGE_TABLES_END + 0x40000000ull)
#define FLAGS (TABLE_PRESENT | TABLE_USER | (uint64_t)1 << 63)
#define ROOT DIRECT_MAP_BASE

_Static_assert(PHYSICAL % (1 << TABLE_SHIFT_2) == 0, "a large page lies at a multiple of its size");

static struct direct_map map = { .base = DIRECT_MAP_BASE, .end = 4ull << TABLE_SHIFT_3, .n_levels = 4 };

/* The memory behind the tables: each word is its own address. */
static uint64_t physical_word(uint64_t physical)
{
	assert_true(physical < map.end);
	return physical;
}

static uint64_t *map_page(unsigned level, uint64_t physical, uint64_t flags)
{
	uint64_t *entry;

	page_tables_begin();
	entry = page_tables_entry(ADDRESS, (unsigned)map.n_levels, level);
	*entry = physical | flags | (level > 1 ? TABLE_LARGE : 0);
	return entry;
}

static int begin(void **state)
{
	(void)state;
	map.n_levels = 4;
	map_page(1, PHYSICAL, FLAGS);
	return 0;
}

static void assert_at(uint64_t address, uint64_t physical)
{
	struct place place = { 0 };

	assert_true(find_place(&map, ROOT, address, 8, &place));
	assert_int_equal(place.address, DIRECT_MAP_BASE + physical);
	assert_int_equal(kernel_word(place.address), physical);
	assert_true(is_in_place(&place));
}

static void assert_nowhere(uint64_t address, uint32_t n_bytes)
{
	struct place place = { 0 };

	assert_false(find_place(&map, ROOT, address, n_bytes, &place));
}

static void pages_of_each_size(void **state)
{
	(void)state;
	for (map.n_levels = 4; map.n_levels <= 5; map.n_levels++)
		for (unsigned level = 1; level <= 3; level++) {
			uint64_t size = 1ull << (12 + 9 * (level - 1)), physical = PHYSICAL & ~(size - 1);

			map_page(level, physical, FLAGS);
			assert_at(ADDRESS, physical + ADDRESS % size);
			assert_at(ADDRESS + 0xff8, physical + ADDRESS % size + 0xff8);
		}
}

/* In entries of large pages the lowest bit of an address means something else, and is not of the address. */
static void large_pages_with_another_kind_of_cache(void **state)
{
	(void)state;
	map_page(2, PHYSICAL, FLAGS | 1 << 12);
	assert_at(ADDRESS, PHYSICAL + ADDRESS % (1 << TABLE_SHIFT_2));
}

/* With five levels a program may have more addresses. */
static void addresses_that_a_program_has(void **state)
{
	(void)state;
	assert_nowhere(ADDRESS | 1ull << 47, 8);
	assert_nowhere(ADDRESS | 0xffff800000000000ull, 8);
	map.n_levels = 5;
	page_tables_begin();
	*page_tables_entry(ADDRESS | 1ull << 55, 5, 1) = PHYSICAL | FLAGS;
	assert_at(ADDRESS | 1ull << 55, PHYSICAL);
	assert_nowhere(ADDRESS | 1ull << 56, 8);
}

static void words_of_one_page_only(void **state)
{
	(void)state;
	assert_nowhere(ADDRESS + 4, 8);
	assert_nowhere(ADDRESS + 0xff8, 16);
	assert_nowhere(ADDRESS, 4104);
	assert_at(ADDRESS + 0xff0, PHYSICAL + 0xff0);
}

static void nothing_where_a_level_has_nothing(void **state)
{
	(void)state;
	assert_nowhere(ADDRESS + (1ull << TABLE_SHIFT_1), 8);
	assert_nowhere(ADDRESS + (1ull << TABLE_SHIFT_2), 8);
	assert_nowhere(ADDRESS + (1ull << TABLE_SHIFT_3), 8);
	assert_nowhere(ADDRESS - (1ull << TABLE_SHIFT_4), 8);
	for (unsigned level = 1; level <= 3; level++) {
		map_page(level, PHYSICAL, FLAGS & ~(uint64_t)TABLE_PRESENT);
		assert_nowhere(ADDRESS, 8);
	}
}

static void a_thread_without_tables_has_nothing(void **state)
{
	struct place place = { 0 };

	(void)state;
	assert_false(find_place(&map, 0, ADDRESS, 8, &place));
}

static void the_kernels_own_pages_are_not_the_programs(void **state)
{
	(void)state;
	for (unsigned level = 1; level <= 3; level++) {
		map_page(level, PHYSICAL, FLAGS & ~(uint64_t)TABLE_USER);
		assert_nowhere(ADDRESS, 8);
	}
}

/* Of a device, say; or the entry is of a machine that encrypts memory, and means something else. */
static void nothing_behind_all_memory(void **state)
{
	(void)state;
	for (unsigned level = 1; level <= 3; level++) {
		map_page(level, map.end, FLAGS);
		assert_nowhere(ADDRESS, 8);
		map_page(level, PHYSICAL | 1ull << 51, FLAGS);
		assert_nowhere(ADDRESS, 8);
	}
	for (unsigned level = 2; level <= 4; level++) {
		map_page(1, PHYSICAL, FLAGS);
		*page_tables_entry(ADDRESS, 4, level) = map.end | FLAGS;
		assert_nowhere(ADDRESS, 8);
	}
}

static void a_page_that_moves_is_noticed(void **state)
{
	(void)state;
	for (unsigned level = 1; level <= 3; level++) {
		uint64_t *entry = map_page(level, PHYSICAL & ~((1ull << (12 + 9 * (level - 1))) - 1), FLAGS),
			 before = *entry;
		struct place place = { 0 };

		assert_true(find_place(&map, ROOT, ADDRESS, 8, &place));
		*entry = before | 1 << 5 | 1 << 6; /* the processor has noted an access, and a write */
		assert_true(is_in_place(&place));
		*entry = before & ~(uint64_t)TABLE_PRESENT;
		assert_false(is_in_place(&place));
		*entry = before & ~(uint64_t)TABLE_USER;
		assert_false(is_in_place(&place));
		*entry = before + (1ull << TABLE_SHIFT_3);
		assert_false(is_in_place(&place));
		*entry = before;
		assert_true(is_in_place(&place));
	}
}

/* Every other result on a kernel with this feature is a bug in probing. */
static bool may_be_refused(int error)
{
	unsigned major = 0, minor = 0;
	struct utsname system;

	if (error == -EPERM || error == -ENOSYS || error == -ENXIO || access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return true;
	assert_int_equal(uname(&system), 0);
	assert_int_equal(sscanf(system.release, "%u.%u", &major, &minor), 2);
	return major < 6 || (major == 6 && minor < 2);
}

/* Find the kernel's direct map; a second search finds the same. */
static void the_kernels_is_found(void **state)
{
	struct direct_map found, again;
	struct kernel_numbers numbers;
	int r = direct_map_find(&found, &numbers);

	(void)state;
	if (r < 0 && may_be_refused(r)) {
		print_message("skipped: no direct map can be found: %s\n", strerror(-r));
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_equal(direct_map_find(&again, &numbers), 0);
	assert_memory_equal(&found, &again, sizeof found);
	assert_true(found.n_levels == 4 || found.n_levels == 5);
	assert_int_equal(found.base % (1 << TABLE_SHIFT_3), 0);
	assert_true(found.base >= 0xff11000000000000ull);
	assert_int_equal(found.end % 4096, 0);
}

static void it_can_be_refused(void **state)
{
	struct kernel_numbers numbers;
	struct direct_map found;

	(void)state;
	if (direct_map_find(&found, &numbers) == -ENOSYS) {
		print_message("skipped: built without it, or not for this machine\n");
		skip();
	}
	assert_int_equal(setenv("PROBING_DIRECT_MAP", "0", 1), 0);
	assert_int_equal(direct_map_find(&found, &numbers), -ECANCELED);
	assert_int_equal(unsetenv("PROBING_DIRECT_MAP"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(pages_of_each_size, begin),
		cmocka_unit_test_setup(large_pages_with_another_kind_of_cache, begin),
		cmocka_unit_test_setup(addresses_that_a_program_has, begin),
		cmocka_unit_test_setup(words_of_one_page_only, begin),
		cmocka_unit_test_setup(nothing_where_a_level_has_nothing, begin),
		cmocka_unit_test_setup(a_thread_without_tables_has_nothing, begin),
		cmocka_unit_test_setup(the_kernels_own_pages_are_not_the_programs, begin),
		cmocka_unit_test_setup(nothing_behind_all_memory, begin),
		cmocka_unit_test_setup(a_page_that_moves_is_noticed, begin),
		cmocka_unit_test(the_kernels_is_found),
		cmocka_unit_test(it_can_be_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
