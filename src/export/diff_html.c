/* SPDX-License-Identifier: MIT */
/*
 * diff_html.c - a flame graph of two measurements as one HTML page: the boxes and colours of diff_svg.c, drawn by the
 * code of other profiles' pages.
 *
 * The data is that of html_profile.c, with values that are shares of the whole, and one member more:
 *
 *   diff    note: the compared recordings; shade, is_known, says: for each node its colour, whether its change is
 *           significant, and its text
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/diff_format.h"
#include "src/export/html_page.h"
#include "src/export/names.h"

#define WHOLE 1e9 /* value of the root */

struct data {
	const struct diff_picture *picture;
	FILE *out;
	uint32_t *boxes;     /* shown boxes of the picture, callers first */
	uint32_t *number_of; /* box of the picture -> number; UINT32_MAX: hidden */
	size_t n;
	uint32_t *depth; /* by box of the picture */
	struct names names, places;
	uint32_t *name_of, *place_of; /* by number */
	size_t n_left_out;
};

static void data_done(struct data *data)
{
	free(data->boxes);
	free(data->number_of);
	free(data->depth);
	free(data->name_of);
	free(data->place_of);
	names_done(&data->names);
	names_done(&data->places);
}

static const struct diff_box *box_at(const struct data *data, size_t i)
{
	return &data->picture->boxes[data->boxes[i]];
}

static int number_boxes(struct data *data)
{
	const struct diff_picture *picture = data->picture;

	for (uint32_t i = 0; i < picture->n_boxes; i++) {
		uint32_t parent = picture->boxes[i].parent;

		if (i > 0 && parent >= i)
			return -EINVAL;
		data->depth[i] = i > 0 ? data->depth[parent] + 1 : 0;
		data->number_of[i] = UINT32_MAX;
		if (i > 0 && (data->number_of[parent] == UINT32_MAX || !diff_is_drawn(picture, i) ||
			      data->depth[i] > HTML_MAX_DEPTH)) {
			data->n_left_out += picture->boxes[i].head > 0;
			continue;
		}
		data->number_of[i] = (uint32_t)data->n;
		data->boxes[data->n++] = i;
	}
	return 0;
}

static int number_names(struct data *data)
{
	int r = 0;

	for (size_t i = 0; i < data->n && r >= 0; i++) {
		r = names_add(&data->names, box_at(data, i)->name, &data->name_of[i]);
		if (r >= 0)
			r = names_add(&data->places, box_at(data, i)->place, &data->place_of[i]);
	}
	return r;
}

/* ---- JSON ---- */

/* Write a column: "name":[...] */
static void put_column(const struct data *data, const char *name, int64_t (*at)(const struct data *data, size_t i))
{
	fprintf(data->out, "\"%s\":[", name);
	for (size_t i = 0; i < data->n; i++)
		fprintf(data->out, i > 0 ? ",%jd" : "%jd", (intmax_t)at(data, i));
	fputc(']', data->out);
}

static int64_t node_number(const struct data *data, size_t i)
{
	(void)data;
	return (int64_t)i;
}

static int64_t node_up(const struct data *data, size_t i)
{
	return i > 0 ? (int64_t)i - data->number_of[box_at(data, i)->parent] : 0;
}

static int64_t node_value(const struct data *data, size_t i)
{
	double all = data->picture->boxes[0].head;

	return all > 0 ? llround(box_at(data, i)->head / all * WHOLE) : 0;
}

static int64_t node_shade(const struct data *data, size_t i)
{
	return diff_shade(box_at(data, i));
}

static int64_t node_is_known(const struct data *data, size_t i)
{
	return box_at(data, i)->is_known;
}

static int64_t label_text(const struct data *data, size_t i)
{
	return data->name_of[i] + 1;
}

static int64_t label_module(const struct data *data, size_t i)
{
	return data->place_of[i] + 1 + (int64_t)data->names.n;
}

static int64_t label_none(const struct data *data, size_t i)
{
	(void)data;
	(void)i;
	return 0;
}

static void put_strings(const struct data *data)
{
	const char *separator = "";

	for (size_t i = 0; i < data->names.n + data->places.n; i++) {
		fputs(separator, data->out);
		html_put_string(data->out,
				i < data->names.n ? data->names.texts[i] : data->places.texts[i - data->names.n]);
		separator = ",\n";
	}
}

