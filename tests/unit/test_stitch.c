/* SPDX-License-Identifier: MIT */
/* test_stitch.c - the verdict on a merged stack, and where its Python frames go.
 *
 * Python frames come from memory images of interpreters (fixtures/images). The native stack is made to fit a thread of
 * the image: one frame of the evaluation loop around each anchor, a frame of another function of the interpreter between
 * two, and frames of a library at both ends. The image stands still, so a test changes what the sample captured.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "memory_image.h"
#include "unwind/cpython/reader.h"
#include "unwind/native/cfi.h"
#include "unwind/stitch/stitch.h"

enum {
	MAX_IMAGE_BYTES = 1 << 22,
	MAX_ANCHORS = 16,
	MAX_FRAMES = 64,
	STACK_BYTES = 1 << 16,
	BELOW_ANCHOR = 0x60, /* of the loop's frame; an anchor takes up to 96 bytes */
	ABOVE_ANCHOR = 0x80,
	END_BYTES = 0x200,    /* of the frames at both ends */
	ENOUGH_SAMPLES = 240, /* then no sample changes what is learnt (SETTLED_HITS) */
};

/* The executable of the interpreter: its own addresses are those in memory. */
#define TEXT UINT64_C(0x400000)
#define LOOP (TEXT + 0x10000)
#define LOOP_END (LOOP + 0x4000)
#define HELPER (TEXT + 0x20000)
#define TEXT_END (TEXT + 0x30000)
#define LIBRARY UINT64_C(0x10000000)

enum slot { SLOT_BYTECODE, SLOT_NEXT, SLOT_FRAME }; /* words of the loop's frame, from the CFA down */

static struct memory_image image;

struct fixture {
	struct remote *remote;
	struct py_runtime *runtime;
	struct stitcher *stitcher;
	struct module_table *modules;
	struct address_space *space;
	struct module module;
	/* The thread, as the image has it. */
	pid_t tid;
	struct py_anchor anchors[MAX_ANCHORS];
	size_t n_anchors;
	size_t first[MAX_ANCHORS + 1]; /* of each anchor's Python frames; then how many there are */
	struct py_frames python;
	/* What is stitched. */
	struct native_frame frames[MAX_FRAMES];
	uint8_t stack[STACK_BYTES];
	struct sample sample;
	struct native_stack native;
	struct stack result;
};

/* ---- The interpreter's executable ---- */

static int no_file(void *data, const char *name, int fd, const void *bytes, size_t n_bytes, struct elf_summary *ret,
		   uint32_t *ret_number)
{
	(void)data, (void)name, (void)fd, (void)bytes, (void)n_bytes;
	*ret = (struct elf_summary){ .machine = MACHINE_ELF };
	*ret_number = 0;
	return 0;
}

static void no_close(void *data, uint32_t number)
{
	(void)data, (void)number;
}

static int no_name(void *data, uint32_t number, const char *name, uint64_t *ret_value, uint64_t *ret_size)
{
	(void)data, (void)number, (void)name, (void)ret_value, (void)ret_size;
	return -ENOENT;
}

static int function_of(void *data, uint32_t number, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	bool is_loop = address >= LOOP && address < LOOP_END;

	(void)data, (void)number;
	if (address < TEXT || address >= TEXT_END)
		return -ENOENT;
	*ret_start = is_loop ? LOOP : HELPER;
	*ret_end = is_loop ? LOOP_END : TEXT_END;
	return 0;
}

static const struct elf_reader reader = { no_file, no_close, no_name, no_name, function_of, NULL };

/* ---- A thread and a native stack that fits it ---- */

static uint64_t lowest(const struct fixture *fixture)
{
	return fixture->anchors[0].address - BELOW_ANCHOR - END_BYTES;
}

static void add_frame(struct fixture *fixture, uint64_t pc, uint64_t cfa)
{
	size_t n = fixture->native.n_frames++;

	assert_true(n < MAX_FRAMES);
	fixture->frames[n] = (struct native_frame){
		.pc = pc,
		.sp = n == 0 ? lowest(fixture) : fixture->frames[n - 1].cfa,
		.cfa = cfa,
		.row = ROW_NONE,
		.is_return_address = n > 0,
		.fp_is_lost = true,
	};
	assert_true(fixture->frames[n].sp < cfa);
}

