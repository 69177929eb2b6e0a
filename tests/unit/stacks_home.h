/* SPDX-License-Identifier: MIT */
/* stacks_home.h - what a file of recorded stacks is unwound in: its modules, mapped as they were.
 *
 * Nothing of the programs need be here: modules are told apart by an inode of our own, their number, from 1.
 */
#ifndef PROBING_TESTS_STACKS_HOME_H
#define PROBING_TESTS_STACKS_HOME_H

#include <stdio.h>

#include "base/address_space.h"
#include "base/util.h"
#include "tests/unit/stacks_file.h"
#include "unwind/native/native.h"

struct stacks_home {
	struct module_table *modules;
	struct address_space *space;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack stack;
	struct stacks_image {
		char *path;
		uint8_t *bytes;
		size_t n_bytes;
	} * images;
	size_t n_images;
	struct sample *samples; /* their stacks owned */
	size_t n_samples;
};

static inline void stacks_home_close(struct stacks_home *home)
{
	native_stack_done(&home->stack);
	native_process_free(home->process);
	native_unwinder_free(home->unwinder);
	address_space_free(home->space);
	module_table_free(home->modules);
	for (size_t i = 0; i < home->n_images; i++) {
		free(home->images[i].path);
		free(home->images[i].bytes);
	}
	free(home->images);
	for (size_t i = 0; i < home->n_samples; i++)
		free((uint8_t *)home->samples[i].stack);
	free(home->samples);
}

/* A module's image: zeros but for its pieces. */
static inline bool stacks_home_image(struct stacks_file *file, struct stacks_image *image)
{
	size_t n_path, n_pieces;

	image->path = stacks_get_bytes(file, &n_path);
	image->n_bytes = stacks_get(file);
	n_pieces = stacks_get(file);
	image->bytes = calloc(1, image->n_bytes + 1);
	for (size_t i = 0; i < n_pieces && image->bytes && !file->failed; i++) {
		uint64_t offset = stacks_get(file);
		CLEANUP(freep) void *piece = NULL;
		size_t n;

		piece = stacks_get_bytes(file, &n);
		if (!piece || offset > image->n_bytes || n > image->n_bytes - offset)
			return false;
		memcpy(image->bytes + offset, piece, n);
	}
	return image->path && image->bytes && !file->failed;
}

static inline bool stacks_home_mapping(struct stacks_file *file, struct stacks_home *home)
{
	struct mapping_source source = { .executable = true, .device = 1 };
	const struct stacks_image *image;
	struct module *module;
	char path[512];

	source.start = stacks_get(file);
	source.end = stacks_get(file);
	source.file_offset = stacks_get(file);
	source.inode = stacks_get(file) + 1;
	if (file->failed || source.inode > home->n_images)
		return false;
	image = &home->images[source.inode - 1];
	snprintf(path, sizeof path, "/%s", image->path); /* what has no slash is no file */
	source.path = path;
	if (address_space_add(home->space, &source) < 0)
		return false;
	module = address_space_find(home->space, source.start)->module;
	return module->elf || elf_file_open_memory(image->bytes, image->n_bytes, &module->elf) >= 0;
}

/*
 * stacks_home_open - read a file up to its first sample.
 * @home: ended with stacks_home_close(), also after a failure; its samples are for the caller to read,
 *   into room for n_samples.
 * False: it is none, or there is no memory.
 */
static inline bool stacks_home_open(struct stacks_file *file, struct stacks_home *home)
{
	size_t n;

	memset(home, 0, sizeof *home);
	if (stacks_get(file) != STACKS_MAGIC || module_table_new(&home->modules) < 0 ||
	    address_space_new(1, home->modules, &home->space) < 0 ||
	    native_unwinder_new(home->modules, &home->unwinder) < 0 ||
	    native_process_new(home->unwinder, home->space, &home->process) < 0)
		return false;
	n = stacks_get(file);
	home->images = calloc(n + 1, sizeof *home->images);
	for (size_t i = 0; i < n; i++)
		if (!home->images || !stacks_home_image(file, &home->images[home->n_images++]))
			return false;
	n = stacks_get(file);
	for (size_t i = 0; i < n; i++)
		if (!stacks_home_mapping(file, home))
			return false;
	home->n_samples = stacks_get(file);
	home->samples = calloc(home->n_samples + 1, sizeof *home->samples);
	return home->samples && !file->failed;
}

/* A sample's registers and stack; its frames come next in the file. */
static inline bool stacks_home_sample(struct stacks_file *file, struct sample *sample)
{
	*sample = (struct sample){ .pid = 1, .tid = 1, .has_user = true };
	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		sample->regs.value[i] = stacks_get(file);
	sample->stack = stacks_get_bytes(file, &sample->stack_bytes);
	return sample->stack != NULL;
}

#endif
