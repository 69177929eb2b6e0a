/* SPDX-License-Identifier: MIT */
/* test_retention.c - the oldest go, and what is left belongs together. */
#include "tests/unit/store_fixture.h"

#define SECOND UINT64_C(1000000000)
#define START (1700000000u * SECOND)

static int put_sample(struct store *store, uint64_t second, int64_t stack)
{
	const struct sample_row row = {
		.time_ns = START + second * SECOND,
		.pid = 42,
		.tid = 43,
		.weight = 10,
		.verdict = VERDICT_EXACT,
		.end = STACK_COMPLETE,
		.stack = stack,
	};
	const struct total_row total = { .pid = 42, .tid = 43, .stack = stack, .samples = 1, .weight = 10 };
	int r = store_put_sample(store, &row);

	return r < 0 ? r : store_put_total(store, &total);
}

static void put_frame(struct store *store, int64_t frame, int64_t inlined_into)
{
	char name[16];

	snprintf(name, sizeof name, "f%d", (int)(frame % 1000));
	assert_int_equal(
		store_put_function(store,
				   &(struct function_row){ .function = frame, .name = name, .kind = FRAME_NATIVE }),
		0);
	assert_int_equal(store_put_frame(store, &(struct frame_row){ .frame = frame,
								     .kind = FRAME_NATIVE,
								     .function = frame,
								     .inlined_into = inlined_into }),
			 0);
}

/* Stacks 1 > 2 and 1 > 3, a sample each second of 2 (0 to 9), then of 3 (10 to 19), then of none. */
static struct store *filled(const char *path)
{
	const int64_t inlined = INT64_C(1) << 32;
	struct store *store = NULL;

	assert_int_equal(store_create(path, NULL, &store), 0);
	assert_int_equal(put_run(store), 0);
	put_frame(store, inlined + 1, 0);
	put_frame(store, 1, 0);
	put_frame(store, 2, inlined + 1);
	put_frame(store, 3, 0);
	for (int64_t stack = 1; stack <= 3; stack++)
		assert_int_equal(store_put_stack(store, &(struct stack_row){ .stack = stack,
									     .parent = stack > 1,
									     .frame = stack,
									     .depth = stack > 1 }),
				 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(put_sample(store, i, i < 10 ? 2 : 3), 0);
	for (unsigned i = 20; i < 25; i++)
		assert_int_equal(put_sample(store, i, 0), 0);
	return store;
}

static int64_t drop(struct store *store, int64_t max, uint64_t before_ns)
{
	int64_t n = -1;

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_oldest(store, max, before_ns, &n), 0);
	assert_int_equal(store_commit(store), 0);
	return n;
}

static void sweep(struct store *store, int64_t last_stack, int64_t last_frame)
{
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_unused(store, last_stack, last_frame), 0);
	assert_int_equal(store_commit(store), 0);
}

static const char *totals(const struct folder *f)
{
	return stock_shell(f->file, "SELECT stack, samples, weight FROM stack_total");
}

static void totals_are_those_of_what_is_left(void **state)
{
	const struct folder *f = *state;
	struct store *store = filled(f->file);
	struct store_space space;

	assert_int_equal(drop(store, 4, UINT64_MAX), 4);
	assert_string_equal(totals(f), "0|5|50\n2|6|60\n3|10|100");
	assert_int_equal(store_read_space(store, &space), 0);
	assert_int_equal(space.n_samples, 21);
	assert_int_equal(drop(store, 1000, START + 8 * SECOND), 4);
	assert_int_equal(drop(store, 1000, START + 8 * SECOND), 0);
	assert_string_equal(totals(f), "0|5|50\n2|2|20\n3|10|100");
	assert_int_equal(drop(store, 3, START + 100 * SECOND), 3);
	assert_string_equal(totals(f), "0|5|50\n3|9|90");
	assert_int_equal(drop(store, 1000, UINT64_MAX), 14);
	assert_string_equal(totals(f), "");
	assert_int_equal(store_read_space(store, &space), 0);
	assert_int_equal(space.n_samples, 0);
	store_close(store);
}

/* A thread's end brings time of a second before: what is dropped is counted, and the newest stay. */
static void samples_out_of_order(void **state)
{
	const struct folder *f = *state;
	struct store *store = filled(f->file);
	struct store_space space;

	assert_int_equal(drop(store, 1000, START + 25 * SECOND), 25);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(put_sample(store, (const uint64_t[]){ 30, 33, 31, 34 }[i], 2), 0);
	assert_int_equal(drop(store, 1000, START + 32 * SECOND), 1);
	assert_int_equal(store_read_space(store, &space), 0);
	assert_int_equal(space.n_samples, 3);
	assert_int_equal(drop(store, 1000, START + 34 * SECOND), 2);
	assert_int_equal(store_read_space(store, &space), 0);
	assert_int_equal(space.n_samples, 1);
	store_close(store);
}

