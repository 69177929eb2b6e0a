/* SPDX-License-Identifier: MIT */
/* python_types.c - recognise CPython's static structures in an image.
 *
 * There is no list of these structures in the file: every aligned address is
 * a candidate. The name, the functions and the small numbers must all be
 * plausible together, so that chance does not produce one; cheap tests come first.
 *
 * Source: Include/methodobject.h, moduleobject.h, descrobject.h, object.h and
 * Include/cpython/object.h of CPython 3.8 to 3.15, where offsets are the same.
 */
#include "symbolize/python_types.h"

#include <ctype.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/slots.h"

enum {
	METH_STATIC = 0x20,
	MAX_NAME = 256,
	MAX_ITEM_BYTES = 1 << 12,
	MAX_MODULE_BYTES = 1 << 24,
	FREE_THREADED_BYTES = 16, /* by which an object's head is longer in a free-threaded build */
};

static uint64_t word(const struct image *image, uint64_t address)
{
	uint64_t value = 0;

	return image_word(image, address, &value) ? value : 0;
}

/* A name of letters, digits, underscores and the characters in `also`; NULL: none. */
static const char *find_name(const struct image *image, uint64_t address, const char *also)
{
	const char *name;

	if (address == 0 || address == IMAGE_EXTERNAL)
		return NULL;
	name = image_string(image, address, MAX_NAME);
	if (!name || !(isalpha((unsigned char)name[0]) || name[0] == '_'))
		return NULL;
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && !strchr(also, *at))
			return NULL;
	return name;
}

static bool is_optional_pointer(const struct image *image, uint64_t value)
{
	return value == 0 || value == IMAGE_EXTERNAL || image_maps(image, value);
}

static bool is_optional_data(const struct image *image, uint64_t value)
{
	return value == 0 || value == IMAGE_EXTERNAL || image_is_data(image, value);
}

static bool is_optional_function(const struct image *image, uint64_t value)
{
	return value == 0 || value == IMAGE_EXTERNAL || image_is_function(image, value);
}

static bool is_function(const struct image *image, uint64_t value)
{
	return value != 0 && value != IMAGE_EXTERNAL && image_is_function(image, value);
}

/*
 * Whether the flags are valid: METH_VARARGS 1, KEYWORDS 2, NOARGS 4, O 8, FASTCALL 0x80, METHOD 0x200 with any of CLASS
 * 0x10, STATIC 0x20, COEXIST 0x40 and STACKLESS 0x100.
 */
static bool is_method_flags(uint64_t flags)
{
	static const uint16_t conventions[] = { 0x1, 0x3, 0x4, 0x8, 0x80, 0x82, 0x282 };

	for (size_t i = 0; i < N_ELEMENTS(conventions); i++)
		if ((flags & ~0x170ULL) == conventions[i])
			return true;
	return false;
}

bool find_method_def(const struct image *image, uint64_t address, struct found_method *ret)
{
	uint64_t flags, function;
	const char *name;

	/* Check the flags first: they reject most candidates. */
	if (!image_word(image, address + 16, &flags) || !is_method_flags(flags) ||
	    !image_word(image, address + 8, &function))
		return false;
	name = find_name(image, word(image, address), "");
	if (!name || (function != 0 && !is_function(image, function)) ||
	    !is_optional_pointer(image, word(image, address + 24)))
		return false;
	*ret = (struct found_method){ .name = name, .function = function, .is_static = (flags & METH_STATIC) != 0 };
	return true;
}

bool find_getset_def(const struct image *image, uint64_t address, struct found_method *ret)
{
	uint64_t getter = word(image, address + 8);
	const char *name = find_name(image, word(image, address), "");

	if (!name || !is_optional_function(image, getter) || !is_optional_function(image, word(image, address + 16)) ||
	    !is_optional_pointer(image, word(image, address + 24)))
		return false;
	*ret = (struct found_method){
		.name = name,
		.function = getter == IMAGE_EXTERNAL ? 0 : getter,
	};
	return true;
}

bool find_wrapper(const struct image *image, uint64_t address, struct found_wrapper *ret)
{
	uint64_t offset, function, wrapper;
	const char *name;

	if (!image_word(image, address + 8, &offset) || offset == 0 || offset > FOUND_MAX_SLOT_OFFSET)
		return false;
	name = find_name(image, word(image, address), "");
	function = word(image, address + 16);
	wrapper = word(image, address + 24);
	if (!name || strncmp(name, "__", 2) != 0 || !is_function(image, function) ||
	    !is_optional_function(image, wrapper) || !is_optional_pointer(image, word(image, address + 32)) ||
	    word(image, address + 40) > 3)
		return false;
	*ret = (struct found_wrapper){
		.name = name,
		.function = function,
		.wrapper = wrapper == IMAGE_EXTERNAL ? 0 : wrapper,
	};
	return true;
}

