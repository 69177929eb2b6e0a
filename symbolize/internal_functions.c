/* SPDX-License-Identifier: MIT */
/* internal_functions.c - which nameless functions of a stripped interpreter are internal.
 *
 * internal_names.c has the names of internal functions, but in a stripped interpreter the static half
 * has none: run_mod, cfunction_vectorcall_FASTCALL, pymain_run_python.
 * Three observations find them. The functions that implement calling conventions
 * are referred to where callables are made (PyCMethod_New, PyDescr_NewMethod).
 * A caller of the evaluation loop only enters it. And a function with only
 * internal referrers is internal.
 *
 * References are found without decoding instructions: four bytes of code that
 * are the address of a function, or the distance to one, count as a
 * reference. That holds for x86-64 only: on other machines no nameless
 * function is internal, and all of them stay visible. Chance adds a few
 * wrong references; an additional referrer can only keep a function visible. For
 * the same reason:
 * - any pointer to a function in data makes it visible;
 * - the evaluation loop's helpers (unpacking, raising) do work of their own:
 *   only the target of the loop's jumps (its cold part) is internal, not its callees;
 * - functions that refer to each other in a circle stay visible.
 *
 * Invariants: functions are sorted by start and do not overlap; references
 * hold indices into them; this file never judges a function with a name.
 */
#include "symbolize/internal_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"

enum { MAX_FUNCTIONS = 1 << 18, MAX_REFERENCES = 1 << 22, GAP_STEP = 4, STEPS_OF_FUNCTION = 8, BYTES_A_STEP = 16 };

enum kind { NAMELESS, INTERNAL, LOOP, MAKER, VISIBLE };

struct function {
	uint64_t start, end;
	uint8_t kind;
};

struct reference {
	uint32_t from, to;
	bool is_jump, is_taken; /* neither: a call */
};

struct internal_functions {
	struct function *functions;
	size_t n_functions, functions_allocated;
};

struct scan {
	const struct image *image;
	struct internal_functions *internal;
	struct reference *references;
	size_t n_references, allocated;
	uint8_t *starts; /* bitmap of function starts, from the first function's address on */
	uint64_t starts_span;
};

static const char *const loops[] = { "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx" };

/* They put functions into new callables and threads, together with the calls' arguments. */
static const char *const makers[] = {
	"PyCMethod_New",
	"PyCFunction_NewEx",
	"PyDescr_NewMethod",
	"PyMethod_New",
	"PyThread_start_new_thread",
	"PyThread_start_joinable_thread",
	"_thread.start_new_thread",
	"_thread.start_new",
	"_thread.start_joinable_thread",
};

