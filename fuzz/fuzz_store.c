/* SPDX-License-Identifier: MIT */
/* fuzz_store.c - damaged recordings, from the file to the path on the screen.
 *
 * An input that begins as an SQLite file does is taken as a recording. Any
 * other one changes a sound recording, which is faster and gets further: its
 * first byte chooses how, the rest says what.
 *   even  bytes of the file: groups of three, the place (16 bits) and a value
 *   odd   cells of its tables: groups of three, which one, which row, a value
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_PATH = 64, MAX_CHANGES = 200 };

static const char magic[] = "SQLite format 3";

static char path[64];
static uint8_t *base_bytes;
static size_t n_base_bytes;

static const char *const updates[] = {
	"UPDATE stack SET parent = ?2 WHERE stack = ?1",
	"UPDATE stack SET frame = ?2 WHERE stack = ?1",
	"UPDATE stack SET stack = ?2 WHERE stack = ?1",
	"UPDATE frame SET inlined_into = ?2 WHERE frame = ?1",
	"UPDATE frame SET function = ?2 WHERE frame = ?1",
	"UPDATE frame SET module = ?2 WHERE frame = ?1",
	"UPDATE frame SET line = ?2 WHERE frame = ?1",
	"UPDATE frame SET is_eval = ?2 WHERE frame = ?1",
	"UPDATE frame SET kind = CASE ?2 WHEN 0 THEN 'python' WHEN 1 THEN 'native' ELSE 'kernel' END WHERE frame = ?1",
	"UPDATE frame SET address = ?2 WHERE frame = ?1",
	"UPDATE function SET role = CASE ?2 WHEN 0 THEN 'internal' WHEN 1 THEN 'builtin' END WHERE function = ?1",
	"UPDATE function SET module = ?2 WHERE function = ?1",
	"UPDATE function SET name = zeroblob(?2) WHERE function = ?1",
	"UPDATE module SET path = char(?2) WHERE module = ?1",
	"UPDATE stack_total SET stack = ?2 WHERE stack = ?1",
	"UPDATE stack_total SET weight = ?2 WHERE stack = ?1",
	"DELETE FROM stack WHERE stack = ?1",
	"DELETE FROM frame WHERE frame = ?1",
	"INSERT INTO frame(frame, kind, function, line, module, address, is_eval, inlined_into) SELECT max(frame) + 1, 'native', NULL, NULL, NULL, 1, 0, ?1 FROM frame",
	"INSERT INTO stack SELECT max(stack) + 1, ?1, ?2, 0 FROM stack",
};

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_store: cannot make the sound recording: %s\n", what);
	exit(1);
}

/* A program whose functions call in circles, with every role, kind and inlining. */
static int put_rows(struct store *store)
{
	int r = 0;

	for (int i = 1; r == 0 && i <= 3; i++)
		r = store_put_module(store, &(struct module_row){ .module = i,
								  .path = i == 1   ? "/usr/bin/python3.11"
									  : i == 2 ? "/lib/libc.so.6"
										   : "/lib/x.so" });
	for (int i = 1; r == 0 && i <= 6; i++)
		r = store_put_function(store, &(struct function_row){ .function = i,
								      .name = i == 6 ? "start_thread" : "f",
								      .kind = i == 4 ? FRAME_PYTHON : FRAME_NATIVE,
								      .role = i == 1   ? "internal"
									      : i == 2 ? "builtin"
										       : NULL,
								      .file = "f.c",
								      .module = i == 4 ? 0 : 1 + i / 3 });
	for (int i = 1; r == 0 && i <= 12; i++)
		r = store_put_frame(store, &(struct frame_row){ .frame = i,
								.kind = i % 6 == 4 ? FRAME_PYTHON
									: i == 12  ? FRAME_KERNEL
										   : FRAME_NATIVE,
								.function = i <= 6 ? i : 0,
								.module = i == 4 || i > 10 ? 0 : 1 + i % 3,
								.line = i,
								.has_address = true,
								.address = 16u * (unsigned)i,
								.is_eval = i == 1,
								.inlined_into = i == 9 ? 10 : 0 });
	for (int i = 1; r == 0 && i <= 20; i++)
		r = store_put_stack(
			store, &(struct stack_row){
				       .stack = i, .parent = i / 2, .frame = 1 + i * 7 % 12, .depth = (unsigned)i });
	for (int i = 0; r == 0 && i <= 20; i += 2)
		r = store_put_total(store,
				    &(struct total_row){ .pid = 1, .tid = 2, .stack = i, .samples = 1, .weight = 9 });
	if (r == 0)
		r = store_put_process(store,
				      &(struct process_row){ .pid = 1, .name = "p", .command = "p", .started_ns = 1 });
	if (r == 0)
		r = store_put_thread(store, &(struct thread_row){ .pid = 1, .tid = 2, .name = "t", .started_ns = 1 });
	return r;
}

static void remove_files(void)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
	char name[80];

	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

