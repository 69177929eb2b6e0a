/* SPDX-License-Identifier: MIT */
/* test_bpf_frames.c - the program that runs in the kernel, on images of interpreters' memory.
 *
 * What it records must lead to the same frames as reading that memory does, for each release
 * that there is an image of: those in fixtures/images, and the smaller ones of the fuzzer.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/bpf_here.h"

enum { MAX_BYTES = 1 << 20, MAX_ANCHORS = 256, MIN_FRAMES = 150, MAX_READS_OF_ONE = 12 };

struct stack {
	struct py_anchor anchors[MAX_ANCHORS];
	int n_anchors;
	struct py_frames frames;
};

/* Read all Python frames of a thread, from the BPF record if it exists. */
static void read_stack(struct py_runtime *runtime, pid_t tid, const struct python_record *record, struct stack *stack)
{
	uint64_t top = 0, end;

	py_begin_sample(runtime);
	if (record)
		py_take_record(runtime, record);
	stack->frames.n = 0;
	stack->n_anchors = py_live_anchors(runtime, tid, true, stack->anchors, MAX_ANCHORS);
	for (int i = 0; i < stack->n_anchors; i++)
		if (py_walk(runtime, stack->anchors[i].top, &stack->frames, &end, &top) < 0)
			return;
}

static void assert_same(const struct stack *a, const struct stack *b)
{
	assert_int_equal(a->n_anchors, b->n_anchors);
	for (int i = 0; i < a->n_anchors; i++)
		assert_memory_equal(&a->anchors[i], &b->anchors[i], sizeof a->anchors[i]);
	assert_int_equal(a->frames.n, b->frames.n);
	for (size_t i = 0; i < a->frames.n; i++) {
		const struct py_frame *one = &a->frames.frames[i], *other = &b->frames.frames[i];

		assert_int_equal(one->address, other->address);
		assert_ptr_equal(one->code, other->code);
		assert_int_equal(one->pointer, other->pointer);
		assert_int_equal(one->instruction, other->instruction);
	}
}

static unsigned n_told; /* questions that could be answered */

static void assert_answer(enum py_answer answer, uint32_t flags, uint32_t known, uint32_t yes)
{
	assert_int_equal(answer != PY_UNKNOWN, (flags & known) != 0);
	assert_int_equal(answer == PY_YES, (flags & yes) != 0);
	n_told += answer != PY_UNKNOWN;
}

/* All readers agree about the GIL and the GC of a thread. */
static void assert_same_hold(struct py_runtime *runtime, pid_t tid, const struct python_record *record)
{
	struct py_gil_state gil_state;

	py_begin_sample(runtime);
	assert_int_equal(py_gil_state_read(runtime, tid, &gil_state), 0);
	assert_answer(gil_state.gil, record->flags, PYTHON_GIL_KNOWN, PYTHON_GIL_HELD);
	assert_answer(gil_state.collects, record->flags, PYTHON_GC_KNOWN, PYTHON_GC_RUNS);
}

/* @whole: the image has all memory that reading this thread needs. */
static size_t compare_thread(struct py_runtime *runtime, pid_t tid, bool whole, bool forget_codes)
{
	static struct stack by_memory, by_record;
	const struct python_record *record = bpf_here_run(tid);

	read_stack(runtime, tid, NULL, &by_memory);
	if (!whole && (by_memory.n_anchors <= 0 || !record || record->flags & PYTHON_INCOMPLETE))
		return 0;
	assert_true(by_memory.n_anchors > 0);
	assert_non_null(record);
	assert_int_equal(record->layout_id, 1);
	assert_int_equal(record->tid, tid);
	assert_int_equal(record->flags & PYTHON_INCOMPLETE, 0);
	assert_same_hold(runtime, tid, record);
	if (forget_codes) /* all memory is gone by now: what is known must do */
		bpf_here.image->n_pages = 0, memset(bpf_here.image->slots, 0, sizeof bpf_here.image->slots);
	read_stack(runtime, tid, record, &by_record);
	assert_true(py_record_sufficed(runtime));
	assert_same(&by_memory, &by_record);
	return by_memory.frames.n;
}

static char *path_of(const char *pattern)
{
	static char path[512];
	const char *root = getenv("PROBING_SOURCE_ROOT");

	assert_non_null(root);
	snprintf(path, sizeof path, "%s/%s", root, pattern);
	return path;
}

