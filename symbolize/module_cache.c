/* SPDX-License-Identifier: MIT */
/* module_cache.c - reads and writes one module's entry of the cache.
 *
 * An entry is valid if the module, its separate debug file and this program are the same as when it was
 * written (struct cache_key). Its users check its contents like any foreign file.
 *
 * Invariants: tables from the cache point into module->cache_file, which is freed after them. There is no entry
 * for a module whose names were given up, or whose file was truncated: another time it may have more.
 */
#include "symbolize/module_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/cache.h"
#include "symbolize/search.h"

enum { WORTH_SYMBOLS = 256, MAX_STRINGS = 32 << 20 };

/* ---- Read ---- */

static int find_key(struct symbol_module *module, struct cache_key *key)
{
	const struct build_id *id = elf_file_build_id(module->elf);
	CLEANUP(closep) int debug = -1;
	struct stat st;

	if (!search_has_cache(module->search) || module->memory || module->is_debug_file || id->n_bytes == 0)
		return -ENOENT;
	memset(key, 0, sizeof *key);
	key->n_program = cache_program(key->program);
	key->n_id = id->n_bytes;
	memcpy(key->id, id->bytes, id->n_bytes);
	if (key->n_program == 0 || fstat(elf_file_fd(module->elf), &st) < 0)
		return -ENOENT;
	cache_file_of(&st, &key->module);
	debug = module_find_separate(module);
	if (debug >= 0 && fstat(debug, &st) < 0)
		return -ENOENT;
	if (debug >= 0)
		cache_file_of(&st, &key->debug);
	return 0;
}

static int open_entry(struct symbol_module *module)
{
	CLEANUP(closep) int fd = -1;
	char name[CACHE_NAME_BYTES];
	const void *bytes;
	size_t n;
	int r;

	cache_key_name(&module->cache_key, name);
	r = search_cached(module->search, name, &fd);
	if (r >= 0)
		r = file_mapping_new(fd, &module->cache_file);
	if (r < 0)
		return r;
	bytes = file_mapping_bytes(module->cache_file, &n);
	return cache_entry_read(bytes, n, &module->cache_key, &module->cached);
}

int module_open_cached(struct symbol_module *module)
{
	int r;

	if (module->tried_cache)
		return 0;
	module->tried_cache = true;
	r = find_key(module, &module->cache_key);
	module->has_cache_key = r >= 0;
	if (r >= 0)
		r = open_entry(module);
	if (r < 0)
		file_mapping_free(TAKE(module->cache_file));
	return r == -ENOMEM ? r : 0;
}

