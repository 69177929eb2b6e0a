/* SPDX-License-Identifier: MIT */
/*
 * gpu.c - rows of GPU tables.
 *
 * The tables are created with the first trace, so their statements live no longer than the current
 * trace. Values are bound one after the other, in the order of the statement's columns.
 */
#include "src/store/gpu.h"

#include <errno.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/store_private.h"

enum table { PUT_KERNEL, PUT_MEMCPY, PUT_CALL, PUT_RANGE, PUT_IDLE, PUT_OP, PUT_MEMORY, PUT_STEP, N_TABLES };

static const char *const sql_of[N_TABLES] = {
	[PUT_KERNEL] =
		"INSERT INTO gpu_kernel(trace, name, calls, duration_ns, min_ns, max_ns, start_ns, grid_x, grid_y, grid_z,"
		" block_x, block_y, block_z, registers, static_shared_bytes, dynamic_shared_bytes, device, context, stream,"
		" correlation) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_MEMCPY] =
		"INSERT INTO gpu_memcpy(trace, name, calls, duration_ns, min_ns, max_ns, start_ns, kind, bytes, source,"
		" destination, device, context, stream, correlation) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_CALL] =
		"INSERT INTO gpu_api_call(trace, name, calls, duration_ns, min_ns, max_ns, start_ns, pid, tid, result,"
		" correlation) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_RANGE] =
		"INSERT INTO gpu_range(trace, name, calls, duration_ns, min_ns, max_ns, start_ns, pid, tid, domain)"
		" VALUES(?,?,?,?,?,?,?,?,?,?)",
	[PUT_IDLE] =
		"INSERT INTO gpu_idle(trace, device, start_ns, gap_ns, duration_ns, function, python, launched, next, pid, tid)"
		" VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_OP] =
		"INSERT INTO torch_op(trace, name, kind, start_ns, duration_ns, self_ns, gpu_ns, step, python, shapes, sequence,"
		" pid, tid) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_MEMORY] =
		"INSERT INTO torch_memory(trace, time_ns, bytes, allocated_bytes, reserved_bytes, address, device, op, pid, tid)"
		" VALUES(?,?,?,?,?,?,?,?,?,?)",
	[PUT_STEP] = "INSERT INTO torch_step(trace, number, start_ns, duration_ns, gpu_busy_ns, pid, tid)"
		     " VALUES(?,?,?,?,?,?,?)",
};

struct gpu_writer {
	struct store *store;
	int64_t trace;
	sqlite3_stmt *statements[N_TABLES];
};

struct binding {
	sqlite3_stmt *statement;
	int column, code;
};

static void bind_integer(struct binding *to, int64_t value)
{
	to->column++;
	if (to->code == SQLITE_OK && value != GPU_UNKNOWN)
		to->code = sqlite3_bind_int64(to->statement, to->column, value);
}

static void bind_text(struct binding *to, const char *text)
{
	to->column++;
	if (to->code == SQLITE_OK && text)
		to->code = sqlite3_bind_text(to->statement, to->column, text, -1, SQLITE_STATIC);
}

static void bind_time(struct binding *to, uint64_t time_ns)
{
	to->column++;
	if (to->code == SQLITE_OK && time_ns > 0)
		to->code = sqlite3_bind_double(to->statement, to->column, (double)time_ns / 1e9);
}

static struct binding bind_span(struct gpu_writer *writer, enum table table, const struct gpu_span *span)
{
	struct binding to = { .statement = writer->statements[table], .code = SQLITE_OK };

	bind_integer(&to, writer->trace);
	bind_text(&to, span->name);
	bind_integer(&to, span->calls);
	bind_integer(&to, span->duration_ns);
	bind_integer(&to, span->min_ns);
	bind_integer(&to, span->max_ns);
	bind_integer(&to, span->start_ns);
	return to;
}

static void bind_place(struct binding *to, const struct gpu_place *place)
{
	bind_text(to, place->device);
	bind_integer(to, place->context);
	bind_integer(to, place->stream);
	bind_integer(to, place->correlation);
}

int gpu_put_kernel(struct gpu_writer *writer, const struct gpu_kernel_row *row)
{
	struct binding to = bind_span(writer, PUT_KERNEL, &row->span);

	for (int i = 0; i < 3; i++)
		bind_integer(&to, row->grid[i]);
	for (int i = 0; i < 3; i++)
		bind_integer(&to, row->block[i]);
	bind_integer(&to, row->registers);
	bind_integer(&to, row->static_shared_bytes);
	bind_integer(&to, row->dynamic_shared_bytes);
	bind_place(&to, &row->place);
	return writer_run(writer->store, to.statement, to.code);
}

int gpu_put_memcpy(struct gpu_writer *writer, const struct gpu_memcpy_row *row)
{
	struct binding to = bind_span(writer, PUT_MEMCPY, &row->span);

	bind_text(&to, row->kind);
	bind_integer(&to, row->bytes);
	bind_text(&to, row->source);
	bind_text(&to, row->destination);
	bind_place(&to, &row->place);
	return writer_run(writer->store, to.statement, to.code);
}

