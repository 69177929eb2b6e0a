/* SPDX-License-Identifier: MIT */
/* fuzz_import_nsys.c - any bytes as a file of the format nsys. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("nsys", data, n_bytes);
}
