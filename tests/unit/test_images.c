/* SPDX-License-Identifier: MIT */
/* test_images.c - interpreters that are not installed here, read from images of their memory.
 *
 * fixtures/images has an image and a truth for each, made by cut.py there: what the
 * interpreter itself knew of its threads and of the variables in their frames. All must be seen, exactly.
 */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fuzz/exercise.h"
#include "tests/unit/memory_image.h"

enum {
	MAX_BYTES = 1 << 20,
	MAX_ANCHORS = 256,
	MAX_LINE = 1024,
	N_IMAGES = 15,
	N_STEPS = 41,
	N_KNOWN = 3 /* variables of pick, counting and callback */
};

/* Read all Python frames of a thread; return their number. */
static size_t read_thread(struct py_runtime *runtime, pid_t tid, struct py_frames *frames)
{
	struct py_anchor anchors[MAX_ANCHORS];
	uint64_t top = 0, end;
	int n;

	py_begin_sample(runtime);
	n = py_live_anchors(runtime, tid, false, anchors, MAX_ANCHORS);
	assert_true(n > 0);
	frames->n = 0;
	for (int i = 0; i < n; i++)
		assert_int_equal(py_walk(runtime, anchors[i].top, frames, &end, &top), 0);
	if (top != 0) /* the base frame of a thread */
		assert_int_equal(py_walk(runtime, top, frames, &end, &top), 0);
	assert_int_equal(top, 0);
	return frames->n;
}

static void describe(const struct py_frame *frame, char to[MAX_LINE])
{
	snprintf(to, MAX_LINE, "%d %s %s", py_code_line(frame->code, frame->instruction), frame->code->qualname,
		 frame->code->file);
}

/* Whether a frame has a variable of that name, which then has the value, and the type unless that is NULL. */
static bool has_typed_value(struct py_runtime *runtime, const struct py_frame *frame, const char *name,
			    const char *type, const char *value)
{
	struct py_locals locals = { 0 };
	bool found = false;

	assert_int_equal(py_locals_read(runtime, frame->address, UINT64_MAX, &locals), 0);
	assert_false(locals.is_cut);
	for (size_t i = 0; i < locals.n; i++)
		if (strcmp(locals.locals[i].name, name) == 0) {
			assert_string_equal(locals.locals[i].value, value);
			if (type)
				assert_string_equal(locals.locals[i].type, type);
			found = true;
		}
	py_locals_done(&locals);
	return found;
}

static bool has_value(struct py_runtime *runtime, const struct py_frame *frame, const char *name, const char *value)
{
	return has_typed_value(runtime, frame, name, NULL, value);
}

static bool is_function(const struct py_frame *frame, const char *name)
{
	const char *dot = strrchr(frame->code->qualname, '.');

	return strcmp(dot ? dot + 1 : frame->code->qualname, name) == 0;
}

/* Check the arguments of the parked threads' functions; return the number of variables. */
static size_t check_locals(struct py_runtime *runtime, const struct py_frames *frames, const char *thread)
{
	static const struct {
		const char *function, *variable, *value;
	} known[] = { { "pick", "i", "2" },
		      { "counting", "n", "5" },
		      { "callback", "x", "1" },
		      { "step", "self", "<Trainer object>" } };
	char tag[32], depth[32];
	unsigned n_steps = 0;
	size_t n = 0;

	snprintf(tag, sizeof tag, "'%s'", strcmp(thread, "wide") == 0 ? "latin1" : thread);
	for (size_t i = 0; i < frames->n; i++) {
		const struct py_frame *frame = &frames->frames[i];

		for (size_t k = 0; k < N_ELEMENTS(known); k++)
			if (is_function(frame, known[k].function))
				n += has_value(runtime, frame, known[k].variable, known[k].value);
		if (is_function(frame, "wait_here"))
			n += has_value(runtime, frame, "tag", tag);
		snprintf(depth, sizeof depth, "%u", n_steps);
		if (is_function(frame, "step"))
			n_steps += has_value(runtime, frame, "depth", depth);
	}
	return n + n_steps;
}

