/* SPDX-License-Identifier: MIT */
/*
 * read_sums.c - sums of samples by process, thread and stack, which the servers add up.
 *
 * The table samples has them, as long as the shippers send single samples; otherwise totals, whose rows know a process by
 * its rank alone, and minutes instead of times.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sample.h"
#include "src/fleet/read_private.h"
#include "src/fleet/tables.h"

enum { MINUTE_S = 60, RECENT_S = 3600 };

/* The part of a condition that all tables understand. */
static int print_runs(const struct fleet *fleet, const struct fleet_selection *selection, FILE *out)
{
	CLEANUP(freep) char *ranks = NULL;
	int r;

	fprintf(out, " WHERE job = %s", fleet->job);
	if (fleet->is_some) {
		fputs(" AND run IN (", out);
		for (size_t i = 0; i < fleet->n_runs; i++)
			fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", fleet->runs[i].run);
		fputs(")", out);
	}
	if (!selection->ranks)
		return 0;
	r = fleet_parse_ranks(selection->ranks, &ranks);
	if (r == 0)
		fprintf(out, " AND %s", ranks);
	return r;
}

/* Milliseconds of a moment, at or after it. A moment before 1970 is 1970. */
static uint64_t milliseconds(double seconds)
{
	double value = MIN(MAX(seconds, 0), 4e12) * 1000;
	uint64_t whole = (uint64_t)value;

	return whole + ((double)whole < value);
}

static uint32_t whole_seconds(uint64_t ms)
{
	return (uint32_t)MIN(ms / 1000, (uint64_t)UINT32_MAX);
}

/* The seconds let the server skip parts of the table. Some versions store fractions in `time`. */
static void print_times(const struct fleet_selection *selection, FILE *out)
{
	uint64_t since = milliseconds(selection->since), until = milliseconds(selection->until);

	if (selection->has_since)
		fprintf(out, " AND time >= toDateTime(%" PRIu32 ") AND time_ms >= %" PRIu64, whole_seconds(since),
			since);
	if (selection->has_until)
		fprintf(out, " AND time < toDateTime(%" PRIu32 ") AND time_ms < %" PRIu64, whole_seconds(until + 1000),
			until);
}

static void print_minutes(const struct fleet_selection *selection, FILE *out)
{
	if (selection->has_since)
		fprintf(out, " AND minute >= toDateTime(%" PRIu32 ")", whole_seconds(milliseconds(selection->since)));
	if (selection->has_until)
		fprintf(out, " AND minute < toDateTime(%" PRIu32 ")", whole_seconds(milliseconds(selection->until)));
}

/* @ret: NULL: no condition. */
static int parse_where(struct fleet *fleet, const struct fleet_selection *selection, char **ret)
{
	char why[256] = "";
	int r = selection->where ? fleet_parse_where(selection->where, ret, why, sizeof why) : 0;

	return r == -EINVAL ? fleet_fail(fleet, r, "--where is not a condition on samples: %s", why) : r;
}

/* A part of the selection is not valid. */
static int drop(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_statement *statement,
		int error)
{
	fleet_drop(statement);
	return error == -EINVAL
		       ? fleet_fail(fleet, error, "--rank needs numbers, such as 0,8-15, not %s", selection->ranks)
		       : error;
}

/* The columns before stack, which are a sum's key. */
struct sum_key {
	bool has_pid, has_rank, has_leaf;
};

static int take_sums(struct fleet *fleet, struct row_cursor *rows, struct sum_key key, struct fleet_answers *answers)
{
	while (row_cursor_more(rows)) {
		struct fleet_sum sum = { .rank = -1 };
		int r;

		if (key.has_pid || key.has_rank)
			sum.run = row_cursor_number(rows, sizeof sum.run);
		if (key.has_pid) {
			sum.pid = (uint32_t)row_cursor_number(rows, sizeof sum.pid);
			sum.tid = (uint32_t)row_cursor_number(rows, sizeof sum.tid);
		}
		if (key.has_rank)
			sum.rank = row_cursor_int32(rows);
		if (key.has_leaf)
			sum.leaf = (uint16_t)row_cursor_number(rows, sizeof sum.leaf);
		sum.stack = row_cursor_number(rows, sizeof sum.stack);
		sum.samples = row_cursor_number(rows, sizeof sum.samples);
		sum.weight = row_cursor_number(rows, sizeof sum.weight);
		r = grow(&answers->sums, answers->n_sums, &answers->sums_allocated, sizeof *answers->sums);
		if (r < 0)
			return r;
		answers->sums[answers->n_sums++] = sum;
	}
	return fleet_finish_rows(fleet, rows);
}