/* The native frame of an anchor. */
static size_t loop_of(const struct fixture *fixture, size_t anchor)
{
	for (size_t i = 0; i < fixture->native.n_frames; i++)
		if (fixture->anchors[anchor].address >= fixture->frames[i].sp &&
		    fixture->anchors[anchor].address < fixture->frames[i].cfa)
			return i;
	fail_msg("anchor %zu has no native frame", anchor);
	return 0;
}

static void plant(struct fixture *fixture, size_t anchor, enum slot slot, uint64_t value)
{
	uint64_t address = fixture->anchors[anchor].address + ABOVE_ANCHOR - ((uint64_t)slot + 1) * sizeof value;

	memcpy(fixture->stack + (address - lowest(fixture)), &value, sizeof value);
}

static const struct py_frame *innermost(const struct fixture *fixture, size_t anchor)
{
	return &fixture->python.frames[fixture->first[anchor]];
}

static const struct py_frame *outermost(const struct fixture *fixture)
{
	return &fixture->python.frames[fixture->python.n - 1];
}

static void capture_bytes(struct fixture *fixture)
{
	memset(fixture->stack, 0, sizeof fixture->stack);
	for (size_t k = 0; k < fixture->n_anchors; k++) {
		uint64_t address = fixture->anchors[k].address;
		size_t n_bytes = py_anchor_bytes(fixture->runtime);

		assert_int_equal(
			image_read(&image.base, RADDR(address), fixture->stack + (address - lowest(fixture)), n_bytes),
			n_bytes);
		plant(fixture, k, SLOT_BYTECODE, innermost(fixture, k)->code->bytecode);
		plant(fixture, k, SLOT_NEXT, innermost(fixture, k)->pointer);
		plant(fixture, k, SLOT_FRAME, innermost(fixture, k)->address);
	}
}

/* A sample of a thread that runs on meanwhile, for all that is known. */
static void make_sample(struct fixture *fixture)
{
	fixture->native = (struct native_stack){ .frames = fixture->frames, .end = STACK_COMPLETE };
	add_frame(fixture, LIBRARY, lowest(fixture) + END_BYTES);
	for (size_t k = 0; k < fixture->n_anchors; k++) {
		if (k > 0)
			add_frame(fixture, HELPER + 0x100, fixture->anchors[k].address - BELOW_ANCHOR);
		add_frame(fixture, LOOP + 0x1000, fixture->anchors[k].address + ABOVE_ANCHOR);
	}
	add_frame(fixture, LIBRARY + 0x1000, fixture->frames[fixture->native.n_frames - 1].cfa + END_BYTES);
	capture_bytes(fixture);
	fixture->sample = (struct sample){
		.time_ns = monotonic_ns(),
		.pid = image.pid,
		.tid = fixture->tid,
		.weight = 1000000,
		.has_user = true,
		.stack = fixture->stack,
		.stack_bytes = fixture->frames[fixture->native.n_frames - 1].cfa - lowest(fixture),
	};
	assert_true(fixture->sample.stack_bytes <= STACK_BYTES);
	fixture->sample.regs.value[MACHINE_REG_SP] = lowest(fixture);
	fixture->native.sample = &fixture->sample;
}

static void read_thread(struct fixture *fixture)
{
	uint64_t end, outer;
	int n;

	py_begin_sample(fixture->runtime);
	n = py_live_anchors(fixture->runtime, fixture->tid, true, fixture->anchors, MAX_ANCHORS);
	fixture->n_anchors = 0;
	for (int k = 0; k < n; k++) {
		fixture->first[k] = fixture->python.n;
		assert_int_equal(py_walk(fixture->runtime, fixture->anchors[k].top, &fixture->python, &end, &outer), 0);
		if (fixture->python.n > fixture->first[k]) /* below a thread's last there is an empty one in 3.15 */
			fixture->n_anchors++;
	}
	fixture->first[fixture->n_anchors] = fixture->python.n;
	assert_true(fixture->n_anchors >= 2);
}

static void set_up(struct fixture *fixture, const char *name)
{
	CLEANUP(freep) char *bytes = NULL;
	char path[512], version[32];
	size_t n_bytes;

	snprintf(path, sizeof path, "%s/fixtures/images/%s.image", getenv("PROBING_SOURCE_ROOT"), name);
	assert_int_equal(read_file(path, MAX_IMAGE_BYTES, &bytes, &n_bytes), 0);
	image_parse(&image, (const uint8_t *)bytes, n_bytes);
	*fixture = (struct fixture){ .remote = &image.base, .tid = image.threads[1] };
	assert_int_equal(image_open(&image, fixture->remote, version, &fixture->runtime), 0);
	assert_int_equal(elf_file_open_through(&reader, name, -1, path, sizeof path, &fixture->module.elf), 0);
	fixture->runtime->module = &fixture->module;
	fixture->runtime->text_start = TEXT;
	fixture->runtime->text_end = TEXT_END;
	assert_int_equal(module_table_new(&fixture->modules), 0);
	assert_int_equal(address_space_new(image.pid, fixture->modules, &fixture->space), 0);
	assert_int_equal(stitcher_new(&fixture->stitcher), 0);
	read_thread(fixture);
	make_sample(fixture);
}

