/* SPDX-License-Identifier: MIT */
/* fuzz_beside.c - what lies beside a recording: a journal, a log and its index, of any bytes.
 *
 * The first byte of an input says what it is about, the next one how; groups of three bytes follow, a place (16 bits)
 * and a value, that change a file that SQLite has made:
 *   bits 0 and 1 of the first  0: -journal  1: -wal  2: both  3: -wal, and the rest are bytes of -shm
 *   bit 0 of the second        the checksums of the log are put right
 *   bit 1                      the rest is the file as it is
 * Reading changes none of the files, and makes none but the log's index.
 * Source: sqlite.org/fileformat2.html, "The Rollback Journal" and "The Write-Ahead Log".
 */
#include "fuzz/recording.h"

enum { LOG_HEADER = 32, FRAME_HEADER = 24 };

struct bytes {
	uint8_t *at;
	size_t n;
};

static struct bytes journal, record_log;

static uint32_t word_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_word(uint8_t *at, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(word >> (24 - 8 * i));
}

/* The magic number's last bit gives the byte order of the checksum. */
static void add_up(const uint8_t *at, size_t n, bool big_end, uint32_t sums[2])
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint32_t one = word_at(at + i), other = word_at(at + i + 4);

		sums[0] += (big_end ? one : __builtin_bswap32(one)) + sums[1];
		sums[1] += (big_end ? other : __builtin_bswap32(other)) + sums[0];
	}
}

static void put_sums(uint8_t *at, const uint32_t sums[2])
{
	put_word(at, sums[0]);
	put_word(at + 4, sums[1]);
}

static void mend_log(struct bytes *log)
{
	uint32_t sums[2] = { 0, 0 };
	size_t page = 512;
	bool big_end;

	if (log->n < LOG_HEADER)
		return;
	big_end = log->at[3] & 1;
	add_up(log->at, 24, big_end, sums);
	put_sums(log->at + 24, sums);
	for (size_t at = LOG_HEADER; at + FRAME_HEADER + page <= log->n; at += FRAME_HEADER + page) {
		memcpy(log->at + at + 8, log->at + 16, 8); /* salts */
		add_up(log->at + at, 8, big_end, sums);
		add_up(log->at + at + FRAME_HEADER, page, big_end, sums);
		put_sums(log->at + at + 16, sums);
	}
}

static void keep_file(const char *path, struct bytes *ret)
{
	recording_must(read_file(path, RECORDING_MAX_BYTES, (char **)&ret->at, &ret->n) == 0 && ret->n > 0, path);
}

/* During a transaction, both kinds of files exist and can be copied. */
static void make_files(void)
{
	static const char change[] = "BEGIN; UPDATE run SET command = 'changed'; UPDATE stack_total SET samples = 1;"
				     " UPDATE function SET name = printf('%.900c', 'x')";
	sqlite3 *db;

	recording_make(NULL);
	recording_write(recording_path, recording_bytes, recording_n_bytes);
	recording_must(sqlite3_open(recording_path, &db) == SQLITE_OK, "open");
	recording_must(sqlite3_exec(db, "PRAGMA cache_size = 1; PRAGMA cache_spill = 1", NULL, NULL, NULL) == SQLITE_OK,
		       "cache");
	recording_must(sqlite3_exec(db, change, NULL, NULL, NULL) == SQLITE_OK &&
			       sqlite3_db_cacheflush(db) == SQLITE_OK,
		       "change");
	keep_file("x.db-journal", &journal);
	recording_must(sqlite3_exec(db, "ROLLBACK; PRAGMA journal_mode = WAL", NULL, NULL, NULL) == SQLITE_OK, "log");
	free(recording_bytes);
	recording_must(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) == SQLITE_OK,
		       "checkpoint");
	recording_must(read_file(recording_path, RECORDING_MAX_BYTES, (char **)&recording_bytes, &recording_n_bytes) ==
			       0,
		       "read");
	recording_must(sqlite3_exec(db, change, NULL, NULL, NULL) == SQLITE_OK &&
			       sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK,
		       "commit");
	keep_file("x.db-wal", &record_log);
	sqlite3_close(db);
	recording_remove();
}

/* The caller owns the result. */
static struct bytes changed(const struct bytes *base, unsigned how, const uint8_t *data, size_t n)
{
	struct bytes made = { .n = how & 2 ? n : base->n };

	made.at = malloc(made.n + 1);
	recording_must(made.at != NULL, "memory");
	memcpy(made.at, how & 2 ? data : base->at, made.n);
	for (size_t i = 0; !(how & 2) && i + 3 <= n; i += 3)
		made.at[(size_t)(data[i] << 8 | data[i + 1]) % made.n] = data[i + 2];
	if (how & 1)
		mend_log(&made);
	return made;
}

static void read_it(void)
{
	sqlite3 *db;

	if (store_open_reader(recording_path, &db) < 0)
		return;
	recording_read(db);
	recording_copy_all(db);
	sqlite3_close(db);
}

/* name: a file that existed before and must exist afterwards. */
static void check_kept(const char *name, const struct bytes *kept)
{
	if (kept->at)
		recording_must(recording_is(name, kept->at, kept->n), name);
	free(kept->at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct bytes a = { 0 }, b = { 0 };
	unsigned what, how;

	if (!journal.at)
		make_files();
	if (n_bytes < 2)
		return 0;
	what = data[0] % 4;
	how = data[1];
	recording_write(recording_path, recording_bytes, recording_n_bytes);
	if (what % 2 == 0) {
		a = changed(&journal, how & ~1u, data + 2, n_bytes - 2);
		recording_write("x.db-journal", a.at, a.n);
	}
	if (what > 0) {
		b = changed(&record_log, what == 3 ? 0 : how, data + 2, what == 3 ? 0 : n_bytes - 2);
		recording_write("x.db-wal", b.at, b.n);
	}
	if (what == 3)
		recording_write("x.db-shm", data + 2, n_bytes - 2);
	read_it();
	recording_must(recording_is(recording_path, recording_bytes, recording_n_bytes), "the recording was changed");
	check_kept("x.db-journal", &a);
	check_kept("x.db-wal", &b);
	recording_remove();
	return 0;
}
