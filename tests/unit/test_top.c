/* SPDX-License-Identifier: MIT */
/* The live view without a terminal: samples and rows of a store go in as the pipeline would put
 * them, keys are pressed, and the text of the picture comes out. */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/top/top.h"

#define SECOND 1000000000ull

enum { PID = 42, OTHER = 43, ROWS = 24, COLUMNS = 100 };

/* main calls work (twice nested) and rest; work calls the native crunch. */
enum { STACK_MAIN = 1, STACK_WORK, STACK_WORK_AGAIN, STACK_CRUNCH, STACK_REST, N_STACKS = STACK_REST };

struct bench {
	struct top *top;
	struct store *store;
	uint64_t now_ns;
	struct top_status status;
	char *text; /* of the last picture */
};

static const pid_t tids[] = { PID, OTHER, 44 };

/* ---- The pipeline's part ---- */

static void put_function(struct store *store, int64_t id, enum frame_kind kind, const char *name, const char *file,
			 int line)
{
	const struct function_row row = { .function = id, .name = name, .kind = kind, .file = file, .first_line = line };

	assert_int_equal(store_put_function(store, &row), 0);
}

static void put_frame(struct store *store, int64_t id, enum frame_kind kind, int64_t function, int line)
{
	const struct frame_row row = { .frame = id,
				       .kind = kind,
				       .function = function,
				       .line = line,
				       .module = kind == FRAME_NATIVE ? 1 : 0,
				       .has_address = kind == FRAME_NATIVE,
				       .address = 0x1200 };

	assert_int_equal(store_put_frame(store, &row), 0);
}

static void put_stack(struct store *store, int64_t id, int64_t parent, int64_t frame)
{
	const struct stack_row row = { id, parent, frame, 0 };

	assert_int_equal(store_put_stack(store, &row), 0);
}

static void put_rows(struct store *store)
{
	const struct module_row module = { .module = 1, .path = "/opt/lib/libnumbers.so" };
	const struct thread_row threads[] = { { .pid = PID, .tid = PID, .name = "main", .started_ns = 1 },
					      { .pid = PID, .tid = OTHER, .name = "worker", .started_ns = 1 } };

	assert_int_equal(store_begin(store), 0);
	for (size_t i = 0; i < N_ELEMENTS(threads); i++)
		assert_int_equal(store_put_thread(store, &threads[i]), 0);
	assert_int_equal(store_put_module(store, &module), 0);
	put_function(store, 1, FRAME_PYTHON, "main", "/srv/app/run.py", 3);
	put_function(store, 2, FRAME_PYTHON, "work", "/srv/app/work.py", 10);
	put_function(store, 3, FRAME_PYTHON, "rest", "/srv/app/work.py", 30);
	put_frame(store, 1, FRAME_PYTHON, 1, 5);
	put_frame(store, 2, FRAME_PYTHON, 2, 11);
	put_frame(store, 3, FRAME_PYTHON, 2, 12);
	put_frame(store, 4, FRAME_NATIVE, 0, 0); /* named later */
	put_frame(store, 5, FRAME_PYTHON, 3, 31);
	put_stack(store, STACK_MAIN, 0, 1);
	put_stack(store, STACK_WORK, STACK_MAIN, 2);
	put_stack(store, STACK_WORK_AGAIN, STACK_WORK, 3);
	put_stack(store, STACK_CRUNCH, STACK_WORK_AGAIN, 4);
	put_stack(store, STACK_REST, STACK_MAIN, 5);
	assert_int_equal(store_commit(store), 0);
}

static void name_native(struct bench *bench)
{
	assert_int_equal(store_begin(bench->store), 0);
	put_function(bench->store, 4, FRAME_NATIVE, "crunch", "numbers.c", 7);
	assert_int_equal(store_name_frame(bench->store, 4, 4, 9, 0), 0);
	assert_int_equal(store_commit(bench->store), 0);
}

static void sample(struct bench *bench, pid_t tid, int64_t stack, unsigned n)
{
	const struct sample_row row = { .pid = PID, .tid = tid, .weight = 10000000, .stack = stack };

	while (n-- > 0)
		assert_int_equal(top_take(bench->top, &row), 0);
}

/* ---- The user's part ---- */

