/* SPDX-License-Identifier: MIT */
/*
 * import_nsys.c - the SQLite export of Nsight Systems: kernels, copies, calls of CUDA, ranges of NVTX.
 *
 * Tables exist only if they have rows, and columns differ between versions, so each query
 * is made for the file's columns; missing ones are NULL. Times are nanoseconds since the start of the session. A
 * "global" id has the process in bits 24 to 47 and the thread in bits 0 to 23.
 * Source: "Nsight Systems User Guide", SQLite Schema Reference (nsys export --type sqlite).
 *
 * The file is foreign: it is read from memory, as a database with an untrusted schema, and each row costs a
 * bounded number of steps.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "src/import/sink.h"

enum {
	WAL_AT = 18,
	HEADER_BYTES = 100,
	MAX_STEPS = 1 << 20,
	STEPS_PER_BYTE = 64,
	MAX_TEXT_BYTES = 1 << 20, /* of a name; a kernel's may have a few thousand bytes */
};

/* A table and the queried columns; missing columns become NULL. */
struct kind {
	const char *table;
	const char *columns[17]; /* a column, or an expression after '=' that is used if its tables exist */
	int (*put)(struct sink *sink, sqlite3_stmt *row);
};

enum { START, END, NAME, SHORT_NAME, CORRELATION, DEVICE, CONTEXT, STREAM, FIRST_OWN };

static int64_t number_in(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_NULL ? GPU_UNKNOWN : sqlite3_column_int64(row, column);
}

static const char *text_in(sqlite3_stmt *row, int column)
{
	return (const char *)sqlite3_column_text(row, column);
}

/* false: no end, or an end before the start. */
static bool read_span(sqlite3_stmt *row, const char *name, struct gpu_span *ret)
{
	int64_t start = number_in(row, START), end = number_in(row, END), duration;

	if (start == GPU_UNKNOWN || end == GPU_UNKNOWN || __builtin_sub_overflow(end, start, &duration) || duration < 0)
		return false;
	*ret = (struct gpu_span){ .name = name,
				  .calls = 1,
				  .duration_ns = duration,
				  .min_ns = duration,
				  .max_ns = duration,
				  .start_ns = start };
	return true;
}

static struct gpu_place place_in(sqlite3_stmt *row)
{
	return (struct gpu_place){ .device = text_in(row, DEVICE),
				   .context = number_in(row, CONTEXT),
				   .stream = number_in(row, STREAM),
				   .correlation = number_in(row, CORRELATION) };
}

static int put_kernel(struct sink *sink, sqlite3_stmt *row)
{
	struct gpu_kernel_row kernel = { .place = place_in(row) };

	if (!read_span(row, text_in(row, NAME) ?: text_in(row, SHORT_NAME) ?: "[unnamed]", &kernel.span)) {
		sink_skip(sink);
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		kernel.grid[i] = number_in(row, FIRST_OWN + i);
		kernel.block[i] = number_in(row, FIRST_OWN + 3 + i);
	}
	kernel.registers = number_in(row, FIRST_OWN + 6);
	kernel.static_shared_bytes = number_in(row, FIRST_OWN + 7);
	kernel.dynamic_shared_bytes = number_in(row, FIRST_OWN + 8);
	return sink_kernel(sink, &kernel);
}

/* CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind, named as in nvprof. */
static const char *const copy_kinds[] = { "unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					  "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP" };
static const char *const memory_kinds[] = { NULL,    "Pageable", "Pinned",        "Device",
					    "Array", "Managed",  "Device static", "Managed static" };

static const char *word_of(int64_t number, const char *const *words, size_t n, const char *otherwise)
{
	return number >= 0 && (uint64_t)number < n ? words[number] : otherwise;
}

static int put_copy(struct sink *sink, sqlite3_stmt *row)
{
	struct gpu_memcpy_row copy = { .place = place_in(row), .bytes = number_in(row, FIRST_OWN) };
	char name[64];

	copy.kind = word_of(number_in(row, FIRST_OWN + 1), copy_kinds, N_ELEMENTS(copy_kinds), "unknown");
	copy.source = word_of(number_in(row, FIRST_OWN + 2), memory_kinds, N_ELEMENTS(memory_kinds), NULL);
	copy.destination = word_of(number_in(row, FIRST_OWN + 3), memory_kinds, N_ELEMENTS(memory_kinds), NULL);
	snprintf(name, sizeof name, "[CUDA memcpy %s]", copy.kind);
	if (read_span(row, name, &copy.span))
		return sink_memcpy(sink, &copy);
	sink_skip(sink);
	return 0;
}

static int put_fill(struct sink *sink, sqlite3_stmt *row)
{
	struct gpu_memcpy_row fill = { .place = place_in(row), .bytes = number_in(row, FIRST_OWN), .kind = "memset" };

	fill.source = word_of(number_in(row, FIRST_OWN + 1), memory_kinds, N_ELEMENTS(memory_kinds), NULL);
	if (read_span(row, "[CUDA memset]", &fill.span))
		return sink_memcpy(sink, &fill);
	sink_skip(sink);
	return 0;
}

static void split_id(int64_t global, int64_t *ret_pid, int64_t *ret_tid)
{
	*ret_pid = global == GPU_UNKNOWN ? GPU_UNKNOWN : global >> 24 & 0xffffff;
	*ret_tid = global == GPU_UNKNOWN ? GPU_UNKNOWN : global & 0xffffff;
}

/* "cudaLaunchKernel_v7000" is version 7.0 of cudaLaunchKernel. */
static int put_call(struct sink *sink, sqlite3_stmt *row)
{
	struct gpu_call_row call = { .correlation = number_in(row, CORRELATION),
				     .result = number_in(row, FIRST_OWN + 1) };
	const char *name = text_in(row, NAME) ?: "[unnamed]", *version = strstr(name, "_v");
	bool has_version = version && version[2] && version[2 + strspn(version + 2, "0123456789")] == '\0' &&
			   strncmp(name, "cuda", 4) == 0;
	CLEANUP(freep) char *text = strndup(name, has_version ? (size_t)(version - name) : strlen(name));

	if (!text)
		return -ENOMEM;
	split_id(number_in(row, FIRST_OWN), &call.pid, &call.tid);
	if (read_span(row, text, &call.span))
		return sink_call(sink, &call);
	sink_skip(sink);
	return 0;
}

/* Skip marks and ranges that never ended: they have no end. */
static int put_range(struct sink *sink, sqlite3_stmt *row)
{
	struct gpu_range_row range = { .domain = text_in(row, FIRST_OWN + 1) };

	split_id(number_in(row, FIRST_OWN), &range.pid, &range.tid);
	if (!read_span(row, text_in(row, NAME) ?: text_in(row, SHORT_NAME) ?: "[unnamed]", &range.span))
		return 0;
	return sink_range(sink, &range);
}

#define STRING_OF(column) "=(SELECT value FROM StringIds WHERE id = " column ")"
#define DEVICE_NAME                                                                                                    \
	"=coalesce((SELECT name || ' (' || deviceId || ')' FROM TARGET_INFO_GPU WHERE id = deviceId), 'GPU ' || deviceId)"
#define DEVICE_NUMBER "'GPU ' || deviceId" /* if no table has the names */

static const struct kind kinds[] = {
	{ "CUPTI_ACTIVITY_KIND_KERNEL",
	  { "start", "end", STRING_OF("demangledName"), STRING_OF("shortName"), "correlationId", DEVICE_NAME,
	    "contextId", "streamId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
	    "staticSharedMemory", "dynamicSharedMemory" },
	  put_kernel },
	{ "CUPTI_ACTIVITY_KIND_MEMCPY",
	  { "start", "end", NULL, NULL, "correlationId", DEVICE_NAME, "contextId", "streamId", "bytes", "copyKind",
	    "srcKind", "dstKind" },
	  put_copy },
	{ "CUPTI_ACTIVITY_KIND_MEMSET",
	  { "start", "end", NULL, NULL, "correlationId", DEVICE_NAME, "contextId", "streamId", "bytes", "memKind" },
	  put_fill },
	{ "CUPTI_ACTIVITY_KIND_RUNTIME",
	  { "start", "end", STRING_OF("nameId"), NULL, "correlationId", NULL, NULL, NULL, "globalTid", "returnValue" },
	  put_call },
	{ "CUPTI_ACTIVITY_KIND_DRIVER",
	  { "start", "end", STRING_OF("nameId"), NULL, "correlationId", NULL, NULL, NULL, "globalTid", "returnValue" },
	  put_call },
	{ "NVTX_EVENTS",
	  { "start", "end", "text", STRING_OF("textId"), NULL, NULL, NULL, NULL, "globalTid", NULL },
	  put_range },
};

/* ---- Queries ---- */

/* Whether a table has a column, or supports an expression. */
static bool can_ask(sqlite3 *db, const char *table, const char *expression)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\"", expression, table);
	bool can = sql && sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK;

	sqlite3_free(sql);
	return can;
}