static void what_nothing_leads_to_goes(void **state)
{
	const struct folder *f = *state;
	struct store *store = filled(f->file);

	sweep(store, 3, 3);
	assert_string_equal(stock_shell(f->file, "SELECT stack FROM stack"), "1\n2\n3");
	assert_string_equal(stock_shell(f->file, "SELECT count(*) FROM frame"), "4");
	drop(store, 10, UINT64_MAX);
	sweep(store, 3, 3);
	assert_string_equal(stock_shell(f->file, "SELECT stack FROM stack"), "1\n3");
	assert_string_equal(stock_shell(f->file, "SELECT frame FROM frame"), "1\n3");
	assert_string_equal(stock_shell(f->file, "SELECT function FROM function"), "1\n3");
	drop(store, 1000, UINT64_MAX);
	sweep(store, 3, 3);
	assert_string_equal(stock_shell(f->file, "SELECT count(*) FROM stack"), "0");
	assert_string_equal(stock_shell(f->file, "SELECT count(*) FROM function"), "0");
	store_close(store);
}

/* Numbers that may still come again. */
static void the_new_tree_stays(void **state)
{
	const struct folder *f = *state;
	struct store *store = filled(f->file);

	drop(store, 1000, UINT64_MAX);
	sweep(store, 1, 1);
	assert_string_equal(stock_shell(f->file, "SELECT stack FROM stack"), "2\n3");
	assert_string_equal(stock_shell(f->file, "SELECT frame FROM frame"), "2\n3\n4294967297");
	store_close(store);
}

static void who_has_ended_and_has_no_sample_goes(void **state)
{
	const struct folder *f = *state;
	struct store *store = filled(f->file);

	for (int pid = 42; pid < 45; pid++) { /* 42 is the run's own */
		assert_int_equal(
			store_put_process(store, &(struct process_row){ .pid = pid,
									.name = "",
									.command = "",
									.started_ns = START,
									.ended_ns = pid == 44 ? 0 : START + 1 }),
			0);
		assert_int_equal(store_put_thread(store, &(struct thread_row){ .pid = pid,
									       .tid = pid + 1,
									       .name = "",
									       .started_ns = START,
									       .ended_ns = pid == 44 ? 0 : START + 1 }),
				 0);
	}
	sweep(store, 0, 0);
	assert_string_equal(stock_shell(f->file, "SELECT pid FROM process"), "42\n44");
	assert_string_equal(stock_shell(f->file, "SELECT pid, tid FROM thread"), "42|43\n44|45");
	drop(store, 1000, UINT64_MAX);
	sweep(store, 0, 0);
	assert_string_equal(stock_shell(f->file, "SELECT pid FROM process"), "42\n44");
	assert_string_equal(stock_shell(f->file, "SELECT pid, tid FROM thread"), "44|45");
	store_close(store);
}

static void free_space_can_be_given_back(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);
	struct store_space before, after;

	for (int i = 0; i < 200; i++)
		assert_int_equal(put_batch(store), 0);
	drop(store, 1 << 30, UINT64_MAX);
	assert_int_equal(store_read_space(store, &before), 0);
	assert_true(before.free_bytes > before.used_bytes);
	assert_int_equal(store_give_back(store, 40 * STORE_PAGE_BYTES), 0);
	assert_int_equal(store_read_space(store, &after), 0);
	assert_int_equal(before.free_bytes - after.free_bytes, 40 * STORE_PAGE_BYTES);
	assert_int_equal(before.used_bytes, after.used_bytes);
	assert_string_equal(stock_shell(f->file, "PRAGMA integrity_check"), "ok");
	store_close(store);
}

static void a_pause_is_put_twice(void **state)
{
	const struct folder *f = *state;
	struct store *store = new_store(f->file);

	assert_int_equal(store_put_pause(store, &(struct pause_row){ .started_ns = 1500000000 }), 0);
	assert_string_equal(stock_shell(f->file, "SELECT started, ended IS NULL FROM pause"), "1.5|1");
	assert_int_equal(
		store_put_pause(store, &(struct pause_row){ .started_ns = 1500000000, .ended_ns = 2500000000 }), 0);
	assert_string_equal(stock_shell(f->file, "SELECT started, ended FROM pause"), "1.5|2.5");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(totals_are_those_of_what_is_left),
		FOLDER_TEST(samples_out_of_order),
		FOLDER_TEST(what_nothing_leads_to_goes),
		FOLDER_TEST(the_new_tree_stays),
		FOLDER_TEST(who_has_ended_and_has_no_sample_goes),
		FOLDER_TEST(free_space_can_be_given_back),
		FOLDER_TEST(a_pause_is_put_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
