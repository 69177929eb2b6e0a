/* SPDX-License-Identifier: MIT */
/* test_store_open.c - changing a recording that is there: whole or not at all, and by one at a time. */
#include "tests/unit/store_fixture.h"

#include "base/util.h"

enum { LAST_FUNCTION = 4, MAX_FILE_BYTES = 16 << 20 };

#define FIRST_INLINED (INT64_C(1) << 32)

/* Two named places, the second one inlined twice, and one without a name. */
static void make(const char *path)
{
	struct store *store = new_store(path);

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_put_module(store, &(struct module_row){ 1, "/lib/a.so", "0102" }), 0);
	for (int64_t i = 1; i <= 3; i++)
		assert_int_equal(store_put_function(store, &(struct function_row){ .function = i,
										   .name = i == 1 ? "a.so+0x10" : "f",
										   .kind = FRAME_NATIVE,
										   .module = i < 3 }),
				 0);
	assert_int_equal(
		store_put_function(
			store,
			&(struct function_row){ .function = 4, .name = "main", .kind = FRAME_PYTHON, .file = "x.py" }),
		0);
	for (int64_t i = 1; i <= 3; i++)
		assert_int_equal(
			store_put_frame(store, &(struct frame_row){ .frame = i,
								    .kind = FRAME_NATIVE,
								    .function = i == 3 ? 0 : i,
								    .module = 1,
								    .has_address = true,
								    .address = (uint64_t)(i * 16),
								    .line = i == 2 ? 9 : 0,
								    .inlined_into = i == 2 ? FIRST_INLINED + 1 : 0 }),
			0);
	for (int64_t i = 0; i < 2; i++)
		assert_int_equal(
			store_put_frame(store, &(struct frame_row){ .frame = FIRST_INLINED + i,
								    .kind = FRAME_NATIVE,
								    .function = 3,
								    .module = 1,
								    .inlined_into = i == 1 ? FIRST_INLINED : 0 }),
			0);
	assert_int_equal(store_commit(store), 0);
	finish(store);
}

static struct store *open_it(const char *path)
{
	struct store *store = NULL;

	assert_int_equal(store_open(path, &store), 0);
	return store;
}

struct seen {
	struct place_row places[8];
	size_t n_places, n_modules, n_functions;
};

static int see_place(void *data, const struct place_row *row)
{
	struct seen *seen = data;

	assert_true(seen->n_places < 8);
	seen->places[seen->n_places++] = *row;
	return 0;
}

static int see_module(void *data, const struct module_row *row)
{
	assert_string_equal(row->path, "/lib/a.so");
	assert_string_equal(row->build_id, "0102");
	((struct seen *)data)->n_modules++;
	return 0;
}

static int see_function(void *data, const struct function_row *row)
{
	assert_int_equal(row->kind, FRAME_NATIVE);
	((struct seen *)data)->n_functions++;
	return 0;
}

static int refuse(void *data, const struct place_row *row)
{
	(void)data;
	(void)row;
	return -ECANCELED;
}

static void test_what_is_read(void **state)
{
	const struct folder *f = *state;
	struct seen seen = { .n_places = 0 };
	struct run_names run;
	struct store *store;
	int64_t frame, function;

	make(f->file);
	store = open_it(f->file);
	assert_int_equal(store_each_module(store, see_module, &seen), 0);
	assert_int_equal(store_each_place(store, see_place, &seen), 0);
	assert_int_equal(store_each_function(store, see_function, &seen), 0);
	assert_int_equal(store_each_place(store, refuse, NULL), -ECANCELED);
	assert_int_equal(seen.n_modules, 1);
	assert_int_equal(seen.n_functions, 3);
	assert_int_equal(seen.n_places, 3); /* not those that inlining made */
	assert_true(seen.places[0].is_offset);
	assert_int_equal(seen.places[0].address, 16);
	assert_false(seen.places[1].is_offset);
	assert_int_equal(seen.places[1].line, 9);
	assert_true(seen.places[1].inlined_into == FIRST_INLINED + 1);
	assert_int_equal(seen.places[2].function, 0);
	assert_int_equal(store_last_ids(store, &frame, &function), 0);
	assert_true(frame == FIRST_INLINED + 1);
	assert_int_equal(function, LAST_FUNCTION);
	assert_int_equal(store_read_run(store, &run), 0);
	assert_string_equal(run.host, "here");
	assert_string_equal(run.kernel, "6.1");
	assert_true(run.started == 1700000000);
	store_close(store);
}

static void change(struct store *store)
{
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_drop_inlined(store, 2), 0);
	assert_int_equal(store_name_frame(store, 2, 2, 10, 0), 0);
	assert_int_equal(store_name_frame(store, 1, 2, 11, 0), 0);
	assert_int_equal(store_refresh_function(store, 2, &(struct function_row){ .file = "f.c" }), 0);
	assert_int_equal(store_drop_unused_functions(store), 0);
}

static const char *state_of(const struct folder *f)
{
	return ask_samples(f->file,
			   "SELECT (SELECT group_concat(frame || ':' || coalesce(function, '-') || ':' "
			   "|| coalesce(line, '-')) FROM frame), (SELECT group_concat(function) FROM function), "
			   "(SELECT coalesce(file, '-') FROM function WHERE function = 2), "
			   "(SELECT count(*) FROM sample)");
}

