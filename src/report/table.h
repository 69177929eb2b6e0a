/* SPDX-License-Identifier: MIT */
/* table.h - rows of times and names that fit a terminal. Private to reports. */
#ifndef PROBING_REPORT_TABLE_H
#define PROBING_REPORT_TABLE_H

#include "src/report/report.h"
#include "src/report/sums.h"

enum { TABLE_TIMES = 2, TABLE_COUNTS = 2, REPORT_ROWS = 20 };

struct table_row {
	const char *name;
	char *place;                /* NULL: unknown; owned */
	const char *kind;           /* "" for none */
	int style;                  /* of the kind; see table_kind() */
	unsigned indent;            /* of the name, in columns */
	double shares[TABLE_TIMES]; /* percent */
	uint64_t values[TABLE_TIMES];
	uint64_t counts[TABLE_COUNTS];
};

struct table {
	const struct report_options *options;
	const struct whole *whole;
	struct {
		const char *head; /* NULL: it is not there */
		bool has_time;    /* shows values beside shares, if there is room */
	} times[TABLE_TIMES];
	const char *count_heads[TABLE_COUNTS]; /* NULL: it is not there */
	const char *name_head;                 /* of the column of names */
	const char *place_head;                /* of the last column; NULL: "where" */
	bool has_kind;
	struct table_row *rows;
	size_t n_rows;
	size_t n_more; /* rows left out */
};

/* Set the kind of @row: the frame's as a word, "" for NULL. @ignore_role: builtins are native, too. */
void table_kind(const struct profile_frame *frame, bool ignore_role, struct table_row *row);

/*
 * table_place - "file:line", or the module, as the recording's labels call them. @ret: owned by the caller; NULL where
 * neither is known. -ENOMEM.
 */
int table_place(const struct profile_frame *frame, char **ret);

/* The number of samples and the GIL's share, a line each, and an empty one. */
void table_put_whole(const struct report_options *options, const struct whole *whole, FILE *out);
void table_put(const struct table *table, FILE *out);
void table_done(struct table *table);

/* A value in the unit of the whole, in at most 7 columns. @to: at least 24 bytes. */
void table_format(const struct whole *whole, uint64_t value, char *to, size_t n_bytes);

#endif
