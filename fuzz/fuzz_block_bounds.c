/* SPDX-License-Identifier: MIT */
/* fuzz_block_bounds.c - blocks of samples whose columns in the table say something else than their bytes.
 *
 * Groups of 4 bytes change a sound recording of several blocks: which block, which column, and a number (16 bits), as it is
 * or as one of the ends of a range. Numbers of samples stay in order, none comes twice, and there are no more of them than
 * the bytes hold; the same is read in whichever way it is asked.
 */
#include "fuzz/recording.h"

enum { N_BLOCKS = 4, MAX_CHANGES = 60 };

static const char more_blocks[] =
	"WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 3)"
	" INSERT INTO sample_block SELECT first + i * samples, samples, started, ended, weight, threads, data FROM sample_block, i";

static const char *const updates[] = {
	"UPDATE OR IGNORE sample_block SET first = ?2 WHERE rowid = ?1",
	"UPDATE sample_block SET samples = ?2 WHERE rowid = ?1",
	"UPDATE sample_block SET started = ?2 WHERE rowid = ?1",
	"UPDATE sample_block SET ended = ?2 WHERE rowid = ?1",
	"UPDATE sample_block SET weight = ?2 WHERE rowid = ?1",
	"UPDATE sample_block SET threads = zeroblob(?2 % 1000) WHERE rowid = ?1",
	"UPDATE sample_block SET threads = NULL WHERE rowid = ?1",
	"UPDATE sample_block SET data = substr(data, 1, ?2) WHERE rowid = ?1",
	"UPDATE sample_block SET data = ?2 WHERE rowid = ?1",
	"UPDATE sample_block SET samples = 'many' WHERE rowid = ?1",
	"UPDATE sample_block SET samples = 1e300 WHERE rowid = ?1",
	"UPDATE sample_block SET started = 1e300, ended = -1e300 WHERE rowid = ?1",
	"DELETE FROM sample_block WHERE rowid = ?1",
};

static const char *const questions[] = {
	"SELECT rowid FROM sample",
	"SELECT rowid FROM sample WHERE rowid > 0",
	"SELECT rowid FROM sample WHERE rowid BETWEEN 30 AND 9223372036854775807",
	"SELECT rowid FROM sample WHERE tid = 8",
	"SELECT rowid FROM sample WHERE timestamp >= 0",
};

static int64_t number(unsigned word)
{
	static const int64_t ends[] = { -1,
					INT64_MIN,
					INT64_MAX,
					INT64_MAX - 1,
					INT32_MAX,
					(int64_t)INT32_MAX + 1,
					INT64_C(1) << 32,
					INT64_C(1) << 62 };

	return word >= 0xfff0 ? ends[word % N_ELEMENTS(ends)] : word;
}

static void change(const uint8_t *data, size_t n_bytes)
{
	sqlite3 *db;

	recording_must(sqlite3_open(recording_path, &db) == SQLITE_OK, "open");
	sqlite3_exec(db, "PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i + 4 <= n_bytes && i < 4 * MAX_CHANGES; i += 4) {
		sqlite3_stmt *update = NULL;

		recording_must(sqlite3_prepare_v2(db, updates[data[i + 1] % N_ELEMENTS(updates)], -1, &update, NULL) ==
				       SQLITE_OK,
			       "update");
		sqlite3_bind_int64(update, 1, 1 + RECORDING_SAMPLES * (data[i] % N_BLOCKS));
		sqlite3_bind_int64(update, 2, number((unsigned)data[i + 2] << 8 | data[i + 3]));
		sqlite3_step(update);
		sqlite3_finalize(update);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void ask(sqlite3 *db, const char *question)
{
	sqlite3_stmt *rows = NULL;
	int64_t last = INT64_MIN;
	size_t n = 0;

	if (sqlite3_prepare_v2(db, question, -1, &rows, NULL) == SQLITE_OK) {
		while (sqlite3_step(rows) == SQLITE_ROW) {
			int64_t row = sqlite3_column_int64(rows, 0);

			recording_must(n == 0 || row > last, "samples out of order, or one twice");
			recording_must(++n <= N_BLOCKS * RECORDING_SAMPLES, "more samples than the bytes hold");
			last = row;
		}
	}
	sqlite3_finalize(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	sqlite3 *db;

	if (!recording_bytes)
		recording_make(more_blocks);
	recording_write(recording_path, recording_bytes, recording_n_bytes);
	change(data, n_bytes);
	if (store_open_reader(recording_path, &db) == 0) {
		for (size_t i = 0; i < N_ELEMENTS(questions); i++)
			ask(db, questions[i]);
		recording_read(db);
		recording_copy_all(db);
		sqlite3_close(db);
	}
	recording_remove();
	return 0;
}
