/* SPDX-License-Identifier: MIT */
/* code.c - code objects, read once and then recognised by identity.
 *
 * An address does not identify one: the target frees code objects and allocates others in
 * their place. So before a cached entry is used, the code object's head is
 * read again in every sample, those of a stack together (page_cache.c), and
 * compared: name, file, line table, first line, length, and the version that
 * 3.12 gives every code object; before that the name's length and hash. Up to
 * 3.10 the bytecode is an object of its own, which several code objects may share.
 *
 * While a code object is freed its frame may still exist, and its memory may
 * have been reused: memory without the type of code objects is none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/object.h"

enum {
	BATCH = 64,
	MAX_NAME_BYTES = 1024,
	MAX_PATH_BYTES = 4096,
	MAX_LINE_TABLE_BYTES = 1 << 20,
	MAX_BYTECODE_BYTES = 128 << 20,
	MAX_LINES = 1 << 26,
	UNIT_BYTES = 2, /* code objects that contain their bytecode count it in these units */
};

static void entry_free(struct code_entry *entry)
{
	if (!entry)
		return;
	free((char *)entry->code.qualname);
	free((char *)entry->code.file);
	free((uint8_t *)entry->code.line_table);
	free(entry);
}
DEFINE_CLEANUP(struct code_entry *, entry_free)

void reader_codes_done(struct code_cache *codes)
{
	for (size_t i = 0; i < codes->n; i++)
		entry_free(codes->entries[i]);
	free(codes->entries);
	free(codes->slots);
	free(codes->ranges);
	memset(codes, 0, sizeof *codes);
}

struct py_codes {
	struct code_cache cache;
};

int py_codes_take(struct py_runtime *runtime, struct py_codes **ret)
{
	struct py_codes *taken = calloc(1, sizeof *taken);

	if (!taken)
		return -ENOMEM;
	taken->cache = runtime->codes;
	runtime->codes = (struct code_cache){ .type = taken->cache.type };
	*ret = taken;
	return 0;
}

void py_codes_free(struct py_codes *codes)
{
	if (!codes)
		return;
	reader_codes_done(&codes->cache);
	free(codes);
}

/*
 * A program that refers to PyCode_Type may have a copy of it (a copy relocation). Then all code objects use the copy,
 * and none uses the library's own type.
 */
static bool is_copied_type(struct py_runtime *runtime, uint64_t address)
{
	struct object_type type;

	if (runtime->codes.type != runtime->symbols.code_type || object_type_at(runtime, address, &type) < 0 ||
	    strcmp(type.name, "code") != 0)
		return false;
	runtime->codes.type = address;
	return true;
}

/* Without a symbol, the first object whose fields are all readable defines the type of code objects. */
static bool is_code_type(struct py_runtime *runtime, uint64_t address)
{
	return runtime->codes.type == 0 || address == runtime->codes.type || is_copied_type(runtime, address);
}

static int parse_head(struct py_runtime *runtime, uint64_t address, const uint8_t *head, struct code_identity *ret)
{
	struct code_identity identity = {
		.address = address,
		.qualname = word_at(
			head, reader_field(runtime, reader_has(runtime, CODE_QUALNAME) ? CODE_QUALNAME : CODE_NAME)),
		.file = word_at(head, reader_field(runtime, CODE_FILE)),
		.lines = word_at(head, reader_field(runtime, CODE_LINES)),
		.first_line = half_at(head, reader_field(runtime, CODE_FIRST_LINE)),
	};
	uint64_t n_units = 0;

	if (!is_code_type(runtime, word_at(head, reader_field(runtime, OBJECT_TYPE))))
		return -EBADMSG;
	if (reader_has(runtime, CODE_BYTECODE_OBJECT)) {
		identity.bytecode_object = word_at(head, reader_field(runtime, CODE_BYTECODE_OBJECT));
	} else {
		n_units = word_at(head, reader_field(runtime, OBJECT_SIZE));
		if (n_units == 0 || n_units > MAX_BYTECODE_BYTES / UNIT_BYTES)
			return -EBADMSG;
	}
	if (identity.qualname == 0 || identity.file == 0 ||
	    (identity.first_line > MAX_LINES && identity.first_line < -(uint32_t)MAX_LINES))
		return -EBADMSG;
	identity.bytecode_bytes = n_units * UNIT_BYTES;
	if (reader_has(runtime, CODE_VERSION))
		identity.version = half_at(head, reader_field(runtime, CODE_VERSION));
	*ret = identity;
	return 0;
}

