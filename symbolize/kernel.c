/* kernel.c - kernel functions by address, from /proc/kallsyms.
 *
 * The file lists about 200,000 symbols as "address type name [module]". It is
 * read once; the text stays in memory and the entries point into it.
 *
 * Invariants: entries are sorted by address; text is cut into strings in place.
 * Source: proc(5); kernel/kallsyms.c, Linux 6.12.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/symbolize.h"

struct kernel_entry {
	uint64_t address;
	const char *name, *module; /* module NULL: the kernel itself */
};

struct kernel_symbols {
	char *text;
	struct kernel_entry *entries;
	size_t n_entries;
};

enum { MAX_BYTES = 64 << 20 };

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->entries);
	free(symbols->text);
	free(symbols);
}

void kernel_symbols_freep(struct kernel_symbols **symbols)
{
	kernel_symbols_free(*symbols);
}

/* Cut one line in place; false where it does not describe code. */
static bool parse_line(char *line, struct kernel_entry *ret)
{
	char *rest, *name, *module, *end;
	uint64_t address;

	address = strtoull(line, &rest, 16);
	if (rest == line || rest[0] != ' ' || !strchr("tTwW", rest[1]) || rest[2] != ' ')
		return false;
	name = rest + 3;
	end = name + strcspn(name, "\t ");
	module = strchr(end, '[');
	*end = '\0';
	*ret = (struct kernel_entry){ .address = address, .name = name, .module = module };
	return name[0] != '\0';
}

static int parse(struct kernel_symbols *symbols)
{
	size_t allocated = 0;
	char *rest = symbols->text;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		struct kernel_entry entry;
		int r;

		/* Where addresses are hidden all of them read as zero. */
		if (!parse_line(line, &entry) || entry.address == 0)
			continue;
		r = grow(&symbols->entries, symbols->n_entries, &allocated,
			 sizeof *symbols->entries);
		if (r < 0)
			return r;
		symbols->entries[symbols->n_entries++] = entry;
	}
	return symbols->n_entries > 0 ? 0 : -EPERM;
}

/* Of several names at one address the later one in this order is found: prefer few underscores. */
static int compare_entries(const void *a, const void *b)
{
	const struct kernel_entry *x = a, *y = b;
	size_t underscores_x, underscores_y;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	underscores_x = strspn(x->name, "_");
	underscores_y = strspn(y->name, "_");
	if (underscores_x != underscores_y)
		return underscores_x > underscores_y ? -1 : 1;
	return strcmp(x->name, y->name);
}

int kernel_symbols_open(struct kernel_symbols **ret)
{
	CLEANUP(kernel_symbols_freep) struct kernel_symbols *symbols = NULL;
	int r;

	symbols = calloc(1, sizeof *symbols);
	if (!symbols)
		return -ENOMEM;
	r = read_file("/proc/kallsyms", MAX_BYTES, &symbols->text, NULL);
	if (r < 0)
		return r;
	r = parse(symbols);
	if (r < 0)
		return r;
	qsort(symbols->entries, symbols->n_entries, sizeof *symbols->entries, compare_entries);

	*ret = TAKE(symbols);
	return 0;
}

const char *kernel_symbol_lookup(const struct kernel_symbols *symbols, uint64_t ip,
				 const char **ret_module)
{
	size_t low = 0, high = symbols->n_entries;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->entries[middle].address <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	if (ret_module)
		*ret_module = symbols->entries[low - 1].module;
	return symbols->entries[low - 1].name;
}
