/* SPDX-License-Identifier: MIT */
/* test_tracepoint.c - from a tracepoint's description to its fields, and from a record to their values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/capture/tracefs.h"

#define COMMON                                                                                                         \
	"ID: 1\nformat:\n"                                                                                             \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                 \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

/* One field of each kind, as the kernel describes them. */
static const char description[] = "name: kinds\n" COMMON "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"
				  "\tfield:unsigned short half;\toffset:12;\tsize:2;\tsigned:0;\n"
				  "\tfield:const char * address;\toffset:16;\tsize:8;\tsigned:0;\n"
				  "\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;\n"
				  "\tfield:__u8 hardware[4];\toffset:32;\tsize:4;\tsigned:0;\n"
				  "\tfield:__data_loc char[] text;\toffset:36;\tsize:4;\tsigned:0;\n"
				  "\tfield:int pair[2];\toffset:40;\tsize:8;\tsigned:1;\n"
				  "\tfield:__data_loc u64[] many;\toffset:48;\tsize:4;\tsigned:0;\n"
				  "\n"
				  "print fmt: \"%d %s\", REC->number, no_such_function(REC->text)\n";

struct record {
	uint32_t common[2];
	int32_t number;
	uint16_t half, padding;
	uint64_t address;
	char comm[8];
	uint8_t hardware[4];
	uint32_t text;
	int32_t pair[2];
	uint32_t many, more_padding;
	uint64_t words[2];
	char behind[8];
};

static const struct record usual = {
	.number = -7,
	.half = 65535,
	.address = 0x7fff88800000,
	.comm = "python3",
	.hardware = { 1, 0, 2, 255 },
	.text = 6 << 16 | offsetof(struct record, behind),
	.pair = { -1, 2 },
	.many = 16 << 16 | offsetof(struct record, words),
	.words = { 5, UINT64_MAX },
	.behind = "hello",
};

static struct tracepoint *describe(const char *text)
{
	struct tracepoint *tracepoint = NULL;

	assert_int_equal(tracepoint_describe("a:kinds", text, strlen(text), &tracepoint), 0);
	if (!tracepoint) {
		print_message("skipped: built without libtraceevent\n");
		skip();
	}
	return tracepoint;
}

static struct tracepoint_value decode(const struct tracepoint *tracepoint, const char *name, const void *raw,
				      size_t n_bytes)
{
	static char room[64];

	for (size_t i = 0; i < tracepoint->n_fields; i++)
		if (strcmp(tracepoint->fields[i].name, name) == 0)
			return tracepoint_decode(&tracepoint->fields[i], raw, n_bytes, room, sizeof room);
	fail_msg("no field %s", name);
	return (struct tracepoint_value){ 0 };
}

static void assert_bytes(struct tracepoint_value value, int type, const void *bytes, size_t n_bytes)
{
	assert_int_equal(value.type, type);
	assert_int_equal(value.n_bytes, n_bytes);
	assert_memory_equal(value.bytes, bytes, n_bytes);
}

static void test_values(void **state)
{
	CLEANUP(tracepoint_freep) struct tracepoint *tracepoint = describe(description);
	size_t n = sizeof usual;

	(void)state;
	assert_string_equal(tracepoint->name, "a:kinds");
	assert_int_equal(tracepoint->n_fields, 8);
	assert_int_equal(decode(tracepoint, "number", &usual, n).integer, -7);
	assert_int_equal(decode(tracepoint, "half", &usual, n).integer, 65535);
	assert_int_equal(decode(tracepoint, "address", &usual, n).type, VALUE_INTEGER);
	assert_int_equal(decode(tracepoint, "address", &usual, n).integer, 0x7fff88800000);
	assert_bytes(decode(tracepoint, "comm", &usual, n), VALUE_TEXT, "python3", 7);
	assert_bytes(decode(tracepoint, "hardware", &usual, n), VALUE_BYTES, usual.hardware, 4);
	assert_bytes(decode(tracepoint, "text", &usual, n), VALUE_TEXT, "hello", 5);
	assert_bytes(decode(tracepoint, "pair", &usual, n), VALUE_TEXT, "-1 2", 4);
	assert_bytes(decode(tracepoint, "many", &usual, n), VALUE_TEXT, "5 18446744073709551615", 22);
}

/* Kernel addresses are omitted, since they would reveal the kernel's layout; values near 2^64 are error codes. */
static void test_kernel_addresses_are_left_out(void **state)
{
	CLEANUP(tracepoint_freep) struct tracepoint *tracepoint = describe(description);
	static const uint64_t hidden[] = { 0xffff800000000000, 0xffffffff81000000, -UINT64_C(4096) };
	static const uint64_t shown[] = { 0xffff7fffffffffff, -UINT64_C(4095), UINT64_MAX };
	struct record record = usual;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(hidden); i++) {
		record.address = record.words[1] = hidden[i];
		assert_int_equal(decode(tracepoint, "address", &record, sizeof record).type, VALUE_NONE);
		assert_bytes(decode(tracepoint, "many", &record, sizeof record), VALUE_TEXT, "5 ?", 3);
	}
	for (size_t i = 0; i < N_ELEMENTS(shown); i++) {
		record.address = shown[i];
		assert_int_equal(decode(tracepoint, "address", &record, sizeof record).type, VALUE_INTEGER);
		assert_int_equal(decode(tracepoint, "address", &record, sizeof record).integer, (int64_t)shown[i]);
	}
	record.number = -4097; /* of a sign: a number, not an address */
	assert_int_equal(decode(tracepoint, "number", &record, sizeof record).integer, -4097);
}