/* One line of a truth, "FUNCTION NAME<tab>TYPE<tab>VALUE": a variable of one of these frames. */
static void check_local(struct py_runtime *runtime, const struct py_frames *frames, char *line)
{
	const char *function = strsep(&line, " "), *name = strsep(&line, "\t"), *type = strsep(&line, "\t");
	unsigned n = 0;

	assert_non_null(line);
	for (size_t i = 0; i < frames->n; i++)
		if (is_function(&frames->frames[i], function))
			n += has_typed_value(runtime, &frames->frames[i], name, type, line);
	if (n == 0)
		fail_msg("%s has no variable %s", function, name);
}

/* The thread "holder" has the GIL, and "collector" is in a garbage collection, if these threads exist. */
static void check_state(struct py_runtime *runtime, pid_t tid, const char *name, const char *truth)
{
	struct py_state state;
	struct py_gil_state gil_state;
	bool has_gil = py_has_gil(runtime) && strcmp(name, "holder") == 0;

	assert_int_equal(py_state_of(runtime, tid, &state), 0);
	assert_int_equal(state.interpreter, 0);
	if (!strstr(truth, " holder\n"))
		return;
	assert_int_equal(state.holds_gil, has_gil ? PY_YES : PY_NO);
	if (state.collects != PY_UNKNOWN) /* up to 3.6 by a symbol, which images do not have */
		assert_int_equal(state.collects, PY_YES);
	assert_int_equal(py_gil_state_read(runtime, tid, &gil_state), 0);
	assert_int_equal(gil_state.gil, state.holds_gil);
	if (!has_gil && py_has_gil(runtime) && state.collects != PY_UNKNOWN)
		assert_int_equal(gil_state.collects, PY_NO); /* it holds no GIL to do that with */
}

/* Main thread or not, it is known by its name. */
static void check_name(struct py_runtime *runtime, pid_t tid, const char *name, size_t n_threads)
{
	struct py_thread_names names = { 0 };
	struct py_state state;

	assert_int_equal(py_state_of(runtime, tid, &state), 0);
	assert_int_equal(py_thread_names_read(runtime, &names), 0);
	assert_int_equal(names.n, n_threads);
	assert_string_equal(py_thread_name(&names, state.ident), strcmp(name, "main") == 0 ? "MainThread" : name);
	assert_null(py_thread_name(&names, 1));
	py_thread_names_done(&names);
}

/* All threads are in threading._dangling, a set of weak references. */
static void check_set(struct py_runtime *runtime, size_t n_threads)
{
	struct item_walk walk;
	struct object_type type;
	uint64_t item, thread;
	size_t n = 0;

	if (!reader_has(runtime, STRING_STATE)) { /* 2.7 has no such set */
		assert_int_equal(exercise_find_set(runtime, &walk), -ENOENT);
		return;
	}
	assert_int_equal(exercise_find_set(runtime, &walk), 0);
	for (; object_item_next(runtime, &walk, &item) > 0; n++) {
		assert_int_equal(object_weakref_target(runtime, item, &thread), 0);
		assert_int_equal(object_type_of(runtime, thread, &type), 0);
		assert_non_null(strstr(type.name, "Thread"));
	}
	assert_int_equal(n, n_threads);
}

static size_t count_lines(const char *text, const char *beginning)
{
	size_t n = 0;

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		n += strncmp(at, beginning, strlen(beginning)) == 0;
	}
	return n;
}

/* Compares the threads of a truth, line by line, in the order that it has; how many frames. */
static size_t compare(struct py_runtime *runtime, char *truth)
{
	CLEANUP(freep) char *whole = strdup(truth);
	struct py_frames frames = { 0 };
	size_t n = 0, at = 0, n_threads, n_frames = 0, n_locals = 0, n_parked = 0;
	char *line;

	assert_non_null(whole);
	n_threads = count_lines(whole, "thread ");
	while ((line = strsep(&truth, "\n")) != NULL && *line) {
		char seen[MAX_LINE];

		if (strncmp(line, "thread ", strlen("thread ")) == 0) {
			const char *name = strrchr(line, ' ') + 1;
			pid_t tid = atoi(line + strlen("thread "));

			assert_int_equal(at, n); /* all of the thread before */
			n = read_thread(runtime, tid, &frames);
			n_locals += check_locals(runtime, &frames, name);
			check_name(runtime, tid, name, n_threads);
			check_state(runtime, tid, name, whole);
			n_frames += n;
			at = 0;
			continue;
		}
		if (strncmp(line, "local ", strlen("local ")) == 0) {
			check_local(runtime, &frames, line + strlen("local "));
			continue;
		}
		assert_true(at < n);
		n_parked += is_function(&frames.frames[at], "wait_here");
		describe(&frames.frames[at++], seen);
		assert_string_equal(seen, line);
	}
	assert_int_equal(at, n);
	assert_int_equal(n_locals, 2 * N_STEPS + N_KNOWN + n_parked);
	check_set(runtime, n_threads);
	py_frames_done(&frames);
	return n_frames;
}

