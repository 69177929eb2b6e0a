/* SPDX-License-Identifier: MIT */
/* annotate_print.c - a file's lines with their times, as text and as JSON. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/report/annotate.h"
#include "src/columns/columns.h"
#include "src/report/print.h"
#include "src/report/table.h"

/* Narrower output only has shares. */
enum { COLUMNS_FOR_TIMES = 72, TIME_COLUMNS = 7, LINE_COLUMNS = 6, MIN_TEXT_COLUMNS = 8, HEAD_COLUMNS = 4096 };

/* Minimum share of all self time on a line, in percent, for each style. */
static const struct {
	double share;
	const char *style;
} heats[] = { { 10, "\033[1;31m" }, { 2, "\033[33m" }, { 0, "\033[32m" } };

#define DIM "\033[2m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

struct page {
	const struct annotated *file;
	const struct source *source;
	const struct whole *whole;
	const struct annotate_options *options;
	struct json *json;
	FILE *out;
	bool has_times;
	unsigned margin, text_columns; /* width of the margin and of the text; 0: unlimited */
};

static const char *heat(const struct page *page, const struct report_sum *sum)
{
	size_t i = 0;

	if (!sum)
		return DIM;
	if (sum->self == 0)
		return "";
	while (i + 1 < N_ELEMENTS(heats) && whole_share(page->whole, sum->self) < heats[i].share)
		i++;
	return heats[i].style;
}

static void put_time(const struct page *page, uint64_t value, int share_columns)
{
	char time[24];

	fprintf(page->out, "%*.1f ", share_columns, whole_share(page->whole, value));
	table_format(page->whole, value, time, sizeof time);
	if (page->has_times)
		fprintf(page->out, "%*s ", TIME_COLUMNS, time);
}

static void put_text(const struct page *page, const struct annotated_line *line)
{
	if (line->text) {
		cell_put_source(page->out, line->text, page->text_columns);
		return;
	}
	fputs(page->source ? "[behind its end] " : "[", page->out);
	cell_put(page->out, line->sum->name, page->text_columns ?: HEAD_COLUMNS, CELL_CUT_MIDDLE);
	if (!page->source)
		fputc(']', page->out);
}

static int put_line(void *data, const struct annotated_line *line)
{
	const struct page *page = data;
	const char *style = page->options->colour ? heat(page, line->sum) : "";

	if (line->follows_gap)
		fprintf(page->out, "%*s\n", (int)page->margin, "...");
	fputs(style, page->out);
	if (line->sum) {
		put_time(page, line->sum->self, 6);
		put_time(page, line->sum->total, 7);
	} else {
		fprintf(page->out, "%*s", (int)(page->margin - LINE_COLUMNS), "");
	}
	fprintf(page->out, "%*d  ", LINE_COLUMNS, line->number);
	put_text(page, line);
	if (style[0])
		fputs(PLAIN, page->out);
	fputc('\n', page->out);
	return 0;
}

static void put_head(const struct page *page)
{
	const struct whole *whole = page->whole;
	char self[24], all[24];
	FILE *out = page->out;

	fputs(page->options->colour ? BOLD : "", out);
	cell_put(out, page->file->label, HEAD_COLUMNS, CELL_CUT_START);
	fputs(page->options->colour ? PLAIN : "", out);
	table_format(whole, page->file->self, self, sizeof self);
	table_format(whole, whole->weight, all, sizeof all);
	fprintf(out, "\nself %.1f %%", whole_share(whole, page->file->self));
	if (whole->by_weight)
		fprintf(out, ", %s of %s", self, all);
	if (page->source && strcmp(page->source->path, page->file->label) != 0) {
		fputs("; source: ", out);
		cell_put(out, page->source->path, HEAD_COLUMNS, CELL_CUT_START);
	}
	fputs("\n\n", out);
	fprintf(out, page->has_times ? "self %%    self total %%   total " : "self %% total %% ");
	fprintf(out, "%*s\n", LINE_COLUMNS, "line");
}

void annotate_put(const struct annotated *file, const struct source *source, const struct whole *whole,
		  const struct annotate_options *options, FILE *out)
{
	struct page page = { .file = file, .source = source, .whole = whole, .options = options, .out = out };
	unsigned columns = options->columns;

	page.has_times = columns == 0 || columns >= COLUMNS_FOR_TIMES;
	page.margin = 7 + 8 + LINE_COLUMNS + (page.has_times ? 2 * (TIME_COLUMNS + 1) : 0);
	if (columns > 0)
		page.text_columns = columns > page.margin + 2 + MIN_TEXT_COLUMNS ? columns - page.margin - 2
										 : MIN_TEXT_COLUMNS;
	put_head(&page);
	(void)annotate_each_line(file, source, options, put_line, &page); /* put_line() never fails */
}

/* ---- JSON ---- */

static int put_json_line(void *data, const struct annotated_line *line)
{
	const struct page *page = data;

	to_json_object(page->json);
	to_json_put_integer(page->json, "line", line->number);
	to_json_put_string(page->json, "text", line->text);
	to_json_put_string(page->json, "function", line->sum ? line->sum->name : NULL);
	print_json_time(page->json, page->whole, "self", line->sum ? line->sum->self : 0);
	print_json_time(page->json, page->whole, "total", line->sum ? line->sum->total : 0);
	to_json_object_end(page->json);
	return 0;
}

void annotate_put_json(const struct annotated *file, const struct source *source, const struct whole *whole,
		       const struct annotate_options *options, struct json *json)
{
	struct page page = { .file = file, .source = source, .whole = whole, .options = options, .json = json };

	to_json_object(json);
	to_json_put_string(json, "file", file->file);
	to_json_put_string(json, "source", source ? source->path : NULL);
	to_json_put_bool(json, "newer",
			 source && options->recorded_ns > 0 && source->changed_ns > options->recorded_ns);
	print_json_time(json, whole, "self", file->self);
	to_json_put_array(json, "lines");
	(void)annotate_each_line(file, source, options, put_json_line, &page); /* put_json_line() never fails */
	to_json_array_end(json);
	to_json_object_end(json);
}
