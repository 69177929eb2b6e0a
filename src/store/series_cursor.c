/* SPDX-License-Identifier: MIT */
/*
 * series_cursor.c - rows of `sample`, block by block.
 *
 * For each block that may have matching rows the query's columns are decoded completely; then
 * a byte per row marks matching ones. A matching row is always returned. Others may be returned,
 * except for constraints in WANT_EXACT (see series_table.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/store/series_table.h"

struct cursor_of_samples {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	struct series_scan scan;
	struct series_range range;
	struct series_words words;
	int64_t stack;    /* -1: any */
	unsigned columns; /* columns to decode */
	bool is_backward, is_picky, is_at_end;
	size_t row, n_left;      /* current row, and number of rows left in the block */
	uint8_t *wanted, *entry; /* 1: row, or dictionary entry, matches */
	size_t room;
	sqlite3_stmt *fields;              /* selects the tracepoint's row */
	bool knows_activity, knows_passes; /* the table's are up to date */
	struct process_ranks *ranks;       /* of this query; NULL: not read yet */
	struct process_runs *runs;         /* likewise */
	int64_t fields_of;                 /* number of the current row's sample; 0: none yet */
	char *event;
};

static struct cursor_of_samples *cursor_of(sqlite3_vtab_cursor *base)
{
	return (struct cursor_of_samples *)base;
}

static struct series_table *table_of(const struct cursor_of_samples *cursor)
{
	return (struct series_table *)cursor->base.pVtab;
}

int series_cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct cursor_of_samples *cursor = calloc(1, sizeof *cursor);

	(void)base;
	if (!cursor)
		return SQLITE_NOMEM;
	series_words_init(&cursor->words);
	*ret = &cursor->base;
	return SQLITE_OK;
}

int series_cursor_close(sqlite3_vtab_cursor *base)
{
	struct cursor_of_samples *cursor = cursor_of(base);

	series_scan_done(&cursor->scan);
	series_words_done(&cursor->words);
	sqlite3_finalize(cursor->fields);
	process_ranks_free(cursor->ranks);
	process_runs_free(cursor->runs);
	sqlite3_free(cursor->event);
	free(cursor->wanted);
	free(cursor->entry);
	free(cursor);
	return SQLITE_OK;
}

/* ---- Constraints ---- */

static void want_nothing(struct series_range *range)
{
	range->last = 0;
}

static bool is_least(char want)
{
	return want == WANT_AT || strchr(WANT_SINCES, want);
}

static bool is_most(char want)
{
	return want == WANT_AT || strchr(WANT_UNTILS, want);
}

static void want_since(struct series_range *range, uint64_t first_ns)
{
	range->since_ns = MAX(range->since_ns, first_ns);
}

static void want_before(struct series_range *range, uint64_t end_ns)
{
	if (end_ns == 0)
		want_nothing(range);
	else
		range->until_ns = MIN(range->until_ns, end_ns - 1);
}

/* Compare like SQLite does with a REAL: NULL matches nothing, and values of other types are above all numbers. */
static void want_time(struct series_range *range, char want, sqlite3_value *value)
{
	int type = sqlite3_value_numeric_type(value);
	bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
	double seconds = sqlite3_value_double(value);

	if (type == SQLITE_NULL || (!is_number && is_least(want)))
		want_nothing(range);
	if (!is_number)
		return;
	if (is_least(want))
		want_since(range, series_first_time(seconds, want == WANT_AFTER));
	if (is_most(want))
		want_before(range, series_first_time(seconds, want != WANT_BEFORE));
}

/* A PID or TID; -1: no row has it. */
static int64_t id_of(sqlite3_value *value)
{
	int type = sqlite3_value_numeric_type(value);
	int64_t id = sqlite3_value_int64(value);

	if (type == SQLITE_FLOAT)
		return sqlite3_value_double(value) == (double)id && id >= 0 ? id : -1;
	return type == SQLITE_INTEGER && id >= 0 ? id : -1;
}

static void want_id(struct series_range *range, int64_t *to, sqlite3_value *value)
{
	int64_t id = id_of(value);

	if (id < 0 || (*to >= 0 && *to != id))
		want_nothing(range);
	else
		*to = id;
}

static void want_number(struct series_range *range, char want, int64_t value)
{
	if (want == WANT_ABOVE && value < INT64_MAX)
		value++;
	if (want == WANT_BELOW && value > INT64_MIN)
		value--;
	if (want == WANT_NUMBER || want == WANT_FIRST || want == WANT_ABOVE)
		range->first = MAX(range->first, value);
	if (want == WANT_NUMBER || want == WANT_LAST || want == WANT_BELOW)
		range->last = MIN(range->last, value);
}

