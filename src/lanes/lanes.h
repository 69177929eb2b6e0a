/* SPDX-License-Identifier: MIT */
/* lanes.h - a recording as lanes over time, folded to the columns of a picture.
 *
 * A column is 2^k ns wide and begins at a multiple of that since 1970. So neighbouring answers agree about it, and a
 * viewer can move and scale its columns. Each column of a thread has the path that took most of its time: from the
 * outermost call inwards, the callee with the largest share. Equal paths of adjacent columns are one slice. From a
 * level on, where a column has many samples, columns are made once for all widths; below it, from the samples in the
 * range. So an answer costs by its columns, and not by the samples of the recording.
 */
#ifndef PROBING_LANES_LANES_H
#define PROBING_LANES_LANES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	LANES_MIN_PIXELS = 16,
	LANES_MAX_PIXELS = 8192,
	LANES_DEFAULT_PIXELS = 1200,
	LANES_MAX_DEPTH = 256,
	LANES_DEFAULT_DEPTH = 32,
	LANES_MAX_CHOSEN = 64, /* threads with stacks */
	LANES_DEFAULT_CHOSEN = 16,
	LANES_MAX_THREADS = 256, /* in an answer */
	LANES_QUERY_BYTES = 1024,
	LANES_SENTENCE_BYTES = 128
};

/* What is asked for. */
struct lanes_query {
	bool has_since, has_until;
	int64_t since_ns, until_ns; /* since the recording's start; may be negative */
	unsigned pixels, depth;
	bool has_threads; /* otherwise those with the most samples have stacks */
	int32_t threads[LANES_MAX_CHOSEN];
	size_t n_threads;
};

/*
 * lanes_query_parse - "since=1.5&until=2&pixels=1200&depth=32&threads=4242,4243"; each part may be missing. Times are seconds.
 * @ret:      set on success only.
 * @sentence: LANES_SENTENCE_BYTES; what is wrong.
 * Errors: -EINVAL.
 */
int lanes_query_parse(const char *text, struct lanes_query *ret, char *sentence);

struct lanes;

/*
 * lanes_open - read a recording.
 * @db: of store_open_reader(), with the tables of programs attached; borrowed until lanes_close().
 * @ret: ended with lanes_close().
 * Errors: -EFBIG more samples than LANES_MAX_SAMPLES; those of profile_load().
 */
#define LANES_MAX_SAMPLES (INT64_C(1) << 26)
int lanes_open(sqlite3 *db, struct lanes **ret);
void lanes_close(struct lanes *lanes);
void lanes_closep(struct lanes **lanes);

/*
 * lanes_is_stale - whether a recording that goes on has more by now, and is worth reading: at most once in eight times of what that
 * took, and in half a second.
 */
bool lanes_is_stale(const struct lanes *lanes);

/*
 * lanes_refresh - read what was written since.
 * @db: another connection, from now on in place of the first one: tables of programs are attached once for a connection.
 * Errors: those of lanes_open().
 */
int lanes_refresh(struct lanes *lanes, sqlite3 *db);

/*
 * lanes_write - answer as one line of JSON; docs/serve.md describes it.
 * Errors: -ENOMEM; -EIO with ferror(out).
 */
int lanes_write(struct lanes *lanes, const struct lanes_query *query, FILE *out);

#endif
