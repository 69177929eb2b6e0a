/* SPDX-License-Identifier: MIT */
/* fuzz_otlp_answer.c - the answer of a receiver of OTLP. */
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/export/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) char *message = NULL;
	int64_t rejected = -7;

	if (export_otlp_answer(data, n_bytes, &rejected, &message) < 0 && (message || rejected != -7))
		abort();
	if (message && !message[0])
		abort();
	return 0;
}
