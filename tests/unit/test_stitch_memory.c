/* SPDX-License-Identifier: MIT */
/* test_stitch_memory.c - stacks of a thread that runs while its memory is read.
 *
 * An image of an interpreter's memory does not change. This test changes it: each read of a thread's innermost
 * frame returns the next one of a list.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "memory_image.h"
#include "unwind/stitch/stitch.h"

enum { MAX_IMAGE_BYTES = 1 << 22, N_TOPS = 3, MIN_FRAMES = 4 };

static struct memory_image image;

/*
 * The image, with a changed pointer to the innermost frame. Each read of the stack reads that pointer once, with its
 * page; the stack reader does not use other reads of it.
 */
struct moving {
	struct remote base;
	uint64_t top;          /* its value in the image */
	uint64_t tops[N_TOPS]; /* 0: as it is; one per reading, then the last */
	unsigned n_readings;
	struct raddr seen_at; /* where a read found it first */
	bool is_armed;
};

static ssize_t moving_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct moving *moving = (struct moving *)remote;
	ssize_t n = image_read(&image.base, from, to, n_bytes);
	uint8_t *bytes = to;

	for (ssize_t i = 0; moving->is_armed && n_bytes == IMAGE_PAGE_BYTES && i + 8 <= n; i += 8) {
		uint64_t address = from.value + (uint64_t)i, top;

		if (memcmp(bytes + i, &moving->top, 8) != 0)
			continue;
		if (raddr_is_null(moving->seen_at))
			moving->seen_at = RADDR(address);
		if (address != moving->seen_at.value)
			continue;
		top = moving->tops[MIN(moving->n_readings, (unsigned)N_TOPS - 1)];
		moving->n_readings++;
		if (top != 0)
			memcpy(bytes + i, &top, 8);
	}
	return n;
}

struct fixture {
	struct moving moving;
	struct py_runtime *runtime;
	struct memory_stitcher *stitcher;
	pid_t tid;
	struct py_frame frames[64]; /* as they are, of a thread that has enough */
	size_t n;
};

/* All frames of a thread; returns how many, where it has one evaluation or frames are evaluations. */
static size_t read_frames(struct py_runtime *runtime, pid_t tid, struct py_frame *to, size_t max)
{
	static struct py_anchor anchors[PY_MAX_ANCHORS];
	struct py_frames frames = { 0 };
	uint64_t end, outer;
	size_t n;
	int n_anchors;

	py_begin_sample(runtime);
	n_anchors = py_live_anchors(runtime, tid, true, anchors, PY_MAX_ANCHORS);
	for (int i = 0; i < n_anchors; i++)
		assert_int_equal(py_walk(runtime, anchors[i].top, &frames, &end, &outer), 0);
	n = MIN(frames.n, max);
	if (n > 0)
		memcpy(to, frames.frames, n * sizeof *to);
	py_frames_done(&frames);
	return n;
}

static void set_up(struct fixture *fixture, const char *name)
{
	static const struct remote_ops ops = { .read = moving_read };
	CLEANUP(freep) char *bytes = NULL;
	char path[512], version[32];
	size_t n_bytes;

	snprintf(path, sizeof path, "%s/fixtures/images/%s.image", getenv("PROBING_SOURCE_ROOT"), name);
	assert_int_equal(read_file(path, MAX_IMAGE_BYTES, &bytes, &n_bytes), 0);
	image_parse(&image, (const uint8_t *)bytes, n_bytes);
	*fixture = (struct fixture){ .moving.base.ops = &ops };
	assert_int_equal(image_open(&image, &fixture->moving.base, version, &fixture->runtime), 0);
	assert_int_equal(memory_stitcher_new(&fixture->stitcher), 0);
	for (size_t i = 0; i < IMAGE_N_THREADS && fixture->n < MIN_FRAMES; i++) {
		fixture->tid = image.threads[i];
		fixture->n = read_frames(fixture->runtime, fixture->tid, fixture->frames, N_ELEMENTS(fixture->frames));
	}
	assert_true(fixture->n >= MIN_FRAMES);
}

static void tear_down(struct fixture *fixture)
{
	memory_stitcher_free(fixture->stitcher);
	py_runtime_free(fixture->runtime);
}