static void load(const char *path, struct memory_image *image)
{
	CLEANUP(freep) char *bytes = NULL;
	size_t n_bytes;

	assert_int_equal(read_file(path, MAX_BYTES, &bytes, &n_bytes), 0);
	image_parse(image, (const uint8_t *)bytes, n_bytes);
}

#ifdef HAVE_DIRECT_MAP
static size_t n_words_before_move, n_kept, n_marked;

static void move_in_time(void)
{
	if (n_words_before_move-- > 0)
		return;
	before_word = NULL;
	have_moved = true;
	map_pages();
}

static void set_word(uint64_t address, uint64_t word)
{
	memcpy(&image_page(bpf_here.image, address)->bytes[address % IMAGE_PAGE_BYTES], &word, sizeof word);
}

/* Add reference counts, which images omit and every object has. Shims have None instead of a code object. */
static void complete_image(const struct python_record *record)
{
	const struct python_entry *entries = python_entries(record);

	for (size_t i = 0; i < record->n_entries; i++) {
		if (entries[i].kind != PYTHON_ENTRY_FRAME)
			continue;
		set_word(entries[i].code != 0 ? entries[i].code : entries[i].address, 1);
		if (entries[i].code != 0 && bpf_here.layout.name_identity != PYTHON_ABSENT)
			set_word(entries[i].name, 1);
	}
}

/* If pages move during the read, the record is either equal or marked as incomplete. */
static void assert_moves_do_no_harm(pid_t tid)
{
	static uint8_t unmoved[PYTHON_RECORD_BYTES];
	size_t n_words, n_bytes;
	const struct python_record *record = bpf_here_run(tid);

	if (!record || record->flags & PYTHON_INCOMPLETE)
		return;
	complete_image(record);
	n_words = page_tables.n_read;
	assert_non_null(bpf_here_run(tid));
	n_words = page_tables.n_read - n_words;
	n_bytes = bpf_here.n_output;
	memcpy(unmoved, bpf_here.output, n_bytes);
	for (size_t i = 0; i < n_words; i++) {
		n_words_before_move = i;
		before_word = move_in_time;
		record = bpf_here_run(tid);
		assert_null(before_word);
		assert_non_null(record);
		if (record->flags & PYTHON_INCOMPLETE) {
			n_marked++;
			continue;
		}
		assert_int_equal(bpf_here.n_output, n_bytes);
		assert_memory_equal(bpf_here.output, unmoved, n_bytes);
		n_kept++;
	}
}
#endif

static size_t compare_image(const char *path, bool whole)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	static struct memory_image image;
	char version[32];
	size_t n = 0;

	load(path, &image);
	if (image_open(&image, &image.base, version, &runtime) < 0 || !bpf_here_watch(&image, runtime))
		return 0;
	for (size_t i = 0; i < IMAGE_N_THREADS && image.threads[i] != 0; i++) {
		unsigned n_reads;

		n += compare_thread(runtime, image.threads[i], whole, false);
		n_reads = bpf_here.n_reads;
		/* Now the thread is known, and the lists are unchanged. */
		compare_thread(runtime, image.threads[i], whole, false);
		assert_true(bpf_here.n_reads <= n_reads);
	}
#ifdef HAVE_DIRECT_MAP
	assert_moves_do_no_harm(image.threads[0]);
#endif
	if (n > 0)
		compare_thread(runtime, image.threads[0], whole, true);
	return n;
}

static void compare_all(const char *pattern, bool whole, size_t least)
{
	size_t n = 0;
	glob_t paths;

	assert_int_equal(glob(path_of(pattern), 0, NULL, &paths), 0);
	for (size_t i = 0; i < paths.gl_pathc; i++)
		n += compare_image(paths.gl_pathv[i], whole);
	print_message("%s: %zu frames agree\n", pattern, n);
	assert_true(n >= least);
	globfree(&paths);
}

static void records_say_what_memory_says(void **state)
{
	(void)state;
	compare_all("fixtures/images/*.image", true, MIN_FRAMES);
	compare_all("fuzz/corpus/cpython/[23].[0-9]", false, 1);
	compare_all("fuzz/corpus/cpython/3.1[0-9]*", false, 20);
	assert_true(n_told > 0);
#ifdef HAVE_DIRECT_MAP
	print_message("pages moved %zu times, %zu of them noticed\n", n_kept + n_marked, n_marked);
	assert_true(n_kept > 0 && n_marked > 0);
#endif
}