static const char before_change[] = "1:1:-,2:2:9,3:-:-,4294967296:3:-,4294967297:3:-|1,2,3,4|-|100";
static const char after_change[] = "1:2:11,2:2:10,3:-:-|2,4|f.c|100";

static void test_a_change_is_whole_or_absent(void **state)
{
	const struct folder *f = *state;
	struct store *store;

	make(f->file);
	assert_string_equal(state_of(f), before_change);
	store = open_it(f->file);
	change(store);
	store_rollback(store);
	assert_string_equal(state_of(f), before_change);
	change(store);
	assert_string_equal(state_of(f), before_change); /* readers see the old names until the end */
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(store_checkpoint(store), 0);
	store_close(store);
	assert_string_equal(state_of(f), after_change);
	assert_false(exists(with(f->file, "-journal")));
	assert_false(exists(with(f->file, "-wal")));
}

static int change_and_die(const struct folder *f)
{
	struct store *store;

	if (store_open(f->file, &store) < 0 || store_begin(store) < 0)
		return 1;
	/* More than a page cache holds. */
	for (int i = 0; i < 20000; i++)
		if (store_put_function(
			    store, &(struct function_row){ .function = 100 + i,
							   .name = "a name that takes its room in a page of the file",
							   .kind = FRAME_NATIVE }) < 0)
			return 2;
	_exit(0);
}

static void test_who_dies_leaves_the_file_as_it_was(void **state)
{
	const struct folder *f = *state;
	CLEANUP(freep) char *before = NULL, *after = NULL;
	size_t n_before, n_after;

	make(f->file);
	assert_int_equal(read_file(f->file, MAX_FILE_BYTES, &before, &n_before), 0);
	assert_int_equal(in_child(change_and_die, f), 0);
	assert_int_equal(read_file(f->file, MAX_FILE_BYTES, &after, &n_after), 0);
	assert_int_equal(n_before, n_after);
	assert_memory_equal(before, after, n_before);
	assert_string_equal(state_of(f), before_change);
}

static int expect_busy(const struct folder *f)
{
	struct store *store;

	return store_open(f->file, &store) == -EBUSY ? 0 : 1;
}

static int expect_no_recorder(const struct folder *f)
{
	struct store *store;

	return store_create(f->file, NULL, &store) == -EBUSY ? 0 : 1;
}

static void test_one_at_a_time(void **state)
{
	const struct folder *f = *state;
	struct store *store;

	make(f->file);
	store = open_it(f->file);
	assert_int_equal(in_child(expect_busy, f), 0);
	assert_int_equal(in_child(expect_no_recorder, f), 0);
	store_close(store);
	store = new_store(f->file);
	assert_int_equal(in_child(expect_busy, f), 0);
	finish(store);
}

static void test_what_cannot_be_opened(void **state)
{
	const struct folder *f = *state;
	struct store *store = (void *)1;

	assert_int_equal(store_open(f->file, &store), -ENOENT);
	assert_int_equal(store_open(f->path, &store), -EISDIR);
	assert_int_equal(store_open("/dev/null", &store), -ENXIO);
	write_text(f->file, "no database at all, and long enough to have a header of a hundred bytes "
			    "if it were one, which it is not");
	assert_int_equal(store_open(f->file, &store), -EBADMSG);
	assert_int_equal(remove(f->file), 0);
	stock_shell(f->file, "CREATE TABLE a(b)");
	assert_int_equal(store_open(f->file, &store), -EMEDIUMTYPE);
	assert_ptr_equal(store, (void *)1);
}

/* Another user's file may have any contents. */
static void test_foreign_files(void **state)
{
	const struct folder *f = *state;
	struct seen seen = { .n_places = 0 };
	struct store *store;

	make(f->file);
	stock_shell(f->file, "CREATE TRIGGER t AFTER UPDATE ON frame BEGIN DELETE FROM sample_block; END");
	store = open_it(f->file);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_name_frame(store, 1, 2, 3, 0), 0);
	assert_int_equal(store_commit(store), 0);
	store_close(store);
	assert_string_equal(ask_samples(f->file, "SELECT count(*) FROM sample"), "100");
	stock_shell(f->file, "UPDATE frame SET function = 1 << 40 WHERE frame = 1");
	store = open_it(f->file);
	assert_int_equal(store_each_place(store, see_place, &seen), -EBADMSG);
	store_close(store);
	stock_shell(f->file, "UPDATE frame SET function = 1, frame = -5 WHERE frame = 1");
	store = open_it(f->file);
	assert_int_equal(store_each_place(store, see_place, &seen), -EBADMSG);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_what_is_read),
		FOLDER_TEST(test_a_change_is_whole_or_absent),
		FOLDER_TEST(test_who_dies_leaves_the_file_as_it_was),
		FOLDER_TEST(test_one_at_a_time),
		FOLDER_TEST(test_what_cannot_be_opened),
		FOLDER_TEST(test_foreign_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
