/* SPDX-License-Identifier: MIT */
/* fuzz_compare.c - recordings whose rows say anything, compared and written in every format; rules that are none.
 *
 * The first byte of an input chooses what numbers are of, the second how many bytes behind it are a function's name. The
 * rest are groups of three: which cell of the tables of runs, of which side, and a value. All of it is a rule as well.
 * Whatever comes of it: nothing crashes, and what claims to be JSON is.
 */
#include <jansson.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/compare.h"

enum { MAX_CHANGES = 64 };

static const char schema[] =
	"CREATE TABLE run(run, started, ended, command, pid, mode, hz, host, kernel, python, cpus);"
	"CREATE TABLE process(pid, started, ended); CREATE TABLE pause(started, ended); CREATE TABLE counter(name, value);"
	"CREATE TABLE run_process(run, pid, was); CREATE TABLE bench_run(bench_run, run, command, started, wall, user, sys, max_rss,"
	" exit_status);"
	"INSERT INTO run VALUES(1, 100, 102, 'app', 7, 'cpu', 99, 'here', '6.1', '3.11', 4), (2, 110, 112, 'app', 8, 'cpu', 99,"
	" 'here', '6.1', '3.11', 4);"
	"INSERT INTO run_process VALUES(1, 7, 7), (2, 8, 8);"
	"INSERT INTO bench_run VALUES(1, 1, 'app', 100, 1.5, NULL, NULL, NULL, 0), (2, NULL, 'app', 101, 1.5, 1, 0, 9, 0);"
	"INSERT INTO counter VALUES('lost', 0), ('n', 5);";

/* clang-format off */
static const char *const updates[] = {
	"UPDATE run SET run = ?1 - 1 WHERE run = 2", "UPDATE run SET started = ?1", "UPDATE run SET ended = ?1 * 1e300",
	"UPDATE run SET command = char(?1) || x'ff0a'", "UPDATE run SET host = zeroblob(?1)", "UPDATE run SET cpus = ?1",
	"UPDATE run_process SET pid = ?1", "UPDATE run_process SET run = ?1", "DELETE FROM run WHERE run = 1", "DROP TABLE run_process",
	"UPDATE bench_run SET wall = ?1 - 128", "UPDATE bench_run SET wall = ?1 * 1e306", "UPDATE bench_run SET wall = 'x'",
	"UPDATE bench_run SET run = ?1", "UPDATE bench_run SET command = zeroblob(?1)", "UPDATE counter SET value = ?1 * 1e305",
	"UPDATE counter SET value = -?1", "DELETE FROM counter", "DROP TABLE bench_run", "INSERT INTO bench_run(wall) VALUES(?1)",
	"INSERT INTO run(run) VALUES(?1)", "UPDATE process SET ended = ?1", "DROP TABLE pause",
};
/* clang-format on */

static void change(sqlite3 *db, uint8_t which, uint8_t value)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, updates[which % N_ELEMENTS(updates)], -1, &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_int(statement, 1, value);
		sqlite3_step(statement);
	}
	sqlite3_finalize(statement);
}

static sqlite3 *make_db(enum side side, const uint8_t *data, size_t size)
{
	sqlite3 *db = NULL;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK)
		abort();
	for (size_t i = 0; i + 3 <= size && i < 3 * (size_t)MAX_CHANGES; i += 3)
		if (data[i + 1] % N_SIDES == (uint8_t)side)
			change(db, data[i], data[i + 2]);
	return db;
}

/* Add two functions, one of them recursive, in two processes. */
static int add(struct compare *compare, enum side side, const char *name, const uint8_t *data, size_t size)
{
	struct profile_frame frames[] = {
		{ .kind = FRAME_PYTHON, .name = name, .file = name, .inlined_into = -1 },
		{ .kind = FRAME_NATIVE,
		  .name = "lib.so+0x10",
		  .module = side == SIDE_BASE ? name : "/lib.so.2",
		  .inlined_into = -1 },
	};
	struct profile_stack stacks[] = { { -1, 0 }, { 0, 1 }, { 1, 0 } };
	struct profile_total totals[] = {
		{ 7, 7, 0, 60, 600000 }, { 7, 7, 2, 30, 300000 }, { 8, 8, 1, 90, 900000 }, { 8, 8, -1, 1, 1 }
	};
	const struct profile profile = {
		.frames = frames, .n_frames = 2, .stacks = stacks, .n_stacks = 3, .totals = totals, .n_totals = 4
	};
	sqlite3 *db = make_db(side, data, size);
	char why[256];
	int r = compare_add(compare, side, name, db, &profile, why);

	sqlite3_close(db);
	return r;
}

