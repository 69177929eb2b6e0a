/* SPDX-License-Identifier: MIT */
/* method_scan.c - collect the C functions that Python code can call from an image.
 *
 * The scan goes over all data twice: it first collects every PyMethodDef,
 * then searches modules, types and type specs, which own arrays of methods
 * and have slots of their own. Entries are adjacent
 * without gaps, so that an owner of the first one owns the run. If a file has
 * no pointer to a method's function, the scan searches for code that stores it.
 *
 * Invariants: definitions are sorted by address before the search for owners;
 * strings lie in the file and are not copied.
 */
#include "symbolize/method_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/python_types.h"
#include "symbolize/slots.h"
#include "symbolize/stored_methods.h"

enum {
	MAX_METHODS = 1 << 20,
	MAX_ATTRIBUTES = 1024,
	FLAG_HAS_AM_SEND = 1 << 21, /* Py_TPFLAGS_HAVE_AM_SEND: PyAsyncMethods has a fourth field */
};

/* A PyMethodDef and its address. */
struct definition {
	uint64_t address;
	struct found_method method;
	const char *owner;
	bool is_owned, is_shared; /* is_shared: owned by several types */
};

struct scan {
	const struct image *image;
	const struct python_module *python;
	struct method_list *list;
	struct definition *definitions; /* sorted by address */
	size_t n_definitions, allocated;
};

static int add_method(struct scan *scan, uint64_t address, const char *owner, const char *member, enum method_kind kind)
{
	struct method_list *list = scan->list;
	int r;

	if (list->n_methods >= MAX_METHODS)
		return 0;
	r = effort_grow(&list->methods, list->n_methods, &list->allocated, sizeof *list->methods);
	if (r < 0)
		return r;
	list->methods[list->n_methods++] = (struct method){
		.address = address,
		.owner = owner,
		.member = member,
		.kind = (uint8_t)kind,
	};
	return 0;
}

static int add_definition(struct scan *scan, uint64_t address, const struct found_method *method)
{
	int r;

	if (scan->n_definitions >= MAX_METHODS)
		return 0;
	r = effort_grow(&scan->definitions, scan->n_definitions, &scan->allocated, sizeof *scan->definitions);
	if (r < 0)
		return r;
	scan->definitions[scan->n_definitions++] = (struct definition){ .address = address, .method = *method };
	return 0;
}

