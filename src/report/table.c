/* SPDX-License-Identifier: MIT */
/* table.c - see table.h.
 *
 * A line that is too wide loses parts in this order: the beginning of the place, all of the place and the counts, the
 * times (their shares remain), the kind, and last the name. Without a width, nothing is lost.
 */
#include "src/report/table.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"
#include "src/columns/columns.h"

enum {
	MIN_COLUMNS = 24,
	COLUMNS_FOR_KIND = 40,
	COLUMNS_FOR_TIMES = 56,
	COLUMNS_FOR_PLACE = 72,
	TIME_COLUMNS = 7,
	KIND_COLUMNS = 7,
	LONGEST_UNIT = 60,
	MIN_PLACE_COLUMNS = 16,   /* usually a file name and a line */
	MAX_PADDING_COLUMNS = 80, /* so that one long name does not widen every row */
	MAX_HEAD = 32,
	MAX_LAYOUT = 2 * TABLE_TIMES + TABLE_COUNTS + 3, /* numbers, kind, name, place */
};

/* Columns of the table, and the widths of the last two. */
struct layout {
	bool has_kind, has_times, has_counts, has_place;
	unsigned name_columns, place_columns;
	bool has_room; /* width is unlimited: the widths above are only padding */
	struct column list[MAX_LAYOUT];
	char heads[TABLE_TIMES][MAX_HEAD]; /* of shares */
	size_t n;
};

static const struct {
	const char *word;
	enum style style;
} kinds[] = {
	[FRAME_PYTHON] = { "py", STYLE_PYTHON },     [FRAME_NATIVE] = { "native", STYLE_NATIVE },
	[FRAME_KERNEL] = { "kernel", STYLE_KERNEL }, [FRAME_TASK] = { "task", STYLE_PLAIN },
	[FRAME_WAIT] = { "wait", STYLE_PLAIN },      [FRAME_UNSAMPLED] = { "", STYLE_PLAIN },
};

void table_kind(const struct profile_frame *frame, bool ignore_role, struct table_row *row)
{
	bool is_code = frame && (frame->kind == FRAME_PYTHON || frame->kind == FRAME_NATIVE);

	row->kind = frame ? kinds[frame->kind].word : "";
	row->style = frame ? kinds[frame->kind].style : STYLE_PLAIN;
	if (is_code && frame->role == ROLE_BUILTIN && !ignore_role) {
		row->kind = "builtin";
		row->style = STYLE_BUILTIN;
	}
}

int table_place(const struct profile_frame *frame, char **ret)
{
	int n;

	*ret = NULL;
	if (!frame || (!frame->file && !frame->module))
		return 0;
	if (!frame->file)
		n = asprintf(ret, "%s", frame->module_label ?: path_base_name(frame->module));
	else if (frame->line > 0)
		n = asprintf(ret, "%s:%d", frame->file_label ?: frame->file, frame->line);
	else
		n = asprintf(ret, "%s", frame->file_label ?: frame->file);
	if (n < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n_rows; i++)
		free(table->rows[i].place);
	free(table->rows);
}

void table_format(const struct whole *whole, uint64_t value, char *to, size_t n_bytes)
{
	if (!whole->by_weight)
		snprintf(to, n_bytes, "-");
	else if (whole->unit)
		cell_format_count(value, to, n_bytes);
	else
		cell_format_ns(value, to, n_bytes);
}

/* ---- Layout ---- */

static int share_columns(const char *head)
{
	return (int)strlen(head) + 2;
}

static unsigned times_columns(const struct table *table, bool has_times)
{
	unsigned used = 0;

	for (int i = 0; i < TABLE_TIMES; i++) {
		if (!table->times[i].head)
			continue;
		used += (unsigned)share_columns(table->times[i].head) + 1;
		used += has_times && table->times[i].has_time ? TIME_COLUMNS + 1 : 0;
	}
	return used;
}

static unsigned counts_columns(const struct table *table)
{
	unsigned used = 0;

	for (int i = 0; i < TABLE_COUNTS; i++)
		used += table->count_heads[i] ? (unsigned)strlen(table->count_heads[i]) + 1 : 0;
	return used;
}

static const char *place_head(const struct table *table)
{
	return table->place_head ?: "where";
}

static void measure(const struct table *table, unsigned *ret_name, unsigned *ret_place)
{
	*ret_name = (unsigned)strlen(table->name_head);
	*ret_place = (unsigned)strlen(place_head(table));
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct table_row *row = &table->rows[i];

		*ret_name = MAX(*ret_name, row->indent + text_columns_shown(row->name));
		if (row->place)
			*ret_place = MAX(*ret_place, text_columns_shown(row->place));
	}
}

static struct layout lay_out_all(const struct table *table)
{
	unsigned longest_name, longest_place;

	measure(table, &longest_name, &longest_place);
	return (struct layout){
		.has_kind = table->has_kind,
		.has_times = true,
		.has_counts = true,
		.has_place = true,
		.has_room = true,
		.name_columns = MIN(longest_name, (unsigned)MAX_PADDING_COLUMNS),
	};
}