static void want_integer(struct cursor_of_samples *cursor, char want, int64_t value)
{
	switch (want) {
	case WANT_STACK:
		cursor->stack = value;
		break;
	case WANT_GIL:
		cursor->words.gil = value;
		break;
	case WANT_GC:
		cursor->words.gc = value;
		break;
	case WANT_IDLE:
		cursor->words.idle = value;
		break;
	}
}

static int want_text(struct series_words *words, char want, const char *text)
{
	char **to = want == WANT_VERDICT ? &words->verdict : want == WANT_END ? &words->end : &words->state;

	sqlite3_free(*to);
	*to = sqlite3_mprintf("%s", text);
	return *to ? SQLITE_OK : SQLITE_NOMEM;
}

/* All samples of a recording have the same event. */
static bool is_event(struct cursor_of_samples *cursor, const char *wanted)
{
	char *event = series_event(table_of(cursor)->db);
	bool is_same = !event || !wanted || strcmp(event, wanted) == 0;

	sqlite3_free(event);
	return is_same;
}

/*
 * Except for times and threads, let SQLite compare values of another type than the column's. Likewise negative numbers,
 * which here would mean any.
 */
static int want_value(struct cursor_of_samples *cursor, char want, sqlite3_value *value)
{
	struct series_range *range = &cursor->range;
	int type = sqlite3_value_type(value);

	if (want == WANT_PID || want == WANT_TID) {
		want_id(range, want == WANT_PID ? &range->pid : &range->tid, value);
	} else if (strchr(WANT_EXACT, want)) {
		want_time(range, want, value);
	} else if (want == WANT_EVENT) {
		if (type == SQLITE_TEXT && !is_event(cursor, (const char *)sqlite3_value_text(value)))
			want_nothing(range);
	} else if (strchr((const char[]){ WANT_VERDICT, WANT_END, WANT_STATE, 0 }, want)) {
		if (type == SQLITE_TEXT)
			return want_text(&cursor->words, want, (const char *)sqlite3_value_text(value));
	} else if (type == SQLITE_INTEGER && (want == WANT_NUMBER || strchr(WANT_NUMBERS, want))) {
		want_number(range, want, sqlite3_value_int64(value));
	} else if (type == SQLITE_INTEGER && sqlite3_value_int64(value) >= 0) {
		want_integer(cursor, want, sqlite3_value_int64(value));
	}
	return SQLITE_OK;
}

static void want_anything(struct cursor_of_samples *cursor)
{
	cursor->range = SERIES_ALL;
	cursor->stack = -1;
	series_words_done(&cursor->words);
}

/* Columns to decode for checking the constraints. */
static unsigned telling_columns(const struct cursor_of_samples *cursor)
{
	const struct series_range *range = &cursor->range;
	unsigned columns = 0;

	if (range->since_ns > 0 || range->until_ns < UINT64_MAX)
		columns |= BLOCK_HAS(BLOCK_TIME);
	if (range->pid >= 0 || range->tid >= 0)
		columns |= BLOCK_HAS(BLOCK_THREAD);
	if (cursor->stack >= 0)
		columns |= BLOCK_HAS(BLOCK_STACK);
	if (!series_words_are_any(&cursor->words))
		columns |= BLOCK_HAS(BLOCK_FLAGS);
	return columns;
}

/* ---- Rows of a block ---- */

static int make_room(struct cursor_of_samples *cursor, size_t n)
{
	if (cursor->room >= n)
		return SQLITE_OK;
	free(cursor->wanted);
	free(cursor->entry);
	cursor->wanted = malloc(n);
	cursor->entry = malloc(n);
	cursor->room = cursor->wanted && cursor->entry ? n : 0;
	return cursor->room > 0 ? SQLITE_OK : SQLITE_NOMEM;
}

static void keep_times(struct cursor_of_samples *cursor)
{
	const uint64_t *times = cursor->scan.block.values[BLOCK_TIME];
	uint64_t since_ns = cursor->range.since_ns, until_ns = cursor->range.until_ns;

	for (size_t i = 0; i < cursor->scan.block.n_rows; i++)
		cursor->wanted[i] &= (uint8_t)(times[i] >= since_ns) & (uint8_t)(times[i] <= until_ns);
}

