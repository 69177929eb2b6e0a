/* SPDX-License-Identifier: MIT */
/* cython_names.c - see cython_names.h.
 *
 * A function that Cython compiled adds itself to the traceback when it fails, by a call of a helper that each module has:
 *
 *	__Pyx_AddTraceback("pandas._libs.lib.infer_dtype", c_line, py_line, "pandas/_libs/lib.pyx");
 *
 *	lea  name(%rip), %rdi
 *	lea  file(%rip), %rcx		or mov, from a table of files
 *	mov  $py_line, %edx
 *	call helper
 *
 * strip(1) keeps the strings. Instructions are not decoded: three bytes are an LEA to RDI if a dotted name is at its
 * address, and the next call within CALL_WITHIN bytes is its call. The helper is the function that most of these calls
 * reach, if half of them have a file. A function into which others are inlined has their names as well: it has the name of two thirds of its calls, or none.
 *
 * Source: Cython 0.29 and 3.0, Utility/Exceptions.c, AddTraceback; System V ABI, AMD64 supplement, "Parameter passing".
 */
#include "symbolize/cython_names.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/parts.h"

enum {
	MAX_CALLS = 1 << 18,
	MIN_CALLS = 2, /* of the helper */
	MAX_NAME_BYTES = 512,
	INSTRUCTION_BYTES = 7,
	CALL = 0xe8,
	CALL_BYTES = 5,
	CALL_WITHIN = 64,
	FILE_BEFORE = 48, /* search the file's instruction this many bytes before the name's */
	BYTES_A_STEP = 64,
	LOOK_BYTES = 1 << 16,
};

/* A call whose first argument is a dotted name. */
struct traceback_call {
	uint64_t function, target;
	const char *name, *file;
};

struct search {
	const struct image *image;
	struct traceback_call *calls;
	size_t n_calls, allocated;
	uint64_t start, end, owner; /* the last function found, and its owner if it is a part */
};

void cython_names_free(struct cython_names *names)
{
	if (!names)
		return;
	free(names->functions);
	free(names);
}

void cython_names_freep(struct cython_names **names)
{
	cython_names_free(*names);
}

/* ---- Detect Cython ---- */

/* The helper reads this setting (Cython 0.28 and newer). */
bool cython_is_maker(struct elf_file *elf)
{
	static const char setting[] = "cline_in_traceback";
	uint64_t address, n_bytes;
	const void *bytes;

	return elf_file_section(elf, ".rodata", &address, &n_bytes) >= 0 &&
	       elf_file_data(elf, address, n_bytes, &bytes) >= 0 && effort_go_on(n_bytes / BYTES_A_STEP / 8) &&
	       memmem(bytes, n_bytes, setting, sizeof setting);
}

/* ---- Calls ---- */

/* Whether the name is like "module.function" or "module.Class.method.<lambda>". */
static bool is_dotted(const char *name)
{
	bool has_dot = false;

	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (const char *at = name + 1; *at; at++) {
		has_dot |= *at == '.';
		if (!isalnum((unsigned char)*at) && !strchr("._<>", *at) && (unsigned char)*at < 0x80)
			return false;
		if (*at == '.' && (at[1] == '.' || at[1] == '\0'))
			return false;
	}
	return has_dot;
}

static bool is_source(const char *name)
{
	static const char *const endings[] = { ".pyx", ".pxd", ".pxi", ".py", "stringsource", "<stringsource>" };
	const size_t n = strlen(name);

	for (size_t i = 0; i < N_ELEMENTS(endings); i++)
		if (n >= strlen(endings[i]) && strcmp(name + n - strlen(endings[i]), endings[i]) == 0)
			return true;
	return false;
}

static uint64_t relative(const struct image_segment *segment, uint64_t at, unsigned n_bytes)
{
	int32_t distance;

	memcpy(&distance, segment->bytes + at + n_bytes - sizeof distance, sizeof distance);
	return segment->start + at + n_bytes + (uint64_t)(int64_t)distance;
}

/* LEA of a string to RCX, or MOV of a pointer to a string. */
static const char *file_at(const struct image *image, const struct image_segment *segment, uint64_t at)
{
	const uint8_t *code = segment->bytes + at;
	uint64_t address;
	const char *name;

	if (code[0] != 0x48 || (code[1] != 0x8d && code[1] != 0x8b) || code[2] != 0x0d)
		return NULL;
	address = relative(segment, at, INSTRUCTION_BYTES);
	if (code[1] == 0x8b && !image_word(image, address, &address))
		return NULL;
	name = image_string(image, address, MAX_NAME_BYTES);
	return name && is_source(name) ? name : NULL;
}

static const char *find_file(const struct image *image, const struct image_segment *segment, uint64_t at, uint64_t call)
{
	for (uint64_t i = at > FILE_BEFORE ? at - FILE_BEFORE : 0; i + INSTRUCTION_BYTES <= call; i++) {
		const char *file = file_at(image, segment, i);

		if (file)
			return file;
	}
	return NULL;
}

/*
 * The function around an address. A part that the compiler moved away belongs to the function that jumps to it. 0:
 * unknown.
 */
static uint64_t function_around(struct search *search, uint64_t address)
{
	struct elf_file *elf = search->image->elf;

	if (address >= search->start && address < search->end)
		return search->owner;
	if (!elf || elf_file_function(elf, address, &search->start, &search->end) < 0) {
		search->start = search->end = 0;
		return 0;
	}
	if (!part_find_function(elf, search->start, search->end, &search->owner))
		search->owner = search->start;
	return search->owner;
}

