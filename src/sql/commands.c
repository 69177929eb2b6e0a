/* SPDX-License-Identifier: MIT */
/* commands.c - commands of the prompt: lines that begin with a dot. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/sql/prompt.h"

enum { MAX_SCRIPT_BYTES = 64 << 20, NAME_WIDTH = 20 };

static int command_quit(struct prompt *prompt, const char *argument)
{
	(void)argument;
	prompt->is_done = true;
	return 0;
}

static void put_visible(FILE *out, const char *bytes, size_t n)
{
	struct sql_text text = { 0 };
	unsigned width = 0;

	if (sql_text_put_visible(&text, bytes, n, &width) == 0)
		fwrite(text.bytes, 1, text.n, out);
	sql_text_done(&text);
}

static int print_table(void *data, const struct sql_table *table)
{
	struct prompt *prompt = data;
	bool is_main = strcmp(table->schema, "main") == 0;
	int n = (int)strlen(table->name) + (is_main ? 0 : (int)strlen(table->schema) + 1);

	if (!is_main) {
		put_visible(prompt->screen, table->schema, strlen(table->schema));
		fputc('.', prompt->screen);
	}
	put_visible(prompt->screen, table->name, strlen(table->name));
	fprintf(prompt->screen, "%*s  ", MAX(NAME_WIDTH - n, 0), "");
	if (table->doc[0])
		put_visible(prompt->screen, table->doc, strlen(table->doc));
	else
		put_visible(prompt->screen, table->columns, strlen(table->columns));
	fputc('\n', prompt->screen);
	return 0;
}

static int command_tables(struct prompt *prompt, const char *argument)
{
	int r = sql_each_table(prompt->session.db, argument[0] ? argument : NULL, print_table, prompt);

	if (r == -EINVAL)
		fprintf(prompt->screen, "%s\n", sqlite3_errmsg(prompt->session.db));
	if (r == -E2BIG)
		fputs("a view in it, or a name, is too large\n", prompt->screen);
	return r == -EINVAL || r == -E2BIG ? 0 : r;
}

/* Declarations of all databases as written; without one, the columns. */
static char *schema_sql_of(sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *word = "";

	if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_database_list", -1, &statement, NULL) != SQLITE_OK)
		return sqlite3_str_finish(text);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *schema = (const char *)sqlite3_column_text(statement, 0);

		sqlite3_str_appendf(text,
				    "%sSELECT sql FROM \"%w\".sqlite_schema WHERE sql IS NOT NULL AND"
				    " (?1 = '' OR name = ?1 COLLATE NOCASE OR %Q || '.' || name = ?1 COLLATE NOCASE)",
				    word, schema, schema);
		word = " UNION ALL ";
	}
	sqlite3_str_appendall(text, " UNION ALL SELECT 'CREATE TABLE sample(' || char(10) ||"
				    " group_concat('  ' || trim(name || ' ' || type), ',' || char(10)) || ')'"
				    " FROM pragma_table_xinfo('sample') WHERE ?1 IN ('', 'sample') AND NOT EXISTS"
				    " (SELECT 1 FROM sqlite_schema WHERE name = 'sample') HAVING count(*) > 0");
	return sqlite3_str_finish(text);
}

static int command_schema(struct prompt *prompt, const char *argument)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	char *sql = schema_sql_of(prompt->session.db);
	unsigned n = 0;
	int code;

	if (!sql)
		return -ENOMEM;
	code = sqlite3_prepare_v2(prompt->session.db, sql, -1, &statement, NULL);
	sqlite3_free(sql);
	if (code != SQLITE_OK) {
		fprintf(prompt->screen, "%s\n", sqlite3_errmsg(prompt->session.db));
		return 0;
	}
	sqlite3_bind_text(statement, 1, argument, -1, SQLITE_STATIC);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);

		for (; text && *text; text++)
			putc(*text == '\n' || !iscntrl((unsigned char)*text) ? *text : '?', prompt->out);
		fputs(";\n", prompt->out);
		n++;
	}
	if (n == 0)
		fprintf(prompt->screen, "there is no table %s; .tables lists them\n", argument);
	return 0;
}

static int command_mode(struct prompt *prompt, const char *argument)
{
	char names[128];
	enum sql_format format;

	if (sql_format_parse(argument, &format) == 0) {
		if (format == SQL_ARROW)
			fprintf(prompt->screen, "arrow is a binary format: probing sql -f arrow FILE SQL >OUTPUT\n");
		else
			prompt->session.rules.format = format;
		return 0;
	}
	sql_format_list(names, sizeof names);
	fprintf(prompt->screen, "the mode is one of %s\n", names);
	return 0;
}

static int command_timing(struct prompt *prompt, const char *argument)
{
	if (strcmp(argument, "on") == 0 || strcmp(argument, "off") == 0)
		prompt->is_timing = strcmp(argument, "on") == 0;
	else
		fprintf(prompt->screen, "timing is on or off; it is %s\n", prompt->is_timing ? "on" : "off");
	return 0;
}