/* A truncated record returns its complete fields. */
static void test_cut_records(void **state)
{
	CLEANUP(tracepoint_freep) struct tracepoint *tracepoint = describe(description);

	(void)state;
	for (size_t n = 0; n <= sizeof usual; n++) {
		void *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, &usual, n);
		assert_int_equal(decode(tracepoint, "number", copy, n).type, n < 12 ? VALUE_NONE : VALUE_INTEGER);
		assert_int_equal(decode(tracepoint, "comm", copy, n).type, n < 32 ? VALUE_NONE : VALUE_TEXT);
		assert_int_equal(decode(tracepoint, "text", copy, n).type,
				 n < offsetof(struct record, behind) + 6 ? VALUE_NONE : VALUE_TEXT);
		free(copy);
	}
}

static void test_text_that_is_none(void **state)
{
	CLEANUP(tracepoint_freep) struct tracepoint *tracepoint = describe(description);
	static const struct {
		char bytes[8];
		int type;
		size_t n;
	} cases[] = {
		{ "", VALUE_TEXT, 0 },
		{ "12345678", VALUE_TEXT, 8 }, /* no NUL at all */
		{ "\303\244", VALUE_TEXT, 2 },
		{ "a\377", VALUE_BYTES, 2 },
		{ "\300\200", VALUE_BYTES, 2 },     /* too long for what it is */
		{ "\355\240\200", VALUE_BYTES, 3 }, /* half a pair of UTF-16 */
		{ "\360\237\230\200", VALUE_TEXT, 4 },
		{ "123456\342\202", VALUE_BYTES, 8 }, /* cut within a character */
	};
	struct record record = usual;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		memcpy(record.comm, cases[i].bytes, sizeof record.comm);
		assert_bytes(decode(tracepoint, "comm", &record, sizeof record), cases[i].type, cases[i].bytes,
			     cases[i].n);
	}
}

/* Numbers that exceed the buffer are omitted, one by one. */
static void test_room(void **state)
{
	struct tracepoint_field field = { .type = TRACEPOINT_NUMBERS, .n_bytes = 8, .element_bytes = 2 };
	static const uint16_t numbers[4] = { 1, 22, 333, 4444 };
	char room[16];

	(void)state;
	assert_bytes(tracepoint_decode(&field, numbers, sizeof numbers, room, 16), VALUE_TEXT, "1 22 333 4444", 13);
	assert_bytes(tracepoint_decode(&field, numbers, sizeof numbers, room, 8), VALUE_TEXT, "1 22 333", 8);
	assert_bytes(tracepoint_decode(&field, numbers, sizeof numbers, room, 7), VALUE_TEXT, "1 22", 4);
	field.element_bytes = 3;
	assert_int_equal(tracepoint_decode(&field, numbers, sizeof numbers, room, 16).type, VALUE_BYTES);
	field.element_bytes = 0;
	assert_int_equal(tracepoint_decode(&field, numbers, sizeof numbers, room, 16).n_bytes, 0);
}

/* The numbers are this machine's. */
static void test_syscall_names(void **state)
{
	static const char text[] = "name: kinds\n" COMMON "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\n"
				   "print fmt: \"%ld\", REC->id\n";
	int64_t record[2] = { 0, SYS_perf_event_open };
	struct tracepoint *tracepoint = NULL;

	(void)state;
	tracepoint_free(describe(description)); /* else it is built without */
	assert_int_equal(tracepoint_describe("raw_syscalls:kinds", text, strlen(text), &tracepoint), 0);
	assert_int_equal(tracepoint->n_fields, 2);
	assert_bytes(decode(tracepoint, "syscall", record, sizeof record), VALUE_TEXT, "perf_event_open", 15);
	record[1] = -1;
	assert_int_equal(decode(tracepoint, "syscall", record, sizeof record).type, VALUE_NONE);
	record[1] = INT64_MAX;
	assert_int_equal(decode(tracepoint, "syscall", record, sizeof record).type, VALUE_NONE);
	tracepoint_free(tracepoint);
}

/* From Linux 5.18 an offset may count from behind the word. */
static void test_relative(void **state)
{
	struct tracepoint_field field = {
		.type = TRACEPOINT_TEXT, .offset = 4, .n_bytes = 4, .is_dynamic = true, .is_relative = true
	};
	struct {
		uint32_t first, word;
		char text[8];
	} record = { 0, 3 << 16 | 2, "__yes" };
	char room[1];

	(void)state;
	assert_bytes(tracepoint_decode(&field, &record, sizeof record, room, 1), VALUE_TEXT, "yes", 3);
	record.word = 7 << 16 | 2;
	assert_int_equal(tracepoint_decode(&field, &record, sizeof record, room, 1).type, VALUE_NONE);
	record.word = 0xffffffff;
	assert_int_equal(tracepoint_decode(&field, &record, sizeof record, room, 1).type, VALUE_NONE);
}

static void test_no_descriptions(void **state)
{
	static const char *const texts[] = { "", "nonsense", "name: kinds\n", "name: other\n" COMMON };
	struct tracepoint *tracepoint = NULL;

	(void)state;
	tracepoint_free(describe(description)); /* else it is built without */
	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		assert_int_equal(tracepoint_describe("a:kinds", texts[i], strlen(texts[i]), &tracepoint), -EBADMSG);
	assert_null(tracepoint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),      cmocka_unit_test(test_kernel_addresses_are_left_out),
		cmocka_unit_test(test_cut_records), cmocka_unit_test(test_text_that_is_none),
		cmocka_unit_test(test_room),        cmocka_unit_test(test_syscall_names),
		cmocka_unit_test(test_relative),    cmocka_unit_test(test_no_descriptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
