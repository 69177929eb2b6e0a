/* SPDX-License-Identifier: MIT */
/* test_kernel_place.c - kernel locations that stay valid after a reboot and reveal no address. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "symbolize/symbolize.h"
#include "tests/unit/made_kallsyms.h"

static struct kernel_symbols *open_made(const struct made_boot *boot)
{
	char path[] = "/tmp/probing-kallsyms-XXXXXX";
	struct kernel_symbols *symbols = NULL;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	make_kallsyms(path, boot);
	assert_int_equal(kernel_symbols_open(path, &symbols), 0);
	unlink(path);
	return symbols;
}

static uint64_t place_of(const struct kernel_symbols *symbols, uint64_t ip)
{
	uint64_t place;

	assert_int_equal(kernel_symbols_place(symbols, ip, &place), 0);
	assert_false(kernel_place_is_absolute(place));
	return place;
}

static uint64_t address_of(const struct kernel_symbols *symbols, uint64_t place)
{
	uint64_t address;

	assert_int_equal(kernel_symbols_address(symbols, place, &address), 0);
	return address;
}

static void test_same_place_after_another_boot(void **state)
{
	CLEANUP(kernel_symbols_freep)
	struct kernel_symbols *first = open_made(&first_boot), *second = open_made(&second_boot);
	const uint64_t ips[][2] = {
		{ first_boot.text, second_boot.text },
		{ first_boot.text + SYSCALL_OFFSET + 7, second_boot.text + SYSCALL_OFFSET + 7 },
		{ first_boot.text + 0x8fff, second_boot.text + 0x8fff },
		{ first_boot.net + NET_OFFSET + 3, second_boot.net + NET_OFFSET + 3 },
		{ first_boot.disk, second_boot.disk },
		{ first_boot.disk + DISK_OFFSET, second_boot.disk + DISK_OFFSET },
		{ first_boot.bpf + 5, second_boot.bpf + 5 },
		{ first_boot.bpf + 0x400 + 5, second_boot.bpf + 0x900 + 5 }, /* the programs lie otherwise, too */
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(ips); i++) {
		uint64_t place = place_of(first, ips[i][0]);

		assert_true(place == place_of(second, ips[i][1]));
		assert_true(address_of(first, place) == ips[i][0]);
		assert_true(address_of(second, place) == ips[i][1]);
		assert_string_equal(kernel_symbol_lookup(first, ips[i][0], NULL),
				    kernel_symbol_lookup(second, ips[i][1], NULL));
		for (size_t k = 0; k < i; k++)
			assert_true(place != place_of(first, ips[k][0]));
	}
}

/* Memory behind the image, before it, far behind a module's last function: no list has it, so it has no place. */
static void test_what_is_not_listed_has_no_place(void **state)
{
	CLEANUP(kernel_symbols_freep) struct kernel_symbols *symbols = open_made(&first_boot);
	const uint64_t ips[] = { 0,
				 0x1000,
				 first_boot.text - 1,
				 first_boot.text + (64 << 20),
				 first_boot.net - 1,
				 first_boot.bpf + (8 << 20),
				 0xffff888000000000,
				 UINT64_MAX };
	uint64_t place = 1;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(ips); i++)
		assert_int_equal(kernel_symbols_place(symbols, ips[i], &place), -ENOENT);
	assert_true(place == 1);
}

static void test_places_of_code_that_is_gone(void **state)
{
	static const struct made_boot without = { 0xffffffff81000000, 0, 0, 0 };
	CLEANUP(kernel_symbols_freep)
	struct kernel_symbols *symbols = open_made(&first_boot), *bare = open_made(&without);
	const uint64_t places[] = { place_of(symbols, first_boot.net + 3), place_of(symbols, first_boot.bpf + 3),
				    UINT64_C(1) << 40 };
	uint64_t address;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(places); i++)
		assert_int_equal(kernel_symbols_address(bare, places[i], &address), -ENOENT);
}

static void test_absolute_addresses_of_before(void **state)
{
	CLEANUP(kernel_symbols_freep) struct kernel_symbols *symbols = open_made(&first_boot);

	(void)state;
	assert_true(kernel_place_is_absolute(first_boot.net));
	assert_true(address_of(symbols, first_boot.net + 2) == first_boot.net + 2);
}

static void test_hidden(void **state)
{
	char path[] = "/tmp/probing-kallsyms-XXXXXX";
	struct kernel_symbols *symbols = NULL;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	make_kallsyms(path, &hidden_boot);
	assert_int_equal(kernel_symbols_open(path, &symbols), -EPERM);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_place_after_another_boot),
		cmocka_unit_test(test_what_is_not_listed_has_no_place),
		cmocka_unit_test(test_places_of_code_that_is_gone),
		cmocka_unit_test(test_absolute_addresses_of_before),
		cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