static char *written(const struct compare *compare, int (*put)(const struct compare *, FILE *))
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out || put(compare, out) < 0 || fclose(out) != 0)
		abort();
	return text;
}

static void must_be_json(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	if (!json)
		abort();
	json_decref(json);
}

static int put_text(const struct compare *compare, FILE *out)
{
	return compare_write_text(compare, &(struct compare_look){ .columns = 80, .colour = true }, out);
}

static int put_markdown(const struct compare *compare, FILE *out)
{
	return compare_write_markdown(compare, NULL, &(struct compare_look){ 0 }, out);
}

static int put_svg(const struct compare *compare, FILE *out)
{
	return compare_write_svg(compare, NULL, out);
}

static void write_all(const struct compare *compare)
{
	static int (*const json[])(const struct compare *, FILE *) = { compare_write_json, compare_write_github,
								       compare_write_hyperfine };
	static int (*const other[])(const struct compare *, FILE *) = { put_text, put_markdown, put_svg,
									compare_write_go };

	for (size_t i = 0; i < N_ELEMENTS(json); i++) {
		CLEANUP(freep) char *text = written(compare, json[i]);

		must_be_json(text);
	}
	for (size_t i = 0; i < N_ELEMENTS(other); i++)
		free(written(compare, other[i]));
}

static bool allow_none(const void *data, const char *what)
{
	(void)data;
	(void)what;
	return false;
}

static void judge(const struct compare *compare, const char *text)
{
	static const char *const sound[] = { "self(func=*)>+5%", "total>+5%", "wall>+1%", "any", "new-hot", "lost" };
	struct compare_rule rules[N_ELEMENTS(sound) + 1];
	struct compare_verdict verdict;
	size_t n = 0;
	char why[256];

	for (size_t i = 0; i < N_ELEMENTS(sound); i++)
		n += compare_rule_parse(sound[i], &rules[n], why) == 0;
	n += compare_rule_parse(text, &rules[n], why) == 0;
	if (compare_judge(compare, rules, n, allow_none, NULL, &verdict) == 0) {
		char *junit = NULL;
		size_t n_bytes;
		FILE *out = open_memstream(&junit, &n_bytes);

		if (!out || compare_write_junit(compare, &verdict, out) < 0 ||
		    compare_write_verdict(compare, &verdict, out) < 0 ||
		    compare_write_markdown(compare, &verdict, &(struct compare_look){ 0 }, out) < 0)
			abort();
		fclose(out);
		free(junit);
		compare_verdict_done(&verdict);
	}
	for (size_t i = 0; i < n; i++)
		compare_rule_done(&rules[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	CLEANUP(freep) char *text = strndup((const char *)data, size);
	CLEANUP(freep) char *name = NULL;
	struct compare_options options = { .stacks = true, .counter = "n" };
	struct compare_rule rule;
	char why[256];
	size_t n_name;

	if (text && compare_rule_parse(text, &rule, why) == 0)
		compare_rule_done(&rule);
	if (size < 2)
		return 0;
	options.per = data[0] % (PER_COUNTER + 1);
	n_name = MIN((size_t)data[1], size - 2);
	name = strndup((const char *)data + 2, n_name);
	if (!name || !text || compare_new(&options, &compare) < 0)
		return 0;
	data += 2 + n_name;
	size -= 2 + n_name;
	if (add(compare, SIDE_BASE, name, data, size) >= 0 && add(compare, SIDE_HEAD, "x", data, size) >= 0 &&
	    compare_compute(compare) >= 0) {
		write_all(compare);
		judge(compare, text);
	}
	return 0;
}
