/* SPDX-License-Identifier: MIT */
/* test_id_map.c - the hash table of the hot paths. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/id_map.h"

enum { N_KEYS = 100000 };

static uint32_t id_of(const struct id_map *map, uint64_t key)
{
	const struct id_slot *slot = id_map_find(map, key);

	return slot ? slot->id : UINT32_MAX;
}

static void test_empty(void **state)
{
	struct id_map map = { 0 };

	(void)state;
	assert_null(id_map_find(&map, 1));
	assert_null(id_map_find(&map, UINT64_MAX));
	id_map_clear(&map);
	id_map_done(&map);
	id_map_done(&map);
}

static void test_key_zero(void **state)
{
	struct id_map map = { 0 };

	(void)state;
	assert_int_equal(id_map_add(&map, 0, 7), -EINVAL);
	assert_int_equal(map.n, 0);
	id_map_done(&map);
}

/* Neighbouring keys, high bits and id 0 alike; all stay through every enlargement. */
static void test_growth(void **state)
{
	struct id_map map = { 0 };

	(void)state;
	for (uint32_t i = 0; i < N_KEYS; i++) {
		uint64_t key = i % 2 ? (uint64_t)i << 40 : i + 1;

		assert_null(id_map_find(&map, key));
		assert_int_equal(id_map_add(&map, key, i), 0);
		assert_int_equal(id_of(&map, key), i);
		assert_true(3 * map.n <= 2 * map.n_slots);
		assert_int_equal(map.n_slots & (map.n_slots - 1), 0);
	}
	assert_int_equal(map.n, N_KEYS);
	for (uint32_t i = 0; i < N_KEYS; i++)
		assert_int_equal(id_of(&map, i % 2 ? (uint64_t)i << 40 : i + 1), i);
	assert_null(id_map_find(&map, N_KEYS + 7));
	id_map_done(&map);
}

/* Keys that all hash to the last slot: probing wraps around the end of the table. */
static void test_collisions(void **state)
{
	enum { N = 100 };
	struct id_map map = { 0 };
	uint64_t keys[N];
	size_t n = 0;

	(void)state;
	for (uint64_t key = 1; n < N; key++)
		if ((mix64(key) & 255) == 255)
			keys[n++] = key;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(id_map_add(&map, keys[i], i), 0);
	assert_int_equal(map.n_slots, 256);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(id_of(&map, keys[i]), i);
	for (uint64_t key = keys[N - 1] + 1; key < keys[N - 1] + 10000; key++)
		assert_null(id_map_find(&map, key));
	id_map_done(&map);
}

static void test_ids_may_be_changed(void **state)
{
	struct id_map map = { 0 };

	(void)state;
	assert_int_equal(id_map_add(&map, 5, 1), 0);
	id_map_find(&map, 5)->id = 2;
	for (uint64_t key = 100; key < 1000; key++)
		assert_int_equal(id_map_add(&map, key, 0), 0);
	assert_int_equal(id_of(&map, 5), 2);
	id_map_done(&map);
}

static void test_clear(void **state)
{
	struct id_map map = { 0 };
	size_t n_slots;

	(void)state;
	for (uint64_t key = 1; key < 1000; key++)
		assert_int_equal(id_map_add(&map, key, (uint32_t)key), 0);
	n_slots = map.n_slots;
	id_map_clear(&map);
	assert_int_equal(map.n, 0);
	assert_int_equal(map.n_slots, n_slots); /* the memory stays */
	for (uint64_t key = 1; key < 1000; key++)
		assert_null(id_map_find(&map, key));
	assert_int_equal(id_map_add(&map, 1, 9), 0);
	assert_int_equal(id_of(&map, 1), 9);
	id_map_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_key_zero),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_collisions),
		cmocka_unit_test(test_ids_may_be_changed),
		cmocka_unit_test(test_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
