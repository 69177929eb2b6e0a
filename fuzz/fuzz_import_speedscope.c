/* SPDX-License-Identifier: MIT */
/* fuzz_import_speedscope.c - any bytes as a file of the format speedscope. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("speedscope", data, n_bytes);
}
