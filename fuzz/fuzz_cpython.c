/* SPDX-License-Identifier: MIT */
/* fuzz_cpython.c - the interpreter's reader on memory that lies.
 *
 * The corpus are images of real interpreters, parked in known stacks, and changes of
 * them; fuzz/make_cpython_corpus.py makes it. The format: tests/unit/memory_image.h.
 */
#include "fuzz/exercise.h"

enum { MAX_FOUND = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Results must be valid whatever the memory contains. */
static void check_codes(struct py_runtime *runtime)
{
	const struct py_code *code;

	for (size_t i = 0; (code = py_code_nth(runtime, i)) != NULL; i++) {
		if (!code->qualname || !code->file || code->bytecode_bytes == 0)
			abort();
		if (py_code_line(code, PY_INSTRUCTION_NONE) != code->first_line)
			abort();
	}
}

/* Search code objects at addresses just outside known ones. */
static void find_codes(struct py_runtime *runtime)
{
	size_t n = MIN(py_code_count(runtime), (size_t)MAX_FOUND);

	py_begin_sample(runtime);
	for (size_t i = 0; i < n; i++) {
		const struct py_code *code = py_code_nth(runtime, i);
		uint64_t addresses[] = { code->bytecode - 1, code->bytecode + code->bytecode_bytes };

		for (size_t k = 0; k < N_ELEMENTS(addresses); k++) {
			const struct py_code *found = py_code_find(runtime, addresses[k]);

			if (found && py_code_at(runtime, addresses[k]) != found)
				abort();
		}
	}
}

/* Search among words of the image that point into it. */
static void find_lock(struct py_runtime *runtime, const uint8_t *data, size_t n_bytes)
{
	uint64_t words[256] = { 0 };
	struct py_lock lock = { 0 };

	memcpy(words, data + (n_bytes / 2 & ~(size_t)7), MIN(n_bytes - (n_bytes / 2 & ~(size_t)7), sizeof words));
	if (py_lock_find(runtime, words, N_ELEMENTS(words), words[0], &lock) == 0 && lock.object == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct memory_image image;
	struct py_runtime *runtime;
	char version[32];

	image_parse(&image, data, n_bytes);
	if (image_open(&image, &image.base, version, &runtime) < 0)
		return 0;
	/* The first run learns code objects; the next two must give equal results. */
	exercise(&image, &image.base, runtime);
	if (exercise(&image, &image.base, runtime) != exercise(&image, &image.base, runtime))
		abort();
	check_codes(runtime);
	find_codes(runtime);
	check_codes(runtime);
	find_lock(runtime, data, n_bytes);
	py_runtime_free(runtime);
	return 0;
}