static uint64_t identity_hash(const struct code_identity *identity)
{
	return mix64(identity->address ^ mix64(identity->qualname + identity->version) ^ identity->name_hash);
}

static bool identity_equal(const struct code_identity *a, const struct code_identity *b)
{
	return a->address == b->address && a->qualname == b->qualname && a->file == b->file && a->lines == b->lines &&
	       a->first_line == b->first_line &&
	       (a->bytecode_bytes == b->bytecode_bytes || a->bytecode_bytes == 0 || b->bytecode_bytes == 0) &&
	       a->bytecode_object == b->bytecode_object && a->version == b->version &&
	       a->name_length == b->name_length && a->name_hash == b->name_hash;
}

static struct code_entry *find_entry(const struct code_cache *codes, const struct code_identity *identity)
{
	size_t mask = codes->n_slots - 1;

	if (codes->n_slots == 0)
		return NULL;
	for (size_t i = identity_hash(identity) & mask; codes->slots[i] != 0; i = (i + 1) & mask) {
		struct code_entry *entry = codes->entries[codes->slots[i] - 1];

		if (identity_equal(&entry->identity, identity))
			return entry;
	}
	return NULL;
}

static int rehash(struct code_cache *codes)
{
	size_t n_slots = MAX(codes->n_slots * 2, (size_t)256), mask = n_slots - 1;
	uint32_t *slots = calloc(n_slots, sizeof *slots);

	if (!slots)
		return -ENOMEM;
	for (size_t n = 0; n < codes->n; n++) {
		size_t i = identity_hash(&codes->entries[n]->identity) & mask;

		while (slots[i] != 0)
			i = (i + 1) & mask;
		slots[i] = (uint32_t)n + 1;
	}
	free(codes->slots);
	codes->slots = slots;
	codes->n_slots = n_slots;
	return 0;
}

