/* SPDX-License-Identifier: MIT */
/* test_intern.c - frames, stacks and totals get dense ids, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/util.h"
#include "src/pipeline/intern.h"
#include "unwind/cpython/layout.h"

/* Three instructions (code units of two bytes) on lines 10, 10, 12: no columns. */
static const uint8_t line_table[] = { 0x80 | 13 << 3 | 1, 0, 0x80 | 13 << 3 | 0, 2 << 1 };

struct fixture {
	struct intern intern;
	struct batch *batch;
	struct stack_origin origin;
	struct module modules[3];
	struct py_code codes[2];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	assert_non_null(fixture);
	assert_int_equal(batch_new(&fixture->batch), 0);
	for (unsigned i = 0; i < N_ELEMENTS(fixture->modules); i++)
		fixture->modules[i].id = i * 1000; /* ids may arrive in any order */
	for (unsigned i = 0; i < N_ELEMENTS(fixture->codes); i++)
		fixture->codes[i] = (struct py_code){
			.qualname = "f",
			.file = "f.py",
			.first_line = 10,
			.bytecode_bytes = 6,
			.line_table = line_table,
			.line_table_bytes = sizeof line_table,
			.line_kind = LINES_LOCATIONS,
		};
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	intern_done(&fixture->intern);
	batch_free(fixture->batch);
	free(fixture);
	return 0;
}

static struct frame native(struct module *module, uint64_t address)
{
	struct frame frame = { .kind = FRAME_NATIVE };

	frame.native.module = module;
	frame.native.address = address;
	return frame;
}

static struct frame python(struct py_code *code, int32_t instruction)
{
	struct frame frame = { .kind = FRAME_PYTHON };

	frame.python.code = code;
	frame.python.instruction = instruction;
	return frame;
}

static struct frame kernel(uint64_t ip)
{
	struct frame frame = { .kind = FRAME_KERNEL };

	frame.kernel.ip = ip;
	return frame;
}

static uint32_t intern_frames(struct fixture *fixture, struct frame *frames, size_t n)
{
	struct stack stack = { .frames = frames, .n_frames = n };
	uint32_t id = UINT32_MAX;

	assert_int_equal(intern_stack(&fixture->intern, fixture->batch, &stack, &fixture->origin, &id), 0);
	return id;
}

static uint32_t intern_one(struct fixture *fixture, struct frame frame)
{
	return intern_frames(fixture, &frame, 1);
}

static struct frame task(const char *name)
{
	struct frame frame = { .kind = FRAME_TASK };

	frame.task.name = name;
	return frame;
}

/* A task is its name, which the batch has a copy of. */
static void test_task(void **state)
{
	struct fixture *fixture = *state;
	char name[] = "fetch";

	assert_int_equal(intern_one(fixture, task(name)), 1);
	name[0] = 'F';
	assert_int_equal(intern_one(fixture, task(name)), 2);
	assert_int_equal(intern_one(fixture, task("fetch")), 1);
	assert_int_equal(intern_one(fixture, task("")), 3);
	assert_int_equal(fixture->batch->n_frames, 3);
	assert_int_equal(fixture->batch->frames[0].kind, FRAME_TASK);
	assert_string_equal(fixture->batch->frames[0].name, "fetch");
	assert_string_equal(fixture->batch->frames[1].name, "Fetch");
	batch_clear(fixture->batch);
	intern_flushed(&fixture->intern);
	assert_int_equal(intern_one(fixture, task("fetch")), 1);
	assert_int_equal(fixture->batch->n_frames, 0);
}

