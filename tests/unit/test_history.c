/* SPDX-License-Identifier: MIT */
/* Test the prompt's history: private to the user, complete, and never in another user's file or folder. */
#include "files_fixture.h"

#include "src/prompt/history.h"

/* Return the history after one more line. */
static int save_line(const char *path, const char *line)
{
	History *kept = history_init();
	HistEvent event;
	int r;

	assert_non_null(kept);
	history(kept, &event, H_SETSIZE, 10);
	r = history_load(kept, path);
	if (r >= 0) {
		history(kept, &event, H_ENTER, line);
		r = history_save(kept, path);
	}
	history_end(kept);
	return r;
}

static int n_lines(const char *path)
{
	History *kept = history_init();
	HistEvent event;
	int r;

	history(kept, &event, H_SETSIZE, 10);
	r = history_load(kept, path);
	if (r >= 0) {
		assert_int_equal(history(kept, &event, H_GETSIZE), 0);
		r = event.num;
	}
	history_end(kept);
	return r;
}

static void it_is_kept_for_the_user(void **state)
{
	(void)state;
	umask(0);
	assert_int_equal(n_lines("kept"), 0);
	assert_int_equal(save_line("kept", "SELECT 1;\n"), 0);
	assert_int_equal(save_line("kept", "SELECT 2;\n"), 0);
	assert_int_equal(n_lines("kept"), 2);
	assert_int_equal(mode_of("kept"), 0600);
	assert_int_equal(chmod("kept", 0644), 0);
	assert_int_equal(save_line("kept", "SELECT 3;\n"), 0);
	assert_int_equal(mode_of("kept"), 0600);
}

static void folders_are_made(void **state)
{
	CLEANUP(freep) char *path = NULL;

	(void)state;
	assert_int_equal(setenv("XDG_STATE_HOME", scratch, 1), 0);
	assert_int_equal(history_path("sql_history", &path), 0);
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(mode_of("probing"), 0700);
	assert_int_equal(save_line(path, "SELECT 1;\n"), 0);
	assert_int_equal(n_lines(path), 1);
}

static void what_is_no_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkfifo("kept", 0600), 0);
	alarm(10); /* where it waits, that is the end */
	assert_int_equal(save_line("kept", "SELECT 1;\n"), -EINVAL);
	alarm(0);
	assert_true(S_ISFIFO(stat_of("kept").st_mode));
}

static void a_folder_of_others_is_refused(void **state)
{
	(void)state;
	make_folder("folder", 0777);
	assert_int_equal(save_line("folder/kept", "SELECT 1;\n"), -EPERM);
	assert_int_equal(chmod("folder", 0755), 0);
	assert_int_equal(save_line("folder/kept", "SELECT 1;\n"), 0);
	need_root();
	give_away("folder");
	assert_int_equal(save_line("folder/kept", "SELECT 2;\n"), -EPERM);
	assert_int_equal(n_lines("folder/kept"), -EPERM);
}

static void a_link_of_others_is_refused(void **state)
{
	struct stat before, after;

	(void)state;
	need_root();
	write_text("precious", "_HiStOrY_V2_\n"); /* one that can be read */
	assert_int_equal(chmod("precious", 0640), 0);
	before = stat_of("precious");
	assert_int_equal(symlink("precious", "kept"), 0);
	give_away("kept");
	assert_true(save_line("kept", "SELECT 1;\n") < 0);
	after = stat_of("precious");
	expect_text("precious", "_HiStOrY_V2_\n");
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_ino, before.st_ino);
}

static void a_file_of_others_is_refused(void **state)
{
	(void)state;
	need_root();
	write_text("kept", "_HiStOrY_V2_\n");
	give_away("kept");
	assert_int_equal(save_line("kept", "SELECT 1;\n"), -EPERM);
	expect_text("kept", "_HiStOrY_V2_\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_IN_SCRATCH(it_is_kept_for_the_user),     TEST_IN_SCRATCH(folders_are_made),
		TEST_IN_SCRATCH(what_is_no_file_is_refused),  TEST_IN_SCRATCH(a_folder_of_others_is_refused),
		TEST_IN_SCRATCH(a_link_of_others_is_refused), TEST_IN_SCRATCH(a_file_of_others_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
