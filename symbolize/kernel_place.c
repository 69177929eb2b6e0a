/* SPDX-License-Identifier: MIT */
/* kernel_place.c - a place in the kernel that does not depend on the load address of this boot.
 *
 * The kernel chooses its own address and those of its modules at each boot (KASLR), and an absolute address in a file
 * would reveal them. A place does not, and is still valid after the next boot:
 *
 *   bit 63          0; 1: an absolute address, in older recordings
 *   bit 62          0: bits 0 to 61 count bytes from _text, the start of the kernel's own image
 *                   1: code elsewhere, in
 *   bit 61             0: a module, and bits 0 to 30 count bytes from its lowest function
 *                      1: code that the kernel generated (BPF), and they count from the symbol's start
 *   bits 31 to 60      the hash of the module's or the symbol's name
 *   bits 0 to 30       bytes
 *
 * Invariant: no place reveals the distance of two of these. Code in none of them has no place.
 * Source: kernel/kallsyms.c (pseudo-modules "bpf", "__builtin__ftrace", "__builtin__kprobes"), Linux 6.18.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/kernel_private.h"

#define ABSOLUTE (UINT64_C(1) << 63)
#define ELSEWHERE (UINT64_C(1) << 62)
#define MADE (UINT64_C(1) << 61)

enum { OFFSET_BITS = 31, HASH_BITS = 30 };

/* No function is larger: an address further from the last symbol is code without a symbol. */
enum { MAX_FUNCTION_BYTES = 1 << 20 };

/* Recordings contain this hash, so it must never change. */
static uint32_t hash_of(const char *name)
{
	uint64_t hash = mix64(hash_bytes(HASH_START, name, strlen(name)));

	return (uint32_t)hash & ((1U << HASH_BITS) - 1);
}

static bool is_made(const char *module)
{
	return strcmp(module, "[bpf]") == 0 || strncmp(module, "[__builtin__", 12) == 0;
}

const char *kernel_entry_module(const struct kernel_symbols *symbols, const struct kernel_entry *entry)
{
	const char *name = symbols->names + entry->name;

	return entry->has_module ? name + strlen(name) + 1 : NULL;
}

static struct kernel_module *find_module(const struct kernel_symbols *symbols, uint32_t hash)
{
	for (size_t i = 0; i < symbols->n_modules; i++)
		if (symbols->modules[i].hash == hash)
			return &symbols->modules[i];
	return NULL;
}

int kernel_find_modules(struct kernel_symbols *symbols)
{
	for (size_t i = 0; i < symbols->n_entries; i++) {
		const char *module = kernel_entry_module(symbols, &symbols->entries[i]);
		uint32_t hash;

		if (!module || is_made(module))
			continue;
		hash = hash_of(module);
		if (find_module(symbols, hash))
			continue; /* entries are sorted: the first one has the lowest address */
		if (grow(&symbols->modules, symbols->n_modules, &symbols->modules_allocated, sizeof *symbols->modules) <
		    0)
			return -ENOMEM;
		symbols->modules[symbols->n_modules++] = (struct kernel_module){ .start = symbols->entries[i].address,
										 .hash = hash };
	}
	return 0;
}

static uint64_t place_elsewhere(uint64_t kind, uint32_t hash, uint64_t offset)
{
	return ELSEWHERE | kind | (uint64_t)hash << OFFSET_BITS | offset;
}

static int place_in_module(const struct kernel_symbols *symbols, const struct kernel_entry *entry, const char *name,
			   uint64_t ip, uint64_t *ret)
{
	const struct kernel_module *module = is_made(name) ? NULL : find_module(symbols, hash_of(name));
	uint64_t offset = ip - (module ? module->start : entry->address);

	if (ip - entry->address >= MAX_FUNCTION_BYTES || offset >> OFFSET_BITS)
		return -ENOENT;
	*ret = module ? place_elsewhere(0, module->hash, offset)
		      : place_elsewhere(MADE, hash_of(symbols->names + entry->name), offset);
	return 0;
}

int kernel_symbols_place(const struct kernel_symbols *symbols, uint64_t ip, uint64_t *ret)
{
	const struct kernel_entry *entry;
	const char *module;

	if (symbols->text > 0 && ip >= symbols->text && ip < symbols->end) {
		*ret = ip - symbols->text;
		return 0;
	}
	entry = kernel_find_entry(symbols, ip);
	module = entry ? kernel_entry_module(symbols, entry) : NULL;
	return module ? place_in_module(symbols, entry, module, ip, ret) : -ENOENT;
}

/* The kernel generates this code again after each boot: only the name stays. */
static uint64_t find_made(const struct kernel_symbols *symbols, uint32_t hash)
{
	for (size_t i = 0; i < symbols->n_entries; i++) {
		const char *module = kernel_entry_module(symbols, &symbols->entries[i]);

		if (module && is_made(module) && hash_of(symbols->names + symbols->entries[i].name) == hash)
			return symbols->entries[i].address;
	}
	return 0;
}

bool kernel_place_is_absolute(uint64_t place)
{
	return place & ABSOLUTE;
}

int kernel_symbols_address(const struct kernel_symbols *symbols, uint64_t place, uint64_t *ret)
{
	uint32_t hash = place >> OFFSET_BITS & ((1U << HASH_BITS) - 1);
	uint64_t offset = place & ((UINT64_C(1) << OFFSET_BITS) - 1), start;
	const struct kernel_module *module;

	if (kernel_place_is_absolute(place)) {
		*ret = place;
		return 0;
	}
	if (!(place & ELSEWHERE)) {
		if (symbols->text == 0 || place >= symbols->end - symbols->text)
			return -ENOENT;
		*ret = symbols->text + place;
		return 0;
	}
	module = place & MADE ? NULL : find_module(symbols, hash);
	start = place & MADE ? find_made(symbols, hash) : module ? module->start : 0;
	if (start == 0)
		return -ENOENT;
	*ret = start + offset;
	return 0;
}