int fleet_fetch_samples(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers)
{
	const char *group = selection->merge_processes ? "" : "run, pid, tid, ";
	const char *leaf = selection->with_lines ? "leaf, " : "";
	CLEANUP(freep) char *where = NULL;
	struct fleet_statement statement;
	struct row_cursor rows;
	int r = parse_where(fleet, selection, &where);

	if (r == 0)
		r = fleet_begin(&statement);
	if (r < 0)
		return r;
	fprintf(statement.out, "SELECT %s%sstack, count(), sum(weight) FROM samples", group, leaf);
	r = print_runs(fleet, selection, statement.out);
	print_times(selection, statement.out);
	if (where)
		fprintf(statement.out, " AND %s", where);
	fprintf(statement.out, " GROUP BY %s%sstack ORDER BY %s%sstack", group, leaf, group, leaf);
	r = r < 0 ? drop(fleet, selection, &statement, r) : fleet_send(fleet, &statement, &rows);
	return r < 0 ? r
		     : take_sums(fleet, &rows,
				 (struct sum_key){ .has_pid = !selection->merge_processes,
						   .has_leaf = selection->with_lines },
				 answers);
}

static int fetch_totals(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers)
{
	const char *group = selection->merge_processes ? "" : "run, rank, ";
	struct fleet_statement statement;
	struct row_cursor rows;
	int r;

	r = fleet_begin(&statement);
	if (r < 0)
		return r;
	fprintf(statement.out, "SELECT %sstack, sum(toUInt64(samples)), sum(weight) FROM totals", group);
	r = print_runs(fleet, selection, statement.out);
	print_minutes(selection, statement.out);
	fprintf(statement.out, " GROUP BY %sstack ORDER BY %sstack", group, group);
	r = r < 0 ? drop(fleet, selection, &statement, r) : fleet_send(fleet, &statement, &rows);
	return r < 0 ? r
		     : take_sums(fleet, &rows, (struct sum_key){ .has_rank = !selection->merge_processes }, answers);
}

int fleet_are_raw(struct fleet *fleet, bool *ret)
{
	struct fleet_statement statement;
	struct row_cursor rows;
	int r = fleet_begin(&statement);

	if (r < 0)
		return r;
	fprintf(statement.out, "SELECT toUInt8(countIf(raw = 0) = 0) FROM shipments WHERE job = %s", fleet->job);
	r = fleet_send(fleet, &statement, &rows);
	if (r < 0)
		return r;
	*ret = row_cursor_number(&rows, 1) != 0;
	return fleet_finish_rows(fleet, &rows);
}

static bool is_minute(bool has, double seconds)
{
	return !has || milliseconds(seconds) % (MINUTE_S * 1000) == 0;
}

/* Whether totals can answer: 1; 0: samples have to, and can. Otherwise an error. */
static int choose_totals(struct fleet *fleet, const struct fleet_selection *selection, bool prefers_totals)
{
	bool of_minutes = is_minute(selection->has_since, selection->since) &&
			  is_minute(selection->has_until, selection->until),
	     is_raw;
	int r;

	if (prefers_totals && of_minutes && !selection->where && !selection->with_lines)
		return 1;
	r = fleet_are_raw(fleet, &is_raw);
	if (r < 0 || is_raw)
		return r;
	if (selection->where)
		return fleet_fail(fleet, -EINVAL, "the shippers send no single samples, which --where needs");
	if (selection->with_lines)
		return fleet_fail(fleet, -EINVAL, "the shippers send no single samples, which lines need");
	if (!of_minutes)
		return fleet_fail(
			fleet, -EINVAL,
			"the shippers send no single samples, only sums of minutes: give whole minutes to --since and --until");
	return 1;
}

