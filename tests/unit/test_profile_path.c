/* SPDX-License-Identifier: MIT */
/*
 * test_profile_path.c - what folding hides, and what it must not.
 *
 * Stacks are written as words, outermost first; every word is a frame of the
 * catalogue below, and the expected path is written the same way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/profile/profile.h"

#define PYTHON "/usr/bin/python3.11"
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define APP "/opt/app/renderer"
#define TORCH "/lib/libtorch_cpu.so"

#define NATIVE(name_, module_, role_)                                                                                  \
	{                                                                                                              \
		.kind = FRAME_NATIVE, .name = name_, .module = module_, .role = role_, .function = 1,                  \
		.inlined_into = -1                                                                                     \
	}
#define EVAL(module_)                                                                                                  \
	{                                                                                                              \
		.kind = FRAME_NATIVE, .name = "_PyEval_EvalFrameDefault", .module = module_, .is_eval = true,          \
		.role = ROLE_INTERNAL, .function = 1, .inlined_into = -1                                               \
	}
#define NAMELESS(name_, module_)                                                                                       \
	{                                                                                                              \
		.kind = FRAME_NATIVE, .name = name_, .module = module_, .inlined_into = -1                             \
	}
#define INLINED(name_, module_, into)                                                                                  \
	{                                                                                                              \
		.kind = FRAME_NATIVE, .name = name_, .module = module_, .function = 1, .inlined_into = into            \
	}

/* Named by the word in front; inlined functions refer by place in this list. */
enum { AT_EVAL = 0, AT_OUTER = 1, AT_INNER = 2 };
static const struct {
	const char *word;
	struct profile_frame frame;
} catalogue[] = {
	[AT_EVAL] = { "eval", EVAL(PYTHON) },
	[AT_OUTER] = { "gemm", NATIVE("at::gemm()", TORCH, ROLE_NONE) },
	[AT_INNER] = { "inner", INLINED("at::inner()", TORCH, AT_OUTER) },
	{ "innermost", INLINED("at::innermost()", TORCH, AT_INNER) },
	{ "eval_inlined",
	  { .kind = FRAME_NATIVE,
	    .name = "long_add",
	    .module = PYTHON,
	    .is_eval = true,
	    .function = 1,
	    .inlined_into = AT_EVAL } },
	{ "py", { .kind = FRAME_PYTHON, .name = "train", .function = 1, .inlined_into = -1 } },
	{ "py2", { .kind = FRAME_PYTHON, .name = "key", .function = 2, .inlined_into = -1 } },
	{ "internal", NATIVE("_PyObject_Call", PYTHON, ROLE_INTERNAL) },
	{ "unnamed", NAMELESS("python3.11+0x1234", PYTHON) },
	{ "unnamed2",
	  { .kind = FRAME_NATIVE, .name = "python3.11+0x12340", .module = PYTHON, .function = 9, .inlined_into = -1 } },
	{ "builtin", NATIVE("sorted", PYTHON, ROLE_BUILTIN) },
	{ "zlib", NATIVE("zlib.compress", "/lib/zlib.so", ROLE_BUILTIN) },
	{ "crc", NAMELESS("zlib.so+0x88", "/lib/zlib.so") },
	{ "plain", NATIVE("list_resize", PYTHON, ROLE_NONE) },
	{ "syscall", { .kind = FRAME_KERNEL, .name = "do_syscall_64", .function = 3, .inlined_into = -1 } },
	{ "select", NATIVE("select", LIBC, ROLE_NONE) },
	{ "io", { .kind = FRAME_WAIT, .name = "[io]", .inlined_into = -1 } },
	{ "blocked", { .kind = FRAME_WAIT, .name = "[blocked]", .inlined_into = -1 } },
	{ "jit", NAMELESS("[anonymous]", NULL) },
	{ "_start", NATIVE("_start", PYTHON, ROLE_NONE) },
	{ "libc_start", NATIVE("__libc_start_main_impl", LIBC, ROLE_NONE) },
	{ "libc_alias", NATIVE("__libc_start_main_alias_1", LIBC, ROLE_NONE) },
	{ "libc_call", NATIVE("__libc_start_call_main", LIBC, ROLE_NONE) },
	{ "libc+", NAMELESS("libc.so.6+0x2724a", LIBC) },
	{ "clone3", NATIVE("clone3", LIBC, ROLE_NONE) },
	{ "start_thread", NATIVE("start_thread", LIBC, ROLE_NONE) },
	{ "my_start_thread", NATIVE("start_thread", TORCH, ROLE_NONE) },
	{ "qsort", NATIVE("qsort", LIBC, ROLE_NONE) },
	{ "pymain", NATIVE("Py_BytesMain", PYTHON, ROLE_INTERNAL) },
	{ "worker", NATIVE("at::worker()", TORCH, ROLE_NONE) },
	{ "app", NATIVE("main", APP, ROLE_NONE) },
	{ "app_unnamed", NAMELESS("renderer+0x40", APP) },
	{ "app_glue", NATIVE("PyObject_Call", APP, ROLE_INTERNAL) },
	{ "app_eval", EVAL(APP) },
};
enum { N_CATALOGUE = sizeof catalogue / sizeof catalogue[0], MAX_DEPTH = 64 };

