/* SPDX-License-Identifier: MIT */
/* fuzz_memory_history.c - a file that should hold what the last look at a process saw: whatever it is, values have names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/memory_history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct memory_values values = { 0 };

	memory_values_parse(&values, (const char *)data, n_bytes);
	if (values.n > MEMORY_MAX_VALUES)
		abort();
	for (size_t i = 0; i < values.n; i++)
		if (!values.items[i].name[0] || !memory_values_find(&values, values.items[i].name))
			abort();
	return 0;
}
