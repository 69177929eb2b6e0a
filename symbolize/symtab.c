/* SPDX-License-Identifier: MIT */
/* symtab.c - the function symbols of one module, sorted once, searched often.
 *
 * libdwfl chooses the table to read (the file's own, that of a separate debug
 * file, the compressed .gnu_debugdata, .dynsym) but each of its look-ups is
 * a linear scan; a module like libtorch has tens of thousands of symbols.
 *
 * Invariants: entries are sorted by address, addresses are the module's own
 * and distinct, names point into the mapped file and are never copied.
 */
#include "symbolize/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/names.h"

enum {
	MAX_NESTING = 16,      /* search enclosing symbols this many entries back */
	MAX_SYMBOLS = 1 << 23, /* a web browser has about a million */
	MAX_COMPARED = 256,    /* bytes of names at one address, which may have a long common prefix */
	BYTES_A_STEP = 64,
	STEPS_OF_LIBDW = 1 << 12, /* so that its time is accounted at once */
};

static bool is_function(const GElf_Sym *symbol, GElf_Word section)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && section != SHN_UNDEF;
}

static uint8_t count_underscores(const char *name)
{
	unsigned n = 0;

	while (n < UINT8_MAX && name[n] == '_')
		n++;
	return (uint8_t)n;
}

/*
 * glibc calls its exported functions by internal names, without PLT: __GI_read, and __EI_read for a version. Source:
 * glibc 2.36, include/libc-symbols.h, hidden_proto and versioned_symbol.
 */
static bool is_internal(const char *name)
{
	const char *alias = strstr(name, "_alias_");

	return strncmp(name, "__GI_", 5) == 0 || strncmp(name, "__EI_", 5) == 0 ||
	       (alias && alias[7] && alias[7 + strspn(alias + 7, "0123456789")] == '\0');
}

enum rank {
	RANK_OLD_VERSION = 1 << 0, /* "read@GLIBC_2.2.5"; programs are linked to "read@@GLIBC_2.34" */
	RANK_WEAK = 1 << 1,
	RANK_UNDERSCORES = 1 << 2, /* number of underscores, up to three */
	RANK_INTERNAL = 1 << 4,
	RANK_LOCAL = 1 << 5, /* or hidden */
	RANK_PART = 1 << 6,  /* a part or copy of another function */
	RANK_NO_SIZE = 1 << 7,
};

/* Prefer the name that callers use: exported, without a dot. */
static uint8_t rank_of(const GElf_Sym *symbol, const char *name)
{
	const int visibility = GELF_ST_VISIBILITY(symbol->st_other), binding = GELF_ST_BIND(symbol->st_info);
	const char *version = strchr(name, '@');
	unsigned rank = MIN(count_underscores(name), 3u) * RANK_UNDERSCORES;

	if (symbol->st_size == 0)
		rank |= RANK_NO_SIZE;
	if (memchr(name, '.', version ? (size_t)(version - name) : strlen(name)))
		rank |= RANK_PART;
	if (visibility == STV_HIDDEN || visibility == STV_INTERNAL ||
	    (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE))
		rank |= RANK_LOCAL;
	if (is_internal(name))
		rank |= RANK_INTERNAL;
	if (binding == STB_WEAK)
		rank |= RANK_WEAK;
	if (version && version[1] != '@')
		rank |= RANK_OLD_VERSION;
	return (uint8_t)rank;
}

static int compare_entries(const void *a, const void *b)
{
	const struct symtab_entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->n_underscores != y->n_underscores)
		return x->n_underscores < y->n_underscores ? -1 : 1;
	return strncmp(x->name, y->name, MAX_COMPARED) ?: (x->name > y->name) - (x->name < y->name);
}