static void look(struct bench *bench)
{
	CLEANUP(grid_done) struct grid grid = { 0 };
	size_t n_bytes;
	FILE *out;

	free(bench->text);
	bench->text = NULL;
	out = open_memstream(&bench->text, &n_bytes);
	assert_non_null(out);
	assert_int_equal(grid_init(&grid, ROWS, COLUMNS), 0);
	top_draw(bench->top, &grid);
	assert_int_equal(grid_print(&grid, out), 0);
	fclose(out);
}

/* Some time later. */
static void refresh(struct bench *bench, double seconds)
{
	bench->now_ns += (uint64_t)(seconds * 1e9);
	assert_int_equal(top_absorb(bench->top, bench->now_ns), 0);
	assert_int_equal(top_refresh(bench->top, &bench->status, bench->now_ns), 0);
	look(bench);
}

static enum top_action press(struct bench *bench, uint32_t key)
{
	enum top_action action = top_key(bench->top, key, bench->now_ns);

	look(bench);
	return action;
}

static void type(struct bench *bench, const char *text)
{
	for (; *text; text++)
		press(bench, (uint8_t)*text);
}

static void expect(const struct bench *bench, const char *text)
{
	if (!strstr(bench->text, text))
		fail_msg("'%s' is not on this screen:\n%s", text, bench->text);
}

static void expect_not(const struct bench *bench, const char *text)
{
	if (strstr(bench->text, text))
		fail_msg("'%s' is on this screen:\n%s", text, bench->text);
}

/* The line with a name at a word's start, after its numbers. */
static void expect_row(const struct bench *bench, const char *name, const char *self, const char *total)
{
	CLEANUP(freep) char *copy = strdup(bench->text);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")) != NULL) {
		char found_self[16], found_total[16];
		char *at = strstr(line, name);

		if (!at || at == line || at[-1] != ' ' || (at[strlen(name)] != ' ' && at[strlen(name)] != '\0') ||
		    sscanf(line, "%15s %*s ms %15s", found_self, found_total) < 1)
			continue;
		if (sscanf(line, " %15s %*[0-9.] %*[ms] %15s", found_self, found_total) != 2 &&
		    sscanf(line, " %15s 0 %15s", found_self, found_total) != 2)
			continue;
		if (strcmp(found_self, self) == 0 && strcmp(found_total, total) == 0)
			return;
	}
	fail_msg("no row '%s' with self %s and total %s:\n%s", name, self, total, bench->text);
}

static size_t place_of(const struct bench *bench, const char *text)
{
	const char *at = strstr(bench->text, text);

	if (!at)
		fail_msg("'%s' is not on this screen:\n%s", text, bench->text);
	return (size_t)(at - bench->text);
}

static int setup_with(void **state, const struct top_options *options)
{
	struct bench *bench = calloc(1, sizeof *bench);

	assert_non_null(bench);
	bench->now_ns = 1000 * SECOND;
	bench->status = (struct top_status){ .command = "python3 run.py",
					     .python = "3.11.2",
					     .source = "wakeup",
					     .pid = PID,
					     .hz = 99,
					     .cpu_share = 0.5,
					     .gil_share = 0.75,
					     .gc_share = -1,
					     .n_threads = 3,
					     .tids = tids,
					     .n_tids = N_ELEMENTS(tids) };
	assert_int_equal(top_new(options, bench->now_ns, &bench->top), 0);
	assert_int_equal(top_begin(bench->top, bench->now_ns, &bench->store), 0);
	put_rows(bench->store);
	*state = bench;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, &(struct top_options){ .window_s = 5, .is_interactive = true });
}

static int setup_child(void **state)
{
	return setup_with(state, &(struct top_options){ .window_s = 5, .is_interactive = true, .is_child = true });
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	top_free(bench->top);
	store_close(bench->store);
	free(bench->text);
	free(bench);
	return 0;
}

/* ---- Numbers ---- */

