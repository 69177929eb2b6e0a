/* SPDX-License-Identifier: MIT */
/* fuzz_import_pprof.c - any bytes as a file of the format pprof. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("pprof", data, n_bytes);
}