static int collect(struct symtab *symtab, Dwfl_Module *dwfl_module, uint64_t bias, int n_symbols)
{
	size_t allocated = 0;

	for (int i = 1; i < MIN(n_symbols, MAX_SYMBOLS); i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		GElf_Word section;
		const char *name;
		size_t n_name;
		int r;

		name = dwfl_module_getsym_info(dwfl_module, i, &symbol, &address, &section, NULL, NULL);
		n_name = name ? strnlen(name, NAME_MAX_BYTES) : 0;
		if (!effort_go_on(8 + n_name / BYTES_A_STEP))
			return -ETIME;
		if (n_name == 0 || n_name == NAME_MAX_BYTES || !is_function(&symbol, section))
			continue;
		r = effort_grow(&symtab->entries, symtab->n_entries, &allocated, sizeof *symtab->entries);
		if (r < 0)
			return r;
		symtab->entries[symtab->n_entries++] = (struct symtab_entry){
			.address = address - bias,
			.name = name,
			.size = (uint32_t)MIN(symbol.st_size, (GElf_Xword)UINT32_MAX),
			.rank = rank_of(&symbol, name),
			.n_underscores = count_underscores(name),
			.exported = GELF_ST_BIND(symbol.st_info) == STB_GLOBAL,
		};
		symtab->has_static |= GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
	}
	return 0;
}

/* ---- Index of names, before duplicates are dropped ---- */

struct name_index {
	uint32_t *slots; /* entry numbers from 1 on, 0: free */
	size_t n_slots;  /* power of two */
};

static size_t hash(const char *name, size_t n_bytes)
{
	return (size_t)mix64(hash_bytes(HASH_START, name, n_bytes));
}

/*
 * Whether the name is not a part or copy of a function. Link-time optimisation renames equal statics to ".lto_priv.0".
 */
static bool is_whole(const char *name)
{
	static const char lto[] = ".lto_priv.";
	const char *rest = name + name_base_length(name);
	const size_t n = sizeof lto - 1;

	return rest[0] != '.' || (strncmp(rest, lto, n) == 0 && rest[n + strspn(rest + n, "0123456789")] == '\0');
}

static bool has_base(const struct symtab_entry *entry, const char *name, size_t n_bytes)
{
	return strncmp(entry->name, name, n_bytes) == 0 && name_base_length(entry->name) == n_bytes;
}

/* Linear probing; the first of equal names wins. -ENOMEM, -ETIME. */
static int index_names(const struct symtab *symtab, struct name_index *index)
{
	index->n_slots = 16;
	while (index->n_slots < 2 * symtab->n_entries)
		index->n_slots *= 2;
	index->slots = calloc(index->n_slots, sizeof *index->slots);
	if (!index->slots)
		return -ENOMEM;
	for (size_t i = 0; i < symtab->n_entries; i++) {
		const char *name = symtab->entries[i].name;
		size_t n_name = name_base_length(name), slot = hash(name, n_name) & (index->n_slots - 1);

		while (index->slots[slot] != 0 && !has_base(&symtab->entries[index->slots[slot] - 1], name, n_name))
			slot = (slot + 1) & (index->n_slots - 1);
		if (index->slots[slot] == 0 && is_whole(name))
			index->slots[slot] = (uint32_t)i + 1;
		if (!effort_go_on(2 + n_name / BYTES_A_STEP))
			return -ETIME;
	}
	return 0;
}

static const struct symtab_entry *find_name(const struct symtab *symtab, const struct name_index *index,
					    const char *name, size_t n_bytes)
{
	for (size_t slot = hash(name, n_bytes) & (index->n_slots - 1); index->slots[slot] != 0;
	     slot = (slot + 1) & (index->n_slots - 1)) {
		const struct symtab_entry *entry = &symtab->entries[index->slots[slot] - 1];

		if (has_base(entry, name, n_bytes))
			return entry;
	}
	return NULL;
}

/* Length of the parent function's name: "f" of "f.cold", or of "f_impl" and its parts. 0: no parent. */
static size_t parent_length(const char *name)
{
	return is_whole(name) ? 0 : name_base_length(name);
}

static size_t function_length(const char *name)
{
	static const char mark[] = "_impl";
	const size_t n = name_base_length(name), n_mark = sizeof mark - 1;

	return n > n_mark && strncmp(name + n - n_mark, mark, n_mark) == 0 ? n - n_mark : 0;
}

