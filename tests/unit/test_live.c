/* SPDX-License-Identifier: MIT */
/* What /proc says, read; and the tables over this process itself. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/live/live.h"
#include "src/live/parse.h"
#include "src/ring/ring.h"

enum { NO_PROCESS = 0x7ffffff0 };

static void stat_lines(void **state)
{
	struct stat_line line;

	(void)state;
	assert_int_equal(
		parse_stat("12 (a) R (b) S 3 4 5 6 7 8 9 10 11 12 14 15 16 17 -18 19 20 21 22 23 24 25 26 27 28 29 30 "
			   "31 32 33 34 35 36 37 38 39 40 41",
			   &line),
		0);
	assert_int_equal(line.state, 'S');
	assert_int_equal(line.parent, 3);
	assert_int_equal(line.user_ticks, 14);
	assert_int_equal(line.system_ticks, 15);
	assert_int_equal(line.priority, -18);
	assert_int_equal(line.nice, 19);
	assert_int_equal(line.n_threads, 20);
	assert_int_equal(line.start_ticks, 22);
	assert_int_equal(line.virtual_bytes, 23);
	assert_int_equal(line.resident_pages, 24);
	assert_int_equal(line.cpu, 39);
	assert_int_equal(line.real_time_priority, 40);
	assert_int_equal(line.policy, 41);
	assert_int_equal(parse_stat("12 (a) S 3 4", &line), -EBADMSG);
	assert_int_equal(parse_stat("", &line), -EBADMSG);
}

static void maps_have_their_use(void **state)
{
	char text[] = "55d0-55e0 r-xp 00001000 fd:01 77   /bin/a b\nSize: 4 kB\nRss: 12 kB\nPrivate_Clean: 4 kB\n"
		      "Private_Dirty: 8 kB\nVmFlags: rd ex\n7f00-7f10 rw-s 00000000 00:00 0 \nnonsense\n"
		      "7f20-7f30 ---p 00000000 00:00 0 \nRss: 0 kB\n";
	struct map_entry entry;
	char *at = text;

	(void)state;
	assert_true(parse_next_map(&at, &entry));
	assert_string_equal(entry.source.path, "/bin/a b");
	assert_string_equal(entry.permissions, "r-xp");
	assert_int_equal(entry.rss_bytes, 12 * 1024);
	assert_int_equal(entry.private_bytes, 12 * 1024);
	assert_true(parse_next_map(&at, &entry));
	assert_string_equal(entry.permissions, "rw-s");
	assert_false(entry.has_use);
	assert_true(parse_next_map(&at, &entry));
	assert_true(entry.has_use);
	assert_false(parse_next_map(&at, &entry));
}

static void environments(void **state)
{
	static const char text[] = "A=1\0EMPTY=\0\0odd\0X=y=z";
	const char *at = text, *end = text + sizeof text - 1;
	struct variable variable;

	(void)state;
	assert_true(parse_next_variable(&at, end, &variable));
	assert_memory_equal(variable.name, "A", variable.n_name);
	assert_memory_equal(variable.value, "1", variable.n_value);
	assert_true(parse_next_variable(&at, end, &variable));
	assert_non_null(variable.value);
	assert_int_equal(variable.n_value, 0);
	assert_true(parse_next_variable(&at, end, &variable));
	assert_int_equal(variable.n_name, 3);
	assert_null(variable.value);
	assert_true(parse_next_variable(&at, end, &variable));
	assert_int_equal(variable.n_value, 3);
	assert_false(parse_next_variable(&at, end, &variable));
}

static void small_things(void **state)
{
	struct cpu_line cpu;
	char text[64];
	int64_t number;

	(void)state;
	assert_true(parse_cpu("cpu3 1 2 3 4 5 6 7 8 9", &cpu));
	assert_int_equal(cpu.cpu, 3);
	assert_int_equal(cpu.steal, 8);
	assert_false(parse_cpu("cpu  1 2 3 4 5 6 7 8 9", &cpu));
	assert_false(parse_cpu("intr 1 2 3 4", &cpu));
	assert_true(parse_number("pos:\t12\nflags:\t02\n", "flags", 8, &number));
	assert_int_equal(number, 2);
	assert_false(parse_number("pos:\t12\n", "flags", 8, &number));
	parse_flags(O_RDWR | O_APPEND | O_CLOEXEC, text, sizeof text);
	assert_string_equal(text, "rw,append,cloexec");
	assert_true(parse_python_path("/usr/bin/python3.11", text, sizeof text));
	assert_string_equal(text, "3.11");
	assert_false(parse_python_path("/usr/bin/python", text, sizeof text));
	assert_false(parse_python_path("/usr/bin/sh", text, sizeof text));
}

struct asked {
	sqlite3 *db;
	struct live *live;
};

static const char *sent = ""; /* rows of the probes in a process; NULL: an error */