static struct memory_image image;
static struct py_runtime *runtime;

static int open_image(void **state)
{
	char version[32];

	(void)state;
	load(path_of("fuzz/corpus/cpython/3.13"), &image);
	assert_int_equal(image_open(&image, &image.base, version, &runtime), 0);
	assert_true(bpf_here_watch(&image, runtime));
	assert_non_null(bpf_here_run(image.threads[0]));
	return 0;
}

static int close_image(void **state)
{
	(void)state;
	py_runtime_free(runtime);
	return 0;
}

static uint64_t *word_of(uint64_t address)
{
	return (uint64_t *)(image_page(&image, address)->bytes + address % IMAGE_PAGE_BYTES);
}

static void a_thread_that_python_does_not_know_has_no_record(void **state)
{
	(void)state;
	assert_null(bpf_here_run(image.threads[0] + 12345));
}

/* Make the record with the current layout; return its number of reads. */
static unsigned record_into(uint8_t *to, size_t *ret_bytes)
{
	assert_non_null(bpf_here_run(image.threads[0]));
	memcpy(to, bpf_here.output, bpf_here.n_output);
	*ret_bytes = bpf_here.n_output;
	return bpf_here.n_reads;
}

/* Fewer reads give the same record as this layout, which reads each field separately. */
static void assert_fewer_readings(const struct python_layout *apart)
{
	static uint8_t alone[PYTHON_RECORD_BYTES], together[PYTHON_RECORD_BYTES];
	struct python_layout layout = bpf_here.layout;
	size_t n_alone, n_together;
	unsigned n_reads;

	n_reads = record_into(together, &n_together);
	bpf_here.layout = *apart;
	assert_true(record_into(alone, &n_alone) > n_reads);
	bpf_here.layout = layout;
	assert_int_equal(n_together, n_alone);
	assert_memory_equal(together, alone, n_alone);
}

#ifdef HAVE_DIRECT_MAP
/* It does not end on the page that it begins on. */
static bool is_across(uint64_t address, int32_t n_bytes)
{
	return address % IMAGE_PAGE_BYTES + (uint64_t)n_bytes > IMAGE_PAGE_BYTES;
}

static void no_frame_is_copied(void **state)
{
	const struct python_record *record = bpf_here_run(image.threads[0]);
	unsigned n_reads = bpf_here.n_reads, n_across = 0;

	(void)state;
	assert_non_null(record);
	assert_true(record->n_entries > 2);
	for (size_t i = 1; i < record->n_entries; i++)
		n_across += is_across(python_entries(record)[i].address, bpf_here.layout.frame_span) +
			    is_across(python_entries(record)[i].code, bpf_here.layout.code_span);
	complete_image(record);
	assert_non_null(bpf_here_run(image.threads[0]));
	assert_true(bpf_here.n_reads < n_reads);
	n_reads = bpf_here.n_reads;
	*word_of(record->states[0].top + (uint64_t)bpf_here.layout.frame_previous) = 0;
	record = bpf_here_run(image.threads[0]);
	assert_non_null(record);
	assert_int_equal(record->n_entries, 1);
	assert_int_equal(bpf_here.n_reads, n_reads - n_across);
}
#else
static void callers_come_with_a_frame(void **state)
{
	struct python_layout apart = bpf_here.layout;

	(void)state;
	assert_true(apart.frame_before > 0);
	apart.frame_before = 0;
	assert_fewer_readings(&apart);
}
#endif

/* Whether garbage is collected comes with the next interpreter and the first thread. */
static void fields_that_lie_together_are_read_at_once(void **state)
{
	struct python_layout apart = bpf_here.layout;

	(void)state;
	apart.interpreter_span = (uint32_t)(apart.interpreter_threads + (int32_t)sizeof(uint64_t) -
					    apart.interpreter_start);
	assert_true(apart.interpreter_span < bpf_here.layout.interpreter_span);
	assert_fewer_readings(&apart);
}