/* Totals answer in a quarter of the time what they can answer. */
int fleet_fetch_sums(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers)
{
	int r = choose_totals(fleet, selection, selection->merge_processes);

	if (r < 0)
		return r;
	return r ? fetch_totals(fleet, selection, answers) : fleet_fetch_samples(fleet, selection, answers);
}

/* ---- Ranks ---- */

static int take_rank_sums(struct fleet *fleet, struct row_cursor *rows, struct fleet_answers *answers)
{
	while (row_cursor_more(rows)) {
		struct fleet_sum sum = { .rank = row_cursor_int32(rows) };
		int r;

		sum.run = row_cursor_number(rows, sizeof sum.run);
		sum.stack = row_cursor_number(rows, sizeof sum.stack);
		sum.samples = row_cursor_number(rows, sizeof sum.samples);
		sum.weight = row_cursor_number(rows, sizeof sum.weight);
		sum.running = row_cursor_number(rows, sizeof sum.running);
		sum.last = (uint32_t)row_cursor_number(rows, sizeof sum.last);
		r = grow(&answers->sums, answers->n_sums, &answers->sums_allocated, sizeof *answers->sums);
		if (r < 0)
			return r;
		answers->sums[answers->n_sums++] = sum;
	}
	return fleet_finish_rows(fleet, rows);
}

/* The states of a thread that has a processor; 0: a recording of CPU time. */
static void print_rank_sums(FILE *out, bool is_of_totals)
{
	fprintf(out, "SELECT rank, run, stack, %s, sum(weight), sumIf(weight, ",
		is_of_totals ? "sum(toUInt64(samples))" : "count()");
	if (is_of_totals)
		fputs("state", out);
	else
		fprintf(out, "bitAnd(intDiv(flags, %u), 15)", 1u << FLEET_STATE_SHIFT);
	fprintf(out, " IN (0, %d)), max(toUInt32(%s)) FROM %s", STATE_RUNNING, is_of_totals ? "minute" : "time",
		is_of_totals ? "totals" : "samples");
}

int fleet_fetch_rank_sums(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers)
{
	CLEANUP(freep) char *where = NULL;
	struct fleet_statement statement;
	struct row_cursor rows;
	bool is_of_totals;
	int r = choose_totals(fleet, selection, true);

	is_of_totals = r > 0;
	if (r == 0)
		r = parse_where(fleet, selection, &where);
	if (r >= 0)
		r = fleet_begin(&statement);
	if (r < 0)
		return r;
	print_rank_sums(statement.out, is_of_totals);
	r = print_runs(fleet, selection, statement.out);
	if (is_of_totals)
		print_minutes(selection, statement.out);
	else
		print_times(selection, statement.out);
	if (where)
		fprintf(statement.out, " AND %s", where);
	fputs(" GROUP BY rank, run, stack ORDER BY rank, run, stack", statement.out);
	r = r < 0 ? drop(fleet, selection, &statement, r) : fleet_send(fleet, &statement, &rows);
	return r < 0 ? r : take_rank_sums(fleet, &rows, answers);
}

/* ---- The newest sample ---- */

/* @since: in seconds since 1970: the server reads no older parts of the table. */
static int find_newest(struct fleet *fleet, const struct fleet_selection *selection, uint32_t since, uint64_t *ret)
{
	struct fleet_statement statement;
	struct row_cursor rows;
	int r = fleet_begin(&statement);

	if (r < 0)
		return r;
	/* Without a sample some versions answer 1970, others NULL. */
	fputs("SELECT toUInt64(if(count() = 0, 0, max(time_ms))) FROM samples", statement.out);
	r = print_runs(fleet, selection, statement.out);
	fprintf(statement.out, " AND time >= toDateTime(%" PRIu32 ")", since);
	r = r < 0 ? drop(fleet, selection, &statement, r) : fleet_send(fleet, &statement, &rows);
	if (r < 0)
		return r;
	*ret = row_cursor_number(&rows, sizeof *ret);
	return fleet_finish_rows(fleet, &rows);
}

int fleet_newest(struct fleet *fleet, const struct fleet_selection *selection, uint64_t *ret)
{
	uint64_t now_s = realtime_ns() / 1000000000u;
	int r = find_newest(fleet, selection, (uint32_t)(now_s - RECENT_S), ret);

	return r == 0 && *ret == 0 ? find_newest(fleet, selection, 0, ret) : r;
}