/* Run before make_unique(), because names may refer to any name of an address. */
static int find_relatives(struct symtab *symtab)
{
	CLEANUP(freep) uint32_t *slots = NULL;
	struct name_index index = { 0 };

	for (size_t i = 0; i < symtab->n_entries; i++) {
		struct symtab_entry *entry = &symtab->entries[i];
		const size_t n_parent = parent_length(entry->name), n_function = function_length(entry->name);
		const struct symtab_entry *parent = NULL, *function = NULL;
		int r = 0;

		symtab->has_gc_main |= strncmp(entry->name, "gc_collect_main", 15) == 0;
		if (n_parent == 0 && n_function == 0)
			continue;
		if (!slots) {
			r = index_names(symtab, &index);
			slots = index.slots;
		}
		if (r < 0)
			return r;
		if (n_parent > 0)
			parent = find_name(symtab, &index, entry->name, n_parent);
		if (n_function > 0)
			function = find_name(symtab, &index, entry->name, n_function);
		entry->parent = parent ? parent->address : 0;
		entry->body_of = function ? function->address : 0;
	}
	return 0;
}

/* Keep only the preferred name of each address. */
static void make_unique(struct symtab *symtab)
{
	size_t n = 0;

	for (size_t i = 0; i < symtab->n_entries; i++)
		if (n == 0 || symtab->entries[i].address != symtab->entries[n - 1].address)
			symtab->entries[n++] = symtab->entries[i];
	symtab->n_entries = n;
}

int symtab_new(Dwfl_Module *dwfl_module, uint64_t bias, struct symtab **ret)
{
	CLEANUP(symtab_freep) struct symtab *symtab = NULL;
	int n_symbols, r;

	symtab = calloc(1, sizeof *symtab);
	if (!symtab)
		return -ENOMEM;
	n_symbols = dwfl_module ? dwfl_module_getsymtab(dwfl_module) : 0;
	if (!effort_go_on(STEPS_OF_LIBDW))
		return -ETIME;
	r = collect(symtab, dwfl_module, bias, n_symbols);
	if (r < 0)
		return r;
	if (symtab->n_entries > 0)
		qsort(symtab->entries, symtab->n_entries, sizeof *symtab->entries, compare_entries);
	r = find_relatives(symtab);
	if (r < 0)
		return r;
	make_unique(symtab);

	*ret = TAKE(symtab);
	return 0;
}

int symtab_restore(const struct cache_symbol *symbols, size_t n, const char *strings, size_t n_strings,
		   struct symtab **ret)
{
	CLEANUP(symtab_freep) struct symtab *symtab = calloc(1, sizeof *symtab);
	int r;

	if (!symtab)
		return -ENOMEM;
	r = effort_take(n * sizeof *symtab->entries, true);
	if (r < 0)
		return r;
	symtab->entries = calloc(n + 1, sizeof *symtab->entries);
	if (!symtab->entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (symbols[i].name == 0 || symbols[i].name >= n_strings ||
		    (i > 0 && symbols[i].address <= symbols[i - 1].address))
			return -EBADMSG;
		symtab->entries[i] = (struct symtab_entry){
			.address = symbols[i].address,
			.name = strings + symbols[i].name,
			.parent = symbols[i].parent,
			.body_of = symbols[i].body_of,
			.size = symbols[i].size,
			.rank = symbols[i].rank,
			.n_underscores = symbols[i].n_underscores,
			.exported = symbols[i].exported != 0,
		};
	}
	symtab->n_entries = n;
	*ret = TAKE(symtab);
	return 0;
}

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	free(symtab->entries);
	free(symtab);
}

void symtab_freep(struct symtab **symtab)
{
	symtab_free(*symtab);
}

static bool covers(const struct symtab_entry *entry, uint64_t address, bool nearest)
{
	if (entry->size == 0)
		return nearest;
	return address - entry->address < entry->size;
}

const struct symtab_entry *symtab_find(const struct symtab *symtab, uint64_t address)
{
	size_t low = 0, high = symtab->n_entries;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symtab->entries[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < MIN(low, (size_t)MAX_NESTING); back++) {
		const struct symtab_entry *entry = &symtab->entries[low - 1 - back];

		if (covers(entry, address, back == 0))
			return entry;
	}
	return NULL;
}
