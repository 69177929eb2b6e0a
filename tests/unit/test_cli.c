/* SPDX-License-Identifier: MIT */
/* The program as a user sees it: exit statuses, sentences, files that appear
 * whole or not at all. Runs the built binary in an empty folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/cli/cli.h"
#include "src/store/store.h"

enum { MAX_ARGUMENTS = 10, MAX_OUTPUT = 1 << 20 };

static char program[512], scratch[64];

/* ---- Recordings to ask ---- */

static const char rows_sql[] =
	"PRAGMA application_id = 0x50726f62; PRAGMA user_version = 2;"
	"INSERT INTO run(run, started, ended, clean, command, pid, mode, hz, stack_source, python,"
	"                kernel_frames, host, kernel, cpus, probing)"
	"  VALUES(1, 1.7e9, 1.7e9 + 5, 1, 'python3 train.py', 7, 'cpu', 99, 'read', '3.11.2', 0, 'h', '6.1', 2, '0');"
	"INSERT INTO process(pid, parent_pid, name, command, python, started, ended) VALUES(7, 1, 'python3', 'python3 train.py', '3.11.2', 1.7e9, NULL);"
	"INSERT INTO thread VALUES(7, 7, 'python3', 1.7e9, NULL);"
	"INSERT INTO module VALUES(1, '/usr/lib/libz.so.1', NULL);"
	"INSERT INTO function VALUES(1, 'train', NULL, 'python', NULL, '/srv/train.py', 3, NULL),"
	"                           (2, 'deflate', NULL, 'native', NULL, NULL, NULL, 1);"
	"INSERT INTO frame(frame, kind, function, line, module, address, is_eval, inlined_into) VALUES(1, 'python', 1, 5, NULL, 20, 0, NULL),"
	"                        (2, 'native', 2, NULL, 1, 4660, 0, NULL);"
	"INSERT INTO stack VALUES(1, NULL, 1, 0), (2, 1, 2, 1);";

static const char samples_sql[] = "INSERT INTO stack_total VALUES(7, 7, 2, 3, 30000000), (7, 7, 1, 1, 10000000);";

static void put_sample(const char *path)
{
	const struct sample_row row = {
		.time_ns = UINT64_C(1700000000500000000),
		.pid = 7,
		.tid = 7,
		.weight = 10000000,
		.verdict = VERDICT_VERIFIED,
		.end = STACK_COMPLETE,
		.stack = 2,
	};
	struct store *store = NULL;

	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(store_put_sample(store, &row), 0);
	assert_int_equal(store_checkpoint(store), 0);
	store_close(store);
}

