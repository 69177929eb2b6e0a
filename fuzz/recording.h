/* SPDX-License-Identifier: MIT */
/* recording.h - a small sound recording, and what every reader does with a file. For fuzzers of whole recordings. */
#ifndef PROBING_FUZZ_RECORDING_H
#define PROBING_FUZZ_RECORDING_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/archive/archive.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

enum { RECORDING_MAX_BYTES = 4 << 20, RECORDING_SAMPLES = 60, RECORDING_HEAP_BYTES = 200 << 20 };

/* The current folder is our own, so that unexpected files in it are detected. */
static char recording_folder[] = "/tmp/fuzz-recording-XXXXXX";
static const char recording_path[] = "x.db", recording_copy[] = "copy.db";
static uint8_t *recording_bytes;
static size_t recording_n_bytes;

static inline void recording_must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzzer of recordings: %s\n", what);
	abort();
}

static inline void recording_remove(void)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
	char name[80];

	for (size_t i = 0; i < 2 * N_ELEMENTS(suffixes); i++) {
		snprintf(name, sizeof name, "%s%s", i % 2 ? recording_path : recording_copy, suffixes[i / 2]);
		unlink(name);
	}
}

static inline void recording_leave(void)
{
	recording_remove();
	if (chdir("/") == 0)
		rmdir(recording_folder);
}

static inline void recording_write(const char *path, const void *bytes, size_t n_bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	recording_must(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes, "write");
	close(fd);
}

static inline bool recording_is(const char *path, const void *bytes, size_t n_bytes)
{
	CLEANUP(freep) char *found = NULL;
	size_t n;

	return read_file(path, RECORDING_MAX_BYTES, &found, &n) == 0 && n == n_bytes && memcmp(found, bytes, n) == 0;
}

static inline int recording_put(struct store *store)
{
	int r = store_put_run(store, &(struct run_row){ .started_ns = 1000,
							.command = "c",
							.mode = "cpu",
							.stack_source = "wakeup",
							.host = "h",
							.kernel = "k",
							.probing = "0",
							.pid = 7,
							.hz = 9,
							.cpus = 1 });

	for (int i = 1; r == 0 && i <= 3; i++) {
		r = store_put_function(store,
				       &(struct function_row){ .function = i, .name = "f", .kind = FRAME_NATIVE });
		if (r == 0)
			r = store_put_frame(
				store,
				&(struct frame_row){ .frame = i, .kind = FRAME_NATIVE, .function = i, .line = i });
		if (r == 0)
			r = store_put_stack(
				store, &(struct stack_row){
					       .stack = i, .parent = i - 1, .frame = i, .depth = (unsigned)i - 1 });
	}
	for (int i = 0; r == 0 && i < RECORDING_SAMPLES; i++)
		r = store_put_sample(store, &(struct sample_row){ .time_ns = 2000000000u + 1000u * (unsigned)i,
								  .pid = 7,
								  .tid = 8,
								  .weight = 3,
								  .stack = 1 + i % 3 });
	for (int i = 1; r == 0 && i <= 3; i++)
		r = store_put_total(store, &(struct total_row){ 7, 8, i, RECORDING_SAMPLES / 3, RECORDING_SAMPLES });
	if (r == 0)
		r = store_put_process(store,
				      &(struct process_row){ .pid = 7, .name = "p", .command = "p", .started_ns = 1 });
	if (r == 0)
		r = store_put_thread(store, &(struct thread_row){ .pid = 7, .tid = 8, .name = "t", .started_ns = 1 });
	return r == 0 ? store_put_counter(store, "samples", RECORDING_SAMPLES) : r;
}

/* @change: SQL for the finished file, NULL: none. Small pages make a small file. */
static inline void recording_make(const char *change)
{
	struct store *store;
	sqlite3 *db;

	recording_must(mkdtemp(recording_folder) && chdir(recording_folder) == 0, "folder");
	atexit(recording_leave);
	recording_must(store_create(recording_path, NULL, &store) == 0, "create");
	recording_must(store_begin(store) == 0 && recording_put(store) == 0 && store_commit(store) == 0, "rows");
	recording_must(store_finish(store, 3000) == 0, "finish");
	recording_must(sqlite3_open(recording_path, &db) == SQLITE_OK, "open");
	recording_must(!change || sqlite3_exec(db, change, NULL, NULL, NULL) == SQLITE_OK, "change");
	recording_must(sqlite3_exec(db, "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM", NULL, NULL,
				    NULL) == SQLITE_OK,
		       "vacuum");
	sqlite3_close(db);
	recording_must(read_file(recording_path, RECORDING_MAX_BYTES, (char **)&recording_bytes, &recording_n_bytes) ==
			       0,
		       "read");
	recording_remove();
	sqlite3_hard_heap_limit64(RECORDING_HEAP_BYTES);
}

static inline void recording_hear(void *data, const char *sentence)
{
	(void)data;
	recording_must(sentence[0] != '\0', "an empty sentence");
}

static inline bool recording_goes_on(void *data, const struct copy_progress *progress)
{
	(void)progress;
	return ++*(unsigned *)data < 10000;
}

/* Read what info, info --check and report read. */
static inline void recording_read(sqlite3 *db)
{
	CLEANUP(profile_freep) struct profile *profile = NULL, *view = NULL;
	static const struct profile_filter filter = { .with_samples = true };
	struct check_result result;
	struct about about;

	about_read(db, recording_path, false, &about);
	about_done(&about);
	check_recording(db, recording_hear, NULL, &result);
	profile_load(db, &profile);
	profile_load_view(db, &filter, &view);
}

static inline void recording_copy_all(sqlite3 *db)
{
	unsigned n = 0;
	const struct copy_options options = { .keep_all = true, .keep_going = recording_goes_on, .data = &n };
	struct copy_result result;

	copy_recordings(&db, 1, recording_copy, &options, &result);
}

#endif
