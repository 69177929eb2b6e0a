/* SPDX-License-Identifier: MIT */
/* A folder for our files alone, also where others rename folders. */
#include "files_fixture.h"

#include "base/private_folder.h"

static int open_here(void)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void it_goes_with_its_files(void **state)
{
	CLEANUP(closep) int here = open_here();
	struct private_folder folder = { 0 };
	char file[256];

	(void)state;
	private_folder_remove(&folder);
	umask(0);
	assert_int_equal(private_folder_make(here, "some.", &folder), 0);
	assert_int_equal(mode_of(folder.path), 0700);
	assert_int_equal(strncmp(folder.name, "some.", 5), 0);
	snprintf(file, sizeof file, "%s/1.db", folder.path);
	write_text(file, "x");
	strcat(file, "-wal");
	write_text(file, "x");
	private_folder_remove(&folder);
	assert_null(folder.name);
	*strrchr(file, '/') = '\0';
	assert_false(is_there(file));
}

static void another_in_its_place_stays(void **state)
{
	CLEANUP(closep) int here = open_here();
	struct private_folder folder;
	CLEANUP(freep) char *name = NULL;
	char file[256];

	(void)state;
	make_folder("outside", 0755);
	write_text("outside/1.db", "precious");
	assert_int_equal(private_folder_make(here, "some.", &folder), 0);
	name = strdup(folder.name);
	snprintf(file, sizeof file, "%s/1.db", folder.path);
	write_text(file, "x");
	assert_int_equal(rename(name, "moved"), 0);
	assert_int_equal(symlink("outside", name), 0);
	private_folder_remove(&folder);
	expect_text("outside/1.db", "precious");
	assert_true(S_ISLNK(stat_of(name).st_mode));
	assert_false(is_there("moved/1.db"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_IN_SCRATCH(it_goes_with_its_files),
		TEST_IN_SCRATCH(another_in_its_place_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
