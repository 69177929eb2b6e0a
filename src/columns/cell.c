/* SPDX-License-Identifier: MIT */
/* cell.c - fitting foreign names into columns; see columns.h. */
#include "src/columns/columns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { REPLACEMENT = 0xfffd, ELLIPSIS = 0x2026 };

unsigned cell_put(FILE *out, const char *text, unsigned columns, enum cell_cut cut)
{
	unsigned wanted = text_columns_shown(text), at = 0, used = 0, head, skip;
	bool cut_here = wanted > columns;
	int32_t c;

	if (columns == 0)
		return 0;
	/* Of a long text, keep [0, head) and [skip, wanted) with an ellipsis in between. */
	head = cut == CELL_CUT_MIDDLE ? columns / 2 : cut == CELL_CUT_START ? 0 : columns - 1;
	skip = wanted - (columns - 1 - head);
	while ((c = text_next_shown(&text)) != 0) {
		unsigned start = at;

		at += text_char_columns(c);
		if (wanted > columns && at > head && start < skip) {
			if (cut_here) {
				text_put(out, ELLIPSIS);
				used++;
				cut_here = false;
			}
			continue;
		}
		text_put(out, c);
		used += text_char_columns(c);
	}
	return used;
}

void cell_put_all(FILE *out, const char *text)
{
	int32_t c;

	while ((c = text_next_shown(&text)) != 0)
		text_put(out, c);
}

unsigned cell_put_start(FILE *out, const char *text, unsigned columns)
{
	unsigned used = 0;
	int32_t c;

	while ((c = text_next_shown(&text)) != 0 && used + text_char_columns(c) <= columns) {
		text_put(out, c);
		used += text_char_columns(c);
	}
	return used;
}

unsigned cell_put_path(FILE *out, const char *path, unsigned columns)
{
	const char *rest = path;

	if (text_columns_shown(path) <= columns)
		return cell_put(out, path, columns, CELL_CUT_START);
	while ((rest = strchr(rest + 1, '/')) && text_columns_shown(rest) + 1 > columns)
		;
	if (rest)
		text_put(out, ELLIPSIS);
	return (rest != NULL) + cell_put(out, rest ? rest : path, columns, CELL_CUT_START);
}

/* Format one character or its escape; returns its columns. */
static unsigned spell(const char **at, unsigned column, char *to, size_t n_bytes)
{
	enum { TAB = 8 };
	const char *start = *at, *again = *at;
	int32_t c = text_decode(at);

	if (c == '\t') {
		snprintf(to, n_bytes, "%*s", (int)(TAB - column % TAB), "");
	} else if (c == REPLACEMENT && *at - start == 1) {
		snprintf(to, n_bytes, "\\x%02x", (unsigned)(unsigned char)*start);
	} else if (c < ' ' || c == 0x7f) {
		snprintf(to, n_bytes, "^%c", (int)c ^ 0x40);
	} else if (text_next_shown(&again) != c) {
		snprintf(to, n_bytes, "<U+%04X>", (unsigned)c);
	} else {
		to[text_encode(c, to)] = '\0';
		return text_char_columns(c);
	}
	return (unsigned)strlen(to);
}

void cell_put_source(FILE *out, const char *text, unsigned columns)
{
	char spelled[24];
	unsigned column = 0;

	while (*text) {
		unsigned n = spell(&text, column, spelled, sizeof spelled);

		/* Reserve the last column for the ellipsis. */
		if (columns > 0 && column + n + (*text != '\0') > columns) {
			text_put(out, ELLIPSIS);
			return;
		}
		fputs(spelled, out);
		column += n;
	}
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
		snprintf(to, n_bytes, "%jum %02jus", (uintmax_t)(whole / 60), (uintmax_t)(whole % 60));
	else if (whole < 100 * 3600)
		snprintf(to, n_bytes, "%juh %02jum", (uintmax_t)(whole / 3600), (uintmax_t)(whole / 60 % 60));
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
