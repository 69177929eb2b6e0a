/* SPDX-License-Identifier: MIT */
/* Stacks of a recording as a shipper names them: which have the same hash, and which must not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/fleet/feed.h"

/* Only what feed_stacks.c reads. f of f.py is Python, g is native; both are of module 1. */
static const char tables[] =
	"CREATE TABLE stack(stack INTEGER PRIMARY KEY, parent INT, frame INT);"
	"CREATE TABLE frame(frame INTEGER PRIMARY KEY, kind TEXT, line INT, is_eval INT, inlined_into INT, address INT,"
	" function INT, module INT);"
	"CREATE TABLE function(function INTEGER PRIMARY KEY, name TEXT, role TEXT, file TEXT, first_line INT, module INT);"
	"CREATE TABLE module(module INTEGER PRIMARY KEY, path TEXT, build_id TEXT);"
	"INSERT INTO module VALUES (1, '/m', 'b1'), (2, '/other', 'b2');"
	"INSERT INTO function VALUES (1, 'f', NULL, 'f.py', 1, 1), (2, 'g', NULL, 'g.c', 2, 1);";

static int begin(void **state)
{
	struct feed *feed = calloc(1, sizeof *feed);

	if (!feed || sqlite3_open(":memory:", &feed->db) != SQLITE_OK ||
	    sqlite3_exec(feed->db, tables, NULL, NULL, NULL) != SQLITE_OK || feed_begin_stacks(feed, true) != 0)
		return -1;
	*state = feed;
	return 0;
}

static int end(void **state)
{
	struct feed *feed = *state;

	feed_end(feed);
	feed_done(feed);
	free(feed);
	return 0;
}

