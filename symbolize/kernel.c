/* SPDX-License-Identifier: MIT */
/* kernel.c - kernel functions by address, from /proc/kallsyms.
 *
 * The file lists 100,000 to 200,000 symbols as "address type name [module]". It
 * is read once, as a stream; each symbol takes 16 bytes and its name.
 *
 * Invariants: entries are sorted by address; names are adjacent in one
 * block, a module's name after its functions' ("name\0[module]\0").
 * Source: proc(5); kernel/kallsyms.c, Linux 6.12.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/kernel_private.h"

enum { MAX_NAME_BYTES = 64 << 20 };

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->modules);
	free(symbols->entries);
	free(symbols->names);
	free(symbols);
}

void kernel_symbols_freep(struct kernel_symbols **symbols)
{
	kernel_symbols_free(*symbols);
}

static int keep_text(struct kernel_symbols *symbols, const char *text, size_t n)
{
	int r;

	if (symbols->n_name_bytes + n >= MAX_NAME_BYTES)
		return -ENOMEM;
	while (symbols->name_bytes_allocated < symbols->n_name_bytes + n + 1) {
		r = grow(&symbols->names, symbols->name_bytes_allocated, &symbols->name_bytes_allocated, 1);
		if (r < 0)
			return r;
	}
	memcpy(symbols->names + symbols->n_name_bytes, text, n);
	symbols->names[symbols->n_name_bytes + n] = '\0';
	symbols->n_name_bytes += n + 1;
	return 0;
}

/* Parse hexadecimal digits as the kernel writes them. Returns the text after them. */
static const char *read_address(const char *at, uint64_t *ret)
{
	uint64_t value = 0;

	for (;; at++) {
		unsigned digit = (unsigned char)*at - '0';

		if (digit > 9)
			digit = (unsigned char)*at - 'a' + 10;
		if (digit > 15)
			break;
		value = value << 4 | digit;
	}
	*ret = value;
	return at;
}

static bool is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/*
 * Extend the kernel image: from _text, or _stext if _text is not listed, to its last symbol. _end is only listed with
 * CONFIG_KALLSYMS_ALL.
 */
static void widen_image(struct kernel_symbols *symbols, uint64_t address, const char *name, const char *end)
{
	size_t n = (size_t)(end - name);

	if (n == 5 && memcmp(name, "_text", n) == 0)
		symbols->text = address;
	else if (n == 6 && memcmp(name, "_stext", n) == 0 && symbols->text == 0)
		symbols->text = address;
	symbols->end = MAX(symbols->end, address + 1);
}

/* Parse a line that ends at `end`; skip it if it has no code or no address. */
static int take_line(struct kernel_symbols *symbols, const char *line, const char *end)
{
	struct kernel_entry *entry;
	const char *rest, *name, *name_end, *module;
	uint64_t address;
	int r;

	rest = read_address(line, &address);
	if (address == 0 || end - rest < 4 || rest[0] != ' ' || !is_code(rest[1]) || rest[2] != ' ')
		return 0;
	name = rest + 3;
	name_end = memchr(name, '\t', (size_t)(end - name)) ?: end;
	r = grow(&symbols->entries, symbols->n_entries, &symbols->entries_allocated, sizeof *symbols->entries);
	if (r < 0)
		return r;
	module = memchr(name_end, '[', (size_t)(end - name_end));
	if (!module)
		widen_image(symbols, address, name, name_end);
	entry = &symbols->entries[symbols->n_entries++];
	*entry = (struct kernel_entry){
		.address = address,
		.name = (uint32_t)symbols->n_name_bytes,
		.has_module = module != NULL,
	};
	r = keep_text(symbols, name, (size_t)(name_end - name));
	if (r >= 0 && module)
		r = keep_text(symbols, module, (size_t)(end - module));
	return r;
}

/* Parse all complete lines. Returns their size in bytes, or -ENOMEM. */
static ssize_t take_lines(struct kernel_symbols *symbols, const char *bytes, size_t n)
{
	const char *line = bytes, *end;

	while ((end = memchr(line, '\n', n - (size_t)(line - bytes))) != NULL) {
		int r = take_line(symbols, line, end);

		if (r < 0)
			return r;
		line = end + 1;
	}
	return line - bytes;
}

