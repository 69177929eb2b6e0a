/* SPDX-License-Identifier: MIT */
/* fuzz_lanes_query.c - the parameters of a timeline, as a request of HTTP has them. What is accepted is within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/lanes/lanes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char sentence[LANES_SENTENCE_BYTES] = "";
	struct lanes_query query;
	char *text = malloc(n_bytes + 1);

	if (!text)
		abort();
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	if (lanes_query_parse(text, &query, sentence) < 0) {
		if (!sentence[0] || !memchr(sentence, '\0', sizeof sentence))
			abort();
	} else if (query.pixels < LANES_MIN_PIXELS || query.pixels > LANES_MAX_PIXELS ||
		   query.depth > LANES_MAX_DEPTH || query.n_threads > LANES_MAX_CHOSEN ||
		   (query.has_since && query.has_until && query.since_ns >= query.until_ns)) {
		abort();
	}
	free(text);
	return 0;
}
