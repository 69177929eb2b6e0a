/* SPDX-License-Identifier: MIT */
/*
 * series_total.c - `sample_total`: sums of samples of a time range, without a step of SQL for each sample.
 *
 *   SELECT stack, sum(weight) FROM sample_total(1700000000, 1700000060) GROUP BY stack
 *
 * A row is a group of samples with equal values in all columns of the query, with its count
 * and weight. Without arguments it covers all samples. Process and thread are checked for whole blocks first.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/store/series_groups.h"
#include "src/store/series_table.h"

enum total_column {
	TOTAL_PID,
	TOTAL_TID,
	TOTAL_CPU,
	TOTAL_VERDICT,
	TOTAL_END,
	TOTAL_STACK,
	TOTAL_GIL,
	TOTAL_GC,
	TOTAL_STATE,
	TOTAL_SAMPLES,
	TOTAL_WEIGHT,
	TOTAL_SINCE,
	TOTAL_UNTIL,
};

static const char declaration[] =
	"CREATE TABLE sample_total(pid INTEGER NOT NULL, tid INTEGER NOT NULL, cpu INTEGER NOT NULL, verdict TEXT NOT NULL,"
	" stack_end TEXT NOT NULL, stack INTEGER, gil INTEGER, gc INTEGER, state TEXT, samples INTEGER NOT NULL,"
	" weight INTEGER NOT NULL, since HIDDEN, until HIDDEN)";

struct totals {
	sqlite3_vtab_cursor base; /* first: SQLite casts pointers to it */
	struct series_scan scan;
	struct series_range range;
	unsigned used; /* set of columns, 1 << enum total_column */
	struct series_groups groups;
	size_t at; /* slot of the next row */
	double since, until;
	bool has_since, has_until;
};

struct total_table {
	sqlite3_vtab base;
	sqlite3 *db;
};

static struct totals *totals_of(sqlite3_vtab_cursor *base)
{
	return (struct totals *)base;
}

