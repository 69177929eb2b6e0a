/* SPDX-License-Identifier: MIT */
/* store_fixture.h - a temporary folder per test, and recordings in it. */
#ifndef PROBING_TESTS_STORE_FIXTURE_H
#define PROBING_TESTS_STORE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/store/store.h"

enum { BATCH_SAMPLES = 100, ORDINARY_UID = 65534 };

struct folder {
	char path[256], file[300], old[320];
};

static inline int folder_setup(void **state)
{
	struct folder *folder = calloc(1, sizeof *folder);
	const char *under = getenv("TMPDIR");

	if (!folder)
		return -1;
	snprintf(folder->path, sizeof folder->path, "%.200s/probing-store-XXXXXX", under ? under : "/tmp");
	if (!mkdtemp(folder->path) || chmod(folder->path, 0755) < 0) {
		free(folder);
		return -1;
	}
	snprintf(folder->file, sizeof folder->file, "%s/run.db", folder->path);
	snprintf(folder->old, sizeof folder->old, "%s.old", folder->file);
	*state = folder;
	return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *place)
{
	(void)st;
	(void)flag;
	(void)place;
	return remove(path);
}

static inline int folder_teardown(void **state)
{
	struct folder *folder = *state;

	chmod(folder->path, 0755);
	nftw(folder->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(folder);
	return 0;
}

#define FOLDER_TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

/* path + suffix, in one of a few static buffers. */
static inline const char *with(const char *path, const char *suffix)
{
	static char names[4][400];
	static unsigned next;
	char *name = names[next++ % 4];

	snprintf(name, sizeof names[0], "%.350s%s", path, suffix);
	return name;
}

static inline bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static inline void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Puts a row as the shell prints it behind the others. */
static inline int add_row(void *data, int n, char **values, char **names)
{
	char *to = data;

	(void)names;
	for (int i = 0; i < n; i++)
		sprintf(to + strlen(to), "%s%s", i > 0 ? "|" : *to ? "\n" : "", values[i] ? values[i] : "");
	return 0;
}

/* The same for what asks `sample`, which takes our code: the shell could load it, but not while a sanitizer is in it. */
static inline const char *ask_samples(const char *path, const char *sql)
{
	static char answer[4096];
	sqlite3 *db = NULL;

	answer[0] = '\0';
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(series_register(db), SQLITE_OK);
	if (sqlite3_exec(db, sql, add_row, answer, NULL) != SQLITE_OK)
		snprintf(answer, sizeof answer, "%s", sqlite3_errmsg(db));
	sqlite3_close(db);
	return answer;
}

/* The output of the stock shell, without the last newline. */
static inline const char *stock_shell(const char *path, const char *sql)
{
	static char answer[4096];
	char command[2048];
	size_t n;
	FILE *pipe;

	assert_true((size_t)snprintf(command, sizeof command, "sqlite3 -batch '%s' \"%s\" 2>&1", path, sql) <
		    sizeof command);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(answer, 1, sizeof answer - 1, pipe);
	answer[n] = '\0';
	assert_int_equal(pclose(pipe), 0);
	if (n > 0 && answer[n - 1] == '\n')
		answer[n - 1] = '\0';
	return answer;
}

static inline int put_run(struct store *store)
{
	return store_put_run(store, &(struct run_row){
					    .started_ns = 1700000000u * UINT64_C(1000000000),
					    .command = "python3 train.py",
					    .mode = "cpu",
					    .stack_source = "wakeup",
					    .host = "here",
					    .kernel = "6.1",
					    .probing = "0.1",
					    .pid = 42,
					    .hz = 99,
					    .kernel_frames = true,
					    .cpus = 4,
				    });
}

/* All but the first are random, so that they take space in any encoding. */
static inline int put_samples(struct store *store, unsigned n)
{
	static uint64_t noise = 1;

	for (unsigned i = 0; i < n; i++) {
		int r = store_put_sample(
			store, &(struct sample_row){
				       .time_ns = 1700000000u * UINT64_C(1000000000) + (i > 0 ? noise >> 24 : 0),
				       .pid = 42,
				       .tid = 43,
				       .cpu = 1,
				       .weight = i > 0 ? noise >> 12 & 0xffffffffff : 10101010,
				       .verdict = VERDICT_VERIFIED,
				       .end = STACK_COMPLETE,
				       .stack = 7,
			       });

		noise = noise * 6364136223846793005 + 1442695040888963407;

		if (r < 0)
			return r;
	}
	return 0;
}

/* One transaction of BATCH_SAMPLES rows. */
static inline int put_batch(struct store *store)
{
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = put_samples(store, BATCH_SAMPLES);
	if (r < 0) {
		store_rollback(store);
		return r;
	}
	return store_commit(store);
}

/* A store with a run and one batch in it. */
static inline struct store *new_store(const char *path)
{
	struct store *store = NULL;

	assert_int_equal(store_create(path, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	assert_int_equal(put_batch(store), 0);
	return store;
}

static inline void finish(struct store *store)
{
	assert_int_equal(store_finish(store, 1700000009u * UINT64_C(1000000000)), 0);
}

static inline int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t answer;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	answer = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return answer;
}

/*
 * Run f in a child; returns its exit status, or 128 + signal. f must not use cmocka's assertions: they would continue
 * with the other tests in the child.
 */
static inline int in_child(int (*f)(const struct folder *folder), const struct folder *folder)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(f(folder));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int become_ordinary(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0)
		return -errno;
	return setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) < 0 ||
			       setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) < 0
		       ? -errno
		       : 0;
}

/* In a child: leave with the line that went wrong. */
#define EXPECT(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

#endif
