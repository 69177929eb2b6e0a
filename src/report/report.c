/* report.c - the top functions as a table that fits a terminal.
 *
 * What does not fit gives way in this order: the place, the times (their
 * shares stay), the kind. The function's name always has a column.
 */
#include "src/report/report.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/report/cell.h"
#include "src/report/functions.h"

enum {
	DEFAULT_ROWS = 20,
	DEFAULT_COLUMNS = 80,
	MIN_COLUMNS = 24,
	COLUMNS_FOR_KIND = 40,
	COLUMNS_FOR_TIMES = 56,
	COLUMNS_FOR_PLACE = 72,
	TIME_COLUMNS = 7,
	KIND_COLUMNS = 7,
	LONGEST_UNIT = 60,
};

/* Which columns there are; widths of the last two. */
struct layout {
	bool has_kind, has_times, has_place;
	unsigned function_columns, place_columns;
};

struct row {
	const struct function_time *time;
	char *place; /* NULL: unknown */
};

struct table {
	const struct report_options *options;
	const struct function_sums *sums;
	struct row *rows;
	size_t n_rows;
	struct layout layout;
	FILE *out;
};

enum style { STYLE_PLAIN, STYLE_HEAD, STYLE_PYTHON, STYLE_BUILTIN, STYLE_NATIVE, STYLE_KERNEL };

static const char *const styles[] = {
	[STYLE_PLAIN] = "",
	[STYLE_HEAD] = "\033[1m",
	[STYLE_PYTHON] = "\033[34m",
	[STYLE_BUILTIN] = "\033[32m",
	[STYLE_NATIVE] = "\033[33m",
	[STYLE_KERNEL] = "\033[35m",
};

static void start_style(const struct table *table, enum style style)
{
	if (table->options->colour)
		fputs(styles[style], table->out);
}

