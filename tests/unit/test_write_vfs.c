/* SPDX-License-Identifier: MIT */
/* test_write_vfs.c - recordings that are made or changed in a folder where somebody else has put things. */
#include <signal.h>

#include "src/store/files.h"
#include "tests/unit/store_fixture.h"

enum { OTHER_UID = 65533 };

static const char *const suffixes[] = { "-journal", "-wal", "-shm" };

static void needs_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("needs root: files of another user\n");
	skip();
}

static void expect_precious(const struct folder *f)
{
	char text[16] = "";
	FILE *file = fopen(with(f->path, "/precious"), "r");

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof text, file));
	fclose(file);
	assert_string_equal(text, "precious");
}

static void plant_foreign(const char *name)
{
	write_text(name, "planted");
	assert_int_equal(chmod(name, 0666), 0);
	assert_int_equal(chown(name, OTHER_UID, OTHER_UID), 0);
}

static void test_foreign_files_refuse_a_new_recording(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;

	needs_root();
	for (size_t i = 0; i < 3; i++) {
		plant_foreign(with(f->file, suffixes[i]));
		assert_int_equal(store_create(f->file, NULL, &store), -PLACE_EOTHERS_BESIDE);
		assert_false(exists(f->file));
		assert_true(exists(with(f->file, suffixes[i])));
		assert_int_equal(unlink(with(f->file, suffixes[i])), 0);
	}
}

static void test_foreign_files_refuse_a_change(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;

	needs_root();
	finish(new_store(f->file));
	for (size_t i = 0; i < 3; i++) {
		plant_foreign(with(f->file, suffixes[i]));
		assert_int_equal(store_open(f->file, &store), -PLACE_EOTHERS_BESIDE);
		assert_true(exists(with(f->file, suffixes[i])));
		assert_int_equal(unlink(with(f->file, suffixes[i])), 0);
	}
	assert_int_equal(store_open(f->file, &store), 0);
	store_close(store);
}

/* An orphan of the same user is removed; a link is removed, and its target stays. */
static void test_orphans_of_our_own_go(void **state)
{
	const struct folder *f = *state;

	write_text(with(f->file, "-journal"), "old");
	write_text(with(f->file, "-wal"), "old");
	finish(new_store(f->file));
	assert_false(exists(with(f->file, "-wal")));
	assert_int_equal(ask_samples(f->file, "SELECT count(*) FROM sample")[0], '1');
}

/* Placed after the check for existing files: SQLite finds it at open, and follows no link. */
static void test_links_planted_while_it_is_open(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;

	write_text(with(f->path, "/precious"), "precious");
	finish(new_store(f->file));
	assert_int_equal(store_open(f->file, &store), 0);
	assert_int_equal(symlink(with(f->path, "/precious"), with(f->file, "-journal")), 0);
	assert_true(put_batch(store) < 0);
	store_close(store);
	expect_precious(f);
	assert_int_equal(unlink(with(f->file, "-journal")), 0);
	assert_int_equal(ask_samples(f->file, "SELECT count(*) FROM sample_block")[0], '1');
}

static void test_files_planted_while_it_is_open(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;

	needs_root();
	finish(new_store(f->file));
	assert_int_equal(store_open(f->file, &store), 0);
	plant_foreign(with(f->file, "-journal"));
	assert_true(put_batch(store) < 0);
	store_close(store);
	assert_true(exists(with(f->file, "-journal")));
	/* A hard link to another file of the user is not part of the recording either. */
	assert_int_equal(unlink(with(f->file, "-journal")), 0);
	write_text(with(f->path, "/precious"), "precious");
	assert_int_equal(store_open(f->file, &store), 0);
	assert_int_equal(link(with(f->path, "/precious"), with(f->file, "-journal")), 0);
	assert_true(put_batch(store) < 0);
	store_close(store);
	expect_precious(f);
}

/* Another folder replaces the opened one: all later steps use the opened one. */
static void test_the_folder_is_swapped(void **state)
{
	const struct folder *f = *state;
	struct store *store;
	char moved[400];

	snprintf(moved, sizeof moved, "%s.moved", f->path);
	store = new_store(f->file);
	assert_int_equal(rename(f->path, moved), 0);
	assert_int_equal(mkdir(f->path, 0755), 0);
	assert_int_equal(put_batch(store), 0);
	finish(store);
	assert_false(exists(f->file));
	assert_false(exists(with(f->file, "-wal")));
	assert_int_equal(rmdir(f->path), 0);
	assert_int_equal(rename(moved, f->path), 0);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "200");
}

/* Another file in the place of the one that was locked is not written. */
static void test_the_recording_is_swapped(void **state)
{
	const struct folder *f = *state;
	struct store *store = NULL;
	struct place place = { .folder = -1 };

	write_text(with(f->path, "/precious"), "precious");
	finish(new_store(f->file));
	assert_int_equal(place_find(f->file, &place), 0);
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(symlink("precious", f->file), 0);
	assert_int_equal(files_lock(&place, &(int){ -1 }), -ELOOP);
	place_done(&place);
	assert_int_equal(store_open(f->file, &store), -EBADMSG); /* what the link leads to is no recording */
	expect_precious(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_foreign_files_refuse_a_new_recording),
		FOLDER_TEST(test_foreign_files_refuse_a_change),
		FOLDER_TEST(test_orphans_of_our_own_go),
		FOLDER_TEST(test_links_planted_while_it_is_open),
		FOLDER_TEST(test_files_planted_while_it_is_open),
		FOLDER_TEST(test_the_folder_is_swapped),
		FOLDER_TEST(test_the_recording_is_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
