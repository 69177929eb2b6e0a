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

#include "src/fleet/read_private.h"

enum { MINUTE_S = 60 };

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
		fprintf(out, " AND time < toDateTime(%" PRIu32 ") AND time_ms < %" PRIu64,
			whole_seconds(until + 1000), until);
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

static int take_sums(struct fleet *fleet, struct row_cursor *rows, bool has_pid, bool has_rank,
		     struct fleet_answers *answers)
{
	while (row_cursor_more(rows)) {
		struct fleet_sum sum = { .rank = -1 };
		int r;

		if (has_pid || has_rank)
			sum.run = row_cursor_number(rows, sizeof sum.run);
		if (has_pid) {
			sum.pid = (uint32_t)row_cursor_number(rows, sizeof sum.pid);
			sum.tid = (uint32_t)row_cursor_number(rows, sizeof sum.tid);
		}
		if (has_rank)
			sum.rank = row_cursor_int32(rows);
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

static int fetch_samples(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers)
{
	const char *group = selection->merge_processes ? "" : "run, pid, tid, ";
	CLEANUP(freep) char *where = NULL;
	char why[256] = "";
	struct fleet_statement statement;
	struct row_cursor rows;
	int r = 0;

	if (selection->where)
		r = fleet_parse_where(selection->where, &where, why, sizeof why);
	if (r == -EINVAL)
		return fleet_fail(fleet, r, "--where is not a condition on samples: %s", why);
	if (r == 0)
		r = fleet_begin(&statement);
	if (r < 0)
		return r;
	fprintf(statement.out, "SELECT %sstack, count(), sum(weight) FROM samples", group);
	r = print_runs(fleet, selection, statement.out);
	print_times(selection, statement.out);
	if (where)
		fprintf(statement.out, " AND %s", where);
	fprintf(statement.out, " GROUP BY %sstack ORDER BY %sstack", group, group);
	r = r < 0 ? drop(fleet, selection, &statement, r) : fleet_send(fleet, &statement, &rows);
	return r < 0 ? r : take_sums(fleet, &rows, !selection->merge_processes, false, answers);
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
	if (selection->has_since)
		fprintf(statement.out, " AND minute >= toDateTime(%" PRIu32 ")",
			whole_seconds(milliseconds(selection->since)));
	if (selection->has_until)
		fprintf(statement.out, " AND minute < toDateTime(%" PRIu32 ")",
			whole_seconds(milliseconds(selection->until)));
	fprintf(statement.out, " GROUP BY %sstack ORDER BY %sstack", group, group);
	r = r < 0 ? drop(fleet, selection, &statement, r) : fleet_send(fleet, &statement, &rows);
	return r < 0 ? r : take_sums(fleet, &rows, false, !selection->merge_processes, answers);
}

/* Whether all shipments of the job have single samples. */
static int are_raw(struct fleet *fleet, bool *ret)
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

/* Totals answer in a quarter of the time what they can answer. */
int fleet_fetch_sums(struct fleet *fleet, const struct fleet_selection *selection, struct fleet_answers *answers)
{
	bool of_minutes = is_minute(selection->has_since, selection->since) &&
			  is_minute(selection->has_until, selection->until),
	     is_raw;
	int r;

	if (selection->merge_processes && of_minutes && !selection->where)
		return fetch_totals(fleet, selection, answers);
	r = are_raw(fleet, &is_raw);
	if (r < 0)
		return r;
	if (is_raw)
		return fetch_samples(fleet, selection, answers);
	if (selection->where)
		return fleet_fail(fleet, -EINVAL, "the shippers send no single samples, which --where needs");
	if (!of_minutes)
		return fleet_fail(
			fleet, -EINVAL,
			"the shippers send no single samples, only sums of minutes: give whole minutes to --since and --until");
	return fetch_totals(fleet, selection, answers);
}
