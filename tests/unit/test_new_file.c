/* SPDX-License-Identifier: MIT */
/* Files that appear whole: their rights, and what others can do between the beginning and the end. */
#include "files_fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/new_file.h"

static void put(const struct new_file *file, const char *text)
{
	assert_int_equal(write(file->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void write_new(const char *path, mode_t mode, const char *text)
{
	struct new_file file;

	assert_int_equal(new_file_open(&file, path, mode), 0);
	put(&file, text);
	assert_int_equal(new_file_finish(&file), 0);
}

/* As SQLite does it. */
static void write_reserved(const char *path, bool replaces, mode_t mode, const char *text)
{
	struct new_file file;

	assert_int_equal(new_file_reserve(&file, path, replaces, mode), 0);
	assert_false(is_there(file.path));
	write_text(file.path, text);
	assert_int_equal(new_file_finish(&file), 0);
}

static unsigned n_names(const char *folder)
{
	char command[128];
	unsigned n;
	FILE *out;

	snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
	out = popen(command, "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "%u", &n), 1);
	pclose(out);
	return n;
}

/* ---- File systems that can do less ---- */

/* As on NFS: neither O_TMPFILE nor RENAME_NOREPLACE. Source: seccomp(2). */
static int lose_abilities(void)
{
	enum {
		NUMBER = offsetof(struct seccomp_data, nr),
		FLAGS_OF_OPEN = offsetof(struct seccomp_data, args[2]),
		FLAGS_OF_RENAME = offsetof(struct seccomp_data, args[4])
	};
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS_OF_OPEN),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 5),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS_OF_RENAME),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, RENAME_NOREPLACE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = N_ELEMENTS(rules), .filter = rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/* Run in a child process without privileges; it must hold there. */
static void expect_with_less(bool (*holds)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(lose_abilities() < 0 ? 2 : holds() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool appears_with_less(void)
{
	struct new_file file;

	umask(0);
	if (new_file_open(&file, "stream", 0) < 0 || !is_there(file.temporary) || is_there("stream"))
		return false;
	if (write(file.fd, "text", 4) != 4 || new_file_finish(&file) < 0)
		return false;
	if (new_file_open(&file, "abandoned", 0) < 0)
		return false;
	new_file_abandon(&file);
	if (new_file_reserve(&file, "database", false, 0) < 0)
		return false;
	write_text(file.path, "text");
	return new_file_finish(&file) == 0;
}

static void named_files_appear_whole(void **state)
{
	(void)state;
	expect_with_less(appears_with_less);
	expect_text("stream", "text");
	expect_text("database", "text");
	assert_int_equal(mode_of("stream"), 0600);
	assert_int_equal(mode_of("database"), 0600);
	assert_int_equal(n_names("."), 2);
}

static bool is_careful_with_less(void)
{
	struct new_file file;

	if (new_file_open(&file, "name", 0) < 0 || rename(file.temporary, "moved") < 0 ||
	    symlink("precious", file.temporary) < 0)
		return false;
	if (new_file_finish(&file) != -PLACE_ECHANGED)
		return false;
	if (new_file_reserve(&file, "other", false, 0) < 0)
		return false;
	write_text(file.path, "text");
	write_text("other", "faster");
	return new_file_finish(&file) == -EEXIST;
}

static void named_files_are_not_swapped(void **state)
{
	(void)state;
	write_text("precious", "precious");
	expect_with_less(is_careful_with_less);
	expect_text("precious", "precious");
	expect_text("other", "faster");
	assert_false(is_there("name"));
	assert_int_equal(n_names("."), 4); /* with the link of others, which stays, and what they have moved */
}

/* ---- Rights ---- */

static void new_files_are_for_their_user(void **state)
{
	(void)state;
	umask(0);
	write_new("stream", 0, "x");
	write_reserved("database", false, 0, "x");
	assert_int_equal(mode_of("stream"), 0600);
	assert_int_equal(mode_of("database"), 0600);
	umask(0277);
	write_new("narrow_stream", 0, "x");
	write_reserved("narrow_database", false, 0, "x");
	assert_int_equal(mode_of("narrow_stream"), 0400);
	assert_int_equal(mode_of("narrow_database"), 0400);
	umask(022);
	assert_int_equal(n_names("."), 4);
}

static void the_umask_narrows_what_is_asked_for(void **state)
{
	(void)state;
	umask(027);
	write_new("stream", 0644, "x");
	write_reserved("database", false, 0644, "x");
	assert_int_equal(mode_of("stream"), 0640);
	assert_int_equal(mode_of("database"), 0640);
	umask(0);
	assert_int_equal(new_file_narrow(0644), 0644);
	umask(077);
	assert_int_equal(new_file_narrow(0644), 0600);
}

static void replaced_files_keep_their_rights(void **state)
{
	(void)state;
	umask(077);
	write_text("stream", "old");
	write_text("database", "old");
	assert_int_equal(chmod("stream", 0604), 0);
	assert_int_equal(chmod("database", 0640), 0);
	if (geteuid() == 0) {
		give_away("stream");
		give_away("database");
	}
	write_new("stream", 0, "new");
	write_reserved("database", true, 0, "new");
	expect_text("stream", "new");
	expect_text("database", "new");
	assert_int_equal(mode_of("stream"), 0604);
	assert_int_equal(mode_of("database"), 0640);
	if (geteuid() == 0) {
		assert_int_equal(stat_of("stream").st_uid, SOMEBODY);
		assert_int_equal(stat_of("database").st_gid, SOMEBODY);
	}
	umask(022);
	write_new("stream", 0644, "asked for");
	assert_int_equal(mode_of("stream"), 0644);
}

/* ---- Swaps ---- */

static void swap_folder(void)
{
	assert_int_equal(rename("folder", "moved"), 0);
	assert_int_equal(symlink("outside", "folder"), 0);
}

static void make_both_folders(void)
{
	make_folder("folder", 0755);
	make_folder("outside", 0755);
	write_text("outside/name", "precious");
}

static void a_swapped_folder_leads_nowhere(void **state)
{
	struct new_file file;

	(void)state;
	make_both_folders();
	assert_int_equal(new_file_open(&file, "folder/name", 0), 0);
	put(&file, "text");
	swap_folder();
	assert_int_equal(new_file_finish(&file), 0);
	expect_text("outside/name", "precious");
	expect_text("moved/name", "text");
	assert_int_equal(n_names("outside"), 1);
}

static void a_swapped_folder_of_a_reserved_path_leads_nowhere(void **state)
{
	struct new_file file;
	CLEANUP(freep) char *decoy = NULL;

	(void)state;
	make_both_folders();
	assert_int_equal(new_file_reserve(&file, "folder/name", true, 0), 0);
	write_text(file.path, "text");
	assert_true(asprintf(&decoy, "outside/%s", file.temporary) > 0);
	write_text(decoy, "decoy");
	assert_int_equal(chmod(decoy, 0644), 0);
	swap_folder();
	assert_int_equal(new_file_finish(&file), 0);
	expect_text("outside/name", "precious");
	expect_text(decoy, "decoy");
	assert_int_equal(mode_of(decoy), 0644);
	expect_text("moved/name", "text");
}

static void a_link_in_place_of_the_target_is_replaced(void **state)
{
	struct new_file file;

	(void)state;
	write_text("precious", "precious");
	assert_int_equal(chmod("precious", 0640), 0);
	assert_int_equal(new_file_open(&file, "name", 0), 0);
	put(&file, "text");
	assert_int_equal(symlink("precious", "name"), 0);
	assert_int_equal(new_file_finish(&file), 0);
	expect_text("precious", "precious");
	assert_int_equal(mode_of("precious"), 0640);
	expect_text("name", "text");
	assert_true(S_ISREG(stat_of("name").st_mode));
}

/* What others put under the temporary name, as if they had guessed it. */
static void plant_link(const char *path)
{
	assert_int_equal(symlink("precious", path), 0);
}

static void plant_hard_link(const char *path)
{
	assert_int_equal(link("precious", path), 0);
}

static void plant_fifo(const char *path)
{
	assert_int_equal(mkfifo(path, 0666), 0);
}

static void plant_folder(const char *path)
{
	make_folder(path, 0755);
}

static void plant_file(const char *path)
{
	write_text(path, "planted");
	give_away(path);
}

static void expect_planted_is_refused(void (*plant)(const char *path))
{
	struct new_file file;
	struct stat before, after;

	write_text("precious", "precious");
	write_text("name", "old");
	if (geteuid() == 0)
		give_away("name");
	before = stat_of("precious");
	assert_int_equal(new_file_reserve(&file, "name", true, 0644), 0);
	plant(file.temporary);
	alarm(10);
	assert_int_equal(new_file_finish(&file), -PLACE_ECHANGED);
	alarm(0);
	after = stat_of("precious");
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_mode, before.st_mode);
	expect_text("precious", "precious");
	expect_text("name", "old");
	assert_int_equal(unlink("precious"), 0);
	assert_int_equal(unlink("name"), 0);
}

static void what_others_planted_is_refused(void **state)
{
	(void)state;
	expect_planted_is_refused(plant_link);
	expect_planted_is_refused(plant_hard_link);
	expect_planted_is_refused(plant_fifo);
	expect_planted_is_refused(plant_folder);
	if (geteuid() == 0)
		expect_planted_is_refused(plant_file);
}

/* Under the name that a nameless file is about to get. */
static void a_planted_name_stays_whose_it_is(void **state)
{
	struct new_file file;
	CLEANUP(freep) char *planted = NULL;

	(void)state;
	write_text("precious", "precious");
	assert_int_equal(new_file_open(&file, "name", 0), 0);
	planted = strdup(file.temporary);
	if (!is_there(planted))
		assert_int_equal(symlink("precious", planted), 0);
	else
		assert_true(unlink(planted) == 0 && symlink("precious", planted) == 0);
	put(&file, "text");
	assert_true(new_file_finish(&file) < 0);
	assert_true(S_ISLNK(stat_of(planted).st_mode));
	assert_false(is_there("name"));
	expect_text("precious", "precious");
}

static void names_cannot_be_guessed(void **state)
{
	struct new_file one, other;

	(void)state;
	assert_int_equal(new_file_reserve(&one, "name", false, 0), 0);
	assert_int_equal(new_file_reserve(&other, "name", false, 0), 0);
	assert_string_not_equal(one.temporary, other.temporary);
	assert_int_equal(strspn(strrchr(one.temporary, '.') + 1, "0123456789abcdef"), 16);
	assert_true(one.temporary[0] == '.' && one.path[0] == '/');
	new_file_abandon(&one);
	new_file_abandon(&other);
	new_file_abandon(&other);
	assert_int_equal(n_names("."), 0);
}

/* ---- What stays ---- */

static void a_new_one_replaces_nothing_unasked(void **state)
{
	struct new_file file;

	(void)state;
	write_text("old", "old");
	assert_int_equal(new_file_reserve(&file, "old", false, 0), -EEXIST);
	assert_int_equal(new_file_reserve(&file, "name", false, 0), 0);
	write_text(file.path, "text");
	write_text("name", "faster");
	assert_int_equal(new_file_finish(&file), -EEXIST);
	expect_text("name", "faster");
	assert_int_equal(n_names("."), 2);
}

static void a_log_beside_belongs_to_another(void **state)
{
	struct new_file file;

	(void)state;
	write_text("name-wal", "log");
	assert_int_equal(new_file_reserve(&file, "name", true, 0), 0);
	write_text(file.path, "text");
	assert_int_equal(new_file_finish(&file), -EBUSY);
	expect_text("name-wal", "log");
	assert_int_equal(n_names("."), 1);
}

static void abandoned_files_leave_nothing(void **state)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
	struct new_file file = { 0 };

	(void)state;
	new_file_abandon(&file);
	assert_int_equal(new_file_open(&file, "name", 0), 0);
	new_file_abandon(&file);
	assert_int_equal(new_file_reserve(&file, "name", false, 0), 0);
	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		CLEANUP(freep) char *name = NULL;

		assert_true(asprintf(&name, "%s%s", file.path, suffixes[i]) > 0);
		write_text(name, "x");
	}
	new_file_abandon(&file);
	assert_int_equal(n_names("."), 0);
}

static void recordings_are_not_replaced_by_streams(void **state)
{
	static const char head[] = "SQLite format 3";
	CLEANUP(closep) int fd = open("recording", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct new_file file;

	(void)state;
	assert_int_equal(write(fd, head, sizeof head), sizeof head);
	assert_int_equal(new_file_open(&file, "recording", 0), -EEXIST);
	assert_int_equal(new_file_open_log("recording", 0), -EEXIST);
	assert_int_equal(stat_of("recording").st_size, sizeof head);
}

static void links_stay(void **state)
{
	(void)state;
	write_text("old", "old");
	assert_int_equal(symlink("old", "link"), 0);
	assert_int_equal(symlink("new", "dangling"), 0);
	write_new("link", 0, "through");
	write_reserved("dangling", false, 0, "through");
	assert_true(S_ISLNK(stat_of("link").st_mode) && S_ISLNK(stat_of("dangling").st_mode));
	expect_text("old", "through");
	expect_text("new", "through");
}

static void what_is_no_file_is_written_directly_or_refused(void **state)
{
	struct new_file file;

	(void)state;
	make_folder("folder", 0755);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(new_file_open(&file, "folder", 0), -EISDIR);
	assert_int_equal(new_file_reserve(&file, "folder", true, 0), -EISDIR);
	assert_int_equal(new_file_reserve(&file, "fifo", true, 0), -ENXIO);
	assert_int_equal(new_file_open(&file, "fifo", 0), -PLACE_ENO_READER);
	write_new("/dev/null", 0, "text");
	assert_true(S_ISCHR(stat_of("/dev/null").st_mode));
}

/* ---- Logs ---- */

static void logs_grow_where_they_are(void **state)
{
	struct stat before, after;
	int fd;

	(void)state;
	write_text("log", "of the last time");
	before = stat_of("log");
	fd = new_file_open_log("log", 0);
	assert_int_equal(write(fd, "now", 3), 3);
	close(fd);
	expect_text("log", "now");
	after = stat_of("log");
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mode, before.st_mode);
	umask(0);
	fd = new_file_open_log("new", 0);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mode_of("new"), 0600);
}

