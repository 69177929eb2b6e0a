/* SPDX-License-Identifier: MIT */
/* fuzz_row_block.c - damaged and made-up blocks of rows that programs wrote.
 *
 * Rows that are read are put into a new block and come back the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "fuzz/row_blocks.h"
#include "src/store/row_block.h"

static struct row_block block, again;

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
				must_be_same(&again.values[i], &block.values[i]);
		}
		must(again.row == again.n_rows);
		free(packed);
	}
	free(rows.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	uint8_t *bytes = block_with_checksum(data, n_bytes);

	if (!bytes)
		return 0;
	if (row_block_open(&block, bytes, n_bytes) == 0)
		check_rows(bytes, n_bytes);
	free(bytes);
	return 0;
}