static int connect(sqlite3 *db, void *data, int n_arguments, const char *const *arguments, sqlite3_vtab **ret,
		   char **ret_error)
{
	struct total_table *table;
	int code;

	(void)data;
	(void)n_arguments;
	(void)arguments;
	(void)ret_error;
	code = sqlite3_declare_vtab(db, declaration);
	if (code == SQLITE_OK)
		code = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	if (code != SQLITE_OK)
		return code;
	table = sqlite3_malloc(sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct total_table){ .db = db };
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

/* ---- Plan ---- */

static char want_of(int column)
{
	switch (column) {
	case TOTAL_PID:
		return WANT_PID;
	case TOTAL_TID:
		return WANT_TID;
	case TOTAL_SINCE:
		return WANT_SINCE;
	case TOTAL_UNTIL:
		return WANT_UNTIL;
	default:
		return 0;
	}
}

/* The arguments must be known when the scan begins; SQLite then chooses another order of tables. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	double n = (double)series_count(((struct total_table *)base)->db);
	char *wants = sqlite3_malloc(info->nConstraint + 1);
	int n_wants = 0;

	if (!wants)
		return SQLITE_NOMEM;
	info->idxStr = wants;
	info->needToFreeIdxStr = 1;
	for (int i = 0; i < info->nConstraint; i++) {
		char want = info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ
				    ? want_of(info->aConstraint[i].iColumn)
				    : 0;
		bool is_argument = want == WANT_SINCE || want == WANT_UNTIL;

		if (is_argument && !info->aConstraint[i].usable)
			return SQLITE_CONSTRAINT;
		if (want == 0 || !info->aConstraint[i].usable || (!is_argument && sqlite3_vtab_in(info, i, -1)))
			continue;
		wants[n_wants++] = want;
		info->aConstraintUsage[i].argvIndex = n_wants;
		info->aConstraintUsage[i].omit = is_argument;
	}
	wants[n_wants] = '\0';
	info->idxNum = (int)(info->colUsed & 0x7fffffff);
	info->estimatedCost = n / 10 + 1000;
	info->estimatedRows = (sqlite3_int64)MIN(n, 5000.0);
	return SQLITE_OK;
}

/* ---- Add up ---- */

static bool uses(const struct totals *totals, enum total_column column)
{
	return totals->used >> column & 1;
}

/* Columns of a block to decode. */
static unsigned columns_of(const struct totals *totals)
{
	const struct series_range *range = &totals->range;
	unsigned columns = 0;

	if (range->since_ns > 0 || range->until_ns < UINT64_MAX)
		columns |= BLOCK_HAS(BLOCK_TIME);
	if (uses(totals, TOTAL_PID) || uses(totals, TOTAL_TID) || range->pid >= 0 || range->tid >= 0)
		columns |= BLOCK_HAS(BLOCK_THREAD);
	if (uses(totals, TOTAL_CPU))
		columns |= BLOCK_HAS(BLOCK_CPU);
	if (uses(totals, TOTAL_STACK))
		columns |= BLOCK_HAS(BLOCK_STACK);
	if (uses(totals, TOTAL_WEIGHT))
		columns |= BLOCK_HAS(BLOCK_WEIGHT);
	if (uses(totals, TOTAL_VERDICT) || uses(totals, TOTAL_END) || uses(totals, TOTAL_GIL) ||
	    uses(totals, TOTAL_GC) || uses(totals, TOTAL_STATE))
		columns |= BLOCK_HAS(BLOCK_FLAGS);
	return columns;
}

/* Remove from the block's dictionary entries what is not part of the key. */
static void reduce_entries(const struct totals *totals, struct block *block, unsigned columns)
{
	for (size_t i = 0; columns & BLOCK_HAS(BLOCK_FLAGS) && i < block->n_flags; i++) {
		struct sample_row row = { 0 }, kept = { 0 };
		unsigned flags = 0;

		block_unflags(block->flags[i], &row);
		if (uses(totals, TOTAL_VERDICT))
			kept.verdict = row.verdict;
		if (uses(totals, TOTAL_END))
			kept.end = row.end;
		if (uses(totals, TOTAL_GIL))
			kept.gil = row.gil;
		if (uses(totals, TOTAL_GC))
			kept.gc = row.gc;
		if (uses(totals, TOTAL_STATE))
			kept.state = row.state;
		block_flags(&kept, &flags);
		block->flags[i] = flags;
	}
}

static bool is_wanted(const struct totals *totals, const struct block *block, size_t row, unsigned columns)
{
	const struct series_range *range = &totals->range;
	uint64_t time_ns, thread;

	if (columns & BLOCK_HAS(BLOCK_TIME)) {
		time_ns = block->values[BLOCK_TIME][row];
		if (time_ns < range->since_ns || time_ns > range->until_ns)
			return false;
	}
	if (range->pid < 0 && range->tid < 0)
		return true;
	thread = block->values[BLOCK_THREAD][row];
	return (range->pid < 0 || (uint64_t)range->pid == block->pids[thread]) &&
	       (range->tid < 0 || (uint64_t)range->tid == block->tids[thread]);
}

static struct series_key key_of(const struct totals *totals, const struct block *block, size_t row, unsigned columns)
{
	struct series_key key = { 0 };

	if (uses(totals, TOTAL_PID))
		key.thread = block->pids[block->values[BLOCK_THREAD][row]] << 32;
	if (uses(totals, TOTAL_TID))
		key.thread |= block->tids[block->values[BLOCK_THREAD][row]];
	if (columns & BLOCK_HAS(BLOCK_STACK))
		key.stack = block->stacks[block->values[BLOCK_STACK][row]];
	if (columns & BLOCK_HAS(BLOCK_CPU))
		key.cpu = (uint32_t)block->values[BLOCK_CPU][row];
	if (columns & BLOCK_HAS(BLOCK_FLAGS))
		key.flags = (uint32_t)block->flags[block->values[BLOCK_FLAGS][row]];
	return key;
}

static int add_block(struct totals *totals, unsigned columns)
{
	struct block *block = &totals->scan.block;
	const uint64_t *weights = columns & BLOCK_HAS(BLOCK_WEIGHT) ? block->values[BLOCK_WEIGHT] : NULL;
	int code = SQLITE_OK;

	reduce_entries(totals, block, columns);
	for (size_t i = 0; i < block->n_rows && code == SQLITE_OK; i++) {
		struct series_key key;

		if (!is_wanted(totals, block, i, columns))
			continue;
		key = key_of(totals, block, i, columns);
		code = series_groups_add(&totals->groups, &key, weights ? weights[i] : 0);
	}
	block->n_rows = 0; /* invalidate: its dictionary was changed */
	return code;
}

static int add_blocks(struct totals *totals)
{
	unsigned columns = columns_of(totals);
	int code;

	while ((code = series_scan_next(&totals->scan, columns, &totals->base.pVtab->zErrMsg)) == SQLITE_ROW) {
		code = add_block(totals, columns);
		if (code != SQLITE_OK)
			return code;
	}
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- Cursor ---- */

static int open_totals(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct totals *totals = calloc(1, sizeof *totals);

	(void)base;
	if (!totals)
		return SQLITE_NOMEM;
	*ret = &totals->base;
	return SQLITE_OK;
}

static int close_totals(sqlite3_vtab_cursor *base)
{
	struct totals *totals = totals_of(base);

	series_scan_done(&totals->scan);
	series_groups_done(&totals->groups);
	free(totals);
	return SQLITE_OK;
}

/* NULL means no limit. */
static int want_time(struct totals *totals, char want, sqlite3_value *value)
{
	int type = sqlite3_value_numeric_type(value);
	double seconds = sqlite3_value_double(value);

	if (type == SQLITE_NULL)
		return SQLITE_OK;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
		totals->base.pVtab->zErrMsg = sqlite3_mprintf(
			"sample_total(since, until) takes times as timestamp has them: "
			"seconds since 1970");
		return SQLITE_ERROR;
	}
	if (want == WANT_SINCE) {
		totals->has_since = true;
		totals->since = seconds;
		totals->range.since_ns = series_first_time(seconds, false);
	} else {
		totals->has_until = true;
		totals->until = seconds;
		totals->range.until_ns = series_first_time(seconds, false);
		/* The end is exclusive. */
		if (totals->range.until_ns > 0)
			totals->range.until_ns--;
	}
	return SQLITE_OK;
}

static int want_value(struct totals *totals, char want, sqlite3_value *value)
{
	if (want == WANT_SINCE || want == WANT_UNTIL)
		return want_time(totals, want, value);
	if (sqlite3_value_type(value) != SQLITE_INTEGER || sqlite3_value_int64(value) < 0)
		return SQLITE_OK; /* SQLite compares these */
	if (want == WANT_PID)
		totals->range.pid = sqlite3_value_int64(value);
	else
		totals->range.tid = sqlite3_value_int64(value);
	return SQLITE_OK;
}

/* Advance to the next used slot. */
static void skip_free(struct totals *totals)
{
	while (totals->at < totals->groups.n_slots && totals->groups.slots[totals->at].samples == 0)
		totals->at++;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *wants, int n_values, sqlite3_value **values)
{
	struct totals *totals = totals_of(base);
	int code = SQLITE_OK;

	totals->range = SERIES_ALL;
	totals->used = (unsigned)plan;
	totals->at = 0;
	totals->has_since = totals->has_until = false;
	series_groups_clear(&totals->groups);
	for (int i = 0; i < n_values && code == SQLITE_OK; i++)
		code = want_value(totals, wants[i], values[i]);
	if (code == SQLITE_OK)
		code = series_scan_begin(&totals->scan, ((struct total_table *)base->pVtab)->db, &totals->range, false,
					 &base->pVtab->zErrMsg);
	if (code == SQLITE_OK)
		code = add_blocks(totals);
	skip_free(totals);
	return code;
}

static int next(sqlite3_vtab_cursor *base)
{
	totals_of(base)->at++;
	skip_free(totals_of(base));
	return SQLITE_OK;
}

static int eof(sqlite3_vtab_cursor *base)
{
	return totals_of(base)->at >= totals_of(base)->groups.n_slots;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)totals_of(base)->at + 1;
	return SQLITE_OK;
}