static void tear_down(struct fixture *fixture)
{
	fixture->native.frames = NULL; /* ours */
	native_stack_done(&fixture->native);
	py_frames_done(&fixture->python);
	stitcher_free(fixture->stitcher);
	py_runtime_free(fixture->runtime);
	elf_file_free(fixture->module.elf);
	address_space_free(fixture->space);
	module_table_free(fixture->modules);
}

static enum verdict run(struct fixture *fixture)
{
	assert_int_equal(
		stitch(fixture->stitcher, fixture->space, fixture->runtime, &fixture->native, &fixture->result), 0);
	return fixture->result.verdict;
}

/* Until all that can be learnt of a running thread is: the last verdict. */
static enum verdict learn(struct fixture *fixture)
{
	enum verdict verdict = VERDICT_N;

	for (int i = 0; i < ENOUGH_SAMPLES; i++) {
		fixture->sample.time_ns = monotonic_ns();
		verdict = run(fixture);
	}
	return verdict;
}

/* ---- A function that returns while memory is read ---- */

/* Where the image leads to one frame, it leads to another as soon as it has been read. */
static struct {
	uint64_t from, to; /* addresses of the frames; 0: nothing changes */
} change;

static void change_words(uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < image.n_pages; i++)
		for (size_t at = 0; at < IMAGE_PAGE_BYTES; at += sizeof from)
			if (memcmp(image.pages[i].bytes + at, &from, sizeof from) == 0)
				memcpy(image.pages[i].bytes + at, &to, sizeof to);
}

static ssize_t read_changing(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	ssize_t r = image_read(remote, from, to, n_bytes);
	uint64_t word;

	for (ssize_t at = 0; change.from != 0 && at + (ssize_t)sizeof word <= r; at += (ssize_t)sizeof word) {
		memcpy(&word, (const uint8_t *)to + at, sizeof word);
		if (word == change.from) {
			change_words(change.from, change.to);
			change.from = 0;
		}
	}
	return r;
}

/* ---- What comes out ---- */

/* The n-th frame of the result is the Python frame @which of the thread. */
static void check_python(const struct fixture *fixture, size_t n, size_t which, bool is_uncertain)
{
	const struct frame *frame = &fixture->result.frames[n];

	assert_true(n < fixture->result.n_frames);
	assert_int_equal(frame->kind, FRAME_PYTHON);
	assert_ptr_equal(frame->python.code, fixture->python.frames[which].code);
	assert_int_equal(frame->is_uncertain, is_uncertain);
}

/* All frames are there: the Python frames of each evaluation right before its native frame. */
static void check_whole(const struct fixture *fixture)
{
	size_t n = 0, k = 0;

	for (size_t i = 0; i < fixture->native.n_frames; i++) {
		bool is_evaluation = k < fixture->n_anchors && loop_of(fixture, k) == i;

		for (size_t which = is_evaluation ? fixture->first[k] : 0;
		     is_evaluation && which < fixture->first[k + 1]; which++)
			check_python(fixture, n++, which, false);
		k += is_evaluation;
		assert_int_equal(fixture->result.frames[n].kind, FRAME_NATIVE);
		assert_int_equal(fixture->result.frames[n].is_evaluation, is_evaluation);
		assert_int_equal(fixture->result.frames[n].native.address, native_frame_lookup(&fixture->frames[i]));
		n++;
	}
	assert_int_equal(n, fixture->result.n_frames);
	assert_int_equal(k, fixture->n_anchors);
}

static size_t count(const struct fixture *fixture, enum frame_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < fixture->result.n_frames; i++)
		n += fixture->result.frames[i].kind == kind;
	return n;
}

static size_t count_uncertain(const struct fixture *fixture)
{
	size_t n = 0;

	for (size_t i = 0; i < fixture->result.n_frames; i++)
		n += fixture->result.frames[i].is_uncertain;
	return n;
}

/* ---- Tests, each for all images ---- */

