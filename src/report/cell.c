/* cell.c - fitting foreign names into columns; see cell.h. */
#include "src/report/cell.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/util.h"

enum { REPLACEMENT = 0xfffd, ELLIPSIS = 0x2026 };

/* The next character; 0 at the end. */
static utf8proc_int32_t decode(const char **at)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t n;

	if (!**at)
		return 0;
	n = utf8proc_iterate((const utf8proc_uint8_t *)*at, (utf8proc_ssize_t)strnlen(*at, 4), &c);
	*at += n > 0 ? n : 1;
	return n > 0 ? c : REPLACEMENT;
}

/* The same, fit for a terminal. */
static utf8proc_int32_t next_char(const char **at)
{
	utf8proc_int32_t c = decode(at);

	if (c == 0)
		return 0;
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC: /* control */
	case UTF8PROC_CATEGORY_CF: /* writing direction and the like */
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return ' ';
	default:
		return c;
	}
}

static unsigned char_columns(utf8proc_int32_t c)
{
	int columns = utf8proc_charwidth(c);

	return columns > 0 ? (unsigned)columns : 0;
}

static void put_char(FILE *out, utf8proc_int32_t c)
{
	utf8proc_uint8_t bytes[4];
	utf8proc_ssize_t n = utf8proc_encode_char(c, bytes);

	if (n > 0)
		fwrite(bytes, 1, (size_t)n, out);
}

unsigned cell_columns(const char *text)
{
	unsigned columns = 0;
	utf8proc_int32_t c;

	while ((c = next_char(&text)) != 0)
		columns += char_columns(c);
	return columns;
}

unsigned cell_put(FILE *out, const char *text, unsigned columns, enum cell_cut cut)
{
	unsigned wanted = cell_columns(text), at = 0, used = 0, head, skip;
	bool cut_here = wanted > columns;
	utf8proc_int32_t c;

	if (columns == 0)
		return 0;
	/* Of a long text stay [0, head) and [skip, wanted), with the ellipsis between. */
	head = cut == CELL_CUT_MIDDLE ? columns / 2 : 0;
	skip = wanted - (columns - 1 - head);
	while ((c = next_char(&text)) != 0) {
		unsigned start = at;

		at += char_columns(c);
		if (wanted > columns && at > head && start < skip) {
			if (cut_here) {
				put_char(out, ELLIPSIS);
				used++;
				cut_here = false;
			}
			continue;
		}
		put_char(out, c);
		used += char_columns(c);
	}
	return used;
}

/* One character, or what stands for it, as text; returns its columns. */
static unsigned spell(const char **at, unsigned column, char *to, size_t n_bytes)
{
	enum { TAB = 8 };
	const char *start = *at, *again = *at;
	utf8proc_int32_t c = decode(at);

	if (c == '\t') {
		snprintf(to, n_bytes, "%*s", (int)(TAB - column % TAB), "");
	} else if (c == REPLACEMENT && *at - start == 1) {
		snprintf(to, n_bytes, "\\x%02x", (unsigned)(unsigned char)*start);
	} else if (c < ' ' || c == 0x7f) {
		snprintf(to, n_bytes, "^%c", (int)c ^ 0x40);
	} else if (next_char(&again) != c) {
		snprintf(to, n_bytes, "<U+%04X>", (unsigned)c);
	} else {
		to[utf8proc_encode_char(c, (utf8proc_uint8_t *)to)] = '\0';
		return char_columns(c);
	}
	return (unsigned)strlen(to);
}

void cell_put_source(FILE *out, const char *text, unsigned columns)
{
	char spelled[24];
	unsigned column = 0;

	while (*text) {
		unsigned n = spell(&text, column, spelled, sizeof spelled);

		/* The last column is for what tells that there is more. */
		if (columns > 0 && column + n + (*text != '\0') > columns) {
			put_char(out, ELLIPSIS);
			return;
		}
		fputs(spelled, out);
		column += n;
	}
}

char *cell_utf8(const char *text)
{
	enum { MAX_BYTES = 3 }; /* of U+FFFD, for one byte; other characters keep their size */
	utf8proc_uint8_t *copy = malloc(strlen(text) * MAX_BYTES + 1), *to = copy;
	utf8proc_int32_t c;

	if (!copy)
		return NULL;
	while ((c = decode(&text)) != 0)
		to += utf8proc_encode_char(c, to);
	*to = '\0';
	return (char *)copy;
}

void cell_format_ns(uint64_t ns, char *to, size_t n_bytes)
{
	double seconds = (double)ns / 1e9;
	uint64_t whole = (ns + 500000000) / 1000000000;

	if (ns == 0)
		snprintf(to, n_bytes, "0");
	else if (ns < 999500)
		snprintf(to, n_bytes, "%.0f us", seconds * 1e6);
	else if (ns < 999500000)
		snprintf(to, n_bytes, "%.0f ms", seconds * 1e3);
	else if (seconds < 99.995)
		snprintf(to, n_bytes, "%.2f s", seconds);
	else if (whole < 100 * 60)
		snprintf(to, n_bytes, "%jum %02jus", (uintmax_t)(whole / 60),
			 (uintmax_t)(whole % 60));
	else if (whole < 100 * 3600)
		snprintf(to, n_bytes, "%juh %02jum", (uintmax_t)(whole / 3600),
			 (uintmax_t)(whole / 60 % 60));
	else
		snprintf(to, n_bytes, "%ju h", (uintmax_t)(whole / 3600));
}

void cell_format_count(uint64_t n, char *to, size_t n_bytes)
{
	static const char units[] = "kMGTPE";
	double value = (double)n;
	size_t unit = 0;

	if (n < 100000) {
		snprintf(to, n_bytes, "%ju", (uintmax_t)n);
		return;
	}
	for (value /= 1000; value >= 999.5 && unit + 2 < sizeof units; unit++)
		value /= 1000;
	snprintf(to, n_bytes, "%.*f %c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
}
