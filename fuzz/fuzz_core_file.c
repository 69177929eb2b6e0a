/* SPDX-License-Identifier: MIT */
/* fuzz_core_file.c - what a core file from anywhere tells.
 *
 * The corpus is made by fuzz/make_core_corpus.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core_file.h"
#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Read everything that a parsed core file promises. */
static void check(const struct core_file *core)
{
	size_t n_characters = strlen(core->name) + strlen(core->command);

	if (core->n_threads == 0 || n_characters > sizeof core->name + sizeof core->command)
		abort();
	for (size_t i = 0; i < core->n_threads; i++)
		n_characters += core->threads[i].tid == 0 && core->threads[i].regs.value[MACHINE_REG_PC] == 0;
	for (size_t i = 0; i < core->n_mappings; i++)
		n_characters += strlen(core->mappings[i].path);
	for (size_t i = 0; i < core->n_ranges; i++)
		if (core->ranges[i].end <= core->ranges[i].start)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(core_file_freep) struct core_file *core = NULL;
	char path[64];
	int fd = memfd_create("core", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, n_bytes) != (ssize_t)n_bytes)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (core_file_read(path, &core) == 0)
		check(core);
	close(fd);
	return 0;
}