static int command_run(struct prompt *prompt, const char *argument)
{
	CLEANUP(freep) char *text = NULL;
	size_t n = 0;
	int r;

	r = read_file(argument, MAX_SCRIPT_BYTES, &text, &n);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		fprintf(prompt->screen, "%s cannot be read: %s\n", argument, strerror(-r));
	else if (memchr(text, '\0', n))
		fprintf(prompt->screen, "%s contains a NUL byte: it is not SQL text\n", argument);
	return r < 0 || memchr(text, '\0', n) ? 0 : prompt_run(prompt, text);
}

static int fail_output(struct prompt *prompt, const char *path, int error)
{
	char sentence[MAX_SENTENCE];

	if (error == -EEXIST)
		snprintf(sentence, sizeof sentence,
			 "%s is a recording, or another SQLite file, and stays: name another file", path);
	else
		place_explain(error, path, sentence, sizeof sentence);
	fprintf(prompt->screen, "%s\n", sentence);
	return 0;
}

void prompt_end_output(struct prompt *prompt)
{
	char sentence[MAX_SENTENCE];
	int r;

	if (!prompt->file)
		return;
	r = fclose(TAKE(prompt->file)) != 0 ? -errno : 0;
	if (r >= 0)
		r = new_file_finish(&prompt->output);
	new_file_abandon(&prompt->output);
	if (r == 0)
		return;
	place_explain(r, "the file of .output", sentence, sizeof sentence);
	fprintf(prompt->screen, "%s\n", sentence);
}

/* Open a stream with its own descriptor: a new file keeps its descriptor until the end. */
static int open_output(const char *path, struct new_file *ret, FILE **ret_file)
{
	CLEANUP(new_file_abandon) struct new_file new = { 0 };
	int fd, r;

	r = new_file_open(&new, path, 0);
	if (r < 0)
		return r;
	fd = fcntl(new.fd, F_DUPFD_CLOEXEC, 3);
	*ret_file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!*ret_file) {
		r = -errno;
		closep(&fd);
		return r;
	}
	*ret = new;
	new = (struct new_file){ 0 };
	return 0;
}

static int command_output(struct prompt *prompt, const char *argument)
{
	struct new_file new = { 0 };
	FILE *file = NULL;
	int r;

	r = argument[0] ? open_output(argument, &new, &file) : 0;
	if (r < 0)
		return fail_output(prompt, argument, r);
	prompt_end_output(prompt);
	prompt->output = new;
	prompt->file = file;
	return 0;
}

static int command_help(struct prompt *prompt, const char *argument);

static const struct command {
	const char *name, *arguments, *summary;
	int (*run)(struct prompt *prompt, const char *argument);
} commands[] = {
	{ ".tables", "[PATTERN]", "list tables and views", command_tables },
	{ ".schema", "[TABLE]", "describe columns", command_schema },
	{ ".mode", "FORMAT", "set the output format: table, box, markdown, csv, json, jsonl", command_mode },
	{ ".timing", "on|off", "show the time of each query", command_timing },
	{ ".run", "FILE", "run the statements of a file", command_run },
	{ ".output", "[FILE]", "write answers to a file, which appears at the end; without one, here again",
	  command_output },
	{ ".help", "", "this list", command_help },
	{ ".quit", "", "leave (also Ctrl-D)", command_quit },
	{ ".exit", "", "the same", command_quit },
};

const char *prompt_command_name(size_t n)
{
	return n < N_ELEMENTS(commands) ? commands[n].name : NULL;
}

static int command_help(struct prompt *prompt, const char *argument)
{
	(void)argument;
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		fprintf(prompt->screen, "%s %-*s  %s\n", commands[i].name, (int)(18 - strlen(commands[i].name)),
			commands[i].arguments, commands[i].summary);
	fprintf(prompt->screen, "Anything else is SQL and ends with ';'. Ctrl-C drops a line or "
				"stops a query, Tab completes a name.\n");
	if (prompt->session.n_behind > 0)
		fprintf(prompt->screen, "The column run is the number of a row's file, and the table run names it.\n"
					"IDs are unique per file: join USING (run, stack).\n");
	return 0;
}

int prompt_command(struct prompt *prompt, char *line)
{
	char *argument = line + strcspn(line, " \t\r\n;");
	size_t n = (size_t)(argument - line), n_argument;

	argument += strspn(argument, " \t\r\n;");
	n_argument = strlen(argument);
	while (n_argument > 0 && strchr(" \t\r\n;", argument[n_argument - 1]))
		argument[--n_argument] = '\0';
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		if (strlen(commands[i].name) == n && strncmp(commands[i].name, line, n) == 0)
			return commands[i].run(prompt, argument);
	fprintf(prompt->screen, "there is no command %.*s; .help lists them\n", (int)n, line);
	return 0;
}
