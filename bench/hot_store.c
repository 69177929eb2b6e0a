/* hot_store.c - samples into a compressed block, and the same block asked for some of its columns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bench/hot.h"
#include "src/store/block.h"

struct storing {
	struct sample_row rows[BLOCK_ROWS];
	struct block_encoder *encoder;
	uint8_t *bytes;
	size_t n_bytes;
};

static void done(void *data)
{
	struct storing *self = data;

	block_encoder_free(self->encoder);
	free(self->bytes);
	free(self);
}

/* Four threads of a process, sampled at a frequency, on stacks of which few come often. */
static void make_rows(struct storing *self)
{
	uint64_t seed = 7;

	for (size_t i = 0; i < BLOCK_ROWS; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		self->rows[i] = (struct sample_row){
			.time_ns = UINT64_C(1700000000000000000) + i * 1001001 + (seed >> 40) % 2000,
			.weight_ns = 1001001,
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

static int prepare(const char *root, void **ret)
{
	struct storing *self = calloc(1, sizeof *self);
	const uint8_t *bytes;
	int r;

	(void)root;
	if (!self)
		return -ENOMEM;
	make_rows(self);
	r = block_encoder_new(&self->encoder);
	if (r >= 0)
		r = block_encode(self->encoder, self->rows, BLOCK_ROWS, &bytes, &self->n_bytes);
	if (r >= 0) {
		self->bytes = malloc(self->n_bytes);
		r = self->bytes ? 0 : -ENOMEM;
	}
	if (r < 0) {
		done(self);
		return r;
	}
	memcpy(self->bytes, bytes, self->n_bytes);
	*ret = self;
	return 0;
}

/* As GROUP BY stack does it: the time of each row, and its weight. */
static int query(void *data)
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
		sum += row.stack == 1 ? row.weight_ns : 0;
	}
	return r < 0 ? r : sum > 0 ? 0 : -EBADMSG;
}

const struct hot hot_encode = { "encode", 50, prepare, encode, done };
const struct hot hot_query = { "query", 100, prepare, query, done };
