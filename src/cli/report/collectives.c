/* SPDX-License-Identifier: MIT */
/*
 * collectives.c - see report.h.
 *
 * All ranks of a group call its collectives in the same order, and torch numbers them in each rank. So the first number
 * that a rank has not come to, and in which others wait, is where a job hangs; and a number that is another operation in
 * another rank is why. A Flight Recorder keeps the last operations only: what is older than the first ones of any rank
 * is not compared. A rank may have several dumps, of attempts or of both forms: the newest one is compared.
 */
#include "src/cli/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank.h"
#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store.h"

/* Of each rank the dump with the newest operation. ?3: 0: each rank has one. */
#define NEWEST                                                                                                         \
	"(?3 = 0 OR dump = (SELECT dump FROM comm_flight AS n WHERE n.rank = comm_flight.rank ORDER BY n.created DESC" \
	" LIMIT 1))"

/* Collectives of a group, ?1, by rank: of one launch several operations may have one number. */
#define OWN                                                                                                                 \
	"(SELECT rank, seq, group_concat(op, ' + ') AS ops, group_concat(op || CASE WHEN op IN ('all_reduce', 'broadcast'," \
	" 'reduce') THEN ' ' || coalesce(bytes, '') ELSE '' END, ' + ') AS key, min(is_ended) AS is_ended,"                 \
	" max(CASE WHEN is_ended THEN NULL ELSE state END) AS state, min(record) AS record, func, file, line"               \
	" FROM (SELECT * FROM comm_flight WHERE \"group\" = ?1 AND NOT is_message AND rank >= 0 AND seq > 0 AND " NEWEST    \
	" ORDER BY record)"                                                                                                 \
	" GROUP BY rank, seq)"
#define LAST                                                                                                                         \
	"(SELECT rank, max(seq) AS last FROM (SELECT rank, seq FROM comm_flight WHERE \"group\" = ?1 AND NOT is_message AND " NEWEST \
	" UNION ALL SELECT rank, 0 FROM comm_flight_group WHERE \"group\" = ?1) WHERE rank >= 0 GROUP BY rank)"

static const char all_sql[] =
	"WITH dumps AS (SELECT dump, rank FROM comm_flight UNION SELECT dump, rank FROM comm_flight_group)"
	" SELECT (SELECT count(*) FROM dumps), (SELECT count(*) FROM dumps WHERE rank IS NULL),"
	" (SELECT count(*) - count(DISTINCT rank) FROM dumps WHERE rank >= 0), count(*),"
	" coalesce(sum(is_message AND NOT is_ended), 0) FROM comm_flight";
static const char groups_sql[] =
	"SELECT name, max(description), max(ranks) FROM (SELECT \"group\" AS name, description, ranks FROM comm_flight_group"
	" UNION ALL SELECT DISTINCT \"group\", NULL, NULL FROM comm_flight WHERE \"group\" IS NOT NULL) GROUP BY name"
	" ORDER BY CAST(name AS INTEGER), name";
static const char spread_sql[] = "SELECT min(last), max(last), (SELECT min(seq) FROM " OWN
				 " WHERE NOT is_ended) FROM " LAST;
static const char differs_sql[] =
	"WITH own AS " OWN " SELECT min(seq) FROM (SELECT seq FROM own WHERE seq > (SELECT coalesce(max(first), 0) FROM"
	" (SELECT CASE WHEN min(record) > 0 THEN min(seq) ELSE 0 END AS first FROM own GROUP BY rank))"
	" GROUP BY seq HAVING count(DISTINCT key) > 1)";
static const char parts_sql[] =
	"WITH own AS " OWN
	" SELECT l.rank, l.last >= ?2, min(l.last, ?2), o.ops, CASE WHEN o.is_ended THEN 'ended' ELSE"
	" o.state END, o.func, o.file, o.line FROM " LAST " AS l LEFT JOIN own AS o ON o.rank = l.rank AND"
	" o.seq = min(l.last, ?2) ORDER BY 2, 4, 5, 6, 7, 8, 3, 1";

static bool has_tables(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;

	return sqlite3_prepare_v2(
		       db,
		       "SELECT 1 WHERE (SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name IN"
		       " ('comm_flight', 'comm_flight_group')) = 2",
		       -1, &statement, NULL) == SQLITE_OK &&
	       sqlite3_step(statement) == SQLITE_ROW;
}