static void make_recording(const char *path, const char *more_sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, catalogue_schema_sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, rows_sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, more_sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	if (more_sql == samples_sql)
		put_sample(path);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* ---- A folder for each test ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int setup(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/probing-test-XXXXXX");
	assert_non_null(mkdtemp(scratch));
	assert_int_equal(chdir(scratch), 0);
	make_recording("probing.db", samples_sql);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(chdir("/"), 0);
	return nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* How many names the folder holds: nothing may be left behind. */
static unsigned n_names(void)
{
	unsigned n = 0;
	DIR *dir = opendir(".");

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* ---- Running ---- */

struct run {
	int status; /* 128 + signal where one ended it */
	char *out, *err;
};

static void run_done(struct run *run)
{
	free(run->out);
	free(run->err);
}

static void read_back(int fd, char **ret)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_int_equal(read_file(path, MAX_OUTPUT, ret, NULL), 0);
	close(fd);
}

/* Split at spaces; words in '' stay together. */
static void split(char *line, char **words)
{
	unsigned n = 0;

	words[n++] = program;
	while (*line) {
		char quote = *line == '\'' ? *line++ : ' ';

		assert_true(n < MAX_ARGUMENTS);
		words[n++] = line;
		line += strcspn(line, (char[]){ quote, '\0' });
		if (*line)
			*line++ = '\0';
		line += strspn(line, " ");
	}
	words[n] = NULL;
}

/* @in, @out: files for stdin and stdout; NULL: nothing, and ret->out. */
static void run_with(const char *line, const char *in, const char *out, struct run *ret)
{
	CLEANUP(freep) char *copy = strdup(line);
	char *words[MAX_ARGUMENTS + 1];
	int out_fd = memfd_create("out", 0), err_fd = memfd_create("err", 0), status;
	pid_t child;

	assert_true(copy && out_fd >= 0 && err_fd >= 0);
	split(copy, words);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int in_fd = open(in ? in : "/dev/null", O_RDONLY);
		int to_fd = out ? open(out, O_WRONLY | O_CREAT, 0666) : out_fd;

		if (in_fd < 0 || to_fd < 0 || dup2(in_fd, 0) < 0 || dup2(to_fd, 1) < 0 || dup2(err_fd, 2) < 0)
			_exit(99);
		execv(program, words);
		_exit(98);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	ret->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	read_back(out_fd, &ret->out);
	read_back(err_fd, &ret->err);
}

static void expect(const char *line, int status, const char *out, const char *err)
{
	CLEANUP(run_done) struct run run;

	run_with(line, NULL, NULL, &run);
	if (run.status != status)
		fail_msg("'%s' ended with %d, not %d: %s", line, run.status, status, run.err);
	if (out ? strstr(run.out, out) == NULL : run.out[0] != '\0')
		fail_msg("'%s' wrote '%s', not '%s'", line, run.out, out ? out : "");
	if (err ? strstr(run.err, err) == NULL : run.err[0] != '\0')
		fail_msg("'%s' said '%s', not '%s'", line, run.err, err ? err : "");
}

/* ---- Tests: arguments ---- */

static const char *const verb_names[] = { "record",     "backtrace", "cluster",  "list", "symbolize", "top",
					  "flamegraph", "report",    "annotate", "sql",  "tables",    "info",
					  "export",     "compact",   "merge",    "run",  "inject",    "attach",
					  "detach",     "eval",      "timeline", "repl", "crash",     "doctor",
					  "serve",      "ship",      "help" };

static void help_is_data(void **state)
{
	(void)state;
	expect("--help", EXIT_OK, "Exit status:\n    0  ", NULL);
	expect("-h", EXIT_OK, "Verbs:\n", NULL);
	expect("help", EXIT_OK, "  flamegraph ", NULL);
	expect("--version", EXIT_OK, "probing 0.", NULL);
	for (size_t i = 0; i < N_ELEMENTS(verb_names); i++) {
		char line[64], usage[64];

		snprintf(usage, sizeof usage, "Usage: probing %s [OPTION...]", verb_names[i]);
		snprintf(line, sizeof line, "%s -h", verb_names[i]);
		expect(line, EXIT_OK, usage, NULL);
		snprintf(line, sizeof line, "%s --help", verb_names[i]);
		expect(line, EXIT_OK, usage, NULL);
		snprintf(line, sizeof line, "help %s", verb_names[i]);
		expect(line, EXIT_OK, usage, NULL);
	}
	expect("flamegraph --help", EXIT_OK, "svg (", NULL);
	expect("query -h", EXIT_OK, "Usage: probing sql ", NULL);
}

static void wrong_arguments_are_64(void **state)
{
	(void)state;
	expect("", EXIT_USAGE, NULL, "Usage: probing VERB");
	expect("flamegrph", EXIT_USAGE, NULL, "probing: there is no verb flamegrph; did you mean flamegraph?\n");
	expect("xyzzy", EXIT_USAGE, NULL, "probing: there is no verb xyzzy; see probing --help\n");
	expect("help reprot", EXIT_USAGE, NULL, "did you mean report?");
	expect("--nonsense", EXIT_USAGE, NULL, "there is no option --nonsense");
	for (size_t i = 0; i < N_ELEMENTS(verb_names); i++) {
		char line[64];

		snprintf(line, sizeof line, "%s --nonsense", verb_names[i]);
		expect(line, EXIT_USAGE, NULL, "unrecognized option '--nonsense'");
	}
	expect("record --durration 3 -- true", EXIT_USAGE, NULL,
	       "probing: there is no option --durration; did you mean --duration?\n");
	expect("report --interpeter-frames", EXIT_USAGE, NULL, "there is no option --interpeter-frames; did you mean");
	expect("sql --formatt=csv", EXIT_USAGE, NULL, "there is no option --formatt; did you mean --format?");
	expect("flamegraph --format xml", EXIT_USAGE, NULL, "there is no format xml");
	expect("flamegraph a.db b.db", EXIT_USAGE, NULL, "one recording at a time: b.db?");
	expect("report -n 0", EXIT_USAGE, NULL, "-n needs a number from 1");
	expect("report -n 5x", EXIT_USAGE, NULL, "-n needs a number from 1");
	expect("sql -f xml", EXIT_USAGE, NULL,
	       "the format is table, csv, json, jsonl, markdown, box, rows or arrow, not xml");
	expect("sql a.db 'SELECT 1' 'SELECT 2'", EXIT_USAGE, NULL,
	       "unexpected argument SELECT 1: give recordings or one PID");
	assert_int_equal(n_names(), 1);
}

/* ---- Tests: recordings that are none ---- */

static void expect_all(const char *recording, int status, const char *err)
{
	static const char *const verbs_that_read[] = { "flamegraph %s", "report %s", "sql %s 'SELECT 1'" };

	for (size_t i = 0; i < N_ELEMENTS(verbs_that_read); i++) {
		char line[128];

		/* The formats are listed right above. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(line, sizeof line, verbs_that_read[i], recording);
		expect(line, status, NULL, err);
	}
}

static void bad_recordings_are_told_apart(void **state)
{
	sqlite3 *db;

	(void)state;
	expect_all("missing.db", EXIT_NO_INPUT, "missing.db");
	expect_all("/tmp", EXIT_NO_INPUT, "/tmp");
	write_file("text.db", "this is no database at all, only a text that is long enough\n");
	expect_all("text.db", EXIT_BAD_DATA, "text.db");
	assert_int_equal(sqlite3_open("foreign.db", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	expect_all("foreign.db", EXIT_BAD_DATA, "foreign.db");
	make_recording("newer.db", "PRAGMA user_version = 99");
	expect_all("newer.db", EXIT_BAD_DATA, "newer.db");
	make_recording("damaged.db", samples_sql);
	assert_int_equal(truncate("damaged.db", 9000), 0);
	expect_all("damaged.db", EXIT_BAD_DATA, "damaged.db");
	assert_int_equal(n_names(), 5);
}

static void an_empty_recording_draws_nothing(void **state)
{
	(void)state;
	make_recording("empty.db", "");
	expect("flamegraph empty.db", EXIT_BAD_DATA, NULL, "empty.db has no samples");
	expect("report empty.db", EXIT_BAD_DATA, NULL, "empty.db has no samples");
	expect("sql empty.db 'SELECT count(*) AS n FROM sample' -f csv", EXIT_OK, "n\r\n0\r\n", NULL);
	assert_int_equal(n_names(), 2);
}

static void a_recording_that_may_not_be_read_is_77(void **state)
{
	(void)state;
	if (geteuid() == 0) {
		print_message("skipped: root may read every file\n");
		skip();
	}
	assert_int_equal(chmod("probing.db", 0), 0);
	expect_all("probing.db", EXIT_NOT_PERMITTED, "probing.db");
}

/* ---- Tests: flamegraph and report ---- */

static void flamegraph_writes_by_ending_and_format(void **state)
{
	CLEANUP(freep) char *svg = NULL, *folded = NULL;

	(void)state;
	expect("flamegraph", EXIT_OK, NULL, "probing: wrote flamegraph.svg (4 samples)\n");
	assert_int_equal(read_file("flamegraph.svg", MAX_OUTPUT, &svg, NULL), 0);
	assert_non_null(strstr(svg, "<svg"));
	assert_non_null(strstr(svg, "python3 train.py")); /* the title */
	expect("flame -o x.folded", EXIT_OK, NULL, "probing: wrote x.folded (4 samples)\n");
	assert_int_equal(read_file("x.folded", MAX_OUTPUT, &folded, NULL), 0);
	assert_non_null(strstr(folded, "train"));
	expect("fg --format folded", EXIT_OK, NULL, "probing: wrote flamegraph.folded (4 samples)\n");
	expect("flamegraph probing.db --format folded -o -", EXIT_OK, "deflate", NULL);
	expect("flamegraph -o - --title 'My Title'", EXIT_OK, "My Title", NULL);
	assert_int_equal(n_names(), 4);
}

static void outputs_fail_with_a_sentence(void **state)
{
	CLEANUP(run_done) struct run run = { 0 };

	(void)state;
	expect("flamegraph -o /nonexistent/x.svg", EXIT_NO_OUTPUT, NULL,
	       "probing: /nonexistent/x.svg cannot be written: No such file or directory\n");
	expect("flamegraph -o /tmp", EXIT_NO_OUTPUT, NULL, "/tmp cannot be written: Is a directory");
	expect("flamegraph -o /dev/full", EXIT_IO, NULL,
	       "probing: writing /dev/full failed: No space left on device\n");
	expect("flamegraph -o /dev/null", EXIT_OK, NULL, "wrote /dev/null");
	run_with("report", NULL, "/dev/full", &run);
	assert_int_equal(run.status, EXIT_IO);
	assert_string_equal(run.err, "probing: writing standard output failed: No space left on device\n");
	run_done(&run);
	run_with("sql 'SELECT 1'", NULL, "/dev/full", &run);
	assert_int_equal(run.status, EXIT_IO);
	assert_string_equal(run.err, "probing: writing standard output failed: No space left on device\n");
	run_done(&run);
	run_with("--help", NULL, "/dev/full", &run);
	assert_int_equal(run.status, EXIT_IO);
	assert_int_equal(n_names(), 1);
}

static void report_prints_functions(void **state)
{
	(void)state;
	expect("report", EXIT_OK, "deflate", NULL);
	expect("report probing.db -n 1 --total", EXIT_OK, "train", NULL);
}

/* ---- Tests: sql ---- */

static void sql_tells_file_and_text_apart(void **state)
{
	(void)state;
	make_recording("other", "INSERT INTO counter VALUES('which', 2)");
	make_recording("with space.db", "INSERT INTO counter VALUES('which', 3)");
	expect("sql 'SELECT name FROM function' -f csv", EXIT_OK, "name\r\ntrain\r\ndeflate\r\n", NULL);
	expect("sql probing.db 'SELECT 6 * 7 AS n' -f json", EXIT_OK, "[{\"n\":42}]\n", NULL);
	expect("sql other 'SELECT value FROM counter' -f csv", EXIT_OK, "value\r\n2\r\n", NULL);
	expect("sql 'with space.db' 'SELECT value FROM counter'", EXIT_OK, "value\n-----\n    3\n", NULL);
	expect("sql VALUES(42) -f csv", EXIT_OK, "\r\n42\r\n", NULL);
	expect("sql missing.db", EXIT_NO_INPUT, NULL, "missing.db");
	expect("sql nowhere/to/be/seen", EXIT_NO_INPUT, NULL, "nowhere/to/be/seen");
}

static void sql_reads_a_script(void **state)
{
	CLEANUP(run_done) struct run run = { 0 };

	(void)state;
	write_file("script.sql", "-- two questions\nSELECT 1 AS a;\nSELECT\n 2 AS b;\n");
	run_with("sql -f csv", "script.sql", NULL, &run);
	assert_string_equal(run.err, "");
	assert_int_equal(run.status, EXIT_OK);
	assert_string_equal(run.out, "a\r\n1\r\nb\r\n2\r\n");
	run_done(&run);
	run_with("sql", "probing.db", NULL, &run); /* binary */
	assert_int_equal(run.status, EXIT_BAD_DATA);
	assert_non_null(strstr(run.err, "NUL byte"));
}

static void sql_mistakes_are_65(void **state)
{
	(void)state;
	expect("sql 'SELECT nmae FROM function'", EXIT_BAD_DATA, NULL,
	       "probing: line 1, column 8: no such column: nmae (did you mean name?)\n");
	expect("sql 'SELECT 1 FROM functoin'", EXIT_BAD_DATA, NULL, "(did you mean function?)\n");
	expect("sql 'DELETE FROM stack_total'", EXIT_BAD_DATA, NULL,
	       "this statement would change the recording: add --write to allow that\n");
	/* Even where SQLite itself would: another file. */
	expect("sql 'ATTACH \"probing.db\" AS x; SELECT count(*) AS n FROM x.run' -f csv", EXIT_OK, "n", NULL);
	expect("sql --no-attach 'ATTACH \"probing.db\" AS x'", EXIT_BAD_DATA, NULL, "not authorized");
	expect("sql 'ATTACH \"made.db\" AS x; CREATE TABLE x.t(y)'", EXIT_BAD_DATA, NULL, "probing: ");
	assert_int_equal(access("made.db", F_OK), -1);
	expect("sql 'SELECT count(*) AS n FROM sample' -f csv", EXIT_OK, "n\r\n1\r\n", NULL);
}

static void a_reader_who_leaves_is_no_error(void **state)
{
	char command[1024];

	(void)state;
	snprintf(command, sizeof command,
		 "'%s' sql 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
		 "SELECT i FROM n' -f csv 2>err | head -n 2 >out",
		 program);
	assert_int_equal(system(command), 0);
	{
		CLEANUP(freep) char *err = NULL, *out = NULL;

		assert_int_equal(read_file("err", MAX_OUTPUT, &err, NULL), 0);
		assert_int_equal(read_file("out", MAX_OUTPUT, &out, NULL), 0);
		assert_string_equal(err, "");
		assert_string_equal(out, "i\r\n1\r\n");
	}
	/* Where SIGPIPE is ignored, too. */
	snprintf(command, sizeof command,
		 "trap '' PIPE; '%s' sql 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
		 "SELECT i FROM n' -f csv 2>err | head -n 1 >out; test ! -s err",
		 program);
	assert_int_equal(system(command), 0);
}

/* ---- Tests: files that appear whole ---- */

static void outputs_appear_at_the_end(void **state)
{
	CLEANUP(freep) char *text = NULL;
	struct output output;

	(void)state;
	assert_int_equal(output_open(&output, "new", 0), 0);
	fputs("whole", output.file);
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(output_finish(&output), 0);
	assert_int_equal(read_file("new", 100, &text, NULL), 0);
	assert_string_equal(text, "whole");
	assert_int_equal(n_names(), 2);
}

/* More than is brought to the disk at a time. */
static void large_outputs_are_whole(void **state)
{
	enum { LINES = 3500000 };
	CLEANUP(freep) char *text = NULL;
	struct output output;
	size_t n;

	(void)state;
	assert_int_equal(output_open(&output, "new", 0), 0);
	for (int i = 0; i < LINES; i++)
		fprintf(output.file, "%09d\n", i);
	assert_int_equal(output_finish(&output), 0);
	assert_int_equal(read_file("new", 10 * LINES, &text, &n), 0);
	assert_int_equal(n, 10 * LINES);
	for (int i = 0; i < LINES; i++)
		assert_int_equal(atoi(text + 10 * (size_t)i), i);
}

static void abandoned_outputs_leave_the_old_one(void **state)
{
	CLEANUP(freep) char *text = NULL;
	struct output output;

	(void)state;
	write_file("old", "old");
	assert_int_equal(output_open(&output, "old", 0), 0);
	fputs("half", output.file);
	fflush(output.file);
	output_abandon(&output);
	assert_int_equal(read_file("old", 100, &text, NULL), 0);
	assert_string_equal(text, "old");
	assert_int_equal(n_names(), 2);
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 0777;
}

static void write_output(const char *path, const char *text)
{
	struct output output;

	assert_int_equal(output_open(&output, path, 0), 0);
	fputs(text, output.file);
	assert_int_equal(output_finish(&output), 0);
}

static void outputs_respect_permissions_and_links(void **state)
{
	CLEANUP(freep) char *text = NULL;
	struct stat status;
	mode_t mask = umask(027);

	(void)state;
	write_output("new", "x");
	assert_int_equal(mode_of("new"), 0600);
	assert_int_equal(chmod("new", 0604), 0);
	write_output("new", "y");
	assert_int_equal(mode_of("new"), 0604);
	assert_int_equal(symlink("new", "link"), 0);
	write_output("link", "through the link");
	assert_int_equal(lstat("link", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(read_file("new", 100, &text, NULL), 0);
	assert_string_equal(text, "through the link");
	umask(mask);
	assert_int_equal(n_names(), 3);
}

static void a_pipe_is_written_directly(void **state)
{
	struct output output;
	char text[8] = "";
	int reader;

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	reader = open("fifo", O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(output_open(&output, "fifo", 0), 0);
	fputs("data", output.file);
	assert_int_equal(output_finish(&output), 0);
	assert_int_equal(read(reader, text, sizeof text), 4);
	assert_string_equal(text, "data");
	close(reader);
	assert_int_equal(n_names(), 2);
}

static void errors_have_a_status(void **state)
{
	(void)state;
	assert_int_equal(cli_status(0), EXIT_OK);
	assert_int_equal(cli_status(-ENOENT), EXIT_NO_INPUT);
	assert_int_equal(cli_status(-ESRCH), EXIT_NO_INPUT);
	assert_int_equal(cli_status(-EBADMSG), EXIT_BAD_DATA);
	assert_int_equal(cli_status(-ENOSPC), EXIT_IO);
	assert_int_equal(cli_status(-EPERM), EXIT_NOT_PERMITTED);
	assert_int_equal(cli_status(-ENOMEM), EXIT_FAILED);
}

#define TEST_IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_IN_FOLDER(help_is_data),
		TEST_IN_FOLDER(wrong_arguments_are_64),
		TEST_IN_FOLDER(bad_recordings_are_told_apart),
		TEST_IN_FOLDER(an_empty_recording_draws_nothing),
		TEST_IN_FOLDER(a_recording_that_may_not_be_read_is_77),
		TEST_IN_FOLDER(flamegraph_writes_by_ending_and_format),
		TEST_IN_FOLDER(outputs_fail_with_a_sentence),
		TEST_IN_FOLDER(report_prints_functions),
		TEST_IN_FOLDER(sql_tells_file_and_text_apart),
		TEST_IN_FOLDER(sql_reads_a_script),
		TEST_IN_FOLDER(sql_mistakes_are_65),
		TEST_IN_FOLDER(a_reader_who_leaves_is_no_error),
		TEST_IN_FOLDER(outputs_appear_at_the_end),
		TEST_IN_FOLDER(large_outputs_are_whole),
		TEST_IN_FOLDER(abandoned_outputs_leave_the_old_one),
		TEST_IN_FOLDER(outputs_respect_permissions_and_links),
		TEST_IN_FOLDER(a_pipe_is_written_directly),
		cmocka_unit_test(errors_have_a_status),
	};

	if (!getenv("PROBING_BUILD_ROOT")) {
		fprintf(stderr, "PROBING_BUILD_ROOT does not say where the program was built\n");
		return 1;
	}
	snprintf(program, sizeof program, "%s/src/cli/probing", getenv("PROBING_BUILD_ROOT"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
