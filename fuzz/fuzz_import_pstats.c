/* SPDX-License-Identifier: MIT */
/* fuzz_import_pstats.c - any bytes as a file of the format pstats. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("pstats", data, n_bytes);
}
