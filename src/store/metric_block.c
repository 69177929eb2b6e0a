/* SPDX-License-Identifier: MIT */
/*
 * metric_block.c - rows of metrics, packed and unpacked; metric_block.h has the format.
 *
 * The bytes of a file are foreign: row_block.c checks their structure, and here each distance must lead to a row of the block.
 */
#include "src/store/metric_block.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static uint64_t bits_of(double real)
{
	uint64_t bits;

	memcpy(&bits, &real, sizeof bits);
	return bits;
}

static double real_of(uint64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof real);
	return real;
}

/* Reals are compared by their bits: -0.0 and a NaN come back as they were. */
static bool is_same(const struct row_value *a, const struct row_value *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case ROW_INTEGER:
		return a->integer == b->integer;
	case ROW_REAL:
		return bits_of(a->real) == bits_of(b->real);
	case ROW_TEXT:
		return a->n_text == b->n_text && memcmp(a->text, b->text, a->n_text) == 0;
	default:
		return true;
	}
}

/* ---- Pack ---- */

static bool is_of_same(const struct metric_encoder *encoder, const struct row_value *a, const struct row_value *b)
{
	for (size_t i = 0; i < encoder->n_columns; i++)
		if (encoder->keys >> i & 1 && !is_same(&a[i], &b[i]))
			return false;
	return true;
}

static const struct row_value *row_before(const struct metric_encoder *encoder, size_t distance)
{
	return encoder->values + (encoder->rows.n_rows - distance) * encoder->n_columns;
}

/* A type changes only if a program of another version wrote it: then the row is for itself. */
static bool can_follow(const struct metric_encoder *encoder, const struct row_value *before,
		       const struct row_value *values)
{
	for (size_t i = 0; i < encoder->n_columns; i++)
		if (values[i].kind == ROW_INTEGER && (before[i].kind == ROW_REAL || before[i].kind == ROW_TEXT))
			return false;
	return true;
}

/* At each moment rows come in nearly the same order, so the last distance is mostly the next one. */
static size_t find_before(const struct metric_encoder *encoder, const struct row_value *values)
{
	size_t n = encoder->rows.n_rows, found = encoder->distance;

	if (found == 0 || found > n || !is_of_same(encoder, row_before(encoder, found), values))
		for (found = 1; found <= n && !is_of_same(encoder, row_before(encoder, found), values); found++)
			;
	return found <= n && can_follow(encoder, row_before(encoder, found), values) ? found : 0;
}

static void relate(const struct row_value *before, const struct row_value *value, struct row_value *ret)
{
	*ret = *value;
	if (value->kind == ROW_INTEGER && before->kind == ROW_INTEGER)
		ret->integer = (int64_t)((uint64_t)value->integer - (uint64_t)before->integer);
	else if ((value->kind == ROW_REAL || value->kind == ROW_TEXT) && is_same(before, value))
		*ret = (struct row_value){ .kind = ROW_INTEGER };
}

/* Keep the row for those to come. @distance: to the row before, whose equal texts are shared; 0: there is none. */
static int keep(struct metric_encoder *encoder, size_t distance, const struct row_value *values)
{
	size_t at = encoder->rows.n_rows * encoder->n_columns;
	int r = grow(&encoder->values, at + encoder->n_columns, &encoder->values_room, sizeof *encoder->values);
	const struct row_value *before = distance > 0 && r >= 0 ? row_before(encoder, distance) : NULL;

	for (size_t i = 0; i < encoder->n_columns && r >= 0; i++) {
		struct row_value *to = &encoder->values[at + i];

		*to = values[i];
		if (to->kind != ROW_TEXT)
			continue;
		if (before && is_same(&before[i], to)) {
			to->text = before[i].text;
			continue;
		}
		r = grow(&encoder->texts, encoder->n_texts, &encoder->texts_room, sizeof *encoder->texts);
		if (r < 0)
			return r;
		to->text = encoder->texts[encoder->n_texts] = malloc(to->n_text + 1);
		if (!to->text)
			return -ENOMEM;
		memcpy(encoder->texts[encoder->n_texts++], values[i].text, to->n_text);
	}
	return r;
}