static void a_function_that_calls_itself_counts_once(void **state)
{
	const struct sample_row unsampled = {
		.pid = PID, .tid = PID, .weight = 1, .stack = STACK_MAIN, .is_unsampled = true
	};
	struct bench *bench = *state;

	sample(bench, PID, STACK_CRUNCH, 5);
	sample(bench, PID, STACK_WORK_AGAIN, 3);
	sample(bench, PID, STACK_REST, 2);
	assert_int_equal(top_take(bench->top, &unsampled), 0);
	refresh(bench, 1);
	expect_row(bench, "libnumbers.so+0x1200", "50.0", "50.0");
	expect_row(bench, "work", "30.0", "80.0");
	expect_row(bench, "rest", "20.0", "20.0");
	expect_row(bench, "main", "0.0", "100.0");
	expect(bench, "10 samples");
	expect(bench, "CPU 50%  GIL 75%  3 threads");
	expect_not(bench, "GC");
	expect(bench, "/srv/app/work.py:10");
	/* Without native frames their time is their caller's. */
	press(bench, 'n');
	expect_row(bench, "work", "80.0", "80.0");
	expect_not(bench, "libnumbers");
}

static void names_come_later(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, STACK_CRUNCH, 4);
	press(bench, 'w'); /* sums are kept from refresh to refresh */
	refresh(bench, 1);
	expect_row(bench, "libnumbers.so+0x1200", "100.0", "100.0");
	name_native(bench);
	sample(bench, PID, STACK_CRUNCH, 4);
	refresh(bench, 1);
	expect_row(bench, "crunch", "100.0", "100.0");
	expect_not(bench, "libnumbers.so+");
	assert_true(top_is_stable(bench->top));
}

static void a_stack_that_is_not_there_yet_is_waited_for(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, N_STACKS + 1, 6);
	sample(bench, PID, STACK_REST, 2);
	refresh(bench, 1);
	expect(bench, "2 samples");
	assert_false(top_is_stable(bench->top));
	assert_int_equal(store_begin(bench->store), 0);
	put_stack(bench->store, N_STACKS + 1, STACK_REST, 2);
	assert_int_equal(store_commit(bench->store), 0);
	refresh(bench, 1);
	expect(bench, "8 samples");
	expect_row(bench, "work", "75.0", "75.0");
}

static void rows_come_in_the_order_of_their_use(void **state)
{
	const struct module_row late = { .module = 3, .path = "/lib/late.so" },
				later = { .module = 2, .path = "/lib/later.so" };
	const struct module_row *modules[] = { &late, &later };
	struct bench *bench = *state;

	for (int i = 0; i < 2; i++) {
		const struct frame_row frame = { .frame = 6 + i,
						 .kind = FRAME_NATIVE,
						 .has_address = true,
						 .module = modules[i]->module,
						 .address = 0x10 };

		assert_int_equal(store_begin(bench->store), 0);
		assert_int_equal(store_put_module(bench->store, modules[i]), 0);
		assert_int_equal(store_put_frame(bench->store, &frame), 0);
		put_stack(bench->store, N_STACKS + 1 + i, 0, 6 + i);
		assert_int_equal(store_commit(bench->store), 0);
		sample(bench, PID, N_STACKS + 1 + i, 1);
		refresh(bench, 1);
	}
	expect_row(bench, "late.so+0x10", "50.0", "50.0");
	expect_row(bench, "later.so+0x10", "50.0", "50.0");
}

static void inlined_functions_are_callers(void **state)
{
	const struct frame_row outer = {
		.frame = 1ll << 32, .kind = FRAME_NATIVE, .module = 1, .function = 5, .line = 3
	};
	struct bench *bench = *state;

	sample(bench, PID, STACK_CRUNCH, 1);
	refresh(bench, 1);
	assert_int_equal(store_begin(bench->store), 0);
	put_function(bench->store, 4, FRAME_NATIVE, "inner", "numbers.c", 7);
	put_function(bench->store, 5, FRAME_NATIVE, "outer", "numbers.c", 1);
	assert_int_equal(store_put_frame(bench->store, &outer), 0);
	assert_int_equal(store_name_frame(bench->store, 4, 4, 9, outer.frame), 0);
	assert_int_equal(store_commit(bench->store), 0);
	refresh(bench, 1);
	expect_row(bench, "inner", "100.0", "100.0");
	expect_row(bench, "outer", "0.0", "100.0");
}

static void a_sample_without_stack_is_counted(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, 0, 1);
	sample(bench, PID, STACK_CRUNCH, 1);
	refresh(bench, 1);
	expect_row(bench, "[no stack]", "50.0", "50.0");
}

