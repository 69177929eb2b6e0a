/* SPDX-License-Identifier: MIT */
/* Test the choice of an output file: followed links, refused ones, and swaps between two steps. */
#include "files_fixture.h"

#include "base/place.h"

static void expect_place(const char *path, const char *folder, const char *name, bool exists)
{
	CLEANUP(place_done) struct place place;
	struct stat st = stat_of(folder);

	assert_int_equal(place_find(path, &place), 0);
	assert_true(place_is_same(&place.folder_st, &st));
	assert_string_equal(place.name, name);
	assert_int_equal(place.exists, exists);
}

static void expect_refusal(const char *path, int error)
{
	CLEANUP(place_done) struct place place;

	assert_int_equal(place_find(path, &place), -error);
	assert_int_equal(place.folder, -1);
	assert_null(place.name);
}

/* ---- Paths ---- */

static void paths_are_walked(void **state)
{
	char absolute[128];

	(void)state;
	make_folder("folder", 0755);
	write_text("folder/old", "");
	snprintf(absolute, sizeof absolute, "%s//folder/../folder/./old", scratch);
	expect_place("new", ".", "new", false);
	expect_place("folder/new", "folder", "new", false);
	expect_place("folder/old", "folder", "old", true);
	expect_place(absolute, "folder", "old", true);
	expect_refusal("", ENOENT);
	expect_refusal("missing/new", ENOENT);
	expect_refusal("folder/old/new", ENOTDIR);
	expect_refusal("folder/", EISDIR);
	expect_refusal("folder/..", EISDIR);
	expect_refusal("/", EISDIR);
}

static void own_links_are_followed(void **state)
{
	char absolute[128];

	(void)state;
	make_folder("folder", 0755);
	write_text("folder/old", "");
	snprintf(absolute, sizeof absolute, "%s/folder/old", scratch);
	assert_int_equal(symlink("folder", "way"), 0);
	assert_int_equal(symlink("way/old", "first"), 0);
	assert_int_equal(symlink(absolute, "folder/second"), 0);
	assert_int_equal(symlink("folder/new", "dangling"), 0);
	expect_place("way/new", "folder", "new", false);
	expect_place("first", "folder", "old", true);
	expect_place("way/second", "folder", "old", true);
	expect_place("dangling", "folder", "new", false);
}

static void loops_end(void **state)
{
	(void)state;
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(symlink("there", "here"), 0);
	assert_int_equal(symlink("here", "there"), 0);
	expect_refusal("loop", ELOOP);
	expect_refusal("here", ELOOP);
	expect_refusal("here/new", ELOOP);
}

/* ---- Links of procfs ---- */

static void descriptors_are_files_or_streams(void **state)
{
	CLEANUP(closep) int file = -1, deleted = -1;
	CLEANUP(place_done) struct place place = { .folder = -1 };
	int ends[2], fd;
	char path[64];

	(void)state;
	write_text("file", "text");
	write_text("gone", "text");
	file = open("file", O_RDONLY | O_CLOEXEC);
	deleted = open("gone", O_RDONLY | O_CLOEXEC);
	assert_int_equal(unlink("gone"), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);

	snprintf(path, sizeof path, "/dev/fd/%d", file);
	expect_place(path, ".", "file", true);
	snprintf(path, sizeof path, "/proc/self/fd/%d", deleted);
	assert_int_equal(place_find(path, &place), 0);
	assert_true(place.is_magic && S_ISREG(place.st.st_mode));
	place_done(&place);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
	assert_int_equal(place_find(path, &place), 0);
	assert_true(place.is_magic && S_ISFIFO(place.st.st_mode));
	fd = place_open(&place);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	expect_place("/proc/self/cwd/new", ".", "new", false);
}

/* ---- Another user ---- */

/* Everything that another user can place into a world-writable folder. */
static void strangers_things_are_refused_in(mode_t mode)
{
	make_folder("public", mode);
	make_folder("outside", 0755);
	write_text("outside/precious", "precious");
	assert_int_equal(symlink("../outside/precious", "public/link"), 0);
	assert_int_equal(symlink("../outside/new", "public/dangling"), 0);
	assert_int_equal(symlink("../outside", "public/way"), 0);
	assert_int_equal(symlink("link", "public/mine"), 0); /* ours, to a stranger's */
	write_text("public/file", "");
	assert_int_equal(mkfifo("public/fifo", 0666), 0);
	give_away("public/link");
	give_away("public/dangling");
	give_away("public/way");
	give_away("public/file");
	give_away("public/fifo");
	expect_refusal("public/link", PLACE_EOTHERS_LINK);
	expect_refusal("public/dangling", PLACE_EOTHERS_LINK);
	expect_refusal("public/way/new", PLACE_EOTHERS_LINK);
	expect_refusal("public/mine", PLACE_EOTHERS_LINK);
	expect_refusal("public/file", PLACE_EOTHERS_FILE);
	expect_refusal("public/fifo", PLACE_EOTHERS_FILE);
	expect_place("public/new", "public", "new", false);
}

static void strangers_are_refused_in_a_sticky_folder(void **state)
{
	(void)state;
	need_root();
	strangers_things_are_refused_in(01777);
}

static void strangers_are_refused_in_a_public_folder(void **state)
{
	(void)state;
	need_root();
	strangers_things_are_refused_in(0777);
}

