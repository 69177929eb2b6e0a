/* SPDX-License-Identifier: MIT */
/* Relocations of another machine: the library of fixtures/aarch64/. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "symbolize/image.h"

static struct elf_file *open_fixture(const char *name)
{
	const char *root = getenv("PROBING_SOURCE_ROOT");
	CLEANUP(freep) char *path = NULL;
	struct elf_file *elf;
	int fd;

	assert_non_null(root);
	assert_true(asprintf(&path, "%s/fixtures/aarch64/%s", root, name) > 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &elf), 0);
	return elf;
}

/* How many words of writable segments hold a value. */
static unsigned count_words(const struct image *image, uint64_t value)
{
	unsigned n = 0;

	for (size_t i = 0; i < image->n_segments; i++)
		for (uint64_t at = image->segments[i].start; at + 8 <= image->segments[i].end; at += 8) {
			uint64_t word;

			n += image->segments[i].writable && image_word(image, at, &word) && word == value;
		}
	return n;
}

/* Its PLT slot leads to its own function. */
static void test_own_symbol(void **state)
{
	struct elf_file *elf = open_fixture("shared.so");
	struct image image;
	uint64_t address, size;

	(void)state;
	assert_int_equal(image_init(&image, elf), 0);
	assert_int_equal(image.machine, EM_AARCH64);
	assert_int_equal(elf_file_symbol(elf, "shared_leaf", &address, &size), 0);
	assert_int_equal(count_words(&image, address), 1);
	assert_true(image_is_function(&image, address));
	assert_int_equal(image_jump_target(&image, address), 0);
	image_done(&image);
	elf_file_free(elf);
}

static void test_symbol_of_another_module(void **state)
{
	struct elf_file *elf = open_fixture("shared.elf");
	struct image image;

	(void)state;
	assert_int_equal(image_init(&image, elf), 0);
	assert_int_equal(count_words(&image, IMAGE_EXTERNAL), 1);
	image_done(&image);
	elf_file_free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_symbol),
		cmocka_unit_test(test_symbol_of_another_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
