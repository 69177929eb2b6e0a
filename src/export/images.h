/* SPDX-License-Identifier: MIT */
/* images.h - the files that native frames were mapped from, each once, with the range of the addresses in use.
 *
 * Addresses are those of the ELF file, as in the recording, so every mapping begins at 0. Several of them
 * overlap then; readers use a location's mapping, not the reverse.
 */
#ifndef PROBING_EXPORT_IMAGES_H
#define PROBING_EXPORT_IMAGES_H

#include "src/profile/profile.h"

/* Ended with images_done(). */
struct images {
	struct image {
		const char *path, *build_id; /* the profile's */
		uint64_t end;
	} * items;
	size_t n, allocated;
	uint32_t *of_frame; /* index + 1; 0: none */
};

/* images_init - those of a profile, which outlives @ret. -ENOMEM. */
int images_init(const struct profile *profile, struct images *ret);
void images_done(struct images *images);

#endif
