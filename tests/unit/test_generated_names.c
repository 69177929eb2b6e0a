/* SPDX-License-Identifier: MIT */
/* test_generated_names.c - names that come late, code that is replaced, and forks.
 *
 * The programs are processes that sleep; their perf maps are written here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/generated_names.h"

struct fixture {
	struct generated_names *names;
	pid_t pids[2];
	char paths[2][64];
	struct stale_places stale;
	/* The frame that got a new name. */
	uint32_t again_frame;
	char again_name[64];
	unsigned n_again;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	assert_non_null(fixture);
	assert_int_equal(generated_names_new(&fixture->names), 0);
	for (int i = 0; i < 2; i++) {
		fixture->pids[i] = fork();
		if (fixture->pids[i] == 0)
			for (;;)
				pause();
		assert_true(fixture->pids[i] > 0);
		snprintf(fixture->paths[i], sizeof fixture->paths[i], "/tmp/perf-%d.map", (int)fixture->pids[i]);
		unlink(fixture->paths[i]);
	}
	*state = fixture;
	return 0;
}

static void kill_one(struct fixture *fixture, int i)
{
	if (fixture->pids[i] == 0)
		return;
	kill(fixture->pids[i], SIGKILL);
	waitpid(fixture->pids[i], NULL, 0);
	fixture->pids[i] = 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 2; i++) {
		kill_one(fixture, i);
		unlink(fixture->paths[i]);
	}
	generated_names_free(fixture->names);
	free(fixture->stale.places);
	free(fixture);
	return 0;
}

static void write_line(const struct fixture *fixture, int i, const char *line)
{
	FILE *file = fopen(fixture->paths[i], "a");

	assert_non_null(file);
	fprintf(file, "%s\n", line);
	assert_int_equal(fclose(file), 0);
}

/* The i-th process as program i + 1. */
static void put(struct fixture *fixture, int i, uint32_t parent, uint64_t forked_ns)
{
	struct new_program program = { .id = (uint32_t)i + 1, .parent = parent, .forked_ns = forked_ns };

	generated_owner_read(fixture->pids[i], &program.owner);
	assert_int_equal(generated_names_put(fixture->names, &program, 1, NULL, 0), 0);
}

static int again(const struct new_frame *frame, const struct generated_symbol *symbol, void *data)
{
	struct fixture *fixture = data;

	fixture->again_frame = frame->id;
	snprintf(fixture->again_name, sizeof fixture->again_name, "%s", symbol->name);
	fixture->n_again++;
	return 0;
}

static void refresh(struct fixture *fixture)
{
	fixture->n_again = 0;
	fixture->stale.n = 0;
	assert_int_equal(generated_names_refresh(fixture->names, again, fixture, &fixture->stale), 0);
}

/* A frame of a program, seen now. */
static struct new_frame frame_of(uint32_t program, uint32_t id, uint64_t address)
{
	return (struct new_frame){ .id = id, .program = program, .address = address, .time_ns = monotonic_ns() };
}

static void assert_name(struct fixture *fixture, const struct new_frame *frame, const char *name)
{
	struct generated_symbol symbol;
	int found = generated_names_look_up(fixture->names, frame, &symbol);

	assert_int_equal(found, name != NULL);
	if (name)
		assert_string_equal(symbol.name, name);
}

static void test_a_name_that_comes_late(void **state)
{
	struct fixture *fixture = *state;
	struct new_frame early = frame_of(1, 7, 0x1000), other = frame_of(1, 8, 0x5000);

	put(fixture, 0, 0, 0);
	refresh(fixture);
	assert_name(fixture, &early, NULL);
	assert_name(fixture, &other, NULL);
	refresh(fixture);
	assert_int_equal(fixture->n_again, 0);
	write_line(fixture, 0, "1000 10 late");
	refresh(fixture);
	assert_int_equal(fixture->n_again, 1);
	assert_int_equal(fixture->again_frame, 7);
	assert_string_equal(fixture->again_name, "late");
	assert_int_equal(fixture->stale.n, 0);
	write_line(fixture, 0, "9000 10 elsewhere");
	refresh(fixture);
	assert_int_equal(fixture->n_again, 0);
}

static void test_replaced_code(void **state)
{
	struct fixture *fixture = *state;
	struct new_frame old, new;

	put(fixture, 0, 0, 0);
	write_line(fixture, 0, "1000 10 old");
	refresh(fixture);
	old = frame_of(1, 7, 0x1008);
	assert_name(fixture, &old, "old");
	write_line(fixture, 0, "1000 10 old"); /* compiled again, the same function */
	refresh(fixture);
	assert_int_equal(fixture->stale.n, 0);
	write_line(fixture, 0, "1000 10 new");
	refresh(fixture);
	assert_int_equal(fixture->stale.n, 1);
	assert_int_equal(fixture->stale.places[0].program, 1);
	assert_int_equal(fixture->stale.places[0].address, 0x1008);
	assert_int_equal(fixture->n_again, 0); /* the old frame keeps its name */
	new = frame_of(1, 8, 0x1008);
	assert_name(fixture, &new, "new");
	write_line(fixture, 0, "2000 10 elsewhere");
	refresh(fixture); /* reported once */
	assert_int_equal(fixture->stale.n, 0);
}

static void test_a_forked_child(void **state)
{
	struct fixture *fixture = *state;
	struct new_frame frame;

	put(fixture, 0, 0, 0);
	write_line(fixture, 0, "1000 10 inherited");
	write_line(fixture, 0, "2000 10 inherited too");
	refresh(fixture);
	put(fixture, 1, 1, monotonic_ns());
	refresh(fixture);
	write_line(fixture, 0, "1000 10 of the parent alone");
	write_line(fixture, 1, "2000 10 its own");
	refresh(fixture);
	frame = frame_of(2, 1, 0x1000);
	assert_name(fixture, &frame, "inherited");
	frame = frame_of(2, 2, 0x2000);
	assert_name(fixture, &frame, "its own");
	frame = frame_of(1, 3, 0x1000);
	assert_name(fixture, &frame, "of the parent alone");
	frame = frame_of(1, 4, 0x2000);
	assert_name(fixture, &frame, "inherited too");
}

/* A program without an exec event, and parent chains that end nowhere or in a circle. */
static void test_strange_programs(void **state)
{
	struct fixture *fixture = *state;
	struct new_frame frame = frame_of(9, 1, 0x1000);

	assert_name(fixture, &frame, NULL);
	put(fixture, 0, 2, UINT64_MAX);
	put(fixture, 1, 1, UINT64_MAX);
	frame = frame_of(1, 2, 0x1000);
	assert_name(fixture, &frame, NULL);
	write_line(fixture, 1, "1000 10 name");
	refresh(fixture);
	assert_int_equal(fixture->n_again, 1);
	assert_int_equal(fixture->again_frame, 2);
}

static void test_it_ends(void **state)
{
	struct fixture *fixture = *state;

	assert_false(generated_names_is_open(fixture->names));
	put(fixture, 0, 0, 0);
	assert_true(generated_names_is_open(fixture->names));
	refresh(fixture);
	assert_true(generated_names_is_open(fixture->names));
	kill_one(fixture, 0);
	refresh(fixture);
	assert_false(generated_names_is_open(fixture->names));
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_a_name_that_comes_late),
		WITH_FIXTURE(test_replaced_code),
		WITH_FIXTURE(test_a_forked_child),
		WITH_FIXTURE(test_strange_programs),
		WITH_FIXTURE(test_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
