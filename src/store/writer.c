/* SPDX-License-Identifier: MIT */
/*
 * writer.c - rows into a recording.
 *
 * One prepared statement per kind of row, in a table; each function below
 * binds its row's values in the order of the statement's parameters and runs
 * it. Strings are bound without a copy: a statement is run, reset and its
 * bindings cleared before the caller gets its strings back.
 *
 * To add a row: a name in enum statement, its SQL here, a function. Samples take another path: series_writer.c.
 */
#include <errno.h>

#include "base/rank.h"
#include "base/util.h"
#include "src/store/series_private.h"

static const char *const statement_sql[N_STATEMENTS] = {
	[PUT_RUN] = "INSERT INTO run(run, started, command, pid, mode, hz, stack_source, python, "
		    "kernel_frames,"
		    " host, kernel, cpus, probing) VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_PROCESS] = "INSERT OR REPLACE INTO process(pid, parent_pid, name, command, python, "
			"started, ended, host, rank, local_rank, world_size, job)"
			" VALUES(?,?,?,?,?,?,?,(SELECT host FROM run ORDER BY run LIMIT 1),?,?,?,?)",
	[PUT_THREAD] = "INSERT INTO thread(pid, tid, name, started, ended) VALUES(?,?,?,?,?)"
		       " ON CONFLICT DO UPDATE SET name = excluded.name, started = excluded.started,"
		       " ended = excluded.ended WHERE ?",
	[PUT_MODULE] = "INSERT INTO module(module, path, build_id) VALUES(?,?,?)",
	[PUT_FUNCTION] = "INSERT INTO function(function, name, symbol, kind, role, file, first_line, module)"
			 " VALUES(?,?,?,?,?,?,?,?)",
	[PUT_FRAME] = "INSERT INTO frame(frame, kind, function, line, column, end_line, end_column, module, "
		      "address, is_eval, without_cfi, inlined_into)"
		      " VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_STACK] = "INSERT INTO stack(stack, parent, frame, depth) VALUES(?,?,?,?)",
	[PUT_TOTAL] = "INSERT INTO stack_total(pid, tid, stack, samples, weight) VALUES(?,?,?,?,?)"
		      " ON CONFLICT(pid, tid, stack) DO UPDATE SET samples = samples + excluded.samples,"
		      " weight = weight + excluded.weight",
	[PUT_COUNTER] = "INSERT OR REPLACE INTO counter(name, value) VALUES(?,?)",
	[NAME_FRAME] = "UPDATE frame SET function = ?, line = ?, inlined_into = ? WHERE frame = ?",
	[SET_FRAME_KIND] = "UPDATE frame SET kind = ? WHERE frame = ?",
	[DROP_INLINED] = "WITH RECURSIVE chain(frame) AS ("
			 " SELECT inlined_into FROM frame WHERE frame = ? AND inlined_into IS NOT NULL"
			 " UNION SELECT inlined_into FROM frame JOIN chain USING (frame)"
			 " WHERE inlined_into IS NOT NULL)"
			 " DELETE FROM frame WHERE frame IN (SELECT frame FROM chain) AND frame >= 1 << 32",
	[REFRESH_FUNCTION] = "UPDATE function SET symbol = coalesce(?, symbol),"
			     " role = coalesce(?, role), file = coalesce(?, file) WHERE function = ?",
	[SET_RUN_PYTHON] = "UPDATE run SET python = ?",
	[END_RUN] = "UPDATE run SET ended = ?, clean = 1",
};

/* For a file of an older version: the last values have no column. */
static const char put_old_process_sql[] =
	"INSERT OR REPLACE INTO process(pid, parent_pid, name, command, python, started, ended)"
	" SELECT ?,?,?,?,?,?,? WHERE coalesce(?,?,?,?) IS NOT ''";

bool store_has_ranks(sqlite3 *db)
{
	return sqlite3_table_column_metadata(db, "main", "process", "rank", NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

int writer_prepare(struct store *store)
{
	bool has_ranks = store_has_ranks(store->db);

	for (size_t i = 0; i < N_STATEMENTS; i++) {
		const char *sql = i == PUT_PROCESS && !has_ranks ? put_old_process_sql : statement_sql[i];
		int code = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i],
					      NULL);

		if (code != SQLITE_OK)
			return store_errno(store->db, code);
	}
	return 0;
}

void writer_finalize(struct store *store)
{
	for (size_t i = 0; i < N_STATEMENTS; i++) {
		sqlite3_finalize(store->statements[i]);
		store->statements[i] = NULL;
	}
	sqlite3_finalize(TAKE(store->put_fields));
	for (size_t i = 0; i < STORE_MAX_METRIC_TABLES; i++)
		sqlite3_finalize(TAKE(store->put_metrics[i]));
	series_finalize(store);
}

/* Binds values in order and keeps the first error. */
struct binding {
	struct store *store;
	sqlite3_stmt *statement;
	int column, code;
};

static struct binding bind_to(struct store *store, enum statement which)
{
	return (struct binding){ .store = store, .statement = store->statements[which], .code = SQLITE_OK };
}

static void bind_integer(struct binding *to, int64_t value)
{
	to->column++;
	if (to->code == SQLITE_OK)
		to->code = sqlite3_bind_int64(to->statement, to->column, value);
}

/* Values of a reset statement stay NULL until bound. */
static void bind_null(struct binding *to)
{
	to->column++;
}

static void bind_id(struct binding *to, int64_t id)
{
	if (id == 0)
		bind_null(to);
	else
		bind_integer(to, id);
}

/* -1: NULL. */
static void bind_count(struct binding *to, int64_t value)
{
	if (value < 0)
		bind_null(to);
	else
		bind_integer(to, value);
}

static void bind_real(struct binding *to, double value)
{
	to->column++;
	if (to->code == SQLITE_OK)
		to->code = sqlite3_bind_double(to->statement, to->column, value);
}

static void bind_time(struct binding *to, uint64_t time_ns)
{
	if (time_ns == 0)
		bind_null(to);
	else
		bind_real(to, store_seconds(time_ns));
}

static void bind_text(struct binding *to, const char *text)
{
	to->column++;
	if (to->code == SQLITE_OK && text)
		to->code = sqlite3_bind_text(to->statement, to->column, text, -1, SQLITE_STATIC);
}

int writer_run(struct store *store, sqlite3_stmt *statement, int code)
{
	int r;

	if (store->batch_error < 0)
		return store->batch_error;
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	r = store_errno(store->db, code);
	sqlite3_reset(statement);
	if (statement) /* NULL: preparing failed, with code */
		sqlite3_clear_bindings(statement);
	if (r < 0 && store->in_batch && sqlite3_get_autocommit(store->db))
		store->batch_error = r;
	return r;
}

static int run(const struct binding *bound)
{
	return writer_run(bound->store, bound->statement, bound->code);
}

int store_put_run(struct store *store, const struct run_row *row)
{
	struct binding to = bind_to(store, PUT_RUN);

	bind_time(&to, row->started_ns);
	bind_text(&to, row->command);
	bind_integer(&to, row->pid);
	bind_text(&to, row->mode);
	bind_real(&to, row->hz);
	bind_text(&to, row->stack_source);
	bind_text(&to, row->python);
	bind_integer(&to, row->kernel_frames);
	bind_text(&to, row->host);
	bind_text(&to, row->kernel);
	bind_integer(&to, row->cpus);
	bind_text(&to, row->probing);
	return run(&to);
}

int store_put_process(struct store *store, const struct process_row *row)
{
	struct binding to = bind_to(store, PUT_PROCESS);

	bind_integer(&to, row->pid);
	bind_id(&to, row->parent_pid);
	bind_text(&to, row->name);
	bind_text(&to, row->command);
	bind_text(&to, row->python);
	bind_time(&to, row->started_ns);
	bind_time(&to, row->ended_ns);
	bind_count(&to, row->rank ? row->rank->rank : -1);
	bind_count(&to, row->rank ? row->rank->local_rank : -1);
	bind_count(&to, row->rank ? row->rank->world_size : -1);
	bind_text(&to, row->rank && row->rank->job[0] ? row->rank->job : NULL);
	return run(&to);
}

int store_put_thread(struct store *store, const struct thread_row *row)
{
	struct binding to = bind_to(store, PUT_THREAD);

	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	bind_text(&to, row->name);
	bind_time(&to, row->started_ns);
	bind_time(&to, row->ended_ns);
	bind_integer(&to, !row->is_fallback);
	return run(&to);
}

int store_put_module(struct store *store, const struct module_row *row)
{
	struct binding to = bind_to(store, PUT_MODULE);

	bind_id(&to, row->module);
	bind_text(&to, row->path);
	bind_text(&to, row->build_id);
	return run(&to);
}

int store_put_function(struct store *store, const struct function_row *row)
{
	struct binding to = bind_to(store, PUT_FUNCTION);

	bind_id(&to, row->function);
	bind_text(&to, row->name);
	bind_text(&to, row->symbol);
	bind_text(&to, frame_kind_name(row->kind));
	bind_text(&to, row->role);
	bind_text(&to, row->file);
	bind_id(&to, row->first_line);
	bind_id(&to, row->module);
	return run(&to);
}

int store_put_frame(struct store *store, const struct frame_row *row)
{
	struct binding to = bind_to(store, PUT_FRAME);

	bind_id(&to, row->frame);
	bind_text(&to, frame_kind_name(row->kind));
	bind_id(&to, row->function);
	bind_id(&to, row->line);
	bind_id(&to, row->column);
	bind_id(&to, row->end_line);
	bind_id(&to, row->end_column);
	bind_id(&to, row->module);
	if (row->has_address)
		bind_integer(&to, (int64_t)row->address);
	else
		bind_null(&to);
	bind_integer(&to, row->is_eval);
	bind_integer(&to, row->without_cfi);
	bind_id(&to, row->inlined_into);
	return run(&to);
}

int store_put_stack(struct store *store, const struct stack_row *row)
{
	struct binding to = bind_to(store, PUT_STACK);

	bind_id(&to, row->stack);
	bind_id(&to, row->parent);
	bind_id(&to, row->frame);
	bind_integer(&to, row->depth);
	return run(&to);
}

int store_put_total(struct store *store, const struct total_row *row)
{
	struct binding to = bind_to(store, PUT_TOTAL);

	bind_integer(&to, row->pid);
	bind_integer(&to, row->tid);
	bind_integer(&to, row->stack);
	bind_integer(&to, (int64_t)row->samples);
	bind_integer(&to, (int64_t)row->weight);
	return run(&to);
}

/* Older files lack this table, and it is written only once, so prepare the statement here. */
int store_put_evaluation_place(struct store *store, const struct evaluation_place_row *row)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO anchor_location(module, address, holds, is_leaf, below_cfa, register, agreed,"
		" tries) VALUES(?,?,?,?,?,?,?,?)";
	struct binding to = { .store = store };
	int r;

	to.code = sqlite3_prepare_v2(store->db, sql, -1, &to.statement, NULL);
	bind_integer(&to, row->module);
	bind_integer(&to, row->address);
	bind_text(&to, row->holds);
	bind_integer(&to, row->is_leaf);
	bind_id(&to, row->below_cfa);
	if (row->below_cfa == 0)
		bind_integer(&to, row->reg);
	else
		bind_null(&to);
	bind_integer(&to, row->agreed);
	bind_integer(&to, row->tries);
	r = run(&to);
	sqlite3_finalize(to.statement);
	return r;
}

int store_put_counter(struct store *store, const char *name, int64_t value)
{
	struct binding to = bind_to(store, PUT_COUNTER);

	bind_text(&to, name);
	bind_integer(&to, value);
	return run(&to);
}

int store_name_frame(struct store *store, int64_t frame, int64_t function, int line, int64_t inlined_into)
{
	struct binding to = bind_to(store, NAME_FRAME);

	bind_id(&to, function);
	bind_id(&to, line);
	bind_id(&to, inlined_into);
	bind_integer(&to, frame);
	return run(&to);
}

int store_set_frame_kind(struct store *store, int64_t frame, enum frame_kind kind)
{
	struct binding to = bind_to(store, SET_FRAME_KIND);

	bind_text(&to, frame_kind_name(kind));
	bind_integer(&to, frame);
	return run(&to);
}

int store_drop_inlined(struct store *store, int64_t frame)
{
	struct binding to = bind_to(store, DROP_INLINED);

	bind_integer(&to, frame);
	return run(&to);
}

int store_refresh_function(struct store *store, int64_t function, const struct function_row *row)
{
	struct binding to = bind_to(store, REFRESH_FUNCTION);

	bind_text(&to, row->symbol);
	bind_text(&to, row->role);
	bind_text(&to, row->file);
	bind_integer(&to, function);
	return run(&to);
}

int store_set_run_python(struct store *store, const char *python)
{
	struct binding to = bind_to(store, SET_RUN_PYTHON);

	bind_text(&to, python);
	return run(&to);
}

int writer_end_run(struct store *store, uint64_t ended_ns)
{
	struct binding to = bind_to(store, END_RUN);

	bind_time(&to, ended_ns);
	return run(&to);
}