/* Data of an earlier run is not used, even if the code object is at the same address. */
static void code_is_read_in_each_run(void **state)
{
	const struct python_record *record = (const struct python_record *)bpf_here.output;
	uint32_t n = record->n_entries, *version, before;
	uint64_t code = python_entries(record)[0].code;

	(void)state;
	assert_true(n > 0 && code != 0);
	version = (uint32_t *)((uint8_t *)word_of(code) + bpf_here.layout.code_version);
	before = (*version)++;
	assert_int_equal(python_entries(record)[0].version, before);
	record = bpf_here_run(image.threads[0]);
	assert_non_null(record);
	assert_int_equal(record->n_entries, n);
	assert_int_equal(python_entries(record)[0].version, before + 1);
}

static void a_state_that_is_anothers_by_now_is_not_read(void **state)
{
	uint64_t address = ((const struct python_record *)bpf_here.output)->states[0].state;
	uint64_t *id = word_of(address + (uint64_t)bpf_here.layout.thread_id);

	(void)state;
	*id += 1000;
	assert_null(bpf_here_run(image.threads[0]));
}

/* Another head of the list: the thread may be in more interpreters than before. */
static void a_changed_list_is_searched_anew(void **state)
{
	const struct python_record *record = (const struct python_record *)bpf_here.output;
	uint64_t state_address = record->states[0].state, interpreter = record->states[0].interpreter;
	uint64_t *head = word_of(interpreter + (uint64_t)bpf_here.layout.interpreter_threads), second;
	uint64_t made = 0x10000;
	struct image_page *page = image_add_page(&image, made);

	(void)state;
	assert_non_null(page);
	second = *head;
	memcpy(page->bytes, word_of(state_address), (size_t)bpf_here.layout.thread_span);
	memcpy(page->bytes + bpf_here.layout.thread_next, &second, sizeof second);
	*head = made;
	record = bpf_here_run(image.threads[0]);
	assert_non_null(record);
	assert_int_equal(record->n_states, 2);
	assert_int_equal(record->states[0].state, made);
}

/* The reader of the ring is woken where the rest of a stack has to be read, and for nothing else. */
static void only_what_cannot_wait_calls_the_reader(void **state)
{
	static const struct {
		bool has_floor;
		uint64_t sp;
		bool calls;
	} cases[] = {
		{ false, 0x7fff0000, true }, /* nothing is known of its stack */
		{ true, 0x7fff0000, false },
		{ true, 0x7fff0000ull + MAX_STACK_BYTES, false },
		{ true, 0x7fff0000ull + MAX_STACK_BYTES + 1, true }, /* another stack */
		{ true, 0x7fff0000 - 1, true },                      /* deeper than what is copied */
		{ true, 0xffffc90000000000, true },                  /* in the kernel */
	};

	(void)state;
	bpf_here.floor = 0x7fff0000;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		bpf_here.has_floor = cases[i].has_floor;
		bpf_here.sp = cases[i].sp;
		assert_non_null(bpf_here_run(image.threads[0]));
		assert_int_equal(bpf_here.has_called, cases[i].calls);
	}
	/* A thread without frames needs a memory read, however small its stack. */
	bpf_here.sp = bpf_here.floor;
	assert_null(bpf_here_run(image.threads[0] + 12345));
	assert_true(bpf_here.has_called);
	bpf_here.has_floor = false;
}

/* A recorder with few wake-ups is woken once for a new code object. */
static void new_code_calls_the_reader_once(void **state)
{
	(void)state;
	bpf_here.floor = 0x7fff0000;
	bpf_here.sp = bpf_here.floor;
	bpf_here.has_floor = true;
	bpf_here.n_met = 0;
	for (uint32_t calls_for_new = 0; calls_for_new < 2; calls_for_new++) {
		bpf_here.layout.calls_for_new = calls_for_new;
		assert_non_null(bpf_here_run(image.threads[0]));
		assert_int_equal(bpf_here.has_called, calls_for_new);
	}
	assert_true(bpf_here.n_met > 0);
	assert_non_null(bpf_here_run(image.threads[0]));
	assert_false(bpf_here.has_called);
	/* One of them is another now. */
	bpf_here.met[bpf_here.n_met - 1] ^= 1;
	assert_non_null(bpf_here_run(image.threads[0]));
	assert_true(bpf_here.has_called);
	bpf_here.layout.calls_for_new = 0;
	bpf_here.has_floor = false;
}