static void a_window_lets_go_of_what_is_old(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, STACK_REST, 10);
	refresh(bench, 1);
	expect(bench, "last 1.00 s  10 samples");
	for (int i = 0; i < 4; i++)
		refresh(bench, 1);
	sample(bench, PID, STACK_WORK, 30);
	refresh(bench, 1);
	expect(bench, "last 5.00 s  30 samples");
	expect_not(bench, "rest");
	press(bench, 'w');
	expect(bench, "since start, 6.00 s  40 samples");
	expect_row(bench, "rest", "25.0", "25.0");
	press(bench, '+');
	expect(bench, "last 6.00 s  40 samples"); /* of ten */
	press(bench, '-');
	press(bench, '-');
	expect(bench, "last 2.00 s  30 samples");
}

static void since_the_start_only_grows(void **state)
{
	struct bench *bench = *state;

	press(bench, 'w');
	for (int i = 0; i < 1000; i++) {
		sample(bench, PID, STACK_REST, 1);
		sample(bench, OTHER, STACK_WORK, 3);
		refresh(bench, 1);
	}
	expect(bench, "4000 samples");
	expect_row(bench, "main", "0.0", "100.0");
	expect(bench, "16m 40s");
	assert_false(top_is_full(bench->top));
}

static void time_stands_still_after_the_end(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, STACK_REST, 10);
	refresh(bench, 1);
	bench->status.has_ended = true;
	for (int i = 0; i < 20; i++)
		refresh(bench, 1);
	expect(bench, "the process has ended");
	expect_row(bench, "rest", "100.0", "100.0");
	assert_int_equal(press(bench, 'q'), TOP_QUIT);
}

static void a_pause_freezes_what_is_shown(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, STACK_REST, 10);
	refresh(bench, 1);
	press(bench, 'p');
	expect(bench, "PAUSED");
	for (int i = 0; i < 10; i++) {
		sample(bench, PID, STACK_WORK, 10);
		refresh(bench, 1);
	}
	expect(bench, "  10 samples");
	expect_row(bench, "rest", "100.0", "100.0");
	press(bench, 'l'); /* other questions can be asked of it */
	expect(bench, "/srv/app/work.py:31");
	press(bench, 'f');
	press(bench, ' ');
	refresh(bench, 1);
	expect_not(bench, "PAUSED");
	expect_row(bench, "work", "100.0", "100.0");
	press(bench, 'w');
	expect(bench, "110 samples");
}

static void a_reset_forgets(void **state)
{
	struct bench *bench = *state;

	sample(bench, PID, STACK_REST, 10);
	refresh(bench, 1);
	assert_int_equal(press(bench, 'r'), TOP_RESET);
	expect(bench, "0 samples");
	sample(bench, PID, STACK_WORK, 5);
	refresh(bench, 1);
	press(bench, 'w');
	expect(bench, "since start, 1.00 s  5 samples");
}

static void it_begins_anew_when_it_is_full(void **state)
{
	enum { MANY = (1 << 19) + 1 };
	struct bench *bench = *state;
	struct store *store;

	assert_int_equal(store_begin(bench->store), 0);
	for (int i = 1; i <= MANY; i++)
		put_stack(bench->store, N_STACKS + i, N_STACKS + i - (i > 100 ? 100 : 1), 2);
	assert_int_equal(store_commit(bench->store), 0);
	refresh(bench, 1);
	assert_true(top_is_full(bench->top));
	assert_int_equal(top_begin(bench->top, bench->now_ns, &store), 0);
	store_close(bench->store);
	bench->store = store;
	put_rows(store);
	sample(bench, PID, STACK_REST, 3);
	refresh(bench, 1);
	assert_false(top_is_full(bench->top));
	expect_row(bench, "rest", "100.0", "100.0");
	press(bench, 'w');
	expect(bench, "reset: too many stacks");
}

/* ---- Views ---- */

static void fill(struct bench *bench)
{
	name_native(bench);
	sample(bench, PID, STACK_CRUNCH, 4);
	sample(bench, PID, STACK_WORK, 2);
	sample(bench, PID, STACK_WORK_AGAIN, 1);
	sample(bench, OTHER, STACK_REST, 3);
	refresh(bench, 1);
}

