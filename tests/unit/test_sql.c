/* SPDX-License-Identifier: MIT */
/* Questions and answers: the three formats, mistakes with their place, the refusal to write,
 * names that are near, and the prompt on a terminal of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/sql/sql.h"
#include "src/store/series.h"

struct answer {
	char *text;
	size_t n;
	int r;
	char error[1024];
};

static void answer_done(struct answer *answer)
{
	free(answer->text);
}

static void open_schema(sqlite3 **ret)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, catalogue_schema_sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(series_register(db), SQLITE_OK);
	*ret = db;
}

static int setup(void **state)
{
	open_schema((sqlite3 **)state);
	return 0;
}

static int teardown(void **state)
{
	return sqlite3_close(*state) == SQLITE_OK ? 0 : -1;
}

static void ask(sqlite3 *db, const char *sql, enum sql_format format, unsigned columns, struct answer *ret)
{
	FILE *out;

	*ret = (struct answer){ 0 };
	out = open_memstream(&ret->text, &ret->n);
	assert_non_null(out);
	ret->r = sql_run(db, sql, format, columns, out, ret->error, sizeof ret->error);
	fclose(out);
}

static void expect(sqlite3 *db, const char *sql, enum sql_format format, unsigned columns, const char *wanted)
{
	CLEANUP(answer_done) struct answer answer;

	ask(db, sql, format, columns, &answer);
	assert_string_equal(answer.error, "");
	assert_int_equal(answer.r, 0);
	assert_string_equal(answer.text, wanted);
}

static void expect_error(sqlite3 *db, const char *sql, const char *wanted)
{
	CLEANUP(answer_done) struct answer answer;

	ask(db, sql, SQL_TABLE, 0, &answer);
	assert_int_equal(answer.r, -EINVAL);
	assert_string_equal(answer.error, wanted);
	assert_string_equal(answer.text, "");
}

static void formats_are_known_by_name(void **state)
{
	enum sql_format format = SQL_TABLE;

	(void)state;
	assert_int_equal(sql_format_parse("json", &format), 0);
	assert_int_equal(format, SQL_JSON);
	assert_int_equal(sql_format_parse("csv", &format), 0);
	assert_int_equal(format, SQL_CSV);
	assert_int_equal(sql_format_parse("xml", &format), -EINVAL);
	assert_int_equal(format, SQL_CSV);
}

static void table_lines_up(void **state)
{
	expect(*state,
	       "SELECT 'spin' AS name, 7 AS samples, 0.5 AS share UNION ALL "
	       "SELECT 'forward', 1234, NULL",
	       SQL_TABLE, 0,
	       "name     samples  share\n"
	       "-------  -------  -----\n"
	       "spin           7    0.5\n"
	       "forward     1234  \n");
	expect(*state, "SELECT 'größe' AS a, '本' AS b, 'x' AS c", SQL_TABLE, 0,
	       "a      b   c\n-----  --  -\ngröße  本  x\n");
	expect(*state, "SELECT name FROM function", SQL_TABLE, 0, "name\n----\n");
	expect(*state, "SELECT x'00ff' AS blob", SQL_TABLE, 0, "blob\n----\n00ff\n");
	expect(*state, "SELECT NULL AS \"\"", SQL_TABLE, 80, "\n-\n\n");
}

static void table_cuts_text_only_and_only_on_a_terminal(void **state)
{
	const char *sql = "SELECT 'abcdefghijklmnopqrstuvwxyz' AS name, 12345678901234 AS n";

	expect(*state, sql, SQL_TABLE, 30,
	       "name                         n\n"
	       "--------------  --------------\n"
	       "abcdefghijklm…  12345678901234\n");
	expect(*state, sql, SQL_TABLE, 10,
	       "name                   n\n"
	       "--------  --------------\n"
	       "abcdefg…  12345678901234\n");
	expect(*state, sql, SQL_TABLE, 0,
	       "name                                     n\n"
	       "--------------------------  --------------\n"
	       "abcdefghijklmnopqrstuvwxyz  12345678901234\n");
}

static void table_is_harmless_on_a_terminal(void **state)
{
	expect(*state, "SELECT char(27) || '[2J' || char(10) || char(0x202e) || 'x' AS name", SQL_TABLE, 0,
	       "name\n----------------\n\\x1b[2J\\n\\u202ex\n");
	expect(*state, "SELECT CAST(x'61ff62' AS TEXT) AS name", SQL_TABLE, 0,
	       "name\n----\na\xef\xbf\xbd"
	       "b\n");
}

/* Rows past the ones that are held keep the settled widths. */
static void table_flows(void **state)
{
	CLEANUP(answer_done) struct answer answer;
	const char *line;

	ask(*state,
	    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) "
	    "SELECT i, CASE i WHEN 4000 THEN 'much longer than before' ELSE 'x' END AS t FROM n",
	    SQL_TABLE, 20, &answer);
	assert_int_equal(answer.r, 0);
	assert_non_null(strstr(answer.text, "\n   1  x\n"));
	assert_non_null(strstr(answer.text, "\n5000  x\n"));
	line = strstr(answer.text, "\n4000  ");
	assert_non_null(line);
	assert_memory_equal(line, "\n4000  …\n", strlen("\n4000  …\n"));
}