/* The kind of a wait, and its object: a frame each, and the number of a name stays with a new tree of stacks. */
static void test_objects(void **state)
{
	struct fixture *fixture = *state;
	struct intern *intern = &fixture->intern;
	uint32_t pipe, again, other, wait, stack, same;
	char name[32];

	assert_int_equal(intern_object_name(intern, "", &pipe), 0);
	assert_int_equal(pipe, 0);
	assert_int_equal(intern_object_name(intern, "[pipe]", &pipe), 0);
	assert_int_equal(intern_object_name(intern, "[socket]", &other), 0);
	assert_int_equal(intern_object_name(intern, "[pipe]", &again), 0);
	assert_int_not_equal(pipe, 0);
	assert_int_equal(pipe, again);
	assert_int_not_equal(pipe, other);
	assert_int_equal(intern_wait(intern, fixture->batch, 0, 0, STATE_IO, &wait), 0);
	assert_int_equal(intern_object(intern, fixture->batch, wait, 1, pipe, &stack), 0);
	assert_int_equal(intern_object(intern, fixture->batch, wait, 1, pipe, &same), 0);
	assert_int_equal(stack, same);
	assert_int_equal(fixture->batch->n_frames, 2);
	assert_null(fixture->batch->frames[0].name);
	assert_int_equal(fixture->batch->frames[1].kind, FRAME_WAIT);
	assert_string_equal(fixture->batch->frames[1].name, "[pipe]");
	assert_int_equal(fixture->batch->n_stacks, 2);
	assert_int_equal(fixture->batch->stacks[1].parent, wait);
	assert_int_equal(fixture->batch->stacks[1].depth, 1);
	batch_clear(fixture->batch);
	intern_renew(intern);
	assert_int_equal(intern_object(intern, fixture->batch, 0, 0, other, &stack), 0);
	assert_string_equal(fixture->batch->frames[0].name, "[socket]");
	/* The known ones stay, more are none. */
	for (int i = 0; i < INTERN_MAX_OBJECTS; i++) {
		snprintf(name, sizeof name, "[file %d]", i);
		assert_int_equal(intern_object_name(intern, name, &again), 0);
	}
	assert_int_equal(again, 0);
	assert_int_equal(intern_object_name(intern, "[pipe]", &again), 0);
	assert_int_equal(pipe, again);
}

/* Anonymous code belongs to its program, and is another frame beside Python frames, and again
 * where it leads to them; what was forgotten becomes a new frame. */
static void test_anonymous(void **state)
{
	struct fixture *fixture = *state;
	struct frame beside[] = { native(NULL, 0x1000), python(&fixture->codes[0], 0) };
	struct frame enters[] = { python(&fixture->codes[0], 0), native(&fixture->modules[0], 0x10),
				  native(NULL, 0x1000) };
	const struct new_frame *rows;

	enters[1].is_evaluation = true;
	fixture->origin = (struct stack_origin){ .program = 1, .time_ns = 10 };
	assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 1);
	fixture->origin.time_ns = 20;
	assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 1);
	assert_int_equal(intern_frames(fixture, beside, 2), 3);
	fixture->origin.program = 2;
	assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 4);
	rows = fixture->batch->frames;
	assert_int_equal(fixture->batch->n_frames, 4);
	assert_true(rows[0].program == 1 && rows[0].time_ns == 10 && rows[0].role == ANONYMOUS_ALONE);
	assert_true(rows[1].kind == FRAME_PYTHON && rows[1].program == 0);
	assert_true(rows[2].program == 1 && rows[2].time_ns == 20 && rows[2].role == ANONYMOUS_BESIDE_PYTHON);
	assert_true(rows[3].program == 2 && rows[3].address == 0x1000);

	intern_forget(&fixture->intern, 1, 0x1000);
	intern_forget(&fixture->intern, 1, 0x2000);
	intern_forget(&fixture->intern, 99, 0x1000);
	assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 4);
	fixture->origin = (struct stack_origin){ .program = 1, .time_ns = 30 };
	assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 5);
	assert_int_equal(fixture->batch->frames[4].time_ns, 30);
	assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 5);
	assert_int_equal(intern_frames(fixture, beside, 2), 6);
	assert_int_equal(fixture->batch->n_frames, 6);

	intern_frames(fixture, enters, 3);
	intern_frames(fixture, enters + 1, 2); /* of an evaluation whose frames could not be read */
	rows = fixture->batch->frames;
	assert_int_equal(fixture->batch->n_frames, 8);
	assert_true(rows[6].address == 0x1000 && rows[6].role == ANONYMOUS_ENTERS_PYTHON);
	assert_true(rows[7].is_eval);
}

