/* SPDX-License-Identifier: MIT */
/* resymbolize_files.c - finds the files of a recording's modules, possibly on another machine.
 *
 * A module is identified by its build-id; a file counts if it has the same one,
 * at any path, and no other file is ever used. If the recording
 * has no build-id, a path is no proof: a file is then used only by force.
 * The vdso is in no file: our own is used if it is the same build.
 */
#include "src/pipeline/resymbolize_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/address_space.h"
#include "base/elf_file.h"
#include "base/util.h"

enum { MAX_MAPS_BYTES = 1 << 20 };

struct resymbolize_files {
	const struct resymbolize_options *options;
	struct resymbolize_result *result;
	struct symbol_search *search;
	struct resymbolize_progress progress;
};

static bool keep_going(void *data, long done, long all)
{
	struct resymbolize_files *files = data;
	struct resymbolize_progress now = files->progress;

	if (!files->options->keep_going)
		return true;
	now.downloaded = MAX(done, 0L);
	now.to_download = MAX(all, 0L);
	return files->options->keep_going(files->options->data, &now);
}

int resymbolize_files_new(const struct resymbolize_options *options, struct resymbolize_result *result,
			  struct resymbolize_files **ret)
{
	struct symbol_search_options search = {
		.folders = options->debug_dirs,
		.n_folders = options->n_debug_dirs,
		.debuginfod = options->debuginfod,
		.keep_going = keep_going,
	};
	struct resymbolize_files *files;
	int r;

	files = calloc(1, sizeof *files);
	if (!files)
		return -ENOMEM;
	files->options = options;
	files->result = result;
	search.data = files;
	r = symbol_search_new(&search, &files->search);
	if (r < 0) {
		free(files);
		return r;
	}
	*ret = files;
	return 0;
}

void resymbolize_files_free(struct resymbolize_files *files)
{
	if (!files)
		return;
	symbol_search_free(files->search);
	free(files);
}

void resymbolize_files_progress(struct resymbolize_files *files, const struct resymbolize_progress *progress)
{
	files->progress = *progress;
}

int resymbolize_files_server_error(const struct resymbolize_files *files)
{
	return symbol_search_server_error(files->search);
}

