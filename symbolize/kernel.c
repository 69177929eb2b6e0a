/* kernel.c - kernel functions by address, from /proc/kallsyms.
 *
 * The file lists 100,000 to 200,000 symbols as "address type name [module]". It
 * is read once, as a stream; what is kept of a symbol are 16 bytes and its name.
 *
 * Invariants: entries are sorted by address; names stand one behind the other in
 * one block, a module's name behind its functions' ("name\0[module]\0").
 * Source: proc(5); kernel/kallsyms.c, Linux 6.12.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/symbolize.h"

struct kernel_entry {
	uint64_t address;
	uint32_t name; /* offset in names */
	bool has_module;
};

struct kernel_symbols {
	char *names;
	size_t n_name_bytes, name_bytes_allocated;
	struct kernel_entry *entries;
	size_t n_entries, entries_allocated;
};

enum { MAX_NAME_BYTES = 64 << 20 };

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
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
		r = grow(&symbols->names, symbols->name_bytes_allocated,
			 &symbols->name_bytes_allocated, 1);
		if (r < 0)
			return r;
	}
	memcpy(symbols->names + symbols->n_name_bytes, text, n);
	symbols->names[symbols->n_name_bytes + n] = '\0';
	symbols->n_name_bytes += n + 1;
	return 0;
}

/* One line; what does not describe code, or has no address, is passed over. */
static int take_line(struct kernel_symbols *symbols, const char *line)
{
	struct kernel_entry *entry;
	const char *name, *module;
	char *rest;
	uint64_t address;
	size_t n_name;
	int r;

	address = strtoull(line, &rest, 16);
	if (rest == line || rest[0] != ' ' || !strchr("tTwW", rest[1]) || rest[2] != ' ' || address == 0)
		return 0;
	name = rest + 3;
	n_name = strcspn(name, "\t \n");
	if (n_name == 0)
		return 0;
	r = grow(&symbols->entries, symbols->n_entries, &symbols->entries_allocated,
		 sizeof *symbols->entries);
	if (r < 0)
		return r;
	module = strchr(name + n_name, '[');
	entry = &symbols->entries[symbols->n_entries++];
	*entry = (struct kernel_entry){
		.address = address,
		.name = (uint32_t)symbols->n_name_bytes,
		.has_module = module != NULL,
	};
	r = keep_text(symbols, name, n_name);
	if (r >= 0 && module)
		r = keep_text(symbols, module, strcspn(module, "\n"));
	return r;
}

static int read_all(struct kernel_symbols *symbols)
{
	CLEANUP(freep) char *line = NULL;
	size_t allocated = 0;
	FILE *file;
	int r = 0;

	file = fopen("/proc/kallsyms", "re");
	if (!file)
		return -errno;
	while (r >= 0 && getline(&line, &allocated, file) >= 0)
		r = take_line(symbols, line);
	if (r >= 0 && ferror(file))
		r = -EIO;
	fclose(file);
	return r;
}

/* Of several names at one address the last in this order is found: prefer few underscores. */
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

int kernel_symbols_open(struct kernel_symbols **ret)
{
	CLEANUP(kernel_symbols_freep) struct kernel_symbols *symbols = NULL;
	int r;

	symbols = calloc(1, sizeof *symbols);
	if (!symbols)
		return -ENOMEM;
	r = read_all(symbols);
	if (r < 0)
		return r;
	/* Where addresses are hidden all of them read as zero. */
	if (symbols->n_entries == 0)
		return -EPERM;
	qsort_r(symbols->entries, symbols->n_entries, sizeof *symbols->entries, compare_entries,
		symbols->names);

	*ret = TAKE(symbols);
	return 0;
}

const char *kernel_symbol_lookup(const struct kernel_symbols *symbols, uint64_t ip,
				 const char **ret_module)
{
	size_t low = 0, high = symbols->n_entries;
	const char *name;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->entries[middle].address <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	name = symbols->names + symbols->entries[low - 1].name;
	if (ret_module)
		*ret_module = symbols->entries[low - 1].has_module ? name + strlen(name) + 1 : NULL;
	return name;
}
