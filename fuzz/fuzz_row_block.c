/* SPDX-License-Identifier: MIT */
/* fuzz_row_block.c - damaged and made-up blocks of rows that programs wrote.
 *
 * The checksum is put right first: else nothing behind it would ever be reached. Rows that are read are put into a new
 * block and come back the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/util.h"
#include "src/store/row_block.h"

enum { CRC_AT = 1, BODY_AT = 5, MAX_BYTES = 1 << 16 };

static struct row_block block, again;

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void check_same(const struct row_value *one, const struct row_value *other)
{
	must(one->kind == other->kind);
	if (one->kind == ROW_TEXT)
		must(one->n_text == other->n_text &&
		     (one->n_text == 0 || memcmp(one->text, other->text, one->n_text) == 0));
	else if (one->kind != ROW_NULL)
		must(one->integer == other->integer); /* of a real: its bits */
}

static void check_rows(const uint8_t *bytes, size_t n_bytes)
{
	struct row_bytes rows = { 0 };
	uint8_t *packed;
	size_t n_packed;

	while (row_block_next(&block) > 0)
		must(row_put(&rows, block.time_ns, block.values, block.n_columns) == 0);
	if (row_block_pack(&rows, &packed, &n_packed) == 0) {
		must(row_block_open(&again, packed, n_packed) == 0 && again.n_rows == rows.n_rows);
		must(row_block_open(&block, bytes, n_bytes) == 0);
		while (row_block_next(&again) > 0) {
			must(row_block_next(&block) > 0 && block.time_ns == again.time_ns);
			for (size_t i = 0; i < again.n_columns; i++)
				check_same(&again.values[i], &block.values[i]);
		}
		must(again.row == again.n_rows);
		free(packed);
	}
	free(rows.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	uint8_t *bytes;
	uint32_t crc;

	if (n_bytes < BODY_AT || n_bytes > MAX_BYTES)
		return 0;
	bytes = malloc(n_bytes);
	must(bytes != NULL);
	memcpy(bytes, data, n_bytes);
	crc = (uint32_t)crc32(0, bytes + BODY_AT, (uInt)(n_bytes - BODY_AT));
	memcpy(bytes + CRC_AT, &crc, sizeof crc);
	if (row_block_open(&block, bytes, n_bytes) == 0)
		check_rows(bytes, n_bytes);
	free(bytes);
	return 0;
}
