/* SPDX-License-Identifier: MIT */
/* fuzz_http.c - header lines of a server, and an address: no value is longer than its room, nor has a control character. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check_place(const char *text)
{
	struct http_place place;
	char base[512];

	if (http_place_parse(text, &place) < 0)
		return;
	if (place.host[0] == '\0' || strpbrk(place.host, "/@?#\r\n ") || strpbrk(place.user, "\r\n") ||
	    strpbrk(place.path, "\r\n"))
		abort();
	if (http_place_base(&place, 80, base, sizeof base) == 0 && http_place_parse(base, &place) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char value[16], *text = malloc(n_bytes + 1);

	if (!text)
		abort();
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	if (http_find_header((const char *)data, n_bytes, "X-Code", value, sizeof value) &&
	    strlen(value) >= sizeof value)
		abort();
	check_place(text);
	free(text);
	return 0;
}