static int send_rows(void *data, pid_t pid, const char *table, char **ret, size_t *ret_bytes, char *why)
{
	(void)data;
	(void)pid;
	(void)table;
	if (!sent) {
		snprintf(why, LIVE_WHY_BYTES, "nothing is armed");
		return -ENOENT;
	}
	*ret = strdup(sent);
	*ret_bytes = strlen(sent);
	return 0;
}

static void asked_open(struct asked *asked)
{
	const struct live_options options = { .pid = getpid(), .probes = send_rows };

	assert_int_equal(sqlite3_open(":memory:", &asked->db), SQLITE_OK);
	assert_int_equal(live_open(asked->db, &options, &asked->live), 0);
}

static void asked_close(struct asked *asked)
{
	assert_int_equal(sqlite3_close(asked->db), SQLITE_OK);
	live_close(asked->live);
}

static int64_t number_of(struct asked *asked, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t number;

	if (sqlite3_prepare_v2(asked->db, sql, -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(asked->db));
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

static void rows_of_probes_are_whole(void **state)
{
	static const char *const wrong[] = {
		"f1\tn\ttf\tn\tn",
		"f1\tn\ttf\tn\n",
		"f1\tn\ttf\ttv\tn\tn\tn\n",
		"i-\tn\ttf\ttv\tn\tn\n",
		"\n",
		"x\tn\ttf\ttv\tn\tn\n",
		"n1\tn\ttf\ttv\tn\tn\n",
	};
	struct asked asked;

	(void)state;
	asked_open(&asked);
	sent = "f1.5\tn\ttf\ttloss\tf0.25\ti7\nf2\tn\ttm\tti\tt'a'\tn\n";
	assert_int_equal(number_of(&asked, "SELECT count(*) FROM python.variables"), 2);
	assert_int_equal(number_of(&asked, "SELECT value * 4 FROM python.variables WHERE tid = 7 AND timestamp = 1.5"),
			 1);
	assert_int_equal(number_of(&asked, "SELECT value LIKE '_a_' FROM python.variables WHERE tid IS NULL"), 1);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		sent = wrong[i];
		assert_int_equal(sqlite3_exec(asked.db, "SELECT * FROM python.variables", NULL, NULL, NULL),
				 SQLITE_ERROR);
	}
	sent = NULL;
	assert_int_equal(sqlite3_exec(asked.db, "SELECT * FROM python.function_time", NULL, NULL, NULL), SQLITE_ERROR);
	assert_string_equal(sqlite3_errmsg(asked.db), "nothing is armed");
	assert_int_equal(live_error(asked.live), -ENOENT);
	sent = "";
	asked_close(&asked);
}

static void every_table_can_be_read(void **state)
{
	struct asked asked;

	(void)state;
	asked_open(&asked);
	for (size_t i = 0; live_tables[i]; i++) {
		bool is_of_gpu = strstr(live_tables[i]->name, "gpu") || strcmp(live_tables[i]->schema, "gpu") == 0;
		char sql[256];

		/* python.backtrace of this process: a process cannot stop itself. Other tables are of probes. */
		if (strcmp(live_tables[i]->schema, "python") == 0)
			continue;
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s.%s", live_tables[i]->schema, live_tables[i]->name);
		assert_true(number_of(&asked, sql) >= (is_of_gpu ? 0 : 1)); /* the machine may have none */
	}
	asked_close(&asked);
}

static void they_tell_of_this_process(void **state)
{
	struct asked asked;
	char sql[256];

	(void)state;
	asked_open(&asked);
	snprintf(sql, sizeof sql, "SELECT ppid FROM system.process WHERE pid = %d", (int)getpid());
	assert_int_equal(number_of(&asked, sql), getppid());
	snprintf(sql, sizeof sql, "SELECT count(*) FROM process.maps WHERE %llu BETWEEN start AND end",
		 (unsigned long long)(uintptr_t)&asked);
	assert_int_equal(number_of(&asked, sql), 1);
	assert_int_equal(number_of(&asked, "SELECT rss_mb > 0 AND vms_mb >= rss_mb FROM memory_usage"), 1);
	assert_int_equal(number_of(&asked, "SELECT tid FROM cpu.tasks"), getpid());
	assert_int_equal(number_of(&asked, "SELECT count(*) FROM cpu.utilization WHERE utilization BETWEEN 0 AND 1"),
			 number_of(&asked, "SELECT count(*) FROM cpu.utilization"));
	assert_int_equal(number_of(&asked, "SELECT count(*) > 0 FROM process.fds WHERE kind IS NOT NULL"), 1);
	asked_close(&asked);
}

/* All of a statement is of one look: a file that is opened half way is not seen. */
static void a_statement_sees_one_moment(void **state)
{
	sqlite3_stmt *statement;
	struct asked asked;
	int64_t before;
	int fd;

	(void)state;
	asked_open(&asked);
	before = number_of(&asked, "SELECT count(*) FROM process.fds");
	assert_int_equal(sqlite3_prepare_v2(asked.db,
					    "SELECT (SELECT count(*) FROM process.fds b WHERE b.fd >= a.fd * 0) FROM "
					    "process.fds a",
					    -1, &statement, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	fd = open("/dev/null", O_RDONLY);
	while (sqlite3_step(statement) == SQLITE_ROW)
		assert_true(sqlite3_column_int64(statement, 0) <= before + 1);
	assert_int_equal(sqlite3_reset(statement), SQLITE_OK);
	sqlite3_finalize(statement);
	assert_int_equal(number_of(&asked, "SELECT count(*) FROM process.fds"), before + 1);
	close(fd);
	asked_close(&asked);
}

static void who_is_not_there(void **state)
{
	const struct live_options options = { .pid = NO_PROCESS };
	struct live *live = NULL;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(live_open(db, &options, &live), -ESRCH);
	assert_null(live);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- Rings ---- */

static struct ring *make_ring(int folder, const char *name, const struct ring_column *columns, size_t n_columns)
{
	const struct ring_description description = {
		.name = name, .columns = columns, .n_columns = n_columns, .n_rows = 8
	};
	struct ring *ring;

	assert_int_equal(ring_create(folder, &description, &ring), 0);
	return ring;
}

static void append(struct ring *ring, int64_t a, double b)
{
	const struct ring_value values[] = { { .kind = RING_IS_INTEGER, .integer = a },
					     { .kind = RING_IS_REAL, .real = b } };

	(void)ring_append(ring, values);
}

/* Two files of one name that are larger together than a table may be. */
static void make_large_rings(int folder)
{
	static const struct ring_column wide[] = { { .name = "text", .type = RING_TEXT, .bytes = 4096 } };
	const struct ring_description description = {
		.name = "large", .columns = wide, .n_columns = 1, .n_rows = 20000
	};
	struct ring *ring;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(ring_create(folder, &description, &ring), 0);
		ring_close(ring);
	}
}

/* Rings with names that must not hurt: those of our tables and columns, SQLite's own, quotes. */
static void make_rings(const char *parent)
{
	static const struct ring_column plain[] = { { .name = "epoch", .type = RING_INTEGER },
						    { .name = "loss", .type = RING_REAL } };
	static const struct ring_column others[] = { { .name = "Epoch", .type = RING_NUMBER },
						     { .name = "accuracy", .type = RING_REAL } };
	static const struct ring_column odd[] = { { .name = "timestamp", .type = RING_INTEGER },
						  { .name = "a\"b, -- c)", .type = RING_REAL } };
	const struct ring_retention keep_all = { .days = 1000, .max_bytes = UINT64_MAX };
	struct ring *logs, *more, *odd_one;
	int folder;

	assert_int_equal(ring_folder_make(parent, &keep_all, &folder), 0);
	logs = make_ring(folder, "training_logs", plain, 2);
	more = make_ring(folder, "training_logs", others, 2);
	odd_one = make_ring(folder, "backtrace", odd, 2);
	ring_close(make_ring(folder, "sqlite_schema", odd, 2));
	ring_close(make_ring(folder, "x\"; DROP TABLE y; --", plain, 2));
	append(logs, 1, 0.5);
	append(more, 1, 0.75);
	append(logs, 2, 0.25);
	append(odd_one, 7, 1.5);
	make_large_rings(folder);
	ring_close(logs);
	ring_close(more);
	ring_close(odd_one);
	close(folder);
}

static void check_rings(struct asked *asked)
{
	assert_int_equal(number_of(asked, "SELECT count(*) FROM training_logs"), 3);
	assert_int_equal(number_of(asked, "SELECT count(loss) FROM python.training_logs"), 2);
	assert_int_equal(number_of(asked, "SELECT sum(epoch) FROM training_logs WHERE accuracy = 0.75"), 1);
	assert_int_equal(number_of(asked, "SELECT group_concat(epoch, '') FROM training_logs"), 112);
	assert_int_equal(
		number_of(asked,
			  "SELECT min(timestamp) > unixepoch() - 60 AND max(timestamp) < unixepoch() + 2 AND"
			  " max(abs(timestamp - (julianday('now') - 2440587.5) * 86400)) < 60 FROM training_logs"),
		1);
	assert_int_equal(number_of(asked, "SELECT count(DISTINCT time_ns) FROM training_logs"), 3);
	assert_int_equal(number_of(asked, "SELECT timestamp_ FROM python.backtrace_ WHERE \"a\"\"b, -- c)\" = 1.5"), 7);
	assert_int_equal(number_of(asked, "SELECT count(*) FROM python._sqlite_schema"), 0);
	assert_int_equal(number_of(asked, "SELECT count(*) FROM \"x\"\"; DROP TABLE y; --\""), 0);
	assert_int_equal(number_of(asked, "SELECT sum(appended) FROM python.rings WHERE name = 'training_logs'"), 3);
	assert_int_equal(number_of(asked, "SELECT count(*) FROM python.rings"), 7);
	assert_int_equal(sqlite3_exec(asked->db, "SELECT * FROM large", NULL, NULL, NULL), SQLITE_ERROR);
	assert_string_equal(
		sqlite3_errmsg(asked->db),
		"the rings of large are too large together: 156 MB, and 0 million values with those that are missing");
}

static void rings_are_tables(void **state)
{
	char parent[] = "/tmp/test-live.XXXXXX", command[128];
	struct live_options options = { .pid = getpid() };
	struct asked asked;
	pid_t child;

	(void)state;
	assert_non_null(mkdtemp(parent));
	assert_int_equal(setenv("PROBING_DATA_DIR", parent, 1), 0);
	child = fork();
	if (child == 0) {
		make_rings(parent);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	options.pid = child;
	assert_int_equal(sqlite3_open(":memory:", &asked.db), SQLITE_OK);
	assert_int_equal(live_open(asked.db, &options, &asked.live), 0);
	assert_true(live_has_ended(asked.live));
	check_rings(&asked);
	assert_int_equal(sqlite3_prepare_v2(asked.db, "SELECT * FROM cpu.tasks", -1, &(sqlite3_stmt *){ NULL }, NULL),
			 SQLITE_ERROR); /* nothing else is left of it */
	asked_close(&asked);
	snprintf(command, sizeof command, "rm -rf %s", parent);
	assert_int_equal(system(command), 0);
	assert_int_equal(unsetenv("PROBING_DATA_DIR"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_lines),
		cmocka_unit_test(maps_have_their_use),
		cmocka_unit_test(environments),
		cmocka_unit_test(small_things),
		cmocka_unit_test(rows_of_probes_are_whole),
		cmocka_unit_test(every_table_can_be_read),
		cmocka_unit_test(they_tell_of_this_process),
		cmocka_unit_test(a_statement_sees_one_moment),
		cmocka_unit_test(who_is_not_there),
		cmocka_unit_test(rings_are_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