static char *read_text(const char *path, size_t *ret_bytes)
{
	char *text;

	assert_int_equal(read_file(path, MAX_BYTES, &text, ret_bytes), 0);
	return text;
}

struct fixture {
	struct memory_image image;
	char *truth;
};

static void load_fixture(const char *path, struct fixture *fixture)
{
	CLEANUP(freep) char *bytes = NULL;
	char truth_path[512];
	size_t n_bytes;

	bytes = read_text(path, &n_bytes);
	image_parse(&fixture->image, (const uint8_t *)bytes, n_bytes);
	snprintf(truth_path, sizeof truth_path, "%.*s.truth", (int)(strlen(path) - strlen(".image")), path);
	fixture->truth = read_text(truth_path, NULL);
}

static void check_fixture(struct fixture *fixture)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	CLEANUP(freep) char *truth = fixture->truth;
	char version[32], *rest = truth;

	assert_int_equal(image_open(&fixture->image, &fixture->image.base, version, &runtime), 0);
	assert_memory_equal(strsep(&rest, "\n"), "version ", strlen("version "));
	assert_memory_equal(version, truth + strlen("version "), strlen(truth + strlen("version ")));
	print_message("Python %s: %zu frames agree\n", version, compare(runtime, rest));
}

static void path_of(const char *name, char to[512])
{
	const char *root = getenv("PROBING_SOURCE_ROOT");

	assert_non_null(root);
	snprintf(to, 512, "%s/fixtures/images/%s", root, name);
}

/* Check all images, or those that match PROBING_IMAGES: tests/layout_mutants.py. */
static void check_each(void (*check)(struct fixture *))
{
	const char *wanted = getenv("PROBING_IMAGES");
	static struct fixture fixture;
	char pattern[512];
	glob_t paths;

	path_of(wanted ? wanted : "*.image", pattern);
	assert_int_equal(glob(pattern, 0, NULL, &paths), 0);
	if (!wanted)
		assert_int_equal(paths.gl_pathc, N_IMAGES);
	for (size_t i = 0; i < paths.gl_pathc; i++) {
		load_fixture(paths.gl_pathv[i], &fixture);
		check(&fixture);
	}
	globfree(&paths);
}

static void images_show_what_the_interpreter_knew(void **state)
{
	(void)state;
	check_each(check_fixture);
}

/* Where glibc's structure of a thread begins with its id: what follows is an empty list. */
static uint8_t *find_thread(struct memory_image *image, pid_t tid)
{
	for (size_t i = 0; i < image->n_pages; i++) {
		struct image_page *page = &image->pages[i];

		for (size_t at = 0; at + 24 <= sizeof page->bytes; at += 8) {
			const uint64_t list = page->address + at + 16, empty[] = { list, list };

			if (memcmp(page->bytes + at, &tid, sizeof tid) == 0 &&
			    memcmp(page->bytes + at + 8, empty, sizeof empty) == 0)
				return page->bytes + at;
		}
	}
	return NULL;
}

/* Simulate threads as in glibc up to 2.24 when all of them hold robust mutexes. */
static void a_thread_is_known_without_its_list_of_mutexes(void **state)
{
	static struct fixture fixture;
	char path[512];

	(void)state;
	path_of("3.4.6.image", path);
	load_fixture(path, &fixture);
	for (size_t i = 0; i < IMAGE_N_THREADS && fixture.image.threads[i] != 0; i++) {
		uint8_t *thread = find_thread(&fixture.image, fixture.image.threads[i]);

		assert_non_null(thread);
		memcpy(thread + 4, &fixture.image.pid, sizeof fixture.image.pid);
		memset(thread + 16, 0, 8);
	}
	check_fixture(&fixture);
}

/* ---- Freed code objects ---- */

