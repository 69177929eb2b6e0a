/* SPDX-License-Identifier: MIT */
/* fuzz_archive.c - damaged recordings that are looked at, checked and copied.
 *
 * An input changes a sound recording: its first byte chooses how, the rest says what.
 *   even  bytes of the file: groups of three, the place (16 bits) and a value
 *   odd   cells of its tables: groups of three, which one, which row, a value
 * Whatever comes of it: nothing crashes or goes on for ever, and the copy of what was found sound is sound.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/archive/archive.h"
#include "src/store/store.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_CHANGES = 100 };

static char path[64], copied[64];
static uint8_t *base_bytes;
static size_t n_base_bytes;

static const char *const updates[] = {
	"UPDATE stack SET parent = ?2 WHERE stack = ?1",
	"UPDATE stack SET frame = ?2 WHERE stack = ?1",
	"UPDATE stack SET stack = ?2 WHERE stack = ?1",
	"UPDATE frame SET inlined_into = ?2 WHERE frame = ?1",
	"UPDATE frame SET function = ?2 WHERE frame = ?1",
	"UPDATE frame SET frame = ?2 WHERE frame = ?1",
	"UPDATE function SET module = ?2 WHERE function = ?1",
	"UPDATE function SET name = zeroblob(?2) WHERE function = ?1",
	"UPDATE stack_total SET stack = ?2 WHERE stack = ?1",
	"UPDATE stack_total SET pid = ?2 WHERE stack = ?1",
	"UPDATE process SET pid = ?2 WHERE pid = ?1",
	"UPDATE process SET parent_pid = ?2 WHERE pid = ?1",
	"UPDATE run SET pid = ?2, event = 'a:b'",
	"UPDATE run SET run = ?2",
	"UPDATE counter SET value = ?2",
	"DELETE FROM stack WHERE stack = ?1",
	"DELETE FROM frame WHERE frame = ?1",
	"DELETE FROM run",
	"DROP TABLE pause",
	"CREATE TABLE 'a:b'(sample, x, y)",
	"CREATE TABLE other(x UNIQUE, y AS (x + ?2))",
};

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_archive: cannot make the sound recording: %s\n", what);
	exit(1);
}

static int put_tree(struct store *store)
{
	int r = 0;

	for (int i = 1; r == 0 && i <= 3; i++)
		r = store_put_function(
			store, &(struct function_row){
				       .function = i, .name = "f", .kind = FRAME_NATIVE, .module = i == 3 ? 1 : 0 });
	for (int i = 1; r == 0 && i <= 5; i++)
		r = store_put_frame(store, &(struct frame_row){ .frame = i,
								.kind = FRAME_NATIVE,
								.function = i > 3 ? 0 : i,
								.line = i,
								.inlined_into = i == 2 ? 3 : 0 });
	for (int i = 1; r == 0 && i <= 8; i++)
		r = store_put_stack(store, &(struct stack_row){ .stack = i,
								.parent = i / 2,
								.frame = 1 + i % 5,
								.depth = i == 1  ? 0
									 : i < 4 ? 1
									 : i < 8 ? 2
										 : 3 });
	return r;
}

static int put_rows(struct store *store)
{
	int r;

	r = store_put_run(store, &(struct run_row){ .started_ns = 1000,
						    .command = "c",
						    .mode = "cpu",
						    .stack_source = "wakeup",
						    .host = "h",
						    .kernel = "k",
						    .probing = "0",
						    .pid = 7,
						    .hz = 9,
						    .cpus = 1 });
	if (r == 0)
		r = store_put_module(store, &(struct module_row){ 1, "/lib/x.so", NULL });
	if (r == 0)
		r = put_tree(store);
	for (int i = 0; r == 0 && i <= 8; i++) {
		r = store_put_sample(
			store,
			&(struct sample_row){
				.time_ns = 2000000000u + (unsigned)i, .pid = 7, .tid = 8, .weight = 3, .stack = i });
		if (r == 0)
			r = store_put_total(store, &(struct total_row){ 7, 8, i, 1, 3 });
	}
	if (r == 0)
		r = store_put_process(
			store, &(struct process_row){
				       .pid = 7, .parent_pid = 1, .name = "p", .command = "p", .started_ns = 1 });
	return r == 0 ? store_put_counter(store, "samples", 9) : r;
}

static void remove_files(void)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
	char name[80];

	for (size_t i = 0; i < 2 * N_ELEMENTS(suffixes); i++) {
		snprintf(name, sizeof name, "%s%s", i % 2 ? path : copied, suffixes[i / 2]);
		unlink(name);
	}
}

static void make_base(void)
{
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct store *store;
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/fuzz-archive-%d.db", folder, getpid());
	snprintf(copied, sizeof copied, "%s/fuzz-archive-copy-%d.db", folder, getpid());
	must(store_create(path, NULL, &store) == 0, "create");
	must(store_begin(store) == 0 && put_rows(store) == 0 && store_commit(store) == 0, "rows");
	must(store_finish(store, 3000) == 0, "finish");
	must(sqlite3_open(path, &db) == SQLITE_OK, "open");
	must(sqlite3_exec(db, "PRAGMA page_size = 512; VACUUM", NULL, NULL, NULL) == SQLITE_OK, "vacuum");
	sqlite3_close(db);
	must(read_file(path, MAX_FILE_BYTES, (char **)&base_bytes, &n_base_bytes) == 0, "read");
	remove_files();
	atexit(remove_files);
}

static void change_bytes(uint8_t *bytes, const uint8_t *data, size_t n_bytes)
{
	for (size_t i = 0; i + 3 <= n_bytes; i += 3)
		bytes[(size_t)(data[i] << 8 | data[i + 1]) % n_base_bytes] = data[i + 2];
}

/* Small numbers refer to rows; the last few are the extremes of the range. */
static int64_t number(uint8_t byte)
{
	static const int64_t ends[] = { -1, INT64_MIN, INT64_MAX, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_C(1) << 32 };

	return byte >= 256 - N_ELEMENTS(ends) ? ends[255 - byte] : byte;
}