static void csv_is_rfc_4180(void **state)
{
	expect(*state,
	       "SELECT 'a,b' AS \"x,y\", 'say \"hi\"' AS q, '' AS empty, NULL AS n, 1.5 AS f, "
	       "'two' || char(10) || 'lines' AS l, x'00ff' AS b",
	       SQL_CSV, 0,
	       "\"x,y\",q,empty,n,f,l,b\r\n"
	       "\"a,b\",\"say \"\"hi\"\"\",\"\",,1.5,\"two\nlines\",00ff\r\n");
	expect(*state, "SELECT name FROM function", SQL_CSV, 0, "name\r\n");
	expect(*state, "SELECT char(27) || '[2J,' || char(8238) || char(10) AS a", SQL_CSV, 0,
	       "a\r\n\"\x1b[2J,\xe2\x80\xae\n\"\r\n");
	/* A terminal has a width. */
	expect(*state, "SELECT char(27) || '[2J,' || char(8238) || char(10) AS a", SQL_CSV, 80,
	       "a\r\n\"\\x1b[2J,\\u202e\\n\"\r\n");
}

static void json_keeps_types(void **state)
{
	expect(*state,
	       "SELECT 1 AS i, 0.1 AS f, 1700000000.123456 AS t, 2.0 AS two, 9e999 AS inf, NULL AS n, "
	       "'a\"b' || char(10) AS s, x'00ff' AS b UNION ALL SELECT -9223372036854775808, "
	       "1e300, 0.0, 0, -9e999, 'x', '', x''",
	       SQL_JSON, 0,
	       "[{\"i\":1,\"f\":0.1,\"t\":1700000000.123456,\"two\":2.0,\"inf\":null,\"n\":null,"
	       "\"s\":\"a\\\"b\\n\",\"b\":\"00ff\"},\n"
	       "{\"i\":-9223372036854775808,\"f\":1e+300,\"t\":0.0,\"two\":0,\"inf\":null,"
	       "\"n\":\"x\",\"s\":\"\",\"b\":\"\"}]\n");
	expect(*state, "SELECT 1 WHERE 0", SQL_JSON, 0, "[]\n");
	expect(*state, "SELECT 1 AS a, 2 AS a, 3 AS a_2", SQL_JSON, 0, "[{\"a\":1,\"a_2\":2,\"a_2_2\":3}]\n");
	expect(*state, "SELECT CAST(x'61ff62' AS TEXT) AS s", SQL_JSON, 0,
	       "[{\"s\":\"a\xef\xbf\xbd"
	       "b\"}]\n");
}

static void json_lines(void **state)
{
	expect(*state, "SELECT 1 AS a UNION ALL SELECT 2; SELECT NULL AS b", SQL_JSONL, 0,
	       "{\"a\":1}\n{\"a\":2}\n{\"b\":null}\n");
	expect(*state, "SELECT 1 WHERE 0", SQL_JSONL, 0, "");
}

