/* SPDX-License-Identifier: MIT */
/* object_items.c - items of containers: dicts, lists, tuples, sets.
 *
 * A dict is (Objects/dictobject.c, 2.7 to 3.15)
 *   up to 2.7   a table of hash, key, value; no value: not in use;
 *   3.4, 3.5    keys, which are such a table; values with the keys, or apart, where keys are shared;
 *   3.6 on      keys, which are an index and behind it entries in order; values as before;
 *   3.11 on     the same, and the kind of the keys tells whether entries have a hash.
 * A set is a table of keys and hashes. A removed item leaves a dummy: its hash is -1, or,
 * in 2.7 and 3.4, it is a special object.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/object.h"

enum {
	WORD = sizeof(uint64_t),
	ENTRY_BYTES = 3 * WORD,       /* hash, key, value */
	SHORT_ENTRY_BYTES = 2 * WORD, /* key, value */
	KEYS_GENERAL = 0,             /* kind of keys whose entries have a hash */
	MAX_LOG2_INDEX_BYTES = 40,
};

/* Size of an index: a slot is wide enough for an entry's number. */
static uint64_t index_bytes(uint64_t n_slots)
{
	return n_slots * (n_slots <= 0xff ? 1 : n_slots <= 0xffff ? 2 : n_slots <= 0xffffffff ? 4 : 8);
}

static int read_byte(struct py_runtime *runtime, uint64_t address, uint8_t *ret)
{
	return page_cache_read(&runtime->page_cache, address, ret, sizeof *ret);
}

static int keys_with_kinds(struct py_runtime *runtime, uint64_t keys, struct dict_walk *walk)
{
	uint8_t log2_bytes, kind;
	int r;

	r = read_byte(runtime, keys + reader_field(runtime, KEYS_LOG2_INDEX_BYTES), &log2_bytes);
	if (r >= 0)
		r = read_byte(runtime, keys + reader_field(runtime, KEYS_KIND), &kind);
	if (r < 0)
		return r;
	if (log2_bytes > MAX_LOG2_INDEX_BYTES)
		return -EBADMSG;
	walk->entries = keys + reader_field(runtime, KEYS_TABLE) + (1ull << log2_bytes);
	if (kind != KEYS_GENERAL) {
		walk->entry_bytes = SHORT_ENTRY_BYTES;
		walk->key_offset = 0;
	}
	return 0;
}

/* Walk the entries of keys; values are separate in a split dict. */
static int walk_keys(struct py_runtime *runtime, uint64_t keys, struct dict_walk *walk)
{
	uint64_t n_slots;
	int r;

	walk->entry_bytes = ENTRY_BYTES;
	walk->key_offset = WORD;
	if (runtime->layout.field[DICTS] == DICTS_KINDS) {
		r = object_word(runtime, keys + reader_field(runtime, KEYS_N_ENTRIES), &walk->n);
		return r < 0 ? r : keys_with_kinds(runtime, keys, walk);
	}
	r = object_word(runtime, keys + reader_field(runtime, KEYS_SIZE), &n_slots);
	if (r < 0)
		return r;
	walk->entries = keys + reader_field(runtime, KEYS_TABLE);
	walk->n = n_slots;
	if (runtime->layout.field[DICTS] == DICTS_KEYS_TABLE)
		return 0;
	if (n_slots > 1ull << MAX_LOG2_INDEX_BYTES)
		return -EBADMSG;
	walk->entries += index_bytes(n_slots);
	return object_word(runtime, keys + reader_field(runtime, KEYS_N_ENTRIES), &walk->n);
}

int object_keys_walk(struct py_runtime *runtime, uint64_t keys, uint64_t values, struct dict_walk *ret)
{
	struct dict_walk walk = { 0 };
	int r;

	r = walk_keys(runtime, keys, &walk);
	if (r < 0)
		return r;
	walk.values = values ? values + reader_field(runtime, VALUES_ITEMS) : 0;
	walk.n = MIN(walk.n, (uint64_t)DICT_MAX_ENTRIES);
	*ret = walk;
	return 0;
}

static int table_walk(struct py_runtime *runtime, uint64_t dict, struct dict_walk *ret)
{
	struct dict_walk walk = { .entry_bytes = ENTRY_BYTES, .key_offset = WORD };
	uint64_t mask;
	int r;

	r = object_word(runtime, dict + reader_field(runtime, DICT_MASK), &mask);
	if (r >= 0)
		r = object_word(runtime, dict + reader_field(runtime, DICT_TABLE), &walk.entries);
	if (r < 0)
		return r;
	walk.n = MIN(mask, (uint64_t)DICT_MAX_ENTRIES - 1) + 1;
	*ret = walk;
	return 0;
}

static bool is_dict(struct py_runtime *runtime, uint64_t object)
{
	struct object_type type;

	if (object_type_of(runtime, object, &type) < 0)
		return false;
	return (type.flags & TYPE_DICTIONARY) || object_is_a(runtime, &type, "frozendict", NULL);
}

int object_dict_walk(struct py_runtime *runtime, uint64_t dict, struct dict_walk *ret)
{
	uint64_t keys, values;
	int r;

	if (!is_dict(runtime, dict))
		return -EBADMSG;
	if (runtime->layout.field[DICTS] == DICTS_TABLE)
		return table_walk(runtime, dict, ret);
	r = object_word(runtime, dict + reader_field(runtime, DICT_KEYS), &keys);
	if (r >= 0)
		r = object_word(runtime, dict + reader_field(runtime, DICT_VALUES), &values);
	return r < 0 ? r : object_keys_walk(runtime, keys, values, ret);
}

