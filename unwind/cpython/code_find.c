/* SPDX-License-Identifier: MIT */
/* code_find.c - the code object around a pointer into bytecode.
 *
 * If a function has ended before memory is read, only the captured
 * pointer remains. Code objects contain their bytecode, so the head is
 * some hundred or thousand bytes before it, and has the type of code objects.
 */
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { SEARCH_PAGES = 16 };

static bool is_in(const struct py_code *code, uint64_t address)
{
	return address - code->bytecode < code->bytecode_bytes;
}

/* Whether a search at this address failed before, with the same set of known codes. */
static bool has_failed(struct code_cache *codes, uint64_t address)
{
	if (codes->not_code_as_of != codes->n) {
		codes->not_code_as_of = codes->n;
		memset(codes->not_code, 0, sizeof codes->not_code);
	}
	return codes->not_code[mix64(address) % N_ELEMENTS(codes->not_code)] == address;
}

/* The last word before @end in a page that is the code type's address; 0: none. */
static uint64_t last_type_word(struct py_runtime *runtime, uint64_t page, uint64_t end)
{
	uint64_t words[CACHE_PAGE_BYTES / sizeof(uint64_t)];

	if (page_cache_read(&runtime->page_cache, page, words, sizeof words) < 0)
		return 0;
	for (size_t i = (end - page) / sizeof *words; i-- > 0;)
		if (words[i] == runtime->codes.type)
			return page + i * sizeof *words;
	return 0;
}

/* The nearest object before an address with the code type; 0: none. */
static uint64_t object_before(struct py_runtime *runtime, uint64_t address)
{
	uint64_t page = address & ~(uint64_t)(CACHE_PAGE_BYTES - 1), end = address;

	for (unsigned i = 0; i < SEARCH_PAGES && page != 0; i++) {
		uint64_t word = last_type_word(runtime, page, end);

		if (word != 0)
			return word - reader_field(runtime, OBJECT_TYPE);
		end = page;
		page -= CACHE_PAGE_BYTES;
	}
	return 0;
}

struct py_code *py_code_find(struct py_runtime *runtime, uint64_t address)
{
	struct code_cache *codes = &runtime->codes;
	struct py_code *code = py_code_at(runtime, address);
	uint64_t object;

	if (code || codes->type == 0 || !reader_has(runtime, CODE_BYTECODE) || has_failed(codes, address))
		return code;
	object = object_before(runtime, address);
	if (object != 0 && reader_codes(runtime, &object, 1, &code) == 0 && is_in(code, address)) {
		/* A younger code, freed by now, may have replaced a known code's range. */
		(void)reader_add_bytecode(runtime, code, code->bytecode);
		return code;
	}
	codes->not_code[mix64(address) % N_ELEMENTS(codes->not_code)] = address;
	return NULL;
}