static void add_column(sqlite3 *db, const struct kind *kind, const char *column, sqlite3_str *sql)
{
	char *quoted = !column            ? NULL
		       : column[0] == '=' ? sqlite3_mprintf("%s", column + 1)
					  : sqlite3_mprintf("\"%w\".\"%w\"", kind->table, column);

	if (quoted && !can_ask(db, kind->table, quoted)) {
		sqlite3_free(quoted);
		quoted = column && strcmp(column, DEVICE_NAME) == 0 && can_ask(db, kind->table, DEVICE_NUMBER)
				 ? sqlite3_mprintf("%s", DEVICE_NUMBER)
				 : NULL;
	}
	sqlite3_str_appendf(sql, ", %s", quoted ? quoted : "NULL");
	sqlite3_free(quoted);
}

static char *query_of(sqlite3 *db, const struct kind *kind)
{
	sqlite3_str *sql = sqlite3_str_new(db);

	sqlite3_str_appendf(sql, "SELECT start, end");
	for (size_t i = NAME; i < N_ELEMENTS(kind->columns); i++)
		add_column(db, kind, kind->columns[i], sql);
	sqlite3_str_appendf(sql, ", rowid FROM \"%w\" NOT INDEXED", kind->table);
	return sqlite3_str_finish(sql);
}

static int damaged(struct sink *sink, sqlite3 *db)
{
	return sink_explain(sink, -EBADMSG, "it cannot be read: %.150s", sqlite3_errmsg(db));
}

/*
 * Row numbers must increase. In a malicious file, branches may share pages, so that few pages yield as many rows as
 * there are numbers.
 */
static bool is_next(sqlite3_stmt *row, int64_t *last)
{
	int64_t number = sqlite3_column_int64(row, sqlite3_column_count(row) - 1);
	bool is_later = number > *last;

	*last = number;
	return is_later;
}

static int64_t read_number(sqlite3 *db, const char *sql)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
		return GPU_UNKNOWN;
	return number_in(row, 0);
}

/* The last row number, 0 if there is none: counting the rows of a malicious file may take for ever. */
static uint64_t last_row(sqlite3 *db, const struct kind *kind)
{
	char *sql = sqlite3_mprintf("SELECT max(rowid) FROM \"%w\"", kind->table);
	int64_t last = sql ? read_number(db, sql) : 0;

	sqlite3_free(sql);
	return (uint64_t)MAX(last, 0);
}

/* How much of the tables has been read, by row numbers. */
struct reach {
	uint64_t n_before, n_kind, n_all;
};

static int read_kind(struct sink *sink, sqlite3 *db, const struct kind *kind, const struct reach *reach)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int64_t last = INT64_MIN;
	char *sql;
	int code, r = 0;

	if (!can_ask(db, kind->table, "start, end, rowid"))
		return 0;
	sql = query_of(db, kind);
	code = sql ? sqlite3_prepare_v2(db, sql, -1, &rows, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	if (code != SQLITE_OK)
		return code == SQLITE_NOMEM ? -ENOMEM : damaged(sink, db);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = is_next(rows, &last) ? kind->put(sink, rows)
					 : sink_explain(sink, -EBADMSG, "rows of %s come twice", kind->table);
		if (r >= 0)
			r = sink_read(sink, reach->n_before + MIN((uint64_t)MAX(last, 0), reach->n_kind), reach->n_all);
	}
	if (r >= 0 && code != SQLITE_DONE)
		return code == SQLITE_NOMEM ? -ENOMEM : damaged(sink, db);
	return r;
}

static int read_kinds(struct sink *sink, sqlite3 *db)
{
	struct reach reach = { 0 };
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
		reach.n_all += last_row(db, &kinds[i]);
	for (size_t i = 0; i < N_ELEMENTS(kinds) && r >= 0; i++) {
		reach.n_kind = last_row(db, &kinds[i]);
		r = read_kind(sink, db, &kinds[i], &reach);
		reach.n_before += reach.n_kind;
	}
	return r;
}

