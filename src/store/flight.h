/* SPDX-License-Identifier: MIT */
/* flight.h - rows of dumps of PyTorch's Flight Recorder: tables comm_flight*, only in files with such rows. */
#ifndef PROBING_STORE_FLIGHT_H
#define PROBING_STORE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Strings are borrowed for the call, NULL becomes SQL NULL; so does FLIGHT_UNKNOWN in numbers, and 0 in times. */
#define FLIGHT_UNKNOWN INT64_MIN

struct flight_row {
	const char *dump;
	int64_t rank, record;
	const char *op, *backend;
	int64_t src_rank, dst_rank, bytes;
	const char *group;
	int64_t seq;
	bool is_message, is_ended;
	const char *state;
	uint64_t created_ns, started_ns, completed_ns; /* CLOCK_REALTIME */
	double latency_ms;                             /* NAN: unknown */
	int64_t timeout_ms;
	const char *shapes, *dtypes, *file, *func;
	int64_t line;
};

struct flight_group_row {
	const char *dump;
	int64_t rank;
	const char *group, *description, *ranks;
	int64_t last_enqueued, last_started, last_completed;
};

/* flight_make_tables - where they are not, with their indexes. In a transaction. */
int flight_make_tables(struct store *store);

struct flight_writer;

/*
 * flight_writer_new - create missing tables. In a transaction.
 * @store: borrowed. @ret: ended with flight_writer_free(), before the store is closed.
 * Errors: those of putting rows.
 */
int flight_writer_new(struct store *store, struct flight_writer **ret);
void flight_writer_free(struct flight_writer *writer);

/* Errors as of store_put_*(). */
int flight_put(struct flight_writer *writer, const struct flight_row *row);
int flight_put_group(struct flight_writer *writer, const struct flight_group_row *row);

#endif
