/* SPDX-License-Identifier: MIT */
/* columns.c - see columns.h.
 *
 * Blanks behind a cell are written with the next one, so that no line ends with blanks of its own.
 */
#include "src/columns/columns.h"

#include <stdarg.h>

#include "base/text.h"
#include "base/util.h"

enum { MAX_CELL = 256 };

static const char *const styles[] = {
	[STYLE_PLAIN] = "",           [STYLE_HEAD] = "\033[1m",     [STYLE_PYTHON] = "\033[34m",
	[STYLE_BUILTIN] = "\033[32m", [STYLE_NATIVE] = "\033[33m",  [STYLE_KERNEL] = "\033[35m",
	[STYLE_GOOD] = "\033[32m",    [STYLE_LIMITED] = "\033[33m", [STYLE_BAD] = "\033[31m",
};

void style_start(FILE *out, bool colour, enum style style)
{
	if (colour)
		fputs(styles[style], out);
}

void style_end(FILE *out, bool colour, enum style style)
{
	if (colour && style != STYLE_PLAIN)
		fputs("\033[0m", out);
}

/* The blanks before the next cell. Returns its column. */
static const struct column *start_cell(struct columns *columns)
{
	const struct column *column = &columns->list[columns->next++];

	fprintf(columns->out, "%*s", (int)(columns->blanks + column->gap), "");
	columns->used += columns->blanks + column->gap;
	columns->blanks = 0;
	return column;
}

void columns_put_styled(struct columns *columns, enum style style, const char *text)
{
	const struct column *column = start_cell(columns);
	unsigned used = text_columns_shown(text), blanks = used < column->width ? column->width - used : 0;

	style_start(columns->out, columns->colour, style);
	fprintf(columns->out, "%*s", column->is_left ? 0 : (int)blanks, "");
	cell_put_all(columns->out, text);
	style_end(columns->out, columns->colour, style);
	columns->blanks = column->is_left ? blanks : 0;
	columns->used += used + (column->is_left ? 0 : blanks);
}

void columns_put(struct columns *columns, const char *text)
{
	columns_put_styled(columns, STYLE_PLAIN, text);
}

void columns_printf(struct columns *columns, const char *format, ...)
{
	char text[MAX_CELL];
	va_list arguments;

	va_start(arguments, format);
	if (vsnprintf(text, sizeof text, format, arguments) < 0)
		text[0] = '\0';
	va_end(arguments);
	columns_put(columns, text);
}

void columns_start(struct columns *columns)
{
	(void)start_cell(columns);
}

void columns_start_last(struct columns *columns)
{
	while (columns->next + 1 < columns->n)
		columns_put(columns, "");
	columns_start(columns);
}

void columns_wrote(struct columns *columns, unsigned used)
{
	unsigned width = columns->list[columns->next - 1].width;

	columns->blanks = used < width ? width - used : 0;
	columns->used += used;
}

void columns_end(struct columns *columns)
{
	fputc('\n', columns->out);
	columns->next = 0;
	columns->blanks = columns->used = 0;
}

void columns_put_head(struct columns *columns)
{
	style_start(columns->out, columns->colour, STYLE_HEAD);
	for (size_t i = 0; i < columns->n; i++)
		columns_put(columns, columns->list[i].head);
	style_end(columns->out, columns->colour, STYLE_HEAD);
	columns_end(columns);
}

void label_put(FILE *out, unsigned width, const char *name)
{
	unsigned used = text_columns_shown(name);

	fputs("  ", out);
	cell_put_all(out, name);
	fprintf(out, "%*s", (int)(used < width ? width - used : 0) + 1, "");
}