static void logs_empty_no_hard_link(void **state)
{
	(void)state;
	make_folder("public", 01777);
	write_text("precious", "precious");
	assert_int_equal(link("precious", "public/log"), 0);
	assert_int_equal(new_file_open_log("public/log", 0), -PLACE_EOTHERS_FILE);
	expect_text("precious", "precious");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_IN_SCRATCH(named_files_appear_whole),
		TEST_IN_SCRATCH(named_files_are_not_swapped),
		TEST_IN_SCRATCH(new_files_are_for_their_user),
		TEST_IN_SCRATCH(the_umask_narrows_what_is_asked_for),
		TEST_IN_SCRATCH(replaced_files_keep_their_rights),
		TEST_IN_SCRATCH(a_swapped_folder_leads_nowhere),
		TEST_IN_SCRATCH(a_swapped_folder_of_a_reserved_path_leads_nowhere),
		TEST_IN_SCRATCH(a_link_in_place_of_the_target_is_replaced),
		TEST_IN_SCRATCH(what_others_planted_is_refused),
		TEST_IN_SCRATCH(a_planted_name_stays_whose_it_is),
		TEST_IN_SCRATCH(names_cannot_be_guessed),
		TEST_IN_SCRATCH(a_new_one_replaces_nothing_unasked),
		TEST_IN_SCRATCH(a_log_beside_belongs_to_another),
		TEST_IN_SCRATCH(abandoned_files_leave_nothing),
		TEST_IN_SCRATCH(recordings_are_not_replaced_by_streams),
		TEST_IN_SCRATCH(links_stay),
		TEST_IN_SCRATCH(what_is_no_file_is_written_directly_or_refused),
		TEST_IN_SCRATCH(logs_grow_where_they_are),
		TEST_IN_SCRATCH(logs_empty_no_hard_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
