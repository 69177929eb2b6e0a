/* SPDX-License-Identifier: MIT */
/* verb_list.c - lists the Python processes. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/cli.h"
#include "src/cli/pager.h"
#include "src/cli/python_program.h"
#include "src/cli/target_errors.h"
#include "src/columns/columns.h"
#include "src/target/target.h"

enum { OPTION_TREE = 0x200, MAX_COMMAND = 4096, MIN_COMMAND = 8, MAX_DEPTH = 64 };

struct process {
	pid_t pid, parent;
	char version[PYTHON_VERSION_BYTES]; /* from the file name; "": unknown */
	const char *agent;                  /* one word */
	char *user, *command;
};

struct list {
	struct process *items;
	size_t n;
};

struct options {
	bool whole_commands, tree;
};

static const struct argp_option option_list[] = {
	{ "verbose", 'v', NULL, 0, "Show full command lines (default: cut to the terminal's width)", 0 },
	{ "tree", OPTION_TREE, NULL, 0, "Show children below their parents", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'v':
		options->whole_commands = true;
		return 0;
	case OPTION_TREE:
		options->tree = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument %s: list takes none", argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.doc = "List the running Python processes that you can inspect, and the state of their agent: on, no-eval (it "
	       "runs no code), off (it has ended), other (of another version of probing), - (none), ? (not readable).\v"
	       "Examples:\n"
	       "  probing list\n"
	       "  probing list --tree -v\n",
};

static void list_done(struct list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].user);
		free(list->items[i].command);
	}
	free(list->items);
}

/* ---- Inspect processes ---- */

static char *user_of(pid_t pid)
{
	const struct passwd *user;
	struct stat st;
	char path[64], *text;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (stat(path, &st) < 0)
		return strdup("?");
	user = getpwuid(st.st_uid);
	if (user)
		return strdup(user->pw_name);
	return asprintf(&text, "%u", (unsigned)st.st_uid) < 0 ? NULL : text;
}

static const char *agent_of(pid_t pid, const char *library)
{
	struct agent_state state;
	int r = library ? inject_find(pid, library, &state) : -ENOENT;

	if (r == -EXDEV)
		return "other"; /* an agent of another version */
	if (r < 0)
		return r == -ENOENT ? "-" : "?";
	if (state.status != AGENT_ARMED)
		return state.status == AGENT_STARTING ? "starting" : "off";
	return config_is_on(&state.config, &config_eval) ? "on" : "no-eval";
}

/* Skip a process that has ended meanwhile. -ENOMEM. */
static int add(struct list *list, pid_t pid, const char *library)
{
	struct process process = { .pid = pid };
	struct proc_stat stat;

	if (!python_program(pid, process.version) || proc_stat_read(pid, 0, &stat) < 0)
		return 0;
	process.parent = stat.parent;
	process.agent = agent_of(pid, library);
	process.user = user_of(pid);
	process.command = proc_text(pid, "cmdline", MAX_COMMAND);
	list->items[list->n++] = process;
	return process.user && process.command ? 0 : -ENOMEM;
}

/* ---- Print ---- */

static const struct column process_columns[] = {
	{ "PID", 7, 0, false },  { "USER", 10, 2, true },   { "PYTHON", 6, 2, true },
	{ "AGENT", 8, 2, true }, { "COMMAND", 0, 2, true },
};

static void put(const struct process *process, unsigned depth, unsigned width)
{
	struct columns columns = { .list = process_columns, .n = N_ELEMENTS(process_columns), .out = stdout };
	unsigned left;

	columns_printf(&columns, "%d", (int)process->pid);
	columns_put(&columns, process->user);
	columns_put(&columns, process->version);
	columns_put(&columns, process->agent);
	columns_start_last(&columns);
	fprintf(stdout, "%*s", (int)(2 * depth), "");
	left = MAX(width, columns.used + 2 * depth + MIN_COMMAND) - columns.used - 2 * depth;
	cell_put_start(stdout, process->command, width > 0 ? left : UINT_MAX);
	columns_end(&columns);
}

static bool has(const struct list *list, pid_t pid)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].pid == pid)
			return true;
	return false;
}

static void put_children(const struct list *list, pid_t parent, unsigned depth, unsigned columns)
{
	for (size_t i = 0; i < list->n && depth < MAX_DEPTH; i++) {
		if (list->items[i].parent != parent)
			continue;
		put(&list->items[i], depth, columns);
		put_children(list, list->items[i].pid, depth + 1, columns);
	}
}

static void put_list(const struct list *list, const struct options *options)
{
	struct columns head = { .list = process_columns, .n = N_ELEMENTS(process_columns), .out = stdout };
	unsigned columns = options->whole_commands ? 0 : cli_columns(STDOUT_FILENO);

	pager_start();
	columns_put_head(&head);
	for (size_t i = 0; i < list->n; i++) {
		if (options->tree && has(list, list->items[i].parent))
			continue; /* printed below its parent */
		put(&list->items[i], 0, columns);
		if (options->tree)
			put_children(list, list->items[i].pid, 1, columns);
	}
}

static int run_list(int argc, char **argv)
{
	CLEANUP(target_options_done) struct target_options wanted = { 0 };
	CLEANUP(targets_done) struct targets targets = { 0 };
	CLEANUP(list_done) struct list list = { 0 };
	CLEANUP(freep) char *library = agent_path();
	struct options options = { 0 };
	int r, status;

	cli_parse(&argp, argc, argv, 0, &options);
	r = glob_list_add(&wanted.comms, "*");
	status = r < 0 ? cli_fail(EXIT_FAILED, "not enough memory") : target_find(&wanted, &targets);
	if (status != EXIT_OK)
		return status;
	list.items = calloc(targets.n + 1, sizeof *list.items);
	r = list.items ? 0 : -ENOMEM;
	for (size_t i = 0; r >= 0 && i < targets.n; i++)
		r = add(&list, targets.pids[i], library);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	put_list(&list, &options);
	target_print_refused(&targets, "listed");
	return EXIT_OK;
}

const struct verb verb_list = {
	.name = "list",
	.aliases = "ls l",
	.summary = "list the running Python processes",
	.argp = &argp,
	.pages = true,
	.run = run_list,
};
