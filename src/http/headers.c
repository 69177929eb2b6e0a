/* SPDX-License-Identifier: MIT */
/* headers.c - header lines of an answer, as a server wrote them. */
#include <string.h>
#include <strings.h>

#include "src/http/http.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void copy_value(const char *from, const char *end, char *to, size_t n_bytes)
{
	size_t n;

	while (from < end && is_blank(*from))
		from++;
	while (end > from && is_blank(end[-1]))
		end--;
	n = MIN((size_t)(end - from), n_bytes - 1);
	memcpy(to, from, n);
	to[n] = '\0';
}

bool http_find_header(const char *lines, size_t n_lines, const char *name, char *to, size_t n_bytes)
{
	size_t n_name = strlen(name);
	const char *all_end = lines + n_lines;
	bool is_found = false;

	while (lines < all_end) {
		const char *end = memchr(lines, '\n', (size_t)(all_end - lines));

		end = end ? end : all_end;
		if ((size_t)(end - lines) > n_name && strncasecmp(lines, name, n_name) == 0 && lines[n_name] == ':') {
			copy_value(lines + n_name + 1, end, to, n_bytes);
			is_found = true;
		}
		lines = end < all_end ? end + 1 : all_end;
	}
	return is_found;
}
