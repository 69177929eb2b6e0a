/* SPDX-License-Identifier: MIT */
/* fuzz_import_nvprof.c - any bytes as a file of the format nvprof. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("nvprof", data, n_bytes);
}