static int32_t by_word(const char *word)
{
	for (int32_t i = 0; i < N_CATALOGUE; i++)
		if (strcmp(catalogue[i].word, word) == 0)
			return i;
	fail_msg("no frame is called %s", word);
	return -1;
}

struct made {
	struct profile profile;
	struct profile_frame frames[N_CATALOGUE];
	struct profile_stack stacks[MAX_DEPTH];
};

static void make(struct made *made, const char *words)
{
	char copy[512], *rest = copy, *word;

	memset(made, 0, sizeof *made);
	for (size_t i = 0; i < N_CATALOGUE; i++)
		made->frames[i] = catalogue[i].frame;
	made->profile.frames = made->frames;
	made->profile.n_frames = N_CATALOGUE;
	made->profile.stacks = made->stacks;
	snprintf(copy, sizeof copy, "%s", words);
	while ((word = strsep(&rest, " ")) != NULL) {
		size_t n = made->profile.n_stacks++;

		assert_true(n < MAX_DEPTH);
		made->stacks[n] = (struct profile_stack){ .parent = (int32_t)n - 1, .frame = by_word(word) };
	}
}

static void path_words(const struct made *made, bool show_interpreter, char *to, size_t n_bytes)
{
	int32_t path[MAX_DEPTH];
	size_t n, used = 0;

	n = profile_path(&made->profile, (int32_t)made->profile.n_stacks - 1, show_interpreter, path, MAX_DEPTH);
	to[0] = '\0';
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(to + used, n_bytes - used, "%s%s", i ? " " : "", catalogue[path[i]].word);
}

static void test_folding(void **state)
{
	static const struct {
		const char *stack, *shown;
	} cases[] = {
		/* evaluations and internal go, all else stays */
		{ "eval py eval py2", "py py2" },
		{ "eval py internal eval py2 syscall", "py py2 syscall" },
		{ "eval py plain", "py plain" },
		{ "eval py jit syscall", "py jit syscall" },
		{ "eval_inlined py", "py" },
		/* on the way from an evaluation to a builtin */
		{ "eval py eval unnamed builtin", "py builtin" },
		{ "eval unnamed internal unnamed2 builtin", "builtin" },
		{ "eval internal unnamed builtin unnamed eval py2", "builtin unnamed py2" },
		{ "eval unnamed builtin unnamed builtin", "builtin unnamed builtin" },
		/* may be a builtin itself: stays */
		{ "eval unnamed eval py", "unnamed py" },
		{ "eval py unnamed", "py unnamed" },
		{ "eval unnamed plain builtin", "unnamed plain builtin" },
		{ "eval py unnamed builtin", "py unnamed builtin" },
		{ "eval unnamed zlib", "unnamed zlib" },
		{ "eval zlib crc crc", "zlib crc crc" },
		{ "eval crc builtin", "crc builtin" },
		{ "unnamed builtin", "unnamed builtin" },
		/* how it all began */
		{ "_start libc_start libc_call pymain eval py", "py" },
		{ "unnamed libc_start libc+ unnamed2 pymain unnamed eval py", "py" },
		{ "_start libc_alias libc_call pymain eval py", "py" },
		{ "clone3 start_thread unnamed unnamed2 eval py", "py" },
		{ "libc+ libc+ unnamed internal eval py", "py" },
		{ "clone3 start_thread worker internal eval py", "worker py" },
		{ "_start libc_start app app_glue app_eval py", "app py" },
		{ "_start libc_start app_unnamed app_unnamed app_eval py", "app_unnamed app_unnamed py" },
		/* Without an interpreter, nothing is folded. */
		{ "clone3 start_thread worker gemm", "clone3 start_thread worker gemm" },
		{ "_start libc_start app", "_start libc_start app" },
		{ "libc+ unnamed", "libc+ unnamed" },
		/* a stack that was cut begins anywhere */
		{ "unnamed eval py", "unnamed py" },
		{ "unnamed plain eval py", "unnamed plain py" },
		/* only libc's, and only at the outer end */
		{ "my_start_thread eval py", "my_start_thread py" },
		{ "qsort eval py", "qsort py" },
		{ "eval py start_thread", "py start_thread" },
		{ "worker start_thread eval py", "worker start_thread py" },
		/* something is always left */
		{ "eval", "eval" },
		{ "_start libc_start pymain eval", "eval" },
		{ "eval internal", "internal" },
		/* inlined functions are frames */
		{ "eval py innermost", "py gemm inner innermost" },
		{ "eval py gemm syscall", "py gemm syscall" },
		/* one wait is one stack, whether the kernel's functions were read or not */
		{ "eval py builtin select syscall syscall io", "py builtin select io" },
		{ "eval py builtin select io", "py builtin select io" },
		{ "eval py syscall io", "py io" },
		/* Except if they are the only explanation. */
		{ "eval py gemm syscall blocked", "py gemm syscall blocked" },
		{ "syscall syscall io", "syscall syscall io" },
	};
	struct made made;
	char shown[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		make(&made, cases[i].stack);
		path_words(&made, false, shown, sizeof shown);
		if (strcmp(shown, cases[i].shown) != 0)
			fail_msg("%s: shown as %s, not as %s", cases[i].stack, shown, cases[i].shown);
	}
}