/* The innermost frame is this one in each reading: an index, 0 is the real one. */
static void move(struct fixture *fixture, unsigned first, unsigned second, unsigned third)
{
	const unsigned tops[] = { first, second, third };

	fixture->moving.top = fixture->frames[0].address;
	for (size_t i = 0; i < N_TOPS; i++)
		fixture->moving.tops[i] = fixture->frames[tops[i]].address;
	fixture->moving.seen_at = RADDR_NULL;
	fixture->moving.n_readings = 0;
	fixture->moving.is_armed = true;
}

/* The stack is the frames from this index on, the outermost n of them certain. */
static void check(struct fixture *fixture, enum verdict verdict, size_t first, size_t n_certain)
{
	struct stack stack;

	assert_int_equal(stitch_memory(fixture->stitcher, fixture->runtime, fixture->tid, &stack), 0);
	assert_int_equal(stack.verdict, verdict);
	assert_int_equal(stack.end, STACK_TRUNCATED);
	assert_int_equal(stack.n_frames, fixture->n - first);
	for (size_t i = 0; i < stack.n_frames; i++) {
		assert_int_equal(stack.frames[i].kind, FRAME_PYTHON);
		assert_ptr_equal(stack.frames[i].python.code, fixture->frames[first + i].code);
		assert_int_equal(stack.frames[i].is_uncertain, stack.n_frames - i > n_certain);
	}
}

static void check_image(const char *name)
{
	static struct fixture fixture;

	set_up(&fixture, name);
	check(&fixture, VERDICT_PYTHON, 0, fixture.n);
	/* It settled between the first reading and the second. */
	move(&fixture, 2, 0, 0);
	check(&fixture, VERDICT_PYTHON, 0, fixture.n);
	/* The stack grows and shrinks: the callers are certain, and the callees are kept, too. */
	move(&fixture, 0, 1, 0);
	check(&fixture, VERDICT_APPROXIMATE, 0, fixture.n - 1);
	/* More than one was called since: only the one that the certain part called is kept. */
	move(&fixture, 0, 2, 0);
	check(&fixture, VERDICT_APPROXIMATE, 1, fixture.n - 2);
	/* A frame that has returned by the last read is gone. */
	move(&fixture, 2, 0, 2);
	check(&fixture, VERDICT_APPROXIMATE, 2, fixture.n - 2);
	tear_down(&fixture);
}

static void a_stack_that_moves_is_certain_where_it_did_not(void **state)
{
	(void)state;
	check_image("3.4.6");
	check_image("3.14.4t");
}

static void a_thread_without_python_is_native(void **state)
{
	static struct fixture fixture;
	struct stack stack;

	(void)state;
	set_up(&fixture, "3.5.3");
	assert_int_equal(stitch_memory(fixture.stitcher, fixture.runtime, 4000000, &stack), 0);
	assert_int_equal(stack.verdict, VERDICT_NO_PYTHON);
	assert_int_equal(stack.n_frames, 0);
	assert_int_equal(stitch_memory(fixture.stitcher, NULL, fixture.tid, &stack), 0);
	assert_int_equal(stack.verdict, VERDICT_NO_PYTHON);
	assert_int_equal(stack.n_frames, 0);
	tear_down(&fixture);
}

/* A thread with unreadable frames is not a thread without frames. */
static void memory_that_cannot_be_read_is_no_stack(void **state)
{
	static struct fixture fixture;
	struct stack stack;

	(void)state;
	set_up(&fixture, "3.5.3");
	move(&fixture, 0, 0, 0);
	for (size_t i = 0; i < N_TOPS; i++)
		fixture.moving.tops[i] = 0x10;
	assert_int_equal(stitch_memory(fixture.stitcher, fixture.runtime, fixture.tid, &stack), 0);
	assert_int_equal(stack.verdict, VERDICT_APPROXIMATE);
	assert_int_equal(stack.n_frames, 0);
	tear_down(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_that_moves_is_certain_where_it_did_not),
		cmocka_unit_test(a_thread_without_python_is_native),
		cmocka_unit_test(memory_that_cannot_be_read_is_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