static void markdown_means_what_it_says(void **state)
{
	expect(*state, "SELECT 'a|b' AS weight, '<module>' AS \"x|y\", NULL AS n, '\\|' AS s, 7 AS i", SQL_MARKDOWN, 10,
	       "| weight | x\\|y | n | s | i |\n| --- | --- | --- | --- | --- |\n"
	       "| a\\|b | \\<module> |  | \\\\\\| | 7 |\n");
	expect(*state, "SELECT '__init__' AS a, '_x' || char(10) || 'y_' AS b WHERE 1", SQL_MARKDOWN, 0,
	       "| a | b |\n| --- | --- |\n| \\_\\_init\\_\\_ | \\_x\\\\ny\\_ |\n");
}

static void boxes_fit_a_terminal(void **state)
{
	expect(*state, "SELECT 'größe' AS name, 7 AS n UNION ALL SELECT NULL, 12", SQL_BOX, 0,
	       "┌───────┬────┐\n│ name  │  n │\n├───────┼────┤\n│ größe │  7 │\n│       │ 12 │\n└───────┴────┘\n");
	expect(*state, "SELECT 'abcdefghijklmnopqrstuvwxyz' AS name, 12345 AS n", SQL_BOX, 22,
	       "┌────────────┬───────┐\n│ name       │     n │\n├────────────┼───────┤\n│ abcdefghi… │ 12345 │\n"
	       "└────────────┴───────┘\n");
}

static void rules_are_kept(void **state)
{
	struct sql_rules rules = { .format = SQL_CSV, .max_rows = 2, .no_header = true };
	CLEANUP(freep) char *text = NULL;
	char error[512] = "";
	bool is_cut = true;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_non_null(out);
	assert_int_equal(sql_run_by(*state, "VALUES (1), (2)", &rules, out, error, sizeof error, &is_cut), 0);
	assert_false(is_cut);
	assert_int_equal(
		sql_run_by(*state, "VALUES (3), (4), (5); VALUES (6)", &rules, out, error, sizeof error, &is_cut), 0);
	assert_true(is_cut);
	rules.may_write = true;
	assert_int_equal(
		sql_run_by(*state, "CREATE TABLE mine(x); DROP TABLE mine", &rules, out, error, sizeof error, &is_cut),
		0);
	fclose(out);
	assert_string_equal(text, "1\r\n2\r\n3\r\n4\r\n6\r\n");
}

static int count_tables(void *data, const struct sql_table *table)
{
	unsigned *n = data;

	assert_string_equal(table->schema, "main");
	assert_true(table->doc[0] != '\0');
	if (strcmp(table->name, "counter") == 0) {
		assert_string_equal(table->columns, "name, value");
		assert_int_equal(table->n_rows, 0);
	}
	(*n)++;
	return 0;
}

static void tables_are_listed(void **state)
{
	unsigned n_all = 0, n_stacks = 0, n_exact = 0;

	assert_int_equal(sql_each_table(*state, NULL, count_tables, &n_all), 0);
	assert_int_equal(sql_each_table(*state, "STACK", count_tables, &n_stacks), 0);
	assert_int_equal(sql_each_table(*state, "main.stack%", count_tables, &n_exact), 0);
	assert_true(n_all >= 12);
	assert_int_equal(n_stacks, 4);
	assert_int_equal(n_exact, 4);
}

static void rows_keep_all(void **state)
{
	expect(*state,
	       "SELECT 9007199254740993 AS i, 2.0 AS r, -9e999 AS f, NULL AS n, 'a' || char(10) AS s, x'00ff' AS b, 1 AS i",
	       SQL_ROWS, 0,
	       "{\"columns\":[\"i\",\"r\",\"f\",\"n\",\"s\",\"b\",\"i\"]}\n"
	       "[9007199254740993,2.0,{\"real\":\"-inf\"},null,\"a\\n\",{\"blob\":\"00ff\"},1]\n");
	expect(*state, "SELECT 1 AS a WHERE 0; SELECT x'' AS b, CAST(x'61ff' AS TEXT) AS c", SQL_ROWS, 0,
	       "{\"columns\":[\"a\"]}\n{\"columns\":[\"b\",\"c\"]}\n[{\"blob\":\"\"},\"a\xef\xbf\xbd\"]\n");
}