static int read_all(const char *path, struct kernel_symbols *symbols)
{
	enum { BUFFER_BYTES = 64 << 10 };
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(freep) char *buffer = malloc(BUFFER_BYTES);
	size_t n = 0;

	if (fd < 0)
		return -errno;
	if (!buffer)
		return -ENOMEM;
	for (;;) {
		ssize_t n_read = read(fd, buffer + n, BUFFER_BYTES - n), taken;

		if (n_read <= 0)
			return n_read < 0 ? -errno : 0;
		n += (size_t)n_read;
		taken = take_lines(symbols, buffer, n);
		if (taken < 0)
			return (int)taken;
		n -= (size_t)taken;
		if (n == BUFFER_BYTES)
			return -EIO; /* the kernel writes no line this long */
		memmove(buffer, buffer + taken, n);
	}
}

/* The last of several names at one address wins: prefer few underscores. */
static int compare_entries(const void *a, const void *b, void *data)
{
	const struct kernel_entry *x = a, *y = b;
	const char *names = data, *name_x, *name_y;
	size_t underscores_x, underscores_y;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	name_x = names + x->name;
	name_y = names + y->name;
	underscores_x = strspn(name_x, "_");
	underscores_y = strspn(name_y, "_");
	if (underscores_x != underscores_y)
		return underscores_x > underscores_y ? -1 : 1;
	return strcmp(name_x, name_y);
}

static void sort_some(struct kernel_symbols *symbols, size_t from, size_t to)
{
	if (to - from > 1)
		qsort_r(symbols->entries + from, to - from, sizeof *symbols->entries, compare_entries, symbols->names);
}

/* Number of leading entries that are sorted by address. */
static size_t count_ordered(const struct kernel_symbols *symbols)
{
	size_t n = 1;

	while (n < symbols->n_entries && symbols->entries[n - 1].address <= symbols->entries[n].address)
		n++;
	return n;
}

/* Merge the sorted entries from n_ordered on into the others, backwards and in place. */
static int merge_rest(struct kernel_symbols *symbols, size_t n_ordered)
{
	size_t to = symbols->n_entries, n_rest = to - n_ordered;
	CLEANUP(freep) struct kernel_entry *rest = calloc(n_rest + 1, sizeof *rest);
	struct kernel_entry *entries = symbols->entries;

	if (!rest)
		return -ENOMEM;
	memcpy(rest, entries + n_ordered, n_rest * sizeof *rest);
	while (n_rest > 0) {
		bool is_earlier = n_ordered > 0 &&
				  compare_entries(&entries[n_ordered - 1], &rest[n_rest - 1], symbols->names) > 0;

		entries[--to] = is_earlier ? entries[--n_ordered] : rest[--n_rest];
	}
	return 0;
}

/* The kernel's own symbols are sorted by address. Symbols of modules and BPF programs follow unsorted. */
static int sort_entries(struct kernel_symbols *symbols)
{
	size_t n_ordered = count_ordered(symbols), next;

	for (size_t i = 0; i < n_ordered; i = next) {
		next = i + 1;
		while (next < n_ordered && symbols->entries[next].address == symbols->entries[i].address)
			next++;
		sort_some(symbols, i, next);
	}
	sort_some(symbols, n_ordered, symbols->n_entries);
	return merge_rest(symbols, n_ordered);
}

int kernel_symbols_open(const char *path, struct kernel_symbols **ret)
{
	CLEANUP(kernel_symbols_freep) struct kernel_symbols *symbols = NULL;
	int r;

	symbols = calloc(1, sizeof *symbols);
	if (!symbols)
		return -ENOMEM;
	r = read_all(path ? path : "/proc/kallsyms", symbols);
	if (r < 0)
		return r;
	/* Hidden addresses read as zero. */
	if (symbols->n_entries == 0)
		return -EPERM;
	r = sort_entries(symbols);
	if (r >= 0)
		r = kernel_find_modules(symbols);
	if (r < 0)
		return r;

	*ret = TAKE(symbols);
	return 0;
}

const struct kernel_entry *kernel_find_entry(const struct kernel_symbols *symbols, uint64_t ip)
{
	size_t low = 0, high = symbols->n_entries;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->entries[middle].address <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? NULL : &symbols->entries[low - 1];
}

const char *kernel_symbol_lookup(const struct kernel_symbols *symbols, uint64_t ip, const char **ret_module)
{
	const struct kernel_entry *entry = kernel_find_entry(symbols, ip);

	if (!entry)
		return NULL;
	if (ret_module)
		*ret_module = kernel_entry_module(symbols, entry);
	return symbols->names + entry->name;
}
