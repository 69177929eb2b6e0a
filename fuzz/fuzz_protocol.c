/* SPDX-License-Identifier: MIT */
/* fuzz_protocol.c - what one end of the agent's socket may send to the other: the first byte says which end.
 *
 * Whatever it is, a message that is taken lies within its bytes and its bounds, and is written again as the same bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/agent/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct message *message, const uint8_t *bytes, size_t n_bytes)
{
	const uint8_t *text = (const uint8_t *)message->text;
	uint8_t *again = malloc(n_bytes);

	if (!again || text < bytes || text + message->n_text != bytes + n_bytes)
		abort();
	if (message_format(message, again) != (ssize_t)n_bytes || memcmp(again, bytes, n_bytes) != 0)
		abort();
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	enum protocol_end from = n_bytes > 0 && data[0] & 1 ? PROTOCOL_AGENT : PROTOCOL_PROBING;
	size_t at = 1;

	while (at < n_bytes) {
		struct message message;
		ssize_t n = message_parse(data + at, n_bytes - at, from, &message);

		if (n <= 0)
			break;
		if ((size_t)n > n_bytes - at || n > PROTOCOL_MAX_BYTES)
			abort();
		check(&message, data + at, (size_t)n);
		at += (size_t)n;
	}
	return 0;
}