/* Arrow's own library reads the contents in tests/e2e/test_arrow.py. */
static void arrow_streams_are_whole(void **state)
{
	static const unsigned char end[] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
	CLEANUP(answer_done) struct answer answer;

	ask(*state, "SELECT 'a' AS t, NULL AS n WHERE 0", SQL_ARROW, 0, &answer);
	assert_int_equal(answer.r, 0);
	assert_memory_equal(answer.text, end, 4);
	assert_int_equal(answer.n % 8, 0);
	assert_memory_equal(answer.text + answer.n - sizeof end, end, sizeof end);
}

static void a_column_of_arrow_keeps_its_type(void **state)
{
	CLEANUP(answer_done) struct answer answer;

	ask(*state,
	    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 17000) "
	    "SELECT 1 AS one, CASE WHEN i < 17000 THEN i ELSE x'00' END AS value FROM n",
	    SQL_ARROW, 0, &answer);
	assert_int_equal(answer.r, -EINVAL);
	assert_non_null(strstr(answer.error, "column value have another type"));
}

static void several_statements_answer_in_order(void **state)
{
	expect(*state, "SELECT 1 AS a; -- a comment\nSELECT 2 AS b;  ", SQL_CSV, 0, "a\r\n1\r\nb\r\n2\r\n");
	expect(*state, "", SQL_CSV, 0, "");
	expect(*state, " -- only a comment\n", SQL_CSV, 0, "");
}

static void mistakes_have_a_place(void **state)
{
	expect_error(*state, "SELECT name FORM function",
		     "line 1, column 18: near \"function\": syntax error\n"
		     "  SELECT name FORM function\n"
		     "                   ^");
	expect_error(*state, "SELECT count(*)\nFROM functoin",
		     "line 2, column 6: no such table: functoin (did you mean function?)\n"
		     "  FROM functoin\n"
		     "       ^");
	expect_error(*state, "SELECT f.nmae FROM function f",
		     "line 1, column 8: no such column: f.nmae (did you mean name?)\n"
		     "  SELECT f.nmae FROM function f\n"
		     "         ^");
	expect_error(*state, "SELECT 'ä', wieght FROM sample",
		     "line 1, column 13: no such column: wieght (did you mean weight?)\n"
		     "  SELECT 'ä', wieght FROM sample\n"
		     "              ^");
	expect_error(*state, "SELECT zzzzzzzz FROM sample",
		     "line 1, column 8: no such column: zzzzzzzz\n"
		     "  SELECT zzzzzzzz FROM sample\n"
		     "         ^");
	expect_error(*state, "SELECT 1 +",
		     "line 1, column 11: incomplete input\n"
		     "  SELECT 1 +\n"
		     "            ^");
	expect_error(*state, "SELECT json('{')", "malformed JSON");
}

/* A long line is shown around the place, and nothing in it acts on a terminal. */
static void long_mistakes_are_cut(void **state)
{
	CLEANUP(answer_done) struct answer answer;
	char sql[4096], *lines;

	snprintf(sql, sizeof sql, "SELECT '%0*d\x1b[2J', nmae, '%0*d' FROM function", 1500, 0, 1500, 0);
	ask(*state, sql, SQL_TABLE, 0, &answer);
	assert_int_equal(answer.r, -EINVAL);
	assert_null(strchr(answer.error, '\x1b'));
	lines = strchr(answer.error, '\n');
	assert_non_null(lines);
	assert_non_null(strstr(lines, "\\x1b[2J', nmae, '"));
	assert_true(strlen(lines) < 200);
}

static void writes_are_refused(void **state)
{
	static const char *const writes[] = {
		"INSERT INTO counter VALUES('x', 1)",
		"UPDATE counter SET value = 2",
		"DELETE FROM counter",
		"CREATE TABLE t(x)",
		"CREATE TEMP TABLE t(x)",
		"DROP TABLE counter",
		"PRAGMA user_version = 7",
		"PRAGMA journal_mode = DELETE",
		"VACUUM",
		"VACUUM INTO '/tmp/probing-never-written.db'",
		"REINDEX",
		"BEGIN IMMEDIATE",
	};

	for (size_t i = 0; i < N_ELEMENTS(writes); i++) {
		CLEANUP(answer_done) struct answer answer;

		ask(*state, writes[i], SQL_TABLE, 0, &answer);
		assert_int_equal(answer.r, -EINVAL);
		assert_non_null(strstr(answer.error, "line 1, column 1: this statement would change"));
	}
	expect(*state, "SELECT count(*) AS n FROM counter", SQL_CSV, 0, "n\r\n0\r\n");
	expect(*state, "PRAGMA user_version", SQL_CSV, 0, "user_version\r\n0\r\n");
}

