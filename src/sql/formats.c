/* SPDX-License-Identifier: MIT */
/* formats.c - the formats there are: a new one is its file, a line here, and one in enum sql_format. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/sql/format.h"
#include "src/sql/sql.h"

const struct sql_writer *const sql_writers[] = {
	[SQL_TABLE] = &sql_writer_table, [SQL_CSV] = &sql_writer_csv,           [SQL_JSON] = &sql_writer_json,
	[SQL_JSONL] = &sql_writer_jsonl, [SQL_MARKDOWN] = &sql_writer_markdown, [SQL_BOX] = &sql_writer_box,
	[SQL_ROWS] = &sql_writer_rows,   [SQL_ARROW] = &sql_writer_arrow,
};

int sql_format_parse(const char *name, enum sql_format *ret)
{
	for (size_t i = 0; i < N_ELEMENTS(sql_writers); i++)
		if (strcmp(sql_writers[i]->name, name) == 0) {
			*ret = (enum sql_format)i;
			return 0;
		}
	return -EINVAL;
}

const char *sql_format_name(size_t n)
{
	return n < N_ELEMENTS(sql_writers) ? sql_writers[n]->name : NULL;
}

void sql_format_list(char *to, size_t n_bytes)
{
	to[0] = '\0';
	for (size_t i = 0; i < N_ELEMENTS(sql_writers); i++) {
		size_t used = strlen(to);
		const char *between = i == 0 ? "" : i + 1 < N_ELEMENTS(sql_writers) ? ", " : " or ";

		snprintf(to + used, n_bytes - used, "%s%s", between, sql_writers[i]->name);
	}
}