/* Clear rows whose dictionary entry does not match. */
static void keep_entries(struct cursor_of_samples *cursor, enum block_column column)
{
	const uint64_t *indices = cursor->scan.block.values[column];

	for (size_t i = 0; i < cursor->scan.block.n_rows; i++)
		cursor->wanted[i] &= cursor->entry[indices[i]];
}

static void keep_threads(struct cursor_of_samples *cursor)
{
	const struct block *block = &cursor->scan.block;
	const struct series_range *range = &cursor->range;

	for (size_t i = 0; i < block->n_threads; i++)
		cursor->entry[i] = (range->pid < 0 || (uint64_t)range->pid == block->pids[i]) &&
				   (range->tid < 0 || (uint64_t)range->tid == block->tids[i]);
	keep_entries(cursor, BLOCK_THREAD);
}

static void keep_stacks(struct cursor_of_samples *cursor)
{
	const struct block *block = &cursor->scan.block;

	for (size_t i = 0; i < block->n_stacks; i++)
		cursor->entry[i] = block->stacks[i] == (uint64_t)cursor->stack;
	keep_entries(cursor, BLOCK_STACK);
}

static void keep_words(struct cursor_of_samples *cursor)
{
	const struct block *block = &cursor->scan.block;

	for (size_t i = 0; i < block->n_flags; i++)
		cursor->entry[i] = series_words_match(&cursor->words, block->flags[i]);
	keep_entries(cursor, BLOCK_FLAGS);
}

static int pick_rows(struct cursor_of_samples *cursor, unsigned telling)
{
	size_t n = cursor->scan.block.n_rows;
	int code = make_room(cursor, n);

	if (code != SQLITE_OK)
		return code;
	memset(cursor->wanted, 1, n);
	if (telling & BLOCK_HAS(BLOCK_TIME))
		keep_times(cursor);
	if (telling & BLOCK_HAS(BLOCK_THREAD))
		keep_threads(cursor);
	if (telling & BLOCK_HAS(BLOCK_STACK))
		keep_stacks(cursor);
	if (telling & BLOCK_HAS(BLOCK_FLAGS))
		keep_words(cursor);
	return SQLITE_OK;
}

/* Limit the rows by number: row .. row + n_left, the first one comes next. */
static void limit_rows(struct cursor_of_samples *cursor)
{
	int64_t n = (int64_t)cursor->scan.block.n_rows, first = cursor->scan.first;
	int64_t from = MAX(cursor->range.first - first, 0);
	int64_t to = cursor->range.last < first ? 0 : MIN(cursor->range.last - first + 1, n);

	cursor->n_left = to > from ? (size_t)(to - from) : 0;
	cursor->row = (size_t)(cursor->is_backward ? to : from);
}

/* Advance to the next matching row of the block, at or before `row` if backward. False: there is none. */
static bool find_row(struct cursor_of_samples *cursor)
{
	const uint8_t *found, *wanted = cursor->wanted;
	size_t skipped;

	if (cursor->n_left == 0)
		return false;
	if (cursor->is_backward) {
		found = cursor->is_picky ? memrchr(wanted + cursor->row - cursor->n_left, 1, cursor->n_left)
					 : wanted + cursor->row - 1;
		skipped = found ? (size_t)(wanted + cursor->row - 1 - found) : 0;
	} else {
		found = cursor->is_picky ? memchr(wanted + cursor->row, 1, cursor->n_left) : wanted + cursor->row;
		skipped = found ? (size_t)(found - (wanted + cursor->row)) : 0;
	}
	if (!found)
		return false;
	cursor->row = (size_t)(found - wanted);
	cursor->n_left -= skipped + 1;
	return true;
}

static int next_block(struct cursor_of_samples *cursor)
{
	unsigned telling = telling_columns(cursor);
	int code;

	while ((code = series_scan_next(&cursor->scan, cursor->columns | telling, &cursor->base.pVtab->zErrMsg)) ==
	       SQLITE_ROW) {
		code = pick_rows(cursor, telling);
		if (code != SQLITE_OK)
			return code;
		limit_rows(cursor);
		if (find_row(cursor))
			return SQLITE_OK;
	}
	cursor->is_at_end = true;
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

int series_cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *wants, int n_values, sqlite3_value **values)
{
	struct cursor_of_samples *cursor = cursor_of(base);
	int code = SQLITE_OK;

	want_anything(cursor);
	for (int i = 0; i < n_values && code == SQLITE_OK; i++)
		code = want_value(cursor, wants[i], values[i]);
	cursor->columns = (unsigned)plan >> 1;
	cursor->is_backward = plan & 1;
	cursor->is_at_end = false;
	cursor->is_picky = telling_columns(cursor) != 0;
	cursor->fields_of = 0;
	cursor->knows_activity = cursor->knows_passes = false;
	process_ranks_free(TAKE(cursor->ranks));
	process_runs_free(TAKE(cursor->runs));
	sqlite3_free(TAKE(cursor->event));
	if (code == SQLITE_OK)
		code = series_scan_begin(&cursor->scan, table_of(cursor)->db, &cursor->range, cursor->is_backward,
					 &base->pVtab->zErrMsg);
	return code == SQLITE_OK ? next_block(cursor) : code;
}