static void check_held(struct fixture *fixture)
{
	static const uint64_t ips[] = { 0xffffffff81000010, 0xffffffff81000020 };
	size_t loop = loop_of(fixture, 1);

	fixture->sample.is_held = true;
	assert_int_equal(run(fixture), VERDICT_EXACT);
	check_whole(fixture);

	fixture->sample.kernel_ips = ips;
	fixture->sample.n_kernel_ips = N_ELEMENTS(ips);
	assert_int_equal(run(fixture), VERDICT_EXACT);
	for (size_t i = 0; i < N_ELEMENTS(ips); i++) {
		assert_int_equal(fixture->result.frames[i].kind, FRAME_KERNEL);
		assert_int_equal(fixture->result.frames[i].kernel.ip, ips[i]);
	}
	assert_int_equal(fixture->result.frames[2].kind, FRAME_NATIVE);
	fixture->sample.n_kernel_ips = 0;

	/* An anchor in a frame of a library has no evaluation. */
	fixture->frames[loop].pc = LIBRARY + 0x2000;
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	fixture->frames[loop].pc = LOOP + 0x1000;
	assert_int_equal(run(fixture), VERDICT_EXACT);

	/* The interpreter does not know the thread. */
	fixture->sample.tid = 4000000;
	assert_int_equal(run(fixture), VERDICT_NO_PYTHON);
	assert_int_equal(count(fixture, FRAME_PYTHON), 0);
	assert_int_equal(count(fixture, FRAME_NATIVE), fixture->native.n_frames);
}

static void check_still(struct fixture *fixture)
{
	const struct py_code *other = outermost(fixture)->code;

	fixture->sample.is_still = fixture->sample.is_held = true;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(run(fixture), VERDICT_VERIFIED);
		check_whole(fixture);
	}
	/* Captured bytes name another function than memory does, in a caller of the library. */
	assert_ptr_not_equal(other, innermost(fixture, 1)->code);
	plant(fixture, 1, SLOT_BYTECODE, other->bytecode);
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	plant(fixture, 1, SLOT_BYTECODE, innermost(fixture, 1)->code->bytecode);
	assert_int_equal(run(fixture), VERDICT_VERIFIED);

	/* In the loop's first instructions its anchor may not be there yet. */
	fixture->native.frames = fixture->frames + 1;
	fixture->native.n_frames--;
	fixture->frames[1].is_return_address = false;
	fixture->frames[1].pc = LOOP + 0x10;
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	fixture->frames[1].pc = LOOP + 0x1000;
	assert_int_equal(run(fixture), VERDICT_VERIFIED);
}

static void check_running(struct fixture *fixture)
{
	const struct py_frame *frames = fixture->python.frames;
	size_t other = fixture->python.n - 1; /* of another evaluation */

	/* Nothing has been learnt yet. */
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	assert_int_equal(learn(fixture), VERDICT_VERIFIED);
	check_whole(fixture);

	/* The caller of what memory shows ran: what it called since is left out. */
	assert_true(fixture->first[1] >= 2);
	plant(fixture, 0, SLOT_BYTECODE, frames[1].code->bytecode);
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	check_python(fixture, 1, 1, true);
	assert_int_equal(count(fixture, FRAME_PYTHON), fixture->python.n - 1);
	assert_int_equal(count_uncertain(fixture), fixture->first[1] - 1);

	/* A function ran that is there no more: it takes the place of the one that is. */
	plant(fixture, 0, SLOT_BYTECODE, frames[other].code->bytecode);
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	check_python(fixture, 1, other, true);
	assert_int_equal(fixture->result.frames[1].python.address, 0);
	check_python(fixture, 2, 1, true);
	assert_int_equal(count(fixture, FRAME_PYTHON), fixture->python.n);
	plant(fixture, 0, SLOT_BYTECODE, innermost(fixture, 0)->code->bytecode);
	assert_int_equal(run(fixture), VERDICT_VERIFIED);

	/* No captured word points into bytecode: nothing confirms what memory shows. */
	plant(fixture, 0, SLOT_BYTECODE, 0);
	plant(fixture, 0, SLOT_NEXT, 0);
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	check_python(fixture, 1, 0, true);
	capture_bytes(fixture);
	assert_int_equal(run(fixture), VERDICT_VERIFIED);

	/* The captured frame is not there any more: what memory shows may be another call of the same function. */
	if (!py_anchor_tells_top(fixture->runtime)) {
		plant(fixture, 0, SLOT_FRAME, frames[other].address);
		assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
		check_python(fixture, 1, 0, true);
		plant(fixture, 0, SLOT_FRAME, innermost(fixture, 0)->address);
		assert_int_equal(run(fixture), VERDICT_VERIFIED);
	}

	/* An anchor is missing among those captured: the next one inside it leads past what is found. */
	for (size_t k = 1; k < fixture->n_anchors; k++) {
		uint64_t offset = fixture->anchors[k].address - lowest(fixture);

		memset(fixture->stack + offset, 0, py_anchor_bytes(fixture->runtime));
		assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
		capture_bytes(fixture);
		assert_int_equal(run(fixture), VERDICT_VERIFIED);
	}
}

