/* SPDX-License-Identifier: MIT */
/*
 * Test recorded stacks of real programs, with libdwfl's frames beside them: fixtures/stacks.
 * They may be from another machine, and need none of the programs. At least 999 of 1,000 frames must be libdwfl's. A
 * stack with known places must be unwound without an allocation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <glob.h>

#include "stacks_home.h"
#include "unwind/native/walk.h"

/* ---- Counting allocations ---- */

static size_t n_allocations;

#if !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__)
#define COUNTS_ALLOCATIONS true
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *from, size_t n);

void *malloc(size_t n)
{
	n_allocations++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	n_allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *from, size_t n)
{
	n_allocations++;
	return __libc_realloc(from, n);
}
#else
#define COUNTS_ALLOCATIONS false /* the sanitizer has its own malloc() */
#endif

/* ---- Fixtures ---- */

struct tally {
	size_t n_samples, n_frames, n_equal, n_reached;
};

static void check_sample(struct stacks_file *file, struct stacks_home *home, struct sample *sample, struct tally *tally)
{
	const struct native_frame *frames;
	size_t n_frames, n_equal = 0;
	bool differs = false;

	assert_true(stacks_home_sample(file, sample));
	assert_int_equal(native_unwind(home->process, sample, NULL, &home->stack), 0);
	frames = home->stack.frames;
	n_frames = stacks_get(file);
	for (size_t i = 0; i < n_frames; i++) {
		uint64_t pc = stacks_get(file), sp = stacks_get(file);

		differs |= i >= home->stack.n_frames || frames[i].pc != pc || frames[i].sp != sp;
		n_equal += !differs;
	}
	tally->n_samples++;
	tally->n_frames += MAX(n_frames, home->stack.n_frames);
	tally->n_equal += n_equal;
	tally->n_reached += home->stack.end == STACK_COMPLETE;
	assert_int_equal(home->stack.end == STACK_COMPLETE, stacks_get(file));
}

static uint64_t sum_of(const struct native_stack *stack)
{
	uint64_t sum = stack->end;

	for (size_t i = 0; i < stack->n_frames; i++)
		sum = mix64(sum ^ stack->frames[i].pc) + stack->frames[i].sp + stack->frames[i].cfa;
	return sum;
}

/* All places are known now. Any prefetch leaves the result unchanged. */
static void check_second_pass(struct stacks_home *home, enum prefetch_way way)
{
	size_t before = n_allocations;

	for (size_t i = 0; i < home->n_samples; i++) {
		uint64_t sum;

		assert_int_equal(native_unwind(home->process, &home->samples[i], NULL, &home->stack), 0);
		sum = sum_of(&home->stack);
		home->unwinder->prefetch.way = way;
		native_expect(home->process, &home->samples[i]);
		assert_int_equal(native_unwind(home->process, &home->samples[i], NULL, &home->stack), 0);
		assert_int_equal(sum_of(&home->stack), sum);
	}
	if (COUNTS_ALLOCATIONS)
		assert_true(before > 0);
	assert_int_equal(n_allocations, before);
}

/* Returns the frames compared. */
static size_t check_file(const char *path)
{
	struct tally tally = { 0 };
	struct stacks_file file;
	struct stacks_home home;

	assert_true(stacks_open(&file, path, "rb"));
	assert_true(stacks_home_open(&file, &home));
	for (size_t i = 0; i < home.n_samples; i++)
		check_sample(&file, &home, &home.samples[i], &tally);
	assert_true(stacks_close(&file));
	for (enum prefetch_way way = 0; way < PREFETCH_N_WAYS; way++)
		check_second_pass(&home, way);
	print_message("%s: %zu samples, %zu frames, %zu as libdwfl has them, %zu to the thread's start\n",
		      strrchr(path, '/') + 1, tally.n_samples, tally.n_frames, tally.n_equal, tally.n_reached);
	assert_true(tally.n_samples > 0);
	assert_true(tally.n_equal * 1000 >= tally.n_frames * 999);
	stacks_home_close(&home);
	return tally.n_frames;
}

static void test_recorded_stacks(void **state)
{
	const char *root = getenv("PROBING_SOURCE_ROOT");
	char pattern[4096];
	size_t n_frames = 0;
	glob_t found;

	(void)state;
	snprintf(pattern, sizeof pattern, "%s/fixtures/stacks/*.stacks", root ? root : ".");
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 3);
	for (size_t i = 0; i < found.gl_pathc; i++)
		n_frames += check_file(found.gl_pathv[i]);
	assert_true(n_frames >= 1000);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded_stacks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