struct resymbolize_module *resymbolize_find_module(struct resymbolize_result *result, int64_t id)
{
	size_t low = 0, high = result->n_modules;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (result->modules[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < result->n_modules && result->modules[low].id == id ? &result->modules[low] : NULL;
}

static int digit_value(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = digit ? strchr(digits, digit) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Parse a build-id from the recording; n_bytes is 0 if it is missing or malformed. */
static struct build_id parse_build_id(const char *text)
{
	struct build_id id = { .n_bytes = 0 };

	for (; text && text[0]; text += 2) {
		int high = digit_value(text[0]), low = high < 0 ? -1 : digit_value(text[1]);

		if (low < 0 || id.n_bytes == BUILD_ID_MAX)
			return (struct build_id){ .n_bytes = 0 };
		id.bytes[id.n_bytes++] = (uint8_t)(high << 4 | low);
	}
	return id;
}

/* Note the build-id of the file found at the module's path, for the report. */
static int note_other(struct resymbolize_module *module, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(closep) int fd = -1;
	char text[2 * BUILD_ID_MAX + 1];
	bool has_code;

	if (module->other_build_id || symbol_file_open(path, NULL, &has_code, &fd) < 0)
		return 0;
	if (elf_file_open(fd, &elf) < 0)
		return 0;
	TAKE_FD(fd);
	build_id_format(elf_file_build_id(elf), text);
	module->other_build_id = strdup(text);
	return module->other_build_id ? 0 : -ENOMEM;
}

/* Try the module's path below a folder ("" for the path itself). */
static int try_path(struct resymbolize_module *module, const char *folder, const struct build_id *id, int *ret)
{
	CLEANUP(freep) char *path = NULL;
	CLEANUP(closep) int fd = -1;
	bool has_code;
	int r;

	if (asprintf(&path, "%s%s", folder, module->path) < 0)
		return -ENOMEM;
	r = symbol_file_open(path, id, &has_code, &fd);
	if (r == -ESTALE && note_other(module, path) < 0)
		return -ENOMEM;
	if (r < 0)
		return r;
	if (!has_code)
		return -ENOENT; /* a debug file; the search for debug files finds it */
	module->file = TAKE(path);
	*ret = TAKE_FD(fd);
	return 0;
}

/* Try each folder and keep the first specific error. @id NULL: accept any file. */
static int try_paths(struct resymbolize_files *files, struct resymbolize_module *module, const struct build_id *id,
		     int *ret)
{
	const struct resymbolize_options *options = files->options;
	int error = -ENOENT;

	for (size_t i = 0; i < options->n_debug_dirs + 2; i++) {
		const char *folder = i == 0                       ? options->sysroot
				     : i <= options->n_debug_dirs ? options->debug_dirs[i - 1]
								  : "";
		int r;

		if (!folder || module->path[0] != '/')
			continue;
		r = try_path(module, folder, id, ret);
		if (r >= 0 || r == -ENOMEM)
			return r;
		if (r != -ENOENT && r != -ENOTDIR)
			error = r;
	}
	return error;
}

static int find_file(struct resymbolize_files *files, struct resymbolize_module *module, int *ret)
{
	struct build_id id = parse_build_id(module->build_id);
	int r, found;

	if (id.n_bytes == 0)
		return files->options->force ? try_paths(files, module, NULL, ret) : -ENODATA;
	r = try_paths(files, module, &id, ret);
	if (r >= 0 || r == -ENOMEM)
		return r;
	found = symbol_search_find(files->search, module->path, &id, ret, &module->file);
	return found == -ENOENT ? r : found;
}

/* This process's own vdso. */
static const void *own_vdso(size_t *ret_bytes)
{
	const uint64_t start = getauxval(AT_SYSINFO_EHDR);
	CLEANUP(freep) char *maps = NULL;
	char *rest, *line;

	if (start == 0 || read_file("/proc/self/maps", MAX_MAPS_BYTES, &maps, NULL) < 0)
		return NULL;
	rest = maps;
	while ((line = strsep(&rest, "\n")) != NULL) {
		struct mapping_source mapping;

		if (maps_parse_line(line, &mapping) < 0 || mapping.start != start)
			continue;
		*ret_bytes = mapping.end - mapping.start;
		return (const void *)(uintptr_t)start;
	}
	return NULL;
}

static int open_vdso(struct resymbolize_module *module, struct symbol_module **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct build_id id = parse_build_id(module->build_id);
	const void *image;
	size_t n_bytes;
	int r;

	if (id.n_bytes == 0)
		return -ENODATA;
	image = own_vdso(&n_bytes);
	if (!image)
		return -ENOENT;
	r = elf_file_open_memory(image, n_bytes, &elf);
	if (r < 0)
		return r;
	if (!build_id_equal(elf_file_build_id(elf), &id))
		return -ESTALE;
	module->file = strdup("the vdso of this kernel");
	if (!module->file)
		return -ENOMEM;
	return symbol_module_open_memory(module->path, image, n_bytes, ret);
}

static int open_module(struct resymbolize_files *files, struct resymbolize_module *module, struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *symbols = NULL;
	CLEANUP(closep) int fd = -1;
	int r = -ENOENT;

	if (strcmp(module->path, "[vdso]") == 0)
		r = open_vdso(module, &symbols);
	if (!symbols && r != -ENOMEM) {
		r = find_file(files, module, &fd);
		if (r >= 0)
			r = symbol_module_open(module->path, fd, &symbols);
	}
	if (r >= 0)
		r = symbol_module_set_search(symbols, files->search, files->options->sysroot);
	if (r < 0)
		return r;
	*ret = TAKE(symbols);
	return 0;
}

int resymbolize_files_open(void *data, int64_t module_id, struct symbol_module **ret)
{
	struct resymbolize_files *files = data;
	struct resymbolize_module *module = resymbolize_find_module(files->result, module_id);

	if (!module)
		return -ENOENT;
	module->was_searched = true;
	module->error = open_module(files, module, ret);
	return module->error;
}
