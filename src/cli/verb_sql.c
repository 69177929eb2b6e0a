/* SPDX-License-Identifier: MIT */
/* verb_sql.c - SQL queries of recordings, or of a process.
 *
 * The query comes from the last argument, else from a script on stdin, else
 * from a prompt on the terminal.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/cli/pager.h"
#include "src/cli/fleet_source.h"
#include "src/live/live.h"
#include "src/sql/sql.h"

#define MIN_MEMORY (UINT64_C(16) << 20)
#define MAX_MEMORY (UINT64_C(1) << 43)

enum {
	MAX_ERROR = 1024,
	MAX_NOTE = 256,
	MAX_SCRIPT_BYTES = 64 << 20,
	OPTION_WRITE = 0x200,
	OPTION_TIMEOUT,
	OPTION_LIMIT,
	OPTION_NO_HEADER,
	OPTION_NO_ATTACH,
	OPTION_MEMORY,
};

struct options {
	char **arguments; /* of main(): large enough for all of them */
	size_t n_arguments;
	struct sql_rules rules;
	bool no_attach;
	double timeout_s; /* 0: none */
	const char *sql;  /* NULL: not given */
};

static const struct argp_option option_list[] = {
	{ "format", 'f', "FORMAT", 0,
	  "Print results as table, box, markdown, csv, json, jsonl, rows or arrow (default: table)", 0 },
	{ "no-header", OPTION_NO_HEADER, NULL, 0, "Omit column names (table, box, csv)", 0 },
	{ "limit", OPTION_LIMIT, "ROWS", 0, "Print at most ROWS rows of each result, and report if there are more", 0 },
	{ "timeout", OPTION_TIMEOUT, "TIME", 0, "Cancel statements that take longer (default: no limit)", 0 },
	{ "memory", OPTION_MEMORY, "SIZE", 0,
	  "Cancel statements that take more memory, or a file of four times this size (default: no limit)", 0 },
	{ "write", OPTION_WRITE, NULL, 0, "Allow statements to change the recording (default: read-only)", 0 },
	{ "no-attach", OPTION_NO_ATTACH, NULL, 0, "Refuse to attach other files (default: attach for reading)", 0 },
	{ 0 },
};