/* The first range that ends after an address. */
static size_t find_range(const struct code_cache *codes, uint64_t address)
{
	size_t low = 0, high = codes->n_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (codes->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The newest code replaces older, freed codes at overlapping addresses. */
static int add_range(struct code_cache *codes, struct py_code *code, uint64_t start)
{
	uint64_t end = start + code->bytecode_bytes;
	size_t first = find_range(codes, start), last;
	int r;

	r = grow(&codes->ranges, codes->n_ranges, &codes->ranges_allocated, sizeof *codes->ranges);
	if (r < 0)
		return r;
	for (last = first; last < codes->n_ranges && codes->ranges[last].start < end;)
		last++;
	memmove(&codes->ranges[first + 1], &codes->ranges[last], (codes->n_ranges - last) * sizeof *codes->ranges);
	codes->ranges[first] = (struct code_range){ start, end, code };
	codes->n_ranges = codes->n_ranges - (last - first) + 1;
	return 0;
}

static int add_entry(struct code_cache *codes, struct code_entry *entry)
{
	size_t mask, i;
	int r;

	if (3 * (codes->n + 1) > 2 * codes->n_slots) {
		r = rehash(codes);
		if (r < 0)
			return r;
	}
	r = grow(&codes->entries, codes->n, &codes->allocated, sizeof *codes->entries);
	if (r < 0)
		return r;
	r = add_range(codes, &entry->code, entry->code.bytecode);
	if (r < 0)
		return r;
	mask = codes->n_slots - 1;
	for (i = identity_hash(&entry->identity) & mask; codes->slots[i] != 0;)
		i = (i + 1) & mask;
	codes->entries[codes->n++] = entry;
	codes->slots[i] = (uint32_t)codes->n;
	return 0;
}

static int read_line_table(struct py_runtime *runtime, uint64_t address, struct py_code *code)
{
	CLEANUP(freep) uint8_t *table = NULL;
	uint64_t n_bytes;
	int r;

	r = page_cache_read(&runtime->page_cache, address + reader_field(runtime, OBJECT_SIZE), &n_bytes,
			    sizeof n_bytes);
	if (r < 0)
		return r;
	if (n_bytes > MAX_LINE_TABLE_BYTES || n_bytes > runtime->table_bytes_left)
		return -EBADMSG;
	runtime->table_bytes_left -= n_bytes;
	table = malloc(n_bytes + 1);
	if (!table)
		return -ENOMEM;
	r = n_bytes ? remote_read(runtime->remote, RADDR(address + reader_field(runtime, BYTES_DATA)), table, n_bytes)
		    : 0;
	if (r < 0)
		return r;
	code->line_table = TAKE(table);
	code->line_table_bytes = (uint32_t)n_bytes;
	return 0;
}

/* Trampolines of the interpreter (around __init__, 3.12 and later) have no line for any instruction. */
static bool has_no_line(const struct py_code *code)
{
	enum { MAX_TRAMPOLINE_BYTES = 32 };

	if (code->bytecode_bytes > MAX_TRAMPOLINE_BYTES)
		return false;
	for (uint32_t i = 0; i < code->bytecode_bytes; i += 2)
		if (py_code_line(code, (int32_t)i) != 0)
			return false;
	return true;
}

/* The code object must not have changed since its names were read: it may have been freed. */
static int check_same(struct py_runtime *runtime, const struct code_identity *before)
{
	struct code_identity now;
	uint8_t head[MAX_HEAD_BYTES];
	int r;

	r = remote_read(runtime->remote, RADDR(before->address), head, runtime->layout.code_bytes);
	if (r >= 0)
		r = parse_head(runtime, before->address, head, &now);
	if (r < 0)
		return r;
	now.name_length = before->name_length;
	now.name_hash = before->name_hash;
	return identity_equal(&now, before) ? 0 : -EBADMSG;
}

static int read_entry(struct py_runtime *runtime, const struct code_identity *identity, struct code_entry **ret)
{
	CLEANUP(entry_freep) struct code_entry *entry = NULL;
	char *text;
	int r;

	entry = calloc(1, sizeof *entry);
	if (!entry)
		return -ENOMEM;
	entry->identity = *identity;
	entry->code.first_line = (int)identity->first_line;
	if (identity->bytecode_object)
		entry->code.bytecode = identity->bytecode_object + reader_field(runtime, BYTES_DATA);
	else
		entry->code.bytecode = identity->address + reader_field(runtime, CODE_BYTECODE);
	entry->code.bytecode_bytes = (uint32_t)identity->bytecode_bytes;
	entry->code.first_sample = runtime->n_samples;
	entry->code.number = mix64(monotonic_ns() ^ mix64((uintptr_t)entry));
	entry->code.line_kind = (uint8_t)runtime->layout.field[LINES];
	r = reader_string(runtime, identity->qualname, MAX_NAME_BYTES, &text);
	if (r < 0)
		return r;
	entry->code.qualname = text;
	r = reader_string(runtime, identity->file, MAX_PATH_BYTES, &text);
	if (r < 0)
		return r;
	entry->code.file = text;
	r = read_line_table(runtime, identity->lines, &entry->code);
	if (r >= 0)
		r = check_same(runtime, identity);
	if (r < 0)
		return r;
	entry->code.is_internal = has_no_line(&entry->code);
	r = add_entry(&runtime->codes, entry);
	if (r < 0)
		return r;
	*ret = TAKE(entry);
	return 0;
}

/* If code objects have no version, the length and hash of the name replace it. */
static int read_name_identities(struct py_runtime *runtime, struct code_identity *identities, size_t n)
{
	uint64_t addresses[BATCH], words[2];
	int r = 0;

	if (reader_has(runtime, CODE_VERSION))
		return 0;
	for (size_t i = 0; i < n; i++)
		addresses[i] = identities[i].qualname + reader_field(runtime, STRING_LENGTH);
	page_cache_prepare(&runtime->page_cache, addresses, n, sizeof words);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = page_cache_read(&runtime->page_cache, addresses[i], words, sizeof words);
		identities[i].name_length = words[0];
		identities[i].name_hash = words[1];
	}
	return r;
}

/* Read the length of bytecodes that are separate objects. */
static int read_bytecode_sizes(struct py_runtime *runtime, struct code_identity *identities, size_t n)
{
	uint64_t addresses[BATCH];

	if (!reader_has(runtime, CODE_BYTECODE_OBJECT))
		return 0;
	for (size_t i = 0; i < n; i++)
		addresses[i] = identities[i].bytecode_object + reader_field(runtime, OBJECT_SIZE);
	page_cache_prepare(&runtime->page_cache, addresses, n, sizeof identities[0].bytecode_bytes);
	for (size_t i = 0; i < n; i++) {
		int r = page_cache_read(&runtime->page_cache, addresses[i], &identities[i].bytecode_bytes,
					sizeof identities[i].bytecode_bytes);

		if (r < 0)
			return r;
		if (identities[i].bytecode_bytes == 0 || identities[i].bytecode_bytes > MAX_BYTECODE_BYTES)
			return -EBADMSG;
	}
	return 0;
}

static int read_batch(struct py_runtime *runtime, const uint64_t *addresses, size_t n)
{
	struct code_identity identities[BATCH];
	uint8_t head[MAX_HEAD_BYTES];
	uint64_t type = 0;
	int r;

	page_cache_prepare(&runtime->page_cache, addresses, n, runtime->layout.code_bytes);
	for (size_t i = 0; i < n; i++) {
		r = page_cache_read(&runtime->page_cache, addresses[i], head, runtime->layout.code_bytes);
		if (r >= 0)
			r = parse_head(runtime, addresses[i], head, &identities[i]);
		if (r < 0)
			return r;
		type = word_at(head, reader_field(runtime, OBJECT_TYPE));
	}
	r = read_name_identities(runtime, identities, n);
	if (r >= 0)
		r = read_bytecode_sizes(runtime, identities, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct code_entry *entry = find_entry(&runtime->codes, &identities[i]);
		size_t slot = mix64(addresses[i]) % N_ELEMENTS(runtime->codes.seen);

		r = entry ? 0 : read_entry(runtime, &identities[i], &entry);
		if (r < 0)
			return r;
		if (runtime->codes.type == 0)
			runtime->codes.type = type;
		runtime->codes.seen[slot].sample = runtime->n_samples;
		runtime->codes.seen[slot].address = addresses[i];
		runtime->codes.seen[slot].code = &entry->code;
	}
	return 0;
}

static struct py_code *seen_code(const struct py_runtime *runtime, uint64_t address)
{
	size_t slot = mix64(address) % N_ELEMENTS(runtime->codes.seen);

	if (runtime->codes.seen[slot].sample != runtime->n_samples || runtime->codes.seen[slot].address != address)
		return NULL;
	return runtime->codes.seen[slot].code;
}

/* Collect unseen addresses, each once. */
static size_t collect_unseen(const struct py_runtime *runtime, const uint64_t *addresses, size_t n, uint64_t *batch)
{
	size_t n_batch = 0;

	for (size_t i = 0; i < n && n_batch < BATCH; i++) {
		bool known = seen_code(runtime, addresses[i]) != NULL;

		for (size_t k = n_batch; k-- > 0 && !known;)
			known = batch[k] == addresses[i];
		if (!known)
			batch[n_batch++] = addresses[i];
	}
	return n_batch;
}

int reader_codes(struct py_runtime *runtime, const uint64_t *addresses, size_t n, struct py_code **ret)
{
	uint64_t batch[BATCH];
	size_t done = 0;

	while (done < n) {
		size_t n_batch, before = done;
		int r;

		while (done < n && (ret[done] = seen_code(runtime, addresses[done])) != NULL)
			done++;
		if (done == n)
			break;
		n_batch = collect_unseen(runtime, addresses + done, MIN(n - done, (size_t)BATCH), batch);
		r = read_batch(runtime, batch, n_batch);
		/* Two codes of a batch may share a slot: read this one alone. */
		if (r >= 0 && before == done && !seen_code(runtime, addresses[done]))
			r = read_batch(runtime, &addresses[done], 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The code's identity from the record; the length of a separate bytecode object is missing. */
static int recorded_identity(const struct py_runtime *runtime, const struct python_entry *entry,
			     struct code_identity *ret)
{
	bool is_object = reader_has(runtime, CODE_BYTECODE_OBJECT);

	if (entry->name == 0 || entry->file == 0 ||
	    (!is_object && (entry->size == 0 || entry->size > MAX_BYTECODE_BYTES / UNIT_BYTES)))
		return -EBADMSG;
	*ret = (struct code_identity){
		.address = entry->code,
		.qualname = entry->name,
		.file = entry->file,
		.lines = entry->lines,
		.bytecode_object = is_object ? entry->size : 0,
		.name_length = entry->name_length,
		.name_hash = entry->name_hash,
		.bytecode_bytes = is_object ? 0 : entry->size * UNIT_BYTES,
		.first_line = entry->first_line,
		.version = entry->version,
	};
	return 0;
}

int reader_recorded_code(struct py_runtime *runtime, const struct python_entry *entry, struct py_code **ret)
{
	struct code_identity identity;
	struct code_entry *known;
	int r;

	r = recorded_identity(runtime, entry, &identity);
	if (r < 0)
		return r;
	known = find_entry(&runtime->codes, &identity);
	if (!known) {
		r = read_batch(runtime, &identity.address, 1);
		known = r < 0 ? NULL : find_entry(&runtime->codes, &identity);
	}
	if (!known)
		return r < 0 ? r : -ESTALE;
	*ret = &known->code;
	return 0;
}

/* Source: _PyCodeArray in Include/cpython/code.h, 3.14: a length, then pointers. */
int reader_bytecode(struct py_runtime *runtime, uint64_t code, uint32_t index, uint64_t *ret)
{
	uint64_t array, n;
	int r;

	r = page_cache_read(&runtime->page_cache, code + reader_field(runtime, CODE_BYTECODES), &array, sizeof array);
	if (r >= 0)
		r = page_cache_read(&runtime->page_cache, array, &n, sizeof n);
	if (r < 0)
		return r;
	if (index >= n)
		return -EBADMSG;
	return page_cache_read(&runtime->page_cache, array + sizeof n + index * sizeof *ret, ret, sizeof *ret);
}

int reader_add_bytecode(struct py_runtime *runtime, struct py_code *code, uint64_t start)
{
	return py_code_at(runtime, start) == code ? 0 : add_range(&runtime->codes, code, start);
}

struct py_code *py_code_at(struct py_runtime *runtime, uint64_t address)
{
	const struct code_cache *codes = &runtime->codes;
	size_t n = find_range(codes, address);

	if (n == codes->n_ranges || address < codes->ranges[n].start)
		return NULL;
	return codes->ranges[n].code;
}

bool py_code_may_be_newer(const struct py_runtime *runtime, const struct py_code *code)
{
	return code->first_sample == runtime->n_samples;
}

uint64_t reader_bytecode_start(const struct py_runtime *runtime, uint64_t address)
{
	return runtime->codes.ranges[find_range(&runtime->codes, address)].start;
}

size_t py_code_count(const struct py_runtime *runtime)
{
	return runtime->codes.n;
}

struct py_code *py_code_nth(const struct py_runtime *runtime, size_t n)
{
	return n < runtime->codes.n ? &runtime->codes.entries[n]->code : NULL;
}
