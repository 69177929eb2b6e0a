/* SPDX-License-Identifier: MIT */
/* test_cython_names.c - names out of the tracebacks of Debian's pandas, against its method tables, which have them, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/cython_names.h"
#include "symbolize/effort.h"
#include "symbolize/method_tables.h"
#include "symbolize/python_module.h"

static const char modules[] = "/usr/lib/python3/dist-packages/pandas/_libs/*.so";

struct comparison {
	size_t n_functions, n_files, n_both, n_equal;
};

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* Python finds some methods of an extension type under another name, and fused functions have one name in the source. */
static bool is_same(const char *whole_name, const char *member)
{
	const char *name = last_part(whole_name);
	static const char *const others[][2] = {
		{ "__cinit__", "__new__" },
		{ "__getbuffer__", "__buffer__" },
		{ "__richcmp__", " comparison" },
	};

	for (size_t i = 0; i < N_ELEMENTS(others); i++)
		if (strcmp(name, others[i][0]) == 0 && strcmp(member, others[i][1]) == 0)
			return true;
	if (strcmp(name, "__get__") == 0 || strcmp(name, "__set__") == 0) /* of a property, whose name precedes it */
		return strstr(whole_name, member) != NULL;
	return strcmp(name, member) == 0 || (strncmp(member, "__pyx_fuse_", 11) == 0 && strstr(member, name));
}

static void compare(const struct image *image, const struct method_tables *methods, struct comparison *sums)
{
	CLEANUP(cython_names_freep) struct cython_names *names = NULL;
	if (!cython_is_maker(image->elf)) /* one is written in C */
		return;
	assert_return_code(cython_names_new(image, &names), 0);
	for (size_t i = 0; i < names->n_functions; i++) {
		const struct cython_function *function = &names->functions[i];
		const struct method *method = method_tables_find(methods, function->start);

		assert_ptr_equal(cython_names_find(names, function->start), function);
		sums->n_functions++;
		sums->n_files += function->file != NULL;
		if (!method || !method->member || method->is_shared || strstr(function->name, ".__pyx_"))
			continue;
		sums->n_both++;
		sums->n_equal += is_same(function->name, method->member);
	}
}

static void compare_file(const char *path, struct comparison *sums)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(method_tables_freep) struct method_tables *methods = NULL;
	const struct method_file file = { 0 };
	struct effort effort = { 0 };
	struct python_module python;
	struct image image;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_return_code(fd, errno);
	assert_return_code(elf_file_open(fd, &elf), 0);
	effort_allow(&effort, 1 << 26);
	effort_begin(&effort);
	python_module_examine(elf_file_elf(elf), &python);
	assert_return_code(image_init(&image, elf), 0);
	assert_return_code(method_tables_new(&image, &python, &file, &methods), 0);
	compare(&image, methods, sums);
	image_done(&image);
	effort_end(&effort);
}

static void test_pandas(void **state)
{
	struct comparison sums = { 0 };
	glob_t found;

	(void)state;
	if (glob(modules, 0, NULL, &found) != 0) {
		fprintf(stderr, "skipped: python3-pandas is not installed\n");
		skip();
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		compare_file(found.gl_pathv[i], &sums);
	globfree(&found);
	printf("%zu functions, %zu with a file; %zu in method tables, too, %zu under the same name\n", sums.n_functions,
	       sums.n_files, sums.n_both, sums.n_equal);
	assert_true(sums.n_functions > 1000);
	assert_true(sums.n_files * 10 > sums.n_functions * 9);
	assert_true(sums.n_both > 300);
	assert_true(sums.n_equal * 100 >= sums.n_both * 98);
}

/* A module of C code has no tracebacks. */
static void test_other_modules(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(cython_names_freep) struct cython_names *names = NULL;
	struct image image;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_return_code(fd, errno);
	assert_return_code(elf_file_open(fd, &elf), 0);
	assert_return_code(image_init(&image, elf), 0);
	assert_return_code(cython_names_new(&image, &names), 0); /* its own constants have the setting's name */
	assert_int_equal(names->n_functions, 0);
	image_done(&image);
}

/* fuzz/make_cython_names_corpus.py has its source. */
static void test_names_of_two_thirds_of_the_calls(void **state)
{
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(cython_names_freep) struct cython_names *names = NULL;
	const char *root = getenv("PROBING_SOURCE_ROOT");
	struct image image;
	char path[512];
	size_t n_bytes;

	(void)state;
	assert_non_null(root);
	snprintf(path, sizeof path, "%s/fuzz/corpus/cython_names/module", root);
	assert_return_code(read_file(path, 1 << 20, &bytes, &n_bytes), 0);
	assert_return_code(elf_file_open_memory(bytes, n_bytes, &elf), 0);
	assert_return_code(image_init(&image, elf), 0);
	assert_return_code(cython_names_new(&image, &names), 0);
	assert_int_equal(names->n_functions, 2); /* half of the calls of another one are another function's */
	assert_string_equal(names->functions[0].name, "shop.cart.first");
	assert_string_equal(names->functions[0].file, "shop/cart.pyx");
	assert_string_equal(names->functions[1].name, "shop.cart.Cart.second");
	image_done(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_two_thirds_of_the_calls),
		cmocka_unit_test(test_pandas),
		cmocka_unit_test(test_other_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