/* Small pages make a small file, in which more bytes matter. */
static void make_base(void)
{
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct store *store;
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/fuzz-store-%d.db", folder, getpid());
	must(store_create(path, NULL, &store) == 0, "create");
	must(store_begin(store) == 0 && put_rows(store) == 0 && store_commit(store) == 0, "rows");
	must(store_finish(store, 1) == 0, "finish");
	must(sqlite3_open(path, &db) == SQLITE_OK, "open");
	must(sqlite3_exec(db, "PRAGMA page_size = 512; VACUUM", NULL, NULL, NULL) == SQLITE_OK, "vacuum");
	sqlite3_close(db);
	must(read_file(path, MAX_FILE_BYTES, (char **)&base_bytes, &n_base_bytes) == 0, "read");
	remove_files();
	atexit(remove_files);
}

static bool write_recording(const uint8_t *bytes, size_t n_bytes)
{
	CLEANUP(closep) int fd = -1;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes;
}

static void change_bytes(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) uint8_t *bytes = malloc(n_base_bytes);

	if (!bytes)
		return;
	memcpy(bytes, base_bytes, n_base_bytes);
	for (size_t i = 0; i + 3 <= n_bytes; i += 3)
		bytes[(size_t)(data[i] << 8 | data[i + 1]) % n_base_bytes] = data[i + 2];
	write_recording(bytes, n_base_bytes);
}

/* Small numbers refer to rows; the last few are the extremes of the range. */
static int64_t number(uint8_t byte)
{
	static const int64_t ends[] = { -1, INT64_MIN, INT64_MAX, INT32_MAX, (int64_t)INT32_MAX + 1 };

	return byte >= 256 - N_ELEMENTS(ends) ? ends[255 - byte] : byte;
}

static void change_cells(sqlite3 *db, const uint8_t *data, size_t n_bytes)
{
	for (size_t i = 0; i + 3 <= n_bytes && i < 3 * MAX_CHANGES; i += 3) {
		sqlite3_stmt *update;

		must(sqlite3_prepare_v2(db, updates[data[i] % N_ELEMENTS(updates)], -1, &update, NULL) == SQLITE_OK,
		     "update");
		sqlite3_bind_int64(update, 1, number(data[i + 1]));
		sqlite3_bind_int64(update, 2, number(data[i + 2]));
		sqlite3_step(update); /* a row that violates the schema stays unchanged */
		sqlite3_finalize(update);
	}
}

static void check_path(const struct profile *profile, int32_t stack, bool show_interpreter)
{
	int32_t frames[MAX_PATH];
	size_t n = profile_path(profile, stack, show_interpreter, frames, MAX_PATH);

	if (n == 0 || n > MAX_PATH)
		abort();
	for (size_t i = 0; i < n; i++)
		if (frames[i] < 0 || (size_t)frames[i] >= profile->n_frames || !profile->frames[frames[i]].name)
			abort();
}

static void check_profile(sqlite3 *db)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;

	if (profile_load(db, &profile) < 0)
		return;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		if (profile->stacks[i].parent >= (int32_t)i)
			abort();
		check_path(profile, (int32_t)i, false);
		check_path(profile, (int32_t)i, true);
	}
	for (size_t i = 0; i < profile->n_totals; i++)
		if (profile->totals[i].stack >= (int64_t)profile->n_stacks)
			abort();
}

/* Load the single samples of the file; a connection without the virtual table has none. */
static void check_samples(sqlite3 *db)
{
	static const struct profile_filter filter = { .with_samples = true, .has_since = true, .where = "weight >= 0" };
	CLEANUP(profile_freep) struct profile *profile = NULL;

	if (profile_load_view(db, &filter, &profile) < 0)
		return;
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		if (sample->stack >= (int64_t)profile->n_stacks || (size_t)sample->thread >= profile->n_threads ||
		    sample->verdict >= VERDICT_N || sample->state >= STATE_N ||
		    (i > 0 && profile->samples[i - 1].time_ns > sample->time_ns))
			abort();
	}
}

static void check_file(void)
{
	sqlite3 *db;

	if (store_open_reader(path, &db) == 0) {
		check_profile(db);
		check_samples(db);
		sqlite3_close(db);
	}
	remove_files();
}

static void check_cells(const uint8_t *data, size_t n_bytes)
{
	unsigned char *copy = sqlite3_malloc64(n_base_bytes);
	sqlite3 *db = NULL;

	must(copy && sqlite3_open(":memory:", &db) == SQLITE_OK, "memory");
	memcpy(copy, base_bytes, n_base_bytes);
	must(sqlite3_deserialize(db, "main", copy, (sqlite3_int64)n_base_bytes, (sqlite3_int64)n_base_bytes,
				 SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK,
	     "deserialize");
	sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
	change_cells(db, data, n_bytes);
	check_profile(db);
	sqlite3_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	if (!base_bytes)
		make_base();
	if (n_bytes >= sizeof magic && memcmp(data, magic, sizeof magic) == 0) {
		if (write_recording(data, n_bytes))
			check_file();
	} else if (n_bytes > 0 && data[0] % 2 == 0) {
		change_bytes(data + 1, n_bytes - 1);
		check_file();
	} else if (n_bytes > 0) {
		check_cells(data + 1, n_bytes - 1);
	}
	return 0;
}
