/* SPDX-License-Identifier: MIT */
/* fuzz_probes.c - a file of probes: any text is parsed, or refused with line and column. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/probes/probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char why[PROBES_WHY_BYTES] = "";
	struct probes probes;
	unsigned line, column;
	int r = probes_parse((const char *)data, n_bytes, why, &probes);

	if (r == -EINVAL && sscanf(why, "%u:%u: ", &line, &column) != 2)
		abort();
	if (r < 0)
		return 0;
	for (size_t i = 0; i < probes.n_functions; i++)
		if (strpbrk(probes.functions[i], "\n@ "))
			abort();
	for (size_t i = 0; i < probes.n_variables; i++)
		if (!strchr(probes.variables[i], '@') || strpbrk(probes.variables[i], "\n "))
			abort();
	probes_done(&probes);
	return 0;
}