/* Who owns a folder may lead to own files, and the folder's owner decides where its folders are. */
static void links_lead_to_what_their_owner_has(void **state)
{
	(void)state;
	need_root();
	make_folder("theirs", 0755);
	write_text("theirs/old", "");
	write_text("ours", "");
	assert_int_equal(symlink("old", "theirs/to_old"), 0);
	assert_int_equal(symlink("new", "theirs/to_new"), 0);
	assert_int_equal(symlink("../ours", "theirs/to_ours"), 0);
	assert_int_equal(symlink("../new", "theirs/to_our_folder"), 0);
	assert_int_equal(symlink("..", "theirs/up"), 0);
	assert_int_equal(symlink("..", "theirs/up_of_another"), 0);
	give_away("theirs");
	give_away("theirs/old");
	give_away("theirs/to_old");
	give_away("theirs/to_new");
	give_away("theirs/to_ours");
	give_away("theirs/to_our_folder");
	give_away("theirs/up");
	assert_int_equal(lchown("theirs/up_of_another", SOMEBODY - 1, SOMEBODY), 0);
	expect_place("theirs/old", "theirs", "old", true);
	expect_place("theirs/to_old", "theirs", "old", true);
	expect_place("theirs/to_new", "theirs", "new", false);
	expect_refusal("theirs/to_ours", PLACE_EOTHERS_LINK);
	expect_refusal("theirs/to_our_folder", PLACE_EOTHERS_LINK);
	expect_place("theirs/up/ours", ".", "ours", true);
	expect_refusal("theirs/up_of_another/ours", PLACE_EOTHERS_LINK);
	/* Not where everybody can put links. */
	assert_int_equal(chmod("theirs", 01777), 0);
	expect_refusal("theirs/up/ours", PLACE_EOTHERS_LINK);
	expect_place("theirs/old", "theirs", "old", true);
}

/* ---- Opening ---- */

static void a_fifo_needs_a_reader(void **state)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(closep) int reader = -1, fd = -1;

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(place_find("fifo", &place), 0);
	alarm(10); /* where it waits, that is the end */
	assert_int_equal(place_open(&place), -PLACE_ENO_READER);
	alarm(0);
	reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fd = place_open(&place);
	assert_true(fd >= 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void a_swap_before_opening_is_seen(void **state)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(closep) int reader = -1;

	(void)state;
	write_text("precious", "precious");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(place_find("fifo", &place), 0);
	assert_int_equal(rename("fifo", "elsewhere"), 0);
	assert_int_equal(symlink("precious", "fifo"), 0);
	assert_int_equal(place_open(&place), -PLACE_ECHANGED);
	assert_int_equal(unlink("fifo"), 0);
	assert_int_equal(link("precious", "fifo"), 0);
	assert_int_equal(place_open(&place), -PLACE_ECHANGED);
	expect_text("precious", "precious");
}

static void a_folder_is_held(void **state)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(freep) char *path = NULL;
	CLEANUP(closep) int fd = -1;
	char expected[128];

	(void)state;
	make_folder("folder", 0755);
	make_folder("outside", 0755);
	write_text("folder/name", "in folder");
	write_text("outside/name", "outside");
	assert_int_equal(place_find("folder/name", &place), 0);
	assert_int_equal(rename("folder", "moved"), 0);
	assert_int_equal(symlink("outside", "folder"), 0);
	fd = place_open(&place);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	expect_text("moved/name", "");
	expect_text("outside/name", "outside");
	assert_int_equal(place_folder_path(place.folder, &path), 0);
	snprintf(expected, sizeof expected, "%s/moved", scratch);
	assert_string_equal(path, expected);
}

static void only_what_was_made_is_removed(void **state)
{
	CLEANUP(place_done) struct place place;
	struct stat made;

	(void)state;
	write_text("made", "");
	made = stat_of("made");
	assert_int_equal(place_find("made", &place), 0);
	assert_int_equal(rename("made", "moved"), 0);
	write_text("made", "another");
	assert_int_equal(place_remove(place.folder, "made", &made), 0);
	expect_text("made", "another");
	assert_int_equal(unlink("made"), 0);
	assert_int_equal(symlink("moved", "made"), 0);
	assert_int_equal(place_remove(place.folder, "made", &made), 0);
	assert_true(is_there("made") && is_there("moved"));
	assert_int_equal(place_remove(place.folder, "moved", &made), 0);
	assert_false(is_there("moved"));
}

static void errors_are_sentences(void **state)
{
	static const int errors[] = { PLACE_EOTHERS_LINK, PLACE_EOTHERS_FILE, PLACE_ENO_READER, PLACE_ECHANGED,
				      ENOSPC };
	char sentence[256];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(errors); i++) {
		place_explain(-errors[i], "some/file", sentence, sizeof sentence);
		assert_ptr_equal(strstr(sentence, "some/file "), sentence);
		assert_true(errors[i] == ENOSPC || !strstr(sentence, strerror(errors[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_IN_SCRATCH(paths_are_walked),
		TEST_IN_SCRATCH(own_links_are_followed),
		TEST_IN_SCRATCH(loops_end),
		TEST_IN_SCRATCH(descriptors_are_files_or_streams),
		TEST_IN_SCRATCH(strangers_are_refused_in_a_sticky_folder),
		TEST_IN_SCRATCH(strangers_are_refused_in_a_public_folder),
		TEST_IN_SCRATCH(links_lead_to_what_their_owner_has),
		TEST_IN_SCRATCH(a_fifo_needs_a_reader),
		TEST_IN_SCRATCH(a_swap_before_opening_is_seen),
		TEST_IN_SCRATCH(a_folder_is_held),
		TEST_IN_SCRATCH(only_what_was_made_is_removed),
		cmocka_unit_test(errors_are_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
