/* SPDX-License-Identifier: MIT */
/* fuzz_metric_block.c - damaged and made-up blocks of metrics.
 *
 * Rows that are read are packed again, and come back the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "fuzz/row_blocks.h"
#include "src/store/metric_block.h"

static struct metric_rows rows, again;

static void check_rows(void)
{
	struct metric_encoder encoder = { .n_columns = rows.n_columns, .keys = 1 };
	size_t n = MIN(rows.n_rows, (size_t)METRIC_BLOCK_ROWS), n_packed;
	uint8_t *packed;

	for (size_t i = 0; i < n; i++)
		must(metric_encoder_put(&encoder, rows.timestamps[i], rows.values + i * rows.n_columns) == 0);
	if (metric_encoder_pack(&encoder, &packed, &n_packed) == 0) {
		must(metric_rows_open(&again, packed, n_packed) == 0);
		must(again.n_rows == n && again.n_columns == rows.n_columns);
		for (size_t i = 0; i < n; i++)
			must(again.timestamps[i] == rows.timestamps[i]);
		for (size_t i = 0; i < n * rows.n_columns; i++)
			must_be_same(&again.values[i], &rows.values[i]);
		free(packed);
	}
	metric_encoder_done(&encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	uint8_t *bytes = block_with_checksum(data, n_bytes);

	if (!bytes)
		return 0;
	if (metric_rows_open(&rows, bytes, n_bytes) == 0)
		check_rows();
	free(bytes);
	return 0;
}