static void test_no_frames(void **state)
{
	assert_int_equal(intern_frames(*state, NULL, 0), 0);
}

/* The calling-context tree: outermost first, common parts shared. */
static void test_tree(void **state)
{
	struct fixture *fixture = *state;
	struct module *module = &fixture->modules[0];
	struct frame ab[] = { native(module, 0x20), native(module, 0x10) };
	struct frame cb[] = { native(module, 0x30), native(module, 0x10) };
	struct frame aab[] = { native(module, 0x20), native(module, 0x20), native(module, 0x10) };
	const struct stack_row *rows;

	assert_int_equal(intern_frames(fixture, ab, 2), 2);
	assert_int_equal(intern_frames(fixture, cb, 2), 3);
	assert_int_equal(intern_frames(fixture, ab + 1, 1), 1);
	assert_int_equal(intern_frames(fixture, aab, 3), 4);
	assert_int_equal(intern_frames(fixture, ab, 2), 2);
	assert_int_equal(fixture->batch->n_frames, 3);
	assert_int_equal(fixture->batch->n_stacks, 4);
	rows = fixture->batch->stacks;
	assert_true(rows[0].stack == 1 && rows[0].parent == 0 && rows[0].depth == 0);
	assert_true(rows[1].stack == 2 && rows[1].parent == 1 && rows[1].depth == 1);
	assert_true(rows[2].stack == 3 && rows[2].parent == 1 && rows[2].depth == 1);
	assert_true(rows[3].stack == 4 && rows[3].parent == 2 && rows[3].frame == rows[1].frame);
}

/* Recursion: as deep as it goes, one frame, and one node a level. */
static void test_deep(void **state)
{
	enum { DEPTH = 100000 };
	struct fixture *fixture = *state;
	struct frame *frames = calloc(DEPTH, sizeof *frames);

	assert_non_null(frames);
	for (size_t i = 0; i < DEPTH; i++)
		frames[i] = python(&fixture->codes[0], 0);
	assert_int_equal(intern_frames(fixture, frames, DEPTH), DEPTH);
	assert_int_equal(intern_frames(fixture, frames, DEPTH), DEPTH);
	assert_int_equal(intern_frames(fixture, frames, DEPTH / 2), DEPTH / 2);
	assert_int_equal(fixture->batch->n_frames, 1);
	assert_int_equal(fixture->batch->n_stacks, DEPTH);
	assert_int_equal(fixture->batch->stacks[DEPTH - 1].depth, DEPTH - 1);
	free(frames);
}

/* One address in different modules, in none, and as an evaluation. */
static void test_native(void **state)
{
	struct fixture *fixture = *state;
	struct frame evaluation = native(&fixture->modules[1], 0x1000);
	const struct new_frame *rows;

	evaluation.is_evaluation = evaluation.without_cfi = true;
	for (int again = 0; again < 2; again++) {
		assert_int_equal(intern_one(fixture, native(&fixture->modules[0], 0x1000)), 1);
		assert_int_equal(intern_one(fixture, native(&fixture->modules[1], 0x1000)), 2);
		assert_int_equal(intern_one(fixture, native(NULL, 0x1000)), 3);
		assert_int_equal(intern_one(fixture, evaluation), 4);
		assert_int_equal(intern_one(fixture, native(&fixture->modules[2], 0)), 5);
		assert_int_equal(intern_one(fixture, native(NULL, 0)), 6);
		assert_int_equal(intern_one(fixture, native(&fixture->modules[0], 0x7fffffffffff)), 7);
	}
	assert_int_equal(fixture->batch->n_frames, 7);
	assert_int_equal(fixture->batch->n_modules, 3);
	rows = fixture->batch->frames;
	assert_ptr_equal(rows[1].module, &fixture->modules[1]);
	assert_int_equal(rows[1].module_id, 1001);
	assert_null(rows[2].module);
	assert_int_equal(rows[2].module_id, 0);
	assert_true(rows[3].is_eval && !rows[1].is_eval);
	assert_true(rows[3].without_cfi && !rows[1].without_cfi);
	assert_int_equal(rows[6].address, 0x7fffffffffff);
	assert_int_equal(fixture->batch->modules[1].id, 1001);
}