/*
 * The innermost function returns right after its frame has been found. Its memory stays as it was, but its callers may have
 * been read later: of another call.
 */
static void check_returning(struct fixture *fixture)
{
	static const struct remote_ops changing = { .read = read_changing };
	const struct remote_ops *ops = image.base.ops;
	uint64_t frame = fixture->python.frames[0].address, caller = fixture->python.frames[1].address;

	assert_true(fixture->first[1] >= 2);
	assert_int_equal(learn(fixture), VERDICT_VERIFIED);
	image.base.ops = &changing;
	change.from = frame;
	change.to = caller;
	assert_int_equal(run(fixture), VERDICT_APPROXIMATE);
	check_python(fixture, 1, 0, true);
	assert_int_equal(change.from, 0);
	image.base.ops = ops;
}

static void check_without_python(struct fixture *fixture)
{
	struct py_runtime *runtime = fixture->runtime;

	fixture->runtime = NULL;
	assert_int_equal(run(fixture), VERDICT_NO_PYTHON);
	assert_int_equal(fixture->result.n_frames, fixture->native.n_frames);
	fixture->runtime = runtime;

	/* All native frames are of libraries. */
	for (size_t i = 0; i < fixture->native.n_frames; i++)
		fixture->frames[i].pc = LIBRARY + i * 0x100;
	assert_int_equal(run(fixture), VERDICT_NO_PYTHON);
	assert_int_equal(fixture->result.n_frames, fixture->native.n_frames);
}

/* Behind the end of the native part Python frames follow that memory shows. */
static void check_cut(struct fixture *fixture)
{
	size_t n_python = fixture->python.n, kept = loop_of(fixture, 0) + 1;

	fixture->native.n_frames = kept;
	fixture->native.end = STACK_TRUNCATED;
	fixture->sample.stack_bytes = fixture->frames[kept - 1].cfa - lowest(fixture);
	fixture->sample.is_held = true;
	assert_int_equal(run(fixture), VERDICT_PYTHON);
	assert_int_equal(fixture->result.end, STACK_TRUNCATED);
	assert_int_equal(count(fixture, FRAME_PYTHON), n_python);
	assert_int_equal(count(fixture, FRAME_NATIVE), kept);
	for (size_t i = 0; i < n_python - fixture->first[1]; i++)
		check_python(fixture, fixture->result.n_frames - 1 - i, n_python - 1 - i, true);
}

static void for_all_images(void (*check)(struct fixture *))
{
	static const char *const names[] = { "3.11.7", "3.12.1", "3.13.0", "3.14.10", "3.15.2" };
	static struct fixture fixture;

	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		print_message("%s\n", names[i]);
		set_up(&fixture, names[i]);
		check(&fixture);
		tear_down(&fixture);
	}
}

static void a_held_thread_is_exact(void **state)
{
	(void)state;
	for_all_images(check_held);
}

static void a_thread_that_stood_still_is_verified(void **state)
{
	(void)state;
	for_all_images(check_still);
}

static void a_running_thread_is_verified_by_captured_bytes(void **state)
{
	(void)state;
	for_all_images(check_running);
}

static void callers_of_a_frame_that_has_returned_are_uncertain(void **state)
{
	(void)state;
	for_all_images(check_returning);
}

static void a_thread_without_evaluations_has_no_python(void **state)
{
	(void)state;
	for_all_images(check_without_python);
}

static void python_goes_on_where_the_native_part_ends(void **state)
{
	(void)state;
	for_all_images(check_cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_held_thread_is_exact),
		cmocka_unit_test(a_thread_that_stood_still_is_verified),
		cmocka_unit_test(a_running_thread_is_verified_by_captured_bytes),
		cmocka_unit_test(callers_of_a_frame_that_has_returned_are_uncertain),
		cmocka_unit_test(a_thread_without_evaluations_has_no_python),
		cmocka_unit_test(python_goes_on_where_the_native_part_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
