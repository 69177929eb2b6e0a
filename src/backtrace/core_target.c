/* SPDX-License-Identifier: MIT */
/* core_target.c - an ended process, from its core file.
 *
 * A core file contains memory that the process wrote to; memory that it only mapped, above all code, is in
 * the mapped files. So memory is the dump first, then those files. A file counts
 * only if it is the mapped one: by the build-id in its first page, which is
 * dumped for that purpose (core(5), coredump_filter, bit 4).
 *
 * The kernel writes a segment for each mapping, with its permissions, also if it dumps none of its bytes. gdb's
 * gcore omits such mappings, above all program code: only the list of mapped files (NT_FILE) has them, and
 * their permissions come from the file's own segments.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core_file.h"
#include "base/util.h"
#include "src/backtrace/target.h"

enum { HEAD_BYTES = 4096, MAX_VDSO_BYTES = 1 << 20 };

struct dump_remote {
	struct remote base;
	struct remote *dump;
	struct address_space *space; /* borrowed */
};

/* Read from the file that was mapped at the address. */
static ssize_t read_file_behind(struct address_space *space, uint64_t address, void *to, size_t n_bytes)
{
	const struct mapping *mapping = address_space_find(space, address);
	struct elf_file *elf;
	ssize_t got;

	if (!mapping || !mapping->module || module_elf(mapping->module, &elf) < 0 || elf_file_fd(elf) < 0)
		return -EFAULT;
	got = pread(elf_file_fd(elf), to, MIN(n_bytes, (size_t)(mapping->end - address)),
		    (off_t)(mapping->file_offset + (address - mapping->start)));
	return got > 0 ? got : -EFAULT;
}

static ssize_t dump_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct dump_remote *dump = (struct dump_remote *)remote;
	size_t done = 0;

	while (done < n_bytes) {
		uint64_t address = from.value + done;
		ssize_t got = remote_read_some(dump->dump, RADDR(address), (uint8_t *)to + done, n_bytes - done);

		if (got < 0)
			got = read_file_behind(dump->space, address, (uint8_t *)to + done, n_bytes - done);
		if (got < 0)
			break;
		done += (size_t)got;
	}
	return done > 0 ? (ssize_t)done : -EFAULT;
}

static void dump_free(struct remote *remote)
{
	struct dump_remote *dump = (struct dump_remote *)remote;

	remote_free(dump->dump);
	free(dump);
}

static int open_dump(const char *path, struct address_space *space, struct remote **ret)
{
	static const struct remote_ops ops = { .read = dump_read, .free = dump_free };
	CLEANUP(freep) struct dump_remote *dump = calloc(1, sizeof *dump);
	int r;

	if (!dump)
		return -ENOMEM;
	dump->base.ops = &ops;
	dump->space = space;
	r = remote_open_core(path, &dump->dump);
	if (r < 0)
		return r;
	*ret = &TAKE(dump)->base;
	return 0;
}

/* The dumped range that contains an address; NULL: none. */
static const struct core_range *range_at(const struct core_file *core, uint64_t address)
{
	for (size_t i = 0; i < core->n_ranges; i++)
		if (address >= core->ranges[i].start && address < core->ranges[i].end)
			return &core->ranges[i];
	return NULL;
}

/* The program's path; NULL: unknown. */
static const char *program_path(const struct core_file *core)
{
	for (size_t i = 0; i < core->n_mappings; i++)
		if (core->program >= core->mappings[i].start && core->program < core->mappings[i].end)
			return core->mappings[i].path;
	return NULL;
}

static int add_range(struct target *target, const struct core_file *core, const struct core_range *range)
{
	const struct mapping_source source = {
		.start = range->start,
		.end = range->end,
		.executable = range->executable,
		.writable = range->writable,
		.path = core->vdso != 0 && range->start == core->vdso ? "[vdso]" : "",
	};

	return address_space_add(target->space, &source);
}

static int add_mapping(struct target *target, const struct core_file *core, const struct core_mapping *mapping,
		       const char *program, const char *instead)
{
	const struct core_range *range = range_at(core, mapping->start);
	struct mapping_source source = {
		.start = mapping->start,
		.end = mapping->end,
		.file_offset = mapping->file_offset,
		.executable = range && range->executable,
		.writable = range && range->writable,
		.path = mapping->path,
	};
	int r;

	if (instead && program && strcmp(program, mapping->path) == 0)
		source.path = instead;
	r = address_space_add(target->space, &source);
	return r == -EINVAL ? 0 : r; /* an empty mapping */
}

static int add_mappings(struct target *target, const struct core_file *core, const char *executable)
{
	CLEANUP(freep) char *instead = executable ? realpath(executable, NULL) : NULL;
	const char *program = program_path(core);
	int r = executable && !instead ? -errno : 0;

	for (size_t i = 0; i < core->n_ranges && r >= 0; i++)
		r = add_range(target, core, &core->ranges[i]);
	for (size_t i = 0; i < core->n_mappings && r >= 0; i++)
		r = add_mapping(target, core, &core->mappings[i], program, instead);
	return r;
}