int series_cursor_next(sqlite3_vtab_cursor *base)
{
	struct cursor_of_samples *cursor = cursor_of(base);

	if (!cursor->is_backward)
		cursor->row++;
	return find_row(cursor) ? SQLITE_OK : next_block(cursor);
}

int series_cursor_eof(sqlite3_vtab_cursor *base)
{
	return cursor_of(base)->is_at_end;
}

int series_cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = cursor_of(base)->scan.first + (int64_t)cursor_of(base)->row;
	return SQLITE_OK;
}

/* ---- Values ---- */

/* A field from the tracepoint's row of the sample; NULL if there is none. */
static int result_field(struct cursor_of_samples *cursor, sqlite3_context *context, int column)
{
	int64_t number = cursor->scan.first + (int64_t)cursor->row;
	int code = SQLITE_OK;

	if (!cursor->fields)
		code = series_fields_prepare(table_of(cursor)->db, &table_of(cursor)->fields, &cursor->fields);
	if (code == SQLITE_OK && cursor->fields_of != number) {
		sqlite3_reset(cursor->fields);
		sqlite3_bind_int64(cursor->fields, 1, number);
		code = sqlite3_step(cursor->fields);
		cursor->fields_of = code == SQLITE_ROW || code == SQLITE_DONE ? number : 0;
	}
	if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
		return code;
	if (sqlite3_data_count(cursor->fields) > column)
		sqlite3_result_value(context, sqlite3_column_value(cursor->fields, column));
	return SQLITE_OK;
}

