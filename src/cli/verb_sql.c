/* verb_sql.c - ask a recording in SQL.
 *
 * Where the question comes from: the argument, else a script on stdin, else
 * somebody at a terminal, who gets a prompt.
 */
#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/sql/sql.h"

enum {
	MAX_ARGUMENTS = 2,
	MAX_ERROR = 1024,
	MAX_SCRIPT_BYTES = 64 << 20,
};

struct options {
	char *arguments[MAX_ARGUMENTS];
	unsigned n_arguments;
	enum sql_format format;
	/* What the arguments mean; NULL: the default. */
	const char *recording, *sql;
};

static const struct argp_option option_list[] = {
	{ "format", 'f', "FORMAT", 0, "Answer as table, csv, json or rows (default: table)", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'f':
		if (sql_format_parse(argument, &options->format) < 0)
			argp_error(state, "the format is table, csv, json or rows, not %s", argument);
		return 0;
	case ARGP_KEY_ARG:
		if (options->n_arguments == MAX_ARGUMENTS)
			argp_error(state,
				   "one recording and one text of SQL (in quotes), but what is %s?",
				   argument);
		options->arguments[options->n_arguments++] = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE] [SQL]",
	.doc = "Ask a recording (default: probing.db) in SQL. The recording is only read. "
	       "Without SQL, a script is read from stdin; on a terminal there is a prompt, "
	       "where .help helps and Ctrl-D leaves.\v"
	       "Examples:\n"
	       "  probing sql 'SELECT name, count(*) FROM function GROUP BY name'\n"
	       "  probing sql train.db 'SELECT * FROM run' -f json\n"
	       "  probing sql train.db < questions.sql\n"
	       "\n"
	       "In a table and in CSV, NULL is empty (an empty text is \"\" in CSV), and a blob is "
	       "shown in hexadecimal. On a terminal a table's long texts are cut to its width. "
	       "JSON is an array of objects per statement; rows, a line for the columns and one for each row, keeps "
	       "all types, for programs.\n",
};

static bool ends_in(const char *text, const char *ending)
{
	size_t n = strlen(text), n_ending = strlen(ending);

	return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

/* A single argument may be either: what names a file is one, then what reads like SQL. */
static bool is_recording(const char *argument)
{
	static const char *const beginnings[] = { "SELECT", "WITH", "EXPLAIN", "PRAGMA", "VALUES" };

	if (access(argument, F_OK) == 0 || ends_in(argument, ".db"))
		return true;
	for (size_t i = 0; i < N_ELEMENTS(beginnings); i++) {
		size_t n = strlen(beginnings[i]);

		if (strncasecmp(argument, beginnings[i], n) == 0 &&
		    !isalnum((unsigned char)argument[n]))
			return false;
	}
	return argument[0] != '\0' && !strpbrk(argument, " \t\n;");
}

static void tell_apart(struct options *options)
{
	if (options->n_arguments == 2) {
		options->recording = options->arguments[0];
		options->sql = options->arguments[1];
	} else if (options->n_arguments == 1 && is_recording(options->arguments[0])) {
		options->recording = options->arguments[0];
	} else if (options->n_arguments == 1) {
		options->sql = options->arguments[0];
	}
}

/* All of stdin. -EFBIG; -EINVAL a NUL byte: a binary file, or UTF-16. */
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

/* The first line is the sentence; the place under it is for somebody who looks. */
static int fail_sql(int error, char *sentence)
{
	if (!isatty(STDERR_FILENO))
		sentence[strcspn(sentence, "\n")] = '\0';
	return cli_fail(error == -EINVAL ? EXIT_BAD_DATA : EXIT_FAILED, "%s", sentence);
}

static int run_text(sqlite3 *db, const char *sql, enum sql_format format)
{
	char error[MAX_ERROR] = "";
	CLEANUP(output_abandon) struct output output;
	int r;

	r = output_open(&output, "-");
	if (r < 0)
		return cli_fail_open("-", r);
	r = sql_run(db, sql, format, cli_columns(STDOUT_FILENO), output.file, error, sizeof error);
	if (output.error < 0)
		return cli_fail_write("-", output.error);
	if (r < 0)
		return fail_sql(r, error);
	r = output_finish(&output);
	return r < 0 ? cli_fail_write("-", r) : EXIT_OK;
}

static int run_script(sqlite3 *db, enum sql_format format)
{
	CLEANUP(freep) char *script = NULL;
	int r;

	r = read_script(&script);
	if (r == -EINVAL)
		return cli_fail(EXIT_BAD_DATA, "stdin holds a NUL byte: that is no text of SQL");
	if (r < 0)
		return cli_fail(cli_status(r), "the script on stdin cannot be read: %s",
				strerror(-r));
	return run_text(db, script, format);
}

static int run_prompt(sqlite3 *db, const struct options *options)
{
	int r;

	r = sql_prompt(db, options->recording ? options->recording : "probing.db", options->format,
		       stdout);
	if (r < 0 && ferror(stdout))
		return cli_fail_write("-", r);
	return r < 0 ? cli_fail(EXIT_FAILED, "the prompt failed: %s", strerror(-r)) : EXIT_OK;
}

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)

static int run_sql(int argc, char **argv)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	struct options options = { .format = SQL_TABLE };
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	tell_apart(&options);
	status = cli_open_recording(options.recording, &db);
	if (status != EXIT_OK)
		return status;
	if (options.sql)
		return run_text(db, options.sql, options.format);
	if (isatty(STDIN_FILENO))
		return run_prompt(db, &options);
	return run_script(db, options.format);
}

const struct verb verb_sql = {
	.name = "sql",
	.aliases = "query",
	.summary = "ask a recording in SQL",
	.run = run_sql,
};
