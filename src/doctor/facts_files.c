/* SPDX-License-Identifier: MIT */
/* facts_files.c - whether debug information of a file is installed; see facts.h. */
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "src/doctor/facts.h"

enum { MAX_SECTIONS = 1 << 16 };

static bool has_own(struct elf_file *file)
{
	Elf *elf = elf_file_elf(file);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return false;
	for (unsigned n = 0; n < MAX_SECTIONS && (section = elf_nextscn(elf, section)) != NULL; n++) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
			return true;
	}
	return false;
}

/* Search by build-id, as distributions install debug files. */
static bool has_separate(const struct elf_file *file)
{
	char id[2 * BUILD_ID_MAX + 1], path[128];

	build_id_format(elf_file_build_id(file), id);
	if (strlen(id) < 3)
		return false;
	snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	return access(path, R_OK) == 0;
}

bool facts_has_debug_file(int fd)
{
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;

	if (elf_file_open(fd, &file) < 0) {
		close(fd);
		return false;
	}
	return has_own(file) || has_separate(file);
}
