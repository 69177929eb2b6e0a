/* SPDX-License-Identifier: MIT */
/* metric_block.h - rows of a table of metrics, as bytes: metric_block.data. Private.
 *
 * A block is one of row_block.h. The time of a row there is the bits of its timestamp, a positive double: they are in
 * the order of the numbers. The values of a row are
 *   - a distance: so many rows earlier is the row of the same process, cgroup or device; 0: there is none
 *   - a value for each column but the timestamp. If there is an earlier row, a number is the difference from an integer
 *     of that row (modulo 2^64). 0 means "the same" as a real or a text of that row. All other values are as they are.
 * Most counters grow by a little or by nothing, and most texts stay, so that Zstandard leaves a few bytes of a row.
 */
#ifndef PROBING_STORE_METRIC_BLOCK_H
#define PROBING_STORE_METRIC_BLOCK_H

#include "src/store/row_block.h"

enum {
	METRIC_BLOCK_ROWS = 2048,        /* that a recorder puts into one */
	METRIC_BLOCK_MAX_ROWS = 1 << 14, /* that a reader takes */
	METRIC_BLOCK_MAX_COLUMNS = 64,   /* without the timestamp */
};

/* Zeroed but for its first two members it is empty. Ended with metric_encoder_done(). */
struct metric_encoder {
	size_t n_columns; /* without the timestamp */
	uint64_t keys;    /* bit i: column i says what a row is about */
	/* Private. */
	struct row_bytes rows;
	struct row_value *values; /* of all rows */
	char **texts;             /* that these have */
	size_t values_room, n_texts, texts_room;
	size_t distance; /* of the last row */
	double first, last;
};

/*
 * metric_encoder_put - add a row. @timestamp: positive and finite. @values: of each column but the timestamp; texts are copied.
 * Errors: -ENOMEM; -E2BIG it has METRIC_BLOCK_ROWS.
 */
int metric_encoder_put(struct metric_encoder *encoder, double timestamp, const struct row_value *values);
/* metric_encoder_pack - its rows as a block; the encoder is empty again. @ret: freed by the caller. -ENOMEM; -EINVAL: no rows. */
int metric_encoder_pack(struct metric_encoder *encoder, uint8_t **ret, size_t *ret_bytes);
void metric_encoder_done(struct metric_encoder *encoder);

/* A block that is read. Zeroed it is empty; its memory is used again for the next one. */
struct metric_rows {
	struct row_block block;
	size_t n_rows, n_columns; /* without the timestamp */
	double *timestamps;
	struct row_value *values; /* n_columns of each row; texts borrow from the block */
	size_t timestamps_room, values_room;
};

/* metric_rows_open - replaces the block before. Errors: -EBADMSG damaged; -EPROTONOSUPPORT a newer version; -ENOMEM. */
int metric_rows_open(struct metric_rows *rows, const void *bytes, size_t n_bytes);
void metric_rows_done(struct metric_rows *rows);

#endif