static void add(const struct feed *feed, const char *sql)
{
	assert_int_equal(sqlite3_exec(feed->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* A frame of a function, and a stack of the same number with it. */
static void add_frame(const struct feed *feed, int number, int parent, const char *kind, const char *rest)
{
	char sql[256];

	snprintf(sql, sizeof sql, "INSERT INTO frame VALUES (%d, '%s', %s); INSERT INTO stack VALUES (%d, %d, %d)",
		 number, kind, rest, number, parent, number);
	add(feed, sql);
}

static const struct feed_stack *resolve(struct feed *feed, int64_t stack)
{
	uint32_t index;

	assert_int_equal(feed_resolve(feed, stack, &index), 0);
	/* No statement keeps the recorder's log from beginning again. */
	for (sqlite3_stmt *each = NULL; (each = sqlite3_next_stmt(feed->db, each)) != NULL;)
		assert_false(sqlite3_stmt_busy(each));
	return &feed->stacks[index];
}

static void assert_hash(const struct fleet_hash *hash, const char *expected)
{
	char text[2 * sizeof hash->bytes + 1];

	for (size_t i = 0; i < sizeof hash->bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", hash->bytes[i]);
	assert_string_equal(text, expected);
}

/* Hosts of other versions of probing have the same ids, and servers keep them for years. */
static void ids_stay_what_they_are(void **state)
{
	struct feed *feed = *state;

	add_frame(feed, 1, 0, "native", "0, 0, NULL, 7, 2, NULL");
	add_frame(feed, 2, 1, "python", "12, 0, NULL, 0, 1, NULL");
	assert_hash(&resolve(feed, 2)->hash, "f64da27b782089c9ab3aefb4ff2dc92c");
	assert_hash(&resolve(feed, 1)->hash, "a52fd54b189339a9c01277e722fc221e");
	assert_hash(&feed->functions[1].hash, "0d8ab62774937d2e06027a1256764158");
}

static void lines_alone_make_no_other_stack(void **state)
{
	struct feed *feed = *state;

	add_frame(feed, 1, 0, "python", "12, 0, NULL, 0, 1, NULL");
	add_frame(feed, 2, 0, "python", "13, 0, NULL, 0, 1, NULL");
	add_frame(feed, 3, 1, "python", "5, 0, NULL, 0, 1, NULL");
	add_frame(feed, 4, 2, "python", "6, 0, NULL, 0, 1, NULL");
	assert_int_equal(resolve(feed, 1)->leaf, 12);
	assert_int_equal(resolve(feed, 2)->leaf, 13);
	assert_int_equal(resolve(feed, 2)->same, resolve(feed, 1)->same);
	assert_int_equal(resolve(feed, 4)->same, resolve(feed, 3)->same);
	assert_memory_equal(&resolve(feed, 4)->hash, &resolve(feed, 3)->hash, sizeof(struct fleet_hash));
	assert_memory_not_equal(&resolve(feed, 4)->hash, &resolve(feed, 1)->hash, sizeof(struct fleet_hash));
	assert_int_equal(feed->n_functions, 1);
}

/* One number of a function, but another module, kind, or place: another function. */
static void what_else_decides_about_a_function(void **state)
{
	struct feed *feed = *state;

	add_frame(feed, 1, 0, "native", "0, 0, NULL, 7, 2, NULL");
	add_frame(feed, 2, 0, "native", "0, 0, NULL, 7, 2, 2");
	add_frame(feed, 3, 0, "native", "0, 1, NULL, 7, 2, NULL");
	add_frame(feed, 4, 0, "kernel", "0, 0, NULL, 7, 2, NULL");
	add_frame(feed, 5, 0, "new kind", "0, 0, NULL, 7, 2, NULL");
	add_frame(feed, 6, 0, "newer kind", "0, 0, NULL, 7, 2, NULL");
	for (int one = 1; one <= 6; one++)
		for (int other = 1; other < one; other++)
			assert_memory_not_equal(&resolve(feed, one)->hash, &resolve(feed, other)->hash,
						sizeof(struct fleet_hash));
	assert_int_equal(feed->n_functions, 6);
	assert_string_equal(feed->functions[2].role, "eval");
	/* And each again, now that all were seen. */
	add_frame(feed, 11, 0, "native", "0, 0, NULL, 8, 2, NULL");
	add_frame(feed, 12, 0, "native", "0, 0, NULL, 8, 2, 2");
	add_frame(feed, 13, 0, "native", "0, 1, NULL, 8, 2, NULL");
	add_frame(feed, 16, 0, "newer kind", "0, 0, NULL, 8, 2, NULL");
	for (int one = 1; one <= 6; one++)
		if (one < 4 || one == 6)
			assert_int_equal(resolve(feed, 10 + one)->same, resolve(feed, one)->same);
	assert_int_equal(feed->n_functions, 6);
}

/* f inlined into g in one frame, and f called by g in two. */
static void inlining_may_cut_frames_otherwise(void **state)
{
	struct feed *feed = *state;

	add_frame(feed, 1, 0, "native", "0, 0, NULL, 7, 2, NULL");
	add_frame(feed, 2, 0, "native", "0, 0, 1, 7, 1, NULL");
	add_frame(feed, 3, 1, "native", "0, 0, NULL, 9, 1, NULL");
	add_frame(feed, 4, 3, "native", "0, 0, NULL, 9, 1, NULL");
	add_frame(feed, 5, 2, "native", "0, 0, NULL, 10, 1, NULL");
	assert_int_equal(resolve(feed, 3)->same, resolve(feed, 2)->same);
	assert_int_equal(resolve(feed, 5)->same, resolve(feed, 4)->same);
	assert_memory_equal(&resolve(feed, 5)->hash, &resolve(feed, 4)->hash, sizeof(struct fleet_hash));
}

static void rows_that_come_later_are_found(void **state)
{
	struct feed *feed = *state;
	uint32_t index;

	add_frame(feed, 1, 0, "python", "12, 0, NULL, 0, 1, NULL");
	(void)resolve(feed, 1);
	assert_int_equal(feed_resolve(feed, 2, &index), -EBADMSG);
	add_frame(feed, 2, 1, "python", "13, 0, NULL, 0, 1, NULL");
	add_frame(feed, 1000, 2, "python", "14, 0, NULL, 0, 1, NULL");
	assert_int_equal(resolve(feed, 1000)->leaf, 14);
	assert_int_equal(resolve(feed, 2)->leaf, 13);
	add(feed,
	    "INSERT INTO stack VALUES (3, 2, 77), (4, -5, 1), (5, 99, 1), (6, 6, 1); INSERT INTO frame VALUES (8, 'native', 0, 0, 8, 7,"
	    " 2, NULL); INSERT INTO stack VALUES (7, 0, 8)");
	for (int64_t stack = 3; stack <= 7; stack++) /* no such frame, caller, end of callers or of inlining */
		assert_int_equal(feed_resolve(feed, stack, &index), -EBADMSG);
}

static void next_pass(struct feed *feed, bool is_other)
{
	feed_end_stacks(feed);
	assert_int_equal(feed_begin_stacks(feed, is_other), 0);
}

/* A frame without a name keeps no pass from knowing the stacks of the one before; one that has got a name does. */
static void names_that_come_later_are_found(void **state)
{
	struct feed *feed = *state;
	struct fleet_hash nameless;

	add_frame(feed, 1, 0, "native", "0, 0, NULL, 7, NULL, 2");
	add_frame(feed, 2, 1, "python", "12, 0, NULL, 0, 1, NULL");
	nameless = resolve(feed, 2)->hash;
	assert_string_equal(feed->functions[0].name, "other+0x7");
	next_pass(feed, false);
	assert_int_equal(feed->n_stacks, 2);
	assert_memory_equal(&resolve(feed, 2)->hash, &nameless, sizeof nameless);

	add(feed, "UPDATE frame SET function = 2 WHERE frame = 1");
	next_pass(feed, false);
	assert_int_equal(feed->n_stacks, 0);
	assert_memory_not_equal(&resolve(feed, 2)->hash, &nameless, sizeof nameless);
	next_pass(feed, false); /* no frame is without a name any more */
	assert_int_equal(feed->n_stacks, 2);

	add_frame(feed, 3, 0, "native", "0, 0, NULL, 8, NULL, 2");
	(void)resolve(feed, 3);
	add(feed, "DELETE FROM frame WHERE frame = 3");
	next_pass(feed, false);
	assert_int_equal(feed->n_stacks, 0);
	(void)resolve(feed, 2);
	next_pass(feed, true);
	assert_int_equal(feed->n_stacks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_stay_what_they_are, begin, end),
		cmocka_unit_test_setup_teardown(lines_alone_make_no_other_stack, begin, end),
		cmocka_unit_test_setup_teardown(what_else_decides_about_a_function, begin, end),
		cmocka_unit_test_setup_teardown(inlining_may_cut_frames_otherwise, begin, end),
		cmocka_unit_test_setup_teardown(rows_that_come_later_are_found, begin, end),
		cmocka_unit_test_setup_teardown(names_that_come_later_are_found, begin, end),
	};

	return cmocka_run_group_tests_name("fleet_feed", tests, NULL, NULL);
}
