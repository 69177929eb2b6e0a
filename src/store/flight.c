/* SPDX-License-Identifier: MIT */
/* flight.c - see flight.h. Values are bound one after the other, in the order of the statement's columns. */
#include "src/store/flight.h"

#include <errno.h>
#include <math.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/store_private.h"

static const char operation_sql[] =
	"INSERT INTO comm_flight(dump, rank, record, op, backend, src_rank, dst_rank, bytes, \"group\", seq, is_message,"
	" state, is_ended, created, started, completed, latency_ms, timeout_ms, shapes, dtypes, file, line, func)"
	" VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
static const char group_sql[] =
	"INSERT INTO comm_flight_group(dump, rank, \"group\", description, ranks, last_enqueued, last_started,"
	" last_completed) VALUES(?,?,?,?,?,?,?,?)";

struct flight_writer {
	struct store *store;
	sqlite3_stmt *operation, *group;
};

struct binding {
	sqlite3_stmt *statement;
	int column, code;
};

static void bind_integer(struct binding *to, int64_t value)
{
	to->column++;
	if (to->code == SQLITE_OK && value != FLIGHT_UNKNOWN)
		to->code = sqlite3_bind_int64(to->statement, to->column, value);
}

static void bind_text(struct binding *to, const char *text)
{
	to->column++;
	if (to->code == SQLITE_OK && text)
		to->code = sqlite3_bind_text(to->statement, to->column, text, -1, SQLITE_STATIC);
}

static void bind_real(struct binding *to, double value, bool is_known)
{
	to->column++;
	if (to->code == SQLITE_OK && is_known)
		to->code = sqlite3_bind_double(to->statement, to->column, value);
}

static void bind_time(struct binding *to, uint64_t time_ns)
{
	bind_real(to, store_seconds(time_ns), time_ns > 0);
}

int flight_put(struct flight_writer *writer, const struct flight_row *row)
{
	struct binding to = { .statement = writer->operation, .code = SQLITE_OK };

	bind_text(&to, row->dump);
	bind_integer(&to, row->rank);
	bind_integer(&to, row->record);
	bind_text(&to, row->op);
	bind_text(&to, row->backend);
	bind_integer(&to, row->src_rank);
	bind_integer(&to, row->dst_rank);
	bind_integer(&to, row->bytes);
	bind_text(&to, row->group);
	bind_integer(&to, row->seq);
	bind_integer(&to, row->is_message);
	bind_text(&to, row->state);
	bind_integer(&to, row->is_ended);
	bind_real(&to, store_seconds(row->created_ns), true);
	bind_time(&to, row->started_ns);
	bind_time(&to, row->completed_ns);
	bind_real(&to, row->latency_ms, !isnan(row->latency_ms));
	bind_integer(&to, row->timeout_ms);
	bind_text(&to, row->shapes);
	bind_text(&to, row->dtypes);
	bind_text(&to, row->file);
	bind_integer(&to, row->line);
	bind_text(&to, row->func);
	return writer_run(writer->store, to.statement, to.code);
}

int flight_put_group(struct flight_writer *writer, const struct flight_group_row *row)
{
	struct binding to = { .statement = writer->group, .code = SQLITE_OK };

	bind_text(&to, row->dump);
	bind_integer(&to, row->rank);
	bind_text(&to, row->group);
	bind_text(&to, row->description);
	bind_text(&to, row->ranks);
	bind_integer(&to, row->last_enqueued);
	bind_integer(&to, row->last_started);
	bind_integer(&to, row->last_completed);
	return writer_run(writer->store, to.statement, to.code);
}

/* The report asks group by group, of which a job of 512 ranks may have hundreds, and for the newest dump of a rank. */
static const char index_sql[] = "CREATE INDEX IF NOT EXISTS comm_flight_by_group ON comm_flight(\"group\", rank, seq);"
				"CREATE INDEX IF NOT EXISTS comm_flight_by_rank ON comm_flight(rank, created)";

int flight_make_tables(struct store *store)
{
	int code = catalogue_add_optional(store->db, "comm_");

	if (code == SQLITE_OK)
		code = sqlite3_exec(store->db, index_sql, NULL, NULL, NULL);
	return store_errno(store->db, code);
}

DEFINE_CLEANUP(struct flight_writer *, flight_writer_free)

int flight_writer_new(struct store *store, struct flight_writer **ret)
{
	CLEANUP(flight_writer_freep) struct flight_writer *writer = calloc(1, sizeof *writer);
	int r;

	if (!writer)
		return -ENOMEM;
	writer->store = store;
	r = flight_make_tables(store);
	if (r >= 0)
		r = store_errno(store->db, sqlite3_prepare_v2(store->db, operation_sql, -1, &writer->operation, NULL));
	if (r >= 0)
		r = store_errno(store->db, sqlite3_prepare_v2(store->db, group_sql, -1, &writer->group, NULL));
	if (r < 0)
		return r;
	*ret = TAKE(writer);
	return 0;
}

void flight_writer_free(struct flight_writer *writer)
{
	if (!writer)
		return;
	sqlite3_finalize(writer->operation);
	sqlite3_finalize(writer->group);
	free(writer);
}