static void a_full_device_is_an_error(void **state)
{
	char error[1024] = "";
	FILE *out = fopen("/dev/full", "w");

	assert_non_null(out);
	assert_int_equal(sql_run(*state, "SELECT 1", SQL_JSON, 0, out, error, sizeof error), -ENOSPC);
	assert_true(ferror(out));
	fclose(out);
	out = fopen("/dev/full", "w");
	assert_non_null(out);
	/* Endless: the run must end by itself when the output does. */
	assert_int_equal(sql_run(*state,
				 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
				 "SELECT i FROM n",
				 SQL_CSV, 0, out, error, sizeof error),
			 -ENOSPC);
	fclose(out);
}

static sqlite3 *to_interrupt;

static void on_alarm(int signal_number)
{
	(void)signal_number;
	sqlite3_interrupt(to_interrupt);
}

static void a_query_can_be_interrupted(void **state)
{
	CLEANUP(answer_done) struct answer answer;

	to_interrupt = *state;
	signal(SIGALRM, on_alarm);
	/* Again and again: an interrupt before the query has begun is forgotten. */
	ualarm(100000, 100000);
	ask(*state, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n", SQL_TABLE, 0,
	    &answer);
	ualarm(0, 0);
	assert_int_equal(answer.r, -EINTR);
	assert_string_equal(answer.error, "the query was interrupted");
}

static void distances(void **state)
{
	char long_name[200];

	(void)state;
	assert_int_equal(name_distance("", ""), 0);
	assert_int_equal(name_distance("abc", ""), 3);
	assert_int_equal(name_distance("name", "NAME"), 0);
	assert_int_equal(name_distance("nmae", "name"), 1);
	assert_int_equal(name_distance("smple", "sample"), 1);
	assert_int_equal(name_distance("kitten", "sitting"), 3);
	memset(long_name, 'x', sizeof long_name);
	long_name[sizeof long_name - 1] = '\0';
	assert_int_equal(name_distance(long_name, "x"), 62);
	assert_true(name_is_near("flamegrpah", "flamegraph"));
	assert_true(name_is_near("rec", "record"));
	assert_false(name_is_near("sql", "report"));
}

/* ---- The prompt at a terminal ---- */

struct terminal {
	int fd;
	pid_t child;
	char home[64];
	char seen[65536];
	size_t n_seen;
};

static void terminal_open(struct terminal *terminal)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	strcpy(terminal->home, "/tmp/probing-test-XXXXXX");
	assert_non_null(mkdtemp(terminal->home));
	terminal->n_seen = 0;
	terminal->child = forkpty(&terminal->fd, NULL, NULL, &size);
	assert_true(terminal->child >= 0);
	if (terminal->child == 0) {
		sqlite3 *db;

		setenv("TERM", "dumb", 1);
		setenv("HOME", terminal->home, 1);
		unsetenv("XDG_STATE_HOME");
		umask(022);
		open_schema(&db);
		_exit(sql_prompt(&(struct sql_session){ .db = db }, "some.db", stdout) == 0 ? 0 : 1);
	}
}

/* Waits for some text, behind the last one that came. */
static void terminal_expect(struct terminal *terminal, const char *wanted)
{
	enum { PATIENCE_MS = 20000 };

	terminal->seen[terminal->n_seen] = '\0';
	for (;;) {
		struct pollfd poll_fd = { .fd = terminal->fd, .events = POLLIN };
		char *found = strstr(terminal->seen, wanted);
		ssize_t n;

		if (found) {
			found += strlen(wanted);
			terminal->n_seen -= (size_t)(found - terminal->seen);
			memmove(terminal->seen, found, terminal->n_seen);
			return;
		}
		if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
			fail_msg("never came: %s\nbut: %s", wanted, terminal->seen);
		n = read(terminal->fd, terminal->seen + terminal->n_seen, sizeof terminal->seen - terminal->n_seen - 1);
		if (n <= 0)
			fail_msg("the prompt ended before: %s\nwith: %s", wanted, terminal->seen);
		terminal->n_seen += (size_t)n;
		terminal->seen[terminal->n_seen] = '\0';
	}
}