/* Read late: while a recording starts, its event is stored after its first row. */
static int result_event(struct cursor_of_samples *cursor, sqlite3_context *context)
{
	if (!cursor->event)
		cursor->event = series_event(table_of(cursor)->db);
	if (cursor->event)
		sqlite3_result_text(context, cursor->event, -1, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

static int fail_activity(sqlite3_vtab *base, int error, bool is_passes)
{
	const char *rows = is_passes ? "torch_trace" : "steps and spans";
	const char *columns = is_passes ? "torch_module and torch_stage" : "step, span and phase";

	if (error == -ENOMEM)
		return SQLITE_NOMEM;
	sqlite3_free(base->zErrMsg);
	base->zErrMsg = error == -E2BIG
				? sqlite3_mprintf("%s have more than 16 million rows: %s are not known", rows, columns)
				: sqlite3_mprintf("a block of rows of %s is damaged: %s are not known", rows, columns);
	return SQLITE_ERROR;
}

/* Read the rows of steps and spans, or of passes, unless that was done and no row came since. */
static int know(struct series_table *table, bool is_passes, bool *ret_known)
{
	struct activity **activity = is_passes ? &table->passes : &table->activity;
	int64_t *known = is_passes ? &table->passes_version : &table->activity_version;
	int64_t version = activity_version(table->db);
	int r;

	if (!*activity || *known != version) {
		activity_free(TAKE(*activity));
		r = is_passes ? activity_load_passes(table->db, activity) : activity_load(table->db, activity);
		if (r < 0)
			return fail_activity(&table->base, r, is_passes);
		*known = version;
	}
	*ret_known = true;
	return SQLITE_OK;
}

static int result_doing(struct cursor_of_samples *cursor, sqlite3_context *context, int column)
{
	const struct block *block = &cursor->scan.block;
	struct series_table *table = table_of(cursor);
	uint64_t thread = block->values[BLOCK_THREAD][cursor->row];
	bool is_passes = column == SAMPLE_TORCH_MODULE || column == SAMPLE_TORCH_STAGE;
	bool *is_known = is_passes ? &cursor->knows_passes : &cursor->knows_activity;
	struct doing doing;
	int code = *is_known ? SQLITE_OK : know(table, is_passes, is_known);
	const char *text;

	if (code != SQLITE_OK)
		return code;
	activity_find(is_passes ? table->passes : table->activity, (int64_t)block->pids[thread],
		      (int64_t)block->tids[thread], block->values[BLOCK_TIME][cursor->row], &doing);
	text = column == SAMPLE_SPAN || column == SAMPLE_TORCH_MODULE ? doing.span : doing.phase;
	if (column == SAMPLE_STEP && doing.has_step)
		sqlite3_result_int64(context, doing.step);
	else if (column != SAMPLE_STEP && text)
		sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

/* Read for each query: a recording in progress gets more processes. */
static int result_rank(struct cursor_of_samples *cursor, sqlite3_context *context, int column)
{
	const struct block *block = &cursor->scan.block;
	const struct process_rank *found;
	int64_t number;
	int r;

	if (!cursor->ranks) {
		r = process_ranks_load(table_of(cursor)->db, &cursor->ranks);
		if (r < 0)
			return r == -ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
	}
	found = process_ranks_find(cursor->ranks, (int64_t)block->pids[block->values[BLOCK_THREAD][cursor->row]]);
	if (!found)
		return SQLITE_OK;
	if (column == SAMPLE_HOST) {
		if (found->host)
			sqlite3_result_text(context, found->host, -1, SQLITE_TRANSIENT);
		return SQLITE_OK;
	}
	number = column == SAMPLE_RANK ? found->rank : found->local_rank;
	if (number >= 0)
		sqlite3_result_int64(context, number);
	return SQLITE_OK;
}

static int result_run(struct cursor_of_samples *cursor, sqlite3_context *context)
{
	const struct block *block = &cursor->scan.block;
	int64_t run;
	int r;

	if (!cursor->runs) {
		r = process_runs_load(table_of(cursor)->db, &cursor->runs);
		if (r < 0)
			return r == -ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
	}
	run = process_runs_find(cursor->runs, (int64_t)block->pids[block->values[BLOCK_THREAD][cursor->row]],
				store_seconds(block->values[BLOCK_TIME][cursor->row]));
	if (run >= 0)
		sqlite3_result_int64(context, run);
	return SQLITE_OK;
}

static void result_stack(sqlite3_context *context, const struct block *block, size_t row)
{
	uint64_t stack = block->stacks[block->values[BLOCK_STACK][row]];

	if (stack != 0)
		sqlite3_result_int64(context, (sqlite3_int64)stack);
}

int series_cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct cursor_of_samples *cursor = cursor_of(base);
	const struct block *block = &cursor->scan.block;
	size_t row = cursor->row;

	switch (column) {
	case SAMPLE_TIMESTAMP:
		sqlite3_result_double(context, store_seconds(block->values[BLOCK_TIME][row]));
		break;
	case SAMPLE_PID:
		sqlite3_result_int64(context, (sqlite3_int64)block->pids[block->values[BLOCK_THREAD][row]]);
		break;
	case SAMPLE_TID:
		sqlite3_result_int64(context, (sqlite3_int64)block->tids[block->values[BLOCK_THREAD][row]]);
		break;
	case SAMPLE_CPU:
		sqlite3_result_int64(context, (sqlite3_int64)block->values[BLOCK_CPU][row]);
		break;
	case SAMPLE_WEIGHT:
		sqlite3_result_int64(context, (sqlite3_int64)block->values[BLOCK_WEIGHT][row]);
		break;
	case SAMPLE_STACK:
		result_stack(context, block, row);
		break;
	case SAMPLE_EVENT:
		return result_event(cursor, context);
	case SAMPLE_STEP:
	case SAMPLE_SPAN:
	case SAMPLE_PHASE:
	case SAMPLE_TORCH_MODULE:
	case SAMPLE_TORCH_STAGE:
		return result_doing(cursor, context, column);
	case SAMPLE_HOST:
	case SAMPLE_RANK:
	case SAMPLE_LOCAL_RANK:
		return result_rank(cursor, context, column);
	default:
		if (column == SAMPLE_N_COLUMNS + table_of(cursor)->fields.n)
			return result_run(cursor, context);
		if (column >= SAMPLE_N_COLUMNS)
			return result_field(cursor, context, column - SAMPLE_N_COLUMNS + 1);
		series_result_flags(context, (enum sample_column)column, block->flags[block->values[BLOCK_FLAGS][row]]);
	}
	return SQLITE_OK;
}
