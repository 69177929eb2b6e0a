/* SPDX-License-Identifier: MIT */
/* image.h - a module's memory after loading, for tables of pointers. */
#ifndef PROBING_SYMBOLIZE_IMAGE_H
#define PROBING_SYMBOLIZE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

#define IMAGE_MAX_SEGMENTS 32

/* Value of a pointer to another module's symbol. */
#define IMAGE_EXTERNAL UINT64_MAX

struct image_segment {
	uint64_t start, end;  /* [start, end): the part that the file contains */
	uint64_t memory_end;  /* end of the zeroed rest */
	const uint8_t *bytes; /* as in the file; borrowed */
	uint8_t *relocated;   /* copy with pointers filled in; NULL: bytes are right */
	bool writable, executable;
};

struct image {
	struct elf_file *elf; /* NULL: no way to ask where functions begin */
	struct image_segment segments[IMAGE_MAX_SEGMENTS];
	size_t n_segments;
	unsigned machine; /* e_machine: code is decoded for EM_X86_64 only */
	bool position_independent;
};

/*
 * image_init - take the segments of a file and apply its relocations to copies.
 * A file for a machine whose relocations are not known is an image without segments.
 * @elf:   borrowed; strings found through the image point into it.
 * @image: ended with image_done(), also after an error.
 * Errors: -ENOMEM.
 */
int image_init(struct image *image, struct elf_file *elf);
void image_done(struct image *image);

/* The segment that contains an address; NULL: none. Most look-ups are of data, which comes last. */
static inline const struct image_segment *image_segment_at(const struct image *image, uint64_t address)
{
	for (size_t i = image->n_segments; i-- > 0;)
		if (address >= image->segments[i].start && address < image->segments[i].memory_end)
			return &image->segments[i];
	return NULL;
}

/*
 * image_word - the pointer-sized word at an address. False if the file does not contain it.
 * Inline, because scans read all data of an interpreter, some ten words a step.
 */
static inline bool image_word(const struct image *image, uint64_t address, uint64_t *ret)
{
	const struct image_segment *segment = image_segment_at(image, address);
	const uint8_t *bytes;

	if (!segment || address >= segment->end || segment->end - address < sizeof *ret)
		return false;
	bytes = segment->relocated ? segment->relocated : segment->bytes;
	__builtin_memcpy(ret, bytes + (address - segment->start), sizeof *ret);
	return true;
}

/* A NUL-terminated string of at most max_bytes with the NUL; NULL: none there. Lives as long as the
 * file. */
const char *image_string(const struct image *image, uint64_t address, size_t max_bytes);

/* Whether an address is mapped at all, is data, or is the start of a function. */
bool image_maps(const struct image *image, uint64_t address);
bool image_is_data(const struct image *image, uint64_t address);
bool image_is_function(const struct image *image, uint64_t address);

/*
 * image_jump_target - the target of a function that consists of one jump.
 * Compilers turn `return g(x)` into that; jumps through a PLT are followed.
 * 0: it is another kind of function, leaves the module, or is code of another
 * machine than x86-64: such a function keeps its own name.
 */
uint64_t image_jump_target(const struct image *image, uint64_t function);

/*
 * image_is_scanned - whether a segment may contain tables of pointers:
 * writable ones (including those that become read-only after relocation), and
 * read-only data that needs no relocation.
 */
bool image_is_scanned(const struct image *image, const struct image_segment *segment);

#endif