static enum sample_column word_of(int column)
{
	switch (column) {
	case TOTAL_VERDICT:
		return SAMPLE_VERDICT;
	case TOTAL_END:
		return SAMPLE_END;
	case TOTAL_GIL:
		return SAMPLE_GIL;
	case TOTAL_GC:
		return SAMPLE_GC;
	default:
		return SAMPLE_STATE;
	}
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int which)
{
	const struct totals *totals = totals_of(base);
	const struct series_group *group = &totals->groups.slots[totals->at];

	switch (which) {
	case TOTAL_PID:
		sqlite3_result_int64(context, (sqlite3_int64)(group->key.thread >> 32));
		break;
	case TOTAL_TID:
		sqlite3_result_int64(context, (sqlite3_int64)(group->key.thread & UINT32_MAX));
		break;
	case TOTAL_CPU:
		sqlite3_result_int64(context, group->key.cpu);
		break;
	case TOTAL_SAMPLES:
		sqlite3_result_int64(context, (sqlite3_int64)group->samples);
		break;
	case TOTAL_WEIGHT:
		sqlite3_result_int64(context, (sqlite3_int64)group->weight);
		break;
	case TOTAL_STACK:
		if (group->key.stack != 0)
			sqlite3_result_int64(context, (sqlite3_int64)group->key.stack);
		break;
	case TOTAL_SINCE:
		if (totals->has_since)
			sqlite3_result_double(context, totals->since);
		break;
	case TOTAL_UNTIL:
		if (totals->has_until)
			sqlite3_result_double(context, totals->until);
		break;
	default:
		series_result_flags(context, word_of(which), group->key.flags);
	}
	return SQLITE_OK;
}

/* clang-format off */
const sqlite3_module series_total_module = {
	.iVersion = 0,
	.xConnect = connect,
	.xBestIndex = best_index,
	.xDisconnect = disconnect,
	.xOpen = open_totals,
	.xClose = close_totals,
	.xFilter = filter,
	.xNext = next,
	.xEof = eof,
	.xColumn = column,
	.xRowid = rowid,
};
/* clang-format on */