static int take_text(sqlite3_stmt *row, int column, char **ret)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* @group, @n_older: what a question about a group, which is not NULL, needs. */
static int begin(sqlite3 *db, const char *sql, const char *group, int64_t n_older, sqlite3_stmt **ret)
{
	int code = sqlite3_prepare_v2(db, sql, -1, ret, NULL);

	if (code == SQLITE_OK && group)
		code = sqlite3_bind_text(*ret, 1, group, -1, SQLITE_STATIC);
	if (code == SQLITE_OK && group)
		code = sqlite3_bind_int64(*ret, 3, n_older);
	return store_errno(db, code);
}

/* One row of numbers; NULL is 0. */
static int read_numbers(sqlite3 *db, const char *sql, const char *group, int64_t n_older, int64_t *ret, int n)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code, r = begin(db, sql, group, n_older, &row);

	for (int i = 0; i < n; i++)
		ret[i] = 0;
	if (r < 0)
		return r;
	code = sqlite3_step(row);
	for (int i = 0; i < n && code == SQLITE_ROW; i++)
		ret[i] = sqlite3_column_int64(row, i);
	return store_errno(db, code);
}

/* ---- Ranks ---- */

static bool is_same_text(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool is_same(const struct report_group_ranks *one, const struct report_group_ranks *other)
{
	return one->has_come == other->has_come && one->has_dump == other->has_dump && one->seq == other->seq &&
	       one->line == other->line && is_same_text(one->op, other->op) && is_same_text(one->state, other->state) &&
	       is_same_text(one->func, other->func) && is_same_text(one->file, other->file);
}

static int add_rank(struct report_group_ranks *part, int64_t rank)
{
	int r = grow(&part->ranks, part->n, &part->allocated, sizeof *part->ranks);

	if (r >= 0)
		part->ranks[part->n++] = rank;
	return r;
}

/* Takes the texts of @part, also on failure. */
static int add_part(struct report_group *group, struct report_group_ranks *part, int64_t rank)
{
	struct report_group_ranks *last = group->n_parts > 0 ? &group->parts[group->n_parts - 1] : NULL;
	int r = 0;

	if (!last || !is_same(last, part)) {
		r = grow(&group->parts, group->n_parts, &group->parts_allocated, sizeof *group->parts);
		if (r >= 0) {
			last = &group->parts[group->n_parts++];
			*last = *part;
			return add_rank(last, rank);
		}
	} else {
		r = add_rank(last, rank);
	}
	free(part->op);
	free(part->state);
	free(part->func);
	free(part->file);
	return r;
}

static int read_part(struct report_group *group, sqlite3_stmt *row)
{
	struct report_group_ranks part = { .has_dump = true,
					   .has_come = sqlite3_column_int(row, 1) != 0,
					   .seq = sqlite3_column_int64(row, 2),
					   .line = sqlite3_column_int64(row, 7) };
	int r;

	r = take_text(row, 3, &part.op);
	if (r >= 0)
		r = take_text(row, 4, &part.state);
	if (r >= 0)
		r = take_text(row, 5, &part.func);
	if (r >= 0)
		r = take_text(row, 6, &part.file);
	if (r >= 0)
		return add_part(group, &part, sqlite3_column_int64(row, 0));
	free(part.op);
	free(part.state);
	free(part.func);
	return r;
}

static int read_parts(sqlite3 *db, struct report_group *group, int64_t n_older)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code = SQLITE_OK, r = begin(db, parts_sql, group->name, n_older, &row);

	if (r >= 0)
		r = store_errno(db, sqlite3_bind_int64(row, 2, group->seq));
	while (r >= 0 && (code = sqlite3_step(row)) == SQLITE_ROW)
		r = read_part(group, row);
	return r < 0 ? r : store_errno(db, code);
}

static bool has_rank(const struct report_group *group, int64_t rank)
{
	for (size_t i = 0; i < group->n_parts; i++)
		for (size_t j = 0; j < group->parts[i].n; j++)
			if (group->parts[i].ranks[j] == rank)
				return true;
	return false;
}