int object_dict_next(struct py_runtime *runtime, struct dict_walk *walk, uint64_t *ret_key, uint64_t *ret_value)
{
	while (walk->at < walk->n) {
		uint64_t entry = walk->entries + walk->at * walk->entry_bytes, pair[2];
		uint64_t at = walk->at++;
		int r;

		r = page_cache_read(&runtime->page_cache, entry + walk->key_offset, pair, sizeof pair);
		if (r >= 0 && walk->values != 0)
			r = object_word(runtime, walk->values + at * WORD, &pair[1]);
		if (r < 0)
			return r;
		if (pair[0] == 0 || pair[1] == 0) /* free or deleted */
			continue;
		*ret_key = pair[0];
		*ret_value = pair[1];
		return 1;
	}
	return 0;
}

int object_dict_size(struct py_runtime *runtime, uint64_t dict, uint64_t *ret)
{
	return object_word(runtime, dict + reader_field(runtime, DICT_USED), ret);
}

int object_set_size(struct py_runtime *runtime, uint64_t set, uint64_t *ret)
{
	return object_word(runtime, set + reader_field(runtime, SET_USED), ret);
}

static int find(struct py_runtime *runtime, struct dict_walk *walk, const char *key, uint64_t *ret)
{
	uint64_t at_key, value;
	int r;

	while ((r = object_dict_next(runtime, walk, &at_key, &value)) > 0)
		if (object_string_is(runtime, at_key, key)) {
			*ret = value;
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

int object_dict_find(struct py_runtime *runtime, uint64_t dict, const char *key, uint64_t *ret)
{
	return object_dict_find_among(runtime, dict, key, DICT_MAX_ENTRIES, ret);
}

int object_dict_find_among(struct py_runtime *runtime, uint64_t dict, const char *key, uint64_t max, uint64_t *ret)
{
	struct dict_walk walk;
	int r;

	r = object_dict_walk(runtime, dict, &walk);
	if (r < 0)
		return r;
	walk.n = MIN(walk.n, max);
	return find(runtime, &walk, key, ret);
}

int object_attribute(struct py_runtime *runtime, uint64_t object, const char *name, uint64_t *ret)
{
	struct dict_walk walk;
	int r;

	r = object_attributes_walk(runtime, object, &walk);
	if (r < 0)
		return r;
	walk.n = MIN(walk.n, (uint64_t)ATTRIBUTE_MAX);
	return find(runtime, &walk, name, ret);
}

int object_list_walk(struct py_runtime *runtime, uint64_t list, struct item_walk *ret)
{
	struct item_walk walk = { .slot_bytes = WORD };
	int r;

	r = object_size(runtime, list, &walk.n);
	if (r >= 0)
		r = object_word(runtime, list + reader_field(runtime, LIST_ITEMS), &walk.items);
	if (r < 0)
		return r;
	walk.n = MIN(walk.n, (uint64_t)ITEMS_MAX);
	*ret = walk;
	return 0;
}

int object_tuple_walk(struct py_runtime *runtime, uint64_t tuple, struct item_walk *ret)
{
	struct item_walk walk = { .slot_bytes = WORD, .items = tuple + reader_field(runtime, TUPLE_ITEMS) };
	int r;

	r = object_size(runtime, tuple, &walk.n);
	if (r < 0)
		return r;
	walk.n = MIN(walk.n, (uint64_t)ITEMS_MAX);
	*ret = walk;
	return 0;
}

int object_set_walk(struct py_runtime *runtime, uint64_t set, struct item_walk *ret)
{
	struct item_walk walk = { .slot_bytes = 2 * WORD, .is_set = true };
	uint64_t mask;
	int r;

	r = object_word(runtime, set + reader_field(runtime, SET_MASK), &mask);
	if (r >= 0)
		r = object_word(runtime, set + reader_field(runtime, SET_TABLE), &walk.items);
	if (r < 0)
		return r;
	walk.n = MIN(mask, (uint64_t)ITEMS_MAX - 1) + 1;
	*ret = walk;
	return 0;
}

/* Whether a set's slot holds the placeholder of a removed item. */
static bool is_dummy(struct py_runtime *runtime, uint64_t key, uint64_t hash)
{
	struct object_type type;

	if (hash == UINT64_MAX)
		return true;
	if (runtime->layout.field[STRINGS] == STRINGS_BYTES)
		return object_string_is(runtime, key, "<dummy key>");
	return runtime->layout.field[DICTS] == DICTS_KEYS_TABLE && object_type_of(runtime, key, &type) >= 0 &&
	       strcmp(type.name, "<dummy key> type") == 0;
}

int object_item_next(struct py_runtime *runtime, struct item_walk *walk, uint64_t *ret)
{
	while (walk->at < walk->n) {
		uint64_t slot = walk->items + walk->at++ * walk->slot_bytes, words[2] = { 0 }, item;
		int r;

		r = page_cache_read(&runtime->page_cache, slot, words, walk->slot_bytes);
		if (r < 0)
			return r;
		item = walk->is_set ? words[reader_field(runtime, SET_ENTRY_KEY) / WORD] : words[0];
		if (item == 0 ||
		    (walk->is_set && is_dummy(runtime, item, words[reader_field(runtime, SET_ENTRY_HASH) / WORD])))
			continue;
		*ret = item;
		return 1;
	}
	return 0;
}