/* Write the contents of a memory stream as a string. */
static int put_said(FILE *said, char **text, FILE *out)
{
	CLEANUP(freep) char *owned = NULL;

	if (fclose(said) != 0)
		return -ENOMEM;
	owned = *text;
	html_put_string(out, owned);
	return 0;
}

static int put_says(const struct data *data)
{
	int r = 0;

	fputs("\"says\":[", data->out);
	for (size_t i = 0; i < data->n && r >= 0; i++) {
		char *text = NULL;
		size_t n_bytes;
		FILE *said = open_memstream(&text, &n_bytes);

		if (!said)
			return -ENOMEM;
		diff_write_change(data->picture, box_at(data, i), said);
		fputs(i > 0 ? ",\n" : "", data->out);
		r = put_said(said, &text, data->out);
	}
	fputc(']', data->out);
	return r;
}

static int put_note(const struct data *data)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *said = open_memstream(&text, &n_bytes);

	if (!said)
		return -ENOMEM;
	fputs(data->picture->note, said);
	diff_write_removed(data->picture, said);
	if (data->n_left_out > 0)
		fprintf(said, " · %zu boxes too small or too deep left out", data->n_left_out);
	fputs("\"note\":", data->out);
	return put_said(said, &text, data->out);
}

struct column {
	const char *name;
	int64_t (*at)(const struct data *data, size_t i);
};

static void put_columns(const struct data *data, const char *name, const struct column *columns, size_t n)
{
	fprintf(data->out, "\"%s\":{", name);
	for (size_t i = 0; i < n; i++) {
		fputs(i > 0 ? ",\n" : "", data->out);
		put_column(data, columns[i].name, columns[i].at);
	}
}

static int put_all(const struct data *data)
{
	static const struct column labels[] = {
		{ "text", label_text }, { "module", label_module }, { "kind", label_none },
		{ "file", label_none }, { "first", label_none },    { "last", label_none },
	};
	static const struct column nodes[] = { { "label", node_number }, { "up", node_up }, { "value", node_value } };
	static const struct column diff[] = { { "shade", node_shade }, { "is_known", node_is_known } };
	int r;

	fputs("{\"samples\":0,\"scale\":0,\"unit\":null,\"inverted\":false,\"left_out\":0,\"depth\":0,\"limit\":0,\n"
	      "\"kinds\":[\"\"],\"aspects\":[],\"sources\":null,\n\"strings\":[",
	      data->out);
	put_strings(data);
	fputs("],\n", data->out);
	put_columns(data, "labels", labels, N_ELEMENTS(labels));
	fputs("},\n", data->out);
	put_columns(data, "nodes", nodes, N_ELEMENTS(nodes));
	fputs("},\n", data->out);
	put_columns(data, "diff", diff, N_ELEMENTS(diff));
	fputs(",\n", data->out);
	r = put_note(data);
	fputs(",\n", data->out);
	if (r >= 0)
		r = put_says(data);
	fputs("}}\n", data->out);
	return r;
}

int export_diff_html(const struct diff_picture *picture, FILE *out)
{
	CLEANUP(data_done) struct data data = { .picture = picture, .out = out };
	int r;

	if (picture->n_boxes == 0)
		return -EINVAL;
	data.boxes = calloc(picture->n_boxes, sizeof *data.boxes);
	data.number_of = calloc(picture->n_boxes, sizeof *data.number_of);
	data.depth = calloc(picture->n_boxes, sizeof *data.depth);
	data.name_of = calloc(picture->n_boxes, sizeof *data.name_of);
	data.place_of = calloc(picture->n_boxes, sizeof *data.place_of);
	if (!data.boxes || !data.number_of || !data.depth || !data.name_of || !data.place_of)
		return -ENOMEM;
	r = number_boxes(&data);
	if (r >= 0)
		r = number_names(&data);
	if (r < 0)
		return r;
	html_put_begin(picture->title, out);
	r = put_all(&data);
	if (r < 0)
		return r;
	html_put_end(out);
	return text_finish(out);
}

const char *export_diff_html_lacks(void)
{
	return html_lacks();
}
