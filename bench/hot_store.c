/* SPDX-License-Identifier: MIT */
/* hot_store.c - samples into a compressed block and back; a recording of them asked by SQL. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "bench/hot.h"
#include "src/store/block.h"
#include "src/store/store.h"

struct storing {
	struct sample_row rows[BLOCK_ROWS];
	struct block_encoder *encoder;
	uint8_t *bytes;
	size_t n_bytes;
	sqlite3 *db; /* of a recording */
};

static void done(void *data)
{
	struct storing *self = data;

	sqlite3_close(self->db);
	block_encoder_free(self->encoder);
	free(self->bytes);
	free(self);
}

/* Four threads of a process, sampled at a frequency; few stacks are frequent. */
static void make_rows(struct storing *self)
{
	uint64_t seed = 7;

	for (size_t i = 0; i < BLOCK_ROWS; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		self->rows[i] = (struct sample_row){
			.time_ns = UINT64_C(1700000000000000000) + i * 1001001 + (seed >> 40) % 2000,
			.weight = 1001001,
			.pid = 42,
			.tid = 42 + (pid_t)((seed >> 50) % 4),
			.cpu = (unsigned)((seed >> 45) % 8),
			.stack = (int64_t)(1 + ((seed >> 33) % 1000) * ((seed >> 43) % 1000) / 1000),
			.verdict = (seed >> 36) % 50 ? VERDICT_VERIFIED : VERDICT_APPROXIMATE,
			.gil = (seed >> 38) % 3 ? ANSWER_YES : ANSWER_NO,
			.gc = ANSWER_NO,
		};
	}
}

static int encode(void *data)
{
	struct storing *self = data;
	const uint8_t *bytes;
	size_t n;

	return block_encode(self->encoder, self->rows, BLOCK_ROWS, &bytes, &n);
}

static int prepare_rows(const char *root, void **ret)
{
	struct storing *self = calloc(1, sizeof *self);
	int r;

	(void)root;
	if (!self)
		return -ENOMEM;
	make_rows(self);
	r = block_encoder_new(&self->encoder);
	if (r < 0) {
		done(self);
		return r;
	}
	*ret = self;
	return 0;
}

/* ---- Decode ---- */

static int prepare_block(const char *root, void **ret)
{
	struct storing *self;
	const uint8_t *bytes;
	void *data;
	int r;

	r = prepare_rows(root, &data);
	if (r < 0)
		return r;
	self = data;
	r = block_encode(self->encoder, self->rows, BLOCK_ROWS, &bytes, &self->n_bytes);
	if (r >= 0)
		self->bytes = malloc(self->n_bytes);
	if (r < 0 || !self->bytes) {
		done(self);
		return r < 0 ? r : -ENOMEM;
	}
	memcpy(self->bytes, bytes, self->n_bytes);
	*ret = self;
	return 0;
}

static int decode(void *data)
{
	const struct storing *self = data;
	CLEANUP(block_done) struct block block = { 0 };
	uint64_t sum = 0;
	int r;

	r = block_open(&block, self->bytes, self->n_bytes);
	if (r >= 0)
		r = block_load(&block, BLOCK_ALL);
	for (size_t i = 0; i < block.n_rows && r >= 0; i++) {
		struct sample_row row;

		block_row(&block, i, &row);
		sum += row.weight;
	}
	return r < 0 ? r : sum > 0 ? 0 : -EBADMSG;
}

/* ---- Query ---- */

static int put_rows(struct store *store, const struct storing *self)
{
	int r;

	r = store_begin(store);
	for (size_t i = 0; i < BLOCK_ROWS && r >= 0; i++)
		r = store_put_sample(store, &self->rows[i]);
	return r < 0 ? r : store_commit(store);
}

/* @path: in its own folder. */
static int write_recording(const char *path, const struct storing *self)
{
	static const struct run_row row = { .command = "",
					    .mode = "cpu",
					    .stack_source = "wakeup",
					    .host = "",
					    .kernel = "",
					    .probing = "",
					    .started_ns = 1 };
	CLEANUP(store_closep) struct store *store = NULL;
	int r;

	r = store_create(path, NULL, &store);
	if (r < 0)
		return r;
	r = store_begin(store);
	if (r >= 0)
		r = store_put_run(store, &row);
	if (r >= 0)
		r = store_commit(store);
	if (r >= 0)
		r = put_rows(store, self);
	return r < 0 ? r : store_finish(TAKE(store), 2);
}

static int prepare_recording(const char *root, void **ret)
{
	char folder[] = "/tmp/probing-hot.XXXXXX", path[sizeof folder + sizeof "/hot.db"];
	struct storing *self;
	void *data;
	int r;

	if (!mkdtemp(folder))
		return -errno;
	snprintf(path, sizeof path, "%s/hot.db", folder);
	r = prepare_rows(root, &data);
	if (r >= 0) {
		self = data;
		r = write_recording(path, self);
		if (r >= 0)
			r = store_open_reader(path, &self->db);
		if (r >= 0)
			*ret = self;
		else
			done(self);
	}
	/* An open file stays until it is closed. */
	(void)unlink(path);
	(void)rmdir(folder);
	return r;
}

static int query(void *data)
{
	const struct storing *self = data;
	char *error = NULL;
	int r;

	r = sqlite3_exec(self->db, "SELECT stack, sum(weight) FROM sample WHERE tid = 43 AND gil GROUP BY stack", NULL,
			 NULL, &error);
	if (r != SQLITE_OK)
		fprintf(stderr, "bench_hot: %s\n", error ? error : sqlite3_errstr(r));
	sqlite3_free(error);
	return r == SQLITE_OK ? 0 : -EBADMSG;
}

const struct hot hot_encode = { "encode", 50, prepare_rows, encode, done };
const struct hot hot_decode = { "decode", 100, prepare_block, decode, done };
const struct hot hot_query = { "query", 20, prepare_recording, query, done };
