/* Recorded stacks of real programs, with libdwfl's frames beside them: fixtures/stacks.
 *
 * Made on another day and perhaps another machine: nothing of the programs need
 * be here. At least 999 of 1,000 frames must be libdwfl's, and a stack whose places
 * are known must be unwound without allocating anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <glob.h>

#include "base/address_space.h"
#include "base/util.h"
#include "stacks_file.h"
#include "unwind/native/native.h"

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

struct home {
	struct module_table *modules;
	struct address_space *space;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack stack;
	uint8_t **images;
	size_t n_images;
	struct sample *samples; /* their stacks owned */
	size_t n_samples;
};

struct tally {
	size_t n_samples, n_frames, n_equal, n_reached;
};

static void open_home(struct home *home)
{
	memset(home, 0, sizeof *home);
	assert_int_equal(module_table_new(&home->modules), 0);
	assert_int_equal(address_space_new(1, home->modules, &home->space), 0);
	assert_int_equal(native_unwinder_new(home->modules, &home->unwinder), 0);
	assert_int_equal(native_process_new(home->unwinder, home->space, &home->process), 0);
}

static void close_home(struct home *home)
{
	native_stack_done(&home->stack);
	native_process_free(home->process);
	native_unwinder_free(home->unwinder);
	address_space_free(home->space);
	module_table_free(home->modules);
	for (size_t i = 0; i < home->n_images; i++)
		free(home->images[i]);
	free(home->images);
	for (size_t i = 0; i < home->n_samples; i++)
		free((uint8_t *)home->samples[i].stack);
	free(home->samples);
}

/* A module's image: zeros but for its pieces. */
static uint8_t *read_image(struct stacks_file *file, size_t *ret_bytes)
{
	size_t n_bytes = stacks_get(file), n_pieces = stacks_get(file);
	uint8_t *image = calloc(1, n_bytes + 1);

	assert_non_null(image);
	for (size_t i = 0; i < n_pieces; i++) {
		uint64_t offset = stacks_get(file);
		CLEANUP(freep) void *piece = NULL;
		size_t n;

		piece = stacks_get_bytes(file, &n);
		assert_non_null(piece);
		assert_true(offset <= n_bytes && n <= n_bytes - offset);
		memcpy(image + offset, piece, n);
	}
	*ret_bytes = n_bytes;
	return image;
}

/* Modules are told apart by an inode of our own: their number, from 1. */
static void read_modules(struct stacks_file *file, struct home *home, char ***ret_paths, size_t **ret_bytes)
{
	size_t n = stacks_get(file);

	home->images = calloc(n, sizeof *home->images);
	*ret_paths = calloc(n, sizeof **ret_paths);
	*ret_bytes = calloc(n, sizeof **ret_bytes);
	assert_true(home->images && *ret_paths && *ret_bytes);
	for (size_t i = 0; i < n; i++) {
		size_t n_path;

		(*ret_paths)[i] = stacks_get_bytes(file, &n_path);
		assert_non_null((*ret_paths)[i]);
		home->images[i] = read_image(file, &(*ret_bytes)[i]);
		home->n_images++;
	}
}

static void read_mappings(struct stacks_file *file, struct home *home, char **paths, const size_t *n_bytes)
{
	size_t n = stacks_get(file);

	for (size_t i = 0; i < n; i++) {
		struct mapping_source source = { .executable = true, .device = 1 };
		struct module *module;
		char path[512];
		size_t number;

		source.start = stacks_get(file);
		source.end = stacks_get(file);
		source.file_offset = stacks_get(file);
		number = stacks_get(file);
		assert_true(number < home->n_images);
		source.inode = number + 1;
		snprintf(path, sizeof path, "/%s", paths[number]); /* what has no slash is no file */
		source.path = path;
		assert_int_equal(address_space_add(home->space, &source), 0);
		module = address_space_find(home->space, source.start)->module;
		if (!module->elf)
			assert_int_equal(elf_file_open_memory(home->images[number], n_bytes[number],
							      &module->elf), 0);
	}
}

static void check_sample(struct stacks_file *file, struct home *home, struct sample *sample,
			 struct tally *tally)
{
	const struct native_frame *frames;
	size_t n_frames, n_equal = 0;
	bool differs = false;

	*sample = (struct sample){ .pid = 1, .tid = 1, .has_user = true };
	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		sample->regs.value[i] = stacks_get(file);
	sample->stack = stacks_get_bytes(file, &sample->stack_bytes);
	assert_non_null(sample->stack);
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

/* All places are known by now. That a stack was expected changes nothing of it. */
static void check_second_pass(struct home *home)
{
	size_t before = n_allocations;

	for (size_t i = 0; i < home->n_samples; i++) {
		uint64_t sum;

		assert_int_equal(native_unwind(home->process, &home->samples[i], NULL, &home->stack), 0);
		sum = sum_of(&home->stack);
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
	struct home home;
	char **paths;
	size_t *n_bytes;

	assert_true(stacks_open(&file, path, "rb"));
	assert_int_equal(stacks_get(&file), STACKS_MAGIC);
	open_home(&home);
	read_modules(&file, &home, &paths, &n_bytes);
	read_mappings(&file, &home, paths, n_bytes);
	home.n_samples = stacks_get(&file);
	home.samples = calloc(home.n_samples, sizeof *home.samples);
	assert_non_null(home.samples);
	for (size_t i = 0; i < home.n_samples; i++)
		check_sample(&file, &home, &home.samples[i], &tally);
	assert_true(stacks_close(&file));
	check_second_pass(&home);
	print_message("%s: %zu samples, %zu frames, %zu as libdwfl has them, %zu to the thread's start\n",
		      strrchr(path, '/') + 1, tally.n_samples, tally.n_frames, tally.n_equal, tally.n_reached);
	assert_true(tally.n_samples > 0);
	assert_true(tally.n_equal * 1000 >= tally.n_frames * 999);
	for (size_t i = 0; i < home.n_images; i++)
		free(paths[i]);
	free(paths);
	free(n_bytes);
	close_home(&home);
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
