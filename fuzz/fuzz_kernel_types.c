/* SPDX-License-Identifier: MIT */
/* fuzz_kernel_types.c - a description of types that no kernel would write.
 *
 * Whatever it says, searches end, read nothing outside of it, and find only what is inside.
 *
 * Corpus: made by make_kernel_types_corpus.py.
 */
#include <linux/btf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/capture/kernel_types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct kernel_type wanted[] = { { .kind = BTF_KIND_FUNC, .name = "run" },
					{ .kind = BTF_KIND_STRUCT, .name = "outer" } };
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct kernel_types types;
	uint32_t offset;

	if (n_bytes > MAX_BYTES)
		return 0;
	/* A block of exact size, where the sanitizer detects every overrun. */
	bytes = malloc(n_bytes + (n_bytes == 0));
	if (!bytes)
		return 0;
	memcpy(bytes, data, n_bytes);
	if (kernel_types_parse(bytes, n_bytes, &types) < 0)
		return 0;
	for (size_t i = 0; i < N_ELEMENTS(wanted); i++)
		if (kernel_types_find(&types, &wanted[i], 1) == 0 &&
		    (wanted[i].id == 0 || wanted[i].index >= types.n_words))
			abort();
	if (wanted[1].id != 0)
		(void)kernel_types_member(&types, wanted[1].index, "wanted", &offset);
	return 0;
}
