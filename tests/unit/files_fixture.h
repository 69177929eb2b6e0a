/* SPDX-License-Identifier: MIT */
/* files_fixture.h - an empty folder for each test of files, and somebody else's things in it. */
#ifndef PROBING_FILES_FIXTURE_H
#define PROBING_FILES_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"

enum { SOMEBODY = 65534 };

static char scratch[64];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int enter_scratch(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/probing-test.XXXXXX");
	umask(022);
	return mkdtemp(scratch) && chmod(scratch, 0755) == 0 ? chdir(scratch) : -1;
}

static int leave_scratch(void **state)
{
	(void)state;
	return chdir("/") < 0 ? -1 : nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#define TEST_IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

/* Giving files away takes root. */
static inline void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root, for files of somebody else\n");
	skip();
}

static inline void give_away(const char *path)
{
	assert_int_equal(lchown(path, SOMEBODY, SOMEBODY), 0);
}

static inline void make_folder(const char *path, mode_t mode)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static inline void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline void expect_text(const char *path, const char *text)
{
	CLEANUP(freep) char *found = NULL;

	assert_int_equal(read_file(path, 4096, &found, NULL), 0);
	assert_string_equal(found, text);
}

static inline bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static inline struct stat stat_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st;
}

static inline mode_t mode_of(const char *path)
{
	return stat_of(path).st_mode & 07777;
}

#endif