static void there_are_views_of_lines_modules_and_threads(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	press(bench, 'l');
	expect(bench, "/srv/app/work.py:11");
	expect(bench, "/srv/app/work.py:12");
	expect(bench, "numbers.c:9");
	press(bench, 'm');
	expect_row(bench, "libnumbers.so", "40.0", "40.0");
	expect_row(bench, "work.py", "60.0", "100.0");
	expect(bench, "/opt/lib/libnumbers.so");
	press(bench, 't');
	expect_row(bench, "main", "70.0", "70.0");
	expect_row(bench, "worker", "30.0", "30.0");
	expect(bench, "thread 43");
	expect_not(bench, "thread 44");
	press(bench, 'i');
	expect(bench, "thread 44");
	press(bench, TOP_KEY_TAB);
	expect(bench, "call tree");
	press(bench, TOP_KEY_TAB);
	press(bench, TOP_KEY_BACK_TAB);
	expect(bench, "call tree");
}

static void a_thread_can_be_looked_into(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	press(bench, 't');
	press(bench, TOP_KEY_DOWN);
	press(bench, TOP_KEY_ENTER);
	expect(bench, "thread 43  3 samples");
	expect_row(bench, "rest", "100.0", "100.0");
	expect_not(bench, "crunch");
	press(bench, 'c');
	expect(bench, "call tree");
	expect_not(bench, "crunch");
	press(bench, TOP_KEY_ESCAPE);
	expect(bench, "worker");
}

static void the_tree_folds(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	press(bench, 'c');
	expect_row(bench, "- main", "0.0", "100.0");
	expect_row(bench, "- work", "20.0", "70.0");
	expect_row(bench, "- work", "10.0", "50.0");
	expect_row(bench, "crunch", "40.0", "40.0");
	assert_true(place_of(bench, "crunch") < place_of(bench, "rest"));
	press(bench, TOP_KEY_DOWN);
	press(bench, TOP_KEY_ENTER);
	expect_row(bench, "+ work", "20.0", "70.0");
	expect_not(bench, "crunch");
	expect(bench, "rest");
	refresh(bench, 0.5); /* it stays so */
	expect(bench, "+ work");
	press(bench, TOP_KEY_ENTER);
	expect(bench, "crunch");
	/* A filter draws callers along. */
	press(bench, '/');
	type(bench, "crunch");
	expect(bench, "- main");
	expect_not(bench, "rest");
}

static void callers_and_callees_are_shown(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	press(bench, '2');
	press(bench, TOP_KEY_DOWN); /* main, work */
	press(bench, TOP_KEY_ENTER);
	expect(bench, "called by");
	expect_row(bench, "work", "30.0", "70.0");
	assert_true(place_of(bench, "called by") < place_of(bench, "the function"));
	assert_true(place_of(bench, "the function") < place_of(bench, "calls (total"));
	expect_row(bench, "main", "0.0", "70.0");
	expect_row(bench, "crunch", "40.0", "40.0");
	expect_row(bench, "work", "30.0", "50.0"); /* by itself */
	press(bench, TOP_KEY_END);
	press(bench, TOP_KEY_ENTER);
	expect_row(bench, "crunch", "40.0", "40.0");
	press(bench, TOP_KEY_ESCAPE);
	press(bench, TOP_KEY_ESCAPE);
	expect_not(bench, "called by");
	expect_row(bench, "rest", "30.0", "30.0");
}

static void rows_are_sorted_and_filtered(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	assert_true(place_of(bench, "crunch") < place_of(bench, "rest"));
	press(bench, '3');
	expect(bench, ">function");
	assert_true(place_of(bench, "crunch") < place_of(bench, "main"));
	assert_true(place_of(bench, "main") < place_of(bench, "rest"));
	press(bench, 'R');
	assert_true(place_of(bench, "main") > place_of(bench, "rest"));
	press(bench, 'R');
	press(bench, '>');
	expect(bench, ">self%");
	press(bench, '/');
	type(bench, "WORK.py");
	expect(bench, "/WORK.py_");
	press(bench, TOP_KEY_ENTER);
	expect_row(bench, "work", "30.0", "70.0");
	expect_row(bench, "rest", "30.0", "30.0");
	expect_not(bench, "crunch");
	press(bench, TOP_KEY_ESCAPE);
	expect(bench, "crunch");
	press(bench, '/');
	type(bench, "xyz");
	expect(bench, "nothing has that");
	press(bench, TOP_KEY_BACKSPACE);
	press(bench, TOP_KEY_ESCAPE);
	expect(bench, "crunch");
}

static void help_and_leaving(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	press(bench, '?');
	expect(bench, "Keys (arrows scroll");
	press(bench, 'f');
	expect(bench, "crunch");
	assert_int_equal(press(bench, 'q'), TOP_QUIT);
	assert_int_equal(press(bench, TOP_KEY_REDRAW), TOP_REPAINT);
}