static void test_all_is_shown_when_asked(void **state)
{
	struct made made;
	char shown[512];

	(void)state;
	make(&made, "_start libc_start pymain eval py unnamed builtin eval_inlined innermost");
	path_words(&made, true, shown, sizeof shown);
	assert_string_equal(shown,
			    "_start libc_start pymain eval py unnamed builtin eval eval_inlined gemm inner innermost");
}

static void test_too_little_room_keeps_the_outermost(void **state)
{
	struct made made;
	int32_t path[4] = { -7, -7, -7, -7 };

	(void)state;
	make(&made, "eval py internal py2 gemm syscall");
	assert_int_equal(profile_path(&made.profile, 5, false, path, 2), 2);
	assert_int_equal(path[0], by_word("py"));
	assert_int_equal(path[1], by_word("py2"));
	assert_int_equal(path[2], -7);
	assert_int_equal(profile_path(&made.profile, 5, false, path, 0), 0);
}

/* A view from one function on, or of Python alone, equals the same part of the whole. */
static void test_a_part(void **state)
{
	static const struct {
		const char *stack, *root; /* NULL: from its start */
		bool python_only;
		const char *shown;
	} cases[] = {
		{ "_start pymain eval py internal builtin eval py2 gemm", "py", false, "py builtin py2 gemm" },
		{ "_start pymain eval py internal builtin eval py2 gemm", "py2", false, "py2 gemm" },
		{ "_start pymain eval py eval py gemm", "py", false, "py py gemm" },
		{ "_start pymain eval py internal builtin", "internal", false, "builtin" },
		{ "_start pymain eval py internal builtin", "gemm", false, "py builtin" },
		{ "_start pymain eval py internal builtin eval py2 gemm", NULL, true, "py py2" },
		{ "_start pymain eval py internal builtin eval py2 gemm", "builtin", true, "py2" },
		{ "start_thread worker gemm", NULL, true, "" },
		{ "_start pymain eval py builtin select syscall io", NULL, true, "py io" },
		{ "start_thread worker gemm syscall io", NULL, true, "io" },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		bool is_root[N_CATALOGUE] = { false };
		struct made made;
		char shown[512];

		make(&made, cases[i].stack);
		if (cases[i].root) {
			is_root[by_word(cases[i].root)] = true;
			made.profile.is_root = is_root;
		}
		made.profile.python_only = cases[i].python_only;
		path_words(&made, false, shown, sizeof shown);
		assert_string_equal(shown, cases[i].shown);
	}
}

static void test_no_such_stack(void **state)
{
	struct made made;
	int32_t path[4];

	(void)state;
	make(&made, "eval py");
	assert_int_equal(profile_path(&made.profile, -1, false, path, 4), 0);
	assert_int_equal(profile_path(&made.profile, 2, false, path, 4), 0);
}

