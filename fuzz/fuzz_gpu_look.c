/* SPDX-License-Identifier: MIT */
/* fuzz_gpu_look.c - packets of the process that calls NVML, which the driver may have damaged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/metrics/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Every text ends within its array: a sanitizer sees one that does not. */
static int read_row(void *data, const char *table, const struct metric_value *values, size_t n)
{
	(void)table;
	for (size_t i = 0; i < n; i++)
		if (values[i].type == METRIC_TEXT)
			*(size_t *)data += strlen(values[i].text);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct gpu_look look;
	size_t n_text = 0;
	const struct metric_sink sink = { read_row, &n_text };

	if (!gpu_look_unpack(data, n_bytes, &look))
		return 0;
	if (look.n_devices > GPU_MAX_DEVICES || look.n_processes > GPU_MAX_PROCESSES)
		abort();
	n_text += strlen(look.why);
	(void)gpu_put_metrics(&look, 1, "host", &sink);
	(void)gpu_put_devices(&look, "host", &sink);
	(void)gpu_put_processes(&look, 1, "host", &sink);
	return 0;
}
