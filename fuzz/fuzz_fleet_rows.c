/* SPDX-License-Identifier: MIT */
/* fuzz_fleet_rows.c - rows of a server's answer, and a user's conditions for a server. The first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/fleet/read.h"
#include "src/fleet/row_cursor.h"

/* Types of a row in this order, again and again. */
static void read_rows(struct row_cursor cursor)
{
	const uint8_t *before;

	do {
		CLEANUP(freep) char *text = NULL;
		size_t n;

		before = cursor.at;
		row_cursor_number(&cursor, sizeof(uint64_t));
		if (row_cursor_text(&cursor, &text) < 0 || memchr(text, '\0', strlen(text) + 1) != text + strlen(text))
			abort();
		row_cursor_int32(&cursor);
		row_cursor_real(&cursor);
		n = row_cursor_count(&cursor);
		if (n > (size_t)(cursor.end - before))
			abort();
		for (size_t i = 0; i < n; i++)
			row_cursor_number(&cursor, 1);
	} while (row_cursor_more(&cursor));
	if (cursor.at > cursor.end)
		abort();
}

/* A condition has no quote, comment, semicolon or letter that is not of our own words. */
static void read_condition(const char *text)
{
	CLEANUP(freep) char *where = NULL;
	CLEANUP(freep) char *ranks = NULL;
	char why[256];

	if (fleet_parse_where(text, &where, why, sizeof why) == 0 && strpbrk(where, "'\";`\\/*#\n"))
		abort();
	if (fleet_parse_ranks(text, &ranks) == 0 && strpbrk(ranks, "'\";`\\/*#\n"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(freep) char *text = NULL;

	if (size == 0)
		return 0;
	if (data[0] != 'c') {
		read_rows(row_cursor_of(data + 1, size - 1));
		return 0;
	}
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	read_condition(text);
	return 0;
}
