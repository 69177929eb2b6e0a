/* SPDX-License-Identifier: MIT */
/* fuzz_import_flight.c - any bytes as a file of the format flight. */
#include "fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	return fuzz_import("flight", data, n_bytes);
}
