/* SPDX-License-Identifier: MIT */
/* fuzz_block.c - damaged and made-up blocks of samples.
 *
 * The checksum is put right first: else nothing behind it would ever be reached. A block that is taken has to
 * keep what it promises: each row's values are a sample's, and encoded again they are the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/util.h"
#include "src/store/block.h"

enum { CRC_AT = 1, BODY_AT = 5, MAX_BYTES = 1 << 16 };

static struct block block, again;
static struct block_encoder *encoder;

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* A block may contain invalid samples (a time of 0), but encoding them fails. */
static void check_rows(void)
{
	size_t n = MIN(block.n_rows, (size_t)BLOCK_ROWS), n_bytes;
	struct sample_row *rows = calloc(n, sizeof *rows), row;
	const uint8_t *bytes;

	must(rows != NULL);
	for (size_t i = 0; i < n; i++)
		block_row(&block, i, &rows[i]);
	if (block_encode(encoder, rows, n, &bytes, &n_bytes) == 0) {
		must(block_open(&again, bytes, n_bytes) == 0 && again.n_rows == n &&
		     block_load(&again, BLOCK_ALL) == 0);
		for (size_t i = 0; i < n; i++) {
			block_row(&again, i, &row);
			must(row.time_ns == store_time(rows[i].time_ns) && row.stack == rows[i].stack &&
			     row.weight == rows[i].weight && row.tid == rows[i].tid && row.state == rows[i].state);
		}
	}
	free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	uint8_t *bytes;
	uint32_t crc;

	if (n_bytes < BODY_AT || n_bytes > MAX_BYTES)
		return 0;
	if (!encoder)
		must(block_encoder_new(&encoder) == 0);
	bytes = malloc(n_bytes);
	must(bytes != NULL);
	memcpy(bytes, data, n_bytes);
	crc = (uint32_t)crc32(0, bytes + BODY_AT, (uInt)(n_bytes - BODY_AT));
	memcpy(bytes + CRC_AT, &crc, sizeof crc);
	if (block_open(&block, bytes, n_bytes) == 0) {
		/* First load single columns, each of which may need another one. */
		for (unsigned i = 0; i < BLOCK_N_COLUMNS; i++)
			block_load(&block, BLOCK_HAS(i));
		if (block.loaded == BLOCK_ALL)
			check_rows();
	}
	free(bytes);
	return 0;
}
