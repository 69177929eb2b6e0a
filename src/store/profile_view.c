/* SPDX-License-Identifier: MIT */
/*
 * profile_view.c - the queries of a filtered profile.
 *
 * The file has sums of all samples; those of a time range, or of a GIL state, are computed while blocks are
 * decoded (sample_total); any other condition is evaluated for each sample. Files of version 1 have no blocks, and
 * the older ones lack columns.
 */
#include <errno.h>

#include "src/store/profile_private.h"
#include "src/store/store_private.h"

bool profile_can_ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	sqlite3_finalize(statement);
	return code != SQLITE_ERROR;
}

/* catalogue_add_optional() may put an empty temporary table in its place. */
bool profile_has_blocks(sqlite3 *db)
{
	return profile_can_ask(db, "SELECT data FROM main.sample_block LIMIT 0");
}

bool profile_has_samples(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	bool has;

	has = sqlite3_prepare_v2(db, "SELECT 1 FROM sample LIMIT 1", -1, &statement, NULL) == SQLITE_OK &&
	      sqlite3_step(statement) == SQLITE_ROW;
	sqlite3_finalize(statement);
	return has;
}

/* On its own line, so that a trailing comment ends there; nothing may follow the condition. */
static int check_where(sqlite3 *db, const char *where)
{
	char *sql = sqlite3_mprintf("SELECT 1 FROM sample WHERE (\n%s\n)", where);
	sqlite3_stmt *statement = NULL;
	const char *rest = NULL;
	int r;

	if (!sql)
		return -ENOMEM;
	r = store_errno(db, sqlite3_prepare_v2(db, sql, -1, &statement, &rest));
	if (r == 0 && *rest != '\0')
		r = -EINVAL;
	sqlite3_finalize(statement);
	sqlite3_free(sql);
	return r;
}

/* -ENOTSUP: there is no such column. */
static int check_label(sqlite3 *db, const char *label)
{
	char *sql = sqlite3_mprintf("SELECT %s FROM sample LIMIT 0", label);
	bool is_there = sql && profile_can_ask(db, sql);

	sqlite3_free(sql);
	return !sql ? -ENOMEM : is_there ? 0 : -ENOTSUP;
}

static bool is_all(const struct profile_filter *filter)
{
	return !filter->has_since && !filter->has_until && !filter->where && !filter->held && !filter->label;
}

static void put_bound(sqlite3_str *sql, bool has, double bound)
{
	if (has)
		sqlite3_str_appendf(sql, "%!.17g", bound);
	else
		sqlite3_str_appendall(sql, "NULL");
}

static void put_conditions(sqlite3_str *sql, const struct profile_filter *filter)
{
	sqlite3_str_appendall(sql, " WHERE 1");
	if (filter->has_since)
		sqlite3_str_appendf(sql, " AND timestamp >= %!.17g", filter->since);
	if (filter->has_until)
		sqlite3_str_appendf(sql, " AND timestamp < %!.17g", filter->until);
	if (filter->held)
		sqlite3_str_appendall(sql, " AND gil = 1");
	if (filter->where)
		sqlite3_str_appendf(sql, " AND (\n%s\n)", filter->where);
}

static char *totals_sql(sqlite3 *db, const struct profile_filter *filter)
{
	sqlite3_str *sql = sqlite3_str_new(db);

	if (is_all(filter)) {
		sqlite3_str_appendall(sql, "SELECT pid, tid, stack, samples, weight FROM stack_total");
	} else if (filter->label) {
		sqlite3_str_appendf(sql, "SELECT pid, tid, coalesce(stack, 0), count(*), sum(weight), %s FROM sample",
				    filter->label);
		put_conditions(sql, filter);
		sqlite3_str_appendall(sql, " GROUP BY 1, 2, 3, 6 ORDER BY 6");
	} else if (!filter->where && profile_has_blocks(db)) {
		sqlite3_str_appendall(sql, "SELECT pid, tid, coalesce(stack, 0), samples, weight FROM sample_total(");
		put_bound(sql, filter->has_since, filter->since);
		sqlite3_str_appendall(sql, ", ");
		put_bound(sql, filter->has_until, filter->until);
		sqlite3_str_appendf(sql, ")%s ORDER BY pid, tid, stack", filter->held ? " WHERE gil = 1" : "");
	} else {
		sqlite3_str_appendall(sql, "SELECT pid, tid, coalesce(stack, 0), count(*), sum(weight) FROM sample");
		put_conditions(sql, filter);
		sqlite3_str_appendall(sql, " GROUP BY 1, 2, 3");
	}
	return sqlite3_str_finish(sql);
}

static char *samples_sql(sqlite3 *db, const struct profile_filter *filter)
{
	bool has_gil = profile_can_ask(db, "SELECT gil, gc FROM sample LIMIT 0");
	bool has_state = profile_can_ask(db, "SELECT state FROM sample LIMIT 0");
	sqlite3_str *sql = sqlite3_str_new(db);

	sqlite3_str_appendf(sql, "SELECT timestamp, pid, tid, cpu, weight, verdict, stack, %s, %s FROM sample",
			    has_gil ? "gil, gc" : "NULL, NULL", has_state ? "state" : "NULL");
	put_conditions(sql, filter);
	sqlite3_str_appendall(sql, " ORDER BY rowid");
	return sqlite3_str_finish(sql);
}

int profile_view_sql(sqlite3 *db, const struct profile_filter *filter, char **ret_totals, char **ret_samples)
{
	char *totals, *samples = NULL;
	int r;

	if (filter->held && !profile_can_ask(db, "SELECT gil FROM sample LIMIT 0"))
		return -ENODATA;
	r = filter->label ? check_label(db, filter->label) : 0;
	if (r >= 0 && filter->where)
		r = check_where(db, filter->where);
	if (r < 0)
		return r;
	totals = totals_sql(db, filter);
	if (filter->with_samples)
		samples = samples_sql(db, filter);
	if (!totals || (filter->with_samples && !samples)) {
		sqlite3_free(totals);
		sqlite3_free(samples);
		return -ENOMEM;
	}
	*ret_totals = totals;
	*ret_samples = samples;
	return 0;
}
