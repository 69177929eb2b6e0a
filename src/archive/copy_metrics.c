/* SPDX-License-Identifier: MIT */
/* copy_metrics.c - rows of the tables of metrics that store_metric_tables names.
 *
 * Machines share a file's tables, so that each row has its host. A row of a process that is not in the source's table
 * "process" is dropped: its PID could be another one's in the new file.
 */
#include "src/archive/copy_private.h"

static int bind_column(const struct copied_table *table, const struct source *source, sqlite3_stmt *row, int column,
		       sqlite3_stmt *to)
{
	const char *name = sqlite3_column_name(row, column);

	(void)table;
	if (sqlite3_stricmp(name, "timestamp") == 0)
		return copy_bind_time(source, row, column, to, column + 1);
	if (sqlite3_stricmp(name, "pid") == 0)
		return copy_bind_pid(source, row, column, to);
	return sqlite3_bind_value(to, column + 1, sqlite3_column_value(row, column));
}

int copy_metrics(struct copy *copy, struct source *source)
{
	int r = 0;

	for (const char *const *name = store_metric_tables; *name && r >= 0; name++) {
		struct copied_table table = {
			.name = *name, .what = "rows of metrics", .keeps_first = true, .bind = bind_column
		};

		if (!copy_has(source->db, *name))
			continue;
		r = store_make_metric_table(copy->db, *name);
		if (r >= 0)
			r = copy_each_row(copy, source, &table);
	}
	return r;
}