/* The next number of "[0, 1, 2]"; -1: there is none. */
static int64_t next_rank(const char **at)
{
	int64_t rank;
	char *end;

	*at += strcspn(*at, "0123456789");
	if (!**at)
		return -1;
	rank = strtoll(*at, &end, 10);
	*at = end;
	return rank > RANK_MAX_NUMBER ? -1 : rank;
}

/* Ranks of the group without a dump. */
static int add_missing(struct report_group *group, const char *members)
{
	struct report_group_ranks missing = { 0 };
	int64_t rank, n = 0;
	int r = 0;

	while (r >= 0 && (rank = next_rank(&members)) >= 0 && n <= RANK_MAX_NUMBER) {
		n++;
		if (!has_rank(group, rank))
			r = add_rank(&missing, rank);
	}
	group->n_ranks = n;
	if (r >= 0 && missing.n > 0)
		r = grow(&group->parts, group->n_parts, &group->parts_allocated, sizeof *group->parts);
	if (r < 0 || missing.n == 0)
		free(missing.ranks);
	else
		group->parts[group->n_parts++] = missing;
	return r;
}

/* ---- Groups ---- */

static int judge(sqlite3 *db, struct report_group *group, int64_t n_older)
{
	enum { LOW, HIGH, OPEN, N };
	int64_t spread[N], differs;
	int r = read_numbers(db, spread_sql, group->name, n_older, spread, N);

	if (r >= 0)
		r = read_numbers(db, differs_sql, group->name, n_older, &differs, 1);
	if (r < 0)
		return r;
	group->state = GROUP_ENDED;
	group->seq = spread[LOW];
	if (differs > 0 && differs <= spread[LOW]) {
		group->state = GROUP_DIFFERS;
		group->seq = differs;
	} else if (spread[OPEN] > 0 && spread[LOW] < spread[HIGH]) {
		group->state = GROUP_BEHIND;
		group->seq = spread[LOW] + 1;
	} else if (spread[OPEN] > 0) {
		group->state = GROUP_GOES_ON;
		group->seq = spread[OPEN];
	}
	return 0;
}

static int read_group(sqlite3 *db, sqlite3_stmt *row, struct report_collectives *to)
{
	CLEANUP(freep) char *members = NULL;
	struct report_group *group;
	int r;

	r = grow(&to->groups, to->n_groups, &to->groups_allocated, sizeof *to->groups);
	if (r < 0)
		return r;
	group = &to->groups[to->n_groups++];
	*group = (struct report_group){ 0 };
	r = take_text(row, 0, &group->name);
	if (r >= 0)
		r = take_text(row, 1, &group->description);
	if (r >= 0)
		r = take_text(row, 2, &members);
	if (r >= 0)
		r = judge(db, group, to->n_older);
	if (r >= 0)
		r = read_parts(db, group, to->n_older);
	if (r < 0)
		return r;
	for (size_t i = 0; i < group->n_parts; i++)
		group->n_ranks += (int64_t)group->parts[i].n;
	return members ? add_missing(group, members) : 0;
}

static int read_groups(sqlite3 *db, struct report_collectives *to)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *row = NULL;
	int code = SQLITE_OK, r = begin(db, groups_sql, NULL, 0, &row);

	while (r >= 0 && (code = sqlite3_step(row)) == SQLITE_ROW)
		r = read_group(db, row, to);
	return r < 0 ? r : code != SQLITE_DONE ? store_errno(db, code) : 0;
}

int collectives_summary(sqlite3 *db, struct report_collectives *ret)
{
	enum { DUMPS_THERE, WITHOUT_RANK, OLDER, OPERATIONS, OPEN_MESSAGES, N };
	int64_t all[N];
	int r;

	*ret = (struct report_collectives){ 0 };
	if (!has_tables(db))
		return 0;
	r = read_numbers(db, all_sql, NULL, 0, all, N);
	if (r < 0)
		return r;
	ret->n_dumps = all[DUMPS_THERE];
	ret->n_without_rank = all[WITHOUT_RANK];
	ret->n_older = all[OLDER];
	ret->n_operations = all[OPERATIONS];
	ret->n_open_messages = all[OPEN_MESSAGES];
	if (ret->n_without_rank == ret->n_dumps)
		return 1;
	r = read_groups(db, ret);
	return r < 0 ? r : 1;
}
