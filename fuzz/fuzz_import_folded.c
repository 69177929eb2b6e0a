/* SPDX-License-Identifier: MIT */
/* fuzz_import_folded.c - any bytes as a file of the format folded. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("folded", data, n_bytes);
}
