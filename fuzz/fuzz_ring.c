/* SPDX-License-Identifier: MIT */
/* fuzz_ring.c - the file of a ring, which its process may have spoilt in any way.
 *
 * Whatever it says, reading ends, and what is handed out lies within, is in order, and is UTF-8.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/ring/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static volatile unsigned used; /* so that every byte is read */

static void use(const struct ring_snapshot *snapshot)
{
	unsigned sum = 0;

	for (size_t row = 0; row < snapshot->n_rows; row++) {
		if (row > 0 && ring_row_number(snapshot, row) <= ring_row_number(snapshot, row - 1))
			abort();
		if (ring_row_number(snapshot, row) >= snapshot->head)
			abort();
		sum += (unsigned)ring_row_time_ns(snapshot, row);
		for (size_t column = 0; column < snapshot->n_columns; column++) {
			struct ring_value value;

			ring_cell(snapshot, row, column, &value);
			for (size_t i = 0; value.kind == RING_IS_TEXT && i < value.n_text; i++)
				sum += (unsigned char)value.text[i];
			if (value.kind == RING_IS_TEXT && value.n_text > snapshot->columns[column].cell_bytes)
				abort();
		}
	}
	used = sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct ring_snapshot snapshot;
	struct ring_source source;
	uint64_t *words;

	/* Words must be aligned. */
	words = calloc(n_bytes / 8 + 1, 8);
	if (!words)
		return 0;
	memcpy(words, data, n_bytes);
	ring_source_memory(words, n_bytes / 8 * 8, &source);
	if (ring_describe(&source, &snapshot) == 0 && snapshot.n_columns > RING_MAX_COLUMNS)
		abort();
	if (ring_read(&source, &snapshot) == 0) {
		use(&snapshot);
		ring_snapshot_done(&snapshot);
	}
	free(words);
	return 0;
}
