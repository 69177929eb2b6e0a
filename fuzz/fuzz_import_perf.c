/* SPDX-License-Identifier: MIT */
/* fuzz_import_perf.c - any bytes as a file of the format perf. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("perf", data, n_bytes);
}
