/* SPDX-License-Identifier: MIT */
/* fuzz_import_kineto.c - any bytes as a file of the format kineto. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("kineto", data, n_bytes);
}
