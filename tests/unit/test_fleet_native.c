/* SPDX-License-Identifier: MIT */
/* Blocks of ClickHouse's Native format, and hashes; tests/e2e/test_ship.py has servers read the blocks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

#include "src/fleet/native.h"

static void print_hash(const void *text, size_t n, char to[65])
{
	uint8_t hash[32];

	sha256(text, n, hash);
	for (unsigned i = 0; i < sizeof hash; i++)
		snprintf(to + 2 * i, 3, "%02x", hash[i]);
}

/* FIPS 180-4's own examples, and lengths around a block's end by their neighbours. */
static void hashes_are_those_of_the_standard(void **state)
{
	char text[65], ones[1000], other[65];

	(void)state;
	print_hash("abc", 3, text);
	assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	print_hash("", 0, text);
	assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	print_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, text);
	assert_string_equal(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(ones, 'a', sizeof ones);
	print_hash(ones, sizeof ones, text);
	assert_string_equal(text, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
	for (size_t n = 54; n < 66; n++) {
		print_hash(ones, n, text);
		print_hash(ones, n + 1, other);
		assert_string_not_equal(text, other);
	}
}

static void unpack(const struct fleet_bytes *frame, uint8_t *to, size_t room, size_t *ret)
{
	static const uint8_t no_checksum[16];

	assert_memory_equal(frame->at, no_checksum, sizeof no_checksum);
	assert_int_equal(frame->at[16], 0x90);
	assert_int_equal(frame->at[17] | frame->at[18] << 8, frame->n - 16);
	*ret = ZSTD_decompress(to, room, frame->at + 25, frame->n - 25);
	assert_false(ZSTD_isError(*ret));
	assert_int_equal(frame->at[21] | frame->at[22] << 8, *ret);
}

static void a_block_is_columns(void **state)
{
	struct native native = { 0 };
	struct fleet_bytes frame = { 0 };
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct fleet_hash hash = { "0123456789abcdef" };
	const uint64_t path[] = { 1, 2 };
	uint8_t block[512];
	char columns[256];
	size_t n;
	static const uint8_t wanted[] = "\4\1"
					"\5stack\6UInt64\7\0\0\0\0\0\0\0"
					"\4hash\17FixedString(16)0123456789abcdef"
					"\11functions\15Array(UInt64)\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
					"\4seen\4Date\2\1";

	(void)state;
	native_begin(&native, FLEET_STACKS, FLEET_NEW);
	native_number(&native, 7);
	native_hash(&native, &hash);
	native_array(&native, path, 2);
	native_number(&native, 0x10102); /* a Date has 2 bytes */
	native_end_row(&native);
	assert_int_equal(native_finish(&native, zstd, &frame), 0);
	unpack(&frame, block, sizeof block, &n);
	assert_int_equal(n, sizeof wanted - 1);
	assert_memory_equal(block, wanted, n);
	assert_int_equal(native_columns(&native, columns, sizeof columns), 0);
	assert_string_equal(columns, "(stack, hash, functions, seen)");
	assert_int_equal(native_columns(&native, columns, 12), -ENAMETOOLONG);
	free(frame.at);
	ZSTD_freeCCtx(zstd);
	native_done(&native);
}

static void a_row_must_be_complete(void **state)
{
	struct native native = { 0 };
	struct fleet_bytes frame = { 0 };
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	(void)state;
	native_begin(&native, FLEET_STACKS, FLEET_NEW);
	native_number(&native, 7);
	native_end_row(&native);
	assert_int_equal(native_finish(&native, zstd, &frame), -EINVAL);
	native_begin(&native, FLEET_STACKS, FLEET_NEW);
	native_text(&native, "no number");
	assert_int_equal(native_finish(&native, zstd, &frame), -EINVAL);
	free(frame.at);
	ZSTD_freeCCtx(zstd);
	native_done(&native);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_those_of_the_standard),
		cmocka_unit_test(a_block_is_columns),
		cmocka_unit_test(a_row_must_be_complete),
	};

	return cmocka_run_group_tests_name("fleet_native", tests, NULL, NULL);
}