static void leaving_a_command_is_asked_for(void **state)
{
	struct bench *bench = *state;

	fill(bench);
	assert_int_equal(press(bench, 'q'), TOP_STAY);
	expect(bench, "end the command");
	assert_int_equal(press(bench, 'x'), TOP_STAY);
	expect_not(bench, "end the command");
	press(bench, 'q');
	assert_int_equal(press(bench, 'd'), TOP_QUIT);
	press(bench, 'q');
	assert_int_equal(press(bench, 'q'), TOP_QUIT_AND_END);
}

/* ---- Pictures ---- */

static void it_is_drawn_at_every_size(void **state)
{
	static const uint32_t keys[] = { 'f', 'c', 't', '?', 'f', '/', TOP_KEY_ENTER, TOP_KEY_END, TOP_KEY_ENTER };
	struct bench *bench = *state;

	fill(bench);
	for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
		press(bench, keys[i]);
		for (unsigned rows = 1; rows < 30; rows++)
			for (unsigned columns = 1; columns < 130; columns += 3) {
				struct grid grid;

				assert_int_equal(grid_init(&grid, rows, columns), 0);
				top_draw(bench->top, &grid);
				grid_done(&grid);
			}
	}
}

static void foreign_names_stay_in_their_columns(void **state)
{
	struct bench *bench = *state;
	struct store *store = bench->store;

	assert_int_equal(store_begin(store), 0);
	put_function(store, 5, FRAME_PYTHON, "evil\033[2J\nname\xff\xe2\x80\xae", "/x\ty.py", 1);
	put_function(store, 6, FRAME_PYTHON, "\xe5\xb9\x85\xe5\xba\x83\xe3\x81\x84\xe5\x90\x8d\xe5\x89\x8d", "/w.py",
		     1);
	put_function(store, 7, FRAME_PYTHON, "cafe\xcc\x81", "/c.py", 1);
	for (int i = 0; i < 3; i++) {
		put_frame(store, 6 + i, FRAME_PYTHON, 5 + i, 1);
		put_stack(store, N_STACKS + 1 + i, 0, 6 + i);
	}
	assert_int_equal(store_commit(store), 0);
	for (int i = 0; i < 3; i++)
		sample(bench, PID, N_STACKS + 1 + i, 3 - (unsigned)i);
	refresh(bench, 1);
	expect_not(bench, "\033");
	expect(bench, "evil [2J name\xef\xbf\xbd ");
	expect(bench, "\xe5\xb9\x85\xe5\xba\x83\xe3\x81\x84\xe5\x90\x8d\xe5\x89\x8d");
	expect(bench, "cafe\xcc\x81");
	expect(bench, "/x y.py:1");
	/* Wide characters that do not fit are cut by columns. */
	for (unsigned columns = 20; columns < 60; columns++) {
		struct grid grid;

		assert_int_equal(grid_init(&grid, 10, columns), 0);
		top_draw(bench->top, &grid);
		for (unsigned i = 0; i < 10; i++)
			assert_true(i == 0 || grid.cells[(size_t)i * columns].character != 0);
		grid_done(&grid);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_function_that_calls_itself_counts_once),
		TEST(names_come_later),
		TEST(a_stack_that_is_not_there_yet_is_waited_for),
		TEST(a_sample_without_stack_is_counted),
		TEST(rows_come_in_the_order_of_their_use),
		TEST(inlined_functions_are_callers),
		TEST(a_window_lets_go_of_what_is_old),
		TEST(since_the_start_only_grows),
		TEST(time_stands_still_after_the_end),
		TEST(a_pause_freezes_what_is_shown),
		TEST(a_reset_forgets),
		TEST(it_begins_anew_when_it_is_full),
		TEST(there_are_views_of_lines_modules_and_threads),
		TEST(a_thread_can_be_looked_into),
		TEST(the_tree_folds),
		TEST(callers_and_callees_are_shown),
		TEST(rows_are_sorted_and_filtered),
		TEST(help_and_leaving),
		cmocka_unit_test_setup_teardown(leaving_a_command_is_asked_for, setup_child, teardown),
		TEST(it_is_drawn_at_every_size),
		TEST(foreign_names_stay_in_their_columns),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
