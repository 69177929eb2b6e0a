/* SPDX-License-Identifier: MIT */
/* fuzz_wait_object.c - names of objects from the texts of descriptors, which contain other people's file names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/pipeline/wait_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char text[DESCRIPTOR_TEXT_BYTES] = "", to[WAIT_OBJECT_BYTES];
	CLEANUP(sockets_freep) struct sockets *sockets = NULL;

	if (n_bytes > 0)
		memcpy(text, data, MIN(n_bytes, sizeof text - 1));
	for (int known = 0; known < 2; known++) {
		memset(to, 'x', sizeof to);
		wait_object_shorten(text, sockets, to);
		if (!memchr(to, '\0', sizeof to) || (to[0] != '\0' && to[0] != '['))
			abort();
		if (!sockets && sockets_new(1, &sockets) < 0)
			return 0;
	}
	return 0;
}
