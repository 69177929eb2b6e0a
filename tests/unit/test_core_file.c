/* SPDX-License-Identifier: MIT */
/* test_core_file.c - reads core files that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core_file.h"
#include "base/util.h"

static int read_example(const char *name, struct core_file **ret)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/fuzz/corpus/core_file/%s", getenv("PROBING_SOURCE_ROOT"), name);
	return core_file_read(path, ret);
}

/* As fuzz/make_core_corpus.py wrote it. */
static void test_all_that_is_told(void **state)
{
	CLEANUP(core_file_freep) struct core_file *core = NULL;

	(void)state;
	assert_int_equal(read_example("plain", &core), 0);
	assert_int_equal(core->pid, 4242);
	assert_int_equal(core->signal, 11);
	assert_string_equal(core->name, "python3");
	assert_string_equal(core->command, "python3 train.py");
	assert_int_equal(core->vdso, 0x7fff0000);
	assert_int_equal(core->program, 0x400040);
	assert_int_equal(core->n_threads, 6);
	for (size_t i = 0; i < core->n_threads; i++)
		assert_int_equal(core->threads[i].tid, 4242 + (int)i);
#if defined(PROBING_MACHINE_X86_64)
	/* In the order of struct user_regs_struct: r15 first, rbp fifth, rip 17th, rsp 20th. */
	assert_int_equal(core->threads[3].regs.value[MACHINE_REG_FP], 104);
	assert_int_equal(core->threads[3].regs.value[MACHINE_REG_PC], 116);
	assert_int_equal(core->threads[3].regs.value[MACHINE_REG_SP], 119);
#endif
	assert_int_equal(core->n_mappings, 2);
	assert_string_equal(core->mappings[1].path, "/usr/lib/libc.so.6 (deleted)");
	assert_int_equal(core->mappings[1].start, 0x7f0000);
	assert_int_equal(core->mappings[1].end, 0x7f2000);
	assert_int_equal(core->mappings[1].file_offset, 4096);
	assert_int_equal(core->n_ranges, 1);
	assert_int_equal(core->ranges[0].start, 0x1000);
	assert_int_equal(core->ranges[0].end, 0x2000);
	assert_true(core->ranges[0].writable);
	assert_false(core->ranges[0].executable);
}

static void test_damaged_ones_are_refused(void **state)
{
	static const struct {
		const char *name;
		int error;
	} examples[] = {
		{ "no_thread", -ENODATA },      { "short_thread", -EBADMSG },        { "short_who", -EBADMSG },
		{ "too_many_files", -EBADMSG }, { "countless_files", -EBADMSG },     { "huge_pages", -EBADMSG },
		{ "files_twice", -EBADMSG },    { "notes_past_the_file", -EBADMSG }, { "there_is_none", -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(examples); i++) {
		struct core_file *core = NULL;

		print_message("%s\n", examples[i].name);
		assert_int_equal(read_example(examples[i].name, &core), examples[i].error);
		assert_null(core);
	}
}

static void test_other_notes_do_not_matter(void **state)
{
	CLEANUP(core_file_freep) struct core_file *other = NULL, *odd = NULL, *endless = NULL;

	(void)state;
	assert_int_equal(read_example("of_another", &other), 0);
	assert_int_equal(other->n_threads, 1);
	assert_int_equal(other->threads[0].tid, 7);
	assert_int_equal(read_example("odd_auxiliary", &odd), 0);
	assert_int_equal(read_example("path_without_end", &endless), 0);
	assert_string_equal(endless->mappings[0].path, "/no/end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_that_is_told),
		cmocka_unit_test(test_damaged_ones_are_refused),
		cmocka_unit_test(test_other_notes_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