static void a_circle_ends_in_a_cut_record(void **state)
{
	const struct python_record *record = (const struct python_record *)bpf_here.output;
	uint64_t top = record->states[0].top;

	(void)state;
	*word_of(top + (uint64_t)bpf_here.layout.frame_previous) = top;
	record = bpf_here_run(image.threads[0]);
	assert_non_null(record);
	assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_CUT);
	assert_int_equal(record->n_entries, PYTHON_MAX_ENTRIES);
	/* Neither its code nor itself is read again. */
	assert_true(bpf_here.n_reads < MAX_READS_OF_ONE);
	for (size_t i = 0; i < PYTHON_MAX_ENTRIES; i++)
		assert_memory_equal(&python_entries(record)[i], python_entries(record), sizeof(struct python_entry));
	py_begin_sample(runtime);
	py_take_record(runtime, record);
	assert_false(py_record_sufficed(runtime));
}

static void memory_that_cannot_be_read_is_marked(void **state)
{
	const struct python_record *record = (const struct python_record *)bpf_here.output;

	(void)state;
	*word_of(record->states[0].top + (uint64_t)bpf_here.layout.frame_previous) = 0xdead0000;
	record = bpf_here_run(image.threads[0]);
	assert_non_null(record);
	assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_FAULT);
}

/* That a shim has no code either does not make it known. */
static void a_frame_without_code_is_marked(void **state)
{
	const struct python_record *record = (const struct python_record *)bpf_here.output;
	uint64_t shim = 0, top = record->states[0].top;

	(void)state;
	for (uint32_t i = 0; i < record->n_entries; i++)
		if (python_entries(record)[i].code == 0)
			shim = python_entries(record)[i].address;
	assert_true(shim != 0 && shim != top);
	*word_of(record->states[0].state + (uint64_t)bpf_here.layout.thread_top) = shim;
	*word_of(shim + (uint64_t)bpf_here.layout.frame_previous) = top;
	*word_of(top + (uint64_t)bpf_here.layout.frame_code) = 0;
	record = bpf_here_run(image.threads[0]);
	assert_non_null(record);
	assert_int_equal(record->flags & PYTHON_INCOMPLETE, PYTHON_FAULT);
}

/* The code object of the sample has been freed, and another one has its address. */
static void another_code_at_the_same_place_is_not_taken_for_it(void **state)
{
	struct python_record *record = (struct python_record *)bpf_here.output;
	struct python_entry *entries = (struct python_entry *)(record + 1);
	struct py_frames frames = { 0 };
	uint64_t end, outer;

	(void)state;
	py_begin_sample(runtime);
	py_take_record(runtime, record);
	assert_int_equal(py_walk(runtime, record->states[0].top, &frames, &end, &outer), 0);
	for (size_t i = 0; i < record->n_entries; i++)
		entries[i].version++;
	py_begin_sample(runtime);
	py_take_record(runtime, record);
	frames.n = 0;
	assert_int_equal(py_walk(runtime, record->states[0].top, &frames, &end, &outer), -ESTALE);
	assert_int_equal(frames.n, 0);
	py_frames_done(&frames);
}

int main(void)
{
#define ON_IMAGE(test) cmocka_unit_test_setup_teardown(test, open_image, close_image)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_say_what_memory_says),
		ON_IMAGE(a_thread_that_python_does_not_know_has_no_record),
#ifdef HAVE_DIRECT_MAP
		ON_IMAGE(no_frame_is_copied),
#else
		ON_IMAGE(callers_come_with_a_frame),
#endif
		ON_IMAGE(fields_that_lie_together_are_read_at_once),
		ON_IMAGE(code_is_read_in_each_run),
		ON_IMAGE(a_state_that_is_anothers_by_now_is_not_read),
		ON_IMAGE(a_changed_list_is_searched_anew),
		ON_IMAGE(only_what_cannot_wait_calls_the_reader),
		ON_IMAGE(new_code_calls_the_reader_once),
		ON_IMAGE(a_circle_ends_in_a_cut_record),
		ON_IMAGE(memory_that_cannot_be_read_is_marked),
		ON_IMAGE(a_frame_without_code_is_marked),
		ON_IMAGE(another_code_at_the_same_place_is_not_taken_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
