/* SPDX-License-Identifier: MIT */
/*
 * copy_samples.c - the samples of all sources, in order of time, and their sums.
 *
 * Each source yields its samples in order, and the earliest of all is the next one, so that memory holds as many
 * rows as there are sources. A sample's tracepoint fields are copied with it.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "src/archive/copy_private.h"

/* Columns that are read, in the table's order; older files have fewer. */
enum { TIMESTAMP, PID, TID, CPU, WEIGHT, VERDICT, END, STACK, GIL, GC, STATE, N_COLUMNS };
static const char *const names[N_COLUMNS] = {
	[TIMESTAMP] = "timestamp", [PID] = "pid",       [TID] = "tid",     [CPU] = "cpu", [WEIGHT] = "weight",
	[VERDICT] = "verdict",     [END] = "stack_end", [STACK] = "stack", [GIL] = "gil", [GC] = "gc",
	[STATE] = "state",
};

/* Next sample of a source. */
struct head {
	struct source *source;
	sqlite3_stmt *rows, *fields;
	int columns[N_COLUMNS]; /* -1: missing */
	double timestamp;       /* INFINITY: no more */
};

struct heads {
	struct head *all;
	size_t n;
};

static void heads_done(struct heads *heads)
{
	for (size_t i = 0; i < heads->n; i++) {
		sqlite3_finalize(heads->all[i].rows);
		sqlite3_finalize(heads->all[i].fields);
	}
	free(heads->all);
}

/* Merging compares times of the common clock. */
static int advance(struct head *head)
{
	int code = sqlite3_step(head->rows);

	head->timestamp = code == SQLITE_ROW ? sqlite3_column_double(head->rows, head->columns[TIMESTAMP]) -
						       (double)head->source->clock.offset_ns / 1e9
					     : INFINITY;
	return store_errno(head->source->db, code);
}

static int find_columns(struct head *head)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		head->columns[i] = -1;
		for (int j = 1; j < sqlite3_column_count(head->rows) && head->columns[i] < 0; j++)
			if (sqlite3_stricmp(sqlite3_column_name(head->rows, j), names[i]) == 0)
				head->columns[i] = j;
		if (head->columns[i] < 0 && i < GIL)
			return -EBADMSG;
	}
	return 0;
}