/* A Python frame is a line of a code object: instructions of one line are one frame. */
static void test_python(void **state)
{
	struct fixture *fixture = *state;
	struct py_code *a = &fixture->codes[0], *b = &fixture->codes[1];
	const struct new_frame *rows;

	for (int again = 0; again < 2; again++) {
		assert_int_equal(intern_one(fixture, python(a, 0)), 1);
		assert_int_equal(intern_one(fixture, python(a, 2)), 1);
		assert_int_equal(intern_one(fixture, python(a, 4)), 2);
		assert_int_equal(intern_one(fixture, python(b, 0)), 3);
		assert_int_equal(intern_one(fixture, python(a, PY_INSTRUCTION_NONE)), 1);
		assert_int_equal(intern_one(fixture, python(a, PY_INSTRUCTION_UNKNOWN)), 4);
	}
	assert_int_equal(fixture->batch->n_frames, 4);
	rows = fixture->batch->frames;
	assert_true(rows[0].position.line == 10 && rows[1].position.line == 12 && rows[2].position.line == 10 &&
		    rows[3].position.line == 0);
	assert_ptr_equal(rows[0].code, a);
	assert_ptr_equal(rows[2].code, b);
}

static void test_kernel(void **state)
{
	struct fixture *fixture = *state;
	uint64_t ip = 0xffffffff81000000;

	for (int again = 0; again < 2; again++) {
		assert_int_equal(intern_one(fixture, kernel(ip)), 1);
		assert_int_equal(intern_one(fixture, kernel(ip + 1)), 2);
		/* The same number as an address of the process is another place. */
		assert_int_equal(intern_one(fixture, native(NULL, ip & INT64_MAX)), 3);
	}
	assert_int_equal(fixture->batch->frames[0].kind, FRAME_KERNEL);
	assert_int_equal(fixture->batch->frames[0].address, ip);
}

static void add_total(struct fixture *fixture, uint32_t thread, int64_t stack, uint64_t weight)
{
	struct sample_row row = {
		.pid = 1,
		.tid = (pid_t)(100 + thread),
		.stack = stack,
		.weight = weight,
	};

	assert_int_equal(intern_total(&fixture->intern, fixture->batch, thread, &row), 0);
}

/* What a thread had on a stack, summed since the last flush, and no longer. */
static void test_totals(void **state)
{
	struct fixture *fixture = *state;
	struct total_row *totals;

	add_total(fixture, 0, 0, 1);
	add_total(fixture, 0, 7, 10);
	add_total(fixture, 1, 7, 100);
	add_total(fixture, 0, 7, 20);
	assert_int_equal(fixture->batch->n_totals, 3);
	totals = fixture->batch->totals;
	assert_true(totals[0].stack == 0 && totals[0].samples == 1 && totals[0].weight == 1);
	assert_true(totals[1].tid == 100 && totals[1].samples == 2 && totals[1].weight == 30);
	assert_true(totals[2].tid == 101 && totals[2].samples == 1 && totals[2].weight == 100);
	batch_clear(fixture->batch);
	intern_flushed(&fixture->intern);
	add_total(fixture, 0, 7, 5);
	assert_int_equal(fixture->batch->n_totals, 1);
	assert_true(fixture->batch->totals[0].samples == 1 && fixture->batch->totals[0].weight == 5);
}

/* Totals of many pairs, each found again although the array moves as it grows. */
static void test_many_totals(void **state)
{
	enum { N_THREADS = 50, N_STACKS = 200 };
	struct fixture *fixture = *state;
	uint64_t samples = 0, weight = 0;

	for (int again = 0; again < 3; again++)
		for (uint32_t thread = 0; thread < N_THREADS; thread++)
			for (int64_t stack = 1; stack <= N_STACKS; stack++)
				add_total(fixture, thread, stack, 2);
	assert_int_equal(fixture->batch->n_totals, N_THREADS * N_STACKS);
	for (size_t i = 0; i < fixture->batch->n_totals; i++) {
		assert_int_equal(fixture->batch->totals[i].samples, 3);
		samples += fixture->batch->totals[i].samples;
		weight += fixture->batch->totals[i].weight;
	}
	assert_int_equal(samples, 3 * N_THREADS * N_STACKS);
	assert_int_equal(weight, 6 * N_THREADS * N_STACKS);
}

