/* SPDX-License-Identifier: MIT */
/* address_space.c - the mappings of a process.
 *
 * Mappings arrive one by one, from /proc/PID/maps or as events of the kernel,
 * and each is newer than all before it. Nothing reports an unmapping, so
 * a mapping remains until a newer one covers it.
 *
 * Invariants:
 * 1. mappings[] is sorted by start, start < end, and no two overlap.
 * 2. Carving keeps address - file_offset, so a known bias stays valid for
 *    each piece that remains.
 * 3. Any change of executable mappings changes the generation; adding a
 *    known mapping again changes nothing.
 */
#include "base/address_space.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/module.h"
#include "base/util.h"

struct address_space {
	pid_t pid;
	struct module_table *modules;
	struct mapping *mappings;
	size_t n, n_allocated;
	unsigned generation;
};

int address_space_new(pid_t pid, struct module_table *modules, struct address_space **ret)
{
	struct address_space *space;

	space = calloc(1, sizeof *space);
	if (!space)
		return -ENOMEM;
	space->pid = pid;
	space->modules = modules;
	*ret = space;
	return 0;
}

void address_space_free(struct address_space *space)
{
	if (!space)
		return;
	free(space->mappings);
	free(space);
}

void address_space_freep(struct address_space **space)
{
	address_space_free(*space);
}

pid_t address_space_pid(const struct address_space *space)
{
	return space->pid;
}

int address_space_fork(const struct address_space *parent, pid_t pid, struct address_space **ret)
{
	CLEANUP(address_space_freep) struct address_space *child = NULL;
	int r;

	r = address_space_new(pid, parent->modules, &child);
	if (r < 0)
		return r;
	child->generation = parent->generation;
	if (parent->n > 0) {
		child->mappings = calloc(parent->n, sizeof *child->mappings);
		if (!child->mappings)
			return -ENOMEM;
		memcpy(child->mappings, parent->mappings, parent->n * sizeof *child->mappings);
		child->n = child->n_allocated = parent->n;
	}
	*ret = TAKE(child);
	return 0;
}

void address_space_clear(struct address_space *space)
{
	space->n = 0;
	space->generation++;
}

/* Index of the first mapping that ends after the address; n if none does. */
static size_t first_ending_after(const struct address_space *space, uint64_t address)
{
	size_t low = 0, high = space->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * Shared anonymous memory has a file name and an inode of a hidden filesystem. Names in brackets are no files, except
 * the vdso.
 */
static bool is_anonymous(const char *path)
{
	if (path[0] != '/')
		return strcmp(path, "[vdso]") != 0;
	return starts_with(path, "//anon") || starts_with(path, "/dev/zero") || starts_with(path, "/SYSV") ||
	       starts_with(path, "/anon_hugepage");
}

/* The kernel's name for a stack, or the one that glibc 2.39 may set. */
static bool is_stack(const char *path)
{
	return starts_with(path, "[stack") || starts_with(path, "[anon: glibc: thread stack");
}

/*
 * Until the file is opened, remember its latest executable mapping. The first one is often the loader's reservation,
 * which is split a moment later, and its process may have ended.
 */
static void remember_place(const struct address_space *space, const struct mapping_source *source,
			   struct module *module)
{
	bool is_first = module->map_end == 0;

	if (module->elf || (!is_first && !source->executable))
		return;
	module->opener = space->pid;
	module->map_start = source->start;
	module->map_end = source->end;
	module->map_offset = source->file_offset;
}

/* *ret is NULL for anonymous memory. */
static int find_module(struct address_space *space, const struct mapping_source *source, struct module **ret)
{
	static const char mark[] = " (deleted)";
	const size_t mark_bytes = sizeof mark - 1;
	struct module_identity identity = {
		.device = source->device,
		.inode = source->inode,
		.path = source->path,
		.path_bytes = strlen(source->path),
	};
	struct module *module;
	bool is_deleted;
	int r;

	if (is_anonymous(source->path)) {
		*ret = NULL;
		return 0;
	}
	is_deleted = identity.path_bytes > mark_bytes &&
		     strcmp(identity.path + identity.path_bytes - mark_bytes, mark) == 0;
	if (is_deleted)
		identity.path_bytes -= mark_bytes;
	r = module_table_intern(space->modules, &identity, &module);
	if (r < 0)
		return r;
	module->is_deleted |= is_deleted;
	remember_place(space, source, module);
	*ret = module;
	return 0;
}

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
	       a->executable == b->executable && a->writable == b->writable && a->module == b->module;
}