static int compare_definitions(const void *a, const void *b)
{
	const struct definition *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static struct definition *find_definition(const struct scan *scan, uint64_t address)
{
	const struct definition key = { .address = address };

	if (address == 0 || scan->n_definitions == 0)
		return NULL;
	return bsearch(&key, scan->definitions, scan->n_definitions, sizeof key, compare_definitions);
}

/* Callback: code stores a word. */
static int fill_definition(void *context, uint64_t address, uint64_t word)
{
	struct scan *scan = context;
	struct definition *definition = find_definition(scan, address - METHOD_DEF_FUNCTION);

	if (definition && definition->method.function == 0 && image_is_function(scan->image, word))
		definition->method.function = word;
	return 0;
}

/* Find functions that only code stores into a table, not the file. Drop entries that stay without a function. */
static int fill_definitions(struct scan *scan)
{
	size_t n = 0, n_empty = 0;
	int r = 0;

	for (size_t i = 0; i < scan->n_definitions; i++)
		n_empty += scan->definitions[i].method.function == 0;
	if (n_empty == 0)
		return 0;
	/* An interpreter's tables are in its data, so skip its code. */
	if (!scan->python->is_interpreter)
		r = stored_words_find(scan->image, fill_definition, scan);
	if (r < 0)
		return r;
	for (size_t i = 0; i < scan->n_definitions; i++)
		if (scan->definitions[i].method.function != 0)
			scan->definitions[n++] = scan->definitions[i];
	scan->n_definitions = n;
	return 0;
}

static bool same_string(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* The words from an address on; NULL: fewer than n. */
static const uint8_t *words_at(const struct image_segment *segment, uint64_t address, size_t n)
{
	const uint8_t *bytes = segment->relocated ? segment->relocated : segment->bytes;

	return segment->end - address < n * sizeof(uint64_t) ? NULL : bytes + (address - segment->start);
}

static uint64_t nth(const uint8_t *words, size_t n)
{
	uint64_t word;

	memcpy(&word, words + n * sizeof word, sizeof word);
	return word;
}

/*
 * Almost no address begins a structure. Reject most of them here, by minimum conditions of find_method_def() and the
 * functions below.
 */
static bool may_define(const struct image_segment *segment, uint64_t address)
{
	const uint8_t *words = words_at(segment, address, 3);

	return !words || (nth(words, 0) != 0 && nth(words, 2) != 0 && nth(words, 2) < 0x400);
}

static bool may_own(const struct image_segment *segment, uint64_t address)
{
	const uint8_t *words = words_at(segment, address, 22);

	if (!words)
		return true;
	if (nth(words, 0) == 0) /* neither a name nor a reference count: an object without a GIL */
		return may_be_free_threaded(nth(words, 1), nth(words, 2));
	return (nth(words, 21) <= UINT32_MAX && nth(words, 2) == 0 &&
		nth(words, 4) <= FOUND_MAX_BASIC_BYTES) || /* a type */
	       (nth(words, 3) != 0 && nth(words, 2) <= UINT32_MAX &&
		(uint32_t)nth(words, 1) <= FOUND_MAX_BASIC_BYTES) ||                                     /* a spec */
	       (nth(words, 8) != 0 && nth(words, 2) == 0 && nth(words, 3) == 0 && nth(words, 4) == 0) || /* a module */
	       nth(words, 1) - 1 < FOUND_MAX_SLOT_OFFSET;                                                /* a wrapper */
}

/* Called for each eighth byte; checks once a page. */
static bool is_out_of_time(uint64_t address)
{
	enum { PAGE = 4096, STEPS_OF_PAGE = 256 };

	return address % PAGE < 8 && !effort_go_on(STEPS_OF_PAGE);
}

static int collect_definitions(struct scan *scan, const struct image_segment *segment)
{
	struct found_method method;

	for (uint64_t at = (segment->start + 7) & ~7ULL; at < segment->end; at += 8) {
		int r;

		if (is_out_of_time(at))
			return -ETIME;
		if (!may_define(segment, at) || !find_method_def(scan->image, at, &method))
			continue;
		r = add_definition(scan, at, &method);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Assign the consecutive methods at an address to their owner. */
static void own_definitions(struct scan *scan, uint64_t address, const char *owner)
{
	struct definition *at = find_definition(scan, address), *end = scan->definitions + scan->n_definitions;

	for (; at && at < end && at->address == address && effort_go_on(1); at++) {
		at->is_shared |= at->is_owned && !same_string(at->owner, owner);
		at->owner = owner;
		at->is_owned = true;
		address += METHOD_DEF_BYTES;
	}
}

static int add_attributes(struct scan *scan, uint64_t address, const char *owner)
{
	struct found_method getter;

	for (unsigned n = 0; n < MAX_ATTRIBUTES && find_getset_def(scan->image, address, &getter); n++) {
		int r;

		address += GETSET_DEF_BYTES;
		if (getter.function == 0)
			continue;
		r = add_method(scan, getter.function, owner, getter.name, METHOD_GETTER);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether the type has this slot, so that the word at its offset is valid. */
static bool has_slot(const struct scan *scan, const struct found_type *type, const struct python_slot *slot)
{
	if (slot->table == SLOT_ASYNC && strcmp(slot->name, " am_send") == 0)
		return (type->flags & FLAG_HAS_AM_SEND) != 0;
	/* Python 2 has other fields in these tables. */
	if (slot->table == SLOT_ASYNC || slot->table == SLOT_NUMBER || slot->table == SLOT_BUFFER)
		return !scan->python->is_python2;
	return true;
}

static int add_slot(struct scan *scan, uint64_t function, const char *owner, const struct python_slot *slot)
{
	if (function == 0 || function == IMAGE_EXTERNAL || !image_is_function(scan->image, function))
		return 0;
	return add_method(scan, function, owner, slot->name, METHOD_SLOT);
}

static int add_type_slots(struct scan *scan, const struct found_type *type)
{
	for (size_t i = 0; i < n_python_slots; i++) {
		const struct python_slot *slot = &python_slots[i];
		uint64_t table = type->address, function;
		int r;

		if (!has_slot(scan, type, slot))
			continue;
		if (slot->table != SLOT_TYPE &&
		    (!image_word(scan->image, type->address + slot_table_offsets[slot->table], &table) || table == 0 ||
		     !image_is_data(scan->image, table)))
			continue;
		if (!image_word(scan->image, table + slot->offset, &function))
			continue;
		r = add_slot(scan, function, type->name, slot);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_spec_slots(struct scan *scan, const struct found_spec *spec)
{
	uint64_t at = spec->slots, id, value;

	for (unsigned n = 0; n <= SLOT_ID_MAX && find_spec_slot(scan->image, at, &id, &value); n++) {
		const struct python_slot *slot = python_slot_by_id(id);
		int r = 0;

		if (id == SLOT_ID_METHODS)
			own_definitions(scan, value, spec->name);
		else if (id == SLOT_ID_GETSET)
			r = add_attributes(scan, value, spec->name);
		else if (slot)
			r = add_slot(scan, value, spec->name, slot);
		if (r < 0)
			return r;
		at += TYPE_SLOT_BYTES;
	}
	return 0;
}

static int add_type(struct scan *scan, const struct found_type *type)
{
	int r;

	own_definitions(scan, type->methods, type->name);
	r = type->getset ? add_attributes(scan, type->getset, type->name) : 0;
	if (r < 0)
		return r;
	return add_type_slots(scan, type);
}

static int add_wrapper(struct scan *scan, const struct found_wrapper *wrapper)
{
	int r;

	r = add_method(scan, wrapper->function, "slot", wrapper->name, METHOD_GLUE);
	if (r < 0 || wrapper->wrapper == 0)
		return r;
	return add_method(scan, wrapper->wrapper, "slot wrapper", NULL, METHOD_GLUE);
}

static int collect_owner(struct scan *scan, uint64_t address)
{
	struct found_wrapper wrapper;
	struct found_module module;
	struct found_type type;
	struct found_spec spec;

	if (find_type(scan->image, address, &type))
		return add_type(scan, &type);
	if (find_spec(scan->image, address, &spec))
		return add_spec_slots(scan, &spec);
	if (find_module_def(scan->image, address, &module))
		own_definitions(scan, module.methods, strcmp(module.name, "builtins") == 0 ? NULL : module.name);
	else if (scan->python->is_interpreter && find_wrapper(scan->image, address, &wrapper))
		return add_wrapper(scan, &wrapper);
	return 0;
}

static int collect_owners(struct scan *scan, const struct image_segment *segment)
{
	for (uint64_t at = (segment->start + 7) & ~7ULL; at < segment->end; at += 8) {
		int r = is_out_of_time(at) ? -ETIME : may_own(segment, at) ? collect_owner(scan, at) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int for_each_segment(struct scan *scan, int (*collect)(struct scan *, const struct image_segment *))
{
	for (size_t i = 0; i < scan->image->n_segments; i++) {
		int r;

		if (!image_is_scanned(scan->image, &scan->image->segments[i]))
			continue;
		r = collect(scan, &scan->image->segments[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static const char *owner_of(const struct definition *definition, const struct method_file *file)
{
	if (definition->is_owned)
		return definition->owner;
	return definition->method.is_static ? file->package : file->stem;
}

static int add_definitions(struct scan *scan, const struct method_file *file)
{
	for (size_t i = 0; i < scan->n_definitions; i++) {
		const struct definition *at = &scan->definitions[i];
		int r = add_method(scan, at->method.function, owner_of(at, file), at->method.name, METHOD_DEFINED);

		if (r < 0)
			return r;
		scan->list->methods[scan->list->n_methods - 1].is_shared |= at->is_shared;
	}
	return 0;
}

static int run_scan(struct scan *scan, const struct method_file *file)
{
	int r;

	r = for_each_segment(scan, collect_definitions);
	if (r < 0)
		return r;
	if (scan->n_definitions > 0)
		qsort(scan->definitions, scan->n_definitions, sizeof *scan->definitions, compare_definitions);
	r = fill_definitions(scan);
	if (r < 0)
		return r;
	r = for_each_segment(scan, collect_owners);
	if (r < 0)
		return r;
	return add_definitions(scan, file);
}

int method_scan(const struct image *image, const struct python_module *python, const struct method_file *file,
		struct method_list *list)
{
	struct scan scan = { .image = image, .python = python, .list = list };
	int r;

	r = run_scan(&scan, file);
	free(scan.definitions);
	return r;
}