/* Treat a damaged entry as missing. */
static int restored(int r)
{
	return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

int module_cached_symbols(struct symbol_module *module)
{
	const struct cache_bytes *symbols = &module->cached.parts[CACHE_SYMBOLS],
				 *strings = &module->cached.parts[CACHE_STRINGS];
	int r;

	if (!symbols->bytes)
		return 0;
	r = symtab_restore(symbols->bytes, symbols->n / sizeof(struct cache_symbol), strings->bytes, strings->n,
			   &module->symtab);
	if (r >= 0) {
		module->symtab->has_static = module->cached.flags & CACHE_HAS_STATIC;
		module->symtab->has_gc_main = module->cached.flags & CACHE_HAS_GC_MAIN;
	}
	return restored(r);
}

int module_cached_methods(struct symbol_module *module)
{
	const struct cache_bytes *methods = &module->cached.parts[CACHE_METHODS],
				 *strings = &module->cached.parts[CACHE_STRINGS];

	if (!methods->bytes)
		return 0;
	return restored(method_tables_restore(methods->bytes, methods->n / sizeof(struct cache_method), strings->bytes,
					      strings->n, &module->methods));
}

int module_cached_internal(struct symbol_module *module)
{
	const struct cache_bytes *starts = &module->cached.parts[CACHE_INTERNAL];

	if (!starts->bytes)
		return 0;
	return restored(internal_functions_restore(starts->bytes, starts->n / sizeof(uint64_t), &module->internal));
}

bool module_cached_index(const struct symbol_module *module, struct debug_index *ret)
{
	const struct cache_bytes *units = &module->cached.parts[CACHE_UNITS],
				 *ranges = &module->cached.parts[CACHE_RANGES];

	*ret = (struct debug_index){ units->bytes, ranges->bytes, units->n / sizeof(uint64_t),
				     ranges->n / sizeof(struct cache_range) };
	return units->bytes && ranges->bytes;
}

int module_cached_lines(struct symbol_module *module)
{
	const struct cache_bytes *image = &module->cached.parts[CACHE_IMAGE];
	struct debug_index index;
	bool has_index = module_cached_index(module, &index);
	int r;

	if (module->cached.flags & CACHE_HAS_NO_LINES)
		return 1;
	if (!image->bytes)
		return 0;
	r = unpacked_restore(image->bytes, image->n, &module->unpacked);
	if (r >= 0)
		r = debug_lines_new(unpacked_dwarf(module->unpacked), 0,
				    module->debug_path ? module->debug_path : module->path, has_index ? &index : NULL,
				    &module->lines);
	if (r < 0)
		unpacked_free(TAKE(module->unpacked));
	return restored(r);
}

/* ---- Write ---- */

/* Everything that an entry's parts point to while it is written. */
struct keeping {
	struct cache_entry entry;
	struct cache_symbol *symbols;
	struct cache_method *methods;
	uint64_t *starts;
	struct debug_index index;
	char *strings;
	size_t n_strings, strings_allocated;
	const char *last; /* the last added string and its offset: owners repeat */
	uint32_t last_offset;
};

static void keeping_done(struct keeping *keeping)
{
	free(keeping->symbols);
	free(keeping->methods);
	free(keeping->starts);
	debug_index_done(&keeping->index);
	free(keeping->strings);
}

static int put_string(struct keeping *keeping, const char *string, uint32_t *ret)
{
	size_t n = string ? strlen(string) + 1 : 0;

	*ret = 0;
	if (n == 0 || (string == keeping->last && (*ret = keeping->last_offset)))
		return 0;
	if (n > MAX_STRINGS - keeping->n_strings)
		return -E2BIG;
	if (keeping->n_strings + n > keeping->strings_allocated) {
		size_t allocated = MAX(keeping->strings_allocated * 2, keeping->n_strings + n + (1 << 16));
		char *strings = realloc(keeping->strings, allocated);

		if (!strings)
			return -ENOMEM;
		keeping->strings = strings;
		keeping->strings_allocated = allocated;
	}
	memcpy(keeping->strings + keeping->n_strings, string, n);
	keeping->last = string;
	*ret = keeping->last_offset = (uint32_t)keeping->n_strings;
	keeping->n_strings += n;
	return 0;
}

static void set_part(struct keeping *keeping, enum cache_part part, const void *bytes, size_t n)
{
	keeping->entry.parts[part] = (struct cache_bytes){ bytes, n };
}

static int keep_symbols(struct keeping *keeping, const struct symtab *symtab)
{
	keeping->symbols = calloc(symtab->n_entries + 1, sizeof *keeping->symbols);
	if (!keeping->symbols)
		return -ENOMEM;
	for (size_t i = 0; i < symtab->n_entries; i++) {
		const struct symtab_entry *from = &symtab->entries[i];
		struct cache_symbol *to = &keeping->symbols[i];
		int r;

		*to = (struct cache_symbol){ .address = from->address,
					     .parent = from->parent,
					     .body_of = from->body_of,
					     .size = from->size,
					     .rank = from->rank,
					     .n_underscores = from->n_underscores,
					     .exported = from->exported };
		r = put_string(keeping, from->name, &to->name);
		if (r < 0)
			return r;
	}
	keeping->entry.flags |= symtab->has_static ? CACHE_HAS_STATIC : 0;
	keeping->entry.flags |= symtab->has_gc_main ? CACHE_HAS_GC_MAIN : 0;
	set_part(keeping, CACHE_SYMBOLS, keeping->symbols, symtab->n_entries * sizeof *keeping->symbols);
	return 0;
}

static int keep_methods(struct keeping *keeping, const struct method_tables *methods)
{
	size_t n = 0, allocated = 0;
	const struct method *from;

	for (; (from = method_tables_nth(methods, n)) != NULL; n++) {
		struct cache_method *to;
		int r;

		r = grow(&keeping->methods, n, &allocated, sizeof *keeping->methods);
		if (r < 0)
			return r;
		to = &keeping->methods[n];
		*to = (struct cache_method){ .address = from->address,
					     .kind = from->kind,
					     .is_body = from->is_body,
					     .is_shared = from->is_shared,
					     .is_ambiguous = from->is_ambiguous };
		r = put_string(keeping, from->member, &to->member);
		if (r >= 0)
			r = put_string(keeping, from->owner, &to->owner);
		if (r < 0)
			return r;
	}
	/* An empty part means that the library was scanned and has no methods. */
	set_part(keeping, CACHE_METHODS, keeping->methods ? (void *)keeping->methods : "",
		 n * sizeof *keeping->methods);
	return 0;
}

static int keep_internal(struct keeping *keeping, const struct internal_functions *internal)
{
	size_t n;
	int r;

	r = internal_functions_starts(internal, &keeping->starts, &n);
	if (r >= 0)
		set_part(keeping, CACHE_INTERNAL, keeping->starts, n * sizeof *keeping->starts);
	return r;
}

static int keep_lines(struct keeping *keeping, const struct symbol_module *module)
{
	const void *image;
	size_t n;
	int r;

	if (!module->lines) {
		keeping->entry.flags |= module->tried_lines && !module->may_harm ? CACHE_HAS_NO_LINES : 0;
		return 0;
	}
	r = debug_lines_index(module->lines, &keeping->index);
	if (r < 0)
		return r == -ENOTSUP ? 0 : r;
	set_part(keeping, CACHE_UNITS, keeping->index.units, keeping->index.n_units * sizeof *keeping->index.units);
	set_part(keeping, CACHE_RANGES, keeping->index.ranges, keeping->index.n_ranges * sizeof *keeping->index.ranges);
	image = module->unpacked ? unpacked_image(module->unpacked, &n) : NULL;
	if (image)
		set_part(keeping, CACHE_IMAGE, image, n);
	return 0;
}

/* Keep old parts that this run did not need; only names of methods change offsets. */
static int keep_what_was(struct keeping *keeping, struct symbol_module *module)
{
	static const enum cache_part parts[] = { CACHE_INTERNAL, CACHE_UNITS, CACHE_RANGES, CACHE_IMAGE };
	bool has_lines = module->lines || (keeping->entry.flags & CACHE_HAS_NO_LINES);

	keeping->entry.flags |= module->tried_lines ? 0 : module->cached.flags & CACHE_HAS_NO_LINES;
	for (size_t i = 0; i < N_ELEMENTS(parts); i++)
		if (!keeping->entry.parts[parts[i]].bytes && (parts[i] == CACHE_INTERNAL || !has_lines))
			keeping->entry.parts[parts[i]] = module->cached.parts[parts[i]];
	return module->methods ? 1 : module_cached_methods(module);
}

static int write_entry(const struct symbol_module *module, const struct keeping *keeping)
{
	struct cache_pieces pieces;
	char name[CACHE_NAME_BYTES];
	int r;

	r = cache_entry_write(&keeping->entry, &module->cache_key, &pieces);
	if (r < 0)
		return r;
	cache_key_name(&module->cache_key, name);
	return cache_write(search_cache(module->search), name, &pieces);
}

static int write_module(struct symbol_module *module)
{
	CLEANUP(keeping_done) struct keeping keeping = { .n_strings = 1 };
	struct file_guard guard;
	int r;

	keeping.strings = calloc(1, keeping.strings_allocated = 1 << 16);
	if (!keeping.strings)
		return -ENOMEM;
	file_guard_enter(&guard);
	r = keep_symbols(&keeping, module->symtab);
	if (r >= 0 && module->internal)
		r = keep_internal(&keeping, module->internal);
	if (r >= 0)
		r = keep_lines(&keeping, module);
	if (r >= 0)
		r = keep_what_was(&keeping, module);
	if (r > 0 && module->methods)
		r = keep_methods(&keeping, module->methods);
	set_part(&keeping, CACHE_STRINGS, keeping.strings, keeping.n_strings);
	if (file_guard_leave(&guard) || elf_file_is_cut(module->elf))
		return -ESTALE;
	return r < 0 ? r : write_entry(module, &keeping);
}

/* Reading a small library again takes less time than reading a file. */
static bool is_worth_it(const struct symbol_module *module)
{
	return module->symtab->n_entries >= WORTH_SYMBOLS || module->methods || module->unpacked;
}

void symbol_module_keep(struct symbol_module *module)
{
	if (module->n_found_out == 0 || !module->has_cache_key || !search_cache(module->search) || !module->is_ready ||
	    module->limit != SYMBOL_LIMIT_NONE || !is_worth_it(module))
		return;
	(void)write_module(module);
	module->n_found_out = 0; /* write only once */
}