static void change_cells(const uint8_t *data, size_t n_bytes)
{
	sqlite3 *db;

	must(sqlite3_open(path, &db) == SQLITE_OK, "open");
	sqlite3_exec(db, "PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i + 3 <= n_bytes && i < 3 * MAX_CHANGES; i += 3) {
		sqlite3_stmt *update = NULL;

		sqlite3_prepare_v2(db, updates[data[i] % N_ELEMENTS(updates)], -1, &update, NULL);
		sqlite3_bind_int64(update, 1, number(data[i + 1]));
		sqlite3_bind_int64(update, 2, number(data[i + 2]));
		sqlite3_step(update); /* a row that violates the schema stays unchanged */
		sqlite3_finalize(update);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void hear(void *data, const char *sentence)
{
	(void)data;
	if (!sentence[0])
		abort();
}

/* Whether the file is undamaged; false also if it cannot be opened. */
static bool is_sound(const char *name)
{
	struct check_result result = { .n_wrong = 1 };
	struct about about;
	sqlite3 *db;

	if (store_open_reader(name, &db) < 0)
		return false;
	about_read(db, name, false, &about);
	about_done(&about);
	if (check_recording(db, hear, NULL, &result) < 0)
		result.n_wrong = 1;
	sqlite3_close(db);
	return result.n_wrong == 0;
}

static void copy_it(bool was_sound)
{
	const struct copy_options options = { .keep_all = true };
	struct copy_result result;
	sqlite3 *db;
	int r;

	if (store_open_reader(path, &db) < 0)
		return;
	r = copy_recordings(&db, 1, copied, &options, &result);
	sqlite3_close(db);
	if (r == 0 && was_sound && !is_sound(copied))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	int fd;

	if (!base_bytes)
		make_base();
	bytes = malloc(n_base_bytes);
	if (n_bytes == 0 || !bytes)
		return 0;
	memcpy(bytes, base_bytes, n_base_bytes);
	if (data[0] % 2 == 0)
		change_bytes(bytes, data + 1, n_bytes - 1);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, bytes, n_base_bytes) == (ssize_t)n_base_bytes, "write");
	close(fd);
	if (data[0] % 2 != 0)
		change_cells(data + 1, n_bytes - 1);
	copy_it(is_sound(path));
	remove_files();
	return 0;
}
