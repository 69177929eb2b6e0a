/* SPDX-License-Identifier: MIT */
/* text.c - values of SQL as text.
 *
 * Names in a recording come from the recorded programs: they may contain
 * any bytes. Two functions make them harmless. Text for display
 * goes through sql_text_put_visible, which escapes terminal controls; text for
 * a program that needs UTF-8 goes through sql_text_put_utf8.
 */
#include "src/sql/text.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "base/util.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void sql_text_done(struct sql_text *text)
{
	free(text->bytes);
	*text = (struct sql_text){ 0 };
}

int sql_text_put(struct sql_text *text, const char *bytes, size_t n)
{
	int r;

	if (n == 0)
		return 0;
	r = grow(&text->bytes, text->n + n, &text->allocated, 1);
	if (r < 0)
		return r;
	memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
	return 0;
}

int sql_text_put_double(struct sql_text *text, double value)
{
	char digits[40];

	if (!isfinite(value)) {
		snprintf(digits, sizeof digits, "%s", value > 0 ? "inf" : "-inf");
		return sql_text_put(text, digits, strlen(digits));
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(digits, sizeof digits, "%.*g", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	/* Like SQLite, so that a REAL differs from an INTEGER. */
	if (!strpbrk(digits, ".e"))
		strcat(digits, ".0");
	return sql_text_put(text, digits, strlen(digits));
}

static int put_hex(struct sql_text *text, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char hex[3];
		int r;

		snprintf(hex, sizeof hex, "%02x", bytes[i]);
		r = sql_text_put(text, hex, 2);
		if (r < 0)
			return r;
	}
	return 0;
}

int sql_text_put_value(struct sql_text *text, sqlite3_stmt *statement, int column)
{
	const void *bytes;

	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL:
		return 0;
	case SQLITE_FLOAT:
		return sql_text_put_double(text, sqlite3_column_double(statement, column));
	case SQLITE_BLOB:
		bytes = sqlite3_column_blob(statement, column);
		return put_hex(text, bytes, (size_t)sqlite3_column_bytes(statement, column));
	default:
		bytes = sqlite3_column_text(statement, column);
		if (!bytes)
			return -ENOMEM;
		return sql_text_put(text, bytes, (size_t)sqlite3_column_bytes(statement, column));
	}
}

/* Decode a character and its length; an invalid byte becomes U+FFFD of length 1. */
static size_t next_character(const char *bytes, size_t n, utf8proc_int32_t *ret, bool *ret_valid)
{
	utf8proc_ssize_t used;

	used = utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)n, ret);
	*ret_valid = used > 0;
	if (used > 0)
		return (size_t)used;
	*ret = 0xfffd;
	return 1;
}

int sql_text_put_utf8(struct sql_text *text, const char *bytes, size_t n)
{
	while (n > 0) {
		utf8proc_int32_t character;
		bool valid;
		size_t used = next_character(bytes, n, &character, &valid);
		int r = valid ? sql_text_put(text, bytes, used) : sql_text_put(text, REPLACEMENT, strlen(REPLACEMENT));

		if (r < 0)
			return r;
		bytes += used;
		n -= used;
	}
	return 0;
}

int sql_text_put_visible(struct sql_text *text, const char *bytes, size_t n, unsigned *width)
{
	while (n > 0) {
		utf8proc_int32_t character;
		bool valid;
		size_t used = next_character(bytes, n, &character, &valid);
		char spelled[TEXT_SPELL_BYTES];
		int r;

		if (text_spell(character, spelled))
			*width += (unsigned)strlen(spelled);
		else
			*width += (unsigned)utf8proc_charwidth(character);
		r = sql_text_put(text, spelled, strlen(spelled));
		if (r < 0)
			return r;
		bytes += used;
		n -= used;
	}
	return 0;
}

size_t sql_text_fit(const char *bytes, size_t n, unsigned columns, unsigned *ret_width)
{
	size_t fits = 0;
	unsigned width = 0;

	while (fits < n) {
		utf8proc_int32_t character;
		bool valid;
		size_t used = next_character(bytes + fits, n - fits, &character, &valid);
		unsigned wide = (unsigned)utf8proc_charwidth(character);

		if (width + wide > columns)
			break;
		width += wide;
		fits += used;
	}
	*ret_width = width;
	return fits;
}