int metric_encoder_put(struct metric_encoder *encoder, double timestamp, const struct row_value *values)
{
	struct row_value related[METRIC_BLOCK_MAX_COLUMNS + 1];
	const struct row_value *before = NULL;
	size_t distance;
	int r;

	if (encoder->rows.n_rows == METRIC_BLOCK_ROWS)
		return -E2BIG;
	if (encoder->n_columns > METRIC_BLOCK_MAX_COLUMNS || !(timestamp > 0) || !isfinite(timestamp))
		return -EINVAL;
	distance = find_before(encoder, values);
	r = keep(encoder, distance, values);
	if (r < 0)
		return r;
	if (distance > 0)
		before = row_before(encoder, distance);
	related[0] = (struct row_value){ .kind = ROW_INTEGER, .integer = (int64_t)distance };
	for (size_t i = 0; i < encoder->n_columns; i++) {
		related[i + 1] = values[i];
		if (before)
			relate(&before[i], &values[i], &related[i + 1]);
	}
	r = row_put(&encoder->rows, bits_of(timestamp), related, encoder->n_columns + 1);
	if (r < 0)
		return r;
	encoder->first = encoder->rows.n_rows == 1 ? timestamp : MIN(encoder->first, timestamp);
	encoder->last = encoder->rows.n_rows == 1 ? timestamp : MAX(encoder->last, timestamp);
	encoder->distance = distance > 0 ? distance : encoder->distance;
	return 0;
}

static void clear(struct metric_encoder *encoder)
{
	for (size_t i = 0; i < encoder->n_texts; i++)
		free(encoder->texts[i]);
	encoder->n_texts = 0;
	encoder->rows.n_bytes = encoder->rows.n_rows = 0;
	encoder->rows.time_ns = 0;
	encoder->distance = 0;
}

int metric_encoder_pack(struct metric_encoder *encoder, uint8_t **ret, size_t *ret_bytes)
{
	int r = row_block_pack(&encoder->rows, ret, ret_bytes);

	clear(encoder);
	return r;
}

void metric_encoder_done(struct metric_encoder *encoder)
{
	clear(encoder);
	free(encoder->rows.at);
	free(encoder->values);
	free(encoder->texts);
	*encoder = (struct metric_encoder){ .n_columns = encoder->n_columns, .keys = encoder->keys };
}

/* ---- Unpack ---- */

/* False: no recorder writes that. */
static bool restore(const struct row_value *before, struct row_value *value)
{
	if (value->kind != ROW_INTEGER || before->kind == ROW_NULL)
		return true;
	if (before->kind == ROW_INTEGER) {
		value->integer = (int64_t)((uint64_t)before->integer + (uint64_t)value->integer);
		return true;
	}
	if (value->integer != 0)
		return false;
	*value = *before;
	return true;
}

static bool take_row(struct metric_rows *rows, size_t row)
{
	const struct row_value *from = rows->block.values;
	struct row_value *to = rows->values + row * rows->n_columns;
	double timestamp = real_of(rows->block.time_ns);
	uint64_t distance = (uint64_t)from[0].integer;

	if (from[0].kind != ROW_INTEGER || distance > row || !(timestamp > 0) || !isfinite(timestamp))
		return false;
	rows->timestamps[row] = timestamp;
	for (size_t i = 0; i < rows->n_columns; i++) {
		to[i] = from[i + 1];
		if (distance > 0 && !restore(to + i - distance * rows->n_columns, &to[i]))
			return false;
	}
	return true;
}

int metric_rows_open(struct metric_rows *rows, const void *bytes, size_t n_bytes)
{
	int r = row_block_open(&rows->block, bytes, n_bytes), more;

	rows->n_rows = rows->n_columns = 0;
	if (r < 0)
		return r;
	if (rows->block.n_rows > METRIC_BLOCK_MAX_ROWS || rows->block.n_columns < 1 ||
	    rows->block.n_columns > METRIC_BLOCK_MAX_COLUMNS + 1)
		return -EBADMSG;
	rows->n_columns = rows->block.n_columns - 1;
	r = grow(&rows->timestamps, rows->block.n_rows, &rows->timestamps_room, sizeof *rows->timestamps);
	if (r >= 0)
		r = grow(&rows->values, rows->block.n_rows * rows->n_columns, &rows->values_room, sizeof *rows->values);
	if (r < 0)
		return r;
	for (size_t row = 0; (more = row_block_next(&rows->block)) > 0; row++)
		if (!take_row(rows, row))
			return -EBADMSG;
	if (more < 0)
		return more;
	rows->n_rows = rows->block.n_rows;
	return 0;
}

void metric_rows_done(struct metric_rows *rows)
{
	row_block_done(&rows->block);
	free(rows->timestamps);
	free(rows->values);
	*rows = (struct metric_rows){ 0 };
}