/* After a flush, known locations are not reported again; new ones continue the numbering. */
static void test_flush_keeps_ids(void **state)
{
	struct fixture *fixture = *state;
	struct frame frames[] = { python(&fixture->codes[0], 0), native(&fixture->modules[0], 1) };
	struct frame more[] = { python(&fixture->codes[1], 0), native(&fixture->modules[0], 1) };

	assert_int_equal(intern_frames(fixture, frames, 2), 2);
	batch_clear(fixture->batch);
	intern_flushed(&fixture->intern);
	assert_true(batch_is_empty(fixture->batch));
	assert_int_equal(intern_frames(fixture, frames, 2), 2);
	assert_true(batch_is_empty(fixture->batch));
	assert_int_equal(intern_frames(fixture, more, 2), 3);
	assert_int_equal(fixture->batch->n_frames, 1);
	assert_int_equal(fixture->batch->frames[0].id, 3);
	assert_int_equal(fixture->batch->n_stacks, 1);
	assert_int_equal(fixture->batch->n_modules, 0);
	assert_int_equal(fixture->batch->stacks[0].parent, 1);
}

/* Frames and stacks are new ones then, with new numbers; modules are what they were. */
static void test_renewal(void **state)
{
	struct fixture *fixture = *state;
	struct frame frames[] = { python(&fixture->codes[0], 0), native(&fixture->modules[0], 1) };

	assert_int_equal(intern_frames(fixture, frames, 2), 2);
	assert_true(intern_bytes(&fixture->intern) > 0);
	batch_clear(fixture->batch);
	intern_flushed(&fixture->intern);
	intern_renew(&fixture->intern);
	assert_int_equal(intern_bytes(&fixture->intern), 0);
	assert_int_equal(intern_frames(fixture, frames, 2), 4);
	assert_int_equal(fixture->batch->n_frames, 2);
	assert_int_equal(fixture->batch->frames[0].id, 3);
	assert_int_equal(fixture->batch->stacks[0].stack, 3);
	assert_int_equal(fixture->batch->stacks[1].parent, 3);
	assert_int_equal(fixture->batch->n_modules, 0);
}

static void test_batch(void **state)
{
	struct fixture *fixture = *state;
	struct batch *batch = fixture->batch;
	struct new_process *process;
	struct new_thread *thread;

	assert_true(batch_is_empty(batch));
	process = BATCH_ADD(batch, processes);
	assert_non_null(process);
	assert_null(process->name);
	process->name = strdup("name"); /* owned by the batch */
	process->command = strdup("command");
	assert_false(batch_is_empty(batch));
	batch_clear(batch);
	assert_true(batch_is_empty(batch));
	/* Elements come zeroed also where older ones were. */
	for (int i = 0; i < 1000; i++) {
		thread = BATCH_ADD(batch, threads);
		assert_int_equal(thread->row.pid, 0);
		assert_int_equal(thread->name[0], '\0');
		thread->row.pid = i + 1;
		memset(thread->name, 'x', sizeof thread->name);
	}
	batch_clear(batch);
	thread = BATCH_ADD(batch, threads);
	assert_int_equal(thread->row.pid, 0);
	assert_int_equal(thread->name[0], '\0');
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_anonymous), WITH_FIXTURE(test_no_frames),   WITH_FIXTURE(test_tree),
		WITH_FIXTURE(test_deep),      WITH_FIXTURE(test_native),      WITH_FIXTURE(test_python),
		WITH_FIXTURE(test_kernel),    WITH_FIXTURE(test_task),        WITH_FIXTURE(test_objects),
		WITH_FIXTURE(test_totals),    WITH_FIXTURE(test_many_totals), WITH_FIXTURE(test_flush_keeps_ids),
		WITH_FIXTURE(test_renewal),   WITH_FIXTURE(test_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