int gpu_put_call(struct gpu_writer *writer, const struct gpu_call_row *row)
{
	struct binding to = bind_span(writer, PUT_CALL, &row->span);

	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	bind_integer(&to, row->result);
	bind_integer(&to, row->correlation);
	return writer_run(writer->store, to.statement, to.code);
}

int gpu_put_range(struct gpu_writer *writer, const struct gpu_range_row *row)
{
	struct binding to = bind_span(writer, PUT_RANGE, &row->span);

	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	bind_text(&to, row->domain);
	return writer_run(writer->store, to.statement, to.code);
}

static struct binding bind_trace(struct gpu_writer *writer, enum table table)
{
	struct binding to = { .statement = writer->statements[table], .code = SQLITE_OK };

	bind_integer(&to, writer->trace);
	return to;
}

int gpu_put_idle(struct gpu_writer *writer, const struct gpu_idle_row *row)
{
	struct binding to = bind_trace(writer, PUT_IDLE);

	bind_text(&to, row->device);
	bind_integer(&to, row->start_ns);
	bind_integer(&to, row->gap_ns);
	bind_integer(&to, row->duration_ns);
	bind_text(&to, row->function);
	bind_text(&to, row->python);
	bind_integer(&to, row->launched);
	bind_text(&to, row->next);
	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	return writer_run(writer->store, to.statement, to.code);
}

int gpu_put_op(struct gpu_writer *writer, const struct torch_op_row *row)
{
	struct binding to = bind_trace(writer, PUT_OP);

	bind_text(&to, row->name);
	bind_text(&to, row->kind);
	bind_integer(&to, row->start_ns);
	bind_integer(&to, row->duration_ns);
	bind_integer(&to, row->self_ns);
	bind_integer(&to, row->gpu_ns);
	bind_integer(&to, row->step);
	bind_text(&to, row->python);
	bind_text(&to, row->shapes);
	bind_integer(&to, row->sequence);
	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	return writer_run(writer->store, to.statement, to.code);
}

int gpu_put_memory(struct gpu_writer *writer, const struct torch_memory_row *row)
{
	struct binding to = bind_trace(writer, PUT_MEMORY);

	bind_integer(&to, row->time_ns);
	bind_integer(&to, row->bytes);
	bind_integer(&to, row->allocated_bytes);
	bind_integer(&to, row->reserved_bytes);
	bind_integer(&to, row->address);
	bind_text(&to, row->device);
	bind_text(&to, row->op);
	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	return writer_run(writer->store, to.statement, to.code);
}

int gpu_put_step(struct gpu_writer *writer, const struct torch_step_row *row)
{
	struct binding to = bind_trace(writer, PUT_STEP);

	bind_integer(&to, row->number);
	bind_integer(&to, row->start_ns);
	bind_integer(&to, row->duration_ns);
	bind_integer(&to, row->gpu_busy_ns);
	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	return writer_run(writer->store, to.statement, to.code);
}

static int put_trace(struct gpu_writer *writer, const struct gpu_trace_row *trace)
{
	static const char sql[] = "INSERT INTO gpu_trace(format, file, command, pid, started) VALUES(?,?,?,?,?)";
	struct binding to = { .code = SQLITE_OK };
	int r;

	to.code = sqlite3_prepare_v2(writer->store->db, sql, -1, &to.statement, NULL);
	bind_text(&to, trace->format);
	bind_text(&to, trace->file);
	bind_text(&to, trace->command);
	bind_integer(&to, trace->pid);
	bind_time(&to, trace->started_ns);
	r = writer_run(writer->store, to.statement, to.code);
	sqlite3_finalize(to.statement);
	writer->trace = sqlite3_last_insert_rowid(writer->store->db);
	return r;
}

int gpu_make_tables(struct store *store)
{
	static const char *const tables[] = { "gpu_trace", "gpu_kernel", "gpu_memcpy", "gpu_api_call",
					      "gpu_range", "gpu_idle",   "torch_" };
	int code = SQLITE_OK;

	for (size_t i = 0; i < N_ELEMENTS(tables) && code == SQLITE_OK; i++)
		code = catalogue_add_optional(store->db, tables[i]);
	return store_errno(store->db, code);
}

DEFINE_CLEANUP(struct gpu_writer *, gpu_writer_free)

int gpu_writer_new(struct store *store, const struct gpu_trace_row *trace, struct gpu_writer **ret)
{
	CLEANUP(gpu_writer_freep) struct gpu_writer *writer = calloc(1, sizeof *writer);
	int r;

	if (!writer)
		return -ENOMEM;
	writer->store = store;
	r = gpu_make_tables(store);
	if (r >= 0)
		r = put_trace(writer, trace);
	for (size_t i = 0; i < N_TABLES && r >= 0; i++)
		r = store_errno(store->db, sqlite3_prepare_v2(store->db, sql_of[i], -1, &writer->statements[i], NULL));
	if (r < 0)
		return r;
	*ret = TAKE(writer);
	return 0;
}

void gpu_writer_free(struct gpu_writer *writer)
{
	if (!writer)
		return;
	for (size_t i = 0; i < N_TABLES; i++)
		sqlite3_finalize(writer->statements[i]);
	free(writer);
}