static void end_style(const struct table *table, enum style style)
{
	if (table->options->colour && style != STYLE_PLAIN)
		fputs("\033[0m", table->out);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const char *kind_word(const struct profile_frame *frame, enum style *ret_style)
{
	if (!frame) {
		*ret_style = STYLE_PLAIN;
		return "";
	}
	if (frame->kind == FRAME_KERNEL) {
		*ret_style = STYLE_KERNEL;
		return "kernel";
	}
	if (frame->kind == FRAME_TASK) {
		*ret_style = STYLE_PLAIN;
		return "task";
	}
	if (frame->kind == FRAME_WAIT) {
		*ret_style = STYLE_PLAIN;
		return "wait";
	}
	if (frame->role == ROLE_BUILTIN) {
		*ret_style = STYLE_BUILTIN;
		return "builtin";
	}
	*ret_style = frame->kind == FRAME_PYTHON ? STYLE_PYTHON : STYLE_NATIVE;
	return frame->kind == FRAME_PYTHON ? "py" : "native";
}

/* "file:line", or the module's name; NULL where neither is known. */
static int place_text(const struct profile_frame *frame, char **ret)
{
	int n;

	*ret = NULL;
	if (!frame || (!frame->file && !frame->module))
		return 0;
	if (!frame->file)
		n = asprintf(ret, "%s", base_name(frame->module));
	else if (frame->line > 0)
		n = asprintf(ret, "%s:%d", frame->file, frame->line);
	else
		n = asprintf(ret, "%s", frame->file);
	if (n < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int compare_values(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_times(const void *a, const void *b, void *context)
{
	const struct function_time *left = a, *right = b;
	const bool *by_total = context;
	int self = compare_values(left->self, right->self);
	int total = compare_values(left->total, right->total);
	int order = *by_total ? total : self;

	if (order == 0)
		order = *by_total ? self : total;
	return order != 0 ? order : strcmp(left->name, right->name);
}

static int make_rows(struct table *table, const struct function_sums *sums)
{
	size_t max = table->options->max_rows ? table->options->max_rows : DEFAULT_ROWS;
	size_t n = MIN(max, sums->n_items);

	table->rows = calloc(n + 1, sizeof *table->rows);
	if (!table->rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int r;

		table->rows[i].time = &sums->items[i];
		r = place_text(sums->items[i].frame, &table->rows[i].place);
		if (r < 0)
			return r;
		table->n_rows = i + 1;
	}
	return 0;
}

static void rows_done(struct table *table)
{
	for (size_t i = 0; i < table->n_rows; i++)
		free(table->rows[i].place);
	free(table->rows);
}

/* Share what is left of the line between function and place, by what they need. */
static void lay_out(struct table *table)
{
	unsigned columns = table->options->columns ? table->options->columns : DEFAULT_COLUMNS;
	unsigned longest_name = (unsigned)strlen("function");
	unsigned longest_place = (unsigned)strlen("where");
	unsigned used = (unsigned)(strlen("self % ") + strlen("total % "));
	struct layout *layout = &table->layout;
	unsigned rest;

	columns = MAX(columns, (unsigned)MIN_COLUMNS);
	layout->has_kind = columns >= COLUMNS_FOR_KIND;
	layout->has_times = columns >= COLUMNS_FOR_TIMES;
	layout->has_place = columns >= COLUMNS_FOR_PLACE;
	used += layout->has_kind ? KIND_COLUMNS + 1 : 0;
	used += layout->has_times ? 2 * (TIME_COLUMNS + 1) : 0;
	rest = columns - used;
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct row *row = &table->rows[i];

		longest_name = MAX(longest_name, cell_columns(row->time->name));
		if (row->place)
			longest_place = MAX(longest_place, cell_columns(row->place));
	}
	if (!layout->has_place) {
		layout->function_columns = rest;
		return;
	}
	rest--;
	layout->function_columns = MIN(longest_name,
				       rest > longest_place ? rest - longest_place : 0);
	layout->function_columns = MAX(layout->function_columns, MIN(longest_name, rest * 11 / 20));
	layout->place_columns = rest - layout->function_columns;
}

static void put_share(const struct table *table, uint64_t value, int columns)
{
	uint64_t all = table->sums->by_weight ? table->sums->weight_ns : table->sums->samples;

	fprintf(table->out, "%*.1f ", columns, all ? 100.0 * (double)value / (double)all : 0.0);
}

static void format_weight(const struct function_sums *sums, uint64_t value, char *to, size_t n_bytes)
{
	if (sums->unit)
		cell_format_count(value, to, n_bytes);
	else
		cell_format_ns(value, to, n_bytes);
}

static void put_time(const struct table *table, uint64_t value)
{
	char text[24] = "-";

	if (!table->layout.has_times)
		return;
	if (table->sums->by_weight)
		format_weight(table->sums, value, text, sizeof text);
	fprintf(table->out, "%*s ", TIME_COLUMNS, text);
}

static void put_row(const struct table *table, const struct row *row)
{
	const struct layout *layout = &table->layout;
	enum style style;
	const char *kind = kind_word(row->time->frame, &style);
	unsigned used;

	put_share(table, row->time->self, 6);
	put_time(table, row->time->self);
	put_share(table, row->time->total, 7);
	put_time(table, row->time->total);
	start_style(table, style);
	if (layout->has_kind)
		fprintf(table->out, "%-*s ", KIND_COLUMNS, kind);
	used = cell_put(table->out, row->time->name, layout->function_columns, CELL_CUT_MIDDLE);
	end_style(table, style);
	if (layout->has_place && row->place) {
		fprintf(table->out, "%*s", (int)(layout->function_columns - used) + 1, "");
		cell_put(table->out, row->place, layout->place_columns, CELL_CUT_START);
	}
	fputc('\n', table->out);
}

static void put_head(const struct table *table)
{
	const struct function_sums *sums = table->sums;
	const struct layout *layout = &table->layout;
	char time[24];

	fprintf(table->out, "%ju sample%s", (uintmax_t)sums->samples,
		sums->samples == 1 ? "" : "s");
	if (sums->by_weight) {
		format_weight(sums, sums->weight_ns, time, sizeof time);
		fprintf(table->out, ", %s", time);
	}
	if (sums->by_weight && sums->unit) {
		fputc(' ', table->out);
		cell_put(table->out, sums->unit, LONGEST_UNIT, CELL_CUT_MIDDLE);
	}
	fputc('\n', table->out);
	if (table->options->held)
		report_held(table->options->held, table->options->columns ?: DEFAULT_COLUMNS, table->out);
	fputc('\n', table->out);
	start_style(table, STYLE_HEAD);
	fputs("self % ", table->out);
	if (layout->has_times)
		fprintf(table->out, "%*s ", TIME_COLUMNS, "self");
	fputs("total % ", table->out);
	if (layout->has_times)
		fprintf(table->out, "%*s ", TIME_COLUMNS, "total");
	if (layout->has_kind)
		fprintf(table->out, "%-*s ", KIND_COLUMNS, "kind");
	if (layout->has_place)
		fprintf(table->out, "%-*s where", (int)layout->function_columns, "function");
	else
		fputs("function", table->out);
	end_style(table, STYLE_HEAD);
	fputc('\n', table->out);
}

static void put_table(const struct table *table)
{
	size_t n_more = table->sums->n_items - table->n_rows;

	put_head(table);
	for (size_t i = 0; i < table->n_rows; i++)
		put_row(table, &table->rows[i]);
	if (n_more > 0)
		fprintf(table->out, "(%zu more)\n", n_more);
}

static int finish(FILE *out)
{
	if (fflush(out) != 0)
		return errno > 0 ? -errno : -EIO;
	return ferror(out) ? -EIO : 0;
}

int report_functions(const struct profile *profile, const struct report_options *options, FILE *out)
{
	CLEANUP(functions_done) struct function_sums sums = {};
	CLEANUP(rows_done) struct table table = { .options = options, .sums = &sums, .out = out };
	bool by_total = options->by_total;
	int r;

	r = functions_sum(profile, options->show_interpreter, &sums);
	if (r < 0)
		return r;
	if (sums.samples == 0) {
		fputs("The recording holds no samples.\n", out);
		return finish(out);
	}
	qsort_r(sums.items, sums.n_items, sizeof *sums.items, compare_times, &by_total);
	r = make_rows(&table, &sums);
	if (r < 0)
		return r;
	lay_out(&table);
	put_table(&table);
	return finish(out);
}
