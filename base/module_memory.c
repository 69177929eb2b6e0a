/* SPDX-License-Identifier: MIT */
/* module_memory.c - a deleted file, rebuilt from the memory of a process that maps it.
 *
 * The loader maps the parts of a shared object that unwinding needs: headers, code,
 * unwind tables, dynamic symbols. It does not map section headers, so the image has
 * none. Needs no privilege beyond reading the process.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"
#include "base/proc.h"
#include "base/util.h"

enum {
	MAX_IMAGE_BYTES = 64 << 20, /* copying larger ones wastes memory */
	MAX_MAPS_BYTES = 64 << 20,
};

static bool is_of(const struct module *module, const struct mapping_source *source)
{
	return source->inode == module->inode && source->device == module->device && module->inode != 0;
}

/* Copy a mapping into the growing image; gaps are zeros. */
static int copy_mapping(struct remote *remote, const struct mapping_source *source, uint8_t **image, size_t *n_bytes)
{
	uint64_t n = source->end - source->start, end;
	uint8_t *moved;

	if (__builtin_add_overflow(source->file_offset, n, &end) || end > MAX_IMAGE_BYTES)
		return -EFBIG;
	if (end > *n_bytes) {
		moved = realloc(*image, end);
		if (!moved)
			return -ENOMEM;
		memset(moved + *n_bytes, 0, end - *n_bytes);
		*image = moved;
		*n_bytes = end;
	}
	/* Pages beyond the end of the file are unreadable and not needed. */
	(void)remote_read_some(remote, RADDR(source->start), *image + source->file_offset, n);
	return 0;
}

static int copy_all(const struct module *module, char *maps, struct remote *remote, uint8_t **image, size_t *n_bytes)
{
	char *rest = maps;
	int r = 0;

	for (char *line = strsep(&rest, "\n"); line && r >= 0; line = strsep(&rest, "\n")) {
		struct mapping_source source;

		if (line[0] != '\0' && maps_parse_line(line, &source) >= 0 && is_of(module, &source))
			r = copy_mapping(remote, &source, image, n_bytes);
	}
	return r;
}

/* Remove what was not mapped from the headers. Source: elf(5). */
static int drop_sections(uint8_t *image, size_t n_bytes)
{
	Elf64_Ehdr header;

	if (n_bytes < sizeof header || memcmp(image, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	memcpy(&header, image, sizeof header);
	header.e_shoff = 0;
	header.e_shnum = 0;
	header.e_shstrndx = SHN_UNDEF;
	memcpy(image, &header, sizeof header);
	return 0;
}

int module_copy(const struct module *module, void **ret, size_t *ret_bytes)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	CLEANUP(freep) uint8_t *image = NULL;
	CLEANUP(freep) char *maps = NULL;
	size_t n_bytes = 0;
	int r;

	r = proc_read(module->opener, "maps", MAX_MAPS_BYTES, &maps, NULL);
	if (r >= 0)
		r = remote_open_process(module->opener, &remote);
	if (r >= 0)
		r = copy_all(module, maps, remote, &image, &n_bytes);
	if (r >= 0)
		r = drop_sections(image, n_bytes);
	if (r < 0)
		return r;
	*ret = TAKE(image);
	*ret_bytes = n_bytes;
	return 0;
}