/* ---- Labels ---- */

static void add_total(struct profile *profile, int32_t stack, int32_t label, uint64_t weight)
{
	profile->totals[profile->n_totals] = (struct profile_total){
		.pid = 1, .tid = 1, .stack = stack, .label = label, .samples = 1, .weight = weight
	};
	profile->n_totals++;
}

/* The names of the path of the total of a weight, outermost first. */
static void labelled_path(const struct profile *profile, uint64_t weight, char *to, size_t n_bytes)
{
	int32_t path[8];
	size_t n, used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < profile->n_totals; i++) {
		if (profile->totals[i].weight != weight)
			continue;
		assert_int_equal(profile->totals[i].label, 0);
		n = profile_path(profile, profile->totals[i].stack, false, path, N_ELEMENTS(path));
		for (size_t k = 0; k < n; k++)
			used += (size_t)snprintf(to + used, n_bytes - used, "%s%s", k > 0 ? " " : "",
						 profile->frames[path[k]].name);
	}
}

/*
 * A stack of two labels becomes two; libc's start is hidden below a label, too. Samples whose stack shows no frame keep their
 * label. Time that was not sampled has none.
 */
static void check_labels(bool python_only)
{
	static const struct profile_frame frames[] = {
		NATIVE("_start", LIBC, ROLE_NONE),
		EVAL(PYTHON),
		{ .kind = FRAME_PYTHON, .name = "train", .function = 1, .inlined_into = -1 },
		{ .kind = FRAME_UNSAMPLED, .name = "[not sampled]", .inlined_into = -1 },
	};
	static const struct profile_stack stacks[] = { { -1, 0 }, { 0, 1 }, { 1, 2 }, { -1, 3 } };
	static const struct {
		int32_t stack, label;
		const char *path, *python_path;
	} cases[] = {
		{ 2, 2, "b train", "b train" },
		{ 2, 1, "a train", "a train" },
		{ 2, 0, "none train", "none train" },
		{ 2, 1, "a train", "a train" },
		{ 1, 1, "a _PyEval_EvalFrameDefault", "a [no Python]" },
		{ -1, 1, "a [no stack]", "a [no Python]" },
		{ -1, 0, "none [no stack]", "none [no Python]" },
		{ 3, 0, "[not sampled]", "[not sampled]" },
	};
	CLEANUP(profile_freep) struct profile *profile = NULL;
	char shown[128];

	assert_int_equal(profile_new(&profile), 0);
	profile->python_only = python_only;
	profile->frames = calloc(N_ELEMENTS(frames), sizeof *frames);
	profile->stacks = calloc(N_ELEMENTS(stacks), sizeof *stacks);
	profile->totals = calloc(N_ELEMENTS(cases), sizeof *profile->totals);
	profile->labels = calloc(2, sizeof *profile->labels);
	assert_true(profile->frames && profile->stacks && profile->totals && profile->labels);
	memcpy(profile->frames, frames, sizeof frames);
	memcpy(profile->stacks, stacks, sizeof stacks);
	profile->n_frames = N_ELEMENTS(frames);
	profile->n_stacks = N_ELEMENTS(stacks);
	profile->labels[profile->n_labels++] = "a";
	profile->labels[profile->n_labels++] = "b";
	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		add_total(profile, cases[i].stack, cases[i].label, i + 1);
	assert_int_equal(profile_put_labels(profile, "none"), 0);
	assert_int_equal(profile->n_labels, 0);
	assert_int_equal(profile->n_stacks, 3 * 4 + 1);
	assert_int_equal(profile->n_frames, N_ELEMENTS(frames) + 4);
	for (size_t i = 0; i < profile->n_stacks; i++)
		assert_true(profile->stacks[i].parent < (int32_t)i);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		labelled_path(profile, i + 1, shown, sizeof shown);
		assert_string_equal(shown, python_only ? cases[i].python_path : cases[i].path);
	}
	for (size_t i = 1; i < profile->n_totals; i++)
		assert_true(profile->totals[i - 1].stack <= profile->totals[i].stack);
}

static void test_labels(void **state)
{
	(void)state;
	check_labels(false);
	check_labels(true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_all_is_shown_when_asked),
		cmocka_unit_test(test_too_little_room_keeps_the_outermost),
		cmocka_unit_test(test_a_part),
		cmocka_unit_test(test_no_such_stack),
		cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
