/* SPDX-License-Identifier: MIT */
/* text.c - foreign bytes as harmless text; see text.h.
 *
 * Everything an exporter writes that was not written there passes through
 * text_next(), so that no name can break out of a line, a field or a tag.
 */
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

enum { REPLACEMENT = 0xfffd, ELLIPSIS = 0x2026 };

int32_t text_decode(const char **at)
{
	const uint8_t *bytes = (const uint8_t *)*at;
	utf8proc_int32_t c;
	utf8proc_ssize_t n;

	if (!*bytes)
		return 0;
	/* A sequence has at most four bytes; a NUL ends one early as invalid. */
	n = utf8proc_iterate(bytes, (utf8proc_ssize_t)strnlen(*at, 4), &c);
	*at += n > 0 ? n : 1;
	return n > 0 ? c : REPLACEMENT;
}

int32_t text_next_shown(const char **at)
{
	int32_t c = text_decode(at);

	if (c == 0)
		return 0;
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC: /* control */
	case UTF8PROC_CATEGORY_CF: /* for example writing direction */
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return ' ';
	default:
		return c;
	}
}

/* Control characters, line separators and format characters; except joiners, which shape words. */
static bool is_hazard(int32_t c)
{
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return true;
	case UTF8PROC_CATEGORY_CF:
		return c != 0x200c && c != 0x200d;
	default:
		return false;
	}
}

bool text_spell(int32_t c, char *to)
{
	if (!is_hazard(c)) {
		to[text_encode(c, to)] = '\0';
		return false;
	}
	if (c == '\n' || c == '\t' || c == '\r')
		snprintf(to, TEXT_SPELL_BYTES, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
	else
		snprintf(to, TEXT_SPELL_BYTES, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
	return true;
}

void text_put_spelled(FILE *out, const char *text, size_t n_bytes)
{
	while (n_bytes > 0) {
		char spelled[TEXT_SPELL_BYTES];
		utf8proc_int32_t c;
		utf8proc_ssize_t n = utf8proc_iterate((const uint8_t *)text, (utf8proc_ssize_t)n_bytes, &c);

		text_spell(n > 0 ? c : REPLACEMENT, spelled);
		fputs(spelled, out);
		text += n > 0 ? n : 1;
		n_bytes -= n > 0 ? (size_t)n : 1;
	}
}

int32_t text_next(const char **at)
{
	int32_t c = text_decode(at);

	if (c == 0)
		return 0;
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
		return ' ';
	if (c == 0xfffe || c == 0xffff)
		return REPLACEMENT;
	return c;
}

unsigned text_char_columns(int32_t character)
{
	int columns = utf8proc_charwidth(character);

	return columns > 0 ? (unsigned)columns : 0;
}

unsigned text_columns(const char *text)
{
	unsigned columns = 0;
	int32_t c;

	while ((c = text_next(&text)) != 0)
		columns += text_char_columns(c);
	return columns;
}

unsigned text_columns_shown(const char *text)
{
	unsigned columns = 0;
	int32_t c;

	while ((c = text_next_shown(&text)) != 0)
		columns += text_char_columns(c);
	return columns;
}

size_t text_encode(int32_t character, char *to)
{
	utf8proc_ssize_t n = utf8proc_encode_char(character, (utf8proc_uint8_t *)to);

	return n > 0 ? (size_t)n : 0;
}

void text_put(FILE *out, int32_t character)
{
	char bytes[4];

	fwrite(bytes, 1, text_encode(character, bytes), out);
}

static void put_xml_char(FILE *out, int32_t c)
{
	char spelled[TEXT_SPELL_BYTES];

	if (text_spell(c, spelled)) {
		fputs(spelled, out);
		return;
	}
	switch (c) {
	case '<':
		fputs("&lt;", out);
		break;
	case '>':
		fputs("&gt;", out);
		break;
	case '&':
		fputs("&amp;", out);
		break;
	case '"':
		fputs("&quot;", out);
		break;
	default:
		text_put(out, c);
	}
}

void text_put_xml(FILE *out, const char *text)
{
	int32_t c;

	while ((c = text_next(&text)) != 0)
		put_xml_char(out, c);
}

static unsigned xml_char_columns(int32_t c)
{
	char spelled[TEXT_SPELL_BYTES];

	return text_spell(c, spelled) ? (unsigned)strlen(spelled) : text_char_columns(c);
}

void text_put_xml_cut(FILE *out, const char *text, unsigned columns)
{
	unsigned used = 0;
	int32_t c;

	for (const char *at = text; (c = text_next(&at)) != 0;)
		used += xml_char_columns(c);
	if (used <= columns) {
		text_put_xml(out, text);
		return;
	}
	used = 0;
	while ((c = text_next(&text)) != 0) {
		used += xml_char_columns(c);
		if (used >= columns)
			break;
		put_xml_char(out, c);
	}
	text_put(out, ELLIPSIS);
}

size_t text_fixed(uint64_t value, unsigned decimals, char *to)
{
	char reversed[TEXT_FIXED_BYTES];
	size_t n = 0;

	for (unsigned i = 0; i < decimals; i++, value /= 10) {
		if (n > 0 || value % 10 != 0)
			reversed[n++] = (char)('0' + value % 10);
	}
	if (n > 0)
		reversed[n++] = '.';
	do
		reversed[n++] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	for (size_t i = 0; i < n; i++)
		to[i] = reversed[n - 1 - i];
	to[n] = '\0';
	return n;
}

void text_put_fixed(FILE *out, uint64_t value, unsigned decimals)
{
	char digits[TEXT_FIXED_BYTES];

	fwrite(digits, 1, text_fixed(value, decimals, digits), out);
}

int text_compare(const char *a, const char *b)
{
	int32_t left, right;

	do {
		left = text_next(&a);
		right = text_next(&b);
	} while (left == right && left != 0);
	return (left > right) - (left < right);
}

int text_finish(FILE *out)
{
	if (fflush(out) != 0)
		return errno > 0 ? -errno : -EIO;
	return ferror(out) ? -EIO : 0;
}
