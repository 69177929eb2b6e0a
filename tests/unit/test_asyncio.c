/* SPDX-License-Identifier: MIT */
/* test_asyncio.c - the tasks of event loops that are not here, read from images of their memory.
 *
 * The images are those that fuzz/make_asyncio_corpus.py makes of fuzz/tasks.py, which has the truth: what each
 * task awaits, down to the innermost coroutine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/memory_image.h"
#include "unwind/cpython/cpython.h"

enum { MAX_BYTES = 1 << 20, MAX_TEXT = 256 };

struct fixture {
	struct memory_image image;
	struct py_runtime *runtime;
	struct py_tasks tasks;
};

static const struct release {
	const char *name;
	bool has_names, has_groups;
} releases[] = {
	{ "3.7", false, false }, { "3.9", true, false }, { "3.11", true, true }, { "3.12", true, true },
	{ "3.13", true, true },  { "3.14", true, true }, { "3.15", true, true },
};

/* False: not an interpreter that can be read. */
static bool open_image(struct fixture *fixture, const char *name)
{
	const char *root = getenv("PROBING_SOURCE_ROOT");
	CLEANUP(freep) char *bytes = NULL;
	char path[512], version[32];
	uint64_t asyncio;
	size_t n_bytes;

	assert_non_null(root);
	snprintf(path, sizeof path, "%s/fuzz/corpus/asyncio/%s", root, name);
	assert_int_equal(read_file(path, MAX_BYTES, &bytes, &n_bytes), 0);
	assert_true(n_bytes > sizeof asyncio);
	memcpy(&asyncio, bytes, sizeof asyncio);
	image_parse(&fixture->image, (const uint8_t *)bytes + sizeof asyncio, n_bytes - sizeof asyncio);
	fixture->image.symbols.asyncio = asyncio;
	if (image_open(&fixture->image, &fixture->image.base, version, &fixture->runtime) < 0)
		return false;
	py_begin_sample(fixture->runtime);
	assert_int_equal(py_tasks_of(fixture->runtime, fixture->image.threads[0], &fixture->tasks), 0);
	return true;
}

static void close_image(struct fixture *fixture)
{
	py_tasks_done(&fixture->tasks);
	py_runtime_free(fixture->runtime);
}

/* Its functions, innermost first, by their own names. */
static void chain_of(const struct fixture *fixture, const struct py_task *task, char to[MAX_TEXT])
{
	size_t n = 0;

	to[0] = '\0';
	for (size_t i = 0; i < task->n_frames; i++) {
		const char *name = fixture->tasks.frames.frames[task->first_frame + i].code->qualname;
		const char *dot = strrchr(name, '.');

		n += (size_t)snprintf(to + n, MAX_TEXT - n, "%s%s", i ? " " : "", dot ? dot + 1 : name);
	}
}

/* The only task with that chain, or one of some that are equal. */
static size_t find_task(const struct fixture *fixture, const char *chain)
{
	char text[MAX_TEXT];

	for (size_t i = 0; i < fixture->tasks.n; i++) {
		chain_of(fixture, &fixture->tasks.tasks[i], text);
		if (strcmp(text, chain) == 0)
			return i;
	}
	print_error("no task is in: %s\n", chain);
	fail();
	return 0;
}

static bool awaits(const struct fixture *fixture, const char *awaiter, const char *task)
{
	size_t from = find_task(fixture, awaiter), to = find_task(fixture, task);

	for (size_t i = 0; i < fixture->tasks.n_awaiters; i++)
		if (fixture->tasks.awaiters[i].awaiter == from && fixture->tasks.awaiters[i].task == to)
			return true;
	return false;
}

static void check_running(struct fixture *fixture, const struct release *release)
{
	const struct py_task *running = &fixture->tasks.tasks[find_task(fixture, "runs")];
	struct py_task_link links[PY_MAX_LINKS];

	assert_true(running->is_running);
	py_begin_sample(fixture->runtime);
	assert_int_equal(py_running_task(fixture->runtime, fixture->image.threads[0], links), 2);
	assert_string_equal(links[0].name, running->name);
	assert_int_equal(links[0].frame, running->frame);
	assert_int_equal(links[0].n_frames, 0);
	assert_int_equal(links[1].n_frames, 2);
	assert_string_equal(links[1].frames[0].code->qualname, "waits");
	assert_string_equal(links[1].frames[1].code->qualname, "main");
	assert_string_equal(links[1].name, release->has_names ? "Task-1" : "");
}

static void check_tasks(struct fixture *fixture, const struct release *release)
{
	size_t n_running = 0;

	assert_int_equal(fixture->tasks.n, release->has_groups ? 8 : 6);
	assert_false(fixture->tasks.is_cut);
	for (size_t i = 0; i < fixture->tasks.n; i++) {
		n_running += fixture->tasks.tasks[i].is_running;
		assert_int_equal(strncmp(fixture->tasks.tasks[i].name, "Task-", 5) == 0, release->has_names);
	}
	assert_int_equal(n_running, 1);
	find_task(fixture, "generator run awaits");
	assert_true(awaits(fixture, "gathers", "sleep numbers iterates"));
	assert_true(awaits(fixture, "waits main", "runs"));
	assert_false(awaits(fixture, "gathers", "runs"));
	if (release->has_groups)
		find_task(fixture, "sleep groups");
}

static void images_show_what_tasks_await(void **state)
{
	static struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(releases); i++) {
		assert_true(open_image(&fixture, releases[i].name));
		check_tasks(&fixture, &releases[i]);
		check_running(&fixture, &releases[i]);
		print_message("Python %s: %zu tasks\n", releases[i].name, fixture.tasks.n);
		close_image(&fixture);
	}
}

static void layouts_that_cannot_be_show_nothing(void **state)
{
	static const char *const names[] = { "3.14_task_of_no_size", "3.14_node_beyond_the_task",
					     "3.15_task_of_no_size", "3.15_node_beyond_the_task" };
	static struct fixture fixture;
	struct py_task_link links[PY_MAX_LINKS];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		assert_true(open_image(&fixture, names[i]));
		assert_int_equal(fixture.tasks.n, 0);
		assert_int_equal(py_running_task(fixture.runtime, fixture.image.threads[0], links), 0);
		close_image(&fixture);
	}
}

/* A thread that waits for the GIL does so on an address within it. */
static void waiting_for_the_gil_is_told_by_the_address(void **state)
{
	static struct fixture fixture;
	pid_t tid;

	(void)state;
	assert_true(open_image(&fixture, "3.11"));
	tid = fixture.image.threads[0];
	/* offsetof(struct pyruntimestate, ceval.gil) and its size, in 3.11 */
	assert_int_equal(py_waits_for_gil(fixture.runtime, tid, fixture.image.symbols.runtime + 360), PY_YES);
	assert_int_equal(py_waits_for_gil(fixture.runtime, tid, fixture.image.symbols.runtime + 360 + 207), PY_YES);
	assert_int_equal(py_waits_for_gil(fixture.runtime, tid, fixture.image.symbols.runtime + 360 + 208), PY_NO);
	assert_int_equal(py_waits_for_gil(fixture.runtime, tid, fixture.image.symbols.runtime + 359), PY_NO);
	assert_int_equal(py_waits_for_gil(fixture.runtime, tid + 1, fixture.image.symbols.runtime + 360), PY_NO);
	close_image(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_show_what_tasks_await),
		cmocka_unit_test(layouts_that_cannot_be_show_nothing),
		cmocka_unit_test(waiting_for_the_gil_is_told_by_the_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