/* Replace [first, last) by n pieces; the array is large enough. */
static void splice(struct address_space *space, size_t first, size_t last, const struct mapping *pieces, size_t n)
{
	memmove(space->mappings + first + n, space->mappings + last, (space->n - last) * sizeof *pieces);
	memcpy(space->mappings + first, pieces, n * sizeof *pieces);
	space->n = space->n - (last - first) + n;
}

static void insert(struct address_space *space, const struct mapping *new)
{
	struct mapping pieces[3];
	size_t n = 0, first = first_ending_after(space, new->start), last = first;
	bool touches_code = new->executable;

	for (; last < space->n && space->mappings[last].start < new->end; last++)
		touches_code |= space->mappings[last].executable;
	if (last - first == 1 && is_same(&space->mappings[first], new))
		return;
	if (first < last && space->mappings[first].start < new->start) {
		pieces[n] = space->mappings[first];
		pieces[n++].end = new->start;
	}
	pieces[n++] = *new;
	if (first < last && space->mappings[last - 1].end > new->end) {
		struct mapping tail = space->mappings[last - 1];

		tail.file_offset += new->end - tail.start;
		tail.start = new->end;
		pieces[n++] = tail;
	}
	splice(space, first, last, pieces, n);
	space->generation += touches_code;
}

int address_space_add(struct address_space *space, const struct mapping_source *source)
{
	struct mapping new = {
		.start = source->start,
		.end = source->end,
		.file_offset = source->file_offset,
		.executable = source->executable,
		.writable = source->writable,
		.is_stack = is_stack(source->path),
	};
	int r;

	if (source->start >= source->end)
		return -EINVAL;
	r = find_module(space, source, &new.module);
	if (r < 0)
		return r;
	/* Removing the middle of a mapping adds two pieces. */
	r = grow(&space->mappings, space->n + 1, &space->n_allocated, sizeof new);
	if (r < 0)
		return r;
	insert(space, &new);
	return 0;
}

int address_space_mapped(struct address_space *space, const struct mapping_source *source)
{
	unsigned generation = space->generation;
	int r = address_space_add(space, source);

	if (r >= 0 && generation == space->generation && source->executable && is_anonymous(source->path))
		space->generation++;
	return r;
}

struct mapping *address_space_find(struct address_space *space, uint64_t address)
{
	size_t i = first_ending_after(space, address);

	if (i == space->n || space->mappings[i].start > address)
		return NULL;
	return &space->mappings[i];
}

struct mapping *address_space_nth(struct address_space *space, size_t n)
{
	return n < space->n ? &space->mappings[n] : NULL;
}

unsigned address_space_generation(const struct address_space *space)
{
	return space->generation;
}

/*
 * How well a segment fits a mapping; 0: not at all. Segments may share a page of the file, so the offset is not unique:
 * code is only mapped from a code segment, and a mapping usually begins at its segment's first page.
 */
static unsigned segment_fits(const struct elf_segment *segment, const struct mapping *mapping)
{
	uint64_t page_mask = ~((uint64_t)getpagesize() - 1);
	uint64_t first_page = segment->file_offset & page_mask;

	if (mapping->file_offset < first_page || segment->n_file_bytes == 0 ||
	    mapping->file_offset - first_page >= segment->n_file_bytes + (segment->file_offset - first_page))
		return 0;
	return 1 + 8 * (segment->executable == mapping->executable) + 4 * (first_page == mapping->file_offset) +
	       2 * (segment->writable == mapping->writable);
}

static int64_t file_bias(struct elf_file *elf, const struct mapping *mapping)
{
	/* Without a fitting segment, treat addresses as file offsets. */
	uint64_t own = mapping->file_offset;
	struct elf_segment segment;
	unsigned best = 0;

	for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
		unsigned fit = segment_fits(&segment, mapping);

		if (fit > best) {
			best = fit;
			own = segment.address + (mapping->file_offset - segment.file_offset);
		}
	}
	return (int64_t)(mapping->start - own);
}

static void settle_bias(struct mapping *mapping)
{
	struct elf_file *elf;

	if (module_elf(mapping->module, &elf) >= 0)
		mapping->bias = file_bias(elf, mapping);
	else
		mapping->bias = (int64_t)(mapping->start - mapping->file_offset);
	mapping->has_bias = true;
}

int address_space_resolve(struct address_space *space, uint64_t address, struct module **ret_module,
			  uint64_t *ret_address)
{
	struct mapping *mapping = address_space_find(space, address);

	if (!mapping)
		return -ENOENT;
	if (!mapping->module) {
		*ret_module = NULL;
		*ret_address = address;
		return 0;
	}
	if (!mapping->has_bias)
		settle_bias(mapping);
	*ret_module = mapping->module;
	*ret_address = address - (uint64_t)mapping->bias;
	return 0;
}