static void terminal_type(struct terminal *terminal, const char *keys)
{
	assert_int_equal(write(terminal->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* Type some keys until the prompt ends. More than once: between two lines the terminal is not
 * in the prompt's hands, and takes Ctrl-D for itself. */
static void terminal_leave(struct terminal *terminal, const char *keys)
{
	struct pollfd poll_fd = { .fd = terminal->fd, .events = POLLIN };
	char rest[256];
	int status;

	terminal_type(terminal, keys);
	for (int n = 0; n < 100; n++) {
		if (poll(&poll_fd, 1, 200) != 1)
			terminal_type(terminal, keys);
		else if (read(terminal->fd, rest, sizeof rest) <= 0)
			break;
	}
	assert_int_equal(waitpid(terminal->child, &status, 0), terminal->child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(terminal->fd);
}

static void remove_home(const struct terminal *terminal)
{
	static const char *const parts[] = { "/.local/state/probing/sql_history", "/.local/state/probing",
					     "/.local/state", "/.local", "" };

	for (size_t i = 0; i < N_ELEMENTS(parts); i++) {
		char path[128];

		snprintf(path, sizeof path, "%s%s", terminal->home, parts[i]);
		assert_int_equal(remove(path), 0);
	}
}

static void the_prompt_answers(void **state)
{
	struct terminal terminal;
	struct stat history;
	char path[128];

	(void)state;
	terminal_open(&terminal);
	terminal_expect(&terminal, "some.db");
	terminal_expect(&terminal, "probing> ");
	terminal_type(&terminal, "SELECT 6 *\n");
	terminal_expect(&terminal, "...> ");
	terminal_type(&terminal, "7 AS answer;\n");
	terminal_expect(&terminal, "    42\r\n");
	terminal_expect(&terminal, "probing> ");
	terminal_type(&terminal, "SELECT nmae FROM function;\n");
	terminal_expect(&terminal, "did you mean name?");
	terminal_type(&terminal, "DELETE FROM stack_total;\n");
	terminal_expect(&terminal, "would change the recording");
	terminal_type(&terminal, ".tables\n");
	terminal_expect(&terminal, "stack_total");
	terminal_type(&terminal, ".schema counter\n");
	terminal_expect(&terminal, "CREATE TABLE counter");
	terminal_type(&terminal, ".nothing\n");
	terminal_expect(&terminal, "there is no command .nothing");
	terminal_leave(&terminal, ".quit\n");

	snprintf(path, sizeof path, "%s/.local/state/probing/sql_history", terminal.home);
	assert_int_equal(stat(path, &history), 0);
	assert_int_equal(history.st_mode & 0777, 0600);
	assert_true(history.st_size > 0);
	remove_home(&terminal);
}

/* A query prints nothing while it runs; but only a prompt that edits a line keeps SIGINT blocked. */
static bool is_editing(const struct terminal *terminal)
{
	CLEANUP(freep) char *status = NULL;
	unsigned long long blocked;
	char path[64];
	const char *at;

	snprintf(path, sizeof path, "/proc/%d/status", (int)terminal->child);
	assert_int_equal(read_file(path, 1 << 14, &status, NULL), 0);
	at = strstr(status, "SigBlk:");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "SigBlk: %llx", &blocked), 1);
	return blocked >> (SIGINT - 1) & 1;
}

/* Files that .output names appear at its end, for the user alone; what may be the only one of its kind stays. */
static void the_prompt_writes_files(void **state)
{
	static const char head[] = "SQLite format 3";
	CLEANUP(freep) char *answers = NULL;
	char path[128], line[256];
	struct terminal terminal;
	struct stat st;
	FILE *recording;

	(void)state;
	terminal_open(&terminal);
	terminal_expect(&terminal, "probing> ");
	snprintf(path, sizeof path, "%s/answers", terminal.home);
	snprintf(line, sizeof line, ".output %s\n", path);
	terminal_type(&terminal, line);
	terminal_expect(&terminal, "probing> ");
	terminal_type(&terminal, "SELECT 6 * 7 AS answer;\n");
	terminal_expect(&terminal, "probing> ");
	assert_int_equal(stat(path, &st), -1);
	terminal_type(&terminal, ".output\n");
	terminal_expect(&terminal, "probing> ");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(read_file(path, 4096, &answers, NULL), 0);
	assert_non_null(strstr(answers, "42"));

	assert_non_null(recording = fopen(path, "w"));
	assert_int_equal(fwrite(head, 1, sizeof head, recording), sizeof head);
	assert_int_equal(fclose(recording), 0);
	terminal_type(&terminal, line);
	terminal_expect(&terminal, "is a recording, or another SQLite file, and stays");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	terminal_type(&terminal, line);
	terminal_expect(&terminal, "is a FIFO that nobody reads");
	assert_int_equal(unlink(path), 0);
	terminal_type(&terminal, line);
	terminal_expect(&terminal, "probing> ");
	terminal_leave(&terminal, ".quit\n");
	assert_int_equal(stat(path, &st), 0); /* leaving is an end, too */
	assert_int_equal(unlink(path), 0);
	remove_home(&terminal);
}

static void the_prompt_survives_interrupts(void **state)
{
	struct terminal terminal;

	(void)state;
	terminal_open(&terminal);
	terminal_expect(&terminal, "probing> ");
	terminal_type(&terminal, "SELECT nonsense\n");
	terminal_expect(&terminal, "...> ");
	terminal_type(&terminal, "half a li");
	terminal_expect(&terminal, "half a li");
	terminal_type(&terminal, "\x03"); /* drops both lines */
	terminal_expect(&terminal, "probing> ");
	terminal_type(&terminal, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
				 "SELECT count(*) FROM n;\n");
	terminal_expect(&terminal, "count(*) FROM n;\r\n");
	for (int n = 0; is_editing(&terminal); n++) {
		assert_true(n < 20000);
		usleep(1000);
	}
	/* Once: with Ctrl-C a terminal throws away what has been printed and not read yet, the answer to another, too. */
	terminal_type(&terminal, "\x03");
	terminal_expect(&terminal, "the query was interrupted");
	terminal_expect(&terminal, "probing> ");
	terminal_type(&terminal, "SELECT 'still ' || 'here';\n");
	terminal_expect(&terminal, "still here");
	terminal_expect(&terminal, "probing> ");
	terminal_leave(&terminal, "\x04");
	remove_home(&terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_known_by_name),
		cmocka_unit_test(table_lines_up),
		cmocka_unit_test(table_cuts_text_only_and_only_on_a_terminal),
		cmocka_unit_test(table_is_harmless_on_a_terminal),
		cmocka_unit_test(table_flows),
		cmocka_unit_test(csv_is_rfc_4180),
		cmocka_unit_test(json_keeps_types),
		cmocka_unit_test(json_lines),
		cmocka_unit_test(markdown_means_what_it_says),
		cmocka_unit_test(boxes_fit_a_terminal),
		cmocka_unit_test(rules_are_kept),
		cmocka_unit_test(tables_are_listed),
		cmocka_unit_test(rows_keep_all),
		cmocka_unit_test(arrow_streams_are_whole),
		cmocka_unit_test(a_column_of_arrow_keeps_its_type),
		cmocka_unit_test(several_statements_answer_in_order),
		cmocka_unit_test(mistakes_have_a_place),
		cmocka_unit_test(long_mistakes_are_cut),
		cmocka_unit_test(writes_are_refused),
		cmocka_unit_test(a_full_device_is_an_error),
		cmocka_unit_test(a_query_can_be_interrupted),
		cmocka_unit_test(distances),
		cmocka_unit_test(the_prompt_answers),
		cmocka_unit_test(the_prompt_writes_files),
		cmocka_unit_test(the_prompt_survives_interrupts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