/* Only the last argument may be SQL. */
static void tell_apart(struct options *options, struct argp_state *state)
{
	size_t n = options->n_arguments;

	if (n > 0 && !endpoint_is_one(options->arguments[n - 1], n > 1))
		options->sql = options->arguments[--options->n_arguments];
	for (size_t i = 1; i < options->n_arguments; i++)
		if (!endpoint_is_one(options->arguments[i], false))
			argp_error(state,
				   "unexpected argument %s: give recordings or one PID, and one SQL text in quotes",
				   options->arguments[i]);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	char names[128];

	switch (key) {
	case 'f':
		if (sql_format_parse(argument, &options->rules.format) < 0) {
			sql_format_list(names, sizeof names);
			argp_error(state, "the format is %s, not %s", names, argument);
		}
		return 0;
	case OPTION_NO_HEADER:
		options->rules.no_header = true;
		return 0;
	case OPTION_LIMIT:
		options->rules.max_rows = (uint64_t)cli_parse_number(state, argument, "--limit", 1, 1e15);
		return 0;
	case OPTION_TIMEOUT:
		options->timeout_s = cli_parse_duration(state, argument, "--timeout", 0.001, 1e6);
		return 0;
	case OPTION_MEMORY:
		options->rules.max_memory = cli_parse_bytes(state, argument, "--memory", MIN_MEMORY, MAX_MEMORY);
		return 0;
	case OPTION_WRITE:
		options->rules.may_write = true;
		return 0;
	case OPTION_NO_ATTACH:
		options->no_attach = true;
		return 0;
	case ARGP_KEY_ARG:
		options->arguments[options->n_arguments++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (options->rules.format == SQL_ARROW && isatty(STDOUT_FILENO))
			argp_error(state, "arrow is a binary format: send the output to a file or a program");
		tell_apart(options, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE...|PID] [SQL]",
	.doc = "Query recordings (default: probing.db) or a running process in SQL, read-only. Without SQL, probing "
	       "reads a script from stdin, or shows a prompt on a terminal (.help for help, Ctrl-D to "
	       "leave).\v"
	       "Examples:\n"
	       "  probing sql 'SELECT name, count(*) FROM function GROUP BY name'\n"
	       "  probing sql train.db 'SELECT * FROM run' -f json\n"
	       "  probing sql train.db < questions.sql\n"
	       "  probing sql rank*.db 'SELECT run, file, command FROM run'\n"
	       "  probing sql 4242 'SELECT * FROM python.backtrace WHERE depth = 0'\n"
	       "\n"
	       "With several recordings, each table has a first column run, the number of the file; the table run "
	       "names it. IDs are unique per file: join USING (run, stack).\n"
	       "A number is a PID: its tables (probing tables PID) are read from outside, at query time; after its end, "
	       "the rows that it wrote. Write ./NUMBER for a file of that name.\n"
	       "\n"
	       "In a table and in CSV, NULL is empty (an empty text is \"\" in CSV), and a blob is shown in "
	       "hexadecimal. On a terminal a table's long texts are cut to its width. JSON is an array of objects "
	       "per statement, jsonl an object a line; rows, a line for the columns and one for each row, keeps all "
	       "types, for programs. arrow is Arrow IPC in its stream format, a stream per statement.\n"
	       "\n"
	       "clickhouse://USER@HOST/DATABASE is a fleet: its server answers, in its own SQL, and changes nothing.\n",
};

/* Read all of stdin. -EFBIG; -EINVAL: a NUL byte, so a binary file or UTF-16. */
static int read_script(char **ret)
{
	CLEANUP(freep) char *text = NULL;
	size_t n = 0, allocated = 0;
	ssize_t got;

	do {
		int r = grow(&text, n + BUFSIZ, &allocated, 1);

		if (r < 0)
			return r;
		if (n > MAX_SCRIPT_BYTES)
			return -EFBIG;
		got = read(STDIN_FILENO, text + n, allocated - n - 1);
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	} while (got != 0);
	text[n] = '\0';
	if (memchr(text, '\0', n))
		return -EINVAL;
	*ret = TAKE(text);
	return 0;
}

/* The first line is the message; show the position below only on a terminal. */
static int fail_sql(int error, char *sentence)
{
	if (!isatty(STDERR_FILENO))
		sentence[strcspn(sentence, "\n")] = '\0';
	return cli_fail_lines(error == -EINVAL || error == -E2BIG ? EXIT_BAD_DATA : EXIT_FAILED, sentence);
}

struct asking {
	const struct endpoint *endpoint;
	const struct options *options;
	const char *sql;
	char *error, *note; /* buffers of MAX_ERROR and MAX_NOTE bytes */
};

/* A refusal by a process has its own exit status. */
static int fail_asking(const void *data, int error)
{
	const struct asking *asking = data;
	const struct endpoint *endpoint = asking->endpoint;

	if (error == -EINVAL && endpoint->live && live_error(endpoint->live) < 0)
		return cli_fail_lines(cli_status(live_error(endpoint->live)), asking->error);
	return fail_sql(error, asking->error);
}

static struct sql_session session_of(const struct endpoint *endpoint, const struct options *options)
{
	struct sql_session session = {
		.db = endpoint->db,
		.rules = options->rules,
		.timeout_ns = (uint64_t)(options->timeout_s * 1e9),
	};

	if (endpoint->multi_db)
		session.behind = multi_db_connections(endpoint->multi_db, &session.n_behind);
	return session;
}

static int put_answers(const void *data, FILE *out)
{
	const struct asking *asking = data;
	struct sql_session session = session_of(asking->endpoint, asking->options);

	session.rules.columns = cli_columns(STDOUT_FILENO);
	return sql_ask(&session, asking->sql, out, asking->error, MAX_ERROR, asking->note, MAX_NOTE);
}

static int run_text(const struct endpoint *endpoint, const char *sql, const struct options *options)
{
	char error[MAX_ERROR] = "", note[MAX_NOTE] = "";
	int status;

	status = output_write("-", 0, put_answers, fail_asking,
			      &(struct asking){ endpoint, options, sql, error, note });
	if (status == EXIT_OK && note[0])
		cli_say("%s\n", note);
	return status;
}

static int run_script(const struct endpoint *endpoint, const struct options *options)
{
	CLEANUP(freep) char *script = NULL;
	int r;

	r = read_script(&script);
	if (r == -EINVAL)
		return cli_fail(EXIT_BAD_DATA, "stdin contains a NUL byte: it is not SQL text");
	if (r < 0)
		return cli_fail(cli_status(r), "the script on stdin cannot be read: %s", strerror(-r));
	return run_text(endpoint, script, options);
}

static int run_prompt(const struct endpoint *endpoint, const struct options *options)
{
	const struct sql_session session = session_of(endpoint, options);
	int r;

	r = sql_prompt(&session, endpoint->title, stdout);
	if (r < 0 && ferror(stdout))
		return cli_fail_write("-", r);
	return r < 0 ? cli_fail(EXIT_FAILED, "the prompt failed: %s", strerror(-r)) : EXIT_OK;
}

/* The statement is ClickHouse's, and one at a time. */
static int ask_fleet(const struct options *options)
{
	CLEANUP(freep) char *script = NULL;
	int r;

	if (options->n_arguments > 1)
		return cli_fail(EXIT_USAGE, "one fleet at a time, and no recordings beside it");
	if (options->rules.may_write)
		return cli_fail(EXIT_USAGE, "--write changes recordings; a fleet is read only");
	if (options->sql)
		return fleet_source_ask(options->arguments[0], options->sql, &options->rules);
	if (isatty(STDIN_FILENO))
		return cli_fail(EXIT_USAGE, "there is no prompt for a fleet: give the SQL as an argument, or on stdin");
	r = read_script(&script);
	if (r < 0)
		return cli_fail(cli_status(r), "the SQL on stdin cannot be read: %s", strerror(-r));
	return fleet_source_ask(options->arguments[0], script, &options->rules);
}

static int run_sql(int argc, char **argv)
{
	CLEANUP(freep) char **arguments = calloc((size_t)argc + 1, sizeof *arguments);
	struct options options = { .arguments = arguments };
	struct endpoint endpoint;
	int status;

	if (!arguments)
		return cli_fail(EXIT_FAILED, "not enough memory");
	cli_parse(&argp, argc, argv, 0, &options);
	if (options.n_arguments > 0 && fleet_source_is_one(arguments[0]))
		return ask_fleet(&options);
	status = endpoint_open((const char *const *)arguments, options.n_arguments, options.rules.may_write, &endpoint);
	if (status != EXIT_OK)
		return status;
	if (options.rules.may_write)
		pager_forbid(); /* a user who quits it would end the change half-way */
	if (options.no_attach)
		endpoint_forbid_attach(&endpoint);
	if (options.rules.max_memory > 0) {
		int r = sql_limit_memory(options.rules.max_memory);

		if (r < 0)
			return endpoint_finish(&endpoint,
					       cli_fail(EXIT_FAILED, "memory cannot be limited: %s", strerror(-r)));
	}
	if (options.sql)
		status = run_text(&endpoint, options.sql, &options);
	else if (isatty(STDIN_FILENO))
		status = run_prompt(&endpoint, &options);
	else
		status = run_script(&endpoint, &options);
	return endpoint_finish(&endpoint, status);
}

const struct verb verb_sql = {
	.name = "sql",
	.aliases = "query q",
	.summary = "query recordings or a running process in SQL",
	.argp = &argp,
	.pages = true,
	.run = run_sql,
};