/* ---- Trace ---- */

static void read_text(sqlite3 *db, const char *sql, char *to, size_t n_bytes)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW &&
	    text_in(row, 0))
		snprintf(to, n_bytes, "%s", text_in(row, 0));
}

static int read_trace(struct sink *sink, sqlite3 *db, const struct import_input *input)
{
	static const char process_sql[] = "SELECT globalTid >> 24 & 0xffffff FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1";
	struct sink_run *run = sink_run(sink);
	const char *slash = strrchr(input->name, '/');
	struct gpu_trace_row trace = { .format = "nsys", .file = slash ? slash + 1 : input->name };
	int64_t started = read_number(db, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1");

	trace.started_ns = started > 0 ? (uint64_t)started : 0;
	trace.pid = read_number(db, process_sql);
	read_text(db, "SELECT value FROM META_DATA_CAPTURE WHERE name IN ('COMMAND_LINE', 'TARGET_COMMAND') LIMIT 1",
		  run->command, sizeof run->command);
	read_text(db, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname' LIMIT 1", run->host,
		  sizeof run->host);
	trace.command = run->command[0] ? run->command : NULL;
	run->started_ns = trace.started_ns;
	strcpy(run->event, "cuda");
	return sink_gpu(sink, &trace);
}

/* ---- Database ---- */

/* Limit the steps: a malicious schema may run for ever. */
static int count_steps(void *data)
{
	uint64_t *left = data;

	return (*left)-- == 0;
}

static int distrust(sqlite3 *db, uint64_t *steps)
{
	int code;

	code = store_distrust(db);
	if (code == SQLITE_OK)
		code = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_TEXT_BYTES);
	sqlite3_progress_handler(db, 1000, count_steps, steps);
	return code;
}

/* In WAL mode, the log is a separate file: read what the database file has. */
static int open_bytes(const struct import_input *input, uint64_t *steps, sqlite3 **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	int code;

	if (input->bytes[WAL_AT] == 2)
		input->bytes[WAL_AT] = input->bytes[WAL_AT + 1] = 1;
	code = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = distrust(db, steps);
	if (code == SQLITE_OK)
		code = sqlite3_deserialize(db, "main", input->bytes, (sqlite3_int64)input->n_bytes,
					   (sqlite3_int64)input->n_bytes, SQLITE_DESERIALIZE_READONLY);
	if (code != SQLITE_OK)
		return code == SQLITE_NOMEM ? -ENOMEM : -EBADMSG;
	*ret = TAKE(db);
	return 0;
}

static int read_nsys(const struct import_input *input, struct sink *sink)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	uint64_t steps = MAX_STEPS + input->n_bytes * STEPS_PER_BYTE / 1000;
	int r;

	if (input->n_bytes < HEADER_BYTES)
		return sink_explain(sink, -EBADMSG, "it is too short");
	r = open_bytes(input, &steps, &db);
	if (r < 0)
		return sink_explain(sink, r, "it is damaged");
	r = store_check_schema(db);
	if (r == -EMEDIUMTYPE)
		return sink_explain(sink, -EBADMSG, "it has computed or virtual tables, which no export of nsys has");
	if (r < 0)
		return damaged(sink, db);
	r = read_trace(sink, db, input);
	return r < 0 ? r : read_kinds(sink, db);
}

/* Whether the file is a database with CUPTI or NVTX tables. */
static bool is_nsys(const uint8_t *bytes, size_t n_bytes)
{
	static const char magic[] = "SQLite format 3", table[] = "CREATE TABLE", sign[] = "CUPTI_ACTIVITY_KIND_",
			  nvtx[] = "NVTX_EVENTS";
	size_t looked_at = MIN(n_bytes, (size_t)1 << 24);

	if (!bytes || n_bytes < HEADER_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
		return false;
	return memmem(bytes, looked_at, table, strlen(table)) &&
	       (memmem(bytes, looked_at, sign, strlen(sign)) || memmem(bytes, looked_at, nvtx, strlen(nvtx)));
}

const struct importer import_nsys = {
	.name = "nsys",
	.summary = "output of nsys export --type sqlite for a report of Nsight Systems",
	.has_gpu = true,
	.recognise = is_nsys,
	.read = read_nsys,
};