/*
 * Find the head of a static object: a reference count, and a type that the loader may still have to fill in. Without a
 * GIL: no thread, flags and the local count of immortal objects, no shared count, and the type.
 * @ret: the address from which the offsets of builds with a GIL are valid.
 */
static bool find_object(const struct image *image, uint64_t address, uint64_t *ret)
{
	bool is_free_threaded = word(image, address) == 0;

	if (is_free_threaded && !may_be_free_threaded(word(image, address + 8), word(image, address + 16)))
		return false;
	*ret = address + (is_free_threaded ? FREE_THREADED_BYTES : 0);
	return is_optional_data(image, word(image, *ret + 8));
}

bool find_module_def(const struct image *image, uint64_t address, struct found_module *ret)
{
	uint64_t methods, size;
	const char *name;

	if (!find_object(image, address, &address) || !image_word(image, address + 64, &methods) || !methods ||
	    word(image, address + 16) != 0 || word(image, address + 24) != 0 || word(image, address + 32) != 0)
		return false;
	name = find_name(image, word(image, address + 40), ".");
	size = word(image, address + 56);
	if (!name || !image_is_data(image, methods) || (size > MAX_MODULE_BYTES && size != UINT64_MAX) ||
	    !is_optional_pointer(image, word(image, address + 48)) ||
	    !is_optional_data(image, word(image, address + 72)))
		return false;
	for (unsigned offset = 80; offset <= 96; offset += 8) /* m_traverse, m_clear, m_free */
		if (!is_optional_function(image, word(image, address + offset)))
			return false;
	*ret = (struct found_module){ .name = name, .methods = methods };
	return true;
}

/* Whether all of the type's own slots are empty or functions. */
static bool has_type_functions(const struct image *image, uint64_t address)
{
	unsigned n_functions = 0;

	for (size_t i = 0; i < n_python_slots; i++) {
		uint64_t value;

		/* A newer version than the file's may have more slots after tp_del. */
		if (python_slots[i].table != SLOT_TYPE || python_slots[i].offset > 376)
			continue;
		value = word(image, address + python_slots[i].offset);
		if (!is_optional_function(image, value))
			return false;
		n_functions += value != 0;
	}
	return n_functions > 0 || word(image, address + 232) != 0;
}

bool find_type(const struct image *image, uint64_t address, struct found_type *ret)
{
	uint64_t flags, methods, getset;
	const char *name;

	if (!find_object(image, address, &address) || !image_word(image, address + 168, &flags) || flags > UINT32_MAX ||
	    word(image, address + 32) > FOUND_MAX_BASIC_BYTES || word(image, address + 40) > MAX_ITEM_BYTES ||
	    word(image, address + 16) != 0)
		return false;
	name = find_name(image, word(image, address + 24), ".-");
	methods = word(image, address + 232);
	getset = word(image, address + 248);
	if (!name || !is_optional_data(image, methods) || !is_optional_data(image, getset) ||
	    !is_optional_data(image, word(image, address + 256)) || !has_type_functions(image, address))
		return false;
	*ret = (struct found_type){
		.name = name,
		.address = address,
		.flags = flags,
		.methods = methods == IMAGE_EXTERNAL ? 0 : methods,
		.getset = getset == IMAGE_EXTERNAL ? 0 : getset,
	};
	return true;
}

bool find_spec_slot(const struct image *image, uint64_t address, uint64_t *ret_id, uint64_t *ret_value)
{
	uint64_t id, value;

	if (!image_word(image, address, &id) || id == 0 || id > SLOT_ID_MAX || !image_word(image, address + 8, &value))
		return false;
	*ret_id = id;
	*ret_value = value;
	return true;
}

/* Whether this is an array of slots with a valid end. */
static bool is_slot_array(const struct image *image, uint64_t address)
{
	uint64_t id, value, end;
	unsigned n = 0;

	for (; n <= SLOT_ID_MAX && find_spec_slot(image, address, &id, &value); n++) {
		if (python_slot_by_id(id) && !is_optional_function(image, value))
			return false;
		address += TYPE_SLOT_BYTES;
	}
	return n > 0 && image_word(image, address, &end) && end == 0;
}

bool find_spec(const struct image *image, uint64_t address, struct found_spec *ret)
{
	uint64_t sizes, flags, slots;
	const char *name;

	if (!image_word(image, address + 24, &slots) || !slots || !image_is_data(image, slots) ||
	    !image_word(image, address + 16, &flags) || flags > UINT32_MAX)
		return false;
	sizes = word(image, address + 8); /* low half: basicsize, high half: itemsize */
	name = find_name(image, word(image, address), ".-");
	if (!name || (uint32_t)sizes > FOUND_MAX_BASIC_BYTES || sizes >> 32 > MAX_ITEM_BYTES ||
	    !is_slot_array(image, slots))
		return false;
	*ret = (struct found_spec){ .name = name, .slots = slots };
	return true;
}