static uint8_t *type_of(struct memory_image *image, const struct py_runtime *runtime, uint64_t object)
{
	struct image_page *page = image_page(image, object + reader_field(runtime, OBJECT_TYPE));

	assert_non_null(page);
	return page->bytes + (object + reader_field(runtime, OBJECT_TYPE)) % IMAGE_PAGE_BYTES;
}

/* The first thread's innermost evaluation, and the code object that its innermost frame runs. */
static uint64_t innermost(struct py_runtime *runtime, pid_t tid, uint64_t *ret_top)
{
	struct py_anchor anchors[MAX_ANCHORS];
	struct frame_head head;

	py_begin_sample(runtime);
	assert_true(py_live_anchors(runtime, tid, false, anchors, MAX_ANCHORS) > 0);
	*ret_top = anchors[0].top;
	assert_int_equal(reader_frame(runtime, anchors[0].top, &head), 0);
	return head.code;
}

static int walk_from(struct py_runtime *runtime, uint64_t top)
{
	struct py_frames frames = { 0 };
	uint64_t end;
	int r;

	py_begin_sample(runtime);
	r = py_walk(runtime, top, &frames, &end, &top);
	py_frames_done(&frames);
	return r;
}

/* Freed, and its memory given to something else: all of it still looks like code but its type. */
static void check_freed(struct fixture *fixture)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	CLEANUP(py_runtime_freep) struct py_runtime *other = NULL;
	struct memory_image *image = &fixture->image;
	uint64_t code, top, type, wrong = 0x1000;
	char version[32];
	uint8_t *place;

	free(fixture->truth);
	assert_int_equal(image_open(image, &image->base, version, &runtime), 0);
	code = innermost(runtime, image->threads[0], &top);
	place = type_of(image, runtime, code);
	memcpy(&type, place, sizeof type);
	assert_int_equal(walk_from(runtime, top), 0);

	/* One that was known, and is known again when its memory is code again. */
	memcpy(place, &wrong, sizeof wrong);
	assert_int_equal(walk_from(runtime, top), -EBADMSG);
	memcpy(place, &type, sizeof type);
	assert_int_equal(walk_from(runtime, top), 0);

	/* The first code object of all, if the symbol is known. */
	image->symbols.code_type = type;
	assert_int_equal(image_open(image, &image->base, version, &other), 0);
	memcpy(place, &wrong, sizeof wrong);
	assert_int_equal(walk_from(other, top), -EBADMSG);
	memcpy(place, &type, sizeof type);
	assert_int_equal(walk_from(other, top), 0);
}

static void memory_that_was_code_is_none(void **state)
{
	(void)state;
	check_each(check_freed);
}

static void put_word(struct memory_image *image, uint64_t address, uint64_t value)
{
	struct image_page *page = image_add_page(image, address);

	assert_non_null(page);
	memcpy(page->bytes + address % IMAGE_PAGE_BYTES, &value, sizeof value);
}

/* The program has a copy of PyCode_Type: the symbol of the library says another address. */
static void the_type_of_code_may_be_a_copy(void **state)
{
	enum { META = 0x10000, NAME = 0x11000 };
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	static struct fixture fixture;
	struct memory_image *image = &fixture.image;
	uint64_t code, top, type;
	char path[512], version[32];

	(void)state;
	path_of("3.4.6.image", path);
	load_fixture(path, &fixture);
	free(fixture.truth);
	image->symbols.code_type = 0x12000;
	assert_int_equal(image_open(image, &image->base, version, &runtime), 0);
	code = innermost(runtime, image->threads[0], &top);
	memcpy(&type, type_of(image, runtime, code), sizeof type);
	put_word(image, type + reader_field(runtime, OBJECT_TYPE), META);
	put_word(image, META + reader_field(runtime, TYPE_FLAGS), TYPE_TYPE);
	put_word(image, type + reader_field(runtime, TYPE_NAME), NAME);

	put_word(image, NAME, 0x726568746fULL); /* "other" */
	assert_int_equal(walk_from(runtime, top), -EBADMSG);
	put_word(image, NAME, 0x65646f63ULL); /* "code" */
	assert_int_equal(walk_from(runtime, top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_show_what_the_interpreter_knew),
		cmocka_unit_test(a_thread_is_known_without_its_list_of_mutexes),
		cmocka_unit_test(memory_that_was_code_is_none),
		cmocka_unit_test(the_type_of_code_may_be_a_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