/* The name gets what it needs of the rest; a place keeps its end. */
static struct layout lay_out(const struct table *table)
{
	unsigned columns = MAX(table->options->columns, (unsigned)MIN_COLUMNS);
	unsigned longest_name, longest_place;
	struct layout layout = {
		.has_kind = table->has_kind && columns >= COLUMNS_FOR_KIND,
		.has_times = columns >= COLUMNS_FOR_TIMES,
		.has_counts = columns >= COLUMNS_FOR_PLACE,
		.has_place = columns >= COLUMNS_FOR_PLACE,
	};
	unsigned rest = columns - times_columns(table, layout.has_times) - (layout.has_kind ? KIND_COLUMNS + 1 : 0) -
			(layout.has_counts ? counts_columns(table) : 0);

	measure(table, &longest_name, &longest_place);
	layout.name_columns = rest;
	if (layout.has_place) {
		rest--;
		layout.name_columns = MIN(longest_name,
					  rest - MIN(MIN(longest_place, (unsigned)MIN_PLACE_COLUMNS), rest));
		layout.place_columns = rest - layout.name_columns;
	}
	return layout;
}

static void add_column(struct layout *layout, const char *head, unsigned width, bool is_left)
{
	layout->list[layout->n] = (struct column){
		.head = head, .width = width, .gap = layout->n > 0 ? 1 : 0, .is_left = is_left
	};
	layout->n++;
}

/* The columns that the layout keeps, as put_row() fills them. */
static void add_columns(const struct table *table, struct layout *layout)
{
	for (int i = 0; i < TABLE_TIMES; i++) {
		const char *head = table->times[i].head;

		if (!head)
			continue;
		snprintf(layout->heads[i], sizeof layout->heads[i], "%s %%", head);
		add_column(layout, layout->heads[i], (unsigned)share_columns(head), false);
		if (layout->has_times && table->times[i].has_time)
			add_column(layout, head, TIME_COLUMNS, false);
	}
	for (int i = 0; layout->has_counts && i < TABLE_COUNTS; i++)
		if (table->count_heads[i])
			add_column(layout, table->count_heads[i], (unsigned)strlen(table->count_heads[i]), false);
	if (layout->has_kind)
		add_column(layout, "kind", KIND_COLUMNS, true);
	add_column(layout, table->name_head, layout->name_columns, true);
	if (layout->has_place)
		add_column(layout, place_head(table), layout->place_columns, true);
}

/* ---- Print ---- */

static void put_numbers(const struct table *table, const struct layout *layout, const struct table_row *row,
			struct columns *columns)
{
	for (int i = 0; i < TABLE_TIMES; i++) {
		char text[24];

		if (!table->times[i].head)
			continue;
		columns_printf(columns, "%.1f", row->shares[i]);
		table_format(table->whole, row->values[i], text, sizeof text);
		if (layout->has_times && table->times[i].has_time)
			columns_put(columns, text);
	}
	for (int i = 0; layout->has_counts && i < TABLE_COUNTS; i++)
		if (table->count_heads[i])
			columns_printf(columns, "%ju", (uintmax_t)row->counts[i]);
}

/* The kind and the name, in one style. */
static void put_name(const struct layout *layout, const struct table_row *row, struct columns *columns)
{
	unsigned used = layout->has_room ? row->indent : MIN(row->indent, layout->name_columns);
	enum style style = (enum style)row->style;

	columns_start(columns);
	style_start(columns->out, columns->colour, style);
	if (layout->has_kind) {
		fputs(row->kind, columns->out);
		columns_wrote(columns, (unsigned)strlen(row->kind));
		columns_start(columns);
	}
	fprintf(columns->out, "%*s", (int)used, "");
	used += cell_put(columns->out, row->name, layout->has_room ? UINT_MAX : layout->name_columns - used,
			 CELL_CUT_MIDDLE);
	style_end(columns->out, columns->colour, style);
	columns_wrote(columns, used);
}

static void put_row(const struct table *table, const struct layout *layout, const struct table_row *row,
		    struct columns *columns)
{
	put_numbers(table, layout, row, columns);
	put_name(layout, row, columns);
	if (layout->has_place && row->place) {
		columns_start(columns);
		cell_put_path(columns->out, row->place, layout->has_room ? UINT_MAX : layout->place_columns);
	}
	columns_end(columns);
}

void table_put_whole(const struct report_options *options, const struct whole *whole, FILE *out)
{
	char time[24];

	fprintf(out, "%ju sample%s", (uintmax_t)whole->samples, whole->samples == 1 ? "" : "s");
	if (whole->by_weight) {
		table_format(whole, whole->weight, time, sizeof time);
		fprintf(out, ", %s", time);
	}
	if (whole->by_weight && whole->unit) {
		fputc(' ', out);
		cell_put(out, whole->unit, LONGEST_UNIT, CELL_CUT_MIDDLE);
	}
	fputc('\n', out);
	if (options->lost > 0)
		fprintf(out, "%ju more were lost while recording\n", (uintmax_t)options->lost);
	if (options->held)
		report_held(options->held, options->columns, out);
	fputc('\n', out);
}

void table_put(const struct table *table, FILE *out)
{
	struct layout layout = table->options->columns > 0 ? lay_out(table) : lay_out_all(table);
	struct columns columns = { .list = layout.list, .out = out, .colour = table->options->colour };

	add_columns(table, &layout);
	columns.n = layout.n;
	columns_put_head(&columns);
	for (size_t i = 0; i < table->n_rows; i++)
		put_row(table, &layout, &table->rows[i], &columns);
	if (table->n_more > 0)
		fprintf(out, "(%zu more)\n", table->n_more);
}