/* Build-id from dumped ELF headers; n_bytes 0: none were dumped, or there is none. */
static struct build_id dumped_build_id(const struct target *target, uint64_t start)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint8_t head[HEAD_BYTES];
	ssize_t n = remote_read_some(target->dump, RADDR(start), head, sizeof head);

	if (n <= 0 || elf_file_open_memory(head, (size_t)n, &elf) < 0)
		return (struct build_id){ .n_bytes = 0 };
	return *elf_file_build_id(elf);
}

/* Reject a file that is not the mapped one. Files other than ELF are not reported as missing. */
static void check_file(struct target *target, const struct mapping *mapping)
{
	struct module *module = mapping->module;
	struct build_id id;
	struct elf_file *elf;

	if (mapping->file_offset != 0)
		return;
	id = dumped_build_id(target, mapping->start);
	if (module_elf(module, &elf) < 0) {
		target->n_files_missing += id.n_bytes > 0;
		return;
	}
	if (id.n_bytes == 0 || build_id_equal(&id, elf_file_build_id(elf)))
		return;
	elf_file_free(TAKE(module->elf));
	module->open_error = -ESTALE;
	target->n_files_missing++;
}

/*
 * Whether a mapping without dump information was code: decide by the segment that begins in its first page. If none
 * does, the mapping is a part of one: any segment that reaches it decides.
 */
static bool is_code_of_file(struct elf_file *elf, const struct mapping *mapping)
{
	uint64_t page_mask = ~((uint64_t)getpagesize() - 1);
	bool begins = false, is_code = false, reaches_code = false;
	struct elf_segment segment;

	for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
		uint64_t first_page = segment.file_offset & page_mask;

		if (mapping->file_offset < first_page ||
		    mapping->file_offset - first_page >= segment.n_file_bytes + (segment.file_offset - first_page))
			continue;
		begins |= first_page == mapping->file_offset;
		is_code |= first_page == mapping->file_offset && segment.executable;
		reaches_code |= segment.executable;
	}
	return begins ? is_code : reaches_code;
}

/* Nothing has read the address space yet, so no cache needs an update. */
static void find_out_kind(const struct core_file *core, struct mapping *mapping)
{
	struct elf_file *elf;

	if (!range_at(core, mapping->start) && module_elf(mapping->module, &elf) >= 0)
		mapping->executable = is_code_of_file(elf, mapping);
}

static int open_vdso(struct target *target, const struct mapping *mapping)
{
	CLEANUP(freep) void *image = NULL;
	struct module *module = mapping->module;
	uint64_t n_bytes = mapping->end - mapping->start;
	int r;

	if (n_bytes > MAX_VDSO_BYTES || module->elf)
		return 0;
	image = malloc(n_bytes);
	if (!image)
		return -ENOMEM;
	r = remote_read(target->dump, RADDR(mapping->start), image, n_bytes);
	if (r >= 0)
		r = elf_file_open_memory(image, n_bytes, &module->elf);
	if (r < 0) {
		module->open_error = r;
		return r == -ENOMEM ? r : 0;
	}
	module->image = TAKE(image);
	module->n_image_bytes = n_bytes;
	return 0;
}

static int open_files(struct target *target, const struct core_file *core)
{
	struct mapping *mapping;
	int r = 0;

	for (size_t i = 0; (mapping = address_space_nth(target->space, i)) != NULL && r >= 0; i++) {
		if (!mapping->module)
			continue;
		/* Look up files in our own root: no process has them mapped any more. */
		mapping->module->map_start = mapping->module->map_end = 0;
		if (mapping->module->is_vdso) {
			r = open_vdso(target, mapping);
			continue;
		}
		check_file(target, mapping);
		find_out_kind(core, mapping);
	}
	return r;
}

static int find_python(struct target *target, pid_t pid)
{
	int r = py_runtime_find_dumped(target->space, target->remote, pid, target->python, &target->runtime);

	target->python_error = r;
	return r == -ENOMEM ? r : 0;
}

int target_open_core(const char *path, const char *executable, const struct core_file *core,
		     struct module_table *modules, struct target **ret)
{
	CLEANUP(target_freep) struct target *target = calloc(1, sizeof *target);
	int r;

	if (!target)
		return -ENOMEM;
	target->pid = core->pid;
	target->is_dumped = true;
	target->modules = modules;
	r = address_space_new(getpid(), target->modules, &target->space);
	if (r >= 0)
		r = add_mappings(target, core, executable);
	if (r >= 0)
		r = open_dump(path, target->space, &target->remote);
	if (r < 0)
		return r;
	target->dump = ((struct dump_remote *)target->remote)->dump;
	r = open_files(target, core);
	if (r >= 0)
		r = find_python(target, core->pid);
	if (r >= 0)
		r = target_make_tools(target);
	if (r < 0)
		return r;
	*ret = TAKE(target);
	return 0;
}
