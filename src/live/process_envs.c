/* SPDX-License-Identifier: MIT */
/* process_envs.c - process.envs: the environment of a process. */
#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

enum { MAX_ENVIRONMENT = 32 << 20 }; /* execve(2) allows less */

static int read_variables(struct live *live, struct live_rows *rows)
{
	CLEANUP(freep) char *text = NULL;
	struct variable variable;
	const char *at;
	size_t n_bytes;
	int r;

	r = live_read_file(live->options.pid, "environ", MAX_ENVIRONMENT, &text, &n_bytes);
	if (r < 0)
		return r;
	at = text;
	while (parse_next_variable(&at, text + n_bytes, &variable)) {
		live_bytes(rows, variable.name, variable.n_name);
		if (variable.value)
			live_bytes(rows, variable.value, variable.n_value);
		else
			live_null(rows);
	}
	return 0;
}

const struct live_table live_process_envs = {
	.schema = "process",
	.name = "envs",
	.read = read_variables,
};