static bool is_among(const char *name, const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static enum kind kind_of_name(const char *name)
{
	if (is_among(name, loops, N_ELEMENTS(loops)))
		return LOOP;
	if (is_among(name, makers, N_ELEMENTS(makers)))
		return MAKER;
	return symbol_is_internal(name) ? INTERNAL : VISIBLE;
}

static int judge_by_name(const struct symtab *symtab, const struct method_tables *methods, uint64_t start,
			 enum kind *ret)
{
	CLEANUP(freep) char *name = NULL;
	const struct symtab_entry *entry = symtab_find(symtab, start);
	const struct method *method = method_tables_find(methods, start);
	int r;

	if (entry)
		name = strndup(entry->name, name_base_length(entry->name));
	if (entry && !name)
		return -ENOMEM;
	if (!entry && method) {
		r = method_format(method, &name);
		if (r < 0)
			return r;
	}
	*ret = name ? kind_of_name(name) : NAMELESS;
	return 0;
}

static int add_function(struct scan *scan, uint64_t start, uint64_t end)
{
	struct internal_functions *internal = scan->internal;
	int r;

	if (internal->n_functions >= MAX_FUNCTIONS)
		return 0;
	r = effort_grow(&internal->functions, internal->n_functions, &internal->functions_allocated,
			sizeof *internal->functions);
	if (r < 0)
		return r;
	internal->functions[internal->n_functions++] = (struct function){ .start = start, .end = end };
	return 0;
}

/* Collect all functions that have unwind information in a segment. */
static int collect_functions(struct scan *scan, const struct image_segment *segment)
{
	uint64_t at = segment->start, known_end = segment->start;

	while (at < segment->end) {
		uint64_t start, end;
		int r;

		if (!effort_go_on(STEPS_OF_FUNCTION))
			return -ETIME;
		if (elf_file_function(scan->image->elf, at, &start, &end) < 0 || end <= at) {
			at += GAP_STEP;
			continue;
		}
		/* A function may begin in the gap that was skipped. */
		r = start >= known_end ? add_function(scan, start, MIN(end, segment->end)) : 0;
		if (r < 0)
			return r;
		at = known_end = end;
	}
	return 0;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static struct function *find_function(const struct internal_functions *internal, uint64_t start)
{
	struct function key = { .start = start };

	if (internal->n_functions == 0 || start < internal->functions[0].start ||
	    start > internal->functions[internal->n_functions - 1].start)
		return NULL;
	return bsearch(&key, internal->functions, internal->n_functions, sizeof key, compare_functions);
}

/*
 * Most candidate addresses are not functions. A bitmap with one bit per code byte rejects them quickly. If the code
 * spans too much memory, there is no bitmap, and the search is slower.
 */
static int mark_starts(struct scan *scan)
{
	enum { MAX_SPAN = 256 << 20 };
	const struct internal_functions *internal = scan->internal;
	uint64_t first = internal->functions[0].start,
		 span = internal->functions[internal->n_functions - 1].start - first;

	if (span > MAX_SPAN)
		return 0;
	scan->starts = calloc(span / 8 + 1, 1);
	if (!scan->starts)
		return -ENOMEM;
	scan->starts_span = span;
	for (size_t i = 0; i < internal->n_functions; i++) {
		uint64_t at = internal->functions[i].start - first;

		scan->starts[at / 8] |= (uint8_t)(1 << at % 8);
	}
	return 0;
}

static struct function *referred_function(const struct scan *scan, uint64_t address)
{
	uint64_t at = address - scan->internal->functions[0].start;

	if (scan->starts && (at > scan->starts_span || !(scan->starts[at / 8] >> at % 8 & 1)))
		return NULL;
	return find_function(scan->internal, address);
}

static int add_reference(struct scan *scan, const struct function *from, const struct function *to,
			 struct reference reference)
{
	int r;

	if (from == to || scan->n_references >= MAX_REFERENCES)
		return 0;
	r = effort_grow(&scan->references, scan->n_references, &scan->allocated, sizeof *scan->references);
	if (r < 0)
		return r;
	reference.from = (uint32_t)(from - scan->internal->functions);
	reference.to = (uint32_t)(to - scan->internal->functions);
	scan->references[scan->n_references++] = reference;
	return 0;
}

typedef uint32_t lanes __attribute__((vector_size(16)));

enum { LANES = 4, STEP = LANES * sizeof(uint32_t), STEP_BYTES = STEP + sizeof(uint32_t) - 1 };

/*
 * Whether four bytes of code at any of STEP offsets may be a function's address or a distance to one. Most others do
 * not lead to code, which two comparisons show. Uses 32-bit arithmetic, so a target 4 GiB away may look near; the
 * caller checks again.
 * @next:  address after the four bytes at the first offset.
 * @bytes: STEP_BYTES.
 */
static inline bool any_may_refer(uint32_t first, uint32_t span, uint32_t next, const uint8_t *bytes)
{
	lanes found = { 0 };

	for (uint32_t i = 0; i < LANES; i++) {
		const lanes ends = { next + i, next + i + 4, next + i + 8, next + i + 12 };
		lanes operands;

		memcpy(&operands, bytes + i, sizeof operands);
		found |= (lanes)(operands + ends - first <= span) | (lanes)(operands - first <= span);
	}
	return (found[0] | found[1] | found[2] | found[3]) != 0;
}

/* Collect what four bytes of a function's code may refer to. */
static int collect_reference(struct scan *scan, const struct function *from, const uint8_t *code, size_t at)
{
	const struct function *to;
	int32_t operand;

	memcpy(&operand, code + at, sizeof operand);
	to = referred_function(scan, from->start + at + sizeof operand + (uint64_t)(int64_t)operand);
	if (to) {
		bool is_jump = at > 0 && (code[at - 1] == 0xe9 || (code[at - 1] & 0xf0) == 0x80);
		bool is_call = at > 0 && code[at - 1] == 0xe8;

		return add_reference(scan, from, to,
				     (struct reference){ .is_jump = is_jump, .is_taken = !is_jump && !is_call });
	}
	if (scan->image->position_independent)
		return 0;
	to = referred_function(scan, (uint32_t)operand);
	return to ? add_reference(scan, from, to, (struct reference){ .is_taken = true }) : 0;
}

static int collect_of_function(struct scan *scan, const struct function *from, const uint8_t *code)
{
	const struct internal_functions *internal = scan->internal;
	uint64_t first = internal->functions[0].start,
		 span = internal->functions[internal->n_functions - 1].start - first;
	size_t n_bytes = from->end - from->start, at = 0, end;

	while (at + 4 <= n_bytes) {
		if (span <= UINT32_MAX && n_bytes - at >= STEP_BYTES &&
		    !any_may_refer((uint32_t)first, (uint32_t)span, (uint32_t)(from->start + at + 4), code + at)) {
			at += STEP;
			continue;
		}
		for (end = MIN(at + STEP, n_bytes - 3); at < end; at++) {
			int r = collect_reference(scan, from, code, at);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int collect_references(struct scan *scan)
{
	for (size_t i = 0; scan->image->machine == EM_X86_64 && i < scan->internal->n_functions; i++) {
		const struct function *from = &scan->internal->functions[i];
		const void *code;
		int r;

		if (!effort_go_on(1 + (from->end - from->start) / BYTES_A_STEP))
			return -ETIME;
		if (elf_file_data(scan->image->elf, from->start, from->end - from->start, &code) < 0)
			continue;
		r = collect_of_function(scan, from, code);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A function without a name that data points to may be a user's callback: keep it visible. */
static void keep_visible(struct scan *scan, const struct image_segment *segment)
{
	for (uint64_t at = (segment->start + 7) & ~7ULL; at < segment->end; at += 8) {
		struct function *function;
		uint64_t value;

		if (!effort_go_on(1))
			return;
		if (!image_word(scan->image, at, &value))
			continue;
		function = referred_function(scan, value);
		if (function && function->kind == NAMELESS)
			function->kind = VISIBLE;
	}
}

static int judge_by_names(struct scan *scan, const struct symtab *symtab, const struct method_tables *methods)
{
	for (size_t i = 0; i < scan->internal->n_functions; i++) {
		enum kind kind;
		int r;

		if (!effort_go_on(STEPS_OF_FUNCTION))
			return -ETIME;
		r = judge_by_name(symtab, methods, scan->internal->functions[i].start, &kind);
		if (r < 0)
			return r;
		scan->internal->functions[i].kind = (uint8_t)kind;
	}
	for (size_t i = 0; i < scan->image->n_segments; i++)
		if (!scan->image->segments[i].executable)
			keep_visible(scan, &scan->image->segments[i]);
	return 0;
}

static void judge_by_makers_and_loop(struct scan *scan)
{
	struct function *functions = scan->internal->functions;

	for (size_t i = 0; i < scan->n_references; i++) {
		const struct reference *reference = &scan->references[i];
		struct function *from = &functions[reference->from], *to = &functions[reference->to];

		if (reference->is_taken && to->kind == NAMELESS && from->kind == MAKER)
			to->kind = INTERNAL;
		if (!reference->is_taken && from->kind == NAMELESS && to->kind == LOOP)
			from->kind = INTERNAL;
	}
}

static bool carries_over(const struct scan *scan, const struct reference *reference)
{
	enum kind from = scan->internal->functions[reference->from].kind;

	return from == INTERNAL || (from == LOOP && reference->is_jump);
}

/* One round of the rule: a function that only internal functions refer to is internal. Returns how many were found. */
static size_t judge_by_referrers(struct scan *scan, uint8_t *opinions)
{
	enum { REFERRED = 1, ALSO_BY_OTHERS = 2 };
	struct internal_functions *internal = scan->internal;
	size_t n_found = 0;

	memset(opinions, 0, internal->n_functions);
	for (size_t i = 0; i < scan->n_references; i++)
		opinions[scan->references[i].to] |= carries_over(scan, &scan->references[i]) ? REFERRED
											     : ALSO_BY_OTHERS;
	for (size_t i = 0; i < internal->n_functions; i++) {
		if (internal->functions[i].kind != NAMELESS || opinions[i] != REFERRED)
			continue;
		internal->functions[i].kind = INTERNAL;
		n_found++;
	}
	return n_found;
}

static int run_scan(struct scan *scan, const struct symtab *symtab, const struct method_tables *methods)
{
	CLEANUP(freep) uint8_t *opinions = NULL;
	int r;

	for (size_t i = 0; i < scan->image->n_segments; i++) {
		if (!scan->image->segments[i].executable)
			continue;
		r = collect_functions(scan, &scan->image->segments[i]);
		if (r < 0)
			return r;
	}
	if (scan->internal->n_functions == 0)
		return 0;
	qsort(scan->internal->functions, scan->internal->n_functions, sizeof *scan->internal->functions,
	      compare_functions);
	r = mark_starts(scan);
	if (r < 0)
		return r;
	r = judge_by_names(scan, symtab, methods);
	if (r < 0)
		return r;
	r = collect_references(scan);
	if (r < 0)
		return r;
	opinions = malloc(scan->internal->n_functions);
	if (!opinions)
		return -ENOMEM;
	judge_by_makers_and_loop(scan);
	/* A round checks all references; a chain of functions needs as many rounds as its length. */
	while (judge_by_referrers(scan, opinions) > 0)
		if (!effort_go_on(scan->n_references / 8))
			return -ETIME;
	return 0;
}

int internal_functions_new(const struct image *image, const struct symtab *symtab, const struct method_tables *methods,
			   struct internal_functions **ret)
{
	CLEANUP(internal_functions_freep) struct internal_functions *internal = NULL;
	struct scan scan = { .image = image };
	int r;

	internal = calloc(1, sizeof *internal);
	if (!internal)
		return -ENOMEM;
	scan.internal = internal;
	r = run_scan(&scan, symtab, methods);
	free(scan.references);
	free(scan.starts);
	if (r < 0)
		return r;

	*ret = TAKE(internal);
	return 0;
}

int internal_functions_restore(const uint64_t *starts, size_t n, struct internal_functions **ret)
{
	CLEANUP(internal_functions_freep) struct internal_functions *internal = calloc(1, sizeof *internal);
	int r;

	if (!internal)
		return -ENOMEM;
	r = effort_take(n * sizeof *internal->functions, true);
	if (r < 0)
		return r;
	internal->functions = calloc(n + 1, sizeof *internal->functions);
	if (!internal->functions)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && starts[i] <= starts[i - 1])
			return -EBADMSG;
		internal->functions[i] = (struct function){ .start = starts[i], .end = starts[i], .kind = INTERNAL };
	}
	internal->n_functions = n;
	*ret = TAKE(internal);
	return 0;
}

int internal_functions_starts(const struct internal_functions *internal, uint64_t **ret, size_t *ret_n)
{
	uint64_t *starts = calloc(internal->n_functions + 1, sizeof *starts);
	size_t n = 0;

	if (!starts)
		return -ENOMEM;
	for (size_t i = 0; i < internal->n_functions; i++)
		if (internal->functions[i].kind == INTERNAL)
			starts[n++] = internal->functions[i].start;
	*ret = starts;
	*ret_n = n;
	return 0;
}

void internal_functions_free(struct internal_functions *internal)
{
	if (!internal)
		return;
	free(internal->functions);
	free(internal);
}

void internal_functions_freep(struct internal_functions **internal)
{
	internal_functions_free(*internal);
}

bool internal_functions_holds(const struct internal_functions *internal, uint64_t start)
{
	const struct function *function = find_function(internal, start);

	return function && function->kind == INTERNAL;
}