static int open_fields(struct copy *copy, struct head *head)
{
	char *sql;
	int code;

	if (!copy->fields || !copy_has(head->source->db, copy->fields))
		return 0;
	sql = sqlite3_mprintf("SELECT * FROM \"%w\" WHERE sample = ?1", copy->fields);
	code = sql ? sqlite3_prepare_v2(head->source->db, sql, -1, &head->fields, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return store_errno(head->source->db, code);
}

/* A single source keeps its order of writing, which is by time except for waits. */
static int open_head(struct copy *copy, struct head *head, bool is_alone)
{
	const char *sql = is_alone ? "SELECT rowid, * FROM sample ORDER BY rowid"
				   : "SELECT rowid, * FROM sample ORDER BY timestamp, rowid";
	int r;

	r = store_errno(head->source->db, sqlite3_prepare_v2(head->source->db, sql, -1, &head->rows, NULL));
	if (r >= 0)
		r = find_columns(head);
	if (r >= 0)
		r = open_fields(copy, head);
	return r < 0 ? r : advance(head);
}

static struct head *earliest(const struct heads *heads)
{
	struct head *first = NULL;

	for (size_t i = 0; i < heads->n; i++)
		if (isfinite(heads->all[i].timestamp) && (!first || heads->all[i].timestamp < first->timestamp))
			first = &heads->all[i];
	return first;
}

static int64_t integer_at(const struct head *head, int column)
{
	return head->columns[column] < 0 ? 0 : sqlite3_column_int64(head->rows, head->columns[column]);
}

static enum answer answer_at(const struct head *head, int column)
{
	if (head->columns[column] < 0 || sqlite3_column_type(head->rows, head->columns[column]) == SQLITE_NULL)
		return ANSWER_UNKNOWN;
	return integer_at(head, column) != 0 ? ANSWER_YES : ANSWER_NO;
}

static const char *text_at(const struct head *head, int column)
{
	return head->columns[column] < 0 ? NULL : (const char *)sqlite3_column_text(head->rows, head->columns[column]);
}

/* Number of the word; -1: unknown. */
static int word_at(const struct head *head, int column, int n, const char *(*name)(int word))
{
	const char *text = text_at(head, column);

	for (int i = 0; text && i < n; i++)
		if (name(i) && strcmp(name(i), text) == 0)
			return i;
	return -1;
}

static const char *end_word(int word)
{
	return stack_end_name((enum stack_end)word);
}

static const char *state_word(int word)
{
	return thread_state_name((enum thread_state)word);
}

static int read_sample(const struct head *head, struct sample_row *ret)
{
	int end = word_at(head, END, STACK_N_ENDS, end_word);
	int64_t pid = integer_at(head, PID), moved = 0, stack = 0;
	enum verdict verdict;

	if (verdict_parse(text_at(head, VERDICT), &verdict) < 0 || end < 0 ||
	    !numbers_find(&head->source->numbers[KIND_PROCESS], pid, &moved) ||
	    !numbers_find(&head->source->numbers[KIND_STACK], integer_at(head, STACK), &stack))
		return -EBADMSG;
	*ret = (struct sample_row){
		.time_ns = store_nanoseconds(head->timestamp),
		.pid = (pid_t)moved,
		.tid = (pid_t)(integer_at(head, TID) + moved - pid),
		.cpu = (unsigned)integer_at(head, CPU),
		.weight = (uint64_t)integer_at(head, WEIGHT),
		.verdict = verdict,
		.end = (enum stack_end)end,
		.stack = stack,
		.gil = answer_at(head, GIL),
		.gc = answer_at(head, GC),
		.state = (enum thread_state)MAX(0, word_at(head, STATE, STATE_N, state_word)),
	};
	return 0;
}

static struct field_value value_of(sqlite3_stmt *row, int column)
{
	switch (sqlite3_column_type(row, column)) {
	case SQLITE_INTEGER:
		return (struct field_value){ FIELD_INTEGER, .integer = sqlite3_column_int64(row, column) };
	case SQLITE_TEXT:
	case SQLITE_FLOAT: /* no tracepoint has such a field */
		return (struct field_value){ FIELD_TEXT, .bytes = sqlite3_column_text(row, column),
					     .n_bytes = (size_t)sqlite3_column_bytes(row, column) };
	case SQLITE_BLOB:
		return (struct field_value){ FIELD_BLOB, .bytes = sqlite3_column_blob(row, column),
					     .n_bytes = (size_t)sqlite3_column_bytes(row, column) };
	default:
		return (struct field_value){ FIELD_NULL };
	}
}

static int put_fields(struct copy *copy, struct head *head)
{
	int n = sqlite3_column_count(head->fields) - 1, code;
	CLEANUP(freep) struct field_value *values = calloc((size_t)MAX(n, 1), sizeof *values);
	int r = 0;

	if (!values)
		return -ENOMEM;
	sqlite3_bind_int64(head->fields, 1, sqlite3_column_int64(head->rows, 0));
	code = sqlite3_step(head->fields);
	for (int i = 0; i < n && code == SQLITE_ROW; i++)
		values[i] = value_of(head->fields, i + 1);
	if (code == SQLITE_ROW)
		r = store_put_fields(copy->to, values, (size_t)n);
	sqlite3_reset(head->fields);
	return r < 0 ? r : store_errno(head->source->db, code);
}

static int take(struct copy *copy, struct head *head)
{
	struct sample_row row;
	int r;

	r = read_sample(head, &row);
	if (r < 0)
		return copy_damaged(copy, head->source, "samples");
	r = store_put_sample(copy->to, &row);
	if (r >= 0 && head->fields)
		r = put_fields(copy, head);
	copy->result->n_samples++;
	return r < 0 ? r : advance(head);
}

static int count_all(struct heads *heads, uint64_t *ret)
{
	uint64_t n_all = 0;

	for (size_t i = 0; i < heads->n; i++) {
		int64_t n = 0;
		int r = copy_number(heads->all[i].source->db, "SELECT coalesce(sum(samples), 0) FROM stack_total", &n);

		if (r < 0)
			return r;
		n_all += (uint64_t)MAX(n, 0);
	}
	*ret = n_all;
	return 0;
}

int copy_samples(struct copy *copy, struct source *sources, size_t n_sources)
{
	CLEANUP(heads_done) struct heads heads = { calloc(n_sources, sizeof *heads.all), n_sources };
	struct head *next;
	uint64_t n_all = 0;
	int r = 0;

	if (!heads.all)
		return -ENOMEM;
	for (size_t i = 0; i < n_sources && r >= 0; i++) {
		heads.all[i].source = &sources[i];
		r = open_head(copy, &heads.all[i], n_sources == 1);
		if (r == -EBADMSG)
			return copy_damaged(copy, &sources[i], "samples");
	}
	if (r >= 0)
		r = count_all(&heads, &n_all);
	copy->progress.n_done = 0;
	while (r >= 0 && (next = earliest(&heads)) != NULL) {
		r = take(copy, next);
		if (r == -EBADMSG)
			return copy_damaged(copy, next->source, "samples");
		if (r >= 0)
			r = copy_step(copy, "samples", n_all);
	}
	return r;
}

static int put_total(struct copy *copy, const struct source *source, sqlite3_stmt *row)
{
	int64_t pid = sqlite3_column_int64(row, 0), moved = 0, stack = 0;
	struct total_row total = {
		.tid = (pid_t)sqlite3_column_int64(row, 1),
		.samples = (uint64_t)sqlite3_column_int64(row, 3),
		.weight = (uint64_t)sqlite3_column_int64(row, 4),
	};

	if (!numbers_find(&source->numbers[KIND_PROCESS], pid, &moved) ||
	    !numbers_find(&source->numbers[KIND_STACK], sqlite3_column_int64(row, 2), &stack))
		return -EBADMSG;
	total.pid = (pid_t)moved;
	total.tid += (pid_t)(moved - pid);
	total.stack = stack;
	return store_put_total(copy->to, &total);
}

int copy_totals(struct copy *copy, struct source *source)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r;

	r = store_errno(source->db, sqlite3_prepare_v2(source->db,
						       "SELECT pid, tid, stack, samples, weight FROM"
						       " stack_total",
						       -1, &rows, NULL));
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = put_total(copy, source, rows);
	if (r >= 0)
		r = store_errno(source->db, code);
	return r == -EBADMSG ? copy_damaged(copy, source, "totals") : r;
}