static int add_call(struct search *search, const struct image_segment *segment, uint64_t at, const char *name)
{
	const uint64_t n_bytes = segment->end - segment->start;
	uint64_t call = at + INSTRUCTION_BYTES, target, function;
	int r;

	while (call + CALL_BYTES <= n_bytes && call < at + CALL_WITHIN && segment->bytes[call] != CALL)
		call++;
	if (call + CALL_BYTES > n_bytes || call >= at + CALL_WITHIN || search->n_calls == MAX_CALLS)
		return 0;
	target = relative(segment, call, CALL_BYTES);
	function = function_around(search, segment->start + at);
	if (function == 0 || !image_is_function(search->image, target))
		return 0;
	r = effort_grow(&search->calls, search->n_calls, &search->allocated, sizeof *search->calls);
	if (r >= 0)
		search->calls[search->n_calls++] = (struct traceback_call){
			function, target, name, find_file(search->image, segment, at, call)
		};
	return r;
}

static int search_segment(struct search *search, const struct image_segment *segment)
{
	static const uint8_t lea[] = { 0x48, 0x8d, 0x3d };
	const uint64_t n_bytes = segment->end - segment->start;
	uint64_t looked = 0;

	for (uint64_t at = 0; at + INSTRUCTION_BYTES <= n_bytes; at++) {
		const uint8_t *found = memmem(segment->bytes + at, MIN(n_bytes - at, (uint64_t)LOOK_BYTES), lea,
					      sizeof lea);
		const char *name;
		int r = 0;

		if (found)
			at = (uint64_t)(found - segment->bytes);
		else
			at += MIN(n_bytes - at, (uint64_t)LOOK_BYTES) - sizeof lea;
		if (!effort_go_on((at - looked) / BYTES_A_STEP + 1))
			return -ETIME;
		looked = at;
		if (!found || at + INSTRUCTION_BYTES > n_bytes)
			continue;
		name = image_string(search->image, relative(segment, at, INSTRUCTION_BYTES), MAX_NAME_BYTES);
		if (name && is_dotted(name))
			r = add_call(search, segment, at, name);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- Functions ---- */

static int by_target(const void *a, const void *b)
{
	const struct traceback_call *left = a, *right = b;

	return (left->target > right->target) - (left->target < right->target);
}

static int by_function_and_name(const void *a, const void *b)
{
	const struct traceback_call *left = a, *right = b;

	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	return strcmp(left->name, right->name);
}

static bool is_helper(const struct traceback_call *calls, size_t n_calls)
{
	size_t n_files = 0;

	for (size_t i = 0; i < n_calls; i++)
		n_files += calls[i].file != NULL;
	return n_calls >= MIN_CALLS && n_files * 2 >= n_calls;
}

/* Keep only the calls to the most frequent target, the helper. */
static void keep_helper(struct search *search)
{
	size_t first = 0, n_best = 0, best = 0;

	if (search->n_calls > 0)
		qsort(search->calls, search->n_calls, sizeof *search->calls, by_target);
	for (size_t i = 0; i < search->n_calls; i++) {
		if (search->calls[i].target != search->calls[first].target)
			first = i;
		if (i + 1 - first > n_best) {
			n_best = i + 1 - first;
			best = first;
		}
	}
	if (!is_helper(search->calls + best, n_best))
		n_best = 0;
	for (size_t i = 0; i < n_best; i++)
		search->calls[i] = search->calls[best + i];
	search->n_calls = n_best;
}

/* @calls: calls in one function, sorted by name. */
static int add_function(struct cython_names *names, const struct traceback_call *calls, size_t n_calls)
{
	size_t first = 0, n_best = 0, best = 0;
	int r;

	for (size_t i = 0; i < n_calls; i++) {
		if (strcmp(calls[i].name, calls[first].name) != 0)
			first = i;
		if (i + 1 - first > n_best) {
			n_best = i + 1 - first;
			best = first;
		}
	}
	if (n_best * 3 < n_calls * 2)
		return 0;
	r = effort_grow(&names->functions, names->n_functions, &names->allocated, sizeof *names->functions);
	if (r < 0)
		return r;
	names->functions[names->n_functions++] = (struct cython_function){ calls[best].function, calls[best].name,
									   calls[best].file };
	return 0;
}

static int add_functions(struct search *search, struct cython_names *names)
{
	size_t first = 0;
	int r = 0;

	keep_helper(search);
	if (search->n_calls > 0)
		qsort(search->calls, search->n_calls, sizeof *search->calls, by_function_and_name);
	for (size_t i = 1; i <= search->n_calls && r >= 0; i++) {
		if (i < search->n_calls && search->calls[i].function == search->calls[first].function)
			continue;
		r = add_function(names, search->calls + first, i - first);
		first = i;
	}
	return r;
}

int cython_names_new(const struct image *image, struct cython_names **ret)
{
	CLEANUP(cython_names_freep) struct cython_names *names = calloc(1, sizeof *names);
	struct search search = { .image = image };
	int r = 0;

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < image->n_segments && r >= 0 && image->machine == EM_X86_64; i++)
		if (image->segments[i].executable)
			r = search_segment(&search, &image->segments[i]);
	if (r >= 0)
		r = add_functions(&search, names);
	free(search.calls);
	if (r < 0)
		return r;
	*ret = TAKE(names);
	return 0;
}

const struct cython_function *cython_names_find(const struct cython_names *names, uint64_t start)
{
	size_t low = 0, high = names->n_functions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->functions[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < names->n_functions && names->functions[low].start == start ? &names->functions[low] : NULL;
}
