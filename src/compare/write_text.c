/* SPDX-License-Identifier: MIT */
/*
 * write_text.c - a comparison for a terminal: the total, then functions, then stacks if requested.
 *
 * "~" means no significant change, which does not prove that there is none.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/columns/columns.h"
#include "src/compare/format.h"

enum { NUMBER_COLUMNS = 9, CHANGE_COLUMNS = 10, MIN_NAME_COLUMNS = 16, MAX_CELL = 64 };

static const struct column whole_columns[] = {
	{ "WAS", NUMBER_COLUMNS, 0, false },
	{ "IS", NUMBER_COLUMNS, 0, false },
	{ "CHANGE", CHANGE_COLUMNS, 0, false },
};

struct writing {
	const struct compare *compare;
	const struct compare_look *look;
	FILE *out;
};

static void put_number(const struct writing *writing, struct columns *columns, double value)
{
	char text[MAX_CELL];

	compare_format(writing->compare, value, text, sizeof text);
	columns_put(columns, text);
}

static void put_change(struct columns *columns, const struct estimate *estimate)
{
	char text[MAX_CELL];

	format_change(estimate, text, sizeof text);
	columns_put_styled(columns,
			   !estimate->is_known               ? STYLE_PLAIN
			   : estimate->head > estimate->base ? STYLE_BAD
							     : STYLE_GOOD,
			   text);
}

/* Numbers, and how they changed. */
static void put_estimate(const struct writing *writing, struct columns *columns, const struct estimate *estimate)
{
	put_number(writing, columns, estimate->base);
	put_number(writing, columns, estimate->head);
	put_change(columns, estimate);
}

/* Truncate to the rest of the line; the names are escaped already. */
static void put_cut(const struct writing *writing, const char *text, unsigned used)
{
	unsigned left = writing->look->columns > used + MIN_NAME_COLUMNS ? writing->look->columns - used
									 : MIN_NAME_COLUMNS;

	if (writing->look->columns == 0)
		fputs(text, writing->out);
	else
		cell_put(writing->out, text, left, CELL_CUT_END);
}

static int name_row(const struct compare *compare, const struct compare_row *row, char **ret)
{
	const struct compare_function *function = &compare->functions[row->function];
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return -ENOMEM;
	if (row->node != 0)
		print_path(compare, row->node, out);
	else
		fprintf(out, "%s%s%s%s", function->is_ambiguous ? "* " : "", function->name,
			function->place[0] ? "  " : "", function->place);
	if (row->node == 0 && function->was_place)
		fprintf(out, " (was %s)", function->was_place);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

static int put_row(const struct writing *writing, struct columns *columns, const struct compare_row *row)
{
	CLEANUP(freep) char *name = NULL;
	int r = name_row(writing->compare, row, &name);

	if (r < 0)
		return r;
	put_estimate(writing, columns, &row->self);
	put_estimate(writing, columns, &row->total);
	columns_start_last(columns);
	put_cut(writing, name, 4 * NUMBER_COLUMNS + 2 * CHANGE_COLUMNS + 2);
	columns_end(columns);
	return 0;
}

static int put_table(const struct writing *writing, const struct compare_row *rows, size_t n, const char *what)
{
	const struct column list[] = {
		{ "SELF", NUMBER_COLUMNS, 0, false },
		{ "IS", NUMBER_COLUMNS, 0, false },
		{ "CHANGE", CHANGE_COLUMNS, 0, false },
		{ "TOTAL", NUMBER_COLUMNS, 0, false },
		{ "IS", NUMBER_COLUMNS, 0, false },
		{ "CHANGE", CHANGE_COLUMNS, 0, false },
		{ what, 0, 2, true },
	};
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = writing->out };
	size_t n_shown = row_limit(n, writing->look->max_rows);
	int r = 0;

	fputc('\n', writing->out);
	columns_put_head(&columns);
	columns.colour = writing->look->colour;
	for (size_t i = 0; i < n_shown && r >= 0; i++)
		r = put_row(writing, &columns, &rows[i]);
	if (n_shown < n && r >= 0)
		fprintf(writing->out, "%*s  %zu more\n", 4 * NUMBER_COLUMNS + 2 * CHANGE_COLUMNS, "", n - n_shown);
	return r;
}

static void put_whole(const struct writing *writing, const char *name, const struct estimate *estimate)
{
	struct columns columns = { .list = whole_columns,
				   .n = N_ELEMENTS(whole_columns),
				   .out = writing->out,
				   .colour = writing->look->colour };
	char interval[MAX_CELL];

	put_estimate(writing, &columns, estimate);
	format_interval(estimate, interval, sizeof interval);
	fprintf(writing->out, "  %s%s%s\n", name, interval[0] ? ", between " : "", interval);
}

static void put_wall(const struct writing *writing)
{
	struct compare time = { .options.per = PER_RUN };
	struct writing of_time = { &time, writing->look, writing->out };

	if (writing->compare->n_timed[SIDE_BASE] > 0 && writing->compare->n_timed[SIDE_HEAD] > 0)
		put_whole(&of_time, "wall time without a recorder", &writing->compare->wall);
}

int compare_write_text(const struct compare *compare, const struct compare_look *look, FILE *out)
{
	struct columns columns = { .list = whole_columns, .n = N_ELEMENTS(whole_columns), .out = out };
	struct writing writing = { compare, look, out };
	int r;

	fputs("base  ", out);
	print_runs(compare, SIDE_BASE, out);
	fputs("\nhead  ", out);
	print_runs(compare, SIDE_HEAD, out);
	fprintf(out, "\n%s; ~ no significant change\n", compare_quantity(compare));
	print_remarks(compare, "note: ", out);
	fputc('\n', out);
	columns_put_head(&columns);
	if (compare_has_whole(compare))
		put_whole(&writing, "total", &compare->whole);
	put_wall(&writing);
	r = put_table(&writing, compare->rows, compare->n_rows, "FUNCTION");
	if (r >= 0 && compare->options.stacks)
		r = put_table(&writing, compare->stacks, compare->n_stacks, "STACK");
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
