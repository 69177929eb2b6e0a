/* SPDX-License-Identifier: MIT */
/* Short names for files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file_labels.c" /* shared_components() is private */
#include "base/util.h"

struct expected {
	const char *path, *label;
};

static void check(const struct expected *expected, size_t n)
{
	const char *paths[32], *labels[32];

	assert_true(n <= N_ELEMENTS(paths));
	for (size_t i = 0; i < n; i++)
		paths[i] = expected[i].path;
	assert_int_equal(file_labels_find(paths, n, labels), 0);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(labels[i], expected[i].label);
		assert_ptr_equal(labels[i] + strlen(labels[i]),
				 paths[i] + strlen(paths[i])); /* the end of that very path */
	}
}

#define CHECK(...)                                                                                                     \
	check((struct expected[]){ __VA_ARGS__ }, sizeof((struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected))

static void the_last_component_where_it_is_unique(void **state)
{
	(void)state;
	CHECK({ "/home/anna/train.py", "train.py" }, { "/home/anna/data.py", "data.py" },
	      { "<frozen os>", "<frozen os>" }, { "/usr/lib/libc.so.6", "libc.so.6" }, { "retrain.py", "retrain.py" });
}

static void as_many_as_tell_it_apart(void **state)
{
	(void)state;
	CHECK({ "/srv/app/alpha/base.py", "alpha/base.py" }, { "/srv/app/beta/base.py", "beta/base.py" },
	      { "/srv/app/beta/gamma/base.py", "gamma/base.py" }, { "/srv/app/main.py", "main.py" });
	CHECK({ "/a/x/y/z.py", "a/x/y/z.py" }, { "/b/x/y/z.py", "b/x/y/z.py" }, { "/b/w/y/z.py", "w/y/z.py" });
}

/* The end of one path may be all of another one. */
static void a_path_within_another(void **state)
{
	(void)state;
	CHECK({ "base.py", "base.py" }, { "/base.py", "/base.py" }, { "/a/base.py", "/a/base.py" },
	      { "a/base.py", "a/base.py" });
}

static void relative_and_absolute(void **state)
{
	(void)state;
	CHECK({ "a/base.py", "a/base.py" }, { "/x/a/base.py", "x/a/base.py" }, { "/a/base.py", "/a/base.py" });
}

static void libraries_from_where_imports_begin(void **state)
{
	(void)state;
	CHECK({ "/venv/lib/python3.11/site-packages/django/db/models/query.py", "django/db/models/query.py" },
	      { "/usr/lib/python3/dist-packages/peewee/query.py", "peewee/query.py" },
	      { "/venv/lib/python3.11/site-packages/django/db/utils.py", "utils.py" },
	      { "/usr/lib/python3.11/json/__init__.py", "json/__init__.py" },
	      { "/opt/py/lib64/python3.13t/email/base.py", "email/base.py" }, { "/srv/base.py", "srv/base.py" });
	/* One package in two places. */
	CHECK({ "/one/lib/python3.11/site-packages/p/q.py", "one/lib/python3.11/site-packages/p/q.py" },
	      { "/two/lib/python3.11/site-packages/p/q.py", "two/lib/python3.11/site-packages/p/q.py" });
}

static void packages_are_known_by_their_folder(void **state)
{
	(void)state;
	CHECK({ "/srv/app/shop/__init__.py", "shop/__init__.py" });
	CHECK({ "__main__.py", "__main__.py" }, { "/srv/app/shop/__main__.py", "shop/__main__.py" });
	CHECK({ "/usr/lib/python3.11/json/__init__.py", "json/__init__.py" });
}

static void whatever_stands_there(void **state)
{
	(void)state;
	CHECK({ "", "" }, { "/", "/" }, { "//", "//" }, { "a/", "a/" }, { "a", "a" }, { "b//c", "c" });
	CHECK({ "/same/x.py", "x.py" }, { "/same/x.py", "x.py" });
	check(NULL, 0);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* 100,000 paths with long common ends, and each gets its own label. */
static void many(void **state)
{
	enum { N = 100000 };
	char **paths = calloc(N, sizeof *paths);
	const char **labels = calloc(N, sizeof *labels);

	(void)state;
	assert_non_null(paths);
	assert_non_null(labels);
	for (size_t i = 0; i < N; i++)
		assert_true(asprintf(&paths[i], "/srv/%zu/%zu/package/with/a/long/name/module%zu.py", i % 100, i / 1000,
				     i / 100 % 10) > 0);
	assert_int_equal(file_labels_find((const char *const *)paths, N, labels), 0);
	for (size_t i = 0; i < N; i++)
		assert_true(strlen(labels[i]) <= strlen(paths[i]));
	qsort(labels, N, sizeof *labels, compare_texts);
	for (size_t i = 1; i < N; i++)
		assert_string_not_equal(labels[i - 1], labels[i]);
	for (size_t i = 0; i < N; i++)
		free(paths[i]);
	free(paths);
	free(labels);
}

static void shared_ends_are_counted(void **state)
{
	static const struct {
		const char *a, *b;
		size_t n;
	} cases[] = {
		{ "/a/b.py", "/c/b.py", 1 }, { "/a/b.py", "/c/d.py", 0 },  { "/x/a/b.py", "/y/a/b.py", 2 },
		{ "b.py", "/a/b.py", 1 },    { "rb.py", "b.py", 0 },       { "/a/b.py", "/a/b.py", 3 },
		{ "a/b.py", "a/b.py", 2 },   { "/xa/b.py", "/a/b.py", 1 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		assert_int_equal(shared_components(&(struct entry){ cases[i].a, strlen(cases[i].a), 0 },
						   &(struct entry){ cases[i].b, strlen(cases[i].b), 0 }),
				 cases[i].n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_component_where_it_is_unique),
		cmocka_unit_test(as_many_as_tell_it_apart),
		cmocka_unit_test(a_path_within_another),
		cmocka_unit_test(relative_and_absolute),
		cmocka_unit_test(libraries_from_where_imports_begin),
		cmocka_unit_test(packages_are_known_by_their_folder),
		cmocka_unit_test(whatever_stands_there),
		cmocka_unit_test(many),
		cmocka_unit_test(shared_ends_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
